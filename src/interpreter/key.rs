//! The key of a call: all that can change its plan, as words.

use super::call::Call;
use crate::context::{AskedSbp, keeping};
use crate::ops::{KeyWords, encode_sbp, generation};
use crate::plan::Target;
use crate::tensor::{Body, Tensor};

/// Everything that can change the plan, as words that no other call has: each part has a length or a tag before it, or one
/// word, and what is there at all stands in the first words. Values of runtime attributes are not in it (I7).
#[inline]
pub(super) fn key_of(call: &Call<'_>, asked: Option<&AskedSbp>) -> KeyWords {
    let mut key = KeyWords::new();
    let target = match call.target {
        None => 0u64,
        Some(Target::Local(_)) => 1,
        Some(Target::Global(..)) => 2,
    };
    let flags = target << 4
        | (keeping() as u64) << 3
        | (asked.is_some() as u64) << 2
        | (call.recording as u64) << 1
        | call.given.is_some() as u64;
    for word in [call.op.id(), generation() << 8 | flags, call.inputs.len() as u64, call.attrs.len() as u64] {
        key.push(word);
    }
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
        Some(Target::Local(d)) => key.push(d.number().into()),
        Some(Target::Global(p, s)) => {
            key.push(p.id());
            encode_sbp(s, &mut key);
        }
    }
    if let Some(g) = call.given {
        key.push(of_type(g));
    }
    call.attrs.iter().for_each(|a| a.encode(&mut key));
    for s in &call.runtime {
        key.push(s.kind() as u64);
    }
    key
}

/// The type of a tensor by its number, local and global ones apart; types are numbered from 1.
#[inline]
fn of_type(t: &Tensor) -> u64 {
    match (t.global(), t.body()) {
        (Some(g), _) => g.id() << 1 | 1,
        (None, Body::Local(l)) => l.ty.id() << 1,
        // What has no data has no plan.
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{CallSite, Result};
    use crate::intern::FixedMap;
    use crate::ops::{AttrValue, find};
    use crate::placement::{Device, Placement};
    use crate::sbp::{NdSbp, Sbp};
    use crate::tensor::LocalTensor;
    use oflow_kernels::Scalar;
    use smallvec::SmallVec;

    /// Calls at random from few parts, so that many are equal and many differ in one part: equal keys are equal calls.
    #[test]
    fn i7_equal_keys_are_equal_calls() -> Result<()> {
        crate::context::run_ranks(1, |world| {
            let mesh = Placement::of_world(Device::Cpu, 1)?;
            let square = mesh.mesh(&[("a", 1), ("b", 1)])?;
            let sbps: Vec<NdSbp> = [Sbp::Broadcast, Sbp::PARTIAL_SUM, Sbp::Split(0), Sbp::Split(usize::MAX - 15)]
                .iter()
                .flat_map(|a| [NdSbp::new(&[*a]), NdSbp::new(&[*a, Sbp::Broadcast]), NdSbp::new(&[])])
                .collect();
            let local = |n: usize| -> Result<Tensor> {
                Ok(Tensor::from_local(LocalTensor::alloc_like(
                    world.ctx(),
                    &[n],
                    oflow_kernels::DType::F32,
                    Device::Cpu,
                )?))
            };
            let mut tensors = vec![local(1)?, local(2)?, local(2)?.requires_grad_(true)?];
            for p in [&mesh, &square] {
                let b = NdSbp::broadcast(p.axes());
                let ty = local(2)?.ty().clone();
                tensors.push(Tensor::from_shard(crate::tensor::intern_global(ty, p, &b), None));
            }
            let mut targets = vec![None, Some(Target::Local(Device::Cpu)), Some(Target::Local(Device::Cuda))];
            targets.extend(
                [&mesh, &square]
                    .iter()
                    .flat_map(|p| sbps.iter().map(|s| Some(Target::Global((*p).clone(), s.clone())))),
            );
            let values: Vec<AttrValue> = vec![
                0i64.into(),
                1i64.into(),
                true.into(),
                [0i64].into(),
                [0i64, 1].into(),
                AttrValue::Absent,
                (&mesh).into(),
                sbps[0].clone().into(),
                sbps[1].clone().into(),
                Device::Cuda.into(),
            ];
            let ops = [find("add")?, find("full")?, find("concat")?];
            let mut state = 7u64;
            let mut pick = |n: usize| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (state >> 33) as usize % n
            };
            let mut seen: FixedMap<KeyWords, String> = FixedMap::default();
            let mut again = 0;
            for _ in 0..100_000 {
                let inputs: SmallVec<[Option<&Tensor>; 4]> =
                    (0..pick(3)).map(|_| (pick(4) > 0).then(|| pick(tensors.len())).map(|i| &tensors[i])).collect();
                let asked = (pick(4) == 0).then(|| sbps[pick(sbps.len())].clone());
                let asked = asked.and_then(|s| crate::context::with_sbp(s, || crate::context::asked_sbp(ops[0], 1)));
                let call = Call {
                    op: ops[pick(3)],
                    inputs: &inputs,
                    attrs: (0..pick(3)).map(|_| values[pick(values.len())].clone()).collect(),
                    runtime: (0..pick(2)).map(|_| [Scalar::Int(0), Scalar::Float(0.0)][pick(2)]).collect(),
                    target: targets[pick(targets.len())].as_ref(),
                    given: (pick(3) == 0).then(|| &tensors[pick(tensors.len())]),
                    recording: pick(2) == 0,
                    host: None,
                    skip_unshard: false,
                    site: CallSite::here(),
                };
                let input = |t: &Option<&Tensor>| t.map(|t| (format!("{t:?}"), call.given.is_some_and(|g| g.same(t))));
                let text = format!(
                    "{} {:?} {:?} {:?} {:?} {:?} {} {:?}",
                    call.op.name(),
                    call.inputs.iter().map(input).collect::<Vec<_>>(),
                    call.attrs,
                    call.runtime,
                    call.target,
                    call.given.map(|g| format!("{g:?}").replace(" (requires grad)", "")),
                    call.recording,
                    asked.as_ref().map(|a| &a.sbp),
                );
                match seen.get(&key_of(&call, asked.as_ref())) {
                    Some(other) if *other == text => again += 1,
                    Some(other) => panic!("one key for {other} and {text}"),
                    None => drop(seen.insert(key_of(&call, asked.as_ref()), text)),
                }
            }
            println!("{} calls, {again} of them again", seen.len());
            assert!(again > 100, "{again}");
            Ok(())
        })
        .map(drop)
    }
}
