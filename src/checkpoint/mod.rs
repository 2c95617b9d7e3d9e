//! Checkpoints: what a job keeps, in files that outlive it, for any number of ranks and any layout.
//!
//! Knows names, layouts, boxes and files. What is saved, things say themselves ([`crate::state::Stateful`]). Each rank writes
//! what the plan gives it ([`shares`]), which all compute alike from shapes and layouts; the files are safetensors. They meet
//! when all have written; then rank 0 writes the manifest and gives the folder its name, and they meet again, so that all
//! know what became of it. Loading reads the boxes that a rank needs, whoever wrote them. Start at [`CheckpointManager`].

mod convert;
mod cover;
mod file;
mod folder;
mod manager;
mod manifest;
mod meet;
mod plan;
mod read;
mod saved;
mod shared;
mod single;
mod write;

pub use convert::{ConvertOptions, Converted, convert};
pub use folder::{Found, latest, list, name_of};
pub use manager::{CheckpointManager, CheckpointOptions};
pub use manifest::{MANIFEST, Manifest, SavedFile, SavedGenerator, SavedPiece, SavedTensor, VERSION};
pub use plan::{GRANULE, Share, TensorSpec, boxes_of_run, shares, whole_layout};
pub use saved::{Checkpoint, LoadOptions, Loaded};
pub use single::{load_file, save_file};
