//! Compiling ahead: after the first kernel had to be compiled, the common kernels are compiled in the background, several at a
//! time, into the cache folder. A call that needs one of them meanwhile finds it there or compiles it itself.

use super::compile::{Unit, cache_dir, machine_code};
use super::programs::{Program, programs};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

/// Set to `0`, nothing is compiled ahead.
const SWITCH: &str = "OFLOW_KERNELS_AHEAD";

struct Work {
    programs: Vec<Program>,
    arch: String,
    gpu: String,
    next: AtomicUsize,
    done: AtomicUsize,
}

/// Starts it, once a process. The threads end with the work or with the process.
pub(super) fn start(arch: &str, gpu: &str) {
    static STARTED: Once = Once::new();
    let off = std::env::var(SWITCH).is_ok_and(|v| v == "0") || cache_dir().is_none();
    if off {
        return;
    }
    STARTED.call_once(|| {
        let work = Arc::new(Work {
            programs: programs(),
            arch: arch.to_string(),
            gpu: gpu.to_string(),
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
        });
        // Half of the cores: the program itself needs some.
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get() / 2).clamp(1, 16);
        for _ in 0..threads {
            let work = work.clone();
            // Without the thread everything is compiled when it is needed.
            let _ = std::thread::Builder::new().name("oflow-compile".into()).spawn(move || work.run());
        }
    });
}

impl Work {
    fn run(&self) {
        let total = self.programs.len();
        while let Some(program) = self.programs.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let unit = Unit {
                name: program.source.name(),
                text: program.source.text(),
                defines: program.defines.clone(),
                arch: self.arch.clone(),
                gpu: &self.gpu,
            };
            // What fails here fails again, with a message, for whoever needs it.
            let _ = machine_code(&unit);
            let n = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            if std::io::stderr().is_terminal() && (n.is_multiple_of(8) || n == total) {
                let end = if n == total { "\n" } else { "" };
                eprint!("\roflow: CUDA kernels for {}: {n} of {total} compiled, kept for the next time{end}", self.gpu);
            }
        }
    }
}
