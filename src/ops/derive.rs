//! Gradient ops derived from scalar expressions: `d out / d x * dy` as one elementwise op of its own, which again has a
//! derivative, and so on.

use super::def::OpDef;
use super::registry::{Op, lookup, register_derived};
use crate::error::{Error, Result};
use oflow_kernels::expr::{BinaryOp, Expr, UnaryOp, Wirtinger};
use oflow_kernels::{DType, Scalar};
use std::sync::{Arc, OnceLock};

/// Inputs of a derived gradient op besides the out-gradient, which is its input 0.
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
    Ok(expression(op)?.derivative(input))
}

/// The derivatives of complex numbers.
fn wirtinger(op: &OpDef, input: usize) -> Result<Wirtinger> {
    let expr = expression(op)?;
    let given = op.derivatives.iter().find(|(i, _)| *i == input);
    Ok(match given.filter(|_| expr.is_holomorphic()) {
        Some((_, e)) => Wirtinger { by_input: e.clone(), by_conjugate: Expr::Const(0.0) },
        None => expr.wirtinger(input),
    })
}

fn expression(op: &OpDef) -> Result<&Expr> {
    op.expr.as_deref().ok_or_else(|| Error::autograd(format!("{} has no expression", op.sig.name)))
}

/// Numbers that are computed with: real numbers have another gradient op than complex ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// All inputs and numbers of the call are real, and so is its result.
    Real,
    /// One is complex.
    Complex,
}

impl Numbers {
    /// Kind of the numbers of a call on inputs of these dtypes.
    #[inline]
    pub fn of(op: &OpDef, mut dtypes: impl Iterator<Item = DType>, runtime: &[Scalar]) -> Numbers {
        let given = |s: &Scalar| matches!(s, Scalar::Complex(..));
        match op.traits.makes_complex || dtypes.any(|d| d.is_complex()) || runtime.iter().any(given) {
            true => Numbers::Complex,
            false => Numbers::Real,
        }
    }
}

/// The gradient ops that were derived for one input, each at its first use.
#[derive(Default)]
pub(crate) struct Derived {
    ops: [OnceLock<&'static Op>; 2],
    /// Inputs and outputs that the gradient ops read; asked at each call that is recorded.
    args: [OnceLock<DerivedArgs>; 2],
}

impl Derived {
    /// The gradient ops derived so far.
    pub(super) fn ops(&self) -> impl Iterator<Item = &'static Op> {
        self.ops.iter().filter_map(|op| op.get().copied())
    }
}

/// Inputs that the derived gradient op of `input` reads.
pub fn derived_args(op: &Op, input: usize, numbers: Numbers) -> Result<&DerivedArgs> {
    let slot = &op.derived.get(input).ok_or_else(|| no_input(op, input))?.args[numbers as usize];
    if let Some(known) = slot.get() {
        return Ok(known);
    }
    let all = match numbers {
        Numbers::Real => vec![derivative(op, input)?],
        Numbers::Complex => {
            let d = wirtinger(op, input)?;
            vec![d.by_input, d.by_conjugate]
        }
    };
    let inputs = (0..op.sig.inputs.len()).filter(|i| all.iter().any(|d| d.uses_input(*i))).collect();
    Ok(slot.get_or_init(|| DerivedArgs { inputs, output: all.iter().any(Expr::uses_output) }))
}

/// Orders of derivatives that a name may have: expressions grow with each.
const HIGHEST: usize = 4;

/// The op of that name as programs write it, also a gradient op that no call of this process has derived yet; none where there is no such op.
pub(crate) fn lookup_derived(name: &str) -> Result<Option<&'static Op>> {
    derived_at(name, HIGHEST)
}

