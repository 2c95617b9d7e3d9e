//! The key of a call: all that can change its plan, as words.

use super::call::{Call, Target};
use crate::context::AskedSbp;
use crate::intern::FixedHasher;
use crate::ops::{KeyWords, encode_sbp, generation};
use crate::tensor::{Body, Tensor};
use oflow_kernels::Scalar;
use std::hash::Hasher;

/// Everything that can change the plan, as words that no other call has: each part has a length or a tag before it, or one
/// word, and what is there at all stands in the first words. Values of runtime attributes are not in it (I7).
pub(super) fn key_of(call: &Call<'_>, asked: Option<&AskedSbp>) -> KeyWords {
    let mut key = KeyWords::new();
    let target = match call.target {
        None => 0u64,
        Some(Target::Local(_)) => 1,
        Some(Target::Global(..)) => 2,
    };
    let flags =
        target << 3 | (asked.is_some() as u64) << 2 | (call.recording as u64) << 1 | call.given.is_some() as u64;
    key.extend([call.op.id(), generation() << 8 | flags]);
    key.extend([call.inputs.len() as u64, call.attrs.len() as u64]);
    if let Some(a) = asked {
        encode_sbp(&a.sbp, &mut key);
    }
    for t in call.inputs {
        match t {
            None => key.push(0),
            Some(t) => {
                let given = matches!(call.given, Some(g) if g.same(t));
                key.push(of_type(t) << 2 | (given as u64) << 1 | t.requires_grad() as u64);
            }
        }
    }
    match call.target {
        None => {}
        Some(Target::Local(d)) => key.push(*d as u64),
        Some(Target::Global(p, s)) => {
            key.push(p.id());
            encode_sbp(s, &mut key);
        }
    }
    if let Some(g) = call.given {
        key.push(of_type(g));
    }
    call.attrs.iter().for_each(|a| a.encode(&mut key));
    key.extend(call.runtime.iter().map(|s| s.kind() as u64));
    key
}

/// The type of a tensor by its number, local and global ones apart; types are numbered from 1.
fn of_type(t: &Tensor) -> u64 {
    match (t.global(), t.body()) {
        (Some(g), _) => g.id() << 1 | 1,
        (None, Body::Local(l)) => l.ty.id() << 1,
        // What has no data has no plan.
        _ => 0,
    }
}

/// The key of a call with the values of its runtime attributes: a scalar operand or a seed that differs between ranks makes
/// tensors differ that are to be equal.
pub(super) fn with_runtime(key: u64, runtime: &[Scalar]) -> u64 {
    let mut h = FixedHasher::default();
    h.write_u64(key);
    for scalar in runtime {
        let (kind, bits) = match *scalar {
            Scalar::Bool(b) => (0, u64::from(b)),
            Scalar::Int(i) => (1, i as u64),
            // A NaN is a NaN, whatever made it.
            Scalar::Float(x) if x.is_nan() => (2, u64::MAX),
            Scalar::Float(x) => (2, x.to_bits()),
        };
        h.write_u64(bits ^ kind << 62);
    }
    h.finish()
}
