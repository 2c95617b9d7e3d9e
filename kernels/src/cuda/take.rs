//! Elements chosen by index along a dim; see [`crate::cpu::take`]. An index out of range is reported to the queue's fault slot.

use super::fill::fill;
use super::index::index_dtype;
use super::select::moved;
use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::take::{around, check_ids, check_last, check_take};
use crate::{DType, Result, Scalar, View};

pub(super) static TAKE: Source =
    Source::file("take", include_str!("../../cuda/take.cu")).forms(&["M={u8,f16,i32,i64} I=i64", "M=i32 I=i32"]);

/// Blocks of 256 threads, one element a thread up to a full GPU.
fn each(q: &Queue, n: usize) -> Launch {
    Launch::new(q.blocks(n, 256, 4), 256)
}

/// The macros of the file: what is moved, and the indices.
fn defines(ids: &View, moves: DType) -> Result<[Define; 2]> {
    Ok([moved(moves)?, index_dtype(ids)?])
}

/// See [`index_select`](crate::cpu::take::index_select). `logical` is the size of the whole dim.
///
/// # Errors
/// If the tensors do not fit.
pub fn index_select(q: &Queue, x: &View, ids: &View, out: &View, dim: usize, first: i64, logical: usize) -> Result<()> {
    check_take(x, ids, out, dim)?;
    if out.is_empty() {
        return super::index::check_ids(q, ids, logical);
    }
    let f = q.function(&TAKE, "index_select", &defines(ids, x.dtype())?)?;
    let args = Args::new()
        .view(out)
        .view(x)
        .view(ids)
        .value(out.len() as u64)
        .value(ids.len() as u64)
        .value(around(x.dims(), dim).1 as u64)
        .value(first)
        .value(x.dims()[dim] as i64)
        .value(logical as i64);
    q.launch(f, each(q, out.len()), q.fault_args(args))
}

/// See [`wrap_index`](crate::cpu::take::wrap_index).
///
/// # Errors
/// If the tensors do not fit.
pub fn wrap_index(q: &Queue, ids: &View, out: &View, size: usize) -> Result<()> {
    check_ids(ids, out)?;
    if out.is_empty() {
        return Ok(());
    }
    let f = q.function(&TAKE, "wrap_index", &defines(ids, DType::I64)?)?;
    let args = Args::new().view(out).view(ids).value(ids.len() as u64).value(size as i64);
    q.launch(f, each(q, out.len()), q.fault_args(args))
}

/// See [`last_index`](crate::cpu::take::last_index). `logical` is the number of rows of the whole list, which an index must be below.
///
/// # Errors
/// If the tensors do not fit.
pub fn last_index(q: &Queue, ids: &View, out: &View, first: i64, base: i64, logical: usize) -> Result<()> {
    check_last(ids, out)?;
    super::index::check_ids(q, ids, logical)?;
    fill(q, out, Scalar::Int(-1))?;
    if ids.is_empty() || out.is_empty() {
        return Ok(());
    }
    let f = q.function(&TAKE, "last_index", &defines(ids, DType::I64)?)?;
    let args = Args::new().view(out).view(ids).value(ids.len() as u64).value(out.len() as i64).value(first).value(base);
    q.launch(f, each(q, ids.len()), args)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::samples::Tensor;
    use crate::cpu::take as cpu;
    use crate::cuda::testing::Rig;
    use oflow_base::Random;

    fn ids(rng: &mut Random, dtype: DType, dims: &[usize], below: usize, from: i64) -> Tensor {
        let mut t = Tensor::contiguous(rng, dtype, dims);
        (0..t.len()).for_each(|i| t.set(i, Scalar::Int(from + rng.below(below) as i64)));
        t
    }

    #[test]
    fn rows_along_each_dim() {
        let Some(rig) = Rig::new() else { return };
        let mut rng = Random::new(11);
        for (dtype, index) in [(DType::F32, DType::I64), (DType::Bool, DType::I32), (DType::BF16, DType::I64)] {
            for dim in 0..3 {
                let x = Tensor::contiguous(&mut rng, dtype, &[4, 5, 6]);
                let by = ids(&mut rng, index, &[3, 2], 7, 0);
                let mut dims = vec![4, 5, 6];
                dims.splice(dim..=dim, [3, 2]);
                let y = Tensor::contiguous(&mut rng, dtype, &dims);
                let (gx, gb, gy) = (rig.put(&x), rig.put(&by), rig.put(&y));
                cpu::index_select(&x.view(), &by.view(), &y.view(), dim, 2).unwrap();
                index_select(&rig.queue(), &gx.view(), &gb.view(), &gy.view(), dim, 2, 7).unwrap();
                rig.expect(&gy, &y, 0.0, "index_select");
                assert_eq!(rig.faults.take(), None);
            }
        }
    }

    #[test]
    fn positions() {
        let Some(rig) = Rig::new() else { return };
        let mut rng = Random::new(12);
        let by = ids(&mut rng, DType::I32, &[40], 10, -5);
        let y = Tensor::contiguous(&mut rng, DType::I64, &[40]);
        let (gb, gy) = (rig.put(&by), rig.put(&y));
        cpu::wrap_index(&by.view(), &y.view(), 5).unwrap();
        wrap_index(&rig.queue(), &gb.view(), &gy.view(), 5).unwrap();
        rig.expect(&gy, &y, 0.0, "wrap_index");
        let last = Tensor::contiguous(&mut rng, DType::I64, &[6]);
        let gl = rig.put(&last);
        cpu::last_index(&y.view(), &last.view(), 2, 100).unwrap();
        last_index(&rig.queue(), &gy.view(), &gl.view(), 2, 100, 8).unwrap();
        rig.expect(&gl, &last, 0.0, "last_index");
        wrap_index(&rig.queue(), &gb.view(), &gy.view(), 4).unwrap();
        rig.get(&gy);
        let fault = rig.faults.take().unwrap();
        assert!((fault.low, fault.high) == (-4, 4) && !(-4..4).contains(&fault.value));
    }
}
