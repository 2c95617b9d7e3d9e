//! The built-in ops, one file a family. They use the same public surface as anyone's ops: no back door.

mod activation;
mod attention;
mod binary;
mod create;
mod custom;
mod embedding;
mod layout;
mod linear;
mod loss;
mod matmul;
mod norm;
mod optim;
mod prod;
mod random;
mod reduce;
mod reshape;
mod scalar;
mod shape;
mod softmax;
mod strided;
mod unary;

use super::{AttrValue, OpDef};
use crate::error::Result;
use oflow_kernels::DType;

/// Every built-in declaration, in the order of `oflow ops`.
pub(crate) fn builtin() -> Vec<Result<OpDef>> {
    let mut all = Vec::new();
    for family in [
        create::ops,
        random::ops,
        unary::ops,
        activation::ops,
        binary::ops,
        scalar::ops,
        reduce::ops,
        matmul::ops,
        linear::ops,
        softmax::ops,
        norm::ops,
        embedding::ops,
        loss::ops,
        attention::ops,
        reshape::ops,
        shape::ops,
        strided::ops,
        layout::ops,
        custom::ops,
        optim::ops,
    ] {
        all.extend(family());
    }
    all
}

/// The dtype that statistics over many elements are computed and kept in: f32 for halves.
fn statistics(d: DType) -> DType {
    if d.is_half() { DType::F32 } else { d }
}

/// A `dim` attribute as the `dims` attribute of a reduction.
fn as_dims(dim: &AttrValue) -> AttrValue {
    match dim {
        AttrValue::Int(d) => AttrValue::from([*d]),
        v => v.clone(),
    }
}
