//! Deduces from a declaration and the types of a call's inputs: logical outputs, 1-d signatures, physical attributes.

use super::attr::{AttrValue, Attrs};
use super::constraint::DTypeClass;
use super::def::{DTypeRule, OpDef, SbpRule, ShapeRule};
use super::grad::{Grad, GradArg};
use super::infer::{InferCtx, LocalizeCtx, TensorType, broadcast_shapes};
use super::signature::{OpSignature, OutputCount};
use crate::error::{Error, Result};
use crate::sbp::{Sbp, Signature, elementwise_signatures};
use oflow_kernels::expr::{Class, Expr, common_dtype};
use oflow_kernels::{DType, DTypeKind, Dims, KernelError, Scalar, ShardBox};
use smallvec::SmallVec;

/// The dtype in which bools are numbers.
fn whole(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::I64 } else { dtype }
}

/// More outputs than an attribute may ask for.
const MOST_OUTPUTS: i64 = 4096;

impl OpDef {
    /// Checks inputs against the grammar, then infers the logical outputs.
    ///
    /// # Errors
    /// Logical ones only: the same on every rank.
    pub fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[TensorType; 2]>> {
        self.check_inputs(ctx)?;
        self.check_attrs(ctx)?;
        if let Some(check) = &self.check {
            check(ctx)?;
        }
        let made = match self.sig.outputs_vary() {
            true => self.outputs_made(ctx)?,
            false => None,
        };
        let n = made.as_ref().map_or(self.sig.outputs.len(), |m| m.len());
        let shapes: SmallVec<[Dims; 2]> = match &self.shape {
            // Of an op without inputs: one element.
            ShapeRule::SameAsInput if self.sig.inputs.is_empty() => SmallVec::from_elem(Dims::from_slice(&[1]), n),
            ShapeRule::SameAsInput => {
                (0..n).map(|o| self.like(ctx, made.as_deref(), 0, o).map(|t| t.shape.clone())).collect::<Result<_>>()?
            }
            ShapeRule::Broadcast => {
                SmallVec::from_elem(broadcast_shapes(ctx.present().map(|t| t.shape.as_slice()).collect::<Vec<_>>())?, n)
            }
            ShapeRule::Attr => SmallVec::from_elem(ctx.sizes("shape")?, n),
            ShapeRule::Text(text) => text.infer(ctx)?,
            ShapeRule::Fn(f) => f(ctx)?,
        };
        // An op that works on any number of outputs (split) says so by its shape rule.
        if made.is_some() && shapes.len() != n {
            let (rule, says) = (shapes.len(), &self.sig);
            return Err(Error::registry(format!("the shape rule gives {rule} outputs, the call of {says} makes {n}")));
        }
        let n = shapes.len();
        let dtypes: SmallVec<[DType; 2]> = match &self.dtype {
            DTypeRule::Promote => SmallVec::from_elem(promote(ctx)?, n),
            DTypeRule::PromoteFloat => {
                let d = promote(ctx)?;
                SmallVec::from_elem(if d.has_gradients() { d } else { DType::F32 }, n)
            }
            DTypeRule::PromoteInt => SmallVec::from_elem(whole(promote(ctx)?), n),
            DTypeRule::Input(i) => {
                (0..n).map(|o| self.like(ctx, made.as_deref(), *i, o).map(|t| t.dtype)).collect::<Result<_>>()?
            }
            DTypeRule::Attr => SmallVec::from_elem(ctx.dtype_attr("dtype")?, n),
            DTypeRule::Fixed(v) => match &made {
                Some(made) => made.iter().filter_map(|o| v.get(*o).copied()).collect(),
                None => v.iter().copied().collect(),
            },
            DTypeRule::Fn(f) => f(ctx)?,
        };
        if let Some(expr) = &self.expr {
            // The kernel of an expression writes numbers.
            let moves = matches!(expr.as_ref(), Expr::Input(_));
            let same = |d: DType| ctx.present().all(|t| t.dtype == d);
            let able = |d: DType| {
                d.is_real() || d.is_complex() || self.traits.stored || (moves && (d.is_builtin() || same(d)))
            };
            if let Some(d) = dtypes.iter().find(|d| !able(**d)) {
                return Err(not_made(*d));
            }
            // Ranks without elements make no kernel: what it would refuse is refused here, on all ranks.
            let class = Class::of(self.compute_dtype(ctx, dtypes[0])?.storage());
            let refused = |e: KernelError| Error::dtype(e.to_string()).help("convert an input with `.cast(dtype)`");
            expr.check_class(class, ctx.inputs.len()).map_err(refused)?;
        }
        self.check_complex_numbers(ctx, &dtypes)?;
        self.check_factor_sizes(ctx, &shapes)?;
        shapes.into_iter().zip(dtypes).map(|(shape, dtype)| TensorType::checked(&shape, dtype)).collect()
    }

