use crate::owned::{Owned, read};
use crate::samples::Tensor;
use crate::threads::with_threads;
use oflow_base::Random;
use oflow_kernels::cpu::matmul::*;
use oflow_kernels::{DType, View};

/// What `matmul` should give, summed in f64; and the sums of the magnitudes, which bound the rounding.
fn oracle(a: &Tensor, b: &Tensor, out_dims: &[usize], k: usize) -> (Vec<f64>, Vec<f64>) {
    let (m, n) = (out_dims[out_dims.len() - 2], out_dims[out_dims.len() - 1]);
    let batch = &out_dims[..out_dims.len() - 2];
    let (a_values, b_values) = (a.values(), b.values());
    let (mut sums, mut magnitudes) = (Vec::new(), Vec::new());
    for index in 0..batch.iter().product() {
        // Which matrix of an operand product `index` takes: its batch dims, aligned at the right, with 0 where repeated.
        let matrix = |t: &Tensor| {
            let (mut rest, mut number, mut step) = (index, 0, 1);
            for d in 1..=batch.len() {
                let position = rest % batch[batch.len() - d];
                rest /= batch[batch.len() - d];
                if d + 2 <= t.dims.len() {
                    let size = t.dims[t.dims.len() - 2 - d];
                    number += if size == 1 { 0 } else { position * step };
                    step *= size;
                }
            }
            number
        };
        let (a, b) = (&a_values[matrix(a) * m * k..][..m * k], &b_values[matrix(b) * k * n..][..k * n]);
        for i in 0..m {
            for j in 0..n {
                let terms = (0..k).map(|p| a[i * k + p] * b[p * n + j]);
                sums.push(terms.clone().sum::<f64>());
                magnitudes.push(terms.map(f64::abs).sum::<f64>());
            }
        }
    }
    (sums, magnitudes)
}

fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F32 => f32::EPSILON as f64,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => 0.0,
    }
}

fn check(rng: &mut Random, dtype: DType, a_dims: &[usize], b_dims: &[usize], out_dims: &[usize]) {
    check_of(rng, dtype, a_dims, b_dims, out_dims, &|a, b, out, accumulate| {
        matmul_into(a, b, out, accumulate).unwrap()
    });
}

fn check_of(
    rng: &mut Random,
    dtype: DType,
    a_dims: &[usize],
    b_dims: &[usize],
    out_dims: &[usize],
    run: &dyn Fn(&View, &View, &View, bool),
) {
    let k = a_dims[a_dims.len() - 1];
    let (a, b) = (Tensor::random(rng, dtype, a_dims), Tensor::random(rng, dtype, b_dims));
    let (sums, magnitudes) = oracle(&a, &b, out_dims, k);
    for accumulate in [false, true] {
        let out = Tensor::random(rng, dtype, out_dims);
        let before = out.values();
        run(&a.view(), &b.view(), &out.view(), accumulate);
        for (i, got) in out.values().into_iter().enumerate() {
            let start = if accumulate { before[i] } else { 0.0 };
            let bound = epsilon(dtype) * ((sums[i] + start).abs() + 1e-4)
                + epsilon(if dtype.is_half() { DType::F32 } else { dtype }) * 2.0 * (magnitudes[i] + start.abs());
            let off = (got - sums[i] - start).abs();
            assert!(off <= bound, "{dtype} {a_dims:?} x {b_dims:?} [{i}]: {got} for {} (+{start})", sums[i]);
        }
        assert!(out.gaps_untouched(), "{dtype} {a_dims:?} x {b_dims:?} wrote beside its output");
    }
}

const DTYPES: [DType; 6] = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64];

#[test]
fn random_shapes_and_strides() {
    let mut rng = Random::new(1);
    for round in 0..250 {
        let dtype = DTYPES[round % DTYPES.len()];
        let size = |rng: &mut Random| [1, 2, 3, 5, 7, 16, 17, 33, 40, 65][rng.below(10)];
        let (m, n, k) = (size(&mut rng), size(&mut rng), size(&mut rng));
        match rng.below(4) {
            0 => check(&mut rng, dtype, &[m, k], &[k, n], &[m, n]),
            1 => check(&mut rng, dtype, &[3, m, k], &[k, n], &[3, m, n]),
            2 => check(&mut rng, dtype, &[2, 1, m, k], &[3, k, n], &[2, 3, m, n]),
            _ => check(&mut rng, dtype, &[2, 3, m, k], &[2, 3, k, n], &[2, 3, m, n]),
        }
    }
}

