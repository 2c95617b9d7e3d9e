//! Norms of matrices and vectors.

use crate::composed::svdvals;
use crate::functions::inv;
use crate::shapes::{matrices, named, square};
use oflow::CallSite;
use oflow::prelude::*;

/// Norm of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixNorm {
    /// The root of the sum of squares.
    Frobenius,
    /// The sum of the singular values.
    Nuclear,
    /// 2 and -2: the largest and the least singular value. 1 and -1: the largest and the least sum of absolute values of a column, inf and
    /// -inf of a row.
    P(f64),
}

impl MatrixNorm {
    pub(crate) fn named(name: &str) -> Result<MatrixNorm> {
        match name {
            "fro" => Ok(MatrixNorm::Frobenius),
            "nuc" => Ok(MatrixNorm::Nuclear),
            other => Err(Error::argument(format!("the norm '{other}' is neither 'fro' nor 'nuc'"))
                .help("the others are numbers: 1, -1, 2, -2, inf, -inf")),
        }
    }
}

/// Norms of the matrices in two dims of a tensor.
///
/// # Errors
/// The dims are not two of the tensor's, or there is no norm of that number.
#[track_caller]
pub fn matrix_norm(a: &Tensor, ord: MatrixNorm, dims: [i64; 2], keepdim: bool) -> Result<Tensor> {
    CallSite::here().run(|| {
        matrices("matrix_norm", a)?;
        let m = a.movedim(dims.as_slice(), [-2, -1].as_slice())?;
        let ends = |sums: Tensor, largest: bool| if largest { sums.amax(-1) } else { sums.amin(-1) };
        let norm = match ord {
            MatrixNorm::Frobenius => m.norm(2.0, [-2, -1])?,
            MatrixNorm::Nuclear => named("matrix_norm", svdvals(&m))?.sum(-1)?,
            MatrixNorm::P(p) if p.abs() == 2.0 => ends(named("matrix_norm", svdvals(&m))?, p > 0.0)?,
            MatrixNorm::P(p) if p.abs() == 1.0 => ends(m.abs()?.sum(-2)?, p > 0.0)?,
            MatrixNorm::P(p) if p.is_infinite() => ends(m.abs()?.sum(-1)?, p > 0.0)?,
            MatrixNorm::P(p) => {
                return Err(Error::argument(format!("matrix_norm has no norm of {p}"))
                    .help("there are 1, -1, 2, -2, inf, -inf, 'fro' and 'nuc'"));
            }
        };
        match keepdim {
            true => norm.unsqueeze(-1)?.unsqueeze(-1)?.movedim([-2, -1].as_slice(), dims.as_slice()),
            false => Ok(norm),
        }
    })
}

/// The condition numbers of matrices: the largest singular value by the least, or for another norm, of square ones, that of the matrix
/// times that of its inverse.
///
/// # Errors
/// As [`matrix_norm`] and, for another norm than 2 and -2, [`inv`](crate::inv).
#[track_caller]
pub fn cond(a: &Tensor, ord: MatrixNorm) -> Result<Tensor> {
    CallSite::here().run(|| {
        matrices("cond", a)?;
        match ord {
            MatrixNorm::P(p) if p.abs() == 2.0 => {
                let s = named("cond", svdvals(a))?;
                let (largest, least) = (s.amax(-1)?, s.amin(-1)?);
                if p > 0.0 { largest.div(&least) } else { least.div(&largest) }
            }
            _ => {
                square("cond", a)?;
                let of = |m: &Tensor| matrix_norm(m, ord, [-2, -1], false);
                named("cond", of(a).and_then(|norm| norm.mul(&of(&inv(a)?)?)))
            }
        }
    })
}

/// The p-norm over dims, or over all of them.
pub(crate) fn vector_norm(x: &Tensor, p: f64, dims: &[i64], keepdim: bool) -> Result<Tensor> {
    if keepdim { x.norm_keepdim(p, dims) } else { x.norm(p, dims) }
}

/// Order of a norm as `linalg.norm` takes it.
pub(crate) enum Order<'a> {
    /// The root of the sum of squares, of any number of dims.
    Usual,
    /// Of vectors or matrices.
    P(f64),
    /// Of matrices.
    Named(&'a str),
}

/// PyTorch's `linalg.norm`: of vectors along one dim, of matrices along two, else of all elements.
pub(crate) fn norm(a: &Tensor, order: Order<'_>, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    let whole = [[-1, -1], [-2, -1]];
    let all: &[i64] = if a.ndim() == 1 { &whole[0][..1] } else { &whole[1] };
    let refused = || {
        let given = dims.map_or_else(|| "a tensor of as many dims".to_string(), |d| format!("the dims {d:?}"));
        Err(Error::argument(format!("norm of {a:?} along {given}: an order is of vectors, one dim, or matrices, two"))
            .help("without an order it is the root of the sum of squares along any dims"))
    };
    match (order, dims.unwrap_or(if a.ndim() <= 2 { &all[..a.ndim().min(2)] } else { &[] })) {
        (Order::Usual, _) => vector_norm(a, 2.0, dims.unwrap_or(&[]), keepdim),
        (Order::P(p), [_]) => vector_norm(a, p, dims.unwrap_or(all), keepdim),
        (Order::P(p), [one, two]) => matrix_norm(a, MatrixNorm::P(p), [*one, *two], keepdim),
        (Order::Named(name), [one, two]) => matrix_norm(a, MatrixNorm::named(name)?, [*one, *two], keepdim),
        _ => refused(),
    }
}

/// PyTorch's `norm` with a named order: `fro` is of all the dims given, `nuc` of two.
pub(crate) fn norm_named(x: &Tensor, name: &str, dims: &[i64], keepdim: bool) -> Result<Tensor> {
    match (MatrixNorm::named(name)?, dims) {
        (MatrixNorm::Nuclear, []) if x.ndim() == 2 => matrix_norm(x, MatrixNorm::Nuclear, [0, 1], keepdim),
        (MatrixNorm::Nuclear, [one, two]) => matrix_norm(x, MatrixNorm::Nuclear, [*one, *two], keepdim),
        (MatrixNorm::Nuclear, _) => Err(Error::argument(format!("the norm 'nuc' is of matrices: two dims of {x:?}"))),
        _ => vector_norm(x, 2.0, dims, keepdim),
    }
}
