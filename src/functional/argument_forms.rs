//! Overloads that calls by name and Python have, with PyTorch's arguments. In Rust a few calls say the same: `where_(&mask, &value, &x)`,
//! `a.div(&b)?.floor()`.

use super::{Bound, IntoTarget, full, op, where_};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::normalize_dim;
use crate::tensor::Tensor;
use oflow_kernels::{DType, DTypeKind, Scalar};
use smallvec::smallvec;

by_name! {
    BY_NAME, "Elementwise", ByName;
    /// The quotient, rounded: `"trunc"` towards zero, `"floor"` downwards.
    "div(Tensor a, Tensor b, *, String? rounding_mode) -> Tensor" = |b| rounded(b, b.given(0)?, Second::Tensor(b.given(1)?));
    /// The quotient, rounded: `"trunc"` towards zero, `"floor"` downwards.
    "div(Tensor x, Scalar s, *, String? rounding_mode) -> Tensor" = |b| rounded(b, b.given(0)?, Second::Number(b.scalar(1)?));
    /// b - `alpha` a.
    "rsub(Tensor a, Tensor b, *, Scalar alpha=1) -> Tensor" = |b| b.site.run(|| Ok(vec![less(b.given(1)?, b.given(0)?, b.scalar(2)?)?]));
    /// s - `alpha` x.
    "rsub(Tensor x, Scalar s, *, Scalar alpha) -> Tensor" = |b| b.site.run(|| {
        let x = b.given(0)?;
        let inner = inner_calls();
        let scaled = x.mul(b.scalar(2)?)?;
        drop(inner);
        Ok(vec![scaled.rsub(b.scalar(1)?)?])
    });
    /// |x| with the sign of a number.
    "copysign(Tensor x, Scalar s) -> Tensor" = |b| b.site.run(|| {
        let x = b.given(0)?;
        if x.dtype().is_complex() || matches!(b.scalar(1)?, Scalar::Complex(..)) {
            return Err(Error::dtype("complex numbers have no sign to copy").help("it takes real tensors and numbers"));
        }
        let s = b.scalar(1)?.to_f64();
        let inner = inner_calls();
        let float = if x.dtype().is_float() { x.clone() } else { x.cast(DType::F32)? };
        let plain = float.abs()?;
        drop(inner);
        Ok(vec![if s.is_sign_negative() { plain.neg()? } else { plain }])
    });
    /// x rounded to so many digits behind the point, before it if negative; halves to the even one.
    "round(Tensor x, *, Int decimals) -> Tensor" = |b| b.site.run(|| Ok(vec![to_decimals(b.given(0)?, b.int(1)?)?]));
    /// The element of `a` where the condition holds, else that of `b`.
    "where(Tensor cond, Tensor a, Scalar b) -> Tensor" = |b| chosen(b, |s, n| where_(s, b.given(1)?, n), b.given(1)?, 2);
    /// The element of `a` where the condition holds, else that of `b`.
    "where(Tensor cond, Scalar a, Tensor b) -> Tensor" = |b| chosen(b, |s, n| where_(s, n, b.given(2)?), b.given(2)?, 1);
    /// One number where the condition holds, else the other.
    "where(Tensor cond, Scalar a, Scalar b) -> Tensor" = |b| b.site.run(|| {
        let cond = b.given(0)?;
        let dtype = default_dtype(b.scalar(1)?).promote_scalar(b.scalar(2)?.kind());
        let inner = inner_calls();
        let (x, y) = (number_like(cond, b.scalar(1)?, dtype)?, number_like(cond, b.scalar(2)?, dtype)?);
        drop(inner);
        Ok(vec![where_(cond, &x, &y)?])
    });
    /// Where the elements are that hold: for each dim a list of positions.
    "where(Tensor cond) -> TensorTuple" = |b| b.site.run(|| positions(b.given(0)?));
}

