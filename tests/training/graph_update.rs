//! Early updates: a parameter is updated when its gradient is there, where that lowers the peak. The bits stay.

use super::graph::bits;
use oflow::graph::{Graph, GraphOptions, Memory, Passes};
use oflow::nn::{Linear, Module};
use oflow::optim::{
    AdamW, AdamWOptions, GradScaler, GradScalerOptions, Optimizer, Sgd, SgdOptions, by_decay, clip_grad_norm,
};
use oflow::prelude::*;

const LAYERS: usize = 8;
const WIDTH: usize = 64;
const GRADIENTS: usize = LAYERS * (WIDTH + 1) * WIDTH * 4;

/// A way to step: from the loss, with the parameters.
type Way<'a> = &'a mut dyn FnMut(&[Tensor], &mut dyn Optimizer, &Tensor) -> Result<()>;

fn plain(_: &[Tensor], opt: &mut dyn Optimizer, loss: &Tensor) -> Result<()> {
    loss.backward()?;
    opt.step()
}

fn clipped(parameters: &[Tensor], opt: &mut dyn Optimizer, loss: &Tensor) -> Result<()> {
    loss.backward()?;
    clip_grad_norm(parameters, 0.5)?;
    opt.step()
}

/// Text and peak of a graph, and the bits of its losses and of the parameters.
struct Outcome {
    text: String,
    calls: Vec<String>,
    peak: usize,
    bits: Vec<Vec<u64>>,
}

fn outcome(mesh: Option<&Placement>, way: Way<'_>, groups: bool, passes: &Passes) -> Result<Outcome> {
    manual_seed(3);
    let layer = |_| match mesh {
        Some(mesh) => Linear::new(WIDTH, WIDTH, (mesh, NdSbp::broadcast(mesh.axes()))),
        None => Linear::new(WIDTH, WIDTH, Device::Cpu),
    };
    let layers = (0..LAYERS).map(layer).collect::<Result<Vec<_>>>()?;
    let parameters: Vec<Tensor> = layers.iter().flat_map(|l| l.parameters()).collect();
    let mut opt: Box<dyn Optimizer> = match groups {
        false => Box::new(AdamW::new(parameters.clone(), AdamWOptions::default())),
        true => {
            let (decayed, others) = by_decay(parameters.clone());
            let adamw = AdamW::new(decayed, AdamWOptions::default());
            let sgd = Sgd::new(others, SgdOptions { lr: 0.1, momentum: 0.9, ..Default::default() });
            Box::new(oflow::optim::Groups::new(vec![Box::new(adamw), Box::new(sgd)]))
        }
    };
    let x = match mesh {
        Some(mesh) => {
            let split = NdSbp::broadcast(mesh.axes()).with(0, Sbp::Split(0));
            randn([2, WIDTH], (mesh, NdSbp::broadcast(mesh.axes())))?.to_global(split)?
        }
        None => randn([2, WIDTH], Device::Cpu)?,
    };
    let mut graph = Graph::build(
        |g| {
            let h = layers.iter().try_fold(g.input("x", &x)?, |h, l| l.forward(&h)?.tanh())?;
            let loss = h.square()?.mean(())?;
            opt.zero_grad();
            way(&parameters, &mut *opt, &loss)?;
            Ok(loss)
        },
        GraphOptions::default().passes(passes.clone()),
    )?;
    let mut found = vec![];
    for n in 0..3 {
        opt.set_lr(0.01 / (1.0 + n as f64));
        found.push(bits(&graph.run(&[&x])?)?);
    }
    for p in &parameters {
        found.push(bits(&p.detach())?);
    }
    let text = graph.program().to_string();
    let calls = text.lines().filter_map(|l| {
        let call = l.split(" = ").nth(1).unwrap_or(l).trim_start();
        (call.starts_with("host") || call.contains("_many@"))
            .then(|| call.split(['@', ' ']).next().unwrap_or("").to_string())
    });
    let plan = graph.plan().ok_or_else(|| Error::value("the graph is not planned"))?;
    Ok(Outcome { calls: calls.collect(), peak: plan.peak(), bits: found, text })
}

