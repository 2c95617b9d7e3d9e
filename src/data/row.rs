//! Rows: named fields with numbers or text.

use crate::error::{Error, Result};
use crate::functional::{IntoTarget, from_bytes};
use crate::ops::MAX_DIMS;
use crate::placement::Device;
use crate::tensor::Tensor;
use oflow_kernels::{Builtin, DType, Element};
use std::sync::Arc;

/// Numbers of one dtype with a shape, in the memory of the host: the value of a field. It needs no rank, so rows are read and changed on
/// any thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// The number of bytes of an array, which hostile files may make larger than any memory.
fn bytes_of(dtype: DType, shape: &[usize]) -> Result<usize> {
    // A batch has one more dim.
    if shape.len() >= MAX_DIMS {
        return Err(Error::shape(format!("a value of {} dims; a row's has {} at most", shape.len(), MAX_DIMS - 1)));
    }
    let size = shape.iter().try_fold(dtype.size(), |n, s| n.checked_mul(*s)).filter(|n| *n <= isize::MAX as usize);
    size.ok_or_else(|| Error::shape(format!("a value of shape {shape:?} has more bytes than can be addressed")))
}

impl Array {
    /// Makes an array from its elements, the last dim being the fastest.
    ///
    /// # Errors
    /// If the shape has another number of elements.
    pub fn new<T: Element>(values: &[T], shape: &[usize]) -> Result<Array> {
        let size = bytes_of(T::DTYPE, shape)?;
        if size != std::mem::size_of_val(values) {
            return Err(Error::shape(format!("{} values do not make an array of shape {shape:?}", values.len())));
        }
        // SAFETY: `Element` types are plain numbers (and bool) without padding; the slice covers all values.
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size).to_vec() };
        Ok(Array { dtype: T::DTYPE, shape: shape.to_vec(), bytes })
    }
    /// Makes an array of one element, of shape `[]`.
    pub fn scalar<T: Element>(value: T) -> Array {
        let size = std::mem::size_of::<T>();
        // SAFETY: as in `new`, for one value.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size).to_vec() };
        Array { dtype: T::DTYPE, shape: vec![], bytes }
    }
    /// Makes an array from the bytes of its elements, in the order of the machine.
    ///
    /// # Errors
    /// If the shape needs another number of bytes, or a byte of a `bool` is neither 0 nor 1.
    pub fn from_bytes(bytes: Vec<u8>, dtype: DType, shape: &[usize]) -> Result<Array> {
        let size = bytes_of(dtype, shape)?;
        if size != bytes.len() {
            let given = bytes.len();
            return Err(Error::shape(format!("{given} bytes do not make an array of {dtype} of shape {shape:?}"))
                .help(format!("it needs {size} bytes")));
        }
        if dtype == DType::Bool
            && let Some(bad) = bytes.iter().find(|b| **b > 1)
        {
            return Err(Error::value(format!("the byte {bad} of a bool is neither 0 nor 1")));
        }
        Ok(Array { dtype, shape: shape.to_vec(), bytes })
    }
    /// Makes an array from the elements of a tensor. For a global tensor it is a collective; every rank gets the logical value.
    ///
    /// # Errors
    /// If the tensor cannot be read.
    #[track_caller]
    pub fn of(tensor: &Tensor) -> Result<Array> {
        Array::from_bytes(tensor.to_bytes()?, tensor.dtype(), tensor.shape())
    }
    /// Returns the dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
    /// Returns the shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
    /// Returns the bytes of the elements, in the order of the machine.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// Returns the elements as values of their type.
    ///
    /// # Errors
    /// If the dtype is another.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        match self.dtype.builtin() {
            Some(b) if b.dtype() == T::DTYPE => Ok(self.decoded(b).map(T::from_scalar).collect()),
            _ => Err(Error::dtype(format!("the array has {}; {} was asked for", self.dtype, T::DTYPE))
                .help("change its dtype with `cast`")),
        }
    }
    /// Returns the elements converted to `f64`.
    ///
    /// # Errors
    /// If the dtype has no real numbers.
    pub fn to_f64_vec(&self) -> Result<Vec<f64>> {
        let real = self.dtype.builtin().filter(|b| !b.is_complex());
        let b =
            real.ok_or_else(|| Error::dtype(format!("the elements of {} cannot be read as real numbers", self.dtype)))?;
        Ok(self.decoded(b).map(f64::from_scalar).collect())
    }
    /// Returns the array with elements of another type, converted as `as` does.
    ///
    /// # Errors
    /// If the dtype is not built in.
    pub fn cast<T: Element>(&self) -> Result<Array> {
        let from = self.dtype.builtin();
        let from = from.ok_or_else(|| Error::dtype(format!("the elements of {} cannot be converted", self.dtype)))?;
        Array::new(&self.decoded(from).map(T::from_scalar).collect::<Vec<_>>(), &self.shape)
    }
    /// Returns the same elements with another shape.
    ///
    /// # Errors
    /// If the shape has another number of elements.
    pub fn reshape(self, shape: &[usize]) -> Result<Array> {
        Array::from_bytes(self.bytes, self.dtype, shape)
    }
    /// Makes a local tensor.
    ///
    /// # Errors
    /// If there is no memory or no such device.
    #[track_caller]
    pub fn to_tensor(&self, device: Device) -> Result<Tensor> {
        from_bytes(&self.bytes, &self.shape, IntoTarget::dtype(device, self.dtype))
    }
    fn decoded(&self, builtin: Builtin) -> impl Iterator<Item = oflow_kernels::Scalar> + '_ {
        self.bytes.chunks_exact(builtin.size().max(1)).filter_map(move |b| builtin.decode(b))
    }
}

