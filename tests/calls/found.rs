//! Calls that the random ones have found.

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
