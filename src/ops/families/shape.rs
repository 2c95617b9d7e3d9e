//! Moving elements: permute, expand, slice, concat. Local results are views where strides suffice.

use super::KINDS;
use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Grad, GradArg, InferCtx, OpDef, ShapeRule};
use crate::sbp::{Sbp, Signature, broadcast_dim};
use oflow_kernels::{DType, Dims, Strides};
use smallvec::{SmallVec, smallvec};

/// All P kinds pass: elements are moved or repeated, never changed.
fn moved(n: usize) -> impl Iterator<Item = Signature> {
    KINDS
        .into_iter()
        .map(move |op| Signature::new(&SmallVec::<[Sbp; 4]>::from_elem(Sbp::Partial(op), n), &[Sbp::Partial(op)]))
}

fn permutation(c: &InferCtx<'_>) -> Result<Vec<usize>> {
    let rank = c.shape(0)?.len();
    let given = c.ints("dims")?;
    let dims: Vec<usize> = given.iter().map(|d| crate::ops::normalize_dim(*d, rank)).collect::<Result<_>>()?;
    let mut sorted = dims.clone();
    sorted.sort_unstable();
    if sorted != (0..rank).collect::<Vec<_>>() {
        return Err(Error::argument(format!("{given:?} is not a permutation of the {rank} dims")));
    }
    Ok(dims)
}

fn permute() -> Result<OpDef> {
    let order = |attrs: &crate::ops::Attrs, rank: usize| -> Dims {
        match &attrs[0] {
            AttrValue::Ints(v) => v.iter().map(|d| (*d).rem_euclid(rank.max(1) as i64) as usize).collect(),
            _ => Dims::new(),
        }
    };
    Ok(OpDef::new("permute(x: any; dims: ints) -> y")?
        .doc("The dims in the order `dims`.")
        .strided()
        .shape1(|c| {
            let x = c.shape(0)?;
            Ok(permutation(c)?.into_iter().map(|d| x[d]).collect())
        })
        .get_sbp(|c| {
            let p = permutation(c)?;
            Ok((0..p.len()).map(|j| Signature::new(&[Sbp::Split(p[j])], &[Sbp::Split(j)])).chain(moved(1)).collect())
        })
        .view(move |dims, strides, attrs, _| {
            Some((0, order(attrs, dims.len()).into_iter().map(|d| strides[d]).collect::<Strides>()))
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let rank = g.input_shape(0).len();
            let mut back = vec![0i64; rank];
            if let AttrValue::Ints(v) = g.attr("dims")? {
                for (j, d) in v.iter().enumerate() {
                    back[d.rem_euclid(rank.max(1) as i64) as usize] = j as i64;
                }
            }
            let dx = g.call("permute", &[dy], &[("dims", back.into())])?;
            g.set(0, dx)
        }))
        .samples(&["f32[3, 5]; dims=[1, 0]", "f32[2, 3, 4]; dims=[2, 0, 1]", "bool[2, 3]; dims=[-1, 0]"]))
}

