//! Clipping gradients by their common norm.
//!
//! The gradients of one layout give one sum of squares: a number that is P(sum) on the mesh axes that split them and B on
//! the others. B→P costs nothing (one rank keeps the number), so all of them become P on every axis where one is; then one
//! list, one sum and one reduction serve however many parameters there are. On a GPU, that and the scaling are a few launches.

use super::many::groups;
use crate::context::no_grad;
use crate::error::{CallSite, Error, Result};
use crate::functional::{invoke, invoke1, op, stack};
use crate::placement::Placement;
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::smallvec;
use std::borrow::Borrow;

/// Scales all gradients in place so that their common 2-norm is at most `max_norm`. Returns the norm before scaling: a scalar,
/// B on the placement of the first gradient. Parameters without a gradient are ignored. SBPs and placements may differ. The
/// host does not wait for the norm.
///
/// # Errors
/// If no parameter has a gradient, or if some parameters are local and others global.
#[track_caller]
pub fn clip_grad_norm<T: Borrow<Tensor>>(parameters: impl AsRef<[T]>, max_norm: f64) -> Result<Tensor> {
    let (_quiet, site) = (no_grad(), CallSite::here());
    let _scope = site.scope();
    let grads: Vec<Tensor> = parameters.as_ref().iter().filter_map(|p| p.borrow().grad()).collect();
    let Some(first) = grads.first() else {
        return Err(Error::argument("no parameter has a gradient to clip").help("call `backward()` first"));
    };
    if let Some(g) = grads.iter().find(|g| g.is_global() != first.is_global()) {
        return Err(Error::argument(format!("cannot clip {first:?} together with {g:?}: one is local")));
    }
    let total = total_of_squares(&grads, site)?;
    let norm = total.sqrt()?;
    let factor = norm.add(1e-6)?.rdiv(max_norm)?.clamp_max(1.0)?;
    for group in groups(&grads, |g| g, |_| ()) {
        let mut f = factor.clone();
        if let Ok(p) = group[0].placement()
            && factor.placement()? != p
        {
            f = factor.to_global((p, NdSbp::broadcast(p.axes())))?;
        }
        let inputs: Vec<Option<&Tensor>> = [&f].into_iter().chain(group).map(Some).collect();
        invoke(op!("scale_many"), &inputs, smallvec![], smallvec![], site)?;
    }
    Ok(norm)
}

/// Sum of squares of all elements of all gradients, on the placement of the first: one reduction however many there are.
pub(super) fn total_of_squares(grads: &[Tensor], site: CallSite) -> Result<Tensor> {
    // Squares of halves overflow and lose bits.
    let dtype = if grads.iter().any(|g| g.dtype() == DType::F64) { DType::F64 } else { DType::F32 };
    let mut total: Option<Tensor> = None;
    for placement in placements(grads)? {
        let here: Vec<&Tensor> = grads.iter().filter(|g| g.placement().ok() == placement.as_ref()).collect();
        let mut sum = sum_of_squares(&here, dtype, placement.as_ref(), site)?;
        if let (Some(p), Some(t)) = (&placement, &total)
            && t.placement()? != p
        {
            let home = t.placement()?.clone();
            sum = sum.to_global((&home, NdSbp::broadcast(home.axes())))?;
        }
        total = Some(match total {
            Some(t) => t.add(&sum)?,
            None => sum,
        });
    }
    total.ok_or_else(|| Error::argument("no gradient"))
}

/// The distinct placements, in order of first use; one `None` for local gradients.
fn placements(grads: &[Tensor]) -> Result<Vec<Option<Placement>>> {
    let mut found: Vec<Option<Placement>> = vec![];
    for g in grads {
        let p = if g.is_global() { Some(g.placement()?.clone()) } else { None };
        if !found.contains(&p) {
            found.push(p);
        }
    }
    Ok(found)
}

