//! Compiled objects by the hash of all that went into them. Processes may share the folder: files appear whole, by rename.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::SystemTime;

use crate::driver::{lock, module};

/// More files than this (some 20 KB each), and the older half goes. oflow's tests have about two thousand programs.
const MOST: usize = 12_000;
/// Objects kept from one look at the number of files to the next.
const BETWEEN: usize = 500;

/// 128 bits of FNV-1a over the parts and their lengths.
pub fn hash(parts: &[&str]) -> String {
    let mut hash = 0x6c62272e07bb014262b821756295c58d_u128;
    for part in parts {
        for byte in part.len().to_le_bytes().iter().chain(part.as_bytes()) {
            hash = (hash ^ u128::from(*byte)).wrapping_mul(0x0000000001000000000000000000013B);
        }
    }
    format!("{hash:032x}")
}

fn folder() -> PathBuf {
    std::env::var_os("OFLOW_EMULATOR_CACHE").map(PathBuf::from).unwrap_or_else(|| {
        // SAFETY: takes nothing and cannot fail.
        let user = unsafe { libc::getuid() };
        std::env::temp_dir().join(format!("oflow-emulator-{user}"))
    })
}

/// The object of that hash, if it is there.
pub fn find(hash: &str) -> Option<Vec<u8>> {
    let path = folder().join(hash);
    let bytes = std::fs::read(&path).ok().filter(|bytes| bytes.starts_with(b"\x7fELF"))?;
    // Used today: goes later. That it fails costs nothing but an early recompilation.
    let _ = std::fs::File::options().append(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
    Some(bytes)
}

/// Keeps an object. A cache that cannot be written is no error.
pub fn keep(hash: &str, object: &[u8]) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let folder = folder();
    let _turn = lock(&module::CACHE);
    let unfinished = folder.join(format!(".{hash}-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed)));
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&unfinished, object))
        .and_then(|()| std::fs::rename(&unfinished, folder.join(hash)));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
        return;
    }
    // The folder is read at the first object and then now and then: asking each file's age at each compilation costs more than the write.
    static KEPT: AtomicUsize = AtomicUsize::new(0);
    if !KEPT.fetch_add(1, Relaxed).is_multiple_of(BETWEEN) {
        return;
    }
    let Ok(entries) = std::fs::read_dir(&folder) else { return };
    let mut files: Vec<(SystemTime, PathBuf)> =
        entries.flatten().filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path()))).collect();
    if files.len() > MOST {
        files.sort();
        for (_, path) in files.iter().take(MOST / 2) {
            let _ = std::fs::remove_file(path);
        }
    }
}
