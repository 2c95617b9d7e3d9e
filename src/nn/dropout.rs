//! Dropout as a module: it knows whether it trains.

use super::Mode;
use crate::context::current;
use crate::error::Result;
use crate::tensor::Tensor;

macro_rules! dropout {
    ($(#[doc = $doc:literal])* $name:ident $function:ident) => {
        $(#[doc = $doc])*
        #[derive(crate::nn::Module)]
        pub struct $name {
            p: f64,
            training: Mode,
        }

        impl $name {
            /// Makes a module in training mode. If `p` is not within 0 and 1, the first `forward` returns an error.
            pub fn new(p: f64) -> $name {
                $name { p, training: Mode(true) }
            }
            /// Whether the module is in training mode.
            pub fn training(&self) -> bool {
                self.training.0
            }
            /// Returns `x` with dropped elements in training mode. In evaluation mode, and with p = 0, returns `x` itself, like
            /// PyTorch's module.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
                if !self.training.0 {
                    return Ok(x.clone());
                }
                if self.p == 0.0 {
                    // The ordinal is drawn all the same: later numbers must not depend on a rate being zero.
                    current().draw(x.is_global());
                    return Ok(x.clone());
                }
                x.$function(self.p)
            }
        }
    };
}

dropout! {
    /// Dropout as a module. In training mode it sets elements to zero with probability p and multiplies the others by 1 / (1 - p);
    /// in evaluation mode it returns its input, of any shape. The mask does not depend on placement or SBP.
    Dropout dropout
}
dropout! {
    /// Dropout of whole channels of `[batch, channels, …]` as a module: PyTorch's `Dropout1d`, `Dropout2d` and `Dropout3d`.
    FeatureDropout feature_dropout
}
dropout! {
    /// Dropout that keeps mean 0 and variance 1, for nets of SELU, as a module ([`Tensor::alpha_dropout`]).
    AlphaDropout alpha_dropout
}
