//! Graphs and the memory of their tensors: other handles, views, inputs with strides, runs that fail.

use oflow::graph::{Graph, GraphOptions};
use oflow::prelude::*;

#[test]
fn an_input_may_be_the_tensor_that_the_graph_writes_or_a_view_of_it() {
    let run = |graph: bool| -> Result<Vec<f32>> {
        let w = from_vec((0..6).map(|i| i as f32).collect(), [2, 3], Device::Cpu)?;
        let step = |x: &Tensor| -> Result<Tensor> {
            let _quiet = no_grad();
            w.add_(x)?;
            w.mul_(0.5)?;
            x.add(&w)?.sum(())
        };
        let mut made = vec![];
        let other = full([2, 3], 2.0, Device::Cpu)?;
        let turned = w.t()?.reshape([6])?.reshape([3, 2])?.t()?;
        let mut captured = Graph::build(|g| step(&g.input("x", &other)?), GraphOptions::default())?;
        for x in [&w, &other, &w.narrow(0, 0, 2)?, &turned, &w] {
            let sum = if graph { captured.run(&[x])? } else { step(x)? };
            made.push(sum.item()? as f32);
            made.extend(w.to_vec::<f32>()?);
        }
        Ok(made)
    };
    assert_eq!(run(true).unwrap(), run(false).unwrap());
}

#[test]
fn a_graph_may_write_its_input_also_one_with_strides() {
    let other = zeros([2, 3], Device::Cpu).unwrap();
    let step = |x: &Tensor| {
        x.add_(1.0)?;
        x.mul(2.0)
    };
    let mut graph = Graph::build(|g| step(&g.input("x", &other)?), GraphOptions::default()).unwrap();
    for turned in [false, true] {
        let made = |graph: Option<&mut Graph>| -> Result<Vec<f32>> {
            let t = from_vec((0..6).map(|i| i as f32).collect(), [3, 2], Device::Cpu)?;
            let x = if turned { t.t()? } else { t.reshape([2, 3])? };
            let y = graph.map_or_else(|| step(&x), |g| g.run(&[&x]))?;
            Ok([t.to_vec::<f32>()?, y.to_vec()?].concat())
        };
        assert_eq!(made(Some(&mut graph)).unwrap(), made(None).unwrap(), "turned: {turned}");
    }
}

