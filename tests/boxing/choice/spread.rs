//! P inputs that an op would spread over more elements, lowerings that cost more than a gather, P results that the op itself makes,
//! and the layout of gradients: `with_grad_sbp`.

use super::enumerated::check;
use super::question::{Question, answer};
use oflow::boxing::hint;
use oflow::prelude::*;
use oflow::{BackwardOptions, CommRecord, run_ranks};

fn chosen(question: &str) -> String {
    let q = Question::parse(question);
    check(&q);
    answer(&q.choose())
}

#[test]
fn a_small_partial_is_reduced_before_it_is_spread() {
    for (question, expected) in [
        ("mul f32[1024,1024] [B], f32[1] [P] on 4", "[B], [B] -> [B]"),
        ("mul f32[1] [P], f32[1024,1024] [B] on 2", "[B], [B] -> [B]"),
        // Along the other axis nothing is spread, and S(0) stays.
        ("mul f32[1024,1024] [S(0), B], f32[1] [B, P] on 2,2", "[S(0), B], [B, B] -> [S(0), B]"),
        // As large as the result: reduced once, at the end of the chain.
        ("mul i32[1] [B], i32[1024,1024] [P] on 4", "[B], [P(sum)] -> [P(sum)]"),
        ("mul_scalar f32[1024,1024] [P]; s=2.0 on 4", "[P(sum)] -> [P(sum)]"),
        ("add f32[1024,1024] [P], f32[1024] [P] on 4", "[P(sum)], [P(sum)] -> [P(sum)]"),
        ("sum f32[1024,1024] [P]; dims=[0] on 4", "[P(sum)] -> [P(sum)]"),
        // Two small ones are spread by each other.
        ("add f32[1024,1] [P], f32[1,1024] [P] on 4", "[B], [B] -> [B]"),
        ("expand f32[1,256] [P]; shape=[4096,256] on 4", "[B] -> [B]"),
        ("matmul f32[512,8] [P], f32[8,512] [B] on 4", "[B], [B] -> [B]"),
        // What is asked for is P: nothing has to be reduced.
        ("mul f32[1024,1024] [B], f32[1] [P] on 4 asking [P]", "[B], [P(sum)] -> [P(sum)]"),
    ] {
        assert_eq!(chosen(question), expected, "{question}");
    }
}

#[test]
fn a_partial_that_a_float_of_an_elementwise_op_meets_is_reduced_first() {
    for (question, expected) in [
        ("mul f32[1] [B], f32[1024,1024] [P] on 4", "[B], [S(0)] -> [S(0)]"),
        ("mul f32[8,4] [P], f32[8,4] [B] on 4", "[B], [B] -> [B]"),
        ("add f32[8,4] [P(max)], f32[8,4] [B] on 4", "[B], [B] -> [B]"),
        // On the other axis the part of the mesh that is not partial stays.
        ("mul f32[8,4] [S(0), P], f32[8,4] [S(0), B] on 2,2", "[S(0), B], [S(0), B] -> [S(0), B]"),
        // Integers have no infinities; a mask picks numbers of one input or the other.
        ("mul i32[8,4] [P], i32[8,4] [B] on 4", "[P(sum)], [B] -> [P(sum)]"),
        ("where bool[8,4] [B], f32[8,4] [P], f32[8,4] [P] on 4", "[B], [P(sum)], [P(sum)] -> [P(sum)]"),
        // What is asked for, or written in place, is P.
        ("mul f32[8,4] [P], f32[8,4] [B] on 4 asking [P]", "[P(sum)], [B] -> [P(sum)]"),
        ("mul f32[8,4] [P] in place, f32[8,4] [B] on 4", "[P(sum)], [B] -> [P(sum)]"),
        // A product of matrices is the plan of the program.
        ("matmul f32[512,64] [P], f32[64,8] [B] on 4", "[P(sum)], [B] -> [P(sum)]"),
    ] {
        assert_eq!(chosen(question), expected, "{question}");
    }
}

#[test]
fn no_partial_is_made_to_feed_an_op() {
    for (question, expected) in [
        ("add f32[4,1] [S(1), B], f32[1,4] [B, S(0)] on 2,2", "[S(0), B], [B, S(1)] -> [S(0), S(1)]"),
        ("mul f32[4,1] [S(1), B], f32[1,4] [B, S(0)] on 2,2", "[S(0), B], [B, S(1)] -> [S(0), S(1)]"),
        ("add f32[8,4] [P], f32[8,4] [B] on 4", "[B], [B] -> [B]"),
        // A zero that a product adds changes nothing: the bias of a row-parallel layer.
        (
            "linear f32[64,4096] [S(1)], f32[4096,4096] [S(1)], f32[4096] [B] on 4",
            "[S(1)], [S(1)], [P(sum)] -> [P(sum)]",
        ),
        ("add f32[8,4] [P], f32[8,4] [P(max)] on 4", "[S(0)], [S(0)] -> [S(0)]"),
    ] {
        assert_eq!(chosen(question), expected, "{question}");
    }
}

