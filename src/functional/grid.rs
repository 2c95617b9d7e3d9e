//! Images sampled at the places of a grid, and the grids of affine maps. They are compositions, so they have gradients of every order and
//! take every layout.

use super::shape::in_method;
use super::{IntoTarget, TargetSpec, create, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::AttrValue;
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Networks";
    /// An image `[batch, channels, 2 or 3 spatial dims]` at the places of a grid `[batch, 2 or 3 dims of the result, 2 or 3]`, whose last dim
    /// is x, y and z, from -1 to 1 over the image. The mode is `bilinear`, `nearest` or `bicubic`, also of 3 dims; outside the
    /// image are `zeros`, its `border`, or its `reflection`. With `align_corners` -1 and 1 are the centres of the corner pixels, without it
    /// their outer edges.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [1, 1, 2, 2], Device::Cpu)?;
    /// let middle = zeros([1, 1, 1, 2], Device::Cpu)?;
    /// assert_eq!(x.grid_sample(&middle)?.to_vec::<f32>()?, [2.5]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If image and grid do not belong together, or have two dtypes.
    "grid_sample(Tensor x, Tensor grid, *, String mode=\"bilinear\", String padding_mode=\"zeros\", Bool align_corners=false) -> Tensor" = grid_sample;
    /// The grid of affine maps `theta` `[batch, 2, 3]`, or `[batch, 3, 4]` for 3 spatial dims, for `grid_sample` to a result of `size`
    /// `[batch, channels, spatial dims]`.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let same = from_vec(vec![1.0f32, 0.0, 0.0, 0.0, 1.0, 0.0], [1, 2, 3], Device::Cpu)?;
    /// let grid = same.affine_grid([1, 1, 1, 2])?;
    /// assert_eq!(grid.to_vec::<f32>()?, [-0.5, 0.0, 0.5, 0.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "affine_grid(Tensor theta, IntList size, *, Bool align_corners=false) -> Tensor" = affine_grid;
}

/// Values outside of the image.
#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// A dim of the image as the grid sees it.
#[derive(Clone, Copy)]
struct Axis {
    size: f64,
    outside: Outside,
    aligned: bool,
}

impl Axis {
    /// Places from -1 to 1 as indices.
    fn indices(&self, g: &Tensor) -> Result<Tensor> {
        let g = g.add(1.0)?;
        match self.aligned {
            true => g.mul((self.size - 1.0) / 2.0),
            false => g.mul(self.size)?.sub(1.0)?.div(2.0),
        }
    }
    /// Indices brought into the image, but for zeros.
    fn inside(&self, i: &Tensor) -> Result<Tensor> {
        let i = match self.outside {
            Outside::Zeros => return Ok(i.clone()),
            Outside::Border => i.clone(),
            Outside::Reflection => {
                // Between the centres of the first and the last pixel, or their outer edges.
                let (low, span) = if self.aligned { (0.0, self.size - 1.0) } else { (-0.5, self.size) };
                if span == 0.0 {
                    i.mul(0.0)?
                } else {
                    let away = i.sub(low)?.abs()?;
                    let rest = away.fmod(span)?;
                    let turns = away.detach().div(span)?.floor()?.fmod(2.0)?;
                    let back = rest.rsub(span)?;
                    super::generated::functions::where_(&turns.eq(0.0)?, &rest, &back)?.add(low)?
                }
            }
        };
        // At the edges there is no gradient, as in PyTorch; NaN is at the first one.
        let last = self.size - 1.0;
        i.masked_fill(&i.gt(0.0)?.logical_not()?, 0.0)?.masked_fill(&i.ge(last)?, last)
    }
    /// Whole indices: within the image, and which were not. NaN is not.
    fn place(&self, i: &Tensor) -> Result<TapIndex> {
        let last = self.size - 1.0;
        let missing = match self.outside {
            Outside::Zeros => Some(i.ge(0.0)?.logical_and(&i.le(last)?)?.logical_not()?),
            _ => None,
        };
        Ok(TapIndex { index: i.clamp(0.0, last)?.cast(DType::I64)?, missing })
    }
}

/// Elements of a dim that results are made of.
struct TapIndex {
    index: Tensor,
    missing: Option<Tensor>,
}

/// One of the elements that a result is a weighted sum of, in one dim or in all of them.
struct Tap {
    place: TapIndex,
    weight: Option<Tensor>,
}

/// The weights of PyTorch's cubic interpolation, at distances `t + 1`, `t`, `1 - t`, `2 - t`.
fn cubic(t: &Tensor) -> Result<[Tensor; 4]> {
    const A: f64 = -0.75;
    let near = |x: &Tensor| x.mul(A + 2.0)?.sub(A + 3.0)?.mul(x)?.mul(x)?.add(1.0);
    let far = |x: &Tensor| x.mul(A)?.sub(5.0 * A)?.mul(x)?.add(8.0 * A)?.mul(x)?.sub(4.0 * A);
    let back = t.rsub(1.0)?;
    Ok([far(&t.add(1.0)?)?, near(t)?, near(&back)?, far(&back.add(1.0)?)?])
}

