//! The ops: transforms along one dim times a factor. All are linear, so their gradients are transforms too.

use crate::kernels::{complex, from_real, to_real};
use oflow::backend::cuda::queue;
use oflow::kernels::Dims;
use oflow::kernels::cuda::fft::{Transform, transform, workspace};
use oflow::ops::{AttrValue, DTypeRule, Grad, GradCtx, InferCtx, KernelDef, OpDef, Value, normalize_dim};
use oflow::prelude::*;
use oflow::sbp::Signature;
use std::sync::Arc;

/// Domain of the ops.
pub(crate) const DOMAIN: &str = "fft";

fn dim(c: &InferCtx<'_>) -> Result<usize> {
    c.dim("dim", c.shape(0)?.len())
}

/// An error unless there is something to transform.
fn check(c: &InferCtx<'_>) -> Result<()> {
    match c.shape(0)?.get(dim(c)?) {
        Some(0) => Err(Error::shape("a transform needs at least one number along its dim")),
        Some(_) => Ok(()),
        None => Err(Error::shape("a transform needs a tensor with dims")),
    }
}

/// Other dims are split, and sums of transforms are transforms of sums.
fn declared(text: &str) -> Result<OpDef> {
    Ok(OpDef::new(text)?
        .domain(DOMAIN)
        .subject("Fourier transforms")
        .by_name_only()
        .strided()
        .check(check)
        .get_sbp(|c| {
            let along = dim(c)?;
            let others = (0..c.shape(0)?.len()).filter(|d| *d != along).map(Sbp::Split);
            Ok(others.chain([Sbp::PARTIAL_SUM]).map(|s| Signature::new(&[s], &[s])).collect())
        })
        .flops(|c| {
            let (shape, along) = (c.shape(0)?, dim(c)?);
            let n: u64 = shape.iter().fold(1, |n: u64, d| n.saturating_mul(*d as u64));
            Ok(n.saturating_mul(5 * u64::from(usize::BITS - shape[along].leading_zeros())))
        }))
}

/// The kernel of a GPU.
fn on_gpu(name: &str, kind: Transform) -> KernelDef {
    let run = KernelDef::cuda(name, move |cx| {
        let inverse = match kind {
            Transform::Complex => cx.bool("inverse")?,
            Transform::FromReal => false,
            Transform::ToReal => true,
        };
        let along = (cx.input(0)?, cx.output(0), cx.dim("dim", 0)?);
        Ok(transform(&queue(cx)?, kind, along, inverse, cx.float("factor")?, cx.workspace())?)
    });
    run.with_workspace(move |c, outs| {
        let x = c.input(0)?;
        Ok(workspace(kind, dim(c)?, (x.dtype, &x.shape), (outs[0].dtype, &outs[0].shape)))
    })
}

fn with_dim(c: &InferCtx<'_>, size: usize) -> Result<Dims> {
    let mut shape: Dims = c.shape(0)?.into();
    shape[dim(c)?] = size;
    Ok(shape)
}

pub(crate) fn all() -> Vec<Result<OpDef>> {
    vec![complex_to_complex(), real_to_complex(), complex_to_real()]
}

fn complex_to_complex() -> Result<OpDef> {
    Ok(declared("c2c(x: complex; dim: int = -1, inverse: bool = false, factor: float = 1.0) -> y")?
        .doc("The discrete Fourier transform along a dim times `factor`; with `inverse` the inverse one, whose own factor of 1/n is not in it.")
        .dtype(DTypeRule::Input(0))
        .cpu(|cx| {
            let (x, y, dim, inverse) = (cx.input(0)?, cx.output(0), cx.dim("dim", 0)?, cx.bool("inverse")?);
            let factor = cx.float("factor")?;
            match x.dtype() {
                DType::C128 => complex::<f64>(x, y, dim, inverse, factor),
                _ => complex::<f32>(x, y, dim, inverse, factor),
            }
        })
        .kernel(on_gpu("c2c_cuda", Transform::Complex))
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let turned = !g.bool("inverse")?;
            let attrs = [("dim", g.attr("dim")?), ("inverse", turned.into()), ("factor", g.attr("factor")?)];
            let dx = g.call("fft.c2c", &[dy], &attrs)?;
            g.set(0, dx)
        }))
        .samples(&["c64[3, 4]", "c128[3, 5, 2]; dim=1", "c128[4, 3]; dim=0, inverse=true, factor=0.25", "c64[1]", "c128[7]"]))
}

