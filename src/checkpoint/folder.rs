//! A folder of checkpoints: names, complete checkpoints, the latest one, and retention.
//!
//! ```text
//! checkpoints/
//!   step-000100/            a checkpoint: it has a manifest
//!     rank-00000.safetensors …
//!     manifest.json
//!     .reading              lock of those that read it
//!   .saving-step-000200/    an incomplete checkpoint; the next save deletes it
//!   latest                  name of the checkpoint that was written last
//!   .lock                   lock of the job that writes to the folder
//! ```
//!
//! A checkpoint is written to a folder with another name: its files first, then its manifest, all made durable. Then the folder
//! is renamed. So at every time a checkpoint is complete or does not exist.

use super::lock;
use super::manifest::{MANIFEST, Manifest};
use super::sums::hex;
use crate::error::{Error, Result};
use oflow_files::Access;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const SAVING: &str = ".saving-";
const DELETING: &str = ".deleting-";
const LATEST: &str = "latest";
/// Most bytes of `latest`.
const LONGEST_POINTER: u64 = 256;

/// Returns the name of the folder of a step: `step-000100`.
pub fn name_of(step: u64) -> String {
    format!("step-{step:06}")
}

/// Returns the step of a folder's name, or `None` if it is no name of a checkpoint.
pub fn step_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("step-")?;
    digits.parse().ok().filter(|s| name_of(*s) == name)
}

/// Returns the folder to which the checkpoint of a step is written before it is complete.
pub fn saving(dir: &Path, step: u64) -> PathBuf {
    dir.join(format!("{SAVING}{}", name_of(step)))
}

/// Returns the name of a checkpoint that is being removed or replaced.
fn deleting(dir: &Path, step: u64) -> PathBuf {
    dir.join(format!("{DELETING}{}", name_of(step)))
}

fn failed(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let text = format!("cannot {what} {}", path.display());
    move |e| io_error(text, e)
}

/// Makes the error of a failed file operation, with help if the cause is known.
pub fn io_error(what: String, e: std::io::Error) -> Error {
    use std::io::ErrorKind as K;
    let help = match e.kind() {
        K::StorageFull | K::QuotaExceeded => {
            Some("free some space, or keep fewer checkpoints (`CheckpointOptions::keep`)")
        }
        K::PermissionDenied | K::ReadOnlyFilesystem => Some("name a folder that this user may write to"),
        K::FileTooLarge => Some("raise the limit of file sizes (`ulimit -f`)"),
        _ => None,
    };
    let e = Error::storage(what).because(e);
    match help {
        Some(h) => e.help(h),
        None => e,
    }
}

/// Makes the entries of a folder durable.
pub fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|f| f.sync_all()).map_err(failed("make durable", dir))
}

/// Makes the directory entry of a file or folder durable.
pub fn sync_name(path: &Path) -> Result<()> {
    sync_dir(path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// Writes a new file and makes it durable.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn write_new(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    let mut f = oflow_files::create(path, Access::Readable)?;
    f.write_all(content.as_ref()).and_then(|()| f.sync_all()).map_err(failed("write", path))
}

/// Writes what makes a folder of data files a checkpoint: its lock, and its manifest last.
///
/// # Errors
/// If they cannot be written.
pub fn complete(checkpoint: &Path, manifest: &Manifest) -> Result<()> {
    lock::make_readable(checkpoint)?;
    write_new(&checkpoint.join(MANIFEST), manifest.to_text()?)
}

/// A complete checkpoint in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointEntry {
    /// Path of the checkpoint.
    pub path: PathBuf,
    /// Step of the checkpoint.
    pub step: u64,
    /// Time of writing of the manifest.
    pub written: SystemTime,
}

/// Returns the complete checkpoints in a folder, in the order in which they were written; none if the folder does not exist.
pub fn list(dir: &Path) -> Result<Vec<CheckpointEntry>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        Err(e) => return Err(failed("list", dir)(e)),
    };
    let mut all: Vec<CheckpointEntry> = entries.flatten().filter_map(|e| found(dir, e.file_name().to_str()?)).collect();
    all.sort_by_key(|f| (f.written, f.step));
    Ok(all)
}

