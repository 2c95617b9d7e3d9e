//! Saves checkpoints, in the foreground or in the background, and resumes from them.

use super::folder;
use super::lock::JobLock;
use super::manifest::{Manifest, SavedPiece, SavedTensor, VERSION};
use super::meet::{Agreement, guarded};
use super::plan::{TensorSpec, whole_layout};
use super::saved::{Checkpoint, LoadOptions, check_sections};
use super::shared;
use super::sums::{Written, side_len, side_name};
use super::write::{Live, RankShare, Snapshot, Source, file_name};
use crate::context::{GeneratorState, RankCtx, current, no_grad};
use crate::error::{CallSite, Error, ErrorKind, Result};
use crate::placement::Placement;
use crate::sbp::NdSbp;
use crate::state::{SaveState, Stateful};
use crate::tensor::Tensor;
use crate::trace::{self, What};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Settings of [`CheckpointManager`].
#[derive(Clone, Copy, Debug)]
pub struct CheckpointOptions {
    /// Number of checkpoints to keep. Older ones are deleted after a newer one is complete. 0 keeps all.
    pub keep: usize,
}

impl Default for CheckpointOptions {
    fn default() -> CheckpointOptions {
        CheckpointOptions { keep: 3 }
    }
}

/// Saves checkpoints to one folder and loads them. All ranks make a manager and issue the same calls.
///
/// ```
/// use oflow::checkpoint::{CheckpointManager, CheckpointOptions};
/// use oflow::nn::{Linear, Module};
/// use oflow::optim::{AdamW, AdamWOptions, Optimizer};
/// use oflow::prelude::*;
/// # let tmp = tempfile::tempdir()?;
/// # let dir = tmp.path().join("checkpoints");
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?;
/// let mut model = Linear::new(8, 4, (&mesh, sbp![B]))?;
/// let mut opt = AdamW::new(model.parameters(), AdamWOptions::default());
/// let mut manager = CheckpointManager::new(&dir, CheckpointOptions::default());
///
/// // Resume from the last checkpoint, if there is one.
/// let first = manager.load_latest(&mut [("model", &mut model), ("opt", &mut opt)])?.unwrap_or(0);
/// for step in first..4 {
///     opt.zero_grad();
///     model.forward(&randn([2, 8], (&mesh, sbp![B]))?)?.square()?.mean(())?.backward()?;
///     opt.step()?;
///     if (step + 1) % 2 == 0 {
///         manager.save_async(step + 1, &[("model", &model), ("opt", &opt)])?;
///     }
/// }
/// manager.finish()?; // waits for the last save and returns its error
/// assert!(dir.join("step-000004/manifest.json").exists());
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// A save has named sections, each a [`Stateful`] value, and the random generators. An error of a save in the background is
/// returned by the next call: a save, a load, [`wait`](CheckpointManager::wait) or [`finish`](CheckpointManager::finish). A
/// save that fails on one rank is an error on all ranks; earlier checkpoints are unchanged.
pub struct CheckpointManager {
    dir: PathBuf,
    options: CheckpointOptions,
    pending: Option<Pending>,
    /// Memory of the last snapshot, for the next.
    spare: Snapshot,
    /// Held by rank 0 from its first save on.
    lock: Option<JobLock>,
    /// Whether all ranks are known to see the same folder.
    shared: bool,
}

/// A save behind training.
struct Pending {
    thread: JoinHandle<(Result<String>, Snapshot)>,
    /// Where there is no control plane to meet on from another thread, the ranks meet when they next come here.
    commit: Option<Arc<Job>>,
}

/// Work of one rank for one save.
struct Job {
    dir: PathBuf,
    step: u64,
    rank: usize,
    keep: usize,
    part: RankShare,
    /// Data that rank 0 needs to write the manifest.
    lead: Option<Lead>,
}

struct Lead {
    specs: Vec<TensorSpec>,
    values: BTreeMap<String, Value>,
    generator: GeneratorState,
    world: usize,
}

impl CheckpointManager {
    /// Makes a manager of a folder, which the first save creates.
    pub fn new(dir: impl AsRef<Path>, options: CheckpointOptions) -> CheckpointManager {
        let dir = dir.as_ref().to_path_buf();
        CheckpointManager { dir, options, pending: None, spare: Snapshot::default(), lock: None, shared: false }
    }

