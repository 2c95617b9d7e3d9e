//! Planted wrong rules: the signature harness must catch each of them, and let the right rule pass.

use oflow::interpreter::Call;
use oflow::kernels::{View, cpu};
use oflow::ops::{AttrValue, DTypeRule, NdSignature, Op, OpDef, SbpRule, ShapeRule, register};
use oflow::placement::{Device, Placement};
use oflow::prelude::*;
use oflow::sbp::Signature;
use oflow::testing::{Sample, reference, run_cases, signature_cases, variants};
use std::sync::Arc;

/// What the harness says about an op on its samples, in all sizes, on meshes of 2, 3 and 4 ranks.
fn verdict(op: &'static Op) -> std::result::Result<usize, String> {
    let mut count = 0;
    for sample in Sample::all(op).map_err(|e| e.to_string())? {
        for (word, v) in variants(op, &sample) {
            let what = format!("{} ({word})", op.name());
            let Ok(plan) = reference(op, &what, &v, true, false) else { continue };
            let plan = Arc::new(plan);
            for mesh in [&[2][..], &[3], &[4], &[2, 2]] {
                let cases = signature_cases(&plan, &v, mesh, usize::MAX).map_err(|e| e.to_string())?;
                for r in run_cases(mesh, &cases) {
                    r?;
                    count += 1;
                }
            }
        }
    }
    Ok(count)
}

/// Registers the op twice, with the wrong rows and with the right ones, and asks for both verdicts.
fn planted(name: &str, make: impl Fn(&str) -> OpDef, wrong: &[&str], right: &[&str]) {
    let with = |suffix: &str, rows: &[&str]| {
        let name = format!("planted_{name}_{suffix}");
        let mut def = make(&name);
        def.sbp = SbpRule::Signatures(rows.iter().map(|r| r.to_string()).collect());
        register(def.domain("planted")).expect("registered")
    };
    let caught = verdict(with("wrong", wrong));
    let message = caught.expect_err(&format!("the wrong rule of {name} was not caught"));
    assert!(message.contains(&format!("planted_{name}_wrong")), "{message}");
    println!("{name}: {message}");
    let count = verdict(with("right", right)).unwrap_or_else(|e| panic!("the right rule of {name}: {e}"));
    assert!(count > 0);
}

fn elementwise(signature: &str, expr: &str, samples: &'static [&'static str]) -> impl Fn(&str) -> OpDef {
    let (signature, expr) = (signature.to_string(), expr.to_string());
    move |name| {
        let def = OpDef::elementwise(&format!("{name}{signature}"), &expr).expect("declaration");
        def.samples(samples)
    }
}

#[test]
fn partial_sums_pass_only_what_is_linear() {
    let x = &["f32[3, 5]"][..];
    planted("relu", elementwise("(x) -> y", "relu(x)", x), &["P -> P"], &["S0 -> S0", "P(max) -> P(max)"]);
    planted(
        "scalar_add",
        elementwise("(x; s: runtime scalar = 2.0) -> y", "x + s", x),
        &["P -> P"],
        &["S1 -> S1", "P(max) -> P(max)", "P(min) -> P(min)"],
    );
    let xy = &["f32[3, 5] f32[3, 5]"][..];
    planted(
        "product",
        elementwise("(a, b) -> y", "a * b", xy),
        &["P, P -> P"],
        &["P, B -> P", "B, P -> P", "S0, S0 -> S0"],
    );
    planted("sum_of_one", elementwise("(a, b) -> y", "a + b", xy), &["P, B -> P"], &["P, P -> P"]);
    // Parts of whole numbers that are not whole.
    planted("floor", elementwise("(x: float) -> y", "floor(x)", x), &["P -> P"], &["P(max) -> P(max)"]);
    let int = |name: &str| {
        let mut def = elementwise("(x; dtype: dtype = i64) -> y", "x", x)(name);
        def.dtype = DTypeRule::Attr;
        def
    };
    planted("cast_to_int", int, &["P -> P"], &["S0 -> S0", "P(max) -> P(max)"]);
}

