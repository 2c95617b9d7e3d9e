//! Resampling of the last dims: padding by elements of the image, interpolation, windows; and the gradients of these. Where elements are
//! moved only, whole rows are; otherwise one dim is done after the other, by a table of weights, and the gradient is the transposed
//! table.

use super::acc::{Acc, read, with_acc, write};
use super::lane::with_bits;
use crate::parallel::{GRAIN, parallel_for};
use crate::resample::Line;
use crate::{DType, KernelError, Result, View};
use multiversion::multiversion;

/// Planes of a call: how many, and that the tensors fit the lines.
pub(crate) fn planes(image: &View, result: &View, lines: &[Line]) -> Result<usize> {
    let (i, r) = (image.dims(), result.dims());
    let lead = i.len().wrapping_sub(lines.len());
    let fits = lines.len() <= i.len()
        && (1..=3).contains(&lines.len())
        && i.len() == r.len()
        && i[..lead] == r[..lead]
        && lines.iter().enumerate().all(|(d, l)| [i[lead + d], r[lead + d]] == [l.image, l.result])
        && image.dtype() == result.dtype()
        && image.is_contiguous()
        && result.is_contiguous();
    match fits {
        true => Ok(i[..lead].iter().product()),
        false => Err(KernelError::new(format!(
            "{} {i:?} and {} {r:?} do not fit for {} resampled dims, or are not contiguous",
            image.dtype(),
            result.dtype(),
            lines.len()
        ))),
    }
}

/// `out`: x resampled by the lines.
///
/// # Errors
/// If the tensors do not fit, or are no floats where elements are weighted.
pub fn resample(x: &View, lines: &[Line], out: &View) -> Result<()> {
    let planes = planes(x, out, lines)?;
    if out.is_empty() {
        return Ok(());
    }
    if lines.iter().all(|l| l.rule.moves()) {
        with_bits!(x.dtype(), T => move_elements::<T>(x, planes, lines, out));
        return Ok(());
    }
    with_acc!(x.dtype(), forward(x, planes, lines, out))
}

fn forward<A: Acc>(x: &View, planes: usize, lines: &[Line], out: &View) -> Result<()> {
    let wide = x.dtype() == DType::F64;
    weigh::<A>(x, planes, lines.iter().map(|l| Table::new(l, wide)).collect(), out)
}

/// The gradient of [`resample`]: each element of dy, times its weights, added to the elements that it was made of.
///
/// # Errors
/// If the tensors do not fit, or are no floats.
pub fn resample_grad(dy: &View, lines: &[Line], out: &View) -> Result<()> {
    let planes = planes(out, dy, lines)?;
    if out.is_empty() {
        return Ok(());
    }
    with_acc!(dy.dtype(), backward(dy, planes, lines, out))
}

fn backward<A: Acc>(dy: &View, planes: usize, lines: &[Line], out: &View) -> Result<()> {
    let wide = dy.dtype() == DType::F64;
    weigh::<A>(dy, planes, lines.iter().map(|l| Table::new(l, wide).transposed()).collect(), out)
}

/// A sparse matrix that takes a line of `from` elements to one of `to`.
struct Table<A> {
    from: usize,
    to: usize,
    /// Where each element's weights end.
    ends: Vec<u32>,
    at: Vec<u32>,
    weight: Vec<A>,
    /// How many weights each element has, if all have as many; then `at` and `weight` have the first ones of all elements, then the
    /// second ones, and so on.
    each: Option<usize>,
}

impl<A: Acc> Table<A> {
    fn new(line: &Line, wide: bool) -> Table<A> {
        let (mut ends, mut at, mut weight) = (vec![], vec![], vec![]);
        for o in 0..line.result {
            let taps = line.taps(o, wide);
            for k in 0..taps.n {
                assert!(taps.at[k] < line.image, "an element outside the image");
                at.push(taps.at[k] as u32);
                weight.push(A::from_f64(taps.weight[k]));
            }
            ends.push(at.len() as u32);
        }
        Table { from: line.image, to: line.result, ends, at, weight, each: None }
    }

