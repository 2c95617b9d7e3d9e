//! Indexing and assignment by index against a brute-force oracle: random shapes, random indices, values and gradients, on local
//! tensors and on global ones in random layouts; and the errors.

use oflow::BackwardOptions;
use oflow::functional::{Arg, call, grad};
use oflow::prelude::*;
use oflow::testing::Random;

/// A member of an index as the oracle has it.
#[derive(Clone, Debug)]
enum Member {
    Int(i64),
    Slice(Option<i64>, Option<i64>, i64),
    Ellipsis,
    New,
    Ids(Vec<usize>, Vec<i64>),
    Mask(Vec<usize>, Vec<bool>),
}

fn positions(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for n in shape {
        all = all.iter().flat_map(|p: &Vec<usize>| (0..*n).map(move |i| [p.clone(), vec![i]].concat())).collect();
    }
    all
}

fn flat(at: &[usize], shape: &[usize]) -> usize {
    at.iter().zip(shape).fold(0, |f, (i, n)| f * n + i)
}

/// The elements that a slice names, by the definition of Python.
fn sliced(start: Option<i64>, end: Option<i64>, step: i64, n: usize) -> Vec<usize> {
    let n = n as i64;
    let wrap = |b: i64| if b < 0 { b + n } else { b };
    let (low, high) = if step < 0 { (-1, n - 1) } else { (0, n) };
    let start = start.map_or(if step < 0 { n - 1 } else { 0 }, |b| wrap(b).clamp(low, high));
    let end = end.map_or(if step < 0 { -1 } else { n }, |b| wrap(b).clamp(low, high));
    let mut found = vec![];
    let mut i = start;
    while (step > 0 && i < end) || (step < 0 && i > end) {
        found.push(i as usize);
        i += step;
    }
    found
}

/// The shape of the result, and for each of its elements the source element, as PyTorch defines it.
fn oracle(shape: &[usize], members: &[Member]) -> (Vec<usize>, Vec<usize>) {
    let used: usize = members
        .iter()
        .map(|m| match m {
            Member::Mask(s, _) => s.len(),
            Member::Ellipsis | Member::New => 0,
            _ => 1,
        })
        .sum();
    // Per dim of the result before index tensors take part: which source indices it stands for. A dim that a tensor indexes is
    // named by the number of its member.
    enum Axis {
        Source(usize, Vec<usize>),
        New,
        Indexed,
    }
    let (mut axes, mut fixed, mut lists) = (vec![], vec![None; shape.len()], vec![]);
    let mut d = 0;
    let mut all = members.to_vec();
    if !all.iter().any(|m| matches!(m, Member::Ellipsis)) {
        all.push(Member::Ellipsis);
    }
    for m in &all {
        match m {
            Member::Int(i) => {
                fixed[d] = Some(i.rem_euclid(shape[d] as i64) as usize);
                d += 1;
            }
            Member::Slice(a, b, s) => {
                axes.push(Axis::Source(d, sliced(*a, *b, *s, shape[d])));
                d += 1;
            }
            Member::Ellipsis => {
                for _ in 0..shape.len() - used {
                    axes.push(Axis::Source(d, (0..shape[d]).collect()));
                    d += 1;
                }
            }
            Member::New => axes.push(Axis::New),
            // A tensor without dims is as an integer.
            Member::Ids(s, v) if s.is_empty() => {
                fixed[d] = Some(v[0].rem_euclid(shape[d] as i64) as usize);
                d += 1;
            }
            Member::Ids(s, v) => {
                let wrapped = v.iter().map(|i| i.rem_euclid(shape[d].max(1) as i64) as usize).collect();
                axes.push(Axis::Indexed);
                lists.push((d, s.clone(), wrapped));
                d += 1;
            }
            Member::Mask(s, v) => {
                let hits: Vec<Vec<usize>> =
                    positions(s).into_iter().zip(v).filter(|(_, m)| **m).map(|(p, _)| p).collect();
                for k in 0..s.len() {
                    axes.push(Axis::Indexed);
                    lists.push((d + k, vec![hits.len()], hits.iter().map(|h| h[k]).collect::<Vec<_>>()));
                }
                d += s.len();
            }
        }
    }
    // The common shape of the tensors, and where it stands.
    let rank = lists.iter().map(|(_, s, _)| s.len()).max().unwrap_or(0);
    let common: Vec<usize> = (0..rank)
        .map(|k| {
            let sizes = lists.iter().filter_map(|(_, s, _)| s.len().checked_sub(rank - k).map(|at| s[at]));
            sizes.fold(1, |a, b| if a == 1 { b } else { a })
        })
        .collect();
    let indexed: Vec<usize> =
        axes.iter().enumerate().filter(|(_, a)| matches!(a, Axis::Indexed)).map(|(i, _)| i).collect();
    let together = indexed.windows(2).all(|w| w[1] == w[0] + 1);
    let place = if together { indexed.first().copied().unwrap_or(0) } else { 0 };
    let kept: Vec<&Axis> = axes.iter().filter(|a| !matches!(a, Axis::Indexed)).collect();
    let size = |a: &&Axis| if let Axis::Source(_, v) = a { v.len() } else { 1 };
    let mut out: Vec<usize> = kept.iter().map(size).collect();
    out.splice(place..place, common.iter().copied());
    let mut source = vec![];
    for at in positions(&out) {
        let mut from: Vec<usize> = fixed.iter().map(|f| f.unwrap_or(0)).collect();
        let group = &at[place..place + rank];
        let others: Vec<usize> = at[..place].iter().chain(&at[place + rank..]).copied().collect();
        for (a, i) in kept.iter().zip(others) {
            if let Axis::Source(d, v) = a {
                from[*d] = v[i];
            }
        }
        for (d, s, v) in &lists {
            let own: Vec<usize> =
                s.iter().zip(&group[rank - s.len()..]).map(|(n, i)| if *n == 1 { 0 } else { *i }).collect();
            from[*d] = v[flat(&own, s)];
        }
        source.push(flat(&from, shape));
    }
    (out, source)
}

