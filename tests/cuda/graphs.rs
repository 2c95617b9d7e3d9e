//! Graphs on `Device::Cuda`: boxings, gradients that are boxed together and halos are prebuilt, and have the bits of the same calls without a graph.

use oflow::graph::{Graph, GraphOptions};
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
