//! For `cargo xtask fuzz`: what a shared library describes, as structs of C made from bytes.
//!
//! Heads, texts, lists, sizes, statuses and results of rules may be wrong. Pointers are null, misaligned, or lead to memory of the length
//! that is stated beside them: a pointer to anything else cannot be told from a right one.

use super::{Library, fuzzed_calls, place, shared};
use crate::error::{Error, Result};
use oflow_op::abi::*;
use std::any::Any;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A library of ops that was made from bytes, with the memory that its callbacks read.
pub struct Fuzzed {
    /// The library, as if it had been loaded from a file. It is unloaded before this is dropped.
    pub library: Library,
    _memory: Memory,
}

/// A registered op stays for the life of the process, so libraries beyond this number are read only.
const MOST_LOADED: u64 = 100_000;

/// Registers what the bytes describe.
///
/// # Errors
/// What [`load`](super::load) reports of a library that says the same. It has been read, and is not registered, if enough of them are.
pub fn load(input: &[u8]) -> Result<Fuzzed> {
    static LOADED: AtomicU64 = AtomicU64::new(0);
    let loaded = LOADED.load(Ordering::Relaxed);
    let mut memory = Memory::default();
    let given = memory.library(&mut Bytes(input));
    let (path, file, hash) = (Path::new("/nowhere/fuzzed.so"), "fuzzed.so", loaded.to_string());
    // SAFETY: null, or a struct in `memory`, which lives until the library is unloaded: nothing runs a callback after that.
    let open = || unsafe { shared::read_library(given, path, file, &hash, false) };
    if loaded >= MOST_LOADED {
        open()?;
        return Err(Error::registry("enough libraries were registered"));
    }
    let library = place(vec![PathBuf::from(file)], &hash, open)?;
    LOADED.fetch_add(1, Ordering::Relaxed);
    Ok(Fuzzed { library, _memory: memory })
}

/// An input; zeros follow it.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    pub(super) fn run(&mut self) -> &'a [u8] {
        let len = usize::from(u16::from_le_bytes([self.byte(), self.byte()]));
        let (run, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        run
    }

    /// An index or a size: small ones, and those at the ends.
    pub(super) fn number(&mut self) -> i64 {
        match self.byte() as i8 {
            i8::MAX => i64::MAX,
            i8::MIN => i64::MIN,
            126 => 1 << 31,
            small => i64::from(small),
        }
    }
}

/// Memory that the pointers of a library lead to.
#[derive(Default)]
struct Memory(Vec<Box<dyn Any>>);