    /// Returns the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Saves `state` as the checkpoint of `step`. Returns when it is complete and durable on every rank. A collective of the
    /// world.
    ///
    /// # Errors
    /// If the previous save failed, or if any rank cannot write its part.
    #[track_caller]
    pub fn save(&mut self, step: u64, state: &[(&str, &dyn Stateful)]) -> Result<()> {
        let (site, ctx) = (CallSite::here(), current());
        ctx.not_dry("save a checkpoint").map_err(|e| e.at(site))?;
        self.wait_at(site)?;
        let (job, tensors) = self.begin(&ctx, step, state, site).map_err(|e| e.at(site))?;
        let begin = trace::begin();
        let written = Live::new(&ctx, &tensors).and_then(|live| job.write(&mut Source::Live(live)));
        let done = job.commit(&Agreement::here(&ctx, site), written).map_err(|e| e.at(site));
        begin.end(site, || What::Checkpoint("save a checkpoint"));
        done
    }

    /// Copies `state` and returns; a thread writes the copy while training continues. The call is a collective of the world.
    ///
    /// # Errors
    /// If the previous save failed.
    #[track_caller]
    pub fn save_async(&mut self, step: u64, state: &[(&str, &dyn Stateful)]) -> Result<()> {
        let (site, ctx) = (CallSite::here(), current());
        ctx.not_dry("save a checkpoint").map_err(|e| e.at(site))?;
        self.wait_at(site)?;
        let (job, tensors) = self.begin(&ctx, step, state, site).map_err(|e| e.at(site))?;
        let mut snapshot = std::mem::take(&mut self.spare);
        let begin = trace::begin();
        let taken = Live::new(&ctx, &tensors).and_then(|mut live| snapshot.take(&job.part, &mut live));
        begin.end(site, || What::Checkpoint("copy for a checkpoint"));
        let meeting = match ctx.control() {
            // The number of the op that began this save: the same on all ranks, and no other save has it.
            Some(control) if ctx.world() > 1 => Some(Agreement::Control(control.clone(), ctx.ops_issued())),
            _ if ctx.world() == 1 => Some(Agreement::Alone),
            _ => None,
        };
        let job = Arc::new(job);
        let behind = job.clone();
        let (alone, owner) = (meeting.is_none(), trace::owner());
        let run = move || {
            trace::adopt(owner);
            let begin = trace::begin();
            let written = taken.and_then(|()| behind.write(&mut Source::Copy(&snapshot)));
            let outcome = match &meeting {
                Some(m) => behind.commit(m, written).map(|()| String::new()),
                None => written,
            };
            drop(behind);
            begin.end(site, || What::Checkpoint("write a checkpoint"));
            (outcome, snapshot)
        };
        let thread = std::thread::Builder::new()
            .name("oflow-checkpoint".into())
            .spawn(run)
            .map_err(|e| Error::storage("cannot start the thread that writes checkpoints").because(e).at(site))?;
        self.pending = Some(Pending { thread, commit: if alone { Some(job) } else { None } });
        Ok(())
    }

    /// Waits until the running save, if any, has ended.
    ///
    /// # Errors
    /// If the save failed on any rank; the error is the same on all ranks.
    #[track_caller]
    pub fn wait(&mut self) -> Result<()> {
        self.wait_at(CallSite::here())
    }

    /// Waits for the last save and returns its error. Dropping a manager waits too, but can only print an error.
    #[track_caller]
    pub fn finish(mut self) -> Result<()> {
        self.wait_at(CallSite::here())
    }

