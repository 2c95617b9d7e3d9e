//! Graphs: a captured step has the bits of the step itself, whatever trains.

use oflow::functional::CrossEntropyOptions;
use oflow::graph::{Graph, GraphOptions, Memory, Passes};
use oflow::nn::{BatchNorm, Dropout, Linear, Module, ZeroOptions, checkpoint, zero};
use oflow::optim::{
    AdamW, AdamWOptions, Ema, GradScaler, GradScalerOptions, Groups, Optimizer, OptimizerConfig, by_decay,
    clip_grad_norm,
};
use oflow::prelude::*;
use oflow::state::{SaveState, Stateful as _};
use oflow::{BackwardOptions, Generator};
use oflow_tests::bag::Bag;
use oflow_tests::programs::round_trip;

/// Steps that are compared.
const STEPS: usize = 6;

/// A model with what trains it. A step is `step(x, y)`; batches are of the step's number.
struct Job<M> {
    model: M,
    opt: Groups,
    #[allow(clippy::type_complexity)]
    step: Box<dyn Fn(&M, &mut Groups, &Tensor, &Tensor) -> Result<Tensor>>,
    /// Tensors beside parameters and the optimizer's state that steps write.
    written: Vec<Tensor>,
    /// Whether that is all of its state: its step holds no generator, scaler or average.
    saved: bool,
}

/// Saves the graph of a job and trains with it a job that has never stepped, as another process does.
fn same_loaded<M: Module>(
    (what, at, rate): (&str, &At, impl Fn(usize) -> f64),
    (graph, job): (&Graph, &Job<M>),
    (mut again, losses, eager): (Job<M>, &[Vec<u64>], &Job<M>),
) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let written = Bag(job.written.clone());
    graph.save(folder.path(), &[("model", &job.model), ("opt", &job.opt), ("written", &written)])?;
    let mut written = Bag(again.written.clone());
    // State that is made for the load may begin with the rate.
    again.opt.set_lr(rate(0));
    let mut loaded = Graph::<Tensor>::load(
        folder.path(),
        &mut [("model", &mut again.model), ("opt", &mut again.opt), ("written", &mut written)],
    )?;
    assert_eq!(loaded.explain(), graph.explain(), "{what}");
    for (n, want) in losses.iter().enumerate() {
        let (x, y) = at.batch(n)?;
        again.opt.set_lr(rate(n));
        assert_eq!(&bits(&loaded.run(&[&x, &y])?)?, want, "{what}, loaded: loss of step {n}");
    }
    for ((name, have), (_, want)) in state(&again)?.iter().zip(&state(eager)?) {
        assert_eq!(have, want, "{what}, loaded: {name}");
    }
    Ok(())
}

/// Where tensors are made: on the CPU, or on a mesh.
#[derive(Clone)]
pub struct At(pub Option<(Placement, NdSbp)>);

impl At {
    pub fn target(&self) -> oflow::functional::TargetSpec {
        match &self.0 {
            Some((mesh, _)) => (mesh, NdSbp::broadcast(mesh.axes())).into_target(),
            None => Device::Cpu.into_target(),
        }
    }
    pub fn batch(&self, step: usize) -> Result<(Tensor, Tensor)> {
        let x = (0..8 * 6).map(|i| ((i * 7 + step * 5) % 13) as f32 / 13.0 - 0.5).collect();
        let y = (0..8).map(|i| ((i * 3 + step) % 4) as i64).collect();
        let (x, y) = (from_vec::<f32>(x, [8, 6], Device::Cpu)?, from_vec::<i64>(y, [8], Device::Cpu)?);
        match &self.0 {
            Some((mesh, sbp)) => Ok((distribute(&x, (mesh, sbp.clone()))?, distribute(&y, (mesh, sbp.clone()))?)),
            None => Ok((x, y)),
        }
    }
}

pub fn bits(t: &Tensor) -> Result<Vec<u64>> {
    Ok(t.cast(DType::F64)?.to_f64_vec()?.into_iter().map(f64::to_bits).collect())
}

/// A tensor by name, as bits.
type Named = (String, Vec<u64>);

