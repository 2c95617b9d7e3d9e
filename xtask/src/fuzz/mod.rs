//! `cargo xtask fuzz MINUTES [SEED] [--only WORD]`: malformed input for everything that reads what a stranger, a peer or a
//! damaged disk wrote. Nothing may panic, hang, or take memory without bound.
//!
//! The decoders are one table (`targets.rs`). Each runs on a thread of its own. Inputs are made from valid ones: bits flipped,
//! bytes put in, taken out and repeated, two inputs joined, the end cut off; and from noise. A damaged input that was taken
//! becomes one of those that others are made from. All of that follows from the seed. What goes wrong is printed with the input,
//! which `--again FILE` sends once more. The test of this takes five seconds, or `OFLOW_FUZZ_SECONDS`.

mod disk;
mod memory;
mod ops;
mod programs;
mod service;
mod targets;

use std::error::Error;
use std::fmt::Write as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use oflow_faults::Random;
use oflow_faults::attack::{mutate, noise};
use targets::{Decoder, InputSource, TARGETS, Taken, Target};

pub use memory::Counting;

/// Longest input, but for valid ones.
const LONGEST: usize = 32 << 10;
/// An input that takes longer hangs; on a busy machine most wait for the processor.
const TIME: Duration = Duration::from_secs(30);
/// Inputs in memory to make others from.
const POOL: usize = 64;
/// Most memory that this process may have taken in the end.
const MOST_MEMORY: u64 = 2 << 30;

/// Work of a thread.
#[derive(Default)]
struct Watched {
    since: Option<Instant>,
    input: Vec<u8>,
}

/// Progress of a target.
#[derive(Default)]
struct Progress {
    inputs: AtomicU64,
    taken: AtomicU64,
    refused: AtomicU64,
    now: Mutex<Watched>,
}

/// Failures, and the work in which panics began.
#[derive(Default)]
struct Wrong(Mutex<Vec<String>>);

