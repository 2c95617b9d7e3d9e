//! CUDA source from an expression.

use super::{BinaryOp, Class, Expr, UnaryOp};
use crate::{DType, KernelError, Result};
use std::fmt::Write;

impl Expr {
    /// A CUDA kernel over contiguous arrays, complete without any header: `name(n, x0, x1, …, s0, s1, …, out)`, with a
    /// grid-stride loop. `n` is `unsigned long long`, the arrays are typed by the dtypes (halves as their 16 bits), the
    /// scalars have the type of the arithmetic: `float`, `double` or `long long` (see [`Class::of`]).
    ///
    /// # Errors
    /// Where the expression uses an input without a dtype or the output, or needs a float and all dtypes are integers.
    pub fn cuda_source(&self, name: &str, inputs: &[DType], out: DType) -> Result<String> {
        let class = Class::of(inputs, out);
        self.check_class(class, inputs.len())?;
        let real = match class {
            Class::F32 => "float",
            Class::F64 => "double",
            Class::I64 => "long long",
        };
        let mut src = String::from(HELPERS);
        let _ = write!(src, "extern \"C\" __global__ void {name}(unsigned long long n");
        for (i, d) in inputs.iter().enumerate() {
            let _ = write!(src, ", const {}* x{i}", storage(*d));
        }
        let scalars = self.scalars_used().last().map_or(0, |i| i + 1);
        for i in 0..scalars {
            let _ = write!(src, ", {real} s{i}");
        }
        let _ = writeln!(src, ", {}* out) {{", storage(out));
        src.push_str("    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;\n");
        src.push_str("    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; ");
        src.push_str("i < n; i += step) {\n");
        for (i, d) in inputs.iter().enumerate().filter(|(i, _)| self.uses_input(*i)) {
            let _ = writeln!(src, "        {real} v{i} = ({real}){};", load(*d, &format!("x{i}[i]")));
        }
        let value = render(self, class);
        let _ = writeln!(src, "        {real} r = ({real})({value});");
        let _ = writeln!(src, "        out[i] = {};", store(out));
        src.push_str("    }\n}\n");
        Ok(src)
    }

    /// An error unless the expression can be computed in `class` from `inputs` inputs.
    pub(crate) fn check_class(&self, class: Class, inputs: usize) -> Result<()> {
        if self.uses_output() {
            return Err(KernelError::new(format!("'{self}' uses the output; pass it as an input")));
        }
        if self.any(&|e| matches!(e, Expr::Input(i) if *i >= inputs)) {
            return Err(KernelError::new(format!("'{self}' uses an input beyond the {inputs} given")));
        }
        let fraction = |e: &Expr| match e {
            Expr::Unary(op, _) => op.needs_float(),
            Expr::Const(c) => c.fract() != 0.0 || !c.is_finite(),
            _ => false,
        };
        if class == Class::I64 && self.any(&fraction) {
            return Err(KernelError::new(format!("'{self}' needs a float, but all dtypes are integers")));
        }
        Ok(())
    }
}

fn storage(d: DType) -> &'static str {
    match d {
        DType::Bool | DType::U8 => "unsigned char",
        DType::I8 => "signed char",
        DType::I32 => "int",
        DType::I64 => "long long",
        DType::F16 | DType::BF16 => "unsigned short",
        DType::F32 => "float",
        DType::F64 => "double",
    }
}

fn load(d: DType, element: &str) -> String {
    match d {
        DType::F16 => format!("of_from_f16({element})"),
        DType::BF16 => format!("of_from_bf16({element})"),
        _ => element.to_string(),
    }
}

fn store(d: DType) -> String {
    match d {
        DType::Bool => "r != 0".into(),
        DType::F16 => "of_to_f16((float)r)".into(),
        DType::BF16 => "of_to_bf16((float)r)".into(),
        d => format!("({})r", storage(d)),
    }
}

fn constant(c: f64, class: Class) -> String {
    match class {
        _ if c.is_nan() => "__longlong_as_double(0x7ff8000000000000LL)".into(),
        _ if c.is_infinite() && c > 0.0 => "__longlong_as_double(0x7ff0000000000000LL)".into(),
        _ if c.is_infinite() => "__longlong_as_double(0xfff0000000000000LL)".into(),
        Class::I64 => format!("({}LL)", c as i64),
        Class::F32 => format!("({:?}f)", c as f32),
        Class::F64 => format!("({c:?})"),
    }
}

