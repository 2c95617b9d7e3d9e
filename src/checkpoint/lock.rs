//! Locks of a folder of checkpoints: one of the job that writes there, and one of each checkpoint for those that read it.
//!
//! They are `flock`s of files that their owner alone can open. Any user can lock a file that is readable for all, a manifest for
//! example, and keep it for ever.

use crate::error::{Error, Result};
use oflow_files::lock::Attempt;
use oflow_files::{Access, Lock};
use rustix::fs::{Mode, OFlags};
use std::fs::{File, TryLockError};
use std::path::Path;

/// Lock of the job that writes to a folder.
const WRITING: &str = ".lock";
/// Lock of a checkpoint against removal.
const READING: &str = ".reading";
/// Most bytes of a lock's mark.
const LONGEST_MARK: u64 = 1024;

/// The lock of the job that writes to a folder, until it is dropped.
#[derive(Debug)]
pub struct JobLock(Lock);

impl JobLock {
    /// Makes the folder if it is not there, and takes its lock.
    ///
    /// # Errors
    /// If another job has it, and if the folder or the lock is not this user's alone.
    pub fn take(dir: &Path) -> Result<JobLock> {
        oflow_files::folders(dir, Access::Readable)?;
        oflow_files::check(dir)?;
        match Lock::attempt(&dir.join(WRITING))? {
            Attempt::Taken(lock) => {
                if !lock.is_held() {
                    tracing::warn!(
                        "{} is on a file system without locks: make sure that only one job writes there",
                        dir.display()
                    );
                }
                Ok(JobLock(lock))
            }
            Attempt::Held(holder) => {
                let holder = holder.map_or_else(|| "another job".into(), |who| format!("another job ({who})"));
                Err(Error::storage(format!("{holder} writes checkpoints to {}", dir.display()))
                    .help("give each job a folder of its own, or end the other job"))
            }
        }
    }

    /// Returns the text by which other hosts recognise the same folder. Each lock writes another one to its file.
    pub fn mark(&self) -> &str {
        self.0.mark()
    }
}

/// Returns whether a folder has the lock with this mark.
pub fn has_mark(dir: &Path, mark: &str) -> bool {
    oflow_files::text(&dir.join(WRITING), LONGEST_MARK).is_ok_and(|found| found == mark)
}

/// Makes the lock of a checkpoint that is being written.
pub fn make_readable(checkpoint: &Path) -> Result<()> {
    oflow_files::create(&checkpoint.join(READING), Access::Private).map(drop)
}

/// Protects a checkpoint from removal until the returned file is dropped. A reader who is not its owner cannot protect it; nor can
/// anybody where the file system has no locks.
///
/// # Errors
/// If the checkpoint is being removed.
pub fn reading(checkpoint: &Path) -> Result<Option<File>> {
    let Some(file) = open_lock(checkpoint, OFlags::RDONLY) else { return Ok(None) };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Err(Error::storage(format!("{} is being removed", checkpoint.display()))
            .help("use another checkpoint: `oflow ckpt ls` lists them")),
        _ => Ok(Some(file)),
    }
}

/// Returns whether a process holds the lock of a checkpoint because it removes it; false also where there is no checkpoint.
pub fn being_removed(checkpoint: &Path) -> bool {
    reading(checkpoint).is_err()
}

/// Takes the lock of a checkpoint for its removal; `Err` if somebody reads it.
pub fn removing(checkpoint: &Path) -> Result<Option<File>, ()> {
    // For writing, because NFS gives nobody else an exclusive lock.
    let Some(file) = open_lock(checkpoint, OFlags::RDWR) else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(()),
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
        let want = format!(
            "another job (process {} on {}) writes checkpoints to ",
            std::process::id(),
            oflow_files::lock::host()
        );
        assert!(e.contains(&want) && e.contains("a folder of its own"), "{e}");
        drop(first);
        JobLock::take(tmp.path()).unwrap();
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
        assert!(being_removed(tmp.path()) && !being_removed(&tmp.path().join("none")));
    }
}
