//! Runs one case on its ranks, and compares what the ranks say.

use oflow::functional::{Arg, FnBody, Returned, call_any, grad_at, ones};
use oflow::interpreter::{Called, list_called};
use oflow::kernels::DType;
use oflow::ops::{InputDef, find};
use oflow::placement::{Device, Placement};
use oflow::prelude::IntoTarget;
use oflow::sbp::NdSbp;
use oflow::{BackwardOptions, CallSite, Error, ErrorKind, Result, Tensor, World, manual_seed, run_ranks};

use super::answer::{Answer, Output, value};
use super::bind::{Arguments, Ready, layout_of};
use super::json::Json;
use super::line::{Case, Wanted};
use super::tensor::{Common, Given};

/// Most elements of a tensor that is printed.
pub const MOST_ELEMENTS: usize = 1 << 24;

/// Why a line has no outputs.
pub enum Failure {
    /// The error of the call.
    Error(Error),
    /// oflow itself is wrong.
    Fault(String),
}

/// Results that one rank has seen.
struct Seen {
    outputs: Vec<Output>,
    changed: Vec<(String, Output)>,
    grads: Vec<(String, Gradient)>,
    value: Option<serde_json::Value>,
    signatures: Vec<String>,
}

/// The gradient of an argument.
pub enum Gradient {
    /// Of a tensor; none if no output depends on it, or none asked for it.
    One(Option<Output>),
    /// Of a list of tensors.
    Many(Vec<Option<Output>>),
}

impl Gradient {
    fn outputs(&self) -> Vec<&Output> {
        match self {
            Gradient::One(g) => g.iter().collect(),
            Gradient::Many(all) => all.iter().flatten().collect(),
        }
    }
}

/// Runs a case. `site` is its line, which errors name.
///
/// # Errors
/// The error of the call; or the ranks have different values of what is the same on all.
pub fn run(case: &Case, arguments: &Arguments, site: CallSite) -> Result<Answer, Failure> {
    let ranks = run_ranks(case.ranks, |world| Ok(on_rank(world, case, arguments, site))).map_err(Failure::Error)?;
    let (seen, errors): (Vec<_>, Vec<_>) = ranks.into_iter().partition(Result::is_ok);
    if let Some(cause) = errors.into_iter().filter_map(Result::err).min_by_key(consequence) {
        return Err(Failure::Error(cause));
    }
    let mut ranks = seen.into_iter().flatten();
    let Some(first) = ranks.next() else { return Err(Failure::Fault("no rank has run".into())) };
    for (seen, rank) in ranks.zip(1..) {
        agree(&first, &seen, rank)?;
    }
    let Seen { outputs, changed, grads, value, signatures } = first;
    Ok(Answer { outputs, changed, grads: (case.grad != Wanted::None).then_some(grads), value, signatures })
}

/// How far an error of a rank is from the cause: a rank that fails is missed by those that wait for it.
fn consequence(e: &Error) -> u8 {
    match e.kind() {
        kind if kind.is_logical() => 0,
        ErrorKind::Peer | ErrorKind::Comm | ErrorKind::Link => 2,
        _ => 1,
    }
}

/// Compares global tensors of two ranks, which have read the logical values.
fn agree(first: &Seen, other: &Seen, rank: usize) -> Result<(), Failure> {
    let all = |s: &Seen| -> Vec<Output> {
        let of_grads = s.grads.iter().flat_map(|(_, g)| g.outputs());
        s.outputs.iter().chain(s.changed.iter().map(|(_, o)| o)).chain(of_grads).cloned().collect()
    };
    let (mine, theirs) = (all(first), all(other));
    let differ = mine.len() != theirs.len()
        || mine.iter().zip(&theirs).any(|(a, b)| {
            // Each rank has a local tensor of its own.
            let same = a.shape == b.shape && a.dtype == b.dtype && a.bytes == b.bytes;
            a.layout != b.layout || (a.layout.is_some() && !same)
        })
        || first.signatures != other.signatures;
    match differ {
        false => Ok(()),
        true => Err(Failure::Fault(format!("ranks 0 and {rank} have different results of this call"))),
    }
}

