// Batch norm of [n, c, ...] and its gradients. A block has a channel.
//   T: elements. W, B: weight and bias, or their gradients.
#include "rows.cuh"

typedef acc_t<T> A;
#define THREADS 256

// Calls `f` with each element of channel c.
template <typename F> OF_FN void each(u64 c, u64 batch, u64 channels, u64 inner, F f) {
    for (u64 i = threadIdx.x; i < batch * inner; i += THREADS) f((i / inner * channels + c) * inner + i % inner);
}

extern "C" __global__ void __launch_bounds__(THREADS)
batch_norm(const T* x, T* y, const W* weight, const B* bias, A* mean, A* var, A eps, u64 batch, u64 channels, u64 inner) {
    __shared__ A room[32];
    const A n = (A)(batch * inner);
    for (u64 c = blockIdx.x; c < channels; c += gridDim.x) {
        A sum = (A)0;
        each(c, batch, channels, inner, [&](u64 i) { sum += of_get<A>(x[i]); });
        const A m = of_group_reduce<THREADS, of_sum_op>(sum, (A)0, room) / n;
        A squares = (A)0;
        each(c, batch, channels, inner, [&](u64 i) {
            const A d = of_get<A>(x[i]) - m;
            squares += d * d;
        });
        const A v = of_group_reduce<THREADS, of_sum_op>(squares, (A)0, room) / n;
        const A scale = (weight ? of_get<A>(weight[c]) : (A)1) / sqrt(v + eps);
        const A shift = (bias ? of_get<A>(bias[c]) : (A)0) - m * scale;
        if (threadIdx.x == 0) mean[c] = m, var[c] = v;
        each(c, batch, channels, inner, [&](u64 i) { of_set(y[i], of_get<A>(x[i]) * scale + shift); });
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
batch_norm_grad(const T* dy, const T* x, const A* mean, const A* var, const W* weight, T* dx, B* dweight, B* dbias, A eps,
                u64 batch, u64 channels, u64 inner) {
    __shared__ A room[32];
    const A n = (A)(batch * inner);
    for (u64 c = blockIdx.x; c < channels; c += gridDim.x) {
        const A m = mean[c], rstd = (A)1 / sqrt(var[c] + eps);
        A sum = (A)0, product = (A)0;
        each(c, batch, channels, inner, [&](u64 i) {
            const A g = of_get<A>(dy[i]);
            sum += g;
            product += g * (of_get<A>(x[i]) - m);
        });
        sum = of_group_reduce<THREADS, of_sum_op>(sum, (A)0, room);
        product = of_group_reduce<THREADS, of_sum_op>(product, (A)0, room);
        if (threadIdx.x == 0) {
            of_set(dweight[c], n > (A)0 ? product * rstd : (A)0);
            of_set(dbias[c], sum);
        }
        const A a = rstd * (weight ? of_get<A>(weight[c]) : (A)1), b = -(a * rstd * rstd * product / n);
        const A d = -(a * sum / n) - m * b;
        each(c, batch, channels, inner, [&](u64 i) { of_set(dx[i], of_get<A>(dy[i]) * a + of_get<A>(x[i]) * b + d); });
    }
}
