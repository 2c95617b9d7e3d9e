//! A product: are the parts consistent, and then D = epilogue(alpha op(A) op(B) + beta C + bias) on a stream.

use std::ffi::{c_int, c_void};

use super::gemm::{Element, Matrix, Number, product};
use super::*;
use crate::driver::memory::{MemoryKind, place};
use crate::driver::stream;

const BIAS: i32 = 4;
const RELU: i32 = 2;
const GELU: i32 = 32;
const AUX: i32 = 128;
const DGELU: i32 = 192;
const BGRADA: i32 = 256;
const BGRADB: i32 = 512;
/// Epilogues that are emulated: DEFAULT, RELU, BIAS, GELU, AUX of GELU, and the gradients.
const EPILOGUES: [i32; 11] = [1, 2, 4, 6, 32, 36, 160, 164, DGELU, BGRADA, BGRADB];

/// In the first word of an algorithm that the heuristic gave; the second is the workspace it needs.
const ALGORITHM: u64 = 0x0f10_a160;
const WORKSPACE: usize = 64 << 10;

/// A problem whose parts fit together.
#[derive(Clone, Copy)]
struct Problem {
    desc: Desc,
    a: MatrixLayout,
    b: MatrixLayout,
    c: MatrixLayout,
    d: MatrixLayout,
    size: (usize, usize, usize),
}

fn element(layout: &MatrixLayout) -> Outcome<Element> {
    Element::of(layout.dtype).ok_or(NOT_SUPPORTED)
}

/// Rows and columns after the transpose.
fn shape(layout: &MatrixLayout, transposed: i32) -> Outcome<(usize, usize)> {
    let (rows, cols) = (layout.rows as usize, layout.cols as usize);
    match transposed {
        0 => Ok((rows, cols)),
        1 | 2 => Ok((cols, rows)),
        _ => Err(INVALID_VALUE),
    }
}

impl Problem {
    fn new(desc: usize, [a, b, c, d]: [usize; 4]) -> Outcome<Problem> {
        let desc = copy_of(&DESCS, desc)?;
        let [a, b, c, d] = [copy_of(&LAYOUTS, a)?, copy_of(&LAYOUTS, b)?, copy_of(&LAYOUTS, c)?, copy_of(&LAYOUTS, d)?];
        for layout in [&a, &b, &c, &d] {
            let line = if layout.order == 1 { layout.cols } else { layout.rows };
            if layout.rows == 0 || layout.cols == 0 || layout.ld < line as i64 || layout.batches < 1 {
                return Err(INVALID_VALUE);
            }
            if layout.order > 1 {
                return Err(NOT_SUPPORTED);
            }
            if layout.batches != d.batches {
                return Err(INVALID_VALUE);
            }
        }
        let (m, k) = shape(&a, desc.transposed_a)?;
        let (inner, n) = shape(&b, desc.transposed_b)?;
        let like_d = |l: &MatrixLayout| (l.rows as usize, l.cols as usize) == (m, n);
        if inner != k || !like_d(&c) || !like_d(&d) || c.dtype != d.dtype {
            return Err(INVALID_VALUE);
        }
        let types = (element(&a)?, element(&b)?, element(&d)?);
        let supported = match (desc.compute, desc.scale) {
            // 32F and its pedantic, fast-16F, fast-16BF, fast-TF32 forms, scaled in f32.
            (68 | 69 | 74 | 75 | 77, 0) => {
                types.0 == types.1
                    && matches!(
                        (types.0, types.2),
                        (Element::F32, Element::F32)
                            | (Element::F16, Element::F16 | Element::F32)
                            | (Element::BF16, Element::BF16 | Element::F32)
                    )
            }
            (70 | 71, 1) => types == (Element::F64, Element::F64, Element::F64),
            _ => false,
        };
        let bias_fits = desc.bias_type < 0 || Element::of(desc.bias_type).is_some();
        if !supported || !EPILOGUES.contains(&desc.epilogue) || desc.pointer_mode != 0 || !bias_fits {
            return Err(NOT_SUPPORTED);
        }
        Ok(Problem { desc, a, b, c, d, size: (m, n, k) })
    }

    fn has(&self, part: i32) -> bool {
        self.desc.epilogue & part != 0
    }

    fn bias_element(&self) -> Outcome<Element> {
        Element::of(if self.desc.bias_type < 0 { self.d.dtype } else { self.desc.bias_type }).ok_or(NOT_SUPPORTED)
    }

    /// The bias vector's length, if the epilogue reads or writes one.
    fn bias_len(&self) -> Option<usize> {
        let (m, n, _) = self.size;
        match self.desc.epilogue {
            BGRADA => Some(m),
            BGRADB => Some(n),
            epilogue if epilogue & BIAS != 0 => Some(m),
            _ => None,
        }
    }
}

