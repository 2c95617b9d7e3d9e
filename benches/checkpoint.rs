//! Checkpoints: time of the plan, bandwidth beside `dd`, how long training stands still.
//!
//! ```text
//! cargo bench --bench checkpoint [-- FOLDER [MIB [RANKS]]]
//! ```
//!
//! The folder (default: a temporary one) decides which disk is measured.

#[path = "../tests/common/bag.rs"]
mod bag;

use bag::Bag;
use oflow::DType;
use oflow::checkpoint::{
    Checkpoint, CheckpointManager, CheckpointOptions, Manifest, SavedFile, SavedPiece, SavedSums, SavedTensor,
    TensorSpec, VERSION, boxes_of_run, shares,
};
use oflow::placement::{Device, Placement};
use oflow::prelude::*;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn seconds<T>(f: impl FnOnce() -> T) -> (f64, T) {
    let began = Instant::now();
    let out = f();
    (began.elapsed().as_secs_f64(), out)
}

/// 2,000 tensors over 4,096 ranks: a transformer's layouts on a mesh [dp 64, tp 8, pp 8].
fn plan() -> Result<()> {
    let ranks: Vec<usize> = (0..4096).collect();
    let mesh = Placement::new(Device::Cpu, &ranks, &[64, 8, 8])?;
    let kinds = [sbp![B, B, B], sbp![B, S(0), B], sbp![B, S(1), B], sbp![S(0), S(1), B], sbp![S(0), S(0), S(1)]];
    let specs: Vec<TensorSpec> = (0..2000)
        .map(|i| TensorSpec {
            name: format!("model.h.{i}.weight"),
            shape: [8192 + i % 7, 4096][..].into(),
            dtype: DType::BF16,
            placement: mesh.clone(),
            sbp: kinds[i % kinds.len()].clone(),
        })
        .collect();
    let mut times = vec![];
    for rank in (0..4096).step_by(64) {
        let (t, mine) = seconds(|| shares(&specs, rank));
        assert!(!mine?.is_empty());
        times.push(t);
    }
    let worst = times.iter().fold(0.0, |a: f64, b| a.max(*b));
    println!(
        "plan, 4096 ranks x 2000 tensors: median {:.2} ms, worst {:.2} ms a rank",
        median(times) * 1e3,
        worst * 1e3
    );
    assert!(worst < 0.05, "the budget is 50 ms");
    check(&specs)
}

/// Whether the boxes of all ranks are what makes up the tensors, as loading asks.
fn check(specs: &[TensorSpec]) -> Result<()> {
    let mut m = Manifest { version: VERSION, world: 4096, ..Manifest::default() };
    let saved = |s: &TensorSpec| SavedTensor {
        dtype: "BF16".into(),
        shape: s.shape.to_vec(),
        layout: String::new(),
        pieces: vec![],
    };
    let mut tensors: Vec<SavedTensor> = specs.iter().map(saved).collect();
    let mut pieces = 0;
    for rank in 0..4096 {
        let sums = SavedSums { header: 0, header_crc32: String::new(), blocks_crc32: String::new() };
        m.files.push(SavedFile { name: format!("rank-{rank:05}"), len: u64::MAX, sums: Some(sums) });
        for share in shares(specs, rank)? {
            for b in boxes_of_run(&share.shard, share.run) {
                let bytes = (0, 2 * b.size.iter().product::<usize>() as u64);
                let (offset, size) = (b.offset.to_vec(), b.size.to_vec());
                tensors[share.tensor].pieces.push(SavedPiece { file: rank, bytes, offset, size });
                pieces += 1;
            }
        }
    }
    m.tensors = specs.iter().map(|s| s.name.clone()).zip(tensors).collect();
    let (t, fine) = seconds(|| m.check());
    assert_eq!(fine, Ok(()));
    println!("check of their manifest: {pieces} pieces in {:.0} ms", t * 1e3);
    Ok(())
}

