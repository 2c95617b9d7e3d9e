//! Capture of a program: the calls of a closure are inferred, chosen and recorded for backward as always, on tensors without data, and
//! become the nodes of a [`Program`].
//!
//! The thread enters a context like that of a dry run. Tensors of the program, which have data, are not used there: the first rewrite of a
//! call puts a *symbol* in the place of each, a tensor of the same type without data. One tensor has one symbol, so writes and gradients
//! find it again. The tensor itself stays as it is; its slot for a gradient and its number are lent for the time of the capture
//! (`tensor/borrowed_slots.rs`).
//!
//! Values are known by the numbers that observers give them, in the version that they had then. A tensor that is used and has no such number
//! was made in a way that a program cannot have, or is a local view of memory that has been written since: both are errors.
//!
//! A section that is repeated is captured as a program of its own (`capture/repeat.rs`).
//!
//! Where the closure needs a tensor to outlive it, as an optimizer needs its state, the tensor is made outside ([`outside_capture`]): then it
//! is a variable of the program.

mod leaf_gradients;
mod repeat;
mod sections;
mod takes;

pub(super) use leaf_gradients::gradient_before;
pub(crate) use leaf_gradients::{note_assigned, note_no_gradient};
pub(crate) use repeat::Repetition;

use super::call::{Call, HostNumbers, OwnedInputs, Rewrite, Rewritten};
use super::host_object::HostObject;
use super::observers::{Issued, Observer, hide, observe};
use super::program_builder::{ProgramBuilder, type_of};
use super::writes::{writes, written};
use crate::context::{
    Generator, Moments, enter_outer, generator_of_seed, grad_enabled, here, is_observed, no_grad, nothing_asked,
    symbolic_seed,
};
use crate::error::{CallSite, Error, Result};
use crate::plan::TypeRef;
use crate::program::{Draw, GeneratorId, HostId, OutsideKind, Program, ValueId, Work, Write};
use crate::tensor::{Body, Edge, LocalTensor, Tensor, WeakTensor, borrow_slots, next_stamp, share_memory};
use oflow_kernels::Scalar;
use sections::Open;
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// A captured program, with the objects of the process that it names by number.
#[derive(Clone)]
pub(crate) struct Captured {
    /// Calls that were captured.
    pub(crate) program: Program,
    /// The tensor of each value from outside; of an input the one that it was captured with.
    pub(crate) outside: Vec<Tensor>,
    /// Host objects, by number.
    pub(crate) hosts: Vec<Arc<dyn HostObject>>,
    /// The program's own generators, from [`GeneratorId::FIRST_OWN`] on.
    pub(crate) generators: Vec<Generator>,
}

/// A tensor of the program, and the symbol that stands for it.
struct Met {
    tensor: Tensor,
    symbol: Tensor,
    /// Number in `Program::outside`; `None` of another handle of a value that the program has already.
    outside: Option<usize>,
    written: bool,
}

/// State of a capture.
#[derive(Default)]
struct State {
    /// Of the program; of the innermost section, while one is captured.
    builder: ProgramBuilder,
    /// Sections that are being captured, the innermost last.
    open: Vec<Open>,
    met: Vec<Met>,
    /// Place in `met` of each tensor and each symbol, by address.
    by_address: BTreeMap<usize, usize>,
    /// Every tensor that a call has made, with its line: none may outlive the closure.
    made: Vec<(WeakTensor, CallSite)>,
    hosts: Vec<Arc<dyn HostObject>>,
    host_names: Vec<String>,
    generators: Vec<(Generator, u64)>,
    /// Numbers that are drawn in place of those of the generators here, and the generators that they are drawn from.
    draws_as: Option<(Vec<u64>, Vec<Generator>)>,
}

/// A capture in progress.
pub(crate) struct Capture(RefCell<State>);

thread_local! {
    static CURRENT: RefCell<Option<Rc<Capture>>> = const { RefCell::new(None) };
}

