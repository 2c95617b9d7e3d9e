//! Loading tensors by name into a module, in memory.

use crate::context::no_grad;
use crate::error::{CallSite, Error, Result};
use crate::functional::distribute;
use crate::tensor::Tensor;

/// Names that a load did not match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Names of the module that were not given.
    pub missing: Vec<String>,
    /// Given names that the module does not have.
    pub unexpected: Vec<String>,
}

pub(super) fn load_tensors(
    own: &[(String, Tensor)],
    given: &[(String, Tensor)],
    strict: bool,
    site: CallSite,
) -> Result<Unmatched> {
    let (_quiet, _scope) = (no_grad(), site.scope());
    let of = |list: &[(String, Tensor)], other: &[(String, Tensor)]| -> Vec<String> {
        let there = |name: &String| other.iter().any(|(n, _)| n == name);
        list.iter().map(|(n, _)| n).filter(|n| !there(n)).cloned().collect()
    };
    let unmatched = Unmatched { missing: of(own, given), unexpected: of(given, own) };
    if strict && unmatched != Unmatched::default() {
        let part = |what: &str, names: &[String]| match names {
            [] => None,
            names => Some(format!("{what}: {}", names.join(", "))),
        };
        let parts = [part("missing names", &unmatched.missing), part("unexpected names", &unmatched.unexpected)];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
        return Err(Error::argument(format!("the tensors do not fit the module: {text}"))
            .at(site)
            .help("load what fits by name with `strict: false`"));
    }
    let pairs: Vec<(&String, &Tensor, &Tensor)> =
        own.iter().filter_map(|(name, t)| Some((name, t, &given.iter().find(|(n, _)| n == name)?.1))).collect();
    // Nothing is changed by tensors that do not fit.
    if let Some((name, t, new)) = pairs.iter().find(|(_, t, new)| t.shape() != new.shape()) {
        let (have, want) = (new.shape(), t.shape());
        return Err(Error::shape(format!("'{name}' has shape {have:?}, in the module {want:?}")).at(site));
    }
    for (_, t, new) in pairs {
        let new = new.detach();
        let new = match t.global() {
            Some(g) if new.is_global() => new.to_global((&g.placement, g.sbp.clone()))?,
            Some(g) => distribute(&new, (&g.placement, g.sbp.clone()))?,
            None => new,
        };
        t.copy_(&new)?;
    }
    Ok(unmatched)
}
