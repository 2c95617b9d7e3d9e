//! Programs of a GPU: sources with definitions, compiled at their first use and kept.

use super::compile::{Unit, machine_code};
use super::driver_error;
use super::probe::{GpuInfo, probe};
use crate::expr::cuda::storage;
use crate::{DType, KernelError, Result};
use cudarc::driver::{result, sys};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// The text of a `.cu` file, or text that was generated.
#[derive(Clone, Debug)]
pub struct Source {
    name: Cow<'static, str>,
    text: Cow<'static, str>,
    /// Hash of name and text: stands for them in tables.
    id: u64,
    /// See [`Source::forms`].
    forms: &'static [&'static str],
}

const fn fnv(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

impl Source {
    /// A file of `kernels/cuda/`, by its name without the ending: `Source::file("softmax", include_str!(...))`.
    pub const fn file(name: &'static str, text: &'static str) -> Source {
        Source {
            name: Cow::Borrowed(name),
            text: Cow::Borrowed(text),
            id: fnv(fnv(FNV, name.as_bytes()), text.as_bytes()),
            forms: &[],
        }
    }
    /// The macros of its usual forms, which are compiled ahead and tested: a line a group of forms, all the macros of a line set.
    /// `{a,b}` stands for either; all combinations of a line are meant. Name the dtypes that the source treats differently, the
    /// widest vectors, and single elements where that is other code.
    pub const fn forms(mut self, lines: &'static [&'static str]) -> Source {
        self.forms = lines;
        self
    }
    /// Source from generated text.
    pub fn generated(name: &str, text: String) -> Source {
        let id = fnv(fnv(FNV, name.as_bytes()), text.as_bytes());
        Source { name: Cow::Owned(name.to_string()), text: Cow::Owned(text), id, forms: &[] }
    }
    /// Lines of its usual forms, as [`Source::forms`] was told.
    pub(super) fn usual(&self) -> &'static [&'static str] {
        self.forms
    }
    /// Name of the source in messages of the compiler.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Text of the program.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A macro that a program is compiled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Define {
    name: &'static str,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Type(DType),
    Int(i64),
}

impl Define {
    /// The storage type of a dtype: `f32`, `bf16`, `b8` (bool) …
    pub const fn dtype(name: &'static str, dtype: DType) -> Define {
        Define { name, value: Value::Type(dtype) }
    }
    /// Macro whose value is an integer.
    pub const fn int(name: &'static str, value: i64) -> Define {
        Define { name, value: Value::Int(value) }
    }
    fn hash(&self, hash: u64) -> u64 {
        let value = match self.value {
            Value::Type(d) => d.fingerprint() | 1 << 63,
            Value::Int(i) => i as u64 ^ 1 << 62,
        };
        (fnv(hash, self.name.as_bytes()) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    /// `NAME=value`.
    ///
    /// # Errors
    /// For a registered dtype, which no kernel computes with.
    pub(super) fn text(&self) -> Result<String> {
        Ok(match self.value {
            Value::Type(d) => format!("{}={}", self.name, storage(d.cast()?)),
            Value::Int(i) => format!("{}={i}", self.name),
        })
    }
}

/// A loaded module; never unloaded.
struct Module(sys::CUmodule);
// SAFETY: a handle that any thread with the context may use.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// A compiled kernel.
#[derive(Clone, Copy, Debug)]
pub struct Function(sys::CUfunction);

// SAFETY: a handle into a module that is never unloaded.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// Returns the driver's handle.
    pub(super) fn raw(&self) -> sys::CUfunction {
        self.0
    }
    /// Allows `bytes` bytes of dynamic shared memory. Above 48 KiB the driver is called once for each value.
    pub fn allow_shared(&self, bytes: u32) -> Result<()> {
        static ALLOWED: RwLock<BTreeMap<usize, u32>> = RwLock::new(BTreeMap::new());
        let allowed = |map: &BTreeMap<usize, u32>| map.get(&(self.0 as usize)).is_some_and(|most| *most >= bytes);
        if bytes <= 48 << 10 || allowed(&ALLOWED.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        // Locked until it is done, so that nobody lowers what another has asked for.
        let mut map = ALLOWED.write().unwrap_or_else(PoisonError::into_inner);
        if allowed(&map) {
            return Ok(());
        }
        let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: a live function.
        unsafe { result::function::set_function_attribute(self.0, attribute, bytes as i32) }
            .map_err(|e| driver_error(&format!("asking for {bytes} bytes of shared memory"), e))?;
        map.insert(self.0 as usize, bytes);
        Ok(())
    }
}

/// All programs of one GPU.
pub(super) struct Programs {
    arch: String,
    modules: Mutex<BTreeMap<u64, Arc<OnceLock<Result<Module>>>>>,
    functions: RwLock<BTreeMap<u64, Function>>,
}

impl Programs {
    pub(super) fn new((major, minor): (i32, i32)) -> Programs {
        Programs { arch: format!("sm_{major}{minor}"), modules: Mutex::default(), functions: RwLock::default() }
    }

    /// An entry of a program, loaded now if it is the first time. The GPU is bound. `compiled` is called with the architecture if the
    /// program was not in the cache folder.
    pub(super) fn function(
        &self,
        gpu: &GpuInfo,
        source: &Source,
        entry: &str,
        defines: &[Define],
        compiled: impl FnOnce(&str),
    ) -> Result<Function> {
        let module = defines.iter().fold(source.id, |h, d| d.hash(h));
        let key = fnv(module, entry.as_bytes());
        if let Some(f) = self.functions.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(*f);
        }
        let cell = {
            let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
            modules.entry(module).or_default().clone()
        };
        // Others that want the same program wait here; those that want another compile beside.
        let loaded = cell.get_or_init(|| self.load(gpu, source, defines, compiled)).as_ref().map_err(Clone::clone)?;
        let name = CString::new(entry).map_err(|_| KernelError::device("a kernel's name has a zero byte"))?;
        // SAFETY: a loaded module.
        let raw = unsafe { result::module::get_function(loaded.0, name) }
            .map_err(|e| driver_error(&format!("looking for the kernel {entry} of {}", source.name), e))?;
        let f = Function(raw);
        self.functions.write().unwrap_or_else(PoisonError::into_inner).insert(key, f);
        Ok(f)
    }

    fn load(&self, gpu: &GpuInfo, source: &Source, defines: &[Define], compiled: impl FnOnce(&str)) -> Result<Module> {
        let unit = Unit {
            name: &source.name,
            text: &source.text,
            defines: defines.iter().map(Define::text).collect::<Result<_>>()?,
            arch: self.arch.clone(),
            gpu: &gpu.name,
        };
        let (code, is_new) = machine_code(&unit)?;
        if is_new {
            compiled(&self.arch);
        }
        // SAFETY: an image of the compiler's, which the driver copies.
        let module = unsafe { result::module::load_data(code.as_ptr().cast()) };
        module.map(Module).map_err(|e| {
            // The usual reason: a compiler of a later CUDA than the driver is of.
            let version = |v: &std::result::Result<String, String>| v.clone().unwrap_or_else(|_| "?".to_string());
            let (nvrtc, driver) = (version(&probe().nvrtc), version(&probe().driver));
            let what = format!("loading the program {} (NVRTC is {nvrtc}, the driver up to {driver})", source.name);
            driver_error(&what, e)
        })
    }
}
