//! Functions of complex numbers, by real and imaginary parts.
//!
//! Branch cuts and values on them are those of C's `<complex.h>` and PyTorch. The inverse functions are W. Kahan's ("Branch cuts for
//! complex elementary functions", 1987), whose square roots keep the digits that `log(z + sqrt(z² - 1))` loses.

use crate::expr::{BinaryOp, UnaryOp, binary_functions, truth, unary_functions};
use crate::vmath::Real;
use num_complex::Complex;

type C<T> = Complex<T>;

fn c<T: Real>(re: T, im: T) -> C<T> {
    Complex { re, im }
}

fn nonzero<T: Real>(z: C<T>) -> bool {
    z.re != T::ZERO || z.im != T::ZERO
}

/// A number as its place in the arithmetic of complex numbers.
pub(crate) fn real<T: Real>(x: T) -> C<T> {
    c(x, T::ZERO)
}

pub(crate) fn add<T: Real>(a: C<T>, b: C<T>) -> C<T> {
    c(a.re + b.re, a.im + b.im)
}

pub(crate) fn sub<T: Real>(a: C<T>, b: C<T>) -> C<T> {
    c(a.re - b.re, a.im - b.im)
}

pub(crate) fn mul<T: Real>(a: C<T>, b: C<T>) -> C<T> {
    c(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
}

/// By the larger part of the divisor (Smith 1962): squares of parts do not overflow.
pub(crate) fn div<T: Real>(a: C<T>, b: C<T>) -> C<T> {
    if b.re.abs() == T::ZERO && b.im.abs() == T::ZERO {
        return c(a.re / b.re.abs(), a.im / b.re.abs());
    }
    if b.re.abs() >= b.im.abs() {
        let r = b.im / b.re;
        let d = b.re + b.im * r;
        c((a.re + a.im * r) / d, (a.im - a.re * r) / d)
    } else {
        let r = b.re / b.im;
        let d = b.re * r + b.im;
        c((a.re * r + a.im) / d, (a.im * r - a.re) / d)
    }
}

/// i z.
fn turned<T: Real>(z: C<T>) -> C<T> {
    c(-z.im, z.re)
}

/// -i z.
fn turned_back<T: Real>(z: C<T>) -> C<T> {
    c(z.im, -z.re)
}

fn scaled<T: Real>(z: C<T>, by: f64) -> C<T> {
    let by = T::from_f64(by);
    c(z.re * by, z.im * by)
}

fn conj<T: Real>(z: C<T>) -> C<T> {
    c(z.re, -z.im)
}

fn exp<T: Real>(z: C<T>) -> C<T> {
    let r = z.re.exp();
    if z.im == T::ZERO {
        return c(r, z.im);
    }
    if r == T::ZERO {
        return c(T::ZERO, T::ZERO);
    }
    c(r * z.im.cos(), r * z.im.sin())
}

/// The logarithm of the absolute value, which keeps its digits near 1.
fn log_abs<T: Real>(z: C<T>) -> T {
    let r = z.re.hypot(z.im);
    let (low, high) = (T::from_f64(0.5), T::from_f64(2.0));
    if r > low && r < high {
        let big = if z.re.abs() > z.im.abs() { z.re.abs() } else { z.im.abs() };
        let small = if z.re.abs() > z.im.abs() { z.im.abs() } else { z.re.abs() };
        return low * ((big - T::ONE) * (big + T::ONE) + small * small).log1p();
    }
    r.log()
}

fn log<T: Real>(z: C<T>) -> C<T> {
    c(log_abs(z), z.im.atan2(z.re))
}

fn log1p<T: Real>(z: C<T>) -> C<T> {
    // |1 + z|² - 1 is 2 re + |z|².
    let near = z.re.abs() < T::from_f64(0.5) && z.im.abs() < T::from_f64(0.5);
    let one = c(z.re + T::ONE, z.im);
    match near {
        true => c(T::from_f64(0.5) * (z.re * (T::from_f64(2.0) + z.re) + z.im * z.im).log1p(), z.im.atan2(one.re)),
        false => log(one),
    }
}

fn expm1<T: Real>(z: C<T>) -> C<T> {
    // exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin²(y / 2)
    let half = (z.im * T::from_f64(0.5)).sin();
    let e = z.re.expm1();
    c(e * z.im.cos() - T::from_f64(2.0) * half * half, (e + T::ONE) * z.im.sin())
}

pub(crate) fn sqrt<T: Real>(z: C<T>) -> C<T> {
    if !nonzero(z) {
        return c(T::ZERO, z.im);
    }
    if z.im.abs() == T::INFINITY {
        return c(T::INFINITY, z.im);
    }
    // Halves first, so that the sum of two large numbers does not overflow.
    let half = T::from_f64(0.5);
    let (x, y) = (z.re * half, z.im * half);
    let t = (x.abs() + x.hypot(y)).sqrt();
    let small = y.abs() / t;
    match z.re >= T::ZERO {
        true => c(t, small.copysign(z.im)),
        false => c(small, t.copysign(z.im)),
    }
}

fn tanh<T: Real>(z: C<T>) -> C<T> {
    // Beyond it the real part is ±1 to the last bit, and cosh overflows soon.
    if z.re.abs() > T::from_f64(22.0) {
        let four = T::from_f64(4.0);
        let e = (-(z.re.abs() + z.re.abs())).exp();
        return c(T::ONE.copysign(z.re), four * z.im.sin() * z.im.cos() * e);
    }
    // Kahan's: t = tan(y), s = sinh(x), b = 1 + t², r = sqrt(1 + s²).
    let (t, s) = (z.im.tan(), z.re.sinh());
    let b = T::ONE + t * t;
    let r = (T::ONE + s * s).sqrt();
    let d = T::ONE + b * s * s;
    c(b * r * s / d, t / d)
}

fn sinh<T: Real>(z: C<T>) -> C<T> {
    c(z.re.sinh() * z.im.cos(), if z.im == T::ZERO { z.im } else { z.re.cosh() * z.im.sin() })
}

fn cosh<T: Real>(z: C<T>) -> C<T> {
    let im = if z.im == T::ZERO || z.re == T::ZERO { z.re * z.im } else { z.re.sinh() * z.im.sin() };
    c(z.re.cosh() * z.im.cos(), im)
}

fn asin<T: Real>(z: C<T>) -> C<T> {
    let (a, b) = (sqrt(c(T::ONE - z.re, -z.im)), sqrt(c(T::ONE + z.re, z.im)));
    let re = z.re.atan2(mul(a, b).re);
    c(re, mul(conj(a), b).im.asinh())
}

fn acos<T: Real>(z: C<T>) -> C<T> {
    let (a, b) = (sqrt(c(T::ONE - z.re, -z.im)), sqrt(c(T::ONE + z.re, z.im)));
    c(T::from_f64(2.0) * a.re.atan2(b.re), mul(conj(b), a).im.asinh())
}

fn acosh<T: Real>(z: C<T>) -> C<T> {
    let (a, b) = (sqrt(c(z.re - T::ONE, z.im)), sqrt(c(z.re + T::ONE, z.im)));
    c(mul(conj(a), b).re.asinh(), T::from_f64(2.0) * a.im.atan2(b.re))
}

fn atanh<T: Real>(z: C<T>) -> C<T> {
    let (one, two, four) = (T::ONE, T::from_f64(2.0), T::from_f64(4.0));
    let large = T::from_f64(1e9);
    if z.re.abs() > large || z.im.abs() > large {
        let inverse = div(real(one), z);
        return c(inverse.re, T::from_f64(std::f64::consts::FRAC_PI_2).copysign(z.im));
    }
    let x = z.re.abs();
    let d = (one - x) * (one - x) + z.im * z.im;
    let re = (four * x / d).log1p() / four;
    // On the cut beyond ±1 the sign of zero says on which side.
    let im = (two * z.im).atan2((one - x) * (one + x) - z.im * z.im) / two;
    c(re.copysign(z.re), im)
}

/// z / |z|, 0 for 0.
fn sgn<T: Real>(z: C<T>) -> C<T> {
    if !nonzero(z) {
        return c(T::ZERO, T::ZERO);
    }
    let r = z.re.hypot(z.im);
    c(z.re / r, z.im / r)
}

/// Small whole powers by multiplication, others by `exp(b log(a))`. Zero to a power with a positive real part is zero.
pub(crate) fn pow<T: Real>(a: C<T>, b: C<T>) -> C<T> {
    if !nonzero(b) {
        return real(T::ONE);
    }
    if !nonzero(a) {
        return match b.re > T::ZERO {
            true => c(T::ZERO, T::ZERO),
            false if b.im == T::ZERO => c(T::INFINITY, T::NAN),
            false => c(T::NAN, T::NAN),
        };
    }
    let whole = b.re.to_f64();
    if b.im == T::ZERO && whole == whole.trunc() && whole.abs() <= 64.0 {
        let (mut left, mut square, mut y) = (whole.abs() as u32, a, real(T::ONE));
        while left > 0 {
            if left & 1 == 1 {
                y = mul(y, square);
            }
            square = mul(square, square);
            left >>= 1;
        }
        return if whole < 0.0 { div(real(T::ONE), y) } else { y };
    }
    exp(mul(b, log(a)))
}

macro_rules! unary_values {
    ($($name:ident $text:literal $doc:literal {
            $(real |$x:ident| $real:expr $(, near $near:expr)?;)?
            $(wide $wide:path $(, single $single:path)?;)?
            $(int |$i:ident| $int:expr;)?
            $(complex |$z:ident| $complex:expr;)?
            $(range |$r:ident| $range:expr;)?
            $(monotony |$m:ident| $monotony:expr;)?
            slope |$sx:ident, $sy:ident, $dx:ident| $slope:expr;
        })*) => {
        /// The value of a function of one complex number; NaN where it has none, which `Expr::check_class` refuses.
        pub(crate) fn unary<T: Real>(op: UnaryOp, value: C<T>) -> C<T> {
            match op {
                $($(UnaryOp::$name => { let $z = value; $complex })?)*
                _ => c(T::NAN, T::NAN),
            }
        }
    };
}
unary_functions!(unary_values);

macro_rules! binary_values {
    ($($name:ident $text:literal $doc:literal {
            $(real |$a:ident, $b:ident| $real:expr $(, single $one:path)?;)?
            $(wide $wide:path $(, single $single:path)?;)?
            $(int |$i:ident, $j:ident| $int:expr;)?
            $(complex |$y:ident, $z:ident| $complex:expr;)?
            slope |$sa:ident, $sb:ident, $da:ident, $db:ident| $slope:expr;
        })*) => {
        /// The value of a function of two complex numbers; NaN where it has none, which `Expr::check_class` refuses.
        pub(crate) fn binary<T: Real>(op: BinaryOp, left: C<T>, right: C<T>) -> C<T> {
            match op {
                $($(BinaryOp::$name => { let ($y, $z) = (left, right); $complex })?)*
                _ => c(T::NAN, T::NAN),
            }
        }
    };
}
binary_functions!(binary_values);

#[cfg(test)]
mod tests {
    use super::*;

    /// Points in all quadrants, small and large, on the axes.
    fn points() -> Vec<C<f64>> {
        let parts = [-30.0, -2.5, -1.0, -0.3, -1e-5, 0.0, 1e-9, 0.7, 1.0, 3.0, 25.0];
        parts.iter().flat_map(|re| parts.iter().map(|im| c(*re, *im))).collect()
    }

    fn near(a: C<f64>, b: C<f64>, tolerance: f64) -> bool {
        let size = 1.0 + b.re.hypot(b.im);
        (a.re - b.re).abs() <= tolerance * size && (a.im - b.im).abs() <= tolerance * size
    }

    #[test]
    fn inverse_functions_invert() {
        use UnaryOp::*;
        for (f, inverse) in
            [(Sin, Asin), (Cos, Acos), (Tan, Atan), (Sinh, Asinh), (Cosh, Acosh), (Tanh, Atanh), (Exp, Log)]
        {
            for z in points() {
                let w = unary(inverse, z);
                if w.re.is_finite() && w.im.is_finite() {
                    let back = unary(f, w);
                    assert!(near(back, z, 1e-10), "{} of {} of {z} is {back}", f.name(), inverse.name());
                }
            }
        }
        for z in points() {
            assert!(near(mul(sqrt(z), sqrt(z)), z, 1e-14) && sqrt(z).re >= 0.0, "{z}");
            assert!(!nonzero(z) || near(mul(div(real(1.0), z), z), real(1.0), 1e-14), "{z}");
        }
    }

    #[test]
    fn functions_of_real_numbers_are_the_real_functions() {
        for op in UnaryOp::ALL.iter().filter(|op| op.has_complex() && **op != UnaryOp::Im) {
            for x in [0.1, 0.4, 0.9] {
                let x = if *op == UnaryOp::Acosh { x + 1.0 } else { x };
                let (have, want) = (unary(*op, real(x)), op.eval(x));
                assert!(near(have, real(want), 1e-14), "{} of {x}: {have}, {want}", op.name());
            }
        }
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let z = c(3e200, 4e200);
        assert!(near(scaled(unary(UnaryOp::Abs, z), 1e-200), real(5.0), 1e-14));
        assert!(near(div(z, z), real(1.0), 1e-14));
        assert!(near(scaled(sqrt(c(1e308, 1e308)), 1e-154), c(1.0986841134678098, 0.45508986056222733), 1e-12));
        assert!(near(unary(UnaryOp::Tanh, c(800.0, 1.0)), real(1.0), 1e-15));
        assert!(near(unary(UnaryOp::Log, c(1.0, 1e-9)), c(5e-19, 1e-9), 1e-18));
    }

    #[test]
    fn powers() {
        assert_eq!(pow(c(1.0, 2.0), real(3.0)), c(-11.0, -2.0));
        assert!(near(pow(c(1.0, 2.0), real(-2.0)), c(-0.12, -0.16), 1e-15));
        assert!(near(pow(c(0.0, 1.0), c(0.0, 1.0)), real((-std::f64::consts::FRAC_PI_2).exp()), 1e-14));
        assert_eq!((pow(c(0.0, 0.0), real(2.0)), pow(c(0.0, 0.0), real(0.0))), (real(0.0), real(1.0)));
    }
}
