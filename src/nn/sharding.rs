//! Sharding a module by rules on the names of its parameters.

use super::module::Module;
use crate::error::{CallSite, Error, Result};
use crate::placement::Placement;
use crate::sbp::{NdSbp, check_layout};
use crate::tensor::Tensor;

/// Whether a name matches a pattern: `*` matches any characters including dots, `?` matches one character.
///
/// ```
/// use oflow::nn::glob;
/// assert!(glob("h.*.attn.?.weight", "h.11.attn.q.weight"));
/// assert!(!glob("h.*.weight", "head.weight"));
/// ```
pub fn glob(pattern: &str, name: &str) -> bool {
    let (p, n) = (pattern.as_bytes(), name.as_bytes());
    // After a mismatch the last star takes one more character: linear memory, no recursion.
    let (mut i, mut j, mut star) = (0, 0, None);
    while j < n.len() {
        match p.get(i) {
            Some(b'*') => {
                star = Some((i, j));
                i += 1;
            }
            Some(c) if *c == b'?' || *c == n[j] => {
                i += 1;
                j += 1;
            }
            _ => match star {
                Some((s, at)) => {
                    star = Some((s, at + 1));
                    i = s + 1;
                    j = at + 1;
                }
                None => return false,
            },
        }
    }
    p[i..].iter().all(|c| *c == b'*')
}

pub(super) fn to_global(
    module: &mut dyn Module,
    placement: &Placement,
    rules: &[(&str, NdSbp)],
    site: CallSite,
) -> Result<()> {
    let _scope = site.scope();
    let mut names: Vec<String> = module.named_parameters().into_iter().map(|(n, _)| n).collect();
    names.extend(module.named_buffers().into_iter().map(|(n, _)| n));
    if let Some((pattern, _)) = rules.iter().find(|(p, _)| !names.iter().any(|n| glob(p, n))) {
        return Err(Error::argument(format!("the sharding rule '{pattern}' matches no parameter"))
            .at(site)
            .help(format!("the parameters are {}", names.join(", "))));
    }
    let laid = |kind: &str, name: &str, t: &Tensor| {
        let sbp = match rules.iter().find(|(p, _)| glob(p, name)) {
            Some((_, sbp)) => sbp.clone(),
            None => NdSbp::broadcast(placement.axes()),
        };
        check_layout(t.shape(), t.dtype(), placement, &sbp).map_err(|e| {
            Error::sbp(format!("{kind} '{name}', {t:?}, cannot be laid out as {sbp}: {}", e.message())).at(site)
        })?;
        // A local parameter is whole on every rank, so it enters as B and is cut afterwards.
        let whole = match t.is_global() {
            true => t.detach(),
            false => t.detach().to_global((placement, NdSbp::broadcast(placement.axes())))?,
        };
        whole.to_global((placement, sbp))
    };
    module.map_parameters(&mut |name, t| laid("parameter", name, t)?.requires_grad_(t.requires_grad()))?;
    module.visit_buffers_mut("", &mut |name, b| {
        b.set(laid("buffer", name, b.tensor())?);
        Ok(())
    })
}

/// Switches the gradients of the parameters that match a pattern.
pub(super) fn require_gradients(named: &[(String, Tensor)], pattern: &str, on: bool, site: CallSite) -> Result<()> {
    let mut any = false;
    for (_, t) in named.iter().filter(|(name, _)| glob(pattern, name)) {
        any = true;
        t.clone().requires_grad_(on).map_err(|e| e.at(site))?;
        if !on {
            t.put_grad(None);
        }
    }
    match any {
        true => Ok(()),
        false => {
            let names: Vec<&str> = named.iter().map(|(n, _)| n.as_str()).collect();
            Err(Error::argument(format!("'{pattern}' matches no parameter"))
                .at(site)
                .help(format!("the parameters are {}", names.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::Linear;
    use crate::placement::Device;
    use crate::sbp;

    #[test]
    fn patterns() {
        for (p, n, yes) in [
            ("*", "", true),
            ("a*b*c", "a.b.b.c", true),
            ("a*b", "a.b.c", false),
            ("?.w", "1.w", true),
            ("?.w", "11.w", false),
            ("", "a", false),
        ] {
            assert_eq!(glob(p, n), yes, "{p} {n}");
        }
    }

    #[test]
    fn a_rule_that_matches_nothing_is_an_error_and_values_stay() {
        crate::run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let mut l = Linear::new(4, 5, (&mesh, sbp![B]))?;
            let before = l.weight.to_vec::<f32>()?;
            let e = l.to_global(&mesh, &[("wieght", sbp![S(0)])]).unwrap_err().to_string();
            assert!(e.contains("'wieght' matches no parameter") && e.contains("weight, bias"), "{e}");
            let e = l.to_global(&mesh, &[("*", sbp![S(1)])]).unwrap_err().to_string();
            assert!(e.contains("parameter 'bias'") && e.contains("1 dims"), "{e}");
            l.to_global(&mesh, &[("weight", sbp![S(1)])])?;
            assert_eq!(l.weight.sbp()?, &sbp![S(1)]);
            assert_eq!(l.weight.to_vec::<f32>()?, before);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn i15_frozen_parameters_and_buffers_are_written_like_others() {
        use crate::functional::full;
        use crate::nn::{Buffer, ZeroOptions, zero};
        crate::run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2)])?;
            for stage in [0, 3] {
                let mut l = Linear::new(4, 6, Device::Cpu)?;
                l.freeze("*")?;
                l.to_global(&mesh, &[("weight", sbp![B])])?;
                zero(&mut l, &ZeroOptions { min_elements: 0, ..ZeroOptions::new(stage) })?;
                let given = [("weight".to_string(), full([6, 4], 2.0, Device::Cpu)?)];
                l.load_tensors(&given, false)?;
                l.weight.mul_(3.0)?;
                assert_eq!(l.weight.to_vec::<f32>()?, [6.0; 24]);
                assert!(!l.weight.requires_grad());
            }
            let x = full([2], 1.0, (&mesh, sbp![B]))?;
            assert!(x.detach().add_(1.0).unwrap_err().to_string().contains("views of global tensors are values"));
            for own in [x.detach().to_leaf(false)?, Buffer::new(x.detach()).tensor().clone()] {
                own.add_(1.0)?;
                assert_eq!((own.to_vec::<f32>()?, x.to_vec::<f32>()?), (vec![2.0; 2], vec![1.0; 2]));
            }
            Ok(())
        })
        .unwrap();
    }
}
