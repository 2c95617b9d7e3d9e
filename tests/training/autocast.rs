//! Autocast: which dtypes ops run in, that it works for every layout, what is cast how often, and where gradients end up.

use oflow::BackwardOptions;
use oflow::functional::CrossEntropyOptions;
use oflow::nn::{Linear, Module};
use oflow::ops::{CASTS, CastPolicy};
use oflow::prelude::*;

/// Global ops that this rank has issued.
fn ops() -> u64 {
    oflow::context::current().ops_issued()
}

fn local(shape: &[usize], dtype: DType) -> Tensor {
    let n: usize = shape.iter().product();
    let values: Vec<f32> = (0..n).map(|i| (i * 7 % 11) as f32 / 8.0 - 0.5).collect();
    from_vec(values, shape, Device::Cpu).unwrap().cast(dtype).unwrap()
}

#[test]
fn products_run_low_and_sums_run_full_inside_the_scope_only() {
    let (a, b) = (local(&[3, 4], DType::F32), local(&[4, 5], DType::F32));
    for (mode, low) in [(Autocast::Bf16, DType::BF16), (Autocast::F16, DType::F16)] {
        let amp = autocast(mode);
        let y = a.matmul(&b).unwrap();
        assert_eq!(y.dtype(), low);
        assert_eq!(y.relu().unwrap().dtype(), low, "untouched");
        assert_eq!(y.add(&local(&[5], DType::F32)).unwrap().dtype(), DType::F32, "promotes by itself");
        for full in [y.softmax(-1), y.log_softmax(-1), y.exp(), y.sum(()), y.mean(()), y.layer_norm(None, None, 1e-5)] {
            assert_eq!(full.unwrap().dtype(), DType::F32);
        }
        assert_eq!(cat(&[&y, &local(&[1, 5], DType::F32)], 0).unwrap().dtype(), DType::F32);
        {
            let _off = autocast(Autocast::Off);
            assert_eq!(a.matmul(&b).unwrap().dtype(), DType::F32);
            assert_eq!(y.exp().unwrap().dtype(), low, "as without autocast");
        }
        assert_eq!(a.matmul(&b).unwrap().dtype(), low, "the outer scope again");
        drop(amp);
        assert_eq!(a.matmul(&b).unwrap().dtype(), DType::F32);
    }
}

#[test]
fn doubles_and_integers_are_left_alone() {
    let _amp = autocast(Autocast::Bf16);
    let d = local(&[3, 3], DType::F64);
    assert_eq!(d.matmul(&d).unwrap().dtype(), DType::F64);
    let i = arange(9, Device::Cpu).unwrap().reshape([3, 3]).unwrap();
    assert_eq!(i.matmul(&i).unwrap().dtype(), DType::I64);
    assert_eq!(i.sum(()).unwrap().dtype(), DType::I64);
    // What is written in place keeps its dtype.
    let x = local(&[2], DType::F32);
    x.add_(&local(&[2], DType::BF16)).unwrap();
    assert_eq!(x.dtype(), DType::F32);
}

#[test]
fn every_policy_of_the_table_is_applied_to_one_input_ops() {
    let x = local(&[2, 3], DType::BF16).abs().unwrap().add(0.5).unwrap();
    let _amp = autocast(Autocast::F16);
    for name in CASTS.iter().filter(|(p, _)| *p == CastPolicy::Full).flat_map(|(_, names)| *names) {
        let op = oflow::ops::find(name).unwrap();
        if op.sig.inputs.iter().filter(|i| !i.optional).count() > 1 || !op.sig.attrs.iter().all(|a| a.default.is_some())
        {
            continue;
        }
        let named: &[(&str, oflow::functional::Arg)] = match *name {
            "pow_scalar" | "rpow_scalar" => &[("s", 2.0.into())],
            _ => &[],
        };
        let rows = x.reshape([1, 1, 2, 3]).unwrap();
        let x = if *name == "grouped_norm" { &rows } else { &x };
        let y = match oflow::call(name, &[x.into()], named) {
            Ok(y) => y,
            // A function of that name takes other arguments than the op.
            Err(e) if e.to_string().contains("no overload") || e.to_string().contains("unknown function") => continue,
            Err(e) => panic!("{name}: {e}"),
        };
        assert_eq!(y[0].dtype(), DType::F32, "{name}");
    }
}

