// Attention of halves on tensor cores, in tiles (Dao 2023): four warps, each with its own rows, walk over the other side.
//   T: f16 or bf16; D, DV: sizes of a query (and key) and of a value, up to multiples of 16;
//   CAUSAL: query i sees keys 0..=i + offset; ALIGNED: rows are vectors of 16 bytes, else they are read element by element;
//   GRAD: the gradients instead of the attention.
//
// Scores stay in registers. A product of two tiles leaves its result spread over a warp just as the next product wants its
// left operand, so P goes straight into P V. The two gradient kernels are arranged for that too, at the price of working
// the scores out twice: one has keys as rows and sums dK and dV over the queries, one has queries as rows and sums dQ over
// the keys. Each sum belongs to one warp, so bits are the same every time.
//
// Rows in shared memory lie 16 bytes further apart than they are long. Their length is a multiple of 32 bytes, so the eight
// rows that ldmatrix reads at once fall on different banks.
#include "prelude.cuh"

#define THREADS 128
#define WARPS 4
// Blocks that a multiprocessor is to hold: small heads leave registers for three.
#define RESIDENT (D <= 64 && DV <= 64 ? 3 : 1)
// Distance of rows in shared memory, in elements.
#define PITCH (D + 8)
#define PITCH_V (DV + 8)
#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

// A [batch, head, step, column] tensor.
struct of_operand { T* at; i64 batch, head, step, column; };

struct of_attention {
    of_operand q, k, v, out, dout, dq, dk, dv;
    // Per query: the logarithm of its sum, and the inner product of its result and the gradient of that.
    f32* lse;
    const f32* delta;
    i64 lse_batch, lse_head, lse_step;
    i32 heads, queries, keys, depth, value_depth;
    // Rows of a grid: blocks of one head.
    i32 blocks;
    // `scale` of the scores; its absolute value times log2(e), and whether it is negative (forward only); with its sign.
    f32 scale, scale_log2;
    i32 negative;
    f32 signed_log2;
    // How much later than the first key the first query stands.
    i32 offset, pad;
};

OF_FN T* head_of(const of_operand& x, int head, int heads) {
    return x.at + (i64)(head / heads) * x.batch + (i64)(head % heads) * x.head;
}

OF_FN f32* lse_of(const of_attention& p, int head) {
    return p.lse + (i64)(head / p.heads) * p.lse_batch + (i64)(head % p.heads) * p.lse_head;
}

// Eight elements, `columns` of which exist where `there`.
OF_FN void load_chunk(T* to, const T* from, const of_operand& x, bool there, int columns) {
#if ALIGNED
    of_copy_async16(to, from, there);
#else
    T zero;
    of_set(zero, 0.0f);
#pragma unroll
    for (int e = 0; e < 8; e++) to[e] = there && e < columns ? from[(i64)e * x.column] : zero;
#endif
}

// `rows` rows of `columns` elements from `from` into a tile of ROWS x COLUMNS; zeros where there are none.
template <int ROWS, int COLUMNS> OF_FN void load(T* to, const T* from, const of_operand& x, int rows, int columns) {
    const int chunks = COLUMNS / 8;
    if (THREADS % chunks == 0 && ROWS * chunks % THREADS == 0) {
        // A thread's chunks lie below each other. Not unrolled: addresses would fill registers that the sums need.
        const int thread = of_opaque(threadIdx.x), lines = THREADS / chunks, column = thread % chunks * 8;
        int row = thread / chunks;
        T* place = to + row * (COLUMNS + 8) + column;
        from += (i64)row * x.step + (i64)column * (ALIGNED ? 1 : x.column);
        if (column >= columns) rows = 0;
#pragma unroll 1
        for (int i = 0; i < ROWS / lines; i++) {
            load_chunk(place, from, x, row < rows, columns - column);
            row += lines, place += lines * (COLUMNS + 8), from += lines * x.step;
        }
    } else {
#pragma unroll 1
        for (int at = of_opaque(threadIdx.x); at < ROWS * chunks; at += THREADS) {
            int row = at / chunks, column = at % chunks * 8;
            const T* source = from + (i64)row * x.step + (i64)column * (ALIGNED ? 1 : x.column);
            load_chunk(to + row * (COLUMNS + 8) + column, source, x, row < rows && column < columns, columns - column);
        }
    }
}

