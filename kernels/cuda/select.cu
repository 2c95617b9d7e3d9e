// Elements chosen by their values, in row-major order.
//   T: what is tested; a mask is b8. M: an element that is moved, by its size.
//
// The tensor is cut into pieces, one a block. chosen_counts leaves what each piece has; the others add up the pieces before
// theirs, and find the places in their own by a vote a warp.
#include "prelude.cuh"

#define BLOCK 256
#define WARPS (BLOCK / 32)

struct sum_op {
    static __device__ __forceinline__ u64 of(u64 a, u64 b) { return a + b; }
};

// Not zero; NaN is not. Integers are compared as such: the bits of a large one may round to nothing.
OF_FN bool chosen(const T& x) { return of_get<acc_t<T>>(x) != (acc_t<T>)0; }

extern "C" __global__ void __launch_bounds__(BLOCK) chosen_counts(const T* x, u64* counts, u64 n, u64 piece) {
    __shared__ u64 room[32];
    const u64 begin = blockIdx.x * piece, end = begin + piece < n ? begin + piece : n;
    u64 mine = 0;
    for (u64 i = begin + threadIdx.x; i < end; i += BLOCK) mine += chosen(x[i]) ? 1 : 0;
    const u64 all = of_block_reduce<sum_op>(mine, (u64)0, room);
    if (threadIdx.x == 0) counts[blockIdx.x] = all;
}

// How many are chosen in the pieces before this one.
OF_FN u64 before(const u64* counts) {
    __shared__ u64 room[32];
    u64 mine = 0;
    for (u32 b = threadIdx.x; b < blockIdx.x; b += BLOCK) mine += counts[b];
    return of_block_reduce<sum_op>(mine, (u64)0, room);
}

// Calls f(i, k) for each chosen element i of this block's piece, the k-th of all; returns how many are chosen up to its end.
template <typename F> OF_FN u64 each_chosen(const T* x, const u64* counts, u64 n, u64 piece, F f) {
    __shared__ u32 found[WARPS];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u64 begin = blockIdx.x * piece, end = begin + piece < n ? begin + piece : n;
    u64 base = before(counts);
    for (u64 first = begin; first < end; first += BLOCK) {
        const u64 i = first + threadIdx.x;
        const bool mine = i < end && chosen(x[i]);
        const u32 votes = __ballot_sync(OF_FULL, mine);
        __syncthreads();
        if (lane == 0) found[warp] = __popc(votes);
        __syncthreads();
        u64 k = base;
        for (u32 w = 0; w < WARPS; w++) {
            if (w < warp) k += found[w];
            base += found[w];
        }
        if (mine) f(i, k + __popc(votes & ((1u << lane) - 1u)));
    }
    return base;
}

// Rows of indices; row-major positions are counted from `from`. Where the tensor has changed since it was counted, what has no
// row is left out.
extern "C" __global__ void __launch_bounds__(BLOCK)
chosen_indices(const __grid_constant__ of_shape shape, const __grid_constant__ of_strides from, const T* x, i64* out,
               const u64* counts, u64 n, u64 piece, u64 rows) {
    const int rank = shape.rank;
    each_chosen(x, counts, n, piece, [&](u64 i, u64 k) {
        if (k >= rows) return;
        for (int d = rank - 1; d >= 0; d--) {
            const u64 next = i / (u64)shape.size[d];
            out[k * rank + d] = (i64)(i - next * (u64)shape.size[d]) + from.at[d];
            i = next;
        }
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
chosen_values(const T* mask, const M* x, M* out, const u64* counts, u64 n, u64 piece, u64 room) {
    each_chosen(mask, counts, n, piece, [&](u64 i, u64 k) {
        if (k < room) out[k] = x[i];
    });
}

// The output, which has `len` elements from number `first` on, is zero already.
extern "C" __global__ void __launch_bounds__(BLOCK)
spread_values(const T* mask, const M* values, M* out, const u64* counts, u64 n, u64 piece, u64 have, u64 first, u64 len,
              of_fault* fault, u64 ticket) {
    const u64 all = each_chosen(mask, counts, n, piece, [&](u64 i, u64 k) {
        if (k < have && i >= first && i < first + len) out[i - first] = values[k];
    });
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0 && all != have) {
        of_report(fault, ticket, (i64)all, (i64)have, (i64)have + 1);
    }
}
