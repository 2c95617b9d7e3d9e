// Group norm of [n, groups, channels, inner] and its gradients. A block has a row, what an image and a group have.
//   T: elements. W, B: weight and bias, or their gradients.
#include "rows.cuh"

typedef acc_t<T> A;
#define THREADS 256

extern "C" __global__ void __launch_bounds__(THREADS)
grouped_norm(const T* x, T* y, const W* weight, const B* bias, A* mean, A* rstd, A eps, u64 rows, u64 groups, u64 channels, u64 inner) {
    __shared__ A room[32];
    const u64 size = channels * inner;
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* from = x + row * size;
        const u64 first = row % groups * channels;
        A sum = (A)0;
        for (u64 i = threadIdx.x; i < size; i += THREADS) sum += of_get<A>(from[i]);
        const A m = of_group_reduce<THREADS, of_sum_op>(sum, (A)0, room) / (A)size;
        A squares = (A)0;
        for (u64 i = threadIdx.x; i < size; i += THREADS) {
            const A d = of_get<A>(from[i]) - m;
            squares += d * d;
        }
        const A r = (A)1 / sqrt(of_group_reduce<THREADS, of_sum_op>(squares, (A)0, room) / (A)size + eps);
        if (threadIdx.x == 0) mean[row] = m, rstd[row] = r;
        for (u64 i = threadIdx.x; i < size; i += THREADS) {
            const u64 c = first + i / inner;
            const A h = (of_get<A>(from[i]) - m) * r;
            of_set(y[row * size + i], h * (weight ? of_get<A>(weight[c]) : (A)1) + (bias ? of_get<A>(bias[c]) : (A)0));
        }
    }
}

// `sums` gets the sums of dy and of dy (x - mean) rstd of each channel of each row.
extern "C" __global__ void __launch_bounds__(THREADS)
grouped_norm_grad(const T* dy, const T* x, const A* mean, const A* rstd, const W* weight, T* dx, A* sums, u64 rows, u64 groups,
                  u64 channels, u64 inner) {
    __shared__ A room[32];
    const u64 size = channels * inner;
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const T *g = dy + row * size, *from = x + row * size;
        const u64 first = row % groups * channels;
        const A m = mean[row], r = rstd[row];
        A all = (A)0, product = (A)0;
        for (u64 c = 0; c < channels; ++c) {
            A one = (A)0, other = (A)0;
            for (u64 i = threadIdx.x; i < inner; i += THREADS) {
                const A d = of_get<A>(g[c * inner + i]);
                one += d;
                other += d * ((of_get<A>(from[c * inner + i]) - m) * r);
            }
            one = of_group_reduce<THREADS, of_sum_op>(one, (A)0, room);
            other = of_group_reduce<THREADS, of_sum_op>(other, (A)0, room);
            if (threadIdx.x == 0) {
                sums[2 * (row * channels + c)] = one;
                sums[2 * (row * channels + c) + 1] = other;
            }
            const A w = weight ? of_get<A>(weight[first + c]) : (A)1;
            all += w * one;
            product += w * other;
        }
        all /= (A)size;
        product /= (A)size;
        for (u64 i = threadIdx.x; i < size; i += THREADS) {
            const A w = weight ? of_get<A>(weight[first + i / inner]) : (A)1;
            const A h = (of_get<A>(from[i]) - m) * r;
            of_set(dx[row * size + i], r * (of_get<A>(g[i]) * w - all - h * product));
        }
    }
}

// The sums over the images.
extern "C" __global__ void __launch_bounds__(THREADS)
grouped_norm_sums(const A* sums, B* dweight, B* dbias, u64 batch, u64 all) {
    const u64 stride = (u64)gridDim.x * THREADS;
    for (u64 c = (u64)blockIdx.x * THREADS + threadIdx.x; c < all; c += stride) {
        A one = (A)0, product = (A)0;
        for (u64 n = 0; n < batch; ++n) {
            one += sums[2 * (n * all + c)];
            product += sums[2 * (n * all + c) + 1];
        }
        of_set(dweight[c], product);
        of_set(dbias[c], one);
    }
}
