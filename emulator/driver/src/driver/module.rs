//! Modules: shared objects that `nvrtc.rs` made, each with a table of its kernels at the end.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use super::codes::*;
use super::device::{SHARED_DEFAULT, SHARED_MOST};
use super::*;
use crate::nvrtc;

/// Start of a "CUBIN": the magic, the compute capability it was compiled for, the emulator's version, the length of what
/// follows.
pub const MAGIC: [u8; 8] = *b"OFLOWEMU";
pub const HEADER: usize = 24;
/// The compute capability of the fake GPUs, as in `sm_90`.
pub const ARCH: u32 = 90;

/// Wraps a shared object as the image of a module.
pub fn image(arch: u32, object: &[u8]) -> Vec<u8> {
    let mut image = Vec::with_capacity(HEADER + object.len());
    image.extend(MAGIC);
    image.extend(arch.to_le_bytes());
    image.extend(nvrtc::version().to_le_bytes());
    image.extend((object.len() as u64).to_le_bytes());
    image.extend(object);
    image
}

/// A kernel in the table of an object: `of_emu_kernel` of emulator.h.
#[repr(C)]
struct KernelEntry {
    name: *const c_char,
    call: *const c_void,
    count: c_uint,
    sizes: *const c_uint,
    aligns: *const c_uint,
    pointers: *const c_uint,
    max_threads: c_uint,
}

/// How many objects were loaded.
static LOADED: AtomicUsize = AtomicUsize::new(0);

/// A loaded object; unloaded when the last function and launch has let go.
pub struct Object {
    handle: usize,
    /// `of_emu_run` and `of_emu_touch` of it.
    run: usize,
    touch: usize,
    /// No other object of the process has it, not even one that is loaded at the same place later.
    number: usize,
}
impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the handle of a successful dlopen, and nobody runs its code any more.
        unsafe { libc::dlclose(self.handle as *mut c_void) };
    }
}

impl Object {
    /// Where the object's thread-local variables are on this thread, and their size: all that programs have are
    /// `__shared__`. They stay where they are, and the loader's list is as long as there are programs: it is asked once.
    pub fn statics(&self) -> (usize, usize) {
        thread_local!(static KNOWN: RefCell<BTreeMap<usize, (usize, usize)>> = RefCell::default());
        KNOWN.with_borrow_mut(|known| *known.entry(self.number).or_insert_with(|| self.find_statics()))
    }

    fn find_statics(&self) -> (usize, usize) {
        struct Search {
            inside: usize,
            found: (usize, usize),
        }
        unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
            // SAFETY: the loader gives a valid description, and `search` is what `statics` passes.
            unsafe {
                let (info, search) = (&*info, &mut *search.cast::<Search>());
                let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize);
                let holds = |h: &libc::Elf64_Phdr| {
                    let start = info.dlpi_addr as usize + h.p_vaddr as usize;
                    h.p_type == libc::PT_LOAD && (start..start + h.p_memsz as usize).contains(&search.inside)
                };
                if !headers.iter().any(holds) {
                    return 0;
                }
                if let Some(tls) = headers.iter().find(|h| h.p_type == libc::PT_TLS)
                    && !info.dlpi_tls_data.is_null()
                {
                    search.found = (info.dlpi_tls_data as usize, tls.p_memsz as usize);
                }
                1
            }
        }
        let mut search = Search { inside: self.run, found: (0, 0) };
        // SAFETY: the object's function of this type.
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn()>(self.touch)() };
        // SAFETY: the callback fits, and the search outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
        search.found
    }
}

/// One kernel of a module.
pub struct Function {
    pub gpu: &'static Gpu,
    pub name: String,
    pub call: usize,
    pub run: usize,
    /// Size, alignment and whether it is a pointer, of each parameter.
    pub parameters: Vec<(usize, usize, bool)>,
    pub max_threads: u32,
    pub dynamic_shared: AtomicU32,
    module: usize,
    pub object: Arc<Object>,
}

