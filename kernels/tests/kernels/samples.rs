//! Tensors for tests: any dtype, random values, random strides with gaps that must stay untouched.

use oflow_base::Random;
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, Dims, Element, Scalar, Strides, View, Visitor};

/// Memory with a strided window onto it.
pub(crate) struct Tensor {
    memory: Vec<u64>,
    used: Vec<bool>,
    start: usize,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
    strides: Vec<isize>,
}

const GAP: u64 = 0x5b5b_5b5b_5b5b_5b5b;

impl Tensor {
    /// Row-major, random values: floats in -1..1, integers in -7..=7 (0..=14 where there is no sign).
    pub(crate) fn contiguous(rng: &mut Random, dtype: DType, dims: &[usize]) -> Self {
        Self::with_strides(rng, dtype, dims, contiguous_strides(dims).to_vec())
    }

    /// Random order of dims in memory, random gaps, sometimes a dim that runs backwards, sometimes contiguous.
    pub(crate) fn random(rng: &mut Random, dtype: DType, dims: &[usize]) -> Self {
        if rng.below(3) == 0 {
            return Self::contiguous(rng, dtype, dims);
        }
        let mut order: Vec<usize> = (0..dims.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, rng.below(i + 1));
        }
        let mut strides = vec![0; dims.len()];
        let mut step = 1 + (rng.below(4) == 0) as isize;
        for d in order {
            strides[d] = if rng.below(6) == 0 { -step } else { step };
            step *= dims[d].max(1) as isize;
            step += rng.below(3) as isize;
        }
        Self::with_strides(rng, dtype, dims, strides)
    }

    /// Contiguous but for dim `d`, which repeats one element. Not for outputs.
    pub(crate) fn expanded(rng: &mut Random, dtype: DType, dims: &[usize], d: usize) -> Self {
        let mut strides = contiguous_strides(dims).to_vec();
        strides[d] = 0;
        Self::with_strides(rng, dtype, dims, strides)
    }

    fn with_strides(rng: &mut Random, dtype: DType, dims: &[usize], strides: Vec<isize>) -> Self {
        let reach = |s: isize, d: usize| s * dims[d].saturating_sub(1) as isize;
        let low: isize = (0..dims.len()).map(|d| reach(strides[d], d).min(0)).sum();
        let high: isize = (0..dims.len()).map(|d| reach(strides[d], d).max(0)).sum();
        let elements = (high - low) as usize + 1;
        let mut tensor = Tensor {
            memory: vec![GAP; (elements * dtype.size()).div_ceil(8)],
            used: vec![false; elements],
            start: -low as usize,
            dtype,
            dims: dims.to_vec(),
            strides,
        };
        for i in 0..tensor.len() {
            let value = match dtype {
                d if d.is_float() => Scalar::Float(rng.signed()),
                DType::Bool => Scalar::Bool(rng.below(2) == 1),
                DType::U8 => Scalar::Int(rng.below(15) as i64),
                _ => Scalar::Int(rng.below(15) as i64 - 7),
            };
            tensor.set(i, value);
        }
        tensor
    }

    /// Contiguous, of these values.
    pub(crate) fn of(dtype: DType, dims: &[usize], values: &[f64]) -> Self {
        let mut tensor = Self::contiguous(&mut Random::new(0), dtype, dims);
        assert_eq!(values.len(), tensor.len());
        values.iter().enumerate().for_each(|(i, x)| tensor.set(i, Scalar::Float(*x)));
        tensor
    }

    pub(crate) fn len(&self) -> usize {
        self.dims.iter().product()
    }

    fn offset(&self, at: &[usize]) -> usize {
        let moved: isize = at.iter().zip(&self.strides).map(|(i, s)| *i as isize * s).sum();
        (self.start as isize + moved) as usize
    }

    fn position(&self, mut index: usize) -> Vec<usize> {
        let mut at = vec![0; self.dims.len()];
        for d in (0..self.dims.len()).rev() {
            at[d] = index % self.dims[d];
            index /= self.dims[d];
        }
        at
    }

    /// Sets element `index` in row-major order.
    pub(crate) fn set(&mut self, index: usize, value: Scalar) {
        let offset = self.offset(&self.position(index));
        self.used[offset] = true;
        struct Put(*mut u64, usize, Scalar);
        impl Visitor for Put {
            type Out = ();
            fn visit<T: Element>(self) {
                // SAFETY: the offset is inside the memory, by the construction of the tensor.
                unsafe { *(self.0 as *mut T).add(self.1) = T::from_scalar(self.2) };
            }
        }
        self.dtype.cast().unwrap().visit(Put(self.memory.as_mut_ptr(), offset, value));
    }

    /// The element at a position.
    pub(crate) fn get(&self, at: &[usize]) -> f64 {
        let offset = self.offset(at);
        struct Pick(*const u64, usize);
        impl Visitor for Pick {
            type Out = f64;
            fn visit<T: Element>(self) -> f64 {
                // SAFETY: the offset is inside the memory, by the construction of the tensor. Volatile, because kernels write
                // through the pointers that `view` hands out.
                unsafe { std::ptr::read_volatile((self.0 as *const T).add(self.1)).to_scalar().to_f64() }
            }
        }
        self.dtype.cast().unwrap().visit(Pick(self.memory.as_ptr(), offset))
    }

    /// All elements in row-major order.
    pub(crate) fn values(&self) -> Vec<f64> {
        (0..self.len()).map(|i| self.get(&self.position(i))).collect()
    }

    /// Where the first element lies in the memory, in bytes.
    pub(crate) fn start(&self) -> usize {
        self.start * self.dtype.size()
    }

    /// The whole memory, for comparing bits.
    pub(crate) fn bytes(&self) -> Vec<u64> {
        self.memory.clone()
    }

    /// True while no memory beside the elements was written.
    pub(crate) fn gaps_untouched(&self) -> bool {
        let size = self.dtype.size();
        let bytes: Vec<u8> = self.memory.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let gap = GAP as u8;
        bytes
            .chunks(size)
            .enumerate()
            .all(|(i, b)| self.used.get(i).copied().unwrap_or(false) || b.iter().all(|x| *x == gap))
    }

    /// A view of everything, to be read or written.
    pub(crate) fn view(&self) -> View {
        let ptr = (self.memory.as_ptr() as *mut u8).wrapping_add(self.start * self.dtype.size());
        // SAFETY: dims and strides stay inside the memory; tests keep the tensor alive and use no view after moving it.
        unsafe { View::from_raw(ptr, self.dtype, Dims::from(&self.dims[..]), Strides::from(&self.strides[..])) }
    }

    /// A view of the transposed matrix.
    pub(crate) fn transposed(&self) -> View {
        let view = self.view();
        let rank = self.dims.len();
        let (mut dims, mut strides) = (Dims::from(view.dims()), Strides::from(view.strides()));
        dims.swap(rank - 1, rank - 2);
        strides.swap(rank - 1, rank - 2);
        // SAFETY: the same elements.
        unsafe { view.restride(0, dims, strides) }
    }

    /// The same values, contiguous, with other dims.
    pub(crate) fn reshaped(&self, dims: &[usize]) -> Tensor {
        Tensor::of(self.dtype, dims, &self.values())
    }

    /// The same values, contiguous, in f64.
    pub(crate) fn exact(&self) -> Tensor {
        Tensor::of(DType::F64, &self.dims, &self.values())
    }

    /// Fails unless all values are within `relative * (1 + |expected|)` of those expected and the gaps are untouched.
    /// NaN and infinities must be met exactly.
    #[track_caller]
    pub(crate) fn expect(&self, expected: &[f64], relative: f64, what: &str) {
        assert_eq!(self.len(), expected.len(), "{what}");
        for (i, (got, want)) in self.values().into_iter().zip(expected).enumerate() {
            let close = (got - want).abs() <= relative * (1.0 + want.abs());
            let same = got == *want || got.is_nan() && want.is_nan();
            assert!(close || same, "{what} {} {:?} [{i}]: {got}, expected {want}", self.dtype, self.dims);
        }
        assert!(self.gaps_untouched(), "{what} wrote beside its output");
    }
}