/// A random index into a shape.
fn random_index(rng: &mut Random, shape: &[usize]) -> Vec<Member> {
    let bound = |rng: &mut Random, n: usize| (!rng.one_in(3)).then(|| rng.below(2 * n + 5) as i64 - n as i64 - 2);
    // Index tensors of one index broadcast.
    let common: Vec<usize> = (0..rng.below(3)).map(|_| 1 + rng.below(3)).collect();
    let (mut members, mut d, mut tensors, mut ellipsis) = (vec![], 0, 0, false);
    while d < shape.len() {
        let n = shape[d];
        match rng.below(10) {
            0 if n > 0 => members.push(Member::Int(rng.below(2 * n) as i64 - n as i64)),
            1 | 2 => {
                let step = [1, 1, 2, 3, -1, -2][rng.below(6)];
                members.push(Member::Slice(bound(rng, n), bound(rng, n), step));
            }
            3 => members.push(Member::Slice(None, None, 1)),
            4 => {
                members.push(Member::New);
                continue;
            }
            5 if !ellipsis => {
                members.push(Member::Ellipsis);
                ellipsis = true;
                d += rng.below(shape.len() - d + 1);
                continue;
            }
            6..8 if n > 0 => {
                let keep = rng.below(common.len() + 1);
                let mut s = common[keep..].to_vec();
                s.iter_mut().for_each(|n| *n = if rng.one_in(4) { 1 } else { *n });
                let count = s.iter().product();
                members.push(Member::Ids(s, (0..count).map(|_| rng.below(2 * n) as i64 - n as i64).collect()));
                tensors += 1;
            }
            8 if tensors == 0 => {
                let span = 1 + rng.below(2).min(shape.len() - d - 1);
                let s = shape[d..d + span].to_vec();
                let v = (0..s.iter().product()).map(|_| rng.one_in(2)).collect();
                members.push(Member::Mask(s, v));
                // An index tensor would have to broadcast against any count.
                let rest = d + span;
                members.extend(
                    (rest..shape.len()).filter(|_| ellipsis || rng.one_in(3)).map(|_| Member::Slice(None, None, -1)),
                );
                break;
            }
            9 if !ellipsis => break,
            _ => members.push(Member::Slice(None, None, 1)),
        }
        d += 1;
    }
    members
}

/// Where tensors are made.
struct Where(Option<Placement>);

fn random_sbp(rng: &mut Random, mesh: &Placement, rank: usize, partial: bool) -> NdSbp {
    let axis = |rng: &mut Random| match rng.below(3) {
        0 if rank > 0 => Sbp::Split(rng.below(rank)),
        1 if partial => Sbp::PARTIAL_SUM,
        _ => Sbp::Broadcast,
    };
    NdSbp::new(&(0..mesh.axes()).map(|_| axis(rng)).collect::<Vec<_>>())
}

