//! Quantised numbers against their definition: `(stored - zero) * scale`, ties to even, sums of integers. `tests/golden/quantized.json`
//! holds what PyTorch gives.

use oflow::functional::{call, call_value, from_bytes};
use oflow::ops::AttrValue;
use oflow::prelude::*;
use oflow::{ErrorKind, run_ranks};
use oflow_tests::golden::numbers;
use serde_json::Value as Json;

#[test]
fn stored_integers_and_numbers_are_pytorchs() {
    let all: Vec<Json> = serde_json::from_str(include_str!("../../golden/quantized.json")).unwrap();
    let (mut quantized, mut faked) = (0, 0);
    for row in &all {
        let (scale, zero) = (row["scale"].as_f64().unwrap(), row["zero"].as_i64().unwrap());
        let x = from_vec(numbers(&row["x"]), [row["x"].as_array().unwrap().len()], Device::Cpu).unwrap();
        let x = x.cast(DType::F32).unwrap();
        if let Some(family) = row["dtype"].as_str() {
            let q = x.quantize(DType::quantised(family, scale, zero).unwrap()).unwrap();
            assert_eq!(q.int_repr().unwrap().to_f64_vec().unwrap(), numbers(&row["stored"]), "{row}");
            let back: Vec<f32> = q.dequantize().unwrap().to_vec().unwrap();
            assert_eq!(back, numbers(&row["back"]).iter().map(|x| *x as f32).collect::<Vec<f32>>(), "{row}");
            quantized += 1;
        } else {
            let x = x.requires_grad_(true).unwrap();
            let (low, high) = (row["low"].as_i64().unwrap(), row["high"].as_i64().unwrap());
            let y = x.fake_quantize_per_tensor_affine(scale, zero, low, high).unwrap();
            let near = |have: &Tensor, want: &Json| {
                for (a, b) in have.to_f64_vec().unwrap().iter().zip(numbers(want)) {
                    assert!((a - b).abs() <= 1e-6 * b.abs(), "{row}: {a} and not {b}");
                }
            };
            near(&y, &row["y"]);
            y.mul(2.0).unwrap().sum(()).unwrap().backward().unwrap();
            near(&x.grad().unwrap(), &row["grad"]);
            faked += 1;
        }
    }
    assert!(quantized > 10 && faked > 3, "{quantized} {faked}");
}

/// The product by its definition, in i64.
fn product(a: &Tensor, b: &Tensor, dtype: DType) -> oflow::Result<Vec<i64>> {
    let (qa, qb, q) =
        (a.dtype().quantization().unwrap(), b.dtype().quantization().unwrap(), dtype.quantization().unwrap());
    let whole = |t: &Tensor, zero: i64| -> oflow::Result<Vec<i64>> {
        Ok(t.int_repr()?.to_f64_vec()?.iter().map(|x| *x as i64 - zero).collect())
    };
    let (x, y) = (whole(a, qa.zero)?, whole(b, qb.zero)?);
    let (m, k, n) = (a.shape()[0], a.shape()[1], b.shape()[1]);
    let one = |i: usize| {
        let sum: i64 = (0..k).map(|j| x[i / n * k + j] * y[j * n + i % n]).sum();
        let real = sum as f64 * (qa.scale * qb.scale);
        ((real * (1.0 / q.scale)).round_ties_even() as i64 + q.zero).clamp(q.low, q.high)
    };
    Ok((0..m * n).map(one).collect())
}

fn spread(n: usize, seed: u64) -> Vec<f32> {
    (0..n as u64).map(|i| (oflow::testing::mix(&[seed, i]) % 2001) as f32 / 250.0 - 4.0).collect()
}

#[test]
fn products_are_those_of_integers_under_every_layout() {
    let dtypes = [DType::qint8(0.05, 3), DType::quint8(0.04, 120), DType::qint16(0.001, -50)].map(Result::unwrap);
    let out = DType::qint8(0.9, -4).unwrap();
    for (i, da) in dtypes.into_iter().enumerate() {
        for db in dtypes {
            let a = from_vec(spread(7 * 33, 1), [7, 33], Device::Cpu).unwrap().quantize(da).unwrap();
            let b = from_vec(spread(33 * 5, 2), [33, 5], Device::Cpu).unwrap().quantize(db).unwrap();
            let want = product(&a, &b, out).unwrap();
            let y = a.quantized_matmul(&b, out).unwrap();
            assert_eq!(y.dtype(), out);
            let stored: Vec<i64> = y.int_repr().unwrap().to_f64_vec().unwrap().iter().map(|x| *x as i64).collect();
            assert_eq!(stored, want, "{da} {db}");
            assert!(stored.iter().any(|x| *x != stored[0]));
            run_ranks(2, |_| {
                let mesh = Placement::all(Device::Cpu)?;
                let layouts =
                    [(sbp![S(0)], sbp![B]), (sbp![B], sbp![S(1)]), (sbp![S(1)], sbp![S(0)]), (sbp![B], sbp![B])];
                let (sa, sb) = layouts[i].clone();
                let (a, b) = (distribute(&a, (&mesh, sa))?, distribute(&b, (&mesh, sb))?);
                let y = a.quantized_matmul(&b, out)?;
                assert_eq!(y.int_repr()?.to_f64_vec()?, want.iter().map(|x| *x as f64).collect::<Vec<_>>());
                assert_eq!(a.dequantize()?.sbp()?, a.sbp()?);
                Ok(())
            })
            .unwrap();
        }
    }
}

