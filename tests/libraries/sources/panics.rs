//! Functions that panic, each where another part of the crate must catch it; and a kernel that decides a length.

use oflow_op::{Call, Infer, Library, Op, Outputs, Result};

fn run(call: &Call, out: &mut Outputs) -> Result<()> {
    match call.str("how")? {
        "panic" => panic!("a panic of the op"),
        "error" => Err("an error of the op".into()),
        "thread" => {
            call.parallel_for(100, 10, |part| assert!(part.start < 50, "a panic of a part"));
            Ok(())
        }
        "dtype" => out.slice::<f64>("y").map(drop),
        "name" => call.input::<f32>("z").map(drop),
        _ => {
            out.slice::<f32>("y")?.fill(1.0);
            Ok(())
        }
    }
}

fn shapes(infer: &Infer) -> Result<Vec<Vec<i64>>> {
    match infer.input(0)?.dims() {
        [3] => panic!("a panic of a rule"),
        dims => Ok(vec![dims.to_vec()]),
    }
}

/// The positive elements.
fn positive(call: &Call, out: &mut Outputs) -> Result<()> {
    let x = call.input::<f32>("x")?;
    let found: Vec<f32> = x.iter().copied().filter(|v| *v > 0.0).collect();
    out.slice::<f32>("y")?[..found.len()].copy_from_slice(&found);
    out.set_length(found.len())
}

oflow_op::library! {
    if cfg!(feature = "never") { panic!() } else {
        Library::new("panics")
            .op(Op::new("it(x: f32; how: str = \"\") -> y").shapes(shapes).cpu(run))
            .op(Op::new("positive(x: f32[1]) -> y").traits("length_by_kernel").signatures(&["S(0) -> S(0)"]).samples(&["f32[9]"]).cpu(positive))
            .op(Op::new("takes(x: f32) -> y").nd_choose(|_| panic!("a panic of a choice")).cpu(run))
    }
}
