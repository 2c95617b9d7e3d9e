// Functions that throw, each where another part of the header must catch it.
#include "oflow_op.hpp"

static void run(const oflow::Call &call)
{
    const std::string how = call.param("how").as<std::string>();
    if (how == "error")
        throw oflow::Error("an error of the op");
    if (how == "exception")
        throw std::runtime_error("an exception");
    if (how == "number")
        throw 42;
    if (how == "thread")
        oflow::parallel_for(100, 10, [](size_t begin, size_t) {
            if (begin >= 50)
                throw oflow::Error("an error of a part");
        });
    if (how == "dtype")
        call.output(0).data<double>();
    if (how == "bounds")
        call.output(0).accessor<float, 1>()[100] = 0;
    if (how == "lossy")
        (void)call.param("big").as<int32_t>();
    if (how == "sum")
        call.output(0).data<float>()[0] = (call.param("big") - oflow::Value(1) + oflow::Value(0.5)).as<float>();
}

OFLOW_LIBRARY(throws)
{
    library.op("it(x: f32; how: str = \"\", big: int = 2 * 1024 * 1024 * 1024) -> y").samples({"f32[4]"}).cpu(run);
    library.op("refuses(x: f32) -> y").samples({"f32[4]"}).cpu(run).check([](const oflow::Infer &infer) {
        if (infer.input(0).rank() != 1)
            throw oflow::Error("x has " + std::to_string(infer.input(0).rank()) + " dims, not 1");
    });
    library.op("lists(x: f32) -> y").samples({"f32[4]"}).cpu(run).nd_infer_rule([](const oflow::Infer &) -> std::vector<std::string> {
        throw std::runtime_error("a list");
    });
    library.op("takes(x: f32) -> y").samples({"f32[4]"}).cpu(run).nd_choose([](const oflow::Infer &) -> std::optional<std::string> {
        throw 42;
    });
#ifdef BROKEN
    throw std::runtime_error("no ops today");
#endif
}
