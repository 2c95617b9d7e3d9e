// Layer norm and rms norm of rows, and their gradients.
//   T: elements. W, B: weight and bias. G: the gradients of those. CENTERED: 1 for layer norm, 0 for rms norm.
//   WEIGHT, BIAS: 1 where there is one; in gradients, where its gradient is wanted, and HAS_WEIGHT where there is one.
//   PACKED: 1 where elements of a row are neighbours. VEC: elements loaded at once. ROW: threads that share a row (a power
//   of two up to 32, or the block). PER: groups of VEC elements that each of them keeps in registers; 0: rows are read again.
#include "rows.cuh"

typedef acc_t<T> A;
#define THREADS (ROW > 32 ? ROW : 256)
#define GROUPS (THREADS / ROW)
#define KEPT (PER > 0 ? PER * VEC : VEC)

// Where element i of a row of tensor k lies.
#if PACKED
#define AT(k, i) (i)
#else
#define AT(k, i) of_at<u64>((u64)(i), p.inner, p.steps[k])
#endif

// Calls `f(k, i)` for this thread's groups of elements: the k-th starts at element i.
template <typename F> OF_FN void each(int lane, i64 n, F f) {
    if constexpr (PER > 0) {
#pragma unroll
        for (int k = 0; k < PER; k++) {
            const i64 i = (i64)(lane + k * ROW) * VEC;
            if (i < n) f(k, i);
        }
    } else {
        for (i64 i = (i64)lane * VEC; i < n; i += ROW * VEC) f(0, i);
    }
}

// Tensors: x, y, weight, bias, mean, rstd.
extern "C" __global__ void __launch_bounds__(THREADS)
    norm_rows(const T* x, T* y, const W* weight, const B* bias, A* mean, A* rstd, A eps, OF_PARAM of_rows<6> p) {
    __shared__ A room[32];
    const int lane = threadIdx.x % ROW;
    for (u64 base = (u64)blockIdx.x * GROUPS; base < p.count; base += (u64)gridDim.x * GROUPS) {
        const u64 row = base + threadIdx.x / ROW;
        const bool here = row < p.count;
        const i64 n = here ? p.len : 0;
        const T* from = x + of_at<u64>(here ? row : 0, p.outer, p.starts[0]);
        T* to = y + of_at<u64>(here ? row : 0, p.outer, p.starts[1]);
        A v[KEPT], sum = 0, squares = 0, m = 0;
        each(lane, n, [&](int k, i64 i) {
            A now[VEC];
            of_read<VEC>(from + AT(0, i), now);
#pragma unroll
            for (int j = 0; j < VEC; j++) {
                if (PER > 0) v[k * VEC + j] = now[j];
                if (CENTERED) sum += now[j];
                else squares += now[j] * now[j];
            }
        });
        if (CENTERED) {
            m = of_group_reduce<ROW, of_sum_op>(sum, (A)0, room) / (A)p.len;
            each(lane, n, [&](int k, i64 i) {
                A now[VEC];
                if (PER == 0) of_read<VEC>(from + AT(0, i), now);
#pragma unroll
                for (int j = 0; j < VEC; j++) {
                    const A d = (PER > 0 ? v[k * VEC + j] : now[j]) - m;
                    squares += d * d;
                }
            });
        }
        squares = of_group_reduce<ROW, of_sum_op>(squares, (A)0, room);
        const A r = (A)1 / sqrt(squares / (A)p.len + eps);
        if (here && lane == 0) {
            if (CENTERED) mean[of_at<u64>(row, p.outer, p.starts[4])] = m;
            rstd[of_at<u64>(row, p.outer, p.starts[5])] = r;
        }
        each(lane, n, [&](int k, i64 i) {
            A now[VEC], w[VEC], b[VEC];
            if (PER == 0) of_read<VEC>(from + AT(0, i), now);
            if (WEIGHT) of_read<VEC>(weight + AT(2, i), w);
            if (BIAS) of_read<VEC>(bias + AT(3, i), b);
#pragma unroll
            for (int j = 0; j < VEC; j++) {
                A z = ((PER > 0 ? v[k * VEC + j] : now[j]) - m) * r;
                if (WEIGHT) z *= w[j];
                if (BIAS) z += b[j];
                now[j] = z;
            }
            of_write<VEC>(to + AT(1, i), now);
        });
    }
}

