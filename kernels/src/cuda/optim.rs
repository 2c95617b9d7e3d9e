//! Optimizer steps in place, scaling and the gradient norm: over many tensors in a few launches, whose parameters are
//! tables of addresses.

use super::many::{Many, blocks_of, launch_strided};
use super::{Args, Define, Function, Launch, Queue, Source};
use crate::cpu::optim::{AdamW, Sgd, check};
use crate::cpu::rows::check_float;
use crate::{DType, KernelError, Result, View};
use smallvec::SmallVec;

pub(super) static OPTIM: Source = Source::file("optim", include_str!("../../cuda/optim.cu"))
    .forms(&["P={f32,f64} G=P M=P V=P MOMENTUM={0,1}", "P=bf16 G={bf16,f32} M={bf16,f32} V=f32 MOMENTUM=1"]);

type Table<const K: usize, const LIMIT: usize, const FIRST: usize> = Many<K, LIMIT, FIRST>;

/// One step of AdamW with PyTorch's formula for many parameters, each with its gradient, its first and its second moment.
/// The views of an entry have one shape; each may have its own float dtype, and the arithmetic is that of the parameter's
/// (f32 for halves).
///
/// # Errors
/// If dims differ or a dtype is not a float.
pub fn adamw(q: &Queue, entries: &[[&View; 4]], settings: &AdamW) -> Result<()> {
    for [param, grad, m, v] in entries {
        check(param, &[("the gradient", grad), ("m", m), ("v", v)])?;
    }
    let factors = settings.factors();
    each_kind(entries, |dtypes: [DType; 4], packed, group| {
        let f = function(q, if packed { "adamw" } else { "adamw_strided" }, dtypes, true)?;
        let put = |args: Args| if dtypes[0] == DType::F64 { args.value(factors) } else { args.value(narrow(factors)) };
        if packed {
            return Table::<4, 88, 89>::launch(q, f, group.iter().copied(), |_| put(Args::new())).map(|_| ());
        }
        group.iter().try_for_each(|views| launch_strided(q, f, *views, put(addresses(views))))
    })
}

/// One step of SGD with PyTorch's formula for many parameters, each with its gradient and, if `momentum`, its momentum
/// buffer behind them. Shapes and dtypes as for [`adamw`].
///
/// # Errors
/// If dims differ or a dtype is not a float.
pub fn sgd(q: &Queue, entries: &[[&View; 3]], momentum: bool, settings: &Sgd) -> Result<()> {
    for [param, grad, buffer] in entries {
        check(param, &[("the gradient", grad), ("the momentum buffer", buffer)])?;
    }
    let s = *settings;
    let (keep, take) = if s.first_step { (0.0, 1.0) } else { (s.momentum, 1.0 - s.dampening) };
    let numbers = [s.lr, s.weight_decay, s.momentum, keep, take];
    let flags = [i32::from(s.nesterov), i32::from(s.first_step)];
    each_kind(entries, |dtypes: [DType; 4], packed, group| {
        let f = function(q, if packed { "sgd" } else { "sgd_strided" }, dtypes, momentum)?;
        let put = |args: Args| match dtypes[0] {
            DType::F64 => args.value(SgdFactors { numbers, flags }),
            _ => args.value(SgdFactors { numbers: narrow(numbers), flags }),
        };
        let strided = |views: &[&View; 3]| launch_strided(q, f, *views, put(addresses(views)));
        match (packed, momentum) {
            (false, _) => group.iter().try_for_each(strided),
            (true, true) => Table::<3, 108, 109>::launch(q, f, group.iter().copied(), |_| put(Args::new())).map(|_| ()),
            (true, false) => {
                let entries = group.iter().map(|[p, g, _]| [*p, *g]);
                Table::<2, 108, 109>::launch(q, f, entries, |_| put(Args::new())).map(|_| ())
            }
        }
    })
}

/// Multiplies all elements of many tensors by a number in GPU memory. Halves are multiplied in f32.
///
/// # Errors
/// If a dtype is not a float, or `factor` is not one number.
pub fn scale(q: &Queue, factor: &View, views: &[&View]) -> Result<()> {
    check_float("the factor", factor)?;
    if factor.len() != 1 {
        return Err(KernelError::new(format!("the factor has dims {:?}, not one element", factor.dims())));
    }
    let entries: SmallVec<[[&View; 1]; 64]> = views.iter().map(|v| [*v]).collect();
    views.iter().try_for_each(|v| check_float("the tensor", v))?;
    each_kind(&entries, |dtypes: [DType; 4], packed, group| {
        let kinds = [dtypes[0], factor.dtype(), dtypes[0], dtypes[0]];
        let f = function(q, if packed { "scale" } else { "scale_strided" }, kinds, false)?;
        if packed {
            return Table::<1, 196, 197>::launch(q, f, group.iter().copied(), |_| Args::new().view(factor)).map(|_| ());
        }
        group.iter().try_for_each(|v| launch_strided(q, f, *v, Args::new().view(v[0]).view(factor)))
    })
}