/// The expression in C. Functions of the helper block are overloaded for the three types.
fn render(e: &Expr, class: Class) -> String {
    let go = |e: &Expr| render(e, class);
    // Predicates are `int` in C; the cast keeps overloads unambiguous.
    let real = match class {
        Class::F32 => "(float)",
        Class::F64 => "(double)",
        Class::I64 => "(long long)",
    };
    match e {
        Expr::Input(i) => format!("v{i}"),
        Expr::Scalar(i) => format!("s{i}"),
        Expr::Output => "r".into(),
        Expr::Const(c) => format!("{real}{}", constant(*c, class)),
        Expr::Unary(op, a) => {
            let a = go(a);
            match op {
                UnaryOp::Neg => format!("(-{a})"),
                UnaryOp::Not => format!("{real}({a} == 0)"),
                op => format!("of_{}({a})", op.name()),
            }
        }
        Expr::Binary(op, a, b) => {
            let (a, b) = (go(a), go(b));
            match op {
                BinaryOp::Div if class == Class::I64 => format!("of_div({a}, {b})"),
                BinaryOp::And => format!("{real}({a} != 0 && {b} != 0)"),
                BinaryOp::Or => format!("{real}({a} != 0 || {b} != 0)"),
                BinaryOp::Xor => format!("{real}(({a} != 0) != ({b} != 0))"),
                op if op.is_predicate() => format!("{real}({a} {op} {b})"),
                op if op.precedence().is_some() => format!("({a} {op} {b})"),
                op => format!("of_{}({a}, {b})", op.name()),
            }
        }
        Expr::Select(c, a, b) => format!("({} != 0 ? {} : {})", go(c), go(a), go(b)),
    }
}

/// Device functions for the three classes of arithmetic. Halves are converted by PTX and bit operations, because the
/// headers that declare their types are not part of a run-time compiler.
const HELPERS: &str = r#"
#define OF_FN static __device__ __forceinline__
OF_FN float of_from_f16(unsigned short h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
OF_FN unsigned short of_to_f16(float f) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h; }
OF_FN float of_from_bf16(unsigned short h) { return __uint_as_float((unsigned int)h << 16); }
OF_FN unsigned short of_to_bf16(float f) {
    unsigned int u = __float_as_uint(f);
    if (f != f) return (unsigned short)((u >> 16) | 0x40u);
    return (unsigned short)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
#define OF_REAL(T, S) \
OF_FN T of_exp(T x) { return exp##S(x); } \
OF_FN T of_log(T x) { return log##S(x); } \
OF_FN T of_log1p(T x) { return log1p##S(x); } \
OF_FN T of_expm1(T x) { return expm1##S(x); } \
OF_FN T of_sqrt(T x) { return sqrt##S(x); } \
OF_FN T of_rsqrt(T x) { return (T)1 / sqrt##S(x); } \
OF_FN T of_reciprocal(T x) { return (T)1 / x; } \
OF_FN T of_sin(T x) { return sin##S(x); } \
OF_FN T of_cos(T x) { return cos##S(x); } \
OF_FN T of_tanh(T x) { return tanh##S(x); } \
OF_FN T of_sigmoid(T x) { return (T)1 / ((T)1 + exp##S(-x)); } \
OF_FN T of_erf(T x) { return erf##S(x); } \
OF_FN T of_abs(T x) { return fabs##S(x); } \
OF_FN T of_floor(T x) { return floor##S(x); } \
OF_FN T of_ceil(T x) { return ceil##S(x); } \
OF_FN T of_round(T x) { return rint##S(x); } \
OF_FN T of_trunc(T x) { return trunc##S(x); } \
OF_FN T of_isnan(T x) { return (T)(x != x); } \
OF_FN T of_isinf(T x) { return (T)(x == x && x - x != x - x); } \
OF_FN T of_pow(T a, T b) { return pow##S(a, b); } \
OF_FN T of_fmod(T a, T b) { return fmod##S(a, b); } \
OF_FN T of_remainder(T a, T b) { T r = fmod##S(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; } \
OF_FN T of_floordiv(T a, T b) { return floor##S(a / b); }
OF_REAL(float, f)
OF_REAL(double, )
#define OF_ALL(T) \
OF_FN T of_square(T x) { return x * x; } \
OF_FN T of_sign(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x; } \
OF_FN T of_max(T a, T b) { return a > b || a != a ? a : b; } \
OF_FN T of_min(T a, T b) { return a < b || a != a ? a : b; } \
OF_FN T of_relu(T x) { return of_max(x, (T)0); }
OF_ALL(float)
OF_ALL(double)
OF_ALL(long long)
OF_FN long long of_abs(long long x) { return x < 0 ? -x : x; }
OF_FN long long of_floor(long long x) { return x; }
OF_FN long long of_ceil(long long x) { return x; }
OF_FN long long of_round(long long x) { return x; }
OF_FN long long of_trunc(long long x) { return x; }
OF_FN long long of_isnan(long long) { return 0; }
OF_FN long long of_isinf(long long) { return 0; }
OF_FN long long of_div(long long a, long long b) { return b == 0 ? 0 : b == -1 ? (long long)(0ull - a) : a / b; }
OF_FN long long of_fmod(long long a, long long b) { return b == 0 || b == -1 ? 0 : a % b; }
OF_FN long long of_remainder(long long a, long long b) {
    long long r = of_fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
OF_FN long long of_floordiv(long long a, long long b) {
    return of_div(a, b) - (b != 0 && of_fmod(a, b) != 0 && (a < 0) != (b < 0));
}
OF_FN long long of_pow(long long a, long long b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    unsigned long long r = 1, x = (unsigned long long)a;
    for (; b != 0; b >>= 1, x *= x) if (b & 1) r *= x;
    return (long long)r;
}
"#;
