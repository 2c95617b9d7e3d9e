//! Attention with masks, and bags of embeddings.

use super::{create, invoke1, op};
use crate::context::{inner_calls, set_autocast};
use crate::error::{CallSite, Error, Result};
use crate::interpreter::Target;
use crate::ops::{AttrValue, Autocast, GATHER_LIMIT};
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Networks";
    /// softmax(scale q kᵀ + mask) v over the last two dims. `attn_mask` broadcasts to the scores `[..., Tq, Tk]`: a bool mask is true where
    /// a query sees a key, a float mask is added. With `is_causal` query i sees keys 0..=i only. `dropout_p` is for the weights.
    /// `enable_gqa` repeats the heads of keys and values (dim -3) as often as the queries have more. A query that sees no key gives 0.
    ///
    /// Without mask and dropout the scores never lie in memory.
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Float dropout_p=0.0, Bool is_causal=false, *, Float? scale, Bool enable_gqa=false) -> Tensor" = scaled_dot_product_attention;
    /// The rows of a table `weight` that each bag of `ids` names, reduced: `sum`, `mean` or `max`. The rows of `ids` of two dims are
    /// bags; a list of ids has bags that start at `offsets` (with `include_last_offset` the last is the end). An empty bag gives 0.
    /// `per_sample_weights` multiply the rows of a `sum`. Rows at `padding_idx` do not count.
    "embedding_bag(Tensor weight, Tensor ids, Tensor? offsets, *, String mode=\"mean\", Tensor? per_sample_weights, Bool include_last_offset=false, Int? padding_idx) -> Tensor" = embedding_bag;
}

const LAST: i64 = -1;

/// A number everywhere, whole on every rank of the tensor's placement.
pub(super) fn filled(shape: &[usize], value: Scalar, dtype: DType, like: &Tensor, site: CallSite) -> Result<Tensor> {
    let target = match like.global() {
        Some(g) => Target::Global(g.placement.clone(), NdSbp::broadcast(g.placement.axes())),
        None => Target::Local(like.device()),
    };
    create(op!("full"), smallvec![AttrValue::from(shape), dtype.into()], smallvec![value], &target, site)
}

// As many as the function has.
#[allow(clippy::too_many_arguments)]
pub(super) fn scaled_dot_product_attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: Option<&Tensor>,
    dropout_p: f64,
    causal: bool,
    scale: Option<f64>,
    grouped: bool,
    site: CallSite,
) -> Result<Tensor> {
    let refused = |e: Error| {
        e.in_call(|| format!("scaled_dot_product_attention({}, {}, {})", q.short(), k.short(), v.short())).at(site)
    };
    if q.ndim() < 2 || k.ndim() < 2 || v.ndim() < 2 {
        return Err(refused(Error::shape("queries, keys and values have at least 2 dims")));
    }
    if mask.is_some() && causal {
        let e = Error::argument("a mask is given, and is_causal is set");
        return Err(refused(e.help("put the causal mask into the other one")));
    }
    if !(0.0..=1.0).contains(&dropout_p) {
        return Err(refused(Error::argument(format!("dropout_p is {dropout_p}")).help("it is within 0 and 1")));
    }
    let (width, keys) = (q.shape()[q.ndim() - 1], k.shape()[k.ndim() - 2]);
    if k.shape()[k.ndim() - 1] != width || v.shape()[v.ndim() - 2] != keys {
        let e = Error::shape(format!("{:?}, {:?} and {:?} do not fit", q.shape(), k.shape(), v.shape()));
        return Err(refused(e.help("they are [..., Tq, D], [..., Tk, D] and [..., Tk, Dv]")));
    }
    let scale = scale.unwrap_or(1.0 / (width.max(1) as f64).sqrt());
    let _scope = site.scope();
    let (mut k, mut v) = (k.clone(), v.clone());
    if grouped {
        let _inner = inner_calls();
        let heads = |t: &Tensor| t.ndim().checked_sub(3).map_or(1, |d| t.shape()[d]);
        for t in [&mut k, &mut v] {
            let (all, own) = (heads(q), heads(t).max(1));
            if all % own != 0 {
                return Err(refused(Error::shape(format!("{all} heads of queries are not a multiple of {own}"))));
            }
            if all != own {
                *t = super::arrange::repeat_interleave(t, (all / own) as i64, Some(-3), site)?;
            }
        }
    }
    let lead = |t: &Tensor| t.shape()[..t.ndim() - 2].to_vec();
    if mask.is_none() && dropout_p == 0.0 && lead(q) == lead(&k) && lead(q) == lead(&v) && q.ndim() == 4 {
        return super::nn::attention(q, &k, &v, causal, Some(scale), GATHER_LIMIT, site);
    }
    let inner = inner_calls();
    let weights = weights_of(q, &k, mask, scale, dropout_p, causal, site)?;
    drop(inner);
    weights.matmul(&v)
}

