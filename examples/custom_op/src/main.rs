//! Trains a module of this crate's ops: `oflaunch -n 2 target/debug/custom_op`, or alone.

use oflow::prelude::*;

fn main() -> Result<()> {
    custom_op::register()?;
    let world = oflow::init()?;
    let mesh = Placement::all(Device::Cpu)?;
    // Data parallel: the batch is split, the weights are whole.
    let losses = custom_op::train(&mesh, sbp![S(0)], &[], 100)?;
    if world.rank() == 0 {
        println!("loss {:.4} -> {:.4} on {mesh}", losses[0], losses[99]);
    }
    match losses[99] < 0.1 * losses[0] {
        true => Ok(()),
        false => Err(Error::value(format!("the loss did not fall: {losses:?}"))),
    }
}