fn expand() -> Result<OpDef> {
    Ok(OpDef::new("expand(x: any; shape: shape) -> y")?
        .doc("Repeats dims of size 1 (and new leading dims) to a shape.")
        .strided()
        .shape_rule(ShapeRule::Attr)
        .dtype(DTypeRule::Input(0))
        .check(|c| {
            let (x, want) = (c.shape(0)?, c.sizes("shape")?);
            let fits = want.len() >= x.len() && x.iter().rev().zip(want.iter().rev()).all(|(a, b)| *a == 1 || a == b);
            if fits { Ok(()) } else { Err(Error::shape(format!("{x:?} cannot be expanded to {:?}", want.as_slice()))) }
        })
        .get_sbp(|c| {
            let x = c.shape(0)?;
            let out = c.sizes("shape")?;
            // A repeated dim may be split in the output alone: each rank repeats as often as its shard is long.
            let side = |d| broadcast_dim(x, &out, d).map_or(Sbp::Broadcast, Sbp::Split);
            Ok((0..out.len()).map(|d| Signature::new(&[side(d)], &[Sbp::Split(d)])).chain(moved(1)).collect())
        })
        .localize(|c| Ok(smallvec![AttrValue::from(c.outputs[0].size.as_slice())]))
        .view(|dims, strides, _, shape| {
            let lead = shape.len().checked_sub(dims.len())?;
            Some((
                0,
                (0..shape.len())
                    .map(|d| if d < lead || (dims[d - lead] == 1 && shape[d] != 1) { 0 } else { strides[d - lead] })
                    .collect::<Strides>(),
            ))
        })
        // The context sums a gradient over dims that were repeated.
        .grad(Grad::rule_saving(&[], &[], |g| match g.grad(0) {
            Some(dy) => g.set(0, dy),
            None => Ok(()),
        }))
        .samples(&[
            "f32[3, 1]; shape=[3, 5]",
            "f32[4]; shape=[2, 3, 4]",
            "f64[1, 3]; shape=[1, 3]",
            "i32[2, 1, 3]; shape=[2, 4, 3]",
        ]))
}

/// The dim that a slice cuts, and how many elements it leaves there.
struct Cut {
    dim: usize,
    count: usize,
}

fn cut(c: &InferCtx<'_>) -> Result<Cut> {
    let x = c.shape(0)?;
    if x.is_empty() {
        return Err(Error::shape("a tensor without dims cannot be sliced"));
    }
    let dim = c.dim("dim", x.len())?;
    let (start, end, step) = (c.int("start")?, c.int("end")?, c.int("step")?);
    if step < 1 || start < 0 || end < start || end as usize > x[dim] {
        return Err(Error::argument(format!(
            "slice {start}..{end} by {step} does not fit dim {dim} of size {}",
            x[dim]
        ))
        .help("slices count from the front with a step of at least 1"));
    }
    let count = ((end - start) as usize).div_ceil(step as usize);
    Ok(Cut { dim, count })
}

fn slice() -> Result<OpDef> {
    Ok(OpDef::new("slice(x: any; dim: int, start: int, end: int, step: int = 1) -> y")?
        .doc("Elements start, start + step, … below end of one dim.")
        .strided()
        .shape1(|c| {
            let k = cut(c)?;
            let mut s: Dims = c.shape(0)?.into();
            s[k.dim] = k.count;
            Ok(s)
        })
        .get_sbp(|c| {
            let k = cut(c)?;
            let mut s: Vec<Signature> = (0..c.shape(0)?.len())
                .filter(|d| *d != k.dim)
                .map(|d| Signature::new(&[Sbp::Split(d)], &[Sbp::Split(d)]))
                .collect();
            s.extend(moved(1));
            // Each rank adds the elements it has.
            s.push(Signature::new(&[Sbp::Split(k.dim)], &[Sbp::PARTIAL_SUM]));
            Ok(s)
        })
        .view(|dims, strides, attrs, shape| {
            let (AttrValue::Int(d), AttrValue::Int(start), AttrValue::Int(step)) = (&attrs[0], &attrs[1], &attrs[3])
            else {
                return None;
            };
            let dim = d.rem_euclid(dims.len() as i64) as usize;
            // A split sliced dim has another physical size than the attributes speak of.
            if attrs.len() > 4 {
                return None;
            }
            let mut s: Strides = strides.into();
            let offset = if shape[dim] == 0 { 0 } else { *start as isize * s[dim] };
            // Between fewer than two elements there is no step, and it may be any number.
            if shape[dim] > 1 {
                s[dim] *= *step as isize;
            }
            Some((offset, s))
        })
        .localize(|c| {
            let mut attrs = c.logical.attrs.clone();
            let k = cut(c.logical)?;
            if let Some(b) = &c.inputs[0]
                && b.size[k.dim] != b.logical[k.dim]
            {
                // Marks that the kernel must look at the boxes.
                attrs.push(AttrValue::Bool(true));
            }
            Ok(attrs)
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let shape = g.input_shape(0);
            let dim = match g.attr("dim")? {
                AttrValue::Int(d) => d.rem_euclid(shape.len() as i64) as usize,
                _ => 0,
            };
            let attrs = [
                ("dim", dim.into()),
                ("start", g.attr("start")?),
                ("step", g.attr("step")?),
                ("size", shape[dim].into()),
            ];
            let dx = g.call("slice_grad", &[dy], &attrs)?;
            g.set(0, dx)
        }))
        .samples(&[
            "f32[6, 4]; dim=0, start=1, end=5",
            "f32[3, 7]; dim=1, start=0, end=7, step=3",
            "i32[5]; dim=0, start=2, end=2",
            "f64[2, 5, 3]; dim=-2, start=1, end=4, step=2",
        ]))
}

