use crate::samples::*;
use oflow_base::Random;
use oflow_kernels::cpu::softmax::*;
use oflow_kernels::{DType, Result, View};

type Unary = fn(&View, &View, usize) -> Result<()>;
type Grad = fn(&View, &View, &View, usize) -> Result<()>;

const SHAPES: [(&[usize], usize); 13] = [
    (&[5], 0),
    (&[3, 1], 1),
    (&[4, 7], 1),
    (&[7, 4], 0),
    (&[2, 33, 3], 1),
    (&[3, 2, 100], 2),
    (&[2, 257], 1),
    (&[0, 3], 1),
    (&[3, 0], 1),
    // Enough rows for bundles: short, along an outer dim, with rows left over, and long.
    (&[40, 5], 1),
    (&[9, 37], 0),
    (&[2, 20, 33], 1),
    (&[60, 18], 0),
];

/// Calls `f` with the indices of each row along `dim`.
fn each_row(dims: &[usize], dim: usize, mut f: impl FnMut(Vec<usize>)) {
    let after: usize = dims[dim + 1..].iter().product();
    let before: usize = dims[..dim].iter().product();
    for (i, j) in (0..before).flat_map(|i| (0..after).map(move |j| (i, j))) {
        f((0..dims[dim]).map(|c| (i * dims[dim] + c) * after + j).collect());
    }
}

fn oracle(x: &[f64], dims: &[usize], dim: usize, log: bool) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    each_row(dims, dim, |row| {
        let max = row.iter().fold(f64::NEG_INFINITY, |m, i| m.max(x[*i]));
        let sum: f64 = row.iter().map(|i| (x[*i] - max).exp()).sum();
        for i in row {
            y[i] = if log { x[i] - max - sum.ln() } else { (x[i] - max).exp() / sum };
        }
    });
    y
}

#[test]
fn forward_matches_the_definition() {
    let mut rng = Random::new(1);
    for (dims, dim) in SHAPES {
        for dtype in FLOATS {
            for (function, log) in [(softmax as Unary, false), (log_softmax, true)] {
                let (x, y) = (Tensor::random(&mut rng, dtype, dims), Tensor::random(&mut rng, dtype, dims));
                function(&x.view(), &y.view(), dim).unwrap();
                y.expect(&oracle(&x.values(), dims, dim, log), tolerance(dtype), "softmax");
            }
        }
    }
}

#[test]
fn logsumexp_matches_the_definition() {
    let mut rng = Random::new(2);
    for (dims, dim) in SHAPES {
        for dtype in FLOATS {
            let x = Tensor::random(&mut rng, dtype, dims);
            let mut reduced = dims.to_vec();
            reduced.remove(dim);
            let out = Tensor::random(&mut rng, dtype, &reduced);
            logsumexp(&x.view(), &out.view(), dim).unwrap();
            let (values, mut expected) = (x.values(), Vec::new());
            each_row(dims, dim, |row| expected.push(row.iter().map(|i| values[*i].exp()).sum::<f64>().ln()));
            out.expect(&expected, tolerance(dtype), "logsumexp");
        }
    }
}

#[test]
fn gradients_match_differences() {
    let mut rng = Random::new(3);
    for (dims, dim) in SHAPES {
        for (function, grad, log) in
            [(softmax as Unary, softmax_grad as Grad, false), (log_softmax, log_softmax_grad, true)]
        {
            let x = Tensor::random(&mut rng, DType::F64, dims);
            let weights = Tensor::random(&mut rng, DType::F64, dims);
            let (y, dx) = (Tensor::random(&mut rng, DType::F64, dims), Tensor::random(&mut rng, DType::F64, dims));
            function(&x.view(), &y.view(), dim).unwrap();
            grad(&weights.view(), &y.view(), &dx.view(), dim).unwrap();
            let expected = differences(&x.values(), |x| inner(&weights.values(), &oracle(x, dims, dim, log)));
            dx.expect(&expected, 1e-7, "gradient");
            for dtype in FLOATS {
                let of = |t: &Tensor| Tensor::of(dtype, dims, &t.values());
                let (dy, y) = (of(&weights), of(&y));
                let (dx, exact) = (Tensor::random(&mut rng, dtype, dims), Tensor::random(&mut rng, DType::F64, dims));
                grad(&dy.view(), &y.view(), &dx.view(), dim).unwrap();
                grad(&dy.exact().view(), &y.exact().view(), &exact.view(), dim).unwrap();
                dx.expect(&exact.values(), 8.0 * tolerance(dtype), "gradient in another dtype");
            }
        }
    }
}

