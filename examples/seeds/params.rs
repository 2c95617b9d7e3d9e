//! PopXL's example of a custom op: LeakyReLU with a parameter struct that the op and its gradient op share. The op is elementwise, so
//! one expression gives kernels and sharding. As in PopXL a session runs it as a graph, with a stream of inputs from the host and one of
//! results to the host.

use oflow::graph::{Passes, Session, SessionOptions};
use oflow::ops::{Grad, OpDef, OpParams, register};
use oflow::{BackwardOptions, functional::grad, interpreter::OpCall, op, prelude::*};

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

/// Gradients by w of LeakyReLU of w times the rows 1 x, 2 x, 3 x, by a session.
fn session() -> Result<()> {
    let w = ones([3], Device::Cpu)?.requires_grad_(true)?;
    // Without fusion, which makes one call of several.
    let mut session = Session::new(SessionOptions::default().passes(Passes::default().without("fuse")?));
    let row = |n: i32| from_vec([-2.0f32, -0.5, 1.0].map(|v| v * n as f32).to_vec(), [3], Device::Cpu);
    session.feed(&["x"], (1..=3).map(row))?;
    session.fetch("dw", 1)?;
    let step = |s: &oflow::graph::SessionBuilder<'_>| {
        let x = s.input("x")?.mul(&w)?;
        let [y, again, other, _unused] = [0.02, 0.02, 0.5, 0.7].map(|alpha| leaky_relu(&x, &LeakyRelu { alpha }));
        let y = y?.add(&again?)?.add(&other?)?;
        let dw = grad(&[&y.sum(())?], &[&w], &BackwardOptions::default())?.remove(0);
        s.name("dw", &dw.ok_or_else(|| Error::autograd("w has no gradient"))?)?;
        Ok(y)
    };
    let mut rows = 0;
    while session.run(&[], step)?.is_some() {
        rows += 1;
    }
    let read = session.fetched("dw")?;
    // The parameters tell calls apart: two equal ones are one call, and one that nobody needs is none.
    let text = session.graphs().map(|g| g.program().to_string()).collect::<String>();
    println!("{text}{rows} rows");
    assert_eq!((rows, read.len(), text.matches("popxl.leaky_relu@1(").count()), (3, 3, 2));
    for ((run, dw), n) in read.iter().zip([1.0f32, 2.0, 3.0]) {
        let near = dw.to_vec::<f32>()?.iter().zip([-1.08, -0.27, 3.0]).all(|(d, one)| (d - n * one).abs() < 1e-5);
        assert!(near, "run {run}: {dw}");
    }
    Ok(())
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
    session()
}
