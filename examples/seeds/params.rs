//! PopXL's example of a custom op: LeakyReLU with a parameter struct that the op and its gradient op share. The op is elementwise, so
//! one expression gives kernels and sharding. (PopXL's session runs a graph: that follows with graph mode.)

use oflow::ops::{Grad, OpDef, OpParams, register};
use oflow::{interpreter::OpCall, op, prelude::*};

/// The parameters of LeakyReLU.
#[derive(Clone, Debug, PartialEq, OpParams)]
struct LeakyRelu {
    /// Slope below zero.
    #[param(default = "1e-2", runtime)]
    alpha: f64,
}

/// Registers the op and its gradient op.
fn declare() -> Result<()> {
    let attrs = LeakyRelu::grammar();
    let op = OpDef::elementwise(&format!("leaky_relu(x: float; {attrs}) -> y"), "select(x < 0, alpha * x, x)")?;
    let grad = Grad::parse("x = popxl.leaky_relu_grad(grad y, x; alpha)", &op.sig)?;
    register(op.domain("popxl").grad(grad).samples(&["f32[4, 6]", "f64[5]; alpha=0.25"]))?;
    let text = format!("leaky_relu_grad(dy: float, x: float; {attrs}) -> dx");
    let op = OpDef::elementwise(&text, "dy * select(x < 0, alpha, 1)")?;
    register(op.domain("popxl").samples(&["f32[4, 6] f32[4, 6]"]))?;
    Ok(())
}

fn leaky_relu(x: &Tensor, params: &LeakyRelu) -> Result<Tensor> {
    Ok(OpCall::new(op!("popxl.leaky_relu")?, &params.values())?.run(&[Some(x)])?.remove(0))
}

pub fn main() -> Result<()> {
    declare()?;
    let _world = oflow::init()?;
    let x = from_vec(vec![-2.0f32, -0.5, -0.25, 0.25, 1.0, 3.0], [6], Device::Cpu)?.requires_grad_(true)?;
    let y = leaky_relu(&x, &LeakyRelu { alpha: 0.02 })?;
    let weights = from_vec((1..7).map(|i| i as f32).collect(), [6], Device::Cpu)?;
    y.mul(&weights)?.sum(())?.backward()?;
    let dx = x.grad().ok_or_else(|| Error::autograd("x has no gradient"))?;
    println!("{:?}\ny {:?}\ndx {:?}", LeakyRelu { alpha: 0.02 }, y.to_vec::<f32>()?, dx.to_vec::<f32>()?);
    // torch.nn.functional.leaky_relu(x, 0.02) and its gradient give the same.
    assert_eq!(y.to_vec::<f32>()?, [-0.04, -0.01, -0.005, 0.25, 1.0, 3.0]);
    assert_eq!(dx.to_vec::<f32>()?, [0.02, 0.04, 0.06, 4.0, 5.0, 6.0]);
    Ok(())
}
