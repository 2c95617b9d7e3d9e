//! Arguments of the pure rules of an op: logical inputs and plan attributes, never a rank's own coordinate and never a
//! runtime attribute's value.

use super::attr::{AttrValue, Attrs};
use super::def::OpDef;
use super::named::{AttrsOf, Which, attrs_by_name, inputs_of};
use crate::error::{Error, Result};
use oflow_kernels::{DType, DTypeKind, Dims, ShardBox};
use smallvec::SmallVec;

/// Shape and dtype of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Size of each dim.
    pub shape: Dims,
    /// Element type of the tensor.
    pub dtype: DType,
}

/// The most dims of a tensor: as many as NumPy's arrays and PyTorch's reductions take.
pub const MAX_DIMS: usize = 64;

impl TensorType {
    /// A description from parts, of a tensor that exists or of sizes that were checked.
    pub fn new(shape: &[usize], dtype: DType) -> TensorType {
        TensorType { shape: shape.into(), dtype }
    }
    /// The type, if a tensor of it can be addressed. Every output of an op and every shape that a caller gives passes here,
    /// so sizes, strides and byte offsets of a tensor never wrap.
    ///
    /// # Errors
    /// When there are more than [`MAX_DIMS`] dims, or when the product of the sizes (0 counts as 1, as in the strides) has more bytes
    /// than `isize::MAX`.
    pub fn checked(shape: &[usize], dtype: DType) -> Result<TensorType> {
        if shape.len() > MAX_DIMS {
            return Err(Error::shape(format!("expected at most {MAX_DIMS} dims, not {}", shape.len())));
        }
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
    /// The op that is called.
    pub op: &'a OpDef,
    /// Inputs in order; a variadic input's members one after another.
    pub inputs: &'a [Option<TensorType>],
    /// Plan attributes of the call.
    pub attrs: &'a Attrs,
    /// Kinds of the runtime attributes (their values are out of reach).
    pub runtime_kinds: &'a [DTypeKind],
}

impl<'a> InferCtx<'a> {
    /// Input `i`, by position or name, which the op's grammar says is there.
    ///
    /// # Errors
    /// The call has no such input.
    pub fn input(&self, i: impl Which) -> Result<&'a TensorType> {
        let i = i.input_of(self.op)?;
        self.inputs
            .get(i)
            .and_then(|t| t.as_ref())
            .ok_or_else(|| Error::argument(format!("{}: input {i} is missing", self.op.sig.name)))
    }
    /// Shape of input `i`, by position or name.
    ///
    /// # Errors
    /// As [`InferCtx::input`].
    pub fn shape(&self, i: impl Which) -> Result<&'a [usize]> {
        Ok(&self.input(i)?.shape)
    }
    /// Whether optional input `i`, by position or name, was given.
    pub fn has(&self, i: impl Which) -> bool {
        i.input_of(self.op).is_ok_and(|i| self.inputs.get(i).is_some_and(|t| t.is_some()))
    }
    /// The tensors that an input stands for: one, or those of a variadic input.
    ///
    /// # Errors
    /// The op has no input of that name.
    pub fn inputs_of(&self, name: &str) -> Result<impl Iterator<Item = &'a TensorType> + use<'a>> {
        let inputs = self.inputs;
        Ok(inputs_of(self.op, name, inputs.len())?.filter_map(move |i| inputs[i].as_ref()))
    }
    /// The inputs that are there.
    pub fn present(&self) -> impl Iterator<Item = &'a TensorType> + Clone + use<'a> {
        self.inputs.iter().flatten()
    }
    fn named(&self) -> AttrsOf<'a> {
        AttrsOf { op: self.op, attrs: self.attrs, runtime: None }
    }
    attrs_by_name!(self, self.named(), 'a);
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
pub(crate) fn get_attr<'a>(op: &'a OpDef, attrs: &'a Attrs, name: &str) -> Result<&'a AttrValue> {
    AttrsOf { op, attrs, runtime: None }.attr(name)
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

/// Arguments of `localize`: where the shards of the inputs and outputs lie in their logical tensors.
pub struct LocalizeCtx<'a> {
    /// Logical types and attributes of the call.
    pub logical: &'a InferCtx<'a>,
    /// Boxes of the inputs (absent: none).
    pub inputs: &'a [Option<ShardBox>],
    /// Boxes of the outputs.
    pub outputs: &'a [ShardBox],
}

impl<'a> LocalizeCtx<'a> {
    attrs_by_name!(self, self.logical.named(), 'a);

    /// The plan attributes with one of them changed.
    ///
    /// # Errors
    /// The op has no such attribute, or the value has another type.
    pub fn with(&self, name: &str, value: impl Into<AttrValue>) -> Result<Attrs> {
        self.attr(name)?;
        let sig = &self.logical.op.sig;
        let mut attrs = self.logical.attrs.clone();
        if let Some(at) = sig.attr(name) {
            let value = sig.attrs[at].accept(value.into())?;
            // Optional attributes at the end may have been left out.
            while attrs.len() <= at {
                attrs.push(AttrValue::Absent);
            }
            attrs[at] = value;
        }
        Ok(attrs)
    }
}
