//! The declaration of an op: plain data with function pointers for what data cannot say.

use super::attr::{Attrs, RuntimeAttrs};
use super::autocast::CastPolicy;
use super::grad::{Grad, LowerFn};
use super::infer::{InferCtx, LocalizeCtx, TensorType, broadcast_shapes};
use super::kernel::{KernelDef, KernelState};
use super::layout::LayoutOp;
use super::signature::OpSignature;
use crate::error::{Error, Result};
use crate::placement::Placement;
use crate::sbp::{FactorRule, NdSbp, Sbp, Signature, elementwise_signatures};
use oflow_kernels::expr::{Expr, common_dtype};
use oflow_kernels::{DType, DTypeKind, Dims, ShardBox, Strides};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// What is known of an op besides its shapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpTraits {
    /// Has an effect besides its outputs (writes a mutable input): may not be removed or merged.
    pub side_effect: bool,
    /// Kernels take inputs of any strides; others get contiguous copies (which are counted).
    pub strided: bool,
    /// Draws random numbers: runtime attributes `seed` and `ordinal` of -1 are filled from the generator.
    pub random: bool,
    /// No kernel but the CPU's will exist.
    pub cpu_only: bool,
    /// Kernels run although all outputs are empty.
    pub run_empty: bool,
    /// Not shown in lists (derived gradient ops).
    pub hidden: bool,
}

