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

/// Errors of the calls inside name the function that was called, too.
#[test]
fn functions_of_several_calls_are_named_where_one_of_these_fails() -> Result<()> {
    let huge = ones([1], Device::Cpu.dtype(DType::C64))?.expand([1i64 << 56])?;
    let ids = ones([2], Device::Cpu.dtype(DType::U32))?;
    let z = ones([1], Device::Cpu.dtype(DType::C128))?;
    for (name, made) in [
        ("sum(", huge.sum(())),
        ("matmul(", huge.matmul(&huge)),
        ("diagflat(", z.diagflat(i64::MAX)),
        (
            "quantize_per_tensor",
            call("quantize_per_tensor", &[(&ids).into(), 0.5.into(), 4i64.into()], &[]).map(|mut y| y.remove(0)),
        ),
    ] {
        let e = made.map(|t| format!("{t:?}")).expect_err("refused");
        assert!(e.to_string().starts_with(name), "{e}");
        assert_eq!(e.site().map(|site| site.file), Some(file!()), "{e}");
    }
    Ok(())
}

/// A tensor of few numbers may have a dim of any size, and a choice any length: neither ends the process.
#[test]
fn more_parts_or_choices_than_memory_holds_are_an_error() -> Result<()> {
    let long = zeros([0usize, 1 << 31], Device::Cpu)?;
    for e in [long.split(1, 1).unwrap_err(), long.unbind(1).unwrap_err(), long.chunk(1 << 30, 1).unwrap_err()] {
        assert!(e.to_string().contains("expected at most 16777216 parts"), "{e}");
    }
    let none = zeros([0], Device::Cpu)?;
    assert_eq!(none.combinations(3, true)?.shape(), [0, 3]);
    let few = arange(4, Device::Cpu)?;
    for e in [none.combinations(i64::MAX - 1, true).unwrap_err(), few.combinations(i64::MAX, false).unwrap_err()] {
        assert!(e.to_string().contains("has more bytes than memory has addresses"), "{e}");
    }
    let e = few.combinations(1i64 << 61, true).unwrap_err().to_string();
    assert!(e.contains("out of memory") && e.contains("combinations"), "{e}");
    let shapes =
        [(2, false, 6), (2, true, 10), (3, false, 4), (3, true, 20), (4, false, 1), (4, true, 35), (1, true, 4)];
    for (r, with_replacement, rows) in shapes {
        assert_eq!(few.combinations(r, with_replacement)?.shape(), [rows, r as usize]);
    }
    Ok(())
}

/// The smallest integer has no negative.
#[test]
fn a_diagonal_far_outside_is_an_error() {
    let x = ones([2, 3], Device::Cpu).unwrap();
    for offset in [i64::MIN, i64::MIN + 1, i64::MAX] {
        for dims in [(3, 2), (0, 1)] {
            let given = [(&x).into(), offset.into(), i64::into(dims.0), i64::into(dims.1)];
            let e = call("diag_embed", &given, &[]).unwrap_err().to_string();
            assert!(e.contains("diag_embed"), "{e}");
        }
    }
}
