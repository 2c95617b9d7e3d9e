//! Factories. Each takes a target: a device for a local tensor, `(&placement, sbp)` for a global one.

use super::bind::Bound;
use super::draw::drawn;
use super::{create, invoke1, op};
use crate::context::{Generator, current, inner_calls};
use crate::error::{CallSite, Error, Result};
use crate::interpreter::{self, Target};
use crate::ops::{AttrValue, TensorType};
use crate::placement::{Device, Placement};
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::{DType, DTypeKind, Element, Scalar};
use smallvec::smallvec;

/// Where a new tensor lives and of which dtype it is.
#[derive(Clone, Debug)]
pub struct TargetSpec {
    target: Target,
    dtype: Option<DType>,
    generator: Option<Generator>,
}

impl TargetSpec {
    fn of(target: Target) -> TargetSpec {
        TargetSpec { target, dtype: None, generator: None }
    }
    /// Of that dtype (instead of the factory's default).
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = zeros([2], Device::Cpu.dtype(DType::F64))?;
    /// assert_eq!(x.dtype(), DType::F64);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> TargetSpec {
        self.dtype = Some(dtype);
        self
    }
    /// With numbers of that generator. Factories that draw no numbers take no notice of it.
    #[must_use]
    pub fn generator(mut self, generator: &Generator) -> TargetSpec {
        self.generator = Some(generator.clone());
        self
    }
    /// The runtime attributes `seed` and `ordinal` of one random op: of its own generator, or those that stand for the rank's.
    pub(crate) fn drawn(&self) -> Result<[Scalar; 2]> {
        drawn(self.generator.as_ref())
    }
    /// Device or global layout of the new tensor.
    pub fn target(&self) -> &Target {
        &self.target
    }
    /// The dtype, or the factory's default where none was asked for.
    pub fn dtype_or(&self, default: DType) -> DType {
        self.dtype.unwrap_or(default)
    }
}

/// Types that can be a target: `Device::Cpu`, `(&placement, sbp![...])`, `Device::Cpu.dtype(..)`, `like.target()`, or a
/// reference to one of these.
pub trait IntoTarget: Sized {
    /// Converts the value to a target.
    fn into_target(self) -> TargetSpec;
    /// The target with another dtype than the default.
    fn dtype(self, dtype: DType) -> TargetSpec {
        self.into_target().dtype(dtype)
    }
    /// The target with numbers of that generator, for factories of random tensors.
    fn generator(self, generator: &Generator) -> TargetSpec {
        self.into_target().generator(generator)
    }
}

impl IntoTarget for TargetSpec {
    fn into_target(self) -> TargetSpec {
        self
    }
}
impl<T: IntoTarget + Clone> IntoTarget for &T {
    fn into_target(self) -> TargetSpec {
        self.clone().into_target()
    }
}
impl IntoTarget for Target {
    fn into_target(self) -> TargetSpec {
        TargetSpec::of(self)
    }
}
impl IntoTarget for Device {
    fn into_target(self) -> TargetSpec {
        TargetSpec::of(Target::Local(self))
    }
}
impl<S: Into<NdSbp>> IntoTarget for (&Placement, S) {
    fn into_target(self) -> TargetSpec {
        TargetSpec::of(Target::Global(self.0.clone(), self.1.into()))
    }
}
impl<S: Into<NdSbp>> IntoTarget for (Placement, S) {
    fn into_target(self) -> TargetSpec {
        (&self.0, self.1).into_target()
    }
}
impl From<&NdSbp> for NdSbp {
    fn from(s: &NdSbp) -> NdSbp {
        s.clone()
    }
}

