//! Boxes large and small tensors in many ways and trains a little. In the end each rank writes to FOLDER/RANK how many bytes
//! it has sent to ranks of other hosts. With `--help` among its arguments it does nothing.

use oflow::prelude::*;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_default();
    if std::env::args().any(|a| a == "--help") {
        println!("bytes FOLDER");
        return Ok(());
    }
    let world = oflow::init()?;
    let mesh = Placement::all(Device::Cpu)?;
    let ways = [
        (sbp![P], sbp![B]),
        (sbp![P], sbp![S(0)]),
        (sbp![P], sbp![S(1)]),
        (sbp![S(0)], sbp![B]),
        (sbp![S(1)], sbp![B]),
        (sbp![S(0)], sbp![S(1)]),
    ];
    for (from, to) in &ways {
        for shape in [[301, 300], [5, 7]] {
            for dtype in [DType::F32, DType::BF16] {
                ones(shape, (&mesh, sbp![B]))?
                    .cast(dtype)?
                    .to_global((&mesh, from.clone()))?
                    .to_global((&mesh, to.clone()))?;
            }
        }
    }
    let last = Placement::new(Device::Cpu, &[world.size() - 1], &[1])?;
    for n in [3, 200_000] {
        ones([n], (&last, sbp![B]))?.to_global((&mesh, sbp![B]))?;
    }
    // The gradients of the weights travel together, and so do these.
    let small = (0..5).map(|i| ones([40 + i], (&mesh, sbp![P]))).collect::<Result<Vec<_>>>()?;
    oflow::box_many(&small.iter().map(|t| (t, (&mesh, sbp![B]))).collect::<Vec<_>>())?;
    let weights = (0..3).map(|_| ones([24, 24], (&mesh, sbp![B]))?.requires_grad_(true)).collect::<Result<Vec<_>>>()?;
    let x = ones([32, 24], (&mesh, sbp![S(0)]))?;
    for _ in 0..3 {
        let mut y = x.clone();
        for w in &weights {
            y = y.matmul(w)?.relu()?;
        }
        y.mean(())?.backward()?;
    }
    world.barrier()?;
    let sent = world.ctx().comm()?.traffic().between_hosts;
    std::fs::write(format!("{folder}/{}", world.rank()), sent.to_string())
        .map_err(|e| Error::io("no file").because(e))?;
    world.barrier()
}