fn slice_grad() -> Result<OpDef> {
    Ok(OpDef::new("slice_grad(dy: number; dim: int, start: int, step: int, size: int) -> dx")?
        .doc("Zeros of `size` along a dim with dy at start, start + step, …: the gradient of slice.")
        .by_name_only()
        .strided()
        .shape1(|c| {
            let mut s: Dims = c.shape(0)?.into();
            let d = c.dim("dim", s.len())?;
            if s.is_empty() {
                return Err(Error::shape("a tensor without dims cannot be a slice"));
            }
            let (n, size) = (s[d] as i64, c.size("size")?);
            let (start, step) = (c.int("start")?, c.int("step")?);
            let last = (n - 1).max(0).checked_mul(step).and_then(|k| k.checked_add(start));
            if start < 0 || step < 1 || n > 0 && last.is_none_or(|last| last as usize >= size) {
                return Err(Error::argument(format!(
                    "{n} elements from {start} by {step} do not fit a dim of size {size}"
                )));
            }
            s[d] = size;
            Ok(s)
        })
        .get_sbp(|c| {
            let rank = c.shape(0)?.len();
            let dim = c.dim("dim", rank)?;
            let mut s: Vec<Signature> =
                (0..rank).filter(|d| *d != dim).map(|d| Signature::new(&[Sbp::Split(d)], &[Sbp::Split(d)])).collect();
            s.push(Signature::new(&[Sbp::Broadcast], &[Sbp::Split(dim)]));
            // The zeros are the same on all ranks.
            s.extend(moved(1));
            Ok(s)
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(v) = g.grad(0) else { return Ok(()) };
            let (start, step) = (g.attr("start")?, g.attr("step")?);
            let shape = g.input_shape(0);
            let (dim, end) = match (g.attr("dim")?, &start, &step) {
                (AttrValue::Int(d), AttrValue::Int(a), AttrValue::Int(s)) => {
                    let dim = d.rem_euclid(shape.len() as i64) as usize;
                    let n = shape[dim] as i64;
                    (d, if n == 0 { *a } else { a + (n - 1) * s + 1 })
                }
                _ => return Err(Error::argument("slice_grad attributes")),
            };
            let d =
                g.call("slice", &[v], &[("dim", dim.into()), ("start", start), ("end", end.into()), ("step", step)])?;
            g.set(0, d)
        }))
        .samples(&["f32[4, 3]; dim=0, start=1, step=2, size=9", "f64[2, 2]; dim=1, start=0, step=1, size=5"]))
}

/// A diagonal: its two dims, the row and the column of its first element, and its length.
pub(crate) struct Diagonal {
    pub dims: [usize; 2],
    pub first: [usize; 2],
    pub len: usize,
}

