//! The folder of the flight records of this host's ranks.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use oflow::Error;
use oflow::control::flight::{Flight, Saved};
use oflow_files::Access;
use oflow_files::make::{not_private, private_folder};
use serde::{Deserialize, Serialize};

/// Folder in the user's log folder in which the ranks of a running job keep their memory files.
pub const RINGS: &str = "rings";
/// Largest number of folders of failed jobs that stay in the temporary folder.
const MOST_KEPT: usize = 16;
/// Time after which such a folder is removed.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
const PREFIX: &str = "oflow-flight-";

/// The folders in which the ranks leave their records.
#[derive(Serialize, Deserialize)]
pub struct Flights {
    /// Folder of the memory files, which only the user can read.
    rings: PathBuf,
    /// Folder of the JSON copies that are made after a failure.
    copies: PathBuf,
    /// Whether the folders are temporary: removed if the job succeeds.
    temporary: bool,
}

/// How a job has ended, for its flight records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Without a failure: the records are removed.
    Well,
    /// With an error that one rank has reported, to which the records add little.
    Reported,
    /// With another failure, for which the records may show the cause.
    Badly,
}

impl Flights {
    /// Opens the user's folder, or makes a temporary one. Temporary folders of failed jobs are removed if they are older than a week or more
    /// than 16.
    ///
    /// The user's folder may have records of an earlier job. Files older than `began` ([`now_in`]), the start of this launcher,
    /// are removed. The ranks of this job start later, also those of other hosts that use the same folder.
    ///
    /// # Errors
    /// A sentence that says why there can be no records: the folder cannot be made, or has no space for the memory files of all ranks. The
    /// job then runs without records.
    pub fn prepare(log_dir: Option<&Path>, began: Option<SystemTime>, ranks: usize) -> Result<Flights, String> {
        let flights = Flights::open(log_dir, began)?;
        if let Err(why) = has_room(&flights.rings, ranks) {
            if flights.temporary {
                let _stays_empty = fs::remove_dir(&flights.rings);
            }
            return Err(why);
        }
        Ok(flights)
    }

    fn open(log_dir: Option<&Path>, began: Option<SystemTime>) -> Result<Flights, String> {
        match log_dir {
            Some(folder) => {
                let rings = folder.join(RINGS);
                // Another host of this job may have made it.
                private_folder(&rings).map_err(|e| none(&rings, &e))?;
                for folder in [folder, &rings] {
                    remove(folder, |name, changed| {
                        let record =
                            name.starts_with("flight-") && (name.ends_with(".json") || name.ends_with(".ring"));
                        record && changed.is_some_and(|at| began.is_some_and(|b| at < b))
                    });
                }
                Ok(Flights { rings, copies: folder.into(), temporary: false })
            }
            None => {
                let base = std::env::temp_dir();
                oflow_files::check(&base).map_err(|e| none(&base, &e))?;
                remove_kept(&base, SystemTime::now());
                // Names of folders that an earlier process of this number left are passed over.
                let names = (0..100).map(|i| base.join(format!("{PREFIX}{}-{i}", std::process::id())));
                let mut why = String::new();
                for folder in names {
                    match oflow_files::folder(&folder, Access::Private) {
                        Ok(()) => return Ok(Flights { rings: folder.clone(), copies: folder, temporary: true }),
                        Err(e) => why = none(&base, &e),
                    }
                }
                Err(why)
            }
        }
    }

    /// Returns the value of `OFLOW_FLIGHT_DIR`.
    pub fn folder(&self) -> &Path {
        &self.rings
    }

    /// Call it at the end of the job. After a failure it converts the records to JSON and returns lines for the user: the folder, and the
    /// records that could not be converted. Without a failure it removes the records. A memory file is kept until its copy is complete.
    pub fn finish(self, end: End) -> Vec<String> {
        let saved = if end != End::Well {
            Flight::save_all(&self.rings, &self.copies).unwrap_or_default()
        } else {
            Saved::default()
        };
        let Saved { written, failed: kept } = saved;
        let folder = self.copies.display();
        let mut lines: Vec<String> = kept.first().map(|why| first_line(why)).into_iter().collect();
        if kept.len() > 1 {
            lines.push(format!("{} more flight records could not be copied", kept.len() - 1));
        }
        if written + kept.len() > 0 {
            lines.push(match end {
                End::Reported => format!("flight records are in {folder}"),
                _ => {
                    format!(
                        "flight records are in {folder}; run `oflow postmortem {folder}` to see which rank failed first"
                    )
                }
            });
        } else if self.temporary {
            let _what_is_left_is_small = fs::remove_dir_all(&self.copies);
        }
        if kept.is_empty() && !self.temporary {
            self.remove_rings();
            // Another host of the job may have files there.
            let _in_use = fs::remove_dir(&self.rings);
        }
        lines
    }

    /// Removes the records before a restart, in which hosts may get other ranks.
    pub fn remove_rings(&self) {
        remove(&self.rings, |name, _| name.ends_with(".ring"));
    }
}

/// Ranks that find no room would go on without records, and silently.
fn has_room(folder: &Path, ranks: usize) -> Result<(), String> {
    // Where it cannot be told the ranks try.
    let Ok(disk) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let (free, needed) =
        (disk.f_bavail.saturating_mul(disk.f_frsize), (ranks as u64).saturating_mul(Flight::RING_BYTES));
    if needed <= free {
        return Ok(());
    }
    Err(none(folder, &Error::io(format!("the ranks need {needed} bytes there, and {free} are free"))))
}

