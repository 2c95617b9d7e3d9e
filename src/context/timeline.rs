//! Timeline of a rank from its start to its end (`oflaunch --trace`).

use crate::control::{ControlClient, RESTART_VARIABLE, TRACE_MIB_VARIABLE, TRACE_STEPS_VARIABLE, TRACE_VARIABLE};
use crate::error::{Error, Result};
use crate::trace::{Clock, Session, Steps, TraceFile, TraceInfo};
use oflow_files::Access;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Size that a timeline may have where the user says nothing, in MiB.
const MIB: u64 = 64;

/// The rank whose timeline is written.
pub(super) struct TimelineOf<'a> {
    pub(super) rank: usize,
    /// Under which its threads record.
    pub(super) owner: u32,
    pub(super) control: Option<&'a ControlClient>,
}

/// A timeline that is being written.
pub(super) struct Timeline {
    /// Ended before the file is finished.
    session: Option<Session>,
    file: Arc<Mutex<TraceFile>>,
}

impl Timeline {
    /// The timeline that the environment asks for, if it does.
    pub(super) fn of_environment(of: &TimelineOf<'_>) -> Result<Option<Timeline>> {
        let Some(folder) = std::env::var_os(TRACE_VARIABLE).filter(|v| !v.is_empty()) else { return Ok(None) };
        let folder = PathBuf::from(folder);
        let steps = steps()?;
        let limit = mib()? << 20;
        let start = std::env::var(RESTART_VARIABLE).ok().and_then(|n| n.parse().ok()).unwrap_or(0);
        oflow_files::folders(&folder, Access::Readable)?;
        let path = folder.join(trace_file_name(of.rank, start));
        let file = TraceFile::make(&path, info(of, start, limit))?;
        Ok(Some(Timeline::start(of.owner, steps, file)?))
    }

    /// Writes `rank-N.pftrace` in a folder, from here on.
    pub(super) fn in_folder(of: &TimelineOf<'_>, folder: &Path) -> Result<Timeline> {
        oflow_files::folders(folder, Access::Readable)?;
        let file = TraceFile::make(&folder.join(trace_file_name(of.rank, 0)), info(of, 0, MIB << 20))?;
        Timeline::start(of.owner, 0..u64::MAX, file)
    }

    fn start(owner: u32, steps: Steps, file: TraceFile) -> Result<Timeline> {
        let file = Arc::new(Mutex::new(file));
        let session = Session::start(owner, steps, file.clone())?;
        Ok(Timeline { session: Some(session), file })
    }

    /// Ends it. Returns the path, and a sentence about what is missing in the file if anything is.
    pub(super) fn finish(mut self) -> Result<(PathBuf, Option<String>)> {
        self.session = None;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = file.finish()?;
        Ok((file.path().to_path_buf(), missing))
    }
}

fn info(of: &TimelineOf<'_>, start: u32, limit: u64) -> TraceInfo {
    let clock: Box<dyn Fn() -> Option<Clock> + Send> = match of.control {
        None => Box::new(|| Some(Clock { offset_ns: 0, error_ns: Some(0) })),
        Some(control) => {
            // Not the client: a rank says goodbye before its timeline ends.
            let host = control.host_clock();
            Box::new(move || {
                let (offset_ns, error) = host.offset()?;
                Some(Clock { offset_ns, error_ns: Some(error) })
            })
        }
    };
    TraceInfo { rank: of.rank, start, host: oflow_files::lock::host(), limit, clock }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        // Finished already if it is none.
        if self.session.take().is_none() {
            return;
        }
        match self.file.lock().unwrap_or_else(PoisonError::into_inner).finish() {
            Ok(None) => {}
            Ok(Some(missing)) => tracing::warn!("timeline: {missing}"),
            Err(e) => tracing::warn!("timeline: {e}"),
        }
    }
}

/// Name of the file of a rank's timeline, after so many restarts of the job.
pub fn trace_file_name(rank: usize, start: u32) -> String {
    match start {
        0 => format!("rank-{rank}.pftrace"),
        _ => format!("rank-{rank}-restart-{start}.pftrace"),
    }
}

fn steps() -> Result<Steps> {
    match std::env::var(TRACE_STEPS_VARIABLE).ok().filter(|t| !t.is_empty()) {
        None => Ok(0..u64::MAX),
        Some(text) => {
            trace_steps(&text).map_err(|e| e.within(|| format!("environment variable {TRACE_STEPS_VARIABLE}")))
        }
    }
}

/// Reads a range of steps, as `100..120`.
///
/// # Errors
/// If the text is no range, or an empty one.
pub fn trace_steps(text: &str) -> Result<Steps> {
    let parsed = text.split_once("..").and_then(|(a, b)| {
        let from = if a.is_empty() { 0 } else { a.parse().ok()? };
        let to = if b.is_empty() { u64::MAX } else { b.parse().ok()? };
        (from < to).then_some(from..to)
    });
    parsed.ok_or_else(|| {
        Error::argument(format!(
            "the steps are {text:?}, not a range such as `100..120`, `..20` or `100..`: the first one and the one after the last, from 0"
        ))
    })
}

fn mib() -> Result<u64> {
    match std::env::var(TRACE_MIB_VARIABLE).ok().filter(|t| !t.is_empty()) {
        None => Ok(MIB),
        Some(text) => text.parse().ok().filter(|n| (1..=1 << 20).contains(n)).ok_or_else(|| {
            Error::argument(format!("environment variable {TRACE_MIB_VARIABLE} is {text:?}, not 1 to 1048576"))
        }),
    }
}
