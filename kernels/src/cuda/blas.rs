//! cuBLASLt: one handle and one table of chosen algorithms a GPU. A stream brings its own workspace.

use super::probe::probe;
use crate::{Builtin, KernelError, Result};
use cudarc::cublaslt::sys;
use cudarc::driver::sys::CUstream;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Workspace that NVIDIA advises for its largest kernels, in bytes.
pub(super) const WORKSPACE: usize = 32 << 20;
/// A program whose sizes never come again must not fill the memory.
const MOST_PLANS: usize = 10_000;

/// A row-major matrix in memory, or a batch of them.
#[derive(Clone, Copy)]
pub(super) struct Operand {
    pub at: *mut u8,
    /// Lies column by column: what is described is the transpose of what is there.
    pub transposed: bool,
    /// Elements from one row (column if transposed) to the next.
    pub ld: i64,
    /// Elements from one matrix of the batch to the next.
    pub batch: i64,
}

/// Operation on a product before it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epilogue {
    /// The product is stored as it is.
    None,
    /// A vector is added to each row.
    Bias,
    /// GELU by the tanh approximation.
    Gelu,
    /// A vector is added to each row, then GELU by the tanh approximation.
    BiasGelu,
}

/// `c = a b`, all row-major: `[batch, m, k] x [batch, k, n] -> [batch, m, n]`.
pub(super) struct Gemm {
    pub dtype: Builtin,
    pub out_dtype: Builtin,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub count: usize,
    pub a: Operand,
    pub b: Operand,
    pub c: Operand,
    /// Added to what `c` holds.
    pub accumulate: bool,
    /// f32 operands may be rounded to TF32.
    pub tf32: bool,
    pub epilogue: Epilogue,
    /// Of `n` elements of `out_dtype`, for the epilogues that add one.
    pub bias: *const u8,
}

/// The library as one GPU uses it.
pub(super) struct Blas {
    handle: sys::cublasLtHandle_t,
    /// By what decides the algorithm; `None` where the library has none.
    plans: RwLock<BTreeMap<Key, Option<Arc<CublasLtPlan>>>>,
}

// SAFETY: the library's handles may be used from any thread, several at once.
unsafe impl Send for Blas {}
// SAFETY: as above.
unsafe impl Sync for Blas {}

/// A hash of the rest first, so that a look-up compares one word per step; then sizes, strides and what else decides.
type Key = [u64; 12];

/// Descriptions and the algorithm for one key; never destroyed before the table, which lives as long as the process.
struct CublasLtPlan {
    desc: sys::cublasLtMatmulDesc_t,
    a: sys::cublasLtMatrixLayout_t,
    b: sys::cublasLtMatrixLayout_t,
    c: sys::cublasLtMatrixLayout_t,
    algo: sys::cublasLtMatmulAlgo_t,
    workspace: usize,
    double: bool,
    /// The address of the bias is part of the description: held from setting it to the call.
    bias: Mutex<()>,
}

// SAFETY: descriptions are only read, but for the bias, which is set under the lock.
unsafe impl Send for CublasLtPlan {}
// SAFETY: as above.
unsafe impl Sync for CublasLtPlan {}

impl Drop for CublasLtPlan {
    fn drop(&mut self) {
        for layout in [self.a, self.b, self.c] {
            if !layout.is_null() {
                // SAFETY: made in `CublasLtPlan::new`, destroyed once.
                let _ = unsafe { sys::cublasLtMatrixLayoutDestroy(layout) };
            }
        }
        if !self.desc.is_null() {
            // SAFETY: as above.
            let _ = unsafe { sys::cublasLtMatmulDescDestroy(self.desc) };
        }
    }
}

/// A stream as the library takes it.
#[derive(Clone, Copy)]
pub(super) struct BlasStream {
    /// The driver's handle of a stream of the GPU.
    pub stream: CUstream,
    /// Memory of the GPU of [`WORKSPACE`] bytes, which nothing else on this stream uses.
    pub workspace: *mut u8,
}

