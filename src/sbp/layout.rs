//! Layouts: placement and nd-SBP, and which part of the logical tensor a position of the mesh holds.

use super::{NdSbp, Sbp};
use crate::error::{Error, Result};
use crate::placement::{Placement, shard_range};
use oflow_kernels::{DType, ReduceOp, ShardBox};
use std::fmt;

/// The layout of a tensor: placement and nd-SBP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The mesh of ranks.
    pub placement: Placement,
    /// One SBP per mesh axis, outermost first.
    pub sbp: NdSbp,
}

impl Layout {
    /// Makes a layout. [`check_layout`] checks it against a shape.
    pub fn new(placement: &Placement, sbp: impl Into<NdSbp>) -> Layout {
        Layout { placement: placement.clone(), sbp: sbp.into() }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.sbp, self.placement)
    }
}

/// The box of the logical tensor that mesh position `position` holds. Two axes that split one dim nest: the outer first,
/// the inner splits the outer's part (I1). B and P axes do not narrow the box.
///
/// ```
/// use oflow::{placement::{Device, Placement}, sbp, sbp::shard_box};
/// let mesh = Placement::new(Device::Cpu, &[0, 1, 2, 3], &[2, 2])?;
/// let sizes: Vec<_> = (0..4).map(|p| shard_box(&[6], &mesh, &sbp![S(0), S(0)], p).size[0]).collect();
/// assert_eq!(sizes, [2, 1, 2, 1]); // not [2, 2, 1, 1], which a flat split over 4 gives
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn shard_box(shape: &[usize], placement: &Placement, sbp: &NdSbp, position: usize) -> ShardBox {
    let coord = placement.coord(position);
    let mut b = ShardBox::whole(shape);
    for (axis, s) in sbp.iter().enumerate() {
        if let Sbp::Split(d) = *s {
            let r = shard_range(b.size[d], placement.dims()[axis], coord[axis]);
            b.offset[d] += r.start;
            b.size[d] = r.len();
        }
    }
    b
}

/// The layout that the gradient of a tensor naturally has: S ↔ S, B ↔ P, axis by axis.
pub fn dual(n: &NdSbp) -> NdSbp {
    n.map(dual_of)
}

/// [`dual`] along one mesh axis.
pub(crate) fn dual_of(s: Sbp) -> Sbp {
    match s {
        Sbp::Split(d) => Sbp::Split(d),
        Sbp::Broadcast => Sbp::PARTIAL_SUM,
        Sbp::Partial(_) => Sbp::Broadcast,
    }
}

/// Checks that an nd-SBP can be the layout of a tensor of this shape and dtype on a placement.
///
/// # Errors
/// One SBP per mesh axis; split dims exist; bool has no P(sum), a registered dtype no P; all ranks together can be counted in bytes.
pub fn check_layout(shape: &[usize], dtype: DType, placement: &Placement, sbp: &NdSbp) -> Result<()> {
    if sbp.len() != placement.axes() {
        return Err(Error::sbp(format!(
            "{sbp} has {} entries but {placement} has {} mesh axes",
            sbp.len(),
            placement.axes()
        ))
        .help("give one SBP per mesh axis, outermost first"));
    }
    check_size(shape, dtype, placement)?;
    sbp.iter().try_for_each(|s| check_sbp(shape, dtype, *s))
}

/// Checks that the bytes of a tensor, held by every rank of a placement, can be counted: prices and plans add them up.
///
/// # Errors
/// When they are 2^63 or more.
pub fn check_size(shape: &[usize], dtype: DType, placement: &Placement) -> Result<()> {
    let ranks = placement.len().max(1);
    let bytes = shape.iter().try_fold(dtype.size().saturating_mul(ranks), |n, d| n.checked_mul((*d).max(1)));
    match bytes {
        Some(n) if n <= isize::MAX as usize => Ok(()),
        _ => Err(Error::shape(format!("{dtype}{shape:?} is too large for {} ranks", placement.len()))
            .help("check the sizes: on all ranks together they must stay below 2^63 bytes")),
    }
}

/// Checks one entry of an nd-SBP.
///
/// # Errors
/// The split dim exists; bool has no P(sum), an 8-bit float and a registered dtype no P.
fn check_sbp(shape: &[usize], dtype: DType, sbp: Sbp) -> Result<()> {
    match sbp {
        Sbp::Split(d) if d >= shape.len() => {
            Err(Error::sbp(format!("{sbp} splits dim {d}, but the tensor {shape:?} has {} dims", shape.len())))
        }
        Sbp::Partial(ReduceOp::Sum) if dtype == DType::Bool => {
            Err(Error::sbp("a bool tensor cannot be P(sum)").help("use P(max) for or, P(min) for and"))
        }
        Sbp::Partial(op) if !dtype.reduces(op) && dtype.is_complex() => {
            Err(Error::sbp(format!("a tensor of {dtype} cannot be {sbp}: complex numbers have no order, and no {op}"))
                .help("lay it out as S, B or P(sum)"))
        }
        Sbp::Partial(op) if !dtype.reduces(op) && dtype.is_builtin() => Err(Error::sbp(format!(
            "a tensor of {dtype} cannot be {sbp}: 8-bit floats are not computed with, and have no {op}"
        ))
        .help("lay it out as S or B, or `.cast(dtype)` to a wider float")),
        Sbp::Partial(op) if !dtype.reduces(op) => {
            Err(Error::sbp(format!("a tensor of {dtype} cannot be {sbp}: a registered dtype has no {op}"))
                .help("lay it out as S or B, or convert it to a built-in dtype by an op of your own"))
        }
        _ => Ok(()),
    }
}
