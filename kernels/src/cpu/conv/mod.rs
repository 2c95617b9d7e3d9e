//! Convolutions over 1 to 3 spatial dims: [`conv`], [`conv_transpose`], which is its gradient of the image, and [`conv_weight`], its
//! gradient of the weight. Each is linear in each of its two operands, and the gradients of each are the other two.
//!
//! No matrix of patches is made: see `lines.rs` for what is copied, `tile.rs` for what runs in registers. f16 and bf16 are
//! computed in f32 and rounded once.

mod edges;
mod filters;
mod lines;
mod tile;
mod turned;
mod vector;

use super::acc::{Acc, load, read, store, with_acc};
use crate::conv::{Sizes, Sliding};
use crate::parallel::{parallel_for, threads};
use crate::{KernelError, Result, View};
use lines::{Image, LinePlan, Part};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tile::{Block, COLUMNS, Dots, FILTERS, Isa, LANES, Outer, ROWS, Span, Strip, Target};

/// Weights of blocks that stay in the second-level cache while the places of an image pass, in bytes.
const PANELS: usize = 256 * 1024;
/// Places that are multiplied before the next lines, so that the columns stay in the second-level cache.
const PLACES: usize = 512;
/// Filters of a group that are too few for vectors of filters.
const FEW: usize = 6;
/// Bytes of copied images that one pass over the weights serves, and where the weights stay in the first-level cache anyway.
const IMAGES: usize = 512 * 1024;
const IMAGES_OF_FEW: usize = 24 * 1024;
/// Bytes of weights that are few.
const FEW_WEIGHTS: usize = 8 * 1024;
/// Channels whose weights are packed together.
const CHANNELS: usize = 8;
/// Numbers of the lines that are multiplied with all blocks before the next places.
const LINES: usize = 16 * 1024;

/// `out[n, f, j] = bias[f] + Σ weight[f, c, k] x[n, c, j * stride + k * dilation - padding]`, by groups; x is zero outside.
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn conv(x: &View, weight: &View, bias: Option<&View>, s: &Sliding, out: &View) -> Result<()> {
    let sizes = Sizes::of(x, weight, out, s.groups)?;
    if out.is_empty() {
        return Ok(());
    }
    let plan = LinePlan::direct(&sizes, s)?;
    let taps = sizes.taps();
    let weights = Weights {
        group: sizes.filters * sizes.channels * taps,
        row: sizes.channels * taps,
        channel: taps,
        rows: sizes.filters,
        channels: sizes.channels,
    };
    with_acc!(x.dtype(), correlate(&plan, &sizes, &weights, x, weight, bias, out))
}

/// The transposed convolution: `out[n, c, h] = bias[c] + Σ weight[f, c, k] x[n, f, j]` over all f, k and j for which h is `j * stride +
/// k * dilation - padding`. The gradient of [`conv`] of its image.
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn conv_transpose(x: &View, weight: &View, bias: Option<&View>, s: &Sliding, out: &View) -> Result<()> {
    let sizes = Sizes::of(out, weight, x, s.groups)?;
    if out.is_empty() {
        return Ok(());
    }
    let plan = LinePlan::transposed(&sizes, s)?;
    let taps = sizes.taps();
    let weights = Weights {
        group: sizes.filters * sizes.channels * taps,
        row: taps,
        channel: sizes.channels * taps,
        rows: sizes.channels,
        channels: sizes.filters,
    };
    with_acc!(x.dtype(), correlate(&plan, &sizes, &weights, x, weight, bias, out))?;
    with_acc!(x.dtype(), without_padding(&sizes, s, x, weight, bias, out))
}

/// Corrects the places of a transposed convolution in which infinite weights met the zeros beside the image.
fn without_padding<A: Acc>(
    sizes: &Sizes,
    s: &Sliding,
    x: &View,
    weight: &View,
    bias: Option<&View>,
    out: &View,
) -> Result<()> {
    if edges::is_needed::<A>(weight) {
        edges::correct::<A>(sizes, s, x, weight, bias, out);
    }
    Ok(())
}

/// How a weight lies, seen from the result: elements from group to group, row to row and channel to channel; and how many of the
/// last two a group has.
struct Weights {
    group: usize,
    row: usize,
    channel: usize,
    rows: usize,
    channels: usize,
}

