//! Calls on inputs of a dtype that the op's kernels do not take, made of other calls ([`DTypeLowering`]). Each of these is a call of its own,
//! with its plan, its boxing and its place in the graph.

use super::call::{Call, Outputs, OwnedInputs, Rewrite, Rewritten};
use super::emit::EagerEmit;
use crate::context::{inner_calls, set_autocast};
use crate::error::{Error, Result};
use crate::op;
use crate::ops::{Autocast, ByDTypeFn, DTypeLowering, InferCtx, LowerCall, Op, TensorType, Value};
use crate::tensor::Tensor;
use oflow_kernels::DTypeKind;
use smallvec::{SmallVec, smallvec};

/// Makes a call of other calls where an input has a dtype for which the op says so.
pub(super) const DTYPE_LOWERING: Rewrite = Rewrite {
    applies: |call| wanted(call).is_some(),
    rewrite: |call| {
        let Some(how) = wanted(call) else { return Ok(None) };
        let outs = lowered(call, how).map_err(|e| e.within(|| call.short()).at(call.site))?;
        Ok(Some(Rewritten::Outputs(outs)))
    },
};

/// How the call is made of others, if it is.
#[inline]
fn wanted(call: &Call<'_>) -> Option<DTypeLowering> {
    let is_for = |l: &&DTypeLowering| call.inputs.iter().flatten().any(|t| l.is_for(t.dtype()));
    call.op.dtype_lowerings.iter().find(is_for).copied()
}

fn lowered(call: &Call<'_>, how: DTypeLowering) -> Result<Outputs> {
    // Autocast leaves complex numbers and integers alone, and so what they are made of.
    let (inner, full) = (inner_calls(), set_autocast(Autocast::Off));
    let of_parts = |(re, im): (Outputs, Outputs)| -> Result<Outputs> {
        re.iter().zip(&im).map(|(re, im)| pair(call, re, im)).collect()
    };
    let mut outs = match how {
        DTypeLowering::Linear => of_parts(linear(call)?)?,
        DTypeLowering::Product(a, b) => of_parts(product(call, [a, b])?)?,
        DTypeLowering::Program(_, program) => by_program(call, program)?,
    };
    drop((inner, full));
    // In place the first result is written over the tensor, after all has been read.
    if let (Some(given), Some(out)) = (call.given, outs.first_mut()) {
        *out = Call::of(op!("copy")?, &[Some(&*out)], smallvec![], smallvec![], call.site).given(given).run1()?;
    }
    Ok(outs)
}

fn by_program(call: &Call<'_>, program: ByDTypeFn) -> Result<Outputs> {
    let runtime_kinds: SmallVec<[DTypeKind; 4]> = call.runtime.iter().map(|s| s.kind()).collect();
    if let Some(check) = &call.op.check {
        let types: SmallVec<[Option<TensorType>; 4]> =
            call.inputs.iter().map(|t| t.map(|t| TensorType::new(t.shape(), t.dtype()))).collect();
        check(&InferCtx { op: call.op, inputs: &types, attrs: &call.attrs, runtime_kinds: &runtime_kinds })?;
    }
    let mut emit = EagerEmit::new(&call.op.sig.name, call.site).with_runtime(call.runtime.clone());
    let inputs: SmallVec<[Option<Value>; 4]> = call.inputs.iter().map(|t| t.map(|t| emit.put(t.clone()))).collect();
    let lowered =
        LowerCall { op: call.op, inputs: &inputs, attrs: &call.attrs, runtime_kinds: &runtime_kinds, outputs: &[] };
    Ok(program(&mut emit, &lowered)?.into_iter().map(|v| emit.get(v)).collect())
}

fn unary(op: &'static Op, x: &Tensor, call: &Call<'_>) -> Result<Tensor> {
    Call::of(op, &[Some(x)], smallvec![], smallvec![], call.site).run1()
}

fn real(x: &Tensor, call: &Call<'_>) -> Result<Tensor> {
    unary(op!("real")?, x, call)
}

fn imag(x: &Tensor, call: &Call<'_>) -> Result<Tensor> {
    unary(op!("imag")?, x, call)
}

fn pair(call: &Call<'_>, re: &Tensor, im: &Tensor) -> Result<Tensor> {
    Call::of(op!("complex")?, &[Some(re), Some(im)], smallvec![], smallvec![], call.site).run1()
}

