//! Vectors of the size of a tensor. If there is not enough memory they return an error; `vec![]` would abort the process.

use crate::error::{Error, Result};
use std::alloc::{Layout, alloc_zeroed};

fn too_large(bytes: usize) -> Error {
    Error::memory(format!("cannot allocate {bytes} bytes for values")).help("read a part, or reduce the tensor first")
}

/// That many zeros.
///
/// # Errors
/// When there is no memory for them.
pub(crate) fn zeroed(bytes: usize) -> Result<Vec<u8>> {
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let layout = Layout::array::<u8>(bytes).map_err(|_| too_large(bytes))?;
    // SAFETY: the layout is not of size 0. The system's zeros cost no writing, as with `vec![0; n]`.
    let data = unsafe { alloc_zeroed(layout) };
    if data.is_null() {
        return Err(too_large(bytes));
    }
    // SAFETY: allocated with the layout of a vector of that capacity; all bytes are initialised.
    Ok(unsafe { Vec::from_raw_parts(data, bytes, bytes) })
}

/// An empty vector with room for that many.
///
/// # Errors
/// When there is no memory for them.
pub(crate) fn with_room<T>(len: usize) -> Result<Vec<T>> {
    let mut v = Vec::new();
    match v.try_reserve_exact(len) {
        Ok(()) => Ok(v),
        Err(_) => Err(too_large(len.saturating_mul(size_of::<T>()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn too_much_is_an_error() {
        assert_eq!(zeroed(5).unwrap(), [0; 5]);
        assert!(zeroed(0).unwrap().is_empty());
        for bytes in [usize::MAX, isize::MAX as usize, 1 << 60] {
            assert_eq!(zeroed(bytes).unwrap_err().kind(), ErrorKind::Memory);
            assert_eq!(with_room::<u64>(bytes).unwrap_err().kind(), ErrorKind::Memory);
        }
        assert!(with_room::<u64>(9).unwrap().capacity() >= 9);
    }
}
