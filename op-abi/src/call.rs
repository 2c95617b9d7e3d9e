//! Arguments of a kernel.

use crate::abi::*;
use crate::{Error, Result};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An element type.
///
/// # Safety
/// Memory of that many bytes, whatever it holds, is a value, and `DTYPE` names it.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// `OFLOW_F32`, …
    const DTYPE: u32;
    /// Its name, for messages.
    const NAME: &'static str;
}

/// An element of a tensor of truth values: 0 or 1.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bool(pub u8);

/// An element in IEEE half precision, as its bits.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct F16(pub u16);

impl F16 {
    /// The nearest one; ties to even. What is beyond 65504 and nearer to 65536 is an infinity.
    pub fn from_f32(x: f32) -> F16 {
        let bits = x.to_bits();
        let (sign, size) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
        // To the right by `n`, to nearest, ties to even.
        let shifted = |v: u32, n: u32| (v + (1 << (n - 1)) - 1 + (v >> n & 1)) >> n;
        let found = match size {
            0x7f80_0001.. => 0x7e00 | (size >> 13) as u16 & 0x1ff,
            0x4780_0000.. => 0x7c00,
            // Normal numbers: another bias of the exponent. A carry out of the fraction is the next exponent.
            0x3880_0000.. => shifted(size - 0x3800_0000, 13) as u16,
            // Denormal ones are multiples of 2^-24.
            0x3300_0000.. => shifted(size & 0x7f_ffff | 0x80_0000, 126 - (size >> 23)) as u16,
            _ => 0,
        };
        F16(sign | found)
    }
    /// Converts the number to f32, exactly.
    pub fn to_f32(self) -> f32 {
        let (sign, size) = (u32::from(self.0 & 0x8000) << 16, u32::from(self.0 & 0x7fff));
        let found = match size {
            0x7c01.. => size << 13 | 0x7fc0_0000,
            0x7c00 => 0x7f80_0000,
            0x400.. => (size << 13) + 0x3800_0000,
            _ => (size as f32 / 16_777_216.0).to_bits(),
        };
        f32::from_bits(sign | found)
    }
}

/// An element in bfloat16, as its bits.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bf16(pub u16);

