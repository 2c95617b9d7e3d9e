//! The output of each rank in a file (`--log-dir`): `rank-N.log`, every line with the time, the rank and the stream.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use oflow_files::Access;

use crate::Failed;
use crate::output::Stream;
use crate::terminal::Plain;
use crate::undelivered::Undelivered;

/// A line longer than this is written in pieces.
const LONGEST_LINE: usize = 64 << 10;

/// The log files of the ranks of this host.
pub struct Logs {
    folder: PathBuf,
    /// By rank; none: the file could not be written, which has been said.
    files: BTreeMap<usize, Option<Log>>,
    undelivered: Undelivered,
}

struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    /// The line that each stream is in, without escape sequences.
    lines: [Vec<u8>; 2],
    plain: [Plain; 2],
}

/// Returns the path of a rank's log.
pub fn path(folder: &Path, rank: usize) -> PathBuf {
    folder.join(format!("rank-{rank}.log"))
}

/// Creates the folder of the logs if it does not exist. Other users can never write to it, whatever the umask.
///
/// # Errors
/// If it cannot be made, or if another user could replace what is in it.
pub fn make_folder(folder: &Path) -> Result<(), Failed> {
    let made = oflow_files::folders(folder, Access::Readable).and_then(|()| oflow_files::check(folder));
    made.map_err(|e| Failed::new(format!("no logs can be kept: {e}")))
}

impl Logs {
    /// Makes the logs in a folder, which is created if it does not exist. Restarts of the job append
    /// to the files. What cannot be written is told to `undelivered`.
    pub fn open(folder: &Path, undelivered: Undelivered) -> Result<Logs, Failed> {
        make_folder(folder)?;
        Ok(Logs { folder: folder.to_path_buf(), files: BTreeMap::new(), undelivered })
    }

    /// Adds output of a rank, in pieces of any size.
    pub fn write(&mut self, rank: usize, stream: Stream, bytes: &[u8]) {
        let (folder, undelivered) = (&self.folder, &self.undelivered);
        let slot = self.files.entry(rank).or_insert_with(|| Log::open(path(folder, rank), undelivered));
        Log::attempt(slot, undelivered, |log| log.write(rank, stream, bytes));
    }

    /// Flushes the files.
    pub fn flush(&mut self) {
        for slot in self.files.values_mut() {
            Log::attempt(slot, &self.undelivered, |log| log.file.flush());
        }
    }

    /// Ends the last lines.
    pub fn finish(mut self) {
        for (rank, slot) in &mut self.files {
            for stream in [Stream::Out, Stream::Err] {
                Log::attempt(slot, &self.undelivered, |log| match log.lines[stream as usize].is_empty() {
                    true => Ok(()),
                    false => log.end_line(*rank, stream),
                });
            }
        }
        self.flush();
    }
}

impl Log {
    fn open(path: PathBuf, undelivered: &Undelivered) -> Option<Log> {
        match oflow_files::append(&path, Access::Readable) {
            Ok(file) => {
                Some(Log { path, file: BufWriter::new(file), lines: Default::default(), plain: Default::default() })
            }
            Err(e) => {
                undelivered.lost(&format!("cannot write the log {}: {e}", path.display()));
                None
            }
        }
    }

    /// Does something with a log that can be written; after the first failure nothing more goes to it.
    fn attempt(slot: &mut Option<Log>, undelivered: &Undelivered, act: impl FnOnce(&mut Log) -> io::Result<()>) {
        if let Some(log) = slot
            && let Err(e) = act(log)
        {
            undelivered.lost(&format!("cannot write the log {}: {e}", log.path.display()));
            *slot = None;
        }
    }

    fn write(&mut self, rank: usize, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        for &byte in bytes {
            if !self.plain[stream as usize].keeps(byte) {
                continue;
            }
            let line = &mut self.lines[stream as usize];
            match byte {
                b'\n' => self.end_line(rank, stream)?,
                _ => {
                    // Text after a carriage return stands where the line was: of a progress bar the last state counts.
                    if line.last() == Some(&b'\r') {
                        line.clear();
                    }
                    line.push(byte);
                    if line.len() >= LONGEST_LINE {
                        self.end_line(rank, stream)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn end_line(&mut self, rank: usize, stream: Stream) -> io::Result<()> {
        let name = match stream {
            Stream::Out => "out",
            Stream::Err => "err",
        };
        write!(self.file, "{} rank {rank} {name}: ", stamp(SystemTime::now()))?;
        let line = &mut self.lines[stream as usize];
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        self.file.write_all(text)?;
        line.clear();
        self.file.write_all(b"\n")
    }
}

/// Returns a time as `2026-11-20T19:33:36.123Z`.
pub fn stamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// Year, month and day of a day since 1970-01-01. Years are counted from March on, so that the day that comes every four
/// years is the last of its year, and in eras of 400 years, which all have the same number of days.
fn date(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097;
    // From 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year, if month < 10 { month + 3 } else { month - 9 });
    (year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::undelivered::Cause;
    use std::time::Duration;

    #[test]
    fn times_are_written_as_people_read_them() {
        let at = |seconds: u64| stamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(951_868_799), "2000-02-29T23:59:59.000Z");
        assert_eq!(at(1_795_203_216), "2026-11-20T19:33:36.000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000Z");
        assert_eq!(stamp(UNIX_EPOCH + Duration::from_millis(86_400_007)), "1970-01-02T00:00:00.007Z");
    }

    #[test]
    fn every_line_has_time_rank_and_stream() {
        let folder = tempfile::tempdir().unwrap();
        let mut logs = Logs::open(&folder.path().join("deep/logs"), Undelivered::default()).unwrap();
        logs.write(3, Stream::Out, b"on");
        logs.write(3, Stream::Err, b"warning\r\n");
        logs.write(3, Stream::Out, b"e\n\n 10%\r 20%");
        logs.write(3, Stream::Out, b"\r 30%\nopen");
        logs.finish();
        let text = std::fs::read_to_string(path(&folder.path().join("deep/logs"), 3)).unwrap();
        let lines: Vec<&str> = text.lines().map(|l| l.split_once("Z ").unwrap().1).collect();
        assert_eq!(
            lines,
            ["rank 3 err: warning", "rank 3 out: one", "rank 3 out: ", "rank 3 out:  30%", "rank 3 out: open"]
        );
    }

    #[test]
    fn the_last_line_that_does_not_fit_is_told_too() {
        let folder = tempfile::tempdir().unwrap();
        let undelivered = Undelivered::new(true);
        let mut logs = Logs::open(folder.path(), undelivered.clone()).unwrap();
        let path = PathBuf::from("/dev/full");
        let file = BufWriter::new(std::fs::OpenOptions::new().write(true).open(&path).unwrap());
        logs.files.insert(0, Some(Log { path, file, lines: Default::default(), plain: Default::default() }));
        logs.write(0, Stream::Out, b"end");
        logs.flush();
        assert_eq!(undelivered.first(), None);
        logs.finish();
        let Some(Cause::Unwritten(text)) = undelivered.first() else { panic!("nothing is told") };
        assert!(text.contains("/dev/full: No space left"), "{text}");
    }
}
