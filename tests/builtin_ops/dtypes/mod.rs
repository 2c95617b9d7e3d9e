//! Dtypes that are no everyday ones: narrow integers, 8-bit floats, quantised numbers, and those that a program registers; what functions make
//! of integers, and of numbers of another kind than their tensors.

mod complex;
mod division;
mod float8;
mod integers;
mod means;
mod numbers;
mod quantized;
mod registered;
