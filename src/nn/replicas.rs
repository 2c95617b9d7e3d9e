//! Data parallelism of local tensors: each rank trains a module of its own on rows of its own, with common gradients.

use super::module::Module;
use crate::context::{current_rank, no_grad};
use crate::error::{CallSite, Error, Result};
use crate::functional::{box_many, cat, from_vec, zeros_like};
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp};
use crate::tensor::Tensor;
use oflow_kernels::DType;

/// Data parallelism of a module whose parameters are local tensors (PyTorch's `DistributedDataParallel`). Each rank computes on its own
/// rows, by any program: branches on the rank are allowed. [`reduce_gradients`](Replicas::reduce_gradients) after backward makes each
/// gradient the mean over the ranks, so that optimizers of all ranks take the same step. With global tensors none of this is needed:
/// see [the guide](crate::docs::guide).
///
/// ```
/// use oflow::nn::{Linear, Module, Replicas};
/// use oflow::optim::{Sgd, SgdOptions};
/// use oflow::prelude::*;
/// oflow::run_ranks(2, |world| {
///     let net = Linear::new(3, 1, Device::Cpu)?;
///     let replicas = Replicas::new(&net, &Placement::all(Device::Cpu)?)?; // the values of rank 0
///     let mut opt = Sgd::new(net.parameters(), SgdOptions::default());
///     net.forward(&full([4, 3], world.rank() as f64, Device::Cpu)?)?.mean(())?.backward()?;
///     let unused = replicas.reduce_gradients(&net)?;
///     assert!(unused.is_empty());
///     assert_eq!(net.weight.grad().unwrap().to_vec::<f32>()?, [0.5; 3]);
///     opt.step()
/// })?;
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct Replicas {
    placement: Placement,
    bucket_bytes: usize,
}

impl Replicas {
    /// Gives the module the parameters and buffers of the first rank of a placement, on which all ranks of the job must be. Every rank
    /// calls it, with a module of the same parameters.
    ///
    /// # Errors
    /// If ranks are missing in the placement, if a parameter is global, or if shapes differ between ranks.
    #[track_caller]
    pub fn new(module: &dyn Module, placement: &Placement) -> Result<Replicas> {
        let site = CallSite::here();
        let world = current_rank()?.world();
        if placement.len() != world {
            return Err(Error::placement(format!(
                "{placement} has {} of the {world} ranks of the job",
                placement.len()
            ))
            .at(site)
            .help("give `Placement::all`, and start as many ranks as train"));
        }
        let replicas = Replicas { placement: flat(placement)?, bucket_bytes: 25 << 20 };
        let _scope = site.scope();
        replicas.same(&module.named_parameters(), site)?;
        replicas.same(&buffers(module), site)?;
        Ok(replicas)
    }
    /// Sets how many bytes of gradients are reduced as one tensor; 25 MiB at first.
    #[must_use]
    pub fn with_bucket_bytes(self, bytes: usize) -> Replicas {
        Replicas { bucket_bytes: bytes, ..self }
    }
    /// Gives the module the buffers (running statistics) of the first rank. Every rank calls it.
    ///
    /// # Errors
    /// If a buffer is global, or if shapes differ between ranks.
    #[track_caller]
    pub fn same_buffers(&self, module: &dyn Module) -> Result<()> {
        let site = CallSite::here();
        let _scope = site.scope();
        self.same(&buffers(module), site)
    }
    /// Makes each gradient the mean over the ranks, in few large messages. Call it on every rank after backward, before gradients are
    /// clipped or read. A rank that has no gradient of a parameter counts as zero. Returns the names of the parameters that have none on
    /// any rank (PyTorch finds them with `find_unused_parameters`): their gradients stay away, so optimizers leave them as they are.
    ///
    /// # Errors
    /// If a parameter is global, or if shapes differ between ranks.
    #[track_caller]
    pub fn reduce_gradients(&self, module: &dyn Module) -> Result<Vec<String>> {
        let (_quiet, site) = (no_grad(), CallSite::here());
        let _scope = site.scope();
        let all: Vec<(String, Tensor)> =
            module.named_parameters().into_iter().filter(|(_, p)| p.requires_grad()).collect();
        check_local(&all, site)?;
        let used = self.used(&all)?;
        let (mut due, mut unused) = (vec![], vec![]);
        for ((name, p), used) in all.into_iter().zip(used) {
            if used { due.push(p) } else { unused.push(name) }
        }
        let buckets = self.buckets(due);
        let whole = NdSbp::broadcast(1);
        let mut flat = vec![];
        for bucket in &buckets {
            let parts: Vec<Tensor> = bucket.iter().map(gradient_row).collect::<Result<_>>()?;
            let row = cat(&parts, 0)?;
            // Halves lose bits with every addition.
            let row = if row.dtype().is_half() { row.cast(DType::F32)? } else { row };
            flat.push(row.to_global((&self.placement, NdSbp::from_iter([Sbp::PARTIAL_SUM])))?);
        }
        let ways: Vec<(&Tensor, &NdSbp)> = flat.iter().map(|row| (row, &whole)).collect();
        let reduced = box_many(&ways)?;
        for (bucket, row) in buckets.iter().zip(reduced) {
            let row = row.to_local()?.div(self.placement.len() as f64)?.cast(bucket[0].dtype())?;
            let mut from = 0;
            for p in bucket {
                let n = p.numel();
                p.put_grad(Some(row.narrow(0, from as i64, n)?.reshape(p.shape())?));
                from += n;
            }
        }
        Ok(unused)
    }