/// The bytes from the first to the last element of all batches.
fn extent(layout: &MatrixLayout, element: Element) -> usize {
    let (lines, line) = if layout.order == 1 { (layout.rows, layout.cols) } else { (layout.cols, layout.rows) };
    let one = (lines as usize - 1) * layout.ld as usize + line as usize;
    (one + (layout.batches as usize - 1) * layout.stride.unsigned_abs() as usize) * element.size()
}

/// The operand is aligned and lies in live memory that the device can reach.
fn check(at: usize, bytes: usize, element: Element, what: &str) -> Outcome {
    let reachable = matches!(place(at, bytes), Ok(MemoryKind::Device | MemoryKind::Pinned));
    if reachable && at.is_multiple_of(element.size()) {
        return Ok(());
    }
    eprintln!("emulated cublasLtMatmul: {what} ({bytes} bytes at {at:#x}) is not aligned or not all in one allocation");
    Err(INVALID_VALUE)
}

fn matrix(layout: &MatrixLayout, element: Element, base: usize, transposed: bool, batch: usize) -> Matrix {
    let base = base.wrapping_add_signed(batch as isize * layout.stride as isize * element.size() as isize);
    let (down, right) = if layout.order == 1 { (layout.ld as usize, 1) } else { (1, layout.ld as usize) };
    let (down, right) = if transposed { (right, down) } else { (down, right) };
    Matrix { element, base, down, right }
}

/// The operands' addresses, and the scalars.
struct Operands<N> {
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    alpha: N,
    beta: N,
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044715 * x * x * x)).tanh())
}

fn gelu_slope(x: f64) -> f64 {
    let t = (0.797_884_560_802_865_4 * (x + 0.044715 * x * x * x)).tanh();
    0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * 0.797_884_560_802_865_4 * (1.0 + 3.0 * 0.044715 * x * x)
}

/// # Safety
/// All operands were checked and are live.
unsafe fn run<N: Number>(p: &Problem, at: &Operands<N>) -> Outcome {
    let (m, n, k) = p.size;
    let (of_a, of_b, of_d, of_bias) = (element(&p.a)?, element(&p.b)?, element(&p.d)?, p.bias_element()?);
    let desc = &p.desc;
    for batch in 0..p.d.batches as usize {
        let a = matrix(&p.a, of_a, at.a, desc.transposed_a != 0, batch);
        let b = matrix(&p.b, of_b, at.b, desc.transposed_b != 0, batch);
        let c = matrix(&p.c, of_d, at.c, false, batch);
        let d = matrix(&p.d, of_d, at.d, false, batch);
        let bias = desc.bias.wrapping_add_signed(batch as isize * desc.bias_stride as isize * of_bias.size() as isize);
        let aux = MatrixLayout { ld: desc.aux_ld, stride: desc.aux_stride, ..p.d };
        let aux = matrix(&aux, of_d, desc.aux, false, batch);
        // SAFETY: by contract, all elements that are read and written lie in what was checked.
        unsafe {
            product::<N>(a, b, p.size, desc.compute == 77, |i, j, sum| {
                let mut y = at.alpha * sum;
                if at.beta != N::default() {
                    y = y + at.beta * of_d.load::<N>(c.base, i * c.down + j * c.right);
                }
                if desc.epilogue < DGELU && p.has(BIAS) {
                    y = y + of_bias.load::<N>(bias, i);
                }
                if desc.epilogue == DGELU {
                    let x: N = of_d.load(aux.base, i * aux.down + j * aux.right);
                    y = y * N::of(gelu_slope(x.to()));
                } else if desc.epilogue < DGELU {
                    if p.has(AUX) {
                        of_d.store(aux.base, i * aux.down + j * aux.right, y);
                    }
                    if p.has(GELU) {
                        y = N::of(gelu(y.to()));
                    } else if p.has(RELU) {
                        y = if y.to() > 0.0 { y } else { N::default() };
                    }
                }
                of_d.store(d.base, i * d.down + j * d.right, y);
            });
            if desc.epilogue == BGRADA {
                for i in 0..m {
                    let sum: f64 = (0..k).map(|at| of_a.load::<N>(a.base, i * a.down + at * a.right).to()).sum();
                    of_bias.store(bias, i, N::of(sum));
                }
            } else if desc.epilogue == BGRADB {
                for j in 0..n {
                    let sum: f64 = (0..k).map(|at| of_b.load::<N>(b.base, at * b.down + j * b.right).to()).sum();
                    of_bias.store(bias, j, N::of(sum));
                }
            }
        }
    }
    Ok(())
}

