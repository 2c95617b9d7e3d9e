//! CUDA source from an expression.

use super::{BinaryOp, Chain, Class, Expr};
use crate::{Builtin, DType, KernelError, Result};
use std::fmt::Write;

impl Expr {
    /// As [`Chain::cuda_source`], of one expression.
    ///
    /// # Errors
    /// Those of [`Chain::cuda_source`].
    pub fn cuda_source(&self, inputs: &[DType], out: DType, compute: DType) -> Result<String> {
        Chain::of(self.clone(), inputs.len()).cuda_source(inputs, out, compute)
    }
}

impl Chain {
    /// A CUDA program that computes the chain elementwise, over the headers `elementwise.cuh` and `pointwise.cuh` of
    /// `kernels/cuda`; [`crate::cuda::elementwise`] compiles and launches it. Inputs that the chain does not use are
    /// left out; the others keep their order. Operands are converted to the arithmetic of `compute`. A scalar comes as the bits of the arithmetic's type in 8 bytes, a
    /// complex one in 16. A program that divides integers defines `OF_REPORTS` (`divides_integers`).
    ///
    /// # Errors
    /// Where the chain uses an input without a dtype or the output, or needs a float and all dtypes are integers;
    /// where a dtype is registered.
    pub fn cuda_source(&self, inputs: &[DType], out: DType, compute: DType) -> Result<String> {
        let (out, class) = (out.cast()?, Class::of(compute.cast()?));
        self.check_class(class)?;
        let used: Vec<usize> = (0..inputs.len()).filter(|i| self.uses_input(*i)).collect();
        let scalars = self.scalars_used().last().map_or(0, |i| i + 1);
        let (body, result) = Body::of(self, class);
        let single = |at: usize| format!("__uint_as_float((u32)k.s[{at}])");
        let double = |at: usize| format!("__longlong_as_double((i64)k.s[{at}])");
        let scalar = |i: usize| match class {
            Class::F32 => single(i),
            Class::F64 => double(i),
            Class::I64 => format!("((i64)k.s[{i}])"),
            Class::C64 => format!("of_complex<f32>({}, {})", single(2 * i), single(2 * i + 1)),
            Class::C128 => format!("of_complex<f64>({}, {})", double(2 * i), double(2 * i + 1)),
        };
        let arithmetic = match class {
            Class::F32 => "f32",
            Class::F64 => "f64",
            Class::I64 => "i64",
            Class::C64 => "c64",
            Class::C128 => "c128",
        };
        let complex = class.is_complex();
        let (header, get, set, words) = match complex {
            true => ("complex.cuh", "of_take", "of_put", 2 * scalars),
            false => ("elementwise.cuh", "of_get", "of_set", scalars),
        };
        let mut src = format!("#include \"{header}\"\n");
        if self.links().iter().any(|l| l.expr.any(&is_special)) {
            src.push_str("#include \"special.cuh\"\n");
        }
        let _ = writeln!(src, "typedef {arithmetic} A;\ntypedef {} TO;", storage(out));
        for (at, i) in used.iter().enumerate() {
            let _ = writeln!(src, "typedef {} T{at};", storage(inputs[*i].cast()?));
        }
        let report = |parameters: [&str; 2]| parameters.map(String::from).into_iter().filter(|_| body.reports);
        let parameters: Vec<String> = (used.iter().map(|i| format!("A v{i}")))
            .chain((0..scalars).map(|i| format!("A s{i}")))
            .chain(report(["of_fault* fault", "u64 ticket"]))
            .collect();
        let _ = writeln!(src, "OF_FN A of_value({}) {{", parameters.join(", "));
        for (i, line) in body.lines.iter().enumerate() {
            let _ = writeln!(src, "    const A t{i} = {line};");
        }
        let _ = writeln!(src, "    return {result};\n}}");
        let each: Vec<String> = (0..used.len()).map(|at| format!("X({at})")).collect();
        let operands: Vec<String> = (0..used.len())
            .map(|at| format!("{get}<A>(X({at}))"))
            .chain((0..scalars).map(scalar))
            .chain(report(["k.fault", "k.ticket"]))
            .collect();
        let _ =
            writeln!(src, "#define OF_N {}\n#define OF_S {words}\n#define OF_EACH(X) {}", used.len(), each.join(" "));
        if body.reports {
            src.push_str("#define OF_REPORTS 1\n");
        }
        let _ = writeln!(src, "#define OF_COMPUTE(y, X) {set}(y, of_value({}))", operands.join(", "));
        src.push_str("#include \"pointwise.cuh\"\n");
        Ok(src)
    }