// The rows of one warp's result, through its part of shared memory, so that whole vectors are written. `stage` has room for
// 16 * TILES rows of COLUMNS + 8 elements of each warp. The results of `rows` rows from `to` on are written.
template <int TILES, int COLUMNS>
OF_FN void store(T* stage, const f32 (&c)[TILES][COLUMNS / 8][4], T* to, const of_operand& x, int rows, int columns) {
    const int lane = threadIdx.x & 31, chunks = COLUMNS / 8;
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++) {
            T* place = stage + (m * 16 + lane / 4) * (COLUMNS + 8) + n * 8 + lane % 4 * 2;
            *(u32*)place = of_pack2(c[m][n][0], c[m][n][1], T());
            *(u32*)(place + 8 * (COLUMNS + 8)) = of_pack2(c[m][n][2], c[m][n][3], T());
        }
    __syncwarp();
    for (int at = lane; at < 16 * TILES * chunks; at += 32) {
        int row = at / chunks, column = at % chunks * 8;
        if (row >= rows || column >= columns) continue;
        const T* place = stage + row * (COLUMNS + 8) + column;
        T* target = to + (i64)row * x.step + (i64)column * x.column;
#if ALIGNED
        *(uint4*)target = *(const uint4*)place;
#else
        for (int e = 0; e < 8 && column + e < columns; e++) target[(i64)e * x.column] = place[e];
#endif
    }
}

// c += a bᵀ: rows of one tile with rows of another, both DEPTH long. `a` and `b` are the lane's places in the tiles.
template <int TILES, int COLUMNS, int DEPTH>
OF_FN void rows_with_rows(f32 (&c)[TILES][COLUMNS / 8][4], of_shared_t a, of_shared_t b) {
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
        u32 x[TILES][4];
#pragma unroll
        for (int m = 0; m < TILES; m++) of_ldmatrix4(x[m], a + (m * 16 * (DEPTH + 8) + k * 16) * 2);
#pragma unroll
        for (int n = 0; n < COLUMNS / 16; n++) {
            u32 y[4];
            of_ldmatrix4(y, b + (n * 16 * (DEPTH + 8) + k * 16) * 2);
#pragma unroll
            for (int m = 0; m < TILES; m++) {
                of_mma(c[m][2 * n], x[m], y, c[m][2 * n], T());
                of_mma(c[m][2 * n + 1], x[m], y + 2, c[m][2 * n + 1], T());
            }
        }
    }
}

// Step `k` of a result of `rows_with_rows`, rounded to halves, as a left operand.
template <int N> OF_FN void pack(u32 (&x)[4], const f32 (&p)[N][4], int k) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const f32* from = p[2 * k + i / 2] + i % 2 * 2;
        x[i] = of_pack2(from[0], from[1], T());
    }
}

// c += x b for step `k`: 16 columns of x with 16 rows, COLUMNS long, of a tile.
template <int TILES, int COLUMNS> OF_FN void times_step(f32 (&c)[TILES][COLUMNS / 8][4], const u32 (&x)[TILES][4], of_shared_t b, int k) {
#pragma unroll
    for (int n = 0; n < COLUMNS / 16; n++) {
        u32 y[4];
        of_ldmatrix4_trans(y, b + (k * 16 * (COLUMNS + 8) + n * 16) * 2);
#pragma unroll
        for (int m = 0; m < TILES; m++) {
            of_mma(c[m][2 * n], x[m], y, c[m][2 * n], T());
            of_mma(c[m][2 * n + 1], x[m], y + 2, c[m][2 * n + 1], T());
        }
    }
}

