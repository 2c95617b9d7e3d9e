//! Functions that follow from others: other names of one function, forms in place, and forms with a dtype. They are called by name.

use super::argument_forms::number_like;
use super::bind::{Arg, Bound};
use super::definition::{FnBody, FnCode, FnDef};
use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrKind, FnParam, FnReturn, ParamKind};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::smallvec;
use std::sync::Arc;

/// PyTorch's name of a function, and the name that it has here. All overloads have both.
const SAME: &[(&str, &str)] = &[
    ("absolute", "abs"),
    ("arccos", "acos"),
    ("arccosh", "acosh"),
    ("arcsin", "asin"),
    ("arcsinh", "asinh"),
    ("arctan", "atan"),
    ("arctan2", "atan2"),
    ("arctanh", "atanh"),
    ("argwhere", "nonzero"),
    ("clip", "clamp"),
    ("concat", "cat"),
    ("concatenate", "cat"),
    ("conj_physical", "conj"),
    ("divide", "div"),
    ("fix", "trunc"),
    ("ger", "outer"),
    ("greater", "gt"),
    ("greater_equal", "ge"),
    ("less", "lt"),
    ("less_equal", "le"),
    ("linalg.matmul", "matmul"),
    ("moveaxis", "movedim"),
    ("multiply", "mul"),
    ("negative", "neg"),
    ("not_equal", "ne"),
    ("row_stack", "vstack"),
    ("special.airy_ai", "airy_ai"),
    ("special.bessel_j0", "bessel_j0"),
    ("special.bessel_j1", "bessel_j1"),
    ("special.bessel_y0", "bessel_y0"),
    ("special.bessel_y1", "bessel_y1"),
    ("special.chebyshev_polynomial_t", "chebyshev_polynomial_t"),
    ("special.chebyshev_polynomial_u", "chebyshev_polynomial_u"),
    ("special.chebyshev_polynomial_v", "chebyshev_polynomial_v"),
    ("special.chebyshev_polynomial_w", "chebyshev_polynomial_w"),
    ("special.digamma", "digamma"),
    ("special.entr", "entr"),
    ("special.erf", "erf"),
    ("special.erfc", "erfc"),
    ("special.erfcx", "erfcx"),
    ("special.erfinv", "erfinv"),
    ("special.exp2", "exp2"),
    ("special.expit", "sigmoid"),
    ("special.expm1", "expm1"),
    ("special.gammainc", "igamma"),
    ("special.gammaincc", "igammac"),
    ("special.gammaln", "lgamma"),
    ("special.hermite_polynomial_h", "hermite_polynomial_h"),
    ("special.hermite_polynomial_he", "hermite_polynomial_he"),
    ("special.i0", "i0"),
    ("special.i0e", "i0e"),
    ("special.i1", "i1"),
    ("special.i1e", "i1e"),
    ("special.laguerre_polynomial_l", "laguerre_polynomial_l"),
    ("special.legendre_polynomial_p", "legendre_polynomial_p"),
    ("special.log1p", "log1p"),
    ("special.log_ndtr", "log_ndtr"),
    ("special.log_softmax", "log_softmax"),
    ("special.logit", "logit"),
    ("special.logsumexp", "logsumexp"),
    ("special.modified_bessel_i0", "i0"),
    ("special.modified_bessel_i1", "i1"),
    ("special.modified_bessel_k0", "modified_bessel_k0"),
    ("special.modified_bessel_k1", "modified_bessel_k1"),
    ("special.multigammaln", "mvlgamma"),
    ("special.ndtr", "ndtr"),
    ("special.ndtri", "ndtri"),
    ("special.polygamma", "polygamma"),
    ("special.psi", "digamma"),
    ("special.round", "round"),
    ("special.scaled_modified_bessel_k0", "scaled_modified_bessel_k0"),
    ("special.scaled_modified_bessel_k1", "scaled_modified_bessel_k1"),
    ("special.shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_t"),
    ("special.shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_u"),
    ("special.shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_v"),
    ("special.shifted_chebyshev_polynomial_w", "shifted_chebyshev_polynomial_w"),
    ("special.sinc", "sinc"),
    ("special.softmax", "softmax"),
    ("special.spherical_bessel_j0", "spherical_bessel_j0"),
    ("special.xlog1py", "xlog1py"),
    ("special.xlogy", "xlogy"),
    ("special.zeta", "zeta"),
    ("split_with_sizes", "split"),
    ("subtract", "sub"),
    ("swapaxes", "transpose"),
    ("swapdims", "transpose"),
    ("trapz", "trapezoid"),
    ("true_divide", "div"),
    ("unsafe_chunk", "chunk"),
    ("unsafe_split", "split"),
    ("unsafe_split_with_sizes", "split"),
];

