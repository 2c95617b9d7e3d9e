//! Shape rules as text: `[m, k], [k, n] -> [m, n]`.
//!
//! Left of the arrow stands the pattern of each input, right of it the shape of each output:
//!
//! ```text
//! [m, k], [k, n] -> [m, n]                          names are sizes; where one stands twice, the sizes must be equal
//! [..., m, k], [..., k, n] -> [..., m, n]           leading dims, which broadcast
//! [n, _, 3] -> [n]                                  any size; a size that must be 3
//! [n, c, w] -> [n, c, (w + 2 * pad - k) // step + 1]    arithmetic over sizes and integer attributes
//! ```

use super::arith::Arith;
use super::attr::AttrKind;
use super::infer::{InferCtx, broadcast_shapes};
use super::signature::{OpSignature, split_outside};
use crate::error::{Error, Result};
use oflow_kernels::{Dims, Scalar};
use smallvec::SmallVec;
use std::fmt;

/// A shape rule as text.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeText {
    text: String,
    inputs: Vec<Pattern>,
    outputs: Vec<Made>,
}

/// What an input must look like.
#[derive(Clone, Debug, PartialEq)]
struct Pattern {
    leading: bool,
    dims: Vec<Dim>,
}

#[derive(Clone, Debug, PartialEq)]
enum Dim {
    Any,
    Size(usize),
    /// The size that it has where it stands first, or an attribute.
    Name(String),
}

/// The shape of an output.
#[derive(Clone, Debug, PartialEq)]
struct Made {
    leading: bool,
    dims: Vec<Arith>,
}

/// What stands in the brackets of one tensor.
fn bracketed(text: &str) -> Result<(bool, Vec<&str>)> {
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let inner = inner.ok_or_else(|| Error::parse(format!("'{text}' is no shape")).help("write it as in [m, n]"))?;
    let mut dims: Vec<&str> = split_outside(inner, ',').collect();
    let leading = dims.first() == Some(&"...");
    if leading {
        dims.remove(0);
    }
    match dims.iter().any(|d| d.contains("...")) {
        true => Err(Error::parse(format!("in '{text}' the dots do not stand first"))),
        false => Ok((leading, dims)),
    }
}

impl ShapeText {
    /// Reads the rule of an op with that signature.
    ///
    /// # Errors
    /// The text is none; it is of another number of inputs or outputs than the op has; it names something that is neither a
    /// size of an input nor an integer attribute.
    pub fn parse(text: &str, sig: &OpSignature) -> Result<ShapeText> {
        let about = |e: Error| {
            Error::parse(format!("shape rule '{text}' of op {}: {}", sig.name, e.message()))
                .help("write it as in `[m, k], [k, n] -> [m, n]`: a pattern for each input, a shape for each output")
        };
        Self::read(text, sig).map_err(about)
    }