impl Where {
    fn put<T: oflow::kernels::Element>(
        &self,
        rng: &mut Random,
        data: Vec<T>,
        shape: &[usize],
        partial: bool,
    ) -> Result<Tensor> {
        match &self.0 {
            None => from_vec(data, shape, Device::Cpu),
            Some(mesh) => {
                let whole = from_vec(data, shape, (mesh, NdSbp::broadcast(mesh.axes())))?;
                Ok(whole.to_global(random_sbp(rng, mesh, shape.len(), partial))?.detach())
            }
        }
    }
    fn index(&self, rng: &mut Random, members: &[Member]) -> Result<Vec<TensorIndex>> {
        members
            .iter()
            .map(|m| {
                Ok(match m {
                    Member::Int(i) => TensorIndex::Int(*i),
                    Member::Slice(None, None, 1) => (..).into(),
                    Member::Slice(start, end, step) => TensorIndex::Slice { start: *start, end: *end, step: *step },
                    Member::Ellipsis => TensorIndex::Ellipsis,
                    Member::New => TensorIndex::NewAxis,
                    Member::Ids(s, v) if rng.one_in(2) => self.put(rng, v.clone(), s, false)?.into(),
                    Member::Ids(s, v) => self.put(rng, v.iter().map(|i| *i as i32).collect(), s, false)?.into(),
                    Member::Mask(s, v) => self.put(rng, v.clone(), s, false)?.into(),
                })
            })
            .collect()
    }
}

fn numbers(rng: &mut Random, n: usize) -> Vec<f64> {
    (0..n).map(|_| rng.below(2000) as f64 / 64.0 - 15.0).collect()
}

/// The gradient of a leaf; zeros where nothing depends on it, because all of it was overwritten.
fn gradient(x: &Tensor) -> Result<Tensor> {
    x.grad().map_or_else(|| zeros_like(x), Ok)
}

fn check(what: &str, have: &Tensor, shape: &[usize], want: &[f64]) -> Result<()> {
    let data = have.to_f64_vec()?;
    assert_eq!(have.shape(), shape, "{what}");
    assert_eq!(data, want, "{what}");
    Ok(())
}

