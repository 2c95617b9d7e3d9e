//! Building a library of ops from source files, with a cache.
//!
//! A build has a folder in the cache, named after a hash of all that it depends on before it runs: sources, options, the interface and
//! the compiler that the environment names. The folder is made beside and renamed into place, so what is there is complete. Files that
//! the sources include are known after the build; the folder says which and what their hashes were, and the hash of the library, which
//! is compared before it is loaded. A lock on a file beside the folder keeps other processes (the other ranks of a host) waiting
//! while one builds. The cache runs code, so other users can neither write to it nor to a folder on its path.

mod cache;
mod compile;
mod in_source;

use super::{Library, cuda_file, hash_of, place, shared};
use crate::error::{Error, Result};
use crate::ops::LibraryId;
use cache::Slot;
use in_source::InSource;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a library is built.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    name: Option<String>,
    flags: Vec<String>,
    dependencies: Vec<String>,
    cache: Option<PathBuf>,
    debug: bool,
}

impl BuildOptions {
    /// The usual: the first file's name, full optimisation, the user's cache.
    pub fn new() -> BuildOptions {
        BuildOptions::default()
    }
    /// Names the build; a library of `.cu` files alone has this name. Otherwise the name of the first file serves.
    #[must_use]
    pub fn name(mut self, name: &str) -> BuildOptions {
        self.name = Some(name.to_string());
        self
    }
    /// Adds an option for the compiler of C and C++, such as `-march=native` or `-lblas`.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> BuildOptions {
        self.flags.push(flag.to_string());
        self
    }
    /// Adds a dependency of a Rust source, as a line of a manifest: `half = "2"`. Cargo may then use the network.
    #[must_use]
    pub fn dependency(mut self, line: &str) -> BuildOptions {
        self.dependencies.push(line.to_string());
        self
    }
    /// Keeps builds in this folder. Otherwise: `OFLOW_OP_CACHE`, or `oflow/ops` in the user's folder for caches.
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> BuildOptions {
        self.cache = Some(folder.into());
        self
    }
    /// Builds with checks and without optimisation: accessors check their indices.
    #[must_use]
    pub fn debug(mut self, on: bool) -> BuildOptions {
        self.debug = on;
        self
    }
}

/// The language of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Language {
    Rust,
    C,
    Cpp,
    Cuda,
}

fn language(path: &Path) -> Result<Language> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("rs") => Ok(Language::Rust),
        Some("c") => Ok(Language::C),
        Some("cc" | "cpp" | "cxx") => Ok(Language::Cpp),
        Some("cu") => Ok(Language::Cuda),
        _ => Err(Error::argument(format!("{} is not a source of an op", path.display()))
            .help("sources end in .rs, .c, .cc, .cpp, .cxx or .cu")),
    }
}

/// A source with its text.
struct SourceFile {
    shown: String,
    path: PathBuf,
    language: Language,
    text: Vec<u8>,
    /// Options in the comments at the top of the source.
    options: InSource,
}

impl SourceFile {
    fn read(given: &Path) -> Result<SourceFile> {
        let shown = given.display().to_string();
        let language = language(given)?;
        let unreadable = |why: &str| Error::registry(format!("the source {shown} cannot be read: {why}"));
        let path = given.canonicalize().map_err(|e| unreadable(&e.to_string()))?;
        let text = oflow_files::checked_bytes(given, u64::MAX).map_err(|e| unreadable(&e.to_string()))?;
        let mut source = SourceFile { shown, path, language, text, options: InSource::default() };
        source.options = in_source::read(&source)?;
        Ok(source)
    }

    /// Whether a compiler of this machine compiles it: a CUDA source only where its host code launches kernels.
    fn is_compiled(&self) -> bool {
        self.language != Language::Cuda || launches(&String::from_utf8_lossy(&self.text))
    }

    fn name(&self) -> String {
        self.path.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned())
    }
}

/// Whether a CUDA source launches kernels: `<<<` outside comments and texts.
fn launches(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', '<']) {
        rest = &rest[at..];
        let behind = |end: Option<usize>, n: usize| end.map_or("", |end| &rest[end + n..]);
        rest = if rest.starts_with("<<<") {
            return true;
        } else if rest.starts_with("//") {
            behind(rest.find('\n'), 1)
        } else if rest.starts_with("/*") {
            behind(rest.find("*/"), 2)
        } else if let Some(inside) = rest.strip_prefix('"') {
            let mut escaped = false;
            let end = inside.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or("", |end| &inside[end + 1..])
        } else {
            &rest[1..]
        };
    }
    false
}

