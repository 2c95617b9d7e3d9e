//! Overloads of factories that calls by name and Python have, with PyTorch's arguments. Bounds that are tensors are read.

use super::{Bound, create};
use crate::context::inner_calls;
use crate::error::{Error, Result};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};

by_name! {
    BY_NAME, "Creation", ByName;
    /// Equal steps between numbers of which the first is read.
    "linspace(Tensor start, Float end, Int steps, Target target, *, DataType dtype=f32) -> Tensor" = |b| linspace(b);
    /// Equal steps between numbers of which the second is read.
    "linspace(Float start, Tensor end, Int steps, Target target, *, DataType dtype=f32) -> Tensor" = |b| linspace(b);
    /// Equal steps between numbers that are read.
    "linspace(Tensor start, Tensor end, Int steps, Target target, *, DataType dtype=f32) -> Tensor" = |b| linspace(b);
    /// Powers of `base` with exponents in equal steps.
    "logspace(Float start, Float end, Int steps, Float base, Target target, *, DataType dtype=f32) -> Tensor" = |b| logspace(b, true);
    /// Powers of `base`; the first exponent is read.
    "logspace(Tensor start, Float end, Int steps, Float base, Target target, *, DataType dtype=f32) -> Tensor" = |b| logspace(b, true);
    /// Powers of `base`; the last exponent is read.
    "logspace(Float start, Tensor end, Int steps, Float base, Target target, *, DataType dtype=f32) -> Tensor" = |b| logspace(b, true);
    /// Powers of `base`; both bounds of the exponents are read.
    "logspace(Tensor start, Tensor end, Int steps, Float base, Target target, *, DataType dtype=f32) -> Tensor" = |b| logspace(b, true);
    /// Powers of 10; the first exponent is read.
    "logspace(Tensor start, Float end, Int steps, Target target, *, DataType dtype=f32) -> Tensor" = |b| logspace(b, false);
    /// Powers of 10; the last exponent is read.
    "logspace(Float start, Tensor end, Int steps, Target target, *, DataType dtype=f32) -> Tensor" = |b| logspace(b, false);
    /// Powers of 10; both bounds of the exponents are read.
    "logspace(Tensor start, Tensor end, Int steps, Target target, *, DataType dtype=f32) -> Tensor" = |b| logspace(b, false);
    /// Integers in [0, hi).
    "randint(Int hi, Shape shape, Target target, *, DataType dtype=i64, Generator? generator) -> Tensor" = |b| {
        let target = b.target_of(2, Some(3))?;
        let target = match b.generator(4) {
            Some(g) => target.generator(g),
            None => target,
        };
        b.site.run(|| Ok(vec![super::randint(0i64, b.int(0)?, b.shape(1)?, target)?]))
    };
    /// Integers in [0, hi), with the same shape, dtype and layout.
    "randint_like(Tensor x, Int hi) -> Tensor" = |b| Ok(vec![create::randint_like(b.given(0)?, 0, b.int(1)?, b.site)?]);
    /// Where the elements on and below a diagonal of a matrix are.
    "tril_indices(Int rows, Int columns, Int offset, Target target, *, DataType dtype=i64) -> Tensor" = |b| {
        Ok(vec![super::pieces::tril_indices(b.int(0)?, b.int(1)?, &b.target_of(3, Some(4))?, b.int(2)?, b.site)?])
    };
    /// Where the elements on and above a diagonal of a matrix are.
    "triu_indices(Int rows, Int columns, Int offset, Target target, *, DataType dtype=i64) -> Tensor" = |b| {
        Ok(vec![super::pieces::triu_indices(b.int(0)?, b.int(1)?, &b.target_of(3, Some(4))?, b.int(2)?, b.site)?])
    };
}

