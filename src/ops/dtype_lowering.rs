//! Dtypes that an op takes without a kernel for them, because a call on them is made of other calls.
//!
//! A sum of complex numbers is the sum of their real parts and that of their imaginary parts; a product of matrices is four products of
//! real ones; a convolution of integers is a sum of products. An op that says so ([`OpDef::linear_by_parts`],
//! [`OpDef::product_by_parts`], [`OpDef::lowered_for`]) takes such inputs on every device and in every layout, and its gradient is that
//! of its calls.

use super::def::OpDef;
use super::grad::{Emit, LowerCall, Value};
use super::named::Which;
use crate::error::Result;
use oflow_kernels::{DType, DTypeKind};

/// How a call on inputs of some dtype is made of other calls.
#[derive(Clone, Copy, Debug)]
pub enum DTypeLowering {
    /// For complex numbers: the op is linear in all of its tensors but indices. One call for the real parts, one for the imaginary ones.
    Linear,
    /// For complex numbers: the op is linear in each of these two inputs, and adds the others:
    /// `(a + ib)(c + id) = ac - bd + i(ad + bc)`.
    Product(usize, usize),
    /// For inputs of this kind: a program of calls of ops.
    Program(DTypeKind, ByDTypeFn),
}

/// The program of a [`DTypeLowering`]. It runs on whole tensors in the layouts that they have.
pub type ByDTypeFn = fn(&mut dyn Emit, &LowerCall<'_>) -> Result<Vec<Value>>;

impl DTypeLowering {
    /// Whether the call is made so if an input is of this dtype.
    pub fn is_for(self, dtype: DType) -> bool {
        let kind = match self {
            DTypeLowering::Linear | DTypeLowering::Product(..) => DTypeKind::Complex,
            DTypeLowering::Program(kind, _) => kind,
        };
        dtype.kind() == kind
    }
}

impl OpDef {
    /// Lets the op take complex numbers, because it is linear in all of its inputs that are not indices.
    #[must_use]
    pub fn linear_by_parts(mut self) -> OpDef {
        self.dtype_lowerings.push(DTypeLowering::Linear);
        self
    }

    /// Lets the op take complex numbers, because it is linear in each of the two inputs, and adds to their product what else it is given.
    ///
    /// # Errors
    /// The op has no such input.
    pub fn product_by_parts(mut self, a: impl Which, b: impl Which) -> Result<OpDef> {
        self.dtype_lowerings.push(DTypeLowering::Product(a.input_of(&self)?, b.input_of(&self)?));
        Ok(self)
    }

    /// Lets the op take inputs of this kind by a program of calls. The op's check of shapes and attributes runs before it.
    #[must_use]
    pub fn lowered_for(mut self, kind: DTypeKind, program: ByDTypeFn) -> OpDef {
        self.dtype_lowerings.push(DTypeLowering::Program(kind, program));
        self
    }
}
