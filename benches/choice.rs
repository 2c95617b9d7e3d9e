//! The choice of a signature for a call that no dispatch cache has: cold, with the boxing plans known and unknown.
//!
//! `cargo bench --bench choice` prints µs per choice: the median over calls whose sizes differ, so that no boxing plan is
//! known ("plans unknown"), then of the same calls again. Times are of the processor, so a machine may be busy.
//!
//! `cargo bench --bench choice -- --random` asks calls of up to 4 inputs, 4 mesh axes and 8 dims on random layouts, with no
//! plan known, and prints the median and the worst by op, sizes and gradients, with the call that took longest.

use oflow::Result;
use oflow::boxing::{ChoiceInput, choose, signatures};
use oflow::kernels::DType;
use oflow::ops::{InferCtx, Op, TensorType, find, resolve_attrs};
use oflow::placement::{Device, Placement};
use oflow::sbp::{NdSbp, Sbp};
use rustix::time::{ClockId, clock_gettime};

/// Few enough that their plans are all remembered when they are asked for again.
const CALLS_EACH: usize = 15;

struct Call {
    op: &'static str,
    /// Type and layout of each input, as a function of a number that changes the sizes.
    inputs: fn(usize) -> Vec<(TensorType, &'static str)>,
    mesh: &'static [usize],
}

fn f32s(shape: &[usize]) -> TensorType {
    TensorType::new(shape, DType::F32)
}

/// A tensor of so many dims, whose first size tells it from others.
fn many_dims(dims: usize, n: usize) -> TensorType {
    let mut shape = vec![if dims > 8 { 2 } else { 6 }; dims];
    shape[0] = 16 + n;
    f32s(&shape)
}

const TWELVE: [&str; 12] = [
    "[S(0), B, B]",
    "[B, S(0), B]",
    "[B, B, S(0)]",
    "[S(1), B, B]",
    "[S(0), S(1), B]",
    "[P, B, B]",
    "[B, P, S(2)]",
    "[S(2), B, B]",
    "[S(0), S(0), B]",
    "[B, S(2), B]",
    "[P, P, B]",
    "[S(0), S(1), S(2)]",
];

const CALLS: &[(&str, Call)] = &[
    (
        "add, nothing moves, [2, 2, 2]",
        Call {
            op: "add",
            inputs: |n| vec![(f32s(&[64 + n, 96]), "[S(0), B, S(1)]"), (f32s(&[64 + n, 96]), "[S(0), B, S(1)]")],
            mesh: &[2, 2, 2],
        },
    ),
    (
        "matmul, one moves, [2, 2, 2]",
        Call {
            op: "matmul",
            inputs: |n| vec![(f32s(&[64 + n, 96]), "[S(0), B, B]"), (f32s(&[96, 64]), "[S(0), B, S(1)]")],
            mesh: &[2, 2, 2],
        },
    ),
    (
        "concat of 12, nothing moves, [2, 2, 2]",
        Call { op: "concat", inputs: |n| vec![(f32s(&[64 + n, 96, 32]), "[S(1), B, S(2)]"); 12], mesh: &[2, 2, 2] },
    ),
    (
        "concat of 12 alike that move, [2, 2, 2]",
        Call { op: "concat", inputs: |n| vec![(f32s(&[64 + n, 96, 32]), "[S(0), B, S(1)]"); 12], mesh: &[2, 2, 2] },
    ),
    (
        "concat of 12 that all differ, [2, 2, 2]",
        Call {
            op: "concat",
            inputs: |n| TWELVE.iter().map(|s| (f32s(&[64 + n, 96, 32]), *s)).collect(),
            mesh: &[2, 2, 2],
        },
    ),
    (
        "add, 6 dims, [2, 2, 2, 2]",
        Call {
            op: "add",
            inputs: |n| vec![(many_dims(6, n), "[S(0), S(1), P, B]"), (many_dims(6, n), "[B, S(2), S(1), S(0)]")],
            mesh: &[2, 2, 2, 2],
        },
    ),
    (
        "relu, 8 dims, [2, 2, 2, 2]",
        Call { op: "relu", inputs: |n| vec![(many_dims(8, n), "[P, S(0), B, S(1)]")], mesh: &[2, 2, 2, 2] },
    ),
    (
        "add, 20 dims, [2, 2, 2]",
        Call {
            op: "add",
            inputs: |n| vec![(many_dims(20, n), "[S(0), P, S(1)]"), (many_dims(20, n), "[S(2), S(1), P]")],
            mesh: &[2, 2, 2],
        },
    ),
];

/// Processor time of this thread, in µs. A choice runs on one thread and waits for nothing, so other load does not count.
fn cpu_us() -> f64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as f64 * 1e6 + t.tv_nsec as f64 / 1e3
}

