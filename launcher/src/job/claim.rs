//! One job at a time writes to a log folder: the second would mix its lines with those of the first and remove its records. The
//! hosts of one job may share the folder.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use oflow::control::service::host_name;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::Failed;

/// File in the folder that a running job has locked.
const NAME: &str = ".oflow-job";
/// The lock is held alone for the moments in which the first host writes the job's name.
const PATIENCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(10);
/// Longest name that is read of a file that somebody else has written.
const MOST: u64 = 4096;

/// The right to write to a log folder. It ends with the process, or when it is dropped.
pub struct Claim {
    _locked: Option<File>,
}

impl Claim {
    /// Claims a folder for the job with that name, which all its hosts give alike.
    ///
    /// # Errors
    /// If another job has it. Where the file system has no locks, nothing is claimed.
    pub fn take(folder: &Path, job: &str) -> Result<Claim, Failed> {
        let path = folder.join(NAME);
        let cannot = |e: std::io::Error| Failed::new(format!("cannot lock the log folder {}: {e}", folder.display()));
        let mut file = oflow_files::lock::open_lock(&path)
            .map_err(|e| Failed::new(format!("cannot lock the log folder {}: {e}", folder.display())))?;
        let deadline = Instant::now() + PATIENCE;
        let mut holder = String::new();
        while Instant::now() < deadline {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let text = format!("{job}\noflaunch {} on {}\n", std::process::id(), host_name());
                    let written =
                        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
                    match written {
                        // A full disk ends no job, unless that is asked for; the folder is this job's without its name.
                        Err(e) if is_full(&e) => return Ok(Claim { _locked: Some(file) }),
                        written => written.map_err(cannot)?,
                    }
                    // Between the two locks another job may take the folder.
                    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() && read(&mut file)?.0 == job {
                        return Ok(Claim { _locked: Some(file) });
                    }
                }
                Err(Errno::WOULDBLOCK) => {
                    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
                        let (name, who) = read(&mut file)?;
                        if name == job {
                            return Ok(Claim { _locked: Some(file) });
                        }
                        holder = who;
                        let _others_hold_it = flock(&file, FlockOperation::Unlock);
                        // A name that is there is that of a job which runs.
                        if !holder.is_empty() {
                            break;
                        }
                    }
                }
                Err(_) => return Ok(Claim { _locked: None }),
            }
            std::thread::sleep(AGAIN);
        }
        // Whoever has it could not write the name: it may be another host of this job.
        if holder.is_empty() && file.metadata().is_ok_and(|m| m.len() == 0) {
            return Ok(Claim { _locked: None });
        }
        let who = if holder.is_empty() { String::new() } else { format!(" ({holder})") };
        Err(Failed::new(format!(
            "another job writes to the log folder {}{who}; give each job a --log-dir of its own",
            folder.display()
        )))
    }
}

fn is_full(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The job that has the folder, and who wrote that.
fn read(file: &mut File) -> Result<(String, String), Failed> {
    let cannot = |e: std::io::Error| Failed::new(format!("cannot read {NAME} in the log folder: {e}"));
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.take(MOST).read_to_end(&mut bytes)).map_err(cannot)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut lines = text.lines().map(|l| l.escape_debug().to_string());
    Ok((lines.next().unwrap_or_default(), lines.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_of_one_job_and_all_its_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let first = Claim::take(folder.path(), "rdzv a:1").unwrap();
        let host = Claim::take(folder.path(), "rdzv a:1").unwrap();
        let refused = |job: &str| Claim::take(folder.path(), job).err().unwrap().to_string();
        assert!(refused("rdzv b:1").contains(&format!("(oflaunch {} on ", std::process::id())));
        drop(first);
        assert!(refused("rdzv b:1").contains("another job writes to the log folder"));
        drop(host);
        Claim::take(folder.path(), "rdzv b:1").unwrap();
        // What somebody has left there is no name of a job that runs; nobody follows a link.
        std::fs::write(folder.path().join(NAME), "x\n\x1b[2J\n").unwrap();
        Claim::take(folder.path(), "rdzv c:1").unwrap();
        std::fs::remove_file(folder.path().join(NAME)).unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.path().join(NAME)).unwrap();
        assert!(refused("rdzv c:1").starts_with("cannot lock the log folder "));
    }
}
