//! Boxings as lists: what the walk over plans asks of its place, written down once and carried out in each run of a graph.
//!
//! The walk decides by plans, layouts and addresses, so its list stays right as long as shards and scratch memory stay where they are. Carrying
//! it out asks nothing and allocates nothing. A list also tells which of its operations touches which memory: so a graph gives scratch memory, shards that
//! have been packed and shards that are not unpacked yet the same bytes of its arena.

use super::box_collect::execute_collect_at;
use super::box_exec::call;
use super::box_many::{Ends, execute_many_at};
use super::boxing_device::{ALIGN, Among, BoxingDevice, Message, Scratch, Span};
use crate::boxing::{BoxesPlan, BoxingPlan, GroupOp, Members};
use crate::comm::CollectiveCall;
use crate::error::{Error, Result};
use crate::memory::Storage;
use oflow_kernels::{DType, ReduceOp, View};
use smallvec::SmallVec;
use std::sync::Arc;

/// Plans of an exchange between ranks.
pub(crate) enum Walk {
    /// Boxings, carried out together.
    Plans(Vec<Arc<BoxingPlan>>),
    /// Boxes of one tensor.
    Boxes(Arc<BoxesPlan>, DType),
}

/// One operation of a list, on memory that it names.
enum Operation {
    Copy { from: View, to: View },
    Identity { out: View, op: ReduceOp },
    Reduce { out: Span, from: Box<[Span]>, dtype: DType, op: ReduceOp },
    Collective(Box<Collective>),
    Exchange { sends: Box<[Message]>, receives: Box<[Message]> },
}

struct Collective {
    members: Members,
    op: GroupOp,
    dtype: DType,
    send: (Span, Counts),
    receive: (Span, Counts),
}

/// Bytes of each member's part.
type Counts = SmallVec<[usize; 8]>;

/// The operations of this rank in an exchange, in their order.
pub(crate) struct OperationList(Vec<Operation>);

impl OperationList {
    /// Lists the part of `rank`: `ends` are its source and destination shards, or its box and the one that it is to have; `scratch` gives memory of a
    /// size, for each time that the walk asks for some.
    ///
    /// # Errors
    /// The views are not those of the plans.
    pub(crate) fn of(
        walk: &Walk,
        rank: usize,
        ends: &[(Option<View>, Option<View>)],
        scratch: &mut dyn FnMut(usize) -> Result<Span>,
    ) -> Result<OperationList> {
        let mut list = Recorder { rank, scratch, operations: vec![] };
        match walk {
            Walk::Plans(plans) => {
                let ends: Vec<Ends> = ends.iter().map(|(s, d)| Ends { src: s.as_ref(), dst: d.as_ref() }).collect();
                execute_many_at(&mut list, plans, &ends)?;
            }
            Walk::Boxes(plan, dtype) => {
                let own: Vec<View> = ends.iter().filter_map(|(own, _)| own.clone()).collect();
                let wanted = ends.iter().find_map(|(_, wanted)| wanted.as_ref());
                execute_collect_at(&mut list, plan, *dtype, (&own, wanted))?;
            }
        }
        Ok(OperationList(list.operations))
    }

    /// Number of operations.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells an address of each piece of memory that an operation touches, with the operation's number.
    pub(crate) fn touched(&self, mut tell: impl FnMut(usize, usize)) {
        for (n, operation) in self.0.iter().enumerate() {
            let mut span = |s: &Span| {
                if s.len > 0 {
                    tell(n, s.ptr.addr());
                }
            };
            match operation {
                Operation::Copy { from, to } => [from, to].into_iter().for_each(|v| tell(n, v.ptr().addr())),
                Operation::Identity { out, .. } => tell(n, out.ptr().addr()),
                Operation::Reduce { out, from, .. } => from.iter().chain([out]).for_each(span),
                Operation::Collective(c) => [&c.send.0, &c.receive.0].into_iter().for_each(span),
                Operation::Exchange { sends, receives } => sends.iter().chain(receives).for_each(|(_, s)| span(s)),
            }
        }
    }

