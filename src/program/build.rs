//! Parts that both readers of programs share: types, ops as they are registered here, attributes by name, signatures.

use super::types::{BoxedFor, CallNode, Node, ValueId, Work, Write};
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrDef, AttrValue, Attrs, NdSignature, Op, RuntimeAttrs, TensorType, lookup_derived};
use crate::plan::{Target, TypeRef, intern_global, intern_local};
use crate::sbp::{NdSbp, check_layout};
use oflow_kernels::{DType, Scalar};
use smallvec::SmallVec;

/// Values and marks of a node.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) inputs: SmallVec<[Option<ValueId>; 4]>,
    pub(super) outputs: SmallVec<[ValueId; 2]>,
    pub(super) writes: SmallVec<[Write; 1]>,
    pub(super) guard: Option<ValueId>,
    pub(super) backward: bool,
    pub(super) recomputed: bool,
    pub(super) overlapped: bool,
}

impl Parts {
    /// The node that does this work.
    pub(super) fn node(self, work: Work, site: CallSite) -> Node {
        let Parts { inputs, outputs, writes, guard, backward, recomputed, overlapped } = self;
        Node { work, inputs, outputs, writes, guard, site, backward, recomputed, overlapped }
    }
}

/// The type of a tensor.
pub(super) fn type_on(shape: &[usize], dtype: DType, on: &Target) -> Result<TypeRef> {
    let ty = TensorType::checked(shape, dtype)?;
    match on {
        Target::Local(device) => Ok(TypeRef::Local(intern_local(shape, dtype, *device))),
        Target::Global(placement, sbp) => {
            check_layout(shape, dtype, placement, sbp)?;
            Ok(TypeRef::Global(intern_global(ty, placement, sbp)))
        }
    }
}

/// The op of a full name, in the version that it has here.
///
/// # Errors
/// It is not registered, or has another version.
pub(crate) fn op_of(name: &str) -> Result<&'static Op> {
    let (of_domain, version) =
        name.split_once('@').ok_or_else(|| Error::parse(format!("expected an op with its version, got '{name}'")))?;
    let unknown = || Error::registry(format!("the program calls {name}, which is not registered"));
    let op = lookup_derived(of_domain.strip_prefix("oflow.").unwrap_or(of_domain))?.ok_or_else(unknown)?;
    if op.full_name() != name {
        return Err(Error::registry(format!("the program calls {name}, but here it is version {}", op.version))
            .help(format!("capture it again, or load the library that has version {version}")));
    }
    Ok(op)
}

/// A call of the op of a full name, without attributes and values.
pub(super) fn call_of(name: &str) -> Result<CallNode> {
    op_of(name).map(call)
}

/// A call of an op, without attributes and values.
pub(super) fn call(op: &'static Op) -> CallNode {
    CallNode {
        op,
        attrs: Attrs::new(),
        runtime: RuntimeAttrs::new(),
        draw: None,
        host: None,
        target: None,
        into: false,
        signature: None,
        boxed_for: None,
    }
}

/// The op for which a boxing is.
pub(super) fn boxing_op(name: &str) -> Result<&'static str> {
    match name.trim() {
        "parameter" => Ok("parameter"),
        name => Ok(lookup_derived(name)?.ok_or_else(|| Error::parse(format!("expected an op, got '{name}'")))?.name()),
    }
}

/// The reason of a change of layout that a call of this op needs.
pub(super) fn boxed_for_op(name: &str) -> Result<BoxedFor> {
    boxing_op(name).map(BoxedFor::Op)
}

/// Takes the attributes of a call, given by name in declared order: `value` reads one that the plan depends on, `number` another one.
pub(super) fn take_attributes<'a, T>(
    op: &Op,
    given: impl Iterator<Item = (&'a str, T)>,
    value: impl Fn(&AttrDef, T) -> Result<AttrValue>,
    mut number: impl FnMut(&AttrDef, T) -> Result<Scalar>,
) -> Result<(Attrs, RuntimeAttrs)> {
    let (mut given, mut attrs, mut runtime) = (given.peekable(), Attrs::new(), RuntimeAttrs::new());
    let missing = |d: &AttrDef| Error::parse(format!("expected attribute '{}' of {}", d.name, op.name()));
    for d in &op.sig.attrs {
        match given.next_if(|(name, _)| *name == d.name) {
            Some((_, v)) => attrs.push(value(d, v)?),
            // Calls may leave out the last ones.
            None if d.default == Some(AttrValue::Absent) => break,
            None => return Err(missing(d)),
        }
    }
    for d in &op.sig.runtime {
        let (_, v) = given.next_if(|(name, _)| *name == d.name).ok_or_else(|| missing(d))?;
        runtime.push(number(d, v)?);
    }
    match given.next() {
        None => Ok((attrs, runtime)),
        Some((more, _)) => Err(Error::parse(format!("expected the attributes of {}, got '{more}'", op.name()))),
    }
}

/// The signature of a call on global tensors: their layouts, and the lowering. `layout` gives that of a global tensor.
pub(super) fn signature_of<'a>(
    call: &CallNode,
    p: &Parts,
    lowering: Option<u8>,
    layout: &dyn Fn(ValueId) -> Option<&'a NdSbp>,
) -> Result<Option<NdSignature>> {
    let first = p.inputs.iter().flatten().chain(p.writes.iter().map(|w| &w.old)).find_map(|v| layout(*v));
    let Some(axes) = first.filter(|_| call.op.layout.is_none() && call.target.is_none()).map(|n| n.len()) else {
        return Ok(None);
    };
    let of =
        |v: ValueId| layout(v).cloned().ok_or_else(|| Error::parse(format!("expected a global tensor, got '{v}'")));
    let input = |v: &Option<ValueId>| v.map_or_else(|| Ok(NdSbp::broadcast(axes)), of);
    let into = p.writes.iter().filter(|_| call.into).map(|w| w.new);
    Ok(Some(NdSignature {
        inputs: p.inputs.iter().map(input).collect::<Result<_>>()?,
        outputs: into.chain(p.outputs.iter().copied()).map(of).collect::<Result<_>>()?,
        lowering,
    }))
}
