//! Of [`loss`](oflow_kernels::cuda::loss) too: both go over rows in the same way.

use crate::rig::Rig;
use crate::samples::{FLOATS, Tensor, tolerance};
use oflow_base::Random;
use oflow_kernels::cpu::loss::{self as cpu_loss, Classes};
use oflow_kernels::cpu::softmax as cpu;
use oflow_kernels::cuda::Queue;
use oflow_kernels::cuda::loss;
use oflow_kernels::cuda::softmax::*;
use oflow_kernels::{DType, Result, Scalar, View};

type Forward = [(fn(&View, &View, usize) -> Result<()>, fn(&Queue, &View, &View, usize) -> Result<()>); 2];
type Backward =
    [(fn(&View, &View, &View, usize) -> Result<()>, fn(&Queue, &View, &View, &View, usize) -> Result<()>); 2];
const FORWARD: Forward = [(cpu::softmax, softmax), (cpu::log_softmax, log_softmax)];
const BACKWARD: Backward = [(cpu::softmax_grad, softmax_grad), (cpu::log_softmax_grad, log_softmax_grad)];

fn check(rig: &Rig, rng: &mut Random, dtype: DType, dims: &[usize], dim: usize, random: bool) {
    let mut make = |dims: &[usize]| match random {
        true => Tensor::random(rng, dtype, dims),
        false => Tensor::contiguous(rng, dtype, dims),
    };
    let [x, dy, y, dx] = [0; 4].map(|_| make(dims));
    let what = format!("{dtype} {dims:?} along {dim}, strides {:?}", x.view().strides());
    for (on_cpu, on_gpu) in FORWARD {
        let (gx, gy) = (rig.put(&x), rig.put(&y));
        on_cpu(&x.view(), &y.view(), dim).unwrap();
        on_gpu(&rig.queue(), &gx.view(), &gy.view(), dim).unwrap();
        rig.expect(&gy, &y, tolerance(dtype), &what);
    }
    for (on_cpu, on_gpu) in BACKWARD {
        let (gdy, gy, gdx) = (rig.put(&dy), rig.put(&y), rig.put(&dx));
        on_cpu(&dy.view(), &y.view(), &dx.view(), dim).unwrap();
        on_gpu(&rig.queue(), &gdy.view(), &gy.view(), &gdx.view(), dim).unwrap();
        let long = (dims[dim] as f64).sqrt().max(1.0);
        rig.expect(&gdx, &dx, long * tolerance(dtype), &format!("gradient, {what}"));
    }
}

#[test]
fn lengths_and_dtypes() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(1);
    for dtype in FLOATS {
        for (dims, dim) in [(&[4usize, 24][..], 1usize), (&[6, 40], 0)] {
            check(&rig, &mut rng, dtype, dims, dim, false);
        }
    }
    // One element, parts of a warp, odd lengths, a block, more than registers hold.
    for n in [1, 3, 33, 64, 1000, 1536, 5001, 70_002] {
        check(&rig, &mut rng, DType::F32, &[3, n], 1, false);
    }
    check(&rig, &mut rng, DType::BF16, &[2, 3, 16], 2, false);
    check(&rig, &mut rng, DType::F32, &[2, 300, 5], 1, false);
    check(&rig, &mut rng, DType::F32, &[0, 5], 1, false);
    for _ in 0..6 {
        let dims = [1 + rng.below(4), 1 + rng.below(40), 1 + rng.below(9)];
        let dim = rng.below(3);
        check(&rig, &mut rng, DType::F32, &dims, dim, true);
    }
}

#[test]
fn infinities_and_nan() {
    let Some(rig) = Rig::new() else { return };
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for n in [4, 40_000] {
        for special in [[-inf, -inf], [inf, 1.0], [nan, 1.0], [-inf, 0.5], [-200.0, -inf], [inf, nan]] {
            for rest in [-inf, 0.25] {
                let values: Vec<f64> = (0..n).map(|i| special.get(i).copied().unwrap_or(rest)).collect();
                for (dims, dim) in [([1, n], 1), ([n, 1], 0)] {
                    let x = Tensor::of(DType::F32, &dims, &values);
                    let y = Tensor::of(DType::F32, &dims, &values);
                    for (on_cpu, on_gpu) in FORWARD {
                        let (gx, gy) = (rig.put(&x), rig.put(&y));
                        on_cpu(&x.view(), &y.view(), dim).unwrap();
                        on_gpu(&rig.queue(), &gx.view(), &gy.view(), dim).unwrap();
                        rig.expect(&gy, &y, 1e-5, &format!("{special:?} and {rest}, {n}"));
                    }
                }
            }
        }
    }
}

