use crate::rig::{OnGpu, Rig};
use crate::samples::Tensor;
use oflow_base::Random;
use oflow_kernels::cpu::attention as cpu;
use oflow_kernels::cpu::attention::{Attention, Qkv};
use oflow_kernels::cuda::attention::*;
use oflow_kernels::{DType, Dims, Strides, View};

/// b, h, queries, keys, depth, value depth.
type Shape = [usize; 6];

/// How operands lie in memory.
#[derive(Clone, Copy, PartialEq)]
enum HeadLayout {
    Contiguous,
    /// `[B, T, H, D]` seen as `[B, H, T, D]`: what a model makes.
    Permuted,
    Random,
}

/// A tensor in both memories, and the windows onto it.
struct Both {
    tensor: Tensor,
    cpu: View,
    gpu: OnGpu,
}

impl Both {
    fn new(rig: &Rig, rng: &mut Random, dtype: DType, dims: &[usize], layout: HeadLayout) -> Both {
        let tensor = match layout {
            HeadLayout::Contiguous => Tensor::contiguous(rng, dtype, dims),
            HeadLayout::Permuted => Tensor::contiguous(rng, dtype, &[dims[0], dims[2], dims[1], dims[3]]),
            HeadLayout::Random => Tensor::random(rng, dtype, dims),
        };
        let mut cpu = tensor.view();
        if layout == HeadLayout::Permuted {
            let s = cpu.strides();
            let strides = Strides::from_slice(&[s[0], s[2], s[1], s[3]]);
            // SAFETY: the same elements in another order.
            cpu = unsafe { cpu.restride(0, Dims::from_slice(dims), strides) };
        }
        let gpu = rig.put_as(&tensor, &cpu);
        Both { tensor, cpu, gpu }
    }
}

fn check(rig: &Rig, seed: u64, dtype: DType, shape: Shape, settings: Attention, layout: HeadLayout, tolerance: f64) {
    let rng = &mut Random::new(seed);
    let [b, h, tq, tk, d, dv] = shape;
    let what = format!("{dtype} {shape:?} {settings:?}");
    let mut make = |dims: &[usize], layout| Both::new(rig, rng, dtype, dims, layout);
    let (q, k, v) = (make(&[b, h, tq, d], layout), make(&[b, h, tk, d], layout), make(&[b, h, tk, dv], layout));
    let (out, dout) = (make(&[b, h, tq, dv], HeadLayout::Contiguous), make(&[b, h, tq, dv], layout));
    let grads = [make(&[b, h, tq, d], layout), make(&[b, h, tk, d], layout), make(&[b, h, tk, dv], layout)];
    let statistics = if dtype.is_half() { DType::F32 } else { dtype };
    let lse = Both::new(rig, rng, statistics, &[b, h, tq], HeadLayout::Contiguous);

    let queue = rig.queue();
    let on_cpu = Qkv { q: &q.cpu, k: &k.cpu, v: &v.cpu };
    let views = [&q, &k, &v].map(|t| t.gpu.view());
    let on_gpu = Qkv { q: &views[0], k: &views[1], v: &views[2] };
    cpu::attention(&on_cpu, &out.cpu, &lse.cpu, &settings).unwrap();
    attention(&queue, &on_gpu, &out.gpu.view(), &lse.gpu.view(), &settings).unwrap();
    rig.expect(&out.gpu, &out.tensor, tolerance, &format!("{what}: out"));
    rig.expect(&lse.gpu, &lse.tensor, tolerance, &format!("{what}: lse"));

    // The gradient gets the CPU's results on both sides.
    let on_cpu_grads = Qkv { q: &grads[0].cpu, k: &grads[1].cpu, v: &grads[2].cpu };
    cpu::attention_grad(&dout.cpu, &on_cpu, &out.cpu, &lse.cpu, &on_cpu_grads, &settings).unwrap();
    let (out, lse) = (rig.put(&out.tensor), rig.put(&lse.tensor));
    let scratch = rig.scratch(attention_grad_workspace(&[b, h, tq, d], dtype).max(8));
    let g = [0, 1, 2].map(|i| grads[i].gpu.view());
    let on_gpu_grads = Qkv { q: &g[0], k: &g[1], v: &g[2] };
    attention_grad(
        &queue,
        &dout.gpu.view(),
        &on_gpu,
        &out.view(),
        &lse.view(),
        &on_gpu_grads,
        &settings,
        &scratch.view(),
    )
    .unwrap();
    for (grad, name) in grads.iter().zip(["dq", "dk", "dv"]) {
        rig.expect(&grad.gpu, &grad.tensor, tolerance * 2.0, &format!("{what}: {name}"));
    }
}

fn settings(scale: f64, causal: bool) -> Attention {
    Attention { scale, causal, offset: 0 }
}

