//! The registry of ops: ordered, greppable, one per process. Ops are added, and only those of a loaded library are removed again. A
//! registered op can be given more (a gradient where it has none, signatures); what it has is never replaced.
//!
//! The key of an op is `domain.name`. Built-in ops have the domain `oflow`. A bare name finds oflow's op, else the one op of
//! another domain that has it.

use super::autocast::{CastPolicy, policy_of};
use super::def::{OpDef, SbpFn};
use super::derive::Derived;
use super::grad::Grad;
use super::infer::InferCtx;
use crate::error::{Error, Result};
use crate::intern::FixedMap;
use crate::sbp::Signature;
use oflow_kernels::expr::Expr;
use smol_str::{SmolStr, format_smolstr};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock, RwLock};

/// A registered op. Lives for the whole process.
pub struct Op {
    id: u64,
    /// Name that [`Op::name`] returns.
    name: SmolStr,
    /// The declaration as it is now. Earlier ones are leaked: a call may be reading them.
    def: AtomicPtr<OpDef>,
    cast: CastPolicy,
    /// Whether any of its inputs is mutable; asked at each call.
    writes_inputs: bool,
    /// Gradient ops derived from the expression, by input.
    pub(super) derived: Vec<Derived>,
    /// Whether the op's library was unloaded.
    gone: AtomicBool,
    /// Calls in autograd graphs, of an op of a library.
    recorded: AtomicUsize,
    /// The ops that its gradient calls are there, and take these calls.
    gradient_checked: AtomicBool,
    /// Whether the registered op was given kernels.
    kernels_added: AtomicBool,
}

