//! Assignments that an op lists itself, beside or instead of the product of its 1-d signatures; wrong lists; large meshes.

use super::enumerated::check;
use super::question::{Question, answer};
use oflow::Result;
use oflow::ops::{InferCtx, NdSignature, OpDef, register};
use oflow::placement::Placement;
use oflow::sbp::{NdSbp, Sbp};
use std::sync::Arc;
use std::time::Instant;

type NdSbpFn = Arc<dyn Fn(&InferCtx<'_>, &Placement) -> Result<Vec<NdSignature>> + Send + Sync>;

/// Rows like `[S(0), S(1)] -> [S(0), S(1)]`; those of other meshes are left out.
fn list(rows: &'static [&'static str]) -> NdSbpFn {
    Arc::new(move |_, mesh| {
        let read = |row: &&str| -> Result<NdSignature> {
            let (i, o) = row.split_once(" -> ").unwrap();
            let (i, o): (NdSbp, NdSbp) = (i.parse()?, o.parse()?);
            Ok(NdSignature { inputs: [i].into_iter().collect(), outputs: [o].into_iter().collect(), lowering: None })
        };
        let all = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
        Ok(all.into_iter().filter(|s| s.inputs[0].len() == mesh.axes()).collect())
    })
}

fn op(name: &str, change: impl FnOnce(&mut OpDef)) {
    let mut def = OpDef::new(&format!("{name}(x) -> y")).unwrap().domain("test").signatures(&["P -> P"]);
    change(&mut def);
    register(def).unwrap();
}

fn chosen(question: &str) -> String {
    let q = Question::parse(question);
    let text = answer(&q.choose());
    if !text.starts_with("error") {
        check(&q);
    }
    text
}

#[test]
fn extra_assignments_stand_after_the_product() {
    op("joint_split", |o| o.nd_extra = Some(list(&["[S(0), S(1)] -> [S(0), S(1)]", "[B, B] -> [S(0), S(0)]"])));
    for (question, expected) in [
        // Nothing moves; from one axis to the listed one is a slice, to the product's a gather.
        ("joint_split f32[8,4] [S(0), S(1)] on 2,2", "[S(0), S(1)] -> [S(0), S(1)]"),
        ("joint_split f32[8,4] [S(0), B] on 2,2", "[S(0), S(1)] -> [S(0), S(1)]"),
        ("joint_split f32[8,4] [P, P] on 2,2", "[P(sum), P(sum)] -> [P(sum), P(sum)]"),
        // Two take B as it is, of equal price: the one declared first.
        ("joint_split f32[8,4] [B, B] on 2,2", "[B, B] -> [B, B]"),
        ("joint_split f32[8,4] [B, B] on 2,2 asking [S(0), S(0)]", "[B, B] -> [S(0), S(0)]"),
        ("joint_split f32[8,4] [S(0), S(1)] in place on 2,2", "[S(0), S(1)] -> [S(0), S(1)]"),
        (
            "joint_split f32[8,4] [S(0), B] in place on 2,2",
            "error: no legal signature gives an output [S(0), B] in place",
        ),
        // On another mesh there is the product only.
        ("joint_split f32[8,4] [S(0)] on 4", "[B] -> [B]"),
    ] {
        assert_eq!(chosen(question), expected, "{question}");
    }
}

#[test]
fn a_list_of_its_own_replaces_the_product() {
    let listed = list(&["[S(1), B] -> [S(1), B]", "[S(0), S(0)] -> [P, P]"]);
    op("only_listed", |o| *o = o.clone().nd_infer(move |c, mesh, _| listed(c, mesh)));
    for (question, expected) in [
        ("only_listed f32[8,4] [S(1), B] on 2,2", "[S(1), B] -> [S(1), B]"),
        ("only_listed f32[8,4] [B, B] on 2,2", "[S(1), B] -> [S(1), B]"),
        ("only_listed f32[8,4] [S(0), S(0)] on 2,2", "[S(0), S(0)] -> [P(sum), P(sum)]"),
        // What moves nothing is taken although its way out costs more.
        ("only_listed f32[512,512] [S(0), S(0)] on 2,2", "[S(0), S(0)] -> [P(sum), P(sum)]"),
        ("only_listed f32[8,4] [B] on 4", "error: no legal signature for these inputs"),
    ] {
        assert_eq!(chosen(question), expected, "{question}");
    }
}

