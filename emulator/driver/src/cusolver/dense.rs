//! The decompositions, in complex numbers of double precision: real matrices are complex ones without imaginary parts. Matrices lie by
//! columns, one after the other. Simple methods, not fast ones.

use num_complex::Complex;

pub type Number = Complex<f64>;

const ZERO: Number = Number::new(0.0, 0.0);
const ONE: Number = Number::new(1.0, 0.0);

/// A matrix by columns.
#[derive(Clone)]
pub struct Matrix {
    pub rows: usize,
    pub columns: usize,
    pub data: Vec<Number>,
}

impl Matrix {
    pub fn zeros(rows: usize, columns: usize) -> Matrix {
        Matrix { rows, columns, data: vec![ZERO; rows * columns] }
    }
    pub fn identity(n: usize) -> Matrix {
        let mut all = Matrix::zeros(n, n);
        (0..n).for_each(|i| all.set(i, i, ONE));
        all
    }
    pub fn at(&self, r: usize, c: usize) -> Number {
        self.data[c * self.rows + r]
    }
    pub fn set(&mut self, r: usize, c: usize, x: Number) {
        self.data[c * self.rows + r] = x;
    }
    fn column(&self, c: usize) -> &[Number] {
        &self.data[c * self.rows..(c + 1) * self.rows]
    }
    /// Columns p and q become `a p + b q` and `c p + d q`.
    fn turn(&mut self, (p, q): (usize, usize), [a, b, c, d]: [Number; 4]) {
        for r in 0..self.rows {
            let (x, y) = (self.at(r, p), self.at(r, q));
            self.set(r, p, a * x + b * y);
            self.set(r, q, c * x + d * y);
        }
    }
}

/// `xᴴ y`.
fn inner(x: &[Number], y: &[Number]) -> Number {
    x.iter().zip(y).map(|(x, y)| x.conj() * y).sum()
}

fn norm(x: &[Number]) -> f64 {
    x.iter().fold(0.0, |s: f64, x| s.hypot(x.norm()))
}

/// LAPACK's potrf: the factor in the triangle that is named; the order of the minor that is not positive, or 0.
pub fn cholesky(a: &mut Matrix, upper: bool) -> i32 {
    let n = a.rows;
    // The lower factor of the lower triangle, which for the upper one is its adjoint.
    let low = |a: &Matrix, r: usize, c: usize| if upper { a.at(c, r).conj() } else { a.at(r, c) };
    for c in 0..n {
        let mut d = low(a, c, c).re;
        (0..c).for_each(|k| d -= low(a, c, k).norm_sqr());
        if d.is_nan() || d <= 0.0 {
            return c as i32 + 1;
        }
        let d = d.sqrt();
        a.set(c, c, d.into());
        for r in c + 1..n {
            let mut x = low(a, r, c);
            (0..c).for_each(|k| x -= low(a, r, k) * low(a, c, k).conj());
            x /= d;
            if upper { a.set(c, r, x.conj()) } else { a.set(r, c, x) }
        }
    }
    0
}

/// LAPACK's potrs: `A x = b` in the place of b.
pub fn cholesky_solve(a: &Matrix, upper: bool, b: &mut Matrix) {
    let n = a.rows;
    let low = |r: usize, c: usize| if upper { a.at(c, r).conj() } else { a.at(r, c) };
    for c in 0..b.columns {
        for r in 0..n {
            let mut x = b.at(r, c);
            (0..r).for_each(|k| x -= low(r, k) * b.at(k, c));
            b.set(r, c, x / low(r, r));
        }
        for r in (0..n).rev() {
            let mut x = b.at(r, c);
            (r + 1..n).for_each(|k| x -= low(k, r).conj() * b.at(k, c));
            b.set(r, c, x / low(r, r).conj());
        }
    }
}

/// LAPACK's getrf, with pivots from 1; the first pivot that is zero, or 0.
pub fn lu(a: &mut Matrix, pivots: &mut [i64]) -> i32 {
    let size = |x: Number| x.re.abs() + x.im.abs();
    let mut info = 0;
    for (k, pivot) in pivots.iter_mut().enumerate().take(a.rows.min(a.columns)) {
        let mut best = k;
        for r in k + 1..a.rows {
            if size(a.at(r, k)) > size(a.at(best, k)) {
                best = r;
            }
        }
        *pivot = best as i64 + 1;
        if a.at(best, k) == ZERO {
            info = if info == 0 { k as i32 + 1 } else { info };
            continue;
        }
        for c in 0..a.columns {
            let (x, y) = (a.at(k, c), a.at(best, c));
            a.set(k, c, y);
            a.set(best, c, x);
        }
        for r in k + 1..a.rows {
            let by = a.at(r, k) / a.at(k, k);
            a.set(r, k, by);
            for c in k + 1..a.columns {
                let x = a.at(r, c) - by * a.at(k, c);
                a.set(r, c, x);
            }
        }
    }
    info
}

