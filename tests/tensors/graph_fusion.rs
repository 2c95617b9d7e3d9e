//! Random elementwise programs as graphs, many of them with reductions at their ends: every dtype, broadcasts, tensors without dims or elements,
//! views, in all layouts. A graph has the bits of the calls, fused or not, also call by call, and its program can be written and read.

use oflow::graph::{Graph, GraphBuilder, GraphOptions, Passes};
use oflow::prelude::*;
use oflow::testing::Random;
use oflow_tests::{cases, programs::round_trip};

const DTYPES: [DType; 8] =
    [DType::F32, DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::U8, DType::Bool];
const SHAPES: [&[usize]; 7] = [&[4, 6], &[3, 1, 5], &[], &[0, 3], &[1], &[2, 300], &[700]];

fn one_of<'a, T>(rng: &mut Random, all: &'a [T]) -> &'a T {
    &all[rng.below(all.len())]
}

/// A tensor of a shape that broadcasts to `shape`, sometimes a view with other strides, in a random layout.
fn operand(rng: &mut Random, shape: &[usize], mesh: Option<&Placement>) -> Result<Tensor> {
    let skipped = if rng.below(4) == 0 { rng.below(shape.len() + 1) } else { 0 };
    let dims: Vec<usize> = shape[skipped..].iter().map(|n| if *n > 0 && rng.below(5) == 0 { 1 } else { *n }).collect();
    let turned = dims.len() == 2 && rng.below(4) == 0;
    let made: Vec<usize> = if turned { dims.iter().rev().copied().collect() } else { dims };
    let data = (0..made.iter().product()).map(|_| (rng.below(81) as f64 - 40.0) / 16.0).collect();
    let t = from_vec::<f64>(data, made.as_slice(), Device::Cpu)?.cast(*one_of(rng, &DTYPES))?;
    let t = match mesh {
        None => t,
        Some(mesh) => {
            let mut sbp = || match rng.below(made.len() + 1) {
                0 => Sbp::Broadcast,
                d => Sbp::Split(d - 1),
            };
            let sbp: NdSbp = (0..mesh.axes()).map(|_| sbp()).collect();
            distribute(&t, (mesh, sbp))?
        }
    };
    if turned { t.t() } else { Ok(t) }
}

/// One call on values of the pool, which all broadcast to one shape.
fn step(rng: &mut Random, pool: &[Tensor]) -> Result<Tensor> {
    // Mostly what was made last.
    let mut pick = || match rng.below(3) {
        0 => pool[rng.below(pool.len())].clone(),
        _ => pool[pool.len() - 1 - rng.below(pool.len().min(2))].clone(),
    };
    let (x, y) = (pick(), pick());
    let is_number = x.dtype() != DType::Bool && y.dtype() != DType::Bool;
    let is_float = x.dtype().is_float();
    match rng.below(16) {
        0 | 1 if is_number => x.add(&y),
        2 if is_number => x.sub(&y),
        3 | 4 if is_number => x.mul(&y),
        5 if is_number => x.maximum(&y),
        6 if is_float => match rng.below(6) {
            0 => x.tanh(),
            1 => x.gelu(),
            2 => x.exp(),
            3 => x.silu(),
            4 => x.abs()?.sqrt(),
            _ => x.sigmoid(),
        },
        7 => x.gt(&y),
        8 => x.eq(&y),
        9 => where_(&x.ne(&y)?, &x, &y),
        10 | 11 => x.cast(*one_of(rng, &DTYPES)),
        12 if is_number => x.mul(*one_of(rng, &[0.5, 3.0, -0.0, 1.25])),
        13 if is_number => x.add(*one_of(rng, &[2.0, -1.0, 0.1])),
        14 if x.dtype() == DType::Bool && y.dtype() == DType::Bool => x.logical_xor(&y)?.logical_not(),
        15 if is_float => x.relu()?.neg(),
        _ => x.clamp(-1.5, 2),
    }
}