struct Module {
    gpu: &'static Gpu,
    /// Handles of its functions by name.
    functions: BTreeMap<String, usize>,
}

static MODULES: Table<Module> = Table::new();
static FUNCTIONS: Table<Function> = Table::new();

/// The function of a handle.
pub fn function(handle: usize) -> Outcome<Arc<Function>> {
    FUNCTIONS.get(handle).ok_or(INVALID_HANDLE)
}

/// Modules of a GPU whose context ends.
pub fn forget(gpu: &'static Gpu) {
    MODULES.retain(|module| !std::ptr::eq(module.gpu, gpu));
    FUNCTIONS.retain(|function| !std::ptr::eq(function.gpu, gpu));
}

/// The folder that this process's short-lived files go to.
pub fn scratch() -> PathBuf {
    std::env::temp_dir()
}

/// Loads an object under a path that was never used before: the dynamic loader takes equal paths for equal objects.
fn load_object(bytes: &[u8]) -> Outcome<Object> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, SeqCst);
    let path = scratch().join(format!("oflow-emulated-{}-{number}.so", std::process::id()));
    std::fs::write(&path, bytes).map_err(|_| UNKNOWN)?;
    let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| UNKNOWN)?;
    // SAFETY: an object that our own compiler made; it has no initialisers beyond static data.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let _ = std::fs::remove_file(&path);
    if handle.is_null() {
        // SAFETY: dlerror gives null or a C string that is valid until the next call on this thread.
        let text = unsafe { libc::dlerror() };
        if !text.is_null() {
            // SAFETY: as above.
            eprintln!("emulated GPU: cannot load a module: {}", unsafe { CStr::from_ptr(text) }.to_string_lossy());
        }
        return Err(INVALID_IMAGE);
    }
    let mut object = Object { handle: handle as usize, run: 0, touch: 0, number: LOADED.fetch_add(1, SeqCst) };
    object.run = symbol(&object, c"of_emu_run")?;
    object.touch = symbol(&object, c"of_emu_touch")?;
    Ok(object)
}

fn symbol(object: &Object, name: &CStr) -> Outcome<usize> {
    // SAFETY: a live handle and a C string.
    let found = unsafe { libc::dlsym(object.handle as *mut c_void, name.as_ptr()) };
    if found.is_null() { Err(INVALID_IMAGE) } else { Ok(found as usize) }
}

