//! Rules of one element, and the pass over a parameter and its state that carries one out.

use multiversion::multiversion;
use smallvec::SmallVec;

use super::super::acc::Acc;
use super::super::optim::cut;
use super::super::rows::{Buffered, Buffers, Rows};
use super::kind::{NUMBERS, Step};
use crate::View;
use crate::parallel::parallel_for;

/// The rule of one element.
trait Rule<A> {
    /// How many of the states it has.
    const STATES: usize;
    /// The new parameter; changes the states.
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A;
}

struct Adam<const LARGEST: bool>;
impl<A: Acc, const LARGEST: bool> Rule<A> for Adam<LARGEST> {
    const STATES: usize = 2 + LARGEST as usize;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [keep, add, rest1, beta2, rest2, root, eps, step, ..] = *n;
        let g = g + add * p;
        s[0] = s[0] + (g - s[0]) * rest1;
        s[1] = s[1] * beta2 + g * g * rest2;
        let mut square = s[1];
        if LARGEST {
            // NaN of the second moment stays.
            s[2] = if s[2] > square { s[2] } else { square };
            square = s[2];
        }
        p * keep - step * (s[0] / (square.sqrt() * root + eps))
    }
}

struct RmsProp<const CENTERED: bool, const BUFFER: bool>;
impl<A: Acc, const CENTERED: bool, const BUFFER: bool> Rule<A> for RmsProp<CENTERED, BUFFER> {
    const STATES: usize = 1 + CENTERED as usize + BUFFER as usize;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [lr, alpha, rest, eps, decay, momentum, ..] = *n;
        let g = g + decay * p;
        s[0] = s[0] * alpha + g * g * rest;
        let mut square = s[0];
        if CENTERED {
            s[1] = s[1] + (g - s[1]) * rest;
            square = square - s[1] * s[1];
        }
        let along = g / (square.sqrt() + eps);
        if !BUFFER {
            return p - lr * along;
        }
        let at = 1 + CENTERED as usize;
        s[at] = s[at] * momentum + along;
        p - lr * s[at]
    }
}

struct Adagrad;
impl<A: Acc> Rule<A> for Adagrad {
    const STATES: usize = 1;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [lr, eps, decay, ..] = *n;
        let g = g + decay * p;
        s[0] = s[0] + g * g;
        p - lr * (g / (s[0].sqrt() + eps))
    }
}

struct Adadelta;
impl<A: Acc> Rule<A> for Adadelta {
    const STATES: usize = 2;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [lr, rho, rest, eps, decay, ..] = *n;
        let g = g + decay * p;
        s[0] = s[0] * rho + g * g * rest;
        let along = (s[1] + eps).sqrt() / (s[0] + eps).sqrt() * g;
        s[1] = s[1] * rho + along * along * rest;
        p - lr * along
    }
}

struct Lion;
impl<A: Acc> Rule<A> for Lion {
    const STATES: usize = 1;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [keep, lr, beta1, rest1, beta2, rest2, ..] = *n;
        let along = s[0] * beta1 + g * rest1;
        s[0] = s[0] * beta2 + g * rest2;
        p * keep - lr * sign(along)
    }
}

struct LambDirection;
impl<A: Acc> Rule<A> for LambDirection {
    const STATES: usize = 3;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [beta1, rest1, beta2, rest2, first, root, eps, decay, ..] = *n;
        s[0] = s[0] * beta1 + g * rest1;
        s[1] = s[1] * beta2 + g * g * rest2;
        s[2] = s[0] * first / (s[1].sqrt() * root + eps) + decay * p;
        p
    }
}

struct NAdam;
impl<A: Acc> Rule<A> for NAdam {
    const STATES: usize = 2;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [keep, add, rest1, beta2, rest2, root, eps, of_gradient, of_mean] = *n;
        let g = g + add * p;
        s[0] = s[0] + (g - s[0]) * rest1;
        s[1] = s[1] * beta2 + g * g * rest2;
        p * keep - (of_gradient * g + of_mean * s[0]) / (s[1].sqrt() * root + eps)
    }
}

struct Adamax;
impl<A: Acc> Rule<A> for Adamax {
    const STATES: usize = 2;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [add, rest1, beta2, eps, step, ..] = *n;
        let g = g + add * p;
        s[0] = s[0] + (g - s[0]) * rest1;
        let (before, now) = (s[1] * beta2, (if g < A::ZERO { -g } else { g }) + eps);
        s[1] = if before <= now {
            now
        } else if before > now {
            before
        } else {
            // NaN of either stays.
            before + now
        };
        p - step * (s[0] / s[1])
    }
}

struct Asgd;
impl<A: Acc> Rule<A> for Asgd {
    const STATES: usize = 1;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [keep, rate, add, mix, ..] = *n;
        let p = p * keep - rate * (g + add * p);
        s[0] = if mix == A::ONE { p } else { s[0] + (p - s[0]) * mix };
        p
    }
}

struct Rprop;
impl<A: Acc> Rule<A> for Rprop {
    const STATES: usize = 2;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [shrink, grow, least, most, ..] = *n;
        let agree = g * s[0];
        let factor = if agree > A::ZERO {
            grow
        } else if agree < A::ZERO {
            shrink
        } else {
            A::ONE
        };
        let size = s[1] * factor;
        s[1] = if size < least {
            least
        } else if size > most {
            most
        } else {
            size
        };
        // Where the gradient has changed its sign, the element stays for one step.
        s[0] = if agree < A::ZERO { A::ZERO } else { g };
        p - s[1] * sign(s[0])
    }
}

