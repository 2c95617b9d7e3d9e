//! Combining values with a partial result, to the same bits as combining all values at once.

use crate::{DType, ReduceOp};
use oflow_base::Result;
use oflow_base::host_hierarchy::Width;
use oflow_kernels::cpu::accumulate::{accumulate, reduce_slices};
use oflow_kernels::cpu::lane::{Bf16Lane, F16Lane, Lane};
use smallvec::SmallVec;

/// Combines a partial with values, in this order, at the start of `dst`: as a partial again, or as the result. Sums of halves
/// are in f32 until the result, as if all values were combined at once.
pub(super) fn fold(
    dst: &mut [u8],
    partial: Option<&[u8]>,
    values: &[&[u8]],
    scratch: &mut Vec<u8>,
    (dtype, op): (DType, ReduceOp),
    whole: bool,
) -> Result<()> {
    let width = Width::reduced(dtype.size(), dtype.partial_size(op));
    if width.partial == width.element {
        let all: SmallVec<[&[u8]; 8]> = partial.into_iter().chain(values.iter().copied()).collect();
        return Ok(reduce_slices(dst, &all, dtype, op)?);
    }
    let mut rest = values;
    match partial {
        Some(p) => dst.copy_from_slice(p),
        None => {
            if let Some((first, others)) = values.split_first() {
                widen(dst, first, dtype);
                rest = others;
            }
        }
    }
    scratch.resize(dst.len().max(scratch.len()), 0);
    let room = dst.len();
    for value in rest {
        widen(&mut scratch[..room], value, dtype);
        accumulate(dst, &scratch[..room], DType::F32, op)?;
    }
    if whole {
        narrow(dst, dtype);
    }
    Ok(())
}

/// Halves as f32.
fn widen(dst: &mut [u8], src: &[u8], dtype: DType) {
    let (to, _) = dst.as_chunks_mut::<4>();
    let (from, _) = src.as_chunks::<2>();
    let pairs = to.iter_mut().zip(from);
    if dtype == DType::F16 {
        pairs.for_each(|(t, f)| *t = F16Lane(u16::from_ne_bytes(*f)).to_f32().to_ne_bytes());
    } else {
        pairs.for_each(|(t, f)| *t = Bf16Lane(u16::from_ne_bytes(*f)).to_f32().to_ne_bytes());
    }
}

/// f32 as halves, in the first half of the same place.
fn narrow(bytes: &mut [u8], dtype: DType) {
    for i in 0..bytes.len() / 4 {
        let wide = f32::from_ne_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
        let half = if dtype == DType::F16 { F16Lane::from_f32(wide).0 } else { Bf16Lane::from_f32(wide).0 };
        bytes[2 * i..2 * i + 2].copy_from_slice(&half.to_ne_bytes());
    }
}
