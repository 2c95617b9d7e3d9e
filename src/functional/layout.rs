//! Between layouts, and in and out of global tensors.

use super::{invoke, invoke1, op};
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrValue, Attrs};
use crate::placement::{Device, Placement};
use crate::sbp::NdSbp;
use crate::tensor::{LocalTensor, Tensor};
use oflow_kernels::DType;
use smallvec::smallvec;

/// A layout: placement (none: the tensor's own) and nd-SBP, with an optional SBP for the gradient.
#[derive(Clone, Debug)]
pub struct LayoutSpec {
    placement: Option<Placement>,
    sbp: NdSbp,
    grad_sbp: Option<NdSbp>,
}

/// Types that can be a layout: `sbp![...]`, `(&placement, sbp![...])`, either with `.grad_sbp(...)`, or a reference to one.
pub trait IntoLayout: Sized {
    /// Converts the value to a layout.
    fn into_layout(self) -> LayoutSpec;
    /// States the SBP of the gradient.
    fn grad_sbp(self, sbp: impl Into<NdSbp>) -> LayoutSpec {
        LayoutSpec { grad_sbp: Some(sbp.into()), ..self.into_layout() }
    }
}
impl IntoLayout for LayoutSpec {
    fn into_layout(self) -> LayoutSpec {
        self
    }
}
impl IntoLayout for NdSbp {
    fn into_layout(self) -> LayoutSpec {
        LayoutSpec { placement: None, sbp: self, grad_sbp: None }
    }
}
impl<L: IntoLayout + Clone> IntoLayout for &L {
    fn into_layout(self) -> LayoutSpec {
        self.clone().into_layout()
    }
}
impl<S: Into<NdSbp>> IntoLayout for (Placement, S) {
    fn into_layout(self) -> LayoutSpec {
        (&self.0, self.1).into_layout()
    }
}
impl<S: Into<NdSbp>> IntoLayout for (&Placement, S) {
    fn into_layout(self) -> LayoutSpec {
        LayoutSpec { placement: Some(self.0.clone()), sbp: self.1.into(), grad_sbp: None }
    }
}

functions! {
    FUNCTIONS, "Layouts";
    /// The values as another dtype; the tensor itself if it has that dtype, like PyTorch's `to`. The gradient is cast back to the
    /// dtype of the input.
    "cast(Tensor x, DataType dtype) -> Tensor" = cast;
    /// A local tensor on another device, with its gradient; the tensor itself where it is on that device (as PyTorch's `to`). Global
    /// tensors move with `to_global((&placement, sbp))`.
    "to_device(Tensor x, Device device) -> Tensor" = to_device;
}

by_name! {
    BY_NAME, "Layouts", ByName;
    /// The tensor in another layout; a local one becomes the rank's shard of a global one.
    "to_global(Tensor x, Placement placement, Sbp sbp, *, Sbp? grad_sbp) -> Tensor" = |b| {
        Ok(vec![b.given(0)?.to_global(stated(b.placement(1), b.sbp(2), b.sbp(3))?)?])
    };
    /// A global tensor in another layout on its placement.
    "to_global(Tensor x, Sbp sbp, *, Sbp? grad_sbp) -> Tensor" = |b| {
        Ok(vec![b.given(0)?.to_global(stated(None, b.sbp(1), b.sbp(2))?)?])
    };
    /// The rank's shard as a local tensor.
    "to_local(Tensor x, *, Sbp? grad_sbp) -> Tensor" = |b| Ok(vec![match b.sbp(1) {
        Some(grad_sbp) => b.given(0)?.to_local_with(grad_sbp)?,
        None => b.given(0)?.to_local()?,
    }]);
    /// A global tensor from its logical value, which every rank gives.
    "distribute(Tensor x, Placement placement, Sbp sbp) -> Tensor" = |b| {
        Ok(vec![distribute(b.given(0)?, stated(b.placement(1), b.sbp(2), None)?)?])
    };
}

/// A layout from the parameters of a function.
fn stated(placement: Option<&Placement>, sbp: Option<&NdSbp>, grad_sbp: Option<&NdSbp>) -> Result<LayoutSpec> {
    let sbp = sbp.ok_or_else(|| Error::argument("an sbp is missing"))?;
    Ok(LayoutSpec { placement: placement.cloned(), sbp: sbp.clone(), grad_sbp: grad_sbp.cloned() })
}

