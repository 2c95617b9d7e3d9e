//! What a declaration is able to say, each part by an op of this crate: with public API only.

mod constraints;
mod devices;
mod extras;
mod gradients;
mod kernels;
mod names;
mod outputs;
mod sharding;
mod sources;

use oflow::interpreter::Call;
use oflow::ops::{AttrValue, find, resolve_attrs};
use oflow::prelude::*;

/// Registers an op of this crate.
fn add(def: Result<oflow::ops::OpDef>) -> &'static oflow::ops::Op {
    def.and_then(|d| oflow::ops::register(d.domain("hooks"))).unwrap()
}

/// Calls an op on tensors, with attributes by name. Optional inputs at the end may be left out.
#[track_caller]
fn run(name: &str, inputs: &[&Tensor], attrs: &[(&str, AttrValue)]) -> Result<Vec<Tensor>> {
    let op = find(&format!("hooks.{name}"))?;
    let (attrs, runtime) = resolve_attrs(op, attrs)?;
    let mut inputs: Vec<Option<&Tensor>> = inputs.iter().map(|t| Some(*t)).collect();
    inputs.resize(inputs.len().max(op.sig.inputs.len()), None);
    Ok(Call::new(op, &inputs).attrs(attrs).runtime(runtime).run()?.into_iter().collect())
}