by_name! {
    CHOICE, "Choice", ByName;
    /// x with the one number of a tensor where the mask holds.
    "masked_fill(Tensor x, Tensor mask, Tensor value) -> Tensor" = |b| b.site.run(|| {
        let (x, mask) = (b.given(0)?, b.given(1)?);
        of_kind(b.given(2)?, x)?;
        let inner = inner_calls();
        let value = number(b.given(2)?, "value")?.cast(x.dtype())?;
        drop(inner);
        Ok(vec![where_(mask, &value, x)?])
    });
    /// x with the one number of a tensor in the slices of `dim` that the indices name.
    "index_fill(Tensor x, Int dim, Tensor ids, Tensor value) -> Tensor" = |b| b.site.run(|| {
        let (x, ids) = (b.given(0)?, b.given(2)?);
        let inner = inner_calls();
        let d = normalize_dim(b.int(1)?, x.ndim())?;
        let mut shape: Vec<i64> = x.shape().iter().map(|n| *n as i64).collect();
        if let Some(n) = shape.get_mut(d) {
            *n = ids.numel() as i64;
        }
        let value = number(b.given(3)?, "value")?.cast(x.dtype())?.expand(&shape[..])?;
        drop(inner);
        Ok(vec![x.index_copy(b.int(1)?, ids, &value)?])
    });
    /// x with each element of `src` written at its index along `dim`, or with `reduce` added to (`"add"`) or multiplied with (`"multiply"`)
    /// what is there.
    "scatter(Tensor x, Int dim, Tensor ids, Tensor src, *, String reduce) -> Tensor" = |b| b.site.run(|| {
        scattered(b, b.given(3)?)
    });
    /// The same with one number.
    "scatter(Tensor x, Int dim, Tensor ids, Scalar value, *, String reduce) -> Tensor" = |b| b.site.run(|| {
        let x = b.given(0)?;
        let shape: Vec<i64> = b.given(2)?.shape().iter().map(|n| *n as i64).collect();
        let inner = inner_calls();
        let src = number_like(x, b.scalar(3)?, x.dtype())?.expand(&shape[..])?;
        drop(inner);
        scattered(b, &src)
    });
    /// The elements that the indices name among all of x, counted row-major, as a list.
    "take_along_dim(Tensor x, Tensor ids) -> Tensor" = |b| b.site.run(|| {
        let (x, ids) = (b.given(0)?, b.given(1)?);
        let inner = inner_calls();
        let (line, list) = (x.reshape([x.numel()])?, ids.reshape([ids.numel()])?);
        drop(inner);
        Ok(vec![line.take_along_dim(&list, 0)?])
    });
    /// How many of the sorted boundaries stand before each element: `side` says which of the equal ones count.
    "searchsorted(Tensor sorted, Tensor x, *, Bool out_int32=false, Bool right=false, String? side, Tensor? sorter) -> Tensor" = |b| b.site.run(|| {
        let right = match b.attr(4).map(|_| b.text(4)).transpose()? {
            None => b.bool(3)?,
            Some("right") => true,
            Some("left") if !b.bool(3)? => false,
            Some("left") => return Err(Error::argument("side is \"left\" and right is true: give one of them")),
            Some(other) => return Err(Error::argument(format!("side is {other:?}; it is \"left\" or \"right\""))),
        };
        let inner = inner_calls();
        let sorted = match b.tensor(5) {
            Some(order) => b.given(0)?.gather(-1, order)?,
            None => b.given(0)?.clone(),
        };
        drop(inner);
        let attrs = smallvec![b.bool(2)?.into(), right.into()];
        Ok(vec![super::invoke1(op!("searchsorted"), &[Some(&sorted), Some(b.given(1)?)], attrs, smallvec![], b.site)?])
    });
    /// The positions in sorted boundaries of one number.
    "searchsorted(Tensor sorted, Scalar s, *, Bool out_int32=false, Bool right=false) -> Tensor" = |b| b.site.run(|| {
        let sorted = b.given(0)?;
        let inner = inner_calls();
        let x = number_like(sorted, b.scalar(1)?, sorted.dtype())?;
        drop(inner);
        let attrs = smallvec![b.bool(2)?.into(), b.bool(3)?.into()];
        Ok(vec![super::invoke1(op!("searchsorted"), &[Some(sorted), Some(&x)], attrs, smallvec![], b.site)?])
    });
}

