//! Steps of further optimizers in place: over many parameters in a few launches.

use super::many::{Many, launch_strided};
use super::optim::{addresses, each_kind};
use super::{Args, Define, Function, Queue, Source};
use crate::cpu::rows::check_float;
use crate::cpu::steps::{Step, check_step};
use crate::{DType, KernelError, Result, View};
use smallvec::SmallVec;

pub(super) static STEPS: Source = Source::file("steps", include_str!("../../cuda/steps.cu")).forms(&[
    "P={f32,f64} G=P S=P V=P W=P RULE=0 STATES={2,3}",
    "P=bf16 G=bf16 S=f32 V=f32 W=f32 RULE=0 STATES=2",
    "P=f32 G=f32 S=f32 V=f32 W=f32 RULE={1,5,7,12} STATES=1",
    "P=f32 G=f32 S=f32 V=f32 W=f32 RULE={2,3,6,10,11,13} STATES=2",
    "P=f32 G=f32 S=f32 V=f32 W=f32 RULE={4,8} STATES=3",
    "P={f32,bf16} G=P S=P V=P W=P RULE=9 STATES=0",
]);

/// Carries out a step for many parameters: each has its gradient, and then what the optimizer keeps of it. The views of an entry
/// have one shape; each may have its own float dtype, and the arithmetic is that of the parameter's (f32 for halves).
///
/// # Errors
/// If dims differ, a dtype is no float, or the number of states is another one.
pub fn step(q: &Queue, step: &Step, entries: &[SmallVec<[&View; 5]>]) -> Result<()> {
    for e in entries {
        let [param, grad, states @ ..] = &e[..] else {
            return Err(KernelError::new("a step takes a parameter and its gradient"));
        };
        check_step(step, param, grad, states)?;
    }
    match step.states() {
        0 => launched::<2, 108, 109>(q, step, entries),
        1 => launched::<3, 108, 109>(q, step, entries),
        2 => launched::<4, 88, 89>(q, step, entries),
        _ => launched::<5, 72, 73>(q, step, entries),
    }
}

fn launched<const K: usize, const LIMIT: usize, const FIRST: usize>(
    q: &Queue,
    step: &Step,
    entries: &[SmallVec<[&View; 5]>],
) -> Result<()> {
    let entries: SmallVec<[[&View; K]; 64]> = entries.iter().map(|e| std::array::from_fn(|k| e[k])).collect();
    let numbers = step.numbers();
    each_kind(&entries, |dtypes: [DType; 5], packed, group| {
        let f = function(q, if packed { "step" } else { "step_strided" }, dtypes, step.rule(), K - 2)?;
        let put = |args: Args| match dtypes[0] {
            DType::F64 => args.value(numbers),
            _ => args.value(numbers.map(|x| x as f32)),
        };
        if packed {
            return Many::<K, LIMIT, FIRST>::launch(q, f, group.iter().copied(), |_| put(Args::new())).map(drop);
        }
        // What there is not is the parameter again, which is not read in its place.
        group.iter().try_for_each(|views| {
            let all: [&View; 5] = std::array::from_fn(|k| views[if k < K { k } else { 0 }]);
            launch_strided(q, f, all, put(addresses(&all)))
        })
    })
}

/// `x -= factor * y` for many pairs; `factors` has a factor for each, in GPU memory.
///
/// # Errors
/// If dims differ, a dtype is no float, or there is another number of factors.
pub fn subtract(q: &Queue, factors: &View, pairs: &[[&View; 2]]) -> Result<()> {
    check_float("the factors", factors)?;
    if factors.rank() != 1 || factors.len() != pairs.len() {
        let dims = factors.dims();
        return Err(KernelError::new(format!("the factors have dims {dims:?} for {} pairs", pairs.len())));
    }
    for [x, y] in pairs {
        crate::cpu::optim::check(x, &[("what is subtracted", y)])?;
    }
    let each: Vec<View> = (0..pairs.len()).map(|i| element(factors, i)).collect();
    // One kind of factor: what differs is the pairs, and their factors follow them.
    let numbered: SmallVec<[[&View; 3]; 64]> = pairs.iter().zip(&each).map(|([x, y], f)| [*x, *y, f]).collect();
    each_kind(&numbered, |dtypes: [DType; 5], packed, group| {
        let f = function(q, if packed { "subtract" } else { "subtract_strided" }, dtypes, 9, 0)?;
        if packed {
            return Many::<3, 88, 89>::launch(q, f, group.iter().copied(), |_| Args::new()).map(drop);
        }
        group
            .iter()
            .try_for_each(|[x, y, factor]| launch_strided(q, f, [*x, *y], Args::new().view(x).view(y).view(factor)))
    })
}

/// Element `i` of a view of one dim, without dims.
fn element(of: &View, i: usize) -> View {
    let offset = i as isize * of.strides()[0];
    // SAFETY: an element of the view.
    unsafe { of.restride(offset, [].as_slice().into(), [].as_slice().into()) }
}

/// The sum of squares of each of many tensors to an element of `out`, which has one dim. `scratch` has as many bytes as
/// [`squares_workspace`](super::optim::squares_workspace) says of the largest.
///
/// # Errors
/// As [`sum_of_squares`](super::optim::sum_of_squares).
pub fn squares_of_each(q: &Queue, views: &[&View], out: &View, scratch: Option<&View>) -> Result<()> {
    if out.rank() != 1 || out.len() != views.len() {
        return Err(KernelError::new(format!("the sums have dims {:?} for {} tensors", out.dims(), views.len())));
    }
    views.iter().enumerate().try_for_each(|(i, v)| super::optim::sum_of_squares(q, &[v], &element(out, i), scratch))
}

fn function(q: &Queue, entry: &str, dtypes: [DType; 5], rule: i64, states: usize) -> Result<Function> {
    let [p, g, s, v, w] = dtypes;
    let defines = [
        Define::dtype("P", p),
        Define::dtype("G", g),
        Define::dtype("S", s),
        Define::dtype("V", v),
        Define::dtype("W", w),
        Define::int("RULE", rule),
        Define::int("STATES", states as i64),
    ];
    q.function(&STEPS, entry, &defines)
}