    /// Parameters whose gradients are reduced as one tensor: of one dtype, in their order.
    fn buckets(&self, parameters: Vec<Tensor>) -> Vec<Vec<Tensor>> {
        let mut all: Vec<(usize, Vec<Tensor>)> = vec![];
        for p in parameters {
            let bytes = p.numel() * p.dtype().size();
            let open = all.iter_mut().rev().find(|(_, b)| b[0].dtype() == p.dtype());
            match open {
                Some((sum, bucket)) if *sum + bytes <= self.bucket_bytes => {
                    *sum += bytes;
                    bucket.push(p);
                }
                _ => all.push((bytes, vec![p])),
            }
        }
        all.into_iter().map(|(_, bucket)| bucket).collect()
    }

    /// For each parameter, whether it has a gradient on any rank.
    fn used(&self, all: &[(String, Tensor)]) -> Result<Vec<bool>> {
        let have: Vec<f32> = all.iter().map(|(_, p)| f32::from(u8::from(p.grad().is_some()))).collect();
        let have = from_vec(have, [all.len()], Device::Cpu)?;
        let host = self.placement.on(Device::Cpu);
        let counts = have.to_global((&host, NdSbp::from_iter([Sbp::PARTIAL_SUM])))?.to_global(NdSbp::broadcast(1))?;
        Ok(counts.to_local()?.to_vec::<f32>()?.into_iter().map(|n| n > 0.0).collect())
    }

    /// Gives tensors the values of the first rank.
    fn same(&self, all: &[(String, Tensor)], site: CallSite) -> Result<()> {
        let _quiet = no_grad();
        check_local(all, site)?;
        for (_, t) in all {
            // The shards of a B tensor are made equal by a broadcast.
            let first = t.detach().copy()?.to_global((&self.placement, NdSbp::broadcast(1)))?;
            t.copy_(&first.to_local()?)?;
        }
        Ok(())
    }
}

/// The ranks of a placement as a mesh of one axis.
fn flat(placement: &Placement) -> Result<Placement> {
    Placement::new(placement.device(), placement.ranks(), &[placement.len()])
}

/// The gradient in one dim; zeros where this rank has none.
fn gradient_row(p: &Tensor) -> Result<Tensor> {
    let g = match p.grad() {
        Some(g) => g,
        None => zeros_like(p)?,
    };
    g.reshape([g.numel() as i64])
}

/// The buffers of a module, by name.
fn buffers(module: &dyn Module) -> Vec<(String, Tensor)> {
    module.named_buffers().into_iter().map(|(name, b)| (name, b.tensor().clone())).collect()
}

fn check_local(all: &[(String, Tensor)], site: CallSite) -> Result<()> {
    match all.iter().find(|(_, t)| t.is_global()) {
        None => Ok(()),
        Some((name, t)) => Err(Error::sbp(format!("'{name}', {t:?}, is global: its gradient is reduced in backward"))
            .at(site)
            .help("`Replicas` is for modules of local tensors")),
    }
}
