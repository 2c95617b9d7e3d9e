//! Samples: calls as text, their values, and the same calls in other sizes.
//!
//! ```text
//! f32[4, 6] f32[6]+ - i64[3]<5; dim=1, keepdim=true
//! ```
//! An input is its dtype and shape; `-` stands for an optional input that is left out. After the shape, `+` asks for values
//! greater than zero, `<5` for integers from 0 to 4, `@-1..1` for numbers between two bounds, and `~` for symmetric positive definite
//! matrices in the last two dims, with distinct eigenvalues. After the semicolon stand plan and runtime attributes by name; those that
//! are left out have their defaults. A random op is given its `seed` and `ordinal`, so that every layout draws the same numbers.

use super::layout::{Value, parts_of};
use super::mix;
use crate::error::{Error, Result};
use crate::ops::{
    AttrDef, AttrValue, Attrs, Grad, InferCtx, Numbers, Op, RuntimeAttrs, TensorType, derived_args, derived_grad_op,
    resolve_attrs, split_outside,
};
use oflow_kernels::DType;

/// Values of an input of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// Numbers of both signs.
    Any,
    /// Numbers greater than zero; true.
    Positive,
    /// Integers from 0, below that number.
    Below(usize),
    /// Numbers between two bounds, which are none of them.
    Between(f64, f64),
    /// Symmetric positive definite matrices in the last two dims, with distinct eigenvalues. Derivatives are those along symmetric
    /// matrices.
    Definite,
}

/// One input of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Element type of the input.
    pub dtype: DType,
    /// Size of each dim.
    pub shape: Vec<usize>,
    /// Values of the elements.
    pub values: Values,
}

/// One call, without its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The inputs in order; an optional one that is left out is `None`.
    pub inputs: Vec<Option<Spec>>,
    /// The attributes that are given, by name.
    pub attrs: Vec<(String, AttrValue)>,
}

impl Spec {
    /// Reads `f32[4, 6]+`.
    fn parse(text: &str) -> Result<Spec> {
        let bad =
            |why: &str| Error::parse(format!("'{text}' {why}")).help("an input is written f32[4, 6], i64[3]<5 or -");
        let (dtype, rest) = text.split_once('[').ok_or_else(|| bad("has no shape"))?;
        let (dims, tail) = rest.split_once(']').ok_or_else(|| bad("has no ']'"))?;
        let values = match tail.trim() {
            "" => Values::Any,
            "+" => Values::Positive,
            "~" => Values::Definite,
            t if t.starts_with('<') => t[1..].parse().map(Values::Below).map_err(|_| bad("has no number after <"))?,
            t => {
                let bounds = t.strip_prefix('@').and_then(|t| t.split_once(".."));
                match bounds.map(|(low, high)| (low.trim().parse(), high.trim().parse())) {
                    Some((Ok(low), Ok(high))) if low < high => Values::Between(low, high),
                    _ => return Err(bad("ends with neither +, ~, <n nor @low..high")),
                }
            }
        };
        let size = |d: &str| d.parse().map_err(|_| bad(&format!("has the size '{d}'")));
        let shape: Vec<usize> = split_outside(dims, ',').map(size).collect::<Result<_>>()?;
        let dtype: DType = dtype.trim().parse().map_err(|_| bad("has no known dtype"))?;
        if values == Values::Definite && !(dtype.is_float() && matches!(shape[..], [.., r, c] if r == c)) {
            return Err(bad("has ~, but is not a batch of square matrices of floats"));
        }
        TensorType::checked(&shape, dtype)?;
        Ok(Spec { dtype, shape, values })
    }

    /// Row and column of element `i` in its matrix of the last two dims, and the number of the matrix.
    pub(super) fn place(&self, i: usize) -> (usize, usize, usize) {
        let size = |back: usize| self.shape.len().checked_sub(back).map_or(1, |d| self.shape[d].max(1));
        let (rows, columns) = (size(2), size(1));
        (i / columns % rows, i % columns, i / (rows * columns))
    }

    /// Element `i` of symmetric positive definite matrices: less than 1/2 beside the diagonal, in `parts` steps, and numbers on it that
    /// exceed the sum of their row and grow along it.
    fn definite(&self, i: usize, seed: u64, parts: u64) -> f64 {
        let (r, c, matrix) = self.place(i);
        let size = self.shape.last().copied().unwrap_or(1);
        let random = mix(&[seed, matrix as u64, r.min(c) as u64, r.max(c) as u64]) % (parts + 1);
        let part = random as f64 / parts as f64;
        if r == c { size.div_ceil(2) as f64 + 1.0 + 2.0 * r as f64 + part } else { part - 0.5 }
    }

