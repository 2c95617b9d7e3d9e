//! Pooling of the last dims, as many as `size` has numbers: the largest element of each window, where it is, and averages. Windows slide
//! (`max_pool`, `avg_pool`), or cover the image in as many windows as asked for (`adaptive_…`).
//!
//! The number of windows is an attribute, so what the padding adds at the end, and rounding up, need no attributes of their own.

use super::slide::{Slide, narrow, range};
use crate::error::{Error, Result};
use crate::ops::{AttrValue, ByDTypeFn, DTypeRule, Grad, GradCtx, InferCtx, LocalizeCtx, OpDef, Value};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::pool::Windows;
use oflow_kernels::{DType, DTypeKind, Dims, ShardBox};

/// Dims that are not pooled.
fn lead(c: &InferCtx<'_>) -> Result<usize> {
    let (rank, n) = (c.shape(0)?.len(), c.ints("size")?.len());
    match rank.checked_sub(n) {
        Some(lead) if (1..=3).contains(&n) => Ok(lead),
        _ => Err(Error::shape(format!("{n} dims of {:?} cannot be pooled; 1 to 3 can", c.shape(0)?))),
    }
}

fn check(c: &InferCtx<'_>, adaptive: bool, dilated: bool) -> Result<()> {
    let lead = lead(c)?;
    let n = c.shape(0)?.len() - lead;
    // Windows need elements; a gradient gives them.
    let image = if c.op.sig.inputs[0].name == "dy" { c.sizes("size")? } else { c.shape(0)?[lead..].into() };
    let windows = if c.op.sig.inputs[0].name == "dy" { c.shape(0)?[lead..].into() } else { c.sizes("size")? };
    if image.contains(&0) && !windows.contains(&0) {
        return Err(Error::shape(format!("the pooled dims {:?} have no elements", image.as_slice())));
    }
    if adaptive {
        return Ok(());
    }
    let kernel = c.ints("kernel")?;
    if kernel.len() != n {
        return Err(Error::argument(format!("the kernel {kernel:?} needs {n} numbers, one per pooled dim")));
    }
    let ones = vec![1; n];
    let dilation = if dilated { c.ints("dilation")? } else { &ones };
    let (stride, padding) = (c.ints("stride")?, c.ints("padding")?);
    let slides = Windows::sliding(kernel, stride, padding, dilation).map_err(|e| Error::argument(e.0))?;
    // Each window must have an element of the image: PyTorch's rule, and what windows must begin before.
    for d in 0..n {
        if 2 * padding[d] > (kernel[d] - 1) * dilation[d] + 1 {
            return Err(Error::argument(format!("the padding {padding:?} is more than half of the kernel {kernel:?}")));
        }
        let count = windows[d] as i64;
        if count > 0 && (count - 1).saturating_mul(stride[d]) - padding[d] >= image[d] as i64 {
            return Err(Error::argument(format!(
                "window {} of {count} begins after the {} elements of its dim",
                count - 1,
                image[d]
            )));
        }
        let sliding = |j: usize| slides.window(3 - n + d, j, windows[d], image[d]);
        if dilation[d] > 1 && (0..windows[d]).map(sliding).any(|w| w.start >= w.end) {
            return Err(Error::argument(format!("a window of the {} elements of its dim has none of them", image[d])));
        }
    }
    Ok(())
}

fn sized(c: &InferCtx<'_>) -> Result<Dims> {
    let mut dims: Dims = c.shape(0)?[..lead(c)?].into();
    dims.extend(c.sizes("size")?);
    Ok(dims)
}

/// S of the dims that are not pooled.
fn planes(c: &InferCtx<'_>, linear: bool) -> Result<Vec<Signature>> {
    let mut s: Vec<Signature> = (0..lead(c)?).map(Sbp::Split).map(|d| Signature::new(&[d], &[d])).collect();
    if linear {
        s.push(Signature::new(&[Sbp::PARTIAL_SUM], &[Sbp::PARTIAL_SUM]));
    }
    Ok(s)
}

/// S of a pooled dim.
fn along_image(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    Ok((lead(c)?..c.shape(0)?.len()).map(Sbp::Split).map(|d| Signature::new(&[d], &[d])).collect())
}

