//! A mixture of experts.

use super::Linear;
use super::init;
use super::module::part;
use crate::error::{CallSite, Error, Result};
use crate::functional::{IntoLayout, IntoTarget};
use crate::sbp::{NdSbp, Sbp};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use serde::{Deserialize, Serialize};

/// Sizes of a [`MixtureOfExperts`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoeOptions {
    /// Width of tokens.
    pub width: usize,
    /// Hidden width of each expert.
    pub hidden: usize,
    /// Number of experts.
    pub experts: usize,
    /// Experts of each token.
    #[serde(default = "two")]
    pub top_k: usize,
    /// Tokens that an expert takes of a group, as a multiple of the even share `top_k · tokens / experts`. What is beyond that is not
    /// computed. With `experts / top_k` or more every token is.
    #[serde(default = "quarter_more")]
    pub capacity_factor: f64,
    /// Groups of tokens, each with a capacity of its own. To be split over ranks their number is to be a multiple of these. Where it
    /// does not divide the tokens the next smaller number does.
    #[serde(default = "eight")]
    pub groups: usize,
}

fn two() -> usize {
    2
}
fn quarter_more() -> f64 {
    1.25
}
fn eight() -> usize {
    8
}

impl MoeOptions {
    /// Two experts for each token, a capacity of 1.25 even shares, eight groups.
    pub fn new(width: usize, hidden: usize, experts: usize) -> MoeOptions {
        MoeOptions { width, hidden, experts, top_k: two(), capacity_factor: quarter_more(), groups: eight() }
    }
}

/// A mixture of experts (GShard, Lepikhin et al., 2020): a gate chooses `top_k` experts for each token, and adds what they compute by
/// its weights. Each expert is a perceptron of two layers with the exact GELU, x Φ(x).
///
/// **Expert parallelism**: split the experts, `S(0)` of `up`, `up_bias`, `down` and `down_bias`, over the mesh axis that splits the
/// tokens. Tokens then travel to their experts and back by two all-to-alls, in backward by two more. Which tokens fit in an expert
/// depends on the groups alone, so results do not depend on ranks.
///
/// ```
/// use oflow::nn::{MixtureOfExperts, Module, MoeOptions};
/// use oflow::prelude::*;
/// oflow::run_ranks(2, |_| {
///     let mesh = Placement::all(Device::Cpu)?;
///     let mut moe = MixtureOfExperts::new(MoeOptions::new(16, 32, 4), (&mesh, sbp![B]))?;
///     moe.to_global(&mesh, &[("up*", sbp![S(0)]), ("down*", sbp![S(0)])])?;
///     let (y, balance) = moe.forward(&randn([64, 16], (&mesh, sbp![S(0)]))?)?;
///     assert_eq!((y.sbp()?, balance.shape()), (&sbp![S(0)], &[][..]));
///     Ok(())
/// })?;
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(crate::nn::Module)]
pub struct MixtureOfExperts {
    /// The gate, weight `[experts, width]`.
    pub gate: Linear,
    /// First layers, `[experts, width, hidden]`.
    pub up: Tensor,
    /// Biases of the first layer, `[experts, 1, hidden]`.
    pub up_bias: Tensor,
    /// Second layers, `[experts, hidden, width]`.
    pub down: Tensor,
    /// Biases of the second layer, `[experts, 1, width]`.
    pub down_bias: Tensor,
    #[module(skip)]
    options: MoeOptions,
}

/// Where the tokens of each group go.
struct Routes {
    /// `[G, S, E · C]`: 1 where a token is at a place of an expert.
    dispatch: Tensor,
    /// The same with the weight of the expert.
    combine: Tensor,
    /// The loss that is least when the experts have as many tokens each.
    balance: Tensor,
}

