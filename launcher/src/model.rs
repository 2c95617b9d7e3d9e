//! The cost model of a job: finding, reading and writing its file.
//!
//! `oflow calibrate` writes the file. The launcher of node 0 reads it and sends the same bytes to every rank. A file that cannot
//! be used is an error with help; the default constants are never used instead silently.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use oflow::Error;
use oflow::boxing::Model;
use oflow::control::MODEL_VARIABLE;
use oflow_files::Access;
use serde::{Deserialize, Serialize};

use crate::Failed;

/// Bytes of the largest file that is read.
const MOST: u64 = 1 << 20;
/// Version of the file's format: one that another oflow wrote may mean other things.
const VERSION: u32 = 1;
/// The value of [`MODEL_VARIABLE`] for the fixed constants.
const DEFAULT: &str = "default";

/// A measured cost model, and what it was measured on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    version: u32,
    /// Version of oflow that has measured.
    pub oflow: String,
    /// Host of the measurement.
    pub host: String,
    /// Number of usable cores.
    pub cores: usize,
    /// Number of ranks.
    pub nproc: usize,
    /// Cores that other work used on average during the measurement, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_work: Option<f64>,
    /// Times in picoseconds.
    pub model: Model,
}

impl Calibration {
    /// Makes a model measured on this host.
    pub fn of_this_host(model: Model, cores: usize, nproc: usize) -> Calibration {
        let oflow = env!("CARGO_PKG_VERSION").into();
        Calibration { version: VERSION, oflow, host: host(), cores, nproc, other_work: None, model }
    }

    /// Adds how many cores other work used on average.
    pub fn beside(self, other_work: Option<f64>) -> Calibration {
        Calibration { other_work: other_work.map(|cores| (cores * 100.0).round() / 100.0), ..self }
    }

    /// Returns how many cores other work used, as a clause, if that makes the constants doubtful: a twentieth of the cores, or one
    /// busy process, which has half of a core that a rank uses too.
    pub fn disturbed(&self) -> Option<String> {
        let used = self.other_work.filter(|used| *used > (self.cores as f64 / 20.0).min(0.4))?;
        Some(format!("other work used {used:.1} of the {} cores during the measurement", self.cores))
    }

    /// Returns the text of the file, which [`read`] reads.
    pub fn to_json(&self) -> String {
        format!("{:#}\n", serde_json::json!(self))
    }

    /// Returns why the constants may be wrong on this host, or `None`.
    pub fn doubt(&self, cores: usize) -> Option<String> {
        let here = host();
        if self.host != here {
            return Some(format!("measured on {}, this is {here}: `oflow calibrate` measures here", self.host));
        }
        if self.cores != cores {
            let then = self.cores;
            return Some(format!(
                "measured with {then} cores, now there are {cores}: `oflow calibrate` measures again"
            ));
        }
        self.disturbed().map(|what| format!("{what}: `oflow calibrate` measures again"))
    }
}

/// The cost model in force.
#[derive(Clone, Debug, PartialEq)]
pub enum InForce {
    /// The fixed default constants, and why.
    Default(&'static str),
    /// Measured constants from a file.
    Measured(PathBuf, Box<Calibration>),
}

impl InForce {
    /// Returns the constants.
    pub fn model(&self) -> Model {
        match self {
            InForce::Default(_) => Model::default(),
            InForce::Measured(_, c) => c.model,
        }
    }

    /// Returns the JSON that ranks receive when they join, with the memory limit of boxings.
    pub fn to_ranks(&self, extra_memory: Option<u64>) -> Vec<u8> {
        match (self, extra_memory) {
            (InForce::Default(_), None) => Vec::new(),
            _ => serde_json::json!(Model { extra_memory, ..self.model() }).to_string().into_bytes(),
        }
    }

