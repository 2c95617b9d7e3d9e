//! Gradients and lowerings as programs over opaque values: one rule serves eager, lowered, dry and (later) graph runs.

use super::attr::{AttrValue, Attrs, GivenNumber, RuntimeAttrs};
use super::def::OpDef;
use super::named::{AttrsOf, Which, attrs_by_name, output_of};
use super::registry::{Op, lookup};
use crate::error::{Error, Result};
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp};
use oflow_kernels::{DType, DTypeKind, Dims};
use std::fmt;
use std::sync::Arc;

/// An opaque tensor of a program: eager handle, logical description or graph value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value(pub u32);

/// Emits calls of ops. Implementations: eager (runs them), dry run (prices them).
pub trait Emit {
    /// Calls an op with all its inputs in order (absent optional ones `None`) and attributes by name.
    ///
    /// A gradient rule may also name a function of the [table](crate::functional::functions): its tensors in order, its other
    /// arguments by name. An op goes before the function of its name, if it takes so many inputs and these attributes. A lowering
    /// calls ops only.
    fn emit(&mut self, op: &str, inputs: &[Option<Value>], attrs: &[(&str, AttrValue)]) -> Result<Vec<Value>>;
    /// Logical shape of a value.
    fn shape(&self, v: Value) -> Dims;
    /// Element type of a value.
    fn dtype(&self, v: Value) -> DType;
    /// nd-SBP, for global values.
    fn nd_sbp(&self, v: Value) -> Option<NdSbp>;
    /// Into how many shards dim `dim` of a value is cut: the product of the mesh axes that split it; 1 of a local value.
    fn shards(&self, v: Value, dim: usize) -> usize;
    /// Boxes a global value on its placement; a local value is returned as it is.
    fn box_to(&mut self, v: Value, sbp: &NdSbp) -> Result<Value>;
    /// Marks a value as not differentiable from here on.
    fn detach(&mut self, v: Value) -> Value;
}

impl dyn Emit + '_ {
    /// Calls an op of one output whose inputs are all given.
    pub fn call(&mut self, op: &str, inputs: &[Value], attrs: &[(&str, AttrValue)]) -> Result<Value> {
        let ins: Vec<Option<Value>> = inputs.iter().copied().map(Some).collect();
        Ok(self.emit(op, &ins, attrs)?[0])
    }
    /// Boxes every P axis to B; S and B stay.
    pub fn reduce_partials(&mut self, v: Value) -> Result<Value> {
        match self.nd_sbp(v) {
            Some(s) if s.has_partial() => {
                let to = s.map(|s| if s.is_partial() { Sbp::Broadcast } else { s });
                self.box_to(v, &to)
            }
            _ => Ok(v),
        }
    }
}

/// Into how many shards an nd-SBP cuts a dim.
pub(crate) fn shards_of(placement: &Placement, sbp: &NdSbp, dim: usize) -> usize {
    placement.dims().iter().zip(sbp.iter()).filter(|(_, s)| **s == Sbp::Split(dim)).map(|(n, _)| n).product()
}

/// Context of a gradient rule: inputs, outputs and out-gradients of the call.
pub trait GradCtx: Emit {
    /// The op of the forward call.
    fn op(&self) -> &'static Op;
    /// Plan attributes of the forward call.
    fn attrs(&self) -> &Attrs;
    /// Runtime attributes of the forward call (drawn seeds and ordinals included).
    fn runtime(&self) -> &RuntimeAttrs;
    /// Number of inputs, absent ones counted.
    fn inputs(&self) -> usize;
    /// Whether input `i` was given.
    fn has(&self, i: usize) -> bool;
    /// Whether input `i` wants a gradient.
    fn needs(&self, i: usize) -> bool;
    /// Input `i` (as it was boxed for the kernel).
    fn input(&mut self, i: usize) -> Result<Value>;
    /// Logical shape of input `i`, also if it was not saved.
    fn input_shape(&self, i: usize) -> Dims;
    /// Element type of input `i`, if it was given.
    fn input_dtype(&self, i: usize) -> Option<DType>;
    /// Placement and nd-SBP that input `i` had before it was boxed for the call; none if it was local or absent.
    fn input_layout(&self, i: usize) -> Option<(Placement, NdSbp)>;
    /// Device of the inputs of a local call.
    fn input_device(&self) -> Device;
    /// Output `i` of the call, as forward computed it.
    fn output(&mut self, i: usize) -> Result<Value>;
    /// Gradient of output `i`, if anything depends on it.
    fn grad(&mut self, i: usize) -> Option<Value>;
    /// Says the gradient of input `i`. One that was broadcast is summed to the input's shape.
    fn set(&mut self, i: usize, v: Value) -> Result<()>;
    /// The attribute of that name.
    fn attr(&self, name: &str) -> Result<AttrValue>;
    /// This context as an emitter.
    fn emitter(&mut self) -> &mut dyn Emit;
}

