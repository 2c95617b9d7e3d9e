//! Context in which a graph is captured: that of a dry run, which knows the context of the thread that captures.
//!
//! Random numbers are drawn symbolically. The seed of a draw stands for its generator, the ordinal counts the draws of the capture; a run of
//! the graph puts the generator's seed and its ordinal in their place.

use crate::error::Error;
use std::sync::{Arc, Mutex};

/// Seeds of which the upper bits are these stand for the generator with the number in the lower 16 bits.
const SYMBOLIC: u64 = 0x6f66_6c6f_775f;

/// Seed that stands for the generator of global tensors.
pub(super) const GLOBAL_SEED: u64 = SYMBOLIC << 16;
/// Seed that stands for the generator of local tensors.
pub(super) const LOCAL_SEED: u64 = SYMBOLIC << 16 | 1;

/// The seed that stands for a generator of the program, by its number among those of a capture.
pub(crate) fn symbolic_seed(number: u16) -> u64 {
    SYMBOLIC << 16 | u64::from(number)
}

/// The number of the generator that a seed stands for; `None` of a seed that the program states.
pub(crate) fn generator_of_seed(seed: u64) -> Option<u16> {
    (seed >> 16 == SYMBOLIC).then_some(seed as u16)
}

/// The part of a context that only a capture has; `C` is the type of contexts.
pub(crate) struct CaptureCtx<C> {
    /// The context of the thread that captures.
    outer: Arc<C>,
    /// The first thing that the closure did and a graph cannot do, where the call itself had no way to tell.
    refused: Mutex<Option<Error>>,
}

impl<C> CaptureCtx<C> {
    /// A capture in that context.
    pub(super) fn new(outer: Arc<C>) -> CaptureCtx<C> {
        CaptureCtx { outer, refused: Mutex::default() }
    }
    /// The context of the thread that captures.
    pub(crate) fn outer(&self) -> &Arc<C> {
        &self.outer
    }
    /// Notes that the closure did what a graph cannot do.
    pub(crate) fn refuse(&self, error: Error) {
        self.refused.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
    }
    /// Takes the error of what the closure did and a graph cannot do.
    pub(crate) fn refused(&self) -> Option<Error> {
        self.refused.lock().unwrap_or_else(|e| e.into_inner()).take()
    }
}
