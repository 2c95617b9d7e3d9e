//! A session that writes a file of bounded size.

use super::collector::Sink;
use super::event::Event;
use super::perfetto::Writer;
use crate::comm::now_ns;
use crate::error::{Error, Result};
use oflow_files::Access;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Distance of this host's clock from that of the host of rank 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Nanoseconds to add to this host's clock.
    pub(crate) offset_ns: i64,
    /// Largest error of the offset; `None` where the clocks have not been compared.
    pub(crate) error_ns: Option<u64>,
}

/// Facts about the rank that writes a timeline, and its limit.
pub(crate) struct TraceInfo {
    pub(crate) rank: usize,
    /// How often the job has been started before.
    pub(crate) start: u32,
    pub(crate) host: String,
    /// Bytes that the file may have.
    pub(crate) limit: u64,
    /// Reads the clock; `None` while the clocks are being compared.
    pub(crate) clock: Box<dyn Fn() -> Option<Clock> + Send>,
}

/// How long events wait for the clocks to be compared.
const PATIENCE_NS: u64 = 10_000_000_000;

/// The timeline of a rank in a file.
pub(crate) struct TraceFile {
    path: PathBuf,
    file: File,
    written: u64,
    limit: u64,
    writer: Writer,
    clock: Box<dyn Fn() -> Option<Clock> + Send>,
    used: Option<Clock>,
    since: u64,
    dropped: u64,
    full: bool,
    failed: Option<Error>,
}

impl TraceFile {
    /// Makes the file; one of that name is replaced.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn make(path: &Path, info: TraceInfo) -> Result<TraceFile> {
        oflow_files::replace(path, Access::Readable, b"")?;
        Ok(TraceFile {
            path: path.to_path_buf(),
            file: oflow_files::append(path, Access::Readable)?,
            written: 0,
            limit: info.limit,
            writer: Writer::new(info.rank, info.start, &info.host),
            clock: info.clock,
            used: None,
            since: now_ns(),
            dropped: 0,
            full: false,
            failed: None,
        })
    }

    /// The offset in use. It follows a new comparison only if the two differ by more than their errors: slices that are cut in two by a
    /// jump of the clock would not nest.
    fn shift(&mut self) -> i64 {
        let now = (self.clock)().or(self.used).unwrap_or_default();
        let differs = self.used.is_none_or(|used| {
            let errors = used.error_ns.unwrap_or(u64::MAX).saturating_add(now.error_ns.unwrap_or(0));
            now.offset_ns.abs_diff(used.offset_ns) > errors
        });
        if differs {
            self.used = Some(now);
            self.writer.clock(now_ns().saturating_add_signed(now.offset_ns), now.offset_ns, now.error_ns);
        }
        self.used.map_or(0, |c| c.offset_ns)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn flush(&mut self) {
        let bytes = self.writer.take();
        if self.is_full() {
            return;
        }
        if self.written + bytes.len() as u64 > self.limit {
            self.full = true;
            return;
        }
        match self.file.write_all(&bytes) {
            Ok(()) => self.written += bytes.len() as u64,
            Err(e) => {
                let why = Error::storage(format!("cannot write {}", self.path.display())).because(e);
                self.failed = Some(why.help("the timeline ends here; free some space, or name another folder"));
            }
        }
    }

    /// Writes what is left. Returns a sentence about what is missing in the file, if anything is.
    ///
    /// # Errors
    /// The file could not be written.
    pub(crate) fn finish(&mut self) -> Result<Option<String>> {
        if self.used.is_none() {
            self.shift();
        }
        self.writer.finish();
        self.flush();
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        Ok(if self.full {
            Some(format!(
                "{} ends after {} MiB, its limit; it has the first part of the run (--trace-steps chooses steps, --trace-mib the limit)",
                self.path.display(),
                self.limit >> 20
            ))
        } else if self.dropped > 0 {
            Some(format!("{} lacks {} events that came too fast to be written", self.path.display(), self.dropped))
        } else {
            None
        })
    }
}

impl Sink for TraceFile {
    fn is_ready(&mut self) -> bool {
        self.used.is_some() || (self.clock)().is_some() || now_ns().saturating_sub(self.since) > PATIENCE_NS
    }

    fn take(&mut self, thread: (u32, &str), events: &[Event]) {
        if self.is_full() {
            return;
        }
        let shift = self.shift();
        self.writer.events(thread, events, shift);
        self.flush();
    }

    fn dropped(&mut self, count: u64) {
        self.dropped += count;
    }

    fn is_full(&self) -> bool {
        self.full || self.failed.is_some()
    }
}
