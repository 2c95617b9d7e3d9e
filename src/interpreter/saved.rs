//! What is kept of tensors for backward, as a program says: pack when a call is recorded, unpack when its gradient is asked for.

use super::call::Call;
use super::gather::gathered;
use super::tape::{self, Slot, Tape};
use crate::context::{grad_enabled, no_grad};
use crate::error::{CallSite, Error, Result};
use crate::tensor::{Edge, GlobalRef, Kept, Packed, Saved, Tensor, Unpack};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// What a scope does with the tensors that calls save.
enum Hooks {
    /// What the program says.
    Program { pack: Pack, unpack: Unpack },
    /// Those that calls in it have made are dropped; backward runs the calls again.
    Tape(Arc<Tape>),
}

/// Makes what is kept of a tensor.
type Pack = Box<dyn Fn(&Tensor) -> Result<Box<dyn Any + Send + Sync>>>;

thread_local! {
    /// The scopes that are open.
    static SCOPES: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
    /// Whether hooks are in force: all that a call asks.
    static ANY: Cell<bool> = const { Cell::new(false) };
}

/// Calls `f`. A tensor that a call in it saves for backward is given to `pack`, and what that returns is kept in its place. When the
/// gradient is computed `unpack` makes the tensor again, of the same type and with the same values. So activations can lie on
/// another device, in fewer bits or in a file. Scopes nest: the inner one is asked. What `pack` and `unpack` compute is not recorded.
/// A value that `pack` has copied may be changed in place afterwards.
///
/// ```
/// use oflow::{prelude::*, saved_tensors_hooks};
/// let x = from_vec(vec![1.0f32, 2.0], [2], Device::Cpu)?.requires_grad_(true)?;
/// // Activations are kept in half the bytes.
/// let y = saved_tensors_hooks(|t| t.cast(DType::BF16), |t: &Tensor| t.cast(DType::F32), || x.square())?;
/// y.sum(())?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// A call in `f` fails where `pack` does; backward fails where `unpack` does or makes a tensor of another type.
pub fn saved_tensors_hooks<P: Send + Sync + 'static, R>(
    pack: impl Fn(&Tensor) -> Result<P> + 'static,
    unpack: impl Fn(&P) -> Result<Tensor> + Send + Sync + 'static,
    f: impl FnOnce() -> R,
) -> R {
    let hooks = Hooks::Program {
        pack: Box::new(move |t| Ok(Box::new(pack(t)?) as Box<dyn Any + Send + Sync>)),
        unpack: Arc::new(move |p| {
            let packed = p.downcast_ref::<P>().ok_or_else(|| Error::autograd("a packed tensor of another scope"))?;
            unpack(packed)
        }),
    };
    let _scope = Scope::enter(Some(hooks));
    f()
}

/// Until the guard is dropped, calls keep nothing for backward that calls in the scope have made. When backward needs a value of the
/// scope it runs these calls once more, in the modes in which they ran and with the same random numbers. So the scope needs memory for
/// its inputs and results only, and its time once more. Scopes nest.
///
/// [`nn::checkpoint`](crate::nn::checkpoint) is the function for programs; this is for other languages.
#[must_use = "the scope ends when the guard is dropped: give it a name, `let _guard = …` (`let _ = …` drops it at once), or call `.run(|| …)`"]
pub struct RecomputeGuard {
    _scope: Option<Scope>,
}

crate::context::runs_closures!(RecomputeGuard);

/// Begins such a scope. Where nothing is recorded for backward it changes nothing.
pub fn recompute() -> RecomputeGuard {
    RecomputeGuard { _scope: grad_enabled().then(|| Scope::enter(Some(Hooks::Tape(Arc::default())))) }
}

/// The tapes in force, each with its place among the scopes.
fn tapes() -> Vec<(usize, Arc<Tape>)> {
    let of = |(i, h): (usize, Rc<Hooks>)| match &*h {
        Hooks::Tape(tape) => Some((i, tape.clone())),
        Hooks::Program { .. } => None,
    };
    in_force().into_iter().enumerate().filter_map(of).collect()
}

/// Lists a call that has been carried out, where calls are listed.
#[inline]
pub(super) fn list(call: &Call<'_>, outs: &[Tensor]) -> Result<()> {
    if ANY.get() && call.given.is_none() && !call.op.writes_inputs() {
        tape::list(&tapes(), call, outs)
    } else {
        Ok(())
    }
}

/// Lists that an input of a call was boxed for it.
#[inline]
pub(super) fn list_boxed(t: &Tensor, out: &Tensor, to: &GlobalRef, site: CallSite) -> Result<()> {
    if ANY.get() { tape::list_boxed(&tapes(), t, out, to, site) } else { Ok(()) }
}

/// Neither hooks nor lists until it is dropped.
pub(super) fn unseen() -> Option<impl Drop> {
    ANY.get().then(|| Scope::enter(None))
}

/// What a tape at `level` keeps of a tensor that it does not know: the number of an outer one, or the tensor.
pub(super) fn saved_outside(t: &Tensor, level: usize) -> Result<Saved> {
    let slot = tapes().iter().rev().filter(|(i, _)| *i < level).find_map(|(_, outer)| outer.slot(t));
    Ok(match slot {
        Some(slot) => in_slot(slot, t, Edge::None),
        None => tape::kept_itself(t),
    })
}

