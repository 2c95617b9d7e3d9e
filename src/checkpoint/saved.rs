//! A saved checkpoint, and loading from it.

use super::access::{self, ANOTHER};
use super::file::read_header;
use super::folder::{self, latest};
use super::lock;
use super::manifest::{MANIFEST, Manifest, SavedFile, SavedPiece, SavedTensor, is_plain, unique};
use super::meet::Agreement;
use super::read::{Fault, Files};
use crate::context::{RankCtx, current, no_grad};
use crate::error::{CallSite, Error, Result};
use crate::functional::IntoTarget;
use crate::interpreter::{Target, from_bytes};
use crate::ops::TensorType;
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp, check_layout, shard_box};
use crate::state::{LoadState, Stateful};
use crate::tensor::{Tensor, intern_global};
use oflow_kernels::{DType, ShardBox};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The index of a model in several files, as Hugging Face writes it.
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// Most bytes of an index that are read.
const LONGEST_INDEX: u64 = 1 << 28;

/// Options of [`Checkpoint::load_with`].
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// Whether missing and unused names are errors.
    pub strict: bool,
    /// Whether floats that were saved with another dtype, as bf16 for a tensor of f32, are converted. Without it they are errors.
    pub cast: bool,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions { strict: true, cast: false }
    }
}

/// Names that were not loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Names of the state that the checkpoint lacks.
    pub missing: Vec<String>,
    /// Names in the loaded sections of the checkpoint that the state does not use.
    pub unexpected: Vec<String>,
}

/// A checkpoint on disk: written by oflow, or safetensors files of other programs.
///
/// ```
/// use oflow::checkpoint::Checkpoint;
/// use oflow::nn::Linear;
/// use oflow::prelude::*;
/// # let tmp = tempfile::tempdir()?;
/// # let path = tmp.path().join("model.safetensors");
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?;
/// let w = randn([4, 3], (&mesh, sbp![S(0)]))?;
/// oflow::save_file(&path, &[("weight", &w)])?;
///
/// let saved = Checkpoint::open(&path)?;
/// assert_eq!(saved.tensors()["weight"].shape, [4, 3]);
/// // In another layout, reading only what each rank needs of it.
/// let v = saved.tensor("weight", (&mesh, sbp![S(1)]))?;
/// assert_eq!(v.to_vec::<f32>()?, w.to_vec::<f32>()?);
/// // Into a module whose parameters have these names.
/// let mut fc = Linear::without_bias(3, 4, (&mesh, sbp![B]))?;
/// saved.load(&mut [("", &mut fc)])?;
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct Checkpoint {
    path: PathBuf,
    manifest: Manifest,
    files: Files,
    /// Keeps it from being removed.
    _reading: Option<File>,
}

impl Checkpoint {
    /// Opens the folder of a checkpoint, or of a manager (then its latest one), a `.safetensors` file, or a folder with
    /// `model.safetensors` or `model.safetensors.index.json`.
    ///
    /// # Errors
    /// If none of these exists, or if a file is damaged or truncated.
    pub fn open(path: impl AsRef<Path>) -> Result<Checkpoint> {
        let path = path.as_ref();
        let open = |manifest: Manifest, dir: &Path, reading: Option<File>| {
            let files = Files::new(dir, &manifest);
            files.check()?;
            Ok(Checkpoint { path: path.to_path_buf(), manifest, files, _reading: reading })
        };
        let parent = path.parent().unwrap_or(Path::new(""));
        if path.is_dir() {
            let manifest = path.join(MANIFEST);
            // Whatever it is: a manifest that is not a regular file is an error.
            if manifest.symlink_metadata().is_ok() {
                let reading = lock::reading(path)?;
                let read = Manifest::read(&manifest)?;
                check_step(path, &read)?;
                return open(read, path, reading);
            }
            for name in [INDEX, "model.safetensors"] {
                if path.join(name).is_file() {
                    return Checkpoint::open(path.join(name));
                }
            }
            return Checkpoint::open_latest(path);
        }
        match path.file_name() {
            Some(_) if is_index(path) => open(from_index(path)?, parent, None),
            // The name need not be text.
            Some(name) => {
                let manifest = from_files(parent, &[name])?;
                let files = Files::named(parent, &manifest, &[name]);
                files.check()?;
                Ok(Checkpoint { path: path.to_path_buf(), manifest, files, _reading: None })
            }
            None => Err(Error::storage(format!("{} is neither a file nor a folder", path.display()))),
        }
    }