impl Memory {
    /// The elements, and where they lie from now on.
    fn keep<T: 'static>(&mut self, all: Vec<T>) -> *const T {
        let at = all.as_ptr();
        self.0.push(Box::new(all));
        at
    }

    /// A struct, whose head is as `how` says.
    fn put<T: Copy>(&mut self, value: T, how: u8, more: u8) -> *const T {
        let mut head = oflow_head::of::<T>();
        let mut offset = 0;
        match how {
            1 => return ptr::null(),
            2 => offset = 1,
            3 => offset = 4,
            4 => head.major += 1,
            5 => head.minor += u16::from(more),
            6 => head.size = u32::from(more),
            7 => head.size = u32::MAX,
            _ => {}
        }
        let room = self.keep(vec![0u64; size_of::<T>().div_ceil(8) + 1]).cast::<u8>().cast_mut();
        // SAFETY: room for the struct and 8 bytes more, aligned for a head where the offset is not 1; structs start with a head.
        unsafe {
            let at = room.add(offset);
            ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), at, size_of::<T>());
            ptr::copy_nonoverlapping((&raw const head).cast::<u8>(), at, size_of::<oflow_head>());
            at.cast()
        }
    }

    fn text(&mut self, from: &mut Bytes<'_>) -> oflow_str {
        let how = from.byte();
        let bytes = from.run();
        let (data, len) = (self.keep(bytes.to_vec()), bytes.len());
        match how {
            1 => oflow_str { data: ptr::null(), len },
            // Longer than a text may be: it is refused before it is read.
            2 => oflow_str { data, len: usize::MAX },
            3 => oflow_str { data, len: (1 << 20) + 1 },
            4 => oflow_str { data: ptr::null(), len: 0 },
            _ => oflow_str { data, len },
        }
    }

    fn list<T: Copy + 'static>(&mut self, how: u8, mut all: Vec<T>) -> (*const T, usize) {
        let count = all.len();
        // One more, for a list that is moved.
        all.extend(all.last().copied());
        let at = self.keep(all);
        match how {
            1 => (ptr::null(), count),
            2 => (at, usize::MAX),
            3 => (at, (1 << 16) + 1),
            4 => (at.cast::<u8>().wrapping_add(1).cast(), count),
            _ => (at, count),
        }
    }

    fn texts(&mut self, from: &mut Bytes<'_>) -> oflow_strs {
        let (how, count) = (from.byte(), from.byte());
        let all = (0..count).map(|_| self.text(from)).collect();
        let (data, count) = self.list(how, all);
        oflow_strs { data, count }
    }

    /// The steps of callbacks, as their `user`.
    fn steps(&mut self, from: &mut Bytes<'_>) -> *mut c_void {
        let steps: Steps = from.run().to_vec();
        self.keep(vec![steps]).cast_mut().cast()
    }

    fn library(&mut self, from: &mut Bytes<'_>) -> *const oflow_library {
        let (how, more) = (from.byte(), from.byte());
        let [name, version, error] = [(); 3].map(|()| self.text(from));
        let (wrong, count) = (from.byte(), from.byte());
        let ops = (0..count).map(|_| self.op(from)).collect();
        let (ops, op_count) = self.list(wrong, ops);
        let (wrong, count) = (from.byte(), from.byte());
        let functions = (0..count).map(|_| self.function(from)).collect();
        let (functions, function_count) = self.list(wrong, functions);
        let head = oflow_head::of::<oflow_library>();
        let library = oflow_library { head, name, version, error, ops, op_count, functions, function_count };
        self.put(library, how, more)
    }

    fn function(&mut self, from: &mut Bytes<'_>) -> *const oflow_function_def {
        let (how, more) = (from.byte(), from.byte());
        let function = oflow_function_def {
            head: oflow_head::of::<oflow_function_def>(),
            signature: self.text(from),
            doc: self.text(from),
            hidden: u32::from(from.byte()),
            run: (from.byte() != 1).then_some(fuzzed_calls::body as _),
            user: self.steps(from),
        };
        self.put(function, how, more)
    }

    fn op(&mut self, from: &mut Bytes<'_>) -> *const oflow_op_def {
        let (how, more) = (from.byte(), from.byte());
        let rules = from.byte();
        let rule = |bit: u8| (rules & 1 << bit != 0).then_some(rule as _);
        let mut op = oflow_op_def {
            head: oflow_head::of::<oflow_op_def>(),
            declaration: self.text(from),
            domain: self.text(from),
            version: u32::from(from.byte()),
            doc: self.text(from),
            subject: self.text(from),
            traits: self.text(from),
            functions: self.texts(from),
            expression: self.text(from),
            derivatives: self.texts(from),
            shape: self.text(from),
            dtype: self.text(from),
            factors: self.text(from),
            linear: self.texts(from),
            signatures: self.texts(from),
            gradient: self.text(from),
            samples: self.texts(from),
            check: rule(0),
            infer_shapes: rule(1),
            infer_dtypes: rule(2),
            infer_signatures: rule(3),
            user: self.steps(from),
            kernels: ptr::null(),
            kernel_count: 0,
            grad_rule: None,
            grad_saves: oflow_strs::EMPTY,
            grad_saves_listed: 0,
            nd_infer: oflow_strs::EMPTY,
            nd_extra: oflow_strs::EMPTY,
            nd_valid: oflow_strs::EMPTY,
            infer_devices: rule(4),
            nd_infer_rule: rule(6),
            nd_choose: rule(7),
        };
        let (wrong, count) = (from.byte(), from.byte());
        let kernels = (0..count).map(|_| self.kernel(from)).collect();
        (op.kernels, op.kernel_count) = self.list(wrong, kernels);
        op.grad_saves_listed = u32::from(from.byte());
        op.grad_saves = self.texts(from);
        op.grad_rule = (rules & 32 != 0).then_some(fuzzed_calls::grad_rule as _);
        [op.nd_infer, op.nd_extra, op.nd_valid] = [(); 3].map(|()| self.texts(from));
        self.put(op, how, more)
    }

    fn kernel(&mut self, from: &mut Bytes<'_>) -> *const oflow_kernel {
        let (how, more) = (from.byte(), from.byte());
        let functions = from.byte();
        let kernel = oflow_kernel {
            head: oflow_head::of::<oflow_kernel>(),
            name: self.text(from),
            device: self.text(from),
            dtypes: self.text(from),
            priority: self.text(from),
            run: (functions & 1 != 0).then_some(kernel as _),
            workspace: (functions & 2 != 0).then_some(workspace as _),
            cuda_source: self.text(from),
            cuda_entry: self.text(from),
            cuda_threads: self.text(from),
            user: self.steps(from),
            condition: self.text(from),
            applies: (functions & 4 != 0).then_some(applies as _),
        };
        self.put(kernel, how, more)
    }
}

