//! The way of one call: checks → key → plan, from the cache or made → binding → handles → recording.
//!
//! What is done is decided in `plan/`, how it is done in `bind.rs`.

use super::alias;
use super::anomaly;
use super::autocast;
use super::bind::Run;
use super::boxing::{check_world, plan_cx};
use super::by_parts;
use super::cache::{DispatchPlan, planned, state};
use super::call::Call;
use super::gather;
use super::key::{key_of, with_runtime};
use super::layout;
use super::policy::{self, Cause};
use super::receipts::{ReportHint, in_backward};
use super::record::record;
use super::saved;
use super::watched;
use crate::context::{
    AskedSbp, DataCheck, RankCtx, asked_grad_sbp, asked_sbp, detecting, grad_enabled, here, here_as_rank, keeping,
    nothing_asked,
};
use crate::control::flight::OpText;
use crate::error::{Error, Result};
use crate::op;
use crate::ops::GivenValues;
use crate::placement::Placement;
use crate::plan::{Asked, Plan, Request, Step, Target, Where, hint_of, plan};
use crate::tensor::{LocalTensor, Tensor};
use oflow_kernels::{DType, Scalar};
use smallvec::{SmallVec, smallvec};

/// Outputs of a call.
pub type Outputs = SmallVec<[Tensor; 2]>;

impl Call<'_> {
    /// Runs the call and returns its outputs.
    ///
    /// Under autocast the inputs are cast first, by calls of their own. The plan depends on the dtypes that result, which are in
    /// its key; the mode itself is not.
    ///
    /// # Errors
    /// The op refuses its inputs or attributes, or a layout is not possible. The error names the call and its line.
    pub fn run(mut self) -> Result<Outputs> {
        if let Some(dtype) = autocast::wanted(&self) {
            return autocast::run_in(dtype, self);
        }
        if let Some(how) = by_parts::wanted(&self) {
            return by_parts::run(self, how);
        }
        if gather::wanted(&self) {
            return gather::run(self);
        }
        let mut all = self.inputs.iter().flatten().copied().chain(self.given);
        self.recording = grad_enabled() && all.any(|t| t.requires_grad());
        if self.recording
            && self.given.is_some()
            && let Some(kept) = alias::kept_inputs(&self).map_err(|e| e.in_call(|| self.short()).at(self.site))?
        {
            let inputs: SmallVec<[Option<&Tensor>; 4]> = kept.iter().map(Option::as_ref).collect();
            return Call { inputs: &inputs, ..self }.run();
        }
        let watched = watched::watching();
        let checked = match watched {
            true => watched::show(&self).and_then(|()| check(&self)),
            false => check(&self),
        };
        let mut outs = match (checked, self.op.layout) {
            (Err(e), _) => Err(e),
            (_, Some(what)) => layout::run(&self, what, Cause::Asked(what.function())),
            (_, None) => match self.place() {
                Ok(place) => execute(&mut self, place),
                Err(e) => Err(e),
            },
        };
        if let Ok(made) = &mut outs {
            if detecting()
                && let Err(e) = anomaly::look(&self, made)
            {
                outs = Err(e);
            } else if self.recording {
                self.ask_of_gradient(made)?;
            }
        }
        if watched
            && let Ok(made) = &mut outs
            && let Err(e) = watched::show_results(&self, made)
        {
            outs = Err(e);
        }
        outs.map_err(|e| e.in_call(|| self.short()).at(self.site))
    }

    /// Where a layout is asked of the gradient of output 0, backward comes past a boxing to it.
    #[inline]
    fn ask_of_gradient(&self, outs: &mut Outputs) -> Result<()> {
        let Some(g) = outs.first().and_then(|out| out.global()).filter(|_| self.given.is_none()) else { return Ok(()) };
        let Some(asked) = asked_grad_sbp(self.op, g.placement.axes()) else { return Ok(()) };
        if !outs[0].requires_grad() {
            return Ok(());
        }
        let attrs = smallvec![g.placement.clone().into(), g.sbp.clone().into(), asked.sbp.clone().into()];
        let _free = nothing_asked();
        let boxed = Call::of(op!("to_global")?, &[Some(&outs[0])], attrs, smallvec![], self.site).run1();
        outs[0] = boxed.map_err(|e| {
            let (by, sbp, why) = (asked.site, &asked.sbp, e.message());
            Error::sbp(format!("the gradient cannot be {sbp}, which `with_grad_sbp` at {by} asks for: {why}"))
                .in_call(|| self.short())
                .at(self.site)
                .help("ask for a layout that a tensor of the result's shape and placement can have, around that call alone")
        })?;
        Ok(())
    }
}

