//! Resampling; see [`crate::cpu::resample`]. A thread has an element of the output.

use super::select::moved;
use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::resample::planes;
use crate::resample::Line;
use crate::{DType, KernelError, Result, View};

pub(super) static RESAMPLE: Source = Source::file("resample", include_str!("../../cuda/resample.cu")).forms(&[
    "FORM=0 M={u8,f16,i32} S=f32",
    "FORM=0 M=i64 S={f32,f64}",
    "FORM={1,2} T={f32,bf16} S=f32",
    "FORM={1,2} T=f64 S=f64",
]);

/// `of_line` of the source.
#[derive(Clone, Copy)]
#[repr(C)]
struct OfLine {
    image: i64,
    result: i64,
    before: i64,
    count: i64,
    stride: i64,
    padding: i64,
    dilation: i64,
    step: f64,
    rule: i32,
    aligned: i32,
}

/// `of_resample` of the source.
#[derive(Clone, Copy)]
#[repr(C)]
struct OfResample {
    planes: i64,
    line: [OfLine; 3],
}

fn launch(q: &Queue, form: i64, planes: usize, lines: &[Line], from: &View, to: &View) -> Result<()> {
    if to.is_empty() {
        return Ok(());
    }
    let wide = from.dtype() == DType::F64;
    if form > 0 && !from.dtype().is_float() {
        return Err(KernelError::new(format!("weights elements of floats, not {}", from.dtype())));
    }
    let line = |d: usize| {
        // Dims before the resampled ones have one element and stay as they are.
        let l = match (d + lines.len()).checked_sub(3) {
            Some(d) => lines[d],
            None => Line { image: 1, result: 1, before: 0, rule: crate::resample::Rule::Replicate, ..lines[0] },
        };
        OfLine {
            image: l.image as i64,
            result: l.result as i64,
            before: l.before,
            count: l.count,
            stride: l.stride,
            padding: l.padding,
            dilation: l.dilation,
            step: l.step(wide),
            rule: l.rule as i32,
            aligned: i32::from(l.aligned),
        }
    };
    let p = OfResample { planes: planes as i64, line: std::array::from_fn(line) };
    let element = if form == 0 { moved(from.dtype())? } else { Define::dtype("T", from.dtype()) };
    let coordinate = Define::dtype("S", if wide { DType::F64 } else { DType::F32 });
    let f = q.function(&RESAMPLE, "resample", &[Define::int("FORM", form), element, coordinate])?;
    q.launch(f, Launch::new(q.blocks(to.len(), 256, 4), 256), Args::new().view(from).view(to).value(p))
}

/// See [`resample`](crate::cpu::resample::resample).
///
/// # Errors
/// If the tensors do not fit.
pub fn resample(q: &Queue, x: &View, lines: &[Line], out: &View) -> Result<()> {
    let form = i64::from(!lines.iter().all(|l| l.rule.moves()));
    launch(q, form, planes(x, out, lines)?, lines, x, out)
}

/// See [`resample_grad`](crate::cpu::resample::resample_grad).
///
/// # Errors
/// If the tensors do not fit.
pub fn resample_grad(q: &Queue, dy: &View, lines: &[Line], out: &View) -> Result<()> {
    launch(q, 2, planes(out, dy, lines)?, lines, dy, out)
}
