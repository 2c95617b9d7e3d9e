//! Reading what a library gives: structs of any minor version, texts, lists. Every pointer is checked as far as a pointer can be.

use crate::error::{Error, Result};
use oflow_op::abi::*;
use std::mem::MaybeUninit;

/// A text that is longer is taken for a wrong pointer.
const LONGEST_TEXT: usize = 1 << 20;
/// A list that is longer is taken for a wrong pointer.
const LONGEST_LIST: usize = 1 << 16;

/// A struct of the interface: it starts with a head, and zeros are a value of each field.
///
/// # Safety
/// That is so.
pub(super) unsafe trait Struct: Copy {}
// SAFETY: integers, pointers, optional functions, and structs of these, behind a head.
unsafe impl Struct for oflow_library {}
// SAFETY: as above.
unsafe impl Struct for oflow_op_def {}
// SAFETY: as above.
unsafe impl Struct for oflow_kernel {}
// SAFETY: as above.
unsafe impl Struct for oflow_function_def {}
// SAFETY: as above.
unsafe impl Struct for oflow_function_call {}
// SAFETY: as above.
unsafe impl Struct for oflow_arg {}
// SAFETY: as above.
unsafe impl Struct for oflow_attr {}
// SAFETY: as above.
unsafe impl Struct for oflow_returned {}
// SAFETY: as above.
unsafe impl Struct for oflow_tensor_info {}
// SAFETY: as above.
unsafe impl Struct for oflow_type {}
// SAFETY: as above.
unsafe impl Struct for oflow_view {}
// SAFETY: as above.
unsafe impl Struct for oflow_launch {}

/// Reads a struct. Fields that it ends before are zero.
///
/// # Safety
/// `at` is null, or a struct of a library lies there.
///
/// # Errors
/// It is null, misaligned, too small to be one, or of another major version.
pub(super) unsafe fn read<T: Struct>(at: *const T, what: &str) -> Result<T> {
    let bad = |why: String| Err(Error::registry(format!("{what} {why}")));
    if at.is_null() {
        return bad("is a null pointer".into());
    }
    if !at.cast::<oflow_head>().is_aligned() {
        return bad("is not aligned".into());
    }
    // SAFETY: a struct of the interface starts with a head, by this function's contract.
    let head = unsafe { at.cast::<oflow_head>().read() };
    if head.major != OFLOW_OP_MAJOR {
        let (theirs, ours) = (head.major, OFLOW_OP_MAJOR);
        return Err(Error::registry(format!(
            "{what} is of version {theirs} of the interface for ops, this oflow has {ours}"
        ))
        .help("build the library with the oflow_op.h, or the crate oflow-op, of this oflow"));
    }
    let size = head.size as usize;
    // Fields are not cut in two: half an address would be called. All structs end at a multiple of their alignment.
    if size < size_of::<oflow_head>() || !size.is_multiple_of(align_of::<T>()) {
        return bad(format!("says that it has {size} bytes"));
    }
    let mut found = MaybeUninit::<T>::zeroed();
    // SAFETY: so many bytes lie there, as its maker says, and fit in; zeros and what a maker writes are values of the fields.
    Ok(unsafe {
        std::ptr::copy_nonoverlapping(at.cast::<u8>(), found.as_mut_ptr().cast(), size.min(size_of::<T>()));
        found.assume_init()
    })
}

/// Reads a text.
///
/// # Safety
/// It is a text of a library, which lives as long as the process.
///
/// # Errors
/// It is no UTF-8, or too long to be a text.
pub(super) unsafe fn text(s: oflow_str, what: &str) -> Result<&'static str> {
    if s.len == 0 {
        return Ok("");
    }
    if s.data.is_null() || s.len > LONGEST_TEXT {
        return Err(Error::registry(format!("{what} is not a text: {} bytes at {:p}", s.len, s.data)));
    }
    // SAFETY: by this function's contract.
    let bytes = unsafe { std::slice::from_raw_parts(s.data, s.len) };
    std::str::from_utf8(bytes).map_err(|e| Error::registry(format!("{what} is not UTF-8: {e}")))
}

/// Reads a list.
///
/// # Safety
/// It is a list of a library, which lives as long as the process.
///
/// # Errors
/// It is too long to be one, null or misaligned.
pub(super) unsafe fn list<T>(at: *const T, count: usize, what: &str) -> Result<&'static [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if at.is_null() || !at.is_aligned() || count > LONGEST_LIST {
        return Err(Error::registry(format!("{what} is not a list: {count} members at {at:p}")));
    }
    // SAFETY: by this function's contract.
    Ok(unsafe { std::slice::from_raw_parts(at, count) })
}

/// Reads a list of texts.
///
/// # Safety
/// As [`list`] and [`text`].
///
/// # Errors
/// As [`list`] and [`text`].
pub(super) unsafe fn texts(s: oflow_strs, what: &str) -> Result<Vec<String>> {
    // SAFETY: by this function's contract.
    unsafe { list(s.data, s.count, what)?.iter().map(|t| text(*t, what).map(str::to_string)).collect() }
}
