//! Layer norm and rms norm over the trailing dims, with gradients.
//!
//! Rows stay in registers where they fit. The gradients of weight and bias are sums over all rows: each block leaves its
//! part in scratch memory, and a second kernel adds the parts in order.

use super::rows::{Extent, Rows, Sharing, blocks, room};
use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::norm::{Norm, NormGrads, check, check_grads};
use crate::{DType, KernelError, Result, View};

pub(super) static NORM: Source = Source::file("norm", include_str!("../../cuda/norm.cu")).forms(&[
    "T=f32 W=f32 B=f32 G=f32 CENTERED={0,1} WEIGHT=1 BIAS=1 HAS_WEIGHT=1 PACKED=1 VEC=4 ROW={32,128} PER={2,4}",
    "T=f32 W=f32 B=f32 G=f32 CENTERED=1 WEIGHT=1 BIAS=1 HAS_WEIGHT=1 PACKED=1 VEC=4 ROW=512 PER={0,4}",
    "T=bf16 W={bf16,f32} B=bf16 G=bf16 CENTERED=1 WEIGHT=1 BIAS=1 HAS_WEIGHT=1 PACKED=1 VEC=8 ROW={32,128} PER={1,2}",
    "T=f64 W=f64 B=f64 G=f64 CENTERED=1 WEIGHT=1 BIAS=1 HAS_WEIGHT={0,1} PACKED={0,1} VEC=1 ROW=512 PER=0",
]);

/// `y = (x - mean) * rstd * weight + bias`, with `mean` and `rstd = 1 / sqrt(variance + eps)` over the trailing dims.
/// `mean` and `rstd` have the leading dims and are f32 for halves, else of `x`'s dtype.
///
/// # Errors
/// If dims or dtypes do not match.
pub fn layer_norm(q: &Queue, x: &View, norm: &Norm, y: &View, mean: &View, rstd: &View) -> Result<()> {
    check(x, norm, &[("y", y)], &[("mean", mean), ("rstd", rstd)])?;
    forward(q, x, norm, y, Some(mean), rstd)
}

/// Gradients of [`layer_norm`] from its input and its statistics. `norm.bias` and `norm.eps` are not read.
/// `scratch` has as many bytes as [`workspace`] says.
///
/// # Errors
/// If dims or dtypes do not match, or the scratch memory is too small.
#[allow(clippy::too_many_arguments)]
pub fn layer_norm_grad(
    q: &Queue,
    dy: &View,
    x: &View,
    mean: &View,
    rstd: &View,
    norm: &Norm,
    grads: &NormGrads,
    scratch: Option<&View>,
) -> Result<()> {
    check(x, norm, &[("dy", dy)], &[("mean", mean), ("rstd", rstd)])?;
    check_grads(x, norm, grads)?;
    backward(q, dy, x, Some(mean), rstd, norm, grads, scratch)
}

/// `y = x * rstd * weight + bias`, with `rstd = 1 / sqrt(mean(x²) + eps)` over the trailing dims.
/// `rstd` has the leading dims and is f32 for halves, else of `x`'s dtype.
///
/// # Errors
/// If dims or dtypes do not match.
pub fn rms_norm(q: &Queue, x: &View, norm: &Norm, y: &View, rstd: &View) -> Result<()> {
    check(x, norm, &[("y", y)], &[("rstd", rstd)])?;
    forward(q, x, norm, y, None, rstd)
}

/// Gradients of [`rms_norm`] from its input and its statistic. `norm.bias` and `norm.eps` are not read. `scratch`
/// has as many bytes as [`workspace`] says.
///
/// # Errors
/// If dims or dtypes do not match, or the scratch memory is too small.
pub fn rms_norm_grad(
    q: &Queue,
    dy: &View,
    x: &View,
    rstd: &View,
    norm: &Norm,
    grads: &NormGrads,
    scratch: Option<&View>,
) -> Result<()> {
    check(x, norm, &[("dy", dy)], &[("rstd", rstd)])?;
    check_grads(x, norm, grads)?;
    backward(q, dy, x, None, rstd, norm, grads, scratch)
}

