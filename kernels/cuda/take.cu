// Elements chosen by index along a dim.
//   M: a type of the element's size, which is moved; I: the index (i64 or i32)
#include "prelude.cuh"

// out[a, j, b] = x[a, ids[j] - first, b]; zero where that is outside. An index outside 0..logical is reported.
extern "C" __global__ void __launch_bounds__(256)
index_select(M* out, const M* x, const I* ids, u64 n, u64 count, u64 inner, i64 first, i64 rows, i64 logical,
             of_fault* fault, u64 ticket) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < n; i += stride) {
        const u64 line = i / inner, b = i - line * inner;
        const u64 a = line / count, j = line - a * count;
        const i64 id = (i64)ids[j];
        if (b == 0 && (id < 0 || id >= logical)) of_report(fault, ticket, id, 0, logical);
        const i64 row = id - first;
        out[i] = id >= first && row < rows ? x[(a * (u64)rows + (u64)row) * inner + b] : M();
    }
}

// Indices that count from the front.
extern "C" __global__ void __launch_bounds__(256)
wrap_index(i64* out, const I* ids, u64 n, i64 size, of_fault* fault, u64 ticket) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < n; i += stride) {
        const i64 id = (i64)ids[i];
        if (id < -size || id >= size) of_report(fault, ticket, id, -size, size);
        out[i] = id < 0 ? id + size : id;
    }
}

// The output is -1 everywhere. The maximum does not depend on the order in which threads come.
extern "C" __global__ void __launch_bounds__(256)
last_index(i64* out, const I* ids, u64 n, i64 rows, i64 first, i64 base) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < n; i += stride) {
        const i64 id = (i64)ids[i];
        if (id >= first && id - first < rows) atomicMax(out + (id - first), base + (i64)i);
    }
}
