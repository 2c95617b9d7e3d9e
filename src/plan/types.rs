//! Interned metadata: the type of a local tensor and of a global one.

use crate::intern::{Interned, Interner};
use crate::ops::TensorType;
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, shard_box};
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, Dims, ShardBox, Strides};
use std::fmt;
use std::sync::Arc;

/// Shape, dtype and device of a local tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocalType {
    /// Shape and dtype.
    pub ty: TensorType,
    /// Device that holds the memory.
    pub device: Device,
    /// Strides of contiguous memory. They and the bytes follow from the shape: every allocation asks for both.
    pub(crate) strides: Strides,
    pub(crate) bytes: usize,
}

/// Logical shape and dtype, placement and nd-SBP of a global tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GlobalType {
    /// Logical shape and dtype.
    pub ty: TensorType,
    /// Device and mesh of ranks.
    pub placement: Placement,
    /// One SBP per mesh axis.
    pub sbp: NdSbp,
}

/// Interned local type.
pub type LocalRef = Arc<Interned<LocalType>>;
/// Interned global type.
pub type GlobalRef = Arc<Interned<GlobalType>>;

static LOCALS: Interner<LocalType> = Interner::new();
static GLOBALS: Interner<GlobalType> = Interner::new();

/// Returns the interned local type.
pub fn intern_local(shape: &[usize], dtype: DType, device: Device) -> LocalRef {
    let ty = TensorType::new(shape, dtype);
    LOCALS.intern(LocalType { bytes: ty.bytes(), ty, device, strides: contiguous_strides(shape) })
}

/// Returns the interned global type.
pub fn intern_global(ty: TensorType, placement: &Placement, sbp: &NdSbp) -> GlobalRef {
    GLOBALS.intern(GlobalType { ty, placement: placement.clone(), sbp: sbp.clone() })
}

impl GlobalType {
    /// Returns the box of the logical tensor that a rank holds, or `None` outside the placement.
    pub fn box_of(&self, rank: usize) -> Option<ShardBox> {
        let p = self.placement.position(rank)?;
        Some(shard_box(&self.ty.shape, &self.placement, &self.sbp, p))
    }
    /// Returns the sizes of a rank's shard, or `None` outside the placement.
    pub fn shard_dims(&self, rank: usize) -> Option<Dims> {
        self.box_of(rank).map(|b| b.size)
    }
}

impl fmt::Display for GlobalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} on {}", self.ty, self.sbp, self.placement)
    }
}

impl fmt::Display for LocalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.ty, self.device)
    }
}
