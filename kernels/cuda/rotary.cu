// Rotary position embedding; see kernels/src/cpu/rotary.rs. A thread has an element of the output.
//   T: the element
#include "prelude.cuh"

struct of_rotary {
    i64 rows, width, pairs, interleaved;
    of_shape shape;
    // Of the output, x, cosines and sines: from row to row, and along a row.
    of_strides row[4];
    i64 step[4];
};

typedef acc_t<T> A;

extern "C" __global__ void __launch_bounds__(256) rotary(T* out, const T* x, const T* cosine, const T* sine, of_rotary p) {
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < p.rows * p.width; i += (i64)gridDim.x * 256) {
        const i64 row = i / p.width, e = i % p.width;
        i64 at[4];
#pragma unroll
        for (int k = 0; k < 4; k++) at[k] = of_offset((u64)row, p.shape, p.row[k]);
        const A own = of_get<A>(x[at[1] + e * p.step[1]]);
        A y = own;
        if (e < 2 * p.pairs) {
            const bool second = p.interleaved ? e & 1 : e >= p.pairs;
            const i64 pair = p.interleaved ? e >> 1 : second ? e - p.pairs : e;
            const i64 apart = p.interleaved ? 1 : p.pairs;
            const A other = of_get<A>(x[at[1] + (second ? e - apart : e + apart) * p.step[1]]);
            const A c = of_get<A>(cosine[at[2] + pair * p.step[2]]), s = of_get<A>(sine[at[3] + pair * p.step[3]]);
            y = second ? own * c + other * s : own * c - other * s;
        }
        of_set(out[at[0] + e * p.step[0]], y);
    }
}
