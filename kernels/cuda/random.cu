// Philox4x32-10 numbers, bit for bit those of the CPU (kernels/src/cpu/random.rs): the key is the seed, the counter is the
// ordinal and the logical index / 4, the lane is the index modulo 4.
//   T: the element; DIST: 0 uniform, 1 normal, 2 bernoulli, 3 dropout, 4 integers
//   RUNS 0: all elements follow each other, from a multiple of 4 on, in vectors. 1: any window onto a shard
#include "vmath.cuh"

template <typename E> struct of_drawn { typedef f32 type; };
template <> struct of_drawn<f64> { typedef f64 type; };
#if DIST == 4
typedef i64 A;
#else
typedef of_drawn<T>::type A;
#endif

struct of_args {
    u64 n; // elements
    u64 base; // logical index of the first
    u64 seed, ordinal;
    u64 p[3]; // what the distribution needs, as bits
    T* out;
    const T* x;
#if RUNS
    u64 runs, length, groups; // runs of elements, of that length; groups of 4 logical indices that one can touch
    i64 to_step, from_step;
    u64 rank;
    u64 size[8];
    i64 logical[8], to[8], from[8];
#endif
};

OF_FN void of_philox(u64 counter, u64 ordinal, u64 seed, u32 w[4]) {
    u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = (u32)ordinal, c3 = (u32)(ordinal >> 32);
    u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma unroll
    for (int i = 0; i < 10; i++) {
        const u64 a = (u64)c0 * 0xd2511f53u, b = (u64)c2 * 0xcd9e8d57u;
        c0 = (u32)(b >> 32) ^ c1 ^ k0;
        c1 = (u32)b;
        c2 = (u32)(a >> 32) ^ c3 ^ k1;
        c3 = (u32)a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    w[0] = c0;
    w[1] = c1;
    w[2] = c2;
    w[3] = c3;
}

OF_FN f32 of_unit(u32 high, u32, f32) { return (f32)(i32)(high >> 8) * 5.9604644775390625e-8f; }
OF_FN f64 of_unit(u32 high, u32 low, f64) {
    return (f64)(((u64)high << 32 | low) >> 11) * 1.1102230246251565e-16;
}
// Not zero.
OF_FN f32 of_open(u32 high, u32, f32) {
    return of_fadd(of_fmul((f32)high, 2.3283064365386963e-10f), 1.1641532182693481e-10f);
}
OF_FN f64 of_open(u32 high, u32 low, f64) { return of_fadd(of_unit(high, low, 0.0), 5.551115123125783e-17); }
OF_FN f32 of_param(u64 bits, f32) { return __uint_as_float((u32)bits); }
OF_FN f64 of_param(u64 bits, f64) { return __longlong_as_double((i64)bits); }
OF_FN f32 of_tau(f32) { return 6.2831855f; }
OF_FN f64 of_tau(f64) { return 6.283185307179586; }

// The four numbers of a counter; dropout takes the elements and gives what becomes of them.
OF_FN void of_draw(u64 counter, const of_args& k, A y[4]) {
    u32 high[4], low[4] = {0, 0, 0, 0};
    of_philox(counter, k.ordinal, k.seed, high);
    // A second word for each, where 32 bits are too few.
    if (DIST == 4 || (DIST <= 1 && sizeof(A) == 8)) of_philox(counter | 1ull << 63, k.ordinal, k.seed, low);
#if DIST == 0
    const A lo = of_param(k.p[0], A()), top = of_param(k.p[1], A()), span = of_param(k.p[2], A());
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const A v = of_fadd(lo, of_fmul(of_unit(high[i], low[i], A()), span));
        // Above it rounding would take numbers to the excluded end.
        y[i] = v < top ? v : top;
    }
#elif DIST == 1
    const A mean = of_param(k.p[0], A()), std = of_param(k.p[1], A());
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const A r = of_fsqrt(of_fmul((A)-2, of_vlog(of_open(high[i], low[i], A()))));
        A sin, cos;
        of_sin_cos(of_fmul(of_unit(high[i + 1], low[i + 1], A()), of_tau(A())), sin, cos);
        y[i] = of_fadd(mean, of_fmul(std, of_fmul(r, cos)));
        y[i + 1] = of_fadd(mean, of_fmul(std, of_fmul(r, sin)));
    }