impl dyn GradCtx + '_ {
    fn named(&self) -> AttrsOf<'_> {
        AttrsOf { op: self.op(), attrs: self.attrs(), runtime: Some(self.runtime()) }
    }
    attrs_by_name!(self, self.named(), '_, but attr);

    fn output_at(&self, name: &str) -> Result<Option<usize>> {
        output_of(self.op(), name, self.attrs(), (0..self.inputs()).map(|i| self.has(i)))
    }

    /// The input of that name, as it was boxed for the kernel.
    ///
    /// # Errors
    /// The op has no such input, or it was not saved.
    pub fn input_named(&mut self, name: &str) -> Result<Value> {
        let i = name.input_of(self.op())?;
        self.input(i)
    }
    /// The output of that name.
    ///
    /// # Errors
    /// The op has no such output, or it was not saved.
    pub fn output_named(&mut self, name: &str) -> Result<Value> {
        let made = self.output_at(name)?;
        let missing = || Error::autograd(format!("{}: output '{name}' is not made by this call", self.op().name()));
        let i = made.ok_or_else(missing)?;
        self.output(i)
    }
    /// Gradient of the output of that name, if the call makes it and anything depends on it.
    ///
    /// # Errors
    /// The op has no such output.
    pub fn grad_of(&mut self, name: &str) -> Result<Option<Value>> {
        Ok(self.output_at(name)?.and_then(|i| self.grad(i)))
    }
    /// Says the gradient of the input of that name.
    ///
    /// # Errors
    /// The op has no such input.
    pub fn set_named(&mut self, name: &str, v: Value) -> Result<()> {
        let i = name.input_of(self.op())?;
        self.set(i, v)
    }
    /// Calls an op of one output whose inputs are all given.
    pub fn call(&mut self, op: &str, inputs: &[Value], attrs: &[(&str, AttrValue)]) -> Result<Value> {
        self.emitter().call(op, inputs, attrs)
    }
}

/// A gradient rule in Rust.
pub type GradFn = Arc<dyn Fn(&mut dyn GradCtx) -> Result<()> + Send + Sync>;

/// One wire of a gradient given as data: the gradient of `input` is output `output` of `op(args…)`. Wires with the same call (op,
/// arguments, attributes) share it.
#[derive(Clone, Debug, PartialEq)]
pub struct GradWire {
    /// Index of the input.
    pub input: usize,
    /// Op to call.
    pub op: String,
    /// Output of the gradient op that is the gradient.
    pub output: usize,
    /// Inputs of the gradient op.
    pub args: Vec<GradArg>,
    /// Plan and runtime attributes to copy from the forward call, by name.
    pub attrs: Vec<String>,
}

impl GradWire {
    /// Whether two wires are outputs of one call.
    pub(crate) fn same_call(&self, other: &GradWire) -> bool {
        self.op == other.op && self.args == other.args && self.attrs == other.attrs
    }
}

/// An argument of a gradient op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradArg {
    /// Gradient of an output.
    OutGrad(usize),
    /// A forward input.
    Input(usize),
    /// A forward output.
    Output(usize),
}

/// How an op is differentiated.
#[derive(Clone, Default)]
pub enum Grad {
    /// Nobody has said; asking is an error.
    #[default]
    Missing,
    /// Said explicitly: there is none (the inputs get no gradient).
    None,
    /// Derived from the scalar expression.
    FromExpr,
    /// Data: outputs of calls of other ops. [`Grad::wiring`] is the usual way to say it.
    Wiring(Vec<GradWire>),
    /// Code. The flags say which inputs and outputs it reads, so that the others are not kept alive.
    Rule {
        /// The rule.
        run: GradFn,
        /// Bit i: input i is saved.
        saves_inputs: u64,
        /// Bit i: output i is saved.
        saves_outputs: u64,
    },
}

