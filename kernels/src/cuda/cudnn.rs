//! cuDNN: its functions, and the plan of a convolution.
//!
//! The functions are looked up here: `cudarc`'s bindings of the whole library would take as long to compile as the rest of what is used of it.

use super::by_name::open;
use crate::conv::{Sizes, Sliding};
use crate::{DType, KernelError, Result};
use libloading::Library;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub(super) type Pointer = *mut c_void;
type Status = c_int;

macro_rules! functions {
    ($($name:ident($($arg:ident: $t:ty),* $(,)?);)*) => {
        /// Functions of the library, under their own names. What each takes and gives stands in NVIDIA's documentation of cuDNN.
        #[allow(non_snake_case)]
        pub(super) struct Functions {
            cudnnGetVersion: unsafe extern "C" fn() -> usize,
            $(pub(super) $name: unsafe extern "C" fn($($t),*) -> Status,)*
        }
        impl Functions {
            fn of(library: &'static Library) -> Result<Functions, String> {
                let lacks = |name: &str| format!("libcudnn.so has another interface: it lacks {name}");
                Ok(Functions {
                    // SAFETY: a function of this type in every version.
                    cudnnGetVersion: *unsafe { library.get(b"cudnnGetVersion\0") }.map_err(|_| lacks("cudnnGetVersion"))?,
                    // SAFETY: functions of these types in the versions 8 and 9.
                    $($name: *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }
                        .map_err(|_| lacks(stringify!($name)))?,)*
                })
            }
        }
    };
}

functions! {
    cudnnCreate(handle: *mut Pointer);
    cudnnSetStream(handle: Pointer, stream: Pointer);
    cudnnCreateTensorDescriptor(desc: *mut Pointer);
    cudnnSetTensorNdDescriptor(desc: Pointer, t: c_int, rank: c_int, dims: *const c_int, strides: *const c_int);
    cudnnDestroyTensorDescriptor(desc: Pointer);
    cudnnCreateFilterDescriptor(desc: *mut Pointer);
    cudnnSetFilterNdDescriptor(desc: Pointer, t: c_int, format: c_int, rank: c_int, dims: *const c_int);
    cudnnDestroyFilterDescriptor(desc: Pointer);
    cudnnCreateConvolutionDescriptor(desc: *mut Pointer);
    cudnnSetConvolutionNdDescriptor(desc: Pointer, rank: c_int, padding: *const c_int, stride: *const c_int, dilation: *const c_int, mode: c_int, compute: c_int);
    cudnnSetConvolutionGroupCount(desc: Pointer, groups: c_int);
    cudnnSetConvolutionMathType(desc: Pointer, math: c_int);
    cudnnDestroyConvolutionDescriptor(desc: Pointer);
    cudnnGetConvolutionForwardAlgorithm_v7(h: Pointer, x: Pointer, w: Pointer, conv: Pointer, y: Pointer, wanted: c_int, count: *mut c_int, found: *mut Algorithm);
    cudnnGetConvolutionBackwardDataAlgorithm_v7(h: Pointer, w: Pointer, y: Pointer, conv: Pointer, x: Pointer, wanted: c_int, count: *mut c_int, found: *mut Algorithm);
    cudnnGetConvolutionBackwardFilterAlgorithm_v7(h: Pointer, x: Pointer, y: Pointer, conv: Pointer, w: Pointer, wanted: c_int, count: *mut c_int, found: *mut Algorithm);
    cudnnConvolutionForward(h: Pointer, alpha: Pointer, dx: Pointer, x: Pointer, dw: Pointer, w: Pointer, conv: Pointer, algo: c_int, work: Pointer, bytes: usize, beta: Pointer, dy: Pointer, y: Pointer);
    cudnnConvolutionBackwardData(h: Pointer, alpha: Pointer, dw: Pointer, w: Pointer, dy: Pointer, y: Pointer, conv: Pointer, algo: c_int, work: Pointer, bytes: usize, beta: Pointer, dx: Pointer, x: Pointer);
    cudnnConvolutionBackwardFilter(h: Pointer, alpha: Pointer, dx: Pointer, x: Pointer, dy: Pointer, y: Pointer, conv: Pointer, algo: c_int, work: Pointer, bytes: usize, beta: Pointer, dw: Pointer, w: Pointer);
    cudnnAddTensor(h: Pointer, alpha: Pointer, da: Pointer, a: Pointer, beta: Pointer, dc: Pointer, c: Pointer);
}

/// `cudnnConvolutionFwdAlgoPerf_t` and its two kin, which have the same members.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Algorithm {
    algo: c_int,
    status: Status,
    time: f32,
    memory: usize,
    deterministic: c_int,
    math: c_int,
    reserved: [c_int; 3],
}

/// Algorithms that the library is asked for, from the fastest on as it estimates.
const WANTED: usize = 10;
/// Scratch memory that an algorithm may take, in bytes.
const MOST_SCRATCH: usize = 256 << 20;
/// A program whose sizes never come again must not fill the memory.
const MOST_PLANS: usize = 4096;