impl MixtureOfExperts {
    /// Makes experts with new random parameters, initialised as [`Linear`] is.
    ///
    /// # Errors
    /// If there is no expert, no group, or if `top_k` is 0 or above the number of experts.
    #[track_caller]
    pub fn new(options: MoeOptions, target: impl IntoTarget) -> Result<MixtureOfExperts> {
        let (o, t) = (options, target.into_target());
        if o.experts == 0 || o.groups == 0 || o.top_k == 0 || o.top_k > o.experts || o.capacity_factor.is_nan() {
            let (e, k, g) = (o.experts, o.top_k, o.groups);
            return Err(Error::argument(format!("a mixture of {e} experts, {k} for each token of {g} groups"))
                .at(CallSite::here())
                .help("take a group or more, an expert or more, and of them one or more for each token"));
        }
        let bound = |inputs: usize| 1.0 / (inputs.max(1) as f64).sqrt();
        let (up, down) = (bound(o.width), bound(o.hidden));
        Ok(MixtureOfExperts {
            gate: Linear::without_bias(o.width, o.experts, &t)?,
            up: init::uniform([o.experts, o.width, o.hidden], up, &t)?,
            up_bias: init::uniform([o.experts, 1, o.hidden], up, &t)?,
            down: init::uniform([o.experts, o.hidden, o.width], down, &t)?,
            down_bias: init::uniform([o.experts, 1, o.width], down, &t)?,
            options,
        })
    }
    /// Returns the sizes.
    pub fn options(&self) -> MoeOptions {
        self.options
    }
    /// Maps `[…, width]` to `[…, width]`. Also returns the balance of the experts, a number to be added to the loss with a small factor
    /// (0.01): it is 1 when all experts have as many tokens, and grows to their number.
    ///
    /// # Errors
    /// If the width is another.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let _scope = CallSite::here().scope();
        let (o, shape) = (&self.options, x.shape());
        if shape.last() != Some(&o.width) {
            return Err(Error::shape(format!("the experts take tokens of width {}, not {x:?}", o.width)));
        }
        let tokens = x.numel() / o.width.max(1);
        let groups = (1..=o.groups).rev().find(|g| tokens.is_multiple_of(*g)).unwrap_or(1);
        let size = tokens / groups;
        let x = x.reshape([groups as i64, size as i64, o.width as i64])?;
        // Of an even share, at least one token and at most all.
        let share = o.capacity_factor * (o.top_k * size) as f64 / o.experts as f64;
        let capacity = (share.ceil() as usize).clamp(1, size.max(1));
        let routes = part("gate", || self.routes(&x, [groups, size, capacity]))?;
        let sizes = [groups, o.experts, capacity, o.width].map(|n| n as i64);
        // [E, G, C, width], as the groups lie.
        let taken = routes.dispatch.transpose(1, 2)?.matmul(&x)?.reshape(sizes)?.permute([1, 0, 2, 3])?;
        let made = self.experts(&taken)?;
        let places = [groups, o.experts * capacity, o.width].map(|n| n as i64);
        let y = routes.combine.matmul(&made.permute([1, 0, 2, 3])?.reshape(places)?)?;
        let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
        Ok((y.reshape(shape)?, routes.balance))
    }

    fn routes(&self, x: &Tensor, [groups, size, capacity]: [usize; 3]) -> Result<Routes> {
        let (experts, k) = (self.options.experts, self.options.top_k);
        // The probabilities of a half are too coarse to compare.
        let logits = self.gate.forward(x)?;
        let logits = if logits.dtype().is_half() { logits.cast(DType::F32)? } else { logits };
        let dtype = logits.dtype();
        let p = logits.softmax(-1)?;
        let top = p.topk(k, -1, true, true)?;
        let (weights, chosen) = (top[0].div(&top[0].sum_keepdim(-1)?)?, &top[1]);
        // [G, K, S, E]: first choices are placed before second ones.
        let hot = chosen.transpose(1, 2)?.one_hot(experts)?;
        let row = [groups, k * size, experts].map(|n| n as i64);
        let before = hot.reshape(row)?.cumsum(1)?.reshape([groups, k, size, experts].map(|n| n as i64))?;
        // [G, K, S]: the place of the token in the expert that it chose.
        let place = before.mul(&hot)?.sum(-1)?.sub(1)?;
        let fits = place.lt(capacity as i64)?.cast(dtype)?.unsqueeze(-1)?;
        let place = place.clamp(0, capacity as i64 - 1)?.one_hot(capacity)?.cast(dtype)?.mul(&fits)?;
        let hot = hot.cast(dtype)?;
        // [G, S, E, K] · [G, S, K, C].
        let experts_of = hot.permute([0, 2, 3, 1])?;
        let places_of = place.permute([0, 2, 1, 3])?;
        let flat = [groups, size, experts * capacity].map(|n| n as i64);
        let dispatch = experts_of.matmul(&places_of)?.reshape(flat)?;
        let combine = experts_of.mul(&weights.unsqueeze(2)?)?.matmul(&places_of)?.reshape(flat)?;
        let first = hot.narrow(1, 0, 1)?.squeeze(1)?.mean((0, 1))?;
        let balance = first.mul(&p.mean((0, 1))?)?.sum(())?.mul(experts as f64)?;
        Ok(Routes { dispatch: dispatch.cast(x.dtype())?, combine: combine.cast(x.dtype())?, balance })
    }

    /// `[E, G, C, width]` to the same, each expert on its own.
    fn experts(&self, x: &Tensor) -> Result<Tensor> {
        let [experts, groups, capacity, width] = [0, 1, 2, 3].map(|d| x.shape()[d] as i64);
        let Some((here, there)) = self.ways(x)? else {
            return self.computed(&x.reshape([experts, groups * capacity, width])?)?.reshape(x.shape());
        };
        // To the ranks of the experts and back; gradients the same way.
        let x = part("dispatch", || x.to_global((&there).grad_sbp(&here)))?;
        let y = self.computed(&x.reshape([experts, groups * capacity, width])?)?;
        let y = y.reshape([experts, groups, capacity, width])?;
        part("combine", || y.to_global((&here).grad_sbp(&there)))
    }

    fn computed(&self, x: &Tensor) -> Result<Tensor> {
        let h = part("up", || x.matmul(&self.up)?.add(&self.up_bias))?.gelu()?;
        part("down", || h.matmul(&self.down)?.add(&self.down_bias))
    }

    /// The layout of tokens as they are, P reduced, and the layout beside their experts; none where these are not split, or the tokens
    /// lie so.
    fn ways(&self, x: &Tensor) -> Result<Option<(NdSbp, NdSbp)>> {
        let (Some(x), Some(w)) = (x.global(), self.up.global()) else { return Ok(None) };
        if x.placement != w.placement {
            return Ok(None);
        }
        // What ZeRO has divided is read whole.
        let w = self.up.for_use().map_or(w, |how| &how.to);
        let here = x.sbp.map(|s| if s.is_partial() { Sbp::Broadcast } else { s });
        let there: NdSbp =
            here.iter().zip(w.sbp.iter()).map(|(x, w)| if *w == Sbp::Split(0) { Sbp::Split(0) } else { *x }).collect();
        Ok((here != there).then_some((here, there)))
    }
}
