//! Signatures over all axes of a mesh as text: `[S(0), B], [B, B] -> [S(0), B]`, one nd-SBP for each input and each output. A row is of
//! meshes with as many axes as its nd-SBPs have; on other meshes it says nothing.

use super::def::{NdSignature, OpDef};
use super::infer::InferCtx;
use super::signature::split_outside;
use crate::error::{Error, Result};
use crate::sbp::{NdSbp, Sbp};
use smallvec::SmallVec;
use std::fmt;

impl NdSignature {
    /// Returns the text of the signature, with the text of each input.
    pub(crate) fn text(&self, inputs: impl Iterator<Item = String>) -> String {
        let outputs: Vec<String> = self.outputs.iter().map(NdSbp::to_string).collect();
        let lowered = if self.lowering.is_some() { " (lowered)" } else { "" };
        let text = format!("{} -> {}{lowered}", inputs.collect::<Vec<_>>().join(", "), outputs.join(", "));
        text.trim().to_string()
    }
}

/// `[S(0)], [B] -> [S(0)]`, with `(lowered)` behind where a lowering carries the call out.
impl fmt::Display for NdSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(self.inputs.iter().map(NdSbp::to_string)))
    }
}

/// One row, read.
type Row = NdSignature;

/// A row of [`OpDef::nd_rows`] that says which signatures hold.
struct Pattern {
    /// Whether signatures that match do not hold.
    not: bool,
    text: String,
    /// For each tensor, inputs first: an SBP for each axis or none for any; no list for a tensor that may lie in any way.
    tensors: Vec<Option<Vec<Option<Sbp>>>>,
    inputs: usize,
}

/// The two sides of a row.
fn sides(row: &str) -> Result<[Vec<&str>; 2]> {
    let (inputs, outputs) = row.split_once("->").ok_or_else(|| no_row(row, "it has no '->'"))?;
    Ok([inputs, outputs].map(|side| split_outside(side, ',').collect()))
}

fn no_row(row: &str, why: &str) -> Error {
    Error::parse(format!("'{row}' is not a signature over several mesh axes: {why}"))
        .help("write an SBP for each axis of each tensor, as in `[S(0), B], [B, B] -> [S(0), B]`")
}

/// Axes of the mesh that a row is of: those of each of its tensors.
fn axes_of(row: &str, counts: impl Iterator<Item = usize>) -> Result<usize> {
    let mut axes = None;
    for n in counts {
        if *axes.get_or_insert(n) != n {
            return Err(no_row(row, "its tensors have different numbers of axes"));
        }
    }
    axes.ok_or_else(|| no_row(row, "no tensor says an SBP"))
}

impl OpDef {
    /// Checks the number of tensors of a row, where it is the same in all calls.
    fn check_row(&self, row: &str, inputs: usize, outputs: usize) -> Result<()> {
        let sig = &self.sig;
        let (has, gives) = (sig.inputs.len(), sig.outputs.len());
        if (sig.repeating() == 0 && inputs != has) || (!sig.outputs_vary() && outputs != gives) {
            let why = format!("it is of {inputs} inputs and {outputs} outputs, {} has {has} and {gives}", sig.name);
            return Err(no_row(row, &why));
        }
        Ok(())
    }

    fn row(&self, row: &str) -> Result<Row> {
        let [inputs, outputs] = sides(row)?;
        let read = |t: &&str| match t.starts_with('[') {
            true => t.parse::<NdSbp>().map_err(|e| no_row(row, e.message())),
            false => Err(no_row(row, &format!("'{t}' has no brackets"))),
        };
        let inputs = inputs.iter().map(read).collect::<Result<SmallVec<[NdSbp; 4]>>>()?;
        let outputs = outputs.iter().map(read).collect::<Result<SmallVec<[NdSbp; 2]>>>()?;
        axes_of(row, inputs.iter().chain(&outputs).map(|n| n.len()))?;
        self.check_row(row, inputs.len(), outputs.len())?;
        Ok(NdSignature { inputs, outputs, lowering: None })
    }

    fn pattern(&self, row: &str) -> Result<Pattern> {
        let text = row.trim();
        let (not, text) = text.strip_prefix("not ").map_or((false, text), |rest| (true, rest));
        let [inputs, outputs] = sides(text)?;
        let read = |t: &&str| -> Result<Option<Vec<Option<Sbp>>>> {
            if *t == "*" {
                return Ok(None);
            }
            let inner = t.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
            let inner = inner.ok_or_else(|| no_row(row, &format!("'{t}' is neither an nd-SBP nor *")))?;
            let one = |s: &str| match s.trim() {
                "*" => Ok(None),
                s => s.parse().map(Some).map_err(|e: Error| no_row(row, e.message())),
            };
            inner.split(',').map(one).collect::<Result<_>>().map(Some)
        };
        let tensors = inputs.iter().chain(&outputs).map(read).collect::<Result<Vec<_>>>()?;
        axes_of(row, tensors.iter().flatten().map(Vec::len))?;
        self.check_row(row, inputs.len(), outputs.len())?;
        Ok(Pattern { not, text: row.to_string(), tensors, inputs: inputs.len() })
    }

