//! A `.cu` file whose host code launches kernels, compiled by a real nvcc where there is one. A launch needs a GPU too
//! (`OFLOW_TEST_GPU=1`).

use super::{build, same_on_the_gpu, source};
use oflow::prelude::*;
use oflow_tests::gpus;
use std::path::PathBuf;

/// Whether there is an nvcc; if not, that is printed, and the test is skipped.
fn nvcc() -> bool {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let in_path = || {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|f| f.join("nvcc").is_file())
    };
    let toolkit = var("CUDA_HOME").or_else(|| var("CUDA_PATH")).unwrap_or_else(|| "/usr/local/cuda".into());
    let there = var("NVCC").is_some() || in_path() || toolkit.join("bin/nvcc").is_file();
    if !there {
        println!("skipped: there is no nvcc, neither in NVCC, in PATH nor in {}", toolkit.display());
    }
    there
}

#[test]
fn host_code_that_launches_kernels_is_compiled_by_nvcc() {
    if !nvcc() {
        return;
    }
    let library = build(&[source("launches.cc"), source("launches.cu")]);
    let op = library.ops()[0];
    assert_eq!(op.name(), "launches.cube");
    // The loader has found all that the library calls, the CUDA runtime too.
    assert!(op.library.as_ref().unwrap().default_stream, "nvcc's code is found in the library");
    let devices: Vec<Device> = oflow::backend::kernels_of(op).iter().map(|k| k.device).collect();
    assert_eq!(devices, [Device::Cpu, Device::Cuda]);
    let x = super::vec(&[-2.0, 3.0]);
    let y = oflow::call("launches.cube", &[(&x).into()], &[]).unwrap().remove(0);
    assert_eq!(y.to_vec::<f32>().unwrap(), [-8.0, 27.0]);
    if gpus::real() && gpus::cuda() {
        same_on_the_gpu(op);
    }
}
