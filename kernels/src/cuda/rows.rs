//! Views as rows, as `rows.cuh` takes them: tensors of one shape whose rows several threads share.

use super::{Define, Launch};
use crate::cpu::strided::Walk;
use crate::{DType, KernelError, Result, View};
use smallvec::SmallVec;

/// As many dims as kernels take after neighbours have been merged (`OF_MAX_RANK`).
pub(super) const MAX_RANK: usize = 8;

/// `of_shape`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Shape {
    pub rank: i32,
    pub pad: i32,
    pub size: [i64; MAX_RANK],
}

impl Shape {
    /// # Errors
    /// If there are more dims than kernels take.
    pub fn new(dims: &[usize]) -> Result<Shape> {
        if dims.len() > MAX_RANK {
            return Err(KernelError::new(format!(
                "a CUDA kernel takes at most {MAX_RANK} dims that are not neighbours in memory, not {dims:?}"
            )));
        }
        let mut shape = Shape { rank: dims.len() as i32, ..Shape::default() };
        shape.size.iter_mut().zip(dims).for_each(|(to, d)| *to = *d as i64);
        Ok(shape)
    }
}

/// `of_strides`; of dims that [`Shape::new`] took.
pub(super) fn strides(of: &[isize]) -> [i64; MAX_RANK] {
    let mut all = [0; MAX_RANK];
    all.iter_mut().zip(of).for_each(|(to, s)| *to = *s as i64);
    all
}

/// `of_rows`: the rows of N tensors of one shape.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<const N: usize> {
    pub count: u64,
    pub len: i64,
    outer: Shape,
    inner: Shape,
    starts: [[i64; MAX_RANK]; N],
    steps: [[i64; MAX_RANK]; N],
}

/// Dims that a view shares with the others.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extent<'a> {
    /// All.
    Whole(&'a View),
    /// The dims of a row: the same elements for every row.
    Row(&'a View),
    /// The dims that number the rows: one element a row.
    PerRow(&'a View),
}

impl<'a> Extent<'a> {
    fn view(self) -> &'a View {
        match self {
            Extent::Whole(v) | Extent::Row(v) | Extent::PerRow(v) => v,
        }
    }
    /// The stride in dim `d` of the whole, of which the first `lead` number the rows.
    fn stride(self, d: usize, lead: usize) -> isize {
        match self {
            Extent::Whole(v) => v.strides()[d],
            Extent::Row(v) => {
                if d < lead {
                    0
                } else {
                    v.strides()[d - lead]
                }
            }
            Extent::PerRow(v) => {
                if d < lead {
                    v.strides()[d]
                } else {
                    0
                }
            }
        }
    }
}

impl<const N: usize> Rows<N> {
    /// The rows along one dim of views of the same dims.
    pub fn along(views: [&View; N], dim: usize) -> Result<Rows<N>> {
        Self::new(views[0].dims(), |d| d == dim, |k, d| views[k].strides()[d])
    }
    /// The rows made of the last `dims` dims; the first of the views is whole.
    pub fn trailing(parts: [Extent; N], dims: usize) -> Result<Rows<N>> {
        let whole = parts[0].view().dims();
        let lead = whole.len() - dims;
        Self::new(whole, |d| d >= lead, |k, d| parts[k].stride(d, lead))
    }

    fn new(all: &[usize], inside: impl Fn(usize) -> bool, stride: impl Fn(usize, usize) -> isize) -> Result<Rows<N>> {
        let part = |wanted: bool| -> Result<(Shape, [[i64; MAX_RANK]; N])> {
            let picked: SmallVec<[usize; 6]> = (0..all.len()).filter(|d| inside(*d) == wanted).collect();
            let dims: crate::Dims = picked.iter().map(|d| all[*d]).collect();
            let of: [crate::Strides; N] = std::array::from_fn(|k| picked.iter().map(|d| stride(k, *d)).collect());
            let operands: SmallVec<[&[isize]; 8]> = of.iter().map(|s| s.as_slice()).collect();
            // The order of elements within a row and of rows is the logical one.
            let walk = Walk::new(&dims, &operands, false);
            Ok((Shape::new(&walk.dims)?, std::array::from_fn(|k| strides(&walk.strides[k]))))
        };
        let (outer, starts) = part(false)?;
        let (inner, steps) = part(true)?;
        let product = |s: &Shape| s.size[..s.rank as usize].iter().product::<i64>();
        Ok(Rows { count: product(&outer) as u64, len: product(&inner), outer, inner, starts, steps })
    }

    /// Whether the elements of a row are neighbours in the first `views` tensors.
    pub fn packed(&self, views: usize) -> bool {
        self.len <= 1 || (self.inner.rank == 1 && self.steps[..views].iter().all(|s| s[0] == 1))
    }

    /// How many neighbouring elements of packed rows can be taken at once: every row of these first tensors starts at a
    /// multiple of as many (or of 16 bytes), and the length is one.
    pub fn width(&self, views: &[&View]) -> usize {
        let most = views.iter().map(|v| 16 / v.dtype().size()).max().unwrap_or(1);
        let outer = self.outer.rank as usize;
        let fits = |width: usize| {
            self.len % width as i64 == 0
                && views.iter().zip(&self.starts).all(|(v, starts)| {
                    let bytes = (width * v.dtype().size()).min(16);
                    let multiple = |s: i64| (s * v.dtype().size() as i64) % bytes as i64 == 0;
                    (v.ptr() as usize).is_multiple_of(bytes) && starts[..outer].iter().all(|s| multiple(*s))
                })
        };
        std::iter::successors(Some(most), |w| Some(w / 2)).find(|w| *w <= 1 || fits(*w)).unwrap_or(1).max(1)
    }
}

/// How threads share a packed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sharing {
    /// Elements loaded at once.
    pub width: usize,
    /// Threads of a row: a power of two up to a warp, or a block of several.
    pub threads: usize,
    /// Groups of `width` elements that each thread keeps; 0: more than fit, so the row is read again.
    pub kept: usize,
}

