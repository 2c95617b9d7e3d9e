//! The vector registers of a CPU. The compiler does not keep arrays of this many sums in registers by itself.

use super::tile::LANES;
use crate::cpu::acc::Acc;
use crate::vmath::Real;
use std::ops::Range;

/// A vector of numbers.
///
/// # Safety
/// The functions of an implementation run on CPUs that have its instructions only.
pub(super) trait Vector: Copy {
    /// A number.
    type Item: Acc;
    /// Numbers in it.
    const LEN: usize;
    /// The same number in each place.
    unsafe fn splat(x: Self::Item) -> Self;
    /// Reads `LEN` numbers.
    unsafe fn load(from: *const Self::Item) -> Self;
    /// Reads `n` numbers, fewer than `LEN`, and zeros.
    #[inline(always)]
    unsafe fn load_first(from: *const Self::Item, n: usize) -> Self {
        let mut numbers = [Self::Item::ZERO; LANES];
        // SAFETY: the caller's promise; no vector is longer.
        unsafe {
            std::ptr::copy_nonoverlapping(from, numbers.as_mut_ptr(), n);
            Self::load(numbers.as_ptr())
        }
    }
    /// Writes `LEN` numbers.
    unsafe fn store(self, to: *mut Self::Item);
    /// Writes the numbers of some lanes, at least one, to where a whole vector would have them.
    #[inline(always)]
    unsafe fn store_lanes(self, to: *mut Self::Item, lanes: Range<usize>) {
        let mut numbers = [Self::Item::ZERO; LANES];
        // SAFETY: the caller's promise; no vector is longer.
        unsafe {
            if lanes.len() == Self::LEN {
                return self.store(to);
            }
            self.store(numbers.as_mut_ptr());
            let from = numbers.as_ptr().add(lanes.start);
            std::ptr::copy_nonoverlapping(from, to.wrapping_add(lanes.start), lanes.len());
        }
    }
    /// `self + a * b`.
    unsafe fn add_product(self, a: Self, b: Self) -> Self;
}

/// The vector of CPUs of which nothing is known.
#[derive(Clone, Copy)]
pub(super) struct Plain<A>([A; 4]);

impl<A: Acc> Vector for Plain<A> {
    type Item = A;
    const LEN: usize = 4;
    #[inline(always)]
    unsafe fn splat(x: A) -> Self {
        Plain([x; 4])
    }
    #[inline(always)]
    unsafe fn load(from: *const A) -> Self {
        // SAFETY: the caller's promise.
        Plain(unsafe { from.cast::<[A; 4]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut A) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<[A; 4]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        Plain(std::array::from_fn(|l| self.0[l] + a.0[l] * b.0[l]))
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;
    use std::ops::Range;

    macro_rules! vector {
        ($register:ty, $item:ty, $len:literal, $set:ident, $load:ident, $store:ident, $fma:ident
            $(, $first:ident $some:ident $mask:ty)?) => {
            impl Vector for $register {
                type Item = $item;
                const LEN: usize = $len;
                #[inline(always)]
                unsafe fn splat(x: $item) -> Self {
                    // SAFETY (all of this block): the CPU has the instructions and the memory exists, by the contract of the trait.
                    unsafe { $set(x) }
                }
                #[inline(always)]
                unsafe fn load(from: *const $item) -> Self {
                    // SAFETY: as above.
                    unsafe { $load(from) }
                }
                $(
                    #[inline(always)]
                    unsafe fn load_first(from: *const $item, n: usize) -> Self {
                        // SAFETY: as above; what is masked is not read.
                        unsafe { $first(((1u32 << n) - 1) as $mask, from) }
                    }
                    #[inline(always)]
                    unsafe fn store_lanes(self, to: *mut $item, lanes: Range<usize>) {
                        // SAFETY: as above; what is masked is not written.
                        unsafe {
                            match lanes.len() {
                                $len => self.store(to),
                                _ => $some(to, ((1u32 << lanes.end) - (1 << lanes.start)) as $mask, self),
                            }
                        }
                    }
                )?
                #[inline(always)]
                unsafe fn store(self, to: *mut $item) {
                    // SAFETY: as above.
                    unsafe { $store(to, self) }
                }
                #[inline(always)]
                unsafe fn add_product(self, a: Self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $fma(a, b, self) }
                }
            }
        };
    }

    vector!(__m512, f32, 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps, _mm512_maskz_loadu_ps _mm512_mask_storeu_ps u16);
    vector!(__m512d, f64, 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd, _mm512_maskz_loadu_pd _mm512_mask_storeu_pd u8);
    vector!(__m256, f32, 8, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps);
    vector!(__m256d, f64, 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd);
}
