//! Types that the values of a column become.

use oflow::data::{Array, Field};
use oflow::{Error, Result};

/// Type that the values of a column become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 32-bit floating point numbers.
    F32,
    /// 64-bit floating point numbers.
    F64,
    /// 32-bit integers.
    I32,
    /// 64-bit integers.
    I64,
    /// Integers from 0 to 255.
    U8,
    /// `true`, `false`, 1 or 0.
    Bool,
    /// Text as it stands in the file.
    Text,
}

impl Kind {
    /// Makes a field of texts that were read, of shape `[]` or of a list.
    pub(crate) fn parse(self, texts: &[&str], shape: &[usize]) -> Result<Field> {
        fn all<T: std::str::FromStr + oflow::kernels::Element>(texts: &[&str], shape: &[usize]) -> Result<Field> {
            let parse = |t: &&str| t.trim().parse::<T>().map_err(|_| wrong(t, T::DTYPE));
            Ok(Array::new(&texts.iter().map(parse).collect::<Result<Vec<T>>>()?, shape)?.into())
        }
        match self {
            Kind::F32 => all::<f32>(texts, shape),
            Kind::F64 => all::<f64>(texts, shape),
            Kind::I32 => all::<i32>(texts, shape),
            Kind::I64 => all::<i64>(texts, shape),
            Kind::U8 => all::<u8>(texts, shape),
            Kind::Bool => {
                let parse = |t: &&str| match t.trim() {
                    "true" | "True" | "1" => Ok(true),
                    "false" | "False" | "0" => Ok(false),
                    _ => Err(wrong(t, oflow::DType::Bool)),
                };
                Ok(Array::new(&texts.iter().map(parse).collect::<Result<Vec<bool>>>()?, shape)?.into())
            }
            Kind::Text => match texts {
                [one] => Ok((*one).into()),
                _ => Err(Error::value("a field holds one text; take each text as a column of its own")),
            },
        }
    }
}

fn wrong(text: &str, dtype: oflow::DType) -> Error {
    let shown: String = text.chars().take(40).collect();
    Error::value(format!("'{shown}' cannot be read as {dtype}"))
}
