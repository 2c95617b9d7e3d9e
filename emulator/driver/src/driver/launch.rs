//! Launches: limits, a copy of the parameters, and the run of the grid on the stream's thread.
//!
//! A kernel that touches memory that is not mapped gets SIGSEGV. The handler lets the fiber go on at emulator.h's
//! `of_emu_fault`, which leaves the grid as a trap does; elsewhere the signal has its usual effect.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::codes::*;
use super::module::Function;
use super::stream::{Failure, Worker};
use super::*;

/// `of_emu_launch` of emulator.h.
#[repr(C)]
struct Launch {
    arena: usize,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    order: c_uint,
    error: *mut c_char,
    error_size: usize,
    fault: usize,
    statics: usize,
    statics_size: usize,
}
type Run = unsafe extern "C" fn(call: *const c_void, params: *mut *mut c_void, launch: *mut Launch) -> c_int;

/// OF_EMU_ARENA of emulator.h.
const ARENA: usize = 128 << 20;

fn map_arena() -> usize {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping, trimmed to the aligned half of it. No huge pages: each fiber touches little of its stack.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), 2 * ARENA, rights, flags, -1, 0);
        assert!(at != libc::MAP_FAILED, "no addresses for fibers: {}", std::io::Error::last_os_error());
        let start = (at as usize).next_multiple_of(ARENA);
        if start > at as usize {
            libc::munmap(at, start - at as usize);
        }
        libc::munmap((start + ARENA) as *mut c_void, at as usize + ARENA - start);
        libc::madvise(start as *mut c_void, ARENA, libc::MADV_NOHUGEPAGE);
        start
    }
}

/// Gives a worker's arena back; 0 is none.
pub fn unmap_arena(arena: usize) {
    if arena != 0 {
        // SAFETY: the mapping of `map_arena`, whose thread ends.
        unsafe { libc::munmap(arena as *mut c_void, ARENA) };
    }
}

thread_local! {
    /// Where a fault of this thread goes; 0 while no kernel runs.
    static FAULT: Cell<*const Launch> = const { Cell::new(std::ptr::null()) };
}
static mut BEFORE: [std::mem::MaybeUninit<libc::sigaction>; 2] = [const { std::mem::MaybeUninit::zeroed() }; 2];

fn slot(signal: c_int) -> usize {
    (signal == libc::SIGBUS) as usize
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let launch = FAULT.get();
    if launch.is_null() {
        // Not a kernel's: what was installed before us, or the default, which ends the process.
        // SAFETY: written once before this handler was installed; the signal comes again when we return.
        unsafe {
            let before = (&raw const BEFORE).cast::<libc::sigaction>().add(slot(signal)).read();
            if before.sa_sigaction > libc::SIG_IGN && before.sa_flags & libc::SA_SIGINFO != 0 {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(before.sa_sigaction);
                return handler(signal, info, context);
            }
            libc::sigaction(signal, &before, std::ptr::null_mut());
        }
        return;
    }
    FAULT.set(std::ptr::null());
    // SAFETY: the kernel gives a valid context; the fiber goes on in a function that never returns, on its own stack.
    unsafe {
        let context = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext;
        let fault = (*launch).fault;
        #[cfg(target_arch = "x86_64")]
        {
            let sp = context.gregs[libc::REG_RSP as usize];
            context.gregs[libc::REG_RSP as usize] = ((sp - 256) & !15) - 8;
            context.gregs[libc::REG_RIP as usize] = fault as i64;
        }
        #[cfg(target_arch = "aarch64")]
        {
            context.sp = (context.sp - 256) & !15;
            context.pc = fault as u64;
        }
    }
}

fn catch_faults() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            // SAFETY: a handler that fits SA_SIGINFO; BEFORE is written here only, before the handler can read it.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = on_fault as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigaction(
                    signal,
                    std::ptr::null(),
                    (&raw mut BEFORE).cast::<libc::sigaction>().add(slot(signal)),
                );
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    });
}

/// In which order this launch's threads run; see `lib.rs`.
fn order() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    match setting("OFLOW_EMULATOR_ORDER", 0) as u32 {
        order @ 0..8 => order,
        _ => COUNT.fetch_add(1, SeqCst).wrapping_mul(0x9e37_79b9) >> 29,
    }
}

/// The parameters of one launch, copied: the caller's may be gone when the kernel runs.
struct Parameters {
    bytes: Vec<u128>,
    offsets: Vec<usize>,
}