/// Ends a capture when dropped.
struct Current;

impl Drop for Current {
    fn drop(&mut self) {
        // What the capture holds is dropped outside of the borrow.
        let _ended = CURRENT.try_with(|c| c.take());
    }
}

fn current() -> Result<Rc<Capture>> {
    CURRENT.with_borrow(Clone::clone).ok_or_else(|| Error::context("no graph is captured here"))
}

/// Captures what `f` does, as a program of this rank. `f` returns the values that the program returns.
///
/// # Errors
/// Those of `f`; on a call that a program cannot have, with its line; and if a tensor that `f` makes outlives it. The tensors of the program
/// are as before then, too.
pub(crate) fn capture(f: impl FnOnce(&Capture) -> Result<Vec<ValueId>>, site: CallSite) -> Result<Captured> {
    let outer = here();
    if outer.capture().is_some() || outer.is_dry() {
        let what =
            if outer.is_dry() && outer.capture().is_none() { "in a dry run" } else { "while another is captured" };
        return Err(Error::context(format!("a graph cannot be captured {what}")).at(site));
    }
    let ctx = outer.capturing();
    let capture = Rc::new(Capture(RefCell::default()));
    {
        let _entered = ctx.enter_at(site);
        let _slots = borrow_slots();
        CURRENT.set(Some(capture.clone()));
        let _current = Current;
        let _scope = observe(capture.clone());
        let outputs = f(&capture).map_err(|e| e.at(site))?;
        if let Some(e) = ctx.capture().and_then(|c| c.refused()) {
            return Err(e.at(site));
        }
        let mut state = capture.0.borrow_mut();
        state.builder.program.outputs = outputs;
        // Also those that no call has taken: a module draws where its rate is 0.
        let own = state.generators.iter().map(|(_, drawn)| *drawn);
        state.builder.program.draws =
            [ctx.generator().ordinal, ctx.local_generator().ordinal].into_iter().chain(own).collect();
        if let Some((draws, generators)) = state.draws_as.take() {
            state.builder.program.draws = draws;
            state.generators = generators.into_iter().map(|g| (g, 0)).collect();
        }
    }
    let state = capture.0.take();
    state.finish()
}

/// The capture of this thread, if it captures a graph.
pub(crate) fn capture_in_progress() -> Option<Rc<Capture>> {
    if is_capturing() { current().ok() } else { None }
}

/// Whether this thread captures a graph.
#[inline]
pub(crate) fn is_capturing() -> bool {
    is_observed(Moments::CAPTURED)
}

/// Runs `f` outside of the capture of this thread, if there is one: on tensors with data, at once. What it makes outlives the capture.
pub(crate) fn outside_capture<R>(site: CallSite, f: impl FnOnce() -> R) -> R {
    if !is_capturing() {
        return f();
    }
    let all = Moments::CAPTURED.and(Moments::ISSUED).and(Moments::SAVED);
    let (_hidden, _entered, _free, _quiet) = (hide(all), enter_outer(site), nothing_asked(), no_grad());
    f()
}

/// Enters an object of the host into the program that is captured, if one is: a run lets it act here. Returns the place of its calls.
pub(crate) fn host_of_capture(name: &str, object: &Arc<dyn HostObject>, site: CallSite) -> Result<Option<HostCalls>> {
    if !is_capturing() {
        return Ok(None);
    }
    let capture = current()?;
    let mut state = capture.0.borrow_mut();
    let host = HostId(state.hosts.len() as u32);
    state.hosts.push(object.clone());
    state.host_names.push(name.to_string());
    state.builder.push(Work::Host(host), smallvec![], smallvec![], smallvec![], site);
    Ok(Some(HostCalls(host)))
}

/// The calls of an object of the host.
#[derive(Clone, Copy)]
pub(crate) struct HostCalls(HostId);

