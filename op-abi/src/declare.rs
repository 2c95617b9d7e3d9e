//! A library and its ops, declared in Rust and handed over as structs of C.

use crate::abi::*;
use crate::call::{Call, Outputs, set_host};
use crate::{Infer, Result};
use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Run = Box<dyn Fn(&Call<'_>, &mut Outputs<'_>) -> Result<()> + Send + Sync>;
type Applies = Box<dyn Fn(&Infer<'_>) -> Result<bool> + Send + Sync>;
type Workspace = Box<dyn Fn(&Infer<'_>) -> Result<usize> + Send + Sync>;
type Check = Box<dyn Fn(&Infer<'_>) -> Result<()> + Send + Sync>;
type Shapes = Box<dyn Fn(&Infer<'_>) -> Result<Vec<Vec<i64>>> + Send + Sync>;
type DTypes = Box<dyn Fn(&Infer<'_>) -> Result<Vec<u32>> + Send + Sync>;
type DevicesRule = Box<dyn Fn(&Infer<'_>) -> Result<Devices> + Send + Sync>;
type Signatures = Box<dyn Fn(&Infer<'_>) -> Result<Vec<String>> + Send + Sync>;
type Choose = Box<dyn Fn(&Infer<'_>) -> Result<Option<String>> + Send + Sync>;

/// Where a call runs and where its outputs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    /// The device whose kernel runs: `OFLOW_CPU`, …
    pub run_on: u32,
    /// Stream of the kernel: `OFLOW_STREAM_COMPUTE`, …
    pub stream: u32,
    /// The device of each output; those that are not said are on `run_on`.
    pub outputs: Vec<u32>,
}

impl Devices {
    /// Everything on one device, on its compute stream.
    pub fn all(device: u32) -> Devices {
        Devices { run_on: device, stream: OFLOW_STREAM_COMPUTE, outputs: vec![] }
    }
}

/// The ops of a library.
#[must_use]
pub struct Library {
    name: String,
    version: String,
    ops: Vec<Op>,
}

impl Library {
    /// A library of that name (letters, digits and `_`), which is the domain of its ops unless they say another.
    pub fn new(name: &str) -> Library {
        Library { name: name.to_string(), version: String::new(), ops: vec![] }
    }
    /// Sets its version, for lists.
    pub fn version(mut self, version: &str) -> Library {
        self.version = version.to_string();
        self
    }
    /// Adds an op.
    pub fn op(mut self, op: Op) -> Library {
        self.ops.push(op);
        self
    }
}

/// A kernel: a function, or the text of a CUDA kernel.
#[must_use]
pub struct Kernel {
    name: String,
    device: String,
    dtypes: String,
    priority: String,
    run: Option<Run>,
    workspace: Option<Workspace>,
    condition: String,
    applies: Option<Applies>,
    cuda: [String; 3],
}

impl Kernel {
    fn new(device: &str, run: Option<Run>) -> Kernel {
        Kernel {
            name: String::new(),
            device: device.to_string(),
            dtypes: String::new(),
            priority: String::new(),
            run,
            workspace: None,
            condition: String::new(),
            applies: None,
            cuda: Default::default(),
        }
    }
    /// A function on the CPU.
    pub fn cpu(run: impl Fn(&Call<'_>, &mut Outputs<'_>) -> Result<()> + Send + Sync + 'static) -> Kernel {
        Kernel::new("cpu", Some(Box::new(run)))
    }
    /// A function that puts work on a GPU: on [`Call::stream`], without waiting for it.
    pub fn cuda(run: impl Fn(&Call<'_>, &mut Outputs<'_>) -> Result<()> + Send + Sync + 'static) -> Kernel {
        Kernel::new("cuda", Some(Box::new(run)))
    }
    /// The `extern "C" __global__` function `entry` of a CUDA source: a file beside the library, or its text. It is given the inputs, the
    /// outputs and the attributes in declared order.
    pub fn cuda_text(source: &str, entry: &str) -> Kernel {
        Kernel { cuda: [source.to_string(), entry.to_string(), String::new()], ..Kernel::new("cuda", None) }
    }
    /// Number of threads of a CUDA text, as arithmetic over the sizes of the shape rule and integer attributes; one for each element of
    /// the first output unless this says another.
    pub fn threads(mut self, threads: &str) -> Kernel {
        self.cuda[2] = threads.to_string();
        self
    }
    /// Sets the kernel's name in lists.
    pub fn name(mut self, name: &str) -> Kernel {
        self.name = name.to_string();
        self
    }
    /// Element types of float inputs that it takes: `f32|f64`.
    pub fn dtypes(mut self, dtypes: &str) -> Kernel {
        self.dtypes = dtypes.to_string();
        self
    }
    /// When it applies, besides [`Kernel::dtypes`]: `y: f32 and not exact and mode in (up, down) and k <= 8`.
    pub fn when(mut self, condition: &str) -> Kernel {
        self.condition = condition.to_string();
        self
    }
    /// When it applies, as code in the place of [`Kernel::when`]; `words` say it in lists. It is asked when a call is planned, with the
    /// outputs, and gives the same on every rank.
    pub fn applies(mut self, words: &str, test: impl Fn(&Infer<'_>) -> Result<bool> + Send + Sync + 'static) -> Kernel {
        self.condition = words.to_string();
        self.applies = Some(Box::new(test));
        self
    }
    /// `fallback`, `default`, `optimized` or `experimental`.
    pub fn priority(mut self, priority: &str) -> Kernel {
        self.priority = priority.to_string();
        self
    }
    /// Gives it scratch memory of so many bytes.
    pub fn workspace(mut self, bytes: impl Fn(&Infer<'_>) -> Result<usize> + Send + Sync + 'static) -> Kernel {
        self.workspace = Some(Box::new(bytes));
        self
    }
}

/// The rules that are code.
#[derive(Default)]
struct Rules {
    check: Option<Check>,
    shapes: Option<Shapes>,
    dtypes: Option<DTypes>,
    signatures: Option<Signatures>,
    devices: Option<DevicesRule>,
    nd_infer: Option<Signatures>,
    nd_choose: Option<Choose>,
}

/// An op. The texts are those of `oflow::ops::OpDef`.
#[must_use]
pub struct Op {
    declaration: String,
    domain: String,
    version: u32,
    doc: String,
    subject: String,
    traits: String,
    functions: Vec<String>,
    expression: String,
    derivatives: Vec<String>,
    shape: String,
    dtype: String,
    factors: String,
    linear: Vec<String>,
    signatures: Vec<String>,
    nd_infer: Vec<String>,
    nd_extra: Vec<String>,
    nd_valid: Vec<String>,
    gradient: String,
    samples: Vec<String>,
    rules: Rules,
    kernels: Vec<Kernel>,
}

macro_rules! says {
    ($($(#[$doc:meta])* $name:ident: $field:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(mut self, text: &str) -> Op {
            self.$field = text.to_string();
            self
        }
    )*};
}

macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident: $field:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(mut self, texts: &[&str]) -> Op {
            self.$field.extend(texts.iter().map(|t| t.to_string()));
            self
        }
    )*};
}

impl Op {
    /// An op from its inputs, attributes and outputs: `scale(x: float; by: runtime float = 2.0) -> y`.
    pub fn new(declaration: &str) -> Op {
        let (text, list) = (String::new, Vec::new);
        Op {
            declaration: declaration.to_string(),
            domain: text(),
            version: 1,
            doc: text(),
            subject: text(),
            traits: text(),
            functions: list(),
            expression: text(),
            derivatives: list(),
            shape: text(),
            dtype: text(),
            factors: text(),
            linear: list(),
            signatures: list(),
            nd_infer: list(),
            nd_extra: list(),
            nd_valid: list(),
            gradient: text(),
            samples: list(),
            rules: Rules::default(),
            kernels: vec![],
        }
    }
    says! {
        /// Sets the domain of the name; the library's name unless set.
        domain: domain;
        /// Sets the description: one sentence; paragraphs of Markdown may follow.
        doc: doc;
        /// Sets the heading in lists.
        subject: subject;
        /// Sets traits: words such as `strided` or `length_by_kernel`.
        traits: traits;
        /// Makes it the elementwise op of a scalar expression, which needs no kernel and no other rule.
        expression: expression;
        /// Shapes of the outputs: `[m, k], [k, n] -> [m, n]`.
        shape: shape;
        /// Element types of the outputs: `like x`, `promote`, `f32, i64`.
        dtype: dtype;
        /// Which dims may be split: `mk, kn -> mn`.
        factors: factors;
        /// Gradients: `x, w = mine.scale_grad(grad y, x, w; by)`, a line each, or `none`.
        gradient: gradient;
    }
    lists! {
        /// Adds functions: `scale(Tensor x, *, Float by=2.0) -> Tensor`.
        functions: functions;
        /// Adds derivatives in the place of those of the expression: `x: by`.
        derivatives: derivatives;
        /// Adds inputs that the op is linear in: `x`, or `x: y, z` for one of which only some outputs depend.
        linear_in: linear;
        /// Adds signatures, in the place of factors: `S(0), B -> S(0)`.
        signatures: signatures;
        /// Adds signatures over all axes of a mesh, in the place of the products of those of one axis: `[S(0), B] -> [S(0), B]`.
        nd_infer: nd_infer;
        /// Adds signatures over all axes of a mesh beside these products.
        nd_extra: nd_extra;
        /// Says which signatures over all axes of a mesh hold: patterns with `*`, or `not` and a pattern: `not [S(0), S(1)] -> *`.
        nd_valid: nd_valid;
        /// Adds calls that test the op: `f32[4, 6] f32[6]; dim=1`.
        samples: samples;
    }
    /// Sets the version of the declaration.
    pub fn version(mut self, version: u32) -> Op {
        self.version = version;
        self
    }
    /// Refuses bad inputs and attributes.
    pub fn check(mut self, f: impl Fn(&Infer<'_>) -> Result<()> + Send + Sync + 'static) -> Op {
        self.rules.check = Some(Box::new(f));
        self
    }
    /// Shapes of the outputs by code.
    pub fn shapes(mut self, f: impl Fn(&Infer<'_>) -> Result<Vec<Vec<i64>>> + Send + Sync + 'static) -> Op {
        self.rules.shapes = Some(Box::new(f));
        self
    }
    /// Element types of the outputs by code.
    pub fn dtypes(mut self, f: impl Fn(&Infer<'_>) -> Result<Vec<u32>> + Send + Sync + 'static) -> Op {
        self.rules.dtypes = Some(Box::new(f));
        self
    }
    /// Signatures by code.
    pub fn get_sbp(mut self, f: impl Fn(&Infer<'_>) -> Result<Vec<String>> + Send + Sync + 'static) -> Op {
        self.rules.signatures = Some(Box::new(f));
        self
    }
    /// Signatures over all axes of a mesh by code, in the place of [`Op::nd_infer`]: `[S(0), B] -> [S(0), B]`. They may depend on
    /// [`Infer::mesh`], [`Infer::sbp`], [`Infer::asked`] and [`Infer::keeps`]. All tensors B is always one more.
    pub fn nd_infer_rule(mut self, f: impl Fn(&Infer<'_>) -> Result<Vec<String>> + Send + Sync + 'static) -> Op {
        self.rules.nd_infer = Some(Box::new(f));
        self
    }
    /// Takes one of the op's signatures over all axes of a mesh for a call, from what [`Op::nd_infer_rule`] may depend on. `None` leaves the
    /// choice to oflow.
    pub fn nd_choose(mut self, f: impl Fn(&Infer<'_>) -> Result<Option<String>> + Send + Sync + 'static) -> Op {
        self.rules.nd_choose = Some(Box::new(f));
        self
    }
    /// Where a call runs, and where its outputs are.
    pub fn devices(mut self, f: impl Fn(&Infer<'_>) -> Result<Devices> + Send + Sync + 'static) -> Op {
        self.rules.devices = Some(Box::new(f));
        self
    }
    /// Adds a kernel.
    pub fn kernel(mut self, kernel: Kernel) -> Op {
        self.kernels.push(kernel);
        self
    }
    /// Adds a function on the CPU.
    pub fn cpu(self, run: impl Fn(&Call<'_>, &mut Outputs<'_>) -> Result<()> + Send + Sync + 'static) -> Op {
        self.kernel(Kernel::cpu(run))
    }

    fn export(self) -> oflow_op_def {
        let Rules { check, shapes, dtypes, signatures, devices, nd_infer, nd_choose } = &self.rules;
        let rules: [oflow_rule_fn; 7] = [
            check.as_ref().and(Some(check_rule)),
            shapes.as_ref().and(Some(shapes_rule)),
            dtypes.as_ref().and(Some(dtypes_rule)),
            signatures.as_ref().and(Some(signatures_rule)),
            devices.as_ref().and(Some(devices_rule)),
            nd_infer.as_ref().and(Some(nd_infer_rule)),
            nd_choose.as_ref().and(Some(nd_choose_rule)),
        ];
        let kernels: Vec<*const oflow_kernel> = self.kernels.into_iter().map(|k| kept(k.export())).collect();
        oflow_op_def {
            head: oflow_head::of::<oflow_op_def>(),
            declaration: text(self.declaration),
            domain: text(self.domain),
            version: self.version,
            doc: text(self.doc),
            subject: text(self.subject),
            traits: text(self.traits),
            functions: texts(self.functions),
            expression: text(self.expression),
            derivatives: texts(self.derivatives),
            shape: text(self.shape),
            dtype: text(self.dtype),
            factors: text(self.factors),
            linear: texts(self.linear),
            signatures: texts(self.signatures),
            gradient: text(self.gradient),
            samples: texts(self.samples),
            check: rules[0],
            infer_shapes: rules[1],
            infer_dtypes: rules[2],
            infer_signatures: rules[3],
            user: kept(self.rules).cast_mut().cast(),
            kernel_count: kernels.len(),
            kernels: Vec::leak(kernels).as_ptr(),
            grad_rule: None,
            grad_saves: oflow_strs::EMPTY,
            grad_saves_listed: 0,
            nd_infer: texts(self.nd_infer),
            nd_extra: texts(self.nd_extra),
            nd_valid: texts(self.nd_valid),
            infer_devices: rules[4],
            nd_infer_rule: rules[5],
            nd_choose: rules[6],
        }
    }
}

impl Kernel {
    fn export(self) -> oflow_kernel {
        let [source, entry, threads] = self.cuda;
        let run: oflow_kernel_fn = self.run.is_some().then_some(run_kernel);
        let workspace: oflow_workspace_fn = self.workspace.is_some().then_some(run_workspace);
        let applies: oflow_applies_fn = self.applies.is_some().then_some(run_applies);
        oflow_kernel {
            head: oflow_head::of::<oflow_kernel>(),
            name: text(self.name),
            device: text(self.device),
            dtypes: text(self.dtypes),
            priority: text(self.priority),
            run,
            workspace,
            cuda_source: text(source),
            cuda_entry: text(entry),
            cuda_threads: text(threads),
            user: kept(Functions { run: self.run, workspace: self.workspace, applies: self.applies }).cast_mut().cast(),
            condition: text(self.condition),
            applies,
        }
    }
}

/// The functions of a kernel: its `user`.
struct Functions {
    run: Option<Run>,
    workspace: Option<Workspace>,
    applies: Option<Applies>,
}

/// A value that lives as long as the process, as libraries do.
fn kept<T>(value: T) -> *const T {
    Box::leak(Box::new(value))
}

fn text(text: String) -> oflow_str {
    oflow_str::of(text.leak())
}

fn texts(list: Vec<String>) -> oflow_strs {
    let list: Vec<oflow_str> = list.into_iter().map(text).collect();
    oflow_strs { count: list.len(), data: list.leak().as_ptr() }
}

/// Makes the library, for [`library!`](crate::library).
///
/// # Safety
/// `host` is oflow's: null, or a struct that lives as long as the process.
pub unsafe fn export(host: *const oflow_host, make: impl FnOnce() -> Library) -> *const oflow_library {
    set_host(host);
    let made = catch_unwind(AssertUnwindSafe(make));
    let (error, made) = match made {
        Ok(library) => (String::new(), library),
        Err(panic) => (format!("a panic: {}", words(&*panic)), Library::new("")),
    };
    let ops: Vec<*const oflow_op_def> = made.ops.into_iter().map(|op| kept(op.export())).collect();
    kept(oflow_library {
        head: oflow_head::of::<oflow_library>(),
        name: text(made.name),
        version: text(made.version),
        error: text(error),
        op_count: ops.len(),
        ops: ops.leak().as_ptr(),
        functions: std::ptr::null(),
        function_count: 0,
    })
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}

/// Runs a callback's body and tells its error.
///
/// # Safety
/// `error` is null or a message of oflow's.
unsafe fn guarded<T>(error: *mut oflow_message, body: impl FnOnce() -> Result<T>) -> Result<T, i32> {
    let (status, why) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(e)) => (OFLOW_ERROR, e.to_string()),
        Err(panic) => (OFLOW_PANIC, words(&*panic).to_string()),
    };
    // SAFETY: by this function's contract; the room of a message is as large as it says.
    if let Some(message) = unsafe { error.as_mut() } {
        let mut end = why.len().min(message.capacity);
        while !why.is_char_boundary(end) {
            end -= 1;
        }
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(why.as_ptr(), message.text, end) };
        message.len = end;
    }
    Err(status)
}

fn status(found: Result<(), i32>) -> i32 {
    found.err().unwrap_or(OFLOW_OK)
}

unsafe extern "C" fn run_kernel(call: *const oflow_call, error: *mut oflow_message) -> i32 {
    // SAFETY: oflow's call, whose `user` is what `Kernel::export` gave.
    let call = unsafe { &*call };
    // SAFETY: as above.
    let functions = unsafe { &*call.user.cast::<Functions>() };
    let body = || match &functions.run {
        Some(run) => run(&Call(call), &mut Outputs(call, PhantomData)),
        None => Ok(()),
    };
    // SAFETY: oflow's message.
    status(unsafe { guarded(error, body) })
}

unsafe extern "C" fn run_workspace(infer: *const oflow_infer, error: *mut oflow_message) -> i64 {
    // SAFETY: oflow's call, whose `user` is what `Kernel::export` gave.
    let infer = unsafe { &*infer };
    // SAFETY: as above.
    let functions = unsafe { &*infer.user.cast::<Functions>() };
    let body = || functions.workspace.as_ref().map_or(Ok(0), |bytes| bytes(&Infer(infer)));
    // SAFETY: oflow's message.
    match unsafe { guarded(error, body) } {
        Ok(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
        Err(status) => -i64::from(status),
    }
}

unsafe extern "C" fn run_applies(infer: *const oflow_infer, error: *mut oflow_message) -> i32 {
    // SAFETY: oflow's call, whose `user` is what `Kernel::export` gave.
    let infer = unsafe { &*infer };
    // SAFETY: as above.
    let functions = unsafe { &*infer.user.cast::<Functions>() };
    let body = || functions.applies.as_ref().map_or(Ok(true), |test| test(&Infer(infer)));
    // SAFETY: oflow's message.
    match unsafe { guarded(error, body) } {
        Ok(applies) => i32::from(applies),
        Err(status) => -status,
    }
}

/// Runs a rule and hands on what it gives.
///
/// # Safety
/// The pointers are oflow's, and `user` is what `Op::export` gave.
unsafe fn rule(
    infer: *const oflow_infer,
    results: *const oflow_results,
    error: *mut oflow_message,
    body: impl FnOnce(&Rules, &Infer<'_>, &oflow_results) -> Result<()>,
) -> i32 {
    // SAFETY: by this function's contract.
    let (infer, results) = unsafe { (&*infer, &*results) };
    // SAFETY: as above.
    let rules = unsafe { &*infer.user.cast::<Rules>() };
    // SAFETY: as above.
    status(unsafe { guarded(error, || body(rules, &Infer(infer), results)) })
}

/// Converts the status that oflow returned for a result.
fn taken(status: i32) -> Result<()> {
    if status == OFLOW_OK { Ok(()) } else { Err("oflow refuses what the rule gives".into()) }
}

unsafe extern "C" fn check_rule(i: *const oflow_infer, r: *const oflow_results, e: *mut oflow_message) -> i32 {
    // SAFETY: called by oflow for an op of `Op::export`.
    unsafe { rule(i, r, e, |rules, infer, _| rules.check.as_ref().map_or(Ok(()), |check| check(infer))) }
}

unsafe extern "C" fn shapes_rule(i: *const oflow_infer, r: *const oflow_results, e: *mut oflow_message) -> i32 {
    let body = |rules: &Rules, infer: &Infer<'_>, results: &oflow_results| {
        let (Some(shapes), Some(give)) = (&rules.shapes, results.shape) else { return Ok(()) };
        shapes(infer)?.iter().enumerate().try_for_each(|(o, dims)| {
            // SAFETY: oflow's function with its context; the dims are a list of that length.
            taken(unsafe { give(results.context, o, dims.as_ptr(), dims.len()) })
        })
    };
    // SAFETY: called by oflow for an op of `Op::export`.
    unsafe { rule(i, r, e, body) }
}

unsafe extern "C" fn dtypes_rule(i: *const oflow_infer, r: *const oflow_results, e: *mut oflow_message) -> i32 {
    let body = |rules: &Rules, infer: &Infer<'_>, results: &oflow_results| {
        let (Some(dtypes), Some(give)) = (&rules.dtypes, results.dtype) else { return Ok(()) };
        // SAFETY: oflow's function with its context.
        dtypes(infer)?.into_iter().enumerate().try_for_each(|(o, d)| taken(unsafe { give(results.context, o, d) }))
    };
    // SAFETY: called by oflow for an op of `Op::export`.
    unsafe { rule(i, r, e, body) }
}

/// Hands on signatures.
fn give_signatures<'s>(results: &oflow_results, mut all: impl Iterator<Item = &'s String>) -> Result<()> {
    let Some(give) = results.signature else { return Ok(()) };
    // SAFETY: oflow's function with its context; the text lives during the call.
    all.try_for_each(|s| taken(unsafe { give(results.context, oflow_str::of(s)) }))
}

unsafe extern "C" fn signatures_rule(i: *const oflow_infer, r: *const oflow_results, e: *mut oflow_message) -> i32 {
    let body = |rules: &Rules, infer: &Infer<'_>, results: &oflow_results| match &rules.signatures {
        Some(signatures) => give_signatures(results, signatures(infer)?.iter()),
        None => Ok(()),
    };
    // SAFETY: called by oflow for an op of `Op::export`.
    unsafe { rule(i, r, e, body) }
}

unsafe extern "C" fn nd_infer_rule(i: *const oflow_infer, r: *const oflow_results, e: *mut oflow_message) -> i32 {
    let body = |rules: &Rules, infer: &Infer<'_>, results: &oflow_results| match &rules.nd_infer {
        Some(signatures) => give_signatures(results, signatures(infer)?.iter()),
        None => Ok(()),
    };
    // SAFETY: called by oflow for an op of `Op::export`.
    unsafe { rule(i, r, e, body) }
}

unsafe extern "C" fn nd_choose_rule(i: *const oflow_infer, r: *const oflow_results, e: *mut oflow_message) -> i32 {
    let body = |rules: &Rules, infer: &Infer<'_>, results: &oflow_results| match &rules.nd_choose {
        Some(choose) => give_signatures(results, choose(infer)?.iter()),
        None => Ok(()),
    };
    // SAFETY: called by oflow for an op of `Op::export`.
    unsafe { rule(i, r, e, body) }
}

unsafe extern "C" fn devices_rule(i: *const oflow_infer, r: *const oflow_results, e: *mut oflow_message) -> i32 {
    let body = |rules: &Rules, infer: &Infer<'_>, results: &oflow_results| {
        let (Some(rule), Some(run_on), Some(give)) = (&rules.devices, results.run_on, results.device) else {
            return Ok(());
        };
        let found = rule(infer)?;
        // SAFETY: oflow's function with its context.
        taken(unsafe { run_on(results.context, found.run_on, found.stream) })?;
        // SAFETY: as above.
        found.outputs.iter().enumerate().try_for_each(|(o, d)| taken(unsafe { give(results.context, o, *d) }))
    };
    // SAFETY: called by oflow for an op of `Op::export`.
    unsafe { rule(i, r, e, body) }
}