/// A call of an op of a library that an autograd graph holds.
pub(crate) struct OpUse(&'static Op);

impl Drop for OpUse {
    fn drop(&mut self) {
        self.0.recorded.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Op {
    /// Number of the op in this process, from 1.
    pub fn id(&self) -> u64 {
        self.id
    }
    /// The name by which [`find`] finds this op and no other: `relu` for an op of oflow's, `domain.name` for others. The name
    /// without the domain is `sig.name`.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Returns whether a call writes one of its inputs in place.
    pub fn writes_inputs(&self) -> bool {
        self.writes_inputs
    }
    /// Returns whether the op and all of its kernels are oflow's.
    pub(crate) fn is_own(&self) -> bool {
        self.domain == BUILTIN && !self.kernels_added.load(Ordering::Acquire)
    }
    /// Says that the registered op has another kernel.
    pub(crate) fn kernel_was_added(&self) {
        self.kernels_added.store(true, Ordering::Release);
    }
    /// The expression that every kernel of the op is made of; `None` where it has others.
    pub(crate) fn expr_of_kernels(&self) -> Option<&Expr> {
        let others = !self.kernels.is_empty() || self.kernels_added.load(Ordering::Acquire);
        self.expr.as_deref().filter(|_| !others)
    }
    pub(super) fn gradient_is_checked(&self) -> bool {
        self.gradient_checked.load(Ordering::Acquire)
    }
    pub(super) fn gradient_was_checked(&self) {
        self.gradient_checked.store(true, Ordering::Release);
    }
    /// Autocast policy of the inputs.
    pub fn autocast(&self) -> CastPolicy {
        self.cast
    }
    /// Counts a call that a graph holds, as long as what is returned lives; none for an op that cannot be unloaded.
    #[inline]
    pub(crate) fn hold(&'static self) -> Option<OpUse> {
        self.library.as_ref()?;
        self.recorded.fetch_add(1, Ordering::AcqRel);
        Some(OpUse(self))
    }
    /// # Errors
    /// The library of the op was unloaded.
    pub(crate) fn check_there(&self) -> Result<()> {
        match self.gone.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(Error::registry(format!("op {} is gone: its library was unloaded", self.full_name()))
                .help("find the op by its name again, after loading its library")),
        }
    }
}

impl Deref for Op {
    type Target = OpDef;
    fn deref(&self) -> &OpDef {
        // SAFETY: the pointer comes from a leaked box (`Registry::add`, `extend`), so it is valid for ever; what it points
        // to is never written again.
        unsafe { &*self.def.load(Ordering::Acquire) }
    }
}

/// Domain of the built-in ops.
pub(super) const BUILTIN: &str = "oflow";

struct Registry {
    /// Ops made so far.
    made: u64,
    /// By `domain.name`.
    ops: FixedMap<SmolStr, &'static Op>,
    /// Ops of other domains than oflow's, by bare name.
    bare: FixedMap<SmolStr, Vec<&'static Op>>,
}

fn key(domain: &str, name: &str) -> SmolStr {
    format_smolstr!("{domain}.{name}")
}

static GENERATION: AtomicU64 = AtomicU64::new(0);

static REGISTRY: LazyLock<RwLock<Registry>> = LazyLock::new(|| {
    let mut r = Registry { made: 0, ops: FixedMap::default(), bare: FixedMap::default() };
    for def in super::builtin() {
        // A built-in declaration that does not hold is a bug of ours, found by the first test that runs.
        let def = def.and_then(|d| r.add(d));
        assert!(def.is_ok(), "built-in op: {}", def.err().map(|e| e.to_string()).unwrap_or_default());
    }
    RwLock::new(r)
});

impl Registry {
    fn add(&mut self, def: OpDef) -> Result<&'static Op> {
        let key = key(&def.domain, &def.sig.name);
        if let Some(old) = self.ops.get(&key) {
            let by = old.library.as_ref().map_or(String::new(), |l| format!(", by the library {l}"));
            return Err(Error::registry(format!(
                "op {} is registered already (as {}{by})",
                def.full_name(),
                old.full_name()
            ))
            .help("choose another name or domain; an op is replaced by a changed build of its library only"));
        }
        if def.domain.is_empty() || !def.domain.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(Error::registry(format!("'{}' cannot be the domain of an op", def.domain))
                .help("a domain is letters, digits and '_'"));
        }
        def.check_rule()?;
        def.check_hooks()?;
        def.check_wires(&def.grad)?;
        self.check_functions(&def)?;
        let derived = def.sig.inputs.iter().map(|_| Derived::default()).collect();
        let builtin = def.domain == BUILTIN;
        let of_table = if builtin { policy_of(&def.sig.name) } else { CastPolicy::Keep };
        let cast = def.cast.unwrap_or(of_table);
        let bare = def.sig.name.clone();
        let name = if builtin { bare.clone() } else { key.clone() };
        self.made += 1;
        let (id, writes_inputs) = (self.made, def.sig.inputs.iter().any(|i| i.mutable));
        let def = AtomicPtr::new(Box::leak(Box::new(def)));
        let (gone, recorded) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (gradient_checked, kernels_added) = (AtomicBool::new(false), AtomicBool::new(false));
        let op = Op { id, name, def, cast, writes_inputs, derived, gone, recorded, gradient_checked, kernels_added };
        let op: &'static Op = Box::leak(Box::new(op));
        self.ops.insert(key, op);
        if !builtin {
            self.bare.entry(bare).or_default().push(op);
        }
        Ok(op)
    }

    /// Takes an op out, with the gradient ops that were derived from it.
    fn remove(&mut self, op: &'static Op) {
        op.derived.iter().flat_map(Derived::ops).for_each(|d| self.remove(d));
        self.ops.shift_remove(&key(&op.domain, &op.sig.name));
        if let Some(same) = self.bare.get_mut(&op.sig.name) {
            same.retain(|o| !std::ptr::eq(*o, op));
            if same.is_empty() {
                self.bare.shift_remove(&op.sig.name);
            }
        }
    }

    /// Functions that others of the domain leave reachable.
    fn check_functions(&self, def: &OpDef) -> Result<()> {
        // The table of functions checks those of built-in ops when it is made.
        if def.functions.is_empty() || def.domain == BUILTIN {
            return Ok(());
        }
        let added = def.function_signatures()?;
        let others = self.ops.values().filter(|op| op.domain == def.domain && !op.functions.is_empty());
        let mut known = vec![];
        for op in others {
            known.extend(op.function_signatures()?);
        }
        for sig in added {
            if let Some(first) = known.iter().find(|k| k.name == sig.name && k.hides(&sig)) {
                return Err(super::function::hidden_overload(&sig, first));
            }
            known.push(sig);
        }
        Ok(())
    }

    /// The op that a name means; none where there is no such op.
    fn lookup(&self, name: &str) -> Result<Option<&'static Op>> {
        let full = name.replace("::", ".");
        if let Some(op) = self.ops.get(&key(BUILTIN, &full)).or_else(|| self.ops.get(full.as_str())) {
            return Ok(Some(op));
        }
        match self.bare.get(full.as_str()).map(Vec::as_slice) {
            None => Ok(None),
            Some([op]) => Ok(Some(op)),
            Some(several) => {
                let names: Vec<&str> = several.iter().map(|op| op.name()).collect();
                Err(Error::registry(format!("'{name}' is the name of several ops: {}", names.join(", ")))
                    .help(format!("write the domain too: '{}'", names[0])))
            }
        }
    }
}

