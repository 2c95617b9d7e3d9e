//! Gradients of an op against finite differences on one device, in f64, or in f32 with fewer digits.

use super::layout::Value;
use super::sample::{Spec, Values};
use super::{Complaint, Sample, mix, seed};
use crate::error::{CallSite, Error, Result};
use crate::functional::{IntoTarget, from_vec, grad_at, zeros};
use crate::interpreter::{BackwardOptions, Call, Target};
use crate::ops::{InferCtx, Op, TensorType, Withheld};
use crate::placement::Device;
use crate::tensor::Tensor;
use oflow_kernels::{DType, DTypeKind};

/// A call whose float inputs are the variables of a function into one number: a fixed weighting of its float outputs.
pub struct Function {
    device: Device,
    op: &'static Op,
    /// In which the inputs are.
    dtype: DType,
    /// The sample, in that dtype.
    pub sample: Sample,
    /// The values at which it is differentiated.
    pub inputs: Vec<Option<Value>>,
}

impl Function {
    /// The function of a sample in f64; `k` seeds its values.
    pub fn new(device: Device, op: &'static Op, sample: &Sample, k: usize) -> Function {
        Function::in_dtype(device, op, sample, k, DType::F64)
    }

    /// The same in f64 or f32.
    pub fn in_dtype(device: Device, op: &'static Op, sample: &Sample, k: usize, dtype: DType) -> Function {
        let sample = sample.with_float(dtype);
        let inputs = sample.values(seed(op.name()) ^ k as u64, false);
        Function { device, op, dtype, sample, inputs }
    }

    /// Values as tensors of the device; with `grad` the floats are leaves that require a gradient.
    ///
    /// # Errors
    /// What making a tensor reports.
    pub fn tensors(&self, inputs: &[Option<Value>], grad: bool) -> Result<Vec<Option<Tensor>>> {
        let each = |v: &Option<Value>| {
            let t = v.as_ref().map(|v| v.local(self.device)).transpose()?;
            t.map(|t| if grad && t.dtype().has_gradients() { t.requires_grad_(true) } else { Ok(t) }).transpose()
        };
        inputs.iter().map(each).collect()
    }

    /// The weighted sum, as a tensor of one element.
    fn value(&self, inputs: &[Option<Tensor>]) -> Result<Tensor> {
        let (attrs, runtime) = self.sample.attributes(self.op)?;
        let refs: Vec<Option<&Tensor>> = inputs.iter().map(|t| t.as_ref()).collect();
        let target = Target::Local(self.device);
        let outs =
            Call::new(self.op, &refs).attrs(attrs).runtime(runtime).target(refs.is_empty().then_some(&target)).run()?;
        let mut sum = zeros([], self.device.dtype(DType::F64))?;
        let withheld = self.withheld()?;
        let counts = |(o, t): &(usize, &Tensor)| t.dtype().has_gradients() && !withheld.output(*o);
        for (k, (_, t)) in outs.iter().enumerate().filter(counts).enumerate() {
            let t = real_numbers(t)?;
            sum = sum.add(&t.mul(&weights(&t, k)?)?.sum(())?)?;
        }
        Ok(sum)
    }

    /// Inputs and outputs that the declaration says have no gradient.
    fn withheld(&self) -> Result<Withheld> {
        let (attrs, runtime) = self.sample.attributes(self.op)?;
        let kinds: Vec<DTypeKind> = runtime.iter().map(|s| s.kind()).collect();
        let types: Vec<Option<TensorType>> = self.inputs.iter().map(|v| v.as_ref().map(|v| v.ty.clone())).collect();
        let infer = InferCtx { op: self.op, inputs: &types, attrs: &attrs, runtime_kinds: &kinds };
        self.op.withheld(&infer, &self.op.infer(&infer)?)
    }

