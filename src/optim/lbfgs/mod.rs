//! L-BFGS: steps along a direction that the last gradients give, with a line search.
//!
//! It evaluates a closure several times a step and decides by values of the loss, which the host waits for. Vectors are lists of tensors, one
//! for each parameter, laid out as it is; so their products are those of logical tensors, in any layout.

mod search;
mod state;

use super::saved::Notes;
use super::{check_distinct, check_rate};
use crate::context::no_grad;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::is_capturing;
use crate::tensor::Tensor;
use crate::trace;
use serde::{Deserialize, Serialize};

/// Settings of [`Lbfgs`]; PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LbfgsOptions {
    /// Length of a step along the direction, at first 1; a line search begins with it.
    pub lr: f64,
    /// Largest number of directions in one step.
    pub max_iter: usize,
    /// Largest number of evaluations in one step; 1.25 times the directions if not given.
    pub max_eval: Option<usize>,
    /// Largest magnitude of a gradient's element at which the step ends.
    pub tolerance_grad: f64,
    /// Least change of parameters or loss at which the step goes on.
    pub tolerance_change: f64,
    /// Number of past changes that give the direction.
    pub history_size: usize,
    /// The line search, if there is one.
    pub line_search_fn: Option<LineSearch>,
    /// Whether to maximize the loss.
    pub maximize: bool,
}

impl Default for LbfgsOptions {
    fn default() -> LbfgsOptions {
        LbfgsOptions {
            lr: 1.0,
            max_iter: 20,
            max_eval: None,
            tolerance_grad: 1e-7,
            tolerance_change: 1e-9,
            history_size: 100,
            line_search_fn: None,
            maximize: false,
        }
    }
}

/// A line search of [`Lbfgs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineSearch {
    /// By cubic interpolation to a point that fulfils the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and 3.6).
    StrongWolfe,
}

/// A vector in the space of all parameters.
type Vector = Vec<Tensor>;

/// A change of the parameters and that of the gradient.
struct Change {
    step: Vector,
    gradient: Vector,
    /// 1 over their product.
    ro: f64,
}

/// Vectors and numbers that one step leaves for the next.
#[derive(Default)]
struct Memory {
    iterations: u64,
    evaluations: u64,
    changes: Vec<Change>,
    /// Scale of the first estimate of the inverse Hessian.
    scale: f64,
    length: f64,
    direction: Vector,
    gradient: Vector,
}

/// L-BFGS (Liu and Nocedal, 1989), with PyTorch's formulas. Not an [`Optimizer`](super::Optimizer), because a step evaluates a closure.
///
/// ```
/// use oflow::optim::{Lbfgs, LbfgsOptions, LineSearch};
/// use oflow::prelude::*;
/// let w = full([2], 3.0, Device::Cpu)?.requires_grad_(true)?;
/// let options = LbfgsOptions { line_search_fn: Some(LineSearch::StrongWolfe), ..Default::default() };
/// let mut opt = Lbfgs::new(vec![w.clone()], options);
/// opt.step(|| {
///     w.set_grad(None)?;
///     let loss = w.sub(1.0)?.square()?.sum(())?;
///     loss.backward()?;
///     Ok(loss)
/// })?;
/// assert!(w.to_vec::<f32>()?.iter().all(|x| (x - 1.0).abs() < 1e-5));
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct Lbfgs {
    parameters: Vec<Tensor>,
    options: LbfgsOptions,
    notes: Notes,
    memory: Memory,
}

