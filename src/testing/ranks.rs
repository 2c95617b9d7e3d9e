//! Cases on simulated ranks: run on every rank, put together, and compared with the call on one device.

use super::case::{half, leaf, run};
use super::exact::exact;
use super::layout::{Value, assemble, close, deal};
use super::{Case, Complaint, guarded, mesh_of, panicked, said};
use crate::context::{keep_layouts, run_ranks};
use crate::error::Result;
use crate::functional::{IntoTarget, distribute, zeros};
use crate::interpreter::Target;
use crate::ops::TensorType;
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp};
use crate::tensor::Tensor;
use oflow_kernels::DType;

/// A tensor of the result as one rank sees it.
struct Piece {
    ty: TensorType,
    sbp: NdSbp,
    shard: Value,
}

fn piece(t: &Tensor) -> Result<Piece> {
    Ok(Piece { ty: t.ty().clone(), sbp: t.sbp()?.clone(), shard: Value::of(&t.detach().to_local()?)? })
}

struct RankOut {
    results: Vec<Piece>,
    grads: Vec<Option<Piece>>,
    boxings: usize,
    /// SBP of the outputs where the interpreter chose freely, if a second call was needed to reach the signature.
    free: Option<Vec<NdSbp>>,
}

fn on_rank(case: &Case, mesh: &Placement, position: usize) -> Result<RankOut> {
    let of = &case.reference;
    // A signature is to be carried out also where moving an input would cost less.
    let _kept = case.expect.as_ref().map(|_| keep_layouts());
    let make = || -> Result<Vec<Option<Tensor>>> {
        let each = |(v, s): (&Option<Value>, &Option<NdSbp>)| {
            let (Some(v), Some(s)) = (v, s) else { return Ok(None) };
            let t = match s.has_partial() {
                true => deal(v, mesh, s, position).local(mesh.device())?.to_global((mesh, s.clone()))?,
                false => distribute(&v.local(mesh.device())?, (mesh, s.clone()))?,
            };
            leaf(of, t).map(Some)
        };
        of.inputs.iter().zip(&case.sbps).map(each).collect()
    };
    let inputs = make()?;
    let target = Target::Global(mesh.clone(), case.sbps.first().cloned().flatten().unwrap_or_default());
    let mut p = run(of, &inputs, &target, None)?;
    let mut free = None;
    if let Some(e) = &case.expect {
        let outs: Vec<NdSbp> =
            p.results.iter().take(e.outputs.len()).map(|t| t.sbp().cloned()).collect::<Result<_>>()?;
        if outs[..] != e.outputs[..] {
            free = Some(outs);
            if e.outputs.len() == 1 && !inputs.is_empty() && of.op.nd_choose.is_none() {
                // Another signature with the same inputs is preferred; a given output asks for this one.
                let like = &p.results[0];
                let given = zeros(like.shape(), (mesh, e.outputs[0].clone()).dtype(like.dtype()))?;
                let plain: Vec<Option<Tensor>> = make()?.into_iter().map(|t| t.map(|t| t.detach())).collect();
                let again = run(of, &plain, &target, Some(&given))?;
                (p.results, p.boxings) = (again.results, again.boxings);
            }
        }
    }
    Ok(RankOut {
        results: p.results.iter().map(piece).collect::<Result<_>>()?,
        grads: p.grads.iter().map(|g| g.as_ref().map(piece).transpose()).collect::<Result<_>>()?,
        boxings: p.boxings,
        free,
    })
}

/// The layout of a result that is as wanted.
fn compare(
    case: &Case,
    mesh: &Placement,
    what: &str,
    want: &Value,
    pieces: Vec<&Piece>,
    exact: bool,
    slack: f64,
) -> Result<NdSbp, String> {
    let Some(first) = pieces.first() else { return Err(format!("{what} is on no rank")) };
    let (ty, sbp) = (first.ty.clone(), first.sbp.clone());
    if pieces.iter().any(|p| p.ty != ty || p.sbp != sbp) {
        return Err(format!("{what}: ranks differ in the layout"));
    }
    if ty != want.ty {
        return Err(format!("{what} is {ty} instead of {}", want.ty));
    }
    let shards: Vec<Value> = pieces.iter().map(|p| p.shard.clone()).collect();
    let have = assemble(&ty, mesh, &sbp, &shards).map_err(|e| format!("{what} {sbp}: {e}"))?;
    // Parts of a half-precision sum are rounded one by one; the input's precision rules.
    let dtype = if half(&case.reference) && ty.dtype.is_float() { DType::BF16 } else { ty.dtype };
    // Parts of a sum cancel: their rounding is that of the largest of them.
    let parts = match sbp.contains(&Sbp::PARTIAL_SUM) {
        true => shards.iter().flat_map(|s| &s.data).filter(|x| x.is_finite()).fold(1.0, |m: f64, x| m.max(x.abs())),
        false => 1.0,
    };
    match have.iter().zip(&want.data).position(|(a, b)| !close(dtype, exact, *a, *b, slack * parts)) {
        Some(i) => Err(format!("{what} {sbp}: element {i} is {} instead of {}", have[i], want.data[i])),
        None => Ok(sbp),
    }
}

