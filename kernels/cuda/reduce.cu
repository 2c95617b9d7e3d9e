// Reductions over dims, and the positions of extremes.
//   T, O: elements of the input and the output. TRUTH: 1 where an element counts as whether it is not zero.
//   OP: 0 sum, 1 largest, 2 smallest, 3 product, 4 position of the largest, 5 of the smallest.
//   VEC: elements loaded at once. ROW: threads that share an output (reduce_rows). WIDE: 1 where indices need 64 bits.
//
// Elements of one output are added in an order that depends on shapes and strides only. Where outputs are few, their
// elements are cut into pieces, and reduce_finish joins what the pieces gave.
#include "rows.cuh"

#define SUM 0
#define LARGEST 1
#define SMALLEST 2
#define PRODUCT 3
#define POSITIONS (OP >= 4)
#define UNROLL 4

#if WIDE
typedef u64 I;
#else
typedef u32 I;
#endif

struct of_reduce {
    u64 outputs, count, piece;
    of_shape kept;
    of_shape reduced;
    of_strides kept_x, kept_out, reduced_x;
    f64 divisor; // of sums: a mean's number of elements, else 1
};

template <typename X, typename Y> struct same { static const bool value = false; };
template <typename X> struct same<X, X> { static const bool value = true; };
template <bool C, typename X, typename Y> struct either { typedef X type; };
template <typename X, typename Y> struct either<false, X, Y> { typedef Y type; };

typedef typename either<TRUTH, i64, acc_t<T>>::type Native;
#define FLOATING (!same<Native, i64>::value)
// Products of floats overflow and lose digits too early in f32.
typedef typename either<FLOATING && OP == PRODUCT, f64, Native>::type A;

OF_FN A value_of(T x) { return TRUTH ? (A)(of_get<acc_t<T>>(x) != 0) : of_get<A>(x); }

template <typename V> OF_FN V apply(V a, V b) {
    if constexpr (same<V, i64>::value && (OP == SUM || OP == PRODUCT))
        return OP == SUM ? (V)((u64)a + (u64)b) : (V)((u64)a * (u64)b); // they wrap
    else
        return OP == SUM ? a + b : OP == PRODUCT ? a * b : OP == LARGEST ? of_max_op::of(a, b) : of_min_op::of(a, b);
}
template <typename V> OF_FN V identity() {
    if constexpr (OP == SUM || OP == PRODUCT) return (V)(OP == PRODUCT);
    else if constexpr (FLOATING) return OP == LARGEST ? -of_infinity<V>() : of_infinity<V>();
    else return OP == LARGEST ? -0x7fffffffffffffffLL - 1 : 0x7fffffffffffffffLL;
}

#if POSITIONS
// A value and where it stands; at -1 there is none yet. The first of equals; NaN is beyond everything.
struct Part {
    A value;
    i64 at;
};
typedef Part Total;
OF_FN Part nothing() { return Part{(A)0, -1}; }
OF_FN Part part_of(T x, i64 at) { return Part{value_of(x), at}; }
OF_FN Part join(Part a, Part b) {
    const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
    const bool beats = nan_a || nan_b ? !nan_a : OP == 4 ? b.value > a.value : b.value < a.value;
    const bool equal = nan_a ? nan_b : a.value == b.value;
    return a.at < 0 || (b.at >= 0 && (equal ? b.at < a.at : beats)) ? b : a;
}
OF_FN Part across(Part x, int step) {
    return Part{__shfl_xor_sync(OF_FULL, x.value, step), __shfl_xor_sync(OF_FULL, x.at, step)};
}
OF_FN Total widened(Part x) { return x; }
OF_FN void put(O& to, Part x, const of_reduce&) { of_set(to, x.at); }
#else
typedef A Part;
// Pieces of floats are joined in f64, so that the error does not grow with their number.
typedef typename either<FLOATING && OP == SUM, f64, A>::type Total;
OF_FN Part nothing() { return identity<A>(); }
OF_FN Part part_of(T x, i64) { return value_of(x); }
template <typename V> OF_FN V join(V a, V b) { return apply(a, b); }
template <typename V> OF_FN V across(V x, int step) { return __shfl_xor_sync(OF_FULL, x, step); }
OF_FN Total widened(Part x) { return (Total)x; }
template <typename V> OF_FN void put(O& to, V x, const of_reduce& p) {
    if (OP == SUM && p.divisor != 1.0) of_set(to, (f64)x / p.divisor);
    else of_set(to, x);
}
#endif

// Joined over a warp's groups of N threads, on every one.
template <int N, typename V> OF_FN V joined(V x) {
#pragma unroll
    for (int step = N / 2; step > 0; step >>= 1) x = join(x, across(x, step));
    return x;
}

// A result of a piece: the output itself where there is one piece only.
OF_FN void emit(O* out, Part* parts, const of_reduce& p, u64 output, u32 piece, Part x) {
    if (parts) parts[piece * p.outputs + output] = x;
    else put(out[of_at<I>((I)output, p.kept, p.kept_out)], x, p);
}

