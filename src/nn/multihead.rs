//! Attention with several heads between any sequences, with PyTorch's parameters.

use super::Linear;
use super::init;
use super::module::{Module, Part, part_at};
use crate::error::{CallSite, Error, Result};
use crate::functional::{IntoTarget, ScaledDotProductAttentionOptions, attention_weights, cat};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use serde::{Deserialize, Serialize};

/// Sizes of a [`MultiheadAttention`]. PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultiheadOptions {
    /// Width of queries and of the output.
    pub embed_dim: usize,
    /// Number of heads; divides `embed_dim`.
    pub num_heads: usize,
    /// Probability of dropping an attention weight, in training mode.
    #[serde(default)]
    pub dropout: f64,
    /// Whether there are biases.
    #[serde(default = "yes")]
    pub bias: bool,
    /// Width of keys; that of queries unless given.
    #[serde(default)]
    pub kdim: Option<usize>,
    /// Width of values; that of queries unless given.
    #[serde(default)]
    pub vdim: Option<usize>,
    /// Whether the batch is the first dim, and the position in the sequence the second.
    #[serde(default)]
    pub batch_first: bool,
}

fn yes() -> bool {
    true
}

impl MultiheadOptions {
    /// Sizes of heads over one width.
    pub fn new(embed_dim: usize, num_heads: usize) -> MultiheadOptions {
        MultiheadOptions { embed_dim, num_heads, dropout: 0.0, bias: true, kdim: None, vdim: None, batch_first: false }
    }
}

/// Masks of a call of [`MultiheadAttention`], and what the call returns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masks<'a> {
    /// `[B, Tk]`: true at keys that are hidden, or floats that are added to the scores.
    pub key_padding: Option<&'a Tensor>,
    /// `[Tq, Tk]` or `[B · heads, Tq, Tk]`: true where a query does not see a key, or floats that are added to the scores.
    pub attn: Option<&'a Tensor>,
    /// Query i sees keys 0..=i only.
    pub causal: bool,
    /// Returns the weights of attention too, the mean over the heads.
    pub need_weights: bool,
    /// Returns the weights of each head.
    pub each_head: bool,
}

/// Projected keys and values of a [`MultiheadAttention`], each `[B, heads, T, width of a head]`. A decoder that generates token by token
/// keeps them from step to step (a KV cache), and those of the encoder from the first step on.
#[derive(Clone, Debug)]
pub struct KeyValues {
    /// Keys of all positions so far.
    pub keys: Tensor,
    /// Values of all positions so far.
    pub values: Tensor,
}

impl KeyValues {
    /// Returns these keys and values followed by later ones.
    ///
    /// # Errors
    /// If batches or widths differ.
    #[track_caller]
    pub fn followed_by(&self, later: &KeyValues) -> Result<KeyValues> {
        let _scope = CallSite::here().scope();
        Ok(KeyValues { keys: cat(&[&self.keys, &later.keys], 2)?, values: cat(&[&self.values, &later.values], 2)? })
    }
    /// Returns the number of positions.
    pub fn positions(&self) -> usize {
        self.keys.shape().get(2).copied().unwrap_or(0)
    }
}

/// Attention with several heads (PyTorch's `MultiheadAttention`): queries, keys and values are projected, each head attends, and the
/// heads together are projected. Shapes are `[T, B, width]`, with `batch_first` `[B, T, width]`, or `[T, width]` without a batch.
///
/// Parameters: `in_proj_weight` `[3 · embed_dim, embed_dim]` (with widths of keys or values of their own `q_proj_weight`,
/// `k_proj_weight` and `v_proj_weight`), `in_proj_bias`, `out_proj.weight` and `out_proj.bias`.
pub struct MultiheadAttention {
    options: MultiheadOptions,
    /// One weight of all three projections, or one of each.
    weights: Vec<Tensor>,
    bias: Option<Tensor>,
    out: Linear,
    training: bool,
}

