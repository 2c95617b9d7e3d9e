// The kernel of a program that computes each element of its output from the elements of its inputs at the same index.
// The text that includes this says what is computed:
//   TO, T0, T1 …     the types in memory of the output and the inputs
//   OF_N, OF_S       how many inputs and scalars
//   OF_EACH(X)       X(0) X(1) … for the inputs
//   OF_REPORTS       defined where the program reports values (of_report): then k.fault and k.ticket are there
//   OF_COMPUTE(y, X) sets the element `y` from the elements X(0), X(1) … and the scalars k.s
// and the host says how it is to be walked (kernels/src/cuda/pointwise.rs):
//   OF_V       elements that are loaded and stored at once
//   OF_U       vectors that a thread has in flight
//   OF_MODES   two bits an input: 1, it is one element along the inner dim; 2, it is the same in every row
//   OF_OUTER   0: all is one row. Else the number of dims outside the inner one
//   OF_STRIDED 1: the inner dim has strides of any kind (then OF_V is 1)
// An input may be the very memory of the output: an element is read by the thread that writes it, and before.
#pragma once
#include "prelude.cuh"

#ifdef OF_REPORTS
#define OF_REPORT_TO of_fault* fault; u64 ticket;
#else
#define OF_REPORT_TO
#endif
#define OF_ROOM(n) ((n) > 0 ? (n) : 1)
#define OF_ONE(i) ((OF_MODES >> (2 * (i)) & 1) != 0)
#define OF_SAME(i) ((OF_MODES >> (2 * (i)) & 2) != 0)

// What a thread holds of an input: one vector, or one for each that it has in flight.
template <typename E, int WIDTH, int COUNT> struct of_held {
    of_vec<E, WIDTH> at[COUNT];
    __device__ __forceinline__ void load(int u, const void* from, i64 offset) {
        at[COUNT == 1 ? 0 : u] = of_load<E, WIDTH>((const E*)from + offset);
    }
    __device__ __forceinline__ E get(int u, int e) const { return at[COUNT == 1 ? 0 : u].at[WIDTH == 1 ? 0 : e]; }
};

#if OF_OUTER == 0

struct of_args {
    u64 n;
    void* out;
    const void* x[OF_ROOM(OF_N)];
    u64 s[OF_ROOM(OF_S)];
    OF_REPORT_TO
};

extern "C" __global__ void __launch_bounds__(256) pointwise(of_args k) {
    const u64 vectors = k.n / OF_V, first = (u64)blockIdx.x * (256 * OF_U) + threadIdx.x;
    TO* out = (TO*)k.out;
#define OF_X(i)                                                                                                        \
    of_held<T##i, OF_ONE(i) ? 1 : OF_V, OF_ONE(i) ? 1 : OF_U> x##i;                                                    \
    if (OF_ONE(i)) x##i.load(0, k.x[i], 0);
    OF_EACH(OF_X)
#undef OF_X
#pragma unroll
    for (int u = 0; u < OF_U; u++) {
        const u64 at = first + u * 256;
        if (at < vectors) {
#define OF_X(i) if (!OF_ONE(i)) x##i.load(u, k.x[i], (i64)(at * OF_V));
            OF_EACH(OF_X)
#undef OF_X
        }
    }
#pragma unroll
    for (int u = 0; u < OF_U; u++) {
        const u64 at = first + u * 256;
        if (at < vectors) {
            of_vec<TO, OF_V> y;
#pragma unroll
            for (int e = 0; e < OF_V; e++) {
#define OF_X(i) x##i.get(u, e)
                OF_COMPUTE(y.at[e], OF_X);
#undef OF_X
            }
            of_store(out + at * OF_V, y);
        }
    }
    // What is no whole vector.
    if (OF_V > 1 && blockIdx.x == gridDim.x - 1) {
        const u64 at = vectors * OF_V + threadIdx.x;
        if (at < k.n) {
            TO y;
#define OF_X(i) ((const T##i*)k.x[i])[OF_ONE(i) ? 0 : at]
            OF_COMPUTE(y, OF_X);
#undef OF_X
            out[at] = y;
        }
    }
}