/// # Safety
/// `image` is what nvrtc gave, or at least readable up to where that would end.
unsafe fn load(image: *const u8) -> Outcome<usize> {
    let gpu = current()?;
    if image.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: an image has a header; foreign ones (ELF, fat binaries, PTX) are longer than eight bytes.
    if unsafe { std::slice::from_raw_parts(image, MAGIC.len()) } != MAGIC {
        return Err(INVALID_IMAGE);
    }
    // SAFETY: ours, so the header is whole and says how much follows.
    let bytes = unsafe {
        let header = std::slice::from_raw_parts(image, HEADER);
        let arch = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if arch != ARCH {
            return Err(NO_BINARY_FOR_GPU);
        }
        if header[12..16] != nvrtc::version().to_le_bytes() {
            eprintln!("emulated GPU: a module that another version of the emulator compiled");
            return Err(NO_BINARY_FOR_GPU);
        }
        let mut len = [0; 8];
        len.copy_from_slice(&header[16..24]);
        std::slice::from_raw_parts(image.add(HEADER), u64::from_le_bytes(len) as usize)
    };
    let object = Arc::new(load_object(bytes)?);
    let run = object.run;
    let table = symbol(&object, c"of_emu_kernels")? as *const KernelEntry;
    let module = new_handle();
    let mut functions = BTreeMap::new();
    for at in 0.. {
        // SAFETY: the table ends with an entry without a name.
        let entry = unsafe { &*table.add(at) };
        if entry.name.is_null() {
            break;
        }
        // SAFETY: static strings and arrays of the object, `count` long.
        let (name, parameters) = unsafe {
            let part = |from: *const c_uint| std::slice::from_raw_parts(from, entry.count as usize);
            let sizes = part(entry.sizes).iter().zip(part(entry.aligns)).zip(part(entry.pointers));
            let parameters = sizes.map(|((&s, &a), &p)| (s as usize, a as usize, p != 0)).collect();
            (CStr::from_ptr(entry.name).to_string_lossy().into_owned(), parameters)
        };
        let function = Function {
            gpu,
            name: name.clone(),
            call: entry.call as usize,
            run,
            parameters,
            max_threads: entry.max_threads.min(1024),
            dynamic_shared: AtomicU32::new(SHARED_DEFAULT),
            module,
            object: object.clone(),
        };
        functions.insert(name, FUNCTIONS.insert(function));
    }
    MODULES.insert_arc(module, Arc::new(Module { gpu, functions }));
    Ok(module)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(to: *mut usize, image: *const u8) -> i32 {
    // SAFETY: the caller gives an image, and a place for the result.
    status(unsafe { load(image).and_then(|module| put(to, module)) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(to: *mut usize, image: *const u8, _: c_uint, _: usize, _: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { cuModuleLoadData(to, image) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(to: *mut usize, module: usize, name: *const c_char) -> i32 {
    status(current().and_then(|_| {
        let module = MODULES.get(module).ok_or(INVALID_HANDLE)?;
        if name.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller gives a C string.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| NOT_FOUND)?;
        let handle = *module.functions.get(name).ok_or(NOT_FOUND)?;
        // SAFETY: the caller gives a place for the result.
        unsafe { put(to, handle) }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(handle: usize) -> i32 {
    status(current_even_if_failed().and_then(|_| {
        MODULES.remove(handle).ok_or(INVALID_HANDLE)?;
        FUNCTIONS.retain(|function| function.module != handle);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(handle: usize, attribute: c_int, value: c_int) -> i32 {
    status(current().and_then(|_| {
        let function = function(handle)?;
        match attribute {
            8 if (0..=SHARED_MOST as i32).contains(&value) => function.dynamic_shared.store(value as u32, SeqCst),
            9 if (-1..=100).contains(&value) => {}
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, handle: usize) -> i32 {
    status(current().and_then(|_| {
        let function = function(handle)?;
        let answer = match attribute {
            0 => function.max_threads as i32,
            1..=3 => 0, // static shared, constant and local memory: not known here
            4 => 32,    // registers
            5 | 6 => ARCH as i32,
            7 => 0,
            8 => function.dynamic_shared.load(SeqCst) as i32,
            9 => -1,
            _ => return Err(INVALID_VALUE),
        };
        // SAFETY: the caller gives a place for the result.
        unsafe { put(value, answer) }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetCacheConfig(handle: usize, _config: c_int) -> i32 {
    status(current().and_then(|_| function(handle).map(|_| ())))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    handle: usize,
    threads: c_int,
    shared: usize,
) -> i32 {
    status(current().and_then(|_| {
        let function = function(handle)?;
        let threads = u32::try_from(threads).ok().filter(|&threads| threads > 0).ok_or(INVALID_VALUE)?;
        let fits = threads <= function.max_threads && shared <= function.dynamic_shared.load(SeqCst) as usize;
        let by_threads = 2048 / threads.next_multiple_of(32);
        let by_shared = (228 << 10) / (shared + 1024) as u32;
        // SAFETY: the caller gives a place for the result.
        unsafe { put(blocks, if fits { by_threads.min(by_shared).min(32) as c_int } else { 0 }) }
    }))
}

/// Held while the compiler's cache is swept or written, so that threads of one process take turns.
pub static CACHE: Mutex<()> = Mutex::new(());
