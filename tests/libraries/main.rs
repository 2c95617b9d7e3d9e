//! Ops from libraries and source files: built, loaded, called, trained, replaced, unloaded; and libraries that are wrong.

mod calls;
mod features;
mod hostile;
mod nvcc;
mod options_in_sources;
mod replaced;
mod said;
mod seeds;

use oflow::libraries::{BuildOptions, Library, build_and_load};
use oflow::ops::Op;
use oflow::prelude::*;
use oflow::testing::{check_device, conformance, trials};
use oflow_tests::{cpp::cpp, gpus};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn example(name: &str) -> PathBuf {
    root().join("examples/ops").join(name)
}

fn source(name: &str) -> PathBuf {
    root().join("tests/libraries/sources").join(name)
}

/// Builds of these tests, kept as long as the process runs.
fn cache() -> &'static Path {
    static FOLDER: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path()
}

/// Without optimisation, which takes a third of a build.
fn options() -> BuildOptions {
    BuildOptions::new().cache(cache()).flag("-O0")
}

fn build(files: &[PathBuf]) -> Library {
    build_and_load(files, options()).unwrap_or_else(|e| panic!("{e}"))
}

fn conforms(library: &Library) {
    for op in library.ops() {
        let report = conformance(op).unwrap_or_else(|e| panic!("{e}"));
        println!("{report}");
        assert!(report.meshes.iter().all(|m| m.signatures > 0) && report.bad_arguments > 0, "{report}");
    }
}

fn vec(values: &[f32]) -> Tensor {
    from_vec(values.to_vec(), [values.len()], Device::Cpu).unwrap()
}

/// The kernels of an op on the GPU give what those on the CPU give.
fn same_on_the_gpu(op: &'static Op) {
    let mut wrong = vec![];
    for trial in trials(op, &mut wrong).unwrap() {
        let result = oflow::run_ranks(1, |_| Ok(check_device(Device::Cuda, &trial.reference))).unwrap();
        wrong.extend(result.into_iter().filter_map(|r| r.err()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_op_in_rust() {
    let library = build(&[example("softsign.rs")]);
    assert_eq!(library.name(), "demo");
    conforms(&library);
    let x = vec(&[-1.0, 0.0, 3.0]).requires_grad_(true).unwrap();
    let y = oflow::call("demo.softsign", &[(&x).into()], &[]).unwrap().remove(0);
    assert_eq!(y.to_vec::<f32>().unwrap(), [-0.5, 0.0, 0.75]);
    y.sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [0.25, 1.0, 0.0625]);
}

#[test]
fn an_op_in_cpp_with_a_kernel_in_cuda() {
    if !cpp() {
        return;
    }
    let library = build(&[example("matmul_scale.cc"), example("matmul_scale.cu")]);
    conforms(&library);
    if gpus::cuda() {
        library.ops().iter().for_each(|op| same_on_the_gpu(op));
    }
}

#[test]
fn an_op_in_cuda_text() {
    let library = build(&[example("softclip.cu")]);
    assert_eq!((library.name(), library.ops().len()), ("softclip", 2));
    if gpus::cuda() {
        conforms(&library);
    }
}

#[test]
fn a_kernel_decides_a_length() {
    let library = build(&[source("panics.rs")]);
    let positive = library.ops()[1];
    println!("{}", conformance(positive).unwrap());
    let x = vec(&[1.0, -2.0, 3.0]);
    let y = oflow::call("panics.positive", &[(&x).into()], &[]).unwrap().remove(0);
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, 3.0]);
}
