//! CUDA kernels as text, compiled by NVRTC at their first use. An entry is given the inputs, the outputs and the attributes in declared
//! order: a tensor as `oflow::Tensor<T>` (`oflow_tensor.h`), where `T_x` is the element type of the tensor x; an integer as `long
//! long`, a float or number as `double`, a bool as `int`.

use crate::backend::cuda::queue;
use crate::error::{Error, Result};
use crate::ops::{AttrDef, AttrKind, AttrValue, KernelCx, KernelDef, OpDef, OpSignature, SizeRule};
use crate::placement::Device;
use oflow_kernels::cuda::{Args, Define, Launch, Source};
use oflow_kernels::{DType, Scalar, View};
use std::collections::BTreeSet;
use std::path::Path;

/// Dims that an argument of a kernel has at most: `most_dims` of `oflow_tensor.h`.
const MOST_DIMS: usize = 8;
/// Threads of a block.
const BLOCK: u32 = 256;

/// `oflow::Tensor<T>`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Tensor {
    data: u64,
    rank: i64,
    dims: [i64; MOST_DIMS],
    strides: [i64; MOST_DIMS],
}

impl Tensor {
    /// An optional input that was left out.
    const NONE: Tensor = Tensor { data: 0, rank: -1, dims: [0; MOST_DIMS], strides: [0; MOST_DIMS] };

    fn of(v: &View) -> Result<Tensor> {
        if v.rank() > MOST_DIMS {
            return Err(Error::unsupported(format!("a tensor of {} dims as an argument of a CUDA text", v.rank()))
                .help(format!("flatten it to {MOST_DIMS} dims at most")));
        }
        let mut t = Tensor { data: v.ptr() as u64, rank: v.rank() as i64, ..Tensor::NONE };
        for (d, (n, s)) in v.dims().iter().zip(v.strides()).enumerate() {
            (t.dims[d], t.strides[d]) = (*n as i64, *s as i64);
        }
        Ok(t)
    }
}

/// A text with its entry.
struct CudaText {
    source: Source,
    entry: String,
    threads: Option<SizeRule>,
    /// `T_x` for the inputs, then the outputs.
    types: Vec<&'static str>,
    /// Kernels of other ops that stand in the same text and are compiled with it.
    others: Vec<&'static str>,
    inputs: usize,
}

/// The kernel of an entry of a text. `file` is where the text comes from: its lines are named in the compiler's messages.
///
/// # Errors
/// The op has attributes or inputs that a CUDA text cannot take.
pub(super) fn kernel(op: &OpDef, file: &Path, text: &str, entry: &str, threads: &str) -> Result<KernelDef> {
    let sig = &op.sig;
    check(sig)?;
    if op.length.is_some() {
        return Err(Error::unsupported("a CUDA text cannot decide the length of outputs"));
    }
    if entry.is_empty() || !entry.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(Error::registry(format!("'{entry}' cannot be the name of a CUDA kernel")));
    }
    let names = sig.inputs.iter().map(|i| &i.name).chain(&sig.outputs);
    // The names of macros live as long as the kernel, and libraries as long as the process.
    let types: Vec<&'static str> = names.map(|n| &*format!("T_{n}").leak()).collect();
    let others = type_names(text).into_iter().filter(|n| !types.contains(n)).map(|n| &*n.to_string().leak()).collect();
    let shown = file.file_name().map_or("text.cu".into(), |n| n.to_string_lossy());
    let shown = shown.replace(['"', '\\'], "_");
    let whole = format!("#include \"prelude.cuh\"\n#include \"oflow_tensor.h\"\n#line 1 \"{shown}\"\n{text}\n");
    let name: String = format!("{}_{}", op.domain, sig.name).replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let threads = match threads.trim() {
        "" => None,
        rule => Some(SizeRule::parse(rule, op)?),
    };
    let inputs = sig.inputs.len();
    let source = Source::generated(&name, whole);
    let text = CudaText { source, entry: entry.to_string(), threads, types, others, inputs };
    Ok(KernelDef::on(Device::Cuda, &format!("{}_cuda_text", sig.name), move |cx| text.run(cx)))
}

