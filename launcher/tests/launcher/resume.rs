//! Real jobs that are killed and go on from their last checkpoint, and `oflow ckpt` on what they left.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::hosts::Hosts;
use crate::common::*;
use oflow::checkpoint::{Checkpoint, list, name_of};
use rustix::process::Signal;

/// The GPT example's executable; the first test that asks builds it.
fn gpt() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/gpt.rs").canonicalize().unwrap();
        built(&script, &["--", "--help"])
    })
}

const STEPS: usize = 12;
/// Longer than a run takes on a machine that does a lot besides.
const RUN: Duration = Duration::from_secs(120);

fn sizes() -> Vec<&'static str> {
    "--synthetic --vocab 256 --layers 2 --dim 32 --heads 4 --seq 16 --batch 4 --dropout 0.1 --steps 12 --sample 0 \
     --checkpoint c --save-every 2 --resume"
        .split(' ')
        .collect()
}

/// Runs it to its end in a folder.
fn train(folder: &Folder, ranks: &str, more: &[&str]) -> Vec<f64> {
    let output = run(folder, &[&["-n", ranks, gpt(), "--"], &sizes()[..], more].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    losses(folder)
}

/// The losses since step 1 that a run has saved in its last checkpoint.
fn losses(folder: &Folder) -> Vec<f64> {
    let last = list(&folder.path().join("c")).unwrap().into_iter().last().unwrap();
    Checkpoint::open(&last.path).unwrap().value("losses.losses").unwrap()
}

/// The checkpoints in the folder of a run.
fn found(folder: &Folder) -> Vec<PathBuf> {
    list(&folder.path().join("c")).unwrap().into_iter().map(|f| f.path).collect()
}

/// Steps and losses that a run has logged.
fn logged(folder: &Folder) -> (Vec<usize>, Vec<f64>) {
    let text = fs::read_to_string(folder.path().join("m.jsonl")).unwrap();
    let row = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        (row["step"].as_u64().unwrap() as usize, row["loss"].as_f64().unwrap())
    };
    text.lines().map(row).unzip()
}

#[test]
fn metrics_of_a_run_that_goes_on_have_each_step_once() {
    let folder = Folder::new();
    let losses = train(&folder, "2", &["--metrics", "m"]);
    let steps: Vec<usize> = (1..=STEPS).collect();
    assert_eq!(logged(&folder), (steps.clone(), losses));
    // From step 8, on another number of ranks.
    found(&folder).iter().filter(|path| !path.ends_with(name_of(8))).for_each(|path| fs::remove_dir_all(path).unwrap());
    let again = train(&folder, "1", &["--metrics", "m"]);
    assert_eq!(logged(&folder), (steps, again));
    let plot = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_oflow")).arg("plot").args(args).current_dir(folder.path()).output().unwrap()
    };
    let output = plot(&["m.jsonl", "--smooth", "0.5", "-o", "m.svg"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(fs::read_to_string(folder.path().join("m.svg")).unwrap().contains(">loss<"));
    let output = plot(&["m.jsonl"]);
    assert!(stdout(&output).starts_with("loss, steps 1 to 12\n  m "), "{}", stdout(&output));
}

/// Three checkpoints and no half one.
fn only_whole(dir: &Path) {
    let names = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|n| !n.starts_with("step-0000")).collect();
    assert!(names.iter().all(|n| n == "latest" || n == ".lock"), "half checkpoints are left: {names:?}");
    assert_eq!(list(dir).unwrap().len(), 3);
}