    fn wait_at(&mut self, site: CallSite) -> Result<()> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let outcome = match pending.thread.join() {
            Ok((outcome, snapshot)) => {
                self.spare = snapshot;
                outcome
            }
            Err(_) => Err(Error::storage("the thread that writes checkpoints panicked")),
        };
        match pending.commit {
            Some(job) => job.commit(&Agreement::here(&current(), site), outcome),
            None => outcome.map(drop),
        }
        .map_err(|e| e.at(site))
    }

    /// Loads the latest checkpoint into `state` and the random generators, and returns its step. Without a checkpoint it changes
    /// nothing and returns `None`. A collective of the world.
    ///
    /// # Errors
    /// If the running save failed, and the errors of [`Checkpoint::load`].
    #[track_caller]
    pub fn load_latest(&mut self, state: &mut [(&str, &mut dyn Stateful)]) -> Result<Option<u64>> {
        let (site, ctx) = (CallSite::here(), current());
        ctx.not_dry("load a checkpoint").map_err(|e| e.at(site))?;
        self.wait_at(site)?;
        let Some(mut name) = self.find(&ctx, site).map_err(|e| e.at(site))? else { return Ok(None) };
        let opened = loop {
            match self.open(&ctx, &self.dir.join(&name), site) {
                // Another job may save here and have removed it: then there is a newer one.
                Err(e) if e.kind() == ErrorKind::Storage => match self.find(&ctx, site).map_err(|e| e.at(site))? {
                    Some(newer) if newer != name => name = newer,
                    _ => break Err(e),
                },
                opened => break opened,
            }
        };
        opened.and_then(|c| go_on_from(&ctx, &c, state, site)).map(Some).map_err(|e| e.at(site))
    }

    /// The name of the checkpoint that was written last.
    fn find(&self, ctx: &Arc<RankCtx>, site: CallSite) -> Result<Option<String>> {
        let mine = match ctx.rank() {
            // Rank 0 decides: the others may see an older list of a network folder.
            0 => folder::latest(&self.dir).map(|f| f.map_or(String::new(), |f| folder::name_of(f.step))),
            _ => Ok(String::new()),
        };
        let names = Agreement::here(ctx, site).agree("find_checkpoint", mine)?;
        Ok(names.into_iter().next().filter(|name| !name.is_empty()))
    }

    /// Loads the checkpoint of a step, like [`load_latest`](CheckpointManager::load_latest).
    ///
    /// # Errors
    /// If the step has no checkpoint, and the errors of [`Checkpoint::load`].
    #[track_caller]
    pub fn load_step(&mut self, step: u64, state: &mut [(&str, &mut dyn Stateful)]) -> Result<()> {
        let (site, ctx) = (CallSite::here(), current());
        ctx.not_dry("load a checkpoint").map_err(|e| e.at(site))?;
        self.wait_at(site)?;
        let path = self.dir.join(folder::name_of(step));
        let opened = self.open(&ctx, &path, site);
        opened.and_then(|c| go_on_from(&ctx, &c, state, site)).map(drop).map_err(|e| e.at(site))
    }

    /// Opens a checkpoint on all ranks, or on none.
    fn open(&self, ctx: &Arc<RankCtx>, path: &Path, site: CallSite) -> Result<Checkpoint> {
        let meeting = Agreement::here(ctx, site);
        let none = || {
            Error::storage(format!("the checkpoint {} does not exist", path.display()))
                .help("`oflow ckpt ls` lists all; every host of a job must see the folder")
        };
        let opened = if path.is_dir() { Checkpoint::open(path) } else { Err(none()) };
        match opened {
            Ok(c) => meeting.agree("open_checkpoint", Ok(String::new())).map(|_| c),
            Err(e) => match meeting.agree("open_checkpoint", Err(e)) {
                Err(e) => Err(e),
                Ok(_) => Err(Error::storage(format!("cannot open {}", path.display()))),
            },
        }
    }

    /// Plans a save and makes room for it. The tensors are as they are written: without P.
    fn begin(
        &mut self,
        ctx: &Arc<RankCtx>,
        step: u64,
        state: &[(&str, &dyn Stateful)],
        site: CallSite,
    ) -> Result<(Job, Vec<Tensor>)> {
        check_sections(&state.iter().map(|(s, _)| *s).collect::<Vec<_>>())?;
        let mut to = SaveState::new();
        for (section, s) in state {
            to.section(section);
            s.save_state(&mut to)?;
        }
        let (named, values) = to.into_parts();
        let generators = (ctx.generator(), ctx.local_generator());
        let (mut specs, mut tensors) = (Vec::with_capacity(named.len()), Vec::with_capacity(named.len()));
        let _quiet = no_grad();
        for (name, t) in named {
            let (spec, t) = spec_of(ctx, name, &t)?;
            specs.push(spec);
            tensors.push(t);
        }
        let part = RankShare::new(&specs, ctx.rank(), generators.1)?;
        let meeting = Agreement::here(ctx, site);
        self.check_shared(ctx, &meeting).map_err(|e| explain(step, e))?;
        let print = fingerprint(step, &specs);
        // What a reader would refuse is not written, on any rank.
        let named = distinct(&specs).and_then(|()| part.header().map(drop));
        let room = |this: &mut Self| if ctx.rank() == 0 { this.make_room(step) } else { Ok(()) };
        let mine = named.and_then(|()| room(self)).map(|()| print.clone());
        let prints = meeting.agree("begin_checkpoint", mine).map_err(|e| explain(step, e))?;
        if let Some(rank) = prints.iter().position(|p| *p != prints[0]) {
            return Err(Error::argument(format!(
                "ranks 0 and {rank} save different state or steps (step {step} here)"
            ))
            .help("all ranks save the same step, with the same sections, names, shapes and layouts"));
        }
        let lead = (ctx.rank() == 0).then(|| Lead { specs, values, generator: generators.0, world: ctx.world() });
        let (dir, keep) = (self.dir.clone(), self.options.keep);
        Ok((Job { dir, step, rank: ctx.rank(), keep, part, lead }, tensors))
    }

    /// Before the first save.
    fn check_shared(&mut self, ctx: &Arc<RankCtx>, meeting: &Agreement) -> Result<()> {
        if self.shared || ctx.world() == 1 {
            return Ok(());
        }
        let mark = match ctx.rank() {
            0 => self.take().map(|lock| self.lock.insert(lock).mark().to_string()),
            _ => Ok(String::new()),
        };
        shared::check(&self.dir, mark, meeting)?;
        self.shared = true;
        Ok(())
    }

    fn take(&mut self) -> Result<JobLock> {
        self.lock.take().map_or_else(|| JobLock::take(&self.dir), Ok)
    }

    fn make_room(&mut self, step: u64) -> Result<()> {
        self.lock = Some(self.take()?);
        oflow_files::check(&self.dir)?;
        folder::begin(&self.dir, step)
    }
}