/// All that training has changed: parameters, the optimizer's state, what the job lists.
fn state<M: Module>(job: &Job<M>) -> Result<Vec<Named>> {
    let _quiet = no_grad();
    let mut all = vec![];
    for (i, p) in job.model.parameters().iter().chain(&job.written).enumerate() {
        all.push((format!("tensor {i}"), bits(p)?));
    }
    let mut saved = SaveState::new();
    job.opt.save_state(&mut saved)?;
    let (tensors, values) = saved.into_parts();
    for (name, t) in &tensors {
        all.push((name.clone(), bits(t)?));
    }
    all.push((format!("{values:?}"), vec![]));
    Ok(all)
}

/// Trains a job as it is and as graphs, from the same seed, with a rate that changes between steps.
fn same<M: Module>(what: &str, at: &At, make: impl Fn() -> Result<Job<M>>) -> Result<()> {
    same_with(what, at, &make, &Passes::default())?;
    // Each parameter by itself, as early as can be.
    let apart = Passes::default().memory(Memory::Least).without("gather")?;
    same_with(&format!("{what}, apart"), at, &make, &apart)
}

/// The same with these passes.
fn same_with<M: Module>(what: &str, at: &At, make: &impl Fn() -> Result<Job<M>>, passes: &Passes) -> Result<()> {
    let rate = |step: usize| 0.05 / (1.0 + step as f64);
    manual_seed(11);
    let mut eager = make()?;
    let mut losses = vec![];
    for n in 0..STEPS {
        let (x, y) = at.batch(n)?;
        eager.opt.set_lr(rate(n));
        losses.push(bits(&(eager.step)(&eager.model, &mut eager.opt, &x, &y)?)?);
    }
    let after = rand([3], Device::Cpu)?.to_vec::<f32>()?;

    manual_seed(11);
    let mut job = make()?;
    let before = state(&job)?;
    let (x0, y0) = at.batch(0)?;
    job.opt.set_lr(rate(0));
    let mut graph = Graph::build(
        |g| {
            let (x, y) = (g.input("x", &x0)?, g.input("y", &y0)?);
            (job.step)(&job.model, &mut job.opt, &x, &y)
        },
        GraphOptions::default().passes(passes.clone()),
    )?;
    round_trip(graph.program());
    for arena in graph.plan().iter().flat_map(|plan| &plan.arenas) {
        assert!(arena.packed as f64 <= 1.01 * arena.bound as f64, "{what}: {arena:?}");
    }
    let unchanged = |(a, b): (&Named, &Named)| a.1 == b.1;
    let tensors = job.model.parameters().len() + job.written.len();
    assert!(state(&job)?.iter().zip(&before).take(tensors).all(unchanged), "{what}: the capture changed a tensor");
    assert!(job.model.parameters().iter().all(|p| p.grad().is_none()), "{what}: a gradient is left");
    for (n, want) in losses.iter().enumerate() {
        let (x, y) = at.batch(n)?;
        job.opt.set_lr(rate(n));
        let have = bits(&graph.run(&[&x, &y])?)?;
        assert_eq!(&have, want, "{what}: loss of step {n}\n{}", graph.explain());
    }
    for ((name, have), (_, want)) in state(&job)?.iter().zip(&state(&eager)?) {
        assert_eq!(have, want, "{what}: {name}\n{}", graph.explain());
    }
    assert_eq!(state(&job)?.last(), state(&eager)?.last(), "{what}: numbers of steps");
    assert_eq!(
        rand([3], Device::Cpu)?.to_vec::<f32>()?,
        after,
        "{what}: the generator is elsewhere\n{}",
        graph.explain()
    );
    if job.saved {
        manual_seed(11);
        same_loaded((what, at, rate), (&graph, &job), (make()?, &losses, &eager))?;
    }
    // The step itself goes on where the graph has stopped.
    let (x, y) = at.batch(STEPS)?;
    let [a, b] = [&mut eager, &mut job].map(|j| {
        manual_seed(12);
        (j.step)(&j.model, &mut j.opt, &x, &y).and_then(|l| bits(&l))
    });
    assert_eq!(a?, b?, "{what}: an eager step after the graph");
    Ok(())
}

#[derive(oflow::nn::Module)]
pub struct Net {
    a: Linear,
    b: Linear,
    dropout: Dropout,
}

