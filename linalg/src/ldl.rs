//! The LDLᴴ decomposition of symmetric and Hermitian matrices that may be indefinite, with the pivots of Bunch and Kaufman (1977), in
//! LAPACK's form.

use crate::batch::{Field, Source, batch_of, by_rows, each, real_diagonal, with_wide};
use crate::rules::{DOMAIN, FIELDS, cubes, dtypes_of, matrices, one_dtype, split_batch, square};
use oflow::kernels::Dims;
use oflow::ops::{InferCtx, KernelCx, OpDef};
use oflow::prelude::*;
use oflow::sbp::{Sbp, Signature};
use smallvec::smallvec;

/// A square matrix by columns, of which the lower triangle counts. Above the diagonal stand the same numbers, or their conjugates.
struct Lower<'a, T> {
    n: usize,
    hermitian: bool,
    x: &'a mut [T],
}

impl<T: Field> Lower<'_, T> {
    fn at(&self, r: usize, c: usize) -> T {
        self.x[c * self.n + r]
    }
    fn put(&mut self, r: usize, c: usize, x: T) {
        self.x[c * self.n + r] = x;
    }
    /// The number across the diagonal.
    fn across(&self, x: T) -> T {
        if self.hermitian { x.conjugate() } else { x }
    }
    /// Of elements `(r, c)` the first that is largest.
    fn largest(&self, of: impl Iterator<Item = (usize, usize)>) -> Option<((usize, usize), f64)> {
        of.map(|(r, c)| ((r, c), self.at(r, c).size_of_parts())).reduce(|best, x| if x.1 > best.1 { x } else { best })
    }

    /// Decomposes the matrix; pivots are written as LAPACK's. Returns 0, or the number of the first block that is zero.
    fn decompose(&mut self, mut pivot: impl FnMut(usize, i64)) -> usize {
        let alpha = (1.0 + 17f64.sqrt()) / 8.0;
        let (n, mut k, mut info) = (self.n, 0, 0);
        if self.hermitian {
            real_diagonal(n, self.x);
        }
        while k < n {
            let own = self.at(k, k).size_of_parts();
            let found = self.largest((k + 1..n).map(|r| (r, k)));
            let (column, most) = found.map_or((k, 0.0), |((r, _), x)| (r, x));
            if own.max(most) == 0.0 || own.is_nan() {
                info = if info == 0 { k + 1 } else { info };
                pivot(k, k as i64 + 1);
                k += 1;
                continue;
            }
            let (mut other, mut two) = (k, false);
            if own < alpha * most {
                let row = (k..column).map(|c| (column, c)).chain((column + 1..n).map(|r| (r, column)));
                let across = self.largest(row).map_or(0.0, |(_, x)| x);
                if own < alpha * most * (most / across) {
                    other = column;
                    two = self.at(column, column).size_of_parts() < alpha * across;
                }
            }
            let last = k + usize::from(two);
            if other != last {
                self.exchange(k, last, other);
            }
            if two {
                self.eliminate_two(k)
            } else {
                self.eliminate_one(k)
            }
            for i in k..=last {
                pivot(i, if two { -(other as i64) - 1 } else { other as i64 + 1 });
            }
            k = last + 1;
        }
        info
    }

    /// Exchanges rows and columns `a` and `b > a` of the part from `k` on.
    fn exchange(&mut self, k: usize, a: usize, b: usize) {
        for r in b + 1..self.n {
            self.x.swap(a * self.n + r, b * self.n + r);
        }
        for j in a + 1..b {
            let (down, along) = (self.across(self.at(b, j)), self.across(self.at(j, a)));
            self.put(j, a, down);
            self.put(b, j, along);
        }
        let corner = self.across(self.at(b, a));
        self.put(b, a, corner);
        self.x.swap(a * self.n + a, b * self.n + b);
        if a > k {
            self.x.swap(k * self.n + a, k * self.n + b);
        }
    }

    fn eliminate_one(&mut self, k: usize) {
        let d = self.at(k, k);
        for c in k + 1..self.n {
            let by = self.across(self.at(c, k) / d);
            for r in c..self.n {
                let x = self.at(r, c) - self.at(r, k) * by;
                self.put(r, c, x);
            }
        }
        (k + 1..self.n).for_each(|r| self.put(r, k, self.at(r, k) / d));
    }

    fn eliminate_two(&mut self, k: usize) {
        for c in k + 2..self.n {
            let block = Block::of(self, k);
            // The row of L: that of A times the inverse of the block.
            let l = block.right([self.at(c, k), self.at(c, k + 1)]);
            for r in c..self.n {
                let x = self.at(r, k) * self.across(l[0]) + self.at(r, k + 1) * self.across(l[1]);
                self.put(r, c, self.at(r, c) - x);
            }
            self.put(c, k, l[0]);
            self.put(c, k + 1, l[1]);
        }
    }

    /// Puts the solutions in the place of the columns of b.
    fn solve(&self, pivots: &[i64], b: &mut [T]) -> Result<(), String> {
        let n = self.n;
        let bad = |p: i64| format!("has the pivot {p}, which is none of 1 to {n}");
        let place = |p: i64| usize::try_from(p.unsigned_abs()).ok().filter(|p| (1..=n).contains(p)).map(|p| p - 1);
        let mut blocks = vec![];
        let mut k = 0;
        while k < n {
            let other = place(pivots[k]).ok_or_else(|| bad(pivots[k]))?;
            let last = k + usize::from(pivots[k] < 0);
            if last >= n {
                return Err(bad(pivots[k]));
            }
            blocks.push((k, last, other));
            k = last + 1;
        }
        for x in b.chunks_exact_mut(n.max(1)) {
            for &(k, last, other) in &blocks {
                x.swap(last, other);
                for r in last + 1..n {
                    x[r] = (k..=last).fold(x[r], |s, c| s - self.at(r, c) * x[c]);
                }
                if last == k {
                    x[k] /= self.at(k, k);
                } else {
                    [x[k], x[last]] = Block::of(self, k).left([x[k], x[last]]);
                }
            }
            for &(k, last, other) in blocks.iter().rev() {
                for c in k..=last {
                    x[c] = (last + 1..n).fold(x[c], |s, r| s - self.across(self.at(r, c)) * x[r]);
                }
                x.swap(last, other);
            }
        }
        Ok(())
    }
}