/// One random program: reading, its gradient, assignment of a tensor, its gradients, of a number, and in place.
fn program(rng: &mut Random, place: &Where) -> Result<usize> {
    let shape: Vec<usize> = (0..1 + rng.below(4)).map(|_| if rng.one_in(25) { 0 } else { 1 + rng.below(4) }).collect();
    let members = random_index(rng, &shape);
    let (out, source) = oracle(&shape, &members);
    let n = shape.iter().product();
    let data = numbers(rng, n);
    let what = format!("{shape:?} {members:?}");
    let leaf = |rng: &mut Random, d: &[f64], s: &[usize]| place.put(rng, d.to_vec(), s, true)?.requires_grad_(true);

    // Reading.
    let x = leaf(rng, &data, &shape)?;
    let index = place.index(rng, &members)?;
    let y = x.index(&index).map_err(|e| e.help(what.clone()))?;
    check(&what, &y, &out, &source.iter().map(|s| data[*s]).collect::<Vec<_>>())?;
    let weights = numbers(rng, source.len());
    let w = place.put(rng, weights.clone(), &out, false)?;
    y.mul(&w)?.sum(())?.backward()?;
    let mut dx = vec![0.0; n];
    source.iter().zip(&weights).for_each(|(s, w)| dx[*s] += w);
    check(&format!("gradient of {what}"), &gradient(&x)?, &shape, &dx)?;

    // Assignment of a value that broadcasts.
    let from = rng.below(out.len() + 1);
    let value_shape: Vec<usize> = out[from..].iter().map(|n| if rng.one_in(3) { 1 } else { *n }).collect();
    let value_data = numbers(rng, value_shape.iter().product());
    let (x, v) = (leaf(rng, &data, &shape)?, leaf(rng, &value_data, &value_shape)?);
    let element = |at: &[usize]| {
        let own = &at[out.len() - value_shape.len()..];
        let own: Vec<usize> = own.iter().zip(&value_shape).map(|(i, n)| if *n == 1 { 0 } else { *i }).collect();
        flat(&own, &value_shape)
    };
    let mut winner = vec![None; n];
    positions(&out).iter().zip(&source).for_each(|(at, s)| winner[*s] = Some(element(at)));
    let want: Vec<f64> = (0..n).map(|i| winner[i].map_or(data[i], |k| value_data[k])).collect();
    let y = x.index_put(&index, &v).map_err(|e| e.help(what.clone()))?;
    check(&format!("put {value_shape:?} into {what}"), &y, &shape, &want)?;
    let weights = numbers(rng, n);
    y.mul(&place.put(rng, weights.clone(), &shape, false)?)?.sum(())?.backward()?;
    let mut dv = vec![0.0; value_data.len()];
    let dx: Vec<f64> = (0..n).map(|i| if winner[i].is_some() { 0.0 } else { weights[i] }).collect();
    winner.iter().zip(&weights).for_each(|(k, w)| {
        if let Some(k) = k {
            dv[*k] += w
        }
    });
    check(&format!("gradient of the tensor, put {value_shape:?} into {what}"), &gradient(&x)?, &shape, &dx)?;
    check(&format!("gradient of the value {value_shape:?}, put into {what}"), &gradient(&v)?, &value_shape, &dv)?;

    // The same in place, and a number.
    let (x, v) = (leaf(rng, &data, &shape)?, leaf(rng, &value_data, &value_shape)?);
    let z = x.copy()?;
    z.index_put_(&index, &v)?;
    check(&format!("put_ {value_shape:?} into {what}"), &z, &shape, &want)?;
    z.mul(&place.put(rng, weights.clone(), &shape, false)?)?.sum(())?.backward()?;
    check(&format!("gradient of the tensor, put_ {value_shape:?} into {what}"), &gradient(&x)?, &shape, &dx)?;
    check(&format!("gradient of the value {value_shape:?}, put_ into {what}"), &gradient(&v)?, &value_shape, &dv)?;
    let z = place.put(rng, data.clone(), &shape, false)?.copy()?;
    let want: Vec<f64> = (0..n).map(|i| if winner[i].is_some() { 2.5 } else { data[i] }).collect();
    check(&format!("a number into {what}"), &z.index_put(&index, 2.5)?, &shape, &want)?;
    z.index_put_(&index, 2.5)?;
    check(&format!("a number into {what}, in place"), &z, &shape, &want)?;
    Ok(source.len())
}

#[test]
fn random_programs_on_local_tensors() {
    let mut rng = Random::new(1);
    let elements: usize = (0..600).map(|_| program(&mut rng, &Where(None)).unwrap()).sum();
    assert!(elements > 2000, "{elements}");
}

#[test]
fn random_programs_on_global_tensors() {
    let some = |one: &Placement| {
        let mut rng = Random::new(1);
        (0..20).try_for_each(|_| program(&mut rng, &Where(Some(one.clone()))).map(drop))
    };
    if !oflow_tests::calls_selected(some) {
        return;
    }
    for (ranks, mesh, seed) in [(2, vec![2], 2), (4, vec![4], 3), (4, vec![2, 2], 4)] {
        oflow::run_ranks(ranks, |_| {
            let all: Vec<usize> = (0..ranks).collect();
            let place = Where(Some(Placement::new(Device::Cpu, &all, &mesh)?));
            let mut rng = Random::new(seed);
            (0..150).try_for_each(|_| program(&mut rng, &place).map(drop))
        })
        .unwrap();
    }
}

/// PyTorch's answers (`tests/golden/index.json`, made by `tests/golden/index.py`).
#[test]
fn pytorch_gives_the_same() {
    let cases: Vec<serde_json::Value> = serde_json::from_str(include_str!("../golden/index.json")).unwrap();
    let ints =
        |v: &serde_json::Value| -> Vec<i64> { v.as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect() };
    let sizes = |v: &serde_json::Value| -> Vec<usize> { ints(v).into_iter().map(|n| n as usize).collect() };
    for case in &cases {
        let member = |m: &serde_json::Value| -> TensorIndex {
            if let Some(text) = m.as_str() {
                return text.parse().unwrap();
            }
            let t = from_vec(ints(&m["data"]), sizes(&m["shape"]), Device::Cpu).unwrap();
            t.cast(m["dtype"].as_str().unwrap().parse().unwrap()).unwrap().into()
        };
        let index: Vec<TensorIndex> = case["index"].as_array().unwrap().iter().map(member).collect();
        let shape = sizes(&case["shape"]);
        let x = arange(shape.iter().product::<usize>() as i64, Device::Cpu).unwrap().reshape(&shape).unwrap();
        let y = x.index(&index).unwrap();
        assert_eq!(
            (y.shape(), y.to_vec::<i64>().unwrap()),
            (&sizes(&case["result"])[..], ints(&case["data"])),
            "{case}"
        );
        let z = x.index_put(&index, &y.add(100i64).unwrap()).unwrap();
        assert_eq!(z.to_vec::<i64>().unwrap(), ints(&case["put"]), "{case}");
    }
    assert_eq!(cases.len(), 300);
}

