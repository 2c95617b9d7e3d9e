//! A training step as a graph whose exchanges go on beside computation, as one whose exchanges do not, and call by call, in turns:
//!
//! ```text
//! HOSTS_RATE=1gbit OFLOW_MODEL=default scripts/hosts.sh 2 oflaunch --nnodes 2 --nproc 1 --threads 1 \
//!     launcher/benches/scripts/overlap.rs -- STAGE PAUSE ROUNDS
//! ```
//!
//! STAGE is that of ZeRO. The model has 6 linear layers 512 wide. Computation is an op that sleeps PAUSE ms behind each layer, forward and
//! backward, and declares the FLOPs which are predicted to take as long: so cores that ranks share do not blur the overlap. Printed are the
//! medians of each side and of the ratios of neighbouring runs, with their quartiles.

use oflow::functional::call;
use oflow::graph::{Graph, GraphOptions, Memory, Passes};
use oflow::nn::{Linear, Module, ZeroOptions, zero};
use oflow::ops::{AttrValue, Grad, OpDef, register};
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;
use std::time::{Duration, Instant};

const WIDTH: usize = 512;
const LAYERS: usize = 6;
const ROWS: usize = 16;
/// FLOPs of a rank that are predicted to take a millisecond.
const FLOPS: u64 = 50_000_000;

/// Gives its input after so many milliseconds; so does its gradient.
fn pause(ranks: u64) -> Result<OpDef> {
    let op = OpDef::new("pause(x: f32; ms: int) -> y")?.domain("bench").signatures(&["S0 -> S0"]);
    let flops = move |ms: &AttrValue| if let AttrValue::Int(ms) = ms { *ms as u64 * FLOPS * ranks } else { 0 };
    Ok(op
        .flops(move |c| Ok(c.attrs.first().map_or(0, flops)))
        .cpu(|cx| {
            if let Some(AttrValue::Int(ms)) = cx.attrs.first() {
                std::thread::sleep(Duration::from_millis(*ms as u64));
            }
            Ok(oflow::kernels::cpu::copy::copy(cx.input(0)?, cx.output(0))?)
        })
        .grad(Grad::rule(|g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let dx = g.call("bench.pause", &[dy], &[("ms", g.attr("ms")?)])?;
            g.set(0, dx)
        })))
}

struct Job {
    layers: Vec<Linear>,
    opt: AdamW,
    ms: i64,
}

impl Job {
    fn new(mesh: &Placement, stage: u8, ms: i64) -> Result<Job> {
        manual_seed(3);
        let t = (mesh, sbp![B]);
        let mut layers = (0..LAYERS).map(|_| Linear::without_bias(WIDTH, WIDTH, &t)).collect::<Result<Vec<_>>>()?;
        for l in &mut layers {
            zero(l, &ZeroOptions::new(stage))?;
        }
        let opt = AdamW::new(layers.iter().flat_map(Module::parameters).collect(), AdamWOptions::default());
        Ok(Job { layers, opt, ms })
    }

    fn step(&mut self, x: &Tensor) -> Result<Tensor> {
        let layer = |h: Tensor, l: &Linear| -> Result<Tensor> {
            Ok(call("pause", &[(&l.forward(&h)?).into()], &[("ms", self.ms.into())])?.remove(0))
        };
        let loss = self.layers.iter().try_fold(x.clone(), layer)?.square()?.mean(())?;
        self.opt.zero_grad();
        loss.backward()?;
        self.opt.step()?;
        Ok(loss)
    }
}

fn quartiles(mut all: Vec<f64>) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    [1, 2, 3].map(|n| all[n * (all.len() - 1) / 4])
}

fn main() -> Result<()> {
    let world = oflow::init()?;
    let args: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let [stage, ms, rounds] = args[..] else {
        return Err(Error::argument("give a stage of ZeRO, the milliseconds of a layer and a number of rounds"));
    };
    register(pause(world.size() as u64)?)?;
    let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", world.size())])?;
    let x = randn([ROWS * world.size(), WIDTH], (&mesh, sbp![S(0)]))?;
    let job = || Job::new(&mesh, stage as u8, ms as i64);
    let (mut beside, mut apart, mut calls) = (job()?, job()?, job()?);
    let passes = Passes::default().memory(Memory::Budget(1 << 30));
    let build = |job: &mut Job, passes| Graph::build(|g| job.step(&g.input("x", &x)?), GraphOptions::default().passes(passes));
    let (mut overlapped, mut waiting) = (build(&mut beside, passes.clone())?, build(&mut apart, passes.without("overlap")?)?);
    let mut times = [vec![], vec![], vec![]];
    for round in 0..rounds + 2 {
        let mut losses = vec![];
        for (side, times) in times.iter_mut().enumerate() {
            world.barrier()?;
            let begin = Instant::now();
            let loss = match side {
                0 => overlapped.run(&[&x])?,
                1 => waiting.run(&[&x])?,
                _ => calls.step(&x)?,
            };
            losses.push(loss.item()?);
            world.barrier()?;
            // The first ones allocate.
            if round >= 2 {
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
        }
        assert!(losses.iter().all(|l| *l == losses[0]), "{losses:?}");
    }
    if world.rank() == 0 {
        let [low, ratio, high] = quartiles(times[0].iter().zip(&times[1]).map(|(a, b)| a / b).collect());
        let [beside, apart, calls] = times.map(|t| quartiles(t)[1]);
        if let Some(effect) = overlapped.effects().last() {
            println!("{effect}");
        }
        println!("{beside:.1} ms, {apart:.1} ms without the pass, {calls:.1} ms call by call; ratio {ratio:.2} ({low:.2} to {high:.2})");
    }
    Ok(())
}
