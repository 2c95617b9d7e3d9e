//! `matmul_scale` and its gradient op: declarations and CPU kernels.

use crate::cuda;
use crate::ops::DOMAIN;
use oflow::kernels::{Element, View};
use oflow::ops::GradArg::{Input, OutGrad};
use oflow::ops::{DTypeRule, Grad, GradCtx, InferCtx, KernelCx, KernelDef, KernelPred, OpDef, Value};
use oflow::prelude::*;

/// `matmul_scale(x, w; scale)`: scale x w, for x `[m, k]` and w `[k, n]`.
pub fn matmul_scale_op() -> Result<OpDef> {
    Ok(OpDef::new("matmul_scale(x: float, w: float; scale: runtime float = 1.0) -> y")?
        .domain(DOMAIN)
        .doc("The product of two matrices, times a number.")
        .check(|c| matrices(c, 0))
        .shape1(|c| Ok([c.shape(0)?[0], c.shape(1)?[1]].into_iter().collect()))
        .dtype(DTypeRule::Input(0))
        // Rows of x and columns of w are independent; a split of the summed dim leaves partial sums.
        .factors("mk, kn -> mn")
        .linear_in(&["x", "w"])
        .flops(|c| Ok(2 * (c.shape(0)?[0] * c.input(1)?.len()) as u64))
        .kernel(KernelDef::cpu("matmul_scale_cpu", |cx| with_dtype(cx, forward::<f32>, forward::<f64>)).when(floats()))
        .kernel(KernelDef::cuda("matmul_scale_cuda", cuda::forward).when(floats()))
        .grad(Grad::wiring("custom.matmul_scale_grad", &[OutGrad(0), Input(0), Input(1)], &["scale"], &[0, 1]))
        .samples(&["f32[4, 6] f32[6, 5]; scale=0.5", "f64[3, 2] f64[2, 4]"]))
}

/// `matmul_scale_grad(dy, x, w; scale)`: both gradients of `matmul_scale` by one call.
pub fn matmul_scale_grad_op() -> Result<OpDef> {
    Ok(OpDef::new("matmul_scale_grad(dy: float, x: float, w: float; scale: runtime float = 1.0) -> (dx, dw)")?
        .domain(DOMAIN)
        .doc("Gradients of matmul_scale.")
        .check(|c| {
            matrices(c, 1)?;
            let (dy, y) = (c.input(0)?, [c.shape(1)?[0], c.shape(2)?[1]]);
            match *dy.shape == y && dy.dtype == c.input(1)?.dtype {
                true => Ok(()),
                false => Err(Error::shape(format!("dy must be like the product, {y:?}, not {dy}"))),
            }
        })
        .shapes(|c| Ok([c.shape(1)?.into(), c.shape(2)?.into()].into_iter().collect()))
        .dtype(DTypeRule::Input(0))
        // Listed, because x and w may be P(sum) together: dx depends on w alone, dw on x alone.
        .signatures(&[
            "S0, S0, B -> S0, P",
            "S1, B, S1 -> P, S1",
            "B, S1, S0 -> S1, S0",
            "P, B, B -> P, P",
            "B, P, P -> P, P",
            "B, P, B -> B, P",
            "B, B, P -> P, B",
        ])
        .kernel(
            KernelDef::cpu("matmul_scale_grad_cpu", |cx| with_dtype(cx, backward::<f32>, backward::<f64>))
                .when(floats()),
        )
        .kernel(KernelDef::cuda("matmul_scale_grad_cuda", cuda::backward).when(floats()))
        .grad(Grad::rule(second))
        .samples(&["f32[4, 5] f32[4, 6] f32[6, 5]; scale=0.5", "f64[3, 4] f64[3, 2] f64[2, 4]"]))
}

/// Refuses all but matrices `[m, k]` and `[k, n]` of one dtype as inputs `first` and `first + 1`.
fn matrices(c: &InferCtx<'_>, first: usize) -> Result<()> {
    let (x, w) = (c.input(first)?, c.input(first + 1)?);
    match (x.shape.as_slice(), w.shape.as_slice()) {
        ([_, k], [l, _]) if k == l && x.dtype == w.dtype => Ok(()),
        _ => Err(Error::shape(format!("needs matrices [m, k] and [k, n] of one dtype, not {x} and {w}"))),
    }
}

