//! The vm's CUDA streams: a program whose results would show a missing wait, and what a warm step may not do.

use oflow::functional::Arg;
use oflow::prelude::*;
use oflow::{ErrorKind, Tensor};

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
            p.set_grad(None).unwrap();
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

/// A call whose indices are out of range, with an index that is.
type Empty = (&'static str, fn(i64) -> Result<Tensor>);

/// Where nothing is made of the indices no kernel reads them for what it makes: they are looked through all the same.
#[test]
fn an_index_out_of_range_is_found_where_nothing_is_made() {
    if !super::cuda() {
        return;
    }
    fn none(shape: &[usize]) -> Result<Tensor> {
        zeros(shape, Device::Cuda)
    }
    fn ids(values: &[i64], shape: &[usize]) -> Result<Tensor> {
        from_vec(values.to_vec(), shape, Device::Cuda)
    }
    let calls: [Empty; 8] = [
        ("embedding", |b| none(&[4, 0])?.embedding(&ids(&[0, b], &[2])?)),
        ("index_select", |b| none(&[4, 0])?.index_select(0, &ids(&[0, b], &[2])?)),
        ("index_sum", |b| called("index_sum", &[none(&[2, 0])?.into(), ids(&[0, b], &[2])?.into(), 4.into()])),
        ("embedding_grad", |b| {
            called("embedding_grad", &[none(&[2, 0])?.into(), ids(&[0, b], &[2])?.into(), 4.into()])
        }),
        ("scatter_sum", |b| {
            called("scatter_sum", &[none(&[2])?.into(), ids(&[b, b], &[2])?.into(), 0.into(), 0.into()])
        }),
        ("scatter_fill", |b| {
            called("scatter", &[none(&[0])?.into(), 0.into(), ids(&[b, b], &[2])?.into(), 1.0.into()])
        }),
        ("scatter_into", |b| none(&[0])?.scatter(0, &ids(&[b, b], &[2])?, &none(&[2])?)),
        ("one_hot", |b| ids(&[b, b], &[2])?.one_hot(0)),
    ];
    for (name, run) in calls {
        for bad in [4, -1] {
            let end = oflow::run_ranks(1, |_| {
                let e = run(bad).and_then(|_| oflow::context::synchronize(Device::Cuda));
                let text = e.expect_err(name).to_string();
                assert!(text.contains(&format!("{name}: the value {bad} is out of range 0..")), "{text}");
                Ok(())
            });
            assert_eq!(end.expect_err("the rank has failed").kind(), ErrorKind::Value, "{name}");
        }
    }
}

fn called(name: &str, args: &[Arg]) -> Result<Tensor> {
    Ok(oflow::call(name, args, &[])?.remove(0))
}
