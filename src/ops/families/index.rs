//! Elements by index: rows along a dim, the gradient of that, and what assignments by index are made of; and `flip`.

use super::KINDS;
use super::slide::narrow;
use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Grad, GradCtx, InferCtx, LocalizeCtx, OpDef, Value};
use crate::sbp::{ReduceOp, Sbp, Signature};
use oflow_kernels::{DType, Dims, ShardBox};
use smallvec::SmallVec;

/// The dim that is indexed.
fn indexed(c: &InferCtx<'_>) -> Result<usize> {
    match c.shape(0)?.len() {
        0 => Err(Error::shape("a tensor without dims cannot be indexed")),
        rank => c.dim("dim", rank),
    }
}

/// Moves `count` dims that begin at `from` to begin at `to`.
fn move_dims(g: &mut dyn GradCtx, v: Value, from: usize, count: usize, to: usize) -> Result<Value> {
    if from == to {
        return Ok(v);
    }
    let mut order: Vec<i64> = (0..g.shape(v).len() as i64).collect();
    let moved: Vec<i64> = order.drain(from..from + count).collect();
    order.splice(to..to, moved);
    g.call("permute", &[v], &[("dims", order.into())])
}

fn index_select() -> Result<OpDef> {
    Ok(OpDef::new("index_select(x: any, ids: int; dim: int = 0) -> y")?
        .doc("The elements of a dim by index. The dims of `ids` take the place of the dim; a list, as in PyTorch, keeps the rank.")
        .by_name_only()
        .checks_values()
        .check(|c| indexed(c).and_then(|_| super::index_dtype(c, 1)))
        .shape1(|c| {
            let (x, d) = (c.shape(0)?, indexed(c)?);
            Ok(x[..d].iter().chain(c.shape(1)?).chain(&x[d + 1..]).copied().collect())
        })
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let (rank, dim, k, b) = (c.shape(0)?.len(), indexed(c)?, c.shape(1)?.len(), Sbp::Broadcast);
            let others = (0..rank).filter(|d| *d != dim);
            let place = |d: usize| if d < dim { d } else { d + k - 1 };
            let mut s: Vec<Signature> =
                others.map(|d| Signature::new(&[Sbp::Split(d), b], &[Sbp::Split(place(d))])).collect();
            s.extend((0..k).map(|j| Signature::new(&[b, Sbp::Split(j)], &[Sbp::Split(dim + j)])));
            s.push(Signature::new(&[Sbp::Split(dim), b], &[super::of_shares(c.input(0)?.dtype)]));
            s.extend(super::taken());
            Ok(s)
        })
        .grad(Grad::rule_saving(&[1], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let (shape, k) = (g.input_shape(0), g.input_shape(1).len());
                let dim = match g.attr("dim")? {
                    AttrValue::Int(d) => d.rem_euclid(shape.len() as i64) as usize,
                    _ => 0,
                };
                let ids = g.input(1)?;
                // Sums are made of whole rows, so the indexed dim comes first.
                let dy = move_dims(g, dy, dim, k, 0)?;
                let dx = g.call("index_sum", &[dy, ids], &[("rows", shape[dim].into())])?;
                let dx = move_dims(g, dx, 0, 1, dim)?;
                g.set(0, dx)?;
            }
            Ok(())
        }))
        .samples(&[
            "f32[6, 4] i64[3, 2]<6",
            "f64[3, 5, 2] i32[4]<5; dim=1",
            "i64[2, 3] i64[]<3; dim=-1",
            "bool[4, 3] i64[2]<4",
        ]))
}

fn index_sum() -> Result<OpDef> {
    Ok(OpDef::new("index_sum(values: float, ids: int; rows: int) -> y")?
        .linear_by_parts()
        .doc("`rows` rows of zeros to which the rows of `values` are added by index, in order: gradient of index_select.")
        .by_name_only()
        .checks_values()
        .check(|c| {
            super::index_dtype(c, 1)?;
            let (values, ids) = (c.shape(0)?, c.shape(1)?);
            match values.len() >= ids.len() && values[..ids.len()] == *ids {
                true => Ok(()),
                false => Err(Error::shape(format!("values of shape {values:?} do not begin with the dims {ids:?} of the indices"))),
            }
        })
        .shape1(|c| {
            let k = c.shape(1)?.len();
            let mut s: Dims = c.shape(0)?[k..].into();
            s.insert(0, c.size("rows")?);
            Ok(s)
        })
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let (rank, k, b, p) = (c.shape(0)?.len(), c.shape(1)?.len(), Sbp::Broadcast, Sbp::PARTIAL_SUM);
            let mut s: Vec<Signature> =
                (0..k).map(|j| Signature::new(&[Sbp::Split(j), Sbp::Split(j)], &[p])).collect();
            s.extend((k..rank).map(|d| Signature::new(&[Sbp::Split(d), b], &[Sbp::Split(d - k + 1)])));
            s.push(Signature::new(&[b, b], &[Sbp::Split(0)]));
            s.push(Signature::new(&[p, b], &[p]));
            Ok(s)
        })
        .grad(Grad::rule_saving(&[1], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let ids = g.input(1)?;
                let d = g.call("index_select", &[dy, ids], &[])?;
                g.set(0, d)?;
            }
            Ok(())
        }))
        .samples(&["f32[3, 2, 4] i64[3, 2]<6; rows=6", "f64[4, 3, 2] i64[4]<5; rows=5", "f32[3] i32[]<2; rows=2"]))
}

