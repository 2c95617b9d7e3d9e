//! Dtypes that are no everyday ones: narrow integers, 8-bit floats, quantised numbers, and those that a program registers.

#[path = "../common/mod.rs"]
mod common;
mod complex;
mod float8;
mod integers;
mod quantized;
mod registered;
