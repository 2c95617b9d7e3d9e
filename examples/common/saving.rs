//! Checkpoints of the examples: `--checkpoint DIR --save-every N --resume --keep K`.

use super::options::Options;
use oflow::checkpoint::{CheckpointManager, CheckpointOptions};
use oflow::prelude::*;
use oflow::state::{LoadState, SaveState, Stateful};

/// The options that save and resume. Without `--checkpoint` nothing is saved.
pub struct Saving {
    manager: Option<CheckpointManager>,
    every: u64,
    resume: bool,
}

impl Saving {
    /// Reads `--checkpoint`, `--save-every`, `--keep` and `--resume`.
    pub fn from_options(o: &mut Options) -> Result<Saving> {
        let dir = o.get::<String>("--checkpoint")?;
        let (every, keep, resume) = (o.get("--save-every")?, o.get("--keep")?, o.flag("--resume"));
        if dir.is_none() && (every.is_some() || keep.is_some() || resume) {
            return Err(Error::argument("--save-every, --keep and --resume need --checkpoint DIR"));
        }
        if every == Some(0) {
            return Err(Error::argument("--save-every must be at least 1"));
        }
        let manager = dir.map(|d| CheckpointManager::new(d, CheckpointOptions { keep: keep.unwrap_or(3) }));
        Ok(Saving { manager, every: every.unwrap_or(100), resume })
    }
    /// Whether the run may go on from a checkpoint.
    pub fn resumes(&self) -> bool {
        self.resume
    }
    /// With `--resume` loads the latest checkpoint, if any, into `state`. Returns the step to start from, 0 without one.
    pub fn load(&mut self, state: &mut [(&str, &mut dyn Stateful)]) -> Result<usize> {
        let Some(m) = self.manager.as_mut().filter(|_| self.resume) else { return Ok(0) };
        Ok(m.load_latest(state)?.unwrap_or(0) as usize)
    }
    /// Starts a save in the background if one is due after `done` steps.
    pub fn after(&mut self, done: usize, state: &[(&str, &dyn Stateful)]) -> Result<()> {
        match &mut self.manager {
            Some(m) if (done as u64).is_multiple_of(self.every) => m.save_async(done as u64, state),
            _ => Ok(()),
        }
    }
    /// Waits for the last save.
    pub fn finish(self) -> Result<()> {
        self.manager.map_or(Ok(()), CheckpointManager::finish)
    }
}

/// Losses since step 0, including those of the runs that this run resumed.
pub struct History(pub Vec<f64>);

impl Stateful for History {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        to.value("losses", &self.0)
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        // JSON has no NaN and no infinity: such a loss is saved as null.
        let saved: Vec<Option<f64>> = from.value("losses")?.unwrap_or_default();
        self.0 = saved.into_iter().map(|l| l.unwrap_or(f64::NAN)).collect();
        Ok(())
    }
}
