//! What is measured on cores that nothing else uses, or takes them away on purpose: one test after the other, in a program of their
//! own beside which cargo runs no other.

mod bound;
mod calibrate;
#[path = "../common/mod.rs"]
mod common;
mod waits;

common::test_threads!(c"1");