impl Gemm {
    fn error(&self, what: &str, status: sys::cublasStatus_t) -> KernelError {
        let Gemm { dtype, m, n, k, count, .. } = self;
        let how = |o: &Operand| format!("rows {} apart{}", o.ld, if o.transposed { ", transposed" } else { "" });
        KernelError::device(format!(
            "cuBLASLt: {what} of {count} products [{m}, {k}] x [{k}, {n}] of {dtype} ({}; {}): {}",
            how(&self.a),
            how(&self.b),
            status_text(status)
        ))
    }

    fn key(&self) -> Key {
        // Kernels differ in the alignment that they need, up to that of the largest loads.
        let aligned = |at: *const u8| u64::from((at as usize | 256).trailing_zeros());
        let mut flags = self.dtype as u64 | (self.out_dtype as u64) << 8 | (self.epilogue as u64) << 16;
        flags |= u64::from(self.a.transposed) << 20 | u64::from(self.b.transposed) << 21;
        flags |= u64::from(self.accumulate) << 22 | u64::from(self.tf32) << 23;
        flags |= aligned(self.a.at) << 24 | aligned(self.b.at) << 28 | aligned(self.c.at) << 32;
        flags |= aligned(self.bias) << 36;
        let sizes = [self.m, self.n, self.k, self.count].map(|s| s as u64);
        let [m, n, k, count] = sizes;
        let (a, b, c) = (&self.a, &self.b, &self.c);
        let mut key = [
            0,
            m,
            n,
            k,
            count,
            flags,
            a.ld as u64,
            b.ld as u64,
            c.ld as u64,
            a.batch as u64,
            b.batch as u64,
            c.batch as u64,
        ];
        key[0] = key
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |h: u64, w| (h ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
        key
    }
}

impl Blas {
    pub(super) fn new() -> Result<Blas> {
        probe().cublaslt.as_ref().map_err(|e| KernelError::device(format!("no cuBLASLt: {e}")))?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle; the library is there; the context is current (the caller bound it).
        match unsafe { sys::cublasLtCreate(&mut handle) } {
            sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(Blas { handle, plans: RwLock::default() }),
            status => Err(KernelError::device(format!("cublasLtCreate: {}", status_text(status)))),
        }
    }