impl Bound {
    /// Where the new tensor of parameter `i` lives, of the dtype of parameter `dtype` if that was given.
    ///
    /// # Errors
    /// Parameter `i` is not declared as a target.
    pub fn target_of(&self, i: usize, dtype: Option<usize>) -> Result<TargetSpec> {
        let target = self.target(i)?.into_target();
        Ok(match dtype.and_then(|d| self.dtype(d)) {
            Some(dtype) => target.dtype(dtype),
            None => target,
        })
    }
    /// The same, with numbers of the generator of parameter `generator`.
    pub(super) fn drawing_target_of(&self, i: usize, dtype: Option<usize>, generator: usize) -> Result<TargetSpec> {
        let target = self.target_of(i, dtype)?;
        Ok(match self.generator(generator) {
            Some(g) => target.generator(g),
            None => target,
        })
    }
}

functions! {
    FUNCTIONS, "Creation";
    /// Every element is `value`; the dtype is that of the number's kind unless the target says otherwise.
    "full(Shape shape, Scalar value, Target target, *, DataType? dtype) -> Tensor" = full as fn full;
    /// Zeros; f32 unless the target says otherwise.
    "zeros(Shape shape, Target target, *, DataType dtype=f32) -> Tensor" = zeros as fn zeros;
    /// Ones; f32 unless the target says otherwise.
    "ones(Shape shape, Target target, *, DataType dtype=f32) -> Tensor" = ones as fn ones;
    /// Memory whose contents nobody reads before writing them; zeros, so that no rank ever sees another's garbage.
    "empty(Shape shape, Target target, *, DataType dtype=f32) -> Tensor" = zeros as fn empty;
    /// 0, 1, … below `end`; i64 unless the target says otherwise.
    "arange(Int end, Target target, *, DataType dtype=i64) -> Tensor" = arange as fn arange;
    /// start, start + step, … below `end`: of integers i64, else f32, unless the target says otherwise.
    ///
    /// # Errors
    /// On a step of zero or one that leads away from `end`.
    "arange(Scalar start, Scalar end, Scalar step, Target target, *, DataType? dtype) -> Tensor" = range as fn range;
    /// `steps` numbers from `start` to `end`, both included, in equal steps; f32 unless the target says otherwise.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// assert_eq!(linspace(0.0, 1.0, 3, Device::Cpu)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "linspace(Float start, Float end, Int steps, Target target, *, DataType dtype=f32) -> Tensor" = linspace as fn linspace;
    /// `steps` numbers from `base` to the power `start` to `base` to the power `end`, with exponents in equal steps; f32 unless the
    /// target says otherwise.
    "logspace(Float start, Float end, Int steps, Target target, *, Float base=10.0, DataType dtype=f32) -> Tensor" = logspace as fn logspace;
    /// A matrix of `n` rows with ones on its diagonal; with `m` columns where given, else square. f32 unless the target says otherwise.
    "eye(Int n, Target target, *, Int? m, DataType dtype=f32) -> Tensor" = eye as fn eye;
    /// A tensor without dims.
    "scalar_tensor(Scalar value, Target target, *, DataType? dtype) -> Tensor" = scalar_tensor as fn scalar_tensor;
}

by_name! {
    RANGES, "Creation", ByName;
    /// 0, 1, … below `end`: of an integer i64, else f32, unless the target says otherwise.
    "arange(Scalar end, Target target, *, DataType? dtype) -> Tensor" = |b| {
        Ok(vec![range(Scalar::Int(0), b.scalar(0)?, Scalar::Int(1), &b.target_of(1, Some(2))?, b.site)?])
    };
    /// start, start + 1, … below `end`: of integers i64, else f32, unless the target says otherwise.
    "arange(Scalar start, Scalar end, Target target, *, DataType? dtype) -> Tensor" = |b| {
        Ok(vec![range(b.scalar(0)?, b.scalar(1)?, Scalar::Int(1), &b.target_of(2, Some(3))?, b.site)?])
    };
}

functions! {
    LIKE, "Creation";
    /// Zeros of the same shape, dtype and layout.
    "zeros_like(Tensor x) -> Tensor" = zeros_like as fn zeros_like;
    /// Ones of the same shape, dtype and layout.
    "ones_like(Tensor x) -> Tensor" = ones_like as fn ones_like;
    /// Memory whose contents nobody reads before writing them (zeros), with the same shape, dtype and layout.
    "empty_like(Tensor x) -> Tensor" = zeros_like as fn empty_like;
    /// Integers in [lo, hi), with the same shape, dtype and layout.
    "randint_like(Tensor x, Int lo, Int hi) -> Tensor" = randint_like as fn randint_like;
    /// `value` everywhere, with the same shape, dtype and layout.
    "full_like(Tensor x, Scalar value) -> Tensor" = full_like as fn full_like;
}

