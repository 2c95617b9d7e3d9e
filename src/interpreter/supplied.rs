//! Gradients that a program supplies: returned by its own backward functions and hooks, given to `backward` and `grad`, assigned to
//! `grad`. They are held against the type of the tensor that they are gradients of before anything computes with them, as PyTorch does.
//!
//! | supplied by | shape | dtype |
//! |---|---|---|
//! | `backward(g)`, `grad_outputs` | must be equal | cast |
//! | a backward function | summed over dims that broadcasting would repeat | cast |
//! | a hook | must be equal | must be that of the gradient it was given |
//! | `x.grad = g` | must be equal | must be equal |
//!
//! In every case the gradient must be of this rank's world, and local on the same device or global on the same placement. Its nd-SBP
//! is free: the logical value counts, and it is boxed where it is used.

use super::capture::in_capture;
use super::emit::EagerEmit;
use super::grad_dtype::cast;
use crate::error::{CallSite, Error, ErrorKind, Result};
use crate::ops::{AttrValue, Emit, Value};
use crate::plan::TypeRef;
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::SmallVec;

/// Supplier of a gradient, for the message: "Scaled.backward returned", "the hook registered at a.py:3 returned".
pub(super) type Who<'a> = &'a dyn Fn() -> String;

/// The type of a tensor with its place: `f32[2, 3] [S(0)] on cpu[2]`.
fn described(ty: &TypeRef) -> String {
    match ty {
        TypeRef::Local(l) => l.to_string(),
        TypeRef::Global(g) => g.to_string(),
    }
}

fn refused(kind: ErrorKind, g: &Tensor, of: &TypeRef, who: Who<'_>, expected: impl FnOnce() -> String) -> Error {
    let given = g.type_ref().map_or_else(|| format!("{g:?}"), |ty| described(&ty));
    Error::new(kind, format!("{} {given} as the gradient of {}: expected {}", who(), described(of), expected()))
}

/// Checks that a gradient is a value of this rank's world in the place of the tensor that it is of.
///
/// # Errors
/// It is local where the tensor is global or the reverse, on another device or placement, or a tensor of another rank or world.
fn check_place(g: &Tensor, of: &TypeRef, who: Who<'_>) -> Result<()> {
    g.check_origin().map_err(|e| e.within(who))?;
    match (of, g.global()) {
        (TypeRef::Global(want), Some(have)) if want.placement == have.placement => Ok(()),
        (TypeRef::Global(want), Some(_)) => {
            Err(refused(ErrorKind::Placement, g, of, who, || format!("a tensor on {}", want.placement))
                .help("bring it there with `to_global`"))
        }
        (TypeRef::Global(want), None) => {
            Err(refused(ErrorKind::Placement, g, of, who, || format!("a global tensor on {}", want.placement)).help(
                "make one with `distribute` (every rank has the value) or `to_global` (every rank has its shard)",
            ))
        }
        (TypeRef::Local(_), Some(_)) => Err(refused(ErrorKind::Placement, g, of, who, || "a local tensor".to_string())
            .help("`to_local` gives this rank's shard; box to broadcast first where the whole value is meant")),
        (TypeRef::Local(want), None) if want.device == g.device() => Ok(()),
        (TypeRef::Local(want), None) => {
            Err(refused(ErrorKind::Placement, g, of, who, || format!("a tensor on {}", want.device))
                .help("move it there with `to_device`"))
        }
    }
}

fn check_shape(g: &Tensor, of: &TypeRef, who: Who<'_>) -> Result<()> {
    let want = &of.ty().shape;
    match g.shape() == want.as_slice() {
        true => Ok(()),
        false => Err(refused(ErrorKind::Shape, g, of, who, || format!("the shape {want:?}"))),
    }
}

fn check_dtype(g: &Tensor, of: &TypeRef, want: DType, who: Who<'_>) -> Result<()> {
    match g.dtype() == want {
        true => Ok(()),
        false => Err(refused(ErrorKind::DType, g, of, who, || format!("the dtype {want}"))
            .help(format!("cast it: `to({want})` in Python, `cast(DType::{want:?})` in Rust"))),
    }
}

/// The dtype to which a gradient of a tensor of `ty` is cast; none if it stays as it is.
///
/// # Errors
/// A complex gradient of a real tensor, or one of integers of a complex tensor.
fn cast_to(g: &Tensor, of: &TypeRef, wide: Option<DType>, who: Who<'_>) -> Result<Option<DType>> {
    let (have, want) = (g.dtype(), of.ty().dtype);
    if have == want || Some(have) == wide {
        return Ok(None);
    }
    if want.is_complex() && !have.is_complex() && !have.is_float() || have.is_complex() && !want.is_complex() {
        return Err(refused(ErrorKind::DType, g, of, who, || {
            if want.is_complex() { "complex numbers or floats" } else { "real numbers" }.to_string()
        })
        .help(if want.is_complex() { "cast it" } else { "take `real()` of it" }));
    }
    // Nothing is added up in 8 bits: what passes an 8-bit float keeps its dtype.
    let want = if want.has_gradients() { want } else { DType::F32 };
    Ok(if have.has_gradients() && !of.ty().dtype.has_gradients() { None } else { Some(want) })
}

