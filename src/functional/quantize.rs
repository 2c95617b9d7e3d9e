//! Quantised numbers: integers of few bits that stand for floats, with one scale and one zero point for a tensor, both in its dtype.

use super::{invoke1, nn, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::quantised;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Quantization, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Quantised numbers";
    /// x in a quantised dtype, `qint8`, `quint8`, `qint16` or `qint32`: x by the scale, rounded (ties to even), plus the zero point, within the integers
    /// that the dtype stores. NaN, which no integer stands for, is stored as 0. It has no gradient.
    "quantize(Tensor x, DataType dtype) -> Tensor" = quantize;
    /// The numbers of a quantised tensor, in f32.
    "dequantize(Tensor x) -> Tensor" = dequantize;
    /// The product of quantised matrices, quantised with `dtype`. The sums are those of integers, exact, so the result is the same under
    /// every layout.
    "quantized_matmul(Tensor a, Tensor b, DataType dtype) -> Tensor" = quantized_matmul;
    /// x rounded to the numbers that a quantised dtype with this scale, zero point and range has, as floats: training that knows of the
    /// rounding to come. The gradient passes unchanged where x is in the range, and is 0 elsewhere.
    "fake_quantize_per_tensor_affine(Tensor x, Float scale, Int zero_point, Int quant_min, Int quant_max) -> Tensor" = fake_quantize;
}

by_name! {
    BY_NAME, "Quantised numbers", ByName;
    /// x in the quantised dtype of that family (qint8, quint8, qint16, qint32) with this scale and zero point.
    "quantize_per_tensor(Tensor x, Float scale, Int zero_point, String dtype=\"qint8\") -> Tensor" = |b| {
        let made = DType::quantised(b.text(3)?, b.float(1)?, b.int(2)?);
        let refused = |e: oflow_kernels::KernelError| {
            Error::argument(e.to_string()).in_call(|| "quantize_per_tensor".into()).at(b.site)
        };
        let made = quantize(b.given(0)?, made.map_err(refused)?, b.site);
        Ok(vec![made.map_err(|e| e.within(|| "quantize_per_tensor".into()))?])
    };
}

by_name! {
    VALUES, "Quantised numbers", Value;
    /// The scale of a quantised tensor.
    "q_scale(Tensor x) -> Float" = |b| Ok(of("q_scale", b.given(0)?, b.site)?.scale.into());
    /// The zero point of a quantised tensor.
    "q_zero_point(Tensor x) -> Int" = |b| Ok(of("q_zero_point", b.given(0)?, b.site)?.zero.into());
}

/// Scale and zero point of a quantised tensor's elements.
fn of(name: &str, x: &Tensor, site: CallSite) -> Result<Quantization> {
    let refused = |e: Error| e.in_call(|| format!("{name}({})", x.short())).at(site);
    quantised(x.dtype()).map_err(refused)?;
    let lost = || refused(Error::dtype(format!("{} has no scale", x.dtype())));
    x.dtype().quantization().ok_or_else(lost)
}

pub(super) fn quantize(x: &Tensor, dtype: DType, site: CallSite) -> Result<Tensor> {
    let refused = |e: Error| e.in_call(|| format!("quantize({}, {dtype})", x.short())).at(site);
    quantised(dtype).map_err(refused)?;
    if !x.dtype().is_float() {
        return Err(refused(Error::dtype(format!("x must be float, not {}", x.dtype())).help("`cast` it first")));
    }
    let Some(q) = dtype.quantization() else {
        return Err(refused(Error::dtype(format!("{dtype} has no scale"))));
    };
    let numbers = [q.scale, q.zero as f64, q.low as f64, q.high as f64].map(Scalar::Float);
    invoke1(op!("quantize_linear"), &[Some(x)], smallvec![dtype.into()], numbers.into_iter().collect(), site)
        .map_err(refused)
}