by_name! {
    REDUCED, "Reductions", ByName;
    /// The quantiles for the fractions of a tensor, which are read: one, or several along a new first dim.
    "quantile(Tensor x, Tensor q, Int? dim, Bool keepdim=false, *, String interpolation=\"linear\") -> Tensor" = |b| {
        let q = fractions(b)?;
        let (x, dim, rest) = (b.given(0)?, b.int(2).ok(), (b.bool(3)?, b.text(4)?));
        Ok(vec![match b.given(1)?.ndim() {
            0 => super::statistics::quantile(x, q[0], dim, rest.0, rest.1, b.site)?,
            _ => super::statistics::quantiles(x, &q, dim, rest.0, rest.1, b.site)?,
        }])
    };
    /// The quantiles of the elements that are not NaN, for several fractions.
    "nanquantile(Tensor x, FloatList q, Int? dim, Bool keepdim=false, *, String interpolation=\"linear\") -> Tensor" = |b| nanquantiles(b, b.floats(1)?);
    /// The quantiles of the elements that are not NaN, for the fractions of a tensor, which are read.
    "nanquantile(Tensor x, Tensor q, Int? dim, Bool keepdim=false, *, String interpolation=\"linear\") -> Tensor" = |b| match b.given(1)?.ndim() {
        0 => Ok(vec![super::statistics::nanquantile(b.given(0)?, fractions(b)?[0], b.int(2).ok(), b.bool(3)?, b.text(4)?, b.site)?]),
        _ => nanquantiles(b, &fractions(b)?),
    };
    /// The sum of products over these dims of a and of b.
    "tensordot(Tensor a, Tensor b, IntLists dims) -> Tensor" = |b| {
        let AttrValue::List(lists) = b.attr(2).unwrap_or(&AttrValue::Absent) else { return Err(pairs(b)) };
        match &lists[..] {
            [AttrValue::Ints(of_a), AttrValue::Ints(of_b)] => {
                Ok(vec![super::algebra::tensordot(b.given(0)?, b.given(1)?, of_a, of_b, b.site)?])
            }
            _ => Err(pairs(b)),
        }
    };
    /// Distances between all pairs of points. PyTorch's modes say how it computes; there is one way here.
    "cdist(Tensor x1, Tensor x2, Float p, String? compute_mode) -> Tensor" = |b| {
        b.site.run(|| Ok(vec![b.given(0)?.cdist(b.given(1)?, b.float(2)?)?]))
    };
    /// For each element 1 with its probability, else 0, in the dtype of the probabilities.
    "bernoulli(Tensor x, *, Generator? generator) -> Tensor" = |b| b.site.run(|| {
        let p = b.given(0)?;
        let inner = inner_calls();
        let target = match b.generator(1) {
            Some(g) => super::IntoTarget::generator(p.target(), g),
            None => p.target(),
        };
        let drawn = super::rand(p.shape(), target)?.lt(&p.detach())?;
        drop(inner);
        Ok(vec![drawn.cast(p.dtype())?])
    });
}

fn pairs(b: &Bound) -> Error {
    Error::argument("dims are two lists, one of a and one of b").in_call(|| "tensordot".into()).at(b.site)
}

/// The bound that argument `i` is: a number, or that of a tensor, which is read.
fn bound(b: &Bound, i: usize) -> Result<f64> {
    match b.tensor(i) {
        None => b.float(i),
        Some(t) if t.ndim() == 0 => Ok(t.item_at(b.site)?.to_f64()),
        Some(t) => Err(Error::shape(format!("a bound is one number, not {}", t.short())).at(b.site)),
    }
}

fn linspace(b: &Bound) -> Result<Vec<Tensor>> {
    Ok(vec![create::linspace(bound(b, 0)?, bound(b, 1)?, b.int(2)?, &b.target_of(3, Some(4))?, b.site)?])
}

/// Powers of a base that is the fourth argument, or of 10.
fn logspace(b: &Bound, with_base: bool) -> Result<Vec<Tensor>> {
    let (base, target) = if with_base { (b.float(3)?, 4) } else { (10.0, 3) };
    let target = b.target_of(target, Some(target + 1))?;
    Ok(vec![create::logspace(bound(b, 0)?, bound(b, 1)?, b.int(2)?, &target, base, b.site)?])
}

