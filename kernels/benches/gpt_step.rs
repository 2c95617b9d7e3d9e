//! Times the kernel calls of one training step of a small GPT on one thread and adds them up:
//! `cargo bench -p oflow-kernels --bench gpt_step [-- FILTER]`.
//!
//! The model: vocabulary 256, width 256, 4 layers, 4 heads, 128 tokens, batch 16, f32, AdamW. Each line is the best of
//! several runs of one call in processor time, times how often the step makes it.

use oflow_kernels::cpu::attention::{Attention, Qkv, attention, attention_grad};
use oflow_kernels::cpu::elementwise::Program;
use oflow_kernels::cpu::loss::{Classes, cross_entropy, cross_entropy_grad};
use oflow_kernels::cpu::norm::{Norm, NormGrads, layer_norm, layer_norm_grad};
use oflow_kernels::cpu::optim::{AdamW, adamw};
use oflow_kernels::cpu::reduce::{Reduce, reduce};
use oflow_kernels::cpu::{copy, embedding, matmul};
use oflow_kernels::expr::{BinaryOp, Expr};
use oflow_kernels::{DType, View};
use std::time::{Duration, Instant};

const BATCH: usize = 16;
const TOKENS: usize = 128;
const ROWS: usize = BATCH * TOKENS;
const WIDTH: usize = 256;
const HEADS: usize = 4;
const DEPTH: usize = WIDTH / HEADS;
const LAYERS: usize = 4;
const CLASSES: usize = 256;
const PARAMETERS: usize = 3_355_136;

/// One line of the table.
struct Line {
    name: String,
    count: usize,
    seconds: f64,
    /// Floating-point operations where that is the measure, else bytes.
    work: f64,
    unit: &'static str,
}

struct Table {
    filter: String,
    lines: Vec<Line>,
}

impl Table {
    /// Times `f`, which does `work` floating-point operations (`unit` "GF/s") or moves as many bytes ("GB/s").
    fn time(&mut self, name: &str, count: usize, work: usize, unit: &'static str, mut f: impl FnMut()) {
        if !name.contains(&self.filter) {
            return;
        }
        f();
        let (mut best, start) = (f64::INFINITY, Instant::now());
        let mut runs = 0;
        while runs < 5 || (start.elapsed() < Duration::from_millis(400) && runs < 400) {
            let start = thread_seconds();
            f();
            best = best.min(thread_seconds() - start);
            runs += 1;
        }
        self.lines.push(Line { name: name.to_string(), count, seconds: best, work: work as f64, unit });
    }

    fn print(&self) {
        let total: f64 = self.lines.iter().map(|l| l.seconds * l.count as f64).sum();
        println!("{:<34} {:>6} {:>10} {:>10} {:>7}", "kernel", "calls", "us/call", "ms/step", "share");
        for l in &self.lines {
            let all = l.seconds * l.count as f64;
            println!(
                "{:<34} {:>6} {:>10.1} {:>10.2} {:>6.1}% {:>8.1} {}",
                l.name,
                l.count,
                l.seconds * 1e6,
                all * 1e3,
                all / total * 100.0,
                l.work / l.seconds * 1e-9,
                l.unit
            );
        }
        println!("{:<34} {:>6} {:>10} {:>10.2}", "sum", "", "", total * 1e3);
    }
}

/// The processor time of this thread: what others run on the machine meanwhile does not count.
fn thread_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// A leaked tensor of numbers around zero: the program ends soon.
fn tensor(dims: &[usize]) -> View {
    let n: usize = dims.iter().product();
    // Aligned to cache lines, as the tensors of the runtime are.
    let data = vec![0f32; n + 16].leak();
    let skip = data.as_ptr().align_offset(64);
    let data = &mut data[skip..skip + n];
    for (i, x) in data.iter_mut().enumerate() {
        *x = ((i.wrapping_mul(2_654_435_761) >> 7) % 2001) as f32 * 1e-3 - 1.0;
    }
    // SAFETY: leaked, so it outlives all views; every call below writes only to outputs of its own.
    unsafe { View::from_mut(data, dims) }
}

fn ids(count: usize, below: usize) -> View {
    let data: Vec<i64> = (0..count).map(|i| (i.wrapping_mul(2_654_435_761) >> 9) as i64 % below as i64).collect();
    // SAFETY: leaked and only read.
    unsafe { View::from_slice(data.leak(), &[count]) }
}

/// The transposed matrix.
fn turned(v: &View) -> View {
    let (d, s) = (v.dims(), v.strides());
    // SAFETY: the same elements in another order.
    unsafe { v.restride(0, [d[1], d[0]].as_slice().into(), [s[1], s[0]].as_slice().into()) }
}

