use crate::owned::{Owned, read};
use oflow_kernels::cpu::accumulate::*;
use oflow_kernels::{DType, ReduceOp};

const OPS: [ReduceOp; 3] = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min];

fn bytes(dtype: DType, values: &[f64]) -> Vec<u8> {
    Owned::from_f64(dtype, &[values.len()], values).bytes()
}

fn values(dtype: DType, b: &[u8]) -> Vec<f64> {
    let n = b.len() / dtype.size();
    (0..n)
        .map(|i| {
            let mut memory = [0u64; 1];
            // SAFETY: one element fits the word.
            unsafe {
                std::ptr::copy_nonoverlapping(b[i * dtype.size()..].as_ptr(), memory.as_mut_ptr().cast(), dtype.size())
            };
            // SAFETY: `memory` lives until the value is read.
            let v = unsafe {
                oflow_kernels::View::from_raw(
                    memory.as_mut_ptr().cast(),
                    dtype,
                    oflow_kernels::Dims::new(),
                    oflow_kernels::Strides::new(),
                )
            };
            read(&v)[0]
        })
        .collect()
}

#[test]
fn every_dtype_op_and_alignment() {
    for d in DType::REAL {
        for n in [0usize, 1, 63, 64, 130] {
            let wrap = |i: usize| if d == DType::Bool { (i % 2) as f64 } else { (i % 11) as f64 };
            let sources: Vec<Vec<f64>> = (0..3).map(|s| (0..n).map(|i| wrap(i * (s + 1) + s)).collect()).collect();
            for op in OPS {
                let want: Vec<f64> = (0..n)
                    .map(|i| {
                        let x = [sources[0][i], sources[1][i], sources[2][i]];
                        match op {
                            ReduceOp::Sum if d == DType::Bool => x.iter().any(|v| *v != 0.0) as u8 as f64,
                            ReduceOp::Sum => x.iter().sum(),
                            ReduceOp::Max => x[0].max(x[1]).max(x[2]),
                            ReduceOp::Min => x[0].min(x[1]).min(x[2]),
                        }
                    })
                    .collect();
                // Shifted by one byte, so that nothing is aligned.
                let shifted: Vec<Vec<u8>> = sources.iter().map(|s| [vec![0], bytes(d, s)].concat()).collect();
                let slices: Vec<&[u8]> = shifted.iter().map(|s| &s[1..]).collect();
                let mut dst = vec![7u8; n * d.size() + 1];
                reduce_slices(&mut dst[1..], &slices, d, op).unwrap();
                assert_eq!(values(d, &dst[1..]), want, "{d} {op} {n}");
                let mut step = shifted[0].clone();
                accumulate(&mut step[1..], slices[1], d, op).unwrap();
                accumulate(&mut step[1..], slices[2], d, op).unwrap();
                assert_eq!(values(d, &step[1..]), want, "{d} {op} {n}");
                // A source in the middle becomes the result.
                let mut middle = shifted[1].clone();
                reduce_in_place(&mut middle[1..], 1, &[slices[0], slices[2]], d, op).unwrap();
                assert_eq!(values(d, &middle[1..]), want, "{d} {op} {n}");
                // The identity changes nothing.
                let mut identity = vec![9u8; n * d.size()];
                fill_identity(&mut identity, d, op).unwrap();
                accumulate(&mut identity, slices[0], d, op).unwrap();
                assert_eq!(values(d, &identity), sources[0], "{d} {op} {n}");
            }
        }
    }
}

#[test]
fn halves_round_once() {
    let (big, small) = (bytes(DType::BF16, &[256.0]), bytes(DType::BF16, &[1.0]));
    let mut dst = vec![0; 2];
    reduce_slices(&mut dst, &[&big, &small, &small], DType::BF16, ReduceOp::Sum).unwrap();
    assert_eq!(values(DType::BF16, &dst), [258.0]);
}

#[test]
fn nan_and_refusals() {
    let (nan, one) = (bytes(DType::F32, &[f64::NAN]), bytes(DType::F32, &[1.0]));
    for op in OPS {
        for pair in [[&nan[..], &one], [&one, &nan]] {
            let mut dst = vec![0; 4];
            reduce_slices(&mut dst, &pair, DType::F32, op).unwrap();
            assert!(values(DType::F32, &dst)[0].is_nan());
        }
    }
    let e = accumulate(&mut [0; 4], &[0; 8], DType::F32, ReduceOp::Sum).unwrap_err();
    assert_eq!(e.0, "combining 8 bytes into 4");
    let e = fill_identity(&mut [0; 3], DType::F32, ReduceOp::Sum).unwrap_err();
    assert_eq!(e.0, "3 bytes are not whole elements of f32");
}
