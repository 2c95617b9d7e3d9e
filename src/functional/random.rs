//! The numbers of random functions, and functions made of random tensors.

use super::create::TargetSpec;
use super::draw::drawn;
use super::{Bound, create, invoke, invoke1, op};
use crate::context::{Generator, inner_calls};
use crate::error::{CallSite, Error, Result};
use crate::interpreter::Target;
use crate::ops::AttrValue;
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Random numbers";
    /// Uniform numbers in [lo, hi); f32 unless the target says otherwise. Of complex numbers both parts are.
    "rand(Shape shape, Target target, *, Float lo=0.0, Float hi=1.0, DataType dtype=f32, Generator? generator) -> Tensor" = rand as fn rand;
    /// Normal numbers with this mean and standard deviation; f32 unless the target says otherwise. Complex numbers have half of the variance
    /// in each part.
    "randn(Shape shape, Target target, *, Float mean=0.0, Float std=1.0, DataType dtype=f32, Generator? generator) -> Tensor" = randn as fn randn;
    /// The numbers from 0 to n - 1 in a random order, which does not depend on placement or SBP; i64 unless the target says otherwise.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// assert_eq!(randperm(4, Device::Cpu)?.msort()?.to_vec::<i64>()?, [0, 1, 2, 3]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "randperm(Int n, Target target, *, DataType dtype=i64, Generator? generator) -> Tensor" = randperm as fn randperm;
    /// `num_samples` indices of each row of weights, each drawn with a probability in proportion to its weight; without `replacement` no
    /// index comes twice, and indices without weight come last. Weights are not negative and have a finite sum; they need not add up to
    /// one. The indices do not depend on placement or SBP.
    "multinomial(Tensor probs, Int num_samples, Bool replacement=false, *, Generator? generator) -> Tensor" = multinomial;
    /// Normal numbers with this mean and standard deviation; f32 unless the target says otherwise.
    "normal(Float mean, Float std, Shape shape, Target target, *, DataType dtype=f32, Generator? generator) -> Tensor" = normal as fn normal;
    /// Normal numbers, each with a mean and a standard deviation of its own. Shapes broadcast; there is a gradient of both.
    "normal(Tensor mean, Tensor std, *, Generator? generator) -> Tensor" = normal_of as fn normal_of;
    /// Random choices among the categories along `dim`, with a gradient: the softmax of (logits + Gumbel noise) / `tau`. With `hard` the
    /// result is one-hot, and the gradient is that of the softmax (Jang et al., 2017).
    "gumbel_softmax(Tensor logits, Float tau=1.0, Bool hard=false, Int dim=-1, *, Generator? generator) -> Tensor" = gumbel_softmax;
}

functions! {
    LIKE, "Creation";
    /// Uniform numbers in [0, 1), with the same shape, dtype and layout.
    "rand_like(Tensor x) -> Tensor" = rand_like as fn rand_like;
    /// Normal numbers with mean 0 and standard deviation 1, with the same shape, dtype and layout.
    "randn_like(Tensor x) -> Tensor" = randn_like as fn randn_like;
}

by_name! {
    BY_NAME, "Random numbers", ByName;
    /// Normal numbers, each with a mean of its own, of one standard deviation.
    "normal(Tensor mean, Float std=1.0, *, Generator? generator) -> Tensor" = |b| {
        let std = b.float(1)?;
        normal_from(b, b.given(0)?, |z, mean| z.mul(std)?.add(mean), deviation(std))
    };
    /// Normal numbers of one mean, each with a standard deviation of its own.
    "normal(Float mean, Tensor std, *, Generator? generator) -> Tensor" = |b| {
        let mean = b.float(0)?;
        normal_from(b, b.given(1)?, |z, std| z.mul(std)?.add(mean), Ok(()))
    };
}

fn normal_from(
    b: &Bound,
    like: &Tensor,
    scaled: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
    right: Result<()>,
) -> Result<Vec<Tensor>> {
    let body = || {
        right?;
        let z = numbers_like(op!("randn"), &like.detach(), &[0.0, 1.0], b.generator(2), b.site)?;
        Ok(vec![scaled(&z, like)?])
    };
    b.site.run(body).map_err(|e| e.within(|| format!("normal({})", like.short())))
}

