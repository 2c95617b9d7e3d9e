//! Moments of a call at which somebody looks at it: the one word that a call reads to find out whether it is observed.
//!
//! Modes of the thread (a policy that denies boxings, the search for NaN) and the observers that scopes open (hooks, lists of calls,
//! tensors saved for backward) each have their bits. The interpreter has the registry of observers.

use std::cell::Cell;

/// A set of moments of a call.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moments(u8);

impl Moments {
    /// No moment.
    pub(crate) const NONE: Moments = Moments(0);
    /// The inputs are final; nothing is decided.
    pub(crate) const BEFORE: Moments = Moments(1);
    /// The plan is known; nothing is issued. Calls on global tensors only.
    pub(crate) const PLANNED: Moments = Moments(2);
    /// The call, or a boxing of one of its inputs, has been issued; it is not recorded yet.
    pub(crate) const ISSUED: Moments = Moments(4);
    /// A tensor is saved for backward.
    pub(crate) const SAVED: Moments = Moments(8);
    /// The results are recorded; nobody has seen them.
    pub(crate) const MADE: Moments = Moments(16);
    /// The results go back to the caller.
    pub(crate) const RESULTS: Moments = Moments(32);
    /// As `ISSUED`, of every call and boxing, also one that writes in place or is not shown to other observers: a graph is captured.
    pub(crate) const CAPTURED: Moments = Moments(64);

    /// All moments at which an observer may look.
    pub(crate) const ANY: Moments = Moments(127);

    /// The moments of both sets.
    pub(crate) const fn and(self, other: Moments) -> Moments {
        Moments(self.0 | other.0)
    }

    /// Whether both sets have a moment in common.
    #[inline]
    pub(crate) fn meets(self, other: Moments) -> bool {
        self.0 & other.0 != 0
    }

    /// The moments of this set that the other one lacks.
    pub(crate) fn without(self, other: Moments) -> Moments {
        Moments(self.0 & !other.0)
    }
}

thread_local! {
    /// Observed by modes, and by the observers of scopes.
    static OBSERVED: Cell<(Moments, Moments)> = const { Cell::new((Moments::NONE, Moments::NONE)) };
}

/// Whether anybody observes calls of this thread at one of these moments.
#[inline]
pub(crate) fn is_observed(at: Moments) -> bool {
    let (modes, scopes) = OBSERVED.get();
    modes.and(scopes).meets(at)
}

/// Says whether a mode of the thread observes calls at a moment. Each mode has a moment of its own.
pub(super) fn observe_by_mode(at: Moments, on: bool) {
    let (modes, scopes) = OBSERVED.get();
    OBSERVED.set((if on { modes.and(at) } else { modes.without(at) }, scopes));
}

/// Says at which moments observers of scopes look.
pub(crate) fn observe_by_scopes(at: Moments) {
    OBSERVED.set((OBSERVED.get().0, at));
}