impl Diagonal {
    /// Of a tensor of that shape; none where the dims are not two dims of it.
    pub(crate) fn of(shape: &[usize], offset: i64, dims: [i64; 2]) -> Option<Diagonal> {
        let dim = |d| crate::ops::normalize_dim(d, shape.len()).ok().filter(|d| *d < shape.len());
        let dims = [dim(dims[0])?, dim(dims[1])?];
        let away = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
        let first = if offset < 0 { [away, 0] } else { [0, away] };
        let room = |i: usize| shape[dims[i]].saturating_sub(first[i]);
        (dims[0] != dims[1]).then_some(Diagonal { dims, first, len: room(0).min(room(1)) })
    }
    fn attrs(attrs: &crate::ops::Attrs, shape: &[usize]) -> Option<Diagonal> {
        match attrs[..] {
            [AttrValue::Int(offset), AttrValue::Int(a), AttrValue::Int(b), ..] => Diagonal::of(shape, offset, [a, b]),
            _ => None,
        }
    }
    fn given(c: &InferCtx<'_>) -> Result<Diagonal> {
        let no_dims = || Error::argument("a diagonal belongs to two different dims");
        Diagonal::attrs(c.attrs, c.shape(0)?).ok_or_else(no_dims)
    }
    /// The other dims, in order.
    fn others(&self, rank: usize) -> impl Iterator<Item = usize> {
        let dims = self.dims;
        (0..rank).filter(move |d| !dims.contains(d))
    }
}

fn diagonal() -> Result<OpDef> {
    Ok(OpDef::new("diagonal(x: any[2..]; offset: int = 0, dim1: int = 0, dim2: int = 1) -> y")?
        .doc("The diagonal of two dims, as the last dim of the result. A positive offset lies above the main diagonal.")
        .strided()
        .shape1(|c| {
            let (x, d) = (c.shape(0)?, Diagonal::given(c)?);
            Ok(d.others(x.len()).map(|i| x[i]).chain([d.len]).collect())
        })
        .get_sbp(|c| {
            let (rank, k) = (c.shape(0)?.len(), Diagonal::given(c)?);
            let kept = k.others(rank).enumerate().map(|(j, d)| Signature::new(&[Sbp::Split(d)], &[Sbp::Split(j)]));
            // Each rank adds the elements it has.
            let cut = k.dims.map(|d| Signature::new(&[Sbp::Split(d)], &[Sbp::PARTIAL_SUM]));
            Ok(kept.chain(moved(1)).chain(cut).collect())
        })
        .view(|dims, strides, attrs, shape| {
            // A split dim of the two has another physical size than the attributes speak of.
            if attrs.len() > 3 {
                return None;
            }
            let k = Diagonal::attrs(attrs, dims)?;
            let [a, b] = k.dims.map(|d| strides[d]);
            let offset = if shape.contains(&0) { 0 } else { k.first[0] as isize * a + k.first[1] as isize * b };
            let step = if k.len > 1 { a + b } else { 1 };
            Some((offset, k.others(dims.len()).map(|d| strides[d]).chain([step]).collect()))
        })
        .localize(|c| {
            let mut attrs = c.logical.attrs.clone();
            let k = Diagonal::given(c.logical)?;
            if let Some(b) = &c.inputs[0]
                && k.dims.iter().any(|d| b.size[*d] != b.logical[*d])
            {
                // Marks that the kernel must look at the boxes.
                attrs.push(AttrValue::Bool(true));
            }
            Ok(attrs)
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let shape = g.input_shape(0);
            let (AttrValue::Int(offset), AttrValue::Int(a), AttrValue::Int(b)) =
                (g.attr("offset")?, g.attr("dim1")?, g.attr("dim2")?)
            else {
                return Err(Error::argument("diagonal attributes"));
            };
            let Some(k) = Diagonal::of(&shape, offset, [a, b]) else { return Err(Error::argument("diagonal dims")) };
            // In row-major order of both dims the elements stand columns + 1 places apart.
            let [rows, columns] = k.dims.map(|d| shape[d]);
            let start = if k.len == 0 { 0 } else { k.first[0] * columns + k.first[1] };
            let attrs = [
                ("dim", (shape.len() as i64 - 2).into()),
                ("start", start.into()),
                ("step", (columns + 1).into()),
                ("size", (rows * columns).into()),
            ];
            let flat = g.call("slice_grad", &[dy], &attrs)?;
            let order: Vec<usize> = k.others(shape.len()).chain(k.dims).collect();
            let apart: Vec<usize> = order.iter().map(|d| shape[*d]).collect();
            let dx = g.call("reshape", &[flat], &[("shape", apart.as_slice().into())])?;
            let mut back = vec![0i64; order.len()];
            order.iter().enumerate().for_each(|(at, d)| back[*d] = at as i64);
            let dx = g.call("permute", &[dx], &[("dims", back.into())])?;
            g.set(0, dx)
        }))
        .samples(&[
            "f32[4, 5]",
            "f32[5, 3, 4]; offset=1, dim1=0, dim2=-1",
            "f64[4, 4, 2]; offset=-2",
            "i32[2, 3]; offset=7",
            "bool[3, 3]; dim1=1, dim2=0",
        ]))
}

