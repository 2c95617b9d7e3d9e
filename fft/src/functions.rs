//! Functions that programs call: PyTorch's `torch.fft`.

use oflow::CallSite;
use oflow::functional::{IntoTarget, TargetSpec};
use oflow::interpreter::Call;
use oflow::op;
use oflow::ops::{AttrValue, Op, normalize_dim};
use oflow::prelude::*;
use std::sync::OnceLock;

/// Registers the ops of this crate, `fft.c2c` and so on, and its functions by name. Every function of this crate does that by itself; call
/// it before `oflow::init` in programs that run as several processes, because ranks compare their ops when a job starts. Further calls
/// return the same ops.
///
/// # Errors
/// Another crate has registered ops of these names.
pub fn register() -> Result<&'static [&'static Op]> {
    static DONE: OnceLock<Result<Vec<&'static Op>, String>> = OnceLock::new();
    let registered = || {
        let defs = crate::ops::all().into_iter().collect::<Result<Vec<_>>>();
        let ops = defs.and_then(|defs| defs.into_iter().map(oflow::ops::register).collect::<Result<Vec<_>>>());
        ops.and_then(|ops| crate::by_name::register().map(|()| ops)).map_err(|e| e.to_string())
    };
    match DONE.get_or_init(registered) {
        Ok(ops) => Ok(ops),
        Err(why) => Err(Error::registry(format!("the ops of fft are not registered: {why}"))),
    }
}

/// The factor of a transform of n numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norm {
    /// 1/n for the inverse transform: the two are inverse to each other.
    #[default]
    Backward,
    /// 1/√n for both: they keep lengths.
    Ortho,
    /// 1/n for the transform, none for its inverse.
    Forward,
}

impl Norm {
    /// The factor of a transform over that many numbers.
    fn factor(self, numbers: usize, inverse: bool) -> f64 {
        let n = numbers as f64;
        match (self, inverse) {
            (Norm::Ortho, _) => 1.0 / n.sqrt(),
            (Norm::Backward, true) | (Norm::Forward, false) => 1.0 / n,
            _ => 1.0,
        }
    }

    /// Normalisation of the opposite transform.
    fn opposite(self) -> Norm {
        match self {
            Norm::Backward => Norm::Forward,
            Norm::Forward => Norm::Backward,
            Norm::Ortho => Norm::Ortho,
        }
    }

    /// By PyTorch's names: `backward`, `ortho`, `forward`.
    ///
    /// # Errors
    /// It is another word.
    pub fn named(name: &str) -> Result<Norm> {
        match name {
            "backward" => Ok(Norm::Backward),
            "ortho" => Ok(Norm::Ortho),
            "forward" => Ok(Norm::Forward),
            other => Err(Error::argument(format!("norm '{other}' is none of 'backward', 'ortho', 'forward'"))),
        }
    }
}

/// Options of a transform along one dim.
#[derive(Clone, Copy, Debug)]
pub struct Dft {
    /// The length of the transform: the dim is cut, or continued with zeros, to it. Of a transform to real numbers (`irfft`, `hfft`) it is
    /// the length of the result, and 2(m - 1) of m numbers unless given. Otherwise it is the size of the dim.
    pub n: Option<usize>,
    /// The dim; negative ones count from the end. The last one by default.
    pub dim: i64,
    /// Factor of the result.
    pub norm: Norm,
}

impl Default for Dft {
    fn default() -> Dft {
        Dft { n: None, dim: -1, norm: Norm::default() }
    }
}

/// Options of a transform along several dims.
#[derive(Clone, Debug, Default)]
pub struct DftN {
    /// The length along each dim, as in [`Dft::n`]; that of the dim by default. Without `dims` they are of the last dims.
    pub s: Option<Vec<usize>>,
    /// The dims; all by default, of `fft2` and its like the last two.
    pub dims: Option<Vec<i64>>,
    /// Factor of the result.
    pub norm: Norm,
}

fn transform(op: Result<&'static Op>, x: &Tensor, attrs: Vec<AttrValue>) -> Result<Tensor> {
    Call::new(op?, &[Some(x)]).attrs(attrs.into_iter().collect::<oflow::ops::Attrs>()).run1()
}

/// The op of that name, registered if need be.
macro_rules! fft_op {
    ($name:literal) => {
        register().and_then(|_| op!(concat!("fft.", $name)))
    };
}

/// Runs the body of the function of that name for its caller.
#[track_caller]
fn named<R>(name: &str, x: &Tensor, body: impl FnOnce() -> Result<R>) -> Result<R> {
    CallSite::here().run(body).map_err(|e| e.within(|| format!("{name}({})", x.short())))
}

