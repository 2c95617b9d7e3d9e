//! Tensors, local and global: semantics, views and backward, changes of layout, policies and receipts of boxings, generators, the
//! dispatch stream, transforms of functions.

mod aliasing;
mod generator;
mod global;
mod policy;
mod receipts;
mod semantics;
mod stream;
mod transforms;
