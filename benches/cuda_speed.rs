//! Speed of kernels and training steps on a device, one line `RESULT name value unit` each. `scripts/peers/cuda_torch.py`
//! measures the same in PyTorch under the same names; `scripts/gpu-check.sh bench` runs both in turn and compares.
//!
//! ```text
//! cargo bench --bench cuda_speed [-- --only matmul,gpt2]
//! ```
//!
//! Without a GPU it measures nothing and says so; `--device cpu` measures the CPU.

#[path = "../examples/common/mod.rs"]
mod common;

use common::meter::{self, Meter};
use common::model::{Config, Gpt};
use common::{Options, Parallel};
use oflow::BackwardOptions;
use oflow::functional::CrossEntropyOptions;
use oflow::nn::Module;
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;
use std::time::Instant;

const USAGE: &str = "\
Measures kernels and training steps.

Options:
  --device D    cpu or cuda  [default: cuda]
  --only LIST   of copy, add, softmax, layer_norm, adamw, matmul, attention, host, tiny, gpt2, by commas  [default: all]
  --batch N     rows of a batch of gpt2  [default: 8]
  --steps N     steps of tiny and gpt2 that count  [default: 20]
  --tiny        small sizes, to see that it runs
  --help        prints this";

type Bench = fn(&Bencher) -> Result<()>;

const BENCHES: &[(&str, Bench)] = &[
    ("copy", copy),
    ("add", add),
    ("softmax", softmax),
    ("layer_norm", layer_norm),
    ("adamw", adamw),
    ("matmul", matmul),
    ("attention", attention),
    ("host", host),
    ("tiny", tiny_gpt),
    ("gpt2", gpt2),
];

struct Bencher {
    device: Device,
    tiny: bool,
    batch: usize,
    steps: usize,
}

impl Bencher {
    /// Seconds of one call: the median over samples of several calls with one wait at the end.
    fn seconds<T>(&self, mut f: impl FnMut() -> Result<T>) -> Result<f64> {
        let mut sample = |calls: usize| -> Result<f64> {
            let began = Instant::now();
            for _ in 0..calls {
                f()?;
            }
            oflow::synchronize(self.device)?;
            Ok(began.elapsed().as_secs_f64() / calls as f64)
        };
        // Kernels are compiled and memory is taken in the first calls.
        sample(3)?;
        let calls = ((0.05 / sample(1)?) as usize).clamp(1, if self.tiny { 2 } else { 100 });
        let mut samples = (0..if self.tiny { 3 } else { 9 }).map(|_| sample(calls)).collect::<Result<Vec<_>>>()?;
        samples.sort_by(f64::total_cmp);
        Ok(samples[samples.len() / 2])
    }
    fn tell(&self, name: &str, value: f64, unit: &str) {
        println!("RESULT {name} {value:.4} {unit}");
    }
    fn bandwidth<T>(&self, name: &str, bytes: usize, f: impl FnMut() -> Result<T>) -> Result<()> {
        let seconds = self.seconds(f)?;
        self.tell(name, bytes as f64 / seconds * 1e-9, "GB/s");
        Ok(())
    }
    fn rate<T>(&self, name: &str, flops: f64, f: impl FnMut() -> Result<T>) -> Result<()> {
        let seconds = self.seconds(f)?;
        self.tell(name, flops / seconds * 1e-12, "TFLOP/s");
        Ok(())
    }
    /// Rows of 1,024 numbers, 256 MiB of f32.
    fn rows(&self) -> usize {
        if self.tiny { 64 } else { 64 << 10 }
    }
    fn matrix(&self) -> Result<Tensor> {
        randn([self.rows(), COLUMNS], self.device)
    }
    fn bytes(&self) -> usize {
        self.rows() * COLUMNS * 4
    }
}

const COLUMNS: usize = 1024;

fn copy(b: &Bencher) -> Result<()> {
    let (x, y) = (b.matrix()?, b.matrix()?);
    b.bandwidth("copy", 2 * b.bytes(), || y.copy_(&x).map(drop))
}

fn add(b: &Bencher) -> Result<()> {
    let (x, y) = (b.matrix()?, b.matrix()?);
    b.bandwidth("add", 3 * b.bytes(), || x.add(&y))
}

fn softmax(b: &Bencher) -> Result<()> {
    let x = b.matrix()?;
    b.bandwidth("softmax", 2 * b.bytes(), || x.softmax(-1))
}

fn layer_norm(b: &Bencher) -> Result<()> {
    let (x, w, bias) = (b.matrix()?, ones([COLUMNS], b.device)?, zeros([COLUMNS], b.device)?);
    b.bandwidth("layer_norm", 2 * b.bytes(), || x.layer_norm(Some(&w), Some(&bias), 1e-5))
}

/// Four parameters of 64 MiB: parameter, gradient and two moments are read, all but the gradient written.
fn adamw(b: &Bencher) -> Result<()> {
    let mut parameters = vec![];
    for _ in 0..4 {
        let p = randn([b.rows() / 4, COLUMNS], b.device)?.requires_grad_(true)?;
        p.set_grad(Some(randn([b.rows() / 4, COLUMNS], b.device)?))?;
        parameters.push(p);
    }
    let mut opt = AdamW::new(parameters, AdamWOptions::default());
    b.bandwidth("adamw", 7 * b.bytes(), || opt.step())
}

fn matmul(b: &Bencher) -> Result<()> {
    let n = if b.tiny { 128 } else { 8192 };
    let half = || randn([n, n], b.device)?.cast(DType::BF16);
    let (x, y) = (half()?, half()?);
    b.rate("matmul_bf16_8192", 2.0 * (n as f64).powi(3), || x.matmul(&y))
}

