//! Optimizer steps in place: parameter and state are mutable inputs, which are never boxed; the gradient follows them.
//!
//! `adamw_many` and its like take any number of parameters that lie alike, and on a GPU update them in one launch or a few.

use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Grad, InferCtx, OpDef};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::{DType, Dims, Scalar};
use smallvec::{SmallVec, smallvec};

/// Each parameter and what belongs to it: all inputs of an op for one parameter.
fn same_shapes(c: &InferCtx<'_>) -> Result<()> {
    let group = c.op.sig.repeating();
    let group = if group == 0 { c.inputs.len() } else { group };
    for (i, t) in c.inputs.iter().enumerate() {
        let want = c.shape(i / group * group)?;
        if let (Some(t), Some(def)) = (t, c.op.sig.input_def(i))
            && t.shape.as_slice() != want
        {
            let shape = t.shape.as_slice();
            return Err(Error::shape(format!("{} has shape {shape:?}, the parameter {want:?}", def.name)));
        }
    }
    Ok(())
}

/// The dims that all inputs from `first` have.
fn common_dims(c: &InferCtx<'_>, first: usize) -> std::ops::Range<usize> {
    0..c.inputs.iter().skip(first).flatten().map(|t| t.shape.len()).min().unwrap_or(0)
}

fn all_split(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    Ok(common_dims(c, 0)
        .map(|d| Signature::new(&SmallVec::<[Sbp; 4]>::from_elem(Sbp::Split(d), c.inputs.len()), &[]))
        .collect())
}

const ADAMW: &str = "lr: runtime float, beta1: runtime float = 0.9, beta2: runtime float = 0.999, eps: runtime float = 1e-8, weight_decay: runtime float = 0.01, step: runtime int";
const SGD: &str = "lr: runtime float, decay: runtime float = 0.0, dampening: runtime float = 0.0, weight_decay: runtime float = 0.0, nesterov: runtime bool = false, first: runtime bool = false";

const ADAM: &str = "lr: runtime float, beta1: runtime float = 0.9, beta2: runtime float = 0.999, eps: runtime float = 1e-8, weight_decay: runtime float = 0.0, decoupled: runtime bool = false, step: runtime int";
const NADAM: &str = "lr: runtime float, beta1: runtime float = 0.9, beta2: runtime float = 0.999, eps: runtime float = 1e-8, weight_decay: runtime float = 0.0, momentum_decay: runtime float = 0.004, decoupled: runtime bool = false, step: runtime int";
const ADAMAX: &str = "lr: runtime float, beta1: runtime float = 0.9, beta2: runtime float = 0.999, eps: runtime float = 1e-8, weight_decay: runtime float = 0.0, step: runtime int";
const RMSPROP: &str = "lr: runtime float, alpha: runtime float = 0.99, eps: runtime float = 1e-8, weight_decay: runtime float = 0.0, decay: runtime float = 0.0, centered: runtime bool = false";
const LAMB: &str = "beta1: runtime float = 0.9, beta2: runtime float = 0.999, eps: runtime float = 1e-6, weight_decay: runtime float = 0.0, step: runtime int";

