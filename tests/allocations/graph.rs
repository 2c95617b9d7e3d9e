//! Runs of graphs: a warm one takes nothing from the heap, and its memory is what its plan says.

use super::calls;
use oflow::graph::{Graph, GraphOptions, Memory, Passes};
use oflow::nn::{Block, BlockOptions, Dropout, Linear, Module};
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

/// Weights on two ranks, and a step that trains them with an input that is split: their gradients are partial, and are boxed together.
fn data_parallel(x: &Tensor, weights: &[Tensor]) -> Result<Tensor> {
    let mut loss: Option<Tensor> = None;
    for w in weights {
        let part = x.mul(w)?.tanh()?.sum(())?;
        loss = Some(loss.map_or(Ok(part.clone()), |l| l.add(&part))?);
        w.set_grad(None)?;
    }
    let loss = loss.ok_or_else(|| Error::value("no weights"))?;
    loss.backward()?;
    let _quiet = no_grad();
    for w in weights {
        w.sub_(&w.grad().ok_or_else(|| Error::value("no gradient"))?.mul(0.05)?)?;
    }
    Ok(loss)
}

fn weights(mesh: &Placement, count: usize, width: usize) -> Result<Vec<Tensor>> {
    (0..count).map(|_| randn([width], (mesh, sbp![B]))?.requires_grad_(true)).collect()
}

#[test]
fn the_exchanges_of_a_warm_run_allocate_nothing() {
    let counts = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let weights = weights(&mesh, 20, 8)?;
        let x = randn([4, 8], (&mesh, sbp![S(0)]))?;
        let step = |x: &Tensor| {
            let turned = x.to_global(&sbp![S(1)])?.to_global(&sbp![B])?.to_global(&sbp![S(0)])?;
            data_parallel(&turned, &weights)
        };
        let mut graph = Graph::build(|g| step(&g.input("x", &x)?), GraphOptions::default())?;
        let plan = graph.plan().ok_or_else(|| Error::value("the graph is not planned"))?;
        assert_eq!(plan.stepwise, 0, "{plan}");
        assert!(graph.explain().contains("box_many"), "{}", graph.explain());
        warm(&mut graph, &x)
    });
    assert_eq!(counts.unwrap(), [0, 0]);
}

/// When gradients are boxed together, no more than two tensors of each are there: as it was and packed, packed and received, or received and
/// boxed.
#[test]
fn a_data_parallel_step_holds_its_gradients_at_most_twice() {
    const COUNT: usize = 10;
    const WIDTH: usize = 4096;
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let weights = weights(&mesh, COUNT, WIDTH)?;
        let x = randn([2, WIDTH], (&mesh, sbp![S(0)]))?;
        let mut graph = Graph::build(|g| data_parallel(&g.input("x", &x)?, &weights), GraphOptions::default())?;
        let plan = graph.plan().ok_or_else(|| Error::value("the graph is not planned"))?;
        let (gradients, one) = (COUNT * WIDTH * 4, WIDTH * 4);
        assert!(graph.explain().contains("box_many"), "{}", graph.explain());
        assert!(plan.peak() - plan.outside <= 2 * gradients + one, "{plan}\n{}", graph.explain());
        let before = oflow::memory_stats(Device::Cpu)?.live;
        graph.run(&[&x])?;
        assert_eq!(oflow::memory_stats(Device::Cpu)?.peak - before, plan.peak() - plan.outside);
        Ok(())
    })
    .unwrap();
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
    let [arena] = &plan.arenas[..] else { panic!("{plan}") };
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

/// While an exchange goes on, what it reads, makes and takes for itself is there.
#[test]
fn the_planned_peak_with_an_exchange_that_goes_on_is_the_peak_that_is_counted() {
    const WIDTH: usize = 160;
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let make = |sbp: NdSbp| randn([WIDTH, WIDTH], (&mesh, sbp));
        let (x, w, a) = (make(sbp![S(1)])?, make(sbp![S(0)])?, make(sbp![B])?);
        let f = |x: &Tensor| -> Result<Tensor> {
            let _quiet = no_grad();
            let sum = x.matmul(&w)?.to_global(&sbp![B])?.relu()?;
            sum.add(&a.matmul(&a)?)
        };
        let build = |memory: Memory| Graph::build(|g| f(&g.input("x", &x)?), GraphOptions::default().memory(memory));
        let mut graph = build(Memory::Budget(1 << 30))?;
        let plan = graph.plan().ok_or_else(|| Error::value("the graph is not planned"))?;
        let overlapped = |g: &Graph| g.program().nodes.iter().filter(|n| n.overlapped).count();
        assert_eq!(overlapped(&graph), 1, "{}", graph.explain());
        let before = oflow::memory_stats(Device::Cpu)?.live;
        let made = graph.run(&[&x])?;
        assert_eq!(oflow::memory_stats(Device::Cpu)?.peak - before, plan.peak() - plan.outside, "{plan}");
        assert_eq!(made.to_global(&sbp![B])?.to_f64_vec()?, f(&x)?.to_global(&sbp![B])?.to_f64_vec()?);
        // Without memory for it nothing goes on, and one product less is in use at one time.
        let apart = build(Memory::Cheap)?;
        let peak = apart.plan().map_or(0, |plan| plan.peak());
        assert_eq!(overlapped(&apart), 0, "{}", apart.explain());
        assert!(plan.peak() >= peak + WIDTH * WIDTH * 4, "{plan}, {peak} without");
        Ok(())
    })
    .unwrap();
}

