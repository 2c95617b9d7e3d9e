//! Local data: a storage with offset, dims and strides.

use crate::context::RankCtx;
use crate::error::{Error, Result};
use crate::memory::Storage;
use crate::placement::Device;
use crate::plan::{LocalRef, intern_local};
use oflow_kernels::view::{copied, is_contiguous};
use oflow_kernels::{DType, Strides, View};

/// The data of a local tensor. Views share one storage. Every element that dims and strides address lies in the storage, which
/// [`alloc`](LocalTensor::alloc) and [`window`](LocalTensor::window) ensure.
pub struct LocalTensor {
    /// Shape, dtype, device.
    pub(crate) ty: LocalRef,
    /// The bytes.
    pub(crate) storage: Storage,
    /// First element, in elements.
    pub(crate) offset: usize,
    /// Returns the strides in elements.
    pub(crate) strides: Strides,
    /// Whether the tensor shows the memory of a global tensor's shard, which is written by that tensor's own calls only.
    shard: bool,
}

impl Clone for LocalTensor {
    // Not derived for the strides' sake.
    fn clone(&self) -> LocalTensor {
        LocalTensor {
            ty: self.ty.clone(),
            storage: self.storage.clone(),
            offset: self.offset,
            strides: copied(&self.strides),
            shard: self.shard,
        }
    }
}

impl LocalTensor {
    /// Allocates contiguous memory with unspecified contents from the context's allocator.
    #[inline]
    pub fn alloc(ctx: &RankCtx, ty: &LocalRef) -> Result<LocalTensor> {
        let storage = ctx.device(ty.device)?.alloc.alloc(ty.bytes)?;
        Ok(LocalTensor { strides: copied(&ty.strides), ty: ty.clone(), storage, offset: 0, shard: false })
    }
    /// Like [`alloc`](LocalTensor::alloc), with shape, dtype and device given.
    pub fn alloc_like(ctx: &RankCtx, shape: &[usize], dtype: DType, device: Device) -> Result<LocalTensor> {
        Self::alloc(ctx, &intern_local(shape, dtype, device))
    }
    /// Makes a tensor of a storage: shape, dtype and device are those of `ty`, its first element is `offset` elements after the
    /// storage's first byte.
    ///
    /// # Errors
    /// If an element would lie outside the storage or at an address that its dtype cannot have, or if the device is not that of
    /// the storage.
    pub fn of_storage(ty: &LocalRef, storage: Storage, offset: usize, strides: Strides) -> Result<LocalTensor> {
        let size = ty.ty.dtype.size();
        if !inside(offset, &ty.ty.shape, &strides, storage.bytes() / size) || storage.device() != ty.device {
            return Err(Error::argument(format!(
                "{} with strides {:?} from element {offset} on does not lie in {storage:?}",
                ***ty,
                strides.as_slice()
            )));
        }
        let align = ty.ty.dtype.align();
        if !(storage.ptr() as usize).is_multiple_of(align) {
            return Err(Error::argument(format!("elements of {} must lie at multiples of {align} bytes", ty.ty.dtype))
                .help("copy the data first"));
        }
        Ok(LocalTensor { ty: ty.clone(), storage, offset, strides, shard: false })
    }
    /// Returns shape, dtype and device.
    pub fn ty(&self) -> &LocalRef {
        &self.ty
    }
    /// Returns the storage, which other views may share.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }
    /// Returns the offset of the first element in the storage, in elements.
    pub fn offset(&self) -> usize {
        self.offset
    }
    /// Returns the strides in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }
    /// Returns the sizes.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        &self.ty.ty.shape
    }
    /// Returns the dtype.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.ty.ty.dtype
    }
    /// Returns whether the elements are row-major without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(self.dims(), &self.strides)
    }
    /// Returns the view for kernels.
    ///
    /// # Safety
    /// As for [`View::from_raw`]: the view is used only while this tensor (or another handle to its storage) lives, and where
    /// it is written nobody else uses those elements.
    pub unsafe fn raw_view(&self) -> View {
        self.view()
    }
    /// View that a kernel is given, in an instruction that holds the storage until the kernel is done.
    #[inline]
    pub(crate) fn view(&self) -> View {
        let ptr = self.storage.ptr().wrapping_add(self.offset * self.dtype().size());
        // SAFETY: `alloc` and `window` keep every addressed element inside the storage, which the vm's instruction holds while
        // a kernel runs; the vm's waits order readers and writers.
        unsafe { View::from_raw(ptr, self.dtype(), copied(self.dims()), copied(&self.strides)) }
    }
    /// Returns another window onto the same storage, with this type. Its first element lies `by` elements after the first one of
    /// this window.
    ///
    /// # Errors
    /// If an element would lie outside the storage, or if dtype, device or the number of strides do not match.
    pub fn window(&self, ty: &LocalRef, by: isize, strides: Strides) -> Result<LocalTensor> {
        let held = self.storage.bytes() / self.dtype().size();
        let offset = self.offset.checked_add_signed(by).filter(|start| inside(*start, &ty.ty.shape, &strides, held));
        match offset {
            Some(offset) if ty.ty.dtype == self.dtype() && ty.device == self.ty.device => {
                Ok(LocalTensor { ty: ty.clone(), storage: self.storage.clone(), offset, strides, shard: self.shard })
            }
            _ => Err(Error::argument(format!(
                "a window {} with strides {:?}, {by} elements from the first, does not lie in the {held} {} elements of \
                 the storage",
                ***ty,
                strides.as_slice(),
                self.dtype()
            ))),
        }
    }
    /// Like [`window`](LocalTensor::window), with a shape given.
    ///
    /// # Errors
    /// Those of [`window`](LocalTensor::window).
    pub fn restride(&self, by: isize, shape: &[usize], strides: Strides) -> Result<LocalTensor> {
        self.window(&intern_local(shape, self.dtype(), self.ty.device), by, strides)
    }
    /// The same as the shard of a global tensor: to be read only.
    pub(crate) fn into_shard(self) -> LocalTensor {
        LocalTensor { shard: true, ..self }
    }
    /// Returns whether it is a global tensor's shard, which is read-only.
    pub fn is_shard(&self) -> bool {
        self.shard
    }
    /// Returns whether two of its indices address one element, as in the result of `expand`.
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
    /// Returns whether both address the same elements in the same order.
    pub fn same_window(&self, other: &LocalTensor) -> bool {
        self.storage.id() == other.storage.id()
            && self.offset == other.offset
            && self.strides == other.strides
            && self.ty.id() == other.ty.id()
    }
}

