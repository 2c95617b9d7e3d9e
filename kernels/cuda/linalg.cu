// What cuSOLVER leaves to do around its decompositions. Matrices of a batch follow each other; strides count elements.
//   T: elements; PART: their parts; Z: complex numbers of these parts, in which all is computed.
#include "complex.cuh"

struct strided { i64 matrix, row, column; };

OF_FN Z element(const T* x, const strided& s, u64 m, u64 r, u64 c) {
    return of_take<Z>(x[(i64)m * s.matrix + (i64)r * s.row + (i64)c * s.column]);
}
OF_FN void put(T* x, const strided& s, u64 m, u64 r, u64 c, Z z) {
    of_put(x[(i64)m * s.matrix + (i64)r * s.row + (i64)c * s.column], z);
}
OF_FN PART size_of(Z z) { return of_hypot(z.re, z.im); }
OF_FN Z direction(Z z) { return of_nonzero(z) ? of_sign(z) : of_real<PART>((PART)1); }

// For each vector, a column of v, the factor of absolute value 1 that makes its first largest element positive: the vector is multiplied
// by it, and the row of w that belongs to it by its conjugate. With `conjugated`, of the conjugate vectors. A warp a vector.
extern "C" __global__ void __launch_bounds__(32) phases(
    T* v, strided sv, u64 rows, u64 columns, T* w, strided sw, u64 paired, u64 length, i32 conjugated
) {
    const u64 m = blockIdx.x / columns, c = blockIdx.x % columns;
    PART best = (PART)-1;
    u64 at = 0;
    for (u64 r = threadIdx.x; r < rows; r += 32) {
        const PART size = size_of(element(v, sv, m, r, c));
        if (size > best) {
            best = size;
            at = r;
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        const PART other = __shfl_down_sync(OF_FULL, best, step);
        const u64 where = __shfl_down_sync(OF_FULL, at, step);
        if (other > best || (other == best && where < at)) {
            best = other;
            at = where;
        }
    }
    at = __shfl_sync(OF_FULL, at, 0);
    const Z by = of_conj(direction(element(v, sv, m, at, c)));
    __syncthreads();
    for (u64 r = threadIdx.x; r < rows; r += 32) {
        const Z z = of_mul(by, element(v, sv, m, r, c));
        put(v, sv, m, r, c, conjugated ? of_conj(z) : z);
    }
    if (c >= paired) return;
    for (u64 j = threadIdx.x; j < length; j += 32) put(w, sw, m, c, j, of_mul(of_conj(by), element(w, sw, m, c, j)));
}

// The determinants of factors [n, n] and their pivots, or with `logs` the directions and the logarithms of the sizes. A warp a matrix.
extern "C" __global__ void __launch_bounds__(32)
    determinants(const T* lu, strided s, const i64* pivots, u64 n, T* signs, PART* logs) {
    const u64 m = blockIdx.x;
    Z product = of_real<PART>((PART)1);
    PART log = 0;
    for (u64 i = threadIdx.x; i < n; i += 32) {
        const Z z = element(lu, s, m, i, i);
        if (pivots[m * n + i] != (i64)i + 1) product = of_neg(product);
        product = of_mul(product, logs ? of_sign(z) : z);
        if (logs) log += of_log(size_of(z));
    }
    for (int step = 16; step > 0; step /= 2) {
        Z other;
        other.re = __shfl_down_sync(OF_FULL, product.re, step);
        other.im = __shfl_down_sync(OF_FULL, product.im, step);
        product = of_mul(product, other);
        log += __shfl_down_sync(OF_FULL, log, step);
    }
    if (threadIdx.x != 0) return;
    of_put(signs[m], product);
    if (logs) logs[m] = log;
}

// The permutation matrices P with A = P L U. A thread a column.
extern "C" __global__ void __launch_bounds__(256)
    permutations(const i64* pivots, T* p, u64 count, u64 k, u64 rows, i64 first, of_fault* fault, u64 ticket) {
    for (u64 at = (u64)blockIdx.x * 256 + threadIdx.x; at < count * rows; at += (u64)gridDim.x * 256) {
        const u64 m = at / rows, column = at % rows;
        // Where the row that ends up here began.
        i64 row = (i64)column;
        for (u64 step = k; step-- > 0;) {
            const i64 other = pivots[m * k + step] - first;
            if (other < 0 || other >= (i64)rows) {
                of_report(fault, ticket, other + first, first, (i64)rows + first);
                return;
            }
            if (row == (i64)step) row = other;
            else if (row == other) row = (i64)step;
        }
        for (u64 r = 0; r < rows; r++) of_put(p[(m * rows + r) * rows + column], of_real<PART>((i64)r == row ? (PART)1 : (PART)0));
    }
}

// Solves with triangles [n, n] in the place of the right sides: a block a column, row after row.
extern "C" __global__ void __launch_bounds__(128) triangular(
    const T* a, strided sa, T* b, strided sb, u64 n, u64 columns, i32 upper, i32 unit, i32 conjugated
) {
    const u64 m = blockIdx.x / columns, c = blockIdx.x % columns;
    __shared__ Z x;
    for (u64 k = 0; k < n; k++) {
        const u64 i = upper ? n - 1 - k : k;
        if (threadIdx.x == 0) {
            x = element(b, sb, m, i, c);
            if (!unit) {
                const Z d = element(a, sa, m, i, i);
                x = of_div(x, conjugated ? of_conj(d) : d);
                put(b, sb, m, i, c, x);
            }
        }
        __syncthreads();
        for (u64 j = threadIdx.x; j < n - 1 - k; j += 128) {
            const u64 r = upper ? j : i + 1 + j;
            const Z f = element(a, sa, m, r, i);
            put(b, sb, m, r, c, of_sub(element(b, sb, m, r, c), of_mul(conjugated ? of_conj(f) : f, x)));
        }
        __syncthreads();
    }
}

// Matrices of ones along the diagonal.
extern "C" __global__ void __launch_bounds__(256) identities(T* x, u64 count, u64 n) {
    for (u64 at = (u64)blockIdx.x * 256 + threadIdx.x; at < count * n * n; at += (u64)gridDim.x * 256) {
        const u64 i = at % (n * n);
        of_put(x[at], of_real<PART>(i / n == i % n ? (PART)1 : (PART)0));
    }
}

// The lower triangles [n, n] count twice, conjugated where they stand for the upper ones; diagonals are real.
extern "C" __global__ void __launch_bounds__(256) mirrored(T* x, u64 count, u64 n) {
    for (u64 at = (u64)blockIdx.x * 256 + threadIdx.x; at < count * n * n; at += (u64)gridDim.x * 256) {
        const u64 i = at % (n * n), r = i / n, c = i % n;
        if (r == c) of_put(x[at], of_re(of_take<Z>(x[at])));
        if (r > c) of_put(x[at - i + c * n + r], of_conj(of_take<Z>(x[at])));
    }
}

// The weights of singular values: their inverses, or 0 where they are not above the limit; with `turns`, of the determinants of both
// matrices of vectors, the products of the others times the conjugate direction of these.
extern "C" __global__ void __launch_bounds__(256)
    weights(const PART* s, T* w, u64 count, u64 k, f64 atol, f64 rtol, const T* left, const T* right) {
    for (u64 at = (u64)blockIdx.x * 256 + threadIdx.x; at < count * k; at += (u64)gridDim.x * 256) {
        const u64 m = at / k, i = at % k;
        if (!left) {
            const f64 most = (f64)s[m * k], least = atol > rtol * most ? atol : rtol * most;
            of_put(w[at], of_real<PART>((f64)s[at] > least ? (PART)1 / s[at] : (PART)0));
            continue;
        }
        Z by = of_conj(of_mul(direction(of_take<Z>(left[m])), direction(of_take<Z>(right[m]))));
        for (u64 j = 0; j < k; j++)
            if (j != i) by = of_scaled(by, s[m * k + j]);
        of_put(w[at], by);
    }
}

// The conjugates of the products U diag(w) Vh of [rows, k] and [k, columns].
extern "C" __global__ void __launch_bounds__(256)
    weighted(const T* u, const T* w, const T* vh, T* y, strided sy, u64 count, u64 rows, u64 k, u64 columns) {
    for (u64 at = (u64)blockIdx.x * 256 + threadIdx.x; at < count * rows * columns; at += (u64)gridDim.x * 256) {
        const u64 m = at / (rows * columns), r = at / columns % rows, c = at % columns;
        Z sum = of_real<PART>((PART)0);
        for (u64 i = 0; i < k; i++) {
            const Z left = of_mul(of_take<Z>(u[(m * rows + r) * k + i]), of_take<Z>(w[m * k + i]));
            sum = of_add(sum, of_mul(left, of_take<Z>(vh[(m * k + i) * columns + c])));
        }
        put(y, sy, m, r, c, of_conj(sum));
    }
}

// Reports the first matrix that a routine did not compute, with why.
extern "C" __global__ void report(const i32* info, u64 count, i64 why, of_fault* fault, u64 ticket) {
    for (u64 m = 0; m < count; m++)
        if (info[m] > 0) return of_report(fault, ticket, (i64)m, why, 0);
}

// Reports a matrix that has an infinity or a NaN.
extern "C" __global__ void __launch_bounds__(256)
    finite(const T* x, u64 count, u64 each, i64 why, of_fault* fault, u64 ticket) {
    for (u64 at = (u64)blockIdx.x * 256 + threadIdx.x; at < count * each; at += (u64)gridDim.x * 256) {
        const Z z = of_take<Z>(x[at]);
        if (!(of_abs(z.re) < OF_INF64 && of_abs(z.im) < OF_INF64)) of_report(fault, ticket, (i64)(at / each), why, 0);
    }
}
