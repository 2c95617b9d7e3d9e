//! Common parts of declarations: shapes, sharding, and the words of gradient rules.

use oflow::ops::{DTypeRule, Emit, GradCtx, InferCtx, Value};
use oflow::prelude::*;
use oflow::sbp::{Sbp, Signature};
use smallvec::SmallVec;
use std::sync::Arc;

/// The domain of this crate's names: `linalg.svd`.
pub(crate) const DOMAIN: &str = "linalg";

/// The batch dims, rows and columns of an input.
pub(crate) fn matrices<'a>(c: &InferCtx<'a>, i: usize) -> Result<(&'a [usize], usize, usize)> {
    match c.shape(i)? {
        [batch @ .., rows, columns] => Ok((batch, *rows, *columns)),
        other => Err(Error::shape(format!("needs a matrix or a batch of matrices, not a tensor of shape {other:?}"))),
    }
}

/// Refuses matrices that are not square.
pub(crate) fn square(c: &InferCtx<'_>) -> Result<()> {
    let (_, rows, columns) = matrices(c, 0)?;
    if rows != columns {
        let what = c.input(0)?;
        return Err(Error::shape(format!("needs square matrices, not {what}: {rows} rows and {columns} columns")));
    }
    Ok(())
}

/// Refuses the A and B of a system that are of two dtypes; B is input `b`.
pub(crate) fn one_dtype(c: &InferCtx<'_>, b: usize) -> Result<()> {
    let (a, b) = (c.input(0)?, c.input(b)?);
    if a.dtype != b.dtype {
        return Err(
            Error::dtype(format!("A is {}, B is {}", a.dtype, b.dtype)).help("convert one of them with `.cast(dtype)`")
        );
    }
    Ok(())
}

/// Each matrix of the batch is computed by itself, so every batch dim may be split.
pub(crate) fn split_batch(c: &InferCtx<'_>, outputs: usize) -> Result<Vec<Signature>> {
    let (batch, ..) = matrices(c, 0)?;
    Ok((0..batch.len()).map(|d| Signature::new(&[Sbp::Split(d)], &vec![Sbp::Split(d); outputs])).collect())
}

/// `times` n^3 for each matrix of the batch, n the smaller of rows and columns and one factor the larger.
pub(crate) fn cubes(c: &InferCtx<'_>, times: u64) -> Result<u64> {
    let (_, rows, columns) = matrices(c, 0)?;
    Ok((c.input(0)?.len() as u64).saturating_mul(times).saturating_mul(rows.min(columns) as u64))
}

/// Triangular system that [`solve_triangular`](crate::solve_triangular) solves.
#[derive(Clone, Copy, Debug)]
pub struct Triangular {
    /// The upper triangle of a is read, else the lower one.
    pub upper: bool,
    /// `a x = b`, else `x a = b`.
    pub left: bool,
    /// The diagonal of a is taken for ones.
    pub unitriangular: bool,
    /// The transposed a stands in the place of a.
    pub transpose: bool,
}

impl Default for Triangular {
    /// `a x = b` with a lower triangular.
    fn default() -> Triangular {
        Triangular { upper: false, left: true, unitriangular: false, transpose: false }
    }
}

/// Element types of the ops here.
pub(crate) const FIELDS: &str = "f32|f64|c64|c128";

/// The dtypes of the outputs, from that of input 0.
pub(crate) fn dtypes_of<const N: usize>(made: fn(DType) -> [DType; N]) -> DTypeRule {
    DTypeRule::Fn(Arc::new(move |c| Ok(made(c.input(0)?.dtype).into_iter().collect::<SmallVec<_>>())))
}

/// The dtype of the absolute values of numbers.
pub(crate) fn real_of(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other => other,
    }
}

/// Calls of gradient rules. Gradients of complex numbers are conjugate derivatives, as in PyTorch: products that say ᴴ conjugate what
/// they transpose, and on real numbers only transpose it.
pub(crate) struct Words<'a>(pub &'a mut dyn GradCtx);

