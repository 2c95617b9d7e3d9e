//! One legal assignment of SBPs to an op's inputs and outputs along one mesh axis.

use super::Sbp;
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;

/// SBPs of the inputs and outputs of an op along one mesh axis. Absent optional inputs are B.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature {
    /// One SBP per input.
    pub inputs: SmallVec<[Sbp; 4]>,
    /// One SBP per output.
    pub outputs: SmallVec<[Sbp; 2]>,
    /// Number of the lowering that runs this signature; `None` runs the kernel on the shards.
    pub lowering: Option<u8>,
}

impl Signature {
    /// Makes a signature that the kernel runs on the shards.
    pub fn new(inputs: &[Sbp], outputs: &[Sbp]) -> Signature {
        Signature { inputs: inputs.into(), outputs: outputs.into(), lowering: None }
    }
    /// B on all inputs and outputs, which is always legal.
    pub fn broadcast(inputs: usize, outputs: usize) -> Signature {
        Signature {
            inputs: SmallVec::from_elem(Sbp::Broadcast, inputs),
            outputs: SmallVec::from_elem(Sbp::Broadcast, outputs),
            lowering: None,
        }
    }
    /// Returns the same signature, run by a lowering.
    pub fn lowered(mut self, lowering: u8) -> Signature {
        self.lowering = Some(lowering);
        self
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |s: &[Sbp]| s.iter().map(|s| s.to_string()).collect::<Vec<_>>().join(", ");
        write!(f, "{} -> {}", list(&self.inputs), list(&self.outputs))?;
        if self.lowering.is_some() {
            f.write_str(" (lowered)")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Signature {
    type Err = Error;
    /// Reads `S(0), B -> S(0)`.
    fn from_str(s: &str) -> Result<Signature> {
        let (i, o) = s.split_once("->").ok_or_else(|| Error::parse(format!("signature '{s}' has no '->'")))?;
        let list = |t: &str| -> Result<Vec<Sbp>> {
            t.split(',').map(str::trim).filter(|p| !p.is_empty()).map(|p| p.parse()).collect()
        };
        Ok(Signature::new(&list(i)?, &list(o)?))
    }
}