fn on_rank(world: &World, case: &Case, arguments: &Arguments, site: CallSite) -> Result<Seen> {
    let _line = site.scope();
    manual_seed(case.seed);
    let mut leaves: Vec<(String, Vec<Option<Tensor>>, bool)> = Vec::new();
    let mut args: Vec<Arg> = Vec::new();
    let mut named: Vec<(&str, Arg)> = Vec::new();
    for (name, ready) in &arguments.args {
        args.push(made(world, name, ready, &case.grad, &mut leaves)?);
    }
    for (name, ready) in &arguments.named {
        named.push((name, made(world, name, ready, &case.grad, &mut leaves)?));
    }
    if let Wanted::Named(names) = &case.grad
        && let Some(other) = names.iter().find(|n| !leaves.iter().any(|(leaf, ..)| leaf == *n))
    {
        return Err(Error::argument(format!(
            "\"grad\" names '{other}', which is not a float tensor among the arguments"
        )));
    }
    let (outs, called) = list_called(|| call_any(&case.call, &args, &named));
    let (outs, value) = match outs? {
        Returned::Tensors(outs) => (outs, None),
        Returned::Value(v) => (vec![], Some(value(&v))),
    };
    let grads = match case.grad {
        Wanted::None => vec![],
        _ => gradients(world, case, &outs, &leaves, site)?,
    };
    let changed = changed(arguments, &args, &named);
    Ok(Seen {
        outputs: outs.iter().map(|t| read(t, case)).collect::<Result<_>>()?,
        changed: changed.into_iter().map(|(n, t)| Ok((n, read(&t, case)?))).collect::<Result<_>>()?,
        grads,
        value,
        signatures: signatures(&called),
    })
}

/// The signatures, as `oflow sbp` writes them. With the names of the ops, if there are several.
fn signatures(called: &[Called]) -> Vec<String> {
    match called {
        [one] => vec![one.layouts()],
        several => several.iter().map(|c| format!("{}: {}", c.op.name(), c.layouts())).collect(),
    }
}

/// Makes an argument; float tensors that gradients are wanted of become leaves.
fn made(
    world: &World,
    name: &str,
    ready: &Ready,
    wanted: &Wanted,
    leaves: &mut Vec<(String, Vec<Option<Tensor>>, bool)>,
) -> Result<Arg> {
    let wanted = match wanted {
        Wanted::None => false,
        Wanted::All => true,
        Wanted::Named(names) => names.iter().any(|n| n == name),
    };
    let arg = ready.make(world)?;
    let leaf = |t: Tensor| if wanted && t.dtype().is_float() { t.requires_grad_(true) } else { Ok(t) };
    let of = |t: &Tensor| t.requires_grad().then(|| t.clone());
    Ok(match arg {
        Arg::Tensor(t) => {
            let t = leaf(t)?;
            if t.requires_grad() {
                leaves.push((name.to_string(), vec![of(&t)], false));
            }
            Arg::Tensor(t)
        }
        Arg::Tensors(all) => {
            let all = all.into_iter().map(leaf).collect::<Result<Vec<_>>>()?;
            if all.iter().any(Tensor::requires_grad) {
                leaves.push((name.to_string(), all.iter().map(of).collect(), true));
            }
            Arg::Tensors(all)
        }
        other => other,
    })
}

/// Gradients of the arguments: of the sum of all float outputs, or under the gradients that the line gives.
fn gradients(
    world: &World,
    case: &Case,
    outs: &[Tensor],
    leaves: &[(String, Vec<Option<Tensor>>, bool)],
    site: CallSite,
) -> Result<Vec<(String, Gradient)>> {
    let given = case.grad_outputs.as_deref().unwrap_or_default();
    if given.len() > outs.len() {
        let message =
            format!("\"grad_outputs\" has {} gradients, {} has {} outputs", given.len(), case.call, outs.len());
        return Err(Error::argument(message));
    }
    let (mut from, mut start) = (vec![], vec![]);
    for (i, out) in outs.iter().enumerate() {
        let data = given.get(i).filter(|v| **v != Json::Null);
        if out.requires_grad() && out.dtype().is_float() {
            from.push(out.clone());
            start.push(Some(match data {
                Some(data) => given_gradient(world, case, i, data, out)?,
                None => match layout_of(out) {
                    Some((mesh, sbp)) => ones(out.shape(), (&mesh, sbp).dtype(out.dtype()))?,
                    None => ones(out.shape(), out.device().dtype(out.dtype()))?,
                },
            }));
        } else if data.is_some() {
            return Err(Error::argument(format!("\"grad_outputs\" has a gradient of output {i}, which has none")));
        }
    }
    let inputs: Vec<Tensor> = leaves.iter().flat_map(|(_, all, _)| all.iter().flatten().cloned()).collect();
    let backward = |n: usize| match n {
        0 => Ok(vec![None; inputs.len()]),
        n => grad_at(
            &from[..n],
            &inputs,
            &start[..n],
            &BackwardOptions { retain_graph: true, ..Default::default() },
            site,
        ),
    };
    let found = match backward(from.len()) {
        // Outputs that are kept for backward only (the statistics of a norm) have no gradient; they come after the first.
        Err(e) if e.kind() == ErrorKind::Autograd && from.len() > 1 && case.grad_outputs.is_none() => backward(1)?,
        found => found?,
    };
    let mut found = found.into_iter();
    let mut one = |leaf: &Option<Tensor>| -> Result<Option<Output>> {
        let grad = leaf.as_ref().and_then(|_| found.next().flatten());
        grad.map(|g| read(&g, case)).transpose()
    };
    leaves
        .iter()
        .map(|(name, all, many)| {
            let mut grads = all.iter().map(&mut one).collect::<Result<Vec<_>>>()?;
            let gradient = if *many { Gradient::Many(grads) } else { Gradient::One(grads.pop().flatten()) };
            Ok((name.clone(), gradient))
        })
        .collect()
}