    /// Puts a product on a stream, which is asked for when there is an algorithm. False, and nothing done, where the library has none.
    pub(super) fn run(&self, on: impl FnOnce() -> Result<BlasStream>, call: &Gemm) -> Result<bool> {
        let key = call.key();
        let known = self.plans.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let plan = match known {
            Some(plan) => plan,
            None => {
                let plan = CublasLtPlan::new(self.handle, call)?.map(Arc::new);
                let mut plans = self.plans.write().unwrap_or_else(PoisonError::into_inner);
                if plans.len() >= MOST_PLANS {
                    plans.clear();
                }
                plans.insert(key, plan.clone());
                plan
            }
        };
        let Some(plan) = plan else { return Ok(false) };
        let on = on()?;
        let (one, zero) = (scalar(1.0, plan.double), scalar(0.0, plan.double));
        let beta = if call.accumulate { &one } else { &zero };
        let locked = (!call.bias.is_null()).then(|| plan.bias.lock().unwrap_or_else(PoisonError::into_inner));
        if locked.is_some() {
            let at = call.bias;
            desc(plan.desc, sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at)
                .map_err(|s| call.error("setting the bias", s))?;
        }
        // SAFETY: descriptions of this library; the operands are memory of this GPU as described (the caller checked them)
        // and the scalars are read before the call returns (host pointer mode is the default).
        let status = unsafe {
            sys::cublasLtMatmul(
                self.handle,
                plan.desc,
                one.as_ptr().cast(),
                call.b.at.cast(),
                plan.b,
                call.a.at.cast(),
                plan.a,
                beta.as_ptr().cast(),
                call.c.at.cast(),
                plan.c,
                call.c.at.cast(),
                plan.c,
                &plan.algo,
                on.workspace.cast(),
                plan.workspace,
                on.stream.cast(),
            )
        };
        drop(locked);
        match status {
            sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(true),
            status => Err(call.error("the launch", status)),
        }
    }
}

/// A factor in the type that the library reads, f64 for f64, else f32, in the first bytes of a word aligned for both.
pub(super) fn scalar(value: f64, double: bool) -> [f64; 1] {
    [if double { value } else { f64::from_bits(u64::from((value as f32).to_bits()).to_le()) }]
}

impl CublasLtPlan {
    /// None where the library has no algorithm.
    fn new(handle: sys::cublasLtHandle_t, call: &Gemm) -> Result<Option<CublasLtPlan>> {
        use sys::cublasLtMatmulDescAttributes_t as D;
        use sys::cublasLtMatmulPreferenceAttributes_t as P;
        let (types, double) = (data_type(call.dtype)?, call.dtype == Builtin::F64);
        let (compute, scale) = match (call.dtype, call.tf32) {
            (Builtin::F64, _) => (sys::cublasComputeType_t::CUBLAS_COMPUTE_64F, sys::cudaDataType::CUDA_R_64F),
            (Builtin::F32, true) => {
                (sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32, sys::cudaDataType::CUDA_R_32F)
            }
            _ => (sys::cublasComputeType_t::CUBLAS_COMPUTE_32F, sys::cudaDataType::CUDA_R_32F),
        };
        // From here on dropping it frees what there is of it.
        let null = std::ptr::null_mut();
        let mut plan = CublasLtPlan {
            desc: null as sys::cublasLtMatmulDesc_t,
            a: null as sys::cublasLtMatrixLayout_t,
            b: null as sys::cublasLtMatrixLayout_t,
            c: null as sys::cublasLtMatrixLayout_t,
            algo: sys::cublasLtMatmulAlgo_t { data: [0; 8] },
            workspace: 0,
            double,
            bias: Mutex::new(()),
        };
        let describing = |s| call.error("the description", s);
        // SAFETY: writes one handle.
        unsafe { sys::cublasLtMatmulDescCreate(&mut plan.desc, compute, scale) }
            .result()
            .map_err(|e| describing(e.0))?;
        // The library counts columns first. To it a row-major matrix is its transpose, so it is asked for `cᵀ = bᵀ aᵀ`.
        let op = |o: &Operand| i32::from(o.transposed);
        desc(plan.desc, D::CUBLASLT_MATMUL_DESC_TRANSA, &op(&call.b)).map_err(describing)?;
        desc(plan.desc, D::CUBLASLT_MATMUL_DESC_TRANSB, &op(&call.a)).map_err(describing)?;
        let epilogue = match call.epilogue {
            Epilogue::None => sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT,
            Epilogue::Bias => sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS,
            Epilogue::Gelu => sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU,
            Epilogue::BiasGelu => sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU_BIAS,
        };
        if call.epilogue != Epilogue::None {
            desc(plan.desc, D::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue).map_err(describing)?;
        }
        if !call.bias.is_null() {
            desc(plan.desc, D::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &call.bias).map_err(describing)?;
        }
        let layout = |o: &Operand, kind, rows: usize, columns: usize| {
            let (fast, slow) = if o.transposed { (rows, columns) } else { (columns, rows) };
            layout(kind, fast as u64, slow as u64, o, call.count).map_err(describing)
        };
        plan.a = layout(&call.a, types, call.m, call.k)?;
        plan.b = layout(&call.b, types, call.k, call.n)?;
        plan.c = layout(&call.c, data_type(call.out_dtype)?, call.m, call.n)?;

        let preference = Preference::new().map_err(describing)?;
        preference.set(P::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &(WORKSPACE as u64)).map_err(describing)?;
        if matches!(call.out_dtype, Builtin::F16 | Builtin::BF16) {
            // Sums of a product whose `k` is cut are added up in f32: a product is rounded once, as on the CPU.
            let mask = sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE as u32;
            preference.set(P::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &mask).map_err(describing)?;
        }
        for (which, at) in [
            (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, call.b.at),
            (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, call.a.at),
            (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, call.c.at),
            (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, call.c.at),
        ] {
            let bytes = 1u32 << (at as usize | 256).trailing_zeros();
            preference.set(which, &bytes).map_err(describing)?;
        }
        let mut found = std::mem::MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::zeroed();
        let mut count = 0;
        // SAFETY: live descriptions; room for one result.
        let status = unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                handle,
                plan.desc,
                plan.b,
                plan.a,
                plan.c,
                plan.c,
                preference.0,
                1,
                found.as_mut_ptr(),
                &mut count,
            )
        };
        match status {
            sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS if count > 0 => {}
            sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS | sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED => {
                return Ok(None);
            }
            status => return Err(call.error("choosing an algorithm", status)),
        }
        // SAFETY: written by the library, which says that it found one.
        let found = unsafe { found.assume_init() };
        (plan.algo, plan.workspace) = (found.algo, found.workspaceSize);
        Ok(Some(plan))
    }
}

