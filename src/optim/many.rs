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