/// Whether a tensor of `shape` can be broadcast to `to`.
fn expands(shape: &[usize], to: &[usize]) -> bool {
    let Some(lead) = to.len().checked_sub(shape.len()) else { return false };
    shape.iter().zip(&to[lead..]).all(|(n, m)| n == m || *n == 1)
}

/// Sums a gradient over the dims that broadcasting from `shape` repeated.
pub(super) fn sum_to_shape(emit: &mut dyn Emit, v: Value, shape: &[usize]) -> Result<Value> {
    let have = emit.shape(v);
    let lead = have.len().saturating_sub(shape.len());
    let dims: SmallVec<[i64; 6]> =
        (0..have.len()).filter(|d| *d < lead || (shape[*d - lead] == 1 && have[*d] != 1)).map(|d| d as i64).collect();
    let v = if dims.is_empty() {
        v
    } else {
        emit.call("sum", &[v], &[("dims", AttrValue::Ints(dims)), ("keepdim", true.into())])?
    };
    if emit.shape(v).as_slice() == shape { Ok(v) } else { emit.call("reshape", &[v], &[("shape", shape.into())]) }
}

fn check_expands(g: &Tensor, of: &TypeRef, who: Who<'_>) -> Result<()> {
    let want = &of.ty().shape;
    match expands(want, g.shape()) {
        true => Ok(()),
        false => {
            Err(refused(ErrorKind::Shape, g, of, who, || format!("the shape {want:?}, or one to which it broadcasts")))
        }
    }
}

/// The gradient of an output from which backward starts, as the program gave it: cast to the output's dtype.
///
/// # Errors
/// See the table above.
pub(super) fn of_output(g: Tensor, out: &Tensor, site: CallSite) -> Result<Tensor> {
    let Some(of) = out.type_ref() else { return Ok(g) };
    let who: Who<'_> = &|| "backward was given".to_string();
    let g = in_capture(g, site)?;
    check_place(&g, &of, who)?;
    check_shape(&g, &of, who)?;
    match cast_to(&g, &of, None, who)? {
        Some(dtype) => cast(&g, dtype, site),
        None => Ok(g),
    }
}

/// The gradient of an input of a call that a backward function of the program returned: summed to the shape of the input and cast to
/// its dtype, if it has not the dtype `wide` in which contributions to that input are added up.
///
/// # Errors
/// See the table above.
pub(super) fn of_input(g: Tensor, of: &TypeRef, wide: Option<DType>, who: Who<'_>, site: CallSite) -> Result<Tensor> {
    let mut g = in_capture(g, site)?;
    check_place(&g, of, who)?;
    check_expands(&g, of, who)?;
    let dtype = cast_to(&g, of, wide, who)?;
    if g.shape() != of.ty().shape.as_slice() {
        let mut emit = EagerEmit::new("backward", site);
        let v = emit.put(g);
        let summed = sum_to_shape(&mut emit, v, &of.ty().shape)?;
        g = emit.get(summed);
    }
    match dtype {
        Some(dtype) => cast(&g, dtype, site),
        None => Ok(g),
    }
}

/// Checks what the gradient rule of an op has made for an input.
///
/// # Errors
/// It is in another place, or of a shape to which that of the input does not broadcast.
pub(super) fn check_made(g: &Tensor, of: &TypeRef, op: &str) -> Result<()> {
    let who: Who<'_> = &|| format!("the gradient rule of {op} made");
    check_place(g, of, who)?;
    check_expands(g, of, who)
}

/// Checks what a hook returned in place of the gradient `g`.
///
/// # Errors
/// It has not the shape, dtype and place of `g`.
pub(super) fn check_replaced(new: &Tensor, g: &Tensor, registered: CallSite) -> Result<()> {
    let Some(of) = g.type_ref() else { return Ok(()) };
    let who: Who<'_> = &|| format!("the hook registered at {registered} returned");
    check_place(new, &of, who)?;
    check_shape(new, &of, who)?;
    check_dtype(new, &of, g.dtype(), who)
}

/// Checks a gradient that the program assigns to a tensor. The dtype may also be that of the gradient that it replaces, which is f32
/// where a `GradScaler` has unscaled the gradient of a half.
///
/// # Errors
/// It has not the shape, dtype and place of the tensor, or is the tensor.
pub(crate) fn check_assigned(new: &Tensor, of: &Tensor, before: Option<&Tensor>) -> Result<()> {
    let Some(ty) = of.type_ref() else { return Ok(()) };
    if new.same(of) {
        return Err(Error::autograd(format!("{new:?} cannot be its own gradient")).help("assign a copy: `x.copy()`"));
    }
    let who: Who<'_> = &|| "`grad` was assigned".to_string();
    check_place(new, &ty, who)?;
    check_shape(new, &ty, who)?;
    match before {
        Some(before) if before.dtype() == new.dtype() => Ok(()),
        _ => check_dtype(new, &ty, of.dtype(), who),
    }
}