    /// Carries the operations out.
    fn run<P: BoxingDevice>(&self, place: &mut P) -> Result<()> {
        self.0.iter().try_for_each(|operation| match operation {
            Operation::Copy { from, to } => place.copy(from, to),
            Operation::Identity { out, op } => place.identity(out, *op),
            Operation::Reduce { out, from, dtype, op } => place.reduce(*out, from, *dtype, *op),
            Operation::Collective(c) => {
                let ends = ((c.send.0, &c.send.1[..]), (c.receive.0, &c.receive.1[..]));
                place.collective(&c.members, call(c.op, c.dtype, ends.0, ends.1))
            }
            Operation::Exchange { sends, receives } => place.exchange(Among::Ranks(&[]), sends, receives),
        })
    }
}

/// An exchange that is carried out again and again in host memory, with the storages that stay where they are.
pub(crate) struct Listed {
    /// The operations.
    pub(crate) list: OperationList,
    /// Storages that it reads, and that it writes.
    pub(crate) reads: Vec<Storage>,
    pub(crate) writes: Vec<Storage>,
    /// Share of each boxing in the whole time.
    pub(crate) shares: Vec<u64>,
    /// Logical bytes of the tensors.
    pub(crate) bytes: usize,
    /// Whether this rank has a part of a source, and of a destination.
    pub(crate) ends: (bool, bool),
}

impl Listed {
    /// Carries it out.
    pub(super) fn run<P: BoxingDevice>(&self, place: &mut P) -> Result<()> {
        self.list.run(place)
    }
}

/// A place that writes down what it is asked.
struct Recorder<'a> {
    rank: usize,
    scratch: &'a mut dyn FnMut(usize) -> Result<Span>,
    operations: Vec<Operation>,
}

impl BoxingDevice for Recorder<'_> {
    fn rank(&self) -> usize {
        self.rank
    }
    fn scratch_buffer(&mut self, _which: Scratch, bytes: usize) -> Result<Span> {
        match bytes {
            0 => Ok(Span { ptr: std::ptr::without_provenance_mut(ALIGN), len: 0 }),
            _ => (self.scratch)(bytes),
        }
    }
    fn copy(&mut self, from: &View, to: &View) -> Result<()> {
        if !to.is_empty() {
            self.operations.push(Operation::Copy { from: from.clone(), to: to.clone() });
        }
        Ok(())
    }
    fn identity(&mut self, out: &View, op: ReduceOp) -> Result<()> {
        if !out.is_empty() {
            self.operations.push(Operation::Identity { out: out.clone(), op });
        }
        Ok(())
    }
    fn reduce(&mut self, out: Span, from: &[Span], dtype: DType, op: ReduceOp) -> Result<()> {
        self.operations.push(Operation::Reduce { out, from: from.into(), dtype, op });
        Ok(())
    }
    fn collective(&mut self, members: &Members, call: CollectiveCall<'_, Span, Span>) -> Result<()> {
        let none = Counts::new;
        let (op, dtype, send, receive) = match call {
            CollectiveCall::AllReduce { send, receive, dtype, op } => {
                (GroupOp::AllReduce(op), dtype, (send, none()), (receive, none()))
            }
            CollectiveCall::AllGather { send, receive, counts } => {
                (GroupOp::AllGather, DType::U8, (send, none()), (receive, counts.into()))
            }
            CollectiveCall::ReduceScatter { send, receive, counts, dtype, op } => {
                (GroupOp::ReduceScatter(op), dtype, (send, counts.into()), (receive, none()))
            }
            CollectiveCall::AllToAll { send, send_counts, receive, receive_counts } => {
                (GroupOp::AllToAll, DType::U8, (send, send_counts.into()), (receive, receive_counts.into()))
            }
            CollectiveCall::Broadcast { root: 0, buffer } => {
                (GroupOp::Broadcast, DType::U8, (buffer, none()), (buffer, none()))
            }
            CollectiveCall::Broadcast { .. } | CollectiveCall::Barrier => {
                return Err(Error::comm("a boxing has a barrier, or a broadcast of another member than the first"));
            }
        };
        let members = members.clone();
        self.operations.push(Operation::Collective(Box::new(Collective { members, op, dtype, send, receive })));
        Ok(())
    }
    fn exchange(&mut self, _among: Among, sends: &[Message], receives: &[Message]) -> Result<()> {
        self.operations.push(Operation::Exchange { sends: sends.into(), receives: receives.into() });
        Ok(())
    }
}