    fn range(&self, o: usize) -> std::ops::Range<usize> {
        let start = if o == 0 { 0 } else { self.ends[o - 1] as usize };
        start..self.ends[o] as usize
    }

    fn transposed(self) -> Table<A> {
        let mut ends = vec![0u32; self.from];
        self.at.iter().for_each(|i| ends[*i as usize] += 1);
        let mut next = vec![0u32; self.from];
        let mut sum = 0;
        for (start, end) in next.iter_mut().zip(&mut ends) {
            *start = sum;
            sum += *end;
            *end = sum;
        }
        let (mut at, mut weight) = (vec![0; self.at.len()], vec![A::ZERO; self.at.len()]);
        for o in 0..self.to {
            for k in self.range(o) {
                let to = &mut next[self.at[k] as usize];
                (at[*to as usize], weight[*to as usize]) = (o as u32, self.weight[k]);
                *to += 1;
            }
        }
        Table { from: self.to, to: self.from, ends, at, weight, each: None }
    }

    /// Whether nothing is done.
    fn is_identity(&self) -> bool {
        self.from == self.to
            && self.at.len() == self.to
            && (0..self.to).all(|o| self.range(o) == (o..o + 1) && self.at[o] as usize == o && self.weight[o] == A::ONE)
    }

    /// Turns the weights for elements that have as many.
    fn arranged(mut self) -> Table<A> {
        let each = self.at.len() / self.to.max(1);
        if !(1..=4).contains(&each) || (0..self.to).any(|o| self.range(o).len() != each) {
            return self;
        }
        let turned = |k: usize| k % self.to * each + k / self.to;
        let at = (0..self.at.len()).map(|k| self.at[turned(k)]).collect();
        let weight = (0..self.at.len()).map(|k| self.weight[turned(k)]).collect();
        (self.at, self.weight, self.each) = (at, weight, Some(each));
        self
    }

    /// The weights of element `o`.
    fn of(&self, o: usize) -> impl Iterator<Item = (usize, A)> {
        let (range, step) = match self.each {
            Some(each) => (o..o + (each - 1) * self.to + 1, self.to),
            None => (self.range(o), 1),
        };
        range.step_by(step).map(|k| (self.at[k] as usize, self.weight[k]))
    }
}

/// A dim that is done: around it lie `outer` and `inner` elements.
struct Pass {
    table: usize,
    outer: usize,
    inner: usize,
}

/// Applies a table to each of the last dims. Dims that shrink come first, from the outermost, because rows are cheaper than columns;
/// those that grow last, from the innermost.
fn weigh<A: Acc>(x: &View, planes: usize, tables: Vec<Table<A>>, out: &View) -> Result<()> {
    let tables: Vec<Table<A>> = tables.into_iter().map(Table::arranged).collect();
    let n = tables.len();
    let mut size: Vec<usize> = tables.iter().map(|t| t.from).collect();
    let shrinks = |d: &usize| tables[*d].to < tables[*d].from;
    let order = (0..n).filter(shrinks).chain((0..n).rev().filter(|d| !shrinks(d)));
    let (mut passes, mut largest) = (vec![], 0);
    for d in order.filter(|d| !tables[*d].is_identity()) {
        passes.push(Pass { table: d, outer: size[..d].iter().product(), inner: size[d + 1..].iter().product() });
        size[d] = tables[d].to;
        largest = largest.max(size.iter().product());
    }
    let (from, to) = (tables.iter().map(|t| t.from).product(), tables.iter().map(|t| t.to).product());
    let grain = (GRAIN / largest.max(from).max(1)).max(1);
    parallel_for(planes, grain, &|range| {
        let (mut first, mut last, mut here, mut next) = (vec![], vec![], vec![], vec![]);
        for plane in range {
            // SAFETY: a plane of the contiguous tensor.
            let source: &[A] = unsafe { read(x, plane * from, from, &mut first) };
            // SAFETY: a plane of the contiguous output, which belongs to this task.
            unsafe {
                write(out, plane * to, to, &mut last, |result| {
                    for (k, pass) in passes.iter().enumerate() {
                        let table = &tables[pass.table];
                        let count = pass.outer * table.to * pass.inner;
                        // What was made before lies in `here`.
                        let src: &[A] = if k == 0 { source } else { &here };
                        if k + 1 == passes.len() {
                            apply(table, pass, src, result);
                        } else {
                            next.resize(count, A::ZERO);
                            apply(table, pass, src, &mut next);
                            std::mem::swap(&mut here, &mut next);
                        }
                    }
                    if passes.is_empty() {
                        result.copy_from_slice(source);
                    }
                });
            }
        }
    });
    Ok(())
}