#[test]
fn a_value_that_was_kept_of_a_global_tensor_stays_what_it_was() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let w = ones([4], (&mesh, sbp![S(0)]))?;
        for n in 0..3 {
            let kept = w.detach();
            let mut graph = Graph::build(
                |_| {
                    let both = kept.mul(2.0)?.add(&w.detach())?;
                    w.add_(1.0)?;
                    both.add(&w)
                },
                GraphOptions::default(),
            )?;
            for run in 0..2 {
                let (kept, w) = (1.0 + 2.0 * n as f32, 1.0 + 2.0 * n as f32 + run as f32);
                assert_eq!(graph.run(&[])?.to_vec::<f32>()?, [2.0 * kept + w + (w + 1.0); 4]);
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_run_that_fails_leaves_the_graph_and_its_memory_usable() {
    let table = randn([5, 3], Device::Cpu).unwrap();
    let w = zeros([3], Device::Cpu).unwrap();
    let step = |at: &Tensor| -> Result<Tensor> {
        let _quiet = no_grad();
        let rows = table.mul(2.0)?.index_select(0, at)?;
        w.add_(&rows.sum(0)?)?;
        rows.exp()
    };
    let places = |all: [i64; 2]| from_vec(all.to_vec(), [2], Device::Cpu);
    let (good, bad) = (places([4, 0]).unwrap(), places([1, 7]).unwrap());
    let mut graph = Graph::build(|g| step(&g.input("at", &good)?), GraphOptions::default()).unwrap();
    let outcome = |graph: Option<&mut Graph>, at: &Tensor| {
        let made = graph.map_or_else(|| step(at), |g| g.run(&[at]));
        let told =
            made.and_then(|y| y.to_vec::<f32>()).map_err(|e| (e.kind(), e.to_string().contains("graph_memory.rs:")));
        (told, w.to_vec::<f32>().unwrap())
    };
    w.zero_().unwrap();
    let want = [&good, &bad, &good, &bad, &good].map(|at| outcome(None, at));
    assert!(want[1].0.is_err() && want[2].0.is_ok());
    w.zero_().unwrap();
    let have = [&good, &bad, &good, &bad, &good].map(|at| outcome(Some(&mut graph), at));
    assert_eq!(have, want);
    let live = || oflow::memory_stats(Device::Cpu).unwrap().live;
    let before = live();
    for _ in 0..10 {
        assert!(outcome(Some(&mut graph), &bad).0.is_err());
    }
    assert_eq!(live(), before, "what a failed run held is free");
}

/// A bf16 parameter with an f32 master, as a graph and as calls: what the program writes to the parameter between runs reaches the master.
#[test]
fn masters_follow_what_is_written_between_runs() {
    use oflow::optim::{AdamW, AdamWOptions, Optimizer};
    use oflow::state::{LoadState, SaveState, Stateful};
    use std::collections::BTreeMap;
    struct Job {
        p: Tensor,
        opt: AdamW,
    }
    fn step(p: &Tensor, opt: &mut AdamW, x: &Tensor) -> Result<Tensor> {
        let loss = x.mul(&p.cast(DType::F32)?)?.square()?.sum(())?;
        opt.zero_grad();
        loss.backward()?;
        opt.step()?;
        Ok(loss)
    }
    let compare = |target: oflow::functional::TargetSpec, x: Tensor| -> Result<()> {
        let make = || -> Result<Job> {
            let p = full([4], 1.0, target.clone().dtype(DType::BF16))?.requires_grad_(true)?;
            let opt =
                AdamW::new(vec![p.clone()], AdamWOptions { lr: 1e-3, master_weights: true, ..Default::default() });
            Ok(Job { p, opt })
        };
        let (mut eager, mut job) = (make()?, make()?);
        let mut graph = Graph::build(|g| step(&job.p, &mut job.opt, &g.input("x", &x)?), GraphOptions::default())?;
        let bits = |t: &Tensor| -> Result<Vec<u64>> {
            Ok(t.detach().cast(DType::F64)?.to_f64_vec()?.into_iter().map(f64::to_bits).collect())
        };
        let state = |job: &Job| {
            let mut to = SaveState::new();
            job.opt.save_state(&mut to)?;
            let (tensors, values) = to.into_parts();
            let kept: Vec<_> = tensors.into_iter().map(|(n, t)| Ok((n, t.detach().copy()?))).collect::<Result<_>>()?;
            Ok::<_, Error>((kept, values))
        };
        let mut early = None;
        for n in 0..12 {
            for job in [&mut eager, &mut job] {
                let _quiet = no_grad();
                match n {
                    3 => _ = job.p.copy_(&job.p.mul(0.5)?)?,
                    5 => _ = job.p.add_(0.25)?,
                    // The state of some steps ago, with its master, and the parameter as it is.
                    8 => {
                        let (kept, values): &(Vec<(String, Tensor)>, BTreeMap<String, _>) = early.as_ref().unwrap();
                        let mut from = LoadState::new(kept.iter().map(|(n, _)| n.as_str()), values);
                        job.opt.load_state(&mut from)?;
                        for (name, t) in from.into_asked().fills {
                            t.copy_(&kept.iter().find(|(n, _)| *n == name).unwrap().1)?;
                        }
                        job.p.add_(1.0)?;
                    }
                    _ => {}
                }
            }
            let want = bits(&step(&eager.p, &mut eager.opt, &x)?)?;
            assert_eq!(bits(&graph.run(&[&x])?)?, want, "loss of step {n}");
            assert_eq!(bits(&job.p)?, bits(&eager.p)?, "parameter after step {n}");
            for ((name, have), (_, want)) in state(&job)?.0.iter().zip(&state(&eager)?.0) {
                assert_eq!(bits(have)?, bits(want)?, "{name} after step {n}");
            }
            if n == 6 {
                early = Some(state(&eager)?);
            }
        }
        // A state without the master: the graph would go on with the old one.
        let (kept, values) = state(&eager)?;
        let names = kept.iter().map(|(n, _)| n.as_str()).filter(|n| !n.ends_with("master"));
        job.opt.load_state(&mut LoadState::new(names, &values))?;
        let e = graph.run(&[&x]).unwrap_err().to_string();
        assert!(e.contains("does not have the f32 masters") && e.contains("graph_memory.rs"), "{e}");
        Ok(())
    };
    compare(Device::Cpu.into_target(), arange(4, Device::Cpu).unwrap().cast(DType::F32).unwrap()).unwrap();
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        compare((&mesh, sbp![B]).into_target(), arange(4, (&mesh, sbp![S(0)]))?.cast(DType::F32)?)
    })
    .unwrap();
}