/// Constants that the program is compiled for.
struct Program<'a> {
    x: &'a View,
    weight: Option<&'a View>,
    bias: Option<&'a View>,
    gradients: DType,
    centered: bool,
    /// `WEIGHT` and `BIAS`.
    wanted: [bool; 2],
    packed: bool,
    sharing: Sharing,
}

impl Program<'_> {
    fn defines(&self) -> [Define; 12] {
        let dtype = |v: Option<&View>| v.map_or(self.x.dtype(), View::dtype);
        let flag = |name, on| Define::int(name, i64::from(on));
        let [vec, row, per] = self.sharing.defines();
        [
            Define::dtype("T", self.x.dtype()),
            Define::dtype("W", dtype(self.weight)),
            Define::dtype("B", dtype(self.bias)),
            Define::dtype("G", self.gradients),
            flag("CENTERED", self.centered),
            flag("WEIGHT", self.wanted[0]),
            flag("BIAS", self.wanted[1]),
            flag("HAS_WEIGHT", self.weight.is_some()),
            flag("PACKED", self.packed),
            vec,
            row,
            per,
        ]
    }
}

fn forward(q: &Queue, x: &View, norm: &Norm, y: &View, mean: Option<&View>, rstd: &View) -> Result<()> {
    // What is absent is not read; something must stand in its place.
    let absent = Extent::Whole(x);
    let parts = [
        Extent::Whole(x),
        Extent::Whole(y),
        norm.weight.map_or(absent, Extent::Row),
        norm.bias.map_or(absent, Extent::Row),
        Extent::PerRow(mean.unwrap_or(rstd)),
        Extent::PerRow(rstd),
    ];
    let rows = Rows::trailing(parts, norm.dims)?;
    let packed = rows.packed(4);
    let width = if packed { rows.width(&[x, y, norm.weight.unwrap_or(x), norm.bias.unwrap_or(x)]) } else { 1 };
    let sharing = Sharing::of(rows.len as usize, width, room(x.dtype()));
    let program = Program {
        x,
        weight: norm.weight,
        bias: norm.bias,
        gradients: x.dtype(),
        centered: mean.is_some(),
        wanted: [norm.weight.is_some(), norm.bias.is_some()],
        packed,
        sharing,
    };
    let f = q.function(&NORM, "norm_rows", &program.defines())?;
    let args = Args::new().view(x).view(y).opt_view(norm.weight).opt_view(norm.bias).opt_view(mean).view(rstd);
    let args = if x.dtype() == DType::F64 { args.value(norm.eps) } else { args.value(norm.eps as f32) };
    q.launch_with(f, sharing.launch(rows.count, 256), args, &rows)
}

/// As many parts as sums over rows have at most.
const PARTS: usize = 1024;

/// Returns the bytes of scratch memory of the gradients, for tensors of `rows` rows of `len` elements.
pub fn workspace(rows: usize, len: usize, dtype: DType) -> usize {
    rows.min(PARTS) * len * 2 * if dtype == DType::F64 { 8 } else { 4 }
}

/// How threads share a row whose weight's and bias's gradients are summed up as well: each keeps four numbers an element.
fn sharing(len: usize, width: usize, dtype: DType) -> Sharing {
    let scale = if dtype == DType::F64 { 2 } else { 1 };
    let groups = len.div_ceil(width).max(1);
    let threads = match len * scale {
        0..=512 => groups.next_power_of_two().min(32),
        n => (n / 8).next_power_of_two().clamp(128, 512),
    };
    let kept = groups.div_ceil(threads);
    match kept * width * scale <= 16 {
        true => Sharing { width, threads, kept },
        false => Sharing { width, threads: 512, kept: 0 },
    }
}

