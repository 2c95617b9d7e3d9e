//! Calls that the random ones have found.

use oflow::functional::call;
use oflow::interpreter::Call;
use oflow::ops::AttrValue;
use oflow::prelude::*;

/// Calls an op of windows at an offset far outside, on one tensor.
fn far(op: &'static oflow::ops::Op, x: &Tensor, shape: [i64; 2], strides: &[i64]) -> Result<Tensor> {
    let attrs: [AttrValue; 3] = [shape.as_slice().into(), (1i64 << 62).into(), strides.into()];
    Call::new(op, &[Some(x)]).attrs(attrs).run1()
}

/// Without elements nothing is addressed, wherever the window is: the offset was multiplied all the same.
#[test]
fn a_window_without_elements_may_begin_anywhere() -> Result<()> {
    let put = far(oflow::op!("strided_put")?, &zeros([0], Device::Cpu)?, [2, 4], &[3])?;
    assert_eq!(put.to_f64_vec()?, [0.0; 8]);
    let read = far(oflow::op!("strided_read")?, &zeros([4], Device::Cpu)?, [0, 2], &[1, 1])?;
    assert_eq!(read.shape(), [0, 2]);
    Ok(())
}

#[test]
fn i18_an_expression_that_needs_a_float_is_refused_by_ranks_without_elements_too() {
    let ranks = oflow::run_ranks(4, |_| {
        // The gradient op is made at its first use.
        let x = ones([2], Device::Cpu)?.requires_grad_(true)?;
        x.silu()?.sum(())?.backward()?;
        let mesh = Placement::all(Device::Cpu)?;
        let ints = ones([2, 3], (&mesh, sbp![S(0)]).dtype(DType::I64))?;
        Ok(call("silu.grad.x", &[(&ints).into(), (&ints).into()], &[]).unwrap_err().to_string())
    });
    for e in ranks.unwrap() {
        assert!(e.contains("needs a float, but all dtypes are integers") && e.contains("cast"), "{e}");
    }
}
