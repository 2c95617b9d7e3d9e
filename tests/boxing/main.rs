//! Boxing: plans keep the logical value bit for bit, are cheapest, and move the bytes that they say.

mod executor;
mod models;
mod optimal;
mod oracle;
mod page;
mod replayed;
mod text;