pub(super) fn full(shape: &[usize], value: Scalar, target: &TargetSpec, site: CallSite) -> Result<Tensor> {
    let dtype = target.dtype_or(match value {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => DType::F32,
        Scalar::Complex(..) => DType::C64,
    });
    create(op!("full"), smallvec![AttrValue::from(shape), dtype.into()], smallvec![value], &target.target, site)
}

pub(super) fn zeros(shape: &[usize], target: &TargetSpec, site: CallSite) -> Result<Tensor> {
    full(shape, Scalar::Float(0.0), target, site)
}

pub(super) fn ones(shape: &[usize], target: &TargetSpec, site: CallSite) -> Result<Tensor> {
    full(shape, Scalar::Float(1.0), target, site)
}

pub(super) fn arange(end: i64, target: &TargetSpec, site: CallSite) -> Result<Tensor> {
    range(Scalar::Int(0), Scalar::Int(end), Scalar::Int(1), target, site)
}

pub(super) fn range(start: Scalar, end: Scalar, step: Scalar, target: &TargetSpec, site: CallSite) -> Result<Tensor> {
    let span = end.to_f64() - start.to_f64();
    let refused = |e: Error| e.in_call(|| format!("range({start}, {end}, {step})")).at(site);
    let ints = matches!((start, end, step), (Scalar::Int(_), Scalar::Int(_), Scalar::Int(_)));
    let len = match (start, end, step) {
        // Floats would lose the last digits of large integers.
        (Scalar::Int(a), Scalar::Int(b), Scalar::Int(s)) if s != 0 => {
            let (span, s) = (i128::from(b) - i128::from(a), i128::from(s));
            Some(span / s + i128::from(span % s != 0)).filter(|_| span == 0 || (span < 0) == (s < 0))
        }
        (Scalar::Int(_), Scalar::Int(_), Scalar::Int(_)) => None,
        _ => {
            let count = (span / step.to_f64()).ceil();
            (count >= 0.0 && count.is_finite()).then_some(count as i128)
        }
    };
    let len = len.ok_or_else(|| refused(Error::argument("no range leads there in such steps")))?;
    let len = i64::try_from(len).map_err(|_| refused(Error::shape(format!("{len} elements cannot be addressed"))))?;
    let dtype = target.dtype_or(if ints { DType::I64 } else { DType::F32 });
    // In an integer dtype start and step are integers before the first sum, as in PyTorch: the steps are equal.
    let (start, step) = match (dtype.kind(), ints) {
        (DTypeKind::Int, false) => {
            let whole = step.to_f64().trunc();
            if whole == 0.0 && len > 1 {
                let e = Error::argument(format!("expected a step of at least 1 for {dtype}, not {step}"));
                return Err(refused(e).help("give a float dtype, and cast the result"));
            }
            (Scalar::Float(start.to_f64().trunc()), Scalar::Float(whole))
        }
        _ => (start, step),
    };
    create(op!("arange"), smallvec![len.into(), dtype.into()], smallvec![start, step], &target.target, site)
}

/// A number of elements, or an error that says which number is none.
fn length(n: i64, method: &str, site: CallSite) -> Result<i64> {
    let refused = || {
        Error::argument(format!("the number of elements is {n}: expected 0 or more"))
            .in_call(|| format!("{method}({n})"))
            .at(site)
    };
    if n < 0 { Err(refused()) } else { Ok(n) }
}

