//! Ops from source files, built and loaded while the program runs: softsign in Rust, matmul_scale in C++ with CUDA kernels, softclip
//! in CUDA text. The program trains a small model with them.
//!
//! ```text
//! cargo run --example ops                 # one rank
//! oflaunch --nproc 2 examples/ops/main.rs # two: the batch is split, then the weights
//! ```
//!
//! The argument is the folder of the sources, `examples/ops` if there is none.

use oflow::functional::Arg;
use oflow::libraries::{BuildOptions, Library, build_and_load};
use oflow::prelude::*;
use std::path::Path;
use std::time::Instant;

/// Builds and loads a library, and says how long it took.
fn library(folder: &str, files: &[&str]) -> Result<Library> {
    let folder = Path::new(folder);
    let start = Instant::now();
    let library = build_and_load(&files.iter().map(|f| folder.join(f)).collect::<Vec<_>>(), BuildOptions::new())?;
    eprintln!("{library:?} in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    Ok(library)
}

/// Calls a function of one result.
fn call(name: &str, inputs: &[&Tensor], args: &[(&str, Arg)]) -> Result<Tensor> {
    let inputs: Vec<Arg> = inputs.iter().map(|t| Arg::from(*t)).collect();
    Ok(oflow::call(name, &inputs, args)?.remove(0))
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or("examples/ops".into());
    // Before `init`: the ranks compare their ops when the job starts.
    library(&folder, &["softsign.rs"])?;
    library(&folder, &["matmul_scale.cc", "matmul_scale.cu"])?;
    library(&folder, &["softclip.cu"])?;
    let world = oflow::init()?;
    let ranks = Placement::all(Device::Cpu)?;
    // softclip has a kernel for GPUs only.
    let clips = oflow::kernels::cuda::probe::probe().check().is_ok();
    for (name, x_sbp, w_sbp) in [("dp", sbp![S(0)], sbp![B]), ("tp", sbp![B], sbp![S(1)])] {
        oflow::manual_seed(7);
        let x = randn([64, 16], (&ranks, &x_sbp))?;
        let target = randn([64, 8], (&ranks, sbp![B]))?;
        let w = randn([16, 8], (&ranks, &w_sbp))?.requires_grad_(true)?;
        let mut losses = vec![];
        for _ in 0..20 {
            let y = call("demo.matmul_scale", &[&x, &w], &[("scale", 0.25.into())])?;
            let y = call("demo.softsign", &[&y], &[])?;
            let loss = y.sub(&target)?.square()?.mean(())?;
            loss.backward()?;
            let step = w.grad().ok_or_else(|| oflow::Error::autograd("the weight has no gradient"))?.mul(10.0)?;
            {
                let _no_grad = no_grad();
                w.sub_(&step)?;
            }
            w.set_grad(None)?;
            losses.push(loss.item()?);
        }
        if world.rank() == 0 {
            println!("{name} loss {:.6} -> {:.6}", losses[0], losses[losses.len() - 1]);
        }
    }
    if clips {
        let x = randn([64, 16], Device::Cuda)?.requires_grad_(true)?;
        let y = call("demo.softclip", &[&x], &[("limit", 0.5.into())])?;
        y.square()?.sum(())?.backward()?;
        if world.rank() == 0 {
            println!("softclip {:.6}", y.square()?.sum(())?.item()?);
        }
    }
    Ok(())
}
