//! Real oflaunch runs of Rust scripts. Each builds with cargo, so one test goes through the life of a script.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use crate::common::*;

/// oflaunch for a script, with a cargo of ours before the real one that notes each call.
fn launch(folder: &Folder, args: &[&str]) -> (Output, usize) {
    let log = folder.path().join("cargo.log");
    let _may_not_exist = fs::remove_file(&log);
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let spy = folder.sh("cargo-spy", &format!("echo called >>'{}'; exec '{cargo}' \"$@\"", log.display()));
    let output = command(folder, &spy).args(args).output().unwrap();
    let calls = fs::read_to_string(&log).unwrap_or_default().lines().count();
    (output, calls)
}

fn command(folder: &Folder, cargo: &Path) -> Command {
    let mut command = oflaunch(folder);
    command.env("CARGO", cargo);
    command
}

/// Writes a script and waits until it is older than any build that begins now: one that is not is never taken for
/// unchanged, because nobody knows which version was built.
fn script(folder: &Folder, name: &str, text: &str) {
    let path = folder.write(name, text);
    let modified = path.metadata().unwrap().modified().unwrap();
    wait_for("the clock", LONG, || (SystemTime::now() > modified + Duration::from_millis(50)).then_some(()));
}

/// A source tree with a library that is compiled at once and has `half` with fewer features than scripts usually ask for.
fn small_library(folder: &Folder) -> PathBuf {
    let home = folder.path().join("small");
    fs::create_dir_all(home.join("src")).unwrap();
    fs::write(home.join("src/lib.rs"), "").unwrap();
    let manifest = "[package]\nname = \"oflow\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[features]\ntls = []\n\n\
                    [dependencies]\nhalf = { version = \"2\", default-features = false }\n\n[workspace]\n";
    fs::write(home.join("Cargo.toml"), manifest).unwrap();
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock"), home.join("Cargo.lock")).unwrap();
    home
}

/// Rank 0 waits in shared memory and rank 2 in the control plane for rank 1, which dies or reports a failure.
const PEERS: &str = r#"
use std::os::fd::BorrowedFd;
use std::time::Duration;
use oflow::comm::shm::{ShmArena, ShmOptions};
use oflow::comm::{Communicator, Group, Tag};
use oflow::control::{ControlClient, Failure, FailureKind, Hello, LaunchEnv};

fn main() -> oflow::Result<()> {
    let long = Duration::from_secs(20);
    let env = LaunchEnv::from_env()?.expect("a launcher");
    let hello = Hello { version: "1".into(), registry_hash: 0, program_hash: 0 };
    let client = ControlClient::connect(&env, hello)?;
    // SAFETY: the launcher says that this descriptor is open.
    let fd = unsafe { BorrowedFd::borrow_raw(env.shm_fd.expect("an arena")) };
    let arena = ShmArena::from_fd(fd, env.rank, env.world)?;
    let comm = arena.comm(env.rank, ShmOptions::default())?;
    client.barrier("start", env.world, long)?;
    match env.rank {
        0 => {
            let tag = Tag { ordinal: 1, hash: 1, op: "add", file: "peers.rs", line: 1, scope: Default::default() };
            let group = Group { ranks: vec![0, 1, 2], me: 0 };
            eprintln!("shm: {}", comm.barrier(&group, &tag).unwrap_err());
        }
        1 if std::env::args().nth(1).unwrap() == "die" => std::process::abort(),
        1 => {
            client.report_failure(&Failure::of_rank(1, FailureKind::Storage, "disk full"))?;
            std::process::exit(9);
        }
        _ => eprintln!("control: {}", client.barrier("never", env.world, long).unwrap_err()),
    }
    Ok(())
}
"#;

#[test]
fn the_first_examples_reach_the_results_that_they_check() {
    let folder = Folder::new();
    let example = |ranks: &str, name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name).canonicalize().unwrap();
        let output = run(&folder, &["-n", ranks, path.to_str().unwrap()]);
        assert_eq!(code(&output), 0, "{name}: {}", stderr(&output));
        assert!(!stderr(&output).contains("Compiling oflow"), "{name}: {}", stderr(&output));
        stdout(&output)
    };
    assert_eq!(example("3", "regression.rs"), "[rank 0] y = 3.00 x -1.00 on cpu[3]\n");
    // It compares the losses and weights of its two trainings itself.
    let text = example("2", "graph.rs");
    assert!(text.contains(" us as a graph; accuracy 0.9"), "{text}");
    let text = example("2", "train.rs");
    assert!(text.contains("920 steps in ") && text.contains(", accuracy 0.9"), "{text}");
}