impl Parameters {
    /// # Safety
    /// `from` has a pointer to a value of the right type for each parameter of the function.
    unsafe fn copy(function: &Function, from: *const *const u8) -> Outcome<Parameters> {
        let mut offsets = Vec::with_capacity(function.parameters.len());
        let mut end = 0usize;
        for &(size, align, _) in &function.parameters {
            let start = end.next_multiple_of(align.max(1));
            offsets.push(start);
            end = start + size;
        }
        let mut bytes = vec![0u128; end.div_ceil(16)];
        if from.is_null() && !offsets.is_empty() {
            return Err(INVALID_VALUE);
        }
        for (at, (&offset, &(size, ..))) in offsets.iter().zip(&function.parameters).enumerate() {
            // SAFETY: the caller's promise; the room was counted above.
            unsafe {
                let value = *from.add(at);
                if value.is_null() {
                    return Err(INVALID_VALUE);
                }
                std::ptr::copy_nonoverlapping(value, bytes.as_mut_ptr().cast::<u8>().add(offset), size);
            }
        }
        Ok(Parameters { bytes, offsets })
    }

    fn pointers(&mut self) -> Vec<*mut c_void> {
        let base = self.bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: offsets lie in `bytes`.
        self.offsets.iter().map(|&offset| unsafe { base.add(offset) }.cast()).collect()
    }
}

fn run(
    function: &Function,
    parameters: &mut Parameters,
    mut launch: Launch,
    worker: &mut Worker,
) -> Result<(), Failure> {
    if worker.arena == 0 {
        worker.arena = map_arena();
    }
    let mut error = [0u8; 512];
    launch.arena = worker.arena;
    launch.error = error.as_mut_ptr().cast();
    launch.error_size = error.len();
    (launch.statics, launch.statics_size) = function.object.statics();
    let mut pointers = parameters.pointers();
    for (&pointer, &(.., is_pointer)) in pointers.iter().zip(&function.parameters) {
        if is_pointer {
            // SAFETY: a parameter of pointer type.
            let at = unsafe { *(pointer as *const usize) };
            if memory::dangles(at) {
                let text = format!("{}: an argument points to device memory that is not allocated", function.name);
                return Err(Failure(ILLEGAL_ADDRESS, text));
            }
        }
    }
    // SAFETY: `of_emu_run` of the same object, which outlives the call because the function holds it.
    let code = unsafe {
        let run: Run = std::mem::transmute::<usize, Run>(function.run);
        FAULT.set(&launch);
        let code = run(function.call as *const c_void, pointers.as_mut_ptr(), &mut launch);
        FAULT.set(std::ptr::null());
        code
    };
    if code == SUCCESS {
        return Ok(());
    }
    let len = error.iter().position(|&byte| byte == 0).unwrap_or(error.len());
    Err(Failure(code, format!("{}: {}", function.name, String::from_utf8_lossy(&error[..len]))))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    handle: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: usize,
    params: *const *const u8,
    extra: *const *const u8,
) -> i32 {
    status(current().and_then(|gpu| {
        let function = module::function(handle)?;
        let stream = stream::find(stream)?;
        if !std::ptr::eq(function.gpu, gpu) {
            return Err(INVALID_HANDLE);
        }
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let within = |of: [u32; 3], most: [u32; 3]| of.iter().zip(most).all(|(&n, most)| n > 0 && n <= most);
        let threads = block.iter().map(|&n| u64::from(n)).product::<u64>();
        if !within(grid, [0x7fff_ffff, 65535, 65535]) || !within(block, [1024, 1024, 64]) || threads > 1024 {
            return Err(INVALID_VALUE);
        }
        if threads > u64::from(function.max_threads) {
            return Err(LAUNCH_OUT_OF_RESOURCES);
        }
        if shared > function.dynamic_shared.load(SeqCst) {
            return Err(INVALID_VALUE);
        }
        if !extra.is_null() {
            return Err(NOT_SUPPORTED);
        }
        catch_faults();
        // SAFETY: the caller gives a pointer for each parameter.
        let mut parameters = unsafe { Parameters::copy(&function, params)? };
        let order = order();
        let error = std::ptr::null_mut::<c_char>() as usize;
        stream.work(move |worker| {
            let error = error as *mut c_char;
            let launch = Launch {
                arena: 0,
                grid,
                block,
                shared,
                order,
                error,
                error_size: 0,
                fault: 0,
                statics: 0,
                statics_size: 0,
            };
            run(&function, &mut parameters, launch, worker)
        });
        Ok(())
    }))
}
