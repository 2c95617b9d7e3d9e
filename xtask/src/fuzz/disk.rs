//! Files that a crash, a full disk or somebody else may have left, read as the programs read them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use oflaunch::{model as calibration, postmortem};
use oflow::boxing::{Layout, Model, Planner};
use oflow::checkpoint::{Checkpoint, CheckpointManager, CheckpointOptions, MANIFEST, Manifest};
use oflow::control::flight::fuzz as rings;
use oflow::graph::saved::fuzz::{content, sealed};
use oflow::graph::{Graph, GraphBuilder, GraphOptions};
use oflow::nn::Linear;
use oflow::prelude::*;
use oflow::state::notation;
use tempfile::TempDir;

use super::targets::Taken;

/// Where a target's files are.
pub struct Folder(TempDir);

impl Folder {
    /// A new one, in memory where there is such a file system.
    pub fn new() -> Result<Folder, String> {
        let memory = Path::new("/dev/shm");
        let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        made.map(Folder).map_err(|e| e.to_string())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        let path = self.path(name);
        std::fs::write(&path, bytes).map_err(|e| e.to_string())?;
        Ok(path)
    }

    fn page(&self, how: u8) -> bool {
        postmortem::page(&[&self.0.path().to_path_buf()], 8, how & 1 == 0).is_ok()
    }
}

/// `oflow postmortem` over the memory file of a rank.
pub fn ring(folder: &Folder, input: &[u8]) -> Taken {
    let file = File::create(folder.path("flight-1.ring")).map_err(|e| e.to_string())?;
    rings::write(input, &file).map_err(|e| e.to_string())?;
    Ok(folder.page(input.first().map_or(0, |b| *b)))
}

/// Valid memory files of flight recorders.
pub fn rings(folder: &Folder) -> Result<Vec<Vec<u8>>, String> {
    let path = folder.path("ring");
    let file = File::options().read(true).write(true).create_new(true).open(&path).map_err(|e| e.to_string())?;
    let input = rings::recorded(&file).map_err(|e| e.to_string())?;
    std::fs::remove_file(path).map_err(|e| e.to_string())?;
    Ok(vec![input])
}

/// `oflow postmortem` over records as JSON: two ranks' and events, each after a line.
pub fn flight(folder: &Folder, input: &[u8]) -> Taken {
    let mut parts = input.splitn(3, |b| *b == b'\n').map(<[u8]>::to_vec);
    for name in ["flight-0.json", "flight-1.json", "events.jsonl"] {
        folder.write(name, &parts.next().unwrap_or_default())?;
    }
    Ok(folder.page(input.len() as u8))
}

/// Valid records of flight recorders.
pub fn flights(_: &Folder) -> Result<Vec<Vec<u8>>, String> {
    let record = |rank: usize, hash: u64| {
        format!(
            r#"{{"rank":{rank},"world":3,"pid":7,"issued":2,"ops":[{{"ordinal":1,"hash":5,"op":"relu","call":"relu(f32[3])","file":"t.rs","line":4,"time":1.5}},{{"ordinal":2,"hash":{hash},"op":"add","file":"t.rs","line":5,"time":2.5}}],"calls":[{{"number":1,"ordinal":2,"kind":"all_reduce","op":"add","file":"t.rs","line":5,"members":3,"ranks":[0,1,2],"start":2.6,"end":null,"failed":false}}]}}"#
        )
    };
    let events = r#"{"time":1.0,"event":"failure","rank":1,"message":"rank 1 stalls","kind":"stalled","places":[]}"#;
    let all = |hash: u64| format!("{}\n{}\n{events}\n{events}\n", record(0, 6), record(1, hash)).into_bytes();
    Ok(vec![all(6), all(7)])
}

/// A manifest: first byte odd, its checksum is made right first. What is read can be written and read again.
pub fn manifest(folder: &Folder, input: &[u8]) -> Taken {
    let Some((&how, bytes)) = input.split_first() else { return Ok(false) };
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    if how & 1 != 0
        && let Ok(m) = serde_json::from_str::<Manifest>(&text)
    {
        text = m.to_text().map_err(|e| e.to_string())?;
    }
    let path = folder.write(MANIFEST, text.as_bytes())?;
    let parsed = Manifest::parse(&text, &path);
    let opened = Checkpoint::open(folder.0.path());
    if let Ok(m) = &parsed {
        let again = m.to_text().and_then(|text| Manifest::parse(&text, &path)).map_err(|e| e.to_string())?;
        if format!("{again:?}") != format!("{m:?}") {
            return Err(format!("{m:?} is written and read as {again:?}"));
        }
    }
    read_all(opened)
}

