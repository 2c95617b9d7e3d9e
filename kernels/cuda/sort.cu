// Lines in order, by a bitonic network over pairs of a key and a position. All pairs differ, so equal elements keep their order.
//   T: the element. WIDE: 0 where key and position have 32 bits each, 1 where they have 64.
//
// Each line has a power of two of places (`room`); those behind its end have the greatest pair. TILE pairs are sorted in shared memory.
#include "prelude.cuh"

// ---- keys: unsigned integers in the order of the elements; NaN is the greatest ---------------------------------------------

#define OF_TOP 0x8000000000000000ull
OF_FN u64 key_of(b8 x) { return x.bits != 0; }
OF_FN u64 key_of(u8 x) { return x; }
OF_FN u64 key_of(i8 x) { return (u8)x ^ 0x80u; }
// i16 and u16 are keys as i32.
OF_FN u64 key_of(u32 x) { return x; }
OF_FN u64 key_of(i32 x) { return (u32)x ^ 0x80000000u; }
OF_FN u64 key_of(i64 x) { return (u64)x ^ OF_TOP; }
// Of the bits of a float with the sign at `top`: negative ones in reverse, above them the others; -0 is 0.
OF_FN u64 float_key(u64 bits, u64 top, u64 infinity) {
    const u64 size = bits & (top - 1);
    if (size > infinity) return 2 * top - 1;
    return size == 0 || !(bits & top) ? size | top : ~bits & (top - 1);
}
OF_FN u64 key_of(f16 x) { return float_key(x.bits, 0x8000u, 0x7c00u); }
OF_FN u64 key_of(bf16 x) { return float_key(x.bits, 0x8000u, 0x7f80u); }
OF_FN u64 key_of(f32 x) { return float_key(__float_as_uint(x), 0x80000000u, 0x7f800000u); }
OF_FN u64 key_of(f64 x) { return float_key((u64)__double_as_longlong(x), OF_TOP, 0x7ff0000000000000ull); }

// ---- pairs ------------------------------------------------------------------------------------------------------------

#if WIDE
struct P { u64 key, at; };
OF_FN P pair_of(u64 key, u64 at) { P p; p.key = key; p.at = at; return p; }
OF_FN bool less(P a, P b) { return a.key < b.key || (a.key == b.key && a.at < b.at); }
OF_FN u64 key_in(P p) { return p.key; }
OF_FN u64 at_in(P p) { return p.at; }
#define OF_LAST pair_of(~0ull, ~0ull)
#define OF_KEY ~0ull
#else
typedef u64 P;
OF_FN P pair_of(u64 key, u64 at) { return key << 32 | at; }
OF_FN bool less(P a, P b) { return a < b; }
OF_FN u64 key_in(P p) { return p >> 32; }
OF_FN u64 at_in(P p) { return p & 0xffffffffull; }
#define OF_LAST ~0ull
#define OF_KEY 0xffffffffull
#endif

#define TILE 2048
#define THREADS 256

// Element i of a line, counted in x.
OF_FN u64 place_in(u64 line, u64 i, u64 n, u64 inner) { return (line / inner * n + i) * inner + line % inner; }

extern "C" __global__ void __launch_bounds__(THREADS)
sort_load(const T* x, P* pairs, u64 lines, u64 n, u64 inner, u64 room, i32 inverted) {
    const u64 stride = (u64)gridDim.x * THREADS;
    for (u64 k = (u64)blockIdx.x * THREADS + threadIdx.x; k < lines * room; k += stride) {
        const u64 line = k / room, i = k - line * room;
        P p = OF_LAST;
        if (i < n) {
            const u64 key = key_of(x[place_in(line, i, n, inner)]);
            p = pair_of(inverted ? ~key & OF_KEY : key, i);
        }
        pairs[k] = p;
    }
}

// Puts places k and k + step of blocks of `size` places in order, in blocks of odd number in reverse.
OF_FN void exchange(P& low, P& high, bool reverse) {
    if (less(high, low) != reverse) {
        const P p = low;
        low = high;
        high = p;
    }
}
// The lower place of exchange number t at distance `step`.
OF_FN u64 lower(u64 t, u64 step) { return 2 * t - (t & (step - 1)); }

// All steps up to blocks of `last` places that stay in a tile, from blocks of `first` places.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_tiles(P* pairs, u64 total, u64 room, u64 first, u64 last) {
    __shared__ P tile[TILE];
    const u64 base = (u64)blockIdx.x * TILE;
    for (u32 i = threadIdx.x; i < TILE; i += THREADS) tile[i] = base + i < total ? pairs[base + i] : OF_LAST;
    __syncthreads();
    for (u64 size = first; size <= last; size *= 2) {
        for (u64 step = size / 2 < TILE / 2 ? size / 2 : TILE / 2; step > 0; step /= 2) {
            for (u32 t = threadIdx.x; t < TILE / 2; t += THREADS) {
                const u64 k = lower(t, step);
                exchange(tile[k], tile[k + step], ((base + k) & (room - 1) & size) != 0);
            }
            __syncthreads();
        }
    }
    for (u32 i = threadIdx.x; i < TILE; i += THREADS) {
        if (base + i < total) pairs[base + i] = tile[i];
    }
}

// One step that crosses tiles.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_far(P* pairs, u64 total, u64 room, u64 size, u64 step) {
    const u64 stride = (u64)gridDim.x * THREADS;
    for (u64 t = (u64)blockIdx.x * THREADS + threadIdx.x; t < total / 2; t += stride) {
        const u64 k = lower(t, step);
        exchange(pairs[k], pairs[k + step], (k & (room - 1) & size) != 0);
    }
}

// `count` elements of each sorted line from place `first` on, and where they stood. `nan`: where a line has NaN, the first of them.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_store(const T* x, const P* pairs, T* values, i64* indices, u64 lines, u64 n, u64 inner, u64 room, u64 first, u64 count,
           i32 nan) {
    const u64 stride = (u64)gridDim.x * THREADS;
    for (u64 k = (u64)blockIdx.x * THREADS + threadIdx.x; k < lines * count; k += stride) {
        // The elements of a line are `inner` apart in the outputs too.
        const u64 block = k / (count * inner), i = k / inner % count, line = block * inner + k % inner;
        const P* sorted = pairs + line * room;
        u64 from = first + i;
        const u64 top = sizeof(T) == 8 ? ~0ull : (1ull << (8 * sizeof(T) % 64)) - 1;
        if (nan && key_in(sorted[n - 1]) == top) {
            u64 low = 0, high = n - 1;
            while (low < high) {
                const u64 middle = (low + high) / 2;
                if (key_in(sorted[middle]) == top) high = middle;
                else low = middle + 1;
            }
            from = low;
        }
        const u64 at = at_in(sorted[from]);
        values[k] = x[place_in(line, at, n, inner)];
        indices[k] = (i64)at;
    }
}
