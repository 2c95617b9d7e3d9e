//! Makes and opens files and folders where other users could prepare something. Every file that oflow makes, or opens by a name
//! that others know, goes through here; `docs/running.md` has the table.
//!
//! | module | content |
//! |---|---|
//! | [`own`] | whether other users can replace what is at a path |
//! | [`open`](mod@open) | opening and reading regular files |
//! | [`make`] | making files and folders, with modes that do not depend on the umask |
//! | [`lock`] | locks that nobody else can hold, and waiting for them |
//!
//! The rules:
//! - A file that grows beyond the limit of file sizes is an error of the write, not the end of the process.
//! - What is made can be written by its owner alone. [`Access`] says whether others may read it.
//! - Only regular files are opened, without blocking: opening a FIFO waits for its other end, and a device may have no end.
//! - Names that others can foresee are never followed if they are links, and never truncated.
//! - What is executed, loaded or relied on is refused if another user could replace it: itself, or any folder on its path.

pub mod lock;
pub mod make;
pub mod open;
pub mod own;
mod too_large;

pub use lock::Lock;
pub use make::{Access, append, append_where_named, cache_folder, create, folder, folders, private_folder, replace};
pub use open::{bytes, bytes_of, checked_bytes, open, open_if_there, text};
pub use own::{TRUST_VARIABLE, check, trusted};
