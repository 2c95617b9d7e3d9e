//! The ops of this crate under oflow's tests of ops.

use oflow::prelude::*;
use oflow::testing::conformance;

/// One test for each op, so that they run side by side.
macro_rules! conforms {
    ($($test:ident $op:literal;)*) => {$(
        #[test]
        fn $test() -> Result<()> {
            oflow_linalg::register()?;
            let report = conformance(oflow::ops::find($op)?)?;
            println!("{report}");
            assert!(report.is_thorough(), "{report}");
            Ok(())
        }
    )*};
}

conforms! {
    det_conforms "linalg.det";
    cofactor_conforms "linalg.cofactor";
    slogdet_conforms "linalg.slogdet";
    inv_conforms "linalg.inv";
    solve_conforms "linalg.solve";
    solve_triangular_conforms "linalg.solve_triangular";
    cholesky_conforms "linalg.cholesky";
    qr_conforms "linalg.qr";
    svd_conforms "linalg.svd";
    pinv_conforms "linalg.pseudo_inverse";
    eigh_conforms "linalg.eigh";
}
