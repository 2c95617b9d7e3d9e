//! SBP and nd-SBP, their text form and the `sbp!` macro.

use crate::error::{Error, Result};
pub use oflow_kernels::ReduceOp;
use smallvec::SmallVec;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::str::FromStr;

/// The number of a tensor dim; the outermost is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorDim(pub usize);

/// The layout of a tensor along one mesh axis: split, broadcast or partial.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sbp {
    /// Each rank holds its part of a tensor dim; parts are balanced and in order.
    Split(usize),
    /// Each rank holds the whole tensor, with the same bits.
    Broadcast,
    /// Each rank holds a tensor of the whole shape; the logical value is their elementwise reduction.
    Partial(ReduceOp),
}

impl Sbp {
    /// Shorthand for the most common partial, `P(sum)`.
    pub const PARTIAL_SUM: Sbp = Sbp::Partial(ReduceOp::Sum);
    /// Returns the split dim of `S(d)`.
    pub fn split_dim(self) -> Option<usize> {
        match self {
            Sbp::Split(d) => Some(d),
            _ => None,
        }
    }
    /// Returns the reduction of a partial.
    pub fn partial_op(self) -> Option<ReduceOp> {
        match self {
            Sbp::Partial(op) => Some(op),
            _ => None,
        }
    }
    /// Whether this is P(sum), P(max) or P(min).
    pub fn is_partial(self) -> bool {
        matches!(self, Sbp::Partial(_))
    }
    /// Whether this is B.
    pub fn is_broadcast(self) -> bool {
        self == Sbp::Broadcast
    }
}

impl fmt::Display for Sbp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sbp::Split(d) => write!(f, "S({d})"),
            Sbp::Broadcast => f.write_str("B"),
            Sbp::Partial(op) => write!(f, "P({op})"),
        }
    }
}

impl fmt::Debug for Sbp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sbp {
    type Err = Error;
    /// Reads `S(0)`, `S0`, `B`, `P` (= `P(sum)`), `P(max)`, `P(min)`.
    fn from_str(s: &str) -> Result<Sbp> {
        let t = s.trim();
        match t {
            "B" => return Ok(Sbp::Broadcast),
            "P" | "P(sum)" => return Ok(Sbp::PARTIAL_SUM),
            "P(max)" => return Ok(Sbp::Partial(ReduceOp::Max)),
            "P(min)" => return Ok(Sbp::Partial(ReduceOp::Min)),
            _ => {}
        }
        if let Some(rest) = t.strip_prefix('S') {
            let digits = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')')).unwrap_or(rest);
            if let Ok(d) = digits.trim().parse() {
                return Ok(Sbp::Split(d));
            }
        }
        Err(Error::parse(format!("'{t}' is not an SBP")).help("write S(0), B, P(sum), P(max) or P(min)"))
    }
}

/// One SBP per mesh axis, outermost first. `[P(sum), P(max)]` means: the inner axis is reduced first.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct NdSbp(SmallVec<[Sbp; 4]>);

impl NdSbp {
    /// Makes an nd-SBP from one SBP per mesh axis, outermost first.
    pub fn new(sbps: &[Sbp]) -> NdSbp {
        NdSbp(sbps.into())
    }
    /// Makes an nd-SBP with the same SBP on each of `axes` mesh axes.
    pub fn uniform(sbp: Sbp, axes: usize) -> NdSbp {
        NdSbp(SmallVec::from_elem(sbp, axes))
    }
    /// Makes an nd-SBP that is B on each of `axes` mesh axes.
    pub fn broadcast(axes: usize) -> NdSbp {
        Self::uniform(Sbp::Broadcast, axes)
    }
    /// Whether every axis is B.
    pub fn is_broadcast(&self) -> bool {
        self.iter().all(|s| s.is_broadcast())
    }
    /// Whether some axis is partial.
    pub fn has_partial(&self) -> bool {
        self.iter().any(|s| s.is_partial())
    }
    /// Returns a copy with the SBP of one axis replaced.
    pub fn with(&self, axis: usize, sbp: Sbp) -> NdSbp {
        let mut n = self.clone();
        n[axis] = sbp;
        n
    }
    /// Returns a copy with `f` applied to each SBP.
    pub fn map(&self, f: impl FnMut(Sbp) -> Sbp) -> NdSbp {
        NdSbp(self.iter().copied().map(f).collect())
    }
}

impl Deref for NdSbp {
    type Target = [Sbp];
    fn deref(&self) -> &[Sbp] {
        &self.0
    }
}
impl DerefMut for NdSbp {
    fn deref_mut(&mut self) -> &mut [Sbp] {
        &mut self.0
    }
}
impl FromIterator<Sbp> for NdSbp {
    fn from_iter<I: IntoIterator<Item = Sbp>>(it: I) -> Self {
        NdSbp(it.into_iter().collect())
    }
}
impl From<Sbp> for NdSbp {
    fn from(s: Sbp) -> Self {
        NdSbp::new(&[s])
    }
}

impl fmt::Display for NdSbp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, s) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{s}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for NdSbp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for NdSbp {
    type Err = Error;
    /// Reads `[S(0), B]`; a single SBP may stand without brackets.
    fn from_str(s: &str) -> Result<NdSbp> {
        let t = s.trim();
        let inner = match t.strip_prefix('[') {
            Some(r) => r
                .strip_suffix(']')
                .ok_or_else(|| Error::parse(format!("'{t}': missing ']'")).help("write e.g. [S(0), B]"))?,
            None => t,
        };
        inner.split(',').map(|p| p.parse()).collect()
    }
}

/// Writes an nd-SBP: `sbp![S(0), B]`, `sbp![P]`, `sbp![P(max), S(1)]`. `P` alone is `P(sum)`.
///
/// ```
/// use oflow::sbp;
/// assert_eq!(sbp![S(0), P(max)].to_string(), "[S(0), P(max)]");
/// ```
#[macro_export]
macro_rules! sbp {
    ($($word:ident $(($arg:tt))?),+ $(,)?) => {
        $crate::sbp::NdSbp::new(&[$($crate::__sbp_word!($word $(($arg))?)),+])
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __sbp_word {
    (S($d:tt)) => {
        $crate::sbp::Sbp::Split($d)
    };
    (B) => {
        $crate::sbp::Sbp::Broadcast
    };
    (P) => {
        $crate::sbp::Sbp::PARTIAL_SUM
    };
    (P(sum)) => {
        $crate::sbp::Sbp::PARTIAL_SUM
    };
    (P(max)) => {
        $crate::sbp::Sbp::Partial($crate::kernels::ReduceOp::Max)
    };
    (P(min)) => {
        $crate::sbp::Sbp::Partial($crate::kernels::ReduceOp::Min)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for t in ["[S(0), B]", "[P(sum), P(max), P(min)]", "[S(12)]"] {
            assert_eq!(t.parse::<NdSbp>().unwrap().to_string(), t);
        }
        assert_eq!("S0".parse::<NdSbp>().unwrap(), sbp![S(0)]);
        assert_eq!("[P, S1]".parse::<NdSbp>().unwrap(), sbp![P, S(1)]);
        for bad in ["[S(0)", "Q", "S(x)", "", "P(mean)"] {
            assert!(bad.parse::<NdSbp>().is_err(), "{bad}");
        }
    }
}