impl Net {
    pub fn new(at: &At, dropout: f64) -> Result<Net> {
        let t = at.target();
        let mut net = Net { a: Linear::new(6, 12, &t)?, b: Linear::new(12, 4, &t)?, dropout: Dropout::new(dropout) };
        if let Some((mesh, _)) = &at.0
            && mesh.axes() == 2
        {
            let split = [("a.*", sbp![B, S(0)]), ("b.weight", sbp![B, S(1)]), ("b.bias", sbp![B, B])];
            net.to_global(mesh, &split)?;
        }
        Ok(net)
    }
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.dropout.forward(&self.a.forward(x)?.gelu()?)?;
        self.b.forward(&h)
    }
}

/// Backward from a loss and the optimizer's step: the loss.
fn stepped(opt: &mut dyn Optimizer, loss: Tensor) -> Result<Tensor> {
    opt.zero_grad();
    loss.backward()?;
    opt.step()?;
    Ok(loss)
}

fn train(model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let loss = model.forward(x)?.cross_entropy_with(y, &CrossEntropyOptions::default())?;
    stepped(opt, loss)
}

fn job(at: &At, config: &OptimizerConfig) -> Result<Job<Net>> {
    let model = Net::new(at, 0.2)?;
    // Muon takes matrices alone.
    let takes = |p: &Tensor| config.check_parameters(std::slice::from_ref(p)).is_ok();
    let (taken, others): (Vec<Tensor>, Vec<Tensor>) = model.parameters().into_iter().partition(takes);
    assert!(!taken.is_empty());
    let mut opt = Groups::new(vec![config.build(taken)]);
    if !others.is_empty() {
        opt.push(self::config(r#"{"kind": "adamw"}"#).build(others));
    }
    Ok(Job { model, opt, step: Box::new(train), written: vec![], saved: true })
}

fn config(text: &str) -> OptimizerConfig {
    serde_json::from_str(text).unwrap()
}

/// The kinds with their defaults, and the settings that need more state or other ops.
fn configs() -> Vec<OptimizerConfig> {
    let kinds = OptimizerConfig::KINDS.iter().map(|kind| config(&format!(r#"{{"kind": "{kind}"}}"#)));
    let more = [
        r#"{"kind": "sgd", "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.01}"#,
        r#"{"kind": "sgd", "momentum": 0.9, "nesterov": true}"#,
        r#"{"kind": "adamw", "amsgrad": true}"#,
        r#"{"kind": "rmsprop", "momentum": 0.5, "centered": true}"#,
        r#"{"kind": "adagrad", "lr_decay": 0.1}"#,
        r#"{"kind": "sgd", "maximize": true}"#,
        r#"{"kind": "adafactor", "weight_decay": 0.1}"#,
        r#"{"kind": "asgd", "t0": 1.0}"#,
    ];
    kinds.chain(more.into_iter().map(config)).collect()
}

/// On one rank without a mesh, and on meshes of 1, 2 and 4 ranks.
fn everywhere(f: impl Fn(&At) -> Result<()> + Sync) {
    f(&At(None)).unwrap();
    for (ranks, sizes, sbp) in
        [(1, vec![1], sbp![S(0)]), (2, vec![2], sbp![S(0)]), (3, vec![3], sbp![S(0)]), (4, vec![2, 2], sbp![S(0), B])]
    {
        oflow::run_ranks(ranks, |_| {
            let names = ["dp", "tp"];
            let axes: Vec<(&str, usize)> = names.into_iter().zip(sizes.iter().copied()).collect();
            f(&At(Some((Placement::all(Device::Cpu)?.mesh(&axes)?, sbp.clone()))))
        })
        .unwrap();
    }
}

#[test]
fn every_optimizer_steps_as_without_a_graph() {
    everywhere(|at| configs().iter().try_for_each(|config| same(&format!("{config:?}"), at, || job(at, config))));
}

#[test]
fn recipes_of_training_are_the_same_steps() {
    everywhere(|at| {
        let adamw = || config(r#"{"kind": "adamw"}"#);
        same("clipping", at, || {
            let step = |model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                let loss = model.forward(x)?.cross_entropy(y)?;
                opt.zero_grad();
                loss.backward()?;
                clip_grad_norm(opt.parameters(), 0.1)?;
                opt.step()?;
                Ok(loss)
            };
            Ok(Job { step: Box::new(step), ..job(at, &adamw())? })
        })?;
        same("accumulation", at, || {
            let step = |model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                opt.zero_grad();
                let first = model.forward(x)?.cross_entropy(y)?;
                first.backward()?;
                let second = model.forward(&x.mul(0.5)?)?.cross_entropy(y)?;
                second.backward()?;
                opt.step()?;
                first.add(&second)
            };
            Ok(Job { step: Box::new(step), ..job(at, &adamw())? })
        })?;
        same("autocast", at, || {
            let step = |model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                let logits = {
                    let _amp = autocast(Autocast::Bf16);
                    model.forward(x)?
                };
                let loss = logits.cast(DType::F32)?.cross_entropy(y)?;
                stepped(opt, loss)
            };
            Ok(Job { step: Box::new(step), ..job(at, &adamw())? })
        })?;
        same("recomputation", at, || {
            let step = |model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                let loss = checkpoint(|x: &Tensor| model.forward(x), x)?.cross_entropy(y)?;
                stepped(opt, loss)
            };
            Ok(Job { step: Box::new(step), ..job(at, &adamw())? })
        })?;
        same("groups", at, || {
            let made = job(at, &adamw())?;
            let (weights, biases) = by_decay(made.model.parameters());
            let group = |p: Vec<Tensor>, decay| adamw().with_weight_decay(decay).build(p);
            Ok(Job { opt: Groups::new(vec![group(weights, 0.1), group(biases, 0.0)]), ..made })
        })?;
        same("explicit generators", at, || {
            let (g, target) = (Generator::new(5), at.target());
            let step = move |model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                let noise = rand(x.shape(), target.clone().generator(&g))?;
                let loss = model.forward(&x.add(&noise)?)?.cross_entropy(y)?;
                stepped(opt, loss)
            };
            Ok(Job { step: Box::new(step), saved: false, ..job(at, &adamw())? })
        })?;
        same("a function of the program's own, and hooks of gradients", at, || {
            let made = job(at, &adamw())?;
            let _hook = made.model.a.weight.register_hook(|g| g.mul(0.5).map(Some))?;
            let step = |model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                let h = model.a.forward(x)?;
                let saved = h.detach();
                let doubled = oflow::apply_custom(
                    "cube",
                    &[&h],
                    |ins| Ok(vec![ins[0].mul(ins[0])?.mul(ins[0])?]),
                    move |grads| Ok(vec![grads[0].as_ref().map(|g| g.mul(&saved.square()?.mul(3.0)?)).transpose()?]),
                )?;
                let loss = model.b.forward(&doubled[0])?.cross_entropy(y)?;
                stepped(opt, loss)
            };
            Ok(Job { step: Box::new(step), ..made })
        })?;
        same("the gradient of a gradient", at, || {
            let step = |model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                let loss = model.forward(x)?.cross_entropy(y)?;
                let recorded = BackwardOptions { create_graph: true, ..Default::default() };
                let found = oflow::functional::grad(&[&loss], &[&model.a.weight], &recorded)?;
                let penalty = found[0].as_ref().map_or_else(|| loss.mul(0.0), |g| g.square()?.sum(()));
                let loss = loss.add(&penalty?)?;
                stepped(opt, loss)
            };
            Ok(Job { step: Box::new(step), ..job(at, &adamw())? })
        })?;
        same("packed activations", at, || {
            let step = |model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                let pack = |t: &Tensor| if t.dtype() == DType::F32 { t.cast(DType::F16) } else { Ok(t.clone()) };
                let unpack = |t: &Tensor| if t.dtype() == DType::F16 { t.cast(DType::F32) } else { Ok(t.clone()) };
                let loss = oflow::saved_tensors_hooks(pack, unpack, || model.forward(x)?.cross_entropy(y))?;
                stepped(opt, loss)
            };
            Ok(Job { step: Box::new(step), ..job(at, &adamw())? })
        })?;
        same("a requested layout", at, || {
            let global = at.0.as_ref().map(|(mesh, _)| NdSbp::broadcast(mesh.axes()));
            let step = move |model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                let h = model.a.forward(x)?;
                let h = match &global {
                    Some(whole) => with_sbp(whole, || h.relu())?,
                    None => h.relu()?,
                };
                let loss = model.b.forward(&h)?.cross_entropy(y)?;
                stepped(opt, loss)
            };
            Ok(Job { step: Box::new(step), ..job(at, &adamw())? })
        })?;
        same("an average of the weights", at, || {
            let made = job(at, &adamw())?;
            let ema = Ema::new(made.model.parameters(), 0.8)?;
            let (written, ema) = (ema.averages().to_vec(), std::cell::RefCell::new(ema));
            let step = move |model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                let loss = train(model, opt, x, y)?;
                ema.borrow_mut().update()?;
                Ok(loss)
            };
            Ok(Job { step: Box::new(step), written, saved: false, ..made })
        })
    });
}