fn apply<A: Acc>(table: &Table<A>, pass: &Pass, src: &[A], dst: &mut [A]) {
    let (from, to) = (table.from * pass.inner, table.to * pass.inner);
    assert!(src.len() >= pass.outer * from && dst.len() >= pass.outer * to, "lines do not fit");
    for block in 0..pass.outer {
        let (src, dst) = (&src[block * from..][..from], &mut dst[block * to..][..to]);
        if pass.inner == 1 { along(table, src, dst) } else { across(table, pass.inner, src, dst) }
    }
}

/// Rows of `inner` elements, each a weighted sum of rows.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
fn across<A: Acc>(table: &Table<A>, inner: usize, src: &[A], dst: &mut [A]) {
    for (o, to) in dst.chunks_exact_mut(inner).enumerate() {
        let row = |i: usize| &src[i * inner..][..inner];
        let mut weights = table.of(o);
        match (weights.next(), weights.next()) {
            (None, _) => to.fill(A::ZERO),
            (Some((i, w)), None) => to.iter_mut().zip(row(i)).for_each(|(t, x)| *t = w * *x),
            (Some((i, v)), Some((j, w))) => {
                to.iter_mut().zip(row(i)).zip(row(j)).for_each(|((t, x), y)| *t = v * *x + w * *y);
            }
        }
        for (i, w) in weights {
            to.iter_mut().zip(row(i)).for_each(|(t, x)| *t = *t + w * *x);
        }
    }
}

/// A line, each element a weighted sum.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
fn along<A: Acc>(table: &Table<A>, src: &[A], dst: &mut [A]) {
    assert!(src.len() == table.from && dst.len() == table.to, "the line does not fit");
    // SAFETY: indices of a table are below `from`, which `new` and `transposed` see to.
    let x = |k: usize| unsafe { *src.get_unchecked(table.at[k] as usize) };
    let n = table.to;
    let (at, weight) = (&table.at[..], &table.weight[..]);
    // SAFETY: as above, for a part of the indices.
    let part = |k: usize| (&at[k * n..][..n], &weight[k * n..][..n]);
    macro_rules! sum {
        ($($k:literal)*) => {{
            let parts = [$(part($k)),*];
            for (o, to) in dst.iter_mut().enumerate() {
                // SAFETY: indices of a table are below `from`; `o` is below the length of each part.
                *to = unsafe {
                    let mut sum = A::ZERO;
                    $(
                        let (at, weight) = (parts[$k].0.get_unchecked(o), parts[$k].1.get_unchecked(o));
                        let term = *weight * *src.get_unchecked(*at as usize);
                        sum = if $k == 0 { term } else { sum + term };
                    )*
                    sum
                };
            }
        }};
    }
    match table.each {
        Some(1) => sum!(0),
        Some(2) => sum!(0 1),
        Some(3) => sum!(0 1 2),
        Some(4) => sum!(0 1 2 3),
        _ => {
            let mut k = 0;
            for (to, end) in dst.iter_mut().zip(&table.ends) {
                let mut sum = A::ZERO;
                while k < *end as usize {
                    sum = sum + weight[k] * x(k);
                    k += 1;
                }
                *to = sum;
            }
        }
    }
}