/// Why there are no records.
fn none(folder: &Path, e: &Error) -> String {
    format!(
        "no flight records of this job are kept in {}: {e}; --log-dir or TMPDIR names another folder",
        folder.display()
    )
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_string()
}

/// Removes our folders of failed jobs that are older than [`KEPT_FOR`], and the oldest beyond [`MOST_KEPT`].
fn remove_kept(base: &Path, now: SystemTime) {
    let all = fs::read_dir(base).into_iter().flatten().flatten();
    let ours = all.filter(|e| e.file_name().to_string_lossy().starts_with(PREFIX) && not_private(&e.path()).is_none());
    let is_running = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let pid =
            name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()).and_then(|pid| pid.parse::<u32>().ok());
        pid.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists())
    };
    let time = |path: &Path| fs::symlink_metadata(path).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut kept: Vec<(SystemTime, PathBuf)> =
        ours.map(|e| e.path()).filter(|path| !is_running(path)).map(|path| (time(&path), path)).collect();
    // The newest first.
    kept.sort_by(|a, b| b.cmp(a));
    for (i, (at, path)) in kept.into_iter().enumerate() {
        if i >= MOST_KEPT || now.duration_since(at).is_ok_and(|age| age > KEPT_FOR) {
            let _stays = fs::remove_dir_all(path);
        }
    }
}

/// Removes the files of a folder of which that is so, by name and time of the last change.
fn remove(folder: &Path, which: impl Fn(&str, Option<SystemTime>) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|m| m.modified()).ok();
        if which(&entry.file_name().to_string_lossy(), changed) {
            let _may_be_gone = fs::remove_file(entry.path());
        }
    }
}

/// Returns the current time by the clock of a folder's file system, which for a shared folder is another host's clock.
pub fn now_in(folder: &Path) -> Option<SystemTime> {
    let mark = folder.join(format!(".began-{}", std::process::id()));
    // A link in its place would be followed, and what it names cut.
    let made = oflow_files::create(&mark, Access::Private).ok();
    let now = made.and_then(|f| f.metadata().and_then(|m| m.modified()).ok());
    let _may_be_gone = fs::remove_file(mark);
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_room_for_the_ranks_is_told() {
        let given = tempfile::tempdir().unwrap();
        let e = Flights::prepare(Some(given.path()), None, usize::MAX).err().unwrap();
        assert!(e.starts_with("no flight records of this job are kept in ") && e.contains(" bytes there, and "), "{e}");
        Flights::prepare(Some(given.path()), None, 2).unwrap();
    }

    #[test]
    fn records_stay_after_a_failure_only() {
        let given = tempfile::tempdir().unwrap();
        let began = now_in(given.path());
        let flights = Flights::prepare(Some(given.path()), began, 2).unwrap();
        fs::write(flights.folder().join("flight-0.ring"), b"").unwrap();
        assert_eq!(flights.finish(End::Well), [""; 0]);
        assert_eq!(fs::read_dir(given.path()).unwrap().count(), 0);
        let own = Flights::prepare(None, began, 2).unwrap();
        let folder = own.folder().to_path_buf();
        assert!(folder.is_dir());
        assert_eq!(own.finish(End::Badly), [""; 0], "no rank left anything");
        assert!(!folder.exists());
    }

    #[test]
    fn a_folder_that_others_may_use_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let given = tempfile::tempdir().unwrap();
        fs::create_dir(given.path().join(RINGS)).unwrap();
        fs::set_permissions(given.path().join(RINGS), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Flights::prepare(Some(given.path()), None, 2).is_err());
        fs::remove_dir(given.path().join(RINGS)).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), given.path().join(RINGS)).unwrap();
        assert!(Flights::prepare(Some(given.path()), None, 2).is_err());
    }

    #[test]
    fn folders_of_failed_jobs_are_bounded() {
        let base = tempfile::tempdir().unwrap();
        // No process has such a number.
        let make = |i: usize| private_folder(&base.path().join(format!("{PREFIX}999999999-{i}"))).unwrap();
        (0..20).for_each(make);
        private_folder(&base.path().join(format!("{PREFIX}{}-0", std::process::id()))).unwrap();
        fs::create_dir(base.path().join("another")).unwrap();
        let names = || fs::read_dir(base.path()).unwrap().count();
        remove_kept(base.path(), SystemTime::now());
        assert_eq!(names(), MOST_KEPT + 2);
        remove_kept(base.path(), SystemTime::now() + KEPT_FOR + Duration::from_secs(60));
        assert_eq!(names(), 2, "of a job that runs, and somebody else's");
    }

    #[test]
    fn records_of_an_earlier_job_in_the_folder_go_and_nothing_else() {
        let given = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(given.path().join(name), b"").unwrap();
        ["flight-0.json", "flight-7.ring", "flight-plan.txt", "rank-0.log", "events.jsonl"].into_iter().for_each(write);
        let names = || {
            let all = fs::read_dir(given.path()).unwrap();
            let mut names: Vec<String> = all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let old = SystemTime::now() - std::time::Duration::from_secs(3600);
        Flights::prepare(Some(given.path()), Some(old), 2).unwrap();
        assert_eq!(names().len(), 6, "what has come since stays: it may be another host's of this job");
        let later = SystemTime::now() + std::time::Duration::from_secs(3600);
        Flights::prepare(Some(given.path()), Some(later), 2).unwrap();
        assert_eq!(names(), ["events.jsonl", "flight-plan.txt", "rank-0.log", RINGS]);
    }
}
