//! Discrete Fourier transforms for [oflow], with the names and the meaning of `torch.fft`.
//!
//! ```
//! use oflow::prelude::*;
//! use oflow_fft as fft;
//!
//! let x = from_vec(vec![1.0, 2.0, 0.0, -1.0, 0.5], [5], Device::Cpu)?.requires_grad_(true)?;
//! let y = fft::rfft(&x, Default::default())?; // c128[3]: the other two are conjugates
//! let back = fft::irfft(&y, fft::Dft { n: Some(5), ..Default::default() })?;
//! assert!(back.sub(&x)?.abs()?.amax(())?.item()? < 1e-12);
//! y.abs()?.square()?.sum(())?.backward()?;
//! assert!(x.grad().is_some_and(|g| g.shape() == [5]));
//! # Ok::<(), oflow::Error>(())
//! ```
//!
//! All functions are linear and differentiable, to any order. A global tensor may be split along every dim that is not transformed, or be
//! P(sum); along the dims that are transformed it is gathered first. Numbers are f64 where the input is f64 or c128, else f32. On the
//! CPU the crate [`rustfft`](https://docs.rs/rustfft) computes them, and where there are vectors of 512 bits some lengths are computed here; the lines of a tensor are spread over the threads of the rank; on GPUs
//! cuFFT, where it is installed (`docs/cuda.md`). Any length is fast. The functions can be called by name too: `oflow::functional::call("fft.rfft", ..)`.
//!
//! A crate of its own, because rustfft takes long to compile: programs that transform nothing do not build it.

mod by_name;
mod functions;
mod halves;
mod kernels;
mod ops;
mod plans;
mod stft;
#[cfg_attr(not(target_arch = "x86_64"), path = "no_vectors.rs")]
mod vectors;

pub use functions::{
    Dft, DftN, Norm, fft, fft2, fftfreq, fftn, fftshift, hfft, hfft2, hfftn, ifft, ifft2, ifftn, ifftshift, ihfft,
    ihfft2, ihfftn, irfft, irfft2, irfftn, register, rfft, rfft2, rfftfreq, rfftn,
};
pub use plans::kept_plans;
pub use stft::{Stft, istft, stft};
