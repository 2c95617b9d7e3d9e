//! Times Fourier transforms on one thread, beside PyTorch's: `PYTHON=path/to/python cargo bench -p oflow-fft --bench fft [-- FILTER]`.
//! How it is measured stands in `benches/ops.rs`. Of complex results the real parts are added up.

#[path = "../../benches/peers/mod.rs"]
mod peers;

use oflow::prelude::*;
use oflow_fft::{Dft, DftN};
use peers::calls::{Case, case, run};

/// A call on complex numbers.
fn complex(name: &'static str, shape: &[usize], call: impl Fn(&Tensor) -> Result<Tensor> + 'static) -> Case {
    Case { dtype: DType::C64, ..case(name, &[shape], move |x| call(&x[0])) }
}

fn main() -> Result<()> {
    let last_two = || DftN { dims: Some(vec![-2, -1]), ..Default::default() };
    let columns = Dft { dim: 0, ..Default::default() };
    run(&[
        complex("fft [1024,1024]", &[1024, 1024], |x| oflow_fft::fft(x, Dft::default())),
        complex("fft dim 0 [1024,1024]", &[1024, 1024], move |x| oflow_fft::fft(x, columns)),
        complex("fft [1024,1000]", &[1024, 1000], |x| oflow_fft::fft(x, Dft::default())),
        complex("fft [1024,1009]", &[1024, 1009], |x| oflow_fft::fft(x, Dft::default())),
        complex("fft [1048576]", &[1 << 20], |x| oflow_fft::fft(x, Dft::default())),
        complex("ifft [4096,64]", &[4096, 64], |x| oflow_fft::ifft(x, Dft::default())),
        complex("fft2 [8,256,256]", &[8, 256, 256], move |x| oflow_fft::fft2(x, last_two())),
        complex("fftn [64,64,64]", &[64, 64, 64], |x| oflow_fft::fftn(x, DftN::default())),
        complex("irfft [1024,513]", &[1024, 513], |x| oflow_fft::irfft(x, Dft::default())),
        case("rfft [1024,1024]", &[&[1024, 1024]], |x| oflow_fft::rfft(&x[0], Dft::default())),
        case("rfft2 [8,256,256]", &[&[8, 256, 256]], move |x| oflow_fft::rfft2(&x[0], last_two())),
    ])
}