/// Returns the checkpoint that was written last: the one named in the file `latest`, or without that file the newest.
///
/// Another job may save meanwhile. It points `latest` to its checkpoint, gives the checkpoint its name, and only then removes
/// older ones. So, if the pointer has not changed while the folder was read, either its checkpoint was named meanwhile and is
/// there now, or nothing was removed and the folder holds no checkpoint. Each further look needs another save.
///
/// # Errors
/// If the folder cannot be read, or if `latest` is damaged.
pub fn latest(dir: &Path) -> Result<Option<CheckpointEntry>> {
    let mut named = pointer(dir)?;
    loop {
        let before = pointed(dir, named);
        let newest = list(dir)?.pop();
        let after = pointed(dir, named);
        if let Pointed::Whole(found) = after {
            return Ok(Some(found));
        }
        let now = pointer(dir)?;
        if now != named || before != after {
            named = now;
            continue;
        }
        return match (after, newest) {
            (Pointed::Broken(name), _) => Err(lost(dir, &format!("{LATEST} names {name}, which"), &name)),
            (Pointed::Gone(name), None) => {
                let text = format!("{} names {name}, which is not there", dir.join(LATEST).display());
                Err(Error::storage(text)
                    .help(format!("put {name} back, or delete `{LATEST}` to start without a checkpoint")))
            }
            (Pointed::Gone(name), Some(newest)) => {
                let (shown, newest_name) = (dir.display(), name_of(newest.step));
                tracing::warn!("{shown}/{LATEST} names {name}, which is not there; the newest is {newest_name}");
                Ok(Some(newest))
            }
            (_, Some(newest)) => Ok(Some(newest)),
            (_, None) => match remains(dir)? {
                Some(name) => Err(lost(dir, &name, &name)),
                None => Ok(None),
            },
        };
    }
}

/// Target of the link `latest`.
#[derive(PartialEq)]
enum Pointed {
    /// Nowhere: there is no such file.
    Nothing,
    Whole(CheckpointEntry),
    /// To a checkpoint whose commit has not ended, or never will.
    Unfinished,
    /// To the folder of that name, which has no manifest.
    Broken(String),
    /// To that name, which nothing has.
    Gone(String),
}

fn pointed(dir: &Path, named: Option<u64>) -> Pointed {
    let Some(step) = named else { return Pointed::Nothing };
    let name = name_of(step);
    let unfinished = saving(dir, step).exists() || deleting(dir, step).exists();
    let there = dir.join(&name).symlink_metadata().is_ok();
    // Last: what was unfinished a moment ago may have its name now.
    match found(dir, &name) {
        Some(found) => Pointed::Whole(found),
        None if there => Pointed::Broken(name),
        None if unfinished => Pointed::Unfinished,
        None => Pointed::Gone(name),
    }
}

/// The name of a folder that was a checkpoint: it has the name of one and no manifest. oflow gives and takes names of whole
/// checkpoints only.
fn remains(dir: &Path) -> Result<Option<String>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed("list", dir)(e)),
    };
    let mut names = entries.flatten().filter_map(|e| e.file_name().into_string().ok());
    Ok(names.find(|n| step_of(n).is_some() && !dir.join(n).join(MANIFEST).exists()))
}

fn lost(dir: &Path, what: &str, name: &str) -> Error {
    Error::storage(format!("{}/{what} has no {MANIFEST}", dir.display()))
        .help(format!("restore its files, or move {name} and `{LATEST}` away: then the newest of the others counts"))
}

/// The text of `latest`: the name of a checkpoint and the checksum of that line, because names of steps differ in single bits.
fn pointer_text(step: u64) -> String {
    let line = format!("{}\n", name_of(step));
    format!("{line}crc32 {}\n", hex(crc32fast::hash(line.as_bytes())))
}

/// The step that `latest` names; `None` without that file.
fn pointer(dir: &Path) -> Result<Option<u64>> {
    let path = dir.join(LATEST);
    let broken = |why: &str| {
        Error::storage(format!("{} is broken: {why}", path.display()))
            .help("delete it: then the checkpoint that was written last counts")
    };
    let file = oflow_files::open_if_there(&path)
        .map_err(|e| e.help("delete it: then the checkpoint that was written last counts"))?;
    let Some(file) = file else { return Ok(None) };
    let bytes = oflow_files::bytes_of(file, &path, LONGEST_POINTER).map_err(|e| broken(e.message()))?;
    let step = std::str::from_utf8(&bytes).ok().and_then(|text| step_of(text.lines().next()?));
    match step {
        Some(step) if pointer_text(step).as_bytes() == bytes => Ok(Some(step)),
        _ => Err(broken("it does not name a checkpoint with the checksum of that name")),
    }
}

/// The checkpoint of that name, if it is one.
fn found(dir: &Path, name: &str) -> Option<CheckpointEntry> {
    let (step, path) = (step_of(name)?, dir.join(name));
    let written = path.join(MANIFEST).metadata().ok()?.modified().ok()?;
    Some(CheckpointEntry { path, step, written })
}

