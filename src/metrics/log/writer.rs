//! A log, and the log of a rank.

use super::files::Files;
use super::options::LogOptions;
use super::pending::Pending;
use super::row::Row;
use super::value::LogValue;
use crate::context::current;
use crate::error::{CallSite, Error, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A log of metrics. Every rank makes one with the same arguments; rank 0 writes the files.
///
/// ```
/// use oflow::metrics::{Log, LogOptions};
/// use oflow::prelude::*;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("first");
/// let _world = oflow::init()?;
/// // let path = "run/first";
/// let log = Log::new(&path, LogOptions::default())?;
/// for step in 0..3 {
///     let loss = full([1], 0.5f32.powi(step as i32), Device::Cpu)?;
///     log.log(step, &[("loss", &loss), ("lr", &0.1)])?;
/// }
/// log.flush()?;
/// let lines = std::fs::read_to_string(path.with_extension("jsonl")).unwrap();
/// assert!(lines.lines().last().unwrap().ends_with(r#""loss":0.25,"lr":0.1}"#));
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// A log that is dropped writes the values that need no communication: plain numbers, local tensors, and in a world of one rank all. Call
/// [`Log::flush`] on every rank at the end of a program.
pub struct Log(Arc<Mutex<State>>);

/// A log behind its handles.
struct State {
    pending: Pending,
    /// On the rank that writes, from the first step on.
    files: Option<Files>,
    writes: bool,
    path: PathBuf,
    options: LogOptions,
}

impl Log {
    /// Makes a log whose files begin with `path`: `path.jsonl`, `path.csv` and the folder `path`. Folders are made as needed.
    ///
    /// # Errors
    /// If rank 0 cannot make the files. A file that is there is an error without [`LogOptions::resume`].
    #[track_caller]
    pub fn new(path: impl AsRef<Path>, options: LogOptions) -> Result<Log> {
        CallSite::here().run(|| Log::make(path.as_ref().to_path_buf(), options))
    }

    fn make(path: PathBuf, options: LogOptions) -> Result<Log> {
        check(&path, &options)?;
        let ctx = current();
        let writes = ctx.rank() == 0 && !ctx.is_dry();
        let files = (writes && !options.resume).then(|| Files::create(&path, &options.formats)).transpose()?;
        let pending = Pending::new(&options, ctx.world(), writes);
        Ok(Log(Arc::new(Mutex::new(State { pending, files, writes, path, options }))))
    }

    /// The log of a program that has installed none: `run/1`, or the first number that is free.
    fn numbered() -> Result<Log> {
        let free = |n: &usize| !Path::new(&format!("run/{n}.jsonl")).exists();
        let n = (1..).find(free).unwrap_or(1);
        Log::make(PathBuf::from(format!("run/{n}")), LogOptions::default())
    }

    /// Logs values of a step. Nothing is read or sent, unless a flush is due. Global tensors may have any layout, also P; tensors are logged with
    /// the value that they have at the call. All ranks log the same global tensors in the same order. Values of one step may be logged in several
    /// calls.
    ///
    /// # Errors
    /// If a tensor has more than one element or is complex, if a step is lower than the one before, if a name is logged twice in a step, and those of
    /// [`Log::flush`].
    #[track_caller]
    pub fn log(&self, step: usize, values: &[(&str, &dyn LogValue)]) -> Result<()> {
        CallSite::here().run(|| self.state().log(step, values))
    }

    /// Writes what has been logged. A collective of the world if global tensors have been logged, or if values of all ranks are taken.
    ///
    /// # Errors
    /// If communication fails, or if rank 0 cannot write.
    #[track_caller]
    pub fn flush(&self) -> Result<()> {
        CallSite::here().run(|| {
            refuse_in_capture()?;
            self.state().flush()
        })
    }

    /// Makes this the log of [`log`] for this rank, instead of the one before.
    ///
    /// # Errors
    /// If the log before has values that are not written and cannot be flushed.
    #[track_caller]
    pub fn install(&self) -> Result<()> {
        CallSite::here().run(|| {
            refuse_in_capture()?;
            flush_installed()?;
            *current().log_slot() = Some(self.0.clone());
            Ok(())
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Values are kept only after all checks, so what a panic leaves is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(path: &Path, options: &LogOptions) -> Result<()> {
    refuse_in_capture()?;
    let refused = |why: &str| Err(Error::argument(format!("a log cannot be made: {why}")));
    if path.file_name().is_none() {
        return refused("its path must end in a name, such as run/first");
    }
    if options.flush_every == 0 {
        return refused("`flush_every` must be at least 1");
    }
    if options.formats.is_empty() {
        return refused("it has no format; give jsonl, csv or tensorboard");
    }
    Ok(())
}

/// A graph runs its calls again, but no host code.
fn refuse_in_capture() -> Result<()> {
    let ctx = current();
    if ctx.capture().is_some() { ctx.not_dry("log metrics") } else { Ok(()) }
}

impl State {
    fn log(&mut self, step: usize, values: &[(&str, &dyn LogValue)]) -> Result<()> {
        refuse_in_capture()?;
        let new = self.pending.check(step, values)?;
        if current().is_dry() {
            return self.pending.note(&new);
        }
        if self.writes && self.files.is_none() {
            self.files = Some(Files::resume(&self.path, &self.options.formats, step)?);
        }
        if self.pending.is_due(step, &new) {
            let rows = self.pending.take(Some(step))?;
            self.write(&rows)?;
        }
        self.pending.keep(step, new)
    }

    fn flush(&mut self) -> Result<()> {
        let rows = self.pending.take(None)?;
        self.write(&rows)
    }

    fn write(&mut self, rows: &[Row]) -> Result<()> {
        if let (true, Some(live)) = (self.writes, current().live()) {
            rows.iter().for_each(|row| live.log(row.step, row.values.iter().map(|(name, value)| (&**name, *value))));
        }
        match &mut self.files {
            Some(files) if !rows.is_empty() => files.write(rows),
            _ => Ok(()),
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // Other ranks may not drop theirs now, so nothing may be sent.
        let (rows, lost) = self.pending.take_own(std::thread::panicking());
        let name = self.path.display().to_string();
        if let Err(e) = self.write(&rows) {
            eprintln!("oflow: the last steps of the log {name} are not written: {e}");
        }
        // A program that has failed, or whose job has, could not have flushed it.
        let failed = std::thread::panicking() || current().control().is_some_and(|c| c.has_failed());
        if let (true, Some(step)) = (self.writes && !failed, lost) {
            eprintln!(
                "oflow: the log {name} lacks the global tensors of step {step} and later: flush it on every rank before the program ends"
            );
        }
    }
}

/// Logs values of a step to this rank's log: the one that [`Log::install`] has given, else a new one in the folder `run`, named by the first number
/// that is free.
///
/// Nothing is read or sent, unless a flush is due. [The page on metrics](crate::docs::metrics) tells which values may be logged and what the
/// files have.
///
/// ```no_run
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?;
/// for step in 0..300 {
///     let loss = rand([], (&mesh, sbp![B]))?;
///     oflow::log(step, &[("loss", &loss), ("lr", &1e-3)])?;
/// }
/// oflow::metrics::flush_log()?; // run/1.jsonl, run/1.csv and run/1/events.out.tfevents.…
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// Those of [`Log::log`] and [`Log::new`].
#[track_caller]
pub fn log(step: usize, values: &[(&str, &dyn LogValue)]) -> Result<()> {
    CallSite::here().run(|| {
        refuse_in_capture()?;
        let log = match installed() {
            Some(log) => log,
            None => {
                let log = Log::numbered()?;
                *current().log_slot() = Some(log.0.clone());
                log
            }
        };
        log.log(step, values)
    })
}

/// Writes what [`log`] has kept. A collective of the world: every rank calls it, at the end of a program too.
///
/// # Errors
/// Those of [`Log::flush`].
#[track_caller]
pub fn flush_log() -> Result<()> {
    CallSite::here().run(|| {
        refuse_in_capture()?;
        flush_installed()
    })
}

fn flush_installed() -> Result<()> {
    installed().map_or(Ok(()), |log| log.state().flush())
}

/// The log of this rank's context.
fn installed() -> Option<Log> {
    current().log_slot().clone()?.downcast::<Mutex<State>>().ok().map(Log)
}