/// Runs it, and kills one of its ranks when that many losses have been printed.
fn killed(folder: &Folder, ranks: usize, more: &[&str], after: usize, victim: usize) {
    let script = format!("echo $$ >pid$RANK.new && mv pid$RANK.new pid$RANK; exec '{}' \"$@\"", gpt());
    folder.sh("start", &script);
    let mut child = oflaunch(folder)
        .args(["-n", &ranks.to_string(), "./start", "--"])
        .args(sizes())
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let seen = lines.map_while(Result::ok).filter(|l| step_of(l).is_some()).take(after).count();
    let pids = folder.pids(ranks);
    if seen == after {
        kill(pids[victim], Signal::KILL);
    }
    let output = child.wait_with_output().unwrap();
    assert_ne!(code(&output), 0, "it ended before it was killed");
    assert_gone(&pids);
}

/// A number below `n`, another one in each run; it is printed so that a failure can be had again.
fn random(n: usize) -> usize {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    let chosen = (now / 7) as usize % n;
    eprintln!("random: {chosen} of {n}");
    chosen
}

#[test]
fn a_killed_run_goes_on_with_the_bits_of_one_that_was_not() {
    let (whole, cut) = (Folder::new(), Folder::new());
    let way = ["--parallel", "2d"];
    let want = train(&whole, "4", &way);
    assert_eq!(want.len(), STEPS);
    // Killed twice: at a random step, maybe while it saves, and again after it went on.
    for _ in 0..2 {
        killed(&cut, 4, &way, 1 + random(4), random(4));
        // What is there is whole, or it is not there.
        for f in list(&cut.path().join("c")).unwrap() {
            Checkpoint::open(&f.path).unwrap().verify().unwrap();
        }
    }
    assert_eq!(train(&cut, "4", &way), want);
    only_whole(&cut.path().join("c"));
}

#[test]
fn another_world_goes_on_with_the_same_numbers() {
    let (whole, cut) = (Folder::new(), Folder::new());
    let want = train(&whole, "4", &["--parallel", "dp", "--dtype", "f64"]);
    killed(&cut, 4, &["--parallel", "dp", "--dtype", "f64"], 5, 3);
    let got = train(&cut, "2", &["--parallel", "tp", "--dtype", "f64"]);
    let from = list(&cut.path().join("c")).unwrap();
    assert!(from.iter().any(|f| Checkpoint::open(&f.path).unwrap().world() == 2));
    assert_eq!(got.len(), STEPS);
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-9), "{got:?}\n{want:?}");
}

/// A program that tells its process id in `pidRANK.START`, and then is the example.
fn telling(folder: &Folder) {
    let tell = "echo $$ >pid$RANK.new && mv pid$RANK.new pid$RANK.$OFLOW_RESTART";
    folder.sh("start", &format!("{tell}; exec '{}' \"$@\"", gpt()));
}

/// The process ids of a start, when all ranks have told theirs.
fn pids_of(folder: &Folder, ranks: usize, start: usize) -> Vec<i32> {
    let pid = |rank| fs::read_to_string(folder.path().join(format!("pid{rank}.{start}"))).ok()?.trim().parse().ok();
    wait_for("the ranks of a start", LONG, || (0..ranks).map(pid).collect())
}

/// Reads on until that many losses have been printed by ranks of that start. Those of the start before may still be coming.
fn read_losses(lines: &mut impl Iterator<Item = String>, folder: &Folder, start: usize, count: usize) -> Vec<usize> {
    let mut steps = vec![];
    let begun = || folder.path().join(format!("pid0.{start}")).exists();
    let mut seen = 0;
    while seen < count {
        let line = lines.next().expect("the job ended before it was killed");
        let Some((step, _)) = step_of(&line) else { continue };
        steps.push(step);
        seen += usize::from(begun());
    }
    steps
}