/// Functions with a form in place that no op gives: the result is written over the first argument.
const IN_PLACE: &[&str] = &[
    "abs",
    "addbmm",
    "clamp",
    "clamp_max",
    "clamp_min",
    "copysign",
    "div",
    "round",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "cumprod",
    "cumsum",
    "eq",
    "float_power",
    "ge",
    "gt",
    "index_add",
    "index_copy",
    "index_fill",
    "index_reduce",
    "le",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "lt",
    "masked_fill",
    "masked_scatter",
    "mvlgamma",
    "nan_to_num",
    "ne",
    "nextafter",
    "put",
    "renorm",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "tril",
    "triu",
];

/// Functions that take a `dtype`, to which the tensor is converted first, by name only or also by position.
const WITH_DTYPE: &[(&str, bool)] = &[
    ("cumprod", true),
    ("cumsum", true),
    ("log_softmax", false),
    ("logcumsumexp", true),
    ("mean", true),
    ("nanmean", true),
    ("nansum", true),
    ("norm", true),
    ("prod", true),
    ("softmax", false),
    ("sum", true),
];

/// Functions of two tensors in the place of either of which a number may stand.
const WITH_NUMBER: &[&str] = &[
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "xlog1py",
    "xlogy",
    "zeta",
];

/// Whether this is another name of a function.
pub(super) fn is_other_name(name: &str) -> bool {
    SAME.iter().any(|(other, _)| *other == name)
}

/// The functions that follow from these: forms with a dtype or a number, then forms in place, then other names, of all that has come
/// before.
pub(super) fn derived(defs: &[FnDef]) -> Vec<FnDef> {
    let mut made: Vec<FnDef> = vec![];
    for (name, keyword_only) in WITH_DTYPE {
        made.extend(defs.iter().filter(|d| d.sig.name == *name).map(|d| with_dtype(d, *keyword_only)));
    }
    for name in WITH_NUMBER {
        let bases = defs.iter().filter(|d| d.sig.name == *name);
        made.extend(bases.flat_map(|d| [1, 0].map(|i| with_number(d, i))));
    }
    for name in IN_PLACE {
        let there = |d: &&FnDef| d.sig.name.strip_suffix('_') == Some(name);
        let given: Vec<&FnDef> = defs.iter().chain(&made).filter(there).collect();
        let bases = defs.iter().chain(&made).filter(|d| d.sig.name == *name && takes_tensor_first(d));
        let new: Vec<FnDef> =
            bases.filter(|d| !given.iter().any(|g| g.sig.params == d.sig.params)).map(in_place).collect();
        made.extend(new);
    }
    let mut named = vec![];
    for (name, base) in SAME {
        for suffix in ["", "_"] {
            let of = format!("{base}{suffix}");
            let same = defs.iter().chain(&made).filter(|d| d.sig.name == of);
            named.extend(same.map(|d| other_name(d, &format!("{name}{suffix}"))));
        }
    }
    made.extend(named);
    made
}

fn takes_tensor_first(def: &FnDef) -> bool {
    def.sig.params.first().is_some_and(|p| p.kind == ParamKind::Tensor)
}

/// The function under another name.
fn other_name(def: &FnDef, name: &str) -> FnDef {
    let mut made = def.clone();
    made.sig.name = name.to_string();
    made.rust = None;
    made.form = Arc::default();
    made.doc(&format!("The same as `{}`.", def.sig.name))
}