/// Steps of many parameters: name, inputs of each, settings, what it is, samples.
const MANY: &[(&str, &str, &str, &str, &[&str])] = &[
    (
        "adam_many",
        "param!: float, grad: float, m!: float, v!: float, largest!?: float",
        ADAM,
        "One step of Adam (Kingma and Ba), PyTorch's formula, of many parameters that lie alike; with `largest` AMSGrad",
        &[
            "f32[3, 5] f32[3, 5] f32[3, 5] f32[3, 5]+ - f32[4, 6] f32[4, 6] f32[4, 6] f32[4, 6]+ -; lr=0.1, step=3",
            "bf16[4] bf16[4] f32[4] f32[4]+ f32[4]+; lr=0.1, decoupled=true, step=1",
        ],
    ),
    (
        "radam_many",
        "param!: float, grad: float, m!: float, v!: float",
        ADAM,
        "One step of RAdam (Liu et al.), PyTorch's formula, of many parameters that lie alike",
        &[
            "f32[3, 5] f32[3, 5] f32[3, 5] f32[3, 5]+ f32[4, 6] f32[4, 6] f32[4, 6] f32[4, 6]+; lr=0.1, step=9",
            "bf16[4] bf16[4] f32[4] f32[4]+; lr=0.1, decoupled=true, step=1",
        ],
    ),
    (
        "nadam_many",
        "param!: float, grad: float, m!: float, v!: float",
        NADAM,
        "One step of NAdam (Dozat), PyTorch's formula, of many parameters that lie alike",
        &[
            "f32[3, 5] f32[3, 5] f32[3, 5] f32[3, 5]+ f32[4, 6] f32[4, 6] f32[4, 6] f32[4, 6]+; lr=0.1, step=3",
            "bf16[4] bf16[4] f32[4] f32[4]+; lr=0.1, decoupled=true, step=1",
        ],
    ),
    (
        "adamax_many",
        "param!: float, grad: float, m!: float, largest!: float",
        ADAMAX,
        "One step of Adamax (Kingma and Ba), PyTorch's formula, of many parameters that lie alike",
        &["f32[3, 5] f32[3, 5] f32[3, 5] f32[3, 5]+ f32[4, 6] f32[4, 6] f32[4, 6] f32[4, 6]+; lr=0.1, step=3"],
    ),
    (
        "asgd_many",
        "param!: float, grad: float, average!: float",
        "rate: runtime float, lambd: runtime float = 1e-4, weight_decay: runtime float = 0.0, mix: runtime float = 1.0",
        "One step of averaged SGD (Polyak and Juditsky), PyTorch's formula, of many parameters that lie alike; `mix` is the parameter's part in the average",
        &[
            "f32[3, 5] f32[3, 5] f32[3, 5] f32[4, 6] f32[4, 6] f32[4, 6]; rate=0.1",
            "f64[4] f64[4] f64[4]; rate=0.1, mix=0.25",
        ],
    ),
    (
        "rprop_many",
        "param!: float, grad: float, previous!: float, size!: float",
        "shrink: runtime float = 0.5, grow: runtime float = 1.2, least: runtime float = 1e-6, most: runtime float = 50.0",
        "One step of Rprop (Riedmiller and Braun), PyTorch's formula, of many parameters that lie alike",
        &["f32[3, 5] f32[3, 5] f32[3, 5] f32[3, 5]+ f32[4, 6] f32[4, 6] f32[4, 6] f32[4, 6]+"],
    ),
    (
        "rmsprop_many",
        "param!: float, grad: float, square!: float, mean!?: float, momentum!?: float",
        RMSPROP,
        "One step of RMSprop, PyTorch's formula, of many parameters that lie alike; centered where there is a mean of gradients",
        &[
            "f32[3, 5] f32[3, 5] f32[3, 5]+ - - f32[4, 6] f32[4, 6] f32[4, 6]+ - -; lr=0.1",
            "f32[4] f32[4] f32[4]+ - f32[4]; lr=0.1, decay=0.9",
        ],
    ),
    (
        "adagrad_many",
        "param!: float, grad: float, sum!: float",
        "lr: runtime float, eps: runtime float = 1e-10, weight_decay: runtime float = 0.0",
        "One step of Adagrad (Duchi et al.), PyTorch's formula, of many parameters that lie alike",
        &["f32[3, 5] f32[3, 5] f32[3, 5]+ f32[4, 6] f32[4, 6] f32[4, 6]+; lr=0.1", "f64[4] f64[4] f64[4]+; lr=0.1"],
    ),
    (
        "adadelta_many",
        "param!: float, grad: float, square!: float, change!: float",
        "lr: runtime float = 1.0, rho: runtime float = 0.9, eps: runtime float = 1e-6, weight_decay: runtime float = 0.0",
        "One step of Adadelta (Zeiler), PyTorch's formula, of many parameters that lie alike",
        &["f32[3, 5] f32[3, 5] f32[3, 5]+ f32[3, 5]+ f32[4, 6] f32[4, 6] f32[4, 6]+ f32[4, 6]+"],
    ),
    (
        "lion_many",
        "param!: float, grad: float, momentum!: float",
        "lr: runtime float, beta1: runtime float = 0.9, beta2: runtime float = 0.99, weight_decay: runtime float = 0.0",
        "One step of Lion (Chen et al.) of many parameters that lie alike",
        &["f32[3, 5] f32[3, 5] f32[3, 5] f32[4, 6] f32[4, 6] f32[4, 6]; lr=0.1"],
    ),
    (
        "lamb_direction_many",
        "param!: float, grad: float, m!: float, v!: float, direction!: float",
        LAMB,
        "The directions of LAMB (You et al.) for many parameters that lie alike, which stay as they are",
        &[
            "f32[3, 5] f32[3, 5] f32[3, 5] f32[3, 5]+ f32[3, 5] f32[4, 6] f32[4, 6] f32[4, 6] f32[4, 6]+ f32[4, 6]; step=2",
        ],
    ),
    (
        "average_many",
        "mean!: float, value: float",
        "decay: runtime float",
        "Moves many averages towards values by 1 - `decay` of the difference",
        &["f32[3, 5] f32[3, 5] f32[4, 6] f32[4, 6]; decay=0.9", "f32[4] bf16[4]; decay=0.5"],
    ),
];