/// The generators and the state as the checkpoint has them; returns its step.
fn go_on_from(
    ctx: &Arc<RankCtx>,
    c: &Checkpoint,
    state: &mut [(&str, &mut dyn Stateful)],
    site: CallSite,
) -> Result<u64> {
    c.load_at(state, LoadOptions::default(), site)?;
    let m = c.manifest();
    if let Some(g) = m.generator {
        ctx.set_generator(g.into());
        // A rank that was not there then begins a stream of its own.
        let mine = m.local_generators.get(ctx.rank()).copied();
        ctx.set_local_generator(mine.map_or_else(|| ctx.local_generator_of(g.seed), GeneratorState::from));
    }
    Ok(c.step())
}

impl Drop for CheckpointManager {
    fn drop(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let outcome = pending.thread.join();
        // Without a place to meet from here the checkpoint stays unwritten: in simulated worlds alone.
        if let Ok((Err(e), _)) = outcome {
            eprintln!("oflow: {e}");
        }
    }
}

/// A tensor as it is written.
fn spec_of(ctx: &RankCtx, name: String, t: &Tensor) -> Result<(TensorSpec, Tensor)> {
    let (placement, sbp) = match t.global() {
        Some(g) => (g.placement.clone(), g.sbp.clone()),
        None if ctx.world() == 1 => (Placement::of_world(t.device(), 1)?, NdSbp::broadcast(1)),
        None => {
            return Err(Error::argument(format!(
                "'{name}' is a local tensor: in a world of {} ranks each has another one",
                ctx.world()
            ))
            .help("make it global with `to_global((&placement, sbp))`"));
        }
    };
    let whole = whole_layout(t.shape(), &sbp);
    let t = if whole == sbp { t.detach() } else { t.detach().to_global(&whole)? };
    Ok((TensorSpec { name, shape: t.shape().into(), dtype: t.dtype(), placement, sbp: whole }, t))
}

/// Refuses two tensors of one name.
fn distinct(specs: &[TensorSpec]) -> Result<()> {
    let mut names = BTreeSet::new();
    match specs.iter().find(|s| !names.insert(&s.name)) {
        None => Ok(()),
        Some(s) => Err(Error::argument(format!("two tensors have the name '{}'", s.name.escape_debug()))
            .help("give each tensor of a section a name of its own")),
    }
}

/// A short text that differs where ranks do not save the same.
fn fingerprint(step: u64, specs: &[TensorSpec]) -> String {
    let mut hasher = crc32fast::Hasher::new();
    for s in specs {
        hasher.update(format!("{:?} {}{:?} {} {}\n", s.name, s.dtype, s.shape, s.sbp, s.placement).as_bytes());
    }
    format!("{step} {} {:08x}", specs.len(), hasher.finalize())
}

fn explain(step: u64, e: Error) -> Error {
    if e.kind() != ErrorKind::Storage {
        return e;
    }
    let why = e.to_string();
    let text = format!("the checkpoint of step {step} was not written: {}", why.lines().next().unwrap_or_default());
    match e.help_text() {
        Some(help) => Error::storage(text).help(help),
        None => Error::storage(text),
    }
}

impl Job {
    /// Returns the rank's report to rank 0.
    fn write(&self, source: &mut Source<'_>) -> Result<String> {
        guarded(|| self.part.write(&folder::saving(&self.dir, self.step), self.rank, source))
    }

