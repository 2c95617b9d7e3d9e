//! Part that a rank reads of an image that windows slide over, where its part of the result is cut along the image: the rows
//! of its windows.

use crate::error::Result;
use crate::ops::LocalizeCtx;
use oflow_kernels::ShardBox;
use std::ops::Range;

/// Attributes of one spatial dim.
#[derive(Clone, Copy)]
pub(super) struct Slide {
    pub(super) stride: i64,
    pub(super) padding: i64,
    pub(super) dilation: i64,
    /// Elements of a window.
    pub(super) kernel: i64,
}

impl Slide {
    /// Of each spatial dim; a call without dilation has steps of one.
    pub(super) fn of(c: &LocalizeCtx<'_>, kernel: &[i64]) -> Result<Vec<Slide>> {
        let (stride, padding) = (c.ints("stride")?, c.ints("padding")?);
        let ones = vec![1; kernel.len()];
        let dilation = if c.logical.op.sig.attr("dilation").is_some() { c.ints("dilation")? } else { &ones };
        let at = |d: usize| Slide { stride: stride[d], padding: padding[d], dilation: dilation[d], kernel: kernel[d] };
        Ok((0..kernel.len()).map(at).collect())
    }

    /// The elements of an image of `size` that windows see.
    pub(super) fn seen(&self, windows: Range<usize>, size: usize) -> Range<usize> {
        if windows.is_empty() {
            return 0..0;
        }
        let first = windows.start as i64 * self.stride - self.padding;
        let last = (windows.end as i64 - 1) * self.stride - self.padding + (self.kernel - 1) * self.dilation;
        inside(first, last + 1, size)
    }

    /// The windows, of `count`, that see some of these elements of the image.
    pub(super) fn seeing(&self, elements: Range<usize>, count: usize) -> Range<usize> {
        if elements.is_empty() {
            return 0..0;
        }
        let (first, last) = (elements.start as i64 + self.padding, elements.end as i64 - 1 + self.padding);
        let reach = (self.kernel - 1) * self.dilation;
        // Not after the first element, or the padding that is left would be negative.
        let start = (first - reach + self.stride - 1).div_euclid(self.stride).min(first.div_euclid(self.stride));
        inside(start, last.div_euclid(self.stride) + 1, count)
    }
}

fn inside(start: i64, end: i64, size: usize) -> Range<usize> {
    let at = |n: i64| n.clamp(0, size as i64) as usize;
    at(start)..at(end).max(at(start))
}

/// The range of a box along a dim.
pub(super) fn range(b: &ShardBox, d: usize) -> Range<usize> {
    b.offset[d]..b.offset[d] + b.size[d]
}

/// The box with another range along a dim.
pub(super) fn narrow(b: &mut ShardBox, d: usize, r: Range<usize>) {
    (b.offset[d], b.size[d]) = (r.start, r.len());
}
