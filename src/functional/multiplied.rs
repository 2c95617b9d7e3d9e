//! Products of elements that have one index, for reductions by index.

use super::{cat, where_};
use crate::error::Result;
use crate::tensor::Tensor;
use oflow_kernels::Scalar;

/// Products of the elements of `src` with one index, at that index of a tensor like x; and where there is any.
pub(super) fn products(x: &Tensor, d: i64, ids: &Tensor, src: &Tensor) -> Result<(Tensor, Tensor)> {
    let order = ids.argsort(d, false)?;
    let (ids, mut y) = (ids.gather(d, &order)?, src.gather(d, &order)?);
    let n = ids.shape()[d as usize] as i64;
    // Equal indices stand together. After each step an element is the product of twice as many of them up to itself.
    let mut step = 1;
    while step < n {
        let same = ids.narrow(d, step, n - step)?.eq(&ids.narrow(d, 0, n - step)?)?;
        let before = y.narrow(d, 0, n - step)?;
        let one = super::ones_like(&before.detach())?;
        let product = y.narrow(d, step, n - step)?.mul(&where_(&same, &before, &one)?)?;
        y = cat([&y.narrow(d, 0, step)?, &product], d)?;
        step *= 2;
    }
    let zeros = super::zeros_like(&x.detach())?;
    if n == 0 {
        return Ok((zeros.clone(), zeros.ne(0i64)?));
    }
    // The last of each index has the product of all.
    let goes_on = ids.narrow(d, 1, n - 1)?.eq(&ids.narrow(d, 0, n - 1)?)?;
    let end = super::zeros_like(&ids.narrow(d, 0, 1)?)?.ne(0i64)?;
    let goes_on = cat([&goes_on, &end], d)?;
    let none = super::zeros_like(&y.detach())?;
    let found = super::full_like(&y.detach(), Scalar::Int(1))?;
    let products = zeros.scatter_add(d, &ids, &where_(&goes_on, &none, &y)?)?;
    Ok((products, zeros.scatter_add(d, &ids, &found)?.ne(0i64)?))
}
