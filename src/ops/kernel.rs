//! The kernel side of an op: which kernels there are, when each applies, and what one is given.

use super::attr::{Attrs, RuntimeAttrs};
use super::def::OpDef;
use super::infer::{InferCtx, TensorType};
use super::named::{AttrsOf, Which, attrs_by_name, inputs_of, output_of};
use crate::error::{Error, Result};
use crate::placement::Device;
use oflow_kernels::{DType, Dims, ShardBox, View};
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

/// A predicate in code: see [`KernelPred::when`].
#[derive(Clone)]
pub struct KernelTest {
    words: SmolStr,
    test: TestFn,
}

/// Whether a kernel applies to physical inputs, attributes and outputs.
type TestFn = Arc<dyn Fn(&InferCtx<'_>, &[TensorType]) -> Result<bool> + Send + Sync>;

impl KernelTest {
    /// The words that say when it holds.
    pub fn words(&self) -> &str {
        &self.words
    }
}

impl fmt::Debug for KernelTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// Two are the same predicate where they are the same code.
impl PartialEq for KernelTest {
    fn eq(&self, other: &KernelTest) -> bool {
        Arc::ptr_eq(&self.test, &other.test)
    }
}

/// When a kernel applies: data, so that docs can print it and a choice can be explained.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum KernelPred {
    /// Holds for every call.
    Any,
    /// Input `0` has that dtype.
    InputDType(usize, DType),
    /// Every input that the declaration lets have one of these dtypes has one of them.
    Inputs(Vec<DType>),
    /// Output `0` has that dtype.
    OutputDType(usize, DType),
    /// A bool plan attribute has that value.
    AttrIs(String, bool),
    /// An integer plan attribute lies in that range, both ends included.
    IntIn(String, i64, i64),
    /// A text plan attribute is one of these.
    StrIn(String, Vec<String>),
    /// Input has at least that many elements.
    MinElements(usize, usize),
    /// Holds where all of these hold.
    All(Vec<KernelPred>),
    /// Holds where at least one of these holds.
    AnyOf(Vec<KernelPred>),
    /// Does not hold.
    Not(Box<KernelPred>),
    /// Code, with words that say when it holds.
    When(KernelTest),
}