/// The weights of a group and a part, packed for tiles: by channel and tap; along rows by panels of channels, tap and channel.
struct Packed<A> {
    blocks: Vec<Block>,
    weights: Vec<A>,
    offsets: Vec<usize>,
    /// Channels of a panel, where vectors run along the rows of the result and not along the places of a line: see `filters.rs`.
    along_rows: Option<usize>,
}

impl<A: Acc> Packed<A> {
    fn new(w: &Weights, weight: &View, group: usize, part: &Part, image: &Image, how: (Isa, bool)) -> Packed<A> {
        let (depth, plane, isa) = (w.channels * part.taps.len(), image.plane(), how.0);
        let along_rows = how.1.then(|| filters::panel::<A>(part.taps.len()));
        let offsets = (0..w.channels).flat_map(|c| part.taps.iter().map(move |t| c * plane + t.at)).collect();
        let (mut blocks, mut first, mut at) = (vec![], 0, 0);
        while first < w.rows {
            let mut rows = isa.rows();
            while rows > w.rows - first {
                rows /= 2;
            }
            let mut width = rows;
            if along_rows.is_some() {
                rows = FILTERS.min(w.rows - first);
                width = rows.next_multiple_of(LANES);
            }
            blocks.push(Block { first, rows, width, at });
            (first, at) = (first + rows, at + width * depth);
        }
        let mut weights = vec![A::ZERO; at];
        let (count, mut buffer) = (w.row.min(w.channel), vec![]);
        // Few channels at a time, so that what is written for them fits the first-level cache. Those of a row lie side by side, or the
        // rows of a channel do.
        let run = if w.channel == count { CHANNELS } else { 1 };
        for b in &blocks {
            for first in (0..w.channels).step_by(run) {
                let channels = run.min(w.channels - first);
                for r in 0..b.rows {
                    let from = group * w.group + (b.first + r) * w.row + first * w.channel;
                    // SAFETY: the taps of one row and some channels lie side by side in the contiguous weight.
                    let numbers = unsafe { read(weight, from, count * channels, &mut buffer) };
                    for (c, taps) in (first..).zip(numbers.chunks_exact(count.max(1))) {
                        let (channel, tap) = match along_rows {
                            Some(panel) => {
                                let start = c / panel * panel;
                                (c - start + start * part.taps.len(), panel.min(w.channels - start))
                            }
                            None => (c * part.taps.len(), 1),
                        };
                        for (t, at) in part.taps.iter().enumerate() {
                            weights[b.at + (channel + t * tap) * b.width + r] = taps[at.number];
                        }
                    }
                }
            }
        }
        Packed { blocks, weights, offsets, along_rows }
    }
}

