//! Broken and hostile files give errors: no panic, and no more memory than the limits. Whole files are changed by chance, a few bytes or a cut at
//! a time, and read as each format.

use oflow::data::{Dataset, Row};
use oflow::testing::Random;
use oflow_readers::{Csv, CsvOptions, ImageOptions, Images, Jsonl, Kind, Npy, Npz};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

mod made;

/// Counts the bytes that are in use, and the most that were.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it passes all calls on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Limit of what is decoded.
const LIMIT: usize = 16 << 20;

/// Most bytes that a reader may use for the files here, of at most a few thousand bytes. What grows up to the limit has its old and its new
/// place for a moment, the latter being up to twice as large.
const ALLOWED: usize = 3 * LIMIT + (8 << 20);

/// Reads a few rows, which may be errors.
fn read(rows: oflow::Result<impl Dataset<Item = Row>>) -> bool {
    let Ok(rows) = rows else { return false };
    let n = rows.len();
    (0..n.min(20)).chain(n.saturating_sub(3)..n).filter(|i| rows.get(*i).is_ok()).count() > 0
}

type Reader = fn(&Path) -> bool;

fn images(path: &Path) -> bool {
    let options = ImageOptions { memory: LIMIT as u64, largest: 2048, ..ImageOptions::default() };
    read(Images::new(vec![(path.to_path_buf(), Some(1))], options))
}

fn csv(path: &Path) -> bool {
    let options = CsvOptions { longest: 1 << 16, ..CsvOptions::default() };
    let all = Csv::with(path, options);
    let typed = all.as_ref().ok().and_then(|c| c.clone().column(c.names().first()?, Kind::F32).ok());
    typed.is_some_and(|t| read(Ok(t))) | read(all)
}

fn jsonl(path: &Path) -> bool {
    let all = Jsonl::with_longest(path, 1 << 16);
    let typed = all.as_ref().ok().and_then(|j| j.clone().column("a", Kind::I32).ok());
    typed.is_some_and(|t| read(Ok(t))) | read(all)
}

/// Files that are read, each with its reader.
fn files() -> Vec<(&'static str, Vec<u8>, Reader)> {
    let x = made::npy(1, "<f4", false, "(6, 3)", &[7; 72]);
    let y = made::npy(2, "|b1", false, "(6,)", &[1; 6]);
    let picture = image::RgbImage::from_fn(24, 20, |x, y| image::Rgb([(x * 9) as u8, (y * 11) as u8, (x * y) as u8]));
    let encoded = |format| {
        let mut bytes = std::io::Cursor::new(vec![]);
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    };
    let npz: Reader = |p| read(Npz::with_limit(p, &[], LIMIT));
    vec![
        ("npy", x.clone(), |p| read(Npy::open(p))),
        ("stored npz", made::zip(&[("x.npy", &x), ("y.npy", &y)], false), npz),
        ("compressed npz", made::zip(&[("x.npy", &x), ("y.npy", &y)], true), npz),
        ("csv", b"a,b\n1,\"x\ny\"\n2,z\n3,\"\"\"\"\n".repeat(8), csv),
        ("jsonl", b"{\"a\": [[1, 2], [3, 4]], \"b\": \"t\"}\n{\"a\": 1e300}\n".repeat(8), jsonl),
        ("png", encoded(image::ImageFormat::Png), images),
        ("jpeg", encoded(image::ImageFormat::Jpeg), images),
        ("ppm", encoded(image::ImageFormat::Pnm), images),
    ]
}

/// A file with a few changes.
fn changed(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.below(4) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes.truncate(at),
            1 => bytes[at] = random.draw() as u8,
            2 => bytes[at] ^= 1 << random.below(8),
            // Sizes are full or 0 in places.
            3 => bytes[at..].iter_mut().take(1 + random.below(8)).for_each(|b| *b = 0xff),
            4 => bytes[at..].iter_mut().take(1 + random.below(8)).for_each(|b| *b = 0),
            5 => {
                let part: Vec<u8> = bytes[at..].iter().take(1 + random.below(64)).copied().collect();
                let to = random.below(bytes.len());
                bytes.splice(to..to, part);
            }
            _ => drop(bytes.drain(at..(at + 1 + random.below(16)).min(bytes.len()))),
        }
    }
    bytes
}

#[test]
fn changed_files_are_errors_or_rows_within_the_memory_allowed() {
    // All in one test: another one beside it would be counted too.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let mut random = Random::new(20);
    for (name, bytes, reader) in files() {
        std::fs::write(&path, &bytes).unwrap();
        assert!(reader(&path), "{name} is read as it is");
        let (mut good, mut bad) = (0, 0);
        for round in 0..1500 {
            let file = changed(&bytes, &mut random);
            // To write over a file waits for the disk on some file systems.
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, &file).unwrap();
            let before = NOW.load(Ordering::Relaxed);
            MOST.store(before, Ordering::Relaxed);
            let read = std::panic::catch_unwind(|| reader(&path));
            let used = MOST.load(Ordering::Relaxed).saturating_sub(before);
            match read {
                Ok(true) => good += 1,
                Ok(false) => bad += 1,
                Err(_) => panic!("{name}, round {round}: a panic for {file:?}"),
            }
            assert!(used < ALLOWED, "{name}, round {round}: {used} bytes of memory for {} bytes", file.len());
        }
        assert!(good > 0 && bad > 0, "{name}: {good} were read, {bad} refused");
    }
    bombs(dir.path());
}

/// Files that are small and claim or become much.
fn bombs(dir: &Path) {
    let refused = |name: &str, bytes: Vec<u8>, reader: Reader| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        let before = NOW.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        assert!(!reader(&path), "{name} was read");
        let used = MOST.load(Ordering::Relaxed).saturating_sub(before);
        assert!(used < ALLOWED, "{name}: {used} bytes of memory");
    };
    let npz: Reader = |p| read(Npz::with_limit(p, &[], LIMIT));
    // 256 MiB of zeros in 256 KiB.
    let zeros = vec![0u8; 256 << 20];
    let bomb = made::zip(&[("x.npy", &made::npy(1, "|u1", false, "(268435456,)", &zeros))], true);
    drop(zeros);
    assert!(bomb.len() < 1 << 20);
    refused("bomb.npz", bomb, npz);
    refused("shape.npy", made::npy(1, "|u1", false, "(1, 1099511627776)", &[0; 64]), |p| read(Npy::open(p)));
    let mut long = made::npy(2, "|u1", false, "(1,)", &[0]);
    long[8..12].fill(0xff);
    refused("header.npy", long, |p| read(Npy::open(p)));
    refused("large.ppm", b"P6 60000 60000 255\n".to_vec(), images);
    refused("line.csv", [b"a\n".as_slice(), &vec![b'x'; 1 << 20]].concat(), |p| {
        read(Csv::with(p, CsvOptions { longest: 1 << 16, ..CsvOptions::default() }))
    });
}
