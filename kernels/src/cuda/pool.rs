//! Pooling; see [`crate::cpu::pool`]. A thread has an element of the output.

use super::{Args, Define, Launch, Queue, Source};
use crate::pool::{Divisor, Planes, PoolGeometry, Windows};
use crate::{DType, KernelError, Result, View};

pub(super) static POOL: Source =
    Source::file("pool", include_str!("../../cuda/pool.cu")).forms(&["T={f32,f64,bf16} FORM={0,1,2,3}"]);

/// `of_pool` of the source.
#[derive(Clone, Copy)]
#[repr(C)]
struct Pool {
    planes: i64,
    image: [i64; 3],
    result: [i64; 3],
    kernel: [i64; 3],
    stride: [i64; 3],
    padding: [i64; 3],
    dilation: [i64; 3],
    whole_image: [i64; 3],
    image_at: [i64; 3],
    whole_result: [i64; 3],
    result_at: [i64; 3],
    adaptive: i32,
    divisor: i32,
    fixed: i64,
}

fn launch(
    q: &Queue,
    form: i64,
    [image, result]: [&View; 2],
    place: &PoolGeometry,
    windows: &Windows,
    divisor: Divisor,
) -> Result<()> {
    let planes = Planes::of(image, result, place)?;
    let (from, to) = if form == 3 { (result, image) } else { (image, result) };
    let index = form == 1;
    if !from.dtype().is_float() || to.dtype() != (if index { DType::I64 } else { from.dtype() }) {
        return Err(KernelError::new(format!("pools floats, not {} into {}", from.dtype(), to.dtype())));
    }
    if to.is_empty() {
        return Ok(());
    }
    if planes.image.contains(&0) {
        return Err(KernelError::new(format!("an image of {:?} has no elements", image.dims())));
    }
    let all = |v: [usize; 3]| v.map(|v| v as i64);
    let (adaptive, [kernel, stride, padding, dilation]) = match *windows {
        Windows::Adaptive => (1, [[1; 3]; 4]),
        Windows::Sliding { kernel, stride, padding, dilation } => (0, [kernel, stride, padding, dilation]),
    };
    let (by, fixed) = match divisor {
        Divisor::Inside => (0, 0),
        Divisor::WithPadding => (1, 0),
        Divisor::Fixed(n) => (2, n),
    };
    let pool = Pool {
        planes: planes.count as i64,
        image: all(planes.image),
        result: all(planes.result),
        kernel: all(kernel),
        stride: all(stride),
        padding: all(padding),
        dilation: all(dilation),
        whole_image: all(place.image),
        image_at: all(place.image_at),
        whole_result: all(place.result),
        result_at: all(place.result_at),
        adaptive,
        divisor: by,
        fixed,
    };
    let f = q.function(&POOL, "pool", &[Define::int("FORM", form), Define::dtype("T", from.dtype())])?;
    let args = Args::new().view(from).view(to).value(pool);
    q.launch(f, Launch::new(q.blocks(to.len(), 256, 4), 256), args)
}

/// See [`max`](crate::cpu::pool::max).
///
/// # Errors
/// If the tensors do not fit.
pub fn max(q: &Queue, x: &View, windows: &Windows, place: &PoolGeometry, out: &View) -> Result<()> {
    launch(q, 0, [x, out], place, windows, Divisor::Inside)
}

/// See [`max_index`](crate::cpu::pool::max_index).
///
/// # Errors
/// If the tensors do not fit.
pub fn max_index(q: &Queue, x: &View, windows: &Windows, place: &PoolGeometry, out: &View) -> Result<()> {
    launch(q, 1, [x, out], place, windows, Divisor::Inside)
}

/// See [`avg`](crate::cpu::pool::avg).
///
/// # Errors
/// If the tensors do not fit.
pub fn avg(q: &Queue, x: &View, windows: &Windows, divisor: Divisor, place: &PoolGeometry, out: &View) -> Result<()> {
    launch(q, 2, [x, out], place, windows, divisor)
}

/// See [`avg_grad`](crate::cpu::pool::avg_grad).
///
/// # Errors
/// If the tensors do not fit.
pub fn avg_grad(
    q: &Queue,
    dy: &View,
    windows: &Windows,
    divisor: Divisor,
    place: &PoolGeometry,
    out: &View,
) -> Result<()> {
    launch(q, 3, [out, dy], place, windows, divisor)
}
