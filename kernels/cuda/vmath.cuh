// Logarithm, sine and cosine with the very bits of the CPU's (kernels/src/vmath.rs): the same operations in the same order,
// each rounded by itself. Random numbers are made with them.
#pragma once
#include "prelude.cuh"

// Never fused.
OF_FN f32 of_fadd(f32 a, f32 b) { return __fadd_rn(a, b); }
OF_FN f64 of_fadd(f64 a, f64 b) { return __dadd_rn(a, b); }
OF_FN f32 of_fsub(f32 a, f32 b) { return __fadd_rn(a, -b); }
OF_FN f64 of_fsub(f64 a, f64 b) { return __dadd_rn(a, -b); }
OF_FN f32 of_fmul(f32 a, f32 b) { return __fmul_rn(a, b); }
OF_FN f64 of_fmul(f64 a, f64 b) { return __dmul_rn(a, b); }
OF_FN f32 of_fdiv(f32 a, f32 b) { return __fdiv_rn(a, b); }
OF_FN f64 of_fdiv(f64 a, f64 b) { return __ddiv_rn(a, b); }
OF_FN f32 of_fsqrt(f32 a) { return __fsqrt_rn(a); }
OF_FN f64 of_fsqrt(f64 a) { return __dsqrt_rn(a); }

// Horner's rule, coefficients from the constant term up.
template <typename A, int N> OF_FN A of_horner(A x, const A (&c)[N]) {
    A p = c[N - 1];
#pragma unroll
    for (int i = N - 2; i >= 0; i--) p = of_fadd(of_fmul(p, x), c[i]);
    return p;
}

// What both logarithms do after the exponent has been split off: x = 2^e (1 + f).
template <typename A, int N> OF_FN A of_log_of(A e, A f, const A (&atanh)[N], A ln2_hi, A ln2_lo) {
    const A s = of_fdiv(f, of_fadd((A)2, f)), z = of_fmul(s, s);
    const A r = of_fmul(of_horner(z, atanh), z);
    const A half_square = of_fmul(of_fmul((A)0.5, f), f);
    const A small = of_fadd(of_fmul(s, of_fadd(half_square, r)), of_fmul(e, ln2_lo));
    return of_fadd(of_fmul(e, ln2_hi), of_fsub(f, of_fsub(half_square, small)));
}
// For normal numbers above zero.
OF_FN f32 of_vlog(f32 x) {
    const f32 atanh[] = {0.6666667f, 0.4f, 0.2857143f, 0.22222222f, 0.18181819f};
    const i32 bits = (i32)__float_as_uint(x), e = (bits - 0x3f3504f3) >> 23;
    const f32 f = of_fsub(__uint_as_float((u32)bits - ((u32)e << 23)), 1.0f);
    return of_log_of((f32)e, f, atanh, 0.6928711f, 0.00027608682f);
}
OF_FN f64 of_vlog(f64 x) {
    const f64 atanh[] = {
        0.6666666666666666, 0.4, 0.2857142857142857, 0.2222222222222222, 0.18181818181818182,
        0.15384615384615385, 0.13333333333333333, 0.11764705882352941, 0.10526315789473684,
        0.09523809523809523};
    const i64 bits = __double_as_longlong(x), e = (bits - 0x3fe6a09e667f3bcdLL) >> 52;
    const f64 f = of_fsub(__longlong_as_double((i64)((u64)bits - ((u64)e << 52))), 1.0);
    return of_log_of((f64)e, f, atanh, 0.6931471803691238, 1.9082149292705877e-10);
}

// x = quadrant pi/2 + r with |r| <= pi/4, for |x| up to 2^20.
OF_FN f64 of_quadrant(f64 x, i32& quadrant) {
    const f64 magic = 6755399441055744.0;
    const f64 shifted = of_fadd(of_fmul(x, 0.6366197723675814), magic), n = of_fsub(shifted, magic);
    quadrant = (i32)(__double_as_longlong(shifted) & 3);
    const f64 high = of_fsub(x, of_fmul(n, 1.5707963267341256));
    return of_fsub(of_fsub(high, of_fmul(n, 6.077100506303966e-11)), of_fmul(n, 2.0222662487959506e-21));
}
template <typename A, int N, int M> OF_FN void of_sin_cos_of(A r, i32 quadrant, const A (&cs)[N], const A (&cc)[M], A& sin, A& cos) {
    const A z = of_fmul(r, r);
    // The sign is r's; said so for zero.
    const A s = r == (A)0 ? r : of_fadd(of_fmul(of_horner(z, cs), of_fmul(z, r)), r);
    const A c = of_fadd(of_fmul(of_horner(z, cc), of_fmul(z, z)), of_fsub((A)1, of_fmul((A)0.5, z)));
    const bool swap = quadrant & 1;
    sin = swap ? c : s;
    cos = swap ? s : c;
    if (quadrant & 2) sin = -sin;
    if ((quadrant + 1) & 2) cos = -cos;
}
OF_FN void of_sin_cos(f32 x, f32& sin, f32& cos) {
    const f32 cs[] = {-0.16666667f, 0.008333334f, -0.0001984127f, 2.7557319e-06f};
    const f32 cc[] = {0.041666668f, -0.0013888889f, 2.4801588e-05f, -2.755732e-07f};
    i32 quadrant;
    const f32 r = (f32)of_quadrant((f64)x, quadrant);
    of_sin_cos_of(r, quadrant, cs, cc, sin, cos);
}
OF_FN void of_sin_cos(f64 x, f64& sin, f64& cos) {
    const f64 cs[] = {
        -0.16666666666666666, 0.008333333333333333, -0.0001984126984126984, 2.7557319223985893e-06,
        -2.505210838544172e-08, 1.6059043836821613e-10, -7.647163731819816e-13, 2.8114572543455206e-15};
    const f64 cc[] = {
        0.041666666666666664, -0.001388888888888889, 2.48015873015873e-05, -2.755731922398589e-07,
        2.08767569878681e-09, -1.1470745597729725e-11, 4.779477332387385e-14, -1.5619206968586225e-16};
    i32 quadrant;
    const f64 r = of_quadrant(x, quadrant);
    of_sin_cos_of(r, quadrant, cs, cc, sin, cos);
}
