use crate::samples::*;
use oflow_base::Random;
use oflow_kernels::cpu::steps::*;
use oflow_kernels::{DType, View};

const SHAPES: [&[usize]; 6] = [&[], &[7], &[3, 50], &[5, 4, 3], &[2, 5000], &[0, 3]];

/// All rules, and all variants of each.
pub(crate) fn all_steps() -> Vec<Step> {
    let (lr, beta1, beta2, eps, weight_decay) = (0.1, 0.8, 0.9, 1e-3, 0.3);
    let mut all = vec![
        Step::Adagrad { lr, eps, weight_decay },
        Step::Adadelta { lr, rho: 0.9, eps, weight_decay },
        Step::Lion { lr, beta1, beta2, weight_decay },
        Step::LambDirection { beta1, beta2, eps, weight_decay, step: 3 },
        Step::LambDirection { beta1, beta2, eps, weight_decay, step: 0 },
        Step::Average { decay: 0.75 },
        Step::Adamax { lr, beta1, beta2, eps, weight_decay, step: 2 },
        Step::Asgd { rate: lr, lambd: 0.2, weight_decay, mix: 1.0 },
        Step::Asgd { rate: lr, lambd: 0.2, weight_decay, mix: 0.25 },
        Step::Rprop { shrink: 0.5, grow: 1.2, least: 1e-6, most: 50.0 },
        Step::Rprop { shrink: 0.5, grow: 1.2, least: 0.05, most: 0.1 },
    ];
    for decoupled in [false, true] {
        // Without rectification, and with it.
        for (beta2, step) in [(0.9, 1), (0.99, 9)] {
            all.push(Step::RAdam { lr, beta1, beta2, eps, weight_decay, decoupled, step });
        }
        all.push(Step::NAdam { lr, beta1, beta2, eps, weight_decay, momentum_decay: 0.1, decoupled, step: 3 });
    }
    for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
        all.push(Step::Adam { lr, beta1, beta2, eps, weight_decay, decoupled: a, largest: b, step: 2 });
        all.push(Step::RmsProp { lr, alpha: 0.9, eps, weight_decay, momentum: 0.7, centered: a, buffer: b });
    }
    all
}

