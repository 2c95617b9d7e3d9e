//! Ops on complex numbers that are made of calls of the same op on real ones.
//!
//! A sum of complex numbers is the sum of their real parts and that of their imaginary parts; a product of matrices is four products of
//! real ones. An op that says so ([`OpDef::linear_by_parts`], [`OpDef::product_by_parts`]) takes complex inputs without a kernel for
//! them, on every device and in every layout, and its gradient is that of its calls.

use super::def::OpDef;
use super::named::Which;
use crate::error::Result;

/// How a call on complex inputs is made of calls on their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComplexLowering {
    /// The op is linear in all of its tensors but indices: one call for the real parts, one for the imaginary ones.
    Linear,
    /// The op is linear in each of these two inputs, and adds the others: `(a + ib)(c + id) = ac - bd + i(ad + bc)`.
    Product(usize, usize),
}

impl OpDef {
    /// Lets the op take complex numbers, because it is linear in all of its inputs that are not indices.
    #[must_use]
    pub fn linear_by_parts(mut self) -> OpDef {
        self.complex_lowering = Some(ComplexLowering::Linear);
        self
    }

    /// Lets the op take complex numbers, because it is linear in each of the two inputs, and adds to their product what else it is given.
    ///
    /// # Errors
    /// The op has no such input.
    pub fn product_by_parts(mut self, a: impl Which, b: impl Which) -> Result<OpDef> {
        self.complex_lowering = Some(ComplexLowering::Product(a.input_of(&self)?, b.input_of(&self)?));
        Ok(self)
    }
}
