//! Pooling: the largest element of windows, where it is, and averages with their gradient. A window is reduced along its rows first,
//! which are vectors of the image, then along the row that is left.

use super::acc::{Acc, load, store, with_acc};
use super::rowmath;
use crate::parallel::{GRAIN, parallel_for};
use crate::pool::{Divisor, Planes, PoolGeometry, Window, Windows};
use crate::{DType, KernelError, Result, View};

/// The windows of each dim.
struct Grid {
    planes: Planes,
    windows: [Vec<Window>; 3],
}

impl Grid {
    fn new(planes: Planes, windows: &Windows) -> Grid {
        let of = |d: usize| (0..planes.result[d]).map(|j| planes.window(windows, d, j)).collect();
        Grid { planes, windows: std::array::from_fn(of) }
    }
    /// Elements of a plane of the image and of the result.
    fn elements(&self) -> [usize; 2] {
        [self.planes.image, self.planes.result].map(|d| d.iter().product())
    }
    /// Calls `run` for ranges of the planes, in parallel.
    fn each(&self, run: &(dyn Fn(std::ops::Range<usize>) + Sync)) {
        let [image, result] = self.elements();
        parallel_for(self.planes.count, (GRAIN / image.max(result).max(1)).max(1), run);
    }
    /// Calls `row(result's row, image's row)` for all rows of the image that a row of windows sees, and `done(result's row, windows)`
    /// after them.
    fn rows(&self, mut row: impl FnMut(usize, usize), mut done: impl FnMut(usize, [Window; 2])) {
        for (i, a) in self.windows[0].iter().enumerate() {
            for (j, b) in self.windows[1].iter().enumerate() {
                let to = i * self.planes.result[1] + j;
                for d in (a.start..a.end).step_by(a.step) {
                    for h in (b.start..b.end).step_by(b.step) {
                        row(to, d * self.planes.image[1] + h);
                    }
                }
                done(to, [*a, *b]);
            }
        }
    }
}

fn at(v: &View, element: usize) -> *mut u8 {
    v.ptr().wrapping_add(element * v.dtype().size())
}

fn grid(x: &View, out: &View, place: &PoolGeometry, windows: &Windows) -> Result<Grid> {
    let planes = Planes::of(x, out, place)?;
    // Adaptive windows of no elements have nothing to choose from.
    if !out.is_empty() && planes.image.contains(&0) {
        return Err(KernelError::new(format!("an image of {:?} has no elements", x.dims())));
    }
    Ok(Grid::new(planes, windows))
}

fn same_floats(a: &View, b: &View) -> Result<()> {
    match a.dtype().is_float() && a.dtype() == b.dtype() {
        true => Ok(()),
        false => Err(KernelError::new(format!("pools floats, not {} into {}", a.dtype(), b.dtype()))),
    }
}

/// The greater of two, and NaN where one is.
#[inline(always)]
fn greater<A: Acc>(a: A, b: A) -> A {
    if b > a || b.is_nan() { b } else { a }
}

/// The largest element of each window; NaN where it has one.
///
/// # Errors
/// If the tensors do not fit.
pub fn max(x: &View, windows: &Windows, place: &PoolGeometry, out: &View) -> Result<()> {
    same_floats(x, out)?;
    let grid = grid(x, out, place, windows)?;
    with_acc!(x.dtype(), reduced(&grid, x, out, f64::NEG_INFINITY, greater, |_, v| v));
    Ok(())
}

/// The average of each window.
///
/// # Errors
/// If the tensors do not fit.
pub fn avg(x: &View, windows: &Windows, divisor: Divisor, place: &PoolGeometry, out: &View) -> Result<()> {
    same_floats(x, out)?;
    let grid = grid(x, out, place, windows)?;
    match x.dtype() {
        DType::F64 => reduced::<f64>(&grid, x, out, 0.0, |a, b| a + b, |w, v| v / divisor.of(w)),
        _ => reduced::<f32>(&grid, x, out, 0.0, |a, b| a + b, |w, v| v / divisor.of(w) as f32),
    }
    Ok(())
}

fn reduced<A: Acc>(
    grid: &Grid,
    x: &View,
    out: &View,
    neutral: f64,
    join: impl Fn(A, A) -> A + Copy + Sync,
    finish: impl Fn([Window; 3], A) -> A + Sync,
) {
    let [image, result] = grid.elements();
    let (width, count) = (grid.planes.image[2], grid.planes.result[2]);
    let neutral = A::from_f64(neutral);
    let columns = &grid.windows[2];
    grid.each(&|planes| {
        let mut seen = vec![neutral; width];
        let mut row = vec![neutral; width];
        let mut found = vec![neutral; count];
        for plane in planes {
            let joined = std::cell::RefCell::new(&mut seen);
            grid.rows(
                |_, from| {
                    // SAFETY: a row of the contiguous image.
                    unsafe { load(x.dtype(), at(x, plane * image + from * width), 1, &mut row) };
                    joined.borrow_mut().iter_mut().zip(&row).for_each(|(s, x)| *s = join(*s, *x));
                },
                |to, [a, b]| {
                    let mut seen = joined.borrow_mut();
                    for (found, c) in found.iter_mut().zip(columns) {
                        let mut value = neutral;
                        for w in (c.start..c.end).step_by(c.step) {
                            value = join(value, seen[w]);
                        }
                        *found = finish([a, b, *c], value);
                    }
                    // SAFETY: a row of the contiguous output, which belongs to this plane.
                    unsafe { store(out.dtype(), at(out, plane * result + to * count), 1, &found) };
                    seen.fill(neutral);
                },
            );
        }
    });
}

