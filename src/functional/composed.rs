//! Functions with a text of their own: those that call several ops or none of their own name, those with overloads, and those that
//! take fewer arguments or return less than their op. The code of a function calls the method or factory of that name.

use super::by_name::Bound;
use super::create::{IntoTarget, TargetSpec};
use super::layout::{IntoLayout, LayoutSpec};
use super::nn::{AttentionOptions, CrossEntropyOptions};
use super::table::FnBody;
use super::{Operand, create, index, invoke, shape};
use crate::error::{CallSite, Error, Result};
use crate::ops::find;
use crate::placement::Placement;
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::sync::Arc;

/// What a function of the table does.
#[derive(Clone, Copy)]
pub(super) enum Does {
    /// Calls that op: parameters become its inputs and attributes of the same names.
    Op(&'static str),
    /// Returns one tensor.
    One(fn(&Bound) -> Result<Tensor>),
    /// Returns any number of tensors.
    Many(fn(&Bound) -> Result<Vec<Tensor>>),
}
use Does::{Many, One, Op};

impl From<&Does> for FnBody {
    fn from(does: &Does) -> FnBody {
        match *does {
            Op(name) => FnBody::Op(name.into()),
            One(f) => FnBody::Code(Arc::new(move |b| Ok(vec![f(b)?]))),
            Many(f) => FnBody::Code(Arc::new(f)),
        }
    }
}

/// Text, one sentence, what it does. Overloads of a name stand in the order in which they are tried.
pub(super) const COMPOSED: &[(&str, &str, Does)] = &[
    // Arithmetic: a tensor or a number on either side.
    ("add(Tensor a, Tensor b) -> Tensor", "a + b; shapes broadcast.", Op("add")),
    ("add(Tensor x, Scalar s) -> Tensor", "x + s.", Op("add_scalar")),
    ("sub(Tensor a, Tensor b) -> Tensor", "a - b; shapes broadcast.", Op("sub")),
    ("sub(Tensor x, Scalar s) -> Tensor", "x - s.", Op("sub_scalar")),
    ("sub(Scalar s, Tensor x) -> Tensor", "s - x.", Op("rsub_scalar")),
    ("rsub(Tensor x, Scalar s) -> Tensor", "s - x.", Op("rsub_scalar")),
    ("mul(Tensor a, Tensor b) -> Tensor", "a b, element by element; shapes broadcast.", Op("mul")),
    ("mul(Tensor x, Scalar s) -> Tensor", "x s.", Op("mul_scalar")),
    ("div(Tensor a, Tensor b) -> Tensor", "a / b; integers give a float.", Op("div")),
    ("div(Tensor x, Scalar s) -> Tensor", "x / s.", Op("div_scalar")),
    ("div(Scalar s, Tensor x) -> Tensor", "s / x.", Op("rdiv_scalar")),
    ("rdiv(Tensor x, Scalar s) -> Tensor", "s / x.", Op("rdiv_scalar")),
    ("pow(Tensor a, Tensor b) -> Tensor", "a to the power b.", Op("pow")),
    ("pow(Tensor x, Scalar s) -> Tensor", "x to the power s.", Op("pow_scalar")),
    ("pow(Scalar s, Tensor x) -> Tensor", "s to the power x.", Op("rpow_scalar")),
    ("rpow(Tensor x, Scalar s) -> Tensor", "s to the power x.", Op("rpow_scalar")),
    ("maximum(Tensor a, Tensor b) -> Tensor", "The larger element of each pair; NaN if either is NaN.", Op("maximum")),
    ("maximum(Tensor x, Scalar s) -> Tensor", "The larger of x and s.", Op("maximum_scalar")),
    ("minimum(Tensor a, Tensor b) -> Tensor", "The smaller element of each pair; NaN if either is NaN.", Op("minimum")),
    ("minimum(Tensor x, Scalar s) -> Tensor", "The smaller of x and s.", Op("minimum_scalar")),
    ("fmod(Tensor a, Tensor b) -> Tensor", "Remainder of a / b with the sign of a.", Op("fmod")),
    ("fmod(Tensor x, Scalar s) -> Tensor", "Remainder of x / s with the sign of x.", Op("fmod_scalar")),
    ("remainder(Tensor a, Tensor b) -> Tensor", "Remainder of a / b with the sign of b.", Op("remainder")),
    ("remainder(Tensor x, Scalar s) -> Tensor", "Remainder of x / s with the sign of s.", Op("remainder_scalar")),
    ("floor_divide(Tensor a, Tensor b) -> Tensor", "a / b rounded down.", Op("floor_divide")),
    ("floor_divide(Tensor x, Scalar s) -> Tensor", "x / s rounded down.", Op("floor_divide_scalar")),
    ("eq(Tensor a, Tensor b) -> Tensor", "True where a equals b.", Op("eq")),
    ("eq(Tensor x, Scalar s) -> Tensor", "True where x equals s.", Op("eq_scalar")),
    ("ne(Tensor a, Tensor b) -> Tensor", "True where a differs from b.", Op("ne")),
    ("ne(Tensor x, Scalar s) -> Tensor", "True where x differs from s.", Op("ne_scalar")),
    ("lt(Tensor a, Tensor b) -> Tensor", "True where a < b.", Op("lt")),
    ("lt(Tensor x, Scalar s) -> Tensor", "True where x < s.", Op("lt_scalar")),
    ("le(Tensor a, Tensor b) -> Tensor", "True where a <= b.", Op("le")),
    ("le(Tensor x, Scalar s) -> Tensor", "True where x <= s.", Op("le_scalar")),
    ("gt(Tensor a, Tensor b) -> Tensor", "True where a > b.", Op("gt")),
    ("gt(Tensor x, Scalar s) -> Tensor", "True where x > s.", Op("gt_scalar")),
    ("ge(Tensor a, Tensor b) -> Tensor", "True where a >= b.", Op("ge")),
    ("ge(Tensor x, Scalar s) -> Tensor", "True where x >= s.", Op("ge_scalar")),
    ("leaky_relu(Tensor x, *, Float alpha=0.01) -> Tensor", "x, or alpha x where x is negative.", Op("leaky_relu")),
    ("elu(Tensor x, *, Float alpha=1.0) -> Tensor", "x, or alpha (exp(x) - 1) where x is negative.", Op("elu")),
    ("masked_fill(Tensor x, Tensor mask, Scalar s) -> Tensor", "s where the mask is true, else x.", Op("masked_fill")),
    (
        "masked_select(Tensor x, Tensor mask) -> Tensor",
        "The elements where the mask is true, as one dim; shapes broadcast.",
        One(|b| b.given(0)?.masked_select(b.given(1)?)),
    ),
    // In place: the tensor itself is returned.
    (
        "add_(Tensor x, Tensor other) -> Tensor",
        "x += other, in place.",
        One(|b| in_place(b, |x, y| x.add_(y).map(drop))),
    ),
    (
        "add_(Tensor x, Scalar other) -> Tensor",
        "x += other, in place.",
        One(|b| in_place(b, |x, y| x.add_(y).map(drop))),
    ),
    (
        "sub_(Tensor x, Tensor other) -> Tensor",
        "x -= other, in place.",
        One(|b| in_place(b, |x, y| x.sub_(y).map(drop))),
    ),
    (
        "sub_(Tensor x, Scalar other) -> Tensor",
        "x -= other, in place.",
        One(|b| in_place(b, |x, y| x.sub_(y).map(drop))),
    ),
    (
        "mul_(Tensor x, Tensor other) -> Tensor",
        "x *= other, in place.",
        One(|b| in_place(b, |x, y| x.mul_(y).map(drop))),
    ),
    (
        "mul_(Tensor x, Scalar other) -> Tensor",
        "x *= other, in place.",
        One(|b| in_place(b, |x, y| x.mul_(y).map(drop))),
    ),
    (
        "div_(Tensor x, Tensor other) -> Tensor",
        "x /= other, in place.",
        One(|b| in_place(b, |x, y| x.div_(y).map(drop))),
    ),
    (
        "div_(Tensor x, Scalar other) -> Tensor",
        "x /= other, in place.",
        One(|b| in_place(b, |x, y| x.div_(y).map(drop))),
    ),
    ("zero_(Tensor x) -> Tensor", "Zeros, in place.", One(|b| b.given(0)?.zero_().cloned())),
    (
        "copy_(Tensor x, Tensor other) -> Tensor",
        "A copy of other, in place.",
        One(|b| b.given(0)?.copy_(b.given(1)?).cloned()),
    ),
    // New tensors.
    (
        "full(Shape shape, Scalar value, Target target, *, DataType? dtype) -> Tensor",
        "Every element is the value; of the dtype of its kind unless another is given.",
        One(|b| create::full(b.shape(0)?, b.scalar(1)?, target(b, 2, 3)?)),
    ),
    (
        "zeros(Shape shape, Target target, *, DataType dtype=f32) -> Tensor",
        "Zeros.",
        One(|b| create::zeros(b.shape(0)?, target(b, 1, 2)?)),
    ),
    (
        "ones(Shape shape, Target target, *, DataType dtype=f32) -> Tensor",
        "Ones.",
        One(|b| create::ones(b.shape(0)?, target(b, 1, 2)?)),
    ),
    (
        "empty(Shape shape, Target target, *, DataType dtype=f32) -> Tensor",
        "Memory that is written before it is read; zeros.",
        One(|b| create::empty(b.shape(0)?, target(b, 1, 2)?)),
    ),
    (
        "arange(Int end, Target target, *, DataType dtype=i64) -> Tensor",
        "0, 1, ... below end.",
        One(|b| create::arange(b.int(0)?, target(b, 1, 2)?)),
    ),
    (
        "arange(Scalar start, Scalar end, Scalar step, Target target, *, DataType? dtype) -> Tensor",
        "start, start + step, ... below end.",
        One(|b| create::range(b.scalar(0)?, b.scalar(1)?, b.scalar(2)?, target(b, 3, 4)?)),
    ),
    (
        "scalar_tensor(Scalar value, Target target, *, DataType? dtype) -> Tensor",
        "A tensor without dims.",
        One(|b| create::scalar_tensor(b.scalar(0)?, target(b, 1, 2)?)),
    ),
    (
        "zeros_like(Tensor x) -> Tensor",
        "Zeros of x's shape, dtype and layout.",
        One(|b| create::zeros_like(b.given(0)?)),
    ),
    ("ones_like(Tensor x) -> Tensor", "Ones of x's shape, dtype and layout.", One(|b| create::ones_like(b.given(0)?))),
    (
        "full_like(Tensor x, Scalar value) -> Tensor",
        "The value everywhere, with x's shape, dtype and layout.",
        One(|b| create::full_like(b.given(0)?, b.scalar(1)?)),
    ),
    (
        "rand(Shape shape, Target target, *, Float lo=0.0, Float hi=1.0, DataType dtype=f32, Generator? generator) -> Tensor",
        "Uniform in [lo, hi).",
        Op("rand"),
    ),
    (
        "randn(Shape shape, Target target, *, Float mean=0.0, Float std=1.0, DataType dtype=f32, Generator? generator) -> Tensor",
        "Normal.",
        Op("randn"),
    ),
    (
        "bernoulli(Shape shape, Target target, *, Float p=0.5, DataType dtype=f32, Generator? generator) -> Tensor",
        "1 with probability p, else 0.",
        Op("bernoulli"),
    ),
    (
        "randint(Shape shape, Int lo, Int hi, Target target, *, DataType dtype=i64, Generator? generator) -> Tensor",
        "Integers in [lo, hi).",
        Op("randint"),
    ),
    (
        "dropout(Tensor x, *, Float p=0.5, Generator? generator) -> Tensor",
        "Zeros with probability p, other elements times 1 / (1 - p).",
        Op("dropout"),
    ),
    // Shapes.
    (
        "reshape(Tensor x, IntList shape) -> Tensor",
        "The same elements in another shape; one size may be -1.",
        One(|b| b.given(0)?.reshape(b.ints(1)?)),
    ),
    (
        "flatten(Tensor x, Int start=0, Int end=-1) -> Tensor",
        "The dims from start to end, inclusive, as one.",
        One(|b| b.given(0)?.flatten(b.int(1)?, b.int(2)?)),
    ),
    (
        "transpose(Tensor x, Int dim0, Int dim1) -> Tensor",
        "Exchanges two dims.",
        One(|b| b.given(0)?.transpose(b.int(1)?, b.int(2)?)),
    ),
    ("t(Tensor x) -> Tensor", "Exchanges the last two dims.", One(|b| b.given(0)?.t())),
    (
        "expand(Tensor x, IntList shape) -> Tensor",
        "Dims of size 1 repeated up to the shape; -1 keeps a size.",
        One(|b| b.given(0)?.expand(b.ints(1)?)),
    ),
    ("unsqueeze(Tensor x, Int dim) -> Tensor", "A dim of size 1 more.", One(|b| b.given(0)?.unsqueeze(b.int(1)?))),
    (
        "squeeze(Tensor x, Int dim) -> Tensor",
        "Without the dim, if its size is 1.",
        One(|b| b.given(0)?.squeeze(b.int(1)?)),
    ),
    (
        "slice(Tensor x, Int dim, Int start, Int end, Int step=1) -> Tensor",
        "Elements start, start + step, ... below end of a dim; bounds are clamped.",
        One(|b| b.given(0)?.slice(b.int(1)?, b.int(2)?, b.int(3)?, b.int(4)?)),
    ),
    (
        "narrow(Tensor x, Int dim, Int start, Int len) -> Tensor",
        "len elements of a dim from start on.",
        One(|b| b.given(0)?.narrow(b.int(1)?, b.int(2)?, b.int(3)?)),
    ),
    (
        "select(Tensor x, Int dim, Int index) -> Tensor",
        "One element of a dim, which is removed.",
        One(|b| b.given(0)?.select(b.int(1)?, b.int(2)?)),
    ),
    (
        "split(Tensor x, Int size, Int dim=0) -> TensorTuple",
        "Parts of a dim with size elements; the last may be smaller.",
        Many(|b| b.given(0)?.split(count(b, 1)?, b.int(2)?)),
    ),
    (
        "chunk(Tensor x, Int parts, Int dim=0) -> TensorTuple",
        "At most so many parts of equal size; the last may be smaller.",
        Many(|b| b.given(0)?.chunk(count(b, 1)?, b.int(2)?)),
    ),
    ("cat(TensorTuple xs, Int dim=0) -> Tensor", "The tensors behind one another along a dim.", Op("concat")),
    (
        "stack(TensorTuple xs, Int dim=0) -> Tensor",
        "The tensors along a new dim.",
        One(|b| shape::stack(b.tensors(0)?, b.int(1)?)),
    ),
    // Reductions and neural nets.
    (
        "var(Tensor x, IntList dims=[]) -> Tensor",
        "Biased variance over dims (none given: all).",
        One(|b| b.given(0)?.var(b.ints(1)?)),
    ),
    (
        "matmul(Tensor a, Tensor b, *, Bool transpose_a=false, Bool transpose_b=false) -> Tensor",
        "Matrix product; leading dims broadcast, a vector is a matrix of one row or column. Matrices may be transposed first.",
        One(|b| {
            let turned = |t: &Tensor, turn: bool| if turn && t.ndim() > 1 { t.t() } else { Ok(t.clone()) };
            turned(b.given(0)?, b.bool(2)?)?.matmul(&turned(b.given(1)?, b.bool(3)?)?)
        }),
    ),
    ("matmul_t(Tensor a, Tensor b) -> Tensor", "a times b transposed.", One(|b| b.given(0)?.matmul_t(b.given(1)?))),
    (
        "linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor",
        "x times the weight transposed, plus the bias.",
        One(|b| b.given(0)?.linear(b.given(1)?, b.tensor(2))),
    ),
    (
        "layer_norm(Tensor x, Tensor? weight, Tensor? bias, *, Float eps=1e-5, Int? axes) -> Tensor",
        "The last dims with mean 0 and variance 1, times the weight, plus the bias; as many dims as the weight has, or axes.",
        One(|b| match b.int(4) {
            Ok(axes) => normalised("layer_norm", &[Some(b.given(0)?), b.tensor(1), b.tensor(2)], axes, b.float(3)?),
            Err(_) => b.given(0)?.layer_norm(b.tensor(1), b.tensor(2), b.float(3)?),
        }),
    ),
    (
        "rms_norm(Tensor x, Tensor? weight, *, Float eps=1e-6, Int? axes) -> Tensor",
        "x divided by the root mean square over the last dims, times the weight; as many dims as the weight has, or axes.",
        One(|b| match b.int(3) {
            Ok(axes) => normalised("rms_norm", &[Some(b.given(0)?), b.tensor(1)], axes, b.float(2)?),
            Err(_) => b.given(0)?.rms_norm(b.tensor(1), b.float(2)?),
        }),
    ),
    (
        "attention(Tensor q, Tensor k, Tensor v, *, Bool causal=false, Float? scale) -> Tensor",
        "softmax(q k transposed, times the scale) v; the scale is 1 / sqrt(D) unless given.",
        One(|b| {
            let options = AttentionOptions { causal: b.bool(3)?, scale: b.float(4).ok() };
            b.given(0)?.attention_with(b.given(1)?, b.given(2)?, &options)
        }),
    ),
    (
        "cross_entropy(Tensor logits, Tensor target, *, Int? ignore_index, Bool per_row=false) -> Tensor",
        "Cross entropy of logits and class indices: the mean, or of each row.",
        One(|b| {
            let options = CrossEntropyOptions { ignore_index: b.int(2).ok(), per_row: b.bool(3)? };
            b.given(0)?.cross_entropy_with(b.given(1)?, &options)
        }),
    ),
    (
        "softplus(Tensor x, *, Float beta=1.0, Float threshold=20.0) -> Tensor",
        "log(1 + exp(beta x)) / beta; x above the threshold.",
        Op("softplus"),
    ),
    (
        "one_hot(Tensor ids, Int classes, *, DataType dtype=i64) -> Tensor",
        "A new last dim: 1 at the index, 0 elsewhere.",
        Op("one_hot"),
    ),
    // Layouts.
    (
        "to_global(Tensor x, Placement placement, Sbp sbp, *, Sbp? grad_sbp) -> Tensor",
        "The tensor in another layout; a local one becomes the rank's shard of a global one.",
        One(|b| b.given(0)?.to_global(layout(b.placement(1), b.sbp(2), b.sbp(3))?)),
    ),
    (
        "to_global(Tensor x, Sbp sbp, *, Sbp? grad_sbp) -> Tensor",
        "A global tensor in another layout on its placement.",
        One(|b| b.given(0)?.to_global(layout(None, b.sbp(1), b.sbp(2))?)),
    ),
    (
        "to_local(Tensor x, *, Sbp? grad_sbp) -> Tensor",
        "The rank's shard as a local tensor.",
        One(|b| match b.sbp(1) {
            Some(grad_sbp) => b.given(0)?.to_local_with(grad_sbp),
            None => b.given(0)?.to_local(),
        }),
    ),
    (
        "distribute(Tensor x, Placement placement, Sbp sbp) -> Tensor",
        "A global tensor from its logical value, which every rank gives.",
        One(|b| {
            let (Some(placement), Some(sbp)) = (b.placement(1), b.sbp(2)) else {
                return Err(Error::argument("distribute needs a placement and an sbp"));
            };
            super::layout::distribute(b.given(0)?, (placement, sbp))
        }),
    ),
    // Elements by index.
    (
        "index(Tensor x, TensorIndex index) -> Tensor",
        "The elements that an index of integers, slices, masks and index tensors names.",
        One(|b| index::index(b.given(0)?, b.index(1)?, b.site)),
    ),
    (
        "index_put(Tensor x, TensorIndex index, Tensor value) -> Tensor",
        "A copy with the value, which broadcasts, at what an index names.",
        One(|b| index::index_put(b.given(0)?, b.index(1)?, &operand(b, 2)?, b.site)),
    ),
    (
        "index_put(Tensor x, TensorIndex index, Scalar value) -> Tensor",
        "A copy with the value at what an index names.",
        One(|b| index::index_put(b.given(0)?, b.index(1)?, &operand(b, 2)?, b.site)),
    ),
    (
        "index_put_(Tensor x, TensorIndex index, Tensor value) -> Tensor",
        "The value, which broadcasts, is written to what an index names.",
        One(|b| index::index_put_(b.given(0)?, b.index(1)?, &operand(b, 2)?, b.site).and(b.given(0).cloned())),
    ),
    (
        "index_put_(Tensor x, TensorIndex index, Scalar value) -> Tensor",
        "The value is written to what an index names.",
        One(|b| index::index_put_(b.given(0)?, b.index(1)?, &operand(b, 2)?, b.site).and(b.given(0).cloned())),
    ),
    (
        "index_select(Tensor x, Int dim, Tensor ids) -> Tensor",
        "Elements of a dim by index; the dims of the indices take its place.",
        One(|b| index::index_select(b.given(0)?, b.int(1)?, b.given(2)?, b.site)),
    ),
    (
        "flip(Tensor x, IntList dims) -> Tensor",
        "The elements of each of the dims in reverse order.",
        One(|b| index::flip(b.given(0)?, b.ints(1)?, b.site)),
    ),
];

/// A tensor or a number.
fn operand(b: &Bound, i: usize) -> Result<Operand<'_>> {
    Ok(match b.tensor(i) {
        Some(t) => Operand::Tensor(t),
        None => Operand::Scalar(b.scalar(i)?),
    })
}