/// Calls `make` for the dtype that was asked for; complex numbers are made of real ones.
fn of_reals(
    target: &TargetSpec,
    site: CallSite,
    make: impl FnOnce(&TargetSpec, DType) -> Result<Tensor>,
) -> Result<Tensor> {
    let dtype = target.dtype_or(DType::F32);
    if !dtype.is_complex() {
        return make(target, dtype);
    }
    let inner = inner_calls();
    let real = make(&target.clone().dtype(dtype.part()), dtype.part())?;
    drop(inner);
    real.cast_at(dtype, site)
}

pub(super) fn linspace(start: f64, end: f64, steps: i64, target: &TargetSpec, site: CallSite) -> Result<Tensor> {
    of_reals(target, site, |target, dtype| steps_between(start, end, steps, target, dtype, site))
}

fn steps_between(
    start: f64,
    end: f64,
    steps: i64,
    target: &TargetSpec,
    dtype: DType,
    site: CallSite,
) -> Result<Tensor> {
    let attrs = smallvec![length(steps, "linspace", site)?.into(), dtype.into()];
    let [start, end] = [start, end].map(|v| bound(v, dtype));
    create(op!("linspace"), attrs, smallvec![start.into(), end.into()], &target.target, site)
}

/// A bound of equal steps: in an integer dtype an integer, as in PyTorch.
fn bound(v: f64, dtype: DType) -> f64 {
    if dtype.kind() == DTypeKind::Int { v.trunc() } else { v }
}

pub(super) fn logspace(
    start: f64,
    end: f64,
    steps: i64,
    target: &TargetSpec,
    base: f64,
    site: CallSite,
) -> Result<Tensor> {
    of_reals(target, site, |target, dtype| {
        let [start, end] = [start, end].map(|v| bound(v, dtype));
        // Integers are what is left of the powers, not of the exponents.
        let wide = if dtype.has_gradients() { dtype } else { DType::F64 };
        let attrs = smallvec![length(steps, "logspace", site)?.into(), wide.into()];
        let inner = inner_calls();
        let exponents = create(op!("linspace"), attrs, smallvec![start.into(), end.into()], &target.target, site)?;
        let power =
            || invoke1(op!("rpow_scalar"), &[Some(&exponents)], smallvec![], smallvec![Scalar::Float(base)], site);
        if wide == dtype {
            drop(inner);
            return power();
        }
        let powers = power()?;
        drop(inner);
        powers.cast_at(dtype, site)
    })
}

pub(super) fn eye(n: i64, target: &TargetSpec, m: Option<i64>, site: CallSite) -> Result<Tensor> {
    let (rows, columns) = (length(n, "eye", site)?, length(m.unwrap_or(n), "eye", site)?);
    of_reals(target, site, |target, dtype| {
        create(op!("eye"), smallvec![rows.into(), columns.into(), dtype.into()], smallvec![], &target.target, site)
    })
}

pub(super) fn randint_like(x: &Tensor, lo: i64, hi: i64, site: CallSite) -> Result<Tensor> {
    let [seed, ordinal] = drawn(None).map_err(|e| e.at(site))?;
    let attrs = smallvec![AttrValue::from(x.shape()), x.dtype().into()];
    create(op!("randint"), attrs, smallvec![Scalar::Int(lo), Scalar::Int(hi), seed, ordinal], &x.target().target, site)
}

pub(super) fn scalar_tensor(value: Scalar, target: &TargetSpec, site: CallSite) -> Result<Tensor> {
    full(&[], value, target, site)
}

pub(super) fn zeros_like(x: &Tensor, site: CallSite) -> Result<Tensor> {
    zeros(x.shape(), &x.target(), site)
}

pub(super) fn ones_like(x: &Tensor, site: CallSite) -> Result<Tensor> {
    ones(x.shape(), &x.target(), site)
}

pub(super) fn full_like(x: &Tensor, value: Scalar, site: CallSite) -> Result<Tensor> {
    full(x.shape(), value, &x.target(), site)
}

