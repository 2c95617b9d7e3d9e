//! Checkpoints: the state of a training in files, which can be resumed on any number of ranks and in any layout.
//!
//! [`CheckpointManager`] saves and resumes. [`Checkpoint`] opens what was saved, and safetensors files of other programs.
//! [`save_file`] and [`load_file`] write and read one file of tensors. The page [checkpoints](crate::docs::checkpoints) describes the
//! contents, the files and the errors. Values are saved by implementing [`Stateful`](crate::state::Stateful).
//!
//! Each rank writes the part that a plan gives it ([`shares`]); all ranks compute the plan from shapes and layouts alone.

mod access;
mod convert;
mod cover;
mod file;
mod folder;
mod lock;
mod manager;
mod manifest;
mod meet;
mod plan;
mod read;
mod saved;
mod shared;
mod single;
mod sums;
mod write;

pub use convert::{ConvertOptions, Converted, convert};
pub use folder::{Found, latest, list, name_of};
pub use manager::{CheckpointManager, CheckpointOptions};
pub use manifest::{MANIFEST, Manifest, SavedFile, SavedGenerator, SavedPiece, SavedSums, SavedTensor, VERSION};
pub use plan::{GRANULE, Share, TensorSpec, boxes_of_run, shares, whole_layout};
pub use saved::{Checkpoint, LoadOptions, Loaded};
pub use single::{load_file, save_file};
