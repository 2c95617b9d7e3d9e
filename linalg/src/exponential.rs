//! The exponential of matrices.

use crate::functions::{slogdet, solve};
use crate::shapes::{identity, square};
use oflow::CallSite;
use oflow::prelude::*;

/// A Padé approximant of the exponential: the coefficients of its numerator, whose signs alternate in the denominator, and up to which
/// norm it has the precision of the dtype. N. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005.
struct Pade {
    coefficients: &'static [f64],
    most: f64,
}

const SINGLE: Pade = Pade {
    coefficients: &[17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0],
    most: 3.92572478313866,
};

const DOUBLE: Pade = Pade {
    coefficients: &[
        64764752532480000.0,
        32382376266240000.0,
        7771770303897600.0,
        1187353796428800.0,
        129060195264000.0,
        10559470521600.0,
        670442572800.0,
        33522128640.0,
        1323241920.0,
        40840800.0,
        960960.0,
        16380.0,
        182.0,
        1.0,
    ],
    most: 5.371920351148152,
};

impl Pade {
    /// The sum of every second coefficient from `first` on times an even power.
    fn even_powers(&self, first: usize, powers: &[Tensor]) -> Result<Tensor> {
        let terms = self.coefficients[first..].iter().step_by(2).zip(powers);
        let mut sum: Option<Tensor> = None;
        for (c, power) in terms {
            let term = power.mul(*c)?;
            sum = Some(match sum {
                Some(s) => s.add(&term)?,
                None => term,
            });
        }
        sum.ok_or_else(|| Error::argument("an approximant without coefficients"))
    }

    fn of(&self, a: &Tensor) -> Result<Tensor> {
        // 1, a², a⁴, …
        let square = a.matmul(a)?;
        let mut powers = vec![identity(a)?, square.clone()];
        while powers.len() < self.coefficients.len() / 2 {
            let next = powers[powers.len() - 1].matmul(&square)?;
            powers.push(next);
        }
        let odd = a.matmul(&self.even_powers(1, &powers)?)?;
        let even = self.even_powers(0, &powers)?;
        solve(&even.sub(&odd)?, &even.add(&odd)?)
    }
}

/// The exponentials `Σ aᵏ / k!` of square matrices `[.., n, n]`. The call waits for the largest of their norms, which decides how often the
/// approximation is squared.
///
/// ```
/// use oflow::prelude::*;
/// let a = from_vec(vec![0.0, 1.0, 0.0, 0.0], [2, 2], Device::Cpu)?;
/// let want = from_vec(vec![1.0, 1.0, 0.0, 1.0], [2, 2], Device::Cpu)?;
/// assert!(oflow_linalg::matrix_exp(&a)?.allclose(&want, 0.0, 1e-14)?);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// The matrices are not square, or of a dtype that linear algebra has not; in a dry run.
#[track_caller]
pub fn matrix_exp(a: &Tensor) -> Result<Tensor> {
    CallSite::here().run(|| {
        square("matrix_exp", a)?;
        if matches!(a.dtype(), DType::F16 | DType::BF16) {
            return matrix_exp(&a.cast(DType::F32)?)?.cast(a.dtype());
        }
        let pade = match a.dtype() {
            DType::F32 | DType::C64 => SINGLE,
            DType::F64 | DType::C128 => DOUBLE,
            d => {
                let e = Error::dtype(format!("matrix_exp needs floats or complex numbers, not {d}"));
                return Err(e.help("`cast` the tensor first"));
            }
        };
        if a.numel() == 0 {
            return a.copy();
        }
        let norm = a.detach().abs()?.sum(-2)?.amax(())?.item()?;
        if !norm.is_finite() {
            return a.mul(f64::NAN);
        }
        // At most 1,024 halvings of a finite number are more than enough.
        let halvings = (norm / pade.most).log2().ceil().max(0.0) as i32;
        // Rounding errors of a low precision would be squared as often.
        let _full = autocast(Autocast::Off);
        let made = || {
            let mut y = pade.of(&if halvings == 0 { a.clone() } else { a.mul(0.5f64.powi(halvings))? })?;
            for _ in 0..halvings {
                y = y.matmul(&y)?;
            }
            Ok(y)
        };
        made().map_err(|e: Error| e.within(|| "matrix_exp".to_string()))
    })
}

/// The logarithms of determinants `[..]`: of a negative one NaN, of 0 minus infinity.
///
/// # Errors
/// As [`slogdet`](crate::slogdet).
#[track_caller]
pub fn logdet(a: &Tensor) -> Result<Tensor> {
    CallSite::here().run(|| {
        let (sign, log) = slogdet(a).map_err(|e| e.within(|| "logdet".to_string()))?;
        match sign.dtype().is_complex() {
            // The logarithm of a complex sign is its angle.
            true => sign.log()?.add(&log),
            false => log.masked_fill(&sign.lt(0.0)?, f64::NAN),
        }
    })
}
