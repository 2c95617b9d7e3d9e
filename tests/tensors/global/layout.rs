//! Layout ops (boxing, ways in and out of global tensors, devices): gradients of every order, remembered boxed copies,
//! refusals, and the keys of their calls.

use oflow::functional::grad;
use oflow::ops::{Grad, KernelDef, OpDef, register};
use oflow::optim::{OptimizerExt, Sgd, SgdOptions};
use oflow::prelude::*;
use oflow::{BackwardOptions, ErrorKind};
use oflow_tests::again;
use oflow_tests::world;
use std::sync::atomic::{AtomicUsize, Ordering};

fn again() -> BackwardOptions {
    BackwardOptions { create_graph: true, ..Default::default() }
}

fn derivative(y: &Tensor, x: &Tensor) -> Result<Tensor> {
    Ok(grad(std::slice::from_ref(y), std::slice::from_ref(x), &again())?[0].clone().expect("y depends on x"))
}

#[test]
fn second_derivatives_pass_through_the_ways_in_and_out() {
    world(2, |_, mesh| {
        let two = |t| full([2], 2.0, t);
        // x^3 on the shards, then x times that on the whole: (x^4)'' at 2 is 48.
        let x = two((&mesh, sbp![S(0)]).dtype(DType::F64))?.requires_grad_(true)?;
        let y = x.to_local()?.pow(3.0)?.to_global((&mesh, sbp![S(0)]))?.mul(&x)?.sum(())?;
        let d = derivative(&y, &x)?;
        assert_eq!(d.to_vec::<f64>()?, [32.0; 2]);
        assert_eq!(derivative(&d.sum(())?, &x)?.to_vec::<f64>()?, [48.0; 2]);
        // The same by way of the logical value.
        let l = full([2], 2.0, Device::Cpu.dtype(DType::F64))?.requires_grad_(true)?;
        let y = distribute(&l.pow(3.0)?, (&mesh, sbp![S(0)]))?.mul(&distribute(&l, (&mesh, sbp![S(0)]))?)?;
        let d = derivative(&y.sum(())?, &l)?;
        assert_eq!(d.to_vec::<f64>()?, [32.0; 2]);
        assert_eq!(derivative(&d.sum(())?, &l)?.to_vec::<f64>()?, [48.0; 2]);
        Ok(())
    });
}

#[test]
fn the_gradient_of_a_leaf_keeps_its_graph_when_it_is_boxed() {
    world(2, |_, mesh| {
        // The gradient of w arrives as P and goes to B: 3 (x w)^2 x, whose derivative is 6 x^2 (x w).
        let w = full([2, 1], 2.0, (&mesh, sbp![B]).dtype(DType::F64))?.requires_grad_(true)?;
        let x = full([4, 2], 1.0, (&mesh, sbp![S(0)]).dtype(DType::F64))?;
        let d = derivative(&x.matmul(&w)?.pow(3.0)?.sum(())?, &w)?;
        assert_eq!((d.sbp()?, d.to_vec::<f64>()?), (&sbp![B], vec![4.0 * 3.0 * 16.0; 2]));
        assert_eq!(derivative(&d.sum(())?, &w)?.to_vec::<f64>()?, [4.0 * 6.0 * 4.0 * 2.0; 2]);
        Ok(())
    });
}

#[test]
fn a_device_is_no_end_of_the_graph() {
    let x = full([2], 3.0, Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let y = x.to_device(Device::Async).unwrap().square().unwrap().to_device(Device::Cpu).unwrap();
    y.sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [6.0; 2]);
}

#[test]
fn a_boxed_form_follows_what_its_tensor_requires() {
    world(2, |_, mesh| {
        let x = ones([4, 2], (&mesh, sbp![S(0)]))?;
        let w = ones([2, 2], (&mesh, sbp![S(0)]))?;
        // Gathered without a gradient, then wanted.
        x.matmul(&w)?;
        let w = w.requires_grad_(true)?;
        x.matmul(&w)?.sum(())?.backward()?;
        assert_eq!(w.grad().map(|g| g.to_vec::<f32>()).transpose()?, Some(vec![4.0; 4]));
        // And no more wanted.
        let w = w.requires_grad_(false)?;
        assert!(!x.matmul(&w)?.requires_grad());
        // A new slot is not the one that the form of the old leaf has.
        let w = w.requires_grad_(true)?;
        x.matmul(&w)?.sum(())?.backward()?;
        assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [4.0; 4]);
        Ok(())
    });
}

