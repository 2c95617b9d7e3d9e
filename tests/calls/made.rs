//! Random material: sizes that wrap, dtypes, tensors of any strides, attributes of the right and of the wrong kind.

use std::sync::atomic::{AtomicBool, Ordering};

use oflow::functional::Arg;
use oflow::kernels::{DType, Scalar};
use oflow::ops::{AttrKind, AttrValue};
use oflow::prelude::*;
use oflow::testing::Random;
use oflow::testing::sample::{Spec, Values};

/// Numbers whose products and sums wrap, and those around zero.
const UNTAMED: &[i64] = &[
    -1,
    -2,
    -7,
    1 << 20,
    i32::MAX as i64,
    1 << 31,
    (1 << 31) + 1,
    1 << 32,
    (1 << 33) + 1,
    1 << 40,
    1 << 61,
    1 << 62,
    (1 << 62) + 1,
    i64::MAX - 1,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
    -(1 << 40),
];

/// Leave out the sizes between what fits into memory and what no memory holds: for a process without a limit.
pub static NO_LIMIT: AtomicBool = AtomicBool::new(false);

pub fn size(r: &mut Random) -> i64 {
    match r.below(100) {
        0..75 => r.below(7) as i64,
        75..84 => *r.of(&[8, 16, 33, 64, 100]),
        _ => match *r.of(UNTAMED) {
            n if (1 << 10..1 << 61).contains(&n) && NO_LIMIT.load(Ordering::Relaxed) => 7,
            n => n,
        },
    }
}

pub fn dtype(r: &mut Random) -> DType {
    *r.of(&DType::BUILTIN)
}

pub fn sizes(r: &mut Random) -> Vec<i64> {
    let n = r.below(6);
    (0..n).map(|_| size(r)).collect()
}

/// Sizes of a tensor that exists.
pub fn shape(r: &mut Random) -> Vec<usize> {
    let n = r.below(6);
    let most = if n > 3 { 4 } else { 7 };
    (0..n).map(|_| if r.percent(2) { 33 } else { r.below(most) }).collect()
}

pub fn scalar(r: &mut Random) -> Scalar {
    match r.below(6) {
        0 => Scalar::Bool(r.percent(50)),
        1 | 2 => Scalar::Int(size(r)),
        _ => Scalar::Float(float(r)),
    }
}

fn float(r: &mut Random) -> f64 {
    *r.of(&[0.0, 0.5, 1.0, 1.5, -1.0, -0.0, 2.5, 1e-30, 1e300, -1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY])
}

pub fn attr(r: &mut Random, kind: AttrKind) -> AttrValue {
    if r.percent(4) {
        let other =
            *r.of(&[AttrKind::Int, AttrKind::Float, AttrKind::Bool, AttrKind::Str, AttrKind::Ints, AttrKind::DType]);
        return attr(r, other);
    }
    match kind {
        AttrKind::Int => AttrValue::Int(size(r)),
        AttrKind::Float => AttrValue::Float(float(r)),
        AttrKind::Bool => AttrValue::Bool(r.percent(50)),
        AttrKind::Str => AttrValue::Str("text".into()),
        AttrKind::Ints | AttrKind::Shape => AttrValue::Ints(sizes(r).into_iter().collect()),
        AttrKind::Floats => AttrValue::Floats((0..r.below(4)).map(|_| float(r)).collect()),
        AttrKind::DType => AttrValue::DType(dtype(r)),
        AttrKind::Scalar => AttrValue::Scalar(scalar(r)),
        _ => AttrValue::Bytes(vec![1u8, 2, 3].into()),
    }
}

