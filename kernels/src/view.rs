//! View of a kernel: a strided window onto memory, and where that window lies in the logical tensor.

use crate::{DType, Element, KernelError, Result};
use smallvec::SmallVec;

/// Sizes of a tensor's dims. Inline up to six.
pub type Dims = SmallVec<[usize; 6]>;
/// Strides of a tensor's dims, in elements. Zero repeats an element (expand); negative strides are allowed.
pub type Strides = SmallVec<[isize; 6]>;

/// Copies dims or strides; views are copied several times in a call. Few of them are stored one by one, which is less than to
/// call a function that copies any number of bytes.
#[inline]
pub fn copied<T: Copy + Default>(of: &[T]) -> SmallVec<[T; 6]> {
    let o = T::default();
    match *of {
        [a] => SmallVec::from_buf_and_len([a, o, o, o, o, o], 1),
        [a, b] => SmallVec::from_buf_and_len([a, b, o, o, o, o], 2),
        [a, b, c] => SmallVec::from_buf_and_len([a, b, c, o, o, o], 3),
        [a, b, c, d] => SmallVec::from_buf_and_len([a, b, c, d, o, o], 4),
        _ => SmallVec::from_slice(of),
    }
}

/// Row-major strides of a contiguous tensor. They wrap where the product of the sizes is larger than any tensor.
pub fn contiguous_strides(dims: &[usize]) -> Strides {
    let mut strides: Strides = SmallVec::from_elem(0, dims.len());
    let mut step = 1isize;
    for d in (0..dims.len()).rev() {
        strides[d] = step;
        step = step.wrapping_mul(dims[d].max(1) as isize);
    }
    strides
}

/// The position of a shard in its logical tensor: an offset and a size per dim. Kernels whose results depend on the logical
/// position (random, tril, arange, embedding) use it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ShardBox {
    /// Sizes of the logical tensor.
    pub logical: Dims,
    /// First logical index of the shard in each dim.
    pub offset: Dims,
    /// Sizes of the shard.
    pub size: Dims,
}

impl ShardBox {
    /// Makes the box of a whole tensor.
    pub fn whole(dims: &[usize]) -> Self {
        ShardBox { logical: dims.into(), offset: SmallVec::from_elem(0, dims.len()), size: dims.into() }
    }
    /// True when the shard is the whole tensor.
    pub fn is_whole(&self) -> bool {
        self.logical == self.size
    }
}

/// A strided window onto the memory of one device. Plain data: pointer, dtype, dims, strides.
#[derive(Debug)]
pub struct View {
    ptr: *mut u8,
    dtype: DType,
    dims: Dims,
    strides: Strides,
}

impl Clone for View {
    // A derived clone would copy dims and strides element by element; views are cloned on every call.
    fn clone(&self) -> View {
        View { ptr: self.ptr, dtype: self.dtype, dims: copied(&self.dims), strides: copied(&self.strides) }
    }
}