/// LAPACK's getrs for `A x = b`, or `Aᵀ x = b` if `transposed`.
pub fn lu_solve(a: &Matrix, pivots: &[i64], transposed: bool, b: &mut Matrix) {
    let n = a.rows;
    let swap = |b: &mut Matrix, c: usize, k: usize| {
        let other = pivots[k] as usize - 1;
        let (x, y) = (b.at(k, c), b.at(other, c));
        b.set(k, c, y);
        b.set(other, c, x);
    };
    for c in 0..b.columns {
        if !transposed {
            (0..n).for_each(|k| swap(b, c, k));
            for r in 0..n {
                let x = (0..r).fold(b.at(r, c), |x, k| x - a.at(r, k) * b.at(k, c));
                b.set(r, c, x);
            }
            for r in (0..n).rev() {
                let x = (r + 1..n).fold(b.at(r, c), |x, k| x - a.at(r, k) * b.at(k, c));
                b.set(r, c, x / a.at(r, r));
            }
        } else {
            for r in 0..n {
                let x = (0..r).fold(b.at(r, c), |x, k| x - a.at(k, r) * b.at(k, c));
                b.set(r, c, x / a.at(r, r));
            }
            for r in (0..n).rev() {
                let x = (r + 1..n).fold(b.at(r, c), |x, k| x - a.at(k, r) * b.at(k, c));
                b.set(r, c, x);
            }
            (0..n).rev().for_each(|k| swap(b, c, k));
        }
    }
}

/// `x - tau v (vᴴ x)` for the v of 1 and these elements.
fn reflect(v: &[Number], tau: Number, x: &mut [Number]) {
    let by = tau * (x[0] + inner(v, &x[1..]));
    x[0] -= by;
    x[1..].iter_mut().zip(v).for_each(|(x, v)| *x -= by * v);
}

/// LAPACK's geqr2: R, and the reflections below its diagonal.
pub fn qr(a: &mut Matrix, tau: &mut [Number]) {
    let m = a.rows;
    for (k, tau) in tau.iter_mut().enumerate() {
        let (left, right) = a.data.split_at_mut((k + 1) * m);
        let column = &mut left[k * m + k..];
        let (alpha, below) = (column[0], norm(&column[1..]));
        *tau = ZERO;
        if below != 0.0 || alpha.im != 0.0 {
            let beta = -alpha.norm().hypot(below).copysign(alpha.re);
            *tau = (Number::from(beta) - alpha) / beta;
            column[1..].iter_mut().for_each(|x| *x /= alpha - beta);
            column[0] = beta.into();
        }
        right.chunks_exact_mut(m).for_each(|x| reflect(&column[1..], tau.conj(), &mut x[k..]));
    }
}

/// LAPACK's orgqr and ungqr: the first columns of Q in the place of the reflections.
pub fn q_of(a: &mut Matrix, tau: &[Number]) {
    let m = a.rows;
    let mut q = Matrix::zeros(m, a.columns);
    (0..a.columns).for_each(|i| q.set(i, i, ONE));
    for (k, tau) in tau.iter().enumerate().rev() {
        let v = &a.column(k)[k + 1..];
        q.data.chunks_exact_mut(m).for_each(|x| reflect(v, *tau, &mut x[k..]));
    }
    *a = q;
}

/// Columns p and q of `w`, whose inner products are these, become orthogonal by the rotation that is returned; `None` where they are.
fn rotation(pp: f64, qq: f64, pq: Number) -> Option<[Number; 4]> {
    let size = pq.norm();
    if size == 0.0 || size <= 1e-17 * (pp.abs() * qq.abs()).sqrt() {
        return None;
    }
    let phase = pq / size;
    let zeta = (qq - pp) / (2.0 * size);
    let t = 1f64.copysign(zeta) / (zeta.abs() + 1f64.hypot(zeta));
    let c = 1.0 / 1f64.hypot(t);
    let s = c * t;
    Some([c.into(), -phase.conj() * s, phase * s, c.into()])
}

