use crate::rig::Rig;
use crate::samples::Tensor;
use oflow_base::Random;
use oflow_kernels::cpu::copy as cpu;
use oflow_kernels::cuda::copy::*;
use oflow_kernels::cuda::fill::fill;
use oflow_kernels::{Builtin, DType, Scalar, View};

fn permuted(v: &View, order: &[usize]) -> View {
    let (dims, strides) = order.iter().map(|d| (v.dims()[*d], v.strides()[*d])).unzip();
    // SAFETY: the same elements in another order.
    unsafe { v.restride(0, dims, strides) }
}

#[test]
fn layouts() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(1);
    for dtype in [DType::F32, DType::BF16, DType::U8, DType::I64] {
        for (dims, order) in [
            (&[70, 45][..], &[1, 0][..]),
            (&[2, 33, 3, 20], &[0, 2, 1, 3]),
            (&[2, 33, 3, 20], &[0, 2, 3, 1]),
            (&[17, 5, 18], &[2, 1, 0]),
            (&[3, 40], &[1, 0]),
            (&[6], &[0]),
        ] {
            let x = Tensor::contiguous(&mut rng, dtype, dims);
            let to: Vec<usize> = order.iter().map(|d| dims[*d]).collect();
            let y = Tensor::contiguous(&mut rng, dtype, &to);
            let (gx, gy) = (rig.put(&x), rig.put(&y));
            cpu::copy(&permuted(&x.view(), order), &y.view()).unwrap();
            copy(&rig.queue(), &permuted(&gx.view(), order), &gy.view()).unwrap();
            rig.expect(&gy, &y, 0.0, &format!("permute {order:?}"));
        }
    }
    for round in 0..40 {
        let dims = [1 + rng.below(4), 1 + rng.below(24), 1 + rng.below(24)];
        let (from, to) = match round % 4 {
            0 => (DType::F32, DType::BF16),
            1 => (DType::I64, DType::F32),
            _ => (DType::F32, DType::F32),
        };
        let (x, y) = (Tensor::random(&mut rng, from, &dims), Tensor::random(&mut rng, to, &dims));
        let (gx, gy) = (rig.put(&x), rig.put(&y));
        cpu::copy(&x.view(), &y.view()).unwrap();
        copy(&rig.queue(), &gx.view(), &gy.view()).unwrap();
        rig.expect(&gy, &y, 0.0, "strided");
    }
    // More dims than a kernel takes.
    let many = [2usize, 3, 2, 2, 2, 2, 2, 2, 2, 3];
    let order: Vec<usize> = (0..many.len()).rev().collect();
    let x = Tensor::contiguous(&mut rng, DType::F32, &many);
    let y = Tensor::contiguous(&mut rng, DType::F32, &order.iter().map(|d| many[*d]).collect::<Vec<_>>());
    let (gx, gy) = (rig.put(&x), rig.put(&y));
    cpu::copy(&permuted(&x.view(), &order), &y.view()).unwrap();
    copy(&rig.queue(), &permuted(&gx.view(), &order), &gy.view()).unwrap();
    rig.expect(&gy, &y, 0.0, "ten dims");
    let x = Tensor::expanded(&mut rng, DType::BF16, &[5, 7, 16], 1);
    let y = Tensor::contiguous(&mut rng, DType::BF16, &[5, 7, 16]);
    let (gx, gy) = (rig.put(&x), rig.put(&y));
    cpu::copy(&x.view(), &y.view()).unwrap();
    copy(&rig.queue(), &gx.view(), &gy.view()).unwrap();
    rig.expect(&gy, &y, 0.0, "expanded");
}

#[test]
fn filling() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(2);
    for dtype in DType::BUILTIN {
        for value in [Scalar::Float(2.5), Scalar::Int(-3), Scalar::Int(0), Scalar::Bool(true)] {
            let y = Tensor::contiguous(&mut rng, dtype, &[75]);
            let gy = rig.put(&y);
            let part = |v: View| v.sub_box(&[3], &[70]).unwrap();
            cpu::fill(&part(y.view()), value).unwrap();
            fill(&rig.queue(), &part(gy.view()), value).unwrap();
            rig.expect(&gy, &y, 0.0, &format!("fill {value}"));
        }
    }
    for _ in 0..6 {
        let y = Tensor::random(&mut rng, DType::F32, &[4, 9, 3]);
        let gy = rig.put(&y);
        cpu::fill(&y.view(), Scalar::Float(1.25)).unwrap();
        fill(&rig.queue(), &gy.view(), Scalar::Float(1.25)).unwrap();
        rig.expect(&gy, &y, 0.0, "strided fill");
    }
}

