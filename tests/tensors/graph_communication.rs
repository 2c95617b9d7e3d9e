//! Boxings of graphs: small ones go together, large ones go on while others compute. They have the bits of the same calls without a graph; on a
//! device whose boxings run on a thread of their own, too.

use oflow::graph::{Graph, GraphOptions, Memory, Passes, scan};
use oflow::prelude::*;
use oflow::testing::Random;
use oflow::{BackwardOptions, functional, take_comm_trace};
use oflow_tests::{cases, compared::layout, programs::round_trip};

fn bits(all: Vec<Tensor>) -> Result<Vec<Vec<u64>>> {
    let of = |t: Tensor| Ok(t.detach().cast(DType::F64)?.to_f64_vec()?.into_iter().map(f64::to_bits).collect());
    all.into_iter().map(of).collect()
}

fn values(rng: &mut Random, shape: &[usize], mesh: &Placement) -> Result<Tensor> {
    let data = (0..shape.iter().product()).map(|_| (rng.below(41) as f64 - 20.0) / 16.0).collect();
    distribute(&from_vec::<f64>(data, shape, mesh.device())?, (mesh, NdSbp::broadcast(mesh.axes())))
}

fn boxings(graph: &Graph<Vec<Tensor>>) -> usize {
    graph.program().nodes.iter().filter(|n| n.is_boxing()).count()
}

/// Norms of tensors that are split, and sums that the program asks for.
fn norms(all: &[Tensor], x: &Tensor) -> Result<Vec<Tensor>> {
    let _quiet = no_grad();
    let whole = NdSbp::broadcast(x.sbp()?.len());
    let norms = all.iter().map(|t| t.mul(x)?.square()?.sum(())?.sqrt()).collect::<Result<Vec<_>>>()?;
    let sums = all.iter().map(|t| t.add(x)?.sum(())?.to_global(&whole)).collect::<Result<Vec<_>>>()?;
    let total = norms.iter().skip(1).try_fold(norms[0].clone(), |sum, n| sum.add(n))?;
    Ok([vec![total.rdiv(1.0)?], sums].concat())
}

#[test]
fn norms_and_metrics_are_boxed_together() {
    const COUNT: usize = 7;
    for (device, ranks, dims) in [
        (Device::Cpu, 1, vec![1]),
        (Device::Cpu, 2, vec![2]),
        (Device::Cpu, 4, vec![4]),
        (Device::Async, 4, vec![2, 2]),
    ] {
        oflow::run_ranks(ranks, |_| {
            let mesh = Placement::new(device, &(0..ranks).collect::<Vec<_>>(), &dims)?;
            let (mut rng, split) = (Random::new(7), NdSbp::broadcast(dims.len()).with(0, Sbp::Split(0)));
            let mut tensor = || values(&mut rng, &[8, 6], &mesh)?.to_global(&split);
            let all = (0..COUNT).map(|_| tensor()).collect::<Result<Vec<_>>>()?;
            let x = tensor()?;
            let build = |passes: Passes| {
                Graph::build(|g| norms(&all, &g.input("x", &x)?), GraphOptions::default().passes(passes))
            };
            // Where sums store nothing, the boxings are the peak, and stay apart for its sake.
            let passes = Passes::default().without("fuse")?;
            let (mut together, apart) = (build(passes.clone())?, build(passes.without("together")?)?);
            round_trip(together.program());
            if ranks > 1 {
                // One for the norms, one for the sums that were asked for.
                assert_eq!((boxings(&together), boxings(&apart)), (2, 2 * COUNT), "{}", together.explain());
            }
            for n in 0..3 {
                let x = x.mul(1.0 + n as f64)?;
                take_comm_trace();
                let want = norms(&all, &x)?;
                let records = take_comm_trace().len();
                let have = together.run(&[&x])?;
                assert_eq!(take_comm_trace().len(), records, "a record for each tensor: {}", together.explain());
                assert_eq!(bits(have)?, bits(want)?, "{}", together.explain());
            }
            // Call by call, with its records.
            let x = x.mul(5.0)?;
            let have = boxing_policy(Policy::Log).run(|| together.run(&[&x]))?;
            assert_eq!(bits(have)?, bits(norms(&all, &x)?)?);
            if ranks > 1 {
                let e = boxing_policy(Policy::Deny).run(|| together.run(&[&x])).err().map(|e| e.to_string());
                assert!(e.as_ref().is_some_and(|e| e.contains("a value inside sqrt")), "{e:?}");
            }
            Ok(())
        })
        .unwrap();
    }
}

/// Large tensors that change their layouts among calls, with their gradients and writes.
fn wandering(seed: u64, mesh: &Placement, leaves: &[Tensor], buffer: &Tensor, x: &Tensor) -> Result<Vec<Tensor>> {
    let mut rng = Random::new(seed);
    let mut pool: Vec<Tensor> = leaves.iter().chain([x]).cloned().collect();
    for _ in 0..14 {
        let (a, b) = (pool[rng.below(pool.len())].clone(), pool[rng.below(pool.len())].clone());
        pool.push(match rng.below(8) {
            0 => a.tanh()?,
            1 => a.add(&b)?,
            2 => a.mul(&b)?.tanh()?,
            3 => a.sum(0)?.tanh()?.add(&b)?,
            4 => {
                let _quiet = no_grad();
                buffer.mul_(0.5)?.add_(&b.detach())?;
                buffer.to_global(layout(&mut rng, mesh))?.mul(1.0)?
            }
            _ => a.to_global(layout(&mut rng, mesh))?,
        });
    }
    let loss = pool.iter().skip(leaves.len() + 1).try_fold(pool[0].sum(())?, |l, t| l.add(&t.tanh()?.sum(())?))?;
    let found = functional::grad(&[&loss], &leaves.iter().collect::<Vec<_>>(), &BackwardOptions::default())?;
    found.into_iter().flatten().map(|g| g.mul(1.0)).chain([Ok(loss)]).collect()
}