// c += p b: a result of `rows_with_rows` with a tile of SUMMED rows.
template <int TILES, int COLUMNS, int SUMMED>
OF_FN void times_tile(f32 (&c)[TILES][COLUMNS / 8][4], const f32 (&p)[TILES][SUMMED / 8][4], of_shared_t b) {
#pragma unroll
    for (int k = 0; k < SUMMED / 16; k++) {
        u32 x[TILES][4];
#pragma unroll
        for (int m = 0; m < TILES; m++) pack(x[m], p[m], k);
        times_step<TILES, COLUMNS>(c, x, b, k);
    }
}

template <int TILES, int N> OF_FN void clear(f32 (&c)[TILES][N][4]) {
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) c[m][n][i] = 0.0f;
}

// A lane's place for the left operand (in the rows of its warp) and for the right one of `times_tile`, and for the right one
// of `rows_with_rows`.
template <int ROWS> OF_FN of_shared_t warp_place(const T* tile, int pitch) {
    const int thread = of_opaque(threadIdx.x);
    return of_shared(tile + (thread / 32 * ROWS + thread % 16) * pitch + thread % 32 / 16 * 8);
}
OF_FN of_shared_t left_place(const T* tile, int pitch) {
    const int lane = of_opaque(threadIdx.x) & 31;
    return of_shared(tile + lane % 16 * pitch + lane / 16 * 8);
}
OF_FN of_shared_t right_place(const T* tile, int pitch) {
    const int lane = of_opaque(threadIdx.x) & 31;
    return of_shared(tile + (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8);
}

// Where a thread's results lie. Worked out again where it is wanted: registers are what these kernels are short of.
struct ThreadTile {
    int head;
    // The first row of the block and of the warp.
    int first, start;
    // The row and column of result 0 in its 16x8 tile; results 2 and 3 are eight rows later.
    int row, column;
    __device__ __forceinline__ ThreadTile(int blocks, int rows, bool backwards) {
        const int block = of_opaque(blockIdx.x), thread = of_opaque(threadIdx.x), index = block % blocks;
        head = block / blocks;
        first = (backwards ? blocks - 1 - index : index) * rows * WARPS;
        start = first + thread / 32 * rows;
        row = start + thread % 32 / 4;
        column = thread % 4 * 2;
    }
    // Of the keys from `start` on, in a thread's columns, how many a row sees; `down` is the row's distance from the first.
    __device__ __forceinline__ int seen(int down, int keys, int offset, int start) const {
        const int sees = row + down + 1 + offset;
        return (CAUSAL && sees < keys ? sees : keys) - start - column;
    }
};

// How many keys the queries before `end` see.
OF_FN int visible_to(const of_attention& p, int end) {
    const int sees = end + p.offset;
    return CAUSAL && sees < p.keys ? (sees > 0 ? sees : 0) : p.keys;
}

#if !GRAD

// 16-row tiles of a warp, and keys at a time.
#define TILES 2
#define KEYS 64
#define QUERIES (TILES * 16 * WARPS)
// Where the sums of rows lie, behind the tiles and behind what is staged in their place at the end.
#define TILE_ELEMENTS ((QUERIES + KEYS) * PITCH + KEYS * PITCH_V)
#define TOTALS_AT (TILE_ELEMENTS > QUERIES * PITCH_V ? TILE_ELEMENTS : QUERIES * PITCH_V)

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) attention(const __grid_constant__ of_attention p) {
    OF_DYNAMIC_SHARED(T, room);
    T* q_tile = room;
    T* k_tile = q_tile + QUERIES * PITCH;
    T* v_tile = k_tile + KEYS * PITCH;
    // Late queries see more keys: they go first.
    auto place = [&] { return ThreadTile(p.blocks, TILES * 16, true); };
    const ThreadTile here = place();
    const int head = here.head, first = here.first;
    const int visible = visible_to(p, first + QUERIES);
    const int last = (visible + KEYS - 1) / KEYS - 1;
    // Of the tile that comes next.
    const T* k = head_of(p.k, head, p.heads) + (i64)last * KEYS * p.k.step;
    const T* v = head_of(p.v, head, p.heads) + (i64)last * KEYS * p.v.step;

    load<QUERIES, D>(q_tile, head_of(p.q, head, p.heads) + (i64)first * p.q.step, p.q, p.queries - first, p.depth);
    if (last >= 0)
        load<KEYS, D>(k_tile, k, p.k, p.keys - last * KEYS, p.depth);
    of_copy_async_commit();

    f32 sums[TILES][DV / 8][4], largest[TILES][2];
    // Four numbers that registers have no room for: a thread's own, one for each of its rows.
    f32* total = (f32*)(room + TOTALS_AT) + of_opaque(threadIdx.x);
    clear(sums);
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) largest[m][h] = -OF_INF, total[(2 * m + h) * THREADS] = 0.0f;

    for (int j = last; j >= 0; j--) {
        of_copy_async_wait<0>();
        __syncthreads();
        // Nobody reads the values before any more, so the next ones come while the scores are worked out.
        load<KEYS, DV>(v_tile, v, p.v, p.keys - j * KEYS, p.value_depth);
        v -= KEYS * p.v.step;
        of_copy_async_commit();
        f32 s[TILES][KEYS / 8][4];
        clear(s);
        rows_with_rows<TILES, KEYS, D>(s, warp_place<TILES * 16>(q_tile, PITCH), right_place(k_tile, PITCH));
        of_copy_async_wait<0>();
        __syncthreads();
        // The same for the keys.
        k -= KEYS * p.k.step;
        if (j > 0) load<KEYS, D>(k_tile, k, p.k, KEYS, p.depth);
        of_copy_async_commit();

        if (p.negative) {
#pragma unroll
            for (int m = 0; m < TILES; m++)
#pragma unroll
                for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                    for (int i = 0; i < 4; i++) s[m][n][i] = -s[m][n][i];
        }
        if ((j + 1) * KEYS > p.keys || (CAUSAL && (j + 1) * KEYS > place().first + 1 + p.offset)) {
            const ThreadTile at = place();
#pragma unroll
            for (int m = 0; m < TILES; m++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int seen = at.seen(m * 16 + h * 8, p.keys, p.offset, j * KEYS);
#pragma unroll
                    for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                        for (int i = 0; i < 2; i++)
                            if (n * 8 + i >= seen) s[m][n][2 * h + i] = -OF_INF;
                }
        }
#pragma unroll
        for (int m = 0; m < TILES; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                f32 most = largest[m][h];
#pragma unroll
                for (int n = 0; n < KEYS / 8; n++) most = fmaxf(most, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
                most = fmaxf(most, __shfl_xor_sync(OF_FULL, most, 1));
                most = fmaxf(most, __shfl_xor_sync(OF_FULL, most, 2));
                // Nothing but minus infinities so far: any finite shift gives the zeros that are wanted.
                const f32 shift = most == -OF_INF ? 0.0f : most * p.scale_log2;
                const f32 factor = of_fast_exp2(largest[m][h] * p.scale_log2 - shift);
                largest[m][h] = most;
                f32 sum = 0.0f;
#pragma unroll
                for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                    for (int i = 2 * h; i < 2 * h + 2; i++) {
                        s[m][n][i] = of_fast_exp2(s[m][n][i] * p.scale_log2 - shift);
                        sum += s[m][n][i];
                    }
                // Each lane of a row adds up what it has: they meet at the end.
                total[(2 * m + h) * THREADS] = total[(2 * m + h) * THREADS] * factor + sum;
#pragma unroll
                for (int n = 0; n < DV / 8; n++) sums[m][n][2 * h] *= factor, sums[m][n][2 * h + 1] *= factor;
            }
        // Half as many registers as `s` has, before the values come in.
        u32 x[KEYS / 16][TILES][4];
#pragma unroll
        for (int k = 0; k < KEYS / 16; k++)
#pragma unroll
            for (int m = 0; m < TILES; m++) pack(x[k][m], s[m], k);
        const of_shared_t v_at = left_place(v_tile, PITCH_V);
#pragma unroll
        for (int k = 0; k < KEYS / 16; k++) times_step<TILES, DV>(sums, x[k], v_at, k);
    }
    of_copy_async_wait<0>();
    __syncthreads();
    const ThreadTile at = place();
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            f32 sum = total[(2 * m + h) * THREADS];
            sum += __shfl_xor_sync(OF_FULL, sum, 1);
            sum += __shfl_xor_sync(OF_FULL, sum, 2);
            const int query = at.row + m * 16 + h * 8;
            // Zero where no key is seen.
            const bool blind = p.keys == 0 || (CAUSAL && query + 1 + p.offset <= 0);
            // Of nothing but minus infinities the result is zero, as of nothing.
            const f32 factor = sum == 0.0f ? 1.0f : 1.0f / sum;
#pragma unroll
            for (int n = 0; n < DV / 8; n++)
#pragma unroll
                for (int i = 2 * h; i < 2 * h + 2; i++) sums[m][n][i] = blind ? 0.0f : sums[m][n][i] * factor;
            const f32 log_sum = largest[m][h] * p.scale_log2 * LN2 + logf(sum);
            if (at.column == 0 && query < p.queries) lse_of(p, at.head)[(i64)query * p.lse_step] = log_sum;
        }
    T* out = head_of(p.out, at.head, p.heads) + (i64)at.start * p.out.step;
    store<TILES, DV>(room + (at.start - at.first) * PITCH_V, sums, out, p.out, p.queries - at.start, p.value_depth);
}