/// The sign; 0 and NaN stay what they are.
#[inline(always)]
fn sign<A: Acc>(x: A) -> A {
    if x > A::ZERO {
        A::ONE
    } else if x < A::ZERO {
        -A::ONE
    } else {
        x
    }
}

struct Average;
impl<A: Acc> Rule<A> for Average {
    const STATES: usize = 0;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, _: &mut [A; 3]) -> A {
        p + (g - p) * n[0]
    }
}

pub(super) fn subtracted<A: Buffered>(x: &View, y: &View, factor: f64) {
    rows::<A, Subtract>([factor; NUMBERS], x, y, &[]);
}

struct Subtract;
impl<A: Acc> Rule<A> for Subtract {
    const STATES: usize = 0;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, _: &mut [A; 3]) -> A {
        p - n[0] * g
    }
}

pub(super) fn chosen<A: Buffered>(step: &Step, p: &View, g: &View, s: &[&View]) {
    let n = step.numbers();
    match *step {
        Step::Adam { largest: false, .. } | Step::RAdam { .. } => rows::<A, Adam<false>>(n, p, g, s),
        Step::Adam { largest: true, .. } => rows::<A, Adam<true>>(n, p, g, s),
        Step::RmsProp { centered, buffer, .. } => match (centered, buffer) {
            (false, false) => rows::<A, RmsProp<false, false>>(n, p, g, s),
            (false, true) => rows::<A, RmsProp<false, true>>(n, p, g, s),
            (true, false) => rows::<A, RmsProp<true, false>>(n, p, g, s),
            (true, true) => rows::<A, RmsProp<true, true>>(n, p, g, s),
        },
        Step::Adagrad { .. } => rows::<A, Adagrad>(n, p, g, s),
        Step::Adadelta { .. } => rows::<A, Adadelta>(n, p, g, s),
        Step::Lion { .. } => rows::<A, Lion>(n, p, g, s),
        Step::LambDirection { .. } => rows::<A, LambDirection>(n, p, g, s),
        Step::NAdam { .. } => rows::<A, NAdam>(n, p, g, s),
        Step::Adamax { .. } => rows::<A, Adamax>(n, p, g, s),
        Step::Asgd { .. } => rows::<A, Asgd>(n, p, g, s),
        Step::Rprop { .. } => rows::<A, Rprop>(n, p, g, s),
        Step::Average { .. } => rows::<A, Average>(n, p, g, s),
    }
}

type Parts = Vec<SmallVec<[Rows; 5]>>;

fn parts<const N: usize>(views: [&View; N]) -> Parts {
    cut(views).into_iter().map(|rows| rows.into_iter().collect()).collect()
}

fn rows<A: Buffered, R: Rule<A>>(numbers: [f64; NUMBERS], param: &View, grad: &View, states: &[&View]) {
    let numbers = numbers.map(A::from_f64);
    let all: Parts = match *states {
        [] => parts([param, grad]),
        [a] => parts([param, grad, a]),
        [a, b] => parts([param, grad, a, b]),
        [a, b, c, ..] => parts([param, grad, a, b, c]),
    };
    for part in &all {
        let (param, grad, states) = (&part[0], &part[1], &part[2..]);
        parallel_for(param.count, param.grain(), &|range| {
            A::with_buffers(|Buffers { a, b, c, d, more, .. }| {
                for row in range {
                    // SAFETY: rows are in range and float (checked); each row is updated by one thread.
                    unsafe {
                        let g = grad.read(row, a);
                        param.update(row, b, |p| {
                            updated(states.first(), row, c, |s0| {
                                updated(states.get(1), row, d, |s1| {
                                    updated(states.get(2), row, &mut more[0], |s2| {
                                        run::<A, R>(&numbers, p, g, s0, s1, s2)
                                    });
                                });
                            });
                        });
                    }
                }
            });
        });
    }
}

/// Lets `f` change a row; an empty one where there are no rows.
///
/// # Safety
/// As [`Rows::update`].
unsafe fn updated<A: Acc>(rows: Option<&Rows>, row: usize, buffer: &mut Vec<A>, f: impl FnOnce(&mut [A])) {
    match rows {
        // SAFETY: the caller's promise.
        Some(rows) => unsafe { rows.update(row, buffer, f) },
        None => f(&mut []),
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
fn run<A: Acc, R: Rule<A>>(n: &[A; NUMBERS], p: &mut [A], g: &[A], s0: &mut [A], s1: &mut [A], s2: &mut [A]) {
    let len = p.len();
    let g = &g[..len];
    // States that the rule does not have are empty.
    let s0 = &mut s0[..if R::STATES > 0 { len } else { 0 }];
    let s1 = &mut s1[..if R::STATES > 1 { len } else { 0 }];
    let s2 = &mut s2[..if R::STATES > 2 { len } else { 0 }];
    for i in 0..len {
        let mut s = [A::ZERO; 3];
        if R::STATES > 0 {
            s[0] = s0[i];
        }
        if R::STATES > 1 {
            s[1] = s1[i];
        }
        if R::STATES > 2 {
            s[2] = s2[i];
        }
        p[i] = R::one(n, p[i], g[i], &mut s);
        if R::STATES > 0 {
            s0[i] = s[0];
        }
        if R::STATES > 1 {
            s1[i] = s[1];
        }
        if R::STATES > 2 {
            s2[i] = s[2];
        }
    }
}
