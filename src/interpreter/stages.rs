//! The way of a call: its stages, in their order.
//!
//! | stage | | in |
//! |---|---|---|
//! | rewrite | the call with other inputs, or other calls in its place | [`REWRITES`] |
//! | inputs | observers see the call; values and writes are checked | `observers`, `writes` |
//! | decide | key → plan of an earlier call; else inference, choice, plan | `asked`, `key`, `state`, `decide` |
//! | judge | observers see the plan; the boxing policy may refuse it | `observers`, `policy` |
//! | issue | random numbers are drawn; the call is numbered on all ranks | `issue` |
//! | run | boxings and kernels, on memory of the plan's buffers | `view`, `writes`, `run`, `boxing` |
//! | record | the node of the autograd graph, and what it saves | `record`, `saved` |
//! | tell | observers see the results, and may replace them | `observers`, `asked` |
//!
//! A layout op (`to_global` …) is decided, run and recorded in `layout`.

use super::asked;
use super::autocast::AUTOCAST;
use super::boxing::BoxingReason;
use super::cache::DispatchPlan;
use super::call::{Call, Outputs, Rewrite, Rewritten};
use super::capture::SYMBOLS;
use super::comm_trace::in_backward;
use super::decide::decide;
use super::dtype_lowering::DTYPE_LOWERING;
use super::issue::issue_and_run;
use super::key::key_of;
use super::layout;
use super::observers::{self, Issued};
use super::overwritten::KEEP_OVERWRITTEN;
use super::record::record;
use super::run::Boxed;
use super::state::planned;
use super::unshard::UNSHARD;
use super::writes::check_writes;
use crate::context::{RankCtx, here, here_as_rank};
use crate::error::Result;
use crate::ops::{LayoutOp, Withheld};
use crate::plan::Where;
use crate::tensor::Tensor;
use crate::trace::{self, What};
use smallvec::SmallVec;

/// Makes the table of rewrites, and the question that every call asks.
macro_rules! rewrites {
    ($($rewrite:ident),*) => {
        /// The rewrites of a call, in the order in which they are asked. A later one sees what an earlier one has made: a parameter that is
        /// stored split is cast where it lies, and gathered then.
        const REWRITES: &[Rewrite] = &[$($rewrite),*];

        /// Whether a rewrite may apply to the call.
        #[inline(always)]
        fn may_be_rewritten(call: &Call<'_>) -> bool {
            $(($rewrite.applies)(call))||*
        }
    };
}
rewrites!(SYMBOLS, AUTOCAST, DTYPE_LOWERING, UNSHARD, KEEP_OVERWRITTEN);

impl Call<'_> {
    /// Runs the call and returns its outputs.
    ///
    /// # Errors
    /// The op refuses its inputs or attributes, or a layout is not possible. The error names the call and its line.
    pub fn run(mut self) -> Result<Outputs> {
        match may_be_rewritten(&self) {
            false => run_final(&mut self),
            true => run_rewritten(self, 0),
        }
    }
}

/// Asks the rewrites from a number on, and runs what the call is then.
#[cold]
fn run_rewritten(mut call: Call<'_>, from: usize) -> Result<Outputs> {
    let Some(n) = (from..REWRITES.len()).find(|n| (REWRITES[*n].applies)(&call)) else { return run_final(&mut call) };
    let (owned, given) = match (REWRITES[n].rewrite)(&call)? {
        None => (None, None),
        Some(Rewritten::Outputs(outs)) => return Ok(outs),
        Some(Rewritten::Inputs(inputs)) => (Some(inputs), None),
        Some(Rewritten::Tensors(inputs, given)) => (Some(inputs), given),
    };
    let inputs: Option<SmallVec<[Option<&Tensor>; 4]>> =
        owned.as_ref().map(|all| all.iter().map(Option::as_ref).collect());
    let call = match &inputs {
        Some(inputs) => Call { inputs, given: given.as_ref().or(call.given), ..call },
        None => call,
    };
    run_rewritten(call, n + 1)
}