/// A plain value, in its notation. What is read can be written and read again.
pub fn plain(input: &[u8]) -> Taken {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(input) else { return Ok(false) };
    let shallow = notation::check_depth(&value).is_ok();
    if let Ok(json) = notation::to_json(&value)
        && notation::write(&json).is_ok_and(|v| notation::to_json(&v).ok().as_ref() != Some(&json))
    {
        return Err(format!("{value} is the JSON {json}, which is not read back"));
    }
    macro_rules! as_types {
        ($($kind:ty),*) => {{
            let mut taken = false;
            $(if let Ok(read) = notation::read::<$kind>(&value)
                && shallow
                // Pairs take more levels than the objects that they may have been.
                && let Ok(written) = notation::write(&read)
            {
                let again = notation::read::<$kind>(&written).map_err(|e| format!("{value} as {written}: {e}"))?;
                if format!("{again:?}") != format!("{read:?}") {
                    return Err(format!("{value} is {read:?}, and then {again:?}"));
                }
                taken = true;
            })*
            Ok(taken)
        }};
    }
    as_types!(
        serde_json::Value, f64, i128, u128, Vec<u8>, Option<Option<bool>>, BTreeMap<i64, Vec<f32>>,
        BTreeMap<String, Option<(f64, i128)>>
    )
}

/// Values in notations of every kind.
pub fn plains() -> Vec<Vec<u8>> {
    [
        r#"{"a":[1.5,-2,"x"],"b":[true,null]}"#,
        r#"{"$float":"7ff8000000000001"}"#,
        r#"{"$int":"-0x400000000000000000"}"#,
        r#"{"$bytes":"00ff"}"#,
        r#"{"$dict":[[1,[{"$float":"-inf"},0.5]],[-7,[]]]}"#,
        r#"{"x":{"$tuple":[{"$float":"nan"},{"$int":"0x10000000000000000"}]},"y":null}"#,
        r#"{"$some":{"$some":true}}"#,
    ]
    .map(|s| s.as_bytes().to_vec())
    .into()
}

/// Manifests of a checkpoint, whose files are there.
pub fn manifests(folder: &Folder) -> Result<Vec<Vec<u8>>, String> {
    let signed = checkpoint(folder)?;
    let text = signed.replace("\n", "");
    let bare = text.split_once(",\"crc32\":").map_or("", |(all, _)| all);
    Ok(vec![[&[1][..], bare.as_bytes(), b"}"].concat(), [&[0][..], signed.as_bytes()].concat()])
}

