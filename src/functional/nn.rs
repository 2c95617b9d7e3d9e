//! Products and the functions of neural nets.

use super::{invoke, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::{Call, first};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::smallvec;

/// Options of [`Tensor::attention_with`].
#[derive(Clone, Debug, Default)]
pub struct AttentionOptions {
    /// Whether query i attends to keys 0..=i only.
    pub causal: bool,
    /// Factor of the scores; `None` is 1 / √D for a head size of D.
    pub scale: Option<f64>,
}

/// Options of [`Tensor::cross_entropy_with`].
#[derive(Clone, Debug, Default)]
pub struct CrossEntropyOptions {
    /// Rows whose target has this value are ignored: their loss is 0, and the mean is over the other rows.
    pub ignore_index: Option<i64>,
    /// Whether to return the loss of each row instead of their mean.
    pub per_row: bool,
}

/// The product of two tensors of at least 2 dims.
fn product(a: &Tensor, b: &Tensor, transpose_b: bool, site: CallSite) -> Result<Tensor> {
    let op = op!("matmul")?;
    first(Call::new(op, &[Some(a), Some(b)]).attrs([false, transpose_b]).at(site).run()?, op, site)
}

impl Tensor {
    /// Returns the matrix product of `[…, m, k]` and `[…, k, n]`, of shape `[…, m, n]`. Leading dims broadcast; a vector is a matrix
    /// of one row or one column, as in PyTorch.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let a = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], Device::Cpu)?;
    /// let v = from_vec(vec![1.0f32, 1.0], [2], Device::Cpu)?;
    /// assert_eq!(a.matmul(&v)?.to_vec::<f32>()?, [3.0, 7.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        let site = CallSite::here();
        if self.ndim() >= 2 && other.ndim() >= 2 {
            product(self, other, false, site)
        } else {
            self.with_vector(other, false, site)
        }
    }

    /// Returns `self otherᵀ` for `[…, m, k]` and `[…, n, k]`, of shape `[…, m, n]`.
    #[track_caller]
    pub fn matmul_t(&self, other: &Tensor) -> Result<Tensor> {
        let site = CallSite::here();
        if self.ndim() >= 2 && other.ndim() >= 2 {
            product(self, other, true, site)
        } else {
            self.with_vector(other, true, site)
        }
    }

    /// A product in which one of the two is a vector: as a matrix of one row or one column, which the result does not have.
    fn with_vector(&self, other: &Tensor, transpose_b: bool, site: CallSite) -> Result<Tensor> {
        if self.ndim() == 0 || other.ndim() == 0 {
            return Err(Error::shape("a matrix product needs at least 1 dim")
                .in_call(|| format!("matmul({}, {})", self.short(), other.short()))
                .at(site));
        }
        let inner = inner_calls();
        let mut shape: Vec<usize> = vec![];
        let a = match self.ndim() {
            1 => self.reshape_at(&[1, self.shape()[0]], site)?,
            _ => self.clone(),
        };
        let b = match other.ndim() {
            1 if transpose_b => other.reshape_at(&[1, other.shape()[0]], site)?,
            1 => other.reshape_at(&[other.shape()[0], 1], site)?,
            _ => other.clone(),
        };
        let y = product(&a, &b, transpose_b, site)?;
        shape.extend(y.shape());
        if other.ndim() == 1 {
            shape.pop();
        }
        if self.ndim() == 1 {
            let row = shape.len() - if other.ndim() == 1 { 1 } else { 2 };
            shape.remove(row);
        }
        drop(inner);
        Ok(y.reshape_at(&shape, site)?.into_result())
    }

    /// Returns `self weightᵀ + bias` for an input `[…, in]`, a weight `[out, in]` and a bias `[out]`, of shape `[…, out]`. Autocast
    /// casts all three.
    #[track_caller]
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let site = CallSite::here();
        let Some(bias) = bias else { return self.matmul_t(weight) };
        // A vector is a matrix of one row; bias and weight are vectors and matrices, whatever x is.
        if self.ndim() == 1 {
            let inner = inner_calls();
            let row = self.reshape_at(&[1, self.shape()[0]], site)?;
            let y = invoke1(op!("linear"), &[Some(&row), Some(weight), Some(bias)], smallvec![], smallvec![], site)?;
            drop(inner);
            let n = y.numel();
            return Ok(y.reshape_at(&[n], site)?.into_result());
        }
        invoke1(op!("linear"), &[Some(self), Some(weight), Some(bias)], smallvec![], smallvec![], site)
    }

    /// Returns the softmax along `dim`: exp(x) divided by its sum over the dim.
    #[track_caller]
    pub fn softmax(&self, dim: i64) -> Result<Tensor> {
        invoke1(op!("softmax"), &[Some(self)], smallvec![dim.into()], smallvec![], CallSite::here())
    }
    /// Returns the logarithm of the softmax along `dim`.
    #[track_caller]
    pub fn log_softmax(&self, dim: i64) -> Result<Tensor> {
        invoke1(op!("log_softmax"), &[Some(self)], smallvec![dim.into()], smallvec![], CallSite::here())
    }
    /// Normalises the last dims to mean 0 and variance 1, then multiplies by `weight` and adds `bias`. The number of dims is that of
    /// `weight`, 1 without one. `eps` is added to the variance.
    #[track_caller]
    pub fn layer_norm(&self, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Result<Tensor> {
        let site = CallSite::here();
        let axes = weight.or(bias).map_or(1, |w| w.ndim().max(1));
        let ins = [Some(self), weight, bias];
        Ok(invoke(op!("layer_norm"), &ins, smallvec![axes.into()], smallvec![eps.into()], site)?.swap_remove(0))
    }
    /// Divides by the root mean square over the last dims, then multiplies by `weight`. The number of dims is that of `weight`, 1
    /// without one. `eps` is added to the mean square.
    #[track_caller]
    pub fn rms_norm(&self, weight: Option<&Tensor>, eps: f64) -> Result<Tensor> {
        let site = CallSite::here();
        let axes = weight.map_or(1, |w| w.ndim().max(1));
        let ins = [Some(self), weight];
        Ok(invoke(op!("rms_norm"), &ins, smallvec![axes.into()], smallvec![eps.into()], site)?.swap_remove(0))
    }
    /// Returns rows of this table `[rows, width]` by index: integer `ids` of any shape give `[ids…, width]`.
    ///
    /// # Errors
    /// If an index is outside of the table. The kernel finds it, so only ranks that hold the index return the error; it ends the job.
    #[track_caller]
    pub fn embedding(&self, ids: &Tensor) -> Result<Tensor> {
        invoke1(op!("embedding"), &[Some(self), Some(ids)], smallvec![], smallvec![], CallSite::here())
    }
    /// Returns, for integer indices of any shape, a new last dim of size `classes`: 1 at the index, 0 elsewhere.
    #[track_caller]
    pub fn one_hot(&self, classes: usize) -> Result<Tensor> {
        let attrs = smallvec![classes.into(), oflow_kernels::DType::I64.into()];
        invoke1(op!("one_hot"), &[Some(self)], attrs, smallvec![], CallSite::here())
    }
    /// Returns the mean cross entropy, a scalar, of logits `[…, classes]` and integer targets `[…]`.
    #[track_caller]
    pub fn cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        self.cross_entropy_impl(target, &CrossEntropyOptions::default(), CallSite::here())
    }
    /// Returns the cross entropy of logits `[…, classes]` and integer targets `[…]`: a scalar, or `[…]` with `per_row`.
    #[track_caller]
    pub fn cross_entropy_with(&self, target: &Tensor, options: &CrossEntropyOptions) -> Result<Tensor> {
        self.cross_entropy_impl(target, options, CallSite::here())
    }
    fn cross_entropy_impl(&self, target: &Tensor, o: &CrossEntropyOptions, site: CallSite) -> Result<Tensor> {
        let ignore = o.ignore_index.unwrap_or(i64::MIN);
        let inner = (!o.per_row).then(inner_calls);
        let loss =
            invoke(op!("cross_entropy"), &[Some(self), Some(target)], smallvec![ignore.into()], smallvec![], site)?
                .swap_remove(0);
        if o.per_row {
            return Ok(loss);
        }
        let all = || smallvec![crate::ops::AttrValue::Ints(smallvec![]), false.into()];
        let total = invoke1(op!("sum"), &[Some(&loss)], all(), smallvec![], site)?;
        match o.ignore_index {
            // The count is known without looking: P(sum) stays P(sum).
            None => {
                let s = Scalar::Float(1.0 / loss.numel() as f64);
                drop(inner);
                invoke1(op!("mul_scalar"), &[Some(&total)], smallvec![], smallvec![s], site)
            }
            Some(i) => {
                let taken = invoke1(op!("ne_scalar"), &[Some(target)], smallvec![], smallvec![i.into()], site)?;
                let count = invoke1(op!("sum"), &[Some(&taken)], all(), smallvec![], site)?;
                drop(inner);
                invoke1(op!("div"), &[Some(&total), Some(&count)], smallvec![], smallvec![], site)
            }
        }
    }
    /// Returns softmax(q kᵀ / √D) v for queries `self`, keys and values of shape `[B, H, T, D]`. With `causal`, query i attends to
    /// keys 0..=i.
    #[track_caller]
    pub fn attention(&self, k: &Tensor, v: &Tensor, causal: bool) -> Result<Tensor> {
        self.attention_impl(k, v, &AttentionOptions { causal, scale: None }, CallSite::here())
    }
    /// [`Tensor::attention`] with options.
    #[track_caller]
    pub fn attention_with(&self, k: &Tensor, v: &Tensor, options: &AttentionOptions) -> Result<Tensor> {
        self.attention_impl(k, v, options, CallSite::here())
    }
    fn attention_impl(&self, k: &Tensor, v: &Tensor, o: &AttentionOptions, site: CallSite) -> Result<Tensor> {
        let d = self.shape().last().copied().unwrap_or(1).max(1);
        let scale = o.scale.unwrap_or(1.0 / (d as f64).sqrt());
        let (attrs, runtime) = (smallvec![o.causal.into()], smallvec![scale.into()]);
        Ok(invoke(op!("attention"), &[Some(self), Some(k), Some(v)], attrs, runtime, site)?.swap_remove(0))
    }
    /// Sets elements to zero with probability `p` and multiplies the others by 1 / (1 - p). The mask depends on the seed and the
    /// logical position, not on placement or SBP. The result is always a new tensor; with p = 0
    /// [`nn::Dropout`](crate::nn::Dropout) returns its input instead.
    ///
    /// # Errors
    /// If `p` is not within 0 and 1.
    #[track_caller]
    pub fn dropout(&self, p: f64) -> Result<Tensor> {
        let site = CallSite::here();
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::argument(format!("{p} is not a probability")).at(site));
        }
        let runtime = smallvec![p.into(), 0i64.into(), (-1i64).into()];
        invoke1(op!("dropout"), &[Some(self)], smallvec![], runtime, site)
    }
}
