// Elements chosen by an index for each of them along a dim. A thread has a line along the dim, so the last of several wins and sums
// have one order.
//   GATHER: M, a type of the element's size, which is moved; else T: the element; I: the index (i64 or i32)
#include "prelude.cuh"

#if GATHER
// out[i] = x[where i is, but the index in the dim, whose stride is `step`]; zero where that is outside. Any strides. An index outside
// 0..logical is reported.
extern "C" __global__ void __launch_bounds__(256)
gather(const __grid_constant__ of_shape shape, const __grid_constant__ of_strides to, const __grid_constant__ of_strides by,
       const __grid_constant__ of_strides from, M* out, const I* ids, const M* x, u64 n, u64 rows, i64 step, i64 first,
       i64 logical, of_fault* fault, u64 ticket) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < n; i += stride) {
        i64 a = 0, b = 0, c = 0;
        u64 rest = i;
        for (int d = shape.rank - 1; d >= 0; d--) {
            const u64 next = rest / (u64)shape.size[d];
            const i64 at = (i64)(rest - next * (u64)shape.size[d]);
            a += at * to.at[d];
            b += at * by.at[d];
            c += at * from.at[d];
            rest = next;
        }
        const i64 id = (i64)ids[b];
        if (id < 0 || id >= logical) of_report(fault, ticket, id, 0, logical);
        const u64 row = (u64)id - (u64)first;
        out[a] = row < rows ? x[c + (i64)row * step] : M();
    }
}

// As `gather` of contiguous memory, but zero where a later index of the line names the same element. `marks` has a zero for each
// element of x.
extern "C" __global__ void __launch_bounds__(256)
gather_last(M* out, const M* x, const I* ids, unsigned char* marks, u64 lines, u64 count, u64 rows, u64 inner, i64 first, i64 logical,
            of_fault* fault, u64 ticket) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < lines; i += stride) {
        const u64 a = i / inner, b = i - a * inner;
        for (u64 j = count; j-- > 0;) {
            const u64 at = (a * count + j) * inner + b;
            const i64 id = (i64)ids[at];
            if (id < 0 || id >= logical) of_report(fault, ticket, id, 0, logical);
            M value = M();
            if (id >= first && id - first < (i64)rows) {
                const u64 place = (a * rows + (u64)(id - first)) * inner + b;
                if (!marks[place]) value = x[place];
                marks[place] = 1;
            }
            out[at] = value;
        }
    }
}

// out[a, ids[a, j, b] - first, b] = value, whose bits are the lowest ones of `bits`, then those of `more`.
extern "C" __global__ void __launch_bounds__(256)
scatter_fill(M* out, const I* ids, u64 bits, u64 more, u64 n, u64 count, u64 rows, u64 inner, i64 first, i64 logical, of_fault* fault,
             u64 ticket) {
    const u64 stride = (u64)gridDim.x * 256;
    M value;
    const u64 words[2] = {bits, more};
    for (u64 k = 0; k < sizeof(M); ++k) ((unsigned char*)&value)[k] = ((const unsigned char*)words)[k];
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < n; i += stride) {
        const u64 line = i / inner, b = i - line * inner, a = line / count;
        const i64 id = (i64)ids[i];
        if (id < 0 || id >= logical) of_report(fault, ticket, id, 0, logical);
        if (id >= first && id - first < (i64)rows) out[(a * rows + (u64)(id - first)) * inner + b] = value;
    }
}

// out[a, ids[a, j, b] - first, b] = src[a, j, b], in the order of j.
extern "C" __global__ void __launch_bounds__(256)
scatter(M* out, const M* src, const I* ids, u64 lines, u64 count, u64 rows, u64 inner, i64 first, i64 logical,
        of_fault* fault, u64 ticket) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < lines; i += stride) {
        const u64 a = i / inner, b = i - a * inner;
        for (u64 j = 0; j < count; ++j) {
            const u64 at = (a * count + j) * inner + b;
            const i64 id = (i64)ids[at];
            if (id < 0 || id >= logical) of_report(fault, ticket, id, 0, logical);
            if (id >= first && id - first < (i64)rows) out[(a * rows + (u64)(id - first)) * inner + b] = src[at];
        }
    }
}
#else
typedef acc_t<T> A;
OF_FN f32 of_plus(f32 a, f32 b) { return a + b; }
OF_FN f64 of_plus(f64 a, f64 b) { return a + b; }
OF_FN i64 of_plus(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }

// The output is zero already. Halves are summed in `sums`, f32 and zero too, and rounded once.
extern "C" __global__ void __launch_bounds__(256)
scatter_sum(T* out, A* sums, const T* values, const I* ids, u64 lines, u64 count, u64 rows, u64 inner, i64 first,
            i64 logical, of_fault* fault, u64 ticket) {
    const u64 stride = (u64)gridDim.x * 256;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < lines; i += stride) {
        const u64 a = i / inner, b = i - a * inner;
        for (u64 j = 0; j < count; ++j) {
            const u64 at = (a * count + j) * inner + b;
            const i64 id = (i64)ids[at];
            if (id < 0 || id >= logical) of_report(fault, ticket, id, 0, logical);
            if (id < first || id - first >= (i64)rows) continue;
            const u64 to = (a * rows + (u64)(id - first)) * inner + b;
#if WHOLE
            sums[to] = of_plus(sums[to], of_get<A>(values[at]));
#else
            of_set(out[to], of_plus(of_get<A>(out[to]), of_get<A>(values[at])));
#endif
        }
#if WHOLE
        for (u64 r = 0; r < rows; ++r) {
            const u64 to = (a * rows + r) * inner + b;
            of_set(out[to], sums[to]);
        }
#endif
    }
}
#endif
