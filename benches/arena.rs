//! Packing of buffers into an arena: bytes over the bound, which no packing is below, and time.
//!
//! ```text
//! cargo bench --bench arena [-- FOLDER]
//! ```
//!
//! Instances that are cut from a full rectangle, so that the bound can be reached, and those of a folder: `*.csv` with lines of a number, first step,
//! step behind the last one, and bytes. The eleven of MiniMalloc are in the repository `google/minimalloc`, folder `benchmarks/asplos2024`.

use oflow::plan::{Lifetime, pack};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Pseudo-random numbers below a bound.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

/// So many buffers that fill an arena at all times.
fn cut(count: usize) -> Vec<Lifetime> {
    let (mut random, mut all) = (Random(count as u64), vec![(1usize << 20, 0usize, 4 * count)]);
    while all.len() < count {
        let (bytes, from, to) = all.swap_remove(random.below(all.len()));
        let (low, early) = (random.below(bytes / 1024) * 1024, from + random.below(to - from));
        if random.below(2) == 0 && low > 0 {
            all.extend([(low, from, to), (bytes - low, from, to)]);
        } else if early > from {
            all.extend([(bytes, from, early), (bytes, early, to)]);
        } else {
            all.push((bytes, from, to));
        }
    }
    all.into_iter().map(|(bytes, first, to)| Lifetime { bytes, first, last: to - 1 }).collect()
}

fn read(path: &Path) -> Result<Vec<Lifetime>, Box<dyn Error>> {
    let line =
        |line: &str| -> Result<Lifetime, Box<dyn Error>> {
            let numbers = line.split(',').map(|n| n.trim().parse()).collect::<Result<Vec<usize>, _>>()?;
            match numbers[..] {
                [_, first, to, bytes] if first < to => Ok(Lifetime { bytes, first, last: to - 1 }),
                _ => Err(format!("{}: expected number,first,end,bytes with first < end, got {line:?}", path.display())
                    .into()),
            }
        };
    std::fs::read_to_string(path)?.lines().skip(1).map(line).collect()
}

fn row(name: &str, buffers: &[Lifetime]) {
    let began = Instant::now();
    let packing = pack(buffers);
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let gap = packing.bytes as f64 / packing.bound.max(1) as f64;
    println!("| {name} | {} | {} | {} | {gap:.3} | {ms:.1} |", buffers.len(), packing.bound, packing.bytes);
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("| instance | buffers | bound | bytes | bytes / bound | ms |\n|---|---|---|---|---|---|");
    for count in [50, 100, 200, 400, 1600] {
        row(&format!("cut, {count}"), &cut(count));
    }
    if let Some(folder) = std::env::args().skip(1).find(|a| !a.starts_with("--")) {
        let files = std::fs::read_dir(folder)?.map(|f| f.map(|f| f.path()));
        let mut files = files.collect::<Result<Vec<PathBuf>, _>>()?;
        files.retain(|f| f.extension().is_some_and(|e| e == "csv"));
        files.sort();
        for file in files {
            row(&file.file_name().unwrap_or_default().to_string_lossy(), &read(&file)?);
        }
    }
    Ok(())
}
