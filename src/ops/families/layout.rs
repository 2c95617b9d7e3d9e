//! Changes of layout: boxing, the ways in and out of global tensors, devices. The value stays, so each gradient is the
//! gradient of the result, laid out differently; which layout that is, `docs/boxing-gradients.md` explains.
//!
//! A shard and its gradient have a pair of layouts: what the shards are together (`sbp`), and what the gradients of the
//! shards are together (`grad_sbp`). Between local and global each op and its gradient have the same pair, exchanged; so
//! the gradient of the gradient is the first op again, and derivatives of every order pass.

use crate::error::{Error, Result};
use crate::ops::{AttrValue, Grad, GradCtx, LayoutOp, OpDef, Value};
use crate::placement::Placement;
use crate::sbp::{NdSbp, Sbp, dual};
use oflow_kernels::Dims;

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        op(
            "to_global(x: any; placement: placement, sbp: sbp, grad_sbp?: sbp) -> y",
            LayoutOp::Box,
            "The same logical value in another layout (boxing).",
        )
        .map(|o| {
            o.grad(rule(|g| {
                let Some(dy) = g.grad(0) else { return Ok(()) };
                let (home, from) = (layout(g, 0)?, (g.attr("placement")?, g.attr("sbp")?));
                let stated = g.attr("grad_sbp")?;
                let dx = box_back(g, dy, home, from, stated)?;
                g.set(0, dx)
            }))
        }),
        op(
            "to_global_grad(dy; placement: placement, sbp: sbp, from: placement, from_sbp: sbp, grad_sbp?: sbp) -> dx",
            LayoutOp::BoxGrad,
            "The gradient of a tensor that lay as `sbp` on `placement` and was boxed to `from`.",
        )
        .map(|o| {
            o.grad(rule(|g| {
                let Some(ddx) = g.grad(0) else { return Ok(()) };
                let home = layout(g, 0)?;
                let from = (g.attr("placement")?, returned(&g.attr("sbp")?, &g.attr("grad_sbp")?)?);
                let d = box_back(g, ddx, home, from, AttrValue::Absent)?;
                g.set(0, d)
            }))
        }),
        op(
            "box_many(xs?...: any; placements: placements, sbps: sbps, grad_sbps: sbps) -> ys",
            LayoutOp::BoxMany,
            "What `to_global` does to each tensor, with their communication together.",
        )
        .map(|o| {
            o.grad(rule(|g| {
                let (placements, sbps) = (list(&g.attr("placements")?)?, list(&g.attr("sbps")?)?);
                let stated = list(&g.attr("grad_sbps")?)?;
                box_many_back(g, |i| Ok(((placements[i].clone(), sbps[i].clone()), stated[i].clone())))
            }))
        }),
        op(
            "box_many_grad(dys?...; placements: placements, sbps: sbps, from: placements, from_sbps: sbps, \
             grad_sbps: sbps) -> dxs",
            LayoutOp::BoxManyGrad,
            "What `to_global_grad` does to each gradient, with their communication together.",
        )
        .map(|o| {
            o.grad(rule(|g| {
                let (placements, sbps) = (list(&g.attr("placements")?)?, list(&g.attr("sbps")?)?);
                let stated = list(&g.attr("grad_sbps")?)?;
                box_many_back(g, |i| Ok(((placements[i].clone(), returned(&sbps[i], &stated[i])?), AttrValue::Absent)))
            }))
        }),
        op(
            "shards_to_global(x: any; placement: placement, sbp: sbp, grad_sbp?: sbp) -> y",
            LayoutOp::ShardsToGlobal,
            "Each rank's local tensor becomes its shard; shapes are compared, B shards are made equal.",
        )
        .map(|o| {
            o.shapes(rank_dependent).grad(rule(|g| {
                let Some(dy) = g.grad(0) else { return Ok(()) };
                let (placement, sbp) = (placement_of(&g.attr("placement")?)?, sbp_of(&g.attr("sbp")?)?);
                let want = stated(&g.attr("grad_sbp")?)?.unwrap_or_else(|| dual(&sbp));
                let dx = shard_of(g, dy, &placement, &want, &sbp)?;
                g.set(0, dx)
            }))
        }),
        op(
            "to_local(x: any; grad_sbp?: sbp, outside?: shape) -> y",
            LayoutOp::ToLocal,
            "This rank's shard; a rank outside the placement gets zeros of the shape `outside`, if that is given.",
        )
        .map(|o| {
            o.shapes(rank_dependent).grad(rule(|g| {
                let Some(dy) = g.grad(0) else { return Ok(()) };
                let (placement, sbp) = layout(g, 0)?;
                let want = stated(&g.attr("grad_sbp")?)?.unwrap_or_else(|| dual(&sbp));
                let attrs = [
                    ("shape", g.input_shape(0).as_slice().into()),
                    ("placement", placement.into()),
                    ("sbp", want.into()),
                    ("grad_sbp", addable(&sbp).into()),
                ];
                let dx = g.call("to_local_grad", &[dy], &attrs)?;
                g.set(0, dx)
            }))
        }),
        op(
            "to_local_grad(dy; shape: shape, placement: placement, sbp: sbp, grad_sbp: sbp) -> dx",
            LayoutOp::ToLocalGrad,
            "The gradients of a global tensor's shards, as a global tensor.",
        )
        .map(|o| {
            o.shape_rule(crate::ops::ShapeRule::Attr).grad(rule(|g| {
                let Some(ddx) = g.grad(0) else { return Ok(()) };
                let (placement, sbp) = (placement_of(&g.attr("placement")?)?, sbp_of(&g.attr("sbp")?)?);
                let want = sbp_of(&g.attr("grad_sbp")?)?;
                let d = shard_of(g, ddx, &placement, &want, &sbp)?;
                g.set(0, d)
            }))
        }),
        op(
            "distribute(x: any; placement: placement, sbp: sbp) -> y",
            LayoutOp::Distribute,
            "A global tensor from its logical value, which every rank has; each keeps its shard.",
        )
        .map(|o| {
            o.grad(rule(|g| {
                let Some(dy) = g.grad(0) else { return Ok(()) };
                let placement = placement_of(&g.attr("placement")?)?;
                // Each rank has the whole value, and so the whole gradient: copies of one thing, in every order.
                let whole = NdSbp::broadcast(placement.axes());
                let dx = shard_of(g, dy, &placement, &whole, &whole)?;
                g.set(0, dx)
            }))
        }),
        op(
            "from_boxes(boxes?...: any; offsets: int_lists, shape: shape, placement: placement, sbp: sbp) -> y",
            LayoutOp::FromBoxes,
            "A global tensor from boxes that ranks happen to hold.",
        )
        .map(|o| o.shape_rule(crate::ops::ShapeRule::Attr)),
        op("to_device(x: any; device: device) -> y", LayoutOp::ToDevice, "A local tensor on another device.").map(
            |o| {
                o.grad(rule(|g| {
                    let Some(dy) = g.grad(0) else { return Ok(()) };
                    let device = g.input_device();
                    let dx = g.call("to_device", &[dy], &[("device", device.into())])?;
                    g.set(0, dx)
                }))
            },
        ),
    ]
}

