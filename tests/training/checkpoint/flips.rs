//! Single flipped bits in any file of a checkpoint. On any number of ranks the load is refused, or it gives the bits of the
//! undamaged checkpoint because nothing reads the damaged byte.
//!
//! `OFLOW_FLIPS=1000` sets the number of flips; each is resumed on 1, 2, 3, 4 and 8 ranks.

use oflow::checkpoint::{CheckpointManager, CheckpointOptions};
use oflow::prelude::*;
use oflow::state::Stateful;
use oflow::testing::Random;
use oflow::{ErrorKind, run_ranks};
use oflow_tests::bag::Bag;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const WORLDS: [usize; 5] = [1, 2, 3, 4, 8];

/// Tensors of several dtypes and sizes in the layouts of a number: what is whole on one world is cut on another.
fn state(seed: i64, layouts: usize) -> Result<Bag> {
    let mesh = Placement::all(Device::Cpu)?;
    let kinds = [sbp![S(0)], sbp![B], sbp![S(1)]];
    let shapes = [([260, 170], DType::F32), ([9, 11], DType::BF16), ([33, 5], DType::I64), ([1, 1], DType::F64)];
    let tensor = |(i, (shape, dtype)): (usize, &([usize; 2], DType))| {
        let all = arange((shape[0] * shape[1]) as i64, (&mesh, sbp![B]))?;
        all.mul(seed)?.reshape(*shape)?.cast(*dtype)?.to_global(&kinds[(i + layouts) % 3])
    };
    Ok(Bag(shapes.iter().enumerate().map(tensor).collect::<Result<_>>()?))
}

/// Everything that a resumed program has: the step, the values, the bits of the tensors and the next random numbers.
fn resumed(dir: &Path, ranks: usize) -> Result<String> {
    let all = run_ranks(ranks, |_| {
        manual_seed(99);
        let (mut bag, mut note) = (state(0, ranks)?, serde_json::Value::Null);
        let mut m = CheckpointManager::new(dir, CheckpointOptions::default());
        let step = m.load_latest(&mut [("x", &mut bag), ("note", &mut note)])?;
        let bits: Vec<Vec<u64>> =
            bag.0.iter().map(|t| Ok(t.to_f64_vec()?.into_iter().map(f64::to_bits).collect())).collect::<Result<_>>()?;
        let random = rand([4], (&Placement::all(Device::Cpu)?, sbp![B]))?.to_vec::<f32>()?;
        Ok(format!("{step:?} {note} {bits:?} {random:?}"))
    })?;
    assert!(all.iter().all(|one| *one == all[0]));
    Ok(all[0].clone())
}

/// The files of the latest checkpoint, the pointer to it and the lock.
fn files(dir: &Path, latest: &str) -> Vec<PathBuf> {
    let of_step = fs::read_dir(dir.join(latest)).unwrap().map(|e| e.unwrap().path());
    let mut all: Vec<PathBuf> = of_step.chain([dir.join("latest"), dir.join(".lock")]).collect();
    all.retain(|f| f.metadata().unwrap().len() > 0);
    all.sort();
    all
}

#[test]
fn a_flipped_bit_is_refused_on_any_number_of_ranks() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    // An earlier checkpoint too, whose name differs in one bit: to resume from that one would be wrong and look right.
    for step in [1, 3] {
        run_ranks(2, |_| {
            manual_seed(step);
            let (bag, note) = (state(step as i64, 0)?, serde_json::json!({ "lr": 0.1, "step": step }));
            let state: [(&str, &dyn Stateful); 2] = [("x", &bag), ("note", &note)];
            CheckpointManager::new(dir, CheckpointOptions::default()).save(step, &state)
        })
        .unwrap();
    }
    let want: Vec<String> = WORLDS.iter().map(|n| resumed(dir, *n).unwrap()).collect();
    assert!(want.iter().all(|w| *w == want[0] && w.starts_with("Some(3) ")));
    let files = files(dir, "step-000003");
    let lengths: Vec<usize> = files.iter().map(|f| f.metadata().unwrap().len() as usize).collect();

    let flips: u64 = std::env::var("OFLOW_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let mut random = Random::new(12);
    // By name of the file: how many flips were refused by all worlds, and how many nobody read.
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut silent = vec![];
    for flip in 0..flips {
        // Half of them in any byte, half in any file: the small ones too.
        let (number, at) = match flip % 2 {
            0 => {
                let mut at = random.below(lengths.iter().sum());
                let number = lengths
                    .iter()
                    .position(|len| {
                        at < *len || {
                            at -= len;
                            false
                        }
                    })
                    .unwrap();
                (number, at)
            }
            _ => {
                let number = random.below(files.len());
                (number, random.below(lengths[number]))
            }
        };
        let bit = random.below(8);
        let (whole, name) = (fs::read(&files[number]).unwrap(), files[number].strip_prefix(dir).unwrap().display());
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << bit;
        fs::write(&files[number], damaged).unwrap();
        let mut refused = 0;
        for (i, ranks) in WORLDS.into_iter().enumerate() {
            match resumed(dir, ranks) {
                Ok(got) if got == want[i] => {}
                Ok(_) => silent.push(format!("bit {bit} of byte {at} of {name} on {ranks} ranks")),
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Storage, "{e}");
                    assert!(e.help_text().is_some(), "{e}");
                    refused += 1;
                }
            }
        }
        let count = counts.entry(name.to_string()).or_default();
        match refused {
            5 => count.0 += 1,
            0 => count.1 += 1,
            // What one world reads, all read.
            n => silent.push(format!("bit {bit} of byte {at} of {name} is refused on {n} of 5 worlds")),
        }
        fs::write(&files[number], whole).unwrap();
    }
    for (name, (refused, unread)) in &counts {
        println!("{name}: {refused} flips refused on all of {WORLDS:?} ranks, {unread} in bytes that nobody reads");
    }
    assert!(silent.is_empty(), "{} of {flips} flips:\n{}", silent.len(), silent.join("\n"));
    assert!(counts.iter().all(|(name, (_, unread))| *unread == 0 || name == ".lock"), "{counts:?}");
}
