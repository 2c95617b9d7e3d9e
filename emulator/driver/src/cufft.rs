//! libcufft: plans of dense lines of one dimension, and their transforms by the definition, in double precision.

use std::f64::consts::TAU;
use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use crate::driver::memory::{MemoryKind, place};
use crate::driver::{current, lock, stream};

pub const SUCCESS: i32 = 0;
pub const INVALID_PLAN: i32 = 1;
pub const INVALID_TYPE: i32 = 3;
pub const INVALID_VALUE: i32 = 4;
pub const EXEC_FAILED: i32 = 6;
pub const SETUP_FAILED: i32 = 7;
pub const INVALID_SIZE: i32 = 8;
pub const UNALIGNED_DATA: i32 = 9;
pub const NO_WORKSPACE: i32 = 13;
pub const NOT_IMPLEMENTED: i32 = 14;

type Outcome<T = ()> = Result<T, i32>;

fn status(outcome: Outcome) -> i32 {
    outcome.err().unwrap_or(SUCCESS)
}

/// Numbers that a transform takes and gives, by the code of its cufftType.
#[derive(Clone, Copy, PartialEq)]
struct Kind {
    from_real: bool,
    to_real: bool,
    double: bool,
}

const R2C: i32 = 0x2a;
const C2R: i32 = 0x2c;
const C2C: i32 = 0x29;
const D2Z: i32 = 0x6a;
const Z2D: i32 = 0x6c;
const Z2Z: i32 = 0x69;

impl Kind {
    fn of(code: i32) -> Outcome<Kind> {
        let (from_real, to_real) = (code == R2C || code == D2Z, code == C2R || code == Z2D);
        match [R2C, C2R, C2C, D2Z, Z2D, Z2Z].contains(&code) {
            true => Ok(Kind { from_real, to_real, double: code & 0x40 != 0 }),
            false => Err(INVALID_TYPE),
        }
    }
    /// Bytes of a real number.
    fn part(self) -> usize {
        if self.double { 8 } else { 4 }
    }
}

#[derive(Clone, Copy)]
struct Lines {
    kind: Kind,
    n: usize,
    count: usize,
    area: usize,
}

impl Lines {
    /// Bytes of a line of reals, of a half of a transform, or of complex numbers.
    fn line(&self, real: bool, halved: bool) -> usize {
        match (real, halved) {
            (true, _) => self.n * self.kind.part(),
            (_, true) => (self.n / 2 + 1) * 2 * self.kind.part(),
            _ => self.n * 2 * self.kind.part(),
        }
    }
}

/// A plan from its creation on.
#[derive(Clone, Copy)]
struct Plan {
    lines: Option<Lines>,
    allocates: bool,
    stream: usize,
    area: usize,
}

/// By handle, which is an int here; a destroyed plan leaves a hole.
static PLANS: Mutex<Vec<Option<Plan>>> = Mutex::new(Vec::new());

