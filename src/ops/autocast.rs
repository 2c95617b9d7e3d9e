//! Autocast policy of each op: the table, as data.
//!
//! The lists are PyTorch's for CUDA, with two differences, both of which keep its result dtypes and cost less memory:
//! `cross_entropy` reads halves as they are (its kernel computes and returns the loss in f32, so PyTorch's f32 copy of the
//! logits is not made), and ops that promote by themselves (`add`, `where`, comparisons …) have no row: their kernels read
//! mixed dtypes, so nothing is cast in memory. f64 is never touched.

use crate::error::{Error, Result};
use oflow_kernels::DType;
use std::fmt;
use std::str::FromStr;

/// Element type that ops of low precision run in; the mode of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Autocast {
    /// Every op takes its inputs as they are.
    #[default]
    Off,
    /// bfloat16: the range of f32 with 8 bits of precision; needs no loss scaling.
    Bf16,
    /// float16: 11 bits of precision, but numbers below 6e-8 vanish and above 65,504 overflow: scale the loss
    /// ([`GradScaler`](crate::optim::GradScaler)).
    F16,
}

impl Autocast {
    /// The element type; none when off.
    pub fn dtype(self) -> Option<DType> {
        match self {
            Autocast::Off => None,
            Autocast::Bf16 => Some(DType::BF16),
            Autocast::F16 => Some(DType::F16),
        }
    }
}

impl FromStr for Autocast {
    type Err = Error;
    fn from_str(s: &str) -> Result<Autocast> {
        match s {
            "off" => Ok(Autocast::Off),
            "bf16" => Ok(Autocast::Bf16),
            "f16" => Ok(Autocast::F16),
            _ => Err(Error::parse(format!("unknown precision '{s}'; known: bf16, f16, off"))),
        }
    }
}

impl fmt::Display for Autocast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Autocast::Off => "off",
            Autocast::Bf16 => "bf16",
            Autocast::F16 => "f16",
        })
    }
}

/// Cast that autocast applies to the float inputs of an op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CastPolicy {
    /// Inputs stay as they are.
    #[default]
    Keep,
    /// f32 and halves become the mode's dtype.
    Low,
    /// Halves become f32.
    Full,
    /// Where they differ, all become the widest of them: for ops that do not promote by themselves.
    Widest,
}

/// Policies of built-in ops; one that is not here keeps its inputs. Gradient ops and what lowerings call never ask: they
/// run in the dtypes that the forward call had.
pub const CASTS: &[(CastPolicy, &[&str])] = &[
    (CastPolicy::Low, &["matmul", "matmul_rows", "linear", "conv", "conv_transpose", "attention"]),
    (
        CastPolicy::Full,
        &[
            // Exponentials and powers leave the range or the precision of halves.
            "exp",
            "expm1",
            "log",
            "log1p",
            "reciprocal",
            "rsqrt",
            "square",
            "pow",
            "pow_scalar",
            "rpow_scalar",
            "softplus",
            "log_sigmoid",
            "softmax",
            "log_softmax",
            // Sums over many elements.
            "sum",
            "mean",
            "prod",
            "cumsum",
            "cumprod",
            "layer_norm",
            "grouped_norm",
            "rms_norm",
        ],
    ),
    (CastPolicy::Widest, &["concat", "batch_norm_train"]),
];

/// The policy of a built-in op by name.
pub(super) fn policy_of(name: &str) -> CastPolicy {
    CASTS.iter().find(|(_, names)| names.contains(&name)).map_or(CastPolicy::Keep, |(p, _)| *p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::find;

    #[test]
    fn every_name_is_an_op_that_has_that_policy() {
        for (policy, names) in CASTS {
            for name in *names {
                assert_eq!(find(name).unwrap().autocast(), *policy, "{name}");
            }
        }
        assert_eq!(find("add").unwrap().autocast(), CastPolicy::Keep);
    }

    #[test]
    fn modes_are_read_as_they_are_written() {
        for m in [Autocast::Off, Autocast::Bf16, Autocast::F16] {
            assert_eq!(m.to_string().parse::<Autocast>().unwrap(), m);
        }
        assert!("f8".parse::<Autocast>().unwrap_err().to_string().contains("bf16, f16, off"));
    }
}
