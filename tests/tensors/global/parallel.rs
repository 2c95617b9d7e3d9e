//! Training does not depend on how it is spread: single, data-, tensor- and 2-d-parallel runs of the same program have the
//! same weights and dropout masks bit for bit and the same losses up to rounding.

use oflow::data::Loader;
use oflow::functional::CrossEntropyOptions;
use oflow::nn::{Block, BlockOptions, Dropout, Embedding, LayerNorm, Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions, clip_grad_norm};
use oflow::prelude::*;

/// Mesh sizes [dp, tp] of the runs; the first is the reference.
const MESHES: [(usize, usize); 8] = [(1, 1), (2, 1), (1, 2), (3, 1), (4, 1), (1, 4), (2, 2), (4, 2)];

fn mesh((dp, tp): (usize, usize)) -> Result<Placement> {
    Placement::all(Device::Cpu)?.mesh(&[("dp", dp), ("tp", tp)])
}

#[derive(oflow::nn::Module)]
struct Mlp {
    fc1: Linear,
    drop: Dropout,
    fc2: Linear,
}

impl Mlp {
    fn new(mesh: &Placement, dtype: DType) -> Result<Mlp> {
        let t = (mesh, sbp![B, B]).dtype(dtype);
        let (fc1, fc2) = (Linear::new(20, 33, &t)?, Linear::new(33, 10, &t)?);
        let mut m = Mlp { fc1, drop: Dropout::new(0.2), fc2 };
        m.to_global(mesh, &[("fc1.*", sbp![B, S(0)]), ("fc2.weight", sbp![B, S(1)])])?;
        Ok(m)
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.fc2.forward(&self.drop.forward(&self.fc1.forward(x)?.relu()?)?)
    }
}

#[derive(oflow::nn::Module)]
struct Gpt {
    wte: Embedding,
    h: Vec<Block>,
    lnf: LayerNorm,
    head: Linear,
}

impl Gpt {
    fn new(mesh: &Placement, dtype: DType) -> Result<Gpt> {
        let t = (mesh, sbp![B, B]).dtype(dtype);
        let block = BlockOptions { width: 16, heads: 4, hidden: 32, dropout: 0.1 };
        let mut m = Gpt {
            wte: Embedding::new(24, 16, &t)?,
            h: vec![Block::new(&block, &t)?, Block::new(&block, &t)?],
            lnf: LayerNorm::new(16, &t)?,
            head: Linear::without_bias(16, 24, &t)?,
        };
        let column = sbp![B, S(0)];
        let row = sbp![B, S(1)];
        m.to_global(
            mesh,
            &[
                ("*.o.bias", sbp![B, B]),
                ("*.o.weight", row.clone()),
                ("*.attn.*", column.clone()),
                ("*.fc.*", column),
                ("*.pr.weight", row),
            ],
        )?;
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

/// Rows that can be learnt: the class is where the noisy input is largest.
fn rows(mesh: &Placement, batch: usize) -> Result<Loader> {
    let (mut x, mut y, mut state) = (vec![], vec![], 1u32);
    for _ in 0..101 {
        let mut values: Vec<f32> = (0..20)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 24) as f32
            })
            .collect();
        let class = (state >> 20) as usize % 10;
        values[class] += 1.0;
        x.extend(values);
        y.push(class as i64);
    }
    Ok(Loader::new(mesh, batch).split_along("dp")?.column(x, &[20])?.column(y, &[])?.shuffled(9))
}

fn mlp_losses(mesh: &Placement, dtype: DType, steps: usize) -> Result<Vec<f64>> {
    manual_seed(5);
    let model = Mlp::new(mesh, dtype)?;
    // 101 rows in batches of 16: the last one is uneven on every mesh.
    let data = rows(mesh, 16)?;
    let mut opt = Sgd::new(model.parameters(), SgdOptions { lr: 0.1, momentum: 0.9, ..Default::default() });
    let mut losses = vec![];
    for b in (0..).flat_map(|e| data.epoch(e)).take(steps) {
        let b = b?;
        let loss = model.forward(&b[0].cast(dtype)?)?.cross_entropy(&b[1])?;
        opt.zero_grad();
        loss.backward()?;
        opt.step()?;
        losses.push(loss.item()?);
    }
    Ok(losses)
}

fn gpt_losses(mesh: &Placement, dtype: DType, steps: usize) -> Result<Vec<f64>> {
    manual_seed(6);
    let model = Gpt::new(mesh, dtype)?;
    let ids: Vec<i64> = (0..40 * 8 + 1).map(|i| (i * i + i / 7) % 24).collect();
    let data = Loader::new(mesh, 6).split_along("dp")?;
    let data = data.column(ids[..320].to_vec(), &[8])?.column(ids[1..].to_vec(), &[8])?.shuffled(2);
    let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr: 0.01, ..Default::default() });
    let mut losses = vec![];
    for b in (0..).flat_map(|e| data.epoch(e)).take(steps) {
        let b = b?;
        let loss =
            model.forward(&b[0])?.cross_entropy_with(&b[1], &CrossEntropyOptions { dim: -1, ..Default::default() })?;
        opt.zero_grad();
        loss.backward()?;
        clip_grad_norm(&model.parameters(), 1.0)?;
        opt.step()?;
        losses.push(loss.item()?);
    }
    Ok(losses)
}