/// The elements of one dim. With `skipping` an element outside the image has the weight 0, also where the grid is infinite or NaN.
fn taps(axis: &Axis, mode: &str, g: &Tensor, skipping: bool) -> Result<Vec<Tap>> {
    let i = axis.indices(g)?;
    match mode {
        "nearest" => {
            let place = axis.place(&axis.inside(&i.detach())?.round()?)?;
            Ok(vec![Tap { place, weight: None }])
        }
        "bilinear" => {
            let i = axis.inside(&i)?;
            let first = i.detach().floor()?;
            let second = i.sub(&first)?;
            let tap = |at: Tensor, weight: Tensor| -> Result<Tap> {
                let place = axis.place(&at)?;
                let weight = match &place.missing {
                    Some(missing) if skipping => weight.masked_fill(missing, 0.0)?,
                    _ => weight,
                };
                Ok(Tap { place, weight: Some(weight) })
            };
            Ok(vec![tap(first.clone(), second.rsub(1.0)?)?, tap(first.add(1.0)?, second)?])
        }
        _ => {
            let first = i.detach().floor()?;
            let weights = cubic(&i.sub(&first)?)?;
            let tap = |(k, weight): (usize, Tensor)| -> Result<Tap> {
                let at = axis.inside(&first.add(k as f64 - 1.0)?)?;
                Ok(Tap { place: axis.place(&at)?, weight: Some(weight) })
            };
            weights.into_iter().enumerate().map(tap).collect()
        }
    }
}

/// Elements of all dims so far and of the next one, as elements of both.
fn joined(outer: &Tap, inner: &Tap, size: usize) -> Result<Tap> {
    let either = |a: &Option<Tensor>, b: &Option<Tensor>, both: fn(&Tensor, &Tensor) -> Result<Tensor>| match (a, b) {
        (Some(a), Some(b)) => both(a, b).map(Some),
        (a, b) => Ok(a.clone().or_else(|| b.clone())),
    };
    Ok(Tap {
        place: TapIndex {
            index: outer.place.index.mul(size as i64)?.add(&inner.place.index)?,
            missing: either(&outer.place.missing, &inner.place.missing, |a, b| a.logical_or(b))?,
        },
        weight: either(&outer.weight, &inner.weight, |a, b| a.mul(b))?,
    })
}

pub(super) fn grid_sample(
    x: &Tensor,
    grid: &Tensor,
    mode: &str,
    padding_mode: &str,
    align_corners: bool,
    site: CallSite,
) -> Result<Tensor> {
    let refused = |e: Error| e.in_call(|| format!("grid_sample({}, {})", x.short(), grid.short())).at(site);
    let outside = match padding_mode {
        "zeros" => Outside::Zeros,
        "border" => Outside::Border,
        "reflection" => Outside::Reflection,
        _ => {
            let e = Error::argument(format!("unknown padding_mode '{padding_mode}'"));
            return Err(refused(e.help("it is zeros, border or reflection")));
        }
    };
    let ([n, c, image @ ..], [batch, places @ .., coordinates]) = (x.shape(), grid.shape()) else {
        return Err(refused(Error::shape("an image and a grid have at least 4 dims")));
    };
    let dims = image.len();
    if !(2..=3).contains(&dims) || places.len() != dims || *coordinates != dims || n != batch {
        let e = Error::shape(format!("an image {:?} and a grid {:?} do not fit", x.shape(), grid.shape()));
        return Err(refused(e.help("they are [batch, channels, 2 or 3 dims] and [batch, 2 or 3 dims, 2 or 3]")));
    }
    if x.dtype() != grid.dtype() || !x.dtype().is_float() {
        return Err(refused(Error::dtype(format!(
            "image and grid are one float dtype, not {} and {}",
            x.dtype(),
            grid.dtype()
        ))));
    }
    if image.contains(&0) {
        return Err(refused(Error::shape(format!("the spatial dims {image:?} have no elements"))));
    }
    if !["bilinear", "nearest", "bicubic"].contains(&mode) {
        let e = Error::argument(format!("unknown mode '{mode}'"));
        return Err(refused(e.help("it is bilinear, nearest or bicubic")));
    }
    let _scope = site.scope();
    let inner = inner_calls();
    if mode == "bicubic" && dims == 3 && x.dtype().is_half() {
        // Sums of 64 products are kept in f32, as in PyTorch.
        let wide = |t: &Tensor| t.cast(DType::F32);
        let y = grid_sample(&wide(x)?, &wide(grid)?, mode, padding_mode, align_corners, site)?;
        drop(inner);
        return y.cast_at(x.dtype(), site);
    }
    let count: usize = places.iter().product();
    let mut taps_of_all: Option<Vec<Tap>> = None;
    for (d, size) in image.iter().enumerate() {
        let axis = Axis { size: *size as f64, outside, aligned: align_corners };
        // The last dim of the image is the first of the grid's coordinates.
        let g = grid.select(-1, (dims - 1 - d) as i64)?.reshape([*n as i64, count as i64])?;
        // PyTorch skips what is outside an image of 3 dims, and multiplies zeros outside one of 2 dims.
        let own = taps(&axis, mode, &g, dims == 3)?;
        taps_of_all = Some(match taps_of_all {
            None => own,
            Some(outer) => {
                let pairs = outer.iter().flat_map(|o| own.iter().map(move |i| joined(o, i, *size)));
                pairs.collect::<Result<_>>()?
            }
        });
    }
    let elements: usize = image.iter().product();
    let mut flat = x.reshape([*n, *c, elements])?;
    if outside == Outside::Zeros {
        // One element more, which is 0: that is where everything outside points to.
        flat = super::image::pad(&flat, &[0, 1], "constant", Scalar::Int(0), site)?;
    }
    let mut sum: Option<Tensor> = None;
    for tap in taps_of_all.unwrap_or_default() {
        let index = match &tap.place.missing {
            Some(missing) => tap.place.index.masked_fill(missing, elements as i64)?,
            None => tap.place.index,
        };
        let index = index.unsqueeze(1)?.expand([*n, *c, count])?;
        let mut value = flat.gather(2, &index)?;
        if let Some(w) = &tap.weight {
            value = value.mul(&w.unsqueeze(1)?)?;
        }
        sum = Some(match sum {
            None => value,
            Some(sum) => sum.add(&value)?,
        });
    }
    let Some(sum) = sum else { return Err(refused(Error::shape("the image has no dims"))) };
    drop(inner);
    let shape = [&[*n, *c], places].concat();
    Ok(sum.reshape_at(&shape, site)?.into_result())
}

