//! libcudnn: the convolutions that oflow calls, by their definition. As the library refuses some sizes, this one refuses halves and an odd
//! number of filters: what is refused runs by a kernel of oflow.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use crate::driver::memory::{MemoryKind, place};
use crate::driver::{Table, current, lock, stream};

const SUCCESS: i32 = 0;
const NOT_INITIALIZED: i32 = 1001;
const BAD_PARAM: i32 = 2000;
const NOT_SUPPORTED: i32 = 3000;

/// The algorithm that exists here. Another, which is offered first, gives other bits each time: nobody may take it.
const ALGORITHM: c_int = 1;
const WORKSPACE: usize = 4096;

type Outcome<T = ()> = Result<T, i32>;

fn status(outcome: Outcome) -> i32 {
    outcome.err().unwrap_or(SUCCESS)
}

/// A tensor or a filter: dims, and whether it is of doubles.
#[derive(Clone, Default)]
struct Tensor {
    code: c_int,
    dims: Vec<usize>,
}

impl Tensor {
    fn size(&self) -> usize {
        if self.code == 1 { 8 } else { 4 }
    }
    fn len(&self) -> usize {
        self.dims.iter().product()
    }
}

#[derive(Clone, Default)]
struct Conv {
    padding: Vec<i64>,
    stride: Vec<i64>,
    dilation: Vec<i64>,
    groups: usize,
    math: c_int,
}

static HANDLES: Table<Mutex<usize>> = Table::new();
static TENSORS: Table<Mutex<Tensor>> = Table::new();
static CONVS: Table<Mutex<Conv>> = Table::new();

fn copy_of<T: Clone>(table: &Table<Mutex<T>>, handle: usize) -> Outcome<T> {
    let found: Arc<Mutex<T>> = table.get(handle).ok_or(BAD_PARAM)?;
    Ok(lock(&found).clone())
}

/// # Safety
/// `to` is null or a place for a handle.
unsafe fn made(to: *mut usize, handle: usize) -> i32 {
    if to.is_null() {
        return BAD_PARAM;
    }
    // SAFETY: not null.
    unsafe { to.write(handle) };
    SUCCESS
}

/// # Safety
/// `from` is null or has so many numbers.
unsafe fn list(from: *const c_int, count: c_int) -> Outcome<Vec<i64>> {
    let count = usize::try_from(count).map_err(|_| BAD_PARAM)?;
    if from.is_null() {
        return Err(BAD_PARAM);
    }
    // SAFETY: not null, of so many numbers by contract.
    Ok(unsafe { std::slice::from_raw_parts(from, count) }.iter().map(|n| i64::from(*n)).collect())
}

