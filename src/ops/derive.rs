//! Gradient ops derived from scalar expressions: `d out / d x * dy` as one elementwise op of its own, which again has a
//! derivative, and so on.

use super::def::OpDef;
use super::registry::{Op, register_derived};
use crate::error::{Error, Result};
use oflow_kernels::expr::{BinaryOp, Expr};
use std::sync::Arc;

/// What a derived gradient op takes besides the out-gradient, which is its input 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedArgs {
    /// Forward inputs it reads, in order.
    pub inputs: Vec<usize>,
    /// Whether the forward output comes last.
    pub output: bool,
}

/// The derivative of an elementwise op with respect to `input`, as an expression over the op's inputs, output, scalars.
fn derivative(op: &OpDef, input: usize) -> Result<Expr> {
    if let Some((_, e)) = op.derivatives.iter().find(|(i, _)| *i == input) {
        return Ok(e.clone());
    }
    let expr = op.expr.as_ref().ok_or_else(|| Error::autograd(format!("{} has no expression", op.sig.name)))?;
    Ok(expr.derivative(input))
}

/// What the derived gradient op of `input` reads.
pub fn derived_args(op: &Op, input: usize) -> Result<&DerivedArgs> {
    let slot = op.derived_args.get(input).ok_or_else(|| no_input(op, input))?;
    if let Some(known) = slot.get() {
        return Ok(known);
    }
    let d = derivative(op, input)?;
    let inputs = (0..op.sig.inputs.len()).filter(|i| d.uses_input(*i)).collect();
    Ok(slot.get_or_init(|| DerivedArgs { inputs, output: d.uses_output() }))
}

fn no_input(op: &Op, input: usize) -> Error {
    Error::autograd(format!("{} has no input {input}", op.name()))
}

/// The gradient op of `input`: `name.grad.input(dy, inputs it reads…, out if it reads it)`, registered at first use.
pub fn derived_grad_op(op: &'static Op, input: usize) -> Result<&'static Op> {
    let slot = op.derived.get(input).ok_or_else(|| no_input(op, input))?;
    if let Some(found) = slot.get() {
        return Ok(found);
    }
    let d = derivative(op, input)?;
    let args = derived_args(op, input)?;
    // dy is input 0 of the new op; the others follow in order, the output last.
    let position = |i: usize| args.inputs.iter().position(|x| *x == i).map_or(Expr::Const(0.0), |p| Expr::Input(p + 1));
    let inputs: Vec<Expr> = (0..op.sig.inputs.len()).map(position).collect();
    let output = Expr::Input(args.inputs.len() + 1);
    let d = d.substitute(&inputs, &[], Some(&output));
    // Zeros, whatever dy is: 0 times infinity would be NaN.
    let expr = match d {
        Expr::Const(0.0) => d,
        d => Expr::binary(BinaryOp::Mul, Expr::Input(0), d).simplify(),
    };
    let mut names = vec!["dy".to_string()];
    names.extend(args.inputs.iter().map(|i| op.sig.inputs[*i].name.to_string()));
    if args.output {
        names.push("out".to_string());
    }
    let runtime: Vec<String> =
        op.sig.runtime.iter().map(|a| format!("{}: runtime {}", a.name, a.kind.name())).collect();
    let text = format!(
        "{}.grad.{}({}; {}) -> dx",
        op.sig.name,
        op.sig.inputs[input].name,
        names.join(", "),
        runtime.join(", ")
    );
    let mut def = OpDef::new(&text)?
        .domain(&op.domain)
        .doc("Derived gradient.")
        .dtype(super::DTypeRule::Input(0))
        .traits(|t| t.hidden = true);
    def.set_expr(Arc::new(expr));
    let found = register_derived(def)?;
    Ok(slot.get_or_init(|| found))
}
