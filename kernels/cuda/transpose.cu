// Elements from a layout that is contiguous along one dim to one that is contiguous along another: in square tiles that
// are read and written along lines of memory and turned in shared memory.
//   OF_BYTES: of an element
#include "prelude.cuh"
typedef of_word<OF_BYTES>::type E;
// A warp moves 64 bytes of narrow elements by two lines of 32.
#define TILE (OF_BYTES <= 2 ? 64 : 32)
// Lines are an odd number of words apart, so that a column has all banks.
#define PAD (OF_BYTES < 4 ? 4 / OF_BYTES : 1)
#define MOST 6

struct of_args {
    u64 rows, columns;   // lines of the source run along rows, lines of the output along columns
    u64 row_tiles, column_tiles;
    i64 from, to;        // from one column to the next in the source; from one row to the next in the output
    u64 rank;            // the other dims
    u64 size[MOST];
    i64 from_plane[MOST], to_plane[MOST];
    void* out;
    const void* x;
};

extern "C" __global__ void __launch_bounds__(256) transpose(of_args k) {
    __shared__ E tile[TILE][TILE + PAD];
    const u32 tiles = (u32)(k.row_tiles * k.column_tiles);
    u32 plane = blockIdx.x / tiles;
    const u32 place = blockIdx.x - plane * tiles, down = place / (u32)k.column_tiles;
    const u64 row = (u64)down * TILE, column = (u64)(place - down * (u32)k.column_tiles) * TILE;
    i64 from = 0, to = 0;
    for (int d = (int)k.rank - 1; d >= 0; d--) {
        const u32 size = (u32)k.size[d], next = plane / size;
        const i64 at = plane - next * size;
        from += at * k.from_plane[d];
        to += at * k.to_plane[d];
        plane = next;
    }
    const E* x = (const E*)k.x + from;
    E* out = (E*)k.out + to;
    const u64 rows = k.rows - row, columns = k.columns - column;
#pragma unroll
    for (int i = 0; i < TILE; i += 8) {
#pragma unroll
        for (int j = 0; j < TILE; j += 32) {
            const u32 c = threadIdx.y + i, r = threadIdx.x + j;
            if (c < columns && r < rows) tile[c][r] = x[(i64)(column + c) * k.from + (i64)(row + r)];
        }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; i += 8) {
#pragma unroll
        for (int j = 0; j < TILE; j += 32) {
            const u32 r = threadIdx.y + i, c = threadIdx.x + j;
            if (c < columns && r < rows) out[(i64)(row + r) * k.to + (i64)(column + c)] = tile[c][r];
        }
    }
}
