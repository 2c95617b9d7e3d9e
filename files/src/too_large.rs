//! Files that grow beyond the limit of file sizes (`ulimit -f`): an error of the write, not the end of the process.

use std::sync::Once;

/// From now on a write beyond the limit of file sizes fails with EFBIG, and the error names the file. By default the system ends the process
/// by SIGXFSZ, which tells nobody which file it was. A handler of the program's own stays.
pub(crate) fn refuse_files_too_large() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: reads and sets what the process does at one signal; zeros are a value of the struct, and no handler is set that could
        // run.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_DFL {
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            }
        }
    });
}
