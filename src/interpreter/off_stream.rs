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
struct OffStream;

impl Observer for OffStream {
    fn moments(&self) -> Moments {
        Moments::BEFORE
    }
    fn before(&self, call: &Call<'_>) -> Result<()> {
        if call.op.layout.is_some() || matches!(call.place()?, Where::Global(_)) {
            return Err(Error::context(
                "the thread of a source makes no calls on global tensors: ranks would make them in different orders",
            )
            .help(
                "give local tensors, and make them global in the step; batches of an `oflow::data::Loader` are global",
            ));
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

/// Refuses such calls on this thread until the scope is dropped.
pub(crate) fn off_stream() -> impl Drop {
    let scope: Scope = observe(Rc::new(OffStream));
    scope
}
