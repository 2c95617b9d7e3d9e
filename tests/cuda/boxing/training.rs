//! A sharded network trained on the GPUs of four ranks gives what it gives on hosts: kernels and collectives wait for each
//! other. `OFLOW_EMULATOR_DELAY_US` makes it harder.

use oflow::prelude::*;
use oflow::run_ranks;
use oflow_tests::gpus::{cuda, gpus};

/// Two layers split over columns and rows, the batch over the other axis; what was read on the way.
fn steps(device: Device, world: usize) -> Result<Vec<f64>> {
    manual_seed(7);
    let mesh = Placement::all(device)?.mesh(&[("dp", world / 2), ("tp", 2)])?;
    let at = |s: NdSbp| (&mesh, s).dtype(DType::F64);
    let x = randn([6, 5], at(sbp![S(0), B]))?;
    let a = randn([5, 8], at(sbp![B, S(1)]))?.requires_grad_(true)?;
    let b = randn([8, 3], at(sbp![B, S(0)]))?.requires_grad_(true)?;
    let mut log = vec![];
    for _ in 0..4 {
        let y = x.matmul(&a)?.gelu()?.matmul(&b)?;
        let loss = y.softmax(-1)?.square()?.sum(())?;
        loss.backward()?;
        let _quiet = no_grad();
        for p in [&a, &b] {
            let g = p.grad().expect("a gradient");
            p.sub_(&g.mul(0.1)?)?;
            p.set_grad(None).unwrap();
        }
        log.push(loss.item()?);
    }
    log.extend(a.to_vec::<f64>()?);
    log.extend(b.to_vec::<f64>()?);
    Ok(log)
}

#[test]
fn training_agrees_with_hosts() {
    if !cuda() {
        return;
    }
    for world in [2, 4] {
        let run = |device| run_ranks(world, |_| steps(device, world)).unwrap();
        let (cpu, gpu) = (run(Device::Cpu), run(Device::Cuda));
        assert!(gpu.iter().all(|r| *r == gpu[0]), "every rank reads the same");
        for (i, (a, b)) in cpu[0].iter().zip(&gpu[0]).enumerate() {
            assert!((a - b).abs() <= 1e-11 * (1.0 + a.abs()), "{world} ranks, number {i}: {a} on hosts, {b} on GPUs");
        }
    }
    println!("{} GPUs", gpus());
}