impl Bf16 {
    /// The nearest one; ties to even.
    pub fn from_f32(x: f32) -> Bf16 {
        let bits = x.to_bits();
        match x.is_nan() {
            true => Bf16((bits >> 16) as u16 | 0x40),
            false => Bf16(((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16),
        }
    }
    /// Converts the number to f32, exactly.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

macro_rules! elements {
    ($($t:ty = $code:ident $name:literal),*) => {$(
        // SAFETY: integers, floats and wrappers of integers: all bits are values.
        unsafe impl Element for $t {
            const DTYPE: u32 = $code;
            const NAME: &'static str = $name;
        }
    )*};
}
elements!(
    Bool = OFLOW_BOOL "bool", u8 = OFLOW_U8 "u8", i8 = OFLOW_I8 "i8", i32 = OFLOW_I32 "i32", i64 = OFLOW_I64 "i64",
    F16 = OFLOW_F16 "f16", Bf16 = OFLOW_BF16 "bf16", f32 = OFLOW_F32 "f32", f64 = OFLOW_F64 "f64",
    i16 = OFLOW_I16 "i16", u16 = OFLOW_U16 "u16", u32 = OFLOW_U32 "u32"
);

/// Name of an element type.
pub(crate) fn dtype_name(dtype: u32) -> &'static str {
    DTYPE_NAMES.get(dtype as usize).unwrap_or(&"another type")
}

/// A tensor of a call: the shard of this rank.
#[derive(Clone, Copy)]
pub struct View<'a>(pub(crate) &'a oflow_view);

impl<'a> View<'a> {
    fn list(&self, at: *const i64) -> &'a [i64] {
        // SAFETY: lists of a view have one member for each dim, and live as long as the call.
        unsafe { slice(at, self.0.rank as usize) }
    }
    /// Name in the declaration.
    pub fn name(&self) -> &'a str {
        // SAFETY: text of the call.
        unsafe { text(self.0.name) }
    }
    /// Element type: `OFLOW_F32`, …
    pub fn dtype(&self) -> u32 {
        self.0.dtype
    }
    /// Scale and zero point of a quantised tensor, whose elements stand for `(stored - zero point) * scale`; none of another.
    pub fn quantization(&self) -> Option<(f64, i64)> {
        (self.0.scale > 0.0).then_some((self.0.scale, self.0.zero_point))
    }
    /// Size of each dim.
    pub fn dims(&self) -> &'a [i64] {
        self.list(self.0.dims)
    }
    /// From one index to the next, in elements.
    pub fn strides(&self) -> &'a [i64] {
        self.list(self.0.strides)
    }
    /// Sizes of the logical tensor that this is a shard of.
    pub fn whole(&self) -> &'a [i64] {
        self.list(self.0.whole)
    }
    /// First logical index of the shard, by dim.
    pub fn start(&self) -> &'a [i64] {
        self.list(self.0.start)
    }
    /// Address of the first element, for kernels that hand it to another library.
    pub fn data(&self) -> *mut u8 {
        self.0.data.cast()
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.dims().iter().map(|n| *n as usize).product()
    }
    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks what a slice of its elements needs: the element type, and that they lie in order in memory of the host.
    fn check<T: Element>(&self) -> Result<()> {
        let name = self.name();
        if self.0.dtype != T::DTYPE {
            return Err(Error::new(format!("'{name}' is {}, not {}", dtype_name(self.0.dtype), T::NAME)));
        }
        if self.0.device != OFLOW_CPU {
            return Err(Error::new(format!("'{name}' is not in memory of the host")));
        }
        let mut step = 1;
        for (n, s) in self.dims().iter().zip(self.strides()).rev() {
            if *n != 1 && *s != step && !self.is_empty() {
                return Err(Error::new(format!("the elements of '{name}' are not in order: its strides say where")));
            }
            step *= n;
        }
        Ok(())
    }

    /// The elements, in order.
    ///
    /// # Errors
    /// They are of another type, are strided, or are not in memory of the host.
    pub fn slice<T: Element>(&self) -> Result<&'a [T]> {
        self.check::<T>()?;
        // SAFETY: so many elements of that type lie there in order (checked), and nobody writes them during the call.
        Ok(unsafe { slice(self.0.data.cast::<T>().cast_const(), self.len()) })
    }
}

/// Position of an input or output, or its name in the declaration.
pub trait Which: Copy {
    /// The position.
    #[doc(hidden)]
    fn of(self, names: &mut dyn Iterator<Item = Option<&str>>) -> Option<usize>;
    /// For messages.
    #[doc(hidden)]
    fn show(self) -> String;
}

impl Which for usize {
    fn of(self, _: &mut dyn Iterator<Item = Option<&str>>) -> Option<usize> {
        Some(self)
    }
    fn show(self) -> String {
        self.to_string()
    }
}

impl Which for &str {
    fn of(self, names: &mut dyn Iterator<Item = Option<&str>>) -> Option<usize> {
        names.enumerate().find(|(_, n)| *n == Some(self)).map(|(i, _)| i)
    }
    fn show(self) -> String {
        format!("'{self}'")
    }
}

/// The inputs and attributes of a call.
pub struct Call<'a>(pub(crate) &'a oflow_call);

