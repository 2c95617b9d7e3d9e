//! Cases: one call with one layout of its inputs on one mesh, and what it must give.

use super::layout::{Value, assemble, close, deal};
use super::sample::Sample;
use super::{mix, seed};
use oflow::functional::IntoTarget;
use oflow::interpreter::{self, Call, Target};
use oflow::kernels::ReduceOp;
use oflow::ops::{Attrs, Grad, InferCtx, NdSignature, Op, RuntimeAttrs, TensorType};
use oflow::placement::{Device, Placement};
use oflow::prelude::{distribute, zeros};
use oflow::sbp::{NdSbp, Sbp, Signature, check_layout};
use oflow::{BackwardOptions, CallSite, Result, Tensor};
use std::sync::Arc;

/// What a call gives on one device.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Outputs, then the mutable inputs as they are afterwards.
    pub results: Vec<Value>,
    /// Gradients of the inputs, where asked for.
    pub grads: Vec<Option<Value>>,
}

/// A call with the values of its inputs.
#[derive(Clone)]
pub struct Plan {
    pub op: &'static Op,
    pub what: String,
    pub inputs: Vec<Option<Value>>,
    pub attrs: Attrs,
    pub runtime: RuntimeAttrs,
    pub backward: bool,
    /// The inputs are small numbers whose sums and products are exact.
    pub small: bool,
    pub want: Outcome,
}

/// A call with the layouts of its inputs.
#[derive(Clone)]
pub struct Case {
    pub plan: Arc<Plan>,
    /// nd-SBP per present input; for a source op that of its output.
    pub sbps: Vec<Option<NdSbp>>,
    /// The signature that must carry it out without boxing.
    pub expect: Option<NdSignature>,
    /// The 1-d rows it may be made of.
    pub rows: Arc<Vec<Signature>>,
}

impl Case {
    /// For messages.
    pub fn describe(&self, mesh: &[usize]) -> String {
        let sbps: Vec<String> = self.sbps.iter().flatten().map(|s| s.to_string()).collect();
        let outs = self.expect.as_ref().map_or(String::new(), |e| format!(" -> {:?}", e.outputs));
        let grad = if self.plan.backward { " with gradients" } else { "" };
        format!("{} with {}{outs} on {mesh:?}{grad}", self.plan.what, sbps.join(", "))
    }
}

/// Whether gradients of this op are to be compared.
pub fn differentiable(op: &Op) -> bool {
    !matches!(op.grad, Grad::Missing | Grad::None) && !op.sig.inputs.iter().any(|i| i.mutable)
}

/// Ops whose further outputs are statistics for the backward pass, without a gradient of their own.
pub const STATISTICS: &[&str] = &["layer_norm", "rms_norm", "attention"];

/// The outputs that gradients may come from.
pub fn differentiable_outputs<'a>(op: &Op, outs: &'a [Tensor]) -> impl Iterator<Item = &'a Tensor> {
    let n = if STATISTICS.contains(&op.name()) { 1 } else { outs.len() };
    outs[..n].iter().filter(|t| t.dtype().is_float() && t.requires_grad())
}

fn weights(ty: &TensorType) -> Value {
    let data = (0..ty.len() as u64).map(|i| (mix(&[i, 99]) % 5) as f64 - 2.0).collect();
    Value { ty: ty.clone(), data }
}

fn call(
    plan: &Plan,
    inputs: &[Option<&Tensor>],
    target: Option<&Target>,
    given: Option<&Tensor>,
) -> Result<Vec<Tensor>> {
    let outs = Call::new(plan.op, inputs)
        .attrs(plan.attrs.clone())
        .runtime(plan.runtime.clone())
        .target(target)
        .given(given)
        .run()?;
    Ok(outs.into_vec())
}