functions! {
    IN_PLACE, "In place";
    /// x becomes normal numbers with this mean and standard deviation, in place. They do not depend on placement or SBP.
    ///
    /// # Errors
    /// If x is no tensor of floats or the standard deviation is negative; when x is a leaf that requires a gradient, outside `no_grad`. The
    /// same holds for the functions below.
    "normal_(Tensor x, Float mean=0.0, Float std=1.0, Generator? generator) -> Tensor" = normal_;
    /// x becomes uniform numbers from `lo` to below `hi`, in place.
    "uniform_(Tensor x, Float lo=0.0, Float hi=1.0, Generator? generator) -> Tensor" = uniform_;
    /// x becomes numbers of the exponential distribution with this rate, in place.
    "exponential_(Tensor x, Float rate=1.0, Generator? generator) -> Tensor" = exponential_;
    /// x becomes numbers of a Cauchy distribution, in place.
    "cauchy_(Tensor x, Float median=0.0, Float sigma=1.0, Generator? generator) -> Tensor" = cauchy_;
    /// x becomes numbers whose logarithms are normal with this mean and standard deviation, in place.
    "log_normal_(Tensor x, Float mean=1.0, Float std=2.0, Generator? generator) -> Tensor" = log_normal_;
    /// x becomes numbers of trials until the first success, of the probability `p` each, in place: 1, 2, …
    "geometric_(Tensor x, Float p, Generator? generator) -> Tensor" = geometric_;
    /// x becomes 1 with probability `p` and 0 otherwise, in place.
    "bernoulli_(Tensor x, Float p=0.5, Generator? generator) -> Tensor" = bernoulli_;
}

pub(super) fn randperm(n: i64, target: &TargetSpec, site: CallSite) -> Result<Tensor> {
    let named = |e: Error| e.in_call(|| format!("randperm({n})")).at(site);
    if n < 0 {
        return Err(named(Error::argument(format!("the number of elements is {n}: expected 0 or more"))));
    }
    let [seed, ordinal] = target.drawn().map_err(named)?;
    // Every rank draws and sorts all keys, so nothing is sent.
    let whole = match target.target() {
        Target::Global(p, _) => Target::Global(p.clone(), NdSbp::broadcast(p.axes())),
        local => local.clone(),
    };
    let inner = inner_calls();
    let attrs = smallvec![AttrValue::from(&[n as usize][..]), DType::I64.into()];
    // So many bits that hardly ever two keys are equal; sorting takes a step for each byte of them.
    let bits = (2 * (i64::BITS - n.leading_zeros()) + 8).min(62);
    let bounds = smallvec![Scalar::Int(0), Scalar::Int(1 << bits), seed, ordinal];
    let keys = create(op!("randint"), attrs, bounds, &whole, site)?;
    let attrs = smallvec![0i64.into(), false.into(), true.into()];
    let order = invoke(op!("sort"), &[Some(&keys)], attrs, smallvec![], site)?.remove(1);
    let order = order.cast_at(target.dtype_or(DType::I64), site)?;
    drop(inner);
    match target.target() {
        Target::Global(p, sbp) => {
            let _scope = site.scope();
            order.to_global((p, sbp))
        }
        Target::Local(_) => Ok(order),
    }
}

/// Refuses weights of which nothing can be drawn. It reads three numbers, so it waits for the weights.
fn check_weights(weights: &Tensor, site: CallSite) -> Result<()> {
    if weights.numel() == 0 || crate::is_dry_run() {
        return Ok(());
    }
    let over =
        |op, x: &Tensor, dims: &[i64]| invoke1(op, &[Some(x)], smallvec![dims.into(), false.into()], smallvec![], site);
    let number = |x: Tensor| Ok::<f64, Error>(x.item_at(site)?.to_f64());
    // Both are NaN where a weight is.
    let (low, high) = (number(over(op!("amin"), weights, &[])?)?, number(over(op!("amax"), weights, &[])?)?);
    if !(low >= 0.0 && high < f64::INFINITY) {
        return Err(Error::value(format!(
            "expected weights that are finite and not negative, got weights from {low} to {high}"
        ))
        .help("weights need not add up to 1; `softmax` makes weights of logits"));
    }
    let rows = over(op!("amax"), weights, &[-1])?;
    match number(over(op!("amin"), &rows, &[])?)? > 0.0 {
        true => Ok(()),
        false => Err(Error::value("expected a weight above 0 in each row, got a row of zeros")),
    }
}

