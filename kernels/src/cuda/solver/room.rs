//! Memory for matrices on a GPU, and checks of what a routine is given.

use crate::cuda::Queue;
use crate::cuda::stream::Scratch;
use crate::{DType, KernelError, Result, View};

/// Memory of the GPU for the work of one stream, as views see it. It goes back when the work that is enqueued before it is dropped is done.
pub struct Room<'a> {
    pub(super) view: View,
    _memory: Scratch<'a>,
}

impl<'a> Room<'a> {
    /// Room for a contiguous tensor; what it holds is arbitrary.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(q: &Queue<'a>, dtype: DType, dims: &[usize]) -> Result<Room<'a>> {
        let bytes = dims.iter().fold(dtype.size(), |b: usize, d| b.saturating_mul(*d));
        let memory = q.stream().scratch(bytes)?;
        // SAFETY: as many bytes of the GPU, aligned to 256, which live as long as the room does, in the order of the stream.
        let view = unsafe { View::from_raw(memory.data(), dtype, dims.into(), crate::view::contiguous_strides(dims)) };
        Ok(Room { view, _memory: memory })
    }
    /// The memory as a tensor.
    pub fn view(&self) -> &View {
        &self.view
    }
}

/// Batch, rows and columns.
pub(super) fn sizes(x: &View) -> Result<(usize, usize, usize)> {
    match x.dims() {
        [batch @ .., rows, columns] => Ok((batch.iter().product(), *rows, *columns)),
        dims => Err(KernelError::new(format!("expected matrices [.., m, n], got {dims:?}"))),
    }
}

/// An error unless a tensor has this dtype and so many elements, one after the other.
pub(super) fn holds(x: &View, dtype: DType, len: usize) -> Result<()> {
    match x.dtype() == dtype && x.len() == len && x.is_contiguous() {
        true => Ok(()),
        false => Err(KernelError::new(format!("{} {:?} does not take {len} numbers of {dtype}", x.dtype(), x.dims()))),
    }
}
