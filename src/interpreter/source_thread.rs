//! Calls of a helper thread of a rank, beside the thread that issues the rank's ops.

use super::call::Call;
use super::observers::{Observer, Scope, observe};
use crate::context::Moments;
use crate::error::{Error, Result};
use crate::plan::Where;
use oflow_kernels::Scalar;
use std::rc::Rc;

/// Refuses what takes a place in an order that all ranks, or all runs, must have alike: calls on global tensors, and draws from the rank's
/// generators.
struct SourceThread;

impl Observer for SourceThread {
    fn moments(&self) -> Moments {
        Moments::BEFORE
    }
    fn before(&self, call: &Call<'_>) -> Result<()> {
        if call.op.layout.is_some() || matches!(call.place()?, Where::Global(_)) {
            return Err(Error::context(
                "the thread of a source makes no calls on global tensors: ranks would make them in different orders",
            )
            .help("give local tensors, and make them global in the step; batches of a `Loader` are global"));
        }
        let undrawn = |i: usize| call.runtime.get(i) == Some(&Scalar::Int(-1));
        if call.op.traits.random && call.op.sig.runtime_attr("ordinal").is_some_and(undrawn) {
            return Err(Error::context(
                "the thread of a source does not draw from the generators of the rank: runs would differ",
            )
            .help("give the call a `Generator` of its own"));
        }
        Ok(())
    }
}

/// Ends a [`source_thread`] when dropped.
#[must_use = "calls are refused until the guard is dropped: give it a name, `let _guard = …` (`let _ = …` drops it at once), or call `.run(|| …)`"]
pub struct SourceGuard {
    _scope: Scope,
}

crate::context::runs_closures!(SourceGuard);

/// Makes this thread one that makes inputs for the runs of a graph beside the thread that runs it, until the guard is dropped: calls on global
/// tensors and draws from the rank's generators are errors, because their order is that of the rank's own thread. The threads of a session are
/// such; another one enters the rank's context first.
///
/// ```
/// use oflow::graph::source_thread;
/// use oflow::{Generator, prelude::*};
/// let _guard = source_thread();
/// assert!(rand([2], Device::Cpu).is_err());
/// assert!(rand([2], Device::Cpu.generator(&Generator::new(1))).is_ok());
/// ```
pub fn source_thread() -> SourceGuard {
    SourceGuard { _scope: observe(Rc::new(SourceThread)) }
}
