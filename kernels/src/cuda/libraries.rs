//! Finds CUDA's libraries that the dynamic loader does not find: in toolkits and Python packages.
//!
//! `cudarc` asks the loader for a few fixed names. A library elsewhere can be made available in two ways. A folder with links of
//! these names can be put at the head of `LD_LIBRARY_PATH` before the process starts; `oflaunch` does that for its ranks. Or the
//! file can be opened by its path first: the loader then returns it for the library's own name (its SONAME). `open_unfound` does
//! the latter. It does not help for NCCL, because `cudarc` does not ask for its SONAME `libnccl.so.2`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A library of CUDA.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// The first name that the loader is asked for.
    pub name: &'static str,
    /// File names, in order of preference.
    pub files: &'static [&'static str],
    /// Prefixes of files in the same folder that the library loads.
    pub beside: &'static [&'static str],
    present: unsafe fn() -> bool,
}

/// NVRTC, cuBLASLt and NCCL.
pub const LIBRARIES: [Library; 3] = [
    Library {
        name: "libnvrtc.so",
        files: &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
        beside: &["libnvrtc-builtins.so"],
        present: cudarc::nvrtc::sys::is_culib_present,
    },
    Library {
        name: "libcublasLt.so",
        files: &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"],
        beside: &["libnvJitLink.so"],
        present: cudarc::cublaslt::sys::is_culib_present,
    },
    Library {
        name: "libnccl.so",
        files: &["libnccl.so.2", "libnccl.so"],
        beside: &[],
        present: cudarc::nccl::sys::is_culib_present,
    },
];

/// cuFFT, cuSOLVER and cuDNN, which are looked for at the first call that needs them: to open them takes a moment.
pub(super) const OPTIONAL: [Library; 3] = [
    Library {
        name: "libcufft.so",
        files: &["libcufft.so.12", "libcufft.so.11", "libcufft.so"],
        beside: &["libnvJitLink.so"],
        present: cudarc::cufft::sys::is_culib_present,
    },
    Library {
        name: "libcusolver.so",
        files: &["libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"],
        beside: &["libnvJitLink.so", "libcublasLt.so", "libcublas.so", "libcusparse.so"],
        present: super::cusolver::is_present,
    },
    Library {
        name: "libcudnn.so",
        files: &["libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"],
        beside: &["libcudnn_", "libcublasLt.so", "libcublas.so"],
        present: super::cudnn::is_present,
    },
];

impl Library {
    /// Returns whether the loader finds the library. The library is opened and closed.
    pub fn is_found(&self) -> bool {
        // SAFETY: only tries to open a library by its names; CUDA's have no initialisers that matter.
        unsafe { (self.present)() }
    }

    /// Returns the file of the library in the first folder that has it.
    pub fn file_in(&self, folders: &[PathBuf]) -> Option<PathBuf> {
        folders.iter().flat_map(|f| self.files.iter().map(move |n| f.join(n))).find(|path| path.is_file())
    }
}

/// Returns whether the loader finds the driver.
pub fn has_driver() -> bool {
    // SAFETY: only tries to open a library by its names; the driver does nothing before it is initialised.
    unsafe { cudarc::driver::sys::is_culib_present() }
}

/// Where distributions put libraries.
const SYSTEM: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/nvidia/lib64",
];

/// Returns the folders that are searched for libraries, in order: those of `LD_LIBRARY_PATH`, of toolkits, of the system, and of
/// Python packages under `$VIRTUAL_ENV`, `$CONDA_PREFIX` and the given prefixes.
pub fn folders(var: impl Fn(&str) -> Option<PathBuf>, prefixes: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    if let Some(path) = var("LD_LIBRARY_PATH") {
        all.extend(std::env::split_paths(&path).filter(|p| !p.as_os_str().is_empty()));
    }
    for toolkit in ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(&var) {
        all.push(toolkit.join("lib64"));
    }
    all.push("/usr/local/cuda/lib64".into());
    // The newest version first.
    let versions = names(Path::new("/usr/local")).into_iter().rev().filter(|n| n.starts_with("cuda-"));
    all.extend(versions.map(|n| Path::new("/usr/local").join(n).join("lib64")));
    all.extend(SYSTEM.iter().map(PathBuf::from));
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(&var);
    for prefix in environments.chain(prefixes.iter().cloned()) {
        all.extend(packages(&prefix));
        all.push(prefix.join("lib"));
    }
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|f| seen.insert(f.clone()));
    all
}

