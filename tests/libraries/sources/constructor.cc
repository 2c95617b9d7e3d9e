// A library whose constructor does what no loader can catch.
#include "oflow_op.hpp"
#include <stdexcept>

struct First {
    First()
    {
        throw std::runtime_error("no luck in a constructor");
    }
};
static First first;

OFLOW_LIBRARY(constructor)
{
    library.op("nothing(x: f32) -> y").samples({"f32[2]"}).cpu([](const oflow::Call &) {});
}
