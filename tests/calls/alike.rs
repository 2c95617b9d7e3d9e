//! I18 for bad calls: what is wrong with a call follows from its description, so all ranks refuse it alike, also those with an
//! empty shard and those outside the placement, and in the words that inference has for it without any data.

use std::collections::BTreeMap;

use oflow::functional::{Arg, call};
use oflow::interpreter::Target;
use oflow::ops::resolve_attrs;
use oflow::ops::{AttrValue, GivenValues, InferCtx, Op};
use oflow::prelude::*;
use oflow::testing::{Random, Sample, derive_all, mix};
use oflow::{Error, ErrorKind};

use crate::made::{attr, like};

/// What a rank was told.
type LogicalError = Option<(ErrorKind, String)>;

/// A call with its inputs as logical values and their layouts.
struct Bad {
    op: &'static Op,
    inputs: Vec<Option<(Tensor, NdSbp)>>,
    attrs: Vec<(String, AttrValue)>,
    target: NdSbp,
}

fn bad(r: &mut Random, op: &'static Op, samples: &[Sample]) -> Option<Bad> {
    let sample = r.of(samples);
    let mut inputs = vec![];
    for spec in &sample.inputs {
        let Some(spec) = spec else {
            inputs.push(None);
            continue;
        };
        // Sizes below the mesh's: some shards are empty.
        let t = like(r, spec, Device::Cpu).ok()?.detach();
        let sbp = *r.of(&[Sbp::Broadcast, Sbp::Split(0), Sbp::Split(0), Sbp::Split(1), Sbp::PARTIAL_SUM]);
        inputs.push(Some((t, sbp.into())));
    }
    let known = op.sig.attrs.iter().chain(&op.sig.runtime);
    let attrs = known.filter_map(|a| {
        let given = sample.attrs.iter().find(|(n, _)| *n == a.name).map(|(_, v)| v.clone());
        let v = if r.percent(30) { Some(attr(r, a.kind)) } else { given };
        Some((a.name.to_string(), v?))
    });
    let attrs = attrs.collect();
    let target = (*r.of(&[Sbp::Broadcast, Sbp::Split(0), Sbp::PARTIAL_SUM])).into();
    Some(Bad { op, inputs, attrs, target })
}

impl Bad {
    fn attrs(&self) -> Vec<(&str, AttrValue)> {
        self.attrs.iter().map(|(n, v)| (n.as_str(), v.clone())).collect()
    }

    /// What the description alone says. None where the arguments do not even fit the function; nothing is to be compared.
    fn described(&self) -> Option<LogicalError> {
        // A list of tensors has no place for an absent one.
        if self.op.sig.repeating() > 0 && self.inputs.iter().any(|t| t.is_none()) {
            return None;
        }
        let (attrs, runtime) = resolve_attrs(self.op, &self.attrs()).ok()?;
        let types: Vec<_> = self.inputs.iter().map(|t| t.as_ref().map(|(t, _)| t.ty().clone())).collect();
        let kinds: Vec<_> = runtime.iter().map(|s| s.kind()).collect();
        let infer = InferCtx { op: self.op, inputs: &types, attrs: &attrs, runtime_kinds: &kinds };
        let dtypes: Vec<_> = types.iter().map(|t| t.as_ref().map(|t| t.dtype)).collect();
        let values = GivenValues { op: self.op, dtypes: &dtypes, attrs: &attrs, runtime: &runtime };
        let checked = self.op.values.as_ref().map_or(Ok(()), |check| check(&values));
        let refused = |e: Error| (e.kind(), e.message().to_string());
        match checked.and_then(|()| self.op.infer(&infer)) {
            Err(e) => Some(Some(refused(e))),
            // Results too large to be made are refused by whoever has no memory.
            Ok(outs) if outs.iter().any(|t| t.len() > 1 << 20) => None,
            Ok(_) => Some(None),
        }
    }