/// The values of the fractions, which are read.
fn fractions(b: &Bound) -> Result<Vec<f64>> {
    let q = b.given(1)?;
    if q.ndim() > 1 || q.numel() == 0 {
        let e = Error::shape(format!("q is {}; it is one number or a list", q.short()));
        return Err(e.in_call(|| format!("quantile({})", q.short())).at(b.site));
    }
    if crate::context::grad_enabled() && q.requires_grad() {
        let e = Error::autograd("q requires a gradient, which there is none of").help("give `q.detach()`");
        return Err(e
            .in_call(|| {
                format!("quantile({}, {})", b.given(0).map_or_else(|_| String::new(), Tensor::short), q.short())
            })
            .at(b.site));
    }
    b.site.run(|| q.detach().cast(DType::F64)?.to_vec::<f64>())
}

fn nanquantiles(b: &Bound, q: &[f64]) -> Result<Vec<Tensor>> {
    let inner = inner_calls();
    let one = |q: &f64| super::statistics::nanquantile(b.given(0)?, *q, b.int(2).ok(), b.bool(3)?, b.text(4)?, b.site);
    let all = q.iter().map(one).collect::<Result<Vec<_>>>()?;
    drop(inner);
    b.site.run(|| Ok(vec![super::stack(&all.iter().collect::<Vec<_>>(), 0)?]))
}

by_name! {
    LIKE, "Creation", ByName;
    /// Zeros of the same shape and layout, of that dtype.
    "zeros_like(Tensor x, *, DataType dtype) -> Tensor" = |b| like(b, 1, |x, t| super::zeros(x, t));
    /// Ones of the same shape and layout, of that dtype.
    "ones_like(Tensor x, *, DataType dtype) -> Tensor" = |b| like(b, 1, |x, t| super::ones(x, t));
    /// Memory of the same shape and layout whose contents nobody reads before writing them, of that dtype.
    "empty_like(Tensor x, *, DataType dtype) -> Tensor" = |b| like(b, 1, |x, t| super::zeros(x, t));
    /// Uniform numbers in [0, 1) of the same shape and layout, of that dtype.
    "rand_like(Tensor x, *, DataType dtype) -> Tensor" = |b| like(b, 1, |x, t| super::rand(x, t));
    /// Normal numbers of the same shape and layout, of that dtype.
    "randn_like(Tensor x, *, DataType dtype) -> Tensor" = |b| like(b, 1, |x, t| super::randn(x, t));
    /// One number everywhere, with the same shape and layout, of that dtype.
    "full_like(Tensor x, Scalar value, *, DataType dtype) -> Tensor" = |b| {
        let value = b.scalar(1)?;
        like(b, 2, |x, t| super::full(x, value, t))
    };
    /// Integers in [0, hi) of the same shape and layout, of that dtype.
    "randint_like(Tensor x, Int hi, *, DataType dtype) -> Tensor" = |b| {
        let hi = b.int(1)?;
        like(b, 2, |x, t| super::randint(0i64, hi, x, t))
    };
    /// Integers in [lo, hi) of the same shape and layout, of that dtype.
    "randint_like(Tensor x, Int lo, Int hi, *, DataType dtype) -> Tensor" = |b| {
        let (lo, hi) = (b.int(1)?, b.int(2)?);
        like(b, 3, |x, t| super::randint(lo, hi, x, t))
    };
    /// One number everywhere, with the same shape, dtype and layout.
    "fill(Tensor x, Scalar value) -> Tensor" = |b| b.site.run(|| {
        let x = b.given(0)?;
        let inner = inner_calls();
        let everywhere = super::full([], Scalar::Bool(true), x.whole_target())?;
        drop(inner);
        // x has a gradient, of zeros.
        Ok(vec![x.masked_fill(&everywhere, b.scalar(1)?)?])
    });
}

/// A tensor as another one, with the dtype that is argument `at`.
fn like(b: &Bound, at: usize, make: impl Fn(&[usize], super::TargetSpec) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    let (x, dtype) = (b.given(0)?, b.given_dtype(at)?);
    b.site.run(|| Ok(vec![make(x.shape(), super::IntoTarget::dtype(x.target(), dtype))?]))
}
