//! Reads a box of a tensor from the pieces that contain it: only the blocks needed, in few reads, and each is checked.

use super::access::{self, ANOTHER};
use super::manifest::{Manifest, SavedFile, SavedPiece, SavedSums, SavedTensor};
use super::sums::{BLOCK, hex, is_intact, side_len, side_name};
use crate::control::moved;
use crate::error::{Error, Result};
use oflow_kernels::{Dims, ShardBox};
use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Most bytes of one read of scattered elements.
const CHUNK: usize = 8 << 20;
/// Most bytes of one read of whole blocks: they are still in the cache of the core when their checksums are computed.
const DIRECT: usize = 1 << 20;
/// Bytes between needed ones are read along up to that many; beyond, while a quarter of what is read is needed.
const NEAR: usize = 128 << 10;

/// Why bytes could not be read.
pub enum Fault {
    /// The file as a whole cannot be used.
    File(Error),
    /// A block is damaged: the number of the file and the range of the block in the file.
    Block(usize, Range<u64>),
}

impl From<Error> for Fault {
    fn from(e: Error) -> Fault {
        Fault::File(e)
    }
}

/// The files of a checkpoint, opened at first use.
pub struct Files {
    all: Vec<(SavedFile, PathBuf, OnceLock<Data>)>,
}

/// An open file, whose header has been checked.
struct Data {
    file: File,
    path: PathBuf,
    len: u64,
    /// Where the blocks begin, the content of the side file, and the block of which a part was read last. None for files of
    /// other programs.
    blocks: Option<(u64, Vec<u8>, Mutex<LastBlock>)>,
}

/// Narrow reads often follow each other in one block.
#[derive(Default)]
struct LastBlock {
    /// Empty while there is none.
    range: Range<u64>,
    bytes: Vec<u8>,
}

impl Files {
    /// Makes the files of a manifest.
    pub fn new(dir: &Path, manifest: &Manifest) -> Files {
        let names: Vec<&OsStr> = manifest.files.iter().map(|f| OsStr::new(&f.name)).collect();
        Files::named(dir, manifest, &names)
    }

    /// The same, with the names of the files as they are in the folder: they need not be text.
    pub fn named(dir: &Path, manifest: &Manifest, names: &[&OsStr]) -> Files {
        let one = |(f, name): (&SavedFile, &&OsStr)| (f.clone(), dir.join(name), OnceLock::new());
        Files { all: manifest.files.iter().zip(names).map(one).collect() }
    }

    /// Checks that all files exist and have the right size. Side files are looked at when their data is read.
    pub fn check(&self) -> Result<()> {
        self.all.iter().try_for_each(|(f, path, _)| check_length(path, f.len))
    }

    /// Returns the path of a file.
    pub fn path(&self, number: usize) -> &Path {
        &self.all[number].1
    }

    fn data(&self, number: usize) -> Result<&Data> {
        let (saved, path, data) = &self.all[number];
        if let Some(open) = data.get() {
            return Ok(open);
        }
        let opened = Data::open(path, saved)?;
        Ok(data.get_or_init(|| opened))
    }

    /// Reads a range of a file. In checkpoints it is a range of the data, and the blocks that contain it are checked.
    fn read(&self, number: usize, at: u64, to: &mut [u8]) -> Result<(), Fault> {
        let data = self.data(number)?;
        data.read(at, to, |block| Fault::Block(number, block))
    }

    /// Reads all bytes of a file and compares all its checksums. Calls `found` with each damage.
    pub fn verify(&self, number: usize, mut found: impl FnMut(Fault)) {
        let data = match self.data(number) {
            Ok(data) => data,
            Err(e) => return found(Fault::File(e)),
        };
        let mut at = data.blocks.as_ref().map_or(0, |(start, ..)| *start);
        let mut buffer = vec![0; (data.len - at).min(DIRECT as u64) as usize];
        while at < data.len {
            let part = (data.len - at).min(DIRECT as u64);
            match self.read(number, at, &mut buffer[..part as usize]) {
                Ok(()) => at += part,
                Err(Fault::Block(n, block)) => {
                    at = block.end;
                    found(Fault::Block(n, block));
                }
                Err(e) => return found(e),
            }
        }
    }

