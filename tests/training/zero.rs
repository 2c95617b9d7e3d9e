//! ZeRO: every stage computes what a run without it computes; what differs is who holds what, and which bytes move.

use oflow::checkpoint::{CheckpointManager, CheckpointOptions};
use oflow::functional::{CrossEntropyOptions, grad};
use oflow::nn::{Block, BlockOptions, Embedding, LayerNorm, Linear, Module, ZeroOptions, zero, zero_parameter};
use oflow::optim::{AdamW, AdamWOptions, Ema, Lamb, LambOptions, Optimizer, clip_grad_norm};
use oflow::prelude::*;
use oflow::{BackwardOptions, memory_stats, take_comm_trace};

/// Options for logits `[batch, step, class]`.
fn classes_last() -> CrossEntropyOptions {
    CrossEntropyOptions { dim: -1, ..Default::default() }
}

#[derive(oflow::nn::Module)]
struct Gpt {
    wte: Embedding,
    h: Vec<Block>,
    lnf: LayerNorm,
    head: Linear,
}

const WIDTH: usize = 24;
const VOCAB: usize = 19;

impl Gpt {
    /// The output layer shares the table, and heads and hidden units are split over the last axis.
    fn new(mesh: &Placement, dtype: DType) -> Result<Gpt> {
        let t = (mesh, NdSbp::broadcast(mesh.axes())).dtype(dtype);
        let block = BlockOptions { width: WIDTH, heads: 4, hidden: 40, dropout: 0.1 };
        let wte = Embedding::new(VOCAB, WIDTH, &t)?;
        let head = Linear { weight: wte.weight.clone(), bias: None };
        let h = vec![Block::new(&block, &t)?, Block::new(&block, &t)?];
        let mut m = Gpt { wte, h, lnf: LayerNorm::new(WIDTH, &t)?, head };
        if mesh.axes() == 2 {
            let (column, row) = (sbp![B, S(0)], sbp![B, S(1)]);
            let rules = [
                ("*.o.bias", sbp![B, B]),
                ("*.o.weight", row.clone()),
                ("*.attn.*", column.clone()),
                ("*.fc.*", column),
                ("*.pr.weight", row),
            ];
            m.to_global(mesh, &rules)?;
        }
        Ok(m)
    }
    fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        let mut x = self.wte.forward(ids)?;
        for b in &self.h {
            x = b.forward(&x)?;
        }
        self.head.forward(&self.lnf.forward(&x)?)
    }
}

fn mesh(sizes: &[usize]) -> Result<Placement> {
    let names = ["dp", "tp"];
    let axes: Vec<(&str, usize)> = names.iter().copied().zip(sizes.iter().copied()).collect();
    Placement::all(Device::Cpu)?.mesh(&axes)
}

fn options(stage: u8) -> ZeroOptions {
    // Below 30 elements: the norms and biases of the width stay whole, those of the hidden layer do not.
    ZeroOptions { min_elements: 30, ..ZeroOptions::new(stage) }
}

fn batch(mesh: &Placement, step: usize) -> Result<(Tensor, Tensor)> {
    let ids: Vec<i64> = (0..6 * 8 + 1).map(|i| ((i * i + i / 3 + 5 * step) % VOCAB) as i64).collect();
    let whole = NdSbp::broadcast(mesh.axes());
    let ids = from_vec(ids, [49], (mesh, whole.clone()))?;
    let rows = |from: usize| ids.narrow(0, from as i64, 48)?.reshape([6, 8])?.to_global(whole.with(0, Sbp::Split(0)));
    Ok((rows(0)?, rows(1)?))
}

fn losses(mesh: &Placement, stage: u8, dtype: DType, precision: Autocast, clip: bool) -> Result<Vec<f64>> {
    manual_seed(6);
    let mut model = Gpt::new(mesh, dtype)?;
    zero(&mut model, &options(stage))?;
    let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr: 0.01, ..Default::default() });
    let mut found = vec![];
    for step in 0..6 {
        let (seen, next) = batch(mesh, step)?;
        let loss = {
            let _guard = autocast(precision);
            model.forward(&seen)?.cross_entropy_with(&next, &classes_last())?
        };
        opt.zero_grad();
        loss.backward()?;
        if clip {
            clip_grad_norm(&model.parameters(), 0.5)?;
        }
        opt.step()?;
        found.push(loss.item()?);
    }
    let _quiet = no_grad();
    model.train(false);
    let (seen, next) = batch(mesh, 9)?;
    found.push(model.forward(&seen)?.cross_entropy_with(&next, &classes_last())?.item()?);
    Ok(found)
}

