//! The subcommands of `oflow` that describe the library without running a job: ops, the sharding of a call, boxing plans.
//!
//! They are computed from declarations, so meshes of thousands of ranks need no hardware. This file parses tensors, layouts and
//! meshes; each subcommand has its own file.

pub mod boxing;
pub mod ops;
pub mod report;
pub mod sbp;
pub mod show;

pub use report::REPORT_FILE;

use std::io::Write;

use oflow::kernels::{DType, DTypeKind, Dims};
use oflow::ops::resolve_attrs;
use oflow::ops::{AttrKind, AttrValue, Attrs, InferCtx, Op, RuntimeAttrs, TensorType};
use oflow::placement::{Device, Placement};
use oflow::sbp::NdSbp;

use crate::Failed;

/// Most ranks of a mesh that may be asked about.
const MOST_RANKS: usize = 1 << 16;

/// Prints an answer. A closed output is no error; of most subcommands SIGPIPE ends the process before.
pub(crate) fn show(text: &str) -> Result<u8, Failed> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Failed::new(format!("cannot print: {e}"))),
        _ => Ok(0),
    }
}

/// A failed question, with the error of the library.
fn refused(error: oflow::Error) -> Failed {
    Failed::new(error.to_string())
}

/// Reads a mesh: `dp=2,tp=4`, or sizes alone: `2,4`. `@FIRST` at the end numbers its ranks from FIRST.
pub fn mesh(text: &str) -> Result<Placement, String> {
    let wanted = || format!("'{text}' is not a mesh; write e.g. dp=2,tp=4 or 2,4 (and @8 for ranks from 8)");
    let (axes, first) = match text.split_once('@') {
        Some((axes, first)) => (axes, first.trim().parse::<usize>().map_err(|_| wanted())?),
        None => (text, 0),
    };
    let (mut names, mut sizes) = (Vec::new(), Vec::new());
    for axis in axes.split(',') {
        let (name, size) = axis.split_once('=').map_or((None, axis), |(name, size)| (Some(name.trim()), size));
        if name.is_some_and(str::is_empty) {
            return Err(wanted());
        }
        names.push(name);
        sizes.push(size.trim().parse::<usize>().map_err(|_| wanted())?);
    }
    let total = sizes.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
    let ranks = match total {
        Some(n @ 1..=MOST_RANKS) if first <= MOST_RANKS => (first..first + n).collect::<Vec<_>>(),
        _ => return Err(format!("'{text}' does not have 1 to {MOST_RANKS} ranks")),
    };
    let flat = Placement::new(Device::Cpu, &ranks, &sizes).map_err(|e| e.to_string())?;
    match names.iter().copied().collect::<Option<Vec<_>>>() {
        Some(names) => {
            let axes: Vec<(&str, usize)> = names.into_iter().zip(sizes).collect();
            flat.mesh(&axes).map_err(|e| e.to_string())
        }
        None if names.iter().all(Option::is_none) => Ok(flat),
        None => Err(format!("'{text}' names some axes and not others")),
    }
}

/// The argument that names a mesh.
fn mesh_argument(help: &'static str) -> clap::Arg {
    clap::Arg::new("mesh").long("mesh").required(true).value_parser(mesh).value_name("MESH").help(help)
}

/// The arguments that name the shape and the element type of a tensor.
fn tensor_arguments() -> [clap::Arg; 2] {
    let shape = clap::Arg::new("shape").long("shape").required(true).value_parser(shape).value_name("SHAPE");
    let dtype = clap::Arg::new("dtype").long("dtype").default_value("f32").value_parser(dtype).value_name("DTYPE");
    [shape.help("Logical shape, e.g. 1024x4096"), dtype.help("Element type")]
}

/// Reads a layout: `[S(0), B]`.
pub fn layout(text: &str) -> Result<NdSbp, String> {
    text.parse().map_err(|e: oflow::Error| e.to_string())
}

/// Reads sizes: `1024x4096`, `[1024, 4096]` or `1024,4096`; `[]` has no dims.
pub fn shape(text: &str) -> Result<Dims, String> {
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']').trim();
    if inner.is_empty() {
        return Ok(Dims::new());
    }
    inner
        .split([',', 'x'])
        .map(|size| size.trim().parse().map_err(|_| format!("'{text}' is not a shape; write e.g. 1024x4096")))
        .collect()
}

/// Reads a dtype.
pub fn dtype(text: &str) -> Result<DType, String> {
    text.parse().map_err(|_| {
        let known: Vec<_> = DType::BUILTIN.iter().map(|d| d.name()).collect();
        format!("'{text}' is not an element type; there are {}", known.join(", "))
    })
}