/// Output shapes.
pub type ShapeFn = Arc<dyn Fn(&InferCtx<'_>) -> Result<SmallVec<[Dims; 2]>> + Send + Sync>;
/// Output dtypes.
pub type DTypeFn = Arc<dyn Fn(&InferCtx<'_>) -> Result<SmallVec<[DType; 2]>> + Send + Sync>;
/// 1-d signatures.
pub type SbpFn = Arc<dyn Fn(&InferCtx<'_>) -> Result<Vec<Signature>> + Send + Sync>;
/// Replaces the product over mesh axes: complete nd-signatures (inputs, outputs).
pub type NdSbpFn = Arc<dyn Fn(&InferCtx<'_>, &Placement) -> Result<Vec<NdSignature>> + Send + Sync>;
/// Whether an nd-signature is exact on every rank of the placement.
pub type NdValidFn = Arc<dyn Fn(&InferCtx<'_>, &Placement, &NdSignature) -> bool + Send + Sync>;
/// Physical attributes.
pub type LocalizeFn = Arc<dyn Fn(&LocalizeCtx<'_>) -> Result<Attrs> + Send + Sync>;
/// Refuses bad attributes.
pub type CheckFn = Arc<dyn Fn(&InferCtx<'_>) -> Result<()> + Send + Sync>;
/// Refuses numbers that a call was given as runtime attributes.
pub type ValuesFn = Arc<dyn Fn(&GivenValues<'_>) -> Result<()> + Send + Sync>;
/// Floating point operations of one call on these (physical) inputs.
pub type FlopsFn = Arc<dyn Fn(&InferCtx<'_>) -> Result<u64> + Send + Sync>;

/// The numbers of one call, which no plan knows, with what is known of the call besides.
pub struct GivenValues<'a> {
    /// dtypes of the inputs.
    pub dtypes: &'a [Option<DType>],
    /// Plan attributes in declared order.
    pub attrs: &'a Attrs,
    /// Runtime attributes in declared order.
    pub runtime: &'a RuntimeAttrs,
}

impl GivenValues<'_> {
    /// dtype of input `i`, which must be there.
    pub fn dtype(&self, i: usize) -> Result<DType> {
        let found = self.dtypes.get(i).copied().flatten();
        found.ok_or_else(|| Error::argument(format!("input {i} is missing")))
    }
}

/// A local view: from dims and strides of input 0, attributes and the output's shape to (offset, strides) of the output in
/// elements; none where it needs a copy.
pub type ViewFn = Arc<dyn Fn(&[usize], &[isize], &Attrs, &[usize]) -> Option<(isize, Strides)> + Send + Sync>;

/// A complete assignment over all mesh axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NdSignature {
    /// nd-SBP per input.
    pub inputs: SmallVec<[NdSbp; 4]>,
    /// nd-SBP per output.
    pub outputs: SmallVec<[NdSbp; 2]>,
    /// The lowering that carries it out, if any.
    pub lowering: Option<u8>,
}

/// How output shapes follow.
#[derive(Clone, Default)]
pub enum ShapeRule {
    /// Like input 0, for every output.
    #[default]
    SameAsInput,
    /// Broadcast of all inputs.
    Broadcast,
    /// The `shape` attribute.
    Attr,
    /// Code.
    Fn(ShapeFn),
}

/// How output dtypes follow.
#[derive(Clone, Default)]
pub enum DTypeRule {
    /// PyTorch's promotion over all inputs and runtime scalars.
    #[default]
    Promote,
    /// Promotion, then integers and bools become f32.
    PromoteFloat,
    /// Like that input.
    Input(usize),
    /// The `dtype` attribute.
    Attr,
    /// One per output.
    Fixed(Vec<DType>),
    /// Code.
    Fn(DTypeFn),
}

/// How the op may be sharded along one mesh axis.
#[derive(Clone, Default)]
pub enum SbpRule {
    /// All-B only.
    #[default]
    AllB,
    /// From the scalar expression.
    Elementwise,
    /// Factor text, see [`FactorRule`].
    Factors(String),
    /// Fixed signatures as text.
    Signatures(Vec<String>),
    /// Code.
    Fn(SbpFn),
}

/// A way to carry out signatures that the kernel on the shard alone cannot.
#[derive(Clone)]
pub struct Lowering {
    /// The 1-d signatures it offers.
    pub sbp: SbpFn,
    /// The program.
    pub run: LowerFn,
}

/// An op, declared in one place. Built-in ops use the same public surface as everyone's.
#[derive(Clone)]
pub struct OpDef {
    /// Name space: `oflow` for built-in ops.
    pub domain: String,
    /// Version of this declaration.
    pub version: u32,
    /// One sentence.
    pub doc: String,
    /// Inputs, attributes, outputs.
    pub sig: OpSignature,
    /// What else is known.
    pub traits: OpTraits,
    /// Output shapes.
    pub shape: ShapeRule,
    /// Output dtypes.
    pub dtype: DTypeRule,
    /// The scalar expression of an elementwise op.
    pub expr: Option<Arc<Expr>>,
    /// Overrides of the expression's derivative, `(input, expression over inputs, scalars and `out`)`.
    pub derivatives: Vec<(usize, Expr)>,
    /// 1-d signatures (all-B is always added, last).
    pub sbp: SbpRule,
    /// Signatures that were added to the registered op.
    pub(super) sbp_added: Vec<SbpFn>,
    /// More nd-signatures than the product of 1-d ones.
    pub nd_extra: Option<NdSbpFn>,
    /// Replaces everything.
    pub nd_infer: Option<NdSbpFn>,
    /// Filter over nd-signatures.
    pub nd_valid: Option<NdValidFn>,
    /// Lowerings.
    pub lowerings: Vec<Lowering>,
    /// Attribute check.
    pub check: Option<CheckFn>,
    /// Check of the runtime attributes' values, at every call and alike on all ranks.
    pub values: Option<ValuesFn>,
    /// Physical attributes; none: unchanged.
    pub localize: Option<LocalizeFn>,
    /// Cost.
    pub flops: Option<FlopsFn>,
    /// The output is another window onto input 0.
    pub view: Option<ViewFn>,
    /// Gradient.
    pub grad: Grad,
    /// What autocast does with the float inputs; none: what the table of built-in ops says, else nothing.
    pub cast: Option<CastPolicy>,
    /// What the interpreter does where the op changes a layout instead of computing; such an op has no kernel.
    pub layout: Option<LayoutOp>,
    /// Kernels.
    pub kernels: Vec<KernelDef>,
    /// Calls that the op harness runs: `"f32[4, 6] f32[6]; dim=1"`. An op brings its own tests.
    pub samples: Vec<String>,
}

impl OpDef {
    /// Starts a declaration from its text (grammar: [`OpSignature`]).
    pub fn new(text: &str) -> Result<OpDef> {
        Ok(OpDef {
            domain: "oflow".to_string(),
            version: 1,
            doc: String::new(),
            sig: OpSignature::parse(text)?,
            traits: OpTraits::default(),
            shape: ShapeRule::default(),
            dtype: DTypeRule::default(),
            expr: None,
            derivatives: vec![],
            sbp: SbpRule::default(),
            sbp_added: vec![],
            nd_extra: None,
            nd_infer: None,
            nd_valid: None,
            lowerings: vec![],
            check: None,
            values: None,
            localize: None,
            flops: None,
            view: None,
            grad: Grad::default(),
            cast: None,
            layout: None,
            kernels: vec![],
            samples: vec![],
        })
    }

    /// An elementwise op from one scalar expression: shapes broadcast, dtypes promote, the kernel, the SBP signatures and
    /// the gradient are derived.
    ///
    /// ```
    /// use oflow::ops::OpDef;
    /// let op = OpDef::elementwise("leaky(x: float; alpha: runtime float = 0.01) -> y", "select(x >= 0, x, alpha * x)")?;
    /// assert_eq!(op.sig.name, "leaky");
    /// # Ok::<(), oflow::Error>(())
    /// ```
    pub fn elementwise(text: &str, expr: &str) -> Result<OpDef> {
        let mut def = OpDef::new(text)?;
        let names: Vec<&str> = def.sig.inputs.iter().map(|i| i.name.as_str()).collect();
        let scalars: Vec<&str> = def.sig.runtime.iter().map(|a| a.name.as_str()).collect();
        let expr =
            Expr::parse(expr, &names, &scalars).map_err(|e| Error::parse(format!("op {}: {e}", def.sig.name)))?;
        def.set_expr(Arc::new(expr));
        Ok(def)
    }

    /// Makes it the elementwise op of that expression.
    pub fn set_expr(&mut self, expr: Arc<Expr>) {
        self.traits.strided = true;
        self.shape = ShapeRule::Broadcast;
        self.sbp = SbpRule::Elementwise;
        self.grad = Grad::FromExpr;
        self.kernels = vec![elementwise_cpu(expr.clone()), elementwise_cuda(expr.clone())];
        self.expr = Some(expr);
    }

    /// Sets the one-sentence description.
    #[must_use]
    pub fn doc(mut self, doc: &str) -> OpDef {
        self.doc = doc.to_string();
        self
    }
    /// Sets the name space.
    #[must_use]
    pub fn domain(mut self, domain: &str) -> OpDef {
        self.domain = domain.to_string();
        self
    }
    /// Changes traits.
    #[must_use]
    pub fn traits(mut self, f: impl FnOnce(&mut OpTraits)) -> OpDef {
        f(&mut self.traits);
        self
    }
    /// Kernels take any strides.
    #[must_use]
    pub fn strided(self) -> OpDef {
        self.traits(|t| t.strided = true)
    }
    /// Sets the shape rule.
    #[must_use]
    pub fn shape_rule(mut self, rule: ShapeRule) -> OpDef {
        self.shape = rule;
        self
    }
    /// Output shapes by code.
    #[must_use]
    pub fn shapes(mut self, f: impl Fn(&InferCtx<'_>) -> Result<SmallVec<[Dims; 2]>> + Send + Sync + 'static) -> OpDef {
        self.shape = ShapeRule::Fn(Arc::new(f));
        self
    }
    /// The one output's shape by code.
    #[must_use]
    pub fn shape1(self, f: impl Fn(&InferCtx<'_>) -> Result<Dims> + Send + Sync + 'static) -> OpDef {
        self.shapes(move |c| Ok([f(c)?].into_iter().collect()))
    }
    /// Sets the dtype rule.
    #[must_use]
    pub fn dtype(mut self, rule: DTypeRule) -> OpDef {
        self.dtype = rule;
        self
    }
    /// Overrides the derivative with respect to one input.
    pub fn derivative(mut self, input: usize, expr: &str) -> Result<OpDef> {
        let names: Vec<&str> = self.sig.inputs.iter().map(|i| i.name.as_str()).collect();
        let scalars: Vec<&str> = self.sig.runtime.iter().map(|a| a.name.as_str()).collect();
        let e = Expr::parse(expr, &names, &scalars).map_err(|e| Error::parse(format!("op {}: {e}", self.sig.name)))?;
        self.derivatives.push((input, e));
        Ok(self)
    }
    /// Signatures by factor text.
    #[must_use]
    pub fn factors(mut self, text: &str) -> OpDef {
        self.sbp = SbpRule::Factors(text.to_string());
        self
    }
    /// Fixed signatures.
    #[must_use]
    pub fn signatures(mut self, rows: &[&str]) -> OpDef {
        self.sbp = SbpRule::Signatures(rows.iter().map(|r| r.to_string()).collect());
        self
    }
    /// Signatures by code (OneFlow's `GetSbp`).
    #[must_use]
    pub fn get_sbp(mut self, f: impl Fn(&InferCtx<'_>) -> Result<Vec<Signature>> + Send + Sync + 'static) -> OpDef {
        self.sbp = SbpRule::Fn(Arc::new(f));
        self
    }
    /// What autocast does with the float inputs.
    #[must_use]
    pub fn autocast(mut self, policy: CastPolicy) -> OpDef {
        self.cast = Some(policy);
        self
    }
    /// Adds a lowering.
    #[must_use]
    pub fn lowering(
        mut self,
        sbp: impl Fn(&InferCtx<'_>) -> Result<Vec<Signature>> + Send + Sync + 'static,
        run: impl Fn(&mut dyn super::Emit, &super::LowerCall<'_>) -> Result<Vec<super::Value>> + Send + Sync + 'static,
    ) -> OpDef {
        self.lowerings.push(Lowering { sbp: Arc::new(sbp), run: Arc::new(run) });
        self
    }
    /// Physical attributes.
    #[must_use]
    pub fn localize(mut self, f: impl Fn(&LocalizeCtx<'_>) -> Result<Attrs> + Send + Sync + 'static) -> OpDef {
        self.localize = Some(Arc::new(f));
        self
    }
    /// Attribute check.
    #[must_use]
    pub fn check(mut self, f: impl Fn(&InferCtx<'_>) -> Result<()> + Send + Sync + 'static) -> OpDef {
        self.check = Some(Arc::new(f));
        self
    }
    /// Check of the runtime attributes' values: it runs at every call, before anything is computed or moved.
    #[must_use]
    pub fn values(mut self, f: impl Fn(&GivenValues<'_>) -> Result<()> + Send + Sync + 'static) -> OpDef {
        self.values = Some(Arc::new(f));
        self
    }
    /// Cost.
    #[must_use]
    pub fn flops(mut self, f: impl Fn(&InferCtx<'_>) -> Result<u64> + Send + Sync + 'static) -> OpDef {
        self.flops = Some(Arc::new(f));
        self
    }
    /// The output is another window onto input 0 where this says so; the kernel is for where it does not.
    #[must_use]
    pub fn view(
        mut self,
        f: impl Fn(&[usize], &[isize], &Attrs, &[usize]) -> Option<(isize, Strides)> + Send + Sync + 'static,
    ) -> OpDef {
        self.view = Some(Arc::new(f));
        self
    }
    /// Gradient.
    #[must_use]
    pub fn grad(mut self, grad: Grad) -> OpDef {
        self.grad = grad;
        self
    }
    /// Makes it a change of layout, which the interpreter carries out.
    #[must_use]
    pub fn layout(mut self, layout: LayoutOp) -> OpDef {
        self.layout = Some(layout);
        self
    }
    /// Adds a kernel.
    #[must_use]
    pub fn kernel(mut self, k: KernelDef) -> OpDef {
        self.kernels.push(k);
        self
    }
    /// Adds a CPU kernel that always applies.
    #[must_use]
    pub fn cpu(self, run: impl Fn(&super::KernelCx<'_>) -> Result<()> + Send + Sync + 'static) -> OpDef {
        let name = format!("{}_cpu", self.sig.name);
        self.kernel(KernelDef::cpu(&name, run))
    }
    /// Adds a CUDA kernel that always applies.
    #[must_use]
    pub fn cuda(self, run: impl Fn(&super::KernelCx<'_>) -> Result<()> + Send + Sync + 'static) -> OpDef {
        let name = format!("{}_cuda", self.sig.name);
        self.kernel(KernelDef::cuda(&name, run))
    }
    /// Adds calls for the op harness.
    #[must_use]
    pub fn samples(mut self, s: &[&str]) -> OpDef {
        self.samples.extend(s.iter().map(|s| s.to_string()));
        self
    }

    /// Checks inputs against the grammar, then infers the logical outputs.
    ///
    /// # Errors
    /// Logical ones only: the same on every rank.
    pub fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[TensorType; 2]>> {
        self.check_inputs(ctx)?;
        self.check_attrs(ctx)?;
        if let Some(check) = &self.check {
            check(ctx)?;
        }
        let n = self.sig.outputs.len();
        let shapes: SmallVec<[Dims; 2]> = match &self.shape {
            ShapeRule::SameAsInput => SmallVec::from_elem(ctx.input(0)?.shape.clone(), n),
            ShapeRule::Broadcast => {
                SmallVec::from_elem(broadcast_shapes(ctx.present().map(|t| t.shape.as_slice()).collect::<Vec<_>>())?, n)
            }
            ShapeRule::Attr => SmallVec::from_elem(ctx.sizes("shape")?, n),
            ShapeRule::Fn(f) => f(ctx)?,
        };
        // An op that works on any number of outputs (split) says so by its shape rule.
        let n = shapes.len();
        let dtypes: SmallVec<[DType; 2]> = match &self.dtype {
            DTypeRule::Promote => SmallVec::from_elem(promote(ctx)?, n),
            DTypeRule::PromoteFloat => {
                let d = promote(ctx)?;
                SmallVec::from_elem(if d.is_float() { d } else { DType::F32 }, n)
            }
            DTypeRule::Input(i) => SmallVec::from_elem(ctx.input(*i)?.dtype, n),
            DTypeRule::Attr => SmallVec::from_elem(ctx.dtype_attr("dtype")?, n),
            DTypeRule::Fixed(v) => v.iter().copied().collect(),
            DTypeRule::Fn(f) => f(ctx)?,
        };
        shapes.into_iter().zip(dtypes).map(|(shape, dtype)| TensorType::checked(&shape, dtype)).collect()
    }

    /// Checks that the attributes are those of the declaration.
    fn check_attrs(&self, ctx: &InferCtx<'_>) -> Result<()> {
        let (attrs, runtime) = (self.sig.attrs.len(), self.sig.runtime.len());
        if ctx.attrs.len() != attrs || ctx.runtime_kinds.len() != runtime {
            return Err(Error::argument(format!(
                "takes {attrs} plan attributes and {runtime} runtime attributes, {} and {} given",
                ctx.attrs.len(),
                ctx.runtime_kinds.len()
            )));
        }
        for (def, given) in self.sig.attrs.iter().zip(ctx.attrs) {
            if !def.kind.holds(given) {
                return Err(Error::argument(format!(
                    "attribute '{}' must be {}, not {given}",
                    def.name,
                    def.kind.name()
                )));
            }
        }
        Ok(())
    }

    /// The dtype that an elementwise op computes in, whatever the dtype of the output that it writes: that of PyTorch's
    /// promotion over inputs and numbers where the op promotes, else the one to which inputs and output promote.
    pub fn compute_dtype(&self, ctx: &InferCtx<'_>, out: DType) -> Result<DType> {
        match &self.dtype {
            DTypeRule::Promote | DTypeRule::Fixed(_) => promote(ctx),
            DTypeRule::PromoteFloat => promote(ctx).map(|d| if d.is_float() { d } else { DType::F32 }),
            DTypeRule::Input(_) | DTypeRule::Attr | DTypeRule::Fn(_) => {
                let inputs: SmallVec<[DType; 4]> = ctx.present().map(|t| t.dtype).collect();
                Ok(common_dtype(&inputs, out))
            }
        }
    }

    fn check_inputs(&self, ctx: &InferCtx<'_>) -> Result<()> {
        let defs = &self.sig.inputs;
        if given_none(&self.sig) && ctx.inputs.is_empty() {
            return Ok(());
        }
        let (given, repeating) = (ctx.inputs.len(), self.sig.repeating());
        if given < defs.len() - repeating || (repeating == 0 && given > defs.len()) {
            return Err(Error::argument(format!("takes {} inputs, {given} given", defs.len())));
        }
        if repeating > 0 && (given < defs.len() || !(given - defs.len()).is_multiple_of(repeating)) {
            let names: Vec<&str> = defs[defs.len() - repeating..].iter().map(|d| d.name.as_str()).collect();
            return Err(Error::argument(match names.as_slice() {
                [name] => format!("needs at least one tensor in '{name}'"),
                _ => format!("needs at least one tensor each for {}, and as many of each", names.join(", ")),
            }));
        }
        for (i, t) in ctx.inputs.iter().enumerate() {
            let Some(d) = self.sig.input_def(i) else { continue };
            match t {
                None if !d.optional => return Err(Error::argument(format!("input '{}' is missing", d.name))),
                Some(t) if !d.dtypes.contains(t.dtype) => {
                    return Err(Error::dtype(format!(
                        "input '{}' must be {}, not {}",
                        d.name,
                        d.dtypes.name(),
                        t.dtype
                    ))
                    .help("convert it with `.cast(dtype)`"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The 1-d signatures for these logical inputs and outputs, in declared order, all-B first.
    ///
    /// # Errors
    /// When a row of the declaration splits a dim that a tensor of the call does not have.
    pub fn signatures_1d(&self, ctx: &InferCtx<'_>, outs: &[TensorType]) -> Result<Vec<Signature>> {
        let mut found = match &self.sbp {
            SbpRule::AllB => vec![],
            SbpRule::Elementwise => {
                let expr = self
                    .expr
                    .as_ref()
                    .ok_or_else(|| Error::registry(format!("{} has no expression", self.sig.name)))?;
                let ins: Vec<(&[usize], DType)> = ctx.present().map(|t| (t.shape.as_slice(), t.dtype)).collect();
                elementwise_signatures(expr, &ins, (&outs[0].shape, outs[0].dtype))
            }
            SbpRule::Factors(text) => {
                let ins: Vec<&[usize]> = ctx.present().map(|t| t.shape.as_slice()).collect();
                let os: Vec<&[usize]> = outs.iter().map(|t| t.shape.as_slice()).collect();
                let rule = FactorRule::parse(text)?;
                self.check_factors(&rule, text, ctx, outs)?;
                rule.signatures(&ins, &os)
            }
            SbpRule::Signatures(rows) => rows.iter().map(|r| r.parse()).collect::<Result<_>>()?,
            SbpRule::Fn(f) => f(ctx)?,
        };
        for more in &self.sbp_added {
            found.extend(more(ctx)?);
        }
        for (i, l) in self.lowerings.iter().enumerate() {
            found.extend((l.sbp)(ctx)?.into_iter().map(|s| s.lowered(i as u8)));
        }
        // First, because ties go to the first: what is whole stays whole where splitting it costs nothing either.
        found.insert(0, Signature::broadcast(ctx.inputs.len(), outs.len()));
        // bool has no P(sum); absent inputs are B; drop repeats.
        let legal = |s: &Signature| {
            let bad = |d: DType, s: Sbp| d == DType::Bool && s == Sbp::PARTIAL_SUM;
            !(ctx.inputs.iter().zip(&s.inputs).any(|(t, s)| t.as_ref().is_some_and(|t| bad(t.dtype, *s)))
                || outs.iter().zip(&s.outputs).any(|(t, s)| bad(t.dtype, *s)))
        };
        let mut unique: Vec<Signature> = Vec::with_capacity(found.len());
        for mut s in found {
            for (t, s) in ctx.inputs.iter().zip(s.inputs.iter_mut()) {
                if t.is_none() {
                    *s = Sbp::Broadcast;
                }
            }
            if legal(&s) && !unique.iter().any(|u| u.inputs == s.inputs && u.outputs == s.outputs) {
                unique.push(s);
            }
        }
        for s in &unique {
            let row = || format!("the signature {s}");
            let split = |list: &[Sbp], i: usize| list.get(i).and_then(|s| s.split_dim());
            self.check_dims(ctx, outs, &row, |i| split(&s.inputs, i), |o| split(&s.outputs, o))?;
        }
        Ok(unique)
    }

    /// Checks that a row of the sharding rule splits only dims that the tensors have; the largest one split of each input
    /// and output is given.
    pub(crate) fn check_dims(
        &self,
        ctx: &InferCtx<'_>,
        outs: &[TensorType],
        row: &dyn Fn() -> String,
        input: impl Fn(usize) -> Option<usize>,
        output: impl Fn(usize) -> Option<usize>,
    ) -> Result<()> {
        let ins = ctx.inputs.iter().enumerate().filter_map(|(i, t)| Some((true, i, t.as_ref()?, input(i)?)));
        let outs = outs.iter().enumerate().filter_map(|(o, t)| Some((false, o, t, output(o)?)));
        match ins.chain(outs).find(|(.., t, dim)| *dim >= t.shape.len()) {
            None => Ok(()),
            Some((is_input, i, t, dim)) => Err(Error::registry(format!(
                "{} declares {}, but {} is {t}, which has no dim {dim}",
                self.sig.name,
                row(),
                self.part(is_input, i)
            ))
            .help("a rule that depends on the tensors' dims is given as a function, with `get_sbp`")),
        }
    }

    fn check_factors(&self, rule: &FactorRule, text: &str, ctx: &InferCtx<'_>, outs: &[TensorType]) -> Result<()> {
        let present = ctx.inputs.iter().enumerate().filter_map(|(i, t)| Some((true, i, t.as_ref()?)));
        let ins = present.zip(rule.input_factors());
        let outs = outs.iter().enumerate().map(|(o, t)| (false, o, t)).zip(rule.output_factors());
        match ins.chain(outs).find(|((.., t), needed)| t.shape.len() < *needed) {
            None => Ok(()),
            Some(((is_input, i, t), needed)) => Err(Error::registry(format!(
                "{} declares the factors {text}, but {} is {t}: they need {needed} dims",
                self.sig.name,
                self.part(is_input, i)
            ))),
        }
    }

    /// `input 'x'`, `output 'y'`.
    fn part(&self, is_input: bool, i: usize) -> String {
        let name = match is_input {
            true => self.sig.input_def(i).map(|d| d.name.as_str()),
            false => self.sig.outputs.get(i).map(|name| name.as_str()),
        };
        let what = if is_input { "input" } else { "output" };
        name.map_or_else(|| format!("{what} {i}"), |n| format!("{what} '{n}'"))
    }

    /// Checks what a declaration alone shows of its sharding rule: that its text can be read and is of as many inputs and
    /// outputs as the op has.
    pub(super) fn check_rule(&self) -> Result<()> {
        let read = |e: Error| Error::registry(format!("op {}: {}", self.sig.name, e.message()));
        let (ins, outs) = (self.sig.inputs.len(), self.sig.outputs.len());
        // A list of any length is known by the call; outputs may depend on attributes.
        let any = (self.sig.repeating() > 0, matches!(self.shape, ShapeRule::Fn(_)));
        let counts = |what: String, given: (usize, usize)| {
            if (any.0 || given.0 == ins) && (any.1 || given.1 == outs) {
                return Ok(());
            }
            let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
            let has = format!("{} and {}", count(ins, "input"), count(outs, "output"));
            Err(Error::registry(format!("op {} declares {what}, but it has {has}", self.sig.name)))
        };
        match &self.sbp {
            SbpRule::Signatures(rows) => rows.iter().try_for_each(|row| {
                let s: Signature = row.parse().map_err(read)?;
                counts(format!("the signature {s}"), (s.inputs.len(), s.outputs.len()))
            }),
            SbpRule::Factors(text) => {
                let rule = FactorRule::parse(text).map_err(read)?;
                let given = (rule.input_factors().count(), rule.output_factors().count());
                let optional = self.sig.inputs.iter().any(|d| d.optional);
                if optional { Ok(()) } else { counts(format!("the factors {text}"), given) }
            }
            SbpRule::AllB | SbpRule::Elementwise | SbpRule::Fn(_) => Ok(()),
        }
    }

    /// Physical plan attributes for one rank's boxes.
    pub fn localized(&self, ctx: &InferCtx<'_>, ins: &[Option<ShardBox>], outs: &[ShardBox]) -> Result<Attrs> {
        match &self.localize {
            None => Ok(ctx.attrs.clone()),
            Some(f) => f(&LocalizeCtx { logical: ctx, inputs: ins, outputs: outs }),
        }
    }

    /// Full name with domain and version, as hashed between ranks.
    pub fn full_name(&self) -> String {
        format!("{}::{}@{}", self.domain, self.sig.name, self.version)
    }
}

/// Whether a call may have no inputs although the op takes some: `xs?...`.
fn given_none(sig: &OpSignature) -> bool {
    matches!(sig.inputs.as_slice(), [one] if one.variadic && one.optional)
}

impl fmt::Debug for OpDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sig)
    }
}

/// PyTorch's promotion: tensors with dims, then 0-dim tensors of a higher kind, then scalars of a higher kind.
fn promote(ctx: &InferCtx<'_>) -> Result<DType> {
    let fold = |zero_dim: bool| {
        ctx.present().filter(|t| t.shape.is_empty() == zero_dim).map(|t| t.dtype).reduce(|a, b| a.promote(b))
    };
    let mut d = match (fold(false), fold(true)) {
        (Some(d), Some(z)) if z.kind() > d.kind() => z.promote(d),
        (Some(d), _) | (None, Some(d)) => d,
        (None, None) => return Err(Error::dtype("no input to take the dtype from")),
    };
    let kind = ctx.runtime_kinds.iter().copied().max().unwrap_or(DTypeKind::Bool);
    d = d.promote_scalar(kind);
    Ok(d)
}

/// The CPU kernel of an expression: compiled per plan for its dtypes.
fn elementwise_cpu(expr: Arc<Expr>) -> KernelDef {
    use oflow_kernels::cpu::elementwise::Program;
    let kernel = KernelDef::cpu("elementwise_cpu", |cx| {
        let views: SmallVec<[oflow_kernels::View; 4]> = cx.inputs.iter().flatten().cloned().collect();
        Ok(program::<Program>(cx)?.run(&views, cx.runtime, cx.output(0))?)
    });
    reusing(kernel, &expr).with_state(move |ctx, outs| {
        let dtypes: Vec<DType> = ctx.present().map(|t| t.dtype).collect();
        let compute = ctx.op.compute_dtype(ctx, outs[0].dtype)?;
        let state: KernelState = Arc::new(Program::compile_in(&expr, &dtypes, outs[0].dtype, compute)?);
        Ok(state)
    })
}

/// The CUDA kernel of an expression: written per plan for its dtypes, compiled at the first call.
fn elementwise_cuda(expr: Arc<Expr>) -> KernelDef {
    use oflow_kernels::cuda::elementwise::Program;
    let kernel = KernelDef::cuda("elementwise_cuda", |cx| {
        let views: SmallVec<[oflow_kernels::View; 4]> = cx.inputs.iter().flatten().cloned().collect();
        Ok(program::<Program>(cx)?.run(cx.queue()?, &views, cx.runtime, cx.output(0))?)
    });
    reusing(kernel, &expr).with_state(move |ctx, outs| {
        let dtypes: Vec<DType> = ctx.present().map(|t| t.dtype).collect();
        let compute = ctx.op.compute_dtype(ctx, outs[0].dtype)?;
        let state: KernelState = Arc::new(Program::compile_in(&expr, &dtypes, outs[0].dtype, compute)?);
        Ok(state)
    })
}

fn program<'a, P: 'static>(cx: &super::KernelCx<'a>) -> Result<&'a P> {
    let found = cx.state.and_then(|s| s.downcast_ref::<P>());
    found.ok_or_else(|| Error::device("elementwise kernel without its program"))
}

/// The output may take the memory of any input that the expression uses.
fn reusing(kernel: KernelDef, expr: &Expr) -> KernelDef {
    (0..8).filter(|i| expr.uses_input(*i)).fold(kernel, |k, i| k.may_reuse(i, 0))
}
