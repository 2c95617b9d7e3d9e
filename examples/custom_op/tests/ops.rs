//! The ops of this crate under oflow's tests of ops.

use custom_op::matmul::matmul_scale_op;
use oflow::ErrorKind;
use oflow::prelude::*;
use oflow::testing::{check_device, conformance, trials};

#[test]
fn every_op_conforms() -> Result<()> {
    for op in custom_op::register()? {
        let report = conformance(op)?;
        println!("{report}");
        assert!(report.is_thorough(), "{report}");
    }
    Ok(())
}

/// The planted rule forgets that a split of the summed dim leaves partial sums.
#[test]
fn a_wrong_sharding_rule_is_found() -> Result<()> {
    custom_op::register()?;
    let wrong = matmul_scale_op()?
        .domain("planted")
        .get_sbp(|_| ["S0, B -> S0", "B, S1 -> S1", "S1, S0 -> B"].iter().map(|row| row.parse()).collect());
    let e = conformance(oflow::ops::register(wrong)?).expect_err("a wrong rule");
    println!("{e}");
    assert_eq!(e.kind(), ErrorKind::Registry);
    for part in [
        "planted.matmul_scale does not conform: ",
        "planted.matmul_scale sample 0 (as given) with [S(1)], [S(0)] -> [[B]] on [2] with gradients: result 0 [B]: ",
    ] {
        assert!(e.to_string().contains(part), "'{part}' is missing in\n{e}");
    }
    Ok(())
}

/// The `.cu` kernel on the emulated GPU, against the CPU's kernel.
#[test]
fn the_cuda_kernel_gives_the_cpus_result() -> Result<()> {
    if let Err(why) = oflow_emulator::activate() {
        println!("skipped: {why}");
        return Ok(());
    }
    for op in custom_op::register()? {
        let mut wrong = vec![];
        for trial in trials(op, &mut wrong)? {
            let result = oflow::run_ranks(1, |_| Ok(check_device(Device::Cuda, &trial.reference)))?;
            wrong.extend(result.into_iter().filter_map(|r| r.err()));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
    Ok(())
}
