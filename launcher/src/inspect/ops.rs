//! `oflow ops`: lists the ops, or shows one op in full, from the declarations.

use clap::{Arg, ArgAction, ArgMatches, Command};
use oflow::backend::kernels_of;
use oflow::functional::{FnBody, functions};
use oflow::kernels::DType;
use oflow::libraries::{BuildOptions, Library, build_and_load, load};
use oflow::ops::{
    AttrDef, DTypeClass, DTypeRule, Grad, GradArg, GradWire, InputDef, KernelPred, Op, OutputCount, OutputDef,
    Priority, SbpRule, TensorType, all, find,
};
use oflow::testing::conformance;
use serde_json::{Value, json};
use std::path::PathBuf;

use super::{Question, refused, show, tensor};
use crate::Failed;

/// Adds the arguments.
pub fn arguments(command: Command) -> Command {
    command
        .arg(Arg::new("name").value_name("NAME").help("Show this op in full"))
        .arg(files("load").long("load").action(ArgAction::Append).help(
            "Load this library, or build it of this source (.rs, .c, .cc, .cu); only its ops are listed",
        ))
        .subcommand(
            Command::new("check")
                .about("Test the ops of a library: sharding, gradients, bad arguments")
                .arg(files("files").required(true).num_args(1..).help("A shared library, or the sources of one library"))
                .arg(Arg::new("op").long("op").value_name("NAME").help("Only this op"))
                .after_help(
                    "Each op is called on its samples, on simulated ranks, in every layout that it declares; the call on one device is
taken for right. Exit code 1 if an op does not conform.",
                ),
        )
        .args_conflicts_with_subcommands(true)
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON"))
        .after_help(
            "Examples:
  oflow ops                 every op: signature, element types, sharding
  oflow ops layer_norm      one op in full
  oflow ops --json          for programs
  oflow ops --load libmy.so          the ops of a library
  oflow ops check libmy.so           do they conform to what they declare?

In a signature `?` marks an optional input, `...` any number, `!` an input that is changed in place. `runtime` marks an
attribute whose value may change between calls without a new plan. Signatures are for one mesh axis; on several axes every
combination is legal unless the op declares otherwise.",
        )
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    if let Some(("check", matches)) = matches.subcommand() {
        return check(matches);
    }
    let json = matches.get_flag("json");
    let mut loaded = vec![];
    for file in matches.get_many::<PathBuf>("load").into_iter().flatten() {
        loaded.push(library(&[file])?);
    }
    let text = match matches.get_one::<String>("name") {
        Some(name) => {
            let op = find(name).map_err(refused)?;
            if json { format!("{:#}\n", to_json(op)) } else { in_full(op) }
        }
        None => {
            let ops = match loaded.is_empty() {
                true => all(),
                false => loaded.iter().flat_map(|l| l.ops().iter().copied()).collect(),
            };
            let ops = ops.into_iter().filter(|op| !op.traits.hidden);
            if json {
                format!("{:#}\n", Value::from_iter(ops.map(to_json)))
            } else {
                ops.map(in_short).collect::<Vec<_>>().join("\n")
            }
        }
    };
    show(&text)
}

/// An argument of files.
fn files(name: &'static str) -> Arg {
    Arg::new(name).value_name("FILE").value_parser(clap::value_parser!(PathBuf))
}

/// Loads a library, or builds it if the files are sources.
fn library(files: &[&PathBuf]) -> Result<Library, Failed> {
    let is_library = |f: &PathBuf| f.extension().is_none_or(|e| e == "so");
    match files {
        [file] if is_library(file) => load(file).map_err(refused),
        files => build_and_load(files, BuildOptions::new()).map_err(refused),
    }
}

/// Runs `oflow ops check`.
fn check(matches: &ArgMatches) -> Result<u8, Failed> {
    let files: Vec<&PathBuf> = matches.get_many("files").into_iter().flatten().collect();
    let library = library(&files)?;
    let wanted = matches.get_one::<String>("op");
    let named = |op: &&'static Op| wanted.is_none_or(|w| op.name() == w || op.sig.name == *w);
    let ops: Vec<&'static Op> = library.ops().iter().copied().filter(|op| named(op)).collect();
    if let (Some(wanted), true) = (wanted, ops.is_empty()) {
        return Err(Failed::new(format!("the library {library:?} has no op '{wanted}'")));
    }
    let mut code = 0;
    for op in ops {
        // A panic of the op is caught, and one of the complaints.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let found = conformance(op);
        std::panic::set_hook(hook);
        match found {
            Ok(report) => show(&format!("{report}\n"))?,
            Err(e) => {
                code = 1;
                show(&format!("{e}\n\n"))?
            }
        };
    }
    Ok(code)
}

