//! Graphs on `Device::Cuda`: boxings, gradients that are boxed together and halos are prebuilt, and have the bits of the same calls without a graph.
//! Kernels that follow each other are CUDA graphs.

use oflow::graph::{Graph, GraphOptions, Passes};
use oflow::nn::{Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;
use oflow::{BackwardOptions, functional};

fn bits(all: Vec<Tensor>) -> Result<Vec<Vec<u32>>> {
    all.into_iter().map(|t| Ok(t.detach().to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())).collect()
}

fn same(x: &Tensor, f: impl Fn(&Tensor) -> Result<Vec<Tensor>>) -> Result<()> {
    let mut graph = Graph::build(|g| f(&g.input("x", x)?), GraphOptions::default())?;
    let plan = graph.plan().ok_or_else(|| Error::value("the graph is not planned"))?;
    assert_eq!(plan.stepwise, 0, "{plan}\n{}", graph.explain());
    for n in 0..3 {
        let x = x.mul(1.0 + n as f64)?;
        assert_eq!(bits(graph.run(&[&x])?)?, bits(f(&x)?)?, "run {n}:\n{}", graph.explain());
    }
    Ok(())
}

#[test]
fn exchanges_have_the_bits_of_the_same_calls() {
    if !super::cuda() {
        return;
    }
    let ranks = super::gpus().min(2);
    oflow::run_ranks(ranks, |_| {
        manual_seed(5);
        let mesh = Placement::all(Device::Cuda)?;
        let leaf = |shape: &[usize]| randn(shape, (&mesh, sbp![B]))?.requires_grad_(true);
        let leaves = [leaf(&[6, 5])?, leaf(&[5])?, leaf(&[6, 3])?];
        let x = randn([4, 6], (&mesh, sbp![S(0)]))?;
        same(&x, |x| {
            let turned = x.mul(0.5)?.to_global(&sbp![S(1)])?.to_global(&sbp![B])?.to_global(&sbp![S(0)])?;
            let h = turned.matmul(&leaves[0])?.add(&leaves[1])?.tanh()?;
            let loss = h.sum(())?.add(&turned.matmul(&leaves[2])?.square()?.sum(())?)?;
            let all = [&leaves[0], &leaves[1], &leaves[2]];
            let found = functional::grad(&[&loss], &all, &BackwardOptions::default())?;
            found.into_iter().flatten().chain([turned]).map(|t| t.mul(1.0)).collect()
        })?;
        let w = leaf(&[2, 2, 3, 3])?;
        let image = randn([1, 2, 8, 5], (&mesh, sbp![S(2)]))?;
        same(&image, |x| Ok(vec![x.conv2d(&w, None, 1, 1, 1, 1)?.tanh()?]))
    })
    .unwrap();
}

/// Kernels, of which none is fused with another one.
fn chain(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    (0..5).try_fold(x.clone(), |h, n| h.matmul(w)?.tanh()?.add(0.25 * n as f64)).and_then(|h| h.softmax(1))
}

#[test]
fn kernels_that_follow_each_other_are_cuda_graphs() {
    if !super::cuda() {
        return;
    }
    oflow::run_ranks(1, |_| {
        let x = randn([4, 6], Device::Cuda)?;
        let w = randn([6, 6], Device::Cuda)?;
        let passes = Passes::default().without("fuse")?;
        let mut graph =
            Graph::build(|g| chain(&g.input("x", &x)?, &w)?.mul(2.0), GraphOptions::default().passes(passes))?;
        let told = |graph: &Graph| graph.plan().map(|p| p.cuda_graphs).unwrap_or_default();
        let first = told(&graph);
        assert!(first.graphs == 1 && first.kernels >= 16 && first.captured == 0, "{:?}", graph.plan());
        assert!(
            graph.explain().contains(&format!("{} kernels in 1 CUDA graphs", first.kernels)),
            "{}",
            graph.explain()
        );
        for n in 0..6 {
            // The same memory, other values.
            x.mul_(0.9)?;
            let have = graph.run(&[&x])?;
            let want = chain(&x, &w)?.mul(2.0)?;
            assert_eq!(bits(vec![have])?, bits(vec![want])?, "run {n}");
            assert_eq!(told(&graph).captured, usize::from(n > 0), "run {n}: {:?}", told(&graph));
        }
        // Memory elsewhere: kernel by kernel, and captured anew when it stays there.
        let other = randn([4, 6], Device::Cuda)?;
        for n in 0..4 {
            other.add_(0.1)?;
            let have = graph.run(&[&other])?;
            let want = chain(&other, &w)?.mul(2.0)?;
            assert_eq!(bits(vec![have])?, bits(vec![want])?, "run {n} elsewhere");
            assert_eq!(told(&graph).captured, usize::from(n > 0), "run {n} elsewhere");
        }
        assert_eq!(told(&graph).refused, None);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_training_step_of_cuda_graphs_has_the_bits_of_its_calls() {
    if !super::cuda() {
        return;
    }
    oflow::run_ranks(1, |_| {
        let made = || -> Result<(Linear, Linear, AdamW)> {
            manual_seed(3);
            let (a, b) = (Linear::new(6, 8, Device::Cuda)?, Linear::new(8, 3, Device::Cuda)?);
            let opt =
                AdamW::new([a.parameters(), b.parameters()].concat(), AdamWOptions { lr: 0.1, ..Default::default() });
            Ok((a, b, opt))
        };
        let step = |(a, b, opt): &mut (Linear, Linear, AdamW), x: &Tensor| -> Result<Tensor> {
            let loss = b.forward(&a.forward(x)?.gelu()?.dropout(0.2)?)?.square()?.mean(())?;
            opt.zero_grad();
            loss.backward()?;
            opt.step()?;
            Ok(loss)
        };
        let x = randn([5, 6], Device::Cuda)?;
        let (mut eager, mut captured) = (made()?, made()?);
        let passes = Passes::default().without("fuse")?;
        let options = GraphOptions::default().passes(passes);
        let mut graph = Graph::build(|g| step(&mut captured, &g.input("x", &x)?), options)?;
        let mut losses = vec![];
        for n in 0..6 {
            manual_seed(n);
            let want = step(&mut eager, &x)?;
            manual_seed(n);
            let have = graph.run(&[&x])?;
            losses.push(bits(vec![want])?);
            assert_eq!(bits(vec![have])?, losses[n as usize], "step {n}");
        }
        assert!(losses[0] != losses[5]);
        let told = graph.plan().ok_or_else(|| Error::value("the graph is not planned"))?.cuda_graphs;
        assert!(told.graphs > 0 && told.captured == told.graphs && told.refused.is_none(), "{told:?}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_value_out_of_range_in_a_cuda_graph_is_told_with_its_line() {
    if !super::cuda() {
        return;
    }
    let end = oflow::run_ranks(1, |_| {
        let table = randn([4, 3], Device::Cuda)?;
        let index = from_vec(vec![0i64, 3], [2], Device::Cuda)?;
        let line = line!() + 1;
        let pick = |t: &Tensor, index: &Tensor| t.index_select(0, index);
        let step = |table: &Tensor, index: &Tensor| pick(&table.tanh()?, index)?.matmul(&table.t()?)?.sum(());
        let mut graph =
            Graph::build(|g| step(&g.input("table", &table)?, &g.input("index", &index)?), GraphOptions::default())?;
        for _ in 0..3 {
            graph.run(&[&table, &index])?.item()?;
        }
        assert!(graph.plan().is_some_and(|p| p.cuda_graphs.captured > 0), "{:?}", graph.plan());
        index.add_(1)?;
        let e = graph.run(&[&table, &index]).and_then(|t| t.item()).unwrap_err();
        assert!(e.to_string().contains("index_select: the value 4 is out of range 0..4"), "{e}");
        assert_eq!(e.site().map(|s| (s.file.ends_with("graphs.rs"), s.line)), Some((true, line)), "{e:?}");
        Ok(())
    });
    assert!(end.is_err(), "nothing runs after a failure of the device");
}