impl MultiheadAttention {
    /// Makes heads with PyTorch's initial values: projections uniform by Xavier, biases 0.
    ///
    /// # Errors
    /// If `num_heads` does not divide `embed_dim`.
    #[track_caller]
    pub fn new(options: MultiheadOptions, target: impl IntoTarget) -> Result<MultiheadAttention> {
        let (o, t, site) = (options, target.into_target(), CallSite::here());
        if o.num_heads == 0 || !o.embed_dim.is_multiple_of(o.num_heads) {
            let e = Error::argument(format!("a width of {} cannot be cut into {} heads", o.embed_dim, o.num_heads));
            return Err(e.at(site).help("choose a width that is a multiple of the number of heads"));
        }
        let width = o.embed_dim;
        let xavier = |rows: usize, columns: usize| {
            init::uniform([rows, columns], (6.0 / (rows + columns).max(1) as f64).sqrt(), &t)
        };
        let weights = match (o.kdim, o.vdim) {
            (None, None) => vec![xavier(3 * width, width)?],
            (k, v) => {
                vec![xavier(width, width)?, xavier(width, k.unwrap_or(width))?, xavier(width, v.unwrap_or(width))?]
            }
        };
        let bias = if o.bias { Some(init::constant([3 * width], 0.0, &t)?) } else { None };
        let mut out = Linear::without_bias(width, width, &t)?;
        if o.bias {
            out.bias = Some(init::constant([width], 0.0, &t)?);
        }
        Ok(MultiheadAttention { options, weights, bias, out, training: true })
    }
    /// Returns the sizes.
    pub fn options(&self) -> MultiheadOptions {
        self.options
    }
    /// Attends from queries to keys and values. Nothing is hidden.
    #[track_caller]
    pub fn forward(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
        let _scope = CallSite::here().scope();
        Ok(self.attend(q, k, v, &Masks::default())?.0)
    }
    /// Projects keys and values, for [`forward_from`](MultiheadAttention::forward_from).
    ///
    /// # Errors
    /// If shapes do not belong together.
    #[track_caller]
    pub fn keys_values(&self, k: &Tensor, v: &Tensor) -> Result<KeyValues> {
        let _scope = CallSite::here().scope();
        check_dims([k, k, v])?;
        let weights = self.each_weight()?;
        let biases = self.each_bias()?;
        let one =
            |i: usize, x: &Tensor| self.heads(&self.turned(x)?.linear(&weights[i], biases.as_ref().map(|b| &b[i]))?);
        Ok(KeyValues { keys: one(1, k)?, values: one(2, v)? })
    }
    /// Attends from queries to projected keys and values, under masks.
    ///
    /// # Errors
    /// If shapes do not belong together.
    #[track_caller]
    pub fn forward_from(&self, q: &Tensor, to: &KeyValues, masks: &Masks<'_>) -> Result<(Tensor, Option<Tensor>)> {
        let _scope = CallSite::here().scope();
        check_dims([q, q, q])?;
        let (weight, bias) = (&self.each_weight()?[0], self.each_bias()?);
        let projected = self.heads(&self.turned(q)?.linear(weight, bias.as_ref().map(|b| &b[0]))?)?;
        self.attend_heads([&projected, &to.keys, &to.values], q.ndim() == 3, masks)
    }
    /// Attends under masks. Returns the weights too if they are wanted: `[B, Tq, Tk]`, of each head `[B, heads, Tq, Tk]`.
    ///
    /// # Errors
    /// If shapes do not belong together.
    #[track_caller]
    pub fn forward_with(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        masks: &Masks<'_>,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let _scope = CallSite::here().scope();
        self.attend(q, k, v, masks)
    }

    fn attend(&self, q: &Tensor, k: &Tensor, v: &Tensor, masks: &Masks<'_>) -> Result<(Tensor, Option<Tensor>)> {
        check_dims([q, k, v])?;
        let [projected_q, projected_k, projected_v] = self.projected([q, k, v])?;
        let heads = [self.heads(&projected_q)?, self.heads(&projected_k)?, self.heads(&projected_v)?];
        self.attend_heads([&heads[0], &heads[1], &heads[2]], q.ndim() == 3, masks)
    }

    /// `[B, T, width]`.
    fn turned(&self, x: &Tensor) -> Result<Tensor> {
        match (x.ndim() == 3, self.options.batch_first) {
            (false, _) => x.unsqueeze(0),
            (true, true) => Ok(x.clone()),
            (true, false) => x.transpose(0, 1),
        }
    }

    /// `[B, T, width]` as `[B, heads, T, width of a head]`.
    fn heads(&self, x: &Tensor) -> Result<Tensor> {
        let (b, t) = (x.shape()[0] as i64, x.shape()[1] as i64);
        x.reshape([b, t, self.options.num_heads as i64, -1])?.permute([0, 2, 1, 3])
    }

    /// The result in the shape of the queries.
    fn attend_heads(
        &self,
        [q, k, v]: [&Tensor; 3],
        batched: bool,
        masks: &Masks<'_>,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let o = &self.options;
        let fits =
            k.ndim() == 4 && v.ndim() == 4 && k.shape()[..2] == q.shape()[..2] && k.shape()[..3] == v.shape()[..3];
        if !fits {
            let e = Error::shape(format!("queries {q:?} do not fit keys {k:?} and values {v:?}"));
            return Err(e.at(CallSite::here()));
        }
        let (b, tq, tk) = (q.shape()[0], q.shape()[2], k.shape()[2]);
        let mask = self.mask(masks, [b, tq, tk], q.dtype())?;
        let dropout = if self.training { o.dropout } else { 0.0 };
        let (y, weights) = if masks.need_weights || masks.each_head || (mask.is_some() && masks.causal) {
            let weights = attention_weights(q, k, mask.as_ref(), dropout, masks.causal)?;
            let y = weights.matmul(v)?;
            let shown = match (masks.each_head, masks.need_weights) {
                (true, _) => Some(weights),
                (false, true) => Some(weights.mean(1)?),
                (false, false) => None,
            };
            (y, shown)
        } else {
            let options = ScaledDotProductAttentionOptions::default();
            (q.scaled_dot_product_attention_with(k, v, mask.as_ref(), dropout, masks.causal, &options)?, None)
        };
        let y = y.permute([0, 2, 1, 3])?.reshape([b as i64, tq as i64, -1])?;
        let y = part_at("out_proj", CallSite::here(), || self.out.forward(&y))?;
        let y = match (batched, o.batch_first) {
            (false, _) => y.squeeze(0)?,
            (true, true) => y,
            (true, false) => y.transpose(0, 1)?,
        };
        let weights = weights.map(|w| if batched { Ok(w) } else { w.squeeze(0) }).transpose()?;
        Ok((y, weights))
    }

