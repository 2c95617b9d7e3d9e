//! Attention: f16 and bf16 on tensor cores up to head size 128, everything else by a plain kernel. Semantics and saved tensors
//! are those of [`crate::cpu::attention`].

use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::attention::{Attention, Qkv, Sizes};
use crate::{DType, KernelError, Result, View};

pub(super) static ATTENTION: Source = Source::file("attention", include_str!("../../cuda/attention.cu")).forms(&[
    "T=bf16 D={64,128} DV={64,128} CAUSAL={0,1} ALIGNED=1 GRAD={0,1}",
    "T=bf16 D={32,96} DV={32,96} CAUSAL=1 ALIGNED=1 GRAD={0,1}",
    "T=f16 D=64 DV=64 CAUSAL=1 ALIGNED=0 GRAD={0,1}",
]);
pub(super) static PLAIN: Source = Source::file("attention_plain", include_str!("../../cuda/attention_plain.cu"))
    .forms(&["T={f32,f64,bf16} TILE=32 GRAD={0,1}"]);

/// The largest head that the tensor-core kernels take.
const LARGEST_HEAD: usize = 128;
/// Queries of a block of the forward and of the query gradient's kernel.
const QUERIES: usize = 128;
/// Keys at a time: forward, and in the query gradient's kernel.
const KEYS: usize = 64;
const GRAD_KEYS: usize = 32;
/// Keys of a block of their gradient's kernel, and queries at a time there.
const KEY_BLOCK: usize = 64;
/// Threads of a block.
const THREADS: u32 = 128;
const PLAIN_THREADS: u32 = 256;

/// [`crate::cpu::attention::attention`] on a GPU.
///
/// # Errors
/// If dims or dtypes do not match, or a head is too large for the GPU's shared memory.
pub fn attention(q: &Queue, inputs: &Qkv, out: &View, lse: &View, settings: &Attention) -> Result<()> {
    let sizes = Sizes::new(inputs, out, lse)?;
    if out.is_empty() && lse.is_empty() {
        return Ok(());
    }
    let call = Pass::new(q, &sizes, inputs, settings)?;
    let views = Views { inputs: Some(inputs), out: Some(out), lse: Some(lse), ..Views::default() };
    match call.tensor_cores(&views) {
        Some(t) => {
            let (d, dv) = (t.depth + 8, t.value_depth + 8);
            // The tiles, or the results where those lay; then four numbers a thread.
            let shared = ((QUERIES + KEYS) * d + KEYS * dv).max(QUERIES * dv) * 2 + THREADS as usize * 16;
            call.tensor_core_launch(&t, "attention", sizes.queries.div_ceil(QUERIES), shared, &views)
        }
        None => call.plain_launch("attention", false, sizes.queries, &views),
    }
}

/// Returns the bytes of scratch memory of [`attention_grad`]: one number per query.
pub fn attention_grad_workspace(queries: &[usize], dtype: DType) -> usize {
    queries.iter().take(3).product::<usize>() * if dtype == DType::F64 { 8 } else { 4 }
}

/// [`crate::cpu::attention::attention_grad`] on a GPU. The scores are computed twice, so that each sum belongs to one warp and
/// the bits are the same on every run. `workspace`: [`attention_grad_workspace`] bytes.
///
/// # Errors
/// Those of [`attention`].
#[allow(clippy::too_many_arguments)]
pub fn attention_grad(
    q: &Queue,
    dout: &View,
    inputs: &Qkv,
    out: &View,
    lse: &View,
    grads: &Qkv,
    settings: &Attention,
    workspace: &View,
) -> Result<()> {
    let sizes = Sizes::for_gradient(dout, inputs, out, lse, grads)?;
    let needed = attention_grad_workspace(inputs.q.dims(), out.dtype());
    if workspace.len() * workspace.dtype().size() < needed {
        return Err(KernelError::new(format!("the gradient of attention needs {needed} bytes of scratch memory")));
    }
    let call = Pass::new(q, &sizes, inputs, settings)?;
    let views = Views {
        inputs: Some(inputs),
        out: Some(out),
        lse: Some(lse),
        dout: Some(dout),
        grads: Some(grads),
        delta: Some(workspace),
    };
    call.delta(&views)?;
    match call.tensor_cores(&views) {
        Some(t) => {
            let (d, dv) = (t.depth + 8, t.value_depth + 8);
            let shared = KEY_BLOCK * (3 * d + 2 * dv) * 2 + 4 * KEY_BLOCK * 4;
            call.tensor_core_launch(&t, "keys_grad", sizes.keys.div_ceil(KEY_BLOCK), shared, &views)?;
            let shared = (QUERIES * (d + dv) + GRAD_KEYS * (2 * d + dv)) * 2 + QUERIES * 8;
            call.tensor_core_launch(&t, "queries_grad", sizes.queries.div_ceil(QUERIES), shared, &views)
        }
        None => {
            call.plain_launch("keys_grad", true, sizes.keys, &views)?;
            call.plain_launch("queries_grad", true, sizes.queries, &views)
        }
    }
}

