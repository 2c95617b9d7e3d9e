//! Steps as graphs beside the same steps call by call, and beside PyTorch, eager and compiled:
//!
//! ```text
//! PYTHON=path/to/python cargo bench -p oflaunch --bench graph [-- --quick]
//! ```
//!
//! One thread on both sides. Sides are measured in turns; printed are medians of processor time. Without the variable PYTHON the peer is
//! left out; `--quick` makes a few turns and leaves out what PyTorch compiles, which takes a minute. The script of the peer is
//! `benches/peers/graph_torch.py`.
//!
//! 1. The training step of the GPT of `examples/gpt.rs` (width 256, 4 layers, 16 x 128 tokens, AdamW), beside its floor: the products of its
//!    linear layers, 6 flops for each token and weight, at the speed of a loop of fused multiply-adds that is measured in turns with it.
//!    Memory is what the allocator counts, each side in a context of its own.
//!    A second table has the same step with less memory: budgets between what it takes and the least, their time and the predicted one.
//! 2. Small programs: 1,000 adds, a step of 4 layers 64 wide with AdamW, a token of a GPT that has its keys and values in tensors of a fixed
//!    length.
//! 3. Capture, passes and plan of a training step of a GPT of 32 layers on a [2, 2] mesh. Four ranks build it one after the other.
//! 4. The graphs of both steps, saved and loaded.

#[path = "../../examples/common/model.rs"]
mod model;
#[path = "../../benches/peers/mod.rs"]
mod peers;

