//! Hidden scores have no influence on a query's result. In a tile, hidden scores have weight 0, and 0 times an infinity is
//! NaN: rows of results that are NaN beside hidden scores are computed again, from what is seen alone.

use super::super::acc::Acc;
use super::super::rowmath;
use super::super::rows::{Buffered, Rows};
use super::{Attention, Operand};

pub(super) fn has_nan<A: Acc>(row: &[A]) -> bool {
    row.iter().any(|x| x.is_nan())
}

/// Number that is subtracted from scores before `exp`: `lse`, or where all scores are minus infinity a number that makes
/// zeros of them.
pub(super) fn shift_of<A: Acc>(lse: A) -> A {
    if lse == -A::INFINITY { A::INFINITY } else { lse }
}

/// `to += factor from`.
fn add<A: Acc>(to: &mut [A], factor: A, from: &[A]) {
    to.iter_mut().zip(from).for_each(|(to, x)| *to = *to + factor * *x);
}

/// `exp(x - shift)`, as in tiles.
fn weight<A: Acc>(x: A, shift: A) -> A {
    let mut x = [x];
    rowmath::exp_in_place(&mut x, shift);
    x[0]
}

/// The inputs of one attention.
pub(super) struct Inputs<'a> {
    pub(super) q: &'a Operand<'a>,
    pub(super) k: &'a Operand<'a>,
    pub(super) v: &'a Operand<'a>,
    pub(super) settings: &'a Attention,
}

/// Further inputs of the gradient.
pub(super) struct Results<'a> {
    pub(super) out: &'a Operand<'a>,
    pub(super) dout: &'a Operand<'a>,
    pub(super) lses: &'a Rows,
}

impl Inputs<'_> {
    /// `to` = the sum of `exp(score - max)` times the values that a query sees: the first `keys`.
    ///
    /// # Safety
    /// The query, the keys and their values exist, and nobody writes them.
    pub(super) unsafe fn values<A: Buffered>(&self, head: usize, query: usize, keys: usize, max: A, to: &mut [A]) {
        let mut buffers: [Vec<A>; 2] = std::array::from_fn(|_| vec![]);
        let [a, b] = &mut buffers;
        // SAFETY (all): the caller's promise.
        let q = unsafe { self.q.rows.read(self.q.row(head, query), a) };
        to.fill(A::ZERO);
        for j in 0..keys {
            let score =
                A::from_f64(self.settings.scale) * rowmath::dot(q, unsafe { self.k.rows.read(self.k.row(head, j), b) });
            add(to, weight(score, max), unsafe { self.v.rows.read(self.v.row(head, j), b) });
        }
    }

    /// Calls `run` with what the gradients are made of.
    ///
    /// # Safety
    /// The query and the key exist, and nobody writes what belongs to them.
    unsafe fn pair<A: Buffered>(
        &self,
        of: &Results<'_>,
        head: usize,
        (query, key): (usize, usize),
        run: &mut dyn FnMut(Pair<'_, A>),
    ) {
        let mut buffers: [Vec<A>; 5] = std::array::from_fn(|_| vec![]);
        let [a, b, c, d, e] = &mut buffers;
        // SAFETY (all): the caller's promise.
        let (q, k) =
            unsafe { (self.q.rows.read(self.q.row(head, query), a), self.k.rows.read(self.k.row(head, key), b)) };
        let (v, at) = (unsafe { self.v.rows.read(self.v.row(head, key), c) }, of.out.row(head, query));
        let (out, dout) = unsafe { (of.out.rows.read(at, d), of.dout.rows.read(at, e)) };
        let scale = A::from_f64(self.settings.scale);
        let weight = weight(scale * rowmath::dot(q, k), shift_of(unsafe { of.lses.get(at) }));
        let dscore = weight * (rowmath::dot(dout, v) - rowmath::dot(dout, out)) * scale;
        run(Pair { q, k, dout, weight, dscore });
    }

    /// The gradient of a query, from the keys that it sees: the first `keys`.
    ///
    /// # Safety
    /// As [`Inputs::values`], and the same for the results.
    pub(super) unsafe fn query_grad<A: Buffered>(
        &self,
        of: &Results<'_>,
        head: usize,
        query: usize,
        keys: usize,
        dq: &mut [A],
    ) {
        dq.fill(A::ZERO);
        for key in 0..keys {
            // SAFETY: the caller's promise.
            unsafe { self.pair(of, head, (query, key), &mut |p: Pair<'_, A>| add(dq, p.dscore, p.k)) };
        }
    }

    /// The gradients of a key and its value, from the queries that see it: those from `first` on.
    ///
    /// # Safety
    /// As [`Inputs::query_grad`].
    pub(super) unsafe fn key_grad<A: Buffered>(
        &self,
        of: &Results<'_>,
        head: usize,
        key: usize,
        queries: std::ops::Range<usize>,
        dk: &mut [A],
        dv: &mut [A],
    ) {
        dk.fill(A::ZERO);
        dv.fill(A::ZERO);
        for query in queries {
            let mut each = |p: Pair<'_, A>| {
                add(dk, p.dscore, p.q);
                add(dv, p.weight, p.dout);
            };
            // SAFETY: the caller's promise.
            unsafe { self.pair(of, head, (query, key), &mut each) };
        }
    }
}

/// A query and a key that it sees.
struct Pair<'a, A> {
    q: &'a [A],
    k: &'a [A],
    dout: &'a [A],
    weight: A,
    /// Of the inner product, so times `scale`.
    dscore: A,
}