/// The weights of attention, of which dropout sets some to 0: rows of queries that see no key are 0.
///
/// # Errors
/// Those of the ops, if shapes do not belong together.
#[track_caller]
pub(crate) fn attention_weights(
    q: &Tensor,
    k: &Tensor,
    mask: Option<&Tensor>,
    dropout_p: f64,
    causal: bool,
) -> Result<Tensor> {
    let width = q.shape().last().copied().unwrap_or(1).max(1);
    weights_of(q, k, mask, 1.0 / (width as f64).sqrt(), dropout_p, causal, CallSite::here())
}

fn weights_of(
    q: &Tensor,
    k: &Tensor,
    mask: Option<&Tensor>,
    scale: f64,
    dropout_p: f64,
    causal: bool,
    site: CallSite,
) -> Result<Tensor> {
    let _scope = site.scope();
    // A score of some hundreds rounded to a half is wrong by a factor of the weight: scores and weights of halves are f32.
    let half = q.dtype().is_half().then(|| q.dtype());
    let _full = half.map(|_| set_autocast(Autocast::Off));
    let mut scores = match half {
        Some(_) => q.cast_at(DType::F32, site)?.mul(scale)?.matmul_t(&k.cast_at(DType::F32, site)?)?,
        None => q.mul(scale)?.matmul_t(k)?,
    };
    let (queries, keys) = (q.shape()[q.ndim() - 2], k.shape()[k.ndim() - 2]);
    let seen = match causal {
        true => Some(filled(&[queries, keys], Scalar::Int(1), DType::I64, q, site)?.tril(0)?.ne(0)?),
        false => None,
    };
    let masked = seen.is_some() || mask.is_some();
    for mask in mask.into_iter().chain(&seen) {
        scores = match mask.dtype() {
            DType::Bool => scores.masked_fill(&mask.logical_not()?, f64::NEG_INFINITY)?,
            _ => scores.add(&mask.cast_at(scores.dtype(), site)?)?,
        };
    }
    let mut blind = None;
    if masked && keys > 0 {
        // Queries that see nothing: their softmax would be NaN, and its gradient too.
        let none = super::reduce::over(op!("amax"), &scores, &[LAST], true, site)?.eq(f64::NEG_INFINITY)?;
        scores = scores.masked_fill(&none, 0.0)?;
        blind = Some(none);
    }
    let mut weights = scores.softmax(LAST)?;
    if let Some(none) = blind {
        weights = weights.masked_fill(&none, 0.0)?;
    }
    if let Some(half) = half {
        weights = weights.cast_at(half, site)?;
    }
    if dropout_p > 0.0 { weights.dropout(dropout_p) } else { Ok(weights) }
}

/// The list of bag numbers of a list of ids: how many bags have started, less one.
fn numbers(ids: &Tensor, offsets: &Tensor, site: CallSite) -> Result<Tensor> {
    let n = ids.numel();
    let starts = filled(&[n + 1], Scalar::Int(0), DType::I64, ids, site)?;
    let ones = filled(&[offsets.numel()], Scalar::Int(1), DType::I64, ids, site)?;
    let marks = starts.scatter_add(0, &offsets.cast_at(DType::I64, site)?, &ones)?;
    marks.narrow(0, 0, n)?.cumsum(0)?.sub(1)
}