fn wrap_index() -> Result<OpDef> {
    Ok(OpDef::new("wrap_index(ids: int; size: int, dim: int = 0) -> y")?
        .doc("Indices into dim `dim` of `size` elements as i64 that count from the front: negative ones count from the end.")
        .by_name_only()
        .check(|c| super::index_dtype(c, 0).and_then(|()| c.size("size")).map(drop))
        .dtype(DTypeRule::Fixed(vec![DType::I64]))
        .get_sbp(|c| Ok((0..c.shape(0)?.len()).map(|d| Signature::new(&[Sbp::Split(d)], &[Sbp::Split(d)])).collect()))
        .grad(Grad::None)
        .samples(&["i64[3, 2]<4; size=4", "i32[5]<3; size=3, dim=1"]))
}

fn last_index() -> Result<OpDef> {
    Ok(OpDef::new("last_index(ids: int; size: int) -> y")?
        .doc("For each index below `size` the last position at which it stands in the list, -1 where it does not.")
        .by_name_only()
        .checks_values()
        .check(|c| match c.shape(0)? {
            [_] => super::index_dtype(c, 0),
            ids => Err(Error::shape(format!("the indices must have one dim, not {ids:?}"))),
        })
        .shape1(|c| Ok([c.size("size")?].into_iter().collect()))
        .dtype(DTypeRule::Fixed(vec![DType::I64]))
        .get_sbp(|_| {
            let (s, b) = (Sbp::Split(0), Sbp::Broadcast);
            // The last position of all is the largest of those in each part of the list.
            Ok(vec![Signature::new(&[b], &[s]), Signature::new(&[s], &[Sbp::Partial(ReduceOp::Max)])])
        })
        .grad(Grad::None)
        .samples(&["i64[7]<5; size=5", "i32[3]<4; size=6"]))
}

/// The dims to turn round: each once, none if none are given.
fn turned(c: &InferCtx<'_>) -> Result<SmallVec<[usize; 6]>> {
    if c.ints("dims")?.is_empty() { Ok(SmallVec::new()) } else { c.dims("dims", c.shape(0)?.len()) }
}

/// A rank turns round the part at the other end.
fn other_end(c: &LocalizeCtx<'_>) -> Result<Vec<Option<ShardBox>>> {
    let (mut reads, out) = (c.inputs.to_vec(), &c.outputs[0]);
    let dims = turned(c.logical)?;
    for b in reads.iter_mut().flatten() {
        dims.iter().for_each(|d| {
            narrow(b, *d, out.logical[*d] - out.offset[*d] - out.size[*d]..out.logical[*d] - out.offset[*d])
        });
    }
    Ok(reads)
}

fn flip() -> Result<OpDef> {
    let same = |s: Sbp| Signature::new(&[s], &[s]);
    Ok(OpDef::new("flip(x: any; dims: ints) -> y")?
        .doc("The elements of each of the dims in reverse order, in new memory.")
        .strided()
        .check(|c| turned(c).map(drop))
        .dtype(DTypeRule::Input(0))
        .get_sbp(move |c| {
            let dims = turned(c)?;
            let others = (0..c.shape(0)?.len()).filter(|d| !dims.contains(d)).map(Sbp::Split);
            Ok(others.chain(KINDS.map(Sbp::Partial)).map(same).collect())
        })
        .windows(move |c| Ok(turned(c)?.into_iter().map(Sbp::Split).map(same).collect()), other_end)
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let dx = g.call("flip", &[dy], &[("dims", g.attr("dims")?)])?;
            g.set(0, dx)
        }))
        .samples(&["f32[3, 5]; dims=[1]", "f64[2, 3, 4]; dims=[0, -1]", "bool[4]; dims=[0]", "i32[2, 2]; dims=[]"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![index_select(), index_sum(), wrap_index(), last_index(), flip()]
}
