//! Signatures of elementwise ops, derived from the scalar expression: split every dim; P(sum) where the expression is
//! jointly linear; P(max) and P(min) where it is monotone (swapped where it decreases).

use super::{ReduceOp, Sbp, Signature, broadcast_dim};
use oflow_kernels::DType;
use oflow_kernels::expr::{BinaryOp, Expr, UnaryOp};

/// The signatures that split a dim of the output, of any elementwise function.
pub fn elementwise_splits(inputs: &[(&[usize], DType)], out: &[usize]) -> Vec<Signature> {
    let split = |d: usize| Signature {
        inputs: inputs.iter().map(|i| broadcast_dim(i.0, out, d).map_or(Sbp::Broadcast, Sbp::Split)).collect(),
        outputs: [Sbp::Split(d)].into_iter().collect(),
        lowering: None,
    };
    (0..out.len()).map(split).collect()
}

/// All signatures along one mesh axis of `expr` over inputs of these shapes and dtypes (all-B excepted).
///
/// P rows need the dtypes of the P inputs and of the output to be equal, or the input's numbers to be numbers of the output
/// (`widens`). Another cast in between rounds or wraps, and then the reduction of the results is not the result of the
/// reduction. A sum is made in the wider dtype: gradients of low precision are added up in f32.
pub fn elementwise_signatures(expr: &Expr, inputs: &[(&[usize], DType)], out: (&[usize], DType)) -> Vec<Signature> {
    let n = inputs.len();
    let mut found = elementwise_splits(inputs, out.0);
    let mut partial = |subset: &[usize], of_inputs: ReduceOp, of_out: ReduceOp| {
        let mut s = Signature::broadcast(n, 1);
        subset.iter().for_each(|i| s.inputs[*i] = Sbp::Partial(of_inputs));
        s.outputs[0] = Sbp::Partial(of_out);
        found.push(s);
    };
    // Ops have few inputs; every non-empty subset, smaller masks first.
    let subsets: Vec<Vec<usize>> =
        (1u32..1 << n.min(6)).map(|m| (0..n).filter(|i| m >> i & 1 == 1).collect()).collect();
    let exact = |subset: &[usize]| subset.iter().all(|i| widens(inputs[*i].1, out.1));
    // The quotient of integers is cut off.
    let cuts = |e: &Expr| matches!(e, Expr::Binary(BinaryOp::Div, ..) | Expr::Unary(UnaryOp::Reciprocal, _));
    let linear = out.1 != DType::Bool && (out.1.has_gradients() || !expr.any(&cuts));
    for subset in &subsets {
        if linear && exact(subset) && expr.linear_in(subset) {
            partial(subset, ReduceOp::Sum, ReduceOp::Sum);
        }
    }
    for subset in &subsets {
        // Integer arithmetic wraps, and wrapping is not monotone; only expressions without arithmetic are.
        if !exact(subset) || !(out.1.is_float() || never_wraps(expr)) {
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

/// Whether every number of `from` is one of `to`: a wider float, complex numbers of it, or the part of complex numbers that is asked for.
fn widens(from: DType, to: DType) -> bool {
    let (from, to) = (from.part(), to.part());
    from == to || (from.is_half() && matches!(to, DType::F32 | DType::F64)) || (from, to) == (DType::F32, DType::F64)
}

/// Whether no integer is beyond its dtype on the way: the value is one of the inputs, scalars and constants, or a function of one
/// that stays in bounds.
fn never_wraps(e: &Expr) -> bool {
    use UnaryOp::{BitNot, Ceil, Conj, Floor, Re, Relu, Round, Sign, Trunc};
    match e {
        Expr::Input(_) | Expr::Scalar(_) | Expr::Const(_) => true,
        // 0 or 1; which of both is for monotony to say.
        Expr::Binary(op, ..) if op.is_predicate() => true,
        Expr::Binary(BinaryOp::Max | BinaryOp::Min, a, b) => never_wraps(a) && never_wraps(b),
        Expr::Unary(Relu | Sign | BitNot | Conj | Re | Floor | Ceil | Round | Trunc, a) => never_wraps(a),
        Expr::Select(_, a, b) => never_wraps(a) && never_wraps(b),
        _ => false,
    }
}
