//! oflow runs one Rust program on many devices as if they were one device.
//!
//! A program computes with *global tensors*. A global tensor has a logical shape, a placement (a mesh of ranks) and one SBP
//! per mesh axis: split `S(d)`, broadcast `B` or partial `P`. Each op declares how it may be sharded. For each call oflow
//! chooses a sharding, inserts the communication that it needs (*boxing*), and runs a kernel on each rank's shard.
//!
//! ```
//! use oflow::prelude::*;
//!
//! let _world = oflow::init()?; // rank and world from oflaunch; without a launcher: a world of one
//! let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 1), ("tp", 1)])?;
//! let x = randn([1024, 512], (&mesh, sbp![S(0), B]))?;
//! let w = randn([512, 256], (&mesh, sbp![B, S(1)]))?;
//! let y = x.matmul(&w)?.relu()?;
//! assert_eq!(format!("{y}"), "f32[1024, 256] [S(0), S(1)] on cpu[dp=1, tp=1]");
//! # Ok::<(), oflow::Error>(())
//! ```
//!
//! **The rule**: every rank issues the same ops on global tensors in the same order, also ranks outside of a tensor's
//! placement.
//!
//! # Where to start
//!
//! The [guide](docs::guide) leads through a first program, global tensors, SBP, boxing, the rule, autograd and running on several
//! ranks. Further pages: [running programs](docs::running), [boxing](docs::boxing) with its [gradients](docs::boxing_gradients)
//! and [comm records, reports and policies](docs::comm_trace), [less memory](docs::memory), [graphs](docs::graph), [data](docs::data), [metrics by step](docs::metrics), [checkpoints](docs::checkpoints), [GPUs](docs::cuda),
//! [ops of your own](docs::custom_ops), [ops in C++ and CUDA](docs::library_ops), [Python](docs::python) and
//! [coming from DTensor or OneFlow](docs::coming_from).
//!
//! # Functions by subject
//!
//! | subject | start at |
//! |---|---|
//! | the world | [`init`], [`World`]; for tests [`run_ranks`] |
//! | where tensors live | [`Placement`](placement::Placement), [`Device`](placement::Device), [`sbp!`], [`NdSbp`](sbp::NdSbp) |
//! | tensors from values | [`from_vec`](functional::from_vec), [`from_bytes`](functional::from_bytes), [`scalar_tensor`](functional::scalar_tensor); the seed of random ones [`manual_seed`], [`Generator`] |
#![doc = include_str!("functional/generated/subjects.md")]
//! | operators | `+ - * /` on tensors and numbers, [`eval!`] for expressions |
//! | elements | [`index`](Tensor::index), [`index_put`](Tensor::index_put), [`index_put_`](Tensor::index_put_) by [`TensorIndex`](functional::TensorIndex) |
//! | steps captured once | [`graph`] |
//! | modules | [`nn`] |
//! | between layouts | [`to_global`](Tensor::to_global), [`to_local`](Tensor::to_local), [`distribute`], [`box_many`], [`with_sbp`], [`with_grad_sbp`], [`pin_sbp`], [`keep_layouts`] |
//! | read values | [`item`](Tensor::item), [`to_vec`](Tensor::to_vec), [`to_vec_on`](Tensor::to_vec_on) |
//! | gradients | [`backward`](Tensor::backward), [`grad`](Tensor::grad), [`functional::grad`], [`vjp`](functional::vjp), [`jvp`](functional::jvp), [`jacobian`](functional::jacobian), [`no_grad`], [`no_sync`], [`apply_custom`], [`saved_tensors_hooks`], [`detect_anomaly`], [`gradcheck`](testing::gradcheck) |
//! | training | [`optim`], [`data`], [`metrics`], [`checkpoint`], [`autocast`], [`state`]; in less memory [`nn::zero`], [`nn::checkpoint`] |
//! | metrics by step, to files | [`log()`], [`metrics::Log`] |
//! | communication | [`report`], [`take_comm_trace`], [`boxing_policy`] |
//! | devices | [`synchronize`], [`memory_stats`], [`memory_report`], [`allow_tf32`]; new ones: [`backend::register`] |
//! | call by name ([all functions](docs::ops)), new ops and kernels | [`call`], [`functions`](functional::functions), [`list_called`](interpreter::list_called), [`ops::register`], [`libraries::load`], [`libraries::build_and_load`], [`backend::add_kernel`] |
//! | find your way in reports | [`name_scope`], [`report`], [`interpreter::list_called`] |
//! | where time goes | [`profile`], [`span`], [`mark_step`] |
//! | tests of ops | [`testing::conformance`] |
//!
//! `use oflow::prelude::*` imports what most programs need. Those who change oflow read `ARCHITECTURE.md` and
//! `docs/contributing` in the source tree.

