//! [`Call`]: an op with its inputs and attributes, and the line of the program that calls it.

use crate::context::{AskedSbp, grad_enabled, keeping, origin_here};
use crate::error::{CallSite, Error, Result};
use crate::memory::Origin;
use crate::ops::{AttrValue, Attrs, GivenValues, LayoutOp, Op, RuntimeAttrs, get_attr};
use crate::placement::{Device, Placement};
use crate::plan::{Asked, Input, Request, Target, Where};
use crate::program::HostId;
use crate::sbp::NdSbp;
use crate::tensor::{Body, Tensor};
use oflow_kernels::{DType, DTypeKind, Dims, Scalar};
use smallvec::SmallVec;

/// Outputs of a call.
pub type Outputs = SmallVec<[Tensor; 2]>;

/// Inputs that a rewrite has made: those that it leaves alone are other handles of the same tensors.
pub(super) type OwnedInputs = SmallVec<[Option<Tensor>; 4]>;

/// A change of a call before anything of it is decided. Each rewrite is asked once.
pub(super) struct Rewrite {
    /// Whether the call may have to be rewritten; asked of every call.
    pub(super) applies: fn(&Call<'_>) -> bool,
    /// The rewritten call; none where it stays as it is.
    pub(super) rewrite: fn(&Call<'_>) -> Result<Option<Rewritten>>,
}

/// Result of a rewrite.
pub(super) enum Rewritten {
    /// The same call with other inputs.
    Inputs(OwnedInputs),
    /// The same call with other inputs, and another tensor that output 0 is written into, if one was given.
    Tensors(OwnedInputs, Option<Tensor>),
    /// Other calls, which have been made: their results.
    Outputs(Outputs),
}

/// Where a captured call finds its runtime attributes at each run: an object of the host, and which of the object's calls it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostNumbers {
    pub(super) host: HostId,
    pub(super) call: u32,
}

/// A call of an op. [`Call::new`] makes one, [`Call::run`] runs it. A call allocates nothing on the heap.
///
/// ```
/// use oflow::{interpreter::Call, op, prelude::*};
/// let (a, b) = (ones([2, 3], Device::Cpu)?, ones([3], Device::Cpu)?);
/// let y = Call::new(op!("add")?, &[Some(&a), Some(&b)]).run1()?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0; 6]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct Call<'a> {
    /// Op that is called.
    pub op: &'static Op,
    /// Inputs in order (absent optional ones `None`).
    pub inputs: &'a [Option<&'a Tensor>],
    /// Plan attributes in declared order.
    pub attrs: Attrs,
    /// Runtime attributes in declared order.
    pub runtime: RuntimeAttrs,
    /// Where a source op puts its result.
    pub target: Option<&'a Target>,
    /// Output 0 is written into this tensor.
    pub given: Option<&'a Tensor>,
    /// Whether the call is recorded for backward, once its inputs are final.
    pub(super) recording: bool,
    /// Inputs that calls read in another layout are taken as they are stored.
    pub(super) skip_unshard: bool,
    /// The host object that computes the runtime attributes, for a graph that captures the call.
    pub(super) host: Option<HostNumbers>,
    /// The user's line.
    pub site: CallSite,
}

/// Values of a call's attributes: the list itself, or an array of values that convert (`.runtime([0.5])`).
pub trait IntoValues<L> {
    /// Converts the values to the list of attributes.
    fn into_values(self) -> L;
}
impl<L> IntoValues<L> for L {
    #[inline]
    fn into_values(self) -> L {
        self
    }
}
impl<T: Into<AttrValue>, const N: usize> IntoValues<Attrs> for [T; N] {
    fn into_values(self) -> Attrs {
        self.into_iter().map(Into::into).collect()
    }
}
impl<T: Into<Scalar>, const N: usize> IntoValues<RuntimeAttrs> for [T; N] {
    fn into_values(self) -> RuntimeAttrs {
        self.into_iter().map(Into::into).collect()
    }
}

