//! Padding, other sizes of images, and regrouping their elements: PyTorch's arguments as the attributes of ops.

use super::conv::{List, Spatial};
use super::shape::in_method;
use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrValue, normalize_dim};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::{SmallVec, smallvec};

by_name! {
    BY_NAME, "Shapes", ByName;
    /// `pad` with one number around.
    "constant_pad_nd(Tensor x, IntList pad, Scalar value=0) -> Tensor" = |b| {
        Ok(vec![pad(b.given(0)?, b.ints(1)?, "constant", b.scalar(2)?, b.site)?])
    };
}

functions! {
    PADDING, "Shapes";
    /// x with elements around it: `pad` has a number before and one after for the last dim, then for the one before it, and so on. The
    /// mode `constant` puts `value` there, and cuts where a number is negative; `reflect` mirrors the tensor at its first and last
    /// elements, `replicate` repeats these, and `circular` goes around: these three for at most 3 dims.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(3, Device::Cpu)?;
    /// assert_eq!(x.pad([1, 2])?.to_vec::<i64>()?, [0, 0, 1, 2, 0, 0]);
    /// let reflect = oflow::functional::PadOptions { mode: "reflect", ..Default::default() };
    /// assert_eq!(x.pad_with([1, 2], &reflect)?.to_vec::<i64>()?, [1, 0, 1, 2, 1, 0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more numbers than dims have sides, or more elements are asked for than the mode can give: `reflect` has one less
    /// than the dim, `circular` as many as it.
    "pad(Tensor x, IntList pad, *, String mode=\"constant\", Scalar value=0) -> Tensor" = pad;
    /// The windows of `size` elements of `dim`, which begin `step` elements apart; the elements of a window are the last dim of the result.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(5, Device::Cpu)?;
    /// assert_eq!(x.unfold(0, 3, 2)?.to_vec::<i64>()?, [0, 1, 2, 2, 3, 4]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "unfold(Tensor x, Int dim, Int size, Int step) -> Tensor" = unfold;
}

functions! {
    FUNCTIONS, "Networks";
    /// An image `[batch, channels, 1 to 3 spatial dims]` with other spatial sizes: `size`, or its own times `scale_factor`, one number a
    /// dim or one for all. The mode is `nearest`, `nearest-exact`, `linear` (1 dim), `bilinear`, `bicubic` (2), `trilinear` (3) or
    /// `area`. With `align_corners` the first and last elements of image and result lie on each other. Coordinates are computed with
    /// `scale_factor` where it is given, unless `recompute_scale_factor` takes the ratio of the sizes.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 2.0], [1, 1, 2], Device::Cpu)?;
    /// assert_eq!(x.interpolate(4)?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// let linear = oflow::functional::InterpolateOptions { mode: "linear", ..Default::default() };
    /// assert_eq!(x.interpolate_with(4, &linear)?.to_vec::<f32>()?, [1.0, 1.25, 1.75, 2.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If both or none of `size` and `scale_factor` are given, if the mode is for another number of dims, or with `antialias`.
    "interpolate(Tensor x, IntList size=[], *, FloatList scale_factor=[], String mode=\"nearest\", Bool? align_corners, Bool? recompute_scale_factor, Bool antialias=false) -> Tensor" = interpolate;
    /// `[..., channels * r², height, width]` as `[..., channels, height * r, width * r]`: r² channels become squares of pixels.
    "pixel_shuffle(Tensor x, Int upscale_factor) -> Tensor" = pixel_shuffle;
    /// `[..., channels, height * r, width * r]` as `[..., channels * r², height, width]`: the inverse of `pixel_shuffle`.
    "pixel_unshuffle(Tensor x, Int downscale_factor) -> Tensor" = pixel_unshuffle;
    /// The channels, dim 1, in `groups` groups, taken in turn from each.
    "channel_shuffle(Tensor x, Int groups) -> Tensor" = channel_shuffle;
    /// The windows of images `[batch, channels, height, width]`, or without the batch, as columns: `[batch, channels * elements of a
    /// window, windows]`. PyTorch's `nn.functional.unfold`.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = ones([2, 3, 4, 5], Device::Cpu)?;
    /// assert_eq!(x.im2col([2, 3], 1, 0, 1)?.shape(), [2, 18, 9]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "im2col(Tensor x, IntList kernel_size, IntList dilation=[1], IntList padding=[0], IntList stride=[1]) -> Tensor" = im2col;
    /// Images of `output_size` to which columns of windows are added at their places: the gradient of `im2col`. PyTorch's
    /// `nn.functional.fold`.
    "col2im(Tensor x, IntList output_size, IntList kernel_size, IntList dilation=[1], IntList padding=[0], IntList stride=[1]) -> Tensor" = col2im;
}