#[test]
fn a_partial_result_of_the_ops_own_making_is_the_programs_plan() {
    for (question, expected) in [
        ("matmul f32[64,4096] [S(1)], f32[4096,4096] [S(0)] on 4", "[S(1)], [S(0)] -> [P(sum)]"),
        ("matmul f32[65536,64] [S(1)], f32[64,512] [S(0)] on 4", "[S(1)], [S(0)] -> [P(sum)]"),
        ("embedding f32[512,64] [S(0)], i64[262144] [B] on 2", "[S(0)], [B] -> [P(sum)]"),
        ("sum f32[1024,1024] [S(0)]; dims=[0] on 4", "[S(0)] -> [P(sum)]"),
        // On a second axis a P is spread: that axis alone is changed.
        ("matmul f32[512,8] [S(1), P], f32[8,4096] [S(0), B] on 2,2", "[S(1), B], [S(0), S(1)] -> [P(sum), S(1)]"),
    ] {
        assert_eq!(chosen(question), expected, "{question}");
    }
}

#[test]
fn a_lowering_is_taken_where_it_costs_less_than_moving_the_input() {
    for (question, expected) in [
        // Maxima and sums of few long rows are less than the rows.
        ("softmax f32[64,65536] [S(1)]; dim=1 on 4", "[S(1)] -> [S(1)] (lowered)"),
        // One exchange of a few numbers is less than two reductions.
        ("softmax f32[16,8] [S(1)]; dim=1 on 4", "[S(0)] -> [S(0)]"),
        ("log_softmax f32[16,8] [S(1)]; dim=1 on 4", "[S(0)] -> [S(0)]"),
        ("argmax f32[16,8] [S(1)]; dim=1 on 4", "[S(0)] -> [S(0)]"),
        // Along the first axis nothing communicates, and S(0) stays.
        ("softmax f32[8,4] [S(0), S(1)]; dim=1 on 2,2", "[S(0), S(0)] -> [S(0), S(0)]"),
    ] {
        assert_eq!(chosen(question), expected, "{question}");
    }
}

#[test]
fn a_hint_tells_what_another_layout_of_the_result_would_cost() {
    let told = |question: &str| {
        let q = Question::parse(question);
        let sig = q.choose().unwrap();
        q.ask(|c| hint(c, &sig)).unwrap()
    };
    let many = told("embedding f32[512,64] [S(0)], i64[262144] [B] on 2").expect("a hint");
    assert!(many.asked * 100 < many.taken, "{many}");
    assert_eq!(many.sbp, sbp![S(1)]);
    assert!(many.to_string().contains("with_sbp(sbp![S(1)], || ...)"), "{many}");
    // Cheap, or hardly dearer than anything else.
    assert_eq!(told("embedding f32[512,64] [S(0)], i64[4] [B] on 2"), None);
    assert_eq!(told("matmul f32[64,4096] [S(1)], f32[4096,4096] [S(0)] on 4"), None);
    // A result that is not P, and one that was asked for.
    assert_eq!(told("embedding f32[512,64] [B], i64[262144] [B] on 2"), None);
    assert_eq!(told("embedding f32[512,64] [S(0)], i64[262144] [B] on 2 asking [P]"), None);
}

/// Comm records of backward, and their bytes.
fn backward_bytes(records: &[CommRecord]) -> u64 {
    records.iter().filter(|r| r.backward).map(|r| r.bytes_by_link().values().sum::<u64>()).sum()
}

#[test]
fn the_gradient_of_a_mean_is_reduced_before_it_is_spread() {
    let run = |ranks: usize| {
        run_ranks(ranks, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let value: Vec<f32> = (0..512 * 256).map(|i| ((i * 7919) % 1000) as f32 / 1000.0 - 0.5).collect();
            let h = from_vec(value, [512, 256], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
            let loss = (&h - h.mean(0)?)?.exp()?.mean(())?;
            oflow::take_comm_trace();
            loss.backward()?;
            let bytes = backward_bytes(&oflow::take_comm_trace());
            Ok((bytes, h.grad().expect("a gradient").to_vec::<f32>()?))
        })
        .unwrap()
        .remove(0)
    };
    let ((bytes, grad), (_, alone)) = (run(4), run(1));
    println!("{bytes} B in backward");
    // One all-reduce of 256 numbers among 4, and some of single numbers; the matrix has 512 KiB.
    assert!(bytes < 20_000, "{bytes}");
    assert!(grad.iter().zip(&alone).all(|(a, b)| (a - b).abs() <= 1e-9), "the gradient differs");
}