    /// Values whose sums and products are exact: small multiples of 1/4 (of 1 in half precision), integers, bools.
    pub fn exact_values(&self, seed: u64) -> Value {
        let step = match self.dtype.part() {
            DType::F32 | DType::F64 => 4.0,
            _ => 1.0,
        };
        let n = self.shape.iter().product::<usize>() * parts_of(self.dtype);
        let data = (0..n as u64)
            .map(|i| {
                let r = mix(&[seed, i]);
                match (self.values, self.dtype) {
                    (Values::Definite, d) if d.is_float() => {
                        self.definite(i as usize, seed, if step > 1.0 { 4 } else { 2 })
                    }
                    (Values::Positive, DType::Bool) => 1.0,
                    (_, DType::Bool) => (r % 2) as f64,
                    (Values::Below(k), _) => (r % k.max(1) as u64) as f64,
                    // Exact where the bounds are multiples of a power of two.
                    (Values::Between(low, high), d) if d.is_float() => {
                        low + (high - low) * (2 * (r % 16) + 1) as f64 / 32.0
                    }
                    (Values::Between(low, high), d) => {
                        let low = if d.is_unsigned() { low.max(0.0) } else { low };
                        let (low, high) = (low.ceil() as i64, high.floor() as i64);
                        (low + (r % (high - low + 1).max(1) as u64) as i64) as f64
                    }
                    (Values::Positive, d) if d.has_gradients() => (1 + r % 12) as f64 / step,
                    (Values::Positive, _) => (1 + r % 5) as f64,
                    (_, d) if d.is_unsigned() => (1 + r % 5) as f64,
                    // No zero: a partial sum divided by zero is not finite.
                    (Values::Any, d) if d.has_gradients() => {
                        ((r % 12) as f64 + 1.0) * if r & 64 == 0 { 1.0 } else { -1.0 } / step
                    }
                    (Values::Any | Values::Definite, d) => {
                        ((r % 11) as f64 - 5.0) * d.quantization().map_or(1.0, |q| q.scale)
                    }
                }
            })
            .collect();
        Value { ty: TensorType::new(&self.shape, self.dtype), data }
    }

    /// Values to differentiate at: no two alike, none near a kink of the built-in functions (0, ±0.5, ±1, ±3, integers).
    pub fn generic_values(&self, seed: u64) -> Value {
        let mut exact = self.exact_values(seed);
        let n = exact.data.len();
        if self.dtype.has_gradients() {
            let order = mix(&[seed]);
            for (i, x) in exact.data.iter_mut().enumerate() {
                // A permutation of a grid in (0, 2): distinct, then moved off the round numbers.
                let k = (i * 7 + (order % 5) as usize) % n.max(1);
                let k = if n.is_multiple_of(7) { i } else { k };
                let u = (k as f64 + 0.37) / n as f64 * 1.9 + 0.013 * (1.0 + (order % 7) as f64);
                let near = (u * 2.0 - (u * 2.0).round()).abs() < 0.02;
                let u = if near { u + 0.033 } else { u };
                *x = match self.values {
                    Values::Positive => u + 0.2,
                    Values::Definite => self.definite(i, seed, 997),
                    Values::Between(low, high) => low + (high - low) * (0.05 + 0.42 * u),
                    _ if mix(&[seed, i as u64]).is_multiple_of(2) => u,
                    _ => -u * 0.77,
                };
            }
        }
        exact
    }
}