impl<'a> Call<'a> {
    fn inputs(&self) -> &'a [*const oflow_view] {
        // SAFETY: lists of a call.
        unsafe { slice(self.0.inputs, self.0.input_count) }
    }
    /// Number of inputs; optional ones that were left out count.
    pub fn input_count(&self) -> usize {
        self.0.input_count
    }
    /// Input, by position or name; none if it was left out.
    pub fn opt_view(&self, which: impl Which) -> Option<View<'a>> {
        // SAFETY: null, or a view of the call.
        let view = |p: &*const oflow_view| unsafe { p.as_ref() };
        let inputs = self.inputs();
        let mut names = inputs.iter().map(|p| view(p).map(|v| View(v).name()));
        inputs.get(which.of(&mut names)?).and_then(view).map(View)
    }
    /// Input, by position or name.
    ///
    /// # Errors
    /// The call has no such input.
    pub fn view(&self, which: impl Which) -> Result<View<'a>> {
        self.opt_view(which).ok_or_else(|| Error::new(format!("unknown input {}", which.show())))
    }
    /// The elements of an input, by position or name.
    ///
    /// # Errors
    /// The call has no such input; otherwise as [`View::slice`].
    pub fn input<T: Element>(&self, which: impl Which) -> Result<&'a [T]> {
        self.view(which)?.slice()
    }
    /// Scratch memory; empty where the kernel asked for none.
    ///
    /// # Errors
    /// It is not in memory of the host.
    pub fn workspace(&self) -> Result<&'a [u8]> {
        // SAFETY: null, or a view of the call.
        match unsafe { self.0.workspace.as_ref() } {
            Some(view) => View(view).slice(),
            None => Ok(&[]),
        }
    }
    /// The `CUstream` to put the work on; null on other devices.
    pub fn stream(&self) -> *mut std::ffi::c_void {
        self.0.stream
    }
    /// Calls `body` for parts of `0..count` of at most `grain` each, on the threads of the rank, and returns after the last one. A panic
    /// in it is passed on.
    pub fn parallel_for(&self, count: usize, grain: usize, body: impl Fn(Range<usize>) + Sync) {
        parallel_for(count, grain, &body);
    }
    /// The attributes.
    fn attrs(&self) -> &'a [*const oflow_attr] {
        // SAFETY: lists of a call.
        unsafe { slice(self.0.attrs, self.0.attr_count) }
    }
}

