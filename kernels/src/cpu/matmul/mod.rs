//! Matrix products: `[..., m, k] x [..., k, n] -> [..., m, n]`.
//!
//! [`matmul_into`] checks dims, merges batch dims where possible (a batch that shares one right operand is one taller product)
//! and calls the kernel of the dtype: f32 and f64 to the `gemm` crate or, for a few rows against a transposed
//! operand, to dot products; bf16 to AVX-512's own products where the CPU has them; other halves to f32 tiles; integers to
//! plain loops. [`matmul_bytes`] multiplies quantised numbers. Transposes are strides, never copies.

mod bf16;
mod bytes;
mod dots;
mod float;
mod halves;
mod ints;

use smallvec::SmallVec;

use crate::{DType, Dims, KernelError, Result, View};
pub use bytes::{Bytes, byte_kernels, matmul_bytes};
pub(crate) use float::gemm_serial;

/// Below this many floating-point operations a product stays on the calling thread.
pub(crate) const PARALLEL_FLOPS: usize = 2_000_000;

/// A matrix in memory: element `(i, j)` lies at `ptr + i * rs + j * cs`.
#[derive(Clone, Copy)]
pub(crate) struct Mat<T> {
    pub(crate) ptr: *mut T,
    pub(crate) rs: isize,
    pub(crate) cs: isize,
}

// SAFETY: a Mat is a pointer with strides, made from a `View`, which promises that worker threads may use the memory.
unsafe impl<T> Send for Mat<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Mat<T> {}

impl<T> Mat<T> {
    /// The transposed matrix.
    pub(crate) fn t(self) -> Self {
        Mat { ptr: self.ptr, rs: self.cs, cs: self.rs }
    }
    /// The matrix that starts at element `(i, j)`.
    pub(crate) fn at(self, i: usize, j: usize) -> Self {
        let offset = i as isize * self.rs + j as isize * self.cs;
        Mat { ptr: self.ptr.wrapping_offset(offset), ..self }
    }
}

/// `out = a x b`: `[..., m, k] x [..., k, n] -> [..., m, n]`.
///
/// Batch dims broadcast; an operand of rank one is a row on the left, a column on the right, and its dim of size one is
/// missing in `out` (so two vectors give their dot product, of rank zero). All dtypes but bool; integers wrap. f16 and
/// bf16 are summed in f32 and rounded once, and their `out` may also be f32. `k == 0` gives zeros.
///
/// # Errors
/// If dims do not match or dtypes are mixed.
pub fn matmul(a: &View, b: &View, out: &View) -> Result<()> {
    matmul_into(a, b, out, false)
}

/// [`matmul`] that adds to `out` instead of replacing it when `accumulate` is set.
///
/// # Errors
/// Those of [`matmul`].
pub fn matmul_into(a: &View, b: &View, out: &View, accumulate: bool) -> Result<()> {
    let product = Product::new(a, b, out)?;
    if out.is_empty() {
        return Ok(());
    }
    if a.dtype().is_half() {
        halves::run(&product, a, b, out, accumulate);
        return Ok(());
    }
    match a.dtype() {
        DType::F32 => float::run::<f32>(&product, a, b, out, accumulate),
        DType::F64 => float::run::<f64>(&product, a, b, out, accumulate),
        DType::I32 => ints::run::<i32>(&product, a, b, out, accumulate),
        DType::I64 => ints::run::<i64>(&product, a, b, out, accumulate),
        DType::U8 => ints::run::<u8>(&product, a, b, out, accumulate),
        DType::I8 => ints::run::<i8>(&product, a, b, out, accumulate),
        other => return Err(KernelError::new(format!("has no kernel for {other}"))),
    }
    Ok(())
}

