//! Whether other users can replace what is at a path.

use oflow_base::{Error, Result};
use rustix::process::geteuid;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// `1`: files and folders are used although other users own them or can write to them.
pub const TRUST_VARIABLE: &str = "OFLOW_TRUST_FOLDERS";

/// Links that are followed in one path, as many as Linux follows.
const MOST_LINKS: usize = 40;

/// Returns whether the user trusts those who can write to the files and folders that oflow uses.
pub fn trusted() -> bool {
    std::env::var(TRUST_VARIABLE).is_ok_and(|v| v == "1")
}

/// The owner of the running program, who can change what runs: what else that user owns is no further danger.
fn owner_of_program() -> Option<u32> {
    static OWNER: OnceLock<Option<u32>> = OnceLock::new();
    *OWNER.get_or_init(|| std::fs::metadata("/proc/self/exe").ok().map(|m| m.uid()))
}

/// Returns whether a user can change what this process does anyway: its own user, root, the owner of the program.
pub fn is_friend(uid: u32) -> bool {
    uid == geteuid().as_raw() || uid == 0 || Some(uid) == owner_of_program()
}

/// Returns whether others than the owner may write, by the mode. The group that has the number of its user is not others.
pub fn others_write(meta: &Metadata) -> bool {
    let group = if meta.gid() == meta.uid() { 0 } else { 0o020 };
    meta.mode() & (0o002 | group) != 0
}

/// Whether anybody may make names in a folder, but only the owner of a name may take it away.
fn is_sticky(meta: &Metadata) -> bool {
    meta.mode() & 0o1000 != 0
}

/// Checks that no other user can replace the file or folder at a path, or what is in that folder: who owns it, and each folder
/// on the way to it, also behind symbolic links, is this user, root, or the owner of the running program; nobody else may write
/// to them. A sticky folder such as `/tmp` may be on the way, because names in it can be replaced only by their owner.
///
/// # Errors
/// If another user can, unless [`TRUST_VARIABLE`] says that they are trusted; if there is nothing at the path.
pub fn check(path: &Path) -> Result<()> {
    let looked = |at: &Path, e: std::io::Error| Error::storage(format!("cannot look at {}", at.display())).because(e);
    if trusted() {
        return Ok(());
    }
    let whole = std::path::absolute(path).map_err(|e| looked(path, e))?;
    let mut at = PathBuf::from("/");
    let mut folder = at.symlink_metadata().map_err(|e| looked(&at, e))?;
    check_one(path, &at, &folder)?;
    let mut rest: VecDeque<OsString> = names(&whole);
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            at.pop();
            folder = at.symlink_metadata().map_err(|e| looked(&at, e))?;
            continue;
        }
        let next = at.join(&name);
        let meta = next.symlink_metadata().map_err(|e| looked(&next, e))?;
        if !meta.is_symlink() {
            check_one(path, &next, &meta)?;
            (at, folder) = (next, meta);
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(Error::storage(format!("{} is behind more than {MOST_LINKS} symbolic links", path.display())));
        }
        // The owner of a link in a folder that only friends write to cannot change it.
        if others_write(&folder) && !is_friend(meta.uid()) {
            return Err(refused(path, &next, format!("is a link that belongs to user {}", meta.uid()), None));
        }
        let target = next.read_link().map_err(|e| looked(&next, e))?;
        if target.is_absolute() {
            at = PathBuf::from("/");
            folder = at.symlink_metadata().map_err(|e| looked(&at, e))?;
        }
        names(&target).into_iter().rev().for_each(|name| rest.push_front(name));
    }
    Ok(())
}

/// The names in a path, without the root.
fn names(path: &Path) -> VecDeque<OsString> {
    let name = |c: Component| match c {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// Checks one folder on the way to a path, or what is there.
fn check_one(path: &Path, at: &Path, meta: &Metadata) -> Result<()> {
    if !is_friend(meta.uid()) {
        let me = geteuid().as_raw();
        let why = format!("belongs to user {}, and this process runs as user {me}", meta.uid());
        return Err(refused(path, at, why, None));
    }
    if others_write(meta) && !(meta.is_dir() && is_sticky(meta)) {
        let why = format!("can be written to by other users (mode {:o})", meta.mode() & 0o7777);
        return Err(refused(path, at, why, Some(format!("`chmod go-w {}`", at.display()))));
    }
    Ok(())
}

fn refused(path: &Path, at: &Path, why: String, way: Option<String>) -> Error {
    let what = if at.is_dir() { "what is in it" } else { "it" };
    let on = if at == path { String::new() } else { format!(", on the way to {},", path.display()) };
    Error::storage(format!("{}{on} {why}: they could replace {what}", at.display())).help(format!(
        "{}, or set {TRUST_VARIABLE}=1 if you trust them",
        way.unwrap_or_else(|| "use a place of your own".into())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn said(path: &Path) -> String {
        check(path).unwrap_err().to_string()
    }

    #[test]
    fn the_whole_path_counts() {
        let tmp = tempfile::tempdir().unwrap();
        let deep = tmp.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        let file = deep.join("file");
        fs::write(&file, "").unwrap();
        check(&file).unwrap();
        check(&deep).unwrap();
        for (writable, mode) in [("a", 0o777), ("a/b", 0o702), ("a/b/c", 0o757), ("a/b/c/file", 0o646)] {
            let at = tmp.path().join(writable);
            allow(&at, mode);
            let e = said(&file);
            assert!(e.contains(&format!("can be written to by other users (mode {mode:o})")), "{e}");
            assert!(e.contains(&format!("`chmod go-w {}`, or set OFLOW_TRUST_FOLDERS=1", at.display())), "{e}");
            allow(&at, 0o755);
        }
        // As /tmp is.
        allow(&tmp.path().join("a"), 0o1777);
        check(&file).unwrap();
        allow(&tmp.path().join("a"), 0o755);
        assert!(said(&deep.join("none")).starts_with("cannot look at "));
    }

    #[test]
    fn links_count_with_where_they_lead() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        for folder in ["open", "open/inside", "mine"] {
            fs::create_dir(at(folder)).unwrap();
        }
        allow(&at("open"), 0o777);
        symlink("../open/inside", at("mine/link")).unwrap();
        symlink(at("mine/link"), at("mine/second")).unwrap();
        for path in ["mine/link", "mine/second", "mine/../open/inside", "mine/second/../inside"] {
            assert!(said(&at(path)).contains("open, on the way to "), "{path}");
        }
        allow(&at("open"), 0o755);
        check(&at("mine/second")).unwrap();
        symlink("loop", at("loop")).unwrap();
        assert!(said(&at("loop")).contains("more than 40 symbolic links"));
    }

    #[test]
    fn other_users_are_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let folder = tmp.path().join("theirs");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("file"), "").unwrap();
        if chown(&folder, Some(65534), Some(65534)).is_err() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        let e = said(&folder.join("file"));
        assert!(e.contains("belongs to user 65534, and this process runs as user"), "{e}");
        // A link of theirs in a folder where anybody may make one.
        let sticky = tmp.path().join("sticky");
        fs::create_dir(&sticky).unwrap();
        allow(&sticky, 0o1777);
        symlink("/", sticky.join("link")).unwrap();
        std::os::unix::fs::lchown(sticky.join("link"), Some(65534), Some(65534)).unwrap();
        let e = said(&sticky.join("link"));
        assert!(e.contains("is a link that belongs to user 65534"), "{e}");
    }
}