#[test]
fn cross_entropy() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(2);
    for (dtype, dims, random, smoothing) in [
        (DType::F32, &[5usize, 7][..], false, 0.0),
        (DType::F32, &[5, 7], false, 0.1),
        (DType::BF16, &[4, 64], false, 0.0),
        (DType::F64, &[3, 5], true, 0.0),
        (DType::F64, &[3, 5], true, 0.3),
        (DType::F32, &[2, 3, 9], true, 0.0),
        (DType::F16, &[3, 2001], false, 0.2),
        (DType::F32, &[2, 20_000], false, 0.0),
    ] {
        let (lead, n) = (&dims[..dims.len() - 1], dims[dims.len() - 1]);
        let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let mut make = |d, dims: &[usize]| match random {
            true => Tensor::random(&mut rng, d, dims),
            false => Tensor::contiguous(&mut rng, d, dims),
        };
        let (x, dx, pick) = (make(dtype, dims), make(dtype, dims), make(dtype, lead));
        let (l, lse, dloss, mut t) = (make(wide, lead), make(wide, lead), make(wide, lead), make(DType::I64, lead));
        (0..t.len()).for_each(|i| t.set(i, Scalar::Int(if i == 1 { -100 } else { (i * 5 % n) as i64 })));
        let c = Classes { ignore: Some(-100), smoothing, ..Classes::whole(n) };
        let what = format!("cross entropy of {dtype} {dims:?}");
        let q = rig.queue();
        let [gx, gdx, gp, gl, gs, gd, gt] = [&x, &dx, &pick, &l, &lse, &dloss, &t].map(|t| rig.put(t));
        cpu_loss::cross_entropy(&x.view(), &t.view(), &l.view(), &lse.view(), &c).unwrap();
        loss::cross_entropy(&q, &gx.view(), &gt.view(), &gl.view(), &gs.view(), &c).unwrap();
        rig.expect(&gl, &l, tolerance(wide), &what);
        rig.expect(&gs, &lse, tolerance(wide), &what);
        cpu_loss::nll_pick(&x.view(), &t.view(), &pick.view(), &c).unwrap();
        loss::nll_pick(&q, &gx.view(), &gt.view(), &gp.view(), &c).unwrap();
        rig.expect(&gp, &pick, 0.0, &what);
        // The gradient of a shard whose first class is another one.
        for (first, count) in [(0, n), (2, n + 4)] {
            let c = Classes { count: count as i64, first, ..c };
            let [s, d] = [&lse, &dloss].map(Tensor::view);
            cpu_loss::cross_entropy_grad(&x.view(), &t.view(), &s, &d, &dx.view(), &c).unwrap();
            let gs = rig.put(&lse);
            let views = [&gx, &gt, &gs, &gd, &gdx].map(|v| v.view());
            loss::cross_entropy_grad(&q, &views[0], &views[1], &views[2], &views[3], &views[4], &c).unwrap();
            rig.expect(&gdx, &dx, tolerance(dtype), &what);
        }
    }
}

#[test]
fn a_target_that_is_no_class_is_reported() {
    let Some(rig) = Rig::new() else { return };
    let x = Tensor::of(DType::F32, &[2, 3], &[0.; 6]);
    let t = Tensor::of(DType::I64, &[2], &[1., 3.]);
    let [l, s] = [0; 2].map(|_| Tensor::of(DType::F32, &[2], &[0.; 2]));
    let [gx, gt, gl, gs] = [&x, &t, &l, &s].map(|t| rig.put(t));
    let c = Classes::whole(3);
    loss::cross_entropy(&rig.queue(), &gx.view(), &gt.view(), &gl.view(), &gs.view(), &c).unwrap();
    rig.get(&gl);
    let fault = rig.faults.take().unwrap();
    assert_eq!((fault.ticket, fault.value, fault.low, fault.high), (7, 3, 0, 3));
    assert_eq!(rig.faults.take(), None);
}
