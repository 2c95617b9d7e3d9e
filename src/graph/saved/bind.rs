//! The tensors, host objects and generators of a saved graph, by their names in the state of a program.

use super::file::{SavedGraph, SavedOutside};
use crate::context::{Generator, RankCtx};
use crate::error::{CallSite, Error, Result};
use crate::interpreter::{Captured, HostObject, HostSource, local_bytes};
use crate::plan::{LocalRef, TypeRef, local_type};
use crate::program::{Outside, OutsideKind, Program, described};
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::{LocalTensor, Tensor};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most bytes of a constant that are saved with a graph.
const MOST_CONSTANT: usize = 64 << 20;

/// Tensors, objects and generators that the state of a program names.
pub(super) struct Named {
    tensors: Vec<(String, Tensor)>,
    hosts: Vec<(String, Arc<dyn HostSource>)>,
    generators: Vec<(String, Generator)>,
    /// Names of the sections.
    sections: Vec<String>,
}

impl Named {
    /// The tensors, objects and generators of these sections.
    pub(super) fn of<'a>(state: impl Iterator<Item = (&'a str, &'a dyn Stateful)>) -> Result<Named> {
        let (mut to, mut sections) = (SaveState::new(), vec![]);
        for (name, s) in state {
            if sections.iter().any(|known| known == name) {
                return Err(Error::argument(format!("two sections of the state have the name {name:?}"))
                    .help("give each a name of its own"));
            }
            sections.push(name.to_string());
            to.section(name);
            s.save_state(&mut to)?;
        }
        let sources = to.take_sources();
        let (tensors, _) = to.into_parts();
        Ok(Named { tensors, hosts: sources.hosts, generators: sources.generators, sections })
    }

    /// The name of a tensor.
    fn name_of(&self, t: &Tensor) -> Option<&str> {
        self.tensors.iter().find(|(_, named)| named.same(t)).map(|(name, _)| name.as_str())
    }

    /// The names of the sections, for errors.
    fn told(&self) -> String {
        match self.sections.is_empty() {
            true => "no sections".to_string(),
            false => format!("the sections {}", self.sections.join(", ")),
        }
    }
}

/// How the tensors from outside of a graph are found again.
pub(super) fn saved_outside(ctx: &RankCtx, captured: &Captured, named: &Named) -> Result<Vec<SavedOutside>> {
    let one = |(o, t): (&Outside, &Tensor)| {
        let name = match o.kind {
            OutsideKind::Input => None,
            _ => named.name_of(t),
        };
        let value = match (o.kind, name) {
            (OutsideKind::Constant, None) => constant(ctx, o, t)?,
            (OutsideKind::Variable, None) => {
                return Err(Error::argument(format!(
                    "the graph has a variable, {t:?}, that the state, with {}, does not name",
                    named.told()
                ))
                .at(o.site)
                .help("add the model, optimizer or average that holds it to the state"));
            }
            _ => None,
        };
        Ok(SavedOutside { name: name.unwrap_or_default().to_string(), trained: t.requires_grad(), value })
    };
    captured.program.outside.iter().zip(&captured.outside).map(one).collect()
}

/// The bytes of this rank's part of a constant; `None` where it has none.
fn constant(ctx: &RankCtx, o: &Outside, t: &Tensor) -> Result<Option<Vec<u8>>> {
    let Some(l) = t.data()? else { return Ok(None) };
    if l.ty.bytes > MOST_CONSTANT {
        return Err(Error::argument(format!(
            "the graph has a constant of {} bytes, {t:?}, more than the {MOST_CONSTANT} that are saved with it",
            l.ty.bytes
        ))
        .at(o.site)
        .help("add what holds it to the state, or make it an input"));
    }
    local_bytes(ctx, &l).map(Some)
}

/// Names of host objects, with what each needs to be made again.
type SavedHosts = Vec<(String, String)>;

/// The host objects and the names of the generators.
pub(super) fn saved_hosts(captured: &Captured, named: &Named) -> Result<(SavedHosts, Vec<String>)> {
    let host = |(host, kind): (&Arc<dyn HostObject>, &String)| {
        let of = named.hosts.iter().find(|(_, source)| source.address() == host.address());
        let missing = || {
            Error::argument(format!(
                "the graph reads the numbers of an object, {kind:?}, that the state, with {}, does not name",
                named.told()
            ))
            .help("add the optimizer, scaler or average to the state")
        };
        of.map(|(name, _)| (name.clone(), host.saved())).ok_or_else(missing)
    };
    let generator = |g: &Generator| {
        let of = named.generators.iter().find(|(_, known)| known.is(g));
        let missing = || {
            Error::argument(format!(
                "the graph draws from a generator that the state, with {}, does not name",
                named.told()
            ))
            .help("add the generator to the state")
        };
        of.map(|(name, _)| name.clone()).ok_or_else(missing)
    };
    let hosts = captured.hosts.iter().zip(&captured.program.hosts).map(host).collect::<Result<_>>()?;
    Ok((hosts, captured.generators.iter().map(generator).collect::<Result<_>>()?))
}

