//! Optimizers against PyTorch's steps (`tests/golden/optimizers.json`, made by `tests/golden/optimizers.py`): of local parameters and of
//! global ones in several layouts, with groups, saved states, averages and half parameters.

use oflow::optim::{AdamW, AdamWOptions, Ema, Groups, Optimizer, OptimizerConfig, Trainer, by_decay};
use oflow::prelude::*;
use oflow::state::{LoadState, SaveState, Stateful};
use oflow_tests::golden::{cases, near, tensor};
use serde_json::Value as Json;

/// A tensor in layout `i` of the list, as far as it has the dims.
fn placed(v: &Json, mesh: Option<&Placement>, layouts: &[NdSbp], i: usize) -> Result<Tensor> {
    let t = tensor(v)?;
    let Some(mesh) = mesh else { return Ok(t) };
    let sbp: NdSbp = layouts[i % layouts.len()]
        .iter()
        .map(|s| match s {
            Sbp::Split(d) => Sbp::Split((*d).min(t.ndim() - 1)),
            s => *s,
        })
        .collect();
    distribute(&t, (mesh, sbp))
}

/// All steps of a case. Returns the parameters and the optimizer.
fn follow(
    case: &Json,
    mesh: Option<&Placement>,
    layouts: &[NdSbp],
    grads_differ: bool,
) -> Result<(Vec<Tensor>, Box<dyn Trainer>)> {
    let config: OptimizerConfig = serde_json::from_value(case["config"].clone()).unwrap();
    let parameters: Vec<Tensor> = case["initial"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(i, v)| placed(v, mesh, layouts, i)?.requires_grad_(true))
        .collect::<Result<_>>()?;
    let mut opt = config.build(parameters.clone());
    for (n, (grads, after)) in
        case["grads"].as_array().unwrap().iter().zip(case["after"].as_array().unwrap()).enumerate()
    {
        for (i, p) in parameters.iter().enumerate() {
            p.set_grad(Some(placed(&grads[i], mesh, layouts, i + usize::from(grads_differ))?))?;
        }
        opt.step()?;
        for (i, p) in parameters.iter().enumerate() {
            let eps = if p.dtype() == DType::F64 { 1e-12 } else { 3e-6 };
            near(&format!("{}: parameter {i} after step {n}", case["config"]), p, &after[i], eps)?;
        }
    }
    Ok((parameters, opt))
}

#[test]
fn steps_are_those_of_pytorch() {
    let all = cases(include_str!("../golden/optimizers.json"));
    assert!(all.len() >= 36, "{}", all.len());
    for case in &all {
        follow(case, None, &[], false).unwrap();
    }
}

#[test]
fn and_so_they_are_in_every_layout() {
    oflow::run_ranks(4, |_| {
        let meshes = [
            (Placement::new(Device::Cpu, &[0, 1, 2, 3], &[4])?, vec![sbp![S(0)], sbp![B], sbp![S(1)]]),
            (
                Placement::new(Device::Cpu, &[0, 1, 2, 3], &[2, 2])?,
                vec![sbp![S(0), S(1)], sbp![B, S(0)], sbp![S(0), S(0)]],
            ),
            (Placement::new(Device::Cpu, &[0, 1, 2], &[3])?, vec![sbp![S(0)], sbp![S(0)], sbp![S(1)]]),
            (Placement::new(Device::Cpu, &[0, 1], &[2])?, vec![sbp![B]]),
        ];
        for case in &cases(include_str!("../golden/optimizers.json")) {
            for (mesh, layouts) in &meshes {
                let (parameters, _) = follow(case, Some(mesh), layouts, true)?;
                // Steps change no layouts.
                for (i, p) in parameters.iter().enumerate() {
                    let made = placed(&case["initial"][i], Some(mesh), layouts, i)?;
                    assert_eq!(p.sbp()?, made.sbp()?);
                }
            }
        }
        Ok(())
    })
    .unwrap();
}

/// Values by name.
type Values = std::collections::BTreeMap<String, Json>;

/// A state as checkpoints would save it: copies of the tensors, and the values.
fn saved(of: &dyn Stateful) -> Result<(Vec<(String, Tensor)>, Values)> {
    let mut to = SaveState::new();
    of.save_state(&mut to)?;
    let (tensors, values) = to.into_parts();
    let copies = tensors.into_iter().map(|(n, t)| Ok((n, t.detach().copy()?))).collect::<Result<_>>()?;
    Ok((copies, values))
}

fn loaded(into: &mut dyn Stateful, tensors: &[(String, Tensor)], values: &Values) -> Result<()> {
    let mut from = LoadState::new(tensors.iter().map(|(n, _)| n.as_str()), values);
    into.load_state(&mut from)?;
    let asked = from.into_asked();
    assert!(asked.missing.is_empty(), "{:?}", asked.missing);
    assert_eq!(asked.fills.len(), tensors.len());
    let _quiet = no_grad();
    for (name, t) in asked.fills {
        t.copy_(&tensors.iter().find(|(n, _)| *n == name).unwrap().1)?;
    }
    Ok(())
}

/// Gradients that differ from step to step.
fn backward(parameters: &[Tensor], n: usize) -> Result<()> {
    for p in parameters {
        p.set_grad(None).unwrap();
    }
    let mut loss = None;
    for p in parameters {
        let part = p.square()?.add(&p.mul(n as f64)?)?.sum(())?;
        loss = Some(match loss {
            None => part,
            Some(l) => part.add(&l)?,
        });
    }
    loss.unwrap().backward()
}

