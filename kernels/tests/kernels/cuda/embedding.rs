use crate::rig::Rig;
use crate::samples::Tensor;
use oflow_base::Random;
use oflow_kernels::cpu::embedding as cpu;
use oflow_kernels::cuda::embedding::*;
use oflow_kernels::{DType, Scalar};

fn ids(rng: &mut Random, dtype: DType, n: usize, below: usize, often: usize) -> Tensor {
    let mut t = Tensor::contiguous(rng, dtype, &[n]);
    // Every other id is one of few.
    (0..n).for_each(|i| {
        let id = if rng.below(2) == 0 { rng.below(below) } else { rng.below(often) };
        t.set(i, Scalar::Int(id as i64));
    });
    t
}

#[test]
fn rows_and_their_gradient() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(1);
    for (dtype, index, rows, width, n, first) in [
        (DType::F32, DType::I64, 11, 20, 300, 0),
        (DType::BF16, DType::I32, 50, 64, 900, 7),
        (DType::F64, DType::I64, 5, 3, 40, 2),
        (DType::F16, DType::I64, 9, 2100, 70, 0),
        (DType::F32, DType::I64, 3, 1, 2500, 1),
    ] {
        let logical = rows + 9;
        let ids = ids(&mut rng, index, n, logical, 3);
        let table = Tensor::contiguous(&mut rng, dtype, &[rows, width]);
        let out = Tensor::contiguous(&mut rng, dtype, &[n, width]);
        let (gt, gi, go) = (rig.put(&table), rig.put(&ids), rig.put(&out));
        cpu::embedding(&table.view(), &ids.view(), &out.view(), first).unwrap();
        embedding(&rig.queue(), &gt.view(), &gi.view(), &go.view(), first, logical).unwrap();
        rig.expect(&go, &out, 0.0, "embedding");
        assert_eq!(rig.faults.take(), None);

        let scratch = rig.scratch(embedding_grad_workspace(rows, n));
        cpu::embedding_grad(&out.view(), &ids.view(), &table.view(), first, logical).unwrap();
        embedding_grad(&rig.queue(), &go.view(), &gi.view(), &gt.view(), first, logical, &scratch.view()).unwrap();
        // The same order of additions: the same bits.
        rig.expect(&gt, &table, 0.0, "embedding_grad");
        let once = rig.get(&gt);
        embedding_grad(&rig.queue(), &go.view(), &gi.view(), &gt.view(), first, logical, &scratch.view()).unwrap();
        assert_eq!(once, rig.get(&gt));
    }
}

#[test]
fn ids_out_of_range_are_reported() {
    let Some(rig) = Rig::new() else { return };
    let table = Tensor::contiguous(&mut Random::new(2), DType::F32, &[4, 8]);
    for bad in [-1.0, 4.0] {
        let ids = Tensor::of(DType::I64, &[3], &[1.0, bad, 3.0]);
        let out = Tensor::contiguous(&mut Random::new(3), DType::F32, &[3, 8]);
        let (gt, gi, go) = (rig.put(&table), rig.put(&ids), rig.put(&out));
        embedding(&rig.queue(), &gt.view(), &gi.view(), &go.view(), 0, 4).unwrap();
        rig.get(&go);
        let fault = rig.faults.take().unwrap();
        assert_eq!((fault.value, fault.low, fault.high), (bad as i64, 0, 4));
        let scratch = rig.scratch(embedding_grad_workspace(4, 3));
        embedding_grad(&rig.queue(), &go.view(), &gi.view(), &gt.view(), 0, 4, &scratch.view()).unwrap();
        rig.get(&gt);
        let fault = rig.faults.take().unwrap();
        assert_eq!((fault.value, fault.low, fault.high), (bad as i64, 0, 4));
    }
}