/// A section that slices, carries, draws, writes and collects.
fn repeated(n: usize, mesh: Option<&Placement>) -> Result<(Graph, Tensor)> {
    let make = |shape: &[usize], sbp: NdSbp| match mesh {
        Some(mesh) => randn(shape, (mesh, sbp)),
        None => randn(shape, Device::Cpu),
    };
    let (x, total) = (make(&[n, 8, 8], sbp![S(1)])?, make(&[8, 8], sbp![S(0)])?);
    let graph = Graph::build(
        |g| {
            let x = g.input("x", &x)?;
            let _quiet = no_grad();
            let (last, all) = g.scan(n, total.mul(0.5)?, |i, mean| {
                let y = i.of(&x)?.add(&mean)?.dropout(0.5)?;
                total.mul_(0.5)?.add_(&y)?;
                Ok((mean.mul(0.9)?.add(&y.tanh()?)?, y))
            })?;
            last.add(&all.sum(0)?)
        },
        GraphOptions::default(),
    )?;
    Ok((graph, x))
}

#[test]
fn iterations_of_a_warm_run_allocate_nothing() {
    let counts = |n: usize| {
        oflow::run_ranks(2, |_| {
            let (mut graph, x) = repeated(n, Some(&Placement::all(Device::Cpu)?))?;
            warm(&mut graph, &x)
        })
    };
    let once = counts(1).unwrap();
    for n in [1, 3, 40] {
        let (mut graph, x) = repeated(n, None).unwrap();
        assert_eq!(warm(&mut graph, &x).unwrap(), 0, "{n} iterations");
        assert_eq!(counts(n).unwrap(), once, "{n} iterations");
    }
}

#[test]
fn the_planned_peak_of_a_loop_is_the_peak_that_is_counted() {
    let x = randn([6, 64, 48], Device::Cpu).unwrap();
    let w = randn([48, 48], Device::Cpu).unwrap();
    let mut graph = Graph::build(
        |g| {
            let x = g.input("x", &x)?;
            let _quiet = no_grad();
            let begin = zeros([64, 48], Device::Cpu)?;
            let (last, all) = g.scan(6, begin, |i, sum| {
                let y = i.of(&x)?.matmul(&w)?.gelu()?;
                Ok((sum.add(&y)?, y.sum(1)?))
            })?;
            Ok((last, all))
        },
        GraphOptions::default(),
    )
    .unwrap();
    let plan = graph.plan().unwrap();
    let before = oflow::memory_stats(Device::Cpu).unwrap();
    let returned = graph.run(&[&x]).unwrap();
    let after = oflow::memory_stats(Device::Cpu).unwrap();
    // The sum and the stacked rows are blocks of their own. The sum is made in the memory of the sum before, and copied nowhere.
    let arenas: usize = plan.arenas.iter().map(|a| a.bytes).sum();
    assert_eq!(after.peak - before.live, arenas + 64 * 48 * 4 + 6 * 64 * 4, "{plan}");
    assert_eq!(plan.allocated, 64 * 48 * 4 + 6 * 64 * 4);
    assert_eq!(
        plan.kernels,
        7,
        "zeros, their copy, product, activation, sum, sum of rows, its copy: {}",
        graph.explain()
    );
    drop((returned, graph));
}

/// A training step of a model on `[32, 16, 32]` inputs, its parameters on the ranks of the context.
type Step = Box<dyn FnMut(&Tensor) -> Result<Tensor>>;

