//! Loops over one row, compiled for several instruction sets. Sums have a fixed order: one partial sum a lane, then the
//! lanes pairwise.

use multiversion::{multiversion, target::target_cfg_f};

use super::acc::{Acc, finite};

/// Partial results kept side by side.
const LANES: usize = 32;

/// Folds two slices of one length to one value through [`LANES`] partial results.
#[inline(always)]
fn fold2<A: Copy, S: Copy>(x: &[A], y: &[A], start: S, step: impl Fn(S, A, A) -> S, join: impl Fn(S, S) -> S) -> S {
    let mut lanes = [start; LANES];
    // Chunks of a known length: no bounds checks are left that would keep the loop from becoming vector instructions.
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in xs.iter().zip(ys) {
        for l in 0..LANES {
            lanes[l] = step(lanes[l], x[l], y[l]);
        }
    }
    for ((lane, x), y) in lanes.iter_mut().zip(x_rest).zip(y_rest) {
        *lane = step(*lane, *x, *y);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] = join(lanes[l], lanes[l + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Folds one slice likewise.
#[inline(always)]
fn fold<A: Copy, S: Copy>(x: &[A], start: S, step: impl Fn(S, A) -> S, join: impl Fn(S, S) -> S) -> S {
    fold2(x, x, start, |s, x, _| step(s, x), join)
}

/// The largest number. NaN is passed over: it comes back through the sum of exponentials.
#[inline(always)]
fn max_body<A: Acc>(x: &[A]) -> A {
    let larger = |m: A, x: A| if x > m { x } else { m };
    fold(x, -A::INFINITY, larger, larger)
}

/// `sum(exp(x - max))`, writing the terms to `y`.
#[inline(always)]
fn exp_sum_body<A: Acc>(x: &[A], max: A, y: &mut [A], fma: bool) -> A {
    let n = x.len();
    let y = &mut y[..n];
    for i in 0..n {
        y[i] = (x[i] - max).exp_weight(fma);
    }
    fold(y, A::ZERO, |s, y| s + y, |a, b| a + b)
}

macro_rules! versions {
    ($(#[$doc:meta])* pub(crate) fn $name:ident<A: Acc>($($arg:ident: $t:ty),* $(,)?) $(-> $r:ty)? $body:block) => {
        $(#[$doc])*
        #[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
        pub(crate) fn $name<A: Acc>($($arg: $t),*) $(-> $r)? $body
    };
}

versions! {
    /// `y = exp(x - max(x)) / sum`. A row whose maximum is minus infinity gives NaN, as in PyTorch.
    pub(crate) fn softmax<A: Acc>(x: &[A], y: &mut [A]) {
        let max = max_body(x);
        let scale = A::ONE / exp_sum_body(x, max, y, target_cfg_f!(target_feature = "fma"));
        for y in y.iter_mut() {
            *y = *y * scale;
        }
    }
}

versions! {
    /// `y = x - logsumexp(x)`; `y` also serves as scratch.
    pub(crate) fn log_softmax<A: Acc>(x: &[A], y: &mut [A]) {
        let max = max_body(x);
        let log = exp_sum_body(x, max, y, target_cfg_f!(target_feature = "fma")).log();
        for (y, x) in y.iter_mut().zip(x) {
            *y = *x - max - log;
        }
    }
}

versions! {
    /// `log(sum(exp(x)))`; minus infinity for a row of minus infinities, infinity where there is an infinity.
    pub(crate) fn logsumexp<A: Acc>(x: &[A]) -> A {
        let max = max_body(x);
        if max.abs() == A::INFINITY {
            return if x.iter().any(|x| x.is_nan()) { A::NAN } else { max };
        }
        let fma = target_cfg_f!(target_feature = "fma");
        let sum = fold(x, A::ZERO, |s, x| s + (x - max).exp_weight(fma), |a, b| a + b);
        max + sum.log()
    }
}

versions! {
    /// `dx = y * (dy - sum(dy * y))`
    pub(crate) fn softmax_grad<A: Acc>(dy: &[A], y: &[A], dx: &mut [A]) {
        let n = y.len();
        let (dy, dx) = (&dy[..n], &mut dx[..n]);
        let dot = fold2(dy, y, A::ZERO, |s, dy, y| s + dy * y, |a, b| a + b);
        for i in 0..n {
            dx[i] = y[i] * (dy[i] - dot);
        }
    }
}

versions! {
    /// `dx = dy - exp(y) * sum(dy)`
    pub(crate) fn log_softmax_grad<A: Acc>(dy: &[A], y: &[A], dx: &mut [A]) {
        let n = y.len();
        let (dy, dx) = (&dy[..n], &mut dx[..n]);
        let sum = fold(dy, A::ZERO, |s, dy| s + dy, |a, b| a + b);
        for i in 0..n {
            dx[i] = dy[i] - y[i].exp() * sum;
        }
    }
}

versions! {
    /// The sum of `from - x`.
    pub(crate) fn sum_below<A: Acc>(from: A, x: &[A]) -> A {
        fold(x, A::ZERO, |s, x| s + (from - x), |a, b| a + b)
    }
}

versions! {
    /// `dx = (exp(x - lse) - less) * scale`
    pub(crate) fn exp_scaled<A: Acc>(x: &[A], lse: A, less: A, scale: A, dx: &mut [A]) {
        let fma = target_cfg_f!(target_feature = "fma");
        let dx = &mut dx[..x.len()];
        for i in 0..x.len() {
            dx[i] = ((x[i] - lse).exp_weight(fma) - less) * scale;
        }
    }
}

versions! {
    /// Mean and mean of squared distances to it.
    pub(crate) fn moments<A: Acc>(x: &[A]) -> (A, A) {
        let n = A::from_f64(x.len() as f64);
        let mean = fold(x, A::ZERO, |s, x| s + x, |a, b| a + b) / n;
        let square = |d: A| d * d;
        let squares = fold(x, A::ZERO, |s, x| s + square(x - mean), |a, b| a + b);
        (mean, squares / n)
    }
}

versions! {
    /// Sum.
    pub(crate) fn sum<A: Acc>(x: &[A]) -> A {
        fold(x, A::ZERO, |s, x| s + x, |a, b| a + b)
    }
}

versions! {
    /// Sum of products.
    pub(crate) fn dot<A: Acc>(x: &[A], y: &[A]) -> A {
        fold2(x, y, A::ZERO, |s, x, y| s + x * y, |a, b| a + b)
    }
}

versions! {
    /// One step of the online softmax over a row of scores. With the maximum `max` and the sum `sum` of what the row gave
    /// before, replaces `scores` by `exp(scores - new max)`; returns the new maximum, the new sum, and the factor for what
    /// was accumulated before.
    pub(crate) fn online_softmax<A: Acc>(scores: &mut [A], max: A, sum: A) -> (A, A, A) {
        let largest = max_body(scores);
        let new = if largest > max { largest } else { max };
        // Nothing but minus infinities so far: any finite shift gives the zeros that are wanted.
        let shift = if new == -A::INFINITY { A::ZERO } else { new };
        let fma = target_cfg_f!(target_feature = "fma");
        for s in scores.iter_mut() {
            *s = (*s - shift).exp_weight(fma);
        }
        let added = fold(scores, A::ZERO, |s, x| s + x, |a, b| a + b);
        let factor = (max - shift).exp();
        (new, sum * factor + added, factor)
    }
}

versions! {
    /// `x = x * factor`
    pub(crate) fn scale<A: Acc>(x: &mut [A], factor: A) {
        for x in x.iter_mut() {
            *x = *x * factor;
        }
    }
}

versions! {
    /// `x = exp(x - shift)`
    pub(crate) fn exp_in_place<A: Acc>(x: &mut [A], shift: A) {
        let fma = target_cfg_f!(target_feature = "fma");
        for x in x.iter_mut() {
            *x = (*x - shift).exp_weight(fma);
        }
    }
}

versions! {
    /// `dp = p * (dp - delta)`
    pub(crate) fn scores_grad<A: Acc>(p: &[A], delta: A, dp: &mut [A]) {
        for (dp, p) in dp.iter_mut().zip(p) {
            *dp = *p * (*dp - delta);
        }
    }
}

versions! {
    /// Sum of squares.
    pub(crate) fn squares<A: Acc>(x: &[A]) -> A {
        fold(x, A::ZERO, |s, x| s + x * x, |a, b| a + b)
    }
}

versions! {
    /// Sum of squares in f64, whatever the type.
    pub(crate) fn squares_f64<A: Acc>(x: &[A]) -> f64 {
        fold(x, 0.0f64, |s, x| s + x.to_f64() * x.to_f64(), |a, b| a + b)
    }
}

versions! {
    /// `y = (x - mean) * rstd * weight + bias`; absent weight and bias are empty.
    pub(crate) fn normalize<A: Acc>(x: &[A], mean: A, rstd: A, weight: &[A], bias: &[A], y: &mut [A]) {
        let n = x.len();
        let y = &mut y[..n];
        match (weight.is_empty(), bias.is_empty()) {
            (true, true) => (0..n).for_each(|i| y[i] = (x[i] - mean) * rstd),
            (false, true) => {
                let w = &weight[..n];
                (0..n).for_each(|i| y[i] = (x[i] - mean) * rstd * w[i]);
            }
            (true, false) => {
                let b = &bias[..n];
                (0..n).for_each(|i| y[i] = (x[i] - mean) * rstd + b[i]);
            }
            (false, false) => {
                let (w, b) = (&weight[..n], &bias[..n]);
                (0..n).for_each(|i| y[i] = (x[i] - mean) * rstd * w[i] + b[i]);
            }
        }
    }
}

versions! {
    /// `dx = rstd * (g - mean(g) - h * mean(g * h))` with `g = dy * weight` and `h = (x - mean) * rstd`; without
    /// `centered` (rms) the term `mean(g)` is missing.
    pub(crate) fn normalize_grad<A: Acc>(
        dy: &[A],
        x: &[A],
        mean: A,
        rstd: A,
        weight: &[A],
        centered: bool,
        dx: &mut [A],
    ) {
        let n = x.len();
        let (dy, dx) = (&dy[..n], &mut dx[..n]);
        if weight.is_empty() {
            dx.copy_from_slice(dy);
        } else {
            let w = &weight[..n];
            (0..n).for_each(|i| dx[i] = dy[i] * w[i]);
        }
        let count = A::from_f64(n as f64);
        let mean_g = if centered { fold(dx, A::ZERO, |s, g| s + g, |a, b| a + b) / count } else { A::ZERO };
        let mut mean_gh = fold2(dx, x, A::ZERO, |s, g, x| s + g * (x - mean), |a, b| a + b) * rstd / count;
        if !finite(mean_gh) {
            // By the definition: where h is zero an infinity is NaN.
            mean_gh = fold2(dx, x, A::ZERO, |s, g, x| s + g * ((x - mean) * rstd), |a, b| a + b) / count;
        }
        for i in 0..n {
            dx[i] = rstd * (dx[i] - mean_g - (x[i] - mean) * rstd * mean_gh);
        }
    }
}

versions! {
    /// `dweight += dy * (x - mean) * rstd`, `dbias += dy`; an absent sum is empty.
    pub(crate) fn add_norm_sums<A: Acc>(
        dy: &[A],
        x: &[A],
        mean: A,
        rstd: A,
        dweight: &mut [A],
        dbias: &mut [A],
    ) {
        let n = x.len();
        let dy = &dy[..n];
        if !dweight.is_empty() {
            let dw = &mut dweight[..n];
            (0..n).for_each(|i| dw[i] = dw[i] + dy[i] * ((x[i] - mean) * rstd));
        }
        if !dbias.is_empty() {
            let db = &mut dbias[..n];
            (0..n).for_each(|i| db[i] = db[i] + dy[i]);
        }
    }
}

versions! {
    /// `sums += x`.
    pub(crate) fn add<A: Acc>(x: &[A], sums: &mut [f64]) {
        sums.iter_mut().zip(x).for_each(|(s, x)| *s += x.to_f64());
    }
}

versions! {
    /// `sums += (x - centre)²`.
    pub(crate) fn add_squares<A: Acc>(x: &[A], centre: &[A], sums: &mut [f64]) {
        for ((s, x), c) in sums.iter_mut().zip(x).zip(centre) {
            let d = *x - *c;
            *s += (d * d).to_f64();
        }
    }
}

versions! {
    /// `sums += dy (x - centre)`.
    pub(crate) fn add_centred_products<A: Acc>(dy: &[A], x: &[A], centre: &[A], sums: &mut [f64]) {
        for (((s, x), c), dy) in sums.iter_mut().zip(x).zip(centre).zip(dy) {
            *s += (*dy * (*x - *c)).to_f64();
        }
    }
}

versions! {
    /// The sums of dy and of `dy (x - centre)`.
    pub(crate) fn centred_sums<A: Acc>(dy: &[A], x: &[A], centre: A) -> (A, A) {
        let step = |(s, p): (A, A), dy: A, x: A| (s + dy, p + dy * (x - centre));
        fold2(dy, x, (A::ZERO, A::ZERO), step, |a, b| (a.0 + b.0, a.1 + b.1))
    }
}

versions! {
    /// `y = x * scale + shift`.
    pub(crate) fn affine<A: Acc>(x: &[A], scale: A, shift: A, y: &mut [A]) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = *x * scale + shift);
    }
}

versions! {
    /// `y = x * scale + shift`, a scale and a shift for each.
    pub(crate) fn affines<A: Acc>(x: &[A], scale: &[A], shift: &[A], y: &mut [A]) {
        for (((y, x), scale), shift) in y.iter_mut().zip(x).zip(scale).zip(shift) {
            *y = *x * *scale + *shift;
        }
    }
}

versions! {
    /// `to = x * a + y * b + c`.
    pub(crate) fn combined<A: Acc>(x: &[A], y: &[A], by: [A; 3], to: &mut [A]) {
        for ((to, x), y) in to.iter_mut().zip(x).zip(y) {
            *to = *x * by[0] + *y * by[1] + by[2];
        }
    }
}

versions! {
    /// `to = x * a + y * b + c`, numbers for each.
    pub(crate) fn combined_each<A: Acc>(x: &[A], y: &[A], by: [&[A]; 3], to: &mut [A]) {
        let factors = by[0].iter().zip(by[1]).zip(by[2]);
        for (((to, x), y), ((a, b), c)) in to.iter_mut().zip(x).zip(y).zip(factors) {
            *to = *x * *a + *y * *b + *c;
        }
    }
}

versions! {
    /// For each column the larger of `best` and `x`, and in `of` the number of the row that it is from: the first of equals, the last NaN.
    pub(crate) fn largest_rows<A: Acc>(x: &[A], number: i32, best: &mut [A], of: &mut [i32]) {
        for ((x, best), of) in x.iter().zip(best).zip(of) {
            let takes = *x > *best || x.is_nan();
            *best = if takes { *x } else { *best };
            *of = if takes { number } else { *of };
        }
    }
}
