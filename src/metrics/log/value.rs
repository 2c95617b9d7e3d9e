//! Values that can be logged, and values that wait for a flush.

use crate::context::{inner_calls, no_grad};
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use oflow_kernels::DType;

/// Values that [`log`](super::log) takes: tensors with one element, and plain numbers.
pub trait LogValue {
    /// Returns the value as it is given to the log.
    fn logged(&self) -> Logged<'_>;
}

/// A value as it is given to a log.
pub enum Logged<'a> {
    /// A plain number, which is this rank's.
    Number(f64),
    /// A tensor with one element.
    Tensor(&'a Tensor),
}

impl LogValue for Tensor {
    fn logged(&self) -> Logged<'_> {
        Logged::Tensor(self)
    }
}

macro_rules! numbers {
    ($($ty:ty)*) => {$(
        impl LogValue for $ty {
            fn logged(&self) -> Logged<'_> {
                Logged::Number(*self as f64)
            }
        }
    )*};
}
numbers! { f64 f32 i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

impl LogValue for bool {
    fn logged(&self) -> Logged<'_> {
        Logged::Number(f64::from(u8::from(*self)))
    }
}

/// A value that waits for the next flush.
pub(super) enum Kept {
    Number(f64),
    /// A copy of this rank's.
    Local(Tensor),
    Global(Tensor),
}

impl Kept {
    /// Keeps the value that a tensor has now.
    pub fn of(t: &Tensor) -> Result<Kept> {
        if t.is_global() {
            // A later write in place goes to other memory (I15).
            return Ok(Kept::Global(t.detach()));
        }
        // Writes to a local tensor are seen by all of its views, and those of other libraries are not even counted.
        let (_inner, _no_grad) = (inner_calls(), no_grad());
        t.detach().copy().map(Kept::Local)
    }
}

/// Refuses names that a file cannot have, or that are taken by its columns.
pub(super) fn check_name(name: &str) -> Result<()> {
    let why = match name {
        "" => "is empty",
        "step" | "time" => "is the name of a column that every log has",
        _ if name.len() > LONGEST_NAME => "is longer than 200 bytes",
        _ if name.chars().any(char::is_control) => "has a control character, such as the end of a line",
        _ => return Ok(()),
    };
    let shown: String = name.chars().take(40).collect();
    Err(Error::argument(format!("a metric cannot be logged as {shown:?}: the name {why}")).help("give it another name"))
}

const LONGEST_NAME: usize = 200;

/// Refuses tensors that are no single real number.
pub(super) fn check_tensor(name: &str, t: &Tensor) -> Result<()> {
    if t.numel() != 1 {
        return Err(Error::shape(format!("{name:?} is {}: a log takes one number for each name", t.short()))
            .help("reduce it first: `.mean(())`, `.sum(())` or `.norm()`"));
    }
    if t.dtype().is_complex() {
        return Err(Error::dtype(format!("{name:?} is {}: a log takes real numbers", t.short()))
            .help("log `abs()`, or `real()` and `imag()` under two names"));
    }
    if !t.dtype().is_builtin() {
        return Err(Error::dtype(format!("{name:?} is {}: a log takes built-in dtypes", t.short()))
            .help("convert it with `.cast(DType::F32)`"));
    }
    if t.is_symbol() {
        return Err(Error::unsupported(format!("{name:?} has no value while its graph is captured"))
            .help("return it from the closure and log what `run` gives"));
    }
    t.check_origin()
}

/// The numbers of local tensors with one element. Those of a device are read together.
pub(super) fn read(tensors: &[&Tensor]) -> Result<Vec<f64>> {
    let (_inner, _no_grad) = (inner_calls(), no_grad());
    let mut devices = Vec::new();
    for t in tensors {
        if !devices.contains(&t.device()) {
            devices.push(t.device());
        }
    }
    let mut all = vec![f64::NAN; tensors.len()];
    for device in devices {
        let here: Vec<usize> = (0..tensors.len()).filter(|i| tensors[*i].device() == device).collect();
        let parts = here.iter().map(|i| tensors[*i].cast(DType::F64)?.reshape([1])).collect::<Result<Vec<_>>>()?;
        let numbers = crate::functional::cat(&parts, 0)?.to_vec::<f64>()?;
        here.iter().zip(numbers).for_each(|(i, n)| all[*i] = n);
    }
    Ok(all)
}
