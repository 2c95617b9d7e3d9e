//! Other users of the machine. Files: the table in `docs/running.md` holds whatever the umask is, and another user can read no
//! private file, and write, replace or prepare nothing. Ports: who opens thousands of connections keeps nobody out.
//!
//! Processes under another umask, and those that hold a lock, are this file's tests again, started with [`PART`].

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crate::common::hosts::{self, Hosts};
use crate::common::*;
use oflow::checkpoint::{CheckpointManager, CheckpointOptions};
use oflow::libraries::{BuildOptions, Library, build_and_load};
use oflow::prelude::*;
use oflow::state::{LoadState, SaveState, Stateful};
use oflow_faults::attack;
use oflow_files::lock::Attempt;
use oflow_files::{Lock, TRUST_VARIABLE};
use rustix::fs::Mode;

/// Names the folder of a process that plays a part in a test.
const PART: &str = "OFLOW_TEST_NEIGHBOURS";
/// A user without files.
const NOBODY: u32 = 65534;
/// In C: what is looked at is who may do what with the files of a build, and C++ takes ten times as long to compile.
const SOURCE: &str = r#"#include "oflow_op.h"
#define TEXT(s) { (const uint8_t *)(s), sizeof(s) - 1 }
static int32_t run(const oflow_call *call, oflow_message *error)
{
    (void)error;
    const float *x = call->inputs[0]->data;
    float *y = call->outputs[0]->data;
    for (int64_t i = 0; i < call->outputs[0]->dims[0]; ++i)
        y[i] = 2 * x[i];
    return OFLOW_OK;
}
static const oflow_kernel kernel = {
    .head = {sizeof(oflow_kernel), OFLOW_OP_MAJOR, OFLOW_OP_MINOR}, .device = TEXT("cpu"), .run = run};
static const oflow_kernel *const kernels[] = {&kernel};
static const oflow_str signatures[] = {TEXT("S(0) -> S(0)")};
static const oflow_op_def op = {
    .head = {sizeof(oflow_op_def), OFLOW_OP_MAJOR, OFLOW_OP_MINOR}, .declaration = TEXT("twice(x: f32[1]) -> y"),
    .signatures = {signatures, 1}, .kernels = kernels, .kernel_count = 1};
static const oflow_op_def *const ops[] = {&op};
static const oflow_library library = {
    .head = {sizeof(oflow_library), OFLOW_OP_MAJOR, OFLOW_OP_MINOR}, .name = TEXT("neighbours"), .ops = ops, .op_count = 1};
__attribute__((visibility("default"))) const oflow_library *oflow_op_library(const oflow_host *host)
{
    (void)host;
    return &library;
}
"#;

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap_or_else(|e| panic!("{}: {e}", path.display())).mode() & 0o7777
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// This file's test of that name as a process of its own.
fn part(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("neighbours::{name}"), "--nocapture", "--test-threads=1"]).env(PART, folder);
    command.env("XDG_CACHE_HOME", folder.join("cache")).env_remove("OFLOW_OP_CACHE").env_remove(TRUST_VARIABLE);
    command
}

/// The folder, if this process is to play the part.
fn played() -> Option<PathBuf> {
    std::env::var_os(PART).map(PathBuf::from)
}

fn build(folder: &Path, cache: &Path) -> oflow::Result<Library> {
    build_and_load(&[folder.join("twice.c")], BuildOptions::new().cache(cache))
}

fn has_compiler() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: there is no compiler");
    }
    found
}

/// State that is one tensor.
struct One(Tensor);

impl Stateful for One {
    fn save_state(&self, to: &mut SaveState) -> oflow::Result<()> {
        to.tensor("x", &self.0);
        Ok(())
    }

    fn load_state(&mut self, from: &mut LoadState<'_>) -> oflow::Result<()> {
        from.fill("x", &self.0);
        Ok(())
    }
}

