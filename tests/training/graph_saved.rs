//! Saved graphs that are not what they were, or meet a program that is not: each is refused by name, and damaged files never panic.

use oflow::Generator;
use oflow::graph::{Graph, GraphOptions};
use oflow::nn::{Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;
use oflow::state::Stateful;
use oflow::testing::Random;
use std::path::Path;

struct Job {
    model: Linear,
    opt: AdamW,
    noise: Generator,
}

impl Job {
    fn new(inputs: usize) -> Result<Job> {
        let model = Linear::new(inputs, 2, Device::Cpu)?;
        let opt = AdamW::new(model.parameters(), AdamWOptions::default());
        Ok(Job { model, opt, noise: Generator::new(3) })
    }
    fn graph(&mut self, x: &Tensor, options: GraphOptions) -> Result<Graph> {
        let Job { model, opt, noise } = self;
        Graph::build(
            |g| {
                let x = g.input("x", x)?;
                let noise = rand(x.shape(), Device::Cpu.into_target().generator(noise))?;
                let loss = model.forward(&x.add(&noise)?)?.square()?.mean(())?;
                opt.zero_grad();
                loss.backward()?;
                opt.step()?;
                Ok(loss)
            },
            options,
        )
    }
    fn saved(&self) -> [(&str, &dyn Stateful); 3] {
        [("model", &self.model), ("opt", &self.opt), ("noise", &self.noise)]
    }
    fn load(&mut self, folder: &Path) -> Result<Graph> {
        Graph::load(folder, &mut [("model", &mut self.model), ("opt", &mut self.opt), ("noise", &mut self.noise)])
    }
}

fn refused<T>(what: Result<T>) -> String {
    what.err().expect("an error").to_string()
}

fn batch(inputs: usize) -> Result<Tensor> {
    rand([4, inputs], Device::Cpu)
}

#[test]
fn what_a_state_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = Job::new(3).unwrap();
    let graph = job.graph(&batch(3).unwrap(), GraphOptions::default()).unwrap();
    let save = |state: &[(&str, &dyn Stateful)]| refused(graph.save(folder.path(), state));
    let e = save(&[]);
    assert!(e.contains("has a variable") && e.contains("no sections") && e.contains("graph_saved.rs:"), "{e}");
    let e = save(&[("opt", &job.opt), ("noise", &job.noise)]);
    assert!(e.contains("with the sections opt, noise, does not name"), "{e}");
    let e = save(&[("model", &job.model), ("noise", &job.noise)]);
    assert!(e.contains("variable") && e.contains("add the model, optimizer"), "{e}");
    let e = save(&[("model", &job.model), ("opt", &job.opt)]);
    assert!(e.contains("draws from a generator"), "{e}");
    let e = save(&[("model", &job.model), ("model", &job.opt)]);
    assert!(e.contains("two sections of the state have the name \"model\""), "{e}");
    graph.save(folder.path(), &job.saved()).unwrap();

    let mut other = Job::new(3).unwrap();
    let Job { model, opt, noise } = &mut other;
    let load = |state: &mut [(&str, &mut dyn Stateful)]| refused(Graph::<Tensor>::load(folder.path(), state));
    let e = load(&mut [("model", model)]);
    assert!(e.contains("\"opt.0.mean\"") || e.contains("\"opt.0.exp_avg\""), "{e}");
    let e = load(&mut [("net", model), ("opt", opt), ("noise", noise)]);
    assert!(e.contains("the tensor \"model.weight\"") && e.contains("with the sections net, opt, noise"), "{e}");
    let e = load(&mut [("model", model), ("opt", opt)]);
    assert!(e.contains("the generator \"noise.generator\""), "{e}");
    let e = refused(Graph::<(Tensor, Tensor)>::load(folder.path(), &mut []));
    assert!(e.contains("the saved graph returns 1 tensors"), "{e}");
    assert!(refused(other.load(&folder.path().join("nothing"))).contains("rank0.graph"));
}