type Status<T = ()> = std::result::Result<T, sys::cublasStatus_t>;

fn desc<T>(desc: sys::cublasLtMatmulDesc_t, which: sys::cublasLtMatmulDescAttributes_t, value: &T) -> Status {
    let at: *const T = value;
    // SAFETY: a live description; reads one value.
    unsafe { sys::cublasLtMatmulDescSetAttribute(desc, which, at.cast::<c_void>(), size_of::<T>()) }
        .result()
        .map_err(|e| e.0)
}

fn layout(
    kind: sys::cudaDataType,
    fast: u64,
    slow: u64,
    o: &Operand,
    count: usize,
) -> Status<sys::cublasLtMatrixLayout_t> {
    use sys::cublasLtMatrixLayoutAttribute_t as L;
    let mut made = std::ptr::null_mut();
    // SAFETY: writes one handle.
    unsafe { sys::cublasLtMatrixLayoutCreate(&mut made, kind, fast, slow, o.ld) }.result().map_err(|e| e.0)?;
    if count > 1 {
        let (count, stride) = (count as i32, o.batch);
        // SAFETY: a live layout; both read one value of that size.
        let (first, second) = unsafe {
            let count: *const i32 = &count;
            let stride: *const i64 = &stride;
            (
                sys::cublasLtMatrixLayoutSetAttribute(made, L::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count.cast(), 4),
                sys::cublasLtMatrixLayoutSetAttribute(
                    made,
                    L::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                    stride.cast(),
                    8,
                ),
            )
        };
        if let Err(e) = first.result().and(second.result()) {
            // SAFETY: just made.
            let _ = unsafe { sys::cublasLtMatrixLayoutDestroy(made) };
            return Err(e.0);
        }
    }
    Ok(made)
}

struct Preference(sys::cublasLtMatmulPreference_t);

impl Preference {
    fn new() -> Status<Preference> {
        let mut made = std::ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { sys::cublasLtMatmulPreferenceCreate(&mut made) }.result().map_err(|e| e.0)?;
        Ok(Preference(made))
    }
    fn set<T>(&self, which: sys::cublasLtMatmulPreferenceAttributes_t, value: &T) -> Status {
        let at: *const T = value;
        // SAFETY: live; reads one value.
        unsafe { sys::cublasLtMatmulPreferenceSetAttribute(self.0, which, at.cast::<c_void>(), size_of::<T>()) }
            .result()
            .map_err(|e| e.0)
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once.
        let _ = unsafe { sys::cublasLtMatmulPreferenceDestroy(self.0) };
    }
}

fn data_type(dtype: Builtin) -> Result<sys::cudaDataType> {
    match dtype {
        Builtin::F32 => Ok(sys::cudaDataType::CUDA_R_32F),
        Builtin::F64 => Ok(sys::cudaDataType::CUDA_R_64F),
        Builtin::F16 => Ok(sys::cudaDataType::CUDA_R_16F),
        Builtin::BF16 => Ok(sys::cudaDataType::CUDA_R_16BF),
        other => Err(KernelError::device(format!("cuBLASLt has no products of {other}"))),
    }
}

fn status_text(status: sys::cublasStatus_t) -> String {
    use sys::cublasStatus_t as S;
    let why = match status {
        S::CUBLAS_STATUS_NOT_INITIALIZED => "the library could not be set up (no memory left on the GPU?)",
        S::CUBLAS_STATUS_ALLOC_FAILED => "no memory left",
        S::CUBLAS_STATUS_INVALID_VALUE => "a description that it refuses",
        S::CUBLAS_STATUS_ARCH_MISMATCH => "not on this GPU",
        S::CUBLAS_STATUS_EXECUTION_FAILED => "the GPU failed, perhaps in an earlier kernel",
        S::CUBLAS_STATUS_NOT_SUPPORTED => "no algorithm for it",
        _ => "",
    };
    format!("{status:?}{}{why}", if why.is_empty() { "" } else { ": " })
}
