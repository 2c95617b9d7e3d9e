//! The key of a call: all that can change its plan, as words.

use super::call::Call;
use crate::context::{AskedSbp, keeping};
use crate::ops::{AttrValue, KeyWords, Op, encode_sbp, generation};
use crate::plan::{Target, TypeRef};
use crate::program::{CallNode, Node, Program};
use crate::tensor::{Body, Tensor};
use oflow_kernels::Scalar;

/// Everything that can change the plan, as words that no other call has: each part has a length or a tag before it, or one
/// word, and what is there at all stands in the first words. Values of runtime attributes are not in it (I7).
#[inline]
pub(super) fn key_of(call: &Call<'_>, asked: Option<&AskedSbp>) -> KeyWords {
    let flags = (keeping() as u64) << 3 | (asked.is_some() as u64) << 2 | (call.recording as u64) << 1;
    let mut key = begin(call.op, call.target, flags, call.given.is_some(), (call.inputs.len(), call.attrs.len()));
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
    end(&mut key, call.target, call.given.map(of_type), &call.attrs, &call.runtime);
    key
}

/// The key of a call of a program. It is that of the call that is not recorded, where no signature is stated.
pub(super) fn key_of_node(program: &Program, node: &Node, call: &CallNode) -> KeyWords {
    let id = |ty: &TypeRef| match ty {
        TypeRef::Local(l) => l.id() << 1,
        TypeRef::Global(g) => g.id() << 1 | 1,
    };
    let (target, into) = (call.target.as_ref(), node.written_into());
    let flags = (call.signature.is_some() as u64) << 6;
    let mut key = begin(call.op, target, flags, into.is_some(), (node.inputs.len(), call.attrs.len()));
    if let Some(sig) = &call.signature {
        key.extend([sig.outputs.len() as u64, sig.lowering.map_or(0, |l| 1 + u64::from(l))]);
        sig.inputs.iter().chain(&sig.outputs).for_each(|s| encode_sbp(s, &mut key));
    }
    for v in &node.inputs {
        key.push(v.map_or(0, |v| id(program.ty(v)) << 2 | ((into == Some(v)) as u64) << 1));
    }
    end(&mut key, target, into.map(|v| id(program.ty(v))), &call.attrs, &call.runtime);
    key
}

/// The first words: op, what is there at all, numbers of inputs and attributes.
#[inline(always)]
fn begin(op: &Op, target: Option<&Target>, flags: u64, given: bool, (inputs, attrs): (usize, usize)) -> KeyWords {
    let mut key = KeyWords::new();
    let target = match target {
        None => 0u64,
        Some(Target::Local(_)) => 1,
        Some(Target::Global(..)) => 2,
    };
    for word in [op.id(), generation() << 8 | target << 4 | flags | given as u64, inputs as u64, attrs as u64] {
        key.push(word);
    }
    key
}