/// What every call is checked for, also one whose plan is known: the values of its runtime attributes, which no plan has
/// seen, and what it writes.
#[inline]
fn check(call: &Call<'_>) -> Result<()> {
    // A wrong number of runtime attributes is refused by inference.
    if let Some(check) = &call.op.values
        && call.runtime.len() == call.op.sig.runtime.len()
    {
        let dtypes: SmallVec<[Option<DType>; 4]> = call.inputs.iter().map(|t| t.map(|t| t.dtype())).collect();
        check(&GivenValues { op: call.op, dtypes: &dtypes, attrs: &call.attrs, runtime: &call.runtime })?;
    }
    if alias::writes(call) { alias::check(call) } else { Ok(()) }
}

/// Fills the seed and ordinal that a random op was not given. Global ops advance the global generator on every rank, also
/// on those outside the placement.
#[inline]
fn draw(ctx: &RankCtx, call: &mut Call<'_>, global: bool) {
    if !call.op.traits.random {
        return;
    }
    let (Some(s), Some(o)) = (call.op.sig.runtime_attr("seed"), call.op.sig.runtime_attr("ordinal")) else { return };
    if call.runtime[o] == Scalar::Int(-1) {
        let (seed, ordinal) = ctx.draw(global);
        call.runtime[s] = Scalar::Int(seed as i64);
        call.runtime[o] = Scalar::Int(ordinal as i64);
    }
}

/// The layout that the program asks of this call's result. A call that makes a tensor states it itself; one that writes in
/// place cannot change it.
#[inline]
fn asked(call: &Call<'_>, placement: &Placement) -> Result<Option<AskedSbp>> {
    let Some(asked) = asked_sbp(call.op, placement.axes()).filter(|_| call.target.is_none()) else { return Ok(None) };
    match call.given.and_then(|g| g.global()) {
        None => Ok(Some(asked)),
        Some(g) if asked.op.is_some() || g.sbp == asked.sbp => Ok(None),
        Some(g) => Err(Error::sbp(format!(
            "the result is written in place into a tensor that is {}, but `with_sbp` at {} asks for {}",
            g.sbp, asked.site, asked.sbp
        ))
        .help("use the op that returns a new tensor")),
    }
}

/// The plan of a call that is not in the cache.
#[cold]
fn decide(ctx: &RankCtx, call: &Call<'_>, place: Where<'_>, asked: Option<&AskedSbp>) -> Result<DispatchPlan> {
    let _span = tracing::debug_span!("dispatch_miss", op = call.op.name()).entered();
    call.op.check_there()?;
    let device = match place {
        Where::Local(device) => Some(device),
        Where::Global(p) => {
            check_world(ctx, p)?;
            p.position(ctx.rank()).map(|_| p.device())
        }
    };
    if let Some(device) = device {
        ctx.device(device)?;
    }
    let plan = described(call, place, asked, |r| plan(&plan_cx(ctx), r))?;
    tracing::trace!(op = call.op.name(), %plan, "plan");
    let text = match place {
        Where::Local(_) => OpText::default(),
        Where::Global(p) => {
            note_hint(ctx, call, &plan, p);
            OpText::new(text_of(call, &plan, p))
        }
    };
    Ok(DispatchPlan { plan, text })
}

/// Keeps for the report that the call, which moves nothing, makes a P result that is dear to reduce. In backward nobody can ask
/// for another. Advice never fails a call: where candidates that the call does not take cannot be priced there is none.
fn note_hint(ctx: &RankCtx, call: &Call<'_>, plan: &Plan, placement: &Placement) {
    let partial = plan.out_globals().next().is_some_and(|g| g.sbp.has_partial());
    let moves = plan.steps.iter().any(|s| matches!(s, Step::Box(_)));
    if in_backward() || moves || !partial {
        return;
    }
    if let Ok(Some(hint)) = described(call, Where::Global(placement), None, |r| hint_of(r, placement)) {
        state(ctx).receipts.hint(ReportHint::new(call.site, call.short(), hint.to_string()));
    }
}

