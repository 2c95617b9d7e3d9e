//! Signatures over all axes of a mesh as text: `[S(0), B], [B, B] -> [S(0), B]`, one nd-SBP for each input and each output. A row is of
//! meshes with as many axes as its nd-SBPs have; on other meshes it says nothing.

use super::def::{NdSignature, OpDef};
use super::infer::InferCtx;
use super::sbp_hints::SbpHints;
use super::signature::split_outside;
use crate::error::{Error, Result};
use crate::placement::Placement;
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
    /// A row cannot be read, or is of another number of inputs or outputs than the op has.
    pub fn nd_rows(mut self, infer: &[String], extra: &[String], valid: &[String]) -> Result<OpDef> {
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
            self = self.nd_infer(move |ctx, mesh, _| with_whole(ctx, mesh, of_mesh(&listed, mesh.axes())));
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

/// Rules that are code and say signatures as text.
impl OpDef {
    /// As [`OpDef::nd_infer`] with signatures as text, one nd-SBP for each input and output of the call: `[S(0), B], [B, B] -> [S(0), B]`. All
    /// tensors B is always one more. A row that cannot be read, or that is of another number of tensors or mesh axes than the call, is an
    /// error of the call.
    #[must_use]
    pub fn nd_infer_rows(
        self,
        f: impl Fn(&InferCtx<'_>, &Placement, &SbpHints<'_>) -> Result<Vec<String>> + Send + Sync + 'static,
    ) -> OpDef {
        self.nd_infer(move |ctx, mesh, hints| {
            let rows = f(ctx, mesh, hints)?;
            with_whole(
                ctx,
                mesh,
                rows.iter().map(|row| row_of_call(ctx, mesh, "nd_infer", row)).collect::<Result<_>>()?,
            )
        })
    }

    /// As [`OpDef::nd_choose`] with the signature as text, as in [`OpDef::nd_infer_rows`].
    ///
    /// ```
    /// use oflow::ops::{OpDef, register};
    /// use oflow::prelude::*;
    /// // Takes columns where nothing is said, and what is asked for elsewhere.
    /// let op = OpDef::elementwise("by_columns(x: float) -> y", "-x")?.domain("mine").nd_choose_row(|_, mesh, hints| {
    ///     let columns = NdSbp::new(&vec![Sbp::Split(1); mesh.axes()]);
    ///     let sbp = hints.output.unwrap_or(&columns);
    ///     Ok(Some(format!("{sbp} -> {sbp}")))
    /// });
    /// register(op)?;
    /// oflow::run_ranks(2, |_| {
    ///     let x = ones([4, 4], (&Placement::all(Device::Cpu)?, sbp![B]))?;
    ///     let call = || oflow::call("mine.by_columns", &[(&x).into()], &[]);
    ///     assert_eq!(call()?[0].sbp()?, &sbp![S(1)]);
    ///     assert_eq!(with_sbp(sbp![S(0)], call)?[0].sbp()?, &sbp![S(0)]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[must_use]
    pub fn nd_choose_row(
        self,
        f: impl Fn(&InferCtx<'_>, &Placement, &SbpHints<'_>) -> Result<Option<String>> + Send + Sync + 'static,
    ) -> OpDef {
        self.nd_choose(move |ctx, mesh, hints| {
            f(ctx, mesh, hints)?.map(|row| row_of_call(ctx, mesh, "nd_choose", &row)).transpose()
        })
    }
}

/// A row that the code of a rule has said about a call.
fn row_of_call(ctx: &InferCtx<'_>, mesh: &Placement, rule: &str, row: &str) -> Result<Row> {
    let refused = |why: &str, help: &str| {
        Error::argument(format!("`{rule}` of {} gives '{row}': {why}", ctx.op.shown())).help(help)
    };
    let help = "give an SBP for each mesh axis of each tensor of the call, as in `[S(0), B], [B, B] -> [S(0), B]`";
    let found = ctx.op.row(row).map_err(|e| refused(e.message(), e.help_text().unwrap_or(help)))?;
    let (inputs, outputs, axes) = (ctx.inputs.len(), outputs_of(ctx)?, mesh.axes());
    let fits = found.inputs.len() == inputs && found.outputs.len() == outputs;
    match fits && found.inputs.iter().chain(&found.outputs).all(|n| n.len() == axes) {
        true => Ok(found),
        false => {
            let why = format!("the call has {inputs} inputs and {outputs} outputs on {axes} mesh axes");
            Err(refused(&why, help))
        }
    }
}

/// The number of outputs that a call makes.
fn outputs_of(ctx: &InferCtx<'_>) -> Result<usize> {
    match ctx.op.outputs_made(ctx)? {
        Some(made) => Ok(made.len()),
        None => Ok(ctx.op.infer(ctx)?.len()),
    }
}

/// The rows, and all tensors B on each axis.
fn with_whole(ctx: &InferCtx<'_>, mesh: &Placement, mut rows: Vec<Row>) -> Result<Vec<Row>> {
    let nd = || NdSbp::broadcast(mesh.axes());
    let whole = Row {
        inputs: ctx.inputs.iter().map(|_| nd()).collect(),
        outputs: (0..outputs_of(ctx)?).map(|_| nd()).collect(),
        lowering: None,
    };
    if !rows.contains(&whole) {
        rows.push(whole);
    }
    Ok(rows)
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