/// The words `T_…` of a text, each once.
fn type_names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|w| w.strip_prefix("T_").is_some_and(|rest| !rest.is_empty())).collect()
}

fn check(sig: &OpSignature) -> Result<()> {
    if sig.repeating() > 0 || sig.outputs_vary() {
        return Err(Error::unsupported("a CUDA text takes the same number of tensors in all calls")
            .help("write a function that launches the kernel (`cuda` in C++ or Rust)"));
    }
    let takes = |a: &&AttrDef| {
        matches!(a.kind, AttrKind::Int | AttrKind::Float | AttrKind::Bool | AttrKind::Scalar | AttrKind::DType)
            && a.default != Some(AttrValue::Absent)
    };
    match sig.attrs.iter().chain(&sig.runtime).find(|a| !takes(a)) {
        None => Ok(()),
        Some(a) => {
            Err(Error::unsupported(format!("a CUDA text cannot take the attribute '{}' ({})", a.name, a.kind.name()))
                .help("it takes integers, floats and bools; write a function that launches the kernel for others"))
        }
    }
}

impl CudaText {
    fn run(&self, cx: &KernelCx<'_>) -> Result<()> {
        let q = queue(cx)?;
        let given = (0..self.inputs).map(|i| cx.inputs.get(i).and_then(|v| v.as_ref()));
        let tensors: Vec<Option<&View>> = given.chain(cx.outputs.iter().map(Some)).collect();
        let dtype = |v: &Option<&View>| v.map_or(DType::F32, |v| v.dtype());
        let own = self.types.iter().zip(&tensors).map(|(name, v)| Define::dtype(name, dtype(v)));
        let defines: Vec<Define> = own.chain(self.others.iter().map(|name| Define::dtype(name, DType::F32))).collect();
        let function = q.function(&self.source, &self.entry, &defines)?;
        let mut args = Args::new();
        for v in &tensors {
            args = args.value(v.map_or(Ok(Tensor::NONE), Tensor::of)?);
        }
        for (def, value) in cx.op.sig.attrs.iter().zip(cx.attrs) {
            args = argument(args, def.kind, value)?;
        }
        for (def, value) in cx.op.sig.runtime.iter().zip(cx.runtime) {
            args = number(args, def.kind, *value);
        }
        let first = cx.outputs.first().map_or(0, |v| v.len());
        let threads = match &self.threads {
            None => first,
            Some(rule) => {
                let dims: Vec<Option<&[usize]>> = cx.inputs.iter().map(|v| v.as_ref().map(View::dims)).collect();
                rule.size(&dims, &|name| cx.int(name))?
            }
        };
        if threads == 0 {
            return Ok(());
        }
        Ok(q.launch(function, Launch::new(q.blocks(threads, BLOCK, 4), BLOCK), args)?)
    }
}

fn argument(args: Args, kind: AttrKind, value: &AttrValue) -> Result<Args> {
    Ok(match value {
        AttrValue::Int(i) => args.value(*i),
        AttrValue::Float(x) => args.value(*x),
        AttrValue::Bool(b) => args.value(i32::from(*b)),
        AttrValue::DType(d) => args.value(super::given::code(*d) as i32),
        AttrValue::Scalar(s) => number(args, kind, *s),
        other => return Err(Error::unsupported(format!("{other} as an argument of a CUDA text"))),
    })
}

/// The declaration says which type the entry takes: a number of any kind is a `double`.
fn number(args: Args, kind: AttrKind, value: Scalar) -> Args {
    match value {
        s if matches!(kind, AttrKind::Float | AttrKind::Scalar) => args.value(s.to_f64()),
        Scalar::Int(i) => args.value(i),
        // A complex number has no place in the interface: `infer` refuses it.
        Scalar::Float(x) | Scalar::Complex(x, _) => args.value(x),
        Scalar::Bool(b) => args.value(i32::from(b)),
    }
}