/// Every kernel of bf16 products that this CPU has, the quickest first; [`matmul`] takes the first. Each computes `out = a @ b`, or adds the
/// product to `out` where its last argument is true.
///
/// # Panics
/// Where the operands are no bf16 matrices that fit together.
pub fn bf16_kernels() -> impl Iterator<Item = impl Fn(&View, &View, &View, bool)> {
    bf16::kernels().chain([halves::WIDENED]).map(|kernel| {
        move |a: &View, b: &View, out: &View, keep: bool| {
            let product = Product::new(a, b, out).unwrap_or_else(|e| panic!("{e}"));
            halves::run_by(kernel, &product, a, b, out, keep);
        }
    })
}

/// A batch dim and how far one step in it moves in each operand.
#[derive(Clone, Copy)]
pub(crate) struct BatchDim {
    pub(crate) size: usize,
    pub(crate) a: isize,
    pub(crate) b: isize,
    pub(crate) c: isize,
}

/// Sizes and strides of a batched product after all simplification.
pub(crate) struct Product {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Elements from row to row and from column to column.
    pub(crate) a: (isize, isize),
    pub(crate) b: (isize, isize),
    pub(crate) c: (isize, isize),
    pub(crate) batch: SmallVec<[BatchDim; 4]>,
}

impl Product {
    pub(crate) fn new(a: &View, b: &View, out: &View) -> Result<Product> {
        check_dtypes(a, b, out)?;
        Product::of_dims(a, b, out)
    }

    /// The same for any dtypes.
    fn of_dims(a: &View, b: &View, out: &View) -> Result<Product> {
        if a.rank() == 0 || b.rank() == 0 {
            return Err(KernelError::new("needs operands of rank 1 or more, not a single number"));
        }
        let (mut a_dims, mut a_strides) = (Dims::from(a.dims()), a.strides().to_vec());
        let (mut b_dims, mut b_strides) = (Dims::from(b.dims()), b.strides().to_vec());
        let mut c_strides = out.strides().to_vec();
        let mut expected = Dims::new();
        let (a_vector, b_vector) = (a.rank() == 1, b.rank() == 1);
        if a_vector {
            a_dims.insert(0, 1);
            a_strides.insert(0, 0);
        }
        if b_vector {
            b_dims.push(1);
            b_strides.push(0);
        }
        let (ra, rb) = (a_dims.len(), b_dims.len());
        let (m, k, n) = (a_dims[ra - 2], a_dims[ra - 1], b_dims[rb - 1]);
        if k != b_dims[rb - 2] {
            return Err(KernelError::new(format!(
                "inner sizes differ: {:?} x {:?} ({k} and {})",
                a.dims(),
                b.dims(),
                b_dims[rb - 2]
            )));
        }
        let batch_rank = ra.max(rb) - 2;
        let at = |dims: &[usize], strides: &[isize], d: usize| {
            // Dim d of the batch, aligned at the right; a missing or repeated dim does not move.
            let rank = dims.len() - 2;
            match (d + rank).checked_sub(batch_rank) {
                Some(i) if dims[i] != 1 => (dims[i], strides[i]),
                _ => (1, 0),
            }
        };
        let mut sizes: SmallVec<[(usize, isize, isize); 4]> = SmallVec::new();
        for d in 0..batch_rank {
            let ((da, sa), (db, sb)) = (at(&a_dims, &a_strides, d), at(&b_dims, &b_strides, d));
            if da != db && da != 1 && db != 1 {
                return Err(KernelError::new(format!(
                    "batch sizes {da} and {db} do not broadcast: {:?} x {:?}",
                    a.dims(),
                    b.dims()
                )));
            }
            let size = if da == 1 { db } else { da };
            expected.push(size);
            sizes.push((size, sa, sb));
        }
        if !a_vector {
            expected.push(m);
        }
        if !b_vector {
            expected.push(n);
        }
        if out.dims() != expected.as_slice() {
            return Err(KernelError::new(format!(
                "{:?} x {:?} gives {:?}, but the output has {:?}",
                a.dims(),
                b.dims(),
                expected.as_slice(),
                out.dims()
            )));
        }
        if a_vector {
            c_strides.insert(batch_rank, 0);
        }
        if b_vector {
            c_strides.push(0);
        }
        let mut product = Product {
            m,
            n,
            k,
            a: (a_strides[ra - 2], a_strides[ra - 1]),
            b: (b_strides[rb - 2], b_strides[rb - 1]),
            c: (c_strides[batch_rank], c_strides[batch_rank + 1]),
            batch: SmallVec::new(),
        };
        for (d, (size, a, b)) in sizes.into_iter().enumerate() {
            product.push_batch(BatchDim { size, a, b, c: c_strides[d] });
        }
        product.fold_batch_into_rows();
        Ok(product)
    }