/// A reduction of what nothing else may read: mostly over the last dims, in any order.
fn reduced(rng: &mut Random, x: &Tensor) -> Result<Tensor> {
    let rank = x.shape().len();
    let mut dims: Vec<i64> = match rng.below(4) {
        0 if rank > 0 => vec![rng.below(rank) as i64],
        _ => (rng.below(rank + 1)..rank)
            .map(|d| if rng.below(2) == 0 { d as i64 } else { d as i64 - rank as i64 })
            .collect(),
    };
    if rng.below(3) == 0 {
        dims.reverse();
    }
    let all = dims.is_empty();
    let empty =
        |d: usize| x.shape()[d] == 0 && (all || dims.contains(&(d as i64)) || dims.contains(&(d as i64 - rank as i64)));
    let has_none = (0..rank).any(empty);
    match rng.below(6) {
        0 if !has_none => x.amax(dims),
        1 if !has_none => x.amin_keepdim(dims),
        2 if x.dtype().is_float() => x.mean(dims),
        3 if x.dtype().is_float() => x.mean_keepdim(dims),
        4 => x.sum_keepdim(dims),
        _ => x.sum(dims),
    }
}

fn program(seed: u64, given: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut rng = Random::new(seed ^ 0x5eed);
    let mut pool = given.to_vec();
    for _ in 0..3 + rng.below(20) {
        let made = step(&mut rng, &pool)?;
        pool.push(made);
    }
    let last = pool.len() - 1;
    let mut outs = match rng.below(3) {
        0 => vec![pool[last].clone(), pool[last].sum(())?],
        1 => vec![reduced(&mut rng, &pool[last])?],
        _ => vec![reduced(&mut rng, &pool[last])?.cast(DType::F64)?, reduced(&mut rng, &pool[last - 1])?],
    };
    if rng.below(4) == 0 {
        outs.push(pool[given.len() + rng.below(last + 1 - given.len())].clone());
    }
    Ok(outs)
}

fn bits(t: &Tensor) -> Result<Vec<u64>> {
    let exact = if t.dtype() == DType::I64 { t.clone() } else { t.cast(DType::F64)? };
    Ok(match t.dtype() {
        DType::I64 => exact.to_vec::<i64>()?.into_iter().map(|i| i as u64).collect(),
        _ => exact.to_vec::<f64>()?.into_iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect(),
    })
}

/// How many calls were fused, and how many reductions read what they reduce as it is computed.
fn compare(seed: u64, mesh: Option<&Placement>) -> Result<[usize; 2]> {
    let mut rng = Random::new(seed);
    let shape = *one_of(&mut rng, &SHAPES);
    let given: Vec<Tensor> = (0..1 + rng.below(4)).map(|_| operand(&mut rng, shape, mesh)).collect::<Result<_>>()?;
    let want: Vec<Vec<u64>> = program(seed, &given)?.iter().map(bits).collect::<Result<_>>()?;
    let (mut fused, mut reductions) = (0, 0);
    for passes in [Passes::default(), Passes::default().without("fuse")?] {
        let names: Vec<String> = (0..given.len()).map(|i| format!("x{i}")).collect();
        let closure = |g: &GraphBuilder<'_>| {
            let inputs = names.iter().zip(&given).map(|(n, t)| g.input(n, t)).collect::<Result<Vec<_>>>()?;
            program(seed, &inputs)
        };
        let mut graph = Graph::build(closure, GraphOptions::default().passes(passes))?;
        round_trip(graph.program());
        let effect = graph.effects().iter().find(|e| e.pass == "fuse");
        fused += effect.map_or(0, |e| e.before.nodes - e.after.nodes);
        reductions += graph.program().to_string().matches("oflow.fused_reduce").count();
        let inputs: Vec<&Tensor> = given.iter().collect();
        for _ in 0..2 {
            let have: Vec<Vec<u64>> = graph.run(&inputs)?.iter().map(bits).collect::<Result<_>>()?;
            assert_eq!(have, want, "program {seed}:\n{}", graph.explain());
        }
        // Somebody looks at the calls, so they are made one by one.
        let (stepwise, _) = oflow::interpreter::list_called(|| graph.run(&inputs));
        let have: Vec<Vec<u64>> = stepwise?.iter().map(bits).collect::<Result<_>>()?;
        assert_eq!(have, want, "program {seed}, call by call:\n{}", graph.explain());
    }
    Ok([fused, reductions])
}