/// `lib/python3.*/site-packages/nvidia/*/lib` under a prefix.
fn packages(prefix: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for lib in ["lib", "lib64"] {
        let lib = prefix.join(lib);
        for python in names(&lib).into_iter().rev().filter(|n| n.starts_with("python3")) {
            for site in ["site-packages", "dist-packages"] {
                let nvidia = lib.join(&python).join(site).join("nvidia");
                found.extend(names(&nvidia).into_iter().map(|n| nvidia.join(n).join("lib")).filter(|f| f.is_dir()));
            }
        }
    }
    found
}

/// Returns the prefixes of the first Python in the search path.
pub fn python_prefixes(path: Option<&OsStr>) -> Vec<PathBuf> {
    let folders = path.map(|p| std::env::split_paths(p).collect::<Vec<_>>()).unwrap_or_default();
    let Some(python) = folders.iter().map(|f| f.join("python3")).find(|p| p.is_file()) else { return vec![] };
    let prefix = |file: &Path| Some(file.parent()?.parent()?.to_path_buf());
    let resolved = python.canonicalize().ok();
    [prefix(&python), resolved.as_deref().and_then(prefix)].into_iter().flatten().collect()
}

/// Returns the sorted names in a folder; none if it cannot be read.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Opens by their paths those of the libraries that the loader does not find, for the rest of the process. Returns those that lie
/// somewhere but are still not found under a name that is asked for.
pub(super) fn open_unfound(libraries: &[Library]) -> Vec<(Library, PathBuf)> {
    if !has_driver() {
        return vec![];
    }
    let missing: Vec<Library> = libraries.iter().filter(|l| !l.is_found()).copied().collect();
    if missing.is_empty() {
        return vec![];
    }
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folders = folders(var, &python_prefixes(std::env::var_os("PATH").as_deref()));
    let mut unusable = Vec::new();
    for library in missing {
        let Some(file) = library.file_in(&folders) else { continue };
        if library.name != "libnccl.so" {
            let beside = file.parent().map(names).unwrap_or_default();
            let needed = beside.iter().filter(|n| library.beside.iter().any(|b| n.starts_with(b)));
            needed.for_each(|n| open(&file.with_file_name(n)));
            open(&file);
        }
        if !library.is_found() {
            unusable.push((library, file));
        }
    }
    unusable
}

/// Opens a library for good, if it can be opened.
fn open(file: &Path) {
    // SAFETY: one of CUDA's libraries, whose initialisers do nothing that matters; it is never closed.
    if let Ok(library) = unsafe { libloading::Library::new(file) } {
        std::mem::forget(library);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_in_order_and_packages_are_found() {
        let root = std::env::temp_dir().join(format!("oflow-libraries-{}", std::process::id()));
        let wheel = root.join("lib/python3.12/site-packages/nvidia/nccl/lib");
        std::fs::create_dir_all(&wheel).unwrap();
        std::fs::write(wheel.join("libnccl.so.2"), "").unwrap();
        let given = |name: &str| match name {
            "LD_LIBRARY_PATH" => Some(PathBuf::from("/one:/two")),
            "VIRTUAL_ENV" => Some(root.clone()),
            _ => None,
        };
        let all = folders(given, &[]);
        assert_eq!(all[..3], ["/one", "/two", "/usr/local/cuda/lib64"].map(PathBuf::from));
        assert_eq!(LIBRARIES[2].file_in(&[PathBuf::from("/nowhere"), wheel.clone()]), Some(wheel.join("libnccl.so.2")));
        assert!(all.contains(&wheel) && all.contains(&root.join("lib")), "{all:?}");
        assert_eq!(folders(|_| None, std::slice::from_ref(&root)).iter().filter(|f| **f == wheel).count(), 1);
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::write(root.join("bin/python3"), "").unwrap();
        assert_eq!(python_prefixes(Some(root.join("bin").as_os_str()))[0], root);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