impl KernelPred {
    /// A predicate in code, of physical inputs, attributes and outputs. `words` say when it holds, for `oflow ops`: `k is a multiple
    /// of 8`.
    pub fn when(
        words: &str,
        test: impl Fn(&InferCtx<'_>, &[TensorType]) -> bool + Send + Sync + 'static,
    ) -> KernelPred {
        KernelPred::try_when(words, move |ctx, outs| Ok(test(ctx, outs)))
    }

    /// As [`KernelPred::when`], for code that may fail. Its error is that of the call.
    pub fn try_when(
        words: &str,
        test: impl Fn(&InferCtx<'_>, &[TensorType]) -> Result<bool> + Send + Sync + 'static,
    ) -> KernelPred {
        KernelPred::When(KernelTest { words: words.into(), test: Arc::new(test) })
    }

    /// Whether it holds for physical inputs, attributes and outputs.
    ///
    /// # Errors
    /// Those of a predicate in code.
    pub fn holds(&self, ctx: &InferCtx<'_>, outs: &[TensorType]) -> Result<bool> {
        Ok(match self {
            KernelPred::Any => true,
            KernelPred::InputDType(i, d) => ctx.input(*i).is_ok_and(|t| t.dtype == *d),
            KernelPred::Inputs(ds) => {
                let meant =
                    |i: usize| ctx.op.sig.input_def(i).is_some_and(|d| ds.iter().any(|t| d.dtypes.contains(*t)));
                let all = ctx.inputs.iter().enumerate().filter_map(|(i, t)| Some((i, t.as_ref()?)));
                all.into_iter().all(|(i, t)| ds.contains(&t.dtype) || !meant(i))
            }
            KernelPred::OutputDType(o, d) => outs.get(*o).is_some_and(|t| t.dtype == *d),
            KernelPred::IntIn(n, least, most) => ctx.int(n).is_ok_and(|i| (*least..=*most).contains(&i)),
            KernelPred::StrIn(n, all) => ctx.str(n).is_ok_and(|s| all.iter().any(|a| a == s)),
            KernelPred::When(t) => (t.test)(ctx, outs)?,
            KernelPred::AttrIs(n, v) => ctx.bool(n).is_ok_and(|b| b == *v),
            KernelPred::MinElements(i, n) => ctx.input(*i).is_ok_and(|t| t.len() >= *n),
            KernelPred::All(ps) => {
                for p in ps {
                    if !p.holds(ctx, outs)? {
                        return Ok(false);
                    }
                }
                true
            }
            KernelPred::AnyOf(ps) => {
                for p in ps {
                    if p.holds(ctx, outs)? {
                        return Ok(true);
                    }
                }
                false
            }
            KernelPred::Not(p) => !p.holds(ctx, outs)?,
        })
    }
}

/// Order in which applicable kernels are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Correct for everything, slow.
    Fallback,
    /// The usual one.
    Default,
    /// Faster where it applies.
    Optimized,
    /// Chosen only on request, and then before all others: `backend::use_experimental`, or the environment variable
    /// `OFLOW_EXPERIMENTAL`.
    Experimental,
}

/// State prepared once per plan (a compiled expression, an algorithm choice) and shared by all its calls.
pub type KernelState = Arc<dyn Any + Send + Sync>;
/// Computes the outputs from the inputs' views.
pub type KernelFn = Arc<dyn Fn(&KernelCx<'_>) -> Result<()> + Send + Sync>;
/// Makes the state from physical inputs.
pub type StateFn = Arc<dyn Fn(&InferCtx<'_>, &[TensorType]) -> Result<KernelState> + Send + Sync>;
/// Bytes of scratch memory a call needs, from physical inputs and outputs.
pub type WorkspaceFn = Arc<dyn Fn(&InferCtx<'_>, &[TensorType]) -> Result<usize> + Send + Sync>;

/// One kernel of an op.
#[derive(Clone)]
pub struct KernelDef {
    /// Name, for `oflow ops` and traces.
    pub name: SmolStr,
    /// Device kind it runs on.
    pub device: Device,
    /// When it applies.
    pub pred: KernelPred,
    /// Choice among applicable ones.
    pub priority: Priority,
    /// Computes the outputs.
    pub run: KernelFn,
    /// State per plan.
    pub state: Option<StateFn>,
    /// Whether each node of a graph has state and cache of its own.
    pub state_per_node: bool,
    /// Scratch memory that the kernel needs, in bytes.
    pub workspace: Option<WorkspaceFn>,
    /// `(input, output)`: the output may take the memory of the input, which has its type, when nobody else holds it. The caller holds
    /// the inputs of its call; values inside a lowering end with the last op that reads them, and their memory is used so.
    pub inplace: Vec<(usize, usize)>,
}

impl KernelDef {
    /// A CPU kernel that always applies.
    pub fn cpu(name: &str, run: impl Fn(&KernelCx<'_>) -> Result<()> + Send + Sync + 'static) -> KernelDef {
        Self::on(Device::Cpu, name, run)
    }
    /// A CUDA kernel that always applies: it puts work on [`queue`](crate::backend::cuda::queue) and does not wait for it.
    pub fn cuda(name: &str, run: impl Fn(&KernelCx<'_>) -> Result<()> + Send + Sync + 'static) -> KernelDef {
        Self::on(Device::Cuda, name, run)
    }
    /// A kernel of another device that always applies.
    pub fn on(
        device: Device,
        name: &str,
        run: impl Fn(&KernelCx<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> KernelDef {
        KernelDef {
            name: name.into(),
            device,
            pred: KernelPred::Any,
            priority: Priority::Default,
            run: Arc::new(run),
            state: None,
            state_per_node: false,
            workspace: None,
            inplace: vec![],
        }
    }
    /// Restricts the kernel to calls for which `pred` holds.
    #[must_use]
    pub fn when(mut self, pred: KernelPred) -> KernelDef {
        self.pred = pred;
        self
    }
    /// Sets its priority.
    #[must_use]
    pub fn priority(mut self, p: Priority) -> KernelDef {
        self.priority = p;
        self
    }
    /// Gives it state per plan.
    #[must_use]
    pub fn with_state(
        mut self,
        f: impl Fn(&InferCtx<'_>, &[TensorType]) -> Result<KernelState> + Send + Sync + 'static,
    ) -> KernelDef {
        self.state = Some(Arc::new(f));
        self
    }
    /// Gives it state for each node of a graph (OneFlow's `InitOpKernelState`): made when the graph is planned, and kept as long as the graph, as
    /// is what [`KernelCx::cached`] keeps there. Without it equal calls share both. Calls without a graph have no nodes: they share the state of
    /// their plan. A kernel whose results depend on what its state has seen belongs to an op with side effects, whose nodes no pass merges.
    #[must_use]
    pub fn with_node_state(
        mut self,
        f: impl Fn(&InferCtx<'_>, &[TensorType]) -> Result<KernelState> + Send + Sync + 'static,
    ) -> KernelDef {
        self.state_per_node = true;
        self.with_state(f)
    }
    /// Gives it scratch memory.
    #[must_use]
    pub fn with_workspace(
        mut self,
        f: impl Fn(&InferCtx<'_>, &[TensorType]) -> Result<usize> + Send + Sync + 'static,
    ) -> KernelDef {
        self.workspace = Some(Arc::new(f));
        self
    }
    /// Proposes that an output takes an input's memory.
    #[must_use]
    pub fn may_reuse(mut self, input: usize, output: usize) -> KernelDef {
        self.inplace.push((input, output));
        self
    }
}

impl fmt::Debug for KernelDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} ({:?}, {:?})", self.name, self.device, self.priority, self.pred)
    }
}

/// Context of a kernel for one call: views of the shards, physical attributes, where the shards lie.
pub struct KernelCx<'a> {
    /// The op that is called.
    pub op: &'a OpDef,
    /// Inputs in order (absent optional ones `None`).
    pub inputs: &'a [Option<View>],
    /// Outputs, contiguous unless a mutable input stands for them.
    pub outputs: &'a [View],
    /// Physical plan attributes.
    pub attrs: &'a Attrs,
    /// Runtime attributes of the call, in declared order.
    pub runtime: &'a RuntimeAttrs,
    /// Boxes of the inputs.
    pub input_boxes: &'a [Option<ShardBox>],
    /// Boxes of the outputs.
    pub output_boxes: &'a [ShardBox],
    /// State made when the plan was.
    pub state: Option<&'a KernelState>,
    /// State that [`KernelCx::cached`] keeps.
    pub cache: &'a OnceLock<KernelState>,
    /// Scratch memory of the size the kernel asked for, as bytes.
    pub workspace: Option<&'a View>,
    /// The stream to put the work on, where the device has one: what its backend makes of it
    /// ([`queue`](crate::backend::cuda::queue) for a GPU).
    pub stream: Option<&'a dyn Any>,
}

impl<'a> KernelCx<'a> {
    /// The scratch memory that the kernel asked for; empty where it needs none for these shapes.
    pub fn workspace(&self) -> &'a View {
        static NONE: LazyLock<View> = LazyLock::new(|| {
            let nowhere = std::ptr::without_provenance_mut(16);
            // SAFETY: no element is addressed.
            unsafe { View::from_raw(nowhere, DType::U8, [0].into_iter().collect(), [1].into_iter().collect()) }
        });
        self.workspace.unwrap_or(&NONE)
    }
    /// State that the kernel has prepared at the first run of this plan on this device: a table that lies in device memory,
    /// a handle of a library. Made by `make` at the first call, and kept as long as the plan (OneFlow's `OpKernelCache`).
    /// What needs no device is made when the call is planned: [`KernelDef::with_state`]. A kernel keeps one value.
    ///
    /// # Errors
    /// Those of `make`; the next run tries again. Also if an earlier run kept a value of another type.
    pub fn cached<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> Result<T>) -> Result<&'a T> {
        let found = match self.cache.get() {
            Some(found) => found,
            None => {
                let made: KernelState = Arc::new(make()?);
                self.cache.get_or_init(|| made)
            }
        };
        let other = || Error::argument(format!("the kernel of {} keeps a value of another type", self.op.sig.name));
        found.downcast_ref::<T>().ok_or_else(other)
    }
    /// The state that the kernel made when the call was planned.
    ///
    /// # Errors
    /// It made none, or one of another type.
    pub fn state<T: 'static>(&self) -> Result<&'a T> {
        let missing = || Error::argument(format!("the kernel of {} has no state of that type", self.op.sig.name));
        self.state.and_then(|s| s.downcast_ref::<T>()).ok_or_else(missing)
    }
    fn missing(&self, i: usize) -> Error {
        Error::argument(format!("{}: input {i} is missing", self.op.sig.name))
    }
    /// Input `i`, by position or name.
    ///
    /// # Errors
    /// The call has no such input.
    pub fn input(&self, i: impl Which) -> Result<&View> {
        let i = i.input_of(self.op)?;
        self.inputs.get(i).and_then(|v| v.as_ref()).ok_or_else(|| self.missing(i))
    }
    /// Input `i`, by position or name; none if it was left out.
    pub fn opt_input(&self, i: impl Which) -> Option<&View> {
        self.inputs.get(i.input_of(self.op).ok()?).and_then(|v| v.as_ref())
    }
    /// The tensors that an input stands for: one, or those of a variadic input.
    ///
    /// # Errors
    /// The op has no input of that name.
    pub fn inputs_of(&self, name: &str) -> Result<impl Iterator<Item = &View>> {
        Ok(inputs_of(self.op, name, self.inputs.len())?.filter_map(|i| self.inputs[i].as_ref()))
    }
    /// View of output `i`, to be written.
    pub fn output(&self, i: usize) -> &View {
        &self.outputs[i]
    }
    /// Output by name; the first, where the name stands for several.
    ///
    /// # Errors
    /// The op has no such output, or this call does not make it.
    pub fn output_named(&self, name: &str) -> Result<&View> {
        let i = output_of(self.op, name, self.attrs, self.inputs.iter().map(|i| i.is_some()))?;
        let missing = || Error::argument(format!("{}: output '{name}' is not made by this call", self.op.sig.name));
        i.and_then(|i| self.outputs.get(i)).ok_or_else(missing)
    }
    /// Box of output `i`.
    pub fn output_box(&self, i: usize) -> &ShardBox {
        &self.output_boxes[i]
    }
    /// Box of input `i`, by position or name.
    ///
    /// # Errors
    /// The call has no such input.
    pub fn input_box(&self, i: impl Which) -> Result<&ShardBox> {
        let i = i.input_of(self.op)?;
        self.input_boxes.get(i).and_then(|b| b.as_ref()).ok_or_else(|| self.missing(i))
    }
    fn named(&self) -> AttrsOf<'_> {
        AttrsOf { op: self.op, attrs: self.attrs, runtime: Some(self.runtime) }
    }
    attrs_by_name!(self, self.named(), '_);
    /// A dim attribute that may count from the end, for input `i`.
    pub fn dim(&self, name: &str, i: usize) -> Result<usize> {
        super::infer::normalize_dim(self.int(name)?, self.input(i)?.rank())
    }
    /// A list of dims (empty: all), sorted, for input `i`.
    pub fn dims(&self, name: &str, i: usize) -> Result<SmallVec<[usize; 6]>> {
        let rank = self.input(i)?.rank();
        let given = self.ints(name)?;
        if given.is_empty() {
            return Ok((0..rank).collect());
        }
        let mut dims: SmallVec<[usize; 6]> =
            given.iter().map(|d| super::infer::normalize_dim(*d, rank)).collect::<Result<_>>()?;
        dims.sort_unstable();
        dims.truncate(rank);
        Ok(dims)
    }
    /// A tensor without dims as a line of one element, others as they are: what kernels along one dim work on.
    pub fn line(view: &View) -> View {
        match view.rank() {
            // SAFETY: the same element.
            0 => unsafe { view.restride(0, [1].into_iter().collect(), [1].into_iter().collect()) },
            _ => view.clone(),
        }
    }
    /// The view of `x` with `dims` removed dims put back as size 1: what reductions write to.
    pub fn keepdim_view(view: &View, input_rank: usize, dims: &[usize]) -> View {
        if view.rank() == input_rank {
            return view.clone();
        }
        let (mut shape, mut strides) = (Dims::new(), SmallVec::<[isize; 6]>::new());
        let mut from = 0;
        for d in 0..input_rank {
            if dims.contains(&d) {
                shape.push(1);
                strides.push(0);
            } else {
                shape.push(view.dims()[from]);
                strides.push(view.strides()[from]);
                from += 1;
            }
        }
        // SAFETY: dims of size 1 address nothing new.
        unsafe { view.restride(0, shape, strides) }
    }
}
