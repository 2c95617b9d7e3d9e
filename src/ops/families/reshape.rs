//! Reshape. A split passes only where, on *every* rank, the shard before and the shard after are the same elements in the
//! same order: so `[5, 4] -> [20]` with S(0) on 3 ranks is not S(0) -> S(0).

use crate::error::{Error, Result};
use crate::ops::{AttrValue, Attrs, DTypeRule, Grad, InferCtx, NdSignature, OpDef, ShapeRule, TensorType};
use crate::placement::Placement;
use crate::sbp::{ReduceOp, Sbp, Signature, shard_box};
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{ShardBox, Strides};
use smallvec::smallvec;
use std::ops::Range;

/// Groups of input dims and output dims with equal products, finest first; dims of size 1 belong to none.
fn blocks(a: &[usize], b: &[usize]) -> Vec<(Vec<usize>, Vec<usize>)> {
    let (ai, bi): (Vec<usize>, Vec<usize>) =
        ((0..a.len()).filter(|d| a[*d] != 1).collect(), (0..b.len()).filter(|d| b[*d] != 1).collect());
    let mut found = vec![];
    let (mut i, mut j) = (0, 0);
    while i < ai.len() && j < bi.len() {
        let (i0, j0) = (i, j);
        let (mut pa, mut pb) = (a[ai[i]], b[bi[j]]);
        (i, j) = (i + 1, j + 1);
        while pa != pb {
            if pa < pb && i < ai.len() {
                pa *= a[ai[i]];
                i += 1;
            } else if j < bi.len() {
                pb *= b[bi[j]];
                j += 1;
            } else {
                return found;
            }
        }
        found.push((ai[i0..i].to_vec(), bi[j0..j].to_vec()));
    }
    found
}

/// The flat range that a box takes of some consecutive dims, if it is one range.
fn flat_range(b: &ShardBox, dims: &[usize]) -> Option<Range<usize>> {
    let mut p = 0;
    while p < dims.len() && b.size[dims[p]] == 1 {
        p += 1;
    }
    if dims[p.min(dims.len() - 1)..].iter().skip(1).any(|d| b.size[*d] != b.logical[*d]) {
        return None;
    }
    let start = dims.iter().fold(0, |s, d| s * b.logical[*d] + b.offset[*d]);
    Some(start..start + dims.iter().map(|d| b.size[*d]).product::<usize>())
}

/// Whether the shards before and after are the same elements in the same order on every position of the mesh.
fn exact(a: &[usize], b: &[usize], placement: &Placement, sig: &NdSignature) -> bool {
    let splits = |n: &[Sbp]| n.iter().any(|s| s.split_dim().is_some());
    if !splits(&sig.inputs[0]) && !splits(&sig.outputs[0]) {
        return true;
    }
    let blocks = blocks(a, b);
    (0..placement.len()).all(|p| {
        let (x, y) = (shard_box(a, placement, &sig.inputs[0], p), shard_box(b, placement, &sig.outputs[0], p));
        let empty = |b: &ShardBox| b.size.contains(&0);
        match (empty(&x), empty(&y)) {
            (true, true) => return true,
            (false, false) => {}
            _ => return false,
        }
        blocks.iter().all(|(i, j)| match (flat_range(&x, i), flat_range(&y, j)) {
            (Some(r), Some(s)) => r == s,
            _ => false,
        })
    })
}

fn signatures(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    let a = c.shape(0)?;
    let b = c.sizes("shape")?;
    let mut s = Vec::new();
    if !a.contains(&0) {
        for (i, j) in blocks(a, &b) {
            for x in &i {
                for y in &j {
                    s.push(Signature::new(&[Sbp::Split(*x)], &[Sbp::Split(*y)]));
                }
            }
        }
        // A dim of size 1 lives on the first rank, before and after.
        for x in (0..a.len()).filter(|d| a[*d] == 1) {
            for y in (0..b.len()).filter(|d| b[*d] == 1) {
                s.push(Signature::new(&[Sbp::Split(x)], &[Sbp::Split(y)]));
            }
        }
    }
    for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min] {
        s.push(Signature::new(&[Sbp::Partial(op)], &[Sbp::Partial(op)]));
    }
    Ok(s)
}

