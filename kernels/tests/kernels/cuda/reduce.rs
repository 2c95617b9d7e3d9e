use crate::rig::{OnGpu, Rig};
use crate::samples::{Tensor, tolerance};
use oflow_base::Random;
use oflow_kernels::DType;
use oflow_kernels::cpu::argreduce as cpu_argreduce;
use oflow_kernels::cpu::reduce as cpu_reduce;
use oflow_kernels::cpu::reduce::Reduce;
use oflow_kernels::cuda::reduce::*;
use oflow_kernels::cuda::scan;

const OPS: [Reduce; 4] = [Reduce::Sum, Reduce::Max, Reduce::Min, Reduce::Prod];

fn kept(dims: &[usize], over: &[usize]) -> Vec<usize> {
    (0..dims.len()).map(|d| if over.contains(&d) { 1 } else { dims[d] }).collect()
}

fn scratch(rig: &Rig, outputs: usize, len: usize) -> OnGpu {
    rig.scratch(workspace(outputs, len / outputs.max(1)).max(8))
}

fn check(rig: &Rig, rng: &mut Random, x: &Tensor, out: DType, op: Reduce, truth: bool, over: &[usize]) {
    let y = Tensor::contiguous(rng, out, &kept(&x.dims, over));
    let (gx, gy) = (rig.put(x), rig.put(&y));
    let room = scratch(rig, y.len(), x.len());
    if truth {
        let b = Tensor::contiguous(rng, DType::Bool, &x.dims);
        oflow_kernels::cpu::copy::copy(&x.view(), &b.view()).unwrap();
        cpu_reduce::reduce(&b.view(), &y.view(), op, over).unwrap();
    } else {
        cpu_reduce::reduce(&x.view(), &y.view(), op, over).unwrap();
    }
    reduce(&rig.queue(), &gx.view(), &gy.view(), op, truth, over, Some(&room.view())).unwrap();
    let what = format!("{op:?} of {} {:?} {:?} over {over:?}", x.dtype, x.dims, x.view().strides());
    // Sums of numbers that cancel: the error is that of the summands.
    let long = if op == Reduce::Sum { 20.0 } else { 1.0 };
    rig.expect(&gy, &y, long * tolerance(out), &what);
}

fn result(dtype: DType, op: Reduce) -> DType {
    if dtype.is_float() || matches!(op, Reduce::Max | Reduce::Min) { dtype } else { DType::I64 }
}

#[test]
fn every_dtype_and_reduction() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(1);
    for dtype in oflow_kernels::cpu::lane::Native::ALL.map(|n| n.dtype()) {
        for op in OPS {
            for over in [&[1usize][..], &[0], &[0, 1]] {
                let x = Tensor::contiguous(&mut rng, dtype, &[24, 32]);
                check(&rig, &mut rng, &x, result(dtype, op), op, false, over);
            }
        }
        let x = Tensor::contiguous(&mut rng, dtype, &[3, 8]);
        check(&rig, &mut rng, &x, DType::Bool, Reduce::Max, true, &[1]);
        check(&rig, &mut rng, &x, DType::Bool, Reduce::Min, true, &[1]);
    }
}

#[test]
fn lengths_layouts_and_pieces() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(2);
    for (dims, over) in [
        (&[1usize, 1][..], &[1usize][..]),
        (&[3, 7], &[1]),
        (&[5, 1025], &[1]),
        (&[2, 3000], &[1]),
        // Few outputs of many elements: in pieces, rows and columns.
        (&[100_003], &[0]),
        (&[65_536], &[0]),
        (&[3, 20_000], &[1]),
        (&[1500, 40], &[0]),
        (&[1500, 3], &[0]),
        (&[700, 64], &[0]),
        (&[4, 9, 33], &[0, 2]),
        (&[6, 50, 16], &[1]),
        (&[2, 3, 4, 5], &[1, 3]),
        (&[1, 300, 1], &[]),
        (&[], &[]),
    ] {
        let x = Tensor::contiguous(&mut rng, DType::F32, dims);
        check(&rig, &mut rng, &x, DType::F32, Reduce::Sum, false, over);
    }
    for _ in 0..16 {
        let dims = [1 + rng.below(6), 1 + rng.below(40), 1 + rng.below(20)];
        let over: Vec<usize> = (0..3).filter(|_| rng.below(2) == 0).collect();
        let x = Tensor::random(&mut rng, DType::F32, &dims);
        check(&rig, &mut rng, &x, DType::F32, Reduce::Sum, false, &over);
        let x = Tensor::expanded(&mut rng, DType::F32, &dims, rng_dim(&dims, over.len()));
        check(&rig, &mut rng, &x, DType::F32, Reduce::Max, false, &over);
    }
    // Empty: the identity, and nothing at all.
    let x = Tensor::contiguous(&mut rng, DType::I32, &[3, 0]);
    for op in OPS {
        check(&rig, &mut rng, &x, result(DType::I32, op), op, false, &[1]);
    }
    check(&rig, &mut rng, &x, DType::I64, Reduce::Sum, false, &[0]);
}