    fn read(text: &str, sig: &OpSignature) -> Result<ShapeText> {
        let (left, right) = text.split_once("->").ok_or_else(|| Error::parse("'->' is missing"))?;
        if sig.repeating() > 0 || sig.outputs_vary() {
            return Err(Error::parse("the number of inputs and outputs must be the same in all calls"));
        }
        let attr = |name: &str| sig.attr(name).filter(|a| sig.attrs[*a].kind == AttrKind::Int);
        let mut sizes: Vec<&str> = vec![];
        let mut inputs = vec![];
        for part in split_outside(left, ',') {
            let (leading, words) = bracketed(part)?;
            let mut dims = vec![];
            for word in words {
                let name = |c: char| c.is_alphanumeric() || c == '_';
                dims.push(match word {
                    "_" => Dim::Any,
                    w if w.parse::<usize>().is_ok() => Dim::Size(w.parse().unwrap_or_default()),
                    w if w.starts_with(|c: char| c.is_ascii_digit()) || !w.chars().all(name) => {
                        return Err(Error::parse(format!("'{w}' is no name and no size")));
                    }
                    w => {
                        sizes.push(w);
                        Dim::Name(w.to_string())
                    }
                });
            }
            inputs.push(Pattern { leading, dims });
        }
        let mut outputs = vec![];
        for part in split_outside(right, ',') {
            let (leading, words) = bracketed(part)?;
            if leading && !inputs.iter().any(|i| i.leading) {
                return Err(Error::parse("an output has dots, but no input has"));
            }
            let dims: Vec<Arith> = words.into_iter().map(Arith::parse).collect::<Result<_>>()?;
            let mut unknown = None;
            dims.iter().for_each(|d| {
                d.names(&mut |n| {
                    if !sizes.contains(&n) && attr(n).is_none() {
                        unknown.get_or_insert(n.to_string());
                    }
                })
            });
            if let Some(n) = unknown {
                return Err(Error::parse(format!("'{n}' is neither a size of an input nor an integer attribute")));
            }
            outputs.push(Made { leading, dims });
        }
        let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        if (inputs.len(), outputs.len()) != (sig.inputs.len(), sig.outputs.len()) {
            let says = format!("{} and {}", count(inputs.len(), "input"), count(outputs.len(), "output"));
            let has = format!("{} and {}", count(sig.inputs.len(), "input"), count(sig.outputs.len(), "output"));
            return Err(Error::parse(format!("it is of {says}, the op has {has}")));
        }
        Ok(ShapeText { text: text.trim().to_string(), inputs, outputs })
    }

    /// The shapes of the outputs of a call.
    pub(super) fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[Dims; 2]>> {
        let mut sizes: SmallVec<[(&str, usize); 8]> = SmallVec::new();
        let mut leading: SmallVec<[&[usize]; 4]> = SmallVec::new();
        for (i, (pattern, given)) in self.inputs.iter().zip(ctx.inputs).enumerate() {
            let Some(given) = given else { continue };
            let differs = |why: String| {
                let name = &ctx.op.sig.inputs[i].name;
                Error::shape(format!("input '{name}' is {given}: {why}")).help(format!("the shapes are {}", self.text))
            };
            let rank = pattern.dims.len();
            let Some(more) = given.shape.len().checked_sub(rank).filter(|more| pattern.leading || *more == 0) else {
                let least = if pattern.leading { "at least " } else { "" };
                return Err(differs(format!("it must have {least}{rank} dims")));
            };
            if pattern.leading {
                leading.push(&given.shape[..more]);
            }
            for (dim, size) in pattern.dims.iter().zip(&given.shape[more..]) {
                match dim {
                    Dim::Any => {}
                    Dim::Size(n) if n == size => {}
                    Dim::Size(n) => return Err(differs(format!("a size is {size}, not {n}"))),
                    Dim::Name(name) => {
                        let known = sizes.iter().find(|(n, _)| n == name).map(|(_, s)| *s as i64);
                        match known.or_else(|| ctx.int(name).ok()) {
                            Some(k) if k == *size as i64 => {}
                            Some(k) => return Err(differs(format!("{name} is {size} here and {k} elsewhere"))),
                            None => {}
                        }
                        sizes.push((name, *size));
                    }
                }
            }
        }
        let broadcast = broadcast_shapes(leading)?;
        let number = |name: &str| match sizes.iter().find(|(n, _)| *n == name) {
            Some((_, s)) => Ok(Scalar::Int(*s as i64)),
            None => ctx.int(name).map(Scalar::Int).map_err(|_| {
                Error::shape(format!("'{name}' is a size of an input that this call does not have"))
            }),
        };
        let shape = |made: &Made| -> Result<Dims> {
            let mut dims: Dims = if made.leading { broadcast.clone() } else { Dims::new() };
            for dim in &made.dims {
                match dim.value(&number)? {
                    Scalar::Int(n) if n >= 0 => dims.push(n as usize),
                    other => {
                        return Err(Error::shape(format!("an output would have the size {}", other.to_f64()))
                            .help(format!("the shapes are {}", self.text)));
                    }
                }
            }
            Ok(dims)
        };
        self.outputs.iter().map(shape).collect()
    }
}

impl fmt::Display for ShapeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
