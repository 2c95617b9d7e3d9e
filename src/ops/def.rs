//! The declaration of an op: plain data with function pointers for what data cannot say.

use super::attr::{Attrs, RuntimeAttrs};
use super::autocast::CastPolicy;
use super::dtype_lowering::DTypeLowering;
use super::grad::{Grad, LowerFn};
use super::hooks::Hooks;
use super::infer::{InferCtx, LocalizeCtx};
use super::kernel::KernelDef;
use super::layout::LayoutOp;
use super::named::{AttrsOf, Which, attrs_by_name};
use super::registry::BUILTIN;
use super::sbp_hints::SbpHints;
use super::shape_text::ShapeText;
use super::signature::OpSignature;
use super::windows::WindowsFn;
use crate::error::{Error, Result};
use crate::placement::Placement;
use crate::sbp::{NdSbp, Signature};
use oflow_kernels::expr::Expr;
use oflow_kernels::{DType, Dims, ShardBox, Strides};
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Properties of an op besides its shapes.
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
    /// Not shown in lists, and not to be called from Python: what gradients and functions in Rust or C++ call.
    pub hidden: bool,
    /// Rust programs have no method for it: gradients, optimizers or functions of several ops call it.
    pub by_name_only: bool,
    /// The expression computes with the numbers that elements are stored as: inputs and output may be of registered dtypes.
    pub stored: bool,
    /// The expression makes complex numbers of real ones.
    pub makes_complex: bool,
    /// A call with several entries of the inputs that repeat does what a call for each does, in any order.
    pub separable: bool,
    /// An element of the output is made of the elements of the inputs at the same index.
    pub elementwise: bool,
}

