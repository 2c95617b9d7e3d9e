//! In-place methods. On a local tensor they write through to its views; on a global one the handle gets the new value and
//! views keep theirs. A leaf that requires a gradient can be changed under `no_grad` only.

use super::{Operand, op};
use crate::context::grad_enabled;
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
        if grad_enabled() && self.requires_grad() && self.is_leaf() {
            return Err(Error::autograd(format!(
                "{self:?} is a leaf that requires a gradient; it cannot be changed in place"
            ))
            .at(site)
            .help("change it under `no_grad()`"));
        }
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
    fn whole_target(&self) -> crate::interpreter::Target {
        match self.global() {
            Some(g) => crate::interpreter::Target::Global(
                g.placement.clone(),
                crate::sbp::NdSbp::broadcast(g.placement.axes()),
            ),
            None => crate::interpreter::Target::Local(self.device()),
        }
    }
    /// x becomes a copy of `other`, converted to x's dtype; shapes must be equal. Not recorded.
    ///
    /// # Errors
    /// When shapes differ, or x is a leaf that requires a gradient outside `no_grad`.
    #[track_caller]
    pub fn copy_(&self, other: &Tensor) -> Result<&Tensor> {
        let site = CallSite::here();
        if grad_enabled() && self.requires_grad() {
            return Err(Error::autograd(format!("{self:?} requires a gradient; it cannot be overwritten"))
                .at(site)
                .help("do it under `no_grad()`"));
        }
        Call::new(op!("assign")?, &[Some(self), Some(other)]).at(site).run()?;
        Ok(self)
    }
}
