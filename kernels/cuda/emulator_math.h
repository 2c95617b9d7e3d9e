// CUDA's loads, atomics and mathematics for emulator.h.
#pragma once

// ---- memory and atomics ---------------------------------------------------------------------------------------------

#define OF_EMU_LOAD(name) template <typename T> OF_EMU_INLINE T name(const T* p) { return *p; }
OF_EMU_LOAD(__ldg) OF_EMU_LOAD(__ldca) OF_EMU_LOAD(__ldcg) OF_EMU_LOAD(__ldcs) OF_EMU_LOAD(__ldcv) OF_EMU_LOAD(__ldlu)
#define OF_EMU_STORE(name) template <typename T> OF_EMU_INLINE void name(T* p, T v) { *p = v; }
OF_EMU_STORE(__stwb) OF_EMU_STORE(__stcg) OF_EMU_STORE(__stcs) OF_EMU_STORE(__stwt)

// The type of a parameter that follows another argument's.
template <typename T> struct of_emu_same { typedef T type; };
template <typename T> using of_emu_same_t = typename of_emu_same<T>::type;
template <size_t N> struct of_emu_word;
template <> struct of_emu_word<2> { typedef unsigned short type; };
template <> struct of_emu_word<4> { typedef unsigned type; };
template <> struct of_emu_word<8> { typedef unsigned long long type; };

