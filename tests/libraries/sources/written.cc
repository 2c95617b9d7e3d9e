// An op that writes its input, which libraries may not declare.
#include "oflow_op.hpp"

OFLOW_LIBRARY(written)
{
    library.op("add_one(x!: f32) -> ()").cpu([](const oflow::Call &) {});
}
