//! Gradients of graphs: the bits of eager backward, for random programs and layers; what has no gradient is an error.

use oflow::BackwardOptions;
use oflow::functional::grad;
use oflow::graph::{Graph, GraphBuilder, GraphOptions, Passes};
use oflow::nn::{Block, BlockOptions, Module};
use oflow::prelude::*;
use oflow::program::ValueId;
use oflow::testing::Random;
use oflow_tests::{cases, programs::round_trip};

fn bits(t: &Tensor) -> Result<Vec<u64>> {
    Ok(t.detach().cast(DType::F64)?.to_f64_vec()?.into_iter().map(f64::to_bits).collect())
}

fn made(mesh: Option<&Placement>, rng: &mut Random, shape: &[usize]) -> Result<Tensor> {
    let data = (0..shape.iter().product()).map(|_| (rng.below(41) as f64 - 20.0) / 16.0).collect();
    let t = from_vec::<f64>(data, shape, Device::Cpu)?;
    let Some(mesh) = mesh else { return Ok(t) };
    let sbp: NdSbp = (0..mesh.axes()).map(|_| [Sbp::Broadcast, Sbp::Split(0), Sbp::Split(1)][rng.below(3)]).collect();
    distribute(&t, (mesh, sbp))
}

/// A number that calls make of the tensors, which are [4, 6], and a value on the way to it.
fn program(seed: u64, leaves: &[Tensor]) -> Result<(Tensor, Tensor)> {
    let mut rng = Random::new(seed);
    let mut pool = leaves.to_vec();
    for _ in 0..3 + rng.below(9) {
        let (x, y) = (&pool[rng.below(pool.len())], &pool[rng.below(pool.len())]);
        let next = match rng.below(13) {
            0 => x.add(y)?,
            1 => x.mul(y)?,
            2 => x.sub(&y.sum_keepdim(1)?)?,
            3 => x.matmul(&y.transpose(0, 1)?)?.matmul(x)?.mul(0.1)?,
            4 => x.tanh()?,
            5 => x.softmax(1)?,
            6 => x.reshape([6, 4])?.sin()?.reshape([4, 6])?,
            7 => cat(&[&x.narrow(1, 3, 3)?, &y.narrow(1, 0, 3)?], 1)?,
            8 => x.dropout(0.3)?,
            9 => x.cast(DType::F32)?.exp()?.cast(DType::F64)?.mul(0.2)?,
            10 => y.mul(&x.mean(())?)?,
            11 => match x.global() {
                // The layout that is asked for is boxed to.
                Some(g) => with_sbp(NdSbp::broadcast(g.placement.axes()), || x.square())?,
                None => x.square()?,
            },
            _ => match y.global() {
                Some(g) => y.to_global(NdSbp::broadcast(g.placement.axes()))?.sigmoid()?,
                None => y.sigmoid()?,
            },
        };
        pool.push(next);
    }
    let inside = pool[leaves.len()].clone();
    let mut loss = inside.sum(())?;
    for t in &pool[leaves.len() + 1..] {
        loss = loss.add(&t.tanh()?.sum(())?)?;
    }
    Ok((loss, inside))
}

