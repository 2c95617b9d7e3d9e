// Attention without tensor cores: f32, f64, and heads that are too large for them. Tiles in shared memory, one thread a sum.
//   T: the element; TILE: queries and keys of a tile, 32 or less;
//   GRAD: the gradients instead of the attention.
#include "prelude.cuh"

#define THREADS 256
typedef acc_t<T> A;

struct of_operand { T* at; i64 batch, head, step, column; };

struct of_attention {
    of_operand q, k, v, out, dout, dq, dk, dv;
    // Per query: the logarithm of its sum, and the inner product of its result and the gradient of that.
    A* lse;
    A* delta;
    i64 lse_batch, lse_head, lse_step;
    f64 scale;
    i64 rows;
    // Causal: query i sees keys 0..=i + offset.
    i32 heads, queries, keys, depth, value_depth, blocks, causal, offset;
};

OF_FN f32 exponential(f32 x) { return expf(x); }
OF_FN f64 exponential(f64 x) { return exp(x); }
OF_FN f32 logarithm(f32 x) { return logf(x); }
OF_FN f64 logarithm(f64 x) { return log(x); }

OF_FN T* row_of(const of_operand& x, int head, int heads, int step) {
    return x.at + (i64)(head / heads) * x.batch + (i64)(head % heads) * x.head + (i64)step * x.step;
}

OF_FN A* lse_of(const of_attention& p, int head, int query) {
    return p.lse + (i64)(head / p.heads) * p.lse_batch + (i64)(head % p.heads) * p.lse_head + (i64)query * p.lse_step;
}