#[test]
fn a_layout_that_cannot_be_is_an_error_although_its_key_wraps() {
    world(2, |_, mesh| {
        zeros([2], (&mesh, sbp![B]))?;
        let wrapped = NdSbp::new(&[Sbp::Split(usize::MAX - 15)]);
        let e = zeros([2], (&mesh, wrapped)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Sbp, "{e}");
        Ok(())
    });
}

#[test]
fn ranks_outside_the_world_and_many_dims_are_no_panic() {
    world(2, |_, mesh| {
        let far = Placement::new(Device::Cpu, &[1, 7], &[2])?;
        let (l, g) = (ones([2], Device::Cpu)?, ones([2], (&mesh, sbp![B]))?);
        for e in [
            l.to_global((&far, sbp![B])).unwrap_err(),
            g.to_global((&far, sbp![B])).unwrap_err(),
            distribute(&l, (&far, sbp![B])).unwrap_err(),
            oflow::box_many(&[(&g, (&far, sbp![B]))]).unwrap_err(),
            oflow::from_boxes(&[(&[0], &l)], [2], (&far, sbp![B])).unwrap_err(),
        ] {
            assert_eq!(e.kind(), ErrorKind::Placement, "{e}");
            assert!(e.to_string().contains("needs rank 7, but the world has 2 ranks"), "{e}");
        }
        let nine = ones([1; 9], Device::Cpu)?;
        assert_eq!(nine.to_global((&mesh, sbp![S(8)]))?.shape(), [1, 1, 1, 1, 1, 1, 1, 1, 2]);
        Ok(())
    });
}

/// A number for each index, far enough from 0 that powers stay tame.
fn number(i: usize) -> f64 {
    0.7 + ((i * 7 + 3) % 11) as f64 * 0.1
}

fn numbers(n: usize, from: usize) -> Vec<f64> {
    (0..n).map(|i| number(i + from)).collect()
}

/// A function of numbers that all ranks compute together, with its derivatives along directions by autograd.
struct Program<'a> {
    /// The leaf of these numbers, on every rank.
    leaf: &'a dyn Fn(&[f64]) -> Result<Tensor>,
    /// The function: one number, global on some placement.
    value: &'a dyn Fn(&Tensor) -> Result<Tensor>,
    /// The product of a gradient of the leaf with a direction: one number that can be differentiated again.
    along: &'a dyn Fn(&Tensor, &[f64]) -> Result<Tensor>,
}

impl Program<'_> {
    /// The derivative along these directions, one order each.
    fn derivative(&self, at: &[f64], directions: &[Vec<f64>]) -> Result<f64> {
        let x = (self.leaf)(at)?.requires_grad_(true)?;
        let mut y = (self.value)(&x)?;
        for v in directions {
            let d = derivative(&y, &x)?;
            y = (self.along)(&d, v)?;
        }
        y.item()
    }

    /// Compares each order up to `orders` with the central difference of the one before.
    fn check(&self, what: &str, n: usize, orders: usize) -> Result<()> {
        let at = numbers(n, 0);
        let directions: Vec<Vec<f64>> = (0..orders).map(|k| numbers(n, 5 * k + 1)).collect();
        const STEP: f64 = 1e-5;
        for k in 0..orders {
            let (before, along) = (&directions[..k], &directions[k]);
            let moved = |sign: f64| -> Vec<f64> { at.iter().zip(along).map(|(x, v)| x + sign * STEP * v).collect() };
            let difference =
                (self.derivative(&moved(1.0), before)? - self.derivative(&moved(-1.0), before)?) / (2.0 * STEP);
            let found = self.derivative(&at, &directions[..k + 1])?;
            assert!(
                (found - difference).abs() <= 1e-6 * (1.0 + difference.abs()),
                "{what}: derivative {} is {found}, by differences {difference}",
                k + 1
            );
        }
        Ok(())
    }
}

fn logical(v: &[f64], shape: [usize; 2], p: &Placement, sbp: &NdSbp) -> Result<Tensor> {
    from_vec(v.to_vec(), shape, (p, sbp))
}

