//! What the pure rules of an op are given: logical inputs and plan attributes, never a rank's own coordinate and never a
//! runtime attribute's value.

use super::attr::{AttrValue, Attrs};
use super::def::OpDef;
use crate::error::{Error, Result};
use oflow_kernels::{DType, DTypeKind, Dims, Scalar, ShardBox};
use smallvec::SmallVec;

/// Shape and dtype of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Sizes.
    pub shape: Dims,
    /// Element type.
    pub dtype: DType,
}

impl TensorType {
    /// A description from parts, of a tensor that exists or of sizes that were checked.
    pub fn new(shape: &[usize], dtype: DType) -> TensorType {
        TensorType { shape: shape.into(), dtype }
    }
    /// The type, if a tensor of it can be addressed. Every output of an op and every shape that a caller gives passes here,
    /// so sizes, strides and byte offsets of a tensor never wrap.
    ///
    /// # Errors
    /// When the product of the sizes (0 counts as 1, as in the strides) has more bytes than `isize::MAX`.
    pub fn checked(shape: &[usize], dtype: DType) -> Result<TensorType> {
        let bytes = shape.iter().try_fold(dtype.size(), |n, d| n.checked_mul((*d).max(1)));
        match bytes {
            Some(n) if n <= isize::MAX as usize => Ok(TensorType::new(shape, dtype)),
            _ => Err(Error::shape(format!("{dtype}{shape:?} has more bytes than memory has addresses"))
                .help("check the sizes: their product must stay below 2^63 bytes")),
        }
    }
    /// Number of elements; `usize::MAX` where it is larger, which no checked type is.
    pub fn len(&self) -> usize {
        if self.is_empty() { 0 } else { self.shape.iter().fold(1, |n: usize, d| n.saturating_mul(*d)) }
    }
    /// Number of bytes; `usize::MAX` where it is larger, which no checked type is.
    pub fn bytes(&self) -> usize {
        self.len().saturating_mul(self.dtype.size())
    }
    /// True when there is no element.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }
}

impl std::fmt::Display for TensorType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape.as_slice())
    }
}

/// Logical inputs (absent optional ones are `None`) and plan attributes of one call.
pub struct InferCtx<'a> {
    /// The op.
    pub op: &'a OpDef,
    /// Inputs in order; a variadic input's members one after another.
    pub inputs: &'a [Option<TensorType>],
    /// Plan attributes.
    pub attrs: &'a Attrs,
    /// Kinds of the runtime attributes (their values are out of reach).
    pub runtime_kinds: &'a [DTypeKind],
}

impl<'a> InferCtx<'a> {
    /// Input `i`, which the op's grammar says is there.
    pub fn input(&self, i: usize) -> Result<&'a TensorType> {
        self.inputs
            .get(i)
            .and_then(|t| t.as_ref())
            .ok_or_else(|| Error::argument(format!("{}: input {i} is missing", self.op.sig.name)))
    }
    /// Shape of input `i`.
    pub fn shape(&self, i: usize) -> Result<&'a [usize]> {
        Ok(&self.input(i)?.shape)
    }
    /// Whether optional input `i` was given.
    pub fn has(&self, i: usize) -> bool {
        self.inputs.get(i).is_some_and(|t| t.is_some())
    }
    /// The inputs that are there.
    pub fn present(&self) -> impl Iterator<Item = &'a TensorType> + use<'a> {
        self.inputs.iter().flatten()
    }
    fn attr(&self, name: &str) -> Result<&'a AttrValue> {
        get_attr(self.op, self.attrs, name)
    }
    /// Integer attribute.
    pub fn int(&self, name: &str) -> Result<i64> {
        as_int(name, self.attr(name)?)
    }
    /// Integer attribute that is a size.
    ///
    /// # Errors
    /// When it is negative.
    pub fn size(&self, name: &str) -> Result<usize> {
        as_size(self.int(name)?)
    }
    /// List attribute whose members are sizes.
    ///
    /// # Errors
    /// When one is negative.
    pub fn sizes(&self, name: &str) -> Result<Dims> {
        self.ints(name)?.iter().map(|n| as_size(*n)).collect()
    }
    /// Bool attribute.
    pub fn bool(&self, name: &str) -> Result<bool> {
        as_bool(name, self.attr(name)?)
    }
    /// List attribute.
    pub fn ints(&self, name: &str) -> Result<&'a [i64]> {
        as_ints(name, self.attr(name)?)
    }
    /// Element type attribute.
    pub fn dtype_attr(&self, name: &str) -> Result<DType> {
        match self.attr(name)? {
            AttrValue::DType(d) => Ok(*d),
            v => Err(wrong(name, v)),
        }
    }
    /// A dim attribute that may count from the end, for a tensor of `rank` dims.
    pub fn dim(&self, name: &str, rank: usize) -> Result<usize> {
        normalize_dim(self.int(name)?, rank)
    }
    /// A list of dims that may count from the end; empty means all. Sorted, no duplicates.
    pub fn dims(&self, name: &str, rank: usize) -> Result<SmallVec<[usize; 6]>> {
        let given = self.ints(name)?;
        if given.is_empty() {
            return Ok((0..rank).collect());
        }
        let mut dims: SmallVec<[usize; 6]> = given.iter().map(|d| normalize_dim(*d, rank)).collect::<Result<_>>()?;
        dims.sort_unstable();
        if dims.windows(2).any(|w| w[0] == w[1]) {
            return Err(Error::argument(format!("dim {given:?} names a dim twice")));
        }
        // A tensor without dims accepts dim 0 and has nothing to reduce.
        dims.truncate(rank);
        Ok(dims)
    }
}

