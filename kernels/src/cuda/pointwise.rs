//! How a program that computes element by element is walked and launched (`kernels/cuda/pointwise.cuh`).
//!
//! The host decides what the kernel is compiled for: how many elements a vector has (as many as fit in 16 bytes of the
//! widest type and as the addresses and strides allow), which inputs are one element along a row, which are the same in
//! every row, and how many dims remain outside the rows. Few of these occur for one op, and only those are compiled.

use super::{Args, Define, Function, Launch, Queue, Source};
use crate::cpu::strided::Walk;
use crate::{KernelError, Result, Strides};
use smallvec::SmallVec;
use std::sync::OnceLock;

/// Threads of a block.
const THREADS: u32 = 256;
/// Dims outside the rows that a kernel takes.
const MOST_OUTER: usize = 7;

/// An operand of a walk: where it starts and how many bytes an element has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub at: *mut u8,
    pub size: usize,
}

/// A program over `pointwise.cuh`.
#[derive(Debug)]
pub(super) struct Pointwise {
    source: Source,
    extra: Option<Define>,
    /// Vectors that a thread has in flight.
    flight: u32,
    /// Whether the program reports values (`OF_REPORTS`).
    reports: bool,
    /// The form that was launched first, most often the only one: the number of the GPU, what it was compiled for, the
    /// kernel.
    first: OnceLock<(usize, Form, Function)>,
}

/// Constants that the kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    vector: u32,
    modes: u64,
    outer: u32,
    strided: bool,
}

impl Pointwise {
    /// A program of that many inputs.
    pub(super) const fn new(source: Source, extra: Option<Define>, inputs: usize) -> Pointwise {
        // Enough bytes on their way in every thread, and registers for them.
        let flight = match inputs {
            0 | 1 => 4,
            2 | 3 => 2,
            _ => 1,
        };
        Pointwise { source, extra, flight, reports: false, first: OnceLock::new() }
    }

    /// The same, for a program that reports values where `reports` is true.
    pub(super) fn reporting(self, reports: bool) -> Pointwise {
        Pointwise { reports, ..self }
    }

    /// Computes all elements of the walk. Operand 0 is the output; an input may be the same window.
    pub(super) fn launch(&self, q: &Queue, walk: &Walk, operands: &[Operand], scalars: &[u64]) -> Result<()> {
        if walk.dims.len() > MOST_OUTER + 1 {
            // More dims than a kernel takes: one launch for each index of the first.
            let inside = Walk {
                dims: walk.dims[1..].into(),
                strides: walk.strides.iter().map(|s| Strides::from(&s[1..])).collect(),
            };
            return (0..walk.dims[0]).try_for_each(|i| {
                let moved = |(k, o): (usize, &Operand)| {
                    let bytes = walk.strides[k][0] * i as isize * o.size as isize;
                    Operand { at: o.at.wrapping_offset(bytes), size: o.size }
                };
                let operands: SmallVec<[Operand; 8]> = operands.iter().enumerate().map(moved).collect();
                self.launch(q, &inside, &operands, scalars)
            });
        }
        let form = Form::of(walk, operands);
        let f = self.function(q, form)?;
        let (shape, words) = match form.outer {
            0 => self.flat(form, walk),
            _ => self.rows(q, form, walk, operands.len())?,
        };
        let mut words = words;
        words.extend(operands.iter().map(|o| o.at as u64));
        // Arrays in C have an element at least.
        words.extend((operands.len() == 1).then_some(0));
        words.extend_from_slice(scalars);
        words.extend(scalars.is_empty().then_some(0));
        if self.reports {
            words.extend(q.fault_words());
        }
        q.launch(f, shape, Args::new().words(&words))
    }

    fn function(&self, q: &Queue, form: Form) -> Result<Function> {
        let gpu = q.gpu().info().index;
        if let Some((g, known, f)) = self.first.get()
            && *g == gpu
            && *known == form
        {
            return Ok(*f);
        }
        let f = q.function(&self.source, "pointwise", &self.defines(form))?;
        let _ = self.first.set((gpu, form, f));
        Ok(f)
    }

    fn defines(&self, form: Form) -> SmallVec<[Define; 6]> {
        let mut defines: SmallVec<[Define; 6]> = self.extra.into_iter().collect();
        defines.push(Define::int("OF_V", i64::from(form.vector)));
        defines.push(Define::int("OF_U", i64::from(self.flight)));
        defines.push(Define::int("OF_MODES", form.modes as i64));
        defines.push(Define::int("OF_OUTER", i64::from(form.outer)));
        defines.push(Define::int("OF_STRIDED", i64::from(form.strided)));
        defines
    }