/// All that one process of oflow makes, under a umask that would let everybody write.
#[test]
fn part_of_a_rank() {
    let Some(folder) = played() else { return };
    rustix::process::umask(Mode::empty());
    if has_compiler() {
        build(&folder, &folder.join("cache/oflow/ops")).unwrap();
    }
    let _world = oflow::init().unwrap();
    // Of global ops there are records.
    let x = ones([4], (&Placement::all(Device::Cpu).unwrap(), sbp![B])).unwrap();
    let dir = folder.join("checkpoints");
    CheckpointManager::new(&dir, CheckpointOptions::default()).save(1, &[("x", &One(x.clone()))]).unwrap();
    oflow::save_file(folder.join("x.safetensors"), &[("x", &x)]).unwrap();
    if let Some(records) = std::env::var_os("OFLOW_FLIGHT_DIR").map(PathBuf::from) {
        assert_eq!((mode(&records), mode(&records.join("flight-0.ring"))), (0o700, 0o600));
        // The job fails, so its records stay.
        std::process::exit(3);
    }
}

/// The modes in a row of the table: of folders and of files.
fn row(beginning: &str) -> (Option<u32>, Option<u32>) {
    let page = include_str!("../../../docs/running.md");
    let mut lines = page.lines().skip_while(|l| !l.starts_with("| files | made by |"));
    let line = lines.find(|l| l.starts_with(&format!("| {beginning}"))).unwrap_or_else(|| panic!("no row {beginning}"));
    let cells: Vec<&str> = line.split('|').collect();
    let mode = |cell: &str| u32::from_str_radix(cell.trim().get(..4)?, 8).ok();
    (mode(cells[3]), mode(cells[4]))
}

/// Files in a folder and below whose names begin and end so.
fn found(folder: &Path, begins: &str, ends: &str) -> Vec<PathBuf> {
    let mut all = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if name.starts_with(begins) && name.ends_with(ends) {
            all.push(path.clone());
        }
        if entry.file_type().unwrap().is_dir() {
            all.extend(found(&path, begins, ends));
        }
    }
    all
}

/// Runs a job that fails, under umask 000, whose rank makes what [`part_of_a_rank`] makes; and a measured cost model.
fn job(folder: &Folder) {
    fs::write(folder.path().join("twice.c"), SOURCE).unwrap();
    let script = format!(
        "umask 000; exec '{}' -n 1 --log-dir '{1}/logs/deep' --events '{1}/events' '{2}' -- \
         --exact neighbours::part_of_a_rank --nocapture --test-threads=1",
        env!("CARGO_BIN_EXE_oflaunch"),
        folder.path().display(),
        std::env::current_exe().unwrap().display()
    );
    let mut command = part("-", folder.path());
    let environment: Vec<_> = command.get_envs().map(|(k, v)| (k.to_owned(), v.map(|v| v.to_owned()))).collect();
    command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path()).env("OFLOW_MODEL", "default").stdin(Stdio::null());
    for (name, value) in environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}{}", stdout(&output), stderr(&output));
    let model = part("part_of_calibrate", folder.path()).output().unwrap();
    assert!(model.status.success(), "{}", stdout(&model));
}

#[test]
fn part_of_calibrate() {
    let Some(folder) = played() else { return };
    rustix::process::umask(Mode::empty());
    let model = oflaunch::model::Calibration::of_this_host(Default::default(), 1, 1);
    oflaunch::model::write(&folder.join("models/model.json"), &model).unwrap();
}

#[test]
fn the_table_of_files_and_modes_holds_whatever_the_umask() {
    let folder = Folder::new();
    job(&folder);
    let compiled = has_compiler();
    // The row, and names of its folders and of its files.
    type Row<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)]);
    let rows: &[Row<'_>] = &[
        ("builds of ops", &["cache", "cache/oflow", "cache/oflow/ops"], &[("library", ".so"), ("included", "")]),
        ("locks", &[], &[("twice-", ".lock"), (".oflow-job", ""), (".lock", ""), (".reading", "")]),
        ("flight records", &[], &[("flight-0", ".json")]),
        ("logs", &["logs", "logs/deep"], &[("rank-0", ".log"), ("events", ".jsonl")]),
        ("the file of `--events`", &[], &[("events", "events")]),
        ("checkpoints", &["checkpoints"], &[("manifest", ".json"), ("rank-0", ".safetensors"), ("x", ".safetensors")]),
        ("the measured cost model", &["models"], &[("model", ".json")]),
    ];
    for (beginning, folders, files) in rows {
        if *beginning == "builds of ops" && !compiled {
            continue;
        }
        let (of_folders, of_files) = row(beginning);
        for path in *folders {
            assert_eq!(Some(mode(&folder.path().join(path))), of_folders, "{beginning}: {path}");
        }
        for (begins, ends) in files.iter().filter(|(begins, _)| compiled || *begins != "twice-") {
            let all = found(folder.path(), begins, ends);
            assert!(!all.is_empty(), "{beginning}: there is no {begins}…{ends}");
            for path in all {
                assert_eq!(Some(mode(&path)), of_files, "{beginning}: {} {:o}", path.display(), mode(&path));
            }
        }
    }
    if compiled {
        for path in fs::read_dir(folder.path().join("cache/oflow/ops")).unwrap().map(|e| e.unwrap().path()) {
            assert_eq!(mode(&path) & 0o077, 0, "{}: {:o}", path.display(), mode(&path));
        }
    }
}

