//! Rules that see the layouts of a call: an op that takes its signature, and one that lists its signatures, by them.

use oflow::graph::{Graph, GraphOptions};
use oflow::interpreter::Call;
use oflow::ops::{Grad, KernelCx, OpDef, SbpHints, register};
use oflow::prelude::*;
use oflow::testing::conformance;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

fn copies(cx: &KernelCx<'_>) -> Result<()> {
    // SAFETY: the output of this call, of which no other slice is alive.
    unsafe { cx.output(0).as_mut_slice::<f32>()? }.copy_from_slice(cx.input(0)?.as_slice::<f32>()?);
    Ok(())
}

fn declared(text: &str) -> OpDef {
    OpDef::new(text).unwrap().domain("hinted").grad(Grad::None).samples(&["f32[4, 6]"]).cpu(copies)
}

fn to_itself(sbp: &NdSbp) -> String {
    format!("{sbp} -> {sbp}")
}

/// How often the rule of `takes` was asked.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

fn takes(mesh: &Placement, hints: &SbpHints<'_>) -> Option<String> {
    TAKEN.fetch_add(1, Ordering::Relaxed);
    let columns = NdSbp::uniform(Sbp::Split(1), mesh.axes());
    match (hints.output, &hints.inputs[0]) {
        (Some(asked), _) => Some(to_itself(asked)),
        (None, Some(x)) if !hints.keep && *x == NdSbp::broadcast(mesh.axes()) => Some(to_itself(&columns)),
        _ => None,
    }
}

fn lists(mesh: &Placement, hints: &SbpHints<'_>) -> String {
    let rows = |x: &&NdSbp| x.contains(&Sbp::Split(0));
    let columns = NdSbp::uniform(Sbp::Split(1), mesh.axes());
    to_itself(hints.output.or(hints.inputs[0].as_ref().filter(rows)).unwrap_or(&columns))
}

