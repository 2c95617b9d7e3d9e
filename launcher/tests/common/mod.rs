//! What the tests share: a folder with shell scripts, oflaunch as a child process, and waiting with a deadline.
#![allow(dead_code, reason = "each test program uses its part")]

pub mod hosts;
pub mod tap;
mod threads;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit, test_kill_process_group};

pub(crate) use threads::test_threads;

pub const LONG: Duration = Duration::from_secs(20);

/// Waits until `ready` returns something; panics after `limit`.
pub fn wait_for<T>(what: &str, limit: Duration, mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {limit:?} for {what}");
        // Tests that wait leave the cores to those that do not.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Step (from 1) and loss of a line that an example prints for a step: `step 3/12: loss 5.41 (12.3 ms)`, maybe after `[rank 0] `.
pub fn step_of(line: &str) -> Option<(usize, f64)> {
    let (step, rest) = line.strip_prefix("[rank 0] ").unwrap_or(line).strip_prefix("step ")?.split_once('/')?;
    let loss = rest.split_once(": loss ")?.1.split(' ').next()?;
    Some((step.parse().ok()?, loss.parse().ok()?))
}

/// Loss of each step in the output of an example. A step that was run again after a restart has the later loss.
pub fn losses_of(output: &str) -> BTreeMap<usize, f64> {
    output.lines().filter_map(step_of).collect()
}

pub struct Folder {
    path: PathBuf,
    /// Removes the folder in the end, if it is one to be removed.
    _temporary: Option<tempfile::TempDir>,
}

impl Folder {
    pub fn new() -> Folder {
        let temporary = tempfile::tempdir().unwrap();
        Folder { path: temporary.path().to_path_buf(), _temporary: Some(temporary) }
    }

    /// A folder that stays: what is built from scripts in it is built over in the next run instead of piling up.
    pub fn lasting(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Folder { path, _temporary: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An executable shell script.
    pub fn sh(&self, name: &str, body: &str) -> PathBuf {
        let path = self.write(name, &format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The process ids that ranks have written into files `pid0`, `pid1` … (`echo $$ >pid$RANK.new; mv …`).
    pub fn pids(&self, world: usize) -> Vec<i32> {
        (0..world)
            .map(|rank| {
                wait_for("pid file", LONG, || {
                    fs::read_to_string(self.path().join(format!("pid{rank}"))).ok()?.trim().parse().ok()
                })
            })
            .collect()
    }
}

/// A small disk, as long as this lives.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a new file system of this size (`64k`, `3m`) at a folder, which is made; says so where that is not allowed.
    pub fn tmpfs(at: &Path, size: &str) -> Option<Mounted> {
        fs::create_dir_all(at).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(at).output();
        if mounted.is_ok_and(|o| o.status.success()) {
            return Some(Mounted(at.into()));
        }
        eprintln!("nothing may be mounted here: not tested");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _busy = Command::new("umount").arg(&self.0).output();
    }
}

/// Leave for one test at a time to open thousands of files. What the others have open beside is a few hundred.
pub struct ManyFiles {
    /// How many this process may have open now: as many as were asked for, or fewer where that is not allowed.
    pub most: u64,
    _alone: MutexGuard<'static, ()>,
}

impl ManyFiles {
    pub fn open(wanted: u64) -> ManyFiles {
        static ALONE: Mutex<()> = Mutex::new(());
        // A test that has failed has closed its files.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = getrlimit(Resource::Nofile);
        let most = limit.maximum.unwrap_or(u64::MAX).min(wanted);
        if limit.current.is_some_and(|current| current < most) {
            setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit }).unwrap();
        }
        ManyFiles { most, _alone: alone }
    }
}

/// Shell line by which a rank tells its process id, once all before it has been done.
pub const TELL_PID: &str = "echo $$ >pid$RANK.new && mv pid$RANK.new pid$RANK";

pub fn oflaunch(folder: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oflaunch"));
    // Whoever runs the tests may have calibrated.
    command.current_dir(folder.path()).stdin(Stdio::null()).env("OFLOW_MODEL", "default");
    // The flight records of jobs that fail go with the folder.
    command.env("TMPDIR", folder.path());
    command
}

/// The executable of a script of this repository, built as any script is, by a run of one rank with these arguments. That may
/// take minutes where the library has not been built for scripts yet, so a test file asks once.
pub fn built(script: &Path, args: &[&str]) -> String {
    let folder = Folder::new();
    let script = script.to_str().unwrap();
    let output = run(&folder, &[&["-n", "1", script], args].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let plan = stdout(&run(&folder, &["-n", "1", "--dry-run", script]));
    plan.lines().find_map(|l| l.strip_prefix("run:")).unwrap().trim().to_string()
}

pub fn job_source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/job.rs")
}

/// The executable of `scripts/job.rs`.
pub fn job() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| built(&job_source(), &[]))
}