/// An in-place function on parameter 0 with a tensor or a number.
fn in_place(b: &Bound, f: fn(&Tensor, Operand<'_>) -> Result<()>) -> Result<Tensor> {
    f(b.given(0)?, operand(b, 1)?)?;
    b.given(0).cloned()
}

/// Where a new tensor lives, of the dtype that another parameter gives.
fn target(b: &Bound, at: usize, dtype: usize) -> Result<TargetSpec> {
    let target = b.target(at)?.into_target();
    Ok(b.dtype(dtype).map_or(target.clone(), |d| target.dtype(d)))
}

fn layout(placement: Option<&Placement>, sbp: Option<&NdSbp>, grad_sbp: Option<&NdSbp>) -> Result<LayoutSpec> {
    let sbp = sbp.ok_or_else(|| Error::argument("to_global needs an sbp"))?;
    let layout = match placement {
        Some(placement) => (placement, sbp).into_layout(),
        None => sbp.clone().into_layout(),
    };
    Ok(match grad_sbp {
        Some(grad_sbp) => layout.grad_sbp(grad_sbp),
        None => layout,
    })
}

/// A norm over so many last dims.
fn normalised(op: &str, inputs: &[Option<&Tensor>], axes: i64, eps: f64) -> Result<Tensor> {
    let site = CallSite::here();
    let (attrs, runtime) = (smallvec![axes.into()], smallvec![eps.into()]);
    Ok(invoke(find(op), inputs, attrs, runtime, site)?.swap_remove(0))
}

/// A number of things.
fn count(b: &Bound, i: usize) -> Result<usize> {
    let n = b.int(i)?;
    usize::try_from(n).map_err(|_| Error::argument(format!("{n} is no number of elements or parts")))
}
