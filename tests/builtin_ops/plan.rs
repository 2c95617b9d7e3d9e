//! Plans are pure data: made without tensors, ranks or memory, for any rank of any world, and alike on all of them.

use oflow::boxing::Planner;
use oflow::ops::{InferCtx, KernelDef, Op, TensorType, find, resolve_attrs};
use oflow::plan::{
    Input, KernelTable, Numbers, Plan, PlanCx, Request, Step, TypeRef, Where, intern_global, intern_local, plan,
};
use oflow::prelude::*;
use oflow::sbp::{NdSbp, check_layout};
use oflow::testing::Sample;

struct Kernels;

impl KernelTable for Kernels {
    fn select(
        &self,
        op: &'static Op,
        device: Device,
        physical: &InferCtx<'_>,
        outs: &[TensorType],
    ) -> Result<KernelDef> {
        oflow::backend::select(op, device, physical, outs)
    }
}

/// The plan of a sample for one rank, with its inputs in these layouts; local without a mesh.
fn plan_of(op: &'static Op, s: &Sample, mesh: Option<&Placement>, sbps: &[NdSbp], rank: usize) -> Result<Plan> {
    let (attrs, runtime) = s.attributes(op)?;
    let kinds: Vec<_> = runtime.iter().map(|n| n.kind()).collect();
    let inputs: Vec<Option<Input>> = s
        .types()
        .into_iter()
        .enumerate()
        .map(|(i, t)| {
            let t = t?;
            let ty = match mesh {
                Some(m) => TypeRef::Global(intern_global(t, m, &sbps[i])),
                None => TypeRef::Local(intern_local(&t.shape, t.dtype, Device::Cpu)),
            };
            Some(Input { ty, needs_grad: false, given: false })
        })
        .collect();
    let planner = Planner::default();
    let whole = mesh.map(|m| NdSbp::broadcast(m.axes()));
    plan(
        &PlanCx { rank, planner: &planner, kernels: &Kernels },
        &Request {
            op,
            attrs: &attrs,
            runtime_kinds: &kinds,
            inputs: &inputs,
            place: mesh.map_or(Where::Local(Device::Cpu), Where::Global),
            target: whole.as_ref().filter(|_| inputs.is_empty()),
            given: None,
            keep: false,
            asked: None,
            signature: None,
        },
    )
}

/// Every buffer is made once, by a step before those that read it; nothing is read after its last use; outputs are kept.
fn check(what: &str, inputs: usize, p: &Plan) {
    let mut made = vec![false; p.buffers.len()];
    made[..inputs].fill(true);
    for (n, step) in p.steps.iter().enumerate() {
        for b in step.reads() {
            assert!(made[b.index()], "{what}: step {n} reads b{} before it is made\n{p}", b.0);
            let last = p.buffers[b.index()].last_use;
            assert!(last.is_none_or(|last| last >= n), "{what}: b{} is read after its last use\n{p}", b.0);
            assert!(last.is_some() || p.outputs.contains(&b), "{what}: b{} has no last use\n{p}", b.0);
        }
        for b in step.writes() {
            assert!(step.reads().any(|r| r == b) && b.index() < inputs, "{what}: writes b{}\n{p}", b.0);
        }
        for b in step.makes() {
            assert!(!std::mem::replace(&mut made[b.index()], true), "{what}: b{} is made twice\n{p}", b.0);
        }
    }
    for b in &p.outputs {
        assert!(made[b.index()] && p.buffers[b.index()].last_use.is_none(), "{what}: output b{}\n{p}", b.0);
    }
}

#[test]
fn every_plan_is_sound_and_the_same_on_all_ranks() -> Result<()> {
    let (mut plans, mut lowered) = (0, 0);
    let meshes = [vec![2], vec![3], vec![2, 2]];
    for op in oflow_tests::built_in_ops() {
        for (i, s) in Sample::all(op)?.iter().enumerate() {
            let what = format!("{} sample {i}", op.name());
            let n = s.inputs.len();
            let local = plan_of(op, s, None, &[], 0).unwrap_or_else(|e| panic!("{what}: {e}"));
            check(&what, n, &local);
            assert!(local.boxings().next().is_none(), "{what}: {local}");
            assert!(local.steps.len() == 1 || op.length.is_some(), "{what}: {local}");
            for dims in &meshes {
                let ranks: Vec<usize> = (0..dims.iter().product()).collect();
                let mesh = Placement::new(Device::Cpu, &ranks, dims)?;
                for split in 0..3 {
                    // All inputs split at one dim, where they have it; B otherwise.
                    let layout = |t: &Option<oflow::ops::TensorType>| {
                        let whole = NdSbp::broadcast(mesh.axes());
                        let Some(t) = t else { return whole };
                        let want = whole.map(|_| oflow::sbp::Sbp::Split(split));
                        if check_layout(&t.shape, t.dtype, &mesh, &want).is_ok() { want } else { whole }
                    };
                    let sbps: Vec<NdSbp> = s.types().iter().map(layout).collect();
                    let Ok(first) = plan_of(op, s, Some(&mesh), &sbps, 0) else { continue };
                    let what = format!("{what} on {dims:?}, S({split})");
                    // One rank more: it has no part, and the same steps.
                    for rank in 0..=ranks.len() {
                        let p = plan_of(op, s, Some(&mesh), &sbps, rank)?;
                        check(&what, n, &p);
                        assert_eq!(p.to_string(), first.to_string(), "{what}: rank {rank}");
                        assert_eq!(p.stream_key, first.stream_key, "{what}: rank {rank}");
                        assert_eq!(p.takes_part, rank < ranks.len(), "{what}: rank {rank}");
                        plans += 1;
                    }
                    let inner = |s: &Step| matches!(s, Step::Kernel(k) if matches!(k.numbers, Numbers::Each(..)));
                    lowered += usize::from(first.steps.iter().any(inner));
                }
            }
        }
    }
    println!("{plans} plans, {lowered} calls with lowerings");
    assert!(plans > 3000 && lowered > 10 || oflow_tests::selected(), "{plans} plans, {lowered} with lowerings");
    Ok(())
}

#[test]
fn a_lowering_is_steps_with_last_uses_for_4096_ranks_without_any() -> Result<()> {
    let ranks: Vec<usize> = (0..4096).collect();
    let mesh = Placement::new(Device::Cuda, &ranks, &[4096])?;
    let op = find("layer_norm")?;
    let (attrs, runtime) = resolve_attrs(op, &[])?;
    let kinds: Vec<_> = runtime.iter().map(|n| n.kind()).collect();
    let ty = oflow::ops::TensorType::new(&[8, 1 << 20], DType::F32);
    let x = Input { ty: TypeRef::Global(intern_global(ty, &mesh, &sbp![S(1)])), needs_grad: false, given: false };
    let p = plan(
        &PlanCx { rank: 77, planner: &Planner::default(), kernels: &Kernels },
        &Request {
            op,
            attrs: &attrs,
            runtime_kinds: &kinds,
            inputs: &[Some(x), None, None],
            place: Where::Global(&mesh),
            target: None,
            given: None,
            keep: true,
            asked: None,
            signature: None,
        },
    )?;
    check("layer_norm", 3, &p);
    // The number `eps` is a symbol: the plan holds for every value of it.
    let text = p.to_string();
    assert!(text.contains("add_scalar(") && text.contains("number 0"), "{text}");
    let reduced = p.boxings().filter(|b| b.boxing.to.sbp == sbp![B]).count();
    assert_eq!(reduced, 2, "mean and variance are reduced once each:\n{text}");
    Ok(())
}