pub(super) fn affine_grid(theta: &Tensor, size: &[i64], align_corners: bool, site: CallSite) -> Result<Tensor> {
    let named = in_method("affine_grid", theta, site);
    let dims = size.len().saturating_sub(2);
    let batch = theta.shape().first().copied().unwrap_or(0);
    let fits = (2..=3).contains(&dims)
        && theta.shape() == [batch, dims, dims + 1]
        && size[0] == batch as i64
        && size[1..].iter().all(|n| (1..=i64::from(i32::MAX)).contains(n));
    if !fits || !theta.dtype().is_float() {
        let e = Error::shape(format!("{} makes no grid for {size:?}", theta.short()));
        return Err(named(
            e.help("theta is float [batch, 2, 3] for [batch, channels, height, width], or [batch, 3, 4] for 3 dims"),
        ));
    }
    let target: TargetSpec = match theta.global() {
        Some(g) => (&g.placement, NdSbp::broadcast(g.placement.axes())).into_target(),
        None => theta.device().into_target(),
    };
    let _scope = site.scope();
    let inner = inner_calls();
    let spatial: Vec<usize> = size[2..].iter().map(|n| *n as usize).collect();
    // A grid that is x, y (z) and 1 in its last dim.
    let mut columns: Vec<Tensor> = vec![];
    for (d, n) in spatial.iter().enumerate().rev() {
        let edge = if *n < 2 {
            0.0
        } else if align_corners {
            1.0
        } else {
            (*n as f64 - 1.0) / *n as f64
        };
        let attrs = smallvec![AttrValue::from(*n), theta.dtype().into()];
        let numbers = smallvec![Scalar::Float(-edge), Scalar::Float(edge)];
        let line = create(op!("linspace"), attrs, numbers, target.target(), site)?;
        let mut beside = vec![1i64; dims + 1];
        beside[d] = *n as i64;
        let whole: Vec<i64> = spatial.iter().map(|n| *n as i64).chain([1]).collect();
        columns.push(line.reshape(beside)?.expand(whole)?);
    }
    let ones = [spatial.as_slice(), &[1]].concat();
    columns.push(super::attend::filled(&ones, Scalar::Float(1.0), theta.dtype(), theta, site)?);
    let base = super::cat(&columns.iter().collect::<Vec<_>>(), -1)?;
    let rows: usize = spatial.iter().product();
    let base = base.reshape([1, rows, dims + 1])?.expand([batch, rows, dims + 1])?;
    // [batch, places, dims + 1] times theta, transposed.
    let grid = base.matmul_t(theta)?;
    drop(inner);
    let shape = [&[batch], spatial.as_slice(), &[dims]].concat();
    Ok(invoke1(op!("reshape"), &[Some(&grid)], smallvec![AttrValue::from(&shape[..])], smallvec![], site)?
        .into_result())
}