#[test]
fn the_layout_of_a_gradient_can_be_asked_for_by_scope() {
    run_ranks(4, |_| {
        let mesh = Placement::all(Device::Cpu)?.mesh(&[("a", 2), ("b", 2)])?;
        for asked in [sbp![B, B], sbp![S(0), S(1)], sbp![S(1), B], sbp![P, B]] {
            let x = ones([4, 6], (&mesh, sbp![S(0), B]))?.requires_grad_(true)?;
            let w = ones([6, 8], (&mesh, sbp![B, S(1)]))?.requires_grad_(true)?;
            let y = with_grad_sbp(asked.clone(), || x.matmul(&w))?;
            assert_eq!(y.sbp()?, &sbp![S(0), S(1)]);
            let z = y.mul(2.0)?.sum(())?;
            oflow::take_comm_trace();
            z.backward()?;
            let boxed = oflow::take_comm_trace();
            let to_asked = boxed
                .iter()
                .filter(|r| r.backward && r.op == "to_global" && r.plan().is_some_and(|p| p.dst.sbp == asked))
                .count();
            // The gradient of y is B and S already where nothing has to be moved for it.
            assert!(to_asked >= usize::from(asked != sbp![B, B]), "{asked}: {}", boxed.len());
            assert_eq!(x.grad().expect("of x").to_vec::<f32>()?, [16.0; 24]);
            assert_eq!(w.grad().expect("of w").to_vec::<f32>()?, [8.0; 48]);
        }
        // Not of inner calls, of local tensors, of what is written in place; none in force outside.
        let l = ones([4, 6], Device::Cpu)?.requires_grad_(true)?;
        assert!(!with_grad_sbp(sbp![B, B], || l.mul(2.0))?.is_global());
        let x = ones([4, 6], (&mesh, sbp![S(0), B]))?.requires_grad_(true)?;
        let v = with_grad_sbp(sbp![B, B], || x.var(()))?;
        v.backward()?;
        // Second derivatives come past the same boxings.
        let y = with_grad_sbp(sbp![B, B], || x.mul(&x))?;
        let again = BackwardOptions { create_graph: true, ..Default::default() };
        let g =
            oflow::functional::grad(&[y.sum(())?], std::slice::from_ref(&x), &again)?.remove(0).expect("a gradient");
        let gg =
            oflow::functional::grad(&[g.sum(())?], std::slice::from_ref(&x), &again)?.remove(0).expect("a gradient");
        assert_eq!(gg.to_vec::<f32>()?, [2.0; 24]);
        // A layout that the gradient cannot have is an error of the call that names who asks.
        let e = with_grad_sbp(sbp![S(5), B], || x.mul(2.0)).unwrap_err();
        assert!(e.to_string().contains("with_grad_sbp"), "{e}");
        let e = with_grad_sbp(sbp![B], || x.mul(2.0)).unwrap_err();
        assert!(e.to_string().contains("with_grad_sbp"), "{e}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn reports_have_the_hints_of_a_run() {
    let reports = run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let w = ones([512, 64], (&mesh, sbp![S(0)]))?;
        let ids = zeros([65536], (&mesh, sbp![B]).dtype(DType::I64))?;
        for _ in 0..3 {
            w.embedding(&ids)?.relu()?;
        }
        Ok((line!() - 2, oflow::report()))
    });
    for (line, report) in reports.unwrap() {
        assert_eq!(report.hints.len(), 1, "{report}");
        let hint = &report.hints[0];
        assert_eq!((hint.file.as_str(), hint.line), (file!(), line));
        assert!(hint.call.starts_with("embedding(") && hint.advice.contains("with_sbp"), "{report}");
        assert!(report.to_string().contains("hint: "), "{report}");
        assert_eq!(oflow::Report::from_json(&report.to_json()).unwrap(), report);
    }
}

#[test]
fn a_call_does_not_fail_where_its_hint_cannot_be_made() {
    use oflow::ops::{OpDef, register};
    let refuse = |_: &mut dyn oflow::ops::Emit, _: &oflow::ops::LowerCall<'_>| Err(Error::argument("refused"));
    let op = OpDef::new("without_hint(x: float) -> y").unwrap().domain("test").signatures(&["S(0) -> P"]);
    register(op.cpu(|_| Ok(())).lowering(|_| Ok(vec!["S(1) -> S(1)".parse()?]), refuse)).unwrap();
    run_ranks(2, |_| {
        let x = ones([512, 512], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
        let y = oflow::functional::call("without_hint", &[(&x).into()], &[])?.remove(0);
        assert_eq!(y.sbp()?, &sbp![P]);
        Ok(())
    })
    .unwrap();
}
