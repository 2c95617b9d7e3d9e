//! Rotary position embedding; see [`crate::cpu::rotary`]. A thread has an element of the output.

use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::rotary::rows;
use crate::{KernelError, Result, View};

pub(super) static ROTARY: Source =
    Source::file("rotary", include_str!("../../cuda/rotary.cu")).forms(&["T={f32,f64,bf16}"]);

/// Dims that a kernel takes (`OF_MAX_RANK`).
const MOST: usize = 8;

/// `of_rotary` of the source.
#[derive(Clone, Copy)]
#[repr(C)]
struct Rotary {
    rows: i64,
    width: i64,
    pairs: i64,
    interleaved: i64,
    rank: i32,
    pad: i32,
    size: [i64; MOST],
    row: [[i64; MOST]; 4],
    step: [i64; 4],
}

/// See [`rotary`](crate::cpu::rotary::rotary).
///
/// # Errors
/// If the tensors do not fit, or rows lie apart in more than 8 dims.
pub fn rotary(q: &Queue, x: &View, cos: &View, sin: &View, interleaved: bool, out: &View) -> Result<()> {
    let rows = rows(x, cos, sin, out)?;
    if out.is_empty() {
        return Ok(());
    }
    let (dims, strides) = (&rows.walk.dims, &rows.walk.strides);
    if dims.len() > MOST {
        return Err(KernelError::new(format!("rows lie apart in {} dims; a GPU's kernel takes {MOST}", dims.len())));
    }
    let p = Rotary {
        rows: dims.iter().product::<usize>() as i64,
        width: rows.width as i64,
        pairs: rows.pairs as i64,
        interleaved: i64::from(interleaved),
        rank: dims.len() as i32,
        pad: 0,
        size: std::array::from_fn(|d| dims.get(d).map_or(1, |n| *n as i64)),
        row: std::array::from_fn(|k| std::array::from_fn(|d| strides[k].get(d).map_or(0, |s| *s as i64))),
        step: rows.steps.map(|s| s as i64),
    };
    let f = q.function(&ROTARY, "rotary", &[Define::dtype("T", x.dtype())])?;
    let args = Args::new().view(out).view(x).view(cos).view(sin);
    q.launch_with(f, Launch::new(q.blocks(out.len(), 256, 4), 256), args, &p)
}
