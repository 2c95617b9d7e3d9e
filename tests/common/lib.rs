//! What test programs share. The op harness is the library's: `oflow::testing`.

pub mod again;
pub mod bag;
pub mod cases;
pub mod compared;
pub mod cpp;
pub mod golden;
pub mod gpus;
pub mod hinted;
pub mod on_gpu;
pub mod page;
pub mod programs;

use oflow::interpreter::list_called;
use oflow::ops::Op;
use oflow::prelude::*;
use oflow::testing::{Sample, computes, derive_all};

/// Names of ops: `OFLOW_TEST_OPS=softmax,sum` tests these and their gradients alone, where ops are enumerated.
const ONLY: &str = "OFLOW_TEST_OPS";

/// Whether only some ops are tested: then there are fewer cases than a test expects.
pub fn selected() -> bool {
    std::env::var_os(ONLY).is_some()
}

/// Whether `name` is one of `names`, divided by commas, or a gradient of one.
fn is_among(name: &str, names: &str) -> bool {
    let grad = |rest: &str| rest.is_empty() || ["_grad", ".grad", ".cgrad"].iter().any(|of| rest.starts_with(of));
    names.split(',').any(|n| name.strip_prefix(n).is_some_and(grad))
}

/// Whether a test is about the [`selected`] ops: whether `f`, which does what the test does on the mesh of one rank that it is given, calls one
/// of them. Without a selection `f` does not run, and every test is.
pub fn calls_selected<T>(f: impl Fn(&Placement) -> T + Sync) -> bool {
    let Ok(names) = std::env::var(ONLY) else { return true };
    let called = oflow::run_ranks(1, |_| {
        let one = Placement::all(Device::Cpu)?;
        Ok(list_called(|| f(&one)).1)
    });
    called.unwrap()[0].iter().any(|call| is_among(call.op.name(), &names))
}

/// Built-in ops that have values, the gradients included that are derived from their expressions. Other tests of the program may have asked
/// for more of those, for second derivatives or complex numbers that no sample has: they are left out. If some are [`selected`], only those.
pub fn built_in_ops() -> Vec<&'static Op> {
    derive_all().unwrap();
    let found = |o: &&'static Op| match o.name().matches(".grad.").count() + o.name().matches(".cgrad.").count() {
        0 => true,
        1 => !Sample::all(o).unwrap().is_empty(),
        _ => false,
    };
    let only = std::env::var(ONLY).ok();
    for name in only.iter().flat_map(|names| names.split(',')) {
        assert!(
            oflow::ops::all().iter().any(|o| o.domain == "oflow" && o.name() == name),
            "{ONLY}: no op is named '{name}'"
        );
    }
    let wanted = |o: &&Op| only.as_ref().is_none_or(|names| is_among(o.name(), names));
    oflow::ops::all().into_iter().filter(|o| o.domain == "oflow" && computes(o)).filter(wanted).filter(found).collect()
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
