//! `oflow sbp`: the SBP signatures of a call, their costs, and the chosen one.

use clap::{Arg, ArgAction, ArgMatches, Command};
use std::sync::Arc;

use oflow::boxing::{
    BoxingPlan, Candidate, Choice, ChoiceInput, Hint, Layout, Planner, Unproven, candidates, choose, hint, price,
    signatures,
};
use oflow::ops::{NdSignature, TensorType, find};
use oflow::placement::Placement;
use oflow::sbp::NdSbp;
use serde_json::{Value, json};

use super::boxing::{model_arguments, planner, steps, to_json as plan_json};
use super::{Input, Question, bytes, microseconds, refused, show};
use crate::Failed;

/// Candidates that are shown unless all are asked for.
const SHOWN: usize = 10;

/// Of calls with more candidates only the chosen one is priced, unless all are asked for.
const PRICED: usize = 2048;

/// Adds the arguments.
pub fn arguments(command: Command) -> Command {
    command
        .arg(Arg::new("op").required(true).value_name("OP").help("Name of the op; `oflow ops` lists them"))
        .arg(Arg::new("in").long("in").action(ArgAction::Append).value_parser(super::input).value_name("TENSOR").help(
            "An input with its nd-SBP, e.g. \"f32[1024, 512] [S(0), B]\"; - for an optional input that is absent",
        ))
        .arg(super::mesh_argument("Mesh that the inputs lie on, e.g. dp=2,tp=4"))
        .arg(
            Arg::new("attr")
                .long("attr")
                .action(ArgAction::Append)
                .value_parser(super::attribute)
                .value_name("NAME=VALUE")
                .help("An attribute, e.g. dim=1 or dims=[0,1]"),
        )
        .arg(
            Arg::new("grad")
                .long("grad")
                .action(ArgAction::SetTrue)
                .help("Include the cost of gradients, as if every float input required one"),
        )
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("Show every candidate"))
        .args(model_arguments())
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON"))
        .after_help(
            "Examples:
  oflow sbp matmul --in \"f32[1024,512] [S(0),B]\" --in \"f32[512,256] [B,S(1)]\" --mesh dp=2,tp=4
  oflow sbp softmax --in \"f32[64,1000] [S(1)]\" --attr dim=1 --mesh tp=4

Each candidate has costs in microseconds under the cost model: boxing the inputs (forward), boxing their gradients back
(adjoint), communication inside the op (inside), and the cheapest reduction of partial outputs (way out). A candidate that
needs no boxing of inputs is chosen, unless the op communicates inside or spreads a partial input over more elements. Otherwise
the cheapest is chosen, then fewer partial outputs, then declared order. The search looks at a limited number of candidates; if
it ends early, it prints a lower bound of the cheapest cost. A hint tells where another layout of the result costs far less.
These costs use fixed constants, the same on every machine. The plans that box the inputs of the chosen candidate use the
constants of jobs on this host (`--model`).",
        )
}

struct Answer {
    call: String,
    outs: Vec<TensorType>,
    chosen: NdSignature,
    /// Bounds of the best price, where the choice is not proven to have it.
    unproven: Option<Unproven>,
    /// A layout of the result that costs far less.
    hint: Option<Hint>,
    /// The chosen one first, then by price.
    candidates: Vec<Candidate>,
    /// There are more candidates than these.
    more: bool,
    /// The inputs that the choice moves, by number, and how; planned under the constants of jobs.
    moves: Vec<(usize, Arc<BoxingPlan>)>,
    /// Where these constants come from.
    constants: String,
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    let missing = || Failed::new("an argument is missing");
    let op = matches.get_one::<String>("op").ok_or_else(missing)?;
    let mesh = matches.get_one::<Placement>("mesh").ok_or_else(missing)?;
    let inputs: Vec<Input> = matches.get_many::<Input>("in").unwrap_or_default().cloned().collect();
    let attrs: Vec<(String, String)> = matches.get_many("attr").unwrap_or_default().cloned().collect();
    let under = planner(matches)?;
    let (grad, all) = (matches.get_flag("grad"), matches.get_flag("all"));
    let answer = answer(op, &inputs, mesh, &attrs, (grad, all), under).map_err(refused)?;
    let json = matches.get_flag("json");
    show(&if json { format!("{:#}\n", to_json(&answer)) } else { to_text(&answer, all) })
}

