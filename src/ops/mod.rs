//! Op declarations as data, and their registry. One file a family of ops.
//!
//! Pure: no I/O, no threads, no clock, no device; names no kernel of any (an op may bring kernels, as function pointers that the vm calls). To learn how an op is
//! declared read [`OpDef`], [the page on ops of your own](crate::docs::custom_ops) and the shortest family, `activation.rs`. Ops of shared
//! libraries and source files are registered by the room [`libraries`](crate::libraries).
//!
//! Most files of this room need each other (`cargo xtask house` lists the circle), and that stays. An [`OpDef`] has rules, which are functions. A
//! rule is given a context ([`InferCtx`], [`KernelCx`], [`GradCtx`]), which reads attributes by the names in that same `OpDef`. The gradient of
//! an op is made of other ops, so contexts of gradients look ops up in the registry, whose entries are `OpDef`s with what is derived from
//! them. Contexts that did not know `OpDef` would have to be generic over it.
//!
//! # Rules that hold for every op
//!
//! **Numbers.** The kinds of the numbers given to a call (bool, int, float) are part of its key. From the kinds and the
//! input dtypes follows the dtype in which an elementwise op computes (`OpDef::compute_dtype`, PyTorch's promotion). The
//! kernel is compiled for this dtype, and numbers enter it as elements do (`Entries` in the expressions of
//! `oflow-kernels`). An op in place converts its result to the dtype of the tensor, and refuses a tensor of a lower kind
//! than the result. `OpDef::values` checks numbers at every call, before anything is computed or moved.
//! `Expr::checks_divisor` makes an integer division by 0 an error. Sums in f16 and bf16 are accumulated in f32. `mean`
//! divides before it rounds, so the partial means of a split dim do not overflow.
//!
//! **Sizes and bounds** are checked where they arise, in every build. `OpDef::infer` checks each output, and each
//! attribute that becomes a size (`TensorType::checked`: the product of the sizes takes at most `isize::MAX` bytes).
//! After that check no size, stride or byte offset of the tensor can overflow. The declaration refuses what a kernel
//! would refuse: `check` looks at dtypes, dims and shapes, `values` at runtime attributes, on every rank and at every
//! call. A kernel detects only errors that depend on the values of tensors, such as an index out of range. A
//! `LocalTensor` is made by `alloc`, or by `window`, which checks that every addressed element is inside the storage.
//! Exhausted memory is an error: `memory/vector.rs` makes vectors of the size of a tensor, and large blocks leave some
//! address space free. `tests/calls` makes random calls with arbitrary sizes under a memory limit, and compares the
//! errors of the ranks (`OFLOW_CALLS=1000000` for a long run). `scripts/memcheck.sh` runs unsafe code under valgrind;
//! Miri and the sanitizers would need a nightly compiler.
//!
//! **Autocast.** `autocast.rs` has one row per op: the dtype to which the interpreter casts the float inputs before the
//! call.

mod arith;
mod attr;
mod autocast;
mod condition;
mod constraint;
mod deduce;
mod def;
mod derive;
mod dtype_lowering;
mod factors;
mod families;
mod function;
mod grad;
mod hooks;
mod identity;
mod infer;
mod kernel;
mod layout;
mod named;
mod nd_text;
mod params;
mod registry;
mod resolve;
mod rule_text;
mod sbp_hints;
mod shape_text;
mod signature;
mod typed;
mod windows;
mod wired;

pub(crate) use attr::encode_sbp;
pub use attr::{AttrKind, AttrValue, Attrs, GivenNumber, KeyWords, RuntimeArg, RuntimeAttrs};
pub use autocast::{Autocast, CASTS, CastPolicy};
pub use constraint::{DTypeClass, DTypeSet, RankSet};
pub(crate) use deduce::{not_made, promote_types, promoted, scalar_of_kind};
pub use def::{
    DTypeRule, GivenValues, LengthBy, LibraryId, LoweredBy, Lowering, NdSignature, OpDef, OpTraits, SbpRule, ShapeRule,
};
pub(crate) use def::{NdInferFn, ViewFn};
pub(crate) use derive::lookup_derived;
pub use derive::{DerivedArgs, Numbers, derived_args, derived_grad_op};
pub use dtype_lowering::{ByDTypeFn, DTypeLowering};
pub(crate) use families::{Diagonal, GATHER_LIMIT, Turn, builtin, chain_of, quantised, reads_chain, roll};
pub(crate) use function::hidden_overload;
pub use function::{FnParam, FnReturn, FnSig, ParamKind};
pub use grad::{Emit, Grad, GradArg, GradCtx, GradFn, GradWire, LowerCall, LowerFn, Value};
pub(crate) use grad::{op_in_lowering, shards_of};
pub use hooks::{DeviceCtx, Devices, Hooks, InputProps, OutputProps, StreamKind, Withheld};
pub(crate) use infer::get_attr;
pub use infer::{InferCtx, LocalizeCtx, MAX_DIMS, TensorType, broadcast_shapes, normalize_dim};
pub use kernel::{KernelCx, KernelDef, KernelFn, KernelPred, KernelState, KernelTest, Priority};
pub use layout::LayoutOp;
pub use named::Which;
/// Implements [`OpParams`](trait@OpParams) for a struct.
pub use oflow_derive::OpParams;
pub use params::{OpParams, ParamField, ParamType};
pub use registry::{Op, OpRef, add_gradient, add_signatures, all, find, generation, hash, register};
pub(crate) use registry::{OpUse, changed, exchange, lookup, nearest, note_functions, shown};
pub use resolve::resolve_attrs;
pub(crate) use resolve::resolve_symbolic;
pub use sbp_hints::SbpHints;
pub use shape_text::{ShapeText, SizeRule};
pub(crate) use signature::split_outside;
pub use signature::{AttrDef, InputDef, OpSignature, OutputCount, OutputDef};
pub(crate) use typed::FromAttr;
pub(crate) use windows::PartBoxes;
pub use windows::WindowsFn;
