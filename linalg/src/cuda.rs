//! The kernels of GPUs: matrices are copied into columns, decomposed by cuSOLVER (`oflow::kernels::cuda::solver`), and copied into the
//! outputs. Memory for the columns comes from the stream and goes back in its order.

use oflow::backend::cuda::queue;
use oflow::kernels::cuda::index::{tril, triu};
use oflow::kernels::cuda::solver::{
    self, Matrices, Room, Weights, Why, check_finite, phases, report, transposed, weighted,
};
use oflow::kernels::cuda::{Queue, copy::copy};
use oflow::kernels::{Dims, Strides, View};
use oflow::ops::KernelCx;
use oflow::prelude::*;

/// Batch, rows and columns of matrices.
fn sizes(x: &View) -> (usize, usize, usize) {
    match x.dims() {
        [batch @ .., rows, columns] => (batch.iter().product(), *rows, *columns),
        _ => (0, 0, 0),
    }
}

/// The view with its batch dims broadcast to `batch`; it has `own` dims of its own.
fn broadcast(x: &View, batch: &[usize], own: usize) -> Result<View> {
    let lead = x.rank().checked_sub(own).filter(|lead| *lead <= batch.len());
    let lead = lead.ok_or_else(|| Error::shape(format!("a kernel was given {:?} for {batch:?}", x.dims())))?;
    let missing = batch.len() - lead;
    let mut dims: Dims = batch.into();
    dims.extend(x.dims()[lead..].iter().copied());
    let mut strides: Strides = (0..missing).map(|_| 0).collect();
    strides.extend((0..lead).map(|d| if x.dims()[d] == 1 { 0 } else { x.strides()[d] }));
    strides.extend(x.strides()[lead..].iter().copied());
    // SAFETY: elements of the view, which is read only: a dim that repeats has the stride 0.
    Ok(unsafe { x.restride(0, dims, strides) })
}

/// The view with other dims; its elements lie one after the other.
fn reshaped(x: &View, dims: &[usize]) -> Result<View> {
    if !x.is_contiguous() || x.len() != dims.iter().product::<usize>() {
        return Err(Error::shape(format!("a kernel was given {:?} for {dims:?}", x.dims())));
    }
    let mut strides: Strides = dims.iter().map(|_| 1).collect();
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d] as isize;
    }
    // SAFETY: the elements of the view, which is contiguous, in their order.
    Ok(unsafe { x.restride(0, dims.into(), strides) })
}

/// Copies the matrices of a room into an output of as many, in its dtype.
fn put(q: &Queue, from: &Matrices, out: &View) -> Result<()> {
    Ok(copy(q, &from.part(out.dims())?, out)?)
}

/// A place for what came of each matrix.
fn info<'a>(q: &Queue<'a>, count: usize) -> Result<Room<'a>> {
    Ok(Room::new(q, DType::I32, &[count])?)
}

pub(crate) fn cholesky(cx: &KernelCx<'_>) -> Result<()> {
    let q = queue(cx)?;
    let (x, out, upper) = (cx.input(0)?, cx.output(0), cx.bool("upper")?);
    // To the library the rows are columns, so the lower triangle is the upper one, and the factor, of the conjugate matrix, is L again.
    let a = Matrices::of(&q, &transposed(x), x.dtype())?;
    let made = info(&q, sizes(x).0)?;
    let info = cx.outputs.get(1).unwrap_or(made.view());
    let flat = reshaped(info, &[info.len()])?;
    solver::cholesky(&q, &a, !upper, &flat)?;
    copy(&q, &transposed(&a.part(out.dims())?), out)?;
    match upper {
        true => triu(&q, out, out, 0, 0, 0)?,
        false => tril(&q, out, out, 0, 0, 0)?,
    }
    if cx.outputs.len() == 1 {
        report(&q, &flat, Why::NotPositive)?;
    }
    Ok(())
}

/// The LU decomposition of a view's matrices, and its pivots.
struct Lu<'a> {
    both: Matrices<'a>,
    pivots: Room<'a>,
    info: Room<'a>,
}

fn lu_of<'a>(q: &Queue<'a>, x: &View) -> Result<Lu<'a>> {
    let (count, rows, columns) = sizes(x);
    let both = Matrices::of(q, x, x.dtype())?;
    let pivots = Room::new(q, DType::I64, &[count, rows.min(columns)])?;
    let info = info(q, count)?;
    solver::lu(q, &both, pivots.view(), info.view())?;
    Ok(Lu { both, pivots, info })
}

