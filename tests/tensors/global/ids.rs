//! Indices out of range are refused in the forward call: by every op that takes some, found through the registry, and by every function,
//! also where nothing is made of them (an empty table, rows without elements), on one rank and in each layout on two.

use oflow::functional::{call, distribute};
use oflow::interpreter::Call;
use oflow::ops::{AttrValue, InputDef, Op};
use oflow::prelude::*;
use oflow::sbp::NdSbp;
use oflow::testing::Sample;
use oflow::testing::sample::Values;
use oflow::{ErrorKind, Tensor, run_ranks};
use oflow_tests::{built_in_ops, selected};

/// Ops whose inputs are integers, and are no positions in another tensor or are refused elsewhere.
const OTHERS: [(&str, &str); 5] = [
    ("bitwise_", "bits"),
    ("gcd", "numbers"),
    ("lcm", "numbers"),
    ("cross_entropy_grad", "the gradient of cross_entropy, which has refused the targets"),
    ("wrap_index", "negative indices count from the end; the functions below stand for it"),
];

/// The inputs of a sample that are indices, with the number below which they must be.
fn indices(sample: &Sample) -> Vec<(usize, usize)> {
    let size = |(name, v): &(String, AttrValue)| match v {
        AttrValue::Int(n) if matches!(name.as_str(), "rows" | "size" | "classes") => usize::try_from(*n).ok(),
        _ => None,
    };
    let bound = sample.attrs.iter().find_map(size);
    let below = |(i, s): (usize, &Option<oflow::testing::sample::Spec>)| match s.as_ref()?.values {
        Values::Below(n) if matches!(s.as_ref()?.dtype, DType::I64 | DType::I32) => Some((i, bound.unwrap_or(n))),
        _ => None,
    };
    sample.inputs.iter().enumerate().filter_map(below).collect()
}

/// The sample, and for each of its sizes the sample in which that size is 0: tables without rows, rows without elements.
fn emptied(op: &Op, sample: &Sample) -> Vec<Sample> {
    let mut sizes: Vec<usize> = sample.inputs.iter().flatten().flat_map(|s| s.shape.clone()).collect();
    sizes.extend(indices(sample).iter().map(|(_, n)| *n));
    sizes.sort_unstable();
    sizes.dedup();
    let without = |size: usize| {
        let mut s = sample.clone();
        for spec in s.inputs.iter_mut().flatten() {
            spec.shape.iter_mut().filter(|n| **n == size).for_each(|n| *n = 0);
            if spec.values == Values::Below(size) {
                spec.values = Values::Below(0);
            }
        }
        for (name, value) in &mut s.attrs {
            if matches!(name.as_str(), "rows" | "size" | "classes") && *value == AttrValue::Int(size as i64) {
                *value = AttrValue::Int(0);
            }
        }
        s
    };
    let all = std::iter::once(sample.clone()).chain(sizes.into_iter().map(without));
    all.filter(|s| {
        let there = |(i, _): &(usize, usize)| s.inputs[*i].as_ref().is_some_and(|s| !s.shape.contains(&0));
        s.infer(op).is_ok() && indices(s).iter().all(there)
    })
    .collect()
}

/// The inputs of a call on this rank, with `bad` as the last index of one input.
fn inputs(sample: &Sample, bad: Option<(usize, i64)>) -> Result<Vec<Option<Tensor>>> {
    let mut all = vec![];
    for (i, v) in sample.values(7, true).into_iter().enumerate() {
        let Some(mut v) = v else {
            all.push(None);
            continue;
        };
        if let Some((_, b)) = bad.filter(|(k, _)| *k == i)
            && let Some(last) = v.data.last_mut()
        {
            *last = b as f64;
        }
        all.push(Some(from_vec(v.data.clone(), v.ty.shape.as_slice(), Device::Cpu)?.cast(v.ty.dtype)?));
    }
    Ok(all)
}

fn run(op: &'static Op, sample: &Sample, inputs: &[Option<Tensor>]) -> Result<()> {
    let (attrs, runtime) = sample.attributes(op)?;
    let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
    Call::new(op, &inputs).attrs(attrs).runtime(runtime).run().map(drop)
}

