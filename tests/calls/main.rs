//! Random calls with untamed sizes: each ends in a value or in an error that names the op and the caller's line.
//!
//! `OFLOW_CALLS=1000000 cargo test --release --test calls random -- --nocapture` makes that many calls;
//! `OFLOW_CALLS_SEED` changes the seed. A finding names its case: `OFLOW_CALLS_CASE=n` runs that one alone.

mod alike;
mod case;
mod found;
mod made;
mod parent;
mod threads;