fn op(text: &str, layout: LayoutOp, doc: &str) -> Result<OpDef> {
    OpDef::new(text).map(|o| o.doc(doc).by_name_only().strided().dtype(crate::ops::DTypeRule::Input(0)).layout(layout))
}

/// A rule that reads layouts and no values.
fn rule(run: impl Fn(&mut dyn GradCtx) -> Result<()> + Send + Sync + 'static) -> Grad {
    Grad::rule_saving(&[], &[], run)
}

/// The shape of a shard is a rank's own; no rule that holds for all ranks can tell it.
fn rank_dependent(_: &crate::ops::InferCtx<'_>) -> Result<smallvec::SmallVec<[Dims; 2]>> {
    Err(Error::unsupported("the shape of the result depends on the shards that the ranks have"))
}

fn layout(g: &dyn GradCtx, i: usize) -> Result<(Placement, NdSbp)> {
    g.input_layout(i).ok_or_else(|| Error::autograd(format!("input {i} is not a global tensor")))
}

/// A gradient that came back as `from`, as the gradient of a tensor that lay as `home`.
fn box_back(
    g: &mut dyn GradCtx,
    dy: Value,
    (placement, sbp): (Placement, NdSbp),
    (from, from_sbp): (AttrValue, AttrValue),
    stated: AttrValue,
) -> Result<Value> {
    let attrs = [
        ("placement", placement.into()),
        ("sbp", sbp.into()),
        ("from", from),
        ("from_sbp", from_sbp),
        ("grad_sbp", stated),
    ];
    g.call("to_global_grad", &[dy], &attrs)
}