impl Words<'_> {
    fn emit(&mut self) -> &mut dyn Emit {
        self.0.emitter()
    }
    fn one(&mut self, op: &str, x: Value) -> Result<Value> {
        self.emit().call(op, &[x], &[])
    }
    pub(crate) fn add(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit().call("add", &[a, b], &[])
    }
    /// The sum of what is there.
    pub(crate) fn sum_of(&mut self, a: Option<Value>, b: Value) -> Result<Value> {
        match a {
            Some(a) => self.add(a, b),
            None => Ok(b),
        }
    }
    pub(crate) fn sub(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit().call("sub", &[a, b], &[])
    }
    pub(crate) fn mul(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit().call("mul", &[a, b], &[])
    }
    pub(crate) fn div(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit().call("div", &[a, b], &[])
    }
    pub(crate) fn times(&mut self, a: Value, s: f64) -> Result<Value> {
        self.emit().call("mul", &[a], &[("s", s.into())])
    }
    pub(crate) fn neg(&mut self, a: Value) -> Result<Value> {
        self.one("neg", a)
    }
    /// a b
    pub(crate) fn ab(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit().call("matmul", &[a, b], &[])
    }
    pub(crate) fn is_complex(&mut self, a: Value) -> bool {
        self.emit().dtype(a).is_complex()
    }
    /// The complex conjugate.
    pub(crate) fn conj(&mut self, a: Value) -> Result<Value> {
        if self.is_complex(a) { self.one("conj", a) } else { Ok(a) }
    }
    /// The numbers that a gradient of `like` has: of a real one the real parts.
    pub(crate) fn as_input(&mut self, a: Value, i: usize) -> Result<Value> {
        let real = self.0.input_dtype(i).is_some_and(|d| !d.is_complex());
        if real && self.is_complex(a) { self.one("real", a) } else { Ok(a) }
    }
    /// aᴴ b
    pub(crate) fn ahb(&mut self, a: Value, b: Value) -> Result<Value> {
        let a = self.conj(a)?;
        self.emit().call("matmul", &[a, b], &[("transpose_a", true.into())])
    }
    /// a bᴴ
    pub(crate) fn abh(&mut self, a: Value, b: Value) -> Result<Value> {
        let b = self.conj(b)?;
        self.emit().call("matmul", &[a, b], &[("transpose_b", true.into())])
    }
    /// aᵀ bᵀ
    pub(crate) fn atbt(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit().call("matmul", &[a, b], &[("transpose_a", true.into()), ("transpose_b", true.into())])
    }
    /// aᴴ
    pub(crate) fn h(&mut self, a: Value) -> Result<Value> {
        let a = self.conj(a)?;
        self.t(a)
    }
    /// aᵀ
    pub(crate) fn t(&mut self, a: Value) -> Result<Value> {
        self.emit().call("transpose", &[a], &[("dim0", (-2i64).into()), ("dim1", (-1i64).into())])
    }
    pub(crate) fn tril(&mut self, a: Value, diagonal: i64) -> Result<Value> {
        self.emit().call("tril", &[a], &[("diagonal", diagonal.into())])
    }
    pub(crate) fn triu(&mut self, a: Value, diagonal: i64) -> Result<Value> {
        self.emit().call("triu", &[a], &[("diagonal", diagonal.into())])
    }
    /// The diagonal matrices of vectors.
    pub(crate) fn diag(&mut self, v: Value) -> Result<Value> {
        self.one("diag_embed", v)
    }
    /// Vectors or numbers with one dim of size 1 more, counted from the end.
    pub(crate) fn unsqueeze(&mut self, v: Value, dim: i64) -> Result<Value> {
        self.emit().call("unsqueeze", &[v], &[("dim", dim.into())])
    }
    pub(crate) fn narrow(&mut self, x: Value, dim: i64, start: usize, len: usize) -> Result<Value> {
        self.emit().call(
            "narrow",
            &[x],
            &[("dim", dim.into()), ("start", (start as i64).into()), ("len", (len as i64).into())],
        )
    }
    /// a and b beside each other along a dim.
    pub(crate) fn joined(&mut self, a: Value, b: Value, dim: i64) -> Result<Value> {
        self.emit().call("cat", &[a, b], &[("dim", dim.into())])
    }
    /// x with zeros right of its columns and below its rows.
    pub(crate) fn padded(&mut self, x: Value, rows: usize, columns: usize) -> Result<Value> {
        let pad = [0, columns as i64, 0, rows as i64];
        self.emit().call("pad", &[x], &[("pad", pad.as_slice().into())])
    }
    /// The sum over the matrix dims, which stay with size 1.
    pub(crate) fn total(&mut self, x: Value) -> Result<Value> {
        self.emit().call("sum", &[x], &[("dims", [-2i64, -1].as_slice().into()), ("keepdim", true.into())])
    }
    /// a - aᴴ
    pub(crate) fn skew(&mut self, a: Value) -> Result<Value> {
        let h = self.h(a)?;
        self.sub(a, h)
    }
    /// The Hermitian matrix of a triangle, given with its diagonal and without it; of the diagonal the real part.
    pub(crate) fn mirrored(&mut self, triangle: Value, strict: Value) -> Result<Value> {
        let both = self.add(triangle, strict)?;
        let half = self.times(both, 0.5)?;
        let other = self.h(half)?;
        self.add(half, other)
    }
    /// b_j - b_i for vectors b, with 1 on the diagonal.
    pub(crate) fn gaps(&mut self, b: Value) -> Result<Value> {
        let (along, down) = (self.unsqueeze(b, -2)?, self.unsqueeze(b, -1)?);
        let gaps = self.sub(along, down)?;
        let ones = self.one("ones_like", b)?;
        let ones = self.diag(ones)?;
        self.add(gaps, ones)
    }
    /// The gradient of the A of a system with the solution x, from that of its B: -db xᴴ, or its like for `x A = B` and for Aᵀ.
    pub(crate) fn of_system(&mut self, db: Value, x: Value, left: bool, transpose: bool) -> Result<Value> {
        let da = match (left, transpose) {
            (true, false) => self.abh(db, x)?,
            (true, true) => self.abh(x, db)?,
            (false, false) => self.ahb(x, db)?,
            (false, true) => self.ahb(db, x)?,
        };
        let da = if transpose { self.conj(da)? } else { da };
        self.neg(da)
    }
    /// A solve with a triangular matrix: `op(a) x = b`, or `x op(a) = b` if not `left`.
    pub(crate) fn triangular(&mut self, a: Value, b: Value, how: Triangular) -> Result<Value> {
        let attrs = [
            ("upper", how.upper.into()),
            ("left", how.left.into()),
            ("unitriangular", how.unitriangular.into()),
            ("transpose", how.transpose.into()),
        ];
        self.emit().call("linalg.solve_triangular", &[a, b], &attrs)
    }
}