fn floats() -> KernelPred {
    KernelPred::Inputs(vec![DType::F32, DType::F64])
}

/// The gradient of the gradient: each output is linear in dy and in one of x and w.
fn second(g: &mut dyn GradCtx) -> Result<()> {
    let scale = [("scale", g.attr("scale")?)];
    let (dy, x, w) = (g.input(0)?, g.input(1)?, g.input(2)?);
    let (of_dx, of_dw) = (g.grad(0), g.grad(1));
    let mut of_dy: Option<Value> = None;
    for (a, b) in [of_dx.map(|a| (a, w)), of_dw.map(|b| (x, b))].into_iter().flatten() {
        let part = g.call("custom.matmul_scale", &[a, b], &scale)?;
        of_dy = Some(match of_dy {
            Some(sum) => g.call("add", &[sum, part], &[])?,
            None => part,
        });
    }
    if let Some(v) = of_dy {
        g.set(0, v)?;
    }
    if let Some(of_dw) = of_dw {
        let both = g.emitter().emit("custom.matmul_scale_grad", &[dy, x, of_dw].map(Some), &scale)?;
        g.set(1, both[0])?;
    }
    if let Some(of_dx) = of_dx {
        let both = g.emitter().emit("custom.matmul_scale_grad", &[dy, of_dx, w].map(Some), &scale)?;
        g.set(2, both[1])?;
    }
    Ok(())
}

type Kernel = fn(&KernelCx<'_>) -> Result<()>;

fn with_dtype(cx: &KernelCx<'_>, f32: Kernel, f64: Kernel) -> Result<()> {
    if cx.output(0).dtype() == DType::F64 { f64(cx) } else { f32(cx) }
}

/// A number that sums are made of in f64.
trait Number: Element + Into<f64> {
    fn rounded(x: f64) -> Self;
}

impl Number for f32 {
    fn rounded(x: f64) -> f32 {
        x as f32
    }
}

impl Number for f64 {
    fn rounded(x: f64) -> f64 {
        x
    }
}

fn forward<T: Number>(cx: &KernelCx<'_>) -> Result<()> {
    let (x, w) = (cx.input(0)?, cx.input(1)?);
    let (k, n) = (w.dims()[0], w.dims()[1]);
    let (x, w) = (x.as_slice::<T>()?, w.as_slice::<T>()?);
    product(cx, 0, k, |i, l| x[i * k + l], |l, j| w[l * n + j])
}

fn backward<T: Number>(cx: &KernelCx<'_>) -> Result<()> {
    let (dy, x, w) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let (m, k, n) = (x.dims()[0], x.dims()[1], w.dims()[1]);
    let (dy, x, w) = (dy.as_slice::<T>()?, x.as_slice::<T>()?, w.as_slice::<T>()?);
    product(cx, 0, n, |i, l| dy[i * n + l], |l, j| w[j * n + l])?;
    product(cx, 1, m, |i, l| x[l * k + i], |l, j| dy[l * n + j])
}

/// Output `index`: `out[i, j]` = scale times the sum over l of `a(i, l) b(l, j)`.
fn product<T: Number>(
    cx: &KernelCx<'_>,
    index: usize,
    inner: usize,
    a: impl Fn(usize, usize) -> T,
    b: impl Fn(usize, usize) -> T,
) -> Result<()> {
    let scale = cx.scalar("scale")?.to_f64();
    let out: &View = cx.output(index);
    let columns = out.dims()[1];
    // SAFETY: the output of this call, of which no other slice is alive.
    let out = unsafe { out.as_mut_slice::<T>()? };
    for (at, y) in out.iter_mut().enumerate() {
        let (i, j) = (at / columns, at % columns);
        let sum: f64 = (0..inner).map(|l| a(i, l).into() * b(l, j).into()).sum();
        *y = T::rounded(scale * sum);
    }
    Ok(())
}
