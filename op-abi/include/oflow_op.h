// The interface of oflow for ops in shared libraries. A library exports oflow_op_library (oflow_library_fn).
// Generated from op-abi/src/abi.rs by `cargo xtask codegen`; in C++ use oflow_op.hpp.

#ifndef OFLOW_OP_H
#define OFLOW_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Major version of the interface. A library made with another one is refused.
#define OFLOW_OP_MAJOR 1

// Minor version of the interface: structs have grown at their ends, nothing else has changed.
#define OFLOW_OP_MINOR 2

// A callback has done its work.
#define OFLOW_OK 0

// A callback has failed; the message says why.
#define OFLOW_ERROR 1

// A panic or an exception ended the callback; the message is its text.
#define OFLOW_PANIC 2

// Element type: one byte, 0 or 1.
#define OFLOW_BOOL 0

// Element type: unsigned 8-bit integer.
#define OFLOW_U8 1

// Element type: signed 8-bit integer.
#define OFLOW_I8 2

// Element type: signed 32-bit integer.
#define OFLOW_I32 3

// Element type: signed 64-bit integer.
#define OFLOW_I64 4

// Element type: IEEE half precision.
#define OFLOW_F16 5

// Element type: bfloat16.
#define OFLOW_BF16 6

// Element type: IEEE single precision.
#define OFLOW_F32 7

// Element type: IEEE double precision.
#define OFLOW_F64 8

// Element type: signed 16-bit integer.
#define OFLOW_I16 9

// Element type: unsigned 16-bit integer.
#define OFLOW_U16 10

// Element type: unsigned 32-bit integer.
#define OFLOW_U32 11

// Element type: 8-bit float with 4 bits of exponent and 3 of fraction, without infinities, as its bits.
#define OFLOW_F8_E4M3FN 12

// Element type: 8-bit float with 5 bits of exponent and 2 of fraction, as its bits.
#define OFLOW_F8_E5M2 13

// Element type: complex number of two 32-bit floats, real part first.
#define OFLOW_C64 14

// Element type: complex number of two 64-bit floats, real part first.
#define OFLOW_C128 15

// Memory of the host.
#define OFLOW_CPU 0

// Memory of an NVIDIA GPU.
#define OFLOW_CUDA 1

// No device: that of an optional input that was left out.
#define OFLOW_NO_DEVICE UINT32_MAX

// The stream of a device for kernels.
#define OFLOW_STREAM_COMPUTE 0

// The stream of a device for copies, beside that of the kernels.
#define OFLOW_STREAM_COPY 1

// Attribute: optional and not given.
#define OFLOW_ATTR_ABSENT 0

// Kind of an attribute whose value is in `integer`.
#define OFLOW_ATTR_INT 1

// Kind of an attribute whose value is in `real`.
#define OFLOW_ATTR_FLOAT 2

// Attribute: `integer`, 0 or 1.
#define OFLOW_ATTR_BOOL 3

// Kind of an attribute whose value is in `text`.
#define OFLOW_ATTR_STR 4

// Attribute: `integers`, `count` of them; shapes too.
#define OFLOW_ATTR_INTS 5

// Attribute: `reals`, `count` of them.
#define OFLOW_ATTR_FLOATS 6

// Attribute: `integer` is an element type.
#define OFLOW_ATTR_DTYPE 7

// Attribute: `text` is the name of a kind of device.
#define OFLOW_ATTR_DEVICE 8

// Attribute: `integers`, 0 or 1 each, `count` of them.
#define OFLOW_ATTR_BOOLS 9

// Attribute: `texts`, `count` of them.
#define OFLOW_ATTR_STRS 10

// Attribute: `integers` are element types, `count` of them.
#define OFLOW_ATTR_DTYPES 11

// Attribute: a value of another type; `text` shows it.
#define OFLOW_ATTR_OTHER 12