/// Runs a call whose inputs are final.
fn run_final(call: &mut Call<'_>) -> Result<Outputs> {
    call.recording = call.is_recorded();
    let begin = trace::begin();
    let done = stages(call).map_err(|e| e.in_call(|| call.short()).at(call.site));
    begin.end(call.site, || What::Call { op: call.op.name(), backward: in_backward() });
    done
}

/// All stages but the rewrites.
#[inline]
fn stages(call: &mut Call<'_>) -> Result<Outputs> {
    observers::before(call)?;
    call.check_values()?;
    check_writes(call)?;
    let mut outs = match call.op.layout {
        Some(what) => layout::run(call, what, BoxingReason::Asked(what.function()))?,
        None => run_op(call)?,
    };
    observers::made(call, &outs)?;
    if call.recording {
        asked::box_gradient(call, &mut outs)?;
    }
    observers::results(call, &mut outs)?;
    Ok(outs)
}

/// A change of layout of a captured program, for the reason that it had: all stages but rewrite. It is recorded if the call says so.
pub(super) fn run_captured_layout(call: &mut Call<'_>, what: LayoutOp, cause: BoxingReason) -> Result<Outputs> {
    observers::before(call)?;
    call.check_values()?;
    let mut outs = layout::run(call, what, cause)?;
    observers::made(call, &outs)?;
    observers::results(call, &mut outs)?;
    Ok(outs)
}

/// A call of a captured program, whose plan is made: all stages but rewrite and decide. It is recorded if the call says so.
#[inline(never)]
pub(super) fn run_captured(ctx: &RankCtx, call: &mut Call<'_>, decided: &DispatchPlan) -> Result<Outputs> {
    let place = call.place()?;
    observers::before(call)?;
    call.check_values()?;
    check_writes(call)?;
    let global = match place {
        Where::Global(p) => {
            observers::planned(call, &decided.plan, p)?;
            true
        }
        Where::Local(_) => false,
    };
    let mut boxed = Boxed::new();
    let numbered = global && decided.plan.communicates();
    let mut outs = issue_and_run(ctx, call, decided, (global, numbered), &mut boxed)?;
    observers::issued(call, &outs, &Issued { plan: Some(&decided.plan), boxed: &boxed, boxed_for: None })?;
    if call.recording {
        record_boxed(call, &boxed, &outs, decided.plan.withheld)?;
    }
    observers::made(call, &outs)?;
    observers::results(call, &mut outs)?;
    Ok(outs)
}

/// The stages from decide to record, of an op that kernels carry out.
fn run_op(call: &mut Call<'_>) -> Result<Outputs> {
    let place = call.place()?;
    let (ctx, asked) = match place {
        Where::Global(p) => (here_as_rank()?, asked::layout_of_result(call, p)?),
        Where::Local(_) => (here(), None),
    };
    let key = key_of(call, asked.as_ref());
    let decided = planned(&ctx, &key, || decide(&ctx, call, place, asked.as_ref()))?;
    let plan = &decided.plan;
    if plan.lengths > 0 {
        ctx.not_dry(&format!("call {}, whose result has a shape that depends on values", call.op.name()))?;
    }
    let global = match place {
        Where::Global(p) => {
            observers::planned(call, plan, p)?;
            true
        }
        Where::Local(_) => false,
    };
    let mut boxed = Boxed::new();
    let outs = issue_and_run(&ctx, call, &decided, (global, global), &mut boxed)?;
    observers::issued(call, &outs, &Issued { plan: Some(plan), boxed: &boxed, boxed_for: None })?;
    if call.recording {
        record_boxed(call, &boxed, &outs, plan.withheld)?;
    }
    Ok(outs)
}

/// Records a call with its inputs as they were boxed for the kernel.
#[inline]
fn record_boxed(call: &Call<'_>, boxed: &Boxed, outs: &Outputs, withheld: Withheld) -> Result<()> {
    let mut inputs: SmallVec<[Option<&Tensor>; 4]> = SmallVec::from_slice(call.inputs);
    for (input, boxed) in inputs.iter_mut().zip(boxed) {
        *input = boxed.as_ref().or(*input);
    }
    record(call, &inputs, outs, withheld)
}
