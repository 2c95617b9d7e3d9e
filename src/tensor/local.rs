//! Data on one device: a storage seen through offset, dims and strides.

use super::types::{LocalRef, intern_local};
use crate::context::RankCtx;
use crate::error::Result;
use crate::memory::Storage;
use crate::placement::Device;
use oflow_kernels::view::{contiguous_strides, is_contiguous};
use oflow_kernels::{DType, Dims, Strides, View};

/// A local tensor's data: several may share one storage (views).
pub struct LocalTensor {
    /// Shape, dtype, device.
    pub ty: LocalRef,
    /// The bytes.
    pub storage: Storage,
    /// First element, in elements.
    pub offset: usize,
    /// Strides in elements.
    pub strides: Strides,
    /// It shows the memory of a global tensor's shard, which is written by that tensor's own calls only.
    shard: bool,
}

impl Clone for LocalTensor {
    // Not derived for the strides' sake: copied as one block, not element by element.
    fn clone(&self) -> LocalTensor {
        LocalTensor {
            ty: self.ty.clone(),
            storage: self.storage.clone(),
            offset: self.offset,
            strides: Strides::from_slice(&self.strides),
            shard: self.shard,
        }
    }
}

impl LocalTensor {
    /// Fresh contiguous memory (contents unspecified) from the context's allocator.
    pub fn alloc(ctx: &RankCtx, ty: &LocalRef) -> Result<LocalTensor> {
        let bytes = ty.ty.len() * ty.ty.dtype.size();
        let storage = ctx.device(ty.device)?.alloc.alloc(bytes)?;
        Ok(LocalTensor { strides: contiguous_strides(&ty.ty.shape), ty: ty.clone(), storage, offset: 0, shard: false })
    }
    /// The same, from parts.
    pub fn alloc_like(ctx: &RankCtx, shape: &[usize], dtype: DType, device: Device) -> Result<LocalTensor> {
        Self::alloc(ctx, &intern_local(shape, dtype, device))
    }
    /// Sizes.
    pub fn dims(&self) -> &[usize] {
        &self.ty.ty.shape
    }
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.ty.ty.dtype
    }
    /// Row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(self.dims(), &self.strides)
    }
    /// What a kernel is given.
    pub fn view(&self) -> View {
        let ptr = self.storage.ptr().wrapping_add(self.offset * self.dtype().size());
        // SAFETY: constructors and view functions keep every addressed element inside the storage, which the vm's
        // instruction holds while a kernel runs; the vm's waits order readers and writers.
        unsafe { View::from_raw(ptr, self.dtype(), Dims::from_slice(self.dims()), Strides::from_slice(&self.strides)) }
    }
    /// Another window onto the same storage, of a known type.
    pub fn window(&self, ty: &LocalRef, offset: usize, strides: Strides) -> LocalTensor {
        LocalTensor { ty: ty.clone(), storage: self.storage.clone(), offset, strides, shard: self.shard }
    }
    /// Another window onto the same storage.
    pub fn restride(&self, offset: usize, shape: &[usize], strides: Strides) -> LocalTensor {
        LocalTensor {
            ty: intern_local(shape, self.dtype(), self.ty.device),
            storage: self.storage.clone(),
            offset,
            strides,
            shard: self.shard,
        }
    }
    /// The same as the shard of a global tensor: to be read only.
    pub(crate) fn into_shard(self) -> LocalTensor {
        LocalTensor { shard: true, ..self }
    }
    /// Whether it shows a global tensor's memory, and so is read only.
    pub fn is_shard(&self) -> bool {
        self.shard
    }
    /// Whether two of its indices address one element, as in the result of `expand`.
    pub fn overlaps_itself(&self) -> bool {
        let dims = self.dims();
        !dims.contains(&0) && dims.iter().zip(&self.strides).any(|(n, s)| *n > 1 && *s == 0)
    }
    /// The elements of the storage from the first to the last that it shows; those between may be others'.
    pub(crate) fn extent(&self) -> std::ops::Range<isize> {
        if self.dims().contains(&0) {
            return 0..0;
        }
        let ends = self.dims().iter().zip(&self.strides).map(|(n, s)| (*n as isize - 1) * s);
        let (low, high) = ends.fold((0, 0), |(low, high), end| (low + end.min(0), high + end.max(0)));
        let first = self.offset as isize;
        first + low..first + high + 1
    }
    /// True if both see the same elements in the same order.
    pub fn same_window(&self, other: &LocalTensor) -> bool {
        self.storage.id() == other.storage.id()
            && self.offset == other.offset
            && self.strides == other.strides
            && self.ty.id() == other.ty.id()
    }
}
