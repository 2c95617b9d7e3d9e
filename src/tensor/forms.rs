//! Cached forms of a tensor's value: boxed to another layout, or cast to another dtype.
//!
//! A form is valid as long as the tensor's value (its version) and its edge in the autograd graph have not changed. So switching
//! `requires_grad_` on or off, or a first use under `no_grad`, never leaves a form with a wrong edge. Memory that another library shares
//! may be written without a version, so a form of it is never valid.

use super::inner::{Form, FormOf, Tensor};

/// Forms kept per tensor at most.
const MOST: usize = 4;

impl Tensor {
    /// The remembered form, if it is still one of this tensor.
    pub(crate) fn form(&self, of: FormOf) -> Option<Tensor> {
        let forms = self.inner().boxed.lock().unwrap_or_else(|e| e.into_inner());
        let found = forms.0.iter().find(|f| f.of == of)?;
        let same = found.version == self.version() && found.edge.same(&self.edge()) && !self.is_shared_outside();
        same.then(|| found.form.clone())
    }

    /// Remembers a form. What is not one of this tensor any more goes; beyond a few, the oldest goes.
    pub(crate) fn remember(&self, of: FormOf, form: &Tensor) {
        let (version, edge) = (self.version(), self.edge());
        let mut forms = self.inner().boxed.lock().unwrap_or_else(|e| e.into_inner());
        forms.0.retain(|f| f.of != of && f.version == version && f.edge.same(&edge));
        if forms.0.len() >= MOST {
            forms.0.remove(0);
        }
        forms.0.push(Form { of, version, edge, form: form.clone() });
    }

    /// Whether a cast of it is remembered.
    pub(crate) fn has_cast(&self) -> bool {
        let forms = self.inner().boxed.lock().unwrap_or_else(|e| e.into_inner());
        forms.0.iter().any(|f| matches!(f.of, FormOf::Cast(..)))
    }

    /// Forgets the casts; boxed forms stay.
    pub(crate) fn forget_casts(&self) {
        let mut forms = self.inner().boxed.lock().unwrap_or_else(|e| e.into_inner());
        forms.0.retain(|f| !matches!(f.of, FormOf::Cast(..)));
    }

    /// Frees the cached forms of this tensor: the layouts to which ops have boxed it, and its casts under autocast. The next op
    /// that needs one makes it again, so all ranks must call this at the same place.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let _world = oflow::init()?;
    /// let mesh = Placement::all(Device::Cpu)?;
    /// let (x, w) = (ones([4, 2], (&mesh, sbp![S(0)]))?, ones([2, 2], (&mesh, sbp![S(0)]))?);
    /// x.matmul(&w)?; // gathers w, once
    /// w.release_forms();
    /// # Ok::<(), oflow::Error>(())
    /// ```
    pub fn release_forms(&self) {
        self.inner().boxed.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }
}
