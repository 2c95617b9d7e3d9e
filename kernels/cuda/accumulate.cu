// Contributions reduced elementwise, in the order in which they are given.
//   T: the element, OP: 0 sum, 1 maximum, 2 minimum, MOST: room for so many sources, VECTOR: elements a thread takes at once
#include "prelude.cuh"

struct of_sources { const T* at[MOST]; };

// Integers wrap, as on the CPU; signed overflow would be undefined.
OF_FN i64 add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
OF_FN f32 add(f32 a, f32 b) { return a + b; }
OF_FN f64 add(f64 a, f64 b) { return a + b; }

OF_FN acc_t<T> combine(acc_t<T> a, acc_t<T> b) {
#if OP == 0
    return add(a, b);
#elif OP == 1
    return of_max_op::of(a, b);
#else
    return of_min_op::of(a, b);
#endif
}

// Halves are combined in f32 and rounded once.
extern "C" __global__ void __launch_bounds__(256) accumulate(T* out, u64 n, i32 sources, const __grid_constant__ of_sources from) {
    typedef of_vec<T, VECTOR> block;
    const u64 step = (u64)gridDim.x * blockDim.x, whole = n / VECTOR;
    const u64 me = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u64 i = me; i < whole; i += step) {
        block x = of_load<T, VECTOR>(from.at[0] + i * VECTOR);
        acc_t<T> total[VECTOR];
#pragma unroll
        for (int j = 0; j < VECTOR; j++) total[j] = of_get<acc_t<T>>(x.at[j]);
        for (int s = 1; s < sources; s++) {
            x = of_load<T, VECTOR>(from.at[s] + i * VECTOR);
#pragma unroll
            for (int j = 0; j < VECTOR; j++) total[j] = combine(total[j], of_get<acc_t<T>>(x.at[j]));
        }
#pragma unroll
        for (int j = 0; j < VECTOR; j++) of_set(x.at[j], total[j]);
        of_store(out + i * VECTOR, x);
    }
    for (u64 i = whole * VECTOR + me; i < n; i += step) {
        acc_t<T> total = of_get<acc_t<T>>(from.at[0][i]);
        for (int s = 1; s < sources; s++) total = combine(total, of_get<acc_t<T>>(from.at[s][i]));
        of_set(out[i], total);
    }
}