#else

struct of_args {
    u64 rows, width;   // of the walk; the width in vectors
    u64 tiles, repeat; // blocks beside each other along a row; rows of a thread
    u64 size[OF_OUTER], step[OF_OUTER]; // of the outer dims; from one row of a thread to its next, as digits of those
    i64 inner[OF_N + 1];                // strides: the output's, then the inputs'
    i64 outer[OF_N + 1][OF_OUTER];
    void* out;
    const void* x[OF_ROOM(OF_N)];
    u64 s[OF_ROOM(OF_S)];
    OF_REPORT_TO
};

// A thread has one column (of vectors) and goes down the rows: it divides once, then counts on.
extern "C" __global__ void __launch_bounds__(256) pointwise(of_args k) {
    const u32 tile = blockIdx.x / (u32)k.tiles;
    const u64 column = (u64)(blockIdx.x - tile * (u32)k.tiles) * blockDim.x + threadIdx.x;
    u64 row = tile * (blockDim.y * k.repeat) + threadIdx.y;
    if (column >= k.width || row >= k.rows) return;
    u64 at[OF_OUTER];
    if (k.rows <= 0xffffffffull) {
        // Divisions of 64 bits take several times as long.
        u32 rest = (u32)row;
#pragma unroll
        for (int d = OF_OUTER - 1; d > 0; d--) {
            const u32 next = rest / (u32)k.size[d];
            at[d] = rest - next * (u32)k.size[d];
            rest = next;
        }
        at[0] = rest;
    } else {
        u64 rest = row;
#pragma unroll
        for (int d = OF_OUTER - 1; d > 0; d--) {
            const u64 next = rest / k.size[d];
            at[d] = rest - next * k.size[d];
            rest = next;
        }
        at[0] = rest;
    }
#define OF_BESIDE(i, one) ((i64)column * (OF_STRIDED ? k.inner[i] : one ? 0 : OF_V))
    TO* out = (TO*)k.out + OF_BESIDE(0, false);
#define OF_X(i)                                                                                                        \
    const T##i* from##i = (const T##i*)k.x[i] + OF_BESIDE(i + 1, OF_ONE(i));                                           \
    of_held<T##i, OF_ONE(i) ? 1 : OF_V, OF_SAME(i) ? 1 : OF_U> x##i;                                                   \
    if (OF_SAME(i)) x##i.load(0, from##i, 0);
    OF_EACH(OF_X)
#undef OF_X
    for (u64 done = 0; done < k.repeat; done += OF_U) {
        i64 to[OF_U];
        bool inside[OF_U];
#pragma unroll
        for (int u = 0; u < OF_U; u++) {
            inside[u] = row < k.rows;
            if (inside[u]) {
                to[u] = 0;
#pragma unroll
                for (int d = 0; d < OF_OUTER; d++) to[u] += (i64)at[d] * k.outer[0][d];
#define OF_X(i)                                                                                                        \
    if (!OF_SAME(i)) {                                                                                                 \
        i64 offset = 0;                                                                                                \
        _Pragma("unroll") for (int d = 0; d < OF_OUTER; d++) offset += (i64)at[d] * k.outer[i + 1][d];                 \
        x##i.load(u, from##i, offset);                                                                                 \
    }
                OF_EACH(OF_X)
#undef OF_X
            }
            row += blockDim.y;
            u64 carry = 0;
#pragma unroll
            for (int d = OF_OUTER - 1; d >= 0; d--) {
                at[d] += k.step[d] + carry;
                carry = d > 0 && at[d] >= k.size[d];
                if (carry) at[d] -= k.size[d];
            }
        }
#pragma unroll
        for (int u = 0; u < OF_U; u++) {
            if (inside[u]) {
                of_vec<TO, OF_V> y;
#pragma unroll
                for (int e = 0; e < OF_V; e++) {
#define OF_X(i) x##i.get(u, e)
                    OF_COMPUTE(y.at[e], OF_X);
#undef OF_X
                }
                of_store(out + to[u], y);
            }
        }
    }
}

#endif