impl Lbfgs {
    /// Makes an optimizer of these parameters.
    pub fn new(parameters: Vec<Tensor>, options: LbfgsOptions) -> Lbfgs {
        Lbfgs { parameters, options, notes: Notes::new(), memory: Memory::default() }
    }
    /// Returns the parameters.
    pub fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }
    /// Returns the settings.
    pub fn options(&self) -> LbfgsOptions {
        self.options
    }
    /// Sets the settings of later steps.
    pub fn set_options(&mut self, options: LbfgsOptions) {
        self.options = options;
    }
    /// Returns what the program noted beside the settings.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }
    /// Notes plain values, which are saved with the settings.
    pub fn set_notes(&mut self, notes: Notes) {
        self.notes = notes;
    }

    /// Updates the parameters. The closure removes their gradients, computes the loss, calls `backward` and returns the loss; it is called
    /// several times, first with the parameters as they are. Returns the first loss.
    ///
    /// # Errors
    /// Those of the closure; while a graph is captured; if a parameter is given twice, and if the learning rate is none.
    #[track_caller]
    pub fn step(&mut self, closure: impl FnMut() -> Result<Tensor>) -> Result<Tensor> {
        self.step_at(CallSite::here(), closure)
    }

    /// The same for a call at `site`.
    ///
    /// # Errors
    /// Those of [`step`](Lbfgs::step).
    pub fn step_at(&mut self, site: CallSite, mut closure: impl FnMut() -> Result<Tensor>) -> Result<Tensor> {
        if is_capturing() {
            return Err(Error::unsupported(
                "a step of L-BFGS depends on values of the loss, which a graph that is captured has not",
            )
            .at(site)
            .help("call `step` outside of the graph; its closure may run a graph"));
        }
        check_rate(self.options.lr, site)?;
        check_distinct(&self.parameters).map_err(|e| e.at(site))?;
        let first = closure()?;
        if self.parameters.is_empty() {
            return Ok(first);
        }
        self.memory.evaluations += 1;
        let mut problem =
            Problem { parameters: &self.parameters, maximize: self.options.maximize, closure: &mut closure };
        let (loss, gradient) = (problem.loss(&first)?, problem.gradient()?);
        self.memory.run(&self.options, &mut problem, loss, gradient)?;
        trace::step(self.parameters.as_ptr() as usize);
        Ok(first)
    }
}

impl Memory {
    /// The directions of a step, from a point with this loss and gradient.
    fn run(&mut self, o: &LbfgsOptions, problem: &mut Problem<'_>, mut loss: f64, mut gradient: Vector) -> Result<()> {
        let max_eval = o.max_eval.unwrap_or(o.max_iter * 5 / 4);
        let mut evaluations = 1;
        if largest(&gradient)? <= o.tolerance_grad {
            return Ok(());
        }
        for iteration in 1..=o.max_iter {
            self.iterations += 1;
            let direction = self.next_direction(&gradient, o.history_size)?;
            self.direction = direction;
            let before = loss;
            self.gradient = gradient.clone();
            self.length = match self.iterations {
                1 => (1.0 / magnitudes(&gradient)?).min(1.0) * o.lr,
                _ => o.lr,
            };
            let slope = dot(&gradient, &self.direction)?;
            if slope > -o.tolerance_change {
                break;
            }
            let made = match o.line_search_fn {
                Some(LineSearch::StrongWolfe) => {
                    let start = search::Start { loss, gradient: &gradient, slope, length: self.length };
                    let tries = max_eval.saturating_sub(evaluations);
                    let found = search::strong_wolfe(problem, &self.direction, start, tries, o.tolerance_change)?;
                    (loss, gradient, self.length) = (found.loss, found.gradient, found.length);
                    problem.go(self.length, &self.direction)?;
                    found.evaluations
                }
                None => {
                    problem.go(self.length, &self.direction)?;
                    // The last point of a step is not evaluated.
                    if iteration < o.max_iter {
                        (loss, gradient) = problem.evaluate()?;
                    }
                    usize::from(iteration < o.max_iter)
                }
            };
            evaluations += made;
            self.evaluations += made as u64;
            let done = evaluations >= max_eval
                || largest(&gradient)? <= o.tolerance_grad
                || largest(&self.direction)? * self.length.abs() <= o.tolerance_change
                || (loss - before).abs() < o.tolerance_change;
            if done {
                break;
            }
        }
        Ok(())
    }

