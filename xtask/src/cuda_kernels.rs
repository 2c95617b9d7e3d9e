//! Compiles every CUDA program with the real compiler, and tells what each needs of a GPU. No GPU is
//! needed, and no CUDA but NVRTC, which `scripts/install-nvrtc.sh` fetches.

use oflow::ops::{InferCtx, Op, TensorType};
use oflow::{DType, kernels};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use kernels::cuda::elementwise;
use kernels::cuda::probe::probe;
use kernels::cuda::programs::{Program, programs};
use kernels::cuda::{Usage, usage};

const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90", "sm_100"];
/// How the names of programs made from expressions begin.
const GENERATED: &str = "elementwise ";
const FILE: &str = "xtask/data/cuda-kernels.tsv";

/// Forms of a file that are all compiled; these have the dtypes and switches that differ most.
const WHOLE: usize = 12;
const PART: usize = 3;

/// Result of one program on one architecture.
struct Row {
    milliseconds: u128,
    usage: Result<Vec<Usage>, String>,
}

/// Architectures that each program is compiled for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// One of them, in turn, and of the forms of a file beyond the first [`WHOLE`] and of the programs made from expressions one of
    /// [`PART`]: what a change must pass.
    Part,
    /// All of them; a program made from an expression, which has no code of one architecture, for one in turn.
    All,
    /// All of them, and the table is written to its file.
    Table,
}

/// Compiles every program, prints the table of what each needs, and writes it to [`FILE`] if asked.
///
/// # Errors
/// There is no compiler, or a program does not compile.
pub fn run(which: For) -> Result<(), Box<dyn Error>> {
    let version = probe().nvrtc.as_ref().map_err(|e| {
        format!("no CUDA compiler (NVRTC): {e}; scripts/install-nvrtc.sh fetches one and prints the folder for LD_LIBRARY_PATH")
    })?;
    let named = all_programs()?;
    let generated = |i: usize| named[i].0.starts_with(GENERATED);
    // Which form of its file each program is.
    let mut forms: BTreeMap<&str, usize> = BTreeMap::new();
    let form: Vec<usize> = named
        .iter()
        .map(|(name, _)| {
            let count = forms.entry(name.split(' ').next().unwrap_or(name)).or_default();
            *count += 1;
            *count - 1
        })
        .collect();
    let in_part = |i: usize| (form[i] < WHOLE && !generated(i)) || form[i].is_multiple_of(PART);
    let jobs: Vec<(usize, &str)> = (0..named.len())
        .filter(|i| which != For::Part || in_part(*i))
        .flat_map(|i| ARCHITECTURES.into_iter().enumerate().map(move |(k, a)| (i, k, a)))
        .filter(|(i, k, _)| match which {
            For::Table => true,
            For::All if !generated(*i) => true,
            _ => i % ARCHITECTURES.len() == *k,
        })
        .map(|(i, _, arch)| (i, arch))
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    println!("{} programs for {ARCHITECTURES:?} with NVRTC {version} on {threads} threads", named.len());
    let began = Instant::now();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| {
                while let Some(&(i, arch)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let code = named[i].1.compile(arch).and_then(|c| usage(&c)).map_err(|e| e.to_string());
                    let row = Row { milliseconds: began.elapsed().as_millis(), usage: code };
                    if let Ok(mut rows) = rows.lock() {
                        rows.insert((i, arch), row);
                    }
                }
            });
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let rows = rows.into_inner()?;
    let table = table(&named, &rows);
    println!("{table}");
    let failed: Vec<String> = rows
        .iter()
        .filter_map(|((i, arch), r)| Some(format!("{} for {arch}: {}", named[*i].0, r.usage.as_ref().err()?)))
        .collect();
    let spills = rows.values().flat_map(|r| r.usage.iter().flatten()).filter(|u| u.stack > 0).count();
    println!("{} compilations in {seconds:.0} s; {} failed; {spills} entries use the stack", rows.len(), failed.len());
    if !failed.is_empty() {
        return Err(failed.join("\n").into());
    }
    if which == For::Table {
        let file = crate::root().join(FILE);
        std::fs::write(&file, table).map_err(|e| format!("{}: {e}", file.display()))?;
        println!(
            "wrote {FILE}; docs/performance/cuda-kernels.md names the compiler: NVRTC {version}, {threads} compilations at a time"
        );
    }
    Ok(())
}

