//! Attributes given by name, put into declared order.

use super::attr::{AttrKind, AttrValue, Attrs, RuntimeArg, RuntimeAttrs};
use super::def::OpDef;
use super::signature::AttrDef;
use crate::error::{Error, Result};
use oflow_kernels::DTypeKind;
use smallvec::SmallVec;

/// Attribute values of a call in declared order: plan attributes, runtime attributes. What is not given has its default.
///
/// ```
/// use oflow::ops::{find, resolve_attrs};
/// let (attrs, runtime) = resolve_attrs(find("layer_norm")?, &[("axes", 2i64.into())])?;
/// assert_eq!((attrs.len(), runtime.len()), (1, 1));
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// On an unknown name, a missing required attribute or a value of the wrong type.
pub fn resolve_attrs(op: &OpDef, given: &[(&str, AttrValue)]) -> Result<(Attrs, RuntimeAttrs)> {
    let (attrs, runtime) = resolve_symbolic(op, given)?;
    let runtime = runtime.iter().map(|n| n.of(&[])).collect::<Result<_>>()?;
    Ok((attrs, runtime))
}

/// [`resolve_attrs`] in a lowering, where a runtime attribute may be one of the call that is lowered.
pub(crate) fn resolve_symbolic(op: &OpDef, given: &[(&str, AttrValue)]) -> Result<(Attrs, SmallVec<[RuntimeArg; 4]>)> {
    for (n, _) in given {
        if op.sig.attr(n).is_none() && op.sig.runtime_attr(n).is_none() {
            let known: Vec<_> = op.sig.attrs.iter().chain(&op.sig.runtime).map(|a| a.name.as_str()).collect();
            return Err(Error::argument(format!("{} has no attribute '{n}'", op.sig.name))
                .help(format!("it has: {}", known.join(", "))));
        }
    }
    let of = |a: &AttrDef| given.iter().find(|(n, _)| *n == a.name).map(|(_, v)| v);
    let default = |a: &AttrDef| {
        let missing = || Error::argument(format!("{} needs the attribute '{}'", op.sig.name, a.name));
        a.default.clone().ok_or_else(missing)
    };
    let attr = |a: &AttrDef| of(a).map_or_else(|| default(a), |v| a.accept(v.clone()));
    let number = |a: &AttrDef| -> Result<RuntimeArg> {
        if let Some(AttrValue::Given(g)) = of(a) {
            return match (a.kind, g.kind) {
                (AttrKind::Scalar, _) | (AttrKind::Int, DTypeKind::Int) => Ok(RuntimeArg::Given(*g)),
                (AttrKind::Float, DTypeKind::Float) | (AttrKind::Bool, DTypeKind::Bool) => Ok(RuntimeArg::Given(*g)),
                (kind, given) => Err(Error::argument(format!(
                    "attribute '{}' must be {}; the runtime attribute {} of the call is {given:?}",
                    a.name,
                    kind.name(),
                    g.index
                ))),
            };
        }
        let number = AttrKind::Scalar.accept(&a.name, attr(a)?)?.to_scalar();
        number
            .map(RuntimeArg::Number)
            .ok_or_else(|| Error::argument(format!("attribute '{}' must be a number", a.name)))
    };
    let attrs = op.sig.attrs.iter().map(attr).collect::<Result<Attrs>>()?;
    Ok((attrs, op.sig.runtime.iter().map(number).collect::<Result<_>>()?))
}
