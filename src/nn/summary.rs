//! Summaries of models.

use crate::context::current;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::capture;
pub use crate::program::{ModuleRow, ParameterRow, Summary};
use crate::tensor::Tensor;

/// Returns the summary of what `forward` does, by module. `parameters` are those of the model. The forward pass is captured on symbols, as
/// [`graph`](crate::graph) does: nothing is computed, sent or changed. [`Module::summary`](super::Module::summary) calls it for modules in Rust.
///
/// # Errors
/// Those of `forward`, and if it does what cannot be captured, as reading a value.
pub fn summarize(
    parameters: &[(String, Tensor)],
    site: CallSite,
    forward: impl FnOnce() -> Result<Vec<Tensor>>,
) -> Result<Summary> {
    let captured = capture(|c| forward()?.iter().map(|t| c.output(t, site)).collect(), site)?;
    let ctx = current();
    let outside = || captured.program.outside.iter().zip(&captured.outside);
    let rows = parameters.iter().map(|(name, t)| {
        let ty = t.type_ref().ok_or_else(|| Error::argument(format!("parameter '{name}' has no data")).at(site))?;
        let value = outside().find(|(_, other)| other.same(t)).map(|(o, _)| o.value);
        Ok((ParameterRow::new(name, &ty, t.requires_grad(), ctx.rank()), value))
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    Ok(Summary::of(&captured.program, rows, (ctx.rank(), ctx.planner())))
}