/// A call to ask about.
struct Asked<'a> {
    op: &'static Op,
    types: Vec<Option<TensorType>>,
    sbps: Vec<Option<NdSbp>>,
    grads: Vec<bool>,
    mesh: &'a [usize],
    request: Option<NdSbp>,
}

impl Asked<'_> {
    /// Runs `f` on the call, and says how many µs of the processor it took.
    fn ask<T>(&self, f: impl FnOnce(&ChoiceInput<'_>) -> Result<T>) -> Result<(T, f64)> {
        let (attrs, runtime) = resolve_attrs(self.op, &[])?;
        let ranks: Vec<usize> = (0..self.mesh.iter().product()).collect();
        let placement = Placement::new(Device::Cpu, &ranks, self.mesh)?;
        let kinds: Vec<_> = runtime.iter().map(|s| s.kind()).collect();
        let infer = InferCtx { op: self.op, inputs: &self.types, attrs: &attrs, runtime_kinds: &kinds };
        let outs = self.op.infer(&infer)?;
        let input = ChoiceInput {
            op: self.op,
            infer: &infer,
            outs: &outs,
            placement: &placement,
            sbps: &self.sbps,
            needs_grad: &self.grads,
            fixed_inputs: &[],
            given_out: None,
            request: self.request.as_ref(),
            keep: false,
        };
        let start = cpu_us();
        let answer = f(&input)?;
        Ok((answer, cpu_us() - start))
    }

    fn outs(&self) -> Result<Vec<TensorType>> {
        Ok(self.ask(|c| Ok(c.outs.to_vec()))?.0)
    }
}

/// Runs `f` on the call with sizes of number `n`.
fn ask<T>(call: &Call, n: usize, f: impl Fn(&ChoiceInput<'_>) -> Result<T>) -> Result<(T, f64)> {
    let op = find(call.op)?;
    let (types, sbps): (Vec<_>, Vec<_>) = (call.inputs)(n).into_iter().unzip();
    let types: Vec<Option<TensorType>> = types.into_iter().map(Some).collect();
    let sbps = sbps.into_iter().map(|s| s.parse::<NdSbp>().map(Some)).collect::<Result<Vec<_>>>()?;
    let grads = vec![std::env::args().any(|a| a == "--grad"); types.len()];
    Asked { op, types, sbps, grads, mesh: call.mesh, request: None }.ask(f)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Op, shapes of its inputs for a tensor of these sizes.
type Shapes = fn(&[usize]) -> Vec<TensorType>;

const RANDOM: &[(&str, Shapes)] = &[
    ("relu", |s| vec![f32s(s)]),
    ("add", |s| vec![f32s(s); 2]),
    ("where", |s| vec![TensorType::new(s, DType::Bool), f32s(s), f32s(s)]),
    ("layer_norm", |s| vec![f32s(s), f32s(&s[s.len() - 1..]), f32s(&s[s.len() - 1..])]),
    ("matmul", |s| {
        let mut other = s.to_vec();
        let n = s.len();
        (other[n - 2], other[n - 1]) = (s[n - 1], 24);
        vec![f32s(s), f32s(&other)]
    }),
    ("concat", |s| vec![f32s(s); 4]),
];

/// A generator of numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = (self.0 ^ self.0 >> 29).wrapping_mul(0xbf58476d1ce4e5b9);
        ((x ^ x >> 32) % n as u64) as usize
    }

    /// A layout: mostly splits, some B, some P.
    fn layout(&mut self, t: &TensorType, axes: usize, partial: bool) -> NdSbp {
        let dims = t.shape.len();
        let mut axis = || match self.below(dims + 3) {
            d if d < dims => Sbp::Split(d),
            d if d == dims && partial && t.dtype != DType::Bool => Sbp::PARTIAL_SUM,
            _ => Sbp::Broadcast,
        };
        (0..axes).map(|_| axis()).collect()
    }
}

