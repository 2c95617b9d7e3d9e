//! What test programs share. The op harness is the library's: `oflow::testing`.

pub mod again;
pub mod bag;
pub mod cases;
pub mod cpp;
pub mod golden;
pub mod gpus;
pub mod page;

use oflow::ops::Op;
use oflow::prelude::*;
use oflow::testing::{Sample, computes, derive_all};

/// Built-in ops that have values, the gradients included that are derived from their expressions. Other tests of the program may have asked
/// for more of those, for second derivatives or complex numbers that no sample has: they are left out.
pub fn built_in_ops() -> Vec<&'static Op> {
    derive_all().unwrap();
    let found = |o: &&'static Op| match o.name().matches(".grad.").count() + o.name().matches(".cgrad.").count() {
        0 => true,
        1 => !Sample::all(o).unwrap().is_empty(),
        _ => false,
    };
    oflow::ops::all().into_iter().filter(|o| o.domain == "oflow" && computes(o)).filter(found).collect()
}

/// Meshes that each op is tested on as its samples are given, besides those of `oflow::testing`.
pub const LARGE_MESHES: [&[usize]; 2] = [&[8], &[2, 2, 2]];

/// Fails with the first complaint about each op: one wrong rule or kernel is wrong in many cases. A complaint begins with the
/// name of its op.
pub fn settle(what: &str, total: usize, wrong: &[String]) {
    println!("{what}: {total} cases, {} wrong", wrong.len());
    let mut shown: std::collections::BTreeMap<&str, &str> = Default::default();
    for w in wrong {
        shown.entry(w.split([' ', ':']).next().unwrap_or("")).or_insert(w);
    }
    let shown: Vec<&str> = shown.into_values().collect();
    assert!(wrong.is_empty(), "{} of {total} wrong, among them:\n{}", wrong.len(), shown.join("\n"));
}

/// Runs a test on that many simulated ranks, with the mesh of all of them.
pub fn world(n: usize, f: impl Fn(&oflow::World, Placement) -> Result<()> + Sync) {
    oflow::run_ranks(n, |w| f(w, Placement::all(Device::Cpu)?)).unwrap();
}
