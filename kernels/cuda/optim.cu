// Optimizer steps in place, over many parameters in one launch.
//   P, G, M, V: parameters, gradients and what the optimizer keeps (M: momentum; SGD has no V). MOMENTUM: 1 where there is M.
//   Arithmetic is that of P's (f32 for halves).
#include "many.cuh"

typedef acc_t<P> A;

// ---- AdamW ----------------------------------------------------------------------------------------------------------

struct of_adamw { A decay, beta1, rest1, beta2, rest2, root, eps, step; };

OF_FN void adamw_one(const of_adamw& f, A& p, A g, A& m, A& v) {
    m = m * f.beta1 + g * f.rest1;
    v = v * f.beta2 + g * g * f.rest2;
    p = p * f.decay - f.step * (m / (sqrt(v) * f.root + f.eps));
}

extern "C" __global__ void __launch_bounds__(256) adamw(of_adamw f, OF_PARAM of_many<4, 88> many) {
    const u32 e = of_entry(many);
    P* param = (P*)many.at[e][0];
    const G* grad = (const G*)many.at[e][1];
    M* mean = (M*)many.at[e][2];
    V* square = (V*)many.at[e][3];
    of_each(many, e, [&](u64 i, auto n) {
        constexpr int N = decltype(n)::value;
        A p[N], g[N], m[N], v[N];
        of_read<N>(param + i, p);
        of_read<N>(grad + i, g);
        of_read<N>(mean + i, m);
        of_read<N>(square + i, v);
#pragma unroll
        for (int k = 0; k < N; k++) adamw_one(f, p[k], g[k], m[k], v[k]);
        of_write<N>(param + i, p);
        of_write<N>(mean + i, m);
        of_write<N>(square + i, v);
    });
}

extern "C" __global__ void __launch_bounds__(256)
    adamw_strided(P* param, const G* grad, M* mean, V* square, of_adamw f, OF_PARAM of_strided<4> s) {
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < s.len; i += (u64)gridDim.x * 256) {
        P& to = param[of_at(i, s.shape, s.strides[0])];
        M& mean_to = mean[of_at(i, s.shape, s.strides[2])];
        V& square_to = square[of_at(i, s.shape, s.strides[3])];
        A p = of_get<A>(to), m = of_get<A>(mean_to), v = of_get<A>(square_to);
        adamw_one(f, p, of_get<A>(grad[of_at(i, s.shape, s.strides[1])]), m, v);
        of_set(to, p);
        of_set(mean_to, m);
        of_set(square_to, v);
    }
}

// ---- SGD ------------------------------------------------------------------------------------------------------------

// On the first step the buffer, which may hold anything, becomes the gradient.
struct of_sgd { A lr, decay, momentum, keep, take; i32 nesterov, first; };

OF_FN void sgd_one(const of_sgd& f, A& p, A g, A& m) {
    A d = g + f.decay * p;
    if (MOMENTUM) {
        m = f.keep * (f.first ? (A)0 : m) + f.take * d;
        d = f.nesterov ? d + f.momentum * m : m;
    }
    p = p - f.lr * d;
}

extern "C" __global__ void __launch_bounds__(256) sgd(of_sgd f, OF_PARAM of_many<2 + MOMENTUM, 108> many) {
    const u32 e = of_entry(many);
    P* param = (P*)many.at[e][0];
    const G* grad = (const G*)many.at[e][1];
    M* buffer = (M*)many.at[e][MOMENTUM ? 2 : 0];
    of_each(many, e, [&](u64 i, auto n) {
        constexpr int N = decltype(n)::value;
        A p[N], g[N], m[N];
        of_read<N>(param + i, p);
        of_read<N>(grad + i, g);
        if (MOMENTUM) of_read<N>(buffer + i, m);
#pragma unroll
        for (int k = 0; k < N; k++) sgd_one(f, p[k], g[k], m[k]);
        of_write<N>(param + i, p);
        if (MOMENTUM) of_write<N>(buffer + i, m);
    });
}

extern "C" __global__ void __launch_bounds__(256)
    sgd_strided(P* param, const G* grad, M* buffer, of_sgd f, OF_PARAM of_strided<3> s) {
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < s.len; i += (u64)gridDim.x * 256) {
        P& to = param[of_at(i, s.shape, s.strides[0])];
        A p = of_get<A>(to), m = 0;
        if (MOMENTUM) m = of_get<A>(buffer[of_at(i, s.shape, s.strides[2])]);
        sgd_one(f, p, of_get<A>(grad[of_at(i, s.shape, s.strides[1])]), m);
        of_set(to, p);
        if (MOMENTUM) of_set(buffer[of_at(i, s.shape, s.strides[2])], m);
    }
}

// ---- scaling and the gradient norm ----------------------------------------------------------------------------------

// Times a number that lies on the GPU (a G).
extern "C" __global__ void __launch_bounds__(256) scale(const G* factor, OF_PARAM of_many<1, 196> many) {
    const u32 e = of_entry(many);
    const A by = of_get<A>(*factor);
    P* x = (P*)many.at[e][0];
    of_each(many, e, [&](u64 i, auto n) {
        constexpr int N = decltype(n)::value;
        A v[N];
        of_read<N>(x + i, v);
#pragma unroll
        for (int k = 0; k < N; k++) v[k] *= by;
        of_write<N>(x + i, v);
    });
}

extern "C" __global__ void __launch_bounds__(256) scale_strided(P* x, const G* factor, OF_PARAM of_strided<1> s) {
    const A by = of_get<A>(*factor);
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < s.len; i += (u64)gridDim.x * 256) {
        P& to = x[of_at(i, s.shape, s.strides[0])];
        of_set(to, of_get<A>(to) * by);
    }
}

// Sums of squares in f64, one per block of OF_MANY elements.
extern "C" __global__ void __launch_bounds__(256) squares(f64* sums, OF_PARAM of_many<1, 196> many) {
    __shared__ f64 room[32];
    const u32 e = of_entry(many);
    const P* x = (const P*)many.at[e][0];
    f64 sum = 0;
    of_each(many, e, [&](u64 i, auto n) {
        constexpr int N = decltype(n)::value;
        f64 v[N];
        of_read<N>(x + i, v);
#pragma unroll
        for (int k = 0; k < N; k++) sum += v[k] * v[k];
    });
    sum = of_block_reduce<of_sum_op>(sum, 0.0, room);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(256) squares_strided(const P* x, f64* sums, OF_PARAM of_strided<1> s) {
    __shared__ f64 room[32];
    f64 sum = 0;
    for (u64 i = (u64)blockIdx.x * OF_MANY + threadIdx.x; i < (blockIdx.x + 1ull) * OF_MANY && i < s.len; i += 256) {
        const f64 v = of_get<f64>(x[of_at(i, s.shape, s.strides[0])]);
        sum += v * v;
    }
    sum = of_block_reduce<of_sum_op>(sum, 0.0, room);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// The sum of all, by one block, in a fixed order.
extern "C" __global__ void __launch_bounds__(1024) squares_finish(const f64* sums, u64 count, P* out) {
    __shared__ f64 room[32];
    f64 sum = 0;
#pragma unroll 4
    for (u64 i = threadIdx.x; i < count; i += 1024) sum += sums[i];
    sum = of_block_reduce<of_sum_op>(sum, 0.0, room);
    if (threadIdx.x == 0) of_set(*out, sum);
}