template <typename T> OF_EMU_INLINE T atomicCAS(T* p, of_emu_same_t<T> compare, of_emu_same_t<T> value) {
    __atomic_compare_exchange(p, &compare, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return compare;
}
template <typename T> OF_EMU_INLINE T atomicCAS_system(T* p, of_emu_same_t<T> compare, of_emu_same_t<T> value) {
    return atomicCAS(p, compare, value);
}
template <typename T> OF_EMU_INLINE T atomicExch(T* p, of_emu_same_t<T> value) {
    T old;
    __atomic_exchange(p, &value, &old, __ATOMIC_RELAXED);
    return old;
}
template <typename T> OF_EMU_INLINE T atomicExch_system(T* p, of_emu_same_t<T> value) { return atomicExch(p, value); }
// Any read-modify-write as a loop over compare-and-swap, for floats too.
template <typename T, typename F> OF_EMU_INLINE T of_emu_update(T* p, F f) {
    T old = *(volatile T*)p, next = f(old);
    while (!__atomic_compare_exchange(p, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) next = f(old);
    return old;
}
#define OF_EMU_ATOMIC(name, expression)                                                                                \
    template <typename T> OF_EMU_INLINE T name(T* p, of_emu_same_t<T> x) {                                             \
        return of_emu_update(p, [x](T old) -> T { return expression; });                                               \
    }                                                                                                                  \
    template <typename T> OF_EMU_INLINE T name##_block(T* p, of_emu_same_t<T> x) { return name(p, x); }                \
    template <typename T> OF_EMU_INLINE T name##_system(T* p, of_emu_same_t<T> x) { return name(p, x); }
OF_EMU_ATOMIC(atomicAdd, old + x)
OF_EMU_ATOMIC(atomicSub, old - x)
OF_EMU_ATOMIC(atomicMax, old > x ? old : x)
OF_EMU_ATOMIC(atomicMin, old < x ? old : x)
OF_EMU_ATOMIC(atomicAnd, old & x)
OF_EMU_ATOMIC(atomicOr, old | x)
OF_EMU_ATOMIC(atomicXor, old ^ x)
OF_EMU_ATOMIC(atomicInc, old >= x ? 0 : old + 1)
OF_EMU_ATOMIC(atomicDec, old == 0 || old > x ? x : old - 1)

// ---- mathematics ----------------------------------------------------------------------------------------------------

template <typename To, typename From> OF_EMU_INLINE To of_emu_cast(From x) { return __builtin_bit_cast(To, x); }
OF_EMU_INLINE unsigned __float_as_uint(float x) { return of_emu_cast<unsigned>(x); }
OF_EMU_INLINE int __float_as_int(float x) { return of_emu_cast<int>(x); }
OF_EMU_INLINE float __uint_as_float(unsigned x) { return of_emu_cast<float>(x); }
OF_EMU_INLINE float __int_as_float(int x) { return of_emu_cast<float>(x); }
OF_EMU_INLINE long long __double_as_longlong(double x) { return of_emu_cast<long long>(x); }
OF_EMU_INLINE double __longlong_as_double(long long x) { return of_emu_cast<double>(x); }
OF_EMU_INLINE int __double2hiint(double x) { return (int)(of_emu_cast<unsigned long long>(x) >> 32); }
OF_EMU_INLINE int __double2loint(double x) { return (int)of_emu_cast<unsigned long long>(x); }
OF_EMU_INLINE double __hiloint2double(int h, int l) {
    return of_emu_cast<double>((unsigned long long)(unsigned)h << 32 | (unsigned)l);
}

// The C library's functions, and the overloads for float that CUDA has.
#define OF_EMU_MATH1(name)                                                                                             \
    extern "C" double name(double);                                                                                    \
    extern "C" float name##f(float);                                                                                   \
    OF_EMU_INLINE float name(float x) { return name##f(x); }
#define OF_EMU_MATH2(name)                                                                                             \
    extern "C" double name(double, double);                                                                            \
    extern "C" float name##f(float, float);                                                                            \
    OF_EMU_INLINE float name(float x, float y) { return name##f(x, y); }
OF_EMU_MATH1(exp) OF_EMU_MATH1(exp2) OF_EMU_MATH1(exp10) OF_EMU_MATH1(expm1) OF_EMU_MATH1(log) OF_EMU_MATH1(log2)
OF_EMU_MATH1(log10) OF_EMU_MATH1(log1p) OF_EMU_MATH1(logb) OF_EMU_MATH1(sqrt) OF_EMU_MATH1(cbrt) OF_EMU_MATH1(sin)
OF_EMU_MATH1(cos) OF_EMU_MATH1(tan) OF_EMU_MATH1(asin) OF_EMU_MATH1(acos) OF_EMU_MATH1(atan) OF_EMU_MATH1(sinh)
OF_EMU_MATH1(cosh) OF_EMU_MATH1(tanh) OF_EMU_MATH1(asinh) OF_EMU_MATH1(acosh) OF_EMU_MATH1(atanh) OF_EMU_MATH1(erf)
OF_EMU_MATH1(erfc) OF_EMU_MATH1(tgamma) OF_EMU_MATH1(lgamma) OF_EMU_MATH1(ceil) OF_EMU_MATH1(floor) OF_EMU_MATH1(trunc)
OF_EMU_MATH1(round) OF_EMU_MATH1(rint) OF_EMU_MATH1(nearbyint) OF_EMU_MATH1(fabs)
OF_EMU_MATH1(j0) OF_EMU_MATH1(j1) OF_EMU_MATH1(y0) OF_EMU_MATH1(y1)
OF_EMU_MATH2(pow) OF_EMU_MATH2(fmod) OF_EMU_MATH2(remainder) OF_EMU_MATH2(atan2) OF_EMU_MATH2(hypot) OF_EMU_MATH2(fdim)
OF_EMU_MATH2(fmin) OF_EMU_MATH2(fmax) OF_EMU_MATH2(copysign) OF_EMU_MATH2(nextafter)
extern "C" {
double fma(double, double, double);
float fmaf(float, float, float);
double ldexp(double, int);
float ldexpf(float, int);
double frexp(double, int*);
float frexpf(float, int*);
double modf(double, double*);
float modff(float, float*);
void sincos(double, double*, double*);
void sincosf(float, float*, float*);
long long llrint(double);
long long llrintf(float);
long lrint(double);
long lrintf(float);
long long llround(double);
long long llroundf(float);
int abs(int);
long long llabs(long long);
}
OF_EMU_INLINE float fma(float a, float b, float c) { return fmaf(a, b, c); }
OF_EMU_INLINE float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
OF_EMU_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }
OF_EMU_INLINE float rsqrt(float x) { return rsqrtf(x); }
OF_EMU_INLINE float rcbrtf(float x) { return 1.0f / cbrtf(x); }
OF_EMU_INLINE double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
OF_EMU_INLINE float normcdff(float x) { return (float)normcdf((double)x); }
OF_EMU_INLINE double erfcx(double x) { return exp(x * x) * erfc(x); }
OF_EMU_INLINE float sinpif(float x) { return (float)sin(3.14159265358979323846 * x); }
OF_EMU_INLINE float cospif(float x) { return (float)cos(3.14159265358979323846 * x); }
OF_EMU_INLINE void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
OF_EMU_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
OF_EMU_INLINE long abs(long x) { return x < 0 ? -x : x; }
OF_EMU_INLINE float abs(float x) { return fabsf(x); }
OF_EMU_INLINE double abs(double x) { return fabs(x); }
#define OF_EMU_CLASSIFY(name)                                                                                          \
    OF_EMU_INLINE bool name(float x) { return __builtin_##name(x); }                                                   \
    OF_EMU_INLINE bool name(double x) { return __builtin_##name(x); }
OF_EMU_CLASSIFY(isnan) OF_EMU_CLASSIFY(isinf) OF_EMU_CLASSIFY(isfinite) OF_EMU_CLASSIFY(signbit)
#define OF_EMU_MINMAX(type)                                                                                            \
    OF_EMU_INLINE type min(type a, type b) { return a < b ? a : b; }                                                   \
    OF_EMU_INLINE type max(type a, type b) { return a > b ? a : b; }
OF_EMU_MINMAX(int) OF_EMU_MINMAX(unsigned) OF_EMU_MINMAX(long) OF_EMU_MINMAX(unsigned long)
OF_EMU_MINMAX(long long) OF_EMU_MINMAX(unsigned long long)
OF_EMU_INLINE unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
OF_EMU_INLINE unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
OF_EMU_INLINE unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
OF_EMU_INLINE unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
OF_EMU_INLINE float min(float a, float b) { return fminf(a, b); }
OF_EMU_INLINE float max(float a, float b) { return fmaxf(a, b); }
OF_EMU_INLINE double min(double a, double b) { return fmin(a, b); }
OF_EMU_INLINE double max(double a, double b) { return fmax(a, b); }

// The fast ones are as good as the good ones here; a GPU's differ in the last bits.
#define OF_EMU_AS1(name, as) OF_EMU_INLINE float name(float x) { return as; }
OF_EMU_AS1(__expf, expf(x)) OF_EMU_AS1(__exp10f, exp10f(x)) OF_EMU_AS1(__logf, logf(x)) OF_EMU_AS1(__log2f, log2f(x))
OF_EMU_AS1(__log10f, log10f(x)) OF_EMU_AS1(__sinf, sinf(x)) OF_EMU_AS1(__cosf, cosf(x)) OF_EMU_AS1(__tanf, tanf(x))
OF_EMU_AS1(__tanhf, tanhf(x)) OF_EMU_AS1(__frcp_rn, 1.0f / x) OF_EMU_AS1(__fsqrt_rn, sqrtf(x))
OF_EMU_AS1(__frsqrt_rn, rsqrtf(x)) OF_EMU_AS1(__saturatef, x > 0.0f ? x < 1.0f ? x : 1.0f : 0.0f)
OF_EMU_INLINE float __powf(float x, float y) { return powf(x, y); }
OF_EMU_INLINE void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
OF_EMU_INLINE float fdividef(float a, float b) { return a / b; }
OF_EMU_INLINE float __fdividef(float a, float b) { return a / b; }
OF_EMU_INLINE float __fadd_rn(float a, float b) { return a + b; }
OF_EMU_INLINE float __fsub_rn(float a, float b) { return a - b; }
OF_EMU_INLINE float __fmul_rn(float a, float b) { return a * b; }
OF_EMU_INLINE float __fdiv_rn(float a, float b) { return a / b; }
OF_EMU_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
OF_EMU_INLINE float __fmaf_ieee_rn(float a, float b, float c) { return fmaf(a, b, c); }
OF_EMU_INLINE double __dadd_rn(double a, double b) { return a + b; }
OF_EMU_INLINE double __dsub_rn(double a, double b) { return a - b; }
OF_EMU_INLINE double __dmul_rn(double a, double b) { return a * b; }
OF_EMU_INLINE double __ddiv_rn(double a, double b) { return a / b; }
OF_EMU_INLINE double __drcp_rn(double a) { return 1.0 / a; }
OF_EMU_INLINE double __dsqrt_rn(double a) { return sqrt(a); }
OF_EMU_INLINE double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

// Conversions saturate, as the GPU's do.
template <typename To, typename From> OF_EMU_INLINE To of_emu_saturate(From x) {
    const int bits = sizeof(To) * 8;
    const bool is_signed = (To)-1 < (To)0;
    const double limit = is_signed ? (double)(1ull << (bits - 1)) : 2.0 * (double)(1ull << (bits - 1));
    const To top = is_signed ? (To)((1ull << (bits - 1)) - 1) : (To)~0ull, bottom = is_signed ? (To)(1ull << (bits - 1)) : 0;
    return x != x ? (is_signed && bits == 32 ? 0 : (To)(1ull << (bits - 1))) : x >= limit ? top : x <= (is_signed ? -limit : 0.0) ? bottom : (To)x;
}
#define OF_EMU_CONVERT(from, word, to, type)                                                                           \
    OF_EMU_INLINE type __##word##2##to##_rn(from x) { return of_emu_saturate<type>(rint(x)); }                         \
    OF_EMU_INLINE type __##word##2##to##_rz(from x) { return of_emu_saturate<type>(trunc(x)); }                        \
    OF_EMU_INLINE type __##word##2##to##_rd(from x) { return of_emu_saturate<type>(floor(x)); }                        \
    OF_EMU_INLINE type __##word##2##to##_ru(from x) { return of_emu_saturate<type>(ceil(x)); }
OF_EMU_CONVERT(float, float, int, int) OF_EMU_CONVERT(float, float, uint, unsigned)
OF_EMU_CONVERT(float, float, ll, long long) OF_EMU_CONVERT(float, float, ull, unsigned long long)
OF_EMU_CONVERT(double, double, int, int) OF_EMU_CONVERT(double, double, uint, unsigned)
OF_EMU_CONVERT(double, double, ll, long long) OF_EMU_CONVERT(double, double, ull, unsigned long long)
OF_EMU_INLINE float __int2float_rn(int x) { return (float)x; }
OF_EMU_INLINE float __uint2float_rn(unsigned x) { return (float)x; }
OF_EMU_INLINE float __ll2float_rn(long long x) { return (float)x; }
OF_EMU_INLINE float __ull2float_rn(unsigned long long x) { return (float)x; }
OF_EMU_INLINE float __double2float_rn(double x) { return (float)x; }
OF_EMU_INLINE double __int2double_rn(int x) { return (double)x; }
OF_EMU_INLINE double __uint2double_rn(unsigned x) { return (double)x; }
OF_EMU_INLINE double __ll2double_rn(long long x) { return (double)x; }
OF_EMU_INLINE double __ull2double_rn(unsigned long long x) { return (double)x; }

OF_EMU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
OF_EMU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
OF_EMU_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
OF_EMU_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
OF_EMU_INLINE int __ffs(int x) { return __builtin_ffs(x); }
OF_EMU_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
OF_EMU_INLINE unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
OF_EMU_INLINE unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
OF_EMU_INLINE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
OF_EMU_INLINE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
OF_EMU_INLINE long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
OF_EMU_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
OF_EMU_INLINE int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
OF_EMU_INLINE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
OF_EMU_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) r |= (unsigned)(both >> 8 * (s >> 4 * i & 7) & 0xff) << 8 * i;
    return r;
}
OF_EMU_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
    return (unsigned)((((unsigned long long)hi << 32 | lo) << (n & 31)) >> 32);
}
OF_EMU_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (n & 31));
}

extern "C" int clock_gettime(int, void*);
OF_EMU_INLINE long long clock64() {
    long long t[2];
    clock_gettime(1, t);
    return t[0] * 1000000000ll + t[1];
}
OF_EMU_INLINE int clock() { return (int)clock64(); }
OF_EMU_INLINE void __nanosleep(unsigned) {}
OF_EMU_INLINE void __trap() { of_emu_fail(OF_EMU_LAUNCH_FAILED, "the kernel executed a trap"); }
OF_EMU_INLINE void __brkpt() {}
