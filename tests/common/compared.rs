//! The frame of tests that run random programs as they are and as graphs, and compare.

use oflow::prelude::*;
use oflow::testing::Random;

/// Where tensors are made.
pub struct At {
    /// Device of all tensors.
    pub device: Device,
    /// Placement of global tensors; none where tensors are local.
    pub mesh: Option<Placement>,
}

impl At {
    /// A layout, in which the first `whole` dims are not split.
    pub fn sbp(&self, rng: &mut Random, ndim: usize, whole: usize) -> NdSbp {
        let axes = self.mesh.as_ref().map_or(0, Placement::axes);
        let mut one = || match rng.below(ndim + 1) {
            0 => Sbp::Broadcast,
            d if d - 1 < whole => Sbp::Broadcast,
            d => Sbp::Split(d - 1),
        };
        (0..axes).map(|_| one()).collect()
    }

    /// A tensor of random numbers, in such a layout.
    pub fn make(&self, rng: &mut Random, shape: &[usize], whole: usize) -> Result<Tensor> {
        let data = (0..shape.iter().product()).map(|_| (rng.below(41) as f64 - 20.0) / 16.0).collect();
        let t = from_vec::<f64>(data, shape, self.device)?;
        match &self.mesh {
            Some(mesh) => distribute(&t, (mesh, self.sbp(rng, shape.len(), whole))),
            None => Ok(t),
        }
    }

    /// Random numbers of the generators, of a tensor's shape and layout.
    pub fn noise(&self, x: &Tensor) -> Result<Tensor> {
        let noise = match x.global() {
            Some(g) => rand(x.shape(), (&g.placement, g.sbp.map(|s| if s.is_partial() { Sbp::Broadcast } else { s })))?,
            None => rand(x.shape(), self.device)?,
        };
        noise.cast(x.dtype())
    }
}

/// A layout of a tensor of two dims, also a partial one.
pub fn layout(rng: &mut Random, mesh: &Placement) -> NdSbp {
    let one = |n: usize| match n {
        0 => Sbp::Broadcast,
        1 | 2 => Sbp::Split(n - 1),
        _ => Sbp::PARTIAL_SUM,
    };
    (0..mesh.axes()).map(|_| one(rng.below(4))).collect()
}

/// Inputs of a later run: the layouts of the first, other values.
pub fn inputs(first: &[Tensor; 2], n: usize) -> Result<[Tensor; 2]> {
    let [a, b] = first;
    Ok([a.mul(1.0 + n as f64)?.copy()?, b.sub(n as f64)?.copy()?])
}

/// The bits of a tensor's numbers.
pub fn bits(t: &Tensor) -> Result<Vec<u64>> {
    Ok(t.detach().cast(DType::F64)?.to_f64_vec()?.into_iter().map(f64::to_bits).collect())
}

/// All that three runs give and leave in these tensors.
pub fn outcome(left: &[&Tensor], mut run: impl FnMut(usize) -> Result<Vec<Tensor>>) -> Result<Vec<Vec<u64>>> {
    let mut all = vec![];
    for n in 0..3 {
        manual_seed(n as u64);
        for t in run(n)? {
            all.push(bits(&t)?);
        }
        for t in left {
            all.push(bits(t)?);
        }
        all.push(vec![oflow::context::current().generator().ordinal]);
    }
    Ok(all)
}

/// How many programs ended how.
#[derive(Default, Debug)]
pub struct Count {
    same: usize,
    refused: usize,
    failed: usize,
}

impl Count {
    /// Compares the outcome of a program with that of its graph, which has the text. A graph may refuse in these words what calls do.
    pub fn note(
        &mut self,
        name: &str,
        calls: Result<Vec<Vec<u64>>>,
        graph: Result<(Vec<Vec<u64>>, String)>,
        refused: &[&str],
    ) {
        match (calls, graph) {
            (Ok(want), Ok((have, text))) => {
                assert_eq!(have, want, "{name}:\n{text}");
                self.same += 1;
            }
            (Err(_), Err(_)) => self.failed += 1,
            (Ok(_), Err(e)) if refused.iter().any(|r| e.to_string().contains(r)) => self.refused += 1,
            (Ok(_), Err(e)) => panic!("{name} runs, but not in a graph: {e}"),
            (Err(e), Ok((_, text))) => panic!("{name} fails, but not in a graph: {e}\n{text}"),
        }
    }
}

/// Compares programs by their seeds: of local tensors, where there is no mesh, or on ranks. More than half of them must run.
pub fn compared(
    device: Device,
    mesh: &[usize],
    programs: u64,
    compare: impl Fn(&At, u64, &mut Count) -> Result<()> + Sync,
) {
    let n: usize = mesh.iter().product();
    let run = |at: &At| {
        let mut count = Count::default();
        for seed in 0..programs {
            compare(at, seed, &mut count)?;
        }
        Ok(count)
    };
    let count = match mesh {
        [] => run(&At { device, mesh: None }).unwrap(),
        _ => oflow::run_ranks(n, |_| {
            run(&At { device, mesh: Some(Placement::new(device, &(0..n).collect::<Vec<_>>(), mesh)?) })
        })
        .unwrap()
        .remove(0),
    };
    println!("{device} {mesh:?}: {count:?}");
    assert!(count.same as u64 > programs / 2, "{mesh:?}: {count:?}");
}