fn in_short(op: &'static Op) -> String {
    // The bare name of another domain's op may be that of another op too.
    let mut text = match op.name() == op.sig.name {
        true => format!("{}\n", op.sig),
        false => format!("{}: {}\n", op.name(), op.sig),
    };
    let inputs: Vec<String> = op.sig.inputs.iter().map(|i| format!("{} {}{}", i.name, i.dtypes, i.ranks)).collect();
    if !inputs.is_empty() {
        text += &format!("    dtypes  {}; result {}\n", inputs.join(", "), result_dtype(op));
    } else {
        text += &format!("    dtypes  result {}\n", result_dtype(op));
    }
    match example(op) {
        Some((call, rows)) => text += &format!("    sbp     {}    (for {call})\n", rows.join(" | ")),
        None => text += &format!("    sbp     {}\n", rule(op)),
    }
    text
}

fn in_full(op: &'static Op) -> String {
    let mut text = format!("{}\n{}\n\n  {}\n", op.sig, op.full_name(), op.summary());
    let mut section = |title: &str, rows: Vec<String>| {
        if !rows.is_empty() {
            text += &format!("\n{title}\n");
            rows.iter().for_each(|row| text += &format!("  {row}\n"));
        }
    };
    let names = op.sig.inputs.iter().map(|i| &i.name);
    let names = names.chain(op.sig.attrs.iter().chain(&op.sig.runtime).map(|a| &a.name));
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    section("Inputs", op.sig.inputs.iter().map(|i| format!("{:width$}  {}", i.name, describe_input(i))).collect());
    let attrs = op.sig.attrs.iter().chain(&op.sig.runtime);
    section("Attributes", attrs.map(|a| format!("{:width$}  {}", a.name, describe_attr(a))).collect());
    let outputs = if op.sig.outputs.is_empty() {
        "none".to_string()
    } else {
        format!("{}: {}", outputs(op).join(", "), result_dtype(op))
    };
    section("Outputs", vec![outputs]);
    section("Functions", signatures(op));
    let mut sharding = vec![format!("rule: {}", rule(op))];
    if let Some((call, rows)) = example(op) {
        sharding.push(format!("for {call}, along one mesh axis:"));
        sharding.extend(rows.into_iter().map(|row| format!("  {row}")));
    }
    section("Sharding", sharding);
    section("Gradient", vec![gradient(op)]);
    section(
        "Kernels",
        kernels_of(op)
            .iter()
            .map(|k| {
                let reuse: String =
                    k.inplace.iter().map(|(i, o)| format!(", output {o} may reuse input {i}")).collect();
                format!("{} on {}, {}, {}{reuse}", k.name, k.device, priority(k.priority), predicate(&k.pred))
            })
            .collect(),
    );
    section("Traits", traits(op).into_iter().map(String::from).collect());
    section("Library", op.library.iter().map(|l| l.to_string()).collect());
    text
}

/// The functions that call the op.
fn signatures(op: &Op) -> Vec<String> {
    functions()
        .into_iter()
        .filter(|f| {
            matches!(&f.body, FnBody::Op(name) | FnBody::InPlace(name) if name == op.name()) || f.sig.name == op.name()
        })
        .map(|f| f.sig.to_string())
        .collect()
}

fn describe_input(input: &InputDef) -> String {
    let members: Vec<&str> = DType::BUILTIN.iter().filter(|d| input.dtypes.contains(**d)).map(|d| d.name()).collect();
    let mut text = match input.dtypes.class() {
        Some(DTypeClass::Real) => "real numbers and bool".to_string(),
        Some(DTypeClass::Builtin) => "any built-in element type".to_string(),
        Some(DTypeClass::Any) => "any element type, registered ones too".to_string(),
        Some(class) => format!("{}: {}", class.name(), members.join(", ")),
        None => input.dtypes.to_string().replace('|', ", "),
    };
    if !input.ranks.is_all() {
        text += &format!("; {}", input.ranks.words());
    }
    for (is, what) in [
        (input.optional, "; may be absent"),
        (input.variadic, "; any number of tensors"),
        (input.mutable, "; changed in place"),
        (input.no_grad, "; never gets a gradient"),
        (input.host, "; read in host memory"),
    ] {
        text += if is { what } else { "" };
    }
    text
}