/// Both convolutions: `x` is what lies in lines.
fn correlate<A: Acc>(
    plan: &LinePlan,
    sizes: &Sizes,
    w: &Weights,
    x: &View,
    weight: &View,
    bias: Option<&View>,
    out: &View,
) -> Result<()> {
    let mut offsets = vec![A::ZERO; w.rows * sizes.groups];
    if let Some(bias) = bias {
        if bias.dims() != [offsets.len()] || bias.dtype() != x.dtype() {
            return Err(KernelError::new(format!("the bias is {} {:?}", bias.dtype(), bias.dims())));
        }
        // SAFETY: the elements of the bias.
        unsafe { load(bias.dtype(), bias.ptr(), bias.strides()[0], &mut offsets) };
    }
    let (plane, isa) = (plan.image.plane(), Isa::here());
    let along_rows = plan.parts.iter().all(|part| filters::worthwhile(w.rows, part, plan.image.pitch()));
    let packed: Vec<Vec<Packed<A>>> = (0..sizes.groups)
        .map(|g| {
            plan.parts.iter().map(|part| Packed::new(w, weight, g, part, &plan.image, (isa, along_rows))).collect()
        })
        .collect();
    let many = packed.iter().flatten().any(|p| size_of_val(&p.weights[..]) > FEW_WEIGHTS);
    let images = match along_rows {
        true => filters::IMAGES,
        false if many => IMAGES,
        false => IMAGES_OF_FEW,
    };
    let in_place = !along_rows && lines::in_place::<A>(plan, x.dtype());
    // Some images of a group share a pass over its weights. With few of these the places of each are spread over the threads.
    let bytes = (w.channels * plane * size_of::<A>()).max(1);
    let together = (images / bytes).min(sizes.batch / threads()).max(1);
    // Of equal size, as far as that goes.
    let together = sizes.batch.div_ceil(sizes.batch.div_ceil(together).max(1));
    let chunks = sizes.batch.div_ceil(together.max(1));
    let within = chunks * sizes.groups < threads();
    let refused = AtomicBool::new(false);
    let images = |task: usize, buffer: &mut Vec<A>| {
        let (chunk, group) = (task / sizes.groups, task % sizes.groups);
        let batch = chunk * together..((chunk + 1) * together).min(sizes.batch);
        let numbers: Vec<usize> = batch.map(|n| n * sizes.groups + group).collect();
        let size = w.channels * plane;
        if !in_place {
            let (mut some, turned) = (vec![], if along_rows { lines::TOGETHER.min(w.channels) } else { 0 });
            if !grow(buffer, numbers.len() * size + LANES) || !grow(&mut some, turned * plane) {
                return refused.store(true, Relaxed);
            }
            for (i, number) in numbers.iter().enumerate() {
                let (first, to) = (number * w.channels, &mut buffer[i * size..]);
                match along_rows {
                    true => lines::copies_by_place(plan, x, first, w.channels, &mut some, to),
                    false => lines::copies(plan, x, first, w.channels, to),
                }
            }
        }
        let starts: Vec<usize> = (0..numbers.len())
            .map(|i| match in_place {
                true => x.ptr().cast::<A>().wrapping_add(numbers[i] * size) as usize,
                false => buffer.as_ptr().wrapping_add(i * size) as usize,
            })
            .collect();
        for (part, packed) in plan.parts.iter().zip(&packed[group]) {
            let job = Job {
                plan,
                part,
                packed,
                starts: &starts,
                in_place,
                isa,
                bias: &offsets[group * w.rows..][..w.rows],
                out,
                rows: &numbers.iter().map(|n| n * w.rows).collect::<Vec<_>>(),
            };
            match within {
                true => job.all(&|chunks, run| parallel_for(chunks, 1, &|range| range.for_each(run))),
                false => job.all(&|chunks, run| (0..chunks).for_each(run)),
            }
        }
    };
    let tasks = chunks * sizes.groups;
    match within {
        true => {
            let mut buffer = vec![];
            (0..tasks).for_each(|i| images(i, &mut buffer));
        }
        false => parallel_for(tasks, 1, &|range| {
            let mut buffer = vec![];
            range.for_each(|i| images(i, &mut buffer));
        }),
    }
    if refused.into_inner() { Err(lines::too_large(&plan.image)) } else { Ok(()) }
}

/// Makes a buffer that long; false where there is no memory for it.
fn grow<A: Acc>(buffer: &mut Vec<A>, n: usize) -> bool {
    let more = n.saturating_sub(buffer.len());
    if buffer.try_reserve_exact(more).is_err() {
        return false;
    }
    buffer.resize(buffer.len() + more, A::ZERO);
    true
}

/// Function that is called for each number below another.
type Each<'a> = &'a (dyn Fn(usize) + Sync);

/// One part of the result of some images of a group.
struct Job<'a, A> {
    plan: &'a LinePlan,
    part: &'a Part,
    packed: &'a Packed<A>,
    /// Address of the first line of each image.
    starts: &'a [usize],
    in_place: bool,
    isa: Isa,
    bias: &'a [A],
    out: &'a View,
    /// The first row of each image's result, over all images.
    rows: &'a [usize],
}

