//! Shape rules as text: `[m, k], [k, n] -> [m, n]`.
//!
//! Left of the arrow stands the pattern of each input, right of it the shape of each output:
//!
//! ```text
//! [m, k], [k, n] -> [m, n]                          names are sizes; where one stands twice, the sizes must be equal
//! [..., m, k], [..., k, n] -> [..., m, n]           leading dims, which broadcast
//! [..], [..] -> [..]                                leading dims, as many as there are, which are the same in all of these
//! [n, _, 3] -> [n]                                  any size; a size that must be 3
//! [n, c, w] -> [n, c, (w + 2 * pad - k) // step + 1]    arithmetic over sizes and integer attributes
//! ```

use super::arith::Arith;
use super::attr::AttrKind;
use super::def::{OpDef, ShapeRule};
use super::infer::{InferCtx, broadcast_shapes};
use super::signature::{OpSignature, split_outside};
use crate::error::{Error, Result};
use oflow_kernels::{Dims, Scalar};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// A shape rule as text.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeText {
    text: String,
    inputs: Vec<Pattern>,
    outputs: Vec<Made>,
}

/// The dims before those that have names.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leading {
    None,
    /// `...`: they broadcast.
    Broadcast,
    /// `..`: they are the same.
    Equal,
}

/// Pattern of an input's shape.
#[derive(Clone, Debug, PartialEq)]
struct Pattern {
    leading: Leading,
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
    leading: Leading,
    dims: Vec<Arith>,
}

/// Reads the text in the brackets of one tensor.
fn bracketed(text: &str) -> Result<(Leading, Vec<&str>)> {
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let inner = inner.ok_or_else(|| Error::parse(format!("'{text}' is not a shape")).help("write it as in [m, n]"))?;
    let mut dims: Vec<&str> = split_outside(inner, ',').collect();
    let leading = match dims.first() {
        Some(&"...") => Leading::Broadcast,
        Some(&"..") => Leading::Equal,
        _ => Leading::None,
    };
    if leading != Leading::None {
        dims.remove(0);
    }
    match dims.iter().any(|d| d.contains("..")) {
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
                        return Err(Error::parse(format!("'{w}' is neither a name nor a size")));
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
            if leading != Leading::None && !inputs.iter().any(|i| i.leading == leading) {
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
        let dims: SmallVec<[Option<&[usize]>; 4]> =
            ctx.inputs.iter().map(|t| t.as_ref().map(|t| t.shape.as_slice())).collect();
        let attr = |name: &str| ctx.int(name);
        let found = self.bind(&dims, &attr).map_err(|(i, why)| {
            let shown = ctx.inputs[i].as_ref().map_or(String::new(), |t| t.to_string());
            Error::shape(format!("input '{}' is {shown}: {why}", ctx.op.sig.inputs[i].name))
                .help(format!("the shapes are {}", self.text))
        })?;
        let broadcast = broadcast_shapes(found.leading.iter().copied())?;
        let number = |name: &str| found.number(name, &attr);
        let shape = |made: &Made| -> Result<Dims> {
            let mut dims: Dims = match made.leading {
                Leading::None => Dims::new(),
                Leading::Broadcast => broadcast.clone(),
                Leading::Equal => found.equal.unwrap_or_default().into(),
            };
            for dim in &made.dims {
                let size = size_of(dim, &number);
                dims.push(size.map_err(|e| e.help(format!("the shapes are {}", self.text)))?);
            }
            Ok(dims)
        };
        self.outputs.iter().map(shape).collect()
    }

    /// Gives the names the sizes that they have in these inputs. The error is the input that does not fit, and why.
    fn bind<'a>(
        &'a self,
        inputs: &[Option<&'a [usize]>],
        attr: &impl Fn(&str) -> Result<i64>,
    ) -> Result<Bound<'a>, (usize, String)> {
        let mut bound = Bound { sizes: SmallVec::new(), leading: SmallVec::new(), equal: None };
        for (i, (pattern, given)) in self.inputs.iter().zip(inputs).enumerate() {
            let Some(given) = *given else { continue };
            let rank = pattern.dims.len();
            let Some(more) =
                given.len().checked_sub(rank).filter(|more| pattern.leading != Leading::None || *more == 0)
            else {
                let least = if pattern.leading == Leading::None { "" } else { "at least " };
                return Err((i, format!("it must have {least}{rank} dims")));
            };
            match (pattern.leading, bound.equal) {
                (Leading::None, _) => {}
                (Leading::Broadcast, _) => bound.leading.push(&given[..more]),
                (Leading::Equal, None) => bound.equal = Some(&given[..more]),
                (Leading::Equal, Some(same)) if same == &given[..more] => {}
                (Leading::Equal, Some(other)) => {
                    return Err((i, format!("its leading dims are {:?} here and {other:?} elsewhere", &given[..more])));
                }
            }
            for (dim, size) in pattern.dims.iter().zip(&given[more..]) {
                match dim {
                    Dim::Any => {}
                    Dim::Size(n) if n == size => {}
                    Dim::Size(n) => return Err((i, format!("a size is {size}, not {n}"))),
                    Dim::Name(name) => {
                        let known = bound.sizes.iter().find(|(n, _)| n == name).map(|(_, s)| *s as i64);
                        match known.or_else(|| attr(name).ok()) {
                            Some(k) if k == *size as i64 => {}
                            Some(k) => return Err((i, format!("{name} is {size} here and {k} elsewhere"))),
                            None => {}
                        }
                        bound.sizes.push((name, *size));
                    }
                }
            }
        }
        Ok(bound)
    }
}

