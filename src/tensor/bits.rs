//! The bytes of a tensor as elements of another dtype.

use super::inner::{Body, Tensor};
use super::local::LocalTensor;
use crate::error::{Error, Result};
use crate::ops::TensorType;
use crate::plan::{intern_global, intern_local};
use oflow_kernels::{DType, Dims, Strides};

/// Whether bytes of the one dtype are elements of the other, whatever they are.
fn check_dtypes(from: DType, to: DType) -> Result<()> {
    if from.builtin().is_none() || to.builtin().is_none() {
        return Err(Error::dtype(format!("the bytes of {from} as {to}: expected two built-in dtypes")));
    }
    // A byte other than 0 and 1 is no bool.
    match to == DType::Bool && from != DType::Bool {
        true => Err(Error::dtype(format!("the bytes of {from} as bool: expected bytes of bools, which are 0 or 1"))
            .help("compare the elements: `ne(0)`")),
        false => Ok(()),
    }
}

/// The sizes of a tensor whose bytes are elements of another dtype: the last dim is longer or shorter by the ratio of the sizes of the elements.
fn dims_as(dims: &[usize], from: DType, to: DType) -> Result<Dims> {
    let (have, want) = (from.size(), to.size());
    let mut dims = Dims::from_slice(dims);
    if have == want {
        return Ok(dims);
    }
    let Some(last) = dims.last_mut() else {
        return Err(Error::shape(format!("expected at least one dim, as elements of {from} and {to} differ in size")));
    };
    if !(*last * have).is_multiple_of(want) {
        let ratio = want / have;
        return Err(Error::shape(format!(
            "expected a last dim whose size is a multiple of {ratio}, as {ratio} elements of {from} are one of {to}; it is {last}"
        )));
    }
    *last = *last * have / want;
    Ok(dims)
}

impl LocalTensor {
    /// The same memory as elements of another dtype.
    fn bits_as(&self, dtype: DType) -> Result<LocalTensor> {
        let (have, want) = (self.dtype().size(), dtype.size());
        let dims = dims_as(self.dims(), self.dtype(), dtype)?;
        let (mut offset, mut strides) = (self.offset * have, Strides::from_slice(&self.strides));
        let copied = |e: Error| e.help("`contiguous` copies where it must");
        if let (Some((last, others)), true) = (strides.split_last_mut(), have != want) {
            if *last != 1 {
                let e = format!(
                    "expected elements side by side along the last dim, as elements of {} and {dtype} differ in size; its stride is {last}",
                    self.dtype()
                );
                return Err(copied(Error::shape(e)));
            }
            for (dim, stride) in others.iter_mut().enumerate() {
                let bytes = *stride * have as isize;
                if bytes % want as isize != 0 {
                    let e = format!(
                        "expected strides of whole elements of {dtype}; that of dim {dim} is {stride} elements of {}",
                        self.dtype()
                    );
                    return Err(copied(Error::shape(e)));
                }
                *stride = bytes / want as isize;
            }
            if !offset.is_multiple_of(want) {
                let e = format!(
                    "expected a first element at a multiple of {want} bytes in its memory; it lies at {offset}"
                );
                return Err(copied(Error::shape(e)));
            }
        }
        offset /= want;
        let ty = intern_local(&dims, dtype, self.ty.device);
        let made = LocalTensor::of_storage(&ty, self.storage.clone(), offset, strides)?;
        Ok(if self.is_shard() { made.into_shard() } else { made })
    }
}

impl Tensor {
    /// The same bytes as elements of another dtype, without gradient. A local result shares the memory and its version, as one of
    /// [`detach`](Tensor::detach) does; a global one is a value that cannot be written in place.
    ///
    /// # Errors
    /// If one of the dtypes is registered, or the new one is bool; if the elements differ in size and the last dim does not divide, is split, or its
    /// elements do not lie side by side; if a global tensor is partial.
    pub(crate) fn bits_as(&self, dtype: DType) -> Result<Tensor> {
        check_dtypes(self.dtype(), dtype)?;
        let Body::Global(g, _) = self.body() else {
            let local = self.data()?.map(|l| l.bits_as(dtype)).transpose()?;
            return Ok(Tensor::from_local(local.ok_or_else(|| Error::argument(format!("{self:?} has no data")))?));
        };
        if g.sbp.iter().any(|s| s.is_partial()) {
            return Err(Error::sbp(format!("the bytes of {self:?} are those of terms of a sum"))
                .help("box it first: `to_global` with broadcast or a split"));
        }
        let dims = dims_as(&g.ty.shape, g.ty.dtype, dtype)?;
        let last = dims.len().wrapping_sub(1);
        if dims != g.ty.shape && g.sbp.iter().any(|s| s.split_dim() == Some(last)) {
            return Err(Error::sbp(format!(
                "the last dim of {self:?} is split; expected it whole, as elements of {} and {dtype} differ in size",
                g.ty.dtype
            ))
            .help("box it first: `to_global` with broadcast or a split of another dim"));
        }
        let ty = intern_global(TensorType::new(&dims, dtype), &g.placement, &g.sbp);
        let shard = self.data()?.map(|l| l.bits_as(dtype)).transpose()?;
        let made = Tensor::from_shard(ty, shard);
        made.mark_global_view();
        Ok(made)
    }
}