/// Removes incomplete checkpoints and makes the folder for the checkpoint of a step. Call it under the lock.
pub fn begin(dir: &Path, step: u64) -> Result<()> {
    let there = dir.join(name_of(step));
    if there.exists() && !there.join(MANIFEST).exists() {
        return Err(Error::storage(format!(
            "{} exists and is not a checkpoint: it has no {MANIFEST}",
            there.display()
        ))
        .help("move it away, or save into another folder"));
    }
    remove_halves(dir)?;
    let path = saving(dir, step);
    oflow_files::folder(&path, Access::Readable)
}

/// Removes incomplete checkpoints. Call it under the lock. A folder with the name of a checkpoint but without a manifest was not
/// written by oflow and is kept.
pub fn remove_halves(dir: &Path) -> Result<()> {
    forget_unfinished(dir)?;
    for entry in std::fs::read_dir(dir).map_err(failed("list", dir))?.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if name.starts_with(SAVING) || name.starts_with(DELETING) {
            std::fs::remove_dir_all(&path).map_err(failed("remove the half checkpoint", &path))?;
        }
    }
    Ok(())
}

/// Removes `latest` if it names an unfinished checkpoint, which is about to be removed.
fn forget_unfinished(dir: &Path) -> Result<()> {
    // One that is broken is replaced by the next save.
    if matches!(pointer(dir), Ok(named) if pointed(dir, named) == Pointed::Unfinished) {
        let path = dir.join(LATEST);
        std::fs::remove_file(&path).map_err(failed("remove", &path))?;
        sync_dir(dir)?;
    }
    Ok(())
}

/// Removes the checkpoint of a step that was begun and cannot be completed. Call it under the lock.
///
/// # Errors
/// If it cannot be removed; then the next save removes it.
pub fn abandon(dir: &Path, step: u64) -> Result<()> {
    forget_unfinished(dir)?;
    let path = saving(dir, step);
    std::fs::remove_dir_all(&path).map_err(failed("remove the half checkpoint", &path))
}

/// Renames a written checkpoint to its final name, which completes it. A checkpoint of the same step is replaced.
pub fn commit(dir: &Path, step: u64) -> Result<()> {
    let (from, to) = (saving(dir, step), dir.join(name_of(step)));
    sync_dir(&from)?;
    if !to.exists() {
        // The pointer first: while it names nothing the newest counts, and what fails here leaves no checkpoint.
        point(dir, step)?;
        std::fs::rename(&from, &to).map_err(failed("rename to", &to))?;
        return sync_dir(dir);
    }
    match renameat_with(CWD, &from, CWD, &to, RenameFlags::EXCHANGE) {
        Ok(()) => {}
        // NFS and others cannot exchange names: there the step is missing for a moment.
        Err(Errno::INVAL | Errno::NOSYS) => {
            let old = deleting(dir, step);
            std::fs::rename(&to, &old).map_err(failed("replace", &to))?;
            if let Err(e) = std::fs::rename(&from, &to) {
                let _best_effort = std::fs::rename(&old, &to);
                return Err(failed("rename to", &to)(e));
            }
            std::fs::rename(&old, &from).map_err(failed("remove", &old))?;
        }
        Err(e) => return Err(failed("replace", &to)(e.into())),
    }
    point(dir, step)?;
    sync_dir(dir)?;
    // The old one is what now has the other name.
    std::fs::remove_dir_all(&from).map_err(failed("remove", &from))
}

/// Makes `latest` name a step.
fn point(dir: &Path, step: u64) -> Result<()> {
    let (new, pointer) = (dir.join(".latest.new"), dir.join(LATEST));
    let _may_not_exist = std::fs::remove_file(&new);
    write_new(&new, pointer_text(step))?;
    std::fs::rename(&new, &pointer).map_err(failed("write", &pointer))
}