    /// Returns whether a kernel that computes this in `class` reports divisors that are 0 (integers have no quotient by 0).
    pub(crate) fn divides_integers(&self, class: Class) -> bool {
        Body::of(self, class).0.reports
    }
}

impl Expr {
    /// Returns whether a kernel that computes this in `class` reports divisors that are 0 (integers have no quotient by 0).
    pub fn divides_integers(&self, class: Class) -> bool {
        let mut body = Body { class, values: vec![], lines: vec![], reports: false };
        body.value(self, false);
        body.reports
    }

    /// Checks that the expression can be computed in `class` from `inputs` inputs.
    ///
    /// # Errors
    /// If it needs a float and the class is that of integers, or if it uses an input that is not given.
    pub fn check_class(&self, class: Class, inputs: usize) -> Result<()> {
        if self.uses_output() {
            return Err(KernelError::new(format!("'{self}' uses the output; pass it as an input")));
        }
        if self.any(&|e| matches!(e, Expr::Input(i) if *i >= inputs)) {
            return Err(KernelError::new(format!("'{self}' uses an input beyond the {inputs} given")));
        }
        let fraction = |e: &Expr| match e {
            Expr::Unary(op, _) => op.needs_float(),
            Expr::Binary(op, ..) => op.needs_float(),
            Expr::Const(c) => c.fract() != 0.0 || !c.is_finite(),
            _ => false,
        };
        if class == Class::I64 && self.any(&fraction) {
            return Err(KernelError::new(format!("'{self}' needs a float, but all dtypes are integers")));
        }
        let bits = |e: &Expr| match e {
            Expr::Unary(op, _) => op.needs_int(),
            Expr::Binary(op, ..) => op.needs_int(),
            _ => false,
        };
        let complex = |e: &Expr| match e {
            Expr::Unary(op, _) => !op.has_complex(),
            Expr::Binary(op, ..) => !op.has_complex(),
            _ => false,
        };
        if class.is_complex() && self.any(&complex) {
            return Err(KernelError::new(format!("'{self}' means nothing for complex numbers")));
        }
        if !class.is_complex() && self.makes_complex() {
            return Err(KernelError::new(format!("'{self}' makes complex numbers, but all dtypes are real")));
        }
        if class != Class::I64 && self.any(&bits) {
            return Err(KernelError::new(format!("'{self}' works on the bits of integers, but a dtype is a float")));
        }
        Ok(())
    }
}

/// Whether the function stands in `special.cuh`.
fn is_special(e: &Expr) -> bool {
    match e {
        Expr::Unary(op, _) => op.wide().is_some(),
        Expr::Binary(op, ..) => op.wide().is_some(),
        _ => false,
    }
}

/// The name of the type in memory.
pub(crate) fn storage(d: Builtin) -> &'static str {
    if d == Builtin::Bool { "b8" } else { d.name() }
}

/// Lines in single-assignment form; equal ones are shared, so that text does not grow with repetition.
struct Body {
    class: Class,
    /// Names of the values that stand at inputs.
    values: Vec<String>,
    lines: Vec<String>,
    /// Whether a line reports a divisor that is 0.
    reports: bool,
}

impl Body {
    /// The lines of a chain, and the name of its result.
    fn of(chain: &Chain, class: Class) -> (Body, String) {
        let values = (0..chain.inputs()).map(|i| format!("v{i}")).collect();
        let mut body = Body { class, values, lines: vec![], reports: false };
        let (mut result, last) = (String::new(), chain.links().len() - 1);
        for (k, link) in chain.links().iter().enumerate() {
            result = body.value(&link.expr, false);
            // Each value is one that an op has stored: products are not contracted with what other functions add.
            if let Some(d) = link.dtype.and_then(DType::builtin) {
                result = body.line(format!("of_rounded<{}>({result})", storage(d)));
            } else if k < last {
                result = body.line(format!("of_apart({result})"));
            }
            body.values.push(result.clone());
        }
        (body, result)
    }

