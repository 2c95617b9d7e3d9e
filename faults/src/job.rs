//! One real job of one or more `oflaunch` processes, each of which plays a host.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::events::{self, Event};
use crate::free_port;
use crate::leftovers::{self, MARK};

/// Paths of oflaunch and of the work folder.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Path of oflaunch.
    pub oflaunch: PathBuf,
    /// The folder below which runs have theirs.
    pub work: PathBuf,
}

/// How a job is to be started.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Number of ranks of each host.
    pub ranks: Vec<usize>,
    /// Options of `oflaunch`.
    pub options: Vec<String>,
    /// Program and its arguments.
    pub program: PathBuf,
    /// Arguments of the program.
    pub args: Vec<String>,
}

/// A job that runs.
pub struct Started {
    /// Folder of the job, with a log, an event file and a log directory for each host.
    pub folder: PathBuf,
    mark: String,
    agents: Vec<Child>,
    ended: Vec<Option<ExitStatus>>,
    segments: std::collections::BTreeSet<String>,
}

impl Setup {
    /// Starts a job in a new folder of that name.
    pub fn start(&self, name: &str, order: &Order) -> io::Result<Started> {
        let folder = self.work.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(folder.join("tmp"))?;
        let mark = format!("{name}-{}", std::process::id());
        let segments = leftovers::segments();
        let hosts = order.ranks.len();
        let token = folder.join("token");
        let port = if hosts > 1 { free_port()? } else { 0 };
        if hosts > 1 {
            fs::write(&token, random_token()?)?;
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&token, fs::Permissions::from_mode(0o600))?;
        }
        let mut started = Started { folder: folder.clone(), mark, agents: vec![], ended: vec![None; hosts], segments };
        for host in 0..hosts {
            let mut command = Command::new(&self.oflaunch);
            command.current_dir(&folder).stdin(Stdio::null()).env("OFLOW_MODEL", "default").env(MARK, &started.mark);
            command.env("TMPDIR", folder.join("tmp")).env_remove("RUST_BACKTRACE");
            command.args(["-n", &order.ranks[host].to_string(), "--threads", "1"]);
            command.arg("--log-dir").arg(started.logs(host)).arg("--events").arg(started.event_file(host));
            if hosts > 1 {
                command.args(["--nnodes", &hosts.to_string(), "--node-rank", &host.to_string()]);
                command.arg("--rdzv").arg(format!("127.0.0.1:{port}"));
                command.arg("--token-file").arg(&token);
            }
            command.args(&order.options).arg(&order.program).arg("--").args(&order.args);
            command.stdout(File::create(folder.join(format!("out-{host}")))?);
            command.stderr(File::create(started.log(host))?);
            started.agents.push(command.spawn()?);
        }
        Ok(started)
    }
}

fn random_token() -> io::Result<String> {
    use std::io::Read;
    let mut bytes = [0u8; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

impl Started {
    fn log(&self, host: usize) -> PathBuf {
        self.folder.join(format!("err-{host}"))
    }

    fn logs(&self, host: usize) -> PathBuf {
        self.folder.join(format!("logs-{host}"))
    }

    fn event_file(&self, host: usize) -> PathBuf {
        self.folder.join(format!("events-{host}.jsonl"))
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.agents.len()
    }

    /// Standard error of a host's launcher so far.
    pub fn stderr(&self, host: usize) -> String {
        fs::read_to_string(self.log(host)).unwrap_or_default()
    }

    /// Standard output of a host's launcher so far.
    pub fn stdout(&self, host: usize) -> String {
        fs::read_to_string(self.folder.join(format!("out-{host}"))).unwrap_or_default()
    }

    /// The events of a host so far.
    pub fn events(&self, host: usize) -> Result<Vec<Event>, String> {
        events::read(&self.event_file(host))
    }

    /// The exit code that a shell would show, once that launcher has ended.
    pub fn code(&self, host: usize) -> Option<i32> {
        self.ended[host].map(|s| s.code().unwrap_or(128 + s.signal().unwrap_or(0)))
    }

    /// Sends a signal to the launcher of a host.
    pub fn signal_agent(&self, host: usize, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.agents[host]), signal)?)
    }

    /// Whether a launcher has ended; looks at all.
    pub fn any_ended(&mut self) -> io::Result<bool> {
        for (agent, ended) in self.agents.iter_mut().zip(&mut self.ended) {
            if ended.is_none() {
                *ended = agent.try_wait()?;
            }
        }
        Ok(self.ended.iter().any(Option::is_some))
    }

    /// The processes of the job that live.
    pub fn processes(&self) -> Vec<(i32, String)> {
        leftovers::processes(&self.mark)
    }

    /// Waits until no process of the job lives; `false`: some do after `limit`.
    pub fn wait(&mut self, limit: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + limit;
        loop {
            self.any_ended()?;
            if self.ended.iter().all(Option::is_some) && self.processes().is_empty() {
                return Ok(true);
            }
            if Instant::now() > deadline {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Processes and files that remain now that the job has ended, one sentence each.
    pub fn leftovers(&self) -> Vec<String> {
        let mut left = vec![];
        left.extend(self.processes().into_iter().map(|(pid, command)| format!("process {pid} ({command}) is left")));
        left.extend(leftovers::segments().difference(&self.segments).map(|s| format!("segment {s} is left")));
        left.extend(
            leftovers::files(&self.folder.join("tmp")).into_iter().map(|f| format!("temporary file {f} is left")),
        );
        left
    }

    /// Kills whatever lives.
    pub fn kill(&mut self) {
        for (agent, ended) in self.agents.iter_mut().zip(&mut self.ended) {
            if ended.is_none() {
                // It may end just now.
                let _gone = agent.kill();
                *ended = agent.wait().ok();
            }
        }
        for (pid, _) in self.processes() {
            if let Some(pid) = Pid::from_raw(pid) {
                let _gone = kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The program of the matrix.
pub fn victim() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/victim.rs")
}

/// The executable of a script, built now if it has to be.
pub fn build(setup: &Setup, script: &Path) -> Result<PathBuf, String> {
    let run = |args: &[&str]| {
        let mut command = Command::new(&setup.oflaunch);
        command.args(args).arg(script).env("OFLOW_MODEL", "default").stdin(Stdio::null());
        command
    };
    let built = run(&["-n", "1"]).args(["--", "--steps", "1", "--help"]).output().map_err(|e| e.to_string())?;
    if !built.status.success() {
        return Err(format!("{} does not run: {}", script.display(), String::from_utf8_lossy(&built.stderr)));
    }
    let plan = run(&["-n", "1", "--dry-run"]).output().map_err(|e| e.to_string())?;
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    let path = plan.lines().find_map(|l| l.strip_prefix("run:")).map(|p| PathBuf::from(p.trim()));
    path.ok_or_else(|| format!("--dry-run names no executable: {plan}"))
}
