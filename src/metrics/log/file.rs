//! A file that grows at its end, and may be continued.

use crate::error::{Error, Result};
use oflow_files::Access;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Bytes of a file that is read to continue it.
pub(super) const LONGEST: u64 = 4 << 30;

/// A new file, or one that `kept` may shorten: it gets the content and returns what stays of it.
pub(super) fn continued(
    path: &Path,
    resumed: Option<usize>,
    kept: impl FnOnce(&str, usize) -> Result<String>,
) -> Result<File> {
    let Some(step) = resumed else {
        return match path.symlink_metadata() {
            Ok(_) => Err(Error::argument(format!("{} is the file of another run", path.display()))
                .help("name another path, or continue the run with `resume`")),
            Err(_) => oflow_files::create(path, Access::Readable),
        };
    };
    let Some(file) = oflow_files::open_if_there(path)? else { return oflow_files::create(path, Access::Readable) };
    let not_text = |e| Error::argument(format!("{} is not a log of metrics", path.display())).because(e);
    let content = String::from_utf8(oflow_files::bytes_of(file, path, LONGEST)?).map_err(not_text)?;
    // A job that was killed while it wrote leaves a part of a line.
    let whole = content.rfind('\n').map_or("", |end| &content[..=end]);
    let kept = kept(whole, step)?;
    if kept != content {
        oflow_files::replace(path, Access::Readable, kept.as_bytes())?;
    }
    oflow_files::append(path, Access::Readable)
}

/// The error of a line that no log has written.
pub(super) fn not_a_log(path: &Path, line: usize) -> Error {
    Error::argument(format!("{}:{} is not a line of a log of metrics", path.display(), line + 1))
        .help("name another path: nothing of the file has been changed")
}

/// Writes bytes to the end of a file, in one write where the kernel takes all.
pub(super) fn append(file: &mut File, path: &Path, bytes: &[u8]) -> Result<()> {
    file.write_all(bytes).map_err(|e| {
        let full = matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge);
        let error = Error::storage(format!("cannot write {}", path.display())).because(e);
        if full { error.help("free some space, and continue the run with `resume`") } else { error }
    })
}
