/* An op whose kernel calls a function that no object of the library has. */
#include "oflow_op.h"
#define UNLINKED_MISSING nowhere_at_all
float UNLINKED_MISSING(float);

float unlinked_twice(float x)
{
    return UNLINKED_MISSING(x);
}

const oflow_library *oflow_op_library(const oflow_host *host)
{
    (void)host;
    return 0;
}