/// A saved program with the tensors, objects and generators of this process.
///
/// # Errors
/// The state lacks one of them, or has it with another type.
pub(super) fn bind(
    ctx: &RankCtx,
    program: Program,
    saved: &SavedGraph,
    state: &mut [(&str, &mut dyn Stateful)],
    site: CallSite,
) -> Result<Captured> {
    let now =
        |state: &[(&str, &mut dyn Stateful)]| Named::of(state.iter().map(|(name, s)| (*name, &**s as &dyn Stateful)));
    let mut named = now(state)?;
    let wanted: BTreeSet<&str> = saved.outside.iter().map(|o| o.name.as_str()).filter(|n| !n.is_empty()).collect();
    let there: BTreeSet<&str> = named.tensors.iter().map(|(name, _)| name.as_str()).collect();
    if !wanted.is_subset(&there) {
        let values = BTreeMap::new();
        for (name, s) in state.iter_mut() {
            let mut of = LoadState::new(wanted.iter().copied(), &values);
            of.section(name);
            s.prepare(&of)?;
        }
        named = now(state)?;
    }
    let by_name: BTreeMap<&str, &Tensor> = named.tensors.iter().map(|(name, t)| (name.as_str(), t)).collect();
    let mut outside = vec![];
    for (o, how) in program.outside.iter().zip(&saved.outside) {
        let ty = program.ty(o.value);
        outside.push(match by_name.get(how.name.as_str()) {
            Some(t) if o.kind != OutsideKind::Input => known(&how.name, t, ty, how.trained)?,
            _ if o.kind == OutsideKind::Input => example(ctx, ty)?,
            None if how.name.is_empty() && o.kind == OutsideKind::Constant => value_of(ctx, ty, how.value.as_deref())?,
            _ => {
                return Err(missing(&named, &format!("the tensor {:?}, {}", how.name, described(ty)))
                    .help("give the model or optimizer under the name under which it was saved"));
            }
        });
    }
    let host = |(name, saved): &(String, String)| match named.hosts.iter().find(|(known, _)| known == name) {
        Some((_, source)) => source.restore(saved).map_err(|e| e.within(|| format!("{name:?} of the state"))),
        None => Err(missing(&named, &format!("the numbers of {name:?}"))),
    };
    let generator = |name: &String| match named.generators.iter().find(|(known, _)| known == name) {
        Some((_, g)) => Ok(g.clone()),
        None => Err(missing(&named, &format!("the generator {name:?}"))),
    };
    let hosts = saved.hosts.iter().map(host).collect::<Result<_>>().map_err(|e| e.at(site))?;
    let generators = saved.generators.iter().map(generator).collect::<Result<_>>()?;
    Ok(Captured { program, outside, hosts, generators })
}

#[cold]
fn missing(named: &Named, what: &str) -> Error {
    Error::argument(format!("the saved graph needs {what}, which the state, with {}, does not have", named.told()))
}

/// A tensor of the state, for a value of that type.
fn known(name: &str, t: &Tensor, ty: &TypeRef, trained: bool) -> Result<Tensor> {
    if !t.type_ref().is_some_and(|have| have.same(ty)) {
        let have = t.type_ref().map_or_else(|| format!("{t:?}"), |ty| described(&ty));
        return Err(Error::argument(format!(
            "the tensor {name:?} is {have}, the graph was saved with {}",
            described(ty)
        ))
        .help("make the model with the sizes and layouts that it had when the graph was saved"));
    }
    if t.requires_grad() != trained {
        let (had, has) = if trained { ("required", "does not require") } else { ("did not require", "requires") };
        return Err(Error::argument(format!(
            "the tensor {name:?} {had} a gradient when the graph was saved, and {has} one now"
        ))
        .help("build the graph again after such a change"));
    }
    Ok(t.clone())
}

/// A constant with its value.
fn value_of(ctx: &RankCtx, ty: &TypeRef, value: Option<&[u8]>) -> Result<Tensor> {
    of_type(ctx, ty, |ty| {
        let bytes = value.filter(|bytes| bytes.len() == ty.bytes);
        let bytes = bytes.ok_or_else(|| Error::parse("the file is damaged: a constant has another size"))?;
        let l = LocalTensor::alloc(ctx, ty)?;
        ctx.device(ty.device)?.vm.write(&l.storage, 0, bytes).map(|()| l)
    })
}

/// An input. It only tells the type, as runs are given others: all of its elements have one place.
fn example(ctx: &RankCtx, ty: &TypeRef) -> Result<Tensor> {
    of_type(ctx, ty, |ty| {
        let one = ctx.device(ty.device)?.alloc.alloc(ty.ty.dtype.size())?;
        LocalTensor::of_storage(ty, one, 0, ty.ty.shape.iter().map(|_| 0).collect())
    })
}

/// A tensor of that type, whose part on this rank `part` makes.
fn of_type(ctx: &RankCtx, ty: &TypeRef, part: impl Fn(&LocalRef) -> Result<LocalTensor>) -> Result<Tensor> {
    Ok(match ty {
        TypeRef::Local(l) => Tensor::from_local(part(l)?),
        TypeRef::Global(g) => Tensor::from_shard(g.clone(), local_type(ctx.rank(), ty).as_ref().map(part).transpose()?),
    })
}
