//! Results whose length depends on values: `nonzero`, `masked_select`, `unique`, and ops of other crates that decide theirs.

use oflow::functional::{call, grad};
use oflow::interpreter::Call;
use oflow::ops::{DTypeRule, KernelDef, OpDef, find, register};
use oflow::prelude::*;
use oflow::sbp::Signature;
use oflow::testing::{Random, Sample, differentiable, mixed_cases, reference, run_cases, signature_cases, variants};
use oflow::vm::VmMode;
use oflow::{BackwardOptions, Policy, boxing_policy};
use oflow_tests::{LARGE_MESHES, settle};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

#[test]
fn every_signature_of_these_ops_on_every_mesh() {
    let (mut wrong, mut total) = (vec![], 0);
    for name in ["count_nonzero", "nonzero", "masked_select", "masked_spread", "unique"] {
        let op = find(name).unwrap();
        for (i, sample) in Sample::all(op).unwrap().iter().enumerate() {
            for (word, s) in variants(op, sample) {
                let what = format!("{name} sample {i} ({word})");
                let Ok(plan) = reference(op, &what, &s, true, differentiable(op)) else {
                    assert_ne!(word, "as given", "{what}");
                    continue;
                };
                let plan = Arc::new(plan);
                for mesh in oflow::testing::MESHES.into_iter().chain(LARGE_MESHES) {
                    let mut cases = signature_cases(&plan, &s, mesh, 16).unwrap();
                    cases.extend(mixed_cases(&plan, mesh, 4).unwrap());
                    total += cases.len();
                    wrong.extend(run_cases(mesh, &cases).into_iter().filter_map(|r| r.err()));
                }
            }
        }
    }
    settle("counted", total, &wrong);
    assert!(total > 1500, "{total}");
}

/// Random tensors in random layouts on meshes that are not the whole world, against what plain loops find.
#[test]
fn random_tensors_on_a_part_of_the_world() {
    for mode in [VmMode::Inline, VmMode::CommThread, VmMode::Async { delay_us: 200, seed: 5 }] {
        let calls = oflow::run_ranks_with(5, mode, |world| {
            let mut random = Random::new(0x1234_5678_9abc_def1);
            let mesh = Placement::new(Device::Cpu, &[3, 0, 4, 1], &[2, 2])?;
            let inside = mesh.position(world.rank()).is_some();
            let layouts = [
                sbp![B, B],
                sbp![S(0), B],
                sbp![B, S(0)],
                sbp![S(0), S(0)],
                sbp![S(0), S(1)],
                sbp![S(1), S(0)],
                sbp![B, P],
            ];
            for round in 0..40 {
                let dims: Vec<usize> = (0..2).map(|_| random.below(6)).collect();
                let density = 1 + random.below(4);
                let n = dims.iter().product::<usize>();
                let mask: Vec<bool> = (0..n).map(|_| random.below(4) < density).collect();
                let values: Vec<f64> = (0..n).map(|_| random.below(9) as f64 - 4.0).collect();
                let pick = |s: &mut Random, bools: bool| loop {
                    let l = &layouts[s.below(layouts.len())];
                    if !bools || !l.has_partial() {
                        return l.clone();
                    }
                };
                let (lx, lm) = (pick(&mut random, false), pick(&mut random, true));
                let x = from_vec(values.clone(), &dims[..], (&mesh, lx.clone()))?.requires_grad_(true)?;
                let m = from_vec(mask.clone(), &dims[..], (&mesh, lm.clone()))?;
                let what = format!("round {round}: {dims:?} {lx} {lm} {mode:?}");
                let y = x.masked_select(&m)?;
                let chosen: Vec<usize> = (0..n).filter(|i| mask[*i]).collect();
                assert_eq!(y.shape(), [chosen.len()], "{what}");
                assert_eq!(
                    y.detach().to_vec::<f64>()?,
                    chosen.iter().map(|i| values[*i]).collect::<Vec<_>>(),
                    "{what}"
                );
                y.mul(&y)?.sum(())?.backward()?;
                let dx = x.grad().expect("gradient");
                let want: Vec<f64> = (0..n).map(|i| if mask[i] { 2.0 * values[i] } else { 0.0 }).collect();
                assert_eq!(dx.to_vec::<f64>()?, want, "{what}");
                assert_eq!(dx.sbp()?, &lx, "{what}");
                let at = x.detach().nonzero()?;
                let want: Vec<i64> = (0..n)
                    .filter(|i| values[*i] != 0.0)
                    .flat_map(|i| [(i / dims[1]) as i64, (i % dims[1]) as i64])
                    .collect();
                assert_eq!((at.shape(), at.to_vec::<i64>()?), (&[want.len() / 2, 2][..], want), "{what}");
                assert_eq!(at.detach().to_local().is_ok(), inside, "{what}");
                let mut distinct = values.clone();
                distinct.sort_by(f64::total_cmp);
                distinct.dedup();
                assert_eq!(x.detach().unique()?.to_vec::<f64>()?, distinct, "{what}");
                let n = m.count_nonzero(())?.item()?;
                assert_eq!(n as usize, chosen.len(), "{what}");
            }
            Ok(())
        });
        calls.unwrap();
    }
}

