// Kernels about positions.
//   T: the element; I: the index (i64 or i32)
#include "prelude.cuh"

extern "C" __global__ void __launch_bounds__(256)
arange(T* out, u64 n, f64 start, f64 step, i64 int_start, i64 int_step, i64 first, i32 integer) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < n; i += stride) {
        // Rounded twice, as on the CPU; integers wrap.
        const i64 at = (i64)((u64)first + i);
        if (integer) of_set(out[i], (i64)((u64)int_start + (u64)int_step * (u64)at));
        else of_set(out[i], __dadd_rn(start, __dmul_rn(step, (f64)at)));
    }
}

// The output is zero already.
extern "C" __global__ void __launch_bounds__(256)
one_hot(T* out, const I* ids, u64 n, u64 classes, i64 first, i64 logical, of_fault* fault, u64 ticket) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < n; i += stride) {
        const i64 id = (i64)ids[i];
        if (id < 0 || id >= logical) of_report(fault, ticket, id, 0, logical);
        else if (id >= first && id < first + (i64)classes) of_set(out[i * classes + (u64)(id - first)], (i64)1);
    }
}

// Looks for indices outside 0..logical only: where nothing is made of them.
extern "C" __global__ void __launch_bounds__(256)
check_ids(const I* ids, u64 n, i64 logical, of_fault* fault, u64 ticket) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < n; i += stride) {
        const i64 id = (i64)ids[i];
        if (id < 0 || id >= logical) of_report(fault, ticket, id, 0, logical);
    }
}

OF_FN bool of_equal(f64 a, f64 b) { return a == b || (a != a && b != b); }
OF_FN bool of_equal(f32 a, f32 b) { return a == b || (a != a && b != b); }
OF_FN bool of_equal(i64 a, i64 b) { return a == b; }

// out[i] = first + the index along the dim where x equals m, elsewhere the largest i64.
extern "C" __global__ void __launch_bounds__(256)
match_index(const __grid_constant__ of_shape shape, const __grid_constant__ of_strides repeated, i64* out, const T* x, const T* m, u64 n, u64 inner, u64 size, i64 first) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < n; i += stride) {
        const acc_t<T> a = of_get<acc_t<T>>(x[i]), b = of_get<acc_t<T>>(m[of_offset(i, shape, repeated)]);
        out[i] = of_equal(a, b) ? first + (i64)(i / inner % size) : 0x7fffffffffffffffLL;
    }
}
