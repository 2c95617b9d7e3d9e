//! Writes in place: which tensors a call writes, and whether it may.
//!
//! Tensor handles know which tensors share memory (`tensor/alias.rs`); this file checks calls. Every call that writes passes
//! here: methods, calls by name, ops of other crates. A refusal depends on the program alone, not on a rank's data, and is raised
//! before anything is issued (I18).

use super::call::Call;
use crate::context::grad_enabled;
use crate::error::{Error, Result};
use crate::ops::Grad;
use crate::tensor::{Body, Made, Refusal, Tensor};
use smallvec::SmallVec;

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

/// Begins the writes of a call: drops the boxed and cast copies of the written tensors, on every rank, so that all ranks agree whether
/// a later call needs a boxing or a cast. Increments the versions of global tensors on every rank: backward compares them with those of
/// saved tensors. The version of a local tensor is that of its storage.
#[inline(always)]
pub(super) fn begin_write<'a>(call: &'a Call<'a>, global: bool) -> Writing<'a> {
    if writes(call) {
        for t in written(call) {
            begin(t, global);
        }
    }
    Writing(call)
}

fn begin(t: &Tensor, global: bool) {
    t.clear_reshard_cache();
    if global {
        t.bump_global_version();
    }
}

/// Notes that prebuilt kernels write a tensor, as a call that writes it does before its kernels run.
pub(super) fn note_write(t: &Tensor) -> Result<()> {
    begin(t, t.is_global());
    t.with_data(|l| l.map(|l| l.storage.bump_version())).map(drop)
}

/// A call whose writes have begun. When it is dropped, also after a step that failed, the cached copies of the written tensors that the call itself
/// made are dropped: they hold the old values.
pub(super) struct Writing<'a>(&'a Call<'a>);

impl Drop for Writing<'_> {
    #[inline]
    fn drop(&mut self) {
        if writes(self.0) {
            written(self.0).for_each(Tensor::clear_reshard_cache);
        }
    }
}

/// Refuses writes that would be lost, hit an element twice, or change what a gradient cannot follow.
#[inline(always)]
pub(super) fn check_writes(call: &Call<'_>) -> Result<()> {
    if writes(call) { check(call) } else { Ok(()) }
}

fn check(call: &Call<'_>) -> Result<()> {
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
