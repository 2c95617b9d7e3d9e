//! Calls of kernels and rules that are functions of a library.

use super::api::{device as on_device, no_calls, passed_on};
use super::given::{
    GivenAttrs, LongRoom, Room, RuleArgs, device, device_code, dtype, input_name, output_names, view, with_infer,
};
use super::launch::{Running, launch};
use crate::error::{Error, ErrorKind, Result};
use crate::ops::{DTypeRule, DeviceCtx, Devices, InferCtx, KernelCx, OpDef, ShapeRule, StreamKind, TensorType};
use crate::placement::Device;
use crate::sbp::Signature;
use oflow_kernels::cuda::Queue;
use oflow_kernels::cuda::copy::fill;
use oflow_kernels::{DType, Dims, Scalar, View};
use oflow_op::abi::*;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// Pointer that a library wants to be given with each call. It may be used from any thread: the interface says so.
#[derive(Clone, Copy)]
pub(super) struct User(pub(super) *mut c_void);
// SAFETY: oflow only hands it back, and the interface says that callbacks run on any thread.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    pub(super) fn get(self) -> *mut c_void {
        self.0
    }
}

/// The function that computes.
pub(super) type KernelCall = unsafe extern "C" fn(*const oflow_call, *mut oflow_message) -> i32;
/// A rule.
pub(super) type RuleCall = unsafe extern "C" fn(*const oflow_infer, *const oflow_results, *mut oflow_message) -> i32;
/// Whether a kernel applies.
pub(super) type AppliesCall = unsafe extern "C" fn(*const oflow_infer, *mut oflow_message) -> i32;
/// The size of a workspace.
pub(super) type WorkspaceCall = unsafe extern "C" fn(*const oflow_infer, *mut oflow_message) -> i64;

/// Converts the status and message of a callback to a result. A callback that says itself why it failed is an error of the
/// call, as one of a kernel in Rust; a panic, an exception or no status at all is a failure of this rank.
pub(super) fn judged(status: i32, why: String, about: impl Fn() -> String) -> Result<()> {
    if status == OFLOW_OK {
        return Ok(());
    }
    let about = about();
    let why = if why.is_empty() { "it does not say why".to_string() } else { why };
    match status {
        OFLOW_ERROR => Err(Error::argument(format!("{about}: {why}"))),
        OFLOW_PANIC => Err(Error::new(ErrorKind::Device, format!("{about} panicked or threw: {why}"))),
        other => Err(Error::new(ErrorKind::Device, format!("{about} returned {other}, which is not a status"))
            .help("return OFLOW_OK, or OFLOW_ERROR with a message")),
    }
}

/// Runs a kernel.
pub(super) fn run_kernel(cx: &KernelCx<'_>, run: KernelCall, user: User, device: u32) -> Result<()> {
    let op = cx.op;
    let mut given = GivenAttrs::default();
    given.plan(&op.sig.attrs, cx.attrs);
    given.runtime(&op.sig.runtime, cx.runtime);
    let attrs = given.list_of();
    let inputs: SmallVec<[Option<oflow_view>; 4]> = cx
        .inputs
        .iter()
        .enumerate()
        .map(|(i, v)| {
            let of = cx.input_boxes.get(i).and_then(|b| b.as_ref());
            v.as_ref().map(|v| view(v, of, input_name(op, i), device))
        })
        .collect();
    let inputs: SmallVec<[*const oflow_view; 4]> =
        inputs.iter().map(|v| v.as_ref().map_or(ptr::null(), ptr::from_ref)).collect();
    // A kernel that decides the length has one output more, which the interface has a field for.
    let (outputs, length) = match op.length {
        Some(crate::ops::LengthBy::Kernel) => match cx.outputs.split_last() {
            Some((length, outputs)) => (outputs, Some(length)),
            None => (cx.outputs, None),
        },
        _ => (cx.outputs, None),
    };
    let made = output_names(op, cx.attrs, cx.inputs.iter().map(|i| i.is_some()), outputs.len());
    let outputs: SmallVec<[oflow_view; 2]> = outputs
        .iter()
        .zip(&made)
        .enumerate()
        .map(|(o, (v, name))| view(v, cx.output_boxes.get(o), name, device))
        .collect();
    let outputs: SmallVec<[*const oflow_view; 2]> = outputs.iter().map(ptr::from_ref).collect();
    let scratch = cx.workspace.map(|w| view(w, None, "workspace", device));
    let queue = match device {
        OFLOW_CUDA => Some(crate::backend::cuda::queue(cx)?),
        _ => None,
    };
    let stream = queue.as_ref().map(|q| q.stream());
    let ordered = stream.filter(|_| op.library.as_ref().is_some_and(|l| l.default_stream));
    let mut written = -1i64;
    let running = Running { cx, device: on_device(device)?, thread: std::thread::current().id() };
    let call = oflow_call {
        head: oflow_head::of::<oflow_call>(),
        op: oflow_str::of(&op.sig.name),
        inputs: inputs.as_ptr(),
        input_count: inputs.len(),
        outputs: outputs.as_ptr(),
        output_count: outputs.len(),
        attrs: attrs.as_ptr().cast(),
        attr_count: attrs.len(),
        workspace: scratch.as_ref().map_or(ptr::null(), ptr::from_ref),
        stream: stream.map_or(ptr::null_mut(), |s| s.raw().cast()),
        length: if length.is_some() { &raw mut written } else { ptr::null_mut() },
        user: user.get(),
        context: (&raw const running).cast_mut().cast(),
        launch: Some(launch),
    };
    let mut room = LongRoom::new();
    let mut message = room.message();
    let _no_calls = no_calls("a kernel");
    if let Some(stream) = ordered {
        stream.before_default()?;
    }
    // SAFETY: a kernel of a loaded library, which stays mapped; all that it is given lives until it returns. What it does with memory
    // is the library's promise: that it reads inputs and writes outputs within their sizes.
    let status = unsafe { run(&raw const call, &raw mut message) };
    let len = message.len;
    if status == OFLOW_ERROR
        && let Some(e) = passed_on(&room.said(len))
    {
        return Err(e.within(|| format!("a kernel of {}", op.shown())));
    }
    judged(status, room.said(len), || format!("a kernel of {}", op.shown()))?;
    if let Some(stream) = ordered {
        stream.after_default()?;
    }
    match length {
        None => Ok(()),
        Some(length) => say_length(op, length, written, cx.outputs, queue.as_ref()),
    }
}