fn compared(mesh: &[usize], programs: u64) {
    let n: usize = mesh.iter().product();
    let run = |mesh: Option<&Placement>| {
        let mut sum = [0; 2];
        for seed in 0..programs {
            let [fused, reductions] = compare(seed, mesh)?;
            sum = [sum[0] + fused, sum[1] + reductions];
        }
        Ok(sum)
    };
    let [fused, reductions] = match mesh {
        [] => run(None).unwrap(),
        _ => oflow::run_ranks(n, |_| run(Some(&Placement::new(Device::Cpu, &(0..n).collect::<Vec<_>>(), mesh)?)))
            .unwrap()
            .remove(0),
    };
    println!("{mesh:?}: {fused} calls less, {reductions} fused reductions");
    assert!(fused as u64 > 2 * programs && reductions as u64 > programs / 5, "{mesh:?}: {fused} {reductions}");
}

#[test]
fn random_elementwise_programs_on_local_tensors_have_the_bits_of_their_calls() {
    compared(&[], cases::draws(500, 10_000) as u64);
}

#[test]
fn random_elementwise_programs_on_two_ranks_have_the_bits_of_their_calls() {
    compared(&[2], cases::draws(120, 5_000) as u64);
}

#[test]
fn random_elementwise_programs_on_a_mesh_have_the_bits_of_their_calls() {
    compared(&[2, 2], cases::draws(60, 5_000) as u64);
}

/// What is reduced is not stored: the plan has memory for the result alone.
#[test]
fn elements_of_a_reduction_take_no_memory() {
    let x = rand([256, 1024], Device::Cpu).unwrap();
    let f = |x: &Tensor| x.sub(0.5)?.square()?.mean(());
    let build = |passes: Passes| {
        let graph = Graph::build(|g| f(&g.input("x", &x)?), GraphOptions::default().passes(passes)).unwrap();
        graph.plan().unwrap().arenas.iter().map(|a| a.bytes).sum::<usize>()
    };
    let (fused, apart) = (build(Passes::default()), build(Passes::default().without("fuse").unwrap()));
    assert!(fused < 4096 && apart >= 256 * 1024 * 4, "{fused} {apart}");
}

/// Gradients of a fused program are those of its functions.
#[test]
fn a_fused_program_has_a_gradient() {
    for end in ["sum", "mean", "amax", "amin"] {
        gradient_of_a_fused_program(end);
    }
}

fn gradient_of_a_fused_program(end: &str) {
    let x0 = from_vec::<f64>(vec![0.3, -0.7, 1.2, 0.1, 2.0, -1.5], [2, 3], Device::Cpu).unwrap();
    let b0 = from_vec::<f64>(vec![0.5, 0.25, -1.0], [3], Device::Cpu).unwrap();
    let f = |x: &Tensor, b: &Tensor| -> Result<Tensor> { x.add(b)?.gelu()?.mul(x)?.tanh()?.sub(b)?.square()?.mul(3.0) };
    // An extreme is shared by equal elements.
    let f = |x: &Tensor, b: &Tensor| -> Result<Tensor> {
        let y = f(x, b)?;
        match end {
            "sum" => y.sum(()),
            "mean" => y.mean(1)?.square()?.sum(()),
            "amax" => y.amax_keepdim(1)?.sum(()),
            _ => y.amin(())?.mul(2.0),
        }
    };
    let graph = Graph::build(|g| f(&g.input("x", &x0)?, &g.input("b", &b0)?), GraphOptions::default()).unwrap();
    assert!(graph.program().to_string().contains("oflow.fused_reduce"), "{}", graph.explain());
    let inputs = ["x", "b"].map(|n| graph.value(n).unwrap());
    let mut gradient = graph.gradient(&graph.program().outputs, &inputs).unwrap();
    let have = gradient.run(&[&x0, &b0]).unwrap();
    let (x, b) = (x0.copy().unwrap().requires_grad_(true).unwrap(), b0.copy().unwrap().requires_grad_(true).unwrap());
    f(&x, &b).unwrap().backward().unwrap();
    for (have, want) in have.iter().zip([x, b]) {
        let want = want.grad().unwrap();
        assert_eq!(have.shape(), want.shape());
        for (a, b) in have.to_vec::<f64>().unwrap().iter().zip(want.to_vec::<f64>().unwrap()) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }
}
