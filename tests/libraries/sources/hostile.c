/* A library that is wrong in the way that WRONG says. */
#include "oflow_op.h"
#include <string.h>

#define HEAD(type) { sizeof(type), MAJOR, OFLOW_OP_MINOR }
#define TEXT(s) { (const uint8_t *)(s), sizeof(s) - 1 }
#ifndef MAJOR
#define MAJOR OFLOW_OP_MAJOR
#endif
#ifndef OP_SIZE
#define OP_SIZE sizeof(oflow_op_def)
#endif
#ifndef DECLARATION
#define DECLARATION "twice(x: f32) -> y"
#endif
#ifndef NAME
#define NAME "hostile"
#endif
#ifndef DEVICE
#define DEVICE "cpu"
#endif
#ifndef TIMES
#define TIMES 1
#endif
#ifndef STATUS
#define STATUS OFLOW_OK
#endif
#ifndef SIGNATURE
#define SIGNATURE "S(0) -> S(0)"
#endif

static int32_t say(oflow_message *error, const char *why, int32_t status)
{
    error->len = strlen(why);
    memcpy(error->text, why, error->len);
    return status;
}

static int32_t run(const oflow_call *call, oflow_message *error)
{
#if WRONG == 1
    return say(error, "no luck today", OFLOW_ERROR);
#elif WRONG == 2
    (void)call;
    (void)error;
    return 77;
#elif WRONG == 3
    error->len = (size_t)-1; /* longer than there is room */
    memset(error->text, 0xff, error->capacity);
    return OFLOW_ERROR;
#elif WRONG == 4
    *call->length = 1000;
    return OFLOW_OK;
#elif WRONG == 5
    return OFLOW_OK; /* says no length */
#else
    (void)error;
    const float *x = call->inputs[0]->data;
    float *y = call->outputs[0]->data;
    int64_t n = 1;
    for (uint32_t d = 0; d < call->outputs[0]->rank; ++d)
        n *= call->outputs[0]->dims[d];
    for (int64_t i = 0; i < n; ++i)
        y[i] = FACTOR * x[i];
    return OFLOW_OK;
#endif
}

static int32_t shapes(const oflow_infer *infer, const oflow_results *results, oflow_message *error)
{
    (void)infer;
    (void)error;
    (void)results;
#if WRONG == 6
    int64_t dims[] = {-4};
    results->shape(results->context, 0, dims, 1);
    return OFLOW_OK; /* gives no shape */
#elif WRONG == 7
    int64_t dims[] = {INT64_MAX, INT64_MAX};
    return results->shape(results->context, 0, dims, 2);
#elif WRONG == 8
    int64_t dims[] = {1};
    return results->shape(results->context, (size_t)-1, dims, 1);
#else
    return say(error, "the shapes are secret", OFLOW_ERROR);
#endif
}

#if WRONG == 9
static int32_t sharding(const oflow_infer *infer, const oflow_results *results, oflow_message *error)
{
    (void)infer;
    (void)error;
    oflow_str text = TEXT("S(0) -> nowhere");
    return results->signature(results->context, text);
}
#endif

#ifdef ROW
/* Gives ROW to a rule over all axes of a mesh, TIMES times. */
static int32_t row(const oflow_infer *infer, const oflow_results *results, oflow_message *error)
{
    oflow_str text = TEXT(ROW);
    (void)infer;
    (void)error;
#ifdef LENGTH
    text.len = LENGTH;
#endif
    for (int i = 0; i < TIMES; ++i)
        results->signature(results->context, text);
    return STATUS;
}
#endif

static const oflow_kernel kernel = {
    .head = HEAD(oflow_kernel),
    .device = TEXT(DEVICE),
#if WRONG != 10
    .run = run,
#endif
};
static const oflow_kernel *const kernels[] = {&kernel};
static const oflow_str signatures[] = {TEXT(SIGNATURE)};

static const oflow_op_def op = {
    .head = {OP_SIZE, MAJOR, OFLOW_OP_MINOR},
    .declaration = TEXT(DECLARATION),
#ifdef TRAITS
    .traits = TEXT(TRAITS),
#endif
#ifdef GRADIENT
    .gradient = TEXT(GRADIENT),
#endif
#if WRONG == 9
    .infer_signatures = sharding,
#else
    .signatures = {signatures, 1},
#endif
#if WRONG >= 6 && WRONG <= 8 || WRONG == 16
    .infer_shapes = shapes,
#endif
#ifdef ROW
    .RULE = row,
#endif
    .kernels = kernels,
    .kernel_count = 1,
};
#if WRONG == 11
static const oflow_op_def *const ops[] = {0};
#elif WRONG == 12
static const oflow_op_def *const ops[] = {&op, &op};
#else
static const oflow_op_def *const ops[] = {&op};
#endif

static const oflow_library library = {
    .head = HEAD(oflow_library),
    .name = TEXT(NAME),
    .ops = ops,
    .op_count = sizeof ops / sizeof *ops,
};

#if WRONG == 13
#define oflow_op_library another_name
#endif
__attribute__((visibility("default"))) const oflow_library *oflow_op_library(const oflow_host *host)
{
    (void)host;
    (void)shapes;
    (void)run;
    (void)say;
#if WRONG == 14
    return 0;
#elif WRONG == 15
    return (const oflow_library *)3;
#else
    return &library;
#endif
}
