//! Functions in place. On a local tensor they write through to its base and to all views of that, gradients included. On a
//! global one the handle gets the new value and views keep theirs; views of it are values and are not written. A leaf that
//! requires a gradient, and a view of one, can be changed under `no_grad` only.

use super::layout::layout_attrs;
use super::{Bound, create, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::{Call, Target};
use crate::ops::{AttrValue, Attrs, Op, RuntimeAttrs, broadcast_shapes};
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "In place";
    /// x becomes zero everywhere, in place.
    "zero_(Tensor x) -> Tensor" = zero_;
    /// x becomes `value` everywhere, in place.
    "fill_(Tensor x, Scalar value) -> Tensor" = fill_;
    /// x becomes a copy of `other` in place, converted to x's dtype; it broadcasts to x's shape. The gradient of the new value goes
    /// to `other`, what x was before gets none.
    ///
    /// # Errors
    /// When `other` does not broadcast to x's shape, or x is a leaf that requires a gradient outside `no_grad`.
    "copy_(Tensor x, Tensor other) -> Tensor" = copy_;
}

by_name! {
    BY_NAME, "In place", ByName;
    /// a becomes a + `alpha` b, in place.
    "add_(Tensor a, Tensor b, *, Scalar alpha) -> Tensor" = |b| scaled_(op!("add_scaled"), b);
    /// x becomes x + `alpha` s, in place.
    "add_(Tensor x, Scalar s, *, Scalar alpha) -> Tensor" = |b| scaled_(op!("add_scalar_scaled"), b);
    /// a becomes a - `alpha` b, in place.
    "sub_(Tensor a, Tensor b, *, Scalar alpha) -> Tensor" = |b| scaled_(op!("sub_scaled"), b);
    /// x becomes x - `alpha` s, in place.
    "sub_(Tensor x, Scalar s, *, Scalar alpha) -> Tensor" = |b| scaled_(op!("sub_scalar_scaled"), b);
}

/// A sum or difference with a factor, of a tensor and a tensor or a number.
fn scaled_(op: Result<&'static Op>, b: &Bound) -> Result<Vec<Tensor>> {
    let x = b.given(0)?;
    let (other, numbers): (_, RuntimeAttrs) = match b.tensor(1) {
        Some(other) => (Some(other), smallvec![b.scalar(2)?]),
        None => (None, smallvec![b.scalar(1)?, b.scalar(2)?]),
    };
    let inputs = [Some(x), other];
    write_over(op, &inputs[..1 + usize::from(other.is_some())], smallvec![], numbers, b.site)?;
    Ok(vec![x.clone()])
}

/// Writes the result of an op over its first input.
pub(super) fn write_over(
    op: Result<&'static Op>,
    inputs: &[Option<&Tensor>],
    attrs: Attrs,
    runtime: RuntimeAttrs,
    site: CallSite,
) -> Result<()> {
    let given = inputs.first().copied().flatten();
    Call::of(op?, inputs, attrs, runtime, site).given(given).run().map(drop)
}

pub(super) fn zero_(x: &Tensor, site: CallSite) -> Result<()> {
    filled("zero_", x, false.into(), site)
}

pub(super) fn fill_(x: &Tensor, value: Scalar, site: CallSite) -> Result<()> {
    filled("fill_", x, value, site)
}

/// One number everywhere, for the function of that name.
fn filled(name: &str, x: &Tensor, value: Scalar, site: CallSite) -> Result<()> {
    let shape = AttrValue::from(&[] as &[usize]);
    let target = x.whole_target();
    let all = create(op!("full"), smallvec![shape, DType::Bool.into()], smallvec![true.into()], &target, site)
        .map_err(|e| e.within(|| format!("{name}({})", x.short())))?;
    write_over(op!("masked_fill"), &[Some(x), Some(&all)], smallvec![], smallvec![value], site)
}

pub(super) fn copy_(x: &Tensor, other: &Tensor, site: CallSite) -> Result<()> {
    if x.shape() != other.shape()
        && broadcast_shapes([x.shape(), other.shape()]).is_ok_and(|s| s.as_slice() == x.shape())
    {
        let (_scope, inner) = (site.scope(), inner_calls());
        let whole = other.expand(x.shape())?;
        drop(inner);
        return Call::new(op!("assign")?, &[Some(x), Some(&whole)]).at(site).run().map(drop);
    }
    Call::new(op!("assign")?, &[Some(x), Some(other)]).at(site).run().map(drop)
}

impl Tensor {
    /// Where the tensor lies, with the whole of it on each rank.
    pub(crate) fn whole_target(&self) -> Target {
        match self.global() {
            Some(g) => Target::Global(g.placement.clone(), NdSbp::broadcast(g.placement.axes())),
            None => Target::Local(self.device()),
        }
    }
    /// Writes the shards of a global tensor: each rank of the placement gives its own as a local tensor of the shard's shape
    /// and dtype, and B shards are made equal as by [`Tensor::to_global`]. A collective: all ranks issue it, those outside
    /// the placement with any local tensor. It is recorded as any write.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let _world = oflow::init()?;
    /// let x = zeros([4], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
    /// x.write_shard(&x.to_local()?.add(1.0)?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0; 4]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// On every rank alike: when the tensor is local or a view, and when the shards are not those of a tensor of this one's
    /// shape and dtype.
    #[track_caller]
    pub fn write_shard(&self, shard: &Tensor) -> Result<&Tensor> {
        let site = CallSite::here();
        let call = || format!("write_shard({}, {})", self.short(), shard.short());
        let g = self.global().ok_or_else(|| {
            let local = Error::sbp(format!("{self:?} is a local tensor")).in_call(call).at(site);
            local.help("write it in place, with `copy_`")
        })?;
        let layout = layout_attrs(g.placement.clone(), g.sbp.clone(), None);
        let given = invoke1(op!("shards_to_global"), &[Some(shard)], layout, smallvec![], site)?;
        if given.ty() != self.ty() {
            return Err(Error::shape(format!("the shards are those of {}, the tensor is {}", given.ty(), self.ty()))
                .in_call(call)
                .at(site));
        }
        copy_(self, &given, site)?;
        Ok(self)
    }
}
