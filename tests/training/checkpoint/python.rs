//! What others read and write: the crate `safetensors`, and Python's where it is installed.

use oflow::checkpoint::{Checkpoint, CheckpointManager, CheckpointOptions, ConvertOptions, convert};
use oflow::nn::{Linear, Module};
use oflow::prelude::*;
use oflow::run_ranks;
use safetensors::{SafeTensors, tensor::TensorView};
use std::fs;
use std::path::Path;

/// The bytes of an f32 tensor of a file.
fn f32s(path: &Path, name: &str) -> Vec<f32> {
    let bytes = fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.tensor(name).unwrap().data().chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn checkpoints_become_models_and_models_become_checkpoints() {
    let tmp = tempfile::tempdir().unwrap();
    let at = |name: &str| tmp.path().join(name);
    let values = run_ranks(3, |_| {
        let model = Linear::new(40, 30, (&Placement::all(Device::Cpu)?, sbp![S(1)])).or_else(|_| {
            let mut m = Linear::new(40, 30, (&Placement::all(Device::Cpu)?, sbp![B]))?;
            m.to_global(&Placement::all(Device::Cpu)?, &[("weight", sbp![S(1)])])?;
            Ok::<_, Error>(m)
        })?;
        CheckpointManager::new(at("c"), CheckpointOptions::default()).save(8, &[("model", &model)])?;
        model.weight.to_vec::<f32>()
    })
    .unwrap();
    let (options, one) = (ConvertOptions::default(), at("model.safetensors"));
    let done = convert(&at("c"), &one, &options).unwrap();
    assert_eq!((done.tensors, done.bytes), (2, 4 * (1200 + 30)));
    assert_eq!(f32s(&one, "weight"), values[0]);

    // In several files with an index, then back, then read in yet another layout.
    let parts = ConvertOptions { shard_bytes: 4000, ..options.clone() };
    let done = convert(&at("c"), &at("hf"), &parts).unwrap();
    assert_eq!(done.files.len(), 2);
    assert!(at("hf/model.safetensors.index.json").exists() && at("hf/model-00002-of-00002.safetensors").exists());
    for (source, copy) in [("hf", "from-hf"), ("model.safetensors", "step-000012")] {
        convert(&at(source), &at(copy), &options).unwrap();
        let back = Checkpoint::open(at(copy)).unwrap();
        back.verify().unwrap();
        assert_eq!(back.step(), if copy == "from-hf" { 0 } else { 12 });
        run_ranks(2, |_| {
            let mut model = Linear::new(40, 30, (&Placement::all(Device::Cpu)?, sbp![B]))?;
            Checkpoint::open(at(copy))?.load(&mut [("model", &mut model)])?;
            assert_eq!(model.weight.to_vec::<f32>()?, values[0]);
            // The files as they are, without a section.
            let mut model = Linear::new(40, 30, (&Placement::all(Device::Cpu)?, sbp![B]))?;
            Checkpoint::open(at(source))?.load(&mut [("", &mut model)])?;
            assert_eq!(model.weight.to_vec::<f32>()?, values[0]);
            Ok(())
        })
        .unwrap();
    }
    let refused = |from: &str, to: &str, o: &ConvertOptions| convert(&at(from), &at(to), o).unwrap_err().to_string();
    assert!(refused("c", "hf", &options).contains("hf is there already"));
    let other = ConvertOptions { section: "optimizer".into(), ..options.clone() };
    assert!(refused("c", "x.safetensors", &other).contains("no section 'optimizer'\n  help: its sections are: model"));
    assert!(refused("none", "x", &options).contains("cannot open"));
    assert!(!at("x").exists() && !at("x.part").exists() && !at("x.safetensors.part").exists());
}

#[test]
fn files_of_other_programs_are_read() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("theirs.safetensors");
    let (half, odd) = ([0u8, 60, 0, 192], [1u8, 2, 3]);
    let views = [
        ("half", TensorView::new(safetensors::Dtype::F16, vec![2], &half).unwrap()),
        ("eight", TensorView::new(safetensors::Dtype::F8_E4M3, vec![3], &odd).unwrap()),
        ("odd", TensorView::new(safetensors::Dtype::F8_E8M0, vec![3], &odd).unwrap()),
    ];
    fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
    let saved = Checkpoint::open(&path).unwrap();
    assert_eq!(saved.tensor("half", Device::Cpu).unwrap().to_f64_vec().unwrap(), [1.0, -2.0]);
    let eight = saved.tensor("eight", Device::Cpu).unwrap().to_f64_vec().unwrap();
    assert_eq!(eight, [1.0 / 512.0, 2.0 / 512.0, 3.0 / 512.0]);
    let e = saved.tensor("odd", Device::Cpu).unwrap_err().to_string();
    assert!(e.contains("'odd' was saved as F8_E8M0, which oflow has no dtype for"), "{e}");
    let e = saved.tensor("half", Device::Cpu.dtype(DType::F32)).unwrap_err().to_string();
    assert!(e.contains("'half' was saved as f16, not as f32") && e.contains(".cast(dtype)"), "{e}");
    // An index that leads out of its folder.
    let index = tmp.path().join("model.safetensors.index.json");
    fs::write(&index, "{\"weight_map\": {\"a\": \"../theirs.safetensors\"}}").unwrap();
    assert!(Checkpoint::open(&index).err().unwrap().to_string().contains("not the name of a file beside it"));
}