    /// The program that a walk asks for.
    pub(super) fn program(&self, walk: &Walk, operands: &[Operand]) -> Result<super::programs::Program> {
        let defines = self.defines(Form::of(walk, operands)).iter().map(Define::text).collect::<Result<_>>()?;
        Ok(super::programs::Program { source: self.source.clone(), defines })
    }

    fn flat(&self, form: Form, walk: &Walk) -> (Launch, SmallVec<[u64; 48]>) {
        let n = walk.inner();
        let vectors = n / form.vector as usize;
        let blocks = vectors.div_ceil((THREADS * self.flight) as usize).max(1);
        (Launch::new(blocks as u32, THREADS), smallvec::smallvec![n as u64])
    }

    fn rows(&self, q: &Queue, form: Form, walk: &Walk, operands: usize) -> Result<(Launch, SmallVec<[u64; 48]>)> {
        let last = walk.dims.len() - 1;
        let (rows, width) = (walk.rows(), walk.inner() / form.vector as usize);
        let (across, down) = block(width, rows, form.strided);
        let tiles = width.div_ceil(across as usize);
        let blocks = |repeat: u32| tiles * rows.div_ceil((down * repeat) as usize);
        let mut repeat = self.flight;
        // What is the same in every row is loaded once a thread: more rows a thread then, while there are threads enough.
        let shared = form.modes & 0xaaaa_aaaa_aaaa_aaaa != 0;
        let enough = q.gpu().multiprocessors() as usize * 16;
        while (shared && repeat < 16 && blocks(repeat) > 2 * enough) || blocks(repeat) > i32::MAX as usize {
            repeat *= 2;
        }
        let mut words: SmallVec<[u64; 48]> =
            smallvec::smallvec![rows as u64, width as u64, tiles as u64, u64::from(repeat)];
        // A walk of one strided dim has one row.
        let outer: &[usize] = if last == 0 { &[1] } else { &walk.dims[..last] };
        words.extend(outer.iter().map(|n| *n as u64));
        let start = words.len();
        words.resize(start + outer.len(), 0);
        let mut rest = u64::from(down);
        for d in (1..outer.len()).rev() {
            words[start + d] = rest % outer[d] as u64;
            rest /= outer[d] as u64;
        }
        words[start] = rest;
        words.extend((0..operands).map(|k| walk.inner_stride(k) as u64));
        for k in 0..operands {
            match last {
                0 => words.push(0),
                _ => words.extend(walk.strides[k][..last].iter().map(|s| *s as u64)),
            }
        }
        let launch = Launch { grid: (blocks(repeat) as u32, 1, 1), block: (across, down, 1), shared: 0 };
        Ok((launch, words))
    }
}

/// For kernels in which a thread has a column and goes down `flight` rows: the launch, and how many blocks lie beside each
/// other along a row.
pub(super) fn columns(width: usize, rows: usize, flight: u32) -> Result<(Launch, u64)> {
    let (across, down) = block(width, rows, false);
    let tiles = width.div_ceil(across as usize);
    let blocks = tiles.saturating_mul(rows.div_ceil((down * flight) as usize));
    let blocks = i32::try_from(blocks).map_err(|_| KernelError::new(format!("{rows} rows of {width} are too many")))?;
    Ok((Launch { grid: (blocks as u32, 1, 1), block: (across, down, 1), shared: 0 }, tiles as u64))
}

/// The sides of a block of threads for rows of that width.
fn block(width: usize, rows: usize, strided: bool) -> (u32, u32) {
    let at_most = |n: usize, limit: u32| (n.min(limit as usize) as u32).next_power_of_two().min(limit);
    if strided {
        // Neighbours in both directions share the lines of memory that either strides over.
        let down = at_most(rows, 8);
        return (at_most(width, THREADS / down), down);
    }
    let across = match width {
        0..32 => at_most(width.max(1), 32),
        _ => (width.div_ceil(width.div_ceil(THREADS as usize))).next_multiple_of(32) as u32,
    };
    (across, at_most(rows, THREADS / across).min(THREADS / across).max(1))
}