fn with<T>(handle: c_int, act: impl FnOnce(&mut Plan) -> Outcome<T>) -> Outcome<T> {
    let mut plans = lock(&PLANS);
    let at = usize::try_from(handle).ok().and_then(|h| h.checked_sub(1)).ok_or(INVALID_PLAN)?;
    act(plans.get_mut(at).and_then(Option::as_mut).ok_or(INVALID_PLAN)?)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cufftGetVersion(to: *mut c_int) -> i32 {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, so a place for the result.
    unsafe { to.write(12_000) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cufftCreate(to: *mut c_int) -> i32 {
    if current().is_err() {
        return SETUP_FAILED;
    }
    if to.is_null() {
        return INVALID_VALUE;
    }
    let mut plans = lock(&PLANS);
    plans.push(Some(Plan { lines: None, allocates: true, stream: 0, area: 0 }));
    // SAFETY: not null, so a place for the result.
    unsafe { to.write(plans.len() as c_int) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cufftDestroy(handle: c_int) -> i32 {
    let at = usize::try_from(handle).ok().and_then(|h| h.checked_sub(1));
    let mut plans = lock(&PLANS);
    match at.and_then(|at| plans.get_mut(at)).and_then(Option::take) {
        Some(_) => SUCCESS,
        None => INVALID_PLAN,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cufftSetAutoAllocation(handle: c_int, allocates: c_int) -> i32 {
    status(with(handle, |plan| {
        plan.allocates = allocates != 0;
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cufftSetStream(handle: c_int, stream: usize) -> i32 {
    status(with(handle, |plan| {
        plan.stream = stream;
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cufftSetWorkArea(handle: c_int, area: usize) -> i32 {
    status(with(handle, |plan| {
        plan.area = area;
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cufftMakePlanMany64(
    handle: c_int,
    rank: c_int,
    n: *const i64,
    embedded: *const i64,
    _stride: i64,
    _distance: i64,
    out_embedded: *const i64,
    _out_stride: i64,
    _out_distance: i64,
    kind: c_int,
    count: i64,
    area: *mut usize,
) -> i32 {
    status(with(handle, |plan| {
        let kind = Kind::of(kind)?;
        // Of what the library can do, what oflow asks for: lines that lie one after the other.
        if rank != 1 || !embedded.is_null() || !out_embedded.is_null() {
            return Err(NOT_IMPLEMENTED);
        }
        if n.is_null() || area.is_null() || plan.lines.is_some() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: not null, and of one size by the rank.
        let n = unsafe { *n };
        let (Ok(n @ 1..), Ok(count @ 1..)) = (usize::try_from(n), usize::try_from(count)) else {
            return Err(INVALID_SIZE);
        };
        // Lengths that real plans have room for, too.
        let need = n.checked_mul(count).and_then(|all| all.checked_mul(2 * kind.part())).ok_or(INVALID_SIZE)?;
        plan.lines = Some(Lines { kind, n, count, area: need });
        // SAFETY: not null, so a place for the result.
        unsafe { area.write(need) };
        Ok(())
    }))
}

/// # Safety
/// `at` is a float or a double of memory that can be read.
unsafe fn load(at: usize, double: bool) -> f64 {
    // SAFETY: by contract.
    unsafe { if double { *(at as *const f64) } else { f64::from(*(at as *const f32)) } }
}

/// # Safety
/// `at` is a float or a double of memory that can be written.
unsafe fn store(at: usize, double: bool, value: f64) {
    // SAFETY: by contract.
    unsafe {
        if double {
            *(at as *mut f64) = value;
        } else {
            *(at as *mut f32) = value as f32;
        }
    }
}

/// # Safety
/// Both are the dense lines of the plan, in memory that is open.
unsafe fn run(l: Lines, from: usize, to: usize, sign: f64) {
    let (n, half, part) = (l.n, l.n / 2 + 1, l.kind.part());
    let (given, made) = (l.line(l.kind.from_real, l.kind.to_real), l.line(l.kind.to_real, l.kind.from_real));
    for line in 0..l.count {
        let x: Vec<(f64, f64)> = (0..n)
            .map(|j| {
                // SAFETY: an element of the line.
                let pair = |k: usize| unsafe {
                    let at = from + line * given + k * 2 * part;
                    (load(at, l.kind.double), load(at + part, l.kind.double))
                };
                match (l.kind.from_real, l.kind.to_real) {
                    // SAFETY: as above.
                    (true, _) => (unsafe { load(from + line * given + j * part, l.kind.double) }, 0.0),
                    (_, true) if j >= half => (pair(n - j).0, -pair(n - j).1),
                    _ => pair(j),
                }
            })
            .collect();
        let last = if l.kind.from_real { half } else { n };
        for k in 0..last {
            let (mut re, mut im) = (0.0, 0.0);
            for (j, x) in x.iter().enumerate() {
                let (sin, cos) = (sign * TAU * ((j * k) % n) as f64 / n as f64).sin_cos();
                re += x.0 * cos - x.1 * sin;
                im += x.0 * sin + x.1 * cos;
            }
            // SAFETY: an element of the line.
            unsafe {
                if l.kind.to_real {
                    store(to + line * made + k * part, l.kind.double, re);
                } else {
                    let at = to + line * made + k * 2 * part;
                    store(at, l.kind.double, re);
                    store(at + part, l.kind.double, im);
                }
            }
        }
        if l.kind.to_real {
            // The library may write over such spectra: here it does.
            // SAFETY: the line of the input.
            unsafe { ((from + line * given) as *mut u8).write_bytes(0xCD, given) };
        }
    }
}

fn execute(handle: c_int, kind: i32, from: usize, to: usize, direction: c_int) -> i32 {
    let put = || -> Outcome {
        current().map_err(|_| EXEC_FAILED)?;
        let (lines, stream, allocates, area) =
            with(handle, |p| Ok((p.lines.ok_or(INVALID_PLAN)?, p.stream, p.allocates, p.area)))?;
        if lines.kind != Kind::of(kind)? {
            return Err(INVALID_TYPE);
        }
        let sign = match (lines.kind.from_real, lines.kind.to_real, direction) {
            (true, ..) | (_, _, -1) => -1.0,
            (_, true, _) | (_, _, 1) => 1.0,
            _ => return Err(INVALID_VALUE),
        };
        let part = lines.kind.part();
        let bytes = |real: bool, halved: bool| lines.line(real, halved) * lines.count;
        for (at, need, what) in [
            (from, bytes(lines.kind.from_real, lines.kind.to_real), "the input"),
            (to, bytes(lines.kind.to_real, lines.kind.from_real), "the output"),
        ] {
            if !at.is_multiple_of(2 * part) {
                eprintln!("emulated cuFFT: {what} at {at:#x} is not aligned");
                return Err(UNALIGNED_DATA);
            }
            if place(at, need) != Ok(MemoryKind::Device) {
                eprintln!("emulated cuFFT: {what} ({need} bytes at {at:#x}) is not all in one allocation");
                return Err(INVALID_VALUE);
            }
        }
        if !allocates && place(area, lines.area) != Ok(MemoryKind::Device) {
            return Err(NO_WORKSPACE);
        }
        let stream = stream::find(stream).map_err(|_| INVALID_VALUE)?;
        stream.work(move |_| {
            // SAFETY: checked above; a block that dies meanwhile stays mapped. A work area is written, as real plans do, so that two
            // streams that share one show.
            unsafe {
                if !allocates {
                    (area as *mut u8).write_bytes(0xCD, lines.area);
                }
                run(lines, from, to, sign);
            }
            Ok(())
        });
        Ok(())
    };
    status(put())
}

macro_rules! transforms {
    ($($name:ident $kind:ident;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(handle: c_int, from: *mut c_void, to: *mut c_void) -> i32 {
            execute(handle, $kind, from as usize, to as usize, 0)
        }
    )*};
}
transforms! {
    cufftExecR2C R2C;
    cufftExecC2R C2R;
    cufftExecD2Z D2Z;
    cufftExecZ2D Z2D;
}

#[unsafe(no_mangle)]
extern "C" fn cufftExecC2C(handle: c_int, from: *mut c_void, to: *mut c_void, direction: c_int) -> i32 {
    execute(handle, C2C, from as usize, to as usize, direction)
}

#[unsafe(no_mangle)]
extern "C" fn cufftExecZ2Z(handle: c_int, from: *mut c_void, to: *mut c_void, direction: c_int) -> i32 {
    execute(handle, Z2Z, from as usize, to as usize, direction)
}