/// The words after those of the inputs.
#[inline(always)]
fn end(key: &mut KeyWords, target: Option<&Target>, given: Option<u64>, attrs: &[AttrValue], runtime: &[Scalar]) {
    match target {
        None => {}
        Some(Target::Local(d)) => key.push(d.number().into()),
        Some(Target::Global(p, s)) => {
            key.push(p.id());
            encode_sbp(s, key);
        }
    }
    if let Some(given) = given {
        key.push(given);
    }
    attrs.iter().for_each(|a| a.encode(key));
    for s in runtime {
        key.push(s.kind() as u64);
    }
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
    use crate::ops::{AttrValue, NdSignature, find};
    use crate::placement::{Device, Placement};
    use crate::program::{ValueId, Work, Write};
    use crate::sbp::{NdSbp, Sbp};
    use crate::tensor::LocalTensor;
    use smallvec::{SmallVec, smallvec};

    /// Calls and nodes of programs at random from few parts, so that many are equal and many differ in one part: equal keys are equal calls. A
    /// node without a signature is the call that is not recorded.
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
            let mut seen: FixedMap<KeyWords, (String, bool)> = FixedMap::default();
            let (mut again, mut shared) = (0, 0);
            let types = tensors.iter().filter_map(Tensor::type_ref).collect();
            let program = Program { values: types, ..Program::default() };
            for _ in 0..100_000 {
                let is_node = pick(3) == 0;
                // Values do not say whether they require a gradient.
                let some = |n: usize| if is_node && n == 2 { 1 } else { n };
                let numbers: SmallVec<[Option<usize>; 4]> =
                    (0..pick(3)).map(|_| (pick(4) > 0).then(|| some(pick(tensors.len())))).collect();
                let inputs: SmallVec<[Option<&Tensor>; 4]> = numbers.iter().map(|n| n.map(|n| &tensors[n])).collect();
                let given = (pick(3) == 0).then(|| some(pick(tensors.len())));
                let asked = (pick(4) == 0).then(|| sbps[pick(sbps.len())].clone());
                let asked = asked.and_then(|s| crate::context::with_sbp(s, || crate::context::asked_sbp(ops[0], 1)));
                let call = Call {
                    op: ops[pick(3)],
                    inputs: &inputs,
                    attrs: (0..pick(3)).map(|_| values[pick(values.len())].clone()).collect(),
                    runtime: (0..pick(2)).map(|_| [Scalar::Int(0), Scalar::Float(0.0)][pick(2)]).collect(),
                    target: targets[pick(targets.len())].as_ref(),
                    given: given.map(|n| &tensors[n]),
                    recording: !is_node && pick(2) == 0,
                    host: None,
                    skip_unshard: false,
                    site: CallSite::here(),
                };
                let asked = asked.filter(|_| !is_node);
                let stated = (is_node && pick(2) == 0).then(|| {
                    let mut some = |n: usize| (0..n).map(|_| sbps[pick(sbps.len())].clone()).collect::<Vec<_>>();
                    let (inputs, outputs) = (some(inputs.len()).into(), some(1).into());
                    NdSignature { inputs, outputs, lowering: [None, Some(0), Some(1)][pick(3)] }
                });
                let value = |n: usize| ValueId(n as u32);
                let (old, new) = (value(given.unwrap_or(0)), value(0));
                let of_program = CallNode {
                    op: call.op,
                    attrs: call.attrs.clone(),
                    runtime: call.runtime.clone(),
                    draw: None,
                    host: None,
                    target: call.target.cloned(),
                    into: given.is_some(),
                    signature: stated.clone(),
                    boxed_for: None,
                };
                let node = Node {
                    work: Work::Call(Box::new(of_program.clone())),
                    inputs: numbers.iter().map(|n| n.map(value)).collect(),
                    outputs: smallvec![],
                    writes: given.map(|_| Write { old, new }).into_iter().collect(),
                    guard: None,
                    site: call.site,
                    backward: false,
                    recomputed: false,
                    overlapped: false,
                };
                let key = match is_node {
                    true => key_of_node(&program, &node, &of_program),
                    false => key_of(&call, asked.as_ref()),
                };
                let input = |t: &Option<&Tensor>| t.map(|t| (format!("{t:?}"), call.given.is_some_and(|g| g.same(t))));
                let text = format!(
                    "{} {:?} {:?} {:?} {:?} {:?} {} {:?} {stated:?}",
                    call.op.name(),
                    call.inputs.iter().map(input).collect::<Vec<_>>(),
                    call.attrs,
                    call.runtime,
                    call.target,
                    call.given.map(|g| format!("{g:?}").replace(" (requires grad)", "")),
                    call.recording,
                    asked.as_ref().map(|a| &a.sbp),
                );
                match seen.get(&key) {
                    Some((other, by_node)) if *other == text => {
                        again += 1;
                        shared += usize::from(*by_node != is_node);
                    }
                    Some((other, _)) => panic!("one key for {other} and {text}"),
                    None => drop(seen.insert(key, (text, is_node))),
                }
            }
            println!("{} calls, {again} of them again, {shared} by a node and a call", seen.len());
            assert!(again > 100 && shared > 10, "{again} {shared}");
            Ok(())
        })
        .map(drop)
    }
}