/// The formula in f64, as the papers and PyTorch's documentation write it.
fn formula(step: &Step, p: &mut f64, g: f64, s: &mut [f64]) {
    match *step {
        Step::Adam { lr, beta1, beta2, eps, weight_decay, decoupled, largest, step } => {
            let g = if decoupled { g } else { g + weight_decay * *p };
            if decoupled {
                *p -= lr * weight_decay * *p;
            }
            s[0] = beta1 * s[0] + (1.0 - beta1) * g;
            s[1] = beta2 * s[1] + (1.0 - beta2) * g * g;
            let mut square = s[1];
            if largest {
                s[2] = s[2].max(square);
                square = s[2];
            }
            let (m, v) = (s[0] / (1.0 - beta1.powi(step as i32)), square / (1.0 - beta2.powi(step as i32)));
            *p -= lr * m / (v.sqrt() + eps);
        }
        Step::RmsProp { lr, alpha, eps, weight_decay, momentum, centered, buffer } => {
            let g = g + weight_decay * *p;
            s[0] = alpha * s[0] + (1.0 - alpha) * g * g;
            let mut square = s[0];
            if centered {
                s[1] = alpha * s[1] + (1.0 - alpha) * g;
                square -= s[1] * s[1];
            }
            let along = g / (square.sqrt() + eps);
            match (buffer, s.last_mut()) {
                (true, Some(b)) => {
                    *b = momentum * *b + along;
                    *p -= lr * *b;
                }
                _ => *p -= lr * along,
            }
        }
        Step::Adagrad { lr, eps, weight_decay } => {
            let g = g + weight_decay * *p;
            s[0] += g * g;
            *p -= lr * g / (s[0].sqrt() + eps);
        }
        Step::Adadelta { lr, rho, eps, weight_decay } => {
            let g = g + weight_decay * *p;
            s[0] = rho * s[0] + (1.0 - rho) * g * g;
            let along = (s[1] + eps).sqrt() / (s[0] + eps).sqrt() * g;
            s[1] = rho * s[1] + (1.0 - rho) * along * along;
            *p -= lr * along;
        }
        Step::Lion { lr, beta1, beta2, weight_decay } => {
            let along = beta1 * s[0] + (1.0 - beta1) * g;
            *p -= lr * (if along == 0.0 { 0.0 } else { along.signum() } + weight_decay * *p);
            s[0] = beta2 * s[0] + (1.0 - beta2) * g;
        }
        Step::LambDirection { beta1, beta2, eps, weight_decay, step } => {
            s[0] = beta1 * s[0] + (1.0 - beta1) * g;
            s[1] = beta2 * s[1] + (1.0 - beta2) * g * g;
            let power = |b: f64| if step == 0 { 1.0 } else { 1.0 - b.powi(step as i32) };
            s[2] = s[0] / power(beta1) / ((s[1] / power(beta2)).sqrt() + eps) + weight_decay * *p;
        }
        Step::RAdam { lr, beta1, beta2, eps, weight_decay, decoupled, step } => {
            let g = if decoupled { g } else { g + weight_decay * *p };
            if decoupled {
                *p -= lr * weight_decay * *p;
            }
            s[0] = beta1 * s[0] + (1.0 - beta1) * g;
            s[1] = beta2 * s[1] + (1.0 - beta2) * g * g;
            let (t, m) = (step as f64, s[0] / (1.0 - beta1.powi(step as i32)));
            let second = 1.0 - beta2.powi(step as i32);
            let most = 2.0 / (1.0 - beta2) - 1.0;
            let length = most - 2.0 * t * beta2.powi(step as i32) / second;
            if length > 5.0 {
                let r = (length - 4.0) * (length - 2.0) * most / ((most - 4.0) * (most - 2.0) * length);
                *p -= lr * m * r.sqrt() * second.sqrt() / (s[1].sqrt() + eps);
            } else {
                *p -= lr * m;
            }
        }
        Step::NAdam { lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled, step } => {
            let g = if decoupled { g } else { g + weight_decay * *p };
            if decoupled {
                *p -= lr * weight_decay * *p;
            }
            let mu = |t: u64| beta1 * (1.0 - 0.5 * 0.96f64.powf(t as f64 * momentum_decay));
            let product: f64 = (1..=step).map(mu).product();
            s[0] = beta1 * s[0] + (1.0 - beta1) * g;
            s[1] = beta2 * s[1] + (1.0 - beta2) * g * g;
            let along = mu(step + 1) * s[0] / (1.0 - product * mu(step + 1)) + (1.0 - mu(step)) * g / (1.0 - product);
            *p -= lr * along / ((s[1] / (1.0 - beta2.powi(step as i32))).sqrt() + eps);
        }
        Step::Adamax { lr, beta1, beta2, eps, weight_decay, step } => {
            let g = g + weight_decay * *p;
            s[0] = beta1 * s[0] + (1.0 - beta1) * g;
            s[1] = (beta2 * s[1]).max(g.abs() + eps);
            *p -= lr / (1.0 - beta1.powi(step as i32)) * s[0] / s[1];
        }
        Step::Asgd { rate, lambd, weight_decay, mix } => {
            let g = g + weight_decay * *p;
            *p = *p * (1.0 - lambd * rate) - rate * g;
            s[0] += mix * (*p - s[0]);
        }
        Step::Rprop { shrink, grow, least, most } => {
            let agree = g * s[0];
            let factor = if agree > 0.0 {
                grow
            } else if agree < 0.0 {
                shrink
            } else {
                1.0
            };
            s[1] = (s[1] * factor).clamp(least, most);
            s[0] = if agree < 0.0 { 0.0 } else { g };
            *p -= s[1] * if s[0] == 0.0 { 0.0 } else { s[0].signum() };
        }
        Step::Average { decay } => *p = decay * *p + (1.0 - decay) * g,
    }
}