/// Steps of a callback, one byte each.
pub(super) type Steps = Vec<u8>;

/// Dims and element type of input 0.
///
/// # Safety
/// A rule was given this.
unsafe fn given_dims(infer: &oflow_infer) -> Option<(&[i64], u32)> {
    if infer.input_count == 0 {
        return None;
    }
    // SAFETY: a list of that length, of null pointers and types with as many dims as they say.
    unsafe {
        let first = (*infer.inputs).as_ref()?;
        let dims = if first.rank == 0 { &[][..] } else { std::slice::from_raw_parts(first.dims, first.rank as usize) };
        Some((dims, first.dtype))
    }
}

/// Does the steps of a callback; returns its status.
///
/// # Safety
/// `user` is null or leads to [`Steps`]; the others are what callbacks are given.
unsafe fn act(
    user: *mut c_void,
    infer: Option<&oflow_infer>,
    results: Option<&oflow_results>,
    error: *mut oflow_message,
) -> i64 {
    // SAFETY: by this function's contract.
    let Some(steps) = (unsafe { user.cast::<Steps>().as_ref() }) else { return 0 };
    let mut from = Bytes(steps);
    while !from.0.is_empty() {
        let step = from.byte();
        match (step, results) {
            (0, _) => return from.number(),
            (1, _) => {
                // SAFETY: a message with that room.
                unsafe { ((*error).text).write_bytes(from.byte(), (*error).capacity) };
                // SAFETY: as above.
                unsafe { (*error).len = from.number() as usize };
            }
            (2, Some(to)) => {
                let (output, rank) = (from.number() as usize, from.byte());
                let dims: Vec<i64> = (0..rank).map(|_| from.number()).collect();
                let at = if from.byte() == 1 { ptr::null() } else { dims.as_ptr() };
                // SAFETY: the function of the results, and a list of that length or none.
                let _taken = to.shape.map(|f| unsafe { f(to.context, output, at, dims.len()) });
            }
            (3, Some(to)) => {
                let (output, dtype) = (from.number() as usize, from.number() as u32);
                // SAFETY: the function of the results.
                let _taken = to.dtype.map(|f| unsafe { f(to.context, output, dtype) });
            }
            (4, Some(to)) => {
                let how = from.byte();
                let text = from.run();
                let data = if how == 1 { ptr::null() } else { text.as_ptr() };
                let len = if how == 2 { usize::MAX } else { text.len() };
                // SAFETY: the function of the results, and a text of that length or one that is refused.
                let _taken = to.signature.map(|f| unsafe { f(to.context, oflow_str { data, len }) });
            }
            (5, Some(to)) => {
                // SAFETY: what a rule is given.
                let like = infer.and_then(|infer| unsafe { given_dims(infer) });
                let Some((dims, dtype)) = like else { continue };
                // SAFETY: the function of the results, and a list of that length.
                let _taken = to.shape.map(|f| unsafe { f(to.context, 0, dims.as_ptr(), dims.len()) });
                // SAFETY: the function of the results.
                let _taken = to.dtype.map(|f| unsafe { f(to.context, 0, dtype) });
            }
            (6, Some(to)) => {
                let (device, stream) = (from.number() as u32, from.number() as u32);
                // SAFETY: the function of the results.
                let _taken = to.run_on.map(|f| unsafe { f(to.context, device, stream) });
            }
            (7, Some(to)) => {
                let (output, device) = (from.number() as usize, from.number() as u32);
                // SAFETY: the function of the results.
                let _taken = to.device.map(|f| unsafe { f(to.context, output, device) });
            }
            _ => {}
        }
    }
    0
}

