//! OneFlow's functional interface: functions as texts, with types, defaults, keyword-only parameters and overloads. `add` is two
//! functions of one name, of a number and of a tensor.

use oflow::functional::{Arg, FnBody, FnDef, call, register_function};
use oflow::prelude::*;
use std::sync::Arc;

/// Registers `my_add` with two overloads, and `my_sub`.
fn declare() -> Result<()> {
    let of_number = FnBody::Code(Arc::new(|b| Ok(vec![b.given(0)?.add(b.scalar(1)?)?])));
    register_function(FnDef::new("my_add(Tensor x, Scalar alpha=1) -> Tensor", of_number)?.doc("x plus a number."))?;
    let of_tensor = |b: &oflow::functional::Bound| {
        let scaled = b.given(1)?.mul(b.scalar(2)?)?;
        Ok(vec![b.given(0)?.add(&scaled)?])
    };
    let text = "my_add(Tensor x, Tensor other, *, Scalar alpha=1) -> Tensor";
    register_function(FnDef::new(text, FnBody::Code(Arc::new(of_tensor)))?.doc("x plus alpha times other."))?;
    let sub = |b: &oflow::functional::Bound| {
        let scaled = b.given(1)?.mul(b.scalar(2)?)?;
        Ok(vec![b.given(0)?.sub(&scaled)?])
    };
    let text = "my_sub(Tensor x, Tensor other, *, Scalar alpha=1) -> Tensor";
    register_function(FnDef::new(text, FnBody::Code(Arc::new(sub)))?.doc("x minus alpha times other."))
}

pub fn main() -> Result<()> {
    declare()?;
    let _world = oflow::init()?;
    let vec = |v: &[f32]| from_vec(v.to_vec(), [v.len()], Device::Cpu);
    let one = |name: &str, args: &[Arg], named: &[(&str, Arg)]| call(name, args, named)?.remove(0).to_vec::<f32>();
    let x = from_vec(vec![1i64, 2, 3], [3], Device::Cpu)?;
    let of_int = |args: &[Arg], named: &[(&str, Arg)]| call("my_add", args, named).map(|mut y| y.remove(0));
    // The default, by position and by name: an integer stays one, a float makes it one. As PyTorch does.
    assert_eq!(of_int(&[(&x).into()], &[])?.to_vec::<i64>()?, [2, 3, 4]);
    assert_eq!(of_int(&[(&x).into(), 1.5.into()], &[])?.to_vec::<f32>()?, [2.5, 3.5, 4.5]);
    assert_eq!(of_int(&[(&x).into()], &[("alpha", 1.5.into())])?.to_vec::<f32>()?, [2.5, 3.5, 4.5]);
    let (a, b) = (vec(&[5.0, 7.0])?, vec(&[1.0, 2.0])?);
    assert_eq!(one("my_add", &[(&a).into(), (&b).into()], &[("alpha", 0.5.into())])?, [5.5, 8.0]);
    assert_eq!(one("my_sub", &[(&a).into(), (&b).into()], &[("alpha", 2.into())])?, [3.0, 3.0]);
    // Behind `*` only by name.
    let e = one("my_sub", &[(&a).into(), (&b).into(), 2.into()], &[]).expect_err("alpha has a name");
    println!("{e}");
    Ok(())
}