pub(super) fn multinomial(
    probs: &Tensor,
    num_samples: i64,
    replacement: bool,
    generator: Option<&Generator>,
    site: CallSite,
) -> Result<Tensor> {
    let named = |e: Error| e.in_call(|| format!("multinomial({}, {num_samples})", probs.short())).at(site);
    if !probs.dtype().is_float() {
        return Err(named(Error::dtype(format!("weights are floats, not {}", probs.dtype()))));
    }
    let Some(n) = probs.shape().last().copied().filter(|_| probs.ndim() <= 2) else {
        return Err(named(Error::shape("the weights must have one dim or two")));
    };
    if num_samples < 1 || n == 0 || (!replacement && num_samples as usize > n) {
        let what = format!("{num_samples} indices cannot be drawn of {n}");
        return Err(named(Error::argument(what)).help("with `replacement` an index may come several times"));
    }
    let _scope = site.scope();
    let inner = inner_calls();
    let weights = probs.detach();
    let weights = if probs.dtype().is_half() { weights.cast(DType::F32)? } else { weights };
    // Parts of a sum are no weights.
    let weights = match weights.global() {
        Some(g) if g.sbp.has_partial() => {
            let whole = NdSbp::broadcast(g.placement.axes());
            weights.to_global(whole)?
        }
        _ => weights,
    };
    check_weights(&weights, site).map_err(named)?;
    let drawn = drawn(generator).map_err(named)?;
    let mut shape = probs.shape().to_vec();
    let last = shape.len() - 1;
    if replacement {
        shape[last] = num_samples as usize;
    }
    let uniform = |target: &Target| {
        let attrs = smallvec![AttrValue::from(&shape[..]), weights.dtype().into()];
        let numbers = smallvec![Scalar::Float(0.0), Scalar::Float(1.0), drawn[0], drawn[1]];
        create(op!("rand"), attrs, numbers, target, site)
    };
    let u = uniform(weights.target().target())?;
    if !replacement {
        // Of exponential numbers with these rates the least ones are first with these probabilities: the greatest weights divided by
        // exponential numbers.
        let score = weights.div(&u.log()?.neg()?)?;
        drop(inner);
        let attrs = smallvec![num_samples.into(), AttrValue::from(-1i64), true.into(), true.into()];
        return Ok(invoke(op!("topk"), &[Some(&score)], attrs, smallvec![], site)?.remove(1));
    }
    let sums = weights.cumsum(-1)?;
    let all = sums.slice(-1, n as i64 - 1, n as i64, 1)?;
    // From above 0 up to the whole sum: an index without weight adds nothing, so it is never the first that reaches such a number.
    let goal = u.rsub(1.0)?.mul(&all)?;
    drop(inner);
    invoke1(op!("searchsorted"), &[Some(&sums), Some(&goal)], smallvec![false.into(), false.into()], smallvec![], site)
}

/// A deviation that is no negative number.
fn deviation(std: f64) -> Result<()> {
    match std >= 0.0 {
        true => Ok(()),
        false => Err(Error::argument(format!("the standard deviation is {std}")).help("it is at least 0")),
    }
}

/// Draws numbers of a dtype by `make`; complex numbers are drawn in two parts.
fn in_parts(dtype: DType, site: CallSite, make: impl Fn(DType, bool) -> Result<Tensor>) -> Result<Tensor> {
    if !dtype.is_complex() {
        return make(dtype, false);
    }
    let inner = inner_calls();
    let (re, im) = (make(dtype.part(), false)?, make(dtype.part(), true)?);
    drop(inner);
    invoke1(op!("complex"), &[Some(&re), Some(&im)], smallvec![], smallvec![], site)
}

/// The standard deviation of each part of a complex number, or of a real one.
fn deviation_of_part(dtype: DType, std: f64) -> f64 {
    if dtype.is_complex() { std * std::f64::consts::FRAC_1_SQRT_2 } else { std }
}

pub(super) fn rand(shape: &[usize], target: &TargetSpec, lo: f64, hi: f64, site: CallSite) -> Result<Tensor> {
    in_parts(target.dtype_or(DType::F32), site, |dtype, _| {
        let [seed, ordinal] = target.drawn().map_err(|e| e.at(site))?;
        let attrs = smallvec![AttrValue::from(shape), dtype.into()];
        create(op!("rand"), attrs, smallvec![lo.into(), hi.into(), seed, ordinal], target.target(), site)
    })
}

pub(super) fn randn(shape: &[usize], target: &TargetSpec, mean: f64, std: f64, site: CallSite) -> Result<Tensor> {
    let whole = target.dtype_or(DType::F32);
    let std = deviation_of_part(whole, std);
    in_parts(whole, site, |dtype, imaginary| {
        let [seed, ordinal] = target.drawn().map_err(|e| e.at(site))?;
        let (attrs, mean) = (smallvec![AttrValue::from(shape), dtype.into()], if imaginary { 0.0 } else { mean });
        create(op!("randn"), attrs, smallvec![mean.into(), std.into(), seed, ordinal], target.target(), site)
    })
}

