//! Reading and writing a strided window of a tensor's elements, counted row-major: what views of local tensors mean for
//! gradients. Hidden: the interpreter records them where a view or its base was written in place.
//!
//! The three close over each other, so every order of derivative is there: the gradient of a read is a put, of a put a read,
//! of a write a write of zeros and a read.

use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Grad, GradCtx, InferCtx, OpDef, ShapeRule, Value};
use oflow_kernels::Dims;

/// The window must lie within so many elements; one that is written shows each of them once.
fn check(c: &InferCtx<'_>, shape: &[usize], elements: usize, written: bool) -> Result<()> {
    let (offset, strides) = (c.int("offset")?, c.ints("strides")?);
    let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    let bad = |why: &str| {
        Error::argument(format!("a window of {shape:?} by strides {strides:?} from element {offset} {why}"))
    };
    if shape.len() != strides.len() || offset < 0 || shape.iter().chain(strides).any(|n| *n < 0) {
        return Err(bad("needs a size and a stride of at least 0 per dim"));
    }
    if shape.contains(&0) {
        return Ok(());
    }
    let mut ends = shape.iter().zip(strides).map(|(n, s)| (n - 1).checked_mul(*s));
    let last = ends.try_fold(offset, |sum: i64, end| sum.checked_add(end?));
    if last.is_none_or(|last| last as u64 >= elements as u64) {
        return Err(bad(&format!("does not lie in {elements} elements")));
    }
    let mut dims: Vec<(i64, i64)> =
        strides.iter().copied().zip(shape.iter().copied()).filter(|(_, n)| *n > 1).collect();
    dims.sort_unstable();
    // In falling order of strides each dim must step over all that the smaller ones reach.
    let mut reach = 0;
    for (stride, n) in dims {
        if written && stride <= reach {
            return Err(bad("shows an element more than once"));
        }
        reach += (n - 1) * stride;
    }
    Ok(())
}

/// The `shape` attribute, whose sizes are not negative.
fn asked(c: &InferCtx<'_>) -> Result<Dims> {
    Ok(c.ints("shape")?.iter().map(|n| *n as usize).collect())
}

fn place(g: &dyn GradCtx) -> Result<[(&'static str, AttrValue); 2]> {
    Ok([("offset", g.attr("offset")?), ("strides", g.attr("strides")?)])
}

fn read_at(g: &mut dyn GradCtx, from: Value, shape: AttrValue) -> Result<Value> {
    let [offset, strides] = place(g)?;
    g.call("strided_read", &[from], &[("shape", shape), offset, strides])
}

fn read() -> Result<OpDef> {
    Ok(OpDef::new("strided_read(x: any; shape: shape, offset: int, strides: ints) -> y")?
        .traits(|t| t.hidden = true)
        .doc("The elements offset + Σ index · stride of x, counted row-major; a stride of 0 repeats.")
        .shape_rule(ShapeRule::Attr)
        .dtype(DTypeRule::Input(0))
        .check(|c| check(c, &asked(c)?, c.input(0)?.len(), false))
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let shape = g.input_shape(0);
            // What was repeated adds up.
            let (AttrValue::Ints(strides), dims) = (g.attr("strides")?, g.shape(dy)) else {
                return Err(Error::argument("'strides' must be a list of ints"));
            };
            let repeated = (0..dims.len()).filter(|d| strides[*d] == 0 && dims[*d] != 1).map(|d| d as i64);
            let repeated: smallvec::SmallVec<[i64; 6]> = repeated.collect();
            let dy = match repeated.is_empty() {
                true => dy,
                false => g.call("sum", &[dy], &[("dims", AttrValue::Ints(repeated)), ("keepdim", true.into())])?,
            };
            let [offset, strides] = place(g)?;
            let dx = g.call("strided_put", &[dy], &[("shape", shape.as_slice().into()), offset, strides])?;
            g.set(0, dx)
        }))
        .samples(&[
            "f32[4, 6]; shape=[2, 3], offset=7, strides=[6, 2]",
            "f64[5]; shape=[3, 2], offset=1, strides=[0, 3]",
            "i32[6]; shape=[0, 2], offset=9, strides=[1, 1]",
        ]))
}

fn put() -> Result<OpDef> {
    Ok(OpDef::new("strided_put(y: number; shape: shape, offset: int, strides: ints) -> x")?
        .traits(|t| t.hidden = true)
        .doc("Zeros with y at the elements offset + Σ index · stride, counted row-major: the gradient of strided_read.")
        .shape_rule(ShapeRule::Attr)
        .dtype(DTypeRule::Input(0))
        .check(|c| {
            let all = c.ints("shape")?.iter().try_fold(1i64, |n, size| n.checked_mul(*size));
            let all = all.ok_or_else(|| Error::shape(format!("{:?} has too many elements", c.ints("shape"))))?;
            check(c, c.shape(0)?, all as usize, true)
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dx) = g.grad(0) else { return Ok(()) };
            let shape = g.input_shape(0);
            let dy = read_at(g, dx, shape.as_slice().into())?;
            g.set(0, dy)
        }))
        .samples(&["f32[2, 3]; shape=[4, 6], offset=7, strides=[6, 2]", "f64[3]; shape=[2, 4], offset=1, strides=[3]"]))
}

fn write() -> Result<OpDef> {
    Ok(OpDef::new("strided_write(x: any, y?: any; shape: shape, offset: int, strides: ints) -> z")?
        .traits(|t| t.hidden = true)
        .doc("x with y, of that shape, at the elements offset + Σ index · stride, counted row-major; without y with zeros.")
        .dtype(DTypeRule::Input(0))
        .check(|c| {
            let shape = asked(c)?;
            if c.has(1) && c.shape(1)? != shape.as_slice() {
                return Err(Error::shape(format!("{:?} is written to a window of {shape:?}", c.shape(1)?)));
            }
            check(c, &shape, c.input(0)?.len(), true)
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dz) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let [offset, strides] = place(g)?;
                let attrs = [("shape", g.attr("shape")?), offset, strides];
                let dx = g.emit("strided_write", &[Some(dz), None], &attrs)?[0];
                g.set(0, dx)?;
            }
            if g.has(1) && g.needs(1) {
                let shape = g.attr("shape")?;
                let dy = read_at(g, dz, shape)?;
                g.set(1, dy)?;
            }
            Ok(())
        }))
        .samples(&[
            "f32[4, 6] f32[2, 3]; shape=[2, 3], offset=7, strides=[6, 2]",
            "f64[2, 3] -; shape=[3, 2], offset=0, strides=[1, 3]",
        ]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![read(), put(), write()]
}
