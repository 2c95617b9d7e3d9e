//! Ranks as processes with GPUs, emulated ones: what they compute over NCCL and through host memory is what ranks on CPUs
//! compute, and one that dies ends the job for those that wait for it in a collective of GPUs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::*;
use oflow::World;
use oflow::checkpoint::{Checkpoint, CheckpointManager, CheckpointOptions, list};
use oflow::nn::{Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;
use rustix::process::Signal;

/// What the ranks are to do: they run this very file, and of it the one test that is ignored otherwise.
const TASK: &str = "OFLOW_TEST_TASK";

/// The emulator's libraries, for the ranks only: this process has tests for which there is no GPU. Without a C++ compiler the tests say so and do nothing.
fn libraries() -> Option<PathBuf> {
    let found = oflow_emulator::compiler_runs().and_then(|()| oflow_emulator::library_dir());
    found.inspect_err(|why| eprintln!("skipped: {why}")).ok()
}

/// A job of ranks that have so many emulated GPUs, and exchange in that way if one is given.
fn job(folder: &Folder, ranks: usize, gpus: usize, way: &str, task: &str) -> Option<Command> {
    job_with(folder, &[], ranks, gpus, way, task)
}

fn job_with(folder: &Folder, options: &[&str], ranks: usize, gpus: usize, way: &str, task: &str) -> Option<Command> {
    let libraries = libraries()?;
    let mut command = oflaunch(folder);
    let program = std::env::current_exe().unwrap();
    command.args(options).args(["-n", &ranks.to_string()]).arg(program).args([
        "--",
        "--exact",
        "cuda::rank",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    command.env(TASK, task).env("OFLOW_COMM", way).env("OFLOW_EMULATOR_GPUS", gpus.to_string());
    command.env("OFLOW_KERNELS_AHEAD", "0").env("OFLOW_KERNEL_CACHE", libraries.join("kernels"));
    command.env("LD_LIBRARY_PATH", libraries);
    Some(command)
}

#[test]
#[ignore = "what the ranks of the other tests run"]
fn rank() {
    let Ok(task) = std::env::var(TASK) else { return };
    let world = oflow::init().unwrap();
    match task.as_str() {
        "train-cpu" => train(&world, Device::Cpu, 6).unwrap(),
        "train-cuda" => train(&world, Device::Cuda, 6).unwrap(),
        "save-cpu" => go_on(&world, Device::Cpu).unwrap(),
        "save-cuda" => go_on(&world, Device::Cuda).unwrap(),
        "late" => late(&world).unwrap(),
        folder => {
            train(&world, Device::Cuda, 1).unwrap();
            let path = Path::new(folder).join(format!("pid{}", world.rank()));
            std::fs::write(path.with_extension("new"), std::process::id().to_string()).unwrap();
            std::fs::rename(path.with_extension("new"), path).unwrap();
            train(&world, Device::Cuda, usize::MAX).unwrap();
        }
    }
}

/// Steps of a layer whose batch is split, so that its gradients are reduced over all ranks; rank 0 prints the losses.
fn train(world: &World, device: Device, steps: usize) -> Result<()> {
    let all = Placement::all(device)?;
    manual_seed(3);
    let layer = Linear::new(8, 5, (&all, sbp![B]))?;
    let x = randn([24, 8], (&all, sbp![S(0)]))?;
    let y = randn([24, 5], (&all, sbp![S(0)]))?;
    let mut opt = Sgd::new(layer.parameters(), SgdOptions { lr: 0.1, ..Default::default() });
    for _ in 0..steps {
        let error = layer.forward(&x)?.sub(&y)?;
        let loss = error.mul(&error)?.mean(())?;
        opt.zero_grad();
        loss.backward()?;
        opt.step()?;
        let loss = loss.item()?;
        if world.rank() == 0 && steps < usize::MAX {
            println!("loss {loss}");
        }
    }
    Ok(())
}

/// Trains six steps more, from where the checkpoints of the current folder end, and saves each while training goes on.
fn go_on(world: &World, device: Device) -> Result<()> {
    let all = Placement::all(device)?;
    manual_seed(3);
    let at = |s: NdSbp| (&all, s).dtype(DType::F64);
    let mut layer = Linear::new(8, 5, at(sbp![B]))?;
    if world.size() == 2 {
        layer.to_global(&all, &[("weight", sbp![S(0)])])?;
    }
    let x = randn([24, 8], at(sbp![S(0)]))?;
    let y = randn([24, 5], at(sbp![S(0)]))?;
    let mut opt = AdamW::new(layer.parameters(), AdamWOptions { lr: 0.03, ..Default::default() });
    let mut manager = CheckpointManager::new("c", CheckpointOptions { keep: 2 });
    let first = manager.load_latest(&mut [("layer", &mut layer), ("opt", &mut opt)])?.unwrap_or(0);
    for step in first..first + 6 {
        let error = layer.forward(&x)?.sub(&y)?;
        let loss = error.mul(&error)?.mean(())?;
        opt.zero_grad();
        loss.backward()?;
        opt.step()?;
        manager.save_async(step + 1, &[("layer", &layer), ("opt", &opt)])?;
        let loss = loss.item()?;
        if world.rank() == 0 {
            println!("loss {loss}");
        }
    }
    manager.finish()
}

/// Rank 1 loops while the others wait for it on their GPUs.
fn late(world: &World) -> Result<()> {
    let all = Placement::all(Device::Cuda)?;
    let x = ones([12, 8], (&all, sbp![S(0)]))?;
    // The links of the group are there, and each rank has been in a collective.
    assert_eq!(x.sum(())?.item()?, 96.0);
    let y = x.add(&x)?;
    while world.rank() == 1 {
        std::hint::black_box(&y);
    }
    let all_of_it = y.to_global(sbp![B])?; // the one that rank 1 does not come to
    let behind = x.add(&y)?.to_global(sbp![B])?;
    behind.add(&all_of_it)?.sum(())?.item().map(drop)
}

fn losses(mut job: Command) -> Vec<f64> {
    let output = job.output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    // The test harness has begun the line of the first; one rank alone has no name.
    text.lines().filter_map(|l| l.split_once("loss ")?.1.parse().ok()).collect()
}

#[test]
fn gpus_of_processes_compute_what_cpus_compute() {
    let folder = Folder::new();
    // Ranks with a GPU each exchange over NCCL, those that share one through host memory.
    for (ranks, gpus, way) in [(2, 2, "nccl"), (4, 4, "nccl"), (3, 1, "")] {
        let Some(on_cpus) = job(&folder, ranks, gpus, "", "train-cpu") else { return };
        let Some(on_gpus) = job(&folder, ranks, gpus, way, "train-cuda") else { return };
        let (want, have) = (losses(on_cpus), losses(on_gpus));
        assert_eq!((want.len(), have.len()), (6, 6));
        for (w, h) in want.iter().zip(&have) {
            assert!((w - h).abs() < 1e-5, "{ranks} ranks on {gpus} GPUs: {have:?} instead of {want:?}");
        }
    }
}

#[test]
fn a_rank_that_is_killed_ends_those_that_wait_for_its_gpu() {
    for (gpus, way) in [(3, "nccl"), (1, "")] {
        let folder = Folder::new();
        let task = folder.path().to_str().unwrap();
        let Some(mut job) = job(&folder, 3, gpus, way, task) else { return };
        let child = job.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let pids = folder.pids(3);
        std::thread::sleep(Duration::from_millis(100));
        let start = Instant::now();
        kill(pids[1], Signal::KILL);
        let output = child.wait_with_output().unwrap();
        let took = start.elapsed();
        let report = stderr(&output);
        assert_eq!(code(&output), 137, "{report}");
        let expected = format!("oflaunch: rank 1 (pid {}) was killed by signal 9 (SIGKILL)", pids[1]);
        assert!(report.contains(&expected), "{report}");
        assert!(took < Duration::from_secs(10), "{took:?}: {report}");
        assert_gone(&pids);
    }
}

#[test]
fn what_gpus_have_saved_any_device_goes_on_from() {
    let (whole, cut) = (Folder::new(), Folder::new());
    let run = |folder: &Folder, ranks, gpus, way, task| Some(losses(job(folder, ranks, gpus, way, task)?));
    let want: Vec<f64> = (0..4).flat_map(|_| run(&whole, 1, 1, "", "save-cpu").unwrap_or_default()).collect();
    let mut have = vec![];
    // GPUs of their own, one GPU for all, the host, and GPUs again.
    for (ranks, gpus, way, task) in
        [(2, 2, "nccl", "save-cuda"), (3, 1, "", "save-cuda"), (2, 1, "", "save-cpu"), (1, 1, "", "save-cuda")]
    {
        let Some(more) = run(&cut, ranks, gpus, way, task) else { return };
        have.extend(more);
        let found = list(&cut.path().join("c")).unwrap();
        let steps: Vec<usize> = found.iter().map(|f| f.step as usize).collect();
        assert_eq!(steps, [have.len() - 1, have.len()], "two are kept");
        found.iter().for_each(|f| Checkpoint::open(&f.path).unwrap().verify().unwrap());
    }
    assert_eq!((have.len(), want.len()), (24, 24));
    assert!(have.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-9), "{have:?}\n{want:?}");
}

#[test]
fn the_records_tell_who_never_came_to_a_collective_of_gpus() {
    let line =
        include_str!("cuda.rs").lines().position(|l| l.ends_with("// the one that rank 1 does not come to")).unwrap()
            + 1;
    for (gpus, way) in [(3, "nccl"), (1, "")] {
        let folder = Folder::new();
        let options = ["--stall", "3", "--timeout", "0.5"];
        let Some(mut job) = job_with(&folder, &options, 3, gpus, way, "late") else { return };
        let output = job.output().unwrap();
        let text = stderr(&output);
        assert_eq!(code(&output), 1, "{text}");
        assert!(text.contains("rank 1 stalls the job: rank ") && text.contains(&format!("cuda.rs:{line}")), "{text}");
        let kept = text.lines().find_map(|l| l.split_once("`oflow postmortem ")?.1.split_once('`')).unwrap().0;
        let page = Command::new(env!("CARGO_BIN_EXE_oflow")).args(["postmortem", kept]).output().unwrap();
        let page = stdout(&page);
        for rank in [0, 2] {
            let waits = format!("rank {rank} waits for rank 1 in all_gather of 'to_global' #");
            let waited = waits.replace("waits", "waited");
            assert!(page.contains(&waits) || page.contains(&waited), "{page}");
        }
        assert!(page.contains("Who never arrived\n  rank 1\n"), "{page}");
        // 12 x 8 numbers of four bytes, the whole of what is gathered.
        assert!(page.contains(&format!("cuda.rs:{line}), 384 B")), "{page}");
        if way == "nccl" {
            assert!(page.contains("; its GPU has not come to "), "what is behind it on the stream: {page}");
        }
    }
}
