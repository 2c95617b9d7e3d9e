//! Built-in ops whose results must be equal bit for bit. All others are compared within rounding.

use super::Reference;
use crate::ops::Op;

/// Whether the results of a call must be exact, on whatever ranks and devices.
pub(super) fn exact(call: &Reference) -> bool {
    let half = || call.inputs.iter().flatten().any(|v| v.ty.dtype.is_half());
    let listed = |list: &[&str], op: &Op| list.contains(&op.name());
    let complex = || call.inputs.iter().flatten().any(|v| v.ty.dtype.is_complex());
    let rounds = (listed(NOT_HALF, call.op) && half()) || (call.op.name() == "abs" && complex());
    call.small && listed(EXACT, call.op) && !rounds
}

/// Ops whose results are exact for the harness's small numbers under every signature.
const EXACT: &[&str] = &[
    "copy",
    "neg",
    "abs",
    "sign",
    "floor",
    "ceil",
    "round",
    "relu",
    "add",
    "sub",
    "mul",
    "maximum",
    "minimum",
    "where",
    "masked_fill",
    "sum",
    "amax",
    "amin",
    "matmul",
    "matmul_rows",
    "linear",
    "embedding",
    "embedding_grad",
    "reshape",
    "permute",
    "expand",
    "slice",
    "slice_grad",
    "roll_along",
    "roll_windows",
    "concat",
    "tril",
    "triu",
    "cumsum",
    "full",
    "arange",
    "rand",
    "randn",
    "bernoulli",
    "randint",
    "one_hot",
    "nll_pick",
    "assign",
    "argmax",
    "argmin",
    "match_index",
    "clamp",
    "add_scalar",
    "sub_scalar",
    "rsub_scalar",
    "mul_scalar",
    "clamp_min",
    "clamp_max",
];
/// Ops whose sums of products exceed what half precision holds exactly.
const NOT_HALF: &[&str] = &["matmul", "matmul_rows", "linear", "mul", "sum", "cumsum", "mul_scalar"];