/// The value of one field of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// Numbers of one dtype, with a shape.
    Array(Array),
    /// Text. Batches have numbers only: a `map` makes numbers of it first.
    Text(String),
}

impl From<Array> for Field {
    fn from(array: Array) -> Field {
        Field::Array(array)
    }
}
impl From<String> for Field {
    fn from(text: String) -> Field {
        Field::Text(text)
    }
}
impl From<&str> for Field {
    fn from(text: &str) -> Field {
        Field::Text(text.to_string())
    }
}
macro_rules! from_numbers {
    ($($t:ty)*) => {$(
        impl From<$t> for Field {
            fn from(value: $t) -> Field {
                Field::Array(Array::scalar(value))
            }
        }
    )*};
}
from_numbers!(f32 f64 i64 i32 i16 i8 u8 bool);

/// A row of a data set: fields with names, in an order. Fields without names of their own are called `0`, `1` and so on.
///
/// ```
/// use oflow::data::{Array, Row};
/// let row = Row::new().with("pixels", Array::new(&[0.5f32, 1.0], &[2])?).with("label", 3i64).with("file", "cat.png");
/// assert_eq!(row.array("pixels")?.shape(), [2]);
/// assert_eq!(row.text("file")?, "cat.png");
/// assert_eq!(row.array("size").unwrap_err().message(), "the row has no field 'size'; it has pixels, label, file");
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(Vec<(Arc<str>, Field)>);

impl Row {
    /// Makes a row without fields.
    pub fn new() -> Row {
        Row::default()
    }
    /// Makes a row of fields called `0`, `1` and so on.
    pub fn positional(fields: impl IntoIterator<Item = Field>) -> Row {
        Row(fields.into_iter().enumerate().map(|(i, f)| (i.to_string().into(), f)).collect())
    }
    /// Returns the row with a field added, or with another value for the field of that name.
    #[must_use]
    pub fn with(mut self, name: impl Into<Arc<str>>, field: impl Into<Field>) -> Row {
        self.set(name, field);
        self
    }
    /// Adds a field, or gives the field of that name another value.
    pub fn set(&mut self, name: impl Into<Arc<str>>, field: impl Into<Field>) {
        let name = name.into();
        match self.0.iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => *old = field.into(),
            None => self.0.push((name, field.into())),
        }
    }
    /// Removes a field and returns it; `None` where the row has none of that name.
    pub fn remove(&mut self, name: &str) -> Option<Field> {
        let at = self.0.iter().position(|(n, _)| **n == *name)?;
        Some(self.0.remove(at).1)
    }
    /// Returns the row with the named fields only, in the order of the names.
    ///
    /// # Errors
    /// If the row has no such field.
    pub fn select(&self, names: &[&str]) -> Result<Row> {
        names.iter().try_fold(Row::new(), |row, name| Ok(row.with(*name, self.get(name)?.clone())))
    }
    /// Returns names and fields, in their order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&str, &Field)> {
        self.0.iter().map(|(n, f)| (&**n, f))
    }
    /// Returns a field by name.
    ///
    /// # Errors
    /// If the row has no such field.
    pub fn get(&self, name: &str) -> Result<&Field> {
        self.0.iter().find(|(n, _)| **n == *name).map(|(_, f)| f).ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|(n, _)| &**n).collect();
            Error::value(format!("the row has no field '{name}'; it has {}", names.join(", ")))
        })
    }
    /// Returns the numbers of a field.
    ///
    /// # Errors
    /// If the row has no such field, or it is text.
    pub fn array(&self, name: &str) -> Result<&Array> {
        match self.get(name)? {
            Field::Array(a) => Ok(a),
            Field::Text(_) => Err(Error::value(format!("the field '{name}' is text, not numbers"))),
        }
    }
    /// Returns the text of a field.
    ///
    /// # Errors
    /// If the row has no such field, or it has numbers.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.get(name)? {
            Field::Text(t) => Ok(t),
            Field::Array(_) => Err(Error::value(format!("the field '{name}' has numbers, not text"))),
        }
    }
}
