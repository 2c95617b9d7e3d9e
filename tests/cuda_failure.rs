//! A kernel that fails on the GPU is told with the op and the line that issued it. In a process of its own: after such a
//! failure the GPU's context is of no use to anybody.

use oflow::kernels::cuda::{Args, Launch, Source};
use oflow::ops::{Grad, OpDef};
use oflow::prelude::*;
use oflow::{CallSite, ErrorKind};

static BROKEN: Source = Source::file("broken", "extern \"C\" __global__ void broken(int) { __trap(); }");

#[test]
fn a_failing_kernel_is_named_with_its_line() {
    if std::env::var_os("OFLOW_TEST_GPU").is_none()
        && let Err(e) = oflow_emulator::activate()
    {
        println!("skipped: {e}");
        return;
    }
    let op = OpDef::new("broken(x: float) -> y").unwrap().domain("test").grad(Grad::None).cuda(|cx| {
        let q = cx.queue()?;
        let f = q.function(&BROKEN, "broken", &[])?;
        Ok(q.launch(f, Launch::new(1, 32), Args::new().value(0i32))?)
    });
    oflow::ops::register(op).unwrap();
    let end = oflow::run_ranks(1, |_| {
        let x = ones([4], Device::Cuda)?;
        assert_eq!(x.add(&x)?.to_vec::<f32>()?, [2.0; 4]);
        let line = line!() + 1;
        let y = broken(&x)?;
        let e = y.to_vec::<f32>().expect_err("the kernel has failed");
        assert_eq!(e.kind(), ErrorKind::Device);
        let text = e.to_string();
        assert!(text.contains("CUDA_ERROR_"), "{text}");
        assert!(text.contains("'broken' at ") && text.contains(&format!("cuda_failure.rs:{line}")), "{text}");
        // What comes after says so too, instead of computing with what is not there.
        assert!(x.add(&x).is_err());
        Ok(())
    });
    assert_eq!(end.expect_err("the rank has failed").kind(), ErrorKind::Device);
}

#[track_caller]
fn broken(x: &Tensor) -> Result<Tensor> {
    use oflow::interpreter::{Call, dispatch};
    let call = Call {
        op: oflow::ops::find("broken")?,
        inputs: &[Some(x)],
        attrs: Default::default(),
        runtime: Default::default(),
        target: None,
        given: None,
        recording: false,
        site: CallSite::here(),
    };
    Ok(dispatch(call)?.swap_remove(0))
}
