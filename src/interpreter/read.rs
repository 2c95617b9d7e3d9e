//! Reading values: explicit collectives of the world for global tensors.

use super::boxing::BoxingReason;
use super::comm_trace::collective;
use super::copy::local_bytes;
use super::layout::{layout_key, to_layout};
use crate::backend::no_values;
use crate::comm::Group;
use crate::context::{current, current_rank};
use crate::error::{CallSite, Error, Result};
use crate::memory::zeroed;
use crate::placement::Placement;
use crate::sbp::NdSbp;
use crate::tensor::{Body, Tensor};

/// Meta tensors and symbols have no values, and a tensor with data is not read in a dry run.
fn check_readable(t: &Tensor, site: CallSite) -> Result<()> {
    match t.is_meta() {
        true if t.is_symbol() => Err(Error::unsupported(format!("{t:?} has no value while its graph is captured"))
            .help("return it from the closure and read what `run` gives; decisions on values stay outside of a graph")
            .at(site)),
        true => Err(no_values(format_args!("{t:?}")).at(site)),
        false => t.check_origin().map_err(|e| e.at(site)),
    }
}

/// The bytes of the logical value on one rank; nothing on the others. For a global tensor a collective: boxing to a placement of
/// that rank alone, which may be outside the tensor's. A local tensor is its own rank's: nothing is moved.
///
/// # Errors
/// When the world has no such rank.
pub fn logical_bytes_on(t: &Tensor, rank: usize, site: CallSite) -> Result<Option<Vec<u8>>> {
    check_readable(t, site)?;
    let Body::Global(g, _) = t.body() else {
        let here = current_rank().map_or(true, |ctx| ctx.rank() == rank);
        return if here { logical_bytes(t, site).map(Some) } else { Ok(None) };
    };
    let ctx = current_rank()?;
    if rank >= ctx.world() {
        let call = || format!("to_vec_on({}, {rank})", t.short());
        return Err(Error::argument(format!("there is not a rank {rank} in a world of {} ranks", ctx.world()))
            .help(format!("ranks are numbered from 0 to {}", ctx.world() - 1))
            .in_call(call)
            .at(site));
    }
    let one = Placement::new(g.placement.device(), &[rank], &[1])?;
    let b = to_layout(BoxingReason::Asked("to_vec_on"), &t.detach(), &one, &NdSbp::broadcast(1), site)?;
    b.data()?.map(|l| local_bytes(&ctx, &l)).transpose()
}

/// The bytes of the logical value on every rank of the world. For a global tensor a collective of the world: boxing to B,
/// then, for ranks outside the placement, a broadcast from its first rank.
pub fn logical_bytes(t: &Tensor, site: CallSite) -> Result<Vec<u8>> {
    check_readable(t, site)?;
    match t.body() {
        Body::Local(l) => local_bytes(&current(), l),
        Body::Global(g, _) => {
            let ctx = current_rank()?;
            let whole = NdSbp::broadcast(g.placement.axes());
            let b = if g.sbp == whole {
                t.clone()
            } else {
                to_layout(BoxingReason::Asked("to_vec"), &t.detach(), &g.placement.clone(), &whole, site)?
            };
            let mut bytes = match b.data()? {
                Some(l) => local_bytes(&ctx, &l)?,
                None => zeroed(g.ty.bytes())?,
            };
            if g.placement.len() < ctx.world() {
                let text = || format!("to_vec({}) on {}", t.short(), g.placement);
                let tag = ctx.next_described("to_vec", layout_key(g, &g.placement, &whole), site, &text);
                let group = Group { ranks: (0..ctx.world()).collect(), me: ctx.rank() };
                ctx.quiesce()?;
                let (root, sent) = (g.placement.ranks()[0], bytes.len() * (ctx.world() - 1));
                collective(&ctx, &tag, sent as u64, |comm| comm.broadcast(&group, &tag, root, &mut bytes))?;
            }
            Ok(bytes)
        }
        _ => {
            t.data()?;
            Err(Error::unsupported("tensor without data"))
        }
    }
}
