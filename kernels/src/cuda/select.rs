//! Elements chosen by their values; see [`crate::cpu::select`]. All tensors are contiguous.

use super::fill::fill;
use super::index::{Steps, contiguous, shape};
use super::{Args, Define, Launch, Queue, Source};
use crate::{DType, KernelError, Result, Scalar, View};

pub(super) static SELECT: Source = Source::file("select", include_str!("../../cuda/select.cu"))
    .forms(&["T={b8,u8,i64,f16,f32,f64} M=u8", "T=b8 M={f16,i32,i64}"]);

/// Pieces that keep a GPU busy, and the fewest elements of one.
const PIECES: usize = 1024;
const LEAST: usize = 2048;

/// How many pieces there are, and how many elements each has.
fn pieces(n: usize) -> (usize, usize) {
    let piece = n.div_ceil(PIECES).max(LEAST);
    (n.div_ceil(piece), piece)
}

/// Returns the bytes of scratch memory that the functions of this file need for `n` elements: a count for each piece.
pub fn workspace(n: usize) -> usize {
    pieces(n).0 * 8
}

/// A type of that size for moving elements.
pub(super) fn moved(dtype: DType) -> Result<Define> {
    let name = match dtype.size() {
        1 => DType::U8,
        2 => DType::F16,
        4 => DType::I32,
        8 => DType::I64,
        16 => DType::C128,
        size => return Err(KernelError::new(format!("no CUDA kernel moves elements of {size} B by a mask"))),
    };
    Ok(Define::dtype("M", name))
}

/// Elements that are tested, cut into pieces that are counted.
struct Counted<'a> {
    q: &'a Queue<'a>,
    tested: &'a View,
    counts: &'a View,
    pieces: (usize, usize),
    defines: [Define; 2],
}

impl Counted<'_> {
    fn new<'a>(q: &'a Queue<'a>, tested: &'a View, moves: DType, scratch: Option<&'a View>) -> Result<Counted<'a>> {
        let pieces = pieces(tested.len());
        let counts = scratch.filter(|s| s.len() >= pieces.0 * 8);
        let counts = counts.ok_or_else(|| KernelError::new("the counts of the pieces need their scratch memory"))?;
        let defines = [Define::dtype("T", tested.dtype()), moved(moves)?];
        let c = Counted { q, tested, counts, pieces, defines };
        c.launch(
            "chosen_counts",
            Args::new().view(tested).view(counts).value(tested.len() as u64).value(c.pieces.1 as u64),
        )?;
        Ok(c)
    }

    /// The counts, the number of elements and the size of a piece.
    fn args(&self, args: Args) -> Args {
        args.view(self.counts).value(self.tested.len() as u64).value(self.pieces.1 as u64)
    }

    fn launch(&self, entry: &str, args: Args) -> Result<()> {
        let f = self.q.function(&SELECT, entry, &self.defines)?;
        self.q.launch(f, Launch::new(self.pieces.0 as u32, 256), args)
    }
}

/// The indices of what is not zero; see [`crate::cpu::select::nonzero`]. `out` has the rows that were counted before.
///
/// # Errors
/// If the tensors do not fit, or have more than 8 dims.
pub fn nonzero(q: &Queue, x: &View, out: &View, offset: &[usize], scratch: Option<&View>) -> Result<()> {
    let rank = x.rank();
    if out.dtype() != DType::I64 || out.rank() != 2 || out.dims()[1] != rank || offset.len() != rank {
        return Err(KernelError::new(format!("nonzero of {:?} into {} {:?}", x.dims(), out.dtype(), out.dims())));
    }
    contiguous(&[x, out])?;
    let shape = shape(x.dims())?;
    if out.is_empty() {
        return Ok(());
    }
    let mut from = Steps([0; 8]);
    offset.iter().zip(&mut from.0).for_each(|(o, f)| *f = *o as i64);
    let c = Counted::new(q, x, DType::U8, scratch)?;
    let args = c.args(Args::new().value(shape).value(from).view(x).view(out)).value(out.dims()[0] as u64);
    c.launch("chosen_indices", args)
}

/// Gathers the elements that a mask chooses; see [`crate::cpu::select::masked_select`]. `out` has the elements that were
/// counted before.
///
/// # Errors
/// If the tensors do not fit.
pub fn masked_select(q: &Queue, x: &View, mask: &View, out: &View, scratch: Option<&View>) -> Result<()> {
    if x.dims() != mask.dims() || x.dtype() != out.dtype() || mask.dtype() != DType::Bool {
        return Err(KernelError::new(format!("masked_select of {:?} by {:?}", x.dims(), mask.dims())));
    }
    contiguous(&[x, mask, out])?;
    if out.is_empty() {
        return Ok(());
    }
    let c = Counted::new(q, mask, x.dtype(), scratch)?;
    c.launch("chosen_values", c.args(Args::new().view(mask).view(x).view(out)).value(out.len() as u64))
}

/// Scatters `values` to the positions where `mask` is true; see [`crate::cpu::select::masked_spread`]. A wrong number of values is reported to the queue's fault slot.
///
/// # Errors
/// If the tensors do not fit.
pub fn masked_spread(
    q: &Queue,
    values: &View,
    mask: &View,
    out: &View,
    first: usize,
    scratch: Option<&View>,
) -> Result<()> {
    let inside = first.checked_add(out.len()).is_some_and(|end| end <= mask.len());
    if values.dtype() != out.dtype() || mask.dtype() != DType::Bool || !inside {
        return Err(KernelError::new(format!("masked_spread of {:?} by {:?}", values.dims(), mask.dims())));
    }
    contiguous(&[values, mask, out])?;
    if mask.is_empty() {
        return match values.len() {
            0 => Ok(()),
            n => Err(KernelError::new(format!("the mask chooses 0 elements, there are {n} values"))),
        };
    }
    fill(q, out, Scalar::Int(0))?;
    let c = Counted::new(q, mask, out.dtype(), scratch)?;
    let args = c.args(Args::new().view(mask).view(values).view(out));
    let args = args.value(values.len() as u64).value(first as u64).value(out.len() as u64);
    c.launch("spread_values", q.fault_args(args))
}