// Two sums over a group at once, each as of_group_reduce gives it, by half as many barriers. `room` has 64 numbers.
OF_FN void two_sums(A& a, A& b, A* room) {
    if constexpr (ROW > 32) {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        a = of_warp_reduce<of_sum_op>(a);
        b = of_warp_reduce<of_sum_op>(b);
        __syncthreads();
        if (lane == 0) room[warp] = a, room[32 + warp] = b;
        __syncthreads();
        a = of_warp_reduce<of_sum_op>(lane < ROW / 32 ? room[lane] : (A)0);
        b = of_warp_reduce<of_sum_op>(lane < ROW / 32 ? room[32 + lane] : (A)0);
    } else {
        a = of_group_reduce<ROW, of_sum_op>(a, (A)0, room);
        b = of_group_reduce<ROW, of_sum_op>(b, (A)0, room);
    }
}

// dx, and with PER > 0 also each block's sums over its rows for the weight and the bias: blocks x len numbers for the
// weight, then as many for the bias. Tensors: dy, x, dx, weight, mean, rstd.
extern "C" __global__ void __launch_bounds__(THREADS)
    norm_grad_rows(const T* dy, const T* x, T* dx, const W* weight, const A* mean, const A* rstd, A* sums,
              OF_PARAM of_rows<6> p) {
    __shared__ A room[64];
    const int lane = threadIdx.x % ROW;
    A dw[KEPT], db[KEPT];
#pragma unroll
    for (int k = 0; k < KEPT; k++) dw[k] = db[k] = 0;
    for (u64 base = (u64)blockIdx.x * GROUPS; base < p.count; base += (u64)gridDim.x * GROUPS) {
        const u64 row = base + threadIdx.x / ROW;
        const bool here = row < p.count;
        const i64 n = here ? p.len : 0;
        const u64 safe = here ? row : 0;
        const T* dys = dy + of_at<u64>(safe, p.outer, p.starts[0]);
        const T* xs = x + of_at<u64>(safe, p.outer, p.starts[1]);
        T* to = dx + of_at<u64>(safe, p.outer, p.starts[2]);
        const A m = CENTERED ? mean[of_at<u64>(safe, p.outer, p.starts[4])] : (A)0;
        const A r = rstd[of_at<u64>(safe, p.outer, p.starts[5])];
        // g = dy * weight and h = x - mean of this thread's elements, and their sums.
        A g[KEPT], h[KEPT], sum_g = 0, sum_gh = 0;
        const auto load = [&](i64 i, A* g, A* h, A* d) {
            A w[VEC];
            of_read<VEC>(dys + AT(0, i), d);
            of_read<VEC>(xs + AT(1, i), h);
            if (HAS_WEIGHT) of_read<VEC>(weight + AT(3, i), w);
#pragma unroll
            for (int j = 0; j < VEC; j++) {
                h[j] -= m;
                g[j] = HAS_WEIGHT ? d[j] * w[j] : d[j];
            }
        };
        each(lane, n, [&](int k, i64 i) {
            A d[VEC];
            load(i, g + (PER > 0 ? k * VEC : 0), h + (PER > 0 ? k * VEC : 0), d);
#pragma unroll
            for (int j = 0; j < VEC; j++) {
                const int e = PER > 0 ? k * VEC + j : j;
                if (CENTERED) sum_g += g[e];
                sum_gh += g[e] * h[e];
                if (PER > 0 && WEIGHT) dw[e] += d[j] * (h[e] * r);
                if (PER > 0 && BIAS) db[e] += d[j];
            }
        });
        if (CENTERED) two_sums(sum_g, sum_gh, room);
        else sum_gh = of_group_reduce<ROW, of_sum_op>(sum_gh, (A)0, room);
        const A mean_g = CENTERED ? sum_g / (A)p.len : (A)0, mean_gh = sum_gh * r / (A)p.len;
        each(lane, n, [&](int k, i64 i) {
            A d[VEC];
            if (PER == 0) load(i, g, h, d);
#pragma unroll
            for (int j = 0; j < VEC; j++) {
                const int e = PER > 0 ? k * VEC + j : j;
                d[j] = r * (g[e] - mean_g - h[e] * r * mean_gh);
            }
            of_write<VEC>(to + AT(2, i), d);
        });
    }
#if PER > 0
    // The groups of a block one after another, so that the order is fixed.
    __shared__ A joined[GROUPS > 1 ? ROW * PER * VEC : 1];
    const int group = threadIdx.x / ROW;
    for (int which = 0; which < 2; which++) {
        if (which == 0 ? !WEIGHT : !BIAS) continue;
        A* block_sums = sums + ((u64)which * gridDim.x + blockIdx.x) * p.len;
        for (int turn = 0; turn < GROUPS; turn++) {
            if (GROUPS > 1) __syncthreads();
            if (group == turn)
                each(lane, p.len, [&](int k, i64 i) {
#pragma unroll
                    for (int j = 0; j < VEC; j++) {
                        A total = which == 0 ? dw[k * VEC + j] : db[k * VEC + j];
                        if (turn > 0) total += joined[i + j];
                        if (turn < GROUPS - 1) joined[i + j] = total;
                        else block_sums[i + j] = total;
                    }
                });
        }
    }
#endif
}