/// Sum of squares of all elements, B.
fn sum_of_squares(grads: &[&Tensor], dtype: DType, placement: Option<&Placement>, site: CallSite) -> Result<Tensor> {
    let sum = |group: Vec<&Tensor>| {
        let inputs: Vec<Option<&Tensor>> = group.into_iter().map(Some).collect();
        invoke1(op!("sum_of_squares"), &inputs, smallvec![], smallvec![], site)?.cast(dtype)
    };
    let mut parts: Vec<Tensor> =
        groups(grads.iter().copied(), |g| g, |_| ()).into_iter().map(sum).collect::<Result<_>>()?;
    let Some(placement) = placement else {
        return if parts.len() == 1 { Ok(parts.remove(0)) } else { stack(&parts, 0)?.sum(()) };
    };
    let whole = NdSbp::broadcast(placement.axes());
    let mut common = whole.clone();
    for p in &parts {
        for (a, s) in p.sbp()?.iter().enumerate().filter(|(_, s)| s.is_partial()) {
            common = common.with(a, *s);
        }
    }
    let mut parts: Vec<Tensor> = parts.iter().map(|p| p.to_global(&common)).collect::<Result<_>>()?;
    if parts.len() == 1 {
        return parts.remove(0).to_global(&whole);
    }
    stack(&parts, 0)?.sum(())?.to_global(&whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functional::{IntoTarget, randn};
    use crate::placement::Device;
    use crate::{manual_seed, run_ranks, sbp, take_comm_trace};

    /// Leaves with random gradients of those layouts.
    fn leaves(mesh: &Placement, sbps: &[NdSbp]) -> Result<Vec<Tensor>> {
        manual_seed(3);
        sbps.iter()
            .map(|s| {
                let p = randn([5, 6], (mesh, s.clone()).dtype(DType::F64))?.requires_grad_(true)?;
                p.square()?.sum(())?.backward()?;
                Ok(p)
            })
            .collect()
    }

    #[test]
    fn the_norm_over_mixed_sbps_is_the_logical_one_and_costs_one_reduction_per_axis() {
        let want = run_ranks(1, |_| {
            let ps = leaves(&Placement::all(Device::Cpu)?, &vec![sbp![B]; 4])?;
            let mut sum = 0.0;
            for p in &ps {
                sum += p.grad().unwrap().to_f64_vec()?.iter().map(|x| x * x).sum::<f64>();
            }
            Ok(sum.sqrt())
        })
        .unwrap()[0];
        let got = run_ranks(4, |_| {
            let mesh = Placement::new(Device::Cpu, &[0, 1, 2, 3], &[2, 2])?;
            let ps = leaves(&mesh, &[sbp![B, B], sbp![S(0), B], sbp![S(1), S(0)], sbp![B, S(1)]])?;
            let before: Vec<Vec<f64>> = ps.iter().map(|p| p.grad().unwrap().to_f64_vec()).collect::<Result<_>>()?;
            take_comm_trace();
            let norm = clip_grad_norm(&ps, 1.5)?;
            let moving = take_comm_trace().iter().filter(|r| r.bytes_sent() > 0).count();
            assert!(moving <= 2, "{moving} communications for 4 parameters");
            let mut sum = 0.0;
            for (p, b) in ps.iter().zip(&before) {
                let g = p.grad().unwrap();
                assert_eq!(g.sbp()?, p.sbp()?);
                let now = g.to_f64_vec()?;
                assert!(now.iter().zip(b).all(|(n, b)| (n * norm.item().unwrap() - b * 1.5).abs() < 1e-4));
                sum += now.iter().map(|x| x * x).sum::<f64>();
            }
            Ok((norm.item()?, sum.sqrt()))
        })
        .unwrap();
        for (norm, after) in got {
            assert!((norm - want).abs() < 1e-9, "{norm} instead of {want}");
            assert!((after - 1.5).abs() < 1e-5);
        }
    }

    #[test]
    fn small_gradients_stay_and_none_is_an_error() {
        let p = crate::functional::ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
        assert!(clip_grad_norm(std::slice::from_ref(&p), 1.0).unwrap_err().to_string().contains("no parameter"));
        p.sum(()).unwrap().backward().unwrap();
        clip_grad_norm(std::slice::from_ref(&p), 10.0).unwrap();
        assert_eq!(p.grad().unwrap().to_vec::<f32>().unwrap(), [1.0, 1.0]);
    }
}
