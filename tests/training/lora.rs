//! Low-rank adaptation in every layout of the base, merged and not, trained and saved alone; scaled rotary tables.

use oflow::checkpoint::{CheckpointManager, CheckpointOptions};
use oflow::nn::{Linear, Lora, LoraOptions, Module, RotaryEmbedding, RotaryOptions, RotaryScaling, Trained, Yarn};
use oflow::optim::{Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;
use oflow::run_ranks;

const OPTIONS: LoraOptions = LoraOptions { rank: 2, alpha: 6.0, dropout: 0.0, rank_stabilized: false };

/// A layer of fixed values in a layout, adapted by fixed matrices.
fn adapted(layout: Option<(&Placement, NdSbp)>) -> Result<Lora> {
    let value = |n: usize, by: f64| (0..n).map(|i| ((i as f64 * by).sin() * 0.5) as f32).collect::<Vec<_>>();
    let mut base = Linear::new(6, 4, Device::Cpu)?;
    base.weight.detach().copy_(&from_vec(value(24, 1.3), [4, 6], Device::Cpu)?)?;
    base.bias.as_ref().unwrap().detach().copy_(&from_vec(value(4, 0.7), [4], Device::Cpu)?)?;
    if let Some((p, sbp)) = layout {
        let of_bias = NdSbp::new(&sbp_of_bias(&sbp));
        base.to_global(p, &[("weight", sbp), ("bias", of_bias)])?;
    }
    let lora = Lora::new(base, OPTIONS)?;
    lora.load_tensors(
        &[
            ("lora_a".to_string(), from_vec(value(12, 2.1), [2, 6], Device::Cpu)?),
            ("lora_b".to_string(), from_vec(value(8, 0.9), [4, 2], Device::Cpu)?),
        ],
        false,
    )?;
    Ok(lora)
}

/// The bias is split where the outputs are.
fn sbp_of_bias(weight: &NdSbp) -> Vec<Sbp> {
    weight.iter().map(|s| if *s == Sbp::Split(0) { *s } else { Sbp::Broadcast }).collect()
}

fn close(a: &[f64], b: &[f64], by: f64) {
    assert_eq!(a.len(), b.len());
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < by), "{a:?} instead of {b:?}");
}

/// Two steps of training: outputs before and after, and the adapters.
fn trained(mut lora: Lora, x: Tensor) -> Result<Vec<Vec<f64>>> {
    let mut found = vec![lora.forward(&x)?.to_f64_vec()?];
    let mut opt = Sgd::new(lora.parameters(), SgdOptions { lr: 0.1, ..Default::default() });
    let base = lora.base.weight.to_f64_vec()?;
    for _ in 0..2 {
        opt.zero_grad();
        lora.forward(&x)?.square()?.sum(())?.backward()?;
        opt.step()?;
    }
    assert_eq!(lora.base.weight.to_f64_vec()?, base, "the base is frozen");
    found.push(lora.forward(&x)?.to_f64_vec()?);
    found.extend([lora.lora_a.to_f64_vec()?, lora.lora_b.to_f64_vec()?]);
    // Merged it computes the same, and unmerged the weight is as before.
    lora.merge()?;
    lora.merge()?;
    assert!(lora.merged() && !lora.forward(&x)?.requires_grad());
    close(&lora.forward(&x)?.to_f64_vec()?, &found[1], 1e-4);
    lora.unmerge()?;
    close(&lora.base.weight.to_f64_vec()?, &base, 1e-6);
    close(&lora.forward(&x)?.to_f64_vec()?, &found[1], 1e-4);
    found.push(lora.into_linear()?.forward(&x)?.to_f64_vec()?);
    Ok(found)
}

#[test]
fn adapters_train_alike_in_every_layout_of_the_base() {
    let rows: Vec<f32> = (0..18).map(|i| (i as f32 * 0.37).cos()).collect();
    let want = trained(adapted(None).unwrap(), from_vec(rows.clone(), [3, 6], Device::Cpu).unwrap()).unwrap();
    // By hand: x Wᵀ + b + 3 · x Aᵀ Bᵀ.
    let l = adapted(None).unwrap();
    let (w, b) = (l.base.weight.to_f64_vec().unwrap(), l.base.bias.as_ref().unwrap().to_f64_vec().unwrap());
    let (la, lb) = (l.lora_a.to_f64_vec().unwrap(), l.lora_b.to_f64_vec().unwrap());
    for row in 0..3 {
        for out in 0..4 {
            let x = |i: usize| f64::from(rows[row * 6 + i]);
            let plain: f64 = (0..6).map(|i| x(i) * w[out * 6 + i]).sum();
            let low: f64 = (0..2).map(|r| lb[out * 2 + r] * (0..6).map(|i| x(i) * la[r * 6 + i]).sum::<f64>()).sum();
            assert!((want[0][row * 4 + out] - plain - b[out] - 3.0 * low).abs() < 1e-5);
        }
    }
    let got = run_ranks(4, |_| {
        let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2), ("tp", 2)])?;
        let mut all = vec![];
        for (sbp, a, b) in [
            (sbp![B, B], sbp![B, B], sbp![B, B]),
            (sbp![B, S(0)], sbp![B, B], sbp![B, S(0)]),
            (sbp![B, S(1)], sbp![B, S(1)], sbp![B, B]),
            (sbp![S(0), S(1)], sbp![B, S(1)], sbp![S(0), B]),
        ] {
            let lora = adapted(Some((&mesh, sbp)))?;
            assert_eq!((lora.lora_a.sbp()?, lora.lora_b.sbp()?), (&a, &b));
            all.push(trained(
                lora,
                distribute(&from_vec(rows.clone(), [3, 6], Device::Cpu)?, (&mesh, sbp![S(0), B]))?,
            )?);
        }
        Ok(all)
    })
    .unwrap();
    for all in got.into_iter().flatten() {
        all.iter().zip(&want).for_each(|(g, w)| close(g, w, 1e-4));
    }
}

