use crate::owned::{Owned, read};
use crate::samples::statistic;
use oflow_kernels::DType;
use oflow_kernels::cpu::batch_norm::*;

fn tensor(dtype: DType, dims: &[usize], start: usize) -> Owned {
    let values: Vec<f64> = (0..dims.iter().product()).map(|i| ((i * 37 + start) % 23) as f64 / 4.0 - 2.0).collect();
    Owned::from_f64(dtype, dims, &values)
}

/// By the definition, and its gradients by differences of it.
#[test]
fn long_and_short_channels() {
    for (dtype, dims, near) in [
        (DType::F64, &[4, 3, 5][..], 1e-9),
        (DType::F64, &[3, 2, 4, 9], 1e-9),
        (DType::F32, &[5, 3], 1e-4),
        (DType::F32, &[2, 3, 40], 1e-4),
        (DType::BF16, &[4, 3, 30], 0.05),
    ] {
        let (c, inner) = (dims[1], dims[2..].iter().product::<usize>());
        let statistic = statistic(dtype);
        let (x, w, b, dy) =
            (tensor(dtype, dims, 1), tensor(dtype, &[c], 5), tensor(dtype, &[c], 9), tensor(dtype, dims, 13));
        let (y, mean, var) = (Owned::zeros(dtype, dims), Owned::zeros(statistic, &[c]), Owned::zeros(statistic, &[c]));
        let eps = 0.01;
        batch_norm(&x.view(), Some(&w.view()), Some(&b.view()), eps, &y.view(), &mean.view(), &var.view()).unwrap();
        let (dx, dw, db) = (Owned::zeros(dtype, dims), Owned::zeros(dtype, &[c]), Owned::zeros(dtype, &[c]));
        let grads = [&dx.view(), &dw.view(), &db.view()];
        batch_norm_grad(&dy.view(), &x.view(), [&mean.view(), &var.view()], Some(&w.view()), eps, grads).unwrap();
        let (x, w, b, dy) = (read(&x.view()), read(&w.view()), read(&b.view()), read(&dy.view()));
        let close = |got: f64, want: f64, what: &str| {
            assert!((got - want).abs() <= near * (1.0 + want.abs()), "{what} of {dtype} {dims:?}: {got}, not {want}");
        };
        let [y, mean, var, dx, dw, db] = [&y, &mean, &var, &dx, &dw, &db].map(|t| read(&t.view()));
        for channel in 0..c {
            let all: Vec<usize> = (0..x.len()).filter(|i| i / inner % c == channel).collect();
            let n = all.len() as f64;
            let m = all.iter().map(|i| x[*i]).sum::<f64>() / n;
            let v = all.iter().map(|i| (x[*i] - m).powi(2)).sum::<f64>() / n;
            close(mean[channel], m, "mean");
            close(var[channel], v, "variance");
            let r = 1.0 / (v + eps).sqrt();
            let h = |i: usize| (x[i] - m) * r;
            let (sum, product) = all.iter().fold((0.0, 0.0), |(s, p), i| (s + dy[*i], p + dy[*i] * h(*i)));
            close(db[channel], sum, "dbias");
            close(dw[channel], product, "dweight");
            for i in all {
                close(y[i], h(i) * w[channel] + b[channel], "y");
                close(dx[i], r * w[channel] * (dy[i] - sum / n - h(i) * product / n), "dx");
            }
        }
    }
}

/// Numbers near a large mean, one channel beside the other and one after the other: both as exact as f32 has numbers near the mean, and
/// the same bits on any number of threads.
#[test]
fn a_large_mean_costs_no_digits() {
    for (rows, mean) in [(4096, 100.0), (65536, 1e4)] {
        let at = |r: usize, c: usize| ((r * 37 + c * 11) % 64) as f64 / 16.0 - 2.0 + mean;
        let short: Vec<f64> = (0..rows * 3).map(|i| at(i / 3, i % 3)).collect();
        let long: Vec<f64> = (0..rows * 3).map(|i| at(i % rows, i / rows)).collect();
        let run = |values: &[f64], dims: &[usize]| {
            let (x, y) = (Owned::from_f64(DType::F32, dims, values), Owned::zeros(DType::F32, dims));
            let [m, v] = [0; 2].map(|_| Owned::zeros(DType::F32, &[3]));
            batch_norm(&x.view(), None, None, 1e-5, &y.view(), &m.view(), &v.view()).unwrap();
            let [dx, dw, db] = [&[rows, 3][..], &[3], &[3]].map(|d| Owned::zeros(DType::F32, d));
            if dims.len() == 2 {
                let grads = [&dx.view(), &dw.view(), &db.view()];
                batch_norm_grad(&x.view(), &x.view(), [&m.view(), &v.view()], None, 1e-5, grads).unwrap();
            }
            [m, v, dw, db].map(|t| read(&t.view()))
        };
        let found = run(&short, &[rows, 3]);
        assert_eq!(crate::threads::with_threads(2, || run(&short, &[rows, 3])), found);
        let [_, after, ..] = [&found, &run(&long, &[1, 3, rows])].map(|f| f[1].clone());
        for c in 0..3 {
            let m = (0..rows).map(|r| at(r, c)).sum::<f64>() / rows as f64;
            let v = (0..rows).map(|r| (at(r, c) - m).powi(2)).sum::<f64>() / rows as f64;
            let sum = (0..rows).map(|r| at(r, c)).sum::<f64>();
            let near = |have: f64, want: f64, digits: f64| (have - want).abs() <= digits * want.abs();
            assert!(near(found[0][c], m, 1.2e-7), "{rows} mean {}, not {m}", found[0][c]);
            assert!(near(found[1][c], v, 1e-6) && near(after[c], v, 1e-4), "{rows} variance {}, not {v}", found[1][c]);
            assert!(near(found[3][c], sum, 1.2e-7), "{rows} dbias {}, not {sum}", found[3][c]);
        }
    }
}

#[test]
fn nothing_to_normalise() {
    for dims in [&[0, 3][..], &[4, 0], &[4, 3, 0], &[0, 3, 20], &[4, 0, 20]] {
        let (x, y) = (Owned::zeros(DType::F32, dims), Owned::zeros(DType::F32, dims));
        let [mean, var, dw, db] = [0; 4].map(|_| Owned::zeros(DType::F32, &[dims[1]]));
        batch_norm(&x.view(), None, None, 0.1, &y.view(), &mean.view(), &var.view()).unwrap();
        assert!(read(&mean.view()).iter().chain(&read(&var.view())).all(|v| v.is_nan()), "{dims:?}");
        let grads = [&y.view(), &dw.view(), &db.view()];
        batch_norm_grad(&x.view(), &x.view(), [&mean.view(), &var.view()], None, 0.1, grads).unwrap();
        assert!(read(&db.view()).iter().all(|v| *v == 0.0), "{dims:?}");
    }
    let t = |dims: &[usize]| Owned::zeros(DType::F32, dims);
    let (x, c, other) = (t(&[4, 3]), t(&[3]), t(&[2]));
    assert!(batch_norm(&x.view(), Some(&other.view()), None, 0.1, &x.view(), &c.view(), &c.view()).is_err());
    assert!(batch_norm(&c.view(), None, None, 0.1, &c.view(), &c.view(), &c.view()).is_err());
}
