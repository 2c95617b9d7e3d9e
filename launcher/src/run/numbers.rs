//! The elements of a tensor as numbers: from JSON, to and from the bytes of the dtype.

use oflow::kernels::{Builtin, DTypeKind, Scalar};

use super::json::{Json, special};

/// Elements of one built-in dtype, row-major. Those of a complex one are given by their parts.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// Of a float dtype, which holds each of them.
    Floats(Builtin, Vec<f64>),
    /// Of an integer dtype or bool (0 and 1).
    Ints(Builtin, Vec<i64>),
}

impl Numbers {
    /// No elements yet, with room for some.
    pub fn with_room(dtype: Builtin, room: usize) -> Numbers {
        match has_fractions(dtype) {
            true => Numbers::Floats(dtype, Vec::with_capacity(room)),
            false => Numbers::Ints(dtype, Vec::with_capacity(room)),
        }
    }
    /// None of the same dtype, with room for as many.
    pub fn like(&self) -> Numbers {
        Numbers::with_room(self.dtype(), self.len())
    }
    /// Element type of the numbers.
    pub fn dtype(&self) -> Builtin {
        match self {
            Numbers::Floats(d, _) | Numbers::Ints(d, _) => *d,
        }
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Numbers::Floats(_, v) => v.len(),
            Numbers::Ints(_, v) => v.len(),
        }
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Adds a float that the dtype holds.
    pub fn push_float(&mut self, x: f64) {
        if let Numbers::Floats(_, v) = self {
            v.push(x);
        }
    }
    /// Adds an integer that the dtype holds.
    pub fn push_int(&mut self, x: i64) {
        if let Numbers::Ints(_, v) = self {
            v.push(x);
        }
    }

    /// Adds a JSON number, rounded to the nearest number of a float dtype.
    ///
    /// # Errors
    /// The value is not a number of the dtype's kind, or beyond its range.
    pub fn push(&mut self, value: &Json) -> Result<(), String> {
        let dtype = self.dtype();
        let no = |what: &str| Err(format!("{} is {what} {dtype}", value.what()));
        match (self, value) {
            (Numbers::Floats(_, v), Json::Int(_) | Json::Float(_) | Json::Text(_)) => {
                let x = match value {
                    Json::Int(i) => *i as f64,
                    Json::Float(x) => *x,
                    Json::Text(t) => match special(t) {
                        Some(x) => x,
                        None => return no("not a number of the dtype"),
                    },
                    _ => return no("not a number of the dtype"),
                };
                if !Scalar::Float(x).fits(dtype) {
                    return no("beyond the range of");
                }
                v.push(rounded(dtype, x));
            }
            (Numbers::Ints(Builtin::Bool, v), Json::Bool(b)) => v.push(i64::from(*b)),
            (Numbers::Ints(Builtin::Bool, v), Json::Int(i @ (0 | 1))) => v.push(*i),
            (Numbers::Ints(d, v), Json::Int(i)) if *d != Builtin::Bool => {
                let (low, high) = d.dtype().integers().unwrap_or((0, 1));
                if !(low..=high).contains(i) {
                    return no("beyond the range of");
                }
                v.push(*i);
            }
            // A whole number with a point: one that a float may have rounded is refused.
            (numbers @ Numbers::Ints(..), Json::Float(x))
                if dtype != Builtin::Bool && x.fract() == 0.0 && x.abs() < EXACT =>
            {
                return numbers.push(&Json::Int(*x as i64));
            }
            _ => return no("not a number of the dtype"),
        }
        Ok(())
    }

    /// The box of these elements, as those of a tensor of that shape.
    pub fn cut(&self, shape: &[usize], offset: &[usize], size: &[usize]) -> Numbers {
        let places = places(shape, offset, size);
        match self {
            Numbers::Floats(d, v) => Numbers::Floats(*d, places.into_iter().map(|i| v[i]).collect()),
            Numbers::Ints(d, v) => Numbers::Ints(*d, places.into_iter().map(|i| v[i]).collect()),
        }
    }

