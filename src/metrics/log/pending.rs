//! Values that have been logged and not been written.
//!
//! When a flush communicates, all ranks must decide so alike. Each decision therefore depends on *shared* values alone: global tensors, and
//! with [`OverRanks`] other than `First` all. Every rank logs the same of them in the same order, which the stream of global ops checks: each such call
//! is an op of the stream, with the names in its key.

use super::options::{LogOptions, OverRanks};
use super::row::Row;
use super::value::{Kept, LogValue, Logged, check_name, check_tensor, read};
use crate::context::{current, current_rank, inner_calls, no_grad};
use crate::error::{CallSite, Error, Result};
use crate::functional::box_many;
use crate::intern::FixedHasher;
use crate::metrics::totals::over_ranks;
use crate::placement::Placement;
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::ReduceOp;
use std::collections::BTreeSet;
use std::hash::Hasher;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A value of a step.
struct Entry {
    step: usize,
    time: f64,
    name: Arc<str>,
    value: Kept,
}

/// A value that has been checked.
pub(super) struct New<'a> {
    name: &'a str,
    value: Logged<'a>,
    shared: bool,
}

/// Values in the order in which they were logged.
pub(super) struct Pending {
    entries: Vec<Entry>,
    every: usize,
    over_ranks: OverRanks,
    world: usize,
    writes: bool,
    /// Names so far: steps share the texts.
    names: BTreeSet<Arc<str>>,
    /// The step that was logged last, and the names that it has.
    last: Option<usize>,
    named: BTreeSet<Arc<str>>,
    /// The last step with a shared value.
    last_shared: Option<usize>,
}

impl Pending {
    pub fn new(options: &LogOptions, world: usize, writes: bool) -> Pending {
        let (every, over_ranks) = (options.flush_every, options.over_ranks);
        let (names, named) = Default::default();
        Pending { entries: vec![], every, over_ranks, world, writes, names, last: None, named, last_shared: None }
    }

