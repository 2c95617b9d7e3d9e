// An op in C++: the product of two matrices, scaled (MegEngine's example of a custom op), with its gradient op. On a GPU it is the
// kernel in matmul_scale.cu. `main.rs` builds and loads it while it runs.
#include "oflow_op.hpp"

namespace {

// out = scale * a b; a matrix may be read transposed.
template <class T> void product(oflow::Accessor<T, 2> out, oflow::Accessor<T, 2> a, bool ta, oflow::Accessor<T, 2> b, bool tb, double scale)
{
    const int64_t rows = out.size(0), columns = out.size(1), inner = ta ? a.size(0) : a.size(1);
    oflow::parallel_for(size_t(rows), 64, [&](size_t begin, size_t end) {
        for (int64_t i = int64_t(begin); i < int64_t(end); ++i)
            for (int64_t j = 0; j < columns; ++j) {
                T sum = 0;
                for (int64_t l = 0; l < inner; ++l)
                    sum += (ta ? a[l][i] : a[i][l]) * (tb ? b[j][l] : b[l][j]);
                out[i][j] = T(scale) * sum;
            }
    });
}

template <class T> void forward(const oflow::Call &call)
{
    product(call.output(0).accessor<T, 2>(), call.input("x").accessor<T, 2>(), false, call.input("w").accessor<T, 2>(), false,
            call.param("scale").as<double>());
}

template <class T> void backward(const oflow::Call &call)
{
    auto dy = call.input("dy").accessor<T, 2>(), x = call.input("x").accessor<T, 2>(), w = call.input("w").accessor<T, 2>();
    double scale = call.param("scale").as<double>();
    product(call.output("dx").accessor<T, 2>(), dy, false, w, true, scale);
    product(call.output("dw").accessor<T, 2>(), x, true, dy, false, scale);
}

} // namespace

OFLOW_LIBRARY(demo)
{
    library.op("matmul_scale(x: f32|f64[2], w: f32|f64[2]; scale: float = 1.0) -> y")
        .doc("The product of two matrices, times scale.")
        .functions({"matmul_scale(Tensor x, Tensor w, *, Float scale=1.0) -> Tensor"})
        .shape("[m, k], [k, n] -> [m, n]")
        .factors("mk, kn -> mn")
        .linear_in({"x", "w"})
        .gradient("x, w = demo.matmul_scale_grad(grad y, x, w; scale)")
        .samples({"f32[4, 6] f32[6, 3]; scale=0.5", "f64[3, 2] f64[2, 5]"})
        .cpu(forward<float>, "f32")
        .cpu(forward<double>, "f64")
        .cuda_text("matmul_scale.cu", "matmul_scale");
    library.op("matmul_scale_grad(dy: f32|f64[2], x: f32|f64[2], w: f32|f64[2]; scale: float = 1.0) -> (dx, dw)")
        .doc("Gradients of matmul_scale. A backward in Python may call it: it is not hidden.")
        .shape("[m, n], [m, k], [k, n] -> [m, k], [k, n]")
        .signatures({"S(0), S(0), B -> S(0), P", "S(1), B, S(1) -> P, S(1)", "B, S(1), S(0) -> S(1), S(0)", "P, B, B -> P, P"})
        .samples({"f32[4, 3] f32[4, 6] f32[6, 3]; scale=0.5"})
        .cpu(backward<float>, "f32")
        .cpu(backward<double>, "f64")
        .cuda_text("matmul_scale.cu", "matmul_scale_grad", "m * k + k * n");
}
