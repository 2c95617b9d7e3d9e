//! CUDA's libraries for the ranks: a private folder of links to libraries that the dynamic loader would not find under the names
//! that oflow uses. The loader reads `LD_LIBRARY_PATH` when a process starts, so the folder is made before the ranks.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use oflow::control::Token;
use oflow::kernels::cuda::libraries::{LIBRARIES, Library, folders, has_driver, names, python_prefixes};
use oflow_files::Access;

/// The variable that the loader reads.
pub const PATH: &str = "LD_LIBRARY_PATH";

/// A folder of links, removed when this is dropped.
pub struct Farm {
    folder: PathBuf,
    /// Files that the folder links to.
    linked: Vec<PathBuf>,
}

impl Farm {
    /// Makes links to libraries that the loader would not find. Returns `None` if there are none, or if the driver is missing.
    pub fn prepare() -> io::Result<Option<Farm>> {
        if !has_driver() {
            return Ok(None);
        }
        let missing: Vec<&Library> = LIBRARIES.iter().filter(|l| !l.is_found()).collect();
        if missing.is_empty() {
            return Ok(None);
        }
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let path = std::env::var_os("PATH");
        let mut prefixes = python_prefixes(path.as_deref());
        let near = folders(var, &prefixes);
        if missing.iter().any(|l| l.file_in(&near).is_none()) {
            // It knows best where its packages are, but starting it takes a moment.
            prefixes.extend(python_says());
        }
        Farm::of(&missing, &folders(var, &prefixes))
    }

    /// Makes links to these libraries in the first folders that have them. Returns `None` if no folder has one.
    pub fn of(libraries: &[&Library], folders: &[PathBuf]) -> io::Result<Option<Farm>> {
        let found: Vec<(&Library, PathBuf)> =
            libraries.iter().filter_map(|l| Some((*l, l.file_in(folders)?.canonicalize().ok()?))).collect();
        if found.is_empty() {
            return Ok(None);
        }
        let unique = Token::random().map_err(|e| io::Error::other(e.to_string()))?;
        let folder = std::env::temp_dir().join(format!("oflow-libs-{}", &unique.expose()[..16]));
        // Nobody else may put a library there.
        let made =
            oflow_files::check(&std::env::temp_dir()).and_then(|()| oflow_files::folder(&folder, Access::Private));
        made.map_err(|e| io::Error::other(e.to_string()))?;
        let mut farm = Farm { folder, linked: Vec::new() };
        for (library, file) in found {
            symlink(&file, farm.folder.join(library.name))?;
            if let Some(own) = file.file_name().filter(|n| *n != library.name) {
                farm.link(&file, Path::new(own))?;
            }
            for name in file.parent().map(names).unwrap_or_default() {
                if library.beside.iter().any(|b| name.starts_with(b)) {
                    farm.link(&file.with_file_name(&name), Path::new(&name))?;
                }
            }
            farm.linked.push(file);
        }
        Ok(Some(farm))
    }

    /// A link, unless there is one of that name.
    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        match symlink(file, self.folder.join(name)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    /// Returns the files that the links point to.
    pub fn linked(&self) -> &[PathBuf] {
        &self.linked
    }

    /// Returns the search path with the folder in front.
    pub fn search_path(&self) -> OsString {
        let before = std::env::var_os(PATH).filter(|p| !p.is_empty());
        let mut path = OsString::from(&self.folder);
        if let Some(before) = before {
            path.push(":");
            path.push(before);
        }
        path
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        // What is left is a few links in the folder of temporary files.
        let _may_be_left = fs::remove_dir_all(&self.folder);
    }
}

/// Where `python3` has its packages.
fn python_says() -> Option<PathBuf> {
    let script = "import sys; print(sys.prefix)";
    let output =
        Command::new("python3").args(["-c", script]).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let prefix = String::from_utf8(output.stdout).ok()?;
    Some(prefix.trim()).filter(|p| output.status.success() && p.starts_with('/')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_under_the_names_that_are_asked_for() {
        let root = tempfile::tempdir().unwrap();
        let lib = root.path().join("lib");
        fs::create_dir(&lib).unwrap();
        for name in ["libnvrtc.so.13", "libnvrtc-builtins.so.13.2", "libnccl.so.2", "libother.so"] {
            fs::write(lib.join(name), name).unwrap();
        }
        let all: Vec<&Library> = LIBRARIES.iter().collect();
        let farm = Farm::of(&all, &[root.path().to_path_buf(), lib.clone()]).unwrap().unwrap();
        let folder = farm.folder.clone();
        let want = ["libnccl.so", "libnccl.so.2", "libnvrtc-builtins.so.13.2", "libnvrtc.so", "libnvrtc.so.13"];
        assert_eq!(names(&folder), want);
        assert_eq!(fs::read_to_string(folder.join("libnccl.so")).unwrap(), "libnccl.so.2");
        assert_eq!(farm.linked().len(), 2);
        let path = farm.search_path();
        assert_eq!(std::env::split_paths(&path).next().unwrap(), folder);
        let old = std::env::var_os(PATH).unwrap_or_default();
        assert!(path.to_string_lossy().ends_with(&*old.to_string_lossy()), "what the user has set stays");
        drop(farm);
        assert!(!folder.exists());
        assert!(Farm::of(&all, &[root.path().to_path_buf()]).unwrap().is_none());
    }
}