unsafe extern "C" fn rule(infer: *const oflow_infer, results: *const oflow_results, error: *mut oflow_message) -> i32 {
    // SAFETY: what a rule is given.
    unsafe { act((*infer).user, infer.as_ref(), results.as_ref(), error) as i32 }
}

unsafe extern "C" fn applies(infer: *const oflow_infer, error: *mut oflow_message) -> i32 {
    // SAFETY: what a condition is given.
    unsafe { act((*infer).user, None, None, error) as i32 }
}

unsafe extern "C" fn workspace(infer: *const oflow_infer, error: *mut oflow_message) -> i64 {
    // SAFETY: what a rule is given.
    unsafe { act((*infer).user, None, None, error) }
}

unsafe extern "C" fn kernel(call: *const oflow_call, error: *mut oflow_message) -> i32 {
    // SAFETY: what a kernel is given.
    unsafe {
        let status = act((*call).user, None, None, error);
        (*call).length.as_mut().into_iter().for_each(|length| *length = status);
        status as i32
    }
}

/// Bytes that describe libraries with all that there is, and are taken.
pub fn recorded() -> Vec<Vec<u8>> {
    let scale = Described::new("scale(x: f32|f64, w: float; n: int = 2, by: runtime float = 2.0) -> y")
        .texts(["", "One sentence.", "Mine", "run_empty", "", "[m, k], [k] -> [m, k]", "like x", "mk, k -> mk"])
        .lists(["scale(Tensor x, Tensor w, *, Int n=2) -> Tensor", "", "x: y", ""])
        .gradient("x = fuzzed.scale_grad(grad y, w; n)")
        .sample("f32[4, 6] f32[6]; n=3")
        .op(0, &[], 3, &[0, 0]);
    let gradient = Described::new("scale_grad(dy: float, w: float; n: int) -> dx").op(0, &[], 1, &[]);
    let like = Described::new("like(x: float) -> y").sample("f32[2, 3]").op(
        15,
        &[5, 4, 0, 12, 0, b'S', b'(', b'0', b')', b' ', b'-', b'>', b' ', b'S', b'(', b'0', b')'],
        1,
        &[0, 1],
    );
    let cut = Described::new("cut(x: float[1]) -> y")
        .texts(["mine", "", "", "length_by_kernel", "", "", "", ""])
        .sample("f64[5]")
        .op(1, &[0, 0], 1, &[0, 0]);
    let row = b"[S(0)] -> [S(0)]";
    let gives_row = [&[4, 0, row.len() as u8, 0][..], row].concat();
    let hinted = Described::new("hinted(x: float) -> y").sample("f32[5]").op(64 | 128, &gives_row, 1, &[0, 0]);
    let leaky = Described::new("leaky(x: float; alpha: runtime float = 0.01) -> y")
        .texts(["", "", "", "", "select(x >= 0, x, alpha * x)", "", "", ""])
        .lists(["", "x: select(x >= 0, 1, alpha)", "", ""])
        .sample("f32[5]")
        .op(0, &[], 0, &[]);
    let joint = Described::new("joint(x: float[2]; exact: bool = false, n: int = 2) -> y")
        .nd(["", "[S(0), S(1)] -> [S(0), S(1)]", "not [S(1), *] -> *"])
        .condition("y: f32|f64 and not exact and n <= 8")
        .sample("f32[4, 6]")
        .op(16, &[6, 0, 0, 7, 0, 0], 1, &[0, 0]);
    // dx = relu(dy), by a rule that reads the input first.
    let rule = [6, 0, 0, 0, 0, 6, 2, 0, 0, 0, 7, 4, 0, b'r', b'e', b'l', b'u', 1, 1, 0, 8, 0, 0, 0, 2];
    let ruled = Described::new("ruled(x: float) -> y").sample("f32[5]").op(32, &rule, 1, &[0, 0]);
    let mut all = [vec![scale, gradient], vec![like], vec![cut], vec![leaky], vec![hinted], vec![ruled], vec![joint]]
        .map(|ops| described(&ops))
        .to_vec();
    // y = relu(x), which is given back: the number of a tensor that `relu` has returned is the second that the body knows.
    let steps = [4, 4, 0, b'r', b'e', b'l', b'u', 0, 0, 0, 0, 1, 1, 0, 2, 1];
    let mut with_function = described(&[]);
    with_function.truncate(with_function.len() - 2);
    with_function.extend([0, 1, 0, 0]);
    ["again(Tensor x, *, Int n=2) -> Tensor", "One sentence."].iter().for_each(|t| put_text(&mut with_function, t));
    with_function.extend([0, 0]);
    put_run(&mut with_function, &steps);
    all.push(with_function);
    all
}