#[test]
fn global_tensors_become_one_file() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("all.safetensors");
    run_ranks(3, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let (a, b) = (arange(7, (&mesh, sbp![S(0)]))?, ones([2, 2], (&mesh, sbp![B]))?.to_global(sbp![P])?);
        oflow::save_file(&path, &[("b", &b), ("a", &a)])?;
        let all = oflow::load_file(&path, (&mesh, sbp![B]))?;
        assert_eq!(
            all.iter().map(|(n, t)| format!("{n} {}", t.short())).collect::<Vec<_>>(),
            ["a i64[7] [B]", "b f32[2, 2] [B]"]
        );
        assert_eq!(all[1].1.to_vec::<f32>()?, [1.0; 4]);
        let e = oflow::save_file(tmp.path().join("no/where"), &[("a", &a)]).unwrap_err().to_string();
        assert!(e.starts_with("rank 0: cannot write"), "{e}");
        let e = oflow::save_file(&path, &[("a", &a), ("a", &b)]).unwrap_err().to_string();
        assert!(e.contains("two tensors have the name 'a'"), "{e}");
        Ok(())
    })
    .unwrap();
    assert_eq!(f32s(&path, "b"), [1.0; 4]);
}

/// Reads files with nothing but numpy, and with the package `safetensors` where it is there.
const READ: &str = r#"
import json, struct, sys, zlib
import numpy as np
path = sys.argv[1]
raw = open(path, "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8:8 + n])
body = raw[8 + n:]
side = open(path.replace(".safetensors", ".crc32"), "rb").read()
blocks = [body[i:i + 65536] for i in range(0, len(body), 65536)]
assert side == b"".join(struct.pack("<I", zlib.crc32(b)) for b in blocks)
file = json.load(open(path.rsplit("/", 1)[0] + "/manifest.json"))["files"][0]
sums = {"header": 8 + n, "header_crc32": "%08x" % zlib.crc32(raw[:8 + n]), "blocks_crc32": "%08x" % zlib.crc32(side)}
assert file == {"name": "rank-00000.safetensors", "len": len(raw), "sums": sums}, file
found = {}
for k in head:
    if k == "__metadata__":
        continue
    a, b = head[k]["data_offsets"]
    dtype = {"F32": "<f4", "I64": "<i8"}[head[k]["dtype"]]
    found[k] = np.frombuffer(body[a:b], dtype).reshape(head[k]["shape"])
assert found["x.weight"].sum() == 66 and found["x.weight"].shape == (3, 4), found
try:
    from safetensors.numpy import load_file
    assert (load_file(path)["x.weight"] == found["x.weight"]).all()
    print("ok with safetensors")
except ImportError:
    print("ok")
"#;

#[test]
fn python_reads_the_files() {
    let python = std::env::var("OFLOW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let numpy = std::process::Command::new(&python).args(["-c", "import numpy"]).output();
    if !numpy.is_ok_and(|o| o.status.success()) {
        return eprintln!("no Python with numpy here: not tested (OFLOW_TEST_PYTHON names one)");
    }
    let tmp = tempfile::tempdir().unwrap();
    run_ranks(1, |_| {
        let mut m = CheckpointManager::new(tmp.path(), CheckpointOptions::default());
        let weight = arange(12, (&Placement::all(Device::Cpu)?, sbp![B]))?.reshape([3, 4])?.cast(DType::F32)?;
        m.save(1, &[("x", &Linear { weight, bias: None })])
    })
    .unwrap();
    let file = tmp.path().join("step-000001/rank-00000.safetensors");
    let out = std::process::Command::new(&python).args(["-c", READ]).arg(file).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(String::from_utf8_lossy(&out.stdout).starts_with("ok"));
}