/// The outputs, with when each is made.
fn outputs(op: &Op) -> Vec<String> {
    let text = |(name, d): (&_, &OutputDef)| {
        let when = match &d.count {
            OutputCount::One => String::new(),
            OutputCount::If(s) => format!(" (where {s} is given)"),
            OutputCount::Each(s) => format!(" (as many as {s} says)"),
            OutputCount::ByShapes => " (any number)".to_string(),
        };
        format!("{name}{when}{}", if d.no_grad { " (no gradient)" } else { "" })
    };
    op.sig.outputs.iter().zip(&op.sig.output_defs).map(text).collect()
}

fn describe_attr(attr: &AttrDef) -> String {
    let default = attr.default.as_ref().map_or("required".to_string(), |d| format!("default {d}"));
    let runtime = if attr.runtime { "; runtime: may change without a new plan" } else { "" };
    format!("{}, {default}{runtime}", attr.kind.name())
}

fn result_dtype(op: &Op) -> String {
    match &op.dtype {
        DTypeRule::Promote => "promoted from the inputs".into(),
        DTypeRule::PromoteFloat => "promoted from the inputs, at least f32".into(),
        DTypeRule::PromoteInt => "promoted from the inputs, i64 for bools".into(),
        DTypeRule::Input(i) => op.sig.inputs.get(*i).map_or("like an input".into(), |d| format!("like {}", d.name)),
        DTypeRule::Attr => "as `dtype` says".into(),
        DTypeRule::Fixed(all) => all.iter().map(|d| d.name()).collect::<Vec<_>>().join(", "),
        DTypeRule::Fn(_) => "depends on inputs and attributes".into(),
    }
}

fn rule(op: &Op) -> String {
    let mut text = match &op.sbp {
        SbpRule::AllB if op.sig.inputs.is_empty() => "made in any layout, each rank its shard".into(),
        SbpRule::AllB => "B only".into(),
        SbpRule::Elementwise => match &op.expr {
            Some(expr) => format!("from the expression {expr}"),
            None => "from the expression".into(),
        },
        SbpRule::Factors(factors) if op.linear.is_empty() => format!("factors \"{factors}\""),
        SbpRule::Factors(factors) => {
            let linear: Vec<&str> = op.linear.iter().map(|(i, _)| i.as_str()).collect();
            format!("factors \"{factors}\", linear in {}", linear.join(", "))
        }
        SbpRule::Signatures(rows) => format!("{} fixed rows", rows.len()),
        SbpRule::Fn(_) => "depends on shapes and attributes".into(),
    };
    match op.lowerings.len() {
        0 => {}
        1 => text += "; and one lowering",
        n => text += &format!("; and {n} lowerings"),
    }
    match op.signatures_added() {
        0 => {}
        1 => text += "; and signatures added after registration",
        n => text += &format!("; and signatures added {n} times after registration"),
    }
    text
}

/// The op's first sample call as text, and its 1-d signatures. Source ops have none to show.
fn example(op: &'static Op) -> Option<(String, Vec<String>)> {
    let sample = op.samples.first().filter(|_| !op.sig.inputs.is_empty())?;
    let (inputs, attrs) = read_sample(sample)?;
    let question = Question::new(op, inputs, &attrs).ok()?;
    let infer = question.infer();
    let outs = op.infer(&infer).ok()?;
    let rows = op.signatures_1d(&infer, &outs).ok()?.iter().map(|row| row.to_string()).collect();
    let inputs: Vec<String> =
        question.inputs.iter().map(|t| t.as_ref().map_or("-".to_string(), TensorType::to_string)).collect();
    let attrs: Vec<String> = attrs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let shown = [inputs.join(", "), attrs.join(", ")];
    Some((shown.iter().filter(|s| !s.is_empty()).cloned().collect::<Vec<_>>().join("; "), rows))
}

type Sample = (Vec<Option<TensorType>>, Vec<(String, String)>);

/// Reads a sample: `f32[3, 5]+ i64[4]<5 -; dim=1, keepdim=true`. The marks behind the brackets set the values of the
/// test harness and are ignored here.
fn read_sample(text: &str) -> Option<Sample> {
    let (inputs, attrs) = text.split_once(';').unwrap_or((text, ""));
    let mut types = Vec::new();
    let mut rest = inputs.trim();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('-') {
            types.push(None);
            rest = after.trim_start();
            continue;
        }
        let (ty, after) = tensor(rest).ok()?;
        types.push(Some(ty));
        // Up to the next input.
        rest = after.find(' ').map_or("", |at| after[at..].trim_start());
        if !after.starts_with(['+', '<', '@', ' ']) {
            rest = after;
        }
    }
    let mut named: Vec<(String, String)> = Vec::new();
    let (mut depth, mut part) = (0, String::new());
    for c in attrs.chars().chain([',']) {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                if !part.trim().is_empty() {
                    named.push(super::attribute(&part).ok()?);
                }
                part.clear();
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    Some((types, named))
}

