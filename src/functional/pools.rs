//! Pooling that is made of several ops: norms of windows, the inverse of a max pooling, windows at random places, and averages over
//! channels.

use super::attend::filled;
use super::conv::{List, Spatial, pooled};
use super::{IntoTarget, arange, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Networks";
    /// `adaptive_max_pool1d`, and where the elements are, counted over the spatial dims.
    "adaptive_max_pool1d_with_indices(Tensor x, IntList output_size) -> (Tensor values, Tensor indices)" = adaptive_max_pool1d_with_indices;
    /// `adaptive_max_pool2d`, and where the elements are, counted over the spatial dims.
    "adaptive_max_pool2d_with_indices(Tensor x, IntList output_size) -> (Tensor values, Tensor indices)" = adaptive_max_pool2d_with_indices;
    /// `adaptive_max_pool3d`, and where the elements are, counted over the spatial dims.
    "adaptive_max_pool3d_with_indices(Tensor x, IntList output_size) -> (Tensor values, Tensor indices)" = adaptive_max_pool3d_with_indices;
    /// The p-norm of each window of the last dim, p = `norm_type`: the p-th root of the sum of xᵖ. `stride` is the kernel's size unless given.
    "lp_pool1d(Tensor x, Float norm_type, IntList kernel_size, IntList stride=[], Bool ceil_mode=false) -> Tensor" = lp_pool1d;
    /// As `lp_pool1d` for 2 spatial dims.
    "lp_pool2d(Tensor x, Float norm_type, IntList kernel_size, IntList stride=[], Bool ceil_mode=false) -> Tensor" = lp_pool2d;
    /// As `lp_pool1d` for 3 spatial dims.
    "lp_pool3d(Tensor x, Float norm_type, IntList kernel_size, IntList stride=[], Bool ceil_mode=false) -> Tensor" = lp_pool3d;
    /// The elements of a max pooling at their places `indices`, as `max_pool1d_with_indices` gives them, and zeros elsewhere. The size is that
    /// of an image whose windows end with it, unless given.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 4.0, 3.0, 2.0], [1, 1, 4], Device::Cpu)?;
    /// let pooled = x.max_pool1d_with_indices(2, (), 0, 1, false)?;
    /// assert_eq!(pooled[0].max_unpool1d(&pooled[1], 2, (), 0, ())?.to_vec::<f32>()?, [0.0, 4.0, 3.0, 0.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `output_size` is no size that the pooling could have been of.
    "max_unpool1d(Tensor x, Tensor indices, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList output_size=[]) -> Tensor" = max_unpool1d;
    /// As `max_unpool1d` for 2 spatial dims.
    "max_unpool2d(Tensor x, Tensor indices, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList output_size=[]) -> Tensor" = max_unpool2d;
    /// As `max_unpool1d` for 3 spatial dims.
    "max_unpool3d(Tensor x, Tensor indices, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList output_size=[]) -> Tensor" = max_unpool3d;
    /// The largest elements of windows whose places are random (Graham, 2014), and where they are, counted over the spatial dims.
    /// `samples` `[batch, channels, 2]` are uniform numbers from 0 to 1: the windows of a channel of an image depend on its numbers, the
    /// first for the last dim.
    "fractional_max_pool2d(Tensor x, IntList kernel_size, IntList output_size, Tensor samples) -> (Tensor values, Tensor indices)" = fractional_max_pool2d;
    /// As `fractional_max_pool2d` for 3 spatial dims and as many numbers for each channel, in the order of the dims.
    "fractional_max_pool3d(Tensor x, IntList kernel_size, IntList output_size, Tensor samples) -> (Tensor values, Tensor indices)" = fractional_max_pool3d;
    /// Divides each element of `[batch, channels, …]` by (k + alpha a)^beta, where a is the mean of the squares at its place in `size` channels
    /// around its own; channels that are not there count as 0.
    "local_response_norm(Tensor x, Int size, Float alpha=0.0001, Float beta=0.75, Float k=1.0) -> Tensor" = local_response_norm;
}

/// Averages, and largest elements with their places, of windows over `n` dims.
fn averages(x: &Tensor, n: usize, kernel: &[i64], stride: &[i64], ceil: bool) -> Result<Tensor> {
    match n {
        1 => x.avg_pool1d(kernel, stride, 0, ceil, true),
        2 => x.avg_pool2d(kernel, stride, 0, ceil, true, None),
        _ => x.avg_pool3d(kernel, stride, 0, ceil, true, None),
    }
}