#[test]
fn long_sums_of_large_integers_do_not_wrap() {
    // 40,000 times 255 · 255 is beyond i32.
    let q = DType::quint8(1.0, 0).unwrap();
    let a = full([1, 40_000], 255.0, Device::Cpu).unwrap().quantize(q).unwrap();
    let b = full([40_000, 1], 255.0, Device::Cpu).unwrap().quantize(q).unwrap();
    let out = DType::qint16(100_000.0, 0).unwrap();
    assert_eq!(a.quantized_matmul(&b, out).unwrap().to_f64_vec().unwrap(), [26_010.0 * 100_000.0]);
}

#[test]
fn they_are_moved_printed_and_read_by_name() {
    let q: DType = "qint8(scale=0.5, zero=3)".parse().unwrap();
    let x = from_vec(vec![0.0f32, 1.3, -0.75, 1e9, -1e9, 0.25], [2, 3], Device::Cpu).unwrap();
    let x =
        call("quantize_per_tensor", &[(&x).into(), 0.5.into(), 3i64.into(), "qint8".into()], &[]).unwrap().remove(0);
    assert_eq!(x.dtype(), q);
    // 1.3 / 0.5 is nearest to 3; -1.5 and 0.5 are ties.
    assert_eq!(x.to_f64_vec().unwrap(), [0.0, 1.5, -1.0, 62.0, -65.5, 0.0]);
    assert_eq!(x.int_repr().unwrap().to_vec::<i8>().unwrap(), [3, 6, 1, 127, -128, 3]);
    let y = x.transpose(0, 1).unwrap().copy().unwrap().reshape([6]).unwrap();
    assert_eq!(y.dequantize().unwrap().to_vec::<f32>().unwrap(), [0.0, 62.0, 1.5, -65.5, -1.0, 0.0]);
    assert_eq!(call_value("q_scale", &[(&x).into()], &[]).unwrap(), AttrValue::from(0.5));
    assert_eq!(call_value("q_zero_point", &[(&x).into()], &[]).unwrap(), AttrValue::from(3i64));
    let empty = zeros([0, 4], Device::Cpu).unwrap().quantize(q).unwrap();
    assert_eq!((empty.dequantize().unwrap().shape(), empty.dtype()), (&[0, 4][..], q));
}

#[test]
fn what_is_not_quantised_is_refused_by_name() {
    let (q, x) = (DType::qint8(0.5, 0).unwrap(), ones([2, 2], Device::Cpu).unwrap());
    let quantised = x.quantize(q).unwrap();
    let refused = |r: oflow::Result<Tensor>, name: &str, why: &str| {
        let e = r.unwrap_err();
        assert!(e.to_string().starts_with(name) && e.to_string().contains(why), "{e}");
        assert!(matches!(e.kind(), ErrorKind::DType | ErrorKind::Argument | ErrorKind::Shape), "{e}");
    };
    refused(x.quantize(DType::I8), "quantize(", "i8 is not a quantised dtype");
    refused(quantised.quantize(q), "quantize(", "x must be float");
    refused(x.dequantize(), "dequantize(", "f32 is not a quantised dtype");
    refused(x.int_repr(), "int_repr(", "f32 is not a quantised dtype");
    refused(quantised.quantized_matmul(&x, q), "quantized_matmul(", "f32 is not a quantised dtype");
    refused(quantised.quantized_matmul(&quantised, DType::F32), "quantized_matmul(", "f32 is not a quantised dtype");
    let long = ones([3, 2], Device::Cpu).unwrap().quantize(q).unwrap();
    refused(quantised.quantized_matmul(&long, q), "quantized_matmul(", "3");
    refused(quantised.add(&quantised), "add(", "must be real");
    refused(x.fake_quantize_per_tensor_affine(0.0, 0, -1, 1), "fake_quantize_per_tensor_affine(", "greater than zero");
    refused(x.fake_quantize_per_tensor_affine(1.0, 5, -1, 1), "fake_quantize_per_tensor_affine(", "not between");
    let e = from_bytes(&[1, 2], [2], Device::Cpu.dtype(q)).unwrap().requires_grad_(true).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Autograd);
}
