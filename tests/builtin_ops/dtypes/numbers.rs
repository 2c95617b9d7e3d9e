//! Numbers given to functions, of a higher kind than the tensors: a complex number with complex tensors keeps its imaginary part, and one
//! that the result could not hold is refused. Every function of the table that takes a number is called.

use oflow::functional::{Arg, FnDef, call, functions};
use oflow::interpreter::Target;
use oflow::ops::{AttrKind, AttrValue, ParamKind};
use oflow::prelude::*;
use std::collections::BTreeSet;

/// Functions whose number becomes an element of a tensor, whose dtype stays: what does not fit is refused, a fraction is cut off.
const WRITTEN: [&str; 13] = [
    "constant_pad_nd",
    "fill",
    "fill_",
    "full_like",
    "index_fill",
    "index_fill_",
    "index_put",
    "index_put_",
    "masked_fill",
    "masked_fill_",
    "pad",
    "pad_constant",
    "scatter",
];
/// Functions of which the result says where, not what: comparisons, and those of the bits of integers.
const OTHERS: [&str; 2] = ["arange", "scatter_fill"];

/// Arguments by name of a call with tensors of that dtype and the number for every parameter that takes one.
fn arguments(def: &FnDef, dtype: DType, number: Scalar) -> oflow::Result<Vec<(String, Arg)>> {
    let tensor = |name: &str| -> oflow::Result<Tensor> {
        let of = |shape: &[usize]| {
            from_vec((0..shape.iter().product()).map(|i: usize| i as f64).collect(), shape, Device::Cpu)
        };
        let made = match (def.sig.name.as_str(), name) {
            (_, "ids") if def.sig.name == "scatter" => return from_vec(vec![0i64, 1], [1, 2], Device::Cpu),
            (_, "ids") => return from_vec(vec![0i64, 1], [2], Device::Cpu),
            (_, "mask") => return from_vec(vec![true, false, true, false], [2, 2], Device::Cpu),
            ("addmv", "x" | "b") => of(&[2])?,
            ("baddbmm", _) => of(&[1, 2, 2])?,
            // Between equal numbers every weight says the same.
            ("lerp" | "lerp_", "b") => of(&[2, 2])?.mul(2.0)?,
            _ => of(&[2, 2])?,
        };
        made.cast(dtype)
    };
    let mut given: Vec<(String, Arg)> = vec![];
    for p in &def.sig.params {
        let value = match p.kind {
            ParamKind::Tensor => Arg::Tensor(tensor(&p.name)?),
            ParamKind::TensorIndex => Arg::Index(vec![0i64.into()]),
            ParamKind::Target => Arg::Target(Target::Local(Device::Cpu)),
            ParamKind::Attr(AttrKind::Scalar) => Arg::Attr(AttrValue::Scalar(number)),
            ParamKind::Attr(AttrKind::Int) => Arg::Attr(0i64.into()),
            ParamKind::Attr(AttrKind::Ints) => Arg::Attr(AttrValue::from(&[1i64, 0][..])),
            ParamKind::Attr(AttrKind::Shape) if !p.optional => Arg::Attr(AttrValue::from(&[3usize, 3][..])),
            _ => continue,
        };
        given.push((p.name.clone(), value));
    }
    Ok(given)
}

fn called(def: &FnDef, dtype: DType, number: Scalar) -> oflow::Result<Tensor> {
    let given = arguments(def, dtype, number)?;
    let named: Vec<(&str, Arg)> = given.iter().map(|(n, a)| (n.as_str(), a.clone())).collect();
    Ok(call(&def.sig.name, &[], &named)?.swap_remove(0))
}

/// Every function that takes a number, once.
fn with_numbers() -> Vec<FnDef> {
    let takes = |d: &FnDef| d.sig.params.iter().any(|p| p.kind == ParamKind::Attr(AttrKind::Scalar));
    functions().into_iter().filter(|d| takes(d) && !OTHERS.contains(&d.sig.name.as_str())).collect()
}

/// Whether a function in place writes what a comparison says.
fn compares(name: &str) -> bool {
    const NAMES: [&str; 11] =
        ["eq", "ge", "greater", "greater_equal", "gt", "le", "less", "less_equal", "lt", "ne", "not_equal"];
    name.strip_suffix('_').is_some_and(|base| NAMES.contains(&base))
}