    /// The direction from a point with this gradient: the inverse Hessian that the changes give, times the gradient.
    fn next_direction(&mut self, gradient: &[Tensor], history: usize) -> Result<Vector> {
        let _quiet = no_grad();
        let mut along: Vector = gradient.iter().map(Tensor::neg).collect::<Result<_>>()?;
        if self.iterations == 1 {
            self.changes.clear();
            self.scale = 1.0;
            return Ok(along);
        }
        let change: Vector = gradient.iter().zip(&self.gradient).map(|(g, old)| g.sub(old)).collect::<Result<_>>()?;
        let step: Vector = self.direction.iter().map(|d| d.mul(self.length)).collect::<Result<_>>()?;
        let product = dot(&change, &step)?;
        if product > 1e-10 && history > 0 {
            if self.changes.len() >= history {
                self.changes.remove(0);
            }
            self.scale = product / dot(&change, &change)?;
            self.changes.push(Change { step, gradient: change, ro: 1.0 / product });
        }
        let mut parts = vec![];
        for c in self.changes.iter().rev() {
            let part = dot(&c.step, &along)? * c.ro;
            add(&along, &c.gradient, -part)?;
            parts.push(part);
        }
        along = along.iter().map(|a| a.mul(self.scale)).collect::<Result<_>>()?;
        for (c, part) in self.changes.iter().zip(parts.iter().rev()) {
            let other = dot(&c.gradient, &along)? * c.ro;
            add(&along, &c.step, part - other)?;
        }
        Ok(along)
    }
}

/// A loss that a closure computes of parameters.
struct Problem<'a> {
    parameters: &'a [Tensor],
    maximize: bool,
    closure: &'a mut dyn FnMut() -> Result<Tensor>,
}

impl Problem<'_> {
    /// The number that is minimized.
    fn loss(&self, loss: &Tensor) -> Result<f64> {
        let value = number(&loss.detach())?;
        Ok(if self.maximize { -value } else { value })
    }
    /// A copy of the gradient; zeros where a parameter has none.
    fn gradient(&self) -> Result<Vector> {
        let _quiet = no_grad();
        let one = |p: &Tensor| match p.grad() {
            Some(g) if self.maximize => laid_as(&g, p)?.neg(),
            Some(g) => laid_as(&g, p)?.copy(),
            None => crate::functional::zeros_like(&p.detach()),
        };
        self.parameters.iter().map(one).collect()
    }
    fn evaluate(&mut self) -> Result<(f64, Vector)> {
        let loss = (self.closure)()?;
        Ok((self.loss(&loss)?, self.gradient()?))
    }
    /// Moves the parameters.
    fn go(&self, length: f64, direction: &[Tensor]) -> Result<()> {
        let _quiet = no_grad();
        add(self.parameters, direction, length)
    }
}

/// A gradient in the layout of its parameter.
fn laid_as(g: &Tensor, p: &Tensor) -> Result<Tensor> {
    match p.global() {
        Some(own) => g.detach().to_global((&own.placement, own.sbp.clone())),
        None => Ok(g.detach()),
    }
}

/// `x += factor * y`.
fn add(x: &[Tensor], y: &[Tensor], factor: f64) -> Result<()> {
    x.iter().zip(y).try_for_each(|(x, y)| x.add_(&y.mul(factor)?).map(drop))
}

/// A number that is a tensor without dims, on whatever ranks.
fn number(t: &Tensor) -> Result<f64> {
    match t.global() {
        Some(g) => t.to_global(crate::sbp::NdSbp::broadcast(g.placement.axes()))?.item(),
        None => t.item(),
    }
}

fn dot(x: &[Tensor], y: &[Tensor]) -> Result<f64> {
    let _quiet = no_grad();
    x.iter().zip(y).map(|(x, y)| number(&x.mul(y)?.sum(())?)).sum()
}

/// The largest magnitude of an element.
fn largest(x: &[Tensor]) -> Result<f64> {
    let _quiet = no_grad();
    x.iter().filter(|t| t.numel() > 0).try_fold(0.0, |most, t| {
        let own = number(&t.norm(f64::INFINITY, ())?)?;
        // NaN stays.
        Ok(if own > most || own.is_nan() { own } else { most })
    })
}

/// The sum of all magnitudes.
fn magnitudes(x: &[Tensor]) -> Result<f64> {
    let _quiet = no_grad();
    x.iter().map(|t| number(&t.norm(1.0, ())?)).sum()
}