/// Whether all elements that dims and strides address from `start` on are among the `held` first of a storage. Without
/// elements nothing is addressed, but the start must not be beyond the end.
fn inside(start: usize, dims: &[usize], strides: &[isize], held: usize) -> bool {
    if dims.len() != strides.len() || start > held {
        return false;
    }
    if dims.contains(&0) {
        return true;
    }
    // The least and the greatest place; a dim leads to one of both, by the sign of its stride.
    let (mut least, mut most) = (start as i128, start as i128);
    for (n, s) in dims.iter().zip(strides) {
        let Some(reach) = (*n as i128 - 1).checked_mul(*s as i128) else { return false };
        let (low, high) = (least.checked_add(reach.min(0)), most.checked_add(reach.max(0)));
        let (Some(low), Some(high)) = (low, high) else { return false };
        (least, most) = (low, high);
    }
    least >= 0 && most < held as i128
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::current;

    #[test]
    fn a_tensor_of_memory_of_others_lies_in_it_and_keeps_it() {
        let storage = Storage::from_vec((0..6).map(|i| i as f32).collect::<Vec<_>>());
        let of = |shape: &[usize], offset: usize, strides: &[isize]| {
            LocalTensor::of_storage(
                &intern_local(shape, DType::F32, Device::Cpu),
                storage.clone(),
                offset,
                strides.into(),
            )
        };
        // The columns of a matrix of two rows, the last one first.
        let t = crate::Tensor::from_local(of(&[3, 2], 2, &[-1, 3]).unwrap());
        assert_eq!(t.to_vec::<f32>().unwrap(), [2.0, 5.0, 1.0, 4.0, 0.0, 3.0]);
        t.add_(1.0).unwrap();
        assert_eq!(t.to_vec::<f32>().unwrap(), [3.0, 6.0, 2.0, 5.0, 1.0, 4.0]);
        assert_eq!(storage.version(), 1);
        assert!(of(&[3, 2], 1, &[-1, 3]).is_err() && of(&[7], 0, &[1]).is_err() && of(&[2], 0, &[1, 1]).is_err());
        assert!(of(&[0, 9], 6, &[9, 1]).is_ok());
        // SAFETY: bytes of the storage, which the owner keeps.
        let odd = unsafe { Storage::external(Device::Cpu, storage.ptr().add(1), 8, Box::new(storage.clone())) };
        let e = LocalTensor::of_storage(&intern_local(&[2], DType::F32, Device::Cpu), odd, 0, [1].as_slice().into());
        assert!(e.is_err_and(|e| e.to_string().contains("multiples of 4 bytes")));
    }

    #[test]
    fn a_window_lies_in_its_storage() {
        let t = LocalTensor::alloc_like(&current(), &[4, 6], DType::F32, Device::Cpu).unwrap();
        let window = |by: isize, shape: &[usize], strides: &[isize]| t.restride(by, shape, strides.into());
        for (by, shape, strides) in [
            (0, &[24][..], &[1][..]),
            (23, &[24], &[-1]),
            (0, &[1 << 40], &[0]),
            (1, &[4, 5], &[6, 1]),
            (24, &[0, 9], &[1, 1]),
            (0, &[], &[]),
            (5, &[1, 1], &[isize::MAX, isize::MIN]),
        ] {
            let w = window(by, shape, strides).unwrap();
            assert_eq!((w.offset(), w.dims(), w.strides()), (by as usize, shape, strides));
        }
        for (by, shape, strides) in [
            (1, &[24][..], &[1][..]),
            (22, &[24], &[-1]),
            (-1, &[1], &[1]),
            (25, &[0], &[1]),
            (24, &[], &[]),
            (0, &[2], &[1, 1]),
            (0, &[3], &[isize::MAX]),
            (0, &[1 << 62, 1 << 62], &[isize::MAX, isize::MAX]),
            (isize::MAX, &[1], &[0]),
            (isize::MIN, &[1], &[0]),
        ] {
            assert!(window(by, shape, strides).is_err(), "{by} {shape:?} {strides:?}");
        }
        let other = intern_local(&[2], DType::F64, Device::Cpu);
        assert!(t.window(&other, 0, [1].as_slice().into()).is_err());
        // A window of a window counts from its own first element and reaches the whole storage.
        let inner = window(6, &[2], &[1]).unwrap();
        assert_eq!(inner.restride(-6, &[24], [1].as_slice().into()).unwrap().offset(), 0);
        assert!(inner.restride(-7, &[1], [1].as_slice().into()).is_err());
    }
}