// Attribute: `count` lists of integers; shapes too. `lengths` says how many members each has; the members of all lists stand one
// after the other in `integers`.
#define OFLOW_ATTR_INT_LISTS 13

// Attribute: `text` is an nd-SBP, such as `[S(0), B]`.
#define OFLOW_ATTR_SBP 32

// Argument: left out.
#define OFLOW_ARG_NONE 0

// Argument: `tensors[0]`.
#define OFLOW_ARG_TENSOR 1

// Argument: `tensors`, `count` of them.
#define OFLOW_ARG_TENSORS 2

// Kind of an argument whose value is in `value`.
#define OFLOW_ARG_VALUE 3

// Argument: where a new tensor lies: beside `tensors[0]`, else on the device that `value` names.
#define OFLOW_ARG_TARGET 4

// Gradient rule: an input of the forward call.
#define OFLOW_GRAD_INPUT 0

// Gradient rule: an output of the forward call.
#define OFLOW_GRAD_OUTPUT 1

// Gradient rule: the gradient of an output.
#define OFLOW_GRAD_GRADIENT 2

// Gradient rule: no value.
#define OFLOW_NO_VALUE 4294967295

// Starts each struct.
typedef struct {
  // Size of the whole struct in bytes.
  uint32_t size;
  // `OFLOW_OP_MAJOR` of who made the struct.
  uint16_t major;
  // `OFLOW_OP_MINOR` of who made the struct.
  uint16_t minor;
} oflow_head;

// A text of UTF-8, without a zero at its end.
typedef struct {
  // First byte of the text, in UTF-8.
  const uint8_t *data;
  // Number of bytes.
  size_t len;
} oflow_str;

// A list of texts.
typedef struct {
  // First of the texts.
  const oflow_str *data;
  // Number of texts.
  size_t count;
} oflow_strs;

// Shape and element type of a tensor.
typedef struct {
  // Size and version.
  oflow_head head;
  // The name of the input or output in the declaration.
  oflow_str name;
  // Element type: `OFLOW_F32`, …
  uint32_t dtype;
  // Number of dims.
  uint32_t rank;
  // Size of each dim.
  const int64_t *dims;
  // Of a quantised tensor the difference of two neighbours: an element stands for `(stored - zero_point) * scale`. 0 elsewhere.
  double scale;
  // Of a quantised tensor the stored integer that stands for 0.
  int64_t zero_point;
} oflow_type;

// The value of an attribute of a call.
typedef struct {
  // Size and version.
  oflow_head head;
  // Name of the attribute in the declaration.
  oflow_str name;
  // `OFLOW_ATTR_…`: which of the fields below has the value.
  uint32_t kind;
  // An integer, truth value or element type.
  int64_t integer;
  // Value of `OFLOW_ATTR_FLOAT`.
  double real;
  // Value of `OFLOW_ATTR_STR`.
  oflow_str text;
  // A list of integers, truth values or element types.
  const int64_t *integers;
  // A list of floats.
  const double *reals;
  // A list of texts.
  const oflow_str *texts;
  // Members of the list.
  size_t count;
  // Of a list of lists: the number of members of each.
  const int64_t *lengths;
} oflow_attr;

