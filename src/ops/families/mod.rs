//! The built-in ops, one file a family. They use the same public surface as anyone's ops: no back door.

mod attention_grad;
mod norm_grad;
mod prod;
mod slide;
mod taps;
mod terms;

use super::{AttrValue, InferCtx, OpDef};
use crate::error::{Error, Result};
use crate::sbp::{ReduceOp, Sbp, Signature};
pub(crate) use fused::{chain_of, reads_chain};
use oflow_kernels::DType;
pub(crate) use quantize::quantised;
pub(crate) use ring_attention::{GATHER_LIMIT, Turn};
pub(crate) use shape::Diagonal;

/// Declares the families and the order of `oflow ops`: the subject of a family's ops, and its file.
macro_rules! families {
    ($($subject:literal: $vis:vis mod $family:ident;)*) => {
        $($vis mod $family;)*

        /// Every built-in declaration, in the order of `oflow ops`. A family is made when it is asked for, so that not all lie in
        /// memory at once.
        pub(crate) fn builtin() -> impl Iterator<Item = Result<OpDef>> {
            type Family = (&'static str, fn() -> Vec<Result<OpDef>>);
            const FAMILIES: &[Family] = &[$(($subject, $family::ops)),*];
            FAMILIES.iter().flat_map(|(subject, family)| family().into_iter().map(move |op| Ok(op?.subject(subject))))
        }
    };
}

families! {
    "Creation": mod create;
    "Random numbers": mod random;
    "Elementwise": mod unary;
    "Activations": mod activation;
    "Elementwise": mod binary;
    "Elementwise": mod scalar;
    "Elementwise": mod special;
    "Elementwise": mod fused;
    "Complex numbers": mod pairs;
    "Quantised numbers": mod quantize;
    "Reductions": mod reduce;
    "Reductions": mod scan;
    "Products": mod matmul;
    "Products": mod linear;
    "Networks": mod conv;
    "Networks": mod pool;
    "Networks": mod resample;
    "Networks": mod softmax;
    "Networks": mod norm;
    "Networks": mod batch_norm;
    "Networks": mod grouped_norm;
    "Networks": mod embedding;
    "Choice": mod select;
    "Choice": mod index;
    "Choice": mod gather;
    "Choice": mod sort;
    "Choice": mod count;
    "Networks": mod loss;
    "Losses": mod pointwise_loss;
    "Networks": mod attention;
    "Networks": mod ring_attention;
    "Networks": mod rotary;
    "Shapes": mod reshape;
    "Shapes": mod shape;
    "Shapes": pub(crate) mod roll;
    "Shapes": mod strided;
    "Layouts": mod layout;
    "Layouts": mod custom;
    "Optimizer steps": mod optim;
}

/// The dtype that statistics over many elements are computed and kept in: f32 for halves.
fn statistics(d: DType) -> DType {
    if d.is_half() { DType::F32 } else { d }
}

/// Refuses inputs of several dtypes where the kernels take one; absent inputs do not count.
fn one_dtype(c: &InferCtx<'_>, inputs: &[usize]) -> Result<()> {
    let mut first: Option<(usize, DType)> = None;
    for i in inputs.iter().copied().filter(|i| c.has(*i)) {
        let dtype = c.input(i)?.dtype;
        match first {
            None => first = Some((i, dtype)),
            Some((_, d)) if d == dtype => {}
            Some((f, d)) => {
                let name = |i: usize| c.op.sig.input_def(i).map_or("input", |d| d.name.as_str());
                return Err(Error::dtype(format!("'{}' is {d}, '{}' is {dtype}", name(f), name(i)))
                    .help("convert one with `.cast(dtype)`, or use `autocast`"));
            }
        }
    }
    Ok(())
}

/// Refuses indices of a dtype that no kernel looks up with.
fn index_dtype(c: &InferCtx<'_>, input: usize) -> Result<()> {
    match c.input(input)?.dtype {
        DType::I32 | DType::I64 => Ok(()),
        d => {
            let name = c.op.sig.input_def(input).map_or("input", |d| d.name.as_str());
            Err(Error::dtype(format!("'{name}' must be i32 or i64, not {d}")).help("convert it with `.cast(dtype)`"))
        }
    }
}

/// Refuses a `dtype` attribute that is an 8-bit float or a registered dtype.
fn real_attr(c: &InferCtx<'_>) -> Result<()> {
    match c.dtype_attr("dtype")? {
        d if d.is_real() => Ok(()),
        d => Err(crate::ops::not_made(d)),
    }
}

/// Refuses a dtype attribute that is no float.
fn float_attr(c: &InferCtx<'_>) -> Result<()> {
    match c.dtype_attr("dtype")? {
        d if d.is_float() => Ok(()),
        d => Err(Error::dtype(format!("the numbers are floats; they cannot be {d}"))
            .help("ask for a float dtype, then `.cast(dtype)`")),
    }
}

/// Refuses an input of other dims than wanted.
fn dims_are(c: &InferCtx<'_>, input: usize, want: &[usize]) -> Result<()> {
    match c.shape(input)? {
        have if have == want => Ok(()),
        have => {
            let name = c.op.sig.input_def(input).map_or("input", |d| d.name.as_str());
            Err(Error::shape(format!("'{name}' has shape {have:?}, but {want:?} is needed")))
        }
    }
}

/// Refuses an input of another dtype than wanted.
fn dtype_is(c: &InferCtx<'_>, input: usize, want: DType) -> Result<()> {
    match c.input(input)?.dtype {
        have if have == want => Ok(()),
        have => {
            let name = c.op.sig.input_def(input).map_or("input", |d| d.name.as_str());
            Err(Error::dtype(format!("'{name}' must be {want}, not {have}")).help("convert it with `.cast(dtype)`"))
        }
    }
}

/// Refuses a `dim` attribute that input 0 does not have.
fn dim_exists(c: &InferCtx<'_>) -> Result<()> {
    c.dim("dim", c.shape(0)?.len()).map(drop)
}

/// All kinds of partial values.
const KINDS: [ReduceOp; 3] = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min];

/// Every P kind passes from input 0 where input 1 says which of its elements are taken: each of the result is one of them, or a zero
/// that all ranks have.
fn taken() -> [Signature; 3] {
    let row = |op| Signature::new(&[Sbp::Partial(op), Sbp::Broadcast], &[Sbp::Partial(op)]);
    KINDS.map(row)
}

/// SBP of results of which each rank has some elements, and zeros for the others. Bools have no sum; false is zero.
fn of_shares(dtype: DType) -> Sbp {
    Sbp::Partial(if dtype == DType::Bool { ReduceOp::Max } else { ReduceOp::Sum })
}

/// A `dim` attribute as the `dims` attribute of a reduction.
fn as_dims(dim: &AttrValue) -> AttrValue {
    match dim {
        AttrValue::Int(d) => AttrValue::from([*d]),
        v => v.clone(),
    }
}
