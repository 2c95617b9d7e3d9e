//! Windows of signals: numbers that fade out towards both ends. They are computed in f64 and rounded once.

use super::{Bound, TargetSpec};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

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
    /// The Kaiser window, of Bessel functions: the wider, the smaller `beta`.
    "kaiser_window(Int n, Target target, *, Bool periodic=true, Float beta=12.0, DataType dtype=f32) -> Tensor" = kaiser_window as fn kaiser_window;
}

/// `i0(beta √(1 - u²)) / i0(beta)`, u from -1 to 1 (Kaiser & Schafer, 1980).
fn kaiser(t: &Tensor, span: f64, beta: f64) -> Result<Tensor> {
    if beta.is_nan() || beta < 0.0 {
        return Err(Error::argument(format!("beta is {beta}")).help("it is at least 0"));
    }
    let u = t.mul(2.0 / span)?.sub(1.0)?;
    // Roundings of the ends would make the root of a negative number.
    let at = u.square()?.rsub(1.0)?.clamp_min(0.0)?.sqrt()?.mul(beta)?;
    let site = CallSite::here();
    let i0 = |x: &Tensor| super::invoke1(super::op!("i0"), &[Some(x)], smallvec![], smallvec![], site);
    i0(&at)?.div(&i0(&super::create::full_like(&at, Scalar::Float(beta), site)?)?)
}

by_name! {
    SYMMETRIC, "Creation", ByName;
    /// The Bartlett window, a triangle that begins and ends with 0; without `sym` the last number is left out.
    "signal.windows.bartlett(Int M, Target target, *, Bool sym=true, DataType dtype=f32) -> Tensor" = |b| symmetric(b, 2, triangle);
    /// The Blackman window, of cosines with the weights 0.42, 0.5 and 0.08.
    "signal.windows.blackman(Int M, Target target, *, Bool sym=true, DataType dtype=f32) -> Tensor" = |b| symmetric(b, 2, |t, span| cosines(t, span, &BLACKMAN));
    /// Half a period of the sine.
    "signal.windows.cosine(Int M, Target target, *, Bool sym=true, DataType dtype=f32) -> Tensor" = |b| {
        symmetric(b, 2, |t, span| t.add(0.5)?.mul(PI / (span + 1.0))?.sin())
    };
    /// `exp(-|t - center| / tau)`. The centre is the middle unless given, which only a window that is not symmetric (`sym=False`) takes.
    "signal.windows.exponential(Int M, Target target, *, Float? center, Float tau=1.0, Bool sym=true, DataType dtype=f32) -> Tensor" = |b| {
        let (center, tau, sym) = (b.attr(2).map(|_| b.float(2)).transpose()?, b.float(3)?, b.bool(4)?);
        symmetric(b, 4, |t, span| {
            positive("tau", tau)?;
            if sym && center.is_some() {
                return Err(Error::argument("a symmetric window has its centre in the middle").help("leave `center` out, or give `sym=False`"));
            }
            t.sub(center.unwrap_or(span / 2.0))?.abs()?.div(-tau)?.exp()
        })
    };
    /// The Gaussian window, with this standard deviation.
    "signal.windows.gaussian(Int M, Target target, *, Float std=1.0, Bool sym=true, DataType dtype=f32) -> Tensor" = |b| {
        let std = b.float(2)?;
        symmetric(b, 3, |t, span| {
            positive("std", std)?;
            t.sub(span / 2.0)?.mul(FRAC_1_SQRT_2 / std)?.square()?.neg()?.exp()
        })
    };
    /// The sum of cosines with these weights, of alternating signs.
    "signal.windows.general_cosine(Int M, Target target, *, FloatList a, Bool sym=true, DataType dtype=f32) -> Tensor" = |b| {
        symmetric(b, 3, |t, span| cosines(t, span, b.floats(2)?))
    };
    /// `alpha - (1 - alpha) cos(t)`.
    "signal.windows.general_hamming(Int M, Target target, *, Float alpha=0.54, Bool sym=true, DataType dtype=f32) -> Tensor" = |b| {
        let alpha = b.float(2)?;
        symmetric(b, 3, |t, span| cosines(t, span, &[alpha, 1.0 - alpha]))
    };
    /// The Hamming window: `0.54 - 0.46 cos(t)`.
    "signal.windows.hamming(Int M, Target target, *, Bool sym=true, DataType dtype=f32) -> Tensor" = |b| symmetric(b, 2, |t, span| cosines(t, span, &HAMMING));
    /// The Hann window: `0.5 - 0.5 cos(t)`.
    "signal.windows.hann(Int M, Target target, *, Bool sym=true, DataType dtype=f32) -> Tensor" = |b| symmetric(b, 2, hann);
    /// The Kaiser window: the wider, the smaller `beta`.
    "signal.windows.kaiser(Int M, Target target, *, Float beta=12.0, Bool sym=true, DataType dtype=f32) -> Tensor" = |b| {
        let beta = b.float(2)?;
        symmetric(b, 3, |t, span| kaiser(t, span, beta))
    };
    /// The Nuttall window, of four cosines.
    "signal.windows.nuttall(Int M, Target target, *, Bool sym=true, DataType dtype=f32) -> Tensor" = |b| symmetric(b, 2, |t, span| cosines(t, span, &NUTTALL));
}

