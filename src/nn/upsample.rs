//! Images of another size, as a layer.

use crate::error::{CallSite, Result};
use crate::functional::interpolate_at;
use crate::tensor::Tensor;

/// Images `[batch, channels, 1 to 3 spatial dims]` of another size: [`Tensor::interpolate`] with fixed arguments. One of `size` and
/// `scale_factor` is given.
#[derive(Clone, Debug, PartialEq, crate::nn::Module)]
pub struct Upsample {
    /// The spatial sizes of the result, one number a dim or one for all; empty at first.
    pub size: Vec<i64>,
    /// Factors of the image's sizes, one number a dim or one for all; empty at first.
    pub scale_factor: Vec<f64>,
    /// How: nearest (at first), nearest-exact, linear, bilinear, bicubic, trilinear or area.
    pub mode: &'static str,
    /// Whether the first and last elements of image and result lie on each other; of modes that have no corners none.
    pub align_corners: Option<bool>,
}

impl Default for Upsample {
    fn default() -> Upsample {
        Upsample { size: vec![], scale_factor: vec![], mode: "nearest", align_corners: None }
    }
}

impl Upsample {
    /// Makes a layer that multiplies sizes.
    ///
    /// ```
    /// use oflow::nn::Upsample;
    /// use oflow::prelude::*;
    /// let twice = Upsample::new(2.0, "bilinear");
    /// assert_eq!(twice.forward(&ones([1, 3, 4, 5], Device::Cpu)?)?.shape(), [1, 3, 8, 10]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    pub fn new(scale_factor: f64, mode: &'static str) -> Upsample {
        Upsample { scale_factor: vec![scale_factor], mode, ..Upsample::default() }
    }
    /// Makes images of another size.
    ///
    /// # Errors
    /// Those of [`Tensor::interpolate`].
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        interpolate_at(x, &self.size, &self.scale_factor, self.mode, self.align_corners, None, false, CallSite::here())
    }
}
