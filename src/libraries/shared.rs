//! Shared libraries: opening one, and the ops that it gives.

use super::api::{API, no_calls};
use super::call::{User, add_rules, kernel_applies, run_kernel, workspace_bytes};
use super::cuda_text;
use super::declaration::{Declaration, about, condition, priority};
use super::function::read_function;
use super::grad_rule::grad;
use super::read::{list, read, text, texts};
use super::{dying, elf};
use crate::error::{Error, Result};
use crate::functional::FnDef;
use crate::ops::{Grad, KernelDef, KernelPred, LibraryId, OpDef};
use crate::placement::Device;
use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use oflow_kernels::parallel::parallel_for;
use oflow_op::abi::*;
use std::ffi::c_void;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

/// Table of functions that every library is given.
static HOST: oflow_host =
    oflow_host { head: oflow_head::of::<oflow_host>(), parallel_for: Some(host_parallel_for), api: &raw const API };

/// Longest CUDA source that is read, in bytes.
const LONGEST_SOURCE: u64 = 64 << 20;

type Body = unsafe extern "C" fn(*mut c_void, usize, usize);

unsafe extern "C" fn host_parallel_for(count: usize, grain: usize, body: Option<Body>, data: *mut c_void) {
    let Some(body) = body else { return };
    let data = User(data);
    parallel_for(count, grain, &move |part| {
        let _no_calls = no_calls("a part of `parallel_for`");
        // SAFETY: the interface says that `body` takes any part, on any thread, and does not unwind.
        unsafe { body(data.get(), part.start, part.end) }
    });
}

/// A library as it was opened: its name and version, and its ops.
pub(super) struct Opened {
    pub(super) id: Arc<LibraryId>,
    pub(super) version: String,
    pub(super) ops: Vec<OpDef>,
    pub(super) functions: Vec<FnDef>,
}

/// Opens a library and reads its ops. It is never closed: plans and graphs may run its code as long as the process lives.
///
/// `file` is named in messages; `hash` stands for the library's code.
///
/// # Errors
/// The file is no library for ops, or of another version of the interface; an op says something that cannot be understood.
pub(super) fn open(path: &Path, bytes: &[u8], file: &str, hash: &str) -> Result<Opened> {
    elf::check(bytes, file)?;
    dying::named(file, || open_checked(path, bytes, file, hash))
}

/// Opens a checked library: runs its constructors, then its own code.
fn open_checked(path: &Path, bytes: &[u8], file: &str, hash: &str) -> Result<Opened> {
    let library = dlopen(path, bytes, file)?;
    // SAFETY: the symbol of that name is this function, by the interface.
    let start = unsafe { library.get::<oflow_library_fn>(b"oflow_op_library\0") };
    let start = start.ok().and_then(|s| *s).ok_or_else(|| {
        Error::registry(format!("{file} has no function `oflow_op_library`, so it is not a library of ops"))
            .help("export the ops: `oflow_op::library!` in Rust, `OFLOW_LIBRARY(name)` in C++")
    })?;
    let _no_calls = no_calls("the declaration of a library");
    // SAFETY: the function that starts a library; the host lives as long as the process.
    let given = unsafe { start(&raw const HOST) };
    // Its code and texts are used from here on.
    std::mem::forget(library);
    // SAFETY: what a library gives is a struct of the interface that lives as long as the process, with texts and lists that do.
    unsafe { read_library(given, path, file, hash, elf::has_section(bytes, FATBIN)) }
}

/// Where nvcc puts the code of kernels that the CUDA runtime launches.
const FATBIN: &str = ".nv_fatbin";