/// Asks random calls and prints what the slowest take.
fn random() -> Result<()> {
    const ROUNDS: usize = 6;
    const MESHES: [&[usize]; 7] = [&[8], &[2, 4], &[2, 2, 2], &[3, 2, 2], &[2, 2, 2, 2], &[2, 3, 2, 2], &[4, 2, 4, 2]];
    println!("{:<12}{:<14}{:>5}{:>12}{:>12}  slowest", "op", "mesh", "dims", "median ms", "most ms");
    let mut asked = 0;
    let only = std::env::args().skip_while(|a| a != "--random").nth(1);
    for (name, shapes) in RANDOM.iter().filter(|r| only.as_ref().is_none_or(|o| o == r.0 || o.starts_with('-'))) {
        for mesh in MESHES {
            for dims in [2, 4, 6, 8] {
                let mut times = vec![];
                for round in 0..ROUNDS {
                    asked += 1;
                    let mut r = Random(asked);
                    let sizes: &[usize] = if round % 2 == 0 { &[16, 48] } else { &[16, 6, 7, 12, 3, 5, 16, 9] };
                    let mut shape: Vec<usize> = (0..dims).map(|_| sizes[r.below(sizes.len())]).collect();
                    // No plan is known: no other call has tensors of this size.
                    shape[0] = if round % 2 == 0 { 48 * asked as usize } else { 48 * asked as usize + 1 };
                    let types = shapes(&shape);
                    let sbps: Vec<NdSbp> = types.iter().map(|t| r.layout(t, mesh.len(), true)).collect();
                    let grads: Vec<bool> =
                        types.iter().map(|t| round % 3 > 0 && t.dtype == DType::F32 && r.below(3) > 0).collect();
                    let ask_for = r.below(4) == 0;
                    let (text, op) = (format!("{shape:?} {sbps:?} {grads:?}"), find(name)?);
                    let (types, sbps) = (types.into_iter().map(Some).collect(), sbps.into_iter().map(Some).collect());
                    let call = Asked { op, types, sbps, grads, mesh, request: None };
                    let request = if ask_for { Some(r.layout(&call.outs()?[0], mesh.len(), false)) } else { None };
                    let text = format!("{text} asking {request:?}");
                    let (choice, time) = Asked { request, ..call }.ask(choose)?;
                    let proven = if choice.unproven.is_some() { "NOT PROVEN " } else { "" };
                    times.push((time / 1e3, format!("{proven}{text}")));
                }
                times.sort_by(|a, b| a.0.total_cmp(&b.0));
                let (most, open) = (&times[ROUNDS - 1], times.iter().filter(|t| t.1.starts_with("NOT")).count());
                let open = if open > 0 { format!("{open} not proven; ") } else { String::new() };
                let mesh = format!("{mesh:?}");
                println!(
                    "{name:<12}{mesh:<14}{dims:>5}{:>12.2}{:>12.2}  {open}{}",
                    times[ROUNDS / 2].0,
                    most.0,
                    most.1
                );
            }
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    if std::env::args().any(|a| a == "--random") {
        return random();
    }
    println!("{:<44}{:>12}{:>16}{:>16}", "call", "candidates", "plans unknown", "plans known");
    for (name, call) in CALLS {
        let count = ask(call, 0, |c| Ok(signatures(c)?.count()))?.0;
        let mut proven = true;
        let mut times = |_| {
            let ask = |n| {
                let (choice, time) = ask(call, n, choose)?;
                proven &= choice.unproven.is_none();
                Ok(time)
            };
            (1..=CALLS_EACH).map(ask).collect::<Result<Vec<f64>>>()
        };
        let (cold, warm) = (median(times(())?), median(times(())?));
        let proven = if proven { "" } else { "  not proven" };
        println!("{name:<44}{count:>12}{cold:>13.1} us{warm:>13.1} us{proven}");
    }
    Ok(())
}
