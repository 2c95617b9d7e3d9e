//! Graphs whose elementwise calls are fused, on `Device::Cuda`: the bits of the calls.

use oflow::graph::{Graph, GraphOptions, Passes};
use oflow::prelude::*;

fn f(x: &Tensor, y: &Tensor, m: &Tensor) -> Result<Vec<Tensor>> {
    // A product and what is added to it, which a compiler would contract.
    let a = x.mul(y)?.add(y)?.mul(0.3)?.sub(x)?;
    let b = a.cast(DType::BF16)?.mul(&x.cast(DType::BF16)?)?.cast(DType::F32)?.add(&a)?;
    let c = where_(&b.gt(m)?, &b, &a)?.tanh()?.gelu()?;
    Ok(vec![c.mul(y)?, c.sum(0)?])
}

#[test]
fn a_fused_graph_has_the_bits_of_its_calls() {
    if !super::cuda() {
        return;
    }
    oflow::run_ranks(1, |_| {
        let mesh = Placement::all(Device::Cuda)?;
        let rows = (0..6 * 40).map(|i| (i * 7 % 83) as f32 / 32.0 - 1.0).collect::<Vec<f32>>();
        let local = |shape: &[usize]| from_vec(rows[..shape.iter().product()].to_vec(), shape, Device::Cuda);
        for global in [false, true] {
            let make = |shape: &[usize]| {
                let t = local(shape)?;
                if global { t.to_global((&mesh, sbp![B])) } else { Ok(t) }
            };
            let (x, y, m) = (make(&[6, 40])?, make(&[40])?, make(&[6, 1])?);
            let bits = |all: Vec<Tensor>| -> Result<Vec<Vec<u32>>> {
                let of = |t: &Tensor| Ok(t.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect());
                all.iter().map(of).collect()
            };
            let want = bits(f(&x, &y, &m)?)?;
            for passes in [Passes::default(), Passes::default().without("fuse")?] {
                let fuses = passes == Passes::default();
                let closure =
                    |g: &oflow::graph::GraphBuilder<'_>| f(&g.input("x", &x)?, &g.input("y", &y)?, &g.input("m", &m)?);
                let mut graph = Graph::build(closure, GraphOptions::default().passes(passes))?;
                assert_eq!(graph.program().to_string().contains("oflow.fused"), fuses, "{}", graph.explain());
                assert_eq!(bits(graph.run(&[&x, &y, &m])?)?, want, "{}", graph.explain());
            }
        }
        Ok(())
    })
    .unwrap();
}
