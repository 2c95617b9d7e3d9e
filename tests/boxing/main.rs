//! Boxing: plans keep the logical value bit for bit, are cheapest, and move the bytes that they say.

mod executor;
mod optimal;
mod oracle;
mod replayed;
mod text;
