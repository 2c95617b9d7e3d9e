//! Ops whose signature depends on the layouts that a call has and is asked for, declared alike in several languages. Both copy their input.
//!
//! - `takes` has the signatures `S(0) -> S(0)` and `S(1) -> S(1)` of each axis, and takes one by `nd_choose`: the layout that is asked for; of
//!   a whole input S(1) on each axis, unless layouts are kept; elsewhere it leaves the choice.
//! - `lists` lists one by `nd_infer`: the layout that is asked for; that of the input where an axis of it is S(0); else S(1) on each axis.

use oflow::graph::{Graph, GraphOptions};
use oflow::keep_layouts;
use oflow::prelude::*;

/// A call: op, layout of the input, what is asked for, whether layouts are kept, layout of the result.
struct Asked(&'static str, NdSbp, Option<NdSbp>, bool, NdSbp);

fn calls(axes: usize) -> Vec<Asked> {
    let [b, p, rows, columns] =
        [Sbp::Broadcast, Sbp::PARTIAL_SUM, Sbp::Split(0), Sbp::Split(1)].map(|s| NdSbp::uniform(s, axes));
    let mut all = vec![
        Asked("takes", b.clone(), None, false, columns.clone()),
        Asked("takes", b.clone(), Some(rows.clone()), false, rows.clone()),
        Asked("takes", b.clone(), None, true, b.clone()),
        Asked("takes", rows.clone(), None, false, rows.clone()),
        Asked("takes", rows.clone(), Some(columns.clone()), false, columns.clone()),
        Asked("lists", p.clone(), None, false, columns.clone()),
        Asked("lists", p.clone(), Some(rows.clone()), false, rows.clone()),
        Asked("lists", rows.clone(), None, false, rows),
        Asked("lists", columns.clone(), None, false, columns),
        Asked("lists", b.clone(), None, false, b),
    ];
    if axes == 2 {
        let mixed = sbp![S(1), S(0)];
        all.push(Asked("lists", mixed.clone(), None, false, mixed.clone()));
        all.push(Asked("lists", p, Some(mixed.clone()), false, mixed.clone()));
        all.push(Asked("takes", mixed, None, false, sbp![S(1), S(0)]));
    }
    all
}

fn call(domain: &str, asked: &Asked, x: &Tensor) -> Result<Tensor> {
    let Asked(op, _, asked, keep, _) = asked;
    let _kept = keep.then(keep_layouts);
    let call = || Ok(oflow::call(&format!("{domain}.{op}"), &[x.into()], &[])?.remove(0));
    match asked {
        Some(sbp) => oflow::with_sbp(sbp.clone(), call),
        None => call(),
    }
}

/// Calls the ops of a domain on 2 and on 2 × 2 ranks, eager and captured.
pub fn check(domain: &str) {
    for mesh in [&[2][..], &[2, 2]] {
        let n = mesh.iter().product();
        let run = |_: &oflow::World| {
            let mesh = Placement::new(Device::Cpu, &(0..n).collect::<Vec<_>>(), mesh)?;
            let whole = from_vec((0..32).map(|i| i as f32).collect(), [8, 4], Device::Cpu)?;
            // Each again after all others: plans are remembered.
            for asked in calls(mesh.axes()).iter().chain(&calls(mesh.axes())) {
                let Asked(op, sbp, request, keep, want) = asked;
                let what = || format!("{domain}.{op} of {sbp} asking {request:?}, kept {keep}, on {mesh}");
                let x = distribute(&whole, (&mesh, NdSbp::broadcast(mesh.axes())))?.to_global((&mesh, sbp.clone()))?;
                let y = call(domain, asked, &x)?;
                assert_eq!((y.sbp()?, y.to_vec::<f32>()?), (want, whole.to_vec()?), "{}", what());
                let mut graph = Graph::build(|g| call(domain, asked, &g.input("x", &x)?), GraphOptions::default())?;
                let stated = graph.program().nodes.iter().find_map(|n| n.call()?.signature.clone());
                assert_eq!(
                    stated.map(|s| s.outputs[0].clone()).as_ref(),
                    Some(want),
                    "{}: {}",
                    what(),
                    graph.explain()
                );
                for _ in 0..2 {
                    let y = graph.run(&[&x])?;
                    assert_eq!((y.sbp()?, y.to_vec::<f32>()?), (want, whole.to_vec()?), "{}", what());
                }
            }
            Ok(())
        };
        oflow::run_ranks(n, run).unwrap();
    }
}
