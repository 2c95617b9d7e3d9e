//! oflow runs one Rust program on many devices as if they were one device.
//!
//! A program is written against *global tensors*: a logical value, a placement (a mesh of ranks) and one SBP per mesh axis
//! (split, broadcast, partial). Every op declares how it may be sharded; the interpreter chooses a sharding for each call,
//! inserts the communication it needs ("boxing") and runs a kernel on each rank's shard.
//!
//! ```
//! use oflow::prelude::*;
//!
//! let _world = oflow::init()?; // rank and world from oflaunch; alone: a world of 1
//! let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 1), ("tp", 1)])?;
//! let x = randn([1024, 512], (&mesh, sbp![S(0), B]))?;
//! let w = randn([512, 256], (&mesh, sbp![B, S(1)]))?;
//! let y = x.matmul(&w)?.relu()?;
//! assert_eq!(format!("{y}"), "f32[1024, 256] [S(0), S(1)] on cpu[dp=1, tp=1]");
//! # Ok::<(), oflow::Error>(())
//! ```
//!
//! ARCHITECTURE.md tells the rooms and the way of one call; start reading code at [`functional`] (what users call),
//! [`ops`] (how an op is declared) or [`interpreter`] (how a call runs).

pub mod boxing;
pub mod checkpoint;
pub mod context;
pub mod data;
pub mod functional;
pub mod interpreter;
pub mod memory;
pub mod nn;
pub mod ops;
pub mod optim;
pub mod placement;
pub mod prelude;
pub mod sbp;
pub mod state;
pub mod tensor;
pub mod vm;

pub use checkpoint::{load_file, save_file};
pub use context::{
    EnterGuard, Policy, RankCtx, World, boxing_policy, enable_grad, init, manual_seed, memory_stats, no_grad, no_sync,
    pin_sbp, run_ranks, run_ranks_with, synchronize, with_sbp,
};
pub use error::{CallSite, Error, ErrorKind, Result};
pub use functional::{box_many, call, distribute, from_boxes};
pub use interpreter::{
    AutocastGuard, BackwardOptions, Receipt, Report, ReportLine, apply_custom, autocast, report, take_receipts,
};
pub use memory::MemoryStats;
pub use oflow_base::{error, intern, spread};
pub use oflow_comm as comm;
pub use oflow_control as control;
pub use oflow_kernels as kernels;
pub use oflow_kernels::cuda::matmul::allow_tf32;
pub use oflow_kernels::{DType, Scalar};
pub use ops::Autocast;
pub use tensor::Tensor;

/// Snippets of the pages in `docs`, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/boxing-gradients.md")]
pub struct BoxingGradientsPage;

#[cfg(doctest)]
#[doc = include_str!("../docs/cuda.md")]
pub struct CudaPage;

#[cfg(doctest)]
#[doc = include_str!("../docs/checkpoints.md")]
pub struct CheckpointsPage;
