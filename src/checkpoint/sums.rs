//! Checksums of a data file by blocks: a read of a part checks exactly the blocks that it touches.
//!
//! The manifest has the length and the CRC-32 of a file's header. The bytes after the header are divided into blocks of
//! [`BLOCK`] bytes; the last block may be shorter. The CRC-32s of the blocks are in a side file, and the CRC-32 of the side
//! file is in the manifest. So the manifest has the same size for any amount of data.
//!
//! A CRC-32 finds every change of one or two bits in a block and every burst of up to 32 bits. It misses other accidental
//! damage of a block with a probability of 2⁻³². It is no protection against somebody who wants to change the values.

use super::manifest::{SavedFile, SavedSums};
use crate::context::GeneratorState;
use crate::error::{Error, Result};
use crc32fast::Hasher;

/// Bytes of a block. With smaller blocks narrow reads are faster and the side file is larger, here 1/16,384 of the data.
pub const BLOCK: usize = 64 << 10;
/// Bytes of a checksum in the side file.
const SUM: usize = 4;

/// Returns the name of the side file of a data file: `rank-00000.crc32`.
pub fn side_name(name: &str) -> String {
    format!("{}.crc32", name.strip_suffix(".safetensors").unwrap_or(name))
}

/// Returns a CRC-32 as it is written in the manifest.
pub fn hex(crc: u32) -> String {
    format!("{crc:08x}")
}

/// Returns the length of the side file for that many bytes of data.
pub fn side_len(data: u64) -> u64 {
    data.div_ceil(BLOCK as u64) * SUM as u64
}

/// Returns whether a block of data has its checksum. `side` is the content of the side file.
pub fn is_intact(side: &[u8], block: u64, data: &[u8]) -> bool {
    let sum = usize::try_from(block).ok().and_then(|b| side.as_chunks::<SUM>().0.get(b));
    sum.is_some_and(|sum| *sum == crc32fast::hash(data).to_le_bytes())
}

/// Makes the content of a side file from the bytes of the data, which come in order and in parts of any size.
#[derive(Default)]
pub struct BlockSums {
    hasher: Hasher,
    /// Bytes of the current block so far.
    filled: usize,
    side: Vec<u8>,
}

impl BlockSums {
    /// Adds bytes to the checksums.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(bytes.len().min(BLOCK - self.filled));
            self.hasher.update(part);
            self.filled += part.len();
            if self.filled == BLOCK {
                self.end_block();
            }
            bytes = rest;
        }
    }

    fn end_block(&mut self) {
        self.side.extend(std::mem::take(&mut self.hasher).finalize().to_le_bytes());
        self.filled = 0;
    }

    /// Returns the content of the side file.
    pub fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.end_block();
        }
        self.side
    }
}

/// Report of a rank to rank 0 about the file that the rank has written: what the manifest says of the file, but its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Bytes of the file.
    pub len: u64,
    /// Bytes of its header.
    pub header: u64,
    /// CRC-32 of its header.
    pub header_crc: u32,
    /// CRC-32 of its side file.
    pub blocks_crc: u32,
}

impl Written {
    /// Describes a file from its header, the bytes of its data and the content of its side file.
    pub fn new(header: &[u8], data: u64, side: &[u8]) -> Written {
        let (len, header_crc) = (header.len() as u64 + data, crc32fast::hash(header));
        Written { len, header: header.len() as u64, header_crc, blocks_crc: crc32fast::hash(side) }
    }

    /// Returns the entry of the manifest.
    pub fn saved(&self, name: String) -> SavedFile {
        let (header_crc32, blocks_crc32) = (hex(self.header_crc), hex(self.blocks_crc));
        SavedFile { name, len: self.len, sums: Some(SavedSums { header: self.header, header_crc32, blocks_crc32 }) }
    }

    /// Returns it with the rank's generator as the text of a message.
    pub fn to_message(&self, generator: GeneratorState) -> String {
        let Written { len, header, header_crc, blocks_crc } = self;
        format!("{len} {header} {header_crc} {blocks_crc} {} {}", generator.seed, generator.ordinal)
    }

    /// Reads the message of a rank.
    ///
    /// # Errors
    /// If it is no such message.
    pub fn from_message(rank: usize, text: &str) -> Result<(Written, GeneratorState)> {
        let numbers: Vec<u64> = text.split(' ').map_while(|n| n.parse().ok()).collect();
        let crc = |n: u64| u32::try_from(n).ok();
        let read = || match numbers[..] {
            [len, header, header_crc, blocks_crc, seed, ordinal] => {
                let written = Written { len, header, header_crc: crc(header_crc)?, blocks_crc: crc(blocks_crc)? };
                Some((written, GeneratorState { seed, ordinal }))
            }
            _ => None,
        };
        read().ok_or_else(|| {
            Error::storage(format!("rank {rank} did not report what it has written, but {text:?}"))
                .help("all ranks of a job must run the same version of oflow")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_any_size_give_the_same_sums() {
        let data: Vec<u8> = (0..2 * BLOCK as u32 + 77).map(|i| (i.wrapping_mul(i) >> 13) as u8).collect();
        let of_parts = |part: usize| {
            let mut sums = BlockSums::default();
            data.chunks(part).for_each(|p| sums.update(p));
            sums.finish()
        };
        let side = of_parts(data.len());
        assert_eq!(side.len() as u64, side_len(data.len() as u64));
        for part in [1000, BLOCK - 1, BLOCK, BLOCK + 1] {
            assert_eq!(of_parts(part), side);
        }
        for (block, bytes) in data.chunks(BLOCK).enumerate() {
            assert!(is_intact(&side, block as u64, bytes));
            assert!(!is_intact(&side, block as u64, &bytes[1..]) && !is_intact(&side, block as u64 + 1, bytes));
        }
        assert!(!is_intact(&side, u64::MAX, &data[..BLOCK]));
        assert_eq!((BlockSums::default().finish().len(), side_len(0)), (0, 0));
    }

    #[test]
    fn reports_of_ranks_are_read_back_or_refused() {
        let written = Written::new(b"header", 100, &[1, 2]);
        let generator = GeneratorState { seed: u64::MAX, ordinal: 7 };
        let text = written.to_message(generator);
        let (read, g) = Written::from_message(3, &text).unwrap();
        assert_eq!((read, g.seed, g.ordinal), (written, u64::MAX, 7));
        for wrong in ["", "1 2 3", "1 2 3 4 5 six", "1 2 4294967296 4 5 6", "1 2 3 4 5 6 7"] {
            let e = Written::from_message(3, wrong).unwrap_err().to_string();
            assert!(e.starts_with("rank 3 did not report what it has written"), "{e}");
        }
    }
}
