//! The ops of this crate under oflow's tests of ops.

use oflow::prelude::*;
use oflow::testing::conformance;

#[test]
fn the_ops_conform() -> Result<()> {
    for op in oflow_fft::register()? {
        let report = conformance(op)?;
        println!("{report}");
        assert!(report.meshes.iter().all(|m| m.signatures > 0), "{report}");
        assert!(report.first > 0 && report.second > 0 && report.bad_arguments > 20, "{report}");
        assert!(report.completeness.undeclared.is_empty(), "{report}");
    }
    Ok(())
}