/// How the last dims are resampled: a mode of the op, its numbers for each dim, and scales.
struct How<'a> {
    mode: &'a str,
    aligned: bool,
    steps: &'a [i64],
    scales: &'a [f64],
}

/// Calls one of the two ops of resampling.
fn resampled(
    op: Result<&'static crate::ops::Op>,
    x: &Tensor,
    size: &[i64],
    how: &How<'_>,
    site: CallSite,
) -> Result<Tensor> {
    let attrs = smallvec![
        how.mode.into(),
        AttrValue::Ints(size.into()),
        how.aligned.into(),
        AttrValue::Ints(how.steps.into()),
        AttrValue::Floats(how.scales.into()),
    ];
    invoke1(op, &[Some(x)], attrs, smallvec![], site)
}

/// The mode and the number that PyTorch's padding takes; also called by convolutions that pad.
pub(crate) fn pad(x: &Tensor, pad: &[i64], mode: &str, value: Scalar, site: CallSite) -> Result<Tensor> {
    let named = in_method("pad", x, site);
    let (rank, n) = (x.ndim(), pad.len() / 2);
    if !pad.len().is_multiple_of(2) || n > rank {
        let e = Error::argument(format!(
            "expected a pair of numbers for each of the last of {rank} dims, got {} numbers",
            pad.len()
        ));
        return Err(named(e.help("they are before and after of the last dim, then of the one before it, …")));
    }
    let (mut before, mut size): (List, List) = (smallvec![0; rank], x.shape().iter().map(|n| *n as i64).collect());
    for (k, pair) in pad.chunks_exact(2).enumerate() {
        let d = rank - 1 - k;
        let long = size[d].checked_add(pair[0]).and_then(|n| n.checked_add(pair[1])).filter(|n| *n >= 0);
        let Some(long) = long else {
            let e = Error::argument(format!("{} and {} elements around the {} of dim {d}", pair[0], pair[1], size[d]));
            return Err(named(e.help("what is left must be a size")));
        };
        (before[d], size[d]) = (pair[0], long);
    }
    match mode {
        "constant" => {
            let attrs = smallvec![AttrValue::Ints(before), AttrValue::Ints(size), AttrValue::Scalar(value)];
            invoke1(op!("pad_constant"), &[Some(x)], attrs, smallvec![], site)
        }
        "reflect" | "replicate" | "circular" => {
            if value.to_f64() != 0.0 {
                return Err(named(Error::argument(format!("the mode '{mode}' takes no value; it is {value:?}"))));
            }
            if !(1..=3).contains(&n) {
                return Err(named(Error::argument(format!("the mode '{mode}' pads 1 to 3 dims, not {n}"))));
            }
            // What goes around is what is left after cutting.
            if mode == "circular" && pad.iter().any(|p| *p < 0) {
                let cut: List = pad.iter().map(|p| (*p).min(0)).collect();
                let rest: List = pad.iter().map(|p| (*p).max(0)).collect();
                let inner = inner_calls();
                let x = self::pad(x, &cut, "constant", value, site)?;
                drop(inner);
                return self::pad(&x, &rest, mode, value, site);
            }
            let how = How { mode, aligned: false, steps: &before[rank - n..], scales: &[] };
            resampled(op!("resample"), x, &size[rank - n..], &how, site)
        }
        _ => {
            let e = Error::argument(format!("unknown mode '{mode}'"));
            Err(named(e.help("it is constant, reflect, replicate or circular")))
        }
    }
}

/// The order of dims in which `dim` stands last.
fn last(rank: usize, dim: usize) -> AttrValue {
    AttrValue::Ints((0..rank).filter(|d| *d != dim).chain([dim]).map(|d| d as i64).collect())
}

/// Of `[other dims, elements of a window, windows]` the windows at `dim` and their elements last.
fn window_last(rank: usize, dim: usize) -> AttrValue {
    let mut order: List = (0..rank as i64 - 1).collect();
    order.insert(dim, rank as i64);
    order.push(rank as i64 - 1);
    AttrValue::Ints(order)
}

