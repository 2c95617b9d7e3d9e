//! `oflow box`: how a tensor gets from one layout to another, what it sends, and how long it should take.

use clap::{Arg, ArgAction, ArgMatches, Command};
use oflow::boxing::{BoxingPlan, Layout, plan};
use oflow::kernels::{DType, Dims};
use oflow::placement::Placement;
use oflow::sbp::NdSbp;
use serde_json::{Value, json};

use super::{bytes, microseconds, refused, show};
use crate::Failed;

/// Adds the arguments.
pub fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("shape")
                .long("shape")
                .required(true)
                .value_parser(super::shape)
                .value_name("SHAPE")
                .help("Logical shape, e.g. 1024x4096"),
        )
        .arg(
            Arg::new("dtype")
                .long("dtype")
                .default_value("f32")
                .value_parser(super::dtype)
                .value_name("DTYPE")
                .help("Element type"),
        )
        .arg(
            Arg::new("from")
                .long("from")
                .required(true)
                .value_parser(super::layout)
                .value_name("SBP")
                .help("nd-SBP that the tensor has, e.g. \"[S(0), P(sum)]\""),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .required(true)
                .value_parser(super::layout)
                .value_name("SBP")
                .help("nd-SBP that it shall have"),
        )
        .arg(
            Arg::new("mesh")
                .long("mesh")
                .required(true)
                .value_parser(super::mesh)
                .value_name("MESH")
                .help("Mesh that it lies on, e.g. dp=4,tp=8"),
        )
        .arg(
            Arg::new("to-mesh")
                .long("to-mesh")
                .value_parser(super::mesh)
                .value_name("MESH")
                .help("Mesh that it shall lie on [default: the same]; tp=8@32 has the ranks from 32"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON"))
        .after_help(
            "Examples:
  oflow box --shape 1024x4096 --dtype bf16 --from \"[S(0), P(sum)]\" --to \"[B, S(1)]\" --mesh dp=4,tp=8
  oflow box --shape 512x512 --from \"[S(0)]\" --to \"[S(1)]\" --mesh tp=4 --to-mesh tp=4@4

Bytes are those that cross between ranks. Times are predictions of the cost model with its fixed constants (10 GB/s
between ranks); they rank plans and are no measurement of this machine.",
        )
}

/// Answers.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    let missing = || Failed::new("an argument is missing");
    let shape = matches.get_one::<Dims>("shape").ok_or_else(missing)?;
    let dtype = matches.get_one::<DType>("dtype").ok_or_else(missing)?;
    let mesh = matches.get_one::<Placement>("mesh").ok_or_else(missing)?;
    let to_mesh = matches.get_one::<Placement>("to-mesh").unwrap_or(mesh);
    let sbp = |name: &str| matches.get_one::<NdSbp>(name).ok_or_else(missing);
    let (src, dst) = (Layout::new(mesh, sbp("from")?.clone()), Layout::new(to_mesh, sbp("to")?.clone()));
    let plan = plan(shape, *dtype, &src, &dst).map_err(refused)?;
    show(&if matches.get_flag("json") { format!("{:#}\n", to_json(&plan)) } else { to_text(&plan) })
}

/// The ranks of both meshes.
fn ranks(plan: &BoxingPlan) -> Vec<usize> {
    let mut ranks = [plan.src.placement.ranks(), plan.dst.placement.ranks()].concat();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

fn to_text(plan: &BoxingPlan) -> String {
    let mut text = format!("{}{:?}: {} -> {}\n", plan.dtype, plan.shape.as_slice(), plan.src, plan.dst);
    if plan.is_identity() {
        text += "  nothing to do: every rank has its shard already\n";
        return text;
    }
    for (i, step) in plan.steps.iter().enumerate() {
        text += &format!("  {}. {step}  ({} us)\n", i + 1, microseconds(step.cost_ps));
    }
    let (most, by) = ranks(plan)
        .into_iter()
        .map(|r| (plan.bytes_sent_by(r), r))
        .reduce(|a, b| if b.0 > a.0 { b } else { a })
        .unwrap_or_default();
    text += &format!("  sends {} in all", bytes(plan.bytes_sent()));
    if most > 0 {
        text += &format!(", at most {} from one rank (rank {by})", bytes(most));
    }
    text += &format!("; predicted {} us\n", microseconds(plan.cost_ps));
    text
}

fn to_json(plan: &BoxingPlan) -> Value {
    let layout = |l: &Layout| json!({ "sbp": l.sbp.to_string(), "mesh": l.placement.to_string() });
    let steps: Vec<Value> = plan
        .steps
        .iter()
        .map(|s| json!({ "step": s.to_string(), "after": layout(&s.after), "predicted_ps": s.cost_ps }))
        .collect();
    let sent: serde_json::Map<String, Value> =
        ranks(plan).into_iter().map(|r| (r.to_string(), json!(plan.bytes_sent_by(r)))).collect();
    json!({
        "shape": plan.shape.as_slice(),
        "dtype": plan.dtype.to_string(),
        "from": layout(&plan.src),
        "to": layout(&plan.dst),
        "steps": steps,
        "bytes_sent": plan.bytes_sent(),
        "bytes_sent_by_rank": sent,
        "predicted_ps": plan.cost_ps,
    })
}
