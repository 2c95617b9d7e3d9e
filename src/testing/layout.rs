//! Values dealt out to the positions of a mesh, and put together again. This is the definition of SBP written a second time, in
//! the slowest and plainest way, so that it can judge the library's.

use super::mix;
use crate::error::Result;
use crate::functional::{IntoTarget, from_vec};
use crate::ops::TensorType;
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp, shard_box};
use crate::tensor::Tensor;
use oflow_kernels::{Complex, DType, ReduceOp, ShardBox};

/// Numbers of an element: two of a complex one, the real and the imaginary part.
pub fn parts_of(dtype: DType) -> usize {
    if dtype.is_complex() { 2 } else { 1 }
}

/// The value of a tensor; numbers of every dtype are f64.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Shape and dtype.
    pub ty: TensorType,
    /// Elements, row-major; of complex ones the parts, two by two.
    pub data: Vec<f64>,
}

impl Value {
    /// The value as a local tensor.
    ///
    /// # Errors
    /// The device is not there, or cannot hold the dtype.
    pub fn local(&self, device: Device) -> Result<Tensor> {
        let shape = self.ty.shape.as_slice();
        if self.ty.dtype.is_complex() {
            let pairs = self.data.chunks_exact(2).map(|p| Complex { re: p[0], im: p[1] }).collect();
            return from_vec::<Complex<f64>>(pairs, shape, Device::Cpu.dtype(self.ty.dtype))?.to_device(device);
        }
        let made = match self.ty.dtype.quantization() {
            Some(_) => from_vec(self.data.clone(), shape, Device::Cpu)?.quantize(self.ty.dtype)?,
            None => from_vec(self.data.clone(), shape, Device::Cpu.dtype(self.ty.dtype))?,
        };
        made.to_device(device)
    }
    /// The value of a local tensor.
    ///
    /// # Errors
    /// What reading it reports.
    pub fn of(t: &Tensor) -> Result<Value> {
        let data = match t.dtype().is_complex() {
            true => t.detach().cast(DType::C128)?.to_vec::<Complex<f64>>()?.iter().flat_map(|z| [z.re, z.im]).collect(),
            false => t.to_f64_vec()?,
        };
        Ok(Value { ty: t.ty().clone(), data })
    }
}

/// Row-major indices of a box in its logical tensor, with as many for each element as it has parts.
fn indices(b: &ShardBox, dtype: DType) -> Vec<usize> {
    let parts = parts_of(dtype);
    let n: usize = b.size.iter().product();
    (0..n)
        .map(|mut k| {
            let (mut at, mut stride) = (0, 1);
            for d in (0..b.size.len()).rev() {
                at += (b.offset[d] + k % b.size[d]) * stride;
                k /= b.size[d];
                stride *= b.logical[d];
            }
            at
        })
        .flat_map(|at| (0..parts).map(move |part| at * parts + part))
        .collect()
}

/// The number that an element of a narrow integer dtype holds for another; every other number is itself.
pub fn wrapped(dtype: DType, x: f64) -> f64 {
    match dtype.integers() {
        Some((low, high)) if dtype.size() < 8 => {
            let (low, high) = (low as f64, high as f64);
            (x - low).rem_euclid(high - low + 1.0) + low
        }
        _ => x,
    }
}

/// Share that coordinate `c` of `k` contributes to a value that is partial along one axis. No part is the value and none is
/// a neutral element: a rule that treats one part as the whole is seen. Parts of two inputs have nothing in common (`salt`):
/// else the maxima of both would lie on one rank, and max(a) + max(b) would pass for max(a + b).
fn part(v: &[f64], dtype: DType, op: ReduceOp, (axis, salt): (usize, u64), c: usize, k: usize) -> Vec<f64> {
    let axis = mix(&[axis as u64, salt]);
    // Quarters where sums of them are exact: parts of a whole number need not be whole.
    let step = if matches!(dtype.part(), DType::F32 | DType::F64) { 4.0 } else { 1.0 };
    let noise = |i: usize, c: usize| {
        let r = mix(&[i as u64, axis, c as u64, 17]);
        (r % 5) as f64 - 2.0 + if step > 1.0 { (r >> 32 & 3) as f64 / step } else { 0.0 }
    };
    // Sums of integers wrap, and so do their parts.
    let held = |part: f64| wrapped(dtype, part);
    // Where other parts would swallow the number (an i64 that is no exact f64, a float near zero) one part is the number. A zero
    // is negative if all parts are.
    let noise = |i: usize, c: usize| match v[i] {
        x if x == 0.0 && x.is_sign_negative() => -0.0,
        x if x.is_finite() && (x.abs() > 9e15 || (x != 0.0 && x.abs() < 1e-6)) => 0.0,
        _ => noise(i, c),
    };
    let one = |(i, x): (usize, &f64)| {
        let wins = mix(&[i as u64, axis, 5]) % k as u64 == c as u64;
        let less = (mix(&[i as u64, axis, c as u64, 23]) % 4) as f64;
        match op {
            ReduceOp::Sum if c + 1 < k => held(noise(i, c)),
            ReduceOp::Sum if *x == 0.0 && x.is_sign_negative() => *x,
            ReduceOp::Sum => held(x - (0..k - 1).map(|c| noise(i, c)).sum::<f64>()),
            // Added zeros would take the sign of a zero.
            _ if wins || (less == 0.0 && dtype != DType::Bool) => *x,
            // or: parts of a false are false; and: parts of a true are true.
            ReduceOp::Max if dtype == DType::Bool => {
                if *x != 0.0 {
                    less % 2.0
                } else {
                    0.0
                }
            }
            ReduceOp::Min if dtype == DType::Bool => {
                if *x == 0.0 {
                    less % 2.0
                } else {
                    1.0
                }
            }
            // Integers do not wrap here: what is less than the least is the least.
            ReduceOp::Max => dtype.integers().map_or(x - less, |(low, _)| (x - less).max(low as f64)),
            ReduceOp::Min => dtype.integers().map_or(x + less, |(_, high)| (x + less).min(high as f64)),
        }
    };
    v.iter().enumerate().map(one).collect()
}