impl HostCalls {
    /// The call of that number.
    pub(crate) fn call(self, call: u32) -> HostNumbers {
        HostNumbers { host: self.0, call }
    }
}

/// Captures the calls of `f` under a guard: a run makes them where the flag, a truth value without dims, is true.
///
/// # Errors
/// Those of `f`, and inside another such function.
pub(crate) fn guarded<R>(flag: &Tensor, site: CallSite, f: impl FnOnce() -> Result<R>) -> Result<R> {
    let capture = current()?;
    let flag = capture.output(flag, site)?;
    if capture.0.borrow().builder.guard.is_some() {
        return Err(Error::unsupported("a guarded step inside of another").at(site));
    }
    capture.0.borrow_mut().builder.guard = Some(flag);
    let made = f();
    capture.0.borrow_mut().builder.guard = None;
    made
}

/// Draws symbolically from a generator of the program, if a graph is captured.
pub(crate) fn draw_for_capture(from: &Generator) -> Option<(u64, u64)> {
    if !is_capturing() {
        return None;
    }
    let capture = current().ok()?;
    let mut state = capture.0.borrow_mut();
    let own = &mut state.generators;
    let at = own.iter().position(|(g, _)| g.is(from)).unwrap_or_else(|| {
        own.push((from.clone(), 0));
        own.len() - 1
    });
    let ordinal = own[at].1;
    own[at].1 += 1;
    Some((symbolic_seed((GeneratorId::FIRST_OWN as usize + at) as u16), ordinal))
}

/// Puts symbols in the place of tensors with data.
pub(super) const SYMBOLS: Rewrite = Rewrite {
    applies: |call| is_capturing() && call.inputs.iter().flatten().copied().chain(call.given).any(|t| !t.is_symbol()),
    rewrite: |call| symbols(call).map(Some).map_err(|e| e.in_call(|| call.short()).at(call.site)),
};

/// The symbol of a tensor that the program supplies elsewhere than as the input of a call, if a graph is captured.
///
/// # Errors
/// The tensor cannot be used in a graph.
pub(crate) fn in_capture(t: Tensor, site: CallSite) -> Result<Tensor> {
    if is_capturing() && !t.is_symbol() { current()?.symbol(&t, site) } else { Ok(t) }
}

fn symbols(call: &Call<'_>) -> Result<Rewritten> {
    let capture = current()?;
    let symbol = |t: &Tensor| capture.symbol(t, call.site);
    let inputs = call.inputs.iter().map(|t| t.map(symbol).transpose()).collect::<Result<OwnedInputs>>()?;
    Ok(Rewritten::Tensors(inputs, call.given.map(symbol).transpose()?))
}

/// The error of an input whose gradient would be lost.
pub(super) fn no_gradient(name: &str, t: &Tensor) -> Error {
    Error::autograd(format!(
        "input {name:?} of the graph, {t:?}, requires a gradient, which a graph does not compute for inputs"
    ))
    .help("give the graph `detach()` of it; a leaf that the closure uses itself is trained")
}

fn address(t: &Tensor) -> usize {
    t.weak().number()
}

impl Capture {
    /// Draws what another program draws, whose random calls are made again with their numbers.
    pub(crate) fn draw_as(&self, other: &Captured) {
        self.0.borrow_mut().draws_as = Some((other.program.draws.clone(), other.generators.clone()));
    }

    /// The symbol of a tensor: itself, if it is one.
    fn symbol(&self, t: &Tensor, site: CallSite) -> Result<Tensor> {
        if t.is_symbol() { Ok(t.clone()) } else { self.outside(t, OutsideKind::Constant, site) }
    }

    /// The symbol of a tensor of the program, which is of that kind if it is met for the first time.
    pub(super) fn outside(&self, t: &Tensor, kind: OutsideKind, site: CallSite) -> Result<Tensor> {
        let mut state = self.0.borrow_mut();
        if let Some(i) = state.by_address.get(&address(t)) {
            return Ok(state.met[*i].symbol.clone());
        }
        state.meet(t, (kind, String::new()), site)
    }