#[test]
fn halves_on_tensor_cores() {
    let Some(rig) = Rig::new() else { return };
    let shapes: [(Shape, HeadLayout); 6] = [
        ([1, 2, 70, 70, 64, 64], HeadLayout::Permuted),
        ([2, 1, 130, 200, 128, 128], HeadLayout::Contiguous),
        ([1, 1, 200, 130, 32, 32], HeadLayout::Contiguous),
        ([1, 2, 37, 90, 40, 24], HeadLayout::Permuted),
        // Not whole vectors: read element by element.
        ([1, 2, 5, 70, 20, 7], HeadLayout::Random),
        ([1, 1, 129, 65, 72, 80], HeadLayout::Random),
    ];
    for (i, (shape, layout)) in shapes.into_iter().enumerate() {
        for causal in [false, true] {
            let (dtype, tolerance) = if i % 2 == 0 { (DType::BF16, 0.02) } else { (DType::F16, 0.004) };
            let scale = 1.5 / (shape[4] as f64).sqrt();
            check(&rig, i as u64, dtype, shape, settings(scale, causal), layout, tolerance);
        }
    }
    check(&rig, 9, DType::F16, [1, 2, 70, 70, 64, 64], settings(-0.3, true), HeadLayout::Permuted, 0.004);
    // Every key counts the same, those that are not seen still nothing.
    check(&rig, 10, DType::F16, [1, 1, 40, 70, 32, 32], settings(0.0, true), HeadLayout::Contiguous, 0.004);
}

#[test]
fn everything_else_by_the_plain_kernel() {
    let Some(rig) = Rig::new() else { return };
    for (i, shape) in [[2, 3, 5, 5, 4, 4], [1, 2, 65, 70, 8, 3], [1, 1, 40, 33, 130, 16]].into_iter().enumerate() {
        for causal in [false, true] {
            for layout in [HeadLayout::Permuted, HeadLayout::Random] {
                check(&rig, i as u64, DType::F32, shape, settings(0.4, causal), layout, 2e-5);
                check(&rig, i as u64, DType::F64, shape, settings(-0.4, causal), layout, 1e-12);
            }
        }
    }
    check(&rig, 7, DType::BF16, [1, 1, 20, 30, 144, 16], settings(0.1, false), HeadLayout::Contiguous, 0.02);
}

#[test]
fn parts_of_sequences() {
    let Some(rig) = Rig::new() else { return };
    // Queries that stand later than the first key, or before it: those see nothing at first.
    for offset in [1, 50, 63, 64, 65, 500, -1, -40, -64, -129, -500] {
        let set = Attention { offset, ..settings(0.2, true) };
        check(&rig, 1, DType::F16, [1, 1, 150, 200, 32, 32], set, HeadLayout::Contiguous, 0.004);
        check(&rig, 2, DType::BF16, [1, 1, 70, 90, 20, 7], set, HeadLayout::Random, 0.02);
        check(&rig, 3, DType::F32, [1, 2, 40, 70, 5, 4], set, HeadLayout::Random, 2e-5);
        // It is for causal ones only.
        check(
            &rig,
            4,
            DType::F32,
            [1, 1, 5, 7, 5, 4],
            Attention { causal: false, ..set },
            HeadLayout::Contiguous,
            2e-5,
        );
    }
}

#[test]
fn empty_sides() {
    let Some(rig) = Rig::new() else { return };
    for dtype in [DType::F32, DType::BF16] {
        for shape in [[0, 2, 3, 3, 2, 2], [1, 2, 0, 3, 2, 2], [1, 2, 3, 0, 2, 2]] {
            check(&rig, 1, dtype, shape, settings(0.5, false), HeadLayout::Contiguous, 0.0);
        }
    }
}

#[test]
fn bits_are_the_same_every_time() {
    let Some(rig) = Rig::new() else { return };
    let rng = &mut Random::new(3);
    let dims = [2, 2, 100, 64];
    let [q, k, v, dout] = [(); 4].map(|()| rig.put(&Tensor::contiguous(rng, DType::BF16, &dims)));
    let run = |rng: &mut Random| {
        let [out, dq, dk, dv] = [(); 4].map(|()| rig.put(&Tensor::contiguous(rng, DType::BF16, &dims)));
        let lse = rig.put(&Tensor::contiguous(rng, DType::F32, &dims[..3]));
        let scratch = rig.scratch(attention_grad_workspace(&dims, DType::BF16));
        let (inputs, grads) = ([&q, &k, &v].map(|t| t.view()), [&dq, &dk, &dv].map(|t| t.view()));
        let inputs = Qkv { q: &inputs[0], k: &inputs[1], v: &inputs[2] };
        let grads = Qkv { q: &grads[0], k: &grads[1], v: &grads[2] };
        let (set, queue, out_view, lse_view) = (settings(0.1, true), rig.queue(), out.view(), lse.view());
        attention(&queue, &inputs, &out_view, &lse_view, &set).unwrap();
        attention_grad(&queue, &dout.view(), &inputs, &out_view, &lse_view, &grads, &set, &scratch.view()).unwrap();
        [&out, &dq, &dk, &dv, &lse].map(|t| rig.get(t))
    };
    assert!(run(rng) == run(rng));
}
