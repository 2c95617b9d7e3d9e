//! Calls that take many tensors at once: those that lie alike go together.

use crate::tensor::Tensor;

/// Whether one call may take both: local ones of one device, or global ones of one layout.
fn alike(a: &Tensor, b: &Tensor) -> bool {
    match (a.global(), b.global()) {
        (Some(a), Some(b)) => a.placement == b.placement && a.sbp == b.sbp,
        (None, None) => a.device() == b.device(),
        _ => false,
    }
}

/// Puts items together whose tensors (`of`) lie alike and that have one `key`, in the order of their first.
pub fn groups<T, K: PartialEq>(
    items: impl IntoIterator<Item = T>,
    of: impl Fn(&T) -> &Tensor,
    key: impl Fn(&T) -> K,
) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = vec![];
    for item in items {
        let fits = |g: &&mut Vec<T>| alike(of(&g[0]), of(&item)) && key(&g[0]) == key(&item);
        match groups.iter_mut().find(fits) {
            Some(g) => g.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::no_grad;
    use crate::error::{CallSite, Result};
    use crate::functional::{IntoTarget, invoke, op, randn, zeros_like};
    use crate::optim::{AdamW, AdamWOptions, OptimizerExt};
    use crate::placement::{Device, Placement};
    use crate::sbp::NdSbp;
    use crate::{manual_seed, run_ranks, sbp};
    use oflow_kernels::DType;
    use smallvec::smallvec;

    fn leaves(mesh: &Placement, layouts: &[(NdSbp, DType)]) -> Result<Vec<Tensor>> {
        manual_seed(5);
        let leaf = |(s, d): &(NdSbp, DType)| {
            let p = randn([5, 6], (mesh, s.clone()).dtype(*d))?.requires_grad_(true)?;
            p.square()?.sum(())?.backward()?;
            Ok(p)
        };
        layouts.iter().map(leaf).collect()
    }

    #[test]
    fn what_lies_alike_goes_together_and_gives_the_numbers_of_single_steps() {
        run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let (f, h) = (DType::F32, DType::BF16);
            let layouts = [(sbp![S(0)], f), (sbp![B], f), (sbp![S(0)], h), (sbp![S(1)], f), (sbp![B], f)];
            let (many, single) = (leaves(&mesh, &layouts)?, leaves(&mesh, &layouts)?);
            let sizes: Vec<usize> = groups(&many, |p| p, |_| ()).iter().map(Vec::len).collect();
            assert_eq!(sizes, [2, 2, 1]);
            let mut opt = AdamW::new(many.clone(), AdamWOptions { lr: 0.1, ..Default::default() });
            opt.step()?;
            let _quiet = no_grad();
            for (p, other) in single.iter().zip(&many) {
                let (g, m, v) = (p.grad().unwrap(), zeros_like(p)?, zeros_like(p)?);
                let o = AdamWOptions { lr: 0.1, ..Default::default() };
                let numbers = [o.lr, o.beta1, o.beta2, o.eps, o.weight_decay];
                let runtime = numbers.into_iter().map(Into::into).chain([1i64.into()]).collect();
                let inputs = [Some(p), Some(&g), Some(&m), Some(&v)];
                invoke(op!("adamw_step"), &inputs, smallvec![], runtime, CallSite::here())?;
                assert_eq!(p.to_f64_vec()?, other.to_f64_vec()?);
            }
            Ok(())
        })
        .unwrap();
    }
}