pub(super) fn cast(x: &Tensor, dtype: DType, site: CallSite) -> Result<Tensor> {
    x.cast_at(dtype, site)
}

pub(super) fn to_device(x: &Tensor, device: Device, site: CallSite) -> Result<Tensor> {
    if !x.is_global() && x.device() == device {
        return Ok(x.clone());
    }
    invoke1(op!("to_device"), &[Some(x)], smallvec![device.into()], smallvec![], site)
}

/// A layout as attributes; what is not stated is left out, so that the common call fits into its place.
pub(super) fn layout_attrs(placement: Placement, sbp: NdSbp, grad_sbp: Option<NdSbp>) -> Attrs {
    let mut attrs: Attrs = smallvec![placement.into(), sbp.into()];
    attrs.extend(grad_sbp.map(AttrValue::NdSbp));
    attrs
}

/// A global tensor from its logical value, which every rank of the world gives alike; each keeps its shard. Nothing is
/// communicated. Data that differs between ranks ends the job at the next collective: a hash of a sample is compared (of all bytes with
/// `OFLOW_CHECK=1`).
///
/// ```
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?;
/// let value = arange(6, Device::Cpu)?;
/// let x = distribute(&value, (&mesh, sbp![S(0)]))?;
/// assert_eq!(x.shape(), [6]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn distribute(value: &Tensor, layout: impl IntoLayout) -> Result<Tensor> {
    let (l, site) = (layout.into_layout(), CallSite::here());
    let p = l.placement.ok_or_else(|| {
        Error::argument("distribute needs a placement").at(site).help("write `(&placement, sbp![...])`")
    })?;
    if let Some(s) = &l.grad_sbp {
        return Err(Error::argument(format!(
            "the gradient of a logical value is the whole one on every rank; it cannot be stated as {s}"
        ))
        .in_call(|| format!("distribute({}, {}) on {p}", value.short(), l.sbp))
        .at(site)
        .help("make shards global with `to_global` to state what their gradients are"));
    }
    invoke1(op!("distribute"), &[Some(value)], smallvec![p.into(), l.sbp.into()], smallvec![], site)
}

/// A logical value beside a tensor: on the tensor's device, and of a global tensor whole on each rank of the placement. Every rank
/// has the same value.
pub(super) fn everywhere(value: &Tensor, beside: &Tensor, site: CallSite) -> Result<Tensor> {
    let value = match value.device() == beside.device() {
        true => value.clone(),
        false => value.to_device(beside.device())?,
    };
    let Some(g) = beside.global() else { return Ok(value) };
    let attrs = layout_attrs(g.placement.clone(), NdSbp::broadcast(g.placement.axes()), None);
    invoke1(op!("distribute"), &[Some(&value)], attrs, smallvec![], site)
}

/// Boxing of many global tensors at once: the values and layouts that [`Tensor::to_global`] gives each, bit for bit, in fewer
/// messages. Steps of one kind over the same ranks and dtype become one collective (for small tensors that is most of
/// their time), and everything that goes point to point is one batch. All ranks call it with the same list.
///
/// ```
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?;
/// let grads = [ones([4], (&mesh, sbp![P]))?, ones([2, 3], (&mesh, sbp![P]))?];
/// let reduced = oflow::box_many(&[(&grads[0], sbp![B]), (&grads[1], sbp![B])])?;
/// assert_eq!(reduced[1].to_vec::<f32>()?, [1.0; 6]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// When a tensor is local, or a layout is not one of it. Nothing is sent then.
#[track_caller]
pub fn box_many(all: &[(&Tensor, impl IntoLayout + Clone)]) -> Result<Vec<Tensor>> {
    let site = CallSite::here();
    let (mut inputs, mut placements, mut sbps, mut stated) = (vec![], vec![], vec![], vec![]);
    for (t, layout) in all {
        let l = layout.clone().into_layout();
        let placement = match l.placement {
            Some(p) => p,
            None => t.placement().map_err(|e| e.at(site))?.clone(),
        };
        inputs.push(Some(*t));
        placements.push(AttrValue::from(placement));
        sbps.push(AttrValue::from(l.sbp));
        stated.push(AttrValue::from(l.grad_sbp));
    }
    let attrs = smallvec![placements.into(), sbps.into(), stated.into()];
    Ok(invoke(op!("box_many"), &inputs, attrs, smallvec![], site)?.into_vec())
}

