//! Fits a straight line with gradient descent, on one rank or on several:
//!
//! ```text
//! cargo run --release --bin oflaunch -- --nproc 2 examples/regression.rs
//! ```

use oflow::optim::{Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;

fn main() -> Result<()> {
    let world = oflow::init()?; // this process is one rank of the world
    let mesh = Placement::all(Device::Cpu)?; // all ranks, in one row

    // 1,000 points of y = 3 x - 1 with noise. Rows are split over the ranks: each rank holds its part.
    let x = rand([1000, 1], (&mesh, sbp![S(0)]))?;
    let noise = randn([1000, 1], (&mesh, sbp![S(0)]))?.mul(0.01)?;
    let y = x.mul(3.0)?.sub(1.0)?.add(&noise)?;

    // The two parameters are broadcast: every rank holds the same values.
    let w = zeros([1, 1], (&mesh, sbp![B]))?.requires_grad_(true)?;
    let b = zeros([1], (&mesh, sbp![B]))?.requires_grad_(true)?;
    let mut opt = Sgd::new(vec![w.clone(), b.clone()], SgdOptions { lr: 0.5, ..Default::default() });
    for _ in 0..200 {
        let loss = x.matmul(&w)?.add(&b)?.sub(&y)?.square()?.mean(())?;
        opt.zero_grad();
        loss.backward()?; // the gradients are summed over the ranks
        opt.step()?;
    }

    let (w, b) = (w.item()?, b.item()?); // every rank must take part in a read
    if world.rank() == 0 {
        println!("y = {w:.2} x {b:+.2} on {mesh}");
    }
    assert!((w - 3.0).abs() < 0.05 && (b + 1.0).abs() < 0.05, "expected 3 and -1, found {w} and {b}");
    Ok(())
}
