//! Sets of mesh axes.

use crate::placement::{MeshAxis, Placement};

/// A set of mesh axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AxisSet(u64);

impl AxisSet {
    /// Adds an axis.
    pub fn insert(&mut self, axis: usize) {
        self.0 |= 1 << axis;
    }
    /// True when the axis is in the set.
    pub fn contains(self, axis: usize) -> bool {
        self.0 >> axis & 1 == 1
    }
    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The axes, outermost first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> + Clone {
        (0..64).filter(move |a| self.contains(*a))
    }
    /// The outermost axis.
    pub(super) fn first(self) -> usize {
        self.0.trailing_zeros() as usize
    }
    /// The number of ranks in a group along these axes of a mesh.
    pub fn group_size(self, dims: &[usize]) -> usize {
        self.iter().take_while(|a| *a < dims.len()).map(|a| dims[a]).product()
    }
}

impl From<MeshAxis> for AxisSet {
    fn from(a: MeshAxis) -> AxisSet {
        AxisSet(1 << a.0)
    }
}

impl FromIterator<usize> for AxisSet {
    fn from_iter<I: IntoIterator<Item = usize>>(axes: I) -> AxisSet {
        AxisSet(axes.into_iter().fold(0, |s, a| s | 1 << a))
    }
}

/// `dp`, `dp+tp`, `axis 1`.
pub(super) fn axis_names(p: &Placement, axes: AxisSet) -> String {
    let name = |a: usize| p.names()[a].clone().unwrap_or_else(|| format!("axis {a}"));
    axes.iter().map(name).collect::<Vec<_>>().join("+")
}
