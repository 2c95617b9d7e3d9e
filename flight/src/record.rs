//! The contents of a flight recorder, as data.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ring::Ring;
use crate::MAX_WORLD;
use oflow_base::{Error, Place, Result};
use oflow_files::Access;

/// Longest record that is read, in bytes of JSON.
const LONGEST: u64 = 256 << 20;

/// One global op that a rank has issued.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpRecord {
    /// Ordinal of the op in the rank's dispatch stream, from 1.
    pub ordinal: u64,
    /// Rolling hash of the dispatch stream up to and including this op.
    pub hash: u64,
    /// Name of the op.
    pub op: String,
    /// The call in short form, if recorded: `add(f32[4] [S(0)], f32[4] [B]) on cpu[2]`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// Source file of the call.
    pub file: String,
    /// Line of the call.
    pub line: u32,
    /// Time of issue in seconds since 1970, accurate to a few milliseconds.
    pub time: f64,
}

impl OpRecord {
    /// Returns the op as a [`Place`].
    pub fn place(&self, rank: usize) -> Place {
        Place { rank, op: self.op.clone(), ordinal: self.ordinal, file: self.file.clone(), line: self.line }
    }
}

/// One collective that a rank took part in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Number of the collective among those of the rank, from 1.
    pub number: u64,
    /// Ordinal of the global op that issued it.
    pub ordinal: u64,
    /// Kind, such as `all_reduce`.
    pub kind: String,
    /// Name of the op that issued it.
    pub op: String,
    /// Source file of the call.
    pub file: String,
    /// Line of the call.
    pub line: u32,
    /// Number of members.
    pub members: usize,
    /// World ranks of the first members.
    pub ranks: Vec<usize>,
    /// Bytes of input or of output on this rank, whichever is more.
    #[serde(default)]
    pub bytes: u64,
    /// Start time in seconds since 1970. Between GPUs: when the start on the GPU was noticed, or else when the collective was
    /// enqueued on the GPU's stream. Times between GPUs are accurate to some 50 ms.
    pub start: f64,
    /// Whether it is enqueued on a GPU's stream and has not started.
    #[serde(default)]
    pub queued: bool,
    /// End time of this rank's part; `None` while it runs.
    pub end: Option<f64>,
    /// Whether it has failed.
    #[serde(default)]
    pub failed: bool,
}

impl CallRecord {
    /// Returns whether it has started and not ended.
    pub fn is_open(&self) -> bool {
        self.end.is_none() && !self.queued
    }
}

/// The node of a graph that a rank carries out. Nodes leave no records of ops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Ordinal of the run's entry in the rank's dispatch stream; 0: a graph of local tensors alone has none.
    pub graph: u64,
    /// Number of the node in its program, from 1.
    pub number: u32,
    /// Name of the op; empty if the call is no longer known.
    pub op: String,
    /// The call in short form.
    pub call: String,
    /// Source file of the call, or of the run if the call is no longer known.
    pub file: String,
    /// Line of the call.
    pub line: u32,
}

impl NodeRecord {
    /// Returns the node as a [`Place`].
    pub fn place(&self, rank: usize) -> Place {
        Place { rank, op: self.op.clone(), ordinal: self.graph, file: self.file.clone(), line: self.line }
    }

    /// Returns the node as text, after its op or call: `'relu', node 7 of graph #12 (train.rs:10)`.
    pub fn describe(&self, name: &str) -> String {
        let name = if name.is_empty() { String::new() } else { format!("{name}, ") };
        let graph = if self.graph == 0 { "a graph".to_string() } else { format!("graph #{}", self.graph) };
        let line = if self.file.is_empty() { String::new() } else { format!(" ({}:{})", self.file, self.line) };
        format!("{name}node {} of {graph}{line}", self.number)
    }
}

