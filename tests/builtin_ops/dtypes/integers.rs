//! i16, u16 and u32, for which kernels are not compiled: every op that takes them gives what it gives for i64, wrapped, on one device,
//! and under its signatures on two ranks what it gives on one device.

use oflow::interpreter::{Call, Target};
use oflow::ops::{Op, TensorType};
use oflow::prelude::*;
use oflow::testing::{self, Sample, Value, reference, run_cases, signature_cases, variants};
use oflow_tests::{built_in_ops, selected, settle};
use std::collections::BTreeSet;
use std::sync::Arc;

const NARROW: [DType; 3] = [DType::I16, DType::U16, DType::U32];

/// What the call gives, its inputs being these numbers in the dtypes of the sample; integers as they are in `dtype`.
fn results(op: &'static Op, sample: &Sample, numbers: &[Option<Value>], have: &[Value]) -> oflow::Result<Vec<Value>> {
    let (attrs, runtime) = sample.attributes(op)?;
    let local = |(s, v): (&Option<testing::sample::Spec>, &Option<Value>)| {
        let Some((s, v)) = s.as_ref().zip(v.as_ref()) else { return Ok(None) };
        Value { ty: TensorType::new(&s.shape, s.dtype), data: v.data.clone() }.local(Device::Cpu).map(Some)
    };
    let inputs: Vec<Option<Tensor>> = sample.inputs.iter().zip(numbers).map(local).collect::<oflow::Result<_>>()?;
    let refs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
    let target = Target::Local(Device::Cpu);
    let call = Call::new(op, &refs).attrs(attrs).runtime(runtime);
    let made = call.target(refs.is_empty().then_some(&target)).run()?;
    made.iter().zip(have).map(|(t, have)| Value::of(&t.cast(have.ty.dtype)?)).collect()
}

#[test]
fn narrow_integers_give_what_i64_gives() {
    let (mut wrong, mut cases, mut compared, mut names) = (vec![], vec![], 0, BTreeSet::new());
    for op in built_in_ops() {
        for (i, sample) in Sample::all(op).unwrap().iter().enumerate() {
            for (k, dtype) in NARROW.into_iter().enumerate() {
                let given = sample.with_integer(dtype);
                if given == *sample || given.infer(op).is_err() || given.with_integer(DType::I64).infer(op).is_err() {
                    continue;
                }
                names.insert(op.name());
                for (size, narrow) in variants(op, &given) {
                    let what = format!("{} sample {i} in {dtype} ({size})", op.name());
                    let have = match reference(op, &what, &narrow, true, false) {
                        Ok(have) => have,
                        // The samples have negative numbers among their attributes, and zeros among divisors.
                        Err(e)
                            if size == "as given"
                                && !["is beyond the range of", "no quotient by 0"]
                                    .iter()
                                    .any(|m| e.message().contains(m)) =>
                        {
                            wrong.push(format!("{what}: {e}"));
                            continue;
                        }
                        // Some sizes an op refuses.
                        Err(_) => continue,
                    };
                    compared += 1;
                    match results(op, &narrow.with_integer(DType::I64), &have.inputs, &have.want.results) {
                        Ok(want) => {
                            for (o, (have, want)) in have.want.results.iter().zip(&want).enumerate() {
                                if have.data.iter().zip(&want.data).any(|(a, b)| a != b && !(a.is_nan() && b.is_nan()))
                                {
                                    let (have, want) = (&have.data, &want.data);
                                    wrong.push(format!("{what}: result {o} is {have:?}, i64 gives {want:?}"));
                                }
                            }
                        }
                        Err(e) => wrong.push(format!("{what}: as i64: {e}")),
                    }
                    // Each sample under its signatures in one of the dtypes.
                    if size == "as given" && (i + op.name().len()) % NARROW.len() == k {
                        match signature_cases(&Arc::new(have), &narrow, &[2], 12) {
                            Ok(found) => cases.extend(found),
                            Err(e) => wrong.push(format!("{what} on [2]: {e}")),
                        }
                    }
                }
            }
        }
    }
    wrong.extend(run_cases(&[2], &cases).into_iter().filter_map(Result::err));
    println!("{} ops: {}", names.len(), names.iter().copied().collect::<Vec<_>>().join(" "));
    println!("{compared} calls compared with i64, {} cases on two ranks", cases.len());
    assert!(names.len() > 100 && cases.len() > 500 || selected(), "{} ops, {} cases", names.len(), cases.len());
    settle("integers", compared + cases.len(), &wrong);
}
