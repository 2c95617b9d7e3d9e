//! Checkpoints to safetensors files in the layout of Hugging Face, and back, a few MiB at a time.

use super::file::{dtype_name, header};
use super::folder::{self, io_error};
use super::manifest::{Manifest, SavedPiece, SavedTensor, VERSION};
use super::saved::{Checkpoint, INDEX, check_sections};
use super::single::Output;
use super::sums::{BlockSums, Written, side_name};
use super::write::file_name;
use crate::error::{Error, Result};
use oflow_files::Access;
use oflow_kernels::{DType, ShardBox};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Bytes that are read and written at once.
const CHUNK: usize = 8 << 20;

/// Options of [`convert`].
#[derive(Clone, Debug)]
pub struct ConvertOptions {
    /// Section of the checkpoint. Its prefix is removed from names, or added to them. Empty: all tensors with unchanged names.
    pub section: String,
    /// Largest size of a file in bytes, if the destination is a folder.
    pub shard_bytes: u64,
}

impl Default for ConvertOptions {
    fn default() -> ConvertOptions {
        ConvertOptions { section: "model".into(), shard_bytes: 5 << 30 }
    }
}

/// The result of [`convert`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Number of tensors written.
    pub tensors: usize,
    /// Number of bytes of the tensors.
    pub bytes: u64,
    /// The files with tensors.
    pub files: Vec<PathBuf>,
}

/// A tensor on its way: its name in the source and in the destination.
struct Item<'a> {
    from: &'a str,
    to: String,
    shape: &'a [usize],
    dtype: DType,
}

impl Item<'_> {
    fn bytes(&self) -> u64 {
        self.shape.iter().product::<usize>() as u64 * self.dtype.size() as u64
    }
}

fn bytes_of(items: &[Item<'_>]) -> u64 {
    items.iter().map(Item::bytes).sum()
}

/// Converts between checkpoints and safetensors files. A destination that ends in `.safetensors` is one file. Any other is a
/// folder that must not exist: a checkpoint is converted to a model (`model.safetensors.index.json` and its files), files are
/// converted to a checkpoint.
///
/// # Errors
/// If the source cannot be read or has no such section, or if the destination cannot be written. No partial destination
/// remains.
pub fn convert(from: &Path, to: &Path, options: &ConvertOptions) -> Result<Converted> {
    let saved = Checkpoint::open(from)?;
    let ours = saved.manifest().version != 0;
    // Without a slash at its end: the name of the part is made of it.
    let to: PathBuf = to.components().collect();
    let to = to.as_path();
    if to.extension().is_some_and(|e| e == "safetensors") {
        let items = outgoing(&saved, options, ours)?;
        write_file(&saved, &items, to, &[("format", "pt".into())])?;
        return Ok(Converted { tensors: items.len(), bytes: bytes_of(&items), files: vec![to.into()] });
    }
    if to.exists() {
        return Err(Error::argument(format!("{} is there already", to.display()))
            .help("name a folder that does not exist, or a file that ends in .safetensors"));
    }
    // Everything under another name first.
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    if let Some(parent) = part.parent() {
        oflow_files::folders(parent, Access::Readable)?;
    }
    // What an earlier conversion left when it was killed is not mixed with this one.
    oflow_files::folder(&part, Access::Readable)
        .map_err(|e| e.help("if an interrupted conversion has left it, remove it"))?;
    let make = || -> Result<Converted> {
        let done = if ours { to_model(&saved, &part, options)? } else { to_checkpoint(&saved, &part, to, options)? };
        folder::sync_dir(&part)?;
        std::fs::rename(&part, to).map_err(|e| io_error(format!("cannot make {}", to.display()), e))?;
        folder::sync_name(to)?;
        Ok(Converted { files: done.files.iter().filter_map(|f| Some(to.join(f.file_name()?))).collect(), ..done })
    };
    let outcome = make();
    if outcome.is_err() {
        let _may_not_be_there = std::fs::remove_dir_all(&part);
    }
    outcome
}

/// Items that a conversion writes, large ones first, then by name.
fn outgoing<'a>(saved: &'a Checkpoint, options: &ConvertOptions, ours: bool) -> Result<Vec<Item<'a>>> {
    let prefix = if ours && !options.section.is_empty() { format!("{}.", options.section) } else { String::new() };
    let mut items = vec![];
    for name in saved.tensors().keys() {
        let Some(to) = name.strip_prefix(&prefix) else { continue };
        let (t, dtype) = saved.find(name)?;
        items.push(Item { from: name, to: to.to_string(), shape: &t.shape, dtype });
    }
    if items.is_empty() && !prefix.is_empty() {
        let sections: std::collections::BTreeSet<&str> =
            saved.tensors().keys().filter_map(|n| Some(n.split_once('.')?.0)).collect();
        return Err(Error::argument(format!("{} has no section '{}'", saved.path().display(), options.section))
            .help(format!("its sections are: {}", sections.into_iter().collect::<Vec<_>>().join(", "))));
    }
    items.sort_by_key(|i| std::cmp::Reverse(i.dtype.size()));
    Ok(items)
}

