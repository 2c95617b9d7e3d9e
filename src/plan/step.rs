//! A plan as data: numbered buffers, and steps that read and make them.

use super::kernel::KernelPlan;
use super::types::{GlobalRef, LocalRef};
use crate::boxing::{BoxesPlan, BoxingPlan};
use crate::error::Result;
use crate::ops::{Attrs, GivenValues, NdSignature, Op, RuntimeArg, RuntimeAttrs, Withheld};
use crate::placement::{Device, Placement};
use crate::sbp::NdSbp;
use oflow_kernels::{DType, Scalar};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// The number of a buffer in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BufferId(pub u32);

impl BufferId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a length in its plan: the size of dim 0 of tensors that only a run of the plan knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthId(pub u32);

/// A tensor of a plan. It has no memory until the plan is bound.
#[derive(Clone, Default)]
pub struct Buffer {
    /// Global type; none of a local tensor and of an optional input that was left out.
    pub global: Option<GlobalRef>,
    /// Type of what this rank holds; none outside the placement and of an input that was left out.
    pub local: Option<LocalRef>,
    /// Number of the length that dim 0 will have, where that depends on values; the types have the greatest possible one.
    pub length: Option<LengthId>,
    /// The last step that reads it. None if no step does, and of outputs, which outlive the plan.
    pub last_use: Option<usize>,
}

/// Plan of one call.
pub struct Plan {
    /// Tensors by number. The inputs of the call come first, in order.
    pub buffers: Vec<Buffer>,
    /// Steps in their order. The same steps on every rank; on one outside the placement they have no kernels.
    pub steps: Vec<Step>,
    /// The outputs of the call. One that is written into a given tensor is the buffer that stands for that.
    pub outputs: SmallVec<[BufferId; 2]>,
    /// Where kernels run.
    pub device: Device,
    /// Whether this rank has a part in the computation.
    pub takes_part: bool,
    /// How many lengths are left to run time.
    pub lengths: u32,
    /// Whether a kernel of a lowering has numbers to be checked at each call ([`Plan::check_numbers`]).
    pub hands_on_numbers: bool,
    /// Hash of what is the same on every rank, for the dispatch stream. 0 of a local call.
    pub stream_key: u64,
    /// The signature of a call on global tensors, before output 0 is boxed to the layout that the program asks for; `None` of a local call
    /// and of a boxing.
    pub chosen: Option<NdSignature>,
    /// Inputs and outputs that have no gradient.
    pub withheld: Withheld,
}

/// One step of a plan.
// A plan has few, and a warm call reads them: a box would be one more pointer to follow.
#[allow(clippy::large_enum_variant)]
pub enum Step {
    /// Boxes one buffer into another layout.
    Box(BoxStep),
    /// Runs a kernel on the rank's shards.
    Kernel(KernelStep),
    /// An exchange of what kernels read beside their shards.
    Halo(HaloStep),
    /// A copy of a lowering's result into the tensor that the call writes.
    Assign(BufferId),
    /// A length becomes known.
    ExchangeLength(ExchangeLengthStep),
    /// The parts that ranks have made become a layout of the whole.
    Rebalance(RebalanceStep),
}

/// Reads how long the part of a result is that this rank makes; the ranks tell each other.
pub struct ExchangeLengthStep {
    /// Buffer with this rank's count: one i64.
    pub count: BufferId,
    /// Number of the length that becomes known.
    pub makes: LengthId,
    /// How the parts lie: along `S(0)` one after the other, along B alike. None in a local call.
    pub spread: Option<(Placement, NdSbp)>,
}

/// Makes the balanced split of parts of any length, or another layout; of a part that fills less than its memory, a tensor
/// of its length.
pub struct RebalanceStep {
    /// This rank's part of the result, before rebalancing.
    pub from: BufferId,
    /// The result, in the layout of its global type.
    pub makes: BufferId,
    /// Number of the length of the whole, and of those of the parts.
    pub length: LengthId,
    /// How the parts lie, as in [`ExchangeLengthStep::spread`]; none in a local call.
    pub parts: Option<NdSbp>,
}