    /// Fills `out`, row-major, with a box of a tensor.
    ///
    /// # Errors
    /// If bytes cannot be read or are damaged.
    pub fn read_box(&self, tensor: &SavedTensor, item: usize, want: &ShardBox, out: &mut [u8]) -> Result<(), Fault> {
        let mut scratch = vec![];
        for piece in &tensor.pieces {
            let Some((start, size)) = overlap(piece, want) else { continue };
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
                    self.read(piece.file, at, &mut out[first * item..first * item + len])?;
                    continue;
                }
                scratch.resize(scratch.len().max(len), 0);
                let bytes = &mut scratch[..len];
                self.read(piece.file, at, bytes)?;
                // `bytes` starts with the first element of the box, so it is a box at the origin of the piece's strides.
                copy_box((bytes, &piece.size), (&mut out[first * item..], &want.size), &r.size, item);
            }
        }
        Ok(())
    }
}

impl Data {
    fn open(path: &Path, saved: &SavedFile) -> Result<Data> {
        check_length(path, saved.len)?;
        let (file, dir) = (access::open(path)?, path.parent().unwrap_or(Path::new("")));
        let blocks = match &saved.sums {
            None => None,
            Some(sums) => Some((sums.header, checked(dir, &file, saved, sums)?, Mutex::default())),
        };
        Ok(Data { file, path: path.to_path_buf(), len: saved.len, blocks })
    }

    /// Fills `to` with the bytes from `at` on; `damaged` makes the error of a block.
    fn read(&self, mut at: u64, to: &mut [u8], damaged: impl Fn(Range<u64>) -> Fault) -> Result<(), Fault> {
        let Some((start, side, last)) = &self.blocks else {
            return Ok(self.fill(at, to)?);
        };
        let block_at = |at: u64| {
            let number = (at - start) / BLOCK as u64;
            let begin = start + number * BLOCK as u64;
            (number, begin..(begin + BLOCK as u64).min(self.len))
        };
        let mut rest = to;
        while !rest.is_empty() {
            let (number, block) = block_at(at);
            let whole = (at + rest.len() as u64).min(at + DIRECT as u64);
            let whole = if whole == self.len { whole } else { whole - (whole - start) % BLOCK as u64 };
            let (part, more);
            if at == block.start && whole > at {
                (part, more) = rest.split_at_mut((whole - at) as usize);
                self.fill(at, part)?;
                for (i, bytes) in part.chunks(BLOCK).enumerate() {
                    if !is_intact(side, number + i as u64, bytes) {
                        return Err(damaged(block_at(at + (i * BLOCK) as u64).1));
                    }
                }
            } else {
                (part, more) = rest.split_at_mut((block.end - at).min(rest.len() as u64) as usize);
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.range != block {
                    last.range = 0..0;
                    last.bytes.resize((block.end - block.start) as usize, 0);
                    self.fill(block.start, &mut last.bytes)?;
                    if !is_intact(side, number, &last.bytes) {
                        return Err(damaged(block));
                    }
                    last.range = block.clone();
                }
                let from = (at - block.start) as usize;
                part.copy_from_slice(&last.bytes[from..from + part.len()]);
            }
            at += part.len() as u64;
            rest = more;
        }
        Ok(())
    }

    fn fill(&self, at: u64, to: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(to, at).map_err(|e| cannot_read(&self.path, e))?;
        moved();
        Ok(())
    }
}

fn cannot_read(path: &Path, e: std::io::Error) -> Error {
    Error::storage(format!("cannot read {}", path.display())).because(e).help(ANOTHER)
}

/// Compares the checksums of a file's header and of its side file; returns the content of the side file.
fn checked(dir: &Path, file: &File, saved: &SavedFile, sums: &SavedSums) -> Result<Vec<u8>> {
    let damaged = |path: &Path, what: &str| {
        Error::storage(format!("{} is damaged: its {what} not what was written", path.display())).help(ANOTHER)
    };
    let path = dir.join(&saved.name);
    let mut header = vec![0; sums.header as usize];
    file.read_exact_at(&mut header, 0).map_err(|e| cannot_read(&path, e))?;
    if hex(crc32fast::hash(&header)) != sums.header_crc32 {
        return Err(damaged(&path, "header is"));
    }
    let side = dir.join(side_name(&saved.name));
    let len = side_len(saved.len - sums.header);
    check_length(&side, len)?;
    let content = access::bytes(&side, len)?;
    if hex(crc32fast::hash(&content)) != sums.blocks_crc32 {
        return Err(damaged(&side, "checksums are"));
    }
    Ok(content)
}

