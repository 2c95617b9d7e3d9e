//! Carrying out a plan for all ranks at once on one thread, from host bytes to host bytes: the reference that the executor
//! is compared with, and what lets a plan be tried without ranks. Plain safe code, not fast.

use crate::boxing::{
    BoxingPlan, Contribution, GroupOp, Layout, Members, RankCollective, RankExchange, RankProgram, RankStep,
};
use crate::error::{Error, Result};
use crate::sbp::shard_box;
use oflow_kernels::cpu::accumulate::{fill_identity, reduce_slices};
use oflow_kernels::{DType, Dims, ReduceOp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A contiguous tensor in host bytes.
#[derive(Clone)]
struct Block {
    dims: Dims,
    bytes: Vec<u8>,
}

/// Executes a plan on one thread. `shards` are the bytes of the contiguous source shards, in the order of mesh positions; returns
/// those of the destination.
///
/// # Errors
/// If a shard does not have the size of its layout.
pub fn replay(plan: &BoxingPlan, shards: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let Layout { placement, sbp } = &plan.src;
    if shards.len() != placement.len() {
        return Err(Error::argument(format!(
            "{} shards given, {placement} has {} ranks",
            shards.len(),
            placement.len()
        )));
    }
    let mut blocks: BTreeMap<usize, Block> = BTreeMap::new();
    for (p, bytes) in shards.iter().enumerate() {
        let dims = shard_box(&plan.shape, placement, sbp, p).size;
        let expected = dims.iter().product::<usize>() * plan.dtype.size();
        if bytes.len() != expected {
            return Err(Error::shape(format!("shard {p} has {} bytes, {} needs {expected}", bytes.len(), plan.src)));
        }
        blocks.insert(placement.ranks()[p], Block { dims, bytes: bytes.clone() });
    }
    if plan.shape.contains(&0) {
        return Ok(vec![Vec::new(); plan.dst.placement.len()]);
    }
    let ranks: std::collections::BTreeSet<usize> =
        placement.ranks().iter().chain(plan.dst.placement.ranks()).copied().collect();
    let programs: Vec<(usize, Arc<RankProgram>)> = ranks.into_iter().map(|r| (r, plan.program(r))).collect();
    let machine = Machine { dtype: plan.dtype };
    for i in 0..plan.steps.len() {
        let mail = machine.mail(&programs, &blocks, i);
        let mut next = BTreeMap::new();
        for (rank, program) in &programs {
            if let Some(b) = machine.step(*rank, &program.steps[i], &blocks, &mail)? {
                next.insert(*rank, b);
            }
        }
        blocks = next;
    }
    plan.dst
        .placement
        .ranks()
        .iter()
        .map(|r| Ok(blocks.remove(r).ok_or_else(|| Error::placement(format!("rank {r} got no shard")))?.bytes))
        .collect()
}

type Mail = BTreeMap<(usize, usize), Block>;

struct Machine {
    dtype: DType,
}

impl Machine {
    fn empty(&self, dims: &Dims) -> Block {
        Block { dims: dims.clone(), bytes: vec![0; dims.iter().product::<usize>() * self.dtype.size()] }
    }

    fn identity(&self, op: ReduceOp, dims: &Dims) -> Result<Block> {
        let mut out = self.empty(dims);
        fill_identity(&mut out.bytes, self.dtype, op)?;
        Ok(out)
    }

    /// The box of a block.
    fn cut(&self, b: &Block, offset: &[usize], size: &Dims) -> Block {
        let mut out = self.empty(size);
        self.copy(b, offset, &mut out, &vec![0; size.len()], size);
        out
    }

    /// Copies a box of one block to a place in another, row by row.
    fn copy(&self, src: &Block, src_at: &[usize], dst: &mut Block, dst_at: &[usize], size: &[usize]) {
        if size.contains(&0) {
            return;
        }
        let row = size.last().copied().unwrap_or(1) * self.dtype.size();
        let place = |b: &Dims, at: &[usize], index: &[usize]| {
            let element = (0..b.len()).fold(0, |p, d| p * b[d] + at[d] + index[d]);
            element * self.dtype.size()
        };
        let mut index = vec![0; size.len()];
        loop {
            let (s, d) = (place(&src.dims, src_at, &index), place(&dst.dims, dst_at, &index));
            dst.bytes[d..d + row].copy_from_slice(&src.bytes[s..s + row]);
            // The next row: the last dim is copied whole.
            let Some(up) = (0..size.len().saturating_sub(1)).rev().find(|d| index[*d] + 1 < size[*d]) else { return };
            index[up] += 1;
            index[up + 1..].fill(0);
        }
    }

    fn reduce(&self, op: ReduceOp, parts: &[Block]) -> Result<Block> {
        let views: Vec<&[u8]> = parts.iter().map(|p| p.bytes.as_slice()).collect();
        let mut out = self.empty(&parts[0].dims);
        reduce_slices(&mut out.bytes, &views, self.dtype, op)?;
        Ok(out)
    }

    /// Messages that all ranks send in an exchange.
    fn mail(&self, programs: &[(usize, Arc<RankProgram>)], blocks: &BTreeMap<usize, Block>, step: usize) -> Mail {
        let mut mail = Mail::new();
        for (rank, program) in programs {
            if let RankStep::Exchange(x) = &program.steps[step] {
                for s in &x.sends {
                    let twice = mail.insert((*rank, s.rank), self.cut(&blocks[rank], &s.offset, &s.size));
                    debug_assert!(twice.is_none(), "two messages from {rank} to {}", s.rank);
                }
            }
        }
        mail
    }

    fn step(
        &self,
        rank: usize,
        step: &RankStep,
        blocks: &BTreeMap<usize, Block>,
        mail: &Mail,
    ) -> Result<Option<Block>> {
        Ok(Some(match step {
            RankStep::Idle => return Ok(None),
            RankStep::Keep => blocks[&rank].clone(),
            RankStep::Slice { offset, size } => self.cut(&blocks[&rank], offset, size),
            RankStep::Identity { op, size } => self.identity(*op, size)?,
            RankStep::Pad { op, offset, size } => {
                let (mut out, b) = (self.identity(*op, size)?, &blocks[&rank]);
                self.copy(b, &vec![0; size.len()], &mut out, offset, &b.dims);
                out
            }
            RankStep::Collective(c) => self.collective(c, blocks)?,
            RankStep::Exchange(x) => return self.receive(rank, x, blocks, mail),
        }))
    }

    /// A member's output of a collective.
    fn collective(&self, c: &RankCollective, blocks: &BTreeMap<usize, Block>) -> Result<Block> {
        let Members { ranks, me } = &c.members;
        // This member's part of a member's input.
        let part = |rank: &usize| match &c.cut {
            Some(parts) => {
                let (b, range) = (&blocks[rank], &parts.ranges[*me]);
                let (mut at, mut size) = (vec![0; b.dims.len()], b.dims.clone());
                (at[parts.dim], size[parts.dim]) = (range.start, range.len());
                self.cut(b, &at, &size)
            }
            None => blocks[rank].clone(),
        };
        match (c.op, &c.joined) {
            (GroupOp::AllReduce(op) | GroupOp::ReduceScatter(op), _) => {
                self.reduce(op, &ranks.iter().map(part).collect::<Vec<_>>())
            }
            (GroupOp::AllGather | GroupOp::AllToAll, Some(parts)) => {
                let mut out = self.empty(&c.size);
                for (b, range) in ranks.iter().map(part).zip(&parts.ranges) {
                    let mut at = vec![0; c.size.len()];
                    at[parts.dim] = range.start;
                    self.copy(&b, &vec![0; c.size.len()], &mut out, &at, &b.dims);
                }
                Ok(out)
            }
            (GroupOp::Broadcast, _) => Ok(blocks[&ranks[0]].clone()),
            (op, None) => Err(Error::comm(format!("{op:?} without the parts of its output"))),
        }
    }

    fn receive(
        &self,
        rank: usize,
        x: &RankExchange,
        blocks: &BTreeMap<usize, Block>,
        mail: &Mail,
    ) -> Result<Option<Block>> {
        let Some(size) = &x.size else { return Ok(None) };
        let mut out = match x.identity {
            Some(op) => self.identity(op, size)?,
            None => self.empty(size),
        };
        for cell in &x.cells {
            let mut parts = Vec::new();
            for c in &cell.contributions {
                parts.push(match c {
                    Contribution::Own(at) => self.cut(&blocks[&rank], at, &cell.size),
                    Contribution::Received(i) => {
                        let from = x.receives[*i].rank;
                        let b = mail.get(&(from, rank)).filter(|b| b.dims == x.receives[*i].size);
                        b.ok_or_else(|| Error::comm(format!("no message from {from} to {rank}")))?.clone()
                    }
                });
            }
            for (op, count) in x.levels.iter().rev() {
                parts = parts.chunks(*count).map(|c| self.reduce(*op, c)).collect::<Result<_>>()?;
            }
            self.copy(&parts[0], &vec![0; size.len()], &mut out, &cell.offset, &cell.size);
        }
        Ok(Some(out))
    }
}
