//! Making files and folders. Their modes do not depend on the umask, which can only take more permissions away.

use crate::own::{check, others_write, trusted};
use crate::too_large::refuse_files_too_large;
use oflow_base::{Error, Result};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Users that may open a new file, beside its owner. Nobody else may write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nobody: files of mode 0600, folders of mode 0700.
    Private,
    /// Everybody may read: files of mode 0644, folders of mode 0755.
    Readable,
}

impl Access {
    /// Returns the mode of files, less the umask.
    pub const fn file(self) -> u32 {
        match self {
            Access::Private => 0o600,
            Access::Readable => 0o644,
        }
    }

    /// Returns the mode of folders, less the umask.
    pub const fn folder(self) -> u32 {
        match self {
            Access::Private => 0o700,
            Access::Readable => 0o755,
        }
    }
}

/// The error of something that cannot be made or written, with help if the cause is known.
pub(crate) fn failed(what: &str, path: &Path, e: std::io::Error) -> Error {
    let help = match e.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some("free some space"),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Some("name a folder that this user may write to")
        }
        ErrorKind::FileTooLarge => Some("raise the limit of file sizes (`ulimit -f`)"),
        _ => None,
    };
    let error = Error::storage(format!("cannot {what} {}", path.display())).because(e);
    match help {
        Some(help) => error.help(help),
        None => error,
    }
}

/// Creates a file for reading and writing.
///
/// # Errors
/// If there is something of that name, a link too, or if it cannot be made.
pub fn create(path: &Path, access: Access) -> Result<File> {
    refuse_files_too_large();
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::from_raw_mode(access.file()))
        .map(File::from)
        .map_err(|e| failed("write", path, e.into()))
}

/// Writes a file under another name and renames it, so that readers see all of it or what was there before.
///
/// # Errors
/// If it cannot be written; nothing is left then.
pub fn replace(path: &Path, access: Access, content: &[u8]) -> Result<()> {
    // Processes of several hosts and threads of one may write to one folder.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let unique = format!(".{}-{}-{number}.partial", crate::lock::host(), std::process::id());
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(unique);
    let partial = path.with_file_name(name);
    // Left by a process of that number which was killed; the name of a link goes, not what it leads to.
    let _none_in_general = std::fs::remove_file(&partial);
    let mut file = create(&partial, access)?;
    file.write_all(content).and_then(|()| std::fs::rename(&partial, path)).map_err(|e| {
        let _may_not_be_there = std::fs::remove_file(&partial);
        failed("write", path, e)
    })
}

/// Opens a file of a folder of oflow for appending, and creates it if it is not there. A link in its place is not followed, and
/// what another user has put there is refused: in a sticky folder it may be anybody's.
///
/// # Errors
/// If it cannot be opened, if it is not a regular file, if another user owns it or can write to it.
pub fn append(path: &Path, access: Access) -> Result<File> {
    refuse_files_too_large();
    let file = named(path, OFlags::WRONLY | NO_LINK, access.file())?;
    let meta = file.metadata().map_err(|e| failed("open", path, e))?;
    if !trusted() && others_write(&meta) {
        return Err(wrong(path, &format!("can be written to by other users (mode {:o})", meta.mode() & 0o7777)));
    }
    Ok(file)
}

/// How a file is opened, or made, whose name others may have taken: no link is followed, nothing is cut or waited for, and writes go
/// to its end.
pub(crate) const NO_LINK: OFlags = OFlags::APPEND
    .union(OFlags::CREATE)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Opens a regular file that only this user has, by a name that others may have taken. Without `CREATE` among the flags it must be
/// there.
pub(crate) fn named(path: &Path, flags: OFlags, mode: u32) -> Result<File> {
    let file = match rustix::fs::open(path, flags, Mode::from_raw_mode(mode)) {
        Ok(fd) => File::from(fd),
        Err(Errno::LOOP) => return Err(wrong(path, "is a symbolic link")),
        Err(Errno::ISDIR) => return Err(wrong(path, "is a folder")),
        // A FIFO that nobody reads, or a socket.
        Err(Errno::NXIO) => return Err(wrong(path, "is not a regular file")),
        // As root too, where the kernel protects files of others in sticky folders.
        Err(Errno::ACCESS) => {
            let owner = path.symlink_metadata().map_or_else(|_| geteuid().as_raw(), |m| m.uid());
            return Err(match owner == geteuid().as_raw() {
                true => failed("open", path, Errno::ACCESS.into()),
                false => wrong(path, &format!("belongs to user {owner}")),
            });
        }
        Err(e) => return Err(failed("open", path, e.into())),
    };
    let meta = file.metadata().map_err(|e| failed("open", path, e))?;
    if !meta.is_file() {
        return Err(wrong(path, "is not a regular file"));
    }
    if meta.nlink() != 1 {
        return Err(wrong(path, &format!("is a file with {} names", meta.nlink())));
    }
    if !trusted() && meta.uid() != geteuid().as_raw() {
        return Err(wrong(path, &format!("belongs to user {}", meta.uid())));
    }
    Ok(file)
}

