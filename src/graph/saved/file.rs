//! The file of a saved graph: one message (`proto/saved_graph.proto`) with the hash of its content.

use crate::error::{Error, Result};
use crate::intern::FixedHasher;
use crate::interpreter::{ArenaRecord, PlanRecord};
use crate::plan::Packing;
use crate::program::{Effect, Passes, Program, Size, ValueId};
use oflow_proto::saved_graph as wire;
use std::collections::BTreeMap;
use std::hash::Hasher;

/// Version of the format.
const VERSION: u32 = 1;

/// Where a graph was planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct World {
    pub(super) rank: usize,
    pub(super) ranks: usize,
    /// Hash of the cost model, with the hosts of the ranks.
    pub(super) cost_model: u64,
    /// Devices of the rank's values, and the architecture of the host.
    pub(super) devices: Vec<String>,
}

/// A tensor from outside.
pub(super) struct SavedOutside {
    /// Name in the state; empty of an input, and of a constant that has its value here.
    pub(super) name: String,
    /// Whether it required a gradient.
    pub(super) trained: bool,
    /// Bytes of this rank's part of a constant.
    pub(super) value: Option<Vec<u8>>,
}

/// A graph as its file has it. The programs are bytes until what they need has been checked.
pub(super) struct SavedGraph {
    pub(super) world: World,
    /// The ops of the program and of its kernels, with the hashes of their declarations.
    pub(super) ops: Vec<(String, u64)>,
    /// The program as it was captured, and as the passes left it.
    pub(super) captured: Vec<u8>,
    pub(super) program: Vec<u8>,
    pub(super) outside: Vec<SavedOutside>,
    /// Names of the host objects in the state, each with what it needs to be made again.
    pub(super) hosts: Vec<(String, String)>,
    /// Names of the program's own generators in the state.
    pub(super) generators: Vec<String>,
    pub(super) names: Vec<(String, ValueId)>,
    pub(super) effects: Vec<Effect>,
    pub(super) record: PlanRecord,
}

fn sum(bytes: &[u8]) -> u64 {
    let mut h = FixedHasher::default();
    h.write(bytes);
    h.finish()
}

/// A file with this content.
pub(super) fn sealed(content: &[u8]) -> Vec<u8> {
    oflow_proto::seal_saved_graph(content, sum(content))
}

fn damaged(why: impl std::fmt::Display) -> Error {
    Error::parse(format!("the file is damaged: {why}")).help("save the graph again")
}

fn number(n: u64) -> Result<usize> {
    usize::try_from(n).map_err(|_| damaged("a number is too large"))
}