#[test]
fn a_job_that_starts_again_goes_on_with_its_bits() {
    let (whole, cut) = (Folder::new(), Folder::new());
    let way = ["--parallel", "2d"];
    let want = train(&whole, "4", &way);
    telling(&cut);
    let args = [&["-n", "4", "--max-restarts", "2", "./start", "--"], &sizes()[..], &way].concat();
    let mut job = Running::start(&cut, &args);
    let mut lines = BufReader::new(job.stdout()).lines().map_while(Result::ok);
    // Killed twice, at random steps: when a checkpoint is there for certain, and soon after it has gone on.
    let mut steps = vec![];
    for (start, after) in [5 + random(3), 1 + random(3)].into_iter().enumerate() {
        steps.extend(read_losses(&mut lines, &cut, start, after));
        let pids = pids_of(&cut, 4, start);
        kill(pids[random(4)], Signal::KILL);
        assert_gone(&pids);
    }
    steps.extend(lines.filter_map(|l| Some(step_of(&l)?.0)));
    let (status, text) = job.finish_within(RUN);
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(text.contains("start 2 of at most 3: 4 ranks") && text.contains("start 3 of at most 3: 4 ranks"), "{text}");
    assert_eq!(steps.iter().filter(|s| **s == 1).count(), 1, "it began anew: {steps:?}");
    assert!(steps.windows(2).filter(|w| w[1] <= w[0]).count() <= 2, "{steps:?}");
    assert_eq!(losses(&cut), want);
    assert_gone(&pids_of(&cut, 4, 2));
    only_whole(&cut.path().join("c"));
}

#[test]
fn hosts_that_start_again_go_on_with_its_bits() {
    let whole = Folder::new();
    let way = ["--parallel", "dp"];
    let want = train(&whole, "4", &way);
    let hosts = Hosts::new("2").with(&["--max-restarts", "1"]);
    telling(&hosts.folder);
    let start = |node| hosts.start_with(node, 2, "./start", &[&sizes()[..], &way].concat());
    let (mut zero, one) = (start(0), start(1));
    let mut lines = BufReader::new(zero.stdout()).lines().map_while(Result::ok);
    read_losses(&mut lines, &hosts.folder, 0, 4 + random(4));
    kill(pids_of(&hosts.folder, 4, 0)[random(4)], Signal::KILL);
    lines.for_each(drop);
    for host in [zero, one] {
        let (status, text) = host.finish_within(RUN);
        assert_eq!(status.code(), Some(0), "{text}");
        assert!(text.contains("start 2 of at most 2: 4 ranks"), "{text}");
    }
    assert_eq!(losses(&hosts.folder), want);
    for start in 0..2 {
        assert_gone(&pids_of(&hosts.folder, 4, start));
    }
    only_whole(&hosts.folder.path().join("c"));
}

#[test]
fn fewer_hosts_go_on_with_the_same_numbers() {
    let whole = Folder::new();
    let way = ["--parallel", "dp", "--dtype", "f64"];
    let want = train(&whole, "4", &way);
    let hosts = Hosts::new("1:2").with(&["--max-restarts", "1"]);
    telling(&hosts.folder);
    let start = |node| hosts.start_with(node, 2, "./start", &[&sizes()[..], &way].concat());
    let (mut zero, one) = (start(0), start(1));
    let mut lines = BufReader::new(zero.stdout()).lines().map_while(Result::ok);
    read_losses(&mut lines, &hosts.folder, 0, 4 + random(4));
    let pids = pids_of(&hosts.folder, 4, 0);
    one.signal(Signal::KILL);
    drop(one);
    lines.for_each(drop);
    let (status, text) = zero.finish_within(RUN);
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(text.contains("start 2 of at most 2: 2 ranks on 1 hosts"), "{text}");
    assert_gone(&pids);
    let got = losses(&hosts.folder);
    assert_eq!(got.len(), STEPS);
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-9), "{got:?}\n{want:?}");
    let worlds: Vec<usize> = found(&hosts.folder).iter().map(|f| Checkpoint::open(f).unwrap().world()).collect();
    assert!(worlds.contains(&2), "{worlds:?}");
    only_whole(&hosts.folder.path().join("c"));
}

