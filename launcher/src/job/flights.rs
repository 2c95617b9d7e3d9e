//! The folder of the flight records of this host's ranks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use oflow::control::flight::Flight;

/// The folder in which the ranks leave their records.
pub struct Flights {
    folder: PathBuf,
    /// Whether it goes when the job has succeeded.
    temporary: bool,
}

impl Flights {
    /// Opens the user's folder, or makes a temporary one. If that fails there are no records, and the job runs without them.
    ///
    /// The user's folder may have records of an earlier job. Files older than `began` ([`now_in`]), the start of this launcher,
    /// are removed. The ranks of this job start later, also those of other hosts that use the same folder.
    pub fn prepare(log_dir: Option<&Path>, began: Option<SystemTime>) -> Option<Flights> {
        match log_dir {
            Some(folder) => {
                fs::create_dir_all(folder).ok()?;
                remove(folder, |name, changed| {
                    let record = name.starts_with("flight-") && (name.ends_with(".json") || name.ends_with(".ring"));
                    record && changed.is_some_and(|at| began.is_some_and(|b| at < b))
                });
                Some(Flights { folder: folder.into(), temporary: false })
            }
            None => {
                let base = std::env::temp_dir();
                // Names of folders that an earlier process of this number left are passed over.
                let names = (0..100).map(|i| base.join(format!("oflow-flight-{}-{i}", std::process::id())));
                let made = names.into_iter().find(|path| private(path).is_ok());
                made.map(|folder| Flights { folder, temporary: true })
            }
        }
    }

    /// Returns the value of `OFLOW_FLIGHT_DIR`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ends the job: after a failure converts the records to JSON and returns a line that names the folder; else removes them.
    pub fn finish(self, failed: bool) -> Option<String> {
        if failed && Flight::save_all(&self.folder).is_ok_and(|n| n > 0) {
            let folder = self.folder.display();
            return Some(format!(
                "flight records are in {folder}; run `oflow postmortem {folder}` to see which rank failed first"
            ));
        }
        if self.temporary {
            let _what_is_left_is_small = fs::remove_dir_all(&self.folder);
        } else {
            self.remove_rings();
        }
        None
    }

    /// Removes the records before a restart, in which hosts may get other ranks.
    pub fn remove_rings(&self) {
        remove(&self.folder, |name, _| name.ends_with(".ring"));
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
    let now = fs::File::create(&mark).and_then(|f| f.metadata()?.modified()).ok();
    let _may_be_gone = fs::remove_file(mark);
    now
}

/// A new folder that is ours alone: records name the user's files.
fn private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stay_after_a_failure_only() {
        let given = tempfile::tempdir().unwrap();
        let began = now_in(given.path());
        let flights = Flights::prepare(Some(given.path()), began).unwrap();
        fs::write(given.path().join("flight-0.ring"), b"").unwrap();
        assert_eq!(flights.finish(false), None);
        assert_eq!(fs::read_dir(given.path()).unwrap().count(), 0);
        let own = Flights::prepare(None, began).unwrap();
        let folder = own.folder().to_path_buf();
        assert!(folder.is_dir());
        assert_eq!(own.finish(true), None, "no rank left anything");
        assert!(!folder.exists());
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
        Flights::prepare(Some(given.path()), Some(old)).unwrap();
        assert_eq!(names().len(), 5, "what has come since stays: it may be another host's of this job");
        let later = SystemTime::now() + std::time::Duration::from_secs(3600);
        Flights::prepare(Some(given.path()), Some(later)).unwrap();
        assert_eq!(names(), ["events.jsonl", "flight-plan.txt", "rank-0.log"]);
    }
}
