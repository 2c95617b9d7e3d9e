//! Saved graphs: a program with the plan of each rank, in files that another process loads without capture, passes or planning.
//!
//! A file says what it depends on by content: the bytes themselves, the declarations of the ops with the hashes of their libraries, the world,
//! the devices, the cost model, and every kernel and boxing of the plan. What differs where it is loaded is refused by name. Nothing of the plan
//! is believed: kernels and boxings are made again from the signatures that the program states, and the places in the arenas are checked.

mod bind;
mod file;
#[doc(hidden)]
pub mod fuzz;

use super::as_captured::AsCaptured;
use super::{Graph, GraphOutput};
use crate::context::{RankCtx, current};
use crate::error::{CallSite, Error, Result};
use crate::interpreter::{Captured, GraphRuns, PlanRecord};
use crate::placement::Device;
use crate::plan::TypeRef;
use crate::program::{Effect, Program, ValueId, op_of};
use crate::state::Stateful;
use bind::{Named, bind, saved_hosts, saved_outside};
use file::{SavedGraph, World};
use oflow_files::{Access, bytes, folders, replace};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// Longest file that is read.
const MOST: u64 = 1 << 32;

const AGAIN: &str = "build the graph again here, and save it";
const OTHER: &str = "build the graph without the saved plan, and save it again";

/// The file of a rank.
fn path_of(folder: &Path, rank: usize) -> PathBuf {
    folder.join(format!("rank{rank}.graph"))
}

impl World {
    /// This rank, for a program.
    fn here(ctx: &RankCtx, program: &Program) -> World {
        let device = |ty: &TypeRef| match ty {
            TypeRef::Local(l) => l.device,
            TypeRef::Global(g) => g.placement.device(),
        };
        let mut devices: Vec<Device> = vec![];
        for d in program.values.iter().map(device) {
            if !devices.contains(&d) {
                devices.push(d);
            }
        }
        let devices = devices.iter().map(Device::to_string);
        World {
            rank: ctx.rank(),
            ranks: ctx.world(),
            cost_model: ctx.planner().id(),
            devices: devices.chain([format!("host {}", std::env::consts::ARCH)]).collect(),
        }
    }

    /// Refuses another world than this one.
    fn check(&self, here: &World) -> Result<()> {
        let differs = |what: &str, saved: &dyn std::fmt::Display, now: &dyn std::fmt::Display| {
            Err(Error::context(format!("the graph was saved for {what} {saved}, here it is {now}")).help(AGAIN))
        };
        if (self.rank, self.ranks) != (here.rank, here.ranks) {
            let of = |w: &World| format!("{} of {}", w.rank, w.ranks);
            return differs("rank", &of(self), &of(here));
        }
        if self.devices != here.devices {
            return differs("devices", &self.devices.join(", "), &here.devices.join(", "));
        }
        if self.cost_model != here.cost_model {
            let hash = |w: &World| format!("{:016x}", w.cost_model);
            return differs("cost model", &hash(self), &hash(here));
        }
        Ok(())
    }
}

/// Refuses ops that are declared otherwise than when the graph was saved.
fn check_ops(saved: &[(String, u64)]) -> Result<()> {
    for (name, identity) in saved {
        let op = op_of(name)?;
        if op.identity() != *identity {
            let library = op.library.as_ref().map_or(String::new(), |l| format!(", or its library {},", l.name));
            return Err(Error::registry(format!(
                "the declaration of {name}{library} has changed since the graph was saved"
            ))
            .help(AGAIN));
        }
    }
    Ok(())
}

/// A saved graph that has been read and whose ground is as it was.
struct Loaded {
    saved: SavedGraph,
    program: Program,
}

