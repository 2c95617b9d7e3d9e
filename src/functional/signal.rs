//! Windows of signal processing.

use super::TargetSpec;
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::Target;
use crate::tensor::Tensor;
use oflow_kernels::DType;

functions! {
    FUNCTIONS, "Creation";
    /// The Hann window sin²(πk / n) of `n` numbers; f32 unless the target says otherwise. With `periodic` it is one number longer, and
    /// the last is left out: what a Fourier transform wants. Else it is symmetric.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// use oflow::functional::hann_window;
    /// assert_eq!(hann_window(4, Device::Cpu)?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 0.5]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "hann_window(Int n, Target target, *, Bool periodic=true, DataType dtype=f32) -> Tensor" = hann_window as fn hann_window;
    /// The Hamming window `alpha` - `beta` cos(2πk / n).
    "hamming_window(Int n, Target target, *, Bool periodic=true, Float alpha=0.54, Float beta=0.46, DataType dtype=f32) -> Tensor" = hamming_window as fn hamming_window;
    /// The Blackman window 0.42 - 0.5 cos(2πk / n) + 0.08 cos(4πk / n).
    "blackman_window(Int n, Target target, *, Bool periodic=true, DataType dtype=f32) -> Tensor" = blackman_window as fn blackman_window;
    /// The Bartlett window, which rises and falls in straight lines.
    "bartlett_window(Int n, Target target, *, Bool periodic=true, DataType dtype=f32) -> Tensor" = bartlett_window as fn bartlett_window;
}

/// A window by name, from k / n for each of its numbers, in f64.
fn window(
    name: &str,
    n: i64,
    target: &TargetSpec,
    periodic: bool,
    site: CallSite,
    shape: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let dtype = target.dtype_or(DType::F32);
    let body = || {
        if n < 0 {
            return Err(Error::argument(format!("the number of elements is {n}: expected 0 or more")));
        }
        if !dtype.is_float() {
            return Err(Error::dtype(format!("a window has fractions, and {dtype} has none")));
        }
        let in_f64 = super::IntoTarget::dtype(Target::clone(target.target()), DType::F64);
        let inner = inner_calls();
        // One number is 1, whatever the window.
        let y = match n {
            0 | 1 => super::create::ones(&[n as usize], &in_f64, site)?,
            _ => {
                let turn = if periodic { n } else { n - 1 };
                shape(&super::create::arange(n, &in_f64, site)?.div(turn as f64)?)?
            }
        };
        drop(inner);
        y.cast(dtype)
    };
    site.run(body).map_err(|e| e.within(|| format!("{name}({n})")))
}

const TURN: f64 = 2.0 * std::f64::consts::PI;

pub(super) fn hann_window(n: i64, target: &TargetSpec, periodic: bool, site: CallSite) -> Result<Tensor> {
    window("hann_window", n, target, periodic, site, |at| at.mul(TURN / 2.0)?.sin()?.square())
}

pub(super) fn hamming_window(
    n: i64,
    target: &TargetSpec,
    periodic: bool,
    alpha: f64,
    beta: f64,
    site: CallSite,
) -> Result<Tensor> {
    window("hamming_window", n, target, periodic, site, |at| at.mul(TURN)?.cos()?.mul(-beta)?.add(alpha))
}

pub(super) fn blackman_window(n: i64, target: &TargetSpec, periodic: bool, site: CallSite) -> Result<Tensor> {
    window("blackman_window", n, target, periodic, site, |at| {
        let (once, twice) = (at.mul(TURN)?.cos()?, at.mul(2.0 * TURN)?.cos()?);
        twice.mul(0.08)?.sub(&once.mul(0.5)?)?.add(0.42)
    })
}

pub(super) fn bartlett_window(n: i64, target: &TargetSpec, periodic: bool, site: CallSite) -> Result<Tensor> {
    window("bartlett_window", n, target, periodic, site, |at| at.mul(2.0)?.sub(1.0)?.abs()?.rsub(1.0))
}
