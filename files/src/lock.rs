//! Locks of files that their owner alone can open. Any user can lock a file that is readable for all, and keep it for ever.
//!
//! Who holds a lock alone writes into its file who it is, so that those who wait can be told.

use crate::make::{NO_LINK, failed, named};
use crate::own::trusted;
use oflow_base::Result;
use rustix::fs::{Mode, OFlags, fchmod};
use rustix::system::uname;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Mode of locks.
const MODE: u32 = 0o600;
/// Mode of locks where the user trusts those who share the folder.
const SHARED_MODE: u32 = 0o664;
/// Time after which those who wait are told.
const PATIENCE: Duration = Duration::from_secs(3);
/// Most bytes of a mark.
const LONGEST_MARK: u64 = 1024;

/// A lock that this process holds alone, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    mark: String,
    /// Whether the file system has locks.
    held: bool,
}

/// Result of an attempt to take a lock.
#[derive(Debug)]
pub enum Attempt {
    /// The lock is held now.
    Taken(Lock),
    /// Somebody else holds it: `process 7 on host`, if that is known.
    Held(Option<String>),
}

impl Lock {
    /// Takes a lock if nobody holds it. Where the file system has no locks, nobody does: see [`Lock::is_held`].
    ///
    /// # Errors
    /// If the file cannot be made or written, or if it is not this user's alone.
    pub fn attempt(path: &Path) -> Result<Attempt> {
        let file = open_lock(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Attempt::Taken(Lock::of(file, path, true)?)),
            Err(TryLockError::WouldBlock) => Ok(Attempt::Held(holder(&file))),
            Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => {
                Ok(Attempt::Taken(Lock::of(file, path, false)?))
            }
            Err(TryLockError::Error(e)) => Err(failed("lock", path, e)),
        }
    }

    /// Takes a lock, and waits for it if need be. After some seconds `tell` gets who holds it: `process 7 on host`.
    ///
    /// # Errors
    /// As [`Lock::attempt`].
    pub fn wait(path: &Path, tell: impl FnOnce(&str)) -> Result<Lock> {
        let file = open_lock(path)?;
        match wait_for(&file, tell) {
            Ok(()) => Lock::of(file, path, true),
            Err(e) if e.kind() == ErrorKind::Unsupported => Lock::of(file, path, false),
            Err(e) => Err(failed("lock", path, e)),
        }
    }

    fn of(file: File, path: &Path, held: bool) -> Result<Lock> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos());
        let mark = format!("{} {} {now}\n", host(), std::process::id());
        let write = || {
            file.set_len(0)?;
            (&file).write_all(mark.as_bytes())?;
            // Other hosts read it.
            file.sync_all()
        };
        write().map_err(|e| failed("write", path, e))?;
        Ok(Lock { file, mark, held })
    }

    /// Returns whether others are kept out; not on a file system without locks.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Returns the text in the lock's file. Each lock writes another one.
    pub fn mark(&self) -> &str {
        &self.mark
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Nobody shall be told of this process who waits for another one; at worst somebody is.
        let _stays = self.file.set_len(0);
        // To close the file is not enough: a process that another thread is just making has it open until its program begins.
        let _released_when_closed = self.file.unlock();
    }
}

/// Opens the file of a lock, or makes it: a regular file of one name that belongs to this user, and that nobody else can open.
///
/// # Errors
/// If it cannot be made, or if it is none.
pub fn open_lock(path: &Path) -> Result<File> {
    let trusted = trusted();
    let file = named(path, OFlags::RDWR | NO_LINK, if trusted { SHARED_MODE } else { MODE })?;
    let meta = file.metadata().map_err(|e| failed("open", path, e))?;
    if !trusted && meta.mode() & 0o077 != 0 {
        // An earlier version made it so, or another program.
        fchmod(&file, Mode::from_raw_mode(MODE)).map_err(|e| failed("open", path, e.into()))?;
    }
    Ok(file)
}