/// A shell of the other user; none where there can be no other.
fn nobody(script: &str) -> Option<std::process::Output> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return None;
    }
    let shell = Command::new("sh").args(["-c", script]).current_dir("/").uid(NOBODY).gid(NOBODY).output();
    Some(shell.unwrap())
}

#[test]
fn another_user_reads_no_private_file_and_writes_replaces_and_makes_nothing() {
    let folder = Folder::new();
    job(&folder);
    // Also where all folders above let everybody pass.
    allow(folder.path(), 0o755);
    let files = found(folder.path(), "", "");
    assert!(files.len() > 20, "{files:?}");
    for path in files.iter().filter(|p| !p.ends_with("twice.c")) {
        let (shown, meta) = (path.display(), path.symlink_metadata().unwrap());
        let private = meta.mode() & 0o077 == 0;
        let mut tries = match meta.is_dir() {
            true => vec![format!("touch '{shown}/new'"), format!("ln -s /dev/null '{shown}/link'")],
            false => vec![format!("echo x >>'{shown}'"), format!(": >'{shown}'")],
        };
        tries.extend([format!("mv '{shown}' '{shown}.moved'"), format!("chmod 777 '{shown}'")]);
        tries.push(if meta.is_dir() {
            format!("rmdir '{shown}'")
        } else {
            format!("rm -f '{shown}'; ! test -e '{shown}'")
        });
        if private {
            tries.push(if meta.is_dir() { format!("ls '{shown}'") } else { format!("cat '{shown}'") });
            // Who can open a file can lock it.
            tries.push(format!("exec 9<'{shown}'"));
        }
        // One shell a file: those that succeed are named.
        let script: String =
            tries.iter().map(|t| format!("( {t} ) >/dev/null 2>&1 && echo \"{}\"\n", t.replace('"', ""))).collect();
        let Some(output) = nobody(&format!("{script}true")) else { return };
        // A file that is out of reach seems not to be there.
        let done: Vec<String> = stdout(&output).lines().filter(|l| !l.starts_with("rm -f")).map(String::from).collect();
        assert_eq!(done, Vec::<String>::new(), "{shown}");
        assert!(path.symlink_metadata().is_ok(), "{shown} is gone");
    }
}

/// Builds the op in `OFLOW_OP_CACHE` and tells what came of it.
#[test]
fn part_of_a_builder() {
    let Some(folder) = played() else { return };
    match build(&folder, Path::new(&std::env::var_os("OFLOW_OP_CACHE").unwrap())) {
        Ok(library) => println!("loaded: {}", library.hash()),
        Err(e) => println!("refused: {e}"),
    }
}

/// What a process says that builds the op in a cache, or finds it there. An op is there once in a process.
fn built_in(folder: &Folder, cache: &Path) -> String {
    let output = part("part_of_a_builder", folder.path()).env("OFLOW_OP_CACHE", cache).output().unwrap();
    stdout(&output) + &stderr(&output)
}

