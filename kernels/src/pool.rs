//! The windows of pooling: what the kernels of all devices share. Images have 1 to 3 spatial dims; with fewer than 3 they are seen as 3
//! dims of which the first have one element.

use crate::{KernelError, Result, ShardBox, View};

/// Where the windows of a call lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Window `j` of a dim begins at `j * stride - padding` and has `kernel` elements, `dilation` apart.
    Sliding {
        /// Elements of a window.
        kernel: [usize; 3],
        /// From window to window.
        stride: [usize; 3],
        /// Elements before the first one.
        padding: [usize; 3],
        /// From element to element.
        dilation: [usize; 3],
    },
    /// As many windows as asked for, of about one size, which cover the image.
    Adaptive,
}

/// A window of a dim: its elements are `start`, `start + step`, … below `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First element in the image.
    pub start: usize,
    /// No element from here on.
    pub end: usize,
    /// From element to element.
    pub step: usize,
    /// Elements of the image in it.
    pub inside: usize,
    /// Elements with those of the padding.
    pub span: usize,
}

impl Window {
    fn new(start: usize, end: usize, step: usize, span: usize) -> Window {
        let end = end.max(start);
        Window { start, end, step, inside: (end - start).div_ceil(step), span }
    }

    /// Intersection of the window with a part of the image, counted from the part's first element.
    fn within(self, at: usize, size: usize) -> Window {
        let start = match at.checked_sub(self.start) {
            Some(before) => before.div_ceil(self.step) * self.step - before,
            None => self.start - at,
        };
        let end = self.end.saturating_sub(at).min(size);
        Window { start, end: end.max(start), ..self }
    }
}

impl Windows {
    /// Windows of 1 to 3 spatial dims.
    ///
    /// # Errors
    /// If the lists have different lengths, none or more than 3, or numbers that are not positive (the padding may be 0).
    pub fn sliding(kernel: &[i64], stride: &[i64], padding: &[i64], dilation: &[i64]) -> Result<Windows> {
        let n = kernel.len();
        if !(1..=3).contains(&n) || [stride.len(), padding.len(), dilation.len()] != [n; 3] {
            return Err(KernelError::new(format!(
                "kernel {kernel:?}, stride {stride:?}, padding {padding:?} and dilation {dilation:?} must have 1 to 3 numbers, all as many"
            )));
        }
        let most = isize::MAX as i64 >> 24;
        let positive = |v: &[i64]| v.iter().all(|v| (1..most).contains(v));
        if ![kernel, stride, dilation].iter().all(|v| positive(v)) || padding.iter().any(|p| !(0..most).contains(p)) {
            return Err(KernelError::new(format!(
                "kernel {kernel:?}, stride {stride:?} and dilation {dilation:?} must be at least 1, padding {padding:?} at least 0"
            )));
        }
        let all =
            |v: &[i64], fill: usize| std::array::from_fn(|d| d.checked_sub(3 - n).map_or(fill, |d| v[d] as usize));
        Ok(Windows::Sliding {
            kernel: all(kernel, 1),
            stride: all(stride, 1),
            padding: all(padding, 0),
            dilation: all(dilation, 1),
        })
    }

    /// Window `j` of dim `d`, of `count` windows over `size` elements.
    pub fn window(&self, d: usize, j: usize, count: usize, size: usize) -> Window {
        match self {
            Windows::Sliding { kernel, stride, padding, dilation } => {
                let (first, step) = (j * stride[d], dilation[d]);
                let last = first + kernel[d] * step;
                // Of what lies before the image whole steps are left out.
                let start = match padding[d].checked_sub(first) {
                    Some(before) => before.div_ceil(step) * step - before,
                    None => first - padding[d],
                };
                let end = last.saturating_sub(padding[d]).min(size);
                let span = last.min(size + 2 * padding[d]).saturating_sub(first);
                Window::new(start, end, step, span)
            }
            Windows::Adaptive => {
                let (start, end) = (j * size / count, ((j + 1) * size).div_ceil(count));
                Window::new(start, end, 1, end - start)
            }
        }
    }
}