/// Every kernel of bf16 that this CPU has, not the quickest alone.
#[test]
fn each_way_to_multiply_bf16() {
    let mut rng = Random::new(9);
    for run in bf16_kernels() {
        for round in 0..60 {
            let size = |rng: &mut Random| [1, 2, 5, 14, 15, 16, 17, 31, 32, 33, 63, 70, 129][rng.below(13)];
            let (m, n, k) = (size(&mut rng), size(&mut rng), if round == 0 { 0 } else { size(&mut rng) });
            check_of(&mut rng, DType::BF16, &[m, k], &[k, n], &[m, n], &run);
        }
        check_of(&mut rng, DType::BF16, &[530, 1031], &[1031, 34], &[530, 34], &run);
        check_of(&mut rng, DType::BF16, &[17, 2050], &[2050, 1030], &[17, 1030], &run);
    }
}

#[test]
fn windows_of_a_vector_are_multiplied_as_their_copies() {
    // Windows overlap: neighbours in both dims lie side by side.
    let (m, k, n) = (20, 70, 40);
    let values: Vec<f64> = (0..m + k + n).map(|i| ((i * 37) % 19) as f64 - 9.0).collect();
    for run in bf16_kernels() {
        let line = Owned::from_f64(DType::BF16, &[values.len()], &values);
        // SAFETY: the last window ends inside the vector.
        let windows = |rows: usize, columns: usize| unsafe {
            line.view().restride(0, [rows, columns].as_slice().into(), [1, 1].as_slice().into())
        };
        let out = Owned::zeros(DType::F32, &[m, n]);
        run(&windows(m, k), &windows(k, n), &out.view(), false);
        let sum = |i: usize, j: usize| (0..k).map(|p| values[i + p] * values[p + j]).sum::<f64>();
        let want: Vec<f64> = (0..m).flat_map(|i| (0..n).map(move |j| sum(i, j))).collect();
        assert_eq!(read(&out.view()), want);
    }
}

/// Compares every kernel of products of bytes with plain sums.
fn check_bytes(rng: &mut Random, dtypes: [DType; 3], dims: [&[usize]; 3], turned: bool) {
    let zeros = dtypes[..2].iter().map(|d| if *d == DType::I8 { [-128, 0, 7, 127] } else { [0, 1, 128, 255] });
    let zeros: Vec<i64> = zeros.map(|z| z[rng.below(4)]).collect();
    // Right operands by columns too, as transposed weights lie.
    let swapped = |d: &[usize]| [&d[..d.len() - 2], &[d[d.len() - 1], d[d.len() - 2]]].concat();
    let (a, b) = (
        Tensor::random(rng, dtypes[0], dims[0]),
        Tensor::random(rng, dtypes[1], &if turned { swapped(dims[1]) } else { dims[1].to_vec() }),
    );
    let b_view = match turned {
        false => b.view(),
        true => {
            let v = b.view();
            let mut strides: Vec<isize> = v.strides().to_vec();
            let r = strides.len();
            strides.swap(r - 2, r - 1);
            // SAFETY: the same elements with the last dims exchanged.
            unsafe { v.restride(0, dims[1].into(), strides.into()) }
        }
    };
    let k = dims[0][dims[0].len() - 1];
    let less = |t: &Tensor, zero: i64| t.values().into_iter().map(|x| x as i64 - zero).collect::<Vec<_>>();
    let (xa, xb) = (less(&a, zeros[0]), less(&b, zeros[1]));
    let (m, n) = (dims[2][dims[2].len() - 2], dims[2][dims[2].len() - 1]);
    let batch = dims[2][..dims[2].len() - 2].iter().product::<usize>();
    let mut want = vec![];
    for at in 0..batch {
        let (oa, ob) = (if dims[0].len() > 2 { at * m * k } else { 0 }, if dims[1].len() > 2 { at * k * n } else { 0 });
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let of_b = |p: usize| xb[ob + if turned { j * k + p } else { p * n + j }];
            want.push((0..k).map(|p| xa[oa + i * k + p] * of_b(p)).sum::<i64>() as f64);
        }
    }
    for run in byte_kernels() {
        let out = Tensor::random(rng, dtypes[2], dims[2]);
        run(Bytes { view: &a.view(), zero: zeros[0] }, Bytes { view: &b_view, zero: zeros[1] }, &out.view());
        assert_eq!(out.values(), want, "{dtypes:?} {dims:?} {turned} {zeros:?}");
        assert!(out.gaps_untouched(), "{dtypes:?} {dims:?} wrote beside its output");
    }
}

