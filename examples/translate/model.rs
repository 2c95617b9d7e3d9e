//! The model of `main.rs`: an encoder, and a decoder that can keep the keys and values of what it has read and written.

use super::common::model::on_axis;
use super::words::{BEGIN, PAD};
use oflow::nn::{Embedding, KeyValues, LayerNorm, Linear, Masks, Mlp, MultiheadAttention, MultiheadOptions};
use oflow::prelude::*;

/// Sizes of a model.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Size of the vocabulary: the letters and three special tokens.
    pub tokens: usize,
    /// Tokens of the longest text.
    pub positions: usize,
    pub width: usize,
    pub heads: usize,
    /// Layers of the encoder, and of the decoder.
    pub layers: usize,
}

/// Attention that leaves the three projections separate, so that each can be split by heads.
fn attention(s: &Sizes, target: impl IntoTarget) -> Result<MultiheadAttention> {
    let width = Some(s.width);
    let o = MultiheadOptions { batch_first: true, kdim: width, vdim: width, ..MultiheadOptions::new(s.width, s.heads) };
    MultiheadAttention::new(o, target)
}

#[derive(oflow::nn::Module)]
struct EncoderLayer {
    norm1: LayerNorm,
    attn: MultiheadAttention,
    norm2: LayerNorm,
    mlp: Mlp,
}

#[derive(oflow::nn::Module)]
struct DecoderLayer {
    norm1: LayerNorm,
    attn: MultiheadAttention,
    norm2: LayerNorm,
    cross: MultiheadAttention,
    norm3: LayerNorm,
    mlp: Mlp,
}

impl DecoderLayer {
    /// The positions of `x`, which follow those of `before`. Returns the keys and values of all of them too.
    fn forward(
        &self,
        x: &Tensor,
        before: Option<&KeyValues>,
        source: &KeyValues,
        hidden: &Tensor,
    ) -> Result<(Tensor, KeyValues)> {
        let h = self.norm1.forward(x)?;
        let own = self.attn.keys_values(&h, &h)?;
        let (own, causal) = match before {
            // A single position sees all before it.
            Some(before) => (before.followed_by(&own)?, false),
            None => (own, true),
        };
        let x = x.add(&self.attn.forward_from(&h, &own, &Masks { causal, ..Default::default() })?.0)?;
        let masks = Masks { key_padding: Some(hidden), ..Default::default() };
        let x = x.add(&self.cross.forward_from(&self.norm2.forward(&x)?, source, &masks)?.0)?;
        Ok((x.add(&self.mlp.forward(&self.norm3.forward(&x)?)?)?, own))
    }
}

#[derive(oflow::nn::Module)]
pub struct Translator {
    tokens: Embedding,
    positions: Embedding,
    encoder: Vec<EncoderLayer>,
    decoder: Vec<DecoderLayer>,
    norm: LayerNorm,
    head: Linear,
}

/// What the decoder keeps of a source, and of what it has written.
pub struct Cache {
    /// True at padding of the source.
    hidden: Tensor,
    /// Of each layer: keys and values of the source.
    source: Vec<KeyValues>,
    /// Of each layer: keys and values of the positions so far.
    own: Vec<Option<KeyValues>>,
    written: usize,
}

