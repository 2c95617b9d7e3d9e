//! Runs of graphs: a warm one takes nothing from the heap, and its memory is what its plan says.

use super::calls;
use oflow::graph::{Graph, GraphOptions};
use oflow::nn::{Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;

fn chain(x: &Tensor) -> Result<Tensor> {
    let _quiet = no_grad();
    (0..50).try_fold(x.add(x)?, |y, _| y.add(x)?.relu()?.mul(0.5))
}

/// Heap calls of this thread in 20 warm runs.
fn warm(graph: &mut Graph, x: &Tensor) -> Result<usize> {
    for _ in 0..5 {
        graph.run(&[x])?;
    }
    let before = calls();
    for _ in 0..20 {
        graph.run(&[x])?;
    }
    Ok(calls() - before)
}

#[test]
fn a_warm_run_allocates_nothing() {
    let x = randn([8, 8], Device::Cpu).unwrap();
    let mut graph = Graph::build(|g| chain(&g.input("x", &x)?), GraphOptions::default()).unwrap();
    assert_eq!(warm(&mut graph, &x).unwrap(), 0);
    let counts = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = randn([8, 8], (&mesh, sbp![S(0)]))?;
        let mut graph = Graph::build(|g| chain(&g.input("x", &x)?), GraphOptions::default())?;
        warm(&mut graph, &x)
    });
    assert_eq!(counts.unwrap(), [0, 0]);
}

/// Kernels of products and optimizers take room of their own, and the optimizer's numbers do. Nothing else of a step does.
#[test]
fn a_warm_training_step_allocates_less_than_half_of_what_it_does_without_a_graph() {
    let layers: Vec<Linear> = (0..3).map(|_| Linear::new(16, 16, Device::Cpu).unwrap()).collect();
    let mut opt = AdamW::new(layers.iter().flat_map(|l| l.parameters()).collect(), AdamWOptions::default());
    let x = randn([4, 16], Device::Cpu).unwrap();
    let mut step = |x: &Tensor| -> Result<Tensor> {
        let y = layers.iter().try_fold(x.clone(), |h, l| l.forward(&h)?.gelu())?;
        let loss = y.square()?.mean(())?;
        opt.zero_grad();
        loss.backward()?;
        opt.step()?;
        Ok(loss)
    };
    (0..5).try_for_each(|_| step(&x).map(drop)).unwrap();
    let before = calls();
    (0..20).try_for_each(|_| step(&x).map(drop)).unwrap();
    let eager = calls() - before;
    let mut graph = Graph::build(|g| step(&g.input("x", &x)?), GraphOptions::default()).unwrap();
    let in_graph = warm(&mut graph, &x).unwrap();
    assert!(2 * in_graph < eager, "{in_graph} calls of the heap in 20 runs, {eager} in 20 steps");
}

#[test]
fn the_planned_peak_is_the_peak_that_is_counted() {
    // A context of this thread alone: nobody else uses its allocator.
    let x = randn([64, 48], Device::Cpu).unwrap();
    let w = randn([48, 48], Device::Cpu).unwrap();
    let f = |x: &Tensor| -> Result<Tensor> {
        let _quiet = no_grad();
        let all = (0..6).map(|i| x.matmul(&w)?.mul(i as f64)?.gelu()).collect::<Result<Vec<_>>>()?;
        all.iter().skip(1).try_fold(all[0].clone(), |sum, t| sum.add(t))
    };
    let mut graph = Graph::build(|g| f(&g.input("x", &x)?), GraphOptions::default()).unwrap();
    let plan = graph.plan().unwrap();
    let [arena] = plan.arenas[..] else { panic!("{plan}") };
    assert_eq!((arena.packed, arena.bytes >= arena.packed), (arena.bound, true), "{plan}");
    let before = oflow::memory_stats(Device::Cpu).unwrap();
    let returned = graph.run(&[&x]).unwrap();
    let after = oflow::memory_stats(Device::Cpu).unwrap();
    assert!(before.peak < before.live + arena.bytes, "the peak is that of the run");
    // The result is a block of its own.
    assert_eq!(after.peak - before.live, arena.bytes + 64 * 48 * 4);
    assert_eq!(after.live - before.live, arena.bytes + 64 * 48 * 4);
    drop((returned, graph));
    assert_eq!(oflow::memory_stats(Device::Cpu).unwrap().live, before.live);
}
