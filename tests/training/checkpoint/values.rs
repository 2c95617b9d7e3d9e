//! Names and plain values × (save, load in the same world, in another one, convert): back as they were, or refused by the save.

use super::notation::{Any, Random};
use oflow::checkpoint::{Checkpoint, CheckpointManager, CheckpointOptions, ConvertOptions, convert};
use oflow::prelude::*;
use oflow::run_ranks;
use oflow::state::{LoadState, SaveState, Stateful};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Tensors and values by name. A tensor has three elements, the first of which is its number.
#[derive(Default)]
struct State {
    tensors: Vec<(String, Tensor)>,
    values: BTreeMap<String, Any>,
}

impl Stateful for State {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        self.tensors.iter().for_each(|(name, t)| to.tensor(name, t));
        self.values.iter().try_for_each(|(name, v)| to.value(name, v))
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        self.tensors.iter().for_each(|(name, t)| from.fill(name, t));
        for (name, v) in &mut self.values {
            *v = from.value(name)?.unwrap_or_else(|| v.clone());
        }
        Ok(())
    }
}

fn names() -> Vec<String> {
    let long = "n".repeat(10_000);
    let all = [
        "",
        "x",
        "x@[0]",
        "x@[2]",
        "__metadata__",
        "/",
        "..",
        "../x",
        "a.b",
        ".",
        "a\nb",
        "\0",
        "\u{1}",
        "\"",
        "\\",
        "é\u{1f600}",
        "\":{\"dtype\":",
        "\"crc32\":\"--------\"",
        "oflow.dtype:x",
        "format",
        "\u{202e}x",
        "\u{feff}",
        "%s",
        "$float",
        long.as_str(),
    ];
    all.iter().map(|s| s.to_string()).collect()
}

/// The program of a seed: some of the names, each a tensor or a value. `fresh` has other numbers in the same places.
fn state(seed: u64, fresh: bool) -> Result<State> {
    let (mut random, all) = (Random(seed), names());
    let mesh = Placement::all(Device::Cpu)?;
    let mut made = State::default();
    for (i, name) in all.iter().enumerate() {
        match random.next() % 4 {
            0 => {
                let first = if fresh { -1.0 } else { i as f64 };
                let local = from_vec(vec![first, 1.0, 2.0], [3], Device::Cpu)?;
                let sbp = if random.next() & 1 == 0 { sbp![S(0)] } else { sbp![B] };
                made.tensors.push((name.clone(), distribute(&local, (&mesh, sbp))?));
            }
            1 => {
                let value = random.any(3);
                made.values.insert(name.clone(), if fresh { Any::Unit } else { value });
            }
            _ => {}
        }
    }
    Ok(made)
}

fn shown(state: &State) -> Result<String> {
    let tensors = state.tensors.iter().map(|(n, t)| Ok((n, t.to_vec::<f64>()?))).collect::<Result<Vec<_>>>()?;
    Ok(format!("{tensors:?} {:?}", state.values))
}

fn section(seed: u64) -> &'static str {
    // Names without a section reach the files as they are.
    if seed.is_multiple_of(3) { "" } else { "more" }
}

/// Saves on so many ranks; what was saved, as text.
fn save(dir: &Path, seed: u64, ranks: usize) -> Result<String> {
    let all = run_ranks(ranks, |_| {
        let s = state(seed, false)?;
        let mut manager = CheckpointManager::new(dir, CheckpointOptions::default());
        manager.save(seed, &[(section(seed), &s)])?;
        shown(&s)
    })?;
    Ok(all.into_iter().next().unwrap_or_default())
}