#[test]
fn infinities_and_nan() {
    let (low, high, nan) = (f64::NEG_INFINITY, f64::INFINITY, f64::NAN);
    // A softmax that meets an infinite maximum is NaN throughout, as in PyTorch.
    let rows = [
        ([low, low, low], [nan; 3], low),
        ([low, 0.0, 0.0], [0.0, 0.5, 0.5], 2f64.ln()),
        ([nan, 1.0, 2.0], [nan; 3], nan),
        ([nan, low, low], [nan; 3], nan),
    ];
    // Alone, and as often as it takes to be computed in bundles.
    for repeats in [1, 10] {
        let all: Vec<_> = (0..repeats).flat_map(|_| rows).collect();
        let (inputs, outputs): (Vec<_>, Vec<_>) = all.iter().map(|r| (r.0, r.1)).unzip();
        let dims = [all.len(), 3];
        for dtype in FLOATS {
            let x = Tensor::of(dtype, &dims, inputs.as_flattened());
            let y = x.reshaped(&dims);
            softmax(&x.view(), &y.view(), 1).unwrap();
            y.expect(outputs.as_flattened(), 1e-6, "softmax");
            log_softmax(&x.view(), &y.view(), 1).unwrap();
            let logs: Vec<f64> = outputs.as_flattened().iter().map(|p| p.ln()).collect();
            y.expect(&logs, tolerance(dtype), "log_softmax");
            let lse = Tensor::of(dtype, &dims[..1], &vec![0.0; dims[0]]);
            logsumexp(&x.view(), &lse.view(), 1).unwrap();
            lse.expect(&all.iter().map(|r| r.2).collect::<Vec<_>>(), tolerance(dtype), "logsumexp");
            let above = Tensor::of(dtype, &dims, &[high, 1.0, 2.0].repeat(dims[0]));
            logsumexp(&above.view(), &lse.view(), 1).unwrap();
            lse.expect(&vec![high; dims[0]], 0.0, "logsumexp");
        }
    }
}

#[test]
fn large_values_do_not_overflow() {
    let x = Tensor::of(DType::F32, &[2, 2], &[1e30, 1e30, -3e38, 3e38]);
    let y = x.reshaped(&[2, 2]);
    softmax(&x.view(), &y.view(), 1).unwrap();
    y.expect(&[0.5, 0.5, 0.0, 1.0], 1e-6, "softmax");
}

#[test]
fn bits_do_not_depend_on_threads() {
    for dim in [0, 1] {
        same_bits_on_any_threads(|| {
            let mut rng = Random::new(4);
            let dims = [700, 333];
            let (x, y) =
                (Tensor::contiguous(&mut rng, DType::F32, &dims), Tensor::contiguous(&mut rng, DType::F32, &dims));
            softmax(&x.view(), &y.view(), dim).unwrap();
            y.bytes()
        });
    }
}

#[test]
fn refusals_say_why() {
    let mut rng = Random::new(5);
    let x = Tensor::contiguous(&mut rng, DType::F32, &[2, 3]);
    let ints = Tensor::contiguous(&mut rng, DType::I32, &[2, 3]);
    assert_eq!(softmax(&x.view(), &x.view(), 2).unwrap_err().0, "dim 2 is out of range for [2, 3]");
    assert_eq!(softmax(&ints.view(), &ints.view(), 1).unwrap_err().0, "needs a float dtype, not i32");
    assert_eq!(softmax(&x.view(), &ints.view(), 1).unwrap_err().0, "the output is i32, expected f32");
    assert_eq!(softmax(&x.view(), &x.transposed(), 1).unwrap_err().0, "the output has dims [3, 2], expected [2, 3]");
}