    /// Says signatures over all axes of a mesh together as text, one nd-SBP for each input and output: `[S(0), S(1)], [B, B] -> [S(0), S(1)]`.
    /// A row is of meshes with as many axes as it has.
    ///
    /// - `infer`: in the place of the products of those of one axis ([`OpDef::nd_infer`]). All tensors B is always one more.
    /// - `extra`: beside these products ([`OpDef::nd_extra`]).
    /// - `valid`: which signatures hold ([`OpDef::nd_valid`]). `*` is any SBP, or any nd-SBP. A row that starts with `not` forbids what it
    ///   matches. If there are other rows for the mesh, one of them must match.
    ///
    /// ```
    /// use oflow::ops::OpDef;
    /// let tiles = OpDef::new("tiles(x: float[2]) -> y")?.signatures(&["S(0) -> S(0)"]);
    /// let extra = ["[S(0), S(1)] -> [S(0), S(1)]".to_string()];
    /// let op = tiles.nd_rows(&[], &extra, &["not [S(0), S(0)] -> *".to_string()])?;
    /// assert!(op.nd_extra.is_some() && op.nd_valid.is_some() && op.nd_infer.is_none());
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// A row cannot be read, or is of another number of inputs or outputs than the op has; `infer` beside `extra`.
    pub fn nd_rows(mut self, infer: &[String], extra: &[String], valid: &[String]) -> Result<OpDef> {
        if !infer.is_empty() && !extra.is_empty() {
            return Err(Error::parse(format!("op {}: it has nd_infer and nd_extra", self.sig.name))
                .help("nd_infer replaces everything: put all rows there"));
        }
        let read = |rows: &[String]| rows.iter().map(|r| self.row(r)).collect::<Result<Vec<Row>>>();
        let (listed, more) = (read(infer)?, read(extra)?);
        let patterns = valid.iter().map(|r| self.pattern(r)).collect::<Result<Vec<Pattern>>>()?;
        self.nd_rows.extend(infer.iter().map(|r| format!("infer {r}")));
        self.nd_rows.extend(extra.iter().map(|r| format!("extra {r}")));
        self.nd_rows.extend(patterns.iter().map(|p| format!("valid {}", p.text)));
        let of_mesh = |rows: &[Row], axes: usize| -> Vec<Row> {
            rows.iter().filter(|r| r.inputs.iter().chain(&r.outputs).all(|n| n.len() == axes)).cloned().collect()
        };
        if !listed.is_empty() {
            self = self.nd_infer(move |ctx, mesh| {
                let mut rows = of_mesh(&listed, mesh.axes());
                let whole = whole(ctx, mesh.axes())?;
                if !rows.contains(&whole) {
                    rows.push(whole);
                }
                Ok(rows)
            });
        }
        if !more.is_empty() {
            self = self.nd_extra(move |_, mesh| Ok(of_mesh(&more, mesh.axes())));
        }
        if !patterns.is_empty() {
            self = self.nd_valid(move |_, mesh, sig| {
                let mut of_mesh =
                    patterns.iter().filter(|p| p.tensors.iter().flatten().all(|t| t.len() == mesh.axes()));
                let (mut wanted, mut found) = (false, false);
                of_mesh.all(|p| {
                    let matches = p.matches(sig);
                    wanted |= !p.not;
                    found |= !p.not && matches;
                    !(p.not && matches)
                }) && (found || !wanted)
            });
        }
        Ok(self)
    }
}

/// All tensors B on each axis.
fn whole(ctx: &InferCtx<'_>, axes: usize) -> Result<Row> {
    let outputs = ctx.op.outputs_made(ctx)?.map_or(ctx.op.sig.outputs.len(), |made| made.len());
    let nd = || NdSbp::new(&vec![Sbp::Broadcast; axes]);
    Ok(Row {
        inputs: ctx.inputs.iter().map(|_| nd()).collect(),
        outputs: (0..outputs).map(|_| nd()).collect(),
        lowering: None,
    })
}

impl Pattern {
    fn matches(&self, sig: &NdSignature) -> bool {
        let outputs = self.tensors.len() - self.inputs;
        let all = sig.inputs.iter().chain(&sig.outputs);
        sig.inputs.len() == self.inputs
            && sig.outputs.len() == outputs
            && self.tensors.iter().zip(all).all(|(wanted, nd)| {
                wanted.as_ref().is_none_or(|w| w.iter().zip(nd.iter()).all(|(w, s)| w.is_none_or(|w| w == *s)))
            })
    }
}
