//! Kernels that run an op on a device: those that the op brings itself, those that stand in the table here by op name, and
//! for elementwise ops the one that the backend makes from the expression. Asked when a plan is built, never per call.

use super::op_kernels::OpKernel;
use super::table::{built_in, entries, entry};
use crate::control::EXPERIMENTAL_VARIABLE;
use crate::error::{Error, Result};
use crate::intern::FixedMap;
use crate::ops::{self, InferCtx, KernelCx, KernelDef, KernelState, Op, Priority, StreamKind, TensorType};
use crate::placement::Device;
use crate::plan::KernelPlan;
use oflow_kernels::DType;
use oflow_kernels::expr::Expr;
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

type Table = FixedMap<SmolStr, Vec<KernelDef>>;

/// The kernels of all backends, and those that were added, by op.
static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    let mut table = Table::default();
    for e in built_in() {
        put(&mut table, e.backend.kernels(e.device));
    }
    RwLock::new(table)
});

fn put(table: &mut Table, kernels: Vec<OpKernel>) {
    for (op, kernel) in kernels {
        // Most ops have one.
        table.entry(op.into()).or_insert_with(|| Vec::with_capacity(1)).push(kernel);
    }
}

/// Takes the kernels of a new backend.
pub(super) fn take(kernels: Vec<OpKernel>) {
    if !kernels.is_empty() {
        put(&mut TABLE.write().unwrap_or_else(PoisonError::into_inner), kernels);
        ops::changed();
    }
}

/// The kernels of an op for one device, in the order of their declaration.
fn on_device<R>(
    table: &Table,
    op: &Op,
    device: Device,
    tell: impl FnOnce(&mut dyn Iterator<Item = &KernelDef>) -> R,
) -> R {
    let made = op.expr.as_ref().and_then(|e| entry(device).backend.elementwise(device, e));
    let registered = table.get(op.name()).into_iter().flatten();
    tell(&mut made.iter().chain(op.kernels.iter().chain(registered).filter(|k| k.device == device)))
}

/// Experimental kernels that may be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Experimental {
    /// No experimental kernel.
    #[default]
    None,
    /// Every experimental kernel.
    All,
    /// Experimental kernels of these names.
    Named(Vec<String>),
}

impl Experimental {
    /// Reads `0`, `1` or names with commas between them, as `OFLOW_EXPERIMENTAL` has them.
    fn parse(text: &str) -> Experimental {
        match text.trim() {
            "" | "0" => Experimental::None,
            "1" => Experimental::All,
            names => Experimental::Named(names.split(',').map(|n| n.trim().to_string()).collect()),
        }
    }
    fn has(&self, kernel: &str) -> bool {
        match self {
            Experimental::None => false,
            Experimental::All => true,
            Experimental::Named(names) => names.iter().any(|n| n == kernel),
        }
    }
}

/// Experimental kernels that this process may choose; at first those that the environment names.
static EXPERIMENTAL: LazyLock<RwLock<Experimental>> = LazyLock::new(|| {
    RwLock::new(std::env::var(EXPERIMENTAL_VARIABLE).map_or(Experimental::None, |v| Experimental::parse(&v)))
});

/// Lets calls of this process choose experimental kernels ([`Priority::Experimental`]), in place of what `OFLOW_EXPERIMENTAL` says.
/// Plans that were made before are made anew.
pub fn use_experimental(which: Experimental) {
    *EXPERIMENTAL.write().unwrap_or_else(PoisonError::into_inner) = which;
    ops::changed();
}