impl Sample {
    /// Reads a sample of that op.
    ///
    /// # Errors
    /// The text is not a sample, or names an attribute that the op does not have. The error quotes the text.
    pub fn parse(op: &Op, text: &str) -> Result<Sample> {
        let read = || -> Result<Sample> {
            let (ins, attrs) = text.split_once(';').unwrap_or((text, ""));
            let input = |t: &str| if t == "-" { Ok(None) } else { Spec::parse(t).map(Some) };
            let inputs = split_outside(ins, ' ').map(input).collect::<Result<_>>()?;
            let attr = |a: &str| {
                let (name, value) = a
                    .split_once('=')
                    .ok_or_else(|| Error::parse(format!("'{a}' is not an attribute with its value")))?;
                let name = name.trim();
                let mut known = op.sig.attrs.iter().chain(&op.sig.runtime);
                let def = known.find(|d| d.name == name);
                let def = def.ok_or_else(|| Error::parse(format!("unknown attribute '{name}'")))?;
                Ok((name.to_string(), def.kind.parse_value(value)?))
            };
            let attrs = split_outside(attrs, ',').map(attr).collect::<Result<_>>()?;
            Ok(Sample { inputs, attrs })
        };
        read().map_err(|e| {
            let help = e.help_text().unwrap_or("correct the text in `OpDef::samples`").to_string();
            Error::parse(format!("{}: the sample \"{text}\": {}", op.name(), e.message())).help(help)
        })
    }

    /// All samples of an op: those that it declares, or for a derived gradient op those of the op that it belongs to.
    ///
    /// # Errors
    /// As [`Sample::parse`].
    pub fn all(op: &'static Op) -> Result<Vec<Sample>> {
        let declared: Vec<Sample> = op.samples.iter().map(|s| Sample::parse(op, s)).collect::<Result<_>>()?;
        if declared.is_empty() && op.traits.hidden { derived_samples(op) } else { Ok(declared) }
    }

    /// The plan and runtime attributes of the call, in declared order.
    ///
    /// # Errors
    /// A required attribute is missing.
    pub fn attributes(&self, op: &Op) -> Result<(Attrs, RuntimeAttrs)> {
        let given: Vec<(&str, AttrValue)> = self.attrs.iter().map(|(n, v)| (n.as_str(), v.clone())).collect();
        resolve_attrs(op, &given)
    }

    /// Kind of the numbers that the call computes with.
    ///
    /// # Errors
    /// As [`Sample::attributes`].
    pub fn numbers(&self, op: &Op) -> Result<Numbers> {
        let (_, runtime) = self.attributes(op)?;
        Ok(Numbers::of(op, self.inputs.iter().flatten().map(|s| s.dtype), &runtime))
    }

    /// Shapes and dtypes of the inputs.
    pub fn types(&self) -> Vec<Option<TensorType>> {
        self.inputs.iter().map(|s| s.as_ref().map(|s| TensorType::new(&s.shape, s.dtype))).collect()
    }

    /// The outputs that inference gives for the inputs.
    ///
    /// # Errors
    /// What the op refuses.
    pub fn infer(&self, op: &Op) -> Result<Vec<TensorType>> {
        let (attrs, runtime) = self.attributes(op)?;
        let kinds: Vec<_> = runtime.iter().map(|s| s.kind()).collect();
        let ins = self.types();
        let ctx = InferCtx { op, inputs: &ins, attrs: &attrs, runtime_kinds: &kinds };
        Ok(op.infer(&ctx)?.into_vec())
    }

    /// Values of the inputs: exact ones ([`Spec::exact_values`]) or generic ones.
    pub fn values(&self, seed: u64, exact: bool) -> Vec<Option<Value>> {
        let each = |(i, s): (usize, &Option<Spec>)| {
            let seed = mix(&[seed, i as u64]);
            s.as_ref().map(|s| if exact { s.exact_values(seed) } else { s.generic_values(seed) })
        };
        self.inputs.iter().enumerate().map(each).collect()
    }

    /// The same call with every size mapped, in inputs and in the attributes that speak of sizes (`shape`, `rows`, `classes`,
    /// `size`, `len`); none where an index range becomes empty although there are indices.
    fn resized(&self, f: impl Fn(usize) -> usize) -> Option<Sample> {
        let mut s = self.clone();
        for spec in s.inputs.iter_mut().flatten() {
            spec.shape.iter_mut().for_each(|n| *n = f(*n));
            if let Values::Below(n) = spec.values {
                spec.values = Values::Below(f(n));
                if f(n) == 0 && !spec.shape.contains(&0) {
                    return None;
                }
            }
        }
        // -1 in a shape stands for what is left over.
        let mapped = |n: i64| usize::try_from(n).map_or(n, |n| f(n) as i64);
        for (name, v) in &mut s.attrs {
            match v {
                AttrValue::Ints(dims) if name == "shape" => dims.iter_mut().for_each(|n| *n = mapped(*n)),
                AttrValue::Int(n) if ["rows", "classes", "size", "len"].contains(&name.as_str()) => *n = mapped(*n),
                _ => {}
            }
        }
        Some(s)
    }