/// Attributes by name, for kernels and rules.
macro_rules! attributes {
    ($t:ident) => {
        impl<'a> $t<'a> {
            fn attr(&self, name: &str, kind: u32, what: &str) -> Result<&'a oflow_attr> {
                // SAFETY: attributes of the call.
                let mut all = self.attrs().iter().filter_map(|p| unsafe { p.as_ref() });
                // SAFETY: text of the call.
                let found = all.find(|a| unsafe { $crate::call::text(a.name) } == name);
                let found = found.ok_or_else(|| Error::new(format!("unknown attribute '{name}'")))?;
                match found.kind {
                    OFLOW_ATTR_ABSENT => Err(Error::new(format!("attribute '{name}' is not given"))),
                    k if k == kind => Ok(found),
                    _ => Err(Error::new(format!("attribute '{name}' is not {what}"))),
                }
            }
            /// Whether an optional attribute is given.
            pub fn has(&self, name: &str) -> bool {
                // SAFETY: attributes of the call, and their names.
                let mut all = self.attrs().iter().filter_map(|p| unsafe { p.as_ref() });
                // SAFETY: as above.
                all.any(|a| unsafe { $crate::call::text(a.name) } == name && a.kind != OFLOW_ATTR_ABSENT)
            }
            /// An integer attribute.
            ///
            /// # Errors
            /// There is none of that name, or it is of another type.
            pub fn int(&self, name: &str) -> Result<i64> {
                self.attr(name, OFLOW_ATTR_INT, "an integer").map(|a| a.integer)
            }
            /// A float attribute; an integer is one too.
            ///
            /// # Errors
            /// There is none of that name, or it is of another type.
            pub fn float(&self, name: &str) -> Result<f64> {
                match self.int(name) {
                    Ok(i) => Ok(i as f64),
                    Err(_) => self.attr(name, OFLOW_ATTR_FLOAT, "a float").map(|a| a.real),
                }
            }
            /// A bool attribute.
            ///
            /// # Errors
            /// There is none of that name, or it is of another type.
            pub fn bool(&self, name: &str) -> Result<bool> {
                self.attr(name, OFLOW_ATTR_BOOL, "a bool").map(|a| a.integer != 0)
            }
            /// A text attribute.
            ///
            /// # Errors
            /// There is none of that name, or it is of another type.
            pub fn str(&self, name: &str) -> Result<&'a str> {
                // SAFETY: text of the call.
                self.attr(name, OFLOW_ATTR_STR, "a text").map(|a| unsafe { $crate::call::text(a.text) })
            }
            /// A list of integers; shapes too.
            ///
            /// # Errors
            /// There is none of that name, or it is of another type.
            pub fn ints(&self, name: &str) -> Result<&'a [i64]> {
                // SAFETY: list of the call.
                self.attr(name, OFLOW_ATTR_INTS, "a list of integers")
                    .map(|a| unsafe { $crate::call::slice(a.integers, a.count) })
            }
            /// A list of floats.
            ///
            /// # Errors
            /// There is none of that name, or it is of another type.
            pub fn floats(&self, name: &str) -> Result<&'a [f64]> {
                // SAFETY: list of the call.
                self.attr(name, OFLOW_ATTR_FLOATS, "a list of floats")
                    .map(|a| unsafe { $crate::call::slice(a.reals, a.count) })
            }
            /// A list of lists of integers; a list of shapes too.
            ///
            /// # Errors
            /// There is none of that name, or it is of another type.
            pub fn int_lists(&self, name: &str) -> Result<Vec<&'a [i64]>> {
                let a = self.attr(name, OFLOW_ATTR_INT_LISTS, "a list of lists of integers")?;
                // SAFETY: list of the call.
                let lengths = unsafe { $crate::call::slice(a.lengths, a.count) };
                // SAFETY: as above; so many members there are in all.
                let all = unsafe { $crate::call::slice(a.integers, lengths.iter().sum::<i64>() as usize) };
                let mut rest = all;
                Ok(lengths.iter().map(|n| rest.split_off(..*n as usize).unwrap_or_default()).collect())
            }
            /// A list of texts.
            ///
            /// # Errors
            /// There is none of that name, or it is of another type.
            pub fn strs(&self, name: &str) -> Result<Vec<&'a str>> {
                let a = self.attr(name, OFLOW_ATTR_STRS, "a list of texts")?;
                // SAFETY: list and texts of the call.
                Ok(unsafe { $crate::call::slice(a.texts, a.count).iter().map(|t| $crate::call::text(*t)).collect() })
            }
            /// An element type: `OFLOW_F32`, …
            ///
            /// # Errors
            /// There is none of that name, or it is of another type.
            pub fn dtype(&self, name: &str) -> Result<u32> {
                self.attr(name, OFLOW_ATTR_DTYPE, "an element type").map(|a| a.integer as u32)
            }
        }
    };
}
pub(crate) use attributes;
attributes!(Call);

/// The outputs of a call. Each is borrowed for writing by one slice at a time.
pub struct Outputs<'a>(pub(crate) &'a oflow_call, pub(crate) PhantomData<&'a mut ()>);

impl<'a> Outputs<'a> {
    fn views(&self) -> impl Iterator<Item = &'a oflow_view> {
        // SAFETY: lists of a call.
        let all = unsafe { slice(self.0.outputs, self.0.output_count) };
        // SAFETY: views of the call.
        all.iter().filter_map(|p| unsafe { p.as_ref() })
    }
    /// Number of outputs.
    pub fn count(&self) -> usize {
        self.views().count()
    }
    /// Shape, type and place of an output, by position or name.
    ///
    /// # Errors
    /// The call has no such output.
    pub fn view(&self, which: impl Which) -> Result<View<'a>> {
        let at = which.of(&mut self.views().map(|v| Some(View(v).name())));
        let found = at.and_then(|i| self.views().nth(i));
        found.map(View).ok_or_else(|| Error::new(format!("unknown output {}", which.show())))
    }
    /// The elements of an output, by position or name, to be written.
    ///
    /// # Errors
    /// The call has no such output, it is of another type, or not in memory of the host.
    pub fn slice<T: Element>(&mut self, which: impl Which) -> Result<&mut [T]> {
        let view = self.view(which)?;
        view.check::<T>()?;
        // SAFETY: so many elements of that type lie there in order (checked). Outputs share no memory with inputs or with each other,
        // and `self` is borrowed as long as the slice lives.
        Ok(unsafe { slice_mut(view.0.data.cast::<T>(), view.len()) })
    }
    /// The elements of two outputs.
    ///
    /// # Errors
    /// As [`Outputs::slice`]; also if they are the same.
    pub fn two<T: Element, U: Element>(&mut self, a: impl Which, b: impl Which) -> Result<(&mut [T], &mut [U])> {
        let (x, y) = (self.view(a)?, self.view(b)?);
        if std::ptr::eq(x.0, y.0) {
            return Err(Error::new(format!("output {} is asked for twice", a.show())));
        }
        x.check::<T>()?;
        y.check::<U>()?;
        // SAFETY: as in `slice`; they are two outputs.
        Ok(unsafe { (slice_mut(x.0.data.cast::<T>(), x.len()), slice_mut(y.0.data.cast::<U>(), y.len())) })
    }
    /// Says the length of dim 0 of the outputs; for ops with the trait `length_by_kernel`.
    ///
    /// # Errors
    /// The op has another length rule.
    pub fn set_length(&mut self, length: usize) -> Result<()> {
        // SAFETY: null, or a number of the call that only this kernel writes.
        match unsafe { self.0.length.as_mut() } {
            Some(at) => {
                *at = length as i64;
                Ok(())
            }
            None => Err(Error::new("the op does not say `length_by_kernel`")),
        }
    }
}

