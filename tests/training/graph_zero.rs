//! ZeRO in graphs: parameters are gathered while the layer before computes, released after their last use, and gathered again for backward.

use oflow::graph::{Graph, GraphOptions, Memory, Passes};
use oflow::nn::{Linear, Module, ZeroOptions, zero};
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;
use oflow::program::{Node, Program, Work};

const LAYERS: usize = 6;
const WIDTH: usize = 256;
const STEPS: usize = 3;

struct Job {
    layers: Vec<Linear>,
    opt: AdamW,
}

fn job(mesh: &Placement) -> Result<Job> {
    manual_seed(5);
    let t = (mesh, sbp![B]);
    let mut layers = (0..LAYERS).map(|_| Linear::without_bias(WIDTH, WIDTH, &t)).collect::<Result<Vec<_>>>()?;
    for l in &mut layers {
        zero(l, &ZeroOptions::new(3))?;
    }
    let opt = AdamW::new(layers.iter().flat_map(Module::parameters).collect(), AdamWOptions::default());
    Ok(Job { layers, opt })
}

impl Job {
    fn step(&mut self, x: &Tensor) -> Result<Tensor> {
        let h = self.layers.iter().try_fold(x.clone(), |h, l| l.forward(&h)?.tanh())?;
        let loss = h.square()?.mean(())?;
        self.opt.zero_grad();
        loss.backward()?;
        self.opt.step()?;
        Ok(loss)
    }

    fn bits(&self, loss: &Tensor) -> Result<Vec<u64>> {
        let mut all = loss.to_f64_vec()?;
        for l in &self.layers {
            all.extend(l.weight.detach().to_f64_vec()?);
        }
        Ok(all.into_iter().map(f64::to_bits).collect())
    }
}

/// The places of the gathers of parameters and of their first uses; forward, and backward.
fn gathers(program: &Program) -> [Vec<(usize, usize)>; 2] {
    let mut found = [vec![], vec![]];
    for (n, node) in program.nodes.iter().enumerate() {
        if let (Work::Box("parameter"), [to]) = (&node.work, &node.outputs[..]) {
            let first = program.nodes.iter().position(|n| n.inputs.contains(&Some(*to))).unwrap_or(n);
            found[usize::from(node.backward)].push((n, first));
        }
    }
    found
}

#[test]
fn parameters_are_gathered_one_layer_ahead_within_the_memory_of_the_step_without_a_graph() {
    for ranks in [2, 4] {
        oflow::run_ranks(ranks, |_| {
            let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", ranks)])?;
            let x = randn([64, WIDTH], (&mesh, sbp![S(0)]))?;
            let input = |n: usize| x.mul(1.0 + n as f64);
            let mut want = vec![];
            let eager = {
                let mut eager = job(&mesh)?;
                for n in 0..STEPS {
                    let loss = eager.step(&input(n)?)?;
                    want.push(eager.bits(&loss)?);
                }
                let before = oflow::memory_stats(Device::Cpu)?;
                before.peak
            };
            let mut own = job(&mesh)?;
            let options = GraphOptions::default().memory(Memory::Budget(eager));
            let mut graph = Graph::build(|g| own.step(&g.input("x", &x)?), options)?;
            let plan = graph.plan().ok_or_else(|| Error::value("the graph is not planned"))?;
            assert!(plan.peak() <= eager, "{} bytes, {eager} without a graph\n{}", plan.peak(), graph.explain());
            for (backward, all) in gathers(graph.program()).iter().enumerate() {
                // The first layer's input has no gradient.
                assert_eq!(all.len(), LAYERS - backward, "{}", graph.explain());
                // Forward beside the product of the layer before, which the first one does not have; backward beside any call.
                let beside =
                    |n: &&Node| n.call().is_some_and(|c| c.op.name() == "matmul" || backward == 1 && !n.is_boxing());
                for (layer, (gathered, used)) in all.iter().enumerate() {
                    let calls = graph.program().nodes[*gathered..*used].iter().filter(beside).count();
                    let (node, first) = (&graph.program().nodes[*gathered], layer == 0 && backward == 0);
                    assert_eq!((calls > 0, node.overlapped), (!first, !first), "{}", graph.explain());
                }
            }
            for (n, want) in want.iter().enumerate() {
                let loss = graph.run(&[&input(n)?])?;
                assert_eq!(&own.bits(&loss)?, want, "step {n} on {ranks} ranks\n{}", graph.explain());
            }
            // Without the pass it takes no less, and waits more.
            let mut other = job(&mesh)?;
            let passes = Passes::default().without("overlap")?;
            let apart = Graph::build(|g| other.step(&g.input("x", &x)?), GraphOptions::default().passes(passes))?;
            let exposed = |g: &Graph| g.effects().last().map_or(0, |e| e.after.exposed);
            assert!(2 * exposed(&graph) < exposed(&apart), "{}", graph.explain());
            Ok(())
        })
        .unwrap();
    }
}
