//! Convolutions; see [`crate::cpu::conv`]: by cuDNN where it has an algorithm, else by a kernel here, whose blocks compute tiles of one
//! group's product.

use super::dnn::{Form, convolve};
use super::{Args, Define, Launch, Queue, Source};
use crate::conv::{Sizes, Sliding};
use crate::{KernelError, Result, View};

pub(super) static CONV: Source =
    Source::file("conv", include_str!("../../cuda/conv.cu")).forms(&["T={f32,f64,bf16} FORM={0,1,2}", "T=f16 FORM=0"]);

/// Rows and columns of a tile, as in the source.
const TILE: usize = 64;

/// `of_conv` of the source.
#[derive(Clone, Copy)]
#[repr(C)]
struct Conv {
    batch: i64,
    groups: i64,
    channels: i64,
    filters: i64,
    image: [i64; 3],
    kernel: [i64; 3],
    result: [i64; 3],
    stride: [i64; 3],
    padding: [i64; 3],
    dilation: [i64; 3],
}

fn run(
    q: &Queue,
    form: Form,
    sizes: &Sizes,
    s: &Sliding,
    [image, weight, result]: [&View; 3],
    bias: Option<&View>,
) -> Result<()> {
    let places: usize = sizes.result.iter().product();
    let elements: usize = sizes.image.iter().product();
    // The operands and the sizes of a group's product.
    let (number, [a, b], out, [m, n]) = match form {
        Form::Result => (0, [weight, image], result, [sizes.filters, sizes.batch * places]),
        Form::Image => (1, [weight, result], image, [sizes.channels, sizes.batch * elements]),
        Form::Weight => (2, [result, image], weight, [sizes.filters, sizes.channels * sizes.taps()]),
    };
    let rows = m * sizes.groups;
    if let Some(bias) = bias.filter(|b| b.dims() != [rows] || b.dtype() != out.dtype() || !b.is_contiguous()) {
        return Err(KernelError::new(format!("the bias is {} {:?}", bias.dtype(), bias.dims())));
    }
    if out.is_empty() || convolve(q, form, sizes, s, [image, weight, result], bias)? {
        return Ok(());
    }
    let f = q.function(&CONV, "conv", &[Define::int("FORM", number), Define::dtype("T", out.dtype())])?;
    let all = |v: [usize; 3]| v.map(|v| v as i64);
    let conv = Conv {
        batch: sizes.batch as i64,
        groups: sizes.groups as i64,
        channels: sizes.channels as i64,
        filters: sizes.filters as i64,
        image: all(sizes.image),
        kernel: all(sizes.kernel),
        result: all(sizes.result),
        stride: all(s.stride),
        padding: s.padding.map(|p| p as i64),
        dilation: all(s.dilation),
    };
    let tiles = m.div_ceil(TILE) * n.div_ceil(TILE);
    let tiles = u32::try_from(tiles).map_err(|_| KernelError::new(format!("{tiles} tiles are too many for a GPU")))?;
    let args = Args::new().view(a).view(b).opt_view(bias).view(out).value(conv);
    q.launch(f, Launch::grid((tiles, sizes.groups.min(65535) as u32, 1), 256), args)
}

/// See [`conv`](crate::cpu::conv::conv).
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn conv(q: &Queue, x: &View, weight: &View, bias: Option<&View>, s: &Sliding, out: &View) -> Result<()> {
    run(q, Form::Result, &Sizes::of(x, weight, out, s.groups)?, s, [x, weight, out], bias)
}

/// See [`conv_transpose`](crate::cpu::conv::conv_transpose).
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn conv_transpose(q: &Queue, x: &View, weight: &View, bias: Option<&View>, s: &Sliding, out: &View) -> Result<()> {
    run(q, Form::Image, &Sizes::of(out, weight, x, s.groups)?, s, [out, weight, x], bias)
}

/// See [`conv_weight`](crate::cpu::conv::conv_weight).
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn conv_weight(q: &Queue, x: &View, dy: &View, s: &Sliding, out: &View) -> Result<()> {
    run(q, Form::Weight, &Sizes::of(x, out, dy, s.groups)?, s, [x, out, dy], None)
}
