//! Passes on ops that a user declares: what they do follows from what the op says of itself.

use oflow::functional::call;
use oflow::graph::{Graph, GraphOptions, Passes};
use oflow::ops::{AttrValue, Grad, OpDef, register};
use oflow::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

static PLAIN: AtomicU64 = AtomicU64::new(0);
static NOTED: AtomicU64 = AtomicU64::new(0);
static WAITED: AtomicU64 = AtomicU64::new(0);

/// Multiplies, and counts its kernel's calls.
fn scaled(name: &str, side_effect: bool, count: &'static AtomicU64) -> OpDef {
    OpDef::new(&format!("{name}(x: float; by: float) -> y"))
        .unwrap()
        .domain("passes")
        .grad(Grad::None)
        .traits(|t| t.side_effect = side_effect)
        .cpu(move |cx| {
            count.fetch_add(1, Ordering::Relaxed);
            let by = match cx.attrs.first() {
                Some(AttrValue::Float(by)) => *by as f32,
                _ => f32::NAN,
            };
            // SAFETY: the views of a call are contiguous, of the op's dtype, and nobody writes the input.
            let (x, y) = unsafe { (cx.input(0)?.as_slice::<f32>()?, cx.output(0).as_mut_slice::<f32>()?) };
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x * by);
            Ok(())
        })
}

fn called(name: &str, x: &Tensor, by: f64) -> Result<Tensor> {
    Ok(call(name, &[x.into()], &[("by", by.into())])?.remove(0))
}

#[test]
fn an_op_without_side_effects_is_merged_and_left_out_and_its_parameters_tell_calls_apart() {
    register(scaled("plain", false, &PLAIN)).unwrap();
    register(scaled("noted", true, &NOTED)).unwrap();
    let x = ones([3], Device::Cpu).unwrap();
    let f = |x: &Tensor| -> Result<Tensor> {
        let twice = called("plain", x, 2.0)?.add(&called("plain", x, 2.0)?)?;
        let other = called("plain", x, 3.0)?;
        called("plain", x, 5.0)?; // nobody needs it
        called("noted", x, 7.0)?;
        let noted = called("noted", x, 2.0)?.add(&called("noted", x, 2.0)?)?;
        twice.add(&other)?.add(&noted)
    };
    let counts = || (PLAIN.swap(0, Ordering::Relaxed), NOTED.swap(0, Ordering::Relaxed));
    counts();
    let want = f(&x).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(counts(), (4, 3));
    let run = |passes: Passes| {
        let build = |g: &oflow::graph::GraphBuilder<'_>| f(&g.input("x", &x)?);
        let mut graph = Graph::build(build, GraphOptions::default().passes(passes)).unwrap();
        assert_eq!(graph.run(&[&x]).unwrap().to_vec::<f32>().unwrap(), want, "{}", graph.explain());
        counts()
    };
    assert_eq!(run(Passes::none()), (4, 3));
    assert_eq!(run(Passes::default().without("dead").unwrap()), (3, 3));
    assert_eq!(run(Passes::default().without("common").unwrap()), (3, 3));
    assert_eq!(run(Passes::default()), (2, 3));
}

/// OneFlow's `SelectTopN` gives some of its inputs, and the others are computed before it nevertheless.
#[test]
fn an_input_that_an_op_does_not_read_is_computed_for_it() {
    register(scaled("waited", false, &WAITED)).unwrap();
    let first = OpDef::elementwise("first(x: float, after: float) -> y", "x").unwrap();
    register(first.domain("passes").grad(Grad::None)).unwrap();
    let x = ones([3], Device::Cpu).unwrap();
    let f = |x: &Tensor| -> Result<Tensor> {
        let (x, after) = (x.add(1.0)?, called("waited", x, 2.0)?);
        called("waited", &x, 3.0)?; // nobody needs it
        call("passes.first", &[(&x).into(), (&after).into()], &[])?.remove(0).mul(2.0)
    };
    let mut graph = Graph::build(|g| f(&g.input("x", &x)?), GraphOptions::default()).unwrap();
    WAITED.store(0, Ordering::Relaxed);
    assert_eq!(graph.run(&[&x]).unwrap().to_vec::<f32>().unwrap(), [4.0; 3]);
    assert_eq!(WAITED.load(Ordering::Relaxed), 1, "{}", graph.explain());
}