/// The programs of files and of all elementwise ops, with the names they have in the table.
fn all_programs() -> Result<Vec<(String, Program)>, Box<dyn Error>> {
    let mut all: Vec<(String, Program)> = programs().into_iter().map(|p| (p.to_string(), p)).collect();
    for op in oflow::ops::all() {
        let Some(expr) = &op.expr else { continue };
        let takes = |dtype| op.sig.inputs.iter().any(|i| i.dtypes.contains(dtype));
        // Of complex numbers one kind: the other has the same functions.
        let all_dtypes = [DType::F32, DType::BF16, DType::C64].into_iter();
        for dtype in all_dtypes.filter(|d| !d.is_complex() || takes(*d)) {
            // Ops that do not take floats, or whose dtype is an attribute without a default, say so here.
            let Ok((inputs, out)) = dtypes(op, dtype) else { continue };
            let Ok(program) = elementwise::Program::compile(expr, &inputs, out) else { continue };
            all.push((format!("{GENERATED}{} {dtype}", op.name()), program.for_contiguous()?));
        }
    }
    Ok(all)
}

/// The dtypes of an op's inputs, all of that one where the op allows it, and of its output.
fn dtypes(op: &Op, dtype: DType) -> oflow::Result<(Vec<DType>, DType)> {
    let inputs: Vec<_> = op
        .sig
        .inputs
        .iter()
        .map(|i| Some(TensorType::new(&[8], if i.dtypes.contains(dtype) { dtype } else { DType::Bool })))
        .collect();
    let attrs = op.sig.attrs.iter().filter_map(|a| a.default.clone()).collect();
    let kinds: Vec<_> = op.sig.runtime.iter().map(|_| dtype.kind()).collect();
    let ctx = InferCtx { op, inputs: &inputs, attrs: &attrs, runtime_kinds: &kinds };
    let out = op.infer(&ctx)?[0].dtype;
    Ok((inputs.iter().flatten().map(|t| t.dtype).collect(), out))
}

/// A line per entry of a program, four columns per architecture. `docs/performance/cuda-kernels.md` explains them.
fn table(named: &[(String, Program)], rows: &BTreeMap<(usize, &str), Row>) -> String {
    let mut text = String::from("program\tentry");
    for arch in ARCHITECTURES {
        ["registers", "stack", "shared", "ms"].iter().for_each(|what| text.push_str(&format!("\t{arch}_{what}")));
    }
    text.push('\n');
    for (i, (name, _)) in named.iter().enumerate() {
        let of = |arch| rows.get(&(i, arch)).and_then(|r: &Row| r.usage.as_ref().ok());
        let mut entries: Vec<&str> =
            ARCHITECTURES.iter().filter_map(|a| of(a)).flatten().map(|u| u.entry.as_str()).collect();
        entries.sort_unstable();
        entries.dedup();
        for entry in entries {
            let _ = write!(text, "{name}\t{entry}");
            for arch in ARCHITECTURES {
                let found = of(arch).and_then(|us| us.iter().find(|u| u.entry == entry)).zip(rows.get(&(i, arch)));
                let cells = found.map_or("\t\t\t".to_string(), |(u, r)| {
                    format!("{}\t{}\t{}\t{}", u.registers, u.stack, u.shared, r.milliseconds)
                });
                let _ = write!(text, "\t{cells}");
            }
            text.push('\n');
        }
    }
    text
}