impl<'a> Call<'a> {
    /// Makes a call of `op` without attributes. `inputs` has one entry per declared input; an optional input that is left out
    /// is `None`. Errors name the caller's line.
    #[track_caller]
    #[inline]
    pub fn new(op: &'static Op, inputs: &'a [Option<&'a Tensor>]) -> Call<'a> {
        Call::of(op, inputs, Attrs::new(), RuntimeAttrs::new(), CallSite::here())
    }
    /// A call with these attributes, of that line.
    #[inline]
    pub(crate) fn of(
        op: &'static Op,
        inputs: &'a [Option<&'a Tensor>],
        attrs: Attrs,
        runtime: RuntimeAttrs,
        site: CallSite,
    ) -> Call<'a> {
        Call {
            op,
            inputs,
            attrs,
            runtime,
            target: None,
            given: None,
            recording: false,
            skip_unshard: false,
            host: None,
            site,
        }
    }
    /// Sets the plan attributes: all of them, in declared order.
    #[must_use]
    #[inline]
    pub fn attrs(mut self, attrs: impl IntoValues<Attrs>) -> Call<'a> {
        self.attrs = attrs.into_values();
        self
    }
    /// Sets the runtime attributes: all of them, in declared order.
    #[must_use]
    #[inline]
    pub fn runtime(mut self, runtime: impl IntoValues<RuntimeAttrs>) -> Call<'a> {
        self.runtime = runtime.into_values();
        self
    }
    /// Sets where a source op (one without inputs) puts its result.
    #[must_use]
    #[inline]
    pub fn target(mut self, target: impl Into<Option<&'a Target>>) -> Call<'a> {
        self.target = target.into();
        self
    }
    /// Makes the call in place: output 0 is written into this tensor.
    #[must_use]
    #[inline]
    pub fn given(mut self, given: impl Into<Option<&'a Tensor>>) -> Call<'a> {
        self.given = given.into();
        self
    }
    /// Says which host object computes the runtime attributes: a graph that captures the call asks it at each run.
    #[must_use]
    #[inline]
    pub(crate) fn host(mut self, host: Option<HostNumbers>) -> Call<'a> {
        self.host = host;
        self
    }
    /// Sets the line of the program that errors and comm records name.
    #[must_use]
    #[inline]
    pub fn at(mut self, site: CallSite) -> Call<'a> {
        self.site = site;
        self
    }
    /// Runs the call and returns its first output.
    ///
    /// # Errors
    /// As [`Call::run`]; also when the op has no output.
    #[inline]
    pub fn run1(self) -> Result<Tensor> {
        let (op, site) = (self.op, self.site);
        first(self.run()?, op, site)
    }
}

impl<'a> Call<'a> {
    /// Returns where the call runs: the device or placement of its inputs, or the target of a source op.
    ///
    /// # Errors
    /// The inputs are on several devices or placements, or meta tensors are mixed with tensors that have data.
    pub fn place(&self) -> Result<Where<'a>> {
        let here = origin_here();
        if let Some(given) = self.given {
            given.check_origin_is(here)?;
        }
        let mut first: Option<(Where<'a>, &Tensor)> = None;
        for t in self.inputs.iter().flatten().copied() {
            t.check_origin_is(here)?;
            let this = match t.body() {
                Body::Local(l) => Where::Local(l.ty.device),
                Body::Global(g, _) => Where::Global(&g.placement),
                Body::Tombstone(_) => {
                    t.data()?;
                    return Err(Error::unsupported("tensor without data"));
                }
            };
            match (&first, &this) {
                (None, _) => first = Some((this, t)),
                (Some((Where::Local(a), _)), Where::Local(b)) if a == b => {}
                (Some((Where::Global(a), _)), Where::Global(b)) if a == b => {}
                (Some(_), _) if self.op.hooks.devices.is_some() || self.op.sig.inputs.iter().any(|i| i.host) => {
                    return self.place_apart(here);
                }
                (Some((_, first)), _) => return Err(apart(first, t)),
            }
        }
        match (first, self.target) {
            (Some((place, _)), _) => Ok(place),
            (None, Some(Target::Local(d))) => Ok(Where::Local(*d)),
            (None, Some(Target::Global(p, _))) => Ok(Where::Global(p)),
            (None, None) => Err(Error::argument("a source op needs a device or a placement with an SBP")),
        }
    }
}