fn rng_dim(dims: &[usize], i: usize) -> usize {
    i % dims.len()
}

#[test]
fn nan_and_ties() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(3);
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let x = Tensor::of(dtype, &[4, 4], &[1., nan, 3., nan, 2., 2., -1., -1., inf, -inf, 0., -0., nan, 1., 2., 3.]);
        for over in [0, 1] {
            for op in OPS {
                check(&rig, &mut rng, &x, dtype, op, false, &[over]);
            }
            for max in [true, false] {
                let y = Tensor::contiguous(&mut rng, DType::I64, &kept(&x.dims, &[over]));
                let (gx, gy) = (rig.put(&x), rig.put(&y));
                cpu_argreduce::argreduce(&x.view(), &y.view(), over, max, 0).unwrap();
                argreduce(&rig.queue(), &gx.view(), &gy.view(), over, max, None).unwrap();
                rig.expect(&gy, &y, 0.0, "the position");
            }
        }
    }
}

#[test]
fn positions() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(4);
    for (dtype, dims, dim) in [
        (DType::I32, &[5usize, 2000][..], 1usize),
        (DType::F16, &[3, 40], 1),
        (DType::U8, &[500, 40], 0),
        (DType::F32, &[70_000], 0),
        (DType::Bool, &[4, 6, 20], 1),
        (DType::I64, &[9], 0),
    ] {
        for random in [false, true] {
            let x =
                if random { Tensor::random(&mut rng, dtype, dims) } else { Tensor::contiguous(&mut rng, dtype, dims) };
            let y = Tensor::contiguous(&mut rng, DType::I64, &kept(dims, &[dim]));
            let (gx, gy) = (rig.put(&x), rig.put(&y));
            let room = scratch(&rig, y.len(), x.len());
            for max in [true, false] {
                cpu_argreduce::argreduce(&x.view(), &y.view(), dim, max, 0).unwrap();
                argreduce(&rig.queue(), &gx.view(), &gy.view(), dim, max, Some(&room.view())).unwrap();
                rig.expect(&gy, &y, 0.0, &format!("argmax {max} of {dims:?} along {dim}"));
            }
        }
    }
}

#[test]
fn running_sums() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(5);
    for dtype in [DType::F32, DType::BF16, DType::F64, DType::I32, DType::Bool] {
        let out = if dtype.is_float() { dtype } else { DType::I64 };
        for (dims, dim) in [
            (&[1usize][..], 0usize),
            (&[5, 3], 1),
            (&[3, 100], 1),
            (&[2, 5000], 1),
            (&[30_001], 0),
            (&[400, 7], 0),
            (&[3, 20, 4], 1),
            (&[0, 4], 0),
        ] {
            let x = Tensor::contiguous(&mut rng, dtype, dims);
            let y = Tensor::contiguous(&mut rng, out, dims);
            let (gx, gy) = (rig.put(&x), rig.put(&y));
            let room = rig.scratch(scan::workspace(dims, dim).max(8));
            for reverse in [false, true] {
                cpu_reduce::cumsum(&x.view(), &y.view(), dim, reverse).unwrap();
                scan::cumsum(&rig.queue(), &gx.view(), &gy.view(), dim, reverse, Some(&room.view())).unwrap();
                rig.expect(&gy, &y, tolerance(out), &format!("cumsum of {dtype} {dims:?} along {dim}, {reverse}"));
            }
        }
    }
}