#[test]
fn errors_name_the_index_and_the_line() {
    let x = zeros([3, 4], Device::Cpu).unwrap();
    let ids = from_vec(vec![0i64, 3, 9], [3], Device::Cpu).unwrap();
    let two = from_vec(vec![0i64, 1], [2], Device::Cpu).unwrap();
    let mask = full([4, 3], true, Device::Cpu).unwrap();
    let fails = |e: Result<Tensor>, message: &str, text: &str| {
        let e = e.unwrap_err();
        assert_eq!(e.message(), message);
        assert!(e.to_string().contains(text) && e.to_string().contains("tests/builtin_ops/indexing.rs"), "{e}");
    };
    fails(x.index((1, 4)), "index 4 is out of range for dim 1 of size 4", "index(f32[3, 4], [1, 4])");
    fails(x.index(-4), "index -4 is out of range for dim 0 of size 3", "[-4]");
    fails(x.index((0, 0, 0)), "too many indices: 3 for a tensor of 2 dims", "[0, 0, 0]");
    fails(x.index((..).by(0)), "the step of a slice cannot be 0", "[::0]");
    fails(x.index(&mask), "the mask has shape [4, 3], the dims from 0 on are [3, 4]", "[bool[4, 3]]");
    fails(x.index((&ids, &two)), "index tensors of shapes [3] and [2] do not broadcast", "i64[3], i64[2]");
    fails(
        x.index((.., &ids)),
        "index 9 at position 2 is outside -4..4",
        "dim 1 of the tensor that is indexed has size 4",
    );
    fails(x.index(&x), "a tensor in an index must be bool, i32 or i64, not f32", "index(f32[3, 4], [f32[3, 4]])");
    let dots = TensorIndex::Ellipsis;
    fails(x.index([&dots, &dots]), "an index has one ellipsis at most", "[..., ...]");
    fails(
        x.index_put((.., 1..3), &ids),
        "a value of shape [3] does not broadcast to what is indexed, [3, 2]",
        "index_put(f32[3, 4], [:, 1:3], i64[3])",
    );
    assert_eq!(x.index_select(1, &ids).unwrap_err().message(), "index 9 at position 2 is outside 0..4");
    assert!(x.flip([0, 0]).is_err() && x.flip(2).is_err());
}

#[test]
#[allow(clippy::reversed_empty_ranges)]
fn ranges_and_lists_convert() {
    let x = arange(10, Device::Cpu).unwrap();
    let is = |i: TensorIndex, want: &[i64]| assert_eq!(x.index(i).unwrap().to_vec::<i64>().unwrap(), want);
    is((2..4).into(), &[2, 3]);
    is((..=2usize).into(), &[0, 1, 2]);
    is((7..=-1i64).into(), &[7, 8, 9]);
    is((8..).into(), &[8, 9]);
    is((..-7).into(), &[0, 1, 2]);
    is((6..=2).by(-2), &[6, 4, 2]);
    is((3..=0).by(-1), &[3, 2, 1, 0]);
    is((..).by(-4), &[9, 5, 1]);
    assert_eq!(x.index(vec![TensorIndex::NewAxis, (1..3).into()]).unwrap().shape(), [1, 2]);
    assert_eq!(x.index(()).unwrap().shape(), [10]);
    // A view: what is written to it is written to x.
    x.index(1..3).unwrap().zero_().unwrap();
    assert_eq!(x.to_vec::<i64>().unwrap()[..4], [0, 0, 0, 3]);
    // A part of the tensor into another part of it.
    let y = arange(6, Device::Cpu).unwrap();
    y.index_put_(1.., &y.index(..-1).unwrap()).unwrap();
    assert_eq!(y.to_vec::<i64>().unwrap(), [0, 0, 1, 2, 3, 4]);
}

