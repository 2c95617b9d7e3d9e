// A layer that is made of primitives, on the CPU and on a GPU: y = act(x wᵀ + b), and the mean of its rows.
#include "oflow_op.hpp"
#include <thread>

static void dense(const oflow::Call &call)
{
    auto x = call.input("x"), w = call.input("w"), b = call.input("b"), y = call.output("y"), mean = call.output("mean");
    int64_t rows = y.dim(0), columns = y.dim(1);
    // The workspace holds the product, then the scratch memory of the mean.
    char *room = static_cast<char *>(call.workspace());
    oflow::MemoryView product(room, "f32", {rows, columns});
    size_t used = (size_t(rows * columns) * 4 + 255) & ~size_t(255);
    auto scratch = oflow::primitive("mean", y.device(), {y}, {{"dims", {1}}});
    if (!scratch || oflow::primitive("gelu", y.device(), {oflow::TypeSpec("i32", {2})}))
        throw oflow::Error("the primitives are not those of the device");
    oflow::MemoryView more = *scratch ? oflow::MemoryView(room + used, "u8", {int64_t(*scratch)}) : oflow::MemoryView();
    oflow::launch(call, "matmul", {x, w}, {product}, {{"transpose_b", true}});
    oflow::launch(call, "add", {product, b}, {y});
    oflow::launch(call, "relu", {y}, {y});
    oflow::launch(call, "mean", {y}, {mean}, {{"dims", {1}}}, more);
    oflow::launch(call, "cast", {mean}, {call.output("half")}, {{"dtype", oflow::DType("f16")}});
    oflow::launch(call, "full", {}, {call.output("ones")}, {{"shape", mean.shape()}, {"dtype", oflow::DType("f32")}, {"value", 1.0}});
    oflow::MemoryView turned(x.data(), "f32", {x.dim(1), x.dim(0)}, {1, x.dim(1)});
    oflow::launch(call, "copy", {turned}, {call.output("xt")});
}

static size_t room(const oflow::Infer &i)
{
    auto x = i.input(0).shape(), w = i.input(1).shape();
    size_t most = 0;
    for (const char *device : {"cpu", "cuda"})
        if (auto bytes = oflow::primitive("mean", device, {oflow::TypeSpec("f32", {x[0], w[0]})}, {{"dims", {1}}}))
            most = std::max(most, *bytes);
    return ((size_t(x[0] * w[0]) * 4 + 255) & ~size_t(255)) + most;
}

// What a launch refuses.
static void wrong(const oflow::Call &call)
{
    auto x = call.input("x"), y = call.output("y");
    std::string how = call.param("how").as<std::string>();
    static float elsewhere[1024];
    int64_t n = y.size();
    if (how == "outside")
        oflow::launch(call, "relu", {x}, {oflow::MemoryView(elsewhere, "f32", {n})});
    if (how == "beyond")
        oflow::launch(call, "relu", {oflow::MemoryView(x.data(), "f32", {n + 1})}, {oflow::MemoryView(y.data(), "f32", {n + 1})});
    if (how == "strides")
        oflow::launch(call, "relu", {oflow::MemoryView(x.data(), "f32", {n}, {int64_t(1) << 62})}, {y});
    if (how == "input")
        oflow::launch(call, "relu", {y}, {oflow::MemoryView(x.data(), "f32", {n})});
    if (how == "shape")
        oflow::launch(call, "relu", {oflow::MemoryView(x.data(), "f32", {n - 1})}, {y});
    if (how == "align")
        oflow::launch(call, "relu", {oflow::MemoryView((char *)x.data() + 1, "f32", {n - 1})}, {oflow::MemoryView(y.data(), "f32", {n - 1})});
    if (how == "overlap")
        oflow::launch(call, "cumsum", {y}, {y}, {{"dim", 0}});
    if (how == "op")
        oflow::launch(call, "nothing", {x}, {y});
    if (how == "random")
        oflow::launch(call, "dropout", {x}, {y});
    if (how == "attr")
        oflow::launch(call, "relu", {x}, {y}, {{"alpha", 1}});
    if (how == "dtype")
        oflow::launch(call, "gelu", {oflow::MemoryView(x.data(), "i32", {n})}, {y});
    if (how == "thread") {
        std::exception_ptr failed;
        std::thread([&] {
            try {
                oflow::launch(call, "relu", {x}, {y});
            } catch (...) {
                failed = std::current_exception();
            }
        }).join();
        std::rethrow_exception(failed);
    }
    oflow::launch(call, "relu", {x}, {y});
}

OFLOW_LIBRARY(primitives)
{
    library.op("dense(x: f32[2], w: f32[2], b: f32[1]) -> (y, mean, half, ones, xt)")
        .shape("[m, k], [n, k], [n] -> [m, n], [m], [m], [m], [k, m]")
        .dtype("f32, f32, f16, f32, f32")
        .signatures({"S(0), B, B -> S(0), S(0), S(0), S(0), S(1)"})
        .gradient("none")
        .samples({"f32[4, 6] f32[5, 6] f32[5]", "f32[3, 1] f32[2, 1] f32[2]"})
        .cpu(dense)
        .workspace(room)
        .cuda(dense)
        .workspace(room);
    library.op("wrong(x: f32[1]; how: str) -> y").gradient("none").cpu(wrong);
}
