//! A rank as a context: its number, communicator, control client, devices, random generators and the stream of global ops.
//!
//! A rank is a context, not a process: eight ranks are eight processes, or eight threads of a test. A thread enters a context
//! with
//! [`init`] or [`RankCtx::enter`]. Using a global tensor on a thread without a context is an error; local tensors need none. A
//! dry run ([`dry_run`]) is a context without data and without other ranks.

mod capture;
mod data_check;
mod dry;
mod hosts;
mod init;
mod live;
mod memory;
mod modes;
mod moments;
mod placement;
mod policy;
mod profile;
mod random;
mod rank;
mod recorded;
mod timeline;

pub(crate) use capture::{generator_of_seed, symbolic_seed};
pub(crate) use data_check::DataCheck;
pub use dry::{dry_run, dry_run_with};
pub use init::{World, init, run_ranks, run_ranks_with};
pub use memory::{memory_report, memory_stats, reset_peak_memory};
pub(crate) use modes::runs_closures;
pub(crate) use modes::{
    AskedSbp, FromNumber, asked_grad_sbp, asked_sbp, described, inner_calls, keeping, nothing_asked, set_autocast,
    undetected,
};
pub use modes::{
    ModeGuard, PinGuard, autocast_mode, detect_anomaly, enable_grad, grad_enabled, is_no_sync, keep_layouts, no_grad,
    no_sync, pin_sbp, set_grad_enabled, with_grad_sbp, with_sbp,
};
pub(crate) use moments::{Moments, is_observed, observe_by_scopes};
pub(crate) use policy::check_collective;
pub use policy::{Policy, PolicyGuard, boxing_policy, policy};
pub use profile::{Profile, Profiler, profile};
pub use random::{Generator, GeneratorState, RankGenerators, manual_seed, rank_generators, set_rank_generators};
pub use rank::{EnterGuard, RankCtx, current, current_rank, is_dry_run, synchronize};
pub(crate) use rank::{enter_outer, here, here_as_rank, no_context, origin_here};
pub use timeline::{trace_file_name, trace_steps};