/// All layouts of B, P and splits of two dims.
fn layouts(axes: usize) -> Vec<NdSbp> {
    let one = [Sbp::Broadcast, Sbp::PARTIAL_SUM, Sbp::Split(0), Sbp::Split(1)];
    let mut all: Vec<Vec<Sbp>> = vec![vec![]];
    for _ in 0..axes {
        all = all.iter().flat_map(|n| one.iter().map(move |s| [n.as_slice(), &[*s]].concat())).collect();
    }
    all.iter().map(|n| NdSbp::new(n)).collect()
}

/// Boxing there and back in the middle of a program: sum(c y^2) + sum(back(y) x) with y = box(x^2).
fn check_boxing(
    what: &str,
    shape: [usize; 2],
    src: (&Placement, &NdSbp),
    dst: (&Placement, &NdSbp),
    stated: Option<&NdSbp>,
    orders: usize,
) -> Result<()> {
    let n = shape[0] * shape[1];
    let whole = |p: &Placement| NdSbp::broadcast(p.axes());
    let c = logical(&numbers(n, 40), shape, dst.0, &whole(dst.0))?;
    let value = |x: &Tensor| -> Result<Tensor> {
        let y = match stated {
            Some(s) => x.square()?.to_global((dst.0, dst.1).grad_sbp(s))?,
            None => x.square()?.to_global((dst.0, dst.1))?,
        };
        let first = y.square()?.mul(&c)?.sum(())?.to_global((src.0, whole(src.0)))?;
        let back = oflow::box_many(&[(&y, (src.0, src.1)), (&y, (src.0, &whole(src.0)))])?;
        first.add(&back[0].mul(x)?.mul(&back[1])?.sum(())?)
    };
    let leaf = |v: &[f64]| logical(v, shape, src.0, src.1);
    let along = |g: &Tensor, v: &[f64]| g.mul(&logical(v, shape, g.placement()?, &whole(g.placement()?))?)?.sum(());
    Program { leaf: &leaf, value: &value, along: &along }.check(what, n, orders)
}