/// A second run makes calls that stand in the program already: they are marked, and without them the program is that of the plain step.
#[test]
fn calls_that_are_made_once_more_are_marked() {
    everywhere(|at| {
        let model = Net::new(at, 0.2)?;
        let (x0, y0) = at.batch(0)?;
        let global = at.0.as_ref().map(|(mesh, _)| NdSbp::broadcast(mesh.axes()));
        let build = |on: bool| {
            manual_seed(3);
            let forward = |x: &Tensor| {
                let h = model.forward(x)?;
                // A value that is boxed for the calls that read it.
                let pair = h.transpose(0, 1)?.matmul(&h)?.exp()?;
                let pair = match &global {
                    Some(whole) => with_sbp(whole, || pair.sin())?,
                    None => pair.sin()?,
                };
                h.matmul(&pair)?.sin()
            };
            Graph::build(
                |g| {
                    let (x, y) = (g.input("x", &x0)?, g.input("y", &y0)?);
                    let h = if on { checkpoint(forward, &x)? } else { forward(&x)? };
                    let loss = h.cross_entropy(&y)?;
                    loss.backward()?;
                    Ok(loss)
                },
                GraphOptions::default().passes(Passes::none()),
            )
        };
        let (plain, again) = (build(false)?, build(true)?);
        round_trip(again.program());
        let reread: oflow::program::Program = again.program().to_string().parse()?;
        let text = |p: &oflow::program::Program, n: &oflow::program::Node| {
            let types: Vec<String> = n.outputs.iter().map(|v| oflow::program::described(p.ty(*v))).collect();
            match &n.work {
                oflow::program::Work::Call(c) => {
                    format!("{} {:?} {:?} {:?} {:?} {types:?}", c.op.name(), c.attrs, c.runtime, c.draw, c.signature)
                }
                oflow::program::Work::Box(op) => format!("box {op} {types:?}"),
                oflow::program::Work::Host(h) => format!("{h:?}"),
                oflow::program::Work::Repeat(r) => format!("repeat {}", r.count),
            }
        };
        let all = |p: &oflow::program::Program, recomputed: bool| -> Vec<String> {
            p.nodes.iter().filter(|n| n.recomputed == recomputed).map(|n| text(p, n)).collect()
        };
        let (marked, others) = (all(again.program(), true), all(again.program(), false));
        assert!(marked.len() > 4 && all(plain.program(), true).is_empty(), "{}", again.explain());
        assert_eq!(others, all(plain.program(), false), "{}", again.explain());
        let mut forward = again.program().nodes.iter().filter(|n| !n.backward).map(|n| text(again.program(), n));
        assert!(marked.iter().all(|m| forward.any(|f| f == *m)), "in the order of the first run: {}", again.explain());
        assert!(again.program().nodes.iter().all(|n| n.backward || !n.recomputed));
        let marks = |p: &oflow::program::Program| -> Vec<_> { p.nodes.iter().map(|n| n.recomputed).collect() };
        assert_eq!(marks(&reread), marks(again.program()));
        assert_eq!(at.0.is_some(), marked.iter().any(|m| m.starts_with("box")), "{marked:#?}");
        Ok(())
    });
}

