// Steps of further optimizers in place, over many parameters in one launch: each rule is a function of one element.
//   P, G, S, V, W: parameters, gradients and the three tensors that an optimizer may keep of each. RULE, STATES: which rule, and
//   how many tensors it keeps. Arithmetic is that of P's (f32 for halves).
#include "many.cuh"

typedef acc_t<P> A;

// With its numbers a table stays below 4 KiB.
#define LIMIT (STATES <= 1 ? 108 : STATES == 2 ? 88 : 72)

// The numbers of a rule, the same for every element.
struct of_numbers { A n[9]; };

// The new parameter; the states are changed.
OF_FN A one(const A* n, A p, A g, A* s) {
#if RULE == 0  // Adam
    g += n[1] * p;
    s[0] += (g - s[0]) * n[2];
    s[1] = s[1] * n[3] + g * g * n[4];
    A square = s[1];
    if (STATES == 3) square = s[2] = s[2] > square ? s[2] : square;
    return p * n[0] - n[7] * (s[0] / (sqrt(square) * n[5] + n[6]));
#elif RULE >= 1 && RULE <= 4  // RMSprop: + 1 centered, + 2 with a momentum buffer
    g += n[4] * p;
    s[0] = s[0] * n[1] + g * g * n[2];
    A square = s[0];
    if (RULE == 2 || RULE == 4) {
        s[1] += (g - s[1]) * n[2];
        square -= s[1] * s[1];
    }
    const A along = g / (sqrt(square) + n[3]);
    if (RULE < 3) return p - n[0] * along;
    A& buffer = s[STATES - 1];
    buffer = buffer * n[5] + along;
    return p - n[0] * buffer;
#elif RULE == 5  // Adagrad
    g += n[2] * p;
    s[0] += g * g;
    return p - n[0] * (g / (sqrt(s[0]) + n[1]));
#elif RULE == 6  // Adadelta
    g += n[4] * p;
    s[0] = s[0] * n[1] + g * g * n[2];
    const A along = sqrt(s[1] + n[3]) / sqrt(s[0] + n[3]) * g;
    s[1] = s[1] * n[1] + along * along * n[2];
    return p - n[0] * along;
#elif RULE == 7  // Lion
    const A along = s[0] * n[2] + g * n[3];
    s[0] = s[0] * n[4] + g * n[5];
    return p * n[0] - n[1] * (along > (A)0 ? (A)1 : along < (A)0 ? (A)-1 : along);
#elif RULE == 8  // the direction of LAMB
    s[0] = s[0] * n[0] + g * n[1];
    s[1] = s[1] * n[2] + g * g * n[3];
    s[2] = s[0] * n[4] / (sqrt(s[1]) * n[5] + n[6]) + n[7] * p;
    return p;
#elif RULE == 9  // an average
    return p + (g - p) * n[0];
#elif RULE == 10  // NAdam
    g += n[1] * p;
    s[0] += (g - s[0]) * n[2];
    s[1] = s[1] * n[3] + g * g * n[4];
    return p * n[0] - (n[7] * g + n[8] * s[0]) / (sqrt(s[1]) * n[5] + n[6]);
#elif RULE == 11  // Adamax
    g += n[0] * p;
    s[0] += (g - s[0]) * n[1];
    const A before = s[1] * n[2], now = (g < (A)0 ? -g : g) + n[3];
    // NaN of either stays.
    s[1] = before <= now ? now : before > now ? before : before + now;
    return p - n[4] * (s[0] / s[1]);
#elif RULE == 12  // averaged SGD
    p = p * n[0] - n[1] * (g + n[2] * p);
    s[0] = n[3] == (A)1 ? p : s[0] + (p - s[0]) * n[3];
    return p;
#elif RULE == 13  // Rprop
    const A agree = g * s[0];
    const A size = s[1] * (agree > (A)0 ? n[1] : agree < (A)0 ? n[0] : (A)1);
    s[1] = size < n[2] ? n[2] : size > n[3] ? n[3] : size;
    s[0] = agree < (A)0 ? (A)0 : g;
    return p - s[1] * (s[0] > (A)0 ? (A)1 : s[0] < (A)0 ? (A)-1 : s[0]);
#endif
}