#[test]
fn partial_extremes_swap_through_what_decreases() {
    let x = &["f32[3, 5]"][..];
    planted("negation", elementwise("(x) -> y", "-x", x), &["P(max) -> P(max)"], &["P(max) -> P(min)", "P -> P"]);
    // The maxima of two inputs need not lie on one rank.
    let sum = elementwise("(a, b) -> y", "a + b", &["f32[3, 5] f32[3, 5]"]);
    planted("sum_of_maxima", sum, &["P(max), P(max) -> P(max)"], &["P(max), B -> P(max)"]);
    planted("square", elementwise("(x) -> y", "square(x)", x), &["P(max) -> P(max)"], &["S1 -> S1"]);
    // A part of a positive value may be negative: outside the domain there is no order to keep.
    planted(
        "logarithm",
        elementwise("(x: float) -> y", "log(x)", &["f32[3, 5]+"]),
        &["P(max) -> P(max)"],
        &["S1 -> S1"],
    );
    let less = |name: &str| {
        elementwise("(a, b) -> y", "a < b", &["f32[3, 5] f32[3, 5]"])(name).dtype(DTypeRule::Fixed(vec![DType::Bool]))
    };
    planted("comparison", less, &["P, B -> P(max)"], &["S0, S0 -> S0"]);
}

/// Sum over dim 0, as a kernel of its own.
fn sum0(name: &str) -> OpDef {
    OpDef::new(&format!("{name}(x: float) -> y"))
        .expect("declaration")
        .shape1(|c| Ok(c.shape(0)?[1..].into()))
        .cpu(|cx| {
            let (x, mut dims) = (cx.input(0)?, cx.output(0).dims().to_vec());
            dims.insert(0, 1);
            // SAFETY: one more dim of size 1 addresses nothing new.
            let out: View = unsafe {
                cx.output(0).restride(0, dims.as_slice().into(), oflow::kernels::view::contiguous_strides(&dims))
            };
            Ok(cpu::reduce::reduce(x, &out, cpu::reduce::Reduce::Sum, &[0])?)
        })
        .samples(&["f32[5, 3]"])
}

fn softmax1(name: &str) -> OpDef {
    OpDef::new(&format!("{name}(x: float) -> y"))
        .expect("declaration")
        .cpu(|cx| Ok(cpu::softmax::softmax(cx.input(0)?, cx.output(0), 1)?))
        .samples(&["f32[3, 5]"])
}

/// tril whose kernel looks at its shard's offset, or forgets to.
fn lower(name: &str, looks: bool) -> OpDef {
    OpDef::new(&format!("{name}(x) -> y"))
        .expect("declaration")
        .cpu(move |cx| {
            let at = &cx.output_box(0).offset;
            let (row, col) = if looks { (at[0] as i64, at[1] as i64) } else { (0, 0) };
            Ok(cpu::index::tril(cx.input(0)?, cx.output(0), 0, row, col)?)
        })
        .samples(&["f32[5, 5]"])
}

fn flat(name: &str) -> OpDef {
    OpDef::new(&format!("{name}(x; shape: shape) -> y"))
        .expect("declaration")
        .shape_rule(ShapeRule::Attr)
        .check(|c| match c.ints("shape")?.iter().product::<i64>() == c.input(0)?.len() as i64 {
            true => Ok(()),
            false => Err(Error::shape("another number of elements")),
        })
        .localize(|c| Ok([AttrValue::from(c.outputs[0].size.as_slice())].into_iter().collect()))
        .cpu(|cx| {
            // SAFETY: read under the input's dims where it has as many elements; both are contiguous.
            let n = cx.input(0)?.len().min(cx.output(0).len());
            let (x, y) = (cx.input(0)?, cx.output(0));
            let one: oflow::kernels::Strides = [1].into_iter().collect();
            let (x, y) = unsafe {
                (x.restride(0, [n].as_slice().into(), one.clone()), y.restride(0, [n].as_slice().into(), one))
            };
            Ok(cpu::copy::copy(&x, &y)?)
        })
        .samples(&["f32[5, 4]; shape=[20]"])
}

