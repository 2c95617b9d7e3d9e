//! Assigns the bytes of a checkpoint to the ranks that write them: a pure function of shapes and layouts, which every rank
//! computes without communication.
//!
//! The shards of a rank of all tensors with one layout (placement and nd-SBP) are concatenated. Ranks with equal shards, whose
//! coordinates differ on B axes only, divide the concatenation into equal parts, one each. So every byte is written
//! once, replicas share the work evenly whatever the sizes of single tensors are, and there are about as many pieces as
//! shards plus ranks, not shards times ranks. A cut is moved back to a multiple of whole inner rows of about
//! [`GRANULE`] bytes; a part of a shard that ends between rows is written as a few boxes.
//!
//! Partial tensors have no value on any one rank. They are boxed first, to [`whole_layout`].

use crate::error::{Error, Result};
use crate::placement::Placement;
use crate::sbp::{NdSbp, Sbp, shard_box};
use indexmap::IndexMap;
use oflow_kernels::{DType, Dims, ShardBox};
use std::ops::Range;

/// Parts end at multiples of rows of about this many bytes, so that small tensors are not divided.
pub const GRANULE: usize = 64 << 10;

/// A tensor to save.
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// Name in the checkpoint.
    pub name: String,
    /// Logical size of each dim.
    pub shape: Dims,
    /// Element type of the tensor.
    pub dtype: DType,
    /// Device and mesh of ranks.
    pub placement: Placement,
    /// nd-SBP, without P.
    pub sbp: NdSbp,
}

/// The part of a tensor that a rank writes: a range of the elements of its shard, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Number of the tensor.
    pub tensor: usize,
    /// The rank's shard.
    pub shard: ShardBox,
    /// Range of elements of the shard.
    pub run: Range<usize>,
}

/// Returns the layout to which a partial tensor is boxed before it is saved: split along dim 0 on its innermost partial axis if
/// no other axis splits that dim, else B. Layouts without P are returned unchanged.
pub fn whole_layout(shape: &[usize], sbp: &NdSbp) -> NdSbp {
    let mut free = !shape.is_empty() && !sbp.contains(&Sbp::Split(0));
    let mut whole = sbp.clone();
    for axis in (0..sbp.len()).rev().filter(|a| sbp[*a].is_partial()) {
        whole = whole.with(axis, if free { Sbp::Split(0) } else { Sbp::Broadcast });
        free = false;
    }
    whole
}

/// Returns what a rank writes, ordered by layout and then by tensor.
///
/// ```
/// use oflow::checkpoint::{TensorSpec, shares};
/// use oflow::{DType, placement::{Device, Placement}, sbp};
/// let mesh = Placement::of_world(Device::Cpu, 2)?;
/// let spec = |name: &str, sbp| TensorSpec {
///     name: name.into(),
///     shape: [1000, 1000][..].into(),
///     dtype: DType::F32,
///     placement: mesh.clone(),
///     sbp,
/// };
/// // Each rank writes its shard of the first, and one of the two others.
/// let specs = [spec("split", sbp![S(0)]), spec("a", sbp![B]), spec("b", sbp![B])];
/// let written: Vec<usize> = shares(&specs, 1)?.iter().map(|s| s.tensor).collect();
/// assert_eq!(written, [0, 2]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// If a layout is partial.
pub fn shares(specs: &[TensorSpec], rank: usize) -> Result<Vec<Share>> {
    let mut layouts: IndexMap<(u64, &NdSbp), Vec<usize>> = IndexMap::new();
    for (i, s) in specs.iter().enumerate() {
        layouts.entry((s.placement.id(), &s.sbp)).or_default().push(i);
    }
    let mut mine = vec![];
    for ((_, sbp), members) in &layouts {
        let placement = &specs[members[0]].placement;
        if sbp.has_partial() {
            return Err(Error::sbp(format!("'{}' is {sbp}, so no rank has its value", specs[members[0]].name)));
        }
        let Some(position) = placement.position(rank) else { continue };
        let coord = placement.coord(position);
        let (mut replicas, mut replica) = (1, 0);
        for axis in (0..sbp.len()).filter(|a| sbp[*a].is_broadcast()) {
            replicas *= placement.dims()[axis];
            replica = replica * placement.dims()[axis] + coord[axis];
        }
        let line: Vec<(ShardBox, usize)> = members
            .iter()
            .map(|i| (shard_box(&specs[*i].shape, placement, sbp, position), specs[*i].dtype.size()))
            .collect();
        let total: u128 = line.iter().map(|(b, item)| (volume(b) * item) as u128).sum();
        let target = |r: usize| total * r as u128 / replicas as u128;
        let (from, to) = (cut(&line, target(replica)), cut(&line, target(replica + 1)));
        for (k, (shard, _)) in line.into_iter().enumerate().take(to.0 + 1).skip(from.0) {
            let start = if k == from.0 { from.1 } else { 0 };
            let end = if k == to.0 { to.1 } else { volume(&shard) };
            if start < end {
                mine.push(Share { tensor: members[k], shard, run: start..end });
            }
        }
    }
    Ok(mine)
}

