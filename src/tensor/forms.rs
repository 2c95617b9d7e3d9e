//! Other forms of a tensor's value that its handle remembers: boxed to another layout, cast to another dtype.
//!
//! A form is found again only while everything that it was made from is as it was: the value (by its version), and the
//! place of the tensor in the autograd graph. So switching `requires_grad_` on or off, or a first use under `no_grad`, never
//! leaves a form with a wrong edge.

use super::edge::Edge;
use super::handle::Tensor;
use oflow_kernels::DType;
use smallvec::SmallVec;

/// Which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormOf {
    /// In the layout of the global type of that id.
    Boxed(u64),
    /// In that dtype; recorded as a call of its own or not.
    Cast(DType, bool),
}

struct Form {
    of: FormOf,
    version: u64,
    /// Where the gradient of the tensor went when the form was made. Kept alive, so that no other slot takes its address.
    edge: Edge,
    form: Tensor,
}

/// Forms kept per tensor at most.
const MOST: usize = 4;

/// The remembered forms of one tensor.
#[derive(Default)]
pub(crate) struct Forms(SmallVec<[Form; 1]>);

impl Forms {
    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Tensor {
    /// The remembered form, if it is still one of this tensor.
    pub(crate) fn form(&self, of: FormOf) -> Option<Tensor> {
        let forms = self.inner().boxed.lock().unwrap_or_else(|e| e.into_inner());
        let found = forms.0.iter().find(|f| f.of == of)?;
        (found.version == self.version() && found.edge.same(&self.edge())).then(|| found.form.clone())
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

    /// Gives back the memory of what this handle remembers of its tensor: the layouts that ops have boxed it to, and its
    /// casts under autocast. The next op that needs one makes it again, so all ranks call this alike.
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
