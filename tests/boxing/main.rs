//! Boxing: plans keep the logical value bit for bit, are cheapest, move the bytes that they say, and never deadlock, also beside
//! compute; measured costs; the choice of SBP signatures.

use oflow::memory::{Allocator, AllocatorOptions};
use std::sync::LazyLock;

mod boxes;
mod choice;
mod cost_model;
mod deadlock;
mod executor;
mod hosts;
mod many;
mod models;
mod optimal;
mod oracle;
mod overlap;
mod page;
mod processes;
mod ranks;
mod rendezvous;
mod replayed;
mod text;

/// What boxings take between their steps comes from here.
fn memory() -> &'static Allocator {
    static MEMORY: LazyLock<Allocator> = LazyLock::new(|| Allocator::cpu(AllocatorOptions::default()));
    &MEMORY
}