#[test]
fn every_stage_has_the_losses_of_a_run_without() {
    for (sizes, dtype, precision) in [
        (&[2][..], DType::F64, Autocast::Off),
        (&[3], DType::F64, Autocast::Off),
        (&[8], DType::F64, Autocast::Off),
        (&[2, 2], DType::F64, Autocast::Off),
        (&[2, 3], DType::F32, Autocast::Off),
        (&[2], DType::F32, Autocast::Bf16),
        (&[2], DType::BF16, Autocast::Off),
    ] {
        let n = sizes.iter().product();
        let run =
            |stage| oflow::run_ranks(n, |_| losses(&mesh(sizes)?, stage, dtype, precision, false)).unwrap().remove(0);
        let want = run(0);
        assert!(want[5] < want[0], "{want:?}");
        for stage in 1..=3 {
            // The same calls on the same values: the same bits.
            assert_eq!(run(stage), want, "stage {stage} on {sizes:?} in {dtype}, autocast {precision}");
        }
    }
    // A common norm adds up in another order.
    let run = |stage| {
        oflow::run_ranks(4, |_| losses(&mesh(&[2, 2])?, stage, DType::F64, Autocast::Off, true)).unwrap().remove(0)
    };
    let want = run(0);
    for stage in 1..=3 {
        assert!(run(stage).iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-10), "stage {stage}");
    }
}

