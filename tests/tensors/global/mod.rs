//! Functions on global tensors: parallel layouts, windows, changes of layout and their gradients, split sequences, many boxings at once,
//! lengths that depend on values.

mod attention_split;
mod boxing_gradients;
mod dynamic_shape;
mod ids;
mod layout;
mod parallel;
mod together;
mod windows;
