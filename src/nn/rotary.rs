//! Rotary position embedding as a layer.

use super::{Buffer, RotaryScaling};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::functional::{IntoTarget, from_vec, invoke1, op};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::smallvec;

/// How the angles of a rotary position embedding grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotaryOptions {
    /// Pair i of n turns by position / base^(i / n); 10,000 at first.
    pub base: f64,
    /// How angles are changed for sequences longer than those of the training; at first they are not.
    pub scaling: RotaryScaling,
    /// Pairs are neighbours instead of elements of the two halves; at first they are not.
    pub interleaved: bool,
}

impl Default for RotaryOptions {
    fn default() -> RotaryOptions {
        RotaryOptions { base: 10_000.0, scaling: RotaryScaling::Default, interleaved: false }
    }
}

/// Rotary position embedding of queries and keys `[..., positions, width]`: [`Tensor::rotary_embedding`] with tables of cosines and
/// sines, which are buffers that no checkpoint keeps. It serves tensors split along any dim: with positions split each rank turns by
/// the angles of its own ones.
#[derive(crate::nn::Module)]
pub struct RotaryEmbedding {
    /// Cosines, `[positions, pairs]`.
    pub cos: Buffer,
    /// Sines, `[positions, pairs]`.
    pub sin: Buffer,
    /// Pairs are neighbours.
    pub interleaved: bool,
}

impl RotaryEmbedding {
    /// Makes tables for that many positions of heads of which `width` elements are turned.
    ///
    /// ```
    /// use oflow::nn::RotaryEmbedding;
    /// use oflow::prelude::*;
    /// let rotary = RotaryEmbedding::new(8, 128, Device::Cpu)?;
    /// let keys = randn([2, 4, 10, 8], Device::Cpu)?;
    /// let (first, later) = (keys.narrow(2, 0, 7)?, keys.narrow(2, 7, 3)?);
    /// // With a cache the later ones begin at position 7.
    /// let apart = cat([&rotary.forward(&first, 0)?, &rotary.forward(&later, 7)?], 2)?;
    /// assert_eq!(apart.to_vec::<f32>()?, rotary.forward(&keys, 0)?.to_vec::<f32>()?);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `width` is odd.
    #[track_caller]
    pub fn new(width: usize, positions: usize, target: impl IntoTarget) -> Result<RotaryEmbedding> {
        RotaryEmbedding::with(width, positions, RotaryOptions::default(), target)
    }
    /// Makes tables with other angles.
    ///
    /// # Errors
    /// If `width` is odd, base is not positive, or the scaling has numbers that it cannot have.
    #[track_caller]
    pub fn with(
        width: usize,
        positions: usize,
        options: RotaryOptions,
        target: impl IntoTarget,
    ) -> Result<RotaryEmbedding> {
        let (site, RotaryOptions { base, scaling, interleaved }) = (CallSite::here(), options);
        if !width.is_multiple_of(2) {
            return Err(
                Error::argument(format!("RotaryEmbedding: expected an even number of elements, got {width}")).at(site)
            );
        }
        if !(base > 0.0 && base.is_finite()) {
            return Err(Error::argument(format!("RotaryEmbedding: the base {base} must be positive")).at(site));
        }
        let (pairs, t) = (width / 2, target.into_target());
        let frequencies =
            scaling.frequencies(base, width, positions).map_err(|e| e.within(|| "RotaryEmbedding".into()).at(site))?;
        let factor = scaling.attention_factor();
        let angle = |k: usize| (k / pairs) as f64 * frequencies[k % pairs];
        let table = |of: fn(f64) -> f64| -> Result<Buffer> {
            let numbers: Vec<f64> = (0..positions * pairs).map(|k| of(angle(k)) * factor).collect();
            let made = from_vec(numbers, [positions, pairs], t.clone().dtype(t.dtype_or(DType::F32)))?;
            Ok(Buffer::transient(made))
        };
        Ok(RotaryEmbedding { cos: table(f64::cos)?, sin: table(f64::sin)?, interleaved })
    }
    /// Turns the pairs of x `[..., positions, width]`, whose first position is `offset`: 0, or the length of a cache of keys.
    ///
    /// # Errors
    /// If there are more positions than the tables have.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, offset: usize) -> Result<Tensor> {
        let site = CallSite::here();
        let (all, given) = (self.cos.tensor().shape()[0], x.ndim().checked_sub(2).map_or(0, |d| x.shape()[d]));
        if offset.checked_add(given).is_none_or(|end| end > all) {
            let e = Error::argument(format!("{given} positions from {offset} on; the tables have {all}"));
            return Err(e.in_call(|| format!("RotaryEmbedding({})", x.short())).at(site));
        }
        let inner = inner_calls();
        let part = |b: &Buffer| b.tensor().narrow(0, offset as i64, given as i64)?.cast(x.dtype());
        let (cos, sin) = (part(&self.cos)?, part(&self.sin)?);
        drop(inner);
        let inputs = [Some(x), Some(&cos), Some(&sin)];
        invoke1(op!("rotary_embedding"), &inputs, smallvec![self.interleaved.into()], smallvec![], site)
    }
}
