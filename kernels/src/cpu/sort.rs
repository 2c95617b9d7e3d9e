//! Order along a dim: lines sorted, their first elements, one of their elements; each with the positions in the line. All tensors
//! are contiguous.
//!
//! An element becomes an unsigned key that is ordered as elements are, and the key with the position one integer. So comparisons are
//! those of integers, and equal elements keep their order, whatever is done with the integers.

mod key;
mod lines;

use super::lane::native;
use super::take::around;
use crate::parallel::{GRAIN, parallel_for};
use crate::{DType, KernelError, Result, View};
use key::{Ordered, Word, with_keys};
use lines::Room;

/// Element of a line that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nth {
    /// The element at that place of the sorted line.
    At(usize),
    /// The element in the middle, of an even number the lower one; the first NaN, if there is one.
    Median,
}

impl Nth {
    /// The place in a sorted line of `n` elements.
    pub fn place(self, n: usize) -> usize {
        match self {
            Nth::At(place) => place,
            Nth::Median => n.saturating_sub(1) / 2,
        }
    }
}

/// Checks that the outputs have x's dims, but `count` elements along `dim`.
pub(crate) fn check(x: &View, values: &View, indices: &View, dim: usize, count: usize) -> Result<()> {
    let fits = dim < x.rank()
        && count <= x.dims()[dim]
        && [values, indices].iter().all(|v| {
            v.rank() == x.rank()
                && (0..x.rank()).all(|d| v.dims()[d] == if d == dim { count } else { x.dims()[d] })
                && v.is_contiguous()
        });
    match fits && x.is_contiguous() && values.dtype() == x.dtype() && indices.dtype() == DType::I64 {
        true => Ok(()),
        false => Err(KernelError::new(format!(
            "{count} of {} {:?} in order along {dim} into {} {:?} and {} {:?}: they do not fit or are not contiguous",
            x.dtype(),
            x.dims(),
            values.dtype(),
            values.dims(),
            indices.dtype(),
            indices.dims()
        ))),
    }
}

/// The lines along `dim` sorted, and where their elements stood. NaN are greater than all others; equal elements keep their order, also
/// with `descending`. The outputs may have fewer elements along `dim`: the first of the sorted line.
///
/// # Errors
/// If the tensors do not fit or are not contiguous.
pub fn sort(x: &View, values: &View, indices: &View, dim: usize, descending: bool) -> Result<()> {
    let count = values.dims().get(dim).copied().unwrap_or(0);
    check(x, values, indices, dim, count)?;
    let n = x.dims()[dim];
    let bytes = x.dtype().size();
    with_keys!(native(x.dtype())?, n, T, W => {
        each_line::<T, W>([x, values, indices], dim, descending, &|keys, room| match count == n {
            true => room.sort(keys, bytes),
            false => room.least(keys, count, bytes),
        });
    });
    Ok(())
}

/// One element of each line along `dim`, and where it stands; of equal ones at several places of the sorted line the later ones
/// stand later.
///
/// # Errors
/// If the tensors do not fit or are not contiguous, or lines have no such place.
pub fn nth(x: &View, values: &View, indices: &View, dim: usize, which: Nth) -> Result<()> {
    check(x, values, indices, dim, 1)?;
    let n = x.dims()[dim];
    let place = which.place(n);
    if place >= n {
        return Err(KernelError::new(format!("lines of {n} elements have no place {place}")));
    }
    let nan = which == Nth::Median && x.dtype().is_float();
    with_keys!(native(x.dtype())?, n, T, W => {
        let most = <T as Ordered<W>>::key(crate::cpu::lane::Lane::from_f64(f64::NAN));
        each_line::<T, W>([x, values, indices], dim, false, &|keys, room| {
            match keys.iter().position(|k| nan && *k == most) {
                Some(at) => {
                    room.pairs.clear();
                    room.pairs.push(most.at(at));
                }
                None => room.nth(keys, place),
            }
        });
    });
    Ok(())
}

/// Columns that are worked on together where the dim is not the last: their elements are neighbours.
const COLUMNS: usize = 16;

/// Runs `choose` on the keys of each line of the first view, inverted if they are to be read from the greatest. The pairs that then
/// stand in front say which elements go to the other two: values and positions.
fn each_line<T: Ordered<W>, W: Word>(
    [x, values, indices]: [&View; 3],
    dim: usize,
    inverted: bool,
    choose: &(dyn Fn(&[W], &mut Room<W>) + Sync),
) {
    if values.is_empty() {
        return;
    }
    let (n, count) = (x.dims()[dim], values.dims()[dim]);
    let (outer, inner) = around(x.dims(), dim);
    // Few columns of long lines, so that the keys stay in a cache.
    let width = (GRAIN / n).clamp(1, COLUMNS).min(inner);
    let parts = inner.div_ceil(width);
    let (from, to, at) = (x.ptr() as usize, values.ptr() as usize, indices.ptr() as usize);
    parallel_for(outer * parts, (GRAIN / (n * width)).max(1), &|range| {
        let (mut room, mut keys) = (Room::<W>::new(), vec![W::default(); n * width]);
        let mut chosen = vec![W::Pair::default(); count * width];
        for task in range {
            let (block, first) = (task / parts, task % parts * width);
            let columns = width.min(inner - first);
            let source = (from as *const T).wrapping_add(block * n * inner + first);
            let load = |i: usize, c: usize| {
                // SAFETY: element `i` of column `first + c` of block `block` of x.
                let key = unsafe { source.wrapping_add(i * inner + c).read() }.key();
                if inverted { !key } else { key }
            };
            if inner == 1 {
                keys.iter_mut().enumerate().for_each(|(i, k)| *k = load(i, 0));
            } else {
                for i in 0..n {
                    (0..columns).for_each(|c| keys[c * n + i] = load(i, c));
                }
            }
            for c in 0..columns {
                choose(&keys[c * n..(c + 1) * n], &mut room);
                if columns > 1 {
                    chosen[c * count..(c + 1) * count].copy_from_slice(&room.pairs[..count]);
                }
            }
            let pairs = if columns > 1 { &chosen[..] } else { &room.pairs[..count] };
            for i in 0..count {
                for c in 0..columns {
                    let position = W::position(pairs[c * count + i]);
                    let place = (block * count + i) * inner + first + c;
                    // SAFETY: an element of the same column of x; the element of the outputs belongs to this task.
                    unsafe {
                        let value = source.wrapping_add(position * inner + c).read();
                        (to as *mut T).wrapping_add(place).write(value);
                        (at as *mut i64).wrapping_add(place).write(position as i64);
                    }
                }
            }
        }
    });
}
