//! Attention whose queries, keys and values are all split along their sequences: the keys go round the ranks in pieces (Liu, Zaharia and
//! Abbeel, Ring Attention with Blockwise Transformers, 2023). In turn `t` a rank has the keys of the rank `t` before it; only these are
//! sent, from the rank that owns them. It is chosen where the gathered keys and values would take more than `gather_limit` bytes of a
//! rank's memory; below, gathering sends as many bytes in fewer messages, and where there are enough heads, exchanging sequences for heads
//! sends less.

use super::attention::{call_attrs, check, dtypes, shapes, whole_parts};
use super::slide::{narrow, range};
use super::softmax::{cast_to, widened};
use super::statistics;
use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Emit, InferCtx, LocalizeCtx, LowerCall, NdSignature, OpDef, SbpHints, Value};
use crate::placement::{Placement, shard_range, shards_within};
use crate::sbp::{NdSbp, Sbp, Signature};
use oflow_kernels::{DType, Dims, Scalar, ShardBox};
use smallvec::smallvec;
use std::ops::Range;

/// Bytes of keys and values that a rank gathers at most where nobody says otherwise: the default of `gather_limit`.
pub(crate) const GATHER_LIMIT: i64 = 256 << 20;

/// Pairs of parts in one turn: of the queries, and of the keys that these see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Parts of the queries and of the keys.
    pub(crate) parts: usize,
    /// How many parts before that of the queries the keys' part is, cyclically.
    pub(crate) turn: usize,
    /// All queries.
    pub(crate) queries: usize,
    /// All keys.
    pub(crate) keys: usize,
    /// Whether a query sees only the keys up to its own number.
    pub(crate) causal: bool,
}

impl Turn {
    fn of(c: &InferCtx<'_>, q: usize) -> Result<Turn> {
        Ok(Turn {
            parts: c.size("parts")?,
            turn: c.size("turn")?,
            queries: c.shape(q)?[2],
            keys: c.shape(q + 1)?[2],
            causal: c.bool("causal")?,
        })
    }

    /// Queries of part `i`.
    pub(crate) fn queries_of(&self, i: usize) -> Range<usize> {
        shard_range(self.queries, self.parts, i)
    }

    /// Keys of the part that part `i` of the queries meets; none where it sees none of them.
    pub(crate) fn keys_of(&self, i: usize) -> Range<usize> {
        let keys = shard_range(self.keys, self.parts, (i + self.parts - self.turn) % self.parts);
        let queries = self.queries_of(i);
        if queries.is_empty() || (self.causal && keys.start >= queries.end) { 0..0 } else { keys }
    }

    /// Part of the queries that meets part `j` of the keys.
    pub(crate) fn meets(&self, j: usize) -> usize {
        (j + self.turn) % self.parts
    }

    /// Keys of the largest part.
    pub(crate) fn largest(&self) -> usize {
        self.keys.div_ceil(self.parts)
    }
}

/// The least range that has all of them.
fn around(ranges: impl Iterator<Item = Range<usize>>) -> Range<usize> {
    let both = |a: Range<usize>, b: Range<usize>| a.start.min(b.start)..a.end.max(b.end);
    ranges.filter(|r| !r.is_empty()).reduce(both).unwrap_or(0..0)
}

/// Reads the keys and values that the queries here meet.
fn keys_met(c: &LocalizeCtx<'_>, q: usize) -> Result<Vec<Option<ShardBox>>> {
    let turn = Turn::of(c.logical, q)?;
    let mut reads = c.inputs.to_vec();
    let here = reads.get(q).and_then(Option::as_ref).map(|b| range(b, 2)).unwrap_or(0..0);
    let met = around(shards_within(turn.queries, turn.parts, &here).map(|i| turn.keys_of(i)));
    for b in reads.iter_mut().skip(q + 1).take(2).flatten() {
        narrow(b, 2, met.clone());
    }
    Ok(reads)
}

/// Reads the pieces that belong to the keys here.
fn pieces_of_keys(c: &LocalizeCtx<'_>) -> Result<Vec<Option<ShardBox>>> {
    let turn = returning(c.logical)?;
    let mut reads = c.inputs.to_vec();
    let seen = shards_within(turn.keys, turn.parts, &range(&c.outputs[0], 2)).map(|j| turn.meets(j));
    let met = around(seen.filter(|i| !turn.keys_of(*i).is_empty()).map(|i| i..i + 1));
    if let Some(Some(b)) = reads.first_mut() {
        narrow(b, 0, met);
    }
    Ok(reads)
}