#[test]
fn exchanges_that_go_on_while_others_compute_have_the_bits() {
    const ROWS: usize = 96;
    for (device, ranks, dims) in [
        (Device::Async, 2, vec![2]),
        (Device::Async, 4, vec![2, 2]),
        (Device::Cpu, 2, vec![2]),
        (Device::Cpu, 4, vec![4]),
    ] {
        let overlapped = oflow::run_ranks(ranks, |_| {
            let mesh = Placement::new(device, &(0..ranks).collect::<Vec<_>>(), &dims)?;
            let mut overlapped = 0;
            for seed in 0..cases::draws(6, 500) as u64 {
                let mut rng = Random::new(1000 + seed);
                let mut tensor = || -> Result<Tensor> {
                    let whole = values(&mut rng, &[ROWS, ROWS], &mesh)?;
                    let sbp = layout(&mut rng, &mesh).map(|s| if s.is_partial() { Sbp::Split(0) } else { s });
                    whole.to_global(sbp)
                };
                let leaves = [tensor()?.requires_grad_(true)?, tensor()?.requires_grad_(true)?];
                let (x, before) = (tensor()?, tensor()?);
                let buffer = before.copy()?;
                let f = |x: &Tensor| wandering(seed, &mesh, &leaves, &buffer, x);
                for memory in [Memory::Budget(1 << 30), Memory::Cheap] {
                    let options = GraphOptions::default().memory(memory);
                    let mut graph = Graph::build(|g| f(&g.input("x", &x)?), options)?;
                    round_trip(graph.program());
                    overlapped += graph.program().nodes.iter().filter(|n| n.overlapped).count();
                    let mut found = [vec![], vec![]];
                    for (n, found) in found.iter_mut().enumerate() {
                        {
                            let _quiet = no_grad();
                            buffer.copy_(&before)?;
                        }
                        for k in 0..3 {
                            let x = x.mul(1.0 + k as f64)?;
                            found.push(bits(if n == 0 { f(&x)? } else { graph.run(&[&x])? })?);
                        }
                    }
                    let [want, have] = found;
                    assert_eq!(have, want, "program {seed}:\n{}", graph.explain());
                }
            }
            Ok(overlapped)
        })
        .unwrap();
        assert!(overlapped[0] > 10, "{device} {dims:?}: {overlapped:?}");
    }
}

/// In each iteration a sum over ranks goes on beside a product, and so does the gathering of what is carried to the next one.
fn repeated(x: &Tensor, w: &Tensor, v: &Tensor) -> Result<Vec<Tensor>> {
    let _quiet = no_grad();
    let whole = NdSbp::broadcast(v.sbp()?.len());
    let (last, all) = scan(x.shape()[0], v.mul(0.5)?, |i, carried| {
        let sum = i.of(x)?.matmul(w)?.to_global(&whole)?;
        let beside = carried.matmul(v)?.tanh()?;
        let next = sum.add(&beside)?.to_global(whole.with(0, Sbp::Split(0)))?.tanh()?.to_global(&whole)?;
        Ok((next, beside.matmul(v)?))
    })?;
    Ok(vec![last.mul(2.0)?, all])
}

#[test]
fn exchanges_go_on_in_sections() {
    const ROWS: usize = 96;
    for (device, ranks, dims) in
        [(Device::Async, 2, vec![2]), (Device::Async, 4, vec![2, 2]), (Device::Cpu, 2, vec![2])]
    {
        oflow::run_ranks(ranks, |_| {
            let mesh = Placement::new(device, &(0..ranks).collect::<Vec<_>>(), &dims)?;
            let (mut rng, whole) = (Random::new(3), NdSbp::broadcast(dims.len()));
            let mut tensor = |shape: &[usize], split: usize| {
                values(&mut rng, shape, &mesh)?.mul(0.1)?.to_global(whole.with(0, Sbp::Split(split)))
            };
            let (x, w) = (tensor(&[5, ROWS, ROWS], 2)?, tensor(&[ROWS, ROWS], 0)?);
            let v = tensor(&[ROWS, ROWS], 0)?.to_global(&whole)?;
            let options = GraphOptions::default().memory(Memory::Budget(1 << 30));
            let mut graph = Graph::build(|g| repeated(&g.input("x", &x)?, &w, &v), options)?;
            round_trip(graph.program());
            let sections = graph.program().sections();
            let overlapped = sections.iter().flat_map(|s| &s.body.nodes).filter(|n| n.overlapped).count();
            assert!(overlapped > 1, "{}", graph.explain());
            for n in 0..3 {
                let x = x.mul(1.0 + n as f64)?;
                assert_eq!(bits(graph.run(&[&x])?)?, bits(repeated(&x, &w, &v)?)?, "run {n}:\n{}", graph.explain());
            }
            Ok(())
        })
        .unwrap();
    }
}
