//! The flight recorder of a rank: its last global ops and collectives, in memory that outlives the process.
//!
//! [`Recorder`] numbers and hashes the dispatch stream and writes one record per op into a `Ring`: a memory-mapped file in the
//! folder `OFLOW_FLIGHT_DIR`, so that the records of a killed or stopped rank remain. [`Flight`] is what the launcher,
//! `oflow postmortem` and the heartbeats read from it. The text of a call is written once per line of the program, not per op.
//!
//! A crate of its own, because every global op writes a record: it is compiled for speed, the control plane is not.
//!
//! # The dispatch stream
//!
//! A rank numbers its global ops and keeps a rolling hash over them (`recorder.rs`): op, attributes with their values,
//! types, layouts, placement, file and line, all by content (`stream_key`). Every collective carries number and hash, which are compared
//! before data moves. Heartbeats carry marks of the hash at ordinals that any two ranks have in common (`marks.rs`), so
//! ranks that never communicate are compared too: the control service compares marks, asks two ranks that differ for
//! their records, and finds from the same heartbeats who waits for whom.
//!
//! A run of a graph has one entry, and one for each node for which ranks exchange something. Which node it has come to is one word of the
//! ring (`graph_run.rs`), so that a rank that dies or stalls in a kernel is named with its call and line.
//!
//! A collective over NCCL is recorded when it is issued, again when the GPU has started it, and again when the GPU has
//! finished it (by events). So a rank is in the oldest collective that has started, not in the one issued last.

#[doc(hidden)]
pub mod fuzz;
mod graph_run;
mod marks;
mod record;
mod recorder;
mod ring;
mod truncated;

pub use graph_run::{GraphNodes, GraphRun};
pub use marks::Marks;
pub use record::{CallRecord, Flight, NodeRecord, OpRecord, Saved};
pub use recorder::{OpText, Recorder};

/// Most ranks of a job.
pub const MAX_WORLD: usize = 1 << 20;