    /// Runs it on a rank; none where an input cannot lie so.
    fn run(&self, mesh: &Placement) -> Option<LogicalError> {
        let mut tensors = vec![];
        for t in &self.inputs {
            tensors.push(match t {
                Some((t, sbp)) => Some(distribute(t, (mesh, sbp)).ok()?),
                None => None,
            });
        }
        let repeating = self.op.sig.repeating();
        let fixed = if repeating > 0 { self.op.sig.inputs.len() - repeating } else { tensors.len() };
        let mut args: Vec<Arg> = vec![];
        if self.op.sig.inputs.is_empty() {
            args.push(Target::Global(mesh.clone(), self.target.clone()).into());
        }
        args.extend(tensors.iter().take(fixed).map(|t| t.as_ref().map_or(Arg::None, Arg::from)));
        if repeating > 0 {
            args.push(Arg::Tensors(tensors.iter().skip(fixed).flatten().cloned().collect()));
        }
        let named: Vec<(&str, Arg)> = self.attrs().into_iter().map(|(n, v)| (n, Arg::Attr(v))).collect();
        // By its full name: a function may have that of the op and take other arguments.
        let name = format!("{}.{}", self.op.domain, self.op.sig.name);
        Some(call(&name, &args, &named).err().map(|e| (e.kind(), e.message().to_string())))
    }

    fn text(&self) -> String {
        let inputs: Vec<String> =
            self.inputs.iter().map(|t| t.as_ref().map_or("none".into(), |(t, s)| format!("{t:?} as {s}"))).collect();
        format!("{}({}; {:?})", self.op.name(), inputs.join(", "), self.attrs)
    }
}

#[test]
fn i18_all_ranks_refuse_a_bad_call_alike() {
    derive_all().unwrap();
    // The function `masked_select` broadcasts what the op refuses.
    let all = oflow::ops::all().into_iter().filter(|o| o.name() != "masked_select");
    let ops: Vec<(&'static Op, Vec<Sample>)> =
        all.map(|o| (o, Sample::all(o).unwrap())).filter(|(_, s)| !s.is_empty()).collect();
    let mut r = Random::new(mix(&[18]));
    let (mut refused, mut taken, mut by_values) = (0, 0, 0);
    let mut wrong: BTreeMap<String, String> = BTreeMap::new();
    for n in 0..1500 {
        let (op, samples) = &ops[n % ops.len()];
        let Some(bad) = bad(&mut r, op, samples) else { continue };
        // A call that is made of other calls, as for complex numbers of calls on their parts, is judged by these.
        let lowered = |t: &Tensor| op.dtype_lowerings.iter().any(|l| l.is_for(t.dtype()));
        if bad.inputs.iter().flatten().any(|(t, _)| lowered(t)) {
            continue;
        }
        let Some(described) = bad.described() else { continue };
        // Three of four ranks: with sizes of 2 and less the last of them has nothing, and rank 3 is outside.
        let told = oflow::run_ranks(4, |_| {
            let mesh = Placement::new(Device::Cpu, &[0, 1, 2], &[3])?;
            Ok(bad.run(&mesh))
        });
        let told: Vec<LogicalError> = match told.map(|all| all.into_iter().collect::<Option<Vec<LogicalError>>>()) {
            Ok(Some(told)) => told,
            Ok(None) => continue,
            Err(e) => {
                wrong.insert(format!("{}: the ranks fail", op.name()), format!("{}\n{e}", bad.text()));
                continue;
            }
        };
        let logical = |t: &LogicalError| t.as_ref().is_some_and(|(kind, _)| kind.is_logical());
        match &described {
            // Names and kinds of arguments are judged before the op is.
            _ if told.iter().any(|t| t.as_ref().is_some_and(|(_, m)| m.starts_with("no overload"))) => {}
            Some(_) if told.iter().all(|t| *t == described) => refused += 1,
            None if told.iter().all(|t| t.is_none()) => taken += 1,
            // Indices: the ranks that have them, and those that then miss a collective.
            None if !told.iter().any(logical) && told.iter().flatten().any(|(k, _)| *k == ErrorKind::Value) => {
                by_values += 1
            }
            // A layout that no signature takes: alike, but not inference's to say.
            None if logical(&told[0]) && told.iter().all(|t| *t == told[0]) => refused += 1,
            _ => drop(
                wrong.insert(op.name().to_string(), format!("{}\ndescribed {described:?}\ntold {told:?}", bad.text())),
            ),
        }
    }
    println!("{refused} refused alike, {taken} taken, {by_values} refused for their values");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refused > 150 && taken > 200, "the calls are too good or too bad to prove anything");
}