// Arguments of rules: shapes, element types and attributes, no data.
typedef struct {
  // Size and version.
  oflow_head head;
  // Inputs; a null pointer for an optional one that was left out.
  const oflow_type *const *inputs;
  // Number of inputs.
  size_t input_count;
  // Outputs, for the size of a workspace and for `applies`.
  const oflow_type *const *outputs;
  // How many; 0 where they are not known yet.
  size_t output_count;
  // Plan attributes. A rule does not see the values of runtime attributes.
  const oflow_attr *const *attrs;
  // Number of attributes.
  size_t attr_count;
  // `user` of the op; of the kernel for the size of a workspace and for `applies`.
  void *user;
  // For a device rule the device of each input: `OFLOW_CPU`, …, or `OFLOW_NO_DEVICE`. A null pointer for other rules.
  const uint32_t *devices;
  // For a device rule the device that the call would run on otherwise.
  uint32_t default_device;
  // For a rule over all axes of a mesh the size of each axis. A null pointer for other rules.
  const int64_t *mesh;
  // Number of mesh axes; 0 for other rules.
  size_t mesh_axes;
  // For such a rule the present nd-SBP of each input, as `[S(0), B]`; an empty text for one that was left out. A null pointer for
  // other rules.
  const oflow_str *sbps;
  // For such a rule the nd-SBP that output 0 is to have in the end; an empty text where none is said.
  oflow_str asked;
  // 1 if inputs are to stay as they are where a signature takes them so.
  uint32_t keep;
} oflow_infer;

// Where rules put their results. Each function returns `OFLOW_OK`, or `OFLOW_ERROR` for a value that cannot be.
typedef struct {
  // Size and version.
  oflow_head head;
  // First argument of the functions.
  void *context;
  // Says the shape of an output.
  int32_t (*shape)(void *context, size_t output, const int64_t *dims, size_t rank);
  // Says the element type of an output.
  int32_t (*dtype)(void *context, size_t output, uint32_t dtype);
  // Adds a signature, such as `S(0), B -> S(0)`; of a rule over all axes of a mesh one such as `[S(0), B] -> [S(0), B]`.
  int32_t (*signature)(void *context, oflow_str text);
  // Says the device whose kernel runs (`OFLOW_CPU`, …), and its stream (`OFLOW_STREAM_COMPUTE`, …).
  int32_t (*run_on)(void *context, uint32_t device, uint32_t stream);
  // Says the device of an output.
  int32_t (*device)(void *context, size_t output, uint32_t device);
} oflow_results;

// Where a callback writes why it failed.
typedef struct {
  // Size and version.
  oflow_head head;
  // Room for the text, in UTF-8.
  uint8_t *text;
  // Bytes of room.
  size_t capacity;
  // Number of bytes written.
  size_t len;
} oflow_message;

// A rule: what it gives goes into `results`. Returns `OFLOW_OK`, `OFLOW_ERROR` or `OFLOW_PANIC`.
typedef int32_t (*oflow_rule_fn)(const oflow_infer *infer,
                                 const oflow_results *results,
                                 oflow_message *error);

// A tensor of a call: the shard of this rank.
typedef struct {
  // Size and version.
  oflow_head head;
  // The name of the input or output in the declaration.
  oflow_str name;
  // Address of the element with all indices 0.
  void *data;
  // Element type: `OFLOW_F32`, …
  uint32_t dtype;
  // Where the memory is: `OFLOW_CPU`, …
  uint32_t device;
  // Number of dims.
  uint32_t rank;
  // Size of each dim.
  const int64_t *dims;
  // From one index to the next, in elements.
  const int64_t *strides;
  // Sizes of the logical tensor that this is a shard of.
  const int64_t *whole;
  // First logical index of the shard, by dim.
  const int64_t *start;
  // Of a quantised tensor the difference of two neighbours: an element stands for `(stored - zero_point) * scale`. 0 elsewhere.
  double scale;
  // Of a quantised tensor the stored integer that stands for 0.
  int64_t zero_point;
} oflow_view;

// A primitive that a kernel launches: the kernel of an op, on memory of the call. Of views the name, the logical sizes and the start are
// not read.
typedef struct {
  // Size and version.
  oflow_head head;
  // `matmul`, `copy`, `add`, …
  oflow_str op;
  // Inputs, in memory of the call's inputs, outputs or workspace; a null pointer for an optional one that is left out.
  const oflow_view *const *inputs;
  // Number of inputs.
  size_t input_count;
  // Outputs, in memory of the call's outputs or workspace.
  const oflow_view *const *outputs;
  // Number of outputs.
  size_t output_count;
  // Attributes by name; those that are left out have their defaults.
  const oflow_attr *const *attrs;
  // Number of attributes.
  size_t attr_count;
  // Scratch memory of the primitive, in the call's workspace; a null pointer for none.
  const oflow_view *scratch;
} oflow_launch;

