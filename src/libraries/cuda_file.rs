//! Ops that a `.cu` file declares by itself, in comments:
//!
//! ```text
//! /* oflow
//! op: softclip(x: f32|f64; limit: runtime float = 1.0) -> y
//! doc: x / (1 + |x| / limit).
//! signature: S(0) -> S(0)
//! gradient: x = mine.softclip_grad(grad y, x; limit)
//! sample: f32[4, 6]
//! kernel: softclip
//! */
//! ```
//!
//! A line is `key: text`. `function`, `derivative`, `linear`, `signature`, `nd_infer`, `nd_extra`, `nd_valid`, `gradient` and `sample` may stand several times.

use super::cuda_text;
use super::declaration::{Declaration, about, condition, priority};
use crate::error::{Error, Result};
use crate::ops::{LibraryId, OpDef};
use std::path::Path;
use std::sync::Arc;

/// Start of the comment that declares an op.
const MARK: &str = "/* oflow\n";

/// Whether the text declares ops.
pub(super) fn declares(text: &str) -> bool {
    text.contains(MARK)
}

/// The ops that a text declares.
///
/// # Errors
/// A comment does not end, or says something that cannot be understood; the message names file and line.
pub(super) fn ops(library: &Arc<LibraryId>, file: &Path, text: &str) -> Result<Vec<OpDef>> {
    let mut found = vec![];
    let mut from = 0;
    while let Some(at) = text[from..].find(MARK).map(|at| from + at) {
        let body = at + MARK.len();
        let line = text[..at].matches('\n').count() + 2;
        let place = |line: usize| format!("{}:{line}", file.display());
        let Some(end) = text[body..].find("*/").map(|end| body + end) else {
            return Err(Error::parse(format!("{}: the comment of the op has no end", place(line - 1))));
        };
        found.push(op(library, file, text, &text[body..end], &|n| place(line + n))?);
        from = end;
    }
    Ok(found)
}

fn op(
    library: &Arc<LibraryId>,
    file: &Path,
    text: &str,
    block: &str,
    place: &dyn Fn(usize) -> String,
) -> Result<OpDef> {
    let mut d = Declaration::default();
    let [mut entry, mut threads, mut dtypes, mut when, mut word, mut version] = [const { String::new() }; 6];
    for (n, line) in block.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let bad = |why: String| {
            Error::parse(format!("{}: {why}", place(n))).help(
                "keys are op, domain, version, doc, subject, traits, function, expression, derivative, shape, dtype, factors, linear, \
                 signature, nd_infer, nd_extra, nd_valid, gradient, sample, kernel, threads, dtypes, when, priority",
            )
        };
        let (key, value) = line.split_once(':').ok_or_else(|| bad(format!("'{}' has no ':'", line.trim())))?;
        let value = value.trim().to_string();
        let once = match key.trim() {
            "function" => Err(&mut d.functions),
            "derivative" => Err(&mut d.derivatives),
            "linear" => Err(&mut d.linear),
            "signature" => Err(&mut d.signatures),
            "nd_infer" => Err(&mut d.nd_infer),
            "nd_extra" => Err(&mut d.nd_extra),
            "nd_valid" => Err(&mut d.nd_valid),
            "sample" => Err(&mut d.samples),
            "gradient" => {
                d.gradient += &format!("{value}\n");
                continue;
            }
            "op" => Ok(&mut d.text),
            "domain" => Ok(&mut d.domain),
            "version" => Ok(&mut version),
            "doc" => Ok(&mut d.doc),
            "subject" => Ok(&mut d.subject),
            "traits" => Ok(&mut d.traits),
            "expression" => Ok(&mut d.expression),
            "shape" => Ok(&mut d.shape),
            "dtype" => Ok(&mut d.dtype),
            "factors" => Ok(&mut d.factors),
            "kernel" => Ok(&mut entry),
            "threads" => Ok(&mut threads),
            "dtypes" => Ok(&mut dtypes),
            "when" => Ok(&mut when),
            "priority" => Ok(&mut word),
            other => return Err(bad(format!("unknown key '{other}'"))),
        };
        match once {
            Err(list) => list.push(value),
            Ok(slot) if slot.is_empty() => *slot = value,
            Ok(_) => return Err(bad(format!("'{}' stands twice", key.trim()))),
        }
    }
    let missing = |key: &str| Error::parse(format!("{}: the op has no line '{key}: …'", place(0)));
    if d.text.is_empty() {
        return Err(missing("op"));
    }
    if entry.is_empty() {
        return Err(missing("kernel").help("name the `extern \"C\" __global__` function"));
    }
    if !version.is_empty() {
        d.version = version.parse().map_err(|_| Error::parse(format!("{}: '{version}' is not a version", place(0))))?;
    }
    let op = d.op(library)?;
    let kernel = cuda_text::kernel(&op, file, text, &entry, &threads)
        .and_then(|k| Ok(k.when(condition(&dtypes, &when, &op)?).priority(priority(&word)?)));
    let kernel = kernel.map_err(|e| about(e, &d.text, library))?;
    Ok(op.kernel(kernel))
}