impl<A: Acc> Job<'_, A> {
    /// Computes everything; `each(n, run)` calls `run` for `0..n`.
    fn all(&self, each: &dyn Fn(usize, Each<'_>)) {
        if let Some(panel) = self.packed.along_rows {
            return self.along_rows(panel, each);
        }
        let line = self.part.line(self.plan.image.pitch());
        let channels = (self.packed.offsets.len() / self.part.taps.len().max(1)).max(1);
        let columns = (LINES / channels / COLUMNS).max(1) * COLUMNS;
        let chunks = line.div_ceil(columns);
        let mut blocks = self.packed.blocks.as_slice();
        while !blocks.is_empty() {
            // As many blocks as a cache holds, one at least.
            let bytes = |b: &Block| b.rows * self.packed.offsets.len() * size_of::<A>();
            let mut sum = 0;
            let fitting = blocks.iter().take_while(|b| {
                sum += bytes(b);
                sum <= PANELS
            });
            let (now, later) = blocks.split_at(fitting.count().max(1));
            blocks = later;
            each(self.starts.len() * chunks, &|i| {
                let q = i % chunks * columns;
                self.columns(i / chunks, now, q, columns.min(line - q), line);
            });
        }
    }

    /// Computes `n` places of an image from `q` on.
    fn columns(&self, image: usize, blocks: &[Block], q: usize, n: usize, line: usize) {
        let (start, row) = (self.starts[image] as *const A, self.rows[image]);
        // The image itself has nothing after its last line: places at its end are copied.
        let whole = match self.in_place && q + n == line {
            true => n / LANES * LANES,
            false => n,
        };
        // SAFETY: the copies have LANES elements after the last line, the image all places of whole vectors.
        unsafe { self.strips(blocks, &self.packed.offsets, start.wrapping_add(q), row, q, whole) };
        if whole < n {
            let mut end = vec![A::ZERO; self.packed.offsets.len() * LANES];
            for (to, offset) in end.chunks_mut(LANES).zip(&self.packed.offsets) {
                for (l, to) in to[..n - whole].iter_mut().enumerate() {
                    // SAFETY: places below `n` exist.
                    *to = unsafe { start.wrapping_add(offset + q + whole + l).read() };
                }
            }
            let offsets: Vec<usize> = (0..self.packed.offsets.len()).map(|k| k * LANES).collect();
            // SAFETY: a vector of each line.
            unsafe { self.strips(blocks, &offsets, end.as_ptr(), row, q + whole, n - whole) };
        }
    }

    /// # Safety
    /// As for [`Isa::strip`]: `n` places from `line + offset` on exist, rounded up to vectors.
    unsafe fn strips(&self, blocks: &[Block], offsets: &[usize], line: *const A, row: usize, q: usize, n: usize) {
        let (dtype, step) = (self.out.dtype(), self.plan.step[2]);
        let elements: usize = self.plan.result.iter().product();
        let mut spans = vec![];
        self.part.rows(self.plan, self.plan.image.pitch(), q, n, |at, element, n| {
            spans.push(Span { first: at - q, n, element });
        });
        for b in blocks {
            let row = row + b.first;
            let mut bias = [A::ZERO; ROWS];
            bias[..b.rows].copy_from_slice(&self.bias[b.first..][..b.rows]);
            let weights = &self.packed.weights[b.at..][..b.rows * offsets.len()];
            let mut convert = |r: usize, span: &Span, place: usize, values: &[A]| {
                let element = span.element + place * step;
                let to = self.out.ptr().wrapping_add(((row + r) * elements + element) * dtype.size());
                // SAFETY: elements of the contiguous output that only this place of this part writes.
                unsafe { store(dtype, to, step as isize, values) };
            };
            let mut target = match dtype == A::DTYPE && step == 1 {
                true => Target::Rows(self.out.ptr().cast::<A>().wrapping_add(row * elements), elements),
                false => Target::Through(&mut convert),
            };
            let strip = Strip { rows: b.rows, weights, offsets, line, bias: &bias, places: n, spans: &spans };
            // SAFETY: the caller's promise.
            unsafe { self.isa.strip(&strip, &mut target) };
        }
    }
}

/// `out[f, c, k] = Σ dy[n, f, j] x[n, c, j * stride + k * dilation - padding]` over n and j: the gradient of [`conv`] of its weight.
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn conv_weight(x: &View, dy: &View, s: &Sliding, out: &View) -> Result<()> {
    let sizes = Sizes::of(x, out, dy, s.groups)?;
    with_acc!(x.dtype(), weights_of(&sizes, s, x, dy, out))
}

