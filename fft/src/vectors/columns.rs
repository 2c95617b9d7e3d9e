//! Transforms of lines that lie side by side.

use super::butterflies::{Block, Lanes};
use super::lane::{Lane, instructions};
use super::passes::Passes;
use pulp::NullaryFnOnce;
use pulp::x86::V4;
use std::marker::PhantomData;

/// Numbers of a line at most: two buffers of all lanes stay in the second-level cache.
const LONGEST: usize = 1 << 12;

/// A planned transform of up to [`LANES`](Lane::LANES) lines of a length.
pub(crate) struct Columns<T> {
    instructions: V4,
    n: usize,
    inverse: bool,
    passes: Passes<T>,
}

/// Memory that a transform needs besides the lines.
pub(crate) type Room<T> = [Vec<Block<<T as Lane>::V>>; 2];

impl<T: Lane> Columns<T> {
    /// None where lines of this length, or this CPU, are left to others.
    pub(crate) fn new(n: usize, inverse: bool) -> Option<Columns<T>> {
        let s = instructions()?;
        (n <= LONGEST).then(|| Passes::new(n)).flatten().map(|passes| Columns { instructions: s, n, inverse, passes })
    }

    /// Room for transforms.
    pub(crate) fn room(&self) -> Room<T> {
        let zero = T::splat(self.instructions, T::zero());
        [vec![Block([zero; 2]); self.n], vec![Block([zero; 2]); self.n]]
    }

    /// Transforms lines, times a factor. `read(k)` is the k-th number of all lines as pairs of parts, and so is `write`.
    ///
    /// # Panics
    /// There are more lines than lanes.
    pub(crate) fn run<'a>(
        &self,
        room: &mut Room<T>,
        factor: T,
        read: impl Fn(usize) -> &'a [T],
        write: impl FnMut(usize) -> &'a mut [T],
    ) {
        self.instructions.vectorize(Call { columns: self, room, factor, read, write });
    }
}

struct Call<'a, T: Lane, R, W> {
    columns: &'a Columns<T>,
    room: &'a mut Room<T>,
    factor: T,
    read: R,
    write: W,
}

impl<'a, T: Lane, R: Fn(usize) -> &'a [T], W: FnMut(usize) -> &'a mut [T]> NullaryFnOnce for Call<'_, T, R, W> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Call { columns, room: [x, y], factor, read, mut write } = self;
        let s = columns.instructions;
        let (lanes, factor) = (Lanes::<T>(s, PhantomData), T::splat(s, factor));
        // The transform back is that of the numbers with their parts exchanged, exchanged again.
        let parts = |[re, im]: [T::V; 2]| if columns.inverse { [im, re] } else { [re, im] };
        for (k, x) in x.iter_mut().enumerate() {
            let row = read(k);
            let both = match row.len() == 2 * T::LANES {
                true => [T::load(row), T::load(&row[T::LANES..])],
                false => {
                    let mut both = [T::splat(s, T::zero()); 2];
                    T::numbers_mut(&mut both)[..row.len()].copy_from_slice(row);
                    both
                }
            };
            let [re, im] = T::split(s, both);
            *x = Block(parts([T::times(s, re, factor), T::times(s, im, factor)]));
        }
        columns.passes.run(lanes, x, y);
        for (k, y) in y.iter().enumerate() {
            let (row, both) = (write(k), T::join(s, parts(y.0)));
            match row.len() == 2 * T::LANES {
                true => T::store(both, row),
                false => row.copy_from_slice(&T::numbers(&both)[..row.len()]),
            }
        }
    }
}
