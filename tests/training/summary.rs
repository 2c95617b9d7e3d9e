//! Summaries of models: numbers are those of a run.

use oflow::graph::{Graph, GraphOptions};
use oflow::nn::{Block, BlockOptions, Embedding, Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;
use oflow::take_comm_trace;

#[derive(oflow::nn::Module)]
struct Net {
    wte: Embedding,
    h: Vec<Block>,
    head: Linear,
}

impl Net {
    fn new(mesh: &Placement) -> Result<Net> {
        let t = (mesh, NdSbp::broadcast(mesh.axes()));
        let block = BlockOptions { width: 16, heads: 2, hidden: 32, dropout: 0.1 };
        let h = vec![Block::new(&block, t.clone())?, Block::new(&block, t.clone())?];
        Ok(Net { wte: Embedding::new(20, 16, t.clone())?, h, head: Linear::new(16, 20, t)? })
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = self.wte.forward(x)?;
        for (n, block) in self.h.iter().enumerate() {
            let _scope = oflow::name_scope(&format!("h.{n}"));
            x = block.forward(&x)?;
        }
        self.head.forward(&x)
    }
}

/// Column and row parallel projections.
fn split(net: &mut Net, mesh: &Placement) -> Result<()> {
    net.to_global(mesh, &[("*.o.*", sbp![B]), ("*.o.weight", sbp![S(1)]), ("*.attn.*", sbp![S(0)])])?;
    net.to_global(mesh, &[("*.fc.*", sbp![S(0)]), ("*.pr.weight", sbp![S(1)])])
}

#[test]
fn numbers_are_those_of_a_run() -> Result<()> {
    oflow::run_ranks(2, |world| {
        let mesh = Placement::all(Device::Cpu)?;
        let mut net = Net::new(&mesh)?;
        split(&mut net, &mesh)?;
        let x = from_vec((0..24i64).map(|n| n % 20).collect(), [3, 8], (&mesh, sbp![B]))?;
        take_comm_trace();
        let summary = net.summary(|net| net.forward(&x))?;
        assert!(take_comm_trace().is_empty(), "a summary sends nothing");
        let y = net.forward(&x)?;
        let sent: u64 = take_comm_trace().iter().map(|r| r.bytes_sent()).sum();
        let whole = &summary.modules[0];
        assert!(sent > 0 && whole.sent == sent, "{} {sent}\n{summary}", whole.sent);
        assert_eq!((whole.output.as_str(), whole.layout.as_str()), ("f32[3, 8, 20]", y.sbp()?.to_string().as_str()));
        assert_eq!(summary.elements(), (net.parameter_count() as u64, net.parameter_count() as u64));
        let here: usize = net.parameters().iter().map(|p| p.to_local().unwrap().numel() * 4).sum();
        assert_eq!(summary.parameter_bytes() as usize, here);
        let row =
            |path: &str| summary.modules.iter().find(|m| m.path == path).unwrap_or_else(|| panic!("{path}\n{summary}"));
        // 24 rows; a projection of 16 to 32, one of 32 to 16.
        assert_eq!((row("h.1.mlp.fc").mult_adds, row("h.1.mlp").mult_adds), (24 * 16 * 32, 2 * 24 * 16 * 32));
        assert_eq!((row("h.0.attn.q").mult_adds, row("head").mult_adds), (24 * 16 * 16, 24 * 16 * 20));
        assert_eq!(row("h.0.mlp.fc").layout, "[S(2)]");
        // The scope of a block is the program's own, that of the embedding its parameter.
        assert_eq!((row("h.0").output.as_str(), row("wte").output.as_str()), ("f32[3, 8, 16]", "f32[3, 8, 16]"));
        assert_eq!((row("h").parameters, row("wte").parameters), (2 * row("h.0").parameters, 320));
        let text = summary.to_string();
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        assert!(text.contains("h.0.mlp.fc.weight") && text.contains(&format!("rank {}", world.rank())), "{text}");
        // Nothing is left of the capture: the next pass is the same, dropout included.
        oflow::manual_seed(3);
        let a = net.forward(&x)?.to_vec::<f32>()?;
        oflow::manual_seed(3);
        net.summary(|net| net.forward(&x))?;
        assert_eq!(net.forward(&x)?.to_vec::<f32>()?, a);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn a_graph_has_one_too() -> Result<()> {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let net = Net::new(&mesh)?;
        let x0 = zeros([4, 8], (&mesh, sbp![S(0)]).dtype(DType::I64))?;
        let mut opt = AdamW::new(net.parameters(), AdamWOptions::default());
        let forward = net.summary(|net| net.forward(&x0))?;
        let mut step = Graph::build(
            |g| {
                let loss = net.forward(&g.input("x", &x0)?)?.square()?.mean(())?;
                opt.zero_grad();
                loss.backward()?;
                opt.step()?;
                Ok(loss)
            },
            GraphOptions::default(),
        )?;
        let summary = step.summary();
        let (f, all) = (&forward.modules[0], &summary.modules[0]);
        // Backward has two products for each of forward, but for the gradient of what the first one reads.
        assert!(all.mult_adds > 2 * f.mult_adds && all.mult_adds <= 3 * f.mult_adds + f.mult_adds / 2, "{summary}");
        // Gradients are reduced.
        assert!(f.sent == 0 && all.sent > 0, "{forward}\n{summary}");
        // Parameters and both moments of each.
        assert!(summary.parameters.len() >= 3 * net.parameters().len(), "{summary}");
        assert!(summary.parameters.iter().any(|p| p.name.starts_with("h.1.mlp.fc (")), "{summary}");
        step.run(&[&x0])?;
        Ok(())
    })?;
    Ok(())
}

#[test]
fn what_cannot_be_captured_says_so() -> Result<()> {
    let net = Linear::new(4, 2, Device::Cpu)?;
    net.freeze("bias")?;
    let x = ones([3, 4], Device::Cpu)?;
    let line = line!() + 1;
    let e = net.summary(|net| if net.forward(&x)?.sum(())?.item()? > 0.0 { Ok(x.clone()) } else { x.relu() });
    let e = e.unwrap_err().to_string();
    assert!(e.contains(&format!("summary.rs:{line}")), "{e}");
    // A module whose result is one of its inputs, and one without calls.
    let summary = net.summary(|_| Ok(x.clone()))?;
    assert_eq!((summary.modules.len(), summary.modules[0].calls, summary.elements()), (1, 0, (10, 8)));
    assert!(summary.to_string().contains("bias (frozen)"), "{summary}");
    Ok(())
}
