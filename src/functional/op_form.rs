//! How the parameters of a function become inputs and attributes of the op that it is: found once for each function, so that a
//! call by name looks up no name.

use super::bind::{Arg, Bound};
use super::draw::drawn;
use crate::error::{Error, Result};
use crate::interpreter::Call;
use crate::ops::{
    AttrDef, AttrKind, AttrValue, Attrs, FnReturn, FnSig, Op, OutputCount, OutputDef, ParamKind, RuntimeAttrs, find,
    generation, resolve_attrs,
};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::SmallVec;
use std::sync::OnceLock;

/// Meaning of one output of a declaration in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputSlot {
    /// One tensor, always there.
    One,
    /// An optional output that this call does not make.
    Absent,
    /// All tensors that the outputs before it leave over.
    Several,
}

/// The op of a function, and which parameter each of its attributes is; none has its default.
pub(super) struct OpForm {
    op: &'static Op,
    /// The generation of the registry, for ops of other crates.
    generation: u64,
    attrs: Vec<Option<usize>>,
    runtime: Vec<Option<usize>>,
}

impl OpForm {
    /// Shows `f` how the function of a signature calls the op of that name; `known` keeps it.
    pub(super) fn with<R>(
        known: &OnceLock<OpForm>,
        sig: &FnSig,
        op: &str,
        f: impl FnOnce(&OpForm) -> Result<R>,
    ) -> Result<R> {
        if let Some(form) = known.get()
            && (form.op.is_builtin() || form.generation == generation())
        {
            return f(form);
        }
        let form = OpForm::new(op, sig)?;
        match known.get() {
            // Of an op that is not the same any more.
            Some(_) => f(&form),
            None => f(known.get_or_init(|| form)),
        }
    }

    fn new(op: &str, sig: &FnSig) -> Result<OpForm> {
        let (op, generation) = (find(op)?, generation());
        let is_attr = |p: &&crate::ops::FnParam| matches!(p.kind, ParamKind::Attr(_));
        for p in sig.params.iter().filter(is_attr) {
            if op.sig.attr(&p.name).is_none() && op.sig.runtime_attr(&p.name).is_none() {
                // The error of an unknown name.
                resolve_attrs(op, &[(&p.name, false.into())])?;
            }
        }
        let of = |a: &AttrDef| {
            let named = |p: &crate::ops::FnParam| p.name == a.name && matches!(p.kind, ParamKind::Attr(_));
            sig.params.iter().position(named)
        };
        let (attrs, runtime) = (op.sig.attrs.iter().map(of).collect(), op.sig.runtime.iter().map(of).collect());
        Ok(OpForm { op, generation, attrs, runtime })
    }

    /// The value of an attribute, which is taken out of the arguments.
    fn value(&self, bound: &mut Bound, from: Option<usize>, a: &AttrDef) -> Result<AttrValue> {
        let given = from.and_then(|i| match bound.args.get_mut(i).and_then(Option::take) {
            Some(Arg::Attr(v)) => Some(v),
            _ => None,
        });
        match given {
            Some(v) => a.accept(v),
            None => {
                let missing = || Error::argument(format!("{} needs the attribute '{}'", self.op.sig.name, a.name));
                a.default.clone().ok_or_else(missing)
            }
        }
    }

    /// How many tensors each output of the declaration stands for in a call with these arguments. None where every output is always
    /// made, once.
    pub(super) fn outputs(&self, sig: &FnSig, bound: &Bound) -> Result<Option<Vec<OutputSlot>>> {
        let op = self.op;
        if !op.sig.outputs_vary() {
            return Ok(None);
        }
        let mut bound = Bound { args: bound.args.clone(), site: bound.site };
        let given: Vec<bool> = self.tensors(sig, &bound).iter().map(Option::is_some).collect();
        let pairs = op.sig.attrs.iter().zip(&self.attrs);
        let attrs: Attrs = pairs.map(|(a, from)| self.value(&mut bound, *from, a)).collect::<Result<_>>()?;
        let made = op.sig.outputs_made(&attrs, &given);
        let slot = |(o, d): (usize, &OutputDef)| {
            let n = made.as_ref().map(|made| made.iter().filter(|m| **m == o).count());
            match d.count {
                OutputCount::One => OutputSlot::One,
                OutputCount::If(_) if n == Some(0) => OutputSlot::Absent,
                OutputCount::If(_) => OutputSlot::One,
                OutputCount::Each(_) | OutputCount::ByShapes => OutputSlot::Several,
            }
        };
        Ok(Some(op.sig.output_defs.iter().enumerate().map(slot).collect()))
    }

    /// The tensors of a call, in the order of the op's inputs.
    fn tensors<'a>(&self, sig: &FnSig, bound: &'a Bound) -> SmallVec<[Option<&'a Tensor>; 4]> {
        let mut inputs = SmallVec::new();
        for (p, a) in sig.params.iter().zip(&bound.args) {
            match (a, p.kind) {
                (Some(Arg::Tensor(t)), _) => inputs.push(Some(t)),
                (Some(Arg::Tensors(v)), _) => inputs.extend(v.iter().map(Some)),
                (None, ParamKind::Tensor) => inputs.push(None),
                _ => {}
            }
        }
        inputs
    }

    /// Calls the op. In place the first tensor gets the result, and is returned.
    pub(super) fn call(&self, sig: &FnSig, mut bound: Bound, in_place: bool) -> Result<Vec<Tensor>> {
        let op = self.op;
        let mut attrs = Attrs::new();
        for (a, from) in op.sig.attrs.iter().zip(&self.attrs) {
            attrs.push(self.value(&mut bound, *from, a)?);
        }
        let mut runtime = RuntimeAttrs::new();
        for (a, from) in op.sig.runtime.iter().zip(&self.runtime) {
            let number = AttrKind::Scalar.accept(&a.name, self.value(&mut bound, *from, a)?)?.to_scalar();
            runtime.push(number.ok_or_else(|| Error::argument(format!("attribute '{}' must be a number", a.name)))?);
        }
        let inputs = self.tensors(sig, &bound);
        let mut target = None;
        for a in bound.args.iter().flatten() {
            match a {
                Arg::Target(t) => target = Some(t),
                // A generator stands for the two numbers that a random op is given.
                Arg::Generator(g) => {
                    let [seed, ordinal] = drawn(Some(g))?;
                    self.set(&mut runtime, "seed", seed);
                    self.set(&mut runtime, "ordinal", ordinal);
                }
                _ => {}
            }
        }
        let written = inputs.first().copied().flatten().filter(|_| in_place);
        let call = Call::of(op, &inputs, attrs, runtime, bound.site).target(target);
        let outs = call.given(written).run()?;
        if let Some(x) = written {
            return Ok(vec![x.clone()]);
        }
        let mut outs = outs.into_vec();
        // A function may return less than its op.
        if sig.returns == FnReturn::Tensor && op.sig.outputs.len() > 1 {
            outs.truncate(1);
        }
        Ok(outs)
    }

    fn set(&self, runtime: &mut RuntimeAttrs, name: &str, value: Scalar) {
        if let Some(i) = self.op.sig.runtime_attr(name) {
            runtime[i] = value;
        }
    }
}