    /// Opens the latest checkpoint. If another job removes it meanwhile, a newer one exists and is opened.
    fn open_latest(dir: &Path) -> Result<Checkpoint> {
        let none = || {
            Error::storage(format!("{} has no checkpoint", dir.display()))
                .help("an incomplete checkpoint has no manifest.json and cannot be used")
        };
        let mut found = latest(dir)?.ok_or_else(none)?;
        loop {
            match (Checkpoint::open(&found.path), latest(dir)?) {
                (Err(_), Some(newer)) if newer != found => found = newer,
                (opened, _) => return opened,
            }
        }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Returns the step of the checkpoint; 0 for files of other programs.
    pub fn step(&self) -> u64 {
        self.manifest.step
    }
    /// Returns the number of ranks that wrote it.
    pub fn world(&self) -> usize {
        self.manifest.world
    }
    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
    /// Returns its tensors by name.
    pub fn tensors(&self) -> &BTreeMap<String, SavedTensor> {
        &self.manifest.tensors
    }
    /// Returns its plain values by name, in the [`notation`](crate::state::notation).
    pub fn values(&self) -> &BTreeMap<String, Value> {
        &self.manifest.values
    }
    /// Returns one plain value, by its full name (`section.name`).
    ///
    /// # Errors
    /// If there is no value of that name, or if it has another type.
    pub fn value<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let mut from = LoadState::new([], &self.manifest.values);
        from.value(name)?.ok_or_else(|| {
            Error::argument(format!("{} has no value '{name}'", self.path.display()))
                .help(format!("it has {}", listed(self.manifest.values.keys())))
        })
    }

    /// Loads sections into `state`. The names of the state and of the checkpoint's sections must be equal. Tensors are filled in
    /// place and keep their layouts. A collective of the world.
    ///
    /// # Errors
    /// If names, shapes or dtypes differ; no tensor is changed. If any rank cannot read its bytes or finds them damaged; the
    /// error is raised on all ranks, and the tensors have undefined values.
    #[track_caller]
    pub fn load(&self, state: &mut [(&str, &mut dyn Stateful)]) -> Result<()> {
        self.load_at(state, LoadOptions::default(), CallSite::here()).map(drop)
    }

    /// [`Checkpoint::load`] with options. With `strict: false` it loads matching names and returns the others.
    #[track_caller]
    pub fn load_with(&self, state: &mut [(&str, &mut dyn Stateful)], options: LoadOptions) -> Result<Loaded> {
        self.load_at(state, options, CallSite::here())
    }

    /// [`Checkpoint::load_with`] for that line of the program.
    pub(super) fn load_at(
        &self,
        state: &mut [(&str, &mut dyn Stateful)],
        options: LoadOptions,
        site: CallSite,
    ) -> Result<Loaded> {
        current().not_dry("load a checkpoint").map_err(|e| e.at(site))?;
        let names: Vec<&str> = state.iter().map(|(s, _)| *s).collect();
        check_sections(&names).map_err(|e| e.at(site))?;
        let mut from = LoadState::new(self.manifest.tensors.keys().map(String::as_str), &self.manifest.values);
        for (section, s) in state.iter_mut() {
            from.section(section);
            s.load_state(&mut from).map_err(|e| e.at(site))?;
        }
        let asked = from.into_asked();
        let of_sections =
            |n: &&String| names.iter().any(|s| s.is_empty() || n.strip_prefix(s).is_some_and(|r| r.starts_with('.')));
        let there = self.manifest.tensors.keys().chain(self.manifest.values.keys());
        let unexpected = there.filter(of_sections).filter(|n| !asked.used.contains(*n)).cloned().collect();
        let loaded = Loaded { missing: asked.missing, unexpected };
        self.check_fit(&loaded, &asked.fills, options).map_err(|e| e.at(site))?;
        self.fill(&asked.fills, options, site).map_err(|e| e.at(site))?;
        Ok(loaded)
    }

