// An op whose kernel for GPUs is launched by host code in launches.cu.
#include "oflow_op.hpp"

void cube_on_gpu(const float *x, float *y, int64_t n, void *stream);

static void cube(const oflow::Call &call)
{
    const float *x = call.input("x").data<float>();
    float *y = call.output("y").data<float>();
    for (int64_t i = 0; i < call.output("y").size(); ++i)
        y[i] = x[i] * x[i] * x[i];
}

OFLOW_LIBRARY(launches)
{
    library.op("cube(x: f32) -> y").gradient("none").samples({"f32[1000]"}).cpu(cube).cuda([](const oflow::Call &call) {
        cube_on_gpu(call.input("x").data<float>(), call.output("y").data<float>(), call.output("y").size(), call.stream());
    });
}
