//! Signatures of elementwise ops, derived from the scalar expression: split every dim; P(sum) where the expression is
//! jointly linear; P(max) and P(min) where it is monotone (swapped where it decreases).

use super::{ReduceOp, Sbp, Signature, broadcast_dim};
use oflow_kernels::DType;
use oflow_kernels::expr::{BinaryOp, Expr, UnaryOp};

/// All signatures along one mesh axis of `expr` over inputs of these shapes and dtypes (all-B excepted).
///
/// P rows need the dtypes of the P inputs and of the output to be equal: a cast in between rounds, and then the reduction
/// of the results is not the result of the reduction. From a half to f32 or f64 nothing is rounded, and the sum is made in
/// the wider dtype: P(sum) of halves passes there, and gradients of low precision are added up in f32.
pub fn elementwise_signatures(expr: &Expr, inputs: &[(&[usize], DType)], out: (&[usize], DType)) -> Vec<Signature> {
    let n = inputs.len();
    let mut found = Vec::new();
    for d in 0..out.0.len() {
        found.push(Signature {
            inputs: inputs.iter().map(|i| broadcast_dim(i.0, out.0, d).map_or(Sbp::Broadcast, Sbp::Split)).collect(),
            outputs: [Sbp::Split(d)].into_iter().collect(),
            lowering: None,
        });
    }
    let mut partial = |subset: &[usize], of_inputs: ReduceOp, of_out: ReduceOp| {
        let mut s = Signature::broadcast(n, 1);
        subset.iter().for_each(|i| s.inputs[*i] = Sbp::Partial(of_inputs));
        s.outputs[0] = Sbp::Partial(of_out);
        found.push(s);
    };
    // Ops have few inputs; every non-empty subset, smaller masks first.
    let subsets: Vec<Vec<usize>> =
        (1u32..1 << n.min(6)).map(|m| (0..n).filter(|i| m >> i & 1 == 1).collect()).collect();
    let wide = matches!(out.1, DType::F32 | DType::F64);
    let same_dtype = |subset: &[usize]| subset.iter().all(|i| inputs[*i].1 == out.1);
    let exact = |subset: &[usize]| subset.iter().all(|i| inputs[*i].1 == out.1 || (inputs[*i].1.is_half() && wide));
    for subset in &subsets {
        if out.1 != DType::Bool && exact(subset) && expr.linear_in(subset) {
            partial(subset, ReduceOp::Sum, ReduceOp::Sum);
        }
    }
    for subset in &subsets {
        // Integer arithmetic wraps, and wrapping is not monotone; only expressions that pick one of their values are.
        if !same_dtype(subset) || !(out.1.is_float() || picks_a_value(expr)) {
            continue;
        }
        for op in [ReduceOp::Max, ReduceOp::Min] {
            if let Some(passes) = expr.partial_passes(subset, op) {
                partial(subset, op, passes);
            }
        }
    }
    found
}

/// True if the value is always one of the inputs, scalars or constants: no arithmetic.
fn picks_a_value(e: &Expr) -> bool {
    match e {
        Expr::Input(_) | Expr::Scalar(_) | Expr::Const(_) => true,
        Expr::Binary(BinaryOp::Max | BinaryOp::Min, a, b) => picks_a_value(a) && picks_a_value(b),
        Expr::Unary(UnaryOp::Relu, a) => picks_a_value(a),
        Expr::Select(_, a, b) => picks_a_value(a) && picks_a_value(b),
        _ => false,
    }
}
