//! Running the compilers.

use super::cache::{LIBRARY, at, locked, own_folder, refused};
use super::{BuildOptions, Language, SourceFile};
use crate::error::{Error, Result};
use crate::libraries::hash_of;
use oflow_files::Access;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// More of what a compiler says is cut.
const MOST_SAID: usize = 8 << 10;

/// Builds the library into `to`. Returns the files that it was made of besides the sources and those of the system.
pub(super) fn compile(
    sources: &[SourceFile],
    name: &str,
    options: &BuildOptions,
    cache: &Path,
    to: &Path,
) -> Result<Vec<PathBuf>> {
    let interface = interface(cache)?;
    // Kernels of CUDA texts are looked for beside the library.
    for s in sources.iter().filter(|s| s.language == Language::Cuda) {
        let copy = to.join(s.name());
        oflow_files::replace(&copy, Access::Private, &s.text).map_err(refused)?;
    }
    match sources.iter().find(|s| s.language == Language::Rust) {
        Some(source) => rust(source, name, options, &interface, cache, to),
        None => c(sources, options, &interface, to),
    }
}

/// A hash of the interface.
pub(super) static INTERFACE: LazyLock<String> =
    LazyLock::new(|| hash_of(oflow_op::SOURCES.iter().flat_map(|(path, text)| [path.as_bytes(), text.as_bytes()])));

/// The crate `oflow-op` with the headers, as this program knows it.
fn interface(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join(format!("oflow-op-{}", &INTERFACE[..16]));
    own_folder(&folder)?;
    let manifest =
        "[package]\nname = \"oflow-op\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[lib]\nname = \"oflow_op\"\n";
    let files = oflow_op::SOURCES.iter().copied().chain([("Cargo.toml", manifest)]);
    for (path, text) in files {
        let file = folder.join(path);
        if fs::read(&file).is_ok_and(|found| found == text.as_bytes()) {
            continue;
        }
        own_folder(file.parent().unwrap_or(&folder))?;
        // Other builds read it at the same time: it is complete under its name.
        oflow_files::replace(&file, Access::Private, text.as_bytes()).map_err(refused)?;
    }
    Ok(folder)
}

/// Runs a compiler; what it says is the error.
fn run(mut command: Command, what: &str) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| {
        Error::registry(format!("{what} cannot be built: {program} cannot be run: {e}"))
            .help("install a compiler, or name one (CC, CXX; cargo for Rust must be in PATH)")
    })?;
    if output.status.success() {
        return Ok(());
    }
    let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.trim().is_empty() {
        said = String::from_utf8_lossy(&output.stdout).into_owned();
    }
    if said.len() > MOST_SAID {
        let mut end = MOST_SAID;
        while !said.is_char_boundary(end) {
            end -= 1;
        }
        said.truncate(end);
        said += "\n…";
    }
    let e = Error::registry(format!("{what} does not compile ({program}, {}):\n{}", output.status, said.trim_end()));
    let twice =
        said.contains("oflow_op_library") && (said.contains("multiple definition") || said.contains("redefinition"));
    Err(match twice {
        true => e.help(
            "a library has one `OFLOW_LIBRARY`: declare all ops in it, and define their kernels in the other files",
        ),
        false => e,
    })
}

fn rust(
    source: &SourceFile,
    name: &str,
    options: &BuildOptions,
    interface: &Path,
    cache: &Path,
    to: &Path,
) -> Result<Vec<PathBuf>> {
    let quoted = |path: &Path| format!("{:?}", path.display().to_string());
    let (entry, op) = (quoted(&source.path), quoted(interface));
    let dependencies: Vec<&str> =
        options.dependencies.iter().chain(&source.options.dependencies).map(String::as_str).collect();
    let (offline, dependencies) = (dependencies.is_empty(), dependencies.join("\n"));
    // Compiled once for all libraries of the cache.
    let target = cache.join("target");
    own_folder(&target)?;
    // A name of its own: a file may be called `3d.rs` or `fn.rs`.
    let package = format!("op_{name}");
    let manifest = format!(
        "[package]\nname = \"{package}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n\n\
         [lib]\nname = \"{package}\"\npath = {entry}\ncrate-type = [\"cdylib\"]\n\n\
         [dependencies]\noflow-op = {{ path = {op} }}\n{dependencies}\n"
    );
    let file = to.join("Cargo.toml");
    oflow_files::replace(&file, Access::Private, manifest.as_bytes()).map_err(refused)?;
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--lib", "--manifest-path"]).arg(&file).arg("--target-dir").arg(&target);
    if !options.debug {
        command.arg("--release");
    }
    if offline {
        command.arg("--offline");
    }
    // Settings of a program that cargo runs are not meant for this build.
    command.env_remove("CARGO_TARGET_DIR").env_remove("CARGO_BUILD_TARGET").current_dir(to);
    // Two sources of one name are one file here: it is copied before another build writes it.
    let _locked = locked(&cache.join("target.lock"), &target)?;
    run(command, &source.shown)?;
    let built = target.join(if options.debug { "debug" } else { "release" });
    let (made, listed) = (built.join(format!("lib{package}.so")), built.join(format!("lib{package}.d")));
    fs::copy(&made, to.join(LIBRARY)).map_err(|e| at(&made, "cannot be read", &e))?;
    Ok(dependencies_of(&read_list(&listed)?, false, &[source], interface))
}

