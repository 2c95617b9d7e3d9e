//! Activation checkpointing: the bits of a plain run, in less memory.

use oflow::functional::grad;
use oflow::nn::{BatchNorm, Block, BlockOptions, Dropout, Linear, Module, ZeroOptions, checkpoint, zero};
use oflow::testing::{GradCheck, gradcheck_with};
use oflow::{BackwardOptions, apply_custom, memory_stats, prelude::*, saved_tensors_hooks, take_comm_trace};

/// Runs `f` plainly and checkpointed, each from the same seed, and compares the bits of all that it returns.
fn same_bits(ranks: usize, f: impl Fn(bool) -> Result<Vec<Vec<f64>>> + Sync) {
    let run = |on| {
        oflow::run_ranks(ranks, |_| {
            manual_seed(4);
            f(on)
        })
        .unwrap()
    };
    let (plain, again) = (run(false), run(true));
    for (rank, (a, b)) in plain.iter().zip(&again).enumerate() {
        assert!(a.len() > 1 && a == b, "rank {rank}: {a:?}\n{b:?}");
    }
}

fn maybe<X, R>(on: bool, f: impl FnOnce(X) -> R, x: X) -> R {
    if on { checkpoint(f, x) } else { f(x) }
}

fn gradients(m: &dyn Module, x: &Tensor) -> Result<Vec<Vec<f64>>> {
    let mut all = vec![x.grad().expect("a gradient").to_f64_vec()?];
    for (name, p) in m.named_parameters() {
        all.push(p.grad().unwrap_or_else(|| panic!("{name} has no gradient")).to_f64_vec()?);
    }
    Ok(all)
}

#[test]
fn a_block_with_dropout_on_every_mesh_and_precision() {
    let block = BlockOptions { width: 16, heads: 4, hidden: 32, dropout: 0.3 };
    for (sizes, dtype, precision, stage) in [
        ([1, 1], DType::F32, Autocast::Off, 0),
        ([2, 1], DType::F32, Autocast::Off, 0),
        ([1, 2], DType::F64, Autocast::Off, 0),
        ([3, 1], DType::F32, Autocast::Off, 0),
        ([2, 2], DType::F32, Autocast::Off, 0),
        ([2, 1], DType::F32, Autocast::Bf16, 0),
        ([2, 2], DType::F32, Autocast::Bf16, 0),
        ([2, 1], DType::F32, Autocast::Off, 2),
        ([2, 1], DType::F32, Autocast::Off, 3),
        ([2, 2], DType::F32, Autocast::Bf16, 3),
    ] {
        same_bits(sizes.iter().product(), |on| {
            let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", sizes[0]), ("tp", sizes[1])])?;
            let mut m = Block::new(&block, (&mesh, sbp![B, B]).dtype(dtype))?;
            let (column, row) = (sbp![B, S(0)], sbp![B, S(1)]);
            let rules = [
                ("attn.o.bias", sbp![B, B]),
                ("attn.o.weight", row.clone()),
                ("attn.*", column.clone()),
                ("mlp.fc.*", column),
                ("mlp.pr.weight", row),
            ];
            m.to_global(&mesh, &rules)?;
            zero(&mut m, &ZeroOptions { min_elements: 0, ..ZeroOptions::new(stage) })?;
            let x = randn([5, 6, 16], (&mesh, sbp![S(0), B]).dtype(dtype))?.requires_grad_(true)?;
            let y = {
                let _guard = autocast(precision);
                let y = maybe(on, |x| m.forward(x), &x)?;
                // Twice, and once within another.
                maybe(on, |y| maybe(on, |y| m.forward(y), y), &y)?
            };
            y.square()?.sum(())?.backward()?;
            let mut all = gradients(&m, &x)?;
            all.push(y.to_f64_vec()?);
            // The generator has advanced as much.
            all.push(rand([3], (&mesh, sbp![B, B]))?.to_f64_vec()?);
            Ok(all)
        });
    }
}

