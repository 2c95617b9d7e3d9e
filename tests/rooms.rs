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
    "program",
    "trace",
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
    "metrics",
    "nn",
    "optim",
    "checkpoint",
    "graph",
    "prelude",
    "testing",
];

/// Rooms that do no I/O, start no thread, read no clock and touch no device (I2).
const PURE: &[&str] = &["placement", "sbp", "ops", "boxing", "plan", "program"];

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
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(folder);
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

/// Names that `lib.rs` re-exports, with the room that each comes from.
fn reexported() -> Vec<(String, usize)> {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("src/lib.rs");
    let lib = fs::read_to_string(lib).unwrap();
    let code: String = lib.lines().filter(|l| !l.trim_start().starts_with("//")).map(|l| format!("{l}\n")).collect();
    assert!(!code.contains("#[path"), "src/lib.rs gives a room another name than its folder's");
    for (i, room) in ROOMS.iter().enumerate() {
        assert!(
            !code.contains(&format!("mod {room} {{")),
            "src/lib.rs: what room {i}, {room}, has stands in its folder"
        );
    }
    let room_of = |path: &[String]| ROOMS.iter().position(|r| *r == path[0] || (path[0] == "crate" && path[1] == *r));
    let uses = code.split("pub use ").skip(1).filter_map(|u| u.split_once(';')).flat_map(|(u, _)| words(u));
    let last = |path: Vec<String>| Some((path.last()?.clone(), room_of(&path).filter(|_| path.len() > 1)?));
    uses.filter_map(last).collect()
}

#[test]
fn i6_names_of_the_crate_lead_downward_too() {
    let names = reexported();
    assert!(names.len() > 30 && names.iter().any(|(n, _)| n == "Tensor"), "src/lib.rs has {} names", names.len());
    let mut seen = 0;
    for (room, path, code) in sources() {
        if path.ends_with("tests.rs") || path.contains("/tests/") {
            continue;
        }
        let own = ROOMS.iter().position(|r| *r == room).unwrap();
        for word in words(&code).into_iter().filter(|w| w.len() == 2 && w[0] == "crate") {
            for (_, of) in names.iter().filter(|(n, _)| *n == word[1]) {
                seen += 1;
                assert!(*of <= own, "{path} names crate::{}, which is of the higher room {}", word[1], ROOMS[*of]);
            }
        }
    }
    assert!(seen > 0, "no file names an item by the crate");
}

#[test]
fn i6_no_function_is_put_into_a_lower_room() {
    // A static that a higher room sets hides an arrow upward: the lower room calls what it cannot name. Functions are arguments, or
    // fields of values that are registered by name.
    let function = |ty: &str| ["fn(", "fn (", "dyn Fn"].iter().any(|f| ty.contains(f));
    let all = sources();
    let alias = |code: &str| -> Vec<String> {
        let types = code.split("type ").skip(1).filter_map(|t| t.split_once(" = "));
        let names = types.filter(|(_, is)| function(is.split(';').next().unwrap_or_default()));
        names.map(|(name, _)| name.to_string()).filter(|n| n.chars().all(char::is_alphanumeric)).collect()
    };
    let aliases: Vec<String> = all.iter().flat_map(|(.., code)| alias(code)).collect();
    let is_set = |ty: &str| ["OnceLock<", "OnceCell<", "Mutex<", "RwLock<", "Atomic"].iter().any(|s| ty.contains(s));
    let mut seen = 0;
    for (_, path, code) in &all {
        // One in a function is set there.
        for line in code.lines().filter(|l| l.starts_with("static ") || l.starts_with("pub")) {
            let Some((name, ty)) = line.split_once("static ").and_then(|(_, s)| s.split_once(": ")) else { continue };
            let ty = ty.split(" = ").next().unwrap_or_default();
            seen += 1;
            let words = words(ty);
            let names = |alias: &String| words.iter().any(|w| w.contains(alias));
            let bad = is_set(ty) && (function(ty) || aliases.iter().any(names));
            assert!(!bad, "{path}: the static {name} holds a function that is set from elsewhere");
        }
    }
    assert!(seen > 15 && aliases.len() > 5, "the test looked at {seen} statics and {} aliases", aliases.len());
}

/// Methods that a higher room gives a type of a pure room: type, method, room.
const EXTENSIONS: &[(&str, &str, &str)] = &[("Placement", "all", "context")];

