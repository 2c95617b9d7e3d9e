//! The way of one call when warm: no heap allocation, a cache hit, and what the key must and must not hold.

use super::ALLOCATIONS;
use oflow::prelude::*;

/// Allocations of this thread during `f`.
fn allocations(f: impl FnOnce() -> Result<()>) -> Result<usize> {
    let before = ALLOCATIONS.get();
    f()?;
    Ok(ALLOCATIONS.get() - before)
}

#[test]
fn a_warm_global_add_allocates_nothing() {
    let counts = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let a = randn([16, 8], (&mesh, sbp![S(0)]))?;
        let b = randn([16, 8], (&mesh, sbp![S(0)]))?;
        let quiet = no_grad();
        for _ in 0..20 {
            a.add(&b)?;
        }
        let n = allocations(|| {
            for _ in 0..100 {
                a.add(&b)?;
            }
            Ok(())
        });
        drop(quiet);
        n
    })
    .unwrap();
    assert_eq!(counts, [0, 0]);
}

#[test]
fn warm_local_calls_allocate_nothing() {
    let a = randn([8, 8], Device::Cpu).unwrap();
    let w = randn([8, 8], Device::Cpu).unwrap();
    let calls: [(&str, &dyn Fn() -> Result<Tensor>); 4] =
        [("add", &|| a.add(&w)), ("mul_scalar", &|| a.mul(2.0)), ("relu", &|| a.relu()), ("transpose", &|| a.t())];
    for (name, f) in calls {
        for _ in 0..20 {
            f().unwrap();
        }
        let n = allocations(|| (0..100).try_for_each(|_| f().map(drop))).unwrap();
        assert_eq!(n, 0, "{name}");
    }
}

#[test]
fn a_runtime_scalar_is_not_in_the_key_but_its_kind_is() {
    let x = ones([3], Device::Cpu.dtype(DType::I64)).unwrap();
    assert_eq!(x.mul(2i64).unwrap().to_vec::<i64>().unwrap(), [2; 3]);
    assert_eq!(x.mul(5i64).unwrap().to_vec::<i64>().unwrap(), [5; 3]);
    let f = x.mul(0.5).unwrap();
    assert_eq!((f.dtype(), f.to_vec::<f32>().unwrap()), (DType::F32, vec![0.5; 3]));
}

#[test]
fn a_partial_tensor_used_by_three_ops_is_reduced_once() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4, 4], (&mesh, sbp![S(1)]))?;
        let p = x.sum(1)?;
        assert_eq!(p.sbp()?, &sbp![P]);
        oflow::take_comm_trace();
        p.relu()?;
        p.exp()?;
        p.add(1.0)?;
        let n = oflow::take_comm_trace().len();
        assert_eq!(n, 1, "P was reduced {n} times");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_scalar_added_to_a_partial_sum_is_added_once() {
    let sums = oflow::run_ranks(4, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let p = ones([8], (&mesh, sbp![S(0)]))?.sum(())?;
        p.add(1.0)?.item()
    })
    .unwrap();
    assert_eq!(sums, [9.0; 4]);
}

#[test]
fn a_warm_boxing_allocates_nothing() {
    let counts = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let a = randn([16, 8], (&mesh, sbp![S(0)]))?;
        let b = randn([16, 8], (&mesh, sbp![B]))?;
        let p = randn([16, 8], (&mesh, sbp![P]))?;
        let _quiet = no_grad();
        // In-place ops make the remembered boxed form stale: `b` is sliced and `p` reduced every time.
        let step = || {
            b.mul_(0.5)?;
            p.mul_(0.5)?;
            a.add(&b)?;
            p.relu().map(drop)
        };
        (0..20).try_for_each(|_| step())?;
        oflow::take_comm_trace();
        let n = allocations(|| (0..100).try_for_each(|_| step()))?;
        assert_eq!(oflow::take_comm_trace().len(), 200);
        Ok(n)
    })
    .unwrap();
    assert_eq!(counts, [0, 0]);
}