#[test]
fn states_go_on_where_they_were_with_groups() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        for kind in OptimizerConfig::KINDS {
            let config: OptimizerConfig =
                serde_json::from_value(serde_json::json!({"kind": kind, "lr": 0.05, "weight_decay": 0.1})).unwrap();
            oflow::manual_seed(4);
            let make = || -> Result<Vec<Tensor>> {
                oflow::manual_seed(4);
                [vec![5, 4], vec![4], vec![3, 3]]
                    .into_iter()
                    .enumerate()
                    .map(|(i, s)| randn(s, (&mesh, if i == 1 { sbp![B] } else { sbp![S(0)] }))?.requires_grad_(true))
                    .collect()
            };
            let (a, b) = (make()?, make()?);
            let mut whole = config.build_by_decay(a.clone());
            assert_eq!(whole.groups().iter().map(|g| g.parameters().len()).collect::<Vec<_>>(), [2, 1]);
            for n in 0..3 {
                backward(&a, n)?;
                whole.step()?;
            }
            let (tensors, values) = saved(&whole)?;
            {
                let _quiet = no_grad();
                for (p, q) in a.iter().zip(&b) {
                    q.copy_(p)?;
                }
            }
            let mut again = config.build_by_decay(b.clone());
            loaded(&mut again, &tensors, &values)?;
            for n in 3..5 {
                backward(&a, n)?;
                whole.step()?;
                backward(&b, n)?;
                again.step()?;
            }
            for (p, q) in a.iter().zip(&b) {
                assert_eq!(p.to_f64_vec()?, q.to_f64_vec()?, "{kind}");
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn groups_have_settings_of_their_own() {
    let p = |shape: &[usize]| ones(shape, Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let all = vec![p(&[2, 2]), p(&[2]), p(&[])];
    let (weights, others) = by_decay(all.clone());
    assert_eq!((weights.len(), others.len()), (1, 2));
    let o = AdamWOptions { lr: 0.5, weight_decay: 1.0, ..Default::default() };
    let mut opt = Groups::new(vec![
        Box::new(AdamW::new(weights, o)),
        Box::new(AdamW::new(others, AdamWOptions { weight_decay: 0.0, ..o })),
    ]);
    for t in &all {
        t.set_grad(Some(zeros(t.shape(), Device::Cpu).unwrap())).unwrap();
    }
    opt.step().unwrap();
    // Without a gradient the decay is all that moves a parameter.
    assert_eq!(all.iter().map(|t| t.to_f64_vec().unwrap()[0]).collect::<Vec<_>>(), [0.5, 1.0, 1.0]);
    opt.group_mut(0).unwrap().set_lr(0.0);
    opt.step().unwrap();
    assert_eq!((all[0].to_f64_vec().unwrap()[0], opt.groups()[1].lr()), (0.5, 0.5));
    opt.set_lr(0.25);
    assert_eq!((opt.lr(), opt.groups()[1].lr()), (0.25, 0.25));
}

#[test]
fn half_parameters_have_masters() {
    let step = 1.0 / 1024.0;
    for kind in ["adam", "adadelta", "lion", "lamb", "rmsprop", "adagrad"] {
        let values = |masters: bool| -> f64 {
            let p = full([3], 1.0, Device::Cpu.dtype(DType::BF16)).unwrap().requires_grad_(true).unwrap();
            let config = serde_json::json!({"kind": kind, "lr": step, "master_weights": masters});
            let config: OptimizerConfig = serde_json::from_value(config).unwrap();
            let mut opt = config.build(vec![p.clone()]);
            for _ in 0..64 {
                p.set_grad(Some(full([3], 1.0, Device::Cpu.dtype(DType::BF16)).unwrap())).unwrap();
                opt.step().unwrap();
            }
            assert_eq!(p.dtype(), DType::BF16);
            p.to_f64_vec().unwrap()[0]
        };
        if kind != "adadelta" && kind != "adagrad" && kind != "rmsprop" {
            assert!(values(true) < 0.95 && values(false) == 1.0, "{kind}: {} and {}", values(true), values(false));
        }
    }
}

#[test]
fn averages_follow_and_are_exchanged() {
    oflow::run_ranks(3, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let p = full([5], 4.0, (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let h = full([2], 1.0, (&mesh, sbp![B]).dtype(DType::BF16))?.requires_grad_(true)?;
        let mut ema = Ema::new(vec![p.clone(), h.clone()], 0.75)?;
        {
            let _quiet = no_grad();
            p.zero_()?;
        }
        ema.update()?;
        ema.update()?;
        assert_eq!(ema.averages()[0].sbp()?, &sbp![S(0)]);
        assert_eq!(ema.averages()[1].dtype(), DType::F32);
        let (tensors, values) = saved(&ema)?;
        ema.swap()?;
        assert_eq!(p.to_vec::<f32>()?, [2.25; 5]);
        assert!(ema.update().unwrap_err().to_string().contains("hold the averages"));
        ema.swap()?;
        assert_eq!(p.to_vec::<f32>()?, [0.0; 5]);
        let mut again = Ema::new(vec![p.clone(), h.clone()], 0.75)?;
        loaded(&mut again, &tensors, &values)?;
        assert_eq!((again.updates(), again.averages()[0].to_vec::<f32>()?), (2, vec![2.25; 5]));
        Ok(())
    })
    .unwrap();
}
