//! Message on stderr when a library kills the process while it is opened: a line that names the library.
//!
//! A constructor of C++ that throws, or one that reads a bad address, ends the process in the loader, where nothing can be caught. So
//! while a library is opened, the signals of such an end say first whose code ran.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Longest text; a longer one is cut.
const MOST: usize = 1024;

static TEXT: [AtomicU8; MOST] = [const { AtomicU8::new(0) }; MOST];
static LENGTH: AtomicUsize = AtomicUsize::new(0);

const SIGNALS: [libc::c_int; 5] = [libc::SIGABRT, libc::SIGBUS, libc::SIGSEGV, libc::SIGILL, libc::SIGFPE];

/// Writes the text; then the signal does what it does anyway, because the handler is reset when it is called.
extern "C" fn tell(_signal: libc::c_int) {
    let mut text = [0u8; MOST];
    let length = LENGTH.load(Ordering::Acquire).min(MOST);
    text.iter_mut().zip(&TEXT[..length]).for_each(|(t, from)| *t = from.load(Ordering::Relaxed));
    // SAFETY: writes bytes of this array; `write` may be called in a handler.
    unsafe { libc::write(2, text.as_ptr().cast(), length) };
}

/// Runs what opens a library. One at a time: libraries are opened one after the other.
pub(super) fn named<R>(file: &str, open: impl FnOnce() -> R) -> R {
    let mut dying = Dying::of(file);
    let opened = open();
    dying.came_back = true;
    opened
}

/// While it lives, a signal that ends the process writes a line first.
struct Dying {
    before: [libc::sigaction; SIGNALS.len()],
    came_back: bool,
}

impl Dying {
    /// From now on an end of the process is the library's.
    fn of(file: &str) -> Dying {
        let line = format!(
            "oflow: the process ends while the library {file} is opened: a constructor of it threw an exception or crashed\n"
        );
        let length = line.len().min(MOST);
        TEXT.iter().zip(&line.as_bytes()[..length]).for_each(|(t, b)| t.store(*b, Ordering::Relaxed));
        LENGTH.store(length, Ordering::Release);
        let before = SIGNALS.map(|signal| {
            // SAFETY: all zero is a valid `sigaction`; both structs live during the call, and the handler is a function that may be
            // called at any time.
            unsafe {
                let (mut new, mut old): (libc::sigaction, libc::sigaction) = (std::mem::zeroed(), std::mem::zeroed());
                new.sa_sigaction = tell as extern "C" fn(libc::c_int) as libc::sighandler_t;
                new.sa_flags = libc::SA_RESETHAND | libc::SA_NODEFER | libc::SA_ONSTACK;
                libc::sigaction(signal, &new, &mut old);
                old
            }
        });
        Dying { before, came_back: false }
    }
}

impl Drop for Dying {
    fn drop(&mut self) {
        if !self.came_back {
            // An exception of C++ passes by, which the runtime takes for the end.
            tell(0);
        }
        for (signal, old) in SIGNALS.iter().zip(&self.before) {
            // SAFETY: what was in force before.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
    }
}