/// Removes all checkpoints but the `keep` last ones. A checkpoint that is being read is kept until the next call.
pub fn retain(dir: &Path, keep: usize) -> Result<()> {
    let mut all = list(dir)?;
    // Clocks go back, and those of hosts differ: what `latest` names is the newest whatever its time says.
    if let Some(newest) = latest(dir)? {
        all.retain(|f| f.path != newest.path);
        all.push(newest);
    }
    for old in &all[..all.len().saturating_sub(keep.max(1))] {
        let Ok(removing) = lock::removing(&old.path) else {
            tracing::info!("{} is being read; it is kept for now", old.path.display());
            continue;
        };
        // Under a name that is not a checkpoint's, because removing takes its time.
        let gone = deleting(dir, old.step);
        rustix::fs::renameat(CWD, &old.path, CWD, &gone).map_err(|e| failed("remove", &old.path)(e.into()))?;
        // NFS keeps a folder with a file that is open.
        drop(removing);
        std::fs::remove_dir_all(&gone).map_err(failed("remove", &gone))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dir: &Path, step: u64) {
        begin(dir, step).unwrap();
        complete(&saving(dir, step), &Manifest::default()).unwrap();
        commit(dir, step).unwrap();
    }

    fn steps(dir: &Path) -> Vec<u64> {
        list(dir).unwrap().iter().map(|f| f.step).collect()
    }

    #[test]
    fn names() {
        assert_eq!((name_of(7).as_str(), name_of(12_345_678).as_str()), ("step-000007", "step-12345678"));
        assert_eq!(["step-000007", "step-7", "step-", "latest"].map(step_of), [Some(7), None, None, None]);
    }

    #[test]
    fn the_last_ones_are_kept_and_one_that_is_read_stays() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path();
        assert_eq!((list(&dir.join("none")).unwrap(), latest(dir).unwrap()), (vec![], None));
        // Step 30 was written before the job went back to step 10: what counts is the order of writing.
        for step in [30, 10, 20] {
            put(dir, step);
        }
        assert_eq!(latest(dir).unwrap().unwrap().step, 20);
        let reader = lock::reading(&dir.join("step-000030")).unwrap();
        retain(dir, 1).unwrap();
        assert_eq!(latest(dir).unwrap().unwrap().step, 20);
        assert_eq!(steps(dir).len(), 2, "one is read, one is the newest");
        drop(reader);
        retain(dir, 0).unwrap();
        assert_eq!(steps(dir), [20], "the newest is never removed");
        // Nor where its clock was behind that of the one before.
        put(dir, 40);
        let manifest = File::options().write(true).open(dir.join("step-000040").join(MANIFEST)).unwrap();
        manifest.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        retain(dir, 1).unwrap();
        assert_eq!((steps(dir), latest(dir).unwrap().unwrap().step), (vec![40], 40));
        // The pointer names what is no more, or is lost.
        std::fs::write(dir.join(LATEST), pointer_text(10)).unwrap();
        assert_eq!(latest(dir).unwrap().unwrap().step, 40);
        std::fs::remove_file(dir.join(LATEST)).unwrap();
        assert_eq!(latest(dir).unwrap().unwrap().step, 40);
    }

    #[test]
    fn a_damaged_pointer_is_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path();
        put(dir, 10);
        put(dir, 40);
        let path = dir.join(LATEST);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(String::from_utf8_lossy(&whole).lines().next(), Some("step-000040"));
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let e = latest(dir).unwrap_err().to_string();
            assert!(e.contains("latest is broken: ") && e.contains("delete it: then the checkpoint"), "{e}");
        };
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            refused(&bytes);
        }
        for text in ["", "step-000010\n", "step-000040", "../x\n", &"x".repeat(1000)] {
            refused(text.as_bytes());
        }
        refused(&[&whole[..], b"\n"].concat());
    }

    #[test]
    fn a_step_is_replaced_as_a_whole_and_halves_are_removed() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path();
        put(dir, 5);
        std::fs::write(dir.join("step-000005/old"), "").unwrap();
        std::fs::create_dir(dir.join("step-000009")).unwrap();
        begin(dir, 6).unwrap();
        assert_eq!(steps(dir), [5]);
        put(dir, 5);
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["latest", "step-000005", "step-000009"], "what we have not written stays");
        let e = begin(dir, 9).unwrap_err().to_string();
        assert!(e.contains("step-000009 exists and is not a checkpoint"), "{e}");
        assert!(!dir.join("step-000005/old").exists());
    }

    #[test]
    fn a_pointer_to_a_half_checkpoint_is_removed_with_it() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path();
        let half = |step| {
            put(dir, step);
            std::fs::rename(dir.join(name_of(step)), saving(dir, step)).unwrap();
            assert_eq!(pointer(dir).unwrap(), Some(step));
            assert_eq!(latest(dir).unwrap(), None, "its commit was not complete");
        };
        half(3);
        begin(dir, 4).unwrap();
        assert_eq!((pointer(dir).unwrap(), latest(dir).unwrap()), (None, None));
        half(5);
        abandon(dir, 5).unwrap();
        assert_eq!((pointer(dir).unwrap(), latest(dir).unwrap()), (None, None));
        // One that names something else is kept.
        put(dir, 6);
        begin(dir, 7).unwrap();
        abandon(dir, 7).unwrap();
        assert_eq!((pointer(dir).unwrap(), steps(dir)), (Some(6), vec![6]));
    }
}