    /// Gradients of the weighted sum; none for inputs that get none.
    fn gradients(&self, inputs: &[Option<Tensor>], create_graph: bool) -> Result<Vec<Option<Tensor>>> {
        let y = self.value(inputs)?;
        if !y.requires_grad() {
            // No float output, as of a cast to integers.
            return Ok(vec![None; inputs.len()]);
        }
        let leaves: Vec<Tensor> = inputs.iter().flatten().filter(|t| t.requires_grad()).cloned().collect();
        let options = BackwardOptions { create_graph, ..Default::default() };
        let mut found = grad_at(&[y], &leaves, &[None], &options, CallSite::here())?.into_iter();
        Ok(inputs
            .iter()
            .map(|t| t.as_ref().filter(|t| t.requires_grad()).and_then(|_| found.next().flatten()))
            .collect())
    }

    /// Finite differences of `f` in every element of every float input, against `have`.
    fn compare(
        &self,
        have: &[Option<Tensor>],
        f: impl Fn(&[Option<Value>]) -> Result<f64>,
        order: &str,
    ) -> Result<usize, Complaint> {
        let err = |e: Error| e.to_string();
        let withheld = self.withheld().map_err(err)?;
        let mut count = 0;
        for (i, v) in self.inputs.iter().enumerate() {
            let Some(v) = v.as_ref().filter(|v| v.ty.dtype.has_gradients() && !withheld.input(i)) else { continue };
            let grad = match &have[i] {
                Some(g) => Value::of(g).map_err(err)?.data,
                None => vec![0.0; v.data.len()],
            };
            for k in 0..grad.len() {
                // A symmetric matrix is moved in both places, and has a gradient along that.
                let twin = match self.sample.inputs[i].as_ref().and_then(|spec| twin(spec, k)) {
                    Some(twin) if twin > k => continue,
                    twin => twin.filter(|twin| *twin != k),
                };
                let have = grad[k] + twin.map_or(0.0, |twin| grad[twin]);
                // Central differences with Richardson's step: error h^4.
                let at = |h: f64| {
                    let mut moved = self.inputs.clone();
                    moved[i].iter_mut().for_each(|v| {
                        v.data[k] += h;
                        twin.iter().for_each(|twin| v.data[*twin] += h);
                    });
                    f(&moved)
                };
                // In f32 the values have 7 digits, so the step is long and the slope has 3.
                let (step, digits) = if self.dtype == DType::F64 { (1e-3, 1e-6) } else { (2e-2, 2e-2) };
                let h = step * v.data[k].abs().clamp(0.02, 1.0);
                let slope = |h: f64| -> Result<f64> { Ok((at(h)? - at(-h)?) / (2.0 * h)) };
                let want = (4.0 * slope(h / 2.0).map_err(err)? - slope(h).map_err(err)?) / 3.0;
                let near = (have - want).abs() <= digits * (1.0 + want.abs());
                if !near {
                    let name = self.op.name();
                    return Err(format!(
                        "{name}: {order} of input {i}, element {k} is {have}, differences give {want}"
                    ));
                }
                count += 1;
            }
        }
        Ok(count)
    }

    /// Compares the first derivatives; returns how many there are.
    ///
    /// # Errors
    /// The first that differs, or why there is none.
    pub fn first(&self) -> Result<usize, Complaint> {
        let err = |e: Error| e.to_string();
        let ins = self.tensors(&self.inputs, true).map_err(err)?;
        let g = self.gradients(&ins, false).map_err(err)?;
        self.compare(&g, |v| self.value(&self.tensors(v, false)?)?.item(), "the gradient")
    }