static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whole at every point where a panic could happen.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fuzzes the targets whose name has that word for so long, and prints what became of the inputs.
pub fn run(time: Duration, seed: u64, only: &str) -> Result<(), Box<dyn Error>> {
    let chosen: Vec<&Target> = TARGETS.iter().filter(|t| t.name.contains(only)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
        return Err(format!("no target has {only:?} in its name; there are\n  {}", names.join("\n  ")).into());
    }
    let before = panic::take_hook();
    panic::set_hook(Box::new(|info| {
        let mut panics = lock(&PANICS);
        if panics.len() < 20 {
            panics.push(info.to_string());
        }
    }));
    let end = Instant::now() + time;
    let (stop, wrong) = (AtomicBool::new(false), Wrong::default());
    let progress: Vec<Progress> = chosen.iter().map(|_| Progress::default()).collect();
    std::thread::scope(|s| {
        let threads: Vec<_> = chosen
            .iter()
            .zip(&progress)
            .enumerate()
            .map(|(i, (target, progress))| {
                let (stop, wrong) = (&stop, &wrong);
                s.spawn(move || {
                    let done = || Instant::now() >= end || stop.load(Ordering::Relaxed);
                    let random = Random::new(seed.wrapping_mul(1000).wrapping_add(i as u64));
                    if let Err(why) = one(target, random, progress, &done) {
                        lock(&wrong.0).push(format!("{}: {why}\n  seed {seed}", target.name));
                        stop.store(true, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        while threads.iter().any(|t| !t.is_finished()) {
            std::thread::sleep(Duration::from_millis(50));
            for (target, progress) in chosen.iter().zip(&progress) {
                let now = lock(&progress.now);
                if now.since.is_some_and(|s| s.elapsed() > TIME) {
                    // The thread cannot be ended.
                    eprintln!("{}: hangs\n{}", target.name, tell(&now.input));
                    std::process::exit(1);
                }
            }
        }
    });
    panic::set_hook(before);
    println!("{:>10} {:>10} {:>10}", "inputs", "taken", "refused");
    for (target, p) in chosen.iter().zip(&progress) {
        let [inputs, taken, refused] = [&p.inputs, &p.taken, &p.refused].map(|n| n.load(Ordering::Relaxed));
        println!("{inputs:>10} {taken:>10} {refused:>10}  {}", target.name);
    }
    let memory = peak_memory();
    println!("peak memory {} MiB; seed {seed}", memory >> 20);
    let mut wrong = std::mem::take(&mut *lock(&wrong.0));
    wrong.append(&mut lock(&PANICS));
    if memory > MOST_MEMORY {
        wrong.push(format!("took {} MiB of memory", memory >> 20));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Sends one input to each target whose name has that word.
pub fn again(file: &Path, only: &str) -> Result<(), Box<dyn Error>> {
    let input = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let (mut ran, mut wrong) = (0, vec![]);
    for target in TARGETS.iter().filter(|t| t.name.contains(only)) {
        if let InputSource::Bytes { start, memory } = &target.kind {
            ran += 1;
            let (mut call, _) = start()?;
            let (taken, most) = watched(&mut call, &input);
            let judged = judge(taken, most, *memory);
            println!("{}: {judged:?}, at most {} KiB of memory", target.name, most >> 10);
            wrong.extend(judged.err().map(|why| format!("{}: {why}", target.name)));
        }
    }
    if ran == 0 {
        return Err(format!("no target that takes bytes has {only:?} in its name").into());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Feeds one target until the time is over.
fn one(target: &Target, mut random: Random, progress: &Progress, done: &dyn Fn() -> bool) -> Result<(), String> {
    let (start, memory) = match &target.kind {
        InputSource::Rounds(round) => return rounds(*round, random, progress, done),
        InputSource::Bytes { start, memory } => (start, *memory),
    };
    let (mut call, samples) = start()?;
    let mut pool = samples.clone();
    let mut valid = samples.iter();
    while !done() {
        // Each valid input as it is, first.
        let input = valid.next().cloned().unwrap_or_else(|| made(&pool, &mut random));
        *lock(&progress.now) = Watched { since: Some(Instant::now()), input: input.clone() };
        let (taken, most) = watched(&mut call, &input);
        lock(&progress.now).since = None;
        let taken = judge(taken, most, memory).map_err(|why| format!("{why}\n{}", tell(&input)))?;
        progress.inputs.fetch_add(1, Ordering::Relaxed);
        (if taken { &progress.taken } else { &progress.refused }).fetch_add(1, Ordering::Relaxed);
        if taken && input.len() < LONGEST {
            if pool.len() < POOL.max(2 * samples.len()) {
                pool.push(input);
            } else {
                let place = random.within(samples.len()..pool.len());
                pool[place] = input;
            }
        }
    }
    Ok(())
}

fn rounds(
    round: fn(&mut Random) -> Result<u64, String>,
    mut random: Random,
    progress: &Progress,
    done: &dyn Fn() -> bool,
) -> Result<(), String> {
    while !done() {
        let own = random.draw();
        match panic::catch_unwind(|| round(&mut Random::new(own))) {
            Ok(inputs) => drop(progress.inputs.fetch_add(inputs?, Ordering::Relaxed)),
            Err(_) => return Err("it panics".into()),
        }
    }
    Ok(())
}

/// Takes an input; what became of it (nothing: a panic), and the most memory that it took.
fn watched(call: &mut Decoder, input: &[u8]) -> (Option<Taken>, usize) {
    memory::begin();
    // After a panic the target is not used any more.
    let taken = panic::catch_unwind(AssertUnwindSafe(|| call(input)));
    (taken.ok(), memory::most())
}

fn judge(taken: Option<Taken>, most: usize, limit: usize) -> Taken {
    let taken = taken.ok_or("it panics")??;
    if most > limit {
        return Err(format!("it takes {} KiB of memory, {} are enough", most >> 10, limit >> 10));
    }
    Ok(taken)
}

/// An input from others.
fn made(pool: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let one = &pool[random.within(0..pool.len())];
    let mut made = match random.within(0..20) {
        0 => noise(random.within(0..2000), random),
        1 | 2 => one[..random.within(0..one.len() + 1)].to_vec(),
        3..6 => {
            // The beginning of one and the end of another.
            let other = &pool[random.within(0..pool.len())];
            let joined =
                [&one[..random.within(0..one.len() + 1)], &other[random.within(0..other.len() + 1)..]].concat();
            if random.within(0..2) == 0 { joined } else { mutate(&joined, random) }
        }
        6 | 7 => without(one, random),
        8 => number(one, random),
        _ => mutate(one, random),
    };
    made.truncate(LONGEST);
    made
}

/// Without a part of it.
fn without(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let from = random.within(0..bytes.len() + 1);
    let to = (from + random.within(1..65)).min(bytes.len());
    [&bytes[..from], &bytes[to..]].concat()
}

/// With an interesting number in it: as bytes, or as digits in the place of others.
fn number(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    const NUMBERS: [u64; 12] =
        [0, 1, 2, 255, 256, 65535, 1 << 20, u32::MAX as u64, 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX];
    let number = NUMBERS[random.within(0..NUMBERS.len())];
    let mut out = bytes.to_vec();
    let digits: Vec<usize> = (0..out.len()).filter(|i| out[*i].is_ascii_digit()).collect();
    if !digits.is_empty() && random.within(0..2) == 0 {
        let at = digits[random.within(0..digits.len())];
        let from = (0..=at).rev().take_while(|i| out[*i].is_ascii_digit()).last().unwrap_or(at);
        let to = (at..out.len()).take_while(|i| out[*i].is_ascii_digit()).last().unwrap_or(at);
        out.splice(from..=to, number.to_string().into_bytes());
        return out;
    }
    let width = [1, 2, 4, 8][random.within(0..4)].min(out.len());
    let at = random.within(0..out.len() + 1 - width);
    out[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
    out
}

/// Keeps an input and says how to send it again.
fn tell(input: &[u8]) -> String {
    let path: PathBuf = std::env::temp_dir().join(format!("oflow-fuzz-{:08x}", crc32fast::hash(input)));
    let mut text = match std::fs::write(&path, input) {
        Ok(()) => format!("  its input: cargo xtask fuzz --again {}\n  ", path.display()),
        Err(e) => format!("  its input ({}: {e}):\n  ", path.display()),
    };
    for byte in input.iter().take(256) {
        let _infallible = write!(text, "{byte:02x}");
    }
    if input.len() > 256 {
        let _infallible = write!(text, "… {} bytes", input.len());
    }
    text
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A panic of one test would be taken for one of another's targets.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    #[test]
    fn some_seconds_of_it() {
        let _alone = lock(&ONE_AT_A_TIME);
        let seconds = std::env::var("OFLOW_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(5.0);
        run(Duration::from_secs_f64(seconds), 1, "").unwrap();
    }

    #[test]
    fn every_valid_input_is_taken() {
        let _alone = lock(&ONE_AT_A_TIME);
        // Recorded handshakes are refused: that is what they are for.
        for target in TARGETS.iter().filter(|t| !t.name.contains("handshake")) {
            let InputSource::Bytes { start, memory } = &target.kind else { continue };
            let (mut call, samples) = start().unwrap();
            let json = target.name.contains("JSON");
            for (i, input) in samples.iter().enumerate().filter(|(i, _)| !json || *i < 2) {
                let (taken, most) = watched(&mut call, input);
                assert_eq!(judge(taken, most, *memory), Ok(true), "{} #{i}", target.name);
            }
        }
    }

    #[test]
    fn panics_and_hunger_are_found() {
        let _alone = lock(&ONE_AT_A_TIME);
        let mut panics: Decoder = Box::new(|input| Ok(input[5] == 1));
        let (taken, most) = watched(&mut panics, &[1]);
        assert_eq!(judge(taken, most, 1000), Err("it panics".into()));
        let mut hungry: Decoder = Box::new(|input| Ok(vec![1u8; input.len() << 20].len() > 1));
        let (taken, most) = watched(&mut hungry, &[0; 3]);
        assert_eq!(judge(taken, most, 1 << 20), Err("it takes 3072 KiB of memory, 1024 are enough".into()));
    }

    #[test]
    fn a_seed_repeats_its_inputs() {
        let pool = vec![b"one 17 and 4".to_vec(), (0..200).collect()];
        let inputs = |seed| {
            let mut random = Random::new(seed);
            (0..500).map(|_| made(&pool, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(3), inputs(3));
        assert_ne!(inputs(3), inputs(4));
    }
}
