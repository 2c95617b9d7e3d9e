//! `oflow box`: the cheapest plan from one layout to another with its bytes and predicted time, or all plans between the layouts
//! of a mesh.

use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command};
use oflow::boxing::{BoxingPlan, BoxingStep, Layout, Model, Planner};
use oflow::kernels::{DType, Dims, ReduceOp};
use oflow::placement::Placement;
use oflow::sbp::{NdSbp, Sbp, check_layout};
use serde_json::{Value, json};

use super::{bytes, microseconds, refused, show};
use crate::Failed;
use crate::model;

/// Most mesh axes that `--all` lists the layouts of.
const MOST_AXES: usize = 2;
/// Most pairs that it lists.
const MOST_PAIRS: usize = 4096;

/// Adds the arguments.
pub fn arguments(command: Command) -> Command {
    command
        .args(super::tensor_arguments())
        .arg(
            Arg::new("from")
                .long("from")
                .required_unless_present("all")
                .value_parser(super::layout)
                .value_name("SBP")
                .help("nd-SBP of the tensor, e.g. \"[S(0), P(sum)]\""),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .required_unless_present("all")
                .value_parser(super::layout)
                .value_name("SBP")
                .help("nd-SBP to box the tensor to"),
        )
        .arg(super::mesh_argument("Mesh of the tensor, e.g. dp=4,tp=8"))
        .arg(
            Arg::new("to-mesh")
                .long("to-mesh")
                .value_parser(super::mesh)
                .value_name("MESH")
                .help("Mesh to box the tensor to [default: the same mesh]; tp=8@32 is ranks 32 to 39"),
        )
        .arg(
            Arg::new("all")
                .long("all")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["from", "to"])
                .help("List every pair of layouts of a mesh of one or two axes"),
        )
        .arg(
            Arg::new("draw")
                .long("draw")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["all", "json"])
                .help("Draw which rank holds which part, before and after each step"),
        )
        .args(model_arguments())
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON"))
        .after_help(
            "Examples:
  oflow box --shape 1024x4096 --dtype bf16 --from \"[S(0), P(sum)]\" --to \"[B, S(1)]\" --mesh dp=4,tp=8
  oflow box --shape 512x512 --from \"[S(0)]\" --to \"[S(1)]\" --mesh tp=4 --to-mesh tp=4@4
  oflow box --shape 6x8 --from \"[P(sum), S(0)]\" --to \"[S(0), B]\" --mesh dp=2,tp=2 --draw
  oflow box --all --shape 1024x1024 --mesh 4

Bytes are sent between ranks; times are predicted by the cost model. `oflow calibrate` measures its constants on this host.
Without them the constants are fixed (10 GB/s between ranks): they compare plans, but are not measured.",
        )
}

/// The arguments that say under which constants to plan.
pub(super) fn model_arguments() -> [Arg; 3] {
    [
        Arg::new("model").long("model").value_name("FILE").help(
            "Constants: a file of `oflow calibrate`, or `default` [default: those of jobs on this host]",
        ),
        Arg::new("ranks-per-host")
            .long("ranks-per-host")
            .value_name("N")
            .value_parser(clap::value_parser!(u32).range(1..))
            .help("Number of consecutive ranks on one host; hosts are connected by the network [default: all on one host]"),
        Arg::new("memory")
            .long("memory")
            .value_name("SIZE")
            .value_parser(crate::cli::memory)
            .help("Memory that a plan may use besides its source and result, e.g. 256M [default: no limit]"),
    ]
}

/// The planner that the arguments ask for, and where its constants come from.
pub(super) fn planner(matches: &ArgMatches) -> Result<(Planner, String), Failed> {
    let found = match matches.get_one::<String>("model") {
        Some(file) => model::named(file)?,
        None => model::in_force()?,
    };
    let hosts = matches.get_one::<u32>("ranks-per-host").map_or(0, |n| *n as usize);
    let extra_memory = matches.get_one::<u64>("memory").copied();
    Ok((Planner::new(Model { hosts: hosts.into(), extra_memory, ..found.model() }), found.describe()))
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    let missing = || Failed::new("an argument is missing");
    let shape = matches.get_one::<Dims>("shape").ok_or_else(missing)?;
    let dtype = *matches.get_one::<DType>("dtype").ok_or_else(missing)?;
    let mesh = matches.get_one::<Placement>("mesh").ok_or_else(missing)?;
    let to_mesh = matches.get_one::<Placement>("to-mesh").unwrap_or(mesh);
    let (planner, constants) = planner(matches)?;
    let json = matches.get_flag("json");
    if matches.get_flag("all") {
        let plans = all_plans(&planner, shape, dtype, mesh, to_mesh)?;
        let plans_json = || plans.iter().map(|p| to_json(p)).collect::<Value>();
        return show(&match json {
            true => format!("{:#}\n", json!({ "constants": constants, "plans": plans_json() })),
            false => table(&plans, &constants),
        });
    }
    let sbp = |name: &str| matches.get_one::<NdSbp>(name).ok_or_else(missing);
    let (src, dst) = (Layout::new(mesh, sbp("from")?.clone()), Layout::new(to_mesh, sbp("to")?.clone()));
    let plan = planner.plan(shape, dtype, &src, &dst).map_err(refused)?;
    if json {
        let mut answer = to_json(&plan);
        answer["constants"] = json!(constants);
        return show(&format!("{answer:#}\n"));
    }
    let drawn = if matches.get_flag("draw") { drawn(&plan) } else { String::new() };
    show(&format!("{}  constants: {constants}\n{drawn}", to_text(&plan)))
}

