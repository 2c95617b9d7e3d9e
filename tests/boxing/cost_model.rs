//! Measured constants steer how boxings are carried out, never which signature an op takes.

use oflow::boxing::{Algorithm, Model, Planner};
use oflow::comm::sim;
use oflow::context::RankCtx;
use oflow::prelude::*;
use oflow::vm::VmMode;
use std::sync::Arc;

/// A host on which all-reduce is a thousand times slower than everything else.
fn slow_all_reduce() -> Model {
    let mut model = Model::default();
    for a in [Algorithm::AllReduceOnePhase, Algorithm::AllReduceTwoPhase] {
        let rate = &mut model.same_host.rates[a as usize];
        rate.latency_ps *= 1000;
        rate.per_kib_ps *= 1000;
    }
    model
}

/// Steps of the boxings of a program, its values, and the layouts of its results.
fn run(model: Model) -> Vec<(Vec<String>, Vec<f32>, String)> {
    sim::run(2, |_, comm| -> Result<_> {
        let ctx = RankCtx::new(Arc::new(comm), None, Planner::new(model), VmMode::Inline)?;
        let _entered = ctx.enter();
        assert_eq!(*ctx.planner().model(), model);
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([8, 6], (&mesh, sbp![P]))?.to_global((&mesh, sbp![B]))?;
        // Needs a boxing whichever signature it takes; the choice prices them under the fixed constants.
        let y = ones([8, 6], (&mesh, sbp![S(1)]))?.matmul(&ones([6, 4], (&mesh, sbp![S(1)]))?)?;
        let z = y.add(&ones([8, 4], (&mesh, sbp![P]))?)?;
        let layouts = format!("{} {}", y.sbp()?, z.sbp()?);
        let steps = oflow::take_comm_trace()
            .iter()
            .filter_map(|r| r.plan())
            .flat_map(|p| p.steps.iter().map(|s| s.to_string()))
            .collect();
        Ok((steps, [x.to_vec::<f32>()?, z.to_vec::<f32>()?].concat(), layouts))
    })
    .into_iter()
    .map(|r| r.unwrap())
    .collect()
}

#[test]
fn boxings_follow_the_jobs_model_and_signatures_do_not() {
    let (fixed, measured) = (run(Model::default()), run(slow_all_reduce()));
    for (f, m) in fixed.iter().zip(&measured) {
        assert_eq!((&f.1, &f.2), (&m.1, &m.2), "the same values and layouts");
        let reduced = |steps: &[String]| steps.iter().any(|s| s.starts_with("all-reduce"));
        assert!(reduced(&f.0) && !reduced(&m.0), "{:?} {:?}", f.0, m.0);
    }
    assert_eq!(fixed[0].0, fixed[1].0, "every rank plans alike");
    assert_eq!(measured[0].0, measured[1].0, "every rank plans alike");
}

#[test]
fn simulated_ranks_and_a_world_of_one_have_the_fixed_constants() {
    let models = oflow::run_ranks(2, |world| Ok(*world.ctx().planner().model())).unwrap();
    assert_eq!(models, [Model::default(); 2]);
    let world = oflow::init().unwrap();
    assert_eq!(*world.ctx().planner().model(), Model::default());
}

#[test]
fn a_model_is_written_by_name_and_read_back() {
    let mut model = slow_all_reduce();
    model.same_host.rates[2].extra_beyond_kib = 512;
    model.same_host.rates[2].extra_per_kib_ps = 3;
    let text = serde_json::to_string(&model).unwrap();
    assert!(text.contains("\"all_gather\":{\"latency_ps\":"), "{text}");
    assert_eq!(serde_json::from_str::<Model>(&text).unwrap(), model);
    let missing = text.replacen("\"broadcast\":", "\"exchange\":", 1);
    assert!(serde_json::from_str::<Model>(&missing).is_err());
}

#[test]
fn bytes_beyond_the_caches_cost_more() {
    let mut rate = Model::default().same_host.rates[2];
    (rate.extra_beyond_kib, rate.extra_per_kib_ps) = (64, rate.per_kib_ps);
    assert_eq!(rate.bytes(64 << 10), 64 * rate.per_kib_ps);
    assert_eq!(rate.bytes(192 << 10), (192 + 128) * rate.per_kib_ps);
    let prices: Vec<u64> = (0..40).map(|i| rate.price(1, i << 13)).collect();
    assert!(prices.is_sorted());
}
