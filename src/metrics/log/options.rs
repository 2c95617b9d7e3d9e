//! Settings of a log.

use crate::error::{Error, Result};
use std::str::FromStr;

/// Format of a log's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `PATH.jsonl`: a JSON object for each step. `"NaN"`, `"Infinity"` and `"-Infinity"` are strings.
    Jsonl,
    /// `PATH.csv`: a row for each step, a column for each name. Cells without a value are empty.
    Csv,
    /// `PATH/events.out.tfevents.…`: scalars in f32, for TensorBoard.
    TensorBoard,
}

impl Format {
    /// All formats by name.
    pub const ALL: [(&str, Format); 3] =
        [("jsonl", Format::Jsonl), ("csv", Format::Csv), ("tensorboard", Format::TensorBoard)];
}

impl FromStr for Format {
    type Err = Error;
    fn from_str(name: &str) -> Result<Format> {
        let found = Format::ALL.iter().find(|(n, _)| *n == name).map(|(_, f)| *f);
        found.ok_or_else(|| {
            Error::argument(format!("a log has no format {name:?}")).help("the formats are jsonl, csv and tensorboard")
        })
    }
}

/// The value of plain numbers and of local tensors, of which each rank has its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OverRanks {
    /// Rank 0's. Other ranks may log such values or not.
    #[default]
    First,
    /// The mean over all ranks.
    Mean,
    /// The sum over all ranks.
    Sum,
    /// The largest of all ranks.
    Max,
    /// The least of all ranks.
    Min,
}

impl OverRanks {
    /// All of them by name.
    pub const ALL: [(&str, OverRanks); 5] = [
        ("first", OverRanks::First),
        ("mean", OverRanks::Mean),
        ("sum", OverRanks::Sum),
        ("max", OverRanks::Max),
        ("min", OverRanks::Min),
    ];
}

impl FromStr for OverRanks {
    type Err = Error;
    fn from_str(name: &str) -> Result<OverRanks> {
        let found = OverRanks::ALL.iter().find(|(n, _)| *n == name).map(|(_, f)| *f);
        found.ok_or_else(|| {
            Error::argument(format!("a log cannot take {name:?} over ranks")).help("give first, mean, sum, max or min")
        })
    }
}

/// Settings of a [`Log`](super::Log).
#[derive(Clone, Debug, PartialEq)]
pub struct LogOptions {
    /// Formats of the files; all by default.
    pub formats: Vec<Format>,
    /// Steps between two flushes, 10 by default. A flush is due when a step is logged that is as many steps after the first that is not written.
    pub flush_every: usize,
    /// Whether the files of an earlier run are continued. The first step that is logged says where: rows of this step and later are removed.
    /// Without files the log is new.
    pub resume: bool,
    /// Rank whose plain numbers and local tensors are written, or how those of all ranks become one. With other than [`OverRanks::First`] every rank logs the same names.
    pub over_ranks: OverRanks,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        let formats = Format::ALL.iter().map(|(_, f)| *f).collect();
        LogOptions { formats, flush_every: 10, resume: false, over_ranks: OverRanks::First }
    }
}