/// Gives each rank the box of an input that its kernel reads.
pub struct HaloStep {
    /// The input, in the layout of the signature.
    pub from: BufferId,
    /// The box here, a tensor without a global type.
    pub makes: BufferId,
    /// Index of the op's input.
    pub input: usize,
    /// The box that each rank sends to each other rank.
    pub plan: Arc<BoxesPlan>,
    /// Bytes that all ranks together send.
    pub bytes: u64,
}

/// A boxing with the type it leads to.
#[derive(Clone)]
pub struct PlannedBoxing {
    /// Type after boxing.
    pub to: GlobalRef,
    /// This rank's shard type after boxing; none outside.
    pub local: Option<LocalRef>,
    /// Steps of the boxing.
    pub plan: Arc<BoxingPlan>,
}

/// Purpose of a boxing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// An input of the call, by its number: its signature wants another layout.
    Input(usize),
    /// A value inside a lowering.
    Lowering,
    /// Output 0, in the layout that the program asks for.
    Result,
}

/// Boxing of one buffer into another.
pub struct BoxStep {
    /// Buffer that is boxed.
    pub from: BufferId,
    /// Buffer that receives the result.
    pub makes: BufferId,
    /// Planned boxing, with the layouts on both sides.
    pub boxing: PlannedBoxing,
    /// Purpose of the boxing, for messages and comm records.
    pub purpose: For,
}

/// Where the runtime attributes of a kernel come from.
// As `Step`, of which it is a part.
#[allow(clippy::large_enum_variant)]
pub enum Numbers {
    /// Runtime attributes of the call itself.
    OfCall,
    /// One by one, for an op inside a lowering; with its plan attributes, for the check of the numbers.
    Each(SmallVec<[RuntimeArg; 4]>, Attrs),
}

/// One kernel, or the view that makes it unnecessary.
pub struct KernelStep {
    /// The op that the kernel computes.
    pub op: &'static Op,
    /// Buffers that the kernel reads, and writes where the op's input is mutable (`None` for absent optional inputs).
    pub inputs: SmallVec<[Option<BufferId>; 4]>,
    /// Buffers that the kernel makes.
    pub makes: SmallVec<[BufferId; 2]>,
    /// The kernel; none on a rank outside the placement and where all outputs are empty.
    pub kernel: Option<Arc<KernelPlan>>,
    /// Source of the runtime attributes.
    pub numbers: Numbers,
    /// Whether output 0 is another window onto input 0 where its strides allow.
    pub view: bool,
    /// Inputs and outputs that are not on the device that the kernel runs on; `None` where all are.
    pub cross_device: Option<Box<CrossDevice>>,
    /// `(input, output)`: the output takes the memory of the input, which nothing reads afterwards, where nobody else holds it.
    pub reuse: Option<(usize, usize)>,
}

/// Tensors of a kernel that are not on the device that it runs on.
pub struct CrossDevice {
    /// Where the kernel reads each input.
    pub inputs: SmallVec<[Device; 4]>,
    /// Whether outputs are copied to another device.
    pub outputs: bool,
}

impl KernelStep {
    /// The runtime attributes, for a call with these.
    pub fn runtime(&self, of_call: &RuntimeAttrs) -> Result<RuntimeAttrs> {
        match &self.numbers {
            Numbers::OfCall => Ok(of_call.clone()),
            Numbers::Each(args, _) => args.iter().map(|n| n.of(of_call)).collect(),
        }
    }
}

