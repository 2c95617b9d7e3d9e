// A function in C, with parts of what describes it wrong on request.
#include "oflow_op.h"

#include <stdio.h>
#include <string.h>

#ifndef SIGNATURE
#define SIGNATURE "times(Tensor x) -> Tensor"
#endif
#ifndef FACTOR
#define FACTOR 2
#endif
#ifndef NAME
#define NAME "plain"
#endif
#ifndef WRONG
#define WRONG 0
#endif
#define HEAD(type) {sizeof(type), OFLOW_OP_MAJOR, OFLOW_OP_MINOR}
#define TEXT(text) {(const uint8_t *)(text), sizeof(text) - 1}

static const oflow_host *host;

static int32_t run(const oflow_function_args *args, const oflow_function_results *results, oflow_message *error)
{
    oflow_tensor x = args->args[0]->tensors[0];
    oflow_attr factor = {.head = HEAD(oflow_attr), .kind = OFLOW_ATTR_FLOAT, .real = FACTOR};
    oflow_arg tensor = {.head = HEAD(oflow_arg), .kind = OFLOW_ARG_TENSOR, .tensors = &x, .count = 1};
    oflow_arg number = {.head = HEAD(oflow_arg), .kind = OFLOW_ARG_VALUE, .value = &factor};
    const oflow_arg *list[] = {&tensor, &number};
    oflow_function_call call = {.head = HEAD(oflow_function_call), .function = TEXT("mul"), .args = list, .arg_count = 2};
    oflow_returned made = {.head = HEAD(oflow_returned)};
#if WRONG == 1
    number.kind = 77;
#elif WRONG == 2
    list[1] = NULL;
#elif WRONG == 3
    call.args = NULL;
#elif WRONG == 4
    factor.kind = 77;
#elif WRONG == 5
    tensor.count = 0;
#elif WRONG == 6
    made.head.size = 4;
#elif WRONG == 7
    call.function.data = NULL;
#elif WRONG == 8
    x = 12345678901;
#elif WRONG == 9
    return 77;
#elif WRONG == 10
    error->len = 1000000;
    return OFLOW_ERROR;
#elif WRONG == 11
    tensor.head.major = 2;
#elif WRONG == 12
    return OFLOW_OK;
#endif
    if (host->api->call(&call, &made, error) != OFLOW_OK)
        return OFLOW_ERROR;
    int32_t status = results->tensor(results->context, made.tensors[0]);
    return host->api->release(made.tensors[0], error) == OFLOW_OK ? status : OFLOW_ERROR;
}

static oflow_function_def times = {.head = HEAD(oflow_function_def), .signature = TEXT(SIGNATURE), .run = run};
static const oflow_function_def *functions[] = {&times, &times};
static oflow_library library = {.head = HEAD(oflow_library), .name = TEXT(NAME), .functions = functions, .function_count = 1};

__attribute__((visibility("default"))) const oflow_library *oflow_op_library(const oflow_host *given)
{
    host = given;
#if WRONG == 20
    times.run = NULL;
#elif WRONG == 21
    functions[0] = NULL;
#elif WRONG == 22
    library.functions = NULL;
#elif WRONG == 23
    library.function_count = 2;
#elif WRONG == 24
    times.head.major = 3;
#elif WRONG == 25
    library.function_count = 0;
#elif WRONG == 26
    times.signature.data = (const uint8_t *)"\xff\xff";
    times.signature.len = 2;
#endif
    return &library;
}
