use crate::rig::Rig;
use crate::samples::Tensor;
use oflow_base::Random;
use oflow_kernels::cpu::take as cpu;
use oflow_kernels::cuda::take::*;
use oflow_kernels::{DType, Scalar};

fn ids(rng: &mut Random, dtype: DType, dims: &[usize], below: usize, from: i64) -> Tensor {
    let mut t = Tensor::contiguous(rng, dtype, dims);
    (0..t.len()).for_each(|i| t.set(i, Scalar::Int(from + rng.below(below) as i64)));
    t
}

#[test]
fn rows_along_each_dim() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(11);
    for (dtype, index) in [(DType::F32, DType::I64), (DType::Bool, DType::I32), (DType::BF16, DType::I64)] {
        for dim in 0..3 {
            let x = Tensor::contiguous(&mut rng, dtype, &[4, 5, 6]);
            let by = ids(&mut rng, index, &[3, 2], 7, 0);
            let mut dims = vec![4, 5, 6];
            dims.splice(dim..=dim, [3, 2]);
            let y = Tensor::contiguous(&mut rng, dtype, &dims);
            let (gx, gb, gy) = (rig.put(&x), rig.put(&by), rig.put(&y));
            cpu::index_select(&x.view(), &by.view(), &y.view(), dim, 2).unwrap();
            index_select(&rig.queue(), &gx.view(), &gb.view(), &gy.view(), dim, 2, 7).unwrap();
            rig.expect(&gy, &y, 0.0, "index_select");
            assert_eq!(rig.faults.take(), None);
        }
    }
}

#[test]
fn positions() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(12);
    let by = ids(&mut rng, DType::I32, &[40], 10, -5);
    let y = Tensor::contiguous(&mut rng, DType::I64, &[40]);
    let (gb, gy) = (rig.put(&by), rig.put(&y));
    cpu::wrap_index(&by.view(), &y.view(), 5).unwrap();
    wrap_index(&rig.queue(), &gb.view(), &gy.view(), 5).unwrap();
    rig.expect(&gy, &y, 0.0, "wrap_index");
    let last = Tensor::contiguous(&mut rng, DType::I64, &[6]);
    let gl = rig.put(&last);
    cpu::last_index(&y.view(), &last.view(), 2, 100).unwrap();
    last_index(&rig.queue(), &gy.view(), &gl.view(), 2, 100, 8).unwrap();
    rig.expect(&gl, &last, 0.0, "last_index");
    wrap_index(&rig.queue(), &gb.view(), &gy.view(), 4).unwrap();
    rig.get(&gy);
    let fault = rig.faults.take().unwrap();
    assert!((fault.low, fault.high) == (-4, 4) && !(-4..4).contains(&fault.value));
}
