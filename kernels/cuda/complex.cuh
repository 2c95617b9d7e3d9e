// Complex numbers and the functions that scalar expressions apply to them: as kernels/src/cmath.rs, where the formulas are told.
#pragma once
#include "elementwise.cuh"

#define OF_C template <typename R> OF_FN of_cplx<R>
#define OF_Z of_cplx<R>

OF_C of_complex(R re, R im) {
    OF_Z z;
    z.re = re;
    z.im = im;
    return z;
}
OF_C of_real(R re) { return of_complex<R>(re, (R)0); }
OF_C of_half(OF_Z z) { return of_complex<R>(z.re * (R)0.5, z.im * (R)0.5); }
template <typename A> OF_FN A of_truth(bool x) {
    A z;
    z.re = x ? 1 : 0;
    z.im = 0;
    return z;
}

// An element as a number of the arithmetic A, and back: `of_take<c64>(x)`, `of_put(y, z)`.
template <typename A, typename T> struct of_taker {
    static __device__ __forceinline__ A of(T x) {
        A z;
        z.re = of_get<decltype(A::re)>(x);
        z.im = 0;
        return z;
    }
};
template <typename A, typename R> struct of_taker<A, of_cplx<R>> {
    static __device__ __forceinline__ A of(OF_Z x) {
        A z;
        z.re = (decltype(A::re))x.re;
        z.im = (decltype(A::im))x.im;
        return z;
    }
};
template <typename A, typename T> OF_FN A of_take(T x) { return of_taker<A, T>::of(x); }
template <typename T, typename R> struct of_putter {
    static __device__ __forceinline__ void of(T& to, OF_Z z) { of_set(to, z.re); }
};
template <typename R> struct of_putter<b8, R> {
    static __device__ __forceinline__ void of(b8& to, OF_Z z) { to.bits = z.re != 0 || z.im != 0; }
};
template <typename P, typename R> struct of_putter<of_cplx<P>, R> {
    static __device__ __forceinline__ void of(of_cplx<P>& to, OF_Z z) {
        to.re = (P)z.re;
        to.im = (P)z.im;
    }
};
template <typename T, typename R> OF_FN void of_put(T& to, OF_Z z) { of_putter<T, R>::of(to, z); }

OF_FN f32 of_copysign(f32 x, f32 sign) { return copysignf(x, sign); }
OF_FN f64 of_copysign(f64 x, f64 sign) { return copysign(x, sign); }
OF_FN bool of_infinite(f32 x) { return x == OF_INF || x == -OF_INF; }
OF_FN bool of_infinite(f64 x) { return x == OF_INF64 || x == -OF_INF64; }
template <typename R> OF_FN bool of_nonzero(OF_Z z) { return z.re != 0 || z.im != 0; }
template <typename R> OF_FN bool of_equal(OF_Z a, OF_Z b) { return a.re == b.re && a.im == b.im; }

OF_C of_turned(OF_Z z) { return of_complex<R>(-z.im, z.re); }
OF_C of_turned_back(OF_Z z) { return of_complex<R>(z.im, -z.re); }
OF_C of_scaled(OF_Z z, R by) { return of_complex<R>(z.re * by, z.im * by); }

