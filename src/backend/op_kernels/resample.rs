//! Kernels of padding and resampling.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::View;
use oflow_kernels::resample::{self, Line, Rule};
use smallvec::SmallVec;

/// The lines of a call: its input is the image, or with `back` the output.
fn lines(cx: &KernelCx<'_>, back: bool) -> Result<Vec<Line>> {
    let (from, to) = (cx.input(0)?.dims(), cx.output(0).dims());
    let (image, result) = if back { (to, from) } else { (from, to) };
    let n = cx.ints("size")?.len();
    let last = |dims: &[usize]| dims[dims.len().saturating_sub(n)..].to_vec();
    let (steps, scales) = (cx.ints("steps")?, cx.floats("scales")?);
    Ok(resample::lines(Rule::named(cx.str("mode")?)?, cx.bool("aligned")?, steps, scales, &last(image), &last(result))?)
}

/// Elements of this rank's part of x that a padded tensor takes, where they go, and the parts of the output around them,
/// each element once.
fn padded(cx: &KernelCx<'_>) -> Result<(View, View, Vec<View>)> {
    let (x, out) = (cx.input(0)?, cx.output(0));
    let (from, to, before) = (cx.input_box(0)?, cx.output_box(0), cx.ints("before")?);
    let rank = out.rank();
    let mut parts = vec![];
    // The window of the output that has elements, dim by dim, and where it begins in x.
    let (mut offset, mut size): (SmallVec<[usize; 6]>, SmallVec<[usize; 6]>) =
        (SmallVec::from_elem(0, rank), out.dims().into());
    let mut start: SmallVec<[usize; 6]> = SmallVec::from_elem(0, rank);
    for d in 0..rank {
        let (low, high) = (from.offset[d] as i64 + before[d], (from.offset[d] + from.size[d]) as i64 + before[d]);
        let (first, last) = (to.offset[d] as i64, (to.offset[d] + to.size[d]) as i64);
        let a = low.clamp(first, last);
        let b = high.clamp(a, last);
        for (from, to) in [(first, a), (b, last)] {
            if to > from {
                let (mut o, mut s) = (offset.clone(), size.clone());
                (o[d], s[d]) = ((from - first) as usize, (to - from) as usize);
                parts.push(out.sub_box(&o, &s)?);
            }
        }
        (offset[d], size[d]) = ((a - first) as usize, (b - a) as usize);
        start[d] = if a < b { (a - low) as usize } else { 0 };
    }
    Ok((x.sub_box(&start, &size)?, out.sub_box(&offset, &size)?, parts))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("pad_constant", |on, cx| {
            let (from, to, parts) = padded(cx)?;
            let value = cx.scalar("value")?;
            parts.iter().try_for_each(|part| run!(on, copy::fill(part, value)))?;
            run!(on, copy::copy(&from, &to))
        }),
        both("resample", |on, cx| run!(on, resample::resample(cx.input(0)?, &lines(cx, false)?, cx.output(0)))),
        both("resample_grad", |on, cx| {
            run!(on, resample::resample_grad(cx.input(0)?, &lines(cx, true)?, cx.output(0)))
        }),
    ]
}
