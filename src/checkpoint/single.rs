//! One safetensors file of tensors, for exchange with other programs.

use super::file::header;
use super::folder::{io_error, sync_name};
use super::meet::Agreement;
use super::saved::{Checkpoint, is_index};
use crate::context::{current, no_grad};
use crate::error::{CallSite, Error, Result};
use crate::functional::IntoTarget;
use crate::interpreter::logical_bytes;
use crate::tensor::Tensor;
use oflow_files::Access;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes tensors to one `.safetensors` file, which Python's `safetensors` and Hugging Face's libraries read. If any tensor is
/// global, the call is a collective of the world: rank 0 writes, and all ranks return its error. A failed call leaves no
/// partial file.
///
/// ```
/// use oflow::prelude::*;
/// # let tmp = tempfile::tempdir()?;
/// # let path = tmp.path().join("model.safetensors");
/// let w = arange(6, Device::Cpu)?;
/// oflow::save_file(&path, &[("w", &w)])?;
/// let all = oflow::load_file(&path, Device::Cpu)?;
/// assert_eq!(all[0].0, "w");
/// assert_eq!(all[0].1.to_vec::<i64>()?, [0, 1, 2, 3, 4, 5]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// If two tensors have the same name, if a tensor has the name `__metadata__`, which the format keeps for itself, if the path ends in
/// `.index.json` and would be read as an index, or if the file cannot be written. Other names may be any text.
#[track_caller]
pub fn save_file(path: impl AsRef<Path>, tensors: &[(&str, &Tensor)]) -> Result<()> {
    let (site, ctx, _quiet) = (CallSite::here(), current(), no_grad());
    ctx.not_dry("save tensors").map_err(|e| e.at(site))?;
    if is_index(path.as_ref()) {
        let shown = path.as_ref().display();
        return Err(Error::argument(format!(
            "{shown} has the name of an index of files, so it would not be read as a file of tensors"
        ))
        .help("give the file a name that does not end in .index.json")
        .at(site));
    }
    let mut tensors = tensors.to_vec();
    // Large items first: all are aligned.
    tensors.sort_by_key(|(_, t)| std::cmp::Reverse(t.dtype().size()));
    let head = header(tensors.iter().map(|(n, t)| (*n, t.dtype(), t.shape())), &[("format", "pt".to_string())])
        .map_err(|e| e.at(site))?;
    let together = tensors.iter().any(|(_, t)| t.is_global());
    let mut out = if !together || ctx.rank() == 0 { Some(Output::new(path.as_ref())) } else { None };
    if let Some(out) = &mut out {
        out.write(&head);
    }
    for (_, t) in &tensors {
        // The others take part though they write nothing, and though writing may have failed.
        let bytes = logical_bytes(t, site).map_err(|e| e.at(site))?;
        if let Some(out) = &mut out {
            out.write(&bytes);
        }
    }
    let outcome = out.map_or(Ok(()), Output::finish);
    match together {
        true => Agreement::here(&ctx, site).agree("save_file", outcome.map(|()| String::new())).map(drop),
        false => outcome,
    }
    .map_err(|e| e.at(site))
}

/// Returns all tensors of a `.safetensors` file, the folder of a model, or a checkpoint, with their names. `target` is a device,
/// or a layout of which each rank reads its part.
///
/// # Errors
/// If it cannot be read, or if a tensor cannot have the layout.
#[track_caller]
pub fn load_file(path: impl AsRef<Path>, target: impl IntoTarget) -> Result<Vec<(String, Tensor)>> {
    let (site, target) = (CallSite::here(), target.into_target());
    let saved = Checkpoint::open(path).map_err(|e| e.at(site))?;
    saved.tensors().keys().map(|n| Ok((n.clone(), saved.tensor_at(n, &target, site)?))).collect()
}

/// A file that gets its name when it is whole. After an error it takes no more.
pub(super) struct Output {
    path: PathBuf,
    part: PathBuf,
    file: Result<File>,
}

impl Output {
    /// Makes a file that gets the name `path` when it is finished.
    pub fn new(path: &Path) -> Output {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        // What an interrupted call left, or a link that somebody put there.
        let _may_not_be_there = std::fs::remove_file(&part);
        let file = oflow_files::create(&part, Access::Readable);
        Output { path: path.to_path_buf(), part, file }
    }
    /// Adds bytes at the end of the file.
    pub fn write(&mut self, bytes: &[u8]) {
        if let Ok(f) = &mut self.file
            && let Err(e) = f.write_all(bytes)
        {
            self.file = Err(io_error(format!("cannot write {}", self.path.display()), e));
        }
    }
    /// Removes the file.
    pub fn abandon(self) {
        drop(self.file);
        let _may_not_be_there = std::fs::remove_file(&self.part);
    }
    /// Makes the file durable and renames it to its name.
    ///
    /// # Errors
    /// The first error of a write; the file is then removed.
    pub fn finish(self) -> Result<()> {
        let outcome = self.file.and_then(|f| {
            let named = f.sync_all().and_then(|()| std::fs::rename(&self.part, &self.path));
            named.map_err(|e| io_error(format!("cannot write {}", self.path.display()), e))?;
            sync_name(&self.path)
        });
        if outcome.is_err() {
            let _may_not_be_there = std::fs::remove_file(&self.part);
        }
        outcome
    }
}
