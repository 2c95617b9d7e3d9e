//! All checks of one op, by one call.

use super::arguments::bad_arguments;
use super::inputs::keeps_inputs;
use super::report::{MeshReport, Report};
use super::sample::derived_ops;
use super::{
    Case, Complaint, Function, MESHES, Reference, Sample, at_home, completeness, computes, differentiable,
    float_samples, guarded, home, mixed_cases, panicked, reference, run_cases_on, said, signature_cases,
    special_trials, variants,
};
use crate::error::{Error, Result};
use crate::ops::{Grad, Op};
use crate::placement::Device;
use oflow_kernels::DType;
use std::sync::Arc;

/// How many complaints an error quotes, a line each: with what was checked and what to do it has six lines.
const QUOTED: usize = 3;

/// Checks an op on its samples, with public behaviour only:
///
/// - **signatures**: each declared one on simulated ranks of each mesh in [`MESHES`], with sizes as given, uneven, smaller than the
///   mesh and empty, forward and backward, against the same call on one device;
/// - **layouts**: random ones, for which the inputs must be boxed;
/// - **memory**: a second call on one device gives the same and leaves the inputs as they are, and so does one on strided inputs of an op
///   with the trait `strided`;
/// - **special numbers**: the same with infinities, NaN, zeros of both signs, numbers near zero and the ends of integers among the inputs
///   (see [`Set`](super::Set)), on meshes of one and two axes;
/// - **gradients**: first and second derivatives against finite differences in f64, or in f32 where an input takes no f64; those of a
///   sample in f32 are compared with those in f64 too;
/// - **arguments**: too few inputs, wrong dtypes, ranks, sizes and attributes give an error that names the op, and no panic; what is
///   accepted does not depend on the memory around the inputs;
/// - **completeness**: which signatures give the right result but are not declared. The report lists them; they are no error.
///
/// Gradient ops that are derived from an expression are checked with the op. A gradient op that the author writes has samples of
/// its own and is checked by a call of its own. A random op must draw the same numbers in every layout: its samples state `seed`
/// and `ordinal`.
///
/// # Errors
/// One error that lists what is wrong: op, sample, layouts, mesh, the value and the one that was wanted. It has the kind
/// [`Registry`](crate::ErrorKind::Registry).
pub fn conformance(op: &'static Op) -> Result<Report> {
    let mut wrong = vec![];
    let report = checked(op, &mut wrong)?;
    match wrong.len() {
        0 => Ok(report),
        n => {
            let mut text = format!("{} does not conform: {n} checks failed", op.name());
            let line = |w: &Complaint| w.lines().next().unwrap_or_default().to_string();
            wrong.iter().take(QUOTED).for_each(|w| text += &format!("\n  {}", line(w)));
            if n > QUOTED {
                text += &format!("\n  and {} more", n - QUOTED);
            }
            Err(Error::registry(text)
                .help("correct the declaration or the kernel: the call on one device is taken for right"))
        }
    }
}

/// All checks; what is wrong is added to `wrong`.
fn checked(op: &'static Op, wrong: &mut Vec<Complaint>) -> Result<Report> {
    if !computes(op) {
        return Err(Error::registry(format!("{} computes nothing: it has no kernel to check", op.name()))
            .help("an op that changes layouts is checked by tests of its own"));
    }
    let samples = Sample::all(op)?;
    if samples.is_empty() && !op.traits.hidden {
        return Err(Error::registry(format!("{} has no samples", op.name()))
            .help("give it some: `OpDef::samples(&[\"f32[4, 6] f32[6]; dim=1\"])`"));
    }
    let mut report = Report { op: op.name().to_string(), samples: samples.len(), ..Report::default() };
    let trials = trials(op, wrong)?;
    wrong.extend(trials.iter().filter_map(|trial| keeps_inputs(trial).err()));
    for mesh in MESHES {
        report.meshes.push(on_mesh(home(op), mesh, &trials, wrong));
    }
    report.special = special(op, wrong)?;
    gradients(op, &mut report, wrong)?;
    report.bad_arguments = bad_arguments(op, wrong)?;
    report.completeness = completeness(op)?;
    for derived in derived_ops(op)? {
        report.derived.push(checked(derived, wrong)?);
    }
    Ok(report)
}

/// A sample in one size, run on the CPU.
#[derive(Clone)]
pub struct Trial {
    /// The call with its result.
    pub reference: Arc<Reference>,
    /// The sample in that size.
    pub sample: Sample,
    /// Size of the trial: see [`variants`].
    pub size: &'static str,
}

/// The samples of an op in all sizes that it accepts. A sample that it refuses as it is given is added to `wrong`.
///
/// # Errors
/// A sample cannot be read.
pub fn trials(op: &'static Op, wrong: &mut Vec<Complaint>) -> Result<Vec<Trial>> {
    let mut found = vec![];
    for (i, sample) in Sample::all(op)?.iter().enumerate() {
        for (size, sample) in variants(op, sample) {
            let what = format!("{} sample {i} ({size})", op.name());
            let backward = differentiable(op) && size != "small";
            match guarded(|| reference(op, &what, &sample, true, backward)) {
                Ok(r) => found.push(Trial { reference: Arc::new(r), sample, size }),
                // Some sizes an op refuses (a range without elements); the sample as given never.
                Err(e) if size == "as given" || panicked(&e) => wrong.push(format!("{what}: {}", said(&e))),
                Err(_) => {}
            }
        }
    }
    Ok(found)
}

