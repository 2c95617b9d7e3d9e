//! How a convolution's kernel slides over an image: what the kernels of all devices share. Images have 1 to 3 spatial dims; with
//! fewer than 3 they are seen as 3 dims of which the first have one element.

use crate::{KernelError, Result, View};

/// Per spatial dim, the first ones filled up: how far the kernel moves, how many zeros stand before the image (a negative number
/// leaves out elements), how far the taps are apart; and in how many groups the channels fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sliding {
    /// Elements from one place of the kernel to the next.
    pub stride: [usize; 3],
    /// Zeros before the first element.
    pub padding: [isize; 3],
    /// Elements from tap to tap.
    pub dilation: [usize; 3],
    /// Channels of a group see each other only.
    pub groups: usize,
}

impl Sliding {
    /// Attributes of 1 to 3 spatial dims.
    ///
    /// # Errors
    /// If the lists have different lengths, none or more than 3, or a stride, a dilation or the number of groups is not positive.
    pub fn new(stride: &[i64], padding: &[i64], dilation: &[i64], groups: usize) -> Result<Sliding> {
        let n = stride.len();
        if !(1..=3).contains(&n) || padding.len() != n || dilation.len() != n {
            return Err(KernelError::new(format!(
                "stride {stride:?}, padding {padding:?} and dilation {dilation:?} must have 1 to 3 numbers, all as many"
            )));
        }
        let most = isize::MAX as i64 >> 24;
        if groups == 0
            || stride.iter().chain(dilation).any(|v| !(1..most).contains(v))
            || padding.iter().any(|p| p.unsigned_abs() >= most as u64)
        {
            return Err(KernelError::new(format!(
                "stride {stride:?}, dilation {dilation:?} and groups {groups} must be at least 1, and padding {padding:?} in bounds"
            )));
        }
        let at = |v: &[i64], d: usize, fill: i64| d.checked_sub(3 - n).map_or(fill, |d| v[d]);
        Ok(Sliding {
            stride: std::array::from_fn(|d| at(stride, d, 1) as usize),
            padding: std::array::from_fn(|d| at(padding, d, 0) as isize),
            dilation: std::array::from_fn(|d| at(dilation, d, 1) as usize),
            groups,
        })
    }
}

/// The sizes of a convolution: of the image that the kernel slides over, of the kernel, and of what it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Number of images in the batch.
    pub batch: usize,
    /// Number of groups of channels.
    pub groups: usize,
    /// Channels of the image in a group.
    pub channels: usize,
    /// Channels of the result in a group.
    pub filters: usize,
    /// Spatial dims of the image.
    pub image: [usize; 3],
    /// Spatial dims of the kernel.
    pub kernel: [usize; 3],
    /// Spatial dims of the result.
    pub result: [usize; 3],
}

impl Sizes {
    /// Of an image `[n, c, ..]`, a weight `[f, c / groups, ..]` and a result `[n, f, ..]`, which must be contiguous and of one float
    /// dtype.
    ///
    /// # Errors
    /// If they do not fit.
    pub fn of(image: &View, weight: &View, result: &View, groups: usize) -> Result<Sizes> {
        let (i, w, r) = (image.dims(), weight.dims(), result.dims());
        let n = i.len().wrapping_sub(2);
        let fits = (1..=3).contains(&n)
            && [w.len(), r.len()] == [i.len(); 2]
            && i[0] == r[0]
            && w[1].checked_mul(groups) == Some(i[1])
            && w[0] == r[1]
            && w[0] % groups.max(1) == 0
            && image.dtype().is_float()
            && [weight.dtype(), result.dtype()] == [image.dtype(); 2]
            && [image, weight, result].iter().all(|v| v.is_contiguous());
        if !fits {
            return Err(KernelError::new(format!(
                "{} image {i:?}, {} weight {w:?} and {} result {r:?} do not fit with {groups} groups, or are not contiguous",
                image.dtype(),
                weight.dtype(),
                result.dtype()
            )));
        }
        let spatial = |dims: &[usize]| std::array::from_fn(|d| d.checked_sub(3 - n).map_or(1, |d| dims[2 + d]));
        Ok(Sizes {
            batch: i[0],
            groups,
            channels: w[1],
            filters: w[0] / groups,
            image: spatial(i),
            kernel: spatial(w),
            result: spatial(r),
        })
    }
    /// Taps of the kernel.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }
}