by_name! {
    SHAPES, "Shapes", ByName;
    /// `len` elements of a dim from the position on that a tensor without dims holds, which is read.
    "narrow(Tensor x, Int dim, Tensor start, Int len) -> Tensor" = |b| b.site.run(|| {
        let start = number(b.given(2)?, "start")?;
        if start.dtype().kind() != DTypeKind::Int {
            return Err(Error::dtype(format!("start is {}; a place is an integer", start.dtype())));
        }
        let start = start.item_at(b.site)?.to_i64();
        Ok(vec![b.given(0)?.narrow(b.int(1)?, start, b.int(3)?)?])
    });
    /// The parts of a dim between the places that a tensor holds, or as many as its one number says; they are read.
    "tensor_split(Tensor x, Tensor tensor_indices_or_sections, Int dim=0) -> TensorTuple" = |b| b.site.run(|| {
        let (x, places, dim) = (b.given(0)?, b.given(1)?, b.int(2)?);
        match places.ndim() {
            0 => x.tensor_split(places.item_at(b.site)?.to_i64(), dim),
            1 => super::tensor_split_at(x, places.cast(DType::I64)?.to_vec::<i64>()?, dim),
            _ => Err(Error::shape("the places are one number or a list")),
        }
    });
    /// The differences of neighbours, `n` times, of x with these in front and behind.
    "diff(Tensor x, Int n, Int dim, Tensor? prepend, Tensor? append) -> Tensor" = |b| b.site.run(|| {
        let options = super::DiffOptions { prepend: b.tensor(3).cloned(), append: b.tensor(4).cloned() };
        Ok(vec![b.given(0)?.diff_with(b.int(1)?, b.int(2)?, &options)?])
    });
    /// The elements as a diagonal of the dims `dim1` and `dim2` of the result, zeros elsewhere.
    "diag_embed(Tensor x, Int offset, Int dim1, Int dim2) -> Tensor" = |b| b.site.run(|| {
        let x = b.given(0)?;
        let n = x.ndim() + 1;
        let (one, two) = (normalize_dim(b.int(2)?, n)?, normalize_dim(b.int(3)?, n)?);
        if one == two {
            return Err(Error::argument(format!("dim1 and dim2 are both dim {one}")));
        }
        let offset = if one < two { b.int(1)? } else { b.int(1)?.saturating_neg() };
        let inner = inner_calls();
        let last = x.diag_embed(offset)?;
        drop(inner);
        let (lo, hi) = (one.min(two), one.max(two));
        let mut order: Vec<i64> = (0..n as i64 - 2).collect();
        order.insert(lo, n as i64 - 2);
        order.insert(hi, n as i64 - 1);
        Ok(vec![last.permute(order)?])
    });
    /// Each slice along `dim` so many times as the list says; without `dim` each element. The list is read where `output_size` is not given.
    "repeat_interleave(Tensor x, Tensor repeats, *, Int? dim, Int? output_size) -> Tensor" = |b| b.site.run(|| {
        Ok(vec![repeated(b.given(0)?, b.given(1)?, b.attr(2).map(|_| b.int(2)).transpose()?, b.attr(3).map(|_| b.int(3)).transpose()?, b.site)?])
    });
    /// A matrix of n rows and m columns with ones on the diagonal.
    "eye(Int n, Int m, Target target, *, DataType dtype=f32) -> Tensor" = |b| b.site.run(|| {
        let target = b.target(2)?.clone().dtype(b.given_dtype(3)?);
        Ok(vec![super::eye_with(b.int(0)?, target, &super::EyeOptions { m: Some(b.int(1)?) })?])
    });
}

/// The second operand.
#[derive(Clone, Copy)]
enum Second<'a> {
    Tensor(&'a Tensor),
    Number(Scalar),
}

fn rounded(b: &Bound, x: &Tensor, by: Second<'_>) -> Result<Vec<Tensor>> {
    let mode = b.attr(2).map(|_| b.text(2)).transpose()?;
    let quotient = || match by {
        Second::Tensor(y) => x.div(y),
        Second::Number(s) => x.div(s),
    };
    let floor = || match by {
        Second::Tensor(y) => x.floor_divide(y),
        Second::Number(s) => x.floor_divide(s),
    };
    let whole = |d: DType| d.kind() == DTypeKind::Int || d == DType::Bool;
    let integers = whole(x.dtype())
        && match by {
            Second::Tensor(y) => whole(y.dtype()),
            Second::Number(s) => !matches!(s, Scalar::Float(_) | Scalar::Complex(..)),
        };
    b.site.run(|| {
        Ok(vec![match mode {
            None => quotient()?,
            Some("floor") => floor()?,
            Some("trunc") if integers => {
                // Without what is left over the quotient is whole, and both roundings agree.
                let inner = inner_calls();
                let rest = match by {
                    Second::Tensor(y) => x.fmod(y)?,
                    Second::Number(s) => x.fmod(s)?,
                };
                let even = x.sub(&rest)?;
                drop(inner);
                match by {
                    Second::Tensor(y) => even.floor_divide(y)?,
                    Second::Number(s) => even.floor_divide(s)?,
                }
            }
            Some("trunc") => {
                let inner = inner_calls();
                let exact = quotient()?;
                drop(inner);
                exact.trunc()?
            }
            Some(other) => {
                return Err(Error::argument(format!("rounding_mode is {other:?}; it is \"trunc\", \"floor\" or none")));
            }
        }])
    })
}

