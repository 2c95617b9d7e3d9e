//! A rank's part of a save: its bytes, their snapshot, its file.

use super::file::header;
use super::folder::{io_error, write_new};
use super::plan::{TensorSpec, boxes_of_run, shares, volume};
use super::sums::{BlockSums, Written, side_name};
use crate::context::{GeneratorState, RankCtx};
use crate::control::moved;
use crate::error::{Error, Result};
use crate::interpreter::local_bytes;
use crate::tensor::{LocalTensor, Tensor};
use oflow_files::Access;
use oflow_kernels::{DType, ShardBox};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are copied out of a tensor and written at once.
const CHUNK: usize = 8 << 20;
/// Bytes that may wait in memory for the disk: nothing shows that their sync moves on.
const SYNC_EVERY: u64 = 1 << 30;

/// Returns the name of a rank's file.
pub fn file_name(rank: usize) -> String {
    format!("rank-{rank:05}.safetensors")
}

/// A box that this rank writes.
struct Piece {
    name: String,
    dtype: DType,
    at: ShardBox,
    /// The run of its tensor's shard that it is.
    run: Run,
}

/// Bytes of a shard: the number of its tensor and where in the shard's row-major bytes.
#[derive(Clone)]
struct Run {
    tensor: usize,
    bytes: Range<usize>,
}

/// Pieces that this rank writes, in the order of its file.
pub struct RankShare {
    pieces: Vec<Piece>,
    generator: GeneratorState,
}

impl RankShare {
    /// Makes the part of a rank.
    ///
    /// # Errors
    /// If a layout is partial.
    pub fn new(specs: &[TensorSpec], rank: usize, generator: GeneratorState) -> Result<RankShare> {
        let mut pieces = vec![];
        for share in shares(specs, rank)? {
            let spec = &specs[share.tensor];
            let item = spec.dtype.size();
            let mut at = share.run.start * item;
            for b in boxes_of_run(&share.shard, share.run) {
                let end = at + volume(&b) * item;
                let name = match b.is_whole() {
                    true => spec.name.clone(),
                    false => format!("{}@{:?}", spec.name, b.offset.as_slice()).replace(' ', ""),
                };
                pieces.push(Piece {
                    name,
                    dtype: spec.dtype,
                    at: b,
                    run: Run { tensor: share.tensor, bytes: at..end },
                });
                at = end;
            }
        }
        // Large items first, so that all are aligned.
        pieces.sort_by_key(|p| std::cmp::Reverse(p.dtype.size()));
        Ok(RankShare { pieces, generator })
    }

    /// Returns the number of bytes of the tensors.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(|p| p.run.bytes.len()).sum()
    }

    /// Returns the header of the file.
    ///
    /// # Errors
    /// If no file can have these names.
    pub fn header(&self) -> Result<Vec<u8>> {
        let entries = self.pieces.iter().map(|p| (p.name.as_str(), p.dtype, p.at.size.as_slice()));
        header(entries, &[("format", "pt".to_string())])
    }

    /// Returns the number of the tensor, the box and the number of bytes of each piece, in the order of the file.
    pub fn boxes(&self) -> impl Iterator<Item = (usize, &ShardBox, u64)> {
        self.pieces.iter().map(|p| (p.run.tensor, &p.at, p.run.bytes.len() as u64))
    }

    /// Writes a rank's file and its side file, and makes both durable. Returns the report to rank 0.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write(&self, dir: &Path, rank: usize, source: &mut Source<'_>) -> Result<String> {
        let (name, head) = (file_name(rank), self.header()?);
        let path = dir.join(&name);
        let (file, side) = self.write_data(&path, &head, source)?;
        // At the same time: each waits for a commit of the file system.
        std::thread::scope(|s| {
            let failed = |e: std::io::Error| io_error(format!("cannot write {}", path.display()), e);
            let syncing = std::thread::Builder::new().spawn_scoped(s, || file.sync_all()).map_err(failed)?;
            write_new(&dir.join(side_name(&name)), &side)?;
            syncing.join().unwrap_or_else(|_| Err(std::io::Error::other("syncing panicked"))).map_err(failed)
        })?;
        Ok(Written::new(&head, self.bytes() as u64, &side).to_message(self.generator))
    }

    /// Writes the file without making it durable. Returns the checksums of its blocks too.
    fn write_data(&self, path: &Path, head: &[u8], source: &mut Source<'_>) -> Result<(File, Vec<u8>)> {
        let failed = |e: std::io::Error| io_error(format!("cannot write {}", path.display()), e);
        let start = head.len() as u64;
        let file = oflow_files::create(path, Access::Readable)?;
        // A disk that is too small says so now, and the file lies in one place. Some file systems do not know this.
        match fallocate(&file, FallocateFlags::empty(), 0, start + self.bytes() as u64) {
            Ok(()) => {}
            Err(e @ (rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT | rustix::io::Errno::FBIG)) => {
                return Err(failed(e.into()));
            }
            Err(e) => tracing::debug!("no room taken in advance for {}: {e}", path.display()),
        }
        file.write_all_at(head, 0).map_err(failed)?;
        let (mut at, mut synced, mut sums) = (start, start, BlockSums::default());
        for (i, piece) in self.pieces.iter().enumerate() {
            let run = &piece.run;
            for from in run.bytes.clone().step_by(CHUNK) {
                let part = from..(from + CHUNK).min(run.bytes.end);
                let bytes = source.bytes(i, run, part)?;
                sums.update(bytes);
                file.write_all_at(bytes, at).map_err(failed)?;
                at += bytes.len() as u64;
                if at - synced >= SYNC_EVERY {
                    file.sync_data().map_err(failed)?;
                    synced = at;
                }
                // The other ranks may have less to write, and wait.
                moved();
            }
        }
        Ok((file, sums.finish()))
    }
}