/// A model by its name.
type Model = (&'static str, fn(&Placement) -> Result<Step>);

fn models() -> [Model; 4] {
    fn trained<F>(parameters: Vec<Tensor>, forward: F) -> Step
    where
        F: Fn(&Tensor) -> Result<Tensor> + 'static,
    {
        let mut opt = AdamW::new(parameters, AdamWOptions::default());
        Box::new(move |x| {
            let loss = forward(x)?.square()?.mean(())?;
            opt.zero_grad();
            loss.backward()?;
            opt.step()?;
            Ok(loss)
        })
    }
    [
        ("chain", |mesh| {
            let layers = (0..12).map(|_| Linear::new(32, 32, (mesh, sbp![B]))).collect::<Result<Vec<_>>>()?;
            let parameters = layers.iter().flat_map(|l| l.parameters()).collect();
            Ok(trained(parameters, move |x| layers.iter().try_fold(x.clone(), |h, l| l.forward(&h)?.gelu())))
        }),
        ("wide and narrow", |mesh| {
            let of = |a, b| Linear::new(a, b, (mesh, sbp![B]));
            let layers = [of(32, 128)?, of(128, 8)?, of(8, 256)?, of(256, 32)?];
            let parameters = layers.iter().flat_map(|l| l.parameters()).collect();
            Ok(trained(parameters, move |x| {
                layers.iter().try_fold(x.clone(), |h, l| l.forward(&h)?.tanh()?.mul(0.5)?.silu())
            }))
        }),
        ("dropout and skips", |mesh| {
            let layers = (0..6).map(|_| Linear::new(32, 32, (mesh, sbp![B]))).collect::<Result<Vec<_>>>()?;
            let parameters = layers.iter().flat_map(|l| l.parameters()).collect();
            let drop = Dropout::new(0.2);
            Ok(trained(parameters, move |x| {
                layers.iter().try_fold(x.clone(), |h, l| h.add(&drop.forward(&l.forward(&h)?.gelu()?)?))
            }))
        }),
        ("transformer", |mesh| {
            let options = BlockOptions { width: 32, heads: 4, hidden: 128, dropout: 0.1 };
            let blocks = (0..3).map(|_| Block::new(&options, (mesh, sbp![B]))).collect::<Result<Vec<_>>>()?;
            let parameters = blocks.iter().flat_map(|b| b.parameters()).collect();
            Ok(trained(parameters, move |x| blocks.iter().try_fold(x.clone(), |h, b| b.forward(&h))))
        }),
    ]
}

/// What a graph with these passes plans, counts and computes on each of `ranks` ranks: nodes, planned peak, counted peak, losses.
type Outcome = (usize, usize, usize, Vec<f64>);

fn outcome(ranks: usize, model: fn(&Placement) -> Result<Step>, passes: &Passes) -> Result<Vec<Outcome>> {
    oflow::run_ranks(ranks, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        manual_seed(5);
        let mut step = model(&mesh)?;
        let x = randn([32, 16, 32], (&mesh, sbp![B]))?.to_global(&sbp![S(0)])?;
        let mut graph = Graph::build(|g| step(&g.input("x", &x)?), GraphOptions::default().passes(passes.clone()))?;
        let plan = graph.plan().ok_or_else(|| Error::value("the graph is not planned"))?;
        for arena in &plan.arenas {
            assert!(arena.packed as f64 <= 1.01 * arena.bound as f64, "{plan}");
        }
        let planned = plan.peak();
        let loss = graph.run(&[&x])?;
        // Reading the loss takes memory beside.
        let counted = oflow::memory_stats(Device::Cpu)?.peak;
        let losses = vec![loss.item()?, graph.run(&[&x])?.item()?];
        Ok((graph.program().nodes.len(), planned, counted, losses))
    })
}

#[test]
fn a_budget_is_kept_and_results_stay() {
    for (name, model) in models() {
        for ranks in [1, 2] {
            let run = |passes: Passes| outcome(ranks, model, &passes).map(|all| all[0].clone());
            let all = run(Passes::default().without("recompute").unwrap()).unwrap();
            let least = run(Passes::default().memory(Memory::Least)).unwrap();
            assert!(least.1 < all.1, "{name} on {ranks}: {} bytes, {} at least", all.1, least.1);
            let mut nodes = 0;
            for part in (0..=20).rev() {
                let budget = least.1 + (all.1 - least.1) * part / 20;
                let found = run(Passes::default().memory(Memory::Budget(budget)));
                let found = found.unwrap_or_else(|e| panic!("{name} on {ranks} with {budget} of {}: {e}", all.1));
                assert!(found.1 <= budget, "{name} on {ranks}: {found:?}, the budget is {budget}");
                assert_eq!(found.1, found.2, "{name} on {ranks} with {budget}: planned and counted");
                assert!(found.0 >= nodes, "{name} on {ranks} with {budget}: {} calls after {nodes}", found.0);
                assert_eq!(found.3, all.3, "{name} on {ranks} with {budget}");
                nodes = found.0;
            }
            let e = run(Passes::default().memory(Memory::Budget(least.1 / 2))).unwrap_err().to_string();
            assert!(e.contains("cannot keep to") && e.contains("tensors from outside"), "{e}");
        }
    }
}
