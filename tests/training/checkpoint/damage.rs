//! What is broken, cut, gone or of another version is found, by `verify` and by loading, and said clearly.

use oflow::ErrorKind;
use oflow::checkpoint::{Checkpoint, CheckpointManager, CheckpointOptions, LoadOptions, Loaded};
use oflow::nn::Linear;
use oflow::prelude::*;
use oflow::run_ranks;
use std::fs;
use std::path::{Path, PathBuf};

fn linear(sbp: NdSbp) -> Result<Linear> {
    Linear::new(6, 5, (&Placement::all(Device::Cpu)?, sbp))
}

/// A checkpoint of two ranks.
fn saved(dir: &Path) -> PathBuf {
    run_ranks(2, |_| {
        let model = linear(sbp![S(0)])?;
        CheckpointManager::new(dir, CheckpointOptions::default()).save(3, &[("model", &model)])
    })
    .unwrap();
    dir.join("step-000003")
}

fn loaded(dir: &Path, ranks: usize) -> Result<()> {
    run_ranks(ranks, |_| {
        let mut model = linear(sbp![B])?;
        let mut m = CheckpointManager::new(dir, CheckpointOptions::default());
        m.load_latest(&mut [("model", &mut model)]).map(|s| assert_eq!(s, Some(3)))
    })
    .map(drop)
}

#[test]
fn every_changed_byte_is_found() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = saved(tmp.path());
    loaded(tmp.path(), 3).unwrap();
    for name in
        ["rank-00000", "rank-00001"].map(|n| [".safetensors", ".crc32"].map(|kind| format!("{n}{kind}"))).concat()
    {
        let path = dir.join(&name);
        let whole = fs::read(&path).unwrap();
        let data = match name.ends_with(".safetensors") {
            true => 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize,
            false => whole.len(),
        };
        for i in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[i] ^= 1 << (i % 8);
            fs::write(&path, bytes).unwrap();
            let e = Checkpoint::open(&dir).unwrap().verify().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Storage);
            assert!(e.to_string().contains(&name), "{e}");
            if i % 16 == 0 || i + 1 == data {
                let e = loaded(tmp.path(), 1 + i / 16 % 4).unwrap_err().to_string();
                let want = if i < data { "not what was written" } else { "are not those that were written" };
                assert!(e.contains(&format!("{name} is damaged: ")) && e.contains(want), "{e}");
                assert!(i < data || e.contains("of 'model."), "{e}");
                assert!(e.contains("`oflow ckpt ls`"), "{e}");
            }
        }
        fs::write(&path, &whole).unwrap();
    }
    Checkpoint::open(&dir).unwrap().verify().unwrap();
}

#[test]
fn files_that_are_cut_or_gone_are_found_when_it_is_opened() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = saved(tmp.path());
    let (path, manifest) = (dir.join("rank-00001.safetensors"), dir.join("manifest.json"));
    let whole = fs::read(&path).unwrap();
    let opened = || Checkpoint::open(&dir).err().unwrap().to_string();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(opened().contains(&format!("has {} bytes instead of {}", whole.len() - 1, whole.len())), "{}", opened());
    fs::remove_file(&path).unwrap();
    assert!(opened().contains("rank-00001.safetensors cannot be read: No such file"), "{}", opened());
    let e = loaded(tmp.path(), 2).unwrap_err().to_string();
    assert!(e.contains("rank 0 (and one other rank): the checkpoint's file"), "{e}");
    fs::write(&path, &whole).unwrap();
    // A side file is read with the data.
    let (side, moved) = (dir.join("rank-00001.crc32"), dir.join("moved"));
    fs::rename(&side, &moved).unwrap();
    let e = loaded(tmp.path(), 2).unwrap_err().to_string();
    assert!(e.contains("rank-00001.crc32 cannot be read: No such file"), "{e}");
    fs::write(&side, "").unwrap();
    let e = loaded(tmp.path(), 3).unwrap_err().to_string();
    assert!(e.contains("rank-00001.crc32 has 0 bytes instead of 4"), "{e}");
    fs::rename(&moved, &side).unwrap();
    loaded(tmp.path(), 3).unwrap();

    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replacen("\"version\":3", "\"version\":9", 1)).unwrap();
    assert!(opened().contains("is of version 9 of the format\n  help: this oflow reads version 3"), "{}", opened());
    fs::write(&manifest, text.replacen("\"step\":3", "\"step\":4", 1)).unwrap();
    assert!(opened().contains("its checksum is wrong"), "{}", opened());
    fs::remove_file(&manifest).unwrap();
    let e = Checkpoint::open(tmp.path()).err().unwrap().to_string();
    assert!(
        e.contains("latest names step-000003, which has no manifest.json\n  help: restore its files, or move"),
        "{e}"
    );
    let e = Checkpoint::open(&dir).err().unwrap().to_string();
    assert!(e.contains(" has no checkpoint") && e.contains("has no manifest.json"), "{e}");
}

