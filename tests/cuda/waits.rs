//! The vm's CUDA streams: a program whose results would show a missing wait, and what a warm step may not do.

use oflow::ErrorKind;
use oflow::prelude::*;

/// A small network trained for some steps; what was read on the way.
fn steps(device: Device, seed: u64) -> Result<Vec<f64>> {
    manual_seed(seed);
    let at = || device.dtype(DType::F64);
    let x = randn([6, 4], at())?;
    let a = randn([4, 8], at())?.requires_grad_(true)?;
    let b = randn([8, 4], at())?.requires_grad_(true)?;
    let mut log = vec![];
    for step in 0..6 {
        // Values from the host while earlier work is on its way, into memory that it has just given back.
        let shift = from_vec(vec![step as f64; 24], [6, 4], device)?;
        let h = x.add(&shift)?.matmul(&a)?.gelu()?.matmul(&b)?;
        let loss = h.softmax(-1)?.square()?.sum(())?;
        loss.backward()?;
        let _quiet = no_grad();
        for p in [&a, &b] {
            let g = p.grad().expect("a gradient");
            p.sub_(&g.mul(0.1)?)?;
            p.set_grad(None);
        }
        drop(shift);
        if step % 2 == 0 {
            log.push(loss.item()?);
        }
    }
    log.extend(a.to_vec::<f64>()?);
    log.extend(b.to_vec::<f64>()?);
    Ok(log)
}

#[test]
fn i17_the_streams_of_a_gpu_wait_for_each_other() {
    if !super::cuda() {
        return;
    }
    for seed in 0..4 {
        let run = |device| oflow::run_ranks(1, |_| steps(device, seed)).unwrap().remove(0);
        let (cpu, cuda) = (run(Device::Cpu), run(Device::Cuda));
        assert_eq!(cpu.len(), cuda.len());
        for (i, (a, b)) in cpu.iter().zip(&cuda).enumerate() {
            assert!((a - b).abs() <= 1e-12 * (1.0 + a.abs()), "seed {seed}, number {i}: {a} on the cpu, {b} on cuda");
        }
    }
}

#[test]
fn an_index_out_of_range_names_the_op_and_its_line() {
    if !super::cuda() {
        return;
    }
    let end = oflow::run_ranks(1, |_| {
        let table = randn([4, 2], Device::Cuda)?;
        let ids = from_vec(vec![1i64, 7], [2], Device::Cuda)?;
        let line = line!() + 1;
        let y = table.embedding(&ids)?;
        let e = y.to_vec::<f32>().expect_err("7 is no row");
        assert_eq!(e.kind(), ErrorKind::Value);
        let text = e.to_string();
        assert!(text.contains("embedding: the value 7 is out of range 0..4"), "{text}");
        assert!(text.contains(&format!("waits.rs:{line}")), "{text}");
        // Nothing runs after that: results would be wrong.
        assert!(table.add(1.0).is_err());
        Ok(())
    });
    assert_eq!(end.expect_err("the rank has failed").kind(), ErrorKind::Value);
}