// Launches a primitive in the stream of the call that `context` belongs to, from the thread that runs the kernel.
typedef int32_t (*oflow_launch_fn)(void *context, const oflow_launch *launch, oflow_message *error);

// Arguments of a kernel.
typedef struct {
  // Size and version.
  oflow_head head;
  // Name of the op.
  oflow_str op;
  // Inputs; a null pointer for an optional one that was left out. Contiguous, unless the op has the trait `strided`.
  const oflow_view *const *inputs;
  // Number of inputs.
  size_t input_count;
  // Outputs, contiguous; the memory is there and not initialised.
  const oflow_view *const *outputs;
  // Number of outputs.
  size_t output_count;
  // Attributes, runtime attributes too.
  const oflow_attr *const *attrs;
  // Number of attributes.
  size_t attr_count;
  // Scratch memory, as bytes; a null pointer where the kernel asked for none.
  const oflow_view *workspace;
  // The `CUstream` to put the work on; a null pointer on other devices.
  void *stream;
  // Where the kernel writes the length of dim 0 of the outputs, if the op has the trait `length_by_kernel`; else a null pointer.
  int64_t *length;
  // `user` of the kernel.
  void *user;
  // First argument of `launch`.
  void *context;
  // Launches a primitive on memory of this call.
  oflow_launch_fn launch;
} oflow_call;

// A computation. Returns `OFLOW_OK`, `OFLOW_ERROR` or `OFLOW_PANIC`.
typedef int32_t (*oflow_kernel_fn)(const oflow_call *call, oflow_message *error);

// The size of a workspace in bytes, or a negative number for an error.
typedef int64_t (*oflow_workspace_fn)(const oflow_infer *infer, oflow_message *error);

// Whether a kernel applies to a call: 1 or 0, or a negative number for an error.
typedef int32_t (*oflow_applies_fn)(const oflow_infer *infer, oflow_message *error);

// A kernel of an op: either a function, or the text of a CUDA kernel.
typedef struct {
  // Size and version.
  oflow_head head;
  // Name of the kernel, for lists and traces; empty for one made of op and device.
  oflow_str name;
  // `cpu` or `cuda`.
  oflow_str device;
  // Element types of float inputs that it takes: `f32|f64`; empty for all.
  oflow_str dtypes;
  // `fallback`, `default` (or empty), `optimized` or `experimental`.
  oflow_str priority;
  // The function. On CUDA it puts work on `call->stream` and does not wait for it.
  oflow_kernel_fn run;
  // Bytes of scratch memory that a call needs; null for none.
  oflow_workspace_fn workspace;
  // CUDA C++ in the place of `run`: the name of a file beside the library, or the text itself (which has more than one line).
  oflow_str cuda_source;
  // The `extern "C" __global__` function in it.
  oflow_str cuda_entry;
  // Number of threads, as arithmetic over the sizes of the shape rule and integer attributes; empty for one thread for each element
  // of the first output.
  oflow_str cuda_threads;
  // Given to `run`, `workspace` and `applies`.
  void *user;
  // When it applies, beside `dtypes`: `y: f32 and not exact and mode in (up, down)`; empty for always. With `applies` the words that
  // say when that holds.
  oflow_str condition;
  // When it applies, as code in the place of a condition that is read. It is asked when a call is planned.
  oflow_applies_fn applies;
} oflow_kernel;

