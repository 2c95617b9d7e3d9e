//! The ranks of `oflow calibrate`: they run boxing plans of one step and measure their times.
//!
//! A plan is run as in a program, by the executor on the rank's communicator, so its time includes packing, scratch memory and
//! the checks of a collective. The share of each constant in the price of the plan is taken from the cost model:
//! prices are linear in the constants, so raising a constant by one gives its factor.
//!
//! Times are those inside a program, not those of a tight loop. Before each measurement every rank reads more memory than its
//! second-level cache holds and then touches its source, as the op that made it would. In turn one rank starts late, so that the
//! others sleep while they wait, as after computing. A time runs from the last rank's start to the last rank's end, so the delay
//! does not count.

use std::hint::black_box;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use oflow::boxing::{Algorithm, BoxingPlan, Layout, Model, Planner, Rate};
use oflow::comm::{Communicator, Group, Tag};
use oflow::kernels::{DType, Dims, View};
use oflow::placement::{Device, Placement};
use oflow::prelude::{IntoTarget, zeros};
use oflow::tensor::{Body, LocalTensor};
use oflow::{Error, Result, World, sbp};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Logical bytes of the tensors of one group, before rounding to shapes that all members split evenly.
const SIZES: [usize; 12] =
    [16, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20];
/// Everything is timed so many times over, and the best of the medians counts: on a host that does other work too, load
/// comes and goes.
const ROUNDS: usize = 3;
/// After a round that ends later than this no other one begins.
const ENOUGH: Duration = Duration::from_secs(6);
/// Time that one conversion is repeated for in a round, and how often at least and at most.
const BUDGET: Duration = Duration::from_millis(15);
const REPEATS: RangeInclusive<u64> = 5..=30;
/// Repetitions before the clock counts: caches, page faults, the first message.
const WARM_UP: u64 = 2;

/// Memory that a rank walks through before each repetition.
const WALK: usize = 8 << 20;
/// How late the late rank is: longer than any wait spins.
const LATE: Duration = Duration::from_millis(2);

/// The group of constants in the price of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConstantGroup {
    /// A step without communication.
    Local,
    /// An exchange in which each rank only copies from itself.
    LocalExchange,
    /// A step that communicates.
    Wire(Algorithm),
}

/// A measured boxing, with the factor of each constant in its price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The group of constants.
    pub kind: ConstantGroup,
    /// Ranks of the group.
    pub members: usize,
    /// Peers of the busiest rank.
    pub peers: u64,
    /// Bytes that the busiest rank sends or receives.
    pub wire: u64,
    /// Bytes copied on the rank and priced as such.
    pub copied: u64,
    /// Median time in picoseconds, from the last rank's start to the last rank's end.
    pub time_ps: u64,
}

/// A conversion to be timed.
struct Case {
    point: Point,
    plan: Arc<BoxingPlan>,
}

/// Measures all boxings. All ranks return the same points.
pub fn measure(world: &World) -> Result<Vec<Point>> {
    let mut clock = Clock::new(world)?;
    let mut cases = cases(world.size())?;
    let began = now();
    for _ in 0..ROUNDS {
        for Case { point, plan } in &mut cases {
            point.time_ps = clock.time(plan)?.min(point.time_ps);
        }
        if clock.longest(now() - began)? > ENOUGH.as_nanos() as u64 {
            break;
        }
    }
    Ok(cases.into_iter().map(|c| c.point).collect())
}

/// Group sizes: powers of two, and all ranks.
fn group_sizes(world: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = (1..).map(|i| 1 << i).take_while(|g| *g < world).collect();
    if world > 1 {
        sizes.push(world);
    }
    sizes
}

fn cases(world: usize) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for bytes in SIZES {
        cases.extend(local(world.max(2), bytes)?.into_iter().flatten());
        for members in group_sizes(world) {
            cases.extend(wire(world, members, bytes)?.into_iter().flatten());
        }
    }
    Ok(cases)
}

/// A matrix of about so many bytes (f32) whose sizes are multiples of `rows` and `cols`.
fn matrix(bytes: usize, rows: usize, cols: usize) -> [usize; 2] {
    let elements = bytes / DType::F32.size();
    // As wide as activations and weights are, as far as the size allows.
    let width = cols * (elements.isqrt().clamp(cols, 1024.max(cols)) / cols);
    [rows * (elements / width / rows).max(1), width]
}

