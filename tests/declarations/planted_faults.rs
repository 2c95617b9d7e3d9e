//! Ops with one fault each: `conformance` says what is wrong with each of them in at most six lines, and takes the same op without the
//! fault.
//!
//! Not found in principle is a fault that one device has as well (the call there is taken for right), unless it is a wrong derivative.

use oflow::kernels::{DType, Dims, View};
use oflow::ops::{AttrValue, DTypeRule, Grad, KernelCx, OpDef, ShapeRule, register};
use oflow::prelude::*;
use oflow::sbp::Sbp;
use oflow::testing::conformance;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An op with a fault (`true`) or without it.
struct Fault {
    name: &'static str,
    /// What the check says, apart from the op's name.
    says: &'static str,
    make: fn(&str, bool) -> OpDef,
}

const fn fault(name: &'static str, says: &'static str, make: fn(&str, bool) -> OpDef) -> Fault {
    Fault { name, says, make }
}

const MATRIX: &[&str] = &["f32[4, 6]"];

fn op(name: &str, signature: &str) -> OpDef {
    OpDef::new(&format!("{name}{signature}")).expect("declaration")
}

fn expression(name: &str, signature: &str, text: &str) -> OpDef {
    OpDef::elementwise(&format!("{name}{signature}"), text).expect("declaration")
}

/// The one that belongs to an op with a fault, or to one without.
fn either<T>(bad: bool, wrong: T, right: T) -> T {
    if bad { wrong } else { right }
}

/// The elements of a contiguous input.
fn get(view: &View) -> Result<Vec<f64>> {
    Ok(match view.dtype() {
        DType::F64 => view.as_slice::<f64>()?.to_vec(),
        _ => view.as_slice::<f32>()?.iter().map(|x| f64::from(*x)).collect(),
    })
}

/// Writes as many elements as there are in both, and zeros behind them.
fn put(view: &View, data: &[f64]) -> Result<()> {
    let data = data.iter().copied().chain(std::iter::repeat(0.0));
    // SAFETY: an output, of which no other slice is alive.
    unsafe {
        match view.dtype() {
            DType::F64 => view.as_mut_slice::<f64>()?.iter_mut().zip(data).for_each(|(y, x)| *y = x),
            _ => view.as_mut_slice::<f32>()?.iter_mut().zip(data).for_each(|(y, x)| *y = x as f32),
        }
    }
    Ok(())
}

/// A kernel that maps the elements of input 0.
fn each(def: OpDef, f: impl Fn(f64) -> f64 + Send + Sync + 'static) -> OpDef {
    def.cpu(move |cx| put(cx.output(0), &get(cx.input(0)?)?.into_iter().map(&f).collect::<Vec<_>>()))
}