#[test]
fn derivatives_of_every_order_pass_through_what_a_mask_chooses() -> Result<()> {
    let x = from_vec(vec![1.0f64, -2.0, 3.0, 4.0], [2, 2], Device::Cpu)?.requires_grad_(true)?;
    let y = x.masked_select(&x.detach().gt(0.0)?)?;
    let keep = BackwardOptions { create_graph: true, ..Default::default() };
    let d = grad(&[y.mul(&y)?.mul(&y)?.sum(())?], std::slice::from_ref(&x), &keep)?[0].clone().unwrap();
    assert_eq!(d.to_vec::<f64>()?, [3.0, 0.0, 27.0, 48.0]);
    let dd = grad(&[d.sum(())?], std::slice::from_ref(&x), &keep)?[0].clone().unwrap();
    assert_eq!(dd.to_vec::<f64>()?, [6.0, 0.0, 18.0, 24.0]);
    let ddd = grad(&[dd.sum(())?], &[x], &keep)?[0].clone().unwrap();
    assert_eq!(ddd.to_vec::<f64>()?, [6.0, 0.0, 6.0, 6.0]);
    Ok(())
}

#[test]
fn pytorchs_edges() -> Result<()> {
    let zero_dims = from_vec(vec![5.0f32], [], Device::Cpu)?;
    assert_eq!(zero_dims.nonzero()?.shape(), [1, 0]);
    assert_eq!(zero_dims.mul(0.0)?.nonzero()?.shape(), [0, 0]);
    let nan = from_vec(vec![f32::NAN, 0.0, -0.0, f32::INFINITY], [4], Device::Cpu)?;
    assert_eq!(nan.nonzero()?.to_vec::<i64>()?, [0, 3]);
    let none = zeros([0, 3], Device::Cpu)?;
    assert_eq!((none.nonzero()?.shape(), none.unique()?.shape()), (&[0, 2][..], &[0][..]));
    // Views: what is not contiguous, what repeats.
    let x = arange(6, Device::Cpu.dtype(DType::I64))?.reshape([2, 3])?;
    assert_eq!(x.t()?.nonzero()?.to_vec::<i64>()?, [0, 1, 1, 0, 1, 1, 2, 0, 2, 1]);
    let row = from_vec(vec![true, false, true], [3], Device::Cpu)?;
    assert_eq!(x.masked_select(&row)?.to_vec::<i64>()?, [0, 2, 3, 5]);
    let column = from_vec(vec![1i64, 2], [2, 1], Device::Cpu)?;
    assert_eq!(column.masked_select(&row)?.to_vec::<i64>()?, [1, 1, 2, 2]);
    assert_eq!(call("masked_select", &[(&x).into(), (&row).into()], &[])?[0].shape(), [4]);
    // What was chosen shares no memory, so a write does not reach the source.
    let all = x.masked_select(&x.ge(0)?)?;
    all.mul_(0)?;
    assert_eq!(x.to_vec::<i64>()?, [0, 1, 2, 3, 4, 5]);
    Ok(())
}