impl<'a> Call<'a> {
    /// Where a call runs whose local inputs may be on several devices: those that its kernel reads in host memory, and any where the
    /// op decides itself where it runs.
    #[cold]
    fn place_apart(&self, here: Origin) -> Result<Where<'a>> {
        let host = |i: usize| self.op.sig.input_def(i).is_some_and(|d| d.host);
        let all = || self.inputs.iter().enumerate().filter_map(|(i, t)| Some((i, (*t)?)));
        let (_, first) =
            all().find(|(i, _)| !host(*i)).or_else(|| all().next()).ok_or_else(|| Error::argument("no input"))?;
        for (i, t) in all() {
            t.check_origin_is(here)?;
            let anywhere = self.op.hooks.devices.is_some() || (host(i) && t.device() == Device::Cpu);
            let fits = t.global().is_none() && (anywhere || t.device() == first.device());
            if !fits || first.global().is_some() {
                return Err(apart(first, t));
            }
        }
        Ok(Where::Local(first.device()))
    }
}

/// The first output of a call of `op` at `site`.
pub(crate) fn first(mut outs: Outputs, op: &Op, site: CallSite) -> Result<Tensor> {
    if outs.is_empty() {
        return Err(Error::argument(format!("op '{}' has no output", op.name())).at(site));
    }
    Ok(outs.swap_remove(0))
}

/// The error of two inputs that are in different places.
#[cold]
fn apart(first: &Tensor, t: &Tensor) -> Error {
    match (first.global(), t.global()) {
        (None, None) => Error::placement(format!("inputs are on different devices: {first:?} and {t:?}"))
            .help("move one with `to_device`"),
        (Some(a), Some(b)) => {
            let (a, b) = (&a.placement, &b.placement);
            // The layout it has where the meshes are alike, else the one that every mesh has.
            let to = match t.sbp() {
                Ok(s) if s.len() == a.axes() => s.clone(),
                _ => NdSbp::broadcast(a.axes()),
            };
            Error::placement(format!(
                "inputs are on different placements: {} on {a} and {} on {b}",
                first.short(),
                t.short()
            ))
            .help(format!(
                "oflow never moves a tensor between placements silently; give the one on {b} as \
                 `x.to_global((&placement, sbp!{to}))`, with the placement {a}",
            ))
        }
        _ => Error::placement(format!("local and global inputs are mixed: {first:?} and {t:?}")).help(
            "make the local one global with `distribute` (every rank has the logical value) or `to_global` (every rank has its shard)",
        ),
    }
}

