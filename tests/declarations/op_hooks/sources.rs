//! Ops without inputs: which layouts they make themselves.

use super::add;
use oflow::interpreter::{Call, Target};
use oflow::ops::{DTypeRule, Op, OpDef};
use oflow::prelude::*;

/// `ramp(; n) -> y`: 0, 1, 2 …; each rank makes its shard.
fn ramp(name: &str) -> Result<OpDef> {
    Ok(OpDef::new(&format!("{name}(; n: int) -> y"))?
        .shape1(|c| Ok([c.size("n")?].into_iter().collect()))
        .dtype(DTypeRule::Fixed(vec![DType::F64]))
        .cpu(|cx| {
            let first = cx.output_box(0).offset[0];
            // SAFETY: the output of this call, which nothing else uses while the kernel runs.
            let y = unsafe { cx.output(0).as_mut_slice::<f64>()? };
            y.iter_mut().enumerate().for_each(|(i, y)| *y = (first + i) as f64);
            Ok(())
        })
        .grad(oflow::ops::Grad::None))
}

fn made(op: &'static Op, n: i64, target: &Target) -> Result<Tensor> {
    Call::new(op, &[]).attrs([n]).target(target).run1()
}

#[test]
fn an_op_without_inputs_is_made_in_the_layout_that_is_asked() {
    let (any, whole) = (add(ramp("ramp")), add(ramp("ramp_whole").map(|o| o.get_sbp(|_| Ok(vec!["-> B".parse()?])))));
    assert_eq!(made(any, 3, &Target::Local(Device::Cpu)).unwrap().to_vec::<f64>().unwrap(), [0.0, 1.0, 2.0]);
    oflow::run_ranks(3, move |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let want: Vec<f64> = (0..7).map(f64::from).collect();
        for (sbp, boxed) in [(sbp![S(0)], [false, true]), (sbp![B], [false, false]), (sbp![P], [true, true])] {
            for (op, boxed) in [any, whole].into_iter().zip(boxed) {
                oflow::take_comm_trace();
                let target = Target::Global(mesh.clone(), sbp.clone());
                let y = made(op, 7, &target)?;
                // The op that lists B only makes all of it everywhere; the rest follows without a message.
                let records = oflow::take_comm_trace();
                assert_eq!(!records.is_empty(), boxed, "{} as {sbp}", op.name());
                assert_eq!((y.sbp()?, y.to_vec::<f64>()?), (&sbp, want.clone()));
            }
        }
        // A layout that no tensor of the shape can have is refused.
        let e = made(any, 7, &Target::Global(mesh.clone(), sbp![S(1)])).unwrap_err();
        assert!(e.to_string().contains("hooks.ramp"), "{e}");
        Ok(())
    })
    .unwrap();
}