/// Hosts whose folders have the same name and are not the same folder.
#[test]
fn hosts_without_a_shared_folder_are_told_at_the_first_save() {
    let hosts = Hosts::new("2");
    let other = hosts.folder.path().join("other");
    // The second host has one too, from an earlier attempt.
    fs::create_dir_all(other.join("c/.saving-step-000002")).unwrap();
    let args = sizes();
    let zero = hosts.start_with(0, 2, gpt(), &args);
    let mut one = hosts.command(2, gpt());
    one.args(["--node-rank", "1", "--"]).args(&args).current_dir(&other);
    let one = Running::of(&mut one);
    for host in [zero, one] {
        let (status, text) = host.finish_within(RUN);
        assert_eq!(status.code(), Some(1), "{text}");
        let wanted = "the checkpoint of step 2 was not written: c on ";
        assert!(text.contains(wanted) && text.contains(" (rank 0) is not the folder of that name on "), "{text}");
        assert!(
            text.contains(" (ranks 2, 3)") && text.contains("name a folder on a file system that all hosts share"),
            "{text}"
        );
    }
    let names = |dir: &Path| fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(names(&hosts.folder.path().join("c")), [".lock"], "no half checkpoint");
    assert_eq!(names(&other.join("c/.saving-step-000002")), Vec::<std::ffi::OsString>::new());
}

/// What is read between is the same wherever the run was cut.
#[test]
fn losses_that_are_read_now_and_then_are_those_of_the_whole_run() {
    let folder = Folder::new();
    let way = ["--log-every", "5", "--keep", "0"];
    let want = train(&folder, "1", &way);
    assert_eq!(want.len(), 3, "of steps 5, 10 and 12");
    let c = folder.path().join("c");
    for step in [8, 10, 12] {
        fs::remove_dir_all(c.join(name_of(step))).unwrap();
    }
    // Goes on at step 6: its first steps, which the speed leaves out, end at 9.
    assert_eq!(train(&folder, "1", &way), want);
    assert_eq!(found(&folder).len(), 6);
}

/// Kills a rank while the files of a checkpoint are being written: what counts is the checkpoint before.
#[test]
fn a_job_that_is_killed_while_it_saves_leaves_the_checkpoint_before() {
    let folder = Folder::new();
    let larger = ["--dim", "192", "--parallel", "dp"];
    let output = {
        let args = [&["-n", "2", gpt(), "--"], &sizes()[..], &["--steps", "2"], &larger].concat();
        // An option that is given twice is an error: the later ones take the place of the first.
        run(&folder, &dedup(&args))
    };
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let c = folder.path().join("c");
    let halves = || {
        let names = fs::read_dir(&c).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.filter(|n| n.starts_with(".saving-")).collect::<Vec<_>>()
    };
    folder.sh("start", &format!("echo $$ >pid$RANK.new && mv pid$RANK.new pid$RANK; exec '{}' \"$@\"", gpt()));
    let mut caught = false;
    for _ in 0..150 {
        let args = [&["-n", "2", "./start", "--"], &sizes()[..], &["--steps", "400"], &larger].concat();
        let mut child =
            oflaunch(&folder).args(dedup(&args)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let half = wait_for("a save that is under way", LONG, || halves().pop());
        let pids = folder.pids(2);
        kill(pids[1], Signal::KILL);
        assert_ne!(child.wait().unwrap().code(), Some(0));
        assert_gone(&pids);
        let whole = list(&c).unwrap();
        whole.iter().for_each(|f| Checkpoint::open(&f.path).unwrap().verify().unwrap());
        assert!(!whole.is_empty());
        // Rank 0 removes what it could not finish, if it lives long enough.
        caught = !whole.iter().any(|f| f.path.file_name().unwrap().to_str().unwrap() == &half[".saving-".len()..]);
        if caught {
            break;
        }
    }
    assert!(caught, "every save was whole before its rank was dead");
    // The next run goes on from what is whole, and its first save removes the half one.
    let last = list(&c).unwrap().last().unwrap().step;
    let steps = (last + 2).to_string();
    let args = [&["-n", "2", gpt(), "--"], &sizes()[..], &["--steps", &steps], &larger].concat();
    let output = run(&folder, &dedup(&args));
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(halves().is_empty());
    assert_eq!(list(&c).unwrap().last().unwrap().step, last + 2);
}

/// Options that come again replace the ones before.
fn dedup<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let mut kept: Vec<&str> = vec![];
    let mut rest = args.iter().copied().peekable();
    while let Some(a) = rest.next() {
        if !a.starts_with("--") || a == "--" {
            kept.push(a);
            continue;
        }
        let value = rest.next_if(|v| !v.starts_with("--"));
        match (kept.iter().position(|k| *k == a), value) {
            (Some(at), Some(v)) => kept[at + 1] = v,
            (None, v) => kept.extend([Some(a), v].into_iter().flatten()),
            (Some(_), None) => {}
        }
    }
    kept
}

