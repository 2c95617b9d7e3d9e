//! The ops of this crate under oflow's tests of ops.

use oflow::prelude::*;
use oflow::testing::conformance;

#[test]
fn the_ops_conform() -> Result<()> {
    for op in oflow_fft::register()? {
        let report = conformance(op)?;
        println!("{report}");
        assert!(report.is_thorough(), "{report}");
    }
    Ok(())
}

/// Many lengths, forward and back, twice: as many plans are kept as may be, and what is planned again gives the same numbers.
#[test]
fn plans_of_many_lengths_are_bounded() -> Result<()> {
    oflow_fft::register()?;
    let round = || -> Result<Vec<Vec<f64>>> {
        (1..700)
            .map(|n| {
                let x = from_vec((0..n).map(|i| i as f64).collect(), [n], Device::Cpu)?;
                let back = oflow_fft::ifft(&oflow_fft::fft(&x, Default::default())?, Default::default())?;
                let half = oflow_fft::rfft(&x, Default::default())?;
                oflow_fft::irfft(&half, oflow_fft::Dft { n: Some(n), ..Default::default() })?;
                back.abs()?.to_vec::<f64>()
            })
            .collect()
    };
    let first = round()?;
    let (kept, most) = oflow_fft::kept_plans();
    assert!(kept <= most && most <= 1024, "{kept} of {most}");
    assert!(kept >= 64, "the last plans are kept: {kept}");
    assert_eq!(round()?, first);
    assert!(oflow_fft::kept_plans().0 <= most);
    Ok(())
}

/// Lines one after the other, side by side and with elements between: each is transformed as if it were alone, with the same bits.
#[test]
fn every_line_is_transformed_as_if_it_were_alone() -> Result<()> {
    oflow::manual_seed(3);
    let numbers = randn([19, 34, 21, 2], Device::Cpu)?.view_as_complex()?;
    type Transform = fn(&Tensor, i64) -> Result<Tensor>;
    let transforms: [(Transform, bool); 3] = [
        (|x, dim| oflow_fft::ifft(x, oflow_fft::Dft { dim, ..Default::default() }), false),
        (|x, dim| oflow_fft::rfft(x, oflow_fft::Dft { dim, ..Default::default() }), true),
        (|x, dim| oflow_fft::irfft(x, oflow_fft::Dft { dim, ..Default::default() }), false),
    ];
    for order in [[0i64, 1, 2], [2, 0, 1], [1, 2, 0], [0, 2, 1]] {
        for dim in 0..3 {
            for (transform, real) in transforms {
                let x = numbers.permute(order)?;
                let x = if real { x.real()? } else { x };
                let y = transform(&x, dim)?;
                let lines = |x: &Tensor| {
                    let x = x.movedim(dim, -1)?;
                    let n = *x.shape().last().unwrap() as i64;
                    x.reshape([-1, n])
                };
                let (x, y) = (lines(&x)?, lines(&y)?);
                for i in 0..x.shape()[0] as i64 {
                    let alone = transform(&x.select(0, i)?.copy()?, 0)?;
                    assert!(alone.equal(&y.select(0, i)?)?, "line {i} along {dim} of {order:?}");
                }
            }
        }
    }
    Ok(())
}