impl Trial {
    /// The cases on one mesh: all signatures (on a mesh of several axes 24 products of them, 6 in other sizes than the given one)
    /// and random layouts.
    ///
    /// # Errors
    /// As [`nd_signatures`](super::nd_signatures).
    pub fn cases(&self, mesh: &[usize]) -> Result<Vec<Case>> {
        let given = self.size == "as given";
        let limit = if mesh.len() == 1 {
            usize::MAX
        } else if given {
            24
        } else {
            6
        };
        let mut cases = guarded(|| signature_cases(&self.reference, &self.sample, mesh, limit))?;
        if mesh.iter().product::<usize>() > 1 {
            cases.extend(mixed_cases(&self.reference, mesh, if given { 4 } else { 1 })?);
        }
        Ok(cases)
    }
}

/// How many cases with special numbers there are.
fn special(op: &'static Op, wrong: &mut Vec<Complaint>) -> Result<usize> {
    let trials = special_trials(op, wrong)?;
    let mut count = 0;
    for mesh in [&[2][..], &[2, 2]] {
        let mut all = vec![];
        for trial in &trials {
            all.extend(trial.cases(mesh)?);
        }
        count += all.len();
        wrong.extend(run_cases_on(home(op), mesh, &all).into_iter().filter_map(Result::err));
    }
    Ok(count)
}

fn on_mesh(device: Device, mesh: &'static [usize], trials: &[Trial], wrong: &mut Vec<Complaint>) -> MeshReport {
    let mut report = MeshReport { mesh, ..MeshReport::default() };
    let mut all = vec![];
    for trial in trials {
        match trial.cases(mesh) {
            Ok(c) => all.extend(c),
            Err(e) => wrong.push(format!("{} on {mesh:?}: {}", trial.reference.what, said(&e))),
        }
    }
    for (case, verdict) in all.iter().zip(run_cases_on(device, mesh, &all)) {
        match case.expect {
            Some(_) => report.signatures += 1,
            None => report.mixed += 1,
        }
        report.backward += usize::from(case.reference.backward);
        match verdict {
            Ok(reached) => report.not_chosen += usize::from(!reached),
            Err(e) => wrong.push(e),
        }
    }
    report
}

fn gradients(op: &'static Op, report: &mut Report, wrong: &mut Vec<Complaint>) -> Result<()> {
    let why = match op.grad {
        Grad::Missing => Some("it has no gradient rule: asking for a gradient is an error"),
        Grad::None => Some("it declares that it has no gradient"),
        _ if op.writes_inputs() => Some("it writes an input"),
        _ => None,
    };
    if let Some(why) = why {
        report.notes.push(format!("derivatives not compared: {why}"));
        return Ok(());
    }
    let samples = float_samples(op)?;
    let takes = |s: &Sample, dtype: DType| {
        let given = s.inputs.iter().enumerate().filter(|(_, s)| s.as_ref().is_some_and(|s| s.dtype.is_float()));
        given.into_iter().all(|(i, _)| op.sig.input_def(i).is_none_or(|d| d.dtypes.contains(dtype)))
    };
    for (k, sample) in samples.iter().enumerate() {
        let Some(dtype) = [DType::F64, DType::F32].into_iter().find(|d| takes(sample, *d)) else {
            report
                .notes
                .push(format!("derivatives not compared in float sample {k}: an input takes neither f64 nor f32"));
            continue;
        };
        let f = Function::in_dtype(home(op), op, sample, k, dtype);
        let run = |order: fn(&Function) -> Result<usize, Complaint>| {
            // The text of a panic says neither op nor sample.
            guarded(|| at_home(op, || Ok(order(&f)))).unwrap_or_else(|e| Err(format!("{}: {}", op.name(), e.message())))
        };
        match run(Function::first) {
            Ok(n) => report.first += n,
            Err(e) => {
                wrong.push(format!("{e} (float sample {k})"));
                continue;
            }
        }
        if dtype == DType::F64 && sample.inputs.iter().flatten().any(|s| s.dtype == DType::F32) {
            let short = Function::in_dtype(home(op), op, sample, k, DType::F32);
            let near = guarded(|| at_home(op, || Ok(short.as_in(&f))));
            if let Err(e) = near.unwrap_or_else(|e| Err(format!("{}: {}", op.name(), e.message()))) {
                wrong.push(format!("{e} (float sample {k})"));
            }
        }
        match run(Function::second) {
            Ok(n) => report.second += n,
            // An op that is called in the rule has none: a choice of the author's, which users meet as an error.
            Err(e) if e.contains("has no gradient rule") => {
                let note = format!("no second derivative: {}", e.lines().next().unwrap_or_default());
                if !report.notes.contains(&note) {
                    report.notes.push(note);
                }
            }
            Err(e) => wrong.push(format!("{e} (float sample {k})")),
        }
    }
    Ok(())
}
