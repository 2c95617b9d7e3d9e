//! Names that a program needs, in one `use`.

pub use crate::context::{
    Policy, boxing_policy, enable_grad, manual_seed, no_grad, no_sync, pin_sbp, with_grad_sbp, with_sbp,
};
pub use crate::error::{Error, Result};
pub use crate::functional::{
    IndexRange as _, IntoLayout, IntoTarget, TensorIndex, arange, bernoulli, cat, distribute, einsum, eye, from_vec,
    full, full_like, linspace, ones, ones_like, rand, randint, randn, randperm, range, scalar_tensor, stack, where_,
    zeros, zeros_like,
};
pub use crate::interpreter::autocast;
pub use crate::ops::Autocast;
pub use crate::optim::OptimizerExt as _;
pub use crate::placement::{Device, Placement};
pub use crate::sbp::{NdSbp, Sbp};
pub use crate::tensor::Tensor;
pub use crate::{eval, sbp};
pub use oflow_kernels::{Complex, DType, Scalar};
