//! Checkpoints: the state of a training in files, which can be resumed on any number of ranks and in any layout.
//!
//! [`CheckpointManager`] saves and resumes. [`Checkpoint`] opens what was saved, and safetensors files of other programs.
//! [`save_file`] and [`load_file`] write and read one file of tensors. The page [checkpoints](crate::docs::checkpoints) describes the
//! contents, the files and the errors. Values are saved by implementing [`Stateful`](crate::state::Stateful).
//!
//! Each rank writes the part that a plan gives it ([`shares`]); all ranks compute the plan from shapes and layouts alone.
//!
//! # How it works
//!
//! [`Stateful`](crate::state::Stateful) values name their tensors and plain values. Plain values stand in the manifest,
//! in a notation of their own (`state/notation`). The plan assigns each rank ranges of its own shards. Each rank writes
//! its file (`write.rs`; in the background from a snapshot) and sends its result to the others (`meet.rs`): by a
//! collective, or over the control plane if the thread that writes sends it. Rank 0 makes the manifest from the shapes
//! and from the checksums in the headers of the files. Renaming the folder completes the checkpoint (`folder.rs`). Before
//! the first save of a job all ranks look for a mark that rank 0 has written, so hosts without a common folder are
//! reported at once (`shared.rs`).
//!
//! Loading checks that the saved boxes cover each tensor exactly once (`cover.rs`), reads the boxes that the shards of a
//! rank need (`read.rs`), and fills tensors in place. A rank whose read fails issues the same ops as the others, and all
//! ranks get the error at the end. Tensors on a GPU are read through pinned memory on the copy stream, which waits for
//! work issued before.

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
pub use folder::{CheckpointEntry, latest, list, name_of};
pub use lock::being_removed;
pub use manager::{CheckpointManager, CheckpointOptions};
pub use manifest::{MANIFEST, Manifest, SavedFile, SavedGenerator, SavedPiece, SavedSums, SavedTensor, VERSION};
pub use plan::{GRANULE, Share, TensorSpec, boxes_of_run, shares, whole_layout};
pub use saved::{Checkpoint, LoadOptions, Loaded};
pub use single::{load_file, save_file};