use model::{Config, Gpt};
use oflow::functional::CrossEntropyOptions;
use oflow::graph::{Graph, GraphOptions, Memory, Passes};
use oflow::nn::{Block, BlockOptions, Embedding, LayerNorm, Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;
use oflow::state::{LoadState, SaveState, Stateful};
use peers::{Peer, median};
use pulp::{Arch, Simd, WithSimd};
use std::cell::RefCell;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

/// Rows and tokens of a batch of the small GPT.
const BATCH: [usize; 2] = [16, 128];
/// Adds of one run.
const ADDS: usize = 1000;

fn thread_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// A call that is measured.
type Call<'a> = &'a mut dyn FnMut() -> Result<()>;

/// How much is measured, and the peer.
struct Meter {
    quick: bool,
    peer: Mutex<Option<Peer>>,
}

/// Processor time of one call in µs: eager, graph, PyTorch eager, PyTorch compiled.
type Sides = [Option<f64>; 4];

impl Meter {
    /// Medians over turns of `calls` calls of each side; `each_turn` is measured by itself.
    fn alternate(
        &self,
        row: &str,
        (turns, calls): (usize, usize),
        mut ours: [Call<'_>; 2],
        mut each_turn: impl FnMut(),
    ) -> Result<Sides> {
        let mut samples: [Vec<f64>; 4] = Default::default();
        // Plans, arenas and caches of both sides are made.
        (0..3).try_for_each(|_| ours.iter_mut().try_for_each(|call| call()))?;
        for _ in 0..if self.quick { turns.div_ceil(4) } else { turns } {
            each_turn();
            for (call, samples) in ours.iter_mut().zip(&mut samples) {
                let began = thread_seconds();
                (0..calls).try_for_each(|_| call())?;
                samples.push((thread_seconds() - began) * 1e6 / calls as f64);
            }
            let mut peer = self.peer.lock().unwrap_or_else(|e| e.into_inner());
            for (way, samples) in ["eager", "compiled"].into_iter().zip(&mut samples[2..]) {
                if !(self.quick && way == "compiled") {
                    samples.extend(peer.as_mut().map(|p| p.ask(&format!("{row}\t{way}"))).filter(|us| !us.is_nan()));
                }
            }
        }
        Ok(samples.map(|s| (!s.is_empty()).then(|| median(s))))
    }
}

/// Cells of a table: the times divided by `by`, then graph / eager and graph / PyTorch.
fn cells(sides: &Sides, by: f64) -> String {
    let cell = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.3}"));
    let [eager, graph, torch, compiled] = *sides;
    let over = |other: Option<f64>| graph.zip(other).map(|(g, o)| g / o);
    let times = sides.map(|us| cell(us.map(|us| us / by))).join(" | ");
    format!("{times} | {} | {} | {}", cell(over(eager)), cell(over(torch)), cell(over(compiled)))
}

const HEAD: &str = "eager | graph | PyTorch | PyTorch compiled | graph / eager | graph / PyTorch | graph / compiled |";

/// Backward from a loss and the optimizer's step.
fn stepped(opt: &mut AdamW, loss: Tensor) -> Result<Tensor> {
    opt.zero_grad();
    loss.backward()?;
    opt.step()?;
    Ok(loss)
}

/// A GPT and what trains it.
struct Training {
    model: Gpt,
    opt: AdamW,
    batch: [Tensor; 2],
}

impl Training {
    fn new(config: &Config, mesh: &Placement, [rows, tokens]: [usize; 2]) -> Result<Training> {
        let mut model = Gpt::new(config, (mesh, sbp![B, B]))?;
        model.to_global(mesh, &Gpt::split_rules(mesh)?)?;
        let opt = AdamW::new(model.parameters(), AdamWOptions::default());
        let ids = || randint(0, config.vocab as i64, [rows, tokens], (mesh, sbp![S(0), B]));
        Ok(Training { model, opt, batch: [ids()?, ids()?] })
    }
    /// The step that is captured, and that runs as it is.
    fn step(&mut self, seen: &Tensor, next: &Tensor) -> Result<Tensor> {
        let options = CrossEntropyOptions { dim: -1, ..Default::default() };
        let loss = self.model.forward(seen)?.cross_entropy_with(next, &options)?;
        stepped(&mut self.opt, loss)
    }
    fn eager(&mut self) -> Result<()> {
        let [seen, next] = self.batch.clone();
        self.step(&seen, &next).map(drop)
    }
    /// Captures the step: the graph, and how long the closure took.
    fn graph(&mut self, passes: Passes) -> Result<(Graph, Duration)> {
        let ([seen, next], mut captured) = (self.batch.clone(), Duration::ZERO);
        let graph = Graph::build(
            |g| {
                let (began, x, y) = (Instant::now(), g.input("seen", &seen)?, g.input("next", &next)?);
                let loss = self.step(&x, &y);
                captured = began.elapsed();
                loss
            },
            GraphOptions::default().passes(passes),
        )?;
        Ok((graph, captured))
    }
    /// Weights that a product reads for each token: those of linear layers.
    fn weights_of_products(&self) -> usize {
        let all = self.model.named_parameters();
        let linear = |name: &str| name.ends_with(".weight") && !name.starts_with('w');
        let sizes = all.iter().filter(|(name, p)| linear(name) && p.shape().len() == 2);
        sizes.map(|(_, p)| p.shape().iter().product::<usize>()).sum()
    }
}

fn small_gpt() -> Result<Training> {
    let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 1), ("tp", 1)])?;
    Training::new(&Config::new(256, 4, 256, 4, BATCH[1]), &mesh, BATCH)
}

/// Fused multiply-adds on registers, as many at a time as the units of any processor hide: nanoseconds of a flop.
struct Peak;

impl WithSimd for Peak {
    type Output = f64;
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        const SUMS: usize = 16;
        const ROUNDS: usize = 1 << 20;
        let (a, b) = (simd.splat_f32s(std::hint::black_box(0.5)), simd.splat_f32s(std::hint::black_box(1.0)));
        let mut sums = [simd.splat_f32s(0.0); SUMS];
        let began = thread_seconds();
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = simd.mul_add_f32s(*sum, a, b);
            }
        }
        let took = thread_seconds() - began;
        std::hint::black_box(sums.map(|sum| simd.reduce_sum_f32s(sum)));
        took * 1e9 / (2 * ROUNDS * SUMS * S::F32_LANES) as f64
    }
}