fn real_to_complex() -> Result<OpDef> {
    Ok(declared("r2c(x: f32|f64; dim: int = -1, factor: float = 1.0) -> y")?
        .doc("The first n/2 + 1 numbers of the Fourier transform of n real ones along a dim times `factor`; the others are their conjugates.")
        .shape1(|c| with_dim(c, c.shape(0)?[dim(c)?] / 2 + 1))
        .dtype(DTypeRule::Fn(Arc::new(|c| Ok([c.input(0)?.dtype.complex()].into_iter().collect()))))
        .cpu(|cx| {
            let (x, y, dim, factor) = (cx.input(0)?, cx.output(0), cx.dim("dim", 0)?, cx.float("factor")?);
            match x.dtype() {
                DType::F64 => from_real::<f64>(x, y, dim, factor),
                _ => from_real::<f32>(x, y, dim, factor),
            }
        })
        .kernel(on_gpu("r2c_cuda", Transform::FromReal))
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            // Of the numbers that are not given nothing depends: the transform back of the others and zeros.
            let shape = g.input_shape(0);
            let before = AttrValue::Ints(shape.iter().map(|_| 0).collect());
            let whole = g.call("pad_constant", &[dy], &[("before", before), ("size", shape.as_slice().into())])?;
            let attrs = [("dim", g.attr("dim")?), ("inverse", true.into()), ("factor", g.attr("factor")?)];
            let dx = g.call("fft.c2c", &[whole], &attrs)?;
            let dx = g.call("real", &[dx], &[])?;
            g.set(0, dx)
        }))
        .samples(&["f32[3, 4]", "f64[3, 5, 2]; dim=1, factor=0.5", "f64[4, 3]; dim=0", "f32[1]", "f64[7]"]))
}

fn complex_to_real() -> Result<OpDef> {
    Ok(declared("c2r(y: complex; dim: int = -1, n: int = 1, factor: float = 1.0) -> x")?
        .doc(
            "The n real numbers whose Fourier transform along a dim has these first n/2 + 1 numbers, times n. Imaginary parts of numbers \
             that are their own conjugates do not count. All are multiplied by `factor`.",
        )
        .check(|c| {
            check(c)?;
            let (have, n) = (c.shape(0)?[dim(c)?], c.size("n")?);
            match n > 0 && have == n / 2 + 1 {
                true => Ok(()),
                false => Err(Error::shape(format!("{n} real numbers have a transform of {} numbers, not {have}", n / 2 + 1))),
            }
        })
        .shape1(|c| with_dim(c, c.size("n")?))
        .dtype(DTypeRule::Fn(Arc::new(|c| Ok([c.input(0)?.dtype.part()].into_iter().collect()))))
        .cpu(|cx| {
            let (y, x, dim, factor) = (cx.input(0)?, cx.output(0), cx.dim("dim", 0)?, cx.float("factor")?);
            match y.dtype() {
                DType::C128 => to_real::<f64>(y, x, dim, factor),
                _ => to_real::<f32>(y, x, dim, factor),
            }
        })
        .kernel(on_gpu("c2r_cuda", Transform::ToReal))
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dx) = g.grad(0) else { return Ok(()) };
            let dy = g.call("fft.r2c", &[dx], &[("dim", g.attr("dim")?), ("factor", g.attr("factor")?)])?;
            let dy = doubled(g, dy)?;
            g.set(0, dy)
        }))
        .samples(&["c64[3, 3]; n=4", "c128[3, 3, 2]; dim=1, n=5, factor=0.5", "c128[2, 3]; dim=0, n=2", "c64[1]; n=1", "c128[4]; n=7"]))
}

/// Twice the numbers that stand for their conjugates too: all but the first, and the last of an even transform.
fn doubled(g: &mut dyn GradCtx, dy: Value) -> Result<Value> {
    let shape = g.input_shape(0);
    let (d, n) = match (g.attr("dim")?, g.attr("n")?) {
        (AttrValue::Int(d), AttrValue::Int(n)) => (normalize_dim(d, shape.len())? as i64, n),
        other => return Err(Error::argument(format!("c2r has the attributes {other:?}"))),
    };
    let (half, twice_to) = (n / 2 + 1, (n + 1) / 2);
    if twice_to <= 1 {
        return Ok(dy);
    }
    let mut parts = vec![];
    for (start, end, twice) in [(0, 1, false), (1, twice_to, true), (twice_to, half, false)] {
        if start == end {
            continue;
        }
        let attrs = [("dim", d.into()), ("start", start.into()), ("end", end.into())];
        let part = g.call("slice", &[dy], &attrs)?;
        parts.push(if twice { g.call("mul_scalar", &[part], &[("s", 2i64.into())])? } else { part });
    }
    g.call("concat", &parts, &[("dim", d.into())])
}
