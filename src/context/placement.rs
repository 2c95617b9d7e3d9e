//! Placements that depend on the world of this thread's rank. Those that do not are made in the room `placement`, which knows no world.

use super::current_rank;
use crate::error::Result;
use crate::placement::{Device, Placement};

impl Placement {
    /// All ranks of the world as a 1-d mesh.
    ///
    /// # Errors
    /// On a thread that has entered no rank context.
    pub fn all(device: Device) -> Result<Placement> {
        Placement::of_world(device, current_rank()?.world())
    }
}
