//! Random sections that repeat: a loop of a graph gives the bits of the loop of calls that it stands for: what it collects and carries, leaves,
//! gradients, tensors that it writes, generators.

use oflow::graph::{Graph, GraphBuilder, GraphOptions, Iteration, Memory, Passes};
use oflow::prelude::*;
use oflow::testing::Random;
use oflow_tests::compared::{At, Count, compared, inputs, outcome};
use oflow_tests::{cases, programs::round_trip};

/// What repeats a section: a graph, or the loop that it stands for.
enum Loop<'a> {
    Graph(&'a GraphBuilder<'a>),
    Calls,
}

/// The number of an iteration.
enum Turn<'a, 'b> {
    Graph(&'a Iteration<'b>),
    Calls(usize),
}

type Carried = (Vec<Tensor>, Vec<Tensor>);

impl Turn<'_, '_> {
    fn of(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Turn::Graph(i) => i.of(x),
            Turn::Calls(i) => x.select(0, *i as i64),
        }
    }
}

impl Loop<'_> {
    fn scan(
        &self,
        n: usize,
        init: Vec<Tensor>,
        mut f: impl FnMut(&Turn<'_, '_>, Vec<Tensor>) -> Result<Carried>,
    ) -> Result<Carried> {
        match self {
            Loop::Graph(g) => g.scan(n, init, |i, carried| f(&Turn::Graph(i), carried)),
            Loop::Calls => {
                let (mut carried, mut all) = (init, vec![]);
                for i in 0..n {
                    let (next, outs) = f(&Turn::Calls(i), carried)?;
                    carried = next;
                    all.push(outs);
                }
                let columns = 0..all.first().map_or(0, Vec::len);
                let column = |c: usize| stack(&all.iter().map(|outs| &outs[c]).collect::<Vec<_>>(), 0);
                Ok((carried, columns.map(column).collect::<Result<_>>()?))
            }
        }
    }
}

/// Tensors that a program finds.
struct World {
    inputs: [Tensor; 2],
    leaves: [Tensor; 2],
    buffer: Tensor,
    constant: Tensor,
}