#[test]
fn a_program_that_has_changed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = Job::new(3).unwrap();
    job.graph(&batch(3).unwrap(), GraphOptions::default()).unwrap().save(folder.path(), &job.saved()).unwrap();
    let e = refused(Job::new(5).unwrap().load(folder.path()));
    assert!(e.contains("\"model.weight\" is f32[2, 5]") && e.contains("f32[2, 3]"), "{e}");
    let mut frozen = Job::new(3).unwrap();
    frozen.model.weight.clone().requires_grad_(false).unwrap();
    let e = refused(frozen.load(folder.path()));
    assert!(e.contains("\"model.weight\" required a gradient when the graph was saved"), "{e}");
    // Another optimizer has no such state, or steps by another op.
    let mut other = Job::new(3).unwrap();
    let mut sgd = Sgd::new(other.model.parameters(), SgdOptions::default());
    let e = refused(Graph::<Tensor>::load(
        folder.path(),
        &mut [("model", &mut other.model), ("opt", &mut sgd), ("noise", &mut other.noise)],
    ));
    assert!(e.contains("\"opt.0."), "{e}");
    let mut fewer = Job::new(3).unwrap();
    fewer.opt = AdamW::new(fewer.model.parameters().drain(..1).collect(), AdamWOptions::default());
    assert!(refused(fewer.load(folder.path())).contains("\"opt.1."));

    // A capture that takes the plan is compared with it.
    let saved = || GraphOptions::default().saved(folder.path());
    let mut again = Job::new(3).unwrap();
    let x = batch(3).unwrap();
    let mut planned = again.graph(&x, saved()).unwrap();
    assert_eq!(planned.explain(), job.graph(&x, GraphOptions::default()).unwrap().explain());
    planned.run(&[&x]).unwrap();
    let e = refused(again.graph(&rand([5, 3], Device::Cpu).unwrap(), saved()));
    assert!(e.contains("the plan of another program") && e.contains("f32[4, 3]") && e.contains("f32[5, 3]"), "{e}");
    let e = refused(Graph::build(|g| g.input("x", &x)?.exp(), saved()));
    assert!(e.contains("the plan of another program"), "{e}");
    let named = |g: &oflow::graph::GraphBuilder<'_>| {
        let y = g.input("x", &x)?.relu()?;
        g.name("y", &y).map(|()| y)
    };
    let relu = folder.path().join("relu");
    Graph::build(named, GraphOptions::default()).unwrap().save(&relu, &[]).unwrap();
    assert!(Graph::build(named, GraphOptions::default().saved(&relu)).unwrap().value("y").is_some());
    let e = refused(Graph::build(|g| g.input("x", &x)?.relu(), GraphOptions::default().saved(&relu)));
    assert!(e.contains("names the values []") && e.contains("[\"y\"]"), "{e}");
}