fn steps(found: &Outcome, op: &str) -> usize {
    found.calls.iter().filter(|c| c.ends_with(op)).count()
}

#[test]
fn a_gradient_ends_when_its_parameter_is_updated() {
    let both = |mesh: Option<&Placement>, least: usize| -> Result<()> {
        for memory in [Memory::Cheap, Memory::Least] {
            let all = Passes::default().memory(memory);
            let whole = outcome(mesh, &mut plain, false, &all.clone().without("update")?)?;
            let early = outcome(mesh, &mut plain, false, &all)?;
            assert_eq!(early.bits, whole.bits, "{}", early.text);
            assert_eq!(steps(&whole, "adamw_many"), 1, "{}", whole.text);
            let parts = steps(&early, "adamw_many");
            assert!((2..=2 * LAYERS).contains(&parts), "{parts} parts\n{}", early.text);
            // The host acts once, before the first.
            assert_eq!(steps(&early, "host"), 1, "{}", early.text);
            assert_eq!(early.calls[0], "host", "{}", early.text);
            assert!(early.peak + least <= whole.peak, "{} bytes, {} before\n{}", early.peak, whole.peak, early.text);
        }
        Ok(())
    };
    both(None, GRADIENTS / 2).unwrap();
    // On several ranks small gradients are boxed together, so that they are there together.
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let early = outcome(Some(&mesh), &mut plain, false, &Passes::default().memory(Memory::Least))?;
        let whole = outcome(Some(&mesh), &mut plain, false, &Passes::none())?;
        assert_eq!(early.bits, whole.bits, "{}", early.text);
        Ok(())
    })
    .unwrap();
    oflow::run_ranks(1, |_| both(Some(&Placement::all(Device::Cpu)?), GRADIENTS / 2)).unwrap();
}

#[test]
fn optimizers_of_groups_act_before_their_own_parts() {
    let whole = outcome(None, &mut plain, true, &Passes::default().without("update").unwrap()).unwrap();
    let early = outcome(None, &mut plain, true, &Passes::default().memory(Memory::Least)).unwrap();
    assert_eq!(early.bits, whole.bits, "{}", early.text);
    assert!(steps(&early, "adamw_many") > 1 && early.peak < whole.peak, "{}", early.text);
    assert_eq!(steps(&early, "host"), 2, "{}", early.text);
    let first = |op: &str| early.text.lines().position(|l| l.contains(op)).unwrap();
    for (host, op) in [("host 0", "adamw_many@"), ("host 1", "sgd_many@")] {
        let acts = early.text.lines().position(|l| l.trim_start().starts_with(host)).unwrap();
        assert!(acts < first(op), "{}", early.text);
    }
}

#[test]
fn a_step_that_needs_all_gradients_or_gains_nothing_stays_whole() {
    // The norm of all gradients is there after the last of them.
    for memory in [Memory::Cheap, Memory::Least] {
        let found = outcome(None, &mut clipped, false, &Passes::default().memory(memory)).unwrap();
        assert_eq!(steps(&found, "adamw_many"), 1, "{}", found.text);
        let whole =
            outcome(None, &mut clipped, false, &Passes::default().memory(memory).without("update").unwrap()).unwrap();
        assert_eq!((found.bits, found.peak), (whole.bits, whole.peak), "{}", found.text);
    }
    // So is the guard of a scaler.
    let guarded = |passes: &Passes| {
        let mut scaler = GradScaler::new(GradScalerOptions::default());
        let mut way = |_: &[Tensor], opt: &mut dyn Optimizer, loss: &Tensor| {
            scaler.scale(loss)?.backward()?;
            scaler.step(opt)?;
            scaler.update();
            Ok(())
        };
        outcome(None, &mut way, false, passes).unwrap()
    };
    let (found, whole) = (guarded(&Passes::default().memory(Memory::Least)), guarded(&Passes::none()));
    assert_eq!(steps(&found, "adamw_many"), 1, "{}", found.text);
    assert_eq!(found.bits, whole.bits, "{}", found.text);
}