fn largest(x: &Tensor, n: usize, kernel: &[i64], stride: &[i64], ceil: bool) -> Result<Tensor> {
    match n {
        1 => x.max_pool1d(kernel, stride, 0, 1, ceil),
        2 => x.max_pool2d(kernel, stride, 0, 1, ceil),
        _ => x.max_pool3d(kernel, stride, 0, 1, ceil),
    }
}

fn adaptive_max(call: &Spatial<'_>, output_size: &[i64]) -> Result<Vec<Tensor>> {
    call.has_elements(call.x().ndim() - 1)?;
    let size = || Ok::<_, Error>([AttrValue::Ints(call.list("output_size", output_size, 0)?)]);
    let ids = pooled(op!("adaptive_max_pool_index"), call, size()?)?;
    Ok(vec![pooled(op!("adaptive_max_pool"), call, size()?)?, ids])
}

/// Runs the calls that a function is made of, whose errors name it too.
fn made_of<T>(name: &str, x: &Tensor, site: CallSite, body: impl FnOnce() -> Result<T>) -> Result<T> {
    site.run(body).map_err(|e| e.within(|| format!("{name}({})", x.short())))
}

fn lp_pool(
    name: &'static str,
    n: usize,
    x: &Tensor,
    p: f64,
    [kernel, stride]: [&[i64]; 2],
    ceil: bool,
    site: CallSite,
) -> Result<Tensor> {
    let call = Spatial::new(name, n, &[x], site)?;
    if p == 0.0 || p.is_nan() {
        return Err(call.bad(format!("norm_type is {p}; it is a number other than 0")));
    }
    let kernel = call.list("kernel_size", kernel, 1)?;
    made_of(name, x, site, || {
        let inner = inner_calls();
        if p.is_infinite() {
            let size = x.abs()?;
            let size = if p > 0.0 { size } else { size.neg()? };
            let y = largest(&size, n, &kernel, stride, ceil)?;
            drop(inner);
            return if p > 0.0 { Ok(y) } else { y.neg() };
        }
        let mean = averages(&x.pow(p)?, n, &kernel, stride, ceil)?;
        // PyTorch's form: the gradient of a window of zeros is that of its relu.
        let sum = mean.sign()?.mul(&mean.abs()?.relu()?)?.mul(kernel.iter().product::<i64>() as f64)?;
        drop(inner);
        sum.pow(1.0 / p)
    })
}

/// The sizes that an image had before it was pooled.
fn unpooled_size(call: &Spatial<'_>, lists: [&[i64]; 4]) -> Result<List> {
    let [kernel, stride, padding, size] = lists;
    let kernel = call.list("kernel_size", kernel, 1)?;
    let stride = if stride.is_empty() { kernel.clone() } else { call.list("stride", stride, 1)? };
    let padding = call.list("padding", padding, 0)?;
    let usual: List = (call.size().iter().zip(&kernel).zip(stride.iter().zip(&padding)))
        .map(|((n, k), (s, p))| (n - 1).saturating_mul(*s).saturating_add(k - 2 * p))
        .collect();
    let size = if size.is_empty() { usual.clone() } else { call.list("output_size", size, 0)? };
    match (0..size.len()).find(|d| size[*d] < 0 || (size[*d] - usual[*d]).abs() >= stride[*d]) {
        None => Ok(size),
        Some(d) => {
            let (least, most) = ((usual[d] - stride[d] + 1).max(0), usual[d] + stride[d] - 1);
            Err(call.bad(format!("spatial dim {d} had {least} to {most} elements before the pooling, not {}", size[d])))
        }
    }
}

