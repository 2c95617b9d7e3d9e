//! Dry runs: what comes out of one is what a real run tells, and it never touches the program that calls it.

#[path = "../../examples/common/model.rs"]
#[allow(dead_code)]
mod model;
mod ops;
mod rules;
mod training;

use oflow::Tensor;
use oflow::prelude::*;

/// What a run tells, but for measured times: layouts, comm records with predictions, memory, place in the streams of ops and
/// random numbers. Of two runs of one program on one rank it is the same.
fn told(device: Device, tensors: &[(String, Tensor)]) -> Result<Vec<String>> {
    let mut told: Vec<String> = tensors.iter().map(|(n, t)| format!("{n}: {t:?}").replace("meta ", "")).collect();
    let ctx = oflow::context::current_rank()?;
    told.extend(oflow::take_comm_trace().iter().map(|r| format!("{r} {:?} {:?}", r.bytes_by_link(), r.predicted)));
    let (seed, local) = (ctx.generator(), ctx.local_generator());
    told.push(format!("{} ops {:?} {seed:?} {local:?}", ctx.ops_issued(), ctx.recorder().marks_after(0)));
    told.push(format!("{device}: {}", oflow::memory_stats(device)?));
    Ok(told)
}

/// Runs on simulated ranks without comparing data, of which a dry run has none that could stand in its stream of ops.
fn real<R: Send>(n: usize, f: impl Fn(&oflow::World) -> Result<R> + Sync) -> Vec<R> {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: nothing but the standard library reads the environment of this program, under its lock.
    ONCE.call_once(|| unsafe { std::env::set_var("OFLOW_CHECK", "0") });
    oflow::run_ranks(n, f).unwrap()
}

/// Fails at the first line that differs.
fn same(what: &str, real: &[String], dry: &[String]) {
    for (r, d) in real.iter().zip(dry) {
        assert_eq!(d, r, "{what}");
    }
    assert_eq!(dry.len(), real.len(), "{what}");
}