/// All that a kernel may be given; what it does not use may be absent.
#[derive(Default)]
struct Views<'a> {
    inputs: Option<&'a Qkv<'a>>,
    out: Option<&'a View>,
    lse: Option<&'a View>,
    dout: Option<&'a View>,
    grads: Option<&'a Qkv<'a>>,
    delta: Option<&'a View>,
}

impl<'a> Views<'a> {
    /// In the order of the kernels' parameters: q, k, v, out, dout, dq, dk, dv.
    fn operands(&self) -> [Option<&'a View>; 8] {
        let (i, g) = (self.inputs, self.grads);
        [
            i.map(|i| i.q),
            i.map(|i| i.k),
            i.map(|i| i.v),
            self.out,
            self.dout,
            g.map(|g| g.q),
            g.map(|g| g.k),
            g.map(|g| g.v),
        ]
    }
}

impl Views<'_> {
    fn lse_strides(&self) -> [i64; 3] {
        self.lse.map_or([0; 3], |v| [0, 1, 2].map(|d| v.strides()[d] as i64))
    }
}

/// `of_operand`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Operand {
    at: *mut u8,
    strides: [i64; 4],
}

fn operand(view: Option<&View>) -> Operand {
    let mut o = Operand { at: std::ptr::null_mut(), strides: [0; 4] };
    if let Some(v) = view {
        o.at = v.ptr();
        (0..4).for_each(|d| o.strides[d] = v.strides()[d] as i64);
    }
    o
}

/// `of_attention` of attention.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct HalfArgs {
    operands: [Operand; 8],
    lse: *mut u8,
    delta: *mut u8,
    lse_strides: [i64; 3],
    heads: i32,
    queries: i32,
    keys: i32,
    depth: i32,
    value_depth: i32,
    blocks: i32,
    scale: f32,
    scale_log2: f32,
    negative: i32,
    signed_log2: f32,
    offset: i32,
    pad: i32,
}

/// `of_attention` of attention_plain.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct PlainArgs {
    operands: [Operand; 8],
    lse: *mut u8,
    delta: *mut u8,
    lse_strides: [i64; 3],
    scale: f64,
    rows: i64,
    heads: i32,
    queries: i32,
    keys: i32,
    depth: i32,
    value_depth: i32,
    blocks: i32,
    causal: i32,
    offset: i32,
}

/// Constants that a tensor-core program is compiled for.
struct TensorCores {
    depth: usize,
    value_depth: usize,
    aligned: bool,
}

struct Pass<'a> {
    q: &'a Queue<'a>,
    sizes: &'a Sizes,
    settings: &'a Attention,
    dtype: DType,
    /// Heads of one batch.
    heads: i32,
}