#[test]
fn the_layout_that_is_asked_is_that_of_the_result() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = arange(24, (&mesh, sbp![S(0)]))?.reshape([4, 6])?;
        let ids = from_vec(vec![1i64, 3], [2], (&mesh, sbp![B]))?;
        for index in [
            vec![TensorIndex::from(1..), (2..4).into()],
            vec![TensorIndex::from(&ids)],
            vec![(..).into(), TensorIndex::from(&ids)],
            vec![TensorIndex::from(&ids), (&ids).into()],
        ] {
            let y = oflow::with_sbp(sbp![B], || x.index(&index))?;
            assert_eq!(y.sbp()?, &sbp![B], "{index:?}");
            let y = oflow::with_sbp(sbp![S(1)], || x.index_put(&index, 1i64))?;
            assert_eq!(y.sbp()?, &sbp![S(1)], "{index:?}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_dry_run_gives_the_shapes() {
    oflow::dry_run(4, 1, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = zeros([8, 6], (&mesh, sbp![S(0)]))?;
        let ids = zeros([3], (&mesh, sbp![B]).dtype(DType::I64))?;
        assert_eq!(x.index((TensorIndex::NewAxis, &ids, (..).by(-2)))?.shape(), [1, 3, 3]);
        assert_eq!(x.index_put((&ids, 2), 1.0)?.shape(), [8, 6]);
        assert_eq!(x.index_put((&ids, 2..5), &zeros([3], (&mesh, sbp![B]))?)?.shape(), [8, 6]);
        let mask = zeros([8], (&mesh, sbp![S(0)]).dtype(DType::Bool))?;
        assert!(x.index(&mask).unwrap_err().to_string().contains("a dry run cannot"));
        // One value for all places needs no count.
        x.index_put(&mask, 0.0).map(drop)
    })
    .unwrap();
}

