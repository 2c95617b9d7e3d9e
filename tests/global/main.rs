//! Functions on global tensors: parallel layouts, windows, changes of layout and their gradients, split sequences, many boxings at once,
//! lengths that depend on values. One binary, because each takes four seconds to link.

#[path = "../common/mod.rs"]
mod common;

mod attention_split;
mod boxing_gradients;
mod counted;
mod ids;
mod layout;
mod parallel;
mod together;
mod windows;