    /// Refuses complex numbers as runtime attributes where nothing complex is computed, and as any attribute of a library's op: their
    /// imaginary part would be lost.
    fn check_complex_numbers(&self, ctx: &InferCtx<'_>, outs: &[DType]) -> Result<()> {
        let complex = |v: &AttrValue| match v {
            AttrValue::List(all) => all.iter().any(|v| matches!(v, AttrValue::Scalar(Scalar::Complex(..)))),
            v => matches!(v, AttrValue::Scalar(Scalar::Complex(..))),
        };
        if self.library.is_some()
            && let Some(i) = ctx.attrs.iter().position(complex)
        {
            let name = self.sig.attrs.get(i).map_or("", |a| a.name.as_str());
            return Err(Error::dtype(format!(
                "'{name}' is a complex number, which an op of a library cannot be given"
            ))
            .help("give its real and its imaginary part as two attributes"));
        }
        if !ctx.runtime_kinds.contains(&DTypeKind::Complex) {
            return Ok(());
        }
        let mut dtypes = ctx.present().map(|t| t.dtype).chain(outs.iter().copied());
        // An expression of complex numbers computes in the dtype to which the number promotes.
        let computes = self.expr.is_some()
            && self.sig.inputs.iter().any(|i| i.dtypes.contains(DType::C64))
            && !matches!(self.dtype, DTypeRule::Input(_) | DTypeRule::Attr | DTypeRule::Fn(_));
        if self.library.is_some() || !(computes || dtypes.any(|d| d.is_complex())) {
            return Err(Error::dtype("a complex number is given where real ones are computed")
                .help("give a real number, or a complex tensor: `.cast(DType::C64)`"));
        }
        Ok(())
    }

    /// The outputs that a call makes, by their places in the declaration, where the declaration says it.
    ///
    /// # Errors
    /// An attribute asks for a number of outputs that no call can have.
    pub(crate) fn outputs_made(&self, ctx: &InferCtx<'_>) -> Result<Option<SmallVec<[usize; 2]>>> {
        for d in &self.sig.output_defs {
            if let OutputCount::Each(s) = &d.count
                && let Some(AttrValue::Int(n)) = self.sig.attr(s).and_then(|i| ctx.attrs.get(i))
                && !(0..=MOST_OUTPUTS).contains(n)
            {
                return Err(Error::argument(format!(
                    "attribute '{s}' asks for {n} outputs, 0 to {MOST_OUTPUTS} are possible"
                )));
            }
        }
        let given: SmallVec<[bool; 8]> = ctx.inputs.iter().map(|t| t.is_some()).collect();
        Ok(self.sig.outputs_made(ctx.attrs, &given))
    }