/// Gradients of a program with respect to an input, a tensor that it uses and a value that it makes, eagerly and as the gradient of its graph.
fn compare(mesh: Option<&Placement>, seed: u64) -> Result<usize> {
    let mut rng = Random::new(seed);
    let x = made(mesh, &mut rng, &[4, 6])?;
    let leaves = [x.copy()?.requires_grad_(true)?, made(mesh, &mut rng, &[4, 6])?.requires_grad_(true)?];
    manual_seed(seed);
    let (loss, inside) = program(seed, &leaves)?;
    let after = rand([2], Device::Cpu)?.to_vec::<f32>()?;
    let wanted = [&leaves[0], &leaves[1], &inside];
    let found = grad(&[&loss], wanted, &BackwardOptions::default())?;
    let mut values: Vec<(String, Tensor)> = vec![];
    let graph = Graph::build(
        |g| {
            // A leaf in the closure too, so that the layouts are chosen for calls with gradients.
            let x = g.input("x", &x)?.to_leaf(true)?;
            let (loss, inside) = program(seed, &[x.clone(), leaves[1].clone()])?;
            for (t, gradient) in [&x, &leaves[1], &inside].into_iter().zip(&found) {
                if let Some(gradient) = gradient {
                    let name = format!("value {}", values.len());
                    g.name(&name, t)?;
                    values.push((name, gradient.clone()));
                }
            }
            g.name("loss", &loss)?;
            Ok(loss)
        },
        // As it was captured: where calls are merged, contributions to a gradient are added in another order.
        GraphOptions::default().passes(Passes::none()),
    )?;
    let wanted: Vec<ValueId> = values.iter().map(|(name, _)| graph.value(name).expect("named")).collect();
    let mut gradient = graph.gradient(&[graph.value("loss").expect("named")], &wanted)?;
    round_trip(gradient.program());
    manual_seed(seed);
    let have = gradient.run(&[&x])?;
    assert_eq!(rand([2], Device::Cpu)?.to_vec::<f32>()?, after, "{}", gradient.explain());
    for (t, (v, want)) in have.iter().zip(&values) {
        assert_eq!(
            bits(t)?,
            bits(want)?,
            "program {seed}, gradient of {v}\n{}\n{}",
            graph.explain(),
            gradient.explain()
        );
    }
    Ok(have.len())
}

#[test]
fn random_programs_have_the_gradients_of_eager_backward() {
    let all = |mesh: Option<&Placement>, programs: usize| -> Result<usize> {
        (0..programs as u64).map(|seed| compare(mesh, seed)).sum()
    };
    assert!(all(None, cases::draws(150, 5_000)).unwrap() > 300);
    for (ranks, programs) in [(2, cases::draws(100, 5_000)), (3, cases::draws(30, 2_000))] {
        let found = oflow::run_ranks(ranks, |_| all(Some(&Placement::all(Device::Cpu)?), programs)).unwrap();
        assert!(found[0] > 2 * programs, "{found:?}");
    }
    oflow::run_ranks(4, |_| all(Some(&Placement::new(Device::Cpu, &[0, 1, 2, 3], &[2, 2])?), cases::draws(30, 2_000)))
        .unwrap();
}