pub(crate) fn lu(cx: &KernelCx<'_>) -> Result<()> {
    let q = queue(cx)?;
    let made = lu_of(&q, cx.input(0)?)?;
    put(&q, &made.both, cx.output(0))?;
    let (pivots, info) = (cx.output(1), cx.output(2));
    copy(&q, &reshaped(made.pivots.view(), pivots.dims())?, pivots)?;
    Ok(copy(&q, &reshaped(made.info.view(), info.dims())?, info)?)
}

pub(crate) fn permutation(cx: &KernelCx<'_>) -> Result<()> {
    let (q, x) = (queue(cx)?, cx.input(0)?);
    let pivots = Room::new(&q, DType::I64, x.dims())?;
    copy(&q, x, pivots.view())?;
    Ok(solver::permutations(&q, pivots.view(), cx.output(0), cx.int("first")?)?)
}

/// Determinants, and their logarithms where there is a second output.
pub(crate) fn det(cx: &KernelCx<'_>) -> Result<()> {
    let q = queue(cx)?;
    let made = lu_of(&q, cx.input(0)?)?;
    let flat = |x: &View| reshaped(x, &[x.len()]);
    let logs = cx.outputs.get(1).map(flat).transpose()?;
    let (lu, signs) = (made.both.view(), flat(cx.output(0))?);
    Ok(solver::determinants(&q, &lu, made.pivots.view(), &signs, logs.as_ref())?)
}

pub(crate) fn inv(cx: &KernelCx<'_>) -> Result<()> {
    let (q, x) = (queue(cx)?, cx.input(0)?);
    let made = lu_of(&q, x)?;
    let (count, n, _) = sizes(x);
    let y = Matrices::new(&q, x.dtype(), count, n, n)?;
    // Its own transpose.
    solver::identities(&q, &transposed(&y.view()))?;
    solver::lu_solve(&q, &made.both, made.pivots.view(), false, &y)?;
    put(&q, &y, cx.output(0))?;
    Ok(report(&q, made.info.view(), Why::Singular)?)
}

pub(crate) fn solve(cx: &KernelCx<'_>) -> Result<()> {
    let q = queue(cx)?;
    let (a, b, out) = (cx.input(0)?, cx.input(1)?, cx.output(0));
    let (left, transpose) = (cx.bool("left")?, cx.bool("transpose")?);
    let vectors = b.rank() == 1 || b.dims() == &a.dims()[..a.rank() - 1];
    let batch = &out.dims()[..out.rank() - if vectors { 1 } else { 2 }];
    // x A = b is Aᵀ xᵀ = bᵀ.
    let made = lu_of(&q, &broadcast(a, batch, 2)?)?;
    let b = broadcast(b, batch, if vectors { 1 } else { 2 })?;
    let columns = |x: &View| match (vectors, left) {
        (true, _) => {
            let (mut dims, mut strides): (Dims, Strides) = (x.dims().into(), x.strides().into());
            dims.push(1);
            strides.push(1);
            // SAFETY: the elements of the view.
            unsafe { x.restride(0, dims, strides) }
        }
        (false, true) => x.clone(),
        (false, false) => transposed(x),
    };
    let x = Matrices::of(&q, &columns(&b), b.dtype())?;
    solver::lu_solve(&q, &made.both, made.pivots.view(), transpose == left, &x)?;
    put(&q, &x, &columns(out))?;
    Ok(report(&q, made.info.view(), Why::Singular)?)
}

pub(crate) fn qr(cx: &KernelCx<'_>) -> Result<()> {
    let q = queue(cx)?;
    let (x, out, r) = (cx.input(0)?, cx.output(0), cx.output(1));
    let ((count, rows, columns), width) = (sizes(x), sizes(out).2);
    let both = Matrices::new(&q, x.dtype(), count, rows, columns.max(width))?;
    both.fill(&q, x)?;
    let tau = Room::new(&q, x.dtype(), &[count, rows.min(columns)])?;
    solver::qr(&q, &both, columns, tau.view())?;
    put(&q, &both, r)?;
    triu(&q, r, r, 0, 0, 0)?;
    solver::q_of(&q, &both, width, tau.view())?;
    // Without columns there are no reflections, and Q is a unit matrix.
    match columns {
        0 => Ok(solver::identities(&q, out)?),
        _ => put(&q, &both, out),
    }
}

