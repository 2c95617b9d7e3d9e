use crate::cpu::steps::all_steps;
use crate::rig::{OnGpu, Rig};
use crate::samples::{Tensor, tolerance};
use oflow_base::Random;
use oflow_kernels::cpu::steps as cpu;
use oflow_kernels::cuda::steps::*;
use oflow_kernels::{DType, Scalar, View};
use smallvec::SmallVec;

/// Lengths with tails, none, many (more than a table has), and one that is no multiple of a vector.
fn shapes() -> Vec<Vec<usize>> {
    let mut all = vec![vec![4096], vec![3, 5], vec![0, 2], vec![], vec![8195]];
    all.extend((0..110).map(|i| vec![1 + i % 9]));
    all
}

#[test]
fn every_rule_over_many_parameters() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(1);
    let q = rig.queue();
    let f32s = [DType::F32; 3];
    for (i, rule) in all_steps().into_iter().enumerate() {
        let [p, g, s] = if i % 3 == 1 { [DType::BF16, DType::BF16, DType::F32] } else { f32s };
        let [p, g, s] = if i % 3 == 2 { [DType::F64; 3] } else { [p, g, s] };
        let tensors: Vec<Vec<Tensor>> = shapes()
            .iter()
            .enumerate()
            .map(|(i, dims)| {
                let mut make = |d: DType| match i % 50 {
                    1 => Tensor::random(&mut rng, d, dims),
                    _ => Tensor::contiguous(&mut rng, d, dims),
                };
                let mut all = vec![make(p), make(g)];
                for k in 0..rule.states() {
                    let mut t = make(s);
                    let held = |x: f64| if k == 0 { x.abs() + 1.0 } else { x.abs() / 8.0 };
                    let values = t.values();
                    values.iter().enumerate().for_each(|(i, x)| t.set(i, Scalar::Float(held(*x))));
                    all.push(t);
                }
                all
            })
            .collect();
        let gpu: Vec<Vec<OnGpu>> = tensors.iter().map(|ts| ts.iter().map(|t| rig.put(t)).collect()).collect();
        let views: Vec<Vec<View>> = gpu.iter().map(|ts| ts.iter().map(|t| t.view()).collect()).collect();
        let entries: Vec<SmallVec<[&View; 5]>> = views.iter().map(|vs| vs.iter().collect()).collect();
        step(&q, &rule, &entries).unwrap();
        for (ts, on) in tensors.iter().zip(&gpu) {
            let views: Vec<View> = ts.iter().map(Tensor::view).collect();
            let states: Vec<&View> = views[2..].iter().collect();
            cpu::step(&rule, &views[0], &views[1], &states).unwrap();
            for (t, on) in ts.iter().zip(on) {
                rig.expect(on, t, tolerance(t.dtype) * 2.0, &format!("{rule:?}"));
            }
        }
    }
}

#[test]
fn norms_and_scaled_differences_of_many() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(2);
    let q = rig.queue();
    let tensors: Vec<[Tensor; 2]> = shapes()
        .iter()
        .enumerate()
        .map(|(i, dims)| {
            let d = [DType::F32, DType::BF16, DType::F64][i % 3];
            let x = if i % 50 == 1 { Tensor::random(&mut rng, d, dims) } else { Tensor::contiguous(&mut rng, d, dims) };
            [x, Tensor::contiguous(&mut rng, DType::F32, dims)]
        })
        .collect();
    let n = tensors.len();
    let gpu: Vec<[OnGpu; 2]> = tensors.iter().map(|[x, y]| [rig.put(x), rig.put(y)]).collect();
    let views: Vec<[View; 2]> = gpu.iter().map(|[x, y]| [x.view(), y.view()]).collect();
    let (xs, room): (Vec<&View>, _) = (
        views.iter().map(|[x, _]| x).collect(),
        tensors.iter().map(|[x, _]| oflow_kernels::cuda::optim::squares_workspace([x.len()])).max().unwrap(),
    );
    let want: Vec<f64> =
        tensors.iter().map(|[x, _]| oflow_kernels::cpu::optim::sum_of_squares(&x.view()).unwrap()).collect();
    let sums = rig.put(&Tensor::of(DType::F32, &[n], &vec![0.0; n]));
    squares_of_each(&q, &xs, &sums.view(), Some(&rig.scratch(room).view())).unwrap();
    rig.expect(&sums, &Tensor::of(DType::F32, &[n], &want), tolerance(DType::F32), "the sums of squares");
    let factors: Vec<f64> = (0..n).map(|i| i as f64 / 8.0 - 3.0).collect();
    let on_gpu = rig.put(&Tensor::of(DType::F32, &[n], &factors));
    let pairs: Vec<[&View; 2]> = views.iter().map(|[x, y]| [x, y]).collect();
    subtract(&q, &on_gpu.view(), &pairs).unwrap();
    for (([x, y], on), factor) in tensors.iter().zip(&gpu).zip(factors) {
        cpu::subtract(&x.view(), &y.view(), factor).unwrap();
        rig.expect(&on[0], x, tolerance(x.dtype), "the difference");
    }
}
