//! Convolutions: `conv`, its transposed form `conv_transpose` and the gradient of the weight `conv_weight`. Each is linear in each of
//! its two operands, and the gradients of each are the other two, so every order of derivative is there.
//!
//! The number of places is an attribute, not computed of a padding, so what the padding adds at the end needs no attribute of its own.

use super::slide::{Slide, narrow, range};
use crate::error::{Error, Result};
use crate::ops::{AttrValue, Attrs, Grad, GradCtx, InferCtx, LocalizeCtx, NdSignature, OpDef, Value};
use crate::placement::Placement;
use crate::sbp::{Signature, shard_box};
use oflow_kernels::conv::Sliding;
use oflow_kernels::{DTypeKind, Dims, ShardBox};
use std::sync::Arc;

const SLIDES: &str = "stride: ints, padding: ints, dilation: ints, size: shape, groups: int = 1";

/// Checks an image `[n, c, ..]`, a weight `[f, c / groups, ..]` and a result `[n, f, ..]`, of which two are inputs and one has the shape
/// that is given; and the attributes.
fn check(c: &InferCtx<'_>, image: &[usize], weight: &[usize], result: &[usize]) -> Result<()> {
    let n = image.len().wrapping_sub(2);
    if !(1..=3).contains(&n) || weight.len() != image.len() || result.len() != image.len() {
        return Err(Error::shape(format!(
            "a convolution takes 1 to 3 spatial dims: {image:?} and {weight:?} have not"
        ))
        .help(
            "the image is [batch, channels, spatial dims…], the weight [filters, channels / groups, spatial dims…]",
        ));
    }
    let lists = [c.ints("stride")?, c.ints("padding")?, c.ints("dilation")?];
    if lists.iter().any(|l| l.len() != n) {
        return Err(Error::argument(format!(
            "stride {:?}, padding {:?} and dilation {:?} need {n} numbers, one per spatial dim",
            lists[0], lists[1], lists[2]
        )));
    }
    let groups = c.size("groups")?;
    Sliding::new(lists[0], lists[1], lists[2], groups).map_err(|e| Error::argument(e.0))?;
    if weight[1].checked_mul(groups) != Some(image[1]) || !weight[0].is_multiple_of(groups) {
        let of = if groups == 1 { String::new() } else { format!(" in {groups} groups") };
        return Err(Error::shape(format!(
            "the weight {weight:?} takes {} channels to {} filters{of}; the image {image:?} has {} channels",
            weight[1].saturating_mul(groups),
            weight[0],
            image[1]
        ))
        .help("filters and channels must be multiples of `groups`; the weight's dim 1 is channels / groups"));
    }
    if weight[0] != result[1] || image[0] != result[0] {
        return Err(Error::shape(format!(
            "{result:?} cannot be the result of a convolution of {image:?} with {weight:?}"
        )));
    }
    Ok(())
}

/// `[first, second, size..]`.
fn sized(c: &InferCtx<'_>, first: usize, second: usize) -> Result<Dims> {
    let mut dims: Dims = [first, second].into_iter().collect();
    dims.extend(c.sizes("size")?);
    Ok(dims)
}

/// Size of a dim, 0 where the tensor has no such dim: `check` refuses it with a sentence.
fn dim(c: &InferCtx<'_>, input: usize, d: usize) -> Result<usize> {
    Ok(c.shape(input)?.get(d).copied().unwrap_or(0))
}

fn bias_fits(c: &InferCtx<'_>, rows: usize) -> Result<()> {
    if c.has(2) { super::dims_are(c, 2, &[rows]) } else { Ok(()) }
}

/// A tensor of a call and the dim of it that the groups cut.
#[derive(Clone, Copy)]
enum Cut {
    In(usize, usize),
    Out(usize),
}

/// Whether every rank has whole groups, the same of all tensors that are split along the dim that groups cut.
fn whole_groups(c: &InferCtx<'_>, out: &[usize], p: &Placement, sig: &NdSignature, cuts: &[Cut]) -> Result<bool> {
    let groups = c.size("groups")?;
    if groups == 1 {
        return Ok(true);
    }
    let mut split = vec![];
    for cut in cuts {
        let (shape, sbp, dim) = match cut {
            Cut::In(i, _) if !c.has(*i) => continue,
            Cut::In(i, d) => (c.shape(*i)?, &sig.inputs[*i], *d),
            Cut::Out(d) => (out, &sig.outputs[0], *d),
        };
        split.push((shape, sbp, dim));
    }
    if split.iter().all(|(_, sbp, d)| sbp.iter().all(|s| s.split_dim() != Some(*d))) {
        return Ok(true);
    }
    Ok((0..p.len()).all(|rank| {
        let mut ranges = split.iter().map(|(shape, sbp, d)| {
            let (b, each) = (shard_box(shape, p, sbp, rank), (shape[*d] / groups).max(1));
            let whole = b.offset[*d] % each == 0 && b.size[*d] % each == 0;
            whole.then_some((b.offset[*d] / each * usize::from(b.size[*d] > 0), b.size[*d] / each))
        });
        let first = ranges.next().flatten();
        first.is_some() && ranges.all(|r| r == first)
    }))
}