fn permuted(x: &Tensor, order: AttrValue, site: CallSite) -> Result<Tensor> {
    invoke1(op!("permute"), &[Some(x)], smallvec![order], smallvec![], site)
}

pub(super) fn unfold(x: &Tensor, dim: i64, size: i64, step: i64, site: CallSite) -> Result<Tensor> {
    let named = in_method("unfold", x, site);
    let (rank, d) = (x.ndim(), normalize_dim(dim, x.ndim()).map_err(&named)?);
    // A tensor without dims is a line of one element.
    let n = x.shape().get(d).copied().unwrap_or(1) as i64;
    if !(0..=n).contains(&size) || step < 1 {
        let e = Error::argument(format!("windows of {size} elements, {step} apart, of the {n} elements of dim {dim}"));
        return Err(named(e.help("a window has at most as many elements as the dim; the step is at least 1")));
    }
    let count = (n - size) / step + 1;
    let inner = inner_calls();
    let line = if rank == 0 { x.reshape_at(&[1], site)? } else { permuted(x, last(rank, d), site)? };
    // Between fewer than two windows there is no step.
    let steps = [count, if count > 1 { step } else { 1 }, 0, 1];
    let how = How { mode: "windows", aligned: false, steps: &steps, scales: &[] };
    let windows = resampled(op!("resample"), &line, &[size * count], &how, site)?;
    let mut shape: SmallVec<[usize; 6]> = windows.shape()[..rank.max(1) - 1].into();
    shape.extend([size as usize, count as usize]);
    let apart = windows.reshape_at(&shape, site)?;
    drop(inner);
    if rank == 0 {
        return Ok(apart.reshape_at(&[size as usize], site)?.into_result());
    }
    Ok(permuted(&apart, window_last(rank, d), site)?.into_result())
}

