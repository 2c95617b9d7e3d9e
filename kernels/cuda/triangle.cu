// One triangle of the last two dims; zero elsewhere.
//   OF_BYTES: of an element; OF_V: elements of a vector; LOWER: 1 keeps what is below the edge, 0 what is above
#include "prelude.cuh"
typedef of_word<OF_BYTES>::type E;

struct of_args {
    u64 lines, width; // of all planes; in vectors
    u64 tiles, repeat;
    u64 rows, step;   // of a plane; the rows of a block modulo that
    i64 edge;         // the column in which the diagonal crosses row 0
    void* out;
    const void* x;
};

extern "C" __global__ void __launch_bounds__(256) triangle(of_args k) {
    const u32 tile = blockIdx.x / (u32)k.tiles;
    const u64 column = (u64)(blockIdx.x - tile * (u32)k.tiles) * blockDim.x + threadIdx.x;
    u64 line = tile * (blockDim.y * k.repeat) + threadIdx.y;
    if (column >= k.width || line >= k.lines) return;
    u64 row = line % k.rows;
    const i64 first = (i64)(column * OF_V);
    for (u64 i = 0; i < k.repeat && line < k.lines; i++) {
        const i64 edge = (i64)row + k.edge;
        const u64 at = (line * k.width + column) * OF_V;
        of_vec<E, OF_V> y;
        // What is zero as a whole is not loaded.
        if (LOWER ? first <= edge : first + OF_V - 1 >= edge) y = of_load<E, OF_V>((const E*)k.x + at);
#pragma unroll
        for (int e = 0; e < OF_V; e++) {
            if (LOWER ? first + e > edge : first + e < edge) y.at[e] = E();
        }
        of_store((E*)k.out + at, y);
        line += blockDim.y;
        row += k.step;
        if (row >= k.rows) row -= k.rows;
    }
}