/// Cargo compiles a crate once for each set of features. A crate of the library that had other ones in the builds of oflaunch or
/// of the tests than in the build of the library alone would be compiled once more for scripts, with all that needs it.
#[test]
fn one_build_of_the_library_serves_oflaunch_tests_and_scripts() {
    let crates = |args: &[&str]| -> BTreeSet<String> {
        let mut tree = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
        tree.args(["tree", "--offline", "--prefix", "none", "--format", "{p} [{f}]"]).args(args);
        let output = tree.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).lines().map(|line| line.trim_end_matches(" (*)").to_string()).collect()
    };
    let library = crates(&["--edges", "no-dev", "--package", "oflow", "--features", "tls"]);
    assert!(library.iter().any(|line| line.starts_with("oflow-kernels ")), "{library:?}");
    for (build, edges) in [("oflaunch", "no-dev"), ("tests", "normal,build,dev")] {
        let there = crates(&["--edges", edges]);
        let missing: Vec<&String> = library.difference(&there).collect();
        assert!(missing.is_empty(), "{build}: other features than the library alone has: {missing:?}");
    }
}

#[test]
fn the_life_of_a_script() {
    let folder = Folder::lasting("scripts");

    // It is built once and run as ranks, which find their job.
    let joined = r#"
use oflow::control::{ControlClient, Hello, LaunchEnv};
fn main() -> oflow::Result<()> {
    let env = LaunchEnv::from_env()?.expect("a launcher");
    let hello = Hello { version: "1".into(), registry_hash: 0, program_hash: 0 };
    let client = ControlClient::connect(&env, hello)?;
    client.put(&format!("rank {}", env.rank), b"here")?;
    for rank in 0..env.world {
        client.get_wait(&format!("rank {rank}"), std::time::Duration::from_secs(20))?;
    }
    println!("all {} here, {}", env.world, std::env::args().nth(1).unwrap_or_default());
    client.leave()
}
"#;
    script(&folder, "my script.rs", joined);
    let (output, calls) = launch(&folder, &["-n", "2", "my script.rs", "--", "arg"]);
    // The library is the one that oflaunch was built with.
    assert_eq!((code(&output), calls), (0, 2), "{}", stderr(&output));
    assert!(!stderr(&output).contains("Compiling oflow"), "{}", stderr(&output));
    let text = stdout(&output);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort();
    assert_eq!(lines, ["[rank 0] all 2 here, arg", "[rank 1] all 2 here, arg"]);

    // Unchanged, it starts without cargo.
    let (output, calls) = launch(&folder, &["-n", "2", "my script.rs"]);
    assert_eq!((code(&output), calls), (0, 0), "{}", stderr(&output));

    // Changed, it is built again.
    script(&folder, "my script.rs", &joined.replace("all {} here", "ALL {} HERE"));
    let (output, calls) = launch(&folder, &["-n", "1", "my script.rs"]);
    assert_eq!((stdout(&output).trim_end(), calls), ("ALL 1 HERE,", 2), "{}", stderr(&output));

    // An error is shown with the user's file and line; no rank starts.
    script(&folder, "wrong.rs", "fn main() {\n    let x: u32 = \"no\";\n}\n");
    let (output, _) = launch(&folder, &["-n", "2", "wrong.rs"]);
    let text = stderr(&output);
    assert_eq!(code(&output), 101);
    let place = format!("{}:2:18", folder.path().canonicalize().unwrap().join("wrong.rs").display());
    assert!(text.contains(&place), "{place} is missing in\n{text}");
    assert!(text.ends_with("could not be built; no rank was started\n") && !text.contains("[rank"), "{text}");

    // Frontmatter: crates that the library has too, so no download. Types and traits of those that are shared are the library's, so that
    // they can be handed over; the library is not compiled again. Lines and file are the user's.
    let front = r#"---
[dependencies]
half = "2"
serde = { version = "1", features = ["derive"] }
serde_json = "1"
---
use oflow::prelude::*;

#[derive(serde::Serialize)]
struct Epoch(u32);

fn main() -> Result<()> {
    oflow::init()?;
    let x = from_vec(vec![half::f16::ONE; 2], [2], Device::Cpu)?;
    let mut state = oflow::state::SaveState::new();
    state.value("epoch", Epoch(3))?;
    println!("{x:?} {}", serde_json::json!({ "epoch": 3 }));
    Ok(())
}
"#;
    script(&folder, "front.rs", front);
    let (output, _) = launch(&folder, &["-n", "1", "front.rs"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (0, "f16[2] on cpu {\"epoch\":3}\n"), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(!text.contains("Compiling oflow v") && !text.contains("profile package spec"), "{text}");
    script(&folder, "front.rs", &front.replace("half::f16::ONE", "half::f16::TWO"));
    let (output, _) = launch(&folder, &["-n", "1", "front.rs"]);
    let place = format!("{}:14:", folder.path().canonicalize().unwrap().join("front.rs").display());
    assert!(stderr(&output).contains(&place), "{place} is missing in\n{}", stderr(&output));

    // One that needs a shared crate with other features than the library has it gets a library of its own.
    let other = "---\n[dependencies]\nhalf = \"2\"\n---\nfn main() {\n    println!(\"{}\", half::f16::ONE);\n}\n";
    script(&folder, "other.rs", other);
    let small = small_library(&folder);
    let output = oflaunch(&folder).env("OFLOW_HOME", &small).args(["-n", "1", "other.rs"]).output().unwrap();
    assert_eq!((code(&output), stdout(&output).as_str()), (0, "1\n"), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(text.contains("the script needs half 2.") && text.contains("which the library has with others"), "{text}");
    script(&folder, "front.rs", "---\n[package]\n---\nfn main() {}\n");
    let (output, calls) = launch(&folder, &["-n", "1", "front.rs"]);
    assert_eq!((code(&output), calls), (101, 0));
    assert!(stderr(&output).contains("front.rs: line 2: only [dependencies]"), "{}", stderr(&output));

    // A panic is quoted with the user's line, and its code is kept.
    script(&folder, "panics.rs", "fn main() {\n    panic!(\"no data\");\n}\n");
    let (output, _) = launch(&folder, &["-n", "1", "panics.rs"]);
    assert_eq!(code(&output), 101);
    let text = stderr(&output);
    assert!(text.contains("panicked: no data (at ") && text.contains("panics.rs:2:5)"), "{text}");

    // A rank that dies ends the waits of the others, in shared memory and in the control plane; one that reports a
    // failure is quoted, and its exit code is the job's.
    script(&folder, "peers.rs", PEERS);
    let (output, _) = launch(&folder, &["-n", "3", "peers.rs", "--", "die"]);
    let text = stderr(&output);
    assert_eq!(code(&output), 134, "{text}");
    assert!(text.contains("oflaunch: rank 1 (pid ") && text.contains("was killed by signal 6 (SIGABRT)"), "{text}");
    assert!(text.contains("[rank 0] shm: rank 1 died with code 134"), "{text}");
    assert!(text.contains("[rank 2] control: the job has failed: rank 1 (pid "), "{text}");
    let (output, _) = launch(&folder, &["-n", "3", "peers.rs", "--", "report"]);
    let text = stderr(&output);
    assert_eq!(code(&output), 9, "{text}");
    assert!(text.contains("oflaunch: rank 1 reported: disk full\n"), "{text}");
    assert!(text.contains("[rank 2] control: the job has failed: rank 1 reported: disk full"), "{text}");

    // Two at once build once, or one after the other, but never into each other.
    script(&folder, "both.rs", "fn main() {\n    println!(\"done\");\n}\n");
    let runs: Vec<Running> = (0..2).map(|_| Running::start(&folder, &["-n", "2", "both.rs"])).collect();
    for run in runs {
        let (status, text) = run.finish();
        assert_eq!(status.code(), Some(0), "{text}");
    }

    // Hosts of one job may share a file system: none holds up the other while they meet.
    let rdzv = format!("127.0.0.1:{}", hosts::free_port());
    let hosts: Vec<Running> = (0..2)
        .map(|node| {
            let mut host = oflaunch(&folder);
            host.args(["--nnodes", "2", "-n", "1", "--rdzv", &rdzv, "--node-rank", &node.to_string(), "both.rs"]);
            Running::of(host.env("OFLOW_TOKEN", hosts::TOKEN))
        })
        .collect();
    for host in hosts {
        let (status, text) = host.finish();
        assert_eq!(status.code(), Some(0), "{text}");
    }

    // A job that starts again does so from what it was built as, although its script is built anew and run meanwhile.
    let again = r#"
fn main() {
    let now = std::env::args().any(|a| a == "now");
    println!("one");
    if now || std::env::var("OFLOW_RESTART").unwrap() == "1" {
        return;
    }
    std::fs::write("running", "").unwrap();
    while !std::path::Path::new("fail").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::process::exit(3);
}
"#;
    for name in ["running", "fail"] {
        let _left_by_an_earlier_run = fs::remove_file(folder.path().join(name));
    }
    script(&folder, "again.rs", again);
    let job = Running::start(&folder, &["-n", "1", "--max-restarts", "1", "again.rs"]);
    wait_for("the job", Duration::from_secs(300), || folder.path().join("running").exists().then_some(()));
    script(&folder, "again.rs", &again.replace("one", "two"));
    let (output, calls) = launch(&folder, &["-n", "1", "again.rs", "--", "now"]);
    assert_eq!((stdout(&output).as_str(), calls), ("two\n", 2), "{}", stderr(&output));
    folder.write("fail", "");
    let (status, out, err) = job.finish_all();
    assert_eq!((status.code(), out.as_str()), (Some(0), "one\none\n"), "{err}");
}

#[test]
fn a_source_tree_that_is_none() {
    let folder = Folder::new();
    folder.write("a.rs", "fn main() {}\n");
    let output = oflaunch(&folder).env("OFLOW_HOME", folder.path()).args(["-n", "1", "a.rs"]).output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(
        stderr(&output).contains("which OFLOW_HOME names, has no oflow sources; set OFLOW_HOME to one"),
        "{}",
        stderr(&output)
    );
}
