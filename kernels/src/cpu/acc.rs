//! The type a kernel computes in: f32 for f32 and the halves, f64 for f64; and the moves from and to stored elements.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::vmath::Real;
use crate::{DType, Element, KernelError, Result, View};

/// `dst = dst * alpha + lhs * rhs * beta`, with sizes `m, n, k` and for each matrix its column stride before its row stride; then
/// whether `dst` is read, and after `alpha` and `beta` three flags that mean nothing for real numbers.
pub(crate) type Gemm<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    gemm_common::Parallelism,
);

/// Type that kernels accumulate in.
pub(crate) trait Acc: Real + Element {
    /// The product kernel of the CPU, of the dtype's own crate: `gemm` itself would bring the kernels of complex numbers too.
    fn gemm() -> Gemm<Self>;
    /// `self * x + y` with one rounding. Only for code compiled for a CPU that has the instruction.
    fn fused(self, x: Self, y: Self) -> Self;
    /// `exp(self)` where the result is a weight of at most about one: below exp(-86) an f32 becomes zero. `fma` says that the
    /// code is compiled for a CPU that has fused multiply-add, which then makes this much quicker than `exp`.
    fn exp_weight(self, fma: bool) -> Self;
    /// Widens f16.
    fn from_f16(src: &[f16], dst: &mut [Self]);
    /// Widens bf16.
    fn from_bf16(src: &[bf16], dst: &mut [Self]);
    /// Rounds to f16.
    fn to_f16(src: &[Self], dst: &mut [f16]);
    /// Rounds to bf16.
    fn to_bf16(src: &[Self], dst: &mut [bf16]);
}

/// Neither an infinity nor NaN.
#[inline(always)]
pub(crate) fn finite<A: Acc>(x: A) -> bool {
    x * A::ZERO == A::ZERO
}

impl Acc for f32 {
    fn gemm() -> Gemm<f32> {
        gemm_f32::gemm::f32::get_gemm_fn()
    }
    #[inline(always)]
    fn fused(self, x: f32, y: f32) -> f32 {
        self.mul_add(x, y)
    }
    #[inline(always)]
    fn exp_weight(self, fma: bool) -> f32 {
        if !fma {
            return Real::exp(self);
        }
        // exp(x) = 2^n exp(r) with r = x - n ln 2, and exp(r) = 1 + r + r² p(r). Adding 1.5 * 2^23 rounds to an integer and
        // leaves it in the low bits; ln 2 is subtracted in two parts, of which the first times n is exact.
        const MAGIC: f32 = 12_582_912.0;
        let shifted = self.fused(std::f32::consts::LOG2_E, MAGIC);
        let n = shifted - MAGIC;
        let r = n.fused(-0.000_276_086_82, n.fused(-0.692_871_1, self));
        let p = r.fused(0.000_198_919_8, 0.001_393_454_1);
        let p = r.fused(p, 0.008_333_310_5);
        let p = r.fused(p, 0.041_666_456);
        let p = r.fused(p, 0.166_666_67);
        let p = r.fused(p, 0.5);
        let y = (r * r).fused(p, r) + 1.0;
        // Multiplied, not added to the exponent bits, so that NaN stays NaN.
        let power = f32::from_bits(shifted.to_bits().wrapping_sub(MAGIC.to_bits()).wrapping_add(127) << 23);
        if self < -86.0 { 0.0 } else { y * power }
    }
    fn from_f16(src: &[f16], dst: &mut [f32]) {
        src.convert_to_f32_slice(dst);
    }
    fn from_bf16(src: &[bf16], dst: &mut [f32]) {
        src.convert_to_f32_slice(dst);
    }
    fn to_f16(src: &[f32], dst: &mut [f16]) {
        dst.convert_from_f32_slice(src);
    }
    fn to_bf16(src: &[f32], dst: &mut [bf16]) {
        dst.convert_from_f32_slice(src);
    }
}

impl Acc for f64 {
    fn gemm() -> Gemm<f64> {
        gemm_f64::gemm::f64::get_gemm_fn()
    }
    #[inline(always)]
    fn fused(self, x: f64, y: f64) -> f64 {
        self.mul_add(x, y)
    }
    #[inline(always)]
    fn exp_weight(self, _fma: bool) -> f64 {
        Real::exp(self)
    }
    fn from_f16(src: &[f16], dst: &mut [f64]) {
        src.convert_to_f64_slice(dst);
    }
    fn from_bf16(src: &[bf16], dst: &mut [f64]) {
        src.convert_to_f64_slice(dst);
    }
    fn to_f16(src: &[f64], dst: &mut [f16]) {
        dst.convert_from_f64_slice(src);
    }
    fn to_bf16(src: &[f64], dst: &mut [bf16]) {
        dst.convert_from_f64_slice(src);
    }
}