    /// Fills tensors in place; the write converts what has another dtype.
    fn fill(&self, fills: &[(String, Tensor)], options: LoadOptions, site: CallSite) -> Result<()> {
        let (ctx, _quiet) = (current(), no_grad());
        let mut failure = None;
        for (name, tensor) in fills {
            let layout = tensor.global().map(|g| (&g.placement, &g.sbp));
            // A rank that failed issues the same ops as the others, and all hear of it in the end.
            let dtype = if options.cast { self.find(name)?.1 } else { tensor.dtype() };
            let new = self.read((&ctx, site), name, dtype, layout, tensor.device(), &mut failure)?;
            tensor.copy_(&new)?;
        }
        settle(&ctx, site, failure)
    }

    /// Returns one tensor in the saved dtype, on a device or in a layout. For a layout the call is a collective of the world.
    ///
    /// # Errors
    /// If there is no tensor of that name, if `target` has another dtype, or if it cannot be read.
    #[track_caller]
    pub fn tensor(&self, name: &str, target: impl IntoTarget) -> Result<Tensor> {
        self.tensor_at(name, target, CallSite::here())
    }

    /// [`Checkpoint::tensor`] for that line of the program.
    pub(super) fn tensor_at(&self, name: &str, target: impl IntoTarget, site: CallSite) -> Result<Tensor> {
        let (spec, ctx) = (target.into_target(), current());
        ctx.not_dry("load a tensor").map_err(|e| e.at(site))?;
        let (saved, dtype) = self.find(name).map_err(|e| e.at(site))?;
        if spec.dtype_or(dtype) != dtype {
            return Err(Error::dtype(format!("'{name}' was saved as {dtype}, not as {}", spec.dtype_or(dtype)))
                .at(site)
                .help("load it as it is and convert it with `.cast(dtype)`"));
        }
        let mut failure = None;
        let (layout, device) = match spec.target() {
            Target::Local(device) => (None, *device),
            Target::Global(p, s) => {
                check_layout(&saved.shape, dtype, p, s).map_err(|e| e.at(site))?;
                (Some((p, s)), p.device())
            }
        };
        let t = self.read((&ctx, site), name, dtype, layout, device, &mut failure).map_err(|e| e.at(site))?;
        match layout {
            Some(_) => settle(&ctx, site, failure),
            None => failure.map_or(Ok(()), Err),
        }
        .map_err(|e| e.at(site))?;
        Ok(t)
    }

    pub(super) fn find(&self, name: &str) -> Result<(&SavedTensor, DType)> {
        let saved = self.manifest.tensors.get(name).ok_or_else(|| {
            Error::argument(format!("{} has no tensor '{name}'", self.path.display()))
                .help(format!("it has {}", listed(self.manifest.tensors.keys())))
        })?;
        let dtype = saved.dtype().ok_or_else(|| {
            Error::unsupported(format!("'{name}' was saved as {}, which oflow has no dtype for", saved.dtype))
                .help("a program loads dtypes that it has registered with `DType::register`")
        })?;
        Ok((saved, dtype))
    }

    /// Reads this rank's shard. A failure is recorded, and the shard is zeros.
    fn read(
        &self,
        (ctx, site): (&Arc<RankCtx>, CallSite),
        name: &str,
        dtype: DType,
        layout: Option<(&Placement, &NdSbp)>,
        device: Device,
        failure: &mut Option<Error>,
    ) -> Result<Tensor> {
        let (saved, _) = self.find(name)?;
        // A partial layout has its value as B has it; making it partial moves nothing.
        let whole = layout.map(|(p, s)| (p, s.map(|x| if x.is_partial() { Sbp::Broadcast } else { x })));
        let want = match &whole {
            None => Some(ShardBox::whole(&saved.shape)),
            Some((p, s)) => p.position(ctx.rank()).map(|at| shard_box(&saved.shape, p, s, at)),
        };
        let local = match want {
            None => None,
            Some(want) => {
                let mut bytes = vec![0; want.size.iter().product::<usize>() * dtype.size()];
                if failure.is_none() {
                    let read = self.files.read_box(saved, dtype.size(), &want, &mut bytes);
                    *failure = read.err().map(|fault| self.explain(fault));
                }
                Some(from_bytes(ctx, &bytes, &want.size, dtype, device, ("checkpoint", site))?)
            }
        };
        match (whole, layout, local) {
            (Some((p, s)), Some((_, asked)), local) => {
                let ty = intern_global(TensorType::new(&saved.shape, dtype), p, &s);
                let shard = local.map(|l| l.shard()).transpose()?.flatten();
                let t = Tensor::from_shard(ty, shard);
                if s == *asked { Ok(t) } else { t.to_global(asked) }
            }
            (_, _, Some(local)) => Ok(local),
            _ => Err(Error::placement("no shard")),
        }
    }