/// A global tensor from boxes that ranks happen to hold: pieces of a checkpoint, unbalanced results of ops whose sizes depend
/// on data. Each rank gives its boxes as (offset in the logical tensor, local tensor), several or none; together they
/// cover the tensor, and where they overlap they are copies. Every rank gets each element of its shard once, from
/// its own boxes where they have it. A collective of the world, with the same shape and layout on all ranks; not recorded
/// for autograd.
///
/// ```
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?;
/// let (head, tail) = (arange(2, Device::Cpu)?, arange(3, Device::Cpu)?);
/// let x = oflow::from_boxes(&[(&[0], &head), (&[2], &tail)], [5], (&mesh, sbp![S(0)]))?;
/// assert_eq!(x.to_vec::<i64>()?, [0, 1, 0, 1, 2]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// On every rank alike: when a box is not inside the shape, dtypes differ, the boxes leave a hole (the first is named), or a
/// box requires a gradient or lies on another device.
#[track_caller]
pub fn from_boxes(
    boxes: &[(&[usize], &Tensor)],
    shape: impl AsRef<[usize]>,
    layout: impl IntoLayout,
) -> Result<Tensor> {
    let (l, site) = (layout.into_layout(), CallSite::here());
    let p = l.placement.ok_or_else(|| {
        Error::argument("from_boxes needs a placement").at(site).help("write `(&placement, sbp![...])`")
    })?;
    let inputs: Vec<Option<&Tensor>> = boxes.iter().map(|(_, t)| Some(*t)).collect();
    let offsets: Vec<AttrValue> = boxes.iter().map(|(at, _)| AttrValue::from(*at)).collect();
    let attrs = smallvec![offsets.into(), shape.as_ref().into(), p.into(), l.sbp.into()];
    invoke1(op!("from_boxes"), &inputs, attrs, smallvec![], site)
}

impl Tensor {
    /// On a global tensor: boxing, the logical value stays. On a local one: each rank's tensor becomes its shard (a
    /// collective that checks the shapes; B shards are made equal). States nothing about the gradient unless `.grad_sbp`
    /// does: boxing passes it on as it is, a shard gets it as S ↔ S, B ↔ P.
    ///
    /// # Errors
    /// When the layout is not one of this tensor, or shards are not the balanced split.
    #[track_caller]
    pub fn to_global(&self, layout: impl IntoLayout) -> Result<Tensor> {
        let (l, site) = (layout.into_layout(), CallSite::here());
        match self.global() {
            Some(g) => {
                let p = l.placement.unwrap_or_else(|| g.placement.clone());
                invoke1(op!("to_global"), &[Some(self)], layout_attrs(p, l.sbp, l.grad_sbp), smallvec![], site)
            }
            None => {
                let p = l.placement.ok_or_else(|| {
                    Error::argument("a local tensor becomes global on a placement")
                        .in_call(|| format!("to_global({})", self.short()))
                        .at(site)
                        .help("write `(&placement, sbp![...])`")
                })?;
                let attrs = layout_attrs(p, l.sbp, l.grad_sbp);
                invoke1(op!("shards_to_global"), &[Some(self)], attrs, smallvec![], site)
            }
        }
    }

    /// This rank's shard as a local tensor. Its gradient comes back as S where split and as P where B (each rank's part of
    /// the whole), unless [`Tensor::to_local_with`] says otherwise.
    #[track_caller]
    pub fn to_local(&self) -> Result<Tensor> {
        self.shard_as_local(None, CallSite::here())
    }

    /// The shard, with the SBP that the gradient of the shard has as a global tensor.
    #[track_caller]
    pub fn to_local_with(&self, grad_sbp: impl Into<NdSbp>) -> Result<Tensor> {
        self.shard_as_local(Some(grad_sbp.into()), CallSite::here())
    }

    fn shard_as_local(&self, grad_sbp: Option<NdSbp>, site: CallSite) -> Result<Tensor> {
        invoke1(op!("to_local"), &[Some(self)], grad_sbp.map(AttrValue::NdSbp).into_iter().collect(), smallvec![], site)
    }

    pub(crate) fn cast_at(&self, dtype: DType, site: CallSite) -> Result<Tensor> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        invoke1(op!("cast"), &[Some(self)], smallvec![dtype.into()], smallvec![], site)
    }

    /// This rank's shard as data, for code that looks inside (checkpoints, tests). None outside the placement.
    pub fn shard(&self) -> Result<Option<LocalTensor>> {
        Ok(self.data()?.map(|l| if self.is_global() { l.into_shard() } else { l }))
    }
}
