// Products of matrices with any strides: integers, and what cuBLASLt cannot describe (rows that repeat, steps in both dims).
//   T: the left operand's element, U: the right's, O: the output's.
#include "prelude.cuh"

// Tiles of the output and of the summed dim; a thread computes 4x4 elements 16 apart.
#define TILE 64
#define DEPTH 16
// Dims of a batch.
#define DIMS 6

struct of_product {
    i64 m, n, k;
    // Elements from row to row and from column to column.
    i64 a_row, a_column, b_row, b_column, c_row, c_column;
    i64 count;
    // Sizes of the batch's dims, outermost first (1 where there are fewer), and the steps in each operand.
    i64 size[DIMS], a_step[DIMS], b_step[DIMS], c_step[DIMS];
    // `zero_a` and `zero_b` are subtracted from the operands: the numbers that stand for zero in quantised ones.
    i32 accumulate, zero_a, zero_b, pad;
};

template <typename A> struct of_math {
    static __device__ __forceinline__ A multiply_add(A x, A y, A z) { return x * y + z; }
    static __device__ __forceinline__ A add(A x, A y) { return x + y; }
};
// Integers wrap.
template <> struct of_math<i64> {
    static __device__ __forceinline__ i64 multiply_add(i64 x, i64 y, i64 z) { return (i64)((u64)x * (u64)y + (u64)z); }
    static __device__ __forceinline__ i64 add(i64 x, i64 y) { return (i64)((u64)x + (u64)y); }
};

extern "C" __global__ void __launch_bounds__(256) matmul(const T* a, const U* b, O* c, of_product p) {
    typedef acc_t<T> A;
    // One more column: the threads that fill a column of `left` meet different banks.
    __shared__ A left[DEPTH][TILE + 1];
    __shared__ A right[DEPTH][TILE + 1];
    const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    const i64 across = (p.n + TILE - 1) / TILE;
    const i64 row0 = (i64)(blockIdx.x / across) * TILE, column0 = (i64)(blockIdx.x % across) * TILE;
    // Neighbours in memory are read by neighbouring threads, whichever dim that is.
    const bool a_along_k = p.a_column == 1, b_along_k = p.b_row == 1;
    for (i64 index = blockIdx.y; index < p.count; index += gridDim.y) {
        const T* from_a = a;
        const U* from_b = b;
        O* to = c;
        u64 rest = (u64)index;
#pragma unroll
        for (int d = DIMS - 1; d >= 0; d--) {
            if (p.size[d] == 1) continue;
            u64 next = rest / (u64)p.size[d];
            i64 at = (i64)(rest - next * (u64)p.size[d]);
            from_a += at * p.a_step[d], from_b += at * p.b_step[d], to += at * p.c_step[d];
            rest = next;
        }
        A sum[4][4];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i][j] = (A)0;
        for (i64 k0 = 0; k0 < p.k; k0 += DEPTH) {
#pragma unroll
            for (int s = 0; s < TILE * DEPTH / 256; s++) {
                int e = s * 256 + (int)threadIdx.x;
                int ka = a_along_k ? e % DEPTH : e / TILE, ia = a_along_k ? e / DEPTH : e % TILE;
                int kb = b_along_k ? e % DEPTH : e / TILE, jb = b_along_k ? e / DEPTH : e % TILE;
                bool in_a = row0 + ia < p.m && k0 + ka < p.k, in_b = column0 + jb < p.n && k0 + kb < p.k;
                left[ka][ia] = in_a ? of_get<A>(from_a[(row0 + ia) * p.a_row + (k0 + ka) * p.a_column]) - (A)p.zero_a : (A)0;
                right[kb][jb] = in_b ? of_get<A>(from_b[(k0 + kb) * p.b_row + (column0 + jb) * p.b_column]) - (A)p.zero_b : (A)0;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                A x[4], y[4];
#pragma unroll
                for (int i = 0; i < 4; i++) x[i] = left[k][ty + 16 * i], y[i] = right[k][tx + 16 * i];
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int j = 0; j < 4; j++) sum[i][j] = of_math<A>::multiply_add(x[i], y[j], sum[i][j]);
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                i64 row = row0 + ty + 16 * i, column = column0 + tx + 16 * j;
                if (row >= p.m || column >= p.n) continue;
                O* at = to + row * p.c_row + column * p.c_column;
                A value = p.accumulate ? of_math<A>::add(of_get<A>(*at), sum[i][j]) : sum[i][j];
                of_set(*at, value);
            }
    }
}
