//! A mixture of experts: every layout computes what one rank computes, and tokens travel to split experts by all-to-alls.

use oflow::nn::{MixtureOfExperts, Module, MoeOptions, checkpoint};
use oflow::prelude::*;
use oflow::take_comm_trace;

fn options(capacity_factor: f64) -> MoeOptions {
    MoeOptions { groups: 6, capacity_factor, ..MoeOptions::new(8, 12, 4) }
}

/// Result, balance, loss and gradients.
fn numbers(mesh: &Placement, x: &NdSbp, experts: &NdSbp, again: bool) -> Result<Vec<Vec<f64>>> {
    manual_seed(3);
    let mut moe = MixtureOfExperts::new(options(1.25), (mesh, NdSbp::broadcast(mesh.axes())).dtype(DType::F64))?;
    moe.to_global(mesh, &[("up*", experts.clone()), ("down*", experts.clone())])?;
    let x = randn([3, 16, 8], (mesh, x.clone()).dtype(DType::F64))?.requires_grad_(true)?;
    let (y, balance) = if again { checkpoint(|x| moe.forward(x), &x)? } else { moe.forward(&x)? };
    let loss = y.square()?.mean(())?.add(&balance.mul(0.01)?)?;
    loss.backward()?;
    let mut all = vec![y.to_f64_vec()?, balance.to_f64_vec()?, x.grad().expect("a gradient").to_f64_vec()?];
    for (name, p) in moe.named_parameters() {
        let g = p.grad().unwrap_or_else(|| panic!("{name} has no gradient"));
        assert_eq!(g.sbp()?, p.sbp()?);
        all.push(g.to_f64_vec()?);
    }
    Ok(all)
}

#[test]
fn every_layout_computes_what_one_rank_does() {
    let one = |again| {
        let all = oflow::run_ranks(1, |_| numbers(&Placement::all(Device::Cpu)?, &sbp![B], &sbp![B], again));
        all.unwrap().remove(0)
    };
    let alone = one(false);
    assert_eq!(one(true), alone);
    let rows: [(&[usize], NdSbp, NdSbp); 9] = [
        (&[2], sbp![S(0)], sbp![S(0)]),
        (&[2], sbp![S(1)], sbp![S(0)]),
        (&[3], sbp![S(0)], sbp![S(0)]),
        (&[3], sbp![S(0)], sbp![B]),
        (&[4], sbp![B], sbp![S(0)]),
        (&[8], sbp![S(0)], sbp![S(0)]),
        (&[2], sbp![P], sbp![S(0)]),
        (&[2, 2], sbp![S(0), B], sbp![S(0), S(2)]),
        (&[3, 2], sbp![S(0), B], sbp![B, S(0)]),
    ];
    for (sizes, x, experts) in rows {
        let n = sizes.iter().product();
        let all = oflow::run_ranks(n, |_| {
            let mesh = Placement::new(Device::Cpu, &(0..n).collect::<Vec<_>>(), sizes)?;
            // A [E, 1, width] bias cannot be split along its middle.
            numbers(&mesh, &x, &experts, false)
        });
        for (i, (have, want)) in all.unwrap()[0].iter().zip(&alone).enumerate() {
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
            assert!(
                have.len() == want.len() && have.iter().zip(want).all(close),
                "{sizes:?} {x} {experts}, number {i}"
            );
        }
    }
}

#[test]
fn tokens_travel_by_all_to_alls() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let mut moe = MixtureOfExperts::new(options(1.25), (&mesh, sbp![B]))?;
        moe.to_global(&mesh, &[("up*", sbp![S(0)]), ("down*", sbp![S(0)])])?;
        let x = randn([48, 8], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        take_comm_trace();
        let (y, balance) = moe.forward(&x)?;
        y.sum(())?.add(&balance)?.backward()?;
        let all = take_comm_trace();
        // Tokens have 4 dims: groups, experts, places, features. The gradient of their weights moves too, in a fifth of the bytes.
        let ways = |backward: bool| {
            let moved = all.iter().filter(|r| r.backward == backward && r.bytes_sent() > 0);
            let plans = moved.map(|r| r.moved.to_string());
            plans.filter(|p| p.starts_with("f32[4, 6, 5, 8]") && p.contains("all-to-all")).count()
        };
        assert_eq!(
            (ways(false), ways(true)),
            (2, 2),
            "{:?}",
            all.iter().map(|r| r.moved.to_string()).collect::<Vec<_>>()
        );
        // Experts are where they are: neither they nor their gradients move.
        assert!(moe.up.grad().is_some_and(|g| g.sbp().unwrap() == &sbp![S(0)]));
        Ok(())
    })
    .unwrap();
}

