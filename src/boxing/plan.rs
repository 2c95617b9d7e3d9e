//! Plans and the table that remembers them.

use super::bound::least;
use super::cost::Model;
use super::exchange::volume;
use super::memory::extra_memory;
use super::program::RankProgram;
use super::search::{self, CheapestPath};
use super::step::StepAt;
use super::steps::BoxingStep;
use crate::error::Result;
use crate::intern::{FixedHasher, FixedMap};
use crate::placement::{Device, Placement};
use crate::sbp::{Layout, NdSbp, check_layout, shard_box};
use indexmap::Equivalent;
use oflow_kernels::{DType, Dims};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The steps that box a tensor from one layout to another. Prints as text, one step per line.
#[derive(Debug)]
pub struct BoxingPlan {
    /// Logical shape of the tensor.
    pub shape: Dims,
    /// Element type of the tensor.
    pub dtype: DType,
    /// Layout of the source.
    pub src: Layout,
    /// Layout of the destination.
    pub dst: Layout,
    /// The steps. Without steps the destination shard of each rank is its source shard, or the tensor is empty.
    pub steps: Vec<BoxingStep>,
    /// Predicted time of all steps, in picoseconds.
    pub cost_ps: u64,
    /// The cost model that the plan was computed under.
    pub model: Model,
    /// Whether the plan exceeds the model's memory limit; it is then the plan with the least memory.
    pub over_memory: bool,
    warned: AtomicBool,
    programs: Mutex<BTreeMap<usize, Arc<RankProgram>>>,
}

impl BoxingPlan {
    /// Returns true at the first call for a plan that exceeds its memory limit, so that a warning is printed once.
    pub fn warn_of_memory(&self) -> bool {
        self.over_memory && !self.warned.swap(true, Relaxed)
    }

    /// Whether the plan changes no shard and sends nothing.
    pub fn is_identity(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the work of one rank; cached.
    pub fn program(&self, rank: usize) -> Arc<RankProgram> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if programs.len() >= PROGRAMS && !programs.contains_key(&rank) {
            programs.clear();
        }
        Arc::clone(programs.entry(rank).or_insert_with(|| Arc::new(self.make_program(rank))))
    }

    /// Works the program of one rank out, which is not remembered.
    pub(super) fn make_program(&self, rank: usize) -> RankProgram {
        let size =
            |l: &Layout| l.placement.position(rank).map(|p| shard_box(&self.shape, &l.placement, &l.sbp, p).size);
        RankProgram {
            src: size(&self.src),
            dst: size(&self.dst),
            steps: self.steps.iter().map(|s| s.op.kind().program(&self.at(s), rank)).collect(),
        }
    }

    /// Returns the peak bytes on the rank with the largest shards, not counting source and destination shards: shards between steps,
    /// and buffers for packing, unpacking and receiving.
    pub fn extra_bytes(&self) -> u64 {
        extra_memory(&self.shape, self.dtype.size() as u64, &self.steps)
    }

    /// Returns the peak bytes of a rank: the largest source and destination shards, and [`extra_bytes`](Self::extra_bytes).
    pub fn peak_bytes(&self) -> u64 {
        let shard = |l: &Layout| volume(&shard_box(&self.shape, &l.placement, &l.sbp, 0));
        (shard(&self.src) + shard(&self.dst)) * self.dtype.size() as u64 + self.extra_bytes()
    }

    /// Returns the bytes sent between ranks, over all ranks and steps. Exact, also for uneven shards.
    pub fn bytes_sent(&self) -> u64 {
        self.steps.iter().map(|s| s.op.kind().sent_by_all(&self.at(s))).sum()
    }

    /// Returns the bytes that one rank sends. For all-reduces in chunks and broadcasts over hosts a transport may shift a few bytes
    /// between the ranks of a host, because its chunks start at cache lines; the sum over the ranks is exact.
    pub fn bytes_sent_by(&self, rank: usize) -> u64 {
        self.steps.iter().map(|s| s.op.kind().sent(&self.at(s), rank)).sum()
    }

    /// A step, for the kind that carries it out.
    fn at<'a>(&'a self, step: &'a BoxingStep) -> StepAt<'a> {
        StepAt {
            model: &self.model,
            shape: &self.shape,
            dtype: self.dtype,
            before: &step.before,
            after: &step.after,
            on_host: self.on_host(),
        }
    }

