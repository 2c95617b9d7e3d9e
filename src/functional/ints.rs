//! Lists of dims and sizes as users write them.

use smallvec::{SmallVec, smallvec};

/// A whole number in a list of dims or sizes.
pub trait IntLike: Copy {
    /// As i64; a number beyond it becomes the largest, which no dim or size is.
    fn int(self) -> i64;
}
macro_rules! int_like {
    ($($t:ty)*) => {$(
        impl IntLike for $t {
            #[inline]
            fn int(self) -> i64 { i64::try_from(self).unwrap_or(i64::MAX) }
        }
        impl IntList for $t {
            fn ints(self) -> SmallVec<[i64; 6]> { smallvec![self.int()] }
        }
    )*};
}
int_like!(i64 i32 u32 usize);

/// Types that can be a list of dims or sizes: an array, slice or vector of i64, i32, u32 or usize (so `x.shape()` is one), a
/// tuple of those types mixed, one number, or `()` for the empty list.
///
/// ```
/// use oflow::prelude::*;
/// let x = zeros([4, 6], Device::Cpu)?;
/// let rows = x.shape()[0];
/// assert_eq!(x.reshape((rows, -1, 2))?.shape(), [4, 3, 2]);
/// assert_eq!(x.reshape([3, 8])?.reshape(x.shape())?.shape(), x.shape());
/// assert_eq!(x.sum([0, 1])?.reshape(())?.ndim(), 0);
/// # Ok::<(), oflow::Error>(())
/// ```
pub trait IntList {
    /// The numbers in order.
    fn ints(self) -> SmallVec<[i64; 6]>;
}

impl IntList for () {
    fn ints(self) -> SmallVec<[i64; 6]> {
        smallvec![]
    }
}
impl<T: IntLike> IntList for &[T] {
    fn ints(self) -> SmallVec<[i64; 6]> {
        self.iter().map(|i| i.int()).collect()
    }
}
impl<T: IntLike, const N: usize> IntList for [T; N] {
    fn ints(self) -> SmallVec<[i64; 6]> {
        self.as_slice().ints()
    }
}
impl<T: IntLike, const N: usize> IntList for &[T; N] {
    fn ints(self) -> SmallVec<[i64; 6]> {
        self.as_slice().ints()
    }
}
impl<T: IntLike> IntList for Vec<T> {
    fn ints(self) -> SmallVec<[i64; 6]> {
        self.as_slice().ints()
    }
}
impl<T: IntLike> IntList for &Vec<T> {
    fn ints(self) -> SmallVec<[i64; 6]> {
        self.as_slice().ints()
    }
}
impl<T: IntLike, const N: usize> IntList for SmallVec<[T; N]> {
    fn ints(self) -> SmallVec<[i64; 6]> {
        self.as_slice().ints()
    }
}
impl<T: IntLike, const N: usize> IntList for &SmallVec<[T; N]> {
    fn ints(self) -> SmallVec<[i64; 6]> {
        self.as_slice().ints()
    }
}

macro_rules! tuples {
    ($($($t:ident)*;)*) => {$(
        impl<$($t: IntLike),*> IntList for ($($t,)*) {
            #[allow(non_snake_case)]
            fn ints(self) -> SmallVec<[i64; 6]> {
                let ($($t,)*) = self;
                smallvec![$($t.int()),*]
            }
        }
    )*};
}
for_tuples!(tuples);
