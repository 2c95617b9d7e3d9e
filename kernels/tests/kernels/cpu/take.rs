use crate::owned::{Owned, read};
use oflow_kernels::DType;
use oflow_kernels::cpu::take::*;

#[test]
fn rows_of_a_middle_dim_and_of_a_part_of_it() {
    let x = Owned::from_f64(DType::F32, &[2, 3, 2], &(0..12).map(f64::from).collect::<Vec<_>>());
    let ids = Owned::from_f64(DType::I64, &[2], &[2.0, 0.0]);
    let out = Owned::zeros(DType::F32, &[2, 2, 2]);
    index_select(&x.view(), &ids.view(), &out.view(), 1, 0).unwrap();
    assert_eq!(read(&out.view()), [4., 5., 0., 1., 10., 11., 6., 7.]);
    // The rows from 1 on are here: index 2 is the second of them, index 0 is elsewhere.
    index_select(&x.view(), &ids.view(), &out.view(), 1, 1).unwrap();
    assert_eq!(read(&out.view()), [2., 3., 0., 0., 8., 9., 0., 0.]);
    assert!(index_select(&x.view(), &ids.view(), &out.view(), 0, 0).is_err());
}

#[test]
fn indices_from_the_end() {
    let ids = Owned::from_f64(DType::I32, &[2, 2], &[-1.0, 0.0, 3.0, -4.0]);
    let out = Owned::zeros(DType::I64, &[2, 2]);
    wrap_index(&ids.view(), &out.view(), 4).unwrap();
    assert_eq!(read(&out.view()), [3., 0., 3., 0.]);
    let e = wrap_index(&ids.view(), &out.view(), 3).unwrap_err().to_string();
    assert!(e.contains("index 3 at position 2 is outside -3..3"), "{e}");
}

#[test]
fn the_last_position_counts() {
    let ids = Owned::from_f64(DType::I64, &[4], &[2.0, 0.0, 2.0, 5.0]);
    let out = Owned::zeros(DType::I64, &[3]);
    last_index(&ids.view(), &out.view(), 0, 10).unwrap();
    assert_eq!(read(&out.view()), [11., -1., 12.]);
}