impl Loaded {
    /// Reads the graph of this rank.
    fn read(folder: &Path) -> Result<Loaded> {
        let ctx = current();
        if ctx.capture().is_some() || ctx.is_dry() {
            return Err(Error::context("a graph is not loaded in a dry run, or while another one is captured"));
        }
        let path = path_of(folder, ctx.rank());
        let read = || {
            let saved = SavedGraph::decode(&bytes(&path, MOST)?)?;
            check_ops(&saved.ops)?;
            let program = saved.program()?;
            saved.world.check(&World::here(&ctx, &program))?;
            Ok(Loaded { saved, program })
        };
        read().map_err(|e: Error| e.within(|| format!("cannot load the graph of {}", path.display())))
    }

    /// Reads the graph of a capture.
    ///
    /// # Errors
    /// If it was saved of another program, with the first line that differs.
    fn of_capture(folder: &Path, captured: &Captured, names: &[(String, ValueId)]) -> Result<Loaded> {
        let loaded = Loaded::read(folder)?;
        let named = |all: &[(String, ValueId)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let (now, then) = (named(names), named(&loaded.saved.names));
        if now != then {
            return Err(Error::argument(format!(
                "{} has the plan of another program: the closure names the values {now:?}, the saved one named {then:?}",
                folder.display()
            ))
            .help(OTHER));
        }
        let saved = Program::decode(&loaded.saved.captured)?;
        let Some(d) = captured.program.difference(&saved) else { return Ok(loaded) };
        let text = |line: Option<String>| line.unwrap_or_else(|| "nothing more".to_string());
        let (now, then) = (text(d.first), text(d.second));
        let e = Error::argument(format!(
            "{} has the plan of another program: the closure does `{now}` where the saved one did `{then}`",
            folder.display()
        ))
        .help(OTHER);
        Err(match d.site {
            Some(site) => e.at(site),
            None => e,
        })
    }

    /// The captured program in the form that was saved, with the plan.
    fn apply(self, captured: Captured) -> Result<(Captured, Planning)> {
        if self.program.outside.len() != captured.outside.len() {
            return Err(Error::parse("the saved plan has other values from outside than its program"));
        }
        let Loaded { saved: SavedGraph { names, effects, record, .. }, program } = self;
        Ok((Captured { program, ..captured }, Planning { names, effects, record }))
    }
}

/// Results of passes and planning.
struct Planning {
    names: Vec<(String, ValueId)>,
    effects: Vec<Effect>,
    record: PlanRecord,
}

impl<O> Graph<O> {
    /// The graph of a captured program, with the plan of a saved one.
    pub(super) fn of_saved(mut captured: Captured, names: Vec<(String, ValueId)>, folder: &Path) -> Result<Graph<O>> {
        captured.program.outputs.extend(names.iter().map(|(_, v)| *v));
        let as_captured = captured.program.clone();
        let loaded = Loaded::of_capture(folder, &captured, &names)?;
        let (planned, Planning { names, effects, record }) = loaded.apply(captured)?;
        let runs = GraphRuns::new(planned, Some(&record))?;
        Ok(Graph { captured: AsCaptured::Program(as_captured), effects, names, runs, outputs: PhantomData })
    }
}

impl<O> Graph<O> {
    /// Saves the program and the plan of this rank to a folder, which gets one file for each rank: `rank0.graph`. [`Graph::load`] and
    /// [`GraphOptions::saved`](super::GraphOptions::saved) read it.
    ///
    /// `state` names what the graph trains, reads and counts, as for a checkpoint: models, optimizers, scalers, averages, generators.
    /// The files have the names of these tensors, not their values: save a checkpoint beside them. Tensors that the graph only reads are
    /// saved with their values where the state does not name them.
    ///
    /// On global tensors each rank calls it, with a folder that it can reach; nothing is sent.
    ///
    /// # Errors
    /// If the state does not name a variable, an optimizer or a generator of the graph, if the environment has runs call by call
    /// (`OFLOW_GRAPH=replay`), and if the file cannot be written.
    #[track_caller]
    pub fn save(&self, folder: impl AsRef<Path>, state: &[(&str, &dyn Stateful)]) -> Result<()> {
        let site = CallSite::here();
        self.save_to(folder.as_ref(), state).map_err(|e| e.at(site))
    }