/// A tensor from values, row-major. With a global target every rank gives the same (logical) values.
///
/// # Errors
/// When the number of values is not that of the shape.
#[track_caller]
pub fn from_vec<T: Element>(data: Vec<T>, shape: impl AsRef<[usize]>, target: impl IntoTarget) -> Result<Tensor> {
    let (t, site, shape) = (target.into_target(), CallSite::here(), shape.as_ref());
    let refused = |e: Error| e.in_call(|| format!("from_vec({}{shape:?})", T::DTYPE)).at(site);
    let n = TensorType::checked(shape, T::DTYPE).map_err(refused)?.len();
    if n != data.len() {
        return Err(refused(Error::shape(format!("{} values do not fill the shape {shape:?} ({n})", data.len()))));
    }
    // SAFETY: `Element` types are plain numbers (and bool) without padding; the slice covers the vector.
    let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr() as *const u8, std::mem::size_of_val(&data[..])) };
    let local = local_from_bytes(bytes, shape, T::DTYPE, &t.target, site).map_err(refused)?;
    let local = match t.dtype {
        Some(d) => invoke1(op!("cast"), &[Some(&local)], smallvec![d.into()], smallvec![], site)?,
        None => local,
    };
    placed(local, &t.target, site)
}

/// A tensor from the bytes of its elements, row-major and in the byte order of the machine, of any dtype: how tensors of a
/// registered dtype begin. With a global target every rank gives the same (logical) bytes. [`Tensor::to_bytes`] reads them.
///
/// ```
/// use oflow::functional::from_bytes;
/// use oflow::kernels::Builtin;
/// use oflow::prelude::*;
/// let q = DType::register(oflow::Registered::new("fixed8", Builtin::I8).parameter("scale", 0.5))?;
/// let x = from_bytes(&[1, 2, 255], [3], Device::Cpu.dtype(q))?;
/// assert_eq!((x.dtype(), x.to_bytes()?), (q, vec![1, 2, 255]));
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// When the target states no dtype, or the bytes are not the elements of the shape.
#[track_caller]
pub fn from_bytes(bytes: &[u8], shape: impl AsRef<[usize]>, target: impl IntoTarget) -> Result<Tensor> {
    let (t, site, shape) = (target.into_target(), CallSite::here(), shape.as_ref());
    let refused = |e: Error| e.in_call(|| format!("from_bytes({shape:?})")).at(site);
    let no_dtype = || Error::argument("the bytes are of no dtype").help("state it: `Device::Cpu.dtype(dtype)`");
    let dtype = t.dtype.ok_or_else(|| refused(no_dtype()))?;
    let n = TensorType::checked(shape, dtype).map_err(refused)?.bytes();
    if n != bytes.len() {
        return Err(refused(Error::shape(format!("{} bytes do not fill {dtype}{shape:?} ({n})", bytes.len()))));
    }
    if dtype == DType::Bool && bytes.iter().any(|b| *b > 1) {
        return Err(refused(Error::argument("a bool is the byte 0 or 1")));
    }
    placed(local_from_bytes(bytes, shape, dtype, &t.target, site).map_err(refused)?, &t.target, site)
}

/// A local tensor of these elements on the target's device.
fn local_from_bytes(bytes: &[u8], shape: &[usize], dtype: DType, target: &Target, site: CallSite) -> Result<Tensor> {
    let device = match target {
        Target::Local(d) => *d,
        Target::Global(p, _) => p.device(),
    };
    interpreter::from_bytes(&current(), bytes, shape, dtype, device, ("from_bytes", site))
}

/// A local tensor on the target's device, there or distributed.
fn placed(local: Tensor, target: &Target, site: CallSite) -> Result<Tensor> {
    match target {
        Target::Local(_) => Ok(local),
        Target::Global(p, s) => {
            invoke1(op!("distribute"), &[Some(&local)], smallvec![p.into(), s.into()], smallvec![], site)
        }
    }
}

impl Tensor {
    /// The target that makes tensors like this one: same device or placement and SBP, same dtype.
    pub fn target(&self) -> TargetSpec {
        let target = match self.global() {
            Some(g) => Target::Global(g.placement.clone(), g.sbp.clone()),
            None => Target::Local(self.device()),
        };
        TargetSpec::of(target).dtype(self.dtype())
    }
}
