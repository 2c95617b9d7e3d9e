use crate::owned::{Owned, read};
use oflow_kernels::DType;
use oflow_kernels::cpu::count::*;

#[test]
fn places_by_hand_in_all_dtypes() {
    for dtype in oflow_kernels::cpu::lane::Native::ALL.map(|n| n.dtype()).into_iter().filter(|d| *d != DType::Bool) {
        let sorted = Owned::from_f64(dtype, &[5], &[1., 3., 3., 5., 9.]);
        let x = Owned::from_f64(dtype, &[2, 3], &[0., 1., 3., 4., 9., 10.]);
        let out = Owned::zeros(DType::I64, &[2, 3]);
        searchsorted(&sorted.view(), &x.view(), &out.view(), false).unwrap();
        assert_eq!(read(&out.view()), [0., 0., 1., 3., 4., 5.], "{dtype}");
        let out = Owned::zeros(DType::I32, &[2, 3]);
        searchsorted(&sorted.view(), &x.view(), &out.view(), true).unwrap();
        assert_eq!(read(&out.view()), [0., 1., 3., 3., 5., 5.], "{dtype}");
    }
    let rows = Owned::from_f64(DType::F32, &[2, 3], &[1., 2., f64::NAN, 0., 0., 7.]);
    let x = Owned::from_f64(DType::F32, &[2, 2], &[f64::NAN, 5., -0., 8.]);
    let out = Owned::zeros(DType::I64, &[2, 2]);
    searchsorted(&rows.view(), &x.view(), &out.view(), false).unwrap();
    assert_eq!(read(&out.view()), [2., 2., 0., 3.]);
    searchsorted(&rows.view(), &x.view(), &out.view(), true).unwrap();
    assert_eq!(read(&out.view()), [3., 2., 2., 3.]);
    let none = Owned::zeros(DType::F32, &[0]);
    searchsorted(&none.view(), &x.view(), &out.view(), true).unwrap();
    assert_eq!(read(&out.view()), [0.; 4]);
    assert!(searchsorted(&rows.view(), &none.view(), &out.view(), true).is_err());
}

#[test]
fn indices_are_counted_and_refused() {
    let ids = Owned::from_f64(DType::I32, &[2, 3], &[2., 0., 2., 4., 2., 1.]);
    let out = Owned::zeros(DType::I64, &[2]);
    count_index(&ids.view(), &out.view(), 1, 5).unwrap();
    assert_eq!(read(&out.view()), [1., 3.]);
    assert!(count_index(&ids.view(), &out.view(), 0, 4).is_err());
}

#[test]
fn the_last_interval_has_its_end() {
    let x = Owned::from_f64(DType::F64, &[7], &[0., 1., 0.25, f64::NAN, 1.01, -0.01, 0.5]);
    let out = Owned::zeros(DType::F64, &[4]);
    histogram(&x.view(), &out.view(), 0., 1.).unwrap();
    assert_eq!(read(&out.view()), [1., 1., 1., 1.]);
}