impl Step {
    /// The buffers that it reads.
    pub fn reads(&self) -> impl Iterator<Item = BufferId> + '_ {
        let (one, many): (Option<BufferId>, &[Option<BufferId>]) = match self {
            Step::Box(b) => (Some(b.from), &[]),
            Step::Kernel(k) => (None, &k.inputs),
            Step::Assign(from) => (Some(*from), &[]),
            Step::ExchangeLength(a) => (Some(a.count), &[]),
            Step::Rebalance(s) => (Some(s.from), &[]),
            Step::Halo(w) => (Some(w.from), &[]),
        };
        one.into_iter().chain(many.iter().flatten().copied())
    }

    /// The buffers that it makes.
    pub fn makes(&self) -> &[BufferId] {
        match self {
            Step::Box(b) => std::slice::from_ref(&b.makes),
            Step::Kernel(k) => &k.makes,
            Step::Rebalance(s) => std::slice::from_ref(&s.makes),
            Step::Halo(w) => std::slice::from_ref(&w.makes),
            Step::Assign(_) | Step::ExchangeLength(_) => &[],
        }
    }

    /// The inputs that it writes in place, among those that it reads.
    pub fn writes(&self) -> impl Iterator<Item = BufferId> + '_ {
        let kernel = match self {
            Step::Kernel(k) => Some(k),
            _ => None,
        };
        let inputs = kernel.into_iter().flat_map(|k| k.inputs.iter().enumerate().map(move |(i, b)| (k.op, i, *b)));
        inputs.filter(|(op, i, _)| op.sig.mutates(*i)).filter_map(|(_, _, b)| b)
    }
}

impl Plan {
    /// The plan that is one boxing.
    pub fn of_boxing(from: &GlobalRef, boxing: PlannedBoxing, stream_key: u64) -> Plan {
        let device = boxing.to.placement.device();
        let takes_part = boxing.local.is_some();
        let source = Buffer { global: Some(from.clone()), ..Buffer::default() };
        let result = Buffer { global: Some(boxing.to.clone()), local: boxing.local.clone(), ..Buffer::default() };
        let (from, makes) = (BufferId(0), BufferId(1));
        let step = Step::Box(BoxStep { from, makes, boxing, purpose: For::Result });
        let (buffers, steps) = (vec![source, result], vec![step]);
        let outputs = SmallVec::from_elem(makes, 1);
        let hands_on_numbers = false;
        let withheld = Withheld::default();
        let chosen = None;
        let mut plan = Plan {
            buffers,
            steps,
            outputs,
            device,
            takes_part,
            lengths: 0,
            hands_on_numbers,
            stream_key,
            chosen,
            withheld,
        };
        plan.look_through();
        plan
    }

    /// Notes when each buffer is read for the last time, and whether there are numbers to check.
    pub(super) fn look_through(&mut self) {
        for (n, step) in self.steps.iter().enumerate() {
            self.hands_on_numbers |= matches!(step, Step::Kernel(k) if matches!(k.numbers, Numbers::Each(..)));
            for b in step.reads() {
                // One that a step reads twice is there for the second time, too: nothing takes it out.
                let once = step.reads().filter(|other| *other == b).count() == 1;
                self.buffers[b.index()].last_use = once.then_some(n);
            }
        }
        for b in &self.outputs {
            self.buffers[b.index()].last_use = None;
        }
    }

    /// Lets outputs of kernels take the memory of values that end with them, where a kernel proposes it. The first `inputs` buffers
    /// are the caller's.
    pub(super) fn reuse(&mut self, inputs: usize) {
        for n in 0..self.steps.len() {
            let Step::Kernel(k) = &self.steps[n] else { continue };
            let Some(kernel) = k.kernel.as_ref().filter(|_| k.cross_device.is_none()) else { continue };
            let fits = |&&(i, o): &&(usize, usize)| {
                let (Some(Some(from)), Some(to)) = (k.inputs.get(i), k.makes.get(o)) else { return false };
                let (a, b) = (&self.buffers[from.index()], &self.buffers[to.index()]);
                let once = k.inputs.iter().flatten().filter(|b| *b == from).count() == 1;
                let alike = a.local.as_ref().zip(b.local.as_ref()).is_some_and(|(a, b)| a.id() == b.id());
                let plain = a.length.is_none() && b.length.is_none() && !k.op.sig.mutates(i);
                from.index() >= inputs && a.last_use == Some(n) && once && alike && plain
            };
            let found = kernel.inplace.iter().find(fits).copied();
            if let Step::Kernel(k) = &mut self.steps[n] {
                k.reuse = found;
            }
        }
    }

