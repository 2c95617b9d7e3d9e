// Softmax and log-softmax along one dim, and their gradients.
//   T: the element. LOG: 1 for log-softmax. VEC: elements loaded at once.
//   ROW: threads that share a row (a power of two up to 32, or the block). PER: groups of VEC elements that each of them
//   keeps in registers; 0: the row is read twice.
#include "rows.cuh"

typedef acc_t<T> A;
#define THREADS (ROW > 32 ? ROW : 128)
#define GROUPS (THREADS / ROW)
// Groups of VEC elements on their way at once where the row is not kept.
#define UNROLL (VEC * (int)sizeof(T) >= 16 ? 2 : 8)

// What is taken from the exponents, or the factor of the exponentials. An infinity makes the whole row NaN.
OF_FN A finish(A largest, A sum) {
    if (largest == of_infinity<A>()) return (A)OF_NAN;
    return LOG ? log(sum) : (A)1 / sum;
}

// Rows whose elements are neighbours.
extern "C" __global__ void __launch_bounds__(THREADS) softmax_rows(const T* x, T* y, OF_PARAM of_rows<2> p) {
    __shared__ A room[32];
    const int lane = threadIdx.x % ROW;
    const i64 n = p.len;
    for (u64 base = (u64)blockIdx.x * GROUPS; base < p.count; base += (u64)gridDim.x * GROUPS) {
        const u64 row = base + threadIdx.x / ROW;
        const bool here = row < p.count;
        const T* from = x + of_at<u64>(here ? row : 0, p.outer, p.starts[0]);
        T* to = y + of_at<u64>(here ? row : 0, p.outer, p.starts[1]);
#if PER > 0
        A v[PER * VEC], largest = -of_infinity<A>(), sum = 0;
#pragma unroll
        for (int k = 0; k < PER; k++) {
            const i64 i = (i64)(lane + k * ROW) * VEC;
            if (here && i < n) {
                of_read<VEC>(from + i, v + k * VEC);
            } else {
#pragma unroll
                for (int j = 0; j < VEC; j++) v[k * VEC + j] = -of_infinity<A>();
            }
        }
#pragma unroll
        for (int k = 0; k < PER * VEC; k++) largest = of_larger_op::of(largest, v[k]);
        largest = of_group_reduce<ROW, of_larger_op>(largest, -of_infinity<A>(), room);
#pragma unroll
        for (int k = 0; k < PER * VEC; k++) {
#if LOG
            v[k] -= largest;
            sum += of_exp_for<T>(v[k]);
#else
            v[k] = of_exp_for<T>(v[k] - largest);
            sum += v[k];
#endif
        }
        sum = of_group_reduce<ROW, of_sum_op>(sum, (A)0, room);
        const A last = finish(largest, sum);
#pragma unroll
        for (int k = 0; k < PER; k++) {
            const i64 i = (i64)(lane + k * ROW) * VEC;
            if (here && i < n) {
#pragma unroll
                for (int j = 0; j < VEC; j++) v[k * VEC + j] = LOG ? v[k * VEC + j] - last : v[k * VEC + j] * last;
                of_write<VEC>(to + i, v + k * VEC);
            }
        }
#else
        of_online<A> mine;
        for (i64 first = lane * VEC; first < n; first += ROW * VEC * UNROLL) {
            A v[UNROLL * VEC], largest = -of_infinity<A>();
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                const i64 i = first + (i64)k * ROW * VEC;
                if (i < n) {
                    of_read<VEC>(from + i, v + k * VEC);
                } else {
#pragma unroll
                    for (int j = 0; j < VEC; j++) v[k * VEC + j] = -of_infinity<A>();
                }
            }
#pragma unroll
            for (int k = 0; k < UNROLL * VEC; k++) largest = of_larger_op::of(largest, v[k]);
            mine.raise(largest);
#pragma unroll
            for (int k = 0; k < UNROLL * VEC; k++) mine.add(T(), v[k]);
        }
        const of_online<A> all = of_group_online<ROW>(mine, room);
        const A last = finish(all.largest, all.sum);
        for (i64 first = lane * VEC; first < n; first += ROW * VEC * UNROLL) {
            A v[UNROLL * VEC];
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                const i64 i = first + (i64)k * ROW * VEC;
                if (i < n) of_read<VEC>(from + i, v + k * VEC);
            }
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                const i64 i = first + (i64)k * ROW * VEC;
                if (i >= n) continue;
#pragma unroll
                for (int j = 0; j < VEC; j++) {
                    A z = v[k * VEC + j] - all.largest;
                    v[k * VEC + j] = LOG ? z - last : of_exp_for<T>(z) * last;
                }
                of_write<VEC>(to + i, v + k * VEC);
            }
        }
#endif
    }
}

