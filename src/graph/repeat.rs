//! Sections of a graph that are repeated.

use super::{GraphBuilder, GraphOutput, SessionBuilder};
use crate::error::{CallSite, Error, Result};
use crate::functional::stack;
use crate::interpreter::{Capture, Repetition, capture_in_progress};
use crate::tensor::Tensor;

/// An iteration of a repeated section: see [`GraphBuilder::repeat`].
pub struct Iteration<'a> {
    of: Of<'a>,
}

enum Of<'a> {
    /// Section that is captured: the iteration stands for all.
    Section(&'a Repetition<'a>),
    /// Number of the iteration, and of all iterations.
    Loop(usize, usize),
}

impl Iteration<'_> {
    /// Returns the slice of a tensor along dim 0 that has the number of the iteration: `x[i]`, without that dim. Dim 0 has one slice for each
    /// iteration and is not split over ranks. Nothing is copied.
    ///
    /// # Errors
    /// If the tensor has another number of slices, is split along dim 0, requires a gradient, or is made in the section itself.
    #[track_caller]
    pub fn of(&self, t: &Tensor) -> Result<Tensor> {
        let site = CallSite::here();
        match self.of {
            Of::Section(repetition) => repetition.of(t, site),
            Of::Loop(i, n) if t.shape().first() == Some(&n) => t.select(0, i as i64).map_err(|e| e.at(site)),
            Of::Loop(_, n) => {
                Err(Error::argument(format!("{t:?} has no slice along dim 0 for each of the {n} iterations"))
                    .at(site)
                    .help("reshape it so that dim 0 counts the iterations"))
            }
        }
    }
}

