// Ops whose kernels read their second input by the sizes of the first: what the factors promise.
#include "oflow_op.hpp"

static void plus(const oflow::Call &call)
{
    const float *x = call.input("x").data<float>(), *g = call.input("g").data<float>();
    float *y = call.output("y").data<float>();
    for (int64_t i = 0; i < call.output("y").size(); ++i)
        y[i] = x[i] + g[i];
}

static void gated(const oflow::Call &call)
{
    const float *x = call.input("x").data<float>(), *g = call.input("g").data<float>();
    float *y = call.output("y").data<float>();
    for (int64_t i = 0; i < call.output("y").size(); ++i)
        y[i] = x[i] * g[i] * g[i];
}

static void gated_grad(const oflow::Call &call)
{
    const float *dy = call.input("dy").data<float>(), *x = call.input("x").data<float>(), *g = call.input("g").data<float>();
    float *dx = call.output("dx").data<float>(), *dg = call.output("dg").data<float>();
    for (int64_t i = 0; i < call.output("dx").size(); ++i) {
        dx[i] = dy[i] * g[i] * g[i];
        dg[i] = FACTOR * dy[i] * x[i] * g[i];
    }
}

template <class T> static void increment(const oflow::Call &call)
{
    const T *x = call.input("x").data<T>();
    T *y = call.output("y").data<T>();
    for (int64_t i = 0; i < call.output("y").size(); ++i)
        y[i] = x[i] + 1;
}

// The number of the kernel that ran, for an op with an input that no kernel speaks of.
template <int N> static void which(const oflow::Call &call)
{
    call.output("y").data<int64_t>()[0] = N;
}

OFLOW_LIBRARY(sized)
{
    library.op("inc(x: i32|i64) -> y")
        .signatures({"S(0) -> S(0)"})
        .gradient("none")
        .samples({"i32[4]", "i64[4]"})
        .cpu(increment<int32_t>, "i32")
        .cpu(increment<int64_t>, "i64");
    library.op("mix(x: f32|i64) -> y")
        .signatures({"S(0) -> S(0)"})
        .gradient("none")
        .samples({"f32[4]", "i64[4]"})
        .cpu(increment<float>, "f32")
        .cpu(increment<int64_t>, "i64");
    library.op("which(x: float, ids: int) -> y")
        .shape("[n], [m] -> [1]")
        .dtype("i64")
        .gradient("none")
        .samples({"f32[4] i64[2]<3"})
        .cpu(which<1>, "f32|f64")
        .cpu(which<2>, "bf16");
    library.op("plus(x: f32[2], g: f32[2]) -> y")
        .functions({"plus(Tensor x, Tensor g) -> Tensor"})
        .factors("mn, mn -> mn")
        .gradient("none")
        .samples({"f32[4, 6] f32[4, 6]"})
        .cpu(plus);
    library.op("gated(x: f32[2], g: f32[2]) -> y")
        .factors("mn, mn -> mn")
        .gradient("x, g = sized.gated_grad(grad y, x, g)")
        .samples({"f32[4, 6] f32[4, 6]"})
        .cpu(gated);
    library.op("gated_grad(dy: f32[2], x: f32[2], g: f32[2]) -> (dx, dg)")
        .shape("[m, n], [m, n], [m, n] -> [m, n], [m, n]")
        .factors("mn, mn, mn -> mn, mn")
        .linear_in({"dy"})
        .samples({"f32[4, 6] f32[4, 6] f32[4, 6]"})
        .cpu(gated_grad);
}
