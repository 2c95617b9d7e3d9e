use crate::owned::{Owned, read};
use crate::samples::statistic;
use crate::threads::with_threads;
use oflow_kernels::DType;
use oflow_kernels::cpu::grouped_norm::*;

fn tensor(dtype: DType, dims: &[usize], start: usize) -> Owned {
    let values: Vec<f64> = (0..dims.iter().product()).map(|i| ((i * 37 + start) % 23) as f64 / 4.0 - 2.0).collect();
    Owned::from_f64(dtype, dims, &values)
}

/// By the definition, for long and short channels, on one thread and more.
#[test]
fn rows_and_channels() {
    for (dtype, dims, near) in [
        (DType::F64, [4, 3, 2, 5], 1e-9),
        (DType::F64, [2, 1, 3, 40], 1e-9),
        (DType::F32, [5, 2, 3, 1], 1e-4),
        (DType::F32, [2, 3, 1, 40], 1e-4),
        (DType::BF16, [2, 3, 2, 30], 0.05),
    ] {
        let [n, groups, channels, inner] = dims;
        let (of_channels, of_rows) = ([groups, channels], [n, groups]);
        let statistic = statistic(dtype);
        let (x, dy) = (tensor(dtype, &dims, 1), tensor(dtype, &dims, 13));
        let (w, b) = (tensor(dtype, &of_channels, 5), tensor(dtype, &of_channels, 9));
        let run = |threads| {
            with_threads(threads, || {
                let like = |dtype, dims: &[usize]| Owned::zeros(dtype, dims);
                let (y, mean, rstd) = (like(dtype, &dims), like(statistic, &of_rows), like(statistic, &of_rows));
                let (w, b) = (w.view(), b.view());
                grouped_norm(&x.view(), Some(&w), Some(&b), 0.01, &y.view(), &mean.view(), &rstd.view()).unwrap();
                let (dx, dw, db) = (like(dtype, &dims), like(dtype, &of_channels), like(dtype, &of_channels));
                let grads = [&dx.view(), &dw.view(), &db.view()];
                grouped_norm_grad(&dy.view(), &x.view(), [&mean.view(), &rstd.view()], Some(&w), grads).unwrap();
                [&y, &mean, &rstd, &dx, &dw, &db].map(|t| read(&t.view()))
            })
        };
        let got = run(1);
        assert_eq!(got, run(3));
        let [y, mean, rstd, dx, dw, db] = got;
        let (x, dy, w, b) = (read(&x.view()), read(&dy.view()), read(&w.view()), read(&b.view()));
        let close = |got: f64, want: f64, what: &str| {
            assert!((got - want).abs() <= near * (1.0 + want.abs()), "{what} of {dims:?}: {got}, not {want}");
        };
        let (mut dw_sum, mut db_sum) = (vec![0.0; w.len()], vec![0.0; w.len()]);
        let size = channels * inner;
        for row in 0..n * groups {
            let all = row * size..(row + 1) * size;
            let m = x[all.clone()].iter().sum::<f64>() / size as f64;
            let v = x[all.clone()].iter().map(|x| (x - m).powi(2)).sum::<f64>() / size as f64;
            let r = 1.0 / (v + 0.01).sqrt();
            close(mean[row], m, "mean");
            close(rstd[row], r, "rstd");
            let channel = |i: usize| row % groups * channels + (i - row * size) / inner;
            let h = |i: usize| (x[i] - m) * r;
            let g = |i: usize| dy[i] * w[channel(i)];
            let (sum, product) = all.clone().fold((0.0, 0.0), |(s, p), i| (s + g(i), p + g(i) * h(i)));
            for i in all {
                close(y[i], h(i) * w[channel(i)] + b[channel(i)], "y");
                close(dx[i], r * (g(i) - sum / size as f64 - h(i) * product / size as f64), "dx");
                dw_sum[channel(i)] += dy[i] * h(i);
                db_sum[channel(i)] += dy[i];
            }
        }
        for c in 0..w.len() {
            close(dw[c], dw_sum[c], "dweight");
            close(db[c], db_sum[c], "dbias");
        }
    }
}

#[test]
fn nothing_to_normalise() {
    for dims in [[0, 3, 2, 4], [2, 0, 2, 4], [2, 3, 0, 4], [2, 3, 2, 0]] {
        let like = |dims: &[usize]| Owned::from_f64(DType::F32, dims, &vec![1.0; dims.iter().product()]);
        let (x, y, mean, rstd) = (like(&dims), like(&dims), like(&dims[..2]), like(&dims[..2]));
        grouped_norm(&x.view(), None, None, 1e-5, &y.view(), &mean.view(), &rstd.view()).unwrap();
        let (dw, db) = (like(&dims[1..3]), like(&dims[1..3]));
        let grads = [&y.view(), &dw.view(), &db.view()];
        grouped_norm_grad(&x.view(), &x.view(), [&mean.view(), &rstd.view()], None, grads).unwrap();
        assert!(read(&dw.view()).iter().chain(&read(&db.view())).all(|d| *d == 0.0), "{dims:?}");
    }
}