/// Saves with so little room for files that the first save fails on the ranks that have the limit.
#[test]
fn a_save_that_fails_on_one_rank_ends_the_job_with_a_clear_error() {
    let folder = Folder::new();
    let limit = "if [ $RANK = 1 ]; then ulimit -f 8; fi";
    folder.sh("start", &format!("{limit}; exec '{}' \"$@\"", gpt()));
    let mut args = vec!["-n", "2", "./start", "--"];
    args.extend(sizes());
    let output = run(&folder, &args);
    assert_eq!(code(&output), 1);
    let text = stderr(&output);
    assert!(text.contains("the checkpoint of step 2 was not written: rank 1: cannot write"), "{text}");
    assert!(text.contains("File too large") && text.contains("ulimit -f"), "{text}");
    assert!(list(&folder.path().join("c")).unwrap().is_empty());
    let left: Vec<_> = fs::read_dir(folder.path().join("c")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"], "no half checkpoint");
}

fn oflow(folder: &Folder, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_oflow")).arg("ckpt").args(args).current_dir(folder.path()).output().unwrap()
}

#[test]
fn the_command_lists_verifies_and_converts() {
    let folder = Folder::new();
    train(&folder, "2", &["--parallel", "tp"]);
    let list = stdout(&oflow(&folder, &["ls", "c"]));
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 3, "{list}");
    assert!(
        lines[0].starts_with("step-000008  ") && lines[2].contains(" 2 ranks") && lines[2].ends_with("latest"),
        "{list}"
    );
    let json: serde_json::Value = serde_json::from_str(&stdout(&oflow(&folder, &["ls", "--json", "c"]))).unwrap();
    assert_eq!((json[2]["step"].as_u64(), json[2]["latest"].as_bool()), (Some(12), Some(true)));
    let one = stdout(&oflow(&folder, &["ls", "c/step-000012"]));
    assert!(one.starts_with("step 12, written by 2 ranks: ") && one.contains("model.h.0.attn.q.weight"), "{one}");
    assert!(one.contains("[B, S(0)] on cpu[dp=1, tp=2]  2 pieces") && one.contains("opt.param_groups"), "{one}");

    let output = oflow(&folder, &["verify", "c"]);
    assert_eq!((code(&output), stdout(&output).lines().count()), (0, 3));
    let output = oflow(&folder, &["convert", "c", "model.safetensors"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains(" tensors, ") && stdout(&output).ends_with("in 1 file\n"));
    let one = stdout(&oflow(&folder, &["ls", "model.safetensors"]));
    assert!(one.starts_with("safetensors: ") && one.contains("h.0.attn.q.weight"), "{one}");
    assert_eq!(code(&oflow(&folder, &["verify", "model.safetensors"])), 0);
    let output = oflow(&folder, &["convert", "c", "hf/", "--shard-size", "20K"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let output = oflow(&folder, &["convert", "hf", "again.safetensors"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(read("model.safetensors") == read("again.safetensors"));
    assert_eq!(code(&oflow(&folder, &["convert", "hf", "back/step-000000"])), 0);
    assert_eq!(code(&oflow(&folder, &["verify", "back"])), 0);

    // A changed byte, and what cannot be done.
    let file = folder.path().join("c/step-000010/rank-00001.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let output = oflow(&folder, &["verify", "c"]);
    assert_eq!((code(&output), stdout(&output).lines().count()), (1, 2));
    assert!(
        stderr(&output).contains("step-000010 is damaged in 1 place: c/step-000010/rank-00001.safetensors is damaged")
    );
    // A changed bit of the pointer, and a checkpoint that lost its manifest: nothing is resumed without a word.
    let latest = folder.path().join("c/latest");
    let whole = fs::read_to_string(&latest).unwrap();
    fs::write(&latest, whole.replacen("12", "10", 1)).unwrap();
    let resumed = || run(&folder, &[&["-n", "2", gpt(), "--"], &sizes()[..], &["--parallel", "tp"]].concat());
    let broken = "c/latest is broken: it does not name a checkpoint with the checksum of that name";
    let output = oflow(&folder, &["ls", "c"]);
    assert_eq!((code(&output), stdout(&output).lines().count()), (1, 3));
    for output in [output, oflow(&folder, &["verify", "c"]), resumed()] {
        assert!(code(&output) == 1 && stderr(&output).contains(broken), "{}", stderr(&output));
    }
    fs::write(&latest, whole).unwrap();
    fs::remove_file(folder.path().join("c/step-000012/manifest.json")).unwrap();
    let output = resumed();
    let lost = "c/latest names step-000012, which has no manifest.json";
    assert!(code(&output) == 1 && stderr(&output).contains(lost), "{}", stderr(&output));

    let refused = |args: &[&str], text: &str| {
        let output = oflow(&folder, args);
        assert!(code(&output) != 0 && stderr(&output).contains(text), "{args:?}: {}", stderr(&output));
    };
    refused(&["ls", "nothing"], "cannot open nothing");
    refused(&["convert", "c/step-000008", "hf"], "hf is there already");
    let other = ["convert", "c/step-000008", "x.safetensors", "--section", "modell"];
    refused(&other, "its sections are: model, opt");
    refused(&["convert", "c", "x", "--shard-size", "much"], "is not a size");
    refused(&["turn"], "unrecognized subcommand");
    let help = stdout(&oflow(&folder, &["convert", "--help"]));
    assert!(
        help.contains("oflow ckpt convert checkpoints model.safetensors") && help.contains("--shard-size"),
        "{help}"
    );
}

#[test]
fn a_folder_is_verified_while_a_job_saves_into_it() {
    use oflow::checkpoint::{CheckpointManager, CheckpointOptions, latest};
    use oflow::nn::Linear;
    use oflow::prelude::Device;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let folder = Folder::new();
    let (dir, done) = (folder.path().join("c"), AtomicBool::new(false));
    let saved =
        |step: u64, m: &mut CheckpointManager| m.save(step, &[("model", &Linear::new(1024, 1024, Device::Cpu)?)]);
    std::thread::scope(|s| {
        let saves = s.spawn(|| {
            let ranks = oflow::run_ranks(1, |_| {
                let mut m = CheckpointManager::new(&dir, CheckpointOptions { keep: 1 });
                // New steps, which retire old ones, and the same step anew.
                (1..).take_while(|_| !done.load(Relaxed)).try_for_each(|n| saved(n / 2 + 1, &mut m))
            });
            ranks.map(drop).map_err(|e| e.to_string())
        });
        let mut said = String::new();
        // Without the first checkpoint `verify` rightly says that there is none.
        while !saves.is_finished() && !matches!(latest(&dir), Ok(Some(_))) {
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..150 {
            said += &stderr(&oflow(&folder, &["verify", "c"]));
        }
        done.store(true, Relaxed);
        assert_eq!((saves.join().unwrap(), said), (Ok(()), String::new()));
    });
}