/// The names that the loader is asked for, as `cudarc` asks for those of the other libraries.
const NAMES: [&str; 3] = ["libcudnn.so", "libcudnn.so.9", "libcudnn.so.8"];

/// Whether the loader finds the library.
pub(super) fn is_present() -> bool {
    open(&NAMES).is_some()
}

fn functions() -> Result<&'static Functions, String> {
    static FOUND: OnceLock<Result<Functions, String>> = OnceLock::new();
    let find = || {
        let library = open(&NAMES).ok_or("libcudnn.so is not on the library search path")?;
        Functions::of(Box::leak(Box::new(library)))
    };
    FOUND.get_or_init(find).as_ref().map_err(Clone::clone)
}

/// The version of the library, or why it cannot be used.
pub(super) fn version() -> Result<String, String> {
    // SAFETY: takes and touches nothing.
    let v = unsafe { (functions()?.cudnnGetVersion)() };
    // 91002 is 9.10.2, and 8902 was 8.9.2.
    Ok(match v >= 10_000 {
        true => format!("{}.{}.{}", v / 10_000, v / 100 % 100, v % 100),
        false => format!("{}.{}.{}", v / 1000, v / 100 % 10, v % 100),
    })
}

/// Image, weight or result of a convolution: the one of the three that is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// The result.
    Result,
    /// The image.
    Image,
    /// The weight.
    Weight,
}

/// The form, the dtype, whether f32 may be rounded, and all sizes.
type Key = (Form, c_int, bool, [usize; 19], [isize; 3]);

/// The library as one GPU uses it. A handle has a stream, so a call holds the lock.
pub(super) struct Dnn {
    pub(super) functions: &'static Functions,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) handle: Pointer,
    /// By what decides the algorithm; `None` where the library has none.
    plans: BTreeMap<Key, Option<Arc<Plan>>>,
}

// SAFETY: the handle and the descriptions may be used from any thread, by one at a time.
unsafe impl Send for Dnn {}
// SAFETY: as above.
unsafe impl Sync for Dnn {}

/// Descriptions and the algorithm of one convolution.
pub(super) struct Plan {
    functions: &'static Functions,
    pub(super) image: Pointer,
    pub(super) weight: Pointer,
    pub(super) result: Pointer,
    pub(super) bias: Pointer,
    pub(super) conv: Pointer,
    pub(super) algo: c_int,
    pub(super) scratch: usize,
    pub(super) double: bool,
}

impl Drop for Plan {
    fn drop(&mut self) {
        let f = self.functions;
        // SAFETY: made in `Plan::new`, destroyed once; null where it was not made, which the library takes.
        unsafe {
            for tensor in [self.image, self.result, self.bias].into_iter().filter(|d| !d.is_null()) {
                let _ = (f.cudnnDestroyTensorDescriptor)(tensor);
            }
            if !self.weight.is_null() {
                let _ = (f.cudnnDestroyFilterDescriptor)(self.weight);
            }
            if !self.conv.is_null() {
                let _ = (f.cudnnDestroyConvolutionDescriptor)(self.conv);
            }
        }
    }
}

pub(super) fn done(what: &str, status: Status) -> Result<()> {
    match status {
        0 => Ok(()),
        status => Err(KernelError::device(format!("{what}: cudnnStatus_t {status}"))),
    }
}

/// `cudnnDataType_t` of a dtype that the library convolves.
fn data_type(dtype: DType) -> Option<c_int> {
    match dtype {
        DType::F32 => Some(0),
        DType::F64 => Some(1),
        DType::F16 => Some(2),
        DType::BF16 => Some(9),
        _ => None,
    }
}

impl Dnn {
    /// Opens the library for the GPU whose context is current.
    pub(super) fn new() -> Result<Dnn> {
        let functions = functions().map_err(KernelError::device)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle.
        done("cudnnCreate", unsafe { (functions.cudnnCreate)(&mut handle) })?;
        Ok(Dnn { functions, state: Mutex::new(State { handle, plans: BTreeMap::new() }) })
    }

    /// The handle and the plans, for one call.
    pub(super) fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan of a convolution; `None` where the library has no algorithm. With `tf32` f32 operands may be rounded.
    pub(super) fn plan(
        &self,
        state: &mut State,
        form: Form,
        dtype: DType,
        tf32: bool,
        sizes: &Sizes,
        s: &Sliding,
    ) -> Option<Arc<Plan>> {
        let all = [
            &sizes.image[..],
            &sizes.kernel,
            &sizes.result,
            &s.stride,
            &s.dilation,
            &[sizes.batch, sizes.groups, sizes.channels, sizes.filters],
        ];
        let mut numbers = [0; 19];
        all.iter().copied().flatten().zip(&mut numbers).for_each(|(n, to)| *to = *n);
        let key = (form, data_type(dtype)?, tf32, numbers, s.padding);
        if let Some(plan) = state.plans.get(&key) {
            return plan.clone();
        }
        let plan = Plan::new(self.functions, state.handle, form, dtype, tf32, sizes, s).map(Arc::new);
        if state.plans.len() >= MOST_PLANS {
            state.plans.clear();
        }
        state.plans.insert(key, plan.clone());
        plan
    }
}