/// Hands on the length that a kernel has said: on the stream where it lies on a GPU.
fn say_length(op: &OpDef, to: &View, written: i64, outputs: &[View], queue: Option<&Queue<'_>>) -> Result<()> {
    let most = outputs.first().and_then(|v| v.dims().first()).copied().unwrap_or(0) as i64;
    if !(0..=most).contains(&written) {
        let said = if written == -1 { "no length".to_string() } else { format!("the length {written}") };
        return judged(OFLOW_ERROR, format!("it says {said}; there is room for {most}"), || {
            format!("a kernel of {}", op.shown())
        });
    }
    if let Some(queue) = queue {
        return Ok(fill(queue, to, Scalar::Int(written))?);
    }
    // SAFETY: the output that oflow added for the length, of which no other slice is alive.
    unsafe { to.as_mut_slice::<i64>()? }.fill(written);
    Ok(())
}

/// Bytes of scratch memory.
pub(super) fn workspace_bytes(
    ctx: &InferCtx<'_>,
    outputs: &[TensorType],
    bytes: WorkspaceCall,
    user: User,
) -> Result<usize> {
    let mut room = <Room>::new();
    let mut message = room.message();
    let _no_calls = no_calls("the size of a workspace");
    // SAFETY: a function of a loaded library, which stays mapped; all that it is given lives until it returns.
    let found = with_infer(ctx, &RuleArgs { outputs, ..RuleArgs::default() }, user.get(), |infer| unsafe {
        bytes(infer, &raw mut message)
    });
    match usize::try_from(found) {
        // Beyond this no allocation can go, and a size that an error was taken for would look like it.
        Ok(bytes) if bytes < isize::MAX as usize => Ok(bytes),
        _ => {
            let len = message.len;
            let status = i32::try_from(found.unsigned_abs()).unwrap_or(i32::MAX).max(OFLOW_ERROR);
            judged(status, room.said(len), || format!("the workspace of {}", ctx.op.shown())).map(|()| 0)
        }
    }
}

/// Whether a kernel applies to a call.
pub(super) fn kernel_applies(
    ctx: &InferCtx<'_>,
    outputs: &[TensorType],
    applies: AppliesCall,
    user: User,
) -> Result<bool> {
    let mut room: Room = Room::new();
    let mut message = room.message();
    // SAFETY: a function of a loaded library, which stays mapped; all that it is given lives until it returns.
    let found = with_infer(ctx, &RuleArgs { outputs, ..RuleArgs::default() }, user.get(), |infer| unsafe {
        applies(infer, &raw mut message)
    });
    match found {
        0 | 1 => Ok(found == 1),
        _ => {
            let (len, status) = (message.len, found.checked_neg().filter(|s| *s > 0).unwrap_or(found));
            judged(status, room.said(len), || format!("the condition of a kernel of {}", ctx.op.shown()))
                .map(|()| false)
                .map_err(|e| e.as_kind(ErrorKind::Argument))
        }
    }
}

/// Results that a rule has given.
#[derive(Default)]
struct Given {
    shapes: Vec<Option<Dims>>,
    dtypes: Vec<Option<DType>>,
    signatures: Vec<String>,
    run_on: Option<(Device, StreamKind)>,
    devices: Vec<Option<Device>>,
}