// Arguments of a gradient rule. A value is a number that holds in this run of the rule. Inputs and outputs are named; if
// the name is empty, `index` is their position.
typedef struct {
  // Size and version.
  oflow_head head;
  // Name of the op.
  oflow_str op;
  // Attributes of the forward call, runtime attributes too.
  const oflow_attr *const *attrs;
  // Number of attributes.
  size_t attr_count;
  // Inputs of the forward call; optional ones that were left out count.
  size_t input_count;
  // `user` of the op.
  void *user;
  // First argument of the functions.
  void *context;
  // Gives an input, an output or a gradient (`what` is `OFLOW_GRAD_…`). `value` becomes `OFLOW_NO_VALUE` for an optional input that
  // was left out, and for the gradient of an output that nothing depends on.
  int32_t (*get)(void *context,
                 uint32_t what,
                 oflow_str name,
                 size_t index,
                 uint32_t *value,
                 oflow_message *error);
  // Whether an input wants a gradient: `needed` becomes 0 or 1.
  int32_t (*needs)(void *context,
                   oflow_str name,
                   size_t index,
                   uint32_t *needed,
                   oflow_message *error);
  // Calls an op or a function: values in order (`OFLOW_NO_VALUE` for one that is left out), other arguments by name. The list of
  // results lives until the next call.
  int32_t (*call)(void *context,
                  oflow_str function,
                  const uint32_t *inputs,
                  size_t input_count,
                  const oflow_attr *const *attrs,
                  size_t attr_count,
                  const uint32_t **results,
                  size_t *result_count,
                  oflow_message *error);
  // Says the gradient of an input.
  int32_t (*set)(void *context, oflow_str name, size_t index, uint32_t value, oflow_message *error);
  // Says shape and element type of a value. The caller sets the head of `found`; its pointers live until the rule returns.
  int32_t (*describe)(void *context, uint32_t value, oflow_type *found, oflow_message *error);
} oflow_grad;

// A gradient rule. Returns `OFLOW_OK`, `OFLOW_ERROR` or `OFLOW_PANIC`.
typedef int32_t (*oflow_grad_fn)(const oflow_grad *grad, oflow_message *error);

// An op. Empty texts and null pointers say nothing, but for the declaration.
typedef struct {
  // Size and version.
  oflow_head head;
  // Inputs, attributes and outputs: `scale(x: float; by: runtime float = 2.0) -> y`.
  oflow_str declaration;
  // Domain of the name; the name of the library if it is empty.
  oflow_str domain;
  // Version of the declaration; 1 if it is 0.
  uint32_t version;
  // One sentence; paragraphs of Markdown may follow.
  oflow_str doc;
  // Heading in lists.
  oflow_str subject;
  // Words: `strided`, `random`, `side_effect`, `cpu_only`, `run_empty`, `hidden`, `length_by_kernel`.
  oflow_str traits;
  // Functions: `scale(Tensor x, *, Float by=2.0) -> Tensor`.
  oflow_strs functions;
  // The scalar expression of an elementwise op; it needs no kernel and no other rule.
  oflow_str expression;
  // Derivatives in the place of those that follow from the expression: `x: by`.
  oflow_strs derivatives;
  // Shapes of the outputs: `[m, k], [k, n] -> [m, n]`; like input 0 if nothing is said.
  oflow_str shape;
  // Element types of the outputs: `promote`, `like x`, `f32, i64`; promotion of the inputs if nothing is said.
  oflow_str dtype;
  // Dims that may be split: `mk, kn -> mn`.
  oflow_str factors;
  // Inputs that the op is linear in: `x`, or `x: y, z` for one of which only some outputs depend.
  oflow_strs linear;
  // Signatures in the place of factors: `S(0), B -> S(0)`.
  oflow_strs signatures;
  // Gradients of the inputs: `x, w = mine.scale_grad(grad y, x, w; by)`, a line each, or `none`.
  oflow_str gradient;
  // Calls that test the op: `f32[4, 6] f32[6]; dim=1`.
  oflow_strs samples;
  // Refuses bad inputs and attributes.
  oflow_rule_fn check;
  // Shapes of the outputs, in the place of `shape`.
  oflow_rule_fn infer_shapes;
  // Element types of the outputs, in the place of `dtype`.
  oflow_rule_fn infer_dtypes;
  // Signatures, in the place of `factors` and `signatures`.
  oflow_rule_fn infer_signatures;
  // Given to the rules.
  void *user;
  // First of the pointers to the op's kernels.
  const oflow_kernel *const *kernels;
  // Number of kernels.
  size_t kernel_count;
  // The gradient by code, in the place of `gradient`.
  oflow_grad_fn grad_rule;
  // Inputs and outputs that `grad_rule` reads, by name; others are not kept for it.
  oflow_strs grad_saves;
  // 1 if `grad_saves` says it; 0 keeps all.
  uint32_t grad_saves_listed;
  // Signatures over all axes of a mesh in the place of the products of those of one axis: `[S(0), B], [B, B] -> [S(0), B]`.
  oflow_strs nd_infer;
  // Signatures over all axes of a mesh beside these products.
  oflow_strs nd_extra;
  // Signatures that hold over all axes of a mesh: patterns with `*`, or `not` and a pattern: `not [S(0), S(1)], * -> *`.
  oflow_strs nd_valid;
  // Where a call runs and where its outputs are.
  oflow_rule_fn infer_devices;
  // Signatures over all axes of a mesh by code, in the place of `nd_infer`. The rule sees the layouts of the inputs.
  oflow_rule_fn nd_infer_rule;
  // Takes one of the op's signatures for a call: the one that it gives. One that gives none leaves the choice to oflow.
  oflow_rule_fn nd_choose;
} oflow_op_def;