/// The dims that are pooled, of the whole image and result and of the parts that a call has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolGeometry {
    /// How many dims are pooled, the last ones.
    pub spatial: usize,
    /// Sizes of the whole image.
    pub image: [usize; 3],
    /// Where the part begins.
    pub image_at: [usize; 3],
    /// Sizes of the whole result.
    pub result: [usize; 3],
    /// Where the part begins.
    pub result_at: [usize; 3],
}

fn last_three(v: &[usize], spatial: usize, fill: usize) -> [usize; 3] {
    std::array::from_fn(|d| (d + spatial).checked_sub(3).map_or(fill, |d| v[v.len() - spatial + d]))
}

impl PoolGeometry {
    /// Of parts that lie as their boxes do. The part of the image has all that the windows of the result see; or, of a gradient, the
    /// part of the result all windows that see the image.
    ///
    /// # Errors
    /// If there are fewer dims, or not 1 to 3 are pooled.
    pub fn of(image: &ShardBox, result: &ShardBox, spatial: usize) -> Result<PoolGeometry> {
        let dims = [&image.logical, &image.offset, &result.logical, &result.offset];
        if !(1..=3).contains(&spatial) || dims.iter().any(|d| d.len() < spatial) {
            return Err(KernelError::new(format!(
                "pools 1 to 3 dims, not {spatial} of {:?}",
                image.logical.as_slice()
            )));
        }
        Ok(PoolGeometry {
            spatial,
            image: last_three(&image.logical, spatial, 1),
            image_at: last_three(&image.offset, spatial, 0),
            result: last_three(&result.logical, spatial, 1),
            result_at: last_three(&result.offset, spatial, 0),
        })
    }
}

/// The sizes of a call: planes, and the spatial dims of each before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Number of planes: images times channels.
    pub count: usize,
    /// Dims of a plane of the image.
    pub image: [usize; 3],
    /// Dims of a plane of the result.
    pub result: [usize; 3],
    /// Where they lie in the whole.
    pub place: PoolGeometry,
}

impl Planes {
    /// Of an image and a result, whose last dims are pooled and whose first ones are the same. Both must be contiguous.
    ///
    /// # Errors
    /// If they do not fit.
    pub fn of(image: &View, result: &View, place: &PoolGeometry) -> Result<Planes> {
        let (i, r, spatial) = (image.dims(), result.dims(), place.spatial);
        let lead = i.len().wrapping_sub(spatial);
        let fits = (1..=3).contains(&spatial)
            && spatial <= i.len()
            && i.len() == r.len()
            && i[..lead] == r[..lead]
            && image.is_contiguous()
            && result.is_contiguous();
        if !fits {
            return Err(KernelError::new(format!(
                "an image {i:?} and a result {r:?} do not fit for {spatial} pooled dims, or are not contiguous"
            )));
        }
        let (count, image, result) = (i[..lead].iter().product(), last_three(i, spatial, 1), last_three(r, spatial, 1));
        Ok(Planes { count, image, result, place: *place })
    }

    /// Window `j` of dim `d` of the part of the result: what the part of the image has of it.
    pub fn window(&self, windows: &Windows, d: usize, j: usize) -> Window {
        let p = &self.place;
        windows.window(d, p.result_at[d] + j, p.result[d], p.image[d]).within(p.image_at[d], self.image[d])
    }
}

/// By what an average divides the sum of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// The elements in the image.
    Inside,
    /// These and those of the padding.
    WithPadding,
    /// A given number.
    Fixed(i64),
}

impl Divisor {
    /// The divisor of the window that has these windows in its dims.
    pub fn of(self, windows: [Window; 3]) -> f64 {
        match self {
            Divisor::Inside => windows.iter().map(|w| w.inside as f64).product(),
            Divisor::WithPadding => windows.iter().map(|w| w.span as f64).product(),
            Divisor::Fixed(n) => n as f64,
        }
    }
}