/// The file as it is now. A build that writes over it while it is mapped would change code that runs, so a private copy is mapped; a
/// library that finds others beside itself is mapped from where it is.
///
/// All symbols are looked up now: one that is missing would end the process at the first call.
fn dlopen(path: &Path, bytes: &[u8], file: &str) -> Result<Loaded> {
    let flags = RTLD_NOW | RTLD_LOCAL;
    let copy = || -> std::io::Result<std::fs::File> {
        let fd = rustix::fs::memfd_create("oflow-op", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut copy = std::fs::File::from(fd);
        copy.write_all(bytes)?;
        Ok(copy)
    };
    if let Ok(copy) = copy() {
        let at = format!("/proc/self/fd/{}", copy.as_raw_fd());
        // SAFETY: the caller asked for the library's code to run in this process.
        if let Ok(library) = unsafe { Loaded::open(Some(at), flags) } {
            // The loader takes a file of the same path for the same library: the number must not be given to another.
            std::mem::forget(copy);
            return Ok(library);
        }
    }
    // SAFETY: as above.
    unsafe { Loaded::open(Some(path), flags) }.map_err(|e| {
        let words = words(&e);
        let help = match words.contains("undefined symbol") {
            true => "link what defines it: name its source, or add the flag `-lNAME` to the build",
            false => "is it a shared library of this machine?",
        };
        Error::registry(format!("{file} cannot be loaded: {words}")).help(help)
    })
}

/// The words of an error and of what caused it.
fn words(e: &dyn std::error::Error) -> String {
    match e.source() {
        Some(cause) => words(cause),
        None => e.to_string(),
    }
}

/// # Safety
/// `given` is null, or a library's struct, which lives as long as the process with all that it leads to.
pub(super) unsafe fn read_library(
    given: *const oflow_library,
    path: &Path,
    file: &str,
    hash: &str,
    default_stream: bool,
) -> Result<Opened> {
    let failed = |why: &str| Error::registry(format!("{file}: {why}"));
    // SAFETY: by this function's contract.
    let library = unsafe { read(given, &format!("the library {file}"))? };
    // SAFETY: as above.
    let (error, name, version) = unsafe {
        (text(library.error, "its error")?, text(library.name, "its name")?, text(library.version, "its version")?)
    };
    if !error.is_empty() {
        return Err(failed(&format!("the library could not declare its ops: {error}")));
    }
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(
            failed(&format!("'{name}' cannot be the name of a library")).help("a name is letters, digits and '_'")
        );
    }
    let id = Arc::new(LibraryId { name: name.into(), file: file.to_string(), hash: hash.to_string(), default_stream });
    // SAFETY: as above.
    let ops = unsafe { list(library.ops, library.op_count, "its list of ops")? };
    // SAFETY: as above.
    let ops = ops.iter().map(|op| unsafe { read_op(*op, &id, path) }).collect::<Result<Vec<OpDef>>>()?;
    // SAFETY: as above.
    let functions = unsafe { list(library.functions, library.function_count, "its list of functions")? };
    // SAFETY: as above.
    let functions = functions.iter().map(|f| unsafe { read_function(*f, &id) }).collect::<Result<Vec<FnDef>>>()?;
    match ops.is_empty() && functions.is_empty() {
        true => Err(failed("the library has no ops and no functions")),
        false => Ok(Opened { id, version: version.to_string(), ops, functions }),
    }
}

/// # Safety
/// As [`read_library`].
unsafe fn read_op(given: *const oflow_op_def, id: &Arc<LibraryId>, path: &Path) -> Result<OpDef> {
    // SAFETY: by this function's contract; so for each text and list below.
    let from = unsafe { read(given, &format!("an op of library {id}"))? };
    let one = |t: oflow_str, what: &str| -> Result<String> {
        // SAFETY: as above.
        Ok(unsafe { text(t, &format!("the {what} of an op of library {id}"))? }.to_string())
    };
    let many = |t: oflow_strs, what: &str| {
        // SAFETY: as above.
        unsafe { texts(t, &format!("the {what} of an op of library {id}")) }
    };
    let d = Declaration {
        text: one(from.declaration, "declaration")?,
        domain: one(from.domain, "domain")?,
        version: from.version,
        doc: one(from.doc, "doc")?,
        subject: one(from.subject, "subject")?,
        traits: one(from.traits, "traits")?,
        functions: many(from.functions, "functions")?,
        expression: one(from.expression, "expression")?,
        derivatives: many(from.derivatives, "derivatives")?,
        shape: one(from.shape, "shape rule")?,
        dtype: one(from.dtype, "dtype rule")?,
        factors: one(from.factors, "factors")?,
        linear: many(from.linear, "linear inputs")?,
        signatures: many(from.signatures, "signatures")?,
        nd_infer: many(from.nd_infer, "nd_infer rows")?,
        nd_extra: many(from.nd_extra, "nd_extra rows")?,
        nd_valid: many(from.nd_valid, "nd_valid rows")?,
        gradient: one(from.gradient, "gradient")?,
        samples: many(from.samples, "samples")?,
    };
    let here = |e: Error| about(e, &d.text, id);
    let twice = [
        (!d.shape.is_empty() && from.infer_shapes.is_some(), "shape"),
        (!d.dtype.is_empty() && from.infer_dtypes.is_some(), "dtype"),
        (!(d.factors.is_empty() && d.signatures.is_empty()) && from.infer_signatures.is_some(), "sharding"),
        (!d.nd_infer.is_empty() && from.nd_infer_rule.is_some(), "nd_infer"),
    ];
    if let Some((_, what)) = twice.iter().find(|(both, _)| *both) {
        return Err(here(Error::registry(format!("it has two {what} rules, a text and a function"))));
    }
    let mut op = add_rules(d.op(id)?, &from, User(from.user));
    if let Some(rule) = from.grad_rule {
        if !d.gradient.trim().is_empty() {
            return Err(here(Error::registry("it has two gradients, a text and a function")));
        }
        let saves = many(from.grad_saves, "list of what its gradient reads").map_err(here)?;
        let listed = (from.grad_saves_listed != 0).then_some(saves.as_slice());
        op.grad = grad(&op, rule, User(from.user), listed).map_err(here)?;
    }
    // SAFETY: as above.
    let kernels = unsafe { list(from.kernels, from.kernel_count, "its list of kernels") }.map_err(here)?;
    for kernel in kernels {
        // SAFETY: as above.
        let kernel = unsafe { read_kernel(*kernel, &op, path) }.map_err(here)?;
        op = op.kernel(kernel);
    }
    if op.kernels.is_empty() && op.expr.is_none() {
        return Err(here(Error::registry("it has neither a kernel nor an expression")));
    }
    if matches!(op.grad, Grad::FromExpr) && op.expr.is_none() {
        return Err(here(Error::registry("its gradient cannot be derived: it has no expression")));
    }
    Ok(op)
}