fn max_unpool(
    name: &'static str,
    n: usize,
    x: &Tensor,
    indices: &Tensor,
    lists: [&[i64]; 4],
    site: CallSite,
) -> Result<Tensor> {
    let call = Spatial::new(name, n, &[x], site)?;
    if indices.shape() != x.shape() {
        let e = Error::shape(format!("the indices have shape {:?}", indices.shape()));
        return Err(call.refused(e.help("they have the shape of x: each says where its element was")));
    }
    let size = unpooled_size(&call, lists)?;
    let size: Vec<usize> = size.iter().map(|s| *s as usize).collect();
    let lead = &x.shape()[..x.ndim() - n];
    let flat = |t: &Tensor| -> Result<Tensor> {
        let shape = [lead, &[t.shape()[lead.len()..].iter().product()]].concat();
        Ok(t.reshape_at(&shape, site)?.into_result())
    };
    made_of(name, x, site, || {
        let inner = inner_calls();
        let zeros = filled(&[lead, &[size.iter().product()]].concat(), Scalar::Float(0.0), x.dtype(), x, site)?;
        let y = zeros.scatter(-1, &flat(indices)?, &flat(x)?)?;
        drop(inner);
        Ok(y.reshape_at(&[lead, &size].concat(), site)?.into_result())
    })
}

/// Where the windows of a dim of `n` elements begin, for each channel of each image: `[batch, channels, out]`.
fn starts(sample: &Tensor, n: usize, kernel: usize, out: usize, site: CallSite) -> Result<Tensor> {
    let sample = sample.unsqueeze(-1)?;
    let last = (n - kernel) as f64;
    let step = if out > 1 { last / (out - 1) as f64 } else { 0.0 };
    let count = arange(out as i64, IntoTarget::into_target(sample.whole_target()).dtype(DType::I64))?;
    let places = sample.add(&count.cast_at(sample.dtype(), site)?)?.mul(step)?.trunc()?;
    let places = places.sub(&sample.mul(step)?.trunc()?)?;
    places.masked_fill(&count.eq(out as i64 - 1)?, last)?.cast_at(DType::I64, site)
}

fn fractional(
    name: &'static str,
    n: usize,
    x: &Tensor,
    [kernel, out]: [&[i64]; 2],
    samples: &Tensor,
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let call = Spatial::new(name, n, &[x], site)?;
    call.has_elements(n + 1)?;
    let (kernel, out, size) = (call.list("kernel_size", kernel, 1)?, call.list("output_size", out, 1)?, call.size());
    if let Some(d) = (0..n).find(|d| kernel[*d] + out[*d] - 1 > size[*d]) {
        return Err(call.refused(Error::shape(format!(
            "spatial dim {d} has {} elements, which do not hold {} windows of {}",
            size[d], out[d], kernel[d]
        ))));
    }
    let batched = x.ndim() == n + 2;
    let (images, channels) = if batched { (x.shape()[0], x.shape()[1]) } else { (1, x.shape()[0]) };
    let fits = matches!(samples.shape(), [b, c, d] if *b >= images && *c == channels && *d == n);
    if !fits || !samples.dtype().is_float() {
        let e = Error::shape(format!("the samples are {}", samples.short()));
        return Err(call.refused(e.help(format!("they are floats [batch, channels, {n}] from 0 to 1"))));
    }
    made_of(name, x, site, || {
        let inner = inner_calls();
        let image = if batched { x.clone() } else { x.unsqueeze(0)? };
        let [values, at] = at_places(&image, [&kernel, &out, &size], &samples.detach(), site)?;
        drop(inner);
        if batched { Ok(vec![values, at]) } else { Ok(vec![values.squeeze(0)?, at.squeeze(0)?]) }
    })
}

