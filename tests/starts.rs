//! Ranks that oflaunch has not started: by the environments of Slurm, MPI and torchrun, and by real `mpirun`s where there are
//! any. The processes are this test program itself; each test has a folder of its own for them to meet in, and asserts that
//! it is empty in the end.

use oflow::prelude::*;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What a process that a test has started does.
const MODE: &str = "OFLOW_TEST_START";
/// Variables by which a process would take itself for a rank; whoever runs the tests may have them.
const FOREIGN: [&str; 18] = [
    "NODE_RANK",
    "GROUP_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "OFLOW_TOKEN_FILE",
    "OFLOW_ADDR",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "PMIX_RANK",
    "SLURM_PROCID",
    "OFLOW_TOKEN",
    "OFLOW_CONTROL",
];

/// The body of the ranks; on its own it does nothing.
#[test]
fn rank_process() {
    let Ok(mode) = std::env::var(MODE) else { return };
    if let Err(e) = rank(&mode) {
        println!("failed: {e}");
        std::process::exit(3);
    }
}

fn rank(mode: &str) -> Result<()> {
    let world = oflow::init()?;
    let (rank, size) = (world.rank(), world.size());
    let sum = || -> Result<f64> {
        let mesh = Placement::all(Device::Cpu)?;
        ones([8 * size], (&mesh, sbp![S(0)]))?.sum(())?.item()
    };
    println!("rank {rank} of {size}: sum {}", sum()?);
    match mode {
        "sum" => Ok(()),
        "panic" if rank == 1 => panic!("no more"),
        // Never asks the others for anything again.
        "compute" if rank == 2 => loop {
            std::thread::park();
        },
        _ => loop {
            sum()?;
        },
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("oflow-starts-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // Short, because a path of a socket is.
        let path = Path::new("/tmp").join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Folder(path)
    }

    /// What ranks have left.
    fn left(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.0.join("oflow")) else { return vec![] };
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn command(folder: &Folder, mode: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in FOREIGN {
        command.env_remove(name);
    }
    command.env("XDG_RUNTIME_DIR", &folder.0).env(MODE, mode).env("OFLOW_THREADS", "1").env("OFLOW_TIMEOUT", "0.3");
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

const ARGS: [&str; 3] = ["--exact", "rank_process", "--nocapture"];

fn own() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// A rank that runs beside the test and does not outlive it.
struct Rank {
    child: Child,
    out: BufReader<ChildStdout>,
    text: String,
}

impl Rank {
    fn start(folder: &Folder, mode: &str, variables: &[(&str, String)]) -> Rank {
        let mut command = command(folder, mode, own());
        command.args(ARGS).envs(variables.iter().map(|(n, v)| (n, v)));
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Rank { child, out, text: String::new() }
    }

    /// Reads until it has printed its sum.
    fn goes(&mut self) {
        while !self.text.contains(": sum ") {
            assert!(self.out.read_line(&mut self.text).unwrap() > 0, "the rank has ended: {}", self.text);
        }
    }

    fn end(mut self) -> (ExitStatus, String) {
        self.out.read_to_string(&mut self.text).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut self.text).unwrap();
        (self.child.wait().unwrap(), std::mem::take(&mut self.text))
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        let _may_have_ended = self.child.kill();
        let _may_be_reaped = self.child.wait();
    }
}

fn slurm(job: u32, rank: usize, world: usize) -> Vec<(&'static str, String)> {
    vec![
        ("SLURM_JOB_ID", job.to_string()),
        ("SLURM_STEP_ID", "0".into()),
        ("SLURM_PROCID", rank.to_string()),
        ("SLURM_LOCALID", rank.to_string()),
        ("SLURM_NTASKS", world.to_string()),
        ("SLURM_NODEID", "0".into()),
        ("SLURM_NNODES", "1".into()),
        ("SLURM_STEP_TASKS_PER_NODE", world.to_string()),
    ]
}

fn by_hand(port: u16, rank: usize, world: usize) -> Vec<(&'static str, String)> {
    vec![
        ("RANK", rank.to_string()),
        ("WORLD_SIZE", world.to_string()),
        ("MASTER_ADDR", "localhost".into()),
        ("MASTER_PORT", port.to_string()),
    ]
}

#[track_caller]
fn all_well(ranks: Vec<Rank>) {
    let world = ranks.len();
    for (i, rank) in ranks.into_iter().enumerate() {
        let (status, text) = rank.end();
        assert!(status.success(), "rank {i}: {status} {text}");
        assert!(text.contains(&format!("rank {i} of {world}: sum {}", 8 * world)), "{text}");
    }
}

#[test]
fn ranks_of_a_host_find_each_other() {
    let folder = Folder::new();
    // Two jobs at once, whose ranks come in the other order.
    let start = |job: u32| (0..3).rev().map(move |r| (job, r));
    let mut ranks: Vec<(u32, usize, Rank)> =
        start(1).chain(start(2)).map(|(j, r)| (j, r, Rank::start(&folder, "sum", &slurm(j, r, 3)))).collect();
    ranks.sort_by_key(|(job, rank, _)| (*job, *rank));
    let mut each: Vec<Rank> = ranks.into_iter().map(|(.., rank)| rank).collect();
    all_well(each.split_off(3));
    all_well(each);
    all_well((0..2).map(|r| Rank::start(&folder, "sum", &by_hand(4711, r, 2))).collect());
    assert_eq!(folder.left(), [""; 0]);
    let mode = std::fs::metadata(folder.0.join("oflow")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_program_in_an_allocation_runs_alone() {
    let folder = Folder::new();
    let mut allocation = slurm(1, 0, 4);
    allocation.retain(|(name, _)| *name != "SLURM_STEP_ID");
    all_well(vec![Rank::start(&folder, "sum", &allocation)]);
    let mut interactive = slurm(1, 0, 4);
    interactive.push(("SLURM_PTY_PORT", "40000".into()));
    all_well(vec![Rank::start(&folder, "sum", &interactive)]);
}

#[test]
fn half_an_environment_is_refused() {
    let folder = Folder::new();
    let (status, text) = Rank::start(&folder, "sum", &[("OMPI_COMM_WORLD_RANK", "0".into())]).end();
    assert_eq!(status.code(), Some(3));
    assert!(text.contains("OMPI_COMM_WORLD_SIZE is not set although OMPI_COMM_WORLD_RANK is"), "{text}");
    let mut two = slurm(1, 0, 2);
    for (name, value) in &mut two {
        match *name {
            "SLURM_NNODES" => *value = "2".into(),
            "SLURM_STEP_TASKS_PER_NODE" => *value = "1(x2)".into(),
            _ => {}
        }
    }
    let (status, text) = Rank::start(&folder, "sum", &two).end();
    assert_eq!(status.code(), Some(3));
    assert!(text.contains("on 2 hosts") && text.contains("export OFLOW_TOKEN=$(oflow token)"), "{text}");
}

#[test]
fn who_does_not_come_is_named() {
    let folder = Folder::new();
    let start = |rank: usize| {
        let mut variables = slurm(1, rank, 3);
        variables.push(("OFLOW_START_TIMEOUT", "0.5".into()));
        Rank::start(&folder, "sum", &variables)
    };
    // Rank 2 alone hears of nobody; ranks 0 and 1 of rank 2.
    let (status, text) = start(2).end();
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains("rank 2 has waited") && text.contains("for rank 0, the first of its host"), "{text}");
    let (first, second) = (start(0), start(1));
    let (_, text) = first.end();
    assert!(text.contains("these ranks of this host have not joined: 2"), "{text}");
    assert!(text.contains("by Slurm there are 3 here"), "{text}");
    let (status, text) = second.end();
    assert!(!status.success(), "{text}");
    assert_eq!(folder.left(), [""; 0]);
}

#[test]
fn a_rank_that_dies_ends_all() {
    for (dying, job) in [(1, 7), (0, 8)] {
        let folder = Folder::new();
        let mut ranks: Vec<Rank> = (0..3).map(|r| Rank::start(&folder, "sums", &slurm(job, r, 3))).collect();
        ranks.iter_mut().for_each(Rank::goes);
        ranks[dying].child.kill().unwrap();
        let killed = Instant::now();
        for (rank, process) in ranks.into_iter().enumerate() {
            let (status, text) = process.end();
            if rank == dying {
                assert_eq!(status.signal(), Some(9));
                continue;
            }
            assert!(!status.success(), "rank {rank}: {text}");
            assert!(text.contains(&format!("rank {dying}")), "rank {rank}: {text}");
            assert!(killed.elapsed() < Duration::from_secs(5), "rank {rank} took {:?}", killed.elapsed());
        }
        assert_eq!(folder.left(), [""; 0]);
    }
}

#[test]
fn a_rank_that_goes_on_after_a_failure_is_ended() {
    let folder = Folder::new();
    let mut ranks: Vec<Rank> = (0..3).map(|r| Rank::start(&folder, "compute", &slurm(9, r, 3))).collect();
    ranks.iter_mut().for_each(Rank::goes);
    ranks[1].child.kill().unwrap();
    let (status, text) = ranks.remove(2).end();
    assert_eq!(status.signal(), Some(15), "{text}");
    assert!(text.contains("rank 2 has not ended although its job has failed"), "{text}");
    let (status, text) = ranks.remove(0).end();
    assert!(!status.success(), "{text}");
    assert!(text.contains("is gone without a goodbye"), "{text}");
}

#[test]
fn a_panic_is_told_to_the_others() {
    let folder = Folder::new();
    let ranks: Vec<Rank> = (0..2).map(|r| Rank::start(&folder, "panic", &slurm(10, r, 2))).collect();
    for (rank, process) in ranks.into_iter().enumerate() {
        let (status, text) = process.end();
        assert!(!status.success(), "rank {rank}: {text}");
        assert!(text.contains(if rank == 0 { "rank 1 panicked" } else { "no more" }), "rank {rank}: {text}");
    }
}

/// Rank of 4, on two hosts that are both this machine.
fn on_two_hosts(port: u16, rank: usize) -> Vec<(&'static str, String)> {
    let mut variables = by_hand(port, rank, 4);
    variables.extend([
        ("LOCAL_RANK", (rank % 2).to_string()),
        ("LOCAL_WORLD_SIZE", "2".into()),
        ("NODE_RANK", (rank / 2).to_string()),
        ("NNODES", "2".into()),
        ("OFLOW_TOKEN", "5a".repeat(32)),
    ]);
    variables
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn several_hosts_find_each_other() {
    let folder = Folder::new();
    let port = free_port();
    all_well((0..4).map(|r| Rank::start(&folder, "sum", &on_two_hosts(port, r))).collect());
    assert_eq!(folder.left(), [""; 0]);
}

#[test]
fn a_rank_that_dies_on_one_host_ends_all() {
    let folder = Folder::new();
    let port = free_port();
    let mut ranks: Vec<Rank> = (0..4).map(|r| Rank::start(&folder, "sums", &on_two_hosts(port, r))).collect();
    ranks.iter_mut().for_each(Rank::goes);
    ranks[3].child.kill().unwrap();
    let killed = Instant::now();
    for (rank, process) in ranks.into_iter().take(3).enumerate() {
        let (status, text) = process.end();
        assert!(!status.success(), "rank {rank}: {text}");
        assert!(text.contains("rank 3"), "rank {rank}: {text}");
        assert!(killed.elapsed() < Duration::from_secs(5), "rank {rank} took {:?}", killed.elapsed());
    }
}

#[test]
fn what_a_killed_job_has_left_is_no_obstacle() {
    let folder = Folder::new();
    let mut alone = Rank::start(&folder, "sum", &slurm(11, 0, 2));
    let deadline = Instant::now() + Duration::from_secs(20);
    while !folder.left().iter().any(|name| name.ends_with(".socket")) {
        assert!(Instant::now() < deadline, "the first rank does not listen");
        std::thread::yield_now();
    }
    alone.child.kill().unwrap();
    alone.child.wait().unwrap();
    assert_eq!(folder.left().len(), 1);
    all_well((0..2).map(|r| Rank::start(&folder, "sum", &slurm(11, r, 2))).collect());
    assert_eq!(folder.left(), [""; 0]);
}

/// Runs a program under one of the mpiruns; `None` where there is none.
fn mpirun(launcher: &str, n: usize, program: &Path, args: &[&str]) -> Option<(ExitStatus, String)> {
    let folder = Folder::new();
    let mut command = command(&folder, "sum", launcher);
    if launcher.ends_with("openmpi") {
        command.arg("--oversubscribe");
    }
    match command.args(["-n", &n.to_string()]).arg(program).args(args).output() {
        Ok(out) => {
            assert_eq!(folder.left(), [""; 0]);
            let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
            Some((out.status, text))
        }
        Err(e) => {
            println!("skipped: {launcher} cannot be started ({e})");
            None
        }
    }
}

#[test]
fn mpirun_starts_ranks() {
    for launcher in ["mpirun.openmpi", "mpirun.mpich"] {
        let Some((status, text)) = mpirun(launcher, 2, &own(), &ARGS) else { continue };
        assert!(status.success(), "{launcher}: {text}");
        for rank in 0..2 {
            assert!(text.contains(&format!("rank {rank} of 2: sum 16")), "{launcher}: {text}");
        }
        // In a shell of its own each rank has another parent.
        let script = format!("{} {}; exit $?", own().display(), ARGS.join(" "));
        let (status, text) = mpirun(launcher, 2, Path::new("sh"), &["-c", &script]).unwrap();
        assert!(status.success() && text.contains("rank 1 of 2: sum 16"), "{launcher}: {text}");
    }
}

#[test]
fn the_examples_run_under_mpirun_unchanged() {
    // Built by `cargo test` beside the tests, and by nothing where one test alone is asked for.
    let examples = own().parent().unwrap().parent().unwrap().join("examples");
    let runs: [(&str, &[&str], &str); 2] = [
        ("train", &["--epochs", "1"], "accuracy"),
        ("gpt", &["--steps", "2", "--sample", "0", "--dim", "32", "--layers", "1"], "loss"),
    ];
    for (example, args, said) in runs {
        let program = examples.join(example);
        if !program.exists() {
            println!("skipped: {} has not been built", program.display());
            continue;
        }
        let Some((status, text)) = mpirun("mpirun.openmpi", 2, &program, args) else { continue };
        assert!(status.success() && text.contains(said), "{example}: {text}");
    }
}
