//! Distinct slices of a tensor along a dim.

use super::{Bound, cat, full};
use crate::context::inner_calls;
use crate::error::Result;
use crate::ops::normalize_dim;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};

by_name! {
    BY_NAME, "Choice", ByName;
    /// The distinct slices along a dim in the order of their elements; then, where asked for, the place of each slice among them, and how
    /// often each occurs. The call sorts once for each element of a slice, and waits for the number of slices.
    "unique(Tensor x, *, Int dim, Bool return_inverse=false, Bool return_counts=false) -> TensorTuple" = |b| slices(b, true);
    /// The slices along a dim without those that equal the one before; then, where asked for, the place of each slice among them, and how
    /// many each stands for. The call waits for the number of slices.
    "unique_consecutive(Tensor x, *, Int dim, Bool return_inverse=false, Bool return_counts=false) -> TensorTuple" = |b| slices(b, false);
}

fn slices(b: &Bound, sorted: bool) -> Result<Vec<Tensor>> {
    let (x, dim, inverse, counts) = (b.given(0)?, b.int(1)?, b.bool(2)?, b.bool(3)?);
    b.site.run(|| distinct(x, dim, sorted, (inverse, counts)))
}

fn distinct(x: &Tensor, dim: i64, sorted: bool, (inverse, counts): (bool, bool)) -> Result<Vec<Tensor>> {
    let d = normalize_dim(dim, x.ndim())? as i64;
    let x = if x.ndim() == 0 { x.reshape([1])? } else { x.detach() };
    let n = x.shape()[d as usize];
    let width = x.numel().checked_div(n).unwrap_or(0);
    let inner = inner_calls();
    let rows = x.movedim(d, 0)?.reshape([n, width])?;
    let numbers = |count: usize| full([count], Scalar::Int(1), rows.whole_target())?.cumsum(0)?.sub(1i64);
    let mut order = numbers(n)?;
    if sorted {
        // From the last column on: the order of the first decides, and equal ones stay in the order of those behind.
        for column in (0..width).rev() {
            let keys = rows.select(1, column as i64)?.index_select(0, &order)?;
            let options = super::ArgsortOptions { stable: true };
            order = order.index_select(0, &keys.argsort_with(0, false, &options)?)?;
        }
    }
    let rows = rows.index_select(0, &order)?;
    // Whether a slice is another one than that before it; the first one is.
    let begins = match n {
        0 => full([0], Scalar::Bool(false), rows.whole_target())?,
        _ => {
            let first = full([1], Scalar::Bool(true), rows.whole_target())?;
            let (lo, hi) = (rows.narrow(0, 0, n as i64 - 1)?, rows.narrow(0, 1, n as i64 - 1)?);
            cat([&first, &hi.ne(&lo)?.any(1)?], 0)?
        }
    };
    let places = begins.nonzero()?.reshape([-1i64])?;
    let kept = order.index_select(0, &places)?;
    drop(inner);
    let mut all = vec![x.index_select(d, &kept)?];
    if inverse {
        let group = begins.cast(DType::I64)?.cumsum(0)?.sub(1i64)?;
        all.push(numbers(n)?.scatter(0, &order, &group)?);
    }
    if counts {
        let ends = full([1], Scalar::Int(n as i64), rows.whole_target())?;
        all.push(places.diff_with(1, 0, &super::DiffOptions { append: Some(ends), prepend: None })?);
    }
    Ok(all)
}
