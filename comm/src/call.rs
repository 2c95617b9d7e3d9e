//! A collective as a value: its group's members agree on one [`CollectiveCall`], and a [`Communicator`](crate::Communicator) runs it.
//!
//! What a collective takes is written here and nowhere else. Whoever hands a call on (records it, stages it through the host,
//! moves it to a GPU) hands on the value; whoever carries it out matches on it once.

use oflow_base::{Error, Result};
use oflow_kernels::{DType, ReduceOp};

/// The ranks that take part in a collective, in the same order on all of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// World ranks; the index in this list is the member number.
    pub ranks: Vec<usize>,
    /// This rank's member number.
    pub me: usize,
}

/// The kinds of calls of a [`Communicator`](crate::Communicator), with the numbers by which processes tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Collective {
    /// The kind of [`CollectiveCall::Barrier`].
    Barrier,
    /// The kind of [`CollectiveCall::Broadcast`].
    Broadcast,
    /// The kind of [`CollectiveCall::AllReduce`].
    AllReduce,
    /// The kind of [`CollectiveCall::AllGather`].
    AllGather,
    /// The kind of [`CollectiveCall::ReduceScatter`].
    ReduceScatter,
    /// The kind of [`CollectiveCall::AllToAll`].
    AllToAll,
    /// A batch of messages, [`Communicator::exchange`](crate::Communicator::exchange).
    Exchange,
}

impl Collective {
    const NAMES: [&str; 7] =
        ["barrier", "broadcast", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "exchange"];

    /// Returns the name of the method.
    pub fn name(self) -> &'static str {
        Collective::NAMES[self as usize]
    }

    /// Returns the name for a number that another process sent.
    pub fn name_of(number: u8) -> &'static str {
        Collective::NAMES.get(number as usize).copied().unwrap_or("an unknown collective")
    }
}

/// One collective of a group: its kind, its buffers and what is done with them.
///
/// `S` is a buffer that the call reads, `R` one that it writes: bytes of the host, unless something else is named. Counts are
/// bytes by member; they may be zero or differ between members.
#[derive(Clone, Copy)]
pub enum CollectiveCall<'a, S = &'a [u8], R = &'a mut [u8]> {
    /// Waits until every member has called this.
    Barrier,
    /// Copies `buffer` of member `root` to `buffer` of all members.
    Broadcast {
        /// Number of the member whose bytes are copied.
        root: usize,
        /// Source of the root, destination of the others.
        buffer: R,
    },
    /// `receive` becomes the reduction of all members' `send`, which is as long.
    AllReduce {
        /// This member's contribution.
        send: S,
        /// Destination of the reduction.
        receive: R,
        /// Element type of both buffers.
        dtype: DType,
        /// Reduction of the contributions.
        op: ReduceOp,
    },
    /// Concatenates the members' `send` into `receive`, in member order.
    AllGather {
        /// This member's part.
        send: S,
        /// Destination of all parts.
        receive: R,
        /// Bytes of each member's part.
        counts: &'a [usize],
    },
    /// Splits `send` into one part per member. `receive` becomes the reduction over the members of this member's part.
    ReduceScatter {
        /// This member's contribution to all parts.
        send: S,
        /// Destination of this member's part of the reduction.
        receive: R,
        /// Bytes of each member's part.
        counts: &'a [usize],
        /// Element type of both buffers.
        dtype: DType,
        /// Reduction of the contributions.
        op: ReduceOp,
    },
    /// Sends part j of `send` to member j, and receives part i of `receive` from member i.
    AllToAll {
        /// The parts for the members, one after another.
        send: S,
        /// Bytes for each member.
        send_counts: &'a [usize],
        /// Destination of the members' parts, one after another.
        receive: R,
        /// Bytes from each member.
        receive_counts: &'a [usize],
    },
}

impl<'a, S, R> CollectiveCall<'a, S, R> {
    /// Returns the kind of the call.
    pub fn kind(&self) -> Collective {
        match self {
            CollectiveCall::Barrier => Collective::Barrier,
            CollectiveCall::Broadcast { .. } => Collective::Broadcast,
            CollectiveCall::AllReduce { .. } => Collective::AllReduce,
            CollectiveCall::AllGather { .. } => Collective::AllGather,
            CollectiveCall::ReduceScatter { .. } => Collective::ReduceScatter,
            CollectiveCall::AllToAll { .. } => Collective::AllToAll,
        }
    }

    /// Returns the buffer that the call reads and the one that it writes. A broadcast has the latter only, a barrier none.
    pub fn buffers(&self) -> (Option<&S>, Option<&R>) {
        match self {
            CollectiveCall::Barrier => (None, None),
            CollectiveCall::Broadcast { buffer, .. } => (None, Some(buffer)),
            CollectiveCall::AllReduce { send, receive, .. }
            | CollectiveCall::AllGather { send, receive, .. }
            | CollectiveCall::ReduceScatter { send, receive, .. }
            | CollectiveCall::AllToAll { send, receive, .. } => (Some(send), Some(receive)),
        }
    }