/// Writes one file. Returns its header and the checksums of its blocks.
fn write_file(
    saved: &Checkpoint,
    items: &[Item<'_>],
    path: &Path,
    metadata: &[(&str, String)],
) -> Result<(Vec<u8>, Vec<u8>)> {
    let head = header(items.iter().map(|i| (i.to.as_str(), i.dtype, i.shape)), metadata)?;
    let mut out = Output::new(path);
    out.write(&head);
    let mut sums = BlockSums::default();
    let copied = items.iter().try_for_each(|i| {
        stream(saved, i, &mut |bytes| {
            sums.update(bytes);
            out.write(bytes);
        })
    });
    match copied {
        Ok(()) => out.finish().map(|()| (head, sums.finish())),
        Err(e) => {
            out.abandon();
            Err(e)
        }
    }
}

/// A tensor's bytes, some rows at a time.
fn stream(saved: &Checkpoint, item: &Item<'_>, sink: &mut dyn FnMut(&[u8])) -> Result<()> {
    let whole = ShardBox::whole(item.shape);
    let elements: usize = item.shape.iter().product();
    let step = (CHUNK / item.dtype.size()).max(1);
    let mut buffer = vec![];
    for from in (0..elements).step_by(step) {
        for b in super::plan::boxes_of_run(&whole, from..(from + step).min(elements)) {
            buffer.resize(super::plan::volume(&b) * item.dtype.size(), 0);
            saved.bytes(item.from, &b, &mut buffer)?;
            sink(&buffer);
        }
    }
    Ok(())
}

fn to_model(saved: &Checkpoint, dir: &Path, options: &ConvertOptions) -> Result<Converted> {
    let items = outgoing(saved, options, true)?;
    // In order, a new file where the next tensor would make one too large.
    let mut shards: Vec<Vec<Item<'_>>> = vec![];
    let mut room = 0u64;
    for i in items {
        match shards.last_mut() {
            Some(last) if i.bytes() <= room => {
                room -= i.bytes();
                last.push(i);
            }
            _ => {
                room = options.shard_bytes.saturating_sub(i.bytes());
                shards.push(vec![i]);
            }
        }
    }
    let (mut map, mut total, mut files) = (BTreeMap::new(), 0, vec![]);
    for (n, shard) in shards.iter().enumerate() {
        let name = format!("model-{:05}-of-{:05}.safetensors", n + 1, shards.len());
        write_file(saved, shard, &dir.join(&name), &[("format", "pt".into())])?;
        for i in shard {
            map.insert(i.to.clone(), name.clone());
            total += i.bytes();
        }
        files.push(dir.join(name));
    }
    let tensors = map.len();
    let index = json!({ "metadata": { "total_size": total }, "weight_map": map });
    folder::write_new(&dir.join(INDEX), format!("{index:#}\n"))?;
    Ok(Converted { tensors, bytes: total, files })
}

fn to_checkpoint(saved: &Checkpoint, dir: &Path, to: &Path, options: &ConvertOptions) -> Result<Converted> {
    check_sections(&[&options.section])?;
    let mut items = outgoing(saved, options, false)?;
    if !options.section.is_empty() {
        items.iter_mut().for_each(|i| i.to = format!("{}.{}", options.section, i.to));
    }
    let (name, bytes) = (file_name(0), bytes_of(&items));
    let path = dir.join(&name);
    let (head, side) = write_file(saved, &items, &path, &[("format", "pt".into())])?;
    folder::write_new(&dir.join(side_name(&name)), &side)?;
    let mut m = Manifest {
        version: VERSION,
        oflow: env!("CARGO_PKG_VERSION").into(),
        world: 1,
        step: to.file_name().and_then(|n| folder::step_of(n.to_str()?)).unwrap_or(0),
        files: vec![Written::new(&head, bytes, &side).saved(name)],
        ..Manifest::default()
    };
    let mut at = head.len() as u64;
    for i in &items {
        let end = at + i.bytes();
        let piece = SavedPiece { file: 0, bytes: (at, end), offset: vec![0; i.shape.len()], size: i.shape.to_vec() };
        let pieces = if at == end { vec![] } else { vec![piece] };
        at = end;
        let (dtype, shape) = (dtype_name(i.dtype).to_string(), i.shape.to_vec());
        m.tensors.insert(i.to.clone(), SavedTensor { dtype, shape, layout: String::new(), pieces });
    }
    m.check().map_err(Error::storage)?;
    folder::complete(dir, &m)?;
    Ok(Converted { tensors: items.len(), bytes, files: vec![path] })
}
