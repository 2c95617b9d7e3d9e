//! Places in sorted sequences, and counts of indices and of numbers in intervals.

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, InferCtx, OpDef};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::{DType, Dims};
use smallvec::smallvec;

const SEARCHSORTED: &str = "For each value the place where it can be inserted into a sorted sequence: how many of its elements are smaller, or with \
    `right` not greater. The sequence has one dim, or there is one for each row of x: then all dims but the last are those of x. NaN count as \
    the largest. Places are i64, or i32 with `out_int32`. A split sequence gives P(sum).

```
use oflow::prelude::*;
let sorted = from_vec(vec![1.0f32, 3.0, 5.0], [3], Device::Cpu)?;
let x = from_vec(vec![0.0f32, 3.0, 4.0], [3], Device::Cpu)?;
assert_eq!(sorted.searchsorted(&x)?.to_vec::<i64>()?, [0, 1, 2]);
# Ok::<(), oflow::Error>(())
```";

fn searchsorted() -> Result<OpDef> {
    Ok(OpDef::new("searchsorted(sorted, x; out_int32: bool = false, right: bool = false) -> y")?
        .doc(SEARCHSORTED)
        .function("searchsorted(Tensor sorted, Tensor x, *, Bool out_int32=false, Bool right=false) -> Tensor")
        .check(|c| {
            super::one_dtype(c, &[0, 1])?;
            let (sorted, x) = (c.shape(0)?, c.shape(1)?);
            match sorted {
                [] => Err(Error::shape("the sequence has no dim")),
                [_] => Ok(()),
                [lead @ .., _] if x.len() == sorted.len() && x.starts_with(lead) => Ok(()),
                _ => {
                    Err(Error::shape(format!("sequences {sorted:?} and values {x:?} differ in more than the last dim")))
                }
            }
        })
        .shape1(|c| Ok(c.shape(1)?.into()))
        .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| {
            Ok(smallvec![if c.bool("out_int32")? { DType::I32 } else { DType::I64 }])
        })))
        .get_sbp(|c| {
            let (lead, rank, b) = (c.shape(0)?.len() - 1, c.shape(1)?.len(), Sbp::Broadcast);
            let row = |d: usize| if d < lead { Sbp::Split(d) } else { b };
            let mut s: Vec<Signature> =
                (0..rank).map(|d| Signature::new(&[row(d), Sbp::Split(d)], &[Sbp::Split(d)])).collect();
            // Each rank counts those of its part.
            s.push(Signature::new(&[Sbp::Split(lead), b], &[Sbp::PARTIAL_SUM]));
            Ok(s)
        })
        .grad(Grad::None)
        .samples(&["i64[6]<1 i64[5]<2", "i32[3, 4]<1 i32[3, 5]<2; right=true", "u8[2]<1 u8[]<2; out_int32=true"]))
}

fn count_index() -> Result<OpDef> {
    Ok(OpDef::new("count_index(ids: int; size: int) -> counts")?
        .doc("How often each index below `size` occurs, i64.")
        .by_name_only()
        .checks_values()
        .check(|c| super::index_dtype(c, 0).and_then(|()| c.size("size")).map(drop))
        .shape1(|c| Ok(Dims::from_slice(&[c.size("size")?])))
        .dtype(DTypeRule::Fixed(vec![DType::I64]))
        .get_sbp(|c| {
            let split = (0..c.shape(0)?.len()).map(Sbp::Split);
            let mut s: Vec<Signature> = split.map(|d| Signature::new(&[d], &[Sbp::PARTIAL_SUM])).collect();
            s.push(Signature::new(&[Sbp::Broadcast], &[Sbp::Split(0)]));
            Ok(s)
        })
        .grad(Grad::None)
        .samples(&["i64[7]<5; size=5", "i32[3, 4]<4; size=6", "i64[]<2; size=2"]))
}

fn within(c: &InferCtx<'_>) -> Result<()> {
    match (c.input(0)?.dtype, c.size("bins")?) {
        (DType::F32 | DType::F64, 1..) => Ok(()),
        (DType::F32 | DType::F64, _) => Err(Error::argument("the number of intervals is 0: expected 1 or more")),
        (d, _) => {
            Err(Error::dtype(format!("a histogram is of f32 or f64, not of {d}")).help("`cast` the tensor first"))
        }
    }
}

fn histogram() -> Result<OpDef> {
    Ok(OpDef::new("histogram_within(x: float; bins: int, lo: runtime float, hi: runtime float) -> counts")?
        .doc(
            "How many elements lie in each of `bins` equal intervals between two bounds; the upper one belongs to the last interval. Others, \
             and NaN, are not counted.",
        )
        .by_name_only()
        .check(within)
        .values(|given| {
            let (lo, hi) = (given.runtime[0].to_f64(), given.runtime[1].to_f64());
            match lo < hi && lo.is_finite() && hi.is_finite() {
                true => Ok(()),
                false => Err(Error::argument(format!("the interval from {lo} to {hi} is empty"))),
            }
        })
        .shape1(|c| Ok(Dims::from_slice(&[c.size("bins")?])))
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let split = (0..c.shape(0)?.len()).map(Sbp::Split);
            Ok(split.map(|d| Signature::new(&[d], &[Sbp::PARTIAL_SUM])).collect())
        })
        .grad(Grad::None)
        .samples(&["f32[3, 5]; bins=4, lo=-1.0, hi=2.5", "f64[7]; bins=3, lo=-2.0, hi=2.0", "f32[]; bins=2, lo=-9.0, hi=9.0"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![searchsorted(), count_index(), histogram()]
}