    /// Whether the bytes pass through host memory, as between device kinds. GPUs that stage through host memory are reported as if
    /// they communicated directly, because that is decided only when the plan runs.
    pub(super) fn on_host(&self) -> bool {
        self.src.placement.device() != Device::Cuda || self.dst.placement.device() != Device::Cuda
    }
}

impl fmt::Display for BoxingPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} {} -> {}", self.dtype, self.shape.as_slice(), self.src, self.dst.sbp)?;
        if self.src.placement != self.dst.placement {
            write!(f, " on {}", self.dst.placement)?;
        }
        writeln!(f, ": {} B, {:.1} us", self.bytes_sent(), self.cost_ps as f64 / 1e6)?;
        for step in &self.steps {
            writeln!(f, "  {step}")?;
        }
        Ok(())
    }
}

/// Plans remembered at most; then the older half is forgotten.
const MEMO: usize = 4096;

static PLANS: Mutex<FixedMap<Key, Known>> = Mutex::new(FixedMap::with_hasher(std::hash::BuildHasherDefault::new()));

/// Remembered answer of the planner.
#[derive(Clone)]
enum Known {
    Plan(Arc<BoxingPlan>),
    /// Any plan costs more than this.
    MoreThan(u64),
}

fn plans() -> MutexGuard<'static, FixedMap<Key, Known>> {
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// With room for one more.
fn plans_to_fill() -> MutexGuard<'static, FixedMap<Key, Known>> {
    let mut plans = plans();
    if plans.len() >= MEMO {
        plans.drain(..MEMO / 2);
    }
    plans
}

/// Computes boxing plans under one cost model, and caches them.
///
/// [`plan`] uses the fixed constants. A rank executes boxings with the planner of its context, which has the measured constants
/// and the hosts of the ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planner {
    model: Model,
    /// Hash of the model: part of the key of the plans.
    id: u64,
}

impl Planner {
    /// Makes a planner for a cost model.
    pub fn new(model: Model) -> Planner {
        let mut h = FixedHasher::default();
        model.hash(&mut h);
        Planner { model, id: h.finish() }
    }

    /// Returns a lower bound of [`cost`](Self::cost) on one mesh. It is faster, because it makes no plan.
    pub fn least(&self, shape: &[usize], dtype: DType, placement: &Placement, src: &NdSbp, dst: &NdSbp) -> u64 {
        least(&self.model, shape, dtype.size() as u64, placement, src, dst)
    }

    /// Returns the cost model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns a hash of the cost model, with the hosts of the ranks.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the cheapest plan from `src` to `dst`, the same on every rank.
    ///
    /// # Errors
    /// If a layout does not fit the shape or dtype (see [`check_layout`]). Every pair of valid layouts has a plan.
    pub fn plan(&self, shape: &[usize], dtype: DType, src: &Layout, dst: &Layout) -> Result<Arc<BoxingPlan>> {
        if let Some(Known::Plan(found)) = self.known(shape, dtype, src, dst) {
            return Ok(found);
        }
        let layouts = Asked(self.id, shape, dtype, src, dst);
        layouts.check()?;
        Ok(self.remember(&layouts, search::cheapest(&self.model, shape, dtype, src, dst)))
    }

    /// The remembered answer to an earlier question, if there is one.
    fn known(&self, shape: &[usize], dtype: DType, src: &Layout, dst: &Layout) -> Option<Known> {
        plans().get(&Asked(self.id, shape, dtype, src, dst)).cloned()
    }

    /// Makes a plan of what was found. Another thread may have planned the same meanwhile: all get the one that came first.
    fn remember(&self, asked: &Asked<'_>, CheapestPath { steps, over_memory }: CheapestPath) -> Arc<BoxingPlan> {
        let Asked(_, shape, dtype, src, dst) = *asked;
        let plan = Arc::new(BoxingPlan {
            shape: shape.into(),
            dtype,
            src: src.clone(),
            dst: dst.clone(),
            cost_ps: search::price(&steps),
            steps,
            model: self.model,
            over_memory,
            warned: AtomicBool::new(false),
            programs: Mutex::default(),
        });
        let mut plans = plans_to_fill();
        match plans.entry(asked.key()).or_insert_with(|| Known::Plan(Arc::clone(&plan))) {
            Known::Plan(first) => Arc::clone(first),
            known => {
                *known = Known::Plan(Arc::clone(&plan));
                plan
            }
        }
    }

