//! Autocast: before a call is issued, its float inputs are cast as the op's policy says ([`crate::ops::CASTS`]).
//!
//! A cast is a call of its own on every rank: elementwise, so it keeps the SBP of its input, and recorded, so that its
//! gradient is cast back. **P(sum)**: rounding each rank's part is not rounding the sum, and no signature of `cast` does it
//! (I11). A P(sum) input is therefore reduced in its own dtype first, by the boxing that dispatch chooses for the cast (with
//! a comm record at the user's line; a policy may deny it); the reduced copy is kept on the handle as any boxed copy.
//!
//! **What is kept.** The cast of a tensor that takes part in the graph is remembered on its handle until its value changes:
//! a weight used by three calls is cast once, and so is the input of a q, k and v projection. Casts of leaves, which live
//! long, are forgotten when the outermost scope ends, so that no low-precision copy of the weights outlives it.

use super::call::{Call, OwnedInputs, Rewrite, Rewritten};
use crate::context::{ModeGuard, autocast_mode, grad_enabled, inner_calls, set_autocast};
use crate::error::{CallSite, Result};
use crate::op;
use crate::ops::{Autocast, CastPolicy};
use crate::tensor::{Edge, ForUse, ReshardKey, Tensor, WeakTensor, intern_global};
use oflow_kernels::DType;
use smallvec::smallvec;
use std::cell::{Cell, RefCell};

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Leaves that have a cast remembered.
    static LEAVES: RefCell<Leaves> = const { RefCell::new(Leaves { all: Vec::new(), sweep_at: SWEEP }) };
}

/// From so many entries on the list is looked through.
const SWEEP: usize = 256;

/// A list of leaves, at most twice as long as there are such leaves: a scope may last as long as the program, in which a weight is cast
/// anew after each step, and leaves come and go.
struct Leaves {
    all: Vec<WeakTensor>,
    sweep_at: usize,
}

impl Leaves {
    fn add(&mut self, leaf: &Tensor) {
        if self.all.len() >= self.sweep_at {
            self.all.retain(WeakTensor::is_there);
            self.all.sort_unstable_by_key(WeakTensor::number);
            self.all.dedup_by_key(|leaf| leaf.number());
            self.sweep_at = (2 * self.all.len()).max(SWEEP);
        }
        self.all.push(leaf.weak());
    }
}

/// Ends the scope of an [`autocast`] when dropped.
#[must_use = "autocast ends when the guard is dropped: give it a name, `let _guard = …` (`let _ = …` drops it at once), or call `.run(|| …)`"]
pub struct AutocastGuard {
    // Restores the mode; per thread, so this is not `Send`.
    _mode: ModeGuard,
}

crate::context::runs_closures!(AutocastGuard);

impl Drop for AutocastGuard {
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == 0 {
            // The list is gone only when the thread ends.
            let leaves = LEAVES.try_with(|l| std::mem::take(&mut l.borrow_mut().all)).unwrap_or_default();
            leaves.iter().filter_map(WeakTensor::get).for_each(|leaf| leaf.forget_casts());
        }
    }
}

/// Until the guard is dropped, matrix products and attention take their inputs in bf16 or f16, and ops that need the range
/// of f32 (softmax, norms, sums, powers) compute f16 and bf16 inputs in f32. Other ops are not affected.
///
/// Parameters stay f32: their casts are made once per scope, and their gradients are f32. Only the forward pass belongs
/// into the scope; backward uses the dtypes of the forward pass without a scope. Scopes nest, per thread; `Autocast::Off` inside one
/// disables it for its own scope. Local and global tensors on every device are treated alike.
///
/// ```
/// use oflow::prelude::*;
/// let w = ones([3, 4], Device::Cpu)?.requires_grad_(true)?;
/// let x = ones([2, 3], Device::Cpu)?;
/// let y = {
///     let _amp = autocast(Autocast::Bf16);
///     x.matmul(&w)?
/// };
/// assert_eq!(y.dtype(), DType::BF16);
/// y.sum(())?.backward()?;
/// assert_eq!(w.grad().unwrap().dtype(), DType::F32);
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn autocast(mode: Autocast) -> AutocastGuard {
    DEPTH.set(DEPTH.get() + 1);
    AutocastGuard { _mode: set_autocast(mode) }
}

/// Casts the float inputs of a call. The plan depends on the dtypes that result, which are in its key; the mode itself is not.
pub(super) const AUTOCAST: Rewrite = Rewrite { applies: |call| wanted(call).is_some(), rewrite: cast_inputs };

