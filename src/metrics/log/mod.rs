//! Logs of metrics: numbers by step, which rank 0 writes to files.
//!
//! A call keeps what it is given; a flush boxes the kept global tensors to rank 0, reads them together, and writes. `writer.rs` has the log; `value.rs`
//! says which values can be logged, `pending.rs` decides when a flush is due, alike on every rank; a format is a file: `jsonl.rs`, `csv.rs`,
//! `events.rs`.

mod csv;
mod events;
mod file;
mod files;
mod jsonl;
mod options;
mod pending;
mod row;
mod value;
mod writer;

pub use options::{Format, LogOptions, OverRanks};
pub use value::{LogValue, Logged};
pub use writer::{Log, flush_log, log};

#[cfg(test)]
mod tests;
