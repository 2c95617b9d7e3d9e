//! The frame around a training loop: mesh and precision from the command line, checkpoints, measurements, output.
//!
//! [`Setup`] reads the common options, [`Training`] accompanies the loop and captures its step if asked to, [`Outcome`] prints the result.

use super::meter::{self, Meter};
use super::options::{Options, Parallel};
use super::progress::Progress;
use super::saving::{History, Saving};
use super::scaler::LossScaler;
use oflow::World;
use oflow::graph::{Graph, GraphOptions, Memory};
use oflow::metrics::{Log, LogOptions};
use oflow::nn::Module;
use oflow::prelude::*;
use oflow::state::Stateful;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::time::Instant;

/// Help text of the options that [`Setup::new`] reads.
pub const OPTIONS: &str = "\
  --parallel MODE  single, dp (batch split), tp (weights split) or 2d (both)  [default: dp on several ranks]
  --device D       cpu or cuda (one GPU per rank)  [default: cpu]
  --autocast T     bf16 or f16: precision of products; weights stay f32  [default: off]
  --dtype T        f32 or f64: of weights and activations  [default: f32]
  --graph          captures the step as a graph and runs that: the same losses, bit for bit
  --memory M       of the graph: `cheap` computes once more what costs next to nothing, `least` all that saves memory, and a
                   number of bytes what that budget takes  [default: cheap]
  --seed N         seed of weights, dropout and order  [default: 0]
  --metrics PATH   writes the loss of every step to PATH.jsonl, PATH.csv and, for TensorBoard, to files in PATH
  --log-every N    prints the loss every N steps; between two the host does not wait for the device  [default: 1]
  --checkpoint DIR saves model, optimizer, position in the data and random state to DIR, in the background
  --save-every N   saves every N steps  [default: 100]
  --keep K         keeps the last K checkpoints; 0 keeps all  [default: 3]
  --resume         resumes from the latest checkpoint in DIR, if any, on any number of ranks and in any layout
  --help           prints this";

/// Number of first steps that the measured speed leaves out.
const WARMUP: usize = 3;

/// The common options of a training program.
pub struct Setup {
    /// All ranks as a mesh [dp, tp].
    pub mesh: Placement,
    /// Whether --parallel splits weights over mesh axis "tp".
    pub splits_weights: bool,
    /// Precision of products.
    pub precision: Autocast,
    /// Type of the weights.
    pub dtype: DType,
    /// Seed of weights, dropout and order.
    pub seed: u64,
    device: Device,
    captures: bool,
    memory: Memory,
    metrics: Option<String>,
    log_every: usize,
    speaks: bool,
    saving: Saving,
}

impl Setup {
    /// Reads the common options, makes the mesh and seeds the random numbers. Call it after the program's own options are
    /// read.
    ///
    /// # Errors
    /// If an option is unknown or has a wrong value, or if `--device cuda` finds no usable GPU.
    pub fn new(world: &World, mut o: Options) -> Result<Setup> {
        let parallel = Parallel::or_default(o.get("--parallel")?, world.size());
        let device = o.device(Device::Cpu)?;
        let setup = Setup {
            mesh: parallel.mesh(world.size(), device)?,
            splits_weights: parallel.splits_weights(),
            precision: o.autocast()?,
            dtype: o.dtype()?,
            seed: o.or("--seed", 0)?,
            device,
            captures: o.flag("--graph"),
            memory: o.or("--memory", Memory::Cheap)?,
            metrics: o.get("--metrics")?,
            log_every: o.count("--log-every", 1)?,
            speaks: world.rank() == 0,
            saving: Saving::from_options(&mut o)?,
        };
        o.done()?;
        manual_seed(setup.seed);
        Ok(setup)
    }

    /// Prints the parameters of a model and their layouts on rank 0: those outside of lists, and of each list the first
    /// element's.
    pub fn describe(&self, model: &dyn Module) {
        if !self.speaks {
            return;
        }
        println!("{} parameters on {}, autocast {}", model.parameter_count(), self.mesh, self.precision);
        let later_in_list = |name: &str| name.split('.').any(|part| part.parse::<usize>().is_ok_and(|i| i > 0));
        for (name, p) in model.named_parameters().iter().filter(|(name, _)| !later_in_list(name)) {
            println!("  {name:<18} {}", p.short());
        }
    }

    /// Starts a training of `total` steps. With `--resume` it loads the latest checkpoint into `state`.
    ///
    /// # Errors
    /// If there is a checkpoint and it cannot be loaded.
    pub fn start(mut self, total: usize, state: &mut [(&str, &mut dyn Stateful)]) -> Result<Training> {
        let (mut history, mut scaler) = (History(vec![]), LossScaler::new(self.precision));
        let mut all: Vec<(&str, &mut dyn Stateful)> = vec![("losses", &mut history)];
        all.extend(scaler.0.as_mut().map(|s| ("scaler", s as &mut dyn Stateful)));
        all.extend(state.iter_mut().map(|(name, s)| (*name, &mut **s as &mut dyn Stateful)));
        let first = self.saving.load(&mut all)?;
        if let Some(path) = &self.metrics {
            // A run that goes on from a checkpoint writes the steps since then once more.
            Log::new(path, LogOptions { resume: self.saving.resumes(), ..LogOptions::default() })?.install()?;
        }
        let mut meter = Meter::new((first + WARMUP).min(total.saturating_sub(1)));
        meter.mark(first);
        let progress = Progress::new(total, self.speaks);
        let (graphs, began) = (BTreeMap::new(), Instant::now());
        Ok(Training { setup: self, first, total, history, meter, progress, began, scaler, graphs })
    }
}

