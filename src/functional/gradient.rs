//! The numerical gradient: differences of neighbours over their distances, of second order inside.

use super::Bound;
use crate::context::inner_calls;
use crate::error::{Error, Result};
use crate::ops::normalize_dim;
use crate::tensor::Tensor;

by_name! {
    FUNCTIONS, "Reductions", ByName;
    /// The gradient of values that are `spacing` apart, along each of the dims (none given: all): differences over two neighbours, at the
    /// ends over one (`edge_order` 1) or of second order (2).
    "gradient(Tensor x, *, Float spacing=1.0, IntList dim=[], Int edge_order=1) -> TensorTuple" = |b| {
        let spacing = b.float(1)?;
        gradient(b, |_, _| Ok(Spacing::Equal(spacing)))
    };
    /// The gradient of values with a spacing of its own along each dim.
    "gradient(Tensor x, *, FloatList spacing, IntList dim=[], Int edge_order=1) -> TensorTuple" = |b| {
        let all = b.floats(1)?;
        gradient(b, |i, dims| match all {
            all if all.len() == dims => Ok(Spacing::Equal(all[i])),
            all => Err(Error::argument(format!("{} spacings for {dims} dims", all.len()))
                .help("give one for each dim, or a number for all")),
        })
    };
    /// The gradient of values at these places: for each dim a list of coordinates.
    "gradient(Tensor x, *, TensorTuple spacing, IntList dim=[], Int edge_order=1) -> TensorTuple" = |b| {
        let all = b.tensors(1)?;
        gradient(b, |i, dims| match all.len() == dims {
            true => Ok(Spacing::Places(all[i].clone())),
            false => Err(Error::argument(format!("{} lists of coordinates for {dims} dims", all.len()))),
        })
    };
}

enum Spacing {
    Equal(f64),
    Places(Tensor),
}

fn gradient(b: &Bound, spacing: impl Fn(usize, usize) -> Result<Spacing>) -> Result<Vec<Tensor>> {
    let (x, order) = (b.given(0)?, b.int(3)?);
    let body = || {
        let dims: Vec<usize> = match b.ints(2)? {
            [] => (0..x.ndim()).collect(),
            dims => dims.iter().map(|d| normalize_dim(*d, x.ndim())).collect::<Result<_>>()?,
        };
        if (1..dims.len()).any(|i| dims[..i].contains(&dims[i])) {
            return Err(Error::argument(format!("{dims:?} names a dim twice")));
        }
        if !(1..=2).contains(&order) {
            return Err(Error::argument(format!("edge_order is {order}")).help("it is 1 or 2"));
        }
        let _inner = inner_calls();
        let along = |(i, d): (usize, &usize)| {
            let n = x.shape().get(*d).copied().unwrap_or(1) as i64;
            if n <= order {
                let e = Error::shape(format!("dim {d} has {n} elements; expected {} at least", order + 1));
                return Err(e.help("a gradient needs one element more than `edge_order`"));
            }
            match spacing(i, dims.len())? {
                Spacing::Equal(h) => equal(x, *d as i64, n, h, order),
                Spacing::Places(at) => apart(x, *d, n, &at, order),
            }
        };
        dims.iter().enumerate().map(along).collect()
    };
    b.site.run(body).map_err(|e| e.within(|| format!("gradient({})", x.short())))
}

fn equal(x: &Tensor, d: i64, n: i64, h: f64, order: i64) -> Result<Tensor> {
    let at = |i: i64| x.narrow(d, if i < 0 { n + i } else { i }, 1);
    let (first, last) = match order {
        1 => (at(1)?.sub(&at(0)?)?.div(h)?, at(-1)?.sub(&at(-2)?)?.div(h)?),
        _ => {
            let of = |sign: f64, a: Tensor, b: Tensor, c: Tensor| {
                a.mul(-1.5 * sign)?.add(&b.mul(2.0 * sign)?)?.sub(&c.mul(0.5 * sign)?)?.div(h)
            };
            (of(1.0, at(0)?, at(1)?, at(2)?)?, of(-1.0, at(-1)?, at(-2)?, at(-3)?)?)
        }
    };
    if n == 2 {
        return super::cat(&[&first, &last], d);
    }
    let inside = x.narrow(d, 2, n - 2)?.sub(&x.narrow(d, 0, n - 2)?)?.div(2.0 * h)?;
    super::cat(&[&first, &inside, &last], d)
}

/// The gradient of values at given places: the slope of the parabola through three neighbours.
fn apart(x: &Tensor, d: usize, n: i64, places: &Tensor, order: i64) -> Result<Tensor> {
    if places.shape() != [n as usize] {
        let e = Error::shape(format!("coordinates {:?} do not belong to {n} elements of dim {d}", places.shape()));
        return Err(e.help("a list of as many numbers as the dim has elements"));
    }
    let mut beside = vec![1i64; x.ndim()];
    beside[d] = -1;
    let steps = places.narrow(0, 1, n - 1)?.sub(&places.narrow(0, 0, n - 1)?)?.reshape(beside)?;
    let d = d as i64;
    let at = |i: i64| x.narrow(d, if i < 0 { n + i } else { i }, 1);
    let step = |i: i64| steps.narrow(d, if i < 0 { n - 1 + i } else { i }, 1);
    let edge = |near: Tensor, next: Tensor, far: Tensor, a: Tensor, b: Tensor| -> Result<Tensor> {
        let both = a.add(&b)?;
        let of_near = a.mul(2.0)?.add(&b)?.neg()?.div(&a.mul(&both)?)?;
        let (of_next, of_far) = (both.div(&a.mul(&b)?)?, a.neg()?.div(&b.mul(&both)?)?);
        near.mul(&of_near)?.add(&next.mul(&of_next)?)?.add(&far.mul(&of_far)?)
    };
    let (first, last) = match order {
        1 => (at(1)?.sub(&at(0)?)?.div(&step(0)?)?, at(-1)?.sub(&at(-2)?)?.div(&step(-1)?)?),
        _ => (
            edge(at(0)?, at(1)?, at(2)?, step(0)?, step(1)?)?,
            // Seen from the other end the steps are negative.
            edge(at(-1)?, at(-2)?, at(-3)?, step(-1)?.neg()?, step(-2)?.neg()?)?,
        ),
    };
    if n == 2 {
        return super::cat(&[&first, &last], d);
    }
    let (a, b) = (steps.narrow(d, 0, n - 2)?, steps.narrow(d, 1, n - 2)?);
    let both = a.add(&b)?;
    let of_before = b.neg()?.div(&a.mul(&both)?)?;
    let (of_here, of_after) = (b.sub(&a)?.div(&a.mul(&b)?)?, a.div(&b.mul(&both)?)?);
    let part = |i: i64| x.narrow(d, i, n - 2);
    let inside = part(0)?.mul(&of_before)?.add(&part(1)?.mul(&of_here)?)?.add(&part(2)?.mul(&of_after)?)?;
    super::cat(&[&first, &inside, &last], d)
}