#[test]
fn products_of_bytes() {
    let mut rng = Random::new(11);
    let dtypes = |rng: &mut Random| {
        let byte = [DType::I8, DType::U8];
        [byte[rng.below(2)], byte[rng.below(2)], [DType::I32, DType::I64][rng.below(2)]]
    };
    for round in 0..200 {
        let size = |rng: &mut Random| [1, 2, 5, 6, 13, 14, 15, 31, 32, 33, 63, 70, 129][rng.below(13)];
        let (m, n, k) = (size(&mut rng), size(&mut rng), if round == 0 { 0 } else { size(&mut rng) });
        let (set, turned) = (dtypes(&mut rng), rng.below(2) > 0);
        match rng.below(3) {
            0 => check_bytes(&mut rng, set, [&[m, k], &[k, n], &[m, n]], turned),
            1 => check_bytes(&mut rng, set, [&[3, m, k], &[k, n], &[3, m, n]], turned),
            _ => check_bytes(&mut rng, set, [&[2, m, k], &[2, k, n], &[2, m, n]], turned),
        }
    }
    for turned in [false, true] {
        let set = dtypes(&mut rng);
        check_bytes(&mut rng, set, [&[460, 1031], &[1031, 34], &[460, 34]], turned);
        check_bytes(&mut rng, set, [&[17, 2050], &[2050, 530], &[17, 530]], turned);
    }
}

#[test]
fn products_of_bytes_refuse_what_they_cannot() {
    let mut rng = Random::new(12);
    let mut of = |dtype: DType, dims: &[usize]| Tensor::random(&mut rng, dtype, dims);
    let (a, b, out) = (of(DType::I8, &[2, 3]), of(DType::I8, &[3, 2]), of(DType::I32, &[2, 2]));
    let (wide, short, float) = (of(DType::I32, &[2, 3]), of(DType::I8, &[2, 2]), of(DType::F32, &[2, 2]));
    let refused = |a: &Tensor, zero: i64, b: &Tensor, out: &Tensor| {
        let (a, b) = (a.view(), b.view());
        matmul_bytes(Bytes { view: &a, zero }, Bytes { view: &b, zero: 0 }, &out.view()).unwrap_err().to_string()
    };
    assert!(refused(&wide, 0, &b, &out).contains("operands are i8 or u8, not i32"));
    assert!(refused(&a, 256, &b, &out).contains("not 256"));
    assert!(refused(&a, 0, &short, &out).contains("inner sizes differ"));
    assert!(refused(&a, 0, &b, &float).contains("i32 or i64, not f32"));
}

#[test]
fn sizes_past_every_block() {
    let mut rng = Random::new(2);
    for dtype in DTYPES {
        check(&mut rng, dtype, &[261, 530], &[530, 67], &[261, 67]);
        check(&mut rng, dtype, &[3, 70], &[70, 600], &[3, 600]);
        // A few rows (or columns) along a long k: the dot-product kernel, by rows and by columns.
        check(&mut rng, dtype, &[5, 1031], &[1031, 37], &[5, 37]);
        check(&mut rng, dtype, &[37, 1031], &[1031, 1], &[37, 1]);
    }
    // The blocks of bf16 where the CPU multiplies it.
    check(&mut rng, DType::BF16, &[510, 1031], &[1031, 34], &[510, 34]);
    check(&mut rng, DType::BF16, &[17, 2050], &[2050, 1030], &[17, 1030]);
}

