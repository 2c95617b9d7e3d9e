//! The CUDA part of `oflow doctor`.

use oflow::kernels::cuda::kernel_cache;
use oflow::kernels::cuda::probe::{GpuInfo, Optional, Probe, optional, probe};

use crate::doctor::{Finding, bad, fine, note};

pub(crate) fn driver() -> Finding {
    match &probe().driver {
        Ok(version) => fine(format!("supports up to {version}")),
        Err(why) => note(format!("{why}; tensors live on the CPU")),
    }
}

pub(crate) fn gpus() -> Finding {
    match &probe().gpus {
        Ok(gpus) => fine(gpus.iter().map(describe).collect::<Vec<_>>().join("; ")),
        Err(why) => note(format!("none: {why}")),
    }
}

fn describe(gpu: &GpuInfo) -> String {
    let GpuInfo { index, name, capability: (major, minor), memory } = gpu;
    let gib = *memory as f64 / f64::from(1 << 30);
    format!("{index}: {name}, compute capability {major}.{minor}, {gib:.1} GiB")
}

fn library(found: &Result<String, String>, without: &str) -> Finding {
    match found {
        Ok(version) => fine(version),
        // Without a GPU nobody misses it.
        Err(why) if probe().gpus.is_err() => note(why),
        Err(why) => note(format!("{why}; {without}")),
    }
}

pub(crate) fn nvrtc() -> Finding {
    library(&probe().nvrtc, "kernels cannot be compiled (`pip install nvidia-cuda-nvrtc` is enough)")
}

pub(crate) fn cublaslt() -> Finding {
    library(&probe().cublaslt, "products of matrices cannot be computed (`pip install nvidia-cublas` is enough)")
}

pub(crate) fn nccl() -> Finding {
    library(&probe().nccl, "ranks exchange through host memory (`pip install nvidia-nccl-cu13` is enough)")
}

pub(crate) fn cufft() -> Finding {
    library(optional(Optional::Cufft), "Fourier transforms run on the CPU only (`pip install nvidia-cufft` is enough)")
}

pub(crate) fn cusolver() -> Finding {
    library(
        optional(Optional::Cusolver),
        "linear algebra runs on the CPU only (`pip install nvidia-cusolver` is enough)",
    )
}

pub(crate) fn cudnn() -> Finding {
    library(
        optional(Optional::Cudnn),
        "convolutions run by kernels of oflow, without tensor cores (`pip install nvidia-cudnn-cu13` is enough)",
    )
}

pub(crate) fn cache() -> Finding {
    match kernel_cache() {
        Some(folder) => fine(format!("compiled kernels are kept in {}", folder.display())),
        None => note("compiled kernels are not kept: neither OFLOW_KERNEL_CACHE nor XDG_CACHE_HOME nor HOME is set"),
    }
}

pub(crate) fn device() -> Finding {
    let found = probe();
    match outcome(found) {
        Ok(text) => fine(text),
        Err(why) => {
            let text = format!("asking for it is an error: {why}");
            // A machine with a GPU is meant to use it.
            if found.gpus.is_ok() { bad(text) } else { note(text) }
        }
    }
}

/// Outcome of a program's request for `Device::Cuda`.
fn outcome(found: &Probe) -> Result<String, String> {
    let gpus = found.check().map_err(|e| e.to_string())?;
    let which = match gpus.len() {
        1 => "all ranks of this host share GPU 0".to_string(),
        n => format!("rank r of this host uses GPU r mod {n}"),
    };
    let way = match (&found.nccl, gpus.len()) {
        (Err(_), _) => "ranks exchange through host memory",
        (Ok(_), 1) => "several ranks exchange through host memory, because NCCL needs a GPU for each",
        (Ok(_), _) => "groups of ranks with a GPU each exchange by NCCL, others through host memory",
    };
    Ok(format!("works; {which}; {way}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_happen() {
        let gpu = |index| GpuInfo { index, name: "NVIDIA H200".into(), capability: (9, 0), memory: 150_110_011_392 };
        let there = || Ok("13.0".to_string());
        let mut p =
            Probe { driver: there(), gpus: Ok(vec![gpu(0), gpu(1)]), nvrtc: there(), cublaslt: there(), nccl: there() };
        assert_eq!(describe(&gpu(1)), "1: NVIDIA H200, compute capability 9.0, 139.8 GiB");
        assert!(outcome(&p).unwrap().starts_with("works; rank r of this host uses GPU r mod 2; groups of ranks with"));
        p.nccl = Err("libnccl.so is not on the library search path".into());
        assert!(outcome(&p).unwrap().ends_with("; ranks exchange through host memory"));
        p.nvrtc = Err("libnvrtc.so is not on the library search path".into());
        assert_eq!(outcome(&p).unwrap_err(), "no CUDA compiler (NVRTC): libnvrtc.so is not on the library search path");
    }
}
