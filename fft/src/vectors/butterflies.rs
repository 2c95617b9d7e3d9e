//! Transforms of few numbers, of all lanes at once: each number is a vector of real parts and one of imaginary parts.

use super::lane::Lane;
use pulp::x86::V4;
use std::marker::PhantomData;

/// The real and the imaginary parts of one number of each lane.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Block<V>(pub(crate) [V; 2]);

/// The arithmetic of blocks. `W` as in the signature of a transform is `exp(-2πi / n)`.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<T>(pub(crate) V4, pub(crate) PhantomData<T>);

type B<T> = Block<<T as Lane>::V>;

fn real<T: Lane>(x: f64) -> T {
    T::from_f64(x).unwrap_or_else(T::zero)
}

impl<T: Lane> Lanes<T> {
    #[inline(always)]
    fn add(self, a: B<T>, b: B<T>) -> B<T> {
        Block([T::plus(self.0, a.0[0], b.0[0]), T::plus(self.0, a.0[1], b.0[1])])
    }
    #[inline(always)]
    fn sub(self, a: B<T>, b: B<T>) -> B<T> {
        Block([T::minus(self.0, a.0[0], b.0[0]), T::minus(self.0, a.0[1], b.0[1])])
    }
    /// `a + x c`, `a - x c`, part by part.
    #[inline(always)]
    fn more(self, a: B<T>, x: B<T>, c: f64) -> B<T> {
        let c = T::splat(self.0, real(c));
        Block([T::fma(self.0, x.0[0], c, a.0[0]), T::fma(self.0, x.0[1], c, a.0[1])])
    }
    #[inline(always)]
    fn less(self, a: B<T>, x: B<T>, c: f64) -> B<T> {
        let c = T::splat(self.0, real(c));
        Block([T::fnma(self.0, x.0[0], c, a.0[0]), T::fnma(self.0, x.0[1], c, a.0[1])])
    }
    /// Both parts times a real number.
    #[inline(always)]
    pub(crate) fn times(self, a: B<T>, c: f64) -> B<T> {
        let c = T::splat(self.0, real(c));
        Block([T::times(self.0, a.0[0], c), T::times(self.0, a.0[1], c)])
    }
    /// `a - i b` and `a + i b`.
    #[inline(always)]
    fn beside(self, a: B<T>, b: B<T>) -> [B<T>; 2] {
        let ([ar, ai], [br, bi], s) = (a.0, b.0, self.0);
        [Block([T::plus(s, ar, bi), T::minus(s, ai, br)]), Block([T::minus(s, ar, bi), T::plus(s, ai, br)])]
    }
    /// The product with a complex number for each lane.
    #[inline(always)]
    pub(crate) fn product(self, a: B<T>, w: B<T>) -> B<T> {
        let ([ar, ai], [wr, wi], s) = (a.0, w.0, self.0);
        Block([T::fnma(s, ai, wi, T::times(s, ar, wr)), T::fma(s, ai, wr, T::times(s, ar, wi))])
    }
    /// The product with one complex number.
    #[inline(always)]
    pub(crate) fn turned_by(self, a: B<T>, w: [T; 2]) -> B<T> {
        self.product(a, Block([T::splat(self.0, w[0]), T::splat(self.0, w[1])]))
    }

    #[inline(always)]
    pub(crate) fn of_two(self, a: [B<T>; 2]) -> [B<T>; 2] {
        [self.add(a[0], a[1]), self.sub(a[0], a[1])]
    }

    #[inline(always)]
    pub(crate) fn of_three(self, a: [B<T>; 3]) -> [B<T>; 3] {
        const SIN: f64 = 0.866_025_403_784_438_6;
        let [sum, difference] = self.of_two([a[1], a[2]]);
        let [y1, y2] = self.beside(self.less(a[0], sum, 0.5), self.times(difference, SIN));
        [self.add(a[0], sum), y1, y2]
    }

    #[inline(always)]
    pub(crate) fn of_four(self, a: [B<T>; 4]) -> [B<T>; 4] {
        let [even, odd] = [self.of_two([a[0], a[2]]), self.of_two([a[1], a[3]])];
        let [y1, y3] = self.beside(even[1], odd[1]);
        let [y0, y2] = self.of_two([even[0], odd[0]]);
        [y0, y1, y2, y3]
    }

    #[inline(always)]
    pub(crate) fn of_five(self, a: [B<T>; 5]) -> [B<T>; 5] {
        const COS: [f64; 2] = [0.309_016_994_374_947_45, 0.809_016_994_374_947_5];
        const SIN: [f64; 2] = [0.951_056_516_295_153_5, 0.587_785_252_292_473_1];
        let ([s1, d1], [s2, d2]) = (self.of_two([a[1], a[4]]), self.of_two([a[2], a[3]]));
        let along =
            [self.less(self.more(a[0], s1, COS[0]), s2, COS[1]), self.more(self.less(a[0], s1, COS[1]), s2, COS[0])];
        let across = [self.more(self.times(d1, SIN[0]), d2, SIN[1]), self.less(self.times(d1, SIN[1]), d2, SIN[0])];
        let ([y1, y4], [y2, y3]) = (self.beside(along[0], across[0]), self.beside(along[1], across[1]));
        [self.add(a[0], self.add(s1, s2)), y1, y2, y3, y4]
    }

    #[inline(always)]
    pub(crate) fn of_eight(self, a: [B<T>; 8]) -> [B<T>; 8] {
        const HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;
        let even = self.of_four([a[0], a[2], a[4], a[6]]);
        let odd = self.of_four([a[1], a[3], a[5], a[7]]);
        let s = self.0;
        // √2 W times a number; W = (1 - i) / √2 and W³ = -i W.
        let turned = |x: B<T>| Block([T::plus(s, x.0[0], x.0[1]), T::minus(s, x.0[1], x.0[0])]);
        let (one, three) = (turned(odd[1]), turned(odd[3]));
        let [y0, y4] = self.of_two([even[0], odd[0]]);
        let [y2, y6] = self.beside(even[2], odd[2]);
        let (y1, y5) = (self.more(even[1], one, HALF), self.less(even[1], one, HALF));
        let [y3, y7] = self.beside(even[3], self.times(three, HALF));
        [y0, y1, y2, y3, y4, y5, y6, y7]
    }
}
