//! Primitives: the kernel of an op for given types on a device, which another kernel launches on memory that it holds (OneFlow's
//! `ep::primitive`). Fill (`full`), `copy`, `cast`, `matmul`, elementwise ops and reductions are ops, so all of them are primitives, on
//! each device that has a kernel of the op.

use super::kernels::select;
use crate::error::{Error, ErrorKind, Result};
use crate::ops::{
    AttrValue, Attrs, GivenValues, InferCtx, KernelCx, KernelDef, KernelState, Op, RuntimeAttrs, TensorType, find,
    resolve_attrs,
};
use crate::placement::Device;
use oflow_kernels::{DType, ShardBox, View};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::OnceLock;

/// The kernel of an op for given types and attributes on a kind of device. A kernel finds it when it is planned
/// ([`with_state`](KernelDef::with_state)) and launches it each time that it runs, or it keeps it in [`KernelCx::cached`].
///
/// ```
/// use oflow::backend::Primitive;
/// use oflow::ops::{KernelDef, KernelState, OpDef, TensorType, register};
/// use oflow::prelude::*;
/// use std::sync::Arc;
///
/// // y = x xᵀ, by the matmul of the device.
/// let kernel = KernelDef::cpu("gram_cpu", |cx| {
///     let x = cx.input(0)?;
///     cx.state::<Primitive>()?.launch(cx, &[Some(x), Some(x)], &[cx.output(0)], None)
/// });
/// let gram = OpDef::new("gram(x: f32|f64[2]) -> y")?
///     .domain("primitives")
///     .shape1(|c| Ok([c.shape(0)?[0], c.shape(0)?[0]].into_iter().collect()))
///     .kernel(kernel.with_state(|c, _| {
///         let x = Some(c.input(0)?.clone());
///         let matmul = Primitive::find("matmul", Device::Cpu, &[x.clone(), x], &[("transpose_b", true.into())])?;
///         Ok(Arc::new(matmul.ok_or_else(|| Error::unsupported("no matmul of these dtypes"))?) as KernelState)
///     }));
/// let _ = register(gram)?;
/// let x = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], Device::Cpu)?;
/// let y = oflow::call("primitives.gram", &[x.into()], &[])?;
/// assert_eq!(y[0].to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct Primitive {
    op: &'static Op,
    kernel: KernelDef,
    attrs: Attrs,
    runtime: RuntimeAttrs,
    inputs: Vec<Option<TensorType>>,
    outputs: SmallVec<[TensorType; 2]>,
    boxes: (Vec<Option<ShardBox>>, Vec<ShardBox>),
    state: Option<KernelState>,
    workspace: usize,
    cache: OnceLock<KernelState>,
}

/// Why an op is no primitive, if it is none.
fn refused(op: &Op) -> Option<&'static str> {
    if op.layout.is_some() {
        return Some("it moves data between ranks");
    }
    if op.traits.random {
        return Some("it draws random numbers, whose seed belongs to a call");
    }
    if op.length.is_some() {
        return Some("the length of its result depends on values");
    }
    if op.writes_inputs() {
        return Some("it writes an input");
    }
    let on_host = op.sig.inputs.iter().any(|i| i.host);
    on_host.then_some("it reads an input in host memory")
}

impl Primitive {
    /// Returns the kernel that runs the op on these types; none if no kernel of the device takes them. Attributes that are not given
    /// have their defaults.
    ///
    /// # Errors
    /// There is no such op, or it is none that a kernel can launch (random numbers, a length that depends on values, data that moves
    /// between ranks); the op refuses the types or attributes.
    pub fn find(
        op: &str,
        device: Device,
        inputs: &[Option<TensorType>],
        attrs: &[(&str, AttrValue)],
    ) -> Result<Option<Primitive>> {
        let op = find(op)?;
        let here = |e: Error| e.in_call(|| format!("the primitive {}", op.name()));
        if let Some(why) = refused(op) {
            return Err(here(Error::unsupported(format!("a kernel cannot launch it: {why}"))));
        }
        let taken = |(i, t): (usize, &Option<TensorType>)| match (t, op.sig.input_def(i)) {
            (Some(t), Some(def)) => def.dtypes.contains(t.dtype),
            _ => true,
        };
        if !inputs.iter().enumerate().all(taken) {
            return Ok(None);
        }
        let (attrs, runtime) = resolve_attrs(op, attrs).map_err(here)?;
        Primitive::of(op, device, inputs, attrs, runtime).map_err(here)
    }