#[test]
fn dots_agree_in_both_orientations() {
    let mut rng = Random::new(3);
    for (m, n, k) in [(1, 50, 700), (4, 33, 1025), (16, 31, 640), (13, 40, 512)] {
        let a = Tensor::contiguous(&mut rng, DType::F32, &[m, k]);
        let b = Tensor::contiguous(&mut rng, DType::F32, &[n, k]);
        let out = Tensor::contiguous(&mut rng, DType::F32, &[m, n]);
        let flipped = Tensor::contiguous(&mut rng, DType::F32, &[n, m]);
        matmul(&a.view(), &b.transposed(), &out.view()).unwrap();
        // The same product transposed, into column-major memory: the same kernel with the roles swapped.
        matmul(&b.view(), &a.transposed(), &flipped.view()).unwrap();
        let exact = oracle_nt(&a, &b, m, n, k);
        for i in 0..m {
            for j in 0..n {
                assert!((out.get(&[i, j]) - exact[i * n + j]).abs() < 1e-3);
                assert!((flipped.get(&[j, i]) - exact[i * n + j]).abs() < 1e-3);
            }
        }
    }
}

fn oracle_nt(a: &Tensor, b: &Tensor, m: usize, n: usize, k: usize) -> Vec<f64> {
    let at = |i: usize, j: usize| (0..k).map(|p| a.get(&[i, p]) * b.get(&[j, p])).sum();
    (0..m * n).map(|x| at(x / n, x % n)).collect()
}

#[test]
fn vectors_are_rows_and_columns() {
    let mut rng = Random::new(4);
    for dtype in DTYPES {
        let v = Tensor::contiguous(&mut rng, dtype, &[4]);
        let m = Tensor::contiguous(&mut rng, dtype, &[4, 4]);
        let scalar = Tensor::contiguous(&mut rng, dtype, &[]);
        matmul(&v.view(), &v.view(), &scalar.view()).unwrap();
        let exact: f64 = v.values().iter().map(|x| x * x).sum();
        assert!((scalar.values()[0] - exact).abs() <= epsilon(dtype) * 4.0 * exact);
        let out = Tensor::contiguous(&mut rng, dtype, &[4]);
        let square = Tensor::contiguous(&mut rng, dtype, &[1, 4]);
        let row = v.reshaped(&[1, 4]);
        matmul(&v.view(), &m.view(), &out.view()).unwrap();
        matmul(&row.view(), &m.view(), &square.view()).unwrap();
        assert_eq!(out.values(), square.values());
        matmul(&m.view(), &v.view(), &out.view()).unwrap();
        let exact: f64 = (0..4).map(|p| m.get(&[2, p]) * v.get(&[p])).sum();
        assert!((out.get(&[2]) - exact).abs() <= epsilon(dtype) * 16.0);
    }
}

#[test]
fn empty_sizes() {
    let mut rng = Random::new(5);
    for dtype in DTYPES {
        for (m, n, k) in [(0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0), (1, 1, 0)] {
            let (a, b) = (Tensor::random(&mut rng, dtype, &[m, k]), Tensor::random(&mut rng, dtype, &[k, n]));
            let out = Tensor::random(&mut rng, dtype, &[m, n]);
            let before = out.values();
            matmul_into(&a.view(), &b.view(), &out.view(), true).unwrap();
            assert_eq!(out.values(), before);
            matmul(&a.view(), &b.view(), &out.view()).unwrap();
            assert!(out.values().iter().all(|x| *x == 0.0), "{dtype} {m} {n} {k}");
        }
    }
}

#[test]
fn expanded_operands() {
    let mut rng = Random::new(6);
    for dtype in DTYPES {
        let a = Tensor::expanded(&mut rng, dtype, &[9, 20], 0);
        let b = Tensor::expanded(&mut rng, dtype, &[20, 35], 1);
        let out = Tensor::contiguous(&mut rng, dtype, &[9, 35]);
        matmul(&a.view(), &b.view(), &out.view()).unwrap();
        let exact: f64 = (0..20).map(|p| a.get(&[3, p]) * b.get(&[p, 4])).sum();
        assert!(out.values().iter().all(|x| (x - exact).abs() <= epsilon(dtype) * 40.0));
    }
}