// `rows` rows from `first` on into a tile whose rows are one longer, so that a column meets all banks; zeros after them.
OF_FN void load(A* to, const of_operand& x, int head, int heads, int first, int rows, int columns) {
    const T* from = row_of(x, head, heads, first);
    for (int at = threadIdx.x; at < TILE * columns; at += THREADS) {
        int row = at / columns, column = at % columns;
        to[row * (columns + 1) + column] =
            row < rows ? of_get<A>(from[(i64)row * x.step + (i64)column * x.column]) : (A)0;
    }
}
OF_FN void store(const A* from, const of_operand& x, int head, int heads, int first, int rows, int columns, A factor) {
    T* to = row_of(x, head, heads, first);
    for (int at = threadIdx.x; at < TILE * columns; at += THREADS) {
        int row = at / columns, column = at % columns;
        if (row < rows) of_set(to[(i64)row * x.step + (i64)column * x.column], from[at] * factor);
    }
}
// How many keys the queries before `end` see.
OF_FN int visible_to(const of_attention& p, int end) {
    const int sees = end + p.offset;
    return p.causal && sees < p.keys ? (sees > 0 ? sees : 0) : p.keys;
}
// The inner product of two rows.
OF_FN A dot(const A* a, const A* b, int n) {
    A sum = (A)0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

#if !GRAD

extern "C" __global__ void __launch_bounds__(THREADS) attention(const __grid_constant__ of_attention p) {
    OF_DYNAMIC_SHARED(A, room);
    const int widest = p.depth > p.value_depth ? p.depth : p.value_depth;
    A* q = room;
    A* kv = q + TILE * (p.depth + 1);
    A* s = kv + TILE * (widest + 1);
    A* sums = s + TILE * (TILE + 1);
    A* largest = sums + TILE * p.value_depth;
    A* total = largest + TILE;
    A* factors = total + TILE;
    const int head = blockIdx.x / p.blocks, first = (p.blocks - 1 - (int)(blockIdx.x % p.blocks)) * TILE;
    const int visible = visible_to(p, first + TILE);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    load(q, p.q, head, p.heads, first, p.queries - first, p.depth);
    for (int at = threadIdx.x; at < TILE * p.value_depth; at += THREADS) sums[at] = (A)0;
    if (threadIdx.x < TILE) largest[threadIdx.x] = -(A)OF_INF, total[threadIdx.x] = (A)0;
    for (int start = 0; start < visible; start += TILE) {
        __syncthreads();
        load(kv, p.k, head, p.heads, start, p.keys - start, p.depth);
        __syncthreads();
        for (int at = threadIdx.x; at < TILE * TILE; at += THREADS) {
            int i = at / TILE, j = at % TILE;
            A score = (A)p.scale * dot(q + i * (p.depth + 1), kv + j * (p.depth + 1), p.depth);
            bool hidden = start + j >= p.keys || (p.causal && start + j > first + i + p.offset);
            s[i * (TILE + 1) + j] = hidden ? -(A)OF_INF : score;
        }
        __syncthreads();
        load(kv, p.v, head, p.heads, start, p.keys - start, p.value_depth);
        for (int i = warp; i < TILE; i += THREADS / 32) {
            A* scores = s + i * (TILE + 1);
            A score = lane < TILE ? scores[lane] : -(A)OF_INF, old = largest[i];
            // NaN loses here, and comes back through the sum.
            A most = score > old ? score : old;
#pragma unroll
            for (int step = 16; step > 0; step >>= 1) {
                A other = __shfl_xor_sync(OF_FULL, most, step);
                most = other > most ? other : most;
            }
            // Nothing but minus infinities so far: any finite shift gives the zeros that are wanted.
            A shift = most == -(A)OF_INF ? (A)0 : most;
            A weight = exponential(score - shift), factor = exponential(old - shift);
            A sum = of_warp_reduce<of_sum_op>(weight);
            if (lane < TILE) scores[lane] = weight;
            __syncwarp();
            if (lane == 0) largest[i] = most, total[i] = total[i] * factor + sum, factors[i] = factor;
        }
        __syncthreads();
        for (int at = threadIdx.x; at < TILE * p.value_depth; at += THREADS) {
            int i = at / p.value_depth, column = at % p.value_depth;
            A sum = (A)0;
#pragma unroll 8
            for (int j = 0; j < TILE; j++) sum += s[i * (TILE + 1) + j] * kv[j * (p.value_depth + 1) + column];
            sums[at] = sums[at] * factors[i] + sum;
        }
    }
    __syncthreads();
    if (threadIdx.x < TILE && first + (int)threadIdx.x < p.queries)
        *lse_of(p, head, first + (int)threadIdx.x) = largest[threadIdx.x] + logarithm(total[threadIdx.x]);
    for (int at = threadIdx.x; at < TILE * p.value_depth; at += THREADS) {
        // Of nothing but minus infinities the result is zero, as of nothing.
        const A sum = total[at / p.value_depth], factor = sum == (A)0 ? (A)1 : (A)1 / sum;
        sums[at] = visible_to(p, first + at / p.value_depth + 1) > 0 ? sums[at] * factor : (A)0;
    }
    __syncthreads();
    store(sums, p.out, head, p.heads, first, p.queries - first, p.value_depth, (A)1);
}

#else

// One warp a query.
extern "C" __global__ void __launch_bounds__(THREADS) delta(const __grid_constant__ of_attention p) {
    const int lane = threadIdx.x & 31;
    for (i64 row = (i64)blockIdx.x * (THREADS / 32) + (threadIdx.x >> 5); row < p.rows; row += (i64)gridDim.x * (THREADS / 32)) {
        const int head = (int)(row / p.queries), query = (int)(row % p.queries);
        const T* out = row_of(p.out, head, p.heads, query);
        const T* dout = row_of(p.dout, head, p.heads, query);
        A sum = (A)0;
        for (int i = lane; i < p.value_depth; i += 32)
            sum += of_get<A>(out[(i64)i * p.out.column]) * of_get<A>(dout[(i64)i * p.dout.column]);
        sum = of_warp_reduce<of_sum_op>(sum);
        if (lane == 0) p.delta[row] = sum;
    }
}

// P and dS of one tile: queries from `query` on, keys from `key` on, from tiles of Q, K, dO and V.
OF_FN void scores_grad(const of_attention& p, int head, int query, int key, const A* q, const A* k, const A* dout,
                       const A* v, A* weights, A* ds) {
    for (int at = threadIdx.x; at < TILE * TILE; at += THREADS) {
        int i = at / TILE, j = at % TILE;
        bool hidden = query + i >= p.queries || key + j >= p.keys || (p.causal && key + j > query + i + p.offset);
        A weight = (A)0, slope = (A)0;
        if (!hidden) {
            A shift = *lse_of(p, head, query + i), delta = p.delta[(i64)head * p.queries + query + i];
            A score = (A)p.scale * dot(q + i * (p.depth + 1), k + j * (p.depth + 1), p.depth);
            // Where all scores are minus infinity, all weights are zero.
            weight = exponential(shift == -(A)OF_INF ? -(A)OF_INF : score - shift);
            A inner = dot(dout + i * (p.value_depth + 1), v + j * (p.value_depth + 1), p.value_depth);
            slope = weight * (inner - delta);
        }
        weights[i * (TILE + 1) + j] = weight;
        ds[i * (TILE + 1) + j] = slope;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) keys_grad(const __grid_constant__ of_attention p) {
    OF_DYNAMIC_SHARED(A, room);
    const int tile = TILE * (p.depth + 1), value_tile = TILE * (p.value_depth + 1);
    A* k = room;
    A* q = k + tile;
    A* dk = q + tile;
    A* v = dk + tile;
    A* dout = v + value_tile;
    A* dv = dout + value_tile;
    A* weights = dv + value_tile;
    A* ds = weights + TILE * (TILE + 1);
    const int head = blockIdx.x / p.blocks, first = (int)(blockIdx.x % p.blocks) * TILE;
    load(k, p.k, head, p.heads, first, p.keys - first, p.depth);
    load(v, p.v, head, p.heads, first, p.keys - first, p.value_depth);
    for (int at = threadIdx.x; at < tile; at += THREADS) dk[at] = (A)0;
    for (int at = threadIdx.x; at < value_tile; at += THREADS) dv[at] = (A)0;
    // The first queries that see the first of these keys.
    const int begin = p.causal && first > p.offset ? (first - p.offset) / TILE * TILE : 0;
    for (int start = begin; start < p.queries; start += TILE) {
        __syncthreads();
        load(q, p.q, head, p.heads, start, p.queries - start, p.depth);
        load(dout, p.dout, head, p.heads, start, p.queries - start, p.value_depth);
        __syncthreads();
        scores_grad(p, head, start, first, q, k, dout, v, weights, ds);
        __syncthreads();
        for (int at = threadIdx.x; at < TILE * p.value_depth; at += THREADS) {
            int j = at / p.value_depth, column = at % p.value_depth;
            A sum = dv[at];
            for (int i = 0; i < TILE; i++) sum += weights[i * (TILE + 1) + j] * dout[i * (p.value_depth + 1) + column];
            dv[at] = sum;
        }
        for (int at = threadIdx.x; at < TILE * p.depth; at += THREADS) {
            int j = at / p.depth, column = at % p.depth;
            A sum = dk[at];
            for (int i = 0; i < TILE; i++) sum += ds[i * (TILE + 1) + j] * q[i * (p.depth + 1) + column];
            dk[at] = sum;
        }
    }
    __syncthreads();
    store(dk, p.dk, head, p.heads, first, p.keys - first, p.depth, (A)p.scale);
    store(dv, p.dv, head, p.heads, first, p.keys - first, p.value_depth, (A)1);
}

extern "C" __global__ void __launch_bounds__(THREADS) queries_grad(const __grid_constant__ of_attention p) {
    OF_DYNAMIC_SHARED(A, room);
    const int tile = TILE * (p.depth + 1), value_tile = TILE * (p.value_depth + 1);
    A* k = room;
    A* q = k + tile;
    A* dq = q + tile;
    A* v = dq + tile;
    A* dout = v + value_tile;
    A* weights = dout + value_tile;
    A* ds = weights + TILE * (TILE + 1);
    const int head = blockIdx.x / p.blocks, first = (p.blocks - 1 - (int)(blockIdx.x % p.blocks)) * TILE;
    const int visible = visible_to(p, first + TILE);
    load(q, p.q, head, p.heads, first, p.queries - first, p.depth);
    load(dout, p.dout, head, p.heads, first, p.queries - first, p.value_depth);
    for (int at = threadIdx.x; at < tile; at += THREADS) dq[at] = (A)0;
    for (int start = 0; start < visible; start += TILE) {
        __syncthreads();
        load(k, p.k, head, p.heads, start, p.keys - start, p.depth);
        load(v, p.v, head, p.heads, start, p.keys - start, p.value_depth);
        __syncthreads();
        scores_grad(p, head, first, start, q, k, dout, v, weights, ds);
        __syncthreads();
        for (int at = threadIdx.x; at < TILE * p.depth; at += THREADS) {
            int i = at / p.depth, column = at % p.depth;
            A sum = dq[at];
            for (int j = 0; j < TILE; j++) sum += ds[i * (TILE + 1) + j] * k[j * (p.depth + 1) + column];
            dq[at] = sum;
        }
    }
    __syncthreads();
    store(dq, p.dq, head, p.heads, first, p.queries - first, p.depth, (A)p.scale);
}

#endif
