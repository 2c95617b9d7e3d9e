use crate::samples::*;
use oflow_base::Random;
use oflow_kernels::cpu::norm::*;
use oflow_kernels::{DType, View};

const EPS: f64 = 1e-3;

const SHAPES: [(&[usize], usize); 7] =
    [(&[5], 1), (&[4, 7], 1), (&[3, 2, 33], 1), (&[3, 4, 5], 2), (&[2, 3, 2], 3), (&[3, 300], 1), (&[0, 4], 1)];

/// Normalised values before weight and bias, with the statistics.
fn normal(x: &[f64], len: usize, centered: bool) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (mut y, mut means, mut rstds) = (Vec::new(), Vec::new(), Vec::new());
    for row in x.chunks(len) {
        let n = len as f64;
        let mean = if centered { row.iter().sum::<f64>() / n } else { 0.0 };
        let rstd = 1.0 / (row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n + EPS).sqrt();
        y.extend(row.iter().map(|x| (x - mean) * rstd));
        means.push(mean);
        rstds.push(rstd);
    }
    (y, means, rstds)
}

fn affine(normal: &[f64], weight: &[f64], bias: &[f64]) -> Vec<f64> {
    normal.iter().enumerate().map(|(i, h)| h * weight[i % weight.len()] + bias[i % bias.len()]).collect()
}

fn acc(dtype: DType) -> DType {
    statistic(dtype)
}

#[test]
fn forward_matches_the_definition() {
    let mut rng = Random::new(1);
    for (dims, count) in SHAPES {
        let (leading, trailing) = dims.split_at(dims.len() - count);
        for dtype in FLOATS {
            for (case, centered) in [(0, true), (1, true), (2, true), (3, true), (0, false), (1, false), (3, false)] {
                let x = Tensor::random(&mut rng, dtype, dims);
                let (w, b) =
                    (Tensor::random(&mut rng, dtype, trailing), Tensor::random(&mut rng, DType::F32, trailing));
                let (w_view, b_view) = (w.view(), b.view());
                let norm = Norm {
                    dims: count,
                    eps: EPS,
                    weight: (case & 1 != 0).then_some(&w_view),
                    bias: (case & 2 != 0).then_some(&b_view),
                };
                let y = Tensor::random(&mut rng, dtype, dims);
                let mean = Tensor::random(&mut rng, acc(dtype), leading);
                let rstd = Tensor::random(&mut rng, acc(dtype), leading);
                let len = trailing.iter().product();
                let (h, means, rstds) = normal(&x.values(), len, centered);
                if centered {
                    layer_norm(&x.view(), &norm, &y.view(), &mean.view(), &rstd.view()).unwrap();
                    mean.expect(&means, tolerance(acc(dtype)), "mean");
                } else {
                    rms_norm(&x.view(), &norm, &y.view(), &rstd.view()).unwrap();
                }
                let weight = if case & 1 != 0 { w.values() } else { vec![1.0; len] };
                let bias = if case & 2 != 0 { b.values() } else { vec![0.0; len] };
                y.expect(&affine(&h, &weight, &bias), 4.0 * tolerance(dtype), "y");
                rstd.expect(&rstds, 4.0 * tolerance(acc(dtype)), "rstd");
            }
        }
    }
}

#[test]
fn gradients_match_differences() {
    let mut rng = Random::new(2);
    for (dims, count) in SHAPES {
        let (leading, trailing) = dims.split_at(dims.len() - count);
        let len: usize = trailing.iter().product();
        for centered in [true, false] {
            let d = DType::F64;
            let x = Tensor::random(&mut rng, d, dims);
            let dy = Tensor::random(&mut rng, d, dims);
            let (w, b) = (Tensor::random(&mut rng, d, trailing), Tensor::random(&mut rng, d, trailing));
            let (mean, rstd) = (Tensor::random(&mut rng, d, leading), Tensor::random(&mut rng, d, leading));
            let y = Tensor::random(&mut rng, d, dims);
            let (w_view, b_view) = (w.view(), b.view());
            let norm = Norm { dims: count, eps: EPS, weight: Some(&w_view), bias: Some(&b_view) };
            let run = |dtype: DType, rng: &mut Random| {
                let of = |t: &Tensor, dtype| Tensor::of(dtype, &t.dims, &t.values());
                let (dx, dw, db) = (
                    Tensor::random(rng, dtype, dims),
                    Tensor::random(rng, dtype, trailing),
                    Tensor::random(rng, dtype, trailing),
                );
                let (x, dy) = (of(&x, dtype), of(&dy, dtype));
                let (mean, rstd) = (of(&mean, acc(dtype)), of(&rstd, acc(dtype)));
                let (dx_view, dw_view, db_view) = (dx.view(), dw.view(), db.view());
                let grads = NormGrads { dx: Some(&dx_view), dweight: Some(&dw_view), dbias: Some(&db_view) };
                if centered {
                    layer_norm_grad(&dy.view(), &x.view(), &mean.view(), &rstd.view(), &norm, &grads).unwrap();
                } else {
                    rms_norm_grad(&dy.view(), &x.view(), &rstd.view(), &norm, &grads).unwrap();
                }
                (dx, dw, db)
            };
            if centered {
                layer_norm(&x.view(), &norm, &y.view(), &mean.view(), &rstd.view()).unwrap();
            } else {
                rms_norm(&x.view(), &norm, &y.view(), &rstd.view()).unwrap();
            }
            let value =
                |x: &[f64], w: &[f64], b: &[f64]| inner(&dy.values(), &affine(&normal(x, len, centered).0, w, b));
            let (xs, ws, bs) = (x.values(), w.values(), b.values());
            let expected = [
                differences(&xs, |x| value(x, &ws, &bs)),
                differences(&ws, |w| value(&xs, w, &bs)),
                differences(&bs, |b| value(&xs, &ws, b)),
            ];
            for dtype in FLOATS {
                let (dx, dw, db) = run(dtype, &mut rng);
                let bound = tolerance(dtype).max(1e-8) * 40.0;
                dx.expect(&expected[0], bound, "dx");
                dw.expect(&expected[1], bound, "dweight");
                db.expect(&expected[2], bound, "dbias");
            }
        }
    }
}