#[test]
fn what_others_may_write_is_neither_built_nor_loaded() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new();
    let source = folder.write("twice.c", SOURCE);
    let cache = folder.path().join("above/cache");
    let output = || built_in(&folder, &cache);
    assert!(output().contains("loaded: "), "{}", output());
    let slot = found(&cache, "twice-", "").into_iter().find(|p| p.is_dir()).unwrap();
    for (path, open, was) in [
        (folder.path().join("above"), 0o777, 0o700),
        (cache.clone(), 0o777, 0o700),
        (slot.clone(), 0o770, 0o700),
        (slot.join("library.so"), 0o666, 0o600),
        (source, 0o666, 0o644),
    ] {
        allow(&path, open);
        // The group of root is not others.
        if open & 0o002 != 0 {
            let want = format!("{}", path.display());
            let text = output();
            assert!(text.contains("refused: ") && text.contains(&want), "{text}");
            assert!(text.contains("can be written to by other users") && text.contains("`chmod go-w"), "{text}");
        }
        allow(&path, was);
    }
    // One that was changed by whoever could is built again.
    let library = slot.join("library.so");
    let before = fs::read(&library).unwrap();
    fs::write(&library, [&before[..], b"more"].concat()).unwrap();
    assert!(output().contains("loaded: "));
    assert_eq!(fs::read(&library).unwrap().len(), before.len());
}

#[test]
fn who_waits_for_a_build_is_told_for_whom() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new();
    folder.write("twice.c", SOURCE);
    let cache = folder.path().join("cache");
    assert!(built_in(&folder, &cache).contains("loaded: "));
    let lock = found(&cache, "twice-", ".lock").remove(0);
    let slot = found(&cache, "twice-", "").into_iter().find(|p| p.is_dir()).unwrap();
    fs::remove_dir_all(&slot).unwrap();
    let Attempt::Taken(held) = Lock::attempt(&lock).unwrap() else { panic!("the lock is held") };
    let mut command = part("part_of_a_builder", folder.path());
    let mut child =
        command.env("OFLOW_OP_CACHE", &cache).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let host = oflow_files::lock::host();
    assert_eq!(
        said,
        format!("oflow: process {} on {host} builds {}; waiting for it\n", std::process::id(), slot.display())
    );
    drop(held);
    let output = child.wait_with_output().unwrap();
    assert!(stdout(&output).contains("loaded: "), "{}", stdout(&output));
}

#[test]
fn a_lock_is_no_link_and_cuts_nothing() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new();
    folder.write("twice.c", SOURCE);
    let victim = folder.write("victim", "precious");
    let cache = folder.path().join("cache");
    assert!(built_in(&folder, &cache).contains("loaded: "));
    let lock = found(&cache, "twice-", ".lock").remove(0);
    fs::remove_dir_all(found(&cache, "twice-", "").into_iter().find(|p| p.is_dir()).unwrap()).unwrap();
    fs::remove_file(&lock).unwrap();
    symlink(&victim, &lock).unwrap();
    let text = built_in(&folder, &cache);
    assert!(text.contains("refused: ") && text.contains("is a symbolic link"), "{text}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn control_characters_of_a_rank_are_visible_in_the_lines_of_oflaunch() {
    let folder = Folder::new();
    // An error that oflaunch repeats in its report.
    folder.sh("fails", "printf 'Error: out of memory \\033]0;owned\\007 \\033[2J no luck\\n' >&2; exit 1");
    let output = run(&folder, &["-n", "1", "--log-dir", "logs", "./fails"]);
    let text = stderr(&output);
    let own: Vec<&str> = text.lines().filter(|l| l.starts_with("oflaunch: ")).collect();
    assert!(own.iter().any(|l| l.contains("\\u{1b}]0;owned\\u{7} \\u{1b}[2J no luck")), "{text:?}");
    assert!(!own.iter().any(|l| l.chars().any(char::is_control)), "{text:?}");
}