/// The function on its first tensor converted to a dtype.
fn with_dtype(def: &FnDef, keyword_only: bool) -> FnDef {
    let base = def.clone();
    let last = base.sig.params.len();
    let code = move |b: &Bound| {
        let dtype = b.given_dtype(last)?;
        let x = b.given(0)?;
        let inner = inner_calls();
        let cast = invoke1(op!("cast"), &[Some(x)], smallvec![dtype.into()], smallvec![], b.site)?;
        drop(inner);
        let mut args = b.args[..last].to_vec();
        args[0] = Some(Arg::Tensor(cast));
        let results = base.run(Bound { args, site: b.site })?.tensors()?;
        // A product or a sum of bools is an integer.
        match &results[..] {
            [y] if dtype == DType::Bool && y.dtype() != dtype => Ok(vec![y.cast_at(dtype, b.site)?]),
            _ => Ok(results),
        }
    };
    let mut made = derived_from(def, Arc::new(code));
    made.variant = true;
    // A list of dims by position takes all numbers that follow, so what stands behind it goes by name.
    let kind = ParamKind::Attr(AttrKind::DType);
    made.sig.params.push(FnParam { keyword_only, ..FnParam::new("dtype", kind) });
    made.doc(&format!("`{}` of the tensor converted to `dtype`.", def.sig.name))
}

/// The function of a tensor and of a number, which is parameter `i`. Beside the tensor the number is one of its dtype, or of the dtype
/// that both promote to.
fn with_number(def: &FnDef, i: usize) -> FnDef {
    let base = def.clone();
    let code = move |b: &Bound| {
        let (x, s) = (b.given(1 - i)?, b.scalar(i)?);
        let inner = inner_calls();
        let number = number_like(x, s, x.dtype().promote_scalar(s.kind()))?;
        drop(inner);
        let mut args = b.args.clone();
        args[i] = Some(Arg::Tensor(number));
        base.run(Bound { args, site: b.site })?.tensors()
    };
    let mut made = derived_from(def, Arc::new(code));
    made.sig.params[i].kind = ParamKind::Attr(AttrKind::Scalar);
    made.doc(&format!("`{}` with a number as {}.", def.sig.name, def.sig.params[i].name))
}

/// The function in place.
fn in_place(def: &FnDef) -> FnDef {
    let base = def.clone();
    let name = format!("{}_", def.sig.name);
    let of = name.clone();
    let code = move |b: &Bound| {
        let x = b.given(0)?;
        let results = base.run(Bound { args: b.args.clone(), site: b.site })?.tensors()?;
        written(x, &results[0], &of, b.site)?;
        Ok(vec![x.clone()])
    };
    let mut made = derived_from(def, Arc::new(code));
    made.sig.name = name;
    made.sig.returns = FnReturn::Tensor;
    made.subject = "In place".into();
    made.doc(&format!("`{}` in place: the result is written over the first argument.", def.sig.name))
}

fn derived_from(def: &FnDef, code: FnCode) -> FnDef {
    let mut made = def.clone();
    made.body = FnBody::Code(code);
    made.rust = None;
    made.form = Arc::default();
    made
}

/// Writes a result over a tensor, as PyTorch does: the shape is the tensor's, and the dtype of the result is of no higher kind.
fn written(x: &Tensor, result: &Tensor, name: &str, site: CallSite) -> Result<()> {
    let refused = |e: Error| Err(e.in_call(|| format!("{name}({})", x.short())).at(site));
    if result.shape() != x.shape() {
        let e = Error::shape(format!("the result has the shape {:?}, the tensor {:?}", result.shape(), x.shape()));
        return refused(e.help("call the function that returns a new tensor"));
    }
    if rank_of(result.dtype()) > rank_of(x.dtype()) && x.dtype() != result.dtype() {
        let e = Error::dtype(format!("a result of {} is not written into {}", result.dtype(), x.dtype()));
        return refused(e.help("call the function that returns a new tensor, or cast the tensor first"));
    }
    super::inplace::copy_(x, result, site)
}

/// The kind of a dtype in the order in which kinds hold each other: bool, integers, floats, complex numbers. A bool is written into all.
fn rank_of(d: DType) -> usize {
    match d {
        DType::Bool => 0,
        d if d.is_complex() => 3,
        d if d.is_float() => 2,
        _ => 1,
    }
}
