//! Convolutions and pooling of integers as sums and maxima of strided parts of the image: one part for each place of the kernel, which
//! holds what that place sees in every window. The kernels of these ops compute with floats only.

use super::softmax::cast_to;
use crate::error::{Error, Result};
use crate::ops::{AttrValue, Emit, LowerCall, Value};
use oflow_kernels::{DType, Dims, Scalar};

/// Windows over the last dims of an image.
struct Windows<'a> {
    kernel: Vec<i64>,
    stride: &'a [i64],
    padding: &'a [i64],
    dilation: Vec<i64>,
    /// Windows of each dim.
    size: Dims,
}

impl<'a> Windows<'a> {
    fn of(call: &LowerCall<'a>, kernel: Vec<i64>) -> Result<Windows<'a>> {
        let dilation = match call.op.sig.attr("dilation") {
            Some(_) => call.ints("dilation")?.to_vec(),
            None => vec![1; kernel.len()],
        };
        Ok(Windows {
            kernel,
            stride: call.ints("stride")?,
            padding: call.ints("padding")?,
            dilation,
            size: call.sizes("size")?,
        })
    }

    fn dims(&self) -> usize {
        self.kernel.len()
    }

    /// Returns the part of x that each place of the kernel sees, in row-major order of the places: the shape of x with `size` in place of the last dims. The
    /// padding reads `fill`.
    fn taps(&self, e: &mut dyn Emit, x: Value, fill: Scalar) -> Result<Vec<Value>> {
        let shape = e.shape(x);
        let lead = shape.len() - self.dims();
        let reach = |d: usize| (self.size[d] as i64 - 1).max(0) * self.stride[d];
        let mut padded: Vec<usize> = shape[..lead].to_vec();
        padded
            .extend((0..self.dims()).map(|d| (reach(d) + (self.kernel[d] - 1) * self.dilation[d] + 1).max(0) as usize));
        let before: Vec<i64> = std::iter::repeat_n(0, lead).chain(self.padding.iter().copied()).collect();
        let attrs = [("before", before.into()), ("size", padded.as_slice().into()), ("value", fill.into())];
        let mut parts = vec![e.call("pad_constant", &[x], &attrs)?];
        for d in 0..self.dims() {
            let mut next = vec![];
            for part in parts {
                for place in 0..self.kernel[d] {
                    let start = place * self.dilation[d];
                    let end = if self.size[d] == 0 { start } else { start + reach(d) + 1 };
                    let at = [
                        ("dim", (lead + d).into()),
                        ("start", start.into()),
                        ("end", end.into()),
                        ("step", self.stride[d].into()),
                    ];
                    next.push(e.call("slice", &[part], &at)?);
                }
            }
            parts = next;
        }
        Ok(parts)
    }
}

fn reshape(e: &mut dyn Emit, v: Value, shape: &[usize]) -> Result<Value> {
    e.call("reshape", &[v], &[("shape", shape.into())])
}

/// The sum so far, if there is one, and a value.
fn plus(e: &mut dyn Emit, sum: Option<Value>, v: Value) -> Result<Value> {
    sum.map_or(Ok(v), |sum| e.call("add", &[sum, v], &[]))
}

fn no_places() -> Error {
    Error::argument("the kernel has no elements")
}

/// `conv` of integers: a product of matrices for each place of the kernel.
pub(super) fn conv(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let (x, w) = (call.input(0)?, call.input(1)?);
    let (image, weight, groups) = (e.shape(x), e.shape(w), call.size("groups")?.max(1));
    let windows = Windows::of(call, weight[2..].iter().map(|n| *n as i64).collect())?;
    let (batch, channels, filters) = (image[0], image[1] / groups, weight[0] / groups);
    let (places, count) = (weight[2..].iter().product::<usize>(), windows.size.iter().product::<usize>());
    let w = reshape(e, w, &[groups, filters, weight[1], places])?;
    let mut sum: Option<Value> = None;
    for (n, seen) in windows.taps(e, x, Scalar::Int(0))?.into_iter().enumerate() {
        let seen = reshape(e, seen, &[batch, groups, channels, count])?;
        let at = e.call("slice", &[w], &[("dim", 3i64.into()), ("start", n.into()), ("end", (n + 1).into())])?;
        let at = reshape(e, at, &[groups, filters, channels])?;
        let product = e.call("matmul", &[at, seen], &[])?;
        sum = Some(plus(e, sum, product)?);
    }
    let shape: Vec<usize> = [batch, weight[0]].into_iter().chain(windows.size.iter().copied()).collect();
    let mut y = reshape(e, sum.ok_or_else(no_places)?, &shape)?;
    if let Some(bias) = call.inputs.get(2).copied().flatten() {
        let shape: Vec<usize> = std::iter::once(weight[0]).chain(std::iter::repeat_n(1, windows.dims())).collect();
        let bias = reshape(e, bias, &shape)?;
        y = e.call("add", &[y, bias], &[])?;
    }
    Ok(vec![y])
}

/// `conv_transpose` of integers: the convolution, by the weight turned round, of x with zeros between its elements.
pub(super) fn conv_transpose(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let (mut x, w) = (call.input(0)?, call.input(1)?);
    let (weight, groups) = (e.shape(w), call.size("groups")?.max(1));
    let (stride, padding, dilation, size) =
        (call.ints("stride")?, call.ints("padding")?, call.ints("dilation")?, call.sizes("size")?);
    let n = size.len();
    let mut before = vec![0; 2];
    for d in 0..n {
        let len = e.shape(x)[2 + d] as i64;
        let spread = if len == 0 { 0 } else { (len - 1) * stride[d] + 1 };
        let attrs =
            [("dim", (2 + d).into()), ("start", 0i64.into()), ("step", stride[d].into()), ("size", spread.into())];
        x = e.call("slice_grad", &[x], &attrs)?;
        before.push(dilation[d] * (weight[2 + d] as i64 - 1) - padding[d]);
    }
    let mut padded: Vec<usize> = e.shape(x)[..2].to_vec();
    padded.extend((0..n).map(|d| size[d] + (dilation[d] * (weight[2 + d] as i64 - 1)).max(0) as usize));
    let x = e.call("pad_constant", &[x], &[("before", before.into()), ("size", padded.as_slice().into())])?;
    let split: Vec<usize> =
        [groups, weight[0] / groups, weight[1]].into_iter().chain(weight[2..].iter().copied()).collect();
    let order: Vec<i64> = [0, 2, 1].into_iter().chain(3..3 + n as i64).collect();
    let joined: Vec<usize> =
        [groups * weight[1], weight[0] / groups].into_iter().chain(weight[2..].iter().copied()).collect();
    let w = reshape(e, w, &split)?;
    let w = e.call("permute", &[w], &[("dims", order.into())])?;
    let w = reshape(e, w, &joined)?;
    let w = e.call("flip", &[w], &[("dims", (2..2 + n as i64).collect::<Vec<_>>().into())])?;
    let attrs = [
        ("stride", vec![1; n].into()),
        ("padding", vec![0; n].into()),
        ("dilation", dilation.to_vec().into()),
        ("size", call.attr("size")?.clone()),
        ("groups", call.attr("groups")?.clone()),
    ];
    e.emit("conv", &[Some(x), Some(w), call.inputs.get(2).copied().flatten()], &attrs)
}

/// The largest element of each window, and where it is among the pooled dims.
fn largest(e: &mut dyn Emit, call: &LowerCall<'_>, places: bool) -> Result<Value> {
    let x = call.input(0)?;
    let windows = Windows::of(call, call.ints("kernel")?.to_vec())?;
    let (least, _) =
        e.dtype(x).integers().ok_or_else(|| Error::dtype(format!("{} has no least number", e.dtype(x))))?;
    let mut taps = windows.taps(e, x, Scalar::Int(least))?.into_iter();
    let mut best = taps.next().ok_or_else(no_places)?;
    if !places {
        for seen in taps {
            best = e.call("maximum", &[best, seen], &[])?;
        }
        return Ok(best);
    }
    // Each element's number in its plane; the padding has -1.
    let shape = e.shape(x);
    let lead = shape.len() - windows.dims();
    let flat: Vec<usize> = shape[..lead].iter().copied().chain([shape[lead..].iter().product()]).collect();
    let same = e.call("eq", &[x, x], &[])?;
    let ones = cast_to(e, same, DType::I64)?;
    let ones = reshape(e, ones, &flat)?;
    let counted = e.call("cumsum", &[ones], &[("dim", lead.into())])?;
    let numbers = e.call("sub_scalar", &[counted], &[("s", 1i64.into())])?;
    let numbers = reshape(e, numbers, &shape)?;
    let mut numbers = windows.taps(e, numbers, Scalar::Int(-1))?.into_iter();
    let mut at = numbers.next().ok_or_else(no_places)?;
    for (seen, number) in taps.zip(numbers) {
        let more = e.call("gt", &[seen, best], &[])?;
        let first = e.call("lt_scalar", &[at], &[("s", 0i64.into())])?;
        let better = e.call("logical_or", &[more, first], &[])?;
        best = e.call("where", &[better, seen, best], &[])?;
        at = e.call("where", &[better, number, at], &[])?;
    }
    Ok(at)
}

/// `max_pool` of integers.
pub(super) fn max_pool(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    Ok(vec![largest(e, call, false)?])
}

/// `max_pool_index` of integers.
pub(super) fn max_pool_index(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    Ok(vec![largest(e, call, true)?])
}

/// `avg_pool` of integers: the sums, divided towards zero.
pub(super) fn avg_pool(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let dtype = e.dtype(x);
    let windows = Windows::of(call, call.ints("kernel")?.to_vec())?;
    let wide = cast_to(e, x, DType::I64)?;
    let sum = total(e, &windows, wide)?;
    let divisor = match call.attr("divisor")? {
        AttrValue::Int(n) => {
            let none = e.call("sub", &[sum, sum], &[])?;
            e.call("add_scalar", &[none], &[("s", (*n).into())])?
        }
        _ => {
            // How many elements each window has: of the image, or with its padding.
            let same = e.call("eq", &[x, x], &[])?;
            let mut ones = cast_to(e, same, DType::I64)?;
            let mut plain = windows;
            let around = vec![0; plain.dims()];
            if call.bool("count_padding")? {
                let shape = e.shape(x);
                let lead = shape.len() - plain.dims();
                let before: Vec<i64> = std::iter::repeat_n(0, lead).chain(plain.padding.iter().copied()).collect();
                let size: Vec<usize> = shape.iter().zip(&before).map(|(n, p)| n + 2 * (*p).max(0) as usize).collect();
                let attrs =
                    [("before", before.into()), ("size", size.as_slice().into()), ("value", Scalar::Int(1).into())];
                ones = e.call("pad_constant", &[ones], &attrs)?;
                plain.padding = &around;
            }
            total(e, &plain, ones)?
        }
    };
    let rest = e.call("fmod", &[sum, divisor], &[])?;
    let whole = e.call("sub", &[sum, rest], &[])?;
    let y = e.call("floor_divide", &[whole, divisor], &[])?;
    Ok(vec![cast_to(e, y, dtype)?])
}

fn total(e: &mut dyn Emit, windows: &Windows<'_>, x: Value) -> Result<Value> {
    let taps = windows.taps(e, x, Scalar::Int(0))?;
    let mut sum: Option<Value> = None;
    for seen in taps {
        sum = Some(plus(e, sum, seen)?);
    }
    sum.ok_or_else(no_places)
}
