//! For `cargo xtask fuzz`: memory files of recorders, damaged where it matters.
//!
//! A whole ring is most of a megabyte, most of it of one kind. An input is its head and the first records of each kind; the rest of
//! the file stays zero.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::ring::{CallWords, OpWords, Ring, SECTIONS, node_word};
use oflow_base::Result;
use oflow_comm::Collective;

/// Bytes of each section that an input has.
const KEPT: usize = 1024;

/// Writes the file that an input stands for. Its first byte says whether the file has its right length.
///
/// # Errors
/// When it cannot be written.
pub fn write(input: &[u8], file: &File) -> Result<()> {
    let (how, mut rest) = input.split_first().map_or((0, input), |(how, rest)| (*how, rest));
    file.set_len(0)?;
    for (at, len) in SECTIONS {
        let part = &rest[..rest.len().min(KEPT.min(len))];
        file.write_all_at(part, at as u64)?;
        rest = &rest[part.len()..];
    }
    let [.., (at, len)] = SECTIONS;
    file.set_len((at + len) as u64 + if how & 0xf8 == 8 { u64::from(how & 7) } else { 0 })?;
    Ok(())
}

/// A ring as a rank leaves it, made in an empty file.
///
/// # Errors
/// When there is no room for one.
pub fn recorded(file: &File) -> Result<Vec<u8>> {
    let ring = Ring::create(Some(file), 1, 4)?;
    let texts: Vec<u64> = ["relu", "relu(f32[4] [B])", "train.rs", "sum"]
        .iter()
        .zip(1..)
        .map(|(text, count)| ring.write_text(count, text))
        .collect();
    for ordinal in 1..=6 {
        ring.write_op(&OpWords {
            ordinal,
            hash: ordinal * 7,
            time_ns: ordinal,
            op: texts[0],
            call: texts[1],
            file: texts[2],
            line: 9,
        });
        let ranks = [0, 1, 2, 3];
        ring.begin_call(
            ordinal,
            &CallWords {
                ordinal,
                kind: Collective::AllReduce,
                bytes: 64,
                queued: ordinal == 6,
                start_ns: ordinal,
                op: texts[3],
                file: texts[2],
                line: 9,
                ranks: &ranks,
            },
        );
        if ordinal < 6 {
            ring.end_call(ordinal, ordinal + 1, ordinal == 3);
        }
    }
    ring.write_node_call(1, "exp(f32[4] [B])", "train.rs", 12);
    ring.begin_run(6);
    ring.come_to(node_word(4, 1));
    let mut input = vec![0];
    for (at, len) in SECTIONS {
        let from = input.len();
        input.resize(from + KEPT.min(len), 0);
        file.read_exact_at(&mut input[from..], at as u64)?;
    }
    Ok(input)
}
