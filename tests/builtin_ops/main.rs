//! Built-in ops: each against PyTorch's numbers, every signature against one device, gradients against finite differences,
//! random numbers, indices, dtypes, plans, and calls by name. Ops that a program registers are in `tests/declarations`.

mod api;
mod cached;
mod dtypes;
mod golden;
mod golden_functions;
mod gradients;
mod indexing;
mod oneflow_signatures;
mod order;
mod plan;
mod rng;
mod signatures;
