// Convolutions, as products of matrices that are read out of the tensors where they lie.
//   T: the element
//   FORM 0: the result, [filters] x [images, places] over channels and taps
//   FORM 1: the transposed convolution, [channels] x [images, elements] over filters and taps
//   FORM 2: the gradient of the weight, [filters] x [channels, taps] over images and places
#include "prelude.cuh"

// Tiles of the output and of the summed dim; a thread computes 4x4 elements 16 apart.
#define TILE 64
#define DEPTH 16

struct of_conv {
    i64 batch, groups, channels, filters;
    i64 image[3], kernel[3], result[3], stride[3], padding[3], dilation[3];
};

typedef acc_t<T> A;

OF_FN i64 of_size(const i64* d) { return d[0] * d[1] * d[2]; }

// The element of an image that tap `k` reads for a place; -1 outside.
OF_FN i64 of_element(const of_conv& p, i64 place, i64 k) {
    const i64 j[3] = {place / (p.result[1] * p.result[2]), place / p.result[2] % p.result[1], place % p.result[2]};
    const i64 t[3] = {k / (p.kernel[1] * p.kernel[2]), k / p.kernel[2] % p.kernel[1], k % p.kernel[2]};
    i64 at = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const i64 e = j[d] * p.stride[d] + t[d] * p.dilation[d] - p.padding[d];
        if (e < 0 || e >= p.image[d]) return -1;
        at = at * p.image[d] + e;
    }
    return at;
}

// The place for which tap `k` reads an element of an image; -1 where there is none.
OF_FN i64 of_place(const of_conv& p, i64 element, i64 k) {
    const i64 h[3] = {element / (p.image[1] * p.image[2]), element / p.image[2] % p.image[1], element % p.image[2]};
    const i64 t[3] = {k / (p.kernel[1] * p.kernel[2]), k / p.kernel[2] % p.kernel[1], k % p.kernel[2]};
    i64 at = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const i64 e = h[d] + p.padding[d] - t[d] * p.dilation[d];
        if (e < 0 || e % p.stride[d] != 0 || e / p.stride[d] >= p.result[d]) return -1;
        at = at * p.result[d] + e / p.stride[d];
    }
    return at;
}

// `a` is the weight, of FORM 2 the result's gradient; `b` the image, of FORM 1 the result's gradient.
extern "C" __global__ void __launch_bounds__(256)
conv(const T* a, const T* b, const T* bias, T* c, of_conv p) {
    __shared__ A left[DEPTH][TILE + 1];
    __shared__ A right[DEPTH][TILE + 1];
    const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    const i64 taps = of_size(p.kernel), elements = of_size(p.image), places = of_size(p.result);
#if FORM == 0
    const i64 m = p.filters, n = p.batch * places, depth = p.channels * taps;
#elif FORM == 1
    const i64 m = p.channels, n = p.batch * elements, depth = p.filters * taps;
#else
    const i64 m = p.filters, n = p.channels * taps, depth = p.batch * places;
#endif
    const i64 across = (n + TILE - 1) / TILE;
    const i64 row0 = (i64)(blockIdx.x / across) * TILE, column0 = (i64)(blockIdx.x % across) * TILE;
    for (i64 g = blockIdx.y; g < p.groups; g += gridDim.y) {
        A sum[4][4];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i][j] = (A)0;
        for (i64 k0 = 0; k0 < depth; k0 += DEPTH) {
#pragma unroll
            for (int s = 0; s < TILE * DEPTH / 256; s++) {
                const int e = s * 256 + (int)threadIdx.x;
                // Neighbours along k of the left operand and along the columns of the right one lie side by side.
                const i64 ka = k0 + e % DEPTH, i = row0 + e / DEPTH, kb = k0 + e / TILE, j = column0 + e % TILE;
                A x = (A)0, y = (A)0;
                if (i < m && ka < depth) {
#if FORM == 0
                    x = of_get<A>(a[(g * m + i) * depth + ka]);
#elif FORM == 1
                    x = of_get<A>(a[((g * p.filters + ka / taps) * m + i) * taps + ka % taps]);
#else
                    x = of_get<A>(a[((ka / places * p.groups + g) * m + i) * places + ka % places]);
#endif
                }
                if (j < n && kb < depth) {
#if FORM == 0
                    const i64 at = of_element(p, j % places, kb % taps);
                    const i64 line = (j / places * p.groups + g) * p.channels + kb / taps;
                    if (at >= 0) y = of_get<A>(b[line * elements + at]);
#elif FORM == 1
                    const i64 at = of_place(p, j % elements, kb % taps);
                    const i64 line = (j / elements * p.groups + g) * p.filters + kb / taps;
                    if (at >= 0) y = of_get<A>(b[line * places + at]);
#else
                    const i64 at = of_element(p, kb % places, j % taps);
                    const i64 line = (kb / places * p.groups + g) * p.channels + j / taps;
                    if (at >= 0) y = of_get<A>(b[line * elements + at]);
#endif
                }
                left[e % DEPTH][e / DEPTH] = x;
                right[e / TILE][e % TILE] = y;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                A x[4], y[4];
#pragma unroll
                for (int i = 0; i < 4; i++) x[i] = left[k][ty + 16 * i], y[i] = right[k][tx + 16 * i];
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int j = 0; j < 4; j++) sum[i][j] = x[i] * y[j] + sum[i][j];
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const i64 row = row0 + ty + 16 * i, column = column0 + tx + 16 * j;
                if (row >= m || column >= n) continue;
                const A add = bias ? of_get<A>(bias[g * m + row]) : (A)0;
#if FORM == 2
                of_set(c[(g * m + row) * n + column], sum[i][j] + add);
#else
                const i64 each = FORM == 0 ? places : elements;
                of_set(c[((column / each * p.groups + g) * m + row) * each + column % each], sum[i][j] + add);
#endif
            }
    }
}