fn answer(
    op: &str,
    inputs: &[Input],
    mesh: &Placement,
    attrs: &[(String, String)],
    (grad, all): (bool, bool),
    (planner, constants): (Planner, String),
) -> oflow::Result<Answer> {
    let op = find(op)?;
    let (types, sbps): (Vec<_>, Vec<_>) = inputs.iter().map(|i| i.0.clone().unzip()).unzip();
    let shown: Vec<String> =
        inputs.iter().map(|i| i.0.as_ref().map_or("-".into(), |(ty, sbp)| format!("{ty} {sbp}"))).collect();
    let call = format!("{}({}) on {mesh}", op.name(), shown.join(", "));
    let named = |e: oflow::Error| e.in_call(|| call.clone());
    for (ty, sbp) in inputs.iter().filter_map(|i| i.0.as_ref()) {
        oflow::sbp::check_layout(&ty.shape, ty.dtype, mesh, sbp).map_err(named)?;
    }
    let question = Question::new(op, types, attrs).map_err(named)?;
    let infer = question.infer();
    let outs = op.infer(&infer).map_err(named)?;
    let needs_grad: Vec<bool> =
        question.inputs.iter().map(|t| grad && t.as_ref().is_some_and(|t| t.dtype.is_float())).collect();
    // An input that the op changes in place stays where it is.
    let fixed_inputs: Vec<bool> = (0..question.inputs.len()).map(|i| op.sig.mutates(i)).collect();
    let choice = ChoiceInput {
        op,
        infer: &infer,
        outs: &outs,
        placement: mesh,
        sbps: &sbps,
        needs_grad: &needs_grad,
        fixed_inputs: &fixed_inputs,
        given_out: None,
        request: None,
        keep: false,
    };
    let Choice { sig: chosen, unproven } = choose(&choice).map_err(named)?;
    let hint = hint(&choice, &chosen).map_err(named)?;
    let more = !all && signatures(&choice).map_err(named)?.nth(PRICED).is_some();
    let mut candidates = match more {
        true => vec![price(&choice, chosen.clone()).map_err(named)?],
        false => candidates(&choice).map_err(named)?.collect::<oflow::Result<Vec<_>>>().map_err(named)?,
    };
    // Stable: equal ones stay in declared order, as the rule of the choice says.
    candidates.sort_by_key(|c| (c.sig != chosen, c.cost.total(), c.partials));
    let mut moves = Vec::new();
    for (i, (Input(input), want)) in inputs.iter().zip(&chosen.inputs).enumerate() {
        if let Some((ty, have)) = input.as_ref().filter(|(_, have)| have != want) {
            let (src, dst) = (Layout::new(mesh, have.clone()), Layout::new(mesh, want.clone()));
            moves.push((i, planner.plan(&ty.shape, ty.dtype, &src, &dst).map_err(named)?));
        }
    }
    Ok(Answer { outs: outs.to_vec(), chosen, unproven, hint, candidates, more, moves, constants, call })
}