/// The same for many, in one call. `way` gives, of the `i`-th, where it came from and what is stated for its gradient.
fn box_many_back(
    g: &mut dyn GradCtx,
    way: impl Fn(usize) -> Result<((AttrValue, AttrValue), AttrValue)>,
) -> Result<()> {
    let (mut dys, mut places) = (vec![], vec![]);
    let mut columns: [Vec<AttrValue>; 5] = Default::default();
    for i in 0..g.inputs() {
        let Some(dy) = g.grad(i).filter(|_| g.needs(i)) else { continue };
        let (home, ((from, from_sbp), stated)) = (layout(g, i)?, way(i)?);
        dys.push(Some(dy));
        places.push(i);
        for (column, value) in columns.iter_mut().zip([home.0.into(), home.1.into(), from, from_sbp, stated]) {
            column.push(value);
        }
    }
    let names = ["placements", "sbps", "from", "from_sbps", "grad_sbps"];
    let attrs: Vec<(&str, AttrValue)> = names.into_iter().zip(columns.map(AttrValue::from)).collect();
    let dxs = g.emit("box_many_grad", &dys, &attrs)?;
    places.into_iter().zip(dxs).try_for_each(|(i, dx)| g.set(i, dx))
}

/// The shard of a global gradient that lies as `sbp` then; what the gradients of these shards are together is `back`. A
/// rank outside the placement gets zeros: its local tensor has no part in the value.
fn shard_of(g: &mut dyn GradCtx, dy: Value, placement: &Placement, sbp: &NdSbp, back: &NdSbp) -> Result<Value> {
    let (sbp, back) = (addable(sbp), addable(back));
    let attrs = [("placement", placement.into()), ("sbp", (&sbp).into()), ("grad_sbp", AttrValue::Absent)];
    let dy = g.call("to_global", &[dy], &attrs)?;
    let outside = g.input_shape(0);
    g.call("to_local", &[dy], &[("grad_sbp", back.into()), ("outside", outside.as_slice().into())])
}

/// As gradients lie: they add up, so what is partial is P(sum).
fn addable(sbp: &NdSbp) -> NdSbp {
    sbp.map(|s| if s.is_partial() { Sbp::PARTIAL_SUM } else { s })
}

/// The layout that a gradient has got on its way back: what was stated, or nominally the dual.
fn returned(sbp: &AttrValue, grad_sbp: &AttrValue) -> Result<AttrValue> {
    Ok(match stated(grad_sbp)? {
        Some(s) => s.into(),
        None => dual(&sbp_of(sbp)?).into(),
    })
}

fn placement_of(v: &AttrValue) -> Result<Placement> {
    match v {
        AttrValue::Placement(p) => Ok(p.clone()),
        v => Err(Error::argument(format!("{v} is not a placement"))),
    }
}

fn stated(v: &AttrValue) -> Result<Option<NdSbp>> {
    match v {
        AttrValue::NdSbp(n) => Ok(Some(n.clone())),
        AttrValue::Absent => Ok(None),
        v => Err(Error::argument(format!("{v} is not an nd-SBP"))),
    }
}

fn sbp_of(v: &AttrValue) -> Result<NdSbp> {
    stated(v)?.ok_or_else(|| Error::argument("an nd-SBP is missing"))
}

fn list(v: &AttrValue) -> Result<Vec<AttrValue>> {
    match v {
        AttrValue::List(v) => Ok(v.to_vec()),
        v => Err(Error::argument(format!("{v} is not a list"))),
    }
}