fn registry() -> std::sync::RwLockReadGuard<'static, Registry> {
    REGISTRY.read().unwrap_or_else(|e| e.into_inner())
}

/// Adds an op. It can be called by name at once, as `domain.name` or `name`, and takes part in everything built-in ops do.
/// Choose a domain for the ops of a crate ([`OpDef::domain`]): names are unique within a domain.
///
/// # Errors
/// If the domain has an op of that name, if the domain is not letters, digits and `_`, or if the sharding rule has another
/// number of inputs or outputs than the op.
pub fn register(def: OpDef) -> Result<&'static Op> {
    let op = REGISTRY.write().unwrap_or_else(|e| e.into_inner()).add(def)?;
    GENERATION.fetch_add(1, Ordering::Release);
    Ok(op)
}

/// Takes the ops of a library out and adds others in their place: all of them, or nothing changes.
///
/// # Errors
/// An autograd graph holds a call of one that would go; otherwise as [`register`].
pub(crate) fn exchange(old: &[&'static Op], new: Vec<OpDef>) -> Result<Vec<&'static Op>> {
    let mut r = REGISTRY.write().unwrap_or_else(|e| e.into_inner());
    let uses = |op: &&&Op| {
        let derived: usize = op.derived.iter().flat_map(Derived::ops).map(|d| d.recorded.load(Ordering::Acquire)).sum();
        op.recorded.load(Ordering::Acquire) + derived > 0
    };
    if let Some(op) = old.iter().find(uses) {
        return Err(Error::registry(format!("op {} is in use: an autograd graph holds a call of it", op.full_name()))
            .help("drop the results that were computed with it, or detach them, and try again"));
    }
    let (before, bare) = (r.ops.clone(), r.bare.clone());
    old.iter().for_each(|op| r.remove(op));
    let added: Result<Vec<&'static Op>> = new.into_iter().map(|def| r.add(def)).collect();
    match added {
        Ok(added) => {
            old.iter().for_each(|op| op.gone.store(true, Ordering::Release));
            GENERATION.fetch_add(1, Ordering::Release);
            Ok(added)
        }
        Err(e) => {
            (r.ops, r.bare) = (before, bare);
            Err(e)
        }
    }
}

/// Gives a registered op something more. Plans that were made before are made anew.
fn extend(name: &str, change: impl FnOnce(&mut OpDef) -> Result<()>) -> Result<()> {
    let op = find(name)?;
    // One writer at a time; readers take either declaration.
    let _one = REGISTRY.write().unwrap_or_else(|e| e.into_inner());
    let mut def = OpDef::clone(op);
    change(&mut def).map_err(|e| e.in_call(|| op.full_name()))?;
    op.def.store(Box::leak(Box::new(def)), Ordering::Release);
    GENERATION.fetch_add(1, Ordering::Release);
    Ok(())
}

/// Gives a registered op its gradient.
///
/// # Errors
/// There is no such op, or it has a gradient, or it says that it has none.
pub fn add_gradient(op: &str, grad: Grad) -> Result<()> {
    extend(op, |def| match def.grad {
        Grad::Missing => {
            def.check_wires(&grad)?;
            def.grad = grad;
            Ok(())
        }
        _ => Err(Error::registry(format!("the gradient is there already: {:?}", def.grad))
            .help("a gradient is never replaced: declare an op of your own, or wrap the call in `apply_custom`")),
    })
}

/// Adds 1-d signatures to a registered op: they are candidates after those that it declares. A signature that the op
/// declares too is dropped. All ranks must add the same, in the same order.
///
/// # Errors
/// There is no such op.
pub fn add_signatures(
    op: &str,
    more: impl Fn(&InferCtx<'_>) -> Result<Vec<Signature>> + Send + Sync + 'static,
) -> Result<()> {
    let more: SbpFn = std::sync::Arc::new(more);
    extend(op, |def| {
        def.sbp_added.push(more);
        Ok(())
    })
}

/// Adds a derived gradient op unless it is there; does not count as a change of the registry.
pub(crate) fn register_derived(def: OpDef) -> Result<&'static Op> {
    let mut r = REGISTRY.write().unwrap_or_else(|e| e.into_inner());
    match r.ops.get(&key(&def.domain, &def.sig.name)) {
        Some(op) => Ok(op),
        None => r.add(def),
    }
}

/// Returns an op by its name. `domain.name` (or `domain::name`) names an op exactly. A bare `name` is oflow's op, else the op
/// of the one domain that has it.
///
/// ```
/// use oflow::ops::{OpDef, find, register};
/// let op = register(OpDef::elementwise("halve(x: float) -> y", "x * 0.5")?.domain("mine"))?;
/// assert_eq!((op.name(), find("relu")?.name(), find("oflow.relu")?.name()), ("mine.halve", "relu", "relu"));
/// assert_eq!([find("halve")?.id(), find("mine.halve")?.id(), find("mine::halve")?.id()], [op.id(); 3]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// If there is no such op (the message suggests the nearest name), or if several domains have the bare name and oflow does
/// not (the message lists them).
pub fn find(name: &str) -> Result<&'static Op> {
    lookup(name)?.ok_or_else(|| {
        let e = Error::registry(format!("unknown op '{name}'"));
        match nearest(name, shown().iter().map(|op| op.name())) {
            Some(n) => e.help(format!("did you mean '{n}'? `oflow ops` lists all")),
            None => e.help("`oflow ops` lists all"),
        }
    })
}

/// As [`find`], but no op of that name is no error.
pub(crate) fn lookup(name: &str) -> Result<Option<&'static Op>> {
    registry().lookup(name)
}