/// A tensor that is made again when it is needed.
fn in_slot(slot: Arc<Slot>, t: &Tensor, edge: Edge) -> Saved {
    static UNPACK: OnceLock<Unpack> = OnceLock::new();
    let unpack = UNPACK.get_or_init(|| {
        Arc::new(|p| {
            let slot = p.downcast_ref::<Arc<Slot>>();
            slot.ok_or_else(|| Error::autograd("a packed tensor of another scope"))?.value()
        })
    });
    let packed = Packed { value: Box::new(slot), unpack: unpack.clone(), ty: t.type_ref(), edge };
    Saved { kept: Kept::Packed(Box::new(packed)), version: 0 }
}

/// The hooks in force until it is dropped: one more, or none. Scopes may be dropped in any order.
struct Scope {
    number: u64,
    // Scopes are per thread.
    _not_send: PhantomData<*const ()>,
}

/// A scope that is open.
struct Open {
    number: u64,
    /// None: the hooks of outer scopes are not in force.
    hooks: Option<Rc<Hooks>>,
}

impl Scope {
    fn enter(hooks: Option<Hooks>) -> Scope {
        let number = SCOPES.with_borrow_mut(|scopes| {
            let number = scopes.last().map_or(0, |s| s.number + 1);
            scopes.push(Open { number, hooks: hooks.map(Rc::new) });
            note_any(scopes);
            number
        });
        Scope { number, _not_send: PhantomData }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // Gone only when the thread ends. What hooks hold is dropped outside of the borrow.
        let _ended = SCOPES.try_with(|scopes| {
            let mut scopes = scopes.borrow_mut();
            let at = scopes.iter().rposition(|s| s.number == self.number);
            let ended = at.map(|at| scopes.remove(at));
            note_any(&scopes);
            ended
        });
    }
}

fn note_any(scopes: &[Open]) {
    ANY.set(scopes.last().is_some_and(|s| s.hooks.is_some()));
}

/// The hooks in force, the outermost first.
fn in_force() -> Vec<Rc<Hooks>> {
    SCOPES.with_borrow(|scopes| {
        let from = scopes.iter().rposition(|s| s.hooks.is_none()).map_or(0, |at| at + 1);
        scopes[from..].iter().filter_map(|s| s.hooks.clone()).collect()
    })
}

/// Whether a scope's hooks are in force on this thread.
pub(super) fn any_hooks() -> bool {
    ANY.get()
}

/// What is saved of a tensor in that version: itself, or what the scope's hook makes of it.
#[inline]
pub(super) fn save(tensor: Tensor, version: u64) -> Result<Saved> {
    if let Some(source) = tensor.gathered_from() {
        return Ok(Saved { kept: Kept::Gathered(source.clone()), version: source.version() });
    }
    if !ANY.get() {
        return Ok(Saved { kept: Kept::Tensor(tensor), version });
    }
    packed(&tensor)
}

#[cold]
fn packed(tensor: &Tensor) -> Result<Saved> {
    for hooks in in_force().iter().rev() {
        match &**hooks {
            Hooks::Tape(tape) => {
                if let Some(slot) = tape.slot(tensor) {
                    return Ok(in_slot(slot, tensor, tensor.edge()));
                }
            }
            Hooks::Program { pack, unpack } => {
                let (_plain, _unrecorded) = (Scope::enter(None), no_grad());
                let value = pack(&tensor.detach()).map_err(|e| e.in_call(|| PACK.to_string()))?;
                let packed = Packed { value, unpack: unpack.clone(), ty: tensor.type_ref(), edge: tensor.edge() };
                return Ok(Saved { kept: Kept::Packed(Box::new(packed)), version: 0 });
            }
        }
    }
    Ok(Saved { kept: Kept::Tensor(tensor.clone()), version: tensor.version() })
}

const PACK: &str = "saved_tensors_hooks (pack)";

/// The tensor that the call at `site` saved; none where it was changed in place since.
///
/// # Errors
/// What the scope's hook reports, and if it makes a tensor of another type.
pub(super) fn restore(saved: &Saved, site: CallSite) -> Result<Option<Tensor>> {
    match &saved.kept {
        Kept::Tensor(t) => Ok((t.version() == saved.version).then(|| t.clone())),
        Kept::Gathered(source) if source.version() != saved.version => Ok(None),
        Kept::Gathered(source) => gathered(source, site).map(Some),
        Kept::Packed(p) => unpacked(p).map(Some),
    }
}

#[cold]
fn unpacked(p: &Packed) -> Result<Tensor> {
    let who = if p.value.is::<Arc<Slot>>() { "checkpoint (run again)" } else { "saved_tensors_hooks (unpack)" };
    let named = |e: Error| e.in_call(|| who.to_string());
    let t = {
        let (_plain, _unrecorded) = (Scope::enter(None), no_grad());
        (p.unpack)(&*p.value).map_err(named)?
    };
    let text = |t: &Option<crate::plan::TypeRef>| t.as_ref().map_or("none".to_string(), |t| t.short());
    let (want, have) = (text(&p.ty), text(&t.type_ref()));
    if want != have {
        return Err(named(Error::autograd(format!("gives {have}, but {want} was saved"))));
    }
    let t = t.value();
    t.set_edge(p.edge.clone());
    Ok(t)
}