    fn of(
        op: &'static Op,
        device: Device,
        inputs: &[Option<TensorType>],
        attrs: Attrs,
        runtime: RuntimeAttrs,
    ) -> Result<Option<Primitive>> {
        let kinds: SmallVec<[_; 4]> = runtime.iter().map(|s| s.kind()).collect();
        let infer = InferCtx { op, inputs, attrs: &attrs, runtime_kinds: &kinds };
        let outputs: SmallVec<[TensorType; 2]> = op.infer(&infer)?;
        if let Some(check) = &op.values {
            let dtypes: SmallVec<[Option<DType>; 4]> = inputs.iter().map(|t| t.as_ref().map(|t| t.dtype)).collect();
            check(&GivenValues { op, dtypes: &dtypes, attrs: &attrs, runtime: &runtime })?;
        }
        let kernel = match select(op, device, &infer, &outputs) {
            Ok(kernel) => kernel,
            Err(e) if e.kind() == ErrorKind::Unsupported => return Ok(None),
            Err(e) => return Err(e),
        };
        let state = kernel.state.as_ref().map(|f| f(&infer, &outputs)).transpose()?;
        let workspace = kernel.workspace.as_ref().map_or(Ok(0), |f| f(&infer, &outputs))?;
        let whole = |t: &TensorType| ShardBox::whole(&t.shape);
        let boxes = (inputs.iter().map(|t| t.as_ref().map(whole)).collect(), outputs.iter().map(whole).collect());
        let inputs = inputs.to_vec();
        let cache = OnceLock::new();
        Ok(Some(Primitive { op, kernel, attrs, runtime, inputs, outputs, boxes, state, workspace, cache }))
    }