/// The layer by hand: each token on its own, where nothing is left out.
#[test]
fn a_token_gets_the_weighted_sum_of_its_experts() {
    manual_seed(5);
    let t = Device::Cpu.dtype(DType::F64);
    let moe = MixtureOfExperts::new(options(2.0), t.clone()).unwrap();
    let x = randn([12, 8], t.clone()).unwrap();
    let (y, balance) = moe.forward(&x).unwrap();
    let p = moe.gate.forward(&x).unwrap().softmax(-1).unwrap();
    let mut first = [0.0; 4];
    for i in 0..12 {
        let row = x.narrow(0, i, 1).unwrap();
        let probabilities = p.narrow(0, i, 1).unwrap().to_vec::<f64>().unwrap();
        let mut order: Vec<usize> = (0..4).collect();
        order.sort_by(|a, b| probabilities[*b].total_cmp(&probabilities[*a]));
        first[order[0]] += 1.0 / 12.0;
        let both = probabilities[order[0]] + probabilities[order[1]];
        let mut want = vec![0.0; 8];
        for e in &order[..2] {
            let of = |w: &Tensor| w.narrow(0, *e as i64, 1).unwrap().squeeze(0).unwrap();
            let h = row.matmul(&of(&moe.up)).unwrap().add(&of(&moe.up_bias)).unwrap().gelu().unwrap();
            let made = h.matmul(&of(&moe.down)).unwrap().add(&of(&moe.down_bias)).unwrap();
            for (w, m) in want.iter_mut().zip(made.to_vec::<f64>().unwrap()) {
                *w += m * probabilities[*e] / both;
            }
        }
        let have = y.narrow(0, i, 1).unwrap().to_vec::<f64>().unwrap();
        assert!(have.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-9), "token {i}: {have:?} {want:?}");
    }
    let mean = p.mean(0).unwrap().to_vec::<f64>().unwrap();
    let want = 4.0 * first.iter().zip(&mean).map(|(a, b)| a * b).sum::<f64>();
    assert!((balance.item().unwrap() - want).abs() < 1e-9);
    // Where a group has room for one token of each expert, later ones are left out.
    let few = MixtureOfExperts::new(MoeOptions { groups: 1, capacity_factor: 0.0, ..options(0.0) }, t.clone()).unwrap();
    let kept = few.forward(&x).unwrap().0.abs().unwrap().sum(-1).unwrap().to_vec::<f64>().unwrap();
    assert!((1..=8).contains(&kept.iter().filter(|s| **s > 0.0).count()), "{kept:?}");
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    for o in [
        MoeOptions { experts: 0, ..options(1.0) },
        MoeOptions { top_k: 5, ..options(1.0) },
        MoeOptions { top_k: 0, ..options(1.0) },
        MoeOptions { groups: 0, ..options(1.0) },
        options(f64::NAN),
    ] {
        let e = MixtureOfExperts::new(o, Device::Cpu).err().expect("an error").to_string();
        assert!(e.contains("a mixture of") && e.contains(file!()), "{e}");
    }
    let moe = MixtureOfExperts::new(options(1.0), Device::Cpu).unwrap();
    let e = moe.forward(&ones([3, 7], Device::Cpu).unwrap()).expect_err("an error").to_string();
    assert!(e.contains("the experts take tokens of width 8"), "{e}");
    // One token, and a prime number of them.
    for n in [1, 13] {
        assert_eq!(moe.forward(&ones([n, 8], Device::Cpu).unwrap()).unwrap().0.shape(), [n, 8]);
    }
}
