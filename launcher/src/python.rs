//! Python programs: a file that ends in `.py`, or a module (`-m`), run by the user's interpreter. Nothing is built, and the
//! interpreter need not have the oflow module before the program imports it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::{EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Failed};

/// The variable that names the interpreter.
pub const INTERPRETER_VARIABLE: &str = "OFLOW_PYTHON";
/// Names of interpreters in `PATH`, in the order in which they are tried.
const NAMES: [&str; 2] = ["python3", "python"];
/// Environment variables of every interpreter, unless the user has set them. Through a pipe Python writes blocks: the lines
/// of a rank would arrive late, and those of a killed rank never. With the fault handler a crash in native code prints the
/// Python lines.
const TOLD: [(&str, &str); 2] = [("PYTHONUNBUFFERED", "1"), ("PYTHONFAULTHANDLER", "1")];

/// A Python program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Python {
    /// Path of the interpreter.
    pub interpreter: PathBuf,
    /// Code that the interpreter runs.
    pub code: Code,
}

/// Code that an interpreter runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// A file, by the path that the user gave: tracebacks show it.
    Script(PathBuf),
    /// A module, by its name.
    Module(OsString),
}

/// Parts of the environment that are read to find an interpreter.
#[derive(Clone, Copy, Default)]
pub struct Search<'a> {
    /// Value of `OFLOW_PYTHON`, if set.
    pub named: Option<&'a OsStr>,
    /// Value of `VIRTUAL_ENV`, if set.
    pub environment: Option<&'a OsStr>,
    /// Folder of this program, if known: `pip` puts it beside the interpreter of an environment, which need not be active.
    pub own_folder: Option<&'a Path>,
    /// Value of `PATH`, if set.
    pub path: Option<&'a OsStr>,
}

impl Python {
    /// The program that is a script.
    ///
    /// # Errors
    /// If there is no such file, if it cannot be read, or if there is no interpreter.
    pub fn script(script: &Path, search: Search) -> Result<Python, Failed> {
        let metadata = script
            .metadata()
            .map_err(|e| Failed::with_code(EXIT_NOT_FOUND, format!("cannot find {}: {e}", script.display())))?;
        if !metadata.is_file() {
            return Err(Failed::with_code(EXIT_NOT_EXECUTABLE, format!("{} is not a file", script.display())));
        }
        File::open(script)
            .map_err(|e| Failed::with_code(EXIT_NOT_EXECUTABLE, format!("cannot read {}: {e}", script.display())))?;
        // The interpreter would take such a name for an option.
        let dashed = script.as_os_str().as_encoded_bytes().first() == Some(&b'-');
        let script = if dashed { Path::new(".").join(script) } else { script.to_path_buf() };
        Ok(Python { interpreter: interpreter(search)?, code: Code::Script(script) })
    }

    /// The program that is a module, which the interpreter finds.
    ///
    /// # Errors
    /// If this is no name of a module, or if there is no interpreter.
    pub fn module(name: &OsStr, search: Search) -> Result<Python, Failed> {
        let text = name.to_string_lossy();
        let word =
            |w: &str| !w.is_empty() && !w.starts_with(|c: char| c.is_ascii_digit() || c == '-') && !w.contains('/');
        if !text.split('.').all(word) {
            return Err(Failed::with_code(
                EXIT_NOT_FOUND,
                format!("`{text}` is not the name of a Python module; write -m package.module, or a file without -m"),
            ));
        }
        Ok(Python { interpreter: interpreter(search)?, code: Code::Module(name.into()) })
    }

    /// The name that messages and events use.
    pub fn name(&self) -> PathBuf {
        match &self.code {
            Code::Script(path) => path.clone(),
            Code::Module(name) => PathBuf::from(name),
        }
    }

    /// The interpreter's arguments before those of the program.
    pub fn arguments(&self) -> Vec<OsString> {
        match &self.code {
            Code::Script(path) => vec![path.into()],
            Code::Module(name) => vec!["-m".into(), name.clone()],
        }
    }

    /// The interpreter with its arguments before those of the program.
    pub fn command(&self) -> Vec<OsString> {
        std::iter::once(self.interpreter.clone().into_os_string()).chain(self.arguments()).collect()
    }

    /// The file whose text is the same on every host of a job: the script, or a module's in this folder. `None` for an
    /// installed module: only the interpreter could find it, by running the packages around it.
    pub fn text(&self) -> Option<PathBuf> {
        match &self.code {
            Code::Script(path) => Some(path.clone()),
            Code::Module(name) => {
                let folder: PathBuf = name.to_string_lossy().split('.').collect();
                [folder.with_extension("py"), folder.join("__main__.py")].into_iter().find(|file| file.is_file())
            }
        }
    }
}