/// The gradient of an output that the line gives: data, or a tensor. What it does not say is as the output is.
fn given_gradient(world: &World, case: &Case, i: usize, data: &Json, out: &Tensor) -> Result<Tensor> {
    let mut members = match data {
        Json::Object(members) => members.clone(),
        data => vec![("data".to_string(), data.clone())],
    };
    let mut usual = |name: &str, value: Json| {
        if !members.iter().any(|(n, _)| n == name) {
            members.push((name.to_string(), value));
        }
    };
    usual("dtype", Json::Text(out.dtype().name().into()));
    usual("shape", Json::Ints(out.shape().iter().map(|n| *n as i64).collect()));
    let mesh = layout_of(out).map(|(mesh, _)| mesh);
    if mesh.is_none() {
        usual("sbp", Json::Null);
    }
    let common = Common::of(case).on(mesh.as_ref());
    let name = format!("grad_outputs[{i}]");
    let refused = |why: String| Error::argument(format!("\"{name}\" {why}"));
    Given::read(&Json::Object(members), &name, &common).map_err(refused)?.make(world)
}

/// The tensors that the call has changed in place, by the names of the arguments.
fn changed(arguments: &Arguments, args: &[Arg], named: &[(&str, Arg)]) -> Vec<(String, Tensor)> {
    let Some(FnBody::Op(op)) = arguments.function.as_ref().map(|f| &f.body) else { return vec![] };
    let Ok(op) = find(op) else { return vec![] };
    let by_place = arguments.args.iter().map(|(n, _)| n.as_str()).zip(args);
    let all: Vec<(&str, &Arg)> = by_place.chain(named.iter().map(|(n, a)| (*n, a))).collect();
    let of = |name: &str| all.iter().find(|(n, _)| *n == name).map(|(_, a)| *a);
    let mutable = op.sig.inputs.iter().filter(|i| i.mutable);
    // Inputs that repeat together are one argument, and all of its tensors may have changed.
    let name_of =
        |i: &InputDef| if i.variadic && of(&i.name).is_none() { "tensors".to_string() } else { i.name.to_string() };
    let mut names: Vec<String> = mutable.map(name_of).collect();
    names.dedup();
    let tensors = |name: String| match of(&name) {
        Some(Arg::Tensor(t)) => vec![(name, t.clone())],
        Some(Arg::Tensors(all)) => all.iter().enumerate().map(|(i, t)| (format!("{name}[{i}]"), t.clone())).collect(),
        _ => vec![],
    };
    names.into_iter().flat_map(tensors).collect()
}

/// Reads the logical value of a tensor, on every rank.
fn read(t: &Tensor, case: &Case) -> Result<Output> {
    if t.numel() > MOST_ELEMENTS {
        return Err(Error::memory(format!("the result {t:?} has {} elements", t.numel())).help(format!(
            "`oflow run` prints tensors of up to {MOST_ELEMENTS} elements; reduce or slice it in a program"
        )));
    }
    let layout: Option<(Placement, NdSbp)> = t.global().map(|g| (g.placement.clone(), g.sbp.clone()));
    let elsewhere = layout.as_ref().map(|(mesh, _)| mesh).filter(|mesh| case.mesh.as_ref() != Some(*mesh)).cloned();
    let shape = t.shape().to_vec();
    let dtype: DType = t.dtype();
    let device = if layout.is_none() && t.device() != Device::Cpu { Some(t.device()) } else { None };
    Ok(Output { bytes: t.to_bytes()?, shape, dtype, layout, elsewhere, device })
}