#[test]
fn a_weight_is_cast_once_per_scope_and_version() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let w = ones([6, 4], (&mesh, sbp![B]))?.requires_grad_(true)?;
        let x = ones([4, 6], (&mesh, sbp![S(0)]))?;

        let call = || -> Result<u64> {
            let before = ops();
            x.matmul(&w)?;
            Ok(ops() - before)
        };
        let amp = autocast(Autocast::Bf16);
        assert_eq!(call()?, 3, "both inputs are cast");
        assert_eq!(call()?, 2, "the weight's cast is remembered; x takes no part in a graph");
        {
            let _quiet = no_grad();
            assert_eq!(call()?, 3, "a cast that was recorded is not one that was not");
            assert_eq!(call()?, 2);
            w.add_(1.0)?;
            assert_eq!(call()?, 3, "a new version");
        }
        assert_eq!(call()?, 3);
        {
            let _inner = autocast(Autocast::Bf16);
            assert_eq!(call()?, 2, "an inner scope shares what the outer one keeps");
        }
        assert_eq!(call()?, 2);
        drop(amp);
        let _amp = autocast(Autocast::Bf16);
        assert_eq!(call()?, 3, "forgotten with the scope");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_tensor_of_the_graph_is_cast_once_for_several_products() {
    oflow::run_ranks(1, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let t = || randn([4, 4], (&mesh, sbp![B]));
        let (h, q, k) = (t()?.requires_grad_(true)?, t()?, t()?);
        let x = h.mul(2.0)?;
        let _amp = autocast(Autocast::Bf16);
        let before = ops();
        let (a, b) = (x.matmul(&q)?, x.matmul(&k)?);
        // x once, q, k, two products.
        assert_eq!(ops() - before, 5);
        a.add(&b)?.sum(())?.backward()?;
        assert_eq!(h.grad().unwrap().dtype(), DType::F32);
        Ok(())
    })
    .unwrap();
}

#[test]
fn contributions_to_a_cast_are_added_in_f32() {
    // 256 + 1 is not a bf16; each product gives one of the two to the weight.
    let w = ones([1, 1], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let _amp = autocast(Autocast::Bf16);
    let big = full([1, 1], 256.0, Device::Cpu).unwrap().matmul(&w).unwrap();
    let small = full([1, 1], 1.0, Device::Cpu).unwrap().matmul(&w).unwrap();
    cat(&[&big, &small], 0).unwrap().sum(()).unwrap().backward().unwrap();
    assert_eq!(w.grad().unwrap().to_vec::<f32>().unwrap(), [257.0]);
}

#[test]
fn partial_inputs_are_reduced_in_their_own_dtype_before_they_are_rounded() {
    let sums = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        // Parts 256 and 1: rounded on each rank they make 257 -> 256 in bf16; 257 * 2 in f32 is 514.
        let part = full([1, 2], if mesh.ranks().len() == 2 { 0.5 } else { 1.0 }, (&mesh, sbp![B]))?;
        let a = part.mul(2.0)?.to_global((&mesh, sbp![S(1)]))?;
        let p = with_sbp(sbp![P], || a.matmul(&full([2, 1], 128.5, (&mesh, sbp![S(0)]))?))?;
        assert_eq!((p.sbp()?, p.dtype()), (&sbp![P], DType::F32));
        oflow::take_comm_trace();
        let _amp = autocast(Autocast::F16);
        let y = p.matmul(&ones([1, 1], (&mesh, sbp![B]))?)?;
        let told = oflow::take_comm_trace();
        assert_eq!(told.iter().filter(|r| r.bytes_sent() > 0).count(), 1, "one reduction, of the f32 value");
        assert_eq!(y.dtype(), DType::F16);
        y.cast(DType::F32)?.item()
    })
    .unwrap();
    assert_eq!(sums, [257.0, 257.0]);
}

#[test]
fn linear_layers_agree_with_f32_on_every_layout_forward_and_backward() {
    let run = |ranks: usize, w: NdSbp, x: NdSbp, mode: Autocast| {
        let mut all = oflow::run_ranks(ranks, |_| {
            manual_seed(5);
            let mesh = Placement::all(Device::Cpu)?;
            let mut l = Linear::new(12, 10, (&mesh, sbp![B]))?;
            l.to_global(&mesh, &[("weight", w.clone())])?;
            let x = randn([8, 12], (&mesh, x.clone()))?.requires_grad_(true)?;
            let y = {
                let _amp = autocast(mode);
                l.forward(&x)?
            };
            assert_eq!(y.dtype(), mode.dtype().unwrap_or(DType::F32));
            y.cast(DType::F32)?.square()?.mean(())?.backward()?;
            let grads = [l.weight.grad(), l.bias.as_ref().and_then(|b| b.grad()), x.grad()];
            let mut out = y.to_f64_vec()?;
            for g in grads {
                let g = g.unwrap();
                assert_eq!(g.dtype(), DType::F32);
                out.extend(g.to_f64_vec()?);
            }
            Ok(out)
        })
        .unwrap();
        all.swap_remove(0)
    };
    let want = run(1, sbp![B], sbp![B], Autocast::Off);
    for mode in [Autocast::Bf16, Autocast::F16] {
        let tolerance = if mode == Autocast::Bf16 { 2e-2 } else { 3e-3 };
        for (ranks, w, x) in [
            (1, sbp![B], sbp![B]),
            (2, sbp![B], sbp![S(0)]),
            (2, sbp![S(0)], sbp![B]),
            (3, sbp![S(1)], sbp![S(1)]),
            (2, sbp![S(1)], sbp![B]),
        ] {
            let got = run(ranks, w.clone(), x.clone(), mode);
            for (g, w_) in got.iter().zip(&want) {
                assert!((g - w_).abs() <= tolerance * w_.abs().max(1.0), "{mode} w {w} x {x}: {g} instead of {w_}");
            }
        }
    }
}

