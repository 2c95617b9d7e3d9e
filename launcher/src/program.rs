//! Finds the program of a job.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::python::{Python, Search};
use crate::{EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Failed};

/// A program to run.
#[derive(Debug, PartialEq, Eq)]
pub enum Program {
    /// A Rust source file, as an absolute path without symbolic links.
    Script(PathBuf),
    /// A Python file or module.
    Python(Python),
    /// An executable file.
    Executable(PathBuf),
}

/// Finds a program. A name that ends in `.rs` or `.py` or contains a slash is a path; other names are searched for in `PATH`.
pub fn resolve(program: &Path, search: Search) -> Result<Program, Failed> {
    if program.extension() == Some(OsStr::new("py")) {
        return Python::script(program, search).map(Program::Python);
    }
    if program.extension() == Some(OsStr::new("rs")) {
        let script = program.canonicalize().map_err(|e| not_found(program, &e.to_string()))?;
        return if script.is_file() { Ok(Program::Script(script)) } else { Err(not_a_file(program)) };
    }
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return executable(program).map(Program::Executable);
    }
    let folders = search.path.map(|s| std::env::split_paths(s).collect::<Vec<_>>()).unwrap_or_default();
    if let Some(found) = folders.iter().find_map(|folder| executable(&folder.join(program)).ok()) {
        return Ok(Program::Executable(found));
    }
    let here = if program.is_file() {
        format!("; for the file in this folder write ./{}", program.display())
    } else {
        String::new()
    };
    Err(not_found(program, &format!("no such program in PATH{here}")))
}

fn executable(path: &Path) -> Result<PathBuf, Failed> {
    let metadata = path.metadata().map_err(|e| not_found(path, &e.to_string()))?;
    if !metadata.is_file() {
        return Err(not_a_file(path));
    }
    if access(path, Access::EXEC_OK).is_err() {
        return Err(Failed::with_code(
            EXIT_NOT_EXECUTABLE,
            format!(
                "{} is not executable (chmod +x makes it so; a Rust script ends in .rs, a Python program in .py)",
                path.display()
            ),
        ));
    }
    Ok(path.to_path_buf())
}

fn not_found(path: &Path, why: &str) -> Failed {
    Failed::with_code(EXIT_NOT_FOUND, format!("cannot find {}: {why}", path.display()))
}

fn not_a_file(path: &Path) -> Failed {
    Failed::with_code(EXIT_NOT_EXECUTABLE, format!("{} is not a file", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn found_and_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, mode| {
            let path = dir.path().join(name);
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (tool, data, script) = (file("tool", 0o755), file("data", 0o644), file("a.rs", 0o644));
        let search = Search { path: Some(dir.path().as_os_str()), ..Search::default() };
        let ok = |program: &Path| resolve(program, search).unwrap();
        let code = |program: &Path| resolve(program, search).unwrap_err().code;
        assert_eq!(ok(&tool), Program::Executable(tool.clone()));
        assert_eq!(ok(Path::new("tool")), Program::Executable(tool.clone()));
        assert_eq!(ok(&script), Program::Script(script.canonicalize().unwrap()));
        assert_eq!(code(&data), 126);
        assert_eq!(code(&dir.path().join("none.py")), 127);
        assert_eq!(code(&file("b.py", 0o644)), 127, "no interpreter");
        file("python3", 0o755);
        assert!(matches!(ok(&file("b.py", 0o644)), Program::Python(_)));
        assert_eq!(code(dir.path()), 126);
        assert_eq!(code(&dir.path().join("none")), 127);
        assert_eq!(code(&dir.path().join("none.rs")), 127);
        assert_eq!(code(Path::new("data")), 127);
        assert_eq!(resolve(Path::new("tool"), Search::default()).unwrap_err().code, 127);
    }
}
