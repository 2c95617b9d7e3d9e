//! Random elementwise programs as graphs: every dtype, broadcasts, tensors without dims or elements, views, in all layouts. A graph has the bits
//! of the calls, fused or not, also call by call, and its program can be written and read.

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

fn program(seed: u64, given: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut rng = Random::new(seed ^ 0x5eed);
    let mut pool = given.to_vec();
    for _ in 0..3 + rng.below(20) {
        let made = step(&mut rng, &pool)?;
        pool.push(made);
    }
    let last = pool.len() - 1;
    let mut outs = vec![pool[last].clone()];
    if rng.below(3) == 0 {
        outs.push(pool[given.len() + rng.below(last + 1 - given.len())].clone());
    }
    if pool[last].dtype().is_float() {
        outs.push(pool[last].sum(())?);
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

/// How many calls were fused.
fn compare(seed: u64, mesh: Option<&Placement>) -> Result<usize> {
    let mut rng = Random::new(seed);
    let shape = *one_of(&mut rng, &SHAPES);
    let given: Vec<Tensor> = (0..1 + rng.below(4)).map(|_| operand(&mut rng, shape, mesh)).collect::<Result<_>>()?;
    let want: Vec<Vec<u64>> = program(seed, &given)?.iter().map(bits).collect::<Result<_>>()?;
    let mut fused = 0;
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
    Ok(fused)
}

fn compared(mesh: &[usize], programs: u64) {
    let n: usize = mesh.iter().product();
    let run = |mesh: Option<&Placement>| {
        let mut fused = 0;
        for seed in 0..programs {
            fused += compare(seed, mesh)?;
        }
        Ok(fused)
    };
    let fused = match mesh {
        [] => run(None).unwrap(),
        _ => oflow::run_ranks(n, |_| run(Some(&Placement::new(Device::Cpu, &(0..n).collect::<Vec<_>>(), mesh)?)))
            .unwrap()
            .remove(0),
    };
    println!("{mesh:?}: {fused} calls less");
    assert!(fused as u64 > 2 * programs, "{mesh:?}: {fused}");
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

/// Gradients of a fused program are those of its functions.
#[test]
fn a_fused_program_has_a_gradient() {
    let x0 = from_vec::<f64>(vec![0.3, -0.7, 1.2, 0.1, 2.0, -1.5], [2, 3], Device::Cpu).unwrap();
    let b0 = from_vec::<f64>(vec![0.5, 0.25, -1.0], [3], Device::Cpu).unwrap();
    let f = |x: &Tensor, b: &Tensor| -> Result<Tensor> { x.add(b)?.gelu()?.mul(x)?.tanh()?.sub(b)?.square()?.sum(()) };
    let graph = Graph::build(|g| f(&g.input("x", &x0)?, &g.input("b", &b0)?), GraphOptions::default()).unwrap();
    assert!(graph.program().to_string().contains("oflow.fused"), "{}", graph.explain());
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