impl Translator {
    pub fn new(s: &Sizes, target: impl IntoTarget) -> Result<Translator> {
        let t = target.into_target();
        let (norm, mlp) = (|| LayerNorm::new(s.width, &t), || Mlp::new(s.width, 4 * s.width, &t));
        let encoder = |_| Ok(EncoderLayer { norm1: norm()?, attn: attention(s, &t)?, norm2: norm()?, mlp: mlp()? });
        let decoder = |_| {
            Ok(DecoderLayer {
                norm1: norm()?,
                attn: attention(s, &t)?,
                norm2: norm()?,
                cross: attention(s, &t)?,
                norm3: norm()?,
                mlp: mlp()?,
            })
        };
        Ok(Translator {
            tokens: Embedding::with_std(s.tokens, s.width, 0.3, &t)?,
            positions: Embedding::with_std(s.positions, s.width, 0.3, &t)?,
            encoder: (0..s.layers).map(encoder).collect::<Result<_>>()?,
            decoder: (0..s.layers).map(decoder).collect::<Result<_>>()?,
            norm: norm()?,
            head: Linear::new(s.width, s.tokens, &t)?,
        })
    }
    /// Rules that split heads and hidden units over mesh axis `tp`.
    pub fn split_rules(mesh: &Placement) -> Result<Vec<(&'static str, NdSbp)>> {
        let split = |dim| on_axis(mesh, "tp", Sbp::Split(dim));
        Ok(vec![
            ("*_proj_weight", split(0)?),
            ("*.out_proj.weight", split(1)?),
            ("*.mlp.fc.*", split(0)?),
            ("*.mlp.pr.weight", split(1)?),
        ])
    }
    /// Tokens with their positions, counted from `first`.
    fn embedded(&self, ids: &Tensor, first: usize) -> Result<Tensor> {
        let place = ids.placement()?;
        let numbers = arange(ids.shape()[1] as i64, (place, NdSbp::broadcast(place.axes())))?.add(first as i64)?;
        self.tokens.forward(ids)?.add(&self.positions.forward(&numbers)?)
    }
    /// What a decoder starts from, of sources `i64[B, T]`.
    pub fn encode(&self, source: &Tensor) -> Result<Cache> {
        let hidden = source.eq(PAD)?;
        let masks = Masks { key_padding: Some(&hidden), ..Default::default() };
        let mut x = self.embedded(source, 0)?;
        for (i, layer) in self.encoder.iter().enumerate() {
            let _scope = oflow::name_scope(&format!("encoder.{i}"));
            let h = layer.norm1.forward(&x)?;
            x = x.add(&layer.attn.forward_with(&h, &h, &h, &masks)?.0)?;
            x = x.add(&layer.mlp.forward(&layer.norm2.forward(&x)?)?)?;
        }
        let source = self.decoder.iter().map(|layer| layer.cross.keys_values(&x, &x)).collect::<Result<_>>()?;
        Ok(Cache { hidden, source, own: self.decoder.iter().map(|_| None).collect(), written: 0 })
    }
    /// Logits `[B, T, tokens]` of what follows each of `ids`, `i64[B, T]`, which follow what is in the cache.
    pub fn decode(&self, ids: &Tensor, cache: &mut Cache) -> Result<Tensor> {
        let mut x = self.embedded(ids, cache.written)?;
        for (i, layer) in self.decoder.iter().enumerate() {
            let _scope = oflow::name_scope(&format!("decoder.{i}"));
            let (y, own) = layer.forward(&x, cache.own[i].as_ref(), &cache.source[i], &cache.hidden)?;
            (x, cache.own[i]) = (y, Some(own));
        }
        cache.written += ids.shape()[1];
        self.head.forward(&self.norm.forward(&x)?)
    }
    /// The most likely tokens `i64[B, steps]`. Without `cached` each step decodes all that is written so far.
    pub fn generate(&self, source: &Tensor, steps: usize, cached: bool) -> Result<Tensor> {
        let _guard = no_grad();
        let mut cache = self.encode(source)?;
        let (place, layout) = (source.placement()?, source.sbp()?);
        let mut written = full([source.shape()[0], 1], BEGIN, (place, layout.clone()))?;
        for step in 0..steps {
            let logits = if cached {
                self.decode(&written.narrow(1, step as i64, 1)?, &mut cache)?
            } else {
                let own = self.decoder.iter().map(|_| None).collect();
                let mut fresh = Cache { hidden: cache.hidden.clone(), source: cache.source.clone(), own, written: 0 };
                self.decode(&written, &mut fresh)?.narrow(1, step as i64, 1)?
            };
            written = cat(&[&written, &logits.argmax(-1)?.to_global(layout)?], 1)?;
        }
        written.narrow(1, 1, steps as i64)
    }
}
