use crate::owned::{Owned, read};
use crate::threads::with_threads;
use oflow_kernels::DType;
use oflow_kernels::cpu::sort::*;

/// What a stable sort by comparisons gives: values and positions of each line.
fn expected(x: &[f64], dims: [usize; 3], count: usize, descending: bool) -> (Vec<f64>, Vec<f64>) {
    let [outer, n, inner] = dims;
    let (mut values, mut indices) = (vec![0.0; outer * count * inner], vec![0.0; outer * count * inner]);
    let order = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    for o in 0..outer {
        for c in 0..inner {
            let at = |i: usize| x[(o * n + i) * inner + c];
            let mut line: Vec<usize> = (0..n).collect();
            line.sort_by(|a, b| if descending { order(at(*b), at(*a)) } else { order(at(*a), at(*b)) });
            for (i, p) in line[..count].iter().enumerate() {
                values[(o * count + i) * inner + c] = at(*p);
                indices[(o * count + i) * inner + c] = *p as f64;
            }
        }
    }
    (values, indices)
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
}

/// Numbers with ties, zeros of both signs, infinities and NaN, as the dtype has them.
fn numbers(dtype: DType, n: usize, seed: usize) -> Vec<f64> {
    let mut state = seed as u64 * 2 + 1;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let r = state >> 33;
            match (dtype.is_float(), r % 23) {
                (true, 0) => f64::NAN,
                (true, 1) => -0.0,
                (true, 2) => f64::INFINITY,
                (true, 3) => f64::NEG_INFINITY,
                (_, 4..=6) => 0.0,
                (true, _) => ((r % 401) as f64 - 200.0) / 4.0,
                _ if dtype == DType::Bool => (r % 2) as f64,
                _ if dtype == DType::U8 => (r % 256) as f64,
                _ if dtype == DType::I8 => (r % 256) as f64 - 128.0,
                _ => r as f64 - (1u64 << 30) as f64,
            }
        })
        .collect()
}

#[test]
fn lines_of_all_dtypes_and_lengths() {
    for dtype in oflow_kernels::cpu::lane::Native::ALL.map(|n| n.dtype()) {
        for (case, dims) in [[3, 1, 1], [2, 7, 3], [1, 250, 20], [3, 300, 1], [2, 1000, 2]].into_iter().enumerate() {
            let x = Owned::from_f64(dtype, &dims, &numbers(dtype, dims.iter().product(), case));
            let given = read(&x.view());
            for count in [dims[1], 1, dims[1].min(5), dims[1].min(60), dims[1] / 3] {
                let shape = [dims[0], count, dims[2]];
                let (values, indices) = (Owned::zeros(dtype, &shape), Owned::zeros(DType::I64, &shape));
                for descending in [false, true] {
                    sort(&x.view(), &values.view(), &indices.view(), 1, descending).unwrap();
                    let (v, i) = expected(&given, dims, count, descending);
                    assert!(same(&read(&indices.view()), &i), "{dtype} {dims:?} {count} {descending}");
                    assert!(same(&read(&values.view()), &v), "{dtype} {dims:?} {count} {descending}");
                }
            }
        }
    }
}

#[test]
fn one_element_of_each_line() {
    for dtype in oflow_kernels::cpu::lane::Native::ALL.map(|n| n.dtype()) {
        for dims in [[2, 1, 3], [3, 8, 1], [2, 301, 4]] {
            let all: Vec<f64> = numbers(dtype, dims.iter().product(), 5);
            let numbers: Vec<f64> = all.iter().map(|x| if x.is_nan() { 1.0 } else { *x }).collect();
            let shape = [dims[0], 1, dims[2]];
            let (values, indices) = (Owned::zeros(dtype, &shape), Owned::zeros(DType::I64, &shape));
            let x = Owned::from_f64(dtype, &dims, &numbers);
            let (v, i) = expected(&read(&x.view()), dims, dims[1], false);
            for place in [0, dims[1] / 2, dims[1] - 1] {
                nth(&x.view(), &values.view(), &indices.view(), 1, Nth::At(place)).unwrap();
                let of = |all: &[f64]| -> Vec<f64> {
                    let at = |o: usize, c: usize| all[(o * dims[1] + place) * dims[2] + c];
                    (0..dims[0]).flat_map(|o| (0..dims[2]).map(move |c| at(o, c))).collect()
                };
                assert!(same(&read(&values.view()), &of(&v)) && same(&read(&indices.view()), &of(&i)), "{dtype}");
            }
            assert!(nth(&x.view(), &values.view(), &indices.view(), 1, Nth::At(dims[1])).is_err());
        }
    }
}

#[test]
fn the_median_is_the_lower_one_and_nan_wins() {
    let nan = f64::NAN;
    let x = Owned::from_f64(DType::F32, &[3, 4], &[4., 1., 3., 2., 1., nan, 0., nan, 5., 5., 5., 5.]);
    let (values, indices) = (Owned::zeros(DType::F32, &[3, 1]), Owned::zeros(DType::I64, &[3, 1]));
    nth(&x.view(), &values.view(), &indices.view(), 1, Nth::Median).unwrap();
    assert!(same(&read(&values.view()), &[2., nan, 5.]));
    assert_eq!(read(&indices.view()), [3., 1., 1.]);
}

#[test]
fn threads_do_not_matter_and_what_does_not_fit_is_refused() {
    let x = Owned::from_f64(DType::F32, &[70, 1000], &numbers(DType::F32, 70_000, 9));
    let run = |threads| {
        with_threads(threads, || {
            let (values, indices) = (Owned::zeros(DType::F32, &[70, 1000]), Owned::zeros(DType::I64, &[70, 1000]));
            sort(&x.view(), &values.view(), &indices.view(), 1, true).unwrap();
            (values.bytes(), indices.bytes())
        })
    };
    assert_eq!(run(1), run(4));
    let more = Owned::zeros(DType::F32, &[70, 1001]);
    let at = Owned::zeros(DType::I64, &[70, 1001]);
    assert!(sort(&x.view(), &more.view(), &at.view(), 1, false).is_err());
    let none = Owned::zeros(DType::I64, &[0, 3]);
    sort(&none.view(), &none.view(), &none.view(), 0, false).unwrap();
}