#[test]
fn what_cannot_be_is_refused_with_a_sentence() -> Result<()> {
    let x = from_vec(vec![1.0f32, 0.0], [2], Device::Cpu)?;
    let e = x.masked_select(&x).unwrap_err().to_string();
    assert!(e.contains("masked_select(f32[2], f32[2])") && e.contains("bool") && e.contains("dynamic_shape.rs"), "{e}");
    let mask = from_vec(vec![true; 3], [3], Device::Cpu)?;
    let e = x.masked_select(&mask).unwrap_err().to_string();
    assert!(e.contains("masked_select(f32[2], bool[3])") && e.contains("dynamic_shape.rs"), "{e}");
    let into = zeros([2, 1], Device::Cpu.dtype(DType::I64))?;
    let e = Call::new(find("nonzero")?, &[Some(&x)]).given(&into).run1().unwrap_err().to_string();
    assert!(e.contains("depends on values") && e.contains("in place"), "{e}");
    // Values that the mask does not choose.
    let few = call("masked_spread", &[(&x).into(), (&mask).into()], &[]).unwrap_err().to_string();
    assert!(few.contains("chooses 3 elements, there are 2 values"), "{few}");
    let dry = oflow::dry_run(4, 1, |_| {
        let x = zeros([4], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
        Ok(x.nonzero().unwrap_err().to_string())
    })?;
    assert!(dry.contains("nonzero") && dry.contains("depends on values"), "{dry}");
    Ok(())
}

#[test]
fn i18_a_policy_that_denies_boxing_denies_what_lengths_need() {
    let run = |policy: Policy, layout: NdSbp| {
        let said = oflow::run_ranks(2, move |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let x = from_vec(vec![1i64, 0, 2, 3], [4], (&mesh, layout.clone()))?;
            let guard = boxing_policy(policy);
            let said = match x.nonzero() {
                Ok(_) => String::new(),
                Err(e) => e.to_string(),
            };
            drop(guard);
            // Nobody waits for the others afterwards.
            assert_eq!(x.nonzero()?.to_vec::<i64>()?, [0, 2, 3]);
            Ok(said)
        });
        let said = said.unwrap();
        assert_eq!(said[0], said[1]);
        said[0].clone()
    };
    for policy in [Policy::Deny, Policy::DenyAll] {
        let e = run(policy, sbp![S(0)]);
        assert!(e.contains("denied") && e.contains("inputs that are B"), "{e}");
        assert_eq!(run(policy, sbp![B]), "");
    }
    assert_eq!(run(Policy::Allow, sbp![S(0)]), "");
}

#[test]
fn a_layout_can_be_asked_of_the_result() {
    let ranks = oflow::run_ranks(3, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = from_vec(vec![0i64, 0, 0, 0, 1, 2, 3], [7], (&mesh, sbp![S(0)]))?;
        let free = x.nonzero()?;
        assert_eq!(free.sbp()?, &sbp![S(0)]);
        // The parts are 0, 1 and 2 long, the split is balanced.
        assert_eq!(free.to_local()?.shape(), [1, 1]);
        for want in [sbp![B], sbp![S(1)], sbp![P]] {
            let y = with_sbp(want.clone(), || x.nonzero())?;
            assert_eq!((y.sbp()?, y.to_vec::<i64>()?), (&want, vec![4, 5, 6]), "{want}");
        }
        Ok(())
    });
    ranks.unwrap();
}

static LIE: AtomicI64 = AtomicI64::new(0);