pub(super) fn rand_like(x: &Tensor, site: CallSite) -> Result<Tensor> {
    rand(x.shape(), &x.target(), 0.0, 1.0, site)
}

pub(super) fn randn_like(x: &Tensor, site: CallSite) -> Result<Tensor> {
    randn(x.shape(), &x.target(), 0.0, 1.0, site)
}

pub(super) fn normal(mean: f64, std: f64, shape: &[usize], target: &TargetSpec, site: CallSite) -> Result<Tensor> {
    let named = |e: Error| e.in_call(|| format!("normal({mean}, {std}, {shape:?})")).at(site);
    deviation(std).map_err(named)?;
    randn(shape, target, mean, std, site)
}

pub(super) fn normal_of(mean: &Tensor, std: &Tensor, generator: Option<&Generator>, site: CallSite) -> Result<Tensor> {
    let body = || {
        let inner = inner_calls();
        // In the layout of the sum, whose parts draw nothing.
        let like = mean.detach().add(&std.detach())?;
        let z = numbers_like(op!("randn"), &like, &[0.0, 1.0], generator, site)?;
        let scaled = z.mul(std)?;
        drop(inner);
        scaled.add(mean)
    };
    site.run(body).map_err(|e| e.within(|| format!("normal({}, {})", mean.short(), std.short())))
}

/// Numbers of a distribution, of the dtype and shape of x and where x lies: split as x is, whole where x is partial.
pub(super) fn numbers_like(
    op: Result<&'static crate::ops::Op>,
    x: &Tensor,
    numbers: &[f64],
    generator: Option<&Generator>,
    site: CallSite,
) -> Result<Tensor> {
    let target = match x.target().target() {
        Target::Global(p, sbp) if sbp.has_partial() => Target::Global(p.clone(), NdSbp::broadcast(p.axes())),
        other => other.clone(),
    };
    let op = op?;
    in_parts(x.dtype(), site, |dtype, _| {
        let [seed, ordinal] = drawn(generator)?;
        let attrs = smallvec![AttrValue::from(x.shape()), dtype.into()];
        let numbers = numbers.iter().map(|n| Scalar::Float(*n)).chain([seed, ordinal]).collect();
        create(Ok(op), attrs, numbers, &target, site)
    })
}

pub(super) fn gumbel_softmax(
    logits: &Tensor,
    tau: f64,
    hard: bool,
    dim: i64,
    generator: Option<&Generator>,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        if tau.is_nan() || tau <= 0.0 {
            return Err(Error::argument(format!("tau is {tau}")).help("it is greater than 0"));
        }
        let inner = inner_calls();
        // Halves have too few digits near 1: their noise is drawn in f32.
        let like = logits.detach();
        let like = if like.dtype().is_half() { like.cast(DType::F32)? } else { like };
        let u = numbers_like(op!("rand"), &like, &[0.0, 1.0], generator, site)?;
        // 1 - u is never 0. Where u is 0 its logarithm is, which counts as half of the next number.
        let least = if u.dtype() == DType::F64 { 2f64.powi(-54) } else { 2f64.powi(-25) };
        let noise = u.rsub(1.0)?.log()?.neg()?.clamp_min(least)?.log()?.neg()?;
        let noise = if noise.dtype() == logits.dtype() { noise } else { noise.cast(logits.dtype())? };
        let scores = logits.add(&noise)?.div(tau)?;
        if !hard {
            drop(inner);
            return scores.softmax(dim);
        }
        let soft = scores.softmax(dim)?;
        let at = soft.detach().argmax_keepdim(dim)?;
        let one = super::create::ones_like(&at, site)?.cast(soft.dtype())?;
        let hot = super::create::zeros_like(&soft.detach(), site)?.scatter(dim, &at, &one)?;
        drop(inner);
        soft.add(&hot.sub(&soft.detach())?)
    };
    site.run(body).map_err(|e| e.within(|| format!("gumbel_softmax({})", logits.short())))
}

