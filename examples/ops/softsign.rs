//! An op in Rust: softsign, x / (1 + |x|), with its gradient. `main.rs` builds and loads it while it runs.

use oflow_op::{Call, Element, Kernel, Library, Op, Outputs, Result};

/// What an element type needs for this op.
trait Float: Element {
    fn softsign(self) -> Self;
    fn slope(self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Float for $t {
            fn softsign(self) -> $t {
                self / (1.0 + self.abs())
            }
            fn slope(self) -> $t {
                let d = 1.0 + self.abs();
                1.0 / (d * d)
            }
            fn times(self, other: $t) -> $t {
                self * other
            }
        }
    )*};
}
float!(f32, f64);

fn forward<T: Float>(call: &Call, out: &mut Outputs) -> Result<()> {
    let x = call.input::<T>("x")?;
    out.slice::<T>("y")?.iter_mut().zip(x).for_each(|(y, x)| *y = x.softsign());
    Ok(())
}

fn backward<T: Float>(call: &Call, out: &mut Outputs) -> Result<()> {
    let (dy, x) = (call.input::<T>("dy")?, call.input::<T>("x")?);
    out.slice::<T>("dx")?.iter_mut().zip(dy.iter().zip(x)).for_each(|(dx, (dy, x))| *dx = dy.times(x.slope()));
    Ok(())
}

oflow_op::library! {
    Library::new("demo")
        .op(Op::new("softsign(x: f32|f64) -> y")
            .doc("x / (1 + |x|).")
            .functions(&["softsign(Tensor x) -> Tensor"])
            .signatures(&["S(0) -> S(0)", "S(1) -> S(1)"])
            .gradient("x = demo.softsign_grad(grad y, x)")
            .samples(&["f32[4, 6]", "f64[3, 5]"])
            .kernel(Kernel::cpu(forward::<f32>).dtypes("f32"))
            .kernel(Kernel::cpu(forward::<f64>).dtypes("f64")))
        .op(Op::new("softsign_grad(dy: f32|f64, x: f32|f64) -> dx")
            .doc("Gradient of softsign.")
            .traits("hidden")
            .signatures(&["S(0), S(0) -> S(0)", "S(1), S(1) -> S(1)", "P, B -> P"])
            .samples(&["f32[4, 6] f32[4, 6]", "f64[3, 5] f64[3, 5]"])
            .kernel(Kernel::cpu(backward::<f32>).dtypes("f32"))
            .kernel(Kernel::cpu(backward::<f64>).dtypes("f64")))
}