/// Eigenvalues from the least on and the vectors as columns, by Jacobi's rotations of the Hermitian matrix of a triangle.
pub fn eigh(a: &mut Matrix, upper: bool) -> Vec<f64> {
    let n = a.rows;
    for c in 0..n {
        let d = a.at(c, c).re;
        a.set(c, c, d.into());
        for r in 0..c {
            if upper { a.set(c, r, a.at(r, c).conj()) } else { a.set(r, c, a.at(c, r).conj()) }
        }
    }
    let mut v = Matrix::identity(n);
    let total = norm(&a.data);
    for _ in 0..60 {
        let mut moved = false;
        for p in 0..n {
            for q in p + 1..n {
                let pq = a.at(p, q);
                if pq.norm() <= 1e-17 * total {
                    continue;
                }
                let Some(g) = rotation(a.at(p, p).re, a.at(q, q).re, pq) else { continue };
                moved = true;
                a.turn((p, q), g);
                v.turn((p, q), g);
                // The rows, by the adjoint.
                for c in 0..n {
                    let (x, y) = (a.at(p, c), a.at(q, c));
                    a.set(p, c, g[0].conj() * x + g[1].conj() * y);
                    a.set(q, c, g[2].conj() * x + g[3].conj() * y);
                }
            }
        }
        if !moved {
            break;
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|x, y| a.at(*x, *x).re.total_cmp(&a.at(*y, *y).re));
    let values = order.iter().map(|c| a.at(*c, *c).re).collect();
    a.data = order.iter().flat_map(|c| v.column(*c).to_vec()).collect();
    values
}

/// The singular values from the greatest on, all vectors U as columns, and Vᴴ, of a matrix of no fewer rows than columns: by rotations of
/// its columns.
pub fn svd(a: &Matrix) -> (Vec<f64>, Matrix, Matrix) {
    let (m, n) = (a.rows, a.columns);
    let (mut w, mut v) = (a.clone(), Matrix::identity(n));
    for _ in 0..60 {
        let mut moved = false;
        for p in 0..n {
            for q in p + 1..n {
                let (x, y) = (w.column(p), w.column(q));
                let (pp, qq, pq) = (inner(x, x).re, inner(y, y).re, inner(x, y));
                if pq.norm() <= 1e-16 * (pp * qq).sqrt() {
                    continue;
                }
                let Some(g) = rotation(pp, qq, pq) else { continue };
                moved = true;
                w.turn((p, q), g);
                v.turn((p, q), g);
            }
        }
        if !moved {
            break;
        }
    }
    let mut order: Vec<(f64, usize)> = (0..n).map(|c| (norm(w.column(c)), c)).collect();
    order.sort_by(|x, y| y.0.total_cmp(&x.0));
    let least = order.first().map_or(0.0, |x| x.0) * 1e-14;
    let mut u = Matrix { rows: m, columns: 0, data: vec![] };
    for (s, c) in order.iter().filter(|x| x.0 > least) {
        u.data.extend(w.column(*c).iter().map(|x| x / s));
        u.columns += 1;
    }
    // The others are what is left of unit vectors.
    for axis in 0..m {
        if u.columns == m {
            break;
        }
        let mut x = vec![ZERO; m];
        x[axis] = ONE;
        for _ in 0..2 {
            for c in 0..u.columns {
                let by = inner(u.column(c), &x);
                x.iter_mut().zip(u.column(c)).for_each(|(x, u)| *x -= by * u);
            }
        }
        let length = norm(&x);
        if length > 1e-8 {
            u.data.extend(x.iter().map(|x| x / length));
            u.columns += 1;
        }
    }
    let mut vh = Matrix::zeros(n, n);
    for (r, (_, c)) in order.iter().enumerate() {
        (0..n).for_each(|k| vh.set(r, k, v.at(k, *c).conj()));
    }
    (order.iter().map(|x| x.0).collect(), u, vh)
}

/// Eigenvalues and vectors of length 1 as columns of any square matrix; `None` where they do not converge. By QR steps with a shift on the
/// whole matrix, down to a triangle.
pub fn eig(a: &Matrix) -> Option<(Vec<Number>, Matrix)> {
    let n = a.rows;
    let (mut t, mut q) = (a.clone(), Matrix::identity(n));
    let small = f64::EPSILON * norm(&a.data);
    let mut active = n;
    for step in 0..200 * n.max(1) {
        while active > 1 && (0..active - 1).all(|c| t.at(active - 1, c).norm() <= small) {
            active -= 1;
        }
        if active <= 1 {
            break;
        }
        // Off the eigenvalue now and then: a shift that leaves the matrix as it is would do so for ever.
        let off = if step % 11 == 10 { Number::new(0.7, 0.3) * t.at(active - 1, active - 2).norm() } else { ZERO };
        let shift = t.at(active - 1, active - 1) + off;
        let mut block = Matrix::zeros(active, active);
        for c in 0..active {
            (0..active).for_each(|r| block.set(r, c, t.at(r, c) - if r == c { shift } else { ZERO }));
        }
        let mut tau = vec![ZERO; active];
        qr(&mut block, &mut tau);
        q_of(&mut block, &tau);
        let mut whole = Matrix::identity(n);
        for c in 0..active {
            (0..active).for_each(|r| whole.set(r, c, block.at(r, c)));
        }
        t = product(&adjoint(&whole), &product(&t, &whole));
        q = product(&q, &whole);
        if step + 1 == 200 * n {
            return None;
        }
    }
    let values: Vec<Number> = (0..n).map(|i| t.at(i, i)).collect();
    let mut vectors = Matrix::zeros(n, n);
    for k in 0..n {
        let mut x = vec![ZERO; n];
        x[k] = ONE;
        for r in (0..k).rev() {
            let sum: Number = (r + 1..=k).map(|c| t.at(r, c) * x[c]).sum();
            let gap = values[k] - t.at(r, r);
            x[r] = sum / if gap.norm() < small { Number::from(small) } else { gap };
        }
        let y: Vec<Number> = (0..n).map(|r| (0..n).map(|c| q.at(r, c) * x[c]).sum()).collect();
        let length = norm(&y);
        (0..n).for_each(|r| vectors.set(r, k, y[r] / length));
    }
    Some((values, vectors))
}

fn adjoint(a: &Matrix) -> Matrix {
    let mut b = Matrix::zeros(a.columns, a.rows);
    for c in 0..a.columns {
        (0..a.rows).for_each(|r| b.set(c, r, a.at(r, c).conj()));
    }
    b
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let mut y = Matrix::zeros(a.rows, b.columns);
    for c in 0..b.columns {
        for r in 0..a.rows {
            y.set(r, c, (0..a.columns).map(|k| a.at(r, k) * b.at(k, c)).sum());
        }
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern.
    fn matrix(rows: usize, columns: usize, complex: bool) -> Matrix {
        let mut state = (rows * 31 + columns) as u64 + 7;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1u32 << 30) - 1.0
        };
        let data = (0..rows * columns).map(|_| Number::new(next(), if complex { next() } else { 0.0 })).collect();
        Matrix { rows, columns, data }
    }

    fn near(a: &Matrix, b: &Matrix) {
        assert_eq!((a.rows, a.columns), (b.rows, b.columns));
        let gap = a.data.iter().zip(&b.data).fold(0.0, |g: f64, (x, y)| g.max((x - y).norm()));
        assert!(gap < 1e-10, "{gap}");
    }

    fn diagonal(values: impl Iterator<Item = Number>, rows: usize, columns: usize) -> Matrix {
        let mut d = Matrix::zeros(rows, columns);
        values.enumerate().for_each(|(i, x)| d.set(i, i, x));
        d
    }

    /// Each decomposition multiplied is the matrix.
    #[test]
    fn factors_multiply_to_the_matrix() {
        for complex in [false, true] {
            for (m, n) in [(1, 1), (4, 4), (6, 3)] {
                let a = matrix(m, n, complex);
                let (s, u, vh) = svd(&a);
                near(&product(&u, &product(&diagonal(s.iter().map(|s| (*s).into()), m, n), &vh)), &a);
                near(&product(&adjoint(&u), &u), &Matrix::identity(m));
                let (mut r, mut tau) = (a.clone(), vec![ZERO; n]);
                qr(&mut r, &mut tau);
                let mut q = r.clone();
                q_of(&mut q, &tau);
                let mut up = Matrix::zeros(n, n);
                (0..n).for_each(|c| (0..=c).for_each(|i| up.set(i, c, r.at(i, c))));
                near(&product(&q, &up), &a);
            }
            let a = matrix(5, 5, complex);
            let (values, v) = eig(&a).unwrap();
            near(&product(&a, &v), &product(&v, &diagonal(values.into_iter(), 5, 5)));
            let both = product(&adjoint(&a), &a);
            for upper in [false, true] {
                let mut q = both.clone();
                let values = eigh(&mut q, upper);
                near(&product(&both, &q), &product(&q, &diagonal(values.iter().map(|x| (*x).into()), 5, 5)));
                let mut l = both.clone();
                assert_eq!(cholesky(&mut l, upper), 0);
                let mut x = a.clone();
                cholesky_solve(&l, upper, &mut x);
                near(&product(&both, &x), &a);
            }
            let (mut f, mut pivots) = (a.clone(), vec![0; 5]);
            assert_eq!(lu(&mut f, &mut pivots), 0);
            let (mut x, mut xt) = (both.clone(), both.clone());
            lu_solve(&f, &pivots, false, &mut x);
            near(&product(&a, &x), &both);
            lu_solve(&f, &pivots, true, &mut xt);
            let mut at = adjoint(&a);
            at.data.iter_mut().for_each(|x| *x = x.conj());
            near(&product(&at, &xt), &both);
        }
    }
}
