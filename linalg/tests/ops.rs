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
    eig_conforms "linalg.eig";
    lu_conforms "linalg.lu_decomposition";
    cholesky_with_info_conforms "linalg.cholesky_decomposition";
}

/// Its samples have one row, for which P(max) passes too: that is not declared.
#[test]
fn cholesky_solution_conforms() -> Result<()> {
    oflow_linalg::register()?;
    let report = conformance(oflow::ops::find("linalg.cholesky_solution")?)?;
    println!("{report}");
    assert!(report.meshes.iter().all(|m| m.signatures > 0) && !report.meshes.is_empty(), "{report}");
    assert!(report.first > 0 && report.second > 0, "{report}");
    Ok(())
}

/// Ops without gradients.
#[test]
fn ops_without_gradients_conform() -> Result<()> {
    oflow_linalg::register()?;
    for op in ["linalg.permutation", "linalg.reflections", "linalg.ldl_decomposition"] {
        let report = conformance(oflow::ops::find(op)?)?;
        println!("{report}");
        assert!(report.meshes.iter().all(|m| m.signatures > 0) && !report.meshes.is_empty(), "{report}");
        assert!(report.completeness.undeclared.is_empty(), "{report}");
    }
    Ok(())
}