    /// Queries, keys and values `[B, T, embed_dim]`: one product where all three are one tensor.
    fn projected(&self, from: [&Tensor; 3]) -> Result<[Tensor; 3]> {
        let three = |v: Vec<Tensor>| -> Result<[Tensor; 3]> {
            v.try_into()
                .map_err(|v: Vec<Tensor>| Error::shape(format!("expected 3 projections (q, k, v), got {}", v.len())))
        };
        if self.weights.len() == 1 && from[1].same(from[0]) && from[2].same(from[0]) {
            return three(self.turned(from[0])?.linear(&self.weights[0], self.bias.as_ref())?.chunk(3, -1)?);
        }
        let (weights, biases) = (self.each_weight()?, self.each_bias()?);
        let one = |i: usize| self.turned(from[i])?.linear(&weights[i], biases.as_ref().map(|b| &b[i]));
        Ok([one(0)?, one(1)?, one(2)?])
    }

    /// The weights of the three projections.
    fn each_weight(&self) -> Result<Vec<Tensor>> {
        if self.weights.len() == 1 { self.weights[0].chunk(3, 0) } else { Ok(self.weights.clone()) }
    }

    /// Biases of the projections.
    fn each_bias(&self) -> Result<Option<Vec<Tensor>>> {
        self.bias.as_ref().map(|b| b.chunk(3, 0)).transpose()
    }

    /// Both masks as one that attention takes: true where a query sees a key, or floats that are added.
    fn mask(&self, masks: &Masks<'_>, [b, tq, tk]: [usize; 3], dtype: DType) -> Result<Option<Tensor>> {
        let heads = self.options.num_heads;
        let shaped = |t: &Tensor, shape: [usize; 4], what: &str| match t.numel() == shape.iter().product::<usize>() {
            true => t.reshape(shape.map(|n| n as i64)),
            false => Err(Error::shape(format!(
                "{what} has shape {:?}, which does not fit {b} sequences of {tq} queries and {tk} keys",
                t.shape()
            ))),
        };
        let of = |t: &Tensor| match t.ndim() {
            3 => shaped(t, [b, heads, tq, tk], "the mask"),
            _ => shaped(t, [1, 1, tq, tk], "the mask"),
        };
        let attn = masks.attn.map(of).transpose()?;
        let padding = masks.key_padding.map(|t| shaped(t, [b, 1, 1, tk], "the padding of keys")).transpose()?;
        // What is true is hidden.
        let added = |t: &Tensor| match t.dtype() {
            DType::Bool => t.cast(dtype)?.mul(0.0)?.masked_fill(t, f64::NEG_INFINITY),
            _ => Ok(t.clone()),
        };
        match (attn, padding) {
            (None, None) => Ok(None),
            (Some(m), None) | (None, Some(m)) if m.dtype() == DType::Bool => Ok(Some(m.logical_not()?)),
            (Some(m), None) | (None, Some(m)) => Ok(Some(m)),
            (Some(a), Some(p)) if a.dtype() == DType::Bool && p.dtype() == DType::Bool => {
                Ok(Some(a.logical_or(&p)?.logical_not()?))
            }
            (Some(a), Some(p)) => Ok(Some(added(&a)?.add(&added(&p)?)?)),
        }
    }

    fn names(&self) -> &'static [&'static str] {
        match self.weights.len() {
            1 => &["in_proj_weight"],
            _ => &["q_proj_weight", "k_proj_weight", "v_proj_weight"],
        }
    }
}

fn check_dims([q, k, v]: [&Tensor; 3]) -> Result<()> {
    if (2..=3).contains(&q.ndim()) && k.ndim() == q.ndim() && v.ndim() == q.ndim() {
        return Ok(());
    }
    let e = Error::shape(format!("attention takes [T, B, width] or [T, width], not {q:?}, {k:?} and {v:?}"));
    Err(e.at(CallSite::here()))
}

impl Part for MultiheadAttention {
    fn visit<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Tensor)) {
        self.names().iter().zip(&self.weights).for_each(|(n, t)| f(&init::dotted(name, n), t));
        self.bias.visit(&init::dotted(name, "in_proj_bias"), f);
        self.out.visit(&init::dotted(name, "out_proj"), f);
    }
    fn visit_mut(&mut self, name: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        self.names().iter().zip(&mut self.weights).try_for_each(|(n, t)| f(&init::dotted(name, n), t))?;
        self.bias.visit_mut(&init::dotted(name, "in_proj_bias"), f)?;
        self.out.visit_mut(&init::dotted(name, "out_proj"), f)
    }
    fn set_training(&mut self, on: bool) {
        self.training = on;
    }
}
impl Module for MultiheadAttention {}