/// Checks that an optional list has an entry for every parameter or for none.
fn all_or_none(c: &InferCtx<'_>) -> Result<()> {
    same_shapes(c)?;
    let group = c.op.sig.repeating().max(1);
    let alike = (0..c.inputs.len()).all(|i| c.has(i) == c.has(i % group));
    if alike { Ok(()) } else { Err(Error::argument("what is kept of some parameters is missing for others")) }
}

/// Layouts of a step that is linear in all tensors.
fn linear(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    let mut s = all_split(c)?;
    let one_dtype = c.present().all(|t| Some(t.dtype) == c.present().next().map(|t| t.dtype));
    if one_dtype {
        let all = SmallVec::<[Sbp; 4]>::from_elem(Sbp::PARTIAL_SUM, c.inputs.len());
        s.push(Signature::new(&all, &[]));
    }
    Ok(s)
}

/// Factors of pairs: they are whole, and pairs lie alike.
fn subtract_many() -> Result<OpDef> {
    Ok(OpDef::new("subtract_many(factors: float, (x!: float, y: float)...) -> ()")?
        .doc(
            "Subtracts from each of many tensors in place its factor times another tensor. The factors are one tensor.",
        )
        .by_name_only()
        .traits(|t| {
            t.side_effect = true;
            t.strided = true;
        })
        .check(|c| {
            let pairs = (c.inputs.len() - 1) / 2;
            if c.shape(0)? != [pairs] {
                return Err(Error::shape(format!("the factors have shape {:?} for {pairs} pairs", c.shape(0)?)));
            }
            match (0..pairs).find(|i| c.shape(1 + 2 * i).ok() != c.shape(2 + 2 * i).ok()) {
                Some(i) => Err(Error::shape(format!("the tensors of pair {i} differ in shape"))),
                None => Ok(()),
            }
        })
        .shapes(|_| Ok(SmallVec::new()))
        .dtype(DTypeRule::Fixed(vec![]))
        .get_sbp(scaled_alike)
        .grad(Grad::None)
        .samples(&["f32[2] f32[3, 5] f32[3, 5] f32[4, 6] f32[4, 6]", "f32[1] bf16[4, 6] f32[4, 6]"]))
}

/// Input 0, the factors, is whole; the other inputs, which are written, are all split alike or are all sums.
fn scaled_alike(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    let row = |s: Sbp| {
        let mut all = SmallVec::<[Sbp; 4]>::from_elem(s, c.inputs.len());
        all[0] = Sbp::Broadcast;
        Signature::new(&all, &[])
    };
    Ok(common_dims(c, 1).map(Sbp::Split).chain([Sbp::PARTIAL_SUM]).map(row).collect())
}

/// The dtype of sums of squares: f32, or f64 where an input is.
fn of_sums(c: &InferCtx<'_>) -> Result<SmallVec<[DType; 2]>> {
    let wide = c.present().any(|t| t.dtype == DType::F64);
    Ok(smallvec![if wide { DType::F64 } else { DType::F32 }])
}