/// `[B * T, H * D]` seen as `[B, H, T, D]`.
fn heads(v: &View) -> View {
    let dims = [BATCH, HEADS, TOKENS, DEPTH];
    let strides = [(TOKENS * WIDTH) as isize, DEPTH as isize, WIDTH as isize, 1];
    // SAFETY: the same elements in another order.
    unsafe { v.restride(0, dims.as_slice().into(), strides.as_slice().into()) }
}

fn program(e: &Expr, inputs: usize) -> Program {
    Program::compile(e, &vec![DType::F32; inputs], DType::F32).expect("compiles")
}

fn products(t: &mut Table) {
    for (calls, inputs, outputs) in
        [(4 * LAYERS + 1, WIDTH, WIDTH), (LAYERS, WIDTH, 4 * WIDTH), (LAYERS, 4 * WIDTH, WIDTH)]
    {
        let (x, w, y) = (tensor(&[ROWS, inputs]), tensor(&[outputs, inputs]), tensor(&[ROWS, outputs]));
        let (dx, dw) = (tensor(&[ROWS, inputs]), tensor(&[outputs, inputs]));
        let flops = 2 * ROWS * inputs * outputs;
        let mut product = |name: &str, a: &View, b: &View, out: &View| {
            let name = format!("matmul {name} {inputs}->{outputs}");
            t.time(&name, calls, flops, "GF/s", || matmul::matmul(a, b, out).expect("fits"));
        };
        product("x Wt", &x, &turned(&w), &y);
        product("dy W", &y, &w, &dx);
        product("dyt x", &turned(&y), &x, &dw);
    }
}

fn elementwise(t: &mut Table) {
    let add = program(&Expr::parse("a + b", &["a", "b"], &[]).expect("valid"), 2);
    let text = "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))";
    let gelu = Expr::parse(text, &["x"], &[]).expect("valid");
    let slope = gelu.derivative(0).substitute(&[Expr::Input(1)], &[], Some(&Expr::Input(2)));
    let slope = program(&Expr::binary(BinaryOp::Mul, Expr::Input(0), slope), 3);
    let gelu = program(&gelu, 1);
    for (name, calls, width) in [("add bias 256", 5 * LAYERS, WIDTH), ("add bias 1024", LAYERS, 4 * WIDTH)] {
        let (x, b, y) = (tensor(&[ROWS, width]), tensor(&[width]), tensor(&[ROWS, width]));
        t.time(name, calls, ROWS * width * 8, "GB/s", || add.run(&[x.clone(), b.clone()], &[], &y).expect("runs"));
    }
    for (name, calls, width) in [("bias gradient 256", 5 * LAYERS, WIDTH), ("bias gradient 1024", LAYERS, 4 * WIDTH)] {
        let (x, b) = (tensor(&[ROWS, width]), tensor(&[1, width]));
        t.time(name, calls, ROWS * width * 4, "GB/s", || reduce(&x, &b, Reduce::Sum, &[0]).expect("runs"));
    }
    let (x, y, z) = (tensor(&[ROWS, WIDTH]), tensor(&[ROWS, WIDTH]), tensor(&[ROWS, WIDTH]));
    // Residuals forward; their gradients and the three that meet at q, k and v backward; the embeddings.
    t.time("add residual", 6 * LAYERS + 1, ROWS * WIDTH * 12, "GB/s", || {
        add.run(&[x.clone(), y.clone()], &[], &z).expect("runs");
    });
    let wide = [ROWS, 4 * WIDTH];
    let (x, y, dy, dx) = (tensor(&wide), tensor(&wide), tensor(&wide), tensor(&wide));
    t.time("gelu_tanh", LAYERS, ROWS * WIDTH * 32, "GB/s", || {
        gelu.run(std::slice::from_ref(&x), &[], &y).expect("runs")
    });
    t.time("gelu_tanh gradient", LAYERS, ROWS * WIDTH * 48, "GB/s", || {
        slope.run(&[dy.clone(), x.clone(), y.clone()], &[], &dx).expect("runs");
    });
}