// What the gradient's sum adds up, and what the gradient is.
OF_FN A term(A dy, A y) { return LOG ? dy : dy * y; }
OF_FN A gradient(A dy, A y, A sum) { return LOG ? dy - of_exp_for<T>(y) * sum : y * (dy - sum); }

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_grad_rows(const T* dy, const T* y, T* dx, OF_PARAM of_rows<3> p) {
    __shared__ A room[32];
    const int lane = threadIdx.x % ROW;
    const i64 n = p.len;
    for (u64 base = (u64)blockIdx.x * GROUPS; base < p.count; base += (u64)gridDim.x * GROUPS) {
        const u64 row = base + threadIdx.x / ROW;
        const bool here = row < p.count;
        const T* dys = dy + of_at<u64>(here ? row : 0, p.outer, p.starts[0]);
        const T* ys = y + of_at<u64>(here ? row : 0, p.outer, p.starts[1]);
        T* to = dx + of_at<u64>(here ? row : 0, p.outer, p.starts[2]);
        A sum = 0;
#if PER > 0
        A d[PER * VEC], v[PER * VEC];
#pragma unroll
        for (int k = 0; k < PER; k++) {
            const i64 i = (i64)(lane + k * ROW) * VEC;
            if (here && i < n) {
                of_read<VEC>(dys + i, d + k * VEC);
                of_read<VEC>(ys + i, v + k * VEC);
            } else {
#pragma unroll
                for (int j = 0; j < VEC; j++) d[k * VEC + j] = v[k * VEC + j] = 0;
            }
        }
#pragma unroll
        for (int k = 0; k < PER * VEC; k++) sum += term(d[k], v[k]);
        sum = of_group_reduce<ROW, of_sum_op>(sum, (A)0, room);
#pragma unroll
        for (int k = 0; k < PER; k++) {
            const i64 i = (i64)(lane + k * ROW) * VEC;
            if (here && i < n) {
#pragma unroll
                for (int j = 0; j < VEC; j++) v[k * VEC + j] = gradient(d[k * VEC + j], v[k * VEC + j], sum);
                of_write<VEC>(to + i, v + k * VEC);
            }
        }
#else
        for (i64 i = lane * VEC; i < n; i += ROW * VEC) {
            A d[VEC], v[VEC];
            of_read<VEC>(dys + i, d);
            if (!LOG) of_read<VEC>(ys + i, v);
#pragma unroll
            for (int j = 0; j < VEC; j++) sum += term(d[j], LOG ? (A)0 : v[j]);
        }
        sum = of_group_reduce<ROW, of_sum_op>(sum, (A)0, room);
        for (i64 i = lane * VEC; i < n; i += ROW * VEC) {
            A d[VEC], v[VEC];
            of_read<VEC>(dys + i, d);
            of_read<VEC>(ys + i, v);
#pragma unroll
            for (int j = 0; j < VEC; j++) v[j] = gradient(d[j], v[j], sum);
            of_write<VEC>(to + i, v);
        }
#endif
    }
}

// Rows beside each other: neighbouring lanes take neighbouring rows, and the warps of a block share them. Any strides.
#define WARPS 8

extern "C" __global__ void __launch_bounds__(WARPS * 32) softmax_columns(const T* x, T* y, OF_PARAM of_rows<2> p) {
    __shared__ A largest[WARPS][32], sums[WARPS][32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const i64 n = p.len, step = p.steps[0].at[0], step_y = p.steps[1].at[0];
    for (u64 base = (u64)blockIdx.x * 32; base < p.count; base += (u64)gridDim.x * 32) {
        const u64 row = base + lane < p.count ? base + lane : base;
        const T* from = x + of_at<u64>(row, p.outer, p.starts[0]);
        T* to = y + of_at<u64>(row, p.outer, p.starts[1]);
        of_online<A> mine;
        for (i64 first = warp; first < n; first += WARPS * 4) {
            A v[4], m = -of_infinity<A>();
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const i64 i = first + k * WARPS;
                v[k] = i < n ? of_get<A>(from[i * step]) : -of_infinity<A>();
            }
#pragma unroll
            for (int k = 0; k < 4; k++) m = of_larger_op::of(m, v[k]);
            mine.raise(m);
#pragma unroll
            for (int k = 0; k < 4; k++) mine.add(T(), v[k]);
        }
        __syncthreads();
        largest[warp][lane] = mine.largest;
        __syncthreads();
        A m = largest[0][lane], sum = 0;
        for (int w = 1; w < WARPS; w++) m = of_larger_op::of(m, largest[w][lane]);
        sums[warp][lane] = mine.under(m);
        __syncthreads();
        for (int w = 0; w < WARPS; w++) sum += sums[w][lane];
        const A last = finish(m, sum);
        if (base + lane < p.count) {
#pragma unroll 4
            for (i64 i = warp; i < n; i += WARPS) {
                const A z = of_get<A>(from[i * step]) - m;
                of_set(to[i * step_y], LOG ? z - last : of_exp_for<T>(z) * last);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    softmax_grad_columns(const T* dy, const T* y, T* dx, OF_PARAM of_rows<3> p) {
    __shared__ A sums[WARPS][32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const i64 n = p.len, step_d = p.steps[0].at[0], step_y = p.steps[1].at[0], step = p.steps[2].at[0];
    for (u64 base = (u64)blockIdx.x * 32; base < p.count; base += (u64)gridDim.x * 32) {
        const u64 row = base + lane < p.count ? base + lane : base;
        const T* dys = dy + of_at<u64>(row, p.outer, p.starts[0]);
        const T* ys = y + of_at<u64>(row, p.outer, p.starts[1]);
        T* to = dx + of_at<u64>(row, p.outer, p.starts[2]);
        A sum = 0;
#pragma unroll 4
        for (i64 i = warp; i < n; i += WARPS)
            sum += term(of_get<A>(dys[i * step_d]), LOG ? (A)0 : of_get<A>(ys[i * step_y]));
        __syncthreads();
        sums[warp][lane] = sum;
        __syncthreads();
        sum = 0;
        for (int w = 0; w < WARPS; w++) sum += sums[w][lane];
        if (base + lane < p.count) {
#pragma unroll 4
            for (i64 i = warp; i < n; i += WARPS)
                of_set(to[i * step], gradient(of_get<A>(dys[i * step_d]), of_get<A>(ys[i * step_y]), sum));
        }
    }
}