/// Repeats a section as [`GraphBuilder::scan`] does, in the graph that this thread captures. Where it captures none, a loop makes the calls `n` times:
/// functions that are called both ways need no other form for a graph.
///
/// ```
/// use oflow::graph::scan;
/// use oflow::prelude::*;
/// let x = ones([5, 2], Device::Cpu)?;
/// let (sum, sums) = scan(5, zeros([2], Device::Cpu)?, |i, sum| {
///     let next = sum.add(&i.of(&x)?)?;
///     Ok((next.clone(), next))
/// })?;
/// assert_eq!((sum.to_vec::<f32>()?, sums.shape()), (vec![5.0; 2], &[5, 2][..]));
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// Those of [`GraphBuilder::scan`] in a capture; those of `f`; and without a capture, if a section that is repeated 0 times collects tensors.
#[track_caller]
pub fn scan<C: GraphOutput, O: GraphOutput>(
    n: usize,
    init: C,
    mut f: impl FnMut(&Iteration<'_>, C) -> Result<(C, O)>,
) -> Result<(C, O)> {
    let site = CallSite::here();
    if let Some(capture) = capture_in_progress() {
        return scan_in(&capture, (n, site), init, f);
    }
    let (mut carried, mut all) = (init, vec![]);
    for i in 0..n {
        let (next, outs) = f(&Iteration { of: Of::Loop(i, n) }, carried)?;
        carried = next;
        all.push(tensors(outs));
    }
    let _line = site.scope();
    let columns = 0..all.first().map_or(0, Vec::len);
    let column = |c: usize| stack(&all.iter().filter_map(|outs| outs.get(c)).collect::<Vec<_>>(), 0);
    let outs = columns.map(column).collect::<Result<Vec<_>>>()?;
    match O::give(&mut outs.into_iter()) {
        Some(outs) => Ok((carried, outs)),
        None => Err(Error::argument("a loop that is repeated 0 times collects no tensors")
            .at(site)
            .help("repeat it at least once, or in a graph, where the types of its results are known")),
    }
}

fn scan_in<C: GraphOutput, O: GraphOutput>(
    capture: &Capture,
    (n, site): (usize, CallSite),
    init: C,
    f: impl FnOnce(&Iteration<'_>, C) -> Result<(C, O)>,
) -> Result<(C, O)> {
    let lost = || Error::registry("a repeated section has fewer tensors than its closure").at(site);
    let body = |repetition: &Repetition<'_>, carried: Vec<Tensor>| {
        let carried = C::give(&mut carried.into_iter()).ok_or_else(lost)?;
        let (next, outs) = f(&Iteration { of: Of::Section(repetition) }, carried)?;
        Ok((tensors(next), tensors(outs)))
    };
    let (carried, outs) = capture.repeat(n, tensors(init), body, site)?;
    let carried = C::give(&mut carried.into_iter()).ok_or_else(lost)?;
    Ok((carried, O::give(&mut outs.into_iter()).ok_or_else(lost)?))
}

impl GraphBuilder<'_> {
    /// Repeats a section `n` times: what `f` does is captured once, and a run carries it out n times, as a loop `for i in 0..n` around the calls would,
    /// with the same bits. So neither the capture nor the plan grows with n. Returns what `f` returns, of all iterations, stacked along a new dim 0.
    ///
    /// `f` may read any tensor, take the i-th slice of one ([`Iteration::of`]), write tensors from outside of the section in place, draw random
    /// numbers, and call `backward`: gradients of leaves accumulate over the iterations. [`scan`](GraphBuilder::scan) carries values from one
    /// iteration to the next.
    ///
    /// ```
    /// use oflow::graph::{Graph, GraphOptions};
    /// use oflow::optim::{Optimizer, Sgd, SgdOptions};
    /// use oflow::prelude::*;
    /// let w = ones([3, 1], Device::Cpu)?.requires_grad_(true)?;
    /// let mut opt = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.1, ..Default::default() });
    /// let batches = ones([4, 2, 3], Device::Cpu)?; // 4 micro-batches of 2 rows
    /// let mut step = Graph::build(
    ///     |g| {
    ///         let x = g.input("x", &batches)?;
    ///         opt.zero_grad();
    ///         let losses = g.repeat(4, |i| {
    ///             let loss = i.of(&x)?.matmul(&w)?.square()?.mean(())?.mul(0.25)?;
    ///             loss.backward()?;
    ///             Ok(loss.detach())
    ///         })?;
    ///         opt.step()?;
    ///         losses.sum(())
    ///     },
    ///     GraphOptions::default(),
    /// )?;
    /// assert_eq!(step.run(&[&batches])?.item()?, 9.0);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `f`, and if an iteration would do something else than the first one: a tensor that the section makes outlives it, a gradient is
    /// there in some iterations only, another handle of a tensor that the section writes is read.
    #[track_caller]
    pub fn repeat<O: GraphOutput>(&self, n: usize, f: impl FnOnce(&Iteration<'_>) -> Result<O>) -> Result<O> {
        let site = CallSite::here();
        scan_in(self.capture, (n, site), (), |i, ()| Ok(((), f(i)?))).map(|((), outs)| outs)
    }

    /// Repeats a section, as [`repeat`](GraphBuilder::repeat) does, and carries values from one iteration to the next. `f` is given the carried values,
    /// in the first iteration `init`, and returns the next ones and what is collected. Returns the carried values after the last iteration, and
    /// what was collected, stacked along a new dim 0.
    ///
    /// Carried values keep their shape, dtype and layout. What the section writes into them in place, `init` does not see.
    ///
    /// ```
    /// use oflow::graph::{Graph, GraphOptions};
    /// use oflow::prelude::*;
    /// let (x0, decay) = (ones([5, 2], Device::Cpu)?, full([2], 0.5, Device::Cpu)?);
    /// let mut means = Graph::build(
    ///     |g| {
    ///         let x = g.input("x", &x0)?;
    ///         let begin = zeros([2], Device::Cpu)?;
    ///         let (_, all) = g.scan(5, begin, |i, mean| {
    ///             let next = mean.mul(&decay)?.add(&i.of(&x)?)?;
    ///             Ok((next.clone(), next))
    ///         })?;
    ///         Ok(all)
    ///     },
    ///     GraphOptions::default(),
    /// )?;
    /// assert_eq!(means.run(&[&x0])?.to_vec::<f32>()?[8..], [1.9375; 2]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`repeat`](GraphBuilder::repeat), and if a carried value requires a gradient or changes its type.
    #[track_caller]
    pub fn scan<C: GraphOutput, O: GraphOutput>(
        &self,
        n: usize,
        init: C,
        f: impl FnOnce(&Iteration<'_>, C) -> Result<(C, O)>,
    ) -> Result<(C, O)> {
        scan_in(self.capture, (n, CallSite::here()), init, f)
    }
}

fn tensors(of: impl GraphOutput) -> Vec<Tensor> {
    let mut all = vec![];
    of.take(&mut all);
    all
}

impl SessionBuilder<'_> {
    /// Repeats a section of the step: see [`GraphBuilder::repeat`].
    ///
    /// # Errors
    /// Those of [`GraphBuilder::repeat`].
    #[track_caller]
    pub fn repeat<O: GraphOutput>(&self, n: usize, f: impl FnOnce(&Iteration<'_>) -> Result<O>) -> Result<O> {
        self.graph().repeat(n, f)
    }

    /// Repeats a section of the step and carries values from one iteration to the next: see [`GraphBuilder::scan`].
    ///
    /// # Errors
    /// Those of [`GraphBuilder::scan`].
    #[track_caller]
    pub fn scan<C: GraphOutput, O: GraphOutput>(
        &self,
        n: usize,
        init: C,
        f: impl FnOnce(&Iteration<'_>, C) -> Result<(C, O)>,
    ) -> Result<(C, O)> {
        self.graph().scan(n, init, f)
    }
}
