//! The QR decomposition.

use crate::batch::{Field, Scratch, Source, batch_of, by_rows, each, finite, room, zeros};
use crate::reflections::{factorize, multiply};
use crate::rules::{DOMAIN, FIELDS, Triangular, Words, cubes, matrices, split_batch};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch as apply_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj as apply,
};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch, recommended_block_size};
use faer::{Conj, MatMut, MatRef, Par};
use oflow::kernels::{Complex, Dims};
use oflow::ops::{DTypeRule, Grad, GradCtx, KernelCx, OpDef};
use oflow::prelude::*;
use smallvec::smallvec;

/// Columns of Q for matrices of these sizes.
fn width(mode: &str, rows: usize, columns: usize) -> Result<usize> {
    match mode {
        "reduced" => Ok(rows.min(columns)),
        "complete" => Ok(rows),
        other => Err(Error::argument(format!("mode '{other}' is neither 'reduced' nor 'complete'"))),
    }
}

pub(crate) fn qr() -> Result<OpDef> {
    Ok(OpDef::new(&format!("qr(A: {FIELDS}[2..]; mode: str = \"reduced\") -> (Q, R)"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .function("qr(Tensor A, String mode=\"reduced\") -> (Tensor Q, Tensor R)")
        .doc(
            "Q with orthonormal columns and R upper triangular with `A = Q R`.\n\nOf `[m, n]` and k the smaller of both, Q is `[m, k]` \
             and R `[k, n]`; in the mode `complete` Q is `[m, m]` and R `[m, n]`. The signs of the diagonal of R are those of LAPACK. \
             The gradient needs the first k columns of A to be independent, and is an error of `complete` where m > n.",
        )
        .check(|c| {
            matrices(c, 0)?;
            width(c.str("mode")?, 1, 1).map(drop)
        })
        .shapes(|c| {
            let (batch, rows, columns) = matrices(c, 0)?;
            let k = width(c.str("mode")?, rows, columns)?;
            let (mut q, mut r) = (Dims::from(batch), Dims::from(batch));
            q.extend([rows, k]);
            r.extend([k, columns]);
            Ok(smallvec![q, r])
        })
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| split_batch(c, 2))
        .flops(|c| cubes(c, 4))
        .cpu(|cx| match cx.input(0)?.dtype() {
            DType::F32 => kernel::<f32>(cx),
            DType::F64 => kernel::<f64>(cx),
            _ => complex_kernel(cx),
        })
        .cuda(crate::cuda::qr)
        .grad(Grad::rule_saving(&[], &[0, 1], gradient))
        .samples(&[
            "f32[3, 3]~",
            "f64[2, 3, 3]~",
            "f64[5, 3]",
            "c128[4, 3]",
            "f64[3, 5]",
            "f64[2, 2, 4]; mode=complete",
            "f64[1, 1]",
            "f64[2, 3, 0]",
        ]))
}

fn kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let (rows, columns) = (a.rows(), a.columns());
    let width = width(cx.str("mode")?, rows, columns)?;
    let make = || Factors::<T>::new(rows, columns, width);
    each(cx, batch, &[4, rows, columns, rows.min(columns)], make, |w, i, [q, r]| {
        a.read(i, &mut w.a);
        if !finite(&w.a) {
            q.fill(T::real(f64::NAN));
            r.fill(T::real(f64::NAN));
            return Ok(());
        }
        w.decompose();
        by_rows(width, q, |row, col| w.q[col * rows + row]);
        by_rows(columns, r, |row, col| if row <= col { w.a[col * rows + row] } else { T::zero() });
        Ok(())
    })
}

/// The factors Q and R of a matrix, and what it takes to find them.
pub(crate) struct Factors<T> {
    rows: usize,
    columns: usize,
    /// Columns of Q.
    width: usize,
    block: usize,
    /// The matrix by columns; once decomposed R, and below its diagonal the reflections.
    pub(crate) a: Vec<T>,
    reflections: Vec<T>,
    /// Q by columns.
    pub(crate) q: Vec<T>,
    scratch: Scratch,
}

impl<T: Field> Factors<T> {
    /// Room for those of a matrix, with so many columns of Q.
    pub(crate) fn new(rows: usize, columns: usize, width: usize) -> Result<Factors<T>> {
        let (size, block) = (rows.min(columns), recommended_block_size::<T>(rows, columns));
        let need = qr_in_place_scratch::<T>(rows, columns, block, Par::Seq, Default::default());
        let scratch = Scratch::new(need.or(apply_scratch::<T>(rows, block, width)))?;
        let (a, reflections, q) = (room(rows * columns)?, zeros(block * size)?, zeros(rows * width)?);
        Ok(Factors { rows, columns, width, block, a, reflections, q, scratch })
    }