/// A training in progress.
pub struct Training {
    scaler: LossScaler,
    /// Captured steps, by the shapes of their batches: the last batch of an epoch may be smaller.
    graphs: BTreeMap<Vec<Vec<usize>>, Graph>,
    setup: Setup,
    first: usize,
    total: usize,
    history: History,
    meter: Meter,
    progress: Progress,
    began: Instant,
}

impl Training {
    /// The steps to run: from 0, or from the step of the checkpoint that was loaded.
    pub fn steps(&self) -> Range<usize> {
        self.first..self.total
    }

    /// Takes one step on a batch. `step` gets the batch and the loss scaling, which only f16 needs, and returns the loss, a scalar. With
    /// `--graph` it is called once for each shape of a batch.
    ///
    /// # Errors
    /// Those of `step`, and if it does what a graph cannot do.
    #[track_caller]
    pub fn step<const N: usize>(
        &mut self,
        batch: [&Tensor; N],
        step: impl FnOnce([&Tensor; N], &mut LossScaler) -> Result<Tensor>,
    ) -> Result<Tensor> {
        if !self.setup.captures {
            return step(batch, &mut self.scaler);
        }
        let graph = match self.graphs.entry(batch.map(|t| t.shape().to_vec()).to_vec()) {
            Entry::Occupied(captured) => captured.into_mut(),
            Entry::Vacant(new) => new.insert(Graph::build(
                |g| {
                    let input = |(i, t): (usize, &&Tensor)| g.input(&format!("column {i}"), t);
                    let inputs = batch.iter().enumerate().map(input).collect::<Result<Vec<_>>>()?;
                    step(std::array::from_fn(|i| &inputs[i]), &mut self.scaler)
                },
                GraphOptions::default().memory(self.setup.memory),
            )?),
        };
        graph.run(&batch)
    }

    /// Call it at the end of each step. Logs `loss`, a scalar, and saves `state` if a save is due.
    ///
    /// # Errors
    /// If reading the loss or saving fails.
    pub fn after(&mut self, step: usize, loss: &Tensor, state: &[(&str, &dyn Stateful)]) -> Result<()> {
        let (done, s) = (step + 1, &self.setup);
        if s.metrics.is_some() {
            oflow::log(done, &[("loss", loss)])?;
        }
        let logs = done % s.log_every == 0 || done == self.total;
        if logs || done == self.first + WARMUP {
            let value = loss.item()?;
            // The device has computed the loss before it has finished the step.
            oflow::synchronize(s.device)?;
            let seconds = self.meter.mark(done);
            // The read after the warm-up serves the measurement. It depends on where the run began; logged losses must not.
            if logs {
                self.history.0.push(value);
                let digits = if loss.dtype() == DType::F64 { value.to_string() } else { (value as f32).to_string() };
                self.progress.at(done, &digits, seconds);
            }
        }
        let mut all: Vec<(&str, &dyn Stateful)> = vec![("losses", &self.history)];
        all.extend(self.scaler.0.as_ref().map(|s| ("scaler", s as &dyn Stateful)));
        all.extend_from_slice(state);
        self.setup.saving.after(done, &all)
    }

    /// Call it after the last step. Writes the last metrics and waits for the last save.
    ///
    /// # Errors
    /// If either failed.
    pub fn finish(self) -> Result<Outcome> {
        let Training { setup: s, total, history, meter, began, scaler, .. } = self;
        let seconds = began.elapsed().as_secs_f64();
        oflow::metrics::flush_log()?;
        s.saving.finish()?;
        let (losses, step_seconds, rate) = (history.0, meter.median(), meter.steps_per_s());
        let last = losses.iter().rev().take(10).sum::<f64>() / losses.len().min(10) as f64;
        let first = losses.first().copied().unwrap_or(f64::NAN);
        let (ms, skipped, peak) = (step_seconds * 1e3, scaler.skipped(), meter::peak_mib(s.device)?);
        let left_out = if skipped > 0 { format!(", {skipped} skipped by the loss scaler") } else { String::new() };
        let line = format!(
            "{total} steps in {seconds:.1} s ({ms:.1} ms a step, {rate:.2} steps/s, {peak:.0} MiB): \
             loss {first:.4} -> {last:.4} (mean of the last ten){left_out}"
        );
        Ok(Outcome { steps: total, first, last, step_seconds, line, speaks: s.speaks })
    }
}

/// The result of a training.
pub struct Outcome {
    /// Number of steps, including those of the runs that this run resumed.
    pub steps: usize,
    /// The first loss.
    pub first: f64,
    /// Mean of the last ten losses.
    pub last: f64,
    /// Median time of a step, in seconds.
    pub step_seconds: f64,
    line: String,
    speaks: bool,
}

impl Outcome {
    /// Prints the result on rank 0 with further numbers of the program.
    pub fn print(&self, more: &[(&str, f64)]) {
        if self.speaks {
            let more: String = more.iter().map(|(name, x)| format!(", {name} {x:.4}")).collect();
            println!("{}{more}", self.line);
        }
    }

    /// Prints a text on rank 0.
    pub fn say(&self, text: &str) {
        if self.speaks {
            println!("{text}");
        }
    }

    /// Fails if `learned` is false after `enough` steps or more. Shorter runs pass.
    ///
    /// # Errors
    /// With `what` in the message.
    pub fn expect(&self, enough: usize, learned: bool, what: &str) -> Result<()> {
        if self.steps < enough || learned {
            return Ok(());
        }
        Err(Error::argument(format!("after {} steps {what}", self.steps))
            .help("run with the default --lr, --seed and sizes to see the expected result"))
    }
}
