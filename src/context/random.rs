//! Random generators: a seed and the ordinal of the next random op. Kernels compute the numbers with Philox from seed, ordinal
//! and logical index, so placement and SBP do not change them (I10).

use super::rank::current;
use crate::error::{Error, Result};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// State of a random generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratorState {
    /// Key of Philox, the random generator.
    pub seed: u64,
    /// Ordinal of the next random op.
    pub ordinal: u64,
}

impl GeneratorState {
    /// Makes the state of a generator at its start.
    pub fn new(seed: u64) -> GeneratorState {
        GeneratorState { seed, ordinal: 0 }
    }
    /// Returns (seed, ordinal) for one random op, and advances the ordinal.
    pub(crate) fn draw(&mut self) -> (u64, u64) {
        let o = self.ordinal;
        self.ordinal += 1;
        (self.seed, o)
    }
}

/// An independent stream of random numbers, like PyTorch's `torch.Generator`.
///
/// The numbers of an op are a function of the seed, the number of ops that have drawn before, and the logical index of each element. So
/// they do not depend on placement or SBP, and for a local tensor they are the same on every rank. A clone shares the stream.
///
/// The state is part of the program: each rank makes its own generator with the same seed, and all ranks draw for the same global
/// ops. Ranks whose states differ are reported as diverged at the next collective. A dry run draws without advancing. A graph
/// draws at each run what its calls would draw.
///
/// ```
/// use oflow::{Generator, prelude::*};
/// let g = Generator::new(7);
/// let x = rand([3], Device::Cpu.generator(&g))?;
/// g.manual_seed(7);
/// assert_eq!(rand([3], Device::Cpu.generator(&g))?.to_vec::<f32>()?, x.to_vec::<f32>()?);
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Clone)]
pub struct Generator(Arc<Mutex<Stream>>);

struct Stream {
    state: GeneratorState,
    /// The first rank that has drawn from the stream; `None` before the first draw.
    rank: Option<usize>,
}

impl Generator {
    /// Makes a generator with this seed, at the start of its stream.
    pub fn new(seed: u64) -> Generator {
        Generator(Arc::new(Mutex::new(Stream { state: GeneratorState::new(seed), rank: None })))
    }
    /// Whether both are the same stream.
    pub(crate) fn is(&self, other: &Generator) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
    fn stream(&self) -> MutexGuard<'_, Stream> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// Restarts the stream with this seed. Returns the generator.
    pub fn manual_seed(&self, seed: u64) -> &Generator {
        self.stream().state = GeneratorState::new(seed);
        self
    }
    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.state().seed
    }
    /// Returns the state, for [`Generator::set_state`].
    pub fn state(&self) -> GeneratorState {
        self.stream().state
    }
    /// Sets the state: the next op draws as it would have after [`Generator::state`].
    ///
    /// # Errors
    /// If the ordinal is not below 2^63.
    pub fn set_state(&self, state: GeneratorState) -> Result<()> {
        check_ordinal(state)?;
        self.stream().state = state;
        Ok(())
    }
    /// Draws (seed, ordinal) for one random op.
    ///
    /// # Errors
    /// If another rank of this process has drawn from the generator: the two would get different numbers.
    pub(crate) fn draw(&self) -> Result<(u64, u64)> {
        let (ctx, mut stream) = (current(), self.stream());
        if ctx.is_dry() {
            return Ok((stream.state.seed, stream.state.ordinal));
        }
        match (ctx.is_rank().then(|| ctx.rank()), stream.rank) {
            (Some(me), Some(other)) if me != other => {
                return Err(Error::context(format!("rank {me} draws from the generator of rank {other}"))
                    .help("each rank makes its own generator, with the same seed, inside its closure"));
            }
            (me, before) => stream.rank = me.or(before),
        }
        Ok(stream.state.draw())
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.state();
        write!(f, "generator(seed={}, ordinal={})", s.seed, s.ordinal)
    }
}

/// States of a rank's own generators, from which it draws where no [`Generator`] is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankGenerators {
    /// Of global tensors, the same on every rank.
    pub global: GeneratorState,
    /// Of local tensors, another one on each rank.
    pub local: GeneratorState,
}

/// Returns the states of this rank's generators, for [`set_rank_generators`].
///
/// ```
/// use oflow::prelude::*;
/// let before = oflow::rank_generators();
/// let x = rand([3], Device::Cpu)?;
/// oflow::set_rank_generators(before)?;
/// assert_eq!(rand([3], Device::Cpu)?.to_vec::<f32>()?, x.to_vec::<f32>()?);
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn rank_generators() -> RankGenerators {
    let ctx = current();
    RankGenerators { global: ctx.generator(), local: ctx.local_generator() }
}

/// Sets the states of this rank's generators: the next ops draw as they would have after [`rank_generators`]. Every rank sets what it had
/// itself; the states of global tensors must be the same.
///
/// # Errors
/// If an ordinal is not below 2^63.
pub fn set_rank_generators(to: RankGenerators) -> Result<()> {
    check_ordinal(to.global)?;
    check_ordinal(to.local)?;
    let ctx = current();
    ctx.set_generator(to.global);
    ctx.set_local_generator(to.local);
    Ok(())
}

fn check_ordinal(state: GeneratorState) -> Result<()> {
    match i64::try_from(state.ordinal) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::argument(format!("{} is not an ordinal of a random op", state.ordinal))),
    }
}

/// Seeds the generators of this rank's context: the one of global tensors with `seed`, the one of local tensors with a seed
/// derived from `seed` and the rank. Call it with the same seed on every rank.
pub fn manual_seed(seed: u64) {
    let ctx = current();
    ctx.seed(seed);
}