fn wrong(path: &Path, why: &str) -> Error {
    Error::storage(format!("{} {why}, so it is not a file that oflow has made for this user", path.display()))
        .help("delete it if nothing uses it, or name another folder")
}

/// Writes to what the user names instead of what is there, and creates a file if nothing is. It may be a link, a FIFO or a terminal, as
/// `/dev/stdout` is.
///
/// # Errors
/// If it cannot be written; a part of it may be there then.
pub fn write_where_named(path: &Path, access: Access, content: &[u8]) -> Result<()> {
    refuse_files_too_large();
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(access.file())
        .open(path)
        .and_then(|mut file| file.write_all(content))
        .map_err(|e| failed("write", path, e))
}

/// Opens what the user names for appending, and creates a file if nothing is there. It may be a link, a FIFO or a terminal, as
/// `/dev/stderr` is.
///
/// # Errors
/// If it cannot be opened.
pub fn append_where_named(path: &Path, access: Access) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(access.file()).open(path)
}

/// Makes a folder.
///
/// # Errors
/// If there is something of that name, or if it cannot be made.
pub fn folder(path: &Path, access: Access) -> Result<()> {
    make(path, access, false)
}

/// Makes a folder and those that contain it, where they are not there.
///
/// # Errors
/// If one cannot be made.
pub fn folders(path: &Path, access: Access) -> Result<()> {
    make(path, access, true)
}

fn make(path: &Path, access: Access, recursive: bool) -> Result<()> {
    DirBuilder::new()
        .mode(access.folder())
        .recursive(recursive)
        .create(path)
        .map_err(|e| failed("make the folder", path, e))
}

/// Makes a folder for a cache, with those that contain it, and checks that no other user can replace what is in it.
///
/// # Errors
/// If it cannot be made, and the errors of [`check`].
pub fn cache_folder(path: &Path) -> Result<()> {
    folders(path, Access::Private)?;
    check(path)
}

/// Makes a folder that is this user's alone, or checks that the one which is there is. What a link leads to is not used.
///
/// # Errors
/// If it cannot be made; if it is not a folder, belongs to another user, or can be opened by one.
pub fn private_folder(path: &Path) -> Result<()> {
    match DirBuilder::new().mode(Access::Private.folder()).create(path) {
        Ok(()) => return Ok(()),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        Err(e) => return Err(failed("make the folder", path, e)),
    }
    match not_private(path) {
        None => Ok(()),
        Some(why) => Err(Error::storage(format!("{} {why}", path.display())).help("remove it, or name another place")),
    }
}

/// Returns why a path is not a folder that only this user may use; `None` if it is one.
pub fn not_private(path: &Path) -> Option<String> {
    let (meta, me) = match path.symlink_metadata() {
        Ok(meta) => (meta, geteuid().as_raw()),
        Err(e) => return Some(format!("cannot be looked at: {e}")),
    };
    match () {
        () if !meta.is_dir() => Some("is not a folder".into()),
        () if meta.uid() != me => Some(format!("belongs to user {}, not to {me}", meta.uid())),
        () if meta.mode() & 0o077 != 0 => Some(format!("is open to other users (mode {:o})", meta.mode() & 0o777)),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_was_prepared_is_not_used() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        std::fs::write(at("target"), "kept").unwrap();
        symlink("target", at("link")).unwrap();
        std::fs::hard_link(at("target"), at("second")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        for (name, why) in [
            ("link", "is a symbolic link"),
            ("second", "is a file with 2 names"),
            ("fifo", "is not a regular file"),
            ("folder", "is a folder"),
        ] {
            let e = append(&at(name), Access::Private).unwrap_err().to_string();
            assert!(e.contains(why) && e.contains("delete it"), "{e}");
            assert!(create(&at(name), Access::Private).is_err(), "{name}");
        }
        std::fs::write(at("open"), "").unwrap();
        std::fs::set_permissions(at("open"), std::fs::Permissions::from_mode(0o666)).unwrap();
        let e = append(&at("open"), Access::Readable).unwrap_err().to_string();
        assert!(e.contains("can be written to by other users (mode 666)"), "{e}");
        // The link goes, and what it leads to stays.
        replace(&at("link"), Access::Readable, b"new").unwrap();
        assert_eq!(std::fs::read(at("link")).unwrap(), b"new");
        assert_eq!(std::fs::read(at("target")).unwrap(), b"kept");
    }

    #[test]
    fn a_private_folder_is_ours_alone() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        private_folder(&at("mine")).unwrap();
        private_folder(&at("mine")).unwrap();
        std::fs::set_permissions(at("mine"), std::fs::Permissions::from_mode(0o710)).unwrap();
        let e = private_folder(&at("mine")).unwrap_err().to_string();
        assert!(e.contains("is open to other users (mode 710)"), "{e}");
        symlink("/", at("link")).unwrap();
        assert!(private_folder(&at("link")).unwrap_err().to_string().contains("is not a folder"));
    }
}