impl Call<'_> {
    /// Whether a call with these inputs is recorded for backward.
    #[inline]
    pub(super) fn is_recorded(&self) -> bool {
        grad_enabled() && self.inputs.iter().flatten().copied().chain(self.given).any(|t| t.requires_grad())
    }

    /// Checks the values of the runtime attributes, which no plan has seen.
    #[inline]
    pub(super) fn check_values(&self) -> Result<()> {
        // A wrong number of runtime attributes is refused by inference.
        if let Some(check) = &self.op.values
            && self.runtime.len() == self.op.sig.runtime.len()
        {
            let dtypes: SmallVec<[Option<DType>; 4]> = self.inputs.iter().map(|t| t.map(|t| t.dtype())).collect();
            check(&GivenValues { op: self.op, dtypes: &dtypes, attrs: &self.attrs, runtime: &self.runtime })?;
        }
        Ok(())
    }

    /// Hands the call to `f` as its plan sees it.
    pub(super) fn with_request<R>(
        &self,
        place: Where<'_>,
        asked: Option<&AskedSbp>,
        f: impl FnOnce(&Request<'_>) -> R,
    ) -> R {
        let (runtime_kinds, inputs) = self.described();
        f(&Request {
            op: self.op,
            attrs: &self.attrs,
            runtime_kinds: &runtime_kinds,
            inputs: &inputs,
            place,
            target: match self.target {
                Some(Target::Global(_, sbp)) => Some(sbp),
                _ => None,
            },
            given: self.given.and_then(|g| g.type_ref()),
            keep: keeping(),
            asked: asked.map(|a| Asked {
                sbp: &a.sbp,
                by: if a.op.is_some() { "pin_sbp" } else { "with_sbp" },
                site: a.site,
            }),
            signature: None,
        })
    }

    /// Kinds of the runtime attributes and descriptions of the inputs: what a plan depends on besides op and attributes.
    fn described(&self) -> (SmallVec<[DTypeKind; 4]>, SmallVec<[Option<Input>; 4]>) {
        let kinds = self.runtime.iter().map(|s| s.kind()).collect();
        let input = |t: &Option<&Tensor>| {
            let t = (*t)?;
            let given = self.given.is_some_and(|g| g.same(t));
            Some(Input { ty: t.type_ref()?, needs_grad: self.recording && t.requires_grad(), given })
        };
        (kinds, self.inputs.iter().map(input).collect())
    }

    /// The plan attribute of that name.
    pub(super) fn attr(&self, name: &str) -> Result<&AttrValue> {
        get_attr(self.op, &self.attrs, name)
    }

    /// A placement among the plan attributes.
    pub(super) fn placement(&self, name: &str) -> Result<&Placement> {
        match self.attr(name)? {
            AttrValue::Placement(p) => Ok(p),
            v => Err(Error::argument(format!("attribute '{name}' must be a placement, not {v}"))),
        }
    }

    /// An nd-SBP among the plan attributes.
    pub(super) fn sbp(&self, name: &str) -> Result<&NdSbp> {
        self.stated(name)?.ok_or_else(|| Error::argument(format!("attribute '{name}' must be an nd-SBP, not none")))
    }

    /// An optional nd-SBP among the plan attributes.
    pub(super) fn stated(&self, name: &str) -> Result<Option<&NdSbp>> {
        as_stated(name, self.attr(name)?)
    }

    /// A list among the plan attributes.
    pub(super) fn list(&self, name: &str) -> Result<&[AttrValue]> {
        match self.attr(name)? {
            AttrValue::List(v) => Ok(v),
            v => Err(Error::argument(format!("attribute '{name}' must be a list, not {v}"))),
        }
    }

    /// Sizes among the plan attributes.
    pub(super) fn sizes(&self, name: &str) -> Result<Dims> {
        match self.attr(name)? {
            AttrValue::Ints(v) if v.iter().all(|n| *n >= 0) => Ok(v.iter().map(|n| *n as usize).collect()),
            v => Err(Error::argument(format!("attribute '{name}' must be a shape, not {v}"))),
        }
    }

    /// The one input of an op that takes one.
    pub(super) fn only_input(&self) -> Result<&Tensor> {
        match self.inputs {
            [Some(t)] => Ok(t),
            _ => Err(Error::argument(format!("takes one tensor, {} given", self.inputs.iter().flatten().count()))),
        }
    }

    /// A layout op in short form, as the function that programs call: `to_global(f32[4] [S(0)], [B]) on cpu[4]`.
    fn short_layout(&self, what: LayoutOp) -> String {
        let mut parts: Vec<String> = self.inputs.iter().map(|t| t.map_or("none".to_string(), |t| t.short())).collect();
        if what == LayoutOp::FromBoxes {
            // Each rank has boxes of its own.
            parts = self.attr("shape").iter().map(|v| v.to_string()).collect();
        }
        let mut on = self.inputs.iter().flatten().find_map(|t| t.global()).map(|g| g.placement.to_string());
        for a in &self.attrs {
            match a {
                AttrValue::Placement(p) => on = Some(p.to_string()),
                AttrValue::NdSbp(_) | AttrValue::Device(_)
                    if self.attr("sbp").or(self.attr("device")).ok() == Some(a) =>
                {
                    parts.push(a.to_string());
                }
                _ => {}
            }
        }
        let on = on.map_or(String::new(), |p| format!(" on {p}"));
        format!("{}({}){on}", what.function(), parts.join(", "))
    }

    /// The call in short form: `matmul(f32[4, 2] [S(0)], f32[3, 3] [B]) on cpu[dp=4]`.
    pub fn short(&self) -> String {
        if let Some(what) = self.op.layout {
            return self.short_layout(what);
        }
        let ins: Vec<String> = self.inputs.iter().map(|t| t.map_or("none".to_string(), |t| t.short())).collect();
        let on = self.inputs.iter().flatten().find_map(|t| t.global()).map(|g| g.placement.to_string());
        let on = on.or(match self.target {
            Some(Target::Global(p, s)) => Some(format!("{p} as {s}")),
            _ => None,
        });
        match on {
            Some(p) => format!("{}({}) on {p}", self.op.name(), ins.join(", ")),
            None => format!("{}({})", self.op.name(), ins.join(", ")),
        }
    }
}

/// An nd-SBP that may be absent, as the value of an attribute.
pub(super) fn as_stated<'a>(name: &str, v: &'a AttrValue) -> Result<Option<&'a NdSbp>> {
    match v {
        AttrValue::NdSbp(n) => Ok(Some(n)),
        AttrValue::Absent => Ok(None),
        v => Err(Error::argument(format!("attribute '{name}' must be an nd-SBP, not {v}"))),
    }
}