/// Writes the files of a checkpoint; returns the text of its manifest.
fn checkpoint(folder: &Folder) -> Result<String, String> {
    let file = safetensors_file(folder, "rank-00000.safetensors")?;
    let at = file.len() - 48;
    let crc = |b: &[u8]| format!("{:08x}", crc32fast::hash(b));
    // One block.
    let side = crc32fast::hash(&file[at..]).to_le_bytes();
    folder.write(SIDE, &side)?;
    let piece = |from: usize, to: usize, offset: usize, size: usize| {
        format!(r#"{{"file":0,"bytes":[{},{}],"offset":[{offset},0],"size":[{size},2]}}"#, at + from, at + to)
    };
    let text = format!(
        r#"{{"version":3,"oflow":"0.1.0","world":2,"step":7,"files":[{{"name":"rank-00000.safetensors","len":{},"sums":{{"header":{at},"header_crc32":"{}","blocks_crc32":"{}"}}}}],"tensors":{{"w":{{"dtype":"F32","shape":[5,2],"layout":"[S(0)]","pieces":[{},{}]}}}},"values":{{"lr":0.5,"best":{{"$float":"inf"}}}},"generator":{{"seed":1,"ordinal":2}},"local_generators":[]}}"#,
        file.len(),
        crc(&file[..at]),
        crc(&side),
        piece(8, 32, 0, 3),
        piece(32, 48, 3, 2),
    );
    let manifest: Manifest = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    manifest.to_text().map_err(|e| e.to_string())
}

const SIDE: &str = "rank-00000.crc32";

/// The side file of a checkpoint: first byte odd, the manifest has its checksum. Data is only read if it has its checksum.
pub fn side(folder: &Folder, input: &[u8]) -> Taken {
    let Some((&how, bytes)) = input.split_first() else { return Ok(false) };
    let intact = std::fs::read(folder.path("whole")).map_err(|e| e.to_string())?;
    folder.write(SIDE, bytes)?;
    let mut manifest: Manifest = std::fs::read(folder.path("manifest"))
        .map_err(|e| e.to_string())
        .and_then(|text| serde_json::from_slice(&text).map_err(|e| e.to_string()))?;
    if how & 1 != 0 {
        let sums = manifest.files.iter_mut().filter_map(|f| f.sums.as_mut());
        sums.for_each(|s| s.blocks_crc32 = format!("{:08x}", crc32fast::hash(bytes)));
    }
    folder.write(MANIFEST, manifest.to_text().map_err(|e| e.to_string())?.as_bytes())?;
    let taken = read_all(Checkpoint::open(folder.0.path()))?;
    if taken && bytes != intact {
        return Err("data with other checksums was read".into());
    }
    Ok(taken)
}

/// Side files, and a checkpoint that they belong to.
pub fn sides(folder: &Folder) -> Result<Vec<Vec<u8>>, String> {
    let text = checkpoint(folder)?;
    folder.write("manifest", text.as_bytes())?;
    let whole = std::fs::read(folder.path(SIDE)).map_err(|e| e.to_string())?;
    folder.write("whole", &whole)?;
    Ok(vec![[&[0][..], &whole].concat(), [&[1][..], &whole].concat()])
}

/// The pointer to the latest checkpoint, and whether its text is the one that was written.
pub fn latest(folder: &Folder, input: &[u8]) -> Taken {
    folder.write("latest", input)?;
    let whole = std::fs::read(folder.path("whole")).map_err(|e| e.to_string())?;
    match oflow::checkpoint::latest(folder.0.path()) {
        Ok(found) if input == whole => Ok(found.is_some_and(|f| f.step == 7)),
        Ok(found) => Err(format!("it was read as {found:?}")),
        Err(_) => Ok(false),
    }
}

/// Pointers, and the checkpoint that they name.
pub fn pointers(folder: &Folder) -> Result<Vec<Vec<u8>>, String> {
    let saved = || -> oflow::Result<()> {
        let mut manager = CheckpointManager::new(folder.0.path(), CheckpointOptions::default());
        manager.save(7, &[("lr", &serde_json::json!(0.5))])
    };
    saved().map_err(|e| e.to_string())?;
    let whole = std::fs::read(folder.path("latest")).map_err(|e| e.to_string())?;
    folder.write("whole", &whole)?;
    Ok(vec![whole])
}

/// Reads all that a checkpoint holds, on the CPU.
fn read_all(opened: oflow::Result<Checkpoint>) -> Taken {
    let Ok(saved) = opened else { return Ok(false) };
    let mut whole = saved.verify().is_ok();
    for (name, t) in saved.tensors() {
        // A manifest may speak of more than a test can hold: what files hold of it is bounded by their length.
        whole &= t.bytes() < 1 << 20 && saved.tensor(name, Device::Cpu).is_ok();
    }
    Ok(whole)
}

/// A file of any origin.
pub fn safetensors(folder: &Folder, input: &[u8]) -> Taken {
    let path = folder.write("model.safetensors", input)?;
    read_all(Checkpoint::open(path))
}

/// Files as oflow and others write them.
pub fn safetensors_files(folder: &Folder) -> Result<Vec<Vec<u8>>, String> {
    let other = |header: &str, bytes: usize| {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![1; bytes]].concat()
    };
    Ok(vec![
        safetensors_file(folder, "sample.safetensors")?,
        other(r#"{"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}"#, 12),
        other(r#"{"__metadata__":{"format":"pt"},"e":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]}}"#, 0),
    ])
}

fn safetensors_file(folder: &Folder, name: &str) -> Result<Vec<u8>, String> {
    let path = folder.path(name);
    let saved = || -> oflow::Result<()> {
        let w = arange(10, Device::Cpu)?.cast(DType::F32)?.reshape([5, 2])?;
        let step = arange(1, Device::Cpu)?;
        oflow::save_file(&path, &[("w", &w), ("step", &step)])
    };
    saved().map_err(|e| e.to_string())?;
    std::fs::read(path).map_err(|e| e.to_string())
}

/// The index of a model in two files.
pub fn index(folder: &Folder, input: &[u8]) -> Taken {
    let path = folder.write("model.safetensors.index.json", input)?;
    read_all(Checkpoint::open(path))
}

/// Indices, and the files that they speak of.
pub fn indices(folder: &Folder) -> Result<Vec<Vec<u8>>, String> {
    let other = r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;
    safetensors_file(folder, "model-1.safetensors")?;
    folder.write(
        "model-2.safetensors",
        &[&(other.len() as u64).to_le_bytes()[..], other.as_bytes(), &[1, 2, 3, 4]].concat(),
    )?;
    let map = r#"{"w":"model-1.safetensors","step":"model-1.safetensors","a":"model-2.safetensors"}"#;
    Ok(vec![format!(r#"{{"metadata":{{"total_size":52}},"weight_map":{map}}}"#).into_bytes()])
}

/// A file of `oflow calibrate`, and boxings planned under it.
pub fn model(folder: &Folder, input: &[u8]) -> Taken {
    let path = folder.write("model.json", input)?;
    let Ok(read) = calibration::read(&path) else { return Ok(false) };
    let _as_ranks_get_it = read.to_ranks(Some(1 << 20));
    for ranks_per_host in [0, 2] {
        let planner = Planner::new(Model { hosts: ranks_per_host.into(), ..read.model() });
        plans(&planner).map_err(|e| e.to_string())?;
    }
    // As it was written: the number of ranks on a host too.
    plans(&Planner::new(read.model())).map_err(|e| e.to_string())?;
    Ok(true)
}

fn plans(planner: &Planner) -> oflow::Result<()> {
    let mesh = Placement::of_world(Device::Cpu, 4)?.mesh(&[("dp", 2), ("tp", 2)])?;
    for (from, to) in [(sbp![S(0), S(0)], sbp![B, B]), (sbp![P, S(0)], sbp![S(1), B]), (sbp![B, B], sbp![S(1), P])] {
        let plan = planner.plan(&[64, 48], DType::F32, &Layout::new(&mesh, from), &Layout::new(&mesh, to))?;
        let _as_people_see_it = plan.to_string();
    }
    Ok(())
}

/// Valid calibrations of hosts.
pub fn models(_: &Folder) -> Result<Vec<Vec<u8>>, String> {
    let plain = calibration::Calibration::of_this_host(Model::default(), 2, 2).to_json().into_bytes();
    let full = Model {
        extra_copied_beyond_kib: 64,
        extra_per_kib_copied_ps: 9,
        extra_memory: Some(1 << 20),
        ..Model::default()
    };
    Ok(vec![plain, calibration::Calibration::of_this_host(full, 2, 2).to_json().into_bytes()])
}

/// The module that the saved graph below names.
fn weight() -> oflow::Result<Linear> {
    Linear::new(3, 2, Device::Cpu)
}

/// The content of a saved graph, sealed with its hash, and loaded by a program that has what it names.
pub fn graph(folder: &Folder, input: &[u8]) -> Taken {
    let path = folder.write("rank0.graph", &sealed(input))?;
    let mut w = weight().map_err(|e| e.to_string())?;
    let folder = path.parent().unwrap_or(&path);
    Ok(Graph::<Vec<Tensor>>::load(folder, &mut [("w", &mut w)]).is_ok())
}

/// Contents of saved graphs.
pub fn graphs(folder: &Folder) -> Result<Vec<Vec<u8>>, String> {
    let write = || -> oflow::Result<()> {
        let (w, x) = (weight()?, ones([2, 3], Device::Cpu)?);
        let scale = from_vec(vec![2.0f32, 3.0], [2], Device::Cpu)?;
        let step = |g: &GraphBuilder<'_>| {
            let y = w.forward(&g.input("x", &x)?)?.mul(&scale)?.exp()?;
            g.name("y", &y)?;
            y.sum(())
        };
        Graph::build(step, GraphOptions::default())?.save(folder.path(""), &[("w", &w)])
    };
    write().map_err(|e| e.to_string())?;
    let file = std::fs::read(folder.path("rank0.graph")).map_err(|e| e.to_string())?;
    Ok(vec![content(&file)])
}