fn squares_of_each() -> Result<OpDef> {
    Ok(OpDef::new("squares_of_each(xs...: float) -> y")?
        .doc("The sums of squares of the elements of each input, as one tensor in f32, or f64 where an input is.")
        .by_name_only()
        .strided()
        .shape1(|c| Ok([c.inputs.len()].into_iter().collect()))
        .dtype(DTypeRule::Fn(std::sync::Arc::new(of_sums)))
        .get_sbp(|c| {
            let row = |d| SmallVec::<[Sbp; 4]>::from_elem(Sbp::Split(d), c.inputs.len());
            Ok(common_dims(c, 0).map(|d| Signature::new(&row(d), &[Sbp::PARTIAL_SUM])).collect())
        })
        .traits(|t| t.run_empty = true)
        .grad(Grad::rule(|g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let twice = g.call("mul_scalar", &[dy], &[("s", Scalar::Float(2.0).into())])?;
            for i in 0..g.inputs() {
                if g.needs(i) {
                    let x = g.input(i)?;
                    let at = [("dim", 0i64.into()), ("start", i.into()), ("end", (i + 1).into())];
                    let own = g.call("slice", &[twice], &at)?;
                    let own = g.call("reshape", &[own], &[("shape", AttrValue::from(&[] as &[usize]))])?;
                    let dx = g.call("mul", &[x, own], &[])?;
                    let dtype = g.dtype(x);
                    let dx = if g.dtype(dx) == dtype { dx } else { g.call("cast", &[dx], &[("dtype", dtype.into())])? };
                    g.set(i, dx)?;
                }
            }
            Ok(())
        }))
        .samples(&["f32[3, 5] f32[4, 6]", "f64[4, 6]", "f32[3] bf16[2]"]))
}

/// Scales many tensors in place by a number that is a tensor, so that nobody waits for it.
fn scale_many() -> Result<OpDef> {
    Ok(OpDef::new("scale_many(s: float, xs!...: float) -> ()")?
        .doc("Multiplies many tensors in place by a number that is a tensor.")
        .by_name_only()
        .traits(|t| {
            t.side_effect = true;
            t.strided = true;
        })
        .check(|c| match c.shape(0)? {
            [] => Ok(()),
            shape => Err(Error::shape(format!("the factor has shape {shape:?}, not []"))),
        })
        .shapes(|_| Ok(SmallVec::new()))
        .dtype(DTypeRule::Fixed(vec![]))
        .get_sbp(scaled_alike)
        .grad(Grad::None)
        .samples(&["f32[] f32[3, 5] f32[4, 6]", "f64[] bf16[4, 6]"]))
}

/// Squares of halves overflow and lose bits.
fn sum_of_squares() -> Result<OpDef> {
    Ok(OpDef::new("sum_of_squares(xs...: float) -> y")?
        .doc("The sum of squares of all elements of all inputs, in f32, or f64 where one is.")
        .by_name_only()
        .strided()
        .shape1(|_| Ok(Dims::new()))
        .dtype(DTypeRule::Fn(std::sync::Arc::new(of_sums)))
        .get_sbp(|c| {
            let row = |d| SmallVec::<[Sbp; 4]>::from_elem(Sbp::Split(d), c.inputs.len());
            Ok(common_dims(c, 0).map(|d| Signature::new(&row(d), &[Sbp::PARTIAL_SUM])).collect())
        })
        .traits(|t| t.run_empty = true)
        .grad(Grad::rule(|g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let twice = g.call("mul_scalar", &[dy], &[("s", Scalar::Float(2.0).into())])?;
            for i in 0..g.inputs() {
                if g.needs(i) {
                    let x = g.input(i)?;
                    let dx = g.call("mul", &[x, twice], &[])?;
                    let dtype = g.dtype(x);
                    let dx = if g.dtype(dx) == dtype { dx } else { g.call("cast", &[dx], &[("dtype", dtype.into())])? };
                    g.set(i, dx)?;
                }
            }
            Ok(())
        }))
        .samples(&["f32[3, 5] f32[4, 6]", "f64[4, 6]", "f32[3]"]))
}

