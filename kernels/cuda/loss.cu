// Cross entropy of rows of logits against class indices.
//   T: the logits. L, D: lse and the gradient of the loss (cross_entropy_grad). VEC: elements loaded at once; PACKED: 1
//   where the logits of a row are neighbours. ROW: threads that share a row (a power of two up to 32, or the block).
#include "rows.cuh"

typedef acc_t<T> A;
#define THREADS (ROW > 32 ? ROW : 128)
#define GROUPS (THREADS / ROW)
#define UNROLL (VEC * (int)sizeof(T) >= 16 ? 2 : 8)

// Which classes there are: `count` in all, of which this shard's logits are those from `first`.
// Of a target its class keeps `kept`, and every class gets `spread`: 1 and 0 without label smoothing.
struct of_classes { i64 count, first, ignore; i32 may_ignore, pad; f64 kept, spread; };

OF_FN bool ignored(const of_classes& c, i64 target) { return c.may_ignore && target == c.ignore; }
// A target that is no class is reported; -1 then, and where it is ignored or in another shard.
OF_FN i64 index_of(const of_classes& c, i64 target, i64 n, of_fault* fault, u64 ticket) {
    if (ignored(c, target)) return -1;
    if (target < 0 || target >= c.count) {
        of_report(fault, ticket, target, 0, c.count);
        return -1;
    }
    const i64 i = target - c.first;
    return i >= 0 && i < n ? i : -1;
}

// Tensors: logits, target, loss, lse.
extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy(const T* x, const i64* target, A* loss, A* lse, of_fault* fault, u64 ticket, of_classes classes,
                  OF_PARAM of_rows<4> p) {
    __shared__ A room[32];
    const int lane = threadIdx.x % ROW;
    const i64 n = p.len, step = PACKED ? 1 : p.steps[0].at[0];
    for (u64 base = (u64)blockIdx.x * GROUPS; base < p.count; base += (u64)gridDim.x * GROUPS) {
        const u64 row = base + threadIdx.x / ROW;
        const bool here = row < p.count;
        const T* from = x + of_at<u64>(here ? row : 0, p.outer, p.starts[0]);
        of_online<A> mine;
        for (i64 first = lane * VEC; here && first < n; first += ROW * VEC * UNROLL) {
            A v[UNROLL * VEC], largest = -of_infinity<A>();
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                const i64 i = first + (i64)k * ROW * VEC;
                if (i < n) {
                    of_read<VEC>(from + i * step, v + k * VEC);
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
        const A sum = of_group_online<ROW>(mine, room).log_sum();
        A below = 0;
        if (classes.spread != 0) {
            for (i64 i = lane; here && i < n; i += ROW) below += sum - of_get<A>(from[i * step]);
            below = of_group_reduce<ROW, of_sum_op>(below, (A)0, room);
        }
        if (here && lane == 0) {
            const i64 at = index_of(classes, target[of_at<u64>(row, p.outer, p.starts[1])], n, fault, ticket);
            lse[of_at<u64>(row, p.outer, p.starts[3])] = sum;
            A value = 0;
            if (at >= 0) {
                value = sum - of_get<A>(from[at * step]);
                if (classes.spread != 0) value = (A)classes.kept * value + (A)classes.spread * below;
                // An infinite logit has no share of the sum: NaN, as the logarithm of inf / inf.
                value += sum * (A)0;
            }
            loss[of_at<u64>(row, p.outer, p.starts[2])] = value;
        }
    }
}

// Tensors: logits, target, the result.
extern "C" __global__ void nll_pick(const T* x, const i64* target, T* out, of_fault* fault, u64 ticket,
                                    of_classes classes, OF_PARAM of_rows<3> p) {
    for (u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x; row < p.count; row += (u64)gridDim.x * blockDim.x) {
        const T* from = x + of_at<u64>(row, p.outer, p.starts[0]);
        const i64 at = index_of(classes, target[of_at<u64>(row, p.outer, p.starts[1])], p.len, fault, ticket);
        of_set(out[of_at<u64>(row, p.outer, p.starts[2])], at < 0 ? (A)0 : of_get<A>(from[at * p.steps[0].at[0]]));
    }
}

// Tensors: logits, dlogits, target, lse, dloss.
extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy_grad(const T* x, T* dx, const i64* target, const L* lse, const D* dloss, of_fault* fault, u64 ticket,
                       of_classes classes, OF_PARAM of_rows<5> p) {
    const int lane = threadIdx.x % ROW;
    const i64 n = p.len, step = PACKED ? 1 : p.steps[0].at[0], step_to = PACKED ? 1 : p.steps[1].at[0];
    for (u64 row = (u64)blockIdx.x * GROUPS + threadIdx.x / ROW; row < p.count; row += (u64)gridDim.x * GROUPS) {
        const T* from = x + of_at<u64>(row, p.outer, p.starts[0]);
        T* to = dx + of_at<u64>(row, p.outer, p.starts[1]);
        const i64 wanted = target[of_at<u64>(row, p.outer, p.starts[2])];
        const bool none = ignored(classes, wanted);
        const i64 at = index_of(classes, wanted, n, fault, ticket);
        const A shift = of_get<A>(lse[of_at<u64>(row, p.outer, p.starts[3])]);
        const A scale = of_get<A>(dloss[of_at<u64>(row, p.outer, p.starts[4])]);
        const A spread = (A)classes.spread, whole = (A)(classes.kept + classes.spread);
        for (i64 first = lane * VEC; first < n; first += ROW * VEC * UNROLL) {
            A v[UNROLL * VEC];
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                const i64 i = first + (i64)k * ROW * VEC;
                if (i < n) of_read<VEC>(from + i * step, v + k * VEC);
            }
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                const i64 i = first + (i64)k * ROW * VEC;
                if (i >= n) continue;
#pragma unroll
                for (int j = 0; j < VEC; j++) {
                    const A e = of_exp_for<T>(v[k * VEC + j] - shift);
                    v[k * VEC + j] = none ? (A)0 : (e - (i + j == at ? whole : spread)) * scale;
                }
                of_write<VEC>(to + i * step_to, v + k * VEC);
            }
        }
    }
}