/// Zeros like a tensor: nothing is less than itself.
fn zeros(x: &Tensor, call: &Call<'_>) -> Result<Tensor> {
    let x = x.detach();
    let none = Call::of(op!("lt")?, &[Some(&x), Some(&x)], smallvec![], smallvec![], call.site).run1()?;
    Call::of(op!("cast")?, &[Some(&none)], smallvec![x.dtype().into()], smallvec![], call.site).run1()
}

fn again(call: &Call<'_>, inputs: &OwnedInputs) -> Result<Outputs> {
    let given: SmallVec<[Option<&Tensor>; 4]> = inputs.iter().map(Option::as_ref).collect();
    Call::of(call.op, &given, call.attrs.clone(), call.runtime.clone(), call.site).run()
}

/// Whether an input is an index: it is the same for both parts.
fn is_index(call: &Call<'_>, i: usize, t: &Tensor) -> bool {
    let takes_numbers = call.op.sig.input_def(i).is_none_or(|d| d.dtypes.contains(oflow_kernels::DType::F32));
    matches!(t.dtype().kind(), DTypeKind::Int) && !takes_numbers
}

fn linear(call: &Call<'_>) -> Result<(Outputs, Outputs)> {
    let (mut of_re, mut of_im) = (OwnedInputs::new(), OwnedInputs::new());
    for (i, t) in call.inputs.iter().enumerate() {
        let (re, im) = match t {
            None => (None, None),
            Some(t) if is_index(call, i, t) => (Some((*t).clone()), Some((*t).clone())),
            Some(t) if t.dtype().is_complex() => (Some(real(t, call)?), Some(imag(t, call)?)),
            // A real number among complex ones.
            Some(t) => {
                let to = smallvec![t.dtype().complex().into()];
                let z = Call::of(op!("cast")?, &[Some(t)], to, smallvec![], call.site).run1()?;
                (Some(real(&z, call)?), Some(imag(&z, call)?))
            }
        };
        of_re.push(re);
        of_im.push(im);
    }
    Ok((again(call, &of_re)?, again(call, &of_im)?))
}

/// The parts of `(a + ib)(c + id)` plus what is added. A real factor has no imaginary part to multiply.
fn product(call: &Call<'_>, factors: [usize; 2]) -> Result<(Outputs, Outputs)> {
    let mut split: SmallVec<[(Option<Tensor>, Option<Tensor>); 4]> = SmallVec::new();
    for t in call.inputs {
        split.push(match t {
            None => (None, None),
            Some(t) if t.dtype().is_complex() => (Some(real(t, call)?), Some(imag(t, call)?)),
            Some(t) => (Some((*t).clone()), None),
        });
    }
    // The op on part `p[0]` of the first factor and part `p[1]` of the second, with part `added` of what else there is.
    let of = |p: [bool; 2], added: Option<bool>| -> Result<Option<Outputs>> {
        let part = |i: usize, im: bool| if im { split[i].1.clone() } else { split[i].0.clone() };
        let mut inputs = OwnedInputs::new();
        for i in 0..split.len() {
            inputs.push(match factors.iter().position(|f| *f == i) {
                Some(f) => match part(i, p[f]) {
                    None => return Ok(None),
                    some => some,
                },
                // What is added is added once. An op that cannot go without it adds zeros to the other products.
                None => match (added.and_then(|im| part(i, im)), &split[i].0) {
                    (None, Some(re)) if call.op.sig.input_def(i).is_some_and(|d| !d.optional) => Some(zeros(re, call)?),
                    (some, _) => some,
                },
            });
        }
        again(call, &inputs).map(Some)
    };
    let joined = |a: Outputs, b: Option<Outputs>, op: &'static Op| -> Result<Outputs> {
        let Some(b) = b else { return Ok(a) };
        let each = a
            .iter()
            .zip(&b)
            .map(|(a, b)| Call::of(op, &[Some(a), Some(b)], smallvec![], smallvec![], call.site).run1());
        each.collect()
    };
    let missing = || Error::argument("both factors of a product must be given");
    let (re_re, im_im) = (of([false, false], Some(false))?.ok_or_else(missing)?, of([true, true], None)?);
    let re = joined(re_re, im_im, op!("sub")?)?;
    let im = match of([false, true], Some(true))? {
        Some(first) => joined(first, of([true, false], None)?, op!("add")?)?,
        None => of([true, false], Some(true))?.ok_or_else(missing)?,
    };
    Ok((re, im))
}