    /// Declares a variable: a tensor whose value runs read, also where the program does not write it.
    pub(crate) fn variable(&self, t: &Tensor, site: CallSite) -> Result<()> {
        if t.is_symbol() {
            return Err(
                Error::argument(format!("a call of the graph makes {t:?}, which is declared as a variable")).at(site)
            );
        }
        self.outside(t, OutsideKind::Variable, site).map_err(|e| e.at(site))?;
        let mut state = self.0.borrow_mut();
        let met = state.by_address.get(&address(t)).and_then(|i| state.met[*i].outside);
        if let Some(outside) = met.map(|i| &mut state.whole().program.outside[i])
            && outside.kind == OutsideKind::Constant
        {
            outside.kind = OutsideKind::Variable;
        }
        Ok(())
    }

    /// Declares an input: the symbol that stands for it.
    pub(crate) fn input(&self, name: &str, example: &Tensor, site: CallSite) -> Result<Tensor> {
        let mut state = self.0.borrow_mut();
        if state.whole().program.outside_of(OutsideKind::Input).any(|o| o.name == name) {
            return Err(Error::argument(format!("the graph has an input {name:?} already")).at(site));
        }
        let known = state.by_address.get(&address(example)).map(|i| state.met[*i].outside);
        let inputs: Vec<bool> = state.whole().program.outside.iter().map(|o| o.kind == OutsideKind::Input).collect();
        if known.is_some_and(|outside| !outside.is_some_and(|i| inputs[i])) {
            return Err(Error::argument(format!("the tensor of input {name:?} was used before it was declared"))
                .at(site)
                .help("declare inputs at the beginning of the closure"));
        }
        if example.is_symbol() {
            return Err(Error::argument(format!("input {name:?} is made in the graph itself")).at(site));
        }
        if grad_enabled() && example.requires_grad() {
            return Err(no_gradient(name, example).at(site));
        }
        let own = example.value();
        if known.is_some() {
            // The example of another input: a value of its own, of the same type.
            own.set_stamp(next_stamp());
        }
        state.meet(&own, (OutsideKind::Input, name.to_string()), site).map_err(|e| e.at(site))
    }

    /// The value that a tensor is, also one of the program.
    pub(crate) fn output(&self, t: &Tensor, site: CallSite) -> Result<ValueId> {
        let symbol = self.symbol(t, site)?;
        self.0.borrow_mut().id_of(&symbol)
    }
}

impl State {
    /// The symbol of a tensor that is met for the first time.
    fn meet(&mut self, t: &Tensor, (kind, name): (OutsideKind, String), site: CallSite) -> Result<Tensor> {
        let (ctx, ty) = (here(), type_of(t)?);
        let Some(capture) = ctx.capture() else { return Err(Error::context("no graph is captured here")) };
        t.check_origin_is(capture.outer().origin())?;
        if let Edge::Node(node, _) = t.edge() {
            return Err(Error::autograd(format!("{t:?} was made by {} before the graph is captured", node.op.name()))
                .help("compute it inside of the closure, or give the graph `detach()` of it"));
        }
        t.name_memory(site.scope);
        t.note_stamp();
        let stamp = t.stamp();
        // The program has the tensor itself: a handle of its value, as `detach` gives, is not written.
        if self.known(stamp).is_none()
            && let Some(source) = t.numbered_source()
        {
            self.meet(&source, (kind, name.clone()), site)?;
        }
        // Another handle of a value that the program has: of `detach`, for example.
        let of = self.met.iter().position(|m| m.symbol.stamp() == stamp);
        let symbol = match (of, self.known(stamp), &ty) {
            (Some(i), ..) => self.met[i].symbol.value(),
            (None, None, TypeRef::Local(l)) => Tensor::from_local(LocalTensor::alloc(&ctx, l)?),
            (None, Some(_), TypeRef::Local(_)) => {
                return Err(Error::unsupported(format!(
                    "{t:?} shares memory that a call of the graph has written since"
                ))
                .help("take the view after the write, or a value of its own with `copy()`"));
            }
            (None, found, TypeRef::Global(g)) => {
                let shard = match t.with_data(|l| l.map(|l| l.ty.clone()))? {
                    Some(ty) => Some(LocalTensor::alloc(&ctx, &ty)?),
                    None => None,
                };
                Tensor::from_shard(g.clone(), shard).in_version(found.map_or(0, |(version, _)| version), stamp)
            }
        };
        symbol.set_stamp(stamp);
        symbol.set_edge(t.edge());
        if t.is_global_view() {
            symbol.mark_global_view();
        }
        if let Some(how) = t.for_use() {
            symbol.set_for_use(how.clone());
        }
        let outside = match self.known(stamp) {
            Some(_) => None,
            None => {
                let whole = self.whole();
                let value = whole.add_outside(ty, kind, name, site);
                whole.set_known(stamp, symbol.version(), value);
                Some(whole.program.outside.len() - 1)
            }
        };
        self.by_address.insert(address(t), self.met.len());
        self.by_address.insert(address(&symbol), self.met.len());
        self.met.push(Met { tensor: t.clone(), symbol: symbol.clone(), outside, written: false });
        Ok(symbol)
    }