    fn line(&mut self, text: String) -> String {
        let known = self.lines.iter().position(|l| *l == text);
        let at = known.unwrap_or_else(|| {
            self.lines.push(text);
            self.lines.len() - 1
        });
        format!("t{at}")
    }

    /// The name of the value, or a literal. Both arms of a selection are computed: nothing in an expression has effects, and
    /// threads of a warp stay together. `guarded` as [`Expr::checks_divisor`] has it.
    fn value(&mut self, e: &Expr, guarded: bool) -> String {
        match e {
            Expr::Input(i) => self.values.get(*i).cloned().unwrap_or_else(|| format!("v{i}")),
            Expr::Scalar(i) => format!("s{i}"),
            // Refused by `check_class`.
            Expr::Output => "out".into(),
            Expr::Const(c) => self.constant(*c),
            Expr::Unary(op, a) => {
                let a = self.value(a, guarded);
                self.line(format!("of_{}({a})", op.name()))
            }
            Expr::Binary(op, a, b) => {
                let checks = Expr::checks_divisor(self.class, *op, b, guarded);
                let (a, mut b) = (self.value(a, guarded), self.value(b, guarded));
                if checks {
                    self.reports = true;
                    b = self.line(format!("of_divisor({b}, fault, ticket)"));
                }
                let complex = self.class.is_complex();
                self.line(match op {
                    BinaryOp::And if complex => format!("of_truth<A>(of_nonzero({a}) && of_nonzero({b}))"),
                    BinaryOp::Or if complex => format!("of_truth<A>(of_nonzero({a}) || of_nonzero({b}))"),
                    BinaryOp::Xor if complex => format!("of_truth<A>(of_nonzero({a}) != of_nonzero({b}))"),
                    BinaryOp::Eq if complex => format!("of_truth<A>(of_equal({a}, {b}))"),
                    BinaryOp::Ne if complex => format!("of_truth<A>(!of_equal({a}, {b}))"),
                    op if op.is_predicate() && complex => format!("of_truth<A>({a}.re {op} {b}.re)"),
                    BinaryOp::Add => format!("of_add({a}, {b})"),
                    BinaryOp::Sub => format!("of_sub({a}, {b})"),
                    BinaryOp::Mul => format!("of_mul({a}, {b})"),
                    BinaryOp::Div => format!("of_div({a}, {b})"),
                    BinaryOp::And => format!("(A)({a} != 0 && {b} != 0)"),
                    BinaryOp::Or => format!("(A)({a} != 0 || {b} != 0)"),
                    BinaryOp::Xor => format!("(A)(({a} != 0) != ({b} != 0))"),
                    op if op.is_predicate() => format!("(A)({a} {op} {b})"),
                    op => format!("of_{}({a}, {b})", op.name()),
                })
            }
            Expr::Select(c, a, b) => {
                let (c, a, b) = (self.value(c, guarded), self.value(a, true), self.value(b, true));
                self.line(format!("of_select({c}, {a}, {b})"))
            }
        }
    }

    fn constant(&self, c: f64) -> String {
        let not_finite = |nan: bool, positive: bool| match (nan, positive) {
            (true, _) => "(A)OF_NAN".to_string(),
            (_, true) => "(A)OF_INF".to_string(),
            _ => "(A)-OF_INF".to_string(),
        };
        match self.class {
            Class::I64 => format!("(A){}LL", c as i64),
            Class::C64 | Class::C128 => {
                let part = if self.class == Class::C64 { Class::F32 } else { Class::F64 };
                let real = Body { class: part, values: vec![], lines: vec![], reports: false }.constant(c);
                format!(
                    "of_real(({}){})",
                    if part == Class::F32 { "f32" } else { "f64" },
                    real.trim_start_matches("(A)")
                )
            }
            Class::F32 if (c as f32).is_finite() => format!("({:?}f)", c as f32),
            Class::F64 if c.is_finite() => format!("({c:?})"),
            _ => not_finite(c.is_nan(), c > 0.0),
        }
    }
}