/// The turn whose pieces come back.
fn returning(c: &InferCtx<'_>) -> Result<Turn> {
    Ok(Turn {
        parts: c.shape(0)?[0],
        turn: c.size("turn")?,
        queries: c.size("queries")?,
        keys: c.size("keys")?,
        causal: c.bool("causal")?,
    })
}

fn turn_exists(parts: i64, turn: i64) -> Result<()> {
    if 0 <= turn && turn < parts {
        return Ok(());
    }
    let e = Error::argument(format!("turn {turn} does not exist where {parts} parts take turns"));
    Err(e.help("there is at least one part, and as many turns as parts, which count from 0"))
}

fn check_turn(c: &InferCtx<'_>) -> Result<()> {
    turn_exists(c.int("parts")?, c.int("turn")?)
}

/// Whether the keys and values that a rank would gather take more than the limit.
fn goes_round(c: &InferCtx<'_>, placement: &Placement, k: usize, keys: &NdSbp) -> Result<bool> {
    let others: usize = placement
        .dims()
        .iter()
        .zip(keys.iter())
        .filter(|(_, s)| matches!(s, Sbp::Split(0 | 1)))
        .map(|(n, _)| n)
        .product();
    let bytes = |i: usize| c.input(i).map(|t| t.len().saturating_mul(t.dtype.size()));
    Ok(bytes(k)?.saturating_add(bytes(k + 1)?) / others.max(1) > c.size("gather_limit")?)
}