fn world(at: &At, seed: u64) -> Result<World> {
    let mut rng = Random::new(seed);
    let leaf = |t: Tensor| t.requires_grad_(true);
    Ok(World {
        inputs: [at.make(&mut rng, &[iterations(seed), 4, 3], 1)?, at.make(&mut rng, &[3], 0)?],
        leaves: [leaf(at.make(&mut rng, &[4, 3], 0)?)?, leaf(at.make(&mut rng, &[3], 0)?)?],
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

fn iterations(seed: u64) -> usize {
    [1, 2, 3, 5][(seed / 3 % 4) as usize]
}

/// One call on values of the pool; what it makes is added.
fn step(at: &At, rng: &mut Random, pool: &mut Vec<Tensor>) -> Result<()> {
    let x = pool[rng.below(pool.len())].clone();
    let y = pool[rng.below(pool.len())].clone();
    let fits = |a: &Tensor, b: &Tensor| a.shape() == b.shape() || b.shape() == [3] && a.shape().last() == Some(&3);
    let made = match rng.below(13) {
        0 | 1 if fits(&x, &y) => match rng.below(3) {
            0 => x.add(&y)?,
            1 => x.mul(&y)?,
            _ => x.maximum(&y)?,
        },
        2 | 3 => match rng.below(4) {
            0 => x.tanh()?,
            1 => x.neg()?,
            2 => x.sigmoid()?,
            _ => x.gelu()?,
        },
        4 if x.ndim() == 2 => x.softmax(1)?,
        5 if x.ndim() == 2 => x.t()?.copy()?.t()?,
        6 => x.dropout(0.25)?,
        7 => x.copy()?,
        8 => x.add(&at.noise(&x)?)?,
        9 if x.is_global() => x.to_global(at.sbp(rng, x.ndim(), 0))?,
        10 => x.detach().mul(0.5)?,
        11 if x.ndim() == 2 && x.shape()[0] == 4 => {
            // In place, on memory of its own.
            let own = x.tanh()?;
            let _quiet = no_grad();
            own.detach().copy()?.mul_(0.75)?.clone()
        }
        _ => return Ok(()),
    };
    pool.push(made);
    Ok(())
}

/// Values to repeat with, and the section's calls.
struct Section<'a> {
    at: &'a At,
    world: &'a World,
    seed: u64,
}

impl Section<'_> {
    fn body(&self, l: &Loop<'_>, i: &Turn<'_, '_>, x: &Tensor, carried: Vec<Tensor>, deep: bool) -> Result<Carried> {
        // In each iteration the same calls.
        let mut rng = Random::new(self.seed * 2 + u64::from(deep));
        let World { leaves, buffer, constant, inputs } = self.world;
        let rule = rng.below(4);
        if rule == 1 {
            leaves.iter().try_for_each(|p| p.set_grad(None))?;
        }
        let mut pool = vec![i.of(x)?, inputs[1].clone(), leaves[0].clone(), leaves[1].clone(), constant.clone()];
        pool.extend(carried.iter().cloned());
        if rng.below(3) == 0 {
            let _quiet = no_grad();
            buffer.mul_(0.9)?.add_(&pool[0].detach())?;
            if let Some(c) = carried.first().filter(|_| rng.below(2) == 0) {
                c.add_(0.25)?;
            }
        }
        // What reads the buffer comes after the write.
        pool.push(buffer.clone());
        let given = pool.len();
        for _ in 0..2 + rng.below(8) {
            step(self.at, &mut rng, &mut pool)?;
        }
        let mut outs = vec![];
        if !deep && rng.below(3) == 0 {
            let inner = vec![pool[0].detach().copy()?];
            let (last, all) = l.scan(iterations(self.seed), inner, |k, carried| self.body(l, k, x, carried, true))?;
            outs.extend(last.into_iter().chain(all).map(|t| t.detach()));
        }
        let mut loss: Option<Tensor> = None;
        for t in pool[given..].iter().filter(|t| t.requires_grad()) {
            let part = t.tanh()?.sum(())?;
            loss = Some(match loss {
                Some(l) => l.add(&part)?,
                None => part,
            });
        }
        if let Some(loss) = loss {
            loss.backward()?;
            outs.push(loss.detach());
        }
        if rule > 1 {
            // A step in the section, with or without clearing what has led to it.
            let _quiet = no_grad();
            for p in leaves {
                if let Some(g) = p.grad() {
                    p.sub_(&g.mul(0.05)?)?;
                    if rule == 2 {
                        p.set_grad(None)?;
                    }
                }
            }
        }
        let mut next = vec![];
        for c in &carried {
            let found = pool.iter().rev().find(|t| t.shape() == c.shape()).unwrap_or(c);
            let found = match c.global() {
                Some(g) => found.detach().to_global(&g.sbp)?,
                None => found.detach(),
            };
            // Of its own: what the next iteration writes into it nobody else sees.
            next.push(found.copy()?);
        }
        // Handed on without a copy: all change places, or the first is new and the others move on.
        match rng.below(4) {
            0 => next = carried.iter().cycle().skip(1).take(carried.len()).cloned().collect(),
            1 => next.iter_mut().skip(1).zip(&carried).for_each(|(next, c)| *next = c.clone()),
            _ => {}
        }
        outs.extend(pool[given..].iter().rev().take(2).map(Tensor::detach));
        Ok((next, outs))
    }

    /// Before, the section, and after it.
    fn run(&self, l: &Loop<'_>, inputs: &[Tensor; 2]) -> Result<Vec<Tensor>> {
        let mut rng = Random::new(self.seed);
        let leaves = &self.world.leaves;
        leaves.iter().try_for_each(|p| p.set_grad(None))?;
        if rng.below(3) == 0 {
            // Gradients from before the loop.
            leaves[0].mul(&leaves[1])?.sum(())?.backward()?;
        }
        let init = (0..rng.below(4)).map(|n| self.world.constant.mul(0.5 + n as f64)).collect::<Result<Vec<_>>>()?;
        let init = init.iter().map(Tensor::copy).collect::<Result<Vec<_>>>()?;
        let world = World {
            inputs: inputs.clone(),
            leaves: leaves.clone(),
            buffer: self.world.buffer.clone(),
            constant: self.world.constant.clone(),
        };
        let section = Section { world: &world, ..*self };
        // A value from outside, or one that the program makes and that ends with the section.
        let x = &if rng.below(2) == 0 { inputs[0].clone() } else { inputs[0].tanh()? };
        let (carried, collected) = l.scan(iterations(self.seed), init, |i, c| section.body(l, i, x, c, false))?;
        let mut outs: Vec<Tensor> = carried.into_iter().chain(collected).collect();
        let _quiet = no_grad();
        for p in leaves {
            if let Some(g) = p.grad() {
                p.sub_(&g.mul(0.05)?)?;
                outs.push(g);
            }
        }
        if let Some(t) = outs.first().cloned() {
            outs.push(t.mul(2.0)?);
        }
        Ok(outs)
    }
}

/// What a section says that it cannot do and a loop of calls can.
const REFUSED: [&str; 2] =
    ["has a gradient only in the first iteration", "has a gradient from the second iteration on"];

fn compare(at: &At, seed: u64, count: &mut Count) -> Result<()> {
    let eager = world(at, seed)?;
    let section = Section { at, world: &eager, seed };
    let want = outcome(&eager.left(), |n| section.run(&Loop::Calls, &inputs(&eager.inputs, n)?));
    let own = world(at, seed)?;
    let section = Section { at, world: &own, seed };
    let first = inputs(&own.inputs, 0)?;
    let passes = match seed % 5 {
        0 => Passes::none(),
        1 => Passes::default().without("recompute")?,
        2 => Passes::default().without("dead")?.memory(Memory::Least),
        3 => Passes::default().memory(Memory::Least),
        _ => Passes::default(),
    };
    let built = Graph::build(
        |g| section.run(&Loop::Graph(g), &[g.input("a", &first[0])?, g.input("b", &first[1])?]),
        GraphOptions::default().passes(passes),
    );
    let have = built.and_then(|mut graph| {
        round_trip(graph.program());
        let text = graph.explain();
        let made = outcome(&own.left(), |n| {
            let [a, b] = inputs(&own.inputs, n)?;
            graph.run(&[&a, &b])
        });
        made.map(|m| (m, text))
    });
    count.note(&format!("section {seed}"), want, have, &REFUSED);
    Ok(())
}

#[test]
fn random_sections_on_local_tensors_repeat_as_loops_of_calls() {
    compared(Device::Cpu, &[], cases::draws(300, 10_000) as u64, compare);
}

#[test]
fn random_sections_on_two_ranks_repeat_as_loops_of_calls() {
    compared(Device::Cpu, &[2], cases::draws(120, 10_000) as u64, compare);
}

#[test]
fn random_sections_on_a_mesh_repeat_as_loops_of_calls() {
    compared(Device::Cpu, &[2, 2], cases::draws(60, 10_000) as u64, compare);
}

/// On a device whose kernels and boxings run on threads of their own, after random delays: an iteration waits for those that used its memory.
#[test]
fn random_sections_on_the_asynchronous_device_repeat_as_loops_of_calls() {
    compared(Device::Async, &[], cases::draws(60, 2_000) as u64, compare);
    compared(Device::Async, &[2], cases::draws(30, 2_000) as u64, compare);
}