/// Outputs beyond this number are not taken.
const MOST_OUTPUTS: usize = 1 << 12;

fn slot<T>(list: &mut Vec<Option<T>>, at: usize, value: T) -> i32 {
    if at >= MOST_OUTPUTS {
        return OFLOW_ERROR;
    }
    if list.len() <= at {
        list.resize_with(at + 1, || None);
    }
    list[at] = Some(value);
    OFLOW_OK
}

unsafe extern "C" fn take_shape(context: *mut c_void, output: usize, dims: *const i64, rank: usize) -> i32 {
    // SAFETY: the `Given` of the rule that runs, which hands it back.
    let given = unsafe { &mut *context.cast::<Given>() };
    if rank > 64 || (rank > 0 && dims.is_null()) {
        return OFLOW_ERROR;
    }
    let sizes = match rank {
        0 => &[][..],
        // SAFETY: a list of that length, as the rule says.
        rank => unsafe { std::slice::from_raw_parts(dims, rank) },
    };
    match sizes.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<Dims>>() {
        Some(dims) => slot(&mut given.shapes, output, dims),
        None => OFLOW_ERROR,
    }
}

unsafe extern "C" fn take_dtype(context: *mut c_void, output: usize, found: u32) -> i32 {
    // SAFETY: the `Given` of the rule that runs, which hands it back.
    let given = unsafe { &mut *context.cast::<Given>() };
    match dtype(found) {
        Some(d) => slot(&mut given.dtypes, output, d),
        None => OFLOW_ERROR,
    }
}

unsafe extern "C" fn take_signature(context: *mut c_void, text: oflow_str) -> i32 {
    // SAFETY: the `Given` of the rule that runs, which hands it back.
    let given = unsafe { &mut *context.cast::<Given>() };
    // SAFETY: a text that lives during the call.
    match unsafe { super::read::text(text, "a signature") } {
        Ok(text) if given.signatures.len() < MOST_OUTPUTS => {
            given.signatures.push(text.to_string());
            OFLOW_OK
        }
        _ => OFLOW_ERROR,
    }
}

unsafe extern "C" fn take_run_on(context: *mut c_void, found: u32, stream: u32) -> i32 {
    // SAFETY: the `Given` of the rule that runs, which hands it back.
    let given = unsafe { &mut *context.cast::<Given>() };
    let stream = match stream {
        OFLOW_STREAM_COMPUTE => StreamKind::Compute,
        OFLOW_STREAM_COPY => StreamKind::Copy,
        _ => return OFLOW_ERROR,
    };
    given.run_on = device(found).map(|d| (d, stream));
    if given.run_on.is_some() { OFLOW_OK } else { OFLOW_ERROR }
}

unsafe extern "C" fn take_device(context: *mut c_void, output: usize, found: u32) -> i32 {
    // SAFETY: the `Given` of the rule that runs, which hands it back.
    let given = unsafe { &mut *context.cast::<Given>() };
    match device(found) {
        Some(d) => slot(&mut given.devices, output, d),
        None => OFLOW_ERROR,
    }
}

fn run_rule(ctx: &InferCtx<'_>, args: &RuleArgs<'_>, rule: RuleCall, user: User, what: &str) -> Result<Given> {
    let mut given = Given::default();
    let results = oflow_results {
        head: oflow_head::of::<oflow_results>(),
        context: (&raw mut given).cast(),
        shape: Some(take_shape),
        dtype: Some(take_dtype),
        signature: Some(take_signature),
        run_on: Some(take_run_on),
        device: Some(take_device),
    };
    let mut room = <Room>::new();
    let mut message = room.message();
    let _no_calls = no_calls("a rule");
    let call = |infer: &oflow_infer| {
        // SAFETY: a function of a loaded library, which stays mapped; all that it is given lives until it returns.
        unsafe { rule(infer, &raw const results, &raw mut message) }
    };
    let status = with_infer(ctx, args, user.get(), call);
    let len = message.len;
    // Rules are pure: what they say is the same on every rank, and before any data moves.
    judged(status, room.said(len), || format!("{what} of {}", ctx.op.shown()))
        .map_err(|e| e.as_kind(ErrorKind::Argument))?;
    Ok(given)
}

/// All of a list, which has `n` members, or as many as there are where the number depends on the call.
fn all<T>(list: Vec<Option<T>>, ctx: &InferCtx<'_>, what: &str) -> Result<SmallVec<[T; 2]>> {
    let op = ctx.op;
    let n = list.len();
    let found: Option<SmallVec<[T; 2]>> = list.into_iter().collect();
    match found {
        Some(found) if n == op.sig.outputs.len() || op.sig.outputs_vary() => Ok(found),
        _ => {
            let about = || format!("{what} of {}", op.shown());
            judged(OFLOW_ERROR, format!("it gives {n} of {} outputs", op.sig.outputs.len()), about)
                .map(|()| SmallVec::new())
        }
    }
}

