//! `samples` of an op: text such as `"f32[4, 6] f32[6] -; dim=1, keepdim=true"` into inputs and attributes, and variants of
//! them with other sizes.

use super::layout::Value;
use super::mix;
use oflow::ops::resolve_attrs;
use oflow::ops::{AttrValue, Attrs, Grad, InferCtx, Op, RuntimeAttrs, TensorType, derived_args};
use oflow::{DType, Result};

/// Which values an input takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// Of both signs.
    Any,
    /// Greater than zero; true.
    Positive,
    /// Integers from 0 below that.
    Below(usize),
}

/// One input.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub values: Values,
}

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Absent optional inputs are `None`.
    pub inputs: Vec<Option<Spec>>,
    /// By name.
    pub attrs: Vec<(String, AttrValue)>,
}

/// Splits at separators that stand outside brackets.
fn split(s: &str, at: char) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, vec![]);
    for (i, c) in s.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            c if c == at && depth == 0 => {
                parts.push(&s[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&s[start..]);
    parts.into_iter().map(str::trim).filter(|p| !p.is_empty()).collect()
}

impl Spec {
    fn parse(text: &str) -> Spec {
        let (dtype, rest) = text.split_once('[').unwrap_or_else(|| panic!("'{text}' has no shape"));
        let (dims, tail) = rest.split_once(']').unwrap_or_else(|| panic!("'{text}' has no ']'"));
        let values = match tail.trim() {
            "" => Values::Any,
            "+" => Values::Positive,
            t => Values::Below(t.strip_prefix('<').and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("'{text}'"))),
        };
        Spec {
            dtype: dtype.trim().parse().unwrap_or_else(|e| panic!("'{text}': {e}")),
            shape: split(dims, ',').iter().map(|d| d.parse().unwrap_or_else(|e| panic!("'{text}': {e}"))).collect(),
            values,
        }
    }

    /// Small multiples of 1/4 (of 1 in half precision), so that sums and products are exact; integers; bools.
    pub fn exact_values(&self, seed: u64) -> Value {
        let step = match self.dtype {
            DType::F32 | DType::F64 => 4.0,
            _ => 1.0,
        };
        let n: usize = self.shape.iter().product();
        let data = (0..n as u64)
            .map(|i| {
                let r = mix(&[seed, i]);
                match (self.values, self.dtype) {
                    (Values::Positive, DType::Bool) => 1.0,
                    (_, DType::Bool) => (r % 2) as f64,
                    (Values::Below(k), _) => (r % k.max(1) as u64) as f64,
                    (Values::Positive, d) if d.is_float() => (1 + r % 12) as f64 / step,
                    (Values::Positive, _) | (_, DType::U8) => (1 + r % 5) as f64,
                    // No zero: a partial sum divided by zero is not finite.
                    (Values::Any, d) if d.is_float() => {
                        ((r % 12) as f64 + 1.0) * if r & 64 == 0 { 1.0 } else { -1.0 } / step
                    }
                    (Values::Any, _) => (r % 11) as f64 - 5.0,
                }
            })
            .collect();
        Value { ty: TensorType::new(&self.shape, self.dtype), data }
    }

    /// Generic values, no two alike and none near a kink of the built-in functions (0, ±0.5, ±1, ±3, integers).
    pub fn generic_values(&self, seed: u64) -> Value {
        let n: usize = self.shape.iter().product();
        let mut exact = self.exact_values(seed);
        if self.dtype.is_float() {
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
    pub fn parse(op: &Op, text: &str) -> Sample {
        let (ins, attrs) = text.split_once(';').unwrap_or((text, ""));
        let inputs = split(ins, ' ').into_iter().map(|t| (t != "-").then(|| Spec::parse(t))).collect();
        let attrs = split(attrs, ',')
            .into_iter()
            .map(|a| {
                let (name, value) = a.split_once('=').unwrap_or_else(|| panic!("{text}: '{a}'"));
                let name = name.trim();
                let def = op.sig.attrs.iter().chain(&op.sig.runtime).find(|d| d.name == name);
                let def = def.unwrap_or_else(|| panic!("{} has no attribute '{name}' ({text})", op.name()));
                (name.to_string(), def.kind.parse_value(value).unwrap_or_else(|e| panic!("{text}: {e}")))
            })
            .collect();
        Sample { inputs, attrs }
    }

    /// All samples of an op.
    pub fn all(op: &'static Op) -> Vec<Sample> {
        let declared: Vec<Sample> = op.samples.iter().map(|s| Sample::parse(op, s)).collect();
        if declared.is_empty() && op.traits.hidden { derived_samples(op) } else { declared }
    }

    /// Plan and runtime attributes in declared order.
    pub fn attributes(&self, op: &Op) -> Result<(Attrs, RuntimeAttrs)> {
        let given: Vec<(&str, AttrValue)> = self.attrs.iter().map(|(n, v)| (n.as_str(), v.clone())).collect();
        resolve_attrs(op, &given)
    }

    /// Shapes and dtypes.
    pub fn types(&self) -> Vec<Option<TensorType>> {
        self.inputs.iter().map(|s| s.as_ref().map(|s| TensorType::new(&s.shape, s.dtype))).collect()
    }

    /// The outputs that inference gives.
    pub fn infer(&self, op: &Op) -> Result<Vec<TensorType>> {
        let (attrs, runtime) = self.attributes(op)?;
        let kinds: Vec<_> = runtime.iter().map(|s| s.kind()).collect();
        let ins = self.types();
        let ctx = InferCtx { op, inputs: &ins, attrs: &attrs, runtime_kinds: &kinds };
        Ok(op.infer(&ctx)?.into_vec())
    }

    /// The values of the inputs.
    pub fn values(&self, seed: u64, exact: bool) -> Vec<Option<Value>> {
        let each = |(i, s): (usize, &Option<Spec>)| {
            let seed = mix(&[seed, i as u64]);
            s.as_ref().map(|s| if exact { s.exact_values(seed) } else { s.generic_values(seed) })
        };
        self.inputs.iter().enumerate().map(each).collect()
    }

    /// The same call with every size mapped, in inputs and in the attributes that speak of sizes; none where an index range
    /// becomes empty although there are indices.
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
        for (name, v) in &mut s.attrs {
            match v {
                AttrValue::Ints(dims) if name == "shape" => dims.iter_mut().for_each(|n| *n = f(*n as usize) as i64),
                AttrValue::Int(n) if ["rows", "classes", "size", "len"].contains(&name.as_str()) => {
                    *n = f(*n as usize) as i64;
                }
                _ => {}
            }
        }
        Some(s)
    }

    /// Float inputs (all of them), and float dtypes asked for, in another dtype.
    pub fn with_float(&self, dtype: DType) -> Sample {
        let mut s = self.clone();
        for (_, v) in &mut s.attrs {
            if matches!(v, AttrValue::DType(d) if d.is_float()) {
                *v = AttrValue::DType(dtype);
            }
        }
        s.inputs.iter_mut().flatten().filter(|s| s.dtype.is_float()).for_each(|s| s.dtype = dtype);
        s
    }
}

/// The sample itself, then larger uneven sizes, sizes below most meshes, and each size in turn empty; only those that
/// inference accepts, each with a word for it.
pub fn variants(op: &Op, sample: &Sample) -> Vec<(&'static str, Sample)> {
    let mut found = vec![("as given", sample.clone())];
    let mut sizes: Vec<usize> = sample.inputs.iter().flatten().flat_map(|s| s.shape.clone()).collect();
    for (name, v) in &sample.attrs {
        if let (AttrValue::Ints(v), "shape") = (v, name.as_str()) {
            sizes.extend(v.iter().map(|n| *n as usize));
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

/// Samples of a gradient op that was derived from an expression: from those of the op it belongs to.
pub fn derived_samples(op: &'static Op) -> Vec<Sample> {
    let Some((parent, input)) = op.name().rsplit_once(".grad.") else { return vec![] };
    let Ok(parent) = oflow::ops::find(parent) else { return vec![] };
    let (Some(i), Grad::FromExpr) = (parent.sig.input(input), &parent.grad) else { return vec![] };
    let Ok(args) = derived_args(parent, i) else { return vec![] };
    let mut found = vec![];
    for s in Sample::all(parent) {
        let float = s.inputs.iter().flatten().any(|s| s.dtype.is_float());
        let Some(out) = s.infer(parent).ok().map(|o| o[0].clone()).filter(|o| float && o.dtype.is_float()) else {
            continue;
        };
        let positive = s.inputs.iter().flatten().any(|s| s.values == Values::Positive);
        let like = |values| Some(Spec { dtype: out.dtype, shape: out.shape.to_vec(), values });
        let mut inputs = vec![like(Values::Any)];
        inputs.extend(args.inputs.iter().map(|k| s.inputs[*k].clone()));
        if args.output {
            inputs.push(like(if positive { Values::Positive } else { Values::Any }));
        }
        let value = |a: &oflow::ops::AttrDef| {
            let given = s.attrs.iter().find(|(n, _)| *n == a.name).map(|(_, v)| v.clone());
            given.or_else(|| parent.sig.runtime[parent.sig.runtime_attr(&a.name)?].default.clone())
        };
        let attrs = op.sig.runtime.iter().filter_map(|a| Some((a.name.to_string(), value(a)?))).collect();
        found.push(Sample { inputs, attrs });
    }
    found
}

/// Makes every gradient op that can be derived from an expression, so that the registry holds them.
pub fn derive_all() {
    // The ops derived from derived ops are made by second derivatives; one level is what the samples reach.
    for op in oflow::ops::all() {
        if !matches!(op.grad, Grad::FromExpr) || op.traits.hidden {
            continue;
        }
        for i in 0..op.sig.inputs.len() {
            oflow::ops::derived_grad_op(op, i).expect("gradient op");
        }
    }
}