/// Size of the kernel in each spatial dim: of the weight, which is input 1 or the output.
fn kernel_of(c: &LocalizeCtx<'_>, of_weight: bool) -> Result<Vec<i64>> {
    let weight: Dims = if of_weight { c.outputs[0].logical.clone() } else { c.logical.shape(1)?.into() };
    Ok(weight[2..].iter().map(|n| *n as i64).collect())
}

/// The two boxes between which the kernel slides: of the image and of the result.
#[derive(Clone, Copy)]
enum Slides {
    /// From input 0 to the output.
    Conv,
    /// From the output to input 0.
    Transpose,
    /// From input 0 to input 1.
    Weight,
}

impl Slides {
    fn slide(self, c: &LocalizeCtx<'_>) -> Result<Vec<Slide>> {
        Slide::of(c, &kernel_of(c, matches!(self, Slides::Weight))?)
    }

    /// Boxes that the kernel reads beside the shards: of the image those that the windows of the result see, of a result
    /// that is an input the windows that see the image.
    fn windows(self, c: &LocalizeCtx<'_>) -> Result<Vec<Option<ShardBox>>> {
        let mut reads = c.inputs.to_vec();
        let (slides, other) = (self.slide(c)?, if let Slides::Weight = self { c.inputs[1].as_ref() } else { None });
        let other = other.unwrap_or(&c.outputs[0]).clone();
        if let Some(Some(first)) = reads.first_mut() {
            for (d, s) in (2..).zip(&slides) {
                let size = first.logical[d];
                let r = match self {
                    Slides::Transpose => s.seeing(range(&other, d), size),
                    Slides::Conv | Slides::Weight => s.seen(range(&other, d), size),
                };
                narrow(first, d, r);
            }
        }
        Ok(reads)
    }

    /// The attributes of a shard: the groups that it has, the size of its result, and the padding before the image as its boxes lie.
    fn attrs(self, c: &LocalizeCtx<'_>) -> Result<Attrs> {
        // The dim of the output that the groups cut.
        let row = if let Slides::Weight = self { 0 } else { 1 };
        let (groups, out) = (c.int("groups")?, &c.outputs[0]);
        let whole = out.logical[row].max(1) as i64;
        let here = if groups == 1 { 1 } else { groups * out.size[row] as i64 / whole };
        let (Some(Some(first)), Some(second)) = (c.inputs.first(), c.inputs.get(1)) else {
            return Err(Error::argument("an image is missing"));
        };
        let (image, result) = match self {
            Slides::Conv => (first, out),
            Slides::Transpose => (out, first),
            Slides::Weight => (first, second.as_ref().unwrap_or(out)),
        };
        let start = |(d, s): (usize, &Slide)| match image.size[d] == 0 || result.size[d] == 0 {
            // Nothing is read; a number that is in bounds.
            true => s.padding,
            false => s.padding + image.offset[d] as i64 - result.offset[d] as i64 * s.stride,
        };
        let padding = (2..).zip(&self.slide(c)?).map(start).collect();
        let mut attrs = c.with("groups", here)?;
        for (name, value) in [("padding", AttrValue::Ints(padding)), ("size", out.size[2..].into())] {
            if let Some(at) = c.logical.op.sig.attr(name) {
                attrs[at] = c.logical.op.sig.attrs[at].accept(value)?;
            }
        }
        Ok(attrs)
    }
}

