//! Writes in place: which tensors a call writes, whether it may, and what it must copy first.
//!
//! Tensor handles know which tensors share memory (`tensor/alias.rs`); this file checks calls. Every call that writes passes
//! here: methods, calls by name, ops of other crates. A refusal depends on the program alone, not on a rank's data, and is raised
//! before anything is issued (I18).

use super::bind::contiguous;
use super::call::Call;
use super::record::saves;
use crate::context::{RankCtx, grad_enabled, inner_calls};
use crate::error::{Error, Result};
use crate::ops::{Grad, Op};
use crate::tensor::{Body, LocalTensor, Made, Refusal, Tensor};
use smallvec::SmallVec;

/// After a call that writes in place: drops the boxed and cast forms of the written tensors that the call itself made, because
/// they hold the old values.
#[inline]
pub(super) fn end_write(call: &Call<'_>) {
    if writes(call) {
        written(call).for_each(Tensor::release_forms);
    }
}

/// The tensors that a call writes: the given output, or its mutable inputs in order.
pub(super) fn written<'a>(call: &'a Call<'_>) -> impl Iterator<Item = &'a Tensor> {
    let mutable = call.inputs.iter().enumerate().filter(|(i, _)| call.op.sig.mutates(*i)).filter_map(|(_, t)| *t);
    call.given.into_iter().chain(mutable)
}

/// Whether a call writes in place at all.
#[inline]
pub(super) fn writes(call: &Call<'_>) -> bool {
    call.given.is_some() || call.op.writes_inputs()
}

/// Before a call that writes in place: drops the boxed and cast forms of the written tensors, on every rank, so that all
/// ranks agree whether a later call needs a boxing or a cast. Increments the versions of global tensors on every rank: backward
/// compares them with those of saved tensors. The version of a local tensor is that of its storage.
#[inline]
pub(super) fn begin_write(call: &Call<'_>, global: bool) {
    if writes(call) {
        for t in written(call) {
            t.release_forms();
            if global {
                t.bump_global_version();
            }
        }
    }
}

/// Refuses writes that would be lost, hit an element twice, or change what a gradient cannot follow.
pub(super) fn check(call: &Call<'_>) -> Result<()> {
    for t in written(call) {
        if let Some(why) = t.refusal() {
            return Err(refused(t, why));
        }
        if grad_enabled() {
            check_gradient(call, t)?;
        }
    }
    check_disjoint(call)
}

/// Of a call that writes its result over an input: that input as a copy, where the gradient reads what it was. (PyTorch keeps such
/// copies for its in-place forms too.) None where nothing must be kept.
pub(super) fn kept_inputs(call: &Call<'_>) -> Result<Option<SmallVec<[Option<Tensor>; 4]>>> {
    // A wrong number of inputs is refused by inference.
    let Some(given) = call.given.filter(|_| call.inputs.len() == call.op.sig.inputs.len()) else { return Ok(None) };
    let needs = |i: usize| call.inputs[i].is_some_and(|t| t.requires_grad());
    let (read, _) = saves(call, needs)?;
    let lost = |i: usize, t: &Tensor| read >> i.min(63) & 1 == 1 && t.memory_id() == given.memory_id();
    let lost_at = |i: usize| call.inputs[i].is_some_and(|t| lost(i, t));
    if !(0..call.inputs.len()).any(lost_at) {
        return Ok(None);
    }
    let _inner = inner_calls();
    let keep = |(i, t): (usize, &Option<&Tensor>)| match *t {
        Some(t) if lost(i, t) => {
            Call::of(crate::op!("copy")?, &[Some(t)], Default::default(), Default::default(), call.site)
                .run1()
                .map(Some)
                .map_err(|e| e.within(|| format!("{} in place keeps what it writes over", call.op.name())))
        }
        t => Ok(t.cloned()),
    };
    call.inputs.iter().enumerate().map(keep).collect::<Result<_>>().map(Some)
}

