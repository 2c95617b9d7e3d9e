//! Ops from shared libraries and source files, while the program runs: [`load`] takes a library, [`build_and_load`] source files.
//!
//! A library gives structs of C (`op-abi/`), which become an [`OpDef`] like any other: the registry, the planner and
//! the harness know no difference. `read.rs` reads foreign structs, `call.rs` calls kernels and rules, `function.rs` functions that
//! call ops, `grad_rule.rs` gradients; `api.rs` is what such code may ask for, `tensors.rs` the tensors that it holds. Nothing else
//! touches a pointer of a library.

mod api;
mod build;
mod call;
mod cuda_file;
mod cuda_text;
mod declaration;
mod dying;
mod elf;
mod function;
#[doc(hidden)]
pub mod fuzz;
mod fuzzed_calls;
mod given;
mod grad_rule;
mod launch;
mod read;
mod shared;
mod tensors;

pub use build::{BuildOptions, build_and_load};

use crate::error::{Error, Result};
use crate::functional::exchange_functions;
use crate::ops::{LibraryId, Op, OpDef, all, exchange, lookup};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A loaded library of ops.
#[derive(Clone)]
pub struct Library {
    id: Arc<LibraryId>,
    version: String,
    ops: Vec<&'static Op>,
    functions: Vec<String>,
}

impl Library {
    /// Name that the library declares.
    pub fn name(&self) -> &str {
        &self.id.name
    }
    /// Version that the library declares; may be empty.
    pub fn version(&self) -> &str {
        &self.version
    }
    /// The file that was loaded, or the sources that it was built of.
    pub fn file(&self) -> &str {
        &self.id.file
    }
    /// Hash that ranks compare: of the file, or of the sources and options.
    pub fn hash(&self) -> &str {
        &self.id.hash
    }
    /// Ops that the library has registered.
    pub fn ops(&self) -> &[&'static Op] {
        &self.ops
    }
    /// The signatures of its functions that call ops, in the order of their declaration.
    pub fn functions(&self) -> &[String] {
        &self.functions
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions = self.functions.iter().map(|text| text.split('(').next().unwrap_or_default());
        let names: Vec<&str> = self.ops.iter().map(|op| op.name()).chain(functions).collect();
        write!(f, "{}: {}", self.id, names.join(", "))
    }
}

/// A library with what it was loaded from: a later load of the same replaces it.
struct Entry {
    from: Vec<PathBuf>,
    library: Library,
}

/// All that are loaded, in the order of loading. Loads and unloads happen one after the other.
static LOADED: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// SHA-256 of parts, in hexadecimal digits. Each part counts with its length.
fn hash_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut h = Sha256::new();
    for part in parts {
        h.update((part.len() as u64).to_le_bytes());
        h.update(part);
    }
    h.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// Loads a shared library and registers its ops. They can be called at once, as ops that the program declares.
///
/// Load before [`init`](crate::init), on every rank: ranks compare their ops, with the library's hash, when the job starts. Loading a
/// library that is loaded returns it; one whose file has changed replaces its ops.
///
/// # Errors
/// The file cannot be read, or another user could replace it; it is no library of ops, or one for another version of the interface; an
/// op says something that cannot be understood, or is registered already; a gradient calls an op that is neither the library's nor
/// registered, or not as it is called; the library is loaded in an older build, and an autograd graph holds a call of its ops.
/// If anything fails nothing is registered.
///
/// # Safety of the program
/// The library's code runs in this process. Load what you trust.
pub fn load(path: impl AsRef<Path>) -> Result<Library> {
    let path = path.as_ref();
    let shown = path.display().to_string();
    let unreadable = |why: &str| {
        Error::registry(format!("the library {shown} cannot be read: {why}"))
            .help("give the path of a shared library (.so)")
    };
    let real = path.canonicalize().map_err(|e| unreadable(&e.to_string()))?;
    let bytes = oflow_files::checked_bytes(path, u64::MAX).map_err(|e| match e.help_text() {
        Some(_) => Error::registry(format!("the library {shown} cannot be used: {e}")),
        None => unreadable(&e.to_string()),
    })?;
    let hash = hash_of([bytes.as_slice()]);
    place(vec![real.clone()], &hash, || shared::open(&real, &bytes, &shown, &hash))
}

/// Registers what `open` gives in the place of what was loaded from the same files, unless that is the same.
fn place(from: Vec<PathBuf>, hash: &str, open: impl FnOnce() -> Result<shared::Opened>) -> Result<Library> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let before = loaded.iter().position(|e| e.from == from);
    if let Some(same) = before.map(|i| &loaded[i].library).filter(|l| l.id.hash == hash) {
        return Ok(same.clone());
    }
    let opened = open()?;
    let old: &[&'static Op] = before.map_or(&[], |i| &loaded[i].library.ops);
    check_gradients(&opened.ops)?;
    let gone = before.map(|i| loaded[i].library.id.clone());
    let functions = opened.functions.iter().map(|def| def.sig.to_string()).collect();
    let names = taken_names(old, &opened.ops)?;
    let ops = exchange_functions(gone.as_ref(), opened.functions, &names, || exchange(old, opened.ops))?;
    let library = Library { id: opened.id, version: opened.version, ops, functions };
    let entry = Entry { from, library: library.clone() };
    match before {
        Some(i) => loaded[i] = entry,
        None => loaded.push(entry),
    }
    Ok(library)
}

/// The names of functions that ops declare, once these stand in the place of the old ones.
fn taken_names(old: &[&'static Op], new: &[OpDef]) -> Result<Vec<String>> {
    let stays = |op: &&Op| !old.iter().any(|o| std::ptr::eq(*o, *op));
    let mut names = vec![];
    for op in all().into_iter().filter(stays).map(|op| &**op).chain(new) {
        names.extend(op.function_signatures()?.into_iter().map(|sig| sig.name));
        names.push(format!("{}.{}", op.domain, op.sig.name));
    }
    Ok(names)
}

/// Checks the gradients of a library's ops against the ops that they call, which are its own or registered already.
fn check_gradients(ops: &[OpDef]) -> Result<()> {
    let find = |name: &str| -> Result<Option<&OpDef>> {
        let own =
            |op: &&OpDef| name == op.sig.name || name.replace("::", ".") == format!("{}.{}", op.domain, op.sig.name);
        match ops.iter().find(own) {
            Some(op) => Ok(Some(op)),
            None => Ok(lookup(name)?.map(|op| &**op)),
        }
    };
    ops.iter().try_for_each(|op| op.check_gradient(&find))
}

/// Takes the ops of a library out of the registry. Its code stays mapped. Calls that name one of them fail from then on.
///
/// # Errors
/// The library is not loaded (any more); an autograd graph holds a call of one of its ops.
pub fn unload(library: &Library) -> Result<()> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |e: &Entry| e.library.id == library.id;
    let at = loaded.iter().position(same).ok_or_else(|| {
        Error::registry(format!("the library {} is not loaded", library.id)).help("`loaded` lists the libraries")
    })?;
    let entry = &loaded[at].library;
    exchange_functions(Some(&entry.id), vec![], &[], || exchange(&entry.ops, vec![]))?;
    loaded.remove(at);
    Ok(())
}

/// All loaded libraries, in the order of loading.
pub fn loaded() -> Vec<Library> {
    LOADED.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|e| e.library.clone()).collect()
}
