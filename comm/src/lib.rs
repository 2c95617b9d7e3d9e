//! Collectives between ranks: one trait, [`Communicator`], over several transports.
//!
//! The crate knows ranks, groups and bytes, and nothing of tensors, SBP or ops. Every collective is written once, in
//! [`collectives`], over the small trait [`transport::Transport`]. Its implementations are [`sim`] (threads of one process; finds
//! deadlocks), [`shm`] (processes of one host), [`hosts`] (shared memory within a host, [`tcp`] between hosts) and `mpi` (cargo
//! feature). [`nccl`] has the collectives between GPUs; its members find each other through one of these transports.
//!
//! # Within a host
//!
//! Nothing is copied before a collective: a boxing reads the source and writes the destination. Ranks pass bytes through
//! outbox buffers in shared memory ([`shm`]). A long message goes in pieces of at most 256 KiB a post (`piece_bytes` in
//! `collectives.rs`). A piece is written, read and reduced while it is in the caches, so the source is read from
//! main memory once and the destination is written there once. A destination of 8 MiB or more is written past the caches, while the data that
//! is read next is prefetched. If there is a core for every rank, a waiting rank polls up to 4,000 times before it
//! sleeps, fewer times after long waits, and hardly at all where ranks share cores.
//!
//! # Between hosts
//!
//! Ranks exchange the addresses at which they listen over the control plane, and open one connection for each pair of
//! ranks on different hosts. Both ends prove that they know the token of the job. [`hosts`] is one transport over shared
//! memory and connections, chosen by reader, so every collective runs on it. There is no thread for communication: a rank
//! that waits for any rank also reads and writes its connections. In a direct collective a post is sent from the caller's
//! buffer and received in it (`lent.rs`), unless ranks of the same host read the post too.
//!
//! A link is lost when it closes without a goodbye, carries a damaged frame, or when the peer's kernel has not answered
//! for longer than the longest outage (`tcp/outage.rs`). A peer that computes is not lost, because its kernel answers. A
//! link that acknowledges bytes and delivers none shows in the counts of both ends only: heartbeats carry these while a
//! rank waits, and the control service judges.
//!
//! Long collectives of groups with several members on a host go by hosts (`hierarchical`): each byte crosses once from one host
//! to another and spreads over shared memory. Sums go along a chain of hosts in member order, so their bits are those of
//! one host. [`oflow_base::host_hierarchy`] assigns the work. Communicators, prices and the byte counts of plans all use it;
//! hosts may have unequal numbers of ranks. Barriers, and short messages of more than 64 members, go up a binomial tree
//! and down again (`tree`). Other short messages, and groups whose members are not consecutive host by host, go directly.
//! `tests/boxing/hosts.rs` compares the bits with those of one host, and counted bytes with predicted bytes.

mod all_reduce;
mod call;
mod clock;
pub mod collectives;
mod direct;
mod hierarchical;
pub mod hosts;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod nccl;
pub mod proof;
pub mod shm;
pub mod sim;
pub mod tcp;
mod team;
pub mod transport;
mod tree;
pub mod zero_copy;

#[cfg(test)]
mod oracle;

pub use call::{Collective, CollectiveCall, Group};
pub use clock::now_ns;
pub use collectives::Collectives;
pub use nccl::{LinkEnd, Pulse};
pub use oflow_kernels::{DType, ReduceOp};
pub use team::run_team;

use oflow_base::error::NameScope;
use oflow_base::{CallSite, Result};
use std::sync::Arc;

/// The global op that issued a collective. Members compare tags before data moves: if they differ, the ranks get an error that
/// names both ops, instead of wrong data or a deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Ordinal of the op in the dispatch stream, the same on every rank.
    pub ordinal: u64,
    /// Rolling hash of the dispatch stream up to and including this op.
    pub hash: u64,
    /// Name of the op, for the error.
    pub op: &'static str,
    /// Source file of the call, for the error.
    pub file: &'static str,
    /// Line of the call, for the error.
    pub line: u32,
    /// Name scope of the call; peers are not told.
    pub scope: NameScope,
}

impl Tag {
    /// Where the call stands.
    pub fn site(&self) -> CallSite {
        CallSite { file: self.file, line: self.line, scope: self.scope }
    }
}

