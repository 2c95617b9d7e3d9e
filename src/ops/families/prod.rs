//! The product over dims, and its gradient: for each element the product of the others, also where some are zero.

use super::reduce::{base, dims_of, reduced, signatures};
use super::scan::part;
use crate::error::Result;
use crate::ops::{AttrValue, DTypeRule, Emit, Grad, GradCtx, LowerCall, OpDef, Value, normalize_dim};
use oflow_kernels::{DType, DTypeKind};

pub(super) fn prod() -> Result<OpDef> {
    Ok(base("prod", "The product over dims (none given: all). Integers and bools multiply to i64.")?
        .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| {
            let d = c.input(0)?.dtype;
            Ok([if d.kind() == DTypeKind::Float { d } else { DType::I64 }].into_iter().collect())
        })))
        .lowered_for(DTypeKind::Complex, of_halves)
        .get_sbp(|c| signatures(c, &c.dims("dims", c.shape(0)?.len())?, None, &[]))
        .grad(Grad::rule_saving(&[0], &[], gradient))
        .samples(&[
            "f32[3, 5]; dims=[1]",
            "i32[3]",
            "f64[2, 3, 2]; dims=[0, -1], keepdim=true",
            "f32[3, 2]",
            "f64[0, 2]; dims=[0]",
            "f32[]; dims=[0]",
        ]))
}

/// Each dim is multiplied with its other half until one element is left.
fn of_halves(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let mut x = call.input(0)?;
    let shape = e.shape(x);
    let dims: Vec<usize> = match call.ints("dims")? {
        [] => (0..shape.len()).collect(),
        dims => dims.iter().map(|d| normalize_dim(*d, shape.len().max(1))).collect::<Result<_>>()?,
    };
    let keep = reduced(&shape, &dims, call.bool("keepdim")?);
    if shape.contains(&0) {
        // Of no elements the sum is 0 and the product 1.
        let attrs = [("dims", call.attr("dims")?.clone()), ("keepdim", call.attr("keepdim")?.clone())];
        let zeros = e.call("sum", &[x], &attrs)?;
        return Ok(vec![e.call("add_scalar", &[zeros], &[("s", 1i64.into())])?]);
    }
    for dim in dims {
        let mut n = shape.get(dim).copied().unwrap_or(1);
        while n > 1 {
            let half = n / 2;
            let (a, b) = (part(e, x, dim, 0, half)?, part(e, x, dim, half, 2 * half)?);
            let both = e.call("mul", &[a, b], &[])?;
            x = match n % 2 {
                0 => both,
                _ => {
                    let last = part(e, x, dim, n - 1, n)?;
                    e.call("concat", &[both, last], &[("dim", dim.into())])?
                }
            };
            n -= half;
        }
    }
    Ok(vec![e.call("reshape", &[x], &[("shape", keep.as_slice().into())])?])
}

/// Half of a row with the other half, on the way up to the product of the row.
struct Level {
    /// The first half.
    a: Value,
    /// The second half.
    b: Value,
    /// Elements of each.
    half: usize,
    /// Elements of the row: one more than both halves where it is odd.
    len: usize,
}

fn join(g: &mut dyn GradCtx, parts: &[Value]) -> Result<Value> {
    match parts {
        [one] => Ok(*one),
        _ => g.call("concat", parts, &[("dim", 1i64.into())]),
    }
}

/// Rows are halved by products until one element is left; the way back multiplies each half with the gradient of the other.
/// No element is divided by, so zeros need no care, and every step has a derivative itself. Rows are the kept dims, which
/// may stay split.
fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dy) = g.grad(0) else { return Ok(()) };
    let (x, shape, dims) = (g.input(0)?, g.input_shape(0), dims_of(g)?);
    let dims: Vec<usize> = (0..shape.len()).filter(|d| dims.contains(d)).collect();
    let len: usize = dims.iter().map(|d| shape[*d]).product();
    let dtype = g.dtype(x);
    let wide = super::statistics(dtype);
    let in_dtype = |g: &mut dyn GradCtx, v: Value, to: DType| match g.dtype(v) == to {
        true => Ok(v),
        false => g.call("cast", &[v], &[("dtype", to.into())]),
    };
    if len == 0 {
        // Nothing was multiplied: as many gradients as elements, none.
        let keep = reduced(&shape, &dims, true);
        let dy = g.call("reshape", &[dy], &[("shape", keep.as_slice().into())])?;
        let dx = g.call("expand", &[dy], &[("shape", shape.as_slice().into())])?;
        return g.set(0, dx);
    }
    // Rows of what is multiplied.
    let order: Vec<i64> =
        (0..shape.len()).filter(|d| !dims.contains(d)).chain(dims.iter().copied()).map(|d| d as i64).collect();
    let moved: Vec<usize> = order.iter().map(|d| shape[*d as usize]).collect();
    let rows: usize = moved[..shape.len() - dims.len()].iter().product();
    let x = in_dtype(g, x, wide)?;
    let x = g.call("permute", &[x], &[("dims", order.clone().into())])?;
    let mut row = g.call("reshape", &[x], &[("shape", AttrValue::from(&[rows, len][..]))])?;
    let mut levels = vec![];
    let mut n = len;
    while n > 1 {
        let half = n / 2;
        let (a, b) = (part(g, row, 1, 0, half)?, part(g, row, 1, half, 2 * half)?);
        let mut next = vec![g.call("mul", &[a, b], &[])?];
        if n % 2 == 1 {
            next.push(part(g, row, 1, 2 * half, n)?);
        }
        row = join(g, &next)?;
        levels.push(Level { a, b, half, len: n });
        n -= half;
    }
    let dy = in_dtype(g, dy, wide)?;
    let mut d = g.call("reshape", &[dy], &[("shape", AttrValue::from(&[rows, 1][..]))])?;
    for l in levels.into_iter().rev() {
        let both = part(g, d, 1, 0, l.half)?;
        let mut back = vec![g.call("mul", &[both, l.b], &[])?, g.call("mul", &[both, l.a], &[])?];
        if l.len % 2 == 1 {
            back.push(part(g, d, 1, l.half, l.half + 1)?);
        }
        d = join(g, &back)?;
    }
    let d = g.call("reshape", &[d], &[("shape", moved.as_slice().into())])?;
    let mut back = vec![0i64; order.len()];
    order.iter().enumerate().for_each(|(at, d)| back[*d as usize] = at as i64);
    let d = g.call("permute", &[d], &[("dims", back.into())])?;
    let d = in_dtype(g, d, dtype)?;
    g.set(0, d)
}
