//! Registration, and the functions that programs call.

use crate::matmul;
use oflow::interpreter::Call;
use oflow::ops::{Op, OpDef};
use oflow::prelude::*;
use oflow::{Scalar, op};
use std::sync::{Mutex, PoisonError};

/// The domain of this crate's names.
pub const DOMAIN: &str = "custom";

/// `leaky_relu(x; alpha)`: x where it is positive, else alpha x.
pub fn leaky_relu_op() -> Result<OpDef> {
    let text = "leaky_relu(x: float; alpha: runtime float = 0.01) -> y";
    Ok(OpDef::elementwise(text, "select(x >= 0, x, alpha * x)")?
        .domain(DOMAIN)
        .doc("x where it is positive, else alpha x.")
        .samples(&["f32[4, 6]", "f64[5]; alpha=0.25", "f16[3, 2, 4]; alpha=0.5"]))
}

/// Registers the ops of this crate. Call it before `oflow::init`, so that ranks are compared by their ops when a job starts. Further
/// calls return the same ops.
pub fn register() -> Result<[&'static Op; 3]> {
    static DONE: Mutex<Option<[&'static Op; 3]>> = Mutex::new(None);
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(ops) = *done {
        return Ok(ops);
    }
    let defs = [leaky_relu_op()?, matmul::matmul_scale_op()?, matmul::matmul_scale_grad_op()?];
    let [a, b, c] = defs.map(oflow::ops::register);
    Ok(*done.insert([a?, b?, c?]))
}

/// x where it is positive, else `alpha` x.
#[track_caller]
pub fn leaky_relu(x: &Tensor, alpha: impl Into<Scalar>) -> Result<Tensor> {
    Call::new(op!("custom.leaky_relu")?, &[Some(x)]).runtime([alpha]).run1()
}

/// `scale` x w, for x `[m, k]` and w `[k, n]`.
#[track_caller]
pub fn matmul_scale(x: &Tensor, w: &Tensor, scale: impl Into<Scalar>) -> Result<Tensor> {
    Call::new(op!("custom.matmul_scale")?, &[Some(x), Some(w)]).runtime([scale]).run1()
}