    /// Bytes of a box of a tensor.
    pub(super) fn bytes(&self, name: &str, want: &ShardBox, out: &mut [u8]) -> Result<()> {
        let (saved, dtype) = self.find(name)?;
        self.files.read_box(saved, dtype.size(), want, out).map_err(|fault| self.explain(fault))
    }

    /// Reads every byte and compares all checksums.
    ///
    /// # Errors
    /// Lists all damage, by file and tensor.
    pub fn verify(&self) -> Result<()> {
        let mut wrong: Vec<String> = vec![];
        for number in 0..self.manifest.files.len() {
            self.files.verify(number, |fault| wrong.push(first_line(&self.explain(fault))));
        }
        match wrong.len() {
            0 => Ok(()),
            n => Err(Error::storage(format!(
                "{} is damaged in {n} place{}: {}",
                self.path.display(),
                if n == 1 { "" } else { "s" },
                listed(wrong.iter())
            ))
            .help("use another checkpoint: `oflow ckpt ls` lists all")),
        }
    }

    /// Makes an error of a fault, which names the tensors that it concerns.
    fn explain(&self, fault: Fault) -> Error {
        let (number, block) = match fault {
            Fault::File(e) => return e,
            Fault::Block(number, block) => (number, block),
        };
        let inside = |p: &SavedPiece| p.file == number && p.bytes.0 < block.end && block.start < p.bytes.1;
        let names = self.manifest.tensors.iter().filter(|(_, t)| t.pieces.iter().any(inside)).map(|(n, _)| n);
        let names: Vec<String> = names.map(|n| format!("'{n}'")).collect();
        Error::storage(format!(
            "{} is damaged: bytes {} to {}, of {}, are not those that were written",
            self.files.path(number).display(),
            block.start,
            block.end,
            listed(names.iter())
        ))
        .help(ANOTHER)
    }

    fn check_fit(&self, loaded: &Loaded, fills: &[(String, Tensor)], options: LoadOptions) -> Result<()> {
        let (mut misfits, mut by_dtype) = (vec![], true);
        for (name, t) in fills {
            let saved = &self.manifest.tensors[name];
            let both_floats = t.dtype().is_float() && saved.dtype().is_some_and(|d| d.is_float());
            let fits = saved.dtype() == Some(t.dtype()) || (options.cast && both_floats);
            if saved.shape != t.shape() || !fits {
                by_dtype &= saved.shape == t.shape() && both_floats;
                let there = match saved.dtype() {
                    Some(d) => TensorType::new(&saved.shape, d).to_string(),
                    None => format!("{}{:?}", saved.dtype, saved.shape),
                };
                misfits.push(format!("{name} is {} here, {there} there", t.ty()));
            }
        }
        let mut problems = vec![];
        let mut add = |what: &str, names: &[String]| {
            if !names.is_empty() {
                problems.push(format!("{what} ({}): {}", names.len(), listed(names.iter())));
            }
        };
        if options.strict {
            add("missing there", &loaded.missing);
            add("not asked for", &loaded.unexpected);
        }
        add("of another shape or dtype", &misfits);
        if problems.is_empty() {
            return Ok(());
        }
        let help = if misfits.is_empty() {
            "load what fits by name with `load_with(.., LoadOptions { strict: false, ..Default::default() })`"
        } else if by_dtype {
            "convert the numbers with `load_with(.., LoadOptions { cast: true, ..Default::default() })`, in Python `load(.., cast=True)`"
        } else {
            "make the model as it was when the checkpoint was written, or load single tensors with `Checkpoint::tensor`"
        };
        let text = format!("the checkpoint {} does not fit: {}", self.path.display(), problems.join("; "));
        Err(Error::argument(text).help(help))
    }
}

