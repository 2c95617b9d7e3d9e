//! Reads a box of a tensor from the pieces that contain it: only the bytes needed, in few reads.

use super::manifest::{Manifest, SavedPiece, SavedTensor};
use crate::control::moved;
use crate::error::{Error, Result};
use oflow_kernels::{Dims, ShardBox};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Most bytes of one read.
const CHUNK: usize = 8 << 20;
/// Bytes between needed ones are read along up to that many; beyond, while a quarter of what is read is needed.
const NEAR: usize = 128 << 10;

/// The files of a checkpoint, opened at first use.
pub struct Files {
    all: Vec<(PathBuf, u64, OnceLock<File>)>,
}

impl Files {
    /// Makes the files of a manifest.
    pub fn new(dir: &Path, manifest: &Manifest) -> Files {
        Files { all: manifest.files.iter().map(|f| (dir.join(&f.name), f.len, OnceLock::new())).collect() }
    }

    /// Checks that all files exist and have the right size.
    pub fn check(&self) -> Result<()> {
        self.all.iter().try_for_each(|(path, len, _)| check_length(path, *len))
    }

    /// Checks that a file's own header agrees with the manifest.
    pub fn check_header(&self, number: usize) -> Result<()> {
        let (file, path) = self.file(number)?;
        super::file::read_header(file, path).map(drop)
    }

    fn file(&self, number: usize) -> Result<(&File, &Path)> {
        let (path, len, open) = &self.all[number];
        if let Some(f) = open.get() {
            return Ok((f, path));
        }
        check_length(path, *len)?;
        let f = File::open(path).map_err(|e| Error::storage(format!("cannot open {}", path.display())).because(e))?;
        Ok((open.get_or_init(|| f), path))
    }

    fn read(&self, number: usize, at: u64, to: &mut [u8]) -> Result<()> {
        let (file, path) = self.file(number)?;
        file.read_exact_at(to, at).map_err(|e| Error::storage(format!("cannot read {}", path.display())).because(e))?;
        moved();
        Ok(())
    }

    /// Reads a piece and compares its checksum.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn verify(&self, name: &str, piece: &SavedPiece) -> Result<()> {
        let mut hasher = crc32fast::Hasher::new();
        let mut buffer = vec![0; CHUNK.min((piece.bytes.1 - piece.bytes.0) as usize)];
        let mut at = piece.bytes.0;
        while at < piece.bytes.1 {
            let part = &mut buffer[..CHUNK.min((piece.bytes.1 - at) as usize)];
            self.read(piece.file, at, part)?;
            hasher.update(part);
            at += part.len() as u64;
        }
        self.compare(name, piece, hasher)
    }

    fn compare(&self, name: &str, piece: &SavedPiece, hasher: crc32fast::Hasher) -> Result<()> {
        let sum = format!("{:08x}", hasher.finalize());
        if piece.crc32.as_ref().is_none_or(|want| *want == sum) {
            return Ok(());
        }
        let path = self.all[piece.file].0.display();
        let (from, to) = piece.bytes;
        Err(Error::storage(format!(
            "{path} is damaged: bytes {from} to {to}, of '{name}', are not those that were written"
        ))
        .help("use another checkpoint: `oflow ckpt ls` lists them, `oflow ckpt verify` checks them"))
    }

    /// Fills `out`, row-major, with a box of a tensor. The checksums of pieces that are read whole are compared.
    ///
    /// # Errors
    /// If bytes cannot be read or are damaged.
    pub fn read_box(
        &self,
        name: &str,
        tensor: &SavedTensor,
        item: usize,
        want: &ShardBox,
        out: &mut [u8],
    ) -> Result<()> {
        let mut scratch = vec![];
        for piece in &tensor.pieces {
            let Some((start, size)) = overlap(piece, want) else { continue };
            let whole = size[..] == piece.size[..];
            let mut hasher = (whole && piece.crc32.is_some()).then(crc32fast::Hasher::new);
            let mut reads = vec![];
            runs(&piece.size, item, start, size, &mut reads);
            for r in &reads {
                let at = piece.bytes.0 + (r.first * item) as u64;
                let len = r.len * item;
                // Where the piece starts in what is wanted.
                let shift = |d: usize| piece.offset[d] as isize - want.offset[d] as isize;
                let to: Dims = (0..r.start.len()).map(|d| (r.start[d] as isize + shift(d)) as usize).collect();
                let first = flat(&want.size, &to);
                if r.len == r.size.iter().product::<usize>() && is_run(&want.size, &r.size) {
                    let to = &mut out[first * item..first * item + len];
                    self.read(piece.file, at, to)?;
                    hasher.iter_mut().for_each(|h| h.update(to));
                    continue;
                }
                scratch.resize(scratch.len().max(len), 0);
                let bytes = &mut scratch[..len];
                self.read(piece.file, at, bytes)?;
                hasher.iter_mut().for_each(|h| h.update(bytes));
                // `bytes` starts with the first element of the box, so it is a box at the origin of the piece's strides.
                copy_box((bytes, &piece.size), (&mut out[first * item..], &want.size), &r.size, item);
            }
            if let Some(h) = hasher {
                self.compare(name, piece, h)?;
            }
        }
        Ok(())
    }
}

