//! Optimizers against PyTorch's steps (`tests/golden/optimizers.json`, made by `tests/golden/optimizers.py`): of local parameters and of
//! global ones in several layouts, with groups, saved states, averages and half parameters.

use oflow::optim::{
    AdamW, AdamWOptions, Ema, Groups, Lbfgs, LbfgsOptions, LineSearch, Optimizer, OptimizerConfig, Plateau,
    PlateauOptions, Schedule, Sgd, SgdOptions, Trainer, by_decay,
};
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
            // Muon's iterations are in bf16.
            let eps = match (config.kind(), p.dtype()) {
                ("muon", _) => 1e-2 * config.lr(),
                (_, DType::F64) => 1e-12,
                _ => 3e-6,
            };
            near(&format!("{}: parameter {i} after step {n}", case["config"]), p, &after[i], eps)?;
        }
    }
    Ok((parameters, opt))
}

#[test]
fn steps_are_those_of_pytorch() {
    let all = cases(include_str!("../golden/optimizers.json"));
    assert!(all.len() >= 100, "{}", all.len());
    for kind in OptimizerConfig::KINDS {
        assert!(all.iter().any(|case| case["config"]["kind"] == *kind), "{kind} has no case");
    }
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
                serde_json::from_value(serde_json::json!({"kind": kind, "lr": 0.05})).unwrap();
            let config = config.with_weight_decay(0.1);
            // Muon takes matrices alone.
            let shapes = match *kind {
                "muon" => vec![vec![5, 4], vec![3, 3]],
                _ => vec![vec![5, 4], vec![4], vec![3, 3]],
            };
            oflow::manual_seed(4);
            let make = || -> Result<Vec<Tensor>> {
                oflow::manual_seed(4);
                let layout = |s: &Vec<usize>| if s.len() == 1 { sbp![B] } else { sbp![S(0)] };
                shapes.iter().map(|s| randn(s, (&mesh, layout(s)))?.requires_grad_(true)).collect()
            };
            let (a, b) = (make()?, make()?);
            let mut whole = config.build_by_decay(a.clone());
            let vectors = shapes.len() - 2;
            assert_eq!(whole.groups().iter().map(|g| g.parameters().len()).collect::<Vec<_>>(), [2, vectors]);
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
    for kind in OptimizerConfig::KINDS {
        let values = |masters: bool| -> f64 {
            let p = full([3, 1], 1.0, Device::Cpu.dtype(DType::BF16)).unwrap().requires_grad_(true).unwrap();
            let config = serde_json::json!({"kind": kind, "lr": step, "master_weights": masters});
            let config: OptimizerConfig = serde_json::from_value(config).unwrap();
            let mut opt = config.build(vec![p.clone()]);
            for _ in 0..64 {
                p.set_grad(Some(full([3, 1], 1.0, Device::Cpu.dtype(DType::BF16)).unwrap())).unwrap();
                opt.step().unwrap();
            }
            assert_eq!(p.dtype(), DType::BF16);
            p.to_f64_vec().unwrap()[0]
        };
        // The first steps of the others are large, or theirs grow.
        if !["adadelta", "adagrad", "rmsprop", "rprop"].contains(kind) {
            assert!(values(true) < 0.99 && values(false) == 1.0, "{kind}: {} and {}", values(true), values(false));
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

#[test]
fn what_is_kept_of_a_matrix_is_a_row_and_a_column_in_every_layout() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        for (layout, row, column) in
            [(sbp![S(0)], sbp![S(0)], sbp![B]), (sbp![S(1)], sbp![B], sbp![S(1)]), (sbp![B], sbp![B], sbp![B])]
        {
            let p = ones([4, 6], (&mesh, layout))?.requires_grad_(true)?;
            p.square()?.sum(())?.backward()?;
            let mut opt = oflow::optim::Adafactor::new(vec![p], Default::default());
            opt.step()?;
            let (tensors, _) = saved(&opt)?;
            let of = |name: &str| tensors.iter().find(|(n, _)| n == name).map(|(_, t)| t.clone()).unwrap();
            assert_eq!(tensors.len(), 2);
            assert_eq!((of("0.row").shape(), of("0.row").sbp()?), (&[4, 1][..], &row));
            assert_eq!((of("0.column").shape(), of("0.column").sbp()?), (&[1, 6][..], &column));
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn parameters_are_given_once_and_are_those_that_the_optimizer_steps() {
    let leaf = |shape: &[usize]| {
        let p = ones(shape, Device::Cpu).unwrap().requires_grad_(true).unwrap();
        p.sum(()).unwrap().backward().unwrap();
        p
    };
    let (p, q) = (leaf(&[2]), leaf(&[2, 2]));
    for kind in OptimizerConfig::KINDS {
        let config: OptimizerConfig = serde_json::from_value(serde_json::json!({ "kind": kind })).unwrap();
        let twice = "parameter 2 of the optimizer";
        let e = config.build(vec![q.clone(), q.copy().unwrap(), q.clone()]).step().unwrap_err().to_string();
        assert!(
            e.contains("no parameter") || e.contains(twice) && e.contains("parameter 0 is the same"),
            "{kind}: {e}"
        );
        let mut groups = Groups::new(vec![config.build(vec![q.clone()]), config.build(vec![q.clone()])]);
        assert!(groups.step().unwrap_err().to_string().contains("is given twice"), "{kind}");
        let one_dim = config.build(vec![p.clone()]).step();
        assert_eq!(one_dim.is_err(), *kind == "muon", "{kind}");
    }
    assert_eq!(q.to_f64_vec().unwrap(), [1.0; 4]);
}

#[test]
fn a_buffer_of_momentum_is_there_again_after_steps_without() {
    // The same as steps without momentum on a copy, between steps with it.
    let p = full([2], 1.0, Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let mut opt = Sgd::new(vec![p.clone()], SgdOptions { lr: 0.5, momentum: 0.5, ..Default::default() });
    let step = |opt: &mut Sgd, gradient: f64| {
        p.set_grad(Some(full([2], gradient, Device::Cpu).unwrap())).unwrap();
        opt.step().unwrap();
        p.to_f64_vec().unwrap()[0]
    };
    // Buffer 1.
    assert_eq!(step(&mut opt, 1.0), 0.5);
    opt.set_options(SgdOptions { momentum: 0.0, ..opt.options() });
    assert_eq!(step(&mut opt, 4.0), -1.5);
    assert!(saved(&opt).unwrap().0.iter().any(|(name, _)| name == "0.momentum"));
    opt.set_options(SgdOptions { momentum: 0.5, ..opt.options() });
    // Buffer 0.5 · 1 + 1.
    assert_eq!(step(&mut opt, 1.0), -2.25);
}

#[test]
fn schedules_are_those_of_pytorch() {
    let golden: Json = serde_json::from_str(include_str!("../golden/schedules.json")).unwrap();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs().max(1e-3);
    let all = golden["cases"].as_array().unwrap();
    assert!(all.len() >= 16);
    for case in all {
        let schedule: Schedule = serde_json::from_value(case["schedule"].clone()).unwrap();
        for (step, want) in case["factors"].as_array().unwrap().iter().enumerate() {
            let (have, want) = (schedule.at(step), want.as_f64().unwrap());
            assert!(close(have, want), "{schedule:?} at {step}: {have} instead of {want}");
        }
    }
    for case in golden["plateaus"].as_array().unwrap() {
        let options: PlateauOptions = serde_json::from_value(case["options"].clone()).unwrap();
        let (mut plateau, mut lr) = (Plateau::new(options), golden["base"].as_f64().unwrap());
        for (metric, want) in golden["metrics"].as_array().unwrap().iter().zip(case["rates"].as_array().unwrap()) {
            lr = plateau.step(lr, metric.as_f64().unwrap_or(f64::NAN));
            assert!(close(lr, want.as_f64().unwrap()), "{options:?} after {metric}: {lr} instead of {want}");
            // It goes on from a state.
            let (tensors, values) = saved(&plateau).unwrap();
            plateau = Plateau::new(options);
            loaded(&mut plateau, &tensors, &values).unwrap();
        }
    }
}

/// Rosenbrock's function: its minimum lies in a bent valley.
fn rosenbrock(x: &Tensor) -> Result<Tensor> {
    x.set_grad(None)?;
    let (first, second) = (x.narrow(0, 0, 1)?, x.narrow(0, 1, 1)?);
    let loss = first.rsub(1.0)?.square()?.add(&second.sub(&first.square()?)?.square()?.mul(100.0)?)?.sum(())?;
    loss.backward()?;
    Ok(loss)
}

#[test]
fn lbfgs_finds_a_minimum_and_goes_on_from_a_state_in_every_layout() {
    let found = |layout: NdSbp| {
        oflow::run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let start = from_vec::<f64>(vec![-1.2, 1.0], [2], Device::Cpu)?;
            let x = distribute(&start, (&mesh, layout.clone()))?.requires_grad_(true)?;
            let options =
                LbfgsOptions { line_search_fn: Some(LineSearch::StrongWolfe), max_iter: 5, ..Default::default() };
            let mut opt = Lbfgs::new(vec![x.clone()], options);
            for _ in 0..12 {
                opt.step(|| rosenbrock(&x))?;
                let (tensors, values) = saved(&opt)?;
                opt = Lbfgs::new(vec![x.clone()], LbfgsOptions::default());
                loaded(&mut opt, &tensors, &values)?;
                assert_eq!(opt.options(), options);
            }
            assert_eq!(x.sbp()?, &layout);
            x.to_f64_vec()
        })
        .unwrap()
        .remove(0)
    };
    let want = found(sbp![B]);
    assert!(want.iter().all(|x| (x - 1.0).abs() < 1e-4), "{want:?}");
    for (have, want) in found(sbp![S(0)]).iter().zip(&want) {
        assert!((have - want).abs() < 1e-6);
    }
}