/// The dim as one from 0 on. A number without dims has none that could be transformed.
fn place(x: &Tensor, dim: i64) -> Result<usize> {
    match x.ndim() {
        0 => Err(Error::shape("a transform needs a tensor with dims").help("`unsqueeze(0)` gives a number a dim")),
        rank => normalize_dim(dim, rank),
    }
}

/// A length as an attribute.
pub(crate) fn int(n: usize) -> Result<i64> {
    i64::try_from(n).map_err(|_| Error::shape(format!("{n} elements cannot be addressed")))
}

/// A dim cut, or continued with zeros, to a length.
fn resized(x: &Tensor, dim: usize, n: usize) -> Result<Tensor> {
    let have = x.shape()[dim];
    if n == 0 {
        return Err(Error::argument("a transform of length 0"));
    }
    if n <= have {
        return if n == have { Ok(x.clone()) } else { x.slice(dim as i64, 0, n as i64, 1) };
    }
    // Pairs from the last dim on.
    let mut pairs = vec![0i64; 2 * (x.ndim() - dim)];
    if let Some(after) = pairs.last_mut() {
        *after = int(n - have)?;
    }
    x.pad(pairs)
}

fn as_complex(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() { Ok(x.clone()) } else { x.cast(x.dtype().complex()) }
}

fn as_real(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        d if d.is_complex() => {
            Err(Error::dtype(format!("x must be real, not {d}")).help("`fft` transforms complex numbers"))
        }
        DType::F32 | DType::F64 => Ok(x.clone()),
        _ => x.cast(DType::F32),
    }
}

/// Dims and lengths of a transform along several.
fn sizes(x: &Tensor, o: &DftN, usual: Option<&[i64]>, real_result: bool) -> Result<Vec<(usize, usize)>> {
    let given = o.dims.as_deref().or(usual.filter(|u| o.s.as_ref().is_none_or(|s| s.len() == u.len())));
    let dims: Vec<usize> = match (given, &o.s) {
        (Some(dims), _) => dims.iter().map(|d| place(x, *d)).collect::<Result<_>>()?,
        (None, Some(s)) if s.len() <= x.ndim() => (x.ndim() - s.len()..x.ndim()).collect(),
        (None, Some(s)) => return Err(Error::argument(format!("{} lengths are given for {} dims", s.len(), x.ndim()))),
        (None, None) => (0..x.ndim()).collect(),
    };
    if let Some(s) = o.s.as_ref().filter(|s| s.len() != dims.len()) {
        return Err(Error::argument(format!("{} lengths are given for {} dims", s.len(), dims.len())));
    }
    if let Some(twice) = (1..dims.len()).find(|i| dims[..*i].contains(&dims[*i])) {
        return Err(Error::argument(format!("dim {} is named twice", dims[twice])));
    }
    if dims.is_empty() {
        return Err(Error::argument("a transform needs at least one dim"));
    }
    let last = dims.len() - 1;
    let size = |(i, d): (usize, &usize)| {
        let have = x.shape()[*d];
        let usual = if real_result && i == last { 2 * have.saturating_sub(1) } else { have };
        (*d, o.s.as_ref().map_or(usual, |s| s[i]))
    };
    Ok(dims.iter().enumerate().map(size).collect())
}

fn product(sizes: &[(usize, usize)]) -> usize {
    sizes.iter().fold(1, |n, (_, size)| n.saturating_mul(*size))
}

fn to_complex(x: &Tensor, sizes: &[(usize, usize)], norm: Norm, inverse: bool) -> Result<Tensor> {
    along(as_complex(x)?, sizes, inverse, norm.factor(product(sizes), inverse))
}

/// Complex transforms along dims, times a factor.
fn along(mut y: Tensor, sizes: &[(usize, usize)], inverse: bool, factor: f64) -> Result<Tensor> {
    for (i, (dim, n)) in sizes.iter().enumerate() {
        let factor = if i + 1 == sizes.len() { factor } else { 1.0 };
        let attrs = vec![(*dim as i64).into(), inverse.into(), factor.into()];
        y = transform(fft_op!("c2c"), &resized(&y, *dim, *n)?, attrs)?;
    }
    Ok(y)
}

fn real_to_complex(x: &Tensor, sizes: &[(usize, usize)], norm: Norm) -> Result<Tensor> {
    let (last, others) = sizes.split_last().ok_or_else(|| Error::argument("a transform needs at least one dim"))?;
    // The lengths of all dims first: what is cut away is not transformed.
    let mut x = as_real(x)?;
    for (dim, n) in sizes {
        x = resized(&x, *dim, *n)?;
    }
    let factor = norm.factor(product(sizes), false);
    let first = if others.is_empty() { factor } else { 1.0 };
    let y = transform(fft_op!("r2c"), &x, vec![(last.0 as i64).into(), first.into()])?;
    along(y, others, false, factor)
}

