use crate::rig::Rig;
use crate::samples::Tensor;
use oflow_base::Random;
use oflow_kernels::cpu::index as cpu;
use oflow_kernels::cuda::index::*;
use oflow_kernels::{DType, Scalar};

#[test]
fn ranges() {
    let Some(rig) = Rig::new() else { return };
    for (dtype, start, step) in [
        (DType::I64, Scalar::Int(5), Scalar::Int(-3)),
        (DType::F32, Scalar::Float(0.1), Scalar::Float(0.3)),
        (DType::BF16, Scalar::Int(-4), Scalar::Int(2)),
        (DType::U8, Scalar::Int(250), Scalar::Int(1)),
    ] {
        let out = Tensor::contiguous(&mut Random::new(1), dtype, &[300]);
        let gpu = rig.put(&out);
        cpu::arange(&out.view(), start, step, 7).unwrap();
        arange(&rig.queue(), &gpu.view(), start, step, 7).unwrap();
        rig.expect(&gpu, &out, 0.0, "arange");
    }
}

#[test]
fn triangles() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(2);
    for (dtype, dims) in [
        (DType::F32, &[2, 5, 8][..]),
        (DType::F32, &[7, 5]),
        (DType::BF16, &[3, 1, 40, 48]),
        (DType::Bool, &[9, 16]),
        (DType::F64, &[1, 1]),
        (DType::F32, &[0, 4]),
    ] {
        for (diagonal, row, column) in [(0, 0, 0), (-2, 0, 0), (3, 5, 1), (i64::MAX, 1, 0), (i64::MIN, 0, 7)] {
            for lower in [true, false] {
                let (x, y) = (Tensor::contiguous(&mut rng, dtype, dims), Tensor::contiguous(&mut rng, dtype, dims));
                let (gx, gy) = (rig.put(&x), rig.put(&y));
                match lower {
                    true => cpu::tril(&x.view(), &y.view(), diagonal, row, column).unwrap(),
                    false => cpu::triu(&x.view(), &y.view(), diagonal, row, column).unwrap(),
                }
                let cut = if lower { tril } else { triu };
                cut(&rig.queue(), &gx.view(), &gy.view(), diagonal, row, column).unwrap();
                rig.expect(&gy, &y, 0.0, &format!("triangle {lower} {diagonal} {row} {column}"));
                // In place.
                cut(&rig.queue(), &gx.view(), &gx.view(), diagonal, row, column).unwrap();
                rig.expect(&gx, &y, 0.0, "triangle in place");
            }
        }
    }
}

fn ids(rng: &mut Random, dtype: DType, dims: &[usize], below: usize) -> Tensor {
    let mut t = Tensor::contiguous(rng, dtype, dims);
    (0..t.len()).for_each(|i| t.set(i, Scalar::Int(rng.below(below) as i64)));
    t
}

#[test]
fn one_hot_of_a_shard() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(3);
    for (index, out) in [(DType::I64, DType::F32), (DType::I32, DType::I64), (DType::I64, DType::Bool)] {
        let (x, y) = (ids(&mut rng, index, &[4, 9], 7), Tensor::contiguous(&mut rng, out, &[4, 9, 5]));
        let (gx, gy) = (rig.put(&x), rig.put(&y));
        cpu::one_hot(&x.view(), &y.view(), 2).unwrap();
        one_hot(&rig.queue(), &gx.view(), &gy.view(), 2, 7).unwrap();
        rig.expect(&gy, &y, 0.0, "one_hot");
        assert_eq!(rig.faults.take(), None);
    }
    let x = Tensor::of(DType::I64, &[3], &[0.0, 9.0, 1.0]);
    let y = Tensor::contiguous(&mut rng, DType::F32, &[3, 4]);
    let (gx, gy) = (rig.put(&x), rig.put(&y));
    one_hot(&rig.queue(), &gx.view(), &gy.view(), 0, 4).unwrap();
    rig.get(&gy);
    let fault = rig.faults.take().unwrap();
    assert_eq!((fault.ticket, fault.value, fault.low, fault.high), (7, 9, 0, 4));
}

#[test]
fn gathering() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(4);
    for round in 0..6 {
        let (dim, first) = (round % 3, round as i64 % 2);
        let mut dims = vec![5, 6, 7];
        dims[dim] = 9;
        let mut table = dims.clone();
        table[dim] = 8;
        let x = Tensor::random(&mut rng, DType::F32, &table);
        let index = ids(&mut rng, if round < 3 { DType::I64 } else { DType::I32 }, &dims, 8);
        let y = Tensor::random(&mut rng, DType::F32, &dims);
        let (gx, gi, gy) = (rig.put(&x), rig.put(&index), rig.put(&y));
        oflow_kernels::cpu::gather::gather(&x.view(), &index.view(), &y.view(), dim, first, 9).unwrap();
        oflow_kernels::cuda::gather::gather(&rig.queue(), &gx.view(), &gi.view(), &gy.view(), dim, first, 9).unwrap();
        rig.expect(&gy, &y, 0.0, "gather");
    }
}

#[test]
fn matches() {
    let Some(rig) = Rig::new() else { return };
    let nan = f64::NAN;
    for dtype in [DType::F32, DType::BF16, DType::I64] {
        let x = Tensor::of(dtype, &[2, 3, 2], &[1., 2., 3., 4., 1., 2., nan, 0., 5., -0., nan, 7.]);
        let m = Tensor::of(dtype, &[2, 1, 2], &[1., 4., nan, 0.]);
        let y = Tensor::contiguous(&mut Random::new(5), DType::I64, &[2, 3, 2]);
        let (gx, gm, gy) = (rig.put(&x), rig.put(&m), rig.put(&y));
        oflow_kernels::cpu::argreduce::match_index(&x.view(), &m.view(), &y.view(), 1, 10).unwrap();
        match_index(&rig.queue(), &gx.view(), &gm.view(), &gy.view(), 1, 10).unwrap();
        rig.expect(&gy, &y, 0.0, "match_index");
    }
}
