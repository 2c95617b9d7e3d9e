//! Arguments of routines: matrices, numbers and workspaces in memory of the GPU, checked when a routine is called.

use std::ffi::c_int;

use super::dense::{Matrix, Number};
use crate::driver::memory::{MemoryKind, place};

pub const INVALID_VALUE: i32 = 3;

/// Bytes that each routine asks for, on the device and on the host.
pub const WORKSPACE: usize = 4096;
pub const HOST_WORKSPACE: usize = 64;

pub type Outcome<T = ()> = Result<T, i32>;

/// The elements of a matrix, by the code of their cudaDataType.
#[derive(Clone, Copy, PartialEq)]
pub struct Type {
    pub complex: bool,
    pub double: bool,
}

impl Type {
    pub fn of(code: c_int) -> Outcome<Type> {
        match code {
            0 | 1 | 4 | 5 => Ok(Type { complex: code >= 4, double: code & 1 == 1 }),
            _ => Err(INVALID_VALUE),
        }
    }
    pub fn real(self) -> Type {
        Type { complex: false, ..self }
    }
    pub fn size(self) -> usize {
        (if self.double { 8 } else { 4 }) << usize::from(self.complex)
    }
    /// # Safety
    /// The address is one of an element that can be read.
    unsafe fn load(self, at: usize) -> Number {
        // SAFETY: by contract.
        unsafe {
            let part = |k: usize| match self.double {
                true => *(at as *const f64).add(k),
                false => f64::from(*(at as *const f32).add(k)),
            };
            Number::new(part(0), if self.complex { part(1) } else { 0.0 })
        }
    }
    /// # Safety
    /// The address is one of an element that can be written.
    unsafe fn store(self, at: usize, x: Number) {
        // SAFETY: by contract.
        unsafe {
            for (k, part) in [x.re, x.im].into_iter().enumerate().take(1 + usize::from(self.complex)) {
                match self.double {
                    true => *(at as *mut f64).add(k) = part,
                    false => *(at as *mut f32).add(k) = part as f32,
                }
            }
        }
    }
}

/// A matrix of the GPU, by columns.
#[derive(Clone, Copy)]
pub struct Place {
    pub of: Type,
    pub rows: usize,
    pub columns: usize,
    ld: usize,
    at: usize,
}

impl Place {
    /// An error unless it lies in live memory.
    pub fn new(what: &str, of: Type, rows: i64, columns: i64, ld: i64, at: usize) -> Outcome<Place> {
        let sizes = [rows, columns, ld].map(usize::try_from);
        let [Ok(rows), Ok(columns), Ok(ld)] = sizes else { return Err(INVALID_VALUE) };
        let bytes = if rows == 0 || columns == 0 { 0 } else { (ld * (columns - 1) + rows) * of.size() };
        let inside = bytes == 0 || place(at, bytes) == Ok(MemoryKind::Device);
        if ld < rows.max(1) || !inside || !at.is_multiple_of(of.size()) {
            eprintln!(
                "emulated cuSOLVER: {what} [{rows}, {columns}] at {at:#x} is not aligned or not all in one allocation"
            );
            return Err(INVALID_VALUE);
        }
        Ok(Place { of, rows, columns, ld, at })
    }
    fn element(&self, r: usize, c: usize) -> usize {
        self.at + (c * self.ld + r) * self.of.size()
    }
    /// # Safety
    /// The memory is open, and nobody writes to it.
    pub unsafe fn read(&self) -> Matrix {
        let mut m = Matrix::zeros(self.rows, self.columns);
        for c in 0..self.columns {
            // SAFETY: an element of the matrix, which `new` has checked.
            (0..self.rows).for_each(|r| m.set(r, c, unsafe { self.of.load(self.element(r, c)) }));
        }
        m
    }
    /// # Safety
    /// The memory is open, and nobody else uses it.
    pub unsafe fn write(&self, m: &Matrix) {
        for c in 0..self.columns {
            // SAFETY: as in `read`.
            (0..self.rows).for_each(|r| unsafe { self.of.store(self.element(r, c), m.at(r, c)) });
        }
    }
}

/// Numbers of the GPU one after the other, as a matrix of one column.
pub fn numbers(what: &str, of: Type, count: usize, at: usize) -> Outcome<Place> {
    Place::new(what, of, count as i64, 1, count.max(1) as i64, at)
}

pub fn column(values: Vec<Number>) -> Matrix {
    Matrix { rows: values.len(), columns: 1, data: values }
}

pub fn integers(what: &str, count: usize, size: usize, at: usize) -> Outcome<usize> {
    let inside = count == 0 || place(at, count * size) == Ok(MemoryKind::Device);
    if inside && at.is_multiple_of(size) {
        return Ok(at);
    }
    eprintln!("emulated cuSOLVER: {what} at {at:#x} is not aligned or not all in one allocation");
    Err(INVALID_VALUE)
}

/// A workspace, which is written as real routines do, so that two streams that share one show.
#[derive(Clone, Copy)]
pub struct Workspace(pub usize, pub usize);

impl Workspace {
    pub fn new(device: usize, bytes: usize, host: *mut u8, host_bytes: usize) -> Outcome<Workspace> {
        if bytes < WORKSPACE
            || place(device, bytes) != Ok(MemoryKind::Device)
            || host_bytes < HOST_WORKSPACE
            || host.is_null()
        {
            eprintln!("emulated cuSOLVER: the workspaces are too small or not there");
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller's memory of so many bytes.
        unsafe { host.write_bytes(0xCD, host_bytes) };
        Ok(Workspace(device, bytes))
    }
}