/// A kernel that maps the rows of a matrix, each with its number in the whole tensor.
fn rows(def: OpDef, f: impl Fn(&KernelCx<'_>, usize, &[f64]) -> Vec<f64> + Send + Sync + 'static) -> OpDef {
    def.cpu(move |cx| {
        let (data, width) = (get(cx.input(0)?)?, cx.input(0)?.dims()[1]);
        let made = (0..cx.input(0)?.dims()[0]).flat_map(|r| f(cx, r, &data[r * width..][..width]));
        put(cx.output(0), &made.collect::<Vec<_>>())
    })
}

fn sums(def: OpDef) -> OpDef {
    rows(def, |_, _, row| vec![row.iter().sum()])
}

/// The gradient is `by` times the one of the output.
fn times(by: f64) -> Grad {
    Grad::rule_saving(&[], &[], move |g| {
        let Some(dy) = g.grad(0) else { return Ok(()) };
        let dx = g.call("mul_scalar", &[dy], &[("s", by.into())])?;
        g.set(0, dx)
    })
}

fn running(_: &KernelCx<'_>, _: usize, row: &[f64]) -> Vec<f64> {
    row.iter().scan(0.0, |sum, x| Some(*sum + x).inspect(|y| *sum = *y)).collect()
}

const FAULTS: &[Fault] = &[
    // Gradients.
    fault("gradient_sign", "the gradient of input 0, element 0 is", |name, bad| {
        let def = expression(name, "(x: float) -> y", "x * x").samples(MATRIX);
        def.derivative(0, either(bad, "-2 * x", "2 * x")).expect("derivative")
    }),
    fault("gradient_in_f32", "the gradient of input 0, element 0 is", |name, bad| {
        let def = each(op(name, "(x: f32) -> y"), |x| 3.0 * x).signatures(&["S0 -> S0", "P -> P"]).samples(MATRIX);
        def.grad(times(either(bad, 300.0, 3.0)))
    }),
    fault("gradient_of_one_dtype", "in f32, and -0.65 in f64 (float sample 0)", |name, bad| {
        let def = each(op(name, "(x: f32|f64) -> y"), |x| x).signatures(&["S0 -> S0", "P -> P"]).samples(MATRIX);
        def.grad(Grad::rule_saving(&[], &[], move |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let by = either(bad && g.input_dtype(0) == Some(DType::F32), -1.0, 1.0);
            let dx = g.call("mul_scalar", &[dy], &[("s", by.into())])?;
            g.set(0, dx)
        }))
    }),
    fault("gradient_without_attribute", "(float sample 1)", |name, bad| {
        let def = expression(name, "(x: float; alpha: runtime float = 1.0) -> y", "alpha * x");
        let def = def.samples(&["f32[4, 3]", "f32[4, 3]; alpha=2.5"]);
        def.derivative(0, either(bad, "1", "alpha")).expect("derivative")
    }),
    fault("gradient_without_optional", "the gradient of input 1, element 0 is 0", |name, bad| {
        let def =
            op(name, "(x: float, b?: float) -> y").signatures(&["S0, S0 -> S0"]).samples(&["f32[4, 3] f32[4, 3]"]);
        let def = def.cpu(|cx| {
            let b = cx.opt_input(1).map(get).transpose()?;
            let sum = |(i, x)| x + b.as_ref().map_or(0.0, |b| b[i]);
            put(cx.output(0), &get(cx.input(0)?)?.into_iter().enumerate().map(sum).collect::<Vec<_>>())
        });
        let def = def.check(|c| match c.inputs.get(1).and_then(|b| b.as_ref()) {
            Some(b) if b != c.input(0)? => Err(Error::shape(format!("b is {b}"))),
            _ => Ok(()),
        });
        def.grad(Grad::rule_saving(&[], &[], move |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            g.set(0, dy)?;
            if g.has(1) && !bad { g.set(1, dy) } else { Ok(()) }
        }))
    }),
    fault("second_derivative", "the second derivative of input 0, element 0 is", |name, bad| {
        let inner = op(&format!("{name}_grad"), "(dy: float, x: float) -> dx").factors("..., ... -> ...");
        let inner = inner.linear_in(&["dy"]).domain("planted").samples(&["f32[3] f32[3]"]);
        let inner = inner.cpu(|cx| {
            let both = get(cx.input(0)?)?.into_iter().zip(get(cx.input(1)?)?);
            put(cx.output(0), &both.map(|(dy, x)| 2.0 * dy * x).collect::<Vec<_>>())
        });
        let by = either(bad, 3.0, 2.0);
        register(inner.grad(Grad::rule(move |g| {
            let Some(d) = g.grad(0) else { return Ok(()) };
            for (i, other) in [(0, 1), (1, 0)] {
                let with = g.input(other)?;
                let product = g.call("mul", &[d, with], &[])?;
                let made = g.call("mul_scalar", &[product], &[("s", either(i == 1, by, 2.0).into())])?;
                g.set(i, made)?;
            }
            Ok(())
        })))
        .expect("registered");
        let called = format!("planted.{name}_grad");
        let def = each(op(name, "(x: float) -> y"), |x| x * x).signatures(&["S0 -> S0"]).samples(MATRIX);
        def.grad(Grad::rule_saving(&[0], &[], move |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let x = g.input(0)?;
            let dx = g.call(&called, &[dy, x], &[])?;
            g.set(0, dx)
        }))
    }),
    // Shapes and element types.
    fault("shape_too_long", "with [S(0)] -> [[S(0)]] on [2]", |name, bad| {
        let def =
            op(name, "(x: float[2]) -> y").shape1(move |c| Ok(Dims::from_slice(&[c.shape(0)?[0] + usize::from(bad)])));
        sums(def).signatures(&["S0 -> S0", "S1 -> P"]).samples(MATRIX)
    }),
    fault("shape_too_short", "with [S(0)] -> [[S(0)]] on [2]", |name, bad| {
        let def = op(name, "(x: float[2]) -> y");
        let def = def.shape1(move |c| Ok(Dims::from_slice(&[c.shape(0)?[0].saturating_sub(usize::from(bad))])));
        sums(def).signatures(&["S0 -> S0", "S1 -> P"]).samples(MATRIX)
    }),
    fault("shape_without_a_dim", "on [2]", |name, bad| {
        let def = op(name, "(a: float[1], b: float[1]) -> y");
        let def = def.shape1(move |c| Ok(Dims::from_slice(&[c.shape(0)?[0], c.shape(usize::from(!bad))?[0]])));
        let def = def.cpu(|cx| {
            let (a, b) = (get(cx.input(0)?)?, get(cx.input(1)?)?);
            put(cx.output(0), &a.iter().flat_map(|a| b.iter().map(move |b| a * b)).collect::<Vec<_>>())
        });
        def.signatures(&["S0, B -> S0", "B, S0 -> S1"]).samples(&["f32[4] f32[6]"])
    }),
    fault("dtype", "f64", |name, bad| {
        let rule = either(bad, DTypeRule::Fixed(vec![DType::F32]), DTypeRule::Fixed(vec![DType::F64]));
        let def = op(name, "(x: f64) -> y").dtype(rule).signatures(&["S0 -> S0"]).samples(&["f64[4, 6]"]);
        // SAFETY: an output, of which no other slice is alive.
        def.cpu(|cx| {
            unsafe { cx.output(0).as_mut_slice::<f64>()? }.copy_from_slice(cx.input(0)?.as_slice::<f64>()?);
            Ok(())
        })
    }),
    fault("dtypes_taken", "f64", |name, bad| {
        let def = op(name, either(bad, "(x: float) -> y", "(x: f32) -> y")).signatures(&["S0 -> S0"]).samples(MATRIX);
        // SAFETY: an output, of which no other slice is alive.
        let def = def.cpu(|cx| {
            unsafe { cx.output(0).as_mut_slice::<f32>()? }.copy_from_slice(cx.input(0)?.as_slice::<f32>()?);
            Ok(())
        });
        def.grad(times(1.0))
    }),
    // Which layouts are legal.
    fault("splits_what_is_mixed", "with [S(1)] -> [[S(1)]] on [2]", |name, bad| {
        let def = rows(op(name, "(x: float[2]) -> y"), running).samples(MATRIX);
        def.signatures(either(bad, &["S0 -> S0", "S1 -> S1"], &["S0 -> S0", "P -> P"]))
    }),
    fault("factor_of_a_mixed_dim", "with [S(1)] -> [[S(1)]] on [2]", |name, bad| {
        let def = rows(op(name, "(x: float[2]) -> y"), |_, _, row| row.iter().rev().copied().collect());
        let def = def.samples(MATRIX);
        if bad { def.factors("ij -> ij") } else { def.signatures(&["S0 -> S0", "P -> P"]) }
    }),
    fault("partial_into_nonlinear", "with [P(sum)] -> [[P(sum)]] on [2]", |name, bad| {
        let def = each(op(name, "(x: float) -> y"), |x| x * x).samples(MATRIX);
        def.signatures(either(bad, &["S0 -> S0", "P -> P"], &["S0 -> S0", "S1 -> S1"]))
    }),
    fault("partial_into_affine", "with [P(sum)] -> [[P(sum)]] on [2]", |name, bad| {
        let def = each(op(name, "(x: float) -> y"), |x| 2.0 * x + 1.0).samples(MATRIX);
        def.signatures(either(bad, &["S0 -> S0", "P -> P"], &["S0 -> S0", "P(max) -> P(max)"]))
    }),
    fault("maxima_through_what_decreases", "with [P(max)] -> [[P(max)]] on [2]", |name, bad| {
        let def = each(op(name, "(x: float) -> y"), |x| -x).samples(MATRIX);
        def.signatures(either(bad, &["P(max) -> P(max)"], &["P(max) -> P(min)"]))
    }),
    fault("linear_in_a_square", "with [P(sum)], [B] -> [[P(sum)]] on [2]", |name, bad| {
        let def = op(name, "(x: float[1], w: float[1]) -> y").factors("i, i -> i").samples(&["f32[6] f32[6]"]);
        let def = def.cpu(|cx| {
            let both = get(cx.input(0)?)?.into_iter().zip(get(cx.input(1)?)?);
            put(cx.output(0), &both.map(|(x, w)| x * x * w).collect::<Vec<_>>())
        });
        def.linear_in(&[either(bad, "x", "w")])
    }),
    fault("split_of_another_dim", "with [S(0)] -> [[S(0)]] on [2]", |name, bad| {
        let def = op(name, "(x: float[2]) -> y").shape1(|c| Ok(Dims::from_slice(&[c.shape(0)?[1], c.shape(0)?[0]])));
        let def = def.cpu(|cx| {
            let (x, n, m) = (get(cx.input(0)?)?, cx.input(0)?.dims()[0], cx.input(0)?.dims()[1]);
            put(
                cx.output(0),
                &(0..m).flat_map(|c| (0..n).map(move |r| (r, c))).map(|(r, c)| x[r * m + c]).collect::<Vec<_>>(),
            )
        });
        def.signatures(either(bad, &["S0 -> S0"], &["S0 -> S1", "S1 -> S0"])).samples(MATRIX)
    }),
    fault("whole_from_parts", "B copies differ at element 0", |name, bad| {
        let def = op(name, "(x: float[2]) -> y").shape1(|c| Ok(Dims::from_slice(&c.shape(0)?[..1])));
        sums(def).signatures(&[either(bad, "S1 -> B", "S1 -> P")]).samples(MATRIX)
    }),
    fault("two_axes_together", "on [2, 2]", |name, bad| {
        // The lower triangle, of shards that are parts along one dim only.
        let def = op(name, "(x: float[2]) -> y").signatures(&["S0 -> S0", "S1 -> S1"]).samples(&["f32[5, 5]"]);
        let def = rows(def, |cx, r, row| {
            let at = &cx.output_box(0).offset;
            let split = cx.output_box(0).size[0] < cx.output_box(0).logical[0];
            let (r, first) = if split { (r + at[0], 0) } else { (r, at[1]) };
            row.iter().enumerate().map(|(c, x)| if c + first <= r { *x } else { 0.0 }).collect()
        });
        if bad {
            return def;
        }
        def.nd_valid(|_, _, s| !(s.inputs[0].contains(&Sbp::Split(0)) && s.inputs[0].contains(&Sbp::Split(1))))
    }),
    fault("infinities_of_a_lowering", "instead of inf", |name, bad| {
        let def = op(name, "(x: float[2]) -> y").shape1(|c| Ok(Dims::from_slice(&c.shape(0)?[..1])));
        let def = sums(def).samples(MATRIX);
        def.lowering(
            |_| Ok(vec!["S1 -> P".parse()?]),
            move |e, call| {
                let mut x = call.input(0)?;
                if bad {
                    x = e.call("clamp_max", &[x], &[("max", AttrValue::from(1e30))])?;
                }
                Ok(vec![e.call("sum", &[x], &[("dims", [1i64].into())])?])
            },
        )
    }),
    // What a kernel does with shards.
    fault("offset_forgotten", "with [S(0)] -> [[S(0)]] on [2]", |name, bad| {
        let def = op(name, "(x: float[2]) -> y").signatures(&["S0 -> S0"]).samples(MATRIX);
        rows(def, move |cx, r, row| {
            let first = if bad { 0 } else { cx.output_box(0).offset[0] };
            row.iter().map(|x| x + (first + r) as f64).collect()
        })
    }),
    fault("uneven_shards", "(uneven) with [S(0)] -> [[S(0)]] on [2]", |name, bad| {
        let def = op(name, "(x: float[2]) -> y").signatures(&["S0 -> S0"]).samples(MATRIX);
        rows(def, move |cx, r, row| {
            let (at, size) = (cx.output_box(0).offset[0], cx.output_box(0).size[0]);
            // Shards of one size, all of them.
            let first = if bad { at / size * size } else { at };
            row.iter().map(|x| x + (first + r) as f64).collect()
        })
    }),
    fault("empty_shards", "panicked", |name, bad| {
        let def = op(name, "(x: float[2]) -> y").shape1(|c| Ok(Dims::from_slice(&c.shape(0)?[..1])));
        let def = rows(def, move |_, _, row| {
            vec![if bad { row[1..].iter().sum::<f64>() + row[0] } else { row.iter().sum() }]
        });
        def.signatures(&["S0 -> S0", "S1 -> P"]).samples(MATRIX)
    }),
    fault("attributes_of_the_whole", "with [S(0)] -> [[S(0)]] on [2]", |name, bad| {
        let def = op(name, "(x: float[2]; start: int) -> y").signatures(&["S0 -> S0"]).samples(&["f32[4, 6]; start=3"]);
        let def = def.localize(move |c| {
            let first = if bad { 0 } else { c.outputs[0].offset[0] as i64 };
            c.with("start", c.int("start")?.saturating_add(first))
        });
        rows(def, |cx, r, row| {
            let start = cx.int("start").unwrap_or(0);
            row.iter().map(|x| x + start as f64 + r as f64).collect()
        })
    }),
    // What a kernel does with memory.
    fault("reads_beyond", "the result depends on memory outside of the inputs", |name, bad| {
        let def = op(name, "(x: f32[1], w: f32[1]) -> y").signatures(&["S0, S0 -> S0"]).samples(&["f32[6] f32[6]"]);
        let def = def.cpu(|cx| {
            let (x, w) = (cx.input(0)?.as_slice::<f32>()?, cx.input(1)?.ptr().cast::<f32>());
            // SAFETY: none; the sample leaves room behind an input that is one element shorter.
            let sum = |i: usize| f64::from(x[i]) + f64::from(unsafe { *w.add(i) });
            put(cx.output(0), &(0..x.len()).map(sum).collect::<Vec<_>>())
        });
        if bad {
            return def;
        }
        def.check(|c| if c.shape(0)? == c.shape(1)? { Ok(()) } else { Err(Error::shape("other sizes")) })
    }),
    fault("state_between_calls", "in the first call", |name, bad| {
        let calls = Arc::new(AtomicUsize::new(0));
        let def = op(name, "(x: float) -> y").signatures(&["S0 -> S0"]).samples(MATRIX);
        each(def, move |x| x + if bad { calls.fetch_add(1, Ordering::Relaxed) as f64 } else { 0.0 })
    }),
    fault("writes_a_part", "result 0", |name, bad| {
        let def = op(name, "(x: f32[2]) -> y").signatures(&["S0 -> S0"]).samples(MATRIX);
        def.cpu(move |cx| {
            let x = cx.input(0)?.as_slice::<f32>()?;
            let n = either(bad, x.len().saturating_sub(cx.input(0)?.dims()[1]), x.len());
            // SAFETY: an output, of which no other slice is alive.
            let y = unsafe { cx.output(0).as_mut_slice::<f32>()? };
            y[..n].copy_from_slice(&x[..n]);
            Ok(())
        })
    }),
    fault("writes_its_input", "the call writes its input 0", |name, bad| {
        let def = op(name, "(x: float[2]) -> y").signatures(&["S0 -> S0"]).samples(MATRIX);
        def.cpu(move |cx| {
            let x = get(cx.input(0)?)?;
            put(cx.output(0), &x)?;
            if bad { put(cx.input(0)?, &vec![0.0; x.len()]) } else { Ok(()) }
        })
    }),
    fault("strides_ignored", "on strided inputs: result 0, element 1 is", |name, bad| {
        let def = op(name, "(x: f32[2]) -> y").strided().signatures(&["S0 -> S0"]).samples(MATRIX);
        def.cpu(move |cx| {
            let (x, width) = (cx.input(0)?, cx.input(0)?.dims()[1]);
            let strides = if bad { [width as isize, 1] } else { [x.strides()[0], x.strides()[1]] };
            let at = |i: usize| (i / width) as isize * strides[0] + (i % width) as isize * strides[1];
            // SAFETY: elements of the input; contiguous memory has as many.
            let read = |i: usize| f64::from(unsafe { *x.ptr().cast::<f32>().offset(at(i)) });
            put(cx.output(0), &(0..x.len()).map(read).collect::<Vec<_>>())
        })
    }),
    // What is asked before anything is computed.
    fault("check_that_panics", "panicked: ", |name, bad| {
        let def = expression(name, "(x: float) -> y", "x + x").samples(MATRIX);
        def.check(move |c| {
            let dims = c.shape(0)?;
            let width = if bad { dims[1] } else { dims.get(1).copied().unwrap_or(1) };
            if width < 1 << 20 { Ok(()) } else { Err(Error::shape("too wide")) }
        })
    }),
    fault("split_through_a_reshape", "with [S(1)] -> [[S(0)]] on [2]", |name, bad| {
        let def =
            op(name, "(x: float; shape: shape) -> y").shape_rule(ShapeRule::Attr).samples(&["f32[5, 4]; shape=[20]"]);
        let def = def.check(|c| match c.ints("shape")?.iter().try_fold(1i64, |n, d| n.checked_mul(*d)) {
            Some(n) if n == c.input(0)?.len() as i64 => Ok(()),
            _ => Err(Error::shape("another number of elements")),
        });
        each(def, |x| x).signatures(&[either(bad, "S1 -> S0", "P -> P")])
    }),
];

fn registered(fault: &Fault, bad: bool) -> &'static oflow::ops::Op {
    let name = format!("{}_{}", fault.name, either(bad, "wrong", "right"));
    register((fault.make)(&name, bad).domain("planted")).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn each_fault_is_named_in_six_lines() {
    assert!(FAULTS.len() >= 20);
    let mut missed = vec![];
    for fault in FAULTS {
        let op = registered(fault, true);
        match conformance(op).map_err(|e| e.to_string()) {
            Ok(_) => missed.push(format!("{}: not found", fault.name)),
            Err(e) => {
                println!("{e}\n");
                if e.lines().count() > 6 || !e.contains(op.name()) || !e.contains(fault.says) {
                    missed.push(format!("{}: should say {:?}:\n{e}", fault.name, fault.says));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn the_same_ops_without_the_fault_conform() {
    let wrong =
        FAULTS.iter().filter_map(|f| conformance(registered(f, false)).err().map(|e| format!("{}: {e}", f.name)));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