const BLACKMAN: [f64; 3] = [0.42, 0.5, 0.08];
const HAMMING: [f64; 2] = [0.54, 0.46];
const NUTTALL: [f64; 4] = [0.3635819, 0.4891775, 0.1365995, 0.0106411];

/// A window of `n` numbers by `make`, which is given 0, 1, … below n and the distance of the ends. One number is 1.
fn window(
    n: i64,
    sym: bool,
    target: &TargetSpec,
    site: CallSite,
    make: impl FnOnce(&Tensor, f64) -> Result<Tensor>,
) -> Result<Tensor> {
    let dtype = target.dtype_or(DType::F32);
    site.run(|| {
        if n < 0 {
            return Err(Error::argument(format!("the number of elements is {n}: expected 0 or more")));
        }
        if !dtype.is_float() {
            return Err(Error::dtype(format!("a window has fractions, and {dtype} has none")));
        }
        let inner = inner_calls();
        let places = super::create::arange(n, &target.clone().dtype(DType::F64), site)?;
        // Not symmetric, it is a window of one number more without its last.
        let span = if sym || n < 2 { n - 1 } else { n };
        let made = make(&places, span as f64)?;
        let made = if n == 1 { super::create::ones_like(&made, site)? } else { made };
        drop(inner);
        made.cast(dtype)
    })
}

/// The window of a function of `torch.signal.windows`, whose parameter `sym` is followed by the dtype.
fn symmetric(b: &Bound, sym: usize, make: impl FnOnce(&Tensor, f64) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    Ok(vec![window(b.int(0)?, b.bool(sym)?, &b.target_of(1, Some(sym + 1))?, b.site, make)?])
}

fn triangle(t: &Tensor, span: f64) -> Result<Tensor> {
    t.mul(2.0 / span)?.sub(1.0)?.abs()?.rsub(1.0)
}

fn hann(t: &Tensor, span: f64) -> Result<Tensor> {
    t.mul(PI / span)?.sin()?.square()
}

/// `a[0] - a[1] cos(t) + a[2] cos(2t) - …`, t from 0 to 2π.
fn cosines(t: &Tensor, span: f64, a: &[f64]) -> Result<Tensor> {
    let [first, rest @ ..] = a else {
        return Err(Error::argument("the list of weights is empty").help("give one number at least"));
    };
    let mut sum = t.mul(0.0)?.add(*first)?;
    for (i, weight) in rest.iter().enumerate() {
        let sign = if i % 2 == 0 { -1.0 } else { 1.0 };
        sum = sum.add(&t.mul((i + 1) as f64 * 2.0 * PI / span)?.cos()?.mul(sign * weight)?)?;
    }
    Ok(sum)
}

fn positive(name: &str, v: f64) -> Result<()> {
    match v > 0.0 {
        true => Ok(()),
        false => Err(Error::argument(format!("{name} is {v}")).help("it is greater than 0")),
    }
}

/// The functions of `torch` itself, which leave the last number out by default.
macro_rules! windows {
    ($($name:ident = $make:expr;)*) => {$(
        pub(super) fn $name(n: i64, target: &TargetSpec, periodic: bool, site: CallSite) -> Result<Tensor> {
            window(n, !periodic, target, site, $make).map_err(|e| e.within(|| format!(concat!(stringify!($name), "({})"), n)))
        }
    )*};
}
windows! {
    bartlett_window = triangle;
    blackman_window = |t, span| cosines(t, span, &BLACKMAN);
    hann_window = hann;
}

pub(super) fn hamming_window(
    n: i64,
    target: &TargetSpec,
    periodic: bool,
    alpha: f64,
    beta: f64,
    site: CallSite,
) -> Result<Tensor> {
    let make = |t: &Tensor, span| cosines(t, span, &[alpha, beta]);
    window(n, !periodic, target, site, make).map_err(|e| e.within(|| format!("hamming_window({n})")))
}

pub(super) fn kaiser_window(n: i64, target: &TargetSpec, periodic: bool, beta: f64, site: CallSite) -> Result<Tensor> {
    window(n, !periodic, target, site, |t, span| kaiser(t, span, beta))
        .map_err(|e| e.within(|| format!("kaiser_window({n})")))
}