fn describe(handle: usize, code: c_int, dims: Vec<i64>) -> Outcome {
    if dims.len() < 4 || dims.iter().any(|d| *d < 1) || ![0, 1, 2, 9].contains(&code) {
        return Err(BAD_PARAM);
    }
    let found = TENSORS.get(handle).ok_or(BAD_PARAM)?;
    *lock(&found) = Tensor { code, dims: dims.into_iter().map(|d| d as usize).collect() };
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cudnnGetVersion() -> usize {
    90_000
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnCreate(to: *mut usize) -> i32 {
    if current().is_err() {
        return NOT_INITIALIZED;
    }
    // SAFETY: the caller gives a place for the result.
    unsafe { made(to, HANDLES.insert(Mutex::new(0))) }
}

#[unsafe(no_mangle)]
extern "C" fn cudnnSetStream(handle: usize, stream: usize) -> i32 {
    status(HANDLES.get(handle).map(|h| *lock(&h) = stream).ok_or(BAD_PARAM))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnCreateTensorDescriptor(to: *mut usize) -> i32 {
    // SAFETY: the caller gives a place for the result.
    unsafe { made(to, TENSORS.insert(Mutex::default())) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnSetTensorNdDescriptor(
    handle: usize,
    code: c_int,
    rank: c_int,
    dims: *const c_int,
    strides: *const c_int,
) -> i32 {
    let set = || {
        // SAFETY: the caller gives so many numbers.
        let (dims, strides) = unsafe { (list(dims, rank)?, list(strides, rank)?) };
        let mut want = 1;
        for (d, s) in dims.iter().zip(&strides).rev() {
            if *s != want {
                return Err(NOT_SUPPORTED);
            }
            want *= d;
        }
        describe(handle, code, dims)
    };
    status(set())
}

#[unsafe(no_mangle)]
extern "C" fn cudnnDestroyTensorDescriptor(handle: usize) -> i32 {
    status(TENSORS.remove(handle).map(drop).ok_or(BAD_PARAM))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnCreateFilterDescriptor(to: *mut usize) -> i32 {
    // SAFETY: the caller gives a place for the result.
    unsafe { made(to, TENSORS.insert(Mutex::default())) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnSetFilterNdDescriptor(
    handle: usize,
    code: c_int,
    format: c_int,
    rank: c_int,
    dims: *const c_int,
) -> i32 {
    // SAFETY: the caller gives so many numbers.
    let dims = unsafe { list(dims, rank) };
    status(if format == 0 { dims.and_then(|dims| describe(handle, code, dims)) } else { Err(NOT_SUPPORTED) })
}

#[unsafe(no_mangle)]
extern "C" fn cudnnDestroyFilterDescriptor(handle: usize) -> i32 {
    cudnnDestroyTensorDescriptor(handle)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnCreateConvolutionDescriptor(to: *mut usize) -> i32 {
    // SAFETY: the caller gives a place for the result.
    unsafe { made(to, CONVS.insert(Mutex::new(Conv { groups: 1, ..Conv::default() }))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnSetConvolutionNdDescriptor(
    handle: usize,
    rank: c_int,
    padding: *const c_int,
    stride: *const c_int,
    dilation: *const c_int,
    mode: c_int,
    _compute: c_int,
) -> i32 {
    let set = || {
        // SAFETY: the caller gives so many numbers.
        let (padding, stride, dilation) = unsafe { (list(padding, rank)?, list(stride, rank)?, list(dilation, rank)?) };
        let small = stride.iter().chain(&dilation).any(|n| *n < 1) || padding.iter().any(|n| *n < 0);
        if mode != 1 || small {
            return Err(BAD_PARAM);
        }
        let found = CONVS.get(handle).ok_or(BAD_PARAM)?;
        let mut conv = lock(&found);
        *conv = Conv { padding, stride, dilation, ..conv.clone() };
        Ok(())
    };
    status(set())
}

#[unsafe(no_mangle)]
extern "C" fn cudnnSetConvolutionGroupCount(handle: usize, groups: c_int) -> i32 {
    let found = CONVS.get(handle).ok_or(BAD_PARAM);
    let groups = usize::try_from(groups).map_err(|_| BAD_PARAM);
    status(found.and_then(|c| groups.map(|groups| lock(&c).groups = groups)))
}

#[unsafe(no_mangle)]
extern "C" fn cudnnSetConvolutionMathType(handle: usize, math: c_int) -> i32 {
    status(CONVS.get(handle).map(|c| lock(&c).math = math).ok_or(BAD_PARAM))
}

#[unsafe(no_mangle)]
extern "C" fn cudnnDestroyConvolutionDescriptor(handle: usize) -> i32 {
    status(CONVS.remove(handle).map(drop).ok_or(BAD_PARAM))
}

/// Image, weight, result and how the weight slides, which fit together.
struct Problem {
    image: Tensor,
    weight: Tensor,
    result: Tensor,
    conv: Conv,
}

impl Problem {
    fn new(image: usize, weight: usize, result: usize, conv: usize) -> Outcome<Problem> {
        let [image, weight, result] = [image, weight, result].map(|t| copy_of(&TENSORS, t));
        let p = Problem { image: image?, weight: weight?, result: result?, conv: copy_of(&CONVS, conv)? };
        let (x, w, y, c) = (&p.image.dims, &p.weight.dims, &p.result.dims, &p.conv);
        let rank = c.stride.len() + 2;
        let sizes = x.len() == rank
            && [w.len(), y.len()] == [rank; 2]
            && x[0] == y[0]
            && w[1] * c.groups == x[1]
            && w[0] == y[1]
            && w[0].is_multiple_of(c.groups.max(1))
            && (0..rank - 2).all(|d| {
                let span = c.dilation[d] * (w[d + 2] as i64 - 1) + 1;
                (x[d + 2] as i64 + 2 * c.padding[d] - span) / c.stride[d] + 1 == y[d + 2] as i64
            });
        if !sizes || p.weight.code != p.image.code || p.result.code != p.image.code {
            return Err(BAD_PARAM);
        }
        match p.image.code > 1 || w[0] % 2 == 1 {
            true => Err(NOT_SUPPORTED),
            false => Ok(p),
        }
    }

    /// Calls with the places in image, weight and result of each product.
    fn each(&self, mut f: impl FnMut(usize, usize, usize)) {
        let (x, w, y, c) = (&self.image.dims, &self.weight.dims, &self.result.dims, &self.conv);
        let spatial = |dims: &[usize]| dims[2..].iter().product::<usize>();
        let split = |mut at: usize, dims: &[usize]| -> Vec<i64> {
            let mut index = vec![0; dims.len() - 2];
            for d in (0..index.len()).rev() {
                index[d] = (at % dims[d + 2]) as i64;
                at /= dims[d + 2];
            }
            index
        };
        let per_group = w[0] / c.groups;
        for (n, k) in (0..y[0]).flat_map(|n| (0..w[0]).map(move |k| (n, k))) {
            for at in 0..spatial(y) {
                let place = split(at, y);
                for (ch, tap) in (0..w[1]).flat_map(|ch| (0..spatial(w)).map(move |tap| (ch, tap))) {
                    let taps = split(tap, w);
                    let mut from = 0;
                    let inside = (0..place.len()).all(|d| {
                        let i = place[d] * c.stride[d] + taps[d] * c.dilation[d] - c.padding[d];
                        from = from * x[d + 2] + i.max(0) as usize;
                        (0..x[d + 2] as i64).contains(&i)
                    });
                    if inside {
                        let channel = k / per_group * w[1] + ch;
                        f(
                            (n * x[1] + channel) * spatial(x) + from,
                            (k * w[1] + ch) * spatial(w) + tap,
                            (n * y[1] + k) * spatial(y) + at,
                        );
                    }
                }
            }
        }
    }
}

#[repr(C)]
struct Perf {
    algo: c_int,
    status: c_int,
    time: f32,
    memory: usize,
    deterministic: c_int,
    math: c_int,
    reserved: [c_int; 3],
}

/// # Safety
/// Places for the count and for so many results.
unsafe fn offer(problem: Outcome<Problem>, wanted: c_int, count: *mut c_int, found: *mut Perf) -> i32 {
    let put = || {
        let p = problem?;
        if wanted < 2 || count.is_null() || found.is_null() {
            return Err(BAD_PARAM);
        }
        let perf = |algo, deterministic| Perf {
            algo,
            status: SUCCESS,
            time: -1.0,
            memory: WORKSPACE,
            deterministic,
            math: p.conv.math,
            reserved: [0; 3],
        };
        // SAFETY: not null, and room for two by what is wanted.
        unsafe {
            found.write(perf(ALGORITHM - 1, 0));
            found.add(1).write(perf(ALGORITHM, 1));
            count.write(2);
        }
        Ok(())
    };
    status(put())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnGetConvolutionForwardAlgorithm_v7(
    _handle: usize,
    x: usize,
    w: usize,
    conv: usize,
    y: usize,
    wanted: c_int,
    count: *mut c_int,
    found: *mut Perf,
) -> i32 {
    // SAFETY: the caller gives places for the results.
    unsafe { offer(Problem::new(x, w, y, conv), wanted, count, found) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnGetConvolutionBackwardDataAlgorithm_v7(
    _handle: usize,
    w: usize,
    y: usize,
    conv: usize,
    x: usize,
    wanted: c_int,
    count: *mut c_int,
    found: *mut Perf,
) -> i32 {
    // SAFETY: the caller gives places for the results.
    unsafe { offer(Problem::new(x, w, y, conv), wanted, count, found) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    _handle: usize,
    x: usize,
    y: usize,
    conv: usize,
    w: usize,
    wanted: c_int,
    count: *mut c_int,
    found: *mut Perf,
) -> i32 {
    // SAFETY: the caller gives places for the results.
    unsafe { offer(Problem::new(x, w, y, conv), wanted, count, found) }
}

/// # Safety
/// A float or a double that can be read.
unsafe fn load(base: usize, at: usize, double: bool) -> f64 {
    // SAFETY: by contract.
    unsafe { if double { *(base as *const f64).add(at) } else { f64::from(*(base as *const f32).add(at)) } }
}

/// # Safety
/// A float or a double that can be written.
unsafe fn store(base: usize, at: usize, double: bool, value: f64) {
    // SAFETY: by contract.
    unsafe {
        if double {
            *(base as *mut f64).add(at) = value;
        } else {
            *(base as *mut f32).add(at) = value as f32;
        }
    }
}

fn reachable(what: &str, t: &Tensor, at: usize) -> Outcome {
    let bytes = t.len() * t.size();
    if place(at, bytes) == Ok(MemoryKind::Device) && at.is_multiple_of(t.size()) {
        return Ok(());
    }
    eprintln!("emulated cuDNN: {what} ({bytes} bytes at {at:#x}) is not aligned or not all in one allocation");
    Err(BAD_PARAM)
}

/// A factor on the host.
///
/// # Safety
/// Null, or a number of the type.
unsafe fn factor(at: *const c_void, double: bool) -> Outcome<f64> {
    if at.is_null() {
        return Err(BAD_PARAM);
    }
    // SAFETY: not null.
    Ok(unsafe { load(at as usize, 0, double) })
}

/// Runs a convolution; `written` is 0 for the image, 1 for the weight, 2 for the result.
#[allow(clippy::too_many_arguments)]
unsafe fn convolve(
    handle: usize,
    problem: Outcome<Problem>,
    written: usize,
    at: [usize; 3],
    (alpha, beta): (*const c_void, *const c_void),
    algo: c_int,
    (work, bytes): (usize, usize),
) -> i32 {
    let put = || {
        let p = problem?;
        let stream = *lock(&*HANDLES.get(handle).ok_or(BAD_PARAM)?);
        let double = p.image.code == 1;
        // SAFETY: the caller's numbers.
        let (alpha, beta) = unsafe { (factor(alpha, double)?, factor(beta, double)?) };
        for (what, t, at) in
            [("the image", &p.image, at[0]), ("the weight", &p.weight, at[1]), ("the result", &p.result, at[2])]
        {
            reachable(what, t, at)?;
        }
        if algo != ALGORITHM || beta != 0.0 || bytes < WORKSPACE || place(work, bytes) != Ok(MemoryKind::Device) {
            return Err(BAD_PARAM);
        }
        let stream = stream::find(stream).map_err(|_| BAD_PARAM)?;
        stream.work(move |_| {
            let len = [&p.image, &p.weight, &p.result][written].len();
            let mut sums = vec![0.0; len];
            // SAFETY: checked above; a block that dies meanwhile stays mapped. A workspace is written, as real algorithms do, so that
            // two streams that share one show.
            unsafe {
                (work as *mut u8).write_bytes(0xCD, bytes);
                p.each(|x, w, y| {
                    let of = [x, w, y];
                    let [a, b] = [[1, 2], [0, 2], [0, 1]][written];
                    sums[of[written]] += load(at[a], of[a], double) * load(at[b], of[b], double);
                });
                sums.iter().enumerate().for_each(|(i, sum)| store(at[written], i, double, alpha * sum));
            }
            Ok(())
        });
        Ok(())
    };
    status(put())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnConvolutionForward(
    handle: usize,
    alpha: *const c_void,
    dx: usize,
    x: usize,
    dw: usize,
    w: usize,
    conv: usize,
    algo: c_int,
    work: usize,
    bytes: usize,
    beta: *const c_void,
    dy: usize,
    y: usize,
) -> i32 {
    // SAFETY: the caller's numbers.
    unsafe { convolve(handle, Problem::new(dx, dw, dy, conv), 2, [x, w, y], (alpha, beta), algo, (work, bytes)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnConvolutionBackwardData(
    handle: usize,
    alpha: *const c_void,
    dw: usize,
    w: usize,
    dy: usize,
    y: usize,
    conv: usize,
    algo: c_int,
    work: usize,
    bytes: usize,
    beta: *const c_void,
    dx: usize,
    x: usize,
) -> i32 {
    // SAFETY: the caller's numbers.
    unsafe { convolve(handle, Problem::new(dx, dw, dy, conv), 0, [x, w, y], (alpha, beta), algo, (work, bytes)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnConvolutionBackwardFilter(
    handle: usize,
    alpha: *const c_void,
    dx: usize,
    x: usize,
    dy: usize,
    y: usize,
    conv: usize,
    algo: c_int,
    work: usize,
    bytes: usize,
    beta: *const c_void,
    dw: usize,
    w: usize,
) -> i32 {
    // SAFETY: the caller's numbers.
    unsafe { convolve(handle, Problem::new(dx, dw, dy, conv), 1, [x, w, y], (alpha, beta), algo, (work, bytes)) }
}

/// `c += a`, of one number for each channel.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnAddTensor(
    handle: usize,
    alpha: *const c_void,
    da: usize,
    a: usize,
    beta: *const c_void,
    dc: usize,
    c: usize,
) -> i32 {
    let put = || {
        let (ta, tc) = (copy_of(&TENSORS, da)?, copy_of(&TENSORS, dc)?);
        let stream = *lock(&*HANDLES.get(handle).ok_or(BAD_PARAM)?);
        let double = ta.code == 1;
        // SAFETY: the caller's numbers.
        let (alpha, beta) = unsafe { (factor(alpha, double)?, factor(beta, double)?) };
        reachable("A", &ta, a)?;
        reachable("C", &tc, c)?;
        if ta.code != tc.code || ta.len() != tc.dims[1] || ta.dims[1] != tc.dims[1] || (alpha, beta) != (1.0, 1.0) {
            return Err(NOT_SUPPORTED);
        }
        let stream = stream::find(stream).map_err(|_| BAD_PARAM)?;
        stream.work(move |_| {
            let each: usize = tc.dims[2..].iter().product();
            for i in 0..tc.len() {
                // SAFETY: checked above.
                unsafe { store(c, i, double, load(c, i, double) + load(a, i / each % tc.dims[1], double)) };
            }
            Ok(())
        });
        Ok(())
    };
    status(put())
}