#[test]
fn postmortem_reads_neither_devices_nor_pipes() {
    let folder = Folder::new();
    let pipe = folder.path().join("flight-0.json");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    symlink("/dev/zero", folder.path().join("flight-1.ring")).unwrap();
    symlink("/dev/zero", folder.path().join("events.jsonl")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_oflow")).arg("postmortem").arg(folder.path()).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("flight-0.json is not a regular file but a FIFO"), "{text}");
    assert!(text.contains("flight-1.ring is not a regular file but a device"), "{text}");
    assert!(text.contains("events.jsonl is not a regular file but a device"), "{text}");
}

#[test]
fn what_another_user_prepares_in_a_shared_folder_is_refused() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new();
    allow(folder.path(), 0o755);
    fs::write(folder.path().join("twice.c"), SOURCE).unwrap();
    let first = folder.path().join("first");
    assert!(built_in(&folder, &first).contains("loaded: "));
    let victim = folder.write("victim", "precious");
    let names: Vec<String> =
        fs::read_dir(&first).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let slot = names.iter().find(|n| n.starts_with("twice-") && !n.ends_with(".lock")).unwrap().clone();
    for (i, script) in [
        // The names can be foreseen.
        format!("mkdir {slot}"),
        format!("ln -s {} {slot}", first.join(&slot).display()),
        format!("ln -s {} {slot}.lock", victim.display()),
        format!("touch {slot}.lock"),
        format!("mkdir {}", names.iter().find(|n| n.starts_with("oflow-op-")).unwrap()),
    ]
    .iter()
    .enumerate()
    {
        let shared = folder.path().join(format!("shared{i}"));
        fs::create_dir(&shared).unwrap();
        allow(&shared, 0o1777);
        let Some(output) = nobody(&format!("cd '{}' && {script}", shared.display())) else { return };
        assert!(output.status.success(), "{}", stderr(&output));
        let text = built_in(&folder, &shared);
        let named = text.contains("belongs to user 65534") || text.contains("is a symbolic link");
        assert!(text.contains("refused: ") && named, "{script}: {text}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }
}

/// Opens connections to ports until it is dropped, and keeps the last ones open.
struct Stranger {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Stranger {
    /// More than any process here may have open.
    const HELD: usize = 3000;

    fn at(ports: Vec<u16>) -> Stranger {
        let (stop, made) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stops, makes) = (stop.clone(), made.clone());
        let thread = std::thread::spawn(move || {
            let mut held = VecDeque::new();
            while !stops.load(Ordering::Relaxed) {
                for port in &ports {
                    if let Ok(stream) = attack::connect(*port) {
                        held.push_back(stream);
                        makes.fetch_add(1, Ordering::Relaxed);
                    }
                }
                while held.len() > Stranger::HELD {
                    held.pop_front();
                }
            }
        });
        Stranger { stop, made, thread: Some(thread) }
    }

    fn wait_until_all_are_held(&self) {
        wait_for("the connections", LONG, || (self.made.load(Ordering::Relaxed) > Stranger::HELD).then_some(()));
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn a_stranger_at_both_ports_keeps_no_member_out_and_hinders_no_restart() {
    let files = ManyFiles::open(2 * Stranger::HELD as u64);
    let most = files.most;
    if most < Stranger::HELD as u64 + 500 {
        eprintln!("skipped: this process may have {most} open files");
        return;
    }
    for descriptors in [512, 1024] {
        let hosts = Hosts::new("2").with(&["--max-restarts", "1"]);
        hosts.folder.sh(
            "run",
            &format!("[ $OFLOW_RESTART = 1 ] && exit 0\n{TELL_PID}\nwhile ! [ -e fail ]; do sleep 0.05; done\nexit 7"),
        );
        let inner = hosts.command(2, "./run");
        let words = inner.get_args().map(|a| format!("'{}'", a.to_str().unwrap())).collect::<Vec<_>>().join(" ");
        let mut zero = Command::new("sh");
        let script =
            format!("ulimit -n {descriptors}; exec '{}' --node-rank 0 {words}", env!("CARGO_BIN_EXE_oflaunch"));
        zero.args(["-c", &script]).current_dir(hosts.folder.path()).stdin(Stdio::null());
        zero.env("OFLOW_MODEL", "default").env("TMPDIR", hosts.folder.path()).env("OFLOW_TOKEN", hosts::TOKEN);
        let zero = Running::of(&mut zero);
        let port: u16 = hosts.rdzv.rsplit(':').next().unwrap().parse().unwrap();
        wait_for("node 0", LONG, || attack::connect(port).ok());
        let first = Stranger::at(vec![port]);
        first.wait_until_all_are_held();
        let one = hosts.start(1, 1, "./run");
        hosts.folder.pids(3);
        // Now both.
        drop(first);
        let ports = attack::listening(zero.pid());
        assert!(ports.len() >= 2, "{ports:?}");
        let both = Stranger::at(ports.into_iter().collect());
        both.wait_until_all_are_held();
        hosts.folder.write("fail", "");
        let (ended, text) = one.finish();
        assert_eq!(ended.code(), Some(0), "{descriptors} descriptors: {text}");
        drop(both);
        let (ended, text) = zero.finish();
        assert_eq!(ended.code(), Some(0), "{descriptors} descriptors: {text}");
        assert!(text.contains("without the job token: closed"), "{text}");
    }
}
