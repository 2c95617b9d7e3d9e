//! Report of what [`conformance`](super::conformance) has checked.

use super::Completeness;
use std::fmt;

/// Cases on one mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeshReport {
    /// Sizes of the mesh.
    pub mesh: &'static [usize],
    /// Declared signatures that were run, over all samples and sizes.
    pub signatures: usize,
    /// Number of cases of which another one with the same inputs is cheaper, so that it was run instead.
    pub not_chosen: usize,
    /// Random layouts that were run.
    pub mixed: usize,
    /// Cases that were compared forward and backward; the others forward only.
    pub backward: usize,
}

/// Checks of an op that were right. Prints as text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Name of the op.
    pub op: String,
    /// How many samples it has.
    pub samples: usize,
    /// Cases by mesh.
    pub meshes: Vec<MeshReport>,
    /// Cases with infinities, NaN, zeros, numbers near zero and the ends of integers, on meshes of one and two axes.
    pub special: usize,
    /// First derivatives that were compared with finite differences.
    pub first: usize,
    /// Second derivatives that were compared.
    pub second: usize,
    /// Calls with bad arguments.
    pub bad_arguments: usize,
    /// Signatures that are right but not declared.
    pub completeness: Completeness,
    /// Checks that could not be done, and why.
    pub notes: Vec<String>,
    /// The same of the gradient ops that are derived from the op's expression.
    pub derived: Vec<Report>,
}

impl Report {
    /// Whether it looked everywhere: signatures on every mesh, derivatives of both orders, bad arguments, and no right signature is
    /// undeclared. A test of an op that should have all of them asserts it beside `conformance(op)?`: an op whose samples are too small
    /// for a mesh, or whose gradient was forgotten, conforms too.
    #[must_use]
    pub fn is_thorough(&self) -> bool {
        let everywhere = !self.meshes.is_empty() && self.meshes.iter().all(|m| m.signatures > 0);
        everywhere
            && self.first > 0
            && self.second > 0
            && self.bad_arguments > 0
            && self.completeness.undeclared.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: conforms on {} samples", self.op, self.samples)?;
        for m in &self.meshes {
            let MeshReport { mesh, signatures, not_chosen, mixed, backward } = m;
            let mesh = format!("{mesh:?}");
            writeln!(
                f,
                "  mesh {mesh:<6} {signatures:4} signatures ({not_chosen} not chosen), {mixed:3} random layouts, {backward:4} with gradients"
            )?;
        }
        writeln!(f, "  {} cases with infinities, NaN and zeros", self.special)?;
        writeln!(f, "  {} first and {} second derivatives", self.first, self.second)?;
        writeln!(f, "  {} calls with bad arguments", self.bad_arguments)?;
        write!(f, "{}", self.completeness)?;
        self.notes.iter().try_for_each(|n| writeln!(f, "  {n}"))?;
        self.derived.iter().try_for_each(|d| write!(f, "{d}"))
    }
}
