//! A program of somebody else's crate: the program of the design, and an op of its own with public API only.

use oflow::functional::call;
use oflow::ops::{Grad, OpDef, register};
use oflow::prelude::*;

/// `y[i, 0]`: the product of row i of `a` with row i of `b`.
fn row_dot() -> Result<OpDef> {
    Ok(OpDef::new("row_dot(a: float, b: float) -> y")?
        .domain("outside")
        .doc("Products of corresponding rows.")
        .check(|c| {
            if c.shape(0)? != c.shape(1)? || c.shape(0)?.len() != 2 {
                return Err(Error::shape(format!("needs two equal matrices, not {} and {}", c.input(0)?, c.input(1)?)));
            }
            Ok(())
        })
        .shape1(|c| Ok([c.shape(0)?[0], 1].into_iter().collect()))
        // Rows are independent; a split of the summed dim leaves partial sums.
        .get_sbp(|_| Ok(vec!["S(0), S(0) -> S(0)".parse()?, "S(1), S(1) -> P(sum)".parse()?]))
        .cpu(|cx| {
            let (a, b) = (cx.input(0)?.as_slice::<f32>()?, cx.input(1)?.as_slice::<f32>()?);
            let columns = cx.input(0)?.dims()[1];
            // SAFETY: the output of this call, of which no other slice is alive.
            let y = unsafe { cx.output(0).as_mut_slice::<f32>()? };
            for (i, y) in y.iter_mut().enumerate() {
                let row = i * columns..(i + 1) * columns;
                *y = a[row.clone()].iter().zip(&b[row]).map(|(a, b)| a * b).sum();
            }
            Ok(())
        })
        .grad(Grad::rule(|g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let (a, b) = (g.input(0)?, g.input(1)?);
            for (i, other) in [(0, b), (1, a)] {
                if g.needs(i) {
                    let d = g.call("mul", &[dy, other], &[])?;
                    g.set(i, d)?;
                }
            }
            Ok(())
        })))
}

fn main() -> Result<()> {
    register(row_dot()?)?;
    let _world = oflow::init()?;
    let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2), ("tp", 2)])?;
    let x = randn([1024, 512], (&mesh, sbp![S(0), B]))?;
    let w = randn([512, 256], (&mesh, sbp![B, S(1)]))?;
    let y = x.matmul(&w)?.relu()?;
    println!("{y:?}");

    let numbers = |from: i64| arange(12, Device::Cpu)?.add(from)?.cast(DType::F32)?.reshape([3, 4]);
    let a = distribute(&numbers(0)?, (&mesh, sbp![S(0), S(1)]))?.requires_grad_(true)?;
    let b = distribute(&numbers(1)?, (&mesh, sbp![S(0), S(1)]))?.requires_grad_(true)?;
    let y = call("row_dot", &[(&a).into(), (&b).into()], &[])?.remove(0);
    println!("{y:?} {:?}", y.to_vec::<f32>()?);
    y.sum(())?.backward()?;
    let (da, db) = (a.grad().expect("gradient"), b.grad().expect("gradient"));
    println!("{} {}", da.to_vec::<f32>()? == b.to_vec::<f32>()?, db.to_vec::<f32>()? == a.to_vec::<f32>()?);
    let error = call("row_dot", &[(&a).into(), (&x).into()], &[]).expect_err("shapes differ");
    println!("{}", error.to_string().lines().next().unwrap_or_default());
    Ok(())
}