fn gradient(op: &Op) -> String {
    let names = |mask: u64, all: Vec<&str>| {
        let kept: Vec<&str> =
            all.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1).map(|(_, name)| *name).collect();
        if kept.is_empty() { "nothing".to_string() } else { kept.join(", ") }
    };
    match &op.grad {
        Grad::Missing => "not declared: asking for one is an error".into(),
        Grad::None => "none".into(),
        Grad::FromExpr => "derived from the expression".into(),
        Grad::Wiring(wires) => wiring(op, wires),
        Grad::Rule { saves_inputs, saves_outputs, .. } => {
            let inputs = op.sig.inputs.iter().map(|i| i.name.as_str());
            let outputs = op.sig.outputs.iter().map(|name| name.as_str());
            // Bits 0…63: inputs and outputs have masks of their own.
            let kept = [names(*saves_inputs, inputs.collect()), names(*saves_outputs, outputs.collect())];
            let kept: Vec<&str> = kept.iter().map(String::as_str).filter(|k| *k != "nothing").collect();
            if kept.is_empty() {
                "a rule that keeps nothing".into()
            } else {
                format!("a rule that keeps {}", kept.join(", "))
            }
        }
    }
}

/// `x, w: layer_norm_grad(grad of y, x, w)`: the inputs whose gradients one call gives, then the call.
fn wiring(op: &Op, wires: &[GradWire]) -> String {
    let input = |i: usize| op.sig.input_def(i).map_or_else(|| format!("input {i}"), |d| d.name.to_string());
    let output = |i: usize| op.sig.outputs.get(i).map_or_else(|| format!("output {i}"), |n| n.to_string());
    let arg = |a: &GradArg| match a {
        GradArg::OutGrad(i) => format!("grad of {}", output(*i)),
        GradArg::Input(i) => input(*i),
        GradArg::Output(i) => output(*i),
    };
    let mut calls: Vec<(Vec<String>, &GradWire)> = Vec::new();
    for w in wires {
        let same = |c: &GradWire| c.op == w.op && c.args == w.args && c.attrs == w.attrs;
        match calls.iter_mut().find(|(_, c)| same(c)) {
            Some((inputs, _)) => inputs.push(input(w.input)),
            None => calls.push((vec![input(w.input)], w)),
        }
    }
    let text = |(inputs, w): &(Vec<String>, &GradWire)| {
        let args: Vec<String> = w.args.iter().map(arg).collect();
        format!("{}: {}({})", inputs.join(", "), w.op, args.join(", "))
    };
    calls.iter().map(text).collect::<Vec<_>>().join("; ")
}

fn priority(p: Priority) -> &'static str {
    match p {
        Priority::Fallback => "fallback",
        Priority::Default => "default",
        Priority::Optimized => "optimised",
        Priority::Experimental => "experimental",
    }
}

fn predicate(p: &KernelPred) -> String {
    let join = |all: &[KernelPred], word: &str| all.iter().map(predicate).collect::<Vec<_>>().join(word);
    match p {
        KernelPred::Any => "always".into(),
        KernelPred::InputDType(i, d) => format!("input {i} is {d}"),
        KernelPred::Inputs(all) => {
            format!("inputs are {}", all.iter().map(|d| d.name()).collect::<Vec<_>>().join(" or "))
        }
        KernelPred::OutputDType(o, d) => format!("output {o} is {d}"),
        KernelPred::IntIn(name, a, b) if a == b => format!("{name} is {a}"),
        KernelPred::IntIn(name, a, b) => format!("{name} is {a} to {b}"),
        KernelPred::StrIn(name, all) => format!("{name} is {}", all.join(" or ")),
        KernelPred::When(test) => test.words().to_string(),
        KernelPred::AttrIs(name, value) => format!("{name} is {value}"),
        KernelPred::MinElements(i, n) => format!("input {i} has at least {n} elements"),
        KernelPred::All(all) => join(all, " and "),
        KernelPred::AnyOf(all) => format!("({})", join(all, " or ")),
        KernelPred::Not(p) => format!("not {}", predicate(p)),
        other => format!("{other:?}"),
    }
}

fn traits(op: &Op) -> Vec<&'static str> {
    let t = &op.traits;
    [
        (t.side_effect, "has a side effect: is never removed or merged"),
        (t.strided, "takes inputs of any strides"),
        (t.random, "draws random numbers"),
        (t.cpu_only, "runs on the CPU only"),
        (t.run_empty, "runs although its outputs are empty"),
        (t.separable, "a call of several entries may be several calls"),
        (op.view.is_some(), "the result is a view where strides allow"),
        (op.length.is_some(), "the length of the result depends on values; shapes are the greatest there can be"),
    ]
    .into_iter()
    .filter_map(|(is, what)| is.then_some(what))
    .collect()
}