/// Runs oflaunch to its end.
/// `file:line` of the n-th line of the job after `function` that contains the text.
pub fn line_of_job(function: &str, text: &str) -> String {
    let source = job_source();
    let code = fs::read_to_string(&source).unwrap();
    let lines: Vec<&str> = code.lines().collect();
    let begin = lines.iter().position(|l| l.starts_with(&format!("fn {function}("))).unwrap();
    let line = begin + lines[begin..].iter().position(|l| l.contains(text)).unwrap() + 1;
    format!("{}:{line}", source.canonicalize().unwrap().display())
}

pub fn run(folder: &Folder, args: &[&str]) -> Output {
    oflaunch(folder).args(args).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    without_load(&String::from_utf8(output.stderr.clone()).unwrap())
}

/// What oflaunch says about other work on the ranks' cores: that depends on the machine's load, which may be that of other tests.
pub const OTHER_WORK: &str = "oflaunch: other work uses the cores of this job: ";

fn without_load(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with(OTHER_WORK)).collect()
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("oflaunch was killed: {:?}", output.status.signal()))
}

/// An oflaunch that runs beside the test.
pub struct Running {
    child: Child,
}

impl Running {
    pub fn start(folder: &Folder, args: &[&str]) -> Running {
        Running::of(oflaunch(folder).args(args))
    }

    pub fn of(command: &mut Command) -> Running {
        Running { child: command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap() }
    }

    /// How it ended, what it printed to stdout and to stderr.
    pub fn finish_all(mut self) -> (ExitStatus, String, String) {
        let mut out = self.stdout();
        let (status, err) = self.finish();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut out, &mut text).unwrap();
        (status, text, err)
    }

    /// What it prints to stdout.
    pub fn stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().unwrap()
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What it prints to stderr up to a text that it prints sooner or later.
    pub fn said(&mut self, wanted: &str) -> String {
        let (mut said, mut byte) = (Vec::new(), [0]);
        let stderr = self.child.stderr.as_mut().unwrap();
        while !said.ends_with(wanted.as_bytes()) {
            let n = std::io::Read::read(stderr, &mut byte).unwrap();
            assert_eq!(n, 1, "it ended before {wanted:?}: {}", String::from_utf8_lossy(&said));
            said.push(byte[0]);
        }
        String::from_utf8_lossy(&said).into_owned()
    }

    pub fn finish(self) -> (ExitStatus, String) {
        self.finish_within(LONG)
    }

    /// How it ended and what it printed to stderr, if it ends soon enough.
    pub fn finish_within(self, limit: Duration) -> (ExitStatus, String) {
        let (status, text) = self.finish_whole(limit);
        (status, without_load(&text))
    }

    /// The same, with what it said about other work.
    pub fn finish_whole(mut self, limit: Duration) -> (ExitStatus, String) {
        let status = wait_for("oflaunch to end", limit, || self.child.try_wait().unwrap());
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut text).unwrap();
        (status, text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that has failed must not leave a job behind; the ranks die with their launcher.
        let _may_have_ended = self.child.kill();
        let _may_be_reaped = self.child.wait();
    }
}

pub fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Asserts that nothing is left of the process groups, at once or within moments where the kernel still cleans up.
pub fn assert_gone(groups: &[i32]) {
    for &group in groups {
        wait_for("process group to be gone", LONG, || {
            test_kill_process_group(Pid::from_raw(group).unwrap()).is_err().then_some(())
        });
    }
}

/// The rows of a report's table of communication, each on a line of its own.
pub fn unwrapped(table: &str) -> String {
    let mut rows: Vec<String> = vec![];
    for line in table.lines() {
        match (line.strip_prefix(&" ".repeat(49)), rows.last_mut()) {
            (Some(more), Some(row)) => *row += &format!(" {}", more.trim_start()),
            _ => rows.push(line.to_string()),
        }
    }
    rows.join("\n")
}