#else

// Queries at a time for the sums of keys.
#define KEYS (16 * WARPS)
#define QUERIES 64

extern "C" __global__ void __launch_bounds__(THREADS) keys_grad(const __grid_constant__ of_attention p) {
    OF_DYNAMIC_SHARED(T, room);
    // Two tiles of queries, since they are used first and last: the next come while these are at work.
    T* k_tile = room;
    T* v_tile = k_tile + KEYS * PITCH;
    T* q_tiles = v_tile + KEYS * PITCH_V;
    T* dout_tile = q_tiles + 2 * QUERIES * PITCH;
    // Two of each kind.
    f32* lses = (f32*)(dout_tile + QUERIES * PITCH_V);
    f32* deltas = lses + 2 * QUERIES;
    // Early keys are seen by more queries: they go first.
    auto place = [&] { return ThreadTile(p.blocks, 16, false); };
    const ThreadTile here = place();
    const int head = here.head, first = here.first;
    const int begin = CAUSAL && first > p.offset ? (first - p.offset) / QUERIES : 0, end = (p.queries + QUERIES - 1) / QUERIES;

    auto load_queries = [&](int i) {
        int left = p.queries - i * QUERIES, thread = of_opaque(threadIdx.x);
        const int head = place().head;
        const T* q = head_of(p.q, head, p.heads) + (i64)i * QUERIES * p.q.step;
        load<QUERIES, D>(q_tiles + i % 2 * QUERIES * PITCH, q, p.q, left, p.depth);
        int at = thread % QUERIES;
        const f32* from = thread < QUERIES ? lse_of(p, head) : p.delta + (i64)head * p.queries;
        i64 step = thread < QUERIES ? p.lse_step : 1;
        f32* to = thread < QUERIES ? lses : deltas;
        of_copy_async4(to + i % 2 * QUERIES + at, at < left ? from + (i * QUERIES + at) * step : from, at < left);
    };
    auto load_dout = [&](int i) {
        const T* dout = head_of(p.dout, place().head, p.heads) + (i64)i * QUERIES * p.dout.step;
        load<QUERIES, DV>(dout_tile, dout, p.dout, p.queries - i * QUERIES, p.value_depth);
    };
    load<KEYS, D>(k_tile, head_of(p.k, head, p.heads) + (i64)first * p.k.step, p.k, p.keys - first, p.depth);
    load<KEYS, DV>(v_tile, head_of(p.v, head, p.heads) + (i64)first * p.v.step, p.v, p.keys - first, p.value_depth);
    if (begin < end) load_queries(begin);
    of_copy_async_commit();
    if (begin < end) load_dout(begin);
    of_copy_async_commit();

    f32 dk[1][D / 8][4], dv[1][DV / 8][4];
    clear(dk);
    clear(dv);

    for (int i = begin; i < end; i++) {
        const T* q_tile = q_tiles + i % 2 * QUERIES * PITCH;
        const int column = of_opaque(threadIdx.x) % 4 * 2;
        const f32* lse = lses + i % 2 * QUERIES + column;
        const f32* delta = deltas + i % 2 * QUERIES + column;
        of_copy_async_wait<1>();
        __syncthreads();
        if (i + 1 < end) load_queries(i + 1);
        of_copy_async_commit();
        // Transposed: keys are rows.
        f32 s[1][QUERIES / 8][4];
        clear(s);
        rows_with_rows<1, QUERIES, D>(s, warp_place<16>(k_tile, PITCH), right_place(q_tile, PITCH));
#pragma unroll
        for (int n = 0; n < QUERIES / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                // Past the last query all of Q, dO, lse and delta is zero: 1 times zero.
                s[0][n][e] = of_fast_exp2(s[0][n][e] * p.signed_log2 - lse[n * 8 + e % 2] * LOG2E);
            }
        if (CAUSAL && i * QUERIES + p.offset < place().first + KEYS) {
            const ThreadTile at = place();
#pragma unroll
            for (int h = 0; h < 2; h++) {
                // The queries before these do not see the row's key.
                const int blind = at.row + h * 8 - p.offset - i * QUERIES - at.column;
#pragma unroll
                for (int n = 0; n < QUERIES / 8; n++)
#pragma unroll
                    for (int e = 0; e < 2; e++)
                        if (n * 8 + e < blind) s[0][n][2 * h + e] = 0.0f;
            }
        }
        of_copy_async_wait<1>();
        __syncthreads();
        times_tile<1, DV, QUERIES>(dv, s, left_place(dout_tile, PITCH_V));
        f32 ds[1][QUERIES / 8][4];
        clear(ds);
        rows_with_rows<1, QUERIES, DV>(ds, warp_place<16>(v_tile, PITCH_V), right_place(dout_tile, PITCH_V));
        __syncthreads();
        if (i + 1 < end) load_dout(i + 1);
        of_copy_async_commit();
#pragma unroll
        for (int n = 0; n < QUERIES / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) ds[0][n][e] = s[0][n][e] * (ds[0][n][e] - delta[n * 8 + e % 2]);
        times_tile<1, D, QUERIES>(dk, ds, left_place(q_tile, PITCH));
    }
    of_copy_async_wait<0>();
    __syncthreads();
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) dk[0][n][e] *= p.scale;
    const ThreadTile at = place();
    store<1, D>(k_tile + (at.start - at.first) * PITCH, dk, head_of(p.dk, at.head, p.heads) + (i64)at.start * p.dk.step,
                p.dk, p.keys - at.start, p.depth);
    store<1, DV>(v_tile + (at.start - at.first) * PITCH_V, dv,
                 head_of(p.dv, at.head, p.heads) + (i64)at.start * p.dv.step, p.dv, p.keys - at.start, p.value_depth);
}

