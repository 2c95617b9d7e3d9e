//! bf16 products on CPUs that multiply pairs of bf16 and add them to f32: by vectors (AVX-512 BF16), or by matrices ([`amx`]).
//!
//! Both operands are packed: neighbours along k become one pair of 32 bits, and the rows of `a` and the columns of `b` that a
//! tile of registers takes lie side by side. Each number is summed in the order of k, in blocks of [`DEPTH`], whatever the
//! tile it lies in; tiles at the edges are filled up with zeros. The instructions take denormal numbers as zeros.

use super::halves::{PanelWindow, Tiles};
use crate::DType;

/// Computes a tile of the output: `m`, `n` and `k`, the operands, whether to add to the output, the output.
///
/// # Safety
/// The windows have the elements that the sizes say; nothing else touches those of the output.
pub(super) type Tile = unsafe fn(&mut Tiles, [usize; 3], PanelWindow, PanelWindow, bool, PanelWindow);

/// Rows and columns of a tile, and what computes it.
pub(super) type Kernel = (usize, usize, Tile);

/// The kernels whose instructions this CPU has, the quickest first.
pub(super) fn kernels() -> impl Iterator<Item = Kernel> {
    #[cfg(target_arch = "x86_64")]
    {
        use native::{COLUMNS, Instructions, Matrices, Vectors, by_matrices, by_vectors};
        let vectors = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512bf16");
        let matrices = (vectors && amx::here()).then_some((4 * Matrices::BLOCK, COLUMNS, by_matrices as Tile));
        matrices.into_iter().chain(vectors.then_some((4 * Vectors::BLOCK, COLUMNS, by_vectors as Tile)))
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::iter::empty()
}

/// The kernel for a dtype, if this CPU has one.
pub(super) fn kernel(dtype: DType) -> Option<Kernel> {
    if dtype == DType::BF16 { kernels().next() } else { None }
}

#[cfg(target_arch = "x86_64")]
mod native {
    use super::{PanelWindow, Tiles, amx};
    use crate::DType;
    use crate::cpu::acc::{load, store};
    use crate::cpu::turn::Turn;
    use std::arch::x86_64::*;

    /// Columns of a tile of registers.
    pub(super) const NR: usize = 32;
    /// Columns of `b` that are packed at a time.
    pub(super) const COLUMNS: usize = 1024;
    /// The part of k that is packed at a time. Fixed: it decides the order of summation.
    const DEPTH: usize = 1024;
    /// Elements in a vector of pairs.
    const LANES: usize = 16;

    /// The instructions that multiply a panel of rows and a panel of columns.
    ///
    /// # Safety
    /// The functions of an implementation run on CPUs that have its instructions only.
    pub(super) trait Instructions {
        /// Rows of a tile.
        const MR: usize;
        /// Rows of `a` that are packed at a time: with [`DEPTH`] they fill a quarter of a second-level cache of 1 or 2 MiB.
        const BLOCK: usize;
        /// Pairs along k are filled up with zeros to a multiple of this.
        const PAIRS: usize;
        /// Makes this thread ready to multiply.
        unsafe fn begin() {}
        /// The end of that.
        unsafe fn end() {}
        /// Packs `height` rows of `a`, of the `exist` that there are, in panels of `MR` rows and `pairs` pairs.
        unsafe fn pack_rows(from: PanelWindow, sizes: [usize; 2], depth: usize, pairs: usize, to: *mut u32);
        /// Adds the product of a panel of rows and a panel of columns to `MR` rows of sums, or to zero where these are `fresh`.
        unsafe fn multiply(a: *const u32, b: *const u32, pairs: usize, sums: &mut [[f32; NR]], fresh: bool);
    }

    /// Rows of a tile of vectors.
    const VECTOR_ROWS: usize = 14;

    /// AVX-512 BF16: 28 sums, two vectors of `b`, and the pair of `a` comes from memory.
    pub(super) struct Vectors;

    impl Instructions for Vectors {
        const MR: usize = VECTOR_ROWS;
        const BLOCK: usize = 9 * Self::MR;
        const PAIRS: usize = 1;
        #[inline(always)]
        unsafe fn pack_rows(from: PanelWindow, sizes: [usize; 2], depth: usize, pairs: usize, to: *mut u32) {
            // SAFETY: the caller's promise.
            unsafe { pack::<VECTOR_ROWS>(from, from.strides.0, from.strides.1, sizes, depth, pairs, to) }
        }
        #[inline(always)]
        unsafe fn multiply(a: *const u32, b: *const u32, pairs: usize, sums: &mut [[f32; NR]], fresh: bool) {
            // SAFETY: the caller's promise.
            unsafe { multiply(a, b, pairs, sums, fresh) }
        }
    }

    /// AMX: four matrices of sums.
    pub(super) struct Matrices;

    impl Instructions for Matrices {
        const MR: usize = amx::ROWS;
        const BLOCK: usize = 4 * Self::MR;
        const PAIRS: usize = amx::PAIRS;
        #[inline(always)]
        unsafe fn begin() {
            // SAFETY: the caller's promise.
            unsafe { amx::begin() }
        }
        #[inline(always)]
        unsafe fn end() {
            // SAFETY: the caller's promise.
            unsafe { amx::end() }
        }
        #[inline(always)]
        unsafe fn pack_rows(from: PanelWindow, sizes: [usize; 2], depth: usize, pairs: usize, to: *mut u32) {
            // SAFETY: the caller's promise.
            unsafe { pack_along(from, sizes, depth, pairs, to) }
        }
        #[inline(always)]
        unsafe fn multiply(a: *const u32, b: *const u32, pairs: usize, sums: &mut [[f32; NR]], fresh: bool) {
            if fresh {
                sums.fill([0.0; NR]);
            }
            // SAFETY: the caller's promise.
            unsafe { amx::multiply(a, b, pairs, sums) }
        }
    }

    /// See [`super::Tile`].
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    pub(super) unsafe fn by_vectors(
        t: &mut Tiles,
        sizes: [usize; 3],
        a: PanelWindow,
        b: PanelWindow,
        keep: bool,
        c: PanelWindow,
    ) {
        // SAFETY: the caller's promise.
        unsafe { tile::<Vectors>(t, sizes, a, b, keep, c) }
    }

    /// See [`super::Tile`].
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    pub(super) unsafe fn by_matrices(
        t: &mut Tiles,
        sizes: [usize; 3],
        a: PanelWindow,
        b: PanelWindow,
        keep: bool,
        c: PanelWindow,
    ) {
        // SAFETY: the caller's promise.
        unsafe { tile::<Matrices>(t, sizes, a, b, keep, c) }
    }

    /// See [`super::Tile`].
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    #[inline]
    unsafe fn tile<I: Instructions>(
        t: &mut Tiles,
        [m, n, k]: [usize; 3],
        a: PanelWindow,
        b: PanelWindow,
        keep: bool,
        c: PanelWindow,
    ) {
        // One block at least: a sum of nothing is written, too.
        let blocks = k.div_ceil(DEPTH).max(1);
        let padded = |depth: usize| depth.div_ceil(2).next_multiple_of(I::PAIRS);
        let pairs = padded(k.min(DEPTH));
        t.a.resize(I::BLOCK * pairs + LANES, 0.0);
        t.b.resize(n.next_multiple_of(NR) * pairs, 0.0);
        t.c.resize(if blocks > 1 { m * n } else { 0 }, 0.0);
        let (packed_a, packed_b) = (t.a.as_mut_ptr().cast::<u32>(), t.b.as_mut_ptr().cast::<u32>());
        // As many rows as any tile has.
        let mut sums = [[0f32; NR]; amx::ROWS];
        // SAFETY: the CPU has the instructions, by the caller's promise.
        unsafe { I::begin() };
        for block in 0..blocks {
            let first = block * DEPTH;
            let depth = DEPTH.min(k - first);
            let pairs = padded(depth);
            let from = b.at(first, 0);
            // SAFETY: a part of the window; the buffer has room for whole panels.
            unsafe { pack::<NR>(from, from.strides.1, from.strides.0, [n, n], depth, pairs, packed_b) };
            for top in (0..m).step_by(I::BLOCK) {
                let height = I::BLOCK.min(m - top);
                let from = a.at(top, first);
                // SAFETY: as above.
                unsafe { I::pack_rows(from, [height, m - top], depth, pairs, packed_a) };
                for j in (0..n).step_by(NR) {
                    let columns = NR.min(n - j);
                    for i in (top..top + height).step_by(I::MR) {
                        let rows = I::MR.min(top + height - i);
                        let sums = &mut sums[..I::MR];
                        let fresh = block == 0 && !keep;
                        if !fresh {
                            sums.fill([0.0; NR]);
                        }
                        for (r, sums) in sums[..rows].iter_mut().enumerate().filter(|_| !fresh) {
                            if block > 0 {
                                sums[..columns].copy_from_slice(&t.c[(i + r) * n + j..][..columns]);
                            } else {
                                // SAFETY: a row of the output's window.
                                unsafe {
                                    load(c.view.dtype(), c.address(i + r, j), c.strides.1, &mut sums[..columns]);
                                }
                            }
                        }
                        let (a, b) = (packed_a.wrapping_add((i - top) * pairs), packed_b.wrapping_add(j * pairs));
                        // SAFETY: panels of `pairs` steps, packed above.
                        unsafe { I::multiply(a, b, pairs, sums, fresh) };
                        for (r, sums) in sums[..rows].iter().enumerate() {
                            if block + 1 < blocks {
                                t.c[(i + r) * n + j..][..columns].copy_from_slice(&sums[..columns]);
                            } else {
                                // SAFETY: a row of the output's window, which is ours alone.
                                unsafe { write(c, i + r, j, sums, columns) };
                            }
                        }
                    }
                }
            }
        }
        // SAFETY: as above.
        unsafe { I::end() };
    }

    /// Adds the product of a panel of rows and a panel of columns.
    ///
    /// # Safety
    /// The panels have `pairs` steps of [`VECTOR_ROWS`] and [`NR`] pairs.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    unsafe fn multiply(mut a: *const u32, mut b: *const u32, pairs: usize, sums: &mut [[f32; NR]], fresh: bool) {
        // SAFETY: inside the panels and the sums; vectors of 16 pairs are vectors of 32 bf16.
        unsafe {
            let mut acc = [[_mm512_setzero_ps(); 2]; VECTOR_ROWS];
            if !fresh {
                acc = std::array::from_fn(|i| {
                    let row = sums[i].as_ptr();
                    [_mm512_loadu_ps(row), _mm512_loadu_ps(row.add(LANES))]
                });
            }
            for _ in 0..pairs {
                let vector = |p: *const u32| std::mem::transmute::<__m512i, __m512bh>(_mm512_loadu_si512(p.cast()));
                let columns = [vector(b), vector(b.add(LANES))];
                for (i, acc) in acc.iter_mut().enumerate() {
                    let row = std::mem::transmute::<__m512i, __m512bh>(_mm512_set1_epi32(a.add(i).read() as i32));
                    acc[0] = _mm512_dpbf16_ps(acc[0], row, columns[0]);
                    acc[1] = _mm512_dpbf16_ps(acc[1], row, columns[1]);
                }
                (a, b) = (a.add(VECTOR_ROWS), b.add(NR));
            }
            for (sums, acc) in sums.iter_mut().zip(acc) {
                _mm512_storeu_ps(sums.as_mut_ptr(), acc[0]);
                _mm512_storeu_ps(sums.as_mut_ptr().add(LANES), acc[1]);
            }
        }
    }

    /// Rounds a row of a tile into the output.
    ///
    /// # Safety
    /// The `columns` elements from (i, j) exist and nobody else touches them.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    unsafe fn write(c: PanelWindow, i: usize, j: usize, sums: &[f32; NR], columns: usize) {
        let (to, stride) = (c.address(i, j), c.strides.1);
        if c.view.dtype() != DType::BF16 {
            // SAFETY: the caller's promise.
            return unsafe { store(c.view.dtype(), to, stride, &sums[..columns]) };
        }
        // SAFETY: 32 sums make 32 bf16, of which `columns` are written, by the caller's promise.
        unsafe {
            let halves = [_mm512_loadu_ps(sums.as_ptr()), _mm512_loadu_ps(sums.as_ptr().add(LANES))];
            let rounded = std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(halves[1], halves[0]));
            if stride == 1 {
                return _mm512_mask_storeu_epi16(to.cast(), u32::MAX >> (NR - columns), rounded);
            }
            let rounded: [u16; NR] = std::mem::transmute(rounded);
            for (l, x) in rounded[..columns].iter().enumerate() {
                to.cast::<u16>().wrapping_offset(l as isize * stride).write(*x);
            }
        }
    }

    /// Packs `lanes` rows (or columns) of `k` elements, of the `exist` that there are, into panels of `W`: the pair `p` of lane
    /// `l` of a panel lies at `p * W + l`, of `pairs`. What is missing is zero.
    ///
    /// # Safety
    /// The elements exist, `lane` apart from lane to lane and `step` along k; `to` has room for whole panels and a vector.
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn pack<const W: usize>(
        from: PanelWindow,
        lane: isize,
        step: isize,
        [lanes, exist]: [usize; 2],
        k: usize,
        pairs: usize,
        to: *mut u32,
    ) {
        let from = from.address(0, 0).cast::<u16>().cast_const();
        // Vectors may write lanes past the end of a panel's step; those are written again by the next step or panel.
        for group in 0..lanes.div_ceil(W) * W.div_ceil(LANES) {
            let (panel, part) = (group / W.div_ceil(LANES), group % W.div_ceil(LANES) * LANES);
            let first = panel * W + part;
            // Lanes that lie side by side fill a cache line, which is read once for both halves of a panel of `NR`.
            let both = W == 2 * LANES && lane == 1 && step != 1 && panel * W + W <= exist;
            if both && part > 0 {
                continue;
            }
            let width = if both { W } else { LANES.min(W - part) };
            let from = from.wrapping_offset(first as isize * lane);
            let to = to.wrapping_add(panel * pairs * W + part);
            let mut p = 0;
            // SAFETY: all lanes of the vectors exist, and all pairs below k / 2.
            unsafe {
                if first + LANES <= exist && step == 1 {
                    let (side, square) = u32::square().expect("the CPU has AVX-512");
                    while p + side <= k / 2 {
                        let pairs = from.wrapping_add(2 * p).cast();
                        square(pairs, lane * size_of::<u16>() as isize, to.add(p * W), (W * size_of::<u32>()) as isize);
                        p += side;
                    }
                } else if both {
                    while p < k / 2 {
                        let row =
                            |i: usize| _mm512_loadu_si512(from.wrapping_offset((2 * p + i) as isize * step).cast());
                        let (low, high) = (row(0), row(1));
                        for (half, low, high) in [
                            (0, _mm512_castsi512_si256(low), _mm512_castsi512_si256(high)),
                            (LANES, _mm512_extracti64x4_epi64::<1>(low), _mm512_extracti64x4_epi64::<1>(high)),
                        ] {
                            let high = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(high));
                            let both = _mm512_or_si512(_mm512_cvtepu16_epi32(low), high);
                            _mm512_storeu_si512(to.add(p * W + half).cast(), both);
                        }
                        p += 1;
                    }
                } else if first + LANES <= exist && lane == 1 {
                    while p < k / 2 {
                        let row = |i: usize| {
                            let row = from.wrapping_offset((2 * p + i) as isize * step);
                            _mm512_cvtepu16_epi32(_mm256_loadu_si256(row.cast()))
                        };
                        let both = _mm512_or_si512(row(0), _mm512_slli_epi32::<16>(row(1)));
                        _mm512_storeu_si512(to.add(p * W).cast(), both);
                        p += 1;
                    }
                }
            }
            for p in p..pairs {
                for l in 0..width {
                    // SAFETY: reads what exists; the panel has this pair.
                    unsafe {
                        let at = |k: usize| from.wrapping_offset(l as isize * lane + k as isize * step).read() as u32;
                        let exists = first + l < exist;
                        let low = if exists && 2 * p < k { at(2 * p) } else { 0 };
                        let high = if exists && 2 * p + 1 < k { at(2 * p + 1) } else { 0 };
                        to.add(p * W + l).write(low | high << 16);
                    }
                }
            }
        }
    }

    /// Packs `lanes` rows of `k` elements, of the `exist` that there are, into matrices of 16 rows and 16 pairs, those of 16 rows one
    /// after the other. What is missing is zero, rows up to a multiple of [`amx::ROWS`] too.
    ///
    /// # Safety
    /// The elements exist; `to` has room for the rows.
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn pack_along(from: PanelWindow, [lanes, exist]: [usize; 2], k: usize, pairs: usize, to: *mut u32) {
        let (lane, step) = from.strides;
        let rows = lanes.next_multiple_of(amx::ROWS);
        let at = |l: usize, i: usize| {
            from.address(0, 0).cast::<u16>().cast_const().wrapping_offset(l as isize * lane + i as isize * step)
        };
        // SAFETY (all): reads what exists below `exist` and `k`; writes rows that there is room for.
        unsafe {
            if step == 1 {
                for l in 0..rows {
                    let row = to.add(l / LANES * LANES * pairs + l % LANES * LANES);
                    for p in (0..pairs).step_by(LANES) {
                        let n = if l < lanes { k.saturating_sub(2 * p).min(2 * LANES) } else { 0 };
                        let mask = if n == 0 { 0 } else { u32::MAX >> (2 * LANES - n) };
                        // What is masked is not read.
                        let numbers = _mm512_maskz_loadu_epi16(mask, at(l, 2 * p).cast());
                        _mm512_storeu_si512(row.add(p * LANES).cast(), numbers);
                    }
                }
                return;
            }
            let square = u32::square().filter(|(side, _)| *side == LANES);
            for first in (0..rows).step_by(LANES) {
                let whole = lane == 1 && first + LANES <= exist;
                for p in (0..pairs).step_by(LANES) {
                    // The pairs of 16 rows, one vector for each place.
                    let mut block = [[0u32; LANES]; LANES];
                    for (q, block) in block.iter_mut().enumerate() {
                        let i = 2 * (p + q);
                        if whole && i + 1 < k {
                            let of = |i: usize| _mm512_cvtepu16_epi32(_mm256_loadu_si256(at(first, i).cast()));
                            let both = _mm512_or_si512(of(i), _mm512_slli_epi32::<16>(of(i + 1)));
                            _mm512_storeu_si512(block.as_mut_ptr().cast(), both);
                            continue;
                        }
                        for (l, pair) in block.iter_mut().enumerate() {
                            let number = |i: usize| match first + l < lanes && i < k {
                                true => u32::from(at(first + l, i).read()),
                                false => 0,
                            };
                            *pair = number(i) | number(i + 1) << 16;
                        }
                    }
                    let to = to.add(first * pairs + p * LANES);
                    match square {
                        Some((_, square)) => {
                            let row = (LANES * size_of::<u32>()) as isize;
                            square(block.as_ptr().cast(), row, to, row);
                        }
                        None => {
                            for (q, block) in block.iter().enumerate() {
                                block.iter().enumerate().for_each(|(l, pair)| to.add(l * LANES + q).write(*pair));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The matrix instructions of Intel's CPUs (AMX-BF16). The compiler of stable Rust does not know them: they are written as assembly, and
/// the system is asked for the registers first.
#[cfg(target_arch = "x86_64")]
mod amx {
    use super::native::NR;
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::sync::OnceLock;

    /// Rows of a panel of `a`: two matrices.
    pub(super) const ROWS: usize = 32;
    /// Pairs along k in a matrix.
    pub(super) const PAIRS: usize = 16;

    /// Whether this CPU has the instructions and the system gives their registers to this process.
    pub(super) fn here() -> bool {
        static HERE: OnceLock<bool> = OnceLock::new();
        *HERE.get_or_init(|| {
            let bits = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).edx } else { 0 };
            let cpu = bits >> 22 & 1 == 1 && bits >> 24 & 1 == 1;
            cpu && registers()
        })
    }

    /// Asks Linux for the matrix registers, which it gives to processes that ask (Documentation/arch/x86/xstate.rst).
    #[cfg(target_os = "linux")]
    fn registers() -> bool {
        const ARCH_REQ_XCOMP_PERM: libc::c_int = 0x1023;
        const XFEATURE_XTILEDATA: libc::c_ulong = 18;
        // SAFETY: the call changes nothing but what this process may use.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
    }

    #[cfg(not(target_os = "linux"))]
    fn registers() -> bool {
        false
    }

    /// Palette 1: eight matrices of 16 rows of 64 bytes.
    #[repr(C, align(64))]
    struct Shape {
        palette: u8,
        start: u8,
        zero: [u8; 14],
        bytes: [u16; 16],
        rows: [u8; 16],
    }

    static SHAPE: Shape = {
        let (mut bytes, mut rows, mut i) = ([0; 16], [0; 16], 0);
        while i < 8 {
            (bytes[i], rows[i]) = (64, 16);
            i += 1;
        }
        Shape { palette: 1, start: 0, zero: [0; 14], bytes, rows }
    };

    /// Gives the registers of this thread their shape.
    ///
    /// # Safety
    /// [`here`] is true.
    #[inline(always)]
    pub(super) unsafe fn begin() {
        // SAFETY: the CPU has the instruction; the shape is valid. No other code uses these registers.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const SHAPE, options(nostack, readonly, preserves_flags)) }
    }

    /// Gives the registers back, so that a change of threads need not save them.
    ///
    /// # Safety
    /// [`here`] is true.
    #[inline(always)]
    pub(super) unsafe fn end() {
        // SAFETY: as above.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) }
    }

    /// Adds the product of 32 rows of pairs and a panel of 32 columns.
    ///
    /// # Safety
    /// [`begin`] was called on this thread. `a` has matrices of 16 rows and 16 pairs, first those of 16 rows, then those of 16 more, of
    /// `pairs` pairs each, a multiple of [`PAIRS`]; `b` has as many rows of [`NR`]; there are [`ROWS`] rows of sums.
    pub(super) unsafe fn multiply(a: *const u32, b: *const u32, pairs: usize, sums: &mut [[f32; NR]]) {
        debug_assert_eq!((sums.len(), pairs % PAIRS), (ROWS, 0));
        let to = sums.as_mut_ptr().cast::<f32>();
        // SAFETY: the matrices lie in the panels and the sums, by the caller's promise. All memory that is written is named by pointers
        // that the assembly has.
        unsafe {
            asm!(
                "tileloadd tmm0, [{c} + {width}]",
                "tileloadd tmm1, [{c} + {width} + 64]",
                "tileloadd tmm2, [{low} + {width}]",
                "tileloadd tmm3, [{low} + {width} + 64]",
                "test {steps}, {steps}",
                "jz 3f",
                "2:",
                // The columns two steps ahead: the panel is longer than the first cache.
                ".set of_line, 0",
                ".rept 32",
                "prefetcht0 [{b} + 4096 + of_line]",
                ".set of_line, of_line + 64",
                ".endr",
                "tileloadd tmm4, [{a} + {pitch}]",
                "tileloadd tmm6, [{b} + {width}]",
                "tileloadd tmm7, [{b} + {width} + 64]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm5, [{d} + {pitch}]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a}, 1024",
                "add {d}, 1024",
                "add {b}, 2048",
                "dec {steps}",
                "jnz 2b",
                "3:",
                "tilestored [{c} + {width}], tmm0",
                "tilestored [{c} + {width} + 64], tmm1",
                "tilestored [{low} + {width}], tmm2",
                "tilestored [{low} + {width} + 64], tmm3",
                c = in(reg) to,
                low = in(reg) to.add(16 * NR),
                width = in(reg) NR * size_of::<f32>(),
                pitch = in(reg) 64usize,
                a = inout(reg) a => _,
                d = inout(reg) a.add(16 * pairs) => _,
                b = inout(reg) b => _,
                steps = inout(reg) pairs / PAIRS => _,
                options(nostack),
            );
        }
    }
}
