//! Events of a timeline.

use crate::boxing::BoxingPlan;
use crate::error::CallSite;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// Something that a thread did.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Start, in nanoseconds of the host's monotonic clock.
    pub(crate) begin: u64,
    /// End on the same clock.
    pub(crate) end: u64,
    /// The user's line, with its name scope.
    pub(crate) site: CallSite,
    pub(crate) what: What,
}

impl Event {
    /// Nanoseconds from start to end.
    pub(crate) fn ns(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// Kinds of events. Rare ones are boxed: most events are calls and kernels.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A call of an op, from its arguments to its results: dispatch, and the kernels and boxings that ran on the thread.
    Call { op: &'static str, backward: bool },
    /// A kernel of an op on the thread, or on the stream of a GPU.
    Kernel(&'static str),
    /// A kernel of an op given to the stream of a GPU, where it runs later.
    Launch(&'static str),
    /// A pass of `backward`.
    Backward,
    /// A collective of the host, or an exchange of messages.
    Collective(Box<Collective>),
    /// A boxing, or its share of several that ran together; its collectives are events of their own.
    Boxing(Box<Boxed>),
    /// The thread waited until a stream had written or read a tensor.
    Wait,
    /// The program waited for a batch of that many rows.
    BatchWait(usize),
    /// A batch was made, which took the thread so much processor time.
    Batch { rows: usize, cpu_ns: u64 },
    /// A checkpoint was saved or loaded: what.
    Checkpoint(&'static str),
    /// A run of a captured graph.
    Graph,
    /// The end of a step of training, which began at `since`. An event at its end comes after all that happened in it.
    Step { number: u64, since: u64 },
    /// Under a name of the program.
    Span(&'static str),
    /// Bytes in use of the allocator of a device: all of them, or those for a use, which has a name.
    Memory { device: &'static str, used_for: &'static str, bytes: u64 },
}

/// A collective as one rank saw it.
#[derive(Clone, Debug)]
pub(crate) struct Collective {
    /// Kind of the collective, as `all_reduce`.
    pub(crate) kind: &'static str,
    /// The op that needed it.
    pub(crate) op: &'static str,
    /// Number of members.
    pub(crate) ranks: usize,
    /// Bytes of this rank's part.
    pub(crate) bytes: u64,
    /// From its start to the last arrival of a member whose bytes reached this rank.
    pub(crate) waited_ns: u64,
    /// Numbers that the members have in common: one of a collective, one for each peer of an exchange.
    pub(crate) flows: SmallVec<[u64; 2]>,
}

/// Tensor and layouts of a boxing.
#[derive(Clone, Debug)]
pub(crate) enum Moved {
    /// A change of layout.
    Plan(Arc<BoxingPlan>),
    /// An exchange without a plan, by name.
    Exchange(&'static str),
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moved::Plan(p) = self else {
            let Moved::Exchange(name) = self else { return Ok(()) };
            return f.write_str(name);
        };
        let (from, to) = (&p.src.sbp, &p.dst.sbp);
        write!(f, "{}{:?} {from} -> {to}", p.dtype, p.shape.as_slice())
    }
}

/// A boxing that is done on this rank.
#[derive(Clone, Debug)]
pub(crate) struct Boxed {
    /// The op that needed it.
    pub(crate) op: &'static str,
    /// Whether it happened in backward.
    pub(crate) backward: bool,
    pub(crate) moved: Moved,
    /// Bytes that all ranks together sent.
    pub(crate) bytes: u64,
    /// Time without the waiting for late ranks, as the comm record has it.
    pub(crate) moving_ns: u64,
    /// Number of boxings that ran together, with this one.
    pub(crate) together: usize,
}

impl What {
    /// Name of the kind, by which timelines can be searched.
    pub(crate) fn category(&self) -> &'static str {
        match self {
            What::Call { .. } => "op",
            What::Kernel(_) => "kernel",
            What::Launch(_) => "launch",
            What::Backward => "backward",
            What::Collective(_) => "collective",
            What::Boxing(_) => "boxing",
            What::Wait => "wait",
            What::BatchWait(_) | What::Batch { .. } => "data",
            What::Checkpoint(_) => "checkpoint",
            What::Graph => "graph",
            What::Step { .. } => "step",
            What::Span(_) => "span",
            What::Memory { .. } => "memory",
        }
    }
}