#[allow(clippy::too_many_arguments)]
fn backward(
    q: &Queue,
    dy: &View,
    x: &View,
    mean: Option<&View>,
    rstd: &View,
    norm: &Norm,
    grads: &NormGrads,
    scratch: Option<&View>,
) -> Result<()> {
    let Some(dx) = grads.dx else { return Err(KernelError::new("the gradient of a norm without dx")) };
    if grads.dweight.is_none() && grads.dbias.is_some() {
        return Err(KernelError::new("the gradient of a norm's bias without the weight's"));
    }
    let parts = [
        Extent::Whole(dy),
        Extent::Whole(x),
        Extent::Whole(dx),
        norm.weight.map_or(Extent::Whole(x), Extent::Row),
        Extent::PerRow(mean.unwrap_or(rstd)),
        Extent::PerRow(rstd),
    ];
    let rows = Rows::trailing(parts, norm.dims)?;
    if rows.len == 0 {
        return Ok(());
    }
    let (count, len) = (rows.count as usize, rows.len as usize);
    let wanted = [grads.dweight, grads.dbias];
    let dtype = wanted.iter().flatten().next().map_or(x.dtype(), |v| v.dtype());
    if wanted.iter().flatten().any(|v| v.dtype() != dtype || !v.is_contiguous()) {
        return Err(KernelError::new("the gradients of weight and bias need one dtype and contiguous memory"));
    }
    let packed = rows.packed(4);
    let width = if packed { rows.width(&[dy, x, dx, norm.weight.unwrap_or(x)]) } else { 1 };
    let sharing = sharing(len, width, x.dtype());
    let program = Program {
        x,
        weight: norm.weight,
        bias: None,
        gradients: dtype,
        centered: mean.is_some(),
        wanted: wanted.map(|w| w.is_some()),
        packed,
        sharing,
    };
    let defines = program.defines();
    let summed = wanted.iter().any(|w| w.is_some());
    let sums = match scratch {
        Some(s) if s.len() >= workspace(count, len, x.dtype()) => Some(s),
        _ if !summed || count == 0 => None,
        _ => return Err(KernelError::new("the gradients of a norm need their scratch memory")),
    };
    // Blocks that fill a GPU once: each goes over many rows, so that there are few parts.
    let mut launch = sharing.launch(rows.count, 256);
    if summed && sharing.kept > 0 {
        let busy = q.gpu().multiprocessors() * (1024 / launch.block.0);
        launch.grid.0 = launch.grid.0.min(busy).min(PARTS as u32);
    }
    let f = q.function(&NORM, "norm_grad_rows", &defines)?;
    let args = Args::new().view(dy).view(x).view(dx).opt_view(norm.weight).opt_view(mean).view(rstd).opt_view(sums);
    q.launch_with(f, launch, args, &rows)?;
    if !summed {
        return Ok(());
    }
    let mut made = launch.grid.0;
    if sharing.kept == 0 && count > 0 {
        let columns = blocks(rows.len as u64, 32);
        let wanted = (1024 / columns as usize).clamp(1, PARTS).min(count.div_ceil(32));
        let piece = count.div_ceil(wanted);
        made = count.div_ceil(piece) as u32;
        let f = q.function(&NORM, "norm_sums", &defines)?;
        let args = Args::new().view(dy).view(x).opt_view(mean).view(rstd).opt_view(sums).value(piece as u64);
        q.launch_with(f, Launch::grid((columns, made, 1), 256), args, &rows)?;
    }
    let f = q.function(&NORM, "norm_finish", &defines)?;
    let args = Args::new().opt_view(sums).opt_view(grads.dweight).opt_view(grads.dbias);
    let args = args.value(u64::from(made)).value(len as u64);
    // The bias's parts lie behind the weight's.
    let both = if grads.dbias.is_some() { 2 } else { 1 };
    q.launch(f, Launch::grid((blocks(len as u64, 32), both, 1), 1024), args)
}
