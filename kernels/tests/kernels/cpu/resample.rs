use crate::owned::{Owned, read as numbers};
use oflow_kernels::DType;
use oflow_kernels::cpu::resample::*;
use oflow_kernels::resample::{Rule, lines};

/// Sizes of the image and of the result, the rule and its steps.
type Case = (&'static str, &'static [i64], &'static [usize], &'static [usize]);
const CASES: [Case; 11] = [
    ("reflect", &[2, 1], &[3, 4], &[6, 6]),
    ("replicate", &[1, 0, 3], &[2, 3, 4], &[4, 2, 9]),
    ("circular", &[2], &[20], &[40]),
    ("nearest", &[], &[3, 5], &[7, 11]),
    ("nearest-exact", &[], &[8, 5], &[3, 2]),
    ("linear", &[], &[3, 5], &[7, 11]),
    ("linear", &[], &[9, 8], &[3, 5]),
    ("linear", &[], &[2, 3, 4], &[3, 3, 7]),
    ("cubic", &[], &[4, 5], &[9, 3]),
    ("windows", &[2, 2, 1, 1, 3, 1, 1, 2], &[4, 5], &[6, 9]),
    ("windows", &[30, 1, 0, 1], &[32], &[90]),
];

fn run(case: &Case, dtype: DType, grad: bool, values: &[f64]) -> Vec<f64> {
    let (rule, steps, image, result) = case;
    let lines = lines(Rule::named(rule).unwrap(), false, steps, &[], image, result).unwrap();
    let dims = |d: &[usize]| [&[2][..], d].concat();
    let (i, r) = (dims(image), dims(result));
    let (from, to) = if grad { (r, i) } else { (i, r) };
    let (x, y) = (Owned::from_f64(dtype, &from, values), Owned::zeros(dtype, &to));
    if grad {
        resample_grad(&x.view(), &lines, &y.view()).unwrap();
    } else {
        resample(&x.view(), &lines, &y.view()).unwrap();
    }
    numbers(&y.view())
}

#[test]
fn by_hand_and_back() {
    for case in &CASES {
        let (_, steps, image, result) = *case;
        let lines = lines(Rule::named(case.0).unwrap(), false, steps, &[], image, result).unwrap();
        let (n, m): (usize, usize) = (image.iter().product(), result.iter().product());
        let x: Vec<f64> = (0..2 * n).map(|i| ((i * 37) % 61) as f64 - 30.0).collect();
        let mut want = vec![];
        for plane in x.chunks(n) {
            for o in 0..m {
                let mut sum = vec![(0usize, 1.0)];
                let mut rest = m;
                let mut left = o;
                for line in &lines {
                    rest /= line.result;
                    let t = line.taps(left / rest, true);
                    left %= rest;
                    let each = |(at, w): &(usize, f64)| {
                        (0..t.n).map(|k| (at * line.image + t.at[k], w * t.weight[k])).collect::<Vec<_>>()
                    };
                    sum = sum.iter().flat_map(each).collect();
                }
                want.push(sum.iter().map(|(i, w)| plane[*i] * w).sum::<f64>());
            }
        }
        let close =
            |a: &[f64], b: &[f64], eps: f64| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= eps * (1.0 + b.abs()));
        assert!(close(&run(case, DType::F64, false, &x), &want, 1e-12), "{case:?}");
        assert!(close(&run(case, DType::F32, false, &x), &want, 1e-5), "{case:?}");
        if lines[0].rule.moves() {
            assert_eq!(run(case, DType::I32, false, &x), want, "{case:?}");
            assert_eq!(run(case, DType::BF16, false, &x), want, "{case:?}");
        }
        // The gradient is the transposed map.
        let dy: Vec<f64> = (0..2 * m).map(|i| ((i * 11) % 13) as f64 - 6.0).collect();
        let dx = run(case, DType::F64, true, &dy);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        assert!((dot(&want, &dy) - dot(&x, &dx)).abs() < 1e-9, "{case:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let lines = lines(Rule::Linear, false, &[], &[], &[3], &[6]).unwrap();
    let (x, y) = (Owned::zeros(DType::F32, &[2, 3]), Owned::zeros(DType::F32, &[2, 5]));
    assert!(resample(&x.view(), &lines, &y.view()).is_err());
    let (x, y) = (Owned::zeros(DType::I32, &[2, 3]), Owned::zeros(DType::I32, &[2, 6]));
    assert!(resample(&x.view(), &lines, &y.view()).is_err());
    assert!(resample_grad(&y.view(), &lines, &x.view()).is_err());
    assert!(resample(&x.permuted(&[1, 0]), &lines, &y.view()).is_err());
}
