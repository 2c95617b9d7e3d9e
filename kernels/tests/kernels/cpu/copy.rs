use crate::owned::{Owned, read};
use crate::threads::with_threads;
use oflow_kernels::cpu::copy::*;
use oflow_kernels::{DType, DTypeKind, F8E4M3FN, F8E5M2, Scalar};

#[test]
fn every_pair_of_dtypes() {
    for s in DType::BUILTIN {
        for d in DType::BUILTIN {
            let values = [0.0, 1.0, 2.0, 100.0, -3.0];
            let a = Owned::from_f64(s, &[5], &values);
            let b = Owned::zeros(d, &[5]);
            copy(&a.view(), &b.view()).unwrap();
            let via: Vec<f64> = read(&a.view());
            for (x, y) in via.iter().zip(read(&b.view())) {
                let want = match (d, d.integers()) {
                    (DType::Bool, _) => (*x != 0.0) as u8 as f64,
                    // An integer wraps, a float saturates.
                    (_, Some((low, high))) if d.size() < 8 => {
                        let (low, high) = (low as f64, high as f64);
                        if matches!(s.kind(), DTypeKind::Int) {
                            (x - low).rem_euclid(high - low + 1.0) + low
                        } else {
                            x.clamp(low, high)
                        }
                    }
                    (DType::F16, _) => half::f16::from_f64(*x).to_f64(),
                    (DType::BF16, _) => half::bf16::from_f64(*x).to_f64(),
                    (DType::F32 | DType::C64, _) => f64::from(*x as f32),
                    (DType::F8E4M3FN, _) => f64::from(F8E4M3FN::from_f32(*x as f32).to_f32()),
                    (DType::F8E5M2, _) => f64::from(F8E5M2::from_f32(*x as f32).to_f32()),
                    _ => *x,
                };
                assert!(y == want || (y.is_nan() && want.is_nan()), "{s} -> {d}: {x} became {y}, not {want}");
            }
        }
    }
}

#[test]
fn permutations_and_steps_of_every_size() {
    for d in [DType::U8, DType::F16, DType::F32, DType::F64] {
        for dims in [[1usize, 7, 70], [3, 65, 40], [2, 33, 1], [0, 3, 4]] {
            let n: usize = dims.iter().product();
            let src = Owned::from_f64(d, &dims, &(0..n).map(|i| (i % 97) as f64).collect::<Vec<_>>());
            for order in [[0, 1, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [1, 0, 2], [2, 0, 1]] {
                let p = src.permuted(&order);
                let dst = Owned::zeros(d, p.dims());
                copy(&p, &dst.view()).unwrap();
                assert_eq!(read(&dst.view()), read(&p), "{d} {dims:?} {order:?}");
                // And back: a strided destination.
                let back = Owned::zeros(d, &dims);
                copy(&dst.view(), &back.permuted(&order)).unwrap();
                assert_eq!(read(&back.view()), read(&src.view()), "{d} {dims:?} {order:?}");
            }
        }
    }
}

#[test]
fn large_copies_on_two_threads() {
    let dims = [300, 401];
    let src = Owned::from_f64(DType::F32, &dims, &(0..300 * 401).map(|i| i as f64).collect::<Vec<_>>());
    with_threads(2, || {
        let dst = Owned::zeros(DType::F32, &[401, 300]);
        copy(&src.permuted(&[1, 0]), &dst.view()).unwrap();
        assert_eq!(read(&dst.view()), read(&src.permuted(&[1, 0])));
        let flat = Owned::zeros(DType::BF16, &dims);
        copy(&src.view(), &flat.view()).unwrap();
        let want: Vec<f64> = read(&src.view()).iter().map(|x| half::bf16::from_f64(*x).to_f64()).collect();
        assert_eq!(read(&flat.view()), want);
    });
}

#[test]
fn fill_writes_only_the_window() {
    for d in DType::BUILTIN {
        let whole = Owned::zeros(d, &[4, 6]);
        let window = whole.view().sub_box(&[1, 2], &[2, 3]).unwrap();
        fill(&window, Scalar::Int(1)).unwrap();
        let sum: f64 = read(&whole.view()).iter().sum();
        assert_eq!((sum, read(&window)), (6.0, vec![1.0; 6]), "{d}");
    }
    fill(&Owned::zeros(DType::F32, &[0, 3]).view(), Scalar::Float(2.5)).unwrap();
}

#[test]
fn dims_must_agree() {
    let e = copy(&Owned::zeros(DType::F32, &[2]).view(), &Owned::zeros(DType::F32, &[3]).view()).unwrap_err();
    assert_eq!(e.0, "copy from dims [2] to [3]");
}
