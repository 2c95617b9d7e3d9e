//! The choice of a signature for a call that no dispatch cache has: cold, with the boxing plans known and unknown.
//!
//! `cargo bench --bench choice` prints µs per choice: the median over calls whose sizes differ, so that no boxing plan is
//! known ("plans unknown"), then of the same calls again.

use oflow::Result;
use oflow::boxing::{ChoiceInput, choose, resolve_attrs, signatures};
use oflow::kernels::DType;
use oflow::ops::{InferCtx, TensorType, find};
use oflow::placement::{Device, Placement};
use oflow::sbp::NdSbp;
use std::time::Instant;

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

/// Runs `f` on the call with sizes of number `n`.
fn ask<T>(call: &Call, n: usize, f: impl Fn(&ChoiceInput<'_>) -> Result<T>) -> Result<(T, f64)> {
    let op = find(call.op)?;
    let (attrs, runtime) = resolve_attrs(op, &[])?;
    let (types, sbps): (Vec<_>, Vec<_>) = (call.inputs)(n).into_iter().unzip();
    let types: Vec<Option<TensorType>> = types.into_iter().map(Some).collect();
    let sbps = sbps.into_iter().map(|s| s.parse::<NdSbp>().map(Some)).collect::<Result<Vec<_>>>()?;
    let ranks: Vec<usize> = (0..call.mesh.iter().product()).collect();
    let placement = Placement::new(Device::Cpu, &ranks, call.mesh)?;
    let infer = InferCtx { op, inputs: &types, attrs: &attrs, runtime_kinds: &[] };
    let outs = op.infer(&infer)?;
    let grads = vec![std::env::args().any(|a| a == "--grad"); types.len()];
    let input = ChoiceInput {
        op,
        infer: &infer,
        outs: &outs,
        placement: &placement,
        sbps: &sbps,
        needs_grad: &grads,
        fixed_inputs: &[],
        given_out: None,
        request: None,
        runtime: &runtime,
    };
    let start = Instant::now();
    let answer = f(&input)?;
    Ok((answer, start.elapsed().as_secs_f64() * 1e6))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<()> {
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