/// Runs the call, and its gradients with fixed out-gradients.
fn run(plan: &Plan, inputs: &[Option<Tensor>], target: &Target, given: Option<&Tensor>) -> Result<Pieces> {
    let refs: Vec<Option<&Tensor>> = inputs.iter().map(|t| t.as_ref()).collect();
    oflow::take_receipts();
    let outs = call(plan, &refs, refs.is_empty().then_some(target), given)?;
    let boxings = oflow::take_receipts().len();
    let mut grads = vec![None; inputs.len()];
    if plan.backward && given.is_none() {
        let floats: Vec<Tensor> = differentiable_outputs(plan.op, &outs).cloned().collect();
        let dys = floats.iter().map(|t| {
            let w = weights(t.ty());
            Ok(Some(match target {
                Target::Local(d) => w.local(*d)?,
                Target::Global(p, _) => distribute(&w.local(p.device())?, (p, NdSbp::broadcast(p.axes())))?,
            }))
        });
        let dys: Vec<Option<Tensor>> = dys.collect::<Result<_>>()?;
        let at: Vec<usize> = (0..inputs.len()).filter(|i| refs[*i].is_some_and(|t| t.requires_grad())).collect();
        let leaves: Vec<Tensor> = at.iter().filter_map(|i| inputs[*i].clone()).collect();
        if !floats.is_empty() && !leaves.is_empty() {
            let found = interpreter::grad(&floats, &leaves, &dys, &BackwardOptions::default(), CallSite::here())?;
            for (i, g) in at.into_iter().zip(found) {
                grads[i] = g;
            }
        }
    }
    let mut results = outs;
    for (i, t) in inputs.iter().enumerate() {
        if plan.op.sig.mutates(i) {
            results.extend(t.clone());
        }
    }
    Ok(Pieces { results, grads, boxings })
}

struct Pieces {
    results: Vec<Tensor>,
    grads: Vec<Option<Tensor>>,
    boxings: usize,
}

fn leaf(plan: &Plan, t: Tensor) -> Result<Tensor> {
    if plan.backward && t.dtype().is_float() { t.requires_grad_(true) } else { Ok(t) }
}

/// The call on the CPU: what every mesh and every other device must reproduce.
///
/// # Errors
/// When the op refuses these inputs.
pub fn local_outcome(op: &'static Op, what: &str, sample: &Sample, exact: bool, backward: bool) -> Result<Plan> {
    let (attrs, runtime) = sample.attributes(op)?;
    let inputs = sample.values(seed(what), exact);
    let want = Outcome { results: vec![], grads: vec![] };
    let mut plan = Plan { op, what: what.to_string(), inputs, attrs, runtime, backward, small: exact, want };
    plan.want = outcome_on(Device::Cpu, &plan)?;
    Ok(plan)
}

fn outcome_on(device: Device, plan: &Plan) -> Result<Outcome> {
    let tensors: Vec<Option<Tensor>> = plan
        .inputs
        .iter()
        .map(|v| v.as_ref().map(|v| leaf(plan, v.local(device)?)).transpose())
        .collect::<Result<_>>()?;
    let p = run(plan, &tensors, &Target::Local(device), None)?;
    Ok(Outcome {
        results: p.results.iter().map(Value::of).collect::<Result<_>>()?,
        grads: p.grads.iter().map(|g| g.as_ref().map(Value::of).transpose()).collect::<Result<_>>()?,
    })
}

/// The call on another device, compared with the CPU's outcome.
pub fn check_device(device: Device, plan: &Plan) -> Result<(), String> {
    let have = outcome_on(device, plan).map_err(|e| format!("{}: {e}", plan.what))?;
    let exact = plan.small && EXACT.contains(&plan.op.name());
    let half = plan.inputs.iter().flatten().any(|v| v.ty.dtype.is_half());
    let near = |what: String, have: &Value, want: &Value, exact: bool, slack: f64| {
        if have.ty != want.ty {
            return Err(format!("{}: {what} is {} instead of {}", plan.what, have.ty, want.ty));
        }
        let exact = exact && !(half && NOT_HALF.contains(&plan.op.name()));
        let dtype = if half && want.ty.dtype.is_float() { oflow::DType::BF16 } else { want.ty.dtype };
        match have.data.iter().zip(&want.data).position(|(a, b)| !close(dtype, exact, *a, *b, slack)) {
            Some(i) => {
                let (a, b) = (have.data[i], want.data[i]);
                Err(format!("{}: {what}, element {i} is {a} instead of {b}", plan.what))
            }
            None => Ok(()),
        }
    };
    // Sums of gradients cancel, whoever asks for them.
    let slack = if plan.op.name().ends_with("_grad") { 20.0 } else { 1.0 };
    for (i, (a, b)) in have.results.iter().zip(&plan.want.results).enumerate() {
        near(format!("result {i}"), a, b, exact, slack)?;
    }
    for (i, (a, b)) in have.grads.iter().zip(&plan.want.grads).enumerate() {
        match (a, b) {
            (Some(a), Some(b)) => near(format!("gradient {i}"), a, b, false, 20.0)?,
            (None, None) => {}
            _ => return Err(format!("{}: gradient {i} is there on one device only", plan.what)),
        }
    }
    Ok(())
}

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
    /// What came out where the interpreter chose freely, if a second call was needed to reach the signature.
    free: Option<Vec<NdSbp>>,
}