// A tensor, by its number. 0 is none.
typedef uint64_t oflow_tensor;

// An argument of a function.
typedef struct {
  // Size and version.
  oflow_head head;
  // The parameter; empty for an argument by position.
  oflow_str name;
  // `OFLOW_ARG_…`: which of the fields below has the argument.
  uint32_t kind;
  // First of the tensors.
  const oflow_tensor *tensors;
  // Number of tensors.
  size_t count;
  // A value that is no tensor.
  const oflow_attr *value;
} oflow_arg;

// Arguments of the body of a function.
typedef struct {
  // Size and version.
  oflow_head head;
  // Name of the function.
  oflow_str function;
  // One for each parameter, in order, with its name and its default.
  const oflow_arg *const *args;
  // Number of arguments.
  size_t arg_count;
  // `user` of the function.
  void *user;
} oflow_function_args;

// Where the body of a function puts its results. The functions return `OFLOW_OK`, or `OFLOW_ERROR` for what cannot be a result.
typedef struct {
  // Size and version.
  oflow_head head;
  // First argument of the functions.
  void *context;
  // Adds a tensor, which stays owned by the caller.
  int32_t (*tensor)(void *context, oflow_tensor tensor);
  // Says the value of a function that returns no tensors.
  int32_t (*value)(void *context, const oflow_attr *value);
} oflow_function_results;

// The body of a function. Returns `OFLOW_OK`, `OFLOW_ERROR` or `OFLOW_PANIC`.
typedef int32_t (*oflow_function_fn)(const oflow_function_args *args,
                                     const oflow_function_results *results,
                                     oflow_message *error);

// A function that calls ops and other functions.
typedef struct {
  // Size and version.
  oflow_head head;
  // `scaled_relu(Tensor x, *, Float by=2.0) -> Tensor`; the library's name is put before the function's.
  oflow_str signature;
  // One sentence; paragraphs of Markdown may follow.
  oflow_str doc;
  // 1 leaves it out of lists.
  uint32_t hidden;
  // Body of the function.
  oflow_function_fn run;
  // Given to `run`.
  void *user;
} oflow_function_def;

