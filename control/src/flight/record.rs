//! What a flight recorder tells, as data.

use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ring::Ring;
use crate::MAX_WORLD;
use oflow_base::{Error, Place, Result};

/// One global op that a rank has issued.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpRecord {
    /// Which op of the rank it was, from 1.
    pub ordinal: u64,
    /// Rolling hash of the dispatch stream up to and including it.
    pub hash: u64,
    /// Its name.
    pub op: String,
    /// The call in short form where more than the name is known: `add(f32[4] [S(0)], f32[4] [B]) on cpu[2]`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// The user's file.
    pub file: String,
    /// The user's line.
    pub line: u32,
    /// When it was issued, in seconds since 1970, to a few milliseconds.
    pub time: f64,
}

impl OpRecord {
    /// The op as the place of a failure.
    pub fn place(&self, rank: usize) -> Place {
        Place { rank, op: self.op.clone(), ordinal: self.ordinal, file: self.file.clone(), line: self.line }
    }
}

/// One collective that a rank took part in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Which collective of the rank it was, from 1.
    pub number: u64,
    /// The global op it belongs to.
    pub ordinal: u64,
    /// Its kind, as `all_reduce`.
    pub kind: String,
    /// The op's name.
    pub op: String,
    /// The user's file.
    pub file: String,
    /// The user's line.
    pub line: u32,
    /// Number of members.
    pub members: usize,
    /// World ranks of the first of them.
    pub ranks: Vec<usize>,
    /// Bytes that went into it or came out of it on this rank, whichever are more.
    #[serde(default)]
    pub bytes: u64,
    /// When the rank came to it, in seconds since 1970. Between GPUs: when it was noticed that the rank's GPU had come to it, or
    /// if that was not, when it was put on the GPU's stream; as its end, to within some 50 ms.
    pub start: f64,
    /// Whether it is on the stream of a GPU that has not come to it.
    #[serde(default)]
    pub queued: bool,
    /// When its part was done; absent while it is under way.
    pub end: Option<f64>,
    /// Whether it failed.
    #[serde(default)]
    pub failed: bool,
}

impl CallRecord {
    /// Whether the rank has come to it and not out of it.
    pub fn is_open(&self) -> bool {
        self.end.is_none() && !self.queued
    }
}

/// The last ops and collectives of one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flight {
    /// The rank.
    pub rank: usize,
    /// Number of ranks.
    pub world: usize,
    /// Its process.
    pub pid: u32,
    /// Number of global ops that it has issued.
    pub issued: u64,
    /// The last ones, in order.
    pub ops: Vec<OpRecord>,
    /// The last collectives, in order.
    pub calls: Vec<CallRecord>,
}

impl Flight {
    /// Reads what a rank left: the memory file of its recorder (`flight-N.ring`), also while it runs, or the JSON made of it.
    ///
    /// # Errors
    /// The file cannot be read, or is not what a recorder of this version writes.
    pub fn read(path: &Path) -> Result<Flight> {
        let cannot = |what: String| Error::io(format!("cannot read the flight record {}: {what}", path.display()));
        if path.extension().is_some_and(|e| e == "json") {
            let text = std::fs::read(path).map_err(|e| cannot(e.to_string()))?;
            let flight: Flight = serde_json::from_slice(&text).map_err(|e| cannot(e.to_string()))?;
            return flight.check().map_err(cannot);
        }
        let file = File::open(path).map_err(|e| cannot(e.to_string()))?;
        let ring = Ring::open(&file).map_err(|e| cannot(e.message().to_string()))?;
        ring.flight().check().map_err(cannot)
    }

    /// Readers count ranks and ops: what cannot be is refused here.
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

    /// Name of a rank's memory file in its folder.
    pub fn ring_name(rank: usize) -> String {
        format!("flight-{rank}.ring")
    }

    /// Name of a rank's record as JSON.
    pub fn json_name(rank: usize) -> String {
        format!("flight-{rank}.json")
    }

    /// Turns every memory file in a folder into JSON and removes it. Returns how many there were.
    ///
    /// # Errors
    /// The folder cannot be read or written. Files that are broken (their rank never got to writing) are removed.
    pub fn save_all(folder: &Path) -> Result<usize> {
        let mut saved = 0;
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|e| e != "ring") {
                continue;
            }
            if let Ok(flight) = Flight::read(&path) {
                let text = serde_json::to_vec(&flight).map_err(|e| Error::io("cannot write JSON").because(e))?;
                std::fs::write(path.with_extension("json"), text)?;
                saved += 1;
            }
            std::fs::remove_file(&path)?;
        }
        Ok(saved)
    }
}