    /// Returns the predicted time of the cheapest plan from `src` to `dst`, in picoseconds.
    ///
    /// # Errors
    /// Those of [`plan`](Self::plan).
    pub fn cost(&self, shape: &[usize], dtype: DType, src: &Layout, dst: &Layout) -> Result<u64> {
        Ok(self.plan(shape, dtype, src, dst)?.cost_ps)
    }

    /// Returns [`cost`](Self::cost) if it is `most` at most, otherwise none. To know that it is more takes less time.
    ///
    /// # Errors
    /// Those of [`plan`](Self::plan).
    pub(super) fn cost_within(
        &self,
        (shape, dtype): (&[usize], DType),
        src: &Layout,
        dst: &Layout,
        most: u64,
    ) -> Result<Option<u64>> {
        match self.known(shape, dtype, src, dst) {
            Some(Known::Plan(plan)) => return Ok(Some(plan.cost_ps).filter(|ps| *ps <= most)),
            Some(Known::MoreThan(ps)) if ps >= most => return Ok(None),
            _ => {}
        }
        let asked = Asked(self.id, shape, dtype, src, dst);
        asked.check()?;
        Ok(match search::cheapest_within(&self.model, shape, dtype, (src, dst), most) {
            Some(found) => Some(self.remember(&asked, found).cost_ps),
            None => {
                let mut plans = plans_to_fill();
                match plans.entry(asked.key()).or_insert(Known::MoreThan(most)) {
                    Known::MoreThan(ps) => *ps = most.max(*ps),
                    Known::Plan(_) => {}
                }
                None
            }
        })
    }
}

impl Default for Planner {
    fn default() -> Planner {
        Planner::new(Model::default())
    }
}

/// Ranks whose programs a plan keeps: those of one process. Dry runs come as one rank after another of thousands.
const PROGRAMS: usize = 64;

static DEFAULT: LazyLock<Planner> = LazyLock::new(Planner::default);

#[derive(PartialEq, Eq)]
struct Key {
    planner: u64,
    shape: Dims,
    dtype: DType,
    src: Layout,
    dst: Layout,
}

/// A key as a planner is asked: looking up allocates nothing.
struct Asked<'a>(u64, &'a [usize], DType, &'a Layout, &'a Layout);

impl Asked<'_> {
    fn key(&self) -> Key {
        let Asked(planner, shape, dtype, src, dst) = *self;
        Key { planner, shape: shape.into(), dtype, src: src.clone(), dst: dst.clone() }
    }

    /// Whether these are layouts of such a tensor.
    fn check(&self) -> Result<()> {
        [self.3, self.4].into_iter().try_for_each(|l| check_layout(self.1, self.2, &l.placement, &l.sbp))
    }
}

impl Hash for Asked<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
        self.1.hash(state);
        self.2.hash(state);
        self.3.hash(state);
        self.4.hash(state);
    }
}
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Asked(self.planner, &self.shape, self.dtype, &self.src, &self.dst).hash(state);
    }
}
impl Equivalent<Key> for Asked<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        let Asked(planner, shape, dtype, src, dst) = *self;
        planner == key.planner && *shape == *key.shape && dtype == key.dtype && *src == key.src && *dst == key.dst
    }
}

/// Returns the cheapest plan from `src` to `dst` under the fixed constants, the same on every rank and machine.
///
/// ```
/// use oflow::{boxing::{Layout, plan}, kernels::DType, placement::{Device, Placement}, sbp};
/// let mesh = Placement::of_world(Device::Cpu, 4)?.mesh(&[("tp", 4)])?;
/// let p = plan(&[8, 8], DType::F32, &Layout::new(&mesh, sbp![P]), &Layout::new(&mesh, sbp![B]))?;
/// assert_eq!(p.steps[0].to_string(), "all-reduce(sum) along tp: [P(sum)] -> [B]");
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// Those of [`Planner::plan`].
pub fn plan(shape: &[usize], dtype: DType, src: &Layout, dst: &Layout) -> Result<Arc<BoxingPlan>> {
    DEFAULT.plan(shape, dtype, src, dst)
}

/// Returns the predicted time of [`plan`], in picoseconds.
///
/// # Errors
/// Those of [`Planner::plan`].
pub fn cost(shape: &[usize], dtype: DType, src: &Layout, dst: &Layout) -> Result<u64> {
    DEFAULT.cost(shape, dtype, src, dst)
}

/// [`cost`] if it is `most` at most, otherwise none.
pub(super) fn cost_within(t: (&[usize], DType), src: &Layout, dst: &Layout, most: u64) -> Result<Option<u64>> {
    DEFAULT.cost_within(t, src, dst, most)
}
