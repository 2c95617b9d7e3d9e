//! Timeline of a rank: which thread did what from when to when. Start with `event.rs`.
//!
//! Places that do something worth seeing ask `begin` for the time and tell `Begin::end` what they did. While no session records,
//! `begin` reads one word and nothing else happens. While one does, an event goes into the buffer of its thread (`lane.rs`). A thread of the
//! `Collector` (`collector.rs`) of the rank takes the buffers ten times a second and hands the events to its sessions: one that writes
//! a file for Perfetto (`file.rs`, `perfetto.rs`), one that adds times up (`totals.rs`), one for people who watch the job (`live.rs`).
//!
//! A rank is an `Owner`: ranks may be threads of one process. Entering its context makes it the owner of what the thread does; threads that
//! a rank starts are told (`adopt`). What a thread without a context does has owner 0.
//!
//! This room knows boxing plans, to tell what moved; it knows no tensors, and nothing of the control plane.

mod collector;
mod event;
mod file;
mod lane;
mod live;
mod perfetto;
mod record;
mod totals;

pub(crate) use collector::{Owner, Session, Steps, step};
pub(crate) use event::{Boxed, Collective, Event, Moved, What};
pub(crate) use file::{Clock, TraceFile, TraceInfo};
pub(crate) use lane::{StreamLane, adopt, owner};
pub(crate) use live::LiveTotals;
pub(crate) use record::{Begin, begin, happened};
pub use record::{Span, mark_step, span};
pub use totals::{Batches, Busy, Split, Totals};

#[cfg(test)]
mod tests;
