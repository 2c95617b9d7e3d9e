//! The place of a new tensor, as keywords of Python: `device=`, or `placement=` and `sbp=`; and `requires_grad=`.

use crate::errors::Unfit;
use crate::signature::PLACE;
use crate::types::{device_of, placement_of, sbp_of};
use oflow::interpreter::Target;
use oflow::placement::Device;
use pyo3::Borrowed;
use pyo3::prelude::*;

/// Objects of the keywords of [`PLACE`], in that order; none where a call does not give one.
pub type Given<'a, 'py> = [Option<Borrowed<'a, 'py, PyAny>>; PLACE.len()];

/// Where the new tensor lives, and whether it is a leaf that requires a gradient.
///
/// # Errors
/// An object is of another type than its keyword; or the keywords contradict each other.
pub fn target(given: &Given<'_, '_>) -> Result<(Target, bool), Unfit> {
    let [device, placement, sbp, requires_grad] = given;
    let wrong = |name: &str, what: &str| Unfit::Text(format!("argument '{name}' must be {what}"));
    let device = device.map(|o| device_of(&o).map_err(|e| e.or_type(wrong("device", "a device"))));
    let placement = placement.map(|o| placement_of(&o).map_err(|e| e.or_type(wrong("placement", "a placement"))));
    let sbp = sbp.map(|o| sbp_of(&o).map_err(|e| e.or_type(wrong("sbp", "an sbp or a tuple of them"))));
    let requires_grad = requires_grad.map(|o| o.extract::<bool>().map_err(|_| wrong("requires_grad", "bool")));
    let target = match (device.transpose()?, placement.transpose()?, sbp.transpose()?) {
        (None, None, None) => Target::Local(Device::Cpu),
        (Some(device), None, None) => Target::Local(device),
        (None, Some(placement), Some(sbp)) => Target::Global(placement, sbp),
        (None, Some(_), None) => {
            return Err(Unfit::Text("a global tensor needs an sbp too: placement=..., sbp=...".into()));
        }
        (None, None, Some(_)) => {
            return Err(Unfit::Text("an sbp needs a placement too: placement=..., sbp=...".into()));
        }
        (Some(_), ..) => {
            let text = "give a device for a local tensor, or placement and sbp for a global one";
            return Err(Unfit::Text(text.into()));
        }
    };
    Ok((target, requires_grad.transpose()?.unwrap_or(false)))
}
