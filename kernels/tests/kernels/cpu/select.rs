use crate::owned::{Owned, read};
use oflow_kernels::DType;
use oflow_kernels::cpu::select::*;
use oflow_kernels::parallel::GRAIN;

#[test]
fn indices_of_what_is_not_zero_in_every_dtype_over_many_blocks() {
    let dims = [3, GRAIN / 2 + 5, 2];
    let n: usize = dims.iter().product();
    for dtype in oflow_kernels::cpu::lane::Native::ALL.map(|n| n.dtype()) {
        let all: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i % 7 == 3 || i % 1001 == 0))).collect();
        let x = Owned::from_f64(dtype, &dims, &all);
        let want: Vec<f64> = (0..n)
            .filter(|i| all[*i] != 0.0)
            .flat_map(|i| [i / (dims[1] * 2) + 10, i / 2 % dims[1], i % 2 + 1])
            .map(|i| i as f64)
            .collect();
        let out = Owned::zeros(DType::I64, &[want.len() / 3, 3]);
        nonzero(&x.view(), &out.view(), &[10, 0, 1]).unwrap();
        assert_eq!(read(&out.view()), want, "{dtype}");
        // A row too few or too many is refused before anything is written outside.
        for rows in [want.len() / 3 - 1, want.len() / 3 + 1] {
            let out = Owned::zeros(DType::I64, &[rows, 3]);
            assert!(nonzero(&x.view(), &out.view(), &[0, 0, 0]).is_err());
        }
    }
}

#[test]
fn what_a_mask_chooses_goes_out_and_back() {
    let n = 2 * GRAIN + 77;
    let all: Vec<f64> = (0..n).map(|i| (i % 97) as f64).collect();
    let chosen = |i: &usize| i % 3 == 1 || i / GRAIN == 1;
    let mask: Vec<f64> = (0..n).map(|i| f64::from(u8::from(chosen(&i)))).collect();
    let mask = Owned::from_f64(DType::Bool, &[n], &mask);
    for dtype in oflow_kernels::cpu::lane::Native::ALL.map(|n| n.dtype()).into_iter().filter(|d| *d != DType::Bool) {
        let x = Owned::from_f64(dtype, &[n], &all);
        let want: Vec<f64> = (0..n).filter(chosen).map(|i| all[i]).collect();
        let out = Owned::zeros(dtype, &[want.len()]);
        masked_select(&x.view(), &mask.view(), &out.view()).unwrap();
        assert_eq!(read(&out.view()), want, "{dtype}");
        for (first, len) in [(0, n), (5, GRAIN), (GRAIN + 1, n - GRAIN - 1), (n, 0)] {
            let back = Owned::from_f64(dtype, &[len], &vec![9.0; len]);
            masked_spread(&out.view(), &mask.view(), &back.view(), first).unwrap();
            let want: Vec<f64> = (first..first + len).map(|i| if chosen(&i) { all[i] } else { 0.0 }).collect();
            assert_eq!(read(&back.view()), want, "{dtype} from {first}");
        }
        let few = Owned::zeros(dtype, &[want.len() - 1]);
        assert!(masked_select(&x.view(), &mask.view(), &few.view()).is_err());
        assert!(masked_spread(&few.view(), &mask.view(), &x.view(), 0).is_err());
    }
}

#[test]
fn distinct_values_are_sorted_and_nan_equals_nothing() {
    for dtype in oflow_kernels::cpu::lane::Native::ALL.map(|n| n.dtype()).into_iter().filter(|d| *d != DType::Bool) {
        let x = Owned::from_f64(dtype, &[7], &[3.0, 1.0, 3.0, 0.0, 1.0, 5.0, 0.0]);
        let out = Owned::zeros(dtype, &[7]);
        assert_eq!(unique(&x.view(), &out.view()).unwrap(), 4, "{dtype}");
        assert_eq!(read(&out.view())[..4], [0.0, 1.0, 3.0, 5.0], "{dtype}");
    }
    let x = Owned::from_f64(DType::F32, &[6], &[f64::NAN, 1.0, -0.0, 0.0, -f64::NAN, f64::NEG_INFINITY]);
    let out = Owned::zeros(DType::F32, &[6]);
    assert_eq!(unique(&x.view(), &out.view()).unwrap(), 5);
    let found = read(&out.view());
    assert_eq!(found[..3], [f64::NEG_INFINITY, 0.0, 1.0]);
    assert!(found[3].is_nan() && found[4].is_nan());
    let none = Owned::zeros(DType::I32, &[0]);
    assert_eq!(unique(&none.view(), &none.view()).unwrap(), 0);
}