#[test]
fn casts_of_8_bit_floats_are_the_cpus() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(3);
    for dtype in [DType::F8E4M3FN, DType::F8E5M2] {
        let cast = |x: &Tensor, what: &str, rng: &mut Random| {
            let near = Tensor::contiguous(rng, dtype, &[x.dims[0]]);
            let back = Tensor::contiguous(rng, DType::F32, &[x.dims[0]]);
            let (gx, gnear, gback) = (rig.put(x), rig.put(&near), rig.put(&back));
            cpu::copy(&x.view(), &near.view()).unwrap();
            cpu::copy(&near.view(), &back.view()).unwrap();
            copy(&rig.queue(), &gx.view(), &gnear.view()).unwrap();
            copy(&rig.queue(), &gnear.view(), &gback.view()).unwrap();
            rig.expect(&gnear, &near, 0.0, what);
            rig.expect(&gback, &back, 0.0, what);
        };
        cast(&Tensor::contiguous(&mut rng, DType::F32, &[4096]), "numbers below 1", &mut rng);
        for value in
            [449.0, 464.0, 500.0, -1e9, 61439.0, 61440.0, f64::INFINITY, f64::NAN, 1e-3, -2e-5, 1e-9, 0.0, -0.0]
        {
            let x = Tensor::contiguous(&mut rng, DType::F32, &[3]);
            cpu::fill(&x.view(), Scalar::Float(value)).unwrap();
            cast(&x, &format!("{value}"), &mut rng);
        }
    }
}

/// The same memory as elements of a registered dtype.
fn registered(v: &View, dtype: DType) -> View {
    // SAFETY: the dtype is stored as the view's, so the elements are where they were.
    unsafe { View::from_raw(v.ptr(), dtype, v.dims().into(), v.strides().into()) }
}

#[test]
fn a_registered_dtype_is_moved_and_not_computed_with() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(5);
    for storage in [Builtin::I8, Builtin::F16, Builtin::F32, Builtin::F64] {
        let dtype = DType::register(oflow_kernels::Registered::new(format!("moved_{storage}"), storage)).unwrap();
        for order in [&[0, 1, 2][..], &[2, 0, 1], &[1, 0, 2]] {
            let x = Tensor::contiguous(&mut rng, storage.dtype(), &[19, 20, 33]);
            let to: Vec<usize> = order.iter().map(|d| [19, 20, 33][*d]).collect();
            let y = Tensor::contiguous(&mut rng, storage.dtype(), &to);
            let (gx, gy) = (rig.put(&x), rig.put(&y));
            cpu::copy(&registered(&permuted(&x.view(), order), dtype), &registered(&y.view(), dtype)).unwrap();
            let from = registered(&permuted(&gx.view(), order), dtype);
            copy(&rig.queue(), &from, &registered(&gy.view(), dtype)).unwrap();
            rig.expect(&gy, &y, 0.0, &format!("permute {order:?} of {dtype}"));
            let all = registered(&gy.view(), dtype);
            let sum = oflow_kernels::cpu::reduce::Reduce::Sum;
            for e in [
                copy(&rig.queue(), &all, &gy.view()).unwrap_err(),
                fill(&rig.queue(), &all, Scalar::Int(1)).unwrap_err(),
                oflow_kernels::cuda::reduce::reduce(&rig.queue(), &all, &all, sum, false, &[], None).unwrap_err(),
                cpu::copy(&registered(&y.view(), dtype), &y.view()).unwrap_err(),
                cpu::fill(&registered(&y.view(), dtype), Scalar::Int(1)).unwrap_err(),
            ] {
                assert_eq!(e.0, format!("{dtype} is a registered dtype, which is moved and not computed with"));
            }
        }
    }
}