#[test]
fn derivatives_of_boxing_equal_finite_differences_on_one_axis() {
    world(2, |_, mesh| {
        for shape in [[3, 2], [1, 3], [0, 2]] {
            for src in layouts(1) {
                for dst in layouts(1) {
                    let what = format!("{shape:?} {src} -> {dst}");
                    check_boxing(&what, shape, (&mesh, &src), (&mesh, &dst), None, 3)?;
                    if shape[0] == 3 {
                        for stated in layouts(1) {
                            let what = format!("{what}, gradient {stated}");
                            check_boxing(&what, shape, (&mesh, &src), (&mesh, &dst), Some(&stated), 2)?;
                        }
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn derivatives_of_boxing_equal_finite_differences_on_two_axes() {
    world(4, |_, mesh| {
        let mesh = mesh.mesh(&[("a", 2), ("b", 2)])?;
        for (i, src) in layouts(2).iter().enumerate() {
            for (k, dst) in layouts(2).iter().enumerate().filter(|(k, _)| (i + k) % 5 == 0) {
                let stated = (k % 2 == 1).then(|| layouts(2)[(i * 3 + k) % 16].clone());
                let what = format!("{src} -> {dst}, gradient {stated:?}");
                check_boxing(&what, [3, 3], (&mesh, src), (&mesh, dst), stated.as_ref(), 2)?;
            }
        }
        Ok(())
    });
}

#[test]
fn derivatives_between_placements_equal_finite_differences() {
    world(4, |_, _| {
        let place = |ranks: &[usize], dims: &[usize]| Placement::new(Device::Cpu, ranks, dims);
        let front = place(&[0, 1], &[2])?;
        for other in [place(&[1, 2], &[2])?, place(&[3, 2], &[2])?, place(&[2], &[1])?, place(&[3, 1, 0, 2], &[2, 2])?]
        {
            for (i, src) in layouts(1).iter().enumerate() {
                for (k, dst) in layouts(other.axes()).iter().enumerate().filter(|(k, _)| (i + k) % 3 == 0) {
                    let stated = (k % 2 == 1).then(|| layouts(1)[(i + k) % 4].clone());
                    let what = format!("{src} on {front} -> {dst} on {other}, gradient {stated:?}");
                    check_boxing(&what, [3, 2], (&front, src), (&other, dst), stated.as_ref(), 2)?;
                }
            }
        }
        Ok(())
    });
}

/// The sum of the ranks' local numbers, as a global one.
fn added(local: &Tensor, p: &Placement) -> Result<Tensor> {
    local.to_global((p, NdSbp::uniform(Sbp::PARTIAL_SUM, p.axes())))
}

/// The one local number that all ranks have, as a global one.
fn same(local: &Tensor, p: &Placement) -> Result<Tensor> {
    distribute(local, (p, NdSbp::broadcast(p.axes())))
}

fn check_ways_in_and_out(mesh: &Placement, rank: usize, sbp: &NdSbp) -> Result<()> {
    let (shape, n) = ([3usize, 3], 9);
    let copies = sbp.iter().filter(|s| s.is_broadcast()).count();
    let parts = sbp.iter().filter(|s| s.is_partial()).count();
    let whole = NdSbp::broadcast(mesh.axes());
    let cut = |v: &[f64]| -> Result<Tensor> { logical(v, shape, mesh, sbp)?.to_local()?.mul(1.0) };
    // A rank's own weight: what ranks do with copies differs.
    let weight = 1.0 + 0.25 * rank as f64;
    let global_leaf = |v: &[f64]| logical(v, shape, mesh, sbp);
    let global_along = |g: &Tensor, v: &[f64]| g.mul(&logical(v, shape, mesh, &whole)?)?.sum(());

    // Out, and in again as shards; where ranks have copies, each does work of its own and the results add up.
    let out = |x: &Tensor| -> Result<Tensor> {
        let l = x.to_local()?;
        if parts > 0 || copies == 0 {
            // A summand may only be used linearly.
            let l = if parts > 0 { l.mul(3.0)? } else { l.pow(3.0)? };
            let back = l.to_global((mesh, sbp))?;
            if copies == 0 {
                return back.square()?.mul(x)?.sum(());
            }
            return back.mul(x)?.sum(());
        }
        // Along a split axis too: the sum of all local numbers is a function of the whole.
        let own = l.pow(3.0)?.mul(weight)?.sum(())?;
        added(&own, mesh)?.mul(&x.sum(())?)
    };
    if copies == 0 || parts == 0 {
        let p = Program { leaf: &global_leaf, value: &out, along: &global_along };
        p.check(&format!("to_local of {sbp}"), n, 3)?;
    }
    if copies == mesh.axes() {
        // The same work on all ranks, of one loss.
        let alike = |x: &Tensor| -> Result<Tensor> {
            let l = x.to_local_with(&whole)?;
            same(&l.pow(3.0)?.sum(())?, mesh)?.mul(&x.sum(())?)
        };
        let p = Program { leaf: &global_leaf, value: &alike, along: &global_along };
        p.check(&format!("to_local of {sbp}, gradient {whole}"), n, 3)?;
        // The logical value, and shards that every rank keeps itself.
        let local_leaf = |v: &[f64]| from_vec(v.to_vec(), shape, Device::Cpu);
        let local_along = |g: &Tensor, v: &[f64]| same(&g.mul(&local_leaf(v)?)?.sum(())?, mesh);
        for to in layouts(mesh.axes()) {
            let value =
                |l: &Tensor| distribute(&l.square()?, (mesh, &to))?.mul(&distribute(l, (mesh, &whole))?)?.sum(());
            let p = Program { leaf: &local_leaf, value: &value, along: &local_along };
            p.check(&format!("distribute as {to}"), n, 3)?;
        }
        let kept = |l: &Tensor| -> Result<Tensor> {
            let g = l.square()?.to_global((mesh, &whole).grad_sbp(&whole))?;
            g.square()?.sum(())?.mul(&same(&l.sum(())?, mesh)?)
        };
        let p = Program { leaf: &local_leaf, value: &kept, along: &local_along };
        p.check("shards as B, gradient B", n, 3)?;
    }
    // In as shards: the gradients of copies add up, a summand has the gradient of the sum.
    if copies == 0 || copies == mesh.axes() {
        let value = |l: &Tensor| -> Result<Tensor> {
            let l = if parts > 0 || copies > 0 { l.mul(2.0)? } else { l.square()? };
            l.to_global((mesh, sbp))?.pow(4.0)?.sum(())
        };
        let along = |g: &Tensor, v: &[f64]| added(&g.mul(&cut(v)?)?.sum(())?, mesh);
        let p = Program { leaf: &cut, value: &value, along: &along };
        p.check(&format!("shards as {sbp}"), n, 3)?;
    }
    Ok(())
}

#[test]
fn derivatives_of_the_ways_in_and_out_equal_finite_differences() {
    world(2, |w, mesh| layouts(1).iter().try_for_each(|s| check_ways_in_and_out(&mesh, w.rank(), s)));
    world(4, |w, mesh| {
        let mesh = mesh.mesh(&[("a", 2), ("b", 2)])?;
        layouts(2).iter().try_for_each(|s| check_ways_in_and_out(&mesh, w.rank(), s))
    });
}

#[test]
fn a_rank_outside_the_placement_takes_part_in_every_order() {
    world(3, |w, mesh| {
        let two = Placement::new(Device::Cpu, &[2, 0], &[2])?;
        for to in layouts(1) {
            // The value is every rank's, also of rank 1, which has no shard: its gradient is zeros.
            let l = full([2, 2], 2.0, Device::Cpu.dtype(DType::F64))?.requires_grad_(true)?;
            let y = distribute(&l.pow(3.0)?, (&two, &to))?.mul(&distribute(&l, (&two, &to))?)?.sum(())?;
            let d = derivative(&y, &l)?;
            let dd = derivative(&distribute(&d.sum(())?, (&two, sbp![B]))?, &l)?;
            let inside = two.position(w.rank()).is_some();
            assert_eq!(dd.to_vec::<f64>()?, if inside { [48.0; 4] } else { [0.0; 4] });
            let x = full([3, 2], 2.0, (&mesh, &to).dtype(DType::F64))?;
            assert_eq!(x.to_global((&two, &to))?.sum(())?.item()?, 12.0);
        }
        Ok(())
    });
}

/// One random program over one weight; what each step gives. `forget` drops remembered copies before each use.
fn random_forms(seed: u64, mesh: &Placement, forget: bool) -> Result<Vec<String>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % n
    };
    let x = ones([4, 2], (mesh, sbp![S(0)]))?;
    let mut w = logical(&numbers(4, 2), [2, 2], mesh, &sbp![S(0)])?.cast(DType::F32)?.detach().copy()?;
    let mut log = vec![];
    for _ in 0..12 {
        match random(9) {
            step @ 0..=3 => {
                if forget {
                    w.clear_reshard_cache();
                }
                let quiet = (step == 1).then(no_grad);
                let low = (step == 2).then(|| autocast(Autocast::Bf16));
                let y = x.matmul(&w)?.mul(&w.sum(())?)?;
                drop((quiet, low));
                let mut line = format!("{y:?} {:?}", y.to_f64_vec()?);
                if y.requires_grad() && random(3) > 0 {
                    y.sum(())?.backward()?;
                    line += &format!(" {:?}", w.grad().map(|g| g.to_f64_vec()).transpose()?);
                }
                log.push(line);
            }
            4 if w.is_leaf() => {
                let on = random(3) > 0;
                w = w.requires_grad_(on)?;
            }
            5 => {
                let _quiet = no_grad();
                w.mul_(1.5)?;
            }
            // A value of its own: a view of a global tensor is not written in place.
            6 => w = w.detach().copy()?,
            7 => {
                let slow = random(2) == 0;
                let _quiet = slow.then(no_grad);
                w = w.mul(0.75)?;
            }
            _ => {
                w.set_grad(None).unwrap();
            }
        }
        log.push(format!("{w:?}"));
    }
    Ok(log)
}

#[test]
fn remembered_forms_are_never_seen() {
    world(2, |_, mesh| {
        for seed in 0..300 {
            let (with, without) = (random_forms(seed, &mesh, false)?, random_forms(seed, &mesh, true)?);
            assert_eq!(with, without, "program {seed}");
        }
        Ok(())
    });
}

/// Runs a test of this file once more, under `OFLOW_CHECK`.
fn again_with(name: &str, check: &str) {
    let mut test = again::again(&format!("global::layout::{name}"));
    test.env("OFLOW_CHECK", check);
    again::passes(test);
}

/// Without `OFLOW_CHECK` a sample of the data is compared, with 1 all of it, with 0 nothing.
#[test]
fn data_that_differs_between_ranks_is_found() {
    let found = |values: &(dyn Fn(usize) -> Vec<f32> + Sync)| {
        let run = oflow::run_ranks(2, |w| {
            let mesh = Placement::all(Device::Cpu)?;
            let values = values(w.rank());
            let x = from_vec(values.clone(), [values.len()], (&mesh, sbp![B]))?;
            x.to_global(sbp![P])?.to_global(sbp![B]).map(drop)
        });
        run.map_err(|e| assert_eq!(e.kind(), ErrorKind::Diverged)).is_err()
    };
    let long = |at: usize| {
        move |rank: usize| {
            let mut all = vec![1.0; 100_000];
            all[at] = rank as f32;
            all
        }
    };
    assert!(!found(&|_| vec![1.0; 4]) && !found(&|_| vec![]));
    let all = std::env::var("OFLOW_CHECK").ok();
    let expected = match all.as_deref() {
        None => [true, true, true, true, false],
        Some("1") => [true; 5],
        _ => [false; 5],
    };
    let few = |rank: usize| vec![1.0, 2.0, rank as f32];
    // The last number is at no place of a sample.
    let given: [&(dyn Fn(usize) -> Vec<f32> + Sync); 5] =
        [&|rank| vec![rank as f32; 4], &few, &long(0), &long(99_999), &long(1000)];
    assert_eq!(given.map(found), expected);
    if all.is_none() {
        ["0", "1"].into_iter().for_each(|v| again_with("data_that_differs_between_ranks_is_found", v));
    }
}

#[test]
fn parameters_that_differ_between_ranks_are_found_at_the_first_step() {
    // A kernel that depends on more than its inputs: no two calls give the same.
    let drifting = OpDef::new("drifting(x: f32) -> y").unwrap().domain("layout").grad(Grad::None);
    let drifting = drifting.kernel(KernelDef::cpu("drifting", |cx| {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let calls = CALLS.fetch_add(1, Ordering::Relaxed) as i64;
        Ok(oflow::kernels::cpu::copy::fill(cx.output(0), oflow::kernels::Scalar::Int(calls))?)
    }));
    register(drifting).unwrap();
    let train = |differ: bool| {
        oflow::run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let mut p = zeros([3], (&mesh, sbp![B]))?;
            if differ {
                p = oflow::call("layout.drifting", &[p.into()], &[])?.remove(0);
            }
            let p = p.detach().requires_grad_(true)?;
            let mut opt = Sgd::new(vec![p.clone()], SgdOptions { lr: 0.1, ..Default::default() });
            for _ in 0..2 {
                p.mul(&p)?.sum(())?.backward()?;
                opt.step()?;
            }
            // Ranks are compared where they meet.
            p.to_global(sbp![P])?.to_global(sbp![B]).map(drop)
        })
    };
    train(false).unwrap();
    assert_eq!(train(true).unwrap_err().kind(), ErrorKind::Diverged);
}

#[test]
fn a_partial_that_meets_an_infinity_is_found_on_request() {
    let run = |f: fn(&Tensor, &Tensor) -> Result<Tensor>| {
        oflow::run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            // The parts are 3 and -1, the value is 2.
            let (x, ones) =
                (from_vec(vec![3.0f32, -1.0], [1, 2], (&mesh, sbp![S(1)]))?, ones([2, 1], (&mesh, sbp![S(0)]))?);
            let infinite = from_vec(vec![f32::INFINITY], [1, 1], (&mesh, sbp![B]))?;
            f(&x.matmul(&ones)?, &infinite)?.to_vec::<f32>()
        })
    };
    // An elementwise op reduces the partial first; a product of matrices takes it as it is.
    assert_eq!(run(|p, infinite| p.mul(infinite)).unwrap(), [[f32::INFINITY]; 2]);
    if std::env::var("OFLOW_CHECK").is_ok() {
        let e = run(|p, infinite| p.matmul(infinite)).unwrap_err().to_string();
        let why = "input 0 `a` is [P(sum)], and 1 of 1 elements of input 1 `b` in this rank's shard are not finite";
        assert!(e.contains("matmul(f32[1, 1] [P(sum)], f32[1, 1] [B])") && e.contains(why), "{e}");
        assert!(e.contains("layout.rs:") && e.contains("OFLOW_CHECK=1 looks for this"), "{e}");
        let e = run(|p, _| p.mul(f64::INFINITY)).unwrap_err().to_string();
        assert!(e.contains("input 0 `x` is [P(sum)], and the number `s` is not finite"), "{e}");
        return;
    }
    assert!(run(|p, infinite| p.matmul(infinite)).unwrap()[0][0].is_nan());
    again_with("a_partial_that_meets_an_infinity_is_found_on_request", "1");
}
