//! Tensors for the tests of kernels: any dtype, written and read as f64.

use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, Dims, Scalar, Strides, View};
use std::sync::atomic::{AtomicU64, Ordering};

/// A contiguous tensor that owns its memory.
pub(crate) struct Owned {
    // Atomic only so that views may write through a shared reference.
    memory: Vec<AtomicU64>,
    dtype: DType,
    dims: Dims,
}

impl Owned {
    pub(crate) fn zeros(dtype: DType, dims: &[usize]) -> Owned {
        let bytes = dims.iter().product::<usize>() * dtype.size();
        Owned { memory: (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect(), dtype, dims: dims.into() }
    }

    pub(crate) fn from_f64(dtype: DType, dims: &[usize], values: &[f64]) -> Owned {
        let t = Owned::zeros(dtype, dims);
        assert_eq!(values.len(), dims.iter().product::<usize>());
        let all = t.view();
        for (i, x) in values.iter().enumerate() {
            // SAFETY: element `i` of the contiguous view.
            let one = unsafe { all.restride(i as isize, Dims::new(), Strides::new()) };
            let scalar = if matches!(dtype.kind(), oflow_kernels::DTypeKind::Float | oflow_kernels::DTypeKind::Opaque) {
                Scalar::Float(*x)
            } else {
                Scalar::Int(*x as i64)
            };
            oflow_kernels::cpu::copy::fill(&one, scalar).unwrap();
        }
        t
    }

    pub(crate) fn view(&self) -> View {
        // SAFETY: the memory lives as long as `self`, is aligned to 8 bytes and initialised; tests keep `self` alive and use
        // one output at a time.
        unsafe {
            View::from_raw(
                self.memory.as_ptr() as *mut u8,
                self.dtype,
                self.dims.clone(),
                contiguous_strides(&self.dims),
            )
        }
    }

    pub(crate) fn permuted(&self, order: &[usize]) -> View {
        let strides = contiguous_strides(&self.dims);
        let dims = order.iter().map(|d| self.dims[*d]).collect();
        // SAFETY: a permutation addresses the same elements.
        unsafe { self.view().restride(0, dims, order.iter().map(|d| strides[*d]).collect()) }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let n = self.dims.iter().product::<usize>() * self.dtype.size();
        self.memory.iter().flat_map(|w| w.load(Ordering::Relaxed).to_ne_bytes()).take(n).collect()
    }
}

/// The elements of a view as f64, in row-major order.
pub(crate) fn read(v: &View) -> Vec<f64> {
    (0..v.len())
        .map(|mut i| {
            let mut offset = 0;
            for d in (0..v.rank()).rev() {
                offset += (i % v.dims()[d]) as isize * v.strides()[d];
                i /= v.dims()[d];
            }
            let p = v.ptr().wrapping_offset(offset * v.dtype().size() as isize);
            // SAFETY: `p` addresses an element of the view.
            let bytes = unsafe { std::slice::from_raw_parts(p, v.dtype().size()) };
            v.dtype().builtin().unwrap().decode(bytes).unwrap().to_f64()
        })
        .collect()
}
