//! Comma-separated values with the columns step, time and one for each name. A name that comes later gets a column at the end: the file is
//! written anew under another name and takes the place of the old one.

use super::file::{LONGEST, append, continued, not_a_log};
use super::row::Row;
use crate::error::Result;
use oflow_files::Access;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// First columns of the header.
const FIXED: [&str; 2] = ["step", "time"];

pub(super) struct Csv {
    path: PathBuf,
    file: File,
    columns: Vec<Arc<str>>,
}

impl Csv {
    pub fn open(path: PathBuf, resumed: Option<usize>) -> Result<Csv> {
        let mut columns = vec![];
        let file = continued(&path, resumed, |content, step| {
            let (names, kept) = kept(&path, content, step)?;
            columns = names;
            Ok(kept)
        })?;
        Ok(Csv { path, file, columns })
    }

    pub fn write(&mut self, rows: &[Row]) -> Result<()> {
        let (had, mut all) = (self.columns.len(), self.columns.clone());
        for (name, _) in rows.iter().flat_map(|row| &row.values) {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        let lines: String = rows.iter().map(|row| line(row, &all)).collect();
        let header = header(&all);
        match (had, all.len() - had) {
            (_, 0) => append(&mut self.file, &self.path, lines.as_bytes())?,
            // A file whose rows were all removed has a header.
            (0, _) if self.file.metadata().is_ok_and(|m| m.len() == 0) => {
                append(&mut self.file, &self.path, (header + &lines).as_bytes())?;
            }
            (_, more) => {
                let old = oflow_files::text(&self.path, LONGEST)?;
                let commas = ",".repeat(more);
                let old: String = old.lines().skip(1).map(|row| format!("{row}{commas}\n")).collect();
                oflow_files::replace(&self.path, Access::Readable, (header + &old + &lines).as_bytes())?;
                self.file = oflow_files::append(&self.path, Access::Readable)?;
            }
        }
        self.columns = all;
        Ok(())
    }
}

/// The names of the columns, and the header with the rows of steps before `step`.
fn kept(path: &Path, content: &str, step: usize) -> Result<(Vec<Arc<str>>, String)> {
    let mut lines = content.lines().enumerate();
    let Some((_, header)) = lines.next() else { return Ok((vec![], String::new())) };
    let mut names = cells(header).ok_or_else(|| not_a_log(path, 0))?;
    if names.len() < 2 || names[..2] != FIXED {
        return Err(not_a_log(path, 0));
    }
    let mut kept = format!("{header}\n");
    for (i, row) in lines {
        let of: u64 = row.split(',').next().and_then(|cell| cell.parse().ok()).ok_or_else(|| not_a_log(path, i))?;
        if of < step as u64 {
            kept += row;
            kept.push('\n');
        }
    }
    Ok((names.split_off(2).into_iter().map(Arc::from).collect(), kept))
}

fn header(names: &[Arc<str>]) -> String {
    let names = FIXED.into_iter().chain(names.iter().map(|n| &**n));
    names.map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

fn line(row: &Row, columns: &[Arc<str>]) -> String {
    let mut line = format!("{},{:?}", row.step, row.time);
    for column in columns {
        line.push(',');
        if let Some((_, x)) = row.values.iter().find(|(name, _)| name == column) {
            line += &number(*x);
        }
    }
    line + "\n"
}

/// Python, R and spreadsheets read these words.
fn number(x: f64) -> String {
    if x.is_nan() { "nan".into() } else { format!("{x:?}") }
}

fn quoted(name: &str) -> String {
    if name.contains([',', '"']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.into() }
}

/// The cells of a header, which is one line: names have no control characters.
fn cells(line: &str) -> Option<Vec<String>> {
    let (mut all, mut cell, mut chars) = (vec![], String::new(), line.chars().peekable());
    loop {
        if chars.next_if_eq(&'"').is_some() {
            loop {
                match chars.next()? {
                    '"' if chars.next_if_eq(&'"').is_some() => cell.push('"'),
                    '"' => break,
                    c => cell.push(c),
                }
            }
        }
        match chars.next() {
            Some(',') => all.push(std::mem::take(&mut cell)),
            Some(c) => cell.push(c),
            None => {
                all.push(cell);
                return Some(all);
            }
        }
    }
}
