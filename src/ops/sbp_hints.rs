//! Layouts of a call, for rules over all axes of a mesh.

use crate::sbp::NdSbp;

/// Layouts that a call has and is asked for, for rules that list or take its signature ([`OpDef::nd_infer`](super::OpDef::nd_infer),
/// [`OpDef::nd_choose`](super::OpDef::nd_choose)).
///
/// All of it is part of the key of a plan, so a rule may depend on all of it, and on nothing else that can change. It is the same on every
/// rank.
#[derive(Clone, Copy, Debug)]
pub struct SbpHints<'a> {
    /// The present nd-SBP of each input; none of one that was left out.
    pub inputs: &'a [Option<NdSbp>],
    /// The nd-SBP that output 0 is to have in the end, if one is said: by [`with_sbp`](crate::with_sbp), by [`pin_sbp`](crate::pin_sbp), or
    /// by the tensor that the call writes in place.
    pub output: Option<&'a NdSbp>,
    /// Whether inputs are to stay as they are where a signature takes them so ([`keep_layouts`](crate::keep_layouts)).
    pub keep: bool,
}
