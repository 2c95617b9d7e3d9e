//! Plants faults in real jobs and judges them: what was reported, how fast, with which exit code, and what was left behind.
//!
//! `cargo xtask faults` runs the whole matrix, `launcher/tests/launcher/faults.rs` one run of each case. Knows `oflaunch` from
//! outside only: its command line, its events, its processes. Start at [`cases`], then [`matrix`].

pub mod attack;
pub mod calm;
#[path = "../../launcher/src/script/cargo_env.rs"]
pub mod cargo_env;
mod cases;
mod events;
pub mod job;
pub mod leftovers;
pub mod matrix;
mod port;

pub use cases::{Case, cases};
pub use events::{Event, Place, Report};
pub use job::Setup;
pub use oflow_base::Random;
pub use port::free_port;
