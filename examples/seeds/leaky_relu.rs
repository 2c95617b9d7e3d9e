//! OneFlow's example of an op of one's own: leaky_relu as a user op with an attribute, a check, shape and sharding rules, a kernel and a
//! gradient op, and a function with a default value on top of it.

use oflow::functional::Arg;
use oflow::ops::{DTypeRule, Grad, GradArg, KernelCx, OpDef, register};
use oflow::prelude::*;

/// y = x, or alpha x below zero.
fn forward(cx: &KernelCx<'_>) -> Result<()> {
    let (x, alpha) = (cx.input("x")?.as_slice::<f32>()?, cx.float("alpha")? as f32);
    // SAFETY: the output of this call, of which no other slice is alive.
    let y = unsafe { cx.output_named("y")?.as_mut_slice::<f32>()? };
    y.iter_mut().zip(x).for_each(|(y, x)| *y = if *x < 0.0 { alpha * x } else { *x });
    Ok(())
}

fn backward(cx: &KernelCx<'_>) -> Result<()> {
    let (dy, x) = (cx.input("dy")?.as_slice::<f32>()?, cx.input("x")?.as_slice::<f32>()?);
    let alpha = cx.float("alpha")? as f32;
    // SAFETY: as above.
    let dx = unsafe { cx.output_named("dx")?.as_mut_slice::<f32>()? };
    dx.iter_mut().zip(dy.iter().zip(x)).for_each(|(dx, (dy, x))| *dx = if *x < 0.0 { alpha * dy } else { *dy });
    Ok(())
}

/// Registers the op and its gradient op.
fn declare() -> Result<()> {
    let op = OpDef::new("leaky_relu(x: f32; alpha: float) -> y")?
        .domain("user")
        .doc("x, or alpha x below zero.")
        .check(|c| match c.float("alpha")? {
            alpha if alpha.is_finite() => Ok(()),
            alpha => Err(Error::argument(format!("alpha is {alpha}"))),
        })
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| (0..c.shape("x")?.len()).map(|d| format!("S({d}) -> S({d})").parse()).collect())
        .function("leaky_relu(Tensor x, Float alpha=0.01) -> Tensor")
        .grad(Grad::wiring("user.leaky_relu_grad", &[GradArg::OutGrad(0), GradArg::Input(0)], &["alpha"], &[0]))
        .samples(&["f32[4, 6]; alpha=0.1"])
        .cpu(forward);
    register(op)?;
    let grad = OpDef::new("leaky_relu_grad(dy: f32, x: f32; alpha: float) -> dx")?
        .domain("user")
        .traits(|t| t.hidden = true)
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| (0..c.shape("x")?.len()).map(|d| format!("S({d}), S({d}) -> S({d})").parse()).collect())
        .samples(&["f32[4, 6] f32[4, 6]; alpha=0.1"])
        .cpu(backward);
    register(grad)?;
    Ok(())
}

pub fn main() -> Result<()> {
    declare()?;
    let _world = oflow::init()?;
    let x = from_vec(vec![-2.0f32, -0.5, -0.25, 0.25, 1.0, 3.0], [2, 3], Device::Cpu)?;
    // On all ranks, split by rows: the op's rule says that it may be.
    let x = distribute(&x, (&Placement::all(Device::Cpu)?, sbp![S(0)]))?.requires_grad_(true)?;
    let y = oflow::call("user.leaky_relu", &[Arg::from(&x), 0.02.into()], &[])?.remove(0);
    let weights = from_vec((1..7).map(|i| i as f32).collect(), [2, 3], Device::Cpu)?;
    let weights = distribute(&weights, (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
    y.mul(&weights)?.sum(())?.backward()?;
    let dx = x.grad().ok_or_else(|| Error::autograd("x has no gradient"))?;
    println!("y {:?}\ndx {:?}", y.to_vec::<f32>()?, dx.to_vec::<f32>()?);
    // torch.nn.functional.leaky_relu(x, 0.02) and its gradient give the same.
    assert_eq!(y.to_vec::<f32>()?, [-0.04, -0.01, -0.005, 0.25, 1.0, 3.0]);
    assert_eq!(dx.to_vec::<f32>()?, [0.02, 0.04, 0.06, 4.0, 5.0, 6.0]);
    Ok(())
}
