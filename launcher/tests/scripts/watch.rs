//! A job to be watched, whose names are hostile: it trains until there is a file `end` in the folder. While there is a file `hold`, the last
//! rank holds up the others.

use oflow::metrics::{Format, Log, LogOptions};
use oflow::optim::{Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;
use std::path::PathBuf;
use std::time::Duration;

const HOSTILE: &str = "<img src=x onerror=alert(1)>";

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().unwrap_or_default());
    let width: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(32);
    let steps: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    let world = oflow::init()?;
    let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", world.size())])?;
    let options = LogOptions { formats: vec![Format::Jsonl], flush_every: 5, ..LogOptions::default() };
    let log = Log::new(folder.join(format!("run-{}", std::process::id())), options)?;
    log.install()?;
    let weight = |shape| randn(shape, (&mesh, sbp![B]))?.mul(0.1)?.detach().requires_grad_(true);
    let (up, down) = (weight([width, 2 * width])?, weight([2 * width, width])?);
    let mut sgd = Sgd::new(vec![up.clone(), down.clone()], SgdOptions { lr: 1e-2, ..Default::default() });
    println!("{HOSTILE} of rank {}", world.rank());
    let began = std::time::Instant::now();
    for step in 0..steps {
        let x = randn([4 * world.size(), width], (&mesh, sbp![S(0)]))?;
        let loss = {
            let _scope = oflow::name_scope("blocks.0.<b>mlp</b>");
            let y = x.matmul(&up)?.relu()?.matmul(&down)?;
            (&y - &x)?.square()?.mean(())?
        };
        sgd.zero_grad();
        loss.backward()?;
        sgd.step()?;
        oflow::log(step, &[("loss", &loss), (HOSTILE, &(step as f64))])?;
        if world.rank() + 1 == world.size() {
            while folder.join("hold").exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        if step % 500 == 0 {
            println!("step {step}");
        }
        // All ranks must end in the same step.
        let sees = f32::from(world.rank() == 0 && folder.join("end").exists());
        if full([1], sees, Device::Cpu)?.to_global((&mesh, sbp![P]))?.item()? > 0.0 {
            break;
        }
    }
    oflow::metrics::flush_log()?;
    println!("{:.6} s", began.elapsed().as_secs_f64());
    Ok(())
}