// ROW threads (a warp's, or the block's 256) for an output: what is reduced lies closer together than outputs do.
extern "C" __global__ void __launch_bounds__(256) reduce_rows(const T* x, O* out, Part* parts, OF_PARAM of_reduce p) {
    __shared__ Part room[8];
    const int lane = threadIdx.x % ROW, groups = 256 / ROW;
    const u64 begin = blockIdx.y * p.piece, end = begin + p.piece < p.count ? begin + p.piece : p.count;
    for (u64 base = (u64)blockIdx.x * groups; base < p.outputs; base += (u64)gridDim.x * groups) {
        const u64 output = base + threadIdx.x / ROW;
        const bool here = output < p.outputs;
        const T* from = x + of_at<I>((I)(here ? output : 0), p.kept, p.kept_x);
        Part part[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; k++) part[k] = nothing();
        for (u64 first = begin + lane * VEC; here && first < end; first += ROW * VEC * UNROLL) {
            of_vec<T, VEC> v[UNROLL];
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                const u64 i = first + k * ROW * VEC;
                if (i < end) v[k] = of_load<T, VEC>(from + of_at<I>((I)i, p.reduced, p.reduced_x));
            }
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                const u64 i = first + k * ROW * VEC;
                if (i >= end) continue;
#pragma unroll
                for (int j = 0; j < VEC; j++) part[k] = join(part[k], part_of(v[k].at[j], (i64)i + j));
            }
        }
        Part all = joined<(ROW > 32 ? 32 : ROW)>(join(join(part[0], part[1]), join(part[2], part[3])));
        if (ROW > 32) {
            __syncthreads();
            if (lane % 32 == 0) room[lane / 32] = all;
            __syncthreads();
            all = joined<8>(room[lane % 8]);
        }
        if (here && lane == 0) emit(out, parts, p, output, blockIdx.y, all);
    }
}

// Outputs beside each other in the input: a lane takes VEC of them, and `warps` warps of the block share their elements.
extern "C" __global__ void __launch_bounds__(256)
    reduce_columns(const T* x, O* out, Part* parts, i32 warps, OF_PARAM of_reduce p) {
    __shared__ Part room[8][32 * VEC];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, mine = warp % warps;
    const u64 begin = blockIdx.y * p.piece, end = begin + p.piece < p.count ? begin + p.piece : p.count;
    const u64 each = (u64)(8 / warps) * 32 * VEC;
    for (u64 base = blockIdx.x * each; base < p.outputs; base += gridDim.x * each) {
        const u64 output = base + (u64)(warp / warps) * 32 * VEC + lane * VEC;
        const bool here = output < p.outputs;
        const T* from = x + of_at<I>((I)(here ? output : 0), p.kept, p.kept_x);
        Part part[VEC];
#pragma unroll
        for (int j = 0; j < VEC; j++) part[j] = nothing();
        for (u64 first = begin + mine; here && first < end; first += warps * UNROLL) {
            of_vec<T, VEC> v[UNROLL];
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                const u64 i = first + k * warps;
                if (i < end) v[k] = of_load<T, VEC>(from + of_at<I>((I)i, p.reduced, p.reduced_x));
            }
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                const u64 i = first + k * warps;
                if (i >= end) continue;
#pragma unroll
                for (int j = 0; j < VEC; j++) part[j] = join(part[j], part_of(v[k].at[j], (i64)i));
            }
        }
        if (warps > 1) {
            __syncthreads();
#pragma unroll
            for (int j = 0; j < VEC; j++) room[warp][j * 32 + lane] = part[j];
            __syncthreads();
            if (mine == 0) {
                for (int w = 1; w < warps; w++)
#pragma unroll
                    for (int j = 0; j < VEC; j++) part[j] = join(part[j], room[warp + w][j * 32 + lane]);
            }
        }
        if (here && mine == 0) {
#pragma unroll
            for (int j = 0; j < VEC; j++) emit(out, parts, p, output + j, blockIdx.y, part[j]);
        }
    }
}

// Joins pieces: `lanes` neighbouring outputs a block (a power of two up to 32), whose pieces the other threads share.
extern "C" __global__ void __launch_bounds__(256)
    reduce_finish(O* out, const Part* parts, u32 pieces, i32 lanes, OF_PARAM of_reduce p) {
    __shared__ Total room[256];
    const int lane = threadIdx.x % lanes, slot = threadIdx.x / lanes, slots = 256 / lanes;
    for (u64 base = (u64)blockIdx.x * lanes; base < p.outputs; base += (u64)gridDim.x * lanes) {
        const u64 output = base + lane;
        Total total = widened(nothing());
        for (u32 i = slot; output < p.outputs && i < pieces; i += slots)
            total = join(total, widened(parts[i * p.outputs + output]));
        for (int half = slots / 2; half > 0; half /= 2) {
            __syncthreads();
            room[threadIdx.x] = total;
            __syncthreads();
            if (slot < half) total = join(total, room[threadIdx.x + half * lanes]);
        }
        if (slot == 0 && output < p.outputs) put(out[of_at<I>((I)output, p.kept, p.kept_out)], total, p);
    }
}
