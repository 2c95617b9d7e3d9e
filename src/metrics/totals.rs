//! Sums that are added up over ranks.

use crate::context::{current, inner_calls};
use crate::error::{Error, Result};
use crate::functional::from_vec;
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp};
use crate::state::{LoadState, SaveState};
use crate::tensor::Tensor;
use oflow_kernels::ReduceOp;

/// Sums of a metric. Those of global tensors are the same on every rank; those of local tensors are of this rank until [`sync`] adds them up.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Totals {
    shared: Vec<f64>,
    own: Vec<f64>,
}

impl Totals {
    pub fn new(n: usize) -> Totals {
        Totals { shared: vec![0.0; n], own: vec![0.0; n] }
    }
    /// Adds sums, which are of all ranks or of this one.
    pub fn add(&mut self, sums: &[f64], of_all: bool) {
        let to = if of_all { &mut self.shared } else { &mut self.own };
        to.iter_mut().zip(sums).for_each(|(t, s)| *t += s);
    }
    /// The first sum over the second, of a metric that has two.
    pub fn ratio(&self) -> f64 {
        let all = self.all();
        all[0] / all[1]
    }
    /// The sums that this rank knows.
    pub fn all(&self) -> Vec<f64> {
        self.shared.iter().zip(&self.own).map(|(s, o)| s + o).collect()
    }
    pub fn reset(&mut self) {
        *self = Totals::new(self.shared.len());
    }
    pub fn save(&self, name: &str, to: &mut SaveState) -> Result<()> {
        check_synced(self.own.iter().all(|n| *n == 0.0))?;
        to.value(name, self.all())
    }
    pub fn load(&mut self, name: &str, from: &mut LoadState<'_>) -> Result<()> {
        let Some(saved) = from.value::<Vec<f64>>(name)? else { return Ok(()) };
        if saved.len() != self.shared.len() {
            return Err(Error::argument(format!(
                "the saved metric has {} sums, this one {}",
                saved.len(),
                self.shared.len()
            ))
            .help("make the metric with the same settings as the saved one, such as the number of classes"));
        }
        *self = Totals { own: vec![0.0; saved.len()], shared: saved };
        Ok(())
    }
}

/// Implements [`Metric`](super::Metric) and [`Stateful`](crate::state::Stateful) for a metric that keeps [`Totals`] alone: in which field,
/// their name in a checkpoint, and the value.
macro_rules! of_totals {
    ($metric:ty, $totals:tt, $name:literal, |$this:ident| $value:expr) => {
        impl $crate::metrics::Metric for $metric {
            fn value(&self) -> f64 {
                let $this = self;
                $value
            }
            #[track_caller]
            fn sync(&mut self) -> $crate::error::Result<()> {
                $crate::metrics::totals::sync(&mut [&mut self.$totals])
            }
            fn reset(&mut self) {
                self.$totals.reset();
            }
        }

        impl $crate::state::Stateful for $metric {
            fn save_state(&self, to: &mut $crate::state::SaveState) -> $crate::error::Result<()> {
                self.$totals.save($name, to)
            }
            fn load_state(&mut self, from: &mut $crate::state::LoadState<'_>) -> $crate::error::Result<()> {
                self.$totals.load($name, from)
            }
        }
    };
}
pub(super) use of_totals;

/// Adds up over all ranks what is of single ranks. A collective of the world.
#[track_caller]
pub(super) fn sync(all: &mut [&mut Totals]) -> Result<()> {
    let own: Vec<f64> = all.iter().flat_map(|t| t.own.iter().copied()).collect();
    let mut sums = over_ranks(own, ReduceOp::Sum)?.into_iter();
    for t in all {
        t.shared.iter_mut().zip(&mut sums).for_each(|(s, n)| *s += n);
        t.own.fill(0.0);
    }
    Ok(())
}

/// Sums over all ranks, or largest or least numbers, of as many on each. A world of one needs no communication.
#[track_caller]
pub(super) fn over_ranks(own: Vec<f64>, op: ReduceOp) -> Result<Vec<f64>> {
    let world = current().world();
    if world == 1 || own.is_empty() {
        return Ok(own);
    }
    let _inner = inner_calls();
    let all = Placement::all(Device::Cpu)?;
    let n = own.len();
    let parts = from_vec(own, [n], Device::Cpu)?.to_global((&all, NdSbp::new(&[Sbp::Partial(op)])))?;
    parts.to_global(NdSbp::broadcast(1))?.to_vec::<f64>()
}

/// A checkpoint has the values of one rank: they must be those of all.
pub(super) fn check_synced(nothing_own: bool) -> Result<()> {
    if nothing_own || current().world() == 1 {
        return Ok(());
    }
    Err(Error::argument("the metric has sums of this rank alone, which a checkpoint would lose")
        .help("call `sync` on every rank before saving"))
}

/// Refuses a tensor that does not have integers.
pub(super) fn check_labels(what: &str, t: &Tensor) -> Result<()> {
    if t.dtype().integers().is_some() || t.dtype() == oflow_kernels::DType::Bool {
        return Ok(());
    }
    Err(Error::dtype(format!("{what} are {}; they must be numbers of classes", t.short()))
        .help("give integers, or for predictions scores with one dim more than the targets"))
}