/// In the place of an element: there is none, the result is zero.
const NONE: u32 = u32::MAX;

/// Elements of a row that lie side by side in the image: at most so many pieces are moved as wholes.
const PIECE: usize = 8;

/// Moves elements, row by row.
fn move_elements<T: Copy + Default + Send + Sync>(x: &View, planes: usize, lines: &[Line], out: &View) {
    let wide = x.dtype() == DType::F64;
    let index = |line: &Line| -> Vec<u32> {
        let of = |o: usize| {
            let taps = line.taps(o, wide);
            assert!(taps.n == 0 || taps.at[0] < line.image, "an element outside the image");
            if taps.n == 0 { NONE } else { taps.at[0] as u32 }
        };
        (0..line.result).map(of).collect()
    };
    let (Some(last), lead) = (lines.last(), &lines[..lines.len() - 1]) else { return };
    // Rows of the image for the rows of the result.
    let mut rows = vec![Some(0)];
    for line in lead {
        let of = index(line);
        let below = |row: &Option<usize>| {
            let row = *row;
            of.iter().map(move |i| row.filter(|_| *i != NONE).map(|r| r * line.image + *i as usize)).collect::<Vec<_>>()
        };
        rows = rows.iter().flat_map(below).collect();
    }
    let columns = index(last);
    // (first of the result, first of the image, how many)
    let mut pieces: Vec<(usize, u32, usize)> = vec![];
    for (o, i) in columns.iter().enumerate() {
        match pieces.last_mut() {
            Some((_, first, n)) if *first == NONE && *i == NONE => *n += 1,
            Some((_, first, n)) if *first != NONE && *i != NONE && *first as usize + *n == *i as usize => *n += 1,
            _ => pieces.push((o, *i, 1)),
        }
    }
    let whole = pieces.len() * PIECE <= columns.len();
    let (width, wide_row) = (last.image, last.result);
    let image = width * lead.iter().map(|l| l.image).product::<usize>();
    let (from, to) = (x.ptr() as usize, out.ptr() as usize);
    parallel_for(planes * rows.len(), (GRAIN / wide_row.max(1)).max(1), &|range| {
        let first = range.start;
        let (mut plane, mut r) = (first / rows.len(), first % rows.len());
        for row in range {
            let dst = (to as *mut T).wrapping_add(row * wide_row);
            // SAFETY: a row of the contiguous output, which belongs to this task.
            let dst = unsafe { std::slice::from_raw_parts_mut(dst, wide_row) };
            match rows[r] {
                None => dst.fill(T::default()),
                Some(_) if row > first && r > 0 && rows[r] == rows[r - 1] => {
                    // SAFETY: the row before, which this task has written.
                    let before = unsafe { std::slice::from_raw_parts(dst.as_ptr().wrapping_sub(wide_row), wide_row) };
                    dst.copy_from_slice(before);
                }
                Some(source) => {
                    let src = (from as *const T).wrapping_add(plane * image + source * width);
                    // SAFETY: a row of the contiguous image.
                    let src = unsafe { std::slice::from_raw_parts(src, width) };
                    if whole {
                        for (o, i, n) in &pieces {
                            let to = &mut dst[*o..][..*n];
                            if *i == NONE {
                                to.fill(T::default())
                            } else {
                                to.copy_from_slice(&src[*i as usize..][..*n])
                            }
                        }
                    } else {
                        pick(&columns, src, dst);
                    }
                }
            }
            r += 1;
            if r == rows.len() {
                (plane, r) = (plane + 1, 0);
            }
        }
    });
}

/// A row, element by element.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
fn pick<T: Copy + Default>(columns: &[u32], src: &[T], dst: &mut [T]) {
    for (to, i) in dst.iter_mut().zip(columns) {
        *to = src.get(*i as usize).copied().unwrap_or_default();
    }
}