    fn save_to(&self, folder: &Path, state: &[(&str, &dyn Stateful)]) -> Result<()> {
        let (ctx, program, captured) = (current(), self.runs.program(), self.runs.captured());
        let record = self.runs.record().ok_or_else(|| {
            Error::unsupported("a graph that runs call by call has no plan to save").help("unset `OFLOW_GRAPH`")
        })?;
        let named = Named::of(state.iter().map(|(name, s)| (*name, *s)))?;
        let outside = saved_outside(&ctx, captured, &named)?;
        let (hosts, generators) = saved_hosts(captured, &named)?;
        let saved = SavedGraph {
            world: World::here(&ctx, program),
            ops: self.runs.ops().into_iter().map(|op| (op.full_name(), op.identity())).collect(),
            captured: self.captured.encode(),
            program: program.encode(),
            outside,
            hosts,
            generators,
            names: self.names.clone(),
            effects: self.effects.clone(),
            record,
        };
        folders(folder, Access::Readable)?;
        replace(&path_of(folder, ctx.rank()), Access::Readable, &saved.encode())
    }
}

impl<O: GraphOutput> Graph<O> {
    /// Loads the graph of this rank that [`Graph::save`] has written, without capture, passes or planning. `O` is what runs return, as the
    /// closure did.
    ///
    /// `state` gives the tensors, optimizers and generators by the names under which they were saved. The state of an optimizer is made if it is not
    /// there yet. Load a checkpoint before or afterwards.
    ///
    /// ```
    /// use oflow::graph::{Graph, GraphOptions};
    /// use oflow::optim::{AdamW, AdamWOptions, Optimizer};
    /// use oflow::nn::{Linear, Module};
    /// use oflow::prelude::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let x = ones([4, 3], Device::Cpu)?;
    /// let mut model = Linear::new(3, 1, Device::Cpu)?;
    /// let mut opt = AdamW::new(model.parameters(), AdamWOptions::default());
    /// let graph = Graph::build(
    ///     |g| {
    ///         let loss = model.forward(&g.input("x", &x)?)?.square()?.mean(())?;
    ///         opt.zero_grad();
    ///         loss.backward()?;
    ///         opt.step()?;
    ///         Ok(loss)
    ///     },
    ///     GraphOptions::default(),
    /// )?;
    /// graph.save(folder, &[("model", &model), ("opt", &opt)])?;
    /// // In another process:
    /// let mut step = Graph::<Tensor>::load(folder, &mut [("model", &mut model), ("opt", &mut opt)])?;
    /// assert!(step.run(&[&x])?.item()? >= 0.0);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such file or it is damaged; if an op, its library, the world, the devices, the cost model or a kernel is not what it was
    /// when the graph was saved; if the state lacks what the graph needs, or has it with another type; if `O` has another number of
    /// tensors. The error says which.
    #[track_caller]
    pub fn load(folder: impl AsRef<Path>, state: &mut [(&str, &mut dyn Stateful)]) -> Result<Graph<O>> {
        let site = CallSite::here();
        Self::load_from(folder.as_ref(), state, site).map_err(|e| e.at(site))
    }

