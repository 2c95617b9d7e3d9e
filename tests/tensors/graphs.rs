//! Random programs as graphs: each is run as it is and captured, three times from the same state, and gives the same bits: results, leaves,
//! gradients that it used, generators. What a graph refuses is what it says that it refuses. A capture, also one that fails, leaves every
//! tensor as it was.

use oflow::graph::{Graph, GraphBuilder, GraphOptions, Memory, Passes};
use oflow::prelude::*;
use oflow::testing::Random;
use oflow::{BackwardOptions, functional};
use oflow_tests::compared::{self, At, Count, bits, compared, outcome};
use oflow_tests::{cases, programs::round_trip};

/// Tensors that a program finds: inputs of a run, leaves, a buffer, a constant.
struct World {
    inputs: [Tensor; 2],
    leaves: [Tensor; 3],
    buffer: Tensor,
    constant: Tensor,
}

fn world(at: &At, seed: u64) -> Result<World> {
    let mut rng = Random::new(seed);
    let leaf = |t: Tensor| t.requires_grad_(true);
    Ok(World {
        inputs: [at.make(&mut rng, &[4, 3], 0)?, at.make(&mut rng, &[3], 0)?],
        leaves: [
            leaf(at.make(&mut rng, &[4, 3], 0)?)?,
            leaf(at.make(&mut rng, &[3, 4], 0)?)?,
            leaf(at.make(&mut rng, &[3], 0)?)?,
        ],
        buffer: at.make(&mut rng, &[4, 3], 0)?,
        constant: at.make(&mut rng, &[4, 3], 0)?,
    })
}

impl World {
    /// What runs leave something in.
    fn left(&self) -> Vec<&Tensor> {
        self.leaves.iter().chain([&self.buffer, &self.constant]).collect()
    }
}

fn one_of<'a>(rng: &mut Random, pool: &'a [Tensor], fits: impl Fn(&Tensor) -> bool) -> Option<&'a Tensor> {
    let all: Vec<&Tensor> = pool.iter().filter(|t| fits(t)).collect();
    (!all.is_empty()).then(|| all[rng.below(all.len())])
}

/// One call, chosen by the numbers, on values of the pool. What it makes is added.
fn step(at: &At, rng: &mut Random, world: &World, pool: &mut Vec<Tensor>) -> Result<()> {
    let x = pool[rng.below(pool.len())].clone();
    let matrix = x.ndim() == 2;
    let dim = |rng: &mut Random| rng.below(x.ndim().max(1)) as i64;
    let made = match rng.below(19) {
        0 | 1 => {
            let shape = x.shape().to_vec();
            let Some(y) = one_of(rng, pool, |t| t.shape() == shape || t.shape() == [3] && shape.last() == Some(&3))
            else {
                return Ok(());
            };
            match rng.below(4) {
                0 => x.add(y)?,
                1 => x.sub(y)?,
                2 => x.mul(y)?,
                _ => x.maximum(y)?,
            }
        }
        2 | 3 => match rng.below(6) {
            0 => x.tanh()?,
            1 => x.relu()?,
            2 => x.sigmoid()?,
            3 => x.neg()?,
            4 => x.tanh()?.square()?,
            _ => x.gelu()?,
        },
        4 if matrix => {
            let k = x.shape()[1];
            match one_of(rng, pool, |t| t.ndim() == 2 && t.shape()[0] == k) {
                Some(y) => x.tanh()?.matmul(&y.tanh()?)?,
                None => return Ok(()),
            }
        }
        5 if x.ndim() > 0 => match rng.below(3) {
            0 => x.sum(dim(rng))?,
            1 => x.mean(dim(rng))?,
            _ => x.softmax(dim(rng))?,
        },
        6 if matrix => x.t()?,
        7 if matrix => x.reshape([x.numel()])?,
        8 if x.ndim() > 0 && x.shape()[0] > 1 => x.narrow(0, 1, x.shape()[0] - 1)?,
        9 if x.ndim() > 0 => cat([&x, &x.mul(0.5)?], 0)?.narrow(0, 0, x.shape()[0])?,
        10 => {
            // In place, also through views; leaves under no_grad.
            let _quiet = (!x.requires_grad() || x.is_leaf()).then(no_grad);
            match rng.below(3) {
                0 => x.mul_(0.75)?,
                1 => x.add_(0.25)?,
                _ => x.tanh_()?,
            };
            return Ok(());
        }
        11 => x.detach(),
        12 => x.copy()?,
        13 => x.dropout(0.25)?,
        14 => x.add(&at.noise(&x)?)?,
        15 if x.is_global() => {
            let sbp = at.sbp(rng, x.ndim(), 0);
            x.to_global(sbp)?
        }
        16 => {
            let _quiet = no_grad();
            world.buffer.mul_(0.9)?.add_(&world.inputs[0].detach())?;
            return Ok(());
        }
        17 => x.masked_fill(&x.gt(0.5)?, 0.125)?,
        18 => x.cast(if x.dtype() == DType::F64 { DType::F32 } else { DType::F64 })?.cast(DType::F64)?,
        _ => return Ok(()),
    };
    pool.push(made);
    Ok(())
}

