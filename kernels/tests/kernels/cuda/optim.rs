use crate::rig::{OnGpu, Rig};
use crate::samples::{Tensor, tolerance};
use oflow_base::Random;
use oflow_kernels::cpu::optim as cpu;
use oflow_kernels::cpu::optim::{AdamW, Sgd};
use oflow_kernels::cuda::optim::*;
use oflow_kernels::{DType, View};

const F32: DType = DType::F32;

/// Lengths with tails, none, many (more than a table has), and one that is no multiple of a vector.
fn shapes() -> Vec<Vec<usize>> {
    let mut all = vec![vec![4096], vec![3, 5], vec![0, 2], vec![], vec![8195], vec![64, 130]];
    all.extend((0..210).map(|i| vec![1 + i % 9]));
    all
}

fn make(rng: &mut Random, dtype: DType, i: usize, dims: &[usize]) -> Tensor {
    if i % 50 == 1 { Tensor::random(rng, dtype, dims) } else { Tensor::contiguous(rng, dtype, dims) }
}

fn squared(mut t: Tensor) -> Tensor {
    let values = t.values();
    values.iter().enumerate().for_each(|(i, x)| t.set(i, oflow_kernels::Scalar::Float(x * x)));
    t
}

#[test]
fn steps_of_many_parameters() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(1);
    let q = rig.queue();
    for (p, g, m) in [(F32, F32, F32), (DType::BF16, DType::BF16, F32), (DType::F64, DType::F64, DType::F64)] {
        let tensors: Vec<[Tensor; 4]> = shapes()
            .iter()
            .enumerate()
            .map(|(i, dims)| {
                let v = squared(make(&mut rng, m, i, dims));
                [make(&mut rng, p, i, dims), make(&mut rng, g, i, dims), make(&mut rng, m, i, dims), v]
            })
            .collect();
        let gpu: Vec<[OnGpu; 4]> = tensors.iter().map(|t| [0, 1, 2, 3].map(|k| rig.put(&t[k]))).collect();
        let views: Vec<[View; 4]> = gpu.iter().map(|t| [0, 1, 2, 3].map(|k| t[k].view())).collect();
        let compare = |k: usize, what: &str| {
            for (t, on) in tensors.iter().zip(&gpu) {
                rig.expect(&on[k], &t[k], tolerance(t[k].dtype), what);
            }
        };
        for step in 1..3 {
            let s = AdamW { lr: 0.1, beta1: 0.9, beta2: 0.99, eps: 1e-3, weight_decay: 0.1, step };
            for [p, g, m, v] in &tensors {
                cpu::adamw(&p.view(), &g.view(), &m.view(), &v.view(), &s).unwrap();
            }
            let entries: Vec<[&View; 4]> = views.iter().map(|[p, g, m, v]| [p, g, m, v]).collect();
            adamw(&q, &entries, &s).unwrap();
            (0..4).for_each(|k| compare(k, "AdamW"));
        }
        for (momentum, nesterov, first_step) in
            [(true, false, true), (true, true, false), (true, false, false), (false, false, false)]
        {
            let decay = if momentum { 0.9 } else { 0.0 };
            let s = Sgd { lr: 0.1, momentum: decay, dampening: 0.2, weight_decay: 0.1, nesterov, first_step };
            for [p, g, m, _] in &tensors {
                let m = m.view();
                cpu::sgd(&p.view(), &g.view(), momentum.then_some(&m), &s).unwrap();
            }
            let entries: Vec<[&View; 3]> = views.iter().map(|[p, g, m, _]| [p, g, m]).collect();
            sgd(&q, &entries, momentum, &s).unwrap();
            (0..3).for_each(|k| compare(k, "SGD"));
        }
    }
}

#[test]
fn squares_and_scaling() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(2);
    let q = rig.queue();
    let dtypes = [F32, DType::BF16, DType::F64, DType::F16];
    let tensors: Vec<Tensor> =
        shapes().iter().enumerate().map(|(i, dims)| make(&mut rng, dtypes[i % 4], i, dims)).collect();
    let gpu: Vec<OnGpu> = tensors.iter().map(|t| rig.put(t)).collect();
    let views: Vec<View> = gpu.iter().map(|t| t.view()).collect();
    let views: Vec<&View> = views.iter().collect();
    let room = rig.scratch(squares_workspace(tensors.iter().map(Tensor::len)));
    for out in [F32, DType::F64] {
        let want: f64 = tensors.iter().map(|t| cpu::sum_of_squares(&t.view()).unwrap()).sum();
        let want = Tensor::of(out, &[], &[want]);
        let got = rig.put(&Tensor::of(out, &[], &[0.0]));
        sum_of_squares(&q, &views, &got.view(), Some(&room.view())).unwrap();
        rig.expect(&got, &want, tolerance(out), "the sum of squares");
    }
    let factor = Tensor::of(F32, &[], &[0.3]);
    let on_gpu = rig.put(&factor);
    scale(&q, &on_gpu.view(), &views).unwrap();
    for (t, on) in tensors.iter().zip(&gpu) {
        cpu::scale(&t.view(), f64::from(0.3f32)).unwrap();
        rig.expect(on, t, tolerance(t.dtype), "scaled");
    }
    let none = rig.put(&Tensor::of(F32, &[], &[5.0]));
    sum_of_squares(&q, &[], &none.view(), None).unwrap();
    rig.expect(&none, &Tensor::of(F32, &[], &[0.0]), 0.0, "the sum of nothing");
}