    /// The op that the primitive runs.
    pub fn op(&self) -> &'static Op {
        self.op
    }
    /// Shapes and dtypes of the outputs.
    pub fn outputs(&self) -> &[TensorType] {
        &self.outputs
    }
    /// Bytes of scratch memory that a launch needs. On a device of the host a launch finds them itself.
    pub fn workspace(&self) -> usize {
        self.workspace
    }

    /// Whether it is that of the op for these types and attributes.
    pub(crate) fn is(&self, op: &Op, inputs: &[Option<TensorType>], attrs: &Attrs, runtime: &RuntimeAttrs) -> bool {
        std::ptr::eq(self.op, op) && self.inputs == inputs && self.attrs == *attrs && self.runtime == *runtime
    }

    /// Runs it on memory of the call `cx`: on this thread, or in the stream that the call's kernel has. Views may be parts of the
    /// call's memory: inputs of its inputs, outputs and workspace; outputs and scratch memory of its outputs and workspace.
    ///
    /// # Errors
    /// A view has another shape or dtype than the primitive was made for, is not contiguous where the kernel asks for that, or lies
    /// outside the memory of the call; an output shares memory with another view, unless it is an input whose memory the kernel may
    /// take; the scratch memory does not suffice; the kernel fails.
    pub fn launch(
        &self,
        cx: &KernelCx<'_>,
        inputs: &[Option<&View>],
        outputs: &[&View],
        scratch: Option<&View>,
    ) -> Result<()> {
        self.run(cx, inputs, outputs, scratch).map_err(|e| e.in_call(|| format!("the primitive {}", self.op.name())))
    }

    fn run(
        &self,
        cx: &KernelCx<'_>,
        inputs: &[Option<&View>],
        outputs: &[&View],
        scratch: Option<&View>,
    ) -> Result<()> {
        self.check(cx, inputs, outputs, scratch)?;
        if !self.outputs.is_empty() && self.outputs.iter().all(|t| t.is_empty()) && !self.op.traits.run_empty {
            return Ok(());
        }
        let inputs: SmallVec<[Option<View>; 4]> = inputs.iter().map(|v| v.cloned()).collect();
        let outputs: SmallVec<[View; 2]> = outputs.iter().map(|v| (*v).clone()).collect();
        // Words, so that the memory is aligned for every element type.
        let mut own: Vec<u128> = vec![];
        let made = match (self.workspace, scratch) {
            (0, _) => None,
            (_, Some(given)) => Some(given.clone()),
            (bytes, None) if self.kernel.device == Device::Cpu => {
                own.resize(bytes.div_ceil(size_of::<u128>()), 0);
                let at = own.as_mut_ptr().cast();
                // SAFETY: so many bytes of a vector that lives until the kernel has run; nothing else uses them.
                Some(unsafe { View::from_raw(at, DType::U8, [bytes].into_iter().collect(), [1].into_iter().collect()) })
            }
            (bytes, None) => {
                return Err(Error::argument(format!("it needs {bytes} bytes of scratch memory"))
                    .help("ask for a workspace of the call and give a part of it"));
            }
        };
        (self.kernel.run)(&KernelCx {
            op: self.op,
            inputs: &inputs,
            outputs: &outputs,
            attrs: &self.attrs,
            runtime: &self.runtime,
            input_boxes: &self.boxes.0,
            output_boxes: &self.boxes.1,
            state: self.state.as_ref(),
            cache: &self.cache,
            workspace: made.as_ref(),
            stream: cx.stream,
        })
    }

    fn check(
        &self,
        cx: &KernelCx<'_>,
        inputs: &[Option<&View>],
        outputs: &[&View],
        scratch: Option<&View>,
    ) -> Result<()> {
        if (inputs.len(), outputs.len()) != (self.inputs.len(), self.outputs.len()) {
            let (ins, outs) = (self.inputs.len(), self.outputs.len());
            let given = format!("{} inputs and {} outputs", inputs.len(), outputs.len());
            return Err(Error::argument(format!("it takes {ins} inputs and {outs} outputs, {given} are given")));
        }
        let read: SmallVec<[&View; 8]> = cx.inputs.iter().flatten().chain(cx.outputs).chain(cx.workspace).collect();
        let written: SmallVec<[&View; 4]> = cx.outputs.iter().chain(cx.workspace).collect();
        let within = |v: &View, all: &[&View], what: &str| -> Result<Range<usize>> {
            let found = span(v).ok_or_else(|| Error::argument(format!("{what} has addresses that wrap")))?;
            let inside = |o: &&&View| span(o).is_some_and(|o| o.start <= found.start && found.end <= o.end);
            match found.is_empty() || all.iter().any(|o| inside(&o)) {
                true => Ok(found),
                false => Err(Error::argument(format!("{what} lies outside the memory of the call"))
                    .help("give views of the call's inputs, outputs and workspace, or parts of them")),
            }
        };
        let mut spans: SmallVec<[Range<usize>; 4]> = SmallVec::new();
        for (i, (view, of)) in inputs.iter().zip(&self.inputs).enumerate() {
            let what = format!("input {i}");
            spans.push(match (view, of) {
                (None, None) => 0..0,
                (Some(view), Some(of)) => {
                    fits(view, of, &what)?;
                    if !self.op.traits.strided && !view.is_contiguous() {
                        return Err(Error::argument(format!(
                            "{what} is not contiguous, and the kernel takes no strides"
                        ))
                        .help("copy it to the workspace first, with the primitive `copy`"));
                    }
                    within(view, &read, &what)?
                }
                _ => return Err(Error::argument(format!("{what} is given, or left out, other than was said before"))),
            });
        }
        let overlap = |a: &Range<usize>, b: &Range<usize>| !a.is_empty() && a.start < b.end && b.start < a.end;
        let mut taken: SmallVec<[Range<usize>; 4]> = SmallVec::new();
        for (o, (view, of)) in outputs.iter().zip(&self.outputs).enumerate() {
            let what = format!("output {o}");
            fits(view, of, &what)?;
            if !view.is_contiguous() {
                return Err(Error::argument(format!("{what} is not contiguous")));
            }
            let at = within(view, &written, &what)?;
            for (i, other) in spans.iter().enumerate() {
                let same =
                    inputs[i].is_some_and(|v| v.ptr() == view.ptr() && v.dtype() == view.dtype() && v.is_contiguous());
                if overlap(&at, other) && !(same && *other == at && self.kernel.inplace.contains(&(i, o))) {
                    return Err(Error::argument(format!("{what} shares memory with input {i}")).help(
                        "elementwise primitives may write over an input of the same type; others need another output",
                    ));
                }
            }
            if taken.iter().any(|other| overlap(&at, other)) {
                return Err(Error::argument(format!("{what} shares memory with another output")));
            }
            taken.push(at);
        }
        if let Some(scratch) = scratch.filter(|_| self.workspace > 0) {
            let at = within(scratch, &written, "the scratch memory")?;
            if !scratch.is_contiguous() || at.len() < self.workspace || !at.start.is_multiple_of(align_of::<u128>()) {
                let (has, needs) = (at.len(), self.workspace);
                return Err(Error::argument(format!(
                    "the scratch memory has {has} bytes; it needs {needs}, contiguous and aligned to {}",
                    align_of::<u128>()
                )));
            }
            if spans.iter().chain(&taken).any(|other| overlap(&at, other)) {
                return Err(Error::argument("the scratch memory is an input or an output too"));
            }
        }
        Ok(())
    }
}

/// Shape and dtype are those that the primitive was made for.
fn fits(view: &View, of: &TensorType, what: &str) -> Result<()> {
    if view.dims() != of.shape.as_slice() || view.dtype() != of.dtype {
        let found = TensorType::new(view.dims(), view.dtype());
        return Err(Error::argument(format!("{what} is {found}, the primitive was made for {of}")));
    }
    Ok(())
}

/// The bytes from the first to the last element; none if they are no range of addresses.
fn span(view: &View) -> Option<Range<usize>> {
    let start = view.ptr().addr();
    if view.is_empty() {
        return Some(start..start);
    }
    let (mut least, mut most) = (0i128, 0i128);
    for (n, s) in view.dims().iter().zip(view.strides()) {
        let reach = (*n as i128 - 1).checked_mul(*s as i128)?;
        least = least.checked_add(reach.min(0))?;
        most = most.checked_add(reach.max(0))?;
    }
    let size = view.dtype().size() as i128;
    let at = |elements: i128| usize::try_from((start as i128).checked_add(elements.checked_mul(size)?)?).ok();
    Some(at(least)?..at(most.checked_add(1)?)?)
}
