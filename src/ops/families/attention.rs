//! Scaled dot-product attention over `[B, H, T, D]`, with memory linear in the length.

use super::attention_grad::{gradient, gradient_of_parts, second_gradient};
use super::softmax::{cast_to, reduce_whole, widened};
use super::{ring_attention, statistics};
use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Emit, Grad, InferCtx, LowerCall, NdSignature, OpDef, Value};
use crate::placement::{Placement, shard_range};
use crate::sbp::{NdSbp, Sbp, Signature, shard_box};
use oflow_kernels::{DType, Dims, Scalar};
use smallvec::smallvec;

pub(super) fn check(c: &InferCtx<'_>, q: usize) -> Result<()> {
    match (c.shape(q)?, c.shape(q + 1)?, c.shape(q + 2)?) {
        ([b, h, _, d], [b2, h2, t, d2], [b3, h3, t2, _])
            if b == b2 && b == b3 && h == h2 && h == h3 && d == d2 && t == t2 =>
        {
            super::one_dtype(c, &[q, q + 1, q + 2])
        }
        (q, k, v) => Err(Error::shape(format!("queries {q:?}, keys {k:?} and values {v:?} do not fit"))
            .help("they are [B, H, Tq, D], [B, H, Tk, D] and [B, H, Tk, Dv]")),
    }
}

/// Shapes of the result and of `lse`.
pub(super) fn shapes(c: &InferCtx<'_>) -> Result<[Dims; 2]> {
    let (q, v) = (c.shape(0)?, c.shape(2)?);
    let lse: Dims = q[..3].into();
    let mut out = lse.clone();
    out.push(v[3]);
    Ok([out, lse])
}

/// The dtypes of the result and of `lse`.
pub(super) fn dtypes() -> DTypeRule {
    DTypeRule::Fn(std::sync::Arc::new(|c| {
        let d = c.input(0)?.dtype;
        Ok([d, statistics(d)].into_iter().collect())
    }))
}

fn flops(c: &InferCtx<'_>) -> Result<u64> {
    Ok((c.input(0)?.len() as u64).saturating_mul(4 * c.shape(1)?[2] as u64))
}

/// Mask and scale of the call.
pub(super) fn call_attrs(call: &LowerCall<'_>) -> Result<[(&'static str, AttrValue); 2]> {
    Ok([("causal", call.bool("causal")?.into()), ("scale", call.runtime("scale")?)])
}

/// Attention over split keys: of all queries and a rank's own keys, then weighted by how much of each query's sum those are.
fn merged(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let qkv = [call.input(0)?, call.input(1)?, call.input(2)?];
    let (dtype, shards) = (e.dtype(qkv[0]), e.shards(qkv[1], 2));
    let [causal, scale] = call_attrs(call)?;
    let parts = e.emit("attention_parts", &qkv.map(Some), &[("parts", shards.into()), causal, scale])?;
    let (out, lse) = (widened(e, parts[0])?, parts[1]);
    let over_parts = AttrValue::from([0i64]);
    let most = reduce_whole(e, "amax", lse, over_parts.clone())?;
    // A finite number, also where a query's scores are all minus infinity: then every weight is zero.
    let least = if e.dtype(lse) == DType::F64 { f64::MIN } else { f64::from(f32::MIN) };
    let most = e.call("clamp_min", &[most], &[("min", Scalar::Float(least).into())])?;
    let below = e.call("sub", &[lse, most], &[])?;
    let weights = e.call("exp", &[below], &[])?;
    let sum = reduce_whole(e, "sum", weights, over_parts.clone())?;
    let mut beside = e.shape(weights);
    beside.push(1);
    let weights = e.call("reshape", &[weights], &[("shape", beside.as_slice().into())])?;
    let out = e.call("mul", &[out, weights], &[])?;
    let out = e.call("sum", &[out], &[("dims", over_parts)])?;
    let out = e.reduce_partials(out)?;
    // The largest weight is 1, so less is nothing: then the result is zero.
    let by = e.call("clamp_min", &[sum], &[("min", Scalar::Float(1.0).into())])?;
    let by = e.call("reshape", &[by], &[("shape", beside[1..].into())])?;
    let out = e.call("div", &[out, by], &[])?;
    let log = e.call("log", &[sum], &[])?;
    let lse = e.call("add", &[log, most], &[])?;
    let lse = e.call("reshape", &[lse], &[("shape", beside[1..4].into())])?;
    Ok(vec![cast_to(e, out, dtype)?, lse])
}

