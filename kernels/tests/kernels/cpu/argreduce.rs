use crate::owned::{Owned, read};
use oflow_kernels::DType;
use oflow_kernels::cpu::argreduce::*;

fn arg(dtype: DType, values: &[f64], max: bool) -> f64 {
    let x = Owned::from_f64(dtype, &[values.len()], values);
    let out = Owned::zeros(DType::I64, &[1]);
    argreduce(&x.view(), &out.view(), 0, max, 10).unwrap();
    read(&out.view())[0] - 10.0
}

#[test]
fn ties_nan_and_infinities() {
    let nan = f64::NAN;
    for d in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        assert_eq!(arg(d, &[1., 3., 3., 2.], true), 1.0);
        assert_eq!(arg(d, &[1., nan, 3., nan], true), 1.0);
        assert_eq!(arg(d, &[1., nan, -3.], false), 1.0);
        assert_eq!(arg(d, &[f64::NEG_INFINITY; 3], true), 0.0);
    }
    assert_eq!(arg(DType::I64, &[-1., -5., -5.], false), 1.0);
    assert_eq!(arg(DType::Bool, &[0., 1., 1.], true), 1.0);
}

#[test]
fn match_index_finds_values_and_nan() {
    let nan = f64::NAN;
    let x = Owned::from_f64(DType::F32, &[2, 3], &[1., 5., 5., 0., nan, -0.]);
    let m = Owned::from_f64(DType::F32, &[2, 1], &[5., nan]);
    let out = Owned::zeros(DType::I64, &[2, 3]);
    match_index(&x.view(), &m.view(), &out.view(), 1, 4).unwrap();
    let none = i64::MAX as f64;
    assert_eq!(read(&out.view()), [none, 5., 6., none, 5., none]);
}

#[test]
fn along_each_dim_of_a_permuted_view() {
    let t = Owned::from_f64(DType::I32, &[2, 3], &[1., 9., 2., 8., 3., 4.]);
    for (order, dim, want) in [([0, 1], 1, vec![1., 0.]), ([0, 1], 0, vec![1., 0., 1.]), ([1, 0], 0, vec![1., 0.])] {
        let x = t.permuted(&order);
        let mut dims = x.dims().to_vec();
        dims[dim] = 1;
        let out = Owned::zeros(DType::I64, &dims);
        argreduce(&x, &out.view(), dim, true, 0).unwrap();
        assert_eq!(read(&out.view()), want);
    }
}

#[test]
fn empties() {
    let out = Owned::zeros(DType::I64, &[1]);
    assert!(argreduce(&Owned::zeros(DType::F32, &[0]).view(), &out.view(), 0, true, 0).is_err());
    let none = Owned::zeros(DType::I64, &[0, 1]);
    argreduce(&Owned::zeros(DType::F32, &[0, 3]).view(), &none.view(), 1, true, 0).unwrap();
}
