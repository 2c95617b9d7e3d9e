//! Kernels of order along a dim.

use super::{OpKernel, kernel, with_scratch};
use crate::backend::cpu::sort::{ends, kth, whole};
use crate::error::Result;
use crate::ops::{InferCtx, TensorType};
use oflow_kernels::Scalar;
use oflow_kernels::cpu::sort::Nth;
use oflow_kernels::cuda::{fill, sort};

fn scratch(c: &InferCtx<'_>, _: &[TensorType]) -> Result<usize> {
    let x = c.input(0)?;
    Ok(sort::workspace(x.dtype, &x.shape, c.dim("dim", x.shape.len())?))
}

pub(super) fn kernels() -> Vec<OpKernel> {
    let ordered = |op: &'static str, flag: &'static str| {
        kernel(op, move |q, cx| {
            let ([x, values, indices], dim) = ends(cx)?;
            Ok(sort::sort(q, &x, &values, &indices, dim, cx.bool(flag)?, cx.workspace)?)
        })
    };
    let kthvalue = kernel("kthvalue", |q, cx| {
        let ([x, values, indices], dim) = ends(cx)?;
        Ok(sort::nth(q, &x, &values, &indices, dim, kth(cx)?, cx.workspace)?)
    });
    let median = kernel("median", |q, cx| {
        let ([x, values, indices], dim) = ends(cx)?;
        Ok(sort::nth(q, &x, &values, &indices, dim, Nth::Median, cx.workspace)?)
    });
    let middle = kernel("middle", |q, cx| {
        let [x, value, index] = whole(cx)?;
        if x.is_empty() {
            fill::fill(q, &value, Scalar::Float(f64::NAN))?;
            return Ok(fill::fill(q, &index, Scalar::Int(0))?);
        }
        Ok(sort::nth(q, &x, &value, &index, 0, Nth::Median, cx.workspace)?)
    });
    let whole_scratch = |c: &InferCtx<'_>, _: &[TensorType]| {
        let x = c.input(0)?;
        Ok(sort::workspace(x.dtype, &[x.len()], 0))
    };
    let mut all: Vec<OpKernel> = [ordered("sort", "descending"), ordered("topk", "largest"), kthvalue, median]
        .map(|k| with_scratch(k, scratch))
        .into();
    all.push(with_scratch(middle, whole_scratch));
    all
}