fn to_json(op: &'static Op) -> Value {
    let attr = |a: &AttrDef| {
        json!({
            "name": a.name,
            "kind": a.kind.name(),
            "default": a.default.as_ref().map(|d| d.to_string()),
            "runtime": a.runtime,
        })
    };
    let input = |i: &InputDef| {
        let dtypes: Vec<&str> = DType::BUILTIN.iter().filter(|d| i.dtypes.contains(**d)).map(|d| d.name()).collect();
        json!({
            "name": i.name,
            "dtypes": dtypes,
            "registered": i.dtypes.class() == Some(DTypeClass::Any),
            "dims": if i.ranks.is_all() { Value::Null } else { i.ranks.to_string().into() },
            "optional": i.optional,
            "variadic": i.variadic,
            "mutable": i.mutable,
            "no_grad": i.no_grad,
            "host": i.host,
        })
    };
    let kernels: Vec<Value> = kernels_of(op)
        .iter()
        .map(|k| {
            json!({
                "name": k.name,
                "device": k.device.to_string(),
                "priority": priority(k.priority),
                "when": predicate(&k.pred),
                "may_reuse": k.inplace,
            })
        })
        .collect();
    let example = example(op).map(|(call, rows)| json!({ "call": call, "signatures": rows }));
    json!({
        "name": op.name(),
        "full_name": op.full_name(),
        "signature": op.sig.to_string(),
        "doc": op.doc,
        "inputs": op.sig.inputs.iter().map(input).collect::<Vec<_>>(),
        "attributes": op.sig.attrs.iter().chain(&op.sig.runtime).map(attr).collect::<Vec<_>>(),
        "outputs": op.sig.outputs,
        "result_dtype": result_dtype(op),
        "functions": signatures(op),
        "sbp_rule": rule(op),
        "sbp_example": example,
        "gradient": gradient(op),
        "kernels": kernels,
        "traits": traits(op),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_reads_and_has_signatures() {
        for op in all().into_iter().filter(|op| !op.traits.hidden) {
            for sample in &op.samples {
                assert!(read_sample(sample).is_some(), "{}: {sample}", op.name());
            }
            if !op.samples.is_empty() && !op.sig.inputs.is_empty() {
                let (call, rows) = example(op).unwrap_or_else(|| panic!("{}: {:?}", op.name(), op.samples[0]));
                assert!(!rows.is_empty(), "{}: {call}", op.name());
            }
        }
    }

    #[test]
    fn what_was_added_to_an_op_is_shown() {
        use oflow::backend::add_kernel;
        use oflow::ops::{KernelDef, OpDef, add_gradient, add_signatures, register};
        let def = OpDef::new("given(x: float) -> y").unwrap().domain("asked").doc("Copies.").samples(&["f32[4]"]);
        let op = register(def).unwrap();
        let before = in_full(op);
        assert!(before.starts_with("given(x: float) -> y\nasked.given@1\n") && !before.contains("Kernels"), "{before}");
        add_kernel("asked.given", KernelDef::cpu("given_late", |_| Ok(()))).unwrap();
        add_gradient("asked.given", Grad::None).unwrap();
        add_signatures("asked.given", |_| Ok(vec!["S(0) -> S(0)".parse()?])).unwrap();
        let after = in_full(op);
        for line in
            ["given_late on cpu, default, always", "  none\n", "rule: B only; and signatures added", "S(0) -> S(0)"]
        {
            assert!(after.contains(line) && !before.contains(line), "{line}:\n{after}");
        }
        assert!(in_short(op).starts_with("asked.given: given(x: float) -> y\n"), "{}", in_short(op));
        assert_eq!(signatures(op), ["asked.given(Tensor x) -> Tensor"]);
    }

    #[test]
    fn samples_read_as_declared() {
        let (types, attrs) = read_sample("f32[3, 5]+ i64[4]<5 - f64[]; dims=[0, 1], keepdim=true").unwrap();
        let types: Vec<String> = types.iter().map(|t| t.as_ref().map_or("-".into(), TensorType::to_string)).collect();
        assert_eq!(types, ["f32[3, 5]", "i64[4]", "-", "f64[]"]);
        assert_eq!(attrs, [("dims".into(), "[0, 1]".into()), ("keepdim".into(), "true".into())]);
        assert!(read_sample("f99[3]").is_none());
    }
}