/// Whether each rank has the steps of its parts: steps `[B, H, T, D]` of which balanced parts are listed along dim 0 of another tensor.
pub(super) fn whole_parts(
    (shape, steps): (&[usize], &NdSbp),
    (parts, listed): (usize, &NdSbp),
    placement: &Placement,
) -> bool {
    if !steps.contains(&Sbp::Split(2)) {
        return true;
    }
    let list: Dims = [parts].into_iter().collect();
    (0..placement.len()).all(|p| {
        let own = shard_box(shape, placement, steps, p);
        let at = listed.map(|s| if s == Sbp::Split(0) { s } else { Sbp::Broadcast });
        let mine = shard_box(&list, placement, &at, p);
        let (first, end) = (mine.offset[0], mine.offset[0] + mine.size[0]);
        let range = match first == end {
            true => 0..0,
            false => shard_range(shape[2], parts, first).start..shard_range(shape[2], parts, end - 1).end,
        };
        range.len() == own.size[2] && (range.is_empty() || range.start == own.offset[2])
    })
}

/// Whether each rank has the keys of its parts.
fn parts_fit(c: &InferCtx<'_>, placement: &Placement, sig: &NdSignature) -> Result<bool> {
    Ok(whole_parts((c.shape(1)?, &sig.inputs[1]), (c.size("parts")?, &sig.outputs[0]), placement))
}

/// Checks the results of forward among the inputs of a gradient: `dout`, and `out` and `lse` behind queries, keys and values.
pub(super) fn check_results(c: &InferCtx<'_>) -> Result<()> {
    super::one_dtype(c, &[0, 1, 4])?;
    super::dtype_is(c, 5, statistics(c.input(1)?.dtype))?;
    let (q, v) = (c.shape(1)?, c.shape(3)?);
    let out = [q[0], q[1], q[2], v[3]];
    super::dims_are(c, 0, &out)?;
    super::dims_are(c, 4, &out)?;
    super::dims_are(c, 5, &q[..3])
}

fn attention_parts() -> Result<OpDef> {
    let (b, p) = (Sbp::Broadcast, Sbp::PARTIAL_SUM);
    let mut def = OpDef::new(
        "attention_parts(q: float, k: float, v: float; parts: int, causal: bool = false, scale: runtime float) -> (out, lse: no_grad)",
    )?
    .doc(
        "Attention with each of `parts` balanced parts of the keys alone: what ranks that hold such parts compute. A part of which a \
         query sees nothing gives 0, and minus infinity as the logarithm of its sum. Only `out` has a gradient.",
    )
    .by_name_only()
    .strided()
    .check(|c| {
        check(c, 0)?;
        match c.int("parts")? {
            1.. => Ok(()),
            n => Err(Error::argument(format!("keys {:?} cannot be {n} parts", c.shape(1)?)).help("one or more")),
        }
    })
    .shapes(|c| {
        let parts = c.size("parts")?;
        Ok(shapes(c)?.map(|s| std::iter::once(parts).chain(s).collect()).into_iter().collect())
    })
    .dtype(dtypes())
    .get_sbp(move |_| {
        let mut s: Vec<Signature> =
            (0..2).map(|d| Signature::new(&[Sbp::Split(d); 3], &[Sbp::Split(d + 1); 2])).collect();
        let (time, part) = (Sbp::Split(2), Sbp::Split(0));
        s.push(Signature::new(&[time, b, b], &[Sbp::Split(3); 2]));
        s.push(Signature::new(&[b, time, time], &[part; 2]));
        s.push(Signature::new(&[b, b, Sbp::Split(3)], &[Sbp::Split(4), b]));
        s.push(Signature::new(&[b, b, p], &[p, b]));
        Ok(s)
    })
    .localize(|c| c.with("parts", c.outputs[0].size[0]))
    .flops(flops)
    .grad(Grad::rule_saving(&[0, 1, 2], &[1], gradient_of_parts))
    .samples(&[
        "f64[2, 2, 3, 4] f64[2, 2, 5, 4] f64[2, 2, 5, 6]; parts=2, scale=0.5",
        "f64[1, 2, 5, 3] f64[1, 2, 6, 3] f64[1, 2, 6, 2]; parts=3, causal=true, scale=0.5",
        "f32[1, 2, 4, 3] f32[1, 2, 3, 3] f32[1, 2, 3, 2]; parts=4, causal=true, scale=0.5",
    ]);
    def.nd_valid = Some(std::sync::Arc::new(|c, placement, sig| parts_fit(c, placement, sig).unwrap_or(false)));
    Ok(def)
}

