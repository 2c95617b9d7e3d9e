// Places in sorted sequences, and counts of indices and of numbers in equal intervals. All tensors are contiguous.
//   KIND 0: T: the element; O: places (i32 or i64); RIGHT
//   KIND 1: I: the index (i64 or i32)
//   KIND 2: T: the element (f32 or f64)
#include "prelude.cuh"

#if KIND == 0
typedef acc_t<T> A;
OF_FN bool below(A a, A b) { return a < b || (b != b && a == a); }

// `each` values in a row have the same sequence, of n elements.
extern "C" __global__ void __launch_bounds__(256)
searchsorted(O* out, const T* sorted, const T* x, u64 count, u64 n, u64 each) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < count; i += stride) {
        const T* row = sorted + i / each * n;
        const A value = of_get<A>(x[i]);
        u64 low = 0, high = n;
        while (low < high) {
            const u64 middle = (low + high) / 2;
            const A s = of_get<A>(row[middle]);
            if (RIGHT ? !below(value, s) : below(s, value)) low = middle + 1;
            else high = middle;
        }
        out[i] = (O)low;
    }
}
#elif KIND == 1
// The output is zero already; which thread adds first does not matter to a count.
extern "C" __global__ void __launch_bounds__(256)
count_index(u64* out, const I* ids, u64 count, i64 first, i64 here, i64 size, of_fault* fault, u64 ticket) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < count; i += stride) {
        const i64 id = (i64)ids[i];
        if (id < 0 || id >= size) of_report(fault, ticket, id, 0, size);
        if (id >= first && id - first < here) atomicAdd(out + (id - first), (u64)1);
    }
}
#else
// The counts are zero already.
extern "C" __global__ void __launch_bounds__(256) histogram(const T* x, u64* counts, u64 count, u64 bins, f64 from, f64 to) {
    const T low = (T)from, high = (T)to, width = high - low, most = (T)bins;
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < count; i += stride) {
        const T v = x[i];
        if (v >= low && v <= high) {
            const u64 bin = (u64)((v - low) * most / width);
            atomicAdd(counts + (bin < bins ? bin : bins - 1), (u64)1);
        }
    }
}
extern "C" __global__ void __launch_bounds__(256) histogram_store(const u64* counts, T* out, u64 bins) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < bins; i += stride) out[i] = (T)counts[i];
}
#endif