// The same sums where rows do not fit: neighbouring lanes take neighbouring elements, the warps of a block and blocks above
// each other share the rows. Tensors as in norm_grad_rows.
extern "C" __global__ void __launch_bounds__(256)
    norm_sums(const T* dy, const T* x, const A* mean, const A* rstd, A* sums, u64 piece, OF_PARAM of_rows<6> p) {
    __shared__ A room[2][8][32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u64 begin = blockIdx.y * piece, end = begin + piece < p.count ? begin + piece : p.count;
    for (i64 base = (i64)blockIdx.x * 32; base < p.len; base += (i64)gridDim.x * 32) {
        const i64 i = base + lane;
        A w = 0, b = 0;
        if (i < p.len) {
            const i64 at_dy = AT(0, i), at_x = AT(1, i);
#pragma unroll 4
            for (u64 row = begin + warp; row < end; row += 8) {
                const A d = of_get<A>(dy[of_at<u64>(row, p.outer, p.starts[0]) + at_dy]);
                if (WEIGHT) {
                    const A m = CENTERED ? mean[of_at<u64>(row, p.outer, p.starts[4])] : (A)0;
                    const A r = rstd[of_at<u64>(row, p.outer, p.starts[5])];
                    w += d * ((of_get<A>(x[of_at<u64>(row, p.outer, p.starts[1]) + at_x]) - m) * r);
                }
                b += d;
            }
        }
        __syncthreads();
        room[0][warp][lane] = w;
        room[1][warp][lane] = b;
        __syncthreads();
        if (warp < 2 && i < p.len) {
            A total = 0;
            for (int k = 0; k < 8; k++) total += room[warp][k][lane];
            if (warp == 0 ? WEIGHT : BIAS) sums[((u64)warp * gridDim.y + blockIdx.y) * p.len + i] = total;
        }
    }
}

// Joins the parts of the weight's gradient (blockIdx.y 0) and the bias's (1), in order.
extern "C" __global__ void __launch_bounds__(1024)
    norm_finish(const A* sums, G* dweight, G* dbias, u64 parts, u64 n) {
    __shared__ A room[32][33];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const A* from = sums + blockIdx.y * parts * n;
    for (u64 base = (u64)blockIdx.x * 32; base < n; base += (u64)gridDim.x * 32) {
        const u64 i = base + lane;
        A total = 0;
#pragma unroll 4
        for (u64 k = warp; i < n && k < parts; k += 32) total += from[k * n + i];
        __syncthreads();
        room[warp][lane] = total;
        __syncthreads();
        // A warp joins one column: its parts lie across the lanes then.
        total = of_warp_reduce<of_sum_op>(room[lane][warp]);
        const u64 column = base + warp;
        if (lane == 0 && column < n) {
            if (blockIdx.y == 0) of_set(dweight[column], total);
            else of_set(dbias[column], total);
        }
    }
}