impl SavedGraph {
    /// The content of the file.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut texts: Vec<String> = vec![];
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        let mut act = |text| {
            *numbers.entry(text).or_insert_with(|| {
                texts.push(text.to_string());
                texts.len() as u32 - 1
            })
        };
        let acts = self.record.acts.iter().map(|text| act(text.as_str())).collect();
        let bound = |o: &SavedOutside| wire::Bound { name: o.name.clone(), trained: o.trained, value: o.value.clone() };
        let arena = |a: &ArenaRecord| wire::Arena {
            device: a.device.to_string(),
            lifetimes: a.lifetimes,
            offsets: a.packing.offsets.iter().map(|o| *o as u64).collect(),
            bytes: a.packing.bytes as u64,
            bound: a.packing.bound as u64,
            peak: a.packing.peak as u64,
        };
        let size = |s: &Size| {
            let Size { nodes, boxings, peak, time, exposed } = *s;
            Some(wire::Size { nodes: nodes as u64, boxings: boxings as u64, peak: peak as u64, time, exposed })
        };
        let effect =
            |e: &Effect| wire::Effect { pass: e.pass.to_string(), before: size(&e.before), after: size(&e.after) };
        let World { rank, ranks, cost_model, devices } = self.world.clone();
        let message = wire::SavedGraph {
            version: VERSION,
            oflow: env!("CARGO_PKG_VERSION").to_string(),
            world: Some(wire::World { rank: rank as u64, ranks: ranks as u64, cost_model, devices }),
            ops: self.ops.iter().cloned().map(|(name, identity)| wire::Declared { name, identity }).collect(),
            captured: self.captured.clone(),
            program: self.program.clone(),
            outside: self.outside.iter().map(bound).collect(),
            hosts: self.hosts.iter().cloned().map(|(name, saved)| wire::Host { name, saved }).collect(),
            generators: self.generators.clone(),
            names: self.names.iter().cloned().map(|(name, v)| wire::Named { name, value: v.0 }).collect(),
            effects: self.effects.iter().map(effect).collect(),
            acts,
            act_texts: texts,
            arenas: self.record.arenas.iter().map(arena).collect(),
        };
        sealed(&oflow_proto::write_saved_graph(&message))
    }

    /// Reads the content of a file. Memory is bounded by the number of bytes.
    ///
    /// # Errors
    /// If the bytes are damaged, or of another version of the format.
    pub(super) fn decode(bytes: &[u8]) -> Result<SavedGraph> {
        let message = oflow_proto::read_saved_graph(bytes, sum)
            .map_err(|e| Error::parse(format!("the file is not that of a saved graph: {e}")))?
            .ok_or_else(|| damaged("its content is not what was written"))?;
        if message.version != VERSION {
            return Err(Error::parse(format!(
                "the file has format {}, written by oflow {}; {VERSION} is read here",
                message.version, message.oflow
            ))
            .help("save the graph again with this version of oflow"));
        }
        let world = message.world.ok_or_else(|| damaged("it lacks the world"))?;
        let act = |n: &u32| {
            let text = message.act_texts.get(*n as usize).cloned();
            text.ok_or_else(|| damaged("it lacks a step of the plan"))
        };
        let arena = |a: wire::Arena| {
            Ok(ArenaRecord {
                device: a.device.parse()?,
                lifetimes: a.lifetimes,
                packing: Packing {
                    offsets: a.offsets.into_iter().map(number).collect::<Result<_>>()?,
                    bytes: number(a.bytes)?,
                    bound: number(a.bound)?,
                    peak: number(a.peak)?,
                },
            })
        };
        let size = |s: Option<wire::Size>| {
            let wire::Size { nodes, boxings, peak, time, exposed } = s.ok_or_else(|| damaged("it lacks a size"))?;
            Ok::<_, Error>(Size {
                nodes: number(nodes)?,
                boxings: number(boxings)?,
                peak: number(peak)?,
                time,
                exposed,
            })
        };
        let effect = |e: wire::Effect| {
            let pass = Passes::known(&e.pass).ok_or_else(|| damaged(format!("pass {:?} does not exist", e.pass)))?;
            Ok(Effect { pass, before: size(e.before)?, after: size(e.after)? })
        };
        let bound = |o: wire::Bound| SavedOutside { name: o.name, trained: o.trained, value: o.value };
        Ok(SavedGraph {
            world: World {
                rank: number(world.rank)?,
                ranks: number(world.ranks)?,
                cost_model: world.cost_model,
                devices: world.devices,
            },
            ops: message.ops.into_iter().map(|o| (o.name, o.identity)).collect(),
            captured: message.captured,
            program: message.program,
            outside: message.outside.into_iter().map(bound).collect(),
            hosts: message.hosts.into_iter().map(|h| (h.name, h.saved)).collect(),
            generators: message.generators,
            names: message.names.into_iter().map(|n| (n.name, ValueId(n.value))).collect(),
            effects: message.effects.into_iter().map(effect).collect::<Result<_>>()?,
            record: PlanRecord {
                acts: message.acts.iter().map(act).collect::<Result<_>>()?,
                arenas: message.arenas.into_iter().map(arena).collect::<Result<_>>()?,
            },
        })
    }

    /// The program as the passes left it, whose values from outside are those of the file.
    ///
    /// # Errors
    /// Those of [`Program::decode`], and if the file does not fit it.
    pub(super) fn program(&self) -> Result<Program> {
        let program = Program::decode(&self.program)?;
        let values = program.values.len();
        let own = program.draws.len().saturating_sub(crate::program::GeneratorId::FIRST_OWN as usize);
        let fits = program.outside.len() == self.outside.len()
            && program.hosts.len() == self.hosts.len()
            && own == self.generators.len()
            && self.names.iter().all(|(_, v)| v.index() < values);
        match fits {
            true => Ok(program),
            false => Err(damaged("its program has other values from outside than it names")),
        }
    }
}