/// The dtype kernels compute in for tensors of a float dtype.
pub(crate) fn acc_dtype(dtype: DType) -> Result<DType> {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Ok(DType::F32),
        DType::F64 => Ok(DType::F64),
        _ => Err(KernelError::new(format!("needs a float dtype, not {dtype}"))),
    }
}

/// Calls `$f::<f32>` or `$f::<f64>`, whichever a float dtype is computed in.
macro_rules! with_acc {
    ($dtype:expr, $f:ident ( $($arg:expr),* $(,)? )) => {
        match $crate::cpu::acc::acc_dtype($dtype)? {
            $crate::DType::F64 => $f::<f64>($($arg),*),
            _ => $f::<f32>($($arg),*),
        }
    };
}
pub(crate) use with_acc;

/// How many halves are gathered before they are converted together.
const BLOCK: usize = 64;

/// Reads `dst.len()` elements of a float dtype, `stride` elements apart, and widens them.
///
/// # Safety
/// The elements exist, have this dtype and nobody writes them.
pub(crate) unsafe fn load<A: Acc>(dtype: DType, ptr: *const u8, stride: isize, dst: &mut [A]) {
    match dtype {
        // SAFETY (all arms): the caller's promise, for the element type that the dtype names.
        DType::F32 => unsafe { gather(ptr as *const f32, stride, dst, |x| A::from_f64(x as f64)) },
        DType::F64 => unsafe { gather(ptr as *const f64, stride, dst, A::from_f64) },
        DType::F16 => unsafe { gather_half(ptr as *const f16, stride, dst, A::from_f16) },
        DType::BF16 => unsafe { gather_half(ptr as *const bf16, stride, dst, A::from_bf16) },
        _ => unreachable!("callers check that the dtype is a float"),
    }
}

/// Rounds `src` to a float dtype and writes it, `stride` elements apart.
///
/// # Safety
/// The elements exist, have this dtype and nobody else touches them.
pub(crate) unsafe fn store<A: Acc>(dtype: DType, ptr: *mut u8, stride: isize, src: &[A]) {
    match dtype {
        // SAFETY (all arms): the caller's promise, for the element type that the dtype names.
        DType::F32 => unsafe { scatter(ptr as *mut f32, stride, src, |x| x.to_f64() as f32) },
        DType::F64 => unsafe { scatter(ptr as *mut f64, stride, src, A::to_f64) },
        DType::F16 => unsafe { scatter_half(ptr as *mut f16, stride, src, A::to_f16) },
        DType::BF16 => unsafe { scatter_half(ptr as *mut bf16, stride, src, A::to_bf16) },
        _ => unreachable!("callers check that the dtype is a float"),
    }
}

/// The numbers of a contiguous view of a float dtype, or as many absent ones.
pub(crate) fn numbers<A: Acc>(v: Option<&View>, n: usize, absent: A) -> Vec<A> {
    let mut all = vec![absent; n];
    if let Some(v) = v {
        debug_assert!(v.len() == n && v.is_contiguous(), "{:?} is not {n} numbers side by side", v.dims());
        // SAFETY: the elements of the view.
        unsafe { load(v.dtype(), v.ptr(), 1, &mut all) };
    }
    all
}

/// Elements `at..at + n`, of the tensor itself where it has the type that is computed in.
///
/// # Safety
/// They exist, and nobody writes them.
pub(crate) unsafe fn read<'a, A: Acc>(v: &'a View, at: usize, n: usize, buffer: &'a mut Vec<A>) -> &'a [A] {
    let from = v.ptr().wrapping_add(at * v.dtype().size());
    if v.dtype() == A::DTYPE {
        // SAFETY: elements of that type, by the caller's promise.
        return unsafe { std::slice::from_raw_parts(from.cast(), n) };
    }
    buffer.resize(n, A::ZERO);
    // SAFETY: as above.
    unsafe { load(v.dtype(), from, 1, buffer) };
    buffer
}