    /// Compares the first derivatives in a dtype of fewer digits with those of the same call in f64: kernels have a gradient for each.
    ///
    /// # Errors
    /// The first that differs, or why there is none.
    pub(super) fn as_in(&self, exact: &Function) -> Result<(), Complaint> {
        let err = |e: Error| e.to_string();
        let of = |f: &Function| f.gradients(&f.tensors(&f.inputs, true)?, false);
        let (have, want) = (of(self).map_err(err)?, of(exact).map_err(err)?);
        for (i, (have, want)) in have.iter().zip(&want).enumerate() {
            let (Some(have), Some(want)) = (have, want) else { continue };
            let (have, want) = (Value::of(have).map_err(err)?.data, Value::of(want).map_err(err)?.data);
            let far = |(a, b): (&f64, &f64)| (a - b).abs() > 1e-2 * (1.0 + b.abs());
            if let Some(k) = have.iter().zip(&want).position(far) {
                let (name, dtype, a, b) = (self.op.name(), self.dtype, have[k], want[k]);
                return Err(format!(
                    "{name}: the gradient of input {i}, element {k} is {a} in {dtype}, and {b} in {}",
                    exact.dtype
                ));
            }
        }
        Ok(())
    }

    /// Compares the derivatives of a fixed weighting of all gradients; returns how many there are.
    ///
    /// # Errors
    /// The first that differs, or why there is none.
    pub fn second(&self) -> Result<usize, Complaint> {
        let weigh = |gs: &[Option<Tensor>]| -> Result<Option<Tensor>> {
            let mut sum: Option<Tensor> = None;
            for (k, g) in gs.iter().enumerate() {
                let Some(g) = g else { continue };
                let g = real_numbers(g)?;
                let part = g.mul(&weights(&g, k + 7)?)?.sum(())?;
                sum = Some(match sum {
                    Some(s) => s.add(&part)?,
                    None => part,
                });
            }
            Ok(sum)
        };
        let err = |e: Error| e.to_string();
        let ins = self.tensors(&self.inputs, true).map_err(err)?;
        let first = self.gradients(&ins, true).map_err(err)?;
        let Some(y) = weigh(&first).map_err(err)? else { return Ok(0) };
        let leaves: Vec<Tensor> = ins.iter().flatten().filter(|t| t.requires_grad()).cloned().collect();
        // A gradient that does not depend on the inputs (that of a sum) has none itself.
        let mut found = match y.requires_grad() {
            true => grad_at(&[y], &leaves, &[None], &BackwardOptions::default(), CallSite::here()).map_err(err)?,
            false => vec![None; leaves.len()],
        }
        .into_iter();
        let second: Vec<Option<Tensor>> =
            ins.iter().map(|t| t.as_ref().filter(|t| t.requires_grad()).and_then(|_| found.next().flatten())).collect();
        let f = |v: &[Option<Value>]| -> Result<f64> {
            match weigh(&self.gradients(&self.tensors(v, true)?, false)?)? {
                Some(y) => y.item(),
                None => Ok(0.0),
            }
        };
        self.compare(&second, f, "the second derivative")
    }
}

/// The element of a symmetric matrix that equals element `k`: `k` itself on the diagonal; none where nothing is symmetric.
fn twin(spec: &Spec, k: usize) -> Option<usize> {
    let (row, column, matrix) = spec.place(k);
    let n = spec.shape.last().filter(|_| spec.values == Values::Definite)?;
    Some((matrix * n + column) * n + row)
}

fn weights(t: &Tensor, k: usize) -> Result<Tensor> {
    let w: Vec<f64> = (0..t.numel() as u64).map(|i| (mix(&[i, k as u64, 3]) % 9) as f64 / 4.0 - 0.9).collect();
    from_vec(w, t.shape(), t.device())
}

/// The tensor itself; the parts of a complex one.
fn real_numbers(t: &Tensor) -> Result<Tensor> {
    if t.dtype().is_complex() { t.view_as_real() } else { Ok(t.clone()) }
}

/// The samples of an op that have a float or complex input.
///
/// # Errors
/// As [`Sample::all`].
pub fn float_samples(op: &'static Op) -> Result<Vec<Sample>> {
    let all = Sample::all(op)?.into_iter();
    Ok(all.filter(|s| s.inputs.iter().flatten().any(|s| s.dtype.has_gradients())).collect())
}
