//! Carries out the steps of a plan on a call's tensors.

use super::anomaly;
use super::call::{Call, Outputs};
use super::run::Run;
use super::writes::{begin_write, end_write};
use crate::comm::Tag;
use crate::context::{DataCheck, RankCtx};
use crate::error::Result;
use crate::plan::{Plan, Step};
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// The forms in which inputs were boxed for a call, by number; shorter than the inputs where no later one is boxed.
pub(super) type Boxed = SmallVec<[Option<Tensor>; 4]>;

/// Carries out the plan of a call. Returns the outputs, and the inputs that were boxed.
pub(super) fn carry_out(ctx: &RankCtx, call: &Call<'_>, plan: &Plan, tag: Option<&Tag>) -> Result<(Outputs, Boxed)> {
    begin_write(call, tag.is_some());
    let mut run = Run::new(ctx, call, plan, tag);
    let done = plan.steps.iter().enumerate().try_for_each(|(n, step)| match step {
        Step::Kernel(k) => run.kernel(n, k),
        Step::Box(b) => run.boxing(n, b),
        Step::Assign(from) => run.assign(n, *from),
        Step::ExchangeLength(a) => run.exchange_length(n, a),
        Step::Rebalance(s) => run.rebalance(n, s),
        Step::Halo(w) => run.halo(n, w),
    });
    // Also when a step has failed: what the call remembered of a tensor that it was writing is of no value.
    end_write(call);
    done?;
    if ctx.data_check() == DataCheck::All {
        anomaly::look_at_partials(call, plan, &run.boxed)?;
    }
    let outs = handles(call, plan, &mut run)?;
    Ok((outs, run.boxed))
}

/// The handles of what a call has made.
fn handles(call: &Call<'_>, plan: &Plan, run: &mut Run<'_>) -> Result<Outputs> {
    let mut outs = Outputs::new();
    if let Some(g) = call.given {
        outs.push(g.clone());
        return Ok(outs);
    }
    for (o, id) in plan.outputs.iter().enumerate() {
        let local = run.output(o)?;
        match (run.global(*id), local) {
            (Some(g), local) => {
                let out = Tensor::from_shard(g, local);
                if call.op.view.is_some() {
                    out.mark_global_view();
                }
                outs.push(out);
            }
            (None, Some(local)) => outs.push(Tensor::from_local(local)),
            (None, None) => {}
        }
    }
    Ok(outs)
}
