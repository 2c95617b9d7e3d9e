//! Gradients of layer norm, rms norm and group norm, and of their gradients. All are h w + b with h = (x - mean) r, where r is `rstd`; rms
//! norm has neither mean nor b.

use super::norm::unsqueeze;
use super::terms::{product, set_total, times, total};
use crate::error::Result;
use crate::ops::AttrValue::Ints;
use crate::ops::{Emit, GradCtx, Value};
use smallvec::{SmallVec, smallvec};

/// Kind of the normalization.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Norm {
    /// Weight and bias have the normalised dims.
    Layer,
    /// Neither mean nor bias.
    Rms,
    /// Of `[n, groups, channels, inner]`, over the last two dims; weight and bias are `[groups, channels]`.
    Grouped,
}

impl Norm {
    /// True of all but rms norm.
    pub(super) fn centred(self) -> bool {
        self != Norm::Rms
    }

    /// The weight, or what is like it, beside a tensor.
    pub(super) fn beside(self, e: &mut dyn Emit, v: Value) -> Result<Value> {
        if self == Norm::Grouped { unsqueeze(e, v, 1) } else { Ok(v) }
    }

    /// The dims of a tensor with `lead` dims before its rows that the weight does not have: over these its gradient is summed.
    pub(super) fn beyond_weight(self, lead: usize) -> SmallVec<[i64; 6]> {
        if self == Norm::Grouped { smallvec![0, 3] } else { (0..lead as i64).collect() }
    }
}

/// How x falls into rows: the normalised dims are a row.
struct Rows {
    norm: Norm,
    /// Normalised dims.
    axes: usize,
    /// Dims before them.
    lead: usize,
    /// Elements of a row.
    n: f64,
}

impl Rows {
    /// Of a call whose input `x` is normalised.
    fn new(g: &dyn GradCtx, x: usize, norm: Norm) -> Result<Rows> {
        let axes = if norm == Norm::Grouped { 2 } else { g.int("axes")? as usize };
        let shape = g.input_shape(x);
        let lead = shape.len() - axes;
        Ok(Rows { norm, axes, lead, n: shape[lead..].iter().product::<usize>() as f64 })
    }

    /// A number for each row, beside a tensor.
    fn beside(&self, g: &mut dyn GradCtx, v: Value) -> Result<Value> {
        unsqueeze(g.emitter(), v, self.axes)
    }

    /// The sum of each row.
    fn row_sum(&self, g: &mut dyn GradCtx, v: Value) -> Result<Value> {
        let dims = (self.lead..self.lead + self.axes).map(|d| d as i64).collect();
        g.call("sum", &[v], &[("dims", Ints(dims))])
    }

    /// The sum over all rows, as the weight is.
    fn sum_of_rows(&self, g: &mut dyn GradCtx, v: Value) -> Result<Value> {
        let dims = self.norm.beyond_weight(self.lead);
        if dims.is_empty() { Ok(v) } else { g.call("sum", &[v], &[("dims", Ints(dims))]) }
    }

    /// The gradient op.
    fn backward(&self, g: &mut dyn GradCtx, dy: Value, of: &Saved, w: Option<Value>) -> Result<Vec<Value>> {
        if self.norm == Norm::Grouped {
            return g.emit("grouped_norm_grad", &[Some(dy), Some(of.x), of.mean, Some(of.r), w], &[]);
        }
        let attrs = [("axes", g.attr("axes")?)];
        match of.mean {
            Some(m) => g.emit("layer_norm_grad", &[Some(dy), Some(of.x), Some(m), Some(of.r), w], &attrs),
            None => g.emit("rms_norm_grad", &[Some(dy), Some(of.x), Some(of.r), w], &attrs),
        }
    }

    /// x - mean.
    fn centre(&self, g: &mut dyn GradCtx, of: &Saved) -> Result<Value> {
        match of.mean {
            Some(m) => {
                let m = self.beside(g, m)?;
                g.call("sub", &[of.x, m], &[])
            }
            None => Ok(of.x),
        }
    }
}

/// The tensors that h = (x - mean) r is computed from.
struct Saved {
    x: Value,
    mean: Option<Value>,
    r: Value,
}

