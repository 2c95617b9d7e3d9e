//! Results whose length depends on values. A global result is balanced: the ranks tell each other how much they have found, and
//! one exchange makes the layout.

use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Result};
use crate::ops::broadcast_shapes;
use crate::tensor::Tensor;
use smallvec::smallvec;

impl Tensor {
    /// Returns the indices of the elements that are not zero (NaN is not): i64, `[count, rank]`, in row-major order. A tensor
    /// split along dim 0 gives indices split along dim 0.
    ///
    /// The call waits for the count, which decides the shape of the result.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![0.0f32, 3.0, 4.0, 0.0], [2, 2], Device::Cpu)?;
    /// assert_eq!(x.nonzero()?.to_vec::<i64>()?, [0, 1, 1, 0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// In a dry run, whose tensors have no values.
    #[track_caller]
    pub fn nonzero(&self) -> Result<Tensor> {
        invoke1(op!("nonzero"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// Returns the elements where the bool tensor `mask` is true, in row-major order, as a tensor of one dim. Shapes
    /// broadcast. The gradient goes to the elements that were chosen.
    ///
    /// The call waits for the count, which decides the shape of the result.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, -2.0, 3.0], [3], Device::Cpu)?;
    /// assert_eq!(x.masked_select(&x.gt(0.0)?)?.to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast or the mask is no bool tensor; in a dry run.
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        let site = CallSite::here();
        let _scope = site.scope();
        let text = || format!("masked_select({}, {})", self.short(), mask.short());
        let shape = broadcast_shapes([self.shape(), mask.shape()]).map_err(|e| e.in_call(text).at(site))?;
        let inner = inner_calls();
        let wide = |t: &Tensor| if t.shape() == shape.as_slice() { Ok(t.clone()) } else { t.expand(&shape[..]) };
        let (x, mask) = (wide(self)?, wide(mask)?);
        drop(inner);
        invoke1(op!("masked_select"), &[Some(&x), Some(&mask)], smallvec![], smallvec![], site)
    }

    /// Returns the distinct values, smallest first, as a tensor of one dim. NaN come last; no two are equal. A global result is
    /// B. There is no gradient, and no kernel for GPUs.
    ///
    /// # Errors
    /// On a GPU; in a dry run.
    #[track_caller]
    pub fn unique(&self) -> Result<Tensor> {
        invoke1(op!("unique"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }
}