/// Locks an open file or folder, and waits if need be. After some seconds `tell` gets who holds it.
///
/// # Errors
/// If the file system has no locks ([`ErrorKind::Unsupported`]).
pub fn wait_for(file: &File, tell: impl FnOnce(&str)) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => return Ok(()),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(e)) => return Err(e),
    }
    std::thread::scope(|scope| {
        let (done, waiting) = mpsc::channel();
        scope.spawn(move || {
            let locked = loop {
                match file.lock() {
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    other => break other,
                }
            };
            // The receiver is there until this thread has ended.
            let _received = done.send(locked);
        });
        let lost = |_| io::Error::other("the thread that waits for the lock has ended");
        match waiting.recv_timeout(PATIENCE) {
            Ok(locked) => locked,
            Err(_) => {
                tell(&holder(file).unwrap_or_else(|| "a process that is not known".into()));
                waiting.recv().map_err(lost)?
            }
        }
    })
}

/// The name of this machine.
pub fn host() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// Process that holds a lock, from its mark.
fn holder(file: &File) -> Option<String> {
    let mut text = String::new();
    let mut reader = file.try_clone().ok()?;
    reader.rewind().ok()?;
    reader.take(LONGEST_MARK).read_to_string(&mut text).ok()?;
    let mut words = text.split(' ');
    let (name, pid) = (words.next()?, words.next()?.parse::<u32>().ok()?);
    if name == host() && !Path::new(&format!("/proc/{pid}")).exists() {
        // It was killed, and somebody else has the lock now.
        return None;
    }
    // What is shown comes from a file.
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    Some(format!("process {pid} on {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// What a process that is just being made has open: the same file, until its program begins.
    #[test]
    fn a_lock_that_is_dropped_is_free_whoever_has_the_file_open() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("lock");
        let Attempt::Taken(lock) = Lock::attempt(&path).unwrap() else { panic!("it is held") };
        let child = lock.file.try_clone().unwrap();
        drop(lock);
        let Attempt::Taken(_lock) = Lock::attempt(&path).unwrap() else { panic!("it is held still") };
        drop(child);
    }

    #[test]
    fn one_process_has_it_and_the_others_are_told_who() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("lock");
        let Attempt::Taken(first) = Lock::attempt(&path).unwrap() else { panic!("it is held") };
        assert_eq!(fs::read_to_string(&path).unwrap(), first.mark());
        let want = format!("process {} on {}", std::process::id(), host());
        let Attempt::Held(Some(who)) = Lock::attempt(&path).unwrap() else { panic!("it is not held") };
        assert_eq!(who, want);
        let (told, hears) = mpsc::channel();
        std::thread::scope(|s| {
            let second = s.spawn(|| Lock::wait(&path, |who| told.send(who.to_string()).unwrap()).map(drop));
            assert_eq!(hears.recv().unwrap(), want);
            drop(first);
            second.join().unwrap().unwrap();
        });
        // Who comes in time hears nothing.
        drop(Lock::wait(&path, |who| panic!("waited for {who}")).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"", "a name stays of one who has it no more");
    }

    #[test]
    fn nobody_else_can_open_it_and_nothing_is_followed_or_cut() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        fs::write(at("mine"), "kept").unwrap();
        symlink("mine", at("link")).unwrap();
        assert!(Lock::attempt(&at("link")).unwrap_err().to_string().contains("is a symbolic link"));
        fs::hard_link(at("mine"), at("second")).unwrap();
        assert!(Lock::attempt(&at("second")).unwrap_err().to_string().contains("is a file with 2 names"));
        assert_eq!(fs::read(at("mine")).unwrap(), b"kept");
        // One of an earlier version.
        fs::write(at("old"), "").unwrap();
        fs::set_permissions(at("old"), fs::Permissions::from_mode(0o644)).unwrap();
        open_lock(&at("old")).unwrap();
        assert_eq!(fs::metadata(at("old")).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_holder_is_named_only_by_a_whole_mark_without_control_characters() {
        let tmp = tempfile::tempdir().unwrap();
        let named = |text: &str| {
            let path = tmp.path().join("x");
            fs::write(&path, text).unwrap();
            holder(&File::open(path).unwrap())
        };
        assert_eq!(named("h\x1b[31m\n 5 7\n").unwrap(), "process 5 on h[31m");
        assert_eq!(["", "host", "host x 7", "host 5000000000 7"].map(named), [None, None, None, None]);
        assert_eq!(named(&format!("{} 4294967295 7\n", host())), None, "it does not live");
    }
}