/// a - `alpha` b.
fn less(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let inner = inner_calls();
    let b = if alpha.to_complex() == (1.0, 0.0) { b.clone() } else { b.mul(alpha)? };
    drop(inner);
    a.sub(&b)
}

fn to_decimals(x: &Tensor, decimals: i64) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return Err(Error::dtype(format!("decimals of {}; they are for floats", x.dtype())));
    }
    if decimals == 0 {
        return x.round();
    }
    let scale = 10f64.powi(decimals.unsigned_abs().min(400) as i32);
    let inner = inner_calls();
    let wide = if decimals > 0 { x.mul(scale)? } else { x.div(scale)? }.round()?;
    drop(inner);
    if decimals > 0 { wide.div(scale) } else { wide.mul(scale) }
}

/// A number as a tensor without dims, where the other one lies.
pub(super) fn number_like(of: &Tensor, s: Scalar, dtype: DType) -> Result<Tensor> {
    full([], s, of.whole_target().dtype(dtype))
}

/// The dtype that a number has by itself.
fn default_dtype(s: Scalar) -> DType {
    match s {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => DType::F32,
        Scalar::Complex(..) => DType::C64,
    }
}

fn chosen(
    b: &Bound,
    choose: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    other: &Tensor,
    at: usize,
) -> Result<Vec<Tensor>> {
    b.site.run(|| {
        let s = b.scalar(at)?;
        let inner = inner_calls();
        let number = number_like(other, s, other.dtype().promote_scalar(s.kind()))?;
        drop(inner);
        Ok(vec![choose(b.given(0)?, &number)?])
    })
}

fn positions(cond: &Tensor) -> Result<Vec<Tensor>> {
    let inner = inner_calls();
    // A tensor without dims is a list of one element.
    let x = if cond.ndim() == 0 { cond.reshape([1])? } else { cond.clone() };
    let found = x.nonzero()?;
    drop(inner);
    found.unbind(1)
}

/// A tensor of one number.
fn number(t: &Tensor, name: &str) -> Result<Tensor> {
    match t.ndim() {
        0 => Ok(t.clone()),
        _ => Err(Error::shape(format!("{name} is {}; it is one number, a tensor without dims", t.short()))),
    }
}

/// Refuses a value of a higher kind than the tensor that it is written to.
fn of_kind(value: &Tensor, x: &Tensor) -> Result<()> {
    match value.dtype().kind() <= x.dtype().kind() {
        true => Ok(()),
        false => Err(Error::dtype(format!("a value of {} does not fit into {}", value.dtype(), x.dtype()))
            .help("`cast` one of them first")),
    }
}

fn scattered(b: &Bound, src: &Tensor) -> Result<Vec<Tensor>> {
    let (x, dim, ids) = (b.given(0)?, b.int(1)?, b.given(2)?);
    let reduce = match b.text(4)? {
        "add" => "sum",
        "multiply" => "prod",
        other => return Err(Error::argument(format!("reduce is {other:?}; it is \"add\" or \"multiply\""))),
    };
    // Sums are linear, so complex numbers have them.
    Ok(vec![if reduce == "sum" { x.scatter_add(dim, ids, src)? } else { x.scatter_reduce(dim, ids, src, reduce)? }])
}

/// Each slice as often as the list says: the index of the result's slices is where a running sum is passed.
fn repeated(x: &Tensor, repeats: &Tensor, dim: Option<i64>, size: Option<i64>, site: CallSite) -> Result<Tensor> {
    let inner = inner_calls();
    let (x, d) = match dim {
        Some(d) => (x.clone(), normalize_dim(d, x.ndim())?),
        None => (x.reshape([x.numel()])?, 0),
    };
    let n = x.shape().get(d).copied().unwrap_or(1);
    let list = match repeats.numel() {
        1 => repeats.reshape([1])?.expand([n as i64])?,
        m if m == n && repeats.ndim() == 1 => repeats.clone(),
        _ => return Err(Error::shape(format!("{} says nothing of {n} slices", repeats.short()))),
    };
    let ends = list.cast(DType::I64)?.cumsum(0)?;
    let total = match size {
        Some(size) => size,
        None if n == 0 => 0,
        None => ends.select(0, -1)?.item_at(site)?.to_i64(),
    };
    let places = super::arange(total, ends.whole_target())?;
    let ids = ends.searchsorted_with(&places, &super::SearchsortedOptions { right: true, ..Default::default() })?;
    drop(inner);
    x.index_select(d as i64, &ids)
}
