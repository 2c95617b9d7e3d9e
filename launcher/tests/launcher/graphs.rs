//! The training examples with `--graph`: losses and saved state of the step itself, bit for bit.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use crate::common::*;
use oflaunch::model::{self, Calibration};
use oflow::boxing::Model;
use oflow::checkpoint::list;

/// The training examples, and options that make their models small. Of the first a batch of an epoch is smaller than the others.
const PROGRAMS: [(&str, &str); 5] = [
    ("train.rs", "--hidden 32"),
    ("gpt.rs", "--layers 2 --dim 32 --heads 4 --seq 16 --batch 4 --dropout 0.1 --sample 0"),
    ("convnet.rs", "--channels 4"),
    ("moe.rs", "--width 16 --hidden 16 --experts 4"),
    ("translate/main.rs", "--width 16 --heads 4 --layers 1 --letters 4 --longest 4 --batch 16"),
];

fn executable(program: &str) -> String {
    static BUILT: LazyLock<Mutex<BTreeMap<String, String>>> = LazyLock::new(Mutex::default);
    let mut all = BUILT.lock().unwrap();
    let build = || built(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(program), &["--", "--help"]);
    all.entry(program.to_string()).or_insert_with(build).clone()
}

/// The losses of a run, and the bytes of each tensor file of the checkpoint that it saves in the end.
fn trained(program: &str, ranks: &str, args: &[&str]) -> (BTreeMap<usize, f64>, BTreeMap<String, Vec<u8>>) {
    let folder = Folder::new();
    let exe = executable(program);
    let save = ["--checkpoint", "c", "--save-every", args[1]];
    let output = run(&folder, &[&["-n", ranks, "--threads", "1", &exe, "--"], args, &save].concat());
    assert_eq!(code(&output), 0, "{program} on {ranks}, {args:?}: {}", stderr(&output));
    let saved = list(&folder.path().join("c")).unwrap().pop().unwrap().path;
    let files = fs::read_dir(saved).unwrap().map(|f| f.unwrap().path());
    let tensors = files.filter(|f| f.extension().is_some_and(|e| e == "safetensors"));
    let bytes = |f: std::path::PathBuf| (f.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&f).unwrap());
    (losses_of(&stdout(&output)), tensors.map(bytes).collect())
}

fn same(program: &str, ranks: &str, steps: usize, more: &str) {
    let small = PROGRAMS.iter().find(|(name, _)| *name == program).unwrap().1;
    let steps = steps.to_string();
    let args: Vec<&str> = ["--steps", &steps].into_iter().chain(small.split(' ')).chain(more.split(' ')).collect();
    let (losses, tensors) = trained(program, ranks, &args);
    assert!(losses.len().to_string() == steps && !tensors.is_empty(), "{program}: {losses:?}");
    let (of_graph, of_graph_tensors) = trained(program, ranks, &[&args[..], &["--graph"]].concat());
    assert_eq!(of_graph, losses, "{program} {more} on {ranks} ranks");
    assert!(of_graph_tensors == tensors, "{program} {more} on {ranks} ranks: other weights or another state");
}

/// Without a graph the step takes 153 MiB beside the program itself; the limit is on the address space of the process.
#[test]
fn a_step_that_does_not_fit_trains_as_a_graph_within_a_budget() {
    const LIMIT_KIB: u64 = 200_000;
    const MODEL: &str = "--steps 3 --layers 8 --dim 64 --heads 4 --seq 256 --batch 16 --sample 0 --log-every 1";
    let exe = executable("gpt.rs");
    let trained = |limit: Option<u64>, more: &str| {
        let limit = limit.map_or(String::new(), |kib| format!("ulimit -v {kib} && "));
        let line = format!("{limit}exec '{exe}' {MODEL} {more}");
        Command::new("sh").args(["-c", &line]).env("OFLOW_THREADS", "1").output().unwrap()
    };
    let whole = trained(None, "");
    assert!(whole.status.success(), "{}", stderr(&whole));
    let without = trained(Some(LIMIT_KIB), "");
    assert!(!without.status.success() && stderr(&without).contains("use smaller batches"), "{}", stderr(&without));
    let within = trained(Some(LIMIT_KIB), "--graph --memory 60000000");
    assert!(within.status.success(), "{}", stderr(&within));
    assert_eq!(losses_of(&stdout(&within)), losses_of(&stdout(&whole)));
    assert_eq!(losses_of(&stdout(&whole)).len(), 3);
}

