//! Times Fourier transforms on one thread, beside PyTorch's: `PYTHON=path/to/python cargo bench -p oflow-fft --bench fft [-- FILTER]`.
//! How it is measured stands in `benches/ops.rs`. Complex numbers are given and taken as pairs of real ones, which is a view.

#[path = "../../benches/peers/mod.rs"]
mod peers;

use oflow::prelude::*;
use oflow_fft::{Dft, DftN};
use peers::calls::{Case, case, run};

/// A call on complex numbers of a shape that ends with 2.
fn complex(name: &'static str, shape: &[usize], call: impl Fn(&Tensor) -> Result<Tensor> + 'static) -> Case {
    case(name, &[shape], move |x| call(&x[0].view_as_complex()?)?.view_as_real())
}

fn main() -> Result<()> {
    let last_two = || DftN { dims: Some(vec![-2, -1]), ..Default::default() };
    run(&[
        complex("fft [1024,1024]", &[1024, 1024, 2], |x| oflow_fft::fft(x, Dft::default())),
        complex("fft dim 0 [1024,1024]", &[1024, 1024, 2], |x| oflow_fft::fft(x, Dft { dim: 0, ..Default::default() })),
        complex("fft [1024,1000]", &[1024, 1000, 2], |x| oflow_fft::fft(x, Dft::default())),
        complex("fft [1024,1009]", &[1024, 1009, 2], |x| oflow_fft::fft(x, Dft::default())),
        complex("fft [1048576]", &[1 << 20, 2], |x| oflow_fft::fft(x, Dft::default())),
        complex("ifft [4096,64]", &[4096, 64, 2], |x| oflow_fft::ifft(x, Dft::default())),
        complex("fft2 [8,256,256]", &[8, 256, 256, 2], move |x| oflow_fft::fft2(x, last_two())),
        complex("fftn [64,64,64]", &[64, 64, 64, 2], |x| oflow_fft::fftn(x, DftN::default())),
        case("irfft [1024,513]", &[&[1024, 513, 2]], |x| oflow_fft::irfft(&x[0].view_as_complex()?, Dft::default())),
        case("rfft [1024,1024]", &[&[1024, 1024]], |x| oflow_fft::rfft(&x[0], Dft::default())?.view_as_real()),
        case("rfft2 [8,256,256]", &[&[8, 256, 256]], move |x| oflow_fft::rfft2(&x[0], last_two())?.view_as_real()),
    ])
}