/// The step of the GPT: times, floor and memory.
fn gpt(meter: &Meter) -> Result<()> {
    oflow::run_ranks(1, |_| {
        let training = RefCell::new(small_gpt()?);
        let flops = 6.0 * BATCH.iter().product::<usize>() as f64 * training.borrow().weights_of_products() as f64;
        let (mut graph, _) = training.borrow_mut().graph(Passes::default())?;
        let [seen, next] = training.borrow().batch.clone();
        let mut flop = vec![];
        let ours: [Call<'_>; 2] = [&mut || training.borrow_mut().eager(), &mut || graph.run(&[&seen, &next]).map(drop)];
        let sides = meter.alternate("gpt", (12, 2), ours, || flop.push(Arch::new().dispatch(Peak)))?;
        let flop = median(flop);
        println!("| step of the GPT, ms | {HEAD}\n|---|---|---|---|---|---|---|---|");
        println!("| 16 x 128 tokens, 1 rank | {} |", cells(&sides, 1e3));
        let floor = flops * flop / 1e3;
        let over = |us: Option<f64>| us.map_or(f64::NAN, |us| us / floor);
        println!(
            "\nFloor: {:.1} GFLOP of products at {:.1} GFLOP/s, {:.1} ms; eager / floor {:.2}, graph / floor {:.2}.",
            flops / 1e9,
            1.0 / flop,
            floor / 1e3,
            over(sides[0]),
            over(sides[1])
        );
        Ok(())
    })?;
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let peak = |captured: bool| {
        let of_one = oflow::run_ranks(1, |_| {
            let mut training = small_gpt()?;
            let mut plan = None;
            if captured {
                let (mut graph, _) = training.graph(Passes::default())?;
                let [seen, next] = training.batch.clone();
                (0..3).try_for_each(|_| graph.run(&[&seen, &next]).map(drop))?;
                plan = graph.plan();
            } else {
                (0..3).try_for_each(|_| training.eager())?;
            }
            Ok((oflow::memory_stats(Device::Cpu)?.peak, plan))
        })?;
        of_one.into_iter().next().ok_or_else(|| Error::context("a world of one has one rank"))
    };
    let ((eager, _), (graph, plan)) = (peak(false)?, peak(true)?);
    println!("Counted peak: eager {:.1} MiB, graph {:.1} MiB.", mib(eager), mib(graph));
    if let Some(arena) = plan.as_ref().and_then(|p| p.arenas.first()) {
        println!("Arena: {:.1} MiB; no arena is smaller than {:.1} MiB.", mib(arena.bytes), mib(arena.bound));
    }
    Ok(())
}

/// The step of the GPT with less and less memory: planned peak, time, and the time that passes predict, over those of the graph without
/// recomputation.
fn budgets(meter: &Meter) -> Result<()> {
    const PARTS: usize = 4;
    oflow::run_ranks(1, |_| {
        let mut training = small_gpt()?;
        let [seen, next] = training.batch.clone();
        let mut built = |passes: Passes| training.graph(passes).map(|(graph, _)| graph);
        let peak = |graph: &Graph| graph.plan().map_or(0, |plan| plan.peak());
        let predicted = |graph: &Graph| graph.effects().last().map_or(1.0, |e| e.after.time as f64);
        let mut graphs = vec![built(Passes::default().without("recompute")?)?, built(Passes::default())?];
        let least = built(Passes::default().memory(Memory::Least))?;
        let (most, bytes) = (peak(&graphs[0]), peak(&least));
        for part in (1..PARTS).rev() {
            graphs.push(built(Passes::default().memory(Memory::Budget(bytes + (most - bytes) * part / PARTS)))?);
        }
        graphs.push(least);
        let mut samples = vec![vec![]; graphs.len()];
        for turn in 0..if meter.quick { 4 } else { 13 } {
            for (graph, samples) in graphs.iter_mut().zip(&mut samples) {
                let began = thread_seconds();
                graph.run(&[&seen, &next])?;
                // The first runs make caches and arenas.
                samples.extend((turn > 0).then(|| thread_seconds() - began));
            }
        }
        println!("\n| memory | planned peak, MiB | ms a step | over the first | predicted |\n|---|---|---|---|---|");
        let times: Vec<f64> = samples.into_iter().map(median).collect();
        for (n, (graph, time)) in graphs.iter().zip(&times).enumerate() {
            let name = match n {
                0 => "without `recompute`".to_string(),
                1 => "cheap".to_string(),
                _ if n + 1 == graphs.len() => "least".to_string(),
                _ => format!("budget, {} of {PARTS} of the way", PARTS + 1 - n),
            };
            let (mib, ratio) = (peak(graph) as f64 / f64::from(1 << 20), predicted(graph) / predicted(&graphs[0]));
            println!("| {name} | {mib:.1} | {:.1} | {:.3} | {ratio:.3} |", time * 1e3, time / times[0]);
        }
        Ok(())
    })
    .map(drop)
}

/// A GPT that makes one token from the one before, with the keys and values of all positions in tensors that it writes.
struct Decoder {
    tokens: Embedding,
    positions: Embedding,
    blocks: Vec<(Block, Tensor, Tensor)>,
    norm: LayerNorm,
    head: Linear,
    heads: i64,
}

impl Decoder {
    fn new(width: usize, layers: usize, heads: usize, seq: usize) -> Result<Decoder> {
        let options = BlockOptions { width, heads, hidden: 4 * width, dropout: 0.0 };
        let cache = || zeros([1, heads, seq, width / heads], Device::Cpu);
        let blocks = (0..layers).map(|_| Ok((Block::new(&options, Device::Cpu)?, cache()?, cache()?)));
        Ok(Decoder {
            tokens: Embedding::new(256, width, Device::Cpu)?,
            positions: Embedding::new(seq, width, Device::Cpu)?,
            blocks: blocks.collect::<Result<_>>()?,
            norm: LayerNorm::new(width, Device::Cpu)?,
            head: Linear::new(width, 256, Device::Cpu)?,
            heads: heads as i64,
        })
    }
    /// Logits after the token `i64[1, 1]` at the position `i64[1]`.
    fn next(&self, token: &Tensor, at: &Tensor) -> Result<Tensor> {
        let _quiet = no_grad();
        let mut x = self.tokens.forward(token)?.add(&self.positions.forward(at)?)?;
        for (block, keys, values) in &self.blocks {
            let h = block.ln1.forward(&x)?;
            let split = |l: &Linear| l.forward(&h)?.reshape([1, 1, self.heads, -1])?.permute([0, 2, 1, 3]);
            keys.copy_(&keys.index_copy(2, at, &split(&block.attn.k)?)?)?;
            values.copy_(&values.index_copy(2, at, &split(&block.attn.v)?)?)?;
            let [_, _, seq, size] = keys.shape() else { continue };
            let later = arange(*seq as i64, Device::Cpu)?.gt(at)?;
            let scores = split(&block.attn.q)?.matmul(&keys.transpose(-1, -2)?)?.mul((*size as f64).sqrt().recip())?;
            let y = scores.masked_fill(&later, f64::NEG_INFINITY)?.softmax(-1)?.matmul(values)?;
            x = x.add(&block.attn.o.forward(&y.permute([0, 2, 1, 3])?.reshape([1, 1, -1])?)?)?;
            x = x.add(&block.mlp.forward(&block.ln2.forward(&x)?)?)?;
        }
        self.head.forward(&self.norm.forward(&x)?)
    }
}

/// Small programs.
fn small(meter: &Meter) -> Result<()> {
    println!("\n| program | {HEAD}\n|---|---|---|---|---|---|---|---|");
    let rows = |_: &oflow::World| {
        let mesh = Placement::all(Device::Cpu)?;
        for (name, x) in [("local", ones([8, 8], Device::Cpu)?), ("global", ones([8, 8], (&mesh, sbp![B]))?)] {
            let f = |x: &Tensor| {
                let _quiet = no_grad();
                (1..ADDS).try_fold(x.add(x)?, |y, _| y.add(x))
            };
            let apart = Passes::default().without("fuse")?;
            for (how, passes) in [("a kernel each", apart), ("fused", Passes::default())] {
                let options = GraphOptions::default().passes(passes);
                let mut graph = Graph::build(|g| f(&g.input("x", &x)?), options)?;
                let ours: [Call<'_>; 2] = [&mut || f(&x).map(drop), &mut || graph.run(&[&x]).map(drop)];
                let sides = meter.alternate("adds", (20, 10), ours, || ())?;
                println!("| 1,000 adds of 8x8, {name}, {how}, µs an add | {} |", cells(&sides, ADDS as f64));
            }
        }
        for batch in [1, 32] {
            let target = (&mesh, sbp![B]);
            let layers = (0..4).map(|_| Linear::new(64, 64, target.clone())).collect::<Result<Vec<_>>>()?;
            let parameters = layers.iter().flat_map(|l| l.parameters()).collect();
            let opt = RefCell::new(AdamW::new(parameters, AdamWOptions::default()));
            let x = randn([batch, 64], target.clone())?;
            let step = |x: &Tensor| {
                let y = layers.iter().try_fold(x.clone(), |h, l| l.forward(&h)?.relu())?;
                stepped(&mut opt.borrow_mut(), y.square()?.mean(())?)
            };
            let mut graph = Graph::build(|g| step(&g.input("x", &x)?), GraphOptions::default())?;
            let ours: [Call<'_>; 2] = [&mut || step(&x).map(drop), &mut || graph.run(&[&x]).map(drop)];
            let sides = meter.alternate(&format!("mlp {batch}"), (20, 20), ours, || ())?;
            println!("| step of 4 layers 64 wide, AdamW, batch {batch}, µs | {} |", cells(&sides, 1.0));
        }
        let decoder = Decoder::new(256, 4, 4, BATCH[1])?;
        let (token, at) = (zeros([1, 1], Device::Cpu.dtype(DType::I64))?, full([1], 5, Device::Cpu)?);
        let at = at.cast(DType::I64)?;
        let build = |g: &oflow::graph::GraphBuilder<'_>| decoder.next(&g.input("token", &token)?, &g.input("at", &at)?);
        let mut graph = Graph::build(build, GraphOptions::default())?;
        let ours: [Call<'_>; 2] =
            [&mut || decoder.next(&token, &at).map(drop), &mut || graph.run(&[&token, &at]).map(drop)];
        let sides = meter.alternate("decode", (20, 10), ours, || ())?;
        println!("| a token of the GPT, keys and values kept, µs | {} |", cells(&sides, 1.0));
        Ok(())
    };
    oflow::run_ranks(1, rows).map(drop)
}

/// Milliseconds of what building a graph does, by name, and the number of nodes.
type Built = (Vec<(String, f64)>, usize);

/// Builds the graph of a step, once for the times and once more as it was captured, to time each pass on what it gets.
fn build(training: &mut Training) -> Result<Built> {
    let ms = |t: Duration| t.as_secs_f64() * 1e3;
    let began = Instant::now();
    let (graph, captured) = training.graph(Passes::default())?;
    let whole = ms(began.elapsed());
    let (names, nodes) = (graph.effects().iter().map(|e| e.pass), graph.program().nodes.len());
    let names: Vec<&'static str> = names.collect();
    let mut program = training.graph(Passes::none())?.0.program().clone();
    let mut parts = vec![("capture".to_string(), ms(captured))];
    for name in &names {
        let only = names.iter().filter(|n| *n != name).try_fold(Passes::default(), |p, other| p.without(other))?;
        let began = Instant::now();
        only.run(&mut program)?;
        parts.push((format!("pass {name}"), ms(began.elapsed())));
    }
    let rest = whole - parts.iter().map(|(_, ms)| ms).sum::<f64>();
    parts.extend([("check and plan".to_string(), rest), ("everything".to_string(), whole)]);
    Ok((parts, nodes))
}

/// Capture and plan of 32 layers on a [2, 2] mesh.
fn planning(meter: &Meter) -> Result<()> {
    let barrier = Barrier::new(4);
    let rounds = if meter.quick { 2 } else { 5 };
    let built = oflow::run_ranks(4, |world| {
        let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2), ("tp", 2)])?;
        let mut training = Training::new(&Config::new(256, 32, 64, 4, 16), &mesh, [8, 16])?;
        // A capture makes the optimizer's state, which is not a part of it.
        let mut built = vec![];
        for _ in 0..rounds {
            for turn in 0..world.size() {
                barrier.wait();
                if turn == world.rank() {
                    built.push(build(&mut training)?);
                }
            }
        }
        Ok(built)
    })?;
    let [first, ..] = &built[..] else { return Ok(()) };
    let Some((cold, nodes)) = first.first() else { return Ok(()) };
    println!("\n| training step of 32 layers on [2, 2], {nodes} nodes | first, ms | again, ms |\n|---|---|---|");
    for (i, (name, ms)) in cold.iter().enumerate() {
        let again: Vec<f64> = built.iter().flat_map(|rank| rank.iter().skip(1)).map(|(parts, _)| parts[i].1).collect();
        println!("| {name} | {ms:.1} | {:.1} |", median(again));
    }
    println!("\nBudgets: capture 30 ms, everything 150 ms. The first capture makes the optimizer's state, too.");
    Ok(())
}

/// Saved graphs: what a rank's file takes, and how long it takes to load it in a context that has planned nothing yet.
fn loading(meter: &Meter) -> Result<()> {
    let rounds = if meter.quick { 4 } else { 10 };
    println!(
        "\n| saved graph | nodes | bytes of a file | load, ms | with the optimizer's state |\n|---|---|---|---|---|"
    );
    for (name, sizes) in [("step of the GPT, 1 rank", [1, 1]), ("step of 32 layers on [2, 2], a rank", [2, 2])] {
        let ranks = sizes.iter().product();
        let make = || {
            let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", sizes[0]), ("tp", sizes[1])])?;
            match ranks {
                1 => small_gpt(),
                _ => Training::new(&Config::new(256, 32, 64, 4, 16), &mesh, [8, 16]),
            }
        };
        let folder = tempfile::tempdir().map_err(|e| Error::storage("no folder for saved graphs").because(e))?;
        let built = oflow::run_ranks(ranks, |_| {
            let mut training = make()?;
            let (graph, _) = training.graph(Passes::default())?;
            graph.save(folder.path(), &[("model", &training.model), ("opt", &training.opt)])?;
            let mut state = SaveState::new();
            training.opt.save_state(&mut state)?;
            let names: Vec<String> = state.into_parts().0.into_iter().map(|(name, _)| name).collect();
            Ok((graph.program().nodes.len(), names))
        })?;
        let Some((nodes, names)) = built.first() else { continue };
        let file = std::fs::metadata(folder.path().join("rank0.graph")).map_or(0, |f| f.len());
        let mut times = [vec![], vec![]];
        for round in 0..rounds {
            let barrier = Barrier::new(ranks);
            let ms = oflow::run_ranks(ranks, |world| {
                let mut training = make()?;
                if round % 2 == 0 {
                    let values = std::collections::BTreeMap::new();
                    training.opt.prepare(&LoadState::new(names.iter().map(String::as_str), &values))?;
                }
                let mut ms = 0.0;
                // One after the other, as on cores of their own.
                for turn in 0..ranks {
                    barrier.wait();
                    if turn == world.rank() {
                        let began = Instant::now();
                        let state: &mut [(&str, &mut dyn Stateful)] =
                            &mut [("model", &mut training.model), ("opt", &mut training.opt)];
                        Graph::<Tensor>::load(folder.path(), state)?;
                        ms = began.elapsed().as_secs_f64() * 1e3;
                    }
                }
                Ok(ms)
            })?;
            times[round % 2].extend(ms);
        }
        let [load, with_state] = times.map(median);
        println!("| {name} | {nodes} | {file} | {load:.1} | {with_state:.1} |");
    }
    println!("\nBudget: 10 ms for the step of the GPT.");
    Ok(())
}

fn main() -> Result<()> {
    let quick = std::env::args().any(|a| a == "--quick");
    let meter = Meter { quick, peer: Mutex::new(Peer::start("graph_torch.py")) };
    gpt(&meter)?;
    budgets(&meter)?;
    small(&meter)?;
    planning(&meter)?;
    loading(&meter)
}