/// Adds the rules of an op that are functions.
pub(super) fn add_rules(mut op: OpDef, from: &oflow_op_def, user: User) -> OpDef {
    if let Some(rule) = from.check {
        op = op.check(move |ctx| run_rule(ctx, &RuleArgs::default(), rule, user, "the check").map(|_| ()));
    }
    if let Some(rule) = from.infer_shapes {
        let what = "the shape rule";
        op.shape = ShapeRule::Fn(Arc::new(move |ctx| {
            all(run_rule(ctx, &RuleArgs::default(), rule, user, what)?.shapes, ctx, what)
        }));
    }
    if let Some(rule) = from.infer_dtypes {
        let what = "the dtype rule";
        op.dtype = DTypeRule::Fn(Arc::new(move |ctx| {
            all(run_rule(ctx, &RuleArgs::default(), rule, user, what)?.dtypes, ctx, what)
        }));
    }
    if let Some(rule) = from.infer_signatures {
        op = op.get_sbp(move |ctx| {
            let rows = run_rule(ctx, &RuleArgs::default(), rule, user, "the sharding rule")?.signatures;
            let counts = (ctx.inputs.len(), ctx.op.sig.outputs.len());
            rows.iter().map(|row| signature(row, counts, ctx.op)).collect()
        });
    }
    if let Some(rule) = from.infer_devices {
        op = op.devices(move |ctx| devices(ctx, rule, user));
    }
    if let Some(rule) = from.nd_infer_rule {
        op = op.nd_infer_rows(move |ctx, mesh, hints| {
            let args = RuleArgs { sbps: Some((mesh, hints)), ..RuleArgs::default() };
            Ok(run_rule(ctx, &args, rule, user, "`nd_infer_rule`")?.signatures)
        });
    }
    if let Some(rule) = from.nd_choose {
        op = op.nd_choose_row(move |ctx, mesh, hints| {
            let args = RuleArgs { sbps: Some((mesh, hints)), ..RuleArgs::default() };
            let mut rows = run_rule(ctx, &args, rule, user, "`nd_choose`")?.signatures;
            let (row, n) = (rows.pop(), rows.len() + 1);
            match rows.is_empty() {
                true => Ok(row),
                false => Err(Error::argument(format!("`nd_choose` of {} gives {n} signatures", ctx.op.shown()))
                    .help("give the one that the call is to take, or none to leave the choice to oflow")),
            }
        });
    }
    op
}

/// Devices that a device rule names for the outputs. Outputs that it does not speak of are on the device whose kernel runs.
fn devices(ctx: &DeviceCtx<'_>, rule: RuleCall, user: User) -> Result<Devices> {
    let (call, what) = (ctx.call, "the device rule");
    let known = |d: Device| {
        device_code(d).ok_or_else(|| {
            Error::unsupported(format!("{what} of {} knows cpu and cuda, and the call is on {d}", call.op.shown()))
        })
    };
    let inputs: SmallVec<[u32; 8]> =
        ctx.inputs.iter().map(|d| d.map_or(Ok(OFLOW_NO_DEVICE), known)).collect::<Result<_>>()?;
    let args = RuleArgs { devices: Some((&inputs, known(ctx.default)?)), ..RuleArgs::default() };
    let given = run_rule(call, &args, rule, user, what)?;
    let (run_on, stream) = given.run_on.unwrap_or((ctx.default, StreamKind::Compute));
    let count = call.op.outputs_made(call)?.map_or(call.op.sig.outputs.len(), |made| made.len());
    if given.devices.len() > count {
        let why = format!("it gives devices for {} outputs, the call makes {count}", given.devices.len());
        return judged(OFLOW_ERROR, why, || format!("{what} of {}", call.op.shown()))
            .map(|()| Devices::all(run_on, count));
    }
    let outputs = (0..count).map(|o| given.devices.get(o).copied().flatten().unwrap_or(run_on)).collect();
    Ok(Devices { run_on, outputs, stream })
}

/// Reads a signature that a rule has given.
fn signature(row: &str, (inputs, outputs): (usize, usize), op: &OpDef) -> Result<Signature> {
    let found: Signature = row.parse().map_err(|e: Error| refused(op, row, e.message().to_string()))?;
    let fits = found.inputs.len() == inputs && (found.outputs.len() == outputs || op.sig.outputs_vary());
    match fits {
        true => Ok(found),
        false => Err(refused(op, row, format!("the call has {inputs} inputs and {outputs} outputs"))),
    }
}

fn refused(op: &OpDef, row: &str, why: String) -> Error {
    Error::argument(format!("the sharding rule of {} gives '{row}': {why}", op.shown()))
}