/// The source of the bytes of a save.
pub enum Source<'a> {
    /// The tensors themselves, chunk by chunk, on the thread that owns them.
    Live(Live<'a>),
    /// A copy that was taken before the save went on in the background.
    Copy(&'a Snapshot),
}

impl Source<'_> {
    fn bytes(&mut self, piece: usize, run: &Run, part: Range<usize>) -> Result<&[u8]> {
        match self {
            Source::Live(live) => live.bytes(run.tensor, part),
            Source::Copy(s) => {
                let start = s.starts[piece] + (part.start - run.bytes.start);
                Ok(&s.bytes[start..start + part.len()])
            }
        }
    }
}

/// Reads from tensors.
pub struct Live<'a> {
    ctx: &'a Arc<RankCtx>,
    tensors: &'a [Tensor],
    shards: Vec<Option<LocalTensor>>,
    /// A shard that is not row-major, as it would be.
    straight: Option<(usize, Vec<u8>)>,
    chunk: Vec<u8>,
}

impl<'a> Live<'a> {
    /// Makes a reader of these tensors.
    pub fn new(ctx: &'a Arc<RankCtx>, tensors: &'a [Tensor]) -> Result<Live<'a>> {
        let shards = tensors.iter().map(|t| t.shard()).collect::<Result<_>>()?;
        Ok(Live { ctx, tensors, shards, straight: None, chunk: vec![] })
    }

    fn shard(&self, tensor: usize) -> Result<&LocalTensor> {
        self.shards[tensor]
            .as_ref()
            .ok_or_else(|| Error::placement(format!("{:?} has no shard on this rank", self.tensors[tensor])))
    }

    fn bytes(&mut self, tensor: usize, part: Range<usize>) -> Result<&[u8]> {
        let shard = self.shard(tensor)?;
        if !shard.is_contiguous() {
            if self.straight.as_ref().is_none_or(|(t, _)| *t != tensor) {
                self.straight = Some((tensor, local_bytes(self.ctx, shard)?));
            }
            let (_, bytes) = self.straight.as_ref().ok_or_else(|| Error::shape("no bytes"))?;
            return Ok(&bytes[part]);
        }
        let (shard, mut chunk) = (shard.clone(), std::mem::take(&mut self.chunk));
        chunk.resize(part.len(), 0);
        read(self.ctx, &shard, part.start, &mut chunk)?;
        self.chunk = chunk;
        Ok(&self.chunk)
    }
}

fn read(ctx: &RankCtx, shard: &LocalTensor, at: usize, to: &mut [u8]) -> Result<()> {
    ctx.device(shard.ty.device)?.vm.read(&shard.storage, shard.offset * shard.dtype().size() + at, to)
}

/// A copy of what this rank writes, so that training can continue. The next snapshot reuses its memory.
#[derive(Default)]
pub struct Snapshot {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Snapshot {
    /// Copies the tensors; from a GPU through pinned memory.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn take(&mut self, part: &RankShare, live: &mut Live<'_>) -> Result<()> {
        self.starts.clear();
        let total = part.bytes();
        if self.bytes.len() < total {
            self.bytes.resize(total, 0);
        }
        let mut at = 0;
        for piece in &part.pieces {
            let run = &piece.run;
            let to = at..at + run.bytes.len();
            self.starts.push(at);
            at = to.end;
            let shard = live.shard(run.tensor)?;
            if shard.is_contiguous() {
                read(live.ctx, shard, run.bytes.start, &mut self.bytes[to])?;
            } else {
                self.bytes[to].copy_from_slice(live.bytes(run.tensor, run.bytes.clone())?);
            }
        }
        Ok(())
    }
}