impl Grad {
    /// The gradients are the outputs of one call: output k of `op(args…)` is the gradient of input `inputs[k]`. The attributes
    /// named are those of the forward call.
    ///
    /// ```
    /// use oflow::ops::{Grad, GradArg::{Input, OutGrad}};
    /// let grad = Grad::wiring("mine.scale_rows_grad", &[OutGrad(0), Input(0), Input(1)], &["eps"], &[0, 1]);
    /// assert!(matches!(grad, Grad::Wiring(wires) if wires.len() == 2));
    /// ```
    pub fn wiring(op: &str, args: &[GradArg], attrs: &[&str], inputs: &[usize]) -> Grad {
        let attrs: Vec<String> = attrs.iter().map(|a| a.to_string()).collect();
        let wire = |(output, input): (usize, &usize)| GradWire {
            input: *input,
            op: op.to_string(),
            output,
            args: args.to_vec(),
            attrs: attrs.clone(),
        };
        Grad::Wiring(inputs.iter().enumerate().map(wire).collect())
    }
    /// A rule that reads every input and output.
    pub fn rule(run: impl Fn(&mut dyn GradCtx) -> Result<()> + Send + Sync + 'static) -> Grad {
        Grad::Rule { run: Arc::new(run), saves_inputs: u64::MAX, saves_outputs: u64::MAX }
    }
    /// A rule that reads these inputs and outputs only.
    pub fn rule_saving(
        inputs: &[usize],
        outputs: &[usize],
        run: impl Fn(&mut dyn GradCtx) -> Result<()> + Send + Sync + 'static,
    ) -> Grad {
        let mask = |is: &[usize]| is.iter().fold(0u64, |m, i| m | 1 << i);
        Grad::Rule { run: Arc::new(run), saves_inputs: mask(inputs), saves_outputs: mask(outputs) }
    }
}

impl fmt::Debug for Grad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grad::Missing => f.write_str("missing"),
            Grad::None => f.write_str("none"),
            Grad::FromExpr => f.write_str("derived from the expression"),
            Grad::Wiring(w) => write!(f, "wiring {w:?}"),
            Grad::Rule { .. } => f.write_str("rule"),
        }
    }
}

/// Arguments of a lowering besides an emitter.
pub struct LowerCall<'a> {
    /// The op that is lowered.
    pub op: &'a OpDef,
    /// Inputs (absent optional ones `None`), boxed to the chosen signature.
    pub inputs: &'a [Option<Value>],
    /// Plan attributes of the call.
    pub attrs: &'a Attrs,
    /// Kinds of the runtime attributes.
    pub runtime_kinds: &'a [DTypeKind],
    /// The nd-SBPs the outputs must have.
    pub outputs: &'a [NdSbp],
}

impl<'a> LowerCall<'a> {
    fn named(&self) -> AttrsOf<'a> {
        AttrsOf { op: self.op, attrs: self.attrs, runtime: None }
    }
    attrs_by_name!(self, self.named(), 'a);

    /// Input `i`, by position or name.
    ///
    /// # Errors
    /// The call has no such input.
    pub fn input(&self, i: impl Which) -> Result<Value> {
        let i = i.input_of(self.op)?;
        let missing = || Error::argument(format!("{}: input {i} is missing", self.op.sig.name));
        self.inputs.get(i).copied().flatten().ok_or_else(missing)
    }

    /// Runtime attribute `index`, by position or name, to be passed on as a runtime attribute of an op of the program. A lowering is
    /// planned once for all values, so it has no value here.
    ///
    /// # Errors
    /// The op has no such attribute.
    pub fn runtime(&self, index: impl Which) -> Result<AttrValue> {
        let index = index.runtime_of(self.op)?;
        let kind = self.runtime_kinds.get(index).copied();
        let kind = kind.ok_or_else(|| Error::argument(format!("runtime attribute {index} is missing")))?;
        Ok(AttrValue::Given(GivenNumber { index, kind }))
    }
}

/// The op that the program of a lowering calls.
///
/// # Errors
/// There is no op of that name. It may be a function: those run on tensors, which a program that is only planned does not have.
pub(crate) fn op_in_lowering(name: &str) -> Result<&'static Op> {
    lookup(name)?.ok_or_else(|| {
        Error::registry(format!("a lowering calls '{name}', which is not an op"))
            .help("functions are for gradient rules: call the ops that the function calls; `oflow ops` lists them")
    })
}

/// A lowering's program: (op on the shard → boxing → op …). Returns the op's outputs.
pub type LowerFn = Arc<dyn Fn(&mut dyn Emit, &LowerCall<'_>) -> Result<Vec<Value>> + Send + Sync>;
