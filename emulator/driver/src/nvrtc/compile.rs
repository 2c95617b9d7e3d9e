//! From a program's text to a shared object, by the host's C++ compiler: preprocess, add the table of kernels, compile.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{cache, kernels};
use crate::driver::module;

/// Definitions that every program begins with.
const EMULATOR: [(&str, &str); 3] = [
    ("emulator.h", include_str!("../../../../kernels/cuda/emulator.h")),
    ("emulator_tensor.h", include_str!("../../../../kernels/cuda/emulator_tensor.h")),
    ("emulator_math.h", include_str!("../../../../kernels/cuda/emulator_math.h")),
];

/// Quick to compile, because tests have about a thousand programs and most run for microseconds. CUDA's rules where C++ would let the
/// compiler assume more: no errno, no trapping, types may be punned, integers wrap. No contraction: on the GPU it depends on flags, here the
/// source decides.
const FLAGS: &[&str] = &[
    "-O0",
    "-std=c++17",
    "-w",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-threadsafe-statics",
    "-fno-asynchronous-unwind-tables",
    "-fno-stack-protector",
    "-fvisibility=hidden",
    "-fno-gnu-unique",
    "-fPIC",
    "-shared",
    "-nostdlib",
    "-Wl,-z,defs",
    "-Wl,-Bsymbolic",
];
/// Behind the program: what it may need to link.
const LIBRARIES: &[&str] = &["-lm", "-lc", "-lgcc"];

/// A program as nvrtcCreateProgram got it.
pub struct Unit {
    pub name: String,
    pub source: String,
    /// Include name and text.
    pub headers: Vec<(String, String)>,
}

/// A folder that goes when this does.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, String> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("oflow-emulated-{}-c{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let path = module::scratch().join(name);
        std::fs::create_dir_all(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(Folder(path))
    }
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        // Include names may have folders, but stay below this one.
        let relative: PathBuf =
            Path::new(name).components().filter(|c| matches!(c, std::path::Component::Normal(_))).collect();
        let path = self.0.join(relative);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text));
        made.map(|()| path.clone()).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Of all that is the emulator's own in a compiled program: objects of another version do not fit.
pub fn version() -> u32 {
    static VERSION: OnceLock<u32> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let mut parts: Vec<&str> = EMULATOR.iter().map(|(_, text)| *text).collect();
        parts.extend(FLAGS);
        u32::from_str_radix(&cache::hash(&parts)[..8], 16).unwrap_or(0)
    })
}

fn compiler() -> String {
    std::env::var("CXX").ok().filter(|cxx| !cxx.is_empty()).unwrap_or_else(|| "c++".into())
}

/// Runs the compiler; its output, or what it complained about.
fn invoke(arguments: &[&str], folder: &Folder) -> Result<Vec<u8>, String> {
    let cxx = compiler();
    let output = Command::new(&cxx)
        .args(arguments)
        .current_dir(&folder.0)
        .env("LC_ALL", "C")
        .output()
        .map_err(|e| format!("the CUDA emulator needs a C++ compiler, but {cxx} does not run: {e}"))?;
    if output.status.success() { Ok(output.stdout) } else { Err(like_nvrtc(&String::from_utf8_lossy(&output.stderr))) }
}

/// `file:3:5: error: text` as `file(3): error: text`, as NVRTC writes it.
fn like_nvrtc(log: &str) -> String {
    let line = |line: &str| -> String {
        let mut parts = line.splitn(4, ':');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(file), Some(at), Some(column), Some(text))
                if at.parse::<u32>().is_ok() && column.parse::<u32>().is_ok() =>
            {
                format!("{file}({at}):{text}")
            }
            _ => line.to_owned(),
        }
    };
    log.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// The shared object, from the cache if it is there, and the log.
pub fn compile(unit: &Unit, options: &[String]) -> Result<(Vec<u8>, String), String> {
    let cxx = compiler();
    let mut parts = vec![cxx.as_str(), &unit.name, &unit.source];
    parts.extend(EMULATOR.map(|(_, text)| text));
    parts.extend(FLAGS);
    parts.extend(options.iter().map(String::as_str));
    parts.extend(unit.headers.iter().flat_map(|(name, text)| [name.as_str(), text]));
    let hash = cache::hash(&parts);
    if let Some(object) = cache::find(&hash) {
        return Ok((object, String::new()));
    }
    let folder = Folder::new()?;
    for (name, text) in &unit.headers {
        folder.write(name, text)?;
    }
    for (name, text) in EMULATOR {
        folder.write(name, text)?;
    }
    let name = unit.name.replace(['"', '\\', '\n'], "_");
    let whole = format!("#include \"emulator.h\"\n# 1 \"{name}\"\n{}\n", unit.source);
    folder.write("program.cpp", &whole)?;
    let mut arguments = vec!["-E", "-std=c++17", "-w", "-I.", "-DOF_EMULATOR=1", "-DOF_EMU_KEEP_WORDS"];
    arguments.extend(options.iter().map(String::as_str));
    arguments.push("program.cpp");
    let preprocessed = invoke(&arguments, &folder)?;
    folder.write("program.ii", &kernels::with_table(&String::from_utf8_lossy(&preprocessed)))?;
    let mut arguments = FLAGS.to_vec();
    arguments.extend(["program.ii", "-o", "program.so"]);
    arguments.extend(LIBRARIES);
    invoke(&arguments, &folder)?;
    let object = std::fs::read(folder.0.join("program.so")).map_err(|e| format!("no object: {e}"))?;
    cache::keep(&hash, &object);
    Ok((object, String::new()))
}