/// A library of those ops, as [`Memory::library`] reads it.
fn described(ops: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![0, 0];
    ["fuzzed", "1.0", ""].iter().for_each(|t| put_text(&mut out, t));
    out.extend([0, ops.len() as u8]);
    out.extend(ops.concat());
    // No functions.
    out.extend([0, 0]);
    out
}

fn put_run(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u16).to_le_bytes());
    out.extend(bytes);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(0);
    put_run(out, text.as_bytes());
}

fn put_texts(out: &mut Vec<u8>, text: &str) {
    out.extend([0, u8::from(!text.is_empty())]);
    if !text.is_empty() {
        put_text(out, text);
    }
}

/// The texts of an op.
struct Described<'a> {
    declaration: &'a str,
    /// Domain, doc, subject, traits, expression, shape, dtype, factors.
    texts: [&'a str; 8],
    /// Functions, derivatives, linear inputs, signatures.
    lists: [&'a str; 4],
    gradient: &'a str,
    sample: &'a str,
    /// `nd_infer`, `nd_extra`, `nd_valid`.
    nd: [&'a str; 3],
    condition: &'a str,
}

impl<'a> Described<'a> {
    fn new(declaration: &'a str) -> Described<'a> {
        Described { declaration, texts: [""; 8], lists: [""; 4], gradient: "", sample: "", nd: [""; 3], condition: "" }
    }
    fn texts(self, texts: [&'a str; 8]) -> Described<'a> {
        Described { texts, ..self }
    }
    fn lists(self, lists: [&'a str; 4]) -> Described<'a> {
        Described { lists, ..self }
    }
    fn gradient(self, gradient: &'a str) -> Described<'a> {
        Described { gradient, ..self }
    }
    fn nd(self, nd: [&'a str; 3]) -> Described<'a> {
        Described { nd, ..self }
    }
    fn condition(self, condition: &'a str) -> Described<'a> {
        Described { condition, ..self }
    }
    fn sample(self, sample: &'a str) -> Described<'a> {
        Described { sample, ..self }
    }

    /// The op as [`Memory::op`] reads it; `functions`: those of its kernel, none for an op without one.
    fn op(&self, rules: u8, steps: &[u8], functions: u8, kernel_steps: &[u8]) -> Vec<u8> {
        let mut out = vec![0, 0, rules];
        let [domain, doc, subject, traits, expression, shape, dtype, factors] = self.texts;
        let [names, derivatives, linear, signatures] = self.lists;
        put_text(&mut out, self.declaration);
        put_text(&mut out, domain);
        out.push(1);
        [doc, subject, traits].iter().for_each(|t| put_text(&mut out, t));
        put_texts(&mut out, names);
        put_text(&mut out, expression);
        put_texts(&mut out, derivatives);
        [shape, dtype, factors].iter().for_each(|t| put_text(&mut out, t));
        put_texts(&mut out, linear);
        put_texts(&mut out, signatures);
        put_text(&mut out, self.gradient);
        put_texts(&mut out, self.sample);
        put_run(&mut out, steps);
        out.extend([0, u8::from(functions != 0)]);
        if functions != 0 {
            out.extend([0, 0, functions]);
            ["", "cpu", "", "", "", "", ""].iter().for_each(|t| put_text(&mut out, t));
            put_run(&mut out, kernel_steps);
            put_text(&mut out, self.condition);
        }
        // The list of what a gradient rule reads is not given.
        out.push(0);
        put_texts(&mut out, "");
        [self.nd[0], self.nd[1], self.nd[2]].iter().for_each(|t| put_texts(&mut out, t));
        out
    }
}