/// # Safety
/// So many values lie there, and live that long; with a count of 0 the pointer is not read.
pub(crate) unsafe fn slice<'a, T>(at: *const T, count: usize) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: by this function's contract.
        n => unsafe { std::slice::from_raw_parts(at, n) },
    }
}

/// # Safety
/// As [`slice`], and nobody else reads or writes them.
unsafe fn slice_mut<'a, T>(at: *mut T, count: usize) -> &'a mut [T] {
    match count {
        0 => &mut [],
        // SAFETY: by this function's contract.
        n => unsafe { std::slice::from_raw_parts_mut(at, n) },
    }
}

/// # Safety
/// The text lives that long. oflow's texts are UTF-8.
pub(crate) unsafe fn text<'a>(s: oflow_str) -> &'a str {
    // SAFETY: by this function's contract.
    std::str::from_utf8(unsafe { slice(s.data, s.len) }).unwrap_or_default()
}

/// Table of functions that oflow gave when it loaded the library.
static HOST: AtomicPtr<oflow_host> = AtomicPtr::new(std::ptr::null_mut());

pub(crate) fn set_host(host: *const oflow_host) {
    HOST.store(host.cast_mut(), Ordering::Release);
}

/// A part of the work, and where a panic in one is kept.
struct Body<'a> {
    run: &'a (dyn Fn(Range<usize>) + Sync),
    panic: std::sync::Mutex<Option<Box<dyn std::any::Any + Send>>>,
}

unsafe extern "C" fn part(data: *mut std::ffi::c_void, begin: usize, end: usize) {
    // SAFETY: the body of `parallel_for`, which waits for all parts.
    let body = unsafe { &*data.cast::<Body<'_>>() };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (body.run)(begin..end)));
    if let Err(panic) = caught {
        *body.panic.lock().unwrap_or_else(|e| e.into_inner()) = Some(panic);
    }
}

fn parallel_for(count: usize, grain: usize, run: &(dyn Fn(Range<usize>) + Sync)) {
    // SAFETY: null, or oflow's, which lives as long as the process.
    let host = unsafe { HOST.load(Ordering::Acquire).as_ref() };
    let Some(parallel) = host.and_then(|h| h.parallel_for) else {
        return (0..count).step_by(grain.max(1)).for_each(|b| run(b..count.min(b + grain.max(1))));
    };
    let body = Body { run, panic: std::sync::Mutex::default() };
    // SAFETY: `part` takes a `Body`, which lives until all parts have run.
    unsafe { parallel(count, grain, Some(part), (&raw const body).cast_mut().cast()) };
    if let Some(panic) = body.panic.into_inner().unwrap_or_else(|e| e.into_inner()) {
        std::panic::resume_unwind(panic);
    }
}
