//! A question to the choice: an op with its inputs, their layouts, and what is asked of it. Reads and writes the rows of
//! `tests/data/choice.txt`.

use oflow::boxing::{Candidate, Choice, ChoiceInput, candidates, choose};
use oflow::ops::{InferCtx, NdSignature, Op, TensorType, find};
use oflow::placement::{Device, Placement};
use oflow::sbp::{NdSbp, check_layout};
use oflow::testing::Sample;
use oflow::{Error, Result};

/// One call.
pub struct Question {
    pub op: &'static Op,
    /// Inputs and attributes.
    pub sample: Sample,
    pub mesh: Placement,
    /// nd-SBP of each input.
    pub sbps: Vec<Option<NdSbp>>,
    /// Which inputs want a gradient.
    pub needs_grad: Vec<bool>,
    /// The input that the output is written into.
    pub in_place: Option<usize>,
    /// nd-SBP that output 0 is to have.
    pub request: Option<NdSbp>,
}

pub fn mesh_of(dims: &[usize]) -> Placement {
    Placement::new(Device::Cpu, &(0..dims.iter().product()).collect::<Vec<_>>(), dims).unwrap()
}

/// Splits at separators that stand outside brackets.
fn split(s: &str, at: char) -> Vec<&str> {
    let mut depth = 0;
    s.split(|c: char| {
        depth += i32::from(c == '[' || c == '(') - i32::from(c == ']' || c == ')');
        depth == 0 && c == at
    })
    .map(str::trim)
    .filter(|p| !p.is_empty())
    .collect()
}

impl Question {
    /// Reads `matmul f32[8,4] [S(0)], f32[4,6] [B] grad; transpose_b=false on 2,2 asking [B, B]`. `grad` after an input:
    /// it wants a gradient; `in place`: the output is written into it; `-` stands for an input that is not given.
    pub fn parse(text: &str) -> Question {
        let (name, rest) = text.trim().split_once(' ').unwrap_or_else(|| panic!("'{text}' has no inputs"));
        let op = find(name).unwrap_or_else(|e| panic!("{text}: {e}"));
        let (rest, request) = match rest.rsplit_once(" asking ") {
            Some((rest, r)) => (rest, Some(r.parse().unwrap_or_else(|e| panic!("{text}: {e}")))),
            None => (rest, None),
        };
        let (rest, mesh) = rest.rsplit_once(" on ").unwrap_or_else(|| panic!("'{text}' has no mesh"));
        let dims: Vec<usize> = mesh.split(',').map(|n| n.trim().parse().expect(text)).collect();
        let (ins, attrs) = rest.split_once(';').unwrap_or((rest, ""));
        let (mut types, mut sbps, mut needs_grad, mut in_place) = (vec![], vec![], vec![], None);
        for (i, t) in split(ins, ',').into_iter().enumerate() {
            let (t, grad) = t.strip_suffix(" grad").map_or((t, false), |t| (t, true));
            let t = t.strip_suffix(" in place").map_or(t, |t| {
                in_place = Some(i);
                t
            });
            needs_grad.push(grad);
            match t.split_once("] ") {
                Some((ty, sbp)) => {
                    types.push(format!("{}]", ty.replace(' ', "")));
                    sbps.push(Some(sbp.parse().unwrap_or_else(|e| panic!("{text}: {e}"))));
                }
                None => {
                    types.push("-".into());
                    sbps.push(None);
                }
            }
        }
        let sample =
            Sample::parse(op, &format!("{}; {attrs}", types.join(" "))).unwrap_or_else(|e| panic!("{text}: {e}"));
        Question { op, sample, mesh: mesh_of(&dims), sbps, needs_grad, in_place, request }
    }

    /// Asks something of the call.
    pub fn ask<T>(&self, f: impl FnOnce(&ChoiceInput<'_>) -> Result<T>) -> Result<T> {
        let (attrs, runtime) = self.sample.attributes(self.op)?;
        let kinds: Vec<_> = runtime.iter().map(|s| s.kind()).collect();
        let types = self.sample.types();
        for (t, s) in types.iter().zip(&self.sbps) {
            if let (Some(t), Some(s)) = (t, s) {
                check_layout(&t.shape, t.dtype, &self.mesh, s)?;
            }
        }
        let infer = InferCtx { op: self.op, inputs: &types, attrs: &attrs, runtime_kinds: &kinds };
        let outs = self.op.infer(&infer)?;
        let mutable = |i: usize| self.op.sig.mutates(i);
        let fixed: Vec<bool> = (0..types.len()).map(|i| mutable(i) || self.in_place == Some(i)).collect();
        f(&ChoiceInput {
            op: self.op,
            infer: &infer,
            outs: &outs,
            placement: &self.mesh,
            sbps: &self.sbps,
            needs_grad: &self.needs_grad,
            fixed_inputs: &fixed,
            given_out: self.in_place.and_then(|i| self.sbps[i].as_ref()),
            request: self.request.as_ref(),
            keep: false,
        })
    }

    pub fn choose(&self) -> Result<NdSignature> {
        self.choice().map(|c| c.sig)
    }

    pub fn choice(&self) -> Result<Choice> {
        self.ask(choose)
    }

    /// What the op's own rule takes, if it has one and that one takes anything.
    pub fn taken(&self) -> Result<Option<NdSignature>> {
        self.ask(|c| c.op.nd_choose.as_ref().map_or(Ok(None), |rule| rule(c.infer, c.placement, &c.hints())))
    }

    pub fn candidates(&self) -> Result<Vec<Candidate>> {
        self.ask(|c| candidates(c)?.collect())
    }

    pub fn outs(&self) -> Result<Vec<TensorType>> {
        self.sample.infer(self.op)
    }
}

/// `[S(0)], [B] -> [S(0)] (lowered)`, or the error's sentence.
pub fn answer(sig: &Result<NdSignature, Error>) -> String {
    match sig {
        Err(e) => format!("error: {}", e.message()),
        Ok(s) => s.to_string(),
    }
}