#[test]
fn backward_inside_the_scope_and_second_backward_run_in_the_dtypes_of_forward() {
    let _amp = autocast(Autocast::Bf16);
    let w = local(&[4, 4], DType::F32).requires_grad_(true).unwrap();
    let y = local(&[2, 4], DType::F32).matmul(&w).unwrap().sum(()).unwrap();
    y.backward_with(&BackwardOptions { retain_graph: true, ..Default::default() }).unwrap();
    let once = w.grad().unwrap().to_vec::<f32>().unwrap();
    y.backward().unwrap();
    let twice = w.grad().unwrap().to_vec::<f32>().unwrap();
    assert!(once.iter().zip(&twice).all(|(a, b)| a * 2.0 == *b));
}

#[test]
fn a_gradient_has_the_dtype_of_what_it_is_the_gradient_of() {
    // f32 + bf16 is f32; on the way back the half side gets a half again, for the product before it.
    let (x, w) = (
        local(&[2, 4], DType::F32).requires_grad_(true).unwrap(),
        local(&[4, 4], DType::F32).requires_grad_(true).unwrap(),
    );
    let y = {
        let _amp = autocast(Autocast::Bf16);
        let h = x.matmul(&w).unwrap();
        let h = h.matmul(&w).unwrap().add(&x).unwrap();
        assert_eq!(h.dtype(), DType::F32);
        h
    };
    y.square().unwrap().sum(()).unwrap().backward().unwrap();
    assert_eq!((x.grad().unwrap().dtype(), w.grad().unwrap().dtype()), (DType::F32, DType::F32));
}

/// The GPT of the examples in small: low precision costs little accuracy, for every way to spread it.
#[test]
fn training_in_low_precision_follows_f32_however_it_is_spread() {
    use oflow::nn::{Block, BlockOptions, Embedding};
    use oflow::optim::{AdamW, AdamWOptions, GradScaler, GradScalerOptions, Optimizer};
    #[derive(oflow::nn::Module)]
    struct Net {
        wte: Embedding,
        h: Block,
        head: Linear,
    }
    let run = |ranks: usize, dp: usize, mode: Autocast| {
        let mut all = oflow::run_ranks(ranks, |_| {
            manual_seed(1);
            let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", dp), ("tp", ranks / dp)])?;
            let t = (&mesh, sbp![B, B]);
            let o = BlockOptions { width: 16, heads: 4, hidden: 32, dropout: 0.1 };
            let wte = Embedding::with_std(24, 16, 0.5, t.clone())?;
            let head = Linear { weight: wte.weight.clone(), bias: None };
            let mut net = Net { h: Block::new(&o, t.clone())?, wte, head };
            let (column, row) = (sbp![B, S(0)], sbp![B, S(1)]);
            net.to_global(&mesh, &[("*.o.weight", row.clone()), ("*.attn.*.weight", column), ("*.pr.weight", row)])?;
            let ids = randint(0, 24, [4, 9], t.clone())?;
            let x = ids.slice(1, 0, 8, 1)?.to_global(sbp![S(0), B])?;
            let y = ids.slice(1, 1, 9, 1)?.to_global(sbp![S(0), B])?;
            let mut opt = AdamW::new(net.parameters(), AdamWOptions { lr: 1e-2, ..Default::default() });
            let mut scaler = GradScaler::new(GradScalerOptions::default());
            let mut losses = vec![];
            for _ in 0..8 {
                let loss = {
                    let _amp = autocast(mode);
                    let logits = net.head.forward(&net.h.forward(&net.wte.forward(&x)?)?)?;
                    assert_eq!(logits.dtype(), mode.dtype().unwrap_or(DType::F32));
                    logits.cross_entropy_with(&y, &CrossEntropyOptions { dim: -1, ..Default::default() })?
                };
                assert_eq!(loss.dtype(), DType::F32);
                opt.zero_grad();
                if mode == Autocast::F16 {
                    scaler.scale(&loss)?.backward()?;
                    scaler.step(&mut opt)?;
                    scaler.update();
                } else {
                    loss.backward()?;
                    opt.step()?;
                }
                for p in net.parameters() {
                    assert_eq!(p.grad().unwrap().dtype(), DType::F32);
                    assert_eq!(p.grad().unwrap().sbp()?, p.sbp()?);
                }
                losses.push(loss.item()?);
            }
            assert_eq!(scaler.skipped(), 0);
            Ok(losses)
        })
        .unwrap();
        all.swap_remove(0)
    };
    let want = run(1, 1, Autocast::Off);
    assert!(want[7] < want[0] * 0.9, "{want:?}");
    for (ranks, dp) in [(1, 1), (2, 2), (2, 1), (4, 2)] {
        for mode in [Autocast::Bf16, Autocast::F16] {
            let got = run(ranks, dp, mode);
            assert!(
                want.iter().zip(&got).all(|(w, g)| (w - g).abs() < 0.03 * w),
                "{ranks} {dp} {mode}: {got:?} {want:?}"
            );
        }
    }
}
