//! Orthogonal polynomials of degree `n`, cut to a whole number: 0 for a negative degree. Chebyshev's are trigonometric functions
//! between -1 and 1, else and for low degrees all are computed by their three-term recurrences (18.9).

/// Degrees beyond this are NaN: a recurrence of so many steps would not end in reasonable time.
const MOST: f64 = 1_048_576.0;

/// A degree as a whole number; the value itself where no polynomial has to be computed.
fn degree(n: f64) -> Result<u32, f64> {
    match n.trunc() {
        n if n.is_nan() || n > MOST => Err(f64::NAN),
        n if n < 0.0 => Err(0.0),
        n => Ok(n as u32),
    }
}

/// The polynomial of degree `n` of those that begin with 1 and `first`, where `next(k, q, p)` follows `q` of degree k and `p` of k - 1.
fn recurrence(x: f64, n: f64, first: impl Fn(f64) -> f64, next: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let n = match degree(n) {
        Ok(n) => n,
        Err(value) => return value,
    };
    let (mut p, mut q) = (1.0, first(x));
    if n == 0 {
        return p;
    }
    for k in 1..n {
        if q.is_nan() {
            break;
        }
        (p, q) = (q, next(k as f64, q, p));
    }
    q
}

/// A Chebyshev polynomial; `by_angle(n, acos(x))` has no recurrence to round.
fn chebyshev(x: f64, n: f64, first: impl Fn(f64) -> f64, by_angle: impl Fn(f64, f64) -> f64) -> f64 {
    let whole = n.trunc();
    if whole > 6.0 && x.abs() < 1.0 {
        let y = by_angle(whole, x.acos());
        // The sines are 0 at the ends of the interval.
        if y.is_finite() {
            return y;
        }
    }
    recurrence(x, n, first, |_, q, p| 2.0 * x * q - p)
}

/// Chebyshev's, of the first kind.
pub(crate) fn chebyshev_t(x: f64, n: f64) -> f64 {
    chebyshev(x, n, |x| x, |n, a| (n * a).cos())
}

/// Chebyshev's, of the second kind.
pub(crate) fn chebyshev_u(x: f64, n: f64) -> f64 {
    chebyshev(x, n, |x| 2.0 * x, |n, a| ((n + 1.0) * a).sin() / a.sin())
}

/// Chebyshev's, of the third kind.
pub(crate) fn chebyshev_v(x: f64, n: f64) -> f64 {
    chebyshev(x, n, |x| 2.0 * x - 1.0, |n, a| ((n + 0.5) * a).cos() / (0.5 * a).cos())
}

/// Chebyshev's, of the fourth kind.
pub(crate) fn chebyshev_w(x: f64, n: f64) -> f64 {
    chebyshev(x, n, |x| 2.0 * x + 1.0, |n, a| ((n + 0.5) * a).sin() / (0.5 * a).sin())
}

/// Of the first kind, at `2 x - 1`; so the three that follow.
pub(crate) fn shifted_chebyshev_t(x: f64, n: f64) -> f64 {
    chebyshev_t(2.0 * x - 1.0, n)
}

pub(crate) fn shifted_chebyshev_u(x: f64, n: f64) -> f64 {
    chebyshev_u(2.0 * x - 1.0, n)
}

pub(crate) fn shifted_chebyshev_v(x: f64, n: f64) -> f64 {
    chebyshev_v(2.0 * x - 1.0, n)
}

pub(crate) fn shifted_chebyshev_w(x: f64, n: f64) -> f64 {
    chebyshev_w(2.0 * x - 1.0, n)
}

/// Hermite's, of physicists.
pub(crate) fn hermite_h(x: f64, n: f64) -> f64 {
    recurrence(x, n, |x| 2.0 * x, |k, q, p| 2.0 * (x * q - k * p))
}

/// Hermite's, of probability.
pub(crate) fn hermite_he(x: f64, n: f64) -> f64 {
    recurrence(x, n, |x| x, |k, q, p| x * q - k * p)
}

/// Laguerre's.
pub(crate) fn laguerre_l(x: f64, n: f64) -> f64 {
    recurrence(x, n, |x| 1.0 - x, |k, q, p| ((2.0 * k + 1.0 - x) * q - k * p) / (k + 1.0))
}

/// Legendre's.
pub(crate) fn legendre_p(x: f64, n: f64) -> f64 {
    recurrence(x, n, |x| x, |k, q, p| ((2.0 * k + 1.0) * x * q - k * p) / (k + 1.0))
}