#[repr(C)]
struct Heuristic {
    algorithm: [u64; 8],
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    handle: usize,
    desc: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    preference: usize,
    wanted: c_int,
    results: *mut Heuristic,
    count: *mut c_int,
) -> i32 {
    let give = || -> Outcome {
        HANDLES.get(handle).ok_or(NOT_INITIALIZED)?;
        let room = copy_of(&PREFERENCES, preference)?;
        if wanted < 1 || results.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller gives places for the results.
        unsafe { put(count, 0)? };
        Problem::new(desc, [a, b, c, d])?;
        let workspace = if room >= WORKSPACE { WORKSPACE } else { 0 };
        let algorithm = [ALGORITHM, workspace as u64, 0, 0, 0, 0, 0, 0];
        // SAFETY: as above.
        unsafe {
            put(results, Heuristic { algorithm, workspace, state: SUCCESS, waves: 1.0, reserved: [0; 4] })?;
            put(count, 1)
        }
    };
    status(give())
}

/// # Safety
/// `alpha` and `beta` point to host numbers of type `N`.
unsafe fn submit<N: Number + Send + 'static>(
    p: Problem,
    [a, b, c, d]: [usize; 4],
    alpha: *const c_void,
    beta: *const c_void,
    workspace: (usize, usize),
    stream: usize,
) -> Outcome {
    if alpha.is_null() || beta.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: by contract.
    let (alpha, beta) = unsafe { (*alpha.cast::<N>(), *beta.cast::<N>()) };
    check(a, extent(&p.a, element(&p.a)?), element(&p.a)?, "A")?;
    check(b, extent(&p.b, element(&p.b)?), element(&p.b)?, "B")?;
    check(d, extent(&p.d, element(&p.d)?), element(&p.d)?, "D")?;
    if beta != N::default() {
        check(c, extent(&p.c, element(&p.c)?), element(&p.c)?, "C")?;
    }
    if let Some(len) = p.bias_len() {
        let size = p.bias_element()?.size();
        let batches = (p.d.batches as usize - 1) * p.desc.bias_stride.unsigned_abs() as usize;
        check(p.desc.bias, (len + batches) * size, p.bias_element()?, "the bias")?;
    }
    if p.desc.epilogue == DGELU || p.desc.epilogue < DGELU && p.has(AUX) {
        let line = if p.d.order == 1 { p.d.cols } else { p.d.rows };
        if p.desc.aux_ld < line as i64 {
            return Err(INVALID_VALUE);
        }
        let aux = MatrixLayout { ld: p.desc.aux_ld, stride: p.desc.aux_stride, ..p.d };
        check(p.desc.aux, extent(&aux, element(&p.d)?), element(&p.d)?, "the auxiliary matrix")?;
    }
    if workspace.1 > 0 {
        check(workspace.0, workspace.1, Element::F64, "the workspace")?;
    }
    let stream = stream::find(stream).map_err(|_| INVALID_VALUE)?;
    let operands = Operands { a, b, c, d, alpha, beta };
    stream.work(move |_| {
        // SAFETY: checked above, and a block that dies meanwhile stays mapped. A workspace is written, as real
        // algorithms do, so that two streams that share one show.
        unsafe {
            (workspace.0 as *mut u8).write_bytes(0xCD, workspace.1);
            let _ = run(&p, &operands);
        }
        Ok(())
    });
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmul(
    handle: usize,
    desc: usize,
    alpha: *const c_void,
    a: usize,
    a_layout: usize,
    b: usize,
    b_layout: usize,
    beta: *const c_void,
    c: usize,
    c_layout: usize,
    d: usize,
    d_layout: usize,
    algorithm: *const [u64; 8],
    workspace: usize,
    workspace_size: usize,
    stream: usize,
) -> i32 {
    let multiply = || -> Outcome {
        HANDLES.get(handle).ok_or(NOT_INITIALIZED)?;
        current().map_err(|_| EXECUTION_FAILED)?;
        let problem = Problem::new(desc, [a_layout, b_layout, c_layout, d_layout])?;
        let need = match algorithm.is_null() {
            true => workspace_size.min(WORKSPACE),
            // SAFETY: not null, so an algorithm.
            false => match unsafe { *algorithm } {
                [ALGORITHM, need, ..] if need as usize <= workspace_size => need as usize,
                _ => return Err(INVALID_VALUE),
            },
        };
        let operands = [a, b, c, d];
        // SAFETY: alpha and beta are of the scale type, on the host as the pointer mode says.
        unsafe {
            match problem.desc.scale {
                0 => submit::<f32>(problem, operands, alpha, beta, (workspace, need), stream),
                _ => submit::<f64>(problem, operands, alpha, beta, (workspace, need), stream),
            }
        }
    };
    status(multiply())
}