    /// The same call with all numbers, and dtypes of numbers among the attributes, in an integer dtype. Bools and what is below a bound,
    /// which is an index, keep theirs.
    pub fn with_integer(&self, dtype: DType) -> Sample {
        let mut s = self.clone();
        for (_, v) in &mut s.attrs {
            if matches!(v, AttrValue::DType(d) if *d != DType::Bool) {
                *v = AttrValue::DType(dtype);
            }
        }
        let numbers = s.inputs.iter_mut().flatten();
        numbers
            .filter(|s| s.dtype != DType::Bool && !matches!(s.values, Values::Below(_)))
            .for_each(|s| s.dtype = dtype);
        s
    }

    /// The same call with all float inputs, and float dtypes among the attributes, in another dtype, and complex ones of its kind.
    pub fn with_float(&self, dtype: DType) -> Sample {
        let mut s = self.clone();
        for (_, v) in &mut s.attrs {
            match v {
                AttrValue::DType(d) if d.is_float() => *d = dtype,
                AttrValue::DType(d) if d.is_complex() => *d = dtype.complex(),
                _ => {}
            }
        }
        for s in s.inputs.iter_mut().flatten() {
            match s.dtype {
                d if d.is_float() => s.dtype = dtype,
                d if d.is_complex() => s.dtype = dtype.complex(),
                _ => {}
            }
        }
        s
    }
}

/// The sample itself ("as given"), then larger uneven sizes ("uneven"), sizes below most meshes ("small"), and each size in turn
/// 0 ("empty"); only those that inference accepts.
pub fn variants(op: &Op, sample: &Sample) -> Vec<(&'static str, Sample)> {
    let mut found = vec![("as given", sample.clone())];
    let mut sizes: Vec<usize> = sample.inputs.iter().flatten().flat_map(|s| s.shape.clone()).collect();
    for (name, v) in &sample.attrs {
        if let (AttrValue::Ints(v), "shape") = (v, name.as_str()) {
            sizes.extend(v.iter().filter_map(|n| usize::try_from(*n).ok()));
        }
    }
    sizes.retain(|n| *n > 1);
    sizes.sort_unstable();
    sizes.dedup();
    let mut add = |word, s: Option<Sample>| {
        if let Some(s) = s.filter(|s| s.infer(op).is_ok())
            && !found.iter().any(|(_, f)| *f == s)
        {
            found.push((word, s));
        }
    };
    add("uneven", sample.resized(|n| if n > 1 { 2 * n + 1 } else { n }));
    add("small", sample.resized(|n| if n > 1 { 2 } else { n }));
    for size in sizes {
        add("empty", sample.resized(|n| if n == size { 0 } else { n }));
    }
    found
}

/// Samples of a gradient op that was derived from an expression, from those of the op it belongs to; none for other ops.
fn derived_samples(op: &'static Op) -> Result<Vec<Sample>> {
    let split = |numbers, by: &str| op.name().rsplit_once(by).map(|(parent, input)| (parent, input, numbers));
    let Some((parent, input, numbers)) = split(Numbers::Real, ".grad.").or_else(|| split(Numbers::Complex, ".cgrad."))
    else {
        return Ok(vec![]);
    };
    let Some(parent) = crate::ops::lookup(parent)? else { return Ok(vec![]) };
    let (Some(i), Grad::FromExpr) = (parent.sig.input(input), &parent.grad) else { return Ok(vec![]) };
    let args = derived_args(parent, i, numbers)?;
    let mut found = vec![];
    for s in Sample::all(parent)? {
        let float = s.inputs.iter().flatten().any(|s| s.dtype.has_gradients()) && s.numbers(parent)? == numbers;
        let Some(out) = s.infer(parent).ok().map(|o| o[0].clone()).filter(|o| float && o.dtype.has_gradients()) else {
            continue;
        };
        let positive = s.inputs.iter().flatten().any(|s| s.values == Values::Positive);
        let like = |values| Some(Spec { dtype: out.dtype, shape: out.shape.to_vec(), values });
        let mut inputs = vec![like(Values::Any)];
        inputs.extend(args.inputs.iter().map(|k| s.inputs[*k].clone()));
        if args.output {
            inputs.push(like(if positive { Values::Positive } else { Values::Any }));
        }
        let value = |a: &AttrDef| {
            let given = s.attrs.iter().find(|(n, _)| *n == a.name).map(|(_, v)| v.clone());
            given.or_else(|| parent.sig.runtime[parent.sig.runtime_attr(&a.name)?].default.clone())
        };
        let attrs = op.sig.runtime.iter().filter_map(|a| Some((a.name.to_string(), value(a)?))).collect();
        found.push(Sample { inputs, attrs });
    }
    Ok(found)
}