fn check_length(path: &Path, len: u64) -> Result<()> {
    let shown = path.display();
    let found = std::fs::metadata(path)
        .map_err(|e| {
            Error::storage(format!("the checkpoint's file {shown} cannot be read"))
                .because(e)
                .help("every host must see the folder; `oflow ckpt ls` lists the checkpoints")
        })?
        .len();
    if found == len {
        return Ok(());
    }
    Err(Error::storage(format!("{shown} has {found} bytes instead of {len}"))
        .help("it was truncated or replaced; `oflow ckpt ls` lists the checkpoints"))
}

/// What a box has of a piece: where in the piece, and sizes. None if nothing.
fn overlap(piece: &SavedPiece, want: &ShardBox) -> Option<(Dims, Dims)> {
    let (mut start, mut size) = (Dims::new(), Dims::new());
    for d in 0..want.size.len() {
        let from = want.offset[d].max(piece.offset[d]);
        let to = (want.offset[d] + want.size[d]).min(piece.offset[d] + piece.size[d]);
        if from >= to {
            return None;
        }
        start.push(from - piece.offset[d]);
        size.push(to - from);
    }
    Some((start, size))
}

/// A read: `len` elements of the piece from `first` on, which hold the box of those sizes at `start`.
struct Read {
    first: usize,
    len: usize,
    start: Dims,
    size: Dims,
}

/// Cuts a box of a piece into reads, in the order of the file.
fn runs(dims: &[usize], item: usize, start: Dims, size: Dims, found: &mut Vec<Read>) {
    let first = flat(dims, &start);
    let last: Dims = start.iter().zip(&size).map(|(s, n)| s + n - 1).collect();
    let len = flat(dims, &last) + 1 - first;
    let needed: usize = size.iter().product();
    let dense = needed * 4 >= len || len * item <= NEAR;
    let Some(d) = size.iter().position(|n| *n > 1).filter(|_| !dense || len * item > CHUNK) else {
        return found.push(Read { first, len, start, size });
    };
    let row: usize = dims[d + 1..].iter().product();
    let block = if dense { (CHUNK / (row * item)).max(1) } else { 1 };
    for from in (0..size[d]).step_by(block) {
        let (mut start, mut size) = (start.clone(), size.clone());
        start[d] += from;
        size[d] = block.min(size[d] - from);
        runs(dims, item, start, size, found);
    }
}

/// Number of the element at that index.
fn flat(dims: &[usize], at: &[usize]) -> usize {
    dims.iter().zip(at).fold(0, |n, (d, i)| n * d + i)
}

/// Whether a box of those sizes is one run of the elements of a tensor.
fn is_run(dims: &[usize], size: &[usize]) -> bool {
    let first = size.iter().position(|n| *n > 1).unwrap_or(size.len());
    (first + 1..size.len()).all(|d| size[d] == dims[d])
}

/// Copies a box; both ends are row-major with those sizes and start at the box.
fn copy_box((from, from_dims): (&[u8], &[usize]), (to, to_dims): (&mut [u8], &[usize]), size: &[usize], item: usize) {
    let Some((inner, outer)) = size.split_last() else {
        to[..item].copy_from_slice(&from[..item]);
        return;
    };
    let run = inner * item;
    let mut at: Dims = outer.iter().map(|_| 0).collect();
    at.push(0);
    loop {
        let (a, b) = (flat(from_dims, &at) * item, flat(to_dims, &at) * item);
        to[b..b + run].copy_from_slice(&from[a..a + run]);
        let Some(d) = (0..outer.len()).rev().find(|d| at[*d] + 1 < outer[*d]) else { return };
        at[d] += 1;
        at[d + 1..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(dims: &[usize], item: usize, start: &[usize], size: &[usize]) -> Vec<(usize, usize)> {
        let mut found = vec![];
        runs(dims, item, start.into(), size.into(), &mut found);
        found.iter().map(|r| (r.first, r.len)).collect()
    }

    #[test]
    fn only_needed_bytes_are_read_in_few_reads() {
        // A whole box, in chunks of whole rows.
        assert_eq!(reads(&[4, 1 << 20], 4, &[0, 0], &[4, 1 << 20]), [(0, 2 << 20), (2 << 20, 2 << 20)]);
        // Half of short rows: read along what lies between.
        assert_eq!(reads(&[100, 64], 4, &[0, 32], &[100, 32]), [(32, 99 * 64 + 32)]);
        // An eighth of long rows: row by row.
        assert_eq!(reads(&[3, 1 << 20], 4, &[1, 0], &[2, 1 << 17]), [(1 << 20, 1 << 17), (2 << 20, 1 << 17)]);
        assert_eq!(reads(&[], 4, &[], &[]), [(0, 1)]);
        // A run that is longer than a chunk.
        assert_eq!(reads(&[5 << 20], 4, &[1], &[3 << 20]), [(1, 2 << 20), ((2 << 20) + 1, 1 << 20)]);
    }

    #[test]
    fn boxes_are_copied() {
        let from: Vec<u8> = (0..24).collect();
        let mut to = vec![99; 12];
        copy_box((&from[5..], &[2, 3, 4]), (&mut to, &[2, 2, 3]), &[2, 2, 3], 1);
        assert_eq!(to, [5, 6, 7, 9, 10, 11, 17, 18, 19, 21, 22, 23]);
    }
}