impl Plan {
    /// None where the library has no algorithm.
    fn new(
        f: &'static Functions,
        handle: Pointer,
        form: Form,
        dtype: DType,
        tf32: bool,
        z: &Sizes,
        s: &Sliding,
    ) -> Option<Plan> {
        let t = data_type(dtype)?;
        let null = std::ptr::null_mut();
        let double = dtype == DType::F64;
        let mut plan = Plan {
            functions: f,
            image: null,
            weight: null,
            result: null,
            bias: null,
            conv: null,
            algo: 0,
            scratch: 0,
            double,
        };
        // Tensors have two spatial dims at least.
        let flat = z.image[0] == 1 && z.kernel[0] == 1 && z.result[0] == 1 && s.padding[0] == 0;
        let from = usize::from(flat);
        let int = |n: usize| c_int::try_from(n).ok();
        let of = |lead: [usize; 2], dims: &[usize; 3]| -> Option<Vec<c_int>> {
            lead.iter().chain(&dims[from..]).map(|n| int(*n)).collect()
        };
        let image = of([z.batch, z.channels * z.groups], &z.image)?;
        let weight = of([z.filters * z.groups, z.channels], &z.kernel)?;
        let result = of([z.batch, z.filters * z.groups], &z.result)?;
        // One number for each channel of what is written, which the image is in the form of that name.
        let channels = if form == Form::Image { image[1] } else { result[1] };
        let bias: Vec<c_int> = (0..image.len()).map(|d| if d == 1 { channels } else { 1 }).collect();
        let ints = |v: &[usize; 3]| -> Option<Vec<c_int>> { v[from..].iter().map(|n| int(*n)).collect() };
        let (stride, dilation) = (ints(&s.stride)?, ints(&s.dilation)?);
        let padding: Option<Vec<c_int>> = s.padding[from..].iter().map(|p| int(usize::try_from(*p).ok()?)).collect();
        let padding = padding?;
        let good = |status: Status| (status == 0).then_some(());
        for (desc, dims) in [(&mut plan.image, &image), (&mut plan.result, &result), (&mut plan.bias, &bias)] {
            let mut strides = vec![1; dims.len()];
            for d in (1..dims.len()).rev() {
                strides[d - 1] = dims[d].checked_mul(strides[d])?;
            }
            dims[0].checked_mul(strides[0])?;
            // SAFETY: writes one description; as many sizes and strides as dims.
            unsafe {
                good((f.cudnnCreateTensorDescriptor)(desc))?;
                good((f.cudnnSetTensorNdDescriptor)(*desc, t, dims.len() as c_int, dims.as_ptr(), strides.as_ptr()))?;
            }
        }
        let compute = c_int::from(double);
        // Fused multiply-adds; tensor cores, also of rounded f32; what the library has.
        let math = match dtype {
            DType::F32 if !tf32 => 3,
            DType::F64 => 0,
            _ => 1,
        };
        // SAFETY: as above.
        unsafe {
            good((f.cudnnCreateFilterDescriptor)(&mut plan.weight))?;
            let rank = weight.len() as c_int;
            good((f.cudnnSetFilterNdDescriptor)(plan.weight, t, 0, rank, weight.as_ptr()))?;
            good((f.cudnnCreateConvolutionDescriptor)(&mut plan.conv))?;
            let (p, s, d) = (padding.as_ptr(), stride.as_ptr(), dilation.as_ptr());
            good((f.cudnnSetConvolutionNdDescriptor)(plan.conv, rank - 2, p, s, d, 1, compute))?;
            good((f.cudnnSetConvolutionGroupCount)(plan.conv, int(z.groups)?))?;
            good((f.cudnnSetConvolutionMathType)(plan.conv, math))?;
        }
        let (mut found, mut count) = ([Algorithm::default(); WANTED], 0);
        let (x, w, y, c, n) = (plan.image, plan.weight, plan.result, plan.conv, WANTED as c_int);
        // SAFETY: live descriptions; room for as many results as are asked for.
        good(unsafe {
            let into = found.as_mut_ptr();
            match form {
                Form::Result => (f.cudnnGetConvolutionForwardAlgorithm_v7)(handle, x, w, c, y, n, &mut count, into),
                Form::Image => (f.cudnnGetConvolutionBackwardDataAlgorithm_v7)(handle, w, y, c, x, n, &mut count, into),
                Form::Weight => {
                    (f.cudnnGetConvolutionBackwardFilterAlgorithm_v7)(handle, x, y, c, w, n, &mut count, into)
                }
            }
        })?;
        let usable = |a: &&Algorithm| {
            let precise = math != 3 || a.math == 3;
            a.status == 0 && a.deterministic == 1 && a.memory <= MOST_SCRATCH && precise
        };
        let best = found.iter().take(usize::try_from(count).ok()?).find(usable)?;
        // SAFETY: a live description.
        good(unsafe { (f.cudnnSetConvolutionMathType)(plan.conv, best.math) })?;
        (plan.algo, plan.scratch) = (best.algo, best.memory);
        Some(plan)
    }
}