    /// Waits until all ranks have written. Then rank 0 completes the checkpoint, and all ranks receive the result.
    fn commit(&self, meeting: &Agreement, written: Result<String>) -> Result<()> {
        let all = meeting.agree("write_checkpoint", written);
        let made = match (&all, &self.lead) {
            (Ok(reports), Some(lead)) => guarded(|| self.make(lead, reports)),
            _ => Ok(()),
        };
        let outcome = match all {
            Ok(_) => meeting.agree("commit_checkpoint", made.map(|()| String::new())).map(drop),
            Err(e) => Err(e),
        };
        if outcome.is_err() && self.lead.is_some() {
            // All have ended writing. What cannot be removed now the next save removes.
            let _best_effort = folder::abandon(&self.dir, self.step);
        }
        outcome.map_err(|e| explain(self.step, e))
    }

    fn make(&self, lead: &Lead, reports: &[String]) -> Result<()> {
        let dir = folder::saving(&self.dir, self.step);
        let manifest = manifest_of(&dir, self.step, lead, reports)?;
        folder::complete(&dir, &manifest)?;
        folder::commit(&self.dir, self.step)?;
        if self.keep > 0
            && let Err(e) = folder::retain(&self.dir, self.keep)
        {
            tracing::warn!("old checkpoints could not be deleted: {e}");
        }
        Ok(())
    }
}

/// The manifest: which pieces are where follows from the shapes, and the checksums from the reports of the ranks.
fn manifest_of(dir: &Path, step: u64, lead: &Lead, reports: &[String]) -> Result<Manifest> {
    let saved = |s: &TensorSpec| SavedTensor {
        dtype: super::file::dtype_name(s.dtype).into(),
        shape: s.shape.to_vec(),
        layout: format!("{} on {}", s.sbp, s.placement),
        pieces: vec![],
    };
    let mut m = Manifest {
        version: VERSION,
        oflow: env!("CARGO_PKG_VERSION").into(),
        world: lead.world,
        step,
        tensors: lead.specs.iter().map(|s| (s.name.clone(), saved(s))).collect(),
        values: lead.values.clone(),
        generator: Some(lead.generator.into()),
        ..Manifest::default()
    };
    for (rank, report) in reports.iter().enumerate() {
        let (written, generator) = Written::from_message(rank, report)?;
        m.local_generators.push(generator.into());
        let mut at = written.header;
        for (tensor, shard, bytes) in RankShare::new(&lead.specs, rank, generator)?.boxes() {
            let piece = SavedPiece {
                file: rank,
                bytes: (at, at + bytes),
                offset: shard.offset.to_vec(),
                size: shard.size.to_vec(),
            };
            at += bytes;
            m.tensors.entry(lead.specs[tensor].name.clone()).and_modify(|t| t.pieces.push(piece));
        }
        let name = file_name(rank);
        if at != written.len {
            return Err(Error::storage(format!("{name} has {} bytes instead of {at}", written.len))
                .help("all ranks of a job must run the same version of oflow"));
        }
        let sides = (side_name(&name), side_len(written.len - written.header));
        for (name, len) in [(name.clone(), written.len), sides] {
            let path = dir.join(name);
            if path.metadata().map(|m| m.len()).ok() != Some(len) {
                let text = format!("rank 0 does not see what rank {rank} wrote, {} of {len} bytes", path.display());
                return Err(Error::storage(text).help("checkpoints need a folder that all hosts share"));
            }
        }
        m.files.push(written.saved(name));
    }
    m.check().map_err(Error::storage)?;
    Ok(m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::Linear;
    use crate::placement::Device;
    use crate::sbp;

    /// The thread that writes must neither leave the others waiting nor pass for one that has written.
    #[test]
    fn a_panic_while_writing_is_an_error_on_every_rank() {
        let tmp = tempfile::tempdir().unwrap();
        crate::run_ranks(3, |w| {
            let ctx = w.ctx();
            let model = Linear::new(6, 6, (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
            let state: [(&str, &dyn Stateful); 1] = [("model", &model)];
            let mut m = CheckpointManager::new(tmp.path(), CheckpointOptions::default());
            m.save(1, &state)?;
            let (job, tensors) = m.begin(ctx, 2, &state, CallSite::here())?;
            let written = match w.rank() {
                // Nothing was copied: what is to be written is not there.
                1 => job.write(&mut Source::Copy(&Snapshot::default())),
                _ => job.write(&mut Source::Live(Live::new(ctx, &tensors)?)),
            };
            let e = job.commit(&Agreement::here(ctx, CallSite::here()), written).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Storage);
            let text = e.to_string();
            assert!(text.starts_with("the checkpoint of step 2 was not written: rank 1: writing panicked: "), "{text}");
            assert!(text.contains("earlier checkpoints are complete"), "{text}");
            m.save(3, &state)
        })
        .unwrap();
        let steps: Vec<u64> = folder::list(tmp.path()).unwrap().iter().map(|f| f.step).collect();
        assert_eq!(steps, [1, 3]);
    }
}
