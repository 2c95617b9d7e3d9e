//! The flight recorder of a rank: its last global ops and collectives, in memory that outlives the process.
//!
//! [`Recorder`] numbers and hashes the dispatch stream and writes one record per op into a `Ring`: a memory-mapped file in the
//! folder `OFLOW_FLIGHT_DIR`, so that the records of a killed or stopped rank remain. [`Flight`] is what the launcher,
//! `oflow postmortem` and the heartbeats read from it. The text of a call is written once per line of the program, not per op.
//!
//! A crate of its own, because every global op writes a record: it is compiled for speed, the control plane is not.

#[doc(hidden)]
pub mod fuzz;
mod marks;
mod record;
mod recorder;
mod ring;
mod truncated;

pub use marks::Marks;
pub use record::{CallRecord, Flight, OpRecord, Saved};
pub use recorder::{OpText, Recorder};

/// Most ranks of a job.
pub const MAX_WORLD: usize = 1 << 20;
