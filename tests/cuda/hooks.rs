//! Ops of this crate on a GPU: inputs that the kernel reads in host memory, another stream, results elsewhere.

use oflow::backend::cuda::queue;
use oflow::interpreter::Call;
use oflow::kernels::cuda::copy::copy;
use oflow::ops::{DTypeRule, Devices, Grad, Op, OpDef, StreamKind, register};
use oflow::prelude::*;

/// `guarded_copy(x, n) -> y`: x, if n is 7. The kernel looks at n before it puts work on the stream.
fn guarded_copy() -> Result<OpDef> {
    Ok(OpDef::new("guarded_copy(x: any, n: no_grad host i64[1]) -> y")?
        .domain("gpu_hooks")
        .dtype(DTypeRule::Input(0))
        .signatures(&["S0, B -> S0"])
        .grad(Grad::None)
        .cuda(|cx| match cx.input("n")?.as_slice::<i64>()?[0] {
            7 => Ok(copy(&queue(cx)?, cx.input("x")?, cx.output(0))?),
            n => Err(Error::value(format!("n is {n}"))),
        }))
}

/// `beside(x; to) -> y`: a copy of x on the stream of copies, on another device where that is asked.
fn beside() -> Result<OpDef> {
    Ok(OpDef::new("beside(x: any; to: device) -> y")?
        .domain("gpu_hooks")
        .dtype(DTypeRule::Input(0))
        .devices(|c| {
            let to = c.call.device_attr("to")?;
            Ok(Devices { run_on: Device::Cuda, outputs: [to].into_iter().collect(), stream: StreamKind::Copy })
        })
        .grad(Grad::None)
        .cuda(|cx| Ok(copy(&queue(cx)?, cx.input("x")?, cx.output(0))?)))
}

#[test]
fn a_kernel_of_a_gpu_reads_an_input_in_host_memory() {
    if !super::cuda() {
        return;
    }
    let op: &'static Op = register(guarded_copy().unwrap()).unwrap();
    oflow::run_ranks(2, move |_| {
        let data = vec![1.0f32, -2.0, 3.0];
        let x = from_vec(data.clone(), [3], Device::Cuda)?;
        for home in [Device::Cpu, Device::Cuda] {
            let n = from_vec(vec![7i64], [1], home)?;
            let y = Call::new(op, &[Some(&x), Some(&n)]).run1()?;
            assert_eq!((y.device(), y.to_vec::<f32>()?), (Device::Cuda, data.clone()));
        }
        let n = from_vec(vec![8i64], [1], Device::Cuda)?;
        let e = Call::new(op, &[Some(&x), Some(&n)]).run1().unwrap_err();
        assert_eq!(e.message(), "n is 8");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_kernel_runs_on_the_stream_of_copies() {
    if !super::cuda() {
        return;
    }
    let op: &'static Op = register(beside().unwrap()).unwrap();
    oflow::run_ranks(1, move |_| {
        for step in 0..8 {
            // Made on the compute stream, copied on the other, used on the compute stream, and the memory given back.
            let x = from_vec(vec![step as f32; 4096], [4096], Device::Cuda)?.mul(2.0)?;
            let y = Call::new(op, &[Some(&x)]).attrs([Device::Cuda]).run1()?;
            drop(x);
            let z = y.add(1.0)?;
            assert_eq!(z.to_vec::<f32>()?, vec![2.0 * step as f32 + 1.0; 4096]);
            let there = Call::new(op, &[Some(&z)]).attrs([Device::Cpu]).run1()?;
            assert_eq!((there.device(), there.to_vec::<f32>()?[0]), (Device::Cpu, 2.0 * step as f32 + 1.0));
            // The kernel runs on the GPU although its input is not there.
            let back = Call::new(op, &[Some(&there)]).attrs([Device::Cuda]).run1()?;
            assert_eq!((back.device(), back.to_vec::<f32>()?), (Device::Cuda, z.to_vec::<f32>()?));
        }
        Ok(())
    })
    .unwrap();
}
