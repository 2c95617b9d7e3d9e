use crate::samples::*;
use oflow_base::Random;
use oflow_kernels::DType;
use oflow_kernels::cpu::optim::*;

const SHAPES: [&[usize]; 6] = [&[], &[7], &[3, 50], &[5, 4, 3], &[2, 5000], &[0, 3]];

#[test]
fn adamw_follows_the_formula() {
    let mut rng = Random::new(1);
    let (lr, beta1, beta2, eps, weight_decay) = (0.1, 0.8, 0.9, 1e-3, 0.3);
    for dims in SHAPES {
        for (dtype, grad_dtype, state) in [
            (DType::F32, DType::F32, DType::F32),
            (DType::F64, DType::F64, DType::F64),
            (DType::F32, DType::BF16, DType::F32),
            (DType::BF16, DType::BF16, DType::F32),
            (DType::F16, DType::F32, DType::F16),
        ] {
            let mut tensor = |dtype| Tensor::random(&mut rng, dtype, dims);
            let (p, m, v) = (tensor(dtype), tensor(state), tensor(state));
            let nonnegative: Vec<f64> = v.values().iter().map(|x| x.abs()).collect();
            let v = Tensor::of(state, dims, &nonnegative);
            for step in [1u64, 5] {
                let g = tensor(grad_dtype);
                let [p0, g0, m0, v0] = [&p, &g, &m, &v].map(Tensor::values);
                let settings = AdamW { lr, beta1, beta2, eps, weight_decay, step };
                adamw(&p.view(), &g.view(), &m.view(), &v.view(), &settings).unwrap();
                let m1: Vec<f64> = m0.iter().zip(&g0).map(|(m, g)| beta1 * m + (1.0 - beta1) * g).collect();
                let v1: Vec<f64> = v0.iter().zip(&g0).map(|(v, g)| beta2 * v + (1.0 - beta2) * g * g).collect();
                let expected: Vec<f64> = (0..p0.len())
                    .map(|i| {
                        let m_hat = m1[i] / (1.0 - beta1.powi(step as i32));
                        let v_hat = v1[i] / (1.0 - beta2.powi(step as i32));
                        p0[i] - lr * weight_decay * p0[i] - lr * m_hat / (v_hat.sqrt() + eps)
                    })
                    .collect();
                let bound = if dtype == DType::F64 { 1e-12 } else { tolerance(dtype) };
                p.expect(&expected, bound, "param");
                m.expect(&m1, tolerance(state), "m");
                v.expect(&v1, tolerance(state), "v");
            }
        }
    }
}

#[test]
fn sgd_follows_the_formula() {
    let mut rng = Random::new(2);
    for dims in SHAPES {
        for (dtype, grad_dtype) in [(DType::F32, DType::F32), (DType::F64, DType::F64), (DType::BF16, DType::F32)] {
            for (with_buffer, nesterov, first_step) in [
                (false, false, false),
                (true, false, true),
                (true, false, false),
                (true, true, false),
                (true, true, true),
            ] {
                let settings = Sgd { lr: 0.1, momentum: 0.9, dampening: 0.2, weight_decay: 0.3, nesterov, first_step };
                let p = Tensor::random(&mut rng, dtype, dims);
                let mut buffer = Tensor::random(&mut rng, dtype, dims);
                if first_step && buffer.len() > 0 {
                    buffer.set(0, oflow_kernels::Scalar::Float(f64::NAN));
                }
                let g = Tensor::random(&mut rng, grad_dtype, dims);
                let [p0, g0, b0] = [&p, &g, &buffer].map(Tensor::values);
                let view = buffer.view();
                sgd(&p.view(), &g.view(), with_buffer.then_some(&view), &settings).unwrap();
                let (mut buffers, mut params) = (Vec::new(), Vec::new());
                for i in 0..p0.len() {
                    let d = g0[i] + 0.3 * p0[i];
                    let b = if first_step { d } else { 0.9 * b0[i] + 0.8 * d };
                    let along = if !with_buffer {
                        d
                    } else if nesterov {
                        d + 0.9 * b
                    } else {
                        b
                    };
                    buffers.push(b);
                    params.push(p0[i] - 0.1 * along);
                }
                p.expect(&params, tolerance(dtype), "param");
                if with_buffer {
                    buffer.expect(&buffers, tolerance(dtype), "buffer");
                }
            }
        }
    }
}

#[test]
fn an_infinite_gradient_is_a_step_to_infinity() {
    let p = Tensor::of(DType::F32, &[1], &[1.0]);
    let (g, buffer) = (Tensor::of(DType::F32, &[1], &[f64::INFINITY]), Tensor::of(DType::F32, &[1], &[0.0]));
    let settings =
        Sgd { lr: 0.1, momentum: 0.9, dampening: 0.0, weight_decay: 0.0, nesterov: false, first_step: false };
    sgd(&p.view(), &g.view(), Some(&buffer.view()), &settings).unwrap();
    p.expect(&[f64::NEG_INFINITY], 0.0, "param");
}

#[test]
fn sums_of_squares() {
    let mut rng = Random::new(3);
    for dims in SHAPES {
        for dtype in FLOATS {
            let x = Tensor::random(&mut rng, dtype, dims);
            let exact: f64 = x.values().iter().map(|x| x * x).sum();
            let got = sum_of_squares(&x.view()).unwrap();
            assert!((got - exact).abs() <= 1e-12 * (1.0 + exact), "{dtype} {dims:?}: {got} for {exact}");
        }
    }
    let ints = Tensor::contiguous(&mut rng, DType::I64, &[3]);
    assert_eq!(sum_of_squares(&ints.view()).unwrap_err().0, "the input is i64, expected a float dtype");
}

#[test]
fn bits_do_not_depend_on_threads() {
    same_bits_on_any_threads(|| {
        let mut rng = Random::new(4);
        let mut tensor = || Tensor::contiguous(&mut rng, DType::F32, &[300_001]);
        let (p, g, m, v) = (tensor(), tensor(), tensor(), tensor());
        let mut bits = vec![sum_of_squares(&p.view()).unwrap().to_bits()];
        let settings = AdamW { lr: 0.1, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1, step: 3 };
        adamw(&p.view(), &g.view(), &m.view(), &v.view(), &settings).unwrap();
        bits.extend(p.bytes());
        bits
    });
}
