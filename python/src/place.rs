//! The place of a new tensor, as keywords of Python: `device=`, or `placement=` and `sbp=`.

use crate::errors::Unfit;
use crate::types;
use oflow::interpreter::Target;
use oflow::placement::{Device, Placement};
use oflow::sbp::NdSbp;
use pyo3::Borrowed;
use pyo3::prelude::*;

/// Where a new tensor lives, as Python says it.
#[derive(Default)]
pub struct Place {
    device: Option<Device>,
    placement: Option<Placement>,
    sbp: Option<NdSbp>,
    /// Whether it is a leaf that requires a gradient.
    pub requires_grad: bool,
}

impl Place {
    /// Whether the keyword is one of a place.
    ///
    /// # Errors
    /// It is, and the object is of another type.
    pub fn takes(&mut self, name: &str, object: Borrowed<'_, '_, PyAny>) -> Result<bool, Unfit> {
        if object.is_none() {
            return Ok(matches!(name, "device" | "placement" | "sbp" | "requires_grad"));
        }
        let wrong = |what: &str| Unfit::Text(format!("argument '{name}' must be {what}"));
        match name {
            "device" => self.device = Some(types::device_of(&object).map_err(|e| e.or_type(wrong("a device")))?),
            "placement" => {
                self.placement = Some(types::placement_of(&object).map_err(|e| e.or_type(wrong("a placement")))?)
            }
            "sbp" => {
                self.sbp = Some(types::sbp_of(&object).map_err(|e| e.or_type(wrong("an sbp or a tuple of them")))?)
            }
            "requires_grad" => self.requires_grad = object.extract::<bool>().map_err(|_| wrong("bool"))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The place, which is taken out.
    ///
    /// # Errors
    /// The keywords contradict each other.
    pub fn target(&mut self) -> Result<Target, Unfit> {
        match (self.device, self.placement.take(), self.sbp.take()) {
            (None, None, None) => Ok(Target::Local(Device::Cpu)),
            (Some(device), None, None) => Ok(Target::Local(device)),
            (None, Some(placement), Some(sbp)) => Ok(Target::Global(placement, sbp)),
            (None, Some(_), None) => {
                Err(Unfit::Text("a global tensor needs an sbp too: placement=..., sbp=...".into()))
            }
            (None, None, Some(_)) => Err(Unfit::Text("an sbp needs a placement too: placement=..., sbp=...".into())),
            (Some(_), ..) => {
                Err(Unfit::Text("give a device for a local tensor, or placement and sbp for a global one".into()))
            }
        }
    }
}
