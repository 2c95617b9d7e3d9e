// Running sums along a dim of contiguous tensors, in f64 or i64.
//   T, O: elements of the input and the output. ROW: threads that share a row (32 or 256). REVERSE: 1 where the sums run
//   from the end of a line.
//
// A line of `n` elements is cut into pieces. Where there are several, scan_sums leaves what each adds up to, and the piece
// starts with the sum of those before it, always added in the same order.
#include "rows.cuh"

template <typename V> struct total_of { typedef f64 type; };
template <> struct total_of<i64> { typedef i64 type; };
typedef typename total_of<acc_t<T>>::type A;

// Elements of a thread at a time.
#define EACH 8
#define GROUPS (256 / ROW)
// Where element i of a line of n stands, counted from where the sums start.
#define PLACE(i) (REVERSE ? n - 1 - (i) : (i))

// The sum of what lanes before this one give, over ROW threads, and of all. `room` as for of_block_reduce.
OF_FN A before(A x, A& all, A* room) {
    const int lane = threadIdx.x % 32;
    A sum = x;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const A other = __shfl_up_sync(OF_FULL, sum, step);
        if (lane >= step) sum = other + sum;
    }
    const A last = __shfl_up_sync(OF_FULL, sum, 1);
    A start = lane > 0 ? last : (A)0;
    all = __shfl_sync(OF_FULL, sum, 31);
    if (ROW > 32) {
        const int warp = threadIdx.x / 32;
        __syncthreads();
        if (lane == 31) room[warp] = sum;
        __syncthreads();
        A ahead = 0;
        all = 0;
        for (int w = 0; w < ROW / 32; w++) {
            if (w == warp) ahead = all;
            all += room[w];
        }
        start = ahead + start;
    }
    return start;
}

// What the pieces before this one of a line add up to.
OF_FN A carried(const A* sums, u64 stride, u32 piece) {
    A carry = 0;
    for (u32 k = 0; k < piece; k++) carry += sums[k * stride];
    return carry;
}

// Lines whose elements are neighbours, by ROW threads each.
extern "C" __global__ void __launch_bounds__(256)
    scan_rows(const T* x, O* out, A* sums, u64 lines, u64 n, u64 piece, i32 only_sums) {
    __shared__ A room[8];
    const int lane = threadIdx.x % ROW;
    const u64 begin = blockIdx.y * piece, end = begin + piece < n ? begin + piece : n;
    for (u64 base = (u64)blockIdx.x * GROUPS; base < lines; base += (u64)gridDim.x * GROUPS) {
        const u64 line = base + threadIdx.x / ROW;
        const bool here = line < lines;
        const T* from = x + line * n;
        O* to = out + line * n;
        A carry = sums && !only_sums && here ? carried(sums + line, lines, blockIdx.y) : (A)0;
        for (u64 first = begin; first < end; first += ROW * EACH) {
            const u64 at = first + (u64)lane * EACH;
            A v[EACH], sum = 0, all;
#pragma unroll
            for (int k = 0; k < EACH; k++) v[k] = here && at + k < end ? of_get<A>(from[PLACE(at + k)]) : (A)0;
#pragma unroll
            for (int k = 0; k < EACH; k++) sum += v[k];
            A running = carry + before(sum, all, room);
            carry += all;
            if (only_sums) continue;
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                running += v[k];
                if (here && at + k < end) of_set(to[PLACE(at + k)], running);
            }
        }
        if (only_sums && here && lane == 0) sums[blockIdx.y * lines + line] = carry;
    }
}

// Lines beside each other, a thread for each: elements of a line are `inner` apart.
extern "C" __global__ void __launch_bounds__(256)
    scan_columns(const T* x, O* out, A* sums, u64 lines, u64 n, u64 inner, u64 piece, i32 only_sums) {
    const u64 begin = blockIdx.y * piece, end = begin + piece < n ? begin + piece : n;
    for (u64 line = (u64)blockIdx.x * 256 + threadIdx.x; line < lines; line += (u64)gridDim.x * 256) {
        const u64 start = line / inner * inner * n + line % inner;
        A carry = sums && !only_sums ? carried(sums + line, lines, blockIdx.y) : (A)0;
#pragma unroll 4
        for (u64 i = begin; i < end; i++) {
            carry += of_get<A>(x[start + PLACE(i) * inner]);
            if (!only_sums) of_set(out[start + PLACE(i) * inner], carry);
        }
        if (only_sums) sums[blockIdx.y * lines + line] = carry;
    }
}