pub(crate) fn reflections(cx: &KernelCx<'_>) -> Result<()> {
    let (q, x, tau) = (queue(cx)?, cx.input(0)?, cx.output(1));
    let both = Matrices::of(&q, x, x.dtype())?;
    solver::qr(&q, &both, sizes(x).2, tau)?;
    put(&q, &both, cx.output(0))
}

pub(crate) fn eigh(cx: &KernelCx<'_>) -> Result<()> {
    let q = queue(cx)?;
    let (x, values, vectors) = (cx.input(0)?, cx.output(0), cx.output(1));
    let upper = matches!(cx.str("UPLO")?, "U" | "u");
    // To the library the rows are columns: the other triangle, of the conjugate matrix, whose vectors are the conjugates.
    let a = Matrices::of(&q, &transposed(x), x.dtype())?;
    check_triangle(&q, &a, upper)?;
    let made = info(&q, sizes(x).0)?;
    solver::eigh(&q, &a, !upper, values, made.view())?;
    put(&q, &a, vectors)?;
    phases(&q, vectors, None, true)?;
    Ok(report(&q, made.view(), Why::NotConverged)?)
}

/// Reports matrices of which the triangle that is read is not finite. These are transposed.
fn check_triangle(q: &Queue, a: &Matrices, upper: bool) -> Result<()> {
    let rows = transposed(&a.view());
    let read = Room::new(q, rows.dtype(), rows.dims())?;
    match upper {
        true => triu(q, &rows, read.view(), 0, 0, 0)?,
        false => tril(q, &rows, read.view(), 0, 0, 0)?,
    }
    Ok(check_finite(q, read.view())?)
}

/// Singular vectors and values of a view's matrices, U and Vᴴ by rows.
fn svd_into(q: &Queue, x: &View, u: &View, s: &View, vh: &View) -> Result<()> {
    let (count, rows, columns) = sizes(x);
    let wide = rows < columns;
    let (long, k) = (rows.max(columns), rows.min(columns));
    // Of no fewer rows than columns: Aᵀ = V̄ S Uᵀ. The columns of U and the rows of Vᴴ change places, transposed.
    let a = Matrices::of(q, &if wide { transposed(x) } else { x.clone() }, x.dtype())?;
    check_finite(q, &transposed(&a.view()))?;
    let full = if wide { sizes(vh).1 } else { sizes(u).2 };
    let (left, right) = (Matrices::new(q, x.dtype(), count, long, full)?, Matrices::new(q, x.dtype(), count, k, k)?);
    let made = info(q, count)?;
    solver::svd(q, &a, &left, &reshaped(s, &[s.len()])?, &right, made.view())?;
    if k == 0 {
        // No vectors belong to a value: any will do.
        [u, vh]
            .into_iter()
            .try_for_each(|v| if sizes(v).1 == sizes(v).2 { solver::identities(q, v) } else { Ok(()) })?;
        return Ok(());
    }
    match wide {
        false => {
            put(q, &left, u)?;
            put(q, &right, vh)?;
        }
        true => {
            put(q, &left, &transposed(vh))?;
            put(q, &right, &transposed(u))?;
        }
    }
    phases(q, u, Some(vh), false)?;
    Ok(report(q, made.view(), Why::NotConverged)?)
}

pub(crate) fn svd(cx: &KernelCx<'_>) -> Result<()> {
    svd_into(&queue(cx)?, cx.input(0)?, cx.output(0), cx.output(1), cx.output(2))
}

pub(crate) fn eig(cx: &KernelCx<'_>) -> Result<()> {
    let q = queue(cx)?;
    let (x, values, vectors) = (cx.input(0)?, cx.output(0), cx.output(1));
    let (count, n, _) = sizes(x);
    let a = Matrices::of(&q, x, values.dtype())?;
    check_finite(&q, &transposed(&a.view()))?;
    let found = Matrices::new(&q, values.dtype(), count, n, n)?;
    let made = info(&q, count)?;
    solver::eig(&q, &a, values, &found, made.view())?;
    put(&q, &found, vectors)?;
    phases(&q, vectors, None, false)?;
    Ok(report(&q, made.view(), Why::NotConverged)?)
}

