use crate::rig::Rig;
use crate::samples::Tensor;
use oflow_base::Random;
use oflow_kernels::cpu;
use oflow_kernels::cuda::Epilogue;
use oflow_kernels::cuda::matmul::*;
use oflow_kernels::{DType, Dims, Strides};

fn check(rig: &Rig, rng: &mut Random, dtype: DType, shapes: [&[usize]; 3], layouts: u32, add: bool) {
    let mut make = |dims: &[usize], random: bool| match random {
        true => Tensor::random(rng, dtype, dims),
        false => Tensor::contiguous(rng, dtype, dims),
    };
    let [a, b, out] = [0, 1, 2].map(|i| make(shapes[i], layouts >> i & 1 != 0));
    let (ga, gb, gout) = (rig.put(&a), rig.put(&b), rig.put(&out));
    cpu::matmul::matmul_into(&a.view(), &b.view(), &out.view(), add).unwrap();
    matmul_into(&rig.queue(), &ga.view(), &gb.view(), &gout.view(), add).unwrap();
    let tolerance = match dtype {
        DType::F32 => 1e-5,
        DType::F64 => 1e-13,
        DType::F16 => 2e-3,
        DType::BF16 => 1.6e-2,
        _ => 0.0,
    };
    rig.expect(&gout, &out, tolerance, &format!("{dtype} {:?} x {:?}, layouts {layouts}, add {add}", a.dims, b.dims));
}

#[test]
fn equals_the_cpus() {
    let Some(rig) = Rig::new() else { return };
    let rng = &mut Random::new(5);
    let shapes: [[&[usize]; 3]; 10] = [
        [&[5, 7], &[7, 3], &[5, 3]],
        [&[70, 33], &[33, 65], &[70, 65]],
        [&[1, 9], &[9, 4], &[1, 4]],
        [&[4, 9], &[9, 1], &[4, 1]],
        [&[3, 0], &[0, 4], &[3, 4]],
        [&[0, 3], &[3, 4], &[0, 4]],
        [&[2, 3, 4, 5], &[5, 6], &[2, 3, 4, 6]],
        [&[2, 3, 4, 5], &[2, 3, 5, 6], &[2, 3, 4, 6]],
        [&[2, 1, 4, 5], &[3, 5, 6], &[2, 3, 4, 6]],
        [&[9], &[2, 9, 4], &[2, 4]],
    ];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::I8, DType::U8] {
        for shapes in shapes {
            for layouts in 0..8 {
                check(&rig, rng, dtype, shapes, layouts, layouts % 3 == 1);
            }
        }
    }
}

#[test]
fn transposes_rows_apart_and_repeats_are_strides() {
    let Some(rig) = Rig::new() else { return };
    let rng = &mut Random::new(6);
    let x = Tensor::contiguous(rng, DType::F32, &[3, 20, 30]);
    let row = |s: [isize; 3]| Strides::from_slice(&s);
    // Of [3, 8, 10]: columns of a wider matrix, its transpose, rows that repeat, one matrix for all.
    for strides in [row([600, 30, 1]), row([600, 1, 30]), row([600, 0, 1]), row([0, 30, 1]), row([600, 2, 60])] {
        // SAFETY: all elements lie inside.
        let left = unsafe { x.view().restride(0, Dims::from_slice(&[3, 8, 10]), strides) };
        let (b, out) = (Tensor::contiguous(rng, DType::F32, &[10, 6]), Tensor::contiguous(rng, DType::F32, &[3, 8, 6]));
        let (ga, gb, gout) = (rig.put_as(&x, &left), rig.put(&b), rig.put(&out));
        cpu::matmul::matmul(&left, &b.view(), &out.view()).unwrap();
        matmul(&rig.queue(), &ga.view(), &gb.view(), &gout.view()).unwrap();
        rig.expect(&gout, &out, 1e-5, &format!("{:?}", left.strides()));
    }
}

#[test]
fn a_bias_is_added_and_gelu_applied() {
    let Some(rig) = Rig::new() else { return };
    let rng = &mut Random::new(7);
    let (a, b) = (Tensor::contiguous(rng, DType::F32, &[2, 6, 8]), Tensor::contiguous(rng, DType::F32, &[8, 5]));
    let (bias, out) = (Tensor::contiguous(rng, DType::F32, &[5]), Tensor::contiguous(rng, DType::F32, &[2, 6, 5]));
    let (ga, gb, gbias, gout) = (rig.put(&a), rig.put(&b), rig.put(&bias), rig.put(&out));
    cpu::matmul::matmul(&a.view(), &b.view(), &out.view()).unwrap();
    let (out_view, bias_view) = (out.view(), bias.view());
    // SAFETY: the tensor is this test's alone.
    let (sums, bias_values) =
        unsafe { (out_view.as_mut_slice::<f32>().unwrap(), bias_view.as_slice::<f32>().unwrap()) };
    for (i, y) in sums.iter_mut().enumerate() {
        let x = *y + bias_values[i % 5];
        *y = 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh());
    }
    let q = rig.queue();
    matmul_with(&q, &ga.view(), &gb.view(), &gout.view(), Epilogue::BiasGelu, Some(&gbias.view())).unwrap();
    rig.expect(&gout, &out, 1e-5, "bias and GELU");
    let error = matmul_with(&q, &ga.view(), &gb.view(), &gout.view(), Epilogue::Bias, None).unwrap_err();
    assert_eq!(error.to_string(), "the epilogue Bias and a bias do not go together");
}
