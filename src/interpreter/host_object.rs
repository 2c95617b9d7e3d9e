//! Objects of the host whose numbers captured calls read at each run: optimizers, scalers, averages.

use crate::error::{CallSite, Result};
use crate::ops::RuntimeAttrs;
use std::sync::Arc;

/// An object of the host that computes numbers of calls, as a graph has captured it.
pub(crate) trait HostObject: Send + Sync {
    /// A run begins: before its tensors are bound.
    ///
    /// # Errors
    /// The object has changed so that the run cannot be.
    fn begin(&self, _site: CallSite) -> Result<()> {
        Ok(())
    }
    /// A run has come to the object's place, before the calls that read its numbers.
    ///
    /// # Errors
    /// The object's settings are refused.
    fn advance(&self, site: CallSite) -> Result<()>;
    /// The runtime attributes of one of its calls, in the present run.
    ///
    /// # Errors
    /// The object has changed so that it has no such call.
    fn numbers(&self, call: u32) -> Result<RuntimeAttrs>;
    /// The present run has ended without error.
    fn done(&self);
    /// Address of the numbers that it shares with the object of the program.
    fn address(&self) -> usize;
    /// A text from which [`HostSource::restore`] makes it again, in another process.
    fn saved(&self) -> String;
}

/// An object of a program that graphs have numbers of: it makes what a graph has captured of it again.
pub(crate) trait HostSource: Send + Sync {
    /// Address of its numbers.
    fn address(&self) -> usize;
    /// Makes again what [`HostObject::saved`] describes.
    ///
    /// # Errors
    /// The text was not made by an object like this one, or this one has not the parameters that it names.
    fn restore(&self, saved: &str) -> Result<Arc<dyn HostObject>>;
}

/// The address of shared numbers.
pub(crate) fn address_of<T: ?Sized>(numbers: &Arc<T>) -> usize {
    Arc::as_ptr(numbers).cast::<()>() as usize
}
