//! `oflow::testing`: what its one call checks, what it says about ops that are wrong, and what the checks that the other test
//! binaries do not make say about all built-in ops.

use oflow::ErrorKind;
use oflow::ops::{Grad, KernelDef, Op, OpDef, Priority, register};
use oflow::prelude::*;
use oflow::testing::{self, bad_arguments, completeness, conformance, seed};
use oflow_tests::{built_in_ops, cases, selected};
use std::collections::{BTreeMap, BTreeSet};

fn planted(def: OpDef) -> &'static Op {
    register(def.domain("planted")).unwrap()
}

/// `row_sum(x) -> y`, by a kernel of its own.
fn row_sum(name: &str) -> OpDef {
    OpDef::new(&format!("{name}(x: float) -> y"))
        .unwrap()
        .shape1(|c| match c.shape(0)? {
            [rows, _] => Ok([*rows].into_iter().collect()),
            other => Err(Error::shape(format!("needs a matrix, not {other:?}"))),
        })
        .cpu(|cx| Ok(oflow::kernels::cpu::reduce::reduce(cx.input(0)?, &column(cx), SUM, &[1])?))
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let shape = g.input_shape(0);
            let dy = g.call("reshape", &[dy], &[("shape", [shape[0], 1].as_slice().into())])?;
            let dx = g.call("expand", &[dy], &[("shape", shape.as_slice().into())])?;
            g.set(0, dx)
        }))
        .samples(&["f32[4, 6]", "f64[5, 3]"])
}

const SUM: oflow::kernels::cpu::reduce::Reduce = oflow::kernels::cpu::reduce::Reduce::Sum;

fn column(cx: &oflow::ops::KernelCx<'_>) -> oflow::kernels::View {
    oflow::ops::KernelCx::keepdim_view(cx.output(0), 2, &[1])
}

const RIGHT: [&str; 3] = ["S0 -> S0", "S1 -> P", "P -> P"];

