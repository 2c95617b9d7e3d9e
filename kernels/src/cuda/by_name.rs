//! Opens libraries of CUDA by the names that the dynamic loader knows.

use libloading::Library;

/// The first of these that the loader finds.
pub(super) fn open(names: &[&str]) -> Option<Library> {
    // SAFETY: one of CUDA's libraries, whose initialisers do nothing that matters.
    names.iter().find_map(|name| unsafe { Library::new(*name) }.ok())
}