/// The shard of mesh position `p`.
pub fn deal(v: &Value, mesh: &Placement, sbp: &NdSbp, p: usize) -> Value {
    let coord = mesh.coord(p);
    let mut whole = v.data.clone();
    let salt = mix(&v.data.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    for (axis, s) in sbp.iter().enumerate() {
        // The outer axis is reduced last, so it is taken apart first.
        if let Sbp::Partial(op) = s {
            whole = part(&whole, v.ty.dtype, *op, (axis, salt), coord[axis], mesh.dims()[axis]);
        }
    }
    let b = shard_box(&v.ty.shape, mesh, sbp, p);
    let data = indices(&b, v.ty.dtype).into_iter().map(|i| whole[i]).collect();
    Value { ty: TensorType::new(&b.size, v.ty.dtype), data }
}

pub(super) fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// The logical value of shards, one per position.
///
/// # Errors
/// A shard has the wrong size; copies along a B axis differ in a bit; some element is nowhere.
pub fn assemble(ty: &TensorType, mesh: &Placement, sbp: &NdSbp, shards: &[Value]) -> Result<Vec<f64>, String> {
    let all = gather(ty, mesh, sbp, shards, &mut vec![])?;
    all.into_iter().enumerate().map(|(i, x)| x.ok_or(format!("element {i} is on no rank"))).collect()
}

type Partly = Vec<Option<f64>>;

fn gather(
    ty: &TensorType,
    mesh: &Placement,
    sbp: &NdSbp,
    shards: &[Value],
    at: &mut Vec<usize>,
) -> Result<Partly, String> {
    let axis = at.len();
    if axis == sbp.len() {
        let p = mesh.position_of(at);
        let b = shard_box(&ty.shape, mesh, sbp, p);
        if shards[p].ty.shape != b.size || shards[p].ty.dtype != ty.dtype {
            return Err(format!("position {p} holds {} instead of {:?}", shards[p].ty, b.size.as_slice()));
        }
        let mut out = vec![None; ty.len() * parts_of(ty.dtype)];
        for (i, x) in indices(&b, ty.dtype).into_iter().zip(&shards[p].data) {
            out[i] = Some(*x);
        }
        return Ok(out);
    }
    let mut sum: Option<Partly> = None;
    for c in 0..mesh.dims()[axis] {
        at.push(c);
        let next = gather(ty, mesh, sbp, shards, at)?;
        at.pop();
        sum = Some(match sum {
            None => next,
            Some(old) => old
                .into_iter()
                .zip(next)
                .enumerate()
                .map(|(i, (a, b))| match (a, b, sbp[axis]) {
                    (a, None, Sbp::Split(_)) => Ok(a),
                    (None, b, Sbp::Split(_)) => Ok(b),
                    (None, None, _) => Ok(None),
                    (Some(a), Some(b), Sbp::Broadcast) if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) => {
                        Ok(Some(a))
                    }
                    (Some(a), Some(b), Sbp::Broadcast) => Err(format!("B copies differ at element {i}: {a} and {b}")),
                    (Some(a), Some(b), Sbp::Partial(op)) => Ok(Some(match op {
                        ReduceOp::Sum => wrapped(ty.dtype, a + b),
                        _ if a.is_nan() || b.is_nan() => f64::NAN,
                        ReduceOp::Max => a.max(b),
                        ReduceOp::Min => a.min(b),
                    })),
                    (a, b, s) => Err(format!("element {i} of {s}: {a:?} and {b:?}")),
                })
                .collect::<Result<_, _>>()?,
        });
    }
    sum.ok_or_else(|| "an axis of no ranks".into())
}

/// Whether `have` is `want` as exactly as the dtype and `exact` ask for; `scale`: the size of what was added up.
pub fn close(dtype: DType, exact: bool, have: f64, want: f64, scale: f64) -> bool {
    if same(have, want) {
        return true;
    }
    // The distance to an infinity is no larger than that infinity.
    if !have.is_finite() || !want.is_finite() {
        return false;
    }
    let dtype = dtype.part();
    if exact || !dtype.is_float() {
        // Sums of i64 parts are f64 here: beyond 2^53 they round, and they wrap.
        let (off, largest, turn) = ((have - want).abs(), have.abs().max(want.abs()), 2f64.powi(64));
        let wrapped = if dtype == DType::I64 { (off - (off / turn).round() * turn).abs() } else { off };
        return !dtype.is_float() && largest > 9e15 && wrapped <= largest * 1e-15;
    }
    let eps = match dtype {
        DType::F64 => 1e-11,
        DType::F32 => 2e-5,
        DType::F16 => 8e-3,
        _ => 4e-2,
    };
    (have - want).abs() <= eps * (scale + want.abs())
}
