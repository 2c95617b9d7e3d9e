//! The files of a log.

use super::csv::Csv;
use super::events::Events;
use super::jsonl::Jsonl;
use super::options::Format;
use super::row::Row;
use crate::error::Result;
use oflow_files::Access;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(super) struct Files {
    jsonl: Option<Jsonl>,
    csv: Option<Csv>,
    events: Option<Events>,
}

impl Files {
    /// Makes new files.
    pub fn create(path: &Path, formats: &[Format]) -> Result<Files> {
        Files::open(path, formats, None)
    }

    /// Continues files from a step on, and makes those that are not there.
    pub fn resume(path: &Path, formats: &[Format], step: usize) -> Result<Files> {
        Files::open(path, formats, Some(step))
    }

    fn open(path: &Path, formats: &[Format], resumed: Option<usize>) -> Result<Files> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            oflow_files::folders(folder, Access::Readable)?;
        }
        let has = |format| formats.contains(&format);
        let (jsonl, csv) = (with_ending(path, ".jsonl"), with_ending(path, ".csv"));
        Ok(Files {
            jsonl: has(Format::Jsonl).then(|| Jsonl::open(&jsonl, resumed)).transpose()?,
            csv: has(Format::Csv).then(|| Csv::open(csv, resumed)).transpose()?,
            events: has(Format::TensorBoard).then(|| Events::open(path, resumed)).transpose()?,
        })
    }

    /// Writes rows to all files.
    pub fn write(&mut self, rows: &[Row]) -> Result<()> {
        self.jsonl.as_mut().map_or(Ok(()), |f| f.write(rows))?;
        self.csv.as_mut().map_or(Ok(()), |f| f.write(rows))?;
        self.events.as_mut().map_or(Ok(()), |f| f.write(rows))
    }
}

/// A path with something after its name, which may have a dot.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}
