//! Ops whose result has a length that depends on values: `nonzero`, `masked_select`, `unique`; and `count_nonzero`, which
//! counts for the first two.

use super::reduce::{base, by_truth, signatures};
use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, InferCtx, OpDef};
use crate::sbp::{ReduceOp, Sbp, Signature};
use oflow_kernels::{DType, DTypeKind, Dims};

const NONZERO: &str = "The indices of the elements that are not zero (NaN is not): i64, `[count, rank]`, in row-major order. A tensor \
    split along dim 0 gives indices split along dim 0. The call waits for the count, which decides the shape of the result.

```
use oflow::prelude::*;
let x = from_vec(vec![0.0f32, 3.0, 4.0, 0.0], [2, 2], Device::Cpu)?;
assert_eq!(x.nonzero()?.to_vec::<i64>()?, [0, 1, 1, 0]);
# Ok::<(), oflow::Error>(())
```

# Errors
In a dry run, whose tensors have no values.";

const UNIQUE: &str = "The distinct values, smallest first, as a tensor of one dim. NaN come last; no two are equal. A global result is B. \
    It has no gradient, and no kernel for GPUs.

# Errors
On a GPU; in a dry run.";

fn count_nonzero() -> Result<OpDef> {
    Ok(base(
        "count_nonzero",
        "How many elements over dims (none given: all) are not zero; NaN is not. The result is i64.",
    )?
    .dtype(DTypeRule::Fixed(vec![DType::I64]))
    .lowered_for(DTypeKind::Complex, by_truth)
    .get_sbp(|c| signatures(c, &c.dims("dims", c.shape(0)?.len())?, Some(ReduceOp::Sum), &[]))
    .grad(Grad::None)
    .samples(&["i64[3, 5]<2", "f32[4, 3, 2]; dims=[1]", "bool[4, 3]; dims=[0], keepdim=true", "f16[]"]))
}

/// The number of elements, which is the greatest length that a result can have.
fn elements(c: &InferCtx<'_>, i: usize) -> Result<usize> {
    Ok(c.input(i)?.len())
}

/// A split of dim 0 keeps row-major order: the parts of the ranks follow each other.
fn split_rows(c: &InferCtx<'_>, inputs: usize) -> Result<Vec<Signature>> {
    let split = vec![Sbp::Split(0); inputs];
    Ok(if c.shape(0)?.is_empty() { vec![] } else { vec![Signature::new(&split, &[Sbp::Split(0)])] })
}

fn same_dims(c: &InferCtx<'_>) -> Result<()> {
    let (x, mask) = (c.shape(0)?, c.shape(1)?);
    if x == mask {
        return Ok(());
    }
    Err(Error::shape(format!("the mask has shape {mask:?}, the tensor {x:?}"))
        .help("the function broadcasts; the op does not"))
}

fn nonzero() -> Result<OpDef> {
    Ok(OpDef::new("nonzero(x) -> indices")?
        .doc(NONZERO)
        .lowered_for(DTypeKind::Complex, by_truth)
        .length_by("count_nonzero", 0)
        .shape1(|c| Ok([elements(c, 0)?, c.shape(0)?.len()].into_iter().collect()))
        .dtype(DTypeRule::Fixed(vec![DType::I64]))
        .get_sbp(|c| split_rows(c, 1))
        .grad(Grad::None)
        .samples(&["i64[5, 3]<2", "f32[4]", "bool[3, 2, 2]", "i32[]<2", "bf16[3, 2]"]))
}

fn masked_select() -> Result<OpDef> {
    Ok(OpDef::new("masked_select(x: any, mask: bool) -> y")?
        .doc("The elements where the mask is true, in row-major order.")
        .length_by("count_nonzero", 1)
        .check(same_dims)
        .shape1(|c| Ok([elements(c, 0)?].into_iter().collect()))
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| split_rows(c, 2))
        .grad(Grad::rule_saving(&[1], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let mask = g.input(1)?;
                let dx = g.call("masked_spread", &[dy, mask], &[])?;
                g.set(0, dx)?;
            }
            Ok(())
        }))
        .samples(&["f32[5, 3] bool[5, 3]", "i64[7] bool[7]", "f16[2, 3, 2] bool[2, 3, 2]", "f64[] bool[]"]))
}

fn masked_spread() -> Result<OpDef> {
    let (b, p) = (Sbp::Broadcast, Sbp::PARTIAL_SUM);
    Ok(OpDef::new("masked_spread(values: any, mask: bool) -> y")?
        .doc("Gradient of masked_select: the values, one after the other, where the mask is true, zeros elsewhere.")
        .by_name_only()
        .check(|c| match c.shape(0)? {
            [_] => Ok(()),
            values => Err(Error::shape(format!("the values must have one dim, not {values:?}"))),
        })
        .shape1(|c| Ok(Dims::from_slice(c.shape(1)?)))
        .dtype(DTypeRule::Input(0))
        .get_sbp(move |c| {
            let mut s = match c.shape(1)?.is_empty() {
                true => vec![],
                false => vec![Signature::new(&[b, b], &[Sbp::Split(0)])],
            };
            if c.input(0)?.dtype != DType::Bool {
                s.push(Signature::new(&[p, b], &[p]));
            }
            Ok(s)
        })
        .grad(Grad::rule_saving(&[1], &[], |g| {
            let Some(v) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let mask = g.input(1)?;
                let d = g.call("masked_select", &[v, mask], &[])?;
                g.set(0, d)?;
            }
            Ok(())
        }))
        .samples(&["f32[6] bool[6]+", "f64[6] bool[3, 2]+", "i64[1] bool[]+"]))
}

fn unique() -> Result<OpDef> {
    Ok(OpDef::new("unique(x) -> y")?
        .doc(UNIQUE)
        .function("unique(Tensor x) -> Tensor")
        .traits(|t| t.cpu_only = true)
        .length_by_kernel()
        .shape1(|c| Ok([elements(c, 0)?].into_iter().collect()))
        .dtype(DTypeRule::Input(0))
        .grad(Grad::None)
        .samples(&["i64[4, 3]<5", "f32[7]", "i32[]", "bool[5]"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![count_nonzero(), nonzero(), masked_select(), masked_spread(), unique()]
}