/// A program of the numbers of `seed`: forward, sometimes a backward in between, backward, a step of the leaves.
fn program(at: &At, seed: u64, world: &World, inputs: &[Tensor; 2]) -> Result<Vec<Tensor>> {
    let mut rng = Random::new(seed);
    let world = World {
        inputs: inputs.clone(),
        leaves: world.leaves.clone(),
        buffer: world.buffer.clone(),
        constant: world.constant.clone(),
    };
    let mut pool: Vec<Tensor> = world.inputs.iter().chain(&world.leaves).cloned().collect();
    pool.extend([world.buffer.clone(), world.constant.clone()]);
    world.leaves.iter().try_for_each(|p| p.set_grad(None))?;
    for _ in 0..4 + rng.below(12) {
        step(at, &mut rng, &world, &mut pool)?;
    }
    let made = &pool[7..];
    let mut loss: Option<Tensor> = None;
    for t in made.iter().filter(|t| t.requires_grad()) {
        let part = t.tanh()?.sum(())?;
        loss = Some(match loss {
            Some(l) => l.add(&part)?,
            None => part,
        });
    }
    let mut outs: Vec<Tensor> = made.iter().rev().take(3).cloned().collect();
    if let Some(loss) = loss {
        loss.backward()?;
        let _quiet = no_grad();
        for p in &world.leaves {
            if let Some(g) = p.grad() {
                p.sub_(&g.mul(0.05)?)?;
                outs.push(g);
            }
        }
        outs.push(loss);
    }
    Ok(outs)
}

/// All that can be told of tensors without changing them: values, versions, gradients, edges of the graph, and the generators.
fn fingerprint<'a>(all: impl Iterator<Item = &'a Tensor>) -> Result<Vec<String>> {
    let mut told = vec![];
    for t in all {
        let grad = t.grad().map(|g| Ok::<_, Error>((g.version(), bits(&g)?))).transpose()?;
        told.push(format!("{t:?} {:?} {} {:?} {grad:?}", t.made_by(), t.version(), bits(t)?));
    }
    let ctx = oflow::context::current();
    told.push(format!("{:?} {:?}", ctx.generator(), ctx.local_generator()));
    Ok(told)
}

/// What a graph says that it cannot do and eager calls can: writes through local views, and reads of views of written memory.
const REFUSED: [&str; 4] = [
    "a graph does not write through it",
    "shares memory that a call of the graph has written since",
    "share memory, which it writes",
    "a constant of the graph",
];

fn compare(at: &At, seed: u64, count: &mut Count) -> Result<()> {
    let eager = world(at, seed)?;
    let want = outcome(&eager.left(), |n| program(at, seed, &eager, &compared::inputs(&eager.inputs, n)?));
    let own = world(at, seed)?;
    let inputs = compared::inputs(&own.inputs, 0)?;
    // Gradients from before, views, and a call that waits for its backward.
    own.leaves.iter().try_for_each(|p| p.set_grad(Some(p.detach().add(seed as i64)?)))?;
    let waits = own.leaves[0].square()?.sum(())?;
    let others = [own.buffer.detach(), own.leaves[1].t()?, own.buffer.narrow(0, 1, 2)?, waits.clone()];
    let World { leaves, buffer, constant, .. } = &own;
    let all = || fingerprint(leaves.iter().chain(&inputs).chain(&others).chain([buffer, constant]));
    let capture = |fails: bool| {
        let closure = |g: &GraphBuilder<'_>| {
            let outs = program(at, seed, &own, &[g.input("a", &inputs[0])?, g.input("b", &inputs[1])?])?;
            if fails { Err(Error::value("on purpose")) } else { Ok(outs) }
        };
        // As it was captured, without each pass, and by all, some of them with as little memory as can be.
        let passes = match seed % 10 {
            0 => Passes::none(),
            1 => Passes::default().without("dead")?.memory(Memory::Least),
            2 => Passes::default().without("common")?,
            3 => Passes::default().without("identity")?.memory(Memory::Least),
            4 => Passes::default().without("recompute")?,
            5 => Passes::default().without("order")?.memory(Memory::Least),
            6 => Passes::default().without("fuse")?.memory(Memory::Least),
            7 => Passes::default().without("together")?,
            8 => Passes::default().without("overlap")?.memory(Memory::Budget(1 << 30)),
            _ => Passes::default().memory(Memory::Least),
        };
        Graph::build(closure, GraphOptions::default().passes(passes))
    };
    let before = all()?;
    assert!(capture(true).is_err());
    assert_eq!(all()?, before, "program {seed}: what a capture that fails leaves");
    let built = capture(false);
    assert_eq!(all()?, before, "program {seed}: what a capture leaves");
    let found = functional::grad(&[&waits], &[&leaves[0]], &BackwardOptions::default())?[0].clone();
    assert_eq!(found.map(|g| bits(&g)).transpose()?, Some(bits(&leaves[0].detach().mul(2.0)?)?), "program {seed}");
    drop((waits, others));
    let have = built.and_then(|mut graph| {
        round_trip(graph.program());
        let text = graph.explain();
        let made = outcome(&own.left(), |n| {
            let [a, b] = compared::inputs(&own.inputs, n)?;
            graph.run(&[&a, &b])
        });
        made.map(|m| (m, text))
    });
    count.note(&format!("program {seed}"), want, have, &REFUSED);
    Ok(())
}

#[test]
fn random_programs_on_local_tensors_are_the_same_as_graphs() {
    compared(Device::Cpu, &[], cases::draws(600, 10_000) as u64, compare);
}

#[test]
fn random_programs_on_two_ranks_are_the_same_as_graphs() {
    compared(Device::Cpu, &[2], cases::draws(200, 10_000) as u64, compare);
}

#[test]
fn random_programs_on_a_mesh_are_the_same_as_graphs() {
    compared(Device::Cpu, &[2, 2], cases::draws(100, 10_000) as u64, compare);
}

/// On a device whose kernels and boxings run on threads of their own, after random delays: what an arena's bytes are used for again waits for
/// those that used them.
#[test]
fn random_programs_on_the_asynchronous_device_are_the_same_as_graphs() {
    compared(Device::Async, &[], cases::draws(100, 2_000) as u64, compare);
    compared(Device::Async, &[2], cases::draws(50, 2_000) as u64, compare);
}