/// The place on the line of that many bytes, moved back to a granule: a member and an element of it.
fn cut(line: &[(ShardBox, usize)], target: u128) -> (usize, usize) {
    let mut before = 0u128;
    for (k, (shard, item)) in line.iter().enumerate() {
        let bytes = (volume(shard) * item) as u128;
        if target < before + bytes {
            let granule = granule(&shard.size, *item);
            return (k, (target - before) as usize / granule * granule / item);
        }
        before += bytes;
    }
    (line.len(), 0)
}

/// Bytes of as many whole inner rows as fit into [`GRANULE`].
fn granule(size: &[usize], item: usize) -> usize {
    let mut inner = item;
    for d in size.iter().rev() {
        if inner * d > GRANULE {
            break;
        }
        inner *= (*d).max(1);
    }
    inner * (GRANULE / inner).max(1)
}

/// Returns the number of elements.
pub fn volume(b: &ShardBox) -> usize {
    b.size.iter().product()
}

/// Returns a range of a shard's elements as boxes of the tensor, in order: one box if the range consists of whole rows, else a
/// few.
pub fn boxes_of_run(shard: &ShardBox, run: Range<usize>) -> Vec<ShardBox> {
    let mut found = vec![];
    if !run.is_empty() {
        walk(&mut shard.clone(), 0, run, &mut found);
    }
    found
}

/// Dims before `d` are narrowed to one index.
fn walk(at: &mut ShardBox, d: usize, run: Range<usize>, found: &mut Vec<ShardBox>) {
    let row: usize = at.size.iter().skip(d + 1).product();
    if d == at.size.len() || run.len() == row * at.size[d] {
        return found.push(at.clone());
    }
    let (offset, size) = (at.offset[d], at.size[d]);
    let mut rows = |from: usize, count: usize, inner: Option<Range<usize>>| {
        (at.offset[d], at.size[d]) = (offset + from, count);
        match inner {
            Some(run) => walk(at, d + 1, run, found),
            None => found.push(at.clone()),
        }
        (at.offset[d], at.size[d]) = (offset, size);
    };
    let (first, last) = (run.start / row, (run.end - 1) / row);
    if first == last {
        return rows(first, 1, Some(run.start - first * row..run.end - first * row));
    }
    let (head, tail) = (run.start % row, run.end % row);
    if head > 0 {
        rows(first, 1, Some(head..row));
    }
    let (from, to) = (first + usize::from(head > 0), last + usize::from(tail == 0));
    if from < to {
        rows(from, to - from, None);
    }
    if tail > 0 {
        rows(last, 1, Some(0..tail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Device;
    use crate::sbp;

    #[test]
    fn runs_are_few_boxes() {
        let shard =
            ShardBox { logical: [9, 4, 5][..].into(), offset: [2, 0, 0][..].into(), size: [3, 4, 5][..].into() };
        let show = |run: Range<usize>| -> Vec<String> {
            boxes_of_run(&shard, run)
                .iter()
                .map(|b| format!("{:?}{:?}", b.offset.as_slice(), b.size.as_slice()))
                .collect()
        };
        assert_eq!(show(0..60), ["[2, 0, 0][3, 4, 5]"]);
        assert_eq!(show(20..40), ["[3, 0, 0][1, 4, 5]"]);
        assert_eq!(show(7..9), ["[2, 1, 2][1, 1, 2]"]);
        assert_eq!(
            show(7..43),
            ["[2, 1, 2][1, 1, 3]", "[2, 2, 0][1, 2, 5]", "[3, 0, 0][1, 4, 5]", "[4, 0, 0][1, 1, 3]"]
        );
        assert!(show(5..5).is_empty());
        let number = ShardBox::whole(&[]);
        assert_eq!(boxes_of_run(&number, 0..1), [number]);
    }

    #[test]
    fn partial_layouts_become_whole() {
        let text = |shape: &[usize], s: NdSbp| whole_layout(shape, &s).to_string();
        assert_eq!(text(&[4, 4], sbp![B, P]), "[B, S(0)]");
        assert_eq!(text(&[4, 4], sbp![P, P]), "[B, S(0)]");
        assert_eq!(text(&[4, 4], sbp![P, S(0)]), "[B, S(0)]");
        assert_eq!(text(&[], sbp![P]), "[B]");
        assert_eq!(text(&[4], sbp![S(0), B]), "[S(0), B]");
    }

    #[test]
    fn small_tensors_stay_whole_and_large_ones_are_cut_at_rows() {
        assert_eq!(granule(&[10, 10], 4), 400 * 163);
        assert_eq!(granule(&[1000, 1000], 4), 64_000);
        assert_eq!(granule(&[1 << 30], 4), GRANULE);
        let mesh = Placement::of_world(Device::Cpu, 3).unwrap();
        let spec = TensorSpec {
            name: "w".into(),
            shape: [1000, 1000][..].into(),
            dtype: DType::F32,
            placement: mesh,
            sbp: sbp![B],
        };
        let runs: Vec<_> = (0..3).map(|r| shares(std::slice::from_ref(&spec), r).unwrap()[0].run.clone()).collect();
        assert_eq!(runs, [0..320_000, 320_000..656_000, 656_000..1_000_000]);
    }
}