/// The gradient ops that are derived from the expression of an op, one for each input and kind of numbers that its samples have; none
/// for other ops.
///
/// # Errors
/// The expression has no derivative.
pub fn derived_ops(op: &'static Op) -> Result<Vec<&'static Op>> {
    match op.grad {
        Grad::FromExpr if !op.traits.hidden => {
            let has: Vec<Numbers> = Sample::all(op)?.iter().map(|s| s.numbers(op)).collect::<Result<_>>()?;
            // An op without samples has real numbers: its gradient can be asked for.
            let all = [Numbers::Real, Numbers::Complex].into_iter();
            let kinds = all.filter(|n| has.contains(n) || (has.is_empty() && *n == Numbers::Real));
            kinds.flat_map(|n| (0..op.sig.inputs.len()).map(move |i| derived_grad_op(op, i, n))).collect()
        }
        _ => Ok(vec![]),
    }
}

/// Makes every gradient op that can be derived from an expression, so that the registry holds them.
///
/// # Errors
/// As [`derived_ops`].
pub fn derive_all() -> Result<()> {
    // The ops derived from derived ops are made by second derivatives; one level is what the samples reach.
    crate::ops::all().into_iter().try_for_each(|op| derived_ops(op).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_sample_is_an_error_that_quotes_it() {
        let op = crate::ops::find("sum").unwrap();
        let says = |text: &str| Sample::parse(op, text).unwrap_err().to_string();
        for (text, why) in [
            ("f32", "'f32' has no shape"),
            ("f32[3", "'f32[3' has no ']'"),
            ("f32[x]", "'f32[x]' has the size 'x'"),
            ("g32[3]", "'g32[3]' has no known dtype"),
            ("f32[3]?", "'f32[3]?' ends with neither +, ~, <n nor @low..high"),
            ("f32[3]@1..-1", "'f32[3]@1..-1' ends with neither +, ~, <n nor @low..high"),
            ("i64[3]<x", "'i64[3]<x' has no number after <"),
            ("f32[3, 2]~", "'f32[3, 2]~' has ~, but is not a batch of square matrices of floats"),
            ("i32[2, 2]~", "'i32[2, 2]~' has ~, but is not a batch of square matrices of floats"),
            ("f32[3]; keepdim", "'keepdim' is not an attribute with its value"),
            ("f32[3]; keep=true", "unknown attribute 'keep'"),
            ("f32[3]; keepdim=7", "keepdim"),
        ] {
            let e = says(text);
            assert!(e.starts_with(&format!("sum: the sample \"{text}\": ")) && e.contains(why), "{e}");
        }
        let s = Sample::parse(op, "f32[3, 4]; dims=[1], keepdim=true").unwrap();
        assert_eq!((s.types()[0].as_ref().unwrap().to_string().as_str(), s.attrs.len()), ("f32[3, 4]", 2));
    }

    #[test]
    fn definite_matrices_are_symmetric_and_their_diagonals_outweigh_their_rows() {
        let spec = Spec::parse("f64[2, 5, 5]~").unwrap();
        for v in [spec.exact_values(3), spec.generic_values(3)] {
            let at = |m: usize, r: usize, c: usize| v.data[m * 25 + r * 5 + c];
            for (m, r) in (0..2).flat_map(|m| (0..5).map(move |r| (m, r))) {
                let others: f64 = (0..5).filter(|c| *c != r).map(|c| at(m, r, c).abs()).sum();
                assert!(at(m, r, r) > others && (0..5).all(|c| at(m, r, c) == at(m, c, r)), "{v:?}");
                assert!(r == 0 || at(m, r, r) > at(m, r - 1, r - 1) + 0.9, "{v:?}");
            }
            assert_ne!(v.data[..25], v.data[25..], "the matrices of a batch differ");
        }
        assert_eq!(spec.place(25 + 7), (1, 2, 1));
    }
}