/// Fills x with numbers of a distribution.
fn filled(
    name: &str,
    x: &Tensor,
    right: Result<()>,
    generator: Option<&Generator>,
    site: CallSite,
    make: impl FnOnce(&dyn Fn(Result<&'static crate::ops::Op>, &[f64]) -> Result<Tensor>) -> Result<Tensor>,
) -> Result<()> {
    let body = || {
        right?;
        if !(x.dtype().is_float() || x.dtype().is_complex() && matches!(name, "normal_" | "uniform_")) {
            return Err(Error::dtype(format!("x is {}; it takes floats", x.dtype())));
        }
        let numbers = make(&|op, numbers| numbers_like(op, &x.detach(), numbers, generator, site))?;
        super::inplace::copy_(x, &numbers, site)
    };
    site.run(body).map_err(|e| e.within(|| format!("{name}({})", x.short())))
}

pub(super) fn normal_(x: &Tensor, mean: f64, std: f64, generator: Option<&Generator>, site: CallSite) -> Result<()> {
    let part = deviation_of_part(x.dtype(), std);
    // The mean is real.
    let drawn = if x.dtype().is_complex() { 0.0 } else { mean };
    filled("normal_", x, deviation(std), generator, site, |draw| {
        let numbers = draw(op!("randn"), &[drawn, part])?;
        if drawn == mean { Ok(numbers) } else { numbers.add(mean) }
    })
}

pub(super) fn uniform_(x: &Tensor, lo: f64, hi: f64, generator: Option<&Generator>, site: CallSite) -> Result<()> {
    let right = match lo <= hi && (hi - lo).is_finite() {
        true => Ok(()),
        false => Err(Error::argument(format!("the range from {lo} to {hi} is empty"))),
    };
    filled("uniform_", x, right, generator, site, |draw| draw(op!("rand"), &[lo, hi]))
}

pub(super) fn exponential_(x: &Tensor, rate: f64, generator: Option<&Generator>, site: CallSite) -> Result<()> {
    let right = match rate > 0.0 {
        true => Ok(()),
        false => Err(Error::argument(format!("the rate is {rate}")).help("it is greater than 0")),
    };
    filled("exponential_", x, right, generator, site, |draw| draw(op!("rand"), &[0.0, 1.0])?.neg()?.log1p()?.div(-rate))
}

pub(super) fn cauchy_(
    x: &Tensor,
    median: f64,
    sigma: f64,
    generator: Option<&Generator>,
    site: CallSite,
) -> Result<()> {
    let right = match sigma > 0.0 {
        true => Ok(()),
        false => Err(Error::argument(format!("sigma is {sigma}")).help("it is greater than 0")),
    };
    let angle = [-std::f64::consts::FRAC_PI_2, std::f64::consts::FRAC_PI_2];
    filled("cauchy_", x, right, generator, site, |draw| draw(op!("rand"), &angle)?.tan()?.mul(sigma)?.add(median))
}

pub(super) fn log_normal_(
    x: &Tensor,
    mean: f64,
    std: f64,
    generator: Option<&Generator>,
    site: CallSite,
) -> Result<()> {
    let right = match std > 0.0 {
        true => Ok(()),
        false => Err(Error::argument(format!("the standard deviation is {std}")).help("it is above 0")),
    };
    filled("log_normal_", x, right, generator, site, |draw| draw(op!("randn"), &[mean, std])?.exp())
}

pub(super) fn geometric_(x: &Tensor, p: f64, generator: Option<&Generator>, site: CallSite) -> Result<()> {
    let body = || {
        if !(p > 0.0 && p < 1.0) {
            return Err(Error::argument(format!("p is {p}")).help("it is between 0 and 1"));
        }
        if !x.dtype().is_real() || x.dtype() == DType::Bool {
            return Err(Error::dtype(format!("x is {}; it takes integers and floats", x.dtype())));
        }
        // Halves have too few digits near 1, integers none.
        let inner = inner_calls();
        let like = x.detach();
        let like = if like.dtype() == DType::F64 { like } else { like.cast(DType::F32)? };
        let u = numbers_like(op!("rand"), &like, &[0.0, 1.0], generator, site)?;
        let numbers = u.neg()?.log1p()?.div((-p).ln_1p())?.ceil()?.clamp_min(1.0)?;
        drop(inner);
        super::inplace::copy_(x, &numbers, site)
    };
    site.run(body).map_err(|e| e.within(|| format!("geometric_({})", x.short())))
}

pub(super) fn bernoulli_(x: &Tensor, p: f64, generator: Option<&Generator>, site: CallSite) -> Result<()> {
    let right = match (0.0..=1.0).contains(&p) {
        true => Ok(()),
        false => Err(Error::argument(format!("p is {p}")).help("it is within 0 and 1")),
    };
    filled("bernoulli_", x, right, generator, site, |draw| draw(op!("bernoulli"), &[p]))
}