#[test]
fn wanted_gradients_come_alone() {
    let mut rng = Random::new(3);
    let x = Tensor::random(&mut rng, DType::F32, &[50, 20]);
    let (mean, rstd) = (Tensor::of(DType::F32, &[50], &[0.0; 50]), Tensor::of(DType::F32, &[50], &[1.0; 50]));
    let norm = Norm { dims: 1, eps: EPS, weight: None, bias: None };
    let (dw, db) = (Tensor::random(&mut rng, DType::F32, &[20]), Tensor::random(&mut rng, DType::F32, &[20]));
    let (dw_view, db_view) = (dw.view(), db.view());
    let run =
        |grads: NormGrads| layer_norm_grad(&x.view(), &x.view(), &mean.view(), &rstd.view(), &norm, &grads).unwrap();
    run(NormGrads { dweight: Some(&dw_view), ..Default::default() });
    run(NormGrads { dbias: Some(&db_view), ..Default::default() });
    let column = |j: usize, f: fn(f64) -> f64| (0..50).map(|i| f(x.get(&[i, j]))).sum::<f64>();
    dw.expect(&(0..20).map(|j| column(j, |x| x * x)).collect::<Vec<_>>(), 1e-5, "dweight");
    db.expect(&(0..20).map(|j| column(j, |x| x)).collect::<Vec<_>>(), 1e-5, "dbias");
}

#[test]
fn bits_do_not_depend_on_threads() {
    same_bits_on_any_threads(|| {
        let mut rng = Random::new(4);
        let (d, dims) = (DType::F32, [3000, 100]);
        let mut tensor = |dims: &[usize]| Tensor::contiguous(&mut rng, d, dims);
        let (x, dy, y, dx) = (tensor(&dims), tensor(&dims), tensor(&dims), tensor(&dims));
        let (mean, rstd, dw, db) = (tensor(&[3000]), tensor(&[3000]), tensor(&[100]), tensor(&[100]));
        let norm = Norm { dims: 1, eps: EPS, weight: None, bias: None };
        layer_norm(&x.view(), &norm, &y.view(), &mean.view(), &rstd.view()).unwrap();
        let (dx_view, dw_view, db_view) = (dx.view(), dw.view(), db.view());
        let grads = NormGrads { dx: Some(&dx_view), dweight: Some(&dw_view), dbias: Some(&db_view) };
        layer_norm_grad(&dy.view(), &x.view(), &mean.view(), &rstd.view(), &norm, &grads).unwrap();
        [&y, &rstd, &dx, &dw, &db].into_iter().flat_map(Tensor::bytes).collect()
    });
}

#[test]
fn refusals_say_why() {
    let mut rng = Random::new(5);
    let x = Tensor::contiguous(&mut rng, DType::BF16, &[2, 3]);
    let (half, wide) =
        (Tensor::contiguous(&mut rng, DType::BF16, &[2]), Tensor::contiguous(&mut rng, DType::F32, &[2]));
    let run = |dims, statistic: &Tensor, weight: Option<&View>| {
        let norm = Norm { dims, eps: EPS, weight, bias: None };
        rms_norm(&x.view(), &norm, &x.view(), &statistic.view()).unwrap_err().0
    };
    assert_eq!(run(1, &half, None), "rstd is bf16, expected f32");
    assert_eq!(run(3, &wide, None), "cannot normalise over the last 3 dims of [2, 3]; between 1 and 2 are possible");
    assert_eq!(run(1, &wide, Some(&wide.view())), "the weight has dims [2], expected [3]");
}