#[derive(oflow::nn::Module)]
struct Odd {
    fc1: Linear,
    norm: BatchNorm,
    drop: Dropout,
    fc2: Linear,
}

impl Odd {
    /// Several inputs and outputs, running statistics, writes in place, reads of values, views, ops without gradient, values from
    /// elsewhere, a function with a gradient of its own, and a branch on a value.
    fn forward(&self, (a, b): (&Tensor, &Tensor), rows: usize) -> Result<(Tensor, Tensor)> {
        let h = self.norm.forward(&self.fc1.forward(a)?)?.tanh()?;
        let h = self.drop.forward(&h)?;
        let t = h.mul(2.0)?;
        t.add_(&h)?;
        let t = t.exp()?;
        let top = t.argmax(-1)?.one_hot(t.shape()[1])?.cast(t.dtype())?;
        let u = if t.sum(())?.item()? > 0.0 { t.mul(&top)?.add(&t.sigmoid()?)? } else { t.clone() };
        let fixed = match t.global() {
            Some(g) => from_vec(vec![0.5f64; rows], [rows, 1], (&g.placement, NdSbp::broadcast(g.placement.axes())))?,
            None => from_vec(vec![0.5f64; rows], [rows, 1], Device::Cpu)?,
        };
        let v = u.mul(&fixed)?.transpose(0, 1)?.mul(&b.transpose(0, 1)?)?.sin()?;
        let kept = v.detach();
        let w = apply_custom(
            "cube",
            &[&v],
            |x| Ok(vec![x[0].mul(x[0])?.mul(x[0])?]),
            move |g| Ok(vec![g[0].as_ref().map(|g| g.mul(&kept.square()?)?.mul(3.0)).transpose()?]),
        )?
        .remove(0);
        let quiet = {
            let _quiet = no_grad();
            v.square()?.sum(())?
        };
        let z = self.fc2.forward(&w.transpose(0, 1)?.exp()?)?.mul(&quiet)?;
        Ok((z.mul(&u.narrow(1, 0, 2)?)?, v.abs()?.log()?))
    }
}

#[test]
fn several_inputs_and_outputs_state_and_writes_in_place() {
    for (ranks, layout) in [(1, sbp![B]), (2, sbp![S(0)]), (3, sbp![S(0)]), (2, sbp![S(1)]), (2, sbp![P])] {
        same_bits(ranks, |on| {
            let mesh = Placement::all(Device::Cpu)?;
            let t = (&mesh, sbp![B]).dtype(DType::F64);
            let m = Odd {
                fc1: Linear::new(4, 6, &t)?,
                norm: BatchNorm::new(6, &t)?,
                drop: Dropout::new(0.25),
                fc2: Linear::new(6, 2, &t)?,
            };
            let leaf = |shape: &[usize]| randn(shape, (&mesh, layout.clone()).dtype(DType::F64))?.requires_grad_(true);
            let (a, b) = (leaf(&[7, 4])?, leaf(&[7, 6])?);
            // What goes in is in the graph already.
            let x = a.mul(0.5)?;
            let (y, z) = maybe(on, |x| m.forward(x, 7), (&x, &b))?;
            let both = y.sum(())?.add(&z.mul(0.1)?.sum(())?)?;
            both.backward_with(&BackwardOptions { retain_graph: true, ..Default::default() })?;
            let mut all = gradients(&m, &a)?;
            all.push(b.grad().expect("a gradient").to_f64_vec()?);
            // A second backward, of one of the results.
            a.set_grad(None).unwrap();
            b.set_grad(None).unwrap();
            m.zero_grad();
            z.square()?.sum(())?.backward()?;
            all.push(b.grad().expect("a gradient").to_f64_vec()?);
            all.extend(m.named_buffers().iter().map(|(_, b)| b.tensor().to_f64_vec()).collect::<Result<Vec<_>>>()?);
            Ok(all)
        });
    }
}

