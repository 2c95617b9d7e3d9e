//! Tensors saved for backward, and a program's hooks on them: pack when a call is recorded, unpack when its gradient is asked for.

use super::observers::{self, Observer, observe, unobserved};
use super::unshard::unsharded;
use crate::context::{Moments, no_grad};
use crate::error::{CallSite, Error, Result};
use crate::tensor::{Packed, Saved, SavedData, Tensor, Unpack};
use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

/// Makes what is kept of a tensor.
type Pack = Box<dyn Fn(&Tensor) -> Result<Box<dyn Any + Send + Sync>>>;

/// The hooks of a program.
struct Hooks {
    pack: Pack,
    unpack: Unpack,
}

impl Observer for Hooks {
    fn moments(&self) -> Moments {
        Moments::SAVED
    }
    fn saved(&self, tensor: &Tensor) -> Result<Option<Saved>> {
        let (_plain, _unrecorded) = (unobserved(), no_grad());
        let value = (self.pack)(&tensor.detach()).map_err(|e| e.in_call(|| PACK.to_string()))?;
        let packed =
            Packed { value, unpack: self.unpack.clone(), ty: tensor.type_ref(), edge: tensor.edge(), by: UNPACK };
        Ok(Some(Saved { kept: SavedData::Packed(Box::new(packed)), version: 0 }))
    }
}

/// Calls `f`. A tensor that a call in it saves for backward is given to `pack`, and what that returns is kept in its place. When the
/// gradient is computed `unpack` makes the tensor again, of the same type and with the same values. So activations can lie on
/// another device, in fewer bits or in a file. Scopes nest: the inner one is asked. What `pack` and `unpack` compute is not recorded.
/// A value that `pack` has copied may be changed in place afterwards.
///
/// ```
/// use oflow::{prelude::*, saved_tensors_hooks};
/// let x = from_vec(vec![1.0f32, 2.0], [2], Device::Cpu)?.requires_grad_(true)?;
/// // Activations are kept in half the bytes.
/// let y = saved_tensors_hooks(|t| t.cast(DType::BF16), |t: &Tensor| t.cast(DType::F32), || x.square())?;
/// y.sum(())?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// A call in `f` fails where `pack` does; backward fails where `unpack` does or makes a tensor of another type.
pub fn saved_tensors_hooks<P: Send + Sync + 'static, R>(
    pack: impl Fn(&Tensor) -> Result<P> + 'static,
    unpack: impl Fn(&P) -> Result<Tensor> + Send + Sync + 'static,
    f: impl FnOnce() -> R,
) -> R {
    let hooks = Hooks {
        pack: Box::new(move |t| Ok(Box::new(pack(t)?) as Box<dyn Any + Send + Sync>)),
        unpack: Arc::new(move |p| {
            let packed = p.downcast_ref::<P>().ok_or_else(|| Error::autograd("a packed tensor of another scope"))?;
            unpack(packed)
        }),
    };
    let _scope = observe(Rc::new(hooks));
    f()
}

/// Saves a tensor in that version: the tensor itself, or what the scope's hook makes of it.
#[inline]
pub(super) fn save(tensor: Tensor, version: u64) -> Result<Saved> {
    if let Some(source) = tensor.gathered_from() {
        return Ok(Saved { kept: SavedData::Gathered(source.clone()), version: source.version() });
    }
    Ok(match observers::saved(&tensor)? {
        Some(saved) => saved,
        None => Saved { kept: SavedData::Tensor(tensor), version },
    })
}

const PACK: &str = "saved_tensors_hooks (pack)";
const UNPACK: &str = "saved_tensors_hooks (unpack)";

/// The tensor that the call at `site` saved; none where it was changed in place since.
///
/// # Errors
/// What the scope's hook reports, and if it makes a tensor of another type.
pub(super) fn restore(saved: &Saved, site: CallSite) -> Result<Option<Tensor>> {
    match &saved.kept {
        SavedData::Tensor(t) => Ok((t.version() == saved.version).then(|| t.clone())),
        SavedData::Gathered(source) if source.version() != saved.version => Ok(None),
        SavedData::Gathered(source) => unsharded(source, site).map(Some),
        SavedData::Packed(p) => unpacked(p).map(Some),
    }
}

#[cold]
fn unpacked(p: &Packed) -> Result<Tensor> {
    let named = |e: Error| e.in_call(|| p.by.to_string());
    let t = {
        let (_plain, _unrecorded) = (unobserved(), no_grad());
        (p.unpack)(&*p.value).map_err(named)?
    };
    let text = |t: &Option<crate::plan::TypeRef>| t.as_ref().map_or("none".to_string(), |t| t.short());
    let (want, have) = (text(&p.ty), text(&t.type_ref()));
    if want != have {
        return Err(named(Error::autograd(format!("gives {have}, but {want} was saved"))));
    }
    let t = t.value();
    t.set_edge(p.edge.clone());
    Ok(t)
}