/// A tensor of that shape and dtype, in a quarter of the cases with strides of its own.
pub fn tensor(r: &mut Random, shape: &[usize], dtype: DType, values: Values, device: Device) -> Result<Tensor> {
    let strided = r.percent(25) && !shape.is_empty();
    let mut base: Vec<usize> = shape.to_vec();
    let (way, dim) = (r.below(3), r.below(shape.len()));
    if strided {
        match way {
            0 => base.reverse(),
            1 => base[dim] = 2 * base[dim] + 1,
            _ => base[dim] = 1,
        }
    }
    let n: usize = base.iter().product();
    let data: Vec<f32> = (0..n)
        .map(|_| match values {
            Values::Below(k) if !r.percent(2) => r.below(k) as f32,
            Values::Positive => 0.25 + r.below(9) as f32,
            _ if r.percent(1) => *r.of(&[f32::NAN, f32::INFINITY, -1e30, 3e9, -3e9]),
            _ if dtype.is_float() => r.below(17) as f32 / 4.0 - 2.0,
            _ => r.below(6) as f32 - 1.0,
        })
        .collect();
    let mut x = from_vec(data, &base, device)?.cast(dtype)?;
    if strided {
        let d = dim as i64;
        x = match way {
            0 => x.permute((0..shape.len() as i64).rev().collect::<Vec<_>>())?,
            1 => x.slice(d, 1, i64::MAX, 2)?,
            _ => x.expand(shape.iter().map(|n| *n as i64).collect::<Vec<_>>())?,
        };
    }
    if dtype.is_float() && r.percent(8) { x.requires_grad_(true) } else { Ok(x) }
}

/// Any tensor; now and then one that a view makes larger than memory.
pub fn any_tensor(r: &mut Random, device: Device) -> Result<Tensor> {
    let (shape, dtype) = (shape(r), dtype(r));
    if r.percent(4) {
        let one = tensor(r, &[1], dtype, Values::Any, device)?;
        let huge: Vec<i64> = (0..1 + r.below(2)).map(|_| *r.of(&[1 << 40, 1 << 50, 1 << 58])).collect();
        // Two of the larger ones are refused.
        return one.expand(huge).or(Ok(one));
    }
    tensor(r, &shape, dtype, Values::Any, device)
}

/// A tensor as a sample of an op has it, or with one thing wrong.
pub fn like(r: &mut Random, spec: &Spec, device: Device) -> Result<Tensor> {
    let (mut shape, mut dtype, mut values) = (spec.shape.clone(), spec.dtype, spec.values);
    if r.percent(10) {
        dtype = self::dtype(r);
    }
    if r.percent(3) {
        values = Values::Any;
    }
    if r.percent(15) {
        match (r.below(4), shape.len()) {
            (0, n) if n > 0 => shape[r.below(n)] = r.below(5),
            (1, n) if n > 0 => drop(shape.remove(r.below(n))),
            (2, n) if n < 6 => shape.insert(r.below(n + 1), 1 + r.below(3)),
            (3, n) if n > 0 => shape[r.below(n)] = 0,
            _ => shape = self::shape(r),
        }
    }
    tensor(r, &shape, dtype, values, device)
}

/// A member of an index.
pub fn index(r: &mut Random, tensors: &[Tensor], device: Device) -> Result<TensorIndex> {
    let number = |r: &mut Random| *r.of(&[0, 1, -1, 2, 3, -2, 7, i64::MAX, i64::MIN, 1 << 40]);
    let bound = |r: &mut Random| (!r.percent(40)).then(|| number(r));
    Ok(match r.below(6) {
        0 => TensorIndex::Int(number(r)),
        1 => TensorIndex::Slice { start: bound(r), end: bound(r), step: number(r) },
        2 => TensorIndex::Ellipsis,
        3 => TensorIndex::NewAxis,
        4 if !tensors.is_empty() => r.of(tensors).clone().into(),
        _ => any_tensor(r, device)?.into(),
    })
}

/// What an argument looks like in a report.
pub fn tell(a: &Arg) -> String {
    match a {
        Arg::Tensor(t) => format!("{t:?}"),
        Arg::Tensors(v) => format!("{v:?}"),
        Arg::Target(t) => format!("{t:?}"),
        Arg::Generator(g) => format!("{g:?}"),
        Arg::Index(v) => v.iter().map(|i| i.to_string()).collect::<Vec<_>>().join(", "),
        Arg::Attr(v) => v.to_string(),
        Arg::None => "none".into(),
    }
}