/// Spatial sizes as the modes take them, and their scales.
fn sizes_of(call: &Spatial<'_>, n: usize, size: &[i64], factors: &[f64], recompute: bool) -> Result<(List, Vec<f64>)> {
    let own = call.size();
    match (size, factors) {
        ([], []) | ([_, ..], [_, ..]) => Err(call.bad("either size or scale_factor must be given".into())),
        (size, []) if recompute => Err(call.bad(format!("the size {size:?} is given: no factor can be recomputed"))),
        (size, []) => Ok((call.list("size", size, 1)?, vec![])),
        ([], factors) => {
            let all: Vec<f64> = match factors {
                [one] => vec![*one; n],
                all if all.len() == n => all.into(),
                _ => return Err(call.bad(format!("scale_factor is {factors:?}; it needs 1 number, or {n}"))),
            };
            let mut sizes = List::new();
            for (d, f) in all.iter().enumerate() {
                let long = (own[d] as f64 * f).floor();
                // NaN is no size either.
                if !(long >= 1.0 && long <= f64::from(i32::MAX) && *f > 0.0) {
                    return Err(call.bad(format!("scale_factor {f} makes of {} elements {long}", own[d])));
                }
                sizes.push(long as i64);
            }
            Ok((sizes, if recompute { vec![] } else { all }))
        }
    }
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn interpolate(
    x: &Tensor,
    size: &[i64],
    scale_factor: &[f64],
    mode: &str,
    align_corners: Option<bool>,
    recompute_scale_factor: Option<bool>,
    antialias: bool,
    site: CallSite,
) -> Result<Tensor> {
    let n = x.ndim().saturating_sub(2).clamp(1, 3);
    let call = Spatial::new("interpolate", n, &[x], site)?;
    let bad = |why: String, help: &'static str| Err(call.refused(Error::argument(why).help(help)));
    if x.ndim() != n + 2 {
        return bad(format!("x has {} dims", x.ndim()), "it is [batch, channels, 1 to 3 spatial dims]");
    }
    if antialias {
        return bad("antialias is not there".into(), "shrink with the mode area, or in several steps");
    }
    let (rule, dims) = match mode {
        "nearest" | "nearest-exact" | "area" => (mode, None),
        "linear" => ("linear", Some(1)),
        "bilinear" => ("linear", Some(2)),
        "bicubic" => ("cubic", Some(2)),
        "trilinear" => ("linear", Some(3)),
        _ => {
            let modes = "it is nearest, nearest-exact, linear, bilinear, bicubic, trilinear or area";
            return bad(format!("unknown mode '{mode}'"), modes);
        }
    };
    if let Some(want) = dims.filter(|d| *d != n) {
        return bad(
            format!("the mode {mode} is for {want} spatial dims; x has {n}"),
            "linear, bilinear, trilinear are for 1, 2 and 3",
        );
    }
    if dims.is_none() && align_corners.is_some() {
        return bad(format!("the mode {mode} has no corners to align"), "leave out align_corners");
    }
    let (size, scales) = sizes_of(&call, n, size, scale_factor, recompute_scale_factor == Some(true))?;
    if call.size().contains(&0) {
        return Err(
            call.refused(Error::shape(format!("the spatial dims {:?} have no elements", call.size().as_slice())))
        );
    }
    if mode == "area" {
        return invoke1(op!("adaptive_avg_pool"), &[Some(x)], smallvec![AttrValue::Ints(size)], smallvec![], site);
    }
    let how = How { mode: rule, aligned: align_corners == Some(true), steps: &[], scales: &scales };
    resampled(op!("resample"), x, &size, &how, site)
}

/// x under other dims, in another order, as the shape that is asked for.
fn regrouped(x: &Tensor, apart: &[usize], order: &[usize], shape: &[usize], site: CallSite) -> Result<Tensor> {
    let inner = inner_calls();
    let y = permuted(&x.reshape_at(apart, site)?, order.into(), site)?;
    // In new memory, also where nothing is to be moved.
    let y = super::arrange::copied(&y, site)?;
    drop(inner);
    Ok(y.reshape_at(shape, site)?.into_result())
}

pub(super) fn pixel_shuffle(x: &Tensor, upscale_factor: i64, site: CallSite) -> Result<Tensor> {
    let named = in_method("pixel_shuffle", x, site);
    let r = usize::try_from(upscale_factor).ok().filter(|r| *r > 0);
    let (Some(r), [lead @ .., c, h, w]) = (r, x.shape()) else {
        let e = Error::argument(format!("a factor of {upscale_factor}, of {} dims", x.ndim()));
        return Err(named(e.help("the factor is at least 1; x is [..., channels, height, width]")));
    };
    let Some(channels) = r.checked_mul(r).filter(|s| c.is_multiple_of(*s)).map(|s| c / s) else {
        return Err(named(Error::shape(format!("{c} channels are not a multiple of {r} times {r}"))));
    };
    let (n, long) = (lead.len(), |d: &usize| d.saturating_mul(r));
    let order: Vec<usize> = (0..n).chain([0, 3, 1, 4, 2].map(|d| n + d)).collect();
    let apart = [lead, &[channels, r, r, *h, *w]].concat();
    regrouped(x, &apart, &order, &[lead, &[channels, long(h), long(w)]].concat(), site)
}

pub(super) fn pixel_unshuffle(x: &Tensor, downscale_factor: i64, site: CallSite) -> Result<Tensor> {
    let named = in_method("pixel_unshuffle", x, site);
    let r = usize::try_from(downscale_factor).ok().filter(|r| *r > 0);
    let (Some(r), [lead @ .., c, h, w]) = (r, x.shape()) else {
        let e = Error::argument(format!("a factor of {downscale_factor}, of {} dims", x.ndim()));
        return Err(named(e.help("the factor is at least 1; x is [..., channels, height, width]")));
    };
    if !h.is_multiple_of(r) || !w.is_multiple_of(r) {
        return Err(named(Error::shape(format!("{h} and {w} pixels are not multiples of {r}"))));
    }
    let n = lead.len();
    let order: Vec<usize> = (0..n).chain([0, 2, 4, 1, 3].map(|d| n + d)).collect();
    let apart = [lead, &[*c, h / r, r, w / r, r]].concat();
    let channels = c.saturating_mul(r).saturating_mul(r);
    regrouped(x, &apart, &order, &[lead, &[channels, h / r, w / r]].concat(), site)
}

pub(super) fn channel_shuffle(x: &Tensor, groups: i64, site: CallSite) -> Result<Tensor> {
    let named = in_method("channel_shuffle", x, site);
    let [batch, c, rest @ ..] = x.shape() else {
        return Err(named(Error::shape(format!("x has {} dims; it is [batch, channels, ...]", x.ndim()))));
    };
    let Some(g) = usize::try_from(groups).ok().filter(|g| *g > 0 && c.is_multiple_of(*g)) else {
        return Err(named(Error::argument(format!("{c} channels do not fall in {groups} groups of as many"))));
    };
    let apart = [&[*batch, g, c / g], rest].concat();
    let order: Vec<usize> = [0, 2, 1].into_iter().chain(3..apart.len()).collect();
    regrouped(x, &apart, &order, x.shape(), site)
}

/// The windows of two spatial dims.
struct Columns {
    kernel: List,
    /// Windows in each dim.
    count: List,
    /// Arguments of the op of resampling.
    steps: List,
}

impl Columns {
    fn of(call: &Spatial<'_>, image: &[i64], [kernel, dilation, padding, stride]: [&[i64]; 4]) -> Result<Columns> {
        let (kernel, dilation) = (call.list("kernel_size", kernel, 1)?, call.list("dilation", dilation, 1)?);
        let (padding, stride) = (call.list("padding", padding, 0)?, call.list("stride", stride, 1)?);
        let (mut count, mut steps) = (List::new(), List::new());
        for d in 0..2 {
            let room = image[d].saturating_add(2 * padding[d]) - (kernel[d] - 1).saturating_mul(dilation[d]);
            if room < 1 {
                let e =
                    Error::shape(format!("spatial dim {d} has {} elements and no window of {}", image[d], kernel[d]));
                return Err(call.refused(e));
            }
            count.push((room - 1) / stride[d] + 1);
            steps.extend([count[d], stride[d], padding[d], dilation[d]]);
        }
        Ok(Columns { kernel, count, steps })
    }
    fn how(&self) -> How<'_> {
        How { mode: "windows", aligned: false, steps: &self.steps, scales: &[] }
    }
    /// Elements of all windows in each dim.
    fn long(&self) -> [i64; 2] {
        [0, 1].map(|d| self.kernel[d].saturating_mul(self.count[d]))
    }
    /// `[n, c, kernel, windows, kernel, windows]`.
    fn apart(&self, n: usize, c: usize) -> [usize; 6] {
        let [k, m] = [&self.kernel, &self.count].map(|l| [l[0] as usize, l[1] as usize]);
        [n, c, k[0], m[0], k[1], m[1]]
    }
}