#[test]
fn local_tensors_and_second_order() {
    let make = |data: Vec<f64>| from_vec(data, [2, 2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let all = [make(vec![0.3, -0.7, 1.1, 0.9]), make(vec![0.5, 0.2, -0.4, 0.8])];
    let f = |v: &[Tensor]| {
        checkpoint(|v: &[Tensor]| Ok(vec![v[0].matmul(&v[1])?.tanh()?.mul(&v[1])?.exp()?, v[0].mul(&v[1])?.sin()?]), v)
    };
    assert_eq!(gradcheck_with(GradCheck { second: true, ..Default::default() }, f, &all).unwrap(), 16);
    let x = &all[0];
    let y = checkpoint(|x: &Tensor| x.exp()?.sin()?.sum(()), x).unwrap();
    let o = BackwardOptions { create_graph: true, ..Default::default() };
    let first = grad([&y], [x], &o).unwrap().remove(0).unwrap();
    let second = grad([first.square().unwrap().sum(()).unwrap()], [x], &BackwardOptions::default()).unwrap();
    for (x, g) in x.to_vec::<f64>().unwrap().iter().zip(second[0].as_ref().unwrap().to_vec::<f64>().unwrap()) {
        let (e, d) = (x.exp(), x.exp() * x.exp().cos());
        let want = 2.0 * d * (d - e * e * e.sin());
        assert!((g - want).abs() < 1e-9 * (1.0 + want.abs()), "{g} {want}");
    }
}

#[test]
fn memory_is_that_of_the_inputs_and_one_block() {
    let peaks = |on: u8, stage: u8| {
        oflow::run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2)])?;
            let block = BlockOptions { width: 64, heads: 4, hidden: 256, dropout: 0.0 };
            let mut blocks: Vec<Block> = (0..6).map(|_| Block::new(&block, (&mesh, sbp![B]))).collect::<Result<_>>()?;
            for b in &mut blocks {
                zero(b, &ZeroOptions::new(stage))?;
            }
            let x = randn([16, 64, 64], (&mesh, sbp![S(0)]))?;
            let before = memory_stats(Device::Cpu)?.live;
            let all = |x: &Tensor| blocks.iter().try_fold(x.clone(), |x, b| maybe(on > 0, |x| b.forward(x), &x));
            let loss = maybe(on > 1, all, &x)?.square()?.sum(())?;
            let kept = memory_stats(Device::Cpu)?.live - before;
            loss.backward()?;
            Ok((kept, memory_stats(Device::Cpu)?.peak))
        })
        .unwrap()
        .remove(0)
    };
    // One [16, 64, 64] on two ranks; the block keeps some twelve of them, hidden ones counted as four.
    let one = 8 * 64 * 64 * 4;
    let (plain, each, nested) = (peaks(0, 0), peaks(1, 0), peaks(2, 0));
    assert!(plain.0 > 50 * one, "{plain:?}");
    assert!(each.0 < 10 * one && 3 * each.1 < 2 * plain.1, "{each:?} {plain:?}");
    assert!(nested.0 < 4 * one && nested.1 < plain.1, "{nested:?} {plain:?}");
    // The weights that are gathered for a call are not kept either.
    let divided = peaks(1, 3);
    assert!(divided.0 < 10 * one, "{divided:?}");
}