    /// Returns a line of text for the user.
    pub fn describe(&self) -> String {
        match self {
            InForce::Default(why) => format!("default constants ({why})"),
            InForce::Measured(path, c) => {
                let load = c.disturbed().map_or(String::new(), |what| format!("; {what}"));
                format!("{}, measured with {} ranks on {}{load}", path.display(), c.nproc, c.host)
            }
        }
    }
}

/// Returns the model that the environment sets.
///
/// # Errors
/// If the file is malformed or does not exist.
pub fn in_force() -> Result<InForce, Failed> {
    choose(std::env::var_os(MODEL_VARIABLE), default_path())
}

/// Returns the model of a name: a file, or `default`.
///
/// # Errors
/// Those of [`read`].
pub fn named(text: &str) -> Result<InForce, Failed> {
    if text == DEFAULT { Ok(InForce::Default("as asked")) } else { read(Path::new(text)) }
}

/// Returns the default file of `oflow calibrate`, or `None` without a home directory.
pub fn default_path() -> Option<PathBuf> {
    path_in(std::env::var_os("XDG_CONFIG_HOME"), std::env::var_os("HOME"))
}

fn path_in(config: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    // The specification of these folders has relative ones ignored.
    let absolute = |v: Option<OsString>| v.map(PathBuf::from).filter(|p| p.is_absolute());
    let config = absolute(config).or_else(|| Some(absolute(home)?.join(".config")))?;
    Some(config.join("oflow").join("model.json"))
}

fn choose(asked: Option<OsString>, usual: Option<PathBuf>) -> Result<InForce, Failed> {
    match asked.filter(|a| !a.is_empty()) {
        Some(word) if word == DEFAULT => Ok(InForce::Default("OFLOW_MODEL=default")),
        Some(file) => read(Path::new(&file)),
        None => match usual {
            Some(file) if file.exists() => read(&file),
            _ => Ok(InForce::Default("`oflow calibrate` has not been run")),
        },
    }
}

/// Reads a file of [`write()`].
///
/// # Errors
/// If the file cannot be read or is malformed. The message says how to make it anew, or how to run without it.
pub fn read(path: &Path) -> Result<InForce, Failed> {
    let shown = path.display();
    let failed = |what: &str, why: String| {
        Failed::new(format!(
            "the cost model {shown} {what}: {why}\n  help: `oflow calibrate --out {shown}` makes it anew; OFLOW_MODEL=default runs with the fixed constants"
        ))
    };
    // The path is named already.
    let why = |e: Error| std::error::Error::source(&e).map_or_else(|| e.message().to_string(), |e| e.to_string());
    let text = oflow_files::text(path, MOST).map_err(|e| failed("cannot be read", why(e)))?;
    // The version first: a file of another one may have other fields.
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let broken = |e: serde_json::Error| failed("is broken", e.to_string());
    let Version { version } = serde_json::from_str(&text).map_err(broken)?;
    if version != VERSION {
        return Err(failed("has another format", format!("version {version}, this oflow reads version {VERSION}")));
    }
    let calibration = serde_json::from_str(&text).map_err(broken)?;
    Ok(InForce::Measured(path.to_path_buf(), Box::new(calibration)))
}

/// Writes a file atomically.
///
/// # Errors
/// If it cannot be written. The message says how to write elsewhere.
pub fn write(path: &Path, calibration: &Calibration) -> Result<(), Failed> {
    make_folder(path)
        .and_then(|()| oflow_files::replace(path, Access::Readable, calibration.to_json().as_bytes()))
        .map_err(|e| unwritable(path, &e))
}

/// Checks before a measurement that [`write()`] can write its file.
///
/// # Errors
/// Those of [`write()`].
pub fn check_writable(path: &Path) -> Result<(), Failed> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    make_folder(path)
        .and_then(|()| oflow_files::replace(&beside, Access::Readable, b""))
        .map_err(|e| unwritable(path, &e))?;
    fs::remove_file(&beside).map_err(|e| unwritable(path, &Error::io("cannot remove a file").because(e)))
}

fn make_folder(path: &Path) -> oflow::Result<()> {
    path.parent().map_or(Ok(()), |folder| oflow_files::folders(folder, Access::Readable))
}

fn unwritable(path: &Path, error: &Error) -> Failed {
    Failed::new(format!(
        "cannot write {}: {error}\n  help: `--out FILE` writes elsewhere; OFLOW_MODEL=FILE makes oflaunch use it",
        path.display()
    ))
}