/// A block of two rows and columns of D: its determinant and numbers.
struct Block<T> {
    first: T,
    second: T,
    below: T,
    above: T,
    determinant: T,
}

impl<T: Field> Block<T> {
    fn of(m: &Lower<'_, T>, k: usize) -> Block<T> {
        let (first, second, below) = (m.at(k, k), m.at(k + 1, k + 1), m.at(k + 1, k));
        let above = m.across(below);
        Block { first, second, below, above, determinant: first * second - below * above }
    }
    /// A row times the inverse.
    fn right(&self, [a, b]: [T; 2]) -> [T; 2] {
        [(a * self.second - b * self.below) / self.determinant, (b * self.first - a * self.above) / self.determinant]
    }
    /// The inverse times a column.
    fn left(&self, [a, b]: [T; 2]) -> [T; 2] {
        [(a * self.second - b * self.above) / self.determinant, (b * self.first - a * self.below) / self.determinant]
    }
}

pub(crate) fn decomposition() -> Result<OpDef> {
    Ok(OpDef::new(&format!(
        "ldl_decomposition(A: {FIELDS}[2..]; hermitian: bool = false) -> (LD, pivots: no_grad, info: no_grad)"
    ))?
    .domain(DOMAIN)
    .subject("Linear algebra")
    .doc(
        "The decomposition `A = L D Lᵀ` of symmetric matrices, or `L D Lᴴ` of Hermitian ones, of which the lower triangle is read, in \
         LAPACK's form (sytrf, hetrf): D has blocks of one or two rows.\n\n`info` is 0, or the number of the first block that is zero.",
    )
    .by_name_only()
    .check(square)
    .shapes(|c| {
        let (batch, n, _) = matrices(c, 0)?;
        let pivots = batch.iter().chain(&[n]).copied().collect::<Dims>();
        Ok(smallvec![c.shape(0)?.into(), pivots, batch.into()])
    })
    .dtype(dtypes_of(|d| [d, DType::I32, DType::I32]))
    .strided()
    .get_sbp(|c| split_batch(c, 3))
    .flops(|c| cubes(c, 1))
    // cuSOLVER has no decomposition of Hermitian matrices by pivots of two sizes.
    .traits(|t| t.cpu_only = true)
    .cpu(|cx| with_wide!(cx, factor))
    .samples(&["f32[3, 3]", "f64[2, 3, 3]", "c128[3, 3]; hermitian=true", "f64[2, 0, 0]"]))
}

