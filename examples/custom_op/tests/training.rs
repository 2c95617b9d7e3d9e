//! The module trains on two ranks as on one, and as a graph as without.

use custom_op::{Mlp, leaky_relu, matmul_scale, train};
use oflow::graph::{Graph, GraphOptions};
use oflow::nn::Module;
use oflow::optim::{Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;
use oflow::program::Program;

#[test]
fn two_ranks_train_as_one_does() -> Result<()> {
    custom_op::register()?;
    let on = |ranks: usize, batch: NdSbp, rules: &[(&str, NdSbp)]| -> Result<Vec<f64>> {
        let all = oflow::run_ranks(ranks, |_| train(&Placement::all(Device::Cpu)?, batch.clone(), rules, 100))?;
        Ok(all[0].clone())
    };
    let alone = on(1, sbp![B], &[])?;
    assert!(alone[99] < 0.1 * alone[0], "{alone:?}");
    let data_parallel = on(2, sbp![S(0)], &[])?;
    let tensor_parallel = on(2, sbp![B], &[("up", sbp![S(1)]), ("down", sbp![S(0)])])?;
    for other in [data_parallel, tensor_parallel] {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4 * (1.0 + a.abs());
        assert!(alone.iter().zip(&other).all(near), "{alone:?}\n{other:?}");
    }
    Ok(())
}

#[test]
fn a_graph_of_these_ops_has_their_bits() -> Result<()> {
    custom_op::register()?;
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = randn([32, 8], (&mesh, sbp![S(0)]))?;
        let trained = |captured: bool| -> Result<Vec<f32>> {
            manual_seed(7);
            let model = Mlp::new([8, 16, 2], (&mesh, sbp![B]))?;
            let mut sgd = Sgd::new(model.parameters(), SgdOptions::default());
            let mut step = |x: &Tensor| -> Result<Tensor> {
                let loss = model.forward(x)?.square()?.mean(())?;
                sgd.zero_grad();
                loss.backward()?;
                sgd.step()?;
                Ok(loss)
            };
            let mut graph = None;
            if captured {
                let built = Graph::build(|g| step(&g.input("x", &x)?), GraphOptions::default())?;
                let program = Program::decode(&built.program().encode())?;
                assert!(program.to_string().contains("custom.matmul_scale@1("), "{program}");
                graph = Some(built);
            }
            let mut all = vec![];
            for _ in 0..20 {
                let loss = match &mut graph {
                    Some(graph) => graph.run(&[&x])?,
                    None => step(&x)?,
                };
                all.push(loss.item()? as f32);
            }
            all.extend(model.up.to_vec::<f32>()?);
            Ok(all)
        };
        assert_eq!(trained(true)?, trained(false)?);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn errors_name_the_op_and_the_callers_line() -> Result<()> {
    custom_op::register()?;
    let (x, w) = (ones([2, 3], Device::Cpu)?, ones([4, 5], Device::Cpu)?);
    let (e, line) = (matmul_scale(&x, &w, 2.0).expect_err("sizes differ"), line!());
    assert_eq!(e.site().map(|s| (s.file, s.line)), Some((file!(), line)));
    let text = "custom.matmul_scale(f32[2, 3], f32[4, 5]): needs matrices [m, k] and [k, n] of one dtype, not f32[2, 3] and f32[4, 5]";
    assert_eq!(e.to_string().lines().next(), Some(text));
    let (e, line) = (leaky_relu(&arange(3, Device::Cpu)?, 0.5).expect_err("integers"), line!());
    assert_eq!(e.site().map(|s| s.line), Some(line));
    Ok(())
}
