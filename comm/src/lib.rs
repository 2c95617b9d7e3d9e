//! Moving bytes between ranks: one trait, several transports.
//!
//! Knows ranks, groups and bytes; knows nothing of tensors, SBP or ops. Start at [`Communicator`]. Every collective is
//! written once, in [`collectives`], over the small [`transport::Transport`]; [`sim`] (threads of one process, finds
//! deadlocks), [`shm`] (processes of one host) and [`hosts`] (shared memory within hosts, [`tcp`] between them) are
//! transports, and so is `mpi` (cargo feature). [`nccl`] moves what lies on GPUs, and finds its members
//! through one of them.

mod across;
mod clock;
pub mod collectives;
pub mod hosts;
pub mod lent;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod nccl;
pub mod shm;
pub mod sim;
pub mod tcp;
mod team;
pub mod transport;

#[cfg(test)]
mod oracle;

pub use clock::now_ns;
pub use collectives::Collectives;
pub use nccl::{LinkEnd, Pulse};
pub use oflow_kernels::{DType, ReduceOp};
pub use team::run_team;

use oflow_base::Result;
use std::sync::Arc;

/// Ranks that take part in one collective, in an order that all of them know alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// World ranks; the index in this list is the member number.
    pub ranks: Vec<usize>,
    /// This rank's member number.
    pub me: usize,
}

/// What a collective belongs to. Compared among the members before data moves: ranks that issued different ops get an
/// error that names both, instead of wrong data or a hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The ordinal of the global op in the dispatch stream, the same on every rank.
    pub ordinal: u64,
    /// Rolling hash of the dispatch stream up to and including this op.
    pub hash: u64,
    /// The op, for the message.
    pub op: &'static str,
    /// The user's file, for the message.
    pub file: &'static str,
    /// The user's line, for the message.
    pub line: u32,
}

/// The calls of a [`Communicator`], for checks and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Collective {
    /// [`Communicator::barrier`].
    Barrier,
    /// [`Communicator::broadcast`].
    Broadcast,
    /// [`Communicator::all_reduce`].
    AllReduce,
    /// [`Communicator::all_gather`].
    AllGather,
    /// [`Communicator::reduce_scatter`].
    ReduceScatter,
    /// [`Communicator::all_to_all`].
    AllToAll,
    /// [`Communicator::exchange`].
    Exchange,
}

impl Collective {
    const NAMES: [&str; 7] =
        ["barrier", "broadcast", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "exchange"];

    /// The name of the method.
    pub fn name(self) -> &'static str {
        Collective::NAMES[self as usize]
    }

    /// The name for a number that another process sent.
    pub fn name_of(number: u8) -> &'static str {
        Collective::NAMES.get(number as usize).copied().unwrap_or("an unknown collective")
    }
}

/// Bytes that crossed the transport from this rank to others, how often, and how long this rank waited for late ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Payload bytes that other ranks took from this one.
    pub bytes_sent: u64,
    /// Those of them that ranks of other hosts took, where the transport knows hosts.
    pub between_hosts: u64,
    /// Collectives and point-to-point batches issued.
    pub calls: u64,
    /// Nanoseconds from this rank's arrival at its calls to the last arrival among the members whose bytes reached it,
    /// directly or through others. What a call takes beyond that is communication. A rank that only sends does not learn
    /// when its readers came.
    pub waited_ns: u64,
}

/// One rank's end of a transport. Calls block until this rank's part is done and its buffers may be reused.
///
/// All members of a group must issue the same calls in the same order; a rank issues all its calls, over whatever groups,
/// in one total order. Counts are in bytes and may be zero or differ between members. Reductions run in member order
/// (0, 1, 2 …) whatever the rank, so every member gets the same bits; f16 and bf16 accumulate in f32 and round once.
pub trait Communicator: Send + Sync {
    /// This rank.
    fn rank(&self) -> usize;
    /// Number of ranks.
    fn world(&self) -> usize;
    /// Waits until every member has come here.
    fn barrier(&self, group: &Group, tag: &Tag) -> Result<()>;
    /// Member `root`'s bytes reach everyone.
    fn broadcast(&self, group: &Group, tag: &Tag, root: usize, buf: &mut [u8]) -> Result<()>;
    /// `buf` becomes the reduction of all members' `buf`.
    fn all_reduce(&self, group: &Group, tag: &Tag, buf: &mut [u8], dtype: DType, op: ReduceOp) -> Result<()>;
    /// `recv` becomes the members' `send` one after another; `counts[i]` is the length of member i's.
    fn all_gather(&self, group: &Group, tag: &Tag, send: &[u8], recv: &mut [u8], counts: &[usize]) -> Result<()>;
    /// `send` is cut by `counts`; `recv` becomes the reduction over the members of the part that belongs to this one.
    #[allow(clippy::too_many_arguments)]
    fn reduce_scatter(
        &self,
        group: &Group,
        tag: &Tag,
        send: &[u8],
        recv: &mut [u8],
        counts: &[usize],
        dtype: DType,
        op: ReduceOp,
    ) -> Result<()>;
    /// `send` cut by `send_counts`: part j goes to member j. `recv` cut by `recv_counts`: part i came from member i.
    fn all_to_all(
        &self,
        group: &Group,
        tag: &Tag,
        send: &[u8],
        send_counts: &[usize],
        recv: &mut [u8],
        recv_counts: &[usize],
    ) -> Result<()>;
    /// A batch of point-to-point messages, deadlock-free within the batch: `(world rank, bytes)`. At most one message per
    /// direction between two ranks; a rank without a counterpart may pass two empty lists. Only the two ends of each
    /// message take part.
    fn exchange(&self, tag: &Tag, sends: &[(usize, &[u8])], recvs: &mut [(usize, &mut [u8])]) -> Result<()>;
    /// Bytes and calls so far.
    fn traffic(&self) -> Traffic;
    /// Counts payload bytes that reached other ranks by a way beside this one, between GPUs.
    fn count_sent(&self, bytes: u64);
    /// Tells whether the world is well, on any thread, while collectives run.
    fn pulse(&self) -> Arc<dyn Pulse>;
    /// Where collectives between GPUs are written down, if anywhere.
    fn log(&self) -> Option<Arc<dyn CallLog>> {
        None
    }
}

/// What a rank writes down of collectives that go another way than through its [`Communicator`]: they are put on a stream of a
/// GPU, which comes to them later.
pub trait CallLog: Send + Sync {
    /// One has been put on a stream. Of exchanges the ranks are the other ends, in order, and this one; the bytes are those
    /// that go in or those that come out, whichever are more. Returns its number.
    fn queued(&self, kind: Collective, tag: &Tag, ranks: &[usize], bytes: usize) -> u64;
    /// The stream has come to the one of that number.
    fn arrived(&self, number: u64);
    /// It has ended.
    fn ended(&self, number: u64, failed: bool);
}