fn derived_at(name: &str, orders: usize) -> Result<Option<&'static Op>> {
    if let Some(op) = lookup(name)? {
        return Ok(Some(op));
    }
    let at = |mark: &str| name.rfind(mark).map(|at| (&name[..at], &name[at + mark.len()..]));
    let found = [(at(".grad."), Numbers::Real), (at(".cgrad."), Numbers::Complex)];
    // The mark that stands last in the name is that of this derivative.
    let last = found.into_iter().filter_map(|(f, n)| f.map(|f| (f, n))).max_by_key(|((parent, _), _)| parent.len());
    let (Some(((parent, input), numbers)), Some(lower)) = (last, orders.checked_sub(1)) else { return Ok(None) };
    let Some(op) = derived_at(parent, lower)? else { return Ok(None) };
    match op.sig.inputs.iter().position(|i| i.name == input) {
        Some(i) if op.expr.is_some() => derived_grad_op(op, i, numbers).map(Some),
        _ => Ok(None),
    }
}

fn no_input(op: &Op, input: usize) -> Error {
    Error::autograd(format!("{} has no input {input}", op.name()))
}

/// The gradient op of `input`: `name.grad.input(dy, inputs it reads…, out if it reads it)`, registered at first use. That of complex
/// numbers is `name.cgrad.input`: with the derivatives d by the input and c by its conjugate, the gradient is
/// `dy conj(d) + conj(dy) c`. It is PyTorch's: the derivatives of a real loss by both parts of the input, as one complex number.
pub fn derived_grad_op(op: &'static Op, input: usize, numbers: Numbers) -> Result<&'static Op> {
    let slot = &op.derived.get(input).ok_or_else(|| no_input(op, input))?.ops[numbers as usize];
    if let Some(found) = slot.get() {
        return Ok(found);
    }
    let args = derived_args(op, input, numbers)?;
    // dy is input 0 of the new op; the others follow in order, the output last.
    let position = |i: usize| args.inputs.iter().position(|x| *x == i).map_or(Expr::Const(0.0), |p| Expr::Input(p + 1));
    let inputs: Vec<Expr> = (0..op.sig.inputs.len()).map(position).collect();
    let output = Expr::Input(args.inputs.len() + 1);
    let placed = |d: Expr| d.substitute(&inputs, &[], Some(&output));
    // Zeros, whatever dy is: 0 times infinity would be NaN.
    let times = |dy: Expr, d: Expr| match d {
        Expr::Const(0.0) => d,
        d => Expr::binary(BinaryOp::Mul, dy, d).simplify(),
    };
    let dy = Expr::Input(0);
    let conj = |e: Expr| Expr::unary(UnaryOp::Conj, e);
    let (expr, kind, class) = match numbers {
        Numbers::Real => (times(dy, placed(derivative(op, input)?)), "grad", ""),
        Numbers::Complex => {
            let d = wirtinger(op, input)?;
            let by_input = match placed(d.by_input) {
                d @ Expr::Const(_) => d,
                d => conj(d),
            };
            let by_conjugate = times(conj(dy.clone()), placed(d.by_conjugate));
            (Expr::binary(BinaryOp::Add, times(dy, by_input), by_conjugate).simplify(), "cgrad", ": number")
        }
    };
    let mut names = vec!["dy".to_string()];
    names.extend(args.inputs.iter().map(|i| op.sig.inputs[*i].name.to_string()));
    if args.output {
        names.push("out".to_string());
    }
    let names: Vec<String> = names.iter().map(|n| format!("{n}{class}")).collect();
    let runtime: Vec<String> =
        op.sig.runtime.iter().map(|a| format!("{}: runtime {}", a.name, a.kind.name())).collect();
    let text = format!(
        "{}.{kind}.{}({}; {}) -> dx",
        op.sig.name,
        op.sig.inputs[input].name,
        names.join(", "),
        runtime.join(", ")
    );
    let dtype = match numbers {
        Numbers::Real => super::DTypeRule::Input(0),
        // A factor i is complex, whatever it is multiplied with.
        Numbers::Complex if expr.makes_complex() => {
            super::DTypeRule::Fn(Arc::new(|c| Ok([super::deduce::promote(c)?.complex()].into_iter().collect())))
        }
        Numbers::Complex => super::DTypeRule::Promote,
    };
    let mut def =
        OpDef::new(&text)?.domain(&op.domain).doc("Derived gradient.").dtype(dtype).traits(|t| t.hidden = true);
    def.set_expr(Arc::new(expr));
    let found = register_derived(def)?;
    Ok(slot.get_or_init(|| found))
}