#[test]
fn every_rule_follows_its_formula() {
    let mut rng = Random::new(1);
    for step_ in all_steps() {
        for dims in SHAPES {
            for (dtype, grad_dtype, state) in [
                (DType::F32, DType::F32, DType::F32),
                (DType::F64, DType::F64, DType::F64),
                (DType::F32, DType::BF16, DType::F32),
                (DType::BF16, DType::BF16, DType::F32),
            ] {
                let (p, g) = (Tensor::random(&mut rng, dtype, dims), Tensor::random(&mut rng, grad_dtype, dims));
                // Means of squares are not negative, and not below the square of a mean.
                let states: Vec<Tensor> = (0..step_.states())
                    .map(|k| {
                        let mut t = Tensor::random(&mut rng, state, dims);
                        let values = t.values();
                        let held = |x: f64| if k == 0 { x.abs() + 1.0 } else { x.abs() / 8.0 };
                        values.iter().enumerate().for_each(|(i, x)| t.set(i, oflow_kernels::Scalar::Float(held(*x))));
                        t
                    })
                    .collect();
                let (mut ps, gs) = (p.values(), g.values());
                let mut kept: Vec<Vec<f64>> = states.iter().map(Tensor::values).collect();
                for i in 0..ps.len() {
                    let mut s: Vec<f64> = kept.iter().map(|k| k[i]).collect();
                    formula(&step_, &mut ps[i], gs[i], &mut s);
                    kept.iter_mut().zip(s).for_each(|(k, s)| k[i] = s);
                }
                let views: Vec<View> = states.iter().map(Tensor::view).collect();
                let views: Vec<&View> = views.iter().collect();
                step(&step_, &p.view(), &g.view(), &views).unwrap();
                let bound = |d: DType| if d == DType::F64 { 1e-12 } else { tolerance(d) * 4.0 };
                p.expect(&ps, bound(dtype), &format!("{step_:?}"));
                for (have, want) in states.iter().zip(&kept) {
                    have.expect(want, bound(state), &format!("what {step_:?} keeps"));
                }
            }
        }
    }
}

#[test]
fn long_trainings_of_nadam_have_no_product_of_momenta() {
    // Without momentum decay each momentum is half of beta1: after 1000 steps the product is 0.
    let values = |step| {
        let nadam = Step::NAdam {
            lr: 0.1,
            beta1: 0.9,
            beta2: 0.9,
            eps: 1e-3,
            weight_decay: 0.0,
            momentum_decay: 0.0,
            decoupled: false,
            step,
        };
        let [p, g, m, v] = [1.0, 0.5, 0.25, 0.75].map(|x| Tensor::of(DType::F64, &[1], &[x]));
        oflow_kernels::cpu::steps::step(&nadam, &p.view(), &g.view(), &[&m.view(), &v.view()]).unwrap();
        p.values()
    };
    assert_eq!(values(1000), values(u64::MAX - 1));
}

#[test]
fn a_zero_direction_and_nan_stay_what_they_are() {
    let lion = Step::Lion { lr: 0.5, beta1: 0.9, beta2: 0.9, weight_decay: 0.0 };
    let p = Tensor::of(DType::F32, &[3], &[1.0; 3]);
    let (g, m) = (Tensor::of(DType::F32, &[3], &[0.0, f64::NAN, -1.0]), Tensor::of(DType::F32, &[3], &[0.0; 3]));
    step(&lion, &p.view(), &g.view(), &[&m.view()]).unwrap();
    let got = p.values();
    assert!(got[0] == 1.0 && got[1].is_nan() && got[2] == 1.5, "{got:?}");
    // The magnitudes of Adamax: NaN of the old one and of the gradient.
    let adamax = Step::Adamax { lr: 0.5, beta1: 0.9, beta2: 0.9, eps: 1e-3, weight_decay: 0.0, step: 1 };
    let [p, m] = [(); 2].map(|()| Tensor::of(DType::F32, &[3], &[0.0; 3]));
    let g = Tensor::of(DType::F32, &[3], &[0.0, f64::NAN, 1.0]);
    let u = Tensor::of(DType::F32, &[3], &[f64::NAN, 1.0, 0.5]);
    step(&adamax, &p.view(), &g.view(), &[&m.view(), &u.view()]).unwrap();
    let got = u.values();
    assert!(got[0].is_nan() && got[1].is_nan() && got[2] > 1.0, "{got:?}");
}

#[test]
fn refusals_say_why() {
    let t = || Tensor::of(DType::F32, &[2], &[0.0; 2]);
    let lion = Step::Lion { lr: 0.5, beta1: 0.9, beta2: 0.9, weight_decay: 0.0 };
    let e = step(&lion, &t().view(), &t().view(), &[]).unwrap_err().0;
    assert_eq!(e, "the step keeps 1 tensors of a parameter; here are 0");
    let ints = Tensor::of(DType::I64, &[2], &[0.0; 2]);
    assert!(subtract(&t().view(), &ints.view(), 1.0).unwrap_err().0.contains("what is subtracted is i64"));
}

#[test]
fn bits_do_not_depend_on_threads() {
    same_bits_on_any_threads(|| {
        let mut rng = Random::new(4);
        let mut tensor = || Tensor::contiguous(&mut rng, DType::F32, &[300_001]);
        let (p, g) = (tensor(), tensor());
        subtract(&p.view(), &g.view(), 0.3).unwrap();
        step(&Step::Average { decay: 0.9 }, &p.view(), &g.view(), &[]).unwrap();
        p.bytes()
    });
}