    /// Returns the same call on other buffers: `read` makes the one that is read, `written` the one that is written.
    pub fn map<T, U>(self, read: impl FnOnce(S) -> T, written: impl FnOnce(R) -> U) -> CollectiveCall<'a, T, U> {
        match self {
            CollectiveCall::Barrier => CollectiveCall::Barrier,
            CollectiveCall::Broadcast { root, buffer } => CollectiveCall::Broadcast { root, buffer: written(buffer) },
            CollectiveCall::AllReduce { send, receive, dtype, op } => {
                CollectiveCall::AllReduce { send: read(send), receive: written(receive), dtype, op }
            }
            CollectiveCall::AllGather { send, receive, counts } => {
                CollectiveCall::AllGather { send: read(send), receive: written(receive), counts }
            }
            CollectiveCall::ReduceScatter { send, receive, counts, dtype, op } => {
                CollectiveCall::ReduceScatter { send: read(send), receive: written(receive), counts, dtype, op }
            }
            CollectiveCall::AllToAll { send, send_counts, receive, receive_counts } => {
                CollectiveCall::AllToAll { send: read(send), send_counts, receive: written(receive), receive_counts }
            }
        }
    }
}

impl CollectiveCall<'_> {
    /// Returns the bytes of the longer buffer.
    pub fn bytes(&self) -> usize {
        let (read, written) = self.buffers();
        read.map_or(0, |s| s.len()).max(written.map_or(0, |r| r.len()))
    }

    /// Checks a member's call: counts, lengths and the reduction.
    ///
    /// # Errors
    /// The call cannot be right, whatever the other members give; the text says why.
    pub(crate) fn check(&self, group: &Group) -> Result<()> {
        let (members, me) = (group.ranks.len(), group.me);
        match self {
            CollectiveCall::Barrier => Ok(()),
            CollectiveCall::Broadcast { root, .. } if *root < members => Ok(()),
            CollectiveCall::Broadcast { root, .. } => {
                Err(Error::argument(format!("root {root} of a group of {members}")))
            }
            CollectiveCall::AllReduce { send, receive, dtype, op } => {
                check_elements(*dtype, *op, send.len())?;
                check_counts("all_reduce, received", &[send.len()], 1, receive.len())
            }
            CollectiveCall::AllGather { send, receive, counts } => {
                check_counts("all_gather", counts, members, receive.len())?;
                check_counts("all_gather, sent", &[send.len()], 1, counts[me])
            }
            CollectiveCall::ReduceScatter { send, receive, counts, dtype, op } => {
                check_counts("reduce_scatter", counts, members, send.len())?;
                counts.iter().try_for_each(|&c| check_elements(*dtype, *op, c))?;
                if receive.len() == counts[me] {
                    return Ok(());
                }
                let (room, count) = (receive.len(), counts[me]);
                Err(Error::argument(format!("reduce_scatter: {room} bytes to receive {count}")))
            }
            CollectiveCall::AllToAll { send, send_counts, receive, receive_counts } => {
                check_counts("all_to_all, sent", send_counts, members, send.len())?;
                check_counts("all_to_all, received", receive_counts, members, receive.len())?;
                if send_counts[me] == receive_counts[me] {
                    return Ok(());
                }
                Err(Error::argument(format!(
                    "all_to_all: rank {} sends itself {} bytes and expects {}",
                    group.ranks[me], send_counts[me], receive_counts[me]
                )))
            }
        }
    }
}

/// The counts must be one a member and add up to the buffer.
fn check_counts(what: &str, counts: &[usize], m: usize, len: usize) -> Result<()> {
    let sum = counts.iter().try_fold(0usize, |a, &b| a.checked_add(b));
    if counts.len() == m && sum == Some(len) {
        return Ok(());
    }
    Err(Error::argument(format!("{what}: counts {counts:?} for {m} members and a buffer of {len} bytes")))
}

fn check_elements(dtype: DType, op: ReduceOp, bytes: usize) -> Result<()> {
    if !bytes.is_multiple_of(dtype.size()) {
        return Err(Error::argument(format!("{bytes} bytes are not whole elements of {dtype}")));
    }
    if dtype == DType::Bool && op == ReduceOp::Sum {
        return Err(Error::dtype("bool has no sum; reduce with max (or) or min (and), or cast to an integer first"));
    }
    if !dtype.reduces(op) {
        return Err(Error::dtype(format!("{dtype} is a registered dtype, which has no {op}"))
            .help("convert it to a built-in dtype by an op of your own, and reduce that"));
    }
    Ok(())
}
