use crate::owned::{Owned, read};
use oflow_kernels::cpu::copy::fill;
use oflow_kernels::cpu::index::*;
use oflow_kernels::{DType, Scalar, View};

#[test]
fn ranges() {
    let out = Owned::zeros(DType::I32, &[4]);
    arange(&out.view(), Scalar::Int(3), Scalar::Int(-2), 0).unwrap();
    assert_eq!(read(&out.view()), [3., 1., -1., -3.]);
    for d in [DType::F16, DType::F32, DType::F64] {
        let out = Owned::zeros(d, &[3]);
        arange(&out.view(), Scalar::Float(0.5), Scalar::Int(1), 0).unwrap();
        assert_eq!(read(&out.view()), [0.5, 1.5, 2.5]);
        arange(&out.view(), Scalar::Float(0.5), Scalar::Int(1), -2).unwrap();
        assert_eq!(read(&out.view()), [-1.5, -0.5, 0.5]);
    }
    arange(&Owned::zeros(DType::I64, &[0]).view(), Scalar::Int(0), Scalar::Int(1), 0).unwrap();
    assert!(arange(&Owned::zeros(DType::I64, &[2, 2]).view(), Scalar::Int(0), Scalar::Int(1), 0).is_err());
}

#[test]
fn triangles_of_wholes_and_shards() {
    let dims = [2, 5, 7];
    let x = Owned::from_f64(DType::F32, &dims, &(1..=70).map(f64::from).collect::<Vec<_>>());
    for diagonal in [i64::MIN, -9, -2, 0, 1, 3, 9, i64::MAX] {
        let keep = |upper: bool, row: usize, col: usize| {
            let k = col as i64 - row as i64;
            if upper { k >= diagonal } else { k <= diagonal }
        };
        for upper in [false, true] {
            let f = if upper { triu } else { tril };
            let out = Owned::zeros(DType::F32, &dims);
            f(&x.view(), &out.view(), diagonal, 0, 0).unwrap();
            let want: Vec<f64> =
                (0..70).map(|i| if keep(upper, i / 7 % 5, i % 7) { i as f64 + 1.0 } else { 0.0 }).collect();
            assert_eq!(read(&out.view()), want, "{diagonal} {upper}");
            // A shard with offsets is that part of the whole.
            let part = |v: View| v.sub_box(&[0, 2, 3], &[2, 3, 4]).unwrap();
            let shard = Owned::zeros(DType::F32, &[2, 3, 4]);
            f(&part(x.view()), &shard.view(), diagonal, 2, 3).unwrap();
            assert_eq!(read(&shard.view()), read(&part(out.view())), "{diagonal} {upper}");
            // In place, transposed.
            let copy = Owned::from_f64(DType::F32, &[7, 2, 5], &(0..70).map(f64::from).collect::<Vec<_>>());
            let t = copy.permuted(&[1, 2, 0]);
            let before = read(&t);
            f(&t, &t, diagonal, 0, 0).unwrap();
            let want: Vec<f64> = (0..70).map(|i| if keep(upper, i / 7 % 5, i % 7) { before[i] } else { 0.0 }).collect();
            assert_eq!(read(&t), want);
        }
    }
}

#[test]
fn one_hot_rows() {
    let ids = Owned::from_f64(DType::I64, &[3], &[1., 0., 7.]);
    for d in oflow_kernels::cpu::lane::Native::ALL.map(|n| n.dtype()) {
        let out = Owned::zeros(d, &[3, 2]);
        one_hot(&ids.view(), &out.view(), 0).unwrap();
        assert_eq!(read(&out.view()), [0., 1., 1., 0., 0., 0.], "{d}");
        one_hot(&ids.view(), &out.view(), 6).unwrap();
        assert_eq!(read(&out.view()), [0., 0., 0., 0., 0., 1.], "{d}");
    }
}

#[test]
fn range_errors_name_the_index() {
    let ids = Owned::from_f64(DType::I64, &[2, 2], &[1., 0., 7., -1.]);
    check_indices(&ids.view(), -1, 8).unwrap();
    assert_eq!(check_indices(&ids.view(), 0, 5).unwrap_err().0, "index 7 at position 2 is outside 0..5");
    let e = check_indices(&Owned::zeros(DType::F32, &[1]).view(), 0, 5).unwrap_err();
    assert_eq!(e.0, "indices are i64 or i32, not f32");
    // Extremes do not overflow.
    let far = Owned::zeros(DType::I64, &[1]);
    fill(&far.view(), Scalar::Int(i64::MIN)).unwrap();
    assert!(check_indices(&far.view(), 0, i64::MAX).is_err());
}