    /// Appends an inner batch dim, merged with the one outside where every operand steps through both as one.
    fn push_batch(&mut self, dim: BatchDim) {
        if dim.size == 1 {
            return;
        }
        let size = dim.size as isize;
        match self.batch.last_mut() {
            Some(last) if last.a == dim.a * size && last.b == dim.b * size && last.c == dim.c * size => {
                *last = BatchDim { size: last.size * dim.size, ..dim };
            }
            _ => self.batch.push(dim),
        }
    }

    /// A batch whose products share one right operand, and whose rows follow each other, is one product with more rows.
    fn fold_batch_into_rows(&mut self) {
        while let Some(last) = self.batch.last().copied() {
            let rows = self.m as isize;
            let follows = last.a == self.a.0 * rows && last.c == self.c.0 * rows;
            if last.b != 0 || !(self.m == 1 || follows) {
                return;
            }
            if self.m == 1 {
                (self.a.0, self.c.0) = (last.a, last.c);
            }
            self.m *= last.size;
            self.batch.pop();
        }
    }

    /// The same product transposed: the operands change places.
    pub(crate) fn transpose(&mut self) {
        let flip = |(row, column)| (column, row);
        (self.m, self.n) = (self.n, self.m);
        (self.a, self.b, self.c) = (flip(self.b), flip(self.a), flip(self.c));
        for d in &mut self.batch {
            (d.a, d.b) = (d.b, d.a);
        }
    }

    /// Number of products in the batch.
    fn count(&self) -> usize {
        self.batch.iter().map(|d| d.size).product()
    }

    /// Floating-point operations of one product.
    fn flops(&self) -> usize {
        self.m.saturating_mul(self.n).saturating_mul(self.k).saturating_mul(2)
    }

    /// Where product `index` starts in each operand, in elements.
    fn offsets(&self, index: usize) -> (isize, isize, isize) {
        let (mut rest, mut oa, mut ob, mut oc) = (index, 0, 0, 0);
        for d in self.batch.iter().rev() {
            let i = (rest % d.size) as isize;
            rest /= d.size;
            (oa, ob, oc) = (oa + i * d.a, ob + i * d.b, oc + i * d.c);
        }
        (oa, ob, oc)
    }

    /// The operands of product `index`, all of one type.
    fn operands<T>(&self, a: &View, b: &View, out: &View, index: usize) -> (Mat<T>, Mat<T>, Mat<T>) {
        let (oa, ob, oc) = self.offsets(index);
        (
            Mat { ptr: (a.ptr() as *mut T).wrapping_offset(oa), rs: self.a.0, cs: self.a.1 },
            Mat { ptr: (b.ptr() as *mut T).wrapping_offset(ob), rs: self.b.0, cs: self.b.1 },
            Mat { ptr: (out.ptr() as *mut T).wrapping_offset(oc), rs: self.c.0, cs: self.c.1 },
        )
    }
}

fn check_dtypes(a: &View, b: &View, out: &View) -> Result<()> {
    let dtype = a.dtype();
    if b.dtype() != dtype {
        return Err(KernelError::new(format!("operands have different dtypes: {dtype} and {}", b.dtype())));
    }
    if out.dtype() != dtype && !(dtype.is_half() && out.dtype() == DType::F32) {
        return Err(KernelError::new(format!("operands are {dtype} but the output is {}", out.dtype())));
    }
    if dtype == DType::Bool {
        return Err(KernelError::new("has no meaning for bool; convert the operands to a number dtype first"));
    }
    Ok(())
}