#[test]
fn halves_with_masters_are_the_same_steps() {
    everywhere(|at| {
        for kind in ["adamw", "sgd"] {
            same(&format!("{kind} of bf16"), at, || {
                let mut model = Net::new(at, 0.0)?;
                model.map_parameters(&mut |_, t| t.detach().cast(DType::BF16)?.requires_grad_(true))?;
                let opt = Groups::new(vec![config(&format!(r#"{{"kind": "{kind}"}}"#)).build(model.parameters())]);
                let step = |model: &Net, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                    let loss = model.forward(&x.cast(DType::BF16)?)?.cast(DType::F32)?.cross_entropy(y)?;
                    stepped(opt, loss)
                };
                Ok(Job { model, opt, step: Box::new(step), written: vec![], saved: true })
            })?;
        }
        Ok(())
    });
}

#[test]
fn divided_parameters_are_the_same_steps() {
    for sizes in [vec![2], vec![2, 2]] {
        oflow::run_ranks(sizes.iter().product(), |_| {
            let axes: Vec<(&str, usize)> = ["dp", "tp"].into_iter().zip(sizes.iter().copied()).collect();
            let mesh = Placement::all(Device::Cpu)?.mesh(&axes)?;
            let at = At(Some((mesh.clone(), NdSbp::broadcast(mesh.axes()).with(0, Sbp::Split(0)))));
            for stage in 0..=3 {
                same(&format!("stage {stage}"), &at, || {
                    let mut model = Net::new(&at, 0.2)?;
                    zero(&mut model, &ZeroOptions { min_elements: 20, ..ZeroOptions::new(stage) })?;
                    let opt = Groups::new(vec![config(r#"{"kind": "adamw"}"#).build(model.parameters())]);
                    Ok(Job { model, opt, step: Box::new(train), written: vec![], saved: true })
                })?;
            }
            Ok(())
        })
        .unwrap();
    }
}

#[derive(oflow::nn::Module)]
struct Normed {
    norm: BatchNorm,
    out: Linear,
}

#[test]
fn running_statistics_are_variables() {
    everywhere(|at| {
        same("batch norm", at, || {
            let target = at.target();
            let model = Normed { norm: BatchNorm::new(6, &target)?, out: Linear::new(6, 4, &target)? };
            let opt = Groups::new(vec![config(r#"{"kind": "sgd"}"#).build(model.parameters())]);
            let written = model.named_buffers().into_iter().map(|(_, b)| b.tensor().clone()).collect();
            let step = |model: &Normed, opt: &mut Groups, x: &Tensor, y: &Tensor| {
                let loss = model.out.forward(&model.norm.forward(x)?)?.cross_entropy(y)?;
                stepped(opt, loss)
            };
            Ok(Job { model, opt, step: Box::new(step), written, saved: false })
        })
    });
}

#[test]
fn a_scaler_decides_at_each_run() {
    everywhere(|at| {
        let make = || -> Result<(Net, AdamW, GradScaler)> {
            manual_seed(4);
            let net = Net::new(at, 0.1)?;
            let opt = AdamW::new(net.parameters(), AdamWOptions { lr: 0.01, ..Default::default() });
            let scaler = GradScaler::new(GradScalerOptions { growth_interval: 2, ..Default::default() });
            Ok((net, opt, scaler))
        };
        // The gradient of a sum is the scale, which is infinite in f16 at first: the step is skipped.
        let step = |net: &Net, opt: &mut AdamW, scaler: &mut GradScaler, x: &Tensor| {
            let loss = {
                let _amp = autocast(Autocast::F16);
                net.forward(x)?.sum(())?
            };
            opt.zero_grad();
            scaler.scale(&loss)?.backward()?;
            scaler.unscale_(opt)?;
            clip_grad_norm(opt.parameters(), 1.0)?;
            assert!(scaler.step(opt)? || !loss.is_meta());
            scaler.update();
            Ok(loss)
        };
        let numbers = |loss: &Tensor, (net, opt, scaler): &(Net, AdamW, GradScaler)| -> Result<Vec<Vec<u64>>> {
            let mut all = vec![bits(loss)?, vec![scaler.current().to_bits(), scaler.skipped()]];
            for p in net.parameters() {
                all.push(bits(&p)?);
            }
            let mut saved = SaveState::new();
            opt.save_state(&mut saved)?;
            for (_, t) in &saved.into_parts().0 {
                all.push(bits(t)?);
            }
            Ok(all)
        };
        let mut eager = make()?;
        let mut want = vec![];
        for n in 0..8 {
            let loss = step(&eager.0, &mut eager.1, &mut eager.2, &at.batch(n)?.0)?;
            want.push(numbers(&loss, &eager)?);
        }
        assert!((1..8).contains(&eager.2.skipped()), "{} steps were skipped", eager.2.skipped());

        let mut own = make()?;
        let x0 = at.batch(0)?.0;
        let mut graph =
            Graph::build(|g| step(&own.0, &mut own.1, &mut own.2, &g.input("x", &x0)?), GraphOptions::default())?;
        round_trip(graph.program());
        for (n, want) in want.iter().enumerate() {
            let loss = graph.run(&[&at.batch(n)?.0])?;
            let have = numbers(&loss, &own)?;
            // State that no step has used yet is there already.
            assert_eq!(&have[..want.len()], &want[..], "step {n}\n{}", graph.explain());
        }
        Ok(())
    });
}
