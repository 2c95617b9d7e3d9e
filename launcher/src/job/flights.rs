//! Where the flight records of this host's ranks go, and what becomes of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use oflow::control::flight::Flight;

/// The folder in which the ranks leave their records.
pub struct Flights {
    folder: PathBuf,
    /// Whether it goes when the job has succeeded.
    temporary: bool,
}

impl Flights {
    /// The user's folder, or one of our own. Records are a help, so a system that has no room for them is no obstacle: then
    /// there are none.
    pub fn prepare(log_dir: Option<&Path>) -> Option<Flights> {
        match log_dir {
            Some(folder) => {
                fs::create_dir_all(folder).ok().map(|()| Flights { folder: folder.into(), temporary: false })
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

    /// For the ranks' environment.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The job is over. After a failure the records are kept, as JSON; says where.
    pub fn finish(self, failed: bool) -> Option<String> {
        if failed && Flight::save_all(&self.folder).is_ok_and(|n| n > 0) {
            let folder = self.folder.display();
            return Some(format!("what each rank did last is in {folder}; `oflow postmortem {folder}` tells it"));
        }
        if self.temporary {
            let _what_is_left_is_small = fs::remove_dir_all(&self.folder);
        } else {
            self.remove_rings();
        }
        None
    }

    /// Forgets what the ranks have done so far: when they are started again some may get other numbers.
    pub fn remove_rings(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|e| e == "ring") {
                let _may_be_gone = fs::remove_file(entry.path());
            }
        }
    }
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
        let flights = Flights::prepare(Some(given.path())).unwrap();
        fs::write(given.path().join("flight-0.ring"), b"").unwrap();
        assert_eq!(flights.finish(false), None);
        assert_eq!(fs::read_dir(given.path()).unwrap().count(), 0);
        let own = Flights::prepare(None).unwrap();
        let folder = own.folder().to_path_buf();
        assert!(folder.is_dir());
        assert_eq!(own.finish(true), None, "no rank left anything");
        assert!(!folder.exists());
    }
}