fn norms(t: &mut Table) {
    let (x, y, dy, dx) =
        (tensor(&[ROWS, WIDTH]), tensor(&[ROWS, WIDTH]), tensor(&[ROWS, WIDTH]), tensor(&[ROWS, WIDTH]));
    let (w, b, dw, db) = (tensor(&[WIDTH]), tensor(&[WIDTH]), tensor(&[WIDTH]), tensor(&[WIDTH]));
    let (mean, rstd) = (tensor(&[ROWS]), tensor(&[ROWS]));
    let norm = Norm { dims: 1, eps: 1e-5, weight: Some(&w), bias: Some(&b) };
    layer_norm(&x, &norm, &y, &mean, &rstd).expect("fits");
    t.time("layer_norm", 2 * LAYERS + 1, ROWS * WIDTH * 8, "GB/s", || {
        layer_norm(&x, &norm, &y, &mean, &rstd).expect("fits");
    });
    let grads = NormGrads { dx: Some(&dx), dweight: Some(&dw), dbias: Some(&db) };
    t.time("layer_norm gradient", 2 * LAYERS + 1, ROWS * WIDTH * 12, "GB/s", || {
        layer_norm_grad(&dy, &x, &mean, &rstd, &norm, &grads).expect("fits");
    });
}

fn attend(t: &mut Table) {
    let [q, k, v, out, dout, dq, dk, dv] = std::array::from_fn(|_| heads(&tensor(&[ROWS, WIDTH])));
    let lse = tensor(&[BATCH, HEADS, TOKENS]);
    let inputs = Qkv { q: &q, k: &k, v: &v };
    let settings = Attention { scale: 0.125, causal: true, offset: 0 };
    let flops = 4 * ROWS * TOKENS * WIDTH;
    attention(&inputs, &out, &lse, &settings).expect("fits");
    t.time("attention", LAYERS, flops, "GF/s", || attention(&inputs, &out, &lse, &settings).expect("fits"));
    let grads = Qkv { q: &dq, k: &dk, v: &dv };
    t.time("attention gradient", LAYERS, flops / 2 * 5, "GF/s", || {
        attention_grad(&dout, &inputs, &out, &lse, &grads, &settings).expect("fits");
    });
    // Only where a tensor must be contiguous; the step above needs none of these.
    let (flat, split) = (tensor(&[ROWS, WIDTH]), tensor(&[BATCH, HEADS, TOKENS, DEPTH]));
    t.time("copy to heads (not in the step)", 0, ROWS * WIDTH * 8, "GB/s", || {
        copy::copy(&heads(&flat), &split).expect("fits");
    });
    t.time("copy from heads (not in the step)", 0, ROWS * WIDTH * 8, "GB/s", || {
        copy::copy(&split, &heads(&flat)).expect("fits");
    });
}

fn ends(t: &mut Table) {
    let (table, x, dtable) = (tensor(&[CLASSES, WIDTH]), tensor(&[ROWS, WIDTH]), tensor(&[CLASSES, WIDTH]));
    let tokens = ids(ROWS, CLASSES);
    t.time("embedding", 1, ROWS * WIDTH * 8, "GB/s", || embedding::embedding(&table, &tokens, &x, 0).expect("fits"));
    t.time("embedding gradient", 1, ROWS * WIDTH * 4, "GB/s", || {
        embedding::embedding_grad(&x, &tokens, &dtable, 0, dtable.dims()[0]).expect("fits");
    });
    let (logits, dlogits, target) = (tensor(&[ROWS, CLASSES]), tensor(&[ROWS, CLASSES]), ids(ROWS, CLASSES));
    let (loss, lse, dloss) = (tensor(&[ROWS]), tensor(&[ROWS]), tensor(&[ROWS]));
    let classes = Classes::whole(CLASSES);
    cross_entropy(&logits, &target, &loss, &lse, &classes).expect("fits");
    t.time("cross_entropy", 1, ROWS * CLASSES * 4, "GB/s", || {
        cross_entropy(&logits, &target, &loss, &lse, &classes).expect("fits");
    });
    t.time("cross_entropy gradient", 1, ROWS * CLASSES * 8, "GB/s", || {
        cross_entropy_grad(&logits, &target, &lse, &dloss, &dlogits, &classes).expect("fits");
    });
    let [p, g, m, v] = std::array::from_fn(|_| tensor(&[PARAMETERS]));
    copy::fill(&v, oflow_kernels::Scalar::Float(0.01)).expect("fills");
    let settings = AdamW { lr: 1e-4, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01, step: 10 };
    t.time("adamw", 1, PARAMETERS * 28, "GB/s", || adamw(&p, &g, &m, &v, &settings).expect("fits"));
}

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let mut table = Table { filter, lines: Vec::new() };
    products(&mut table);
    elementwise(&mut table);
    norms(&mut table);
    attend(&mut table);
    ends(&mut table);
    table.print();
}
