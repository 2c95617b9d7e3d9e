// A tensor as rows, and what several threads that share a row do together.
#pragma once
#include "prelude.cuh"

// A parameter struct that stays in constant memory, also where its arrays are indexed by variables.
#define OF_PARAM const __grid_constant__

// `count` rows of `len` elements, the same for N tensors: where row r starts follows from `outer`, where its element i lies
// from `inner` (one dim nearly always). A tensor of one row has zeros in `starts`, one of a number per row in `steps`.
template <int N> struct of_rows {
    u64 count;
    i64 len;
    of_shape outer;
    of_shape inner;
    of_strides starts[N];
    of_strides steps[N];
};

// The offset of element `i` as of_offset gives it, with 32-bit divisions where the index type is u32.
template <typename I> OF_FN i64 of_at(I i, const of_shape& shape, const of_strides& strides) {
    i64 offset = 0;
#pragma unroll 1
    for (int d = shape.rank - 1; d > 0; d--) {
        I size = (I)shape.size[d], next = i / size;
        offset += (i64)(i - next * size) * strides.at[d];
        i = next;
    }
    return offset + (shape.rank > 0 ? (i64)i * strides.at[0] : 0);
}

// N neighbouring elements, aligned to their size together or to 16 bytes, from and to arithmetic values.
template <int N, typename T, typename A> OF_FN void of_read(const T* from, A* to) {
    if constexpr (N * sizeof(T) > 16) {
        of_read<N / 2>(from, to);
        of_read<N / 2>(from + N / 2, to + N / 2);
    } else {
        const of_vec<T, N> v = of_load<T, N>(from);
#pragma unroll
        for (int k = 0; k < N; k++) to[k] = of_get<A>(v.at[k]);
    }
}
template <int N, typename T, typename A> OF_FN void of_write(T* to, const A* from) {
    if constexpr (N * sizeof(T) > 16) {
        of_write<N / 2>(to, from);
        of_write<N / 2>(to + N / 2, from + N / 2);
    } else {
        of_vec<T, N> v;
#pragma unroll
        for (int k = 0; k < N; k++) of_set(v.at[k], from[k]);
        of_store(to, v);
    }
}

// Passes NaN over.
struct of_larger_op {
    static __device__ __forceinline__ f32 of(f32 a, f32 b) { return fmaxf(a, b); }
    static __device__ __forceinline__ f64 of(f64 a, f64 b) { return fmax(a, b); }
};

// The reduction over N neighbouring threads (a power of two up to a warp) or over a block (larger N), on every one of them.
// All threads of the warp, or block, take part. `room` is as for of_block_reduce.
template <int N, typename Op, typename A> OF_FN A of_group_reduce(A x, A identity, A* room) {
    if constexpr (N > 32) {
        return of_block_reduce<Op>(x, identity, room);
    } else {
#pragma unroll
        for (int step = N / 2; step > 0; step >>= 1) x = Op::of(x, __shfl_xor_sync(OF_FULL, x, step));
        return x;
    }
}

template <typename A> OF_FN A of_infinity() { return (A)OF_INF; }
// What exponents of a row are shifted by: its largest element, but nothing where that is infinite. The sum of exponentials
// is then NaN only where an element is.
template <typename A> OF_FN A of_shift(A largest) { return largest - largest == (A)0 ? largest : (A)0; }

// exp for elements of type E: for halves in two instructions, whose error (2^-23 times the exponent) is far below what a half
// shows. What is below f32's normal numbers becomes zero then.
template <typename E, typename A> OF_FN A of_exp_for(A x) {
    if constexpr (sizeof(E) == 2) return of_fast_exp2(x * 1.4426950408889634f);
    else return exp(x);
}

// A maximum and the sum of exponentials under it, built element by element and joined in any order.
template <typename A> struct of_online {
    A largest, sum;
    __device__ __forceinline__ of_online() : largest(-of_infinity<A>()), sum(0) {}
    // The sum under another maximum. What is still empty stays so: the factor may overflow then.
    __device__ __forceinline__ A under(A other) const {
        return sum == (A)0 || largest == other ? sum : sum * exp(of_shift(largest) - of_shift(other));
    }
    // The largest of new elements, before they are added one by one.
    __device__ __forceinline__ void raise(A to) {
        if (to > largest) {
            sum = under(to);
            largest = to;
        }
    }
    template <typename E> __device__ __forceinline__ void add(E, A x) { sum += of_exp_for<E>(x - of_shift(largest)); }
    // log(sum(exp(x))); an infinity is the result where it is the largest element, unless there is a NaN.
    __device__ __forceinline__ A log_sum() const {
        if (largest - largest == (A)0) return largest + log(sum);
        return sum != sum ? sum : largest;
    }
};
// Joined over a group of N threads as of_group_reduce does.
template <int N, typename A> OF_FN of_online<A> of_group_online(of_online<A> mine, A* room) {
    of_online<A> all;
    all.largest = of_group_reduce<N, of_larger_op>(mine.largest, -of_infinity<A>(), room);
    all.sum = of_group_reduce<N, of_sum_op>(mine.under(all.largest), (A)0, room);
    return all;
}