fn step(text: &str, doc: &str) -> Result<OpDef> {
    let op = OpDef::new(text)?;
    let many = op.sig.repeating() > 0;
    Ok(op
        .doc(doc)
        .by_name_only()
        .traits(|t| {
            t.side_effect = true;
            t.strided = true;
            t.separable = many;
        })
        .check(same_shapes)
        .shapes(|_| Ok(SmallVec::new()))
        .dtype(crate::ops::DTypeRule::Fixed(vec![]))
        .get_sbp(all_split)
        .grad(Grad::None))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let (adamw, sgd) = (
        "One step of AdamW (Loshchilov and Hutter), PyTorch's formula",
        "One step of SGD with momentum, PyTorch's formula",
    );
    let mut all = vec![
        step(
            &format!("adamw_step(param!: float, grad: float, m!: float, v!: float; {ADAMW}) -> ()"),
            &format!("{adamw}."),
        )
        .map(|o| o.samples(&["f32[3, 5] f32[3, 5] f32[3, 5] f32[3, 5]+; lr=0.1, step=3"])),
        step(
            &format!("adamw_many((param!: float, grad: float, m!: float, v!: float)...; {ADAMW}) -> ()"),
            &format!("{adamw}, of many parameters that lie alike."),
        )
        .map(|o| {
            o.samples(&[
                "f32[3, 5] f32[3, 5] f32[3, 5] f32[3, 5]+ f32[4, 6] f32[4, 6] f32[4, 6] f32[4, 6]+; lr=0.1, step=3",
                "bf16[4] bf16[4] f32[4] f32[4]+ f32[6, 2] f32[6, 2] f32[6, 2] f32[6, 2]+; lr=0.1, step=1",
            ])
        }),
        step(&format!("sgd_step(param!: float, grad: float, momentum!?: float; {SGD}) -> ()"), &format!("{sgd}."))
            .map(|o| o.samples(&["f32[3, 5] f32[3, 5] f32[3, 5]; lr=0.1, decay=0.9", "f32[4] f32[4] -; lr=0.1"])),
        step(
            &format!("sgd_many((param!: float, grad: float, momentum!?: float)...; {SGD}) -> ()"),
            &format!("{sgd}, of many parameters that lie alike; all have a momentum buffer or none has."),
        )
        .map(|o| {
            o.check(|c| {
                same_shapes(c)?;
                let group = c.op.sig.repeating();
                let buffers = (2..c.inputs.len()).step_by(group.max(1)).filter(|i| c.has(*i)).count();
                match buffers == 0 || buffers == c.inputs.len() / group.max(1) {
                    true => Ok(()),
                    false => Err(Error::argument("some parameters have a momentum buffer, others have none")),
                }
            })
        })
        .map(|o| {
            o.samples(&[
                "f32[3, 5] f32[3, 5] f32[3, 5] f32[4] f32[4] f32[4]; lr=0.1, decay=0.9",
                "f32[4, 6] f32[4, 6] - f32[4] f32[4] -; lr=0.1",
            ])
        }),
        scale_many(),
        subtract_many(),
        sum_of_squares(),
        squares_of_each(),
        step("assign(x!: any, y: any) -> ()", "x becomes y, in place.").map(|o| {
            o.check(|c| {
                same_shapes(c)?;
                // Built-in dtypes are converted, registered ones are not.
                crate::ops::promoted(c.input(0)?.dtype, c.input(1)?.dtype).map(drop)
            })
            .get_sbp(|c| {
                let mut s = all_split(c)?;
                for row in ["P(sum), P(sum) ->", "P(max), P(max) ->", "P(min), P(min) ->"] {
                    if c.input(0)?.dtype == c.input(1)?.dtype {
                        s.push(row.parse()?);
                    }
                }
                Ok(s)
            })
            // What is overwritten gets no gradient; what is written gets that of the new value.
            .grad(Grad::rule_saving(&[], &[], |g| match g.grad(0) {
                Some(dx) if g.needs(1) => {
                    let dtype = g.input_dtype(1).unwrap_or(g.dtype(dx));
                    let dy = if g.dtype(dx) == dtype { dx } else { g.call("cast", &[dx], &[("dtype", dtype.into())])? };
                    g.set(1, dy)
                }
                _ => Ok(()),
            }))
            .samples(&["f32[3, 5] f32[3, 5]"])
        }),
    ];
    all.extend(MANY.iter().map(|(name, inputs, settings, doc, samples)| {
        let op = step(&format!("{name}(({inputs})...; {settings}) -> ()"), &format!("{doc}."))?;
        let op = if *name == "average_many" { op.get_sbp(linear) } else { op };
        Ok(op.check(all_or_none).samples(samples))
    }));
    all
}