/// An op of another crate whose kernel says how many of the elements it keeps.
fn front() -> &'static str {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let def = OpDef::new("front(x: int) -> y").unwrap();
        let def = def
            .domain("counted")
            .length_by_kernel()
            .shape1(|c| Ok([c.input(0)?.len()].into_iter().collect()))
            .dtype(DTypeRule::Input(0))
            .get_sbp(|_| Ok(vec![Signature::new(&[oflow::sbp::Sbp::Split(0)], &[oflow::sbp::Sbp::Split(0)])]))
            .kernel(KernelDef::cpu("front", |cx| {
                let (x, out) = (cx.input(0)?, cx.output(0));
                oflow::kernels::cpu::copy::copy(x, out)?;
                // Rank 1 keeps all but one; under a lie it says another number.
                let first = cx.input_box(0)?.offset[0] == 0;
                let lie = LIE.load(Relaxed);
                let n = if first || lie == 0 { x.len() as i64 - i64::from(!first) } else { lie };
                Ok(oflow::kernels::cpu::copy::fill(cx.output(1), oflow::kernels::Scalar::Int(n))?)
            }));
        register(def).unwrap();
    });
    "counted.front"
}

#[test]
fn an_op_of_another_crate_decides_its_length_and_cannot_lie_its_way_out_of_memory() {
    let run = || {
        oflow::run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let x = arange(5000, (&mesh, sbp![S(0)]).dtype(DType::I64))?;
            Ok(match call(front(), &[(&x).into()], &[]) {
                Ok(y) => (y[0].to_vec::<i64>()?.len() as i64, String::new()),
                Err(e) => (-1, e.to_string()),
            })
        })
        .unwrap()
    };
    assert_eq!(run(), [(4999, String::new()), (4999, String::new())]);
    for lie in [-1, 2501, i64::MAX, i64::MIN] {
        LIE.store(lie, Relaxed);
        for (n, e) in run() {
            assert!(n == -1 && e.contains("rank 1 gave a length that its result cannot have"), "{lie}: {n} {e}");
        }
    }
    LIE.store(0, Relaxed);
}

#[test]
fn declarations_that_cannot_hold_are_refused() {
    let e = register(OpDef::new("lost(x!: int) -> y").unwrap().domain("counted").length_by_kernel()).err().unwrap();
    assert!(e.to_string().contains("mutable input"), "{e}");
    let wrong = OpDef::new("wrong(x) -> y").unwrap().domain("counted").length_by("relu", 0);
    register(wrong.shape1(|c| Ok([c.input(0)?.len()].into_iter().collect()))).unwrap();
    let x = ones([3], Device::Cpu).unwrap();
    let e = call("counted.wrong", &[(&x).into()], &[]).unwrap_err().to_string();
    assert!(e.contains("the length of counted.wrong is that of relu, which does not give one i64"), "{e}");
}

/// What no signature lists: a mask that changes before backward, threads without a rank, one call with one dtype after the other.
#[test]
fn a_changed_mask_is_an_error_in_backward_and_any_thread_may_count() -> Result<()> {
    let x = from_vec(vec![1.0f32, 2.0, 3.0], [3], Device::Cpu)?.requires_grad_(true)?;
    let mask = from_vec(vec![true, false, true], [3], Device::Cpu)?;
    let y = x.masked_select(&mask)?.sum(())?;
    mask.zero_()?;
    let e = y.backward().unwrap_err().to_string();
    assert!(e.contains("masked_select") && e.contains("dynamic_shape.rs"), "{e}");
    let counted: Vec<_> = (0..4i64)
        .map(|k| {
            std::thread::spawn(move || -> Result<_> {
                let x = from_vec((0..40).map(|i| i % (k + 2)).collect(), [8, 5], Device::Cpu)?;
                let found = [x.nonzero()?, x.cast(DType::F64)?.nonzero()?, x.cast(DType::Bool)?.t()?.nonzero()?];
                Ok(found.map(|t| t.shape()[0] as i64))
            })
        })
        .collect();
    for (k, found) in counted.into_iter().enumerate() {
        let want = (0..40).filter(|i| i % (k as i64 + 2) != 0).count() as i64;
        assert_eq!(found.join().unwrap()?, [want; 3]);
    }
    Ok(())
}