/// Returns the bytes of scratch memory of [`sum_of_squares`] for tensors of these numbers of elements.
pub fn squares_workspace(lens: impl IntoIterator<Item = usize>) -> usize {
    lens.into_iter().map(blocks_of).sum::<usize>() * 8
}

/// The sum of squares of all elements of many tensors, in f64, to the one element of `out`. `scratch` has as many bytes as
/// [`squares_workspace`] says.
///
/// # Errors
/// If a dtype is not a float, or the scratch memory is too small.
pub fn sum_of_squares(q: &Queue, views: &[&View], out: &View, scratch: Option<&View>) -> Result<()> {
    views.iter().chain([&out]).try_for_each(|v| check_float("the tensor", v))?;
    let bytes = squares_workspace(views.iter().map(|v| v.len()));
    let sums = match scratch {
        Some(s) if s.len() >= bytes => s.ptr(),
        _ if bytes == 0 => std::ptr::null_mut(),
        _ => return Err(KernelError::new("a sum of squares needs its scratch memory")),
    };
    let entries: SmallVec<[[&View; 1]; 64]> = views.iter().map(|v| [*v]).collect();
    let mut done = 0;
    each_kind(&entries, |dtypes: [DType; 4], packed, group| {
        let f = function(q, if packed { "squares" } else { "squares_strided" }, dtypes, false)?;
        let slot = |block: usize| sums.wrapping_add(block * 8);
        if packed {
            let start = done;
            let args = |before: usize| Args::new().ptr(slot(start + before));
            done += Table::<1, 196, 197>::launch(q, f, group.iter().copied(), args)?;
            return Ok(());
        }
        for v in group {
            launch_strided(q, f, *v, Args::new().view(v[0]).ptr(slot(done)))?;
            done += blocks_of(v[0].len());
        }
        Ok(())
    })?;
    let f = function(q, "squares_finish", [out.dtype(); 4], false)?;
    q.launch(f, Launch::new(1, 1024), Args::new().ptr(sums).value(done as u64).view(out))
}

/// `of_sgd`.
#[repr(C)]
#[derive(Clone, Copy)]
struct SgdFactors<T> {
    numbers: [T; 5],
    flags: [i32; 2],
}

fn narrow<const N: usize>(of: [f64; N]) -> [f32; N] {
    of.map(|x| x as f32)
}

pub(super) fn addresses<const K: usize>(views: &[&View; K]) -> Args {
    views.iter().fold(Args::new(), |args, v| args.view(v))
}

fn function(q: &Queue, entry: &str, dtypes: [DType; 4], momentum: bool) -> Result<Function> {
    let [p, g, m, v] = dtypes;
    let defines = [
        Define::dtype("P", p),
        Define::dtype("G", g),
        Define::dtype("M", m),
        Define::dtype("V", v),
        Define::int("MOMENTUM", i64::from(momentum)),
    ];
    q.function(&OPTIM, entry, &defines)
}

/// Calls `f` for the entries of each combination of dtypes (the first's where there are fewer than D tensors), the
/// contiguous ones apart; empty entries take no part. In the order of their first entry.
pub(super) fn each_kind<const K: usize, const D: usize>(
    entries: &[[&View; K]],
    mut f: impl FnMut([DType; D], bool, &[[&View; K]]) -> Result<()>,
) -> Result<()> {
    let kind = |views: &[&View; K]| {
        let dtypes: [DType; D] = std::array::from_fn(|k| views[if k < K { k } else { 0 }].dtype());
        (dtypes, views.iter().all(|v| v.is_contiguous()))
    };
    let mut done: SmallVec<[([DType; D], bool); 4]> = SmallVec::new();
    for views in entries {
        let of = kind(views);
        if views[0].is_empty() || done.contains(&of) {
            continue;
        }
        done.push(of);
        let group: SmallVec<[[&View; K]; 64]> =
            entries.iter().filter(|v| !v[0].is_empty() && kind(v) == of).copied().collect();
        f(of.0, of.1, &group)?;
    }
    Ok(())
}
