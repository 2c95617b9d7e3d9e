//! Activations with weights, and gates.

use super::{invoke1, op, shape};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::normalize_dim;
use crate::tensor::Tensor;
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Activations";
    /// x, or `weight` x where x is not above 0. The weight is one number, or one for each channel, dim 1 of x.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![-4.0f32, 2.0, -4.0, 2.0], [2, 2], Device::Cpu)?;
    /// let weight = from_vec(vec![0.25f32, 0.5], [2], Device::Cpu)?;
    /// assert_eq!(x.prelu(&weight)?.to_vec::<f32>()?, [-1.0, 2.0, -1.0, 2.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// The weight is neither one number nor one for each channel.
    "prelu(Tensor x, Tensor weight) -> Tensor" = prelu;
    /// a sigmoid(b), where a and b are the halves of x along `dim`.
    ///
    /// # Errors
    /// The dim has an odd size.
    "glu(Tensor x, Int dim=-1) -> Tensor" = glu;
}

pub(super) fn prelu(x: &Tensor, weight: &Tensor, site: CallSite) -> Result<Tensor> {
    // A tensor of fewer dims has one channel.
    let channels = if x.ndim() < 2 { 1 } else { x.shape()[1] };
    let n = weight.numel();
    if weight.ndim() > 1 || n != 1 && n != channels {
        let e = Error::shape(format!("the weight has shape {:?}; x has {channels} channels", weight.shape()))
            .help("the weight is one number, or one for each channel, dim 1 of x");
        return Err(e.in_call(|| format!("prelu({}, {})", x.short(), weight.short())).at(site));
    }
    let beside: Vec<usize> = (0..x.ndim()).map(|d| if d == 1 { n } else { 1 }).collect();
    let inner = inner_calls();
    let weight = weight.reshape_at(&beside, site)?.into_result();
    drop(inner);
    invoke1(op!("prelu"), &[Some(x), Some(&weight)], smallvec![], smallvec![], site)
}

pub(super) fn glu(x: &Tensor, dim: i64, site: CallSite) -> Result<Tensor> {
    let named = shape::in_method("glu", x, site);
    let d = normalize_dim(dim, x.ndim()).map_err(&named)?;
    let Some(n) = x.shape().get(d) else {
        return Err(named(Error::shape("glu needs at least 1 dim, but x is a scalar")));
    };
    if n % 2 == 1 {
        return Err(named(Error::shape(format!("dim {dim} has {n} elements: expected an even number"))));
    }
    let half = (n / 2) as i64;
    let inner = inner_calls();
    let part = |from: i64| shape::narrow(x, d as i64, from, half, site);
    let (a, b) = (part(0)?, part(half)?);
    drop(inner);
    invoke1(op!("gate"), &[Some(&a), Some(&b)], smallvec![], smallvec![], site)
}