impl Sharing {
    /// For rows of `len` elements of which a thread may keep `room` (a power of two).
    pub fn of(len: usize, width: usize, room: usize) -> Sharing {
        let groups = len.div_ceil(width).max(1);
        let threads = if len <= 32 * room {
            groups.next_power_of_two().min(32)
        } else {
            // A block: few elements a thread, so that many loads of many warps are on their way.
            (len / (room / 2).max(width)).next_power_of_two().clamp(128, 1024)
        };
        let kept = groups.div_ceil(threads);
        if kept * width <= room.max(width) {
            Sharing { width, threads, kept }
        } else {
            Sharing { width, threads: 512, kept: 0 }
        }
    }
    /// The macros `VEC`, `ROW` and `PER`.
    pub fn defines(&self) -> [Define; 3] {
        [
            Define::int("VEC", self.width as i64),
            Define::int("ROW", self.threads as i64),
            Define::int("PER", self.kept as i64),
        ]
    }
    /// Blocks for `count` rows, of `small` threads where a row has no block of its own.
    pub fn launch(&self, count: u64, small: usize) -> Launch {
        let threads = if self.threads > 32 { self.threads } else { small };
        Launch::new(blocks(count, (threads / self.threads) as u64), threads as u32)
    }
}

/// Blocks for `count` pieces of work of which a block does `each` at a time; kernels go on where there are too few.
pub(super) fn blocks(count: u64, each: u64) -> u32 {
    count.div_ceil(each).min(1 << 30) as u32
}

/// Elements that a thread may keep in registers of a row of one tensor, in the type that `dtype` is computed in.
pub(super) fn room(dtype: DType) -> usize {
    if dtype == DType::F64 { 16 } else { 32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::contiguous_strides;

    fn view(address: usize, dtype: DType, dims: &[usize], strides: &[isize]) -> View {
        // SAFETY: never read.
        unsafe { View::from_raw(address as *mut u8, dtype, dims.into(), strides.into()) }
    }

    #[test]
    fn rows_merge_and_know_their_alignment() {
        let x = view(256, DType::F32, &[4, 3, 8], &contiguous_strides(&[4, 3, 8]));
        let r = Rows::along([&x, &x], 2).unwrap();
        assert_eq!((r.count, r.len, r.outer.rank, r.packed(2), r.width(&[&x, &x])), (12, 8, 1, true, 4));
        let shifted = view(264, DType::F32, &[4, 3, 8], &contiguous_strides(&[4, 3, 8]));
        assert_eq!(r.width(&[&x, &shifted]), 2);
        let r = Rows::along([&x], 1).unwrap();
        assert_eq!((r.count, r.len, r.outer.rank, r.packed(1)), (32, 3, 2, false));
        let w = view(256, DType::F32, &[3, 8], &[8, 1]);
        let s = view(256, DType::F32, &[4], &[1]);
        let r = Rows::trailing([Extent::Whole(&x), Extent::Row(&w), Extent::PerRow(&s)], 2).unwrap();
        assert_eq!((r.count, r.len, r.packed(2), r.packed(3), r.width(&[&x, &w])), (4, 24, true, false, 4));
        assert_eq!((r.starts[0][0], r.starts[1][0], r.starts[2][0]), (24, 0, 1));
        let odd = view(256, DType::BF16, &[4, 6], &[6, 1]);
        assert_eq!(Rows::along([&odd], 1).unwrap().width(&[&odd]), 2);
        // f32 beside halves: as many as fill 16 bytes of halves.
        let half = view(256, DType::BF16, &[4, 16], &[16, 1]);
        let wide = view(256, DType::F32, &[4, 16], &[16, 1]);
        assert_eq!(Rows::along([&half, &wide], 1).unwrap().width(&[&half, &wide]), 8);
        let scalar = view(256, DType::BF16, &[], &[]);
        let r = Rows::trailing([Extent::Whole(&scalar)], 0).unwrap();
        assert_eq!((r.count, r.len, r.packed(1)), (1, 1, true));
    }

    #[test]
    fn rows_of_any_length_are_shared() {
        for room in [16, 32] {
            for width in [1, 2, 4, 8] {
                for len in (1..=64).chain([100, 768, 1000, 1024, 1025, 4096, 30_000, 32_768, 50_257, 100_000]) {
                    let s = Sharing::of(len, width, room);
                    assert!(s.threads.is_power_of_two() && s.threads <= 1024 && s.threads != 64, "{len}: {s:?}");
                    assert!(s.kept == 0 || s.kept * s.threads * width >= len, "{len}: {s:?}");
                    assert!(s.kept * width <= room, "{len}: {s:?}");
                    assert!(s.kept > 0 || len > 1024 * room / 2, "{len}: {s:?}");
                }
            }
        }
    }
}
