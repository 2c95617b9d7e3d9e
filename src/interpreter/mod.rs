//! Running calls: local, global, autograd around both; the dispatch cache; boxing; reading; backward.
//!
//! Knows ops, plans and devices; knows nothing of modules or optimizers. The way of one call starts at [`Call::run`].
//!
//! # The way of one call
//!
//! 1. The call must run somewhere: all inputs are local on one device, or all are global on one placement. Anything else
//!    is an error that says how to move the inputs. A layout op goes to `layout/`, which carries it out.
//! 2. Rewrites come first. Autocast casts float inputs; an op on complex numbers may become several calls on real parts;
//!    a parameter that is stored split is boxed to the layout in which calls read it.
//! 3. The call becomes a key: the op, its plan attributes, the ids of the interned input types, which inputs require a
//!    gradient, the grad mode, a given output, the requested layout, the kinds of the numbers among the arguments, and
//!    the generation of the op registry. Each part has a tag or a length, so two different calls never have the same key.
//!    Values of runtime attributes (a scalar operand, a seed) are not part of the key (I7).
//! 4. The key finds a plan in the cache of the rank. If there is none, the call is described without its data and planned
//!    ([`crate::plan`]).
//! 5. Binding gives memory to the numbered buffers of the plan, step by step. Inputs are read where their handles have
//!    them; they are not copied. The boxed copy of an input is kept on its handle until the value, or its place in the
//!    autograd graph, changes, or until [`Tensor::clear_reshard_cache`](crate::Tensor::clear_reshard_cache) drops it. A buffer that a
//!    step has made is freed after its last use.
//! 6. The vm gets an instruction for each step: a kernel or a boxing, with views and the storages that it reads and
//!    writes. The CPU runs it at once. An instruction is a large struct, so binding fills it in place.
//! 7. Outputs become handles. If an input requires a gradient, the call is recorded as a node: the op, its attributes,
//!    its edges, and the tensors that its gradient rule declares to read.
//!
//! A warm call allocates nothing. Handles return to a pool of the thread, storages return to the free lists of the
//! allocator with their counters, and shapes and keys are stored inline.
//!
//! # Around a call
//!
//! **Policies** are checked when a boxing is about to run. They need its plan and the mode of the thread, so they are
//! part of no key and cannot make a cached plan stale. Inputs are checked before the call is issued, and remembered boxed
//! copies are checked too, so all ranks decide alike. Each boxing is made on behalf of a `BoxingReason`, which errors and
//! comm records name.
//!
//! **Lists of calls**: [`list_called`] returns which ops a closure calls on global tensors, with the signatures that
//! their plans have chosen. A call that nobody lists pays nothing for it.
//!
//! **Anomalies**: under [`detect_anomaly`](crate::detect_anomaly) each call looks at the results that it has made on this
//! rank, and returns an error for a NaN, with the op and its line. Gradient ops are calls with the line of their forward
//! call, so backward needs no code for this.
//!
//! **Autocast** is a mode of the thread, like `no_grad`. Casts of inputs are calls of their own, and the key has the
//! dtypes that result, so the mode is not part of the key. Backward and lowerings run without the mode. Where an op
//! promotes its inputs, each gradient gets the dtype of its input. Contributions to the gradient of a value that was cast
//! from f32 are added in f32. A P(sum) value may be widened as it is; a P(sum) value in f32 is reduced before it is
//! rounded to fewer bits.
//!
//! **A requested layout** ([`with_sbp`](crate::with_sbp), [`pin_sbp`](crate::pin_sbp)) concerns output 0 of one call;
//! `src/boxing/choice` says how it enters the choice. Backward and lowerings run under `nothing_asked`.
//! [`with_grad_sbp`](crate::with_grad_sbp) requests the layout of the gradient of a result: a `to_global` to the layout
//! that the result already has follows the call, and the `grad_sbp` of that `to_global` is the requested layout.
//!
//! **Capture** ([`crate::graph`]): while a graph is captured, the first rewrite puts tensors without data in the place of those of the
//! program, an observer turns each call and boxing into a node of a [`crate::program::Program`], and `replay.rs` runs such a program with
//! the plans that its signatures say.
//!
//! # Gradients
//!
//! Each op has one gradient rule, a program over the opaque values of a `GradCtx`. The rule calls ops, and functions of
//! the table, which [`crate::functional`] offers to the interpreter. The rule of an elementwise op is derived from its
//! expression, as an op of its own, which again has a derivative. Gradients that a program supplies are checked against
//! the type of their tensor in one file, `supplied.rs`.
//!
//! A gradient has an nd-SBP of its own. Through a boxing on one placement it passes as it is. Between placements it goes
//! to the dual of the source's layout, or to a layout that costs less (`way_back` in `layout/back.rs`; the page
//! [gradients of boxings](crate::docs::boxing_gradients) has the rule and the cases). The gradient of a leaf is boxed to
//! the leaf's layout when its last contribution arrives.
//!
//! Backward is one engine over opaque values (`engine.rs`), which takes the nodes in falling order of creation.
//! `Node::new` draws the ordinal of a node after its edges exist, so a node is younger than the nodes that its edges lead
//! to. A node that no gradient has reached still settles its edges, so a leaf is complete when nothing more can arrive,
//! whatever the rules leave out. Dropping a graph puts its nodes in a queue, so a long chain needs no deep stack. The
//! tensors that backward returns (`grad()`, retained gradients) have memory of their own, or are copied on the first
//! write.
//!
//! No edge of the graph is a closure, except those of [`apply_custom`], which have the name that the user gave.