/// Layouts on two ranks: everything whole, one input split along one dim, and all of them split along one dim.
fn layouts(sample: &Sample) -> Vec<Vec<Option<usize>>> {
    let ranks: Vec<usize> = sample.inputs.iter().map(|s| s.as_ref().map_or(0, |s| s.shape.len())).collect();
    let mut found = vec![vec![None; ranks.len()]];
    for (i, rank) in ranks.iter().enumerate() {
        for d in 0..*rank {
            let mut one = vec![None; ranks.len()];
            one[i] = Some(d);
            found.push(one);
        }
    }
    for d in 0..ranks.iter().copied().max().unwrap_or(0) {
        found.push(ranks.iter().map(|r| Some(d).filter(|d| d < r)).collect());
    }
    found
}

fn layout(split: Option<usize>) -> NdSbp {
    split.map_or_else(|| sbp![B], |d| NdSbp::from_iter([oflow::sbp::Sbp::Split(d)]))
}

/// Notes what is not refused as it should be.
struct Judge {
    cases: usize,
    wrong: Vec<String>,
}

impl Judge {
    fn refused(&mut self, what: impl FnOnce() -> String, got: Result<()>) {
        self.cases += 1;
        match got {
            Err(e) if e.kind() == ErrorKind::Value => {}
            Err(e) => self.wrong.push(format!("{}: {:?} {e}", what(), e.kind())),
            Ok(()) => self.wrong.push(format!("{}: accepted", what())),
        }
    }
    fn done(self, what: &str) {
        println!("{what}: {} cases, {} wrong", self.cases, self.wrong.len());
        assert!(self.wrong.is_empty(), "{} of {}:\n{}", self.wrong.len(), self.cases, self.wrong.join("\n"));
    }
}

#[test]
fn every_op_refuses_indices_out_of_range() {
    let mut judge = Judge { cases: 0, wrong: vec![] };
    let mut found = vec![];
    for op in built_in_ops() {
        let only_integers = |i: &InputDef| {
            i.dtypes.contains(DType::I64) && ![DType::F32, DType::Bool].iter().any(|d| i.dtypes.contains(*d))
        };
        if !op.sig.inputs.iter().any(only_integers) || OTHERS.iter().any(|(name, _)| op.name().starts_with(name)) {
            continue;
        }
        let samples = Sample::all(op).unwrap();
        let takes = samples.iter().any(|s| !indices(s).is_empty());
        assert!(
            takes,
            "{}: a sample says below what its indices are (`i64[3]<5`), or a row of OTHERS why not",
            op.name()
        );
        found.push(op.name());
        for sample in samples.iter().flat_map(|s| emptied(op, s)) {
            for (i, size) in indices(&sample) {
                let what = || format!("{} {:?} {:?}", op.name(), sample.types(), sample.attrs);
                if size > 0 {
                    let valid = inputs(&sample, None).and_then(|ins| run(op, &sample, &ins));
                    valid.unwrap_or_else(|e| panic!("{} with good indices: {e}", what()));
                }
                for bad in [size as i64, -1, 1 << 30] {
                    let ins = inputs(&sample, Some((i, bad))).unwrap();
                    judge.refused(|| format!("{}, index {bad}, local", what()), run(op, &sample, &ins));
                }
                for (n, split) in layouts(&sample).iter().enumerate() {
                    let bad = if n.is_multiple_of(2) { size as i64 } else { -1 };
                    let got = run_ranks(2, |_| {
                        let mesh = Placement::all(Device::Cpu)?;
                        let local = inputs(&sample, Some((i, bad)))?;
                        let place = |(t, s): (&Option<Tensor>, &Option<usize>)| {
                            t.as_ref().map(|t| distribute(t, (&mesh, layout(*s)))).transpose()
                        };
                        run(op, &sample, &local.iter().zip(split).map(place).collect::<Result<Vec<_>>>()?)
                    });
                    judge.refused(|| format!("{}, index {bad}, split along {split:?}", what()), got.map(drop));
                }
            }
        }
    }
    println!("ops that take indices: {found:?}");
    assert!(found.len() >= 13 || selected(), "{found:?}");
    judge.done("ops");
}

/// Makes zeros and indices on one rank, or in a layout.
struct Maker(Option<NdSbp>);

impl Maker {
    fn place(&self, t: Tensor) -> Result<Tensor> {
        match &self.0 {
            None => Ok(t),
            Some(_) if t.ndim() == 0 => distribute(&t, (&Placement::all(Device::Cpu)?, sbp![B])),
            Some(sbp) => distribute(&t, (&Placement::all(Device::Cpu)?, sbp.clone())),
        }
    }
    fn zeros(&self, shape: &[usize]) -> Result<Tensor> {
        self.place(zeros(shape, Device::Cpu)?)
    }
    fn ids(&self, shape: &[usize], values: &[i64]) -> Result<Tensor> {
        self.place(from_vec(values.to_vec(), shape, Device::Cpu)?)
    }
}