/// Thin singular vectors and values in memory of the stream.
struct Vectors<'a> {
    u: Room<'a>,
    s: Room<'a>,
    vh: Room<'a>,
}

fn vectors<'a>(q: &Queue<'a>, x: &View) -> Result<Vectors<'a>> {
    let (count, rows, columns) = sizes(x);
    let k = rows.min(columns);
    let room = |dtype: DType, dims: &[usize]| Room::new(q, dtype, dims);
    let (u, s) = (room(x.dtype(), &[count, rows, k])?, room(x.dtype().part(), &[count, k])?);
    let vh = room(x.dtype(), &[count, k, columns])?;
    svd_into(q, x, u.view(), s.view(), vh.view())?;
    Ok(Vectors { u, s, vh })
}

pub(crate) fn pinv(cx: &KernelCx<'_>) -> Result<()> {
    let (q, x, out) = (queue(cx)?, cx.input(0)?, cx.output(0));
    let (count, rows, columns) = sizes(x);
    let copied = Room::new(&q, x.dtype(), x.dims())?;
    let x = match cx.bool("hermitian")? {
        false => x,
        true => {
            copy(&q, x, copied.view())?;
            solver::mirror(&q, copied.view())?;
            copied.view()
        }
    };
    let Vectors { u, s, vh } = vectors(&q, x)?;
    let weights = Weights::Inverse { atol: cx.float("atol")?, rtol: cx.float("rtol")? };
    let y = transposed(&reshaped(out, &[count, columns, rows])?);
    Ok(weighted(&q, [u.view(), s.view(), vh.view()], weights, &y)?)
}

fn det_of<'a>(q: &Queue<'a>, x: &View) -> Result<Room<'a>> {
    let (made, det) = (lu_of(q, x)?, Room::new(q, x.dtype(), &[sizes(x).0])?);
    solver::determinants(q, &made.both.view(), made.pivots.view(), det.view(), None)?;
    Ok(det)
}

/// The cofactors of any finite matrix, from A = U S Vᴴ; see `det.rs`.
pub(crate) fn cofactor(cx: &KernelCx<'_>) -> Result<()> {
    let (q, x, out) = (queue(cx)?, cx.input(0)?, cx.output(0));
    let (count, n, _) = sizes(x);
    let Vectors { u, s, vh } = vectors(&q, x)?;
    let (left, right) = (det_of(&q, u.view())?, det_of(&q, vh.view())?);
    let weights = Weights::Others(left.view(), right.view());
    Ok(weighted(&q, [u.view(), s.view(), vh.view()], weights, &reshaped(out, &[count, n, n])?)?)
}

pub(crate) fn triangular(cx: &KernelCx<'_>) -> Result<()> {
    let q = queue(cx)?;
    let (a, b, out) = (cx.input(0)?, cx.input(1)?, cx.output(0));
    let (left, transpose) = (cx.bool("left")?, cx.bool("transpose")?);
    let batch = &out.dims()[..out.rank() - 2];
    copy(&q, &broadcast(b, batch, 2)?, out)?;
    let packed = packed(&q, &broadcast(a, batch, 2)?)?;
    // x A = b is Aᵀ xᵀ = bᵀ.
    let turned = transpose == left;
    let a = if turned { transposed(packed.view()) } else { packed.view().clone() };
    let x = if left { out.clone() } else { transposed(out) };
    let upper = cx.bool("upper")? != turned;
    Ok(solver::triangular(&q, &a, &x, [upper, cx.bool("unitriangular")?, false])?)
}

/// A contiguous copy.
fn packed<'a>(q: &Queue<'a>, x: &View) -> Result<Room<'a>> {
    let room = Room::new(q, x.dtype(), x.dims())?;
    copy(q, x, room.view())?;
    Ok(room)
}

pub(crate) fn cholesky_solution(cx: &KernelCx<'_>) -> Result<()> {
    let q = queue(cx)?;
    let (l, b, out) = (cx.input(0)?, cx.input(1)?, cx.output(0));
    let batch = &out.dims()[..out.rank() - 2];
    let (l, b) = (broadcast(l, batch, 2)?, broadcast(b, batch, 2)?);
    let (factor, x) = (Matrices::of(&q, &l, l.dtype())?, Matrices::of(&q, &b, b.dtype())?);
    solver::cholesky_solve(&q, &factor, cx.bool("upper")?, &x)?;
    put(&q, &x, out)
}