#[test]
fn a_list_depends_on_the_layouts_that_a_call_has_and_is_asked_for() {
    // The layout that is asked for, or that is written in place; else that of an input with an S(0); else S(1).
    op("listed_by_layouts", |o| {
        *o = o.clone().nd_infer_rows(|_, mesh, hints| {
            let columns = NdSbp::uniform(Sbp::Split(1), mesh.axes());
            let rows = hints.inputs[0].as_ref().filter(|x| x.contains(&Sbp::Split(0)));
            let sbp = hints.output.or(rows).unwrap_or(&columns);
            Ok(vec![format!("{sbp} -> {sbp}")])
        });
    });
    for (question, expected) in [
        ("listed_by_layouts f32[8,4] [P] on 2", "[S(1)] -> [S(1)]"),
        ("listed_by_layouts f32[8,4] [B] on 2", "[B] -> [B]"),
        ("listed_by_layouts f32[8,4] [S(0)] on 2", "[S(0)] -> [S(0)]"),
        ("listed_by_layouts f32[8,4] [P] on 2 asking [S(0)]", "[S(0)] -> [S(0)]"),
        ("listed_by_layouts f32[8,4] [P, P] on 2,2", "[S(1), S(1)] -> [S(1), S(1)]"),
        ("listed_by_layouts f32[8,4] [S(1), S(0)] on 2,2", "[S(1), S(0)] -> [S(1), S(0)]"),
        ("listed_by_layouts f32[8,4] [P, P] on 2,2 asking [S(1), S(0)]", "[S(1), S(0)] -> [S(1), S(0)]"),
        ("listed_by_layouts f32[8,4] [S(1), B] in place on 2,2", "[S(1), B] -> [S(1), B]"),
    ] {
        assert_eq!(chosen(question), expected, "{question}");
    }
}

#[test]
fn an_op_takes_one_of_its_signatures_by_the_layouts_that_it_is_given() {
    // Split along dim 1 where the input is whole, the asked-for layout where it is one of the op's, and else by cost.
    let split = |n: NdSbp| NdSignature {
        inputs: [n.clone()].into_iter().collect(),
        outputs: [n].into_iter().collect(),
        lowering: None,
    };
    op("takes", |o| {
        *o = o.clone().signatures(&["S(0) -> S(0)", "S(1) -> S(1)"]).nd_choose(move |_, mesh, hints| {
            let want: Option<NdSbp> = match (hints.output, &hints.inputs[0]) {
                (Some(out), _) => Some(out.clone()),
                (None, Some(x)) if x.iter().all(|s| s.is_broadcast()) => {
                    Some(format!("[{}]", vec!["S(1)"; mesh.axes()].join(", ")).parse()?)
                }
                _ => None,
            };
            Ok(want.map(split))
        });
    });
    let take = |question: &str| answer(&Question::parse(question).choose());
    assert_eq!(take("takes f32[8,4] [B] on 2"), "[S(1)] -> [S(1)]");
    assert_eq!(take("takes f32[8,4] [B, B] on 2,2"), "[S(1), S(1)] -> [S(1), S(1)]");
    assert_eq!(take("takes f32[8,4] [S(0)] on 2"), "[S(0)] -> [S(0)]");
    assert_eq!(take("takes f32[8,4] [B] on 2 asking [S(0)]"), "[S(0)] -> [S(0)]");
    // Carried out: the result has the layout, and the values.
    let def = OpDef::elementwise("takes_split(x: float) -> y", "-x").unwrap().domain("test");
    register(def.nd_choose(move |_, _, _| Ok(Some(split("S(1)".parse()?))))).unwrap();
    oflow::run_ranks(2, |_| {
        use oflow::prelude::*;
        let mesh = Placement::all(Device::Cpu)?;
        let x = distribute(&ones([2, 4], Device::Cpu)?, (&mesh, sbp![B]))?;
        let y = oflow::call("test.takes_split", &[(&x).into()], &[])?.remove(0);
        assert_eq!((y.sbp()?, y.to_vec::<f32>()?), (&sbp![S(1)], vec![-1.0; 8]));
        Ok(())
    })
    .unwrap();
    op("takes_none", |o| {
        *o = o.clone().signatures(&["S(0) -> S(0)"]).nd_choose(move |_, _, _| Ok(Some(split("S(1)".parse()?))));
    });
    assert_eq!(
        take("takes_none f32[8,4] [B] on 2"),
        "error: op test.takes_none@1 takes [S(1)] -> [S(1)], which is none of its signatures for this call"
    );
}