#[test]
fn a_block_has_the_gradients_of_eager_backward() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 1), ("tp", 2)])?;
        let mut block =
            Block::new(&BlockOptions { width: 16, heads: 4, hidden: 32, dropout: 0.3 }, (&mesh, sbp![B, B]))?;
        let (column, row) = (sbp![B, S(0)], sbp![B, S(1)]);
        let rules = [
            ("attn.o.bias", sbp![B, B]),
            ("attn.o.weight", row.clone()),
            ("attn.*", column.clone()),
            ("mlp.fc.*", column),
            ("mlp.pr.weight", row),
        ];
        block.to_global(&mesh, &rules)?;
        let x = randn([5, 6, 16], (&mesh, sbp![S(0), B]))?;
        manual_seed(7);
        let loss = block.forward(&x)?.square()?.sum(())?;
        let parameters = block.parameters();
        let want = grad(&[&loss], parameters.iter().collect::<Vec<_>>(), &BackwardOptions::default())?;
        let graph = Graph::build(
            |g: &GraphBuilder<'_>| {
                let loss = block.forward(&g.input("x", &x)?)?.square()?.sum(())?;
                parameters.iter().enumerate().try_for_each(|(i, p)| g.name(&format!("parameter {i}"), p))?;
                Ok(loss)
            },
            GraphOptions::default().passes(Passes::none()),
        )?;
        let named = |i: usize| graph.value(&format!("parameter {i}")).expect("named");
        let values: Vec<ValueId> = (0..parameters.len()).map(named).collect();
        let mut gradient = graph.gradient(&graph.program().outputs, &values)?;
        for n in 0..2 {
            manual_seed(7);
            for (have, want) in gradient.run(&[&x])?.iter().zip(&want) {
                assert_eq!(bits(have)?, bits(want.as_ref().expect("a gradient"))?, "run {n}\n{}", gradient.explain());
            }
        }
        assert!(parameters.iter().all(|p| p.grad().is_none()));
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_gradient_of_a_gradient() {
    let x = from_vec(vec![0.5f64, -1.0], [2], Device::Cpu).unwrap();
    let cubes = Graph::build(|g| g.input("x", &x)?.pow(3.0)?.sum(()), GraphOptions::default()).unwrap();
    let value = |g: &oflow::program::Program| g.input("x").unwrap();
    let first = cubes.gradient(&cubes.program().outputs, &[value(cubes.program())]).unwrap();
    // One number of the gradient, by a graph of the same calls with a sum behind.
    let again = Graph::build(
        |g| {
            let x = g.input("x", &x)?.to_leaf(true)?;
            let y = x.pow(3.0)?.sum(())?;
            let o = BackwardOptions { create_graph: true, ..Default::default() };
            grad(&[&y], [&x], &o)?.remove(0).expect("a gradient").sum(())
        },
        GraphOptions::default(),
    )
    .unwrap();
    let mut second = again.gradient(&again.program().outputs, &[value(again.program())]).unwrap();
    let (mut first, t) = (first, from_vec(vec![2.0f64, 3.0], [2], Device::Cpu).unwrap());
    assert_eq!(first.run(&[&t]).unwrap()[0].to_vec::<f64>().unwrap(), [12.0, 27.0]);
    assert_eq!(second.run(&[&t]).unwrap()[0].to_vec::<f64>().unwrap(), [12.0, 18.0]);
}

#[test]
fn what_has_no_gradient_is_an_error() {
    let x = ones([2, 3], Device::Cpu).unwrap();
    let buffer = zeros([2, 3], Device::Cpu).unwrap();
    let graph = Graph::build(
        |g| {
            let x = g.input("x", &x)?;
            let y = x.exp()?;
            g.name("other", &y.mul(2.0)?)?;
            assert!(g.name("other", &x).is_err_and(|e| e.to_string().contains("a value \"other\" already")));
            let written = x.sin()?;
            written.add_(1.0)?;
            buffer.copy_(&y)?;
            Ok((y.sum(())?, y, x.argmax(1)?, written.sum(())?))
        },
        GraphOptions::default(),
    )
    .unwrap();
    let (outs, x) = (graph.program().outputs.clone(), graph.program().input("x").unwrap());
    let other = graph.value("other").unwrap();
    let refused = |outputs: &[ValueId], inputs: &[ValueId]| -> String {
        let e = graph.gradient(outputs, inputs).expect_err("an error").to_string();
        assert!(e.contains("graph_gradients.rs:"), "{e}");
        e
    };
    for (outputs, inputs, why) in [
        (&outs[..1], &[ValueId(99)][..], "the graph has no value %99"),
        (&[ValueId(99)], &[x], "the graph has no value %99"),
        (&outs[1..2], &[x], "not a single real number"),
        (&outs[2..3], &[x], "i64[2] on cpu, has no gradient"),
        (&outs[..1], &outs[2..3], "i64[2] on cpu, has no gradient"),
        (&outs[..1], &[other], "does not lead to the outputs"),
        (&outs[..1], &[x, other], "does not lead to the outputs"),
        (&outs[3..], &[x], "writes in place"),
    ] {
        let e = refused(outputs, inputs);
        assert!(e.contains(why), "{why}: {e}");
    }
    // The write of the buffer does not lead to the output.
    let mut gradient = graph.gradient(&outs[..1], &[x]).unwrap();
    assert_eq!(gradient.run(&[&zeros([2, 3], Device::Cpu).unwrap()]).unwrap()[0].to_vec::<f32>().unwrap(), [1.0; 6]);
    assert_eq!(buffer.to_vec::<f32>().unwrap(), [0.0; 6]);
}