// As many as the function has.
#[allow(clippy::too_many_arguments)]
pub(super) fn embedding_bag(
    weight: &Tensor,
    ids: &Tensor,
    offsets: Option<&Tensor>,
    mode: &str,
    per_sample_weights: Option<&Tensor>,
    include_last_offset: bool,
    padding_idx: Option<i64>,
    site: CallSite,
) -> Result<Tensor> {
    let refused = |e: Error| e.in_call(|| format!("embedding_bag({}, {})", weight.short(), ids.short())).at(site);
    if !["sum", "mean", "max"].contains(&mode) {
        return Err(refused(Error::argument(format!("unknown mode '{mode}'")).help("it is sum, mean or max")));
    }
    if per_sample_weights.is_some() && mode != "sum" {
        return Err(refused(Error::argument(format!("weights of samples are for sums, not for the mode '{mode}'"))));
    }
    if weight.ndim() != 2 {
        return Err(refused(Error::shape(format!("the table has shape {:?}, not [rows, width]", weight.shape()))));
    }
    if let Some(w) = per_sample_weights
        && w.shape() != ids.shape()
    {
        return Err(refused(Error::shape(format!("weights of shape {:?} for ids {:?}", w.shape(), ids.shape()))));
    }
    match (ids.ndim(), offsets) {
        (2, None) | (1, Some(_)) => {}
        (2, Some(_)) => {
            return Err(refused(Error::argument("the rows of ids of two dims are bags, which have no offsets")));
        }
        (1, None) => return Err(refused(Error::argument("a list of ids needs the offsets of its bags"))),
        (n, _) => return Err(refused(Error::shape(format!("ids have 1 or 2 dims, not {n}")))),
    }
    let rows = weight.shape()[0] as i64;
    let padding = padding_idx.map(|i| if i < 0 { i + rows } else { i });
    if padding.is_some_and(|i| !(0..rows).contains(&i)) {
        return Err(refused(Error::argument(format!("padding_idx is not within the {rows} rows of the table"))));
    }
    let _scope = site.scope();
    let _inner = inner_calls();
    let vectors = weight.embedding(ids)?;
    let padded = padding.map(|i| ids.eq(i)).transpose()?;
    let hidden = |v: &Tensor, value: f64| match &padded {
        Some(p) => v.masked_fill(&p.unsqueeze(LAST)?, value),
        None => Ok(v.clone()),
    };
    // How much each id counts: 0 for padding.
    let counted = match &padded {
        Some(p) => p.logical_not()?.cast_at(weight.dtype(), site)?,
        None => filled(ids.shape(), Scalar::Float(1.0), weight.dtype(), ids, site)?,
    };
    let weighted = |v: Tensor| match per_sample_weights {
        Some(w) => v.mul(&w.unsqueeze(LAST)?),
        None => Ok(v),
    };
    let Some(offsets) = offsets else {
        return match mode {
            "max" if ids.shape()[1] > 0 => {
                let largest = hidden(&vectors, f64::NEG_INFINITY)?.amax(1)?;
                let empty = counted.sum(1)?.eq(0.0)?;
                largest.masked_fill(&empty.unsqueeze(LAST)?, 0.0)
            }
            "mean" => {
                let n = counted.sum(1)?.clamp_min(1.0)?;
                hidden(&vectors, 0.0)?.sum(1)?.div(&n.unsqueeze(LAST)?)
            }
            _ => weighted(hidden(&vectors, 0.0)?)?.sum(1),
        };
    };
    if offsets.ndim() != 1 || (include_last_offset && offsets.numel() == 0) {
        return Err(refused(Error::shape(format!("offsets have shape {:?}", offsets.shape()))));
    }
    let all = offsets.numel();
    let bags = all - usize::from(include_last_offset);
    let bag = numbers(ids, offsets, site)?;
    let added = |v: &Tensor| {
        invoke1(op!("index_sum"), &[Some(v), Some(&bag)], smallvec![AttrValue::from(all)], smallvec![], site)
    };
    let y = match mode {
        "sum" => added(&weighted(hidden(&vectors, 0.0)?)?)?,
        "mean" => {
            let n = added(&counted)?.clamp_min(1.0)?;
            added(&hidden(&vectors, 0.0)?)?.div(&n.unsqueeze(LAST)?)?
        }
        _ if ids.numel() == 0 => filled(&[all, weight.shape()[1]], Scalar::Float(0.0), weight.dtype(), ids, site)?,
        _ => {
            // Which ids are of which bag: [bags, ids].
            let attrs = smallvec![AttrValue::from(all), DType::Bool.into()];
            let mut own = invoke1(op!("one_hot"), &[Some(&bag)], attrs, smallvec![], site)?.t()?;
            if let Some(p) = &padded {
                own = own.logical_and(&p.logical_not()?)?;
            }
            let others = own.logical_not()?.unsqueeze(LAST)?;
            let shape = [all as i64, ids.numel() as i64, weight.shape()[1] as i64];
            let largest = vectors.unsqueeze(0)?.expand(shape)?.masked_fill(&others, f64::NEG_INFINITY)?.amax(1)?;
            let empty = own.any(1)?.logical_not()?;
            largest.masked_fill(&empty.unsqueeze(LAST)?, 0.0)?
        }
    };
    if bags == all { Ok(y) } else { y.narrow(0, 0, bags) }
}
