// Gradients by code: what is saved, and what the rule calls.
#include "oflow_op.hpp"

#ifndef SAVES
#define SAVES {"x", "w"}
#endif

template <class T> static void weighted(const oflow::Call &call)
{
    auto by = call.param("by").as<T>();
    const T *x = call.input("x").data<T>(), *w = call.has_input("w") ? call.input("w").data<T>() : nullptr;
    T *y = call.output("y").data<T>();
    for (int64_t i = 0; i < call.output("y").size(); ++i)
        y[i] = by * x[i] * x[i] * (w ? w[i] : T(1));
}

// y = by x² w: dx = 2 by x w dy, dw = by x² dy.
static void gradient(oflow::Grad &g)
{
    oflow::GradValue dy = g.grad(0);
    if (!dy)
        return;
    double by = g.param("by").as<double>();
    auto x = g.input("x"), w = g.input("w");
    if (g.shape(x) != g.shape(dy) || g.dtype(x) != g.dtype(dy))
        throw oflow::Error("the gradient is not a gradient of y");
    if (g.needs("x")) {
        auto dx = g.call("mul", {g.call("mul", {dy, x}), }, {{"s", 2 * by}});
        g.set("x", w ? g.call("mul", {dx, w}) : dx);
    }
    if (w && g.needs(1))
        g.set(1, g.call("mul", {g.call("mul", {dy, g.call("square", {x})})}, {{"s", by}}));
}

OFLOW_LIBRARY(ruled)
{
    library.op("weighted(x: f32|f64, w?: f32|f64; by: float = 1.0) -> y")
        .shape("[..], [..] -> [..]")
        .dtype("like x")
        .signatures({"S(0), S(0) -> S(0)"})
        .samples({"f64[4, 6] f64[4, 6]; by=0.5", "f64[5] f64[5]"})
        .grad_rule(gradient, SAVES)
        .cpu(weighted<float>, "f32")
        .cpu(weighted<double>, "f64");
    library.op("wrong(x: f32, w: f32; how: str) -> y")
        .signatures({"S(0), S(0) -> S(0)"})
        .grad_rule(
            [](oflow::Grad &g) {
                auto dy = g.grad("y");
                std::string how = g.param("how").as<std::string>();
                if (how == "name")
                    g.set("z", dy);
                if (how == "index")
                    g.set(7, dy);
                if (how == "value")
                    g.set("x", oflow::GradValue(99));
                if (how == "function")
                    g.set("x", g.call("reloo", {dy}));
                if (how == "shape")
                    g.set("x", g.call("sum", {dy}));
                if (how == "output")
                    g.output("q");
                if (how == "saved")
                    g.input("w");
                if (how == "error")
                    throw oflow::Error("not today");
                if (how == "exception")
                    throw std::runtime_error("an exception");
            },
            {"x"})
        .cpu([](const oflow::Call &) {});
}