impl<'a> Pass<'a> {
    fn new(q: &'a Queue<'a>, sizes: &'a Sizes, inputs: &Qkv, settings: &'a Attention) -> Result<Pass<'a>> {
        // Blocks of rows are counted in 32 bits, an index may run past the last row by a tile, and the offset is added to it.
        let most = i32::MAX as usize / 2 - 1024;
        if sizes.queries > most || sizes.keys > most || sizes.depth > most || sizes.value_depth > most {
            return Err(KernelError::new(format!(
                "attention of queries {:?} and keys {:?} is too long for a GPU kernel",
                inputs.q.dims(),
                inputs.k.dims()
            )));
        }
        let heads = i32::try_from(inputs.q.dims()[1]).map_err(|_| KernelError::new("too many heads"))?;
        Ok(Pass { q, sizes, settings, dtype: inputs.q.dtype(), heads: heads.max(1) })
    }

    fn tensor_cores(&self, views: &Views) -> Option<TensorCores> {
        let Sizes { depth, value_depth, .. } = *self.sizes;
        let fits = |d: usize| (1..=LARGEST_HEAD).contains(&d);
        if !self.dtype.is_half() || !fits(depth) || !fits(value_depth) {
            return None;
        }
        let padded = |d: usize| d.next_multiple_of(16).max(32);
        let aligned = views.operands().into_iter().flatten().all(vectors);
        Some(TensorCores { depth: padded(depth), value_depth: padded(value_depth), aligned })
    }

    /// Beyond these ends all keys are seen, or none.
    fn offset(&self) -> i32 {
        self.settings.offset.clamp(-(self.sizes.queries as i64), self.sizes.keys as i64) as i32
    }

    fn grid(&self, blocks: usize) -> Result<u32> {
        u32::try_from(blocks.saturating_mul(self.sizes.heads))
            .ok()
            .filter(|n| *n <= i32::MAX as u32)
            .ok_or_else(|| KernelError::new(format!("attention over {} heads has too many blocks", self.sizes.heads)))
    }

    fn tensor_core_launch(
        &self,
        t: &TensorCores,
        entry: &str,
        blocks: usize,
        shared: usize,
        views: &Views,
    ) -> Result<()> {
        let grid = self.grid(blocks)?;
        if grid == 0 {
            return Ok(());
        }
        let f =
            self.q.function(&ATTENTION, entry, &t.defines(self.dtype, self.settings.causal, views.grads.is_some()))?;
        let shared = self.shared(shared)?;
        f.allow_shared(shared)?;
        let scale = self.settings.scale;
        let args = HalfArgs {
            operands: views.operands().map(operand),
            lse: views.lse.map_or(std::ptr::null_mut(), View::ptr),
            delta: views.delta.map_or(std::ptr::null_mut(), View::ptr),
            lse_strides: views.lse_strides(),
            heads: self.heads,
            queries: self.sizes.queries as i32,
            keys: self.sizes.keys as i32,
            depth: self.sizes.depth as i32,
            value_depth: self.sizes.value_depth as i32,
            blocks: blocks as i32,
            scale: scale as f32,
            // Not zero: what a row does not see is minus infinity, and stays so when it is scaled.
            scale_log2: ((scale.abs() * std::f64::consts::LOG2_E) as f32).max(f32::MIN_POSITIVE),
            negative: i32::from(scale < 0.0),
            signed_log2: (scale * std::f64::consts::LOG2_E) as f32,
            offset: self.offset(),
            pad: 0,
        };
        self.q.launch(f, Launch::new(grid, THREADS).shared(shared), Args::new().value(args))
    }

    fn shared(&self, bytes: usize) -> Result<u32> {
        let most = self.q.gpu().shared_memory();
        u32::try_from(bytes).ok().filter(|b| *b <= most).ok_or_else(|| {
            KernelError::device(format!(
                "heads of {} (values {}) need {bytes} bytes of shared memory; this GPU has {most}",
                self.sizes.depth, self.sizes.value_depth
            ))
        })
    }

    fn plain_args(&self, blocks: usize, views: &Views) -> PlainArgs {
        PlainArgs {
            operands: views.operands().map(operand),
            lse: views.lse.map_or(std::ptr::null_mut(), View::ptr),
            delta: views.delta.map_or(std::ptr::null_mut(), View::ptr),
            lse_strides: views.lse_strides(),
            scale: self.settings.scale,
            rows: (self.sizes.heads * self.sizes.queries) as i64,
            heads: self.heads,
            queries: self.sizes.queries as i32,
            keys: self.sizes.keys as i32,
            depth: self.sizes.depth as i32,
            value_depth: self.sizes.value_depth as i32,
            blocks: blocks as i32,
            causal: i32::from(self.settings.causal),
            offset: self.offset(),
        }
    }

    /// The row sums of `dout * out`.
    fn delta(&self, views: &Views) -> Result<()> {
        let f = self.q.function(&PLAIN, "delta", &plain_defines(self.dtype, 32, true))?;
        let rows = self.sizes.heads * self.sizes.queries;
        let grid = self.q.blocks(rows.saturating_mul(32), PLAIN_THREADS, 4);
        self.q.launch(f, Launch::new(grid, PLAIN_THREADS), Args::new().value(self.plain_args(1, views)))
    }

    fn plain_launch(&self, entry: &str, grad: bool, steps: usize, views: &Views) -> Result<()> {
        let Sizes { depth, value_depth, .. } = *self.sizes;
        let size = if self.dtype == DType::F64 { 8 } else { 4 };
        // In elements; see the kernels.
        let bytes = |tile: usize| {
            let (d, dv) = (tile * (depth + 1), tile * (value_depth + 1));
            let square = tile * (tile + 1);
            size * if grad { 3 * d + 3 * dv + 2 * square } else { d + d.max(dv) + square + dv + 3 * tile }
        };
        let most = self.q.gpu().shared_memory() as usize;
        let tile = [32, 16, 8].into_iter().find(|t| bytes(*t) <= most).unwrap_or(8);
        let blocks = steps.div_ceil(tile);
        let (grid, shared) = (self.grid(blocks)?, self.shared(bytes(tile))?);
        if grid == 0 {
            return Ok(());
        }
        let f = self.q.function(&PLAIN, entry, &plain_defines(self.dtype, tile, grad))?;
        f.allow_shared(shared)?;
        let args = Args::new().value(self.plain_args(blocks, views));
        self.q.launch(f, Launch::new(grid, PLAIN_THREADS).shared(shared), args)
    }
}

impl TensorCores {
    fn defines(&self, dtype: DType, causal: bool, grad: bool) -> [Define; 6] {
        [
            Define::dtype("T", dtype),
            Define::int("D", self.depth as i64),
            Define::int("DV", self.value_depth as i64),
            Define::int("CAUSAL", i64::from(causal)),
            Define::int("ALIGNED", i64::from(self.aligned)),
            Define::int("GRAD", i64::from(grad)),
        ]
    }
}

fn plain_defines(dtype: DType, tile: usize, grad: bool) -> [Define; 3] {
    [Define::dtype("T", dtype), Define::int("TILE", tile as i64), Define::int("GRAD", i64::from(grad))]
}

/// Whether each row is whole vectors of 16 bytes.
fn vectors(v: &View) -> bool {
    let (d, s, size) = (v.dims(), v.strides(), v.dtype().size());
    let row = (d[3] * size).is_multiple_of(16) && s[3] == 1;
    row && (v.ptr() as usize).is_multiple_of(16) && (0..3).all(|i| d[i] <= 1 || s[i] * size as isize % 16 == 0)
}
