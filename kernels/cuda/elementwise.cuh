// The functions that scalar expressions apply (kernels/src/expr/functions.rs), overloaded for the three types of arithmetic.
#pragma once
#include "prelude.cuh"

// A number as an element of `E` has it.
template <typename E, typename A> OF_FN A of_rounded(A x) {
    E stored;
    of_set(stored, x);
    return of_get<A>(stored);
}

// The number itself, of which a compiler does not know that it is a product: what another function adds is not contracted with it.
OF_FN i64 of_apart(i64 x) { return x; }
#ifdef OF_EMULATOR
OF_FN f32 of_apart(f32 x) { return x; }
OF_FN f64 of_apart(f64 x) { return x; }
#else
OF_FN f32 of_apart(f32 x) {
    asm("" : "+f"(x));
    return x;
}
OF_FN f64 of_apart(f64 x) {
    asm("" : "+d"(x));
    return x;
}
#endif

#define OF_REAL(T, S)                                                                                                  \
    OF_FN T of_exp(T x) { return exp##S(x); }                                                                          \
    OF_FN T of_log(T x) { return log##S(x); }                                                                          \
    OF_FN T of_log1p(T x) { return log1p##S(x); }                                                                      \
    OF_FN T of_expm1(T x) { return expm1##S(x); }                                                                      \
    OF_FN T of_sqrt(T x) { return sqrt##S(x); }                                                                        \
    OF_FN T of_rsqrt(T x) { return (T)1 / sqrt##S(x); }                                                                \
    OF_FN T of_reciprocal(T x) { return (T)1 / x; }                                                                    \
    OF_FN T of_sin(T x) { return sin##S(x); }                                                                          \
    OF_FN T of_cos(T x) { return cos##S(x); }                                                                          \
    OF_FN T of_tanh(T x) { return tanh##S(x); }                                                                        \
    OF_FN T of_sigmoid(T x) { return (T)1 / ((T)1 + exp##S(-x)); }                                                     \
    OF_FN T of_erf(T x) { return erf##S(x); }                                                                          \
    OF_FN T of_erfc(T x) { return erfc##S(x); }                                                                        \
    OF_FN T of_normcdf(T x) { return (T)0.5 + (T)0.5 * erf##S(x * (T)0.70710678118654752440); }                        \
    OF_FN T of_exp2(T x) { return exp2##S(x); }                                                                        \
    OF_FN T of_log2(T x) { return log2##S(x); }                                                                        \
    OF_FN T of_log10(T x) { return log10##S(x); }                                                                      \
    OF_FN T of_tan(T x) { return tan##S(x); }                                                                          \
    OF_FN T of_asin(T x) { return asin##S(x); }                                                                        \
    OF_FN T of_acos(T x) { return acos##S(x); }                                                                        \
    OF_FN T of_atan(T x) { return atan##S(x); }                                                                        \
    OF_FN T of_sinh(T x) { return sinh##S(x); }                                                                        \
    OF_FN T of_cosh(T x) { return cosh##S(x); }                                                                        \
    OF_FN T of_asinh(T x) { return asinh##S(x); }                                                                      \
    OF_FN T of_acosh(T x) { return acosh##S(x); }                                                                      \
    OF_FN T of_atanh(T x) { return atanh##S(x); }                                                                      \
    OF_FN T of_abs(T x) { return fabs##S(x); }                                                                         \
    OF_FN T of_floor(T x) { return floor##S(x); }                                                                      \
    OF_FN T of_ceil(T x) { return ceil##S(x); }                                                                        \
    OF_FN T of_round(T x) { return rint##S(x); }                                                                       \
    OF_FN T of_trunc(T x) { return trunc##S(x); }                                                                      \
    OF_FN T of_isnan(T x) { return (T)(x != x); }                                                                      \
    OF_FN T of_isinf(T x) { return (T)(x == x && x - x != x - x); }                                                    \
    OF_FN T of_div(T a, T b) { return a / b; }                                                                         \
    OF_FN T of_pow(T a, T b) { return pow##S(a, b); }                                                                  \
    OF_FN T of_atan2(T a, T b) { return atan2##S(a, b); }                                                              \
    OF_FN T of_hypot(T a, T b) { return hypot##S(a, b); }                                                              \
    OF_FN T of_nextafter(T a, T b) { return nextafter##S(a, b); }                                                      \
    OF_FN T of_logaddexp(T a, T b) {                                                                                   \
        T big = a > b ? a : b;                                                                                         \
        return a == b ? a + (T)0.6931471805599453 : big + log1p##S(exp##S(-fabs##S(a - b)));                           \
    }                                                                                                                  \
    OF_FN T of_fmod(T a, T b) { return fmod##S(a, b); }                                                                \
    OF_FN T of_remainder(T a, T b) {                                                                                   \
        T r = fmod##S(a, b);                                                                                           \
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;                                                               \
    }                                                                                                                  \
    OF_FN T of_floordiv(T a, T b) {                                                                                    \
        T r = fmod##S(a, b), q = (a - r) / b;                                                                          \
        if (r != 0 && (r < 0) != (b < 0)) q -= (T)1;                                                                   \
        T down = floor##S(q);                                                                                          \
        if (q - down > (T)0.5) down += (T)1;                                                                           \
        return b == 0 ? a / b : q != 0 ? down : copysign##S((T)0, a / b);                                              \
    }                                                                                                                  \
    OF_FN T of_neg(T x) { return -x; }                                                                                 \
    OF_FN T of_add(T a, T b) { return a + b; }                                                                         \
    OF_FN T of_sub(T a, T b) { return a - b; }                                                                         \
    OF_FN T of_mul(T a, T b) { return a * b; }                                                                         \
    OF_FN T of_square(T x) { return x * x; }
OF_REAL(f32, f)
OF_REAL(f64, )

#define OF_ALL(T)                                                                                                      \
    OF_FN T of_sign(T x) { return (T)(x > 0) - (T)(x < 0); }                                                            \
    OF_FN T of_max(T a, T b) { return a > b || a != a ? a : b; }                                                       \
    OF_FN T of_min(T a, T b) { return a < b || a != a ? a : b; }                                                       \
    OF_FN T of_relu(T x) { return of_max(x, (T)0); }                                                                   \
    OF_FN T of_not(T x) { return (T)(x == 0); }                                                                        \
    OF_FN T of_select(T c, T a, T b) { return c != 0 ? a : b; }                                                        \
    OF_FN T of_conj(T x) { return x; }                                                                                 \
    OF_FN T of_re(T x) { return x; }                                                                                   \
    OF_FN T of_im(T) { return (T)0; }
OF_ALL(f32)
OF_ALL(f64)
OF_ALL(i64)

// Integers wrap; overflow of signed ones is not defined in C++, so they are calculated with as unsigned ones.
OF_FN i64 of_neg(i64 x) { return (i64)(0ull - (u64)x); }
OF_FN i64 of_add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
OF_FN i64 of_sub(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
OF_FN i64 of_mul(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
OF_FN i64 of_square(i64 x) { return of_mul(x, x); }
OF_FN i64 of_abs(i64 x) { return x < 0 ? of_neg(x) : x; }
OF_FN i64 of_floor(i64 x) { return x; }
OF_FN i64 of_ceil(i64 x) { return x; }
OF_FN i64 of_round(i64 x) { return x; }
OF_FN i64 of_trunc(i64 x) { return x; }
OF_FN i64 of_isnan(i64) { return 0; }
OF_FN i64 of_isinf(i64) { return 0; }
// A divisor; 0 is reported, by a range in which nothing lies.
OF_FN i64 of_divisor(i64 b, of_fault* fault, u64 ticket) {
    if (b == 0) of_report(fault, ticket, 0, 1, 0);
    return b;
}
OF_FN i64 of_div(i64 a, i64 b) { return b == 0 ? 0 : b == -1 ? of_neg(a) : a / b; }
OF_FN i64 of_fmod(i64 a, i64 b) { return b == 0 || b == -1 ? 0 : a % b; }
OF_FN i64 of_remainder(i64 a, i64 b) {
    i64 r = of_fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
OF_FN i64 of_gcd(i64 a, i64 b) {
    while (b != 0) {
        const i64 rest = b == -1 ? 0 : a % b;
        a = b, b = rest;
    }
    return of_abs(a);
}
OF_FN i64 of_lcm(i64 a, i64 b) { return of_abs(of_mul(of_div(a, of_gcd(a, b)), b)); }
OF_FN i64 of_bitnot(i64 x) { return ~x; }
OF_FN i64 of_bitand(i64 a, i64 b) { return a & b; }
OF_FN i64 of_bitor(i64 a, i64 b) { return a | b; }
OF_FN i64 of_bitxor(i64 a, i64 b) { return a ^ b; }
OF_FN i64 of_shl(i64 a, i64 b) { return b < 0 || b > 63 ? 0 : (i64)((u64)a << b); }
OF_FN i64 of_shr(i64 a, i64 b) { return a >> (b < 0 || b > 63 ? 63 : b); }
OF_FN i64 of_floordiv(i64 a, i64 b) { return of_sub(of_div(a, b), of_fmod(a, b) != 0 && (a < 0) != (b < 0)); }
OF_FN i64 of_pow(i64 a, i64 b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    u64 r = 1, x = (u64)a;
    for (; b != 0; b >>= 1, x *= x)
        if (b & 1) r *= x;
    return (i64)r;
}
#undef OF_REAL
#undef OF_ALL
