//! Cached copies of a tensor's value: boxed to another layout, or cast to another dtype.
//!
//! A copy is valid as long as the tensor's value (its version) and its edge in the autograd graph have not changed. So switching
//! `requires_grad_` on or off, or a first use under `no_grad`, never leaves a copy with a wrong edge. Memory that another library shares
//! may be written without a version, so a copy of it is never valid.

use super::inner::{CachedCopy, ReshardKey, Tensor};

/// Largest number of cached copies per tensor.
const MOST: usize = 4;

impl Tensor {
    /// The cached copy for a key, if it is of the present value and edge.
    pub(crate) fn resharded(&self, of: ReshardKey) -> Option<Tensor> {
        let entries = self.inner().boxed.lock().unwrap_or_else(|e| e.into_inner());
        let found = entries.0.iter().find(|f| f.of == of)?;
        let same = found.version == self.version() && found.edge.same(&self.edge()) && !self.is_shared_outside();
        same.then(|| found.copy.clone())
    }

    /// Caches a copy. Entries of an older value or edge are dropped; beyond a limit, the oldest entry is dropped.
    pub(crate) fn cache_resharded(&self, of: ReshardKey, copy: &Tensor) {
        let (version, edge) = (self.version(), self.edge());
        let mut entries = self.inner().boxed.lock().unwrap_or_else(|e| e.into_inner());
        entries.0.retain(|f| f.of != of && f.version == version && f.edge.same(&edge));
        if entries.0.len() >= MOST {
            entries.0.remove(0);
        }
        entries.0.push(CachedCopy { of, version, edge, copy: copy.clone() });
    }

    /// Whether a cast of it is remembered.
    pub(crate) fn has_cast(&self) -> bool {
        let entries = self.inner().boxed.lock().unwrap_or_else(|e| e.into_inner());
        entries.0.iter().any(|f| matches!(f.of, ReshardKey::Cast(..)))
    }

    /// Forgets the casts; boxed copies stay.
    pub(crate) fn forget_casts(&self) {
        let mut entries = self.inner().boxed.lock().unwrap_or_else(|e| e.into_inner());
        entries.0.retain(|f| !matches!(f.of, ReshardKey::Cast(..)));
    }

    /// Frees the cached copies of this tensor: the layouts to which ops have boxed it, and its casts under autocast. The next op
    /// that needs one makes it again, so all ranks must call this at the same place.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let _world = oflow::init()?;
    /// let mesh = Placement::all(Device::Cpu)?;
    /// let (x, w) = (ones([4, 2], (&mesh, sbp![S(0)]))?, ones([2, 2], (&mesh, sbp![S(0)]))?);
    /// x.matmul(&w)?; // gathers w, once
    /// w.clear_reshard_cache();
    /// # Ok::<(), oflow::Error>(())
    /// ```
    pub fn clear_reshard_cache(&self) {
        self.inner().boxed.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }
}
