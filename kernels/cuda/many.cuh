// Many tensors in one launch: a table of their addresses and lengths as the kernel's last parameter. Blocks are numbered
// through all tensors; each takes OF_MANY elements of one.
#pragma once
#include "rows.cuh"

// Elements of a block: 256 threads, 4 groups of 4 neighbours each.
#define OF_MANY 4096

// LIMIT entries of K tensors; with all other parameters it stays below 4 KiB.
template <int K, int LIMIT> struct of_many {
    u32 count;
    // The first block of each entry, and the number of all blocks behind the last.
    u32 first[LIMIT + 1];
    u64 len[LIMIT];
    void* at[LIMIT][K];
};

// Which entry this block is of.
template <int K, int LIMIT> OF_FN u32 of_entry(const of_many<K, LIMIT>& many) {
    u32 low = 0, high = many.count;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        if (many.first[middle] <= blockIdx.x) low = middle;
        else high = middle;
    }
    return low;
}

// Calls `f(i, 4)` for groups of this thread's elements of an entry where four neighbours can be loaded at once, else
// `f(i, 1)` for each: the second argument is a type whose `value` it is. USED: the first tensors, whose elements are meant.
template <int N> struct of_number { static const int value = N; };
template <int USED, int K, int LIMIT, typename F> OF_FN void of_each_of(const of_many<K, LIMIT>& many, u32 entry, F f) {
    const u64 start = (u64)(blockIdx.x - many.first[entry]) * OF_MANY, len = many.len[entry];
    u64 address = 0;
#pragma unroll
    for (int k = 0; k < USED; k++) address |= (u64)many.at[entry][k];
    if (address % 16 == 0 && start + OF_MANY <= len) {
#pragma unroll
        for (int k = 0; k < 4; k++) f(start + (k * 256 + threadIdx.x) * 4, of_number<4>());
    } else {
        for (u64 i = start + threadIdx.x; i < start + OF_MANY && i < len; i += 256) f(i, of_number<1>());
    }
}

template <int K, int LIMIT, typename F> OF_FN void of_each(const of_many<K, LIMIT>& many, u32 entry, F f) {
    of_each_of<K>(many, entry, f);
}

// The dims and strides of K tensors of one shape that are not contiguous.
template <int K> struct of_strided {
    u64 len;
    of_shape shape;
    of_strides strides[K];
};