/// Steps that stay on the rank. Only the plan needs the other ranks of the mesh: they need not exist.
fn local(ranks: usize, bytes: usize) -> Result<Vec<Option<Case>>> {
    let mesh = Placement::of_world(Device::Cpu, ranks)?;
    let mut rotated: Vec<usize> = mesh.ranks().to_vec();
    rotated.rotate_left(1);
    let rotated = Placement::new(Device::Cpu, &rotated, &[ranks])?;
    let shape = matrix(bytes * ranks, ranks, ranks);
    let case = |kind, shape: [usize; 2], from, to| Case::new(kind, 1, &shape, from, to);
    let on = |p: &Placement, sbp| Layout::new(p, sbp);
    Ok(vec![
        case(ConstantGroup::Local, shape, on(&mesh, sbp![B]), on(&mesh, sbp![S(0)]))?,
        case(ConstantGroup::Local, shape, on(&mesh, sbp![B]), on(&mesh, sbp![S(1)]))?,
        case(ConstantGroup::Local, matrix(bytes, ranks, 1), on(&mesh, sbp![S(0)]), on(&mesh, sbp![P]))?,
        case(ConstantGroup::LocalExchange, shape, on(&mesh, sbp![B]), on(&rotated, sbp![S(0)]))?,
    ])
}

/// Communication within groups of so many ranks, in all groups that the world holds at once: that is how a mesh uses them.
fn wire(world: usize, members: usize, bytes: usize) -> Result<Vec<Option<Case>>> {
    let groups = world / members;
    let ranks: Vec<usize> = (0..groups * members).collect();
    let mesh = Placement::new(Device::Cpu, &ranks, &[groups, members])?;
    let rotated: Vec<usize> = ranks.iter().map(|r| r / members * members + (r % members + 1) % members).collect();
    let rotated = Placement::new(Device::Cpu, &rotated, &[groups, members])?;
    let (corner, line) =
        (Placement::new(Device::Cpu, &[0], &[1])?, Placement::new(Device::Cpu, &ranks[..members], &[members])?);
    let shape = matrix(bytes, members, members);
    let whole = [shape[0] * groups, shape[1]];
    let on = |p: &Placement, sbp| Layout::new(p, sbp);
    let case = |a, shape: [usize; 2], from, to| Case::new(ConstantGroup::Wire(a), members, &shape, from, to);
    let reduce = bytes <= oflow::host_hierarchy::one_phase_bytes(members);
    let reduce = if reduce { Algorithm::AllReduceOnePhase } else { Algorithm::AllReduceTwoPhase };
    let (b, p, s0, s1) = (sbp![B, B], sbp![B, P], sbp![B, S(0)], sbp![B, S(1)]);
    let nested = sbp![S(0), S(0)];
    Ok(vec![
        case(reduce, shape, on(&mesh, p.clone()), on(&mesh, b.clone()))?,
        case(Algorithm::AllGather, shape, on(&mesh, s0.clone()), on(&mesh, b.clone()))?,
        case(Algorithm::AllGather, shape, on(&mesh, s1.clone()), on(&mesh, b))?,
        case(Algorithm::ReduceScatter, shape, on(&mesh, p.clone()), on(&mesh, s0.clone()))?,
        case(Algorithm::ReduceScatter, shape, on(&mesh, p), on(&mesh, s1.clone()))?,
        case(Algorithm::AllToAll, shape, on(&mesh, s0.clone()), on(&mesh, s1.clone()))?,
        case(Algorithm::AllToAll, shape, on(&mesh, s1), on(&mesh, s0))?,
        case(Algorithm::Broadcast, shape, on(&corner, sbp![B]), on(&line, sbp![B]))?,
        case(Algorithm::Exchange, whole, on(&mesh, nested.clone()), on(&rotated, nested))?,
        // With reduction at the receiver.
        case(Algorithm::Exchange, shape, on(&mesh, sbp![B, P]), on(&rotated, sbp![B, S(0)]))?,
    ])
}