/// The order in which kernels and windows stand together; it is its own inverse.
const TOGETHER: [usize; 6] = [0, 1, 2, 4, 3, 5];

pub(super) fn im2col(
    x: &Tensor,
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    site: CallSite,
) -> Result<Tensor> {
    let call = Spatial::new("im2col", 2, &[x], site)?;
    let columns = Columns::of(&call, &call.size(), [kernel_size, dilation, padding, stride])?;
    call.batched(|x| {
        let inner = inner_calls();
        let windows = resampled(op!("resample"), x, &columns.long(), &columns.how(), site)?;
        let apart = columns.apart(x.shape()[0], x.shape()[1]);
        drop(inner);
        let [n, c, kh, oh, kw, ow] = apart;
        regrouped(&windows, &apart, &TOGETHER, &[n, c * kh * kw, oh * ow], site)
    })
}

pub(super) fn col2im(
    x: &Tensor,
    output_size: &[i64],
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    site: CallSite,
) -> Result<Tensor> {
    // Columns have one dim where images have two.
    let call = Spatial::new("col2im", 1, &[x], site)?;
    let two = Spatial::of("col2im", 2, &[x], site);
    let size = two.list("output_size", output_size, 1)?;
    let columns = Columns::of(&two, &size, [kernel_size, dilation, padding, stride])?;
    let (kernel, count): (i64, i64) = (columns.kernel.iter().product(), columns.count.iter().product());
    let [.., rows, places] = *x.shape() else { return Err(call.bad("x has no columns".into())) };
    if places as i64 != count || (rows as i64).checked_rem(kernel).is_none_or(|rest| rest != 0) {
        return Err(call.refused(Error::shape(format!(
            "{rows} rows and {places} columns; an image of {size:?} has {count} windows of {kernel} elements a channel"
        ))));
    }
    call.batched(|x| {
        let inner = inner_calls();
        let apart = columns.apart(x.shape()[0], rows / kernel as usize);
        let [n, c, kh, oh, kw, ow] = apart;
        let together = TOGETHER.map(|d| apart[d]);
        let windows = regrouped(x, &together, &TOGETHER, &[n, c, kh * oh, kw * ow], site)?;
        drop(inner);
        resampled(op!("resample_grad"), &windows, &size, &columns.how(), site)
    })
}
