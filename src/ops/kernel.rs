//! The kernel side of an op: which kernels there are, when each applies, and what one is given.

use super::attr::{Attrs, RuntimeAttrs};
use super::def::OpDef;
use super::infer::{InferCtx, TensorType, as_bool, as_int, as_ints, get_attr};
use crate::error::{Error, Result};
use crate::placement::Device;
use oflow_kernels::{DType, Dims, Scalar, ShardBox, View};
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// When a kernel applies: data, so that docs can print it and a choice can be explained.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum KernelPred {
    /// Always.
    Any,
    /// Input `0` has that dtype.
    InputDType(usize, DType),
    /// Every float input has one of these dtypes.
    FloatInputs(Vec<DType>),
    /// A bool plan attribute has that value.
    AttrIs(String, bool),
    /// Input has at least that many elements.
    MinElements(usize, usize),
    /// All hold.
    All(Vec<KernelPred>),
    /// One holds.
    AnyOf(Vec<KernelPred>),
    /// Does not hold.
    Not(Box<KernelPred>),
}

impl KernelPred {
    /// Whether it holds for physical inputs and attributes.
    pub fn holds(&self, ctx: &InferCtx<'_>) -> bool {
        match self {
            KernelPred::Any => true,
            KernelPred::InputDType(i, d) => ctx.input(*i).is_ok_and(|t| t.dtype == *d),
            KernelPred::FloatInputs(ds) => ctx.present().all(|t| !t.dtype.is_float() || ds.contains(&t.dtype)),
            KernelPred::AttrIs(n, v) => ctx.bool(n).is_ok_and(|b| b == *v),
            KernelPred::MinElements(i, n) => ctx.input(*i).is_ok_and(|t| t.len() >= *n),
            KernelPred::All(ps) => ps.iter().all(|p| p.holds(ctx)),
            KernelPred::AnyOf(ps) => ps.iter().any(|p| p.holds(ctx)),
            KernelPred::Not(p) => !p.holds(ctx),
        }
    }
}

/// Which of several applicable kernels runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Correct for everything, slow.
    Fallback,
    /// The usual one.
    Default,
    /// Faster where it applies.
    Optimized,
    /// Chosen only on request.
    Experimental,
}

/// State prepared once per plan (a compiled expression, an algorithm choice) and shared by all its calls.
pub type KernelState = Arc<dyn Any + Send + Sync>;
/// The computation.
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
    /// The computation.
    pub run: KernelFn,
    /// State per plan.
    pub state: Option<StateFn>,
    /// Scratch bytes.
    pub workspace: Option<WorkspaceFn>,
    /// `(input, output)`: the output may take the input's memory when nobody else holds it. Eagerly the caller always holds
    /// its inputs; `oflow ops` shows it, and a memory plan of a whole program can use it.
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
            workspace: None,
            inplace: vec![],
        }
    }
    /// Restricts it.
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

/// What a kernel is given for one call: views of the shards, physical attributes, where the shards lie.
pub struct KernelCx<'a> {
    /// The op.
    pub op: &'a OpDef,
    /// Inputs in order (absent optional ones `None`).
    pub inputs: &'a [Option<View>],
    /// Outputs, contiguous unless a mutable input stands for them.
    pub outputs: &'a [View],
    /// Physical plan attributes.
    pub attrs: &'a Attrs,
    /// Runtime attributes.
    pub runtime: &'a RuntimeAttrs,
    /// Boxes of the inputs.
    pub input_boxes: &'a [Option<ShardBox>],
    /// Boxes of the outputs.
    pub output_boxes: &'a [ShardBox],
    /// State made when the plan was.
    pub state: Option<&'a KernelState>,
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
    /// Input `i`.
    pub fn input(&self, i: usize) -> Result<&View> {
        self.opt_input(i).ok_or_else(|| Error::argument(format!("{}: input {i} is missing", self.op.sig.name)))
    }
    /// Input `i`, if given.
    pub fn opt_input(&self, i: usize) -> Option<&View> {
        self.inputs.get(i).and_then(|v| v.as_ref())
    }
    /// Output `i`.
    pub fn output(&self, i: usize) -> &View {
        &self.outputs[i]
    }
    /// Box of output `i`.
    pub fn output_box(&self, i: usize) -> &ShardBox {
        &self.output_boxes[i]
    }
    /// Box of input `i`.
    pub fn input_box(&self, i: usize) -> Result<&ShardBox> {
        self.input_boxes
            .get(i)
            .and_then(|b| b.as_ref())
            .ok_or_else(|| Error::argument(format!("{}: input {i} is missing", self.op.sig.name)))
    }
    /// Runtime attribute by name.
    pub fn scalar(&self, name: &str) -> Result<Scalar> {
        self.op
            .sig
            .runtime_attr(name)
            .and_then(|i| self.runtime.get(i).copied())
            .ok_or_else(|| Error::argument(format!("{} has no runtime attribute '{name}'", self.op.sig.name)))
    }
    /// Integer plan attribute.
    pub fn int(&self, name: &str) -> Result<i64> {
        as_int(name, get_attr(self.op, self.attrs, name)?)
    }
    /// Bool plan attribute.
    pub fn bool(&self, name: &str) -> Result<bool> {
        as_bool(name, get_attr(self.op, self.attrs, name)?)
    }
    /// List plan attribute.
    pub fn ints(&self, name: &str) -> Result<&[i64]> {
        as_ints(name, get_attr(self.op, self.attrs, name)?)
    }
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