/// The largest elements of windows at random places, and where they are.
fn at_places(x: &Tensor, [kernel, out, size]: [&List; 3], samples: &Tensor, site: CallSite) -> Result<[Tensor; 2]> {
    let n = size.len();
    let samples = samples.narrow(0, 0, x.shape()[0])?;
    let samples = if samples.dtype().is_half() { samples.cast_at(DType::F32, site)? } else { samples };
    let (mut windows, mut at) = (x.clone(), None::<Tensor>);
    let mut apart: Vec<usize> = x.shape()[..2].into();
    for d in 0..n {
        let (k, o, s) = (kernel[d] as usize, out[d] as usize, size[d] as usize);
        // PyTorch takes the numbers of two dims from the last one on.
        let number = samples.select(2, if n == 2 { 1 - d } else { d })?;
        let within = arange(k as i64, IntoTarget::into_target(x.whole_target()).dtype(DType::I64))?;
        let places = starts(&number, s, k, o, site)?.unsqueeze(-1)?.add(&within)?;
        let mut shape = vec![1; n + 2];
        (shape[0], shape[1], shape[d + 2]) = (x.shape()[0], x.shape()[1], o * k);
        let places = places.reshape_at(&shape, site)?.into_result();
        windows = windows.take_along_dim(&places, d + 2)?;
        at = Some(match at {
            None => places,
            Some(before) => before.mul(s as i64)?.add(&places)?,
        });
        apart.extend([o, k]);
    }
    let Some(at) = at else { return Err(Error::argument("no dims are pooled")) };
    // Windows and their elements as the last two dims.
    let order: Vec<i64> = [0, 1]
        .into_iter()
        .chain((0..n).map(|d| 2 + 2 * d))
        .chain((0..n).map(|d| 3 + 2 * d))
        .map(|d| d as i64)
        .collect();
    let shape: Vec<usize> = x.shape()[..2].iter().copied().chain(out.iter().map(|o| *o as usize)).collect();
    let rows = |t: &Tensor| -> Result<Tensor> {
        let t = t.reshape_at(&apart, site)?;
        let t = invoke1(op!("permute"), &[Some(&t)], smallvec![AttrValue::from(&order[..])], smallvec![], site)?;
        Ok(t.reshape_at(&[&shape[..], &[kernel.iter().product::<i64>() as usize]].concat(), site)?.into_result())
    };
    let windows = rows(&windows)?;
    let first = windows.detach().argmax_keepdim(-1)?;
    Ok([windows.gather(-1, &first)?.squeeze(-1)?, rows(&at)?.gather(-1, &first)?.squeeze(-1)?])
}

macro_rules! of_dims {
    ($($n:literal $adaptive:ident $lp:ident $unpool:ident;)*) => {$(
        pub(super) fn $adaptive(x: &Tensor, output_size: &[i64], site: CallSite) -> Result<Vec<Tensor>> {
            adaptive_max(&Spatial::new(stringify!($adaptive), $n, &[x], site)?, output_size)
        }
        pub(super) fn $lp(
            x: &Tensor, norm_type: f64, kernel: &[i64], stride: &[i64], ceil: bool, site: CallSite,
        ) -> Result<Tensor> {
            lp_pool(stringify!($lp), $n, x, norm_type, [kernel, stride], ceil, site)
        }
        pub(super) fn $unpool(
            x: &Tensor, indices: &Tensor, kernel: &[i64], stride: &[i64], padding: &[i64], size: &[i64], site: CallSite,
        ) -> Result<Tensor> {
            max_unpool(stringify!($unpool), $n, x, indices, [kernel, stride, padding, size], site)
        }
    )*};
}
of_dims! {
    1 adaptive_max_pool1d_with_indices lp_pool1d max_unpool1d;
    2 adaptive_max_pool2d_with_indices lp_pool2d max_unpool2d;
    3 adaptive_max_pool3d_with_indices lp_pool3d max_unpool3d;
}

macro_rules! at_random {
    ($($n:literal $name:ident;)*) => {$(
        pub(super) fn $name(
            x: &Tensor, kernel: &[i64], output_size: &[i64], samples: &Tensor, site: CallSite,
        ) -> Result<Vec<Tensor>> {
            fractional(stringify!($name), $n, x, [kernel, output_size], samples, site)
        }
    )*};
}
at_random! { 2 fractional_max_pool2d; 3 fractional_max_pool3d; }

pub(super) fn local_response_norm(
    x: &Tensor,
    size: i64,
    alpha: f64,
    beta: f64,
    k: f64,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        let [batch, channels, rest @ ..] = x.shape() else {
            return Err(Error::shape(format!("x has {} dims; it is [batch, channels, …]", x.ndim())));
        };
        if rest.is_empty() || size < 1 {
            let e = Error::argument(format!("{size} channels around each of a tensor of {} dims", x.ndim()));
            return Err(e.help("size is at least 1, and x has 3 dims or more"));
        }
        if x.numel() == 0 {
            return Ok(x.clone());
        }
        let inner = inner_calls();
        let squares = x.square()?.reshape_at(&[*batch, 1, *channels, rest.iter().product()], site)?.into_result();
        let around = squares.pad([0, 0, size / 2, (size - 1) / 2])?;
        let means = around.avg_pool2d([size, 1], 1, 0, false, true, None)?.reshape_at(x.shape(), site)?.into_result();
        let by = means.mul(alpha)?.add(k)?.pow(beta)?;
        drop(inner);
        x.div(&by)
    };
    site.run(body).map_err(|e| e.within(|| format!("local_response_norm({})", x.short())))
}
