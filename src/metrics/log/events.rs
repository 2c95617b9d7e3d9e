//! Event files of TensorBoard: records of TFRecord, each the protobuf message `Event`.
//!
//! A record is its length (u64, little endian), the masked CRC-32C of the length, the message, and the masked CRC-32C of the message.

use super::file::append;
use super::row::Row;
use crate::error::{Error, Result};
use oflow_files::Access;
use oflow_proto::tensorboard::event::What;
use oflow_proto::tensorboard::session_log::SessionStatus;
use oflow_proto::tensorboard::summary::{self, value::Value::SimpleValue};
use oflow_proto::tensorboard::{Event, SessionLog, Summary};
use oflow_proto::write_event;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Names of event files, which have more after it.
const PREFIX: &str = "events.out.tfevents.";

pub(super) struct Events {
    path: PathBuf,
    file: File,
}

impl Events {
    /// Makes a file in a folder. Readers take the files of a folder in the order of their names, and one that resumes makes them forget the
    /// events of its step and later.
    pub fn open(folder: &Path, resumed: Option<usize>) -> Result<Events> {
        oflow_files::folders(folder, Access::Readable)?;
        if resumed.is_none() && has_events(folder) {
            return Err(Error::argument(format!("{} has the event files of another run", folder.display()))
                .help("name another path, or continue the run with `resume`"));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, host, process) = (now.as_secs(), oflow_files::lock::host(), std::process::id());
        let path_of = |n: usize| folder.join(format!("{PREFIX}{seconds:010}.{host}.{process}.{n}"));
        // Logs of one second in one process.
        let free = (0..1000).map(path_of).find(|path| path.symlink_metadata().is_err());
        let path = free.unwrap_or_else(|| path_of(1000));
        let mut events = Events { file: oflow_files::create(&path, Access::Readable)?, path };
        let wall_time = now.as_secs_f64();
        let mut first = record(&Event { wall_time, step: 0, what: Some(What::FileVersion("brain.Event:2".into())) });
        if let Some(step) = resumed {
            let start = What::SessionLog(SessionLog { status: SessionStatus::Start.into() });
            first.extend(record(&Event { wall_time, step: step as i64, what: Some(start) }));
        }
        append(&mut events.file, &events.path, &first)?;
        Ok(events)
    }

    pub fn write(&mut self, rows: &[Row]) -> Result<()> {
        let records: Vec<u8> = rows.iter().flat_map(|row| record(&event(row))).collect();
        append(&mut self.file, &self.path, &records)
    }
}

fn has_events(folder: &Path) -> bool {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.file_name());
    names.into_iter().any(|name| name.to_string_lossy().starts_with(PREFIX))
}

fn event(row: &Row) -> Event {
    let value = row
        .values
        .iter()
        .map(|(name, x)| summary::Value { tag: name.to_string(), value: Some(SimpleValue(*x as f32)) });
    Event { wall_time: row.time, step: row.step as i64, what: Some(What::Summary(Summary { value: value.collect() })) }
}

fn record(event: &Event) -> Vec<u8> {
    let message = write_event(event);
    let length = (message.len() as u64).to_le_bytes();
    let mut all = Vec::with_capacity(message.len() + 16);
    all.extend(length);
    all.extend(masked(crc32c(&length)).to_le_bytes());
    all.extend(&message);
    all.extend(masked(crc32c(&message)).to_le_bytes());
    all
}

/// TFRecord's masking: a checksum of bytes that contain checksums is weak otherwise.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli's polynomial, reflected), by a table. Other checksums of oflow are CRC-32, of another polynomial.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    !bytes.iter().fold(!0, |crc, b| TABLE[usize::from((crc as u8) ^ b)] ^ (crc >> 8))
}

const fn table() -> [u32; 256] {
    let (mut table, mut i) = ([0; 256], 0);
    while i < 256 {
        let (mut crc, mut bit) = (i as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32c_has_the_values_of_rfc_3720() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn a_record_is_framed_as_tfrecord() {
        let record = record(&Event { wall_time: 0.0, step: 0, what: Some(What::FileVersion("brain.Event:2".into())) });
        assert_eq!(record[..8], 15u64.to_le_bytes());
        assert_eq!(record[12..27], *b"\x1a\x0dbrain.Event:2");
        assert_eq!(record.len(), 31);
        assert_eq!(masked(0), 0xa282_ead8);
    }
}