pub(super) fn dequantize(x: &Tensor, site: CallSite) -> Result<Tensor> {
    let q = of("dequantize", x, site)?;
    let numbers = smallvec![Scalar::Float(q.scale), Scalar::Float(q.zero as f64)];
    invoke1(op!("dequantize_linear"), &[Some(x)], smallvec![], numbers, site)
}

pub(super) fn quantized_matmul(a: &Tensor, b: &Tensor, dtype: DType, site: CallSite) -> Result<Tensor> {
    let text = || format!("quantized_matmul({}, {}, {dtype})", a.short(), b.short());
    let (qa, qb) = (of("quantized_matmul", a, site)?, of("quantized_matmul", b, site)?);
    quantised(dtype).map_err(|e| e.in_call(text).at(site))?;
    // The largest sum that can be.
    let reach = |q: Quantization| (q.high - q.zero).max(q.zero - q.low) as f64;
    let length = a.shape().last().copied().unwrap_or(1) as f64;
    let wide = if reach(qa) * reach(qb) * length < f64::from(i32::MAX) { DType::I32 } else { DType::I64 };
    let inner = inner_calls();
    let bytes = [a, b].iter().all(|x| x.dtype().size() == 1 && x.ndim() >= 2);
    let product = if bytes {
        let zeros = smallvec![Scalar::Int(qa.zero), Scalar::Int(qb.zero)];
        invoke1(op!("quantized_product"), &[Some(a), Some(b)], smallvec![wide.into()], zeros, site)
    } else {
        let whole = |x: &Tensor, q: Quantization| -> Result<Tensor> {
            let stored = invoke1(op!("int_repr"), &[Some(x)], smallvec![], smallvec![], site)?.cast_at(wide, site)?;
            match q.zero {
                0 => Ok(stored),
                zero => invoke1(op!("sub_scalar"), &[Some(&stored)], smallvec![], smallvec![Scalar::Int(zero)], site),
            }
        };
        nn::matmul(&whole(a, qa)?, &whole(b, qb)?, false, false, site)
    };
    let product = product.map_err(|e| e.within(text))?.cast_at(DType::F64, site)?;
    let scale = smallvec![Scalar::Float(qa.scale * qb.scale)];
    let product = invoke1(op!("mul_scalar"), &[Some(&product)], smallvec![], scale, site)?;
    drop(inner);
    quantize(&product, dtype, site)
}

pub(super) fn fake_quantize(x: &Tensor, scale: f64, zero: i64, low: i64, high: i64, site: CallSite) -> Result<Tensor> {
    let refused = |e: Error| e.in_call(|| format!("fake_quantize_per_tensor_affine({})", x.short())).at(site);
    if !x.dtype().is_float() {
        return Err(refused(Error::dtype(format!("x must be float, not {}", x.dtype()))));
    }
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(refused(Error::argument(format!("a scale is greater than zero, not {scale}"))));
    }
    if !(low..=high).contains(&zero) {
        return Err(refused(Error::argument(format!("the zero point {zero} is not between {low} and {high}"))));
    }
    let numbers = || [scale, zero as f64, low as f64, high as f64].map(Scalar::Float).into_iter().collect();
    let rounded = invoke1(op!("quantized_numbers"), &[Some(x)], smallvec![], numbers(), site)?;
    if !x.requires_grad() {
        return Ok(rounded);
    }
    let inner = inner_calls();
    let within = invoke1(op!("quantizes_within"), &[Some(x)], smallvec![], numbers(), site)?;
    let outside = invoke1(op!("logical_not"), &[Some(&within)], smallvec![], smallvec![], site)?;
    let zeros = smallvec![Scalar::Float(0.0)];
    let kept = invoke1(op!("masked_fill"), &[Some(x), Some(&outside)], smallvec![], zeros, site)?;
    // Zero, with the gradient of what is kept.
    let passed = invoke1(op!("sub"), &[Some(&kept), Some(&kept.detach())], smallvec![], smallvec![], site)?;
    drop(inner);
    invoke1(op!("add"), &[Some(&rounded), Some(&passed)], smallvec![], smallvec![], site)
}
