use super::*;
use std::fs;

/// A checkout with one crate of the given files, and the walk from `a.rs:start:call` in it.
fn walk_of(files: &[(&str, &str)], cold: bool) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let all = [("Cargo.toml", "[workspace]\nmembers = [\".\"]\n[package]\nname = \"one\"\n")];
    fs::create_dir(dir.path().join("src")).unwrap();
    for (path, text) in all.iter().chain(files) {
        let path = if *path == "Cargo.toml" { path.to_string() } else { format!("src/{path}") };
        fs::write(dir.path().join(path), text).unwrap();
    }
    let source = Source::read(dir.path()).unwrap();
    let walk = walk(
        &source,
        &Functions::of(&source),
        ("src/a.rs", "start", "call"),
        Limits { rooms: &["src/"], skips: &[], cold },
    )
    .unwrap();
    let name = |s: &Stay| format!("{}: {}", source.files[s.file].path, s.functions.join(" "));
    assert_eq!(walk.returns() + walk.files(), walk.stays.len());
    walk.stays.iter().map(name).collect()
}

const LIB: &str = "mod a;\nmod b;\npub struct Call { pub n: usize }\n\
    impl Call { pub fn own(&self) {} }\npub struct Run<'a> { pub call: &'a Call }\nimpl Run<'_> { pub fn step(&self) { self.call.own() } }\n";

#[test]
fn a_walk_enters_what_is_given_the_value_in_source_order() {
    let a = "use crate::{Call, Run, b};\n\
        pub fn start(call: &Call) { b::first(call); other(1); here(&call.n); let run = Run { call }; run.step(); b::first(call); }\n\
        fn other(_: usize) {}\nfn here(_: &usize) {}\n";
    let b = "use crate::Call;\npub fn first(c: &Call) { if c.n > 1 { second(c).map_err(|_| late(c)); } }\n\
        #[cold]\nfn second(c: &Call) -> Result<(), ()> { Ok(()) }\nfn late(_: &Call) {}\n";
    let files = [("lib.rs", LIB), ("a.rs", a), ("b.rs", b)];
    let way = ["src/a.rs: start", "src/b.rs: first", "src/a.rs: here", "src/lib.rs: step own"];
    assert_eq!(walk_of(&files, false), way);
    let way = ["src/a.rs: start", "src/b.rs: first second", "src/a.rs: here", "src/lib.rs: step own"];
    assert_eq!(walk_of(&files, true), way);
}

#[test]
fn a_table_of_functions_hides_nothing() {
    let a = "use crate::{Call, b};\nconst TABLE: &[fn(&Call)] = &[b::one, mine, b::two];\n\
        pub fn start(call: &Call) { for f in TABLE { f(call); } }\nfn mine(_: &Call) {}\n";
    let b = "use crate::Call;\npub fn one(_: &Call) {}\npub fn two(_: &Call) {}\n";
    let way = ["src/a.rs: start", "src/b.rs: one", "src/a.rs: mine", "src/b.rs: two"];
    assert_eq!(walk_of(&[("lib.rs", LIB), ("a.rs", a), ("b.rs", b)], false), way);
}