/// Picks the kernel for physical inputs, attributes and outputs on a device: the applicable one of highest priority; among equals the
/// first declared. `Experimental` ones take part where [`use_experimental`] asks for them. Where the device has none, one of the
/// device whose kernels it runs.
///
/// # Errors
/// No kernel applies; a condition of one fails.
pub fn select(op: &Op, device: Device, ctx: &InferCtx<'_>, outs: &[TensorType]) -> Result<KernelDef> {
    let experimental = EXPERIMENTAL.read().unwrap_or_else(PoisonError::into_inner).clone();
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    for d in [Some(device), entry(device).backend.kernels_of()].into_iter().flatten() {
        let best = on_device(&table, op, d, |kernels| {
            let able = |k: &KernelDef| k.priority < Priority::Experimental || experimental.has(&k.name);
            let mut best: Option<&KernelDef> = None;
            for k in kernels.filter(|k| able(k)) {
                if best.is_none_or(|best| k.priority > best.priority) && k.pred.holds(ctx, outs)? {
                    best = Some(k);
                }
            }
            Ok::<_, Error>(best.cloned())
        })?;
        if let Some(kernel) = best {
            return Ok(kernel);
        }
    }
    let holds = |k: &KernelDef| k.pred.holds(ctx, outs).unwrap_or(false);
    let fits = |d: &Device| on_device(&table, op, *d, |mut ks| Iterator::any(&mut ks, &holds));
    let others = entries().into_iter().map(|e| e.device).filter(|d| *d != device).find(fits);
    Err(Error::unsupported(format!("no kernel of '{}' runs on {device} for these dtypes", op.name())).help(
        match others {
            Some(other) => format!("it has one for {other}: move its inputs there, and the result back"),
            None => "see `oflow ops` for what each op supports".to_string(),
        },
    ))
}

/// All kernels of an op, device by device.
pub fn kernels_of(op: &Op) -> Vec<KernelDef> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let devices = entries().into_iter().map(|e| e.device);
    devices.flat_map(|d| on_device(&table, op, d, |kernels| kernels.cloned().collect::<Vec<_>>())).collect()
}

/// Adds a kernel to a registered op. [`select`] chooses among all kernels of the op. Plans that were made before are made
/// anew.
///
/// ```
/// use oflow::backend::add_kernel;
/// use oflow::ops::{KernelDef, KernelPred, Priority};
/// use oflow::prelude::*;
/// let kernel = KernelDef::cpu("neg_f64", |cx| {
///     let x = cx.input(0)?.as_slice::<f64>()?;
///     // SAFETY: the output of this call; nothing else uses it while the kernel runs.
///     let y = unsafe { cx.output(0).as_mut_slice::<f64>()? };
///     y.iter_mut().zip(x).for_each(|(y, x)| *y = -x);
///     Ok(())
/// });
/// // Strided inputs go to the kernel that the op has: this one takes contiguous ones.
/// let plain = KernelPred::InputDType(0, DType::F64);
/// add_kernel("sign", kernel.when(plain).priority(Priority::Experimental))?;
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// There is no such op, or it has a kernel of this name on the device, or one for the same cases with the same priority.
pub fn add_kernel(op: &str, kernel: KernelDef) -> Result<()> {
    let op = ops::find(op)?;
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let same_cases = |k: &KernelDef| k.pred == kernel.pred && k.priority == kernel.priority && k.state.is_none();
    let twin = on_device(&table, op, kernel.device, |kernels| {
        let kernels: Vec<&KernelDef> = kernels.collect();
        let named = kernels.iter().find(|k| k.name == kernel.name);
        named.or_else(|| kernels.iter().find(|k| same_cases(k))).map(|k| (*k).clone())
    });
    if let Some(k) = twin {
        return Err(Error::registry(format!("the kernel '{}' is there already: {k:?}", k.name))
            .help("a kernel is never replaced: choose another name, and a predicate or a higher priority")
            .in_call(|| op.full_name()));
    }
    table.entry(op.name().into()).or_default().push(kernel);
    drop(table);
    op.kernel_was_added();
    ops::changed();
    Ok(())
}