/// Bound on the relative error of a kernel that rounds a few times.
pub(crate) fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-12,
        DType::F32 => 4e-6,
        DType::F16 => 2e-3,
        DType::BF16 => 1.6e-2,
        _ => 0.0,
    }
}

/// The float dtypes.
pub(crate) const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// The gradient of `f` at `x` by central differences.
pub(crate) fn differences(x: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut x = x.to_vec();
    let step = 1e-5;
    (0..x.len())
        .map(|i| {
            let middle = x[i];
            x[i] = middle + step;
            let above = f(&x);
            x[i] = middle - step;
            let below = f(&x);
            x[i] = middle;
            (above - below) / (2.0 * step)
        })
        .collect()
}

/// Sum of products: turns an output into one number whose gradient is `weights`.
pub(crate) fn inner(weights: &[f64], values: &[f64]) -> f64 {
    weights.iter().zip(values).map(|(w, v)| w * v).sum()
}

/// Runs `f` on pools of one to three threads and fails unless the bits it returns are the same.
#[track_caller]
pub(crate) fn same_bits_on_any_threads(f: impl Fn() -> Vec<u64> + Sync) {
    let alone = crate::threads::with_threads(1, &f);
    for threads in [2, 3] {
        assert!(crate::threads::with_threads(threads, &f) == alone, "bits differ on {threads} threads");
    }
}

/// The dtype of the statistics that a kernel keeps of a float tensor.
pub(crate) fn statistic(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}