fn table(name: &str) -> OpDef {
    OpDef::new(&format!("{name}(weight: float, ids: int) -> y"))
        .expect("declaration")
        .shape1(|c| Ok([c.shape(1)?[0], c.shape(0)?[1]].into_iter().collect()))
        .dtype(DTypeRule::Input(0))
        .cpu(|cx| {
            let first = cx.input_box(0)?.offset[0] as i64;
            Ok(cpu::embedding::embedding(cx.input(0)?, cx.input(1)?, cx.output(0), first)?)
        })
        .samples(&["f32[7, 3] i64[6]<7"])
}

#[test]
fn splits_need_what_the_kernel_does() {
    planted("reduced_dim_stays", sum0, &["S0 -> S0"], &["S0 -> P", "S1 -> S0", "P -> P"]);
    planted("reduced_dim_whole", sum0, &["S0 -> B"], &["S0 -> P"]);
    planted("softmax_own_dim", softmax1, &["S1 -> S1"], &["S0 -> S0"]);
    planted("vocabulary", table, &["S0, B -> B"], &["S0, B -> P", "S1, B -> S1", "B, S0 -> S0", "P, B -> P"]);
    // S(0) -> S(0) of [5, 4] -> [20] is exact on no mesh here; P is.
    planted("flat_uneven", flat, &["S0 -> S0"], &["P -> P"]);
}

#[test]
fn a_kernel_that_forgets_its_offset_is_caught() {
    let register = |name: &str, looks| {
        let mut def = lower(name, looks).domain("planted");
        def.sbp = SbpRule::Signatures(vec!["S0 -> S0".into(), "S1 -> S1".into()]);
        register(def).expect("registered")
    };
    let e = verdict(register("planted_tril_wrong", false)).expect_err("not caught");
    assert!(e.contains("planted_tril_wrong"), "{e}");
    verdict(register("planted_tril_right", true)).unwrap();
}

thread_local! {
    static MY_RANK: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[test]
fn a_choice_that_depends_on_the_rank_is_an_error_and_no_hang() {
    let mut def = OpDef::elementwise("planted_rank_choice(x) -> y", "x + x").unwrap().domain("planted");
    def.nd_infer = Some(Arc::new(|_, p, _| {
        let s: Signature = if MY_RANK.get() == 0 { "S0 -> S0" } else { "S1 -> S1" }.parse()?;
        let nd = |s: Sbp| NdSbp::uniform(s, p.axes());
        Ok(vec![NdSignature {
            inputs: [nd(s.inputs[0])].into_iter().collect(),
            outputs: [nd(s.outputs[0])].into_iter().collect(),
            lowering: None,
        }])
    }));
    let op = register(def).unwrap();
    let run = |depends: bool| {
        oflow::run_ranks(2, |w| {
            MY_RANK.set(if depends { w.rank() } else { 0 });
            let mesh = Placement::all(Device::Cpu)?;
            let shard = full([4, 4], w.rank() as f32, Device::Cpu)?;
            let x = shard.to_global((&mesh, sbp![P]))?;
            let y = Call::new(op, &[Some(&x)]).run()?;
            y[0].to_f64_vec()
        })
    };
    assert_eq!(run(false).unwrap(), vec![vec![2.0; 16]; 2]);
    let e = run(true).unwrap_err();
    println!("{e}");
    assert_eq!(e.kind(), oflow::ErrorKind::Diverged, "{e}");
    assert!(e.to_string().contains("planted_rank_choice"), "{e}");
}