/// Names the case when the rank panics in it.
struct Named<'a>(&'a Case, &'a Placement);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in the case {}", self.0.describe(self.1.dims()));
        }
    }
}

fn on_rank(case: &Case, mesh: &Placement, position: usize) -> Result<RankOut> {
    let _named = Named(case, mesh);
    let plan = &case.plan;
    let make = || -> Result<Vec<Option<Tensor>>> {
        let each = |(v, s): (&Option<Value>, &Option<NdSbp>)| {
            let (Some(v), Some(s)) = (v, s) else { return Ok(None) };
            let t = match s.has_partial() {
                true => deal(v, mesh, s, position).local(mesh.device())?.to_global((mesh, s.clone()))?,
                false => distribute(&v.local(mesh.device())?, (mesh, s.clone()))?,
            };
            leaf(plan, t).map(Some)
        };
        plan.inputs.iter().zip(&case.sbps).map(each).collect()
    };
    let inputs = make()?;
    let target = Target::Global(mesh.clone(), case.sbps.first().cloned().flatten().unwrap_or_default());
    let mut p = run(plan, &inputs, &target, None)?;
    let mut free = None;
    if let Some(e) = &case.expect {
        let outs: Vec<NdSbp> =
            p.results.iter().take(e.outputs.len()).map(|t| t.sbp().cloned()).collect::<Result<_>>()?;
        if outs[..] != e.outputs[..] {
            free = Some(outs);
            if e.outputs.len() == 1 && !inputs.is_empty() {
                // Another signature with the same inputs is preferred; a given output asks for this one.
                let like = &p.results[0];
                let given = zeros(like.shape(), (mesh, e.outputs[0].clone()).dtype(like.dtype()))?;
                let plain: Vec<Option<Tensor>> = make()?.into_iter().map(|t| t.map(|t| t.detach())).collect();
                let again = run(plan, &plain, &target, Some(&given))?;
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

/// Ops whose results are exact for the harness's small numbers under every signature.
const EXACT: &[&str] = &[
    "copy",
    "neg",
    "abs",
    "sign",
    "floor",
    "ceil",
    "round",
    "relu",
    "add",
    "sub",
    "mul",
    "maximum",
    "minimum",
    "where",
    "masked_fill",
    "sum",
    "amax",
    "amin",
    "matmul",
    "matmul_rows",
    "linear",
    "embedding",
    "embedding_grad",
    "reshape",
    "permute",
    "expand",
    "slice",
    "slice_grad",
    "concat",
    "tril",
    "triu",
    "cumsum",
    "full",
    "arange",
    "rand",
    "randn",
    "bernoulli",
    "randint",
    "one_hot",
    "nll_pick",
    "assign",
    "argmax",
    "argmin",
    "match_index",
    "clamp",
    "add_scalar",
    "sub_scalar",
    "rsub_scalar",
    "mul_scalar",
    "maximum_scalar",
    "minimum_scalar",
];
/// Those of them whose sums of products exceed what half precision holds exactly.
const NOT_HALF: &[&str] = &["matmul", "matmul_rows", "linear", "mul", "sum", "cumsum", "mul_scalar"];

fn compare(
    case: &Case,
    mesh: &Placement,
    what: &str,
    want: &Value,
    pieces: Vec<&Piece>,
    exact: bool,
    slack: f64,
) -> Result<NdSbp, String> {
    let (ty, sbp) = (pieces[0].ty.clone(), pieces[0].sbp.clone());
    if pieces.iter().any(|p| p.ty != ty || p.sbp != sbp) {
        return Err(format!("{what}: ranks differ in the layout"));
    }
    if ty != want.ty {
        return Err(format!("{what} is {ty} instead of {}", want.ty));
    }
    let shards: Vec<Value> = pieces.iter().map(|p| p.shard.clone()).collect();
    let have = assemble(&ty, mesh, &sbp, &shards).map_err(|e| format!("{what} {sbp}: {e}"))?;
    let half = case.plan.inputs.iter().flatten().any(|v| v.ty.dtype.is_half());
    let exact = exact && !(half && NOT_HALF.contains(&case.plan.op.name()));
    // Parts of a half-precision sum are rounded one by one; the input's precision rules.
    let dtype = if half && ty.dtype.is_float() { oflow::DType::BF16 } else { ty.dtype };
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
    let plan = &case.plan;
    let exact = plan.small && EXACT.contains(&plan.op.name());
    let mut outs = vec![];
    for (i, want) in plan.want.results.iter().enumerate() {
        let pieces = ranks.iter().map(|r| &r.results[i]).collect();
        outs.push(compare(case, mesh, &format!("result {i}"), want, pieces, exact, 1.0)?);
    }
    for (i, want) in plan.want.grads.iter().enumerate() {
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
    if plan.inputs.is_empty() {
        return match outs[..n] == expect.outputs[..] {
            true => Ok(true),
            false => Err(format!("a source made {outs:?}")),
        };
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

/// Runs cases on one mesh of CPUs. Per case whether the expected signature itself was reached, or what is wrong.
pub fn run_cases(mesh: &[usize], cases: &[Case]) -> Vec<Result<bool, String>> {
    run_cases_on(Device::Cpu, mesh, cases)
}

/// The same on devices of that kind.
pub fn run_cases_on(device: Device, mesh: &[usize], cases: &[Case]) -> Vec<Result<bool, String>> {
    let n: usize = mesh.iter().product();
    let place = Placement::new(device, &(0..n).collect::<Vec<_>>(), mesh).expect("mesh");
    let ranks = oflow::run_ranks(n, |w| Ok(cases.iter().map(|c| on_rank(c, &place, w.rank())).collect::<Vec<_>>()));
    let ranks = match ranks {
        Ok(r) => r,
        Err(e) => return cases.iter().map(|c| Err(format!("{}: {e}", c.describe(mesh)))).collect(),
    };
    let judge = |(k, case): (usize, &Case)| {
        let mut outs = vec![];
        for (rank, r) in ranks.iter().enumerate() {
            match &r[k] {
                Ok(o) => outs.push(o),
                Err(e) => return Err(format!("{}: rank {rank}: {e}", case.describe(mesh))),
            }
        }
        verify(case, &place, &outs).map_err(|e| format!("{}: {e}", case.describe(mesh)))
    };
    cases.iter().enumerate().map(judge).collect()
}

/// The nd-signatures of a call on a mesh: every product of 1-d rows that holds there, at most `limit`, spread evenly.
pub fn nd_signatures(
    op: &Op,
    sample: &Sample,
    mesh: &Placement,
    limit: usize,
) -> Result<(Vec<Signature>, Vec<NdSignature>)> {
    let (attrs, runtime) = sample.attributes(op)?;
    let kinds: Vec<_> = runtime.iter().map(|s| s.kind()).collect();
    let ins = sample.types();
    let ctx = InferCtx { op, inputs: &ins, attrs: &attrs, runtime_kinds: &kinds };
    let outs = op.infer(&ctx)?;
    let rows = match ins.is_empty() {
        false => op.signatures_1d(&ctx, &outs)?,
        // A source makes every layout.
        true => {
            let mut all: Vec<Sbp> = (0..outs[0].shape.len()).map(Sbp::Split).collect();
            all.extend([Sbp::Broadcast, Sbp::PARTIAL_SUM, Sbp::Partial(ReduceOp::Max)]);
            all.into_iter().map(|s| Signature::new(&[], &[s])).collect()
        }
    };
    let axes = mesh.axes() as u32;
    let total = rows.len().pow(axes);
    let mut found = vec![];
    for k in 0..total {
        let pick: Vec<&Signature> = (0..axes).map(|a| &rows[k / rows.len().pow(axes - 1 - a) % rows.len()]).collect();
        let mut lowering = None;
        if pick.iter().filter_map(|s| s.lowering).any(|l| *lowering.get_or_insert(l) != l) {
            continue;
        }
        let sig = NdSignature {
            inputs: (0..ins.len()).map(|i| pick.iter().map(|s| s.inputs[i]).collect()).collect(),
            outputs: (0..outs.len()).map(|o| pick.iter().map(|s| s.outputs[o]).collect()).collect(),
            lowering,
        };
        let valid = op.nd_valid.as_ref().is_none_or(|f| f(&ctx, mesh, &sig));
        let ok = |t: &TensorType, n: &NdSbp| check_layout(&t.shape, t.dtype, mesh, n).is_ok();
        if valid
            && ins.iter().zip(&sig.inputs).all(|(t, n)| t.as_ref().is_none_or(|t| ok(t, n)))
            && outs.iter().zip(&sig.outputs).all(|(t, n)| ok(t, n))
        {
            found.push(sig);
        }
    }
    if let Some(f) = &op.nd_infer {
        found = f(&ctx, mesh)?;
    } else if let Some(f) = &op.nd_extra {
        found.extend(f(&ctx, mesh)?);
    }
    if found.len() > limit {
        let n = found.len();
        let start = seed(op.name()) as usize;
        found = (0..limit).map(|j| found[(j * n / limit + start % (n / limit).max(1)) % n].clone()).collect();
    }
    Ok((rows, found))
}

fn mesh_of(dims: &[usize]) -> Placement {
    let n: usize = dims.iter().product();
    Placement::new(Device::Cpu, &(0..n).collect::<Vec<_>>(), dims).expect("mesh")
}

/// One case per signature.
pub fn signature_cases(plan: &Arc<Plan>, sample: &Sample, mesh: &[usize], limit: usize) -> Result<Vec<Case>> {
    let (rows, sigs) = nd_signatures(plan.op, sample, &mesh_of(mesh), limit)?;
    let rows = Arc::new(rows);
    let case = |sig: NdSignature| {
        let mut sbps: Vec<Option<NdSbp>> =
            plan.inputs.iter().zip(&sig.inputs).map(|(v, s)| v.as_ref().map(|_| s.clone())).collect();
        if sbps.is_empty() {
            sbps.push(Some(sig.outputs[0].clone()));
        }
        Case { plan: plan.clone(), sbps, expect: Some(sig), rows: rows.clone() }
    };
    Ok(sigs.into_iter().map(case).collect())
}

/// Layouts that no signature need fit: the interpreter must box, and the value must stay.
pub fn mixed_cases(plan: &Arc<Plan>, mesh: &[usize], count: usize) -> Vec<Case> {
    if plan.inputs.is_empty() || plan.op.sig.inputs.iter().any(|i| i.mutable) {
        return vec![];
    }
    let place = mesh_of(mesh);
    let case = |k: usize| {
        let pick = |(i, v): (usize, &Option<Value>)| {
            let v = v.as_ref()?;
            let mut all: Vec<Sbp> = (0..v.ty.shape.len()).map(Sbp::Split).collect();
            all.push(Sbp::Broadcast);
            all.extend([ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min].map(Sbp::Partial));
            let one = |a: usize| {
                let r = mix(&[seed(&plan.what), k as u64, i as u64, a as u64, mesh.len() as u64]);
                all[r as usize % all.len()]
            };
            let nd: NdSbp = (0..place.axes()).map(one).collect();
            let fits = check_layout(&v.ty.shape, v.ty.dtype, &place, &nd).is_ok();
            Some(if fits { nd } else { NdSbp::broadcast(place.axes()) })
        };
        let sbps = plan.inputs.iter().enumerate().map(pick).collect();
        Case { plan: plan.clone(), sbps, expect: None, rows: Arc::default() }
    };
    (0..count).map(case).collect()
}

/// Fails with the first complaint about each op: one wrong rule or kernel is wrong in many cases. A complaint begins with the
/// name of its op.
pub fn settle(what: &str, total: usize, wrong: &[String]) {
    println!("{what}: {total} cases, {} wrong", wrong.len());
    let mut shown: std::collections::BTreeMap<&str, &str> = Default::default();
    for w in wrong {
        shown.entry(w.split([' ', ':']).next().unwrap_or("")).or_insert(w);
    }
    let shown: Vec<&str> = shown.into_values().collect();
    assert!(wrong.is_empty(), "{} of {total} wrong, among them:\n{}", wrong.len(), shown.join("\n"));
}
