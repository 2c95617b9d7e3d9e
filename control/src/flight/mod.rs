//! The flight recorder of a rank: its last global ops and collectives, in memory that outlives the process.
//!
//! [`Recorder`] keeps the dispatch stream (ordinal and rolling hash) and writes one record an op into a `Ring`, which is
//! a file in the folder that `OFLOW_FLIGHT_DIR` names, mapped, so that the record of a killed or stopped rank is there too.
//! [`Flight`] is what the launcher, `oflow postmortem` and the heartbeats read from it. Texts are written once for each
//! place of use, not for each op.

#[doc(hidden)]
pub mod fuzz;
mod marks;
mod record;
mod recorder;
mod ring;

pub use marks::Marks;
pub use record::{CallRecord, Flight, OpRecord};
pub use recorder::{OpText, Recorder};