mod anomaly;
mod asked;
mod autocast;
mod backward;
mod boxing;
mod cache;
mod call;
mod call_log;
mod capture;
mod comm_trace;
mod copy;
mod cross_device;
mod custom;
mod decide;
mod dtype_lowering;
mod dynamic_shape;
mod emit;
mod engine;
mod grad_ctx;
mod grad_dtype;
mod graph_check;
mod graph_run;
mod halo;
mod hooks;
mod host_object;
mod in_place;
mod issue;
mod key;
mod layout;
mod modes;
mod node;
mod observers;
mod op_call;
mod overwritten;
mod planned;
mod policy;
mod program_builder;
mod program_gradient;
mod read;
mod recompute;
mod record;
mod repeat_run;
mod replay;
mod run;
mod saved;
mod source_thread;
mod stages;
mod state;
mod supplied;
mod unshard;
mod view;
mod writes;

pub use crate::plan::Target;
pub use autocast::{AutocastGuard, autocast};
pub use backward::BackwardOptions;
pub(crate) use backward::{backward, grad};
pub use cache::{CACHE_LIMIT, DispatchCache, DispatchPlan};
pub use call::{Call, IntoValues, Outputs};
pub(crate) use call::{HostNumbers, first};
pub use call_log::{Called, list_called};
pub(crate) use capture::{
    Capture, Captured, HostCalls, Repetition, capture, capture_in_progress, draw_for_capture, guarded, host_of_capture,
    in_capture, is_capturing, note_assigned, note_no_gradient, outside_capture,
};
pub use comm_trace::{
    Advice, COMM_TRACE_LIMIT, CommRecord, DataLine, Measured, Moved, RankTime, Report, ReportHint, ReportLine,
    WorkLine, report, take_comm_trace,
};
pub use copy::local_bytes;
pub use custom::apply_custom;
pub(crate) use emit::Functions;
pub(crate) use graph_run::GraphRuns;
pub use hooks::{WatchGuard, watch_calls, watch_results};
pub(crate) use host_object::{HostObject, HostSource, address_of};
pub(crate) use layout::compare_replicas;
pub use layout::from_bytes;
pub use modes::modes;
pub use op_call::OpCall;
pub(crate) use planned::{ArenaRecord, PlanRecord};
pub use planned::{ArenaSize, CudaGraphs, GraphPlan, Living};
pub(crate) use program_gradient::{call_again, check_differentiable, check_outputs};
pub use read::{logical_bytes, logical_bytes_on};
pub use recompute::{RecomputeGuard, recompute};
pub use saved::saved_tensors_hooks;
pub use source_thread::{SourceGuard, source_thread};
pub use state::cache;
pub(crate) use supplied::check_assigned;
