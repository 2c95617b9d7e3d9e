//! A kernel that fails on the GPU is told with the op and the line that issued it, whichever call of the driver tells of it
//! first. Each in a process of its own: after such a failure the GPU's context is of no use to anybody.

use oflow::ErrorKind;
use oflow::kernels::cuda::{Args, Launch, Source};
use oflow::ops::{Grad, OpDef};
use oflow::prelude::*;
use oflow_tests::again::{again, passes};

static BROKEN: Source = Source::file(
    "broken",
    "extern \"C\" __global__ void broken(int steps) { for (volatile int i = 0; i < steps; i = i + 1) {} __trap(); }",
);

/// How many steps the kernel takes before it fails.
const STEPS: &str = "OFLOW_TEST_STEPS";

/// The driver tells of it while the next work is put on a stream.
#[test]
fn a_failing_kernel_is_named_with_its_line() {
    fails_after("failure::a_failing_kernel_is_named_with_its_line", 0);
}

/// The driver tells of it to who waits, when the copy of the result has been put on a stream.
#[test]
fn a_kernel_that_fails_late_is_named_with_its_line() {
    fails_after("failure::a_kernel_that_fails_late_is_named_with_its_line", 20_000_000);
}

/// Runs the test of that name again in a process of its own, with the steps in the environment.
fn fails_after(test: &str, steps: i32) {
    if std::env::var_os(STEPS).is_some() {
        return one_kernel_fails();
    }
    let mut test = again(test);
    test.env(STEPS, steps.to_string());
    passes(test);
}

fn one_kernel_fails() {
    if std::env::var_os("OFLOW_TEST_GPU").is_none()
        && let Err(e) = oflow_emulator::activate()
    {
        println!("skipped: {e}");
        return;
    }
    let op = OpDef::new("broken(x: float) -> y").unwrap().domain("test").grad(Grad::None).cuda(|cx| {
        let q = &oflow::backend::cuda::queue(cx)?;
        let f = q.function(&BROKEN, "broken", &[])?;
        let steps: i32 = std::env::var(STEPS).ok().and_then(|s| s.parse().ok()).unwrap_or(0);
        Ok(q.launch(f, Launch::new(1, 32), Args::new().value(steps))?)
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
        assert!(text.contains("'test.broken' at ") && text.contains(&format!("cuda/failure.rs:{line}")), "{text}");
        // What comes after says so too, instead of computing with what is not there.
        assert!(x.add(&x).is_err());
        Ok(())
    });
    assert_eq!(end.expect_err("the rank has failed").kind(), ErrorKind::Device);
}

#[track_caller]
fn broken(x: &Tensor) -> Result<Tensor> {
    oflow::interpreter::Call::new(oflow::op!("broken")?, &[Some(x)]).run1()
}