/// Boxes that a rank's kernel reads: of an image those that its windows see, of a gradient the windows that see its part of
/// the image.
fn reads(c: &LocalizeCtx<'_>, adaptive: bool) -> Result<Vec<Option<ShardBox>>> {
    let mut reads = c.inputs.to_vec();
    let (Some(Some(first)), out) = (reads.first_mut(), &c.outputs[0]) else { return Ok(reads) };
    let back = c.logical.op.sig.inputs[0].name == "dy";
    let lead = first.logical.len() - c.ints("size")?.len();
    let slides = if adaptive { vec![] } else { Slide::of(c, c.ints("kernel")?)? };
    for d in lead..first.logical.len() {
        let (part, size, of) = (range(out, d), first.logical[d], out.logical[d].max(1));
        let seen = match slides.get(d - lead) {
            _ if part.is_empty() => 0..0,
            Some(s) if back => s.seeing(part, size),
            Some(s) => s.seen(part, size),
            // Window j of n has the elements from j/n to (j + 1)/n of the image, rounded outwards; the same holds the other way round.
            None => (part.start * size / of)..(part.end * size).div_ceil(of),
        };
        narrow(first, d, seen);
    }
    Ok(reads)
}

/// All attributes of this call but the size.
fn windows(g: &dyn GradCtx, adaptive: bool, names: &[&'static str]) -> Result<Vec<(&'static str, AttrValue)>> {
    let names = if adaptive { &[] } else { names };
    names.iter().map(|n| Ok((*n, g.attr(n)?))).collect()
}

const SLIDES: [&str; 4] = ["kernel", "stride", "padding", "dilation"];
const AVERAGES: [&str; 5] = ["kernel", "stride", "padding", "count_padding", "divisor"];

/// One of the ops: its name is `name` or, of windows that cover the image, `adaptive_name`.
fn op(name: &str, adaptive: bool, input: &str, attrs: &str, doc: &str) -> Result<OpDef> {
    let (prefix, attrs) = if adaptive { ("adaptive_", String::new()) } else { ("", format!("{attrs}, ")) };
    let dilated = !adaptive && attrs.contains("dilation");
    let output = if name.ends_with("index") { "ids: no_grad" } else { "y" };
    Ok(OpDef::new(&format!("{prefix}{name}({input}: float; {attrs}size: shape) -> {output}"))?
        .doc(doc)
        .by_name_only()
        .windows(along_image, move |c| reads(c, adaptive))
        .check(move |c| check(c, adaptive, dilated))
        .shape1(sized)
        .dtype(if name.ends_with("index") { DTypeRule::Fixed(vec![DType::I64]) } else { DTypeRule::Input(0) }))
}

/// dx of `max_pool`: each window's gradient goes to its largest element.
fn to_largest(g: &mut dyn GradCtx, adaptive: bool, dy: Value) -> Result<Value> {
    let (x, shape) = (g.input(0)?, g.input_shape(0));
    let size = g.shape(dy);
    let AttrValue::Ints(windows_of) = g.attr("size")? else {
        return Err(Error::argument("'size' must be a list of ints"));
    };
    let lead = shape.len() - windows_of.len();
    let mut attrs = windows(g, adaptive, &SLIDES)?;
    attrs.push(("size", AttrValue::Ints(windows_of)));
    let ids = g.call(if adaptive { "adaptive_max_pool_index" } else { "max_pool_index" }, &[x], &attrs)?;
    let flat = |dims: &[usize]| -> Vec<usize> {
        dims[..lead].iter().copied().chain([dims[lead..].iter().product()]).collect()
    };
    let (rows, flat_size) = (flat(&shape)[lead], flat(&size));
    let reshape = |g: &mut dyn GradCtx, v: Value, to: &[usize]| g.call("reshape", &[v], &[("shape", to.into())]);
    let (dy, ids) = (reshape(g, dy, &flat_size)?, reshape(g, ids, &flat_size)?);
    let dx = g.call("scatter_sum", &[dy, ids], &[("dim", lead.into()), ("rows", rows.into())])?;
    reshape(g, dx, &shape)
}

/// Lets windows that slide have integers; PyTorch's windows that cover the image have floats only.
fn of_integers(o: OpDef, adaptive: bool, program: ByDTypeFn) -> OpDef {
    if adaptive { o } else { o.lowered_for(DTypeKind::Int, program) }
}

const SLIDING: &str = "kernel: ints, stride: ints, padding: ints, dilation: ints";
const AVERAGING: &str = "kernel: ints, stride: ints, padding: ints, count_padding: bool, divisor?: int";

fn family(adaptive: bool) -> Vec<Result<OpDef>> {
    let grad_name = if adaptive { "adaptive_avg_pool_grad" } else { "avg_pool_grad" };
    let forward_name = if adaptive { "adaptive_avg_pool" } else { "avg_pool" };
    let samples =
        |slides: &'static [&'static str], adapts: &'static [&'static str]| if adaptive { adapts } else { slides };
    vec![
        op("max_pool", adaptive, "x", SLIDING, "The largest element of each window of the last dims; NaN where it has one.").map(|o| {
            of_integers(o, adaptive, super::taps::max_pool).get_sbp(|c| {
                let mut s = planes(c, false)?;
                s.push("P(max) -> P(max)".parse()?);
                Ok(s)
            })
                .grad(Grad::rule_saving(&[0], &[], move |g| {
                    let Some(dy) = g.grad(0) else { return Ok(()) };
                    let dx = to_largest(g, adaptive, dy)?;
                    g.set(0, dx)
                }))
                .samples(samples(
                    &[
                        "f32[2, 3, 7]; kernel=[3], stride=[2], padding=[1], dilation=[1], size=[4]",
                        "f64[2, 2, 5, 6]; kernel=[2, 3], stride=[2, 1], padding=[0, 1], dilation=[1, 2], size=[2, 4]",
                        "bf16[3, 2, 3, 4]; kernel=[2, 2, 2], stride=[2, 1, 2], padding=[1, 0, 0], dilation=[1, 1, 1], size=[2, 2, 2]",
                    ],
                    &["f32[2, 3, 7]; size=[3]", "f64[2, 5, 4]; size=[2, 3]"],
                ))
        }),
        op("max_pool_index", adaptive, "x", SLIDING, "Where the largest element of each window is, counted over the pooled dims.").map(|o| {
            of_integers(o, adaptive, super::taps::max_pool_index).get_sbp(|c| planes(c, false)).grad(Grad::None).samples(samples(
                &[
                    "f32[2, 3, 7]; kernel=[3], stride=[2], padding=[1], dilation=[1], size=[4]",
                    "f64[2, 2, 5, 6]; kernel=[2, 3], stride=[2, 1], padding=[0, 1], dilation=[1, 2], size=[2, 4]",
                ],
                &["f32[2, 3, 7]; size=[3]", "f64[2, 5, 4]; size=[2, 3]"],
            ))
        }),
        op("avg_pool", adaptive, "x", AVERAGING, "The average of each window of the last dims.").map(|o| {
            of_integers(o, adaptive, super::taps::avg_pool).get_sbp(|c| planes(c, true))
                .grad(Grad::rule_saving(&[], &[], move |g| {
                    let Some(dy) = g.grad(0) else { return Ok(()) };
                    let mut attrs = windows(g, adaptive, &AVERAGES)?;
                    let (shape, AttrValue::Ints(size)) = (g.input_shape(0), g.attr("size")?) else {
                        return Err(Error::argument("'size' must be a list of ints"));
                    };
                    attrs.push(("size", shape[shape.len() - size.len()..].into()));
                    let dx = g.call(grad_name, &[dy], &attrs)?;
                    g.set(0, dx)
                }))
                .samples(samples(
                    &[
                        "f32[2, 3, 7]; kernel=[3], stride=[2], padding=[1], count_padding=true, size=[4]",
                        "f64[2, 2, 5, 6]; kernel=[2, 3], stride=[2, 1], padding=[0, 1], count_padding=false, size=[2, 6]",
                        "bf16[3, 2, 3, 4]; kernel=[2, 2, 2], stride=[2, 1, 2], padding=[1, 0, 0], count_padding=true, divisor=4, size=[2, 2, 2]",
                    ],
                    &["f32[2, 3, 7]; size=[3]", "f64[2, 5, 4]; size=[2, 3]"],
                ))
        }),
        op("avg_pool_grad", adaptive, "dy", AVERAGING, "The gradient of avg_pool: each window's gradient, divided among its elements.").map(
            |o| {
                o.get_sbp(|c| planes(c, true))
                    .grad(Grad::rule_saving(&[], &[], move |g| {
                        let Some(dx) = g.grad(0) else { return Ok(()) };
                        let mut attrs = windows(g, adaptive, &AVERAGES)?;
                        let (shape, AttrValue::Ints(size)) = (g.input_shape(0), g.attr("size")?) else {
                            return Err(Error::argument("'size' must be a list of ints"));
                        };
                        attrs.push(("size", shape[shape.len() - size.len()..].into()));
                        let d = g.call(forward_name, &[dx], &attrs)?;
                        g.set(0, d)
                    }))
                    .samples(samples(
                        &[
                            "f32[2, 3, 4]; kernel=[3], stride=[2], padding=[1], count_padding=true, size=[7]",
                            "f64[2, 2, 2, 6]; kernel=[2, 3], stride=[2, 1], padding=[0, 1], count_padding=false, size=[5, 6]",
                        ],
                        &["f32[2, 3, 3]; size=[7]", "f64[2, 2, 3]; size=[5, 4]"],
                    ))
            },
        ),
    ]
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    [false, true].into_iter().flat_map(family).collect()
}