/// All ops in order of registration, hidden ones included.
pub fn all() -> Vec<&'static Op> {
    registry().ops.values().copied().collect()
}

/// All ops in order of registration, without the hidden ones.
pub(crate) fn shown() -> Vec<&'static Op> {
    registry().ops.values().copied().filter(|op| !op.traits.hidden).collect()
}

/// Something changed that plans are made from: those made before are made anew.
pub(crate) fn changed() {
    GENERATION.fetch_add(1, Ordering::Release);
}

/// Changes whenever an op is added.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// A hash of the functions of libraries, which the table of functions has.
static FUNCTIONS: AtomicU64 = AtomicU64::new(0);

/// Says the hash of the functions that libraries have registered: ranks compare it with their ops.
pub(crate) fn note_functions(hash: u64) {
    FUNCTIONS.store(hash, Ordering::Release);
}

/// A hash of every visible declaration: ranks whose registries differ are refused at start.
pub fn hash() -> u64 {
    use std::hash::Hasher;
    let mut h = crate::intern::FixedHasher::default();
    h.write_u64(FUNCTIONS.load(Ordering::Acquire));
    for op in shown() {
        h.write_u64(op.identity());
    }
    h.finish()
}

/// An op of the registry, looked up at its first use. [`op!`](crate::op) makes one per place.
pub struct OpRef {
    name: &'static str,
    op: OnceLock<&'static Op>,
}

impl OpRef {
    /// Names an op, as [`find`] takes it. It may be registered later.
    pub const fn new(name: &'static str) -> OpRef {
        OpRef { name, op: OnceLock::new() }
    }
    /// Returns the op.
    ///
    /// # Errors
    /// Those of [`find`]: there is no such op yet, or several domains have the bare name.
    #[inline]
    pub fn get(&self) -> Result<&'static Op> {
        match self.op.get() {
            // Its library may have been loaded anew.
            Some(op) if op.gone.load(Ordering::Relaxed) => find(self.name),
            Some(op) => Ok(op),
            None => {
                let op = find(self.name)?;
                Ok(self.op.get_or_init(|| op))
            }
        }
    }
}

/// Finds an op by name, as [`find`](crate::ops::find) does: `Result<&'static Op>`. The registry is searched at the first use of
/// each place in a program; later uses return the op that was found.
///
/// ```
/// assert_eq!(oflow::op!("relu")?.name(), "relu");
/// # Ok::<(), oflow::Error>(())
/// ```
#[macro_export]
macro_rules! op {
    ($name:expr) => {{
        static OP: $crate::ops::OpRef = $crate::ops::OpRef::new($name);
        OP.get()
    }};
}

/// Longer names are not compared with those that there are.
const LONGEST_NAME: usize = 128;

/// The candidate that a misspelt `name` most likely means: one that differs in case, underscores or domain only, else the one
/// with the fewest typing errors (a letter too many, missing, wrong, or exchanged with its neighbour): at most one for three to
/// six letters, two up to ten.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |s: &str| -> String {
        let bare = s.rsplit(['.', ':']).next().unwrap_or(s);
        bare.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    let wanted = plain(name);
    // No name is as long: what takes time that grows with its square is not a slip of the finger.
    if wanted.len() > LONGEST_NAME {
        return None;
    }
    let errors = |c: &str| strsim::osa_distance(&wanted, &plain(c));
    candidates.map(|c| (errors(c), c)).min().filter(|(n, _)| n * 4 <= wanted.len() + 1).map(|(_, c)| c)
}