    /// Whether ranks exchange anything when it is carried out.
    pub fn communicates(&self) -> bool {
        !self.steps.iter().all(|s| matches!(s, Step::Kernel(_) | Step::Assign(_)))
    }

    /// The boxings, in order.
    pub fn boxings(&self) -> impl Iterator<Item = &BoxStep> {
        self.steps.iter().filter_map(|s| match s {
            Step::Box(b) => Some(b),
            _ => None,
        })
    }

    /// The global types of the outputs; none of a local call. Where a length depends on values they have the greatest one.
    pub fn out_globals(&self) -> impl Iterator<Item = &GlobalRef> {
        self.outputs.iter().filter_map(|b| self.buffers[b.index()].global.as_ref())
    }

    /// Checks the numbers that a call hands on to the ops of a lowering. Those of the call itself are checked before it is
    /// planned.
    ///
    /// # Errors
    /// What an op refuses.
    pub fn check_numbers(&self, runtime: &RuntimeAttrs) -> Result<()> {
        for step in &self.steps {
            if let Step::Kernel(k) = step
                && let (Numbers::Each(_, attrs), Some(check)) = (&k.numbers, &k.op.values)
            {
                let dtype = |b: &Option<BufferId>| Some(self.buffers[b.as_ref()?.index()].global.as_ref()?.ty.dtype);
                let dtypes: SmallVec<[Option<DType>; 4]> = k.inputs.iter().map(dtype).collect();
                check(&GivenValues { op: k.op, dtypes: &dtypes, attrs, runtime: &k.runtime(runtime)? })?;
            }
        }
        Ok(())
    }
}

/// One line a step: `b3 = sum(b2)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |b: &BufferId| format!("b{}", b.0);
        let names = |ids: &[BufferId]| ids.iter().map(name).collect::<Vec<_>>().join(", ");
        for (n, step) in self.steps.iter().enumerate() {
            match step {
                Step::Box(b) => write!(f, "{} = box {} to {}", name(&b.makes), name(&b.from), b.boxing.to.sbp)?,
                Step::Halo(w) => {
                    write!(f, "{} = windows of {}, {} B sent", name(&w.makes), name(&w.from), w.bytes)?;
                }
                Step::Assign(from) => write!(f, "{} <- {}", names(&self.outputs), name(from))?,
                Step::ExchangeLength(a) => write!(f, "n{} = length {}", a.makes.0, name(&a.count))?,
                Step::Rebalance(s) => {
                    write!(f, "{} = settle {} of n{}", name(&s.makes), name(&s.from), s.length.0)?;
                    if let Some(g) = &self.buffers[s.makes.index()].global {
                        write!(f, " to {}", g.sbp)?;
                    }
                }
                Step::Kernel(k) => {
                    let mut args: Vec<String> =
                        k.inputs.iter().map(|i| i.as_ref().map_or("none".to_string(), name)).collect();
                    if let Numbers::Each(numbers, _) = &k.numbers {
                        args.extend(numbers.iter().map(|n| match n {
                            RuntimeArg::Number(Scalar::Bool(b)) => b.to_string(),
                            RuntimeArg::Number(Scalar::Int(i)) => i.to_string(),
                            RuntimeArg::Number(Scalar::Float(x)) => x.to_string(),
                            RuntimeArg::Number(s @ Scalar::Complex(..)) => s.to_string(),
                            RuntimeArg::Given(g) => format!("number {}", g.index),
                        }));
                    }
                    if !k.makes.is_empty() {
                        write!(f, "{} = ", names(&k.makes))?;
                    }
                    write!(f, "{}({})", k.op.name(), args.join(", "))?;
                }
            }
            let ends = |b: &BufferId| self.buffers[b.index()].last_use == Some(n);
            let mut last: Vec<BufferId> = step.reads().filter(ends).collect();
            last.dedup();
            if !last.is_empty() {
                write!(f, "; {} end", names(&last))?;
            }
            writeln!(f)?;
        }
        write!(f, "gives {}", names(&self.outputs))
    }
}
