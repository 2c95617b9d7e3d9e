//! Gate 1: an MLP's loss and gradients on every mesh equal the single-device ones.

use oflow::prelude::*;
use oflow::sbp::shard_box;

/// Loss and gradients of a two-layer MLP with everything global as said.
fn mlp(mesh: &Placement, x_sbp: &NdSbp, w1_sbp: &NdSbp, w2_sbp: &NdSbp) -> Result<(f64, Vec<Vec<f64>>)> {
    manual_seed(7);
    let t = |sbp: &NdSbp| (mesh, sbp.clone()).dtype(DType::F64);
    let x = randn([7, 6], t(x_sbp))?;
    let w1 = randn([6, 8], t(w1_sbp))?.requires_grad_(true)?;
    let b1 = randn([8], t(&NdSbp::broadcast(mesh.axes())))?.requires_grad_(true)?;
    let w2 = randn([8, 3], t(w2_sbp))?.requires_grad_(true)?;
    let target =
        distribute(&from_vec(vec![0i64, 1, 2, 0, 1, 2, 2], [7], Device::Cpu)?, (mesh, NdSbp::broadcast(mesh.axes())))?;
    let h = x.matmul(&w1)?.add(&b1)?.gelu()?;
    let loss = h.matmul(&w2)?.cross_entropy(&target)?;
    loss.backward()?;
    let mut grads = vec![];
    for p in [&w1, &b1, &w2] {
        let g = p.grad().expect("gradient");
        assert_eq!(g.sbp()?, p.sbp()?, "a leaf's gradient is boxed to the leaf's layout");
        grads.push(g.to_f64_vec()?);
    }
    Ok((loss.item()?, grads))
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + b.abs())
}

#[test]
fn loss_and_gradients_on_every_mesh_equal_one_rank() {
    let single = oflow::run_ranks(1, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let b = sbp![B];
        mlp(&mesh, &b, &b, &b)
    })
    .unwrap()
    .remove(0);
    let words = ["B", "S(0)", "S(1)"];
    for dims in [vec![2], vec![3], vec![4], vec![2, 2], vec![2, 3]] {
        let n: usize = dims.iter().product();
        let combos: Vec<NdSbp> = (0..3usize.pow(dims.len() as u32))
            .map(|mut k| {
                (0..dims.len())
                    .map(|_| {
                        let w = words[k % 3];
                        k /= 3;
                        w.parse::<Sbp>().unwrap()
                    })
                    .collect()
            })
            .collect();
        // Every combination on 1-d meshes; on 2-d ones a third of them, spread.
        let all: Vec<(usize, usize, usize)> = (0..combos.len())
            .flat_map(|a| (0..combos.len()).flat_map(move |b| (0..9.min(3usize.pow(2))).map(move |c| (a, b, c))))
            .filter(|(a, b, c)| *c < combos.len() && (dims.len() == 1 || (a + 2 * b + 3 * c) % 11 == 0))
            .collect();
        let results = oflow::run_ranks(n, |_| {
            let mesh = Placement::new(Device::Cpu, &(0..n).collect::<Vec<_>>(), &dims)?;
            all.iter().map(|(a, b, c)| mlp(&mesh, &combos[*a], &combos[*b], &combos[*c])).collect::<Result<Vec<_>>>()
        })
        .unwrap();
        for (rank, r) in results.iter().enumerate() {
            for ((a, b, c), (loss, grads)) in all.iter().zip(r) {
                let what = format!("mesh {dims:?} rank {rank}: x {} w1 {} w2 {}", combos[*a], combos[*b], combos[*c]);
                assert!(close(*loss, single.0), "{what}: loss {loss} instead of {}", single.0);
                for (g, s) in grads.iter().zip(&single.1) {
                    assert!(g.iter().zip(s).all(|(x, y)| close(*x, *y)), "{what}: gradients differ");
                }
            }
        }
        println!("mesh {dims:?}: {} layouts", all.len());
    }
    let p = Placement::of_world(Device::Cpu, 2).unwrap();
    assert_eq!(shard_box(&[7], &p, &sbp![S(0)], 1).size.as_slice(), [3]);
}
