//! In-place methods. On a local tensor they write through to its base and to all views of that, gradients included. On a
//! global one the handle gets the new value and views keep theirs; views of it are values and are not written. A leaf that
//! requires a gradient, and a view of one, can be changed under `no_grad` only.

use super::layout::layout_attrs;
use super::{Operand, invoke1, op};
use crate::error::{CallSite, Error, Result};
use crate::interpreter::Call;
use crate::ops::{Attrs, Op, RuntimeAttrs};
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

impl Tensor {
    fn inplace(
        &self,
        op: Result<&'static Op>,
        others: &[&Tensor],
        attrs: Attrs,
        runtime: RuntimeAttrs,
        site: CallSite,
    ) -> Result<&Tensor> {
        let mut inputs: SmallVec<[_; 4]> = smallvec![Some(self)];
        inputs.extend(others.iter().map(|t| Some(*t)));
        Call::new(op?, &inputs).attrs(attrs).runtime(runtime).given(self).at(site).run()?;
        Ok(self)
    }

    /// x += other.
    #[track_caller]
    pub fn add_<'a>(&self, other: impl Into<Operand<'a>>) -> Result<&Tensor> {
        self.binary_(op!("add"), op!("add_scalar"), other.into(), CallSite::here())
    }
    /// x -= other.
    #[track_caller]
    pub fn sub_<'a>(&self, other: impl Into<Operand<'a>>) -> Result<&Tensor> {
        self.binary_(op!("sub"), op!("sub_scalar"), other.into(), CallSite::here())
    }
    /// x *= other.
    #[track_caller]
    pub fn mul_<'a>(&self, other: impl Into<Operand<'a>>) -> Result<&Tensor> {
        self.binary_(op!("mul"), op!("mul_scalar"), other.into(), CallSite::here())
    }
    /// x /= other.
    #[track_caller]
    pub fn div_<'a>(&self, other: impl Into<Operand<'a>>) -> Result<&Tensor> {
        self.binary_(op!("div"), op!("div_scalar"), other.into(), CallSite::here())
    }
    fn binary_(
        &self,
        t: Result<&'static Op>,
        s: Result<&'static Op>,
        other: Operand<'_>,
        site: CallSite,
    ) -> Result<&Tensor> {
        match other {
            Operand::Tensor(o) => self.inplace(t, &[o], smallvec![], smallvec![], site),
            Operand::Scalar(v) => self.inplace(s, &[], smallvec![], smallvec![v], site),
        }
    }
    /// x becomes zero everywhere.
    #[track_caller]
    pub fn zero_(&self) -> Result<&Tensor> {
        let site = CallSite::here();
        let all = super::create(
            op!("full"),
            smallvec![crate::ops::AttrValue::from(&[] as &[usize]), oflow_kernels::DType::Bool.into()],
            smallvec![true.into()],
            &self.whole_target(),
            site,
        )?;
        self.inplace(op!("masked_fill"), &[&all], smallvec![], smallvec![false.into()], site)
    }
    /// Where the tensor lies, with the whole of it on each rank.
    pub(super) fn whole_target(&self) -> crate::interpreter::Target {
        match self.global() {
            Some(g) => crate::interpreter::Target::Global(
                g.placement.clone(),
                crate::sbp::NdSbp::broadcast(g.placement.axes()),
            ),
            None => crate::interpreter::Target::Local(self.device()),
        }
    }
    /// x becomes a copy of `other`, converted to x's dtype; shapes must be equal. The gradient of the new value goes to
    /// `other`, what x was before gets none.
    ///
    /// # Errors
    /// When shapes differ, or x is a leaf that requires a gradient outside `no_grad`.
    #[track_caller]
    pub fn copy_(&self, other: &Tensor) -> Result<&Tensor> {
        self.assign_at(other, CallSite::here())
    }
    fn assign_at(&self, other: &Tensor, site: CallSite) -> Result<&Tensor> {
        Call::new(op!("assign")?, &[Some(self), Some(other)]).at(site).run()?;
        Ok(self)
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
        self.assign_at(&given, site)
    }
}