#[test]
fn random_names_and_values_go_round_to_other_worlds_or_are_refused() {
    let (mut saved, mut refused, mut loads) = (0, 0, 0);
    for seed in 1..=36 {
        let tmp = tempfile::tempdir().unwrap();
        let want = match save(tmp.path(), seed, 2) {
            Ok(want) => want,
            Err(e) => {
                let text = e.to_string();
                assert!(
                    text.contains("is the format's own")
                        || text.contains("two tensors have the name '") && text.contains("x@["),
                    "{text}"
                );
                assert!(oflow::checkpoint::list(tmp.path()).unwrap().is_empty());
                refused += 1;
                continue;
            }
        };
        saved += 1;
        for ranks in [2, 1, 4] {
            let have = run_ranks(ranks, |_| {
                let mut s = state(seed, true)?;
                let mut manager = CheckpointManager::new(tmp.path(), CheckpointOptions::default());
                assert_eq!(manager.load_latest(&mut [(section(seed), &mut s)])?, Some(seed));
                shown(&s)
            })
            .unwrap();
            assert!(have.iter().all(|h| *h == want), "seed {seed} on {ranks} ranks:\n{}\n{want}", have[0]);
            loads += 1;
        }
        let c = Checkpoint::open(tmp.path()).unwrap();
        c.verify().unwrap();
        for file in std::fs::read_dir(c.path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|e| e == "safetensors") {
                safetensors::SafeTensors::deserialize(&std::fs::read(&path).unwrap()).unwrap();
            }
        }
        // To a file and back.
        let options = ConvertOptions { section: section(seed).into(), ..ConvertOptions::default() };
        for to in ["m.safetensors", "hf"] {
            let to = tmp.path().join(to);
            match convert(tmp.path(), &to, &options) {
                Ok(done) => assert_eq!(Checkpoint::open(&to).unwrap().tensors().len(), done.tensors),
                Err(e) => {
                    assert!(
                        e.to_string().contains("'__metadata__' is the format's own") || c.tensors().is_empty(),
                        "{e}"
                    );
                    assert!(!to.exists());
                }
            }
        }
    }
    println!("{} programs: {saved} saved and loaded {loads} times, {refused} refused", saved + refused);
    assert!(saved > 20 && refused > 0);
}

#[test]
fn files_of_any_name_hold_tensors_of_any_name() {
    let tmp = tempfile::tempdir().unwrap();
    let x = from_vec(vec![1.0, 2.0], [2], Device::Cpu).unwrap();
    let (mut written, mut refused) = (0, 0);
    for name in names() {
        let path = tmp.path().join("x.safetensors");
        match oflow::save_file(&path, &[(name.as_str(), &x), ("other", &x)]) {
            Ok(()) => {
                let all = oflow::load_file(&path, Device::Cpu).unwrap();
                assert!(all.iter().any(|(n, t)| *n == name && t.to_vec::<f64>().unwrap() == [1.0, 2.0]), "{name:?}");
                written += 1;
                std::fs::remove_file(&path).unwrap();
            }
            Err(e) => {
                assert!(name == "__metadata__" && e.to_string().contains("the format's own"), "{name:?}: {e}");
                refused += 1;
            }
        }
        assert_eq!(std::fs::read_dir(tmp.path()).unwrap().count(), 0);
    }
    for file in [&b"\xff\xfe"[..], b"a\nb", b" ", b"-", b"\xff.safetensors", b"x.index.json", b"\xff.index.json"] {
        let path = tmp.path().join(OsStr::from_bytes(file));
        match oflow::save_file(&path, &[("x", &x)]) {
            Ok(()) => {
                assert_eq!(oflow::load_file(&path, Device::Cpu).unwrap()[0].1.to_vec::<f64>().unwrap(), [1.0, 2.0]);
                Checkpoint::open(&path).unwrap().verify().unwrap();
                written += 1;
            }
            Err(e) => {
                assert!(e.to_string().contains("has the name of an index"), "{e}");
                assert!(!path.exists());
                refused += 1;
            }
        }
    }
    // A folder of a manager.
    let dir = tmp.path().join(OsStr::from_bytes(b"\xff\n"));
    let want = save(&dir, 1, 1).unwrap();
    assert!(want.contains('['));
    Checkpoint::open(&dir).unwrap().verify().unwrap();
    println!("{written} written and read, {refused} refused");
    assert_eq!(refused, 3);
}

#[test]
fn two_values_of_one_name_and_deep_ones_are_refused() {
    let mut to = SaveState::new();
    to.section("more");
    to.value("x", f64::INFINITY).unwrap();
    let e = to.value("x", 1).unwrap_err().to_string();
    assert!(e.contains("two values of the state have the name 'more.x'"), "{e}");
    let deep = (0..200).fold(serde_json::json!(1), |v, _| serde_json::json!([v]));
    let e = to.value("deep", &deep).unwrap_err().to_string();
    assert!(e.contains("the value 'more.deep' cannot be saved") && e.contains("at most 100 levels"), "{e}");
    let e = to.notation("deep", deep).unwrap_err().to_string();
    assert!(e.contains("the value 'more.deep' cannot be saved") && e.contains("at most 100 levels"), "{e}");
}