#[test]
fn adapters_are_saved_alone_and_loaded_in_another_layout() {
    let dir = tempfile::tempdir().unwrap();
    let folder = |keep| CheckpointManager::new(dir.path(), CheckpointOptions { keep });
    let saved = run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let lora = adapted(Some((&mesh, sbp![S(0)])))?;
        folder(2).save(1, &[("adapters", &Trained(&lora))])?;
        lora.delta()?.to_f64_vec()
    })
    .unwrap();
    run_ranks(3, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let mut base = Linear::new(6, 4, Device::Cpu)?;
        base.to_global(&mesh, &[("weight", sbp![S(1)])])?;
        let lora = Lora::new(base, OPTIONS)?;
        assert!(lora.delta()?.to_f64_vec()?.iter().all(|x| *x == 0.0), "B is 0 at first");
        let weight = lora.base.weight.to_f64_vec()?;
        folder(2).load_latest(&mut [("adapters", &mut Trained(&lora))])?;
        close(&lora.delta()?.to_f64_vec()?, &saved[0], 1e-6);
        assert_eq!(lora.base.weight.to_f64_vec()?, weight);
        Ok(())
    })
    .unwrap();
}

#[test]
fn options_of_adapters_are_checked_and_kept() {
    let base = || Linear::new(6, 4, Device::Cpu).unwrap();
    let e = Lora::new(base(), LoraOptions { rank: 0, ..OPTIONS }).err().unwrap().to_string();
    assert!(e.contains("Lora: rank 0 and alpha 6") && e.contains("lora.rs"), "{e}");
    let mut stable = Lora::new(base(), LoraOptions { rank: 4, alpha: 2.0, rank_stabilized: true, ..OPTIONS }).unwrap();
    // α / √r is 1.
    let product = stable.lora_b.matmul(&stable.lora_a).unwrap().to_f64_vec().unwrap();
    assert_eq!(stable.delta().unwrap().to_f64_vec().unwrap(), product);
    // Half parameters have half adapters; all inputs are dropped in training only.
    stable =
        Lora::new(Linear::new(6, 4, Device::Cpu.dtype(DType::BF16)).unwrap(), LoraOptions { dropout: 1.0, ..OPTIONS })
            .unwrap();
    assert_eq!((stable.lora_a.dtype(), stable.lora_b.dtype()), (DType::BF16, DType::BF16));
    stable.lora_b = ones([4, 2], Device::Cpu.dtype(DType::BF16)).unwrap();
    let x = ones([1, 6], Device::Cpu.dtype(DType::BF16)).unwrap();
    let plain = stable.base.forward(&x).unwrap().to_f64_vec().unwrap();
    assert_eq!(stable.forward(&x).unwrap().to_f64_vec().unwrap(), plain);
    stable.train(false);
    assert_ne!(stable.forward(&x).unwrap().to_f64_vec().unwrap(), plain);
}

#[test]
fn tables_of_scaled_embeddings_have_the_frequencies_and_the_factor() {
    let yarn = RotaryScaling::Yarn(Yarn::new(4.0, 16));
    for scaling in [RotaryScaling::Default, RotaryScaling::Linear { factor: 2.0 }, yarn] {
        let options = RotaryOptions { scaling, ..Default::default() };
        let rotary = RotaryEmbedding::with(8, 64, options, Device::Cpu.dtype(DType::F64)).unwrap();
        let frequencies = scaling.frequencies(10_000.0, 8, 64).unwrap();
        let (cos, sin) = (rotary.cos.tensor().to_f64_vec().unwrap(), rotary.sin.tensor().to_f64_vec().unwrap());
        for (k, (c, s)) in cos.iter().zip(&sin).enumerate() {
            let angle = (k / 4) as f64 * frequencies[k % 4];
            assert_eq!((*c, *s), (angle.cos() * scaling.attention_factor(), angle.sin() * scaling.attention_factor()));
        }
    }
    assert!(yarn.attention_factor() > 1.1);
    let options = RotaryOptions { scaling: RotaryScaling::Linear { factor: -1.0 }, ..Default::default() };
    let e = RotaryEmbedding::with(8, 64, options, Device::Cpu).err().unwrap().to_string();
    assert!(e.contains("factor is -1") && e.contains("lora.rs"), "{e}");
}