#[test]
fn declarations_that_do_not_fit_the_call_are_errors_that_name_the_op() {
    op("too_many", |o| *o = o.clone().get_sbp(|_| Ok(vec!["S(0), B -> S(0)".parse()?])));
    op("too_flat", |o| {
        o.nd_extra = Some(Arc::new(|c, _| list(&["[S(0)] -> [S(0)]"])(c, &super::question::mesh_of(&[2]))))
    });
    assert_eq!(
        chosen("too_many f32[8] [B] on 2"),
        "error: test.too_many declares the signature S(0), B -> S(0), but this call has 1 inputs and 1 outputs"
    );
    assert_eq!(
        chosen("too_flat f32[8] [B, B] on 2,2"),
        "error: test.too_flat declares [[S(0)]] -> [[S(0)]], but this call has 1 inputs and 1 outputs on 2 mesh axes"
    );
}

#[test]
fn a_dim_that_a_tensor_does_not_have_is_an_error_that_names_op_row_and_dim() {
    use oflow::sbp::Signature;
    let refused = |question: &str| chosen(question).trim_start_matches("error: ").to_string();
    op("no_dim_3", |o| *o = o.clone().signatures(&["S(0) -> S(0)", "S(3) -> S(0)"]));
    assert_eq!(
        refused("no_dim_3 f32[8,4] [S(0)] on 2"),
        "no_dim_3 declares the signature S(3) -> S(0), but input 'x' is f32[8, 4], which has no dim 3"
    );
    op("no_out_dim", |o| *o = o.clone().get_sbp(|_| Ok(vec!["S(0) -> S(2)".parse::<Signature>()?])));
    assert_eq!(
        refused("no_out_dim f32[8,4] [B] on 2"),
        "no_out_dim declares the signature S(0) -> S(2), but output 'y' is f32[8, 4], which has no dim 2"
    );
    op("no_listed_dim", |o| o.nd_extra = Some(list(&["[S(0), S(2)] -> [B, B]"])));
    assert_eq!(
        refused("no_listed_dim f32[8,4] [B, B] on 2,2"),
        "no_listed_dim declares [[S(0), S(2)]] -> [[B, B]], but input 'x' is f32[8, 4], which has no dim 2"
    );
    op("three_factors", |o| *o = o.clone().factors("abc -> abc"));
    assert_eq!(refused("three_factors f32[8,4] [B] on 2"), "input 'x' has the shape [8, 4]: 3 dims are needed");
    // What the declaration alone shows is refused when it is registered.
    for (name, change, expected) in [
        ("bad_row", (|o| o.signatures(&["S(0)"])) as fn(OpDef) -> OpDef, "op bad_row: signature 'S(0)' has no '->'"),
        (
            "bad_count",
            |o| o.signatures(&["S(0), B -> S(0)"]),
            "op bad_count declares the signature S(0), B -> S(0), but it has 1 input and 1 output",
        ),
        ("bad_factors", |o| o.factors("ab"), "op bad_factors: factor rule 'ab' has no '->'"),
        (
            "bad_terms",
            |o| o.factors("ab, bc -> ac"),
            "op bad_terms declares the factors ab, bc -> ac, but it has 1 input and 1 output",
        ),
    ] {
        let def = change(OpDef::new(&format!("{name}(x) -> y")).unwrap().domain("test"));
        assert_eq!(register(def).err().unwrap().message(), expected);
    }
}

#[test]
fn large_products_are_searched_and_not_enumerated() {
    // 6 to 9 rows over 4 axes are thousands of candidates.
    for question in [
        "matmul f32[64,64] [S(0), S(1), B, B], f32[64,64] [B, B, S(1), S(0)] on 2,2,2,2",
        "add f32[64,64] [S(0), S(1), B, B], f32[64,64] [B, S(1), S(0), B] on 2,2,2,2",
        "relu f32[64,64] [P, S(0), B, S(1)] on 2,2,2,2",
        "softmax f32[64,64] [S(0), S(1), B, B]; dim=1 on 2,2,2,2",
        "where bool[64,64] [S(0), B, B, B], f32[64,64] [B, S(1), B, S(0)], f32[64,64] [P, B, B, B] on 2,2,2,2",
    ] {
        let q = Question::parse(question);
        let start = Instant::now();
        let sig = q.choose();
        println!("{:?}: {} => {}", start.elapsed(), question, answer(&sig));
        assert!(sig.is_ok() && start.elapsed().as_secs() < 20, "{question}: {:?}", start.elapsed());
    }
}
