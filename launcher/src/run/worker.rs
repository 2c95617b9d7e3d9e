//! The process that runs the calls, and the command's end of it.
//!
//! The command writes a request for each line (its number and its length, eight bytes each, and the line) to the standard input of
//! the process, and reads an answer (one byte of what it is, eight bytes of length, and the line). A process that takes too
//! long is killed; after that, and after a fault of oflow, the next line has a new one.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use oflow::{CallSite, ErrorKind};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

use super::answer;
use super::bind::{Functions, arguments};
use super::call::{self, Failure};
use super::json::Json;
use super::line::{Case, id_of};
use crate::Failed;

/// Limits of a line in time and memory.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Time of one line.
    pub timeout: Duration,
    /// Address space of the process, in bytes.
    pub memory: u64,
}

/// An answer to a line.
pub struct Answered {
    /// JSON, without the end of the line.
    pub line: Vec<u8>,
    /// Whether it is an error.
    pub is_error: bool,
}

/// Kinds of answers of the process.
const OUTPUTS: u8 = 0;
const ERROR: u8 = 1;
/// An error after which the process is not to be trusted.
const FAULT: u8 = 2;

/// Lines of standard error that are kept for the report of an end.
const KEPT_LINES: usize = 5;

/// The command's end.
pub struct Worker {
    limits: Limits,
    name: String,
    running: Option<Running>,
}

/// A process, and the thread that talks to it.
struct Running {
    process: Child,
    requests: Sender<(u64, Vec<u8>)>,
    answers: Receiver<io::Result<(u8, Vec<u8>)>>,
    said: Arc<Mutex<Vec<String>>>,
    listening: JoinHandle<()>,
}

/// An error that the command itself answers with.
pub fn refused(number: u64, error: &str, kind: &str) -> Answered {
    Answered { line: answer::error(None, number, error, kind), is_error: true }
}

impl Worker {
    /// A process is started with the first line. `name` is that of the input, for errors.
    pub fn new(limits: Limits, name: &str) -> Worker {
        Worker { limits, name: name.to_string(), running: None }
    }

    /// The answer to a line.
    pub fn answer(&mut self, number: u64, line: Vec<u8>) -> Answered {
        let failed = |line: &[u8], error: &str, kind: &str| {
            // The process had the line; its id is looked for here only now that the process is gone.
            let id = Json::parse(line).ok().and_then(|line| id_of(&line).cloned());
            Answered { line: answer::error(id.as_ref(), number, error, kind), is_error: true }
        };
        let running = match self.running.take() {
            Some(running) => running,
            None => match Running::start(&self.limits, &self.name) {
                Ok(running) => running,
                Err(e) => return failed(&line, &format!("the process that runs the calls did not start: {e}"), "io"),
            },
        };
        // One that has ended does not listen; then no answer comes either.
        let _ended = running.requests.send((number, line.clone()));
        match running.answers.recv_timeout(self.limits.timeout) {
            Ok(Ok((what, text))) => {
                if what != FAULT {
                    self.running = Some(running);
                } else {
                    running.end();
                }
                Answered { line: text, is_error: what != OUTPUTS }
            }
            Err(RecvTimeoutError::Timeout) => {
                running.end();
                let limit = self.limits.timeout.as_secs_f64();
                failed(
                    &line,
                    &format!("the call had not ended after {limit} s, and was ended (--timeout sets the limit)"),
                    "timeout",
                )
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                let (status, said) = running.end();
                let (error, kind) = why(status, &said, self.limits.memory);
                failed(&line, &error, kind)
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.end();
        }
    }
}

/// Message about the end of a process, with the kind of the error.
fn why(status: Option<ExitStatus>, said: &[String], memory: u64) -> (String, &'static str) {
    let status = status.map_or("unknown".to_string(), |s| s.to_string());
    let said = said.join("; ");
    let end = format!("the process that ran the call ended ({status}): {said}");
    match () {
        () if said.contains("memory allocation of") => {
            (format!("{end}; it may take {memory} B (--memory sets the limit)"), "memory")
        }
        () if said.is_empty() && status.contains("SIGKILL") => (
            format!("the process that ran the call was killed ({status}); the machine may have run out of memory"),
            "memory",
        ),
        () => (format!("{end}. This is a fault of oflow; please report the line"), "fault"),
    }
}

impl Running {
    fn start(limits: &Limits, name: &str) -> io::Result<Running> {
        // As it runs, also if the file has been replaced since.
        let mut process = Command::new("/proc/self/exe")
            .args(["run", "--memory", &limits.memory.to_string(), "--worker", name])
            // Each arena of the C library would take 64 MiB of address space, and each rank is a thread.
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(io::Error::other("no pipes"));
        };
        let (requests, asked) = channel::<(u64, Vec<u8>)>();
        let (replies, answers) = channel();
        std::thread::Builder::new().name("oflow-run".into()).spawn(move || {
            let (mut to, mut from) = (BufWriter::new(stdin), BufReader::new(stdout));
            for (number, line) in asked {
                let answer = write_request(&mut to, number, &line).and_then(|()| read_answer(&mut from));
                let over = answer.is_err();
                if replies.send(answer).is_err() || over {
                    return;
                }
            }
        })?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let kept = said.clone();
        let listening = std::thread::Builder::new().name("oflow-run-stderr".into()).spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push(line);
                let over = kept.len().saturating_sub(KEPT_LINES);
                kept.drain(..over);
            }
        })?;
        Ok(Running { process, requests, answers, said, listening })
    }

    /// Ends the process; how it ended, and what it said last.
    fn end(self) -> (Option<ExitStatus>, Vec<String>) {
        let Running { mut process, requests, answers, said, listening } = self;
        let ended = answers.try_recv().is_ok_and(|a| a.is_err());
        drop((requests, answers));
        // One that is ending already keeps its own reason.
        if !ended {
            let _gone_already = process.kill();
        }
        let status = process.wait().ok();
        // Ends with the process; all that it said is there then.
        let _panicked = listening.join();
        let said = std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
        (status, said)
    }
}