/// Sizes that the names stand for in a call.
struct Bound<'a> {
    sizes: SmallVec<[(&'a str, usize); 8]>,
    /// Leading dims of each input that broadcast.
    leading: SmallVec<[&'a [usize]; 4]>,
    /// Leading dims that all inputs share.
    equal: Option<&'a [usize]>,
}

impl Bound<'_> {
    fn number(&self, name: &str, attr: &impl Fn(&str) -> Result<i64>) -> Result<Scalar> {
        match self.sizes.iter().find(|(n, _)| *n == name) {
            Some((_, s)) => Ok(Scalar::Int(*s as i64)),
            None => attr(name)
                .map(Scalar::Int)
                .map_err(|_| Error::shape(format!("'{name}' is a size of an input that this call does not have"))),
        }
    }
}

fn size_of(dim: &Arith, number: &impl Fn(&str) -> Result<Scalar>) -> Result<usize> {
    match dim.value(number)? {
        Scalar::Int(n) if n >= 0 => Ok(n as usize),
        other => Err(Error::shape(format!("a size would be {}", other.to_f64()))),
    }
}

/// A number as arithmetic over the sizes of an op's inputs, as its shape rule names them, and its integer attributes.
#[derive(Clone, Debug)]
pub struct SizeRule {
    rule: Arith,
    shapes: Option<Arc<ShapeText>>,
}

impl SizeRule {
    /// Reads the rule.
    ///
    /// # Errors
    /// It is no arithmetic, or has a name that is neither a size of the op's shape rule nor an integer attribute.
    pub fn parse(text: &str, op: &OpDef) -> Result<SizeRule> {
        let rule = Arith::parse(text)?;
        let shapes = match &op.shape {
            ShapeRule::Text(shapes) => Some(shapes.clone()),
            _ => None,
        };
        let size = |n: &str| {
            let has = |d: &Dim| matches!(d, Dim::Name(name) if name == n);
            shapes.as_ref().is_some_and(|s| s.inputs.iter().any(|p| p.dims.iter().any(has)))
        };
        let attr = |n: &str| op.sig.attr(n).is_some_and(|a| op.sig.attrs[a].kind == AttrKind::Int);
        let mut unknown = None;
        rule.names(&mut |n| {
            if !size(n) && !attr(n) {
                unknown.get_or_insert(n.to_string());
            }
        });
        match unknown {
            None => Ok(SizeRule { rule, shapes }),
            Some(n) => Err(Error::parse(format!("in '{text}' of op {}, '{n}' has no value", op.sig.name))
                .help("use names of the shape rule (`[m, k], [k, n] -> [m, n]`) and integer attributes")),
        }
    }

    /// The number for a call whose inputs have these dims.
    ///
    /// # Errors
    /// The inputs do not fit the shape rule, or the number is negative or no integer.
    pub fn size(&self, inputs: &[Option<&[usize]>], attr: &impl Fn(&str) -> Result<i64>) -> Result<usize> {
        let bound = match &self.shapes {
            Some(shapes) => shapes.bind(inputs, attr).map_err(|(i, why)| Error::shape(format!("input {i}: {why}")))?,
            None => Bound { sizes: SmallVec::new(), leading: SmallVec::new(), equal: None },
        };
        size_of(&self.rule, &|name| bound.number(name, attr))
    }
}

impl fmt::Display for ShapeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
