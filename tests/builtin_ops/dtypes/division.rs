//! Integers have no quotient by 0, and no negative power: every function that divides refuses both, of every integer dtype, in every
//! form and layout, and names itself and the caller's line.

use oflow::functional::{Arg, call};
use oflow::ops::AttrValue;
use oflow::prelude::*;
use oflow::{ErrorKind, run_ranks};

const INTEGERS: [DType; 7] = [DType::U8, DType::I8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64];
const DIVIDE: [&str; 3] = ["floor_divide", "remainder", "fmod"];
/// Where the tensors lie on two ranks.
const LAYOUTS: [Option<Sbp>; 4] = [None, Some(Sbp::Broadcast), Some(Sbp::Split(0)), Some(Sbp::Split(1))];

/// How the divisor is given: a tensor, one that broadcasts, a number; and whether the result is written over the first argument.
#[derive(Clone, Copy, Debug)]
struct Form {
    divisor: &'static str,
    in_place: bool,
}

fn forms() -> impl Iterator<Item = Form> {
    ["tensor", "row", "one", "number"]
        .into_iter()
        .flat_map(|divisor| [false, true].map(|in_place| Form { divisor, in_place }))
}

/// The call on this rank, with a zero divisor or without.
fn divided(name: &str, form: Form, dtype: DType, layout: Option<Sbp>, zero: bool) -> oflow::Result<Tensor> {
    let place = |data: Vec<i64>, shape: &[usize]| {
        let local = from_vec(data, shape, Device::Cpu)?.cast(dtype)?;
        let Some(sbp) = layout else { return Ok(local) };
        // What broadcasts along the split dim is whole.
        let sbp = match sbp {
            Sbp::Split(d) if shape.len() == 2 && shape[d] > 1 => sbp,
            _ => Sbp::Broadcast,
        };
        distribute(&local, (&Placement::all(Device::Cpu)?, NdSbp::from(sbp)))
    };
    let x = place((0..12).map(|i| i + 7).collect(), &[3, 4])?;
    let last = if zero { 0 } else { 3 };
    let divisor = match form.divisor {
        "tensor" => Arg::Tensor(place((0..12).map(|i| if i == 11 { last } else { 2 }).collect(), &[3, 4])?),
        "row" => Arg::Tensor(place(vec![1, 2, 3, last], &[1, 4])?),
        "one" => Arg::Tensor(place(vec![last], &[])?),
        _ => Arg::Attr(AttrValue::Scalar(Scalar::Int(last))),
    };
    let name = if form.in_place { format!("{name}_") } else { name.to_string() };
    Ok(call(&name, &[(&x).into(), divisor], &[])?.swap_remove(0))
}

#[test]
fn integers_are_not_divided_by_zero() {
    let (mut wrong, mut count) = (vec![], 0);
    for name in DIVIDE {
        for dtype in INTEGERS {
            for layout in LAYOUTS {
                for form in forms() {
                    let what =
                        format!("{name} of {dtype} by a {} in {layout:?}, in place: {}", form.divisor, form.in_place);
                    let run = |zero: bool| match layout {
                        None => divided(name, form, dtype, None, zero).map(drop),
                        Some(_) => run_ranks(2, |_| divided(name, form, dtype, layout, zero).map(drop)).map(drop),
                    };
                    count += 2;
                    if let Err(e) = run(false) {
                        wrong.push(format!("{what}: {e}"));
                    }
                    match run(true) {
                        Ok(()) => wrong.push(format!("{what}: divided by 0")),
                        Err(e) => {
                            let text = e.to_string();
                            let told =
                                e.kind() == ErrorKind::Value && text.contains(name) && text.contains("division.rs:");
                            if !(told && text.contains("no quotient by 0")) {
                                wrong.push(format!("{what}: {e}"));
                            }
                        }
                    }
                }
            }
        }
    }
    println!("{count} calls");
    assert!(wrong.is_empty(), "{} of {count} calls:\n{}", wrong.len(), wrong.join("\n"));
    // Nothing is divided where there is nothing, and floats are divided by 0.
    let none = zeros([0], Device::Cpu.dtype(DType::I64)).unwrap();
    assert_eq!(none.floor_divide(&none).unwrap().numel(), 0);
    let x = ones([2], Device::Cpu).unwrap();
    assert_eq!(x.floor_divide(0).unwrap().to_vec::<f32>().unwrap(), [f32::INFINITY; 2]);
    assert!(x.cast(DType::I32).unwrap().remainder(0.0).unwrap().to_vec::<f32>().unwrap()[0].is_nan());
    // The smallest integer over -1 wraps; a bool has no sign.
    let least = full([1], i64::MIN, Device::Cpu.dtype(DType::I64)).unwrap();
    assert_eq!(least.floor_divide(-1).unwrap().to_vec::<i64>().unwrap(), [i64::MIN]);
    assert_eq!(least.remainder(-1).unwrap().to_vec::<i64>().unwrap(), [0]);
}

#[test]
fn integers_have_no_negative_powers() {
    for dtype in INTEGERS.into_iter().chain([DType::Bool]) {
        let x = ones([2], Device::Cpu.dtype(dtype)).unwrap();
        for e in [x.pow(-1).unwrap_err(), x.pow_(-2).map(|_| ()).unwrap_err()] {
            let text = e.to_string();
            assert!(e.kind() == ErrorKind::Value && text.contains("expected an exponent of at least 0"), "{text}");
            assert!(text.contains("pow") && text.contains("division.rs:"), "{text}");
        }
        assert_eq!(x.pow(2).unwrap().numel(), 2);
        assert_eq!(x.pow(-1.0).unwrap().to_f64_vec().unwrap(), [1.0; 2]);
    }
    // As in PyTorch, a tensor of exponents gives the quotient towards zero.
    let two = full([1], 2, Device::Cpu.dtype(DType::I64)).unwrap();
    assert_eq!(two.pow(&two.neg().unwrap()).unwrap().to_vec::<i64>().unwrap(), [0]);
}