/// Runs on every mesh and compares every rank's losses with those of one rank.
fn compare(what: &str, tolerance: f64, run: impl Fn(&Placement) -> Result<Vec<f64>> + Sync) {
    let mut want: Option<Vec<f64>> = None;
    for sizes in MESHES {
        let all = oflow::run_ranks(sizes.0 * sizes.1, |_| run(&mesh(sizes)?)).unwrap();
        let want = want.get_or_insert_with(|| all[0].clone());
        for (rank, losses) in all.iter().enumerate() {
            assert_eq!(losses, &all[0], "{what} on {sizes:?}: ranks disagree");
            for (step, (l, w)) in losses.iter().zip(&*want).enumerate() {
                let off = (l - w).abs();
                assert!(off <= tolerance, "{what} on {sizes:?}, rank {rank}, step {step}: {l} instead of {w}");
            }
        }
    }
    let want = want.unwrap();
    let (first, last) = (want[0], want[want.len() - 1]);
    assert!(want.len() < 50 || last < 0.8 * first, "{what} learns nothing: {first} -> {last}");
}

#[test]
fn mlp_losses_agree_in_f64() {
    compare("mlp f64", 1e-9, |m| mlp_losses(m, DType::F64, 100));
}

#[test]
fn mlp_losses_agree_in_f32() {
    compare("mlp f32", 1e-4, |m| mlp_losses(m, DType::F32, 20));
}

#[test]
fn gpt_losses_agree_in_f64() {
    compare("gpt f64", 1e-9, |m| gpt_losses(m, DType::F64, 100));
}

#[test]
fn gpt_losses_agree_in_f32() {
    compare("gpt f32", 1e-4, |m| gpt_losses(m, DType::F32, 20));
}

/// Weights as bits, and what dropout makes of ones.
fn start(mesh: &Placement) -> Result<Vec<Vec<u32>>> {
    manual_seed(11);
    let (mlp, gpt) = (Mlp::new(mesh, DType::F32)?, Gpt::new(mesh, DType::F32)?);
    let mut found = vec![];
    for p in mlp.parameters().iter().chain(&gpt.parameters()) {
        found.push(p.to_vec::<f32>()?.iter().map(|x| x.to_bits()).collect());
    }
    for split in [sbp![B, B], sbp![S(0), B], sbp![B, S(1)], sbp![S(0), S(0)]] {
        manual_seed(12);
        let dropped = ones([7, 9], (mesh, split))?.dropout(0.3)?.to_vec::<f32>()?;
        found.push(dropped.iter().map(|x| x.to_bits()).collect());
    }
    Ok(found)
}

#[test]
fn weights_and_masks_are_identical_bit_for_bit() {
    let want = oflow::run_ranks(1, |_| start(&mesh((1, 1))?)).unwrap().remove(0);
    let masks = &want[want.len() - 4..];
    assert!(masks.iter().all(|m| m == &masks[0]) && masks[0].iter().any(|x| *x != masks[0][0]));
    for sizes in MESHES {
        for got in oflow::run_ranks(sizes.0 * sizes.1, |_| start(&mesh(sizes)?)).unwrap() {
            assert!(got == want, "another start on {sizes:?}");
        }
    }
}

#[test]
fn a_tensor_parallel_step_has_two_reductions_per_block_and_direction() {
    oflow::run_ranks(2, |_| {
        let mesh = mesh((1, 2))?;
        let model = Gpt::new(&mesh, DType::F32)?;
        let ids = from_vec((0..48i64).map(|i| i % 24).collect(), [6, 8], (&mesh, sbp![S(0), B]))?;
        oflow::take_comm_trace();
        model
            .forward(&ids)?
            .cross_entropy_with(&ids, &CrossEntropyOptions { dim: -1, ..Default::default() })?
            .backward()?;
        let moved: Vec<_> = oflow::take_comm_trace().into_iter().filter(|r| r.bytes_sent() > 0).collect();
        for backward in [false, true] {
            let reduced = moved.iter().filter(|r| r.backward == backward).map(|r| r.moved.to_string());
            let reduced: Vec<String> = reduced.collect();
            assert_eq!(reduced.len(), 2 * model.h.len(), "{reduced:#?}");
            assert!(reduced.iter().all(|p| p.contains("all-reduce(sum) along tp")), "{reduced:#?}");
        }
        Ok(())
    })
    .unwrap();
}