fn c(sources: &[SourceFile], options: &BuildOptions, interface: &Path, to: &Path) -> Result<Vec<PathBuf>> {
    let mut included = vec![];
    let compiled: Vec<&SourceFile> = sources.iter().filter(|s| s.is_compiled()).collect();
    let cpp = compiled.iter().any(|s| s.language != Language::C);
    let cuda = compiled.iter().any(|s| s.language == Language::Cuda);
    // Libraries are named behind the objects.
    let (libraries, flags): (Vec<&String>, Vec<&String>) = options
        .flags
        .iter()
        .chain(compiled.iter().flat_map(|s| &s.options.links))
        .partition(|f| f.starts_with("-l") || f.starts_with("-L") || f.starts_with("-Wl,"));
    let mut objects = vec![];
    for (i, source) in compiled.iter().enumerate() {
        let (object, listed) = (to.join(format!("{i}.o")), to.join(format!("{i}.d")));
        let mut command = match source.language {
            Language::Cuda => nvcc(&source.shown)?,
            other => compiler(other == Language::Cpp, &source.shown)?,
        };
        command.arg(if source.language == Language::C { "-std=c11" } else { "-std=c++17" });
        match options.debug {
            true => command.args(["-O1", "-g"]),
            false => command.args(["-O3", "-DNDEBUG"]),
        };
        // nvcc hands on what is meant for the compiler of C++.
        let own = ["-fPIC", "-fvisibility=hidden", "-Wall"].into_iter().chain(flags.iter().map(|f| f.as_str()));
        match source.language {
            Language::Cuda => command.args(own.flat_map(|flag| ["-Xcompiler", flag])),
            _ => command.args(own),
        };
        command.args(&source.options.flags);
        command.args(["-c", "-MMD", "-MF"]).arg(&listed);
        command.arg("-I").arg(interface.join("include")).arg("-o").arg(&object).arg(&source.path);
        run(command, &source.shown)?;
        included.extend(dependencies_of(&read_list(&listed)?, true, &compiled, interface));
        objects.push(object);
    }
    let shown = compiled.iter().map(|s| s.shown.as_str()).collect::<Vec<_>>().join(" ");
    let mut command = if cuda { nvcc(&shown)? } else { compiler(cpp, &shown)? };
    command.arg("-shared").args(&objects).arg("-o").arg(to.join(LIBRARY));
    for library in libraries {
        match library.strip_prefix("-Wl,") {
            Some(options) if cuda => command.arg("-Xlinker").arg(options),
            _ => command.arg(library),
        };
    }
    run(command, &shown)?;
    included.sort();
    included.dedup();
    Ok(included)
}

/// The compiler of CUDA that the environment names, else the one of the CUDA toolkit. It also links: it knows the CUDA runtime.
fn nvcc(what: &str) -> Result<Command> {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let toolkit = var("CUDA_HOME").or_else(|| var("CUDA_PATH")).unwrap_or_else(|| "/usr/local/cuda".into());
    let in_path = || {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).map(|f| f.join("nvcc")).find(|p| p.is_file())
    };
    let own = || Some(toolkit.join("bin/nvcc")).filter(|p| p.is_file());
    let found = var("NVCC").or_else(in_path).or_else(own).ok_or_else(|| {
        Error::registry(format!("{what} cannot be built: it launches kernels from host code, and nvcc is missing"))
            .help(
                "install the CUDA toolkit, or name its compiler in NVCC; without it, give the kernels as CUDA text: \
                 `cuda_text(\"file.cu\", \"entry\")`",
            )
    })?;
    let mut command = Command::new(found);
    if let Some(cxx) = var("CXX") {
        command.arg("-ccbin").arg(cxx);
    }
    Ok(command)
}

/// The compiler of C or C++ that the environment names, else the system's.
fn compiler(cpp: bool, what: &str) -> Result<Command> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut build = cc::Build::new();
    build
        .cpp(cpp)
        .target(&target)
        .host(&target)
        .opt_level(0)
        .cargo_metadata(false)
        .cargo_warnings(false)
        .no_default_flags(true);
    let tool = build.try_get_compiler().map_err(|e| {
        Error::registry(format!("{what} cannot be built: {e}")).help("install a compiler, or name one in CC or CXX")
    })?;
    Ok(tool.to_command())
}

fn read_list(listed: &Path) -> Result<String> {
    fs::read_to_string(listed).map_err(|e| at(listed, "cannot be read", &e))
}

/// The files that a list of dependencies names, but for sources and files of the interface. Both compilers and cargo write it for make,
/// with `\\ ` for a space; compilers also write `\\#` and `$$`.
fn dependencies_of(listed: &str, of_c: bool, sources: &[&SourceFile], interface: &Path) -> Vec<PathBuf> {
    let joined = listed.replace("\\\n", " ");
    let mut found = vec![];
    for line in joined.lines() {
        let Some((_, files)) = line.split_once(": ") else { continue };
        let files = files.replace("\\ ", "\0");
        for file in files.split_whitespace() {
            let mut file = file.replace('\0', " ");
            if of_c {
                file = file.replace("\\#", "#").replace("$$", "$");
            }
            let path = PathBuf::from(file);
            let path = path.canonicalize().unwrap_or(path);
            if !sources.iter().any(|s| s.path == path) && !path.starts_with(interface) {
                found.push(path);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_write_the_interface_of_a_new_cache_together() {
        for _ in 0..20 {
            let cache = tempfile::tempdir().unwrap();
            std::thread::scope(|s| {
                let all: Vec<_> =
                    (0..8).map(|_| s.spawn(|| interface(cache.path()).map_err(|e| e.to_string()))).collect();
                all.into_iter()
                    .for_each(|t| assert_eq!(t.join().unwrap().map(|f| f.join("Cargo.toml").is_file()), Ok(true)));
            });
        }
    }
}