// SAFETY: a View is a pointer with a description; whoever makes one (`View::from_raw`) promises that the memory may be
// used from the thread a kernel runs on, including the worker threads that `parallel_for` hands sub-ranges to.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// Describes memory as a tensor.
    ///
    /// # Safety
    /// Until the last use of the view (and of views derived from it): every element addressed by `dims` and `strides`
    /// from `ptr` lies in one live allocation aligned for `dtype` and initialised; when the view is given to a kernel as
    /// an output, no other thread reads or writes those elements, and no two indices of the view address one element.
    pub unsafe fn from_raw(ptr: *mut u8, dtype: DType, dims: Dims, strides: Strides) -> Self {
        debug_assert_eq!(dims.len(), strides.len());
        debug_assert_eq!(ptr as usize % dtype.align(), 0, "misaligned");
        View { ptr, dtype, dims, strides }
    }

    /// A contiguous view of a slice, for reading. The borrow is not tracked: keep the slice alive.
    ///
    /// # Safety
    /// As for [`View::from_raw`]; additionally never used as an output.
    pub unsafe fn from_slice<T: Element>(data: &[T], dims: &[usize]) -> Self {
        assert_eq!(data.len(), dims.iter().product::<usize>());
        // SAFETY: the slice covers all elements and is aligned; the caller keeps it alive and does not write.
        unsafe { View::from_raw(data.as_ptr() as *mut u8, T::DTYPE, dims.into(), contiguous_strides(dims)) }
    }

    /// A contiguous view of a mutable slice, for writing. The borrow is not tracked: keep the slice alive.
    ///
    /// # Safety
    /// As for [`View::from_raw`].
    pub unsafe fn from_mut<T: Element>(data: &mut [T], dims: &[usize]) -> Self {
        assert_eq!(data.len(), dims.iter().product::<usize>());
        // SAFETY: the slice covers all elements, is aligned and exclusively borrowed by the caller.
        unsafe { View::from_raw(data.as_mut_ptr() as *mut u8, T::DTYPE, dims.into(), contiguous_strides(dims)) }
    }

    /// Address of element zero.
    #[inline]
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }
    /// Returns the element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }
    /// Returns the sizes of the dims.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }
    /// Strides in elements.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }
    /// Number of dims.
    #[inline]
    pub fn rank(&self) -> usize {
        self.dims.len()
    }
    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }
    /// True when there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }
    /// True when the elements lie in row-major order without gaps (dims of size 1 do not count).
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(&self.dims, &self.strides)
    }

    /// The same memory seen with other dims and strides, starting `offset` elements later.
    ///
    /// # Safety
    /// As for [`View::from_raw`].
    pub unsafe fn restride(&self, offset: isize, dims: Dims, strides: Strides) -> View {
        let bytes = offset * self.dtype.size() as isize;
        View { ptr: self.ptr.wrapping_offset(bytes), dtype: self.dtype, dims, strides }
    }

    /// The same memory as elements of the built-in dtype that the elements are stored as: how a kernel reads and writes a
    /// registered dtype.
    pub fn stored(&self) -> View {
        View { dtype: self.dtype.storage().dtype(), ..self.clone() }
    }

    /// The sub-box that starts at `offset` and has sizes `size`; an error if it does not lie inside.
    pub fn sub_box(&self, offset: &[usize], size: &[usize]) -> Result<View> {
        if offset.len() != self.rank()
            || size.len() != self.rank()
            || (0..self.rank()).any(|d| offset[d].checked_add(size[d]).is_none_or(|end| end > self.dims[d]))
        {
            return Err(KernelError::new(format!("box {offset:?}+{size:?} is outside dims {:?}", self.dims)));
        }
        // Of an empty box nothing is addressed; its offset may be the end of a dim.
        let start: isize = match size.contains(&0) {
            true => 0,
            false => (0..self.rank()).map(|d| offset[d] as isize * self.strides[d]).sum(),
        };
        // SAFETY: every element of the sub-box is an element of this view.
        Ok(unsafe { self.restride(start, size.into(), self.strides.clone()) })
    }

    /// The elements of a contiguous view.
    ///
    /// # Errors
    /// If the dtype is another one, or if the view is not contiguous.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check_slice::<T>()?;
        if self.is_empty() {
            return Ok(&[]);
        }
        // SAFETY: contiguous and typed (checked above); live and initialised by the contract of `from_raw`.
        Ok(unsafe { std::slice::from_raw_parts(self.ptr as *const T, self.len()) })
    }

    /// The elements of a contiguous output view, for writing.
    ///
    /// # Safety
    /// The view was made for an output (see [`View::from_raw`]) and no other slice of it is alive.
    ///
    /// # Errors
    /// If the dtype is another one, or if the view is not contiguous.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn as_mut_slice<T: Element>(&self) -> Result<&mut [T]> {
        self.check_slice::<T>()?;
        if self.is_empty() {
            return Ok(&mut []);
        }
        // SAFETY: contiguous and typed (checked above); exclusive by this function's contract.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.ptr as *mut T, self.len()) })
    }

    fn check_slice<T: Element>(&self) -> Result<()> {
        if self.dtype != T::DTYPE {
            return Err(KernelError::new(format!("view is {}, not {}", self.dtype, T::DTYPE)));
        }
        if !self.is_contiguous() {
            return Err(KernelError::new("view is not contiguous"));
        }
        Ok(())
    }
}

/// True when `strides` are those of a row-major tensor (dims of size 1 do not count; empty tensors are contiguous).
#[inline]
pub fn is_contiguous(dims: &[usize], strides: &[isize]) -> bool {
    let mut step = 1isize;
    for (n, s) in dims.iter().zip(strides).rev() {
        if *n != 1 {
            if *s != step {
                return dims.contains(&0);
            }
            // A view with elements has no product that wraps; one without may, as in `contiguous_strides`.
            step = step.wrapping_mul(*n as isize);
        }
    }
    true
}
