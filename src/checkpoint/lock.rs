//! Locks of a folder of checkpoints: one of the job that writes there, and one of each checkpoint for those that read it.
//!
//! They are `flock`s of files that their owner alone can open. Any user can lock a file that is readable for all, a manifest for
//! example, and keep it for ever.

use super::access;
use super::folder::io_error;
use crate::error::{Error, Result};
use rustix::fs::{FlockOperation, Mode, OFlags, fchmod, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Lock of the job that writes to a folder.
const WRITING: &str = ".lock";
/// Lock of a checkpoint against removal.
const READING: &str = ".reading";
/// Most bytes of a lock's mark.
const LONGEST_MARK: u64 = 1024;

/// The lock of the job that writes to a folder, until it is dropped.
#[derive(Debug)]
pub struct JobLock {
    _file: File,
    mark: String,
}

impl JobLock {
    /// Makes the folder if it is not there, and takes its lock.
    ///
    /// # Errors
    /// If another job has it, and if the folder or the lock is not this user's alone.
    pub fn take(dir: &Path) -> Result<JobLock> {
        access::make_folders(dir)?;
        access::check_folder(dir)?;
        let path = dir.join(WRITING);
        let failed = |e: Errno| io_error(format!("cannot lock {}", path.display()), e.into());
        let file = open_own(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let holder = holder(&file).map_or_else(|| "another job".into(), |who| format!("another job ({who})"));
                return Err(Error::storage(format!("{holder} writes checkpoints to {}", dir.display()))
                    .help("give each job a folder of its own, or end the other job"));
            }
            Err(Errno::NOSYS | Errno::OPNOTSUPP) => {
                tracing::warn!(
                    "{} is on a file system without locks: make sure that only one job writes there",
                    dir.display()
                );
            }
            Err(e) => return Err(failed(e)),
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos());
        let mark = format!("{} {} {now}\n", host(), std::process::id());
        let write = || {
            file.set_len(0)?;
            (&file).write_all(mark.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|e| io_error(format!("cannot write {}", path.display()), e))?;
        Ok(JobLock { _file: file, mark })
    }

    /// Returns the text by which other hosts recognise the same folder. Each lock writes another one to its file.
    pub fn mark(&self) -> &str {
        &self.mark
    }
}

/// Returns whether a folder has the lock with this mark.
pub fn has_mark(dir: &Path, mark: &str) -> bool {
    access::text(&dir.join(WRITING), LONGEST_MARK).is_ok_and(|found| found == mark)
}

/// The name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Who has a lock, from its mark.
fn holder(file: &File) -> Option<String> {
    let mut text = String::new();
    file.take(LONGEST_MARK).read_to_string(&mut text).ok()?;
    let mut words = text.split(' ');
    let (host, pid) = (words.next()?, words.next()?.parse::<u32>().ok()?);
    // What is shown comes from a file.
    let host: String = host.chars().filter(|c| !c.is_control()).collect();
    Some(format!("process {pid} on {host}"))
}

/// Opens a lock that nobody else can take, or makes it.
fn open_own(path: &Path) -> Result<File> {
    let failed = |e: Errno| io_error(format!("cannot open {}", path.display()), e.into());
    let wrong = |why: String| {
        Error::storage(format!("{} {why}, so it is no lock of this user", path.display()))
            .help("delete it if no job writes to the folder, or name another folder")
    };
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mode = if access::trusted() { access::SHARED_LOCK } else { access::PRIVATE };
    let file = match rustix::fs::open(path, flags | OFlags::CREATE, mode) {
        Ok(fd) => File::from(fd),
        Err(Errno::LOOP) => return Err(wrong("is a symbolic link".into())),
        Err(Errno::ISDIR) => return Err(wrong("is a folder".into())),
        // As root too, where the kernel protects files of others in sticky folders.
        Err(Errno::ACCESS) => {
            let owner = path.symlink_metadata().map_or(0, |m| m.uid());
            return Err(match owner == rustix::process::geteuid().as_raw() {
                true => failed(Errno::ACCESS),
                false => wrong(format!("belongs to user {owner}")),
            });
        }
        Err(e) => return Err(failed(e)),
    };
    let meta = file.metadata().map_err(|e| io_error(format!("cannot open {}", path.display()), e))?;
    if !meta.is_file() {
        return Err(wrong("is no regular file".into()));
    }
    if meta.nlink() != 1 {
        return Err(wrong(format!("is a file with {} names", meta.nlink())));
    }
    if !access::trusted() {
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(wrong(format!("belongs to user {}", meta.uid())));
        }
        if meta.mode() & 0o077 != 0 {
            fchmod(&file, access::PRIVATE).map_err(failed)?;
        }
    }
    Ok(file)
}