    /// Decomposes the matrix that `a` has, of finite numbers.
    pub(crate) fn decompose(&mut self) {
        let (rows, columns, size) = (self.rows, self.columns, self.rows.min(self.columns));
        let mut factors = MatMut::from_column_major_slice_mut(&mut self.reflections, self.block, size);
        let m = MatMut::from_column_major_slice_mut(&mut self.a, rows, columns);
        if size > 0 {
            qr_in_place(m, factors.as_mut(), Par::Seq, self.scratch.stack(), Default::default());
        }
        self.q.fill(T::zero());
        self.q.iter_mut().step_by(rows + 1).take(self.width).for_each(|x| *x = T::one());
        if size > 0 {
            let basis = MatRef::from_column_major_slice(&self.a[..rows * size], rows, size);
            let identity = MatMut::from_column_major_slice_mut(&mut self.q, rows, self.width);
            apply(basis, factors.as_ref(), Conj::No, identity, Par::Seq, self.scratch.stack());
        }
    }
}

/// Of complex matrices the phases of Q and R are those of LAPACK too, so that gradients are PyTorch's: by its reflections, which differ
/// from faer's.
fn complex_kernel(cx: &KernelCx<'_>) -> Result<()> {
    type C = Complex<f64>;
    let batch = batch_of(cx)?;
    let a = Source::<C>::new(cx.input(0)?, batch, false)?;
    let (rows, columns) = (a.rows(), a.columns());
    let width = width(cx.str("mode")?, rows, columns)?;
    let size = rows.min(columns);
    let make = || Ok((a.room()?, zeros::<C>(size)?, zeros::<C>(rows * width)?));
    each(cx, batch, &[16, rows, columns, size], make, |(m, tau, product), i, [q, r]| {
        a.read(i, m);
        factorize(rows, m, tau);
        multiply(rows, m, tau, product);
        by_rows(width, q, |row, col| product[col * rows + row]);
        by_rows(columns, r, |row, col| if row <= col { m[col * rows + row] } else { C::default() });
        Ok(())
    })
}

/// As PyTorch's. For m >= n, with M = dR Rᴴ - Qᴴ dQ: dA = (dQ + Q sym(triu(M))) R⁻ᴴ. For m < n only the first m columns
/// of R = [X Y] were made by Q: dA = Q ([W X⁻ᴴ, 0] + dR) with W the lower triangle of Mᴴ - M, and of its diagonal the half.
fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let (dq, dr) = (g.grad(0), g.grad(1));
    let shape = g.input_shape(0);
    let [.., rows, columns] = shape[..] else { return Ok(()) };
    if rows > columns && g.str("mode")? == "complete" {
        return Err(Error::autograd(format!("complete QR of {rows} rows and {columns} columns has no gradient"))
            .help("the columns of Q after the first ones may be any: use the mode 'reduced'"));
    }
    let (q, r) = (g.output(0)?, g.output(1)?);
    let mut w = Words(g);
    let of_r = dr.map(|dr| w.abh(dr, r)).transpose()?;
    let of_q = dq.map(|dq| w.ahb(q, dq)).transpose()?;
    let m = match (of_r, of_q) {
        (Some(a), Some(b)) => w.sub(a, b)?,
        (Some(a), None) => a,
        (None, Some(b)) => w.neg(b)?,
        (None, None) => return Ok(()),
    };
    let how = Triangular { upper: true, left: false, unitriangular: false, transpose: true };
    let da = if rows >= columns {
        let up = w.triu(m, 0)?;
        let strict = w.triu(m, 1)?;
        let sym = w.mirrored(up, strict)?;
        let made = w.ab(q, sym)?;
        let made = w.sum_of(dq, made)?;
        let r = w.conj(r)?;
        w.triangular(r, made, how)?
    } else {
        let turned = w.skew(m)?;
        let turned = w.neg(turned)?;
        let mut low = w.tril(turned, -1)?;
        if w.is_complex(turned) {
            let whole = w.tril(turned, 0)?;
            let both = w.add(whole, low)?;
            low = w.times(both, 0.5)?;
        }
        let x = w.narrow(r, -1, 0, rows)?;
        let x = w.conj(x)?;
        let made = w.triangular(x, low, how)?;
        let made = w.padded(made, 0, columns - rows)?;
        let made = w.sum_of(dr, made)?;
        w.ab(q, made)?
    };
    w.0.set(0, da)
}
