//! The house: imports run downward only, ops are decided without std's hash maps, pure rooms stay pure. Between crates the
//! compiler keeps the order: `base`, `kernels`, `comm`, `control`, `src`, `launcher`.

use std::fs;
use std::path::{Path, PathBuf};

/// Rooms from the lowest to the highest. A file may name its own room and those before it.
const ROOMS: &[&str] = &[
    "placement",
    "sbp",
    "ops",
    "boxing",
    "plan",
    "memory",
    "vm",
    "backend",
    "context",
    "tensor",
    "interpreter",
    "functional",
    "libraries",
    "state",
    "data",
    "nn",
    "optim",
    "checkpoint",
    "prelude",
    "testing",
];

/// Rooms that do no I/O, start no thread, read no clock and touch no device (I2).
const PURE: &[&str] = &["placement", "sbp", "ops", "boxing", "plan"];

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// `(room, path, code without comments)` of every source file of the library.
fn sources() -> Vec<(String, String, String)> {
    sources_in("src")
}

/// The same of a folder of the repository.
fn sources_in(folder: &str) -> Vec<(String, String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut all = vec![];
    files(&src, &mut all);
    all.sort();
    all.into_iter()
        .filter(|p| p.file_name().is_some_and(|n| n != "lib.rs"))
        .map(|p| {
            let rel = p.strip_prefix(&src).unwrap();
            let room = rel.components().next().unwrap().as_os_str().to_string_lossy().replace(".rs", "");
            let text = fs::read_to_string(&p).unwrap();
            // Tests may use what they like: everything from the first test module on is left out.
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap().to_string();
            let code: String =
                text.lines().filter(|l| !l.trim_start().starts_with("//")).map(|l| format!("{l}\n")).collect();
            (room, rel.display().to_string(), code)
        })
        .collect()
}

#[test]
fn i6_imports_run_downward_only() {
    let mut seen = 0;
    for (room, path, code) in sources() {
        let own =
            ROOMS.iter().position(|r| *r == room).unwrap_or_else(|| panic!("{path}: the room '{room}' has no rank"));
        if path.ends_with("tests.rs") || path.contains("/tests/") {
            continue;
        }
        for (i, _) in code.match_indices("crate::") {
            let used: String = code[i + 7..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if let Some(rank) = ROOMS.iter().position(|r| *r == used) {
                seen += 1;
                assert!(rank <= own, "{path} (room {room}) imports from the higher room {used}");
            }
        }
    }
    assert!(seen > 100, "the test looked at {seen} imports only: has the layout changed?");
}

#[test]
fn i2_pure_rooms_are_pure() {
    let banned = ["std::fs", "std::net", "std::thread", "std::time", "Instant::now", "tokio", "rustix", "std::env"];
    let rooms = sources().into_iter().filter(|(r, ..)| PURE.contains(&r.as_str()));
    for (room, path, code) in rooms.chain(sources_in("base/src")) {
        for b in banned {
            assert!(!code.contains(b), "{path}: the pure room {room} uses {b}");
        }
    }
}

#[test]
fn i2_pure_rooms_name_no_kernel() {
    // Kernels stand beside the backends; a pure room that named one could not be planned with where the device is not.
    let banned = [&["oflow_kernels", "cpu"][..], &["oflow_kernels", "cuda"], &["Queue"], &["Stream"], &["Gpu"]];
    let mut seen = 0;
    for (room, path, code) in sources().into_iter().filter(|(r, ..)| PURE.contains(&r.as_str())) {
        let words = words(&code);
        seen += words.iter().filter(|p| p[0] == "oflow_kernels").count();
        for b in banned {
            let found = words.iter().find(|p| p.windows(b.len()).any(|w| w == b));
            assert!(found.is_none(), "{path}: the pure room {room} names {}", b.join("::"));
        }
    }
    assert!(seen > 50, "the test looked at {seen} names of the kernels only: has the layout changed?");
    // The test itself: grouped and renamed imports are seen.
    let seen = |code: &str| words(code).iter().any(|p| p.windows(2).any(|w| w == ["oflow_kernels", "cpu"]));
    assert!(
        seen("use oflow_kernels::{DType, cpu as c};") && seen("use oflow_kernels::{expr::{Expr}, cpu::{self, copy}};")
    );
    assert!(seen("oflow_kernels::cpu::copy::copy(a, b)") && !seen("use oflow_kernels::{DType, expr};\nuse a::cpu;"));
}

/// Every path of the code, word by word, with the groups of imports taken apart.
fn words(code: &str) -> Vec<Vec<String>> {
    let (mut found, mut stack): (Vec<Vec<String>>, Vec<Vec<String>>) = (vec![], vec![vec![]]);
    let mut path: Vec<String> = vec![];
    let mut chars = code.chars().peekable();
    let mut joined = false;
    while let Some(c) = chars.next() {
        if c.is_alphanumeric() || c == '_' {
            let mut word = String::from(c);
            while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                word.push(c);
            }
            if !joined {
                path = stack.last().cloned().unwrap_or_default();
            }
            path.push(word);
            found.push(path.clone());
            joined = false;
        } else if c == ':' && chars.next_if_eq(&':').is_some() {
            joined = true;
        } else if c == '{' {
            // A group goes on from the path before it, any other block from nothing.
            stack.push(if joined { path.clone() } else { vec![] });
            joined = false;
        } else if c == '}' {
            stack.pop();
            joined = false;
        } else {
            joined = false;
        }
    }
    found
}

#[test]
fn i23_files_are_made_by_one_crate() {
    for (_, path, code) in
        ["src", "control/src", "flight/src", "kernels/src", "launcher/src"].into_iter().flat_map(sources_in)
    {
        if path.ends_with("tests.rs") {
            continue;
        }
        for b in ["OpenOptions", "File::create(", "create_dir", "DirBuilder", "fs::write(", "OFlags::CREATE"] {
            assert!(!code.contains(b), "{path} uses {b}: oflow-files makes files, with modes and checks");
        }
    }
}

#[test]
fn i4_no_std_hash_map_anywhere() {
    for (_, path, code) in ["src", "base/src", "comm/src", "control/src"].into_iter().flat_map(sources_in) {
        for b in ["HashMap", "HashSet"] {
            assert!(!code.contains(b), "{path} uses {b}");
        }
    }
}
