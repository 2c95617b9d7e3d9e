// One value everywhere.
//   T: the element.
#include "prelude.cuh"

extern "C" __global__ void fill(T* out, u64 n, f64 as_float, i64 as_int, i32 is_float) {
    T value;
    if (is_float) of_set(value, as_float);
    else of_set(value, as_int);
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) out[i] = value;
}