#[test]
fn rules_in_rust_see_the_layouts_that_a_call_has_and_is_asked_for() {
    let of_axis = declared("takes(x: f32[2]) -> y").signatures(&["S(0) -> S(0)", "S(1) -> S(1)"]);
    let ops = [
        of_axis.nd_choose_row(|_, mesh, hints| Ok(takes(mesh, hints))),
        declared("lists(x: f32[2]) -> y").nd_infer_rows(|_, mesh, hints| Ok(vec![lists(mesh, hints)])),
    ]
    .map(|def| register(def).unwrap());
    oflow_tests::hinted::check("hinted");
    for op in ops {
        let report = conformance(op).unwrap_or_else(|e| panic!("{e}"));
        println!("{report}");
        assert!(report.meshes.iter().all(|m| m.signatures > 1), "{report}");
    }
    // A graph that is loaded has the signature that was taken when it was captured.
    let folder = tempfile::tempdir().unwrap();
    let x = || ones([4, 4], (&Placement::all(Device::Cpu)?, sbp![B]));
    let call = |x: &Tensor| Ok(oflow::call("hinted.takes", &[x.into()], &[])?.remove(0));
    let save = |_: &oflow::World| {
        let x = x()?;
        Graph::build(|g| call(&g.input("x", &x)?), GraphOptions::default())?.save(folder.path(), &[])
    };
    oflow::run_ranks(2, save).unwrap();
    let asked = TAKEN.load(Ordering::Relaxed);
    let load = |_: &oflow::World| {
        let y = Graph::<Tensor>::load(folder.path(), &mut [])?.run(&[&x()?])?;
        assert_eq!(y.sbp()?, &sbp![S(1)]);
        Ok(())
    };
    oflow::run_ranks(2, load).unwrap();
    assert_eq!(TAKEN.load(Ordering::Relaxed), asked);
    // Another layout is another program.
    oflow::run_ranks(2, |_| {
        let x = x()?;
        let rows = Graph::build(
            |g| {
                let x = g.input("x", &x)?;
                oflow::with_sbp(sbp![S(0)], || call(&x))
            },
            GraphOptions::default().saved(folder.path()),
        );
        let e = rows.map(drop).unwrap_err().to_string();
        assert!(e.contains("the plan of another program"), "{e}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn rows_that_do_not_fit_the_call_are_errors_that_name_op_and_rule() {
    for (name, row, says) in [
        ("unread", "[S(0)] -> [S(x)]", "'[S(0)] -> [S(x)]' is not a signature over several mesh axes"),
        ("flat", "S(0) -> S(0)", "'S(0)' has no brackets"),
        ("tensors", "[S(0)], [B] -> [S(0)]", "it is of 2 inputs and 1 outputs"),
        ("axes", "[S(0), B] -> [S(0), B]", "the call has 1 inputs and 1 outputs on 1 mesh axes"),
        ("dims", "[S(7)] -> [S(7)]", "has no dim 7"),
        ("whole", "", "it has no '->'"),
    ] {
        let row = move || row.to_string();
        let chosen = declared(&format!("{name}_chosen(x: f32[2]) -> y")).signatures(&["S(0) -> S(0)"]);
        let listed = declared(&format!("{name}_listed(x: f32[2]) -> y"));
        let rules = [
            ("nd_choose", chosen.nd_choose_row(move |_, _, _| Ok(Some(row())))),
            ("nd_infer", listed.nd_infer_rows(move |_, _, _| Ok(vec![row()]))),
        ];
        for (rule, def) in rules {
            let op = register(def).unwrap();
            let refused = |w: &oflow::World| {
                let x = ones([4, 4], (&Placement::all(Device::Cpu)?, sbp![B]))?;
                Ok((w.rank(), Call::new(op, &[Some(&x)]).run().map(drop).unwrap_err()))
            };
            for (rank, e) in oflow::run_ranks(2, refused).unwrap() {
                let (logical, e) = (e.is_logical(), e.to_string());
                let says = if (name, rule) == ("dims", "nd_choose") { "none of its signatures" } else { says };
                assert!(e.contains(says) && e.contains(op.name()), "rank {rank}, {name} {rule}: {e}");
                assert!(name == "dims" || logical && e.contains(&format!("`{rule}`")) && e.contains("help"), "{e}");
            }
        }
    }
    let both = declared("both(x: f32[2]) -> y").nd_extra(|_, _| Ok(vec![])).nd_infer(|_, _, _| Ok(vec![]));
    let e = register(both).err().unwrap().to_string();
    assert!(e.contains("it has nd_infer and nd_extra"), "{e}");
}

thread_local! {
    static MY_RANK: Cell<usize> = const { Cell::new(0) };
}

#[test]
fn a_rule_that_answers_differently_on_ranks_is_found_before_the_ranks_wait_for_each_other() {
    let takes = declared("by_rank(x: f32[2]) -> y").signatures(&["S(0) -> S(0)", "S(1) -> S(1)"]);
    let takes = takes.nd_choose_row(|_, _, _| Ok(Some(format!("[S({0})] -> [S({0})]", MY_RANK.get()))));
    let op = register(takes).unwrap();
    let run = |captured: bool| {
        oflow::run_ranks(2, |w| {
            MY_RANK.set(w.rank());
            let x = ones([4, 4], Device::Cpu)?.to_global((&Placement::all(Device::Cpu)?, sbp![P]))?;
            let call = |x: &Tensor| Ok(Call::new(op, &[Some(x)]).run()?[0].clone());
            match captured {
                false => call(&x)?.to_f64_vec(),
                true => Graph::build(|g| call(&g.input("x", &x)?), GraphOptions::default())?.run(&[&x])?.to_f64_vec(),
            }
        })
    };
    let e = run(false).unwrap_err();
    assert_eq!(e.kind(), oflow::ErrorKind::Diverged, "{e}");
    assert!(e.to_string().contains("hinted.by_rank"), "{e}");
    let e = run(true).unwrap_err();
    println!("{e}");
    assert_eq!(e.kind(), oflow::ErrorKind::Diverged, "{e}");
}
