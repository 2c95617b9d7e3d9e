//! Times linear algebra on one thread, beside PyTorch's (LAPACK):
//! `PYTHON=path/to/python cargo bench -p oflow-linalg --bench linalg [-- FILTER]`. How it is measured stands in `benches/ops.rs`.

#[path = "../../benches/peers/mod.rs"]
mod peers;

use oflow::prelude::*;
use oflow_linalg as linalg;
use peers::calls::{case, run};

fn main() -> Result<()> {
    let side = &[256, 256][..];
    let diagonal = eye(256, Device::Cpu)?.mul(256.0)?;
    run(&[
        case("svd [256,256]", &[side], |x| Ok(linalg::svd(&x[0])?.1)),
        case("solve [512,512] [512,8]", &[&[512, 512], &[512, 8]], |x| linalg::solve(&x[0], &x[1])),
        case("inv [256,256]", &[side], |x| linalg::inv(&x[0])),
        case("det [64,32,32]", &[&[64, 32, 32]], |x| linalg::det(&x[0])),
        case("qr [256,256]", &[side], |x| Ok(linalg::qr(&x[0])?.0)),
        case("cholesky of x xT + 256 [256,256]", &[side], move |x| {
            linalg::cholesky(&x[0].matmul(&x[0].transpose(-2, -1)?)?.add(&diagonal)?)
        }),
        case("eigh of x + xT [256,256]", &[side], |x| Ok(linalg::eigh(&x[0].add(&x[0].transpose(-2, -1)?)?)?.0)),
        case("pinv [256,128]", &[&[256, 128]], |x| linalg::pinv(&x[0], linalg::Tolerance::default())),
    ])
}