fn to_text(a: &Answer, all: bool) -> String {
    let outs: Vec<String> = a.outs.iter().zip(&a.chosen.outputs).map(|(ty, sbp)| format!("{ty} {sbp}")).collect();
    let mut text =
        format!("{}\n  gives {}\n\n", a.call, if outs.is_empty() { "nothing".into() } else { outs.join(", ") });
    let shown = &a.candidates[..if all { a.candidates.len() } else { a.candidates.len().min(SHOWN) }];
    let names: Vec<String> = shown.iter().map(|c| c.sig.to_string()).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0).max(18);
    let columns = |cells: [&str; 5]| cells.iter().map(|c| format!("{c:>9}")).collect::<String>();
    text += &format!(
        "  {:width$}{}  (us)\n",
        "inputs -> outputs",
        columns(["forward", "adjoint", "inside", "way out", "total"])
    );
    for (c, name) in shown.iter().zip(&names) {
        let cost = &c.cost;
        let cells = [cost.forward, cost.adjoint, cost.lowering, cost.way_out, cost.total()].map(microseconds);
        let mark = if c.sig == a.chosen { '*' } else { ' ' };
        text += &format!("{mark} {name:width$}{}\n", columns(cells.each_ref().map(String::as_str)));
    }
    if shown.len() < a.candidates.len() {
        text += &format!("  and {} more; --all shows them\n", a.candidates.len() - shown.len());
    }
    if a.more {
        text += &format!("  and more than {PRICED} others, which --all prices and shows\n");
    }
    let free = |c: &Candidate| c.cost.forward == 0 && c.cost.adjoint == 0 && c.cost.lowering == 0;
    let free = a.candidates.first().is_some_and(free);
    text += &match &a.unproven {
        Some(u) => format!(
            "* is taken: the cheapest found, not proven to be the cheapest. It costs {} us; none costs less than {} us\n",
            microseconds(u.price),
            microseconds(u.least)
        ),
        None if free => "* is taken: no input has to move\n".to_string(),
        None if a.candidates.iter().skip(1).all(|c| c.cost.total() >= a.candidates[0].cost.total()) => {
            "* is taken: the cheapest\n".to_string()
        }
        None => "* is taken: the cheapest of those that move no other input, or reduce partial ones to B\n".to_string(),
    };
    text += &a.hint.as_ref().map_or(String::new(), |h| format!("  hint: {h}\n"));
    for (i, plan) in &a.moves {
        text +=
            &format!("\n  input {i}: {}{:?} {} -> {}\n", plan.dtype, plan.shape.as_slice(), plan.src.sbp, plan.dst.sbp);
        text += &steps(plan, "    ");
        text += &format!("    sends {}; predicted {} us\n", bytes(plan.bytes_sent()), microseconds(plan.cost_ps));
    }
    if !a.moves.is_empty() {
        text += &format!("  constants of these plans: {}\n", a.constants);
    }
    text
}

fn to_json(a: &Answer) -> Value {
    let texts = |sbps: &[NdSbp]| sbps.iter().map(NdSbp::to_string).collect::<Vec<_>>();
    let candidates: Vec<Value> = a
        .candidates
        .iter()
        .map(|c| {
            json!({
                "inputs": texts(&c.sig.inputs),
                "outputs": texts(&c.sig.outputs),
                "lowered": c.sig.lowering.is_some(),
                "chosen": c.sig == a.chosen,
                "partial_outputs": c.partials,
                "cost_ps": {
                    "forward": c.cost.forward,
                    "adjoint": c.cost.adjoint,
                    "inside": c.cost.lowering,
                    "way_out": c.cost.way_out,
                    "total": c.cost.total(),
                },
            })
        })
        .collect();
    json!({
        "call": a.call,
        "outputs": a.outs.iter().map(TensorType::to_string).collect::<Vec<_>>(),
        "candidates": candidates,
        "all_candidates": !a.more,
        "proven": a.unproven.is_none(),
        "least_ps": a.unproven.map(|u| u.least),
        "hint": a.hint.as_ref().map(|h| json!({
            "sbp": h.sbp.to_string(),
            "moves": h.moves.iter().map(|(name, sbp)| json!({ "input": name, "to": sbp.to_string() })).collect::<Vec<_>>(),
            "taken_ps": h.taken,
            "asked_ps": h.asked,
        })),
        "moves": a.moves.iter().map(|(i, p)| json!({ "input": i, "plan": plan_json(p) })).collect::<Vec<_>>(),
        "constants": a.constants,
    })
}