    /// Checks what is logged. Of shared values every rank finds the same.
    pub fn check<'a>(&self, step: usize, values: &'a [(&str, &dyn LogValue)]) -> Result<Vec<New<'a>>> {
        if i64::try_from(step).is_err() {
            return Err(Error::argument(format!("step {step} is greater than {}", i64::MAX)));
        }
        let mut new: Vec<New<'a>> = Vec::with_capacity(values.len());
        for (name, value) in values {
            check_name(name)?;
            let value = value.logged();
            if let Logged::Tensor(t) = value {
                check_tensor(name, t)?;
            }
            let global = matches!(value, Logged::Tensor(t) if t.is_global());
            let shared = global || self.over_ranks != OverRanks::First;
            let again = new.iter().any(|n| n.name == *name);
            if again || (self.last == Some(step) && self.named.contains(*name)) {
                return Err(Error::argument(format!("{name:?} is logged twice at step {step}"))
                    .help("log one value of a name at a step, or use two names"));
            }
            new.push(New { name, value, shared });
        }
        let before = if new.iter().any(|n| n.shared) { self.last_shared } else { None };
        if let Some(before) = before.max(self.last).filter(|before| step < *before) {
            return Err(Error::argument(format!("step {step} is logged after step {before}")).help(
                "steps do not go back in a log: a run that goes on from a checkpoint makes a new `Log` with `resume`",
            ));
        }
        Ok(new)
    }

    /// Whether values must be written before these are kept.
    pub fn is_due(&self, step: usize, new: &[New<'_>]) -> bool {
        let late = |first: Option<&Entry>| first.is_some_and(|e| step - e.step.min(step) >= self.every);
        let shared = |e: &&Entry| self.is_shared(&e.value);
        match self.entries.iter().find(shared) {
            Some(first) => new.iter().any(|n| n.shared) && self.last_shared != Some(step) && late(Some(first)),
            None => self.last != Some(step) && late(self.entries.first()),
        }
    }

    fn is_shared(&self, value: &Kept) -> bool {
        self.over_ranks != OverRanks::First || matches!(value, Kept::Global(_))
    }

    /// Makes a call with shared values an op of the stream.
    pub fn note(&self, new: &[New<'_>]) -> Result<()> {
        let shared = || new.iter().filter(|n| n.shared).map(|n| n.name);
        let ctx = current();
        if shared().next().is_none() || !ctx.is_rank() {
            return Ok(());
        }
        let mut key = FixedHasher::default();
        shared().for_each(|name| hash(&mut key, name));
        let text = || format!("log({})", shared().collect::<Vec<_>>().join(", "));
        // No collective is made for it: the next one compares.
        ctx.next_described("log", key.finish(), CallSite::here(), &text);
        Ok(())
    }

    /// Keeps values. Those that nobody will write are not kept.
    pub fn keep(&mut self, step: usize, new: Vec<New<'_>>) -> Result<()> {
        self.note(&new)?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64());
        if new.iter().any(|n| n.shared) {
            self.last_shared = Some(step);
        }
        let kept: Vec<New<'_>> = new.into_iter().filter(|n| n.shared || self.writes).collect();
        if !kept.is_empty() && self.last != Some(step) {
            self.last = Some(step);
            self.named.clear();
        }
        for n in kept {
            let name = self.name(n.name);
            let value = match n.value {
                Logged::Number(n) => Kept::Number(n),
                Logged::Tensor(t) => Kept::of(t)?,
            };
            self.named.insert(name.clone());
            self.entries.push(Entry { step, time, name, value });
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(found) = self.names.get(name) {
            return found.clone();
        }
        let new: Arc<str> = name.into();
        self.names.insert(new.clone());
        new
    }

    /// Takes the values before a step, or all, as rows on the rank that writes. A collective if shared ones are among them.
    pub fn take(&mut self, before: Option<usize>) -> Result<Vec<Row>> {
        let now = self.entries.iter().position(|e| before.is_some_and(|step| e.step >= step));
        let later = now.map_or(vec![], |at| self.entries.split_off(at));
        let mut entries = std::mem::replace(&mut self.entries, later);
        let (_inner, _no_grad) = (inner_calls(), no_grad());
        if self.over_ranks != OverRanks::First && self.world > 1 {
            over_all_ranks(&mut entries, self.over_ranks, self.world)?;
        }
        to_rank_0(&mut entries)?;
        if self.writes { rows(entries) } else { Ok(vec![]) }
    }

    /// Takes the values that need no communication, and the first step of those that would need it. While a thread panics tensors are not read.
    pub fn take_own(&mut self, panicking: bool) -> (Vec<Row>, Option<usize>) {
        let entries = std::mem::take(&mut self.entries);
        if self.world == 1 && !panicking {
            self.entries = entries;
            return match self.take(None) {
                Ok(rows) => (rows, None),
                Err(e) => {
                    eprintln!("oflow: the last values that were logged cannot be read: {e}");
                    (vec![], None)
                }
            };
        }
        let readable = |e: &Entry| match e.value {
            Kept::Number(_) => self.over_ranks == OverRanks::First,
            Kept::Local(_) => self.over_ranks == OverRanks::First && !panicking,
            Kept::Global(_) => false,
        };
        let (own, lost): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(readable);
        let rows = if self.writes { rows(own).unwrap_or_default() } else { vec![] };
        (rows, lost.first().map(|e| e.step))
    }
}

fn hash(key: &mut FixedHasher, text: &str) {
    key.write_usize(text.len());
    key.write(text.as_bytes());
}

/// Boxes all global values to rank 0 alone, together; there they become local.
fn to_rank_0(entries: &mut [Entry]) -> Result<()> {
    let global = |e: &&mut Entry| matches!(e.value, Kept::Global(_));
    let mut key = FixedHasher::default();
    let mut tensors: Vec<Tensor> = vec![];
    for e in entries.iter_mut().filter(global) {
        hash(&mut key, &e.name);
        key.write_usize(e.step);
        if let Kept::Global(t) = &e.value {
            tensors.push(t.clone());
        }
    }
    if tensors.is_empty() {
        return Ok(());
    }
    let count = tensors.len();
    let text = || format!("flush_log({count} values)");
    current_rank()?.next_described("flush_log", key.finish(), CallSite::here(), &text);
    let whole = |t: &Tensor| Ok((Placement::new(t.device(), &[0], &[1])?, NdSbp::broadcast(1)));
    let layouts = tensors.iter().map(whole).collect::<Result<Vec<_>>>()?;
    let to: Vec<_> = tensors.iter().zip(&layouts).map(|(t, (p, sbp))| (t, (p, sbp.clone()))).collect();
    let boxed = box_many(&to)?;
    for (e, t) in entries.iter_mut().filter(global).zip(boxed) {
        // The ranks that do not write have none of the value.
        e.value = t.data()?.map_or(Kept::Number(f64::NAN), |l| Kept::Local(Tensor::from_local(l)));
    }
    Ok(())
}

/// Makes one number of the values that each rank has of its own.
fn over_all_ranks(entries: &mut [Entry], how: OverRanks, world: usize) -> Result<()> {
    let mut own: Vec<&mut Entry> = entries.iter_mut().filter(|e| !matches!(e.value, Kept::Global(_))).collect();
    let op = match how {
        OverRanks::Max => ReduceOp::Max,
        OverRanks::Min => ReduceOp::Min,
        OverRanks::First | OverRanks::Mean | OverRanks::Sum => ReduceOp::Sum,
    };
    let divisor = if how == OverRanks::Mean { world as f64 } else { 1.0 };
    let all = over_ranks(numbers(own.iter().map(|e| &**e))?, op)?;
    own.iter_mut().zip(all).for_each(|(e, n)| e.value = Kept::Number(n / divisor));
    Ok(())
}

/// The numbers of values of this rank.
fn numbers<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> Result<Vec<f64>> {
    let tensors = entries.clone().filter_map(|e| if let Kept::Local(t) = &e.value { Some(t) } else { None });
    let mut read = read(&tensors.collect::<Vec<_>>())?.into_iter();
    let number = |e: &Entry| match e.value {
        Kept::Number(n) => n,
        _ => read.next().unwrap_or(f64::NAN),
    };
    Ok(entries.map(number).collect())
}

fn rows(entries: Vec<Entry>) -> Result<Vec<Row>> {
    let numbers = numbers(entries.iter())?;
    let mut rows: Vec<Row> = vec![];
    for (e, number) in entries.into_iter().zip(numbers) {
        match rows.last_mut().filter(|row| row.step == e.step) {
            Some(row) => row.values.push((e.name, number)),
            None => rows.push(Row { step: e.step, time: e.time, values: vec![(e.name, number)] }),
        }
    }
    Ok(rows)
}
