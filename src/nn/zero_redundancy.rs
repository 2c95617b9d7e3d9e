//! ZeRO: parameters, gradients and the states of optimizers divided over a mesh axis that would hold them whole.

use super::module::Module;
use crate::error::{CallSite, Error, Result};
use crate::placement::{MeshAxis, Placement};
use crate::sbp::{NdSbp, Sbp};
use crate::tensor::{ForUse, Tensor, intern_global};
use serde::{Deserialize, Serialize};

/// States that [`zero`] divides, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZeroOptions {
    /// Stage of ZeRO: divides the states of optimizers (1), gradients too (2), parameters too (3), or nothing (0).
    pub stage: u8,
    /// Name or number of the mesh axis over which it is divided: the one that splits the batch.
    #[serde(default = "dp")]
    pub axis: String,
    /// Parameters of fewer logical elements stay whole: messages of a few bytes would cost more than they save.
    #[serde(default = "few")]
    pub min_elements: usize,
}

fn dp() -> String {
    "dp".into()
}

fn few() -> usize {
    1024
}

impl ZeroOptions {
    /// A stage over mesh axis `dp`; parameters of fewer than 1,024 elements stay whole.
    pub fn new(stage: u8) -> ZeroOptions {
        ZeroOptions { stage, axis: dp(), min_elements: few() }
    }
}

/// Divides what a module and its optimizer hold over a mesh axis (ZeRO, Rajbhandari et al., 2020). Each parameter that is B on the
/// axis becomes `S(d)` on it, and calls that read it get it whole, so that the model computes what it computed before. Call it last,
/// after [`Module::to_global`], and make optimizers afterwards: they work on the shards, without communication of their own.
///
/// | stage | parameters | gradients | states | sent by each rank in a step, of the bytes of the parameters |
/// |---|---|---|---|---|
/// | 0 | whole | whole: all-reduced | whole | 2 |
/// | 1 | whole from the first use to the next step | whole | divided | 3 |
/// | 2 | whole from the first use to the next step | divided: reduce-scattered | divided | 2 |
/// | 3 | whole for one call, forward and again in backward | divided | divided | 3 |
///
/// In stages 1 and 2 a rank holds the shard of each parameter beside the whole one. A gradient accumulates over several backward
/// passes in its layout. Other mesh axes keep what they have: a parameter that tensor parallelism has split is divided once more, along
/// a dim that no inner axis splits. It stays whole if there is none, if it is small, or if it is not B on the axis. Frozen parameters
/// are divided in stage 3. Sizes need not be divisible. Checkpoints are read in any stage. Stage 0 makes all whole again.
///
/// A view of a parameter (`chunk`, `t`) that backward needs is kept whole until then. Under [`autocast`](crate::autocast) shards are cast
/// before they are gathered.
///
/// ```
/// use oflow::nn::{Linear, Module, ZeroOptions, zero};
/// use oflow::optim::{AdamW, AdamWOptions};
/// use oflow::prelude::*;
/// oflow::run_ranks(2, |_| {
///     let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2)])?;
///     let mut model = Linear::new(64, 32, (&mesh, sbp![B]))?;
///     zero(&mut model, &ZeroOptions::new(3))?;
///     assert_eq!((model.weight.sbp()?, model.bias.as_ref().map(|b| b.sbp()).transpose()?), (&sbp![S(0)], Some(&sbp![B])));
///     let mut opt = AdamW::new(model.parameters(), AdamWOptions::default());
///     model.forward(&ones([8, 64], (&mesh, sbp![S(0)]))?)?.sum(())?.backward()?;
///     assert_eq!(model.weight.grad().map(|g| g.sbp().cloned()).transpose()?, Some(sbp![S(0)]));
///     opt.step()
/// })?;
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// If the stage is above 3, if a parameter is local, and if its mesh has no such axis.
#[track_caller]
pub fn zero(module: &mut dyn Module, options: &ZeroOptions) -> Result<()> {
    let site = CallSite::here();
    let _scope = site.scope();
    module.map_parameters(&mut |name, t| {
        zero_parameter(t, options).map_err(|e| {
            let (kind, message) = (e.kind(), format!("parameter '{name}': {}", e.message()));
            let named = Error::new(kind, message).at(site);
            match e.help_text() {
                Some(help) => named.help(help.to_string()),
                None => named,
            }
        })
    })
}