extern "C" __global__ void __launch_bounds__(256) step(of_numbers f, OF_PARAM of_many<2 + STATES, LIMIT> many) {
    const u32 e = of_entry(many);
    P* param = (P*)many.at[e][0];
    const G* grad = (const G*)many.at[e][1];
    // What there is not is never read.
    S* s0 = (S*)many.at[e][STATES > 0 ? 2 : 0];
    V* s1 = (V*)many.at[e][STATES > 1 ? 3 : 0];
    W* s2 = (W*)many.at[e][STATES > 2 ? 4 : 0];
    of_each(many, e, [&](u64 i, auto n) {
        constexpr int N = decltype(n)::value;
        A p[N], g[N], s[3][N] = {};
        of_read<N>(param + i, p);
        of_read<N>(grad + i, g);
        if (STATES > 0) of_read<N>(s0 + i, s[0]);
        if (STATES > 1) of_read<N>(s1 + i, s[1]);
        if (STATES > 2) of_read<N>(s2 + i, s[2]);
#pragma unroll
        for (int k = 0; k < N; k++) {
            A own[3] = {s[0][k], s[1][k], s[2][k]};
            p[k] = one(f.n, p[k], g[k], own);
            s[0][k] = own[0], s[1][k] = own[1], s[2][k] = own[2];
        }
        of_write<N>(param + i, p);
        if (STATES > 0) of_write<N>(s0 + i, s[0]);
        if (STATES > 1) of_write<N>(s1 + i, s[1]);
        if (STATES > 2) of_write<N>(s2 + i, s[2]);
    });
}

extern "C" __global__ void __launch_bounds__(256)
    step_strided(P* param, const G* grad, S* s0, V* s1, W* s2, of_numbers f, OF_PARAM of_strided<5> t) {
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < t.len; i += (u64)gridDim.x * 256) {
        P& to = param[of_at(i, t.shape, t.strides[0])];
        const i64 at[3] = {of_at(i, t.shape, t.strides[2]), of_at(i, t.shape, t.strides[3]), of_at(i, t.shape, t.strides[4])};
        A s[3] = {0, 0, 0};
        if (STATES > 0) s[0] = of_get<A>(s0[at[0]]);
        if (STATES > 1) s[1] = of_get<A>(s1[at[1]]);
        if (STATES > 2) s[2] = of_get<A>(s2[at[2]]);
        of_set(to, one(f.n, of_get<A>(to), of_get<A>(grad[of_at(i, t.shape, t.strides[1])]), s));
        if (STATES > 0) of_set(s0[at[0]], s[0]);
        if (STATES > 1) of_set(s1[at[1]], s[1]);
        if (STATES > 2) of_set(s2[at[2]], s[2]);
    }
}

// x -= factor * y; the factor of each entry (an S) lies on the GPU.
extern "C" __global__ void __launch_bounds__(256) subtract(OF_PARAM of_many<3, 88> many) {
    const u32 e = of_entry(many);
    P* x = (P*)many.at[e][0];
    const G* y = (const G*)many.at[e][1];
    const A factor = of_get<A>(*(const S*)many.at[e][2]);
    of_each_of<2>(many, e, [&](u64 i, auto n) {
        constexpr int N = decltype(n)::value;
        A p[N], g[N];
        of_read<N>(x + i, p);
        of_read<N>(y + i, g);
#pragma unroll
        for (int k = 0; k < N; k++) p[k] -= factor * g[k];
        of_write<N>(x + i, p);
    });
}

extern "C" __global__ void __launch_bounds__(256) subtract_strided(P* x, const G* y, const S* factor, OF_PARAM of_strided<2> t) {
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < t.len; i += (u64)gridDim.x * 256) {
        P& to = x[of_at(i, t.shape, t.strides[0])];
        of_set(to, of_get<A>(to) - of_get<A>(*factor) * of_get<A>(y[of_at(i, t.shape, t.strides[1])]));
    }
}