/// Forward has two products of T x T x D per head, backward five.
fn attention(b: &Bencher) -> Result<()> {
    let [batch, heads, tokens, size] = if b.tiny { [1, 2, 64, 32] } else { [16, 16, 4096, 128] };
    let half = || randn([batch, heads, tokens, size], b.device)?.cast(DType::BF16)?.detach().requires_grad_(true);
    let (q, k, v, dy) = (half()?, half()?, half()?, half()?.detach());
    for (causal, name, share) in [(false, "attention", 1.0), (true, "attention_causal", 0.5)] {
        let product = share * 2.0 * (batch * heads * size) as f64 * (tokens as f64).powi(2);
        let quiet = no_grad();
        b.rate(&format!("{name}_forward"), 2.0 * product, || q.attention(&k, &v, causal))?;
        drop(quiet);
        let y = q.attention(&k, &v, causal)?;
        let options = BackwardOptions { gradient: Some(dy.clone()), retain_graph: true, ..Default::default() };
        b.rate(&format!("{name}_backward"), 5.0 * product, || {
            [&q, &k, &v].iter().try_for_each(|t| t.set_grad(None))?;
            y.backward_with(&options)
        })?;
    }
    Ok(())
}

/// Time of the host to issue a call: nothing is waited for until the end.
fn host(b: &Bencher) -> Result<()> {
    let (x, y) = (randn([8, 8], b.device)?, randn([8, 8], b.device)?);
    let _quiet = no_grad();
    let calls = if b.tiny { 100 } else { 10_000 };
    let mut samples = vec![];
    for _ in 0..5 {
        oflow::synchronize(b.device)?;
        let began = Instant::now();
        for _ in 0..calls {
            x.add(&y)?;
        }
        samples.push(began.elapsed().as_secs_f64() * 1e6 / calls as f64);
        oflow::synchronize(b.device)?;
    }
    samples.sort_by(f64::total_cmp);
    b.tell("host_add_8x8", samples[2], "us");
    Ok(())
}

/// Steps of forward, backward and AdamW on one batch; the host waits at the end only.
fn train(b: &Bencher, c: &Config, batch: usize, precision: Autocast) -> Result<(f64, f64)> {
    manual_seed(0);
    let mesh = Parallel::Single.mesh(1, b.device)?;
    let all = (&mesh, sbp![B, B]);
    let model = Gpt::new(c, all.clone())?;
    let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr: 3e-4, ..Default::default() });
    let ids = || randint(0, c.vocab as i64, [batch, c.seq], all.clone());
    let (x, y) = (ids()?, ids()?);
    let (warmup, steps) = if b.tiny { (2, 2) } else { (5, b.steps) };
    let mut meter = Meter::new(warmup);
    let mut last = None;
    for step in 0..warmup + steps {
        let loss = {
            let _amp = autocast(precision);
            model.forward(&x)?.cross_entropy_with(&y, &CrossEntropyOptions { dim: -1, ..Default::default() })?
        };
        opt.zero_grad();
        loss.backward()?;
        opt.step()?;
        last = Some(loss);
        if step + 1 == warmup || step + 1 == warmup + steps {
            oflow::synchronize(b.device)?;
            meter.mark(step + 1);
        }
    }
    let loss = last.map_or(Ok(f64::NAN), |l| l.item())?;
    if !loss.is_finite() {
        return Err(Error::argument(format!("the loss is {loss} after {} steps", warmup + steps)));
    }
    Ok((meter.steps_per_s(), meter::peak_mib(b.device)?))
}

/// Small steps, whose kernels are shorter than the host's work to issue them.
fn tiny_gpt(b: &Bencher) -> Result<()> {
    let c = if b.tiny { Config::new(64, 1, 32, 2, 16) } else { Config::new(256, 4, 256, 4, 128) };
    let (rate, _) = train(&Bencher { steps: 5 * b.steps, ..*b }, &c, if b.tiny { 2 } else { 16 }, Autocast::Off)?;
    b.tell("tiny_gpt", rate, "steps/s");
    Ok(())
}

fn gpt2(b: &Bencher) -> Result<()> {
    let mut c = if b.tiny { Config::new(64, 1, 32, 2, 16) } else { Config::new(50_304, 12, 768, 12, 1024) };
    c.tied = true;
    let (rate, peak) = train(b, &c, b.batch, Autocast::Bf16)?;
    b.tell("gpt2", rate * (b.batch * c.seq) as f64, "tokens/s");
    b.tell("gpt2_peak", peak, "MiB");
    Ok(())
}

fn main() -> Result<()> {
    let mut o = Options::from_args(USAGE);
    let _world = oflow::init()?;
    // Cargo tells every bench that it is one.
    o.flag("--bench");
    let asked = std::env::args().any(|a| a == "--device");
    if let (false, Err(e)) = (asked, oflow::memory_stats(Device::Cuda)) {
        println!("skipped: no GPU: {}", e.message());
        return Ok(());
    }
    let device = o.device(Device::Cuda)?;
    let only: Option<String> = o.get("--only")?;
    let (batch, steps, tiny) = (o.count("--batch", 8)?, o.count("--steps", 20)?, o.flag("--tiny"));
    o.done()?;
    let wanted: Vec<&str> =
        only.as_deref().map_or_else(|| BENCHES.iter().map(|b| b.0).collect(), |l| l.split(',').collect());
    if let Some(name) = wanted.iter().find(|n| !BENCHES.iter().any(|b| b.0 == **n)) {
        return Err(Error::argument(format!("--only {name}: unknown measurement")).help(USAGE));
    }
    let b = Bencher { device, tiny, batch, steps };
    BENCHES.iter().filter(|(name, _)| wanted.contains(name)).try_for_each(|(_, run)| run(&b))
}
