// An op that says what its lists hold: y = sizes of names, flags, types, numbers and dims, then the sum of the numbers.
#include "oflow_op.hpp"

static void sizes(const oflow::Call &call)
{
    float *y = call.output("y").data<float>();
    auto numbers = call.param("numbers").as<std::vector<double>>();
    y[0] = float(call.param("names").as<std::vector<std::string>>().size());
    y[1] = float(call.param("flags").as<std::vector<bool>>().size());
    y[2] = float(call.param("types").as<std::vector<int64_t>>().size());
    y[3] = float(numbers.size());
    y[4] = float(call.param("dims").as<std::vector<int64_t>>().size());
    y[5] = 0;
    for (double n : numbers)
        y[5] += float(n);
}

// What values of other types become.
static void values(const oflow::Call &call)
{
    using oflow::Value;
    float *y = call.output("y").data<float>();
    Value words = {"a", "b", "c"}, three = 3;
    three += 1.5;
    bool beyond = false;
    try {
        Value lost = std::vector<uint64_t>{~uint64_t(0)};
    } catch (const oflow::Error &) {
        beyond = true;
    }
    y[0] = float(words.as<std::vector<std::string>>().size());
    y[1] = three.as<float>();
    y[2] = (-three).as<float>();
    y[3] = beyond;
    static_assert(!std::is_assignable_v<decltype(call.param("by")), double>, "a parameter is a copy");
    y[4] = float(oflow::dtype_of<std::complex<float>>::code == OFLOW_C64);
    y[5] = 0;
}

// The numbers that quantised elements stand for.
static void numbers(const oflow::Call &call)
{
    auto x = call.input("x");
    oflow::DType half("qint8", 0.5, 3);
    if (x.dtype_info() != half || half.str() != "qint8" || oflow::DType("float32") != oflow::DType("f32") || x.device() != "x86" ||
        x.device().str() != "cpu" || x.shape().ndim() != 1)
        throw oflow::Error("another type: " + x.dtype_info().str());
    for (int64_t i = 0; i < x.size(); ++i)
        call.output("y").data<float>()[i] = float((x.data<int8_t>()[i] - x.zero_point()) * x.scale());
}

OFLOW_LIBRARY(lists)
{
    library.op("takes(x: f32[1]; s: scalar = 0, all: scalars = []) -> y").gradient("none").cpu([](const oflow::Call &) {});
    library.op("numbers(x: any[1]) -> y").dtype("f32").gradient("none").cpu(numbers);
    library.op("sizes(x: f32[1]; names: strs = [], flags: bools = [], types: dtypes = [], numbers: scalars = [], dims: ints = []) -> y")
        .shape("[_] -> [6]")
        .gradient("none")
        .cpu(sizes);
    library.op("values(x: f32[1]; by: float = 1.0) -> y").shape("[_] -> [6]").gradient("none").cpu(values);
}