/// # Safety
/// As [`read_library`].
unsafe fn read_kernel(given: *const oflow_kernel, op: &OpDef, path: &Path) -> Result<KernelDef> {
    // SAFETY: by this function's contract; so for each text below.
    let from = unsafe { read(given, "a kernel")? };
    let one = |t: oflow_str, what: &str| -> Result<&'static str> {
        // SAFETY: as above.
        unsafe { text(t, &format!("the {what} of a kernel")) }
    };
    let (device, code) = match one(from.device, "device")? {
        "cpu" => (Device::Cpu, OFLOW_CPU),
        "cuda" => (Device::Cuda, OFLOW_CUDA),
        other => {
            return Err(
                Error::registry(format!("a kernel is for the device '{other}'")).help("devices are `cpu` and `cuda`")
            );
        }
    };
    let source = one(from.cuda_source, "CUDA source")?;
    let mut kernel = match (from.run, source.is_empty()) {
        (Some(run), true) => {
            let name = format!("{}_{device}", op.sig.name);
            let user = User(from.user);
            KernelDef::on(device, &name, move |cx| run_kernel(cx, run, user, code))
        }
        (None, false) if device == Device::Cuda => {
            let (entry, threads) = (one(from.cuda_entry, "CUDA entry")?, one(from.cuda_threads, "threads")?);
            match source.contains('\n') {
                true => cuda_text::kernel(op, Path::new(&format!("{}.cu", op.sig.name)), source, entry, threads)?,
                false => {
                    let file = path.with_file_name(source);
                    let wrong =
                        |e: &dyn std::fmt::Display| Error::registry(format!("its CUDA source {}: {e}", file.display()));
                    let read = oflow_files::checked_bytes(&file, LONGEST_SOURCE).map_err(|e| wrong(&e))?;
                    let text = String::from_utf8(read).map_err(|e| wrong(&e))?;
                    cuda_text::kernel(op, &file, &text, entry, threads)?
                }
            }
        }
        (None, false) => return Err(Error::registry(format!("a kernel for {device} has a CUDA source"))),
        (Some(_), false) => return Err(Error::registry("a kernel has a function and a CUDA source")),
        (None, true) => return Err(Error::registry("a kernel has neither a function nor a CUDA source")),
    };
    let name = one(from.name, "name")?;
    if !name.is_empty() {
        kernel.name = name.into();
    }
    if let Some(bytes) = from.workspace {
        let user = User(from.user);
        kernel = kernel.with_workspace(move |ctx, outputs| workspace_bytes(ctx, outputs, bytes, user));
    }
    let (dtypes, words) = (one(from.dtypes, "dtypes")?, one(from.condition, "condition")?);
    let pred = match from.applies {
        None => condition(dtypes, words, op)?,
        Some(applies) => {
            let words = if words.is_empty() { "its function says so" } else { words };
            let user = User(from.user);
            let code = KernelPred::try_when(words, move |ctx, outs| kernel_applies(ctx, outs, applies, user));
            KernelPred::All(vec![condition(dtypes, "", op)?, code])
        }
    };
    Ok(kernel.when(pred).priority(priority(one(from.priority, "priority")?)?))
}