/// Environment variables of the interpreter, without those that the user has set.
pub fn environment(is_set: impl Fn(&str) -> bool) -> Vec<(&'static str, OsString)> {
    TOLD.iter().filter(|(name, _)| !is_set(name)).map(|(name, value)| (*name, value.into())).collect()
}

fn interpreter(search: Search) -> Result<PathBuf, Failed> {
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let in_path = |name: &OsStr| {
        let folders = std::env::split_paths(search.path.unwrap_or_default());
        folders.filter(|folder| !folder.as_os_str().is_empty()).map(|folder| folder.join(name)).find(|p| runs(p))
    };
    if let Some(named) = search.named.filter(|named| !named.is_empty()) {
        let found = if named.as_encoded_bytes().contains(&b'/') {
            Some(PathBuf::from(named)).filter(|path| runs(path))
        } else {
            in_path(named)
        };
        return found.ok_or_else(|| {
            let text = format!("{INTERPRETER_VARIABLE} is {}, which is not a program that can be run", named.display());
            Failed::with_code(EXIT_NOT_FOUND, text)
        });
    }
    let active = search.environment.filter(|e| !e.is_empty()).map(|e| Path::new(e).join("bin/python3"));
    let beside = || search.own_folder.map(|folder| folder.join("python3")).filter(|path| runs(path));
    active.filter(|path| runs(path)).or_else(beside).or_else(|| NAMES.iter().find_map(|name| in_path(OsStr::new(name)))).ok_or_else(|| {
        Failed::with_code(
            EXIT_NOT_FOUND,
            format!(
                "a Python program needs an interpreter, and PATH has neither {}\n  help: activate a virtual environment, or set {INTERPRETER_VARIABLE} to an interpreter",
                NAMES.join(" nor ")
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn executable(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_interpreter_is_the_named_one_else_the_active_one_else_its_neighbour_else_that_of_the_path() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let (bin, venv) = (at("bin"), at("venv"));
        let found = |search: Search| interpreter(search).map_err(|e| (e.code, e.message));
        let path = Search { path: Some(bin.as_os_str()), ..Search::default() };
        let (code, message) = found(path).unwrap_err();
        assert_eq!(code, 127);
        assert!(message.contains("neither python3 nor python") && message.contains("OFLOW_PYTHON"), "{message}");
        assert_eq!(found(Search::default()).unwrap_err().0, 127);
        executable(&bin.join("python"));
        assert_eq!(found(path).unwrap(), bin.join("python"));
        executable(&bin.join("python3"));
        assert_eq!(found(path).unwrap(), bin.join("python3"));
        let active = Search { environment: Some(venv.as_os_str()), ..path };
        assert_eq!(found(active).unwrap(), bin.join("python3"), "the environment has been removed");
        executable(&venv.join("bin/python3"));
        assert_eq!(found(active).unwrap(), venv.join("bin/python3"));
        let beside = Search { own_folder: Some(root.path()), ..path };
        assert_eq!(found(beside).unwrap(), bin.join("python3"), "there is no interpreter beside this program");
        executable(&at("python3"));
        assert_eq!(found(beside).unwrap(), at("python3"));
        assert_eq!(found(Search { own_folder: Some(root.path()), ..active }).unwrap(), venv.join("bin/python3"));
        let own = at("own python");
        executable(&own);
        assert_eq!(found(Search { named: Some(own.as_os_str()), ..active }).unwrap(), own);
        assert_eq!(found(Search { named: Some(OsStr::new("python")), ..active }).unwrap(), bin.join("python"));
        assert_eq!(found(Search { named: Some(OsStr::new("")), ..active }).unwrap(), venv.join("bin/python3"));
        for wrong in [OsStr::new("python9"), at("none").as_os_str(), root.path().as_os_str()] {
            let (code, message) = found(Search { named: Some(wrong), ..active }).unwrap_err();
            assert!(code == 127 && message.starts_with("OFLOW_PYTHON is "), "{message}");
        }
    }

    #[test]
    fn modules_have_names() {
        let root = tempfile::tempdir().unwrap();
        executable(&root.path().join("python3"));
        let search = Search { path: Some(root.path().as_os_str()), ..Search::default() };
        let module = |name: &str| Python::module(OsStr::new(name), search).map_err(|e| e.code);
        assert_eq!(module("a.b_c").unwrap().arguments(), ["-m", "a.b_c"]);
        for wrong in ["", "a..b", "./a", "a/b.py", "-x", "9"] {
            assert_eq!(module(wrong).unwrap_err(), 127, "{wrong:?}");
        }
    }

    #[test]
    fn what_the_user_has_set_stays() {
        assert_eq!(environment(|_| false).len(), 2);
        assert_eq!(environment(|name| name == "PYTHONUNBUFFERED"), [("PYTHONFAULTHANDLER", "1".into())]);
    }
}