/// Seconds that dd takes for the same bytes in the same folder.
fn dd(dir: &Path, mib: usize) -> Option<f64> {
    let file = dir.join("dd.bin");
    let (t, out) = seconds(|| {
        Command::new("dd")
            .args(["if=/dev/zero", "bs=8M", "conv=fsync", &format!("count={}", mib.div_ceil(8))])
            .arg(format!("of={}", file.display()))
            .output()
    });
    let _may_not_be_there = std::fs::remove_file(&file);
    out.ok().filter(|o| o.status.success()).map(|_| t)
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let temporary = tempfile::tempdir()?;
    let dir = args.first().map_or(temporary.path().to_path_buf(), std::path::PathBuf::from);
    let mib: usize = args.get(1).and_then(|a| a.parse().ok()).unwrap_or(256);
    let ranks: usize = args.get(2).and_then(|a| a.parse().ok()).unwrap_or(2);
    plan()?;

    let dir = dir.join("oflow-bench");
    std::fs::create_dir_all(&dir)?;
    let tensors = 32;
    let rows = mib * (1 << 20) / 4 / 1024 / tensors;
    let (mut saves, mut dds, mut stalls, mut behinds, mut loads, mut shared) =
        (vec![], vec![], vec![], vec![], vec![], vec![]);
    for round in 0..5u64 {
        dds.extend(dd(&dir, mib));
        let all = oflow::run_ranks(ranks, |w| {
            let mesh = Placement::all(Device::Cpu)?;
            let kinds = [sbp![B], sbp![S(0)]];
            let bag = |n: usize| -> Result<Bag> {
                let t = |i: usize| full([rows, 1024], 1.0, (&mesh, kinds[(i + n) % 2].clone()));
                Ok(Bag((0..tensors).map(t).collect::<Result<_>>()?))
            };
            let (mut state, mut other) = (bag(0)?, bag(1)?);
            let mut m = CheckpointManager::new(&dir, CheckpointOptions { keep: 1 });
            w.barrier()?;
            let (save, out) = seconds(|| m.save(1, &[("x", &state)]));
            out?;
            // The first snapshot takes its memory from the system.
            m.save_async(2, &[("x", &state)])?;
            m.wait()?;
            w.barrier()?;
            let (stall, out) = seconds(|| m.save_async(3 + round, &[("x", &state)]));
            out?;
            let (rest, out) = seconds(|| m.wait());
            out?;
            let (load, out) = seconds(|| m.load_latest(&mut [("x", &mut other)]));
            out?;
            // What all ranks need: each a part, then everyone's to everyone.
            let saved = Checkpoint::open(&dir)?;
            let (share, out) = seconds(|| -> Result<()> {
                for i in (0..tensors).step_by(2) {
                    saved.tensor(&format!("x.{i}"), (&mesh, sbp![S(0)]))?.to_global(sbp![B])?;
                }
                Ok(())
            });
            out?;
            let (alike, out) = seconds(|| -> Result<()> {
                for i in (0..tensors).step_by(2) {
                    saved.tensor(&format!("x.{i}"), (&mesh, sbp![B]))?;
                }
                Ok(())
            });
            out?;
            drop(m);
            state.0.clear();
            Ok([save, stall, stall + rest, load, share / alike])
        })?;
        let worst = |i: usize| all.iter().map(|t| t[i]).fold(0.0, f64::max);
        saves.push(worst(0));
        stalls.push(worst(1));
        behinds.push(worst(2));
        loads.push(worst(3));
        shared.push(worst(4));
    }
    std::fs::remove_dir_all(&dir)?;
    let rate = |t: f64| mib as f64 / t;
    let (save, stall, behind, load) = (median(saves), median(stalls), median(behinds), median(loads));
    println!("{mib} MiB, {ranks} ranks (threads), half of it on all of them, medians of 5:");
    println!("  save             {save:.3} s  {:.0} MiB/s", rate(save));
    if !dds.is_empty() {
        let dd = median(dds);
        println!("  dd conv=fsync    {dd:.3} s  {:.0} MiB/s  (save is {:.2} of it)", rate(dd), dd / save);
    }
    println!("  save_async       {stall:.3} s until training goes on, {behind:.3} s until it is on disk");
    println!("  load elsewhere   {load:.3} s  {:.0} MiB/s", rate(load));
    println!("  replicas that read a share each and exchange take {:.2} of the time of reading alike", median(shared));
    Ok(())
}