/// The same of one parameter: returns a new leaf, or the parameter itself where nothing changes.
///
/// # Errors
/// As [`zero`].
#[track_caller]
pub fn zero_parameter(t: &Tensor, options: &ZeroOptions) -> Result<Tensor> {
    if options.stage > 3 {
        return Err(Error::argument(format!("unknown stage {} of ZeRO", options.stage)).help("choose 0, 1, 2 or 3"));
    }
    let Some(g) = t.global() else {
        return Err(Error::sbp(format!("{t:?} is local; ZeRO divides global tensors"))
            .help("lay the module out first: `module.to_global(&mesh, &[])`"));
    };
    let axis = match options.axis.parse::<usize>() {
        Ok(number) => g.placement.axis(number)?,
        Err(_) => g.placement.axis(options.axis.as_str())?,
    };
    // As it lies without ZeRO, which may have been there before.
    let whole = t.for_use().map_or(&g.sbp, |how| &how.to.sbp);
    let trained = t.requires_grad();
    let stays = options.stage == 0 || (options.stage < 3 && !trained) || t.numel() < options.min_elements;
    let layout = match stays {
        true => whole.clone(),
        false => divided(t.shape(), &g.placement, whole, axis),
    };
    if layout == g.sbp && layout == *whole {
        return Ok(t.clone());
    }
    let new = t.detach().to_global((&g.placement, layout.clone()))?.to_leaf(false)?;
    if layout != *whole {
        let to = intern_global(g.ty.clone(), &g.placement, whole);
        new.set_for_use(ForUse { to, keeps: options.stage < 3, whole_gradient: options.stage == 1 });
    }
    new.requires_grad_(trained)
}

/// The layout with one dim more split, over `axis`: the first dim whose size it divides, or else the largest. A dim that an inner axis
/// splits does not count, because no collective along `axis` could gather it.
fn divided(shape: &[usize], placement: &Placement, whole: &NdSbp, axis: MeshAxis) -> NdSbp {
    let n = placement.dims()[axis.0];
    if n < 2 || !whole[axis.0].is_broadcast() {
        return whole.clone();
    }
    let split_by = |d: usize| (0..whole.len()).filter(move |a| whole[*a] == Sbp::Split(d));
    let parts = |d: usize| split_by(d).map(|a| placement.dims()[a]).product::<usize>();
    let free: Vec<usize> = (0..shape.len()).filter(|d| shape[*d] > 1 && split_by(*d).all(|a| a < axis.0)).collect();
    let even = free.iter().copied().find(|d| shape[*d].is_multiple_of(n * parts(*d)));
    // Of dims of one size the first.
    let largest = free.iter().copied().max_by_key(|d| (shape[*d] / parts(*d), std::cmp::Reverse(*d)));
    match even.or(largest) {
        Some(d) => whole.with(axis.0, Sbp::Split(d)),
        None => whole.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Device;
    use crate::sbp;

    #[test]
    fn the_dim_that_is_split() {
        let mesh = |sizes: &[usize]| {
            let n: usize = sizes.iter().product();
            Placement::new(Device::Cpu, &(0..n).collect::<Vec<_>>(), sizes).unwrap()
        };
        let of = |shape: &[usize], sizes: &[usize], whole: NdSbp, axis: usize| {
            divided(shape, &mesh(sizes), &whole, MeshAxis(axis)).to_string()
        };
        assert_eq!(of(&[6, 4], &[2], sbp![B], 0), "[S(0)]");
        // Uneven everywhere: the largest dim. Even in the second: that.
        assert_eq!(of(&[5, 7], &[2], sbp![B], 0), "[S(1)]");
        assert_eq!(of(&[5, 6], &[3], sbp![B], 0), "[S(1)]");
        // Smaller than the axis; one element in each dim; a scalar; one rank.
        assert_eq!(of(&[3], &[8], sbp![B], 0), "[S(0)]");
        assert_eq!(of(&[1, 1], &[2], sbp![B], 0), "[B]");
        assert_eq!(of(&[], &[2], sbp![B], 0), "[B]");
        assert_eq!(of(&[6, 4], &[1], sbp![B], 0), "[B]");
        // What the axis has already is left.
        assert_eq!(of(&[6, 4], &[2], sbp![S(1)], 0), "[S(1)]");
        assert_eq!(of(&[6, 4], &[2], sbp![P], 0), "[P(sum)]");
        // Beside a split over an inner axis the other dim, over an outer axis any.
        assert_eq!(of(&[8, 4], &[2, 2], sbp![B, S(0)], 0), "[S(1), S(0)]");
        assert_eq!(of(&[8], &[2, 2], sbp![B, S(0)], 0), "[B, S(0)]");
        assert_eq!(of(&[8], &[2, 2], sbp![S(0), B], 1), "[S(0), S(0)]");
        assert_eq!(of(&[6, 4], &[2, 2], sbp![S(0), B], 1), "[S(0), S(1)]");
    }
}
