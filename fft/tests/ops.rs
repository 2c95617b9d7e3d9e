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