impl Form {
    fn of(walk: &Walk, operands: &[Operand]) -> Form {
        let last = walk.dims.len() - 1;
        let inner = |k: usize| walk.inner_stride(k);
        let strided = walk.inner() != 1 && (inner(0) != 1 || (1..operands.len()).any(|k| !matches!(inner(k), 0 | 1)));
        if last == 0 && !strided {
            let modes = (1..operands.len()).filter(|k| inner(*k) == 0).map(|k| 1 << (2 * (k - 1))).sum();
            return Form { vector: vector(walk, operands, 0), modes, outer: 0, strided };
        }
        let mut modes = 0;
        for k in 1..operands.len() {
            let one = !strided && inner(k) == 0;
            let same = walk.strides[k][..last].iter().all(|s| *s == 0);
            modes |= (u64::from(one) | u64::from(same) << 1) << (2 * (k - 1));
        }
        let vector = if strided { 1 } else { vector(walk, operands, last) };
        Form { vector, modes, outer: last.max(1) as u32, strided }
    }
}

/// Elements that all operands can be loaded and stored by at once.
fn vector(walk: &Walk, operands: &[Operand], last: usize) -> u32 {
    let mut v = 16 / operands.iter().map(|o| o.size).max().unwrap_or(16).min(16);
    let fits = |v: usize| {
        let row = last == 0 || walk.inner().is_multiple_of(v);
        row && operands.iter().enumerate().all(|(k, o)| {
            let steps = walk.strides[k][..last].iter().all(|s| s % v as isize == 0);
            walk.inner_stride(k) == 0 || (steps && (o.at as usize).is_multiple_of(v * o.size))
        })
    };
    while v > 1 && !fits(v) {
        v /= 2;
    }
    v as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(dims: &[usize], strides: &[&[isize]], sizes: &[usize], address: usize) -> (u32, u64, u32, bool) {
        let walk = Walk::new(dims, strides, true);
        let operands: Vec<Operand> = sizes.iter().map(|s| Operand { at: address as *mut u8, size: *s }).collect();
        let f = Form::of(&walk, &operands);
        (f.vector, f.modes, f.outer, f.strided)
    }

    #[test]
    fn forms() {
        // Contiguous: 16 bytes of the widest type; a tail does not matter, an address does.
        assert_eq!(form(&[5, 7], &[&[7, 1], &[7, 1]], &[2, 2], 256), (8, 0, 0, false));
        assert_eq!(form(&[5, 8], &[&[8, 1], &[8, 1]], &[2, 4], 256), (4, 0, 0, false));
        assert_eq!(form(&[5, 8], &[&[8, 1], &[8, 1]], &[2, 2], 260), (2, 0, 0, false));
        // One element beside a tensor; the second input is the number.
        assert_eq!(form(&[64], &[&[1], &[1], &[0]], &[4, 4, 4], 256), (4, 0b0100, 0, false));
        // A row for all rows, a column, an odd width.
        assert_eq!(form(&[6, 64], &[&[64, 1], &[64, 1], &[0, 1]], &[4, 4, 4], 256), (4, 0b1000, 1, false));
        assert_eq!(form(&[6, 64], &[&[64, 1], &[64, 1], &[1, 0]], &[4, 4, 4], 256), (4, 0b0100, 1, false));
        assert_eq!(form(&[6, 63], &[&[63, 1], &[63, 1], &[1, 0]], &[4, 4, 4], 256), (1, 0b0100, 1, false));
        // Transposed, and every second element.
        assert_eq!(form(&[6, 64], &[&[64, 1], &[1, 6]], &[4, 4], 256), (1, 0, 1, true));
        assert_eq!(form(&[64], &[&[1], &[2]], &[4, 4], 256), (1, 0b10, 1, true));
    }

    #[test]
    fn blocks_fit_the_rows() {
        assert_eq!(block(96, 1000, false), (96, 2));
        assert_eq!(block(384, 1000, false), (192, 1));
        assert_eq!(block(3, 1000, false), (4, 64));
        assert_eq!(block(100_000, 2, false), (256, 1));
        assert_eq!(block(100, 100, true), (32, 8));
        assert_eq!(block(100_000, 1, true), (256, 1));
        for width in 1..600 {
            for rows in [1, 2, 3, 7, 100] {
                let (x, y) = block(width, rows, false);
                assert!(x >= 1 && y >= 1 && x * y <= THREADS, "{width} {rows}: {x} {y}");
            }
        }
    }
}
