//! A program as data.

use crate::error::CallSite;
use crate::ops::{Attrs, NdSignature, Op, RuntimeAttrs};
use crate::plan::{Target, TypeRef};
use smallvec::SmallVec;

/// Number of a value in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

impl ValueId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of an object of the host that gives numbers to a program, and acts when a run comes to it: an optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub u32);

/// Number of a random generator of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GeneratorId(pub u32);

impl GeneratorId {
    /// Generator of the global tensors of the rank's context.
    pub const GLOBAL: GeneratorId = GeneratorId(0);
    /// Generator of the local tensors of the rank's context.
    pub const LOCAL: GeneratorId = GeneratorId(1);
    /// The first of the generators that the program made itself.
    pub const FIRST_OWN: u32 = 2;
}

/// Seed and ordinal of a random call: those that its generator has in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Generator that is drawn from.
    pub generator: GeneratorId,
    /// Number of the draw among those that one run takes from this generator, from 0.
    pub ordinal: u64,
}

/// Kind of a value that comes from outside of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutsideKind {
    /// Given at each run.
    Input,
    /// A tensor that the program trains or writes: its own at each run.
    Variable,
    /// A tensor that the program only reads, whose value may not change.
    Constant,
    /// Of a repeated section: a value of the program around it, the same in each iteration.
    Around,
    /// Of a repeated section: the i-th slice along dim 0, in iteration i, of a value of the program around it.
    Slice,
    /// Of a repeated section: what the iteration before has given; in the first one, a value of the program around it.
    Carried,
    /// Of a repeated section: the present value of a tensor of the program around it, which the section writes.
    Written,
}

impl OutsideKind {
    /// The word of the program's text.
    pub fn word(self) -> &'static str {
        match self {
            OutsideKind::Input => "input",
            OutsideKind::Variable => "variable",
            OutsideKind::Constant => "constant",
            OutsideKind::Around => "around",
            OutsideKind::Slice => "slice",
            OutsideKind::Carried => "carried",
            OutsideKind::Written => "written",
        }
    }
    /// All kinds.
    pub(super) const ALL: [OutsideKind; 7] = [
        OutsideKind::Input,
        OutsideKind::Variable,
        OutsideKind::Constant,
        OutsideKind::Around,
        OutsideKind::Slice,
        OutsideKind::Carried,
        OutsideKind::Written,
    ];
}

/// A value that comes from outside of a program.
#[derive(Clone)]
pub struct Outside {
    /// Value that it has when a run begins.
    pub value: ValueId,
    /// How it gets its value.
    pub kind: OutsideKind,
    /// The name of an input; empty for others.
    pub name: String,
    /// The line that used it first.
    pub site: CallSite,
}

/// A value that a call writes over another one, in the same tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Value that the tensor had.
    pub old: ValueId,
    /// Value that it has then.
    pub new: ValueId,
}

/// Reason of a change of layout that the program did not ask for: policies of communication tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxedFor {
    /// The complete gradient of a leaf goes to the leaf's layout.
    Gradient,
    /// An op of that name needs it.
    Op(&'static str),
}

/// A call of an op.
#[derive(Clone)]
pub struct CallNode {
    /// Op that is called.
    pub op: &'static Op,
    /// Plan attributes in declared order.
    pub attrs: Attrs,
    /// Runtime attributes in declared order, as they were when the call was captured.
    pub runtime: RuntimeAttrs,
    /// The draw that gives the runtime attributes `seed` and `ordinal` in a run.
    pub draw: Option<Draw>,
    /// The host object that gives the runtime attributes in a run, and which of its calls this is.
    pub host: Option<(HostId, u32)>,
    /// Where a source op puts its result.
    pub target: Option<Target>,
    /// Whether output 0 is written into a tensor, the first of the node's writes.
    pub into: bool,
    /// Layouts of a call on global tensors; `None` of a local call and of a change of layout.
    pub signature: Option<NdSignature>,
    /// Of a change of layout that the program did not ask for.
    pub boxed_for: Option<BoxedFor>,
}

