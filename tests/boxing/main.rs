//! Boxing: plans keep the logical value bit for bit, are cheapest, move the bytes that they say, and never deadlock.

mod boxes;
mod deadlock;
mod executor;
mod hosts;
mod many;
mod models;
mod optimal;
mod oracle;
mod page;
#[path = "../common/page.rs"]
mod page_tables;
mod processes;
mod ranks;
mod rendezvous;
mod replayed;
mod text;
