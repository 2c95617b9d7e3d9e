// What cuFFT leaves to do: the factor, and numbers of a spectrum that count without their imaginary parts.
//   T: f32 or f64, a part of a complex number.
#include "prelude.cuh"

extern "C" __global__ void __launch_bounds__(256) scale(T* x, u64 count, f64 factor) {
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < count; i += (u64)gridDim.x * 256) x[i] *= (T)factor;
}

// Lines of m complex numbers, of which the first, and with `both` the last, become real.
extern "C" __global__ void __launch_bounds__(256) real_ends(T* x, u64 lines, u64 m, i32 both) {
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < lines; i += (u64)gridDim.x * 256) {
        T* line = x + i * m * 2;
        line[1] = (T)0;
        if (both) line[2 * m - 1] = (T)0;
    }
}