/// Whether autocast converts between such floats; f64 it leaves alone.
fn castable(t: &Tensor) -> bool {
    t.dtype() == DType::F32 || t.dtype().is_half()
}

/// The dtype that a call's float inputs are to have, if one has another.
#[inline]
fn wanted(call: &Call<'_>) -> Option<DType> {
    let low = autocast_mode().dtype()?;
    // What is written in place has the dtype that it has. Beside a complex number nothing is lowered: the result has its parts.
    if call.given.is_some() || call.inputs.iter().flatten().any(|t| t.dtype().is_complex()) {
        return None;
    }
    let floats = || call.inputs.iter().flatten().filter(|t| t.dtype().is_float());
    let dtype = match call.op.autocast() {
        CastPolicy::Keep => return None,
        // Beside an f64 nothing is lowered: the product is f64.
        CastPolicy::Low if floats().any(|t| t.dtype() == DType::F64) => return None,
        CastPolicy::Low => low,
        CastPolicy::Full => {
            return floats().any(|t| t.dtype().is_half()).then_some(DType::F32);
        }
        CastPolicy::Widest => {
            let mut dtypes = floats().map(|t| t.dtype());
            let first = dtypes.next()?;
            // Floats are built in and promote.
            dtypes.try_fold(first, DType::promote).ok()?
        }
    };
    floats().any(|t| t.dtype() != dtype).then_some(dtype)
}

/// The call with its float inputs in the dtype that they are to have.
fn cast_inputs(call: &Call<'_>) -> Result<Option<Rewritten>> {
    let Some(dtype) = wanted(call) else { return Ok(None) };
    let mut inputs = OwnedInputs::new();
    for t in call.inputs {
        inputs.push(match t {
            Some(t) if castable(t) && t.dtype() != dtype => {
                Some(cast(t, dtype, call.site).map_err(|e| e.in_call(|| call.short()))?)
            }
            t => t.cloned(),
        });
    }
    Ok(Some(Rewritten::Inputs(inputs)))
}

/// A cast, remembered on the handle where it is to low precision and part of the graph. (Other tensors of no gradient are
/// cast for each use: a remembered copy would live as long as they do.)
fn cast(t: &Tensor, dtype: DType, site: CallSite) -> Result<Tensor> {
    let edge = t.edge();
    let remembered = dtype.is_half() && edge.is_some();
    let key = ReshardKey::Cast(dtype, grad_enabled() && edge.is_some());
    if remembered && let Some(found) = t.resharded(key) {
        return Ok(found);
    }
    // A layout that is asked of the call is not asked of its inputs' casts.
    let _inner = inner_calls();
    let inputs = [Some(t)];
    let mut call = Call::new(op!("cast")?, &inputs).attrs(smallvec![dtype.into()]).at(site);
    // A parameter that is stored split is cast where it lies, and then gathered in fewer bytes.
    call.skip_unshard = true;
    let out = call.run1()?;
    if let (Some(how), Some(g)) = (t.for_use(), out.global()) {
        let to = intern_global(g.ty.clone(), &how.to.placement, &how.to.sbp);
        out.set_for_use(ForUse { to, ..how.clone() });
    }
    if !remembered {
        return Ok(out);
    }
    let first = !t.has_cast();
    t.cache_resharded(key, &out);
    if first && matches!(edge, Edge::Leaf(_)) {
        LEAVES.with_borrow_mut(|leaves| leaves.add(t));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::no_grad;
    use crate::functional::ones;
    use crate::placement::Device;

    /// One scope around many steps: a weight that is cast anew after each, and leaves that are dropped after each.
    #[test]
    fn the_list_of_leaves_is_bounded() -> Result<()> {
        let leaf = || ones([2, 2], Device::Cpu)?.requires_grad_(true);
        let w = leaf()?;
        let scope = autocast(Autocast::Bf16);
        for _ in 0..2000 {
            leaf()?.matmul(&w)?;
            let _quiet = no_grad();
            w.mul_(0.5)?;
        }
        assert!(LEAVES.with_borrow(|l| l.all.len()) <= SWEEP, "{}", LEAVES.with_borrow(|l| l.all.len()));
        leaf()?.matmul(&w)?;
        assert!(w.has_cast());
        drop(scope);
        assert!(!w.has_cast() && LEAVES.with_borrow(|l| l.all.is_empty()));
        Ok(())
    }
}
