//! A crate outside the workspace that depends on oflow by path: the program of the design runs on 4 ranks, and an op that
//! the crate adds with public API only takes part in everything, backward included.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::*;

#[test]
fn a_crate_of_somebody_elses() {
    let folder = Folder::new();
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().canonicalize().unwrap();
    let library = fs::read_to_string(home.join("Cargo.toml")).unwrap();
    // The library's own profiles and versions, and our target directory: what is built is not built again.
    let profiles = library.find("[profile.").map_or("", |at| &library[at..]);
    let profiles = &profiles[..profiles.find("\n[package]").unwrap_or(profiles.len())];
    let manifest = format!(
        "[package]\nname = \"outside\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\noflow = {{ path = {home:?} }}\n\n{profiles}\n"
    );
    folder.write("Cargo.toml", &manifest);
    fs::copy(home.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    folder.write("src/main.rs", include_str!("scripts/outside.rs"));

    let target = Path::new(env!("CARGO_BIN_EXE_oflaunch")).parent().unwrap();
    let profile = if target.ends_with("release") { "release" } else { "dev" };
    let build = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args(["build", "--offline", "--profile", profile])
        .current_dir(folder.path())
        .env("CARGO_TARGET_DIR", target.parent().unwrap())
        .output()
        .unwrap();
    assert!(build.status.success(), "{}", stderr(&build));

    let program = target.join("outside");
    let output = run(&folder, &["-n", "4", program.to_str().unwrap()]);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    let mut wanted = String::new();
    for line in [
        "f32[1024, 256] [S(0), S(1)] on cpu[dp=2, tp=2]",
        "f32[3, 1] [S(0), P(sum)] on cpu[dp=2, tp=2] (in graph) [20.0, 148.0, 404.0]",
        "true true",
        "outside.row_dot(f32[3, 4] [S(0), S(1)], f32[1024, 512] [S(0), B]) on cpu[dp=2, tp=2]: needs two equal matrices, not f32[3, 4] and f32[1024, 512]",
    ] {
        wanted += &format!("{line}\n");
    }
    let text = stdout(&output);
    for rank in 0..4 {
        let prefix = format!("[rank {rank}] ");
        let own: String = text.lines().filter_map(|l| l.strip_prefix(&prefix)).flat_map(|l| [l, "\n"]).collect();
        assert_eq!(own, wanted, "rank {rank}");
    }
}
