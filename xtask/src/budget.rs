//! The budget of README's first command: packages, and lines of LLVM code of the two large libraries. Both are counted, because seconds
//! depend on the machine.

use crate::root;
use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;

/// Packages of `oflaunch` and of all that it needs, build scripts included.
// The page of a running job brought axum, with axum-core, matchit and mime.
const PACKAGES: usize = 165;
/// Lines of LLVM code that a library is made of before optimisation. A change of the compiler moves them a little.
// Graphs (programs and their text, capture, replay) brought 4,000,000 to 4,100,000.
const LINES: &[(&str, usize)] = &[("oflow", 4_100_000), ("oflow-kernels", 1_800_000)];
/// A ceiling this many percent above the count is to be lowered.
const SLACK: usize = 10;

/// Counts both and compares them with their ceilings. Compiles the two libraries in a target folder of its own, which takes minutes.
///
/// # Errors
/// One of them is above its ceiling or far below, or does not compile.
pub fn run() -> Result<(), Box<dyn Error>> {
    let mut wrong = Vec::new();
    let mut tell = |what: String, count: usize, ceiling: usize| {
        println!("{what}: {count} (ceiling {ceiling})");
        wrong.extend(judge(&what, count, ceiling).err());
    };
    tell("packages of the first command".into(), packages()?.len(), PACKAGES);
    for (package, ceiling) in LINES {
        tell(format!("lines of LLVM code of {package}"), lines(package)?, *ceiling);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn judge(what: &str, count: usize, ceiling: usize) -> Result<(), String> {
    if count > ceiling {
        return Err(format!(
            "{what}: {count}, the ceiling is {ceiling}: do without what has come, or raise it in xtask/src/budget.rs and say why"
        ));
    }
    if count * (100 + SLACK) < ceiling * 100 {
        return Err(format!(
            "{what}: {count}, the ceiling is {ceiling}: lower it in xtask/src/budget.rs, so that it stays"
        ));
    }
    Ok(())
}

/// Cargo with these arguments in this checkout, without the settings of the cargo that runs this program.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).args(arguments);
    oflow_faults::cargo_env::forget(&mut cargo);
    cargo
}

/// Names and versions of the packages that `cargo run --release --bin oflaunch` compiles.
fn packages() -> Result<BTreeSet<String>, Box<dyn Error>> {
    let end = cargo(&["tree", "-p", "oflaunch", "-e", "normal,build", "--prefix", "none", "--locked"]).output()?;
    if !end.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&end.stderr)).into());
    }
    let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    Ok(String::from_utf8(end.stdout)?.lines().filter(|l| !l.is_empty()).map(name).collect())
}

/// Lines within functions that the compiler hands to LLVM for a library.
fn lines(package: &str) -> Result<usize, Box<dyn Error>> {
    let folder = root().join("target/budget");
    let deps = folder.join("debug/deps");
    let name = package.replace('-', "_") + "-";
    let texts = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&deps).into_iter().flatten().flatten().map(|e| e.path());
        let ours = |path: &PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            file.ends_with(".ll") && file.starts_with(&name)
        };
        entries.filter(ours).collect()
    };
    for old in texts() {
        std::fs::remove_file(&old)?;
    }
    let mut compile = cargo(&["rustc", "-q", "-p", package, "--lib", "--target-dir"]);
    compile.arg(&folder).args(["--", "--emit=llvm-ir", "-Ccodegen-units=1", "-Cno-prepopulate-passes", "-Clto=off"]);
    if !compile.status()?.success() {
        return Err(format!("{package} does not compile").into());
    }
    let found = texts();
    let [text] = found.as_slice() else {
        return Err(format!("{} files {name}*.ll in {}", found.len(), deps.display()).into());
    };
    let (mut count, mut within) = (0, false);
    for line in BufReader::new(std::fs::File::open(text)?).lines() {
        let line = line?;
        match line.as_str() {
            "}" => within = false,
            l if l.starts_with("define ") => within = true,
            "" => {}
            _ => count += usize::from(within),
        }
    }
    // Some hundred megabytes.
    std::fs::remove_file(text)?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_command_compiles_no_more_packages() {
        let packages = packages().unwrap();
        assert!(packages.iter().any(|p| p.starts_with("oflow v")) && packages.iter().any(|p| p.starts_with("tonic v")));
        if let Err(wrong) = judge("packages of the first command", packages.len(), PACKAGES) {
            panic!("{wrong}; they are:\n{}", packages.into_iter().collect::<Vec<_>>().join("\n"));
        }
    }

    #[test]
    fn more_than_the_ceiling_and_much_less_are_wrong() {
        assert!(judge("x", 100, 100).is_ok() && judge("x", 92, 100).is_ok());
        assert!(judge("x", 101, 100).unwrap_err().contains("the ceiling is 100: do without"));
        assert!(judge("x", 89, 100).unwrap_err().contains("lower it"));
    }
}