/// Builds a library of ops from sources and loads it, as [`load`](super::load) does. A Rust source (`.rs`, with
/// `oflow_op::library!`) is built by cargo, C and C++ (`.c`, `.cc`, `.cpp`, with `oflow_op.hpp`) by the system's compiler. A `.cu` file
/// is compiled on the GPU's machine at its first use: it declares ops by itself, or the C++ files beside it name its kernels. One whose
/// host code launches kernels (`<<<…>>>`) is compiled by nvcc.
///
/// A source may name options of its build at its top: `// oflow: flags = -march=native`, `// oflow: link = -lblas`, and in Rust
/// `// oflow: dependency = half = "2"`.
///
/// Builds are kept: sources that have not changed are loaded within milliseconds, changed ones are built again and replace their
/// ops. All ranks of a host call this; one of them builds, and the others wait for it.
///
/// # Errors
/// A source cannot be read, names a build option that there is not, or does not compile, or another user could replace it or the cache: the message has the compiler's, with the lines of the source. Otherwise as
/// [`load`](super::load).
pub fn build_and_load(sources: &[impl AsRef<Path>], options: BuildOptions) -> Result<Library> {
    let sources: Vec<SourceFile> = sources.iter().map(|s| SourceFile::read(s.as_ref())).collect::<Result<_>>()?;
    let Some(first) = sources.first() else {
        return Err(Error::argument("`build_and_load` was given no source"));
    };
    let name = options.name.clone().unwrap_or_else(|| {
        let stem = first.path.file_stem().map_or(String::new(), |s| s.to_string_lossy().into_owned());
        stem.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
    });
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(Error::argument(format!("'{name}' cannot be the name of a library"))
            .help("a name is letters, digits and '_'"));
    }
    let compiled = sources.iter().filter(|s| s.is_compiled());
    let rust = compiled.clone().filter(|s| s.language == Language::Rust).count();
    if rust > 1 || (rust == 1 && compiled.clone().count() > 1) {
        return Err(Error::argument("a library is built of one Rust source, or of C and C++ sources")
            .help("use `mod` for more files of Rust, and one `build_and_load` for each language"));
    }
    let file = sources.iter().map(|s| s.shown.as_str()).collect::<Vec<_>>().join(" ");
    let mut from: Vec<PathBuf> = sources.iter().map(|s| s.path.clone()).collect();
    from.sort();
    let key = key(&sources, &name, &options);
    if compiled.count() == 0 {
        return place(from, &key, || cuda_ops(&sources, &name, &file, &key));
    }
    let folder = cache::folder(options.cache.as_deref())?;
    let slot = Slot::new(&folder, &name, &key);
    let built = slot.built_by(|to| compile::compile(&sources, &name, &options, &folder, to))?;
    place(from, &built.hash, || {
        let mut opened = shared::open(&built.library, &built.bytes, &file, &built.hash)?;
        for source in sources.iter().filter(|s| s.language == Language::Cuda) {
            let text = cuda_source(source)?;
            if cuda_file::declares(text) {
                opened.ops.extend(cuda_file::ops(&opened.id, &source.path, text)?);
            }
        }
        Ok(opened)
    })
}

fn cuda_source(source: &SourceFile) -> Result<&str> {
    std::str::from_utf8(&source.text).map_err(|e| Error::parse(format!("{} is not UTF-8: {e}", source.shown)))
}

/// The ops of files that declare them without a library.
fn cuda_ops(sources: &[SourceFile], name: &str, file: &str, hash: &str) -> Result<shared::Opened> {
    let id = Arc::new(LibraryId {
        name: name.into(),
        file: file.to_string(),
        hash: hash.to_string(),
        default_stream: false,
    });
    let mut ops = vec![];
    for source in sources {
        ops.extend(cuda_file::ops(&id, Path::new(&source.shown), cuda_source(source)?)?);
    }
    match ops.is_empty() {
        false => Ok(shared::Opened { id, version: String::new(), ops, functions: vec![] }),
        true => Err(Error::registry(format!("{file} declares no op"))
            .help("declare it in a comment that starts with `/* oflow`, or in a C++ file that names the kernel")),
    }
}

/// A hash of all that a build depends on before it runs.
fn key(sources: &[SourceFile], name: &str, options: &BuildOptions) -> String {
    let debug = [u8::from(options.debug)];
    let names: Vec<String> = sources.iter().map(SourceFile::name).collect();
    // What finds the compilers and changes what they do.
    let variables =
        ["CC", "CXX", "NVCC", "CUDA_HOME", "CUDA_PATH", "CFLAGS", "CXXFLAGS", "RUSTFLAGS", "RUSTUP_TOOLCHAIN"]
            .map(|variable| std::env::var_os(variable).unwrap_or_default().into_encoded_bytes());
    let mut parts: Vec<&[u8]> =
        vec![name.as_bytes(), env!("CARGO_PKG_VERSION").as_bytes(), &debug, compile::INTERFACE.as_bytes()];
    parts.extend(sources.iter().zip(&names).flat_map(|(s, name)| [name.as_bytes(), s.text.as_slice()]));
    parts.extend(options.flags.iter().chain(&options.dependencies).map(String::as_bytes));
    parts.extend(variables.iter().map(Vec::as_slice));
    hash_of(parts)
}
