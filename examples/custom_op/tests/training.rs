//! The module trains on two ranks as on one.

use custom_op::{leaky_relu, matmul_scale, train};
use oflow::prelude::*;

#[test]
fn two_ranks_train_as_one_does() -> Result<()> {
    custom_op::register()?;
    let on = |ranks: usize, batch: NdSbp, rules: &[(&str, NdSbp)]| -> Result<Vec<f64>> {
        let all = oflow::run_ranks(ranks, |_| train(&Placement::all(Device::Cpu)?, batch.clone(), rules, 100))?;
        Ok(all[0].clone())
    };
    let alone = on(1, sbp![B], &[])?;
    assert!(alone[99] < 0.1 * alone[0], "{alone:?}");
    let data_parallel = on(2, sbp![S(0)], &[])?;
    let tensor_parallel = on(2, sbp![B], &[("up", sbp![S(1)]), ("down", sbp![S(0)])])?;
    for other in [data_parallel, tensor_parallel] {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4 * (1.0 + a.abs());
        assert!(alone.iter().zip(&other).all(near), "{alone:?}\n{other:?}");
    }
    Ok(())
}

#[test]
fn errors_name_the_op_and_the_callers_line() -> Result<()> {
    custom_op::register()?;
    let (x, w) = (ones([2, 3], Device::Cpu)?, ones([4, 5], Device::Cpu)?);
    let (e, line) = (matmul_scale(&x, &w, 2.0).expect_err("sizes differ"), line!());
    assert_eq!(e.site().map(|s| (s.file, s.line)), Some((file!(), line)));
    let text = "custom.matmul_scale(f32[2, 3], f32[4, 5]): needs matrices [m, k] and [k, n] of one dtype, not f32[2, 3] and f32[4, 5]";
    assert_eq!(e.to_string().lines().next(), Some(text));
    let (e, line) = (leaky_relu(&arange(3, Device::Cpu)?, 0.5).expect_err("integers"), line!());
    assert_eq!(e.site().map(|s| s.line), Some(line));
    Ok(())
}