    /// The input that output `o` of a call is like by a rule that names input `i`: where both the input and the output stand for
    /// several tensors, as many, it is the one with the same place.
    fn like<'a>(&self, ctx: &InferCtx<'a>, made: Option<&[usize]>, i: usize, o: usize) -> Result<&'a TensorType> {
        let def = made.and_then(|m| m.get(o));
        let each = def.and_then(|d| match &self.sig.output_defs[*d].count {
            OutputCount::Each(s) => self.sig.input(s),
            _ => None,
        });
        match (each, def) {
            (Some(xs), Some(def)) => {
                let first = made.and_then(|m| m.iter().position(|d| d == def)).unwrap_or(0);
                ctx.input(xs + (o - first) * self.sig.repeating())
            }
            _ => ctx.input(i),
        }
    }

    /// Checks that the attributes are those of the declaration.
    fn check_attrs(&self, ctx: &InferCtx<'_>) -> Result<()> {
        let (attrs, runtime) = (self.sig.attrs.len(), self.sig.runtime.len());
        if ctx.attrs.len() != attrs || ctx.runtime_kinds.len() != runtime {
            return Err(Error::argument(format!(
                "takes {attrs} plan attributes and {runtime} runtime attributes, {} and {} given",
                ctx.attrs.len(),
                ctx.runtime_kinds.len()
            )));
        }
        for (def, given) in self.sig.attrs.iter().zip(ctx.attrs) {
            if !def.holds(given) {
                return Err(Error::argument(format!(
                    "attribute '{}' must be {}, not {given}",
                    def.name,
                    def.kind.name()
                )));
            }
        }
        Ok(())
    }

    /// The dtype that an elementwise op computes in, whatever the dtype of the output that it writes: that of PyTorch's
    /// promotion over inputs and numbers where the op promotes, else the one to which inputs and output promote.
    pub fn compute_dtype(&self, ctx: &InferCtx<'_>, out: DType) -> Result<DType> {
        match &self.dtype {
            DTypeRule::Promote | DTypeRule::Fixed(_) => promote(ctx),
            DTypeRule::PromoteFloat => promote(ctx).map(|d| if d.has_gradients() { d } else { DType::F32 }),
            DTypeRule::PromoteInt => promote(ctx).map(whole),
            DTypeRule::Input(_) | DTypeRule::Attr | DTypeRule::Fn(_) => {
                let stored = |d: DType| d.storage().dtype();
                let inputs: SmallVec<[DType; 4]> = ctx.present().map(|t| stored(t.dtype)).collect();
                common_dtype(&inputs, stored(out)).map_err(not_promoted)
            }
        }
    }

    fn check_inputs(&self, ctx: &InferCtx<'_>) -> Result<()> {
        let defs = &self.sig.inputs;
        if given_none(&self.sig) && ctx.inputs.is_empty() {
            return Ok(());
        }
        let (given, repeating) = (ctx.inputs.len(), self.sig.repeating());
        if given < defs.len() - repeating || (repeating == 0 && given > defs.len()) {
            return Err(Error::argument(format!("takes {} inputs, {given} given", defs.len())));
        }
        if repeating > 0 && (given < defs.len() || !(given - defs.len()).is_multiple_of(repeating)) {
            let names: Vec<&str> = defs[defs.len() - repeating..].iter().map(|d| d.name.as_str()).collect();
            return Err(Error::argument(match names.as_slice() {
                [name] => format!("needs at least one tensor in '{name}'"),
                _ => format!("needs at least one tensor each for {}, and as many of each", names.join(", ")),
            }));
        }
        for (i, t) in ctx.inputs.iter().enumerate() {
            let Some(d) = self.sig.input_def(i) else { continue };
            match t {
                None if !d.optional => return Err(Error::argument(format!("input '{}' is missing", d.name))),
                Some(t) if !d.dtypes.contains(t.dtype) => {
                    let help = match t.dtype.is_builtin() {
                        true if t.dtype.is_complex() => {
                            "it has no meaning for complex numbers, or no kernel: take `real()`, `imag()`, `abs()` or `view_as_real()`"
                        }
                        true if !t.dtype.is_real() => {
                            "8-bit floats are stored and moved: compute with floats, of `.cast(dtype)`, and cast the result"
                        }
                        true => "convert it with `.cast(dtype)`",
                        false => "a registered dtype is moved, not computed with: convert it by an op of your own",
                    };
                    let wanted = d.dtypes.to_string().replace(DTypeClass::Number.name(), "real or complex");
                    return Err(
                        Error::dtype(format!("input '{}' must be {wanted}, not {}", d.name, t.dtype)).help(help)
                    );
                }
                Some(t) if !d.ranks.contains(t.shape.len()) => {
                    return Err(Error::shape(format!("input '{}' must have {}, not {t}", d.name, d.ranks.words()))
                        .help(format!("it has {} dims; `reshape` gives it others", t.shape.len())));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The 1-d signatures for these logical inputs and outputs, in declared order, all-B first.
    ///
    /// # Errors
    /// When a row of the declaration splits a dim that a tensor of the call does not have.
    pub fn signatures_1d(&self, ctx: &InferCtx<'_>, outs: &[TensorType]) -> Result<Vec<Signature>> {
        let mut found = match &self.sbp {
            SbpRule::AllB => vec![],
            SbpRule::Elementwise => {
                let expr = self
                    .expr
                    .as_ref()
                    .ok_or_else(|| Error::registry(format!("{} has no expression", self.sig.name)))?;
                let ins: Vec<(&[usize], DType)> = ctx.present().map(|t| (t.shape.as_slice(), t.dtype)).collect();
                elementwise_signatures(expr, &ins, (&outs[0].shape, outs[0].dtype))
            }
            SbpRule::Factors(text) => {
                let ins: Vec<Option<&[usize]>> =
                    ctx.inputs.iter().map(|t| Some(t.as_ref()?.shape.as_slice())).collect();
                let os: Vec<&[usize]> = outs.iter().map(|t| t.shape.as_slice()).collect();
                self.factor_rule(text)?.repeated(ins.len(), self.sig.repeating()).signatures(&ins, &os)
            }
            SbpRule::Signatures(rows) => rows.iter().map(|r| r.parse()).collect::<Result<_>>()?,
            SbpRule::Fn(f) => f(ctx)?,
        };
        for more in &self.sbp_added {
            found.extend(more(ctx)?);
        }
        for (i, l) in self.lowerings.iter().enumerate() {
            found.extend((l.sbp)(ctx)?.into_iter().map(|s| s.lowered(i as u8)));
        }
        // First, because ties go to the first: what is whole stays whole where splitting it costs nothing either.
        found.insert(0, Signature::broadcast(ctx.inputs.len(), outs.len()));
        // What cannot be reduced is not P (bool has no sum); absent inputs are B; drop repeats.
        let legal = |s: &Signature| {
            let bad = |d: DType, s: Sbp| matches!(s, Sbp::Partial(op) if !d.reduces(op));
            !(ctx.inputs.iter().zip(&s.inputs).any(|(t, s)| t.as_ref().is_some_and(|t| bad(t.dtype, *s)))
                || outs.iter().zip(&s.outputs).any(|(t, s)| bad(t.dtype, *s)))
        };
        let mut unique: Vec<Signature> = Vec::with_capacity(found.len());
        for mut s in found {
            for (t, s) in ctx.inputs.iter().zip(s.inputs.iter_mut()) {
                if t.is_none() {
                    *s = Sbp::Broadcast;
                }
            }
            if legal(&s) && !unique.iter().any(|u| u.inputs == s.inputs && u.outputs == s.outputs) {
                unique.push(s);
            }
        }
        for s in &unique {
            let row = || format!("the signature {s}");
            let split = |list: &[Sbp], i: usize| list.get(i).and_then(|s| s.split_dim());
            self.check_dims(ctx, outs, &row, |i| split(&s.inputs, i), |o| split(&s.outputs, o))?;
        }
        Ok(unique)
    }

    /// Checks that a row of the sharding rule splits only dims that the tensors have; the largest one split of each input
    /// and output is given.
    pub(crate) fn check_dims(
        &self,
        ctx: &InferCtx<'_>,
        outs: &[TensorType],
        row: &dyn Fn() -> String,
        input: impl Fn(usize) -> Option<usize>,
        output: impl Fn(usize) -> Option<usize>,
    ) -> Result<()> {
        let ins = ctx.inputs.iter().enumerate().filter_map(|(i, t)| Some((true, i, t.as_ref()?, input(i)?)));
        let outs = outs.iter().enumerate().filter_map(|(o, t)| Some((false, o, t, output(o)?)));
        match ins.chain(outs).find(|(.., t, dim)| *dim >= t.shape.len()) {
            None => Ok(()),
            Some((is_input, i, t, dim)) => Err(Error::registry(format!(
                "{} declares {}, but {} is {t}, which has no dim {dim}",
                self.sig.name,
                row(),
                self.part(is_input, i)
            ))
            .help("a rule that depends on the tensors' dims is given as a function, with `get_sbp`")),
        }
    }

    /// `input 'x'`, `output 'y'`.
    pub(super) fn part(&self, is_input: bool, i: usize) -> String {
        let name = match is_input {
            true => self.sig.input_def(i).map(|d| d.name.as_str()),
            false => self.sig.outputs.get(i).map(|name| name.as_str()),
        };
        let what = if is_input { "input" } else { "output" };
        name.map_or_else(|| format!("{what} {i}"), |n| format!("{what} '{n}'"))
    }

    /// Checks what a declaration alone shows of its sharding rule: that its text can be read and is of as many inputs and
    /// outputs as the op has.
    pub(super) fn check_rule(&self) -> Result<()> {
        let cannot = !self.lowerings.is_empty() || self.view.is_some() || self.layout.is_some();
        if self.length.is_some() && (cannot || self.sig.inputs.iter().any(|i| i.mutable)) {
            return Err(Error::registry(format!(
                "op {}: with a length that depends on values it can have no lowering, view or mutable input",
                self.sig.name
            )));
        }
        if self.nd_infer.is_some() && self.nd_extra.is_some() {
            return Err(Error::registry(format!("op {}: it has nd_infer and nd_extra", self.sig.name))
                .help("nd_infer replaces everything: list all signatures there"));
        }
        let by_inputs = matches!(self.dtype, DTypeRule::Promote | DTypeRule::PromoteFloat | DTypeRule::PromoteInt);
        if self.sig.inputs.is_empty() && !self.sig.outputs.is_empty() && by_inputs {
            return Err(Error::registry(format!(
                "op {} has no inputs from which its outputs have a dtype",
                self.sig.name
            ))
            .help("say it with `dtype`"));
        }
        let read = |e: Error| Error::registry(format!("op {}: {}", self.sig.name, e.message()));
        let (ins, outs) = (self.sig.inputs.len(), self.sig.outputs.len());
        // A list of any length is known by the call; outputs may depend on attributes.
        let any = (self.sig.repeating() > 0, self.sig.outputs_vary() || matches!(self.shape, ShapeRule::Fn(_)));
        let counts = |what: String, given: (usize, usize)| {
            if (any.0 || given.0 == ins) && (any.1 || given.1 == outs) {
                return Ok(());
            }
            let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
            let has = format!("{} and {}", count(ins, "input"), count(outs, "output"));
            Err(Error::registry(format!("op {} declares {what}, but it has {has}", self.sig.name)))
        };
        match &self.sbp {
            SbpRule::Signatures(rows) => rows.iter().try_for_each(|row| {
                let s: Signature = row.parse().map_err(read)?;
                counts(format!("the signature {s}"), (s.inputs.len(), s.outputs.len()))
            }),
            SbpRule::Factors(text) => {
                let rule = self.factor_rule(text).map_err(read)?;
                counts(format!("the factors {text}"), rule.counts())
            }
            SbpRule::AllB | SbpRule::Elementwise | SbpRule::Fn(_) => Ok(()),
        }?;
        if !self.linear.is_empty() && !matches!(self.sbp, SbpRule::Factors(_)) {
            return Err(Error::registry(format!(
                "op {}: `linear_in` goes with `factors`; a list of signatures says itself where P(sum) is taken",
                self.sig.name
            )));
        }
        Ok(())
    }

    /// Checks that a gradient given as data names inputs, outputs and attributes that the op has: a wire that leads nowhere would
    /// leave a gradient out silently.
    pub(super) fn check_wires(&self, grad: &Grad) -> Result<()> {
        let Grad::Wiring(wires) = grad else { return Ok(()) };
        let bad = |why: String| Err(Error::registry(format!("op {}: its gradient is wired to {why}", self.sig.name)));
        let input = |i: usize| self.sig.input_def(i).is_some();
        for w in wires {
            if !input(w.input) {
                return bad(format!("input {}, which it does not have", w.input));
            }
            for a in &w.args {
                // The number of outputs may depend on attributes.
                let there = match a {
                    GradArg::Input(i) => input(*i),
                    GradArg::Output(i) | GradArg::OutGrad(i) => {
                        *i < self.sig.outputs.len() || matches!(self.shape, ShapeRule::Fn(_))
                    }
                };
                if !there {
                    return bad(format!("{a:?}, which it does not have"));
                }
            }
            if let Some(a) = w.attrs.iter().find(|a| self.sig.attr(a).is_none() && self.sig.runtime_attr(a).is_none()) {
                return bad(format!("the attribute '{a}', which it does not have"));
            }
        }
        Ok(())
    }

    /// Physical plan attributes for one rank's boxes.
    pub fn localized(&self, ctx: &InferCtx<'_>, ins: &[Option<ShardBox>], outs: &[ShardBox]) -> Result<Attrs> {
        match &self.localize {
            None => Ok(ctx.attrs.clone()),
            Some(f) => f(&LocalizeCtx { logical: ctx, inputs: ins, outputs: outs }),
        }
    }
}

/// Whether a call may have no inputs although the op takes some: `xs?...`.
fn given_none(sig: &OpSignature) -> bool {
    matches!(sig.inputs.as_slice(), [one] if one.variadic && one.optional)
}

/// The dtype to which two promote.
///
/// # Errors
/// For a registered dtype with any other.
pub(crate) fn promoted(a: DType, b: DType) -> Result<DType> {
    a.promote(b).map_err(not_promoted)
}

/// The error of an op whose result cannot be of a complex dtype, an 8-bit float or a registered dtype.
pub(crate) fn not_made(dtype: DType) -> Error {
    if dtype.is_complex() {
        return Error::dtype(format!("the result cannot be {dtype}: this function makes real numbers"))
            .help("make real numbers, then `.cast(dtype)`, or `complex(re, im)` of two");
    }
    if dtype.is_builtin() {
        return Error::dtype(format!("the result cannot be {dtype}: oflow stores and moves 8-bit floats"))
            .help("make floats, then `.cast(dtype)`");
    }
    Error::dtype(format!("the result cannot be {dtype}: oflow makes no elements of a registered dtype"))
        .help("make it by an op of your own, or of bytes with `from_bytes`")
}

fn not_promoted(e: KernelError) -> Error {
    Error::dtype(e.0)
        .help("convert one of them first: `.cast(dtype)` for built-in dtypes, an op of your own for registered ones")
}

/// Refuses a number of a higher kind than the tensors it is for: a fraction for integers, or a complex number for real ones. It would
/// change the dtype of the result, or lose its fraction or imaginary part.
pub(crate) fn scalar_of_kind(name: &str, s: Scalar, tensors: impl IntoIterator<Item = DType>) -> Result<()> {
    let Some(tensors) = tensors.into_iter().max_by_key(|d| d.kind()) else { return Ok(()) };
    let wanted = match (tensors.kind(), s.kind()) {
        (DTypeKind::Bool | DTypeKind::Int, DTypeKind::Float | DTypeKind::Complex) => "an integer",
        (DTypeKind::Float, DTypeKind::Complex) => "a real number",
        _ => return Ok(()),
    };
    Err(Error::dtype(format!("expected {wanted} for {name}, because the tensors are {tensors}, got {s}"))
        .help("`cast` the tensors to a dtype that has such numbers"))
}

/// PyTorch's promotion of tensors: those with dims, then 0-dim tensors of a higher kind. Floats with a complex number of no dims become
/// complex numbers of their own size.
pub(crate) fn promote_types<'a>(types: impl Iterator<Item = &'a TensorType> + Clone) -> Result<DType> {
    let fold = |zero_dim: bool| {
        let mut dtypes = types.clone().filter(|t| t.shape.is_empty() == zero_dim).map(|t| t.dtype);
        dtypes.next().map(|first| dtypes.try_fold(first, promoted)).transpose()
    };
    match (fold(false)?, fold(true)?) {
        (Some(d), Some(z)) if z.is_complex() && d.is_float() => Ok(d.complex()),
        (Some(d), Some(z)) if z.kind() > d.kind() => promoted(z, d),
        (Some(d), _) | (None, Some(d)) => Ok(d),
        (None, None) => Err(Error::dtype("no input to take the dtype from")),
    }
}

/// The dtype of the result of a call: that of its tensors, then scalars of a higher kind.
pub(super) fn promote(ctx: &InferCtx<'_>) -> Result<DType> {
    let mut d = promote_types(ctx.present())?;
    let kind = ctx.runtime_kinds.iter().copied().max().unwrap_or(DTypeKind::Bool);
    d = d.promote_scalar(kind);
    Ok(d)
}
