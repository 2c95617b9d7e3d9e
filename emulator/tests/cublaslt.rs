//! cublasLtMatmul against a plain product: all transposes, orders, types; batches, epilogues; and what it refuses.

mod common;
use common::*;
use cudarc::cublaslt::sys::*;
use half::{bf16, f16};
use std::ffi::c_void;

const FINE: cublasStatus_t = cublasStatus_t::CUBLAS_STATUS_SUCCESS;

/// A matrix to lay out: rows and columns as stored (before a transpose).
#[derive(Clone, Copy)]
struct Stored {
    dtype: cudaDataType,
    rows: usize,
    cols: usize,
    row_major: bool,
    pad: usize,
    batches: usize,
}

impl Stored {
    fn ld(&self) -> usize {
        self.pad + if self.row_major { self.cols } else { self.rows }
    }
    fn lines(&self) -> usize {
        if self.row_major { self.rows } else { self.cols }
    }
    fn len(&self) -> usize {
        self.ld() * self.lines() * self.batches
    }
    fn at(&self, batch: usize, i: usize, j: usize) -> usize {
        batch * self.ld() * self.lines() + if self.row_major { i * self.ld() + j } else { j * self.ld() + i }
    }
    fn layout(&self) -> cublasLtMatrixLayout_t {
        unsafe {
            let mut layout = std::ptr::null_mut();
            let made = cublasLtMatrixLayoutCreate(
                &mut layout,
                self.dtype,
                self.rows as u64,
                self.cols as u64,
                self.ld() as i64,
            );
            assert_eq!(made, FINE);
            set_layout(layout, cublasLtMatrixLayoutAttribute_t::CUBLASLT_MATRIX_LAYOUT_ORDER, self.row_major as i32);
            set_layout(
                layout,
                cublasLtMatrixLayoutAttribute_t::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                self.batches as i32,
            );
            let stride = (self.ld() * self.lines()) as i64;
            set_layout(layout, cublasLtMatrixLayoutAttribute_t::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
            layout
        }
    }
    /// Small whole numbers, exact in every type.
    fn values(&self, seed: usize) -> Vec<f64> {
        (0..self.len()).map(|i| ((i * 7 + seed * 13) % 9) as f64 - 4.0).collect()
    }
}

unsafe fn set_layout<T>(layout: cublasLtMatrixLayout_t, attribute: cublasLtMatrixLayoutAttribute_t, value: T) {
    let set = unsafe { cublasLtMatrixLayoutSetAttribute(layout, attribute, (&raw const value).cast(), size_of::<T>()) };
    assert_eq!(set, FINE);
}

unsafe fn set_desc<T>(desc: cublasLtMatmulDesc_t, attribute: cublasLtMatmulDescAttributes_t, value: T) {
    let set = unsafe { cublasLtMatmulDescSetAttribute(desc, attribute, (&raw const value).cast(), size_of::<T>()) };
    assert_eq!(set, FINE);
}

fn put(dtype: cudaDataType, values: &[f64]) -> u64 {
    match dtype {
        cudaDataType_t::CUDA_R_64F => upload(values),
        cudaDataType_t::CUDA_R_32F => upload(&values.iter().map(|&x| x as f32).collect::<Vec<_>>()),
        cudaDataType_t::CUDA_R_16F => upload(&values.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>()),
        _ => upload(&values.iter().map(|&x| bf16::from_f64(x)).collect::<Vec<_>>()),
    }
}

fn get(dtype: cudaDataType, at: u64, len: usize) -> Vec<f64> {
    match dtype {
        cudaDataType_t::CUDA_R_64F => download::<f64>(at, len),
        cudaDataType_t::CUDA_R_32F => download::<f32>(at, len).into_iter().map(f64::from).collect(),
        cudaDataType_t::CUDA_R_16F => download::<f16>(at, len).into_iter().map(f64::from).collect(),
        _ => download::<bf16>(at, len).into_iter().map(f64::from).collect(),
    }
}

struct Run {
    input: cudaDataType,
    output: cudaDataType,
    transposed: [bool; 2],
    row_major: bool,
    batches: usize,
    epilogue: cublasLtEpilogue_t,
}

/// Runs D = epilogue(2 A B + 3 C) of 19 x 23 x 37 and compares it.
fn check(run: &Run) {
    let (m, n, k) = (19, 23, 37);
    let double = run.input == cudaDataType_t::CUDA_R_64F;
    let stored = |rows, cols, transposed: bool, dtype, pad| {
        let (rows, cols) = if transposed { (cols, rows) } else { (rows, cols) };
        Stored { dtype, rows, cols, row_major: run.row_major, pad, batches: run.batches }
    };
    let a = stored(m, k, run.transposed[0], run.input, 3);
    let b = stored(k, n, run.transposed[1], run.input, 0);
    let (c, d) = (stored(m, n, false, run.output, 2), stored(m, n, false, run.output, 5));
    let (va, vb, vc) = (a.values(1), b.values(2), c.values(3));
    let bias: Vec<f64> = (0..m).map(|i| i as f64 - 5.0).collect();
    let (da, db, dc) = (put(run.input, &va), put(run.input, &vb), put(run.output, &vc));
    let dd = put(run.output, &vec![0.0; d.len()]);
    let dbias = put(run.output, &bias);
    let mut got = Vec::new();
    unsafe {
        let mut handle = std::ptr::null_mut();
        assert_eq!(cublasLtCreate(&mut handle), FINE);
        let (compute, scale) = match double {
            true => (cublasComputeType_t::CUBLAS_COMPUTE_64F, cudaDataType_t::CUDA_R_64F),
            false => (cublasComputeType_t::CUBLAS_COMPUTE_32F, cudaDataType_t::CUDA_R_32F),
        };
        let mut desc = std::ptr::null_mut();
        assert_eq!(cublasLtMatmulDescCreate(&mut desc, compute, scale), FINE);
        use cublasLtMatmulDescAttributes_t::*;
        set_desc(desc, CUBLASLT_MATMUL_DESC_TRANSA, run.transposed[0] as i32);
        set_desc(desc, CUBLASLT_MATMUL_DESC_TRANSB, run.transposed[1] as i32);
        set_desc(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, run.epilogue as i32);
        set_desc(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, dbias);
        let layouts = [a, b, c, d].map(|s| s.layout());
        let mut preference = std::ptr::null_mut();
        assert_eq!(cublasLtMatmulPreferenceCreate(&mut preference), FINE);
        let room = 1usize << 20;
        let most = cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        assert_eq!(cublasLtMatmulPreferenceSetAttribute(preference, most, (&raw const room).cast(), 8), FINE);
        let mut found: cublasLtMatmulHeuristicResult_t = std::mem::zeroed();
        let mut count = 0;
        let [la, lb, lc, ld] = layouts;
        let given = cublasLtMatmulAlgoGetHeuristic(handle, desc, la, lb, lc, ld, preference, 1, &mut found, &mut count);
        assert_eq!((given, count), (FINE, 1));
        let workspace = alloc(found.workspaceSize.max(1));
        let (alpha32, beta32, alpha64, beta64) = (2f32, 3f32, 2f64, 3f64);
        let (alpha, beta): (*const c_void, *const c_void) = match double {
            true => ((&raw const alpha64).cast(), (&raw const beta64).cast()),
            false => ((&raw const alpha32).cast(), (&raw const beta32).cast()),
        };
        let stream = stream();
        let multiply = |algorithm: *const cublasLtMatmulAlgo_t, size: usize, out: u64| {
            let p = |at: u64| at as *const c_void;
            let (to, room) = (out as *mut c_void, workspace as *mut c_void);
            let stream = stream.cast();
            cublasLtMatmul(
                handle,
                desc,
                alpha,
                p(da),
                la,
                p(db),
                lb,
                beta,
                p(dc),
                lc,
                to,
                ld,
                algorithm,
                room,
                size,
                stream,
            )
        };
        assert_eq!(multiply(&found.algo, found.workspaceSize, dd), FINE);
        got.extend(get(run.output, dd, d.len()));
        let wrong = cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE;
        assert_eq!(multiply(&found.algo, found.workspaceSize - 1, dd), wrong, "too little workspace");
        assert_eq!(multiply(std::ptr::null(), 0, dd + 64), wrong, "out of bounds");
        assert_eq!(multiply(&found.algo, found.workspaceSize, dd), FINE);
        // Parts that do not fit.
        set_layout(la, cublasLtMatrixLayoutAttribute_t::CUBLASLT_MATRIX_LAYOUT_LD, 3i64);
        assert_eq!(multiply(&found.algo, found.workspaceSize, dd), wrong, "leading dimension");
        let given = cublasLtMatmulAlgoGetHeuristic(handle, desc, lb, lb, lc, ld, preference, 1, &mut found, &mut count);
        assert_eq!((given, count), (wrong, 0));
        assert_eq!(cublasLtMatrixLayoutDestroy(la), FINE);
        assert_eq!(cublasLtMatrixLayoutDestroy(la), wrong);
        assert_eq!(cublasLtMatmulDescDestroy(desc), FINE);
        assert_eq!(cublasLtMatmulPreferenceDestroy(preference), FINE);
        assert_eq!(cublasLtDestroy(handle), FINE);
    }
    let tolerance = match run.output {
        cudaDataType_t::CUDA_R_16F => 1e-3,
        cudaDataType_t::CUDA_R_16BF => 8e-3,
        _ => 1e-6,
    };
    for batch in 0..run.batches {
        for i in 0..m {
            for j in 0..n {
                let left = |x: usize| va[if run.transposed[0] { a.at(batch, x, i) } else { a.at(batch, i, x) }];
                let right = |x: usize| vb[if run.transposed[1] { b.at(batch, j, x) } else { b.at(batch, x, j) }];
                let mut want = 2.0 * (0..k).map(|x| left(x) * right(x)).sum::<f64>() + 3.0 * vc[c.at(batch, i, j)];
                if run.epilogue as u32 & 4 != 0 {
                    want += bias[i];
                }
                if run.epilogue as u32 & 32 != 0 {
                    want = 0.5
                        * want
                        * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (want + 0.044715 * want.powi(3))).tanh());
                }
                let got = got[d.at(batch, i, j)];
                assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{i} {j}: {got}, not {want}");
            }
        }
    }
}

#[test]
fn products_of_all_kinds() {
    if !emulated() {
        return;
    }
    enter(0);
    use cudaDataType_t::*;
    let plain = cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT;
    for row_major in [false, true] {
        for transposed in [[false, false], [false, true], [true, false], [true, true]] {
            for (input, output) in [(CUDA_R_32F, CUDA_R_32F), (CUDA_R_64F, CUDA_R_64F), (CUDA_R_16BF, CUDA_R_32F)] {
                check(&Run { input, output, transposed, row_major, batches: 1, epilogue: plain });
            }
        }
    }
    for (input, output) in [(CUDA_R_16F, CUDA_R_16F), (CUDA_R_16BF, CUDA_R_16BF)] {
        check(&Run { input, output, transposed: [true, false], row_major: false, batches: 3, epilogue: plain });
    }
    use cublasLtEpilogue_t::*;
    for epilogue in [CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS] {
        let input = CUDA_R_32F;
        check(&Run { input, output: input, transposed: [false, false], row_major: false, batches: 2, epilogue });
    }
}