#[test]
fn complex_numbers_keep_their_imaginary_part() {
    let (mut kept, mut refused, mut wrong) = (BTreeSet::new(), BTreeSet::new(), vec![]);
    for def in with_numbers() {
        let name = def.sig.name.clone();
        // With complex tensors: the imaginary part counts, also beside a real part that means "nothing to do".
        for real in [0.0, 1.0] {
            let [with, without] = [3.0, 0.0].map(|im| called(&def, DType::C128, Scalar::Complex(real, im)));
            match (with, without) {
                (Ok(a), Ok(b)) if a.to_bytes().unwrap() != b.to_bytes().unwrap() => drop(kept.insert(name.clone())),
                (Err(_), Err(_)) => drop(refused.insert(name.clone())),
                (a, b) => wrong.push(format!("{name} of c128 with {real} + 3j: {a:?}, without the 3j {b:?}")),
            }
        }
        // With real ones the result is complex, or the number is refused.
        for dtype in [DType::F64, DType::I64] {
            if let Ok(y) = called(&def, dtype, Scalar::Complex(1.0, 3.0))
                && !y.dtype().is_complex()
                && y.dtype() != DType::Bool
                && !compares(&name)
            {
                wrong.push(format!("{name} of {dtype} with 1 + 3j: {y}"));
            }
        }
    }
    println!("{} functions keep it: {kept:?}\n{} take no complex tensors: {refused:?}", kept.len(), refused.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(kept.len() >= 30, "{kept:?}");
    for name in ["addmm", "addmv", "baddbmm", "addcmul", "addcdiv", "index_add", "add", "pow", "masked_fill"] {
        assert!(kept.contains(name), "{name}");
    }
}

#[test]
fn integers_take_no_fraction_silently() {
    let (mut wrong, mut names) = (vec![], BTreeSet::new());
    for def in with_numbers() {
        let name = def.sig.name.clone();
        if WRITTEN.contains(&name.as_str()) {
            continue;
        }
        for dtype in [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64] {
            let Ok(y) = called(&def, dtype, Scalar::Float(0.5)) else { continue };
            names.insert(name.clone());
            // In place a result must fit the tensor, so it is refused; else it is a float or says yes or no.
            if !y.dtype().is_float() && y.dtype() != DType::Bool && !compares(&name) {
                wrong.push(format!("{name} of {dtype} with 0.5: {y}"));
            }
        }
    }
    println!("{} functions: {names:?}", names.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let x = ones([2, 2], Device::Cpu.dtype(DType::I64)).unwrap();
    let half = |f: &str, n: &str| {
        let e =
            call(f, &[(&x).into(), (&x).into(), (&x).into()], &[(n, Arg::Attr(AttrValue::Scalar(Scalar::Float(0.5))))]);
        e.map(|_| ()).unwrap_err().to_string()
    };
    for (f, n) in [("addmm", "alpha"), ("addmm", "beta"), ("addcmul", "value")] {
        let e = half(f, n);
        assert!(e.contains(f) && e.contains(&format!("expected an integer for {n}")) && e.contains("0.5"), "{e}");
    }
}

/// A NaN among the elements of a loss is a NaN of the loss: the ops of single elements, whose expressions choose by their inputs.
#[test]
fn losses_lose_no_nan() {
    // The label says which of two losses is meant, and a NaN is neither.
    let label = [("hinge_each", 1)];
    let (mut count, mut wrong) = (0, vec![]);
    for op in oflow::ops::all().into_iter().filter(|o| o.domain == "oflow" && o.name().ends_with("_each")) {
        let Some(expr) = &op.expr else { continue };
        let n = op.sig.inputs.len();
        for i in (0..n).filter(|i| !label.contains(&(op.name(), *i))) {
            let mut x = vec![0.25; n];
            x[i] = f64::NAN;
            count += 1;
            if !expr.eval(&x, f64::NAN, &[1.0]).is_nan() {
                wrong.push(format!("{}: input {i}", op.name()));
            }
        }
    }
    assert!(wrong.is_empty() && count > 20, "{count} inputs: {wrong:?}");
}