/// Counters of a rank's communication: bytes sent, calls, and time waited for late members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Payload bytes sent to other ranks.
    pub bytes_sent: u64,
    /// Payload bytes sent to ranks of other hosts, if the transport knows hosts; else 0.
    pub between_hosts: u64,
    /// Collectives and point-to-point batches issued.
    pub calls: u64,
    /// Nanoseconds from this rank's start of a call to the last start among the members whose bytes reached it, directly or
    /// through others, summed over calls. The remaining time of a call is communication. A rank that only sends does not learn
    /// when its readers started.
    pub waited_ns: u64,
}

/// A rank's collectives. A call blocks until this rank's part is done and its buffers may be reused.
///
/// All members of a group must issue the same calls in the same order; a rank issues all its calls, over whatever groups,
/// in one total order. Reductions run in member order (0, 1, 2 …) on every rank, so every member gets the same bits. f16 and
/// bf16 are accumulated in f32 and rounded once.
///
/// An implementation carries out [`run`](Self::run) and [`exchange`](Self::exchange); the methods named for one collective
/// make its [`CollectiveCall`].
pub trait Communicator: Send + Sync {
    /// Returns the number of this rank.
    fn rank(&self) -> usize;
    /// Returns the number of ranks.
    fn world(&self) -> usize;
    /// Runs a collective of a group.
    fn run(&self, group: &Group, tag: &Tag, call: CollectiveCall<'_>) -> Result<()>;
    /// Waits until every member of the group has called this, by [`CollectiveCall::Barrier`].
    fn barrier(&self, group: &Group, tag: &Tag) -> Result<()> {
        self.run(group, tag, CollectiveCall::Barrier)
    }
    /// Copies the bytes of member `root` to all members, by [`CollectiveCall::Broadcast`].
    fn broadcast(&self, group: &Group, tag: &Tag, root: usize, buffer: &mut [u8]) -> Result<()> {
        self.run(group, tag, CollectiveCall::Broadcast { root, buffer })
    }
    /// Reduces the contributions of all members into each one's destination, by [`CollectiveCall::AllReduce`].
    fn all_reduce(
        &self,
        group: &Group,
        tag: &Tag,
        send: &[u8],
        receive: &mut [u8],
        dtype: DType,
        op: ReduceOp,
    ) -> Result<()> {
        self.run(group, tag, CollectiveCall::AllReduce { send, receive, dtype, op })
    }
    /// Concatenates the parts of all members on each one, by [`CollectiveCall::AllGather`].
    fn all_gather(&self, group: &Group, tag: &Tag, send: &[u8], receive: &mut [u8], counts: &[usize]) -> Result<()> {
        self.run(group, tag, CollectiveCall::AllGather { send, receive, counts })
    }
    /// Sends and receives a batch of point-to-point messages `(world rank, bytes)` without deadlock. There is at most one message
    /// in each direction between two ranks. Only the two ends of each message take part; a rank without messages may pass two
    /// empty lists.
    fn exchange(&self, tag: &Tag, sends: &[(usize, &[u8])], recvs: &mut [(usize, &mut [u8])]) -> Result<()>;
    /// Returns the counters so far.
    fn traffic(&self) -> Traffic;
    /// Adds payload bytes that were sent between GPUs, past this communicator.
    fn count_sent(&self, bytes: u64);
    /// Returns a handle that tells, on any thread and while collectives run, whether the world has failed.
    fn pulse(&self) -> Arc<dyn Pulse>;
    /// Returns the log of collectives between GPUs, if there is one.
    fn log(&self) -> Option<Arc<dyn CallLog>> {
        None
    }
}

/// The log of a rank's collectives between GPUs. These are enqueued on a GPU's stream, which executes them later.
pub trait CallLog: Send + Sync {
    /// Records that a collective has been enqueued, and returns its number. For an exchange `ranks` are this rank and the other
    /// ends, in order. `bytes`: input or output, whichever is more.
    fn queued(&self, kind: Collective, tag: &Tag, ranks: &[usize], bytes: usize) -> u64;
    /// Records that a collective has started on the GPU.
    fn arrived(&self, number: u64);
    /// Records that a collective has ended on the GPU.
    fn ended(&self, number: u64, failed: bool);
}