    /// The value that a symbol is.
    fn id_of(&mut self, t: &Tensor) -> Result<ValueId> {
        self.id_in_version(t, |known| t.version() == known)
    }

    /// The value that a symbol is, or was before a call has written it.
    fn id_before(&mut self, t: &Tensor, wrote: bool) -> Result<ValueId> {
        self.id_in_version(t, |known| t.version() == known || (wrote && t.version() == known + 1))
    }

    fn id_in_version(&mut self, t: &Tensor, fits: impl Fn(u64) -> bool) -> Result<ValueId> {
        match self.known_here(t) {
            Some((version, id)) if fits(version) => Ok(id),
            Some(_) => {
                Err(Error::unsupported(format!("{t:?} shares memory that a call of the graph has written since"))
                    .help("take the view after the write, or a value of its own with `copy()`"))
            }
            None => Err(Error::unsupported(format!("{t:?} was made in a way that a graph does not know"))
                .help("make it before the graph is captured, or by calls of ops")),
        }
    }

    fn call(&mut self, call: &Call<'_>, outs: &[Tensor], issued: &Issued<'_>) -> Result<()> {
        if call.host.is_some() && call.recording {
            // Its gradient would have the number of the capture.
            return Err(Error::registry("a call with numbers of the host is recorded for backward"));
        }
        let in_place = writes(call);
        let wrote = |t: &Tensor| in_place && written(call).any(|w| share_memory(w, t));
        let mut inputs: SmallVec<[Option<ValueId>; 4]> = SmallVec::new();
        for (i, t) in call.inputs.iter().enumerate() {
            let boxed = issued.boxed.get(i).and_then(Option::as_ref);
            inputs.push(boxed.or(*t).map(|t| self.id_before(t, wrote(t))).transpose()?);
        }
        let mut overwritten: SmallVec<[Write; 1]> = SmallVec::new();
        if in_place {
            for t in written(call) {
                overwritten.push(self.overwrite(t)?);
            }
        }
        let made = if call.given.is_some() { &[] } else { outs };
        self.made.extend(made.iter().map(|t| (t.weak(), call.site)));
        let draw = self.draw_of(call)?;
        self.builder.push_call(call, issued, draw, inputs, overwritten, made)
    }

