// out[i, j] = scale * sum over l of a[i, l] b[l, j]; a and b by their strides, so that either may be transposed.
//   T: the element type
#include "prelude.cuh"

extern "C" __global__ void __launch_bounds__(256)
    matmul_scale(T* out, const T* a, const T* b, u64 elements, u64 columns, u64 inner, i64 a_row, i64 a_column, i64 b_row,
                 i64 b_column, f64 scale) {
    typedef acc_t<T> A;
    const u64 step = (u64)gridDim.x * 256;
    for (u64 at = (u64)blockIdx.x * 256 + threadIdx.x; at < elements; at += step) {
        const i64 i = (i64)(at / columns), j = (i64)(at % columns);
        A sum = 0;
        for (i64 l = 0; l < (i64)inner; l++) {
            sum += of_get<A>(a[i * a_row + l * a_column]) * of_get<A>(b[l * b_row + j * b_column]);
        }
        of_set(out[at], (A)scale * sum);
    }
}