fn refused(t: &Tensor, why: Refusal) -> Error {
    match why {
        Refusal::GlobalView => Error::argument(format!(
            "{t:?} came from a view op or `detach`: views of global tensors are values, so a write to it would not reach the \
             tensor it came from"
        ))
        .help(
            "write the tensor itself (`copy_`, the op `assign`), or take a value of your own with `copy()`, which is \
             PyTorch's `clone()`",
        ),
        Refusal::Shard => Error::argument(format!("{t:?} is a global tensor's shard, which is read only"))
            .help("write it with `write_shard` on the global tensor, or take a tensor of your own with `copy()`"),
        Refusal::Overlap => {
            Error::argument(format!("an element of {t:?} stands for more than one element, as `expand` makes it"))
                .help("write to `copy()` of it, or to the tensor that was expanded")
        }
    }
}

fn check_gradient(call: &Call<'_>, t: &Tensor) -> Result<()> {
    let view = t.local_view();
    let refuse = |what: String, help: &str| Err(Error::autograd(what).help(help.to_string()));
    if t.requires_grad() {
        if t.is_leaf() {
            return refuse(
                format!("{t:?} is a leaf that requires a gradient; it cannot be changed in place"),
                "change it under `no_grad()`",
            );
        }
        if t.base().is_some_and(|base| base.requires_grad() && base.is_leaf()) {
            return refuse(
                format!("{t:?} is a view of a leaf that requires a gradient; it cannot be changed in place"),
                "change it under `no_grad()`, or write to a view of `copy()`",
            );
        }
        if call.given.is_none() && matches!(call.op.grad, Grad::None | Grad::Missing) {
            return refuse(
                format!("{} has no gradient and would change {t:?} in place", call.op.name()),
                "call it under `no_grad()`",
            );
        }
    }
    let recorded = call.recording || t.base().is_some_and(|base| base.requires_grad());
    match view.map(|v| v.made()) {
        Some(Made::OneOfMany) if recorded => refuse(
            format!("{t:?} is one of several views that one function gave; they are not written in place"),
            "use the op that returns a new tensor, or take the view alone with `narrow`",
        ),
        Some(Made::NoGrad) if recorded => refuse(
            format!("{t:?} is a view that was made under `no_grad()`; a write to it has no gradient"),
            "make the view where gradients are recorded, or write under `no_grad()`",
        ),
        _ => Ok(()),
    }
}

/// Refuses a call that writes two tensors of one memory, of which the second would win.
fn check_disjoint(call: &Call<'_>) -> Result<()> {
    if written(call).nth(1).is_none() {
        return Ok(());
    }
    // By memory, then by first element; of global tensors every write is of the whole.
    let mut all: SmallVec<[(usize, isize, isize, &Tensor); 8]> = SmallVec::new();
    for t in written(call) {
        let elements = match t.body() {
            Body::Local(l) => l.extent(),
            _ => 0..1,
        };
        if !elements.is_empty() {
            all.push((t.memory_id(), elements.start, elements.end, t));
        }
    }
    all.sort_unstable_by_key(|(memory, start, ..)| (*memory, *start));
    for pair in all.windows(2) {
        // Neighbours are enough: where none overlap, no others do.
        let ((memory, _, end, a), (other, start, _, b)) = (pair[0], pair[1]);
        if memory == other && start < end {
            return Err(Error::argument(format!(
                "{} would write {a:?} and {b:?}, which have elements in common",
                call.op.name()
            ))
            .help("give each tensor once"));
        }
    }
    Ok(())
}

/// Temporaries, each with the memory that it is copied to after the kernel.
pub(super) type Copies = SmallVec<[(LocalTensor, LocalTensor); 1]>;

/// The memory that a call writes, known before its kernel runs.
#[derive(Default)]
pub(super) struct Memory {
    /// Memory of the given output.
    pub given: Option<LocalTensor>,
    /// What is copied after the kernel, for kernels that cannot write strided memory.
    pub back: Copies,
}