// What `#[derive(OpParams)]` and `#[derive(Module)]` make names the crate from outside.
extern crate self as oflow;

pub mod backend;
pub mod boxing;
pub mod checkpoint;
pub mod context;
pub mod data;
pub mod functional;
pub mod graph;
pub mod interpreter;
pub mod libraries;
pub mod memory;
pub mod metrics;
pub mod nn;
pub mod ops;
pub mod optim;
pub mod placement;
pub mod plan;
pub mod prelude;
pub mod program;
pub mod sbp;
pub mod state;
pub mod tensor;
pub mod testing;
pub mod trace;
pub mod vm;

pub use checkpoint::{load_file, save_file};
pub use context::{
    EnterGuard, Generator, GeneratorState, Policy, Profile, Profiler, RankCtx, RankGenerators, World, boxing_policy,
    detect_anomaly, dry_run, dry_run_with, enable_grad, init, is_dry_run, keep_layouts, manual_seed, memory_report,
    memory_stats, no_grad, no_sync, pin_sbp, profile, rank_generators, reset_peak_memory, run_ranks, run_ranks_with,
    set_rank_generators, synchronize, with_grad_sbp, with_sbp,
};
pub use error::{CallSite, Error, ErrorKind, NameGuard, Result, name_scope};
pub use functional::{box_many, call, distribute, from_boxes};
pub use interpreter::{
    Advice, AutocastGuard, BackwardOptions, CommRecord, Moved, Report, ReportHint, ReportLine, apply_custom, autocast,
    report, saved_tensors_hooks, take_comm_trace,
};
pub use memory::MemoryStats;
pub use metrics::log;
pub use oflow_base::{error, host_hierarchy, intern, text};
pub use oflow_comm as comm;
pub use oflow_control as control;
pub use oflow_kernels as kernels;
pub use oflow_kernels::cuda::matmul::allow_tf32;
pub use oflow_kernels::{DType, Registered, Scalar};
pub use ops::Autocast;
pub use tensor::Tensor;
pub use trace::{mark_step, span};

/// The pages of the `docs` folder.
pub mod docs {
    /// A page of the `docs` folder. The links that it has to other pages lead to files where the page is read as a file, and
    /// here to modules: the first definition of a link counts.
    macro_rules! pages {
        ($($name:ident $file:literal $(+ $more:literal)?)*) => {$(
            #[doc = "[boxing]: crate::docs::boxing\n[boxing-gradients]: crate::docs::boxing_gradients"]
            #[doc = "[comm-trace]: crate::docs::comm_trace\n[checkpoints]: crate::docs::checkpoints\n[data]: crate::docs::data"]
            #[doc = "[cases]: crate::docs::cases\n[custom-ops]: crate::docs::custom_ops\n[cuda]: crate::docs::cuda\n[coming-from]: crate::docs::coming_from\n[graph]: crate::docs::graph\n[guide]: crate::docs::guide\n[library-ops]: crate::docs::library_ops\n[memory]: crate::docs::memory\n[metrics]: crate::docs::metrics\n[oneflow-ops]: crate::docs::oneflow_ops\n[ops]: crate::docs::ops\n[python]: crate::docs::python\n[reference]: crate::docs::ops\n[running]: crate::docs::running\n[timeline]: crate::docs::timeline\n[rust]: crate::docs::rust\n[layers]: crate::docs::layers\n"]
            #[doc = include_str!(concat!("../docs/", $file))]
            $(#[doc = include_str!($more)])?
            pub mod $name {}
        )*};
    }
    pages! {
        guide "guide.md"
        rust "rust.md"
        layers "layers.md"
        running "running.md"
        ops "ops.md" + "functional/generated/reference.md"
        boxing "boxing.md"
        boxing_gradients "boxing-gradients.md"
        comm_trace "comm-trace.md"
        memory "memory.md"
        timeline "timeline.md"
        slow "slow.md"
        graph "graph.md"
        checkpoints "checkpoints.md"
        data "data.md"
        watch "watch.md"
        metrics "metrics.md"
        cuda "cuda.md"
        cases "cases.md"
        custom_ops "custom-ops.md"
        library_ops "library-ops.md"
        python "python.md"
        coming_from "coming-from.md"
        oneflow_ops "oneflow-ops.md"
    }
}