#elif DIST == 2
#pragma unroll
    for (int i = 0; i < 4; i++) y[i] = high[i] < k.p[0] ? (A)1 : (A)0;
#elif DIST == 3
    const A scale = of_param(k.p[1], A());
#pragma unroll
    for (int i = 0; i < 4; i++) y[i] = high[i] < k.p[0] ? (A)0 : of_fmul(y[i], scale);
#else
#pragma unroll
    for (int i = 0; i < 4; i++) y[i] = (i64)(k.p[0] + __umul64hi((u64)high[i] << 32 | low[i], k.p[1]));
#endif
}

#if RUNS == 0

// A thread makes as many elements as are 16 bytes, four at least, in vectors of 16 bytes at most.
#define MADE (sizeof(T) >= 4 ? 4 : 16 / (int)sizeof(T))
#define WIDE (sizeof(T) <= 4 ? MADE : 16 / (int)sizeof(T))

extern "C" __global__ void __launch_bounds__(256) random(of_args k) {
    const u64 first = ((u64)blockIdx.x * 256 + threadIdx.x) * MADE;
    if (first >= k.n) return;
    const bool whole = first + MADE <= k.n;
    of_vec<T, WIDE> v[MADE / WIDE];
#if DIST == 3
    if (whole) {
#pragma unroll
        for (int i = 0; i < MADE / WIDE; i++) v[i] = of_load<T, WIDE>(k.x + first + i * WIDE);
    } else {
#pragma unroll
        for (int i = 0; i < MADE; i++) v[i / WIDE].at[i % WIDE] = first + i < k.n ? k.x[first + i] : T();
    }
#endif
#pragma unroll
    for (int g = 0; g < MADE; g += 4) {
        A y[4];
#if DIST == 3
#pragma unroll
        for (int i = 0; i < 4; i++) y[i] = of_get<A>(v[(g + i) / WIDE].at[(g + i) % WIDE]);
#endif
        of_draw((k.base + first + g) / 4, k, y);
#pragma unroll
        for (int i = 0; i < 4; i++) of_set(v[(g + i) / WIDE].at[(g + i) % WIDE], y[i]);
    }
    if (whole) {
#pragma unroll
        for (int i = 0; i < MADE / WIDE; i++) of_store(k.out + first + i * WIDE, v[i]);
    } else {
#pragma unroll
        for (int i = 0; i < MADE; i++)
            if (first + i < k.n) k.out[first + i] = v[i / WIDE].at[i % WIDE];
    }
}

#else

extern "C" __global__ void __launch_bounds__(256) random(const __grid_constant__ of_args k) {
    const u64 thread = (u64)blockIdx.x * 256 + threadIdx.x;
    const u64 run = thread / k.groups, group = thread - run * k.groups;
    if (run >= k.runs) return;
    u64 index = k.base, rest = run;
    i64 to = 0, from = 0;
    for (int d = (int)k.rank - 1; d >= 0; d--) {
        const u64 next = rest / k.size[d];
        const i64 at = (i64)(rest - next * k.size[d]);
        index += (u64)(at * k.logical[d]);
        to += at * k.to[d];
        from += at * k.from[d];
        rest = next;
    }
    const u64 counter = index / 4 + group;
    const i64 place = (i64)(counter * 4 - index); // of the counter's first number in the run
    if (place >= (i64)k.length) return;
    A y[4];
#if DIST == 3
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const i64 at = place + i;
        y[i] = at >= 0 && at < (i64)k.length ? of_get<A>(k.x[from + at * k.from_step]) : (A)0;
    }
#endif
    of_draw(counter, k, y);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const i64 at = place + i;
        if (at >= 0 && at < (i64)k.length) of_set(k.out[to + at * k.to_step], y[i]);
    }
}
#endif