/// Bytes that all ranks together sent in one step, and the bytes in use on this rank before a step, after its forward pass and after
/// its backward pass.
fn measured(stage: u8) -> (u64, [usize; 3]) {
    let all = oflow::run_ranks(4, |_| {
        let mesh = mesh(&[4])?;
        let t = (&mesh, sbp![B]);
        let mut layers: Vec<Linear> = (0..6).map(|_| Linear::without_bias(256, 256, &t)).collect::<Result<_>>()?;
        for l in &mut layers {
            zero(l, &ZeroOptions::new(stage))?;
        }
        let parameters: Vec<Tensor> = layers.iter().flat_map(Module::parameters).collect();
        let mut opt = AdamW::new(parameters, AdamWOptions::default());
        // So that the first layer is needed in backward too.
        let x = randn([8, 256], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let mut found = (0, [0; 3]);
        for _ in 0..2 {
            opt.zero_grad();
            take_comm_trace();
            let live = || memory_stats(Device::Cpu).map(|m| m.live);
            found.1[0] = live()?;
            let loss = layers.iter().try_fold(x.clone(), |x, l| l.forward(&x))?.square()?.sum(())?;
            found.1[1] = live()?;
            loss.backward()?;
            found.1[2] = live()?;
            opt.step()?;
            found.0 = take_comm_trace().iter().map(|r| r.bytes_sent()).sum();
        }
        Ok(found)
    });
    all.unwrap().remove(0)
}

#[test]
fn who_holds_what_and_which_bytes_move() {
    // All parameters together; a quarter of them on each of four ranks.
    let whole = 6 * 256 * 256 * 4;
    let near = |what: &str, have: usize, want: usize| {
        let slack = whole / 12;
        assert!(have.abs_diff(want) < slack, "{what}: {have} bytes, expected {want}");
    };
    let quarters = |n: usize| n * whole / 4;
    let want = [
        // Parameters and two moments; gradients.
        (0, [quarters(12), quarters(12), quarters(16)]),
        // A shard and its moments; the whole parameters for use; gradients.
        (1, [quarters(3), quarters(3 + 4), quarters(3 + 4 + 4)]),
        (2, [quarters(3), quarters(3 + 4), quarters(3 + 4 + 1)]),
        (3, [quarters(3), quarters(3), quarters(3 + 1)]),
    ];
    // Each way, of four ranks together: three quarters of all bytes to or from each rank.
    let way = 3 * whole as u64;
    for ((stage, bytes), moved) in want.into_iter().zip([2, 3, 2, 3]) {
        let (sent, have) = measured(stage);
        for (when, (have, want)) in ["before", "after forward", "after backward"].iter().zip(have.iter().zip(bytes)) {
            near(&format!("stage {stage} {when} a step"), *have, want);
        }
        assert!(sent.abs_diff(moved * way) < way / 50, "stage {stage}: {sent} bytes sent, expected {}", moved * way);
    }
}

#[test]
fn layouts_of_parameters_gradients_and_states() {
    oflow::run_ranks(4, |_| {
        let mesh = mesh(&[2, 2])?;
        let mut m = Gpt::new(&mesh, DType::F32)?;
        m.freeze("wte.weight")?;
        let before: Vec<Vec<f64>> = m.parameters().iter().map(Tensor::to_f64_vec).collect::<Result<_>>()?;
        let of = |m: &Gpt| -> Result<Vec<(String, NdSbp)>> {
            m.named_parameters().into_iter().map(|(n, t)| Ok((n, t.sbp()?.clone()))).collect()
        };
        let without = of(&m)?;
        for stage in [1, 2, 3, 2, 0] {
            zero(&mut m, &options(stage))?;
            let now = of(&m)?;
            let layout = |name: &str| now.iter().find(|(n, _)| n == name).map(|(_, s)| s.to_string()).unwrap();
            if stage == 0 {
                assert_eq!(now, without);
            } else {
                assert_eq!(layout("h.0.attn.q.weight"), "[S(1), S(0)]");
                assert_eq!(layout("h.0.attn.o.weight"), "[S(0), S(1)]");
                // Small; the only dim is split by tp; frozen.
                assert_eq!(layout("h.0.ln1.weight"), "[B, B]");
                assert_eq!(layout("h.0.mlp.fc.bias"), "[B, S(0)]");
                // 19 rows are uneven, 24 columns are not.
                assert_eq!(layout("wte.weight"), if stage == 3 { "[S(1), B]" } else { "[B, B]" });
            }
            assert!(m.head.weight.same(&m.wte.weight));
            for (p, b) in m.parameters().iter().zip(&before) {
                assert_eq!(&p.to_f64_vec()?, b);
            }
            let (seen, next) = batch(&mesh, 0)?;
            m.forward(&seen)?.cross_entropy_with(&next, &classes_last())?.backward()?;
            let q = &m.h[0].attn.q.weight;
            let g = q.grad().expect("a gradient");
            let want = ["[B, S(0)]", "[B, S(0)]", "[S(1), S(0)]", "[S(1), S(0)]"][stage as usize];
            assert_eq!(g.sbp()?.to_string(), want, "stage {stage}");
            assert!(m.unused_parameters().is_empty());
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn checkpoints_are_read_in_any_stage() {
    let dir = std::env::temp_dir().join(format!("oflow-zero-{}", std::process::id()));
    let run = |sizes: &'static [usize], stage: u8, first: usize, steps: usize| {
        let dir = dir.clone();
        oflow::run_ranks(sizes.iter().product(), move |_| {
            let mesh = mesh(sizes)?;
            manual_seed(first as u64);
            let mut model = Gpt::new(&mesh, DType::F64)?;
            model.train(false);
            zero(&mut model, &options(stage))?;
            let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr: 0.01, ..Default::default() });
            let mut manager = CheckpointManager::new(&dir, CheckpointOptions { keep: 0 });
            if first > 0 {
                // What was read before is not the value any more.
                let (seen, next) = batch(&mesh, 0)?;
                model.forward(&seen)?.cross_entropy_with(&next, &classes_last())?.item()?;
                manager.load_latest(&mut [("model", &mut model), ("opt", &mut opt)])?;
            }
            let mut found = vec![];
            for step in first..first + steps {
                let (seen, next) = batch(&mesh, step)?;
                let loss = model.forward(&seen)?.cross_entropy_with(&next, &classes_last())?;
                opt.zero_grad();
                loss.backward()?;
                opt.step()?;
                found.push(loss.item()?);
            }
            manager.save((first + steps) as u64, &[("model", &model), ("opt", &opt)])?;
            Ok(found)
        })
        .unwrap()
        .remove(0)
    };
    let want = run(&[1, 1], 0, 0, 8);
    std::fs::remove_dir_all(&dir).unwrap();
    let parts = [run(&[4, 1], 3, 0, 2), run(&[2, 2], 1, 2, 2), run(&[3, 1], 2, 4, 2), run(&[1, 2], 0, 6, 2)].concat();
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(parts.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-9), "{parts:?} {want:?}");
}

/// One parameter of a shape, in every use that programs make of it.
fn used(shape: &[usize], stage: u8, ranks: usize) -> Vec<Vec<f64>> {
    oflow::run_ranks(ranks, |_| {
        let mesh = mesh(&[ranks])?;
        manual_seed(3);
        let p = randn(shape, (&mesh, sbp![B]).dtype(DType::F64))?.requires_grad_(true)?;
        let p = zero_parameter(&p, &ZeroOptions { min_elements: 0, ..ZeroOptions::new(stage) })?;
        let x = randn(shape, (&mesh, sbp![P]).dtype(DType::F64))?;
        let f = || p.mul(&x)?.add(&p.square()?.mul(&p)?)?.mul(&p)?.sum(());
        let mut all = vec![p.to_f64_vec()?, f()?.to_f64_vec()?];
        // Two backward passes add up, one of them through the graph a second time, and so do micro-batches.
        let y = f()?;
        y.backward_with(&BackwardOptions { retain_graph: true, ..Default::default() })?;
        y.backward()?;
        {
            let _later = oflow::no_sync();
            f()?.backward()?;
        }
        f()?.backward()?;
        all.push(p.grad().expect("a gradient").to_f64_vec()?);
        // Second order.
        let o = BackwardOptions { create_graph: true, ..Default::default() };
        let g = grad([f()?], [&p], &o)?.remove(0).expect("a gradient");
        let second = grad([g.square()?.sum(())?], [&p], &BackwardOptions::default())?.remove(0);
        all.push(second.expect("a second gradient").to_f64_vec()?);
        let mut opt = Lamb::new(vec![p.clone()], LambOptions { lr: 0.1, ..Default::default() });
        let mut ema = Ema::new(vec![p.clone()], 0.5)?;
        opt.step()?;
        ema.update()?;
        all.push(f()?.to_f64_vec()?);
        ema.swap()?;
        all.push(f()?.to_f64_vec()?);
        ema.swap()?;
        {
            let _quiet = no_grad();
            p.mul_(0.5)?;
            p.copy_(&p.add(1.0)?)?;
        }
        all.push(f()?.to_f64_vec()?);
        Ok(all)
    })
    .unwrap()
    .remove(0)
}

#[test]
fn parameters_of_all_sizes_in_all_uses() {
    for shape in [&[][..], &[1], &[3], &[5], &[7, 1], &[2, 3, 5], &[0, 4]] {
        let want = used(shape, 0, 1);
        for (stage, ranks) in [(1, 2), (2, 2), (3, 2), (1, 4), (2, 3), (3, 4), (3, 8)] {
            let have = used(shape, stage, ranks);
            for (i, (have, want)) in have.iter().zip(&want).enumerate() {
                let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
                assert!(
                    have.len() == want.len() && have.iter().zip(want).all(close),
                    "{shape:?}, stage {stage} on {ranks} ranks, number {i}: {have:?} {want:?}"
                );
            }
        }
    }
}

#[test]
fn a_parameter_changed_before_backward_is_noticed() {
    for stage in [0, 1, 3] {
        let found = oflow::run_ranks(2, |_| {
            let mesh = mesh(&[2])?;
            let mut l = Linear::without_bias(8, 8, (&mesh, sbp![B]))?;
            zero(&mut l, &ZeroOptions { min_elements: 0, ..ZeroOptions::new(stage) })?;
            let x = ones([4, 8], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
            let y = l.forward(&x)?.sum(())?;
            {
                let _quiet = no_grad();
                l.weight.mul_(2.0)?;
            }
            let before = l.weight.to_vec::<f32>()?.iter().map(|w| w / 2.0).collect::<Vec<_>>();
            y.backward()?;
            // The whole parameter that was kept for use is what it was.
            let sum: Vec<f32> = (0..8).map(|column| (0..8).map(|row| before[8 * row + column]).sum()).collect();
            let g = x.grad().expect("a gradient").to_vec::<f32>()?;
            assert!(g.iter().zip(sum.iter().cycle()).all(|(g, s)| (g - s).abs() < 1e-5), "{g:?} {before:?}");
            Ok(())
        });
        match stage {
            1 => assert!(found.is_ok(), "{found:?}"),
            _ => {
                let e = found.unwrap_err().to_string();
                assert!(e.contains("was changed in place after it was used"), "stage {stage}: {e}");
            }
        }
    }
}

#[test]
fn what_cannot_be_divided_is_an_error_that_names_the_parameter() {
    oflow::run_ranks(2, |_| {
        let mut local = Linear::new(4, 4, Device::Cpu)?;
        let e = zero(&mut local, &ZeroOptions::new(1)).unwrap_err().to_string();
        assert!(e.contains("parameter 'weight'") && e.contains("is local") && e.contains(file!()), "{e}");
        let mesh = Placement::all(Device::Cpu)?.mesh(&[("x", 2)])?;
        let mut l = Linear::new(4, 4, (&mesh, sbp![B]))?;
        let e = zero(&mut l, &ZeroOptions::new(1)).unwrap_err().to_string();
        assert!(e.contains("parameter 'weight'") && e.contains("no axis named 'dp'"), "{e}");
        let e = zero(&mut l, &ZeroOptions::new(4)).unwrap_err().to_string();
        assert!(e.contains("unknown stage 4 of ZeRO"), "{e}");
        let o: ZeroOptions = serde_json::from_str(r#"{"stage": 3, "axis": "0", "min_elements": 0}"#).unwrap();
        zero(&mut l, &o)?;
        assert_eq!(l.bias.as_ref().unwrap().sbp()?, &sbp![S(0)]);
        // Policies and comm records know the gathers.
        take_comm_trace();
        let x = ones([4, 4], (&mesh, sbp![S(0)]))?;
        l.forward(&x)?;
        assert_eq!(take_comm_trace().iter().filter(|r| r.op == "parameter").count(), 2);
        let _denied = oflow::boxing_policy(oflow::Policy::Deny);
        let e = l.forward(&x).unwrap_err().to_string();
        assert!(e.contains("boxing is denied here") && e.contains("linear"), "{e}");
        Ok(())
    })
    .unwrap();
}