/// A call with an index `bad` into `rows` rows of `width` elements.
type Function = (&'static str, fn(&Maker, i64, usize, usize) -> Result<Vec<Tensor>>);

/// Functions whose bound does not depend on the rows.
const OWN: [&str; 3] = ["multilabel_margin_loss", "bincount", "ctc_loss, lengths of inputs"];

/// Functions in which a negative index counts from the end.
const WRAP: [&str; 5] = ["index", "index of two", "index_put", "take", "take_along_dim"];

/// Functions that take indices, those of several ops too.
const FUNCTIONS: [Function; 24] = [
    ("gather", |m, b, n, w| {
        call("gather", &[m.zeros(&[n, w])?.into(), 0.into(), m.ids(&[2, w], &vec![b; 2 * w])?.into()], &[])
    }),
    ("take_along_dim", |m, b, n, w| {
        call("take_along_dim", &[m.zeros(&[n, w])?.into(), m.ids(&[2, w], &vec![b; 2 * w])?.into(), 0.into()], &[])
    }),
    ("scatter", |m, b, n, w| {
        let (x, ids, src) = (m.zeros(&[n, w])?, m.ids(&[2, w], &vec![b; 2 * w])?, m.zeros(&[2, w])?);
        call("scatter", &[x.into(), 0.into(), ids.into(), src.into()], &[])
    }),
    ("scatter a number", |m, b, n, w| {
        call("scatter", &[m.zeros(&[n, w])?.into(), 0.into(), m.ids(&[2, w], &vec![b; 2 * w])?.into(), 1.0.into()], &[])
    }),
    ("scatter_add", |m, b, n, w| {
        let (x, ids, src) = (m.zeros(&[n, w])?, m.ids(&[2, w], &vec![b; 2 * w])?, m.zeros(&[2, w])?);
        call("scatter_add", &[x.into(), 0.into(), ids.into(), src.into()], &[])
    }),
    ("scatter_reduce", |m, b, n, w| {
        let (x, ids, src) = (m.zeros(&[n, w])?, m.ids(&[2, w], &vec![b; 2 * w])?, m.zeros(&[2, w])?);
        call("scatter_reduce", &[x.into(), 0.into(), ids.into(), src.into(), "sum".into()], &[])
    }),
    ("index_add", |m, b, n, w| {
        call(
            "index_add",
            &[m.zeros(&[n, w])?.into(), 0.into(), m.ids(&[2], &[0, b])?.into(), m.zeros(&[2, w])?.into()],
            &[],
        )
    }),
    ("index_copy", |m, b, n, w| {
        call(
            "index_copy",
            &[m.zeros(&[n, w])?.into(), 0.into(), m.ids(&[2], &[0, b])?.into(), m.zeros(&[2, w])?.into()],
            &[],
        )
    }),
    ("index_fill", |m, b, n, w| {
        call("index_fill", &[m.zeros(&[n, w])?.into(), 0.into(), m.ids(&[2], &[0, b])?.into(), 1.0.into()], &[])
    }),
    ("index_select", |m, b, n, w| {
        call("index_select", &[m.zeros(&[n, w])?.into(), 0.into(), m.ids(&[2], &[0, b])?.into()], &[])
    }),
    ("index", |m, b, n, w| Ok(vec![m.zeros(&[n, w])?.index(&m.ids(&[2], &[0, b])?)?])),
    ("index of two", |m, b, n, w| {
        let (i, j) = (m.ids(&[2], &[0, 0])?, m.ids(&[2], &[0, b])?);
        Ok(vec![m.zeros(&[3, n, w])?.index((&i, &j))?])
    }),
    ("index_put", |m, b, n, w| Ok(vec![m.zeros(&[n, w])?.index_put(&m.ids(&[2], &[0, b])?, 1.0)?])),
    ("take", |m, b, n, _| call("take", &[m.zeros(&[n, 1])?.into(), m.ids(&[2], &[0, b])?.into()], &[])),
    ("embedding", |m, b, n, w| call("embedding", &[m.zeros(&[n, w])?.into(), m.ids(&[2], &[0, b])?.into()], &[])),
    ("embedding_bag", |m, b, n, w| {
        call("embedding_bag", &[m.zeros(&[n, w])?.into(), m.ids(&[2, 2], &[0, 0, 0, b])?.into()], &[])
    }),
    ("embedding_bag max", |m, b, n, w| {
        let (x, ids) = (m.zeros(&[n, w])?, m.ids(&[2, 2], &[0, 0, 0, b])?);
        call("embedding_bag", &[x.into(), ids.into()], &[("mode", "max".into())])
    }),
    ("one_hot", |m, b, n, _| call("one_hot", &[m.ids(&[2], &[0, b])?.into(), (n as i64).into()], &[])),
    ("cross_entropy", |m, b, n, _| {
        call("cross_entropy", &[m.zeros(&[2, n])?.into(), m.ids(&[2], &[0, b])?.into()], &[])
    }),
    ("nll_loss", |m, b, n, _| call("nll_loss", &[m.zeros(&[2, n])?.into(), m.ids(&[2], &[0, b])?.into()], &[])),
    ("multi_margin_loss", |m, b, n, _| {
        call("multi_margin_loss", &[m.zeros(&[2, n])?.into(), m.ids(&[2], &[0, b])?.into()], &[])
    }),
    ("multilabel_margin_loss", |m, b, _, _| {
        // -1 ends the labels of a row.
        let bad = if b == -1 { -2 } else { b };
        call(
            "multilabel_margin_loss",
            &[m.zeros(&[2, 4])?.into(), m.ids(&[2, 4], &[0, 1, 2, 3, 0, 1, 2, bad])?.into()],
            &[],
        )
    }),
    ("bincount", |m, b, _, _| call("bincount", &[m.ids(&[2], &[0, -b.abs()])?.into()], &[])),
    ("ctc_loss, lengths of inputs", |m, b, _, _| {
        let lengths = m.ids(&[2], &[4, if b == 4 { 5 } else { b }])?;
        let (x, labels, of) = (m.zeros(&[4, 2, 3])?, m.ids(&[2, 1], &[1, 1])?, m.ids(&[2], &[1, 1])?);
        call("ctc_loss", &[x.into(), labels.into(), lengths.into(), of.into()], &[])
    }),
];

#[test]
fn every_function_refuses_indices_out_of_range() {
    let mut judge = Judge { cases: 0, wrong: vec![] };
    for (name, function) in FUNCTIONS {
        let by_element = name.starts_with("scatter") || matches!(name, "gather" | "take_along_dim");
        for (rows, width) in [(4, 3), (4, 0), (0, 3)]
            .into_iter()
            .filter(|(n, w)| (*w > 0 || !by_element) && (*n > 0 || !OWN.contains(&name)))
        {
            let negative = if WRAP.contains(&name) { -(rows as i64) - 1 } else { -1 };
            for place in [None, Some(sbp![B]), Some(sbp![S(0)])] {
                for bad in [rows as i64, negative] {
                    let what = || format!("{name} of [{rows}, {width}], index {bad}, {place:?}");
                    let got = run_ranks(2, |_| function(&Maker(place.clone()), bad, rows, width).map(drop));
                    judge.refused(what, got.map(drop));
                }
            }
        }
    }
    judge.done("functions");
}

#[test]
fn multinomial_refuses_bad_weights() {
    let mut judge = Judge { cases: 0, wrong: vec![] };
    let bad: [(&str, [f32; 4]); 4] = [
        ("negative", [1.0, -1.0, 2.0, 1.0]),
        ("NaN", [1.0, f32::NAN, 2.0, 1.0]),
        ("infinite", [1.0, 1.0, f32::INFINITY, 1.0]),
        ("zeros", [0.0; 4]),
    ];
    for (name, weights) in bad {
        for place in [None, Some(sbp![B]), Some(sbp![S(0)]), Some(sbp![P])] {
            for (rows, replacement) in [(0, false), (0, true), (2, false), (2, true)] {
                // Of several rows the last one is bad.
                let values: Vec<f32> = (1..rows).flat_map(|_| [1.0; 4]).chain(weights).collect();
                let shape = if rows == 0 { vec![4] } else { vec![rows, 4] };
                for dtype in [DType::F32, DType::F64, DType::BF16] {
                    let got = run_ranks(2, |_| {
                        let w = from_vec(values.clone(), shape.as_slice(), Device::Cpu)?.cast(dtype)?;
                        let w = Maker(place.clone()).place(w)?;
                        call("multinomial", &[w.into(), 2.into(), replacement.into()], &[]).map(drop)
                    });
                    judge.refused(|| format!("{name}, {place:?}, {shape:?}, {dtype}, {replacement}"), got.map(drop));
                }
            }
        }
    }
    judge.done("weights");
}
