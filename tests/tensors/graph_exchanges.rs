//! Exchanges of planned graphs: boxings of every kind, alone and together, and halos. They are prebuilt, and give the bits of the same calls
//! without a graph; on a device whose boxings run on a thread of their own, too.

use oflow::graph::{Graph, GraphOptions};
use oflow::prelude::*;
use oflow::testing::Random;
use oflow::{BackwardOptions, functional};
use oflow_tests::{cases, compared::layout};

fn bits(all: Vec<Tensor>) -> Result<Vec<Vec<u64>>> {
    let of = |t: Tensor| Ok(t.detach().cast(DType::F64)?.to_f64_vec()?.into_iter().map(f64::to_bits).collect());
    all.into_iter().map(of).collect()
}

/// Runs a function as it is and as a graph, on three inputs, and compares. All nodes are prebuilt.
fn same(what: &str, x: &Tensor, f: impl Fn(&Tensor) -> Result<Vec<Tensor>>) -> Result<()> {
    let mut graph = Graph::build(|g| f(&g.input("x", x)?), GraphOptions::default())?;
    let plan = graph.plan().ok_or_else(|| Error::value("the graph is not planned"))?;
    assert_eq!(plan.stepwise, 0, "{what}: {plan}\n{}", graph.explain());
    for n in 0..3 {
        let x = x.mul(1.0 + n as f64)?;
        assert_eq!(bits(graph.run(&[&x])?)?, bits(f(&x)?)?, "{what}, run {n}:\n{}", graph.explain());
    }
    Ok(())
}

fn values(rng: &mut Random, shape: &[usize], device: Device) -> Result<Tensor> {
    from_vec::<f64>((0..shape.iter().product()).map(|_| (rng.below(41) as f64 - 20.0) / 16.0).collect(), shape, device)
}

/// Changes of layout one after the other, on all ranks and on some.
fn wandering(device: Device, meshes: &[Placement], seed: u64) -> Result<()> {
    let mut rng = Random::new(seed);
    let shape = [1 + rng.below(7), 1 + rng.below(5)];
    let first = &meshes[rng.below(meshes.len())];
    let whole = NdSbp::broadcast(first.axes());
    let x = distribute(&values(&mut rng, &shape, device)?, (first, whole))?;
    let x = x.to_global(layout(&mut rng, first).map(|s| if s.is_partial() { Sbp::Broadcast } else { s }))?;
    let mut way = vec![];
    for _ in 0..1 + rng.below(4) {
        let mesh = &meshes[rng.below(meshes.len())];
        way.push((mesh, layout(&mut rng, mesh), rng.below(2) == 0));
    }
    same(&format!("way {seed}, {way:?}"), &x, |x| {
        let mut y = x.mul(0.5)?;
        for (mesh, sbp, twice) in &way {
            y = y.to_global((*mesh, sbp.clone()))?;
            if *twice {
                y = y.mul(2.0)?;
            }
        }
        Ok(vec![y])
    })
}

/// Gradients of leaves in many layouts, which go there together.
fn together(device: Device, mesh: &Placement, seed: u64) -> Result<()> {
    let mut rng = Random::new(seed);
    let mut leaves = vec![];
    for _ in 0..2 + rng.below(6) {
        let shape = [4, 1 + rng.below(5)];
        let whole = distribute(&values(&mut rng, &shape, device)?, (mesh, NdSbp::broadcast(mesh.axes())))?;
        let whole = if rng.below(3) == 0 { whole.cast(DType::F32)? } else { whole };
        let sbp = layout(&mut rng, mesh).map(|s| if s.is_partial() { Sbp::Broadcast } else { s });
        leaves.push(whole.to_global(sbp)?.requires_grad_(true)?);
    }
    let x = distribute(&values(&mut rng, &[4, 4], device)?, (mesh, NdSbp::broadcast(mesh.axes())))?;
    let x = x.to_global(layout(&mut rng, mesh).map(|s| if s.is_partial() { Sbp::Split(0) } else { s }))?;
    let leaves: Vec<&Tensor> = leaves.iter().collect();
    same(&format!("gradients {seed}"), &x, |x| {
        let mut loss: Option<Tensor> = None;
        for w in &leaves {
            let part = x.matmul(&w.cast(DType::F64)?)?.tanh()?.sum(())?;
            loss = Some(loss.map_or(Ok(part.clone()), |l| l.add(&part))?);
        }
        let all: Vec<&Tensor> = loss.iter().collect();
        functional::grad(&all, &leaves, &BackwardOptions::default())?
            .into_iter()
            .flatten()
            .map(|g| g.mul(1.0))
            .collect()
    })
}

/// Writes of values that lie otherwise.
fn written(device: Device, mesh: &Placement, seed: u64) -> Result<()> {
    let mut rng = Random::new(seed);
    let lies = |rng: &mut Random| -> Result<Tensor> {
        let whole = distribute(&values(rng, &[5, 4], device)?, (mesh, NdSbp::broadcast(mesh.axes())))?;
        whole.to_global(layout(rng, mesh).map(|s| if s.is_partial() { Sbp::Broadcast } else { s }))
    };
    let (x, buffer) = (lies(&mut rng)?, lies(&mut rng)?);
    let partial = layout(&mut rng, mesh);
    same(&format!("written {seed}, {partial}"), &x, |x| {
        let _quiet = no_grad();
        buffer.copy_(&x.mul(2.0)?.to_global(&partial)?)?;
        buffer.add_(&x.to_global(&partial)?)?;
        Ok(vec![buffer.mul(0.5)?])
    })
}

/// Convolutions of images that are split along their rows.
fn halos(device: Device, mesh: &Placement) -> Result<()> {
    let mut rng = Random::new(3);
    let mut split = NdSbp::broadcast(mesh.axes());
    split[0] = Sbp::Split(2);
    let whole = NdSbp::broadcast(mesh.axes());
    let x = distribute(&values(&mut rng, &[1, 2, 12, 5], device)?, (mesh, whole.clone()))?.to_global(split)?;
    let w = distribute(&values(&mut rng, &[2, 2, 3, 3], device)?, (mesh, whole))?.requires_grad_(true)?;
    same("halos", &x, |x| {
        let y = x.conv2d(&w, None, 1, 1, 1, 1)?.tanh()?.conv2d(&w, None, 1, 1, 1, 1)?;
        let loss = y.square()?.sum(())?;
        let found = functional::grad(&[&loss], &[&w], &BackwardOptions::default())?;
        Ok(found.into_iter().flatten().chain([y]).collect())
    })
}

#[test]
fn exchanges_are_prebuilt_and_have_the_bits() {
    for device in [Device::Cpu, Device::Async] {
        oflow::run_ranks(4, |_| {
            let mesh = |ranks: &[usize], dims: &[usize]| Placement::new(device, ranks, dims);
            let meshes =
                [mesh(&[0, 1, 2, 3], &[2, 2])?, mesh(&[0, 1, 2, 3], &[4])?, mesh(&[0, 1], &[2])?, mesh(&[3, 1], &[2])?];
            for seed in 0..cases::draws(60, 2_000) as u64 {
                wandering(device, &meshes, seed)?;
                together(device, &meshes[seed as usize % 2], seed)?;
                written(device, &meshes[seed as usize % 2], seed)?;
            }
            halos(device, &meshes[0])?;
            halos(device, &meshes[1])
        })
        .unwrap();
    }
}
