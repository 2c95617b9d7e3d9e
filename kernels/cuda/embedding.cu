// Rows of a table by index, and their gradient.
//   I: the index (i64 or i32)
//   GRAD 0: OF_BYTES, of what is moved at once
//   GRAD 1: T, the element; OF_V, elements of a vector
#include "prelude.cuh"

#if GRAD == 0
typedef of_word<OF_BYTES>::type E;
// Lines that a thread has in flight.
#define FLIGHT 4

struct of_args {
    u64 lines, width; // indices; units of a row
    u64 tiles, repeat;
    i64 first, rows, logical; // the rows that are here, and of the whole table
    void* out;
    const void* table;
    const void* ids;
    of_fault* fault;
    u64 ticket;
};

extern "C" __global__ void __launch_bounds__(256) embedding(of_args k) {
    const u32 tile = blockIdx.x / (u32)k.tiles;
    const u64 column = (u64)(blockIdx.x - tile * (u32)k.tiles) * blockDim.x + threadIdx.x;
    u64 line = tile * (blockDim.y * k.repeat) + threadIdx.y;
    if (column >= k.width) return;
    const E* table = (const E*)k.table + column;
    E* out = (E*)k.out + column;
    for (u64 done = 0; done < k.repeat; done += FLIGHT, line += FLIGHT * blockDim.y) {
        i64 id[FLIGHT];
        E row[FLIGHT];
#pragma unroll
        for (int u = 0; u < FLIGHT; u++) {
            const u64 at = line + u * blockDim.y;
            if (at < k.lines) id[u] = (i64)((const I*)k.ids)[at];
        }
#pragma unroll
        for (int u = 0; u < FLIGHT; u++) {
            const u64 at = line + u * blockDim.y;
            row[u] = E();
            if (at < k.lines) {
                if (column == 0 && (id[u] < 0 || id[u] >= k.logical)) of_report(k.fault, k.ticket, id[u], 0, k.logical);
                const i64 here = id[u] - k.first;
                if (id[u] >= k.first && here < k.rows) row[u] = table[here * (i64)k.width];
            }
        }
#pragma unroll
        for (int u = 0; u < FLIGHT; u++) {
            const u64 at = line + u * blockDim.y;
            if (at < k.lines) out[at * k.width] = row[u];
        }
    }
}

#else

// For each row of the table the list of the lines that name it: `head` and `next` count from 1, 0 ends a list. Which order
// a list has depends on the hardware's whim; its length does not, nor does what is made of it below.
extern "C" __global__ void __launch_bounds__(256)
link(const I* ids, u32 lines, i64 first, i64 rows, i64 logical, u32* head, u32* count, u32* next, of_fault* fault, u64 ticket) {
    const u32 stride = gridDim.x * 256;
    for (u32 i = blockIdx.x * 256 + threadIdx.x; i < lines; i += stride) {
        const i64 id = (i64)ids[i];
        if (id < 0 || id >= logical) of_report(fault, ticket, id, 0, logical);
        if (id < first || id - first >= rows) continue;
        atomicAdd(count + (id - first), 1u);
        next[i] = atomicExch(head + (id - first), i + 1);
    }
}

// Lists up to that long are followed and sorted; longer ones are found again in order, by looking through all indices.
#define SHORT 32
// Indices that a thread looks at before the block adds what it has found.
#define LOOK 4

typedef acc_t<T> A;

// One block for each row of the table (and each tile of its columns): adds the lines of dy that name it in rising order, so
// that the bits are always the same.
extern "C" __global__ void __launch_bounds__(256)
sum(T* out, const T* dy, const I* ids, u32 lines, u64 width, i64 first, const u32* head, const u32* count, const u32* next) {
    __shared__ u32 list[256 * LOOK];
    __shared__ u32 found[LOOK * 8];
    const u64 row = blockIdx.x, column = ((u64)blockIdx.y * blockDim.x + threadIdx.x) * OF_V;
    const u32 n = count[row];
    const bool mine = column < width;
    A total[OF_V];
#pragma unroll
    for (int e = 0; e < OF_V; e++) total[e] = 0;
    const T* from = dy + column;
    auto add = [&](const u32* list, u32 n) {
        if (!mine) return;
        u32 i = 0;
        // The additions wait for each other, so the loads must not: a row that is named often is one block's work.
        for (; i + 8 <= n; i += 8) {
            of_vec<T, OF_V> x[8];
#pragma unroll
            for (int u = 0; u < 8; u++) x[u] = of_load<T, OF_V>(from + list[i + u] * width);
#pragma unroll
            for (int u = 0; u < 8; u++) {
#pragma unroll
                for (int e = 0; e < OF_V; e++) total[e] += of_get<A>(x[u].at[e]);
            }
        }
        for (; i < n; i++) {
            const of_vec<T, OF_V> x = of_load<T, OF_V>(from + list[i] * width);
#pragma unroll
            for (int e = 0; e < OF_V; e++) total[e] += of_get<A>(x.at[e]);
        }
    };
    if (n > SHORT) {
        const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
        const i64 want = first + (i64)row;
        for (u32 base = 0; base < lines; base += blockDim.x * LOOK) {
            u32 hits[LOOK];
#pragma unroll
            for (int k = 0; k < LOOK; k++) {
                const u32 at = base + k * blockDim.x + threadIdx.x;
                hits[k] = __ballot_sync(OF_FULL, at < lines && (i64)ids[at] == want);
                if (lane == 0) found[k * warps + warp] = __popc(hits[k]);
            }
            __syncthreads();
            u32 all = 0;
#pragma unroll
            for (int k = 0; k < LOOK; k++) {
                for (u32 w = 0; w < warps; w++) {
                    if (w == warp && (hits[k] >> lane & 1u))
                        list[all + __popc(hits[k] & ((1u << lane) - 1u))] = base + k * blockDim.x + threadIdx.x;
                    all += found[k * warps + w];
                }
            }
            __syncthreads();
            add(list, all);
        }
    } else if (n > 0) {
        u32* unsorted = list + SHORT;
        if (threadIdx.x == 0) {
            u32 at = head[row];
            for (u32 i = 0; i < n; i++) {
                unsorted[i] = at - 1;
                at = next[at - 1];
            }
        }
        __syncthreads();
        if (threadIdx.x < n) {
            const u32 line = unsorted[threadIdx.x];
            u32 place = 0;
            for (u32 i = 0; i < n; i++) place += unsorted[i] < line;
            list[place] = line;
        }
        __syncthreads();
        add(list, n);
    }
    if (mine) {
        of_vec<T, OF_V> y;
#pragma unroll
        for (int e = 0; e < OF_V; e++) of_set(y.at[e], total[e]);
        of_store(out + row * width + column, y);
    }
}
#endif