/// The one way from an attribute to a size.
fn as_size(n: i64) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::shape(format!("a size cannot be {n}")).help("sizes are 0 or more"))
}

/// `-1` is the last dim. For rank 0, `0` and `-1` are accepted as in PyTorch.
pub fn normalize_dim(dim: i64, rank: usize) -> Result<usize> {
    let r = rank.max(1) as i64;
    if dim < -r || dim >= r {
        return Err(Error::argument(format!("dim {dim} is out of range for a tensor of {rank} dims")).help(format!(
            "dims go from {} to {}",
            -r,
            r - 1
        )));
    }
    Ok((if dim < 0 { dim + r } else { dim }) as usize)
}

/// The plan attribute of that name. Optional ones at the end may be left out of a call.
pub(crate) fn get_attr<'a>(op: &OpDef, attrs: &'a Attrs, name: &str) -> Result<&'a AttrValue> {
    const ABSENT: &AttrValue = &AttrValue::Absent;
    let optional = |i: usize| (op.sig.attrs[i].default == Some(AttrValue::Absent)).then_some(ABSENT);
    op.sig
        .attr(name)
        .and_then(|i| attrs.get(i).or_else(|| optional(i)))
        .ok_or_else(|| Error::argument(format!("{} has no plan attribute '{name}'", op.sig.name)))
}

fn wrong(name: &str, v: &AttrValue) -> Error {
    Error::argument(format!("attribute '{name}' has the wrong type: {v}"))
}

pub(crate) fn as_int(name: &str, v: &AttrValue) -> Result<i64> {
    match v {
        AttrValue::Int(i) => Ok(*i),
        AttrValue::Scalar(Scalar::Int(i)) => Ok(*i),
        v => Err(wrong(name, v)),
    }
}

pub(crate) fn as_bool(name: &str, v: &AttrValue) -> Result<bool> {
    match v {
        AttrValue::Bool(b) => Ok(*b),
        v => Err(wrong(name, v)),
    }
}

pub(crate) fn as_ints<'a>(name: &str, v: &'a AttrValue) -> Result<&'a [i64]> {
    match v {
        AttrValue::Ints(v) => Ok(v),
        v => Err(wrong(name, v)),
    }
}

/// PyTorch's broadcast of two or more shapes, aligned at the right.
pub fn broadcast_shapes<'a>(shapes: impl IntoIterator<Item = &'a [usize]> + Clone) -> Result<Dims> {
    let rank = shapes.clone().into_iter().map(|s| s.len()).max().unwrap_or(0);
    let mut out: Dims = SmallVec::from_elem(1, rank);
    for s in shapes.clone() {
        let lead = rank - s.len();
        for (d, n) in s.iter().enumerate() {
            let o = &mut out[lead + d];
            if *o == 1 {
                *o = *n;
            } else if *n != 1 && *n != *o {
                let all: Vec<String> = shapes.into_iter().map(|s| format!("{s:?}")).collect();
                return Err(Error::shape(format!(
                    "shapes {} do not broadcast: {} against {}",
                    all.join(" and "),
                    *o,
                    n
                ))
                .help("sizes must be equal or 1, aligned at the last dim"));
            }
        }
    }
    Ok(out)
}

/// What `localize` is given: where the shards of the inputs and outputs lie in their logical tensors.
pub struct LocalizeCtx<'a> {
    /// Logical side.
    pub logical: &'a InferCtx<'a>,
    /// Boxes of the inputs (absent: none).
    pub inputs: &'a [Option<ShardBox>],
    /// Boxes of the outputs.
    pub outputs: &'a [ShardBox],
}