fn concat() -> Result<OpDef> {
    Ok(OpDef::new("concat(xs...: any; dim: int = 0) -> y")?
        .doc("The tensors one after another along a dim: what `cat` calls.")
        .by_name_only()
        .strided()
        .shape1(|c| {
            let first = c.shape(0)?;
            if first.is_empty() {
                return Err(Error::shape("tensors without dims cannot be concatenated").help("use `stack`"));
            }
            let d = c.dim("dim", first.len())?;
            let mut out: Dims = first.into();
            out[d] = 0;
            for t in c.present() {
                let same = t.shape.len() == first.len() && (0..first.len()).all(|i| i == d || t.shape[i] == first[i]);
                if !same {
                    return Err(Error::shape(format!(
                        "{:?} and {:?} differ in more than dim {d}",
                        first,
                        t.shape.as_slice()
                    )));
                }
                out[d] = out[d].saturating_add(t.shape[d]);
            }
            Ok(out)
        })
        .get_sbp(|c| {
            let rank = c.shape(0)?.len();
            let (dim, n) = (c.dim("dim", rank)?, c.inputs.len());
            Ok((0..rank)
                .filter(|d| *d != dim)
                .map(|d| Signature::new(&SmallVec::<[Sbp; 4]>::from_elem(Sbp::Split(d), n), &[Sbp::Split(d)]))
                .chain(
                    moved(n).filter(|_| {
                        c.present().all(|t| t.dtype == c.inputs[0].as_ref().map_or(DType::F32, |t| t.dtype))
                    }),
                )
                .collect())
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let rank = g.input_shape(0).len();
            let d = match g.attr("dim")? {
                AttrValue::Int(d) => d.rem_euclid(rank as i64) as usize,
                _ => 0,
            };
            let mut at = 0;
            for i in 0..g.inputs() {
                let n = g.input_shape(i)[d];
                if g.needs(i) {
                    let part =
                        g.call("slice", &[dy], &[("dim", d.into()), ("start", at.into()), ("end", (at + n).into())])?;
                    g.set(i, part)?;
                }
                at += n;
            }
            Ok(())
        }))
        .samples(&["f32[2, 3] f32[4, 3]; dim=0", "f32[2, 3] f32[2, 1] f32[2, 2]; dim=1", "i64[3] i64[2]; dim=-1"]))
}

fn triangle(name: &str, lower: bool) -> Result<OpDef> {
    Ok(OpDef::new(&format!("{name}(x: number[2..]; diagonal: int = 0) -> y"))?
        .doc(if lower {
            "Zeros above a diagonal of the last two dims. Diagonal 0 is the main one; positive ones lie above it."
        } else {
            "Zeros below a diagonal of the last two dims. Diagonal 0 is the main one; positive ones lie above it."
        })
        .get_sbp(|c| {
            let mut s: Vec<Signature> =
                (0..c.shape(0)?.len()).map(|d| Signature::new(&[Sbp::Split(d)], &[Sbp::Split(d)])).collect();
            // The zeros are the same on all ranks.
            s.extend(moved(1));
            Ok(s)
        })
        .grad(Grad::wiring(name, &[GradArg::OutGrad(0)], &["diagonal"], &[0]))
        .samples(&["f32[4, 5]", "f64[2, 3, 3]; diagonal=-1", "i32[3, 4]; diagonal=1"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        permute(),
        expand(),
        slice(),
        slice_grad(),
        diagonal(),
        concat(),
        triangle("tril", true),
        triangle("triu", false),
    ]
}