/// Name of this host.
fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "an unnamed host".into(), |s| s.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for path in [Path::new("/dev/zero"), &pipe, folder.path()] {
            let why = read(path).unwrap_err().message;
            assert!(why.contains("is not a regular file"), "{why}");
        }
        let large = folder.path().join("large");
        fs::File::create(&large).unwrap().set_len(20 << 30).unwrap();
        let why = read(&large).unwrap_err().message;
        assert!(why.contains("more than the 1048576 that are read"), "{why}");
    }

    #[test]
    fn a_file_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/model.json");
        let model = Model { local_ps: 7, hosts: 3.into(), ..Model::default() };
        let calibration = Calibration::of_this_host(model, 4, 2);
        write(&path, &calibration).unwrap();
        let found = read(&path).unwrap();
        assert_eq!(found, InForce::Measured(path.clone(), Box::new(calibration.clone())));
        assert_eq!(found.model(), model);
        assert_eq!(serde_json::from_slice::<Model>(&found.to_ranks(None)).unwrap(), model);
        let limited = Model { extra_memory: Some(1 << 20), ..model };
        assert_eq!(serde_json::from_slice::<Model>(&found.to_ranks(Some(1 << 20))).unwrap(), limited);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing but the file is left");
        assert_eq!(calibration.doubt(4), None);
        assert!(calibration.doubt(5).unwrap().contains("measured with 4 cores, now there are 5"));
        // The file of an idle host says so, and that of an oflow that did not measure it says nothing.
        assert!(!calibration.to_json().contains("other_work"));
        for (cores, used, doubtful) in [(2, 0.09, false), (2, 0.11, true), (64, 0.39, false), (64, 0.49, true)] {
            let c = Calibration { cores, ..calibration.clone() }.beside(Some(used));
            assert_eq!(c.doubt(cores).is_some(), doubtful, "{used} of {cores}");
            write(&path, &c).unwrap();
            let text = read(&path).unwrap().describe();
            let told = format!("; other work used {used:.1} of the {cores} cores during the measurement");
            assert_eq!(text.ends_with(&told), doubtful, "{text}");
        }
        let elsewhere = Calibration { host: "nowhere".into(), ..calibration };
        assert!(elsewhere.doubt(4).unwrap().starts_with("measured on nowhere, this is "));
        // Named by people: algorithms, not positions.
        assert!(fs::read_to_string(&path).unwrap().contains("\"all_reduce_two_phase\": {"));
    }

    #[test]
    fn the_environment_chooses() {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("model.json");
        let missing = dir.path().join("none.json");
        write(&there, &Calibration::of_this_host(Model::default(), 1, 1)).unwrap();
        let path = |p: &Path| Some(p.as_os_str().to_os_string());
        let measured = |c: Result<InForce, Failed>| matches!(c.unwrap(), InForce::Measured(..));
        assert!(measured(choose(None, Some(there.clone()))));
        assert!(measured(choose(path(&there), None)));
        assert!(!measured(choose(Some("default".into()), Some(there.clone()))));
        assert!(!measured(choose(None, Some(missing.clone()))));
        assert!(!measured(choose(None, None)));
        assert!(measured(choose(Some("".into()), Some(there))));
        let error = choose(path(&missing), None).unwrap_err().message;
        assert!(error.contains("none.json cannot be read") && error.contains("OFLOW_MODEL=default"), "{error}");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m");
        let good = Calibration::of_this_host(Model::default(), 1, 1).to_json();
        for (text, message) in [
            ("", "is broken: EOF"),
            ("{}", "is broken: missing field `version`"),
            ("{\"version\": 2}", "has another format: version 2, this oflow reads version 1"),
            (&good.replace("\"broadcast\"", "\"bradcast\""), "is broken: unknown variant `bradcast`"),
            (&good.replace("\"local_ps\": ", "\"local_ps\": -"), "is broken: invalid value"),
            (&good.replace("\"local_ps\"", "\"lokal_ps\""), "is broken: unknown field `lokal_ps`"),
        ] {
            fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err().message;
            assert!(error.contains(message), "{error}");
            assert!(error.contains("oflow calibrate --out ") && error.contains("OFLOW_MODEL=default"), "{error}");
        }
        // A folder in the place of the file's folder cannot be made below a file.
        let error = write(&path.join("x"), &Calibration::of_this_host(Model::default(), 1, 1)).unwrap_err().message;
        assert!(error.starts_with("cannot write ") && error.contains("--out FILE"), "{error}");
    }

    #[test]
    fn the_usual_place() {
        let os = |s: &str| Some(OsString::from(s));
        let shown = |c, h| path_in(c, h).map(|p| p.display().to_string());
        assert_eq!(shown(os("/c"), os("/h")).unwrap(), "/c/oflow/model.json");
        assert_eq!(shown(None, os("/h")).unwrap(), "/h/.config/oflow/model.json");
        assert_eq!(shown(os("relative"), os("/h")).unwrap(), "/h/.config/oflow/model.json");
        assert_eq!(shown(None, os("")), None);
        assert_eq!(shown(None, None), None);
    }
}