/// Work of a node.
#[derive(Clone)]
pub enum Work {
    /// Calls an op, also one that changes a layout at the program's request.
    Call(Box<CallNode>),
    /// Boxes its input to the type of its output, because a call of this op needs it.
    Box(&'static str),
    /// Lets an object of the host act, before calls read its numbers.
    Host(HostId),
    /// Repeats a section.
    Repeat(Box<Repeat>),
}

/// One step of a program.
#[derive(Clone)]
pub struct Node {
    /// Work of the node.
    pub work: Work,
    /// Values that it reads; `None` for an optional input that was left out.
    pub inputs: SmallVec<[Option<ValueId>; 4]>,
    /// Values that it makes. A call that writes output 0 into a tensor makes none in its place.
    pub outputs: SmallVec<[ValueId; 2]>,
    /// Values that it writes over others.
    pub writes: SmallVec<[Write; 1]>,
    /// Truth value without dims; where it is false, the node does nothing, and what it would write over stays.
    pub guard: Option<ValueId>,
    /// Line of the call.
    pub site: CallSite,
    /// Whether the call is part of a backward pass.
    pub backward: bool,
    /// Whether activation checkpointing makes the call once more. The same call stands before it in the program; merged with that, it would
    /// keep the memory that it is there to free.
    pub recomputed: bool,
    /// Whether a boxing goes on while the calls behind it compute, up to the first that waits for it: its memory is in use up to there. Others
    /// give their memory up at once, so that the next call may have to wait.
    pub overlapped: bool,
}

impl Node {
    /// Values that it defines: its outputs, and those that it writes.
    pub fn defines(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.outputs.iter().copied().chain(self.writes.iter().map(|w| w.new))
    }
    /// Values that it needs: its inputs, those that it writes over, and its guard.
    pub fn needs(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.inputs.iter().flatten().copied().chain(self.writes.iter().map(|w| w.old)).chain(self.guard)
    }
    /// Whether bytes may move between ranks for it: a boxing, at the program's request or because a call needs it.
    pub fn is_boxing(&self) -> bool {
        match &self.work {
            Work::Box(_) => true,
            Work::Call(call) => call.op.layout.is_some(),
            Work::Host(_) | Work::Repeat(_) => false,
        }
    }
    /// The value of the tensor that output 0 is written into.
    pub fn written_into(&self) -> Option<ValueId> {
        let into = self.call().is_some_and(|call| call.into);
        self.writes.first().filter(|_| into).map(|w| w.old)
    }
    /// The call, if it is one.
    pub fn call(&self) -> Option<&CallNode> {
        match &self.work {
            Work::Call(call) => Some(call),
            _ => None,
        }
    }
}

/// Work of a node that repeats a section.
#[derive(Clone, Default)]
pub struct Repeat {
    /// How often the section is carried out: at least once.
    pub count: u64,
    /// Calls of one iteration.
    pub body: Program,
    /// Draws of each generator, by number, that the program around the section makes before the first iteration. Each iteration draws as many
    /// numbers as the body says.
    pub first_draws: Vec<u64>,
}

/// Calls of one rank in one run of a captured closure.
#[derive(Clone, Default)]
pub struct Program {
    /// Types of the values, by number.
    pub values: Vec<TypeRef>,
    /// Values from outside, in the order in which they were met.
    pub outside: Vec<Outside>,
    /// Steps in their order.
    pub nodes: Vec<Node>,
    /// Values that a run returns.
    pub outputs: Vec<ValueId>,
    /// Names of the host objects, by number.
    pub hosts: Vec<String>,
    /// How many numbers a run draws of each generator, by number.
    pub draws: Vec<u64>,
}

impl Program {
    /// Adds a value of that type.
    pub fn add_value(&mut self, ty: TypeRef) -> ValueId {
        self.values.push(ty);
        ValueId(self.values.len() as u32 - 1)
    }
    /// Returns the type of a value.
    pub fn ty(&self, v: ValueId) -> &TypeRef {
        &self.values[v.index()]
    }
    /// Returns the values from outside of one kind, in order.
    pub fn outside_of(&self, kind: OutsideKind) -> impl Iterator<Item = &Outside> {
        self.outside.iter().filter(move |o| o.kind == kind)
    }
    /// Returns the value of the input of that name.
    pub fn input(&self, name: &str) -> Option<ValueId> {
        self.outside_of(OutsideKind::Input).find(|o| o.name == name).map(|o| o.value)
    }
    /// Returns the nodes that lead to these values, in order, each with the values that no later one of them needs. What other nodes write is
    /// not considered.
    pub fn leading_to(&self, values: &[ValueId]) -> Vec<(usize, SmallVec<[ValueId; 2]>)> {
        let mut wanted = vec![false; self.values.len()];
        values.iter().for_each(|v| wanted[v.index()] = true);
        let (mut met, mut steps) = (vec![false; self.values.len()], vec![]);
        for (n, node) in self.nodes.iter().enumerate().rev() {
            if !node.defines().any(|v| wanted[v.index()]) {
                continue;
            }
            let mut ends = SmallVec::new();
            for v in node.defines().chain(node.needs()) {
                wanted[v.index()] = true;
                if !std::mem::replace(&mut met[v.index()], true) {
                    ends.push(v);
                }
            }
            steps.push((n, ends));
        }
        steps.reverse();
        steps
    }
    /// Returns the last node that needs each value, by number of the value; the number of nodes where a run returns it, and the node that
    /// makes it where nobody needs it.
    pub fn last_needed(&self) -> Vec<Option<usize>> {
        let mut last = vec![None; self.values.len()];
        for (n, node) in self.nodes.iter().enumerate() {
            node.needs().chain(node.defines()).for_each(|v| last[v.index()] = Some(n));
        }
        self.outputs.iter().for_each(|v| last[v.index()] = Some(self.nodes.len()));
        last
    }
}

/// A type with its device or placement, as texts write it: `f32[2, 3] [S(0)] on cpu[2]`.
pub fn described(ty: &TypeRef) -> String {
    match ty {
        TypeRef::Local(l) => l.to_string(),
        TypeRef::Global(g) => g.to_string(),
    }
}