#[test]
fn the_report_counts_what_was_checked() {
    let report = conformance(planted(row_sum("row_sum").signatures(&RIGHT))).unwrap();
    println!("{report}");
    let meshes: Vec<(&[usize], usize)> = report.meshes.iter().map(|m| (m.mesh, m.signatures)).collect();
    // Two samples; four sizes of each, the third with another dim empty.
    assert_eq!(meshes.iter().map(|m| m.0).collect::<Vec<_>>(), testing::MESHES);
    assert!(meshes.iter().all(|m| m.1 > 20), "{meshes:?}");
    assert!(report.meshes[1..].iter().all(|m| m.mixed > 0 && m.backward > 0), "{report}");
    assert_eq!((report.samples, report.first), (2, 24 + 15));
    assert!(report.special > 40, "{report}");
    assert_eq!(report.second, 24 + 15);
    assert!(report.bad_arguments > 20, "{report}");
    assert!(report.is_thorough() && report.notes.is_empty(), "{report}");
    // Half of the rule, or no gradient: it conforms, and the report is not thorough.
    let half = conformance(planted(row_sum("half_a_rule").signatures(&RIGHT[..2]))).unwrap();
    assert!(!half.is_thorough() && !half.completeness.undeclared.is_empty(), "{half}");
    let flat = conformance(planted(row_sum("no_gradient").signatures(&RIGHT).grad(Grad::None))).unwrap();
    assert!(!flat.is_thorough() && flat.first == 0, "{flat}");
    let text = report.to_string();
    for part in
        ["planted.row_sum: conforms on 2 samples\n", "  mesh [2, 3] ", "  39 first and ", " calls with bad arguments\n"]
    {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    // The gradient op of an expression is checked with it.
    let kinked =
        OpDef::elementwise("kinked(x: float; alpha: runtime float = 0.5) -> y", "select(x >= 0, x * x, alpha * x)");
    let report = conformance(planted(kinked.unwrap().samples(&["f32[4, 3]; alpha=0.25"]))).unwrap();
    println!("{report}");
    assert_eq!(report.derived.iter().map(|d| d.op.as_str()).collect::<Vec<_>>(), ["planted.kinked.grad.x"]);
    assert!(report.derived[0].meshes.iter().all(|m| m.signatures > 0) && report.derived[0].first > 0);
}

fn complaint(def: OpDef) -> String {
    let e = conformance(planted(def)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Registry);
    println!("{e}\n");
    e.to_string()
}

#[test]
fn what_is_wrong_is_named_with_sample_layout_mesh_and_values() {
    let text = complaint(row_sum("summed_dim_stays").signatures(&["S0 -> S0", "S1 -> B"]));
    assert!(text.starts_with("planted.summed_dim_stays does not conform: "), "{text}");
    assert!(text.contains("planted.summed_dim_stays sample 0 (as given) with [S(1)] -> [[B]] on [2]"), "{text}");
    assert!(text.contains("result 0 [B]: B copies differ at element 0: "), "{text}");
    assert!(text.contains("\n  and ") && text.contains("help: correct the declaration or the kernel"), "{text}");
    let text = complaint(row_sum("rule_of_code").get_sbp(|_| Ok(vec!["P(max) -> P(max)".parse()?])));
    assert!(text.contains("with [P(max)] -> [[P(max)]] on [2]") && text.contains(" instead of "), "{text}");
    let text = complaint(row_sum("no_such_dim").signatures(&["S2 -> S0"]));
    assert!(text.contains("declares the signature S(2) -> S(0), but input 'x' is f32[4, 6]"), "{text}");
}

/// Right for every finite number of the samples.
#[test]
fn a_lowering_that_loses_infinities_is_found() {
    let clamped = row_sum("clamped").lowering(
        |_| Ok(vec!["S1 -> P".parse()?]),
        |e, call| {
            let most = [("max", oflow::ops::AttrValue::from(1e30))];
            let x = e.call("clamp_max", &[call.input(0)?], &most)?;
            Ok(vec![e.call("sum", &[x], &[("dims", [1i64].into())])?])
        },
    );
    let text = complaint(clamped);
    assert!(text.contains("planted.clamped sample 0 (Plus) with [S(1)] -> [[P(sum)]] on [2]"), "{text}");
    assert!(text.contains(" instead of inf"), "{text}");
}

#[test]
fn a_wrong_gradient_is_found() {
    let half = Grad::rule_saving(&[], &[], |g| {
        let Some(dy) = g.grad(0) else { return Ok(()) };
        let shape = g.input_shape(0);
        let dy = g.call("reshape", &[dy], &[("shape", [shape[0], 1].as_slice().into())])?;
        let dy = g.call("mul_scalar", &[dy], &[("s", 0.5.into())])?;
        let dx = g.call("expand", &[dy], &[("shape", shape.as_slice().into())])?;
        g.set(0, dx)
    });
    let text = complaint(row_sum("half_a_gradient").grad(half));
    assert!(
        text.contains("planted.half_a_gradient: the gradient of input 0, element 0 is ")
            && text.contains(", differences give ")
    );
    assert!(text.contains("(float sample 1)"), "{text}");
}

#[test]
fn a_panic_is_a_finding_and_not_the_end() {
    let text = complaint(row_sum("careless_shape").shape1(|c| Ok([c.shape(0)?[..2][0]].into_iter().collect())));
    assert!(text.contains("planted.careless_shape sample 0 where input 0 has one dim less: panicked: "), "{text}");
    let text = complaint(row_sum("careless_rule").get_sbp(|c| {
        let rows = c.shape(0)?[0];
        assert!(rows != 9, "nine rows");
        Ok(vec![])
    }));
    assert!(text.contains("planted.careless_rule sample 0 (uneven) on [1]: panicked: nine rows"), "{text}");
    let careless = KernelDef::cpu("careless", |cx| {
        assert!(cx.input_box(0)?.is_whole(), "a part");
        Ok(oflow::kernels::cpu::reduce::reduce(cx.input(0)?, &column(cx), SUM, &[1])?)
    });
    let text = complaint(row_sum("careless_kernel").signatures(&RIGHT).kernel(careless.priority(Priority::Optimized)));
    let found =
        "planted.careless_kernel sample 0 (as given) with [S(0)] -> [[S(0)]] on [2] with gradients: panicked: rank ";
    assert!(text.contains(found) && text.contains(" panicked: a part\n"), "{text}");
}

#[test]
fn what_cannot_be_checked_is_an_error_that_says_so() {
    let says = |def: OpDef| conformance(planted(def)).unwrap_err();
    let mut def = row_sum("untested");
    def.samples.clear();
    let e = says(def);
    assert_eq!(e.message(), "planted.untested has no samples");
    assert!(e.help_text().unwrap().contains("OpDef::samples"), "{e}");
    let e = says(row_sum("unreadable").samples(&["f32[4"]));
    assert_eq!(e.message(), "planted.unreadable: the sample \"f32[4\": 'f32[4' has no ']'");
    let e = says(row_sum("refused").samples(&["f32[4]"]));
    assert!(
        e.message().contains("planted.refused sample 2 (as given): planted.refused(f32[4]): needs a matrix, not [4]"),
        "{e}"
    );
    let e = conformance(oflow::ops::find("to_global").unwrap()).unwrap_err();
    assert!(e.message().starts_with("to_global computes nothing"), "{e}");
}

#[test]
fn right_signatures_that_are_not_declared_are_listed() {
    let found = completeness(planted(row_sum("silent"))).unwrap();
    let listed: Vec<String> = found.undeclared.iter().map(|f| format!("{}: {}", f.sample, f.signature)).collect();
    let one = ["S(0) -> S(0)", "S(1) -> P(sum)", "P(sum) -> P(sum)"];
    let want: Vec<String> = (0..2).flat_map(|i| one.map(|s| format!("{i}: {s}"))).collect();
    assert_eq!(listed, want);
    let found = completeness(planted(row_sum("told").signatures(&RIGHT))).unwrap();
    assert!(found.undeclared.is_empty(), "{found}");
}

#[test]
fn no_bad_argument_of_a_built_in_op_panics() {
    let (mut wrong, mut total) = (vec![], 0);
    for op in built_in_ops() {
        total += bad_arguments(op, &mut wrong).unwrap();
    }
    println!("{total} calls, {} wrong", wrong.len());
    assert!((total > 2000 || selected()) && wrong.is_empty(), "{} of {total}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The list in `undeclared.tsv`: each signature that the search finds once, under a reason of `docs/undeclared.md`, and no other. Searched for
/// one of three ops; for all with `OFLOW_CASES=all`.
#[test]
fn what_built_in_ops_do_not_declare() {
    let (mut listed, mut used, mut wrong) = (BTreeSet::new(), BTreeSet::new(), vec![]);
    for line in include_str!("../undeclared.tsv").lines().skip(1) {
        let [reason, op, s] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("three columns: {line}") };
        used.insert(reason);
        wrong.extend((!listed.insert((op, s.to_string()))).then(|| format!("twice in the list: {op}: {s}")));
    }
    let reasons: BTreeSet<&str> =
        include_str!("../../docs/undeclared.md").lines().filter_map(|l| l.strip_prefix("## ")).collect();
    assert_eq!(used, reasons, "reasons in tests/undeclared.tsv and headings of docs/undeclared.md");
    let (mut tried, mut declared, mut found) = (0, 0, BTreeMap::<_, Vec<usize>>::new());
    let ops: Vec<&'static Op> = built_in_ops()
        .into_iter()
        .filter(|o| cases::whole() || selected() || seed(o.name()).is_multiple_of(3))
        .collect();
    let searched: BTreeSet<&str> = ops.iter().map(|o| o.name()).collect();
    for op in ops {
        let c = completeness(op).unwrap();
        (tried, declared) = (tried + c.tried, declared + c.declared);
        for u in c.undeclared {
            found.entry((op.name(), u.signature.to_string())).or_default().push(u.sample);
        }
    }
    println!("{tried} layouts tried, {declared} signatures declared, {} listed", listed.len());
    // A new one is declared at its op or gets a row; a row without one says something about an op that is no longer so.
    let new = found.iter().filter(|(row, _)| !listed.contains(*row));
    wrong.extend(new.map(|((op, s), samples)| format!("not in the list: {op}: {s}, right on samples {samples:?}")));
    let old = listed.iter().filter(|row| searched.contains(row.0) && !found.contains_key(*row));
    wrong.extend(old.map(|(op, s)| format!("in the list, but not found: {op}: {s}")));
    assert!(wrong.is_empty(), "tests/undeclared.tsv (docs/undeclared.md has the reasons):\n{}", wrong.join("\n"));
    assert!(tried > 1500 && declared > 300 || selected(), "{tried} {declared}");
}