    /// The tensor has been written: its value before and its new one.
    fn overwrite(&mut self, t: &Tensor) -> Result<Write> {
        if t.base().is_some() {
            return Err(Error::unsupported(format!(
                "{t:?} is a view of a local tensor; a graph does not write through it"
            ))
            .help("write the tensor itself, or `copy()` of the view"));
        }
        let old = self.id_before(t, true)?;
        t.set_stamp(next_stamp());
        let new = self.builder.define(t)?;
        self.note_written(t, Write { old, new })?;
        if let Some(i) = self.by_address.get(&address(t)) {
            let met = &mut self.met[*i];
            met.written = true;
            met.tensor.set_stamp(t.stamp());
        }
        Ok(Write { old, new })
    }

    /// The draw that gave a random call its numbers, if the program did not state them.
    fn draw_of(&self, call: &Call<'_>) -> Result<Option<Draw>> {
        if !call.op.traits.random {
            return Ok(None);
        }
        let number = |name: &str| match call.runtime.get(call.op.sig.runtime_attr(name)?) {
            Some(Scalar::Int(n)) => Some(*n as u64),
            _ => None,
        };
        let (Some(seed), Some(ordinal)) = (number("seed"), number("ordinal")) else { return Ok(None) };
        let Some(generator) = generator_of_seed(seed) else { return Ok(None) };
        self.draw_in_section(Draw { generator: GeneratorId(generator.into()), ordinal }).map(Some)
    }

    /// The captured program, unless a tensor outlives the closure or two tensors share memory that is written.
    fn finish(mut self) -> Result<Captured> {
        self.builder.program.hosts = std::mem::take(&mut self.host_names);
        for met in &self.met {
            if let Some(i) = met.outside
                && self.builder.program.outside[i].kind == OutsideKind::Constant
                && (met.written || met.tensor.requires_grad())
            {
                self.builder.program.outside[i].kind = OutsideKind::Variable;
            }
        }
        let outside: Vec<Tensor> = self.met.iter().filter(|m| m.outside.is_some()).map(|m| m.tensor.clone()).collect();
        self.check_shared_memory()?;
        self.met.clear();
        if let Some((t, site)) = self.made.iter().find_map(|(t, site)| Some((t.get()?, *site))) {
            return Err(Error::unsupported(format!("{t:?}, which the closure of the graph made, outlives it"))
                .at(site)
                .help("return it from the closure; what runs are to change is made before the graph is captured"));
        }
        self.builder.program.verify()?;
        Ok(Captured {
            program: self.builder.program,
            outside,
            hosts: self.hosts,
            generators: self.generators.into_iter().map(|(g, _)| g).collect(),
        })
    }

    /// Refuses two local tensors of one memory of which one is written: the program knows them as two values.
    fn check_shared_memory(&self) -> Result<()> {
        let mut locals: Vec<&Met> = self.met.iter().filter(|m| matches!(m.tensor.body(), Body::Local(_))).collect();
        locals.sort_by_key(|m| m.tensor.memory_id());
        for same in locals.chunk_by(|a, b| a.tensor.memory_id() == b.tensor.memory_id()) {
            let numbered = same.iter().filter(|m| m.outside.is_some()).count();
            if numbered > 1 && same.iter().any(|m| m.written) {
                let t = &same[0].tensor;
                return Err(Error::unsupported(format!(
                    "{t:?} and another tensor that the graph uses share memory, which it writes"
                ))
                .help("make the view inside of the closure, or give the graph `copy()` of it"));
            }
        }
        Ok(())
    }
}

impl Observer for Capture {
    fn moments(&self) -> Moments {
        Moments::CAPTURED
    }
    fn captured(&self, call: &Call<'_>, outs: &[Tensor], issued: &Issued<'_>) -> Result<()> {
        self.0.borrow_mut().call(call, outs, issued)
    }
    fn captured_boxing(&self, op: &'static str, input: &Tensor, out: &Tensor, site: CallSite) -> Result<()> {
        let mut state = self.0.borrow_mut();
        let from = state.id_of(input)?;
        state.made.push((out.weak(), site));
        state.builder.push_boxing(op, from, out, site).map(drop)
    }
}
