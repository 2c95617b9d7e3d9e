//! Quantised integers: the families of registered dtypes that every process has.

use super::registered::Registered;
use super::{Builtin, DType};
use crate::{KernelError, Result, Scalar};

/// How the elements of a quantised dtype stand for numbers: `(stored - zero) * scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantization {
    /// The difference of two neighbours, greater than zero.
    pub scale: f64,
    /// The stored integer that stands for 0.
    pub zero: i64,
    /// The smallest stored integer.
    pub low: i64,
    /// The largest stored integer.
    pub high: i64,
}

/// Names and storage.
const FAMILIES: [(&str, Builtin); 4] =
    [("qint8", Builtin::I8), ("quint8", Builtin::U8), ("qint16", Builtin::I16), ("qint32", Builtin::I32)];

fn declared((name, storage): (&str, Builtin), scale: f64, zero: i64) -> Registered {
    let number =
        |d: DType, stored: Scalar| d.quantization().map_or(f64::NAN, |q| (stored.to_f64() - q.zero as f64) * q.scale);
    Registered::new(name, storage).parameter("scale", scale).parameter("zero", zero).to_f64(number)
}

/// A dtype of each family, so that their texts are known.
pub(super) fn first() -> [Registered; 4] {
    FAMILIES.map(|family| declared(family, 1.0, 0))
}

/// Refuses parameters of a quantised family that quantise nothing.
pub(super) fn check(name: &str, parameters: &[(String, Scalar)]) -> Result<()> {
    let Some((_, storage)) = FAMILIES.into_iter().find(|f| f.0 == name) else { return Ok(()) };
    let of = |name: &str| parameters.iter().find(|p| p.0 == name).map(|p| p.1);
    let refused = |why: String| Err(KernelError::new(format!("dtype {name}: {why}")));
    if let Some(scale) = of("scale").map(Scalar::to_f64)
        && !(scale > 0.0 && scale.is_finite())
    {
        return refused(format!("a scale is greater than zero, not {scale}"));
    }
    // Numbers are computed with in f32: 1 / scale must be one, and no zero may come of the scale.
    let held = f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX);
    if let Some(scale) = of("scale").map(Scalar::to_f64).filter(|s| !held.contains(s)) {
        return refused(format!(
            "a scale is a normal number of f32, from {:e} to {:e}, not {scale:e}",
            held.start(),
            held.end()
        ));
    }
    if let (Some(Scalar::Int(zero)), Some((low, high))) = (of("zero"), storage.dtype().integers())
        && !(low..=high).contains(&zero)
    {
        return refused(format!("a zero point is one of the stored integers from {low} to {high}, not {zero}"));
    }
    Ok(())
}

impl DType {
    /// Quantised numbers stored as i8: `(stored - zero) * scale`.
    ///
    /// ```
    /// use oflow_kernels::DType;
    /// let q = DType::qint8(0.5, 3)?;
    /// assert_eq!((q.to_string().as_str(), q.size()), ("qint8(scale=0.5, zero=3)", 1));
    /// assert!(DType::qint8(-0.5, 3).is_err() && DType::qint8(0.5, 300).is_err());
    /// # Ok::<(), oflow_kernels::KernelError>(())
    /// ```
    ///
    /// # Errors
    /// The scale is not greater than zero, or no normal number of f32; the zero point is no i8; the process has registered 65,536 dtypes.
    pub fn qint8(scale: f64, zero: i64) -> Result<DType> {
        DType::register(declared(FAMILIES[0], scale, zero))
    }

    /// Quantised numbers stored as u8. See [`DType::qint8`].
    ///
    /// # Errors
    /// As [`DType::qint8`].
    pub fn quint8(scale: f64, zero: i64) -> Result<DType> {
        DType::register(declared(FAMILIES[1], scale, zero))
    }

    /// Quantised numbers stored as i16. See [`DType::qint8`].
    ///
    /// # Errors
    /// As [`DType::qint8`].
    pub fn qint16(scale: f64, zero: i64) -> Result<DType> {
        DType::register(declared(FAMILIES[2], scale, zero))
    }

    /// Quantised numbers stored as i32, such as sums of products of quantised numbers. See [`DType::qint8`].
    ///
    /// # Errors
    /// As [`DType::qint8`].
    pub fn qint32(scale: f64, zero: i64) -> Result<DType> {
        DType::register(declared(FAMILIES[3], scale, zero))
    }

    /// The quantised dtype of a family: `qint8`, `quint8`, `qint16` or `qint32`.
    ///
    /// # Errors
    /// There is no such family; as [`DType::qint8`].
    pub fn quantised(family: &str, scale: f64, zero: i64) -> Result<DType> {
        match FAMILIES.into_iter().find(|f| f.0 == family) {
            Some(f) => DType::register(declared(f, scale, zero)),
            None => Err(KernelError::new(format!(
                "'{family}' is not a quantised dtype; there are qint8, quint8, qint16 and qint32"
            ))),
        }
    }

    /// Scale and zero point of the elements; `None` unless the dtype is quantised.
    pub fn quantization(self) -> Option<Quantization> {
        if self.is_builtin() || !FAMILIES.iter().any(|f| f.0 == self.family()) {
            return None;
        }
        let (scale, zero) = (self.parameter("scale")?.to_f64(), self.parameter("zero")?.to_i64());
        let (low, high) = self.storage().dtype().integers()?;
        Some(Quantization { scale, zero, low, high })
    }
}