fn complex_to_real(x: &Tensor, sizes: &[(usize, usize)], norm: Norm) -> Result<Tensor> {
    let ((dim, n), others) = sizes.split_last().ok_or_else(|| Error::argument("a transform needs at least one dim"))?;
    if *n == 0 {
        return Err(Error::argument("a transform of length 0").help("give the length of the result"));
    }
    let y = along(as_complex(x)?, others, true, 1.0)?;
    let half = resized(&y, *dim, n / 2 + 1)?;
    let factor = norm.factor(product(sizes), true);
    transform(fft_op!("c2r"), &half, vec![(*dim as i64).into(), (*n as i64).into(), factor.into()])
}

/// The dim and the length of a transform along one.
fn one(x: &Tensor, o: Dft, real_result: bool) -> Result<Vec<(usize, usize)>> {
    sizes(x, &DftN { s: o.n.map(|n| vec![n]), dims: Some(vec![o.dim]), norm: o.norm }, None, real_result)
}

/// Functions along one dim.
macro_rules! along_one {
    ($($(#[$doc:meta])* $name:ident($x:ident, $o:ident) = $real:literal, |$sizes:ident| $made:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// The tensor has no such dim, or nothing along it.
        #[track_caller]
        pub fn $name($x: &Tensor, $o: Dft) -> Result<Tensor> {
            named(stringify!($name), $x, || one($x, $o, $real).and_then(|$sizes| $made))
        }
    )*};
}

along_one! {
    /// The discrete Fourier transform `y[k] = Σ x[j] exp(-2πi jk / n)` along a dim.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 0.0, 0.0], [3], Device::Cpu)?;
    /// assert_eq!(oflow_fft::fft(&x, Default::default())?.to_vec::<Complex<f32>>()?, [Complex::new(1.0, 0.0); 3]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    fft(x, o) = false, |s| to_complex(x, &s, o.norm, false);
    /// The inverse of [`fft`], `x[j] = 1/n Σ y[k] exp(2πi jk / n)`.
    ifft(x, o) = false, |s| to_complex(x, &s, o.norm, true);
    /// The first n/2 + 1 numbers of the transform of real ones; the others are their conjugates in the opposite order.
    rfft(x, o) = false, |s| real_to_complex(x, &s, o.norm);
    /// The inverse of [`rfft`]: n real numbers from n/2 + 1 complex ones. Whether n is even or odd these do not say: it is even unless
    /// given.
    irfft(x, o) = true, |s| complex_to_real(x, &s, o.norm);
    /// The real transform of numbers of which the second half are conjugates of the first, which is given.
    hfft(x, o) = true, |s| complex_to_real(&x.conj()?, &s, o.norm.opposite());
    /// The inverse of [`hfft`].
    ihfft(x, o) = false, |s| real_to_complex(x, &s, o.norm.opposite())?.conj();
}

const LAST_TWO: &[i64] = &[-2, -1];

/// Functions along several dims.
macro_rules! along_several {
    ($($(#[$doc:meta])* $name:ident($x:ident, $o:ident) = $usual:expr, $real:literal, |$sizes:ident| $made:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// The tensor has no such dims, or nothing along one; there are not as many lengths as dims.
        #[track_caller]
        pub fn $name($x: &Tensor, $o: DftN) -> Result<Tensor> {
            named(stringify!($name), $x, || sizes($x, &$o, $usual, $real).and_then(|$sizes| $made))
        }
    )*};
}

along_several! {
    /// [`fft`] along several dims, all by default.
    fftn(x, o) = None, false, |s| to_complex(x, &s, o.norm, false);
    /// [`ifft`] along several dims, all by default.
    ifftn(x, o) = None, false, |s| to_complex(x, &s, o.norm, true);
    /// [`rfft`] along the last of several dims, [`fft`] along the others.
    rfftn(x, o) = None, false, |s| real_to_complex(x, &s, o.norm);
    /// The inverse of [`rfftn`].
    irfftn(x, o) = None, true, |s| complex_to_real(x, &s, o.norm);
    /// [`fft`] along two dims, the last ones by default.
    fft2(x, o) = Some(LAST_TWO), false, |s| to_complex(x, &s, o.norm, false);
    /// [`ifft`] along two dims, the last ones by default.
    ifft2(x, o) = Some(LAST_TWO), false, |s| to_complex(x, &s, o.norm, true);
    /// [`rfftn`] along two dims, the last ones by default.
    rfft2(x, o) = Some(LAST_TWO), false, |s| real_to_complex(x, &s, o.norm);
    /// [`irfftn`] along two dims, the last ones by default.
    irfft2(x, o) = Some(LAST_TWO), true, |s| complex_to_real(x, &s, o.norm);
    /// [`hfft`] along the last of several dims, [`fft`] along the others: the numbers are Hermitian, so the result is real.
    hfftn(x, o) = None, true, |s| complex_to_real(&x.conj()?, &s, o.norm.opposite());
    /// The inverse of [`hfftn`].
    ihfftn(x, o) = None, false, |s| real_to_complex(x, &s, o.norm.opposite())?.conj();
    /// [`hfftn`] along two dims, the last ones by default.
    hfft2(x, o) = Some(LAST_TWO), true, |s| complex_to_real(&x.conj()?, &s, o.norm.opposite());
    /// [`ihfftn`] along two dims, the last ones by default.
    ihfft2(x, o) = Some(LAST_TWO), false, |s| real_to_complex(x, &s, o.norm.opposite())?.conj();
}

/// The frequencies of [`fft`] of n samples that are `d` apart: 0, 1, …, then the negative ones up to -1, divided by n d. In f32 unless the
/// target says another dtype.
///
/// ```
/// use oflow::prelude::*;
/// let f = oflow_fft::fftfreq(5, 0.1, Device::Cpu.dtype(DType::F64))?;
/// assert_eq!(f.to_vec::<f64>()?, [0.0, 2.0, 4.0, -4.0, -2.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// n is 0, or too large for a tensor; the dtype has no fractions.
#[track_caller]
pub fn fftfreq(n: usize, d: f64, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    let body = || {
        let (n_int, half) = (n as i64, (n / 2) as i64);
        // 0 goes to half and back, what comes behind it to 0 and -half.
        let k = samples(n, n, &target)?.add(half)?.remainder(n_int)?.sub(half)?;
        frequencies(k, n, d, &target)
    };
    CallSite::here().run(body).map_err(|e| e.within(|| format!("fftfreq({n}, {d})")))
}

/// The frequencies of [`rfft`] of n samples that are `d` apart: 0, 1, … n/2, divided by n d. In f32 unless the target says another dtype.
///
/// # Errors
/// n is 0, or too large for a tensor; the dtype has no fractions.
#[track_caller]
pub fn rfftfreq(n: usize, d: f64, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    let body = || frequencies(samples(n, n / 2 + 1, &target)?, n, d, &target);
    CallSite::here().run(body).map_err(|e| e.within(|| format!("rfftfreq({n}, {d})")))
}
/// The first numbers 0, 1, … of those of n samples.
fn samples(n: usize, count: usize, target: &TargetSpec) -> Result<Tensor> {
    if n == 0 {
        return Err(Error::argument("no samples have no frequencies"));
    }
    int(n)?;
    arange(int(count)?, target.target().clone().dtype(DType::I64))
}

fn frequencies(k: Tensor, n: usize, d: f64, target: &TargetSpec) -> Result<Tensor> {
    match target.dtype_or(DType::F32) {
        dtype if dtype.has_gradients() => k.cast(DType::F64)?.div(n as f64 * d)?.cast(dtype),
        dtype => Err(Error::dtype(format!("frequencies are fractions, and {dtype} has none"))),
    }
}

/// Moves frequency 0 to the middle of each dim (none given: all).
///
/// # Errors
/// The tensor has no such dim.
#[track_caller]
pub fn fftshift(x: &Tensor, dims: Option<&[i64]>) -> Result<Tensor> {
    named("fftshift", x, || shifted(x, dims, |n| n / 2))
}

/// The inverse of [`fftshift`].
///
/// # Errors
/// The tensor has no such dim.
#[track_caller]
pub fn ifftshift(x: &Tensor, dims: Option<&[i64]>) -> Result<Tensor> {
    named("ifftshift", x, || shifted(x, dims, |n| n.div_ceil(2)))
}

fn shifted(x: &Tensor, dims: Option<&[i64]>, by: impl Fn(usize) -> usize) -> Result<Tensor> {
    let all: Vec<i64> = (0..x.ndim() as i64).collect();
    let dims = dims.unwrap_or(&all);
    let shifts = dims.iter().map(|d| Ok(by(x.shape()[place(x, *d)?]) as i64)).collect::<Result<Vec<i64>>>()?;
    if dims.is_empty() { x.copy() } else { x.roll(shifts, dims.to_vec()) }
}