/// Writes elements `at..at + n`, which `f` computes.
///
/// # Safety
/// They exist, and nobody else touches them.
pub(crate) unsafe fn write<A: Acc>(v: &View, at: usize, n: usize, buffer: &mut Vec<A>, f: impl FnOnce(&mut [A])) {
    let to = v.ptr().wrapping_add(at * v.dtype().size());
    if v.dtype() == A::DTYPE {
        // SAFETY: elements of that type, by the caller's promise.
        return f(unsafe { std::slice::from_raw_parts_mut(to.cast(), n) });
    }
    buffer.resize(n, A::ZERO);
    f(buffer);
    // SAFETY: as above.
    unsafe { store(v.dtype(), to, 1, buffer) };
}

unsafe fn gather<T: Copy, A: Acc>(ptr: *const T, stride: isize, dst: &mut [A], f: impl Fn(T) -> A) {
    if stride == 1 {
        // SAFETY: the caller's elements, side by side.
        let src = unsafe { std::slice::from_raw_parts(ptr, dst.len()) };
        dst.iter_mut().zip(src).for_each(|(d, s)| *d = f(*s));
        return;
    }
    if stride == 0 && !dst.is_empty() {
        // SAFETY: the caller's only element.
        return dst.fill(f(unsafe { *ptr }));
    }
    for (i, d) in dst.iter_mut().enumerate() {
        // SAFETY: element i of the caller's elements.
        *d = f(unsafe { *ptr.offset(i as isize * stride) });
    }
}

unsafe fn scatter<T: Copy, A: Acc>(ptr: *mut T, stride: isize, src: &[A], f: impl Fn(A) -> T) {
    if stride == 1 {
        // SAFETY: the caller's elements, side by side.
        let dst = unsafe { std::slice::from_raw_parts_mut(ptr, src.len()) };
        dst.iter_mut().zip(src).for_each(|(d, s)| *d = f(*s));
        return;
    }
    for (i, s) in src.iter().enumerate() {
        // SAFETY: element i of the caller's elements.
        unsafe { *ptr.offset(i as isize * stride) = f(*s) };
    }
}

unsafe fn gather_half<H: Copy + Default, A: Acc>(
    ptr: *const H,
    stride: isize,
    dst: &mut [A],
    widen: fn(&[H], &mut [A]),
) {
    if stride == 1 {
        // SAFETY: the caller's elements, side by side.
        widen(unsafe { std::slice::from_raw_parts(ptr, dst.len()) }, dst);
        return;
    }
    let mut block = [H::default(); BLOCK];
    for (b, dst) in dst.chunks_mut(BLOCK).enumerate() {
        for (i, h) in block[..dst.len()].iter_mut().enumerate() {
            // SAFETY: element b * BLOCK + i of the caller's elements.
            *h = unsafe { *ptr.offset((b * BLOCK + i) as isize * stride) };
        }
        widen(&block[..dst.len()], dst);
    }
}

unsafe fn scatter_half<H: Copy + Default, A: Acc>(ptr: *mut H, stride: isize, src: &[A], narrow: fn(&[A], &mut [H])) {
    if stride == 1 {
        // SAFETY: the caller's elements, side by side.
        narrow(src, unsafe { std::slice::from_raw_parts_mut(ptr, src.len()) });
        return;
    }
    let mut block = [H::default(); BLOCK];
    for (b, src) in src.chunks(BLOCK).enumerate() {
        narrow(src, &mut block[..src.len()]);
        for (i, h) in block[..src.len()].iter().enumerate() {
            // SAFETY: element b * BLOCK + i of the caller's elements.
            unsafe { *ptr.offset((b * BLOCK + i) as isize * stride) = *h };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_weight_is_exp() {
        for fma in [false, true] {
            for i in 0..=200_000 {
                let x = -86.0 + 86.5 * (i as f32 / 200_000.0);
                let (got, exact) = (x.exp_weight(fma) as f64, (x as f64).exp());
                assert!((got - exact).abs() <= 2.5e-7 * exact, "exp({x}) = {got}, expected {exact}");
            }
            assert_eq!(f32::NEG_INFINITY.exp_weight(fma), 0.0);
            assert!((-87.5f32).exp_weight(fma) <= 1e-38);
            assert_eq!(0f32.exp_weight(fma), 1.0);
            assert!(f32::NAN.exp_weight(fma).is_nan());
        }
    }
}