impl Case {
    /// The case, if the planner has a plan of one step of that kind for it.
    fn new(kind: ConstantGroup, members: usize, shape: &[usize], src: Layout, dst: Layout) -> Result<Option<Case>> {
        // Favoured, so that the plan is this one where another would do as well.
        let mut model = Model::default();
        if let ConstantGroup::Wire(a) = kind {
            let rate = rate(&mut model, a);
            let half = |ps: u64| ps / 2;
            *rate = Rate {
                latency_ps: half(rate.latency_ps),
                per_peer_ps: half(rate.per_peer_ps),
                per_kib_ps: half(rate.per_kib_ps),
                ..*rate
            };
        }
        let plan = Planner::new(model).plan(shape, DType::F32, &src, &dst)?;
        let [step] = plan.steps.as_slice() else { return Ok(None) };
        // How much dearer the plan gets when a constant grows.
        let grown = |change: &dyn Fn(&mut Model)| -> Result<u64> {
            let mut more = model;
            change(&mut more);
            let other = Planner::new(more).plan(shape, DType::F32, &src, &dst)?;
            let same = matches!(other.steps.as_slice(), [s] if s.op == step.op);
            if same {
                Ok(other.cost_ps - plan.cost_ps)
            } else {
                Err(Error::argument(format!("two plans of {src} to {dst}")))
            }
        };
        const KIB: u64 = 1 << 10;
        let starts = match kind {
            ConstantGroup::Local => grown(&|m| m.local_ps += 1)?,
            ConstantGroup::LocalExchange => grown(&|m| m.local_exchange_ps += 1)?,
            ConstantGroup::Wire(a) => grown(&|m| rate(m, a).latency_ps += 1)?,
        };
        if starts != 1 {
            return Ok(None);
        }
        let (peers, wire) = match kind {
            ConstantGroup::Wire(a) => {
                (grown(&|m| rate(m, a).per_peer_ps += 1)?, grown(&|m| rate(m, a).per_kib_ps += KIB)?)
            }
            _ => (0, 0),
        };
        let copied = grown(&|m| m.per_kib_copied_ps += KIB)?;
        Ok(Some(Case { point: Point { kind, members, peers, wire, copied, time_ps: u64::MAX }, plan }))
    }
}

fn rate(model: &mut Model, a: Algorithm) -> &mut Rate {
    &mut model.same_host.rates[a as usize]
}

/// Times conversions on all ranks together.
struct Clock<'a> {
    world: &'a World,
    comm: Arc<dyn Communicator>,
    group: Group,
    ordinal: u64,
    /// Memory that is walked through.
    walk: Vec<u8>,
}

/// When this rank started and ended, in nanoseconds of the host's monotonic clock.
type Span = [u64; 2];

