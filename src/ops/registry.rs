//! The registry of ops: ordered, greppable, one per process. Ops are added, never removed. A registered op can be given
//! more (a gradient where it has none, signatures); what it has is never replaced.

use super::autocast::{CastPolicy, policy_of};
use super::def::{OpDef, SbpFn};
use super::grad::Grad;
use super::infer::InferCtx;
use crate::error::{Error, Result};
use crate::intern::FixedMap;
use crate::sbp::Signature;
use std::ops::Deref;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock, RwLock};

/// A registered op. Lives for the whole process.
pub struct Op {
    id: u64,
    name: String,
    /// The declaration as it is now. Earlier ones are leaked: a call may be reading them.
    def: AtomicPtr<OpDef>,
    cast: CastPolicy,
    /// Whether any of its inputs is mutable; asked at each call.
    writes_inputs: bool,
    /// Gradient ops derived from the expression, by input.
    pub(crate) derived: Vec<OnceLock<&'static Op>>,
}

impl Op {
    /// Process-local id.
    pub fn id(&self) -> u64 {
        self.id
    }
    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Whether a call writes one of its inputs in place.
    pub fn writes_inputs(&self) -> bool {
        self.writes_inputs
    }
    /// What autocast does with its inputs.
    pub fn autocast(&self) -> CastPolicy {
        self.cast
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

struct Registry {
    ops: FixedMap<String, &'static Op>,
}

static GENERATION: AtomicU64 = AtomicU64::new(0);

static REGISTRY: LazyLock<RwLock<Registry>> = LazyLock::new(|| {
    let mut r = Registry { ops: FixedMap::default() };
    for def in super::builtin() {
        // A built-in declaration that does not hold is a bug of ours, found by the first test that runs.
        let def = def.and_then(|d| r.add(d));
        assert!(def.is_ok(), "built-in op: {}", def.err().map(|e| e.to_string()).unwrap_or_default());
    }
    RwLock::new(r)
});

impl Registry {
    fn add(&mut self, def: OpDef) -> Result<&'static Op> {
        if let Some(old) = self.ops.get(&def.sig.name) {
            return Err(Error::registry(format!(
                "op {} is registered already (as {})",
                def.full_name(),
                old.full_name()
            ))
            .help("choose another name; an op is never replaced"));
        }
        def.check_rule()?;
        let derived = (0..def.sig.inputs.len()).map(|_| OnceLock::new()).collect();
        let cast = def.cast.unwrap_or_else(|| policy_of(&def.sig.name));
        let name = def.sig.name.clone();
        let (id, writes_inputs) = (self.ops.len() as u64 + 1, def.sig.inputs.iter().any(|i| i.mutable));
        let def = AtomicPtr::new(Box::leak(Box::new(def)));
        let op: &'static Op = Box::leak(Box::new(Op { id, name: name.clone(), def, cast, writes_inputs, derived }));
        self.ops.insert(name, op);
        Ok(op)
    }
}

/// Adds an op. It can be called by name at once and takes part in everything built-in ops do.
///
/// # Errors
/// An op of that name exists, or the text of the sharding rule cannot be that of such an op.
pub fn register(def: OpDef) -> Result<&'static Op> {
    let op = REGISTRY.write().unwrap_or_else(|e| e.into_inner()).add(def)?;
    GENERATION.fetch_add(1, Ordering::Release);
    Ok(op)
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
    match r.ops.get(&def.sig.name) {
        Some(op) => Ok(op),
        None => r.add(def),
    }
}

/// The op of that name.
///
/// # Errors
/// There is none; the message suggests the nearest name.
pub fn find(name: &str) -> Result<&'static Op> {
    let r = REGISTRY.read().unwrap_or_else(|e| e.into_inner());
    r.ops.get(name).copied().ok_or_else(|| {
        let e = Error::registry(format!("there is no op named '{name}'"));
        match nearest(name, r.ops.keys().map(|k| k.as_str())) {
            Some(n) => e.help(format!("did you mean '{n}'? `oflow ops` lists all")),
            None => e.help("`oflow ops` lists all"),
        }
    })
}

/// All ops in order of registration, hidden ones included.
pub fn all() -> Vec<&'static Op> {
    REGISTRY.read().unwrap_or_else(|e| e.into_inner()).ops.values().copied().collect()
}

/// Something changed that plans are made from: those made before are made anew.
pub(crate) fn changed() {
    GENERATION.fetch_add(1, Ordering::Release);
}

/// Changes whenever an op is added.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// A hash of every visible declaration: ranks whose registries differ are refused at start.
pub fn hash() -> u64 {
    use std::hash::Hasher;
    let mut h = crate::intern::FixedHasher::default();
    for op in all().into_iter().filter(|o| !o.traits.hidden) {
        h.write(op.full_name().as_bytes());
        h.write(op.sig.to_string().as_bytes());
        h.write_usize(op.sbp_added.len());
        h.write_u8(u8::from(matches!(op.grad, Grad::Missing)));
    }
    h.finish()
}

/// An op of the registry, looked up at its first use. [`op!`](crate::op) makes one per place.
pub struct OpRef {
    name: &'static str,
    op: OnceLock<&'static Op>,
}

impl OpRef {
    /// The op that will be registered under that name.
    pub const fn new(name: &'static str) -> OpRef {
        OpRef { name, op: OnceLock::new() }
    }
    /// The op.
    ///
    /// # Errors
    /// There is none of that name (yet).
    #[inline]
    pub fn get(&self) -> Result<&'static Op> {
        match self.op.get() {
            Some(op) => Ok(op),
            None => {
                let op = find(self.name)?;
                Ok(self.op.get_or_init(|| op))
            }
        }
    }
}

/// The op of a name, as `Result<&'static Op>`. The registry is asked at the first use of each place; afterwards the place
/// knows its op.
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

/// The candidate that a person who wrote `name` meant: one that differs in case, underscores or a path only, else the one
/// with the fewest typing errors (a letter too many, missing, wrong, or exchanged with its neighbour), one for three to six letters, two up to ten.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |s: &str| s.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect::<String>();
    let wanted = plain(name.rsplit(['.', ':']).next().unwrap_or(name));
    let errors = |c: &str| strsim::osa_distance(&wanted, &plain(c));
    candidates.map(|c| (errors(c), c)).min().filter(|(n, _)| n * 4 <= wanted.len() + 1).map(|(_, c)| c)
}
