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