    fn load_from(folder: &Path, state: &mut [(&str, &mut dyn Stateful)], site: CallSite) -> Result<Graph<O>> {
        let Loaded { saved, program } = Loaded::read(folder)?;
        let returned = program.outputs.len();
        if O::tensors().is_some_and(|wanted| wanted != returned) {
            return Err(Error::argument(format!("the saved graph returns {returned} tensors"))
                .help("load it with the type that its closure returned: `Graph::<(Tensor, Tensor)>::load`"));
        }
        let bound = bind(&current(), program, &saved, state, site)?;
        let runs = GraphRuns::new(bound, Some(&saved.record))?;
        let SavedGraph { captured, effects, names, .. } = saved;
        Ok(Graph { captured: AsCaptured::Bytes(captured), effects, names, runs, outputs: PhantomData })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functional::{IntoTarget, full, ones};
    use crate::graph::GraphOptions;
    use crate::placement::Placement;
    use crate::tensor::Tensor;
    use crate::{run_ranks, sbp};

    /// The error of a saved graph of two ranks that is changed on this rank, and then loaded.
    fn changed(change: impl Fn(&mut SavedGraph) + Sync) -> String {
        let folder = tempfile::tempdir().unwrap();
        let all = run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let x = ones([4, 4], (&mesh, sbp![S(0)]).into_target())?;
            let w = full([4, 2], 0.5, (&mesh, sbp![B]).into_target())?;
            let build = |g: &crate::graph::GraphBuilder<'_>| {
                let h = g.input("x", &x)?.matmul(&w)?.exp()?;
                g.name("h", &h)?;
                h.matmul(&h.transpose(0, 1)?)?.sum(())?.to_global(sbp![B])
            };
            Graph::build(build, GraphOptions::default())?.save(folder.path(), &[])?;
            let path = path_of(folder.path(), current().rank());
            let mut saved = SavedGraph::decode(&bytes(&path, MOST)?)?;
            assert!(Graph::<Tensor>::load(folder.path(), &mut [])?.run(&[&x])?.item()? > 0.0);
            change(&mut saved);
            replace(&path, Access::Readable, &saved.encode())?;
            Ok(Graph::<Tensor>::load(folder.path(), &mut []).err().map_or_else(String::new, |e| e.to_string()))
        });
        all.unwrap().swap_remove(1)
    }

    #[test]
    fn what_differs_is_named() {
        let refused = |what: &[&str], change: &(dyn Fn(&mut SavedGraph) + Sync)| {
            let e = changed(change);
            assert!(what.iter().all(|w| e.contains(w)), "{what:?}: {e}");
        };
        assert_eq!(changed(|_| {}), "");
        refused(&["saved for rank 3 of 2, here it is 1 of 2"], &|s| s.world.rank = 3);
        refused(&["saved for rank", "of 4, here it is 1 of 2"], &|s| s.world.ranks = 4);
        refused(&["for cost model", "here it is"], &|s| s.world.cost_model ^= 1);
        refused(&["for devices cpu, host other, here it is cpu, host"], &|s| s.world.devices[1] = "host other".into());
        let exp = |s: &mut SavedGraph| s.ops.iter_mut().find(|(n, _)| n == "oflow.exp@1").unwrap().1 ^= 1;
        refused(&["the declaration of oflow.exp@1 has changed"], &exp);
        refused(&["calls mine.gone@1, which is not registered"], &|s| s.ops.push(("mine.gone@1".into(), 0)));
        refused(&["oflow.exp@7", "here it is version 1"], &|s| s.ops.push(("oflow.exp@7".into(), 0)));
        refused(&["step 1 of the saved plan is other", "saved/mod.rs:"], &|s| s.record.acts[0] = "other".into());
        refused(&["of the saved plan is one more, here it is nothing more"], &|s| {
            s.record.acts.push("one more".into())
        });
        refused(&["the saved plan packs other values on cpu"], &|s| s.record.arenas[0].lifetimes ^= 1);
        refused(&["the saved plan packs other values on cpu"], &|s| s.record.arenas.clear());
        refused(&["gives two values on cpu the same memory"], &|s| {
            let places = &mut s.record.arenas[0].packing.offsets;
            assert!(places.len() > 1);
            places.iter_mut().for_each(|at| *at = 0);
        });
        refused(&["gives two values on cpu the same memory"], &|s| s.record.arenas[0].packing.bytes = 0);
        refused(&["other values from outside than it names"], &|s| _ = s.outside.pop());
        refused(&["other values from outside than it names"], &|s| s.names[0].1 = ValueId(999));
        refused(&["the file is damaged: a constant has another size"], &|s| {
            s.outside[1].value.as_mut().unwrap().pop();
        });
        refused(&["the bytes are not those of a program"], &|s| s.program.truncate(9));
    }
}