/// Adds the signature in which all sequences are split, from input `q` on: its number among the lowerings of the op is `number`.
pub(super) fn going_round(
    op: OpDef,
    (q, number): (usize, u8),
    run: impl Fn(&mut dyn Emit, &LowerCall<'_>) -> Result<Vec<Value>> + Send + Sync + 'static,
) -> OpDef {
    let outputs = op.sig.outputs.len();
    let time = Sbp::Split(2);
    let inputs = op.sig.inputs.len();
    op.lowering(
        move |c| {
            Ok((c.shape(q + 1)?[2] > 0)
                .then(|| Signature::new(&vec![time; inputs], &vec![time; outputs]))
                .into_iter()
                .collect())
        },
        run,
    )
    .nd_valid(move |c, placement, sig| {
        sig.lowering != Some(number) || goes_round(c, placement, q + 1, &sig.inputs[q + 1]).unwrap_or(false)
    })
    .nd_choose(move |c, placement, hints| chosen(c, placement, hints, (q, number)))
}

/// The signature in which keys go round, where queries, keys and values are split alike, also along their sequences.
fn chosen(
    c: &InferCtx<'_>,
    placement: &Placement,
    hints: &SbpHints<'_>,
    (q, number): (usize, u8),
) -> Result<Option<NdSignature>> {
    let Some(Some(keys)) = hints.inputs.get(q + 1) else { return Ok(None) };
    let alike = (q..q + 3).all(|i| hints.inputs.get(i).is_some_and(|s| s.as_ref() == Some(keys)));
    let axes = || placement.dims().iter().zip(keys.iter());
    let split = axes().any(|(n, s)| *n > 1 && *s == Sbp::Split(2));
    // Exchanging sequences for heads moves less than both ways.
    let heads: usize = axes().filter(|(_, s)| matches!(s, Sbp::Split(1 | 2))).map(|(n, _)| n).product();
    if c.shape(q)?[1].is_multiple_of(heads) {
        return Ok(None);
    }
    let bears = axes().all(|(_, s)| matches!(s, Sbp::Broadcast | Sbp::Split(0..=2)));
    if !(alike && split && bears && c.shape(q + 1)?[2] > 0 && goes_round(c, placement, q + 1, keys)?) {
        return Ok(None);
    }
    let (inputs, outputs) = (c.op.sig.inputs.len(), c.op.sig.outputs.len());
    let sig = NdSignature {
        inputs: smallvec![keys.clone(); inputs],
        outputs: smallvec![keys.clone(); outputs],
        lowering: Some(number),
    };
    Ok(as_asked(sig, hints))
}

/// The signature, unless another layout of the result is asked for: then the costs decide.
fn as_asked(sig: NdSignature, hints: &SbpHints<'_>) -> Option<NdSignature> {
    hints.output.is_none_or(|asked| sig.outputs.first() == Some(asked)).then_some(sig)
}

/// The layout of pieces whose steps have that layout: the parts of a sequence are listed along dim 0.
fn listed(steps: &NdSbp) -> NdSbp {
    steps.map(|s| match s {
        Sbp::Split(2) => Sbp::Split(0),
        Sbp::Split(d) if d < 2 => Sbp::Split(d + 1),
        other => other,
    })
}

/// The signature that reads windows, where what is given is split along sequences: `outputs` are laid out like the first input or, where
/// they say so, as pieces. Gathering would cost less than several windows where the ranks are few, and take the memory that turns save.
fn by_windows(c: &InferCtx<'_>, hints: &SbpHints<'_>, pieces: &[bool]) -> Option<NdSignature> {
    let first = hints.inputs.first()?.as_ref()?;
    let alike = hints.inputs.iter().all(|s| s.as_ref() == Some(first));
    let bears = first.iter().all(|s| matches!(s, Sbp::Broadcast | Sbp::Split(0..=2)));
    let sig = || NdSignature {
        inputs: smallvec![first.clone(); c.op.sig.inputs.len()],
        outputs: pieces.iter().map(|piece| if *piece { listed(first) } else { first.clone() }).collect(),
        lowering: Some(0),
    };
    (alike && bears && first.contains(&Sbp::Split(2))).then(sig).and_then(|sig| as_asked(sig, hints))
}

/// A number for each query, beside rows.
fn beside(e: &mut dyn Emit, v: Value) -> Result<Value> {
    let mut shape = e.shape(v);
    shape.push(1);
    e.call("reshape", &[v], &[("shape", shape.as_slice().into())])
}

/// Attention, turn by turn. The results so far are kept as the largest `lse`, the sum of the weights beside it, and the weighted sum.
pub(super) fn forward(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let qkv = [call.input(0)?, call.input(1)?, call.input(2)?];
    let (dtype, parts) = (e.dtype(qkv[0]), e.shards(qkv[1], 2));
    let attrs = call_attrs(call)?;
    // A finite number, also where a query sees none of a turn's keys: then every weight is zero.
    let least = if statistics(dtype) == DType::F64 { f64::MIN } else { f64::from(f32::MIN) };
    let mut so_far: Option<[Value; 3]> = None;
    for turn in 0..parts {
        let mut attrs = attrs.to_vec();
        attrs.extend([("parts", parts.into()), ("turn", turn.into())]);
        let found = e.emit("ring_attention_step", &qkv.map(Some), &attrs)?;
        let (out, lse) = (widened(e, found[0])?, found[1]);
        let most = e.call("clamp_min", &[lse], &[("min", Scalar::Float(least).into())])?;
        so_far = Some(match so_far {
            None => {
                let weight = weight(e, lse, most)?;
                [most, weight, out]
            }
            Some([before, sum, acc]) => {
                let most = e.call("maximum", &[before, most], &[])?;
                let (old, new) = (weight(e, before, most)?, weight(e, lse, most)?);
                let sum = e.call("mul", &[sum, old], &[])?;
                let sum = e.call("add", &[sum, new], &[])?;
                let (old, new) = (beside(e, old)?, beside(e, new)?);
                let acc = e.call("mul", &[acc, old], &[])?;
                let out = e.call("mul", &[out, new], &[])?;
                [most, sum, e.call("add", &[acc, out], &[])?]
            }
        });
    }
    let Some([most, sum, acc]) = so_far else { return Err(Error::registry("attention in no turns")) };
    // The largest weight is 1, so less is nothing: then the result is zero.
    let by = e.call("clamp_min", &[sum], &[("min", Scalar::Float(1.0).into())])?;
    let by = beside(e, by)?;
    let out = e.call("div", &[acc, by], &[])?;
    let log = e.call("log", &[sum], &[])?;
    let lse = e.call("add", &[log, most], &[])?;
    Ok(vec![cast_to(e, out, dtype)?, lse])
}

/// `exp(lse - most)`
fn weight(e: &mut dyn Emit, lse: Value, most: Value) -> Result<Value> {
    let below = e.call("sub", &[lse, most], &[])?;
    e.call("exp", &[below], &[])
}

/// Gradients, turn by turn: those of keys and values are sent back to the rank that owns them.
pub(super) fn backward(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let inputs = (0..6).map(|i| call.input(i)).collect::<Result<Vec<_>>>()?;
    let (dtype, parts) = (e.dtype(inputs[1]), e.shards(inputs[2], 2));
    let (queries, keys) = (e.shape(inputs[1])[2], e.shape(inputs[2])[2]);
    let attrs = call_attrs(call)?;
    let given: Vec<Option<Value>> = inputs.iter().copied().map(Some).collect();
    let mut sums: [Option<Value>; 3] = [None; 3];
    for turn in 0..parts {
        let mut step = attrs.to_vec();
        step.extend([("parts", parts.into()), ("turn", turn.into())]);
        let found = e.emit("ring_attention_step_grad", &given, &step)?;
        let home = [
            ("keys", keys.into()),
            ("turn", turn.into()),
            ("queries", queries.into()),
            ("causal", call.bool("causal")?.into()),
        ];
        for (i, sum) in sums.iter_mut().enumerate() {
            let part = if i == 0 { found[0] } else { e.call("ring_attention_return", &[found[i]], &home)? };
            let part = widened(e, part)?;
            *sum = Some(match *sum {
                None => part,
                Some(sum) => e.call("add", &[sum, part], &[])?,
            });
        }
    }
    sums.into_iter().map(|s| cast_to(e, s.ok_or_else(|| Error::registry("attention in no turns"))?, dtype)).collect()
}

/// Whether each rank has the queries of the pieces that it makes.
fn pieces_fit(c: &InferCtx<'_>, placement: &Placement, sig: &NdSignature) -> Result<bool> {
    Ok(whole_parts((c.shape(1)?, &sig.inputs[1]), (c.size("parts")?, &sig.outputs[1]), placement))
}

fn step() -> Result<OpDef> {
    let (b, p, time) = (Sbp::Broadcast, Sbp::PARTIAL_SUM, Sbp::Split(2));
    Ok(OpDef::new(
        "ring_attention_step(q: float, k: float, v: float; parts: int, turn: int, causal: bool = false, scale: runtime float) -> (out, lse)",
    )?
    .doc(
        "One turn of ring attention: the sequences are cut into `parts` balanced parts, and part i of the queries sees part (i - turn) \
         mod parts of the keys alone. A query that sees nothing gives 0, and minus infinity as the logarithm of its sum. No gradient: \
         `attention`, which is made of such turns, has it.",
    )
    .by_name_only()
    .strided()
    .check(|c| check(c, 0).and_then(|()| check_turn(c)))
    .shapes(|c| Ok(shapes(c)?.into_iter().collect()))
    .dtype(dtypes())
    .get_sbp(move |_| {
        let mut s: Vec<Signature> = (0..2).map(|d| Signature::new(&[Sbp::Split(d); 3], &[Sbp::Split(d); 2])).collect();
        s.push(Signature::new(&[time, b, b], &[time, time]));
        s.push(Signature::new(&[b, b, Sbp::Split(3)], &[Sbp::Split(3), b]));
        s.push(Signature::new(&[b, b, p], &[p, b]));
        Ok(s)
    })
    .windows(move |_| Ok(vec![Signature::new(&[time; 3], &[time; 2])]), |c| keys_met(c, 0))
    .nd_choose(|c, _, hints| Ok(by_windows(c, hints, &[false, false])))
    .flops(|c| Ok((c.input(0)?.len() as u64).saturating_mul(4 * (c.shape(1)?[2] / c.size("parts")?) as u64)))
    .samples(&[
        "f64[2, 2, 4, 3] f64[2, 2, 6, 3] f64[2, 2, 6, 2]; parts=2, turn=1, scale=0.5",
        "f64[1, 2, 7, 3] f64[1, 2, 7, 3] f64[1, 2, 7, 2]; parts=3, turn=1, causal=true, scale=0.5",
        "f32[1, 2, 3, 3] f32[1, 2, 5, 3] f32[1, 2, 5, 2]; parts=4, turn=3, scale=0.5",
    ]))
}

fn step_grad() -> Result<OpDef> {
    let (b, time, part) = (Sbp::Broadcast, Sbp::Split(2), Sbp::Split(0));
    Ok(OpDef::new(
        "ring_attention_step_grad(dout: float, q: float, k: float, v: float, out: float, lse: float; parts: int, turn: int, causal: bool = false, scale: runtime float) -> (dq, dk, dv)",
    )?
    .doc(
        "Gradients of one turn of ring attention, from the results of all turns. Piece i of `dk` and `dv`, which have a leading dim of \
         `parts`, is what part i of the queries gives to the keys that it meets; pieces are as long as the longest part, with zeros \
         at the end.",
    )
    .by_name_only()
    .strided()
    .check(|c| {
        check(c, 1)?;
        check_turn(c)?;
        super::attention::check_results(c)
    })
    .shapes(|c| {
        let turn = Turn::of(c, 1)?;
        let piece = |of: &[usize]| Dims::from_iter([turn.parts, of[0], of[1], turn.largest(), of[3]]);
        Ok(smallvec![c.shape(1)?.into(), piece(c.shape(2)?), piece(c.shape(3)?)])
    })
    .dtype(DTypeRule::Input(1))
    .get_sbp(move |_| {
        let at = |d: usize| Signature::new(&[Sbp::Split(d); 6], &[Sbp::Split(d), Sbp::Split(d + 1), Sbp::Split(d + 1)]);
        Ok(vec![at(0), at(1), Signature::new(&[time, time, b, b, time, time], &[time, part, part])])
    })
    .windows(move |_| Ok(vec![Signature::new(&[time; 6], &[time, part, part])]), |c| keys_met(c, 1))
    .nd_valid(|c, placement, sig| pieces_fit(c, placement, sig).unwrap_or(false))
    .nd_choose(|c, placement, hints| {
        let fits = |sig: &NdSignature| pieces_fit(c, placement, sig).unwrap_or(false);
        Ok(by_windows(c, hints, &[false, true, true]).filter(fits))
    })
    .traits(|t| t.run_empty = true)
    .samples(&[
        "f64[2, 2, 4, 2] f64[2, 2, 4, 3] f64[2, 2, 6, 3] f64[2, 2, 6, 2] f64[2, 2, 4, 2] f64[2, 2, 4]+; parts=2, turn=1, scale=0.5",
        "f64[1, 2, 7, 2] f64[1, 2, 7, 3] f64[1, 2, 7, 3] f64[1, 2, 7, 2] f64[1, 2, 7, 2] f64[1, 2, 7]+; parts=3, turn=1, causal=true, scale=0.5",
        "f32[1, 2, 4, 2] f32[1, 2, 4, 3] f32[1, 2, 6, 3] f32[1, 2, 6, 2] f32[1, 2, 4, 2] f32[1, 2, 4]+; parts=4, turn=2, scale=0.5",
    ]))
}

fn give_back() -> Result<OpDef> {
    let (p, time, part) = (Sbp::PARTIAL_SUM, Sbp::Split(2), Sbp::Split(0));
    Ok(OpDef::new("ring_attention_return(x: float; keys: int, turn: int, queries: int, causal: bool = false) -> out")?
        .doc(
            "What the pieces of a turn of ring attention give to each of the `keys`: those of part j are in piece (j + turn) mod parts. 0 \
             for keys that no query of the turn sees.",
        )
        .by_name_only()
        .strided()
        .check(|c| {
            let x = c.shape(0)?;
            if x.len() != 5 || x[0] == 0 {
                let e = Error::shape(format!("pieces of gradients of keys do not have the shape {x:?}"));
                return Err(e.help("they are [parts, B, H, T, D] with at least one part"));
            }
            turn_exists(x[0] as i64, c.int("turn")?)?;
            let turn = returning(c)?;
            if turn.largest() != x[3] {
                let e = Error::shape(format!("{} keys in {} parts do not fit pieces of {}", turn.keys, x[0], x[3]));
                return Err(e.help("a piece is as long as the longest part"));
            }
            Ok(())
        })
        .shape1(|c| {
            let x = c.shape(0)?;
            Ok(Dims::from_iter([x[1], x[2], c.size("keys")?, x[4]]))
        })
        .get_sbp(move |_| {
            let at = |d: usize| Signature::new(&[Sbp::Split(d + 1)], &[Sbp::Split(d)]);
            Ok(vec![at(0), at(1), at(3), Signature::new(&[Sbp::Broadcast], &[time]), Signature::new(&[p], &[p])])
        })
        .windows(move |_| Ok(vec![Signature::new(&[part], &[time])]), pieces_of_keys)
        .nd_choose(|_, _, hints| {
            let Some(Some(pieces)) = hints.inputs.first() else { return Ok(None) };
            let steps = pieces.map(|s| match s {
                Sbp::Split(0) => Sbp::Split(2),
                Sbp::Split(d @ (1 | 2)) => Sbp::Split(d - 1),
                other => other,
            });
            let bears = pieces.iter().all(|s| matches!(s, Sbp::Broadcast | Sbp::Split(0..=2)));
            let sig = NdSignature { inputs: smallvec![pieces.clone()], outputs: smallvec![steps], lowering: Some(0) };
            Ok((bears && pieces.contains(&Sbp::Split(0))).then_some(sig).and_then(|sig| as_asked(sig, hints)))
        })
        .samples(&[
            "f64[3, 2, 2, 3, 4]; keys=8, turn=2, queries=5",
            "f64[3, 1, 2, 3, 2]; keys=7, turn=1, queries=7, causal=true",
            "f32[4, 1, 2, 1, 2]; keys=3, turn=1, queries=9",
        ]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![step(), step_grad(), give_back()]
}