/// Where the largest element of each window is, counted over the spatial dims of the whole image: among equals the first, of NaNs the last.
///
/// # Errors
/// If the tensors do not fit.
pub fn max_index(x: &View, windows: &Windows, place: &PoolGeometry, out: &View) -> Result<()> {
    if !x.dtype().is_float() || out.dtype() != DType::I64 {
        return Err(KernelError::new(format!("gives i64 indices of floats, not {} of {}", out.dtype(), x.dtype())));
    }
    let grid = grid(x, out, place, windows)?;
    with_acc!(x.dtype(), indices(&grid, x, out))
}

fn indices<A: Acc>(grid: &Grid, x: &View, out: &View) -> Result<()> {
    let [image, result] = grid.elements();
    let sizes = grid.planes.image;
    let (whole, first) = (grid.planes.place.image, grid.planes.place.image_at);
    let counted =
        |d: usize, h: usize, w: usize| (((d + first[0]) * whole[1] + h + first[1]) * whole[2] + w + first[2]) as i64;
    let width = sizes[2];
    grid.each(&|planes| {
        let mut values = vec![A::ZERO; image];
        // For each column of the rows that a row of windows sees: the largest element, and the number of its row among them.
        let (mut best, mut of) = (vec![A::ZERO; width], vec![0i32; width]);
        let mut rows = vec![];
        for plane in planes {
            // SAFETY: a plane of the contiguous image.
            unsafe { load(x.dtype(), at(x, plane * image), 1, &mut values) };
            let mut to = at(out, plane * result).cast::<i64>();
            for a in &grid.windows[0] {
                for b in &grid.windows[1] {
                    rows.clear();
                    best.fill(-A::INFINITY);
                    of.fill(0);
                    for d in (a.start..a.end).step_by(a.step) {
                        for h in (b.start..b.end).step_by(b.step) {
                            let row = &values[(d * sizes[1] + h) * width..][..width];
                            rowmath::largest_rows(row, rows.len() as i32, &mut best, &mut of);
                            rows.push(counted(d, h, 0));
                        }
                    }
                    for c in &grid.windows[2] {
                        let place = match c.start < c.end && !rows.is_empty() {
                            true => {
                                let w = largest_column(&best, &of, c);
                                rows[of[w] as usize] + w as i64
                            }
                            false => counted(a.start, b.start, c.start),
                        };
                        // SAFETY: the elements of the output's plane, one after the other.
                        unsafe {
                            to.write(place);
                            to = to.add(1);
                        }
                    }
                }
            }
        }
    });
    Ok(())
}

/// The column of a window with the largest element: among equals that of the first row, of NaNs that of the last.
#[inline(always)]
fn largest_column<A: Acc>(best: &[A], of: &[i32], c: &Window) -> usize {
    let mut at = c.start;
    for w in (c.start..c.end).step_by(c.step).skip(1) {
        let (new, old) = (best[w], best[at]);
        let takes = match (new.is_nan(), old.is_nan()) {
            (true, true) => of[w] >= of[at],
            (new, old) if new || old => new,
            _ => new > old || new == old && of[w] < of[at],
        };
        if takes {
            at = w;
        }
    }
    at
}

/// The gradient of [`avg`]: each window's gradient, divided, added to its elements.
///
/// # Errors
/// If the tensors do not fit.
pub fn avg_grad(dy: &View, windows: &Windows, divisor: Divisor, place: &PoolGeometry, out: &View) -> Result<()> {
    same_floats(dy, out)?;
    let grid = grid(out, dy, place, windows)?;
    with_acc!(dy.dtype(), spread(&grid, dy, divisor, out))
}

fn spread<A: Acc>(grid: &Grid, dy: &View, divisor: Divisor, out: &View) -> Result<()> {
    let [image, result] = grid.elements();
    let (width, count) = (grid.planes.image[2], grid.planes.result[2]);
    grid.each(&|planes| {
        let mut sums = vec![A::ZERO; image];
        let mut gradients = vec![A::ZERO; count];
        let mut row = vec![A::ZERO; width];
        for plane in planes {
            sums.fill(A::ZERO);
            for (i, a) in grid.windows[0].iter().enumerate() {
                for (j, b) in grid.windows[1].iter().enumerate() {
                    let from = plane * result + (i * grid.planes.result[1] + j) * count;
                    // SAFETY: a row of the contiguous gradient.
                    unsafe { load(dy.dtype(), at(dy, from), 1, &mut gradients) };
                    row.fill(A::ZERO);
                    for (g, c) in gradients.iter().zip(&grid.windows[2]) {
                        let share = *g / A::from_f64(divisor.of([*a, *b, *c]));
                        (c.start..c.end).step_by(c.step).for_each(|w| row[w] = row[w] + share);
                    }
                    for d in (a.start..a.end).step_by(a.step) {
                        for h in (b.start..b.end).step_by(b.step) {
                            let to = &mut sums[(d * grid.planes.image[1] + h) * width..][..width];
                            to.iter_mut().zip(&row).for_each(|(to, r)| *to = *to + *r);
                        }
                    }
                }
            }
            // SAFETY: the plane of the contiguous output.
            unsafe { store(out.dtype(), at(out, plane * image), 1, &sums) };
        }
    });
    Ok(())
}