/// Exchanges whether any rank has failed.
fn settle(ctx: &Arc<RankCtx>, site: CallSite, failure: Option<Error>) -> Result<()> {
    let meeting = Agreement::here(ctx, site);
    meeting.agree("load_checkpoint", failure.map_or(Ok(String::new()), Err)).map(drop)
}

/// Names of sections: distinct, and without the dot that separates them from what is in them.
pub(super) fn check_sections(names: &[&str]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for n in names {
        if n.contains('.') || !seen.insert(*n) || (n.is_empty() && names.len() > 1) {
            return Err(Error::argument(format!("'{n}' cannot be a section of a checkpoint beside {names:?}"))
                .help("give each section a name of its own without dots; a single one may have none"));
        }
    }
    Ok(())
}

/// The first names of a list, and how many there are more.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let text = names.take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more == 0 { text } else { format!("{text} and {more} more") }
}

fn first_line(e: &Error) -> String {
    e.to_string().lines().next().unwrap_or_default().to_string()
}

/// Checks that a folder with the name of a step has the checkpoint of that step.
fn check_step(dir: &Path, manifest: &Manifest) -> Result<()> {
    let named = dir.file_name().and_then(|name| folder::step_of(name.to_str()?));
    match named.filter(|step| *step != manifest.step) {
        None => Ok(()),
        Some(_) => {
            let (dir, step) = (dir.display(), manifest.step);
            let name = folder::name_of(step);
            Err(Error::storage(format!("{dir} is of step {step} by its {MANIFEST}: it was renamed or replaced"))
                .help(format!("rename it to {name}, or to a name that is not that of a step to open it alone")))
        }
    }
}

/// The manifest of safetensors files: what their headers say.
fn from_files(dir: &Path, names: &[&OsStr]) -> Result<Manifest> {
    let mut m = Manifest { world: 1, ..Manifest::default() };
    for (number, name) in names.iter().enumerate() {
        let path = dir.join(name);
        let header = read_header(&access::open(&path)?, &path)?;
        for e in header.entries {
            let piece = SavedPiece {
                file: number,
                bytes: (e.bytes.start, e.bytes.end),
                offset: vec![0; e.shape.len()],
                size: e.shape.clone(),
            };
            let empty = e.bytes.is_empty();
            let t = SavedTensor {
                dtype: e.dtype,
                shape: e.shape,
                layout: String::new(),
                pieces: if empty { vec![] } else { vec![piece] },
            };
            if m.tensors.insert(e.name.clone(), t).is_some() {
                return Err(Error::storage(format!("'{}' is in two files of {}", e.name, dir.display())));
            }
        }
        m.files.push(SavedFile { name: name.to_string_lossy().into_owned(), len: header.len, sums: None });
    }
    Ok(m)
}

/// Whether a path is read as the index of a model in several files, not as a file of tensors.
pub(super) fn is_index(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(b".index.json"))
}

/// The manifest of a model in several files.
fn from_index(path: &Path) -> Result<Manifest> {
    let broken = |why: &str| Error::storage(format!("{} is broken: {why}", path.display()));
    #[derive(Deserialize)]
    struct Index {
        #[serde(deserialize_with = "unique")]
        weight_map: BTreeMap<String, Value>,
    }
    let Index { weight_map: map } =
        serde_json::from_slice(&access::bytes(path, LONGEST_INDEX)?).map_err(|e| broken(&e.to_string()))?;
    let names: BTreeSet<&str> = map.values().filter_map(Value::as_str).collect();
    if let Some(n) = names.iter().find(|n| !is_plain(n)) {
        return Err(broken(&format!("'{n}' is not the name of a file beside it")));
    }
    let names: Vec<&OsStr> = names.into_iter().map(OsStr::new).collect();
    let mut m = from_files(path.parent().unwrap_or(Path::new("")), &names)?;
    // Files may hold more than the index speaks of; that is not part of the model.
    m.tensors.retain(|name, _| map.contains_key(name));
    match map.keys().find(|name| !m.tensors.contains_key(*name)) {
        Some(name) => Err(broken(&format!("it lists '{name}', which no file has"))),
        None => Ok(m),
    }
}