#undef KEYS
#undef QUERIES
// For the sums of queries.
#define TILES 2
#define KEYS 32
#define QUERIES (TILES * 16 * WARPS)

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) queries_grad(const __grid_constant__ of_attention p) {
    OF_DYNAMIC_SHARED(T, room);
    // Two tiles of keys, since they are used first and last.
    T* q_tile = room;
    T* dout_tile = q_tile + QUERIES * PITCH;
    T* k_tiles = dout_tile + QUERIES * PITCH_V;
    T* v_tile = k_tiles + 2 * KEYS * PITCH;
    auto place = [&] { return ThreadTile(p.blocks, TILES * 16, true); };
    const ThreadTile here = place();
    const int head = here.head, first = here.first;
    // Per query; here because registers have no room for them.
    f32* lses = (f32*)(v_tile + KEYS * PITCH_V);
    f32* deltas = lses + QUERIES;
    // Of the tiles that come next.
    const T* k = head_of(p.k, head, p.heads);
    const T* v = head_of(p.v, head, p.heads);
    const int visible = visible_to(p, first + QUERIES);
    const int end = (visible + KEYS - 1) / KEYS;

    auto load_keys = [&](int j) {
        load<KEYS, D>(k_tiles + j % 2 * KEYS * PITCH, k, p.k, p.keys - j * KEYS, p.depth);
        k += KEYS * p.k.step;
    };
    auto load_values = [&](int j) {
        load<KEYS, DV>(v_tile, v, p.v, p.keys - j * KEYS, p.value_depth);
        v += KEYS * p.v.step;
    };
    load<QUERIES, D>(q_tile, head_of(p.q, head, p.heads) + (i64)first * p.q.step, p.q, p.queries - first, p.depth);
    load<QUERIES, DV>(dout_tile, head_of(p.dout, head, p.heads) + (i64)first * p.dout.step, p.dout, p.queries - first,
                      p.value_depth);
    if (end > 0) load_keys(0);
    of_copy_async_commit();
    if (end > 0) load_values(0);
    of_copy_async_commit();

    f32 dq[TILES][D / 8][4];
    clear(dq);
    {
        // A thread a row: read after the barriers of the loop.
        const int query = first + threadIdx.x;
        const bool there = query < p.queries;
        lses[threadIdx.x] = there ? lse_of(p, head)[(i64)query * p.lse_step] * LOG2E : 0.0f;
        deltas[threadIdx.x] = there ? p.delta[(i64)head * p.queries + query] : 0.0f;
    }

    for (int j = 0; j < end; j++) {
        const T* k_tile = k_tiles + j % 2 * KEYS * PITCH;
        const int row = of_opaque(threadIdx.x) / 32 * (TILES * 16) + (of_opaque(threadIdx.x) & 31) / 4;
        const f32* lse = lses + row;
        const f32* delta = deltas + row;
        of_copy_async_wait<1>();
        __syncthreads();
        if (j + 1 < end) load_keys(j + 1);
        of_copy_async_commit();
        f32 s[TILES][KEYS / 8][4];
        clear(s);
        rows_with_rows<TILES, KEYS, D>(s, warp_place<TILES * 16>(q_tile, PITCH), right_place(k_tile, PITCH));
#pragma unroll
        for (int m = 0; m < TILES; m++)
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) s[m][n][e] = of_fast_exp2(s[m][n][e] * p.signed_log2 - lse[m * 16 + e / 2 * 8]);
        if ((j + 1) * KEYS > p.keys || (CAUSAL && (j + 1) * KEYS > place().first + 1 + p.offset)) {
            const ThreadTile at = place();
#pragma unroll
            for (int m = 0; m < TILES; m++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int seen = at.seen(m * 16 + h * 8, p.keys, p.offset, j * KEYS);
#pragma unroll
                    for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                        for (int i = 0; i < 2; i++)
                            if (n * 8 + i >= seen) s[m][n][2 * h + i] = 0.0f;
                }
        }
        of_copy_async_wait<1>();
        __syncthreads();
        f32 ds[TILES][KEYS / 8][4];
        clear(ds);
        rows_with_rows<TILES, KEYS, DV>(ds, warp_place<TILES * 16>(dout_tile, PITCH_V), right_place(v_tile, PITCH_V));
        __syncthreads();
        if (j + 1 < end) load_values(j + 1);
        of_copy_async_commit();
#pragma unroll
        for (int m = 0; m < TILES; m++)
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) ds[m][n][e] = s[m][n][e] * (ds[m][n][e] - delta[m * 16 + e / 2 * 8]);
        times_tile<TILES, D, KEYS>(dq, ds, left_place(k_tile, PITCH));
    }
    of_copy_async_wait<0>();
    __syncthreads();
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) dq[m][n][e] *= p.scale;
    const ThreadTile at = place();
    T* out = head_of(p.dq, at.head, p.heads) + (i64)at.start * p.dq.step;
    store<TILES, D>(q_tile + (at.start - at.first) * PITCH, dq, out, p.dq, p.queries - at.start, p.depth);
}

#endif