#[test]
fn gradients_of_gradients() {
    let x = from_vec(vec![1.0f64, 2.0, 3.0], [3], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let ids = from_vec(vec![2i64, 0, 2], [3], Device::Cpu).unwrap();
    let again = BackwardOptions { create_graph: true, ..Default::default() };
    // The cubes of 3, 1 and 3, and of 2 twice.
    let y = x.index(&ids).unwrap();
    let z = x.index_put((..).by(-2), &x.index(1).unwrap()).unwrap();
    let total = y.pow(3.0).unwrap().sum(()).unwrap().add(&z.pow(3.0).unwrap().sum(()).unwrap()).unwrap();
    let d = grad([&total], [&x], &again).unwrap().remove(0).unwrap();
    assert_eq!(d.to_vec::<f64>().unwrap(), [3.0, 36.0, 54.0]);
    let dd = grad([d.sum(()).unwrap()], [&x], &BackwardOptions::default()).unwrap().remove(0).unwrap();
    assert_eq!(dd.to_vec::<f64>().unwrap(), [6.0, 36.0, 36.0]);
}

#[test]
fn by_name() {
    let x = arange(12, Device::Cpu).unwrap().reshape([3, 4]).unwrap();
    let one = |name: &str, args: &[Arg]| call(name, args, &[]).map(|mut v| v.remove(0));
    let index = || Arg::from(vec![TensorIndex::from(1), (..).by(-2)]);
    assert_eq!(one("index", &[(&x).into(), index()]).unwrap().to_vec::<i64>().unwrap(), [7, 5]);
    let y = one("index_put", &[(&x).into(), index(), 0.into()]).unwrap();
    assert_eq!(y.index(1).unwrap().to_vec::<i64>().unwrap(), [4, 0, 6, 0]);
    let v = from_vec(vec![8i64, 9], [2], Device::Cpu).unwrap();
    let y = one("index_put_", &[(&x).into(), index(), (&v).into()]).unwrap();
    assert_eq!(y.index(1).unwrap().to_vec::<i64>().unwrap(), [4, 9, 6, 8]);
    assert!(y.same(&x));
    assert_eq!(one("flip", &[(&v).into(), 0.into()]).unwrap().to_vec::<i64>().unwrap(), [9, 8]);
    let ids = from_vec(vec![1i64, 1, 0], [3], Device::Cpu).unwrap();
    let y = one("index_select", &[(&v).into(), 0.into(), (&ids).into()]).unwrap();
    assert_eq!(y.to_vec::<i64>().unwrap(), [9, 9, 8]);
    let e = one("index", &[(&x).into(), 1.5.into()]).unwrap_err().to_string();
    assert!(e.contains("'index' must be TensorIndex, not 1.5"), "{e}");
}

#[test]
fn index_add_is_the_sum_of_scattered_slices_in_every_layout() -> Result<()> {
    oflow::run_ranks(3, |_| {
        let mesh = Placement::all(Device::Cpu)?.mesh(&[("i", 3)])?;
        for (dim, dtype) in [(0i64, DType::F64), (1, DType::F64), (-1, DType::I64), (1, DType::I64)] {
            let d = if dim < 0 { 1 } else { dim as usize };
            let n = [7, 5][d];
            let mut shape = [7, 5];
            shape[d] = 9;
            let ids: Vec<i64> = (0..9).map(|i| i * 5 % n as i64).collect();
            let values = |k: usize, from: usize| -> Vec<f64> { (0..k).map(|i| (i * 7 % 11 + from) as f64).collect() };
            let (x, src) = (values(35, 1), values(shape[0] * shape[1], 3));
            let mut want = x.clone();
            for (i, v) in src.iter().enumerate() {
                let (r, c) = (i / shape[1], i % shape[1]);
                let (r, c) = if d == 0 { (ids[r] as usize, c) } else { (r, ids[c] as usize) };
                want[r * 5 + c] -= 2.0 * v;
            }
            for layout in [sbp![S(0)], sbp![S(1)], sbp![B], sbp![P]] {
                let place = |v: &Tensor| distribute(v, (&mesh, layout.clone()));
                let x = place(&from_vec(x.clone(), [7, 5], Device::Cpu)?.cast(dtype)?)?;
                let src = place(&from_vec(src.clone(), shape, Device::Cpu)?.cast(dtype)?)?;
                let list = from_vec(ids.clone(), [9], (&mesh, sbp![B]))?;
                let options = oflow::functional::IndexAddOptions { alpha: (-2).into() };
                let y = x.index_add_with(dim, &list, &src, &options)?;
                assert_eq!(y.cast(DType::F64)?.to_vec::<f64>()?, want, "{dim} {dtype} {layout}");
                // One number for each slice: the gradient of the slices is that of their places.
                if dtype == DType::F64 {
                    let src = src.detach().requires_grad_(true)?;
                    let y = x.index_add(dim, &list, &src)?;
                    y.mul(&y)?.sum(())?.backward()?;
                    let dy = y.mul(2.0)?.index_select(dim, &list)?;
                    assert_eq!(src.grad().expect("a gradient").to_vec::<f64>()?, dy.to_vec::<f64>()?, "{dim} {layout}");
                }
            }
        }
        // Indices of i32 that are split with their slices, slices that are x itself, and none at all.
        for layout in [sbp![S(0)], sbp![B]] {
            let x = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [4, 1], (&mesh, layout.clone()))?.requires_grad_(true)?;
            let ids = from_vec(vec![3i32, 3, 0, 3], [4], (&mesh, layout))?;
            let y = x.index_add(0, &ids, &x)?;
            assert_eq!(y.to_vec::<f32>()?, [4.0, 2.0, 3.0, 11.0]);
            y.mul(&from_vec(vec![1.0f32, 10.0, 100.0, 1000.0], [4, 1], (&mesh, sbp![B]))?)?.sum(())?.backward()?;
            assert_eq!(x.grad().expect("a gradient").to_vec::<f32>()?, [1001.0, 1010.0, 101.0, 2000.0]);
            let none = x.index_add(0, &ids.narrow(0, 0, 0)?, &x.narrow(0, 0, 0)?)?;
            assert_eq!(none.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
        }
        let (x, src) = (zeros([3, 2], Device::Cpu)?, ones([2, 2], Device::Cpu)?);
        for bad in [3, -1] {
            let ids = from_vec(vec![0i64, bad], [2], Device::Cpu)?;
            let e = x.index_add(0, &ids, &src).unwrap_err().to_string();
            assert!(e.contains(&format!("index {bad}")) && e.contains("index_"), "{e}");
        }
        Ok(())
    })
    .map(drop)
}