#[test]
fn i6_types_of_pure_rooms_have_their_methods_there() {
    let all = sources();
    let pure: Vec<&(String, String, String)> = all.iter().filter(|(r, ..)| PURE.contains(&r.as_str())).collect();
    let home = |ty: &str| {
        let defines = |code: &str| {
            ["struct", "enum"].iter().any(|k| {
                let at = format!("pub {k} {ty}");
                code.match_indices(&at).any(|(i, _)| !code[i + at.len()..].starts_with(|c: char| c.is_alphanumeric()))
            })
        };
        pure.iter().find(|(.., code)| defines(code)).map(|(room, ..)| room.clone())
    };
    let mut seen = 0;
    for (room, path, code) in &all {
        for line in code.lines().filter(|l| l.starts_with("impl ") && !l.contains(" for ")) {
            let ty: String = line[5..].chars().take_while(|c| c.is_alphanumeric()).collect();
            let Some(home) = home(&ty) else { continue };
            seen += 1;
            let listed = EXTENSIONS.iter().any(|(t, _, r)| *t == ty && r == room);
            // A private type of another room may have the same name.
            let own = code.contains(&format!("struct {ty}")) || code.contains(&format!("enum {ty}"));
            assert!(*room == home || listed || own, "{path}: methods of {ty}, which is a type of the room {home}");
        }
        for (ty, method, of) in EXTENSIONS {
            let rank = |room: &str| ROOMS.iter().position(|r| *r == room);
            let uses = code.contains(&format!("{ty}::{method}("));
            assert!(!uses || rank(room) >= rank(of), "{path} calls {ty}::{method}, which the higher room {of} adds");
        }
    }
    assert!(seen > 40, "the test looked at {seen} blocks of methods only: has the layout changed?");
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

/// Backticked words of a text.
fn backticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_page_of_the_architecture_is_short_and_names_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let words = page.split_whitespace().filter(|w| w.contains(char::is_alphanumeric)).count();
    assert!(words <= 1800, "ARCHITECTURE.md has {words} words; rooms tell how they work in their module docs");

    let page: String = page.split("```").step_by(2).collect();
    let links = page.split("](").skip(1).filter_map(|l| l.split_once(')')).map(|(l, _)| l);
    let is_path = |w: &&str| {
        let file = w.rsplit_once('.').is_some_and(|(_, e)| ["rs", "md", "toml", "py", "proto"].contains(&e));
        file || (w.contains('/') && !w.contains(' '))
    };
    let (mut paths, mut tests) = (0, 0);
    for path in links.chain(backticked(&page).filter(is_path)) {
        let (path, test) = path.split_once("::").map_or((path, None), |(p, t)| (p, Some(t)));
        let there = root.join(path);
        assert!(there.exists(), "ARCHITECTURE.md names {path}, which does not exist");
        paths += 1;
        if let Some(test) = test {
            let mut sources = vec![];
            if there.is_dir() {
                files(&there, &mut sources);
            } else {
                sources.push(there);
            }
            let named = sources.iter().any(|f| fs::read_to_string(f).unwrap().contains(&format!("fn {test}")));
            assert!(named, "ARCHITECTURE.md: {path} has no test whose name starts with {test}");
            tests += 1;
        }
    }
    assert!(paths > 50 && tests > 15, "the test found {paths} paths and {tests} names of tests only");
}

#[test]
fn the_page_of_the_architecture_has_every_crate_and_room() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let map = page.split("## Code map").nth(1).and_then(|p| p.split("\n## ").next()).unwrap();
    let rows = map.lines().filter(|l| l.starts_with("| `"));
    let named: Vec<&str> = rows.flat_map(|l| backticked(l.split('|').nth(1).unwrap())).collect();
    named.iter().for_each(|n| {
        assert!(root.join(n).is_dir(), "ARCHITECTURE.md: the code map has '{n}', and no folder has that name")
    });
    let crates = fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).filter(|p| p.join("Cargo.toml").exists());
    let crates = crates.map(|p| p.file_name().unwrap().to_string_lossy().into_owned());
    let rooms = ROOMS.iter().map(|r| format!("src/{r}")).filter(|r| root.join(r).is_dir());
    let missing: Vec<String> = crates.chain(rooms).filter(|n| !named.contains(&n.as_str())).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md: the code map lacks {missing:?}");
}
