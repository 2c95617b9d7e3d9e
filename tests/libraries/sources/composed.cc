// Functions that call ops and functions of oflow by name.
#include "oflow_op.hpp"

using oflow::Arguments;
using oflow::call;
using oflow::TensorHandle;

static oflow::Results scaled_relu(const Arguments &a)
{
    auto y = call("relu", {a.tensor("x")})[0];
    return call("mul", {y, a.param("by").as<double>()});
}

// What a tensor tells of itself.
static oflow::Results told(const Arguments &a)
{
    TensorHandle x = a.tensor("x"), same = x;
    std::string text = same.dtype().str();
    for (int64_t n : x.shape())
        text += " " + std::to_string(n);
    text += " of " + std::to_string(x.numel()) + " on " + x.device();
    text += x.is_global() ? " global " + x.sbp() : " local";
    return text + (x.requires_grad() ? " with gradient" : "");
}

// Optional and variadic tensors, named results, new tensors beside others.
static oflow::Results halves(const Arguments &a)
{
    auto all = call("split", {a.tensor("x"), a.tensor("x").shape()[0] / 2});
    if (a.has("w"))
        for (TensorHandle &part : all)
            part = call("mul", {part, a.tensor("w")})[0];
    return all;
}

static oflow::Results joined(const Arguments &a)
{
    auto parts = a.tensors("parts");
    parts.push_back(call("zeros", {parts.at(0).shape(), oflow::Target(parts.at(0))}, {{"dtype", parts.at(0).dtype()}})[0]);
    return call("concat", {parts}, {{"dim", a.param("dim")}});
}

// A tensor that outlives the call that gave it.
static TensorHandle kept;

static oflow::Results fails(const Arguments &a)
{
    std::string how = a.param("how").as<std::string>();
    TensorHandle x = a.tensor("x");
    if (how == "shape")
        return call("matmul", {x, x});
    if (how == "name")
        return call("relooo", {x});
    if (how == "overload")
        return call("relu", {x, 1.0});
    if (how == "throws")
        throw oflow::Error("not today");
    if (how == "exception")
        throw std::runtime_error("an exception");
    if (how == "two")
        return {x, x};
    if (how == "value")
        return 3;
    if (how == "stale") {
        TensorHandle gone = TensorHandle::owned(x.number() + (uint64_t(1) << 32));
        return call("relu", {std::move(gone)});
    }
    if (how == "itself")
        return call("composed.fails", {x}, {{"how", how}});
    if (how == "caught")
        try {
            call("matmul", {x, x});
        } catch (const oflow::Error &e) {
            if (std::string(e.what()).find("matmul") == std::string::npos)
                throw;
            return call("relu", {x});
        }
    if (how == "keep")
        kept = x;
    if (how == "kept")
        return call("add", {kept, x});
    if (how == "parts")
        oflow::parallel_for(4, 1, [&](size_t, size_t) { call("relu", {x}); });
    return x;
}

static void kernel(const oflow::Call &c)
{
    float *y = c.output("y").data<float>();
    std::fill(y, y + c.output("y").size(), 1.0f);
    call("ones", {oflow::Shape{2}, oflow::Target(oflow::Device("cpu"))});
}

OFLOW_LIBRARY(composed)
{
    library.function("scaled_relu(Tensor x, *, Float by=2.0) -> Tensor", scaled_relu).doc("relu(x) times a number.");
    library.function("told(Tensor x) -> String", told);
    library.function("numbers(Tensor x, IntList n, *, Bool flag=true, String? word) -> FloatList", [](const Arguments &a) -> oflow::Results {
        auto n = a.param("n").as<std::vector<double>>();
        n.push_back(a.param("flag").as<bool>());
        n.push_back(a.has("word"));
        n.push_back(oflow::call_value("numel", {a.tensor("x")}).as<double>());
        return oflow::Value(n);
    });
    library.function("halves(Tensor x, Tensor? w) -> (Tensor first, Tensor second)", halves);
    library.function("joined(TensorTuple parts, *, Int dim=0) -> Tensor", joined);
    library.function("fails(Tensor x, *, String how) -> Tensor", fails).hidden();
    library.function("scaled_relu(Tensor x, Tensor by) -> Tensor",
                     [](const Arguments &a) { return call("mul", {call("relu", {a.tensor("x")})[0], a.tensor("by")}); });
    library.op("calls(x: f32) -> y").gradient("none").cpu(kernel);
}