fn factor<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let hermitian = cx.bool("hermitian")?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let n = a.rows();
    each(
        cx,
        batch,
        &[n, n, n],
        || a.room(),
        |x, i, [both, pivots, info]| {
            a.read(i, x);
            let mut m = Lower { n, hermitian, x };
            let wrong = m.decompose(|i, p| pivots[i] = T::real(p as f64));
            info[0] = T::real(wrong as f64);
            by_rows(n, both, |r, c| if r >= c { m.at(r, c) } else { T::zero() });
            Ok(())
        },
    )
}

/// The batch of the three inputs, which is the same.
fn batch<'a>(c: &InferCtx<'a>) -> Result<&'a [usize]> {
    square(c)?;
    one_dtype(c, 2)?;
    let ((batch, n, _), (others, rows, _)) = (matrices(c, 0)?, matrices(c, 2)?);
    let of_pivots = c.shape(1)?.split_last();
    if rows != n || others != batch || of_pivots != Some((&n, batch)) {
        let (ld, pivots, b) = (c.input(0)?, c.input(1)?, c.input(2)?);
        return Err(Error::shape(format!("the factors {ld}, the pivots {pivots} and B {b} do not fit")));
    }
    Ok(batch)
}

pub(crate) fn solution() -> Result<OpDef> {
    Ok(OpDef::new(&format!(
        "ldl_solution(LD: {FIELDS}[2..], pivots: no_grad i32|i64[1..], B: {FIELDS}[2..]; hermitian: bool = false) -> x"
    ))?
    .domain(DOMAIN)
    .subject("Linear algebra")
    .doc("The x of `A x = B` for the results of `ldl_decomposition`; all inputs have the same batch dims.")
    .by_name_only()
    .check(|c| batch(c).map(drop))
    .shape1(|c| Ok(c.shape(2)?.into()))
    .dtype(dtypes_of(|d| [d]))
    .get_sbp(|c| {
        let batch = batch(c)?.len();
        let mut rows: Vec<Signature> =
            (0..batch).map(|d| Signature::new(&[Sbp::Split(d); 3], &[Sbp::Split(d)])).collect();
        let columns = Sbp::Split(batch + 1);
        rows.push(Signature::new(&[Sbp::Broadcast, Sbp::Broadcast, columns], &[columns]));
        rows.push(Signature::new(&[Sbp::Broadcast, Sbp::Broadcast, Sbp::PARTIAL_SUM], &[Sbp::PARTIAL_SUM]));
        Ok(rows)
    })
    .traits(|t| t.cpu_only = true)
    .cpu(|cx| with_wide!(cx, solve)))
}

fn solve<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let hermitian = cx.bool("hermitian")?;
    let (ld, b) = (Source::<T>::new(cx.input(0)?, batch, false)?, Source::<T>::new(cx.input(2)?, batch, false)?);
    let pivots = crate::lu::integers(cx.input(1)?)?;
    let (n, columns) = (ld.rows(), b.columns());
    let make = || Ok((ld.room()?, b.room()?));
    each(cx, batch, &[2, n, n, columns], make, |(x, right), i, [part]| {
        ld.read(i, x);
        b.read(i, right);
        Lower { n, hermitian, x }.solve(&pivots[i * n..(i + 1) * n], right)?;
        by_rows(columns, part, |r, c| right[c * n + r]);
        Ok(())
    })
}