/// Hands the call to `f` as its plan sees it.
pub(super) fn described<R>(
    call: &Call<'_>,
    place: Where<'_>,
    asked: Option<&AskedSbp>,
    f: impl FnOnce(&Request<'_>) -> R,
) -> R {
    let (runtime_kinds, inputs) = call.described();
    f(&Request {
        op: call.op,
        attrs: &call.attrs,
        runtime_kinds: &runtime_kinds,
        inputs: &inputs,
        place,
        target: match call.target {
            Some(Target::Global(_, sbp)) => Some(sbp),
            _ => None,
        },
        given: call.given.and_then(|g| g.type_ref()),
        keep: keeping(),
        asked: asked.map(|a| Asked {
            sbp: &a.sbp,
            by: if a.op.is_some() { "pin_sbp" } else { "with_sbp" },
            site: a.site,
        }),
    })
}

/// The call in short form. One that makes a tensor has nothing but its result that says which.
fn text_of(call: &Call<'_>, plan: &Plan, placement: &Placement) -> String {
    match (call.target, plan.out_globals().next()) {
        (Some(Target::Global(_, sbp)), Some(out)) => {
            format!("{}({}) on {placement} as {sbp}", call.op.name(), out.ty)
        }
        _ => call.short(),
    }
}

/// The result of a view op on a local tensor: another window onto its memory. None where strides cannot say it, in memory
/// or in the elements of the base; then the kernel copies.
fn local_view(call: &Call<'_>, plan: &Plan) -> Result<Option<Tensor>> {
    let (None, Some(view)) = (call.given, &call.op.view) else { return Ok(None) };
    let (Some(Some(source)), [made], [Step::Kernel(step)]) =
        (call.inputs.first(), plan.outputs.as_slice(), plan.steps.as_slice())
    else {
        return Ok(None);
    };
    let Some(ty) = &plan.buffers[made.index()].local else { return Ok(None) };
    // A result without elements has no kernel, and is a view all the same.
    let attrs = step.kernel.as_ref().map_or(&call.attrs, |k| &k.attrs);
    let (offset, strides) = source.place_in_base();
    let window = |input: &LocalTensor| {
        let see = |strides: &[isize]| view(input.dims(), strides, attrs, &ty.ty.shape);
        let memory = see(&input.strides)?;
        let place = if strides == input.strides { memory.clone() } else { see(&strides)? };
        // Without elements nothing is addressed, and the place may lie outside.
        let by = if ty.ty.shape.contains(&0) { 0 } else { memory.0 };
        Some(input.window(ty, by, memory.1).map(|window| (window, place)))
    };
    let Some((window, place)) = source.with_data(|l| l.and_then(window))?.transpose()? else { return Ok(None) };
    let place = ((offset as isize + place.0) as usize, place.1);
    Ok(Some(Tensor::view_of(source, window, place, grad_enabled(), call.site)))
}

/// Runs a call by its plan, which is made at the first call of its kind.
fn execute(call: &mut Call<'_>, place: Where<'_>) -> Result<Outputs> {
    let placement = match place {
        Where::Global(p) => Some(p),
        Where::Local(_) => None,
    };
    let (ctx, asked) = match placement {
        Some(p) => (here_as_rank()?, asked(call, p)?),
        None => (here(), None),
    };
    let key = key_of(call, asked.as_ref());
    let decided = planned(&ctx, &key, || decide(&ctx, call, place, asked.as_ref()))?;
    let plan = &decided.plan;
    if plan.lengths > 0 {
        ctx.not_dry(&format!("call {}, whose result has a shape that depends on values", call.op.name()))?;
    }
    let tag = match placement {
        Some(p) => {
            policy::check_plan(call, plan, p)?;
            if plan.hands_on_numbers {
                plan.check_numbers(&call.runtime)?;
            }
            draw(&ctx, call, true);
            let key = with_runtime(plan.stream_key, &call.runtime);
            Some(ctx.next_call(call.op.name(), key, call.site, &decided.text))
        }
        None => {
            draw(&ctx, call, false);
            if call.op.view.is_some()
                && let Some(view) = local_view(call, plan)?
            {
                saved::list(call, std::slice::from_ref(&view))?;
                if call.recording {
                    record(call, call.inputs, std::slice::from_ref(&view), plan.withheld)?;
                }
                return Ok(smallvec![view]);
            }
            None
        }
    };
    alias::begin_write(call, placement.is_some());
    let mut run = Run::new(&ctx, call, plan, tag.as_ref());
    let done = plan.steps.iter().enumerate().try_for_each(|(n, step)| match step {
        Step::Kernel(k) => run.kernel(n, k),
        Step::Box(b) => run.boxing(n, b),
        Step::Assign(from) => run.assign(n, *from),
        Step::Agree(a) => run.agree(n, a),
        Step::Settle(s) => run.settle(n, s),
        Step::Window(w) => run.windows(n, w),
    });
    // Also when a step has failed: what the call remembered of a tensor that it was writing is of no value.
    alias::end_write(call);
    done?;
    if ctx.data_check() == DataCheck::All {
        anomaly::look_at_partials(call, plan, &run.boxed)?;
    }
    let outs = made(call, plan, &mut run)?;
    saved::list(call, &outs)?;
    if call.recording {
        // As they were boxed for the kernel.
        let mut inputs: SmallVec<[Option<&Tensor>; 4]> = SmallVec::from_slice(call.inputs);
        for (input, boxed) in inputs.iter_mut().zip(&run.boxed) {
            *input = boxed.as_ref().or(*input);
        }
        record(call, &inputs, &outs, plan.withheld)?;
    }
    Ok(outs)
}

/// The handles of what a call has made.
fn made(call: &Call<'_>, plan: &Plan, run: &mut Run<'_>) -> Result<Outputs> {
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