/// Makes the lock of a checkpoint that is being written.
pub fn make_readable(checkpoint: &Path) -> Result<()> {
    access::create(&checkpoint.join(READING), access::PRIVATE).map(drop)
}

/// Protects a checkpoint from removal until the returned file is dropped. A reader who is not its owner cannot protect it; nor can
/// anybody where the file system has no locks.
///
/// # Errors
/// If the checkpoint is being removed.
pub fn reading(checkpoint: &Path) -> Result<Option<File>> {
    let Some(file) = open_lock(checkpoint, OFlags::RDONLY) else { return Ok(None) };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Err(Error::storage(format!("{} is being removed", checkpoint.display()))
            .help("use another checkpoint: `oflow ckpt ls` lists them")),
        _ => Ok(Some(file)),
    }
}

/// Takes the lock of a checkpoint for its removal; `Err` if somebody reads it.
pub fn removing(checkpoint: &Path) -> Result<Option<File>, ()> {
    // For writing, because NFS gives nobody else an exclusive lock.
    let Some(file) = open_lock(checkpoint, OFlags::RDWR) else { return Ok(None) };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(()),
        // Any other error: the file system has no locks, so readers are not known.
        _ => Ok(Some(file)),
    }
}

fn open_lock(checkpoint: &Path, how: OFlags) -> Option<File> {
    let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(checkpoint.join(READING), flags, Mode::empty());
    fd.map(File::from).ok().filter(|f| f.metadata().is_ok_and(|m| m.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_job_writes() {
        let tmp = tempfile::tempdir().unwrap();
        let first = JobLock::take(tmp.path()).unwrap();
        let e = JobLock::take(tmp.path()).unwrap_err().to_string();
        let want = format!("another job (process {} on {}) writes checkpoints to ", std::process::id(), host());
        assert!(e.contains(&want) && e.contains("a folder of its own"), "{e}");
        drop(first);
        JobLock::take(tmp.path()).unwrap();
    }

    #[test]
    fn a_holder_is_named_only_by_a_whole_mark_without_control_characters() {
        let tmp = tempfile::tempdir().unwrap();
        let named = |text: &str| {
            let path = tmp.path().join("x");
            std::fs::write(&path, text).unwrap();
            holder(&File::open(path).unwrap())
        };
        assert_eq!(named("h\x1b[31m\n 5 7\n").unwrap(), "process 5 on h[31m");
        assert_eq!(["", "host", "host x 7", "host 5000000000 7"].map(named), [None, None, None, None]);
    }

    #[test]
    fn a_folder_knows_its_own_mark_alone() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (first, other) = (JobLock::take(a.path()).unwrap(), JobLock::take(b.path()).unwrap());
        assert!(has_mark(a.path(), first.mark()) && !has_mark(b.path(), first.mark()));
        let old = first.mark().to_string();
        drop(first);
        // The next job's mark takes its place.
        let second = JobLock::take(a.path()).unwrap();
        assert!(has_mark(a.path(), second.mark()) && !has_mark(a.path(), &old));
        assert!(has_mark(b.path(), other.mark()) && !has_mark(&a.path().join("none"), ""));
    }

    #[test]
    fn a_checkpoint_is_read_or_removed() {
        let tmp = tempfile::tempdir().unwrap();
        assert!(reading(tmp.path()).unwrap().is_none() && removing(tmp.path()).unwrap().is_none(), "it has no lock");
        make_readable(tmp.path()).unwrap();
        let (one, two) = (reading(tmp.path()).unwrap(), reading(tmp.path()).unwrap());
        assert!(one.is_some() && removing(tmp.path()).is_err());
        drop((one, two));
        let removed = removing(tmp.path()).unwrap();
        assert!(removed.is_some());
        assert!(reading(tmp.path()).unwrap_err().to_string().contains(" is being removed\n  help: "));
    }
}