    /// The bytes of the elements, in the byte order of the machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len() * self.dtype().size());
        match self {
            Numbers::Floats(d, v) => v.iter().for_each(|x| out.extend(&d.encode(Scalar::Float(*x))[..d.size()])),
            Numbers::Ints(d, v) => v.iter().for_each(|x| out.extend(&d.encode(Scalar::Int(*x))[..d.size()])),
        }
        out
    }
}

/// Whether the numbers of a dtype are floats, 8-bit ones too.
pub fn has_fractions(dtype: Builtin) -> bool {
    matches!(dtype.kind(), DTypeKind::Float | DTypeKind::Opaque)
}

/// Below this every whole number is an f64.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The nearest number of a float dtype.
pub fn rounded(dtype: Builtin, x: f64) -> f64 {
    Scalar::Float(x).in_dtype(dtype).to_f64()
}

/// The bits of a float as the dtype has it.
pub fn bits(dtype: Builtin, x: f64) -> u64 {
    dtype.encode(Scalar::Float(x)).iter().take(8).rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// The places of a box's elements among those of the tensor, row-major.
fn places(shape: &[usize], offset: &[usize], size: &[usize]) -> Vec<usize> {
    let mut places = vec![0];
    for (d, n) in shape.iter().enumerate() {
        let (from, many) = (offset[d], size[d]);
        places = places.into_iter().flat_map(|p| (from..from + many).map(move |i| p * n + i)).collect();
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_or_refused() {
        let read = |dtype: Builtin, value: Json| {
            let mut n = Numbers::with_room(dtype, 1);
            n.push(&value).map(|()| n)
        };
        let float = |d, x| Numbers::Floats(d, vec![x]);
        assert_eq!(read(Builtin::F32, Json::Float(0.1)), Ok(float(Builtin::F32, f64::from(0.1f32))));
        assert_eq!(read(Builtin::BF16, Json::Int(257)), Ok(float(Builtin::BF16, 256.0)));
        assert_eq!(read(Builtin::F16, Json::Text("-inf".into())), Ok(float(Builtin::F16, f64::NEG_INFINITY)));
        assert_eq!(read(Builtin::I64, Json::Int(i64::MIN)), Ok(Numbers::Ints(Builtin::I64, vec![i64::MIN])));
        assert_eq!(read(Builtin::I32, Json::Float(3.0)), Ok(Numbers::Ints(Builtin::I32, vec![3])));
        for (dtype, value) in [
            (Builtin::F16, Json::Float(65520.0)),
            (Builtin::F32, Json::Float(1e39)),
            (Builtin::I8, Json::Int(128)),
            (Builtin::U8, Json::Int(-1)),
            (Builtin::I64, Json::Float(9.3e18)),
            (Builtin::I32, Json::Float(0.5)),
            (Builtin::I32, Json::Bool(true)),
            (Builtin::Bool, Json::Int(2)),
            (Builtin::Bool, Json::Float(1.0)),
            (Builtin::F64, Json::Bool(true)),
            (Builtin::F64, Json::Text("infinity".into())),
            (Builtin::F64, Json::Null),
        ] {
            assert!(read(dtype, value.clone()).is_err(), "{dtype} {value:?}");
        }
    }

    #[test]
    fn boxes_and_bytes() {
        let n = Numbers::Ints(Builtin::I32, (0..12).collect());
        assert_eq!(n.cut(&[3, 4], &[1, 2], &[2, 2]), Numbers::Ints(Builtin::I32, vec![6, 7, 10, 11]));
        assert_eq!(n.cut(&[3, 4], &[1, 2], &[0, 2]).len(), 0);
        for dtype in Builtin::ALL.into_iter().filter(|d| !d.is_complex()) {
            let n = match has_fractions(dtype) {
                true => Numbers::Floats(dtype, vec![1.0, 0.0]),
                false => Numbers::Ints(dtype, vec![1, 0]),
            };
            let bytes = n.to_bytes();
            assert_eq!(bytes.len(), 2 * dtype.size());
            assert_eq!(dtype.decode(&bytes[..dtype.size()]).unwrap().to_f64(), 1.0);
        }
    }
}