#[test]
fn what_is_run_again_and_what_is_not() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4, 4], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let w = ones([4, 4], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let names = std::rc::Rc::new(std::cell::RefCell::new(vec![]));
        let seen = names.clone();
        let _watch = oflow::interpreter::watch_calls(move |call| {
            seen.borrow_mut().push(call.op.name());
            Ok(())
        });
        // The last product is not saved; nothing leads from it to what is.
        let y = checkpoint(|x: &Tensor| with_sbp(sbp![S(1)], || x.exp())?.sin()?.add(1.0), &x)?;
        names.borrow_mut().clear();
        y.backward_with(&BackwardOptions { gradient: Some(y.detach()), ..Default::default() })?;
        let called = names.take();
        assert!(called.contains(&"exp") && !called.contains(&"add_scalar"), "{called:?}");
        // The layout that was asked for is asked for again; what is boxed is boxed again, at the same line.
        take_comm_trace();
        let (z, line) = (checkpoint(|x: &Tensor| x.matmul(&w)?.exp(), &x)?, line!());
        let forward = take_comm_trace();
        z.sum(())?.backward()?;
        let lines: Vec<u32> = take_comm_trace().iter().filter(|r| r.backward).map(|r| r.site.line).collect();
        assert!(forward.iter().any(|r| r.site.line == line) && lines.contains(&line), "{lines:?}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn errors_and_modes() {
    let x = ones([2, 3], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    // An error of the function, after which nothing is listed any more.
    let e = checkpoint(|x: &Tensor| x.exp()?.matmul(x), &x).unwrap_err().to_string();
    assert!(e.contains("inner dims differ") || e.contains("matmul"), "{e}");
    // Nothing is recorded under `no_grad`.
    let y = {
        let _quiet = no_grad();
        checkpoint(|x: &Tensor| x.exp()?.sin(), &x).unwrap()
    };
    assert!(!y.requires_grad());
    // What the calls took from outside must be what it was.
    let scale = full([3], 2.0, Device::Cpu).unwrap();
    let y = checkpoint(|x: &Tensor| x.mul(&scale)?.exp()?.sum(()), &x).unwrap();
    scale.mul_(3.0).unwrap();
    let e = y.backward().unwrap_err().to_string();
    assert!(e.contains("checkpointed call took was changed in place") && e.contains(file!()), "{e}");
    // The hooks of a program and a checkpoint: the inner one keeps what it knows.
    let y = saved_tensors_hooks(
        |_| Err::<u8, _>(Error::unsupported("kept by the hook")),
        |_| Err(Error::unsupported("never")),
        || checkpoint(|x: &Tensor| x.mul(2.0)?.exp()?.sin()?.sum(()), &x),
    );
    y.unwrap().backward().unwrap();
    // A value that changes inside the scope after it was used.
    let f = |on| {
        let x = ones([2, 3], Device::Cpu)?.requires_grad_(true)?;
        let y = maybe(
            on,
            |x: &Tensor| {
                let a = x.mul(2.0)?;
                let b = a.exp()?;
                let c = a.reshape([3, 2])?;
                c.mul_(3.0)?;
                b.mul(&a)?.sin()?.sum(())
            },
            &x,
        )?;
        y.backward()?;
        x.grad().expect("a gradient").to_vec::<f32>()
    };
    assert_eq!(f(true).unwrap(), f(false).unwrap());
    // Backward inside of the scope.
    let x = ones([3], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let y = checkpoint(
        |x: &Tensor| {
            let o = BackwardOptions { create_graph: true, ..Default::default() };
            grad([x.exp()?.sin()?.sum(())?], [x], &o)?.remove(0).expect("a gradient").square()?.sum(())
        },
        &x,
    );
    y.unwrap().backward().unwrap();
    let (e, d) = (1f64.exp(), 1f64.exp() * 1f64.exp().cos());
    let want = 2.0 * d * (d - e * e * e.sin());
    assert!(x.grad().unwrap().to_vec::<f32>().unwrap().iter().all(|g| (f64::from(*g) - want).abs() < 1e-4));
}

#[test]
fn graphs_that_are_never_run_are_freed() {
    oflow::run_ranks(1, |_| {
        let x = ones([1000], Device::Cpu)?.requires_grad_(true)?;
        let run = || {
            checkpoint(
                |x: &Tensor| {
                    let y = x.mul(2.0)?;
                    y.add_(1.0)?;
                    checkpoint(|y: &Tensor| y.exp()?.sin(), &y)?.exp()
                },
                &x,
            )
        };
        drop(run()?);
        let before = memory_stats(Device::Cpu)?.live;
        for _ in 0..5 {
            drop(run()?);
        }
        assert_eq!(memory_stats(Device::Cpu)?.live, before);
        Ok(())
    })
    .unwrap();
}
