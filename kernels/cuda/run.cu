// What runs along a dim of contiguous tensors.
//   KIND 0: products; 1, 2: the largest or smallest element so far and its place; 3: logarithms of sums of exponentials;
//        4: r[i] = b[i] + a[i] r[i - 1].
//   T, O: elements of the inputs and the output. REVERSE: 1 where the lines are run through from their end.
//
// What has been seen of a line is a state; two states of neighbouring parts can be joined. run_lines gives each line to a thread, run_pieces
// cuts it into a piece for each thread of a block: each finds the state of its piece, then those before it are joined in order.
#include "prelude.cuh"

#define BLOCK 256
#define PLACE(i) (REVERSE ? n - 1 - (i) : (i))

#if KIND == 0
template <typename V> struct total_of { typedef f64 type; };
template <> struct total_of<i64> { typedef i64 type; };
typedef total_of<acc_t<T>>::type A;
OF_FN f64 of_times(f64 a, f64 b) { return a * b; }
OF_FN i64 of_times(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
struct state { A product; };
OF_FN state nothing() { state s; s.product = 1; return s; }
OF_FN void add(state& s, const T* x, const T*, u64 place, u64) { s.product = of_times(s.product, of_get<A>(x[place])); }
OF_FN state join(state a, state b) { a.product = of_times(a.product, b.product); return a; }
OF_FN void store(const state& s, O* out, i64*, u64 place) { of_set(out[place], s.product); }
#elif KIND == 1 || KIND == 2
typedef acc_t<T> A;
struct state { A value; i64 at; };
OF_FN state nothing() { state s; s.value = 0; s.at = -1; return s; }
OF_FN state join(state a, state b) {
    if (a.at < 0) return b;
    if (b.at < 0) return a;
    if (b.value != b.value) return b;
    return (KIND == 1 ? b.value >= a.value : b.value <= a.value) ? b : a;
}
OF_FN void add(state& s, const T* x, const T*, u64 place, u64 i) {
    state one;
    one.value = of_get<A>(x[place]);
    one.at = (i64)i;
    s = join(s, one);
}
OF_FN void store(const state& s, O* out, i64* indices, u64 place) {
    of_set(out[place], s.value);
    indices[place] = s.at;
}
#elif KIND == 3
// The largest element and the sum of exponentials under it.
struct state { f64 top, sum; };
OF_FN state nothing() { state s; s.top = -OF_INF64; s.sum = 0; return s; }
OF_FN state join(state a, state b) {
    const bool rises = b.top > a.top || b.top != b.top;
    const f64 e = exp(-fabs(a.top - b.top));
    state s;
    s.top = rises ? b.top : a.top;
    s.sum = rises ? a.sum * e + b.sum : a.sum + b.sum * e;
    if (s.top - s.top != 0.0) s.sum = s.top > 0.0 ? 1.0 : 0.0;
    return s;
}
OF_FN void add(state& s, const T* x, const T*, u64 place, u64) {
    state one;
    one.top = of_get<f64>(x[place]);
    one.sum = 1;
    s = join(s, one);
}
OF_FN void store(const state& s, O* out, i64*, u64 place) {
    of_set(out[place], s.top - s.top == 0.0 ? s.top + log(s.sum) : s.top);
}
#else
// r before the part gives scale r + r0 after it; before the first element of a line there is nothing.
struct state { f64 scale, value; bool some; };
OF_FN state nothing() { state s; s.scale = 1; s.value = 0; s.some = false; return s; }
OF_FN state join(state a, state b) {
    if (!a.some) return b;
    if (!b.some) return a;
    state s;
    s.scale = a.scale * b.scale;
    s.value = b.value + b.scale * a.value;
    s.some = true;
    return s;
}
OF_FN void add(state& s, const T* a, const T* b, u64 place, u64) {
    state one;
    one.scale = of_get<f64>(a[place]);
    one.value = of_get<f64>(b[place]);
    one.some = true;
    s = join(s, one);
}
OF_FN void store(const state& s, O* out, i64*, u64 place) { of_set(out[place], s.value); }
#endif

// Where a line starts: its elements are `inner` apart.
OF_FN u64 start_of(u64 line, u64 n, u64 inner) { return line / inner * inner * n + line % inner; }

// A line by a thread.
extern "C" __global__ void __launch_bounds__(BLOCK)
run_lines(const T* x, const T* y, O* out, i64* indices, u64 lines, u64 n, u64 inner) {
    for (u64 line = (u64)blockIdx.x * BLOCK + threadIdx.x; line < lines; line += (u64)gridDim.x * BLOCK) {
        const u64 start = start_of(line, n, inner);
        state s = nothing();
        for (u64 i = 0; i < n; i++) {
            const u64 place = start + PLACE(i) * inner;
            add(s, x, y, place, PLACE(i));
            store(s, out, indices, place);
        }
    }
}

// A line by a block.
extern "C" __global__ void __launch_bounds__(BLOCK)
run_pieces(const T* x, const T* y, O* out, i64* indices, u64 lines, u64 n, u64 inner) {
    __shared__ state pieces[BLOCK];
    const u64 piece = (n + BLOCK - 1) / BLOCK;
    const u64 begin = threadIdx.x * piece < n ? threadIdx.x * piece : n, end = begin + piece < n ? begin + piece : n;
    for (u64 line = blockIdx.x; line < lines; line += gridDim.x) {
        const u64 start = start_of(line, n, inner);
        state s = nothing();
        for (u64 i = begin; i < end; i++) add(s, x, y, start + PLACE(i) * inner, PLACE(i));
        __syncthreads();
        pieces[threadIdx.x] = s;
        __syncthreads();
        if (threadIdx.x == 0) {
            state all = nothing();
            for (int t = 0; t < BLOCK; t++) {
                const state own = pieces[t];
                pieces[t] = all;
                all = join(all, own);
            }
        }
        __syncthreads();
        s = pieces[threadIdx.x];
        for (u64 i = begin; i < end; i++) {
            const u64 place = start + PLACE(i) * inner;
            add(s, x, y, place, PLACE(i));
            store(s, out, indices, place);
        }
    }
}