fn write_request(to: &mut impl Write, number: u64, line: &[u8]) -> io::Result<()> {
    to.write_all(&number.to_le_bytes())?;
    to.write_all(&(line.len() as u64).to_le_bytes())?;
    to.write_all(line)?;
    to.flush()
}

fn read_answer(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let (mut what, mut len) = ([0; 1], [0; 8]);
    from.read_exact(&mut what)?;
    from.read_exact(&mut len)?;
    let len = u64::from_le_bytes(len);
    let mut text = Vec::new();
    from.take(len).read_to_end(&mut text)?;
    if (text.len() as u64) < len { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok((what[0], text)) }
}

/// First panic since the last question.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// The process itself: runs lines until there are no more.
///
/// # Errors
/// When its limits cannot be set, or the command does not listen.
pub fn serve(name: &str, memory: u64) -> Result<u8, Failed> {
    let failed = |what: &str, e: io::Error| Failed::new(format!("{what}: {e}"));
    // Without the command nobody wants the answers, also if a call hangs.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| failed("cannot follow the command", e.into()))?;
    for (what, most) in [(Resource::As, memory), (Resource::Core, 0)] {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(what, limit).map_err(|e| failed("cannot set a limit", e.into()))?;
    }
    std::panic::set_hook(Box::new(|info| {
        PANIC.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| info.to_string());
    }));
    let functions = Functions::here();
    // One name for the life of the process: the lines that errors name have it.
    let file: &'static str = Box::leak(name.to_string().into_boxed_str());
    let (mut from, mut to) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    while let Some((number, line)) = read_request(&mut from).map_err(|e| failed("cannot read a line", e))? {
        let (what, text) =
            answer_to(&functions, CallSite::at(file, u32::try_from(number).unwrap_or(u32::MAX)), number, &line);
        let written = to
            .write_all(&[what])
            .and_then(|()| to.write_all(&(text.len() as u64).to_le_bytes()))
            .and_then(|()| to.write_all(&text))
            .and_then(|()| to.flush());
        written.map_err(|e| failed("cannot answer", e))?;
    }
    Ok(0)
}

fn read_request(from: &mut impl Read) -> io::Result<Option<(u64, Vec<u8>)>> {
    let (mut number, mut len) = ([0; 8], [0; 8]);
    match from.read_exact(&mut number) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    from.read_exact(&mut len)?;
    let len = u64::from_le_bytes(len);
    let mut line = Vec::new();
    from.take(len).read_to_end(&mut line)?;
    Ok(((line.len() as u64) == len).then_some((u64::from_le_bytes(number), line)))
}

/// Runs one line: what the answer is, and its text.
fn answer_to(functions: &Functions, site: CallSite, number: u64, line: &[u8]) -> (u8, Vec<u8>) {
    let line = match Json::parse(line) {
        Ok(line) => line,
        Err(why) => return (ERROR, answer::error(None, number, &format!("the line is not JSON: {why}"), "json")),
    };
    let id = id_of(&line).cloned();
    let error = |what: u8, text: &str, kind: &str| (what, answer::error(id.as_ref(), number, text, kind));
    PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
    let ran = catch_unwind(AssertUnwindSafe(|| -> Result<Vec<u8>, (u8, Vec<u8>)> {
        let refused = |why: String| error(ERROR, &why, "argument");
        let case = Case::read(line).map_err(refused)?;
        let arguments = arguments(&case, functions).map_err(|why| refused(format!("{}: {why}", case.call)))?;
        match call::run(&case, &arguments, site) {
            Ok(answer) => Ok(answer::answer(id.as_ref(), number, &answer)),
            Err(Failure::Error(e)) => Err(error(ERROR, &e.to_string(), &kind_name(e.kind()))),
            Err(Failure::Fault(why)) => {
                Err(error(FAULT, &format!("{why}. This is a fault of oflow; please report the line"), "fault"))
            }
        }
    }));
    match ran {
        Ok(Ok(text)) => (OUTPUTS, text),
        Ok(Err(error)) => error,
        Err(_) => {
            let text = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
            error(FAULT, &format!("oflow panicked: {text}. This is a fault of oflow; please report the line"), "fault")
        }
    }
}

/// The kind of an error as a word: `shape`, `dtype`, `sbp` …
fn kind_name(kind: ErrorKind) -> String {
    format!("{kind:?}").to_lowercase()
}