/// The strides with which the same memory shows another shape, if there are any: each run of dims that lie without gaps in
/// each other is cut anew by itself. (PyTorch's `computeStride`.)
fn view_strides(dims: &[usize], strides: &[isize], shape: &[usize]) -> Option<Strides> {
    if dims.is_empty() || dims.contains(&0) {
        return Some(contiguous_strides(shape));
    }
    let mut out: Strides = Strides::from_elem(0, shape.len());
    let mut left = shape.len();
    let (mut step, mut run, mut cut) = (strides[dims.len() - 1], 1, 1);
    for d in (0..dims.len()).rev() {
        run *= dims[d];
        let ends = d == 0 || (dims[d - 1] != 1 && strides[d - 1] != run as isize * step);
        if !ends {
            continue;
        }
        while left > 0 && (cut < run || shape[left - 1] == 1) {
            left -= 1;
            out[left] = cut as isize * step;
            cut *= shape[left];
        }
        if cut != run {
            return None;
        }
        if d > 0 {
            (step, run, cut) = (strides[d - 1], 1, 1);
        }
    }
    (left == 0).then_some(out)
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![OpDef::new("reshape(x: any; shape: shape) -> y").map(|o| {
        let mut o = o
            .doc("The same elements in row-major order under another shape.")
            .strided()
            .shape_rule(ShapeRule::Attr)
            .dtype(DTypeRule::Input(0))
            .check(|c| {
                let (x, want) = (c.input(0)?, c.sizes("shape")?);
                let n = TensorType::checked(&want, x.dtype)?.len();
                if n != x.len() {
                    return Err(Error::shape(format!(
                        "{:?} has {} elements, the new shape {:?} has {n}",
                        x.shape.as_slice(),
                        x.len(),
                        want.as_slice()
                    )));
                }
                Ok(())
            })
            .get_sbp(signatures)
            .localize(|c| Ok(smallvec![AttrValue::from(c.outputs[0].size.as_slice())]))
            .view(|dims, strides, _: &Attrs, shape| Some((0, view_strides(dims, strides, shape)?)))
            .grad(Grad::rule_saving(&[], &[], |g| {
                let Some(dy) = g.grad(0) else { return Ok(()) };
                let shape = g.input_shape(0);
                let dx = g.call("reshape", &[dy], &[("shape", shape.as_slice().into())])?;
                g.set(0, dx)
            }))
            .samples(&[
                "f32[4, 6]; shape=[24]",
                "f32[4, 6]; shape=[4, 2, 3]",
                "f32[2, 3, 4]; shape=[6, 4]",
                "f32[5, 4]; shape=[20]",
                "i32[12]; shape=[3, 1, 4]",
                "bool[1, 6]; shape=[6]",
                "f32[7, 2]; shape=[14]",
                "f32[3, 4]; shape=[2, 6]",
                "f32[0, 6]; shape=[2, 0, 3]",
                "f32[2]; shape=[1, 2, 1]",
            ]);
        o.nd_valid = Some(std::sync::Arc::new(|c, placement, sig| {
            let (Ok(x), Ok(shape)) = (c.shape(0), c.sizes("shape")) else { return false };
            x.contains(&0) || exact(x, &shape, placement, sig)
        }));
        o
    })]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Device;
    use crate::sbp::NdSbp;

    #[test]
    fn blocks_are_the_finest() {
        assert_eq!(blocks(&[4, 6], &[4, 2, 3]), [(vec![0], vec![0]), (vec![1], vec![1, 2])]);
        assert_eq!(blocks(&[2, 1, 6], &[12]), [(vec![0, 2], vec![0])]);
    }

    #[test]
    fn strides_of_another_shape() {
        let see = |dims: &[usize], strides: &[isize], shape: &[usize]| {
            view_strides(dims, strides, shape).map(|s| s.into_vec())
        };
        assert_eq!(see(&[4, 6], &[6, 1], &[2, 12]), Some(vec![12, 1]));
        // A transposed tensor: dims of size 1 come and go, its own dims do not merge.
        assert_eq!(see(&[1, 3], &[1, 2], &[3]), Some(vec![2]));
        assert_eq!(see(&[3, 2], &[1, 3], &[3, 1, 2]), Some(vec![1, 6, 3]));
        assert_eq!(see(&[3, 2], &[1, 3], &[6]), None);
        assert_eq!(see(&[3, 4], &[1, 3], &[3, 2, 2]), Some(vec![1, 6, 3]));
        // Repeated elements stay repeated.
        assert_eq!(see(&[8], &[0], &[2, 4]), Some(vec![0, 0]));
        assert_eq!(see(&[], &[], &[1, 1]), Some(vec![1, 1]));
        assert_eq!(see(&[0, 3], &[3, 1], &[3, 0]), Some(vec![1, 1]));
    }

    #[test]
    fn i5_a_split_must_be_exact_on_every_rank() {
        let on = |n: usize, a: &[usize], b: &[usize], x: &str, y: &str| {
            let p = Placement::of_world(Device::Cpu, n).unwrap();
            let nd = |s: &str| s.parse::<NdSbp>().unwrap();
            let sig = NdSignature { inputs: smallvec![nd(x)], outputs: smallvec![nd(y)], lowering: None };
            exact(a, b, &p, &sig)
        };
        assert!(!on(3, &[5, 4], &[20], "S0", "S0"));
        assert!(on(5, &[5, 4], &[20], "S0", "S0"));
        assert!(on(2, &[4, 6], &[4, 2, 3], "S1", "S1"));
        assert!(!on(3, &[4, 6], &[4, 2, 3], "S1", "S1"));
        assert!(!on(3, &[4, 6], &[4, 2, 3], "S1", "S2"));
        assert!(on(2, &[2, 12], &[4, 6], "S0", "S0"));
    }
}