fn check_length(path: &Path, len: u64) -> Result<()> {
    let shown = path.display();
    let meta = std::fs::metadata(path).map_err(|e| {
        Error::storage(format!("the checkpoint's file {shown} cannot be read"))
            .because(e)
            .help("every host must see the folder; `oflow ckpt ls` lists the checkpoints")
    })?;
    if !meta.is_file() {
        // Says what it is instead.
        access::open(path)?;
    }
    let found = meta.len();
    if found == len {
        return Ok(());
    }
    Err(Error::storage(format!("{shown} has {found} bytes instead of {len}"))
        .help("it was truncated or replaced; `oflow ckpt ls` lists the checkpoints"))
}

/// Part of a piece that lies in a box: where in the piece, and sizes. None if nothing.
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
    use crate::checkpoint::sums::{BlockSums, Written};

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

    /// A data file of four and a half blocks, its side file and its entry in the manifest.
    fn file(dir: &Path) -> (SavedFile, Vec<u8>) {
        let header = vec![b' '; 40];
        let data: Vec<u8> = (0..9 * BLOCK as u32 / 2).map(|i| (i ^ (i >> 8)) as u8).collect();
        let mut sums = BlockSums::default();
        sums.update(&data);
        let side = sums.finish();
        let content = [&header[..], &data].concat();
        std::fs::write(dir.join("x.safetensors"), &content).unwrap();
        std::fs::write(dir.join("x.crc32"), &side).unwrap();
        (Written::new(&header, data.len() as u64, &side).saved("x.safetensors".into()), content)
    }

    #[test]
    fn a_read_checks_the_blocks_that_it_touches_and_no_others() {
        let tmp = tempfile::tempdir().unwrap();
        let (saved, content) = file(tmp.path());
        let manifest = Manifest { files: vec![saved], ..Manifest::default() };
        let block = |n: usize| 40 + n * BLOCK;
        let ranges = [
            (40, content.len()),
            (40, 41),
            (block(1), block(2)),
            (block(1) - 1, block(1)),
            (block(1) - 1, block(3) + 1),
            (block(2) + 5, block(2) + 9),
            (block(2) + 5, block(4)),
            (block(4), content.len()),
            (block(4) + 1, content.len()),
            (content.len() - 1, content.len()),
            (block(3) - 7, content.len() - 1),
        ];
        for damaged in 0..5 {
            let mut bytes = content.clone();
            bytes[(block(damaged) + block(damaged + 1).min(content.len())) / 2] ^= 4;
            std::fs::write(tmp.path().join("x.safetensors"), bytes).unwrap();
            // All by one reader: what it has of one read serves the next.
            let files = Files::new(tmp.path(), &manifest);
            for (from, to) in ranges {
                let mut out = vec![0; to - from];
                match files.read(0, from as u64, &mut out) {
                    Ok(()) => {
                        assert!(to <= block(damaged) || from >= block(damaged + 1), "{from}..{to}, block {damaged}");
                        assert_eq!(out, content[from..to]);
                    }
                    Err(Fault::Block(0, range)) => {
                        let of_block = block(damaged) as u64..block(damaged + 1).min(content.len()) as u64;
                        assert_eq!(range, of_block);
                        assert!(from < block(damaged + 1) && block(damaged) < to, "{from}..{to}, block {damaged}");
                    }
                    Err(_) => panic!("another fault"),
                }
            }
            let mut found = vec![];
            files
                .verify(0, |fault| found.push(matches!(fault, Fault::Block(0, b) if b.start == block(damaged) as u64)));
            assert_eq!(found, [true]);
        }
    }

    #[test]
    fn boxes_are_copied() {
        let from: Vec<u8> = (0..24).collect();
        let mut to = vec![99; 12];
        copy_box((&from[5..], &[2, 3, 4]), (&mut to, &[2, 2, 3]), &[2, 2, 3], 1);
        assert_eq!(to, [5, 6, 7, 9, 10, 11, 17, 18, 19, 21, 22, 23]);
    }
}