fn weights_of<A: Acc>(sizes: &Sizes, s: &Sliding, x: &View, dy: &View, out: &View) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let plan = LinePlan::direct(sizes, s)?;
    let spread = sizes.groups >= threads();
    let refused = AtomicBool::new(false);
    let one = |g: usize| {
        if !(Gradient { sizes, plan: &plan, x, dy, out, group: g, within: !spread }.run::<A>()) {
            refused.store(true, Relaxed);
        }
    };
    match spread {
        true => parallel_for(sizes.groups, 1, &|range| range.for_each(one)),
        false => (0..sizes.groups).for_each(one),
    }
    if refused.into_inner() { Err(lines::too_large(&plan.image)) } else { Ok(()) }
}

/// The gradient of the weights of a group.
struct Gradient<'a> {
    sizes: &'a Sizes,
    plan: &'a LinePlan,
    x: &'a View,
    dy: &'a View,
    out: &'a View,
    group: usize,
    /// Whether the parts of one gradient are spread over the threads.
    within: bool,
}

impl Gradient<'_> {
    /// Computes the group; false where there is no memory for a copy of an image.
    fn run<A: Acc>(&self) -> bool {
        let (sizes, part, plane, isa) = (self.sizes, &self.plan.parts[0], self.plan.image.plane(), Isa::here());
        let taps = sizes.taps();
        let depth = sizes.channels * taps;
        let offsets: Vec<usize> =
            (0..sizes.channels).flat_map(|c| part.taps.iter().map(move |t| c * plane + t.at)).collect();
        // The filters in panels of some vectors each: `sums[panel][channel and tap][filter]`.
        if sizes.filters <= FEW {
            return self.by_dots::<A>(&offsets);
        }
        let panels = sizes.filters.div_ceil(FILTERS);
        let width = |panel: usize| (sizes.filters - panel * FILTERS).min(FILTERS).next_multiple_of(LANES);
        let mut sums: Vec<Vec<A>> = (0..panels).map(|p| vec![A::ZERO; depth * width(p)]).collect();
        let places: usize = sizes.result.iter().product();
        let blocks = self.runs();
        let mut images: Vec<A> = vec![];
        if !grow(&mut images, sizes.channels * plane) {
            return false;
        }
        let mut columns: Vec<Vec<A>> = (0..panels).map(|p| vec![A::ZERO; places * width(p)]).collect();
        // Lines of a panel that one task adds to.
        let lines = depth.div_ceil(if self.within { 2 * threads() } else { 1 }).next_multiple_of(6);
        for n in 0..sizes.batch {
            let image = n * sizes.groups + self.group;
            lines::copies(self.plan, self.x, image * sizes.channels, sizes.channels, &mut images);
            for (p, columns) in columns.iter_mut().enumerate() {
                let first = p * FILTERS;
                let filters = (sizes.filters - first).min(FILTERS);
                turned::turned(self.dy, (image * sizes.filters + first) * places, filters, places, width(p), columns);
            }
            let (start, columns) = (images.as_ptr() as usize, &columns);
            let mut tasks: Vec<Task<'_, A>> = vec![];
            for (panel, sums) in sums.iter_mut().enumerate() {
                let chunks = sums.chunks_mut(lines * width(panel)).enumerate();
                tasks.extend(chunks.map(|(i, sums)| Mutex::new((panel, i * lines, sums))));
            }
            let add = |task: usize| {
                // Each task is taken once.
                let mut task = tasks[task].lock().unwrap_or_else(PoisonError::into_inner);
                let (panel, first, sums) = &mut *task;
                let width = width(*panel);
                for (at, runs) in &blocks {
                    let of = &offsets[*first..][..sums.len() / width];
                    let lines: Vec<*const A> = of.iter().map(|o| (start as *const A).wrapping_add(*o)).collect();
                    let columns = columns[*panel][at * width..].as_ptr();
                    let outer = Outer { lines: &lines, runs, step: 1, columns, width };
                    // SAFETY: the runs are places of the lines, and the columns have as many rows.
                    unsafe { isa.outer(&outer, sums) };
                }
            };
            self.spread(tasks.len(), &add);
        }
        let mut row = vec![A::ZERO; depth];
        for f in 0..sizes.filters {
            let (panel, column) = (f / FILTERS, f % FILTERS);
            row.iter_mut().zip(sums[panel].chunks(width(panel))).for_each(|(to, from)| *to = from[column]);
            self.put(f, &row);
        }
        true
    }

    /// Calls `run` for each number below `n`, on several threads where the group has them to itself.
    fn spread(&self, n: usize, run: Each<'_>) {
        match self.within {
            true => parallel_for(n, 1, &|range| range.for_each(run)),
            false => (0..n).for_each(run),
        }
    }

    /// Writes the gradient of a filter.
    fn put<A: Acc>(&self, filter: usize, row: &[A]) {
        let (dtype, at) = (self.out.dtype(), (self.group * self.sizes.filters + filter) * row.len());
        // SAFETY: the elements of a filter in the contiguous output, which only this group writes.
        unsafe { store(dtype, self.out.ptr().wrapping_add(at * dtype.size()), 1, row) };
    }

    /// As [`Gradient::run`], for few filters: they would not fill vectors, so vectors run along the places.
    fn by_dots<A: Acc>(&self, offsets: &[usize]) -> bool {
        let (sizes, part, isa) = (self.sizes, &self.plan.parts[0], Isa::here());
        let (pitch, depth, dtype) = (self.plan.image.pitch(), offsets.len(), self.dy.dtype());
        let places: usize = sizes.result.iter().product();
        let mut runs = vec![];
        part.rows(self.plan, pitch, 0, part.line(pitch), |at, place, n| runs.push((at, place, n)));
        let (mut image, mut buffer): (Vec<A>, Vec<A>) = (vec![], vec![]);
        // What is computed from where it lies needs no buffer.
        let converted = if dtype == A::DTYPE { 0 } else { places };
        if !grow(&mut image, sizes.channels * self.plan.image.plane()) || !grow(&mut buffer, converted) {
            return false;
        }
        let mut sums: Vec<Vec<A>> = vec![vec![A::ZERO; depth]; sizes.filters];
        let lines = depth.div_ceil(if self.within { 2 * threads() } else { 1 }).max(1);
        for n in 0..sizes.batch {
            let number = n * sizes.groups + self.group;
            lines::copies(self.plan, self.x, number * sizes.channels, sizes.channels, &mut image);
            let start = image.as_ptr() as usize;
            for (f, sums) in sums.iter_mut().enumerate() {
                // SAFETY: a row of the contiguous gradient.
                let column = unsafe { read(self.dy, (number * sizes.filters + f) * places, places, &mut buffer) };
                let column = <[A]>::as_ptr(column) as usize;
                let tasks: Vec<_> = sums.chunks_mut(lines).enumerate().map(Mutex::new).collect();
                let add = |task: usize| {
                    // Each task is taken once.
                    let mut task = tasks[task].lock().unwrap_or_else(PoisonError::into_inner);
                    let (chunk, sums) = &mut *task;
                    let of = &offsets[*chunk * lines..][..sums.len()];
                    let lines: Vec<*const A> = of.iter().map(|o| (start as *const A).wrapping_add(*o)).collect();
                    let dots = Dots { lines: &lines, runs: &runs, column: column as *const A };
                    // SAFETY: the runs are places of the lines and of the column.
                    unsafe { isa.dots(&dots, sums) };
                };
                self.spread(tasks.len(), &add);
            }
        }
        sums.iter().enumerate().for_each(|(f, row)| self.put(f, row));
        true
    }

    /// The rows of places, some hundred places together: number of the first place, then first place of the line and length of each.
    fn runs(&self) -> Vec<(usize, Vec<(usize, usize)>)> {
        let (part, pitch) = (&self.plan.parts[0], self.plan.image.pitch());
        let (mut blocks, mut seen, mut room) = (vec![], 0, 0);
        part.rows(self.plan, pitch, 0, part.line(pitch), |mut at, _, mut n| {
            while n > 0 {
                if room == 0 {
                    blocks.push((seen, vec![]));
                    room = PLACES;
                }
                let length = n.min(room);
                if let Some((_, runs)) = blocks.last_mut() {
                    runs.push((at, length));
                }
                (at, n, seen, room) = (at + length, n - length, seen + length, room - length);
            }
        });
        blocks
    }
}

/// A panel, the first line, the sums from there on.
type Task<'a, A> = Mutex<(usize, usize, &'a mut [A])>;