/// Reads a tensor: `f32[1024, 512]`. What stands after the brackets is returned too.
fn tensor(text: &str) -> Result<(TensorType, &str), String> {
    let wanted = || format!("'{text}' is not a tensor; write e.g. f32[1024, 512]");
    let (open, close) = text.find('[').zip(text.find(']')).filter(|(o, c)| o < c).ok_or_else(wanted)?;
    let dtype = dtype(text[..open].trim())?;
    Ok((TensorType::new(&shape(&text[open..=close])?, dtype), text[close + 1..].trim()))
}

/// An input of a call: a tensor with its layout, or `None` for an absent optional input.
#[derive(Clone, Debug)]
pub struct Input(pub Option<(TensorType, NdSbp)>);

/// Reads an input: `f32[1024, 512] [S(0), B]`, or `-` for an absent optional input.
pub fn input(text: &str) -> Result<Input, String> {
    if text.trim() == "-" {
        return Ok(Input(None));
    }
    let (ty, rest) = tensor(text)?;
    if rest.is_empty() {
        return Err(format!("'{text}' has no layout; write e.g. f32[1024, 512] [S(0), B]"));
    }
    Ok(Input(Some((ty, layout(rest)?))))
}

/// Reads an attribute: `dim=1`.
pub fn attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().into(), value.trim().into())),
        _ => Err(format!("'{text}' is not NAME=VALUE")),
    }
}

/// Attribute values of a call from text, in declared order.
fn attributes(op: &Op, given: &[(String, String)]) -> oflow::Result<(Attrs, RuntimeAttrs)> {
    let mut values: Vec<(&str, AttrValue)> = Vec::new();
    for (name, text) in given {
        // A name that the op does not have is complained about below, where the message can list those it has.
        let kind =
            op.sig.attrs.iter().chain(&op.sig.runtime).find(|a| a.name == *name).map_or(AttrKind::Str, |a| a.kind);
        values.push((name, kind.parse_value(text)?));
    }
    resolve_attrs(op, &values)
}

/// A call without tensors' data: what the rules of an op are asked with.
struct Question {
    op: &'static Op,
    inputs: Vec<Option<TensorType>>,
    attrs: Attrs,
    kinds: Vec<DTypeKind>,
}

impl Question {
    fn new(op: &'static Op, inputs: Vec<Option<TensorType>>, given: &[(String, String)]) -> oflow::Result<Question> {
        let (attrs, runtime) = attributes(op, given)?;
        let kinds = runtime.iter().map(|s| s.kind()).collect();
        Ok(Question { op, inputs, attrs, kinds })
    }

    fn infer(&self) -> InferCtx<'_> {
        InferCtx { op: self.op, inputs: &self.inputs, attrs: &self.attrs, runtime_kinds: &self.kinds }
    }
}

/// Picoseconds as microseconds.
fn microseconds(ps: u64) -> String {
    format!("{:.1}", ps as f64 / 1e6)
}

/// A number of bytes for people: exact up to 9,999, then with a unit.
pub(crate) fn bytes(n: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = "B";
    for next in units {
        if value < 9999.5 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" { format!("{n} B") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meshes_read() {
        for (text, shown) in [
            ("dp=2,tp=4", "cpu[dp=2, tp=4]"),
            ("2, 4", "cpu[2, 4]"),
            ("tp=2@6", "cpu[tp=2] of ranks [6, 7]"),
            ("1", "cpu[1]"),
        ] {
            assert_eq!(mesh(text).unwrap().to_string(), shown);
        }
        for bad in ["", "dp", "dp=", "=2", "dp=0", "dp=2,4", "dp=2,dp=2", "99999999,99999999", "2@x", "dp=-1"] {
            assert!(mesh(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tensors_read() {
        for text in ["1024x4096", "[1024, 4096]", "1024,4096", " 1024 x 4096 "] {
            assert_eq!(shape(text).unwrap().as_slice(), [1024, 4096]);
        }
        assert!(shape("[]").unwrap().is_empty());
        assert!(shape("2xx3").is_err());
        let Input(Some((ty, sbp))) = input("bf16[3,5] [S(0), P(max)]").unwrap() else { panic!("an input") };
        assert_eq!(format!("{ty} {sbp}"), "bf16[3, 5] [S(0), P(max)]");
        assert!(input("-").unwrap().0.is_none());
        for bad in ["f32", "f32[2]", "f31[2] B", "f32[2] Q", "]f32[", ""] {
            assert!(input(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_of_bytes() {
        for (n, text) in [(0, "0 B"), (9999, "9999 B"), (10_240, "10.0 KiB"), (30 << 20, "30.0 MiB")] {
            assert_eq!(bytes(n), text);
        }
    }
}