/// Every layout that a tensor may have on a mesh, of B, P(sum), P(max) and the splits; P(max) on lines only, where the
/// list stays short.
fn layouts(shape: &[usize], dtype: DType, mesh: &Placement) -> Vec<Layout> {
    let mut sbps = vec![Sbp::Broadcast, Sbp::PARTIAL_SUM];
    if mesh.axes() == 1 {
        sbps.push(Sbp::Partial(ReduceOp::Max));
    }
    sbps.extend((0..shape.len()).map(Sbp::Split));
    let mut all: Vec<Vec<Sbp>> = vec![vec![]];
    for _ in 0..mesh.axes() {
        all = all.iter().flat_map(|outer| sbps.iter().map(|s| [&outer[..], &[*s]].concat())).collect();
    }
    let all = all.into_iter().map(NdSbp::from_iter);
    all.filter(|s| check_layout(shape, dtype, mesh, s).is_ok()).map(|s| Layout::new(mesh, s)).collect()
}

fn all_plans(
    planner: &Planner,
    shape: &[usize],
    dtype: DType,
    mesh: &Placement,
    to_mesh: &Placement,
) -> Result<Vec<Arc<BoxingPlan>>, Failed> {
    let axes = mesh.axes().max(to_mesh.axes());
    if axes > MOST_AXES {
        return Err(Failed::new(format!(
            "--all lists meshes of up to {MOST_AXES} axes, this one has {axes}\n  help: ask for one pair with --from and --to, or for a mesh of the axes that change"
        )));
    }
    let (from, to) = (layouts(shape, dtype, mesh), layouts(shape, dtype, to_mesh));
    if from.len() * to.len() > MOST_PAIRS {
        return Err(Failed::new(format!(
            "there are {} pairs of layouts, more than {MOST_PAIRS}\n  help: ask with fewer dims, or for one pair with --from and --to",
            from.len() * to.len()
        )));
    }
    let pairs = from.iter().flat_map(|f| to.iter().map(move |t| (f, t))).filter(|(f, t)| f != t);
    pairs.map(|(f, t)| planner.plan(shape, dtype, f, t).map_err(refused)).collect()
}

/// A line for each plan: between which layouts, by which steps, bytes in all, and time.
fn table(plans: &[Arc<BoxingPlan>], constants: &str) -> String {
    let Some(first) = plans.first() else { return "there is one layout only\n".into() };
    let mut text = format!("{}{:?} on {}", first.dtype, first.shape.as_slice(), first.src.placement);
    if first.src.placement != first.dst.placement {
        text += &format!(" to {}", first.dst.placement);
    }
    let rows: Vec<[String; 5]> = plans
        .iter()
        .map(|p| {
            // A step prints as `all-reduce(sum) along tp: [P(sum)] -> [B]`.
            let step = |s: &BoxingStep| {
                let text = s.to_string();
                text.split_once(": ").map_or(text.clone(), |(what, _)| what.to_string())
            };
            let steps: Vec<String> = p.steps.iter().map(step).collect();
            let steps = if steps.is_empty() { "nothing".into() } else { steps.join(", ") };
            let (from, to) = (p.src.sbp.to_string(), p.dst.sbp.to_string());
            [from, to, bytes(p.bytes_sent()), microseconds(p.cost_ps), steps]
        })
        .collect();
    let width = |c: usize, title: &str| rows.iter().map(|r| r[c].len()).max().unwrap_or(0).max(title.len());
    let widths = [width(0, "from"), width(1, "to"), width(2, "bytes"), width(3, "us")];
    let mut line = |r: [&str; 5]| {
        let [a, b, c, d] = widths;
        text += &format!("\n  {:a$}  {:b$}  {:>c$}  {:>d$}  {}", r[0], r[1], r[2], r[3], r[4]);
    };
    line(["from", "to", "bytes", "us", "steps"]);
    rows.iter().for_each(|r| line(r.each_ref().map(String::as_str)));
    text + &format!("\n  constants: {constants}\n")
}

/// Columns of pictures.
const WIDTH: usize = 80;

/// Pictures of the tensor before and after each step.
fn drawn(plan: &BoxingPlan) -> String {
    let picture = |layout: &Layout| super::show::picture(&plan.shape, &layout.placement, &layout.sbp, WIDTH);
    let mut text = format!("\n{}\n{}", plan.src, picture(&plan.src));
    for (i, step) in plan.steps.iter().enumerate() {
        text += &format!("\n{}. {step}\n{}", i + 1, picture(&step.after));
    }
    text
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
    text += &steps(plan, "  ");
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
    text += &format!("  takes {} on a rank at its peak, source and result included\n", bytes(plan.peak_bytes()));
    if let (true, Some(limit)) = (plan.over_memory, plan.model.extra_memory) {
        let (takes, limit) = (bytes(plan.extra_bytes()), bytes(limit));
        text +=
            &format!("  no way keeps the limit of {limit} besides source and result: this one takes least, {takes}\n");
    }
    text
}

/// The steps, a line each.
pub(super) fn steps(plan: &BoxingPlan, indent: &str) -> String {
    let line = |(i, s): (usize, &BoxingStep)| format!("{indent}{}. {s}  ({} us)\n", i + 1, microseconds(s.cost_ps));
    plan.steps.iter().enumerate().map(line).collect()
}

pub(super) fn to_json(plan: &BoxingPlan) -> Value {
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
        "peak_bytes": plan.peak_bytes(),
        "extra_bytes": plan.extra_bytes(),
        "over_memory": plan.over_memory,
    })
}