OF_C of_neg(OF_Z z) { return of_complex<R>(-z.re, -z.im); }
OF_C of_conj(OF_Z z) { return of_complex<R>(z.re, -z.im); }
OF_C of_re(OF_Z z) { return of_real<R>(z.re); }
OF_C of_im(OF_Z z) { return of_real<R>(z.im); }
OF_C of_abs(OF_Z z) { return of_real<R>(of_hypot(z.re, z.im)); }
OF_C of_not(OF_Z z) { return of_truth<OF_Z>(!of_nonzero(z)); }
OF_C of_isnan(OF_Z z) { return of_truth<OF_Z>(z.re != z.re || z.im != z.im); }
OF_C of_isinf(OF_Z z) { return of_truth<OF_Z>(of_infinite(z.re) || of_infinite(z.im)); }
OF_C of_select(OF_Z c, OF_Z a, OF_Z b) { return of_nonzero(c) ? a : b; }
OF_C of_add(OF_Z a, OF_Z b) { return of_complex<R>(a.re + b.re, a.im + b.im); }
OF_C of_sub(OF_Z a, OF_Z b) { return of_complex<R>(a.re - b.re, a.im - b.im); }
OF_C of_mul(OF_Z a, OF_Z b) { return of_complex<R>(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re); }
// a + i b
OF_C of_complex(OF_Z a, OF_Z b) { return of_complex<R>(a.re - b.im, a.im + b.re); }
OF_C of_div(OF_Z a, OF_Z b) {
    const R x = of_abs(b.re), y = of_abs(b.im);
    if (x == 0 && y == 0) return of_complex<R>(a.re / x, a.im / x);
    if (x >= y) {
        const R r = b.im / b.re, d = b.re + b.im * r;
        return of_complex<R>((a.re + a.im * r) / d, (a.im - a.re * r) / d);
    }
    const R r = b.re / b.im, d = b.re * r + b.im;
    return of_complex<R>((a.re * r + a.im) / d, (a.im * r - a.re) / d);
}
OF_C of_reciprocal(OF_Z z) { return of_div(of_real<R>((R)1), z); }
OF_C of_square(OF_Z z) { return of_mul(z, z); }
OF_C of_sign(OF_Z z) {
    if (!of_nonzero(z)) return of_real<R>((R)0);
    const R r = of_hypot(z.re, z.im);
    return of_complex<R>(z.re / r, z.im / r);
}
OF_C of_exp(OF_Z z) {
    const R r = of_exp(z.re);
    if (z.im == 0) return of_complex<R>(r, z.im);
    if (r == 0) return of_real<R>((R)0);
    return of_complex<R>(r * of_cos(z.im), r * of_sin(z.im));
}
OF_C of_exp2(OF_Z z) { return of_exp(of_scaled(z, (R)0.6931471805599453)); }
OF_C of_expm1(OF_Z z) {
    const R half = of_sin(z.im * (R)0.5), e = of_expm1(z.re);
    return of_complex<R>(e * of_cos(z.im) - (R)2 * half * half, (e + (R)1) * of_sin(z.im));
}
template <typename R> OF_FN R of_log_abs(OF_Z z) {
    const R r = of_hypot(z.re, z.im), x = of_abs(z.re), y = of_abs(z.im);
    if (r > (R)0.5 && r < (R)2) {
        const R big = x > y ? x : y, small = x > y ? y : x;
        return (R)0.5 * of_log1p((big - (R)1) * (big + (R)1) + small * small);
    }
    return of_log(r);
}
OF_C of_log(OF_Z z) { return of_complex<R>(of_log_abs(z), of_atan2(z.im, z.re)); }
OF_C of_log1p(OF_Z z) {
    if (of_abs(z.re) < (R)0.5 && of_abs(z.im) < (R)0.5)
        return of_complex<R>((R)0.5 * of_log1p(z.re * ((R)2 + z.re) + z.im * z.im), of_atan2(z.im, z.re + (R)1));
    return of_log(of_complex<R>(z.re + (R)1, z.im));
}
OF_C of_log2(OF_Z z) { return of_scaled(of_log(z), (R)1.4426950408889634); }
OF_C of_log10(OF_Z z) { return of_scaled(of_log(z), (R)0.4342944819032518); }
OF_C of_sqrt(OF_Z z) {
    if (!of_nonzero(z)) return of_complex<R>((R)0, z.im);
    if (of_infinite(z.im)) return of_complex<R>(of_abs(z.im), z.im);
    const R x = z.re * (R)0.5, y = z.im * (R)0.5;
    const R t = of_sqrt(of_abs(x) + of_hypot(x, y)), small = of_abs(y) / t;
    return z.re >= 0 ? of_complex<R>(t, of_copysign(small, z.im)) : of_complex<R>(small, of_copysign(t, z.im));
}
OF_C of_rsqrt(OF_Z z) { return of_reciprocal(of_sqrt(z)); }
OF_C of_sinh(OF_Z z) {
    return of_complex<R>(of_sinh(z.re) * of_cos(z.im), z.im == 0 ? z.im : of_cosh(z.re) * of_sin(z.im));
}
OF_C of_cosh(OF_Z z) {
    const R im = z.im == 0 || z.re == 0 ? z.re * z.im : of_sinh(z.re) * of_sin(z.im);
    return of_complex<R>(of_cosh(z.re) * of_cos(z.im), im);
}
OF_C of_tanh(OF_Z z) {
    if (of_abs(z.re) > (R)22) {
        const R e = of_exp((R)-2 * of_abs(z.re));
        return of_complex<R>(of_copysign((R)1, z.re), (R)4 * of_sin(z.im) * of_cos(z.im) * e);
    }
    const R t = of_tan(z.im), s = of_sinh(z.re), b = (R)1 + t * t, r = of_sqrt((R)1 + s * s), d = (R)1 + b * s * s;
    return of_complex<R>(b * r * s / d, t / d);
}
OF_C of_sin(OF_Z z) { return of_turned_back(of_sinh(of_turned(z))); }
OF_C of_cos(OF_Z z) { return of_cosh(of_turned(z)); }
OF_C of_tan(OF_Z z) { return of_turned_back(of_tanh(of_turned(z))); }
OF_C of_asin(OF_Z z) {
    const OF_Z a = of_sqrt(of_complex<R>((R)1 - z.re, -z.im)), b = of_sqrt(of_complex<R>((R)1 + z.re, z.im));
    return of_complex<R>(of_atan2(z.re, of_mul(a, b).re), of_asinh(of_mul(of_conj(a), b).im));
}
OF_C of_acos(OF_Z z) {
    const OF_Z a = of_sqrt(of_complex<R>((R)1 - z.re, -z.im)), b = of_sqrt(of_complex<R>((R)1 + z.re, z.im));
    return of_complex<R>((R)2 * of_atan2(a.re, b.re), of_asinh(of_mul(of_conj(b), a).im));
}
OF_C of_acosh(OF_Z z) {
    const OF_Z a = of_sqrt(of_complex<R>(z.re - (R)1, z.im)), b = of_sqrt(of_complex<R>(z.re + (R)1, z.im));
    return of_complex<R>(of_asinh(of_mul(of_conj(a), b).re), (R)2 * of_atan2(a.im, b.re));
}
OF_C of_atanh(OF_Z z) {
    const R large = (R)1e9, x = of_abs(z.re);
    if (x > large || of_abs(z.im) > large)
        return of_complex<R>(of_reciprocal(z).re, of_copysign((R)1.5707963267948966, z.im));
    const R d = ((R)1 - x) * ((R)1 - x) + z.im * z.im;
    const R re = of_log1p((R)4 * x / d) / (R)4;
    const R im = of_atan2((R)2 * z.im, ((R)1 - x) * ((R)1 + x) - z.im * z.im) / (R)2;
    return of_complex<R>(of_copysign(re, z.re), im);
}
OF_C of_asinh(OF_Z z) { return of_turned_back(of_asin(of_turned(z))); }
OF_C of_atan(OF_Z z) { return of_turned_back(of_atanh(of_turned(z))); }
OF_C of_sigmoid(OF_Z z) { return of_reciprocal(of_add(of_real<R>((R)1), of_exp(of_neg(z)))); }
OF_C of_pow(OF_Z a, OF_Z b) {
    if (!of_nonzero(b)) return of_real<R>((R)1);
    if (!of_nonzero(a)) {
        if (b.re > 0) return of_real<R>((R)0);
        return of_complex<R>(b.im == 0 ? (R)OF_INF : (R)OF_NAN, (R)OF_NAN);
    }
    if (b.im == 0 && b.re == of_trunc(b.re) && of_abs(b.re) <= (R)64) {
        u32 left = (u32)of_abs(b.re);
        OF_Z square = a, y = of_real<R>((R)1);
        while (left > 0) {
            if (left & 1u) y = of_mul(y, square);
            square = of_mul(square, square);
            left >>= 1;
        }
        return b.re < 0 ? of_reciprocal(y) : y;
    }
    return of_exp(of_mul(b, of_log(a)));
}