type OutShape = fn(&InferCtx<'_>) -> Result<Dims>;

/// S of a spatial dim. A contribution to the weight's gradient comes of each part of the images.
fn along_image(c: &InferCtx<'_>, slides: Slides) -> Result<Vec<Signature>> {
    let row = |d: usize| match slides {
        Slides::Weight => format!("S{d}, S{d} -> P").parse(),
        _ => format!("S{d}, B, B -> S{d}").parse(),
    };
    (2..c.shape(0)?.len()).map(row).collect()
}

/// Declares one of the three ops: their common parts.
fn family(text: &str, doc: &str, out: OutShape, slides: Slides, cuts: &'static [Cut]) -> Result<OpDef> {
    let mut def = OpDef::new(text)?
        .doc(doc)
        .by_name_only()
        .shape1(out)
        .localize(move |c| slides.attrs(c))
        .windows(move |c| along_image(c, slides), move |c| slides.windows(c))
        .flops(move |c| {
            // Each number of the weight is multiplied once for each place of each image.
            let (out, x, w) = (out(c)?, c.shape(0)?, c.shape(1)?);
            let places = |s: &[usize]| s[2..].iter().fold(s[0] as u64, |n, d| n.saturating_mul(*d as u64));
            let (of, times) = match c.op.sig.name.as_str() {
                "conv" => (w.iter().product(), places(&out)),
                "conv_transpose" => (w.iter().product(), places(x)),
                _ => (out.iter().product::<usize>(), places(w)),
            };
            Ok((of as u64).saturating_mul(times).saturating_mul(2))
        });
    def.nd_valid = Some(Arc::new(move |c, placement, sig| {
        out(c).and_then(|out| whole_groups(c, &out, placement, sig, cuts)).unwrap_or(false)
    }));
    Ok(def)
}

/// Gives the rows, and for one group those that split or sum over channels; with more groups these are split with the channels.
fn rows(c: &InferCtx<'_>, always: &[&str], one: &[&str], more: &[&str]) -> Result<Vec<Signature>> {
    let which = if c.size("groups")? == 1 { one } else { more };
    always.iter().chain(which).map(|r| r.parse()).collect()
}

fn slides(g: &dyn GradCtx) -> Result<Vec<(&'static str, AttrValue)>> {
    ["stride", "padding", "dilation", "groups"].into_iter().map(|n| Ok((n, g.attr(n)?))).collect()
}

/// Calls one of the family with the attributes of this call and another size.
fn like(g: &mut dyn GradCtx, op: &str, a: Value, b: Value, size: &[usize]) -> Result<Value> {
    let mut attrs = slides(g)?;
    attrs.push(("size", size.into()));
    // The two that have a bias are called without one.
    let inputs = [Some(a), Some(b), None];
    Ok(g.emit(op, &inputs[..if op == "conv_weight" { 2 } else { 3 }], &attrs)?[0])
}

/// The gradient of a bias: the sum over all dims but the channels.
fn bias_gradient(g: &mut dyn GradCtx, dy: Value) -> Result<()> {
    if g.has(2) && g.needs(2) {
        let rank = g.input_shape(0).len() as i64;
        let dims = std::iter::once(0).chain(2..rank).collect();
        let db = g.call("sum", &[dy], &[("dims", AttrValue::Ints(dims))])?;
        g.set(2, db)?;
    }
    Ok(())
}

fn conv() -> Result<OpDef> {
    let out: OutShape = |c| sized(c, dim(c, 0, 0)?, dim(c, 1, 0)?);
    let text = format!("conv(x: float, weight: float, bias?: float; {SLIDES}) -> y");
    let doc = "The sums of x, weighted by a kernel that slides over its spatial dims.";
    Ok(family(&text, doc, out, Slides::Conv, &[Cut::In(0, 1), Cut::In(1, 0), Cut::In(2, 0), Cut::Out(1)])?
        .product_by_parts("x", "weight")?
        .lowered_for(DTypeKind::Int, super::taps::conv)
        .adds("bias")?
        .check(move |c| {
            super::one_dtype(c, &[0, 1, 2])?;
            check(c, c.shape(0)?, c.shape(1)?, &out(c)?)?;
            bias_fits(c, dim(c, 1, 0)?)
        })
        .get_sbp(|c| {
            // A bias is a summand like the products: it must be added once.
            let always = ["S0, B, B -> S0", "P, B, P -> P", "B, P, P -> P"];
            rows(c, &always, &["B, S0, S0 -> S1", "S1, S1, P -> P"], &["S1, S0, S0 -> S1"])
        })
        .grad(Grad::rule_saving(&[0, 1], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let (w, size) = (g.input(1)?, g.input_shape(0));
                let dx = like(g, "conv_transpose", dy, w, &size[2..])?;
                g.set(0, dx)?;
            }
            if g.needs(1) {
                let (x, size) = (g.input(0)?, g.input_shape(1));
                let dw = like(g, "conv_weight", x, dy, &size[2..])?;
                g.set(1, dw)?;
            }
            bias_gradient(g, dy)
        }))
        .samples(&[
            "f32[2, 4, 7] f32[6, 4, 3] f32[6]; stride=[1], padding=[1], dilation=[1], size=[7]",
            "f64[2, 3, 6, 5] f64[4, 3, 3, 2] -; stride=[2, 1], padding=[1, 0], dilation=[1, 2], size=[3, 3]",
            "f32[3, 4, 5, 5] f32[6, 2, 3, 3] f32[6]; stride=[1, 1], padding=[1, 1], dilation=[1, 1], size=[5, 5], groups=2",
            "f32[2, 3, 4, 4] f32[3, 1, 2, 2] -; stride=[1, 1], padding=[0, 0], dilation=[1, 1], size=[3, 3], groups=3",
            "bf16[2, 2, 3, 2, 3] bf16[2, 2, 2, 2, 2] -; stride=[1, 1, 2], padding=[0, 1, 1], dilation=[1, 1, 1], size=[2, 3, 2]",
        ]))
}

