use crate::owned::{Owned, read};
use crate::threads::with_threads;
use oflow_kernels::DType;
use oflow_kernels::cpu::scan::*;

#[test]
fn by_hand() {
    let nan = f64::NAN;
    let x = Owned::from_f64(DType::F32, &[2, 3], &[2., 0., 3., -1., nan, 5.]);
    let out = Owned::zeros(DType::F32, &[2, 3]);
    cumprod(&x.view(), &out.view(), 1).unwrap();
    assert_eq!(read(&out.view())[..4], [2., 0., 0., -1.]);
    let y = Owned::from_f64(DType::I32, &[2, 2], &[3., 4., 5., 6.]);
    let wide = Owned::zeros(DType::I64, &[2, 2]);
    cumprod(&y.view(), &wide.view(), 0).unwrap();
    assert_eq!(read(&wide.view()), [3., 4., 15., 24.]);
    let line = Owned::from_f64(DType::F64, &[6], &[1., 3., 3., 2., nan, 9.]);
    let (values, at) = (Owned::zeros(DType::F64, &[6]), Owned::zeros(DType::I64, &[6]));
    cumulative_extreme(&line.view(), &values.view(), &at.view(), 0, false).unwrap();
    assert_eq!(read(&at.view()), [0., 1., 2., 2., 4., 4.]);
    assert_eq!(read(&values.view())[..4], [1., 3., 3., 3.]);
    cumulative_extreme(&line.view(), &values.view(), &at.view(), 0, true).unwrap();
    assert_eq!(read(&at.view()), [0., 0., 0., 0., 4., 4.]);
    assert!(cumulative_extreme(&line.view(), &values.view(), &values.view(), 0, true).is_err());
}

#[test]
fn recurrences_from_both_ends() {
    let inf = f64::INFINITY;
    let a = Owned::from_f64(DType::F64, &[3, 1], &[inf, 2., 3.]);
    let b = Owned::from_f64(DType::F64, &[3, 1], &[1., 1., 1.]);
    let out = Owned::zeros(DType::F64, &[3, 1]);
    linear_scan(&a.view(), &b.view(), &out.view(), 0, false).unwrap();
    assert_eq!(read(&out.view()), [1., 3., 10.]);
    linear_scan(&a.view(), &b.view(), &out.view(), 0, true).unwrap();
    assert_eq!(read(&out.view()), [inf, 3., 1.]);
}

/// Element by element along each dim, in both directions, with more lines than are worked on side by side.
#[test]
fn along_each_dim_as_defined() {
    let dims = [7, 5, 6];
    let n: usize = dims.iter().product();
    let a: Vec<f64> = (0..n).map(|i| ((i * 37) % 13) as f64 - 6.0).collect();
    let b: Vec<f64> = (0..n).map(|i| ((i * 11) % 7) as f64 - 3.0).collect();
    let (ta, tb) = (Owned::from_f64(DType::F64, &dims, &a), Owned::from_f64(DType::F64, &dims, &b));
    for dim in 0..3 {
        let step: usize = dims[dim + 1..].iter().product();
        let place = |i: usize| i / step % dims[dim];
        let (out, at) = (Owned::zeros(DType::F64, &dims), Owned::zeros(DType::I64, &dims));
        for reverse in [false, true] {
            linear_scan(&ta.view(), &tb.view(), &out.view(), dim, reverse).unwrap();
            let have = read(&out.view());
            for i in 0..n {
                let edge = place(i) == if reverse { dims[dim] - 1 } else { 0 };
                let before = if reverse { i.wrapping_add(step) } else { i.wrapping_sub(step) };
                let want = if edge { b[i] } else { b[i] + a[i] * have[before] };
                assert_eq!(have[i], want, "{dim} {reverse} {i}");
            }
        }
        cumprod(&tb.view(), &out.view(), dim).unwrap();
        let have = read(&out.view());
        for i in 0..n {
            assert_eq!(have[i], if place(i) == 0 { b[i] } else { b[i] * have[i - step] }, "{dim} {i}");
        }
        for least in [false, true] {
            cumulative_extreme(&ta.view(), &out.view(), &at.view(), dim, least).unwrap();
            let (have, places) = (read(&out.view()), read(&at.view()));
            for i in 0..n {
                let line = (0..=place(i)).map(|k| (k, a[i - (place(i) - k) * step]));
                let better = |new: f64, best: f64| if least { new <= best } else { new >= best };
                let (k, want) = line.reduce(|best, new| if better(new.1, best.1) { new } else { best }).unwrap();
                assert_eq!((have[i], places[i]), (want, k as f64), "{dim} {least} {i}");
            }
        }
    }
}

#[test]
fn sums_of_exponentials_do_not_overflow() {
    let inf = f64::INFINITY;
    let x = Owned::from_f64(DType::F64, &[7], &[-inf, -1e4, 1e4, 1e4, -inf, inf, f64::NAN]);
    let out = Owned::zeros(DType::F64, &[7]);
    logcumsumexp(&x.view(), &out.view(), 0).unwrap();
    let y = read(&out.view());
    assert_eq!(y[..3], [-inf, -1e4, 1e4]);
    assert!((y[3] - 1e4 - 2f64.ln()).abs() < 1e-9 && y[4] == y[3] && y[5] == inf && y[6].is_nan(), "{y:?}");
}

#[test]
fn threads_do_not_matter_in_any_direction() {
    let values: Vec<f64> = (0..70 * 40 * 30).map(|i| 0.7 + ((i * 37) % 61) as f64 / 90.0).collect();
    let x = Owned::from_f64(DType::F32, &[70, 40, 30], &values);
    for dim in 0..3 {
        let run = |threads| {
            with_threads(threads, || {
                let out = Owned::zeros(DType::F32, &[70, 40, 30]);
                cumprod(&x.view(), &out.view(), dim).unwrap();
                out.bytes()
            })
        };
        assert_eq!(run(1), run(3));
        let out = Owned::zeros(DType::F32, &[70, 40, 30]);
        logcumsumexp(&x.view(), &out.view(), dim).unwrap();
        let (have, step) = (read(&out.view()), [1200, 30, 1][dim]);
        let want = (have[5 * step - step].exp() + f64::from(values[5 * step] as f32)).ln();
        assert!(dim != 0 || want.is_finite());
    }
}