fn limit_is(c: &InferCtx<'_>) -> Result<()> {
    match c.int("gather_limit")? {
        0.. => Ok(()),
        n => Err(Error::argument(format!("'gather_limit' is {n} bytes")).help("0 or more; 0 never gathers")),
    }
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let (b, p) = (Sbp::Broadcast, Sbp::PARTIAL_SUM);
    // Batch and heads split everything.
    let both = |ins: usize, outs: usize| -> Vec<Signature> {
        (0..2).map(|d| Signature::new(&vec![Sbp::Split(d); ins], &vec![Sbp::Split(d); outs])).collect()
    };
    vec![
        OpDef::new("attention(q: float, k: float, v: float; causal: bool = false, gather_limit: int = 268435456, scale: runtime float) -> (out, lse)")
            .map(|o| {
                let o = o
                    .doc(
                        "softmax(scale q kᵀ) v; causal: query i sees keys 0..=i. Keys and values of split sequences go round the ranks \
                         where a rank would gather more than `gather_limit` bytes of them.",
                    )
                    .strided()
                    .check(|c| check(c, 0).and_then(|()| limit_is(c)))
                    .shapes(|c| Ok(shapes(c)?.into_iter().collect()))
                    .dtype(dtypes())
                    .get_sbp(move |_| {
                        let mut s = both(3, 2);
                        let q = Sbp::Split(2);
                        s.push(Signature::new(&[q, b, b], &[q, q]));
                        s.push(Signature::new(&[b, b, Sbp::Split(3)], &[Sbp::Split(3), b]));
                        s.push(Signature::new(&[b, b, p], &[p, b]));
                        Ok(s)
                    })
                    .lowering(
                        move |c| {
                            // Without keys nothing is there to be weighted.
                            let keys = Sbp::Split(2);
                            let some = c.shape(1)?[2] > 0;
                            Ok(some.then(|| Signature::new(&[b, keys, keys], &[b, b])).into_iter().collect())
                        },
                        merged,
                    )
                    .flops(flops)
                    .grad(Grad::rule_saving(&[0, 1, 2], &[0, 1], gradient))
                    .samples(&[
                        "f32[2, 3, 5, 4] f32[2, 3, 5, 4] f32[2, 3, 5, 4]; causal=true, scale=0.5",
                        "f64[2, 2, 3, 4] f64[2, 2, 5, 4] f64[2, 2, 5, 6]; scale=0.5",
                        "f64[1, 2, 4, 3] f64[1, 2, 9, 3] f64[1, 2, 9, 2]; causal=true, scale=0.5",
                        "f32[1, 2, 9, 3] f32[1, 2, 4, 3] f32[1, 2, 4, 2]; causal=true, scale=0.5",
                        "f64[1, 2, 7, 3] f64[1, 2, 9, 3] f64[1, 2, 9, 2]; gather_limit=0, scale=0.5",
                        "f64[1, 2, 8, 3] f64[1, 2, 8, 3] f64[1, 2, 8, 2]; causal=true, gather_limit=0, scale=0.5",
                    ]);
                ring_attention::going_round(o, (0, 1), ring_attention::forward)
            }),
        OpDef::new(
            "attention_grad(dout: float, q: float, k: float, v: float, out: float, lse: float; causal: bool = false, gather_limit: int = 268435456, scale: runtime float) -> (dq, dk, dv)",
        )
        .map(|o| {
            let o = o
                .doc("Gradients of attention, from its inputs and results.")
                .by_name_only()
                .strided()
                .check(|c| check(c, 1).and_then(|()| check_results(c)).and_then(|()| limit_is(c)))
                .shapes(|c| Ok(smallvec![c.shape(1)?.into(), c.shape(2)?.into(), c.shape(3)?.into()]))
                .dtype(DTypeRule::Input(1))
                .get_sbp(move |_| {
                    let mut s = both(6, 3);
                    let time = Sbp::Split(2);
                    s.push(Signature::new(&[time, time, b, b, time, time], &[time, p, p]));
                    s.push(Signature::new(&[b, b, time, time, b, b], &[p, time, time]));
                    Ok(s)
                })
                .grad(Grad::rule_saving(&[0, 1, 2, 3, 4, 5], &[], second_gradient))
                .traits(|t| t.run_empty = true)
                .samples(&[
                    "f64[2, 2, 3, 4] f64[2, 2, 3, 4] f64[2, 2, 3, 4] f64[2, 2, 3, 4] f64[2, 2, 3, 4] f64[2, 2, 3]+; causal=true, scale=0.5",
                    "f64[1, 2, 3, 2] f64[1, 2, 3, 4] f64[1, 2, 5, 4] f64[1, 2, 5, 2] f64[1, 2, 3, 2] f64[1, 2, 3]+; scale=0.5",
                    "f64[1, 2, 6, 2] f64[1, 2, 6, 3] f64[1, 2, 4, 3] f64[1, 2, 4, 2] f64[1, 2, 6, 2] f64[1, 2, 6]+; causal=true, scale=0.5",
                    "f64[1, 2, 7, 2] f64[1, 2, 7, 3] f64[1, 2, 9, 3] f64[1, 2, 9, 2] f64[1, 2, 7, 2] f64[1, 2, 7]+; gather_limit=0, scale=0.5",
                    "f64[1, 2, 8, 2] f64[1, 2, 8, 3] f64[1, 2, 8, 3] f64[1, 2, 8, 2] f64[1, 2, 8, 2] f64[1, 2, 8]+; causal=true, gather_limit=0, scale=0.5",
                ]);
            ring_attention::going_round(o, (1, 0), ring_attention::backward)
        }),
        attention_parts(),
    ]
}
