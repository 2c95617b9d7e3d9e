//! Rules that see the layouts of a call.

use oflow_op::{Call, Infer, Library, Op, Outputs, Result};

fn copies(call: &Call, out: &mut Outputs) -> Result<()> {
    out.slice::<f32>("y")?.copy_from_slice(call.input::<f32>("x")?);
    Ok(())
}

/// One SBP on each mesh axis.
fn uniform(sbp: &str, infer: &Infer) -> String {
    format!("[{}]", vec![sbp; infer.mesh().len()].join(", "))
}

fn takes(infer: &Infer) -> Result<Option<String>> {
    let columns = uniform("S(1)", infer);
    let whole = infer.sbp(0) == Some(&uniform("B", infer)) && !infer.keeps();
    let sbp = infer.asked().or(whole.then_some(columns.as_str()));
    Ok(sbp.map(|sbp| format!("{sbp} -> {sbp}")))
}

fn lists(infer: &Infer) -> Result<Vec<String>> {
    let columns = uniform("S(1)", infer);
    let rows = infer.sbp(0).filter(|sbp| sbp.contains("S(0)"));
    let sbp = infer.asked().or(rows).unwrap_or(&columns);
    Ok(vec![format!("{sbp} -> {sbp}")])
}

oflow_op::library! {
    Library::new("hinted_rs")
        .op(Op::new("takes(x: f32[2]) -> y").signatures(&["S(0) -> S(0)", "S(1) -> S(1)"]).nd_choose(takes)
            .gradient("none").samples(&["f32[4, 6]"]).cpu(copies))
        .op(Op::new("lists(x: f32[2]) -> y").nd_infer_rule(lists).gradient("none").samples(&["f32[4, 6]"]).cpu(copies))
}