/// Gradients with respect to x, weight and bias: of y, and of the statistics mean = Σ x / n and r.
pub(super) fn gradient(g: &mut dyn GradCtx, norm: Norm) -> Result<()> {
    let (rows, centred) = (Rows::new(g, 0, norm)?, norm.centred());
    let r_at = 1 + usize::from(centred);
    let mean = if centred { Some(g.output(1)?) } else { None };
    let of = Saved { x: g.input(0)?, mean, r: g.output(r_at)? };
    let mut of_y = None;
    if let Some(dy) = g.grad(0) {
        let w = if g.has(1) { Some(g.input(1)?) } else { None };
        let all = rows.backward(g, dy, &of, w)?;
        for (i, d) in all.iter().enumerate().skip(1) {
            if g.has(i) && g.needs(i) {
                g.set(i, *d)?;
            }
        }
        of_y = Some(all[0]);
    }
    if !g.needs(0) {
        return Ok(());
    }
    let mut of_mean = None;
    if centred && let Some(d) = g.grad(1) {
        let d = times(g, d, 1.0 / rows.n)?;
        of_mean = Some(rows.beside(g, d)?);
    }
    let mut of_r = None;
    if let Some(d) = g.grad(r_at) {
        // r = (Σ (x - mean)² / n + eps)^(-1/2)
        let square = product(g, of.r, of.r)?;
        let cube = product(g, square, of.r)?;
        let d = product(g, d, cube)?;
        let d = times(g, d, -1.0 / rows.n)?;
        let (d, c) = (rows.beside(g, d)?, rows.centre(g, &of)?);
        of_r = Some(product(g, c, d)?);
    }
    set_total(g, 0, [of_y, of_r, of_mean])
}

/// Gradients of the gradient op. With G = dy w, M the mean of a row, and v, a and b the gradients of dx, dweight and dbias:
/// dx = r (G - M(G) - h M(G h)) without its second term for rms norm, dweight = Σ dy h, dbias = Σ dy. The map from G to dx is its own
/// transpose.
pub(super) fn second_gradient(g: &mut dyn GradCtx, norm: Norm) -> Result<()> {
    let (rows, centred) = (Rows::new(g, 1, norm)?, norm.centred());
    let r_at = 2 + usize::from(centred);
    let w_at = r_at + 1;
    let beside = |g: &mut dyn GradCtx, v: Option<Value>| -> Result<Option<Value>> {
        match v {
            Some(v) => Ok(Some(norm.beside(g.emitter(), v)?)),
            None => Ok(None),
        }
    };
    let (v, a) = (g.grad(0), g.grad(1));
    let a = beside(g, a)?;
    let b = if centred { g.grad(2) } else { None };
    let b = beside(g, b)?;
    let dy = g.input(0)?;
    let mean = if centred { Some(g.input(2)?) } else { None };
    let of = Saved { x: g.input(1)?, mean, r: g.input(r_at)? };
    let weight = if g.has(w_at) { Some(g.input(w_at)?) } else { None };
    let w = beside(g, weight)?;
    let c = rows.centre(g, &of)?;
    let r = rows.beside(g, of.r)?;
    let h = product(g, c, r)?;
    let needs_w = w.is_some() && g.needs(w_at);
    let turned = match v {
        Some(v) if g.needs(0) || needs_w => Some(rows.backward(g, v, &of, None)?[0]),
        _ => None,
    };
    if g.needs(0) {
        let of_v = match (turned, w) {
            (Some(d), Some(w)) => Some(product(g, d, w)?),
            (d, _) => d,
        };
        let of_a = match a {
            Some(a) => Some(product(g, h, a)?),
            None => None,
        };
        set_total(g, 0, [of_v, of_a, b])?;
    }
    if needs_w && let Some(d) = turned {
        let p = product(g, dy, d)?;
        let dw = rows.sum_of_rows(g, p)?;
        g.set(w_at, dw)?;
    }
    if v.is_none() && a.is_none() || !(1..w_at).any(|i| g.needs(i)) {
        return Ok(());
    }
    // u, the gradient with respect to h, is a dy - r (v M(G h) + G M(v h)).
    let of_a = match a {
        Some(a) => Some(product(g, dy, a)?),
        None => None,
    };
    let (mut of_v, mut through_r) = ([None; 2], None);
    if let Some(v) = v {
        let big = match w {
            Some(w) => product(g, dy, w)?,
            None => dy,
        };
        for (k, (with, other)) in [(big, v), (v, big)].into_iter().enumerate() {
            let p = product(g, with, h)?;
            let sum = rows.row_sum(g, p)?;
            let sum = product(g, sum, of.r)?;
            let sum = times(g, sum, -1.0 / rows.n)?;
            let sum = rows.beside(g, sum)?;
            of_v[k] = Some(product(g, other, sum)?);
        }
        // Σ v dx is r times the derivative with respect to r where h stands still.
        let dx = rows.backward(g, dy, &of, weight)?[0];
        let p = product(g, v, dx)?;
        let sum = rows.row_sum(g, p)?;
        through_r = Some(g.call("div", &[sum, of.r], &[])?);
    }
    let Some(u) = total(g, [of_a, of_v[0], of_v[1]])? else { return Ok(()) };
    let ur = product(g, u, r)?;
    if g.needs(1) {
        g.set(1, ur)?;
    }
    if centred && g.needs(2) {
        let d = rows.row_sum(g, ur)?;
        let d = times(g, d, -1.0)?;
        g.set(2, d)?;
    }
    if g.needs(r_at) {
        let p = product(g, u, c)?;
        let through_h = rows.row_sum(g, p)?;
        set_total(g, r_at, [Some(through_h), through_r])?;
    }
    Ok(())
}