/// Computes the logical shapes of the outputs.
pub type ShapeFn = Arc<dyn Fn(&InferCtx<'_>) -> Result<SmallVec<[Dims; 2]>> + Send + Sync>;
/// Computes the dtypes of the outputs.
pub type DTypeFn = Arc<dyn Fn(&InferCtx<'_>) -> Result<SmallVec<[DType; 2]>> + Send + Sync>;
/// 1-d signatures.
pub type SbpFn = Arc<dyn Fn(&InferCtx<'_>) -> Result<Vec<Signature>> + Send + Sync>;
/// More complete nd-signatures (inputs, outputs) than the product over mesh axes.
pub type NdSbpFn = Arc<dyn Fn(&InferCtx<'_>, &Placement) -> Result<Vec<NdSignature>> + Send + Sync>;
/// Replaces the product over mesh axes: complete nd-signatures.
pub type NdInferFn = Arc<dyn Fn(&InferCtx<'_>, &Placement, &SbpHints<'_>) -> Result<Vec<NdSignature>> + Send + Sync>;
/// The signature that an op itself takes for a call, if it does not leave that to the costs.
pub type NdChooseFn =
    Arc<dyn Fn(&InferCtx<'_>, &Placement, &SbpHints<'_>) -> Result<Option<NdSignature>> + Send + Sync>;
/// Whether an nd-signature is exact on every rank of the placement.
pub type NdValidFn = Arc<dyn Fn(&InferCtx<'_>, &Placement, &NdSignature) -> bool + Send + Sync>;
/// Computes the physical attributes of one rank's shards.
pub type LocalizeFn = Arc<dyn Fn(&LocalizeCtx<'_>) -> Result<Attrs> + Send + Sync>;
/// Refuses bad attributes.
pub type CheckFn = Arc<dyn Fn(&InferCtx<'_>) -> Result<()> + Send + Sync>;
/// Refuses numbers that a call was given as runtime attributes.
pub type ValuesFn = Arc<dyn Fn(&GivenValues<'_>) -> Result<()> + Send + Sync>;
/// Floating point operations of one call on these (physical) inputs.
pub type FlopsFn = Arc<dyn Fn(&InferCtx<'_>) -> Result<u64> + Send + Sync>;

/// The numbers of one call, which no plan knows, with what is known of the call besides.
pub struct GivenValues<'a> {
    /// The op that is called.
    pub op: &'a OpDef,
    /// dtypes of the inputs.
    pub dtypes: &'a [Option<DType>],
    /// Plan attributes in declared order.
    pub attrs: &'a Attrs,
    /// Runtime attributes in declared order.
    pub runtime: &'a RuntimeAttrs,
}

impl<'a> GivenValues<'a> {
    fn named(&self) -> AttrsOf<'a> {
        AttrsOf { op: self.op, attrs: self.attrs, runtime: Some(self.runtime) }
    }
    attrs_by_name!(self, self.named(), 'a);

    /// dtype of input `i`, by position or name, which must be there.
    ///
    /// # Errors
    /// The call has no such input.
    pub fn dtype(&self, i: impl Which) -> Result<DType> {
        let i = i.input_of(self.op)?;
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
    /// Like input 0, for every output; `[1]` of an op without inputs.
    #[default]
    SameAsInput,
    /// Broadcast of all inputs.
    Broadcast,
    /// The `shape` attribute.
    Attr,
    /// A text such as `[m, k], [k, n] -> [m, n]`.
    Text(Arc<ShapeText>),
    /// A function of the inputs and attributes.
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
    /// Promotion, then bools become i64.
    PromoteInt,
    /// Like that input.
    Input(usize),
    /// The `dtype` attribute.
    Attr,
    /// One per output.
    Fixed(Vec<DType>),
    /// A function of the inputs and attributes.
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
    /// Factor text, see [`FactorRule`](crate::sbp::FactorRule).
    Factors(String),
    /// Fixed signatures as text.
    Signatures(Vec<String>),
    /// A function that gives 1-d signatures.
    Fn(SbpFn),
}

/// Source of the length of dim 0 of all outputs where it depends on values. Inference then gives the greatest length that
/// there can be, of a shard as of a whole tensor.
///
/// On global tensors each rank makes the part of the result that follows from its shard. The parts of the ranks along `S(0)`
/// stand one after the other, so an input may be `S(0)` only where the result of the whole is that. The ranks tell each other
/// how long their parts are, and one exchange makes the balanced split of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LengthBy {
    /// An op without attributes that must be given: called on one input, its result (one i64) is the length.
    Op {
        /// Name of the op.
        name: String,
        /// The input that it is called on.
        input: usize,
    },
    /// The kernel: it is given one output more than the op declares, `i64[1]`, and writes the length there. The others have
    /// the greatest length, of which it fills the first part.
    Kernel,
}

/// A way to carry out signatures that the kernel on the shard alone cannot.
#[derive(Clone)]
pub struct Lowering {
    /// The 1-d signatures it offers.
    pub sbp: SbpFn,
    /// Code or declared steps that make the lowering.
    pub by: LoweredBy,
}

/// How a lowering carries a call out.
#[derive(Clone)]
pub enum LoweredBy {
    /// By a program of ops and boxings.
    Program(LowerFn),
    /// By the kernel, which reads more of the inputs than the shards ([`OpDef::windows`]).
    Windows(WindowsFn),
}

/// An op, declared in one place. Built-in ops use the same public surface as everyone's.
#[derive(Clone)]
pub struct OpDef {
    /// Domain of the name: `oflow` for built-in ops.
    pub domain: SmolStr,
    /// Version of this declaration.
    pub version: u32,
    /// One sentence; more paragraphs of Markdown may follow.
    pub doc: String,
    /// Heading under which lists show it.
    pub subject: Cow<'static, str>,
    /// Functions that are this op, as text ([`FnSig`](super::FnSig)). Without one the op is a function under its own name.
    pub functions: Vec<Cow<'static, str>>,
    /// Inputs, attributes, outputs.
    pub sig: OpSignature,
    /// Properties of the op besides its shapes.
    pub traits: OpTraits,
    /// Rule for the shapes of the outputs.
    pub shape: ShapeRule,
    /// Rule for the dtypes of the outputs.
    pub dtype: DTypeRule,
    /// The scalar expression of an elementwise op.
    pub expr: Option<Arc<Expr>>,
    /// Overrides of the expression's derivative, `(input, expression over inputs, scalars and `out`)`.
    pub derivatives: Vec<(usize, Expr)>,
    /// 1-d signatures (all-B is always added, last).
    pub sbp: SbpRule,
    /// Inputs in which the op is linear while the others are whole, by name, each with the outputs that are (none: all).
    pub linear: Vec<(SmolStr, Option<Vec<SmolStr>>)>,
    /// Inputs that the op adds to what it makes of the others, as a bias.
    pub addends: Vec<usize>,
    /// Signatures that were added to the registered op.
    pub(super) sbp_added: Vec<SbpFn>,
    /// More nd-signatures than the product of 1-d ones.
    pub nd_extra: Option<NdSbpFn>,
    /// Gives whole nd signatures; replaces the 1-d rules.
    pub nd_infer: Option<NdInferFn>,
    /// Filter over nd-signatures.
    pub nd_valid: Option<NdValidFn>,
    /// Takes one of the signatures.
    pub nd_choose: Option<NdChooseFn>,
    /// The texts that these three were read from, where they were.
    pub(super) nd_rows: Vec<String>,
    /// Lowerings into other ops, in declared order.
    pub lowerings: Vec<Lowering>,
    /// Check of inputs and attributes before anything is inferred.
    pub check: Option<CheckFn>,
    /// Check of the runtime attributes' values, at every call and alike on all ranks.
    pub values: Option<ValuesFn>,
    /// Physical attributes; none: unchanged.
    pub localize: Option<LocalizeFn>,
    /// Estimates the FLOPs of a call, for the cost model.
    pub flops: Option<FlopsFn>,
    /// The output is another window onto input 0.
    pub view: Option<ViewFn>,
    /// Gradient rule of the op.
    pub grad: Grad,
    /// Decisions that few ops take about their calls.
    pub hooks: Hooks,
    /// Source of the outputs' length, where that depends on values.
    pub length: Option<LengthBy>,
    /// Autocast policy of the float inputs; `None`: that of the table of built-in ops, else [`CastPolicy::Keep`].
    pub cast: Option<CastPolicy>,
    /// Work of the interpreter where the op changes a layout instead of computing; such an op has no kernel.
    pub layout: Option<LayoutOp>,
    /// How it takes dtypes that its kernels do not compute with.
    pub dtype_lowerings: Vec<DTypeLowering>,
    /// Kernels that come with the declaration. Built-in ops have theirs in the tables of the backends.
    pub kernels: Vec<KernelDef>,
    /// Calls that the op harness runs: `"f32[4, 6] f32[6]; dim=1"`. An op brings its own tests.
    pub samples: Vec<Cow<'static, str>>,
    /// The library that it was loaded from, if it was.
    pub library: Option<Arc<LibraryId>>,
}

/// The library that an op comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryId {
    /// Name that the library declares.
    pub name: SmolStr,
    /// The file that was loaded, or the sources that it was built of.
    pub file: String,
    /// SHA-256 of the file, or of the sources and options, in hexadecimal digits. Ranks compare it.
    pub hash: String,
    /// Whether it holds code of the CUDA runtime. What that launches without naming a stream goes to the default stream, so calls are
    /// ordered with it.
    pub default_stream: bool,
}

/// Name and file.
impl fmt::Display for LibraryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.file)
    }
}

impl OpDef {
    /// Starts a declaration from its text (grammar: [`OpSignature`]).
    pub fn new(text: &str) -> Result<OpDef> {
        Ok(OpDef {
            domain: SmolStr::new_static(BUILTIN),
            version: 1,
            doc: String::new(),
            subject: Cow::Borrowed("Other"),
            functions: vec![],
            sig: OpSignature::parse(text)?,
            traits: OpTraits::default(),
            shape: ShapeRule::default(),
            dtype: DTypeRule::default(),
            expr: None,
            derivatives: vec![],
            sbp: SbpRule::default(),
            linear: vec![],
            addends: vec![],
            sbp_added: vec![],
            nd_extra: None,
            nd_infer: None,
            nd_valid: None,
            nd_choose: None,
            nd_rows: vec![],
            lowerings: vec![],
            check: None,
            values: None,
            localize: None,
            flops: None,
            view: None,
            grad: Grad::default(),
            hooks: Hooks::default(),
            length: None,
            cast: None,
            layout: None,
            dtype_lowerings: vec![],
            kernels: vec![],
            samples: vec![],
            library: None,
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
        let expr = Expr::parse(expr, &names, &scalars).map_err(|e| def.no_expression(expr, e))?;
        if def.sig.outputs.len() != 1 {
            let (name, n) = (&def.sig.name, def.sig.outputs.len());
            return Err(Error::parse(format!("op {name}: an expression gives one output; the declaration has {n}"))
                .help("write `-> y`; an op of several outputs has a kernel"));
        }
        def.set_expr(Arc::new(expr));
        Ok(def)
    }

    /// The error of an expression that cannot be read. An attribute of the plan is a name that it does not know.
    fn no_expression(&self, expr: &str, e: oflow_kernels::KernelError) -> Error {
        let words = || expr.split(|c: char| !c.is_alphanumeric() && c != '_');
        let found = Error::parse(format!("op {}: {e}", self.sig.name));
        match self.sig.attrs.iter().find(|a| words().any(|w| w == a.name)) {
            None => found,
            Some(a) => found.help(format!(
                "an expression reads inputs and runtime attributes: declare `{}: runtime float`",
                a.name
            )),
        }
    }

    /// Makes it the elementwise op of that expression.
    pub fn set_expr(&mut self, expr: Arc<Expr>) {
        self.traits.strided = true;
        self.traits.elementwise = true;
        self.traits.makes_complex = expr.makes_complex();
        self.shape = ShapeRule::Broadcast;
        self.sbp = SbpRule::Elementwise;
        self.grad = Grad::FromExpr;
        self.expr = Some(expr);
    }

    /// Sets the description: one sentence; more paragraphs of Markdown may follow.
    #[must_use]
    pub fn doc(mut self, doc: &str) -> OpDef {
        self.doc = doc.to_string();
        self
    }
    /// Adds a function that is this op, in the grammar of [`FnSig`](super::FnSig). Its parameters are inputs and attributes of the
    /// same names; attributes that it lacks have their defaults. A function of an op of another domain is called as `domain.name`.
    /// Several ops may give functions of one name: these are overloads, tried in the order of the ops.
    ///
    /// ```
    /// use oflow::ops::{OpDef, register};
    /// let op = OpDef::elementwise("scaled(x: float; by: runtime float = 2.0) -> y", "x * by")?;
    /// register(op.domain("mine").function("scaled(Tensor x, *, Float by=2.0) -> Tensor"))?;
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[must_use]
    pub fn function(mut self, text: &str) -> OpDef {
        self.functions.push(Cow::Owned(text.to_string()));
        self
    }
    /// Sets the heading under which lists show it.
    #[must_use]
    pub fn subject(mut self, subject: &'static str) -> OpDef {
        self.subject = Cow::Borrowed(subject);
        self
    }
    /// Leaves it without a method in Rust.
    #[must_use]
    pub fn by_name_only(self) -> OpDef {
        self.traits(|t| t.by_name_only = true)
    }
    /// Declares that kernels refuse some values of inputs, such as indices out of range: so they run although all outputs
    /// are empty.
    #[must_use]
    pub fn checks_values(self) -> OpDef {
        self.traits(|t| t.run_empty = true)
    }
    /// Sets the domain of the name; `oflow` unless set.
    #[must_use]
    pub fn domain(mut self, domain: &str) -> OpDef {
        self.domain = domain.into();
        self
    }
    /// Changes the op's traits by `f`.
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
    /// Shape of the only output by code.
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
        let e = Expr::parse(expr, &names, &scalars).map_err(|e| self.no_expression(expr, e))?;
        self.derivatives.push((input, e));
        Ok(self)
    }
    /// Signatures by factor text. It says which dims may be split, and that all dims of one letter have one size: a call with other inputs is
    /// an error. `...` are batch dims, which broadcast. See [`OpDef::linear_in`] for partial sums.
    #[must_use]
    pub fn factors(mut self, text: &str) -> OpDef {
        self.sbp = SbpRule::Factors(text.to_string());
        self
    }
    /// Says for a factor rule that every output is linear in each of these inputs alone, while the other inputs are whole: then that
    /// input may be `P(sum)`, and the outputs are too.
    #[must_use]
    pub fn linear_in(mut self, inputs: &[&str]) -> OpDef {
        self.linear.extend(inputs.iter().map(|i| (SmolStr::new(i), None)));
        self
    }
    /// As [`OpDef::linear_in`] for an input of which only these outputs depend; the others are whole.
    #[must_use]
    pub fn linear_for(mut self, input: &str, outputs: &[&str]) -> OpDef {
        self.linear.push((input.into(), Some(outputs.iter().map(SmolStr::new).collect())));
        self
    }
    /// Says that the op adds this input to what it makes of the others, as a bias is added to a product. Zeros in its place change no
    /// number, so the choice may make it `P(sum)` where a signature asks for that. It makes no other input partial.
    ///
    /// # Errors
    /// The op has no such input.
    pub fn adds(mut self, input: impl Which) -> Result<OpDef> {
        self.addends.push(input.input_of(&self)?);
        Ok(self)
    }
    /// Fixed signatures, in the place of any rule before them.
    #[must_use]
    pub fn signatures(mut self, rows: &[&str]) -> OpDef {
        self.sbp = SbpRule::Signatures(rows.iter().map(|r| r.to_string()).collect());
        self.linear.clear();
        self
    }
    /// Signatures by code (OneFlow's `GetSbp`), in the place of any rule before it.
    #[must_use]
    pub fn get_sbp(mut self, f: impl Fn(&InferCtx<'_>) -> Result<Vec<Signature>> + Send + Sync + 'static) -> OpDef {
        self.sbp = SbpRule::Fn(Arc::new(f));
        self.linear.clear();
        self
    }
    /// Sets the autocast policy of the float inputs.
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
        self.lowerings.push(Lowering { sbp: Arc::new(sbp), by: LoweredBy::Program(Arc::new(run)) });
        self
    }
    /// How lowering `l` carries a call out.
    pub(crate) fn lowered_by(&self, l: u8) -> Result<&LoweredBy> {
        let missing = || Error::registry(format!("{} has no lowering {l}", self.sig.name));
        self.lowerings.get(usize::from(l)).map(|l| &l.by).ok_or_else(missing)
    }
    /// Lists signatures over all axes of a mesh together, in the place of the products of those of one axis (OneFlow's `nd_sbp_infer`). The
    /// list may depend on the layouts that the inputs have and the one that is asked for; a signature in it is exact whatever these are.
    #[must_use]
    pub fn nd_infer(
        mut self,
        f: impl Fn(&InferCtx<'_>, &Placement, &SbpHints<'_>) -> Result<Vec<NdSignature>> + Send + Sync + 'static,
    ) -> OpDef {
        self.nd_infer = Some(Arc::new(f));
        self
    }
    /// Adds signatures over all axes of a mesh together to the products of those of one axis.
    #[must_use]
    pub fn nd_extra(
        mut self,
        f: impl Fn(&InferCtx<'_>, &Placement) -> Result<Vec<NdSignature>> + Send + Sync + 'static,
    ) -> OpDef {
        self.nd_extra = Some(Arc::new(f));
        self
    }
    /// Says which of the signatures over all axes hold: each is exact for one axis, and a kernel may not bear them together.
    #[must_use]
    pub fn nd_valid(
        mut self,
        f: impl Fn(&InferCtx<'_>, &Placement, &NdSignature) -> bool + Send + Sync + 'static,
    ) -> OpDef {
        self.nd_valid = Some(Arc::new(f));
        self
    }
    /// Takes the signature of a call, from the layouts that its inputs have and the one that is asked for (OneFlow's
    /// `sbp_signature_infer`). It must be one of the op's. `None` leaves the choice to the costs, as without this.
    #[must_use]
    pub fn nd_choose(
        mut self,
        f: impl Fn(&InferCtx<'_>, &Placement, &SbpHints<'_>) -> Result<Option<NdSignature>> + Send + Sync + 'static,
    ) -> OpDef {
        self.nd_choose = Some(Arc::new(f));
        self
    }
    /// Adds signatures whose kernel reads windows: boxes of the inputs that are not the rank's shards, as a convolution that is split
    /// along its image reads the rows beside a shard. `windows` tells them from the boxes of the shards, one for each input (none of
    /// an input that was left out); ranks exchange what they do not have before the kernel runs. Then [`localize`](OpDef::localize)
    /// and the kernel see the windows as the input boxes.
    #[must_use]
    pub fn windows(
        mut self,
        sbp: impl Fn(&InferCtx<'_>) -> Result<Vec<Signature>> + Send + Sync + 'static,
        windows: impl Fn(&LocalizeCtx<'_>) -> Result<Vec<Option<ShardBox>>> + Send + Sync + 'static,
    ) -> OpDef {
        self.lowerings.push(Lowering { sbp: Arc::new(sbp), by: LoweredBy::Windows(Arc::new(windows)) });
        self
    }
    /// Computes physical attributes of a rank's shards by code.
    #[must_use]
    pub fn localize(mut self, f: impl Fn(&LocalizeCtx<'_>) -> Result<Attrs> + Send + Sync + 'static) -> OpDef {
        self.localize = Some(Arc::new(f));
        self
    }
    /// Checks inputs and attributes by code, before anything is inferred.
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
    /// Estimates the FLOPs of a call by code, for the cost model.
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
    /// Sets the gradient rule.
    #[must_use]
    pub fn grad(mut self, grad: Grad) -> OpDef {
        self.grad = grad;
        self
    }
    /// The length of the outputs is what the op `name` gives for one input: see [`LengthBy::Op`].
    #[must_use]
    pub fn length_by(mut self, name: &str, input: usize) -> OpDef {
        self.length = Some(LengthBy::Op { name: name.to_string(), input });
        self
    }
    /// The kernel decides the length of the outputs: see [`LengthBy::Kernel`].
    #[must_use]
    pub fn length_by_kernel(mut self) -> OpDef {
        // A length must be written where there is nothing to compute, too.
        self.traits.run_empty = true;
        self.length = Some(LengthBy::Kernel);
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
    pub fn samples(mut self, s: &[&'static str]) -> OpDef {
        self.samples.extend(s.iter().map(|s| Cow::Borrowed(*s)));
        self
    }

    /// The first paragraph of the description.
    pub fn summary(&self) -> &str {
        self.doc.split("\n\n").next().unwrap_or_default()
    }

    /// Returns how many functions [`add_signatures`](super::add_signatures) has given the op.
    pub fn signatures_added(&self) -> usize {
        self.sbp_added.len()
    }

    /// Returns `domain.name@version`. Ranks compare these at start.
    pub fn full_name(&self) -> String {
        format!("{}.{}@{}", self.domain, self.sig.name, self.version)
    }

    /// Returns the op with its library, for messages.
    pub(crate) fn shown(&self) -> String {
        let library = self.library.as_ref().map_or(String::new(), |l| format!(" of library {l}"));
        format!("op {}{library}", self.full_name())
    }
}

impl fmt::Debug for OpDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sig)
    }
}
