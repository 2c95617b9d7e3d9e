//! Choice by a mask. The length of the result depends on values; a global result is balanced: the ranks tell each other how much
//! they have found, and one exchange makes the layout.

use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Result};
use crate::ops::broadcast_shapes;
use crate::tensor::Tensor;
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Choice";
    /// The elements where the bool tensor `mask` is true, in row-major order, as a tensor of one dim. Shapes broadcast. The gradient
    /// goes to the elements that were chosen. The call waits for the count, which decides the shape of the result.
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
    "masked_select(Tensor x, Tensor mask) -> Tensor" = masked_select;
}

pub(super) fn masked_select(x: &Tensor, mask: &Tensor, site: CallSite) -> Result<Tensor> {
    let _scope = site.scope();
    let text = || format!("masked_select({}, {})", x.short(), mask.short());
    let shape = broadcast_shapes([x.shape(), mask.shape()]).map_err(|e| e.in_call(text).at(site))?;
    let inner = inner_calls();
    let wide = |t: &Tensor| if t.shape() == shape.as_slice() { Ok(t.clone()) } else { t.expand(&shape[..]) };
    let (x, mask) = (wide(x)?, wide(mask)?);
    drop(inner);
    invoke1(op!("masked_select"), &[Some(&x), Some(&mask)], smallvec![], smallvec![], site)
}
