//! Reading values. On a global tensor explicit collectives of the world: every rank must call them.

use super::shape::in_method;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::{logical_bytes, logical_bytes_on};
use crate::memory::with_room;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Element, Scalar};

fn decode<T: Element>(bytes: &[u8]) -> Result<Vec<T>> {
    let n = bytes.len() / std::mem::size_of::<T>();
    let mut out: Vec<T> = with_room(n)?;
    // SAFETY: `Element` types are plain numbers; kernels write bools as 0 or 1 only; the vector has room for n of them.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.as_mut_ptr() as *mut u8, n * std::mem::size_of::<T>());
        out.set_len(n);
    }
    Ok(out)
}

impl Tensor {
    /// The logical value, row-major. A collective of the world for a global tensor.
    ///
    /// # Errors
    /// When `T` is not the tensor's dtype.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let site = CallSite::here();
        self.check_dtype::<T>(site)?;
        self.read(site).map_err(in_method("to_vec", self, site))
    }

    /// The logical value on one rank only; the others get none, and none of its bytes. Every rank of the world must call it. The
    /// rank may be outside the tensor's placement. A local tensor's value is given where `rank` is the calling rank.
    ///
    /// # Errors
    /// When `T` is not the tensor's dtype, or the world has no such rank.
    #[track_caller]
    pub fn to_vec_on<T: Element>(&self, rank: usize) -> Result<Option<Vec<T>>> {
        let site = CallSite::here();
        self.check_dtype::<T>(site)?;
        let bytes = logical_bytes_on(self, rank, site)?;
        bytes.map(|bytes| decode(&bytes)).transpose().map_err(in_method("to_vec_on", self, site))
    }

    /// The bytes of the logical value, row-major and in the byte order of the machine, of any dtype. A collective of the world for
    /// a global tensor.
    #[track_caller]
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let site = CallSite::here();
        logical_bytes(self, site).map_err(in_method("to_bytes", self, site))
    }

    /// The logical value as f64, whatever the dtype; of a registered dtype the numbers that its declaration gives.
    ///
    /// # Errors
    /// When the dtype is complex, or registered without numbers.
    #[track_caller]
    pub fn to_f64_vec(&self) -> Result<Vec<f64>> {
        let site = CallSite::here();
        if !self.dtype().is_builtin() {
            return self.registered_numbers(site).map_err(in_method("to_f64_vec", self, site));
        }
        if self.dtype().is_complex() {
            let e = Error::dtype("cannot convert complex numbers to f64")
                .help("take `view_as_real()`, `real()` or `abs()` first");
            return Err(in_method("to_f64_vec", self, site)(e));
        }
        let t = if self.dtype() == DType::F64 { self.detach() } else { self.detach().cast(DType::F64)? };
        t.read(site).map_err(in_method("to_f64_vec", self, site))
    }

    fn registered_numbers(&self, site: CallSite) -> Result<Vec<f64>> {
        let (dtype, bytes) = (self.dtype(), logical_bytes(self, site)?);
        let number = |b: &[u8]| dtype.number(dtype.storage().decode(b)?).map(Scalar::to_f64);
        let all: Option<Vec<f64>> = bytes.chunks_exact(dtype.size()).map(number).collect();
        all.ok_or_else(|| {
            Error::dtype(format!("{dtype} was registered without numbers"))
                .help("read the stored elements with `to_bytes`, or register it with `to_f64`")
        })
    }

    fn read<T: Element>(&self, site: CallSite) -> Result<Vec<T>> {
        decode(&logical_bytes(self, site)?)
    }

    /// The value of a tensor of one element. A collective of the world for a global tensor (a P(sum) gives the sum, never
    /// this rank's part).
    ///
    /// # Errors
    /// When there is not exactly one element, or it is complex.
    #[track_caller]
    pub fn item(&self) -> Result<f64> {
        let site = CallSite::here();
        match self.item_at(site)? {
            Scalar::Complex(..) => {
                let part = self.dtype().part();
                let e = Error::dtype("cannot convert a complex number to f64")
                    .help(format!("read it with `to_vec::<Complex<{part}>>()`, or take `real()` or `abs()`"));
                Err(in_method("item", self, site)(e))
            }
            number => Ok(number.to_f64()),
        }
    }

    /// The only element, as a number of its kind.
    pub(super) fn item_at(&self, site: CallSite) -> Result<Scalar> {
        if self.numel() != 1 {
            let e = Error::shape(format!("it has {} elements", self.numel())).help("reduce it first, or use `to_vec`");
            return Err(in_method("item", self, site)(e));
        }
        self.scalar(site).map_err(in_method("item", self, site))
    }

    fn scalar(&self, site: CallSite) -> Result<Scalar> {
        if !self.dtype().is_builtin() {
            return Ok(Scalar::Float(self.registered_numbers(site)?[0]));
        }
        let bytes = logical_bytes(self, site)?;
        self.dtype().storage().decode(&bytes).ok_or_else(|| Error::shape("no element").at(site))
    }

    fn check_dtype<T: Element>(&self, site: CallSite) -> Result<()> {
        if T::DTYPE == self.dtype() {
            return Ok(());
        }
        Err(Error::dtype(format!("{self:?} cannot be read as {}", T::DTYPE))
            .at(site)
            .help("convert it with `.cast(dtype)`, or use `to_f64_vec`"))
    }
}