#[derive(oflow::nn::Module)]
struct Two {
    fc: Linear,
    extra: Tensor,
}

#[test]
fn what_does_not_fit_is_listed_and_nothing_changes() {
    let tmp = tempfile::tempdir().unwrap();
    run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let mut m = CheckpointManager::new(tmp.path(), CheckpointOptions::default());
        let fc = linear(sbp![S(0)])?;
        m.save(1, &[("model", &fc), ("note", &serde_json::json!({"by": "hand"}))])?;
        let saved = Checkpoint::open(tmp.path())?;
        let mut other = Two { fc: linear(sbp![B])?, extra: zeros([3], (&mesh, sbp![B]))? };
        let e = saved.load(&mut [("model", &mut other)]).unwrap_err();
        assert!(e.is_logical());
        let e = e.to_string();
        assert!(e.contains("missing there (3): model.fc.weight, model.fc.bias, model.extra; "), "{e}");
        assert!(e.contains("not asked for (2): model.bias, model.weight"), "{e}");
        assert!(e.contains("strict: false") && e.contains("damage.rs"), "{e}");
        let found =
            saved.load_with(&mut [("model", &mut other)], LoadOptions { strict: false, ..Default::default() })?;
        assert_eq!((found.missing.len(), found.unexpected.len()), (3, 2));

        let mut wide = Linear::new(7, 5, (&mesh, sbp![B]))?;
        let before = wide.weight.to_vec::<f32>()?;
        let e = saved
            .load_with(&mut [("model", &mut wide)], LoadOptions { strict: false, ..Default::default() })
            .unwrap_err()
            .to_string();
        assert!(e.contains("of another shape or dtype (1): model.weight is f32[5, 7] here, f32[5, 6] there"), "{e}");
        assert_eq!(wide.weight.to_vec::<f32>()?, before);
        let mut double = Linear::new(6, 5, (&mesh, sbp![B]).dtype(DType::F64))?;
        let e = saved.load(&mut [("model", &mut double)]).unwrap_err().to_string();
        assert!(e.contains("model.bias is f64[5] here, f32[5] there"), "{e}");
        assert!(e.contains("LoadOptions { cast: true"), "{e}");
        // Numbers of another dtype are converted when asked.
        let cast = LoadOptions { cast: true, ..Default::default() };
        saved.load_with(&mut [("model", &mut double)], cast)?;
        assert_eq!(double.weight.dtype(), DType::F64);
        assert_eq!(double.weight.to_vec::<f64>()?, fc.weight.cast(DType::F64)?.to_vec::<f64>()?);
        let e = saved.load_with(&mut [("model", &mut wide)], cast).unwrap_err().to_string();
        assert!(e.contains("model.weight is f32[5, 7] here") && !e.contains("cast: true"), "{e}");

        // One section alone, and a value of the user's.
        let mut fc = linear(sbp![B])?;
        let mut note = serde_json::Value::Null;
        saved.load(&mut [("note", &mut note)])?;
        assert_eq!(note["by"], "hand");
        let all = saved.load_with(&mut [("model", &mut fc)], LoadOptions::default())?;
        assert_eq!(all, Loaded::default());

        let e = saved.tensor("model.weights", (&mesh, sbp![B])).unwrap_err().to_string();
        assert!(e.contains("has no tensor 'model.weights'") && e.contains("it has model.bias, model.weight"), "{e}");
        let e = saved.tensor("model.weight", (&mesh, sbp![S(2)])).unwrap_err().to_string();
        assert!(e.contains("S(2) splits dim 2"), "{e}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_cannot_be_saved_is_refused_alike_on_all_ranks() {
    let tmp = tempfile::tempdir().unwrap();
    run_ranks(2, |w| {
        let mut m = CheckpointManager::new(tmp.path(), CheckpointOptions::default());
        let local = Linear::new(2, 2, Device::Cpu)?;
        let e = m.save(1, &[("model", &local)]).unwrap_err().to_string();
        assert!(e.contains("'model.weight' is a local tensor: in a world of 2"), "{e}");
        let fc = linear(sbp![B])?;
        let e = m.save(1, &[("a.b", &fc)]).unwrap_err().to_string();
        assert!(e.contains("'a.b' cannot be a section"), "{e}");
        let e = m.save(1, &[("a", &fc), ("a", &fc)]).unwrap_err().to_string();
        assert!(e.contains("a name of its own"), "{e}");
        let e = m.save(w.rank() as u64, &[("a", &fc)]).unwrap_err().to_string();
        assert!(e.contains("ranks 0 and 1 save different state or steps"), "{e}");
        Ok(())
    })
    .unwrap();
    assert!(Checkpoint::open(tmp.path()).is_err());
}