// Declarations of a library.
typedef struct {
  // Size and version.
  oflow_head head;
  // Name of the library: letters, digits and `_`.
  oflow_str name;
  // Version of the library, as the library counts.
  oflow_str version;
  // Why there are no ops, if the library could not make them.
  oflow_str error;
  // Ops, in the order in which they are registered.
  const oflow_op_def *const *ops;
  // Number of ops.
  size_t op_count;
  // Functions that call ops and functions.
  const oflow_function_def *const *functions;
  // Number of functions.
  size_t function_count;
} oflow_library;

// Description of a tensor. Pointers live as long as the tensor's number.
typedef struct {
  // Size and version.
  oflow_head head;
  // Element type: `OFLOW_F32`, …
  uint32_t dtype;
  // Number of dims.
  uint32_t rank;
  // Logical size of each dim.
  const int64_t *dims;
  // Of a quantised tensor the difference of two neighbours. 0 elsewhere.
  double scale;
  // Of a quantised tensor the stored integer that stands for 0.
  int64_t zero_point;
  // The kind of device: `cpu`, `cuda`, …
  oflow_str device;
  // 1 for a global tensor, 0 for a local one.
  uint32_t global;
  // 1 if gradients flow to it.
  uint32_t requires_grad;
  // The nd-SBP of a global tensor; empty elsewhere.
  oflow_str sbp;
  // The placement of a global tensor as text; empty elsewhere.
  oflow_str placement;
} oflow_tensor_info;

// A call of a function or an op by name.
typedef struct {
  // Size and version.
  oflow_head head;
  // `relu`, `mine.scale`.
  oflow_str function;
  // Arguments by position, then those by name.
  const oflow_arg *const *args;
  // Number of arguments.
  size_t arg_count;
} oflow_function_call;

// Results of a call. The lists live until the next call on this thread; the tensors are owned by the caller.
typedef struct {
  // Size and version.
  oflow_head head;
  // First of the tensors.
  const oflow_tensor *tensors;
  // Number of tensors.
  size_t count;
  // The value of a function that returns no tensors; else a null pointer.
  const oflow_attr *value;
} oflow_returned;

// oflow's functions for the code of libraries.
typedef struct {
  // Size and version.
  oflow_head head;
  // Owns a tensor once more.
  int32_t (*retain)(oflow_tensor tensor, oflow_message *error);
  // Gives a tensor up that was owned.
  int32_t (*release)(oflow_tensor tensor, oflow_message *error);
  // Says what a tensor is. The caller sets the head of `info`.
  int32_t (*describe)(oflow_tensor tensor, oflow_tensor_info *info, oflow_message *error);
  // Calls a function or an op by name. The caller sets the head of `returned`.
  int32_t (*call)(const oflow_function_call *call, oflow_returned *returned, oflow_message *error);
  // Asks for a primitive: the kernel of an op for these types on a kind of device (`OFLOW_CPU`, …). `scratch` becomes the bytes of
  // scratch memory that it needs, or -1 where there is none.
  int32_t (*primitive)(oflow_str op,
                       uint32_t device,
                       const oflow_type *const *inputs,
                       size_t input_count,
                       const oflow_attr *const *attrs,
                       size_t attr_count,
                       int64_t *scratch,
                       oflow_message *error);
} oflow_api;

// Functions that a library may call while the process lives.
typedef struct {
  // Size and version.
  oflow_head head;
  // Calls `body(data, begin, end)` for parts of `0..count` of at most `grain` each, on the threads of the rank, and returns after the
  // last one. The parts depend on `count` and `grain` only. `body` must not unwind.
  void (*parallel_for)(size_t count,
                       size_t grain,
                       void (*body)(void *data, size_t begin, size_t end),
                       void *data);
  // Calls of ops and functions.
  const oflow_api *api;
} oflow_host;

// The function that a library exports as `oflow_op_library`. It is called once for each load.
typedef const oflow_library *(*oflow_library_fn)(const oflow_host *host);

#endif  /* OFLOW_OP_H */
