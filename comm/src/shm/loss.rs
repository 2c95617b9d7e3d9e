//! Why a rank is lost to the others of its host, as the shared memory keeps it: one number.

use std::fmt;

/// Why a rank is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The process has ended: exit code, or 128 plus the signal.
    Died(u8),
    /// The process has ended in a way that is not known.
    Gone,
    /// The process was stopped by a signal.
    Stopped,
    /// The rank is alive and does not join a collective.
    Stalled,
    /// The rank has issued other ops than the others.
    Diverged,
    /// The links to it are lost.
    Unreachable,
    /// The rank has failed in another way, which the report of the job tells.
    Failed,
}

impl Loss {
    const OTHERS: [Loss; 6] =
        [Loss::Gone, Loss::Stopped, Loss::Stalled, Loss::Diverged, Loss::Unreachable, Loss::Failed];

    pub(super) fn encode(self) -> u32 {
        match self {
            Loss::Died(code) => u32::from(code),
            other => 256 + Loss::OTHERS.iter().position(|o| *o == other).unwrap_or(0) as u32,
        }
    }

    pub(super) fn decode(number: u32) -> Loss {
        match u8::try_from(number) {
            Ok(code) => Loss::Died(code),
            Err(_) => Loss::OTHERS.get(number as usize - 256).copied().unwrap_or(Loss::Failed),
        }
    }
}

/// Words that follow the rank in a sentence.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loss::Died(code) => return write!(f, "died with code {code}"),
            Loss::Gone => "has ended",
            Loss::Stopped => "was stopped by a signal",
            Loss::Stalled => "stalls the job",
            Loss::Diverged => "has issued other ops",
            Loss::Unreachable => "is not reached any more",
            Loss::Failed => "has failed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loss_is_read_back() {
        for loss in Loss::OTHERS.into_iter().chain([Loss::Died(0), Loss::Died(255)]) {
            assert_eq!(Loss::decode(loss.encode()), loss);
        }
        assert_eq!(Loss::decode(u32::MAX), Loss::Failed);
    }
}