#[test]
fn another_world_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let save = |ranks: usize| {
        oflow::run_ranks(ranks, |_| {
            let x = ones([4, 4], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
            Graph::build(|g| g.input("x", &x)?.sum(()), GraphOptions::default())?.save(folder.path(), &[])
        })
    };
    save(2).unwrap();
    let load = |ranks: usize| {
        oflow::run_ranks(ranks, |_| {
            let x = ones([4, 4], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
            Graph::<Tensor>::load(folder.path(), &mut [])?.run(&[&x])?.item()
        })
    };
    assert_eq!(load(2).unwrap(), [16.0; 2]);
    let e = refused(load(3));
    assert!(e.contains("saved for rank") && e.contains("of 2, here it is") && e.contains("of 3"), "{e}");
}

/// Gradient accumulation with dropout in a loop of the plan, on two ranks: the loaded graph takes the steps of the calls.
#[test]
fn repeated_sections_are_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let make = || -> Result<(Linear, AdamW)> {
            manual_seed(4);
            let model = Linear::new(6, 3, (&mesh, sbp![B]))?;
            let opt = AdamW::new(model.parameters(), AdamWOptions { lr: 0.1, ..Default::default() });
            Ok((model, opt))
        };
        let part = |model: &Linear, x: &Tensor| -> Result<Tensor> {
            let loss = model.forward(&x.dropout(0.3)?)?.square()?.mean(())?;
            loss.backward()?;
            Ok(loss.detach())
        };
        let batch = |n: usize| rand([4, 8, 6], (&mesh, sbp![S(1)]))?.mul(n as f64 + 0.5);
        let (model, mut opt) = make()?;
        let x = batch(0)?;
        let graph = Graph::build(
            |g| {
                let x = g.input("x", &x)?;
                opt.zero_grad();
                let losses = g.repeat(4, |i| part(&model, &i.of(&x)?))?;
                opt.step()?;
                losses.sum(())
            },
            GraphOptions::default(),
        )?;
        graph.save(folder.path(), &[("model", &model), ("opt", &opt)])?;
        let bits =
            |t: &Tensor| Ok::<_, Error>(t.detach().to_vec::<f32>()?.into_iter().map(f32::to_bits).collect::<Vec<_>>());
        let (model, mut opt) = make()?;
        let mut want = vec![];
        for n in 0..3 {
            let x = batch(n)?;
            opt.zero_grad();
            let losses = (0..4).map(|i| part(&model, &x.select(0, i)?)).collect::<Result<Vec<_>>>()?;
            opt.step()?;
            let losses: Vec<&Tensor> = losses.iter().collect();
            want.push(bits(&oflow::functional::stack(&losses, 0)?.sum(())?)?);
        }
        want.push(bits(&model.weight)?);
        let (mut model, mut opt) = make()?;
        let mut loaded = Graph::<Tensor>::load(folder.path(), &mut [("model", &mut model), ("opt", &mut opt)])?;
        assert_eq!(loaded.explain(), graph.explain());
        for (n, want) in want[..3].iter().enumerate() {
            assert_eq!(&bits(&loaded.run(&[&batch(n)?])?)?, want, "step {n}");
        }
        assert_eq!(bits(&model.weight)?, want[3]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn constants_are_saved_with_the_graph() {
    let folder = tempfile::tempdir().unwrap();
    let build = |scale: f32| -> Result<(Graph, Tensor)> {
        let c = from_vec(vec![scale, 2.0 * scale], [2], Device::Cpu)?;
        let x = ones([2], Device::Cpu)?;
        Ok((Graph::build(|g| g.input("x", &x)?.mul(&c), GraphOptions::default())?, x))
    };
    let (graph, x) = build(1.5).unwrap();
    graph.save(folder.path(), &[]).unwrap();
    drop(graph);
    let mut loaded = Graph::<Tensor>::load(folder.path(), &mut []).unwrap();
    assert_eq!(loaded.run(&[&x]).unwrap().to_vec::<f32>().unwrap(), [1.5, 3.0]);
    let large = zeros([20 << 20], Device::Cpu).unwrap();
    let graph = Graph::build(|_| large.sum(()), GraphOptions::default()).unwrap();
    assert!(refused(graph.save(folder.path(), &[])).contains("more than the 67108864 that are saved with it"));
}

#[test]
fn damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = Job::new(3).unwrap();
    job.graph(&batch(3).unwrap(), GraphOptions::default()).unwrap().save(folder.path(), &job.saved()).unwrap();
    let path = folder.path().join("rank0.graph");
    let whole = std::fs::read(&path).unwrap();
    let mut rng = Random::new(9);
    let mut other = Job::new(3).unwrap();
    for n in 0..200 {
        let mut bytes = whole.clone();
        match n % 3 {
            0 => bytes.truncate(rng.below(whole.len())),
            1 => bytes[rng.below(whole.len())] ^= 1 << rng.below(8),
            _ => bytes.extend([7; 9]),
        }
        if bytes == whole {
            continue;
        }
        std::fs::write(&path, bytes).unwrap();
        let e = refused(other.load(folder.path()));
        assert!(e.contains("damaged") || e.contains("not that of a saved graph") || e.contains("format"), "{e}");
    }
}