/// One job saves, others load: with the same ranks, with other ranks, with the file of another rank, and under another cost model.
#[test]
fn a_graph_that_a_job_has_saved_runs_in_another_job() {
    let folder = Folder::new();
    let kept = Folder::new();
    let plan = kept.path().to_str().unwrap();
    let ranks = |n: &str, mode: &str, more: &[&str]| {
        run(&folder, &[&["-n", n, "--threads", "1"], more, &[job(), "--", mode, plan]].concat())
    };
    let saved = ranks("2", "graph-saves", &[]);
    assert_eq!(code(&saved), 0, "{}", stderr(&saved));
    let losses = |o: &std::process::Output| {
        stdout(o).lines().filter(|l| l.contains("loss ")).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(losses(&saved).len(), 3, "{}", stdout(&saved));
    let loaded = ranks("2", "graph-loads", &[]);
    assert_eq!((code(&loaded), losses(&loaded)), (0, losses(&saved)), "{}", stderr(&loaded));
    let refused = |output: std::process::Output, says: &str| {
        assert!(code(&output) != 0 && stderr(&output).contains(says), "{says}: {}", stderr(&output));
    };
    refused(ranks("3", "graph-loads", &[]), "the graph was saved for rank");
    let file = |rank: usize| kept.path().join(format!("rank{rank}.graph"));
    let (first, second) = (fs::read(file(0)).unwrap(), fs::read(file(1)).unwrap());
    fs::write(file(1), &first).unwrap();
    refused(ranks("2", "graph-loads", &[]), "the graph was saved for rank 0 of 2, here it is 1 of 2");
    fs::write(file(1), second).unwrap();
    let slow = kept.path().join("model.json");
    let given = Model { local_ps: 12_345, ..Model::default() };
    model::write(&slow, &Calibration::of_this_host(given, 2, 2)).unwrap();
    let args = ["-n", "2", "--threads", "1", job(), "--", "graph-loads", plan];
    refused(
        oflaunch(&folder).args(args).env("OFLOW_MODEL", &slow).output().unwrap(),
        "the graph was saved for cost model",
    );
    fs::remove_file(file(1)).unwrap();
    refused(ranks("2", "graph-loads", &[]), "rank1.graph");
}

#[test]
fn examples_train_as_graphs_with_the_bits_of_their_steps() {
    // 24 steps are more than an epoch: the last batch is smaller, and has a graph of its own.
    same("train.rs", "2", 24, "--parallel tp");
    same("gpt.rs", "4", 8, "--parallel 2d --zero 2");
    if !std::env::var("OFLOW_CASES").is_ok_and(|v| v == "all") {
        return;
    }
    for (program, _) in PROGRAMS {
        for (ranks, ways) in [("1", &["single"][..]), ("2", &["dp", "tp"]), ("4", &["dp", "tp", "2d"])] {
            for way in ways {
                same(program, ranks, 50, &format!("--parallel {way}"));
            }
        }
        for precision in ["f16", "bf16"] {
            same(program, "2", 50, &format!("--parallel dp --autocast {precision}"));
        }
    }
    for more in ["--zero 1", "--zero 2", "--zero 3", "--zero 3 --recompute", "--recompute", "--preset gpt2 --vocab 256"]
    {
        same("gpt.rs", "2", 50, &format!("--parallel dp {more}"));
        same("gpt.rs", "4", 50, &format!("--parallel 2d {more}"));
    }
    same("convnet.rs", "4", 50, "--parallel 2d --spatial");
}
