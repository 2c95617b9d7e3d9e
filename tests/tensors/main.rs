//! Tensors, local and global: semantics, views and backward, changes of layout, policies and comm records of boxings, generators, the
//! dispatch stream, transforms of functions.

mod aliasing;
mod comm_trace;
mod generator;
mod global;
mod graph_communication;
mod graph_exchanges;
mod graph_fusion;
mod graph_gradients;
mod graph_passes;
mod graph_repeat;
mod graphs;
mod policy;
mod semantics;
mod stream;
mod transforms;