#[test]
fn halves_can_give_f32() {
    let mut rng = Random::new(7);
    let (a, b) = (Tensor::random(&mut rng, DType::BF16, &[30, 40]), Tensor::random(&mut rng, DType::BF16, &[40, 20]));
    let out = Tensor::contiguous(&mut rng, DType::F32, &[30, 20]);
    matmul(&a.view(), &b.view(), &out.view()).unwrap();
    let (sums, magnitudes) = oracle(&a, &b, &[30, 20], 40);
    for (i, got) in out.values().into_iter().enumerate() {
        assert!((got - sums[i]).abs() <= 1e-6 * magnitudes[i]);
    }
}

#[test]
fn small_integers_wrap() {
    let (a, b, mut out) = ([100u8, 3], [3u8, 5], [0u8]);
    // SAFETY: the arrays outlive the views; only `out` is written.
    let (a, b, c) = unsafe { (View::from_slice(&a, &[2]), View::from_slice(&b, &[2]), View::from_mut(&mut out, &[])) };
    matmul(&a, &b, &c).unwrap();
    assert_eq!(c.as_slice::<u8>().unwrap(), [59]);
}

#[test]
fn bits_do_not_depend_on_threads() {
    for dtype in DTYPES {
        for (a, b) in [
            (vec![300, 700], vec![700, 150]),
            (vec![5, 3000], vec![3000, 400]),
            (vec![40, 64, 64], vec![40, 64, 64]),
            (vec![2, 520, 300], vec![2, 300, 600]),
        ] {
            if !dtype.is_float() && a[0] == 2 {
                continue;
            }
            let compute = |threads| {
                with_threads(threads, || {
                    let mut rng = Random::new(8);
                    let mut out_dims = a.clone();
                    *out_dims.last_mut().unwrap() = *b.last().unwrap();
                    let x = Tensor::contiguous(&mut rng, dtype, &a);
                    let y = Tensor::random(&mut rng, dtype, &b);
                    let out = Tensor::contiguous(&mut rng, dtype, &out_dims);
                    matmul(&x.view(), &y.view(), &out.view()).unwrap();
                    out.bytes()
                })
            };
            let alone = compute(1);
            for threads in [2, 3] {
                assert!(compute(threads) == alone, "{dtype} {a:?} {b:?} on {threads}");
            }
        }
    }
}

#[test]
fn refusals_say_why() {
    let mut rng = Random::new(9);
    let mut refused = |a: &[usize], b: &[usize], out: &[usize], dtypes: [DType; 3]| {
        let a = Tensor::contiguous(&mut rng, dtypes[0], a);
        let b = Tensor::contiguous(&mut rng, dtypes[1], b);
        let out = Tensor::contiguous(&mut rng, dtypes[2], out);
        matmul(&a.view(), &b.view(), &out.view()).unwrap_err().0
    };
    let same = [DType::F32; 3];
    assert_eq!(refused(&[2, 3], &[4, 5], &[2, 5], same), "inner sizes differ: [2, 3] x [4, 5] (3 and 4)");
    assert_eq!(
        refused(&[2, 2, 3], &[3, 3, 5], &[2, 2, 5], same),
        "batch sizes 2 and 3 do not broadcast: [2, 2, 3] x [3, 3, 5]"
    );
    assert_eq!(refused(&[2, 3], &[3, 5], &[2, 4], same), "[2, 3] x [3, 5] gives [2, 5], but the output has [2, 4]");
    assert_eq!(
        refused(&[2, 3], &[3, 5], &[2, 5], [DType::F32, DType::F64, DType::F32]),
        "operands have different dtypes: f32 and f64"
    );
    assert!(refused(&[2, 3], &[3, 5], &[2, 5], [DType::Bool; 3]).contains("no meaning for bool"));
}
