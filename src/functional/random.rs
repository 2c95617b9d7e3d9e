//! Random functions with a generator of their own.

use super::{invoke1, op};
use crate::context::Generator;
use crate::error::{CallSite, Result};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::smallvec;

/// Options of [`Tensor::dropout_with`].
#[derive(Clone, Debug)]
pub struct DropoutOptions {
    /// The probability of an element to become zero.
    pub p: f64,
    /// Where the numbers come from; `None` is the generator of the rank.
    pub generator: Option<Generator>,
}

impl Default for DropoutOptions {
    fn default() -> DropoutOptions {
        DropoutOptions { p: 0.5, generator: None }
    }
}

/// The runtime attributes `seed` and `ordinal` of one random op. An ordinal of -1 stands for the generator of the rank.
pub(super) fn drawn(generator: Option<&Generator>) -> Result<[Scalar; 2]> {
    let (seed, ordinal) = generator.map_or(Ok((0, u64::MAX)), |g| g.draw())?;
    Ok([Scalar::Int(seed as i64), Scalar::Int(ordinal as i64)])
}

impl Tensor {
    /// [`Tensor::dropout`] with options.
    ///
    /// ```
    /// use oflow::functional::DropoutOptions;
    /// use oflow::{Generator, prelude::*};
    /// let g = Generator::new(1);
    /// let x = ones([8], Device::Cpu)?;
    /// let y = x.dropout_with(&DropoutOptions { p: 0.25, generator: Some(g.clone()) })?;
    /// g.manual_seed(1);
    /// let z = x.dropout_with(&DropoutOptions { p: 0.25, generator: Some(g) })?;
    /// assert_eq!(y.to_vec::<f32>()?, z.to_vec::<f32>()?);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::dropout`]; also if another rank of this process has drawn from the generator.
    #[track_caller]
    pub fn dropout_with(&self, options: &DropoutOptions) -> Result<Tensor> {
        let site = CallSite::here();
        let call = || format!("dropout({})", self.short());
        let [seed, ordinal] = drawn(options.generator.as_ref()).map_err(|e| e.in_call(call).at(site))?;
        invoke1(op!("dropout"), &[Some(self)], smallvec![], smallvec![options.p.into(), seed, ordinal], site)
    }
}