/// The last ops and collectives of one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flight {
    /// Rank that the record is of.
    pub rank: usize,
    /// Number of ranks.
    pub world: usize,
    /// Id of the rank's process.
    pub pid: u32,
    /// Number of global ops issued.
    pub issued: u64,
    /// The last ops, in order.
    pub ops: Vec<OpRecord>,
    /// The last collectives, in order.
    pub calls: Vec<CallRecord>,
    /// The node of the graph that it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeRecord>,
}

impl Flight {
    /// Size of the memory file of a rank's recorder.
    pub const RING_BYTES: u64 = (super::ring::TOTAL_WORDS * 8) as u64;

    /// Reads a rank's record: the memory file of its recorder (`flight-N.ring`), also while the rank runs, or the JSON made of
    /// it.
    ///
    /// # Errors
    /// If the file cannot be read, or was not written by this version of oflow.
    pub fn read(path: &Path) -> Result<Flight> {
        let cannot = |what: String| Error::io(format!("cannot read the flight record {}: {what}", path.display()));
        if path.extension().is_some_and(|e| e == "json") {
            let text = oflow_files::bytes(path, LONGEST).map_err(|e| cannot(e.to_string()))?;
            let flight: Flight = serde_json::from_slice(&text).map_err(|e| cannot(e.to_string()))?;
            return flight.check().map_err(cannot);
        }
        let file = oflow_files::open(path).map_err(|e| cannot(e.to_string()))?;
        let ring = Ring::open(&file).map_err(|e| cannot(e.message().to_string()))?;
        ring.flight().check().map_err(cannot)
    }

    /// Refuses impossible numbers of ranks and ops, on which readers rely.
    fn check(self) -> std::result::Result<Flight, String> {
        let Flight { rank, world, .. } = self;
        if world > MAX_WORLD || rank >= world {
            return Err(format!("it is of rank {rank} in a world of {world}"));
        }
        if self.ops.iter().any(|op| op.ordinal == 0) {
            return Err("it has an op of number 0; they count from 1".into());
        }
        Ok(self)
    }

    /// Returns the name of a rank's memory file: `flight-N.ring`.
    pub fn ring_name(rank: usize) -> String {
        format!("flight-{rank}.ring")
    }

    /// Returns the name of a rank's record as JSON.
    pub fn json_name(rank: usize) -> String {
        format!("flight-{rank}.json")
    }

    /// Converts every memory file in the folder `rings` to JSON in the folder `to`. A memory file is removed once its copy is
    /// whole, or if it is empty, because its rank has ended before its first op; otherwise it stays.
    ///
    /// # Errors
    /// If the folder `rings` cannot be read.
    pub fn save_all(rings: &Path, to: &Path) -> Result<Saved> {
        let mut saved = Saved::default();
        for entry in std::fs::read_dir(rings)? {
            let path = entry?.path();
            if path.extension().is_none_or(|e| e != "ring") {
                continue;
            }
            if std::fs::symlink_metadata(&path).is_ok_and(|m| m.len() == 0) {
                let _may_be_gone = std::fs::remove_file(&path);
                continue;
            }
            match Flight::read(&path).and_then(|flight| flight.save(to)) {
                Ok(()) => {
                    saved.written += 1;
                    // It stays beside its copy, which is read first.
                    let _as_good = std::fs::remove_file(&path);
                }
                Err(e) => saved.failed.push(e.to_string()),
            }
        }
        Ok(saved)
    }

    /// Writes the record as JSON, whole or not at all.
    fn save(&self, to: &Path) -> Result<()> {
        let path = to.join(Flight::json_name(self.rank));
        let text = serde_json::to_vec(self).map_err(|e| Error::io("cannot write JSON").because(e))?;
        oflow_files::replace(&path, Access::Readable, &text)
    }
}

/// Result of [`Flight::save_all`].
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// Number of records that were written as JSON.
    pub written: usize,
    /// Why memory files could not be converted; these files stay.
    pub failed: Vec<String>,
}
