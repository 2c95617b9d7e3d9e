//! MegEngine's example of a custom op: MatMulScale in C++ (and CUDA), built and loaded while the program runs, as a module in a
//! training loop. The sources are those of `examples/ops`; the argument is their folder.

use oflow::functional::Arg;
use oflow::libraries::{BuildOptions, build_and_load};
use oflow::nn::Module;
use oflow::optim::{Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;
use std::path::Path;

/// The op with its weight, as MegEngine's `MatMulScaleModule`.
#[derive(oflow::nn::Module)]
struct MatMulScale {
    weight: Tensor,
    scale: f64,
}

impl MatMulScale {
    fn new(inputs: usize, outputs: usize, scale: f64, ranks: &Placement) -> Result<MatMulScale> {
        let weight = zeros([inputs, outputs], (ranks, sbp![B]).dtype(DType::F64))?.requires_grad_(true)?;
        Ok(MatMulScale { weight, scale })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let args = [Arg::from(x), Arg::from(&self.weight)];
        Ok(oflow::call("demo.matmul_scale", &args, &[("scale", self.scale.into())])?.remove(0))
    }
}

pub fn main() -> Result<()> {
    let folder = std::env::args().nth(1).filter(|a| Path::new(a).is_dir()).unwrap_or("examples/ops".into());
    let sources = ["matmul_scale.cc", "matmul_scale.cu"].map(|f| Path::new(&folder).join(f));
    build_and_load(&sources, BuildOptions::new())?;
    let _world = oflow::init()?;
    let ranks = Placement::all(Device::Cpu)?;
    let numbers = |n: usize, f: fn(f64) -> f64, shape: [usize; 2]| {
        let values: Vec<f64> = (0..n).map(|i| f(i as f64)).collect();
        distribute(&from_vec(values, shape, Device::Cpu)?, (&ranks, sbp![S(0)]))
    };
    let (x, target) = (numbers(24, f64::sin, [6, 4])?, numbers(18, f64::cos, [6, 3])?);
    let model = MatMulScale::new(4, 3, 0.5, &ranks)?;
    let mut optimizer = Sgd::new(model.parameters(), SgdOptions { lr: 2.0, ..Default::default() });
    let mut losses = vec![];
    for _ in 0..5 {
        let loss = model.forward(&x)?.sub(&target)?.square()?.mean(())?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        losses.push(loss.item()?);
    }
    println!("{losses:?}");
    // The same loop in PyTorch with `0.5 * (x @ w)`.
    let torch = [0.5068215251554411, 0.46092083168841114, 0.43961875464141925, 0.4293519238586728, 0.42423713856047307];
    for (ours, torch) in losses.iter().zip(torch) {
        assert!((ours - torch).abs() < 1e-12, "{ours} {torch}");
    }
    Ok(())
}