impl Clock<'_> {
    fn new(world: &World) -> Result<Clock<'_>> {
        let group = Group { ranks: (0..world.size()).collect(), me: world.rank() };
        Ok(Clock { world, comm: world.ctx().comm()?.clone(), group, ordinal: 0, walk: vec![0; WALK] })
    }

    fn tag(&mut self) -> Tag {
        self.ordinal += 1;
        Tag {
            ordinal: self.ordinal,
            hash: self.ordinal,
            op: "calibrate",
            file: file!(),
            line: line!(),
            scope: Default::default(),
        }
    }

    /// The median time of a plan in picoseconds.
    fn time(&mut self, plan: &BoxingPlan) -> Result<u64> {
        let program = plan.program(self.world.rank());
        let (src, dst) = (memory(program.src.as_ref())?, memory(program.dst.as_ref())?);
        let first = self.repeat(plan, src.as_ref(), dst.as_ref(), WARM_UP)?;
        let one = first.iter().min().copied().unwrap_or(0) + LATE.as_nanos() as u64;
        let times = (BUDGET.as_nanos() as u64 / one).clamp(*REPEATS.start(), *REPEATS.end());
        let mut spans = self.repeat(plan, src.as_ref(), dst.as_ref(), times)?;
        spans.sort_unstable();
        Ok(spans[spans.len() / 2].max(1) * 1000)
    }

    /// Carries the plan out so many times; each time from the last rank's start to the last rank's end, in nanoseconds.
    fn repeat(
        &mut self,
        plan: &BoxingPlan,
        src: Option<&LocalTensor>,
        dst: Option<&LocalTensor>,
        times: u64,
    ) -> Result<Vec<u64>> {
        // SAFETY: the caller holds both tensors until this returns, and nobody else uses them.
        let view = |t: &LocalTensor| unsafe { t.raw_view() };
        let (src, dst) = (src.map(view), dst.map(view));
        let takes_part = src.is_some() || dst.is_some();
        let memory = self.world.ctx().device(Device::Cpu)?.alloc.clone();
        let mut mine: Vec<Span> = Vec::new();
        for i in 0..times {
            let (meet, run) = (self.tag(), self.tag());
            self.comm.barrier(&self.group, &meet)?;
            self.amid_a_program(src.as_ref(), i as usize % self.world.size() == self.world.rank())?;
            let start = now();
            if takes_part {
                oflow::vm::box_exec::execute(plan, (&*self.comm, &memory), &run, src.as_ref(), dst.as_ref())?;
                mine.push([start, now()]);
            } else {
                mine.push([0, 0]);
            }
        }
        let all = self.gather(mine.as_flattened())?;
        let at = |rank: usize, i: usize, end: usize| all[(rank * mine.len() + i) * 2 + end];
        let last = |i, end| (0..self.world.size()).map(|r| at(r, i, end)).max().unwrap_or(0);
        Ok((0..mine.len()).map(|i| last(i, 1) - last(i, 0)).collect())
    }

    /// The ranks' numbers one after another.
    fn gather(&mut self, mine: &[u64]) -> Result<Vec<u64>> {
        let tag = self.tag();
        let bytes: Vec<u8> = mine.iter().flat_map(|t| t.to_le_bytes()).collect();
        let mut all = vec![0; bytes.len() * self.world.size()];
        self.comm.all_gather(&self.group, &tag, &bytes, &mut all, &vec![bytes.len(); self.world.size()])?;
        Ok(all.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect())
    }

    /// The longest of the ranks' times, which all of them learn.
    fn longest(&mut self, mine: u64) -> Result<u64> {
        Ok(self.gather(&[mine])?.into_iter().max().unwrap_or(mine))
    }

    /// Leaves caches and ranks as an op before the boxing would.
    fn amid_a_program(&mut self, src: Option<&View>, late: bool) -> Result<()> {
        let met = now();
        self.walk.iter_mut().step_by(64).for_each(|b| *b = b.wrapping_add(1));
        if let Some(src) = src {
            black_box(src.as_slice::<f32>()?.iter().step_by(16).sum::<f32>());
        }
        while late && now() - met < LATE.as_nanos() as u64 {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

fn now() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// A shard of zeros.
fn memory(size: Option<&Dims>) -> Result<Option<LocalTensor>> {
    let Some(size) = size else { return Ok(None) };
    let t = zeros(size.as_slice(), Device::Cpu.dtype(DType::F32))?;
    match t.body() {
        Body::Local(l) => Ok(Some(l.clone())),
        _ => Err(Error::argument("a local tensor was asked for")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_says_how_often_a_constant_counts() {
        for (world, members) in [(2, 2), (4, 4), (4, 2)] {
            let found: Vec<Point> =
                wire(world, members, 1 << 20).unwrap().into_iter().flatten().map(|c| c.point).collect();
            let k = members as u64;
            let share = (1 << 20) / k;
            for p in &found {
                let expected = match p.kind {
                    ConstantGroup::Wire(Algorithm::AllReduceTwoPhase) => (k - 1, 2 * (k - 1) * share),
                    ConstantGroup::Wire(Algorithm::AllGather | Algorithm::ReduceScatter) => (k - 1, (k - 1) * share),
                    ConstantGroup::Wire(Algorithm::AllToAll) => (k - 1, (k - 1) * share / k),
                    _ => continue,
                };
                assert_eq!((p.peers, p.wire, p.copied), (expected.0, expected.1, 0), "{p:?}");
            }
            for a in [Algorithm::AllReduceTwoPhase, Algorithm::AllGather, Algorithm::AllToAll, Algorithm::Exchange] {
                assert!(found.iter().any(|p| p.kind == ConstantGroup::Wire(a)), "{a:?} on {members} of {world}");
            }
        }
        for p in local(2, 1 << 16).unwrap().into_iter().flatten().map(|c| c.point) {
            // The whole elements of a part, about the size that was asked for.
            assert_eq!((p.peers, p.wire, p.copied.next_multiple_of(1 << 8)), (0, 0, 1 << 16), "{p:?}");
        }
        assert_eq!(group_sizes(1), [0usize; 0]);
        assert_eq!((group_sizes(2), group_sizes(6)), (vec![2], vec![2, 4, 6]));
    }
}