/// The plan that copies (and converts) one view into another on a device, whatever their strides.
///
/// # Errors
/// The backend has no such kernel.
pub(crate) fn copy_plan(device: Device) -> Result<Arc<KernelPlan>> {
    let known = &entry(device).copy;
    if let Some(plan) = known.get() {
        return Ok(plan.clone());
    }
    let backend = &entry(device).backend;
    let lent = || backend.kernels_of().and_then(|d| entry(d).backend.copy(d));
    let kernel = backend.copy(device).or_else(lent).ok_or_else(|| {
        Error::unsupported(format!("the backend of {device} has no kernel that copies"))
            .help("give it one in `Backend::copy`, or name a device in `Backend::kernels_of`")
    })?;
    let plan = Arc::new(KernelPlan {
        op: ops::find("copy")?,
        name: kernel.name,
        run: kernel.run,
        state: None,
        per_node: false,
        attrs: SmallVec::new(),
        input_boxes: SmallVec::new(),
        output_boxes: SmallVec::new(),
        workspace: 0,
        stream: StreamKind::Compute,
        cache: OnceLock::new(),
        inplace: SmallVec::new(),
    });
    Ok(known.get_or_init(|| plan).clone())
}

/// The state of an elementwise kernel.
pub(super) fn program<'a, P: 'static>(cx: &KernelCx<'a>) -> Result<&'a P> {
    let found = cx.state.and_then(|s| s.downcast_ref::<P>());
    found.ok_or_else(|| Error::device("elementwise kernel without its program"))
}

/// Gives an elementwise kernel its program, compiled per plan for the dtypes of inputs, output and computation. The output may
/// take the memory of any input that the expression uses.
pub(super) fn compiled<P: Send + Sync + 'static>(
    kernel: KernelDef,
    expr: &Arc<Expr>,
    compile: fn(&Expr, &[DType], DType, DType) -> oflow_kernels::Result<P>,
) -> KernelDef {
    let reusing = (0..8).filter(|i| expr.uses_input(*i)).fold(kernel, |k, i| k.may_reuse(i, 0));
    let expr = expr.clone();
    reusing.with_state(move |ctx, outs| {
        // Of a registered dtype the numbers are meant that its elements are stored as.
        let stored = |d: DType| d.storage().dtype();
        let dtypes: Vec<DType> = ctx.present().map(|t| stored(t.dtype)).collect();
        let compute = ctx.op.compute_dtype(ctx, outs[0].dtype)?;
        let state: KernelState = Arc::new(compile(&expr, &dtypes, stored(outs[0].dtype), stored(compute))?);
        Ok(state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_its_op_and_every_op_its_kernels() {
        for e in entries() {
            for (name, kernel) in e.backend.kernels(e.device) {
                let op = ops::find(name).unwrap();
                assert!(op.expr.is_none(), "{name} has its kernel from the expression");
                assert_eq!(kernel.device, e.device, "{kernel:?}");
            }
        }
        for op in
            ops::all().into_iter().filter(|o| o.domain == "oflow" && o.layout.is_none() && o.name() != "apply_custom")
        {
            for device in [Device::Cpu, Device::Cuda] {
                let kernels: Vec<_> = kernels_of(op).into_iter().filter(|k| k.device == device).collect();
                let wanted = usize::from(device == Device::Cpu || !op.traits.cpu_only);
                assert_eq!(kernels.len(), wanted, "{} on {device}: {kernels:?}", op.name());
            }
        }
    }

    #[test]
    fn a_device_without_a_kernel_is_an_error_that_names_the_one_that_has_it() {
        let def = ops::OpDef::new("here_only(x: f32) -> y").unwrap().domain("kernels_test");
        let op = ops::register(def.cpu(|_| Ok(()))).unwrap();
        let inputs = [Some(TensorType::new(&[2], DType::F32))];
        let ctx = InferCtx { op, inputs: &inputs, attrs: &SmallVec::new(), runtime_kinds: &[] };
        let outs = [TensorType::new(&[2], DType::F32)];
        assert!(select(op, Device::Cpu, &ctx, &outs).is_ok());
        let e = select(op, Device::Cuda, &ctx, &outs).map(drop).unwrap_err();
        assert_eq!(e.message(), "no kernel of 'kernels_test.here_only' runs on cuda for these dtypes");
        assert_eq!(e.help_text(), Some("it has one for cpu: move its inputs there, and the result back"));
    }
}