/// Gives the tensors that a call writes memory of their own, increments versions, and copies inputs that overlap it.
///
/// A global tensor is a value: memory that other handles (views, saved tensors, shards taken out) hold too is not written;
/// the handle gets memory of its own. Inputs that are written elsewhere than they are read are read from copies.
pub(super) fn prepare(
    ctx: &RankCtx,
    call: &Call<'_>,
    inputs: &mut SmallVec<[Option<LocalTensor>; 4]>,
) -> Result<Memory> {
    let mut memory = Memory::default();
    let mut targets: SmallVec<[LocalTensor; 4]> = SmallVec::new();
    if let Some(g) = call.given
        && let Some(mut out) = g.data()?
    {
        // Held by the handle, by `out`, and by what is read of the same handle.
        let same = call.inputs.iter().zip(inputs.iter()).filter(|(t, l)| l.is_some() && t.is_some_and(|t| t.same(g)));
        if g.is_global() && (out.storage.holders() > 2 + same.count() || !out.is_contiguous()) {
            out = LocalTensor::alloc(ctx, &out.ty)?;
            g.replace_shard(out.clone());
        }
        targets.push(out.clone());
        memory.given = Some(out);
    }
    for (i, t) in call.inputs.iter().enumerate() {
        if call.op.sig.mutates(i)
            && let (Some(t), Some(Some(l))) = (t, inputs.get_mut(i))
        {
            // One hold by the handle, one by `l`.
            if t.is_global() && (l.storage.holders() > 2 || l.overlaps_itself()) {
                *l = contiguous(ctx, l)?;
                t.replace_shard(l.clone());
            }
            targets.push(l.clone());
        }
    }
    for l in &targets {
        l.storage.bump_version();
    }
    clear_the_way(ctx, call, inputs, &mut targets)?;
    if !call.op.traits.strided {
        memory.direct(ctx, call, inputs)?;
    }
    Ok(memory)
}

/// Copies the inputs of strides that the op's kernels do not take. What is written is not read from a copy.
pub(super) fn make_contiguous(ctx: &RankCtx, op: &Op, inputs: &mut [Option<LocalTensor>]) -> Result<()> {
    for (i, l) in inputs.iter_mut().enumerate() {
        if let Some(l) = l.as_mut().filter(|l| !l.is_contiguous() && !op.sig.mutates(i)) {
            *l = contiguous(ctx, l)?;
        }
    }
    Ok(())
}

/// Copies the inputs that share memory with what is written, and not element by element.
fn clear_the_way(
    ctx: &RankCtx,
    call: &Call<'_>,
    inputs: &mut SmallVec<[Option<LocalTensor>; 4]>,
    targets: &mut [LocalTensor],
) -> Result<()> {
    targets.sort_unstable_by_key(|l| l.storage.id());
    for (i, l) in inputs.iter_mut().enumerate() {
        let Some(l) = l.as_mut().filter(|_| !call.op.sig.mutates(i)) else { continue };
        let first = targets.partition_point(|t| t.storage.id() < l.storage.id());
        let shared = targets[first..].iter().take_while(|t| t.storage.id() == l.storage.id());
        if shared.into_iter().any(|t| !t.same_window(l)) {
            *l = contiguous(ctx, l)?;
        }
    }
    Ok(())
}

impl Memory {
    /// Lets a kernel that takes contiguous memory only write temporaries, which are copied to their places afterwards.
    fn direct(
        &mut self,
        ctx: &RankCtx,
        call: &Call<'_>,
        inputs: &mut SmallVec<[Option<LocalTensor>; 4]>,
    ) -> Result<()> {
        let mutable =
            inputs.iter_mut().enumerate().filter(|(i, _)| call.op.sig.mutates(*i)).filter_map(|(_, l)| l.as_mut());
        for l in self.given.iter_mut().chain(mutable) {
            if !l.is_contiguous() {
                let here = contiguous(ctx, l)?;
                self.back.push((here.clone(), std::mem::replace(l, here)));
            }
        }
        Ok(())
    }
}
