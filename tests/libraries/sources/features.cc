// What C++ code may ask of the header: an op for each feature. Kernels that compare throw, with what was found, where it is not as it should be.
#define OFLOW_CHECK_BOUNDS 1
#include "oflow_op.hpp"

static void wanted(bool as_it_should, const char *what)
{
    if (!as_it_should)
        throw oflow::Error(what);
}

// The text of the error that `body` throws.
template <class F> static std::string thrown(F body)
{
    try {
        body();
    } catch (const oflow::Error &e) {
        return e.what();
    }
    return "nothing was thrown";
}

static void is(const std::string &text, const char *part)
{
    if (text.find(part) == std::string::npos)
        throw oflow::Error("'" + text + "' has no '" + part + "'");
}

// The strides of x, which is not copied for the kernel.
static void strides(const oflow::Call &call)
{
    auto x = call.input("x");
    for (int d = 0; d < x.rank(); ++d)
        call.output("y").data<int64_t>()[d] = x.strides()[d];
}

static void shapes(const oflow::Call &call)
{
    oflow::Shape shape{2, 3}, other(std::vector<int64_t>{2, 4});
    auto x = call.input("x");
    wanted(x.shape() == shape && x.shape() != other && shape < other, "shapes compare");
    shape[1] = 4;
    wanted(shape == other && shape.ndim() == 2 && shape[0] == 2, "shapes are written by index");
    wanted(x.size() == 6 && x.rank() == 2 && x.dim(1) == 3 && x.strides() == oflow::Shape({3, 1}), "a tensor's sizes");
    is(thrown([&] { x.dim(2); }), "'x' has 2 dims, so dim 2 is out of range");
}

static void elements(const oflow::Call &call)
{
    auto x = call.input("x"), y = call.output("y");
    wanted(x.data() == static_cast<void *>(x.data<float>()), "typed and untyped data");
    is(thrown([&] { x.data<double>(); }), "'x' is f32, not f64");
    auto a = x.accessor<float, 2>();
    auto b = y.accessor<float, 2>();
    is(thrown([&] { a[0][3]; }), "index 3 of a dim of size 3");
    is(thrown([&] { a[-1]; }), "index -1 of a dim of size 2");
    is(thrown([&] { x.accessor<float, 1>(); }), "'x' has 2 dims, not 1");
    for (int64_t i = 0; i < a.size(0); ++i)
        for (int64_t j = 0; j < a.size(1); ++j)
            b[i][j] = 10 * a[i][j];
}

static void values(const oflow::Call &)
{
    using oflow::Value;
    Value two = 2, half = 0.5, word = "b";
    wanted(two == 2.0 && two != half && half < two && two > half && half <= 0.5 && two >= 2 && word > "a" && word < "c", "comparisons");
    wanted(!(two < word) && !(two > word) && two != word, "values without an order");
    two = word;
    wanted(two.as<std::string>() == "b", "a value that changes its type");
    wanted(Value(3).as<float>() == 3.0f && Value(true).as<int>() == 1 && Value({1, 2}).as<std::vector<double>>()[1] == 2.0, "conversions");
    is(thrown([] { Value(2.5).as<int>(); }), "the parameter is a float, not an integer");
    is(thrown([] { Value(300).as<uint8_t>(); }), "the parameter 300 does not fit its type");
    is(thrown([] { Value("a").as<double>(); }), "the parameter is a text, not a number");
    is(thrown([] { Value(std::numeric_limits<uint64_t>::max()); }), "an integer beyond 64 bits");
}

// Twice x, by way of scratch memory.
static void scratch(const oflow::Call &call)
{
    auto x = call.input("x");
    float *kept = static_cast<float *>(call.workspace()), *y = call.output("y").data<float>();
    wanted(kept, "scratch memory");
    for (int64_t i = 0; i < x.size(); ++i)
        kept[i] = 2 * x.data<float>()[i];
    std::memcpy(y, kept, size_t(x.size()) * sizeof(float));
}

static void constant(const oflow::Call &call, float value)
{
    float *y = call.output("y").data<float>();
    std::fill(y, y + call.output("y").size(), value);
}

// The first half of x: the kernel says how long that is, on a GPU too.
static void first_half(const oflow::Call &call)
{
    oflow::launch(call, "copy", {call.input("x")}, {call.output("y")});
    call.set_length(call.input("x").size() / 2);
}

static int64_t runs_with_trait, runs_without;

OFLOW_LIBRARY(features)
{
    library.op("strides(x: any) -> y").traits("strided").dtype("i64").signatures({"B -> B"}).gradient("none").cpu(strides).shapes([](const oflow::Infer &i) {
        return std::vector<oflow::Shape>{{i.input(0).rank()}};
    });
    library.op("shapes(x: f32) -> y").gradient("none").cpu(shapes);
    library.op("elements(x: f32[2]) -> y").gradient("none").cpu(elements);
    library.op("values(x: f32) -> y").gradient("none").cpu(values);
    library.op("square_matrix(x: f32) -> y")
        .check([](const oflow::Infer &i) {
            if (i.input(0).rank() != 2 || i.input(0).dim(0) != i.input(0).dim(1))
                throw oflow::Error("the matrix is not square");
        })
        .gradient("none")
        .cpu([](const oflow::Call &call) { constant(call, 1); });
    library.op("run_empty(x: f32) -> y").traits("run_empty").gradient("none").cpu([](const oflow::Call &) { ++runs_with_trait; });
    library.op("no_run_empty(x: f32) -> y").gradient("none").cpu([](const oflow::Call &) { ++runs_without; });
    library.op("runs() -> y").shape("-> [2]").dtype("i64").signatures({"-> B"}).cpu([](const oflow::Call &call) {
        call.output("y").data<int64_t>()[0] = runs_with_trait;
        call.output("y").data<int64_t>()[1] = runs_without;
    });
    library.op("scratch(x: f32) -> y")
        .gradient("none")
        .cpu(scratch)
        .workspace([](const oflow::Infer &i) { return size_t(i.input(0).shape().ndim() == 1 ? i.input(0).dim(0) : 0) * sizeof(float); })
        .cpu([](const oflow::Call &call) { constant(call, -1); })
        .priority("fallback")
        .cpu([](const oflow::Call &call) { constant(call, 7); })
        .priority("experimental")
        .kernel_name("features.scratch.experimental");
    library.op("first_half(x: f32|f64[1]) -> y")
        .traits("length_by_kernel")
        .gradient("none")
        .samples({"f32[7]", "f64[4]", "f32[1]"})
        .cpu(first_half)
        .cuda(first_half);
    library.op("any_real(x) -> y").dtype("f32").gradient("none").cpu([](const oflow::Call &call) { constant(call, 1); });
    library.op("wider(x: f32|i32) -> y")
        .dtypes([](const oflow::Infer &i) { return std::vector<uint32_t>{uint32_t(i.input(0).dtype() == OFLOW_F32 ? OFLOW_F64 : OFLOW_I64)}; })
        .gradient("none")
        .cpu([](const oflow::Call &) {});
}