fn verify(case: &Case, mesh: &Placement, ranks: &[&RankOut]) -> Result<bool, String> {
    let of = &case.reference;
    let mut outs = vec![];
    for (i, want) in of.want.results.iter().enumerate() {
        let pieces = ranks.iter().filter_map(|r| r.results.get(i)).collect();
        outs.push(compare(case, mesh, &format!("result {i}"), want, pieces, exact(of), 1.0)?);
    }
    for (i, want) in of.want.grads.iter().enumerate() {
        let have: Vec<&Piece> = ranks.iter().filter_map(|r| r.grads[i].as_ref()).collect();
        match want {
            None if have.is_empty() => {}
            None => return Err(format!("input {i} got a gradient that it does not get on one device")),
            Some(_) if have.len() < ranks.len() => return Err(format!("input {i} got no gradient")),
            Some(want) => {
                let sbp = compare(case, mesh, &format!("gradient {i}"), want, have, false, 20.0)?;
                if Some(&sbp) != case.sbps[i].as_ref() {
                    return Err(format!("gradient {i} has the layout {sbp}, the input another"));
                }
            }
        }
    }
    let Some(expect) = &case.expect else { return Ok(true) };
    let n = expect.outputs.len();
    let legal = |outs: &[NdSbp]| {
        (0..mesh.axes()).all(|a| {
            case.rows.iter().any(|r| {
                r.inputs.iter().zip(&case.sbps).all(|(s, n)| n.as_ref().is_none_or(|n| n[a] == *s))
                    && r.outputs.iter().zip(outs).all(|(s, n)| n[a] == *s)
            })
        })
    };
    if of.inputs.is_empty() {
        return match outs[..n] == expect.outputs[..] {
            true => Ok(true),
            false => Err(format!("a source made {outs:?}")),
        };
    }
    // An op that takes its signature itself may take another one, and box for it.
    if of.op.nd_choose.is_some() {
        return Ok(outs[..n] == expect.outputs[..]);
    }
    if let Some(free) = &ranks[0].free
        && !legal(free)
    {
        return Err(format!("the interpreter took the outputs {free:?}, which no signature gives for these inputs"));
    }
    let reached = outs[..n] == expect.outputs[..];
    if !reached && !legal(&outs[..n]) {
        return Err(format!("the outputs are {outs:?}, which no signature gives for these inputs"));
    }
    let lowered = case.rows.iter().any(|r| r.lowering.is_some());
    if !lowered && ranks.iter().any(|r| r.boxings > 0) {
        return Err("the interpreter boxed although a signature fits".into());
    }
    Ok(reached)
}

/// Runs cases on one mesh of CPUs. Returns for each whether the expected signature itself was reached (another one may be
/// cheaper), or what is wrong.
pub fn run_cases(mesh: &[usize], cases: &[Case]) -> Vec<Result<bool, Complaint>> {
    run_cases_on(Device::Cpu, mesh, cases)
}

/// As [`run_cases`], on devices of that kind.
pub fn run_cases_on(device: Device, mesh: &[usize], cases: &[Case]) -> Vec<Result<bool, Complaint>> {
    let together = mesh_of(device, mesh).and_then(|place| guarded(|| together(&place, cases)));
    match together {
        Ok(verdicts) => verdicts,
        Err(e) => match cases {
            [] => vec![],
            [one] if panicked(&e) => vec![Err(format!("{}: {}", one.describe(mesh), said(&e)))],
            [one] => vec![Err(format!("{}: {e}", one.describe(mesh)))],
            // The ranks did not come to the end: one case after the other, to find those at fault.
            _ => cases.iter().flat_map(|c| run_cases_on(device, mesh, std::slice::from_ref(c))).collect(),
        },
    }
}

/// All cases in one run of the ranks.
///
/// # Errors
/// The run as a whole failed: a rank panicked, or ranks wait for each other.
fn together(place: &Placement, cases: &[Case]) -> Result<Vec<Result<bool, Complaint>>> {
    let run = |rank: usize| cases.iter().map(|c| on_rank(c, place, rank)).collect::<Vec<_>>();
    let ranks = run_ranks(place.len(), |w| Ok(run(w.rank())))?;
    let judge = |(k, case): (usize, &Case)| {
        let mut outs = vec![];
        for (rank, r) in ranks.iter().enumerate() {
            match &r[k] {
                Ok(o) => outs.push(o),
                Err(e) => return Err(format!("{}: rank {rank}: {e}", case.describe(place.dims()))),
            }
        }
        verify(case, place, &outs).map_err(|e| format!("{}: {e}", case.describe(place.dims())))
    };
    Ok(cases.iter().enumerate().map(judge).collect())
}
