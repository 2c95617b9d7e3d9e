//! A training of 50 steps in parts: each part is the step itself, a graph of it or one that is loaded, and begins with the checkpoint that the
//! part before has saved. It has the bits of one training without a graph. The step has all at once that a graph reads anew at each run: a rate that changes,
//! dropout, an explicit generator, two batches a step, loss scaling that skips steps, clipping, and ZeRO.

use super::graph::{At, Net, bits};
use oflow::Generator;
use oflow::checkpoint::{CheckpointManager, CheckpointOptions};
use oflow::graph::{Graph, GraphOptions};
use oflow::nn::{Module, ZeroOptions, zero};
use oflow::optim::{AdamW, AdamWOptions, GradScaler, GradScalerOptions, Optimizer, clip_grad_norm};
use oflow::prelude::*;
use oflow::state::{SaveState, Stateful};
use oflow_tests::cases;
use std::path::Path;

const STEPS: usize = 50;

struct Training {
    net: Net,
    opt: AdamW,
    scaler: GradScaler,
    noise: Generator,
}

impl Training {
    /// Another seed makes other weights and other random numbers, which a checkpoint replaces.
    fn new(at: &At, stage: u8, seed: u64) -> Result<Training> {
        manual_seed(seed);
        let mut net = Net::new(at, 0.2)?;
        if at.0.is_some() {
            zero(&mut net, &ZeroOptions { min_elements: 20, ..ZeroOptions::new(stage) })?;
        }
        let opt = AdamW::new(net.parameters(), AdamWOptions::default());
        let scaler = GradScaler::new(GradScalerOptions { scale: 1e9, growth_interval: 6, ..Default::default() });
        Ok(Training { net, opt, scaler, noise: Generator::new(seed) })
    }

    /// One step on two batches: the sum of their losses.
    fn step(&mut self, at: &At, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        self.opt.zero_grad();
        let mut losses = vec![];
        for part in 0..2 {
            let noise = rand(x.shape(), at.target().generator(&self.noise))?;
            let logits = {
                let _amp = autocast(Autocast::F16);
                self.net.forward(&x.add(&noise.mul(0.1 * part as f64)?)?)?
            };
            let loss = logits.cast(DType::F32)?.cross_entropy(y)?;
            self.scaler.scale(&loss)?.backward()?;
            losses.push(loss);
        }
        self.scaler.unscale_(&self.opt)?;
        clip_grad_norm(&self.net.parameters(), 0.3)?;
        self.scaler.step(&mut self.opt)?;
        self.scaler.update();
        losses[0].add(&losses[1])
    }

    fn sections(&mut self) -> [(&'static str, &mut dyn Stateful); 4] {
        let Training { net, opt, scaler, noise } = self;
        [("net", net), ("opt", opt), ("scaler", scaler), ("noise", noise)]
    }
}

/// How a part trains.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    /// By the step itself.
    Step,
    /// By a graph that it captures, and saves.
    Graph,
    /// By a graph that an earlier part has saved.
    Loaded,
}

/// The bits of all losses, and then those of all state.
fn trained(at: &At, stage: u8, parts: &[(How, usize)], dir: &Path) -> Result<Vec<(String, Vec<u64>)>> {
    let (mut all, mut step) = (vec![], 0);
    let plan = dir.join("plan");
    for (n, (how, steps)) in parts.iter().enumerate() {
        let mut t = Training::new(at, stage, 3 + n as u64)?;
        let mut manager = CheckpointManager::new(dir, CheckpointOptions { keep: 1 });
        if n > 0 {
            assert_eq!(manager.load_latest(&mut t.sections())?, Some(step as u64));
        }
        let mut graph: Option<Graph> = None;
        for _ in 0..*steps {
            let (x, y) = at.batch(step)?;
            t.opt.set_lr(0.05 / (1.0 + step as f64));
            if *how == How::Graph && graph.is_none() {
                let (t, x, y) = (&mut t, &x, &y);
                let built = Graph::build(|g| t.step(at, &g.input("x", x)?, &g.input("y", y)?), GraphOptions::default());
                let built = built?;
                built.save(&plan, &t.sections().map(|(name, state)| (name, &*state as &dyn Stateful)))?;
                graph = Some(built);
            } else if *how == How::Loaded && graph.is_none() {
                graph = Some(Graph::load(&plan, &mut t.sections())?);
            }
            let loss = match &mut graph {
                Some(graph) => graph.run(&[&x, &y])?,
                None => t.step(at, &x, &y)?,
            };
            all.push((format!("loss {step}"), bits(&loss)?));
            step += 1;
        }
        if n + 1 < parts.len() {
            let sections = t.sections().map(|(name, state)| (name, &*state));
            manager.save(step as u64, &sections)?;
            continue;
        }
        let mut saved = SaveState::new();
        for (name, state) in t.sections() {
            saved.section(name);
            state.save_state(&mut saved)?;
        }
        let (tensors, values) = saved.into_parts();
        for (name, t) in &tensors {
            all.push((name.clone(), bits(t)?));
        }
        let ctx = oflow::context::current();
        all.push((format!("{values:?} {:?} {:?}", ctx.generator(), ctx.local_generator()), vec![]));
        assert!((1..STEPS as u64 / 2).contains(&t.scaler.skipped()), "{} steps were skipped", t.scaler.skipped());
    }
    Ok(all)
}

fn compared(at: &At, stage: u8, dir: &Path) -> Result<()> {
    let run = |parts: &[(How, usize)]| {
        let name: Vec<String> = parts.iter().map(|(graph, steps)| format!("{graph:?}-{steps}")).collect();
        trained(at, stage, parts, &dir.join(name.join("-")))
    };
    let want = run(&[(How::Step, STEPS)])?;
    let k = 17;
    for parts in [
        &[(How::Graph, STEPS)][..],
        &[(How::Graph, k), (How::Graph, STEPS - k)],
        &[(How::Graph, k), (How::Step, STEPS - k)],
        &[(How::Step, k), (How::Graph, STEPS - k)],
        &[(How::Graph, k), (How::Loaded, STEPS - k)],
        &[(How::Graph, 3), (How::Step, k), (How::Loaded, STEPS - k - 3)],
    ] {
        for (have, want) in run(parts)?.iter().zip(&want) {
            assert!(have == want, "{parts:?}, ZeRO {stage}: {} is {:?}, not {} {:?}", have.0, have.1, want.0, want.1);
        }
    }
    Ok(())
}

#[test]
fn parts_that_are_graphs_go_on_with_the_bits_of_a_training_without() {
    let folder = tempfile::tempdir().unwrap();
    let dir = |name: &str| folder.path().join(name);
    compared(&At(None), 0, &dir("local")).unwrap();
    for sizes in [vec![1], vec![2], vec![2, 2]] {
        // One stage a mesh, unless all are asked for.
        let daily = sizes.iter().product::<usize>() as u8 - 1;
        for stage in (0..=3).filter(|stage| cases::whole() || *stage == daily) {
            oflow::run_ranks(sizes.iter().product(), |_| {
                let axes: Vec<(&str, usize)> = ["dp", "tp"].into_iter().zip(sizes.iter().copied()).collect();
                let mesh = Placement::all(Device::Cpu)?.mesh(&axes)?;
                let split = NdSbp::broadcast(mesh.axes()).with(0, Sbp::Split(0));
                compared(&At(Some((mesh, split))), stage, &dir(&format!("{sizes:?}-{stage}")))
            })
            .unwrap();
        }
    }
}
