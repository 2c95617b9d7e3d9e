//! The transforms on a GPU, or on the emulated one.

use oflow::prelude::*;
use oflow_fft::Dft;
use oflow_tests::gpus::cuda;
use oflow_tests::on_gpu::ops_on_gpu;

#[test]
fn the_ops_give_the_cpus_results() -> Result<()> {
    ops_on_gpu(oflow_fft::register()?);
    Ok(())
}

/// Lines of any place in memory, at addresses that are not those of pairs, odd and even lengths, real and complex, both precisions.
#[test]
fn lines_of_any_layout_give_the_cpus_results() -> Result<()> {
    if !cuda() {
        return Ok(());
    }
    oflow_fft::register()?;
    type Transform = fn(&Tensor, i64) -> Result<Tensor>;
    let transforms: [(&str, Transform); 4] = [
        ("fft", |x, dim| oflow_fft::fft(x, Dft { dim, ..Default::default() })),
        ("ifft", |x, dim| oflow_fft::ifft(x, Dft { dim, ..Default::default() })),
        ("rfft", |x, dim| oflow_fft::rfft(&x.real()?, Dft { dim, ..Default::default() })),
        ("irfft", |x, dim| oflow_fft::irfft(x, Dft { dim, ..Default::default() })),
    ];
    let ranks = oflow::run_ranks(1, |_| {
        let mut seen = 0;
        for dtype in [DType::F32, DType::F64] {
            oflow::manual_seed(3);
            let whole = randn([5, 6, 7, 2], Device::Cpu)?.cast(dtype)?.view_as_complex()?;
            for (order, from) in [([0i64, 1, 2], 0i64), ([2, 0, 1], 1), ([1, 2, 0], 1), ([0, 2, 1], 2)] {
                for (name, transform) in transforms {
                    for dim in 0..3 {
                        let run = |x: &Tensor| {
                            let part = x.narrow(2, from, 4)?.permute(order)?;
                            transform(&part, dim)
                        };
                        let want = run(&whole)?;
                        let have = run(&whole.to(Device::Cuda)?)?.to(Device::Cpu)?;
                        let gap = want.sub(&have)?.abs()?.amax(())?.item()?;
                        assert!(gap < if dtype == DType::F32 { 1e-4 } else { 1e-11 }, "{name} {order:?} {dim}: {gap}");
                        seen += 1;
                    }
                }
            }
        }
        Ok(seen)
    })?;
    assert_eq!(ranks, [96]);
    Ok(())
}
