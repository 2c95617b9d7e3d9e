//! PyTorch's own samples of its functions, modules and optimizers, given to oflow by `python/peers/beside_pytorch`. It has an environment
//! of its own in the folder of build outputs: PyTorch is no part of the project's set-up.

use crate::root;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = "docs/pytorch.md";
/// Packages of the samples beside oflow; `torch.testing._internal` imports `expecttest`.
const PACKAGES: [&str; 3] = ["torch", "expecttest", "numpy"];

/// Installs PyTorch and the Python module, runs the samples, and writes [`PAGE`] if all of them were asked for (no arguments).
///
/// # Errors
/// Something could not be installed, or a sample is wrong or was accepted where PyTorch refuses it.
pub fn run(args: &[&str]) -> Result<(), Box<dyn Error>> {
    let root = root();
    let environment = target(&root).join("pytorch-venv");
    let python = environment.join("bin/python");
    if !python.exists() {
        done("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let pip = |args: &[&str]| {
        let mut command = Command::new(&python);
        command.args(["-m", "pip", "install", "--quiet"]).args(args).current_dir(&root);
        // As `.ci/run` builds it.
        command.env("MATURIN_PEP517_ARGS", "--profile dev");
        done("pip install", &mut command)
    };
    pip(&PACKAGES)?;
    pip(&["--force-reinstall", "--no-deps", "./python"])?;
    let mut samples = Command::new(&python);
    samples.args(["-m", "beside_pytorch"]).args(args).current_dir(&root).env("PYTHONPATH", root.join("python/peers"));
    if args.is_empty() {
        samples.args(["--page", PAGE]);
    }
    done("python -m beside_pytorch", &mut samples)
}

/// The folder of build outputs.
fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn done(what: &str, command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status().map_err(|e| format!("{what} cannot be started: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what} failed ({status})").into()) }
}
