//! Something to save.

use oflow::prelude::*;
use oflow::state::{LoadState, SaveState, Stateful};

/// Tensors by number.
pub struct Bag(pub Vec<Tensor>);

impl Stateful for Bag {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        self.0.iter().enumerate().for_each(|(i, t)| to.tensor(&i.to_string(), t));
        Ok(())
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        self.0.iter().enumerate().for_each(|(i, t)| from.fill(&i.to_string(), t));
        Ok(())
    }
}
