//! Dtypes of gradients: casts, and the dtype in which contributions are added up.

use super::emit::EagerEmit;
use crate::error::{CallSite, Result};
use crate::ops::AttrValue;
use crate::tensor::{Node, Tensor};
use oflow_kernels::DType;

/// The dtype in which contributions to the result of a cast are added up: what was cast from f32 to a half or 8 bits (by autocast,
/// once for all its uses) has a gradient in f32, and it must not lose bits with every use.
pub(super) fn below_cast(node: &Node) -> Option<DType> {
    let from = node.input_types.first()?.as_ref()?.ty().dtype;
    let to = node.attrs.first().filter(|_| node.op.name() == "cast")?;
    let narrow = |d: &DType| d.is_half() || (d.passes_gradients() && !d.has_gradients());
    matches!(to, AttrValue::DType(d) if narrow(d) && matches!(from, DType::F32 | DType::F64)).then_some(from)
}

/// The tensor in another dtype; itself where it has it.
pub(super) fn cast(t: &Tensor, dtype: DType, site: CallSite) -> Result<Tensor> {
    if t.dtype() == dtype {
        return Ok(t.clone());
    }
    Ok(EagerEmit::new("backward", site).run("cast", &[Some(t)], &[("dtype", dtype.into())])?[0].clone())
}