fn conv_transpose() -> Result<OpDef> {
    let out: OutShape = |c| sized(c, dim(c, 0, 0)?, dim(c, 1, 1)?.saturating_mul(c.size("groups")?));
    let text = format!("conv_transpose(x: float, weight: float, bias?: float; {SLIDES}) -> y");
    let doc =
        "The transposed convolution: each element of x adds the kernel, times it, at its place. The gradient of conv.";
    Ok(family(&text, doc, out, Slides::Transpose, &[Cut::In(0, 1), Cut::In(1, 0), Cut::In(2, 0), Cut::Out(1)])?
        .product_by_parts("x", "weight")?
        .lowered_for(DTypeKind::Int, super::taps::conv_transpose)
        .adds("bias")?
        .check(move |c| {
            super::one_dtype(c, &[0, 1, 2])?;
            check(c, &out(c)?, c.shape(1)?, c.shape(0)?)?;
            bias_fits(c, out(c)?[1])
        })
        .get_sbp(|c| {
            let always = ["S0, B, B -> S0", "P, B, P -> P", "B, P, P -> P"];
            rows(c, &always, &["B, S1, S0 -> S1", "S1, S0, P -> P"], &["S1, S0, S0 -> S1"])
        })
        .grad(Grad::rule_saving(&[0, 1], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let (w, size) = (g.input(1)?, g.input_shape(0));
                let dx = like(g, "conv", dy, w, &size[2..])?;
                g.set(0, dx)?;
            }
            if g.needs(1) {
                let (x, size) = (g.input(0)?, g.input_shape(1));
                let dw = like(g, "conv_weight", dy, x, &size[2..])?;
                g.set(1, dw)?;
            }
            bias_gradient(g, dy)
        }))
        .samples(&[
            "f32[2, 6, 7] f32[6, 4, 3] f32[4]; stride=[1], padding=[1], dilation=[1], size=[7]",
            "f64[2, 4, 3, 3] f64[4, 3, 3, 2] -; stride=[2, 1], padding=[1, 0], dilation=[1, 2], size=[6, 5]",
            "f32[3, 6, 3, 3] f32[6, 2, 3, 3] f32[4]; stride=[2, 2], padding=[1, 1], dilation=[1, 1], size=[6, 6], groups=2",
            "bf16[2, 2, 2, 3, 2] bf16[2, 2, 2, 2, 2] -; stride=[1, 1, 2], padding=[0, 1, 1], dilation=[1, 1, 1], size=[3, 2, 3]",
        ]))
}

fn conv_weight() -> Result<OpDef> {
    let out: OutShape = |c| sized(c, dim(c, 1, 1)?, dim(c, 0, 1)? / c.size("groups")?.max(1));
    let text = format!("conv_weight(x: float, dy: float; {SLIDES}) -> dweight");
    Ok(family(&text, "The gradient of conv of its weight.", out, Slides::Weight, &[Cut::In(0, 1), Cut::In(1, 1), Cut::Out(0)])?
        .check(move |c| {
            super::one_dtype(c, &[0, 1])?;
            let w = out(c)?;
            check(c, c.shape(0)?, &w, c.shape(1)?)
        })
        .get_sbp(|c| {
            let always = ["S0, S0 -> P", "P, B -> P", "B, P -> P"];
            rows(c, &always, &["S1, B -> S1", "B, S1 -> S0"], &["S1, S1 -> S0"])
        })
        .grad(Grad::rule_saving(&[0, 1], &[], |g| {
            let Some(dw) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let (dy, size) = (g.input(1)?, g.input_shape(0));
                let dx = like(g, "conv_transpose", dy, dw, &size[2..])?;
                g.set(0, dx)?;
            }
            if g.needs(1) {
                let (x, size) = (g.input(0)?, g.input_shape(1));
                let d = like(g, "conv", x, dw, &size[2..])?;
                g.set(1, d)?;
            }
            Ok(())
        }))
        .samples(&[
            "f32[2, 4, 7] f32[2, 6, 7]; stride=[1], padding=[1], dilation=[1], size=[3]",
            "f64[2, 3, 6, 5] f64[2, 4, 3, 3]; stride=[2, 1], padding=[1, 0], dilation=[1, 2], size=[3, 2]",
            "f32[3, 4, 5, 5] f32[3, 6, 5, 5]; stride=[1, 1], padding=[1, 1], dilation=[1, 1], size=[3, 3], groups=2",
            "bf16[2, 2, 3, 2, 3] bf16[2, 2, 2, 3, 2]; stride=[1, 1, 2], padding=[0, 1, 1], dilation=[1, 1, 1], size=[2, 2, 2]",
        ]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![conv(), conv_transpose(), conv_weight()]
}
